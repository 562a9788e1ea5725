"""From per-user metrics and an assignment table to effects: golden numbers, traps, errors, invariances."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

import recdf as rd
from recdf.errors import ColumnError, DataError, DuplicateError, IdTypeError, NullKeyError, OptionError

HERE = Path(__file__).parents[1] / "golden"
GOLDEN = json.loads((HERE / "inference.json").read_text())["experiment"]
TT = {"mean_control": "control", "mean_treatment": "treatment", "diff": "effect_size", "ci_low": "effect_size_ci_lower",
      "ci_high": "effect_size_ci_upper", "rel_diff": "rel_effect_size", "rel_ci_low": "rel_effect_size_ci_lower",
      "rel_ci_high": "rel_effect_size_ci_upper", "p_value": "pvalue", "statistic": "statistic"}  # fmt: skip


@pytest.fixture(scope="module")
def log():
    return pd.read_csv(HERE / "experiment.csv")


def lin(values, treated, covariates):
    """Difference and HC2 standard error of Lin's regression (2013) by statsmodels."""
    sm = pytest.importorskip("statsmodels.regression.linear_model")
    t = treated.to_numpy(float)[:, None]
    centred = covariates.to_numpy() - covariates.to_numpy().mean(axis=0)
    fit = sm.OLS(values.to_numpy(), np.hstack([np.ones_like(t), t, centred, t * centred])).fit(cov_type="HC2")
    return fit.params[1], fit.bse[1]


def row(table, **where):
    for name, value in where.items():
        table = table[table[name] == value]
    assert len(table) == 1
    return table.iloc[0]


NOT_CHECKED = " (sample ratio not checked)"


def words(table):
    """Verdicts without the remark that the sample ratio was not checked."""
    return [verdict.removesuffix(NOT_CHECKED) for verdict in table["verdict"]]


def close(found, recorded, names=TT):
    np.testing.assert_allclose(
        [found[name] for name in names], [recorded[other] for other in names.values()], rtol=1e-9, atol=1e-9
    )


# ------------------------------------------------------------------------------------------- golden numbers


@pytest.mark.parametrize("treatment", ["B", "C"])
@pytest.mark.parametrize("case", ["mean", "ratio", "mean_cuped", "ratio_cuped", "mean_greater"])
def test_tea_tasting(log, case, treatment):
    ratio = case.startswith("ratio")
    metric = {"m": ("hits", "n_recs") if ratio else "ndcg"}
    covariate = {"m": ("pre_hits", "pre_n_recs") if ratio else "pre_ndcg"} if "cuped" in case else None
    alternative = "greater" if case.endswith("greater") else "two-sided"
    table = rd.compare_variants(
        log, metric, control="A", covariates=covariate, alternative=alternative, relative="log"
    )
    found = row(table, treatment=treatment)
    names = TT
    if covariate:  # the means as they are stand beside the adjusted ones
        names = {f"{name}_adjusted" if name.startswith("mean_") else name: other for name, other in TT.items()}
        assert table["mean_control"].nunique() == 1
    close(found, GOLDEN["tea_tasting"][f"A->{treatment}"][case], names)
    assert found["method"] == ("welch+cuped" if covariate else "welch")
    assert found["n_control"] == (log.variant == "A").sum()


def test_scipy_welch(log):
    found = row(rd.compare_variants(log, "ndcg", control="A"), treatment="B")
    recorded = GOLDEN["scipy_welch_A_B"]
    close(
        found,
        recorded,
        {"statistic": "statistic", "p_value": "pvalue", "df": "df", "ci_low": "ci_low", "ci_high": "ci_high"},
    )


def test_poststratification_is_ols_with_hc2(log):
    two = log[log.variant != "C"]
    found = row(rd.compare_variants(two, "ndcg", control="A", strata="segment"), treatment="B")
    recorded = GOLDEN["poststrat_A_B_ols_hc2"]
    close(found, recorded, {"diff": "effect", "se": "se"})
    assert found["method"] == "welch+strata"
    # Interacted regression with centred strata: its treatment coefficient is the post-stratified effect.
    strata = pd.get_dummies(two["segment"], drop_first=True, dtype=float)
    diff, se = lin(two["ndcg"], two["variant"] == "B", strata)
    assert found["diff"] == pytest.approx(diff, abs=1e-9)
    assert found["se"] == pytest.approx(se, abs=1e-9)


def test_cluster_is_the_ratio_of_cluster_sums(log):
    two = log[log.variant != "C"]
    found = row(rd.compare_variants(two, "ndcg", control="A", cluster="cluster", relative="log"), treatment="B")
    close(found, GOLDEN["cluster_mean_A_B_tea_tasting_ratio_on_cluster_x_variant_sums"])
    assert (found["n_control"], found["n_treatment"]) == (60, 59)
    assert found["warning"] == "shared_clusters"


def test_gbstats_sequential(log):
    table = rd.compare_variants(log, "ndcg", control="A", sequential_n=400)
    found = row(table, treatment="B")
    recorded = GOLDEN["gbstats_sequential_A_B_N400"]
    close(found, recorded, {"diff": "effect", "ci_low": "ci_low", "ci_high": "ci_high", "p_value": "p"})
    assert found["method"] == "sequential"


def test_plan_has_the_power_it_says(log):
    control = log[log.variant == "A"]
    plan = rd.plan_experiment(control, "ndcg", rel_effect=0.05).iloc[0]
    recorded = GOLDEN["power"]
    assert plan["std"] == pytest.approx(recorded["sd"], abs=1e-9)
    assert plan["mde_abs"] == pytest.approx(recorded["delta_5pct"], abs=1e-9)
    # statsmodels also counts the chance of rejecting on the wrong side, which is 1e-6 here.
    assert plan["n_control"] == plan["n_treatment"] == math.ceil(recorded["n_control_ratio1"])
    power = pytest.importorskip("statsmodels.stats.power").NormalIndPower()
    for share in (0.5, 0.2):
        n = rd.plan_experiment(control, "ndcg", rel_effect=0.1, control_share=share, power=0.9).iloc[0]
        found = power.power(n["mde_abs"] / n["std"], n["n_control"], 0.05, ratio=n["n_treatment"] / n["n_control"])
        assert found == pytest.approx(0.9, abs=2e-3)
        back = rd.plan_experiment(control, "ndcg", n=n["n_control"] + n["n_treatment"], control_share=share, power=0.9)
        assert back["mde_rel"].iloc[0] == pytest.approx(0.1, rel=1e-3)


def test_mde_of_a_comparison_is_the_plans(log):
    table = rd.compare_variants(log, "ndcg", control="A")
    for found in table.itertuples():
        # The noncentral t whose mean is the mde exceeds the test's quantile in 80 % of the cases.
        quantile = stats.t.ppf(0.975, found.df)
        assert stats.nct.sf(quantile, found.df, found.mde / found.se) == pytest.approx(0.8, abs=1e-6)


def test_plan_with_covariate_needs_fewer_users(log):
    plain = rd.plan_experiment(log, "ndcg", rel_effect=0.05).iloc[0]
    cuped = rd.plan_experiment(log, "ndcg", rel_effect=0.05, covariates="pre_ndcg").iloc[0]
    r = np.corrcoef(log["ndcg"], log["pre_ndcg"])[0, 1]
    assert cuped["variance_reduction"] == pytest.approx(r**2)
    assert np.isnan(plain["variance_reduction"])
    # The t quantile costs about one user per arm, whatever the variance.
    assert cuped["n_control"] == pytest.approx(plain["n_control"] * (1 - r**2), abs=2)


def test_bootstrap_agrees_with_welch(log):
    exact = rd.compare_variants(
        log, {"ndcg": "ndcg", "ctr": ("hits", "n_recs")}, control="A", covariates={"ndcg": "pre_ndcg"}
    )
    boot = rd.compare_variants(
        log, {"ndcg": "ndcg", "ctr": ("hits", "n_recs")}, control="A", covariates={"ndcg": "pre_ndcg"},
        method="bootstrap", n_resamples=4000,
    )  # fmt: skip
    for name in ("mean_control", "mean_treatment", "diff", "rel_diff", "theta", "variance_reduction"):
        np.testing.assert_allclose(boot[name], exact[name])
    np.testing.assert_allclose(boot["se"], exact["se"], rtol=0.06)
    for name in ("ci_low", "ci_high"):
        np.testing.assert_allclose(boot[name], exact[name], atol=0.15 * exact["se"].max())
    for name in ("rel_ci_low", "rel_ci_high"):
        np.testing.assert_allclose(boot[name], exact[name], atol=0.04)
    np.testing.assert_allclose(boot["p_value"], exact["p_value"], atol=0.03)
    assert boot["df"].isna().all()


# ------------------------------------------------------------------------------------------- join


METRICS = pd.DataFrame({"user_id": [1, 2, 3], "n_pred": [10, 10, 10], "ndcg@10": [0.5, 0.25, 1.0]})
GROUPS = pd.DataFrame({"user_id": [4, 2, 1], "variant": ["B", "B", "A"], "segment": ["x", "y", "x"]})


def test_join_keeps_every_assigned_user_in_order():
    joined = rd.join_experiment(METRICS, GROUPS, missing="zero")
    want = pd.DataFrame(
        {"user_id": [4, 2, 1], "variant": ["B", "B", "A"], "segment": ["x", "y", "x"], "n_pred": [0, 10, 10],
         "ndcg@10": [0.0, 0.25, 0.5], "has_metrics": [False, True, True]}
    )  # fmt: skip
    pd.testing.assert_frame_equal(joined, want)
    counts = joined.attrs["recdf_experiment"]
    assert (counts["n_assigned"], counts["n_missing"], counts["n_unassigned"]) == (3, 1, 1)
    json.dumps(joined.attrs)


def test_join_missing_options():
    nan = rd.join_experiment(METRICS, GROUPS, missing="nan")
    assert nan["n_pred"].dtype == "Int64"
    assert nan["n_pred"].isna().tolist() == nan["ndcg@10"].isna().tolist() == [True, False, False]
    dropped = rd.join_experiment(METRICS, GROUPS, missing="drop")
    assert dropped["user_id"].tolist() == [2, 1]
    assert dropped["n_pred"].dtype == "int64"
    with pytest.raises(DataError, match=r"1 of 3 assigned users have no metrics \(4\)"):
        rd.join_experiment(METRICS, GROUPS)


def test_join_by_gives_each_value_all_assigned_users():
    both = pd.concat([METRICS.assign(model="als"), METRICS.iloc[:1].assign(model="pop")])
    with pytest.raises(DuplicateError, match="several rows per user"):
        rd.join_experiment(both, GROUPS, missing="zero")
    joined = rd.join_experiment(both, GROUPS, by="model", missing="zero")
    assert joined["model"].tolist() == ["als"] * 3 + ["pop"] * 3
    assert joined["user_id"].tolist() == [4, 2, 1] * 2
    assert joined["ndcg@10"].tolist() == [0, 0.25, 0.5, 0, 0, 0.5]
    table = rd.compare_variants(joined, "ndcg@10", control="A", by="model")
    assert table["model"].tolist() == ["als", "pop"]


@pytest.mark.parametrize("dtype", ["int8", "uint64", "Int64", "float64", "category", "int64[pyarrow]", object])
def test_join_accepts_ids_of_another_width(dtype):
    joined = rd.join_experiment(METRICS.astype({"user_id": dtype}), GROUPS, missing="zero")
    assert joined["ndcg@10"].tolist() == [0.0, 0.25, 0.5]
    assert joined["user_id"].dtype == GROUPS["user_id"].dtype


@pytest.mark.parametrize("dtype", [object, "category", "string[pyarrow]", "string[python]", "str"])
def test_join_accepts_strings_however_stored(dtype):
    names = {1: "ä1", 2: "b2", 3: "c3", 4: "d4"}
    metrics = METRICS.assign(user_id=METRICS["user_id"].map(names)).astype({"user_id": dtype})
    groups = GROUPS.assign(user_id=GROUPS["user_id"].map(names))
    assert rd.join_experiment(metrics, groups, missing="zero")["ndcg@10"].tolist() == [0.0, 0.25, 0.5]


def test_join_is_exact_beyond_2_to_53():
    big = 2**53
    metrics = pd.DataFrame({"user_id": [big, big + 1, 2**63 - 1], "m": [1.0, 2.0, 3.0]})
    groups = pd.DataFrame({"user_id": np.array([2**63 - 1, big + 1, big], dtype="uint64"), "variant": list("ABB")})
    assert rd.join_experiment(metrics, groups)["m"].tolist() == [3.0, 2.0, 1.0]


def test_join_composite_key():
    metrics = pd.DataFrame({"user": [1, 1, 2], "session": ["a", "b", "a"], "m": [1.0, 2.0, 3.0]})
    groups = pd.DataFrame({"session": ["a", "a", "b"], "user": [2, 1, 1], "variant": list("ABA")})
    assert rd.join_experiment(metrics, groups, user_col=["user", "session"])["m"].tolist() == [3.0, 1.0, 2.0]


def test_users_twice_and_in_two_variants():
    groups = pd.DataFrame({"user_id": [1, 1, 2, 3, 3], "variant": ["A", "A", "B", "A", "B"]})
    with pytest.raises(DataError, match=r"1 users of assignment are in more than one variant \(3\)"):
        rd.join_experiment(METRICS, groups)
    joined = rd.join_experiment(METRICS, groups, multi_variant="drop")
    assert joined["user_id"].tolist() == [1, 2]
    counts = joined.attrs["recdf_experiment"]
    assert (counts["n_multi_variant"], counts["n_repeated"], counts["n_unassigned"]) == (1, 2, 0)


def exposed():
    days = pd.DataFrame(
        {"user_id": [1, 1, 1, 2, 2], "day": pd.to_datetime([f"2026-01-0{d}" for d in (1, 3, 4, 2, 9)]),
         "n_pred": [10, 10, 10, 10, 10], "hits@10": [9.0, 1.0, 2.0, 4.0, 8.0]}
    )  # fmt: skip
    groups = pd.DataFrame({"user_id": [2, 1, 1], "variant": ["B", "A", "A"],
                           "at": pd.to_datetime(["2026-01-05", "2026-01-04", "2026-01-03"])})  # fmt: skip
    return days, groups


def test_rows_before_exposure_are_dropped_and_counted():
    days, groups = exposed()
    joined = rd.join_experiment(days, groups, exposure_col="at", time_col="day", how="sum")
    # User 1 was first exposed on the 3rd; user 2 on the 5th.
    assert joined["hits@10"].tolist() == [8.0, 3.0]
    assert joined["n_pred"].tolist() == [10, 20]
    assert joined["n_before_exposure"].tolist() == [1, 1]
    assert joined.attrs["recdf_experiment"]["n_before_exposure"] == 2
    with pytest.raises(DuplicateError, match=r"rd\.roll_up"):
        rd.join_experiment(days, groups, exposure_col="at", time_col="day")


def test_exposure_time_kinds():
    days, groups = exposed()
    aware = groups.assign(at=groups["at"].dt.tz_localize("Europe/Berlin"))
    with pytest.raises(DataError, match="datetime with time zone"):
        rd.join_experiment(days, aware, exposure_col="at", time_col="day", how="sum")
    both = days.assign(day=days["day"].dt.tz_localize("UTC"))
    joined = rd.join_experiment(both, aware, exposure_col="at", time_col="day", how="sum")
    assert joined["n_before_exposure"].tolist() == [1, 1]
    numbers = rd.join_experiment(
        days.assign(day=days["day"].dt.day), groups.assign(at=groups["at"].dt.day.astype("float64")),
        exposure_col="at", time_col="day", how="sum",
    )  # fmt: skip
    assert numbers["hits@10"].tolist() == [8.0, 3.0]
    assert not any(name.startswith("day") for name in numbers.columns)
    dates = rd.join_experiment(
        days.assign(day=days["day"].dt.date), groups.assign(at=groups["at"].dt.as_unit("s")),
        exposure_col="at", time_col="day", how="sum",
    )  # fmt: skip
    assert dates["hits@10"].tolist() == [8.0, 3.0]


TIMES = {"missing": "zero", "time_col": "t", "exposure_col": "at"}
BAD_JOINS = [
    ("int against str", lambda m, a: (m, a.astype({"user_id": str}), {}), IdTypeError, "integer.*string"),
    ("no column", lambda m, a: (m, a.drop(columns="variant"), {}), ColumnError, "variant"),
    ("null user", lambda m, a: (m, a.assign(user_id=[None, 2.0, 1.0]), {}), NullKeyError, "1 of 3"),
    ("null variant", lambda m, a: (m, a.assign(variant=["A", None, "B"]), {}), NullKeyError, "variant.*1 of 3"),
    ("no user in common", lambda m, a: (m, a.assign(user_id=[7, 8, 9]), {"missing": "zero"}), DataError, "no user"),
    ("column in both", lambda m, a: (m, a.assign(n_pred=1), {}), DataError, "both have 'n_pred'"),
    ("variant in both", lambda m, a: (m.assign(variant="A"), a, {}), DataError, "both have 'variant'"),
    ("unassigned", lambda m, a: (m, a, {"missing": "zero", "unassigned": "raise"}), DataError, r"1 users.*\(3\)"),
    ("option", lambda m, a: (m, a, {"missing": "zeros"}), OptionError, "did you mean 'zero'"),
    ("half of the exposure", lambda m, a: (m, a, {"time_col": "t"}), OptionError, "go together"),
    ("text as time", lambda m, a: (m.assign(t="now"), a.assign(at="now"), TIMES),
     DataError, "pd.to_datetime"),
    ("null time", lambda m, a: (m.assign(t=[1, None, 2]), a.assign(at=1), TIMES),
     DataError, "null in 1 of 3"),
    ("not a frame", lambda m, a: (m.to_dict(), a, {}), TypeError, "per_user is a dict"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "error", "words"), [case[1:] for case in BAD_JOINS], ids=[case[0] for case in BAD_JOINS]
)
def test_bad_joins(make, error, words):
    metrics, groups, options = make(METRICS, GROUPS)
    with pytest.raises(error, match=words):
        rd.join_experiment(metrics, groups, **options)


@given(
    st.lists(st.integers(-3, 12), unique=True, min_size=1),
    st.lists(st.integers(-3, 12), unique=True, min_size=1),
    st.sampled_from(["int64", "uint8", "Int32", "str", "category", "object"]),
    st.sampled_from(["zero", "nan", "drop"]),
)
def test_join_is_a_left_merge(measured, assigned, dtype, missing):
    assume(set(measured) & set(assigned))
    metrics = pd.DataFrame({"user_id": measured, "n_pred": 7, "m": np.arange(len(measured)) / 4})
    groups = pd.DataFrame({"user_id": assigned, "variant": ["AB"[u % 2] for u in assigned]})
    want = groups.merge(metrics, how="inner" if missing == "drop" else "left")
    if missing == "zero":
        want = want.fillna({"n_pred": 0, "m": 0})
    shift = metrics["user_id"] + 3, groups["user_id"] + 3
    text = dtype == "str"
    metrics["user_id"] = shift[0].astype(str) if text else shift[0].astype(dtype)
    groups["user_id"] = shift[1].astype("string" if text else "int64")
    joined = rd.join_experiment(metrics, groups, missing=missing, larger_is_better="m")
    assert joined["user_id"].tolist() == [str(u + 3) if text else u + 3 for u in want["user_id"]]
    for name in ("n_pred", "m"):
        np.testing.assert_array_equal(joined[name].to_numpy(float, na_value=np.nan), want[name].to_numpy(float))


# ------------------------------------------------------------------------------------------- health


def test_health_golden(log):
    table = rd.experiment_health(
        log[["user_id", "ndcg"]], log[["user_id", "variant"]], expected={"A": 0.4, "B": 0.35, "C": 0.25}
    )
    assert table["variant"].tolist() == ["A", "B", "C"]
    assert table["n_assigned"].tolist() == list(GOLDEN["srm"]["counts"].values())
    assert table["srm_chi2"].tolist() == [pytest.approx(GOLDEN["srm"]["chi2"], abs=1e-9)] * 3
    assert table["srm_p"].tolist() == [pytest.approx(GOLDEN["srm"]["p"], abs=1e-9)] * 3
    equal = rd.experiment_health(log[["user_id"]], log[["user_id", "variant"]])
    assert equal["srm_p"].iloc[0] == pytest.approx(GOLDEN["srm"]["p_equal_split"], abs=1e-9)
    assert (equal["srm_flag"] == "sample_ratio").all()
    assert (table["srm_flag"] == "").all()
    assert table["missing_p"].isna().all()


def test_health_counts():
    groups = pd.DataFrame(
        {"user_id": [*range(100), *range(100), 0, 100], "variant": ["A"] * 100 + ["A"] * 100 + ["B", "B"]}
    )
    metrics = pd.DataFrame({"user_id": [*range(1, 60), 500, 501], "m": 1.0})
    table = rd.experiment_health(metrics, groups, expected={"A": 1, "B": 1, "C": 2})
    assert table["variant"].tolist() == ["A", "B", "C"]
    assert table["n_assigned"].tolist() == [99, 1, 0]  # user 0 is in two variants
    assert table["n_multi_variant"].tolist() == [1, 1, 0]
    assert table["n_with_metrics"].tolist() == [59, 0, 0]
    assert table["n_missing"].tolist() == [40, 1, 0]
    assert table["n_unassigned"].tolist() == [2, 2, 2]
    assert table["expected_share"].tolist() == [0.25, 0.25, 0.5]
    assert table["srm_flag"].tolist() == ["sample_ratio"] * 3


def test_health_missing_is_chi2_contingency():
    groups = pd.DataFrame({"user_id": range(400), "variant": ["A", "B"] * 200, "country": ["x"] * 200 + ["y"] * 200})
    metrics = pd.DataFrame({"user_id": [u for u in range(400) if u % 2 or u % 3]})
    table = rd.experiment_health(metrics, groups)
    want = stats.chi2_contingency([table["n_with_metrics"], table["n_missing"]], correction=False)
    assert table["missing_chi2"].iloc[0] == pytest.approx(want.statistic)
    assert table["missing_p"].iloc[0] == pytest.approx(want.pvalue)
    assert (table["missing_flag"] == "missing_metrics").all()
    split = rd.experiment_health(metrics, groups, by="country")
    assert split["country"].tolist() == ["x", "x", "y", "y"]
    one = rd.experiment_health(metrics, groups[groups.country == "x"])
    assert split["missing_p"].iloc[0] == one["missing_p"].iloc[0]


@pytest.mark.parametrize(
    ("expected", "words"),
    [({"A": 1}, "no share for variant 'B'"), ({"A": 1, "B": 0}, "above 0"), ({"A": 1, "B": float("nan")}, "above 0")],
)
def test_health_bad_shares(expected, words):
    with pytest.raises(OptionError, match=words):
        rd.experiment_health(METRICS, GROUPS, expected=expected)


# ------------------------------------------------------------------------------------------- traps


def test_inner_join_turns_the_sign():
    """The treatment helps everyone a little and wakes up light users, who value little."""
    rng = np.random.default_rng(1)
    n = 20_000
    users = np.arange(n)
    treated = rng.random(n) < 0.5
    heavy = rng.random(n) < 0.3
    active = heavy | (rng.random(n) < np.where(treated, 0.8, 0.3))
    value = np.where(heavy, 0.5, 0.15) + 0.01 * treated + rng.normal(0, 0.05, n)
    per_user = pd.DataFrame({"user_id": users[active], "ndcg@10": value[active]})
    groups = pd.DataFrame({"user_id": users, "variant": np.where(treated, "T", "C")})
    inner = rd.compare_variants(rd.join_experiment(per_user, groups, missing="drop"), "ndcg@10", control="C")
    whole = rd.compare_variants(rd.join_experiment(per_user, groups, missing="zero"), "ndcg@10", control="C")
    assert words(inner) == ["worse"]
    assert words(whole) == ["better"]
    # By hand: 0.3·0.51 + 0.7·0.8·0.16 − (0.3·0.5 + 0.7·0.3·0.15)
    assert whole["diff"].iloc[0] == pytest.approx(0.0611, abs=0.01)
    health = rd.experiment_health(per_user, groups)
    assert (health["missing_flag"] == "missing_metrics").all()


def test_nan_does_not_count():
    data = pd.DataFrame(
        {"user_id": range(8), "variant": list("AAAABBBB"), "m": [1, 2, 3, np.nan, 2, 4, np.nan, np.nan]}
    )
    with pytest.raises(DataError, match=r"'m' is null in 3 of 8 rows.*\[3, 6, 7\]"):
        rd.compare_variants(data, "m", control="A")
    found = rd.compare_variants(data, "m", control="A", nan="drop").iloc[0]
    assert (found["n_control"], found["n_treatment"], found["n_dropped"]) == (3, 2, 3)
    want = stats.ttest_ind([2, 4], [1, 2, 3], equal_var=False)
    assert found["p_value"] == pytest.approx(want.pvalue, rel=1e-9)
    boot = rd.compare_variants(data, "m", control="A", nan="drop", method="bootstrap").iloc[0]
    assert boot["diff"] == pytest.approx(1.0)
    assert boot["n_dropped"] == 3


@pytest.mark.parametrize("method", ["welch", "bootstrap"])
def test_constant_metric_has_no_statistics(method):
    data = pd.DataFrame({"user_id": range(60), "variant": ["A", "B"] * 30, "m": 0.1})
    found = rd.compare_variants(data, "m", control="A", method=method).iloc[0]
    assert found[["se", "ci_low", "ci_high", "statistic", "df", "p_value", "p_adj", "mde"]].isna().all()
    assert (found["warning"], found["reject"]) == ("zero_variance", False)
    assert found["verdict"] == "no difference shown" + NOT_CHECKED


def test_metric_that_is_its_covariate_has_no_variance_left():
    data = pd.DataFrame({"user_id": range(60), "variant": ["A", "B"] * 30, "m": np.arange(60) / 7})
    found = rd.compare_variants(data, "m", control="A", covariates="m").iloc[0]
    assert found["warning"] == "zero_variance"
    assert found["theta"] == pytest.approx(1)


def test_rows_below_the_user_need_cluster_or_roll_up():
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(50), 4)
    sessions = pd.DataFrame({"user_id": users, "m": rng.normal(size=50)[users] + rng.normal(size=200)})
    sessions["variant"] = np.where(users % 2, "A", "B")
    with pytest.raises(DuplicateError, match=r"150 rows too many.*cluster='user_id'.*rd\.roll_up"):
        rd.compare_variants(sessions, "m", control="A")
    clustered = rd.compare_variants(sessions, "m", control="A", cluster="user_id").iloc[0]
    rolled = rd.roll_up(sessions, unit=["user_id", "variant"], how="sum")
    by_sums = rd.compare_variants(rolled, {"m": ("m", "m__n")}, control="A").iloc[0]
    for name in ("diff", "se", "df", "p_value", "n_control", "n_treatment"):
        assert clustered[name] == pytest.approx(by_sums[name])
    assert clustered["warning"] == ""


def test_control_is_never_guessed():
    data = pd.DataFrame({"user_id": range(4), "variant": ["control", "control", "new", "new"], "m": [1.0, 2, 3, 4]})
    with pytest.raises(TypeError):
        rd.compare_variants(data, "m")
    with pytest.raises(OptionError, match=r"control='A' is not in data\['variant'\].*\['control', 'new'\]"):
        rd.compare_variants(data, "m", control="A")


# ------------------------------------------------------------------------------------------- comparison


def test_segments_are_their_own_experiments(log):
    table = rd.compare_variants(log, ["ndcg", "hits"], control="A", by="segment", correction="none")
    assert table.columns[0] == "segment"
    for segment in log["segment"].unique():
        alone = rd.compare_variants(log[log.segment == segment], ["ndcg", "hits"], control="A", correction="none")
        part = table[table.segment == segment].drop(columns="segment").reset_index(drop=True)
        pd.testing.assert_frame_equal(part, alone)


def test_segment_without_an_arm_is_a_row_without_test():
    data = pd.DataFrame(
        {"user_id": range(6), "variant": list("AABBAA"), "s": list("xxxxyy"), "m": [1.0, 2, 3, 5, 4, 5]}
    )
    table = rd.compare_variants(data, "m", control="A", by="s")
    assert table["warning"].tolist() == ["tiny", "too_few_users"]
    assert table["verdict"].tolist() == ["check: tiny arms"] * 2
    assert table["n_treatment"].tolist() == [2, 0]
    assert table["mean_control"].tolist() == [1.5, 4.5]
    assert np.isnan(table["p_value"].iloc[1])


def test_families_and_primary_metrics(log):
    specs = {"ndcg": "ndcg", "ctr": ("hits", "n_recs"), "hits": "hits"}
    table = rd.compare_variants(log, specs, control="A")
    np.testing.assert_allclose(table["p_adj"], rd.adjust_pvalues(table)["p_adj"])
    per_metric = rd.compare_variants(log, specs, control="A", family="metric")
    for _, part in per_metric.groupby("metric"):
        np.testing.assert_allclose(np.sort(part["p_adj"]), np.sort(rd.adjust_pvalues(part)["p_adj"]))
    primary = rd.compare_variants(log, specs, control="A", primary="ctr")
    ctr = primary["metric"] == "ctr"
    assert primary.loc[ctr, "p_adj"].min() == pytest.approx(2 * primary.loc[ctr, "p_value"].min())
    assert (primary.loc[~ctr, "p_adj"] == rd.adjust_pvalues(table[table.metric != "ctr"])["p_adj"]).all()


def test_verdicts(log):
    rng = np.random.default_rng(2)
    n = 900
    base = pd.DataFrame({"user_id": range(n), "variant": np.repeat(["A", "B"], n // 2)})
    up = (base["variant"] == "B").to_numpy() * 1.0
    noise = rng.normal(size=n)
    data = base.assign(good=up + noise, bad=-up + noise, same=rng.normal(size=n))
    data["first_rank@5"] = data["bad"]
    table = rd.compare_variants(data, ["good", "bad", "same", "first_rank@5"], control="A")
    assert words(table) == ["better", "worse", "no difference shown", "better"]
    assert table["verdict"].str.endswith(NOT_CHECKED).all()
    renamed = rd.compare_variants(data, {"rank": "first_rank@5"}, control="A")
    assert words(renamed) == ["better"]
    chosen = rd.compare_variants(data, ["good", "first_rank@5"], control="A", smaller_is_better="good")
    assert words(chosen) == ["worse", "worse"]
    both = rd.compare_variants(
        data, ["good", "bad"], control="A", smaller_is_better="good", larger_is_better="bad", correction="none"
    )
    assert words(both) == ["worse", "worse"]
    invalid = rd.compare_variants(data, ["good", "same"], control="A", expected={"A": 1, "B": 2})
    assert invalid["verdict"].tolist() == ["invalid: sample ratio"] * 2
    assert invalid["warning"].tolist() == ["sample_ratio"] * 2
    fair = rd.compare_variants(data, "good", control="A", expected={"A": 50, "B": 50})
    assert fair["verdict"].tolist() == ["better"]
    # Per segment: the plan fails in one of them and over all.
    data["s"] = np.where(np.arange(n) % 450 < 225, "x", "y")
    skewed = data[(data.s == "x") | (data.variant == "A") | (data.user_id % 3 == 0)]
    table = rd.compare_variants(skewed, "good", control="A", by="s", expected={"A": 1, "B": 1})
    assert table["verdict"].tolist() == ["invalid: sample ratio"] * 2


def test_covariate_options(log):
    table = rd.compare_variants(log, ["ndcg", "hits"], control="A", covariates={"ndcg": "pre_ndcg"})
    assert table["theta"].notna().tolist() == [True, True, False, False]
    assert table["variance_reduction"].iloc[0] > 0.5
    gaps = log.assign(pre_ndcg=log["pre_ndcg"].where(log.user_id % 10 != 0))
    found = row(rd.compare_variants(gaps, "ndcg", control="A", covariates="pre_ndcg"), treatment="B")
    two = gaps[gaps.variant != "C"]
    assert found["n_covariate_missing"] == two["pre_ndcg"].isna().sum()
    # The missing values take the mean, and an indicator of them is a covariate too.
    filled = pd.DataFrame({"x": two["pre_ndcg"].fillna(two["pre_ndcg"].mean()), "gap": two["pre_ndcg"].isna() * 1.0})
    diff, se = lin(two["ndcg"], two["variant"] == "B", filled)
    assert (found["diff"], found["se"]) == (pytest.approx(diff, abs=1e-9), pytest.approx(se, abs=1e-9))
    assert found["method"] == "welch+regression"


def test_segment_of_new_users_has_no_covariate(log):
    new = log.assign(pre_n_recs=log["pre_n_recs"].where(log.segment != "new", 0), pre_hits=0)
    specs = {"ctr": ("hits", "n_recs")}
    for method in ("welch", "bootstrap"):
        options = {"control": "A", "by": "segment", "method": method, "n_resamples": 100}
        table = rd.compare_variants(new, specs, covariates={"ctr": ("pre_hits", "pre_n_recs")}, **options)
        plain = rd.compare_variants(new, specs, **options)
        in_new = table["segment"] == "new"
        assert (table.loc[in_new, "warning"] == "no_covariate").all()
        assert (table.loc[~in_new, "warning"] == "").all()
        np.testing.assert_allclose(table.loc[in_new, "p_value"], plain.loc[in_new, "p_value"])
    nothing = rd.compare_variants(log.assign(n_recs=0), specs, control="A")
    assert nothing["warning"].tolist() == ["zero_denominator"] * 2
    assert nothing[["mean_control", "diff", "p_value"]].isna().all(axis=None)


def test_sample_ratio_counts_what_was_randomised():
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"user_id": np.arange(3000), "region": np.arange(3000) // 10, "m": rng.random(3000)})
    # Whole regions: 100 against 200, although the users of A were thinned to be as many as those of B.
    by_region = data.assign(variant=np.where(data["region"] < 200, "A", "B"))
    by_region = by_region[(by_region["variant"] == "B") | (by_region["user_id"] % 2 == 0)]
    options = {"control": "A", "cluster": "region", "expected": {"A": 1, "B": 1}}
    assert by_region["variant"].value_counts().tolist() == [1000, 1000]
    assert rd.compare_variants(by_region, "m", **options)["verdict"].tolist() == ["invalid: sample ratio"]
    # Users within regions: each region is in both variants, so regions say nothing.
    by_user = data.assign(variant=np.where(data["user_id"] % 10 < 3, "A", "B"))
    found = rd.compare_variants(by_user, "m", **options).iloc[0]
    assert (found["verdict"], found["n_control"], found["n_treatment"]) == ("invalid: sample ratio", 300, 300)


def test_cuped_with_strata_and_with_clusters(log):
    two = log[log.variant != "C"]
    strata = rd.compare_variants(two, "ndcg", control="A", covariates="pre_ndcg", strata="segment").iloc[0]
    dummies = pd.get_dummies(two["segment"], drop_first=True, dtype=float).assign(x=two["pre_ndcg"])
    diff, se = lin(two["ndcg"], two["variant"] == "B", dummies)
    assert (strata["diff"], strata["se"]) == (pytest.approx(diff, abs=1e-9), pytest.approx(se, abs=1e-9))
    assert strata["mean_control"] == pytest.approx(two.loc[two.variant == "A", "ndcg"].mean())
    clustered = rd.compare_variants(two, "ndcg", control="A", covariates="pre_ndcg", cluster="cluster").iloc[0]
    sums = rd.roll_up(two, unit=["variant", "cluster"], how={"ndcg": "sum", "pre_ndcg": "sum"})
    want = rd.compare_variants(
        sums, {"ndcg": ("ndcg", "ndcg__n")}, control="A", covariates={"ndcg": ("pre_ndcg", "pre_ndcg__n")}
    ).iloc[0]
    for name in ("diff", "se", "df", "theta", "variance_reduction"):
        assert clustered[name] == pytest.approx(want[name])


@pytest.mark.parametrize("labels", [[0, 1], [False, True], pd.Categorical(["b", "a"], categories=["b", "a"])])
def test_variant_labels_of_any_kind(labels):
    data = pd.DataFrame({"user_id": range(8), "m": [1.0, 2, 1, 2, 3, 4, 3, 4]})
    data["variant"] = pd.Series(labels).repeat(4).reset_index(drop=True)
    control = data["variant"].iloc[0]
    table = rd.compare_variants(data, "m", control=control)
    assert table["diff"].tolist() == [2.0]
    assert table["control"].tolist() == [control]


BAD_COMPARISONS = [
    ("one variant", lambda d: (d.assign(variant="A"), "m", {}), OptionError, "at least two"),
    ("user in two", lambda d: (d.assign(user_id=[*range(6), 0, 1]), "m", {}), DataError, r"2 users.*\(0, 1\)"),
    ("text metric", lambda d: (d.assign(m=list("abcdefgh")), "m", {}), DataError, "metric is numeric"),
    ("infinite", lambda d: (d.assign(m=[np.inf, *[1.0] * 7]), "m", {}), DataError, "infinite in 1 of 8"),
    ("no metric column", lambda d: (d, "ndgc", {}), ColumnError, "ndgc"),
    ("no metrics", lambda d: (d, [], {}), OptionError, "empty"),
    ("three columns", lambda d: (d, {"x": ("m", "m", "m")}, {}), OptionError, "numerator, denominator"),
    ("small stratum", lambda d: (d.assign(s=list("xxxyxxxx")), "m", {"strata": "s"}), DataError, "1 of 2 strata.*'y'"),
    ("strata and cluster", lambda d: (d, "m", {"strata": "m", "cluster": "m"}), OptionError, "not both"),
    ("strata of a ratio", lambda d: (d, {"r": ("m", "user_id")}, {"strata": "variant"}), OptionError, "means only"),
    ("negative denominator", lambda d: (d.assign(n=-1), {"r": ("m", "n")}, {}), DataError, "negative in 8 rows"),
    ("covariate of no metric", lambda d: (d, "m", {"covariates": {"x": "m"}}), OptionError, r"\['x'\]"),
    ("null segment", lambda d: (d.assign(s=[None, *"xxxxxxx"]), "m", {"by": "s"}), NullKeyError, "1 of 8"),
    ("two variants within the cluster", lambda d: (d.assign(user_id=[*range(6), 0, 1]), "m", {"cluster": "user_id"}),
     DataError, "2 users"),
    ("by of the result", lambda d: (d.assign(se=1), "m", {"by": "se"}), OptionError, "rename it"),
    ("None", lambda d: (d, None, {}), OptionError, "metrics=None"),
    ("confidence", lambda d: (d, "m", {"confidence": 95}), OptionError, "between 0 and 1"),
    ("method", lambda d: (d, "m", {"method": "boot"}), OptionError, "'bootstrap'"),
    ("sequential", lambda d: (d, "m", {"sequential_n": 9, "alternative": "less"}), OptionError, "two-sided"),
    ("primary", lambda d: (d, "m", {"primary": "x"}), OptionError, "primary"),
    ("expected", lambda d: (d, "m", {"expected": {"A": 1}}), OptionError, "variant 'B'"),
    ("smaller", lambda d: (d, "m", {"smaller_is_better": "x"}), OptionError, "smaller_is_better"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "error", "words"), [case[1:] for case in BAD_COMPARISONS], ids=[case[0] for case in BAD_COMPARISONS]
)
def test_bad_comparisons(make, error, words):
    data = pd.DataFrame({"user_id": range(8), "variant": list("AAAABBBB"), "m": [1.0, 2, 3, 4, 3, 4, 5, 6]})
    data, metrics, options = make(data)
    with pytest.raises(error, match=words):
        rd.compare_variants(data, metrics, control="A", **options)


# ------------------------------------------------------------------------------------------- whole-table properties


OPTIONS = [
    {}, {"covariates": "pre_ndcg"}, {"strata": "segment"}, {"cluster": "cluster"}, {"by": "segment"},
    {"sequential_n": 500},
    {"method": "bootstrap", "n_resamples": 200}, {"method": "bootstrap", "n_resamples": 200, "cluster": "cluster"},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_row_order_index_and_id_type_do_not_matter(log, options):
    before = log.copy(deep=True)
    want = rd.compare_variants(log, "ndcg", control="A", **options)
    shuffled = log.sample(frac=1, random_state=3)
    pd.testing.assert_frame_equal(rd.compare_variants(shuffled, "ndcg", control="A", **options), want)
    as_text = shuffled.assign(user_id=shuffled["user_id"].astype(str), segment=shuffled["segment"].astype("category"))
    found = rd.compare_variants(as_text, "ndcg", control="A", **options)
    pd.testing.assert_frame_equal(found, want)
    pd.testing.assert_frame_equal(log, before)


def test_bootstrap_without_ids_does_not_depend_on_row_order(log):
    bare = log.drop(columns="user_id")
    options = {"control": "A", "method": "bootstrap", "n_resamples": 100}
    want = rd.compare_variants(bare, ["ndcg", "hits"], **options)
    pd.testing.assert_frame_equal(
        rd.compare_variants(bare.sample(frac=1, random_state=1), ["ndcg", "hits"], **options), want
    )


def test_inputs_stay_as_they_are_and_tables_go_to_parquet(log, tmp_path):
    log.attrs["recdf"] = {"metrics": {"ndcg": {"name": "ndcg", "k": 10}}, "user_col": ["user_id"], "by": []}
    metrics, groups = log[["user_id", "n_recs", "hits", "ndcg"]], log[["user_id", "variant", "segment", "pre_ndcg"]]
    copies = metrics.copy(deep=True), groups.copy(deep=True)
    joined = rd.join_experiment(metrics, groups)
    tables = [
        joined,
        rd.experiment_health(metrics, groups),
        rd.compare_variants(joined, ["ndcg", "hits"], control="A", covariates={"ndcg": "pre_ndcg"}, by="segment"),
        rd.plan_experiment(joined, "ndcg", n=500),
        rd.bootstrap_ci(joined, "ndcg", by="variant"),
        rd.roll_up(metrics),
    ]
    pd.testing.assert_frame_equal(metrics, copies[0])
    pd.testing.assert_frame_equal(groups, copies[1])
    for i, table in enumerate(tables):
        assert isinstance(table.index, pd.RangeIndex)
        assert all(isinstance(name, str) for name in table.columns)
        table.to_parquet(tmp_path / f"{i}.parquet")
        back = pd.read_parquet(tmp_path / f"{i}.parquet")
        pd.testing.assert_frame_equal(back, table)
        json.dumps(table.attrs)
    log.attrs.clear()


def test_chain_from_lists_to_a_decision(tmp_path):
    shop = rd.sample_shop()
    bought = shop.true.merge(shop.assignment)
    result = rd.evaluate(bought, shop.shown, ["ndcg@10", "hits@10", "first_rank@10"], by="variant", users="pred")
    per_user = result.per_user.rename(columns={"variant": "shown_variant"})
    assigned = shop.assignment.merge(shop.users[["user_id", "segment"]])
    joined = rd.join_experiment(per_user, assigned, missing="zero")
    assert len(joined) == len(shop.assignment)
    table = rd.compare_variants(
        joined,
        {"ndcg": "ndcg@10", "ctr": ("hits@10", "n_pred")},
        control="A",
        by="segment",
        covariates={"ndcg": "pre_spend"},
        nan="drop",
    )
    table.to_parquet(tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), table)
    assert len(table) == 2 * joined["segment"].nunique()
    models = rd.evaluate(shop.true, shop.pred, ["ndcg@10", "recall@10"], k=10, by="model")
    compared = rd.compare_models(models.per_user, users="inner")
    assert compared["metric"].unique().tolist() == ["ndcg@10", "recall@10"]
    # Against pandas, pair by pair.
    wide = models.per_user.pivot(index="user_id", columns="model", values="ndcg@10")
    for found in compared[compared.metric == "ndcg@10"].itertuples():
        want = stats.ttest_rel(wide[found.model], wide[found.baseline])
        assert found.p_value == pytest.approx(want.pvalue)


# ------------------------------------------------------------------------------------------- adjust, roll up, report


def test_adjust_pvalues_errors():
    table = pd.DataFrame({"p_value": [0.5, 1.5]})
    with pytest.raises(OptionError, match=r"outside \[0, 1\] in 1 rows"):
        rd.adjust_pvalues(table)
    with pytest.raises(ColumnError):
        rd.adjust_pvalues(table, p_col="p")
    with pytest.raises(OptionError, match="'holm'"):
        rd.adjust_pvalues(table, method="holms")
    empty = rd.adjust_pvalues(table.iloc[:0])
    assert empty["reject"].dtype == bool


SESSIONS = pd.DataFrame(
    {"user_id": [2, 1, 2, 1, 2], "session_id": ["a", "b", "c", "d", "e"], "day": [1, 1, 1, 2, 2],
     "n_pred": [10, 5, 12, 5, 8], "hits@10": [1.0, 0.0, 3.0, 2.0, 2.0], "ndcg@10": [0.5, np.nan, 0.25, 0.5, 0.0]}
)  # fmt: skip


def test_roll_up_by_hand():
    mean = rd.roll_up(SESSIONS.drop(columns="day"), how="mean")
    assert mean.columns.tolist() == [
        "user_id",
        "n_rows",
        "n_pred",
        "n_pred__n",
        "hits@10",
        "hits@10__n",
        "ndcg@10",
        "ndcg@10__n",
    ]
    assert mean["user_id"].tolist() == [2, 1]
    assert mean["n_rows"].tolist() == [3, 2]
    assert mean["ndcg@10"].tolist() == [0.25, 0.5]
    assert mean["ndcg@10__n"].tolist() == [3, 1]
    assert mean["n_pred"].tolist() == [10.0, 5.0]
    total = rd.roll_up(SESSIONS.drop(columns="day"), how="sum")
    assert total["n_pred"].tolist() == [30, 10]
    assert total["n_pred"].dtype == "int64"
    assert total["hits@10"].tolist() == [6.0, 2.0]
    ranges = rd.roll_up(SESSIONS, how={"ndcg@10": "max", "n_pred": "min"})
    assert ranges["ndcg@10"].tolist() == [0.5, 0.5]
    assert ranges["n_pred"].tolist() == [8, 5]


@pytest.mark.parametrize("how", ["mean", "sum"])
def test_two_steps_are_one(how):
    at_once = rd.roll_up(SESSIONS.drop(columns="day"), how=how)
    daily = rd.roll_up(SESSIONS, unit=["user_id", "day"], how=how)
    in_steps = rd.roll_up(daily, how=dict.fromkeys(("n_pred", "hits@10", "ndcg@10"), how))
    assert (SESSIONS.groupby("user_id")["n_pred"].nunique() > 1).any()
    pd.testing.assert_frame_equal(in_steps[at_once.columns], at_once)


def test_ratio_after_roll_up_is_the_ratio_of_sums():
    with pytest.raises(DataError, match=r"whole numbers in \['day'\], which may be ids or counts; name in over="):
        rd.roll_up(SESSIONS, how="sum")
    rolled = rd.roll_up(SESSIONS, how="sum", over="day")
    table = rd.bootstrap_ci(rolled, {"ctr": ("hits@10", "n_pred"), "ndcg": ("ndcg@10", "ndcg@10__n")})
    assert table["value"].tolist() == [8 / 40, pytest.approx(1.25 / 4)]
    # the same as resampling users of the rows as they are
    rows = rd.bootstrap_ci(SESSIONS, {"ctr": ("hits@10", "n_pred"), "ndcg": "ndcg@10"})
    np.testing.assert_allclose(rows[["value", "se"]], table[["value", "se"]])


def test_roll_up_does_not_mix_models():
    frame = pd.concat([SESSIONS.assign(model="a"), SESSIONS.assign(model="b")])
    frame.attrs["recdf"] = {"user_col": ["user_id", "session_id"], "by": ["model"]}
    with pytest.raises(DataError, match=r"\['model', 'user_id'\]"):
        rd.roll_up(frame)
    rolled = rd.roll_up(frame, unit=["model", "user_id"], how="sum")
    assert rolled["n_rows"].tolist() == [3, 2, 3, 2]
    with pytest.raises(OptionError, match="rolled up by how='sum'"):
        rd.roll_up(rolled, unit=["model", "user_id"], how="mean")
    with pytest.raises(OptionError, match="how="):
        rd.roll_up(SESSIONS, how="median")


def test_report_table_formats(log):
    table = rd.compare_variants(
        log.assign(variant="v_" + log["variant"]), {"a|b": "ndcg"}, control="v_A", covariates="pre_ndcg", by="segment"
    )
    report = rd.report_table(table, digits=3)
    assert report.frame.columns.tolist() == [
        "segment", "metric", "comparison", "effect (95% CI)", "relative (95% CI)", "p", "means", "n", "MDE",
        "var. reduction", "verdict",
    ]  # fmt: skip
    first, shown = table.iloc[0], report.frame.iloc[0]
    assert shown[
        "effect (95% CI)"
    ] == f"{first['diff']:+.3f} [{first['ci_low']:+.3f}, {first['ci_high']:+.3f}]".replace("-", "−")
    assert shown["comparison"] == "v_B vs. v_A"
    markdown = report.to_markdown().splitlines()
    assert len({len(line) for line in markdown}) == 1
    assert len(markdown) == 2 + len(table)
    assert r"a\|b" in markdown[2]
    assert r"v\_B vs. v\_A" in report.to_latex()
    assert ">a|b</td>" in report._repr_html_()
    assert str(report) == report.to_markdown()
    with pytest.raises(ColumnError, match="expected what compare_variants"):
        rd.report_table(log)


def test_report_table_shows_nulls_and_warnings():
    data = pd.DataFrame({"user_id": range(40), "variant": ["A", "B"] * 20, "m": 1.0})
    cells = rd.report_table(rd.compare_variants(data, "m", control="A")).frame.iloc[0]
    assert (cells["p"], cells["MDE"], cells["notes"]) == ("–", "–", "zero variance")
    assert cells["verdict"] == "no difference shown" + NOT_CHECKED
    assert cells["effect (95% CI)"] == "+0.0000"


def test_weights_and_carried_columns_are_null_for_users_without_lists():
    true = pd.DataFrame({"user_id": ["a", "b"], "item_id": "x", "w": [2.0, 3.0]})
    pred = pd.DataFrame({"user_id": ["a", "b"], "item_id": "x", "age": [30, 40]})
    groups = pd.DataFrame({"user_id": ["a", "b", "c"], "variant": ["A", "B", "B"]})
    result = rd.evaluate(true, pred, "hits@1", weight_col="w", carry="age")
    found = result.join_experiment(groups, missing="zero")
    assert found["hits@1"].tolist() == [1.0, 1.0, 0.0]
    assert found[["w", "age"]].iloc[2].isna().all()
    assert found[["w", "age"]].iloc[:2].to_numpy().tolist() == [[2.0, 30.0], [3.0, 40.0]]

"""compare_variants: recorded numbers of other programs, options, and bad comparisons."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from experiments.variants import GOLDEN, NOT_CHECKED, TT, close, lin, row
from scipy import stats

import recdf as rd
from recdf.errors import ColumnError, DataError, NullKeyError, OptionError

# -- golden numbers


@pytest.mark.few(4)
@pytest.mark.parametrize("treatment", ["B", "C"])
@pytest.mark.parametrize("case", ["mean", "ratio", "mean_cuped", "ratio_cuped", "mean_greater"])
def test_tea_tasting(log, case, treatment):
    ratio = case.startswith("ratio")
    metric = {"m": ("hits", "n_recs") if ratio else "ndcg"}
    covariate = (
        {"m": ("pre_hits", "pre_n_recs") if ratio else "pre_ndcg"} if "cuped" in case else None
    )
    alternative = "greater" if case.endswith("greater") else "two-sided"
    table = rd.compare_variants(
        log,
        metric,
        control="A",
        covariates=covariate,
        alternative=alternative,
        relative="log",
        correction="none",
        details=True,
    )
    found = row(table, treatment=treatment)
    names = TT
    if covariate:  # the means as they are stand beside the adjusted ones
        names = {
            f"{name}_adjusted" if name.startswith("mean_") else name: other
            for name, other in TT.items()
        }
        assert table["mean_control"].nunique() == 1
    close(found, GOLDEN["tea_tasting"][f"A->{treatment}"][case], names)
    assert found["method"] == ("welch+cuped" if covariate else "welch")
    assert found["n_control"] == (log.variant == "A").sum()


def test_scipy_welch(log):
    found = row(
        rd.compare_variants(log, "ndcg", control="A", correction="none", details=True),
        treatment="B",
    )
    recorded = GOLDEN["scipy_welch_A_B"]
    close(
        found,
        recorded,
        {
            "statistic": "statistic",
            "p_value": "pvalue",
            "df": "df",
            "ci_low": "ci_low",
            "ci_high": "ci_high",
        },
    )


def test_poststratification_is_ols_with_hc2(log):
    two = log[log.variant != "C"]
    found = row(
        rd.compare_variants(two, "ndcg", control="A", strata="segment", details=True), treatment="B"
    )
    recorded = GOLDEN["poststrat_A_B_ols_hc2"]
    close(found, recorded, {"diff": "effect", "se": "se"})
    assert found["method"] == "welch+strata"
    # Interacted regression with centred strata: its treatment coefficient is the post-stratified
    # effect.
    strata = pd.get_dummies(two["segment"], drop_first=True, dtype=float)
    diff, se = lin(two["ndcg"], two["variant"] == "B", strata)
    assert found["diff"] == pytest.approx(diff, abs=1e-9)
    assert found["se"] == pytest.approx(se, abs=1e-9)


def test_cluster_is_the_ratio_of_cluster_sums(log):
    two = log[log.variant != "C"]
    found = row(
        rd.compare_variants(
            two, "ndcg", control="A", cluster="cluster", relative="log", details=True
        ),
        treatment="B",
    )
    close(found, GOLDEN["cluster_mean_A_B_tea_tasting_ratio_on_cluster_x_variant_sums"])
    assert (found["n_control"], found["n_treatment"]) == (60, 59)
    assert found["remarks"] == "shared_clusters; ratio_not_checked"


def test_gbstats_sequential(log):
    table = rd.compare_variants(
        log, "ndcg", control="A", sequential_n=400, correction="none", details=True
    )
    found = row(table, treatment="B")
    recorded = GOLDEN["gbstats_sequential_A_B_N400"]
    close(
        found,
        recorded,
        {"diff": "effect", "ci_low": "ci_low", "ci_high": "ci_high", "p_value": "p"},
    )
    assert found["method"] == "sequential"


def test_plan_has_the_power_it_says(log):
    control = log[log.variant == "A"]
    plan = rd.experiments.plan_experiment(control, "ndcg", rel_effect=0.05).iloc[0]
    recorded = GOLDEN["power"]
    assert plan["std"] == pytest.approx(recorded["sd"], abs=1e-9)
    assert plan["mde_abs"] == pytest.approx(recorded["delta_5pct"], abs=1e-9)
    # statsmodels also counts the chance of rejecting on the wrong side, which is 1e-6 here.
    assert plan["n_control"] == plan["n_treatment"] == math.ceil(recorded["n_control_ratio1"])
    power = pytest.importorskip("statsmodels.stats.power").NormalIndPower()
    for share in (0.5, 0.2):
        n = rd.experiments.plan_experiment(
            control, "ndcg", rel_effect=0.1, control_share=share, power=0.9
        ).iloc[0]
        found = power.power(
            n["mde_abs"] / n["std"], n["n_control"], 0.05, ratio=n["n_treatment"] / n["n_control"]
        )
        assert found == pytest.approx(0.9, abs=2e-3)
        back = rd.experiments.plan_experiment(
            control, "ndcg", n=n["n_control"] + n["n_treatment"], control_share=share, power=0.9
        )
        assert back["mde_rel"].iloc[0] == pytest.approx(0.1, rel=1e-3)


def test_mde_of_a_comparison_is_the_plans(log):
    table = rd.compare_variants(log, "ndcg", control="A", details=True)
    for found in table.itertuples():
        # The noncentral t whose mean is the mde exceeds the test's quantile in 80 % of the cases.
        quantile = stats.t.ppf(0.975, found.df)
        assert stats.nct.sf(quantile, found.df, found.mde / found.se) == pytest.approx(
            0.8, abs=1e-6
        )


def test_plan_with_covariate_needs_fewer_users(log):
    plain = rd.experiments.plan_experiment(log, "ndcg", rel_effect=0.05).iloc[0]
    cuped = rd.experiments.plan_experiment(
        log, "ndcg", rel_effect=0.05, covariates="pre_ndcg"
    ).iloc[0]
    r = np.corrcoef(log["ndcg"], log["pre_ndcg"])[0, 1]
    assert cuped["variance_reduction"] == pytest.approx(r**2)
    assert np.isnan(plain["variance_reduction"])
    # The t quantile costs about one user per arm, whatever the variance.
    assert cuped["n_control"] == pytest.approx(plain["n_control"] * (1 - r**2), abs=2)


def test_bootstrap_agrees_with_welch(log):
    exact = rd.compare_variants(
        log,
        {"ndcg": "ndcg", "ctr": ("hits", "n_recs")},
        control="A",
        covariates={"ndcg": "pre_ndcg"},
        details=True,
    )
    boot = rd.compare_variants(
        log,
        {"ndcg": "ndcg", "ctr": ("hits", "n_recs")},
        control="A",
        covariates={"ndcg": "pre_ndcg"},
        test="bootstrap",
        n_resamples=4000,
        details=True,
    )
    for name in (
        "mean_control",
        "mean_treatment",
        "diff",
        "rel_diff",
        "theta",
        "variance_reduction",
    ):
        np.testing.assert_allclose(boot[name], exact[name])
    np.testing.assert_allclose(boot["se"], exact["se"], rtol=0.06)
    for name in ("ci_low", "ci_high"):
        np.testing.assert_allclose(boot[name], exact[name], atol=0.15 * exact["se"].max())
    for name in ("rel_ci_low", "rel_ci_high"):
        np.testing.assert_allclose(boot[name], exact[name], atol=0.04)
    np.testing.assert_allclose(boot["p_value"], exact["p_value"], atol=0.03)
    assert boot["df"].isna().all()


# -------------------------------------------------------------------------------------------
# comparison


@pytest.mark.long
def test_segments_are_their_own_experiments(log):
    table = rd.compare_variants(
        log, ["ndcg", "hits"], control="A", by="segment", correction="none", details=True
    )
    assert table.columns[0] == "segment"
    for segment in log["segment"].unique():
        alone = rd.compare_variants(
            log[log.segment == segment],
            ["ndcg", "hits"],
            control="A",
            correction="none",
            details=True,
        )
        part = table[table.segment == segment].drop(columns="segment").reset_index(drop=True)
        pd.testing.assert_frame_equal(part, alone)


def test_segment_without_an_arm_is_a_row_without_test():
    data = pd.DataFrame(
        {
            "user_id": range(6),
            "variant": list("AABBAA"),
            "s": list("xxxxyy"),
            "m": [1.0, 2, 3, 5, 4, 5],
        }
    )
    table = rd.compare_variants(data, "m", control="A", by="s", details=True)
    assert table["remarks"].tolist() == [
        "tiny; ratio_not_checked",
        "too_few_users; ratio_not_checked",
    ]
    assert table["verdict"].tolist() == ["check: tiny arms"] * 2
    assert table["n_treatment"].tolist() == [2, 0]
    assert table["mean_control"].tolist() == [1.5, 4.5]
    assert np.isnan(table["p_value"].iloc[1])


def test_families_and_primary_metrics(log):
    specs = {"ndcg": "ndcg", "ctr": ("hits", "n_recs"), "hits": "hits"}
    table = rd.compare_variants(log, specs, control="A", details=True)
    np.testing.assert_allclose(table["p_adj"], rd.experiments.adjust_pvalues(table)["p_adj"])
    per_metric = rd.compare_variants(log, specs, control="A", family="metric", details=True)
    for _, part in per_metric.groupby("metric"):
        np.testing.assert_allclose(
            np.sort(part["p_adj"]), np.sort(rd.experiments.adjust_pvalues(part)["p_adj"])
        )
    primary = rd.compare_variants(log, specs, control="A", primary="ctr", details=True)
    ctr = primary["metric"] == "ctr"
    assert primary.loc[ctr, "p_adj"].min() == pytest.approx(2 * primary.loc[ctr, "p_value"].min())
    assert (
        primary.loc[~ctr, "p_adj"]
        == rd.experiments.adjust_pvalues(table[table.metric != "ctr"])["p_adj"]
    ).all()


def test_verdicts(log):
    rng = np.random.default_rng(2)
    n = 900
    base = pd.DataFrame({"user_id": range(n), "variant": np.repeat(["A", "B"], n // 2)})
    up = (base["variant"] == "B").to_numpy() * 1.0
    noise = rng.normal(size=n)
    data = base.assign(good=up + noise, bad=-up + noise, same=rng.normal(size=n))
    data["first_rank@5"] = data["bad"]
    table = rd.compare_variants(
        data, ["good", "bad", "same", "first_rank@5"], control="A", details=True
    )
    assert table["effect"].tolist() == ["better", "worse", "none", "better"]
    assert table["verdict"].str.endswith(NOT_CHECKED).all()
    renamed = rd.compare_variants(data, {"rank": "first_rank@5"}, control="A", details=True)
    assert renamed["effect"].tolist() == ["better"]
    chosen = rd.compare_variants(
        data, ["good", "first_rank@5"], control="A", smaller_is_better="good", details=True
    )
    assert chosen["effect"].tolist() == ["worse", "worse"]
    both = rd.compare_variants(
        data,
        ["good", "bad"],
        control="A",
        smaller_is_better="good",
        larger_is_better="bad",
        correction="none",
        details=True,
    )
    assert both["effect"].tolist() == ["worse", "worse"]
    invalid = rd.compare_variants(
        data, ["good", "same"], control="A", expected={"A": 1, "B": 2}, details=True
    )
    assert invalid["verdict"].tolist() == ["invalid: sample ratio"] * 2
    assert invalid["withheld"].tolist() == ["sample_ratio"] * 2
    fair = rd.compare_variants(data, "good", control="A", expected={"A": 50, "B": 50}, details=True)
    assert fair["effect"].tolist() == ["better"]
    # Per segment: the plan fails in one of them and over all.
    data["s"] = np.where(np.arange(n) % 450 < 225, "x", "y")
    skewed = data[(data.s == "x") | (data.variant == "A") | (data.user_id % 3 == 0)]
    table = rd.compare_variants(
        skewed, "good", control="A", by="s", expected={"A": 1, "B": 1}, details=True
    )
    assert table["verdict"].tolist() == ["invalid: sample ratio"] * 2


def test_covariate_options(log):
    table = rd.compare_variants(
        log, ["ndcg", "hits"], control="A", covariates={"ndcg": "pre_ndcg"}, details=True
    )
    assert table["theta"].notna().tolist() == [True, True, False, False]
    assert table["variance_reduction"].iloc[0] > 0.5
    gaps = log.assign(pre_ndcg=log["pre_ndcg"].where(log.user_id % 10 != 0))
    found = row(
        rd.compare_variants(gaps, "ndcg", control="A", covariates="pre_ndcg", details=True),
        treatment="B",
    )
    two = gaps[gaps.variant != "C"]
    assert found["n_covariate_missing"] == two["pre_ndcg"].isna().sum()
    # The missing values take the mean, and an indicator of them is a covariate too.
    filled = pd.DataFrame(
        {"x": two["pre_ndcg"].fillna(two["pre_ndcg"].mean()), "gap": two["pre_ndcg"].isna() * 1.0}
    )
    diff, se = lin(two["ndcg"], two["variant"] == "B", filled)
    assert (found["diff"], found["se"]) == (
        pytest.approx(diff, abs=1e-9),
        pytest.approx(se, abs=1e-9),
    )
    assert found["method"] == "welch+regression"


@pytest.mark.long
def test_segment_of_new_users_has_no_covariate(log):
    new = log.assign(pre_n_recs=log["pre_n_recs"].where(log.segment != "new", 0), pre_hits=0)
    specs = {"ctr": ("hits", "n_recs")}
    for test in ("t", "bootstrap"):
        options = {"control": "A", "by": "segment", "test": test, "n_resamples": 100}
        table = rd.compare_variants(
            new, specs, covariates={"ctr": ("pre_hits", "pre_n_recs")}, **options, details=True
        )
        plain = rd.compare_variants(new, specs, **options, details=True)
        in_new = table["segment"] == "new"
        assert (table.loc[in_new, "remarks"] == "no_covariate; ratio_not_checked").all()
        used = "covariate_not_timed; ratio_not_checked"
        assert table.loc[~in_new, "remarks"].str.endswith(used).all()
        np.testing.assert_allclose(table.loc[in_new, "p_value"], plain.loc[in_new, "p_value"])
    nothing = rd.compare_variants(log.assign(n_recs=0), specs, control="A", details=True)
    assert nothing["remarks"].tolist() == ["zero_denominator; ratio_not_checked"] * 2
    assert nothing[["mean_control", "diff", "p_value"]].isna().all(axis=None)


def test_sample_ratio_counts_what_was_randomised():
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {"user_id": np.arange(3000), "region": np.arange(3000) // 10, "m": rng.random(3000)}
    )
    # Whole regions: 100 against 200, although the users of A were thinned to be as many as those of
    # B.
    by_region = data.assign(variant=np.where(data["region"] < 200, "A", "B"))
    by_region = by_region[(by_region["variant"] == "B") | (by_region["user_id"] % 2 == 0)]
    options = {"control": "A", "cluster": "region", "expected": {"A": 1, "B": 1}}
    assert by_region["variant"].value_counts().tolist() == [1000, 1000]
    assert rd.compare_variants(by_region, "m", **options, details=True)["verdict"].tolist() == [
        "invalid: sample ratio"
    ]
    # Users within regions: each region is in both variants, so regions say nothing.
    by_user = data.assign(variant=np.where(data["user_id"] % 10 < 3, "A", "B"))
    found = rd.compare_variants(by_user, "m", **options, details=True).iloc[0]
    assert (found["verdict"], found["n_control"], found["n_treatment"]) == (
        "invalid: sample ratio",
        300,
        300,
    )


@pytest.mark.long
def test_cuped_with_strata_and_with_clusters(log):
    two = log[log.variant != "C"]
    strata = rd.compare_variants(
        two, "ndcg", control="A", covariates="pre_ndcg", strata="segment", details=True
    ).iloc[0]
    dummies = pd.get_dummies(two["segment"], drop_first=True, dtype=float).assign(x=two["pre_ndcg"])
    diff, se = lin(two["ndcg"], two["variant"] == "B", dummies)
    assert (strata["diff"], strata["se"]) == (
        pytest.approx(diff, abs=1e-9),
        pytest.approx(se, abs=1e-9),
    )
    assert strata["mean_control"] == pytest.approx(two.loc[two.variant == "A", "ndcg"].mean())
    clustered = rd.compare_variants(
        two, "ndcg", control="A", covariates="pre_ndcg", cluster="cluster", details=True
    ).iloc[0]
    sums = rd.experiments.roll_up(
        two, unit_col=["variant", "cluster"], how={"ndcg": "sum", "pre_ndcg": "sum"}
    )
    want = rd.compare_variants(
        sums,
        {"ndcg": ("ndcg", "ndcg__n")},
        control="A",
        covariates={"ndcg": ("pre_ndcg", "pre_ndcg__n")},
        details=True,
    ).iloc[0]
    for name in ("diff", "se", "df", "theta", "variance_reduction"):
        assert clustered[name] == pytest.approx(want[name])


@pytest.mark.parametrize(
    "labels", [[0, 1], [False, True], pd.Categorical(["b", "a"], categories=["b", "a"])]
)
def test_variant_labels_of_any_kind(labels):
    data = pd.DataFrame({"user_id": range(8), "m": [1.0, 2, 1, 2, 3, 4, 3, 4]})
    data["variant"] = pd.Series(labels).repeat(4).reset_index(drop=True)
    control = data["variant"].iloc[0]
    table = rd.compare_variants(data, "m", control=control, details=True)
    assert table["diff"].tolist() == [2.0]
    assert table["control"].tolist() == [control]


BAD_COMPARISONS = [
    ("one variant", lambda d: (d.assign(variant="A"), "m", {}), OptionError, "at least two"),
    (
        "user in two",
        lambda d: (d.assign(user_id=[*range(6), 0, 1]), "m", {}),
        DataError,
        r"2 users.*\(0, 1\)",
    ),
    (
        "text metric",
        lambda d: (d.assign(m=list("abcdefgh")), "m", {}),
        DataError,
        "expected numbers",
    ),
    (
        "infinite",
        lambda d: (d.assign(m=[np.inf, *[1.0] * 7]), "m", {}),
        DataError,
        "infinite in 1 of 8",
    ),
    ("no metric column", lambda d: (d, "ndgc", {}), ColumnError, "ndgc"),
    ("no metrics", lambda d: (d, [], {}), OptionError, "empty"),
    (
        "three columns",
        lambda d: (d, {"x": ("m", "m", "m")}, {}),
        OptionError,
        "numerator, denominator",
    ),
    (
        "small stratum",
        lambda d: (d.assign(s=list("xxxyxxxx")), "m", {"strata": "s"}),
        DataError,
        "1 of 2 strata.*'y'",
    ),
    (
        "negative denominator",
        lambda d: (d.assign(n=-1), {"r": ("m", "n")}, {}),
        DataError,
        "negative in 8 rows",
    ),
    (
        "covariate of no metric",
        lambda d: (d, "m", {"covariates": {"x": "m"}}),
        OptionError,
        r"\['x'\]",
    ),
    (
        "null segment",
        lambda d: (d.assign(s=[None, *"xxxxxxx"]), "m", {"by": "s"}),
        NullKeyError,
        "1 of 8",
    ),
    (
        "two variants within the cluster",
        lambda d: (d.assign(user_id=[*range(6), 0, 1]), "m", {"cluster": "user_id"}),
        DataError,
        "2 users",
    ),
    ("by of the result", lambda d: (d.assign(se=1), "m", {"by": "se"}), OptionError, "rename it"),
    ("None", lambda d: (d, None, {}), OptionError, "metrics=None"),
    ("confidence", lambda d: (d, "m", {"confidence": 95}), OptionError, "between 0 and 1"),
    ("test", lambda d: (d, "m", {"test": "boot"}), OptionError, "'bootstrap'"),
    (
        "sequential",
        lambda d: (d, "m", {"sequential_n": 9, "test": "permutation"}),
        OptionError,
        "takes no sequential_n=.*Use test='t'",
    ),
    ("primary", lambda d: (d, "m", {"primary": "x"}), OptionError, "primary"),
    ("expected", lambda d: (d, "m", {"expected": {"A": 1}}), OptionError, "variant 'B'"),
    ("smaller", lambda d: (d, "m", {"smaller_is_better": "x"}), OptionError, "smaller_is_better"),
]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [case[1:] for case in BAD_COMPARISONS],
    ids=[case[0] for case in BAD_COMPARISONS],
)
def test_bad_comparisons(make, error, words):
    data = pd.DataFrame(
        {"user_id": range(8), "variant": list("AAAABBBB"), "m": [1.0, 2, 3, 4, 3, 4, 5, 6]}
    )
    data, metrics, options = make(data)
    with pytest.raises(error, match=words):
        rd.compare_variants(data, metrics, control="A", **options, details=True)


@pytest.mark.few(3)
@pytest.mark.parametrize("relative", ["fieller", "log"])
@pytest.mark.parametrize("scale", [2.0**-300, 2.0**300, 2.0**450])
def test_the_unit_of_a_metric_changes_nothing(scale, relative):
    rng = np.random.default_rng(4)
    users = pd.DataFrame({"variant": ["A", "B"] * 50, "m": 0.5 + rng.random(100)})
    one, other = (
        rd.compare_variants(
            users.assign(m=users["m"] * by), "m", control="A", relative=relative, details=True
        )
        for by in (1.0, scale)
    )
    unitless = ["rel_diff", "rel_ci_low", "rel_ci_high", "statistic", "df", "p_value", "verdict"]
    pd.testing.assert_frame_equal(one[unitless], other[unitless], rtol=1e-12)


@pytest.mark.parametrize("kind", ["int64", "Int64", "bool", object, "Decimal"])
def test_a_metric_may_have_any_dtype_of_numbers(kind):
    """Databases return amounts as Decimals."""
    users = pd.DataFrame({"user_id": range(80), "variant": [*"AB"] * 40, "m": [0, 1, 1, 1] * 20})
    of = users["m"].map(Decimal) if kind == "Decimal" else users["m"].astype(kind)
    expected = rd.compare_variants(users.assign(m=users["m"] * 1.0), "m", control="A")
    found = rd.compare_variants(users.assign(m=of), "m", control="A")
    pd.testing.assert_frame_equal(found, expected)

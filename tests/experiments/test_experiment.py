"""An experiment as a whole: traps of real tables, properties of any table, adjusted p-values,
roll-ups and reports."""

import json

import numpy as np
import pandas as pd
import pytest
from experiments.variants import NOT_CHECKED
from scipy import stats

import recdf as rd
from recdf.errors import ColumnError, DataError, DuplicateError, OptionError

# -- traps


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
    with pytest.warns(rd.RecdfWarning, match="so that the users who stay are not alike"):
        joined = rd.join_experiment(per_user, groups, missing="drop")
    inner = rd.compare_variants(joined, "ndcg@10", control="C", details=True)
    whole = rd.compare_variants(
        rd.join_experiment(per_user, groups, missing="zero"), "ndcg@10", control="C", details=True
    )
    assert inner["effect"].tolist() == ["worse"]
    assert whole["effect"].tolist() == ["better"]
    # By hand: 0.3·0.51 + 0.7·0.8·0.16 − (0.3·0.5 + 0.7·0.3·0.15)
    assert whole["diff"].iloc[0] == pytest.approx(0.0611, abs=0.01)
    health = rd.experiments.experiment_health(per_user, groups)
    assert (health["missing_flag"] == "missing_metrics").all()


def test_nan_does_not_count():
    data = pd.DataFrame(
        {
            "user_id": range(8),
            "variant": list("AAAABBBB"),
            "m": [1, 2, 3, np.nan, 2, 4, np.nan, np.nan],
        }
    )
    with pytest.raises(DataError, match=r"'m' is null in 3 of 8 rows.*\[3, 6, 7\]"):
        rd.compare_variants(data, "m", control="A", details=True)
    found = rd.compare_variants(data, "m", control="A", nan="drop", details=True).iloc[0]
    assert (found["n_control"], found["n_treatment"], found["n_dropped"]) == (3, 2, 3)
    want = stats.ttest_ind([2, 4], [1, 2, 3], equal_var=False)
    assert found["p_value"] == pytest.approx(want.pvalue, rel=1e-9)
    boot = rd.compare_variants(
        data, "m", control="A", nan="drop", test="bootstrap", details=True
    ).iloc[0]
    assert boot["diff"] == pytest.approx(1.0)
    assert boot["n_dropped"] == 3


@pytest.mark.parametrize("test", ["t", "bootstrap"])
def test_constant_metric_has_no_statistics(test):
    data = pd.DataFrame({"user_id": range(60), "variant": ["A", "B"] * 30, "m": 0.1})
    found = rd.compare_variants(data, "m", control="A", test=test, details=True).iloc[0]
    assert (
        found[["se", "ci_low", "ci_high", "statistic", "df", "p_value", "p_adj", "mde"]]
        .isna()
        .all()
    )
    assert (found["remarks"], found["reject"]) == ("zero_variance; ratio_not_checked", False)
    assert found["verdict"] == "no difference shown" + NOT_CHECKED


def test_metric_that_is_its_covariate_has_no_variance_left():
    data = pd.DataFrame({"user_id": range(60), "variant": ["A", "B"] * 30, "m": np.arange(60) / 7})
    found = rd.compare_variants(data, "m", control="A", covariates="m", details=True).iloc[0]
    assert found["remarks"] == "zero_variance; ratio_not_checked"
    assert found["theta"] == pytest.approx(1)


def test_rows_below_the_user_need_cluster_or_roll_up():
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(50), 4)
    sessions = pd.DataFrame(
        {"user_id": users, "m": rng.normal(size=50)[users] + rng.normal(size=200)}
    )
    sessions["variant"] = np.where(users % 2, "A", "B")
    with pytest.raises(
        DuplicateError, match=r"150 rows too many.*cluster='user_id'.*rd\.experiments\.roll_up"
    ):
        rd.compare_variants(sessions, "m", control="A", details=True)
    clustered = rd.compare_variants(
        sessions, "m", control="A", cluster="user_id", details=True
    ).iloc[0]
    rolled = rd.experiments.roll_up(sessions, unit_col=["user_id", "variant"], how="sum")
    by_sums = rd.compare_variants(rolled, {"m": ("m", "m__n")}, control="A", details=True).iloc[0]
    for name in ("diff", "se", "df", "p_value", "n_control", "n_treatment"):
        assert clustered[name] == pytest.approx(by_sums[name])
    assert clustered["remarks"] == "ratio_not_checked"


def test_control_is_never_guessed():
    data = pd.DataFrame(
        {"user_id": range(4), "variant": ["control", "control", "new", "new"], "m": [1.0, 2, 3, 4]}
    )
    with pytest.raises(TypeError):
        rd.compare_variants(data, "m", details=True)
    with pytest.raises(
        OptionError, match=r"control='A' is not in data\['variant'\].*\['control', 'new'\]"
    ):
        rd.compare_variants(data, "m", control="A", details=True)


# -------------------------------------------------------------------------------------------
# whole-table properties


OPTIONS = [
    {},
    {"covariates": "pre_ndcg"},
    {"strata": "segment"},
    {"cluster": "cluster"},
    {"by": "segment"},
    {"sequential_n": 500},
    {"test": "bootstrap", "n_resamples": 200},
    {"test": "bootstrap", "n_resamples": 200, "cluster": "cluster"},
]


@pytest.mark.few(1)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_row_order_index_and_id_type_do_not_matter(log, options):
    before = log.copy(deep=True)
    want = rd.compare_variants(log, "ndcg", control="A", **options, details=True)
    shuffled = log.sample(frac=1, random_state=3)
    pd.testing.assert_frame_equal(
        rd.compare_variants(shuffled, "ndcg", control="A", **options, details=True), want
    )
    as_text = shuffled.assign(
        user_id=shuffled["user_id"].astype(str), segment=shuffled["segment"].astype("category")
    )
    found = rd.compare_variants(as_text, "ndcg", control="A", **options, details=True)
    pd.testing.assert_frame_equal(found, want)
    pd.testing.assert_frame_equal(log, before)


def test_bootstrap_without_ids_does_not_depend_on_row_order(log):
    bare = log.drop(columns="user_id")
    options = {"control": "A", "test": "bootstrap", "n_resamples": 100}
    want = rd.compare_variants(bare, ["ndcg", "hits"], **options, details=True)
    pd.testing.assert_frame_equal(
        rd.compare_variants(
            bare.sample(frac=1, random_state=1), ["ndcg", "hits"], **options, details=True
        ),
        want,
    )


@pytest.mark.long
def test_inputs_stay_as_they_are_and_tables_go_to_parquet(log, tmp_path):
    log.attrs["recdf"] = {
        "metrics": {"ndcg": {"name": "ndcg", "k": 10}},
        "user_col": ["user_id"],
        "by": [],
    }
    metrics, groups = (
        log[["user_id", "n_recs", "hits", "ndcg"]],
        log[["user_id", "variant", "segment", "pre_ndcg"]],
    )
    copies = metrics.copy(deep=True), groups.copy(deep=True)
    joined = rd.join_experiment(metrics, groups)
    tables = [
        joined,
        rd.experiments.experiment_health(metrics, groups),
        rd.compare_variants(
            joined,
            ["ndcg", "hits"],
            control="A",
            covariates={"ndcg": "pre_ndcg"},
            by="segment",
            details=True,
        ),
        rd.experiments.plan_experiment(joined, "ndcg", n=500),
        rd.experiments.bootstrap_ci(joined, "ndcg", by="variant"),
        rd.experiments.roll_up(metrics),
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
    metrics = ["ndcg@10", "hits@10", "first_rank@10"]
    result = rd.evaluate(bought, shop.shown, metrics, by="variant", users="pred", by_in_true=True)
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
        details=True,
    )
    table.to_parquet(tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "table.parquet"), table)
    assert len(table) == 2 * joined["segment"].nunique()
    models = rd.evaluate(shop.true, shop.pred, ["ndcg@10", "recall@10"], k=10, by="model")
    compared = rd.compare_models(models.per_user, missing="drop", details=True)
    assert compared["metric"].unique().tolist() == ["ndcg@10", "recall@10"]
    # Against pandas, pair by pair.
    wide = models.per_user.pivot(index="user_id", columns="model", values="ndcg@10")
    for found in compared[compared.metric == "ndcg@10"].itertuples():
        want = stats.ttest_rel(wide[found.model], wide[found.baseline])
        assert found.p_value == pytest.approx(want.pvalue)


# -------------------------------------------------------------------------------------------
# adjust, roll up, report


def test_adjust_pvalues_errors():
    table = pd.DataFrame({"p_value": [0.5, 1.5]})
    with pytest.raises(OptionError, match=r"outside \[0, 1\] in 1 rows"):
        rd.experiments.adjust_pvalues(table)
    with pytest.raises(ColumnError):
        rd.experiments.adjust_pvalues(table, p_col="p")
    with pytest.raises(OptionError, match="'holm'"):
        rd.experiments.adjust_pvalues(table, correction="holms")
    empty = rd.experiments.adjust_pvalues(table.iloc[:0])
    assert empty["reject"].dtype == bool


SESSIONS = pd.DataFrame(
    {
        "user_id": [2, 1, 2, 1, 2],
        "session_id": ["a", "b", "c", "d", "e"],
        "day": [1, 1, 1, 2, 2],
        "n_pred": [10, 5, 12, 5, 8],
        "hits@10": [1.0, 0.0, 3.0, 2.0, 2.0],
        "ndcg@10": [0.5, np.nan, 0.25, 0.5, 0.0],
    }
)


def test_roll_up_by_hand():
    mean = rd.experiments.roll_up(SESSIONS.drop(columns="day"), how="mean")
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
    total = rd.experiments.roll_up(SESSIONS.drop(columns="day"), how="sum")
    assert total["n_pred"].tolist() == [30, 10]
    assert total["n_pred"].dtype == "int64"
    assert total["hits@10"].tolist() == [6.0, 2.0]
    ranges = rd.experiments.roll_up(SESSIONS, how={"ndcg@10": "max", "n_pred": "min"})
    assert ranges["ndcg@10"].tolist() == [0.5, 0.5]
    assert ranges["n_pred"].tolist() == [8, 5]


@pytest.mark.parametrize("how", ["mean", "sum"])
def test_two_steps_are_one(how):
    at_once = rd.experiments.roll_up(SESSIONS.drop(columns="day"), how=how)
    daily = rd.experiments.roll_up(SESSIONS, unit_col=["user_id", "day"], how=how)
    in_steps = rd.experiments.roll_up(
        daily, how=dict.fromkeys(("n_pred", "hits@10", "ndcg@10"), how)
    )
    assert (SESSIONS.groupby("user_id")["n_pred"].nunique() > 1).any()
    pd.testing.assert_frame_equal(in_steps[at_once.columns], at_once)


def test_ratio_after_roll_up_is_the_ratio_of_sums():
    with pytest.raises(
        DataError, match=r"whole numbers in \['day'\], which may be ids or counts; name in over="
    ):
        rd.experiments.roll_up(SESSIONS, how="sum")
    rolled = rd.experiments.roll_up(SESSIONS, how="sum", over="day")
    table = rd.experiments.bootstrap_ci(
        rolled, {"ctr": ("hits@10", "n_pred"), "ndcg": ("ndcg@10", "ndcg@10__n")}
    )
    assert table["value"].tolist() == [8 / 40, pytest.approx(1.25 / 4)]
    # the same as resampling users of the rows as they are
    rows = rd.experiments.bootstrap_ci(SESSIONS, {"ctr": ("hits@10", "n_pred"), "ndcg": "ndcg@10"})
    np.testing.assert_allclose(rows[["value", "se"]], table[["value", "se"]])


def test_roll_up_does_not_mix_models():
    frame = pd.concat([SESSIONS.assign(model="a"), SESSIONS.assign(model="b")])
    frame.attrs["recdf"] = {"user_col": ["user_id", "session_id"], "by": ["model"]}
    with pytest.raises(DataError, match=r"\['model', 'user_id'\]"):
        rd.experiments.roll_up(frame)
    rolled = rd.experiments.roll_up(frame, unit_col=["model", "user_id"], how="sum")
    assert rolled["n_rows"].tolist() == [3, 2, 3, 2]
    with pytest.raises(OptionError, match="rolled up by how='sum'"):
        rd.experiments.roll_up(rolled, unit_col=["model", "user_id"], how="mean")
    with pytest.raises(OptionError, match="how="):
        rd.experiments.roll_up(SESSIONS, how="median")


def test_report_table_formats(log):
    table = rd.compare_variants(
        log.assign(variant="v_" + log["variant"]),
        {"a|b": "ndcg"},
        control="v_A",
        covariates="pre_ndcg",
        by="segment",
        details=True,
    )
    report = rd.experiments.report_table(table)
    assert report.frame.columns.tolist() == [
        "segment",
        "metric",
        "comparison",
        "effect (95% CI)",
        "relative (95% CI)",
        "p",
        "means",
        "n",
        "MDE",
        "var. reduction",
        "verdict",
    ]
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
        rd.experiments.report_table(log)


def test_report_table_shows_nulls_and_warnings():
    data = pd.DataFrame({"user_id": range(40), "variant": ["A", "B"] * 20, "m": 1.0})
    cells = rd.experiments.report_table(
        rd.compare_variants(data, "m", control="A", details=True)
    ).frame.iloc[0]
    assert (cells["p"], cells["MDE"], cells["notes"]) == ("–", "–", "zero variance")
    assert cells["verdict"] == "no difference shown" + NOT_CHECKED
    assert cells["effect (95% CI)"] == "0"


def test_weights_and_carried_columns_are_null_for_users_without_lists():
    true = pd.DataFrame({"user_id": ["a", "b"], "item_id": "x", "w": [2.0, 3.0]})
    pred = pd.DataFrame({"user_id": ["a", "b"], "item_id": "x", "age": [30, 40]})
    groups = pd.DataFrame({"user_id": ["a", "b", "c"], "variant": ["A", "B", "B"]})
    result = rd.evaluate(true, pred, "hits@1", weight_col="w", carry="age")
    found = result.join_experiment(groups, missing="zero")
    assert found["hits@1"].tolist() == [1.0, 1.0, 0.0]
    assert found[["w", "age"]].iloc[2].isna().all()
    assert found[["w", "age"]].iloc[:2].to_numpy().tolist() == [[2.0, 30.0], [3.0, 40.0]]

"""A mean over the lists of several models is refused, by `summarize` and `bootstrap_ci` alike;
honest calls pass."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.inputs.machine import sized, sizes

WORDS = "would be averaged together; pass by="


@pytest.fixture(scope="module")
def shop():
    return rd.sample_shop(n_users=400, n_items=100)


@pytest.fixture(scope="module")
def result(shop):
    return rd.evaluate(shop.true, shop.pred, ["ndcg", "recall"], by="model")


def joined(result):
    """A merge with segments, which loses what `evaluate` wrote on every version of pandas."""
    users = result.per_user[["user_id"]].drop_duplicates()
    users["segment"] = np.where(np.arange(len(users)) % 3 == 0, "new", "old")
    table = result.per_user.merge(users, on="user_id", validate="many_to_one")
    table.attrs = {}
    return table


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "call", [rd.summarize, lambda table, by: rd.experiments.bootstrap_ci(table, "ndcg@10", by=by)]
)
def test_segments_without_the_model(result, call):
    table = joined(result)
    known = table.copy()
    known.attrs = result.per_user.attrs
    with pytest.raises(rd.DataError, match=WORDS + r"\['model', 'segment'\]"):
        call(table, "segment")
    with pytest.raises(rd.DataError, match=WORDS + r"\['model', 'segment'\]"):
        call(known, "segment")
    last = table[[*(name for name in table.columns if name != "model"), "model"]]
    with pytest.raises(rd.DataError, match=WORDS + r"\['model', 'segment'\]|repeat a list"):
        call(last, "segment")
    values = call(table, ["model", "segment"]).set_index(["model", "segment", "metric"])["value"]
    expected = table.groupby(["model", "segment"])["ndcg@10"].mean()
    metric = "ndcg" if call is rd.summarize else "ndcg@10"
    assert values.loc[("knn", "new", metric)] == pytest.approx(expected.loc[("knn", "new")])
    one = table[table["model"] == "knn"]
    found = call(one, "segment").set_index(["segment", "metric"])["value"]
    assert found.loc[("new", metric)] == pytest.approx(expected.loc[("knn", "new")])


def test_all_lists_of_all_models(result):
    for table in (result.per_user, pd.DataFrame(result.per_user.to_dict("list"))):
        with pytest.raises(rd.DataError, match=WORDS + r"\['model'\]"):
            rd.experiments.bootstrap_ci(table, "ndcg@10")
        with pytest.raises(rd.DataError, match=WORDS + r"\['model'\]"):
            rd.summarize(table, by=[])
    bare = result.per_user[["model", "user_id", "ndcg@10"]].copy()
    bare.attrs = {}
    with pytest.raises(rd.DataError, match=WORDS + r"\['model'\]"):
        rd.experiments.bootstrap_ci(bare, "ndcg@10")
    assert len(rd.experiments.bootstrap_ci(bare, "ndcg@10", by="model")) == bare["model"].nunique()
    with pytest.raises(rd.DataError, match=WORDS + r"\['model'\]"):
        rd.summarize(result, by=[])


def test_models_that_lack_some_lists_and_tables_without_counts(result):
    table = joined(result)
    for some in (table.iloc[5:], table[["user_id", "ndcg@10", "model", "segment"]]):
        with pytest.raises(rd.DataError, match=WORDS + r"\['model', 'segment'\]"):
            rd.summarize(some, by="segment", metrics=["ndcg@10"])


@pytest.mark.long
def test_two_columns_of_recommenders_and_folds(shop):
    folds = shop.pred.assign(fold=1)
    pred = pd.concat([folds, folds.assign(fold=2)])
    result = rd.evaluate(shop.true, pred, "ndcg", by=["model", "fold"])
    for call in (
        rd.summarize,
        lambda table, by: rd.experiments.bootstrap_ci(table, "ndcg@10", by=by),
    ):
        with pytest.raises(rd.DataError, match=WORDS + r"\['fold', 'model'\]"):
            call(result.per_user, "model")
    # Who means the average over folds says so.
    found = rd.summarize(
        result, by="model", user_col=["model", "fold", "user_id"], unit_col="user_id"
    )
    one = rd.evaluate(shop.true, shop.pred, "ndcg", by="model").summary
    np.testing.assert_allclose(found["value"], one["value"])
    # The key of a list need not say again by what models are told apart.
    for table in (result.per_user, pd.DataFrame(result.per_user.to_dict("list"))):
        np.testing.assert_allclose(
            rd.summarize(table, by="model", user_col=["user_id", "fold"])["value"], one["value"]
        )
    kept = rd.experiments.bootstrap_ci(result.per_user.drop(columns="fold"), "ndcg@10", by="model")
    np.testing.assert_allclose(kept["value"], one["value"])


@pytest.mark.few(1)
@pytest.mark.parametrize("attrs", [True, False])
def test_sessions_days_and_variants_are_no_models(attrs):
    rng = np.random.default_rng(0)
    sessions = pd.DataFrame(
        {"user_id": rng.integers(0, 40, 200), "session_id": range(200), "item_id": 1}
    )
    panel = pd.DataFrame(
        {"user_id": np.repeat(np.arange(40), 3), "session_id": [0, 1, 2] * 40, "item_id": 1}
    )
    days = panel.assign(session_id=pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-03"] * 40))
    for rows, key in (
        (sessions, ["user_id", "session_id"]),
        (panel, ["user_id", "session_id"]),
        (days, ["session_id", "user_id"]),
    ):
        result = rd.evaluate(rows, rows, "ndcg@1", user_col=key)
        table = result.per_user.assign(country=lambda t: t["user_id"] % 2)
        table["segment"] = "s" + table["country"].astype(str)
        if not attrs:
            table.attrs = {}
        assert len(rd.summarize(table, by="segment")) == 2
        assert len(rd.experiments.bootstrap_ci(table, "ndcg@1", by="segment")) == 2
        assert len(rd.summarize(table, by="segment", unit_col="user_id")) == 2
    # Every user has the lists of the own variant alone: no list stands in two variants.
    own = pd.DataFrame(
        {"variant": ["A", "B"] * 20, "user_id": range(40), "segment": ["x"] * 40, "ndcg@1": 0.5}
    )
    own = own.sort_values("variant").assign(**{"ndcg@1": np.arange(40.0)})
    assert len(rd.experiments.bootstrap_ci(own, "ndcg@1", by="segment")) == 1


def test_parts_of_a_list_key_that_a_caller_names_are_no_models():
    slots = pd.DataFrame(
        {"slot": np.repeat([0, 1, 2], 40), "user_id": [*range(40)] * 3, "item_id": 1}
    )
    rows = rd.evaluate(slots, slots, "ndcg@1", user_col=["slot", "user_id"]).per_user
    rows = rows.assign(variant=np.where(rows["user_id"] % 2, "A", "B"), **{"ndcg@1": range(120)})
    rows.attrs = {}
    given = {"user_col": ["slot", "user_id"], "cluster": "user_id", "control": "A"}
    expected = {"A": 1, "B": 1}
    assert len(rd.compare_variants(rows, "ndcg@1", expected=expected, **given)) == 1
    days = rows.assign(day=pd.Timestamp("2026-01-01"))
    times = {"time_col": "day", "exposure_col": None}
    assert len(rd.experiments.effect_over_time(days, "ndcg@1", **given, **times)) == 1


@pytest.mark.parametrize("known", [True, False])
def test_experiments_do_not_average_models(shop, result, known, tmp_path):
    users = result.per_user.merge(shop.assignment, on="user_id", validate="many_to_one")
    users.attrs = result.per_user.attrs if known else {}
    experiments = rd.experiments
    given = {"control": "A", "expected": {"A": 1, "B": 1}, "cluster": "user_id"}
    quantile = partial(experiments.compare_quantiles, quantiles=0.5)
    for call in (rd.compare_variants, quantile, experiments.compare_zero_inflated):
        with pytest.raises(rd.DataError, match="data has each list .*" + WORDS + r"\['model'\]"):
            call(users, "ndcg@10", **given)
        table = call(users, "ndcg@10", by="model", **given)
        assert table["model"].unique().tolist() == ["knn", "popularity", "random"]
        call(users[users["model"] == "knn"], "ndcg@10", **given)
    with pytest.raises(rd.DataError, match=WORDS):
        experiments.variant_moments(users, "ndcg@10")
    assert experiments.variant_moments(users, "ndcg@10", by="model")["model"].nunique() == 3
    users.to_parquet(tmp_path / "users.parquet")
    for rows in (10, 10**9):  # in parts, and in memory
        with sized(replace(sizes(), summed_rows=rows)), pytest.raises(rd.DataError, match=WORDS):
            rd.compare_variants(str(tmp_path / "users.parquet"), "ndcg@10", **given)
    plan = partial(experiments.plan_experiment, rel_effect=0.1)
    for past in (plan, partial(experiments.aa_test, n=20)):
        with pytest.raises(rd.DataError, match=r"\['model'\], .* together; select one, or drop"):
            past(users, "ndcg@10", cluster="user_id")
        past(users[users["model"] == "knn"], "ndcg@10", cluster="user_id")
    days = users.assign(day=pd.Timestamp("2026-01-01"), at=pd.Timestamp("2026-01-01"))
    over = partial(
        experiments.effect_over_time, control="A", time_col="day", exposure_col="at", missing="drop"
    )
    with pytest.raises(rd.DataError, match=r"rows has .*\['model'\], .* together; select one"):
        over(days, "ndcg@10")
    over(days[days["model"] == "knn"], "ndcg@10")

"""`rd.summarize(stat=...)` against plain numpy: quantiles, sums, geometric means, risk, and weights
by counts."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recdf as rd

RNG = np.random.default_rng(7)
N = 90
PER_USER = pd.DataFrame(
    {
        "model": np.repeat(["a", "b", "c"], N // 3),
        "user_id": np.tile(np.arange(N // 3), 3),
        "n_true": RNG.integers(0, 6, N),
        "n_pred": RNG.integers(1, 30, N),
        "ndcg@10": RNG.random(N).round(2),
        "mapr@5": np.where(RNG.random(N) < 0.2, np.nan, RNG.random(N)),
    }
)
BY_HAND = {
    "sum": np.sum,
    "median": np.median,
    "min": np.min,
    "max": np.max,
    "std": lambda x: np.std(x, ddof=1),
    "gmean": lambda x: np.exp(np.mean(np.log(np.maximum(x, 1e-5)))),
    0.9: lambda x: np.quantile(x, 0.9),
}


def summarize(frame=PER_USER, by="model", **options):
    return rd.summarize(frame, by, user_col=["model", "user_id"], **options)


@pytest.mark.few(1)
@pytest.mark.parametrize("stat", BY_HAND)
def test_values_are_those_of_numpy(stat):
    table = summarize(stat=stat)
    assert list(table.columns[:4]) == ["model", "stat", "metric", "k"]
    assert set(table["stat"]) == {str(stat)}
    mean = summarize()
    for name in ("metric", "k", "std", "n", "n_undefined"):
        assert table[name].tolist() == mean[name].tolist()
    for row in table.itertuples():
        x = (
            PER_USER.loc[PER_USER["model"] == row.model, f"{row.metric}@{row.k}"]
            .dropna()
            .to_numpy()
        )
        assert row.value == pytest.approx(BY_HAND[stat](x), abs=1e-12)


@pytest.mark.long
def test_several_statistics_are_rows_of_one_table():
    table = summarize(stat=["mean", "median", 0.25])
    assert table["stat"].tolist() == ["mean", "median", "0.25"] * 6
    assert table["metric"].tolist() == (["ndcg"] * 3 + ["mapr"] * 3) * 3
    alone = pd.concat([summarize(stat=[one]) for one in ("mean", "median", 0.25)])
    keys = ["model", "metric", "stat"]
    pd.testing.assert_frame_equal(
        table.sort_values(keys, ignore_index=True), alone.sort_values(keys, ignore_index=True)
    )
    pd.testing.assert_frame_equal(summarize(stat=["mean"]).drop(columns="stat"), summarize())


def test_error_of_a_sum_is_that_of_the_mean_times_n():
    mean, found = summarize(), summarize(stat="sum")
    for name in ("value", "se", "ci_low", "ci_high"):
        assert found[name].tolist() == (mean[name] * mean["n"]).tolist()


def test_error_of_a_geometric_mean_is_that_of_the_delta_method():
    found = summarize(stat="gmean")
    for row in found.itertuples():
        x = PER_USER.loc[PER_USER["model"] == row.model, f"{row.metric}@{row.k}"].dropna()
        logs = np.log(np.maximum(x, 1e-5))
        se = logs.std() / np.sqrt(len(logs))
        assert row.se == pytest.approx(np.exp(logs.mean()) * se)
        half = stats.t(len(logs) - 1).ppf(0.975) * se
        assert [row.ci_low, row.ci_high] == pytest.approx(
            np.exp([logs.mean() - half, logs.mean() + half]).tolist()
        )


@pytest.mark.long
@pytest.mark.parametrize("stat", ["median", "std", 0.8])
def test_errors_of_quantiles_are_those_of_a_bootstrap(stat):
    found = summarize(stat=stat)
    for row in found[found["metric"] == "ndcg"].itertuples():
        x = PER_USER.loc[PER_USER["model"] == row.model, "ndcg@10"].to_numpy()
        drawn = [
            BY_HAND.get(stat, lambda x: np.quantile(x, 0.8))(RNG.choice(x, len(x)))
            for _ in range(4000)
        ]
        assert row.se == pytest.approx(np.std(drawn, ddof=1), rel=0.2)
        low, high = np.quantile(drawn, [0.025, 0.975])
        assert (row.ci_low, row.ci_high) == (
            pytest.approx(low, abs=0.06),
            pytest.approx(high, abs=0.06),
        )
        assert row.ci_low <= row.value <= row.ci_high


@pytest.mark.long
def test_the_seed_and_the_number_of_draws_are_the_callers_and_the_order_of_rows_is_nobodys():
    one = summarize(stat="median", seed=1)
    assert one["se"].tolist() != summarize(stat="median", seed=2)["se"].tolist()
    assert one["se"].tolist() != summarize(stat="median", seed=1, n_resamples=500)["se"].tolist()
    shuffled = PER_USER.sample(frac=1, random_state=3)
    again = summarize(shuffled, stat="median", seed=1)
    keys = ["model", "metric"]
    pd.testing.assert_frame_equal(
        one.sort_values(keys, ignore_index=True), again.sort_values(keys, ignore_index=True)
    )


@pytest.mark.long
def test_lists_of_one_unit_are_drawn_together():
    twice = pd.concat([PER_USER.assign(session=s) for s in range(4)])
    plain = summarize(stat="median")
    found = rd.summarize(
        twice,
        "model",
        user_col=["model", "user_id", "session"],
        unit_col="user_id",
        stat=["median", "gmean"],
    )
    median, gmean = (
        found[found["stat"] == name].reset_index(drop=True) for name in ("median", "gmean")
    )
    assert median["value"].tolist() == pytest.approx(plain["value"].tolist())
    assert median["se"].tolist() == pytest.approx(plain["se"].tolist(), rel=0.2)
    assert gmean["se"].tolist() == pytest.approx(summarize(stat="gmean")["se"].tolist())
    assert (found["n_users"] <= 30).all()


def test_what_cannot_vary_has_no_error():
    same = PER_USER.assign(**{"ndcg@10": 0.5})
    found = summarize(same, stat=["median", "gmean", "sum", "std"], metrics=["ndcg@10"])
    assert found["se"].isna().all()
    assert found["value"].tolist() == pytest.approx([0.5, 0.5, 15, 0] * 3)
    one = summarize(PER_USER.head(1), stat=["median", "std", "gmean"], metrics=["ndcg@10"])
    assert one["value"].isna().tolist() == [False, True, False]
    assert one["se"].isna().all()
    none = summarize(
        PER_USER.assign(**{"ndcg@10": np.nan}), stat=["median", "sum", "std"], metrics=["ndcg@10"]
    )
    assert none["value"].isna().all()
    assert (none["n"] == 0).all()


@pytest.mark.parametrize(
    ("how", "count"), [("relevant", "n_true"), ("rows", "n_pred"), ("shown", None)]
)
def test_weights_by_counts(how, count):
    found = summarize(weight_by=how)
    assert set(found["stat"]) == {"mean"}
    for row in found.itertuples():
        part = PER_USER[PER_USER["model"] == row.model].dropna(subset=f"{row.metric}@{row.k}")
        w = part["n_pred"].clip(upper=row.k) if count is None else part[count]
        assert row.value == pytest.approx(np.average(part[f"{row.metric}@{row.k}"], weights=w))
        assert row.n_effective == pytest.approx(w.sum() ** 2 / (w**2).sum())
    weighted = PER_USER.assign(w=RNG.random(N))
    both = summarize(weighted, weight_by="rows", weight_col="w", metrics=["ndcg@10"])
    part = weighted[weighted["model"] == "a"]
    assert both["value"][0] == pytest.approx(
        np.average(part["ndcg@10"], weights=part["w"] * part["n_pred"])
    )


def test_risk_against_a_baseline():
    base = PER_USER[PER_USER["model"] == "a"].drop(columns="model")
    found = summarize(stat="urisk", base=base, alpha=2, metrics=["ndcg@10"])
    own = base["ndcg@10"].to_numpy()
    for row in found.itertuples():
        d = PER_USER.loc[PER_USER["model"] == row.model, "ndcg@10"].to_numpy() - own
        turned = np.where(d < 0, 3 * d, d)
        assert row.value == pytest.approx(turned.mean())
        assert (
            np.isnan(row.se)
            if row.model == "a"
            else row.se == pytest.approx(turned.std(ddof=1) / np.sqrt(len(d)))
        )
    fewer = summarize(stat="urisk", base=base.iloc[::-1].head(10), metrics=["ndcg@10"])
    assert fewer["n"].tolist() == [10] * 3
    assert fewer["n_undefined"].tolist() == [20] * 3
    with pytest.raises(rd.DataError, match="base has several rows of a list"):
        summarize(stat="urisk", base=PER_USER)
    with pytest.raises(rd.DataError, match="base has none of the lists"):
        summarize(stat="urisk", base=base.assign(user_id=base["user_id"] + 1000))
    with pytest.raises(rd.ColumnError, match="base has no column 'mapr@5'"):
        summarize(stat="urisk", base=base.drop(columns="mapr@5"))
    with pytest.raises(rd.IdTypeError, match="can never match"):
        summarize(stat="urisk", base=base.assign(user_id=base["user_id"].astype(str)))
    for wrong in ({"stat": "urisk"}, {"base": base}):
        with pytest.raises(rd.OptionError, match="are given together"):
            summarize(**wrong)


def test_a_later_first_hit_is_a_loss():
    """Of a metric for which smaller is better, what is added to it counts more."""
    true = {"u": ["a"], "v": ["a"]}
    early, late = (
        rd.evaluate(true, {"u": row, "v": row}, {"first": "first_rank@2", "mrr": "mrr@2"})
        for row in (["a", "x"], ["x", "a"])
    )
    for result, base, values in ((early, late, [-1, 0.5]), (late, early, [6, -3])):
        assert result.summarize(stat="urisk", base=base, alpha=5)["value"].tolist() == values


def test_evaluations_are_taken_whole():
    true = pd.DataFrame({"user_id": [1, 1, 2, 3], "item_id": [1, 2, 1, 3]})
    pred = pd.DataFrame({"user_id": [1, 1, 2, 2, 3], "item_id": [1, 5, 7, 1, 4], "model": "m"})
    result = rd.evaluate(true, pred, ["recall", "mrr"], 2, by="model")
    same = pd.DataFrame({"user_id": [1, 2, 3], "item_id": 1, "model": "m"})
    base = rd.evaluate(true, same, ["recall", "mrr"], 2, by="model")
    found = result.summarize(stat=["urisk", "median"], base=base, alpha=1)
    assert found["value"].tolist() == pytest.approx([0.0, 0.5, -1 / 3, 0.5])
    pd.testing.assert_frame_equal(result.summarize(), rd.summarize(result))


def test_wrong_arguments_are_named():
    weighted = PER_USER.assign(w=1.0)
    for stat in ("median", "sum", "std", 0.5):
        with pytest.raises(rd.OptionError, match="lists that count alike"):
            summarize(weighted, stat=stat, weight_col="w")
        with pytest.raises(rd.OptionError, match="lists that count alike"):
            summarize(stat=stat, weight_by="rows")
    gmean = summarize(weighted, stat="gmean", weight_col="w")
    assert gmean["value"].tolist() == pytest.approx(summarize(stat="gmean")["value"].tolist())
    for wrong in (
        {"stat": "medain"},
        {"stat": 1.5},
        {"stat": []},
        {"weight_by": "users"},
        {"alpha": -1},
    ):
        with pytest.raises(rd.OptionError, match="|".join(wrong)):
            summarize(**wrong)
    with pytest.raises(rd.OptionError, match="median"):
        summarize(stat="medain")
    with pytest.raises(rd.ColumnError, match="'stat' has the name of a column"):
        rd.summarize(
            PER_USER.assign(stat="x"), "stat", user_col=["model", "user_id"], stat="median"
        )
    with pytest.raises(rd.ColumnError, match="n_true"):
        summarize(PER_USER.drop(columns="n_true"), weight_by="relevant")


def test_undefined_counts_as_one_where_that_is_asked():
    true = pd.DataFrame({"user_id": [1, 2], "item_id": [1, 1], "relevance": [1, 0]})
    pred = pd.DataFrame({"user_id": [1, 2], "item_id": [2, 1]})
    result = rd.evaluate(true, pred, ["recall", "mapr"], 1, undefined="one")
    assert result.per_user["recall@1"].tolist() == [0.0, 1.0]
    assert result.summary["value"].tolist() == [0.5, 0.5]
    assert result.summary["n_undefined"].tolist() == [1, 1]
    assert rd.recall(true, pred, 1, undefined="one") == 0.5

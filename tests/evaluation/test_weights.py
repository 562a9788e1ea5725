"""Weights of lists: means against formulas and statsmodels, where weights come from, parts, files,
and refusals."""

import warnings
from functools import reduce
from operator import add

import numpy as np
import pandas as pd
import pytest
import statsmodels.regression.linear_model as sm
from cli.command import fails, run
from registry.seeded import assert_close, frames

import recdf as rd
from recdf.evaluation.value_moments import GroupMoments

METRICS = ["recall", "ndcg", "first_rank", "precision(divisor=shown)"]
OPTIONS = {"by": "model", "relevance_col": "relevance", "score_col": "score", "nan_score": "last"}
KEYS = {"user_id": "user_id"}

pytestmark = pytest.mark.filterwarnings("ignore::recdf.RecdfWarning")


def weighted(seed=1):
    """Seeded frames, with weights of 0 to 3 in `true`, and the users with theirs."""
    true, pred = frames(seed)
    users = pd.DataFrame({"user_id": true["user_id"].unique()})
    users["w"] = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 3.0], len(users))
    return true.merge(users, on="user_id", how="left"), pred, users


def by_statsmodels(values, weights):
    """Weighted mean, its standard error, and Kish's number of lists, over the lists that have a
    value and a weight."""
    kept = (weights > 0) & ~np.isnan(values)
    x, w = values[kept], weights[kept]
    fit = sm.WLS(x, np.ones(len(x)), weights=w).fit(cov_type="HC1")
    return fit.params[0], fit.bse[0], w.sum() ** 2 / (w**2).sum(), kept.sum()


def test_means_and_errors():
    true, pred, _ = weighted()
    result = rd.evaluate(true, pred, METRICS, [1, 4], weight_col="w", **OPTIONS)
    assert list(result.per_user.columns[:5]) == ["model", "user_id", "w", "n_true", "n_pred"]
    assert result.summary.columns[-1] == "n_effective"
    assert result.spec["weight"] == result.spec["options"]["weight_col"] == "w"
    columns = [name for name in result.per_user.columns if "@" in name]
    for model, rows in result.per_user.groupby("model"):
        summary = result.summary[result.summary["model"] == model]
        for name, row in zip(columns, summary.itertuples(), strict=True):
            found = row.value, row.se, row.n_effective, row.n
            expected = by_statsmodels(rows[name].to_numpy(), rows["w"].to_numpy())
            if (
                rows.loc[rows["w"] > 0, name].nunique() == 1
            ):  # equal values tell nothing of the error
                expected = expected[0], np.nan, *expected[2:]
            assert_close(found, expected, name)
        assert (summary["n"] + summary["n_undefined"] == (rows["w"] > 0).sum()).all()


def test_by_hand():
    """Recalls 1, 0, 1/2 with weights 1, 2, 1 and one of weight 0: mean 3/8, Σw²(x − m)² = 31/32,
    Kish's n 16/6."""
    true = {"a": ["x"], "b": ["x"], "c": ["x", "y"], "d": ["x"]}
    pred = {"a": ["x"], "b": ["y"], "c": ["x"], "d": ["x"]}
    weights = {"a": 1, "b": 2, "c": 1, "d": 0}
    row = rd.evaluate(true, pred, "recall@1", weight_col=weights).summary.iloc[0]
    squares = (5 / 8) ** 2 + 4 * (3 / 8) ** 2 + (1 / 8) ** 2
    spread = (5 / 8) ** 2 + 2 * (3 / 8) ** 2 + (1 / 8) ** 2
    expected = [3 / 8, np.sqrt(spread / (4 - 6 / 4)), np.sqrt(3 / 2 * squares) / 4, 3, 0, 16 / 6]
    assert_close(
        row[["value", "std", "se", "n", "n_undefined", "n_effective"]].astype(float), expected
    )
    assert rd.recall(true, pred, 1, weight_col=weights) == 3 / 8
    plain = rd.evaluate({u: true[u] for u in "abc"}, pred, "recall@1").summary.iloc[0]
    equal = rd.evaluate(
        true, pred, "recall@1", weight_col={**dict.fromkeys("abc", 7), "d": 0}
    ).summary.iloc[0]
    assert_close(
        equal[["value", "std", "se", "n"]].astype(float),
        plain[["value", "std", "se", "n"]].astype(float),
    )
    assert equal["n_effective"] == pytest.approx(3)


@pytest.mark.long
def test_weights_stand_in_true_in_users_or_in_a_mapping():
    true, pred, users = weighted(2)
    expected = rd.evaluate(true, pred, METRICS, weight_col="w", **OPTIONS)
    bare = true.drop(columns="w")
    given = dict(zip(users["user_id"], users["w"], strict=True))
    for options in ({"users": users, "weight_col": "w"}, {"weight_col": given}):
        found = rd.evaluate(bare, pred, METRICS, **options, **OPTIONS)
        pd.testing.assert_frame_equal(found.summary, expected.summary)
        by_user = found.per_user.rename(columns={"weight": "w"})
        pd.testing.assert_frame_equal(by_user, expected.per_user)
    alone = rd.evaluate(
        None, pred, "entropy", users=users, weight_col="w", by="model", nan_score="last"
    )
    assert "n_effective" not in alone.summary
    both = ["user_id", "day"]
    of_days = pd.concat([true.assign(day=day, w=true["w"] + day) for day in (0, 1)])
    recommended = pd.concat([pred.assign(day=day) for day in (0, 1)])
    found = rd.evaluate(
        of_days, recommended, "recall", user_col=both, weight_col="w", **OPTIONS
    ).per_user
    assert (found.groupby("day")["w"].sum().diff().iloc[1]) == len(found) / 2


def test_summarize_takes_the_weights_of_a_result_and_the_column_of_a_table():
    true, pred, users = weighted(3)
    result = rd.evaluate(true, pred, METRICS, weight_col="w", **OPTIONS)
    pd.testing.assert_frame_equal(rd.summarize(result), result.summary)
    merged = result.per_user.merge(
        users.assign(half=users["user_id"] % 2).drop(columns="w"), on="user_id"
    )
    found = rd.summarize(merged, by=["model", "half"], weight_col="w")
    for (model, half), rows in merged.groupby(["model", "half"]):
        row = found.query(f"model == {model!r} and half == {half} and metric == 'recall'").iloc[0]
        expected = by_statsmodels(rows["recall@10"].to_numpy(), rows["w"].to_numpy())
        assert_close([row["value"], row["se"], row["n_effective"], row["n"]], expected)
    plain = rd.summarize(merged, by="model")
    assert "n_effective" not in plain
    assert plain["metric"].tolist() == found["metric"].tolist()[: len(plain)]


@pytest.mark.long
def test_tables_warn_where_their_weights_are_left_out():
    true, pred, users = weighted(3)
    result = rd.evaluate(true, pred, METRICS, weight_col="w", **OPTIONS)
    metrics = ["recall@10", "ndcg@10"]
    table = result.per_user[result.per_user["model"] == "a"].copy()
    table["variant"] = np.where(table["user_id"] % 2, "A", "B")
    calls = [
        lambda **more: rd.summarize(result.per_user, **more),
        lambda **more: rd.compare_models(result.per_user, metrics, missing="drop", **more),
        lambda **more: rd.compare_variants(table, metrics, control="A", nan="drop", **more),
        lambda **more: rd.experiments.bootstrap_ci(table, metrics, n_resamples=50),
    ]
    for i, call in enumerate(calls):
        with pytest.warns(
            rd.WeightWarning, match=r"weights of its evaluation in 'w'.* take weight_col='w'"
        ):
            call()
        if i < 3:
            with warnings.catch_warnings():
                warnings.simplefilter("error", rd.WeightWarning)
                call(weight_col="w")
    given = dict(zip(users["user_id"], users["w"], strict=True))
    weighed = rd.evaluate(
        true.drop(columns="w"), pred, METRICS, weight_col=given, **OPTIONS
    ).per_user
    merged = weighed.merge(users.drop(columns="w"), on="user_id")
    merged.attrs = {}
    with pytest.warns(rd.WeightWarning, match="'weight'"):
        rd.summarize(merged, by="model")
    with warnings.catch_warnings():
        warnings.simplefilter("error", rd.WeightWarning)
        rd.summarize(result)
        rd.summarize(merged.drop(columns="weight"), by="model")
        plain = result.compare_models(missing="drop", weight_col=None)
    bare = rd.compare_models(
        result.per_user.drop(columns="w"), list(plain["metric"].unique()), missing="drop"
    )
    pd.testing.assert_frame_equal(plain[["diff", "p_value"]], bare[["diff", "p_value"]])


@pytest.mark.long
def test_a_leaderboard_and_its_segments_take_the_weights():
    true, pred, users = weighted(3)
    result = rd.evaluate(true, pred, ["ndcg", "recall"], weight_col="w", **OPTIONS)
    segments = users[["user_id"]].assign(half=users["user_id"] % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", rd.WeightWarning)
        board = rd.leaderboard(result, segments=segments)
        expected = result.compare_models(missing="drop")
    pairs = board.comparisons[board.comparisons["segment"] == board.frame["segment"].iloc[0]]
    for row in expected.itertuples():
        (own,) = pairs[
            (pairs["metric"] == row.metric)
            & pairs["model"].isin([row.model, row.baseline])
            & pairs["baseline"].isin([row.model, row.baseline])
        ].itertuples()
        assert [abs(own.diff), own.p_value] == pytest.approx([abs(row.diff), row.p_value], rel=1e-9)
    joined = result.per_user.merge(segments, on="user_id")
    means = rd.summarize(joined, by=["model", "half"], weight_col="w")
    found = board.frame[board.frame["segment"] == "half"]
    for row in means.itertuples():
        own = found[(found["model"] == row.model) & (found["group"] == str(row.half))]
        assert own.loc[own["metric"] == f"{row.metric}@{row.k}", "value"].item() == pytest.approx(
            row.value
        )


def test_units_with_several_lists():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"user_id": rng.integers(0, 30, 200), "w": rng.choice([0.0, 1.0, 3.0], 200)}
    )
    table["ndcg@5"] = np.where(
        rng.random(200) < 0.1, np.nan, rng.random(200) + table["user_id"] / 30
    )
    row = rd.summarize(table, [], weight_col="w", unit_col="user_id").iloc[0]
    kept = table[(table["w"] > 0) & table["ndcg@5"].notna()]
    fit = sm.WLS(kept["ndcg@5"], np.ones(len(kept)), weights=kept["w"])
    fit = fit.fit(cov_type="cluster", cov_kwds={"groups": kept["user_id"]})
    assert_close([row["value"], row["se"]], [fit.params.iloc[0], fit.bse.iloc[0]])
    assert row["n_users"] == kept["user_id"].nunique()


def test_groups_of_items():
    true, pred, _ = weighted(4)
    items = pd.DataFrame({"item_id": range(20), "kind": ["x", "y"] * 10})
    found = rd.evaluate(
        true, pred, METRICS, items=items, item_by="kind", weight_col="w", **OPTIONS
    ).summary
    some = rd.evaluate(
        true[true["item_id"] % 2 == 0], pred, METRICS, weight_col="w", **OPTIONS
    ).summary
    found = found[found["kind"] == "x"]
    assert_close(found[["value", "se", "n_effective"]], some[["value", "se", "n_effective"]])


# -- parts and files


def test_moments_of_parts_add_up():
    rng = np.random.default_rng(0)
    values = np.where(rng.random((4, 300)) < 0.2, np.nan, rng.lognormal(size=(4, 300)) + 1e6)
    group, weight = rng.integers(0, 3, 300), rng.choice([0.0, 1.0, 2.5], 300)
    weight[group == 2] = 0
    whole = GroupMoments.of(values, group, 3, weight).statistics(0.95)
    part = rng.integers(0, 5, 300)
    parts = [
        GroupMoments.of(values[:, part == i], group[part == i], 3, weight[part == i])
        for i in range(5)
    ]
    for order in ([0, 1, 2, 3, 4], [3, 0, 4, 2, 1]):
        added = reduce(add, [parts[i] for i in order]).statistics(0.95)
        for name, expected in whole.items():
            np.testing.assert_allclose(added[name], expected, rtol=1e-9, atol=1e-12, err_msg=name)
    assert np.isnan(whole["value"][2]).all()


@pytest.mark.long
def test_files_and_the_command_give_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    true, pred, users = weighted(5)
    true.to_parquet("true.parquet")
    pred.to_parquet("pred.parquet")
    users.to_parquet("users.parquet")
    true.drop(columns="w").to_parquet("bare.parquet")
    given = dict(zip(users["user_id"], users["w"], strict=True))
    expected = rd.evaluate(true, pred, METRICS, weight_col="w", **OPTIONS)
    for path, options in (
        ("true.parquet", {"weight_col": "w"}),
        ("bare.parquet", {"weight_col": "w", "users": users}),
        ("bare.parquet", {"weight_col": given}),
    ):
        in_memory = rd.evaluate(pd.read_parquet(path), pred, METRICS, **options, **OPTIONS)
        found = rd.evaluate_parquet(path, "pred.parquet", METRICS, **options, **OPTIONS, buckets=4)
        assert found == in_memory
        assert_close(found.summary["se"], expected.summary["se"])
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in OPTIONS.items()]
    for path, more in (("true.parquet", []), ("bare.parquet", ["--users", "users.parquet"])):
        files = ["--true", path, "--pred", "pred.parquet", "--out", "out", "--overwrite"]
        assert (
            run(capsys, "evaluate", *files, "-m", *METRICS, "--weight-col", "w", *more, *flags)[0]
            == 0
        )
        assert_close(rd.read_parquet("out").summary["n_effective"], expected.summary["n_effective"])
    true.assign(w=true["w"].where(true.index > 0)).to_parquet("true.parquet")
    with pytest.raises(rd.DataError, match=r"true\['w'\] holds 1 null weights"):
        rd.evaluate_parquet(
            "true.parquet", "pred.parquet", "recall", weight_col="w", buckets=4, **OPTIONS
        )
    files = ["evaluate", "--true", "true.parquet", "--pred", "pred.parquet", "-m", "recall"]
    assert "1 null weights" in fails(capsys, *files, "--weight-col", "w", *flags)


def test_one_list_that_outweighs_all_others_leaves_no_deviation():
    true = pd.DataFrame({"user_id": [1, 2, 3], "item_id": "a", "w": [2.0**60, 1, 1]})
    pred = pd.DataFrame({"user_id": [1, 2, 3], "item_id": ["a", "b", "a"]})
    row = rd.evaluate(true, pred, "hitrate", k=1, weight_col="w").summary.iloc[0]
    assert row["value"] == 1.0
    assert row[["std", "se", "ci_low", "ci_high"]].isna().all()


# -------------------------------------------------------------------------------------------------
# bad input

TRUE = pd.DataFrame({"user_id": [1, 1, 2], "item_id": ["a", "b", "a"]})
PRED = pd.DataFrame({"user_id": [1, 2, 3], "item_id": ["a", "b", "a"]})
USERS = pd.DataFrame({"user_id": [1, 2], "w": [1.0, 2.0]})
BAD = [
    ([1, 1, np.nan], {}, rd.DataError, r"true\['w'\] holds 1 null weights of 3"),
    (
        [1, 1, -2],
        {},
        rd.DataError,
        r"holds 1 negative or infinite weights of 3 \(-2.0\); expected finite numbers, at",
    ),
    ([1, 1, np.inf], {}, rd.DataError, r"holds 1 negative or infinite weights"),
    ([1e154, 1e154, 1], {}, rd.DataError, r"holds 2 very large or very small weights of 3 \(1e"),
    ([1, 1, 1e-160], {}, rd.DataError, r"holds 1 very large or very small .* divide all by the"),
    (
        [1, 2, 3],
        {},
        rd.DataError,
        r"true\['w'\] is not constant within 1 lists, such as .*'user_id': 1",
    ),
    ([0, 0, 0], {}, rd.DataError, "all 2 lists have the weight 0"),
    (["x", "y", "z"], {}, rd.DataError, r"true\['w'\] holds string values"),
    (
        [1, 1, 2],
        {"weight_col": "v"},
        rd.ColumnError,
        "true has no column 'v'.*did you mean|has no column 'v'",
    ),
    (
        [1, 1, 2],
        {"users": "all"},
        rd.DataError,
        "1 of 3 lists have no weight, such as .*'user_id': 3.*column of true",
    ),
    (
        [1, 1, 2],
        {"weight_col": {1: 1.0}},
        rd.DataError,
        "1 of 2 lists have no weight, .* is a mapping, which lacks",
    ),
    ([1, 1, 2], {"weight_col": {1: 1.0, 2: None}}, rd.DataError, "weight_col holds 1 null weights"),
    ([1, 1, 2], {"weight_col": {"1": 1.0, "2": 1.0}}, rd.IdTypeError, "weight_col"),
    ([1, 1, 2], {"users": USERS.assign(w=[1, -1])}, rd.DataError, r"users\['w'\] holds 1 negative"),
    (
        [1, 1, 2],
        {"users": pd.concat([USERS, USERS.assign(w=5.0)])},
        rd.DataError,
        r"users\['w'\] has two weights for 2 users",
    ),
    (
        [1, 1, 2],
        {"weight_col": {1: 1}, "user_col": ["user_id", "w"]},
        rd.OptionError,
        "mapping, which has one key",
    ),
    (
        [1, 1, 2],
        {"weight_col": pd.Series([1.0, 2.0])},
        rd.OptionError,
        r"weight_col is a Series; .*series.to_dict\(\)",
    ),
    ([1, 1, 2], {"carry": "w"}, rd.ColumnError, "'w' of pred has the name of a result column"),
]


@pytest.mark.parametrize(("values", "options", "error", "words"), BAD)
def test_bad_input(values, options, error, words):
    with pytest.raises(error, match=words):
        rd.evaluate(
            TRUE.assign(w=values), PRED.assign(w=1), "recall", **{"weight_col": "w", **options}
        )


def test_names_of_results_are_refused():
    with pytest.raises(
        rd.ColumnError, match="weight_col='n_true' has the name of another result column"
    ):
        rd.evaluate(TRUE.assign(n_true=1), PRED, "recall", weight_col="n_true")
    with pytest.raises(
        rd.ColumnError, match="'n_effective' has the name of a column of the summary"
    ):
        rd.evaluate(TRUE, PRED.assign(n_effective=1), "recall", by="n_effective")


def test_check_names_bad_weights():
    found = rd.check(TRUE.assign(w=[1, -1, 1]), PRED, 1, weight_col="w")
    assert found["finding"].tolist()[0] == "negative or infinite weight"

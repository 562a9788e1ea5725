"""`summarize` against plain pandas: any grouping of per-user rows, with its interval."""

import math
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest
from registry.seeded import assert_close, frames, quietly
from scipy import stats

import recdf as rd
from recdf.stats.student import interval_quantile

TRUE, PRED = frames(5)
RESULT = quietly(
    rd.evaluate,
    TRUE,
    PRED,
    ["recall", "ndcg", "rprecision"],
    [1, 5],
    by="model",
    score_col="score",
    nan_score="last",
)
COLUMNS = {
    "recall@1": ("recall", 1),
    "recall@5": ("recall", 5),
    "ndcg@1": ("ndcg", 1),
    "ndcg@5": ("ndcg", 5),
}
COLUMNS["rprecision"] = ("rprecision", pd.NA)
KEY = ["model", "user_id"]  # of a list; who names the model in it may average over models
USERS = pd.DataFrame({"user_id": TRUE["user_id"].unique()})
USERS["segment"] = pd.Series(np.where(USERS["user_id"] % 3 == 0, "new", "old"), dtype="str").where(
    USERS["user_id"] > 0
)
USERS["age"] = USERS["user_id"] % 4
USERS["city"] = pd.Categorical(USERS["user_id"] % 2, categories=[1, 7, 0])


def half_interval(se, n, confidence=0.95):
    """Student's t below 100 units."""
    quantile = NormalDist().inv_cdf if n >= 100 else stats.t(max(n - 1, 1)).ppf
    return quantile(0.5 + confidence / 2) * se


def plain(per_user, by, confidence=0.95):
    """The same table by pandas' own group-by."""
    rows = []
    for labels, part in (
        per_user.groupby(by, sort=False, dropna=False, observed=True) if by else [((), per_user)]
    ):
        for column, (metric, k) in COLUMNS.items():
            mean, std, n = part[column].mean(), part[column].std(), part[column].count()
            se = std / n**0.5 if n and part[column].nunique() > 1 else np.nan
            half = half_interval(se, n, confidence)
            row = [*labels, metric, k, mean, std, se, mean - half, mean + half, n, len(part) - n]
            rows.append(row)
    names = ["metric", "k", "value", "std", "se", "ci_low", "ci_high", "n", "n_undefined"]
    return pd.DataFrame(rows, columns=[*by, *names])


def assert_same(found, expected, by):
    assert list(found.columns) == list(expected.columns)
    for name in [*by, "metric", "k", "n", "n_undefined"]:
        one, two = found[name].astype(object), expected[name].astype(object)
        assert one.where(one.notna(), None).tolist() == two.where(two.notna(), None).tolist()
    for name in ("value", "std", "se"):
        assert_close(found[name], expected[name], name)
    for name in ("ci_low", "ci_high"):  # quantiles of older SciPy have ten digits
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, atol=1e-9)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "by", [[], ["model"], ["segment"], ["model", "segment"], ["city", "age"], ["age", "model"]]
)
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_equals_pandas(by, confidence):
    joined = RESULT.per_user.merge(USERS, on="user_id", validate="many_to_one")
    joined["row"] = range(len(joined))
    options = {"metrics": list(COLUMNS), "confidence": confidence, "user_col": KEY}
    found = rd.summarize(joined, by=by, unit_col="row", **options)
    assert found.pop("n_users").tolist() == found["n"].tolist()
    assert_same(found, plain(joined, by, confidence), by)
    assert str(found["k"].dtype) == "Int64"
    assert str(found["n"].dtype) == str(found["n_undefined"].dtype) == "int64"
    assert isinstance(found.index, pd.RangeIndex)
    for name in by:
        assert found[name].dtype == joined[name].dtype


def test_equals_the_summary_of_evaluate():
    pd.testing.assert_frame_equal(rd.summarize(RESULT.per_user), RESULT.summary)
    pd.testing.assert_frame_equal(rd.summarize(RESULT.per_user, by="model"), RESULT.summary)
    assert rd.summarize(RESULT.per_user).attrs == RESULT.summary.attrs


def test_the_mean_is_that_of_the_single_call():
    for metric in (rd.recall, rd.ndcg):
        pred = PRED[PRED["model"] == "b"]
        value = quietly(metric, TRUE, pred, 5, score_col="score", nan_score="last")
        row = RESULT.summary.query(f"model == 'b' and metric == '{metric.name}' and k == 5")
        assert row["value"].item() == pytest.approx(value, abs=1e-15)


def test_the_metrics_are_found_again_after_a_join():
    """A join may lose attrs; then the names tell, and a joined number is no metric."""
    joined = RESULT.per_user.merge(USERS, on="user_id")
    joined.attrs = {}
    found = rd.summarize(joined, by="model")
    metrics = found.loc[:, ["metric", "k"]].drop_duplicates()
    at = [(name, None if pd.isna(k) else k) for name, k in metrics.itertuples(index=False)]
    assert at == [("recall", 1), ("recall", 5), ("ndcg", 1), ("ndcg", 5), ("rprecision", None)]
    found = rd.summarize(joined, by="segment", metrics=["rprecision", "age"], user_col=KEY)
    assert found["metric"].unique().tolist() == ["rprecision", "age"]
    assert found["k"].isna().all()


def test_a_null_is_a_group_of_its_own():
    joined = RESULT.per_user.merge(USERS, on="user_id")
    found = rd.summarize(joined, by="segment", metrics=["ndcg@5"], user_col=KEY)
    assert found["segment"].isna().sum() == 1
    assert (found["n"] + found["n_undefined"]).sum() == len(joined)


def test_groups_stand_in_order_of_first_appearance():
    joined = RESULT.per_user.merge(USERS, on="user_id").sample(frac=1, random_state=3)
    found = rd.summarize(joined, by=["age", "city"], metrics=["ndcg@5"], user_col=KEY)
    expected = joined[["age", "city"]].drop_duplicates()
    assert found[["age", "city"]].to_numpy().tolist() == expected.to_numpy().tolist()


def test_one_list_has_no_interval():
    found = rd.summarize(RESULT.per_user.iloc[[0]])
    row = found[found["metric"] == "ndcg"].iloc[0]
    assert row["n"] + row["n_undefined"] == 1
    assert found[["std", "se", "ci_low", "ci_high"]].isna().all(axis=None)


def test_no_defined_list_has_no_value():
    found = rd.evaluate({"u": [], "v": []}, {"u": ["a"]}, ["recall@1", "hitrate@1"]).summary
    assert found["value"].isna().tolist() == [True, False]
    assert found["n"].tolist() == [0, 2]
    assert found["n_undefined"].tolist() == [2, 0]
    assert found.loc[0, "std":"ci_high"].isna().all()


@pytest.mark.few(4)
@pytest.mark.parametrize("n", [2, 3, 12, 500])
@pytest.mark.parametrize("value", [1.0, 0.1, 0.0])
def test_equal_values_have_no_interval(n, value):
    """[1, 1] of three users, and 0.000 ± 0.000 of twelve, said that the mean is known."""
    table = pd.DataFrame(
        {"user_id": range(n), "n_true": 1, "n_pred": 1, "mrr@1": value, "w": 1.0 + np.arange(n) % 2}
    )
    for found in (
        rd.summarize(table),
        rd.summarize(table, weight_col="w"),
        rd.summarize(table, unit_col="user_id"),
    ):
        assert found["value"].item() == pytest.approx(value, rel=1e-15)
        assert found["std"].item() == 0
        assert found[["se", "ci_low", "ci_high"]].isna().all(axis=None)


def test_a_result_says_why_it_has_no_interval():
    true = {name: ["a"] for name in "uvw"}
    result = rd.evaluate(true, true, "mrr@1")
    assert result.summary[["se", "ci_low", "ci_high"]].isna().all(axis=None)
    for text in (repr(result), result._repr_html_(), str(rd.leaderboard(result))):
        assert "Where all lists have the same value there is no ±" in text
        assert "± 0.000" not in text


def test_one_user_with_all_the_weight_has_no_interval():
    """The mean of 1,537 lists was known to .001 where one user had nearly all the weight."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "user_id": range(1537),
            "n_true": 1,
            "mrr@1": rng.random(1537),
            "w": np.r_[1e6, np.ones(1536)],
        }
    )
    found = rd.summarize(table, weight_col="w").iloc[0]
    assert found["n_effective"] < 1.01
    assert np.isnan(found["ci_low"])


@pytest.mark.long
def test_small_samples_have_t_intervals_that_cover():
    runs, values = np.arange(1000), np.random.default_rng(1).normal(size=5000)
    table = pd.DataFrame({"model": runs.repeat(5), "user_id": np.tile(range(5), 1000)})
    found = rd.summarize(table.assign(n_true=1, **{"ndcg@5": values}), by="model")
    inside = found["ci_low"].le(0) & found["ci_high"].ge(0)
    assert len(found) == 1000
    assert inside.sum() >= stats.binom.ppf(0.005, 1000, 0.95)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.999])
def test_the_quantile_without_scipy_is_scipys(confidence):
    for df in (1, 2, 3, 4, 5, 10, 50, 97, 98):
        assert interval_quantile(df, confidence) == pytest.approx(
            stats.t(df).ppf(0.5 + confidence / 2), rel=1e-10
        )
    assert interval_quantile(99, confidence) == pytest.approx(stats.norm.ppf(0.5 + confidence / 2))


def test_small_spread_on_a_large_mean():
    values = 1e9 + np.array([0.0, 1.0, 2.0])
    found = rd.summarize(
        pd.DataFrame({"user_id": [1, 2, 3], "n_true": 1, "n_pred": 1, "dcg@5": values})
    ).iloc[0]
    assert found["std"] == pytest.approx(1.0, rel=1e-12)
    assert found["value"] == 1e9 + 1


def test_an_empty_table():
    empty = RESULT.per_user.iloc[:0]
    assert len(rd.summarize(empty, by="model")) == 0
    found = rd.summarize(empty, by=[])
    assert found["n"].eq(0).all()
    assert found["value"].isna().all()


def test_the_table_is_not_changed():
    before = RESULT.per_user.copy(deep=True)
    rd.summarize(RESULT.per_user, by="model")
    pd.testing.assert_frame_equal(RESULT.per_user, before)
    assert RESULT.per_user.attrs == before.attrs


# --------------------------------------------------------------------------------------------------
# refusals


@pytest.mark.parametrize("by", [None, [], "segment"])
def test_a_join_that_repeats_lists_is_refused(by):
    twice = pd.concat([USERS, USERS[:2].assign(segment="both")])
    joined = RESULT.per_user.merge(twice, on="user_id")
    with pytest.raises(rd.DataError, match=r"4 rows of per_user repeat a list.*many_to_one"):
        rd.summarize(joined, by=by, metrics=["ndcg@5"])


def test_the_same_users_of_several_models_are_no_repetition():
    assert RESULT.per_user["user_id"].duplicated().any()
    assert len(rd.summarize(RESULT.per_user, by="model")) == len(RESULT.summary)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"by": "segmnt"}, rd.ColumnError, "'segmnt'"),
        ({"by": ["model", "k"]}, rd.ColumnError, "'k'"),
        ({"metrics": ["ndgc@5"]}, rd.ColumnError, "did you mean 'ndcg@5'"),
        ({"metrics": ["model"]}, rd.DataError, r"per_user\['model'\] holds .*; expected numbers"),
        ({"metrics": ["infinite"]}, rd.DataError, r"per_user\['infinite'\] is infinite in"),
        ({"user_col": ["model", "null"]}, rd.NullKeyError, r"per_user\['null'\] is null in 1 of"),
        ({"confidence": 95}, rd.OptionError, "confidence=95"),
        ({"confidence": 1.0}, rd.OptionError, "confidence=1.0"),
    ],
)
def test_refusals(options, error, words):
    table = RESULT.per_user.assign(infinite=np.inf, null=range(len(RESULT.per_user)))
    table["null"] = table["null"].where(table["null"] > 0)
    with pytest.raises(error, match=words):
        rd.summarize(table, **options)


def test_a_table_without_metrics_is_refused():
    with pytest.raises(
        rd.ColumnError, match=r"names of your own are lost.*metrics=; .* \['quality', 'age'\]"
    ):
        rd.summarize(pd.DataFrame({"user_id": ["u"], "n_true": [1], "quality": [0.5], "age": [2]}))


def test_a_join_from_the_segments_that_repeats_lists_is_refused_by_the_list_key() -> None:
    result = rd.evaluate({"u": ["a"], "v": ["b"]}, {"u": ["a"], "v": ["a"]}, "mrr@1")
    twice = pd.DataFrame({"user_id": ["u", "u", "v"], "segment": ["new", "old", "old"]})
    joined = twice.merge(
        result.per_user, on="user_id"
    )  # the segment stands before n_true, and attrs are lost
    with pytest.raises(rd.DataError, match="repeat a list"):
        rd.summarize(joined, by="segment", user_col="user_id")
    with pytest.raises(rd.ColumnError, match="'user'"):
        rd.summarize(joined, by="segment", user_col="user")
    joined.attrs["recdf"] = result.spec
    with pytest.raises(rd.DataError, match="repeat a list"):
        rd.summarize(joined, by="segment")


def test_lists_of_one_user_are_not_independent():
    """The standard error of an intercept with clusters, by statsmodels; the mean is that of the
    lists."""
    sm = pytest.importorskip("statsmodels.regression.linear_model")
    rng = np.random.default_rng(4)
    user = rng.integers(0, 30, 200)
    table = pd.DataFrame(
        {
            "user_id": user,
            "session_id": np.arange(200),
            "n_true": 1,
            "day": rng.integers(0, 3, 200),
            "ctr@10": np.where(rng.random(200) < 0.1, np.nan, rng.normal(user % 5, 1)),
        }
    )
    found = rd.summarize(
        table, ["day"], user_col=["user_id", "session_id"], unit_col="user_id"
    ).set_index("day")
    default = rd.summarize(table, ["day"], user_col=["user_id", "session_id"])
    pd.testing.assert_frame_equal(found.reset_index(), default)
    pd.testing.assert_frame_equal(rd.summarize(table, ["day"], unit_col="user_id"), default)
    plain_found = rd.summarize(table, ["day"], unit_col="session_id").set_index("day")
    assert plain_found["n_users"].tolist() == plain_found["n"].tolist()
    for day, part in table.dropna(subset="ctr@10").groupby("day"):
        fit = sm.OLS(part["ctr@10"], np.ones(len(part))).fit(
            cov_type="cluster", cov_kwds={"groups": part["user_id"]}
        )
        assert found.loc[day, "se"] == pytest.approx(float(fit.bse.iloc[0]), rel=1e-10)
        assert found.loc[day, "value"] == pytest.approx(part["ctr@10"].mean(), rel=1e-12)
        assert (found.loc[day, "n"], found.loc[day, "n_users"]) == (
            len(part),
            part["user_id"].nunique(),
        )
        lists = part["user_id"].value_counts().to_numpy()
        half = half_interval(found.loc[day, "se"], int(lists.sum() ** 2 / (lists**2).sum() + 1e-9))
        assert found.loc[day, "ci_high"] == pytest.approx(found.loc[day, "value"] + half, rel=1e-12)
    assert (found["std"] == plain_found["std"]).all()


def test_one_unit_has_no_error_and_a_null_unit_is_refused():
    table = pd.DataFrame(
        {"user_id": ["a", "a"], "session_id": [1, 2], "n_true": 1, "ctr@1": [0.0, 1.0]}
    )
    found = rd.summarize(table, [], unit_col="user_id").iloc[0]
    assert (found["value"], found["n"], found["n_users"]) == (0.5, 2, 1)
    assert np.isnan(found["se"])
    with pytest.raises(rd.NullKeyError, match="null in 1 of 2 rows"):
        rd.summarize(table.assign(user_id=["a", None]), [], unit_col="user_id")
    with pytest.raises(rd.ColumnError, match="no column 'user'"):
        rd.summarize(table, [], unit_col="user")
    with pytest.raises(rd.ColumnError, match="n_users"):
        rd.summarize(
            table.assign(n_users=1),
            "n_users",
            unit_col="user_id",
            user_col=["user_id", "session_id"],
        )


def test_units_of_an_empty_table():
    table = pd.DataFrame({"user_id": ["a"], "session_id": [1], "n_true": 1, "ctr@1": [0.0]}).iloc[
        :0
    ]
    found = rd.summarize(table, [], unit_col="user_id").iloc[0]
    assert (found["n"], found["n_users"]) == (0, 0)


@pytest.mark.long
def test_sessions_of_a_user_are_not_independent_in_a_result():
    """The summary of evaluate takes lists for independent and says so; what is made of a result
    does not."""
    rng = np.random.default_rng(3)
    true = pd.DataFrame(
        {"user_id": np.repeat(np.arange(30), 40), "session_id": np.tile(np.arange(40), 30)}
    )
    true["item_id"] = true["user_id"] % 2
    pred = pd.concat(
        [
            true.assign(model=m, item_id=p)
            for m, p in (("a", 0), ("b", rng.integers(0, 2, len(true))))
        ]
    )
    key = ["user_id", "session_id"]
    result = rd.evaluate(true, pred, "hitrate@1", by="model", user_col=key)
    assert result.spec["interval_unit"] == "list"
    assert "takes the lists of one user_id for independent" in repr(result)
    assert "takes the lists of one user_id for independent" in result._repr_html_()
    found = rd.summarize(result).set_index("model")
    pd.testing.assert_frame_equal(rd.summarize(result.per_user).set_index("model"), found)
    plain_table = result.per_user.copy()
    plain_table.attrs = {}
    again = rd.summarize(plain_table, by="model", user_col=["model", *key]).set_index("model")
    pd.testing.assert_frame_equal(again, found, check_flags=False)
    assert found["n_users"].tolist() == [30, 30]
    users = result.per_user.groupby(["model", "user_id"])["hitrate@1"].mean().unstack("model")
    for model in ("a", "b"):  # with equal numbers of lists the users' means are a sample
        assert found.loc[model, "se"] == pytest.approx(users[model].std() / 30**0.5)
        half = stats.t(29).ppf(0.975) * found.loc[model, "se"]
        assert found.loc[model, "ci_high"] == pytest.approx(users[model].mean() + half)
    assert found.loc["a", "se"] > 5 * result.summary.set_index("model").loc["a", "se"]
    board = rd.leaderboard(result)
    assert board.frame.set_index("model")["ci_high"].to_dict() == pytest.approx(
        found["ci_high"].to_dict()
    )
    assert any(
        "do not take the lists of one user_id for independent" in note for note in board.notes
    )
    one = rd.evaluate(
        true[["user_id", "item_id"]].drop_duplicates(),
        true[["user_id", "item_id"]].drop_duplicates(),
        "mrr@1",
    )
    assert "interval_unit" not in one.spec
    assert "independent" not in repr(one)


def test_degrees_of_freedom_of_weights():
    """e = 25/11 gives one degree of freedom, whose quantile of .975 is tan(.475 π): se is
    √(3/2 · (9 · .16 + .36 + .36))/5 = .36. Units of 2 + 1 rows have e = 9/5, and so none."""
    table = pd.DataFrame({"user_id": [1, 2, 3], "n_true": 1, "n_pred": 1, "ndcg@10": [0.0, 1, 1]})
    table = table.assign(w=[3.0, 1, 1], of=[1, 1, 2])
    options = {"by": [], "user_col": "user_id"}
    row = rd.summarize(table, weight_col="w", **options).iloc[0]
    assert row["ci_high"] - row["value"] == pytest.approx(math.tan(0.475 * math.pi) * 0.36)
    assert rd.summarize(table, unit_col="of", **options)["ci_high"].isna().all()


def test_columns_that_are_not_there_are_named():
    per_user = pd.DataFrame({"user_id": [1, 2], "n_true": 1, "ndcg@10": [0.5, 0.2]})
    with pytest.raises(rd.ColumnError, match="per_user has no column 'user'"):
        rd.summarize(per_user, user_col="user")
    for none in ([], ()):
        with pytest.raises(rd.OptionError, match="metrics is empty"):
            rd.summarize(per_user, metrics=none)

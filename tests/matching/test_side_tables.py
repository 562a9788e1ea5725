"""Side tables at the door, metrics within groups of items, and how metrics with side tables are
called."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from close import close
from registry.seeded import distinct, quietly

import recdf as rd

# Examples are small, so that side tables lack much of them.
pytestmark = pytest.mark.filterwarnings("ignore::recdf.UnknownWarning")

TRUE = pd.DataFrame({"user_id": [1, 1, 2, 3], "item_id": ["a", "b", "c", "d"]})
PRED = pd.DataFrame({"user_id": [1, 1, 2, 2], "item_id": ["a", "x", "c", "b"]})
LOG = pd.DataFrame({"user_id": [1, 2, 2], "item_id": ["a", "a", "c"]})
ITEMS = pd.DataFrame({"item_id": list("abcdx"), "category": ["k", "l", "k", "l", None]})


# ------------------------------------------------------------------------------------------------
# the door


def test_ids_that_cannot_match_are_refused():
    with pytest.raises(rd.IdTypeError, match=r"log\['item_id'\]"):
        rd.popularity(LOG.assign(item_id=[1, 2, 3]), PRED)
    with pytest.raises(rd.IdTypeError, match=r"log\['user_id'\]"):
        rd.unseen(LOG.assign(user_id=["1", "2", "2"]), PRED)
    # Popularity matches no user of the log with a list.
    by_string, by_number = LOG.assign(user_id=["1", "2", "2"]), LOG.assign(user_id=[1, 2, 2])
    assert rd.popularity(by_string, PRED) == rd.popularity(by_number, PRED)
    with pytest.raises(rd.IdTypeError, match=r"items\['item_id'\]"):
        rd.coverage([1, 2], PRED)
    with pytest.raises(rd.IdTypeError, match=r"base\['item_id'\]"):
        rd.unexpectedness({1: [4]}, PRED)
    with pytest.raises(rd.IdTypeError, match=r"aspects\['item_id'\]"):
        rd.a_ndcg(TRUE, PRED, {1: [[4]]})
    with pytest.raises(rd.IdTypeError, match=r"popular\['item_id'\]"):
        rd.serendipity(TRUE, PRED, log=LOG, items=ITEMS, features="category", popular=[7])


def test_null_ids_are_refused_or_dropped():
    holes = pd.DataFrame({"user_id": [1, 2, None], "item_id": ["a", None, "c"]}).astype(
        {"user_id": "Int64"}
    )
    with pytest.raises(rd.NullKeyError, match="log has null ids: 1 in log"):
        rd.popularity(holes, PRED)
    result = rd.evaluate(TRUE, PRED, "popularity", log=holes, null_keys="drop")
    assert result.spec["counts"]["log_null_keys"] == 2
    with pytest.raises(rd.NullKeyError, match="items"):
        rd.coverage(["a", None], PRED)


def test_a_side_table_is_read_as_it_is_beside_others():
    base = pd.DataFrame({"user_id": [1, 2, 2], "item_id": ["x", "c", "a"]})
    alone = rd.evaluate(TRUE, PRED, "unexpectedness", base=base).per_user["unexpectedness@10"]
    features = pd.DataFrame({"f": [1, 2]}, index=["b", "a"])
    others = {"items": ITEMS, "log": LOG, "features": features, "popular": ["d"]}
    beside = rd.evaluate(TRUE, PRED, "unexpectedness", base=base, **others).per_user[
        "unexpectedness@10"
    ]
    assert alone.to_list() == close([0.5, 0.5, np.nan])
    assert beside.to_list() == close(alone.to_list())


def test_column_options_hold_for_side_tables():
    names = {"user_id": "u", "item_id": "i"}
    options = {"user_col": "u", "item_col": "i"}
    plain = rd.evaluate(TRUE, PRED, ["surprisal", "coverage", "categories"], log=LOG, items=ITEMS)
    other = rd.evaluate(
        TRUE.rename(columns=names),
        PRED.rename(columns=names),
        ["surprisal", "coverage", "categories"],
        log=LOG.rename(columns=names),
        items=ITEMS.rename(columns=names),
        **options,
    )
    pd.testing.assert_frame_equal(plain.summary, other.summary)
    with pytest.raises(rd.ColumnError, match="log has no column 'u'"):
        rd.popularity(LOG, PRED.rename(columns=names), **options)


def test_arrow_tables():
    arrow = {name: pa.table(frame) for name, frame in (("log", LOG), ("items", ITEMS))}
    metrics = ["surprisal", "coverage", "categories", "calibration"]
    frames = rd.evaluate(TRUE, PRED, metrics, log=LOG, items=ITEMS)
    tables = rd.evaluate(pa.table(TRUE), pa.table(PRED), metrics, **arrow)
    assert tables.summary["value"].tolist() == close(frames.summary["value"].tolist())
    assert rd.unexpectedness(pa.table(PRED), pa.table(PRED)) == 0.0


def test_an_index_is_never_read_but_that_of_features():
    log = LOG.set_index(pd.Index(["c", "c", "c"], name="item_id"), drop=False).rename_axis(
        "whatever"
    )
    assert rd.popularity(log, PRED) == rd.popularity(LOG, PRED)
    items = ITEMS.set_index(pd.Index([7] * 5))
    assert rd.evaluate(TRUE, PRED, "categories", items=items).summary.equals(
        rd.evaluate(TRUE, PRED, "categories", items=ITEMS).summary
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["big", "negative", "category", "date", "uuid"])
def test_ids_of_every_kind(kind):
    import uuid

    def of(number):
        return {
            "big": 2**60 + number,
            "negative": -(10**12) * number,
            "category": f"c{number}",
            "date": pd.Timestamp("2026-01-01") + pd.Timedelta(days=number),
            "uuid": uuid.UUID(int=number),
        }[kind]

    def labelled(frame):
        frame = frame.assign(item_id=pd.Series([of("abcdx".index(i)) for i in frame["item_id"]]))
        return frame.astype({"item_id": "category"}) if kind == "category" else frame

    metrics = [
        "surprisal",
        "unseen",
        "coverage",
        "categories",
        "aplt(head=0.5)",
        "pop_rsp(head=0.5)",
    ]
    plain = rd.evaluate(TRUE, PRED, metrics, k=2, log=LOG, items=ITEMS).summary
    other = rd.evaluate(
        *map(labelled, (TRUE, PRED)), metrics, k=2, log=labelled(LOG), items=labelled(ITEMS)
    ).summary
    assert other["value"].tolist() == close(plain["value"].tolist())


def test_repeated_catalogue_rows_are_refused_where_they_have_two_answers():
    twice = pd.concat([ITEMS, ITEMS])
    assert rd.coverage(twice, PRED) == rd.coverage(ITEMS, PRED)
    with pytest.raises(rd.DataError, match="5 repeated ids"):
        rd.categories(PRED, items=twice)


# -- the records


def test_signatures():
    surprisal = list(inspect.signature(rd.surprisal).parameters)
    assert surprisal[:6] == ["log", "pred", "k", "share_of", "normalize", "divisor"]
    assert list(inspect.signature(rd.a_ndcg).parameters)[:5] == [
        "true",
        "pred",
        "aspects",
        "k",
        "alpha",
    ]
    coverage = inspect.signature(rd.coverage).parameters
    assert list(coverage)[:3] == ["items", "pred", "k"]
    assert coverage["k"].default is None
    serendipity = inspect.signature(rd.serendipity).parameters
    assert list(serendipity)[:3] == ["true", "pred", "k"]
    assert {"log", "features", "items", "popular", "threshold", "users"} <= set(serendipity)
    assert serendipity["log"].kind is inspect.Parameter.KEYWORD_ONLY
    assert "log" not in inspect.signature(rd.recall).parameters


def test_records_pickle_and_print():
    for metric in (rd.surprisal, rd.coverage, rd.a_ndcg):
        assert pickle.loads(pickle.dumps(metric)) is metric
    table = rd.metrics_table().set_index("metric")
    assert table.loc["surprisal", "needs"] == "log"
    assert (
        table.loc["a_ndcg", "parameters"]
        == "alpha=0.5, ideal=greedy, discount=log, p=0.5, aspect_col=None"
    )
    assert table.loc["ild", "aliases"] == "diversity"


def test_arguments_bind_as_in_python():
    assert rd.surprisal(log=LOG, pred=PRED, k=2) == rd.surprisal(LOG, PRED, 2)
    with pytest.raises(TypeError, match=r"surprisal\(\) is missing the argument 'pred'"):
        rd.surprisal(LOG)
    with pytest.raises(TypeError, match=r"surprisal\(\): multiple values for argument 'k'"):
        rd.surprisal(LOG, PRED, 2, k=2)
    with pytest.raises(TypeError, match=r"surprisal\(\): too many positional arguments"):
        rd.surprisal(LOG, PRED, 2, "users")
    with pytest.raises(
        rd.OptionError, match=r"surprisal has no option 'bse'; did you mean 'users'\?"
    ):
        rd.surprisal(LOG, PRED, bse="users")
    with pytest.raises(rd.OptionError, match="recall has no option 'log'"):
        rd.recall(TRUE, PRED, log=LOG)
    with pytest.raises(rd.OptionError, match=r"^surprisal@10 needs log="):
        rd.surprisal(None, PRED)


def test_true_may_be_none_where_nothing_asks_for_it():
    result = rd.evaluate(None, PRED, ["unseen", "coverage"], log=LOG, items=ITEMS)
    assert result.per_user["user_id"].tolist() == [1, 2]
    assert result.per_user["n_true"].tolist() == [0, 0]
    with pytest.raises(rd.OptionError, match=r"^recall@10 needs true="):
        rd.evaluate(None, PRED, ["unseen", "recall"], log=LOG)


def test_a_table_is_worked_out_once_however_many_metrics_ask(monkeypatch):
    from recdf.matching.side_tables import catalogue as logs
    from recdf.metrics import diversity as similarities

    calls = {"pairs": 0, "similarity": 0}
    pairs, similarity = logs.LogCodes.pairs.func, similarities.mean_similarity

    def counted_pairs(self):
        calls["pairs"] += 1
        return pairs(self)

    def counted_similarity(*args):
        calls["similarity"] += 1
        return similarity(*args)

    monkeypatch.setattr(logs.LogCodes.pairs, "func", counted_pairs)
    monkeypatch.setattr(similarities, "mean_similarity", counted_similarity)
    metrics = ["popularity", "surprisal", "unseen", "arp_ratio", "calibration", "ild", "ils"]
    quietly(
        rd.evaluate, TRUE, PRED, metrics, k=[1, 2, 3], log=LOG, items=ITEMS, features="category"
    )
    assert calls == {"pairs": 1, "similarity": 3}


# -- within groups of items

METRICS = [
    "recall",
    "precision",
    "ndcg",
    "mapr",
    "mrr",
    "hits",
    "first_rank",
    "ild(similarity=hamming)",
    "coverage",
]


def grouped_items():
    return pd.DataFrame(
        {"item_id": range(14), "category": np.array([10, 20, 30])[np.arange(14) % 3], "other": 1}
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("users", ["true", "pred", "both", "all"])
@pytest.mark.parametrize("by", [None, "model"])
def test_within_a_group_is_with_the_truth_of_the_group(users, by):
    true, pred = distinct(8)
    true = true.assign(relevance=true["relevance"] + 0.25)
    if by is None:
        pred = pred[pred["model"] == "a"].drop(columns="model")
    items = grouped_items()
    options = {"k": [1, 5], "users": users, "by": by, "relevance_col": "relevance"}
    whole = quietly(
        rd.evaluate, true, pred, METRICS, items=items, features="other", **options
    ).summary
    found = quietly(
        rd.evaluate,
        true,
        pred,
        METRICS,
        items=items,
        features="other",
        item_by="category",
        **options,
    )
    summary = found.summary
    keys = [] if by is None else [by]
    assert list(summary.columns) == [*keys, "category", *whole.columns[len(keys) :]]
    assert summary["category"].dtype == "Int64"
    every = summary[summary["category"].isna()].drop(columns="category").reset_index(drop=True)
    pd.testing.assert_frame_equal(every, whole)
    for category, part in summary.dropna(subset="category").groupby("category"):
        inside = true[true["item_id"].isin(items.loc[items["category"] == category, "item_id"])]
        alone = quietly(rd.evaluate, inside, pred, METRICS[:-2], **options).summary
        pd.testing.assert_frame_equal(
            part.drop(columns="category").reset_index(drop=True), alone, rtol=1e-12
        )
    assert found.spec["item_by"] == "category"
    assert found.spec["counts"]["true_without_category"] == 0


def test_money_within_a_group():
    true, pred = TRUE.assign(price=[1.0, 2, 4, 8]), PRED.assign(price=[1.0, 2, 4, 8])
    found = rd.evaluate(
        true, pred, "revenue", k=2, items=ITEMS, item_by="category", value_col="price"
    ).summary
    assert found["category"].tolist()[1:] == ["k", "l"]
    assert found["value"].tolist() == close([(1 + 4) / 3, (1 + 4) / 2, 0.0])


def test_items_of_several_groups_count_in_each():
    items = ITEMS.assign(category=["k|l", "l", "k", "l", None])
    found = rd.evaluate(
        TRUE, PRED, "hits", k=2, items=items, item_by="category", users="all"
    ).summary
    assert found.loc[found["category"] == "l", "value"].tolist() == close(
        [1 / 3]
    )  # a alone, of three lists
    assert found.loc[found["category"] == "k", "value"].tolist() == close(
        [2 / 2]
    )  # a and c; user 3 has none in true


def test_bad_groups_are_refused():
    with pytest.raises(rd.OptionError, match="item_by='category' needs items="):
        rd.evaluate(TRUE, PRED, "recall", item_by="category")
    with pytest.raises(rd.ColumnError, match="items has no column 'categry'"):
        rd.evaluate(TRUE, PRED, "recall", items=ITEMS, item_by="categry")
    with pytest.raises(
        rd.ColumnError, match="item_by='value' is also a column of by or of the summary"
    ):
        rd.evaluate(TRUE, PRED, "recall", items=ITEMS.assign(value=1), item_by="value")
    with pytest.raises(rd.ColumnError, match="item_by='m' is also a column of by"):
        rd.evaluate(TRUE, PRED.assign(m=1), "recall", items=ITEMS.assign(m=1), by="m", item_by="m")
    with pytest.raises(rd.OptionError, match="tp@10 within groups of items needs items="):
        rd.evaluate(TRUE, PRED, "confusion", items=ITEMS, item_by="category", judged_only=True)


def test_results_with_groups_go_to_parquet_and_back(tmp_path):
    result = rd.evaluate(TRUE, PRED, ["recall", "coverage"], items=ITEMS, item_by="category")
    result.to_parquet(tmp_path / "result")
    assert rd.read_parquet(tmp_path / "result") == result


@pytest.mark.parametrize("metric", ["ndcg@2", "unexpectedness@2"])
def test_a_base_is_checked_whether_a_metric_reads_it_or_not(metric):
    true = pd.DataFrame({"user_id": [1], "item_id": [1]})
    pred = pd.DataFrame({"user_id": [1, 1], "item_id": [1, 2], "rank": [1, 2]})
    for base, error, says in (
        ({"user": [1], "item_id": [1]}, rd.ColumnError, "base has no column 'user_id'"),
        ({"user_id": [1, None], "item_id": [1, 2]}, rd.NullKeyError, "base has null ids: 1"),
        ({"user_id": ["x"], "item_id": [1]}, rd.IdTypeError, "string ids"),
        ({"user_id": [1], "item_id": [1], "rank": ["x"]}, rd.DataError, "expected numbers"),
    ):
        with pytest.raises(error, match=says):
            rd.evaluate(true, pred, metric, base=pd.DataFrame(base))
    with pytest.warns(rd.NoOverlapWarning, match="base= has no item of true or pred"):
        rd.evaluate(true, pred, metric, base=pd.DataFrame({"user_id": [1], "item_id": [9]}))


def test_a_base_of_several_recommenders_is_warned_of(tmp_path):
    """Its lists are merged, as those of such a `pred` are; also where it is read in parts."""
    true = pd.DataFrame({"user_id": [1, 2], "item_id": [1, 2]})
    pred = pd.DataFrame({"user_id": [1, 1, 2], "item_id": [1, 2, 2], "score": [3.0, 2.0, 1.0]})
    base = pd.concat([pred.assign(model="a"), pred.iloc[:2].assign(model="b", score=9.0)])
    for name, frame in (("true", true), ("pred", pred)):
        frame.to_parquet(tmp_path / f"{name}.parquet")
    files = tmp_path / "true.parquet", tmp_path / "pred.parquet"
    warning = r"rows: 2 of base; .*if base holds several recommenders, pass the rows of one"
    calls = (
        lambda base, **options: rd.evaluate(true, pred, "overlap@2", base=base, **options),
        lambda base, **options: rd.evaluate_parquet(*files, "overlap@2", base=base, **options),
    )
    for call in calls:
        with pytest.warns(rd.DuplicateWarning, match=warning):
            assert call(base).spec["counts"] == {"base_duplicates": 2}
        assert call(base[base["model"] == "a"]).spec["counts"] == {}
        with pytest.raises(rd.DuplicateError, match="base has 2 repeated"):
            call(base, duplicates="raise")
    with pytest.warns(rd.DuplicateWarning, match=warning):
        rd.overlap(base, pred, k=2)

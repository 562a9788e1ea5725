"""A score that is not called `score`, swapped frames, and columns with other names: what a new user
meets first."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from quick import few

import recdf as rd

TRUE = pd.DataFrame({"user_id": [1, 2], "item_id": ["a", "c"]})
PRED = pd.DataFrame(
    {"user_id": [1, 1, 1, 2, 2, 2], "item_id": list("xyazwc"), "prediction": [0.1, 0.2, 0.9] * 2}
)


def written(folder, true=TRUE, pred=PRED):
    true.to_parquet(folder / "true.parquet", index=False)
    pred.to_parquet(folder / "pred.parquet", index=False)
    return folder / "true.parquet", folder / "pred.parquet"


# -- what orders the lists


NAMES = [
    "prediction",
    "Score",
    "est",
    "rating",
    "predicted_rating",
    "rec_score",
    "probability",
    "predictedRating",
]
NAMES += ["y_hat", "ALS score", "pred"]


@pytest.mark.long
@pytest.mark.parametrize("name", few(NAMES, ["prediction", "ALS score"]))
def test_a_score_of_another_name_is_named_with_the_argument(name, tmp_path):
    """The relevant item is last by rows and first by the score: mrr is 1/3 where it should be 1."""
    pred = PRED.rename(columns={"prediction": name})
    words = (
        rf"pred\['{name}'\] says otherwise in 2 lists: pass score_col='{name}', or score_col=False"
    )
    calls = [
        lambda **options: rd.evaluate(TRUE, pred, "mrr@3", **options).summary["value"][0],
        lambda **options: rd.mrr(TRUE, pred, 3, **options),
        lambda **options: rd.mrr.per_user(TRUE, pred, 3, **options)["mrr@3"].mean(),
        lambda **options: rd.evaluate_parquet(*paths, "mrr@3", **options).summary["value"][0],
        lambda **options: rd.evaluate_parquet(*paths, "mrr@3", buckets=3, **options).summary[
            "value"
        ][0],
    ]
    paths = written(tmp_path, pred=pred)
    for call in calls if name in ("prediction", "ALS score") else calls[:1]:
        with pytest.warns(rd.OrderWarning, match=words) as found:
            assert call() == pytest.approx(1 / 3)
        assert [one.filename for one in found] == [__file__]
        assert call(score_col=name) == 1.0
        assert call(score_col=False) == pytest.approx(1 / 3)
    (finding,) = rd.check(TRUE, pred, 2).query("finding.str.contains('not used')").itertuples()
    assert (finding.severity, f"score_col={name!r}" in finding.effect) == ("warning", True)


@pytest.mark.parametrize("name", ["Rank", "position", "pos", "rec_rank"])
def test_a_rank_of_another_name_is_named_with_the_argument(name):
    pred = PRED.drop(columns="prediction").assign(**{name: [3, 2, 1] * 2})
    with pytest.warns(rd.OrderWarning, match=rf"pass rank_col='{name}'"):
        rd.evaluate(TRUE, pred, "mrr@3")
    assert rd.mrr(TRUE, pred, 3, rank_col=name) == 1.0


def test_rows_in_the_order_of_the_score_are_no_warning():
    """Also with equal scores, lists whose rows are interleaved, and where another column has the
    order of the rows."""
    best = PRED.sort_values(["prediction", "item_id"], ascending=False)
    good = [
        best,
        best.assign(prediction=[5, 5, 3, 3, 1, 1]),
        PRED.assign(position=[1, 2, 3] * 2),
        PRED[["user_id", "item_id"]],
        PRED.drop(columns="prediction").assign(score=[1, 2, 4] * 2),
    ]
    others = ["price", "timestamp", "place_id", "rating_id", "predicate", "estonia"]
    good += [PRED.rename(columns={"prediction": name}) for name in others]
    good += [
        PRED.assign(prediction=["b", "c", "a"] * 2),
        PRED.assign(prediction=[False, False, True] * 2),
    ]
    for pred in good:
        rd.evaluate(TRUE, pred, "mrr@3")
    rd.evaluate(TRUE, PRED, "mrr@3", like=rd.Convention("rows", order="row"))


@pytest.mark.long
def test_swapped_frames(tmp_path):
    recs = PRED.rename(columns={"prediction": "score"})
    for true, pred in ((recs, TRUE), (TRUE, TRUE.assign(relevance=1.0))):
        for call in (
            lambda true=true, pred=pred: rd.evaluate(true, pred, "mrr@3"),
            lambda true=true, pred=pred: rd.mrr(true, pred, 3),
            lambda true=true, pred=pred: rd.evaluate_parquet(
                *written(tmp_path, true, pred), "mrr@3", buckets=2
            ),
        ):
            with pytest.warns(rd.OrderWarning, match=r"are they swapped\? true comes first"):
                call()
        assert "true and pred look swapped" in rd.check(true, pred, 2)["finding"].tolist()
    assert "true and pred look swapped" not in rd.check(TRUE, recs, 2)["finding"].tolist()
    rd.evaluate(recs, TRUE, "mrr@3", relevance_col="score")  # the score of true is its relevance


def test_check_names_rows_of_true_that_stand_in_the_log():
    log = pd.DataFrame({"user_id": [1, 2, 2], "item_id": ["a", "z", "q"]})
    found = rd.check(TRUE, PRED, 2, log=log, score_col="prediction").set_index("finding")
    assert found.loc["relevant items already in the log", ["count", "share"]].tolist() == [1, 0.5]
    judged = TRUE.assign(
        relevance=[0.0, 1.0]
    )  # what is judged as not relevant may stand in the log
    found = rd.check(judged, PRED, 2, log=log, score_col="prediction")
    assert "relevant items already in the log" not in found["finding"].tolist()


# -- columns with other names


@pytest.mark.parametrize(
    ("rename", "argument"),
    [
        (
            {"item_id": "movieId"},
            "pass item_col='movieId' if all frames call it so, else rename it in true",
        ),
        ({"item_id": "ASIN"}, "pass item_col='ASIN'"),
        ({"user_id": "userId"}, "pass user_col='userId'"),
        ({"user_id": "customer_id"}, "pass user_col='customer_id'"),
        ({"user_id": "uid", "item_id": "iid"}, "pass user_col='uid'"),
        ({"item_id": "products"}, "pass item_col='products'"),
    ],
)
def test_a_missing_id_names_the_argument(rename, argument, tmp_path):
    true, pred = TRUE.rename(columns=rename), PRED.rename(columns=rename)
    for call in (
        lambda: rd.evaluate(true, pred, "mrr@3"),
        lambda: rd.mrr(true, pred, 3),
        lambda: rd.check(true, pred),
        lambda: rd.evaluate_parquet(*written(tmp_path, true, pred), "mrr@3", buckets=2),
    ):
        with pytest.raises(rd.ColumnError) as error:
            call()
        assert argument in str(error.value)
        assert "did you mean" not in str(error.value)


def test_a_user_is_not_suggested_for_an_item():
    with pytest.raises(rd.ColumnError) as error:
        rd.evaluate(TRUE.rename(columns={"item_id": "what"}), PRED, "mrr@3")
    assert "user_id'?" not in str(error.value)


@pytest.mark.parametrize(
    ("option", "have", "words"),
    [
        ({"score_col": "score"}, "pred", "pass score_col='prediction'"),
        ({"relevance_col": "relevance"}, "true", "pass relevance_col='Rating'"),
    ],
)
def test_other_missing_columns_name_the_argument(option, have, words):
    with pytest.raises(rd.ColumnError, match=f"{have} has no column .*{words}$"):
        rd.evaluate(TRUE.assign(Rating=1.0), PRED, "mrr@3", **option)


def test_wide_frames_say_what_to_do_and_the_advice_is_right():
    ranks = pd.DataFrame(
        {"user_id": [1, 2], "top1": ["x", "z"], "top2": ["a", "w"], "top3": ["y", "c"]}
    )
    scores = pd.DataFrame({"user_id": [1, 2], "a": [0.5, 0.1], "x": [0.9, 0.2], "c": [0.1, 0.15]})
    with pytest.raises(rd.ColumnError, match=r"pass wide=\['top1', 'top2', 'top3'\], best first"):
        rd.evaluate(TRUE, ranks, "mrr@3")
    assert rd.mrr(TRUE, ranks, 3, wide=["top1", "top2", "top3"]) == pytest.approx(
        (1 / 2 + 1 / 3) / 2
    )
    with pytest.raises(rd.ColumnError, match=r"make a row of each: pred\.melt") as error:
        rd.evaluate(TRUE, scores, "mrr@3")
    long = eval(str(error.value).partition("each: ")[2], {"pred": scores})
    assert rd.mrr(TRUE, long, 3) == pytest.approx((1 / 2 + 1 / 2) / 2)
    matrix = scores.set_index("user_id").rename_axis(None)
    with pytest.raises(rd.ColumnError, match=r"pass pred.rename_axis\('user_id'\).reset_index\(\)"):
        rd.evaluate(TRUE, matrix, "mrr@3")


# -- kinds of input


def test_lazy_frames_are_collected():
    true, pred = (pl.from_pandas(frame).lazy() for frame in (TRUE, PRED.drop(columns="prediction")))
    items = pl.DataFrame({"item_id": list("acxyzw")}).lazy()
    result = rd.evaluate(
        true,
        pred,
        ["mrr@3", "coverage@3"],
        items=items,
        users=pl.DataFrame({"user_id": [1]}).lazy(),
    )
    assert result.summary["value"].tolist() == [pytest.approx(1 / 3), 0.5]
    assert len(rd.check(true, pred, items=items)) > 0


def test_lists_of_lists_are_told_how_to_become_a_mapping():
    with pytest.raises(TypeError, match=r"dict\(enumerate\(pred\)\)"):
        rd.ndcg([["a"]], [["a", "b"]])
    assert rd.ndcg(dict(enumerate([["a"]])), dict(enumerate([["a", "b"]]))) == 1.0


def test_options_may_be_scalars_and_arrays_of_numpy():
    pred = PRED.assign(model="m")
    plain = rd.evaluate(
        TRUE, pred, "mrr@3", by="model", score_col="prediction", users="both", judged_only=False
    )
    for text in (np.str_, lambda text: pd.Series([text], dtype="string")[0]):
        names = {"score_col": text("prediction"), "users": text("both"), "ties": text("item_desc")}
        for by in (
            text("model"),
            np.array(["model"]),
            pd.Series(["model"]),
            pd.Index(["model"]),
            [text("model")],
        ):
            found = rd.evaluate(TRUE, pred, text("mrr@3"), by=by, judged_only=np.False_, **names)
            assert found.summary.equals(plain.summary)
            assert found.spec["options"]["users"] == "both"


# -- a metric of one's own


@pytest.fixture
def registry(monkeypatch):
    from recdf.metrics import metric

    monkeypatch.setattr(metric, "METRICS", dict(metric.METRICS))


@pytest.mark.usefixtures("registry")
def test_values_beyond_the_bounds_are_an_error_that_names_metric_and_list(tmp_path):
    @rd.metric
    def three(lists):
        "Three for each hit; larger is better, in [0, 1]."
        return 3.0 * lists.n_hits

    words = (
        r"three is 3 for the list \{'user_id': 1\}, outside its bounds \[0.0, 1.0\] in 2 of 2 "
        r".*bounds=\(0, None\)"
    )
    calls = [
        lambda: rd.evaluate(TRUE, PRED, "three@3", score_col="prediction"),
        lambda: three(TRUE, PRED, 3, score_col="prediction"),
        lambda: rd.evaluate_parquet(*written(tmp_path), "three@3", score_col="prediction"),
    ]
    for call in calls:
        with pytest.raises(rd.DataError, match=words):
            call()

    @rd.metric(bounds=(0, None))
    def four(lists):
        "Four for each hit; larger is better, at least 0."
        return 4.0 * lists.n_hits

    assert four(TRUE, PRED, 3, score_col="prediction") == 4.0


@pytest.mark.usefixtures("registry")
def test_the_catalogue_stands_under_the_name_of_its_argument():
    @rd.metric(needs=("items",), bounds=(0, None), better=None)
    def mean_price(lists):
        "Mean price of the recommended items; at least 0."
        items = lists.sides.items
        return lists.mean_shown(np.append(items.frame["price"].to_numpy(), np.nan)[items.row_of])

    items = pd.DataFrame({"item_id": list("xyazwc"), "price": [1.0, 2, 3, 4, 5, 6]})
    assert mean_price.per_user(TRUE, PRED, 3, items=items, score_col=False)[
        "mean_price@3"
    ].tolist() == [2.0, 5.0]


def test_warnings_can_be_silenced_as_a_class():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", rd.OrderWarning)
        rd.evaluate(TRUE, PRED, "mrr@3")

"""Errors and warnings of evaluate_parquet: those of evaluate, once, with counts over all rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from partitions.parquet_files import USUAL, both, data, distinct_data, write
from quick import few

import recdf as rd

pytestmark = [
    pytest.mark.usefixtures("small_pieces", "nothing_left_behind"),
    pytest.mark.filterwarnings("ignore::recdf.RecdfWarning"),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("change", "error", "options"),
    [
        ({"true": ("user_id", None)}, rd.NullKeyError, {}),
        ({"pred": ("item_id", None)}, rd.NullKeyError, {"by": "model"}),
        ({"pred": ("model", None)}, rd.NullKeyError, {"by": "model"}),
        ({"pred": ("score", np.nan)}, rd.DataError, {"nan_score": "raise"}),
        ({"true": ("relevance", -1.0)}, rd.DataError, {}),
        ({"true": ("relevance", np.inf)}, rd.DataError, {}),
        ({"true": ("relevance", np.nan)}, rd.DataError, {}),
    ],
)
def test_errors_count_over_all_rows(tmp_path, change, error, options):
    given = dict(zip(("true", "pred"), data(), strict=True))
    for role, (name, value) in change.items():
        given[role].loc[::17, name] = value
    one, two = both(write(tmp_path, **given), "ndcg", catch=error, **options)
    assert one == two


@pytest.mark.parametrize("column", ["relevance", "propensity"])
def test_a_message_shows_the_first_wrong_values_in_the_order_of_the_rows(tmp_path, column):
    true, pred = data()
    true["propensity"] = 0.5
    true.loc[::9, column] = -1.0 - np.arange(len(true.loc[::9]))[::-1]
    one, two = both(
        write(tmp_path, true, pred), "recall", catch=rd.DataError, propensity_col="propensity"
    )
    assert one == two
    assert f"({true[column].iloc[0]}, {true[column].iloc[9]}, " in one


@pytest.mark.long
def test_errors_of_columns_and_types(tmp_path):
    true, pred = data()
    paths = write(tmp_path, true, pred)
    for options in (
        {"item_col": "itemid"},
        {"by": "modell"},
        {"value_col": "price"},
        {"relevance_col": "gain"},
    ):
        one, two = both(paths, "ndcg", catch=rd.ColumnError, **options)
        assert one == two
    one, two = both(paths, "ndcg", catch=rd.ColumnError, user_col=["user_id", "user_id"])
    assert one == two
    pred["item_id"] = pred["item_id"].astype(str)
    one, two = both(write(tmp_path, true, pred), "ndcg", catch=rd.IdTypeError)
    assert one.split(" (")[0] == two.split(" (")[0]
    pred["item_id"] = pred["item_id"] == "1"
    one, two = both(write(tmp_path, true, pred), "ndcg", catch=rd.IdTypeError)
    assert one == two
    with pytest.raises(rd.ColumnError, match="name of a result column"):
        rd.evaluate_parquet(
            *write(tmp_path, true, data()[1].rename(columns={"model": "n_true"})),
            "ndcg",
            by="n_true",
        )


def test_errors_of_one_bucket_say_so(tmp_path):
    one, two = both(write(tmp_path, *data()), "ndcg", catch=rd.DuplicateError, duplicates="raise")
    assert one.split()[0:2] == two.split()[0:2]
    assert "found in one of 5 buckets" in two


def test_empty_population(tmp_path):
    true, pred = data()
    pred["user_id"] += 10**6
    one, two = both(
        write(tmp_path, true, pred), "ndcg", catch=rd.EmptyPopulationError, users="both"
    )
    assert one == two


@pytest.mark.long
def test_one_warning_of_duplicates_counts_all(tmp_path):
    paths = write(tmp_path, *data())
    for users in ("true", "pred", "both", "all"):
        one, two = both(paths, "ndcg", catch=rd.DuplicateWarning, users=users)
        assert one == two


@pytest.mark.long
@pytest.mark.parametrize("name", ["user_id", "item_id"])
def test_one_warning_of_no_overlap_over_all(tmp_path, name):
    true, pred = (frame.drop_duplicates(["user_id", "item_id"]) for frame in data())
    pred[name] += 10**6
    one, two = both(write(tmp_path, true, pred), "ndcg", catch=rd.NoOverlapWarning)
    assert one == two


@pytest.mark.long
@pytest.mark.parametrize("users", few(["both", "true", "pred", "all", "ids"], 1))
def test_one_warning_of_recommenders_that_share_nothing(tmp_path, users):
    true, pred = distinct_data()
    strange = pred[pred["model"] == "a"].copy()
    strange["item_id"] += 10**6
    others = strange.assign(
        model="c", user_id=strange["user_id"] + 10**6, item_id=strange["item_id"] % 14
    )
    pred = pd.concat(
        [pred, strange.assign(model="s"), strange.assign(model="t"), others], ignore_index=True
    )
    options = {
        "users": list(true["user_id"].unique()[:30]) if users == "ids" else users,
        "by": "model",
    }
    one, two = both(
        write(tmp_path, true, pred), ["ndcg", "hhi"], catch=rd.NoOverlapWarning, **options
    )
    assert one == two
    assert one.startswith(("2 of 5", "3 of 5"))
    if users == "true":  # "c" recommends to others, so nothing to the users of true
        assert ": 's', 't', 'c';" in one
        paths = write(tmp_path, true, pred.assign(group=7))
        one, two = both(
            paths, "ndcg", catch=rd.NoOverlapWarning, **options | {"by": ["model", "group"]}
        )
        assert one == two
        assert ": ('s', 7), ('t', 7), ('c', 7);" in one


@pytest.mark.long
def test_no_warning_of_a_recommender_that_shares_items_but_no_hit(tmp_path):
    true, pred = distinct_data()
    pairs = pd.MultiIndex.from_frame(true[["user_id", "item_id"]])
    missed = ~pd.MultiIndex.from_frame(pred[["user_id", "item_id"]]).isin(pairs)
    paths = write(tmp_path, true, pred[missed | (pred["model"] == "a")])
    for function, given in (
        (rd.evaluate, map(pd.read_parquet, paths)),
        (rd.evaluate_parquet, paths),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            function(
                *given,
                "ndcg",
                by="model",
                **USUAL | ({"buckets": 30} if function is rd.evaluate_parquet else {}),
            )


@pytest.mark.long
def test_no_warning_of_items_that_true_has_where_nothing_is_recommended(tmp_path):
    users = np.arange(10)
    true = pd.DataFrame({"user_id": users, "item_id": np.where(users < 5, 1, 2)})
    pred = pd.concat(
        [
            pd.DataFrame({"model": m, "user_id": users[:5], "item_id": i})
            for m, i in (("a", 1), ("b", 2))
        ]
    )
    paths = write(tmp_path, true, pred)
    for function, given in ((rd.evaluate, (true, pred)), (rd.evaluate_parquet, paths)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            more = {} if function is rd.evaluate else {"buckets": 15}
            function(*given, "ndcg", by="model", users="pred", **more)


@pytest.mark.long
@pytest.mark.parametrize(
    ("reason", "options"),
    [
        ("true has no rows", {"users": "pred"}),
        ("no row of true is relevant", {"min_relevance": 99.0}),
        ("none of the given users is in true", {"users": [10**6, 10**6 + 1]}),
    ],
)
def test_one_warning_of_no_truth(tmp_path, reason, options):
    true, pred = distinct_data()
    if reason.startswith("true"):
        true = true.iloc[:0]
    if "users" in options:
        pred = pd.concat([pred, pred.assign(user_id=10**6)]).drop_duplicates(["user_id", "item_id"])
    one, two = both(write(tmp_path, true, pred), "recall", catch=rd.NoOverlapWarning, **options)
    assert one == two
    assert one.startswith(reason)


@pytest.mark.long
def test_no_warning_when_only_single_buckets_lack_overlap(tmp_path):
    true, pred = (frame.drop_duplicates(["user_id", "item_id"]) for frame in data())
    true = true[true["user_id"] < 9]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rd.evaluate_parquet(*write(tmp_path, true, pred), "ndcg", buckets=12, **USUAL)


def test_paths_that_are_none(tmp_path):
    true, pred = write(tmp_path, *data())
    with pytest.raises(FileNotFoundError, match="nothing"):
        rd.evaluate_parquet(true, tmp_path / "nothing*.parquet", "ndcg")
    with pytest.raises(TypeError, match="pred_path is an int"):
        rd.evaluate_parquet(true, 5, "ndcg")
    (tmp_path / "text.parquet").write_text("no parquet")
    with pytest.raises(rd.DataError, match="cannot be read as parquet"):
        rd.evaluate_parquet(true, tmp_path / "text.parquet", "ndcg")
    (tmp_path / "empty").mkdir()
    with pytest.raises(rd.DataError, match="holds no parquet file"):
        rd.evaluate_parquet(true, tmp_path / "empty", "ndcg")
    with pytest.raises(rd.OptionError, match="no option 'user_cols'"):
        rd.evaluate_parquet(true, pred, "ndcg", user_cols="u")


@pytest.mark.parametrize(
    ("first", "where"), [(0, "in the first 100 rows"), (200, "in one of 4 buckets of lists")]
)
def test_a_count_that_is_not_of_all_rows_says_so(first, where, tmp_path):
    frame = pd.DataFrame({"user_id": range(400), "item_id": np.arange(400) / 1.0})
    frame.to_parquet(tmp_path / "true.parquet")
    frame.loc[first:, "item_id"] += 0.5
    frame.to_parquet(tmp_path / "pred.parquet")
    with pytest.raises(rd.IdTypeError, match=f"not whole numbers.*found {where}"):
        rd.evaluate_parquet(
            tmp_path / "true.parquet", tmp_path / "pred.parquet", "recall@1", buckets=4
        )

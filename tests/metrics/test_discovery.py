"""Serendipity by rank and by similarity, by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from close import close
from registry.seeded import assert_close, quietly

import recdf as rd

# Examples are small, so that side tables lack much of them.
pytestmark = pytest.mark.filterwarnings("ignore::recdf.UnknownWarning")

LOG = {1: ["a", "b"], 2: ["a", "b", "c"], 3: ["a"]}  # three users have a, two have b, one has c
ITEMS = list("abcde")


def test_rank_gained_by_hand():
    true, pred = {9: ["d", "c", "a"]}, {9: ["d", "c", "a", "b"]}
    # d is not in the log: 5/5 − 0. c stands at 2 and is third by popularity: 4/5 − 3/5. a falls
    # below its rank.
    assert rd.serendipity(true, pred, 4, of="rank", log=LOG, items=ITEMS) == close((1 + 1 / 5) / 4)
    assert rd.serendipity(true, pred, 1, of="rank", log=LOG, items=ITEMS) == close(1.0)
    assert rd.serendipity(None, pred, of="rank", relevant=False, log=LOG, items=ITEMS) == close(
        (1 + 1 / 5) / 4
    )
    # Equally frequent items have one rank, and the next number the next rank.
    log = {1: ["a", "b", "c"], 2: ["a", "b"]}
    assert rd.serendipity({9: ["c"]}, {9: ["c"]}, of="rank", log=log, items=ITEMS) == close(
        5 / 5 - 4 / 5
    )
    assert rd.serendipity({9: ["b"]}, {9: ["b"]}, of="rank", log=log, items=ITEMS) == 0.0


def test_unlike_the_past_by_cooccurrence_by_hand():
    true, pred = {3: ["b", "c", "z"]}, {3: ["b", "c", "z", "x"]}
    # With a: b has 2 of √(2 · 3), c has 1 of √(1 · 3), and z, which nobody had, has none.
    expected = (1 - 2 / math.sqrt(6) + 1 - 1 / math.sqrt(3) + 1) / 4
    options = {"of": "similarity", "similarity": "cooccurrence", "log": LOG}
    assert rd.serendipity(true, pred, **options) == close(expected)
    # a is of the past and counts 0; the similarity of c is the mean of those to a and to b.
    mean = (1 / math.sqrt(3) + 1 / math.sqrt(2)) / 2
    assert rd.serendipity({1: ["a", "c"]}, {1: ["a", "c"]}, **options) == close((0 + 1 - mean) / 2)
    assert math.isnan(quietly(rd.serendipity, {9: ["a"]}, {9: ["a"]}, **options))


def test_unlike_the_past_by_features_by_hand():
    features = {"a": [1, 0], "b": [0, 1], "c": [1, 1], "d": [-1, 0]}
    options = {"of": "similarity", "log": {1: ["a", "b", "x"], 2: ["x"]}, "features": features}
    true, pred = {1: ["c", "d"], 2: ["c"]}, {1: ["c", "d", "y"], 2: ["c"]}
    # Of user 1, y has no features. c is like a and b by 1/√2, d is unlike a by −1. User 2 has no
    # past with features.
    expected = (1 - 1 / math.sqrt(2) + 1 - (-1 + 0) / 2) / 2
    found = quietly(rd.serendipity.per_user, true, pred, **options)
    assert_close(found["serendipity(of=similarity)@10"], [expected, math.nan])
    # An item unlike the whole past counts 2, which the bounds of the metric allow.
    opposite = rd.serendipity(
        {3: ["d"]}, {3: ["d"]}, of="similarity", log={3: ["a"], 4: ["d"]}, features=features
    )
    assert opposite == 2.0 == rd.METRICS["serendipity"].stated("serendipity(of=similarity)")[0][1]


@pytest.mark.long
def test_pieces_of_pairs_do_not_matter(resized):
    rng = np.random.default_rng(1)
    log = pd.DataFrame({"user_id": rng.integers(0, 40, 500), "item_id": rng.integers(0, 50, 500)})
    pred = pd.DataFrame(
        {"user_id": np.repeat(np.arange(45), 8), "item_id": rng.integers(0, 60, 360)}
    )
    pred = pred.drop_duplicates().assign(rank=range(len(pred.drop_duplicates())))
    features = pd.DataFrame(rng.normal(size=(60, 3)), index=pd.RangeIndex(60))
    names = [
        f"serendipity(of=similarity,relevant=false,similarity={one})"
        for one in ("cosine", "cooccurrence")
    ]
    whole = quietly(
        rd.evaluate, pred.iloc[::2], pred, names, log=log, features=features, users="all"
    ).per_user
    resized(paired_items=7, feature_bytes=100)
    pieces = quietly(
        rd.evaluate, pred.iloc[::2], pred, names, log=log, features=features, users="all"
    ).per_user
    pd.testing.assert_frame_equal(pieces, whole, check_exact=True)
    assert whole.iloc[:, 3:].notna().any(axis=None)


def test_each_form_names_what_it_needs():
    true = pred = {1: ["a"]}
    for given, missing in [
        ({"of": "rank", "log": LOG}, "items"),
        ({"of": "rank", "items": ITEMS}, "log"),
        ({"of": "similarity", "log": LOG}, "features"),
        ({"of": "similarity", "similarity": "cooccurrence"}, "log"),
        ({"log": LOG}, "features"),
    ]:
        with pytest.raises(rd.OptionError, match=rf"needs {missing}="):
            rd.serendipity(true, pred, **given)
    with pytest.raises(rd.OptionError, match=r"serendipity\(of=rank\)@3 needs items="):
        rd.evaluate(true, pred, "serendipity(of=rank)", k=3, log=LOG)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"of": "rank", "threshold": 0.5}, r"threshold= is not read with of='rank'"),
        ({"of": "rank", "similarity": "cooccurrence"}, r"similarity= is not read with of='rank'"),
        ({"of": "similarity", "top": 3}, r"top= is not read with of='similarity'"),
        ({"similarity": "cooccurrence"}, r'similarity="cooccurrence" is for of="similarity"'),
    ],
)
def test_what_does_not_go_together_is_refused(params, message):
    with pytest.raises(rd.OptionError, match=message):
        rd.serendipity(
            {1: ["a"]}, {1: ["a"]}, log=LOG, features={"a": [1], "b": [2]}, items=ITEMS, **params
        )


def test_unknown_items_are_counted_where_they_matter():
    true = pred = {1: ["c", "z"]}
    found = quietly(rd.evaluate, true, pred, "serendipity(of=rank)", log=LOG, items=ITEMS).spec[
        "counts"
    ]
    assert found["pred_outside_items"] == 1
    assert found["pred_not_in_log"] == 1
    assert "pred_without_features" not in found


def test_files_give_what_frames_give(tmp_path):
    true = pd.DataFrame({"user_id": [1, 1, 2, 3], "item_id": list("acbb")})
    pred = pd.DataFrame(
        {"user_id": [1, 1, 2, 3, 3], "item_id": list("caabc"), "rank": [1, 2, 1, 1, 2]}
    )
    paths = [tmp_path / "true.parquet", tmp_path / "pred.parquet"]
    true.to_parquet(paths[0])
    pred.to_parquet(paths[1])
    names = ["serendipity(of=rank)", "serendipity(of=similarity,similarity=cooccurrence)"]
    given = {
        "log": pd.DataFrame({"user_id": [1, 2, 2, 3], "item_id": list("abca")}),
        "items": ITEMS,
    }
    found = quietly(rd.evaluate_parquet, *paths, names, buckets=3, **given).summary
    pd.testing.assert_frame_equal(
        found, quietly(rd.evaluate, true, pred, names, **given).summary, rtol=1e-12
    )

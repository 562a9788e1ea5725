"""Conventions against the numbers of their libraries for the frames of golden/union, computed with `like=`."""

import json

import pytest
from registry.union.frames import GOLDEN, Frames

import recdf as rd

LIVE = json.loads((GOLDEN / "live.json").read_text())
CASES = [(like, name) for like, numbers in LIVE.items() for name in numbers]


def ten(pred):
    """The lists of users that have ten items or more."""
    return pred[pred.groupby("user_id")["item_id"].transform("size") >= 10]


@pytest.mark.parametrize(("like", "name"), CASES)
def test_rated_rows_and_full_lists(like, name):
    frames, metric = Frames(), rd.METRICS[name.partition("@")[0]]
    items, features = frames.items[["item_id"]], frames.items.set_index("item_id")[["x", "y", "z"]]
    if "@" in name:
        sides = {"items": items, "log": frames.log, "features": features}
        given = [sides[one] for one in metric.arguments if one not in ("true", "pred")]
        options = {"features": features} if "features" in metric.needs else {}
        found = metric(*given, ten(frames.pred), 10, like=like, users="pred", **options)
    else:
        rows, label, score = (frames.ratings, "rating", "prediction")
        if "log_loss" in name:
            rows, label, score = (frames.clicks, "label", "probability")
        key = rows[["user_id", "item_id"]]
        found = metric(key.assign(relevance=rows[label]), key.assign(score=rows[score]), like=like, score_col="score")
    assert found == pytest.approx(LIVE[like][name], abs=1e-9)

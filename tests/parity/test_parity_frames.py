"""The generated frames are the ones that the golden numbers were measured on, and have what they
are named for."""

import json
from pathlib import Path

import frames as parity
import pytest

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "parity"
FRAMES = parity.parity_frames()
LIBRARIES = sorted(path.stem for path in GOLDEN.glob("*.json") if path.stem != "section9")


@pytest.mark.few(7)
@pytest.mark.parametrize("library", LIBRARIES)
def test_golden_numbers_belong_to_these_frames(library):
    digests = json.loads((GOLDEN / f"{library}.json").read_text(encoding="utf-8"))["digests"]
    assert digests == {name: FRAMES[name].digest() for name in digests}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_rank_score_and_row_order_agree(frame):
    lists = frame.pred.groupby("user_id", sort=False)
    assert (lists["rank"].diff().dropna() == 1).all()
    assert (lists["score"].diff().dropna() <= 0).all()
    assert (frame.pred["score"] > 0).all()


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_no_item_twice_in_a_list(frame):
    assert not frame.true.duplicated(["user_id", "item_id"]).any()
    assert not frame.pred.duplicated(["user_id", "item_id"]).any()


def test_holes_has_every_kind_of_hole():
    true, pred = FRAMES["holes"].true, FRAMES["holes"].pred
    assert set(true["user_id"]) - set(pred["user_id"])
    assert set(pred["user_id"]) - set(true["user_id"])
    assert pred["user_id"].value_counts().min() < 5
    assert true["user_id"].value_counts().max() > max(parity.K)


@pytest.mark.parametrize("name", ["ties", "ties_short", "ties_strings"])
def test_most_lists_have_ties(name):
    tied = (
        FRAMES[name].pred.groupby("user_id")["score"].agg(lambda scores: scores.duplicated().any())
    )
    assert tied.mean() > 0.9

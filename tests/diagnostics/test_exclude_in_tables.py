"""`exclude=` of `check` and of the tables of lists: as if the rows were not in the frames."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

LOG = pd.DataFrame({"user_id": np.arange(40) % 12, "item_id": np.arange(40) % 30})

TABLES = {
    "hit_table": lambda true, pred, **more: rd.diagnostics.hit_table(true, pred, 3, **more),
    "missed": lambda true, pred, **more: rd.diagnostics.hit_table(
        true, pred, 2, missed=True, carry="at", **more
    ),
    "by model": lambda true, pred, **more: rd.diagnostics.hit_table(
        true, pred, 3, by="model", **more
    ),
    "position_table": lambda true, pred, **more: rd.diagnostics.position_table(
        true, pred, 3, **more
    ),
    "positions": lambda true, pred, **more: rd.diagnostics.position_table(
        true, pred, 3, position_col="at", **more
    ),
    "exposure_table": lambda true, pred, **more: rd.diagnostics.exposure_table(pred, 3, **more),
    "exposure of true": lambda true, pred, **more: rd.diagnostics.exposure_table(
        pred, 3, true=true, **more
    ),
    "check": lambda true, pred, **more: rd.check(true, pred, 3, by="model", **more),
    "check with log": lambda true, pred, **more: rd.check(true, pred, 3, log=LOG, **more),
}


def frames(seed=0):
    rng = np.random.default_rng(seed)
    ids = {"user_id": rng.integers(0, 12, 200), "item_id": rng.integers(0, 30, 200)}
    pred = pd.DataFrame(ids | {"model": rng.choice(["a", "b"], 200)})
    pred = pred.drop_duplicates(["user_id", "item_id"], ignore_index=True)
    pred["at"] = pred.groupby(["user_id", "model"]).cumcount()
    true, seen = (
        pd.DataFrame(
            {"user_id": rng.integers(0, 14, n), "item_id": rng.integers(0, 30, n)}
        ).drop_duplicates()
        for n in (60, 90)
    )
    return true, pred, seen


def without(frame, seen):
    pairs = set(zip(seen["user_id"], seen["item_id"], strict=True))
    return frame[
        [pair not in pairs for pair in zip(frame["user_id"], frame["item_id"], strict=True)]
    ]


@pytest.mark.few(3)
@pytest.mark.parametrize("name", TABLES)
def test_as_if_the_rows_were_not_given(name):
    true, pred, seen = frames()
    found = TABLES[name](true, pred, exclude=seen)
    expected = TABLES[name](without(true, seen), without(pred, seen))
    if name.startswith("check"):
        told = found["finding"].str.endswith("in exclude")
        assert found[told].set_index("finding")["count"].to_dict() == {
            f"rows of {role} in exclude": len(frame) - len(without(frame, seen))
            for role, frame in (("true", true), ("pred", pred))
        }
        found = found[~told]
    pd.testing.assert_frame_equal(
        pd.DataFrame(found).reset_index(drop=True), pd.DataFrame(expected)
    )


def test_check_keeps_rows_with_nulls_and_says_what_is_wrong_with_the_table():
    true, pred, seen = frames()
    pred = pred.astype({"item_id": "Int64"})
    pred.loc[3, "item_id"] = pd.NA
    found = rd.check(true, pred, 3, exclude=seen, null_keys="drop")
    assert "null ids in pred" in set(found["finding"])
    found = rd.check(true, pred, 3, exclude=seen.astype(str))
    assert "ids of exclude that cannot match" in set(found["finding"])
    with pytest.raises(rd.ColumnError, match="exclude has no column 'item_id'"):
        rd.check(true, pred, 3, exclude=seen[["user_id"]])


def test_check_of_frames_of_which_nothing_is_left():
    true, pred, _ = frames()
    found = rd.check(true, pred, 3, exclude=pd.concat([true, pred[["user_id", "item_id"]]]))
    assert found["finding"].tolist()[-2:] == ["rows of true in exclude", "rows of pred in exclude"]
    assert found["share"].tolist()[-2:] == [1.0, 1.0]


def test_sessions_of_a_user_share_an_exclusion():
    true = pd.DataFrame({"user_id": [1, 1], "session": [1, 2], "item_id": [5, 6]})
    pred = pd.DataFrame({"user_id": [1, 1, 1, 1], "session": [1, 1, 2, 2], "item_id": [5, 7, 5, 6]})
    seen = pd.DataFrame({"user_id": [1], "item_id": [5]})
    options = {"user_col": ["user_id", "session"], "exclude": seen}
    assert rd.diagnostics.hit_table(true, pred, 2, **options)["item_id"].tolist() == [6]
    found = rd.check(true, pred, 2, **options).set_index("finding")["count"]
    assert found[["rows of true in exclude", "rows of pred in exclude"]].tolist() == [1, 2]

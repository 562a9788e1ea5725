"""Overlap of two lists, by hand."""

import math

import pandas as pd
import pytest
from close import close
from registry.seeded import assert_close

import recdf as rd

BASE = {"u": list("abcdef"), "v": ["x"], "w": ["y"]}
PRED = {"u": list("cxab"), "v": ["z", "x"], "n": ["a"]}


def test_rank_biased_overlap_by_hand():
    # u: common items of the first 1, 2, 3 are none, none, and a, c (b is at rank 4).
    expected = (0.5**2 * 2 / 3) / (1 + 0.5 + 0.5**2)
    assert rd.rbo(None, {"u": PRED["u"]}, k=3, base=BASE, p=0.5) == close(expected)
    # v: x is at rank 2 in one list and at rank 1 in the other, which ends there and keeps it.
    expected = (0.5 / 2 + 0.25 / 3) / 1.75
    assert rd.rbo(None, {"v": PRED["v"]}, k=3, base=BASE, p=0.5) == close(expected)


def test_empty_lists_of_two():
    found = rd.evaluate(
        None, PRED, ["rbo", "overlap", "least_promoted"], 3, base=BASE, users=["n", "w", "o"]
    )
    # n has no baseline, w has only one, and o has neither.
    expected = [[0, 0, math.nan], [0, math.nan, math.nan], [math.nan, math.nan, math.nan]]
    assert_close(found.per_user.iloc[:, 3:], expected)
    base = rd.overlap.per_user(BASE, PRED, k=3, divisor="base", users=["n", "w", "o"])
    assert_close(base.iloc[:, 1], [math.nan, 0, math.nan])


def test_a_list_and_itself():
    same = {"base": PRED, "users": "pred"}
    found = rd.evaluate(
        None, PRED, ["rbo", "overlap", "least_promoted", "overlap(divisor=union)"], 1, **same
    )
    assert_close(found.summary["value"], [1, 1, 0, 1])
    # A list that is shorter than k has the same items at k, but not k of them.
    assert rd.rbo(None, {"u": ["a"]}, 2, base={"u": ["a"]}, p=0.5) == close((1 + 0.5 / 2) / 1.5)


def test_compatibility_by_hand():
    true = {"u": {"a": 1, "b": 2, "c": 1, "d": 0}}
    # The ideal list is b, c, a, since c stands above a in the list. The list has 4 items.
    weight = [0.9**d for d in range(4)]
    pred = {"u": ["c", "x", "y", "b"]}
    best = [1, 1, 1, 3 / 4]
    expected = sum(w * a for w, a in zip(weight, [0, 1 / 2, 1 / 3, 2 / 4], strict=True))
    assert rd.rbo(true, pred, against="ideal") == close(expected / sum(weight))
    of_best = sum(w * a for w, a in zip(weight, best, strict=True))
    assert rd.rbo(true, pred, against="ideal", normalize=True) == close(expected / of_best)
    assert rd.rbo(true, {"u": ["b", "a", "c"]}, against="ideal", normalize=True) == close(1.0)
    # With b, a, c as the ideal list a, which is not recommended, stands above c.
    expected = sum(w * a for w, a in zip(weight, [0, 0, 1 / 3, 2 / 4], strict=True))
    assert rd.rbo(true, pred, against="ideal", unshown="first") == close(expected / sum(weight))
    assert rd.rbo(true, {"u": ["x", "d"]}, against="ideal") == 0.0
    assert math.isnan(rd.rbo({"u": {"c": 0}}, pred, against="ideal"))


def test_compatibility_ignores_k_and_weighs_users():
    true = pd.DataFrame({"user_id": ["u", "v"], "item_id": ["a", "a"], "weight": [3.0, 1.0]})
    pred = {"u": ["a"], "v": ["x"]}
    values = {
        k: rd.rbo(true, pred, k, against="ideal", normalize=True, weight_col="weight")
        for k in (1, 50)
    }
    assert values == {1: 0.75, 50: 0.75}


def test_a_deep_cut_off_costs_nothing_and_changes_nothing():
    pred, base = {"u": list("abc")}, {"u": list("bca")}
    whole = [0, 1 / 2, *(3 / d for d in range(3, 1500))]
    expected = sum(0.97**d * a for d, a in enumerate(whole)) * 0.03
    assert rd.rbo(None, pred, 2**31 - 1, base=base, p=0.97) == close(expected)


def test_what_does_not_go_together_is_refused():
    true, pred = {"u": ["a"]}, {"u": ["a"]}
    with pytest.raises(
        rd.OptionError, match=r'normalize=True is about the ideal list; pass against="ideal"'
    ):
        rd.rbo(true, pred, base=pred, normalize=True)
    with pytest.raises(rd.OptionError, match=r"unshown='first' is about the ideal list"):
        rd.rbo(true, pred, base=pred, unshown="first")
    with pytest.raises(rd.OptionError, match=r"needs base="):
        rd.rbo(true, pred)
    with pytest.raises(rd.OptionError, match=r'needs true=, or against="base"'):
        rd.rbo(None, pred, against="ideal")
    for p in (0, 1, 1.5):
        with pytest.raises(rd.OptionError, match=r"p="):
            rd.rbo(true, pred, base=pred, p=p)


def test_rerankings_by_hand():
    assert rd.least_promoted(BASE, {"u": ["a", "f", "q"]}, k=2) == 4.0
    assert rd.least_promoted(BASE, {"u": ["b", "q", "f"]}, k=2) == 0.0
    assert rd.overlap(BASE, {"u": ["b", "q", "f"]}, k=2) == 0.5
    assert rd.overlap(BASE, {"u": ["b", "q", "f"]}, k=3, base_k=6) == close(2 / 3)
    assert rd.overlap(BASE, {"u": ["b", "q", "f"]}, k=3, base_k=6, divisor="union") == close(2 / 7)
    assert rd.overlap(BASE, {"u": ["b", "q", "f"]}, k=3, base_k=4, divisor="base") == close(1 / 4)


@pytest.mark.long
def test_by_and_files_give_what_a_call_each_gives(tmp_path):
    true = pd.DataFrame(
        {"user_id": [1, 2, 3] * 4, "item_id": range(12), "relevance": [1.0, 2.0] * 6}
    )
    pred = pd.concat(
        [true.assign(model=m, score=true["item_id"] * s % 7) for m, s in (("x", 3), ("y", 5))]
    )
    pred = pred[["model", "user_id", "item_id", "score"]]
    base = true[["user_id", "item_id"]].assign(score=true["item_id"] * 2 % 5)
    names = ["rbo@2", "rbo(against=ideal)@2", "overlap@2", "least_promoted@2"]
    together = rd.evaluate(true, pred, names, by="model", base=base)
    for model, part in pred.groupby("model"):
        alone = rd.evaluate(true, part.drop(columns="model"), names, base=base)
        mine = together.summary[together.summary["model"] == model]
        assert_close(mine["value"], alone.summary["value"])
    paths = [tmp_path / "true.parquet", tmp_path / "pred.parquet"]
    true.to_parquet(paths[0])
    pred.to_parquet(paths[1])
    of_files = rd.evaluate_parquet(*paths, names, by="model", base=base, buckets=3)
    assert_close(of_files.summary["value"], together.summary["value"])

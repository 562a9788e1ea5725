"""`check`: planted faults are found, clean data gives nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import recdf as rd


def clean(shuffled: bool = False) -> tuple[pd.DataFrame, pd.DataFrame]:
    """60 users with 3 relevant items, all recommended to somebody, and 12 distinct scores each."""
    rng = np.random.default_rng(3)
    users = np.repeat(np.arange(60), 12)
    items = np.concatenate([rng.permutation(40)[:12] for _ in range(60)])
    pred = pd.DataFrame({"user_id": users, "item_id": items, "score": np.tile(np.linspace(0.9, 0.1, 12), 60)})
    true = pred.groupby("user_id").sample(3, random_state=1)[["user_id", "item_id"]].reset_index(drop=True)
    if shuffled:
        pred, true = pred.sample(frac=1, random_state=2), true.sample(frac=1, random_state=2)
    return true, pred


def findings(*args: object, **options: object) -> dict[str, pd.Series]:
    table = rd.check(*args, **options)
    assert list(table.columns) == ["finding", "severity", "count", "share", "examples", "effect"]
    assert (table["count"] > 0).all()
    assert table["share"].between(0, 1).all()
    return {row["finding"]: row for _, row in table.iterrows()}


@pytest.mark.parametrize("shuffled", [False, True])
def test_clean_data_has_no_finding(shuffled: bool) -> None:
    true, pred = clean(shuffled)
    log = pd.DataFrame({"user_id": [0], "item_id": [1000]})
    assert rd.check(true, pred, log=log, items=range(40)).empty
    ranked = pred.assign(rank=pred.groupby("user_id")["score"].rank(ascending=False).astype(int))
    assert rd.check(true, ranked, rank_col="rank").empty


def plant(fault: str) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, object]]:
    true, pred = clean()
    options: dict[str, object] = {}
    first = pred["user_id"] == 0
    if fault == "string ids":
        pred["item_id"] = pred["item_id"].astype(str)
    elif fault == "leading zeros":
        true["item_id"] = true["item_id"].map("{:03d}".format)
        pred["item_id"] = pred["item_id"].map(lambda i: f"{i:03d}" if i < 30 else str(i))
    elif fault == "float text":
        true["item_id"] = true["item_id"].map(lambda i: f"{i}.0" if i < 10 else str(i))
        pred["item_id"] = pred["item_id"].astype(str)
    elif fault == "null ids":
        true["user_id"] = true["user_id"].astype("Int64").mask(np.arange(len(true)) < 4)
    elif fault == "null scores":
        pred.loc[11, "score"] = np.nan
    elif fault == "infinite scores":
        pred.loc[0, "score"] = np.inf
    elif fault == "duplicates":
        pred = pd.concat([pred, pred.head(7)], ignore_index=True)
    elif fault == "holes":
        pred, true = pred[pred["user_id"] >= 5], true[true["user_id"] < 50]
    elif fault == "short":
        pred = pred[~first | (pred["score"] > 0.5)]
    elif fault == "long truth":
        true = pd.concat([true, pred.loc[first, ["user_id", "item_id"]]]).drop_duplicates()
    elif fault == "ties":
        pred.loc[first, "score"] = [0.9] * 8 + [0.5, 0.4, 0.3, 0.2]
    elif fault == "constant":
        pred["score"] = 1.0
    elif fault == "rank from 0":
        pred = pred.assign(rank=pred.groupby("user_id").cumcount())
    elif fault == "rank gaps":
        rank = pred.groupby("user_id").cumcount() + 1
        pred = pred.assign(rank=rank.where(~first | (rank < 5), rank + 2))
    elif fault == "rank against score":
        pred = pred.assign(rank=13 - (pred.groupby("user_id").cumcount() + 1))
    elif fault == "rows against scores":
        pred["score"] = 1 - pred["score"]
    elif fault == "outside":
        options["items"] = list(range(39))
    elif fault == "seen":
        options["log"] = pred[["user_id", "item_id"]]
    elif fault == "constant relevance":
        true["relevance"], options["relevance_col"] = 2.0, "relevance"
    elif fault == "negative relevance":
        true["relevance"], options["relevance_col"] = -1.0, "relevance"
    return true, pred, options


FAULTS = [
    ("string ids", "item ids that cannot match", "error", 720),
    ("leading zeros", "item ids that only look different", "warning", None),
    ("float text", "item ids that only look different", "warning", None),
    ("null ids", "null ids in true", "error", 4),
    ("null scores", "null scores", "error", 1),
    ("infinite scores", "infinite scores", "warning", 1),
    ("duplicates", "duplicate rows in pred", "warning", 7),
    ("holes", "users without recommendations", "warning", 5),
    ("holes", "users without truth", "info", 10),
    ("short", "lists shorter than 10", "info", 1),
    ("long truth", "more than 10 relevant items", "info", 1),
    ("ties", "equal scores", "info", 1),
    ("constant", "constant scores", "warning", 60),
    ("constant", "ties across rank 10", "warning", 60),
    ("rank from 0", "ranks that do not start at 1", "warning", 60),
    ("rank gaps", "ranks with gaps", "warning", 1),
    ("rank against score", "score order that contradicts the ranks", "warning", 60),
    ("rows against scores", "row order that contradicts the scores", "info", 60),
    ("outside", "items of pred outside the catalogue", "warning", None),
    ("seen", "recommendations already in the log", "warning", 600),
    ("constant relevance", "constant relevance", "info", 180),
    ("negative relevance", "negative, null or infinite relevance", "error", 180),
]


@pytest.mark.parametrize(("fault", "finding", "severity", "count"), FAULTS)
def test_planted_fault_is_found(fault: str, finding: str, severity: str, count: int | None) -> None:
    true, pred, options = plant(fault)
    found = findings(true, pred, **options)
    assert found[finding]["severity"] == severity
    if count is not None:
        assert found[finding]["count"] == count


@pytest.mark.parametrize("fault", sorted({fault for fault, *_ in FAULTS}))
def test_a_fault_is_not_taken_for_others(fault: str) -> None:
    true, pred, options = plant(fault)
    expected = {finding for planted, finding, *_ in FAULTS if planted == fault}
    # Without its null rows, a user has no truth; item 39 is in both frames.
    expected |= {"null ids": {"users without truth"}, "outside": {"items of true outside the catalogue"}}.get(
        fault, set()
    )
    assert set(findings(true, pred, **options)) == expected


def test_tie_range_is_the_best_and_the_worst_order() -> None:
    true = {"u": ["b", "d"]}
    pred = pd.DataFrame({"user_id": "u", "item_id": list("abcd"), "score": [3.0, 2.0, 2.0, 2.0]})
    effect = rd.check(true, pred, k=2).set_index("finding").loc["ties across rank 2", "effect"]
    # b or d at rank 2, or neither: precision 0 or 1/2, mrr 0 or 1/2
    assert "precision@2 from 0 to 0.5" in effect
    assert "mrr@2 from 0 to 0.5" in effect


def test_no_overlap_and_empty() -> None:
    true, pred = clean()
    assert findings(true, pred.assign(user_id=pred["user_id"] + 1000))["no user in common"]["severity"] == "error"
    assert findings(true, pred.assign(item_id=pred["item_id"] + 1000))["no item in common"]["severity"] == "error"
    assert isinstance(rd.check(true, pred.head(0)), pd.DataFrame)


def test_inputs_stay_and_by_names_the_model() -> None:
    true, pred = clean()
    log = pred[["user_id", "item_id"]].copy()
    both = pd.concat([pred.assign(model="a", item_id=pred["item_id"] + 50), pred.assign(model="b")], ignore_index=True)
    before = both.copy(deep=True)
    found = findings(true, both, log=log, by="model")
    assert "'b'" in found["recommendations already in the log"]["examples"]
    assert found["recommendations already in the log"]["count"] == 600
    pd.testing.assert_frame_equal(both, before)

"""What the oracle says of lists that are written by hand."""

import json
from pathlib import Path

import oracles

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = json.loads((GOLDEN / "cases.json").read_text(encoding="utf-8"))


def true_rows(lists):
    """Rows of `true` from {user: [items]} or {user: {item: relevance}}."""
    rows = []
    for user, items in lists.items():
        for item in items:
            row = {"user_id": user, "item_id": item}
            rows.append({**row, "relevance": items[item]} if isinstance(items, dict) else row)
    return rows


def pred_rows(lists):
    """Rows of `pred` from {user: [items, best first]} or {user: {item: score}}."""
    rows = []
    for user, items in lists.items():
        for item in items:
            row = {"user_id": user, "item_id": item}
            rows.append({**row, "score": items[item]} if isinstance(items, dict) else row)
    return rows


def measure(true, pred, metric, k=10, **options):
    """Value per user as a list; true and pred as in true_rows and pred_rows."""
    options.setdefault(
        "order", "score" if any("score" in row for row in pred_rows(pred)) else "row"
    )
    options.setdefault("relevance", any("relevance" in row for row in true_rows(true)))
    return list(oracles.evaluate(true_rows(true), pred_rows(pred), metric, k, **options).values())


def one(true, shown, metric, k=10, params=None, **options):
    """Value of one list given as its items, or as item: relevance and item: score."""
    return measure({1: true}, {1: shown}, metric, k, params=params, users=[1], **options)[0]

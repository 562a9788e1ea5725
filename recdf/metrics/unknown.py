"""Count the recommended rows, or lists, that side tables do not know, by the names that these counts have in `spec`.

Contract: the record of a metric names what may be unknown to it. Counting reads the lists and the side tables and
changes nothing. The counts can be added over parts of a population.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..matching.lists import Matched
from .record import Request, Unknown

Params = Mapping[str, Any]


def unknown_counts(matched: Matched, requests: Sequence[Request]) -> dict[str, int]:
    """Count rows or lists that a side table does not know, for all requests; each count is made once."""
    found: dict[str, int] = {}
    for request in requests:
        for what in request.metric.unknown:
            name = _name(what, request.params)
            if name is not None and name not in found:
                found[name] = int(np.count_nonzero(COUNTED[what](matched, request.params)))
    return found


def _name(what: Unknown, params: Params) -> str | None:
    """Return the name of the count in `spec`; None if these parameters do not need it."""
    if what in ("category", "group"):
        column = params[f"{what}_col"]
        return None if column is None else f"pred_without_{column}"
    return {
        "items": "pred_outside_items",
        "items_or_log": "pred_outside_items",
        "log": "pred_not_in_log",
        "log_users": "lists_without_log",
        "features": "pred_without_features",
    }[what]


def _items(matched: Matched, params: Params) -> np.ndarray:
    unknown: np.ndarray = ~matched.sides.catalogue.inside[matched.item]
    return unknown


def _log(matched: Matched, params: Params) -> np.ndarray:
    unknown: np.ndarray = (matched.sides.log.count("events") == 0)[matched.item]
    return unknown


def _items_or_log(matched: Matched, params: Params) -> np.ndarray:
    return _items(matched, params) if matched.sides.has("items") else _log(matched, params)


def _log_users(matched: Matched, params: Params) -> np.ndarray:
    unknown: np.ndarray = matched.sides.log.n_history == 0
    return unknown


def _features(matched: Matched, params: Params) -> np.ndarray:
    unknown: np.ndarray = matched.sides.features.known(params["similarity"], params["separator"])[matched.item] < 0
    return unknown


def _category(matched: Matched, params: Params) -> np.ndarray:
    labels = matched.sides.catalogue.labels(params["category_col"], params["separator"])
    unknown: np.ndarray = (labels.length == 0)[matched.item]
    return unknown


def _group(matched: Matched, params: Params) -> np.ndarray:
    unknown: np.ndarray = (matched.sides.catalogue.labels(params["group_col"]).length == 0)[matched.item]
    return unknown


# Functions that flag the rows, or lists, that are unknown.
COUNTED: dict[Unknown, Callable[[Matched, Params], np.ndarray]] = {
    "items": _items,
    "items_or_log": _items_or_log,
    "log": _log,
    "log_users": _log_users,
    "features": _features,
    "category": _category,
    "group": _group,
}

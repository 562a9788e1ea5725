"""Count the recommended rows, or lists, that side tables do not know, by the names that these counts have in `spec`.

Contract: the record of a metric names what may be unknown to it. Counting reads the lists and the side tables and
changes nothing. The counts can be added over parts of a population.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import JudgedWarning, NoOverlapWarning, UnknownWarning, warn_user
from ..inputs.options import Options
from ..matching.lists import Matched
from ..matching.overlap import Overlap
from .record import Request, Unknown

Params = Mapping[str, Any]

# Larger shares give a warning: of lists whose judgements do not differ, and of unknown rows or lists.
MANY_JUDGED, MANY_UNKNOWN = 0.5, 0.25


OTHERS = ". {} leaves them out or gives them a fixed value, so it speaks of the others alone"
JUDGE = "Give true rows of relevance 0 for what was judged as not relevant (relevance_col=, min_relevance=), or"
WORDS: dict[Unknown, str] = {
    "items": f"recommended rows are of items that items= lacks{OTHERS}",
    "items_or_log": f"recommended rows are of items that the catalogue (items=, or else log=) lacks{OTHERS}",
    "log": f"recommended rows are of items that log= lacks{OTHERS}",
    "log_users": f"lists are of users that log= lacks{OTHERS}",
    "features": f"recommended rows are of items without features{OTHERS}",
    "category": f"recommended rows are of items without a category{OTHERS}",
    "group": f"recommended rows are of items without a group{OTHERS}",
    "negatives": "lists with a relevant item have none that true judges as not relevant, with which {} compares them: "
    f"there it only tells what was found, as recall does. {JUDGE} take another metric",
    "grades": "lists with a relevant item have judgements that are all alike, and judged_only=True drops what is not "
    f"judged: there {{}} tells what was found and not how it was ranked. {JUDGE} pass judged_only=False",
}


def unknown_counts(matched: Matched, requests: Sequence[Request]) -> dict[str, int]:
    """Count rows or lists that a side table does not know, for all requests; each count is made once."""
    found: dict[str, int] = {}
    for request in requests:
        for what in _looked_up(request, matched.judged_only):
            name = name_of(what, request.params)
            if name is not None and name not in found:
                found[name] = int(np.count_nonzero(COUNTED[what](matched, request.params)))
    return found


def _looked_up(request: Request, judged_only: bool) -> list[Unknown]:
    """Return what may be unknown to a request. With `judged_only`, all metrics need judgements that differ."""
    return [*request.metric.unknown, "grades"] if judged_only else [*request.metric.unknown]


def warn_of_unknown(overlap: Overlap, counts: Mapping[str, int], requests: Sequence[Request], options: Options) -> None:
    """Warn of side tables that know few of the rows or lists, and of metrics that need judged items and lack them."""
    columns: dict[tuple[str, Unknown], list[str]] = {}
    for request in requests:
        for what in _looked_up(request, options.judged_only):
            name = name_of(what, request.params)
            if name is not None:
                columns.setdefault((name, what), []).extend(request.columns)
    for (name, what), of in columns.items():
        judged, n = what in ("negatives", "grades"), counts.get(name, 0)
        total = overlap.n_with_relevant if judged else overlap.n_lists
        total = overlap.n_ranked if name.startswith("pred") else total
        said = n == total and not all(overlap.in_sides.values())  # by another warning
        if n <= (MANY_JUDGED if judged else MANY_UNKNOWN) * total or said:
            continue
        category = NoOverlapWarning if what == "log_users" and n == total else UnknownWarning
        told = ", ".join(dict.fromkeys(of))
        told = f"{n:,} of {total:,} {WORDS[what].format(told)} (spec['counts'] has {name!r})"
        warn_user(told, JudgedWarning if judged else category)


def name_of(what: Unknown, params: Params) -> str | None:
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
        "negatives": "lists_without_negatives",
        "grades": "lists_judged_alike",
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


def _negatives(matched: Matched, params: Params) -> np.ndarray:
    unknown: np.ndarray = (matched.n_true > 0) & (matched.at(None).n_judged == matched.n_true)
    return unknown


def _grades(matched: Matched, params: Params) -> np.ndarray:
    lists = matched.true_lists  # sorted by gain
    one = np.append(lists.gain[lists.start[:-1]] == lists.gain[lists.start[1:] - 1], False)
    unknown: np.ndarray = _negatives(matched, params) & one.take(matched.true_list)
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
    "negatives": _negatives,
    "grades": _grades,
    "category": _category,
    "group": _group,
}

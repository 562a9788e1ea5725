"""Count the recommended rows, or lists, that side tables do not know, by the names that these
counts have in `spec`.

Contract: the record of a metric names what may be unknown to it. Counting reads the lists and the
side tables and changes nothing. The counts can be added over parts of a population.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import JudgedWarning, NoOverlapWarning, UnknownWarning, warn_user
from ..inputs.options import Options
from ..matching.lists import Matched
from ..matching.overlap import Overlap
from .record import Request, Unknown

Params = Mapping[str, Any]

# Larger shares give a warning: of lists whose judgements do not differ, and of unknown rows or
# lists.
MANY_JUDGED, MANY_UNKNOWN = 0.5, 0.25

OF_OTHERS = ". {} leaves them out or gives them a fixed value, so it speaks of the others alone"


class Counted(NamedTuple):
    """What is counted: its name in `spec`, what a warning says of it, and a function that flags the
    rows or lists.

    The name may hold a column that is a parameter of the metric. Nothing is counted where that is
    None.
    """

    name: str
    words: str
    flags: Callable[[Matched, Params], Any]


def _items(matched: Matched, params: Params) -> Any:
    return np.logical_not(matched.sides.items.inside[matched.item])


def _log(matched: Matched, params: Params) -> Any:
    return np.equal(matched.sides.log.count("events"), 0)[matched.item]


def _items_or_log(matched: Matched, params: Params) -> Any:
    return (_items if matched.sides.has("items") else _log)(matched, params)


def _known_features(matched: Matched, params: Params) -> Any:
    return np.less(
        matched.sides.features.known(params["similarity"], params["separator"])[matched.item], 0
    )


def _without(column: str) -> Callable[[Matched, Params], Any]:
    def flags(matched: Matched, params: Params) -> Any:
        labels = matched.sides.items.labels(params[column], params.get("separator", "|"))
        return np.equal(labels.length, 0)[matched.item]

    return flags


def _negatives(matched: Matched, params: Params) -> Any:
    return np.logical_and(matched.n_true > 0, matched.at(None).n_judged == matched.n_true)


def _grades(matched: Matched, params: Params) -> Any:
    lists = matched.true_lists  # sorted by gain
    first = lists.start[:-1]
    one = np.append(lists.gain[first] == lists.gain[first + lists.n_judged - 1], False)
    return np.logical_and(_negatives(matched, params), one.take(matched.true_list))


JUDGE = (
    "Give true rows of relevance 0 for what was judged as not relevant (⟦relevance_col=⟧, "
    "⟦min_relevance=⟧), or"
)
ROWS_UNKNOWN = "recommended rows are of items"
COUNTED: dict[Unknown, Counted] = {
    "items": Counted("pred_outside_items", f"{ROWS_UNKNOWN} that ⟦items=⟧ lacks", _items),
    "items_or_log": Counted(
        "pred_outside_items",
        f"{ROWS_UNKNOWN} that the catalogue (⟦items=⟧, or else ⟦log=⟧) lacks",
        _items_or_log,
    ),
    "log": Counted("pred_not_in_log", f"{ROWS_UNKNOWN} that ⟦log=⟧ lacks", _log),
    "log_users": Counted(
        "lists_without_log",
        "lists are of users that ⟦log=⟧ lacks",
        lambda lists, _: lists.sides.log.n_history == 0,
    ),
    "features": Counted(
        "pred_without_features", f"{ROWS_UNKNOWN} without features", _known_features
    ),
    "category": Counted(
        "pred_without_{category_col}",
        f"{ROWS_UNKNOWN} without a category",
        _without("category_col"),
    ),
    "group": Counted(
        "pred_without_{group_col}", f"{ROWS_UNKNOWN} without a group", _without("group_col")
    ),
    "negatives": Counted(
        "lists_without_negatives",
        "lists with a relevant item have none that true judges as not relevant, with which {} "
        f"compares them: there it only tells what was found, as recall does. {JUDGE} take another "
        "metric",
        _negatives,
    ),
    "grades": Counted(
        "lists_judged_alike",
        "lists with a relevant item have judgements that are all alike, and ⟦+judged_only=True⟧ "
        "drops what is not judged: there {} tells what was found and not how it was ranked. "
        f"{JUDGE} pass ⟦+judged_only=False⟧",
        _grades,
    ),
}


def _looked_up(
    requests: Sequence[Request], judged_only: bool
) -> Iterator[tuple[Request, Unknown, str]]:
    """Yield what may be unknown to each request, and the name of its count in `spec`.

    With `judged_only`, all metrics need judgements that differ.
    """
    for request in requests:
        for what in (*request.unknown, *(("grades",) if judged_only else ())):
            if request.params.get(f"{what}_col", "") is not None:
                yield request, what, COUNTED[what].name.format_map(request.params)


def unknown_counts(matched: Matched, requests: Sequence[Request]) -> dict[str, int]:
    """Count rows or lists that a side table does not know, for all requests; each count is made
    once."""
    found: dict[str, int] = {}
    for request, what, name in _looked_up(requests, matched.judged_only):
        if name not in found:
            found[name] = int(np.count_nonzero(COUNTED[what].flags(matched, request.params)))
    return found


def warn_of_unknown(
    overlap: Overlap, counts: Mapping[str, int], requests: Sequence[Request], options: Options
) -> None:
    """Warn of side tables that know few of the rows or lists, and of metrics that need judged items
    and lack them."""
    columns: dict[tuple[str, Unknown], list[str]] = {}
    for request, what, name in _looked_up(requests, options.judged_only):
        columns.setdefault((name, what), []).extend(request.columns)
    for (name, what), of in columns.items():
        judged, n = what in ("negatives", "grades"), counts.get(name, 0)
        total = overlap.n_with_relevant if judged else overlap.n_lists
        total = overlap.n_ranked if name.startswith("pred") else total
        sides = (n for side, n in overlap.in_sides.items() if not side.startswith("exclude"))
        said = n == total and not all(sides)  # by another warning
        if n <= (MANY_JUDGED if judged else MANY_UNKNOWN) * total or said:
            continue
        category = NoOverlapWarning if what == "log_users" and n == total else UnknownWarning
        words = COUNTED[what].words + ("" if judged else OF_OTHERS)
        told = (
            f"{n:,} of {total:,} {words.format(', '.join(dict.fromkeys(of)))} (spec['counts'] has "
            f"{name!r})"
        )
        warn_user(told, JudgedWarning if judged else category, count=n)

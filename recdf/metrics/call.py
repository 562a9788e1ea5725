"""The checked arguments of a call: options, metric requests and side tables, before any row is
read; and what side tables do not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from ..errors import (
    ColumnError,
    JudgedWarning,
    NoOverlapWarning,
    OptionError,
    OrderWarning,
    UnknownWarning,
    warn_user,
)
from ..inputs.constraints import COLUMN_KINDS, Constraint, a_number, check_value
from ..inputs.options import ByName, Options, as_columns, check_shared
from ..inputs.true_and_pred import BrokenRows, argument_of
from ..matching.lists import Matched
from ..matching.match import match
from ..matching.overlap import Overlap, no_lists, warn, warn_of_columns
from ..matching.side_tables.sides import SIDES
from .record import Request, Unknown

# ------------------------------------------------------------------------------------------
# Count the recommended rows, or lists, that side tables do not know, by the names that these
# counts have in `spec`.
#
# Contract: the record of a metric names what may be unknown to it. Counting reads the lists and
# the side tables and changes nothing. The counts can be added over parts of a population.


Params = ByName  # of a metric

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
    return ~matched.sides.items.inside[matched.item]


def _log(matched: Matched, params: Params) -> Any:
    return (matched.sides.log.count("events") == 0)[matched.item]


def _without(column: str) -> Callable[[Matched, Params], Any]:
    def flags(matched: Matched, params: Params) -> Any:
        labels = matched.sides.items.labels(params[column], params.get("separator", "|"))
        return (labels.length == 0)[matched.item]

    return flags


def _negatives(matched: Matched, params: Params) -> Any:
    return (matched.n_true > 0) & (matched.at(None).n_judged == matched.n_true)


def _grades(matched: Matched, params: Params) -> Any:
    lists = matched.true_lists  # sorted by gain
    first = lists.start[:-1]
    one = np.append(lists.gain[first] == lists.gain[first + lists.n_judged - 1], False)
    return _negatives(matched, params) & one.take(matched.true_list)


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
        lambda lists, params: (_items if lists.sides.has("items") else _log)(lists, params),
    ),
    "log": Counted("pred_not_in_log", f"{ROWS_UNKNOWN} that ⟦log=⟧ lacks", _log),
    "log_users": Counted(
        "lists_without_log",
        "lists are of users that ⟦log=⟧ lacks",
        lambda lists, _: lists.sides.log.n_history == 0,
    ),
    "features": Counted(
        "pred_without_features",
        f"{ROWS_UNKNOWN} without features",
        lambda lists, params: (
            lists.sides.features(params["similarity"], params["separator"]).row_of[lists.item] < 0
        ),
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
        judged = what in ("negatives", "grades")
        n = counts.get(name, 0)
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


# ------------------------------------------------------------------------------------------
# The checked arguments of a call: options, metric requests and side tables, before any row is
# read.
#
# Contract: a `Call` is frozen and can be pickled. `evaluate`, metric objects, `evaluate_parquet`,
# `check` and the tables of diagnostics all start from a `Call`, so that the same mistake raises
# the same error everywhere.


CarryRule = Literal["constant", "first", "last", "min", "max"]
# Columns of `pred` that are copied into the per-user table, and how each is reduced to one value
# per list.
Carry = str | Sequence[str] | Mapping[str, CarryRule] | None

# What a metric may need beyond `pred`, and the argument that gives it.
NEEDS = {
    "true": "⟦+true=⟧ (what is relevant to each user)",
    "value": "⟦+value_col=⟧ (a value of items in pred, true or items)",
    "candidates": "⟦+items=⟧ (the catalogue) or ⟦+judged_only=True⟧",
    **SIDES,
}


@dataclass(frozen=True)
class Call:
    """The checked arguments of a call.

    options : checked options · requests : the metrics, each with its parameters and its k · given :
    side tables as the caller passed them, which are read when lists are matched · item_by : column
    of the catalogue whose groups of items are measured separately · carry : columns of `pred` to
    copy into the per-user table, each with its rule · files : how many files and rows hold each
    frame, if files do.
    """

    options: Options
    requests: tuple[Request, ...] = ()
    given: ByName = field(default_factory=dict)
    item_by: str | None = None
    carry: Mapping[str, CarryRule] = field(default_factory=dict)
    files: Mapping[str, dict[str, int]] = field(default_factory=dict)

    @classmethod
    def from_arguments(
        cls,
        function: Callable[..., Any],
        arguments: ByName,
        true: Any = None,
        requests: Callable[[Options], Sequence[Request]] = lambda options: (),
    ) -> Call:
        """Check the arguments of a function that takes `true` and `pred`.

        `arguments` are its shared options, side tables, `item_by` and `carry`, by name. `requests`
        makes the metrics that it is to compute.
        """
        own = (*SIDES, "item_by", "carry")
        shared = {name: value for name, value in arguments.items() if name not in own}
        given = {
            name: value for name, value in arguments.items() if name in SIDES and value is not None
        }
        item_by = arguments.get("item_by")
        check_shared(shared, function)
        check_value("item_by", item_by, str | None)
        options = Options(**shared)
        asked = tuple(requests(options))
        if item_by is not None and "items" not in given:
            raise OptionError(f"⟦item_by={item_by!r}⟧ needs {SIDES['items']}")
        there = {
            **{name: name in given for name in SIDES},
            "true": true is not None,
            "value": options.value_col is not None,
            "candidates": "items" in given or options.judged_only,
        }
        for request in asked:
            metric = request.metric
            # A similarity of positions in the catalogue needs no features beside it.
            positions = "items" in given and callable(request.params.get("similarity"))
            for need in request.needs:
                if not there[need] and not (need == "features" and positions):
                    raise OptionError(f"{request.columns[0]} needs {NEEDS[need]}")
            weighs = options.propensity_col is not None and true is not None
            if weighs and "true" in metric.arguments and "propensity" not in metric.optional:
                raise OptionError(
                    f"{request.columns[0]} has no form with ⟦+propensity_col=⟧, which weighs "
                    "relevant items in recall, precision, ndcg, mapr and mrr; measure it in a "
                    "call without ⟦+propensity_col=⟧"
                )
        keeps = options.convention is not None and options.convention.not_judged == "keep"
        if keeps or any("not_judged" in request.metric.optional for request in asked):
            options = options.updated(not_judged="keep")
        call = cls(options, asked, given, item_by)
        weight = options.weight_name
        if weight is not None and call.result_columns.count(weight) > 1:
            raise ColumnError(
                f"⟦weight_col={weight!r}⟧ has the name of another result column; rename it"
            )
        return replace(call, carry=carry_rules(arguments.get("carry"), options, call.columns))

    def knowing(self, max_gain: float) -> Call:
        """Return the call for a part: metrics that need the largest gain in `true` get that of all
        parts.

        The definitions of these requests then differ from those of the caller's requests.
        """
        known = {"max_gain": max_gain}
        requests = [
            replace(one, params={**one.params, **known})
            if one.params.get("max_gain", 0) is None
            else one
            for one in self.requests
        ]
        return replace(self, requests=tuple(requests))

    @property
    def per_list(self) -> list[Request]:
        """The requests that give a value for each list."""
        return [request for request in self.requests if request.per == "list"]

    @property
    def per_item(self) -> list[Request]:
        """The requests for one number for all lists of a `by` value: metrics of exposure, and
        pooled ones."""
        return [request for request in self.requests if request.per == "item"]

    @property
    def columns(self) -> list[str]:
        """The metric columns of the per-user table."""
        return [name for request in self.per_list for name in request.columns]

    @property
    def result_columns(self) -> list[str]:
        """The columns of the per-user table that are computed: the weight, the lengths of both
        lists, the metrics."""
        weight = [] if self.options.weight_name is None else [self.options.weight_name]
        return [*weight, "n_true", "n_pred", *self.columns]

    def match(self, true: Any, pred: Any) -> Matched:
        """Match two whole frames by the options of this call, and warn of what makes hits
        impossible.

        Use it in a `with` statement, which frees memory at the end.
        """
        matched = match(true, pred, self.options, self.given)
        if len(matched):
            counts = {
                **matched.side_counts,
                **matched.counts,
                **unknown_counts(matched, self.requests),
            }
            self.warn(matched.overlap, counts, matched.by)
            return matched
        warn_of_columns(matched.overlap)
        raise no_lists(matched.overlap, self.options)

    def warn(self, overlap: Overlap, counts: Mapping[str, int], by: pd.DataFrame) -> None:
        """Warn of all that both frames and the side tables lack; `counts` are those of all rows of
        the call."""
        warn_of_columns(overlap)
        warn(overlap, counts, by, self.options)
        warn_of_unknown(overlap, counts, self.requests, self.options)
        rank, score = overlap.order or ("", "")
        # The requests that say what equal scores of the shown items count.
        idle = [
            one.columns[0]
            for one in self.requests
            if "tied=" in one.name
            and "tied=ranked" not in one.name
            and one.params.get("within") != "catalogue"
        ]
        if score and idle and not overlap.ranks_repeat:
            warn_user(
                f"⟦tied=⟧ has no effect on {', '.join(idle)}: pred[{rank!r}] decides the order, "
                f"and no ranks are equal within a list; pass {argument_of(score)} for the ties of "
                f"pred[{score!r}]",
                OrderWarning,
            )

    def match_part(
        self,
        true: Any,
        pred: Any,
        by_values: pd.DataFrame | None,
        whole: bool,
        findings: dict[str, BrokenRows] | None = None,
    ) -> Matched:
        """Match the frames of a part, or of the `whole`, without warnings; there may be no list.

        `by_values` are the `by` values of the whole. The caller gives the warnings once all parts
        are matched, and raises the error for the rows that `findings` refuse.
        """
        return match(true, pred, self.options, self.given, by_values, not whole, findings)


def carry_rules(carry: Carry, options: Options, taken: Sequence[str]) -> dict[str, CarryRule]:
    """Return the rule of each column to carry. `taken` are names that a result already has for its
    own columns."""
    if carry is None:
        return {}
    if not isinstance(carry, Mapping):
        names = COLUMN_KINDS[Sequence[str]].check("carry", as_columns(carry))
        carry = dict.fromkeys(names, "constant")
    rules: dict[str, CarryRule] = dict(carry)
    for name, rule in rules.items():
        check_value(f"carry[{name!r}]", rule, CarryRule)
        if name in (*as_columns(options.by), *options.list_key):
            raise OptionError(
                f"carry has {name!r}, which is a key or by column and comes along by itself"
            )
        if name in ("n_true", "n_pred", options.weight_name, *taken):
            raise ColumnError(
                f"the column {name!r} of pred has the name of a result column; rename it"
            )
    return rules


CUT_OFF = Constraint(
    "a positive integer below 2**31", a_number(1, 2**31 - 1, whole=True).holds, "int"
)


def check_k(k: Any) -> int:
    """Return k as an int, or raise."""
    return int(CUT_OFF.check("k", k))

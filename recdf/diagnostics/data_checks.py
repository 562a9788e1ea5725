"""`check`: unusual features of the data that affect the metrics, one row per finding, of whole
frames or of users in parts.
`data_profile`: what a run keeps of its data, to be compared with later runs.

Contract of a part: it has all rows of its users. Findings that need all rows together are left
out, and what is not found counts too, so that shares are those of all rows.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Unpack

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..errors import RecdfWarning
from ..inputs.codes import encode_keys
from ..inputs.door import takes_options
from ..inputs.frames import column, id_frame, read_frame, read_numbers
from ..inputs.ids import IdColumn, read_ids
from ..inputs.options import CallArguments, Options, as_columns, given_column
from ..inputs.sorting import distinct, flags_at
from ..inputs.true_and_pred import by_in_true, hints_of, order_source, relevance_source
from ..judge.per_user_columns import require
from ..matching.hits import ratio
from ..matching.lists import Matched
from ..matching.overlap import Overlap
from ..metrics.call import Call, check_k
from ..metrics.compute import mean
from ..metrics.strings import parse
from ..progress import Progress
from ..stats.numbers import Floats, Integers, Mask
from ..tables.findings import Findings, Severity, row_names
from .check_findings import (
    MANY_SEEN,
    Data,
    ListFindings,
    check_catalogue,
    check_empty,
    check_ids,
    check_lists,
    check_numbers,
    check_sampled,
    check_seen,
    check_side,
    check_unused_numbers,
    forgiving,
    read_checked_ids,
)
from .levels import matched_quietly, values_of, with_ranks


@takes_options(every_number=True)
def check(
    true: Any,
    pred: Any,
    k: int = 10,
    *,
    log: Any = None,
    items: Any = None,
    exclude: Any = None,
    **options: Unpack[CallArguments],
) -> DataFrame:
    """Find what is unusual in the data, and how it affects the metrics: one row per finding, none
    for clean data.

    Parameters
    ----------
    true, pred : DataFrame, mapping or Arrow stream
        As for `evaluate`.
    k : int, default 10
        Cut-off that the findings refer to.
    log : DataFrame, optional
        Past interactions (list key, item): recommendations of items that the user already had are
        reported.
    items : DataFrame, list, Series or Index, optional
        Catalogue: items outside it are reported.
    exclude : DataFrame, mapping or Arrow stream, optional
        Rows of (user, item) to leave out of both frames, as for `evaluate`; findings are of the
        rows that are left.
    {options}

    Returns
    -------
    DataFrame
        `finding`, `severity` ("error": `evaluate` refuses or scores nothing; "warning": numbers
        change; "info": worth knowing), `count`, `share` (of the rows or lists that it concerns),
        `examples` (text), `effect` (what it does to the metrics), `code`
        (names the finding for programs), `by` (whose lists it is about,
        where `by=` tells recommenders apart: one row for each), `ranges` (of ties: JSON of each
        metric with its mean for the worst and the best order, else ""). Errors first.

    Raises
    ------
    ColumnError, OptionError
        If a column is missing or an option is wrong.

    Examples
    --------
    >>> import recdf as rd
    >>> found = rd.check({"u": ["a"], "v": ["b"]}, {"u": ["a", "x"]}, k=2)
    >>> found[["finding", "severity", "count", "share", "examples"]]
                             finding severity  count  share examples
    0  lists without recommendations  warning      1    0.5      'v'
    """
    shared = check_options(options)
    k = check_k(k)
    found = Data(
        true=read_frame(true, "true", shared),
        pred=read_frame(pred, "pred", shared),
        k=k,
        options=shared,
    )
    check_empty(found, {"true": found.true, "pred": found.pred})
    hints = hints_of(found.true, found.pred, shared)
    n_true = len(found.true)
    effect = (
        "each value is scored with all rows of true; ⟦+by_in_true=True⟧ scores it with those of "
        "the same value"
    )
    of_by = hints.true_by
    found.add("by_in_true", "true has columns of by", "warning", len(of_by), 0, of_by, effect)
    effect = (
        "true comes first, then pred; ⟦+score_col=False⟧ says that the rows of pred are in order"
    )
    n = hints.swapped and n_true
    found.add("swapped", "true and pred look swapped", "warning", n, n_true, "", effect)
    with Progress(4, "check") as progress:
        pred_ids = check_ids(found)
        check_numbers(found)
        progress.add()
        if pred_ids is None or found.refused_numbers:
            return found.table()
        if items is not None:
            items = id_frame(items, "items", [shared.item_col])
            usable = check_side(found, "items", items, [shared.item_col], pred_ids)
            items = items[items[shared.item_col].notna()] if usable else None
        if exclude is not None:
            _leave_out(exclude, found, pred_ids)
        if not len(found.pred) + len(found.true):
            return found.table()
        with matched_quietly(_forgiving_call(found, items), found.true, found.pred) as matched:
            progress.add()
            _check_matched(found, matched)
            check_sampled(found)
            if found.order["column"] is None and shared.score_col is not False:
                check_unused_numbers(found)
        progress.add()
        if log is not None:
            log = read_frame(log, "log", shared)
            if check_side(found, "log", log, found.pair, pred_ids):
                check_seen(found, log)
    return found.table()


def check_options(options: Mapping[str, Any]) -> Options:
    """Return the shared options of a check."""
    return Call.from_arguments(check, {**options, "ties": "item_desc", "undefined": "nan"}).options


def _forgiving_call(found: Data, items: DataFrame | None) -> Call:
    return Call(forgiving(found.options), given={} if items is None else {"items": items})


def _check_matched(found: Data, matched: Matched) -> None:
    """Add the findings about the lists that the rows make."""
    found.matched = matched
    check_lists(found)
    check_order(found)
    if matched.sides.has("items"):
        check_catalogue(found)


def _leave_out(exclude: Any, found: Data, pred_ids: dict[str, IdColumn]) -> None:
    """Keep the rows that `evaluate` keeps, and those with null ids, which are a finding."""
    options = found.options
    exclude = read_frame(exclude, "exclude", options)
    keys = options.list_key
    names = [*([name for name in keys if name in exclude.columns] or keys), options.item_col]
    if not check_side(found, "exclude", exclude, names, pred_ids):
        return
    frames = {"true": found.true, "pred": found.pred, "exclude": exclude.dropna(subset=names)}
    ids = [[read_ids(one[name], role) for name in names] for role, one in frames.items()]
    (*codes, out), _ = encode_keys(ids)
    left = []
    for (role, frame), own in zip(frames.items(), codes, strict=False):
        gone = np.isin(own.all(), out.all()) & frame[found.pair].notna().all(axis=1).to_numpy()
        effect = "evaluate leaves them out before lists are ranked"
        found.of_rows("excluded", f"rows of {role} in exclude", "info", gone, "", effect)
        left.append(frame[~gone])
    found.true, found.pred = left


# ------------------------------------------------------------------------------------------
# Findings about the order of `pred`: ties, ranks with gaps, and columns that contradict each other.

ORDER_DOUBTS = {
    "counts": "scores that are 1, 2, 3, ... along the rows",
    "distance": "distances taken for scores",
    "beside": "ranks and scores that contradict each other",
}
ASK_A_SAMPLE = "rd.check of a sample of users says how far another order moves the metrics"
TIE_METRICS = ("hitrate", "precision", "recall", "mapr", "ndcg", "mrr")


def check_order(found: Data) -> None:
    """Add the findings about the order of `pred`."""
    matched = found.matched
    level = matched.tie_level
    by = found.order["by"]
    pred = found.pred
    several = "pred_duplicates" not in matched.counts
    if level is None and found.parts and by != "row":  # no two places are tied here
        level = np.arange(len(matched.item))
    if level is not None and by == "rank":
        repeats = _lists_where(matched, _tied(matched))
        before = "lists of several recommenders may be one list here; "
        ties = before + ASK_A_SAMPLE if found.parts else _tie_ranges(matched, found.k, before)
        what = "ranks repeat within a list; is ⟦+by=⟧ missing?"
        found.lists("repeated_ranks", what, "warning", repeats, ties)
    elif level is not None:
        _check_ties(found, level)
    if by == "rank" and several:
        rank = _in_list_order(pred, matched, found.order["column"])
        first = matched.n_pred > 0
        first[first] = rank[matched.start[first]] != 1
        effect = (
            "recdf ranks anew, so a shift changes nothing here; other tools may read rank 0 or 2 "
            "as it stands"
        )
        found.lists("first_rank", "ranks that do not start at 1", "warning", first, effect)
        gaps = _lists_where(matched, rank[1:] > rank[:-1] + 1)
        effect = "gaps close up: items below a gap move up"
        found.lists("rank_gaps", "ranks with gaps", "warning", gaps, effect)
    if found.parts:
        return
    other = "score" if by == "rank" else "rank"
    taken = {*found.pair, *found.by, found.order["column"], found.options.value_col}
    if (
        by != "row"
        and several
        and other in {*pred.columns} - taken
        and pd.api.types.is_numeric_dtype(pred[other].dtype)
    ):
        _check_other_order(found, other, _in_list_order(pred, matched, other))
    if by == "score" and not matched.pred_lists.as_given:
        _check_rows_beside_scores(found)
    check_doubts(found, replace(matched.overlap, order=[*matched.overlap.order[:1], ""]))


def check_doubts(found: Findings, overlap: Overlap) -> None:
    """Report what is doubtful about the order of most lists. Where the other column has no name,
    ranks and scores that contradict each other are reported elsewhere."""
    for doubt, n, of, what, advice in overlap.in_doubt():
        if doubt != "beside" or overlap.order[1]:
            found.add(f"order_{doubt}", ORDER_DOUBTS[doubt], "warning", n, of, what, advice)


def _check_ties(found: Data, level: Integers) -> None:
    """Report equal scores: in a whole list, across rank k, or elsewhere."""
    matched = found.matched
    k = found.k
    served = np.flatnonzero(matched.n_pred > 0)
    start = matched.start[served]
    length = matched.n_pred[served]
    constant, across = np.zeros((2, len(matched)), bool)
    constant[served] = (length > 1) & (level[start] == level[start + length - 1])
    effect = "their order is the order of item ids, or of rows: it says nothing"
    found.lists("constant_scores", "constant scores", "warning", constant, effect)
    cut = length > k
    across[served[cut]] = level[start[cut] + k - 1] == level[start[cut] + k]
    ties = ASK_A_SAMPLE if found.parts else _tie_ranges(matched, k)
    found.lists("ties_across_k", f"ties across rank {k}", "warning", across, ties)
    if not across.any() or found.parts:
        tied = _lists_where(matched, _tied(matched))
        found.lists("ties", "equal scores", "info", tied, ties)


def _check_other_order(found: Data, other: str, number: Floats) -> None:
    """Report scores that are all equal, and scores and ranks that contradict each other."""
    matched = found.matched
    several = matched.n_pred > 1
    before = number[:-1]
    after = number[1:]
    if other == "score" and several.any() and not _lists_where(matched, before != after).any():
        effect = "rank decides; by these scores, as other tools order, every list is one tie"
        found.lists("constant_scores", "constant scores", "info", several, effect)
    against = _lists_where(matched, after > before if other == "score" else after < before)
    what = "score order that contradicts the ranks"
    effect = "rank decides; pass ⟦+score_col=⟧ to order by score"
    if other == "rank":
        what = "rank order that contradicts the scores"
        effect = "score decides; pass ⟦+rank_col=⟧ to order by rank"
    found.lists(f"{other}_against_order", what, _severity(against, matched), against, effect)


def _check_rows_beside_scores(found: Data) -> None:
    """Report lists whose rows have another order than their scores, if the rows of each list stand
    together."""
    matched = found.matched
    rows = matched.rows(np.arange(len(matched.item)))
    of_row = np.full(len(found.pred), -1)
    of_row[rows] = list_of_places(matched)
    of_row = of_row[of_row >= 0]
    if np.count_nonzero(np.diff(of_row)) + 1 > np.count_nonzero(matched.n_pred):
        return
    against = _lists_where(matched, (rows[1:] < rows[:-1]) & ~_tied(matched))
    upside_down = against & ~_lists_where(matched, rows[1:] > rows[:-1])
    effect = (
        "the score decides; if the rows were in the right order, smaller scores are better: pass "
        "⟦+rank_col=⟧"
    )
    what = "row order that contradicts the scores"
    found.lists("rows_against_scores", what, _severity(upside_down, matched), against, effect)


def _severity(against: Mask, matched: Matched) -> Severity:
    """Return "warning" for more than half of the lists of several items."""
    return "warning" if 2 * against.sum() > (matched.n_pred > 1).sum() else "info"


def _in_list_order(pred: DataFrame, matched: Matched, name: Any) -> Floats:
    """Return the numbers of a column of `pred`, list after list."""
    number = read_numbers(pred[name], f"pred[{name!r}]")
    return number.take(matched.rows(np.arange(len(matched.item))))


def list_of_places(matched: Matched) -> Integers:
    """Return the list of each place; lists may stand in any order."""
    order = np.argsort(matched.start, kind="stable")
    return matched.derived("list of places", lambda: np.repeat(order, matched.n_pred[order]))


def _lists_where(matched: Matched, step: Mask) -> Mask:
    """Return the lists in which a step from one place to the next is flagged."""
    of_place = list_of_places(matched)
    return flags_at(of_place[1:][step & (of_place[1:] == of_place[:-1])], len(matched))


def _tied(matched: Matched) -> Mask:
    """Tell which steps lead to an equal score or rank."""
    level = matched.tie_level
    return np.diff(np.arange(len(matched.item)) if level is None else level) == 0


def _tie_ranges(matched: Matched, k: int, before: str = "") -> Callable[[Mask], tuple[str, str]]:
    """Return a function of some lists that says their means with the relevant items of every tie
    last, and with them first: in words and as JSON.

    The lists are ranked twice for all recommenders, when the first of them is asked for.
    """
    values = cache(lambda: _in_both_orders(matched, k))

    def ranges_of(own: Mask) -> tuple[str, str]:
        evaluated = own & (matched.true_list >= 0)
        words = []
        ranges = {}
        worst, best = values()
        for name in worst:
            low, high = (mean(case[name][evaluated]) for case in (worst, best))
            if high - low > 1e-12:
                digits = next(n for n in range(4, 18) if f"{low:.{n}g}" != f"{high:.{n}g}")
                words.append(f"{name} from {low:.{digits}g} to {high:.{digits}g}")
                ranges[name] = [low, high]
        said = "; ".join(words) if words else f"no metric at {k} depends on it"
        return before + said, json.dumps(ranges) if ranges else ""

    return ranges_of


def _in_both_orders(matched: Matched, k: int) -> list[dict[str, Floats]]:
    """Return the values of the metrics with the relevant items of every tie last, and with them
    first."""
    level = matched.tie_level
    judged = matched.judged
    assert level is not None
    own = level[judged.place]
    begin = matched.start[judged.list]
    top, bottom = (np.searchsorted(level, own, side) - begin for side in ("left", "right"))
    better = pd.Series(judged.gain).groupby(own).rank("first", ascending=False).to_numpy(np.int64)
    call = Call(Options(), tuple(parse(TIE_METRICS, k, Options())))
    every = np.arange(len(matched)), matched.n_pred, judged.list, judged.true_place
    ranks = bottom + 1 - better, top + better
    return [values_of(with_ranks(matched, *every, rank), call) for rank in ranks]


# ------------------------------------------------------------------------------------------
# The findings of users in parts, which add up.

ROWS = "rows"  # a finding that is not shown: how many rows a frame has
OF_NUMBERS = ("empty", "null_ids", "null_order", "infinite_order", "bad_relevance", "bad_column")


def columns_to_check(frames: Mapping[str, DataFrame], options: Options) -> dict[str, list[str]]:
    """Return the columns of `true`, `pred` and `log` that a check of users in parts reads."""
    of_true = [relevance_source(frames["true"], options), options.propensity_col]
    of_true += [options.weight_name, *by_in_true(frames["true"], options)]
    of_pred = [*as_columns(options.by), order_source(frames["pred"], options)["column"]]
    more = {"true": of_true, "pred": of_pred, "log": []}
    return {
        role: require(frame, role, [one for one in dict.fromkeys(names) if one is not None])
        for role, frame in frames.items()
        for names in [[*options.pair, *more[role]]]
    }


def findings_of_users(
    frames: Mapping[str, DataFrame],
    k: int,
    options: Options,
    items: DataFrame | None,
    by_values: DataFrame | None,
) -> ListFindings:
    """Return what is unusual in the rows of some users; the findings of several parts add up."""
    found = Data(true=frames["true"], pred=frames["pred"], k=k, options=options, parts=True)
    check_empty(found, frames)
    for role, frame in frames.items():
        found.add(ROWS, "rows", "info", 0, len(frame), "", "", frame=role)
        for name in found.pair:
            read_checked_ids(found, column(frame, name, role), role)
    check_numbers(found)
    if not found.refused_numbers:
        call = _forgiving_call(found, items)
        with (
            warnings.catch_warnings(action="ignore", category=RecdfWarning),
            call.match_part(found.true, found.pred, by_values, False) as matched,
        ):
            _check_matched(found, matched)
        if "log" in frames:
            check_seen(found, frames["log"])
    # The rows and lists of a bucket stay with its worker.
    return ListFindings(found.rows, found.refused_numbers, found.parts)


def findings_of_parts(found: ListFindings) -> DataFrame:
    """Return the sum of the findings of all parts as `check` returns them."""
    there = {(row["code"], row["frame"]) for row in found.rows if row["count"]}
    left_out = {"ties"} if ("ties_across_k", "") in there else set()
    left_out |= {"first_rank", "rank_gaps"} if ("duplicates", "pred") in there else set()
    n_rows = {row["frame"]: row["of"] for row in found.rows if row["code"] == ROWS}
    kept = []
    for row in found.rows:
        code = row["code"]
        if code in left_out or (found.refused_numbers and code not in OF_NUMBERS):
            continue
        if code in ("bad_column", "null_ids"):  # parts without such rows say nothing
            row["of"] = n_rows[row["frame"] or "true"]
        if code in ("pred_seen", "true_seen"):
            row["severity"] = "warning" if row["count"] > MANY_SEEN * row["of"] else "info"
        if code != "empty" or row["count"] == row["of"]:
            kept.append(row)
    found.rows = kept
    return found.table()


# ------------------------------------------------------------------------------------------
# `data_profile`: sizes, unknown ids, judged share and scores of the data of one run, to be
# compared over time.


AT_SHARES = np.array([0.01, 0.1, 0.5, 0.9, 0.99])


@takes_options()
def data_profile(
    true: Any, pred: Any, *, items: Any = None, **options: Unpack[CallArguments]
) -> DataFrame:
    """Describe the data of one evaluation in a few numbers per recommender, for `History` to
    compare over time.

    Parameters
    ----------
    true, pred : DataFrame, mapping or Arrow stream
        As for `evaluate`.
    items : DataFrame, list, Series or Index, optional
        Catalogue, outside which items of `pred` are unknown.
    {options}

    Returns
    -------
    DataFrame
        `model` (`by` values, "" without `by`), `quantity`, `value`. Quantities: "rows_pred",
        "lists_pred", "items_pred"; "unknown_users" (share of the lists of `pred` that `true`
        lacks), "unknown_items" (share of rows outside `items`, if given), "judged" (share of the
        rows of known users that have a row in `true`), and "score_q01" to "score_q99" (quantiles of
        the scores, if `pred` has any).

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError
        As `evaluate` does.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.diagnostics.data_profile({"ann": ["a"]}, {"ann": ["a", "x"], "bob": ["y"]})
      model       quantity  value
    0            rows_pred    3.0
    1           lists_pred    2.0
    2           items_pred    3.0
    3        unknown_users    0.5
    4               judged    0.5
    """
    call = Call.from_arguments(data_profile, {**options, "items": items, "users": "all"})
    score_col = given_column(call.options.score_col)
    score_col = "score" if score_col is None else score_col
    with call.match(true, pred) as matched:
        _, frame = matched.frames
        names = row_names(matched.by)
        place_list = list_of_places(matched)
        model = matched.list_by[place_list]
        shown = matched.n_pred > 0
        in_true = matched.true_list >= 0

        def each(of: Integers, where: Mask | None = None) -> Integers:
            return np.bincount(of, where, len(names))

        lists_pred = each(matched.list_by, shown)
        found = {
            "rows_pred": each(model),
            "lists_pred": lists_pred,
            "items_pred": each(distinct(model * matched.n_items + matched.item) // matched.n_items),
            "unknown_users": ratio(each(matched.list_by, shown & ~in_true), lists_pred),
            "judged": ratio(each(model[matched.judged.place]), each(model, in_true[place_list])),
        }
        if items is not None:
            outside = ~matched.sides.items.inside[matched.item]
            found["unknown_items"] = ratio(each(model, outside), found["rows_pred"])
        if score_col in frame.columns:
            scores = pd.Series(_in_list_order(frame, matched, score_col))
            levels = scores.groupby(model).quantile(AT_SHARES).unstack()
            levels = levels.reindex(index=range(len(names)), columns=AT_SHARES)
            found |= {f"score_q{round(100 * q):02d}": levels[q].to_numpy() for q in AT_SHARES}
    values = np.column_stack(list(found.values()))
    return DataFrame(
        {
            "model": np.repeat(names, len(found)),
            "quantity": [*found] * len(names),
            "value": values.ravel(),
        }
    )

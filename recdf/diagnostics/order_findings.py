"""Findings of `check` about the order of `pred`: ties, ranks with gaps, and columns that contradict
each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd

from ..inputs.frames import read_numbers
from ..inputs.options import Options
from ..matching.hits import Hits
from ..matching.lists import Matched
from ..matching.overlap import Overlap
from ..metrics.compute import compute, mean
from ..metrics.metric import find
from ..tables.findings import Findings, Severity
from .check_findings import Data, ListFindings

ORDER_DOUBTS = {
    "counts": "scores that are 1, 2, 3, ... along the rows",
    "distance": "distances taken for scores",
    "beside": "ranks and scores that contradict each other",
}
ASK_A_SAMPLE = "rd.check of a sample of users says how far another order moves the metrics"
TIE_METRICS = ("hitrate", "precision", "recall", "mapr", "ndcg", "mrr")


def check_order(found: ListFindings, data: Data, matched: Matched) -> None:
    """Add the findings about the order of `pred`."""
    level, by, pred = matched.tie_level, data.order["by"], data.pred
    several = "pred_duplicates" not in matched.counts
    if level is None and found.parts and by != "row":  # no two places are tied here
        level = np.arange(len(matched.item))
    if level is not None and by == "rank":
        repeats, before = (
            _lists_where(matched, _tied(matched)),
            "lists of several recommenders may be one list here; ",
        )
        ties = before + ASK_A_SAMPLE if found.parts else _tie_ranges(matched, data.k, before)
        what = "ranks repeat within a list; is ⟦+by=⟧ missing?"
        found.lists("repeated_ranks", what, "warning", repeats, ties)
    elif level is not None:
        _check_ties(found, data, matched, level)
    if by == "rank" and several:
        _check_ranks(found, matched, _in_list_order(data, matched, data.order["column"]))
    if found.parts:
        return
    other = "score" if by == "rank" else "rank"
    taken = {*data.pair, *data.by, data.order["column"], data.options.value_col}
    if (
        by != "row"
        and several
        and other in {*pred.columns} - taken
        and pd.api.types.is_numeric_dtype(pred[other].dtype)
    ):
        _check_other_order(found, matched, other, _in_list_order(data, matched, other))
    if by == "score" and not matched.as_given:
        _check_rows_beside_scores(found, matched, len(pred))
    check_doubts(found, replace(matched.overlap, order=[*matched.overlap.order[:1], ""]))


def check_doubts(found: Findings, overlap: Overlap) -> None:
    """Report what is doubtful about the order of most lists. Where the other column has no name,
    ranks and scores that contradict each other are reported elsewhere."""
    for doubt, n, of, what, advice in overlap.in_doubt():
        if doubt != "beside" or overlap.order[1]:
            found.add(f"order_{doubt}", ORDER_DOUBTS[doubt], "warning", n, of, what, advice)


def _check_ties(found: ListFindings, data: Data, matched: Matched, level: np.ndarray) -> None:
    """Report equal scores: in a whole list, across rank k, or elsewhere."""
    k, served = data.k, np.flatnonzero(matched.n_pred > 0)
    start, length = matched.start[served], matched.n_pred[served]
    constant, across = np.zeros((2, len(matched)), bool)
    constant[served] = (length > 1) & (level[start] == level[start + length - 1])
    effect = "their order is the order of item ids, or of rows: it says nothing"
    found.lists("constant_scores", "constant scores", "warning", constant, effect)
    cut = length > k
    across[served[cut]] = level[start[cut] + k - 1] == level[start[cut] + k]
    ties = ASK_A_SAMPLE if found.parts else _tie_ranges(matched, k)
    if across.any() or found.parts:
        found.lists("ties_across_k", f"ties across rank {k}", "warning", across, ties)
    if not across.any() or found.parts:
        tied = _lists_where(matched, _tied(matched))
        found.lists("ties", "equal scores", "info", tied, ties)


def _check_ranks(found: ListFindings, matched: Matched, rank: np.ndarray) -> None:
    """Report ranks that do not count 1, 2, 3, ... within a list."""
    first = matched.n_pred > 0
    first[first] = rank[matched.start[first]] != 1
    effect = (
        "recdf ranks anew, so a shift changes nothing here; other tools may read rank 0 or 2 as it "
        "stands"
    )
    found.lists("first_rank", "ranks that do not start at 1", "warning", first, effect)
    gaps = _lists_where(matched, rank[1:] > rank[:-1] + 1)
    effect = "gaps close up: items below a gap move up"
    found.lists("rank_gaps", "ranks with gaps", "warning", gaps, effect)


def _check_other_order(
    found: ListFindings, matched: Matched, other: str, number: np.ndarray
) -> None:
    """Report scores that are all equal, and scores and ranks that contradict each other."""
    several, before, after = matched.n_pred > 1, number[:-1], number[1:]
    if other == "score" and several.any() and not _lists_where(matched, before != after).any():
        effect = "rank decides; by these scores, as other tools order, every list is one tie"
        found.lists("constant_scores", "constant scores", "info", several, effect)
    against = _lists_where(matched, after > before if other == "score" else after < before)
    what = "score order that contradicts the ranks"
    effect = "rank decides; pass ⟦+score_col=⟧ to order by score"
    if other == "rank":
        what = "rank order that contradicts the scores"
        effect = "score decides; pass ⟦+rank_col=⟧ to order by rank"
    severity = _severity(against, matched)
    found.lists(f"{other}_against_order", what, severity, against, effect)


def _check_rows_beside_scores(found: ListFindings, matched: Matched, n_rows: int) -> None:
    """Report lists whose rows have another order than their scores, if the rows of each list stand
    together."""
    rows, of_row = matched.rows(np.arange(len(matched.item))), np.full(n_rows, -1)
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
    what, severity = "row order that contradicts the scores", _severity(upside_down, matched)
    found.lists("rows_against_scores", what, severity, against, effect)


def _severity(against: np.ndarray, matched: Matched) -> Severity:
    """Return "warning" for more than half of the lists of several items."""
    return "warning" if 2 * against.sum() > (matched.n_pred > 1).sum() else "info"


def _in_list_order(data: Data, matched: Matched, name: str | None) -> np.ndarray:
    """Return the numbers of a column of `pred`, list after list."""
    number = read_numbers(data.pred[name], str(name))
    return number if matched.as_given else number.take(matched.rows(np.arange(len(matched.item))))


def list_of_places(matched: Matched) -> np.ndarray:
    """Return the list of each place; lists may stand in any order."""
    order = np.argsort(matched.start, kind="stable")
    found: np.ndarray = matched.derived(
        "list of places", lambda: np.repeat(order, matched.n_pred[order])
    )
    return found


def _lists_where(matched: Matched, step: np.ndarray) -> np.ndarray:
    """Return the lists in which a step from one place to the next is flagged."""
    of_place, flagged = list_of_places(matched), np.zeros(len(matched), bool)
    flagged[of_place[1:][step & (of_place[1:] == of_place[:-1])]] = True
    return flagged


def _tied(matched: Matched) -> np.ndarray:
    """Tell which steps lead to an equal score or rank."""
    level = matched.tie_level
    return np.diff(np.arange(len(matched.item)) if level is None else level) == 0


def _tie_ranges(
    matched: Matched, k: int, before: str = ""
) -> Callable[[np.ndarray], tuple[str, str]]:
    """Return a function of some lists that says their means with the relevant items of every tie
    last, and with them first: in words and as JSON.

    The lists are ranked twice for all recommenders, when the first of them is asked for.
    """
    values = cache(lambda name: _in_both_orders(matched, name, k))

    def ranges_of(own: np.ndarray) -> tuple[str, str]:
        evaluated, words, ranges = own & (matched.true_list >= 0), [], {}
        for name in TIE_METRICS:
            low, high = (mean(case[evaluated]) for case in values(name))
            if high - low > 1e-12:
                digits = next(n for n in range(4, 18) if f"{low:.{n}g}" != f"{high:.{n}g}")
                words.append(f"{name}@{k} from {low:.{digits}g} to {high:.{digits}g}")
                ranges[f"{name}@{k}"] = [low, high]
        said = "; ".join(words) if words else f"no metric at {k} depends on it"
        return before + said, json.dumps(ranges) if ranges else ""

    return ranges_of


def _in_both_orders(matched: Matched, name: str, k: int) -> list[np.ndarray]:
    """Return the values of a metric with the relevant items of every tie last, and with them
    first."""
    level, judged, options = matched.tie_level, matched.judged, Options()
    assert level is not None
    own, begin = level[judged.place], matched.start[judged.list]
    top, bottom = (np.searchsorted(level, own, side) - begin for side in ("left", "right"))
    better = pd.Series(judged.gain).groupby(own).rank("first", ascending=False).to_numpy(np.int64)
    request, cases = find(name).request({}, k, options), []
    for rank in (bottom + 1 - better, top + better):
        order = np.lexsort((rank, judged.list))
        arrays = judged.list, rank, judged.gain, judged.place, judged.true_place
        hits = Hits.of(*(one[order] for one in arrays))
        cases.append(next(iter(compute(matched.beside(hits), request, options).values())))
    return cases

"""Findings of `check` about the order of `pred`: ties, ranks with gaps, and columns that contradict
each other."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd

from ..inputs.frames import read_numbers
from ..inputs.ids import read_ids
from ..inputs.options import Options, as_columns
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
    level = matched.tie_level
    if level is None and found.parts and data.order["by"] != "row":  # no two places are tied here
        level = np.arange(len(matched.item))
    if level is not None and data.order["by"] == "rank":
        repeats = _lists_where(matched, _tied(matched))
        before = "lists of several recommenders may be one list here; "
        ties = before + ASK_A_SAMPLE if found.parts else _TieRanges(matched, data.k, before)
        found.lists(
            "repeated_ranks",
            "ranks repeat within a list; is ⟦+by=⟧ missing?",
            "warning",
            repeats,
            ties,
        )
    elif level is not None:
        _check_ties(found, data, matched, level)
    by, several = data.order["by"], "pred_duplicates" not in matched.counts
    if by == "rank" and several:
        _check_ranks(found, data, matched)
    if found.parts:
        return
    other = "score" if by == "rank" else "rank"
    taken = {*data.pair, *data.by, data.order["column"], data.options.value_col}
    if (
        by != "row"
        and several
        and other in {*data.pred.columns} - taken
        and pd.api.types.is_numeric_dtype(data.pred[other].dtype)
    ):
        _check_other_order(found, data, matched, other)
    if by == "score":
        _check_rows_beside_scores(found, data, matched)
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
    constant = np.zeros(len(matched), bool)
    constant[served] = (length > 1) & (level[start] == level[start + length - 1])
    effect = "their order is the order of item ids, or of rows: it says nothing"
    found.lists("constant_scores", "constant scores", "warning", constant, effect)
    cut = length > k
    across = np.zeros(len(matched), bool)
    across[served[cut]] = level[start[cut] + k - 1] == level[start[cut] + k]
    ties = ASK_A_SAMPLE if found.parts else _TieRanges(matched, k)
    if across.any() or found.parts:
        found.lists("ties_across_k", f"ties across rank {k}", "warning", across, ties)
    if not across.any() or found.parts:
        tied = _lists_where(matched, _tied(matched))
        found.lists("ties", "equal scores", "info", tied, ties)


def _check_ranks(found: ListFindings, data: Data, matched: Matched) -> None:
    """Report ranks that do not count 1, 2, 3, ... within a list."""
    served = np.flatnonzero(matched.n_pred > 0)
    rank = _in_list_order(matched, read_numbers(data.pred[data.order["column"]], "rank"))
    first = np.zeros(len(matched), bool)
    first[served] = rank[matched.start[served]] != 1
    effect = (
        "recdf ranks anew, so a shift changes nothing here; other tools may read rank 0 or 2 as it "
        "stands"
    )
    found.lists("first_rank", "ranks that do not start at 1", "warning", first, effect)
    gaps = _lists_where(matched, rank[1:] > rank[:-1] + 1)
    effect = "gaps close up: items below a gap move up"
    found.lists("rank_gaps", "ranks with gaps", "warning", gaps, effect)


def _check_other_order(found: ListFindings, data: Data, matched: Matched, other: str) -> None:
    """Report scores that are all equal, and scores and ranks that contradict each other."""
    number = _in_list_order(matched, read_numbers(data.pred[other], other))
    several = matched.n_pred > 1
    if (
        other == "score"
        and several.any()
        and not _lists_where(matched, number[1:] != number[:-1]).any()
    ):
        effect = "rank decides; by these scores, as other tools order, every list is one tie"
        found.lists("constant_scores", "constant scores", "info", several, effect)
    steps = number[1:] > number[:-1] if other == "score" else number[1:] < number[:-1]
    against = _lists_where(matched, steps)
    severity: Severity = "warning" if 2 * against.sum() > several.sum() else "info"
    what = "score order that contradicts the ranks"
    effect = "rank decides; pass ⟦+score_col=⟧ to order by score"
    if other == "rank":
        what = "rank order that contradicts the scores"
        effect = "score decides; pass ⟦+rank_col=⟧ to order by rank"
    found.lists(f"{other}_against_order", what, severity, against, effect)


def _check_rows_beside_scores(found: ListFindings, data: Data, matched: Matched) -> None:
    """Report lists whose rows have another order than their scores."""
    n_served = np.count_nonzero(matched.n_pred > 0)
    if matched.as_given or n_served != _runs(data.pred, data.options):
        return
    rows = matched.rows(np.arange(len(matched.item)))
    against = _lists_where(matched, (rows[1:] < rows[:-1]) & ~_tied(matched))
    upside_down = against & ~_lists_where(matched, rows[1:] > rows[:-1])
    severity: Severity = "warning" if 2 * upside_down.sum() > (matched.n_pred > 1).sum() else "info"
    effect = (
        "the score decides; if the rows were in the right order, smaller scores are better: pass "
        "⟦+rank_col=⟧"
    )
    found.lists(
        "rows_against_scores", "row order that contradicts the scores", severity, against, effect
    )


def _in_list_order(matched: Matched, number: np.ndarray) -> np.ndarray:
    return number if matched.as_given else number.take(matched.rows(np.arange(len(matched.item))))


def _lists_where(matched: Matched, step: np.ndarray) -> np.ndarray:
    """Return the lists in which a step from one place to the next is flagged."""
    served = np.flatnonzero(matched.n_pred > 0)
    served = served[np.argsort(matched.start[served], kind="stable")]
    start = matched.start[served]
    step[start[1:] - 1] = False  # the step from one list to the next
    flagged = np.zeros(len(matched), bool)
    flagged[served[np.searchsorted(start, np.flatnonzero(step), side="right") - 1]] = True
    return flagged


def _tied(matched: Matched) -> np.ndarray:
    if matched.tie_level is None:
        return np.zeros(max(len(matched.item) - 1, 0), bool)
    tied: np.ndarray = np.diff(matched.tie_level) == 0
    return tied


def _runs(pred: pd.DataFrame, options: Options) -> int:
    """Count the runs of equal list keys; they are as many as the lists if the rows of each list
    stand together."""
    keys = [
        read_ids(pred[name], name)
        for name in (*as_columns(options.by), *as_columns(options.user_col))
    ]
    if any(ids.null is not None for ids in keys):
        return -1
    return int(np.logical_or.reduce([ids.changes(slice(None)) for ids in keys]).sum()) + 1


class _TieRanges:
    """The means of some lists with the relevant items of every tie last, and with them first: in
    words and as JSON.

    The lists are ranked twice for all recommenders, when the first of them is asked for.
    """

    def __init__(self, matched: Matched, k: int, before: str = "") -> None:
        self.matched, self.k, self.before = matched, k, before
        self.values: dict[str, list[np.ndarray]] = {}

    def __call__(self, own: np.ndarray) -> tuple[str, str]:
        self.values = self.values or {
            f"{name}@{self.k}": _in_both_orders(self.matched, name, self.k) for name in TIE_METRICS
        }
        evaluated, words, ranges = own & (self.matched.true_list >= 0), [], {}
        for name, cases in self.values.items():
            low, high = (mean(case[evaluated]) for case in cases)
            if high - low > 1e-12:
                digits = next(n for n in range(4, 18) if f"{low:.{n}g}" != f"{high:.{n}g}")
                words.append(f"{name} from {low:.{digits}g} to {high:.{digits}g}")
                ranges[name] = [low, high]
        said = "; ".join(words) if words else f"no metric at {self.k} depends on it"
        return self.before + said, json.dumps(ranges) if ranges else ""


def _in_both_orders(matched: Matched, name: str, k: int) -> list[np.ndarray]:
    """Return the values of a metric with the relevant items of every tie last, and with them
    first."""
    assert matched.tie_level is not None
    judged, options = matched.judged, Options()
    own = matched.tie_level[judged.place]
    begin = matched.start[judged.list]
    top = np.searchsorted(matched.tie_level, own, side="left") - begin
    bottom = np.searchsorted(matched.tie_level, own, side="right") - begin
    request, cases = find(name).request({}, k, options), []
    for best in (False, True):
        order = np.lexsort((-judged.gain if best else judged.gain, own))
        first = np.searchsorted(own[order], own[order], side="left")
        last = np.searchsorted(own[order], own[order], side="right")
        number = np.arange(len(order))
        rank = top[order] + 1 + (number - first) if best else bottom[order] - (last - 1 - number)
        hits = Hits.of(
            judged.list[order],
            rank,
            judged.gain[order],
            judged.place[order],
            judged.true_place[order],
        )
        cases.append(next(iter(compute(matched.beside(hits), request, options).values())))
    return cases

"""Findings of `check`: about ids (nulls, kinds that cannot match) and about lists (repeated rows,
users in only one frame, lengths)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError, IdTypeError
from ..inputs.codes import check_kinds, encode, first_rows
from ..inputs.frames import column, read_numbers
from ..inputs.ids import IdColumn, read_ids
from ..inputs.list_cells import refuse_joined
from ..inputs.options import Options, as_columns
from ..inputs.true_and_pred import Order
from ..matching.hits import Hits
from ..matching.list_keys import key_run_heads
from ..matching.lists import Matched
from ..matching.overlap import Overlap, doubt_in_words
from ..metrics.compute import compute, label_frame, mean
from ..metrics.metric import find
from ..tables.findings import FINDING_COLUMNS, Findings, Severity, row_objects

# ------------------------------------------------------------------------------------------
# Findings of `check` about ids: nulls, kinds that cannot match, ids that the other frame does not
# have.


# A larger share of rows of `true` whose item was recommended to nobody is a finding.
FEW_ITEMS_IN_COMMON = 0.5


def check_ids(
    found: Findings, true: pd.DataFrame, pred: pd.DataFrame, options: Options
) -> dict[str, IdColumn] | None:
    """Report null ids, kinds that cannot match, and look-alikes.

    Return the ids of `pred` by column, or None if they cannot be compared.
    """
    comparable, found_in_pred = len(true) > 0 and len(pred) > 0, {}
    by = None
    if options.by is not None and comparable:
        for name in as_columns(options.by):
            column(pred, name, "pred")
        by = (
            pred.groupby(as_columns(options.by), sort=False, observed=True)
            .ngroup()
            .fillna(-1)
            .to_numpy(np.int64)
        )
    for what, names in (("user", as_columns(options.user_col)), ("item", [options.item_col])):
        for name in names:
            pair = [
                _read_checked_ids(found, column(frame, name, role), role)
                for role, frame in (("true", true), ("pred", pred))
            ]
            true_ids, pred_ids = pair
            comparable &= true_ids is not None and pred_ids is not None
            if true_ids is None or pred_ids is None or not comparable:
                continue
            found_in_pred[name] = pred_ids
            try:
                if what == "item":
                    refuse_joined(true_ids, pred_ids, list(found_in_pred.values())[:-1])
                check_kinds([true_ids, pred_ids])
            except (IdTypeError, DataError) as error:
                effect = "no row can ever match: every metric would be 0"
                found.add(
                    f"{what} ids that cannot match",
                    "error",
                    len(pred_ids),
                    len(pred_ids),
                    str(error),
                    effect,
                )
                comparable = False
                continue
            code, common = _check_common(found, what, true_ids, pred_ids)
            comparable &= bool(common.any())
            if by is not None and common.any():
                _check_by(
                    found, what, pred[as_columns(options.by)], by, np.append(common, False)[code]
                )
    return found_in_pred if comparable else None


def check_side(
    found: Findings, role: str, frame: pd.DataFrame, names: list[str], pred_ids: dict[str, IdColumn]
) -> bool:
    """Report ids of a side table that are null or can never equal those of `pred`; False if none
    can be looked up."""
    usable = True
    for name in names:
        ids = _read_checked_ids(found, column(frame, name, role), role)
        if ids is None:
            usable = False
            continue
        try:
            check_kinds([pred_ids[name], ids])
        except IdTypeError as error:
            effect = f"no row of {role} can ever match"
            found.add(
                f"ids of {role} that cannot match", "error", len(ids), len(ids), str(error), effect
            )
            usable = False
    return usable


def _read_checked_ids(found: Findings, series: pd.Series, role: str) -> IdColumn | None:
    """Read the ids of a column; if its values cannot be ids, report that and return None."""
    where = f"{role}[{series.name!r}]"
    try:
        ids = read_ids(series, where)
    except IdTypeError as error:
        effect = "evaluate refuses them"
        found.add("ids of an unusable type", "error", len(series), len(series), str(error), effect)
        return None
    if ids.null is not None:
        effect = "evaluate raises"
        effect += "" if role == "items" else '; ⟦+null_keys="drop"⟧ leaves these rows out'
        found.add(f"null ids in {role}", "error", int(ids.null.sum()), len(ids), where, effect)
    return ids


def _check_by(
    found: Findings, what: str, labels: pd.DataFrame, by: np.ndarray, known: np.ndarray
) -> None:
    """Report `by` values none of whose rows has an id that is in `true`, as `known` tells."""
    rows = np.bincount(by[by >= 0])
    silent = rows > 0
    silent[by[known & (by >= 0)]] = False
    if silent.any():
        first = first_rows(by, len(rows) + 1)[
            :-1
        ]  # rows with a null, of code -1, fill the last place
        for code, values in zip(
            np.flatnonzero(silent), row_objects(labels.take(first[silent])), strict=True
        ):
            name = " · ".join(map(str, values)) if isinstance(values, tuple) else str(values)
            effect = f"every list of {', '.join(map(str, labels.columns))} = {values!r} scores 0"
            found.add(
                f"no {what} in common", "error", int(rows[code]), len(by), [values], effect, name
            )


def _check_common(
    found: Findings, what: str, true_ids: IdColumn, pred_ids: IdColumn
) -> tuple[np.ndarray, np.ndarray]:
    """Report ids of `true` that `pred` does not have, and ids that only look different.

    Return the code of each row of `pred`, and for each code whether its id is in both frames.
    """
    heads = [None if ids.null is not None else key_run_heads([ids]) for ids in (true_ids, pred_ids)]
    codes = encode(
        [
            ids if head is None else ids.take(head)
            for ids, head in zip((true_ids, pred_ids), heads, strict=True)
        ]
    )
    present = []
    for code in codes.codes:
        flags = np.zeros(codes.n + 1, bool)  # the last one is for nulls, code -1
        flags[code] = True
        present.append(flags[:-1])
    common = present[0] & present[1]
    own, theirs = (
        code if head is None else np.repeat(code, np.diff(np.append(head, len(ids))))
        for code, head, ids in zip(codes.codes, heads, (true_ids, pred_ids), strict=True)
    )
    _check_look_alikes(found, what, codes.labels, own, *present)
    if not common.any():
        sample = [ids.show(np.arange(min(2, len(ids)))) for ids in (true_ids, pred_ids)]
        examples = f"true {sample[0]}, pred {sample[1]}"
        found.add(
            f"no {what} in common",
            "error",
            len(true_ids),
            len(true_ids),
            examples,
            "every list scores 0",
        )
        return theirs, common
    lost = ~np.append(common, True)[own]
    missed = int(lost.sum())
    if what == "item" and missed > FEW_ITEMS_IN_COMMON * len(true_ids):
        some = true_ids.show(np.flatnonzero(lost)[:5])
        effect = f"recall cannot pass {1 - missed / len(true_ids):.3g} of the rows of true"
        found.add(
            "relevant items that nobody was recommended",
            "info",
            missed,
            len(true_ids),
            some,
            effect,
        )
    return theirs, common


def _check_look_alikes(
    found: Findings, what: str, labels: Any, own: np.ndarray, mine: np.ndarray, theirs: np.ndarray
) -> None:
    """Report strings of one frame that equal a string of the other except for zeros, a trailing .0,
    blanks or case."""
    if not isinstance(labels, pa.Array | pa.ChunkedArray) or not pa.types.is_large_string(
        labels.type
    ):
        return
    text = labels if isinstance(labels, pa.Array) else labels.combine_chunks()
    plain = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    plain = pc.replace_substring_regex(plain, r"\.0+$", "")
    plain = pc.replace_substring_regex(plain, r"^0+(\d)", r"\1")
    code = plain.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    only_mine, only_theirs = mine & ~theirs, theirs & ~mine
    in_theirs = np.zeros(int(code.max(initial=-1)) + 1, bool)
    in_theirs[code[only_theirs]] = True
    alike = only_mine & in_theirs[code]
    if not alike.any():
        return
    first = int(np.flatnonzero(alike)[0])
    other = int(np.flatnonzero(only_theirs & (code == code[first]))[0])
    examples = f"true {text[first].as_py()!r}, pred {text[other].as_py()!r}"
    effect = "they do not match: write both the same way (leading zeros, '.0', blanks, case)"
    count = int(np.append(alike, False)[own].sum())
    found.add(f"{what} ids that only look different", "warning", count, len(own), examples, effect)


# ------------------------------------------------------------------------------------------
# Findings of `check` about lists: repeated rows, users in only one frame, lengths, sampled
# candidates, and order.
#
# Of order: equal scores, ranks with gaps, columns that contradict one another. The module also
# has what all checks share: the data, and the labels of the lists that a finding concerns.


@dataclass(frozen=True)
class Data:
    """The data to check: both frames, the cut-off that findings refer to, the options, and what
    orders `pred`."""

    true: pd.DataFrame
    pred: pd.DataFrame
    k: int
    options: Options
    order: Order

    @property
    def by(self) -> list[str]:
        """Columns of `pred` that tell recommenders apart."""
        return as_columns(self.options.by)

    @property
    def keys(self) -> list[str]:
        """Columns of the list key."""
        return as_columns(self.options.user_col)

    @property
    def pair(self) -> list[str]:
        """Columns that name an item of a list."""
        return [*self.keys, self.options.item_col]


class ListFindings(Findings):
    """Findings of which some concern lists, whose labels are then the examples, and some one
    recommender."""

    columns: ClassVar[Mapping[str, str]] = {**FINDING_COLUMNS, "by": "str", "ranges": "str"}

    def lists(
        self,
        finding: str,
        severity: Severity,
        matched: Matched,
        where: np.ndarray,
        of: np.ndarray,
        effect: str | Callable[[np.ndarray], tuple[str, str]],
        once: bool = False,
    ) -> None:
        """Add a finding for each recommender with lists for which `where` is true, of those for
        which `of` is.

        What is true of a list whatever was recommended is said `once`. An effect that depends on
        the lists is a function of them; it returns its words and the ranges of metrics.
        """
        for name, own in [("", next(parts_by(matched))[1])] if once else parts_by(matched):
            found = where & own
            if found.any():
                words, ranges = (effect, "") if isinstance(effect, str) else effect(own)
                some = labels_where(matched, found)
                self.add(
                    finding, severity, found.sum(), (of & own).sum(), some, words, name, ranges
                )


def parts_by(matched: Matched) -> Iterator[tuple[str, np.ndarray]]:
    """Return every recommender by its label with its lists; all lists without a name where there is
    no `by`."""
    for code, values in enumerate(matched.by.astype(object).to_numpy().tolist()):
        yield " · ".join(map(str, values)), matched.list_by == code


def labels_where(matched: Matched, where: np.ndarray) -> list[Any]:
    """Return the keys of the first lists for which `where` is true."""
    keys = label_frame(matched).drop(columns=list(matched.by.columns))
    return row_objects(keys.take(np.flatnonzero(where)[:5]))


def check_lists(found: ListFindings, data: Data, matched: Matched) -> None:
    """Add the findings about lists."""
    _check_duplicates(found, data, matched)
    _check_population(found, data, matched)
    _check_lengths(found, data, matched)


def _check_duplicates(found: ListFindings, data: Data, matched: Matched) -> None:
    for role, frame, names, lists in (
        ("true", data.true, data.pair, matched.true_lists),
        ("pred", data.pred, [*data.by, *data.pair], matched),
    ):
        count = matched.counts.get(f"{role}_duplicates", 0)
        if not count:
            continue
        effect = 'evaluate keeps the best and warns; ⟦+duplicates="keep"⟧ counts them all'
        if data.options.judged_only:  # other rows are dropped as well
            rows = row_objects(frame[names][frame[names].duplicated().to_numpy()].dropna().head(5))
        else:
            rows = _dropped(frame, names, lists.rows(np.arange(len(lists.item))))
        found.add(f"duplicate rows in {role}", "warning", count, len(frame), rows, effect)


def _dropped(frame: pd.DataFrame, names: list[str], kept: np.ndarray) -> list[Any]:
    """Return the first rows with ids whose positions are not among those `kept`: they repeat
    another row."""
    gone = np.ones(len(frame), bool)
    gone[kept] = False
    return row_objects(frame[names].take(np.flatnonzero(gone)).dropna().head(5))


def _check_population(found: ListFindings, data: Data, matched: Matched) -> None:
    """Report lists that are in only one of the frames, or that have no relevant item."""
    judged, served = matched.true_list >= 0, matched.n_pred > 0
    effect = 'they score 0; ⟦+users="both"⟧ leaves them out'
    found.lists(
        "lists without recommendations", "warning", matched, judged & ~served, judged, effect
    )
    effect = 'not evaluated; ⟦+users="pred"⟧ counts them'
    found.lists("lists without truth", "info", matched, served & ~judged, served, effect)
    effect = "recall and ndcg are undefined there and skipped by the mean"
    found.lists(
        "lists without a relevant item",
        "info",
        matched,
        judged & (matched.n_true == 0),
        judged,
        effect,
        True,
    )


def _check_lengths(found: ListFindings, data: Data, matched: Matched) -> None:
    """Report lists shorter than k, and lists with more than k relevant items."""
    k, judged, served = data.k, matched.true_list >= 0, matched.n_pred > 0
    short = served & (matched.n_pred < k)
    effect = f"precision@{k} counts the missing ranks as misses"
    found.lists(f"lists shorter than {k}", "info", matched, short, served, effect)
    long, n_true = matched.n_true > k, matched.n_true[judged]
    if long.any():
        limit = (np.minimum(n_true, k) / np.maximum(n_true, 1))[n_true > 0].mean()
        effect = f"mean recall@{k} cannot pass {limit:.4g}; precision@{k} is not limited there"
        found.lists(f"more than {k} relevant items", "info", matched, long, judged, effect, True)


ORDER_DOUBTS = {
    "counts": "scores that are 1, 2, 3, ... along the rows",
    "distance": "distances taken for scores",
    "beside": "ranks and scores that contradict each other",
}
TIE_METRICS = ("hitrate", "precision", "recall", "mapr", "ndcg", "mrr")


def check_order(found: ListFindings, data: Data, matched: Matched) -> None:
    """Add the findings about the order of `pred`."""
    if matched.tie_level is not None and data.order["by"] == "rank":
        repeats, shown = _lists_where(matched, _tied(matched)), matched.n_pred > 0
        ties = _TieRanges(matched, data.k, "lists of several recommenders may be one list here; ")
        found.lists(
            "ranks repeat within a list; is ⟦+by=⟧ missing?",
            "warning",
            matched,
            repeats,
            shown,
            ties,
        )
    elif matched.tie_level is not None:
        _check_ties(found, data, matched, matched.tie_level)
    by, several = data.order["by"], "pred_duplicates" not in matched.counts
    if by == "rank" and several:
        _check_ranks(found, data, matched)
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
    for doubt, n, of in overlap.in_doubt():
        what, advice = doubt_in_words(doubt, *overlap.order)
        if doubt != "beside" or overlap.order[1]:
            found.add(ORDER_DOUBTS[doubt], "warning", n, of, what, advice)


def _check_ties(found: ListFindings, data: Data, matched: Matched, level: np.ndarray) -> None:
    """Report equal scores: in a whole list, across rank k, or elsewhere."""
    k, served = data.k, np.flatnonzero(matched.n_pred > 0)
    start, length = matched.start[served], matched.n_pred[served]
    constant = np.zeros(len(matched), bool)
    constant[served] = (length > 1) & (level[start] == level[start + length - 1])
    effect = "their order is the order of item ids, or of rows: it says nothing"
    found.lists("constant scores", "warning", matched, constant, matched.n_pred > 0, effect)
    cut = length > k
    across = np.zeros(len(matched), bool)
    across[served[cut]] = level[start[cut] + k - 1] == level[start[cut] + k]
    ties = _TieRanges(matched, k)
    if across.any():
        found.lists(f"ties across rank {k}", "warning", matched, across, matched.n_pred > 0, ties)
    else:
        tied = _lists_where(matched, _tied(matched))
        found.lists("equal scores", "info", matched, tied, matched.n_pred > 0, ties)


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
    found.lists(
        "ranks that do not start at 1", "warning", matched, first, matched.n_pred > 0, effect
    )
    gaps = _lists_where(matched, rank[1:] > rank[:-1] + 1)
    effect = "gaps close up: items below a gap move up"
    found.lists("ranks with gaps", "warning", matched, gaps, matched.n_pred > 0, effect)


def _check_other_order(found: ListFindings, data: Data, matched: Matched, other: str) -> None:
    """Report scores that are all equal, and scores and ranks that contradict each other."""
    number = _in_list_order(matched, read_numbers(data.pred[other], other))
    several, served = matched.n_pred > 1, matched.n_pred > 0
    if (
        other == "score"
        and several.any()
        and not _lists_where(matched, number[1:] != number[:-1]).any()
    ):
        effect = "rank decides; by these scores, as other tools order, every list is one tie"
        found.lists("constant scores", "info", matched, several, served, effect)
    steps = number[1:] > number[:-1] if other == "score" else number[1:] < number[:-1]
    against = _lists_where(matched, steps)
    severity: Severity = "warning" if 2 * against.sum() > several.sum() else "info"
    what = "score order that contradicts the ranks"
    effect = "rank decides; pass ⟦+score_col=⟧ to order by score"
    if other == "rank":
        what = "rank order that contradicts the scores"
        effect = "score decides; pass ⟦+rank_col=⟧ to order by rank"
    found.lists(what, severity, matched, against, served, effect)


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
        "row order that contradicts the scores",
        severity,
        matched,
        against,
        matched.n_pred > 0,
        effect,
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

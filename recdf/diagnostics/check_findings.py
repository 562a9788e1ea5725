"""Findings of `check`: about ids (nulls, kinds that cannot match), numbers, lists (repeated rows,
users in only one frame, lengths, sampled candidates) and side tables.

Those about the order of `pred` are in `data_checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pandas import DataFrame, Series

from ..errors import DataError, EmptyPopulationError, IdTypeError, examples
from ..evaluation.value_moments import groups_of
from ..inputs.codes import check_kinds, encode
from ..inputs.frames import column, float_column
from ..inputs.ids import IdColumn, read_ids
from ..inputs.list_cells import refuse_joined
from ..inputs.options import Options, as_columns
from ..inputs.sorting import distinct
from ..inputs.true_and_pred import (
    Order,
    argument_of,
    broken_of_true,
    gains,
    order_source,
    read_relevance,
    relevance_source,
)
from ..matching.lists import Matched
from ..metrics.call import Call
from ..metrics.compute import label_frame
from ..stats.numbers import Integers, Mask
from ..tables.findings import FINDING_COLUMNS, Findings, Severity, row_names, row_objects
from .levels import matched_quietly

# ------------------------------------------------------------------------------------------
# What all findings share: the data, and the table to which they are added.


class ListFindings(Findings):
    """Findings of which some are about one recommender, and some have ranges of metrics."""

    columns: ClassVar[Mapping[str, str]] = {**FINDING_COLUMNS, "by": "str", "ranges": "str"}


@dataclass(kw_only=True)
class Data(ListFindings):
    """The data to check, with their findings: both frames, the cut-off that findings refer to, the
    options, and the lists once they are made. The labels of lists are examples of what is found in
    them."""

    true: DataFrame
    pred: DataFrame
    k: int
    options: Options
    matched: Matched = field(init=False)

    @property
    def order(self) -> Order:
        """What orders `pred`."""
        return order_source(self.pred, self.options)

    @property
    def by(self) -> list[str]:
        """Columns of `pred` that tell recommenders apart."""
        return as_columns(self.options.by)

    @property
    def pair(self) -> list[str]:
        """Columns that name an item of a list."""
        return self.options.pair

    def of_rows(
        self,
        code: str,
        finding: str,
        severity: Severity,
        where: Mask,
        some: Any,
        effect: str,
        frame: str = "",
    ) -> None:
        """Add a finding about the rows of a frame for which `where` is true."""
        n = np.count_nonzero(where)
        self.add(code, finding, severity, n, len(where), some, effect, frame=frame)

    def lists(
        self,
        code: str,
        finding: str,
        severity: Severity,
        where: Mask,
        effect: str | Callable[[Mask], tuple[str, str]],
        *,
        of: Mask | None = None,
        once: bool = False,
    ) -> None:
        """Add a finding for each recommender with lists for which `where` is true, of those for
        which `of` is, by default those with recommendations.

        What is true of a list whatever was recommended is said `once`. An effect that depends on
        the lists is a function of them; it returns its words and the ranges of metrics.
        """
        of = self.matched.n_pred > 0 if of is None else of
        parts = list(parts_by(self.matched))
        for name, own in [("", parts[0][1])] if once else parts:
            found = where & own
            if found.any() or self.parts:
                words, ranges = (effect, "") if isinstance(effect, str) else effect(own)
                some = labels_where(self.matched, found)
                n_of = (of & own).sum()
                self.add(code, finding, severity, found.sum(), n_of, some, words, name, ranges)


def parts_by(matched: Matched) -> Iterator[tuple[str, Mask]]:
    """Return every recommender by its label with its lists; all lists without a name where there is
    no `by`."""
    for code, name in enumerate(row_names(matched.by)):
        yield name, matched.list_by == code


def labels_where(matched: Matched, where: Mask) -> list[Any]:
    """Return the keys of the first lists for which `where` is true."""
    keys = label_frame(matched).drop(columns=matched.by.columns.map(str))
    return row_objects(keys.take(np.flatnonzero(where)[:5]))


NO_ROWS = {
    "true": "nothing is relevant: there is no metric",
    "pred": "every list scores 0",
    "log": "nothing was seen before",
}


def check_empty(found: Data, frames: Mapping[str, DataFrame]) -> None:
    """Report frames without rows."""
    for role, frame in frames.items():
        found.add("empty", f"{role} is empty", "error", not len(frame), 1, "0 rows", NO_ROWS[role])


# ------------------------------------------------------------------------------------------
# ids: nulls, kinds that cannot match, ids that the other frame does not have

# A larger share of rows of `true` whose item was recommended to nobody is a finding.
FEW_ITEMS_IN_COMMON = 0.5


def check_ids(found: Data) -> dict[str, IdColumn] | None:
    """Report null ids, kinds that cannot match, and look-alikes.

    Return the ids of `pred` by column, or None if they cannot be compared.
    """
    of_pred: dict[str, IdColumn] = {}
    if comparable := len(found.true) > 0 and len(found.pred) > 0:
        for name in found.by:
            column(found.pred, name, "pred")
        recommenders = groups_of(found.pred, found.by)
    for name in found.pair:
        what = "item" if name == found.options.item_col else "user"
        true_ids = read_checked_ids(found, column(found.true, name, "true"), "true")
        pred_ids = read_checked_ids(found, column(found.pred, name, "pred"), "pred")
        if true_ids is None or pred_ids is None or not comparable:
            comparable = False
            continue
        pair = (true_ids, pred_ids)
        keys = list(of_pred.values())
        of_pred[name] = pred_ids
        effect = "no row can ever match: every metric would be 0"
        comparable = _can_match(
            found, f"{what} ids", pair, effect, keys if what == "item" else None
        ) and _check_common(found, what, pair, *recommenders)
    return of_pred if comparable else None


def check_side(
    found: Data,
    role: str,
    frame: DataFrame,
    names: list[str],
    pred_ids: dict[str, IdColumn],
) -> bool:
    """Report ids of a side table that are null or can never equal those of `pred`; False if none
    can be looked up."""
    usable = True
    effect = f"no row of {role} can ever match"
    for name in names:
        ids = read_checked_ids(found, column(frame, name, role), role)
        usable &= ids is not None and _can_match(
            found, f"ids of {role}", (pred_ids[name], ids), effect
        )
    return usable


def read_checked_ids(found: Data, series: Series, role: str) -> IdColumn | None:
    """Read the ids of a column and report nulls; if its values cannot be ids, report that and
    return None."""
    where = f"{role}[{series.name!r}]"
    n = len(series)
    try:
        ids = read_ids(series, where)
    except IdTypeError as error:
        what = "ids of an unusable type"
        found.add("unusable_ids", what, "error", n, n, str(error), "evaluate refuses them")
        return None
    if ids.null is not None:
        effect = "" if role == "items" else '; ⟦+null_keys="drop"⟧ leaves these rows out'
        effect = f"evaluate raises{effect}"
        found.of_rows("null_ids", f"null ids in {role}", "error", ids.null, where, effect, role)
    return ids


def _can_match(
    found: Data,
    what: str,
    pair: tuple[IdColumn, IdColumn],
    effect: str,
    keys: Sequence[IdColumn] | None = None,
) -> bool:
    """Report ids of two columns that can never be equal. Of items, whose lists have `keys`, a text
    may hold several."""
    try:
        if keys is not None:
            refuse_joined(*pair, keys)
        check_kinds(pair)
    except (IdTypeError, DataError) as error:
        n = len(pair[1])
        found.add("unmatched_ids", f"{what} that cannot match", "error", n, n, str(error), effect)
        return False
    return True


def _check_common(
    found: Data,
    what: str,
    pair: tuple[IdColumn, IdColumn],
    recommender: Integers,
    labels: DataFrame,
) -> bool:
    """Report ids of `true` that `pred` does not have, ids that only look different, and
    recommenders none of whose rows has an id of `true`; False if nothing is in common."""
    codes = encode(pair)
    n = len(pair[0])
    there = np.zeros((2, codes.n + 1), bool)
    for flags, code in zip(there, codes.codes, strict=True):
        flags[code] = True
    there[:, -1] = False  # the place of nulls, whose code is -1
    common, (own, theirs) = there[0] & there[1], codes.codes
    if isinstance(codes.labels, pa.Array) and codes.labels.type == pa.large_string():
        _check_look_alikes(found, what, codes.labels, own, (there & ~common)[:, :-1])
    if not common.any():
        both = f"true {pair[0].two()}, pred {pair[1].two()}"
        effect = "every list scores 0"
        found.add("nothing_in_common", f"no {what} in common", "error", n, n, both, effect)
        return False
    lost = ~common[own] & (own >= 0)
    if what == "item" and lost.sum() > FEW_ITEMS_IN_COMMON * n:
        some = pair[0].show(np.flatnonzero(lost)[:5])
        share = f"{1 - lost.sum() / n:.3g}"
        words = "relevant items that nobody was recommended"
        effect = f"recall cannot pass {share} of the rows of true"
        found.of_rows("never_recommended", words, "info", lost, some, effect)
    silent = labels.notna().all(axis=1).to_numpy(copy=True)
    silent[recommender[common[theirs]]] = False
    names = row_names(labels)
    for place in np.flatnonzero(silent).tolist():
        (values,) = row_objects(labels.iloc[[place]])
        effect = f"every list of {', '.join(map(str, labels.columns))} = {values!r} scores 0"
        count = np.count_nonzero(recommender == place)
        words = f"no {what} in common"
        size = len(recommender)
        found.add("nothing_in_common", words, "error", count, size, [values], effect, names[place])
    return True


def _check_look_alikes(found: Data, what: str, labels: Any, own: Integers, alone: Mask) -> None:
    """Report strings of one frame that equal a string of the other except for zeros, a trailing .0,
    blanks or case. `alone` tells which labels `true` has alone, and which ones `pred` has alone."""
    plain = pc.utf8_lower(pc.utf8_trim_whitespace(labels))
    plain = pc.replace_substring_regex(plain, r"\.0+$", "")
    plain = pc.replace_substring_regex(plain, r"^0+(\d)", r"\1")
    theirs = plain.filter(pa.array(alone[1]))
    alike = alone[0] & pc.is_in(plain, theirs).to_numpy(zero_copy_only=False)
    if alike.any():
        first = alike.argmax()
        other = labels.filter(pa.array(alone[1]))[theirs.index(plain[first]).as_py()]
        found.of_rows(
            "look_alike_ids",
            f"{what} ids that only look different",
            "warning",
            np.append(alike, False)[own],
            f"true {labels[first].as_py()!r}, pred {other.as_py()!r}",
            "they do not match: write both the same way (leading zeros, '.0', blanks, case)",
        )


# ------------------------------------------------------------------------------------------
# numbers: scores, ranks, relevances, propensities, weights


def check_numbers(found: Data) -> None:
    """Report null and infinite scores or ranks, relevances, and propensities and weights of lists
    that are none."""
    name = found.order["column"]
    what = found.order["by"]
    if name is not None:
        where = f"pred[{name!r}]"
        number = float_column(found.pred, name, "pred")
        null = np.isnan(number)
        effect = 'evaluate raises; ⟦+nan_score="last"⟧ or "drop" decides'
        found.of_rows("null_order", f"null {what}s", "error", null, where, effect)
        infinite = np.isinf(number)
        effect = "they rank before or after all others"
        found.of_rows("infinite_order", f"infinite {what}s", "warning", infinite, where, effect)
        found.refused_numbers |= bool(null.all())
    _check_relevance(found)
    for broken in broken_of_true(found.true, found.options):
        must = "finite numbers, at least 0"
        if broken.rule.of == "propensity":
            must = "probabilities, above 0 and at most 1"
        effect = f"evaluate raises; {broken.where} must hold {must}"
        some = list(broken.some[:5])
        found.of_rows("bad_column", broken.rule.breaks, "error", broken.rows, some, effect)


def _check_relevance(found: Data) -> None:
    """Report relevance that is constant, that cannot be a gain, or that is in a column which is not
    used."""
    name = relevance_source(found.true, found.options)
    if name is None:
        if not found.parts:
            _check_unused_labels(found)
        return
    gain = read_relevance(found.true, name, found.options)
    bad = ~np.isfinite(gain) | (gain < 0)
    n = len(gain)
    words = "negative, null or infinite relevance"
    some = gain[bad][:5].tolist()
    found.of_rows("bad_relevance", words, "error", bad, some, "evaluate raises")
    found.refused_numbers |= bad.any()
    if found.parts or bad.any() or n < 2:
        return
    if gain.min() == gain.max():
        severity: Severity = "warning"
        effect = "nothing is relevant: recall and ndcg are undefined"
        if gain[0] > 0:
            severity = "info"
            effect = "relevance has no grades"
        words = "constant relevance"
        found.add("constant_relevance", words, severity, n, n, [float(gain[0])], effect)
    elif gain.min() > 0:
        effect = (
            "no row is judged and not relevant: ⟦judged_only=True⟧ keeps hits alone, and bpref is "
            "undefined or 0"
        )
        words = "every judged row is relevant"
        found.add("all_relevant", words, "info", n, n, f"true[{name!r}]", effect)


def _check_unused_labels(found: Data) -> None:
    """Report columns that hold both 0 and 1, or both False and True, and nothing else in `true`,
    where every row counts as relevant."""
    options = found.options
    used = {*found.pair, *found.by, options.value_col, options.propensity_col, options.weight_name}
    for name in found.true.columns:
        series = found.true[name]  # two columns of one name are a frame
        if name in used or not isinstance(series, Series) or series.dtype.kind not in "biuf":
            continue
        values = pd.unique(series.dropna())
        if len(values) == 2 and set(values.tolist()) == {0, 1}:
            found.of_rows(
                "unused_labels",
                "a column of 0 and 1 in true is not used",
                "warning",
                (series.fillna(0) == 0).to_numpy(bool),
                f"true[{name!r}]",
                "every row of true counts as relevant; if this column says which are, pass "
                "⟦+relevance_col=⟧",
            )


def check_unused_numbers(found: Data) -> None:
    """Report columns of numbers in `pred`, which may be scores, where the order of the rows
    decides."""
    used = {*found.pair, *found.by, found.options.value_col}
    n = len(found.pred)
    for name in found.pred.columns:
        series = found.pred[name]
        likely = bool(found.matched.overlap.disordered.get(name))
        floats = isinstance(series, Series) and pd.api.types.is_float_dtype(series.dtype)
        if name in used or not (likely or floats):
            continue
        severity: Severity = "warning" if likely else "info"
        argument = argument_of(name) if likely else "⟦score_col=⟧ or ⟦rank_col=⟧"
        effect = f"the order of the rows decides; if this column ranks the items, pass {argument}"
        words = "a column of numbers in pred is not used"
        found.add("unused_numbers", words, severity, n, n, f"pred[{name!r}]", effect)


# ------------------------------------------------------------------------------------------
# lists: repeated rows, users of one frame alone, lengths, sampled candidates


def check_lists(found: Data) -> None:
    """Add the findings about lists: repeated rows, users of one frame alone, and lengths."""
    _check_duplicates(found)
    matched = found.matched
    k = found.k
    judged = matched.true_list >= 0
    served = matched.n_pred > 0
    found.lists(
        "no_recommendations",
        "lists without recommendations",
        "warning",
        judged & ~served,
        'they score 0; ⟦+users="both"⟧ leaves them out',
        of=judged,
    )
    found.lists(
        "no_truth",
        "lists without truth",
        "info",
        served & ~judged,
        'not evaluated; ⟦+users="pred"⟧ counts them',
    )
    found.lists(
        "nothing_relevant",
        "lists without a relevant item",
        "info",
        judged & (matched.n_true == 0),
        "recall and ndcg are undefined there and skipped by the mean",
        of=judged,
        once=True,
    )
    found.lists(
        "short_lists",
        f"lists shorter than {k}",
        "info",
        served & (matched.n_pred < k),
        f"precision@{k} counts the missing ranks as misses",
    )
    n_true = matched.n_true[judged & (matched.n_true > 0)]
    most = "reach 1"
    if len(n_true) and not found.parts:
        most = f"pass {(np.minimum(n_true, k) / n_true).mean():.4g}"
    found.lists(
        "many_relevant",
        f"more than {k} relevant items",
        "info",
        matched.n_true > k,
        f"mean recall@{k} cannot {most}; precision@{k} is not limited there",
        of=judged,
        once=True,
    )


def _check_duplicates(found: Data) -> None:
    matched = found.matched
    for role, frame, names, lists in (
        ("true", found.true, found.pair, matched.true_lists),
        ("pred", found.pred, [*found.by, *found.pair], matched),
    ):
        count = matched.counts.get(f"{role}_duplicates", 0)
        rows = frame[names]
        repeated = np.full(len(frame), count > 0)
        if count and found.options.judged_only:  # other rows are dropped as well
            repeated = rows.duplicated().to_numpy()
        elif count:
            repeated[lists.rows(np.arange(len(lists.item)))] = False
        found.add(
            "duplicates",
            f"duplicate rows in {role}",
            "warning",
            count,
            len(frame),
            row_objects(rows[repeated].dropna().head(5)),
            'evaluate keeps the best and warns; ⟦+duplicates="keep"⟧ counts them all',
            frame=role,
        )


# Candidates look sampled if there are so many lists, and nearly all of them have all their relevant
# items beside the same number of others.
MANY_LISTS, NEARLY_ALL = 20, 0.95
# Slates of a shop, too, can hold one clicked item beside a fixed number of others. These are few,
# and the same items stand in many slates, while random items are spread evenly: the variance of
# their counts is about the mean. The relevant items are not counted, since popular ones stand in
# many lists whatever the others are.
MANY_OTHERS, FEW_OTHERS, EVEN = 20, 5, 1.5


def check_sampled(found: Data) -> None:
    """Report lists that look like the relevant items of a user among a few sampled ones."""
    matched = found.matched
    lists = matched.at(None)
    others = matched.n_pred - lists.n_hits.astype(np.int64)
    n_items = len(distinct(matched.item))
    # Recommenders mostly rank the same candidates.
    counts = np.bincount(np.delete(matched.item, matched.hits.place)) / len(matched.by)
    counts = counts[counts > 0]
    for name, own in parts_by(matched):
        served = own & (matched.n_true > 0) & (matched.n_pred > 0)
        n = served.sum()
        if n < MANY_LISTS or n_items <= matched.n_pred[served].max():
            continue
        usual = np.bincount(others[served]).argmax()
        alike = served & (lists.n_hits == matched.n_true) & (others == usual)
        even = len(counts) and counts.var() < EVEN * counts.mean()
        few = FEW_OTHERS if even and (matched.n_true[alike] == 1).all() else MANY_OTHERS
        if alike.sum() >= NEARLY_ALL * n and usual >= few:
            effect = (
                f"lists hold all relevant items and {usual:,} others. If these were sampled, "
                "metrics may order models otherwise than over all items: rank all items, or "
                "correct lists of one relevant item with "
                f"rd.diagnostics.sampled_values(metric, n_items=..., n_sampled={usual})"
            )
            some = labels_where(matched, alike)
            words = "candidates look sampled"
            found.add("sampled", words, "warning", alike.sum(), n, some, effect, name)


# ------------------------------------------------------------------------------------------
# side tables

# If a larger share of the recommendations is in the user's log already, the finding is a warning.
MANY_SEEN = 0.05


def forgiving(options: Options) -> Options:
    """Return options that refuse no row, since each kind of row that would be refused is a
    finding."""
    plain = options.updated(propensity_col=None, propensity_floor=0.0, weight_col=None)
    return plain.updated(null_keys="drop", nan_score="last", duplicates="drop", users="all")


def check_catalogue(found: Data) -> None:
    """Report items of both frames that the catalogue does not have."""
    matched = found.matched
    for role, lists, frame in (
        ("pred", matched, found.pred),
        ("true", matched.true_lists, found.true),
    ):
        outside = ~matched.sides.items.inside[lists.item]
        rows = lists.rows(np.flatnonzero(outside)[:1000])
        some = examples(frame[found.options.item_col].take(rows))
        what = f"items of {role} outside the catalogue"
        effect = "coverage counts them apart; confusion counts refuse them"
        found.of_rows("outside_catalogue", what, "warning", outside, some, effect)


def check_seen(found: Data, log: DataFrame) -> None:
    """Report items among the first k, and relevant items of `true`, that the log already has for
    the user."""
    # Users, items and their order alone count.
    plain = forgiving(found.options).updated(
        users="both",
        relevance_col=False,
        min_relevance=None,
        value_col=None,
        judged_only=False,
        by_in_true=None,
    )
    name = relevance_source(found.true, found.options)
    true = found.true
    if name is not None:
        true = true[gains(read_relevance(true, name, found.options), found.options) > 0]
    for code, frame, k, options, what, effect in (
        (
            "pred_seen",
            found.pred,
            found.k,
            plain,
            "recommendations",
            "they can be right only where users want again what they had",
        ),
        (
            "true_seen",
            true[found.pair],
            None,
            plain.updated(by=None, score_col=False, rank_col=None),
            "relevant items",
            "train and test overlap, or users want again what they had: a model that leaves out "
            "seen items cannot hit them",
        ),
    ):
        # The log may have no user of these lists.
        with (
            suppress(EmptyPopulationError),
            matched_quietly(Call(options), log[found.pair], frame) as known,
        ):
            seen = known.at(k).n_hits
            shown = known.at(k).n_shown
            for by, own in parts_by(known):
                n = shown[own].sum()
                n_seen = seen[own].sum()
                words = f"{what} already in the log"
                severity: Severity = "warning" if n_seen > MANY_SEEN * n else "info"
                some = labels_where(known, own & (seen > 0))
                found.add(code, words, severity, n_seen, n, some, effect, by)

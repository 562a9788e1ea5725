"""Findings of `check`: about ids (nulls, kinds that cannot match) and about lists (repeated rows,
users in only one frame, lengths)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataError, IdTypeError
from ..inputs.codes import check_kinds, encode, first_rows
from ..inputs.frames import column
from ..inputs.ids import IdColumn, read_ids
from ..inputs.list_cells import refuse_joined
from ..inputs.options import Options, as_columns
from ..inputs.true_and_pred import Order
from ..matching.list_keys import key_run_heads
from ..matching.lists import Matched
from ..metrics.compute import label_frame
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
                read_checked_ids(found, column(frame, name, role), role)
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
                    "unmatched_ids",
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
        ids = read_checked_ids(found, column(frame, name, role), role)
        if ids is None:
            usable = False
            continue
        try:
            check_kinds([pred_ids[name], ids])
        except IdTypeError as error:
            effect = f"no row of {role} can ever match"
            found.add(
                "unmatched_ids",
                f"ids of {role} that cannot match",
                "error",
                len(ids),
                len(ids),
                str(error),
                effect,
            )
            usable = False
    return usable


def read_checked_ids(found: Findings, series: pd.Series, role: str) -> IdColumn | None:
    """Read the ids of a column; if its values cannot be ids, report that and return None."""
    where = f"{role}[{series.name!r}]"
    try:
        ids = read_ids(series, where)
    except IdTypeError as error:
        effect = "evaluate refuses them"
        found.add(
            "unusable_ids",
            "ids of an unusable type",
            "error",
            len(series),
            len(series),
            str(error),
            effect,
        )
        return None
    if ids.null is not None:
        effect = "evaluate raises"
        effect += "" if role == "items" else '; ⟦+null_keys="drop"⟧ leaves these rows out'
        found.add(
            "null_ids",
            f"null ids in {role}",
            "error",
            int(ids.null.sum()),
            len(ids),
            where,
            effect,
            frame=role,
        )
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
                "nothing_in_common",
                f"no {what} in common",
                "error",
                int(rows[code]),
                len(by),
                [values],
                effect,
                name,
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
            "nothing_in_common",
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
            "never_recommended",
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
    found.add(
        "look_alike_ids",
        f"{what} ids that only look different",
        "warning",
        count,
        len(own),
        examples,
        effect,
    )


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
    def pair(self) -> list[str]:
        """Columns that name an item of a list."""
        return [*as_columns(self.options.user_col), self.options.item_col]


class ListFindings(Findings):
    """Findings of which some concern lists, whose labels are then the examples, and some one
    recommender."""

    columns: ClassVar[Mapping[str, str]] = {**FINDING_COLUMNS, "by": "str", "ranges": "str"}

    matched: Matched  # the lists, once they are made

    def lists(
        self,
        code: str,
        finding: str,
        severity: Severity,
        where: np.ndarray,
        effect: str | Callable[[np.ndarray], tuple[str, str]],
        *,
        of: np.ndarray | None = None,
        once: bool = False,
    ) -> None:
        """Add a finding for each recommender with lists for which `where` is true, of those for
        which `of` is, by default those with recommendations.

        What is true of a list whatever was recommended is said `once`. An effect that depends on
        the lists is a function of them; it returns its words and the ranges of metrics.
        """
        of, parts = self.matched.n_pred > 0 if of is None else of, list(parts_by(self.matched))
        for name, own in [("", parts[0][1])] if once else parts:
            found = where & own
            if found.any() or self.parts:
                words, ranges = (effect, "") if isinstance(effect, str) else effect(own)
                some, n_of = labels_where(self.matched, found), (of & own).sum()
                self.add(
                    code, finding, severity, found.sum(), n_of, some, words, by=name, ranges=ranges
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


NO_ROWS = {
    "true": "nothing is relevant: there is no metric",
    "pred": "every list scores 0",
    "log": "nothing was seen before",
}


def check_empty(found: ListFindings, role: str, frame: pd.DataFrame) -> None:
    """Report a frame without rows."""
    found.add("empty", f"{role} is empty", "error", not len(frame), 1, "0 rows", NO_ROWS[role])


def check_lists(found: ListFindings, data: Data, matched: Matched) -> None:
    """Add the findings about lists: repeated rows, users of one frame alone, and lengths."""
    _check_duplicates(found, data, matched)
    k, judged, served = data.k, matched.true_list >= 0, matched.n_pred > 0
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


def _check_duplicates(found: ListFindings, data: Data, matched: Matched) -> None:
    for role, frame, names, lists in (
        ("true", data.true, data.pair, matched.true_lists),
        ("pred", data.pred, [*data.by, *data.pair], matched),
    ):
        count = matched.counts.get(f"{role}_duplicates", 0)
        if not count and not found.parts:
            continue
        rows, repeated = frame[names], np.full(len(frame), bool(count))
        if count and data.options.judged_only:  # other rows are dropped as well
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

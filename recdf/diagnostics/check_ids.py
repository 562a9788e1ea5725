"""Findings of `check`, and those of them that are about ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import IdTypeError
from ..inputs.codes import check_kinds, encode
from ..inputs.frames import column
from ..inputs.ids import Ids, read_ids
from ..inputs.options import Options, as_columns
from ..matching.list_keys import run_heads

# A share of `true` that nobody was recommended is worth a word above this.
FEW_ITEMS_IN_COMMON = 0.5


@dataclass
class Findings:
    """Rows of the result, in the order in which they are found."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, finding: str, severity: str, count: int, of: int, examples: Any, effect: str) -> None:
        """One finding that concerns `count` of `of`; nothing if it concerns none."""
        if count:
            words = examples if isinstance(examples, str) else ", ".join(map(repr, list(examples)[:5]))
            share = count / of if of else float("nan")
            values = (finding, severity, int(count), share, words, effect)
            self.rows.append(dict(zip(COLUMNS, values, strict=True)))

    def table(self) -> pd.DataFrame:
        types = {
            "finding": "str",
            "severity": "str",
            "count": "int64",
            "share": "float64",
            "examples": "str",
            "effect": "str",
        }
        table = pd.DataFrame(self.rows, columns=COLUMNS).astype(types)
        order = table["severity"].map({"error": 0, "warning": 1, "info": 2})
        return table.iloc[np.argsort(order.to_numpy(), kind="stable")].reset_index(drop=True)


COLUMNS = ["finding", "severity", "count", "share", "examples", "effect"]


def check_ids(found: Findings, true: pd.DataFrame, pred: pd.DataFrame, options: Options) -> dict[str, Ids] | None:
    """Null ids, kinds that cannot match, look-alikes: the ids of `pred` by column, None if nothing can be compared."""
    comparable, offered = len(true) > 0 and len(pred) > 0, {}
    by = None
    if options.by is not None and comparable:
        for name in as_columns(options.by):
            column(pred, name, "pred")
        by = pred.groupby(as_columns(options.by), sort=False, observed=True).ngroup().to_numpy()
    for what, names in (("user", as_columns(options.user_col)), ("item", [options.item_col])):
        for name in names:
            pair = [_read(found, column(frame, name, role), role) for role, frame in (("true", true), ("pred", pred))]
            wanted, offers = pair
            comparable &= wanted is not None and offers is not None
            if wanted is None or offers is None or not comparable:
                continue
            offered[name] = offers
            try:
                check_kinds([wanted, offers])
            except IdTypeError as error:
                effect = "no row can ever match: every metric would be 0"
                found.add(f"{what} ids that cannot match", "error", len(offers), len(offers), str(error), effect)
                comparable = False
                continue
            code, common = _check_common(found, what, wanted, offers)
            comparable &= bool(common.any())
            if by is not None and common.any():
                _check_by(found, what, pred[as_columns(options.by)], by, np.append(common, False)[code])
    return offered if comparable else None


def check_side(found: Findings, role: str, frame: pd.DataFrame, names: list[str], offered: dict[str, Ids]) -> bool:
    """Ids of a side table that are null, or that can never equal those of `pred`; False if it cannot be looked up."""
    usable = True
    for name in names:
        ids = _read(found, column(frame, name, role), role)
        if ids is None:
            usable = False
            continue
        try:
            check_kinds([offered[name], ids])
        except IdTypeError as error:
            effect = f"no row of {role} can ever match"
            found.add(f"ids of {role} that cannot match", "error", len(ids), len(ids), str(error), effect)
            usable = False
    return usable


def _read(found: Findings, series: pd.Series, role: str) -> Ids | None:
    """Ids of a column; None, and a finding, if they are none."""
    where = f"{role}[{series.name!r}]"
    try:
        ids = read_ids(series, where)
    except IdTypeError as error:
        effect = "evaluate refuses them"
        found.add("ids of an unusable type", "error", len(series), len(series), str(error), effect)
        return None
    if ids.null is not None:
        effect = "evaluate raises"
        effect += "" if role == "items" else '; null_keys="drop" leaves these rows out'
        found.add(f"null ids in {role}", "error", int(ids.null.sum()), len(ids), where, effect)
    return ids


def _check_by(found: Findings, what: str, labels: pd.DataFrame, by: np.ndarray, known: np.ndarray) -> None:
    """Values of `by` none of whose rows is `known` to `true`."""
    rows = np.bincount(by[by >= 0])
    silent = rows > 0
    silent[by[known & (by >= 0)]] = False
    if silent.any():
        first = np.zeros(len(rows), np.int64)
        first[by[::-1]] = np.arange(len(by))[::-1]  # the last assignment stays: the first row
        examples = plain_rows(labels.take(first[silent][:5]))
        effect = f"every list of {', '.join(map(str, labels.columns))} = {examples[0]!r} scores 0"
        found.add(f"no {what} in common", "error", int(rows[silent].sum()), len(by), examples, effect)


def plain_rows(frame: pd.DataFrame) -> list[Any]:
    """Rows as tuples of Python objects, of one column as the objects."""
    rows = frame.astype(object).to_numpy().tolist()
    return [row[0] if len(row) == 1 else tuple(row) for row in rows]


def _check_common(found: Findings, what: str, wanted: Ids, offered: Ids) -> tuple[np.ndarray, np.ndarray]:
    """Ids of `true` that nobody of `pred` has, and whether they only look different.

    The code of each row of `pred`, and whether an id is in both frames by code.
    """
    heads = [None if ids.null is not None else run_heads([ids]) for ids in (wanted, offered)]
    codes = encode(
        [ids if head is None else ids.take(head) for ids, head in zip((wanted, offered), heads, strict=True)]
    )
    present = []
    for code in codes.codes:
        flags = np.zeros(codes.n + 1, bool)  # the last one is for nulls, code -1
        flags[code] = True
        present.append(flags[:-1])
    common = present[0] & present[1]
    own, theirs = (
        code if head is None else np.repeat(code, np.diff(np.append(head, len(ids))))
        for code, head, ids in zip(codes.codes, heads, (wanted, offered), strict=True)
    )
    _check_look_alikes(found, what, codes.labels, own, *present)
    if not common.any():
        sample = [ids.show(np.arange(min(2, len(ids)))) for ids in (wanted, offered)]
        examples = f"true {sample[0]}, pred {sample[1]}"
        found.add(f"no {what} in common", "error", len(wanted), len(wanted), examples, "every list scores 0")
        return theirs, common
    lost = ~np.append(common, True)[own]
    missed = int(lost.sum())
    if what == "item" and missed > FEW_ITEMS_IN_COMMON * len(wanted):
        row = np.flatnonzero(lost)[:5]
        effect = f"recall cannot pass {1 - missed / len(wanted):.3g} of the rows of true"
        found.add("relevant items that nobody was recommended", "info", missed, len(wanted), wanted.show(row), effect)
    return theirs, common


def _check_look_alikes(
    found: Findings, what: str, labels: Any, own: np.ndarray, mine: np.ndarray, theirs: np.ndarray
) -> None:
    """Strings of one frame only that equal one of the other but for zeros, a trailing .0, blanks or case."""
    if not isinstance(labels, pa.Array | pa.ChunkedArray) or not pa.types.is_large_string(labels.type):
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

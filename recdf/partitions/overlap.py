"""Find out whether both frames share any ids, if no part has a hit. Only then are the parts read again.

A hit shows that a user and an item are in both frames. Without one, ids may still be shared across two parts.
`overlap.silent` has the numbers of the `by` values that share no item with `true`, as far as is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa

from ..evaluation.exposure_sums import Distinct
from ..inputs.codes import encode, encode_keys
from ..inputs.ids import read_ids
from ..matching.grouping import spans
from ..matching.lists import Matched
from ..matching.overlap import Overlap
from .source import as_frame

Tables = dict[str, pa.Table]


def compared(
    overlap: Overlap,
    user_cols: list[str],
    item_col: str,
    parts: Callable[[], Iterable[Tables]],
    match_part: Callable[[int, Tables], Matched],
) -> Overlap:
    """Complete the overlap of all parts: compare ids across parts for each `by` value without a hit."""
    if not overlap.n_true_rows or not overlap.n_pred_rows or not len(overlap.silent):
        return overlap
    if not overlap.n_judged.any():
        return _users_and_items(overlap, user_cols, item_col, parts())
    return _items_of_silent(overlap, item_col, parts(), match_part)


def _users_and_items(overlap: Overlap, user_cols: list[str], item_col: str, parts: Iterable[Tables]) -> Overlap:
    items: dict[str, Distinct] = {}
    shares_user = False
    for tables in parts:
        ids = [[read_ids(as_frame(table)[name], name) for name in user_cols] for table in tables.values()]
        (true_keys, pred_keys), _ = encode_keys(ids)
        shares_user |= bool(np.isin(pd.unique(pred_keys.all()), pd.unique(true_keys.all())).any())
        for role, table in tables.items():
            items.setdefault(role, Distinct(table.schema.field(item_col).type)).add(table[item_col])
    return replace(overlap, shares_user=shares_user, shares_item=_share(items["pred"], items["true"]))


def _items_of_silent(
    overlap: Overlap, item_col: str, parts: Iterable[Tables], match_part: Callable[[int, Tables], Matched]
) -> Overlap:
    """Compare the items of the `by` values without a hit with those of `true`."""
    in_true: Distinct | None = None
    recommended: dict[int, Distinct] = {}
    for part, tables in enumerate(parts):
        true_items, pred_items = tables["true"][item_col], tables["pred"][item_col]
        in_true = in_true or Distinct(true_items.type)
        in_true.add(true_items)
        matched = match_part(part, tables)
        for value in overlap.silent.tolist():
            lists = np.flatnonzero(matched.list_by == value)
            rows = matched.rows(spans(matched.start[lists], matched.n_pred[lists]))
            recommended.setdefault(value, Distinct(pred_items.type)).add(pred_items.take(pa.array(rows)))
    shares = overlap.by_shares_item.copy()
    for value, items in recommended.items():
        shares[value] = in_true is not None and _share(items, in_true)
    return replace(overlap, by_shares_item=shares)


def _share(one: Distinct, two: Distinct) -> bool:
    """Tell whether some value is in both."""
    if not len(one) or not len(two):
        return False
    ours, theirs = encode([read_ids(items.ids(), "item") for items in (one, two)]).codes
    return bool(np.isin(ours, theirs).any())

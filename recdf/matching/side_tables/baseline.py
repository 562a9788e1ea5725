"""The baseline of a call: another recommender's lists for the same keys, as codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...inputs.codes import Coded, IdCodes
from ...inputs.options import Options
from ...inputs.true_and_pred import ReadRows
from ..ranked import joined, pred_blocks, rank_pred, refuse_duplicates, refuse_ties, repeats, tied_rows


@dataclass(frozen=True)
class BaseLists:
    """The baseline's lists, best first, each item once; `list_base` is the baseline's list for each list, or -1."""

    start: np.ndarray
    item: np.ndarray
    list_base: np.ndarray


def base_lists(
    table: ReadRows, code: Coded, item: Coded, items: IdCodes, key: np.ndarray, n_keys: int, options: Options
) -> BaseLists:
    """Rank the baseline's lists, each item once, and find which of them belongs to each list of the population."""
    blocks = pred_blocks(table, code, None, n_keys, item)
    lists = joined(blocks.each(lambda block: rank_pred(table, block, items, options)))
    tied = tied_rows(lists)
    refuse_ties(table, tied, len(tied), options)
    repeat = repeats(lists, items.n).repeat
    if len(repeat):
        refuse_duplicates(table, lists.rows(repeat[:5]), len(repeat), options)
        keep = np.ones(len(lists.item), bool)
        keep[repeat] = False
        lists = lists.kept(keep)
    of_key = np.full(n_keys, -1, np.int64)
    of_key[lists.code] = np.arange(len(lists.code))
    return BaseLists(lists.start, lists.item, of_key[key])

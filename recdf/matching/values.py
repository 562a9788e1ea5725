"""Numbers that rows have besides their gains: money values, ratings and predicted ratings, clicks and purchases.

Contract: each array has one entry per recommended row, or per row of `true`, in the order of the ranked lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import DataError, examples
from ..inputs.codes import IdCodes
from ..inputs.frames import column, read_values
from ..inputs.options import Options
from ..inputs.true_and_pred import ReadRows
from .ranked import Ranked
from .side_tables.sides import Door
from .true_and_pred_lists import PredLists

# Columns of `true` that say what users did with an item.
RESPONSES = ("clicks", "purchases")


@dataclass(frozen=True)
class Rating:
    """Functions that read the ratings that users gave (per row of `true`) and those predicted (per recommended row)."""

    given: Callable[[], np.ndarray]
    predicted: Callable[[], np.ndarray]


@dataclass(frozen=True)
class Values:
    """The value of each recommended row (as recommended) and of each row of `true` (as bought), both in list order."""

    pred: np.ndarray
    true: np.ndarray
    where: tuple[str, str]

    def checked(self, negative: str) -> Values:
        """Refuse negative values (refunds), or clip them to 0."""
        if negative == "clip":
            return Values(np.maximum(self.pred, 0.0), np.maximum(self.true, 0.0), self.where)
        for values, where in ((self.pred, self.where[0]), (self.true, self.where[1])):
            below = values[values < 0]
            if len(below):
                raise DataError(
                    f"{where} holds {len(below):,} negative values ({examples(below)}); "
                    'drop the refunds, or count them as 0: "revenue(negative=clip)@10" in evaluate, '
                    'rd.revenue(..., negative="clip")'
                )
        return self


def responses_of(table: ReadRows, lists: Ranked, name: str) -> np.ndarray | None:
    """Return the clicks or purchases of each row of `true` from the column of this name; None without the column."""
    if name not in table.frame.columns:
        return None
    found = read_values(table.frame, name, table.role)
    if len(found) and found.min() < 0:
        below = examples(found[found < 0])
        raise DataError(f"{table.role}[{name!r}] holds negative numbers ({below}); expected counts")
    return found.take(table.frame_rows(lists.all_rows()))


def item_values(
    true_rows: ReadRows, pred_rows: ReadRows, true_lists: Ranked, pred_lists: PredLists, catalogue: Door | None,
    items: IdCodes, options: Options,
) -> Values | None:  # fmt: skip
    """Return the values in `value_col`: from the frame itself where it has the column, else from the catalogue."""
    name = options.value_col
    if name is None:
        return None
    of_item = None
    if catalogue is not None and name in catalogue.frame.columns:
        codes = items.codes[2]
        if len(pd.unique(codes)) < len(codes):
            raise DataError(f"items has {len(codes) - len(pd.unique(codes)):,} repeated ids; expected one row per item")
        of_item = np.full(items.n, np.nan)
        of_item[codes] = read_values(catalogue.frame, name, "items")
    found = []
    for table, lists in ((pred_rows, pred_lists), (true_rows, true_lists)):
        if name in table.frame.columns:
            values = read_values(table.frame, name, table.role)
            found.append(values[table.frame_rows(lists.all_rows())])
        elif of_item is None:
            column(table.frame, name, table.role)  # raises an error that names the columns there are
        else:
            found.append(of_item[lists.item])
            lacking = np.isnan(found[-1])
            if lacking.any():
                raise DataError(
                    f"items has no {name!r} for {len(np.unique(lists.item[lacking])):,} items of {table.role}"
                )
    return Values(found[0], found[1], (f"pred[{name!r}]", f"true[{name!r}]"))

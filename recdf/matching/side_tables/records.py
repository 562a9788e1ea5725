"""One record per side table: its name, what pages and messages say about it, and how it is read and coded.

Contract: everything that lists the side tables follows `SIDE_TABLES` and its order: the fields of `given.Given`, the
arguments of `evaluate` and of metrics, their docstrings, the needs of a metric, and the flags of the command. To add a
side table, add a record here, a field to `Given`, a property to `sides.Sides` that holds it as codes, and the argument
of `evaluate`. A test compares the lists, and CONTRIBUTING.md has every place, with an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from ...errors import ColumnError
from ...inputs.frames import as_frame
from ...inputs.options import Options, as_columns
from ...inputs.true_and_pred import read_catalogue

# catalogue: one row per item · keyed: rows of (user, item); in "keyed or by item" the user may be absent ·
# lists: rows as in `pred` · features: what items are compared by · ids: only items
Shape = Literal["catalogue", "keyed", "keyed or by item", "lists", "features", "ids"]


@dataclass(frozen=True)
class SideTable:
    """The record of one side table.

    name : name of the argument · about : what messages say after `name=` · hint : its type for a type checker (a name
    in `inputs.accepted`) · kind, meaning : its type and its meaning for docstrings · shape : how `given` reads it ·
    frame : a function that returns the same data in a form that can be read more than once · flag : help text of the
    command's flag. The property of `Sides` that holds it has its name.
    """

    name: str
    about: str
    hint: str
    kind: str
    meaning: str
    shape: Shape
    frame: Callable[[Any, Options], Any]
    flag: str

    @property
    def argument(self) -> str:
        """The argument and what it is, for messages."""
        return f"⟦+{self.name}=⟧ ({self.about})"


def _rows(role: str) -> Callable[[Any, Options], pd.DataFrame]:
    return lambda data, options: as_frame(data, role, options.user_col, options.item_col)


def _ids(role: str) -> Callable[[Any, Options], pd.DataFrame]:
    return lambda data, options: read_catalogue(data, options.item_col, role)[0]


def _aspects(data: Any, options: Options) -> pd.DataFrame:
    if not isinstance(data, Mapping):
        return as_frame(data, "aspects", options.user_col, options.item_col)
    if len(as_columns(options.user_col)) > 1:
        raise ColumnError(f"aspects is a mapping, which has one key column, but ⟦user_col={options.user_col!r}⟧")
    rows = [(user, number, item) for user, sets in data.items() for number, items in enumerate(sets) for item in items]
    users, numbers, items = zip(*rows, strict=True) if rows else ((), (), ())
    return pd.DataFrame(
        {
            as_columns(options.user_col)[0]: pd.Series(users, dtype=None if rows else object),
            "aspect": pd.Series(numbers, dtype=np.int64),
            options.item_col: pd.Series(items, dtype=None if rows else object),
        }
    )


def _reread_features(data: Any, options: Options) -> Any:
    """Return features in a form that can be read more than once. Only a stream has to be converted for that."""
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, pd.DataFrame | pd.Series):
        return as_frame(data, "features")
    return data


ROWS_EXPECTED = "DataFrame, mapping or Arrow stream"

SIDE_TABLES: dict[str, SideTable] = {
    one.name: one
    for one in (
        SideTable(
            "items",
            "the catalogue: one row per item",
            "Ids",
            "DataFrame, list, Series or Index",
            "Catalogue: all items that could have been recommended, one row each; with `value_col` also their values.",
            "catalogue",
            _ids("items"),
            "catalogue: one row per item",
        ),
        SideTable(
            "log",
            "past interactions: one row per user and item",
            "Rows",
            ROWS_EXPECTED,
            "Past interactions: one row per (user, item), with those columns of the list key that it has.",
            "keyed",
            _rows("log"),
            "past interactions: rows of user and item",
        ),
        SideTable(
            "aspects",
            "user -> list of item sets, or a frame with the columns aspect and item",
            "Rows",
            "mapping or DataFrame",
            "User -> list of item sets; or one row per (user, aspect, item); or per (aspect, item), for all users.",
            "keyed or by item",
            _aspects,
            "aspects of items, as rows of aspect and item, with a user where they differ by user",
        ),
        SideTable(
            "features",
            "columns of items=, or a frame indexed by item",
            "Features",
            "str, list of str, DataFrame, Series, mapping or callable",
            "Columns of `items`, or a frame indexed by item. Columns hold numbers, lists "
            "of numbers,\n    categories, `A|B` strings or lists of categories. A callable takes two arrays of "
            "positions in `items` and returns\n    the similarities of these pairs.",
            "features",
            _reread_features,
            "what items are compared by: a file with a row per item, or columns of --items",
        ),
        SideTable(
            "base",
            "the baseline's recommendations",
            "Rows",
            ROWS_EXPECTED,
            "The baseline's recommendations, in the columns of `pred`.",
            "lists",
            _rows("base"),
            "recommendations of a baseline, in the columns of --pred",
        ),
        SideTable(
            "popular",
            "items that everybody knows",
            "Ids",
            "list, Series, Index or DataFrame",
            "Items that everybody knows.",
            "ids",
            _ids("popular"),
            "items that everybody knows: one row per item",
        ),
    )
}

# What each side table is, for messages.
SIDES = {name: one.argument for name, one in SIDE_TABLES.items()}

"""A side table at the door: its columns and ids, checked. It is coded together with the items of both frames.

Contract: each function here is the door of some side tables. It takes the name of a table, the data, the options and
the doors of the tables before it. `records.SIDE_TABLES` says which table has which door.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...errors import ColumnError, DataError, OptionError
from ...inputs.frames import as_frame, column
from ...inputs.ids import IdColumn, read_ids
from ...inputs.options import Options, as_columns
from ...inputs.true_and_pred import ReadRows, order_source, read_catalogue, read_keyed, read_pred
from ..overlap import samples_of
from .digest import DescribedSide, described, described_function


@dataclass(frozen=True)
class Door:
    """One side table with checked columns and ids.

    frame : its columns, of which the digest is made · item : its items, one per row; None if its rows are those of
    `items` · item_col : the column that holds them · table, keys : its rows of users and items, and those columns of
    the list key that it has · similarity : a function of two arrays of positions in `items`.
    """

    frame: pd.DataFrame
    item: IdColumn | None
    item_col: str = ""
    table: ReadRows | None = None
    keys: tuple[str, ...] = ()
    similarity: Callable[..., Any] | None = None

    @property
    def columns(self) -> list[pd.Series]:
        return [self.frame.iloc[:, i] for i in range(self.frame.shape[1])]


class Doors(dict[str, Door]):
    """The side tables of a call, by name."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows that were dropped here, by what they lacked."""
        tables = (door.table for door in self.values() if door.table is not None)
        return {name: n for table in tables for name, n in table.counts.items()}

    @property
    def item_ids(self) -> dict[str, IdColumn]:
        """The item columns, by the name of the table."""
        return {name: door.item for name, door in self.items() if door.item is not None}

    @property
    def samples(self) -> dict[str, str]:
        """Two ids of each table, for messages."""
        keys = {name: door.table.keys for name, door in self.items() if door.table is not None}
        found = [samples_of(name, keys.get(name, []), ids) for name, ids in self.item_ids.items()]
        return {what: some for one in found for what, some in one.items()}

    def described(self) -> dict[str, DescribedSide]:
        """Return each table, by its role, as `spec` records it."""
        return {
            name: described(door.columns) if door.similarity is None else described_function(door.similarity)
            for name, door in self.items()
        }


def ids_door(name: str, data: Any, options: Options, _: Doors) -> Door:
    """Read a table of items, of which only the ids count."""
    frame, ids = read_catalogue(data, options.item_col, name)
    return Door(frame[[options.item_col]], ids)


def catalogue_door(name: str, data: Any, options: Options, _: Doors) -> Door:
    """Read a table with one row per item."""
    return Door(*read_catalogue(data, options.item_col, name))


def lists_door(name: str, data: Any, options: Options, _: Doors) -> Door:
    """Read recommended lists, with the columns of `pred`."""
    alone, frame = options.updated(by=None), as_frame(data, name, options.user_col, options.item_col)
    table = read_pred(frame, order_source(frame, alone), alone, name)
    return Door(table.frame, table.item, options.item_col, table, tuple(as_columns(options.user_col)))


def keyed_door(name: str, data: Any, options: Options, _: Doors) -> Door:
    """Read rows of users and items.

    The lists may be of sessions while a log knows only users, so only the key columns that it has must match.
    """
    return _keyed(name, as_frame(data, name, options.user_col, options.item_col), options, needs_user=True)


def aspects_door(name: str, data: Any, options: Options, _: Doors) -> Door:
    """Read rows of items, whose user may be absent; or a mapping of users to sets of items."""
    return _keyed(name, aspects_frame(data, options), options, needs_user=False)


def _keyed(name: str, frame: pd.DataFrame, options: Options, needs_user: bool) -> Door:
    names = as_columns(options.user_col)
    have = [one for one in names if one in frame.columns]
    if not have and needs_user:
        column(frame, names[0], name)  # raises an error that names the columns there are
    table = read_keyed(frame, name, have, options)
    return Door(table.frame, table.item, options.item_col, table, tuple(have))


def aspects_frame(data: Any, options: Options) -> pd.DataFrame:
    """Return aspects as rows of (user, aspect, item)."""
    if not isinstance(data, Mapping):
        return as_frame(data, "aspects", options.user_col, options.item_col)
    names = as_columns(options.user_col)
    if len(names) > 1:
        raise ColumnError(f"aspects is a mapping, which has one key column, but ⟦user_col={options.user_col!r}⟧")
    rows = [(user, number, item) for user, sets in data.items() for number, items in enumerate(sets) for item in items]
    frame = pd.DataFrame(rows, columns=[names[0], "aspect", options.item_col], dtype=None if rows else object)
    return frame.astype({"aspect": "int64"})


def features_door(name: str, data: Any, options: Options, doors: Doors) -> Door:
    """Read what items are compared by: columns of `items`, a frame with a row per item, or a function of positions.

    Without features= no column of `items` is a feature. To take all of them would compare items by price and by title.
    """
    item_col, items = options.item_col, doors.get("items")
    if isinstance(data, str) or (isinstance(data, list | tuple) and all(isinstance(one, str) for one in data)):
        if items is None:
            raise OptionError(f"⟦features={data!r}⟧ names columns of ⟦items=⟧, which is not given")
        names = as_columns(data)
        return Door(_side_by_side([items.frame[item_col], *(column(items.frame, one, "items") for one in names)]), None)
    if callable(data):
        if items is None:
            raise OptionError("⟦features=⟧ is a function of positions in ⟦+items=⟧, which is not given")
        return Door(items.frame.iloc[:, :0], None, similarity=data)
    if isinstance(data, Mapping):
        data = pd.Series(list(data.values()), index=list(data))
    if isinstance(data, pd.Series):
        data = data.to_frame("feature")
    if not isinstance(data, pd.DataFrame):
        data = as_frame(data, "features")
    if item_col in data.columns:
        labels = column(data, item_col, "features")
        ids = read_ids(labels, f"features[{item_col!r}]")
    else:  # a frame indexed by item; this is the only place where an index is read
        labels = pd.Series(data.index, name=item_col)
        ids = read_ids(labels, "features.index")
    if ids.null is not None:
        raise DataError(f"{ids.where} has {ids.null.sum():,} null ids")
    names = [one for one in data.columns if one != item_col]
    return Door(_side_by_side([labels, *(column(data, one, "features") for one in names)]), ids)


def _side_by_side(columns: list[pd.Series]) -> pd.DataFrame:
    """Return columns as a frame, whatever their index."""
    return pd.concat([one.reset_index(drop=True) for one in columns], axis=1)

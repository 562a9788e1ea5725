"""The side tables of one call as codes. What several metrics need of a table is computed once.

Contract: to read a table that was not given raises an OptionError that names the argument. Each function below
`Sides` makes the codes of one table, and `records.SIDE_TABLES` says which.
The aspects say what a user may want of an item, and the baseline is another recommender's lists for the same keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ...errors import DataError, IdTypeError, OptionError
from ...inputs.codes import Coded, IdCodes, encode_keys
from ...inputs.frames import column
from ...inputs.ids import check_labels, read_ids
from ...inputs.options import Options
from ...inputs.true_and_pred import ReadRows
from ..ranked import joined, pred_blocks, rank_pred, refuse_duplicates, refuse_ties, repeats, tied_rows
from .catalogue import Catalogue, unique_rows
from .digest import DescribedSide
from .doors import Doors
from .features import FeatureTable
from .log import LogCodes


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


@dataclass(frozen=True)
class Aspects:
    """What a user may want of an item: entries (user, item, aspect), ordered by user and item.

    `key` : user * n_items + item, where the user is 0 if all users have the same aspects · `list_user` : the user of
    each list, -1 for none; None if all users have the same aspects · `n_of_user` : number of distinct aspects of each
    user.
    """

    key: np.ndarray
    aspect: np.ndarray
    n_aspects: int
    list_user: np.ndarray | None
    n_of_user: np.ndarray
    n_items: int

    def n_of_list(self, n_lists: int) -> np.ndarray:
        if self.list_user is None:
            return np.full(n_lists, self.n_of_user[0])
        found: np.ndarray = np.append(self.n_of_user, 0)[self.list_user]
        return found


# What makes the codes of each side table, and what messages say of it: the argument and its meaning.
Coders = Mapping[str, tuple[Callable[["Sides", str], Any], str]]


class Sides:
    """The side tables of one call as codes: the attribute of the name of a table holds it.

    doors : the checked tables · codes : the code of the item of each row, by table · users : the code of the user of
    each row, and of each list (-1: not in the table), by table; None for a table without users · n_items : all item
    codes are below it · item_rank : returns the place of each item code in the order of the items.
    """

    items: Catalogue
    log: LogCodes
    aspects: Callable[..., Aspects]
    features: FeatureTable
    popular: np.ndarray
    base: BaseLists

    def __init__(
        self, coders: Coders, doors: Doors, codes: dict[str, np.ndarray], items: IdCodes, keys: pd.DataFrame | None,
        base: BaseLists | None,
    ) -> None:  # fmt: skip
        """Take the checked tables, the `codes` of the item column of each, the `keys` of the lists, and `base` lists.

        `keys` is None where there are no lists.
        """
        self._coders, self.doors, self.codes, self.n_items, self.item_rank = coders, doors, codes, items.n, items.rank
        of_users = [name for name, door in doors.items() if name != "base" and door.table is not None]
        self.users = {name: self._match_users(name, keys) for name in of_users}
        self._made: dict[str, Any] = {} if base is None else {"base": base}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._coders:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name not in self._made:
            self._made[name] = self._coders[name][0](self, name)
        return self._made[name]

    def _match_users(
        self, name: str, keys: pd.DataFrame | None
    ) -> tuple[np.ndarray | None, np.ndarray | IdTypeError | None]:
        """Return the user code of each row of a side table, and of each list (-1: not in the table).

        Both are None for a table without a user column.
        """
        names, table = self.doors[name].keys, self.doors[name].table
        if not names or table is None:
            return None, None
        if keys is None:
            return encode_keys([table.keys])[0][0].all(), np.empty(0, np.int64)
        of_lists = [read_ids(keys[column], f"the lists' {column!r}") for column in names]
        try:
            coded, n = encode_keys([of_lists, table.keys])
        except IdTypeError as error:
            if name != "log":
                raise
            return encode_keys([table.keys])[0][0].all(), error
        lists, rows = (codes.all() for codes in coded)
        there = np.zeros(n, bool)
        there[rows] = True
        return rows, np.where(there[lists], lists, -1)

    def needed(self, name: str) -> np.ndarray:
        """Return the item codes of a table, or raise where it was not given."""
        if name not in self.codes:
            raise OptionError(f"needs {self._coders[name][1]}")
        return self.codes[name]

    def n_known(self) -> dict[str, int]:
        """Return, for each side table whose users all metrics read, the number of lists whose user it has."""
        found = {name: of_lists for name, (_, of_lists) in self.users.items() if name != "log"}
        found |= {"base": self._made["base"].list_base} if "base" in self._made else {}
        return {name: int(np.count_nonzero(one >= 0)) for name, one in found.items() if isinstance(one, np.ndarray)}

    def described(self) -> dict[str, DescribedSide]:
        """Return each table, by its role, as `spec` records it."""
        return self.doors.described()

    def has(self, name: str) -> bool:
        return name in self.codes


def catalogue_codes(sides: Sides, name: str) -> Catalogue:
    """Return a table with one row per item."""
    return Catalogue(sides.doors[name].frame, sides.needed(name), sides.n_items)


def log_codes(sides: Sides, name: str) -> LogCodes:
    """Return past interactions."""
    item, (user, list_user) = sides.needed(name), sides.users[name]
    assert user is not None
    assert list_user is not None
    return LogCodes(user, item, list_user, sides.n_items, sides.item_rank)


def features_codes(sides: Sides, name: str) -> FeatureTable:
    """Return what items are compared by, which may be positions in the catalogue and nothing else."""
    door, row_of = sides.doors.get(name), None
    if name in sides.codes:
        row_of = unique_rows(sides.codes[name], sides.n_items, name)
    elif not sides.has("items"):
        sides.needed(name)
    columns, function = ([], None) if door is None else (door.columns[1:], door.similarity)
    return FeatureTable(sides.items.row_of if row_of is None else row_of, columns, function)


def marked_codes(sides: Sides, name: str) -> np.ndarray:
    """Return whether each item code is one of the items of a table."""
    found = np.zeros(sides.n_items, bool)
    found[sides.needed(name)] = True
    return found


def base_codes(sides: Sides, name: str) -> BaseLists:
    """Raise, since the lists of the baseline are ranked where those of `pred` are, if it was given."""
    raise OptionError(f"needs {sides._coders[name][1]}")


def aspects_codes(sides: Sides, name: str) -> Callable[..., Aspects]:
    """Return a function of the name of the column of aspects; by default the only further column, else "aspect"."""
    sides.needed(name)
    return partial(_aspects, sides, name)


def _aspects(sides: Sides, table_name: str, name: str | None = None) -> Aspects:
    door, item = sides.doors[table_name], sides.codes[table_name]
    if name is None:
        others = [one for one in door.frame.columns if one not in (*door.keys, door.item_col)]
        name = others[0] if len(others) == 1 else "aspect"
    series = column(door.frame, name, table_name)
    if door.table is not None and door.table.row is not None:
        series = series.take(door.table.row)
    aspect, labels = pd.factorize(check_labels(series, f"{table_name}[{name!r}]"))
    if (aspect < 0).any():
        raise DataError(f"{table_name}[{name!r}] has {(aspect < 0).sum():,} null values")
    user, list_user = sides.users[table_name]
    assert not isinstance(list_user, IdTypeError)
    n_aspects = max(len(labels), 1)
    user = np.zeros(len(aspect), np.int64) if user is None else user.astype(np.int64)
    key = user * sides.n_items + item
    entry = np.unique(np.stack([key, aspect]), axis=1) if len(key) else np.zeros((2, 0), np.int64)
    n_users = int(max(user.max(initial=0), -1 if list_user is None else list_user.max(initial=-1))) + 1
    own = pd.unique(entry[0] // sides.n_items * n_aspects + entry[1]) // n_aspects
    return Aspects(entry[0], entry[1], n_aspects, list_user, np.bincount(own, minlength=n_users), sides.n_items)

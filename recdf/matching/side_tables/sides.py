"""The side tables of one call as codes. What several metrics need of a table is computed once.

Contract: to read a table that was not given raises an OptionError that names the argument.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd

from ...errors import DataError, IdTypeError, OptionError
from ...inputs.codes import IdCodes, encode_keys
from ...inputs.frames import column
from ...inputs.ids import check_labels, read_ids
from .aspects import Aspects
from .baseline import BaseLists
from .catalogue import Catalogue, unique_rows
from .digest import DescribedSide
from .features import FeatureTable
from .given import Doors
from .log import LogCodes
from .records import SIDES


class Sides:
    """The side tables of one call as codes."""

    def __init__(
        self,
        doors: Doors,
        codes: dict[str, np.ndarray],
        items: IdCodes,
        keys: pd.DataFrame | None,
        base: BaseLists | None,
    ) -> None:
        """Take the checked tables, the `codes` of the item column of each, the `keys` of the lists, and `base` lists.

        `keys` is None where there are no lists.
        """
        self._doors, self._codes, self._n_items, self._base = doors, codes, items.n, base
        self.item_rank = items.rank
        self._users = {name: self._match_users(name, keys) for name in doors.tables if name != "base"}

    def _match_users(
        self, name: str, keys: pd.DataFrame | None
    ) -> tuple[np.ndarray | None, np.ndarray | IdTypeError | None]:
        """Return the user code of each row of a side table, and of each list (-1: not in the table).

        Both are None for a table without a user column.
        """
        names, table = self._doors.key_names[name], self._doors.tables[name]
        if not names:
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

    def _needed(self, name: str) -> None:
        if name not in self._codes:
            raise OptionError(f"needs {SIDES[name]}")

    def n_known(self) -> dict[str, int]:
        """Return, for each side table whose users all metrics read, the number of lists whose user it has."""
        found = {name: of_lists for name, (_, of_lists) in self._users.items() if name != "log"}
        found |= {} if self._base is None else {"base": self._base.list_base}
        return {name: int(np.count_nonzero(one >= 0)) for name, one in found.items() if isinstance(one, np.ndarray)}

    def described(self) -> dict[str, DescribedSide]:
        """Return each table, by its role, as `spec` records it."""
        return self._doors.described()

    def has(self, name: str) -> bool:
        return name in self._codes

    @property
    def base(self) -> BaseLists:
        """The baseline's lists."""
        if self._base is None:
            raise OptionError(f"needs {SIDES['base']}")
        return self._base

    @property
    def items(self) -> Catalogue:
        """The catalogue, by the name of its argument."""
        return self.catalogue

    @cached_property
    def catalogue(self) -> Catalogue:
        self._needed("items")
        assert self._doors.catalogue is not None
        return Catalogue(self._doors.catalogue[0], self._codes["items"], self._n_items)

    @cached_property
    def log(self) -> LogCodes:
        self._needed("log")
        user, list_user = self._users["log"]
        assert user is not None
        assert list_user is not None
        return LogCodes(user, self._codes["log"], list_user, self._n_items, self.item_rank)

    @cached_property
    def features(self) -> FeatureTable:
        doors = self._doors
        if doors.feature_columns is None:
            raise OptionError(f"needs {SIDES['features']}")
        if doors.features_of_items:
            return FeatureTable(self.catalogue.row_of, doors.feature_columns, doors.similarity)
        row_of = unique_rows(self._codes["features"], self._n_items, "features")
        return FeatureTable(row_of, doors.feature_columns, doors.similarity)

    @cached_property
    def popular(self) -> np.ndarray:
        """Whether each item code is one of the popular items."""
        self._needed("popular")
        found = np.zeros(self._n_items, bool)
        found[self._codes["popular"]] = True
        return found

    def aspects(self, name: str | None = None) -> Aspects:
        """Return the aspects in the column `name`; by default the only column beside user and item, else "aspect"."""
        self._needed("aspects")
        table = self._doors.tables["aspects"]
        if name is None:
            known = {*self._doors.key_names["aspects"], self._doors.item_col}
            others = [one for one in table.frame.columns if one not in known]
            name = others[0] if len(others) == 1 else "aspect"
        series = column(table.frame, name, "aspects")
        if table.row is not None:
            series = series.take(table.row)
        aspect, labels = pd.factorize(check_labels(series, f"aspects[{name!r}]"))
        if (aspect < 0).any():
            raise DataError(f"aspects[{name!r}] has {(aspect < 0).sum():,} null values")
        user, list_user = self._users["aspects"]
        assert not isinstance(list_user, IdTypeError)
        n_aspects = max(len(labels), 1)
        user = np.zeros(len(aspect), np.int64) if user is None else user.astype(np.int64)
        key = user * self._n_items + self._codes["aspects"]
        entry = np.unique(np.stack([key, aspect]), axis=1) if len(key) else np.zeros((2, 0), np.int64)
        n_users = int(max(user.max(initial=0), -1 if list_user is None else list_user.max(initial=-1))) + 1
        own = pd.unique(entry[0] // self._n_items * n_aspects + entry[1]) // n_aspects
        return Aspects(entry[0], entry[1], n_aspects, list_user, np.bincount(own, minlength=n_users), self._n_items)

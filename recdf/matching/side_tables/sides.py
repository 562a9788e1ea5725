"""Side tables: the past log, the catalogue, features, aspects, baseline lists and popular items of a call.

Contract: `read_sides` is their door and gives the item columns to code together with those of `true` and `pred`;
`Sides` then holds them as codes, each with what metrics ask of it computed once. What was not given raises an
OptionError that names the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ...errors import ColumnError, DataError, IdTypeError, OptionError
from ...inputs.codes import encode_keys
from ...inputs.frames import as_frame, column
from ...inputs.ids import Ids, read_ids
from ...inputs.options import Options, as_columns
from ...inputs.tables import Table, order_source, read_catalogue, read_keyed, read_pred
from .features import Features
from .knowledge import Aspects, BaseLists, Catalogue, Log, unique_rows

# What each side table is, for the messages and the docstrings.
SIDES = {
    "items": "items= (the catalogue: one row per item)",
    "log": "log= (past interactions: one row per user and item)",
    "aspects": "aspects= (user -> list of item sets, or a frame with the columns aspect and item)",
    "features": "features= (columns of items=, or a frame indexed by item)",
    "base": "base= (the baseline's recommendations)",
    "popular": "popular= (items that everybody knows)",
}


@dataclass(frozen=True)
class Given:
    """Side tables as a caller gives them."""

    items: Any = None
    log: Any = None
    aspects: Any = None
    features: Any = None
    base: Any = None
    popular: Any = None

    def has(self, name: str) -> bool:
        return getattr(self, name) is not None


NOTHING = Given()
NAMES = tuple(one.name for one in fields(Given))


# ------------------------------------------------------------------------------------------------ door


def as_frames(given: Given, options: Options) -> Given:
    """The same tables in a form that can be read more than once."""
    found = {}
    for name in ("log", "aspects", "base"):
        data = getattr(given, name)
        if name == "aspects" and isinstance(data, Mapping):
            data = _aspect_frame(data, options)
        found[name] = None if data is None else as_frame(data, name, options.user_col, options.item_col)
    for name in ("items", "popular"):
        data = getattr(given, name)
        found[name] = None if data is None else read_catalogue(data, options.item_col, name)[0]
    features = given.features
    if hasattr(features, "__arrow_c_stream__") and not isinstance(features, pd.DataFrame | pd.Series):
        features = as_frame(features, "features")
    return Given(**found, features=features)


@dataclass(frozen=True)
class Doors:
    """Side tables after the door; `item_ids` are their item columns by name, to be coded with the others."""

    catalogue: tuple[pd.DataFrame, Ids] | None
    tables: dict[str, Table]
    key_names: dict[str, list[str]]
    feature_columns: list[pd.Series] | None
    similarity: Callable[..., Any] | None
    feature_ids: Ids | None
    popular: Ids | None
    item_col: str

    @property
    def features_of_items(self) -> bool:
        """The features are columns of the catalogue."""
        return self.catalogue is not None and self.feature_ids is self.catalogue[1]

    @property
    def item_ids(self) -> dict[str, Ids]:
        found = {} if self.catalogue is None else {"items": self.catalogue[1]}
        found.update({name: table.item for name, table in self.tables.items()})
        if self.feature_ids is not None and not self.features_of_items:
            found["features"] = self.feature_ids
        if self.popular is not None:
            found["popular"] = self.popular
        return found


def read_sides(given: Given, options: Options) -> Doors:
    """Check the columns and ids of what was given."""
    catalogue = None if given.items is None else read_catalogue(given.items, options.item_col)
    tables: dict[str, Table] = {}
    key_names: dict[str, list[str]] = {}
    user_cols = as_columns(options.user_col)
    for name in ("log", "aspects"):
        if not given.has(name):
            continue
        data = getattr(given, name)
        if name == "aspects" and isinstance(data, Mapping):
            data = _aspect_frame(data, options)
        frame = as_frame(data, name, options.user_col, options.item_col)
        # A log knows users, while the lists may be of sessions: the key columns that it has must match.
        have = [column for column in user_cols if column in frame.columns]
        if not have and name == "log":
            column(frame, user_cols[0], name)  # says what there is
        key_names[name] = have
        tables[name] = read_keyed(frame, name, have, options)
    if given.base is not None:
        frame = as_frame(given.base, "base", options.user_col, options.item_col)
        key_names["base"] = user_cols
        alone = options.updated(by=None)
        tables["base"] = read_pred(frame, order_source(frame, alone), alone, "base")
    columns, similarity, feature_ids = _read_features(given.features, catalogue, options)
    popular = None
    if given.popular is not None:
        popular = read_catalogue(given.popular, options.item_col, "popular")[1]
    return Doors(catalogue, tables, key_names, columns, similarity, feature_ids, popular, options.item_col)


def _aspect_frame(aspects: Mapping[Any, Any], options: Options) -> pd.DataFrame:
    """Long frame of a mapping user -> list of item sets."""
    if len(as_columns(options.user_col)) > 1:
        raise ColumnError(f"aspects is a mapping, which has one key column, but user_col={options.user_col!r}")
    rows = [
        (user, number, item) for user, sets in aspects.items() for number, items in enumerate(sets) for item in items
    ]
    users, numbers, items = zip(*rows, strict=True) if rows else ((), (), ())
    return pd.DataFrame(
        {
            as_columns(options.user_col)[0]: pd.Series(users, dtype=None if rows else object),
            "aspect": pd.Series(numbers, dtype=np.int64),
            options.item_col: pd.Series(items, dtype=None if rows else object),
        }
    )


def _read_features(
    features: Any, catalogue: tuple[pd.DataFrame, Ids] | None, options: Options
) -> tuple[list[pd.Series] | None, Callable[..., Any] | None, Ids | None]:
    """Feature columns, a similarity of rows, and the ids of the rows."""
    item_col = options.item_col
    if (
        features is None
        or isinstance(features, str)
        or (isinstance(features, list | tuple) and all(isinstance(name, str) for name in features))
    ):
        if catalogue is None:
            if features is None:
                return None, None, None
            raise OptionError(f"features={features!r} names columns of items=, which is not given")
        frame, ids = catalogue
        names = [name for name in frame.columns if name != item_col] if features is None else as_columns(features)
        return [column(frame, name, "items") for name in names], None, ids
    if callable(features):
        if catalogue is None:
            raise OptionError("features= is a function of positions in items=, which is not given")
        return [], features, catalogue[1]
    if isinstance(features, Mapping):
        features = pd.Series(list(features.values()), index=list(features))
    if isinstance(features, pd.Series):
        features = features.to_frame("feature")
    if not isinstance(features, pd.DataFrame):
        features = as_frame(features, "features")
    if item_col in features.columns:
        ids = read_ids(column(features, item_col, "features"), f"features[{item_col!r}]")
    else:  # the one place where an index is read: a frame indexed by item
        ids = read_ids(pd.Series(features.index), "features.index")
    if ids.null is not None:
        raise DataError(f"{ids.where} has {ids.null.sum():,} null ids")
    names = [name for name in features.columns if name != item_col]
    return [column(features, name, "features") for name in names], None, ids


# ------------------------------------------------------------------------------------------ as codes


class Sides:
    """The side tables of one call as codes."""

    base: BaseLists | None = None

    def __init__(
        self,
        doors: Doors,
        codes: dict[str, np.ndarray],
        n_items: int,
        keys: pd.DataFrame,
        rank: Callable[[], np.ndarray | None],
    ) -> None:
        self._doors, self._codes, self._n_items = doors, codes, n_items
        self.item_rank = rank
        self._users = {name: self._match_users(name, keys) for name in doors.tables if name != "base"}

    def _match_users(self, name: str, keys: pd.DataFrame) -> tuple[np.ndarray | None, np.ndarray | IdTypeError | None]:
        """User code of each row of a side table and of each list (-1: not in the table); None for no user column."""
        names, table = self._doors.key_names[name], self._doors.tables[name]
        if not names:
            return None, None
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

    def has(self, name: str) -> bool:
        return name in self._codes

    @cached_property
    def catalogue(self) -> Catalogue:
        self._needed("items")
        assert self._doors.catalogue is not None
        return Catalogue(self._doors.catalogue[0], self._codes["items"], self._n_items)

    @cached_property
    def log(self) -> Log:
        self._needed("log")
        user, list_user = self._users["log"]
        assert user is not None
        assert list_user is not None
        return Log(user, self._codes["log"], list_user, self._n_items, self.item_rank)

    @cached_property
    def features(self) -> Features:
        doors = self._doors
        if doors.feature_columns is None:
            raise OptionError(f"needs {SIDES['features']}")
        if doors.features_of_items:
            return Features(self.catalogue.row_of, doors.feature_columns, doors.similarity)
        row_of = unique_rows(self._codes["features"], self._n_items, "features")
        return Features(row_of, doors.feature_columns, doors.similarity)

    @cached_property
    def popular(self) -> np.ndarray:
        """Bool per item code."""
        self._needed("popular")
        found = np.zeros(self._n_items, bool)
        found[self._codes["popular"]] = True
        return found

    def aspects(self, name: str | None = None) -> Aspects:
        """Aspects by the column `name`, by default "aspect" or the only column beside user and item."""
        self._needed("aspects")
        table = self._doors.tables["aspects"]
        if name is None:
            known = {*self._doors.key_names["aspects"], self._doors.item_col}
            others = [one for one in table.frame.columns if one not in known]
            name = others[0] if len(others) == 1 else "aspect"
        series = column(table.frame, name, "aspects")
        if table.row is not None:
            series = series.take(table.row)
        aspect, labels = pd.factorize(series)
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

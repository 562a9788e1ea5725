"""Read side tables: the log, the catalogue, features, aspects, a baseline's lists and popular items of a call.

Contract: `read_sides` checks columns and ids, and returns the item columns, which are coded together with those of
`true` and `pred`. `sides.Sides` then holds the tables as codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ...errors import DataError, OptionError
from ...inputs.frames import as_frame, column
from ...inputs.ids import IdColumn, read_ids
from ...inputs.options import Options, as_columns
from ...inputs.true_and_pred import ReadRows, order_source, read_catalogue, read_keyed, read_pred
from ..overlap import samples_of
from .digest import DescribedSide, described, described_function
from .records import SIDE_TABLES, SideTable


@dataclass(frozen=True)
class Given:
    """Side tables as the caller passed them."""

    items: Any = None
    log: Any = None
    aspects: Any = None
    features: Any = None
    base: Any = None
    popular: Any = None

    def has(self, name: str) -> bool:
        return getattr(self, name) is not None


NOTHING = Given()


# ------------------------------------------------------------------------------------------------ door


def as_frames(given: Given, options: Options) -> Given:
    """Return the same tables in a form that can be read more than once."""
    found = {name: getattr(given, name) for name in SIDE_TABLES}
    return Given(
        **{name: None if data is None else SIDE_TABLES[name].frame(data, options) for name, data in found.items()}
    )


@dataclass(frozen=True)
class Doors:
    """Side tables with checked columns and ids; `item_ids` are their item columns by the name of the table."""

    catalogue: tuple[pd.DataFrame, IdColumn] | None
    tables: dict[str, ReadRows]
    key_names: dict[str, list[str]]
    feature_columns: list[pd.Series] | None
    similarity: Callable[..., Any] | None
    feature_ids: IdColumn | None
    feature_labels: pd.Series | None
    popular: tuple[pd.DataFrame, IdColumn] | None
    item_col: str

    @property
    def features_of_items(self) -> bool:
        """Whether the features are columns of the catalogue."""
        return self.catalogue is not None and self.feature_ids is self.catalogue[1]

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows that were dropped here, by what they lacked."""
        return {name: n for table in self.tables.values() for name, n in table.counts.items()}

    @property
    def item_ids(self) -> dict[str, IdColumn]:
        found = {} if self.catalogue is None else {"items": self.catalogue[1]}
        found.update({name: table.item for name, table in self.tables.items()})
        if self.feature_ids is not None and not self.features_of_items:
            found["features"] = self.feature_ids
        if self.popular is not None:
            found["popular"] = self.popular[1]
        return found

    @property
    def samples(self) -> dict[str, str]:
        """Two ids of each table, for messages."""
        keys = {name: table.keys for name, table in self.tables.items()}
        found = [samples_of(name, keys.get(name, []), ids) for name, ids in self.item_ids.items()]
        return {what: some for one in found for what, some in one.items()}

    def described(self) -> dict[str, DescribedSide]:
        """Return each table, by its role, as `spec` records it."""
        found = {}
        if self.catalogue is not None:
            frame = self.catalogue[0]
            found["items"] = described([frame.iloc[:, i] for i in range(frame.shape[1])])
        for name, table in self.tables.items():
            found[name] = described([table.frame.iloc[:, i] for i in range(table.frame.shape[1])])
        if self.similarity is not None:
            found["features"] = described_function(self.similarity)
        elif self.feature_columns and self.feature_labels is not None:
            found["features"] = described([self.feature_labels, *self.feature_columns])
        if self.popular is not None:
            found["popular"] = described([self.popular[0][self.item_col]])
        return found


def read_sides(given: Given, options: Options) -> Doors:
    """Check the columns and ids of the side tables that were given."""
    catalogue = None if given.items is None else read_catalogue(given.items, options.item_col)
    tables: dict[str, ReadRows] = {}
    key_names: dict[str, list[str]] = {}
    for name, one in SIDE_TABLES.items():
        if one.shape in ("keyed", "keyed or by item", "lists") and given.has(name):
            frame = one.frame(getattr(given, name), options)
            key_names[name], tables[name] = _read_rows(one, frame, options)
    columns, similarity, feature_ids, labels = _read_features(given.features, catalogue, options)
    popular = None
    if given.popular is not None:
        popular = read_catalogue(given.popular, options.item_col, "popular")
    return Doors(catalogue, tables, key_names, columns, similarity, feature_ids, labels, popular, options.item_col)


def _read_rows(one: SideTable, frame: pd.DataFrame, options: Options) -> tuple[list[str], ReadRows]:
    """Return the key columns and the rows of a side table of users and items."""
    user_cols = as_columns(options.user_col)
    if one.shape == "lists":
        alone = options.updated(by=None)
        return user_cols, read_pred(frame, order_source(frame, alone), alone, one.name)
    # The lists may be of sessions while a log knows only users, so only the key columns that it has must match.
    have = [name for name in user_cols if name in frame.columns]
    if not have and one.shape == "keyed":
        column(frame, user_cols[0], one.name)  # raises an error that names the columns there are
    return have, read_keyed(frame, one.name, have, options)


def _read_features(
    features: Any, catalogue: tuple[pd.DataFrame, IdColumn] | None, options: Options
) -> tuple[list[pd.Series] | None, Callable[..., Any] | None, IdColumn | None, pd.Series | None]:
    """Return the feature columns, a similarity of rows, the checked ids of the rows, and these ids as given."""
    item_col = options.item_col
    if (
        features is None
        or isinstance(features, str)
        or (isinstance(features, list | tuple) and all(isinstance(name, str) for name in features))
    ):
        if catalogue is None:
            if features is None:
                return None, None, None, None
            raise OptionError(f"features={features!r} names columns of items=, which is not given")
        frame, ids = catalogue
        # Without features= no column is a feature. To take all of them would compare items by price and by title.
        names = [] if features is None else as_columns(features)
        return [column(frame, name, "items") for name in names], None, ids, frame[item_col]
    if callable(features):
        if catalogue is None:
            raise OptionError("features= is a function of positions in items=, which is not given")
        return [], features, catalogue[1], None
    if isinstance(features, Mapping):
        features = pd.Series(list(features.values()), index=list(features))
    if isinstance(features, pd.Series):
        features = features.to_frame("feature")
    if not isinstance(features, pd.DataFrame):
        features = as_frame(features, "features")
    if item_col in features.columns:
        labels = column(features, item_col, "features")
        ids = read_ids(labels, f"features[{item_col!r}]")
    else:  # a frame indexed by item; this is the only place where an index is read
        labels = pd.Series(features.index, name=item_col)
        ids = read_ids(labels, "features.index")
    if ids.null is not None:
        raise DataError(f"{ids.where} has {ids.null.sum():,} null ids", column=ids.where, count=int(ids.null.sum()))
    names = [name for name in features.columns if name != item_col]
    return [column(features, name, "features") for name in names], None, ids, labels

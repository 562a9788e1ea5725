"""The side tables of one call: checked at the door, and as codes. What several metrics need is
computed once.

Contract: to read a table that was not given raises an OptionError that names the argument. Each
function below `Sides` makes the codes of one table, and `SIDE_TABLES` says which. The
aspects say what a user may want of an item, and the baseline is another recommender's lists for the
same keys.

Each function with `checked_` in its name checks the columns and ids of some side tables. It takes
the name of a table, the data, the options and the tables before it. `SIDE_TABLES` says
which table has which check.

Everything that lists the side tables follows `SIDE_TABLES` and its order: the arguments of
`evaluate`, of its engines and of metrics, their docstrings, the needs of a metric, the spec, and
the flags of the command. To add a side table, add a line to `SideTableArguments`. CONTRIBUTING.md
has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated, Any, TypedDict, get_type_hints

import numpy as np
import pandas as pd

from ...errors import ColumnError, DataError, IdTypeError, OptionError
from ...inputs.codes import IdCodes, encode_keys
from ...inputs.frames import as_frame, column
from ...inputs.ids import IdColumn, check_labels, read_ids
from ...inputs.options import Options, as_columns
from ...inputs.true_and_pred import ReadRows, order_source, read_catalogue, read_keyed, read_pred
from ..overlap import samples_of
from ..ranked import BaseLists
from .catalogue import Aspects, Catalogue, FeatureTable, LogCodes, unique_rows
from .digest import DescribedSide, described, described_function

# Tables whose users are matched with the lists before these are ranked, and not afterwards.
IN_LISTS = ("base", "exclude")


@dataclass(frozen=True)
class CheckedSide:
    """One side table with checked columns and ids.

    frame : its columns, of which the digest is made · item : its items, one per row; None if its
    rows are those of `items` · item_col : the column that holds them · table, keys : its rows of
    users and items, and those columns of the list key that it has · similarity : a function of two
    arrays of positions in `items`.
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


class CheckedSides(dict[str, CheckedSide]):
    """The side tables of a call, by name."""

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows that were dropped here, by what they lacked."""
        tables = (side.table for side in self.values() if side.table is not None)
        return {name: n for table in tables for name, n in table.counts.items()}

    @property
    def item_ids(self) -> dict[str, IdColumn]:
        """The item columns, by the name of the table."""
        return {name: side.item for name, side in self.items() if side.item is not None}

    def key_ids(self, name: str) -> list[IdColumn]:
        """The columns of a list key in the tables that are matched with the lists by it."""
        there = [side for one, side in self.items() if one in IN_LISTS and name in side.keys]
        return [side.table.keys[side.keys.index(name)] for side in there if side.table is not None]

    @property
    def samples(self) -> dict[str, str]:
        """Two ids of each table, for messages."""
        keys = {name: side.table.keys for name, side in self.items() if side.table is not None}
        found = [samples_of(name, keys.get(name, []), ids) for name, ids in self.item_ids.items()]
        return {what: some for one in found for what, some in one.items()}

    def described(self) -> dict[str, DescribedSide]:
        """Return each table, by its role, as `spec` records it."""
        return {
            name: described(side.columns)
            if side.similarity is None
            else described_function(side.similarity)
            for name, side in self.items()
        }


def checked_ids(name: str, data: Any, options: Options, _: CheckedSides) -> CheckedSide:
    """Read a table of items, of which only the ids count."""
    frame, ids = read_catalogue(data, options.item_col, name)
    return CheckedSide(frame[[options.item_col]], ids)


def checked_catalogue(name: str, data: Any, options: Options, _: CheckedSides) -> CheckedSide:
    """Read a table with one row per item."""
    return CheckedSide(*read_catalogue(data, options.item_col, name))


def checked_lists(name: str, data: Any, options: Options, _: CheckedSides) -> CheckedSide:
    """Read recommended lists, with the columns of `pred`."""
    alone, frame = (
        options.updated(by=None),
        as_frame(data, name, options.user_col, options.item_col),
    )
    table = read_pred(frame, order_source(frame, alone), alone, name)
    return CheckedSide(
        table.frame, table.item, options.item_col, table, tuple(as_columns(options.user_col))
    )


def checked_keyed(name: str, data: Any, options: Options, _: CheckedSides) -> CheckedSide:
    """Read rows of users and items.

    The lists may be of sessions while a log knows only users, so only the key columns that it has
    must match.
    """
    return _keyed(
        name, as_frame(data, name, options.user_col, options.item_col), options, needs_user=True
    )


def checked_pairs(name: str, data: Any, options: Options, checked: CheckedSides) -> CheckedSide:
    """Read rows of users and items of which nothing else counts, and count them."""
    side = checked_keyed(name, data, options, checked)
    assert side.table is not None
    table = replace(side.table, counts={**side.table.counts, f"{name}_rows": len(side.table)})
    frame = pd.DataFrame(
        {one: side.frame[one] for one in (*side.keys, options.item_col)}, copy=False
    )
    return replace(side, frame=frame, table=table)


def checked_aspects(name: str, data: Any, options: Options, _: CheckedSides) -> CheckedSide:
    """Read rows of items, whose user may be absent; or a mapping of users to sets of items."""
    return _keyed(name, aspects_frame(data, options), options, needs_user=False)


def _keyed(name: str, frame: pd.DataFrame, options: Options, needs_user: bool) -> CheckedSide:
    names = as_columns(options.user_col)
    have = [one for one in names if one in frame.columns]
    if not have and needs_user:
        column(frame, names[0], name)  # raises an error that names the columns there are
    table = read_keyed(frame, name, have, options)
    return CheckedSide(table.frame, table.item, options.item_col, table, tuple(have))


def aspects_frame(data: Any, options: Options) -> pd.DataFrame:
    """Return aspects as rows of (user, aspect, item)."""
    if not isinstance(data, Mapping):
        return as_frame(data, "aspects", options.user_col, options.item_col)
    names = as_columns(options.user_col)
    if len(names) > 1:
        raise ColumnError(
            f"aspects is a mapping, which has one key column, but ⟦user_col={options.user_col!r}⟧"
        )
    rows = [
        (user, number, item)
        for user, sets in data.items()
        for number, items in enumerate(sets)
        for item in items
    ]
    frame = pd.DataFrame(
        rows, columns=[names[0], "aspect", options.item_col], dtype=None if rows else object
    )
    return frame.astype({"aspect": "int64"})


def checked_features(name: str, data: Any, options: Options, checked: CheckedSides) -> CheckedSide:
    """Read what items are compared by: columns of `items`, a frame with a row per item, or a
    function of positions.

    Without features= no column of `items` is a feature. To take all of them would compare items by
    price and by title.
    """
    item_col, items = options.item_col, checked.get("items")
    if isinstance(data, str) or (
        isinstance(data, list | tuple) and all(isinstance(one, str) for one in data)
    ):
        if items is None:
            raise OptionError(f"⟦features={data!r}⟧ names columns of ⟦items=⟧, which is not given")
        names = as_columns(data)
        return CheckedSide(
            _side_by_side(
                [items.frame[item_col], *(column(items.frame, one, "items") for one in names)]
            ),
            None,
        )
    if callable(data):
        if items is None:
            raise OptionError(
                "⟦features=⟧ is a function of positions in ⟦+items=⟧, which is not given"
            )
        return CheckedSide(items.frame.iloc[:, :0], None, similarity=data)
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
    return CheckedSide(
        _side_by_side([labels, *(column(data, one, "features") for one in names)]), ids
    )


def _side_by_side(columns: list[pd.Series]) -> pd.DataFrame:
    """Return columns as a frame, whatever their index."""
    return pd.concat([one.reset_index(drop=True) for one in columns], axis=1)


class Sides:
    """The side tables of one call as codes: the attribute of the name of a table holds it.

    checked : the checked tables · codes : the code of the item of each row, by table · users : the
    code of the user of each row, and of each list (-1: not in the table), by table; None for a
    table without users · n_items : all item codes are below it · item_rank : returns the place of
    each item code in the order of the items.
    """

    items: Catalogue
    log: LogCodes
    aspects: Callable[..., Aspects]
    features: FeatureTable
    popular: np.ndarray
    base: BaseLists

    def __init__(
        self,
        checked: CheckedSides,
        codes: dict[str, np.ndarray],
        items: IdCodes,
        keys: pd.DataFrame | None,
        base: BaseLists | None,
    ) -> None:
        """Take the checked tables, the `codes` of the item column of each, the `keys` of the lists,
        and `base` lists.

        `keys` is None where there are no lists.
        """
        self.checked, self.codes = checked, codes
        self.n_items, self.item_rank = items.n, items.rank
        of_users = [
            name
            for name, side in checked.items()
            if name not in IN_LISTS and side.table is not None
        ]
        self.users = {name: self._match_users(name, keys) for name in of_users}
        self._made: dict[str, Any] = {} if base is None else {"base": base}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in SIDE_TABLES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name not in self._made:
            self._made[name] = SIDE_TABLES[name].codes(self, name)
        return self._made[name]

    def _match_users(
        self, name: str, keys: pd.DataFrame | None
    ) -> tuple[np.ndarray | None, np.ndarray | IdTypeError | None]:
        """Return the user code of each row of a side table, and of each list (-1: not in the
        table).

        Both are None for a table without a user column.
        """
        names, table = self.checked[name].keys, self.checked[name].table
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
            raise OptionError(f"needs {SIDE_TABLES[name].argument}")
        return self.codes[name]

    def n_known(self) -> dict[str, int]:
        """Return, for each side table whose users all metrics read, the number of lists whose user
        it has."""
        found = {name: of_lists for name, (_, of_lists) in self.users.items() if name != "log"}
        found |= {"base": self._made["base"].list_base} if "base" in self._made else {}
        return {
            name: int(np.count_nonzero(one >= 0))
            for name, one in found.items()
            if isinstance(one, np.ndarray)
        }

    def described(self) -> dict[str, DescribedSide]:
        """Return each table, by its role, as `spec` records it."""
        return self.checked.described()

    def has(self, name: str) -> bool:
        return name in self.codes


def catalogue_codes(sides: Sides, name: str) -> Catalogue:
    """Return a table with one row per item."""
    return Catalogue(sides.checked[name].frame, sides.needed(name), sides.n_items)


def log_codes(sides: Sides, name: str) -> LogCodes:
    """Return past interactions."""
    item, (user, list_user) = sides.needed(name), sides.users[name]
    assert user is not None
    assert list_user is not None
    return LogCodes(user, item, list_user, sides.n_items, sides.item_rank)


def features_codes(sides: Sides, name: str) -> FeatureTable:
    """Return what items are compared by, which may be positions in the catalogue and nothing
    else."""
    side, row_of = sides.checked.get(name), None
    if name in sides.codes:
        row_of = unique_rows(sides.codes[name], sides.n_items, name)
    elif not sides.has("items"):
        sides.needed(name)
    columns, function = ([], None) if side is None else (side.columns[1:], side.similarity)
    return FeatureTable(sides.items.row_of if row_of is None else row_of, columns, function)


def marked_codes(sides: Sides, name: str) -> np.ndarray:
    """Return whether each item code is one of the items of a table."""
    found = np.zeros(sides.n_items, bool)
    found[sides.needed(name)] = True
    return found


def aspects_codes(sides: Sides, name: str) -> Callable[..., Aspects]:
    """Return a function of the name of the column of aspects; by default the only further column,
    else "aspect"."""
    sides.needed(name)
    return cache(partial(_aspects, sides, name))


def _aspects(sides: Sides, table_name: str, name: str | None = None) -> Aspects:
    side, item = sides.checked[table_name], sides.codes[table_name]
    if name is None:
        others = [one for one in side.frame.columns if one not in (*side.keys, side.item_col)]
        name = others[0] if len(others) == 1 else "aspect"
    series = column(side.frame, name, table_name)
    if side.table is not None and side.table.row is not None:
        series = series.take(side.table.row)
    aspect, labels = pd.factorize(check_labels(series, f"{table_name}[{name!r}]"))
    if (aspect < 0).any():
        raise DataError(f"{table_name}[{name!r}] has {(aspect < 0).sum():,} null values")
    user, list_user = sides.users[table_name]
    assert not isinstance(list_user, IdTypeError)
    n_aspects = max(len(labels), 1)
    user = np.zeros(len(aspect), np.int64) if user is None else user.astype(np.int64)
    key = user * sides.n_items + item
    entry = np.unique(np.stack([key, aspect]), axis=1) if len(key) else np.zeros((2, 0), np.int64)
    n_users = (
        int(max(user.max(initial=0), -1 if list_user is None else list_user.max(initial=-1))) + 1
    )
    own = pd.unique(entry[0] // sides.n_items * n_aspects + entry[1]) // n_aspects
    n_of_user = np.bincount(own, minlength=n_users)
    return Aspects(
        entry[0],
        entry[1],
        n_aspects,
        list_user,
        n_of_user,
        sides.n_items,
        pd.Series(labels, name=name),
    )


@dataclass(frozen=True)
class SideTable:
    """The record of one side table.

    about : what messages say after `name=` · hint : its type for a type checker (a name in
    `inputs.constraints`) · kind, meaning : its type and its meaning for docstrings · check : the
    function that checks its columns and ids · codes : the function that makes what kernels read as
    `lists.sides.name` · flag : help text of the command's flag · usage : what the flag takes ·
    frame : returns the same data in a form that can be read more than once · name : its argument.
    """

    about: str
    hint: str
    kind: str
    meaning: str
    check: Callable[[str, Any, Options, CheckedSides], CheckedSide]
    codes: Callable[[Sides, str], Any]
    flag: str
    usage: str = "FILE"
    frame: Callable[[Any, Options, str], Any] = lambda data, options, name: as_frame(
        data, name, options.user_col, options.item_col
    )
    name: str = ""

    @property
    def argument(self) -> str:
        """The argument and what it is, for messages."""
        return f"⟦+{self.name}=⟧ ({self.about})"


def _ids(data: Any, options: Options, name: str) -> pd.DataFrame:
    return read_catalogue(data, options.item_col, name)[0]


def _features(data: Any, options: Options, name: str) -> Any:
    """Return features in a form that can be read more than once. Only a stream has to be converted
    for that."""
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, pd.DataFrame | pd.Series):
        return as_frame(data, name)
    return data


ROWS_EXPECTED = "DataFrame, mapping or Arrow stream"


class SideTableArguments(TypedDict, total=False):
    """The side tables as keyword arguments, each with its record."""

    items: Annotated[
        Any,
        SideTable(
            about="the catalogue: one row per item",
            hint="Ids",
            kind="DataFrame, list, Series or Index",
            meaning="Catalogue: all items that could be recommended, one row each; with "
            "`value_col` also their values.",
            check=checked_catalogue,
            codes=catalogue_codes,
            flag="catalogue: one row per item",
            frame=_ids,
        ),
    ]
    log: Annotated[
        Any,
        SideTable(
            about="past interactions: one row per user and item",
            hint="Rows",
            kind=ROWS_EXPECTED,
            meaning="Past interactions: one row per (user, item), with those columns of the list "
            "key that it has.",
            check=checked_keyed,
            codes=log_codes,
            flag="past interactions: rows of user and item",
        ),
    ]
    aspects: Annotated[
        Any,
        SideTable(
            about="user -> list of item sets, or a frame with the columns aspect and item",
            hint="Rows",
            kind="mapping or DataFrame",
            meaning="User -> list of item sets; or rows of (user, aspect, item); or of (aspect, "
            "item), for all users.",
            check=checked_aspects,
            codes=aspects_codes,
            flag="aspects of items, as rows of aspect and item, with a user where they differ by "
            "user",
            frame=lambda data, options, _: aspects_frame(data, options),
        ),
    ]
    features: Annotated[
        Any,
        SideTable(
            about="columns of ⟦items=⟧, or a frame indexed by item",
            hint="Features",
            kind="str, list of str, DataFrame, Series, mapping or callable",
            meaning="Columns of `items`, or a frame indexed by item. Columns hold numbers, lists "
            "of numbers,\n    categories, `A|B` strings or lists of categories. A callable "
            "takes two arrays of positions in `items` and returns\n    the similarities of "
            "these pairs.",
            check=checked_features,
            codes=features_codes,
            flag="what items are compared by: a file with a row per item, or columns of --items",
            usage="FILE or COLUMN ...",
            frame=_features,
        ),
    ]
    base: Annotated[
        Any,
        SideTable(
            about="the baseline's recommendations",
            hint="Rows",
            kind=ROWS_EXPECTED,
            meaning="The baseline's recommendations, in the columns of `pred`.",
            check=checked_lists,
            codes=Sides.needed,  # ranked where the lists of `pred` are, if it was given
            flag="recommendations of a baseline, in the columns of --pred",
        ),
    ]
    popular: Annotated[
        Any,
        SideTable(
            about="items that everybody knows",
            hint="Ids",
            kind="list, Series, Index or DataFrame",
            meaning="Items that everybody knows.",
            check=checked_ids,
            codes=marked_codes,
            flag="items that everybody knows: one row per item",
            frame=_ids,
        ),
    ]
    exclude: Annotated[
        Any,
        SideTable(
            about="rows of user and item to leave out",
            hint="Rows",
            kind=ROWS_EXPECTED,
            meaning="Rows of (user, item), such as what users had before, with those columns of "
            "the list key that it has.\n"
            "    The rows of `pred` and `true` with such a pair are left out before lists are "
            "ranked, as if they were not\n"
            '    given. `spec["counts"]` has their numbers.',
            check=checked_pairs,
            codes=marked_codes,
            flag="rows of user and item to leave out of --true and --pred, such as what users had "
            "before",
        ),
    ]


SIDE_TABLES: dict[str, SideTable] = {
    name: replace(annotated.__metadata__[0], name=name)
    for name, annotated in get_type_hints(SideTableArguments, include_extras=True).items()
}

# What each side table is, for messages.
SIDES = {name: one.argument for name, one in SIDE_TABLES.items()}


def as_frames(given: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """Return the same tables in a form that can be read more than once."""
    return {name: SIDE_TABLES[name].frame(data, options, name) for name, data in given.items()}


def read_sides(given: Mapping[str, Any], options: Options) -> CheckedSides:
    """Check the columns and ids of the side tables that were given."""
    checked = CheckedSides()
    for name, one in SIDE_TABLES.items():
        if name in given:
            checked[name] = one.check(name, given[name], options, checked)
    return checked

"""The side tables of one call: checked at the door, and as codes. What several metrics need is
computed once.

Contract: to read a table that was not given raises an OptionError that names the argument. The
aspects say what a user may want of an item, and the baseline is another recommender's lists for the
same keys.

Each function with `checked_` in its name checks the columns and ids of some side tables. It takes
the name of a table, its rows, the options and the tables before it. Functions with `_codes` in
their name make the codes of a table. `SIDE_TABLES` says which table has which.

Everything that lists the side tables follows `SIDE_TABLES` and its order: the arguments of
`evaluate`, of its engines and of metrics, their docstrings, the needs of a metric, the spec, and
the flags of the command. To add a side table, add a line to `SideTableArguments`. CONTRIBUTING.md
has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Annotated, Any, TypedDict, get_type_hints

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame, Series

from ...errors import ColumnError, DataError, IdTypeError, OptionError
from ...inputs.codes import IdCodes, encode_keys, known_ids
from ...inputs.frames import as_frame, column, id_frame, read_frame
from ...inputs.ids import IdColumn, check_labels, read_ids
from ...inputs.options import ByName, Options, as_columns
from ...inputs.sorting import flags_at
from ...inputs.true_and_pred import ReadRows, order_source, read_pred, read_rows
from ..list_keys import KeyColumns
from ..overlap import samples_of
from ..ranked import BaseLists
from .catalogue import Aspects, Catalogue, Likeness, LogCodes, Similarity, unique_rows
from .digest import DescribedSide, described

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

    frame: DataFrame
    item: IdColumn | None
    item_col: str = ""
    table: ReadRows | None = None
    keys: tuple[str, ...] = ()
    similarity: Callable[..., Any] | None = None

    @property
    def columns(self) -> list[Series]:
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
        there = [self[one] for one in IN_LISTS if one in self and name in self[one].keys]
        return [side.table.keys[side.keys.index(name)] for side in there if side.table is not None]

    @property
    def samples(self) -> dict[str, str]:
        """Two ids of each table, for messages."""
        found: dict[str, str] = {}
        for name, ids in self.item_ids.items():
            table = self[name].table
            found |= samples_of(name, [] if table is None else table.keys, ids)
        return found

    def described(self) -> dict[str, DescribedSide]:
        """Return each table, by its role, as `spec` records it. A similarity that is the caller's
        own function has no columns.

        The order of rows counts for the positions that such a function takes, and for lists of a
        baseline without scores or ranks.
        """
        by_row = {"items"} if any(side.similarity is not None for side in self.values()) else set()
        found: dict[str, DescribedSide] = {}
        for name, side in self.items():
            if (own := side.similarity) is not None:
                digest = str(getattr(own, "__name__", type(own).__name__))
                found[name] = {"columns": [], "rows": None, "digest": digest}
                continue
            of_row = name == "base" and side.table is not None and side.table.number is None
            found[name] = described(side.columns, of_row or name in by_row)
        return found


def checked_items(
    name: str, frame: DataFrame, options: Options, _: CheckedSides, only_ids: bool = False
) -> CheckedSide:
    """Check a table with one row per item, of which `only_ids` may count."""
    items = known_ids(frame, name, options.item_col)
    return CheckedSide(frame[[options.item_col]] if only_ids else frame, items)


def checked_lists(name: str, frame: DataFrame, options: Options, _: CheckedSides) -> CheckedSide:
    """Check recommended lists, with the columns of `pred`."""
    alone = options.updated(by=None)
    keys = tuple(options.list_key)
    table = read_pred(frame, order_source(frame, alone), alone, name)
    if n := frame[[*keys, options.item_col]].dropna().duplicated().sum():
        table.counts[f"{name}_duplicates"] = int(n)
    return CheckedSide(frame, table.item, options.item_col, table, keys)


def checked_keyed(
    name: str, frame: DataFrame, options: Options, _: CheckedSides, needs_user: bool = True
) -> CheckedSide:
    """Check rows of users and items.

    The lists may be of sessions while a log knows only users, so only the key columns that it has
    must match.
    """
    names = options.list_key
    have = tuple(one for one in names if one in frame.columns)
    if not have and needs_user:
        column(frame, names[0], name)  # raises an error that names the columns there are
    table = read_rows(frame, name, options.updated(user_col=have))
    return CheckedSide(frame, table.item, options.item_col, table, have)


def checked_pairs(
    name: str, frame: DataFrame, options: Options, checked: CheckedSides
) -> CheckedSide:
    """Check rows of users and items of which nothing else counts, and count them."""
    side = checked_keyed(name, frame, options, checked)
    assert side.table is not None
    side.table.counts[f"{name}_rows"] = len(side.table)
    names = (*side.keys, options.item_col)
    return replace(side, frame=DataFrame({one: frame[one] for one in names}, copy=False))


def _is_collection(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes)


def aspects_frame(data: Any, name: str, options: Options) -> DataFrame:
    """Return aspects as rows of (user, aspect, item)."""
    user_cols = options.list_key
    item_col = options.item_col
    if not isinstance(data, Mapping):
        return read_frame(data, name, options)
    if len(user_cols) > 1:
        raise ColumnError(
            f"aspects is a mapping, which has one key column, but ⟦user_col={user_cols!r}⟧"
        )
    for user, sets in data.items():
        if not (_is_collection(sets) and all(map(_is_collection, sets))):
            raise DataError(
                f"{name}[{user!r}] is {sets!r}; expected a list of sets of items, one per aspect"
            )
    rows = [
        (user, number, item)
        for user, sets in data.items()
        for number, items in enumerate(sets)
        for item in items
    ]
    columns = [user_cols[0], "aspect", item_col]
    frame = DataFrame(rows, columns=columns, dtype=None if rows else object)
    return frame.astype({"aspect": "int64"})


def checked_features(name: str, data: Any, options: Options, checked: CheckedSides) -> CheckedSide:
    """Check what items are compared by: columns of `items`, a frame with a row per item, or a
    function of positions.

    Without features= no column of `items` is a feature. To take all of them would compare items by
    price and by title.
    """
    item_col = options.item_col
    items = checked.get("items")
    names = as_columns(data) if isinstance(data, str | list | tuple) else [data]
    if callable(data) or all(isinstance(one, str) for one in names):
        if items is None:
            positions = "=⟧ is a function of positions in"
            of = positions if callable(data) else f"={data!r}⟧ names columns of"
            raise OptionError(f"⟦features{of} ⟦+items=⟧, which is not given")
        if callable(data):
            return CheckedSide(items.frame.iloc[:, :0], None, similarity=data)
        labels, frame, role, ids = items.frame[item_col], items.frame, "items", None
    else:
        if isinstance(data, Mapping):
            data = Series(list(data.values()), index=list(data))
        frame = data.to_frame("feature") if isinstance(data, Series) else data
        frame = frame if isinstance(frame, DataFrame) else as_frame(frame, name)
        labels = frame.get(item_col)
        where = f"features[{item_col!r}]"
        role = name
        if labels is None:  # a frame indexed by item; only here an index is read
            labels = Series(frame.index, name=item_col)
            where = "features.index"
        else:
            labels = column(frame, item_col, name)
        ids = read_ids(labels, where)
        if ids.null is not None:
            raise DataError(f"{where} has {ids.null.sum():,} null ids")
        names = [one for one in frame.columns if one != item_col]
    columns = [labels, *(column(frame, one, role) for one in names)]  # whatever their index
    return CheckedSide(pd.concat([one.reset_index(drop=True) for one in columns], axis=1), ids)


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
    features: Callable[[str | Similarity, str], Likeness]
    popular: ndarray
    base: BaseLists

    def __init__(
        self,
        checked: CheckedSides,
        codes: dict[str, ndarray],
        items: IdCodes,
        keys: KeyColumns | None,
        base: BaseLists | None,
    ) -> None:
        """Take the checked tables, the `codes` of the item column of each, the `keys` of the lists,
        and `base` lists.

        `keys` is None where there are no lists.
        """
        self.checked, self.codes = checked, codes
        self.n_items, self.item_rank = items.n, items.rank
        self.users = {
            name: self._match_users(name, side.keys, side.table, keys)
            for name, side in checked.items()
            if name not in IN_LISTS and side.table is not None
        }
        self._made: dict[str, Any] = {} if base is None else {"base": base}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in SIDE_TABLES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name not in self._made:
            self._made[name] = SIDE_TABLES[name].codes(self, name)
        return self._made[name]

    def _match_users(
        self, name: str, names: tuple[str, ...], table: ReadRows, keys: KeyColumns | None
    ) -> tuple[ndarray | None, ndarray | IdTypeError | None]:
        """Return the user code of each row of a side table, and of each list (-1: not in the
        table).

        Both are None for a table without a user column.
        """
        if not names:
            return None, None
        if keys is None:
            return encode_keys([table.keys])[0][0].all(), np.empty(0, np.int64)
        ids = [read_ids(Series(keys[one]), f"the lists' {one!r}") for one in names]
        try:
            (lists, rows), n = encode_keys([ids, table.keys])
        except IdTypeError as error:
            if name != "log":
                raise
            return encode_keys([table.keys])[0][0].all(), error
        there = flags_at(rows.all(), n)
        return rows.all(), np.where(there[lists.all()], lists.all(), -1)

    def needed(self, name: str) -> ndarray:
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
            if isinstance(one, ndarray)
        }

    def has(self, name: str) -> bool:
        return name in self.codes


def log_codes(sides: Sides, name: str) -> LogCodes:
    """Return past interactions."""
    item, (user, list_user) = sides.needed(name), sides.users[name]
    assert user is not None
    assert list_user is not None
    return LogCodes(user, item, list_user, sides.n_items, sides.item_rank)


def features_codes(sides: Sides, name: str) -> Callable[[str | Similarity, str], Likeness]:
    """Return a function of a kind of similarity and a separator that says how alike items are; the
    caller's own function of positions in the catalogue stands for every name."""
    side = sides.checked.get(name)
    if name in sides.codes:
        row_of = unique_rows(sides.codes[name], sides.n_items, name)
    else:
        row_of = sides.items.row_of if sides.has("items") else sides.needed(name)
    columns, function = ([], None) if side is None else (side.columns[1:], side.similarity)

    @cache
    def likeness(kind: str | Similarity, separator: str) -> Likeness:
        own = kind if callable(kind) else function or kind
        return Likeness(row_of, columns, own, separator)

    return likeness


def marked_codes(sides: Sides, name: str) -> ndarray:
    """Return whether each item code is one of the items of a table."""
    return flags_at(sides.needed(name), sides.n_items)


def aspects_codes(sides: Sides, table: str) -> Callable[..., Aspects]:
    """Return a function of the name of the column of aspects; by default the only further column,
    else "aspect"."""
    item = sides.needed(table)

    @cache
    def aspects(name: str | None = None) -> Aspects:
        side = sides.checked[table]
        if name is None:
            others = [one for one in side.frame.columns if one not in (*side.keys, side.item_col)]
            name = others[0] if len(others) == 1 else "aspect"
        series = column(side.frame, name, table)
        if side.table is not None and side.table.row is not None:
            series = series.take(side.table.row)
        aspect, labels = pd.factorize(check_labels(series, f"{table}[{name!r}]"))
        if (aspect < 0).any():
            raise DataError(f"{table}[{name!r}] has {(aspect < 0).sum():,} null values")
        user, list_user = sides.users[table]
        assert not isinstance(list_user, IdTypeError)
        n_items = sides.n_items
        n_aspects = max(len(labels), 1)
        user = np.zeros(len(aspect), np.int64) if user is None else user.astype(np.int64)
        pairs = np.stack([user * n_items + item, aspect])
        key, aspect = np.unique(pairs, axis=1) if len(aspect) else np.zeros((2, 0), np.int64)
        last = -1 if list_user is None else list_user.max(initial=-1)
        n_users = int(max(user.max(initial=0), last)) + 1
        own = pd.unique(key // n_items * n_aspects + aspect) // n_aspects
        n_of_user = np.bincount(own, minlength=n_users)
        named = Series(labels, name=name)
        return Aspects(key, aspect, n_aspects, list_user, n_of_user, n_items, named)

    return aspects


@dataclass(frozen=True)
class SideTable:
    """The record of one side table.

    about : what messages say after `name=` · hint : its type for a type checker (a name in
    `inputs.constraints`) · kind, meaning : its type and its meaning for docstrings · check : the
    function that checks its columns and ids · codes : the function that makes what kernels read as
    `lists.sides.name` · flag : help text of the command's flag · usage : what the flag takes ·
    frame : returns the data in a form that can be read more than once, which `check` takes · name :
    its argument.
    """

    about: str
    hint: str
    kind: str
    meaning: str
    check: Callable[[str, Any, Options, CheckedSides], CheckedSide]
    codes: Callable[[Sides, str], Any]
    flag: str
    usage: str = "FILE"
    frame: Callable[[Any, str, Options], Any] = read_frame
    name: str = ""

    @property
    def argument(self) -> str:
        """The argument and what it is, for messages."""
        return f"⟦+{self.name}=⟧ ({self.about})"


def _ids(data: Any, name: str, options: Options) -> DataFrame:
    """Return a frame with one row per item, or its ids as a list, array, Series or Index."""
    return id_frame(data, name, [options.item_col])


def _features(data: Any, name: str, options: Options) -> Any:
    """Return features as they are, but for a stream, which can be read once."""
    of_pandas = isinstance(data, DataFrame | Series)
    return data if of_pandas or not hasattr(data, "__arrow_c_stream__") else as_frame(data, name)


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
            check=checked_items,
            codes=lambda sides, name: Catalogue(
                sides.checked[name].frame, sides.needed(name), sides.n_items
            ),
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
            check=partial(checked_keyed, needs_user=False),
            codes=aspects_codes,
            flag="aspects of items, as rows of aspect and item, with a user where they differ by "
            "user",
            frame=aspects_frame,
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
            check=partial(checked_items, only_ids=True),
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


def as_frames(given: ByName, options: Options) -> dict[str, Any]:
    """Return the same tables in a form that can be read more than once."""
    return {name: SIDE_TABLES[name].frame(data, name, options) for name, data in given.items()}


def read_sides(given: ByName, options: Options) -> CheckedSides:
    """Check the columns and ids of the side tables that were given."""
    checked = CheckedSides()
    for name, one in SIDE_TABLES.items():
        if name in given:
            checked[name] = one.check(name, one.frame(given[name], name, options), options, checked)
    return checked

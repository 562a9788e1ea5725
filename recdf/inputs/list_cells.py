"""Rows that hold all items of a list: in a cell with a list, in one text ("1 2 3"), or in columns
top1, top2, ...

Contract: such rows become rows of one item each, in the order of the list, column by column and
without Python objects unless the cells are such. A list that is null or empty gives no row. What
stands in other lists of a row goes along, and what stands once in a row is repeated. Sparse
matrices of SciPy, and arrays with the k best items of each user, become such rows too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy import ndarray
from pandas import DataFrame, Series
from pyarrow import ChunkedArray, Table

from ..errors import (
    ColumnError,
    DataError,
    IdTypeError,
    OrderWarning,
    closest,
    examples,
    kind_of,
    warn_user,
)
from .ids import TEXTS, IdColumn, as_arrow, read_ids, take_rows
from .options import Columns, as_columns
from .sorting import run_of

LISTS = (list, tuple, ndarray, Set)
ORDERS = ("score", "rank")  # what orders `pred` by default
PLAIN_INTEGER = "^(0|-?[1-9][0-9]{0,17})$"  # as it is plainly written
ITEM_SEPARATORS = (",", "|", ";", " ")  # of items in one text, as files have them
TEXTS_SEEN = 200  # texts that are looked at

FlatLists = tuple[ndarray, Series]  # the number of items of each row, and the items of all rows


def is_list(kind: Any) -> bool:
    """Tell whether this is one of the types of lists that Arrow has."""
    return str(kind).startswith(
        ("list<", "large_list<", "fixed_size_list<", "list_view<", "large_list_view<")
    )


@dataclass(frozen=True)
class ItemLists:
    """How a frame has its items.

    sep : what separates items in one text · wide : columns of items, best first · integers : texts
    become integers if all of them are written as integers · orders : what orders `pred`, which one
    number for a whole list cannot do.
    """

    role: str
    item_col: str
    sep: str | None = None
    wide: tuple[str, ...] = ()
    integers: bool = False
    orders: tuple[Any, ...] = ORDERS

    def names(self, long: Iterable[str]) -> list[str]:
        """Return the columns to read for columns of the long frame."""
        return [
            one
            for name in long
            for one in (self.wide if self.wide and name == self.item_col else [name])
        ]

    def hold_lists(self, schema: pa.Schema) -> bool:
        """Tell from the types alone whether a row may hold several items."""
        in_cells = self.item_col in schema.names and is_list(schema.field(self.item_col).type)
        return bool(self.wide or self.sep or in_cells)

    def table(self, table: Table) -> Table:
        """Return the long table of a table."""
        if not self.hold_lists(table.schema):
            return table
        frame = self.frame(table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True))
        return pa.table({name: pa.array(frame[name].array) for name in frame.columns})

    def frame(self, frame: DataFrame) -> DataFrame:
        """Return the long frame of a frame; a frame with one item in a row is returned as it is."""
        read = self._items(frame)
        if read is None:
            return frame
        length = read[0]
        once = {}
        found = {self.item_col: read[1]} if self.wide else {}
        for i, name in enumerate(frame.columns):
            values = frame.iloc[:, i]
            where = f"{self.role}[{name!r}]"
            other = read if name == self.item_col else lists_in(values, where)
            if other is None and name not in self.wide:
                if (
                    name in self.orders
                    and self.role in ("pred", "base")
                    and length.max(initial=0) > 1
                ):
                    raise DataError(
                        f"{where} has one number for a list of items, which does not order them; "
                        f"expected a list as long as that of {self.item_col!r}, or no such column "
                        "if the lists are best first"
                    )
                once[name] = values
                found[name] = take_rows(values, run_of(length))
            elif other is not None:
                if not np.array_equal(other[0], length):
                    row = np.flatnonzero(other[0] != length)[:1]
                    which = ", ".join(
                        f"{key}={one.iloc[row].tolist()[0]!r}"
                        for key, one in list(once.items())[:2]
                    )
                    raise DataError(
                        f"{self.role}: the row with {which or row[0]} has {length[row[0]]:,} "
                        f"values in {self.item_col!r} and {other[0][row[0]]:,} in {name!r}; "
                        "expected lists of one length in a row"
                    )
                # Fields, of which that of the name or the first one is the item.
                kind = getattr(other[1].dtype, "pyarrow_dtype", pa.null())
                fields = [one.name for one in kind] if pa.types.is_struct(kind) else []
                item = name if name in fields else fields[0] if fields else name
                array = as_arrow(other[1]) if fields else None
                found |= {
                    name if one == item else one: _series(pc.struct_field(array, one), other[1])
                    for one in fields
                } or {name: other[1]}
        long = DataFrame(found, copy=False)
        long.index.name = frame.index.names[0]  # a message names it where this column is missing
        return long

    def _items(self, frame: DataFrame) -> FlatLists | None:
        """Return how many items each row has, and the items of all rows; None if each row has
        one."""
        if self.wide:
            values: Any = pd.concat([frame[name] for name in self.wide], ignore_index=True)
            shape = len(self.wide), len(frame)
            there = values.notna().to_numpy(dtype=bool).reshape(shape).T
            return there.sum(axis=1), take_rows(
                values, np.arange(len(values)).reshape(shape).T[there]
            )
        values = frame.get(self.item_col)
        if self.sep is None or values is None:
            return lists_in(values, f"{self.role}[{self.item_col!r}]", ordered=self.role != "true")
        length, items = split_texts(as_arrow(values), self.sep)
        if (
            stuck := items.filter(pc.match_substring_regex(items, "[^,;|][,;|]$"))
            .slice(0, 1)
            .to_pylist()
        ):
            said = (
                f"items_sep={self.sep!r} leaves {stuck[0]!r} as an item; pass "
                f"⟦+items_sep={stuck[0][-1]!r}⟧"
            )
            raise DataError(f"{self.role}[{self.item_col!r}]: {said}")
        if (
            self.integers
            and pc.all(pc.match_substring_regex(items, PLAIN_INTEGER)).as_py() is not False
        ):
            items = items.cast(pa.int64())
        return length, _series(items, values)


def item_lists(
    frames: Mapping[str, DataFrame],
    item_col: str,
    sep: str | None,
    wide: Columns | None,
    orders: Iterable[Any],
) -> dict[str, ItemLists]:
    """Find out how frames have their items.

    `sep` and `wide` are the options `items_sep` and `wide`, and `orders` are columns that order
    `pred`.
    """
    found = {}
    integers = False
    for role, frame in frames.items():
        columns = (
            _wide_columns(frame, wide, item_col) if wide is not None and role == "pred" else ()
        )
        texts = sep is not None and _kind(frame.get(item_col)) == "string"
        found[role] = ItemLists(
            role, item_col, sep if texts else None, columns, orders=(*ORDERS, *orders)
        )
        integers |= (
            sep is not None
            and not texts
            and _kind(found[role].frame(frame.iloc[:TEXTS_SEEN]).get(item_col)) == "integer"
        )
    return {role: replace(one, integers=integers) for role, one in found.items()}


def _kind(values: Series | None) -> str | None:
    """Return the kind of the first ids of a column; None if they are no ids, for which the call
    raises an error."""
    try:
        return None if values is None else read_ids(values.iloc[:TEXTS_SEEN], "ids").kind
    except IdTypeError:
        return None


def _wide_columns(frame: DataFrame, wide: Columns, item_col: str) -> tuple[str, ...]:
    """Return the columns of items, best first; a text is what their names begin with, before a
    number."""
    if item_col in frame.columns:
        raise ColumnError(
            f"pred has a column {item_col!r} beside the columns of ⟦wide={wide!r}⟧; drop one of "
            "them"
        )
    columns = list(frame.columns)
    if isinstance(wide, str):
        found = {
            name: re.fullmatch(re.escape(wide) + r"[ _-]?(\d+)", str(name)) for name in columns
        }
        number = {name: int(match[1]) for name, match in found.items() if match}
        wide = sorted(number, key=lambda name: number[name]) or [wide]
    for name in (wide := as_columns(wide)):
        if columns.count(name) != 1:
            has = f"{', '.join(map(repr, columns[:20]))}{closest(name, columns)}"
            raise ColumnError(
                f"pred has {columns.count(name) or 'no'} columns {name!r} for ⟦wide=⟧; it has {has}"
            )
    return tuple(wide)


def lists_in(values: Any, where: str, ordered: bool = False) -> FlatLists | None:
    """Return the lists in a column; None if it has none. A set has no order, and cannot be one that
    is `ordered`."""
    if not isinstance(values, Series):  # there is no such column, or there are two
        return None
    if is_list(getattr(values.dtype, "pyarrow_dtype", "")):
        return _flat(as_arrow(values), values, where)
    cells = values.to_numpy() if values.dtype == object else np.empty(0)
    filled = (one for one in cells if isinstance(one, LISTS) or not pd.isna(one))
    if not isinstance(next(filled, None), LISTS):
        return None
    kinds = set(map(type, cells))
    if ordered and any(issubclass(kind, Set) for kind in kinds):
        raise IdTypeError(
            f"{where} holds sets, which have no order; give lists, best item first", column=where
        )
    try:
        return _flat(pa.array(cells, from_pandas=True), values, where)
    except (pa.ArrowException, ValueError, OverflowError):
        if tuple in kinds:  # an id of several parts, such as ("shop", 7)
            return None
    if odd := [one for one in filled if not isinstance(one, LISTS)]:
        raise IdTypeError(
            f"{where} holds lists, and {odd[0]!r}, which is none; expected a list in each row",
            column=where,
        )
    # Items that Arrow has no column for.
    rows = [one if isinstance(one, LISTS) else () for one in cells]
    items = list(chain.from_iterable(rows))
    return np.fromiter(map(len, rows), np.int64), Series(items, dtype=object)


def _flat(column: Any, like: Series, where: str) -> FlatLists:
    """Return the lists of an Arrow column, with items in the kind of dtype that `like` has."""
    items = pc.list_flatten(column)
    if is_list(items.type):
        raise IdTypeError(
            f"{where} holds lists of lists; expected the items of one list in a row", column=where
        )
    return _lengths(column), _series(items, like)


def _lengths(lists: Any) -> ndarray:
    """Return the number of values of each list; a null has none."""
    return pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)


def _series(items: Any, like: Series) -> Series:
    """Return values as a column: in a dtype of Arrow if `like` has one or if they have fields, else
    one of pandas."""
    of_arrow = isinstance(like.dtype, pd.ArrowDtype) or pa.types.is_struct(items.type)
    return items.to_pandas(
        types_mapper=pd.ArrowDtype if of_arrow else None, integer_object_nulls=True
    )


def split_texts(texts: Any, sep: str) -> tuple[ndarray, Any]:
    """Split texts of items: return how many items each has, and all of them. A blank stands for any
    white space.

    Texts such as "['a', 'b']", as lists are written to CSV files, lose their brackets and quotes.
    Nothing between two separators is no item.
    """
    texts = pc.utf8_trim_whitespace(texts.cast(pa.large_string()))
    written = pc.match_substring_regex(texts, r"(?s)^[\[(].*[\])]$")
    texts = pc.if_else(written, pc.utf8_slice_codeunits(texts, 1, -1), texts)
    parts = pc.split_pattern(texts, sep) if sep.strip() else pc.utf8_split_whitespace(texts)
    items = pc.utf8_trim(
        pc.list_flatten(parts), " \t\r\n'\"" if pc.any(written).as_py() else " \t\r\n"
    )
    some = pc.not_equal(items, "").to_numpy(zero_copy_only=False)
    row = run_of(_lengths(parts))
    return np.bincount(row[some], minlength=len(parts)), items.filter(pa.array(some))


def refuse_joined(true: IdColumn, pred: IdColumn, keys: Sequence[IdColumn]) -> None:
    """Raise if texts hold several items each. `keys` are the columns that tell the lists of `pred`
    apart, or none.

    Without keys, texts are not compared with the parts of other texts, since few rows may have no
    id in common.

    Where the other frame has such texts among its ids, or no part of them, they are ids with blanks
    or commas.
    """
    for own, other in ((pred, true), (true, pred)):
        texts = _some_texts(own)
        for sep in ITEM_SEPARATORS:
            having = [
                text for text in texts if len(text.strip().split(None if sep == " " else sep)) > 1
            ]
            if not having or 2 * len(having) < len(texts):
                continue
            parts = [split_texts(pa.array([text]), sep)[1].to_pylist() for text in having]
            # Those of the texts that are ids of the other column, or written as its integers.
            leaf = (other.dictionary or other).values
            known = set()
            if not isinstance(leaf, ChunkedArray) and leaf.dtype.kind in "iu":
                leaf = pa.chunked_array([leaf]).cast(pa.large_string())
            if isinstance(leaf, ChunkedArray) and leaf.type in TEXTS:
                sought = pa.array(list({*having, *chain(*parts)}), leaf.type)
                known = {*leaf.filter(pc.is_in(leaf, sought)).unique().to_pylist()}
            shown = [ids.show(np.arange(min(len(ids), TEXTS_SEEN))) for ids in keys]
            if not known and len(set(zip(*shown, strict=True))) == len(
                shown[0] if shown else [0]
            ):  # a row per list
                known = set(
                    split_texts(pa.array(_some_texts(other), pa.string()), sep)[1].to_pylist()
                )
            hit = [i for i, items in enumerate(parts) if not known.isdisjoint(items)]
            if known.isdisjoint(having) and 2 * len(hit) >= len(having):
                items = ", ".join(map(repr, parts[hit[0]][:5])) + ", ..." * (len(parts[hit[0]]) > 5)
                raise DataError(
                    f"{own.where} holds several items in one text, which are in {other.where}: "
                    f"{having[hit[0]][:60]!r} → {items}; pass ⟦+items_sep={sep!r}⟧ to split them, "
                    "best item first",
                    column=own.where,
                )


def _some_texts(ids: IdColumn) -> list[str]:
    """Return some texts of a column; none if it holds other ids."""
    if ids.kind != "string":
        return []
    some = np.linspace(0, max(len(ids) - 1, 0), min(TEXTS_SEEN, len(ids)), dtype=np.int64)
    return [one for one in ids.show(some) if isinstance(one, str) and one.strip()]


def from_sparse(
    matrix: Any,
    *,
    users: Any = None,
    items: Any = None,
    user_col: str = "user_id",
    item_col: str = "item_id",
    value_name: str | None = None,
) -> DataFrame:
    """Turn a sparse matrix of users by items into a long frame.

    Parameters
    ----------
    matrix : sparse array or matrix of SciPy
        A row per user and a column per item, in any format.
    users, items : list, array, Series or Index, optional
        Labels of the rows and of the columns, each once. Default: their positions.
    user_col, item_col : str
        Names of the two id columns.
    value_name : str, optional
        Name of the column of the numbers. By default they stand in two columns, `relevance` and
        `score`, so that the frame can be `true` as well as `pred`.

    Returns
    -------
    DataFrame
        One row per stored entry, user by user. An entry that is stored as 0 is a row too: it is
        judged and not relevant in `true`, and recommended with score 0 in `pred`. Entries that
        stand twice are added, as SciPy does. A user without entries has no row.

    Raises
    ------
    TypeError
        If it is no sparse matrix, or has no two dimensions.
    DataError
        If labels stand twice, or if there are not as many as rows or columns.

    Examples
    --------
    >>> import recdf as rd
    >>> from scipy.sparse import csr_array
    >>> scores = csr_array([[0, 0.9, 0.4], [0.7, 0, 0]])
    >>> rd.logs.from_sparse(
    ...     scores, users=["ann", "bob"], items=["tea", "jam", "mug"], value_name="score"
    ... )
      user_id item_id  score
    0     ann     jam    0.9
    1     ann     mug    0.4
    2     bob     tea    0.7
    """
    if not hasattr(matrix, "tocsr") or matrix.ndim != 2:
        raise TypeError(
            f"matrix is {kind_of(matrix)}; expected a sparse matrix of SciPy with a row per user"
        )
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    found = {user_col: _labelled(run_of(np.diff(rows.indptr)), users, "users", rows.shape[0])}
    found[item_col] = _labelled(rows.indices.astype(np.int64), items, "items", rows.shape[1])
    number = rows.data.astype(np.float64) if rows.data.dtype == bool else rows.data
    return DataFrame(
        found | dict.fromkeys([value_name] if value_name else ["relevance", "score"], number)
    )


def from_top_k(
    top: Any,
    scores: Any = None,
    *,
    users: Any = None,
    items: Any = None,
    user_col: str = "user_id",
    item_col: str = "item_id",
) -> DataFrame:
    """Turn an array with the best items of each user into a long frame, as `implicit` and Faiss
    give them.

    Parameters
    ----------
    top : array of two dimensions
        A row per user: the positions of its items in `items`, best first, or without `items` the
        item ids themselves. A place that is −1, null or masked holds no item.
    scores : array, optional
        The score of each place; the largest ranks first, whatever the order of the columns.
    users : list, array, Series or Index, optional
        Labels of the rows, each once. Default: their positions.
    items : list, array, Series or Index, optional
        Labels of the items, each once.
    user_col, item_col : str
        Names of the two id columns.

    Returns
    -------
    DataFrame
        One row per place with an item: the ids, and `score`, or without scores `rank` from 1 on,
        which are the numbers of the columns.

    Raises
    ------
    TypeError
        If an array has not two dimensions, or if positions are no integers.
    DataError
        If the shapes differ, a position is outside the labels, or labels stand twice or are too
        many or too few.

    Warns
    -----
    OrderWarning
        If the scores rise along every row, as distances do.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.logs.from_top_k([[2, 0], [1, -1]], users=["ann", "bob"], items=["tea", "jam", "mug"])
      user_id item_id  rank
    0     ann     mug     1
    1     ann     tea     2
    2     bob     jam     1
    """
    top = np.ma.asarray(top)
    if top.ndim != 2:
        raise TypeError(
            f"top has {top.ndim} dimensions; expected two: a row per user, and a column per rank"
        )
    place = np.asarray(top.data)
    there = ~np.ma.getmaskarray(top) & ~pd.isna(top.data)
    if place.dtype.kind in "iu":
        if (bad := there & (place < -1)).any():
            raise DataError(
                f"top holds negative positions ({examples(place[bad])}); only -1 stands for no item"
            )
        there &= place != -1
    elif items is not None or place.dtype.kind not in "OUST":
        raise TypeError(
            f"top holds {place.dtype} values; expected positions of items, which are integers"
        )
    user, rank = np.nonzero(there)
    frame = DataFrame({user_col: _labelled(user, users, "users", len(top))})
    frame[item_col] = _labelled(place[there], items, "items")
    if scores is None:
        return frame.assign(rank=rank + 1)
    score: Any = np.ma.asarray(scores, np.float64).filled(np.nan)
    if score.shape != top.shape:
        raise DataError(
            f"scores have the shape {score.shape}, and top has {top.shape}; expected the same"
        )
    steps = np.diff(np.where(there, score, np.nan), axis=1)
    if (steps > 0).any() and not (steps < 0).any():
        warn_user(
            "scores rise along the rows of top; if they are distances, pass scores=-scores",
            OrderWarning,
        )
    return frame.assign(score=score[there])


def _labelled(places: ndarray, labels: Any, name: str, n: int | None = None) -> Any:
    """Return the labels at some places, or the places if there are none."""
    if labels is None:
        return places
    if isinstance(labels, dict):
        raise TypeError(
            f"{name} is a mapping; expected the labels in a list, in the order of the positions"
        )
    given = Series(labels).reset_index(drop=True)
    needed = places.max(initial=-1) + 1 if n is None else n
    if len(given) < needed or (n is not None and len(given) > n):
        raise DataError(
            f"{name} holds {len(given):,} labels for {needed:,}; expected one for each",
            argument=name,
        )
    if given.duplicated().any():
        raise DataError(
            f"{name} holds labels twice ({examples(given[given.duplicated()])}); expected each once"
        )
    return given.take(places).reset_index(drop=True)

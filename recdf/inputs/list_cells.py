"""Rows that hold all items of a list: in a cell with a list, in one text ("1 2 3"), or in columns top1, top2, ...

Contract: such rows become rows of one item each, in the order of the list, column by column and without Python objects
unless the cells are such. A list that is null or empty gives no row. What stands in other lists of a row goes along, and
what stands once in a row is repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ColumnError, DataError, IdTypeError, closest
from .ids import IdColumn, read_ids, take_rows
from .options import as_columns

LISTS = (list, tuple, np.ndarray, Set)
ORDERS = ("score", "rank")  # what orders `pred` by default, which one number for a whole list cannot do
PLAIN_INTEGER = "^(0|-?[1-9][0-9]{0,17})$"  # an integer as it is plainly written
ITEM_SEPARATORS = (",", "|", ";", " ")  # of items in one text, as files have them
TEXTS_SEEN = 200  # texts that are looked at

# The number of items of each row, and the items of all rows.
FlatLists = tuple[np.ndarray, pd.Series]


def is_list(kind: Any) -> bool:
    """Tell whether this is one of the types of lists that Arrow has."""
    return str(kind).startswith(("list<", "large_list<", "fixed_size_list<", "list_view<", "large_list_view<"))


@dataclass(frozen=True)
class ItemLists:
    """How a frame has its items.

    sep : what separates items in one text · wide : columns of items, best first · integers : texts become integers if
    all of them are written as integers.
    """

    role: str
    item_col: str
    sep: str | None = None
    wide: tuple[str, ...] = ()
    integers: bool = False

    def names(self, long: Iterable[str]) -> list[str]:
        """Return the columns to read for columns of the long frame."""
        return [one for name in long for one in (self.wide if self.wide and name == self.item_col else [name])]

    def hold_lists(self, schema: pa.Schema) -> bool:
        """Tell from the types alone whether a row may hold several items."""
        there = self.item_col in schema.names
        return bool(self.wide or self.sep) or (there and is_list(schema.field(self.item_col).type))

    def table(self, table: pa.Table) -> pa.Table:
        """Return the long table of a table."""
        if not self.hold_lists(table.schema):
            return table
        frame = self.frame(table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True))
        return pa.table({name: pa.array(frame[name].array) for name in frame.columns})

    def frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the long frame of a frame; a frame with one item in a row is returned as it is."""
        read = self._items(frame)
        if read is None:
            return frame
        length, items = read
        found: dict[Any, pd.Series] = {}
        for i, name in enumerate(frame.columns):
            values, where = frame.iloc[:, i], f"{self.role}[{name!r}]"
            other = read if name == self.item_col else _lists_in(values, where)
            if name in self.wide:
                continue
            if other is None:
                if name in ORDERS and self.role in ("pred", "base") and length.max(initial=0) > 1:
                    raise DataError(
                        f"{where} has one number for a list of items, which does not order them; expected a list as "
                        f"long as that of {self.item_col!r}, or no such column if the lists are best first"
                    )
                found[name] = _repeated(values, length)
            elif np.array_equal(other[0], length):
                found |= _columns(name, other[1])
            else:
                self._refuse(frame, name, length, other[0])
        return pd.DataFrame({**found, **({self.item_col: items} if self.wide else {})}, copy=False)

    def _items(self, frame: pd.DataFrame) -> FlatLists | None:
        """Return how many items each row has, and the items of all rows; None if each row has one."""
        if self.wide:
            return _beside([frame[name] for name in self.wide], self.role)
        if self.item_col not in frame.columns or isinstance(frame[self.item_col], pd.DataFrame):
            return None
        values, where = frame[self.item_col], f"{self.role}[{self.item_col!r}]"
        if self.sep is None or not _holds_texts(values):
            return _lists_in(values, where, ordered=self.role != "true")
        length, items = split_texts(_arrow(values), self.sep)
        if self.integers and pc.all(pc.match_substring_regex(items, PLAIN_INTEGER)).as_py() is not False:
            items = items.cast(pa.int64())
        return length, _series(items, values)

    def _refuse(self, frame: pd.DataFrame, name: Any, length: np.ndarray, other: np.ndarray) -> None:
        row = int(np.flatnonzero(other != length)[0])
        plain = [one for one in frame.columns if one != self.item_col and _lists_in(frame[one], "") is None]
        which = ", ".join(f"{one}={frame[one].iloc[[row]].tolist()[0]!r}" for one in plain[:2]) or f"number {row:,}"
        raise DataError(
            f"{self.role}: the row with {which} has {length[row]:,} values in {self.item_col!r} and {other[row]:,} in "
            f"{name!r}; expected lists of one length in a row", column=f"{self.role}[{name!r}]",
        )  # fmt: skip


def long_frame(frame: pd.DataFrame, role: str, item_col: str) -> pd.DataFrame:
    """Return a frame with one item in a row; a frame without lists of items is returned as it is."""
    return ItemLists(role, item_col).frame(frame)


def item_lists(
    frames: Mapping[str, pd.DataFrame], item_col: str, sep: str | None, wide: str | Sequence[str] | None
) -> dict[str, ItemLists]:
    """Find out how frames have their items; `sep` and `wide` are the options `items_sep` and `wide`."""
    found, integers = {}, False
    for role, frame in frames.items():
        texts = sep is not None and item_col in frame.columns and _holds_texts(frame[item_col])
        columns = _wide_columns(frame, wide, item_col) if wide and role == "pred" else ()
        found[role] = ItemLists(role, item_col, sep if texts else None, columns)
        if not texts:
            long = found[role].frame(frame.iloc[:100])
            with suppress(IdTypeError):  # which the call raises
                integers |= item_col in long.columns and read_ids(long[item_col], item_col).kind == "integer"
    return {role: replace(one, integers=integers) for role, one in found.items()}


def _wide_columns(frame: pd.DataFrame, wide: str | Sequence[str], item_col: str) -> tuple[str, ...]:
    """Return the columns of items, best first; a text is what their names begin with, before a number."""
    if item_col in frame.columns:
        raise ColumnError(f"pred has a column {item_col!r} beside the columns of ⟦wide={wide!r}⟧; drop one of them")
    columns = list(frame.columns)
    if isinstance(wide, str):
        number = {name: re.fullmatch(re.escape(wide) + r"[ _-]?(\d+)", str(name)) for name in columns}
        named = sorted((int(match[1]), name) for name, match in number.items() if match)
        wide = [name for _, name in named] or [wide]
    for name in (wide := as_columns(wide)):
        if columns.count(name) != 1:
            has = f"{', '.join(map(repr, columns[:20]))}{closest(str(name), columns)}"
            raise ColumnError(f"pred has {columns.count(name) or 'no'} columns {name!r} for ⟦wide=⟧; it has {has}")
    return tuple(wide)


def _lists_in(values: pd.Series, where: str, ordered: bool = False) -> FlatLists | None:
    """Return the lists in a column; None if it has none. A set has no order, and cannot be one that is `ordered`."""
    if isinstance(values.dtype, pd.ArrowDtype) and is_list(values.dtype.pyarrow_dtype):
        return _flat(_arrow(values), values, where)
    if values.dtype != object or not len(values):
        return None
    cells = values.to_numpy()
    if not isinstance(_first(cells), LISTS):
        return None
    kinds = set(map(type, cells))
    if ordered and any(issubclass(kind, Set) for kind in kinds):
        raise IdTypeError(f"{where} holds sets, which have no order; give lists, best item first", column=where)
    if kinds == {np.ndarray} and len(of := set(map(attrgetter("dtype", "ndim"), cells))) == 1 and 1 in next(iter(of)):
        return np.fromiter(map(len, cells), np.int64, len(cells)), pd.Series(np.concatenate(cells))
    try:
        array = pa.array(cells, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        if tuple in kinds:  # an id of several parts, such as ("shop", 7)
            return None
        rows = [one if isinstance(one, LISTS) else () for one in cells]  # of items that Arrow has no column for
        odd = [one for one in cells if not isinstance(one, LISTS) and not pd.isna(one)]
        if odd:
            words = f"{where} holds lists, and {odd[0]!r}, which is none; expected a list in each row"
            raise IdTypeError(words, column=where) from None
        return np.array(list(map(len, rows))), pd.Series(list(chain.from_iterable(rows)), dtype=object)
    return _flat(array, values, where)


def _flat(column: Any, like: pd.Series, where: str) -> FlatLists | None:
    """Return the lists of an Arrow column, with items in the kind of dtype that `like` has."""
    items = pc.list_flatten(column)
    if is_list(items.type):
        raise IdTypeError(f"{where} holds lists of lists; expected the items of one list in a row", column=where)
    return pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False), _series(items, like)


def _series(items: Any, like: pd.Series | None = None) -> pd.Series:
    """Return values as a column: in a dtype of Arrow if `like` has one or if they have fields, else as pandas has it."""
    if like is None or isinstance(like.dtype, pd.ArrowDtype) or pa.types.is_struct(items.type):
        items = items if isinstance(items, pa.ChunkedArray) else pa.chunked_array([items])
        of_arrow: Any = pd.ArrowDtype(items.type)
        return pd.Series(of_arrow.__from_arrow__(items))
    found: pd.Series = items.to_pandas(integer_object_nulls=True)
    return found


def _arrow(values: pd.Series) -> pa.ChunkedArray:
    array = pa.array(values.array, from_pandas=True)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _columns(name: Any, values: pd.Series) -> dict[Any, pd.Series]:
    """Return the columns in a column: its fields, of which that of its name or the first one is the item, or itself."""
    kind = values.dtype.pyarrow_dtype if isinstance(values.dtype, pd.ArrowDtype) else pa.null()
    if not pa.types.is_struct(kind):
        return {name: values}
    fields = [one.name for one in kind]
    item = name if name in fields else fields[0]
    array = _arrow(values)
    return {name if one == item else one: _series(pc.struct_field(array, one)) for one in fields}


def _repeated(values: pd.Series, length: np.ndarray) -> pd.Series:
    """Return a column with each value repeated so many times."""
    if isinstance(values.dtype, np.dtype):
        return pd.Series(values.to_numpy().repeat(length), dtype=values.dtype)
    if isinstance(values.dtype, pd.ArrowDtype) and values.dtype.kind in "iuf" and not (own := _arrow(values)).null_count:
        return _series(pa.array(own.to_numpy().repeat(length)))
    return take_rows(values, np.repeat(np.arange(len(values)), length))


def _first(cells: Iterable[Any]) -> Any:
    """Return the first cell that is not null."""
    return next((one for one in cells if isinstance(one, LISTS) or not pd.isna(one)), None)


def _holds_texts(values: pd.Series) -> bool:
    """Tell whether a column holds texts."""
    dtype: Any = values.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _holds_texts(pd.Series(dtype.categories))
    if isinstance(dtype, pd.ArrowDtype):
        kind = dtype.pyarrow_dtype
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    return isinstance(dtype, pd.StringDtype) or (dtype == object and isinstance(_first(values.array), str))


def split_texts(texts: Any, sep: str) -> tuple[np.ndarray, Any]:
    """Split texts of items: return how many items each has, and all of them. A blank stands for any white space.

    Texts such as "['a', 'b']", as lists are written to CSV files, lose their brackets and quotes. Nothing between two
    separators is no item.
    """
    texts = pc.utf8_trim_whitespace(texts.cast(pa.large_string()))
    written = pc.match_substring_regex(texts, r"(?s)^[\[(].*[\])]$")
    texts = pc.if_else(written, pc.utf8_slice_codeunits(texts, 1, -1), texts)
    blank = not sep.strip()
    parts = pc.utf8_split_whitespace(texts) if blank else pc.split_pattern(texts, sep)
    length, items = pc.fill_null(pc.list_value_length(parts), 0).to_numpy(zero_copy_only=False), pc.list_flatten(parts)
    items = pc.utf8_trim(items, " \t\r\n'\"" if pc.any(written).as_py() else " \t\r\n")
    some = pc.not_equal(items, "")
    row = np.repeat(np.arange(len(length)), length)[some.to_numpy(zero_copy_only=False)]
    return np.bincount(row, minlength=len(length)), items.filter(some)


def _beside(columns: Sequence[pd.Series], role: str) -> FlatLists:
    """Return the items that stand in columns beside one another, best first; a null is no item."""
    arrays = []
    for values in columns:
        array = _arrow(values)
        array = array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
        if pa.types.is_floating(array.type):  # integers beside nulls
            with suppress(pa.ArrowInvalid):  # which then are no ids
                array = array.cast(pa.int64())
        arrays.append(pa.table({"item": array}))
    try:
        items = pa.concat_tables(arrays, promote_options="permissive")["item"]
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise IdTypeError(f"{role}: the columns of ⟦wide=⟧ hold ids of several types ({error})") from None
    there = items.is_valid().to_numpy(zero_copy_only=False).reshape(len(columns), -1).T
    places = np.arange(there.size).reshape(len(columns), -1).T[there]
    return there.sum(axis=1), take_rows(_series(items), places)


def refuse_joined(true: IdColumn, pred: IdColumn, keys: Sequence[IdColumn]) -> None:
    """Raise if texts hold several items each. `keys` are the columns that tell the lists of `pred` apart.

    Where the other frame has such texts among its ids, or no part of them, they are ids with blanks or commas.
    """
    for own, other in ((pred, true), (true, pred)):
        texts = _some_texts(own)
        for sep in ITEM_SEPARATORS:
            having = [text for text in texts if len(text.strip().split(None if sep == " " else sep)) > 1]
            if not having or 2 * len(having) < len(texts):
                continue
            length, parts = split_texts(pa.array(having), sep)
            row, items = np.repeat(np.arange(len(length)), length), parts.to_pylist()
            known = _held(other, {*having, *items})
            if not known and _rows_differ(keys):
                known = set(split_texts(pa.array(_some_texts(other), pa.string()), sep)[1].to_pylist())
            hit = np.unique(row[[one in known for one in items]])
            if known.isdisjoint(having) and 2 * len(hit) >= len(having):
                shown = [one for at, one in zip(row, items, strict=True) if at == hit[0]]
                raise DataError(
                    f"{own.where} holds several items in one text, which are in {other.where}: "
                    f"{having[hit[0]][:60]!r} → {', '.join(map(repr, shown[:5]))}{', ...' * (len(shown) > 5)}; pass "
                    f"⟦+items_sep={sep!r}⟧ to split them, best item first", column=own.where,
                )  # fmt: skip


def _some_texts(ids: IdColumn) -> list[str]:
    """Return some texts of a column; none if it holds other ids."""
    rows = np.unique(np.linspace(0, max(len(ids) - 1, 0), min(TEXTS_SEEN, len(ids))).astype(np.int64))
    return [one for one in ids.show(rows) if isinstance(one, str) and one.strip()] if ids.kind == "string" else []


def _held(ids: IdColumn, texts: Iterable[str]) -> set[str]:
    """Return those of the texts that are ids of a column, or that are written as its integers."""
    leaf = ids.dictionary or ids
    values = leaf.values if isinstance(leaf.values, pa.ChunkedArray) else pa.array(leaf.values)
    if pa.types.is_integer(values.type):
        wanted = pa.array([int(one) for one in texts if re.fullmatch(PLAIN_INTEGER, one)]).cast(pa.int64())
    elif pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        wanted = pa.array(list(texts), values.type)
    else:
        return set()
    return set(map(str, values.filter(pc.is_in(values, wanted)).unique().to_pylist()))


def _rows_differ(keys: Sequence[IdColumn]) -> bool:
    """Tell whether the first rows are of different lists."""
    shown = [ids.show(np.arange(min(len(ids), TEXTS_SEEN))) for ids in keys]
    return len(set(zip(*shown, strict=True))) == len(shown[0]) if shown else False

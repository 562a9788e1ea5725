"""What items are like: categories from one column, and similarities of items from feature columns.

Contract: a table has one entry per row of the frame that the caller gave, and `row_of` leads from item codes to
rows, -1 for none. Similarities are taken for blocks of lists at a time, never for all items against all items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .errors import DataError, OptionError
from .frames import read_numbers
from .grouping import offsets, spans

if TYPE_CHECKING:  # lists need this module
    from .lists import Lists

# Bytes of the gathered features of one block of lists: about what a core's cache holds.
BLOCK_BYTES = 2**22

Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]


# ------------------------------------------------------------------------------------------ categories


@dataclass(frozen=True)
class Labels:
    """Categories of each row (or item code): `code[start[i]:start[i + 1]]`, positions in `names`."""

    names: pd.Index
    start: np.ndarray
    code: np.ndarray

    @property
    def length(self) -> np.ndarray:
        return np.diff(self.start)

    def of_rows(self, row_of: np.ndarray) -> Labels:
        """The labels by item code."""
        length = np.append(self.length, 0)[row_of]
        entries = spans(np.append(self.start[:-1], 0)[row_of], length)
        return Labels(self.names, offsets(length), self.code[entries])

    def entries(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All categories of some items: the position in `items` and the category of each entry."""
        length = self.length[items]
        return np.repeat(np.arange(len(items)), length), self.code[spans(self.start[:-1][items], length)]


def read_labels(series: pd.Series, where: str, separator: str | None) -> Labels:
    """Categories of a column: plain values, strings that `separator` splits, or lists of values."""
    if _is_nested(series):
        values, length = _flatten(series)
        codes, names = pd.factorize(pd.Series(values))
    else:
        row_code, values = pd.factorize(series)
        kind = pd.api.types.infer_dtype(values, skipna=True)
        if kind == "categorical":
            values = pd.Index(values.astype(values.categories.dtype))
            kind = pd.api.types.infer_dtype(values, skipna=True)
        parts = [[value] for value in values]
        if kind == "string" and separator:
            parts = [[part.strip() for part in value.split(separator) if part.strip()] for value in values]
        part_length = np.fromiter((len(part) for part in parts), np.int64, len(parts))
        part_code, names = pd.factorize(
            pd.Series([one for part in parts for one in part], dtype=None if parts else object)
        )
        length = np.append(part_length, 0)[row_code]
        codes = part_code[spans(np.append(offsets(part_length)[:-1], 0)[row_code], length)]
    if (codes < 0).any():
        raise DataError(f"{where} holds lists with null values")
    return Labels(pd.Index(names), offsets(length), codes)


def _is_nested(series: pd.Series) -> bool:
    """The column holds lists, arrays or sets."""
    present = series.dropna()
    return len(present) > 0 and isinstance(present.iloc[0], list | tuple | set | frozenset | np.ndarray)


def _flatten(series: pd.Series) -> tuple[list[Any], np.ndarray]:
    """All values of a column of lists, and the length of each; a null is an empty list."""
    null = series.isna().to_numpy()
    rows = [[] if gone else list(value) for value, gone in zip(series, null, strict=True)]
    return [one for row in rows for one in row], np.fromiter((len(row) for row in rows), np.int64, len(rows))


# ------------------------------------------------------------------------------------------ similarity


@dataclass
class Features:
    """Feature columns of items, or a similarity of rows of the frame."""

    row_of: np.ndarray
    columns: list[pd.Series]
    function: Similarity | None = None
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)

    def known(self, separator: str) -> np.ndarray:
        """Row of each item code, -1 for an item that has no row or a null in it."""
        if self.function is not None:
            return self.row_of
        return self._once(("known", separator), lambda: self._known(separator))

    def matrix(self, separator: str) -> np.ndarray:
        """Numbers and indicators (rows × features), float64, and below them one row of zeros."""
        return self._once(("matrix", separator), lambda: _below_zeros(self._numbers(separator)[0]))

    def values(self, separator: str) -> np.ndarray:
        """What is equal or not, position by position: numbers, categories as codes."""
        return self._once(("values", separator), lambda: _below_zeros(self._numbers(separator, one_hot=False)[0]))

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def _known(self, separator: str) -> np.ndarray:
        null = self._numbers(separator)[1]
        return np.where((self.row_of >= 0) & ~null[self.row_of], self.row_of, -1)

    def _numbers(self, separator: str, one_hot: bool = True) -> tuple[np.ndarray, np.ndarray]:
        if not self.columns:
            raise OptionError("needs feature columns; features= names none")
        blocks, null = zip(*(_numbers_of(series, separator, one_hot) for series in self.columns), strict=True)
        return np.concatenate(blocks, axis=1), np.logical_or.reduce(null)

    def similar(self, kind: str | Similarity, separator: str) -> tuple[Similarity, int]:
        """A function of two blocks of rows, (lists × a) and (lists × b), to (lists × a × b); and its width in bytes.

        Row -1 is the row of zeros.
        """
        own = self.function if self.function is not None else kind if callable(kind) else None
        if own is not None:
            return _pairs_of(own), 24
        if kind == "hamming":
            values = self.values(separator)
            width = values.shape[1] * values.itemsize
            return lambda a, b: (values[a][:, :, None] == values[b][:, None]).mean(axis=-1), width
        matrix = self.matrix(separator)
        if kind == "cosine":
            unit = self._once(("unit", separator), lambda: _unit(matrix))
            return lambda a, b: unit[a] @ unit[b].swapaxes(1, 2), 8 * matrix.shape[1]
        sets = self._once(("sets", separator), lambda: (matrix != 0).astype(np.float64))
        size = sets.sum(axis=1)

        def jaccard(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            both = sets[a] @ sets[b].swapaxes(1, 2)
            either = size[a][:, :, None] + size[b][:, None] - both
            return np.divide(both, either, out=np.zeros_like(both), where=either > 0)

        return jaccard, 8 * matrix.shape[1]


def _below_zeros(matrix: np.ndarray) -> np.ndarray:
    return np.concatenate([matrix, np.zeros((1, matrix.shape[1]))])


def _unit(matrix: np.ndarray) -> np.ndarray:
    """Rows of length 1; a row of zeros stays, so that its similarity is 0."""
    length = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
    return np.divide(matrix, length, out=np.zeros_like(matrix), where=length > 0)


def _pairs_of(function: Similarity) -> Similarity:
    """A caller's function of two arrays of positions, taken to blocks; it never sees row -1."""

    def similar(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        one, two = np.broadcast_arrays(a[:, :, None], b[:, None])
        real = (one >= 0) & (two >= 0)
        found = np.zeros(one.shape)
        found[real] = np.asarray(function(one[real], two[real]), dtype=np.float64)
        return found

    return similar


def _numbers_of(series: pd.Series, separator: str, one_hot: bool) -> tuple[np.ndarray, np.ndarray]:
    """One column as a matrix, and where it is null."""
    null = series.isna().to_numpy(dtype=bool)
    if _is_nested(series):
        values, length = _flatten(series)
        kind = pd.api.types.infer_dtype(values, skipna=False) if values else "empty"
        if kind in ("integer", "floating", "mixed-integer-float", "boolean"):
            return _vectors(values, length, null, str(series.name))
    elif pd.api.types.is_numeric_dtype(series.dtype) or pd.api.types.is_bool_dtype(series.dtype):
        numbers = read_numbers(series, f"feature {series.name!r}").astype(np.float64)
        if np.isinf(numbers).any():
            raise DataError(f"feature {series.name!r} holds {np.isinf(numbers).sum():,} infinite values")
        return np.where(null, 0.0, numbers)[:, None], null
    labels = read_labels(series, f"feature {series.name!r}", separator)
    if not one_hot and (labels.length <= 1).all():
        code = np.zeros(len(series))
        code[labels.length == 1] = labels.code + 1.0
        return code[:, None], null
    indicator = np.zeros((len(series), len(labels.names)))
    indicator[np.repeat(np.arange(len(series)), labels.length), labels.code] = 1.0
    return indicator, null


def _vectors(values: list[Any], length: np.ndarray, null: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.unique(length[~null])
    if len(lengths) != 1:
        raise DataError(
            f"feature {name!r} holds vectors of {len(lengths)} lengths ({lengths[:5].tolist()}); expected one"
        )
    matrix = np.zeros((len(null), lengths[0]))
    matrix[~null] = np.asarray(values, dtype=np.float64).reshape(-1, lengths[0])
    if not np.isfinite(matrix).all():
        raise DataError(f"feature {name!r} holds vectors with null or infinite numbers")
    return matrix, null


# ------------------------------------------------------------------------------------------ lists


def shown_rows(lists: Lists, row_of: np.ndarray, width_bytes: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of lists and, lists × ranks, the row of each item shown, -1 for none."""
    matched = lists.matched
    deepest = int(lists.n_shown.max(initial=0))
    if not deepest:
        return
    size = max(1, BLOCK_BYTES // (deepest * width_bytes))
    ranks = np.arange(deepest)
    for low in range(0, len(lists), size):
        block = slice(low, min(low + size, len(lists)))
        n_shown = lists.n_shown[block, None]
        places = matched.start[block, None] + ranks
        if (n_shown == deepest).all():
            yield block, row_of[matched.item[places]]
        else:
            inside = ranks < n_shown
            yield block, np.where(inside, row_of[matched.item[np.where(inside, places, 0)]], -1)


def mean_similarity(lists: Lists, kind: str | Similarity, separator: str) -> np.ndarray:
    """Mean similarity over the pairs of items shown in each list; NaN for lists without a pair."""
    features = lists.sides.features
    key = ("similarity", lists.cut, kind, separator, id(features))
    if key not in lists.matched.cache:
        lists.matched.cache[key] = _mean_similarity(lists, features, kind, separator)
    return lists.matched.cache[key]


def _mean_similarity(lists: Lists, features: Features, kind: str | Similarity, separator: str) -> np.ndarray:
    count_unknown(lists, features.known(separator), "pred_without_features")
    total, n = np.zeros(len(lists)), np.zeros(len(lists))
    row_of = features.known(separator)
    if kind == "cosine" and features.function is None:
        # Σ over pairs of x·y = (|Σ x|² − Σ |x|²) / 2, so no pair is ever formed.
        unit = features._once(("unit", separator), lambda: _unit(features.matrix(separator)))
        squares = np.einsum("ij,ij->i", unit, unit)
        for block, rows in shown_rows(lists, row_of, 8 * unit.shape[1]):
            added = unit[rows[:, 0]]
            for rank in range(1, rows.shape[1]):
                added += unit[rows[:, rank]]
            total[block] = (np.einsum("ij,ij->i", added, added) - squares[rows].sum(axis=1)) / 2
            n[block] = np.count_nonzero(rows >= 0, axis=1)
    else:
        similar, width = features.similar(kind, separator)
        deepest = int(lists.n_shown.max(initial=0))
        upper = np.triu(np.ones((deepest, deepest), bool), 1)
        for block, rows in shown_rows(lists, row_of, deepest * max(width, 8)):
            pair = (rows >= 0)[:, :, None] & (rows >= 0)[:, None] & upper
            total[block] = np.where(pair, similar(rows, rows), 0.0).sum(axis=(1, 2))
            n[block] = np.count_nonzero(rows >= 0, axis=1)
    pairs = n * (n - 1) / 2
    return np.divide(total, pairs, out=np.full(len(lists), np.nan), where=pairs > 0)


def count_unknown(lists: Lists, known: np.ndarray, name: str) -> None:
    """Record, once per call, how many recommended rows have an item that the side table does not know."""
    counts = lists.matched.counts
    if name not in counts:
        counts[name] = int(np.count_nonzero(known[lists.matched.item] < 0))

"""How similar items are, by feature columns or a caller's function.

Contract: a table has one entry per row of the frame that the caller gave, and `row_of` leads from item codes to
rows, -1 for none. Similarities are taken for blocks of lists at a time, never for all items against all items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...errors import DataError, OptionError
from ...inputs.frames import read_numbers
from ..grouping import offsets, spans
from .categories import flatten, is_nested, read_labels

if TYPE_CHECKING:  # lists need this module
    from ..lists import Lists

# Bytes of the gathered features of one block of lists: about what a core's cache holds.
BLOCK_BYTES = 2**22

# A product of two matrices is left to one thread while it has at most this many multiplications. OpenBLAS would
# share a larger one among threads that must wait for each other, which for one small matrix after another takes
# many times longer on a busy machine.
PRODUCT = 2**17

# Indicators that stand for the values of all positions, at most.
WIDEST = 1024

Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]


# ------------------------------------------------------------------------------------------ similarity


@dataclass
class Features:
    """Feature columns of items, or a similarity of rows of the frame."""

    row_of: np.ndarray
    columns: list[pd.Series]
    function: Similarity | None = None
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)

    def known(self, kind: str | Similarity, separator: str) -> np.ndarray:
        """Row of each item code, -1 for an item that has no row or a null in it."""
        if self.function is not None or callable(kind):
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
        unknown = np.append(self._numbers(separator)[1], True)  # row -1
        return np.where(unknown[self.row_of], -1, self.row_of)

    def _numbers(self, separator: str, one_hot: bool = True) -> tuple[np.ndarray, np.ndarray]:
        if not self.columns:
            raise OptionError("needs feature columns; features= names none")
        blocks, null = zip(*(_numbers_of(series, separator, one_hot) for series in self.columns), strict=True)
        return np.concatenate(blocks, axis=1), np.logical_or.reduce(null)

    def unit(self, separator: str) -> np.ndarray:
        """Rows of length 1; a row of zeros stays, so that its similarity is 0."""
        return self._once(("unit", separator), lambda: _unit(self.matrix(separator)))

    def vectors(self, kind: str | Similarity, separator: str) -> tuple[np.ndarray, int] | None:
        """Vectors and a number such that similarity is their scalar product over the number; None if it is no product.

        The share of equal positions is one where there are few values: each of them becomes an indicator.
        """
        if callable(kind) or self.function is not None or kind == "jaccard":
            return None
        if kind == "cosine":
            return self.unit(separator), 1
        values = self.values(separator)[:-1]
        codes, n_values = zip(
            *((np.unique(c, return_inverse=True)[1], len(np.unique(c))) for c in values.T), strict=True
        )
        if sum(n_values) > WIDEST:
            return None
        return self._once(("indicators", separator), lambda: _indicators(codes, n_values)), len(codes)

    def similar(self, kind: str | Similarity, separator: str) -> tuple[Similarity, int, int]:
        """A function of two blocks of rows, (lists × a) and (lists × b), to (lists × a × b).

        Row -1 is the row of zeros. Beside it, the bytes that it needs for each pair and for each row.
        """
        own = kind if callable(kind) else self.function
        if own is not None:
            return lambda a, b: _called(own, *np.broadcast_arrays(a[:, :, None], b[:, None])), 48, 8
        if kind == "hamming":
            values = self.values(separator)
            width = values.shape[1]
            return lambda a, b: (values[a][:, :, None] == values[b][:, None]).mean(axis=-1), width, 8 * width
        matrix = self.matrix(separator)
        if kind == "cosine":
            unit = self.unit(separator)
            return lambda a, b: unit[a] @ unit[b].swapaxes(1, 2), 8, 8 * matrix.shape[1]
        # Counts are exact in 32 bits, their ratio is not.
        sets = self._once(("sets", separator), lambda: (matrix != 0).astype(np.float32))
        size = sets.sum(axis=1)

        def jaccard(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            both = sets[a] @ sets[b].swapaxes(1, 2)
            either = size[a][:, :, None] + size[b][:, None]
            either -= both
            np.maximum(either, 1.0, out=either)  # two empty sets have nothing in common
            return np.divide(both, either, dtype=np.float64)

        return jaccard, 16, 4 * matrix.shape[1]


def _indicators(codes: Sequence[np.ndarray], n_values: Sequence[int]) -> np.ndarray:
    """Positions × values as numbers 0 and 1, and below them one row of zeros."""
    found = np.zeros((len(codes[0]) + 1, sum(n_values)))
    for code, first in zip(codes, offsets(np.array(n_values)), strict=False):
        found[np.arange(len(code)), first + code.ravel()] = 1.0
    return found


def _below_zeros(matrix: np.ndarray) -> np.ndarray:
    return np.concatenate([matrix, np.zeros((1, matrix.shape[1]))])


def _unit(matrix: np.ndarray) -> np.ndarray:
    length = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
    return np.divide(matrix, length, out=np.zeros_like(matrix), where=length > 0)


def _called(function: Similarity, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A caller's similarity of pairs of positions; it never sees row -1, where it is 0."""
    real = (a >= 0) & (b >= 0)
    found = np.zeros(real.shape)
    values = np.asarray(function(a[real], b[real]), dtype=np.float64)
    if values.shape != (np.count_nonzero(real),):
        raise DataError(f"similarity returned shape {values.shape} for {np.count_nonzero(real):,} pairs")
    found[real] = values
    return found


def _numbers_of(series: pd.Series, separator: str, one_hot: bool) -> tuple[np.ndarray, np.ndarray]:
    """One column as a matrix, and where it is null."""
    null = series.isna().to_numpy(dtype=bool)
    if is_nested(series):
        values, length = flatten(series)
        kind = pd.api.types.infer_dtype(values, skipna=True) if values else "empty"
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
    if np.isinf(matrix).any():
        raise DataError(f"feature {name!r} holds {np.isinf(matrix).sum():,} infinite values")
    null = null | np.isnan(matrix).any(axis=1)
    matrix[null] = 0.0
    return matrix, null


# ------------------------------------------------------------------------------------------ lists


def rows_of(lists: Lists, which: np.ndarray, row_of: np.ndarray) -> np.ndarray:
    """Lists × ranks: the row of each item shown in some lists, -1 for none."""
    n_shown = lists.n_shown[which]
    ranks = np.arange(n_shown.max(initial=0))
    places = lists.matched.start[which][:, None] + ranks
    inside = ranks < n_shown[:, None]
    if inside.all():
        return row_of[lists.matched.item[places]]
    return np.where(inside, row_of[lists.matched.item[np.where(inside, places, 0)]], -1)


def blocks(bytes_of_list: np.ndarray) -> Iterator[np.ndarray]:
    """Lists in blocks that need about BLOCK_BYTES each, lists that need nothing left out, alike ones together."""
    order = np.argsort(bytes_of_list, kind="stable")
    order = order[np.searchsorted(bytes_of_list[order], 0, side="right") :]
    low = 0
    while low < len(order):
        high = min(low + max(1, BLOCK_BYTES // int(bytes_of_list[order[low]])), len(order))
        # The last list of a block needs most, and the block is padded to it.
        while high - low > 1 and (high - low) * bytes_of_list[order[high - 1]] > 2 * BLOCK_BYTES:
            high = low + (high - low + 1) // 2
        yield order[low:high]
        low = high


def mean_similarity(lists: Lists, kind: str | Similarity, separator: str) -> np.ndarray:
    """Mean similarity over the pairs of items shown in each list; NaN for lists without a pair."""
    key = ("similarity", lists.cut, kind, separator)
    if key not in lists.matched.cache:
        lists.matched.cache[key] = _mean_similarity(lists, kind, separator)
    return lists.matched.cache[key]


def _mean_similarity(lists: Lists, kind: str | Similarity, separator: str) -> np.ndarray:
    features = lists.sides.features
    row_of = features.known(kind, separator)
    lists.note("pred_without_features", row_of < 0)
    total, n = np.zeros(len(lists)), np.zeros(len(lists))
    product = features.vectors(kind, separator)
    if product is not None:
        # Σ over pairs of x·y = (|Σ x|² − Σ |x|²) / 2, so no pair is ever formed.
        vectors, scale = product
        squares = np.einsum("ij,ij->i", vectors, vectors)
        for some in blocks(lists.n_shown * 8 * max(vectors.shape[1], 1)):
            rows = rows_of(lists, some, row_of)
            added = vectors[rows[:, 0]]
            for rank in range(1, rows.shape[1]):
                added += vectors[rows[:, rank]]
            total[some] = (np.einsum("ij,ij->i", added, added) - squares[rows].sum(axis=1)) / (2 * scale)
            n[some] = np.count_nonzero(rows >= 0, axis=1)
    else:
        _, pair_bytes, row_bytes = features.similar(kind, separator)
        for some in blocks(lists.n_shown**2 * pair_bytes + lists.n_shown * row_bytes):
            rows = rows_of(lists, some, row_of)
            step = max(1, PRODUCT // (rows.shape[1] * max(row_bytes // 4, 1)))
            total[some] = _pair_sums(features, kind, separator, rows, step)
            n[some] = np.count_nonzero(rows >= 0, axis=1)
    pairs = n * (n - 1) / 2
    return np.divide(total, pairs, out=np.full(len(lists), np.nan), where=pairs > 0)


def _pair_sums(features: Features, kind: str | Similarity, separator: str, rows: np.ndarray, step: int) -> np.ndarray:
    """Sum of the similarities of all pairs of rows of each list, without those of -1, some ranks at a time."""
    own = kind if callable(kind) else features.function
    if own is not None:
        one, two = np.triu_indices(rows.shape[1], 1)
        return _called(own, rows[:, one], rows[:, two]).sum(axis=1)
    similar, _, _ = features.similar(kind, separator)
    known, total = rows >= 0, np.zeros(len(rows))
    for low in range(0, rows.shape[1], step):
        some = slice(low, low + step)
        found = similar(rows[:, some], rows[:, low:])
        if not known.all():
            found = np.where(known[:, some, None] & known[:, None, low:], found, 0.0)
        # Of the square at the front, each pair stands there twice, and each row with itself.
        square = found[:, :, : found.shape[1]]
        total += found.sum(axis=(1, 2)) - (square.sum(axis=(1, 2)) + np.einsum("ijj->i", square)) / 2
    return total


def nearest(lists: Lists, kind: str | Similarity, separator: str) -> np.ndarray:
    """Largest similarity of each recommended row of the first k to an item of the user's log; NaN where unknown."""
    key = ("nearest", lists.cut, kind, separator)
    if key not in lists.matched.cache:
        lists.matched.cache[key] = _nearest(lists, kind, separator)
    return lists.matched.cache[key]


def _nearest(lists: Lists, kind: str | Similarity, separator: str) -> np.ndarray:
    features, log, matched = lists.sides.features, lists.sides.log, lists.matched
    row_of = features.known(kind, separator)
    lists.note("pred_without_features", row_of < 0)
    similar, pair_bytes, row_bytes = features.similar(kind, separator)
    start, item, _ = log.pairs
    past_row = row_of[item]
    found = np.full(len(matched.item), np.nan)
    for some in blocks(log.n_history * lists.n_shown * pair_bytes + (log.n_history > 0) * lists.n_shown * row_bytes):
        rows = rows_of(lists, some, row_of)
        length = log.n_history[some]
        steps = np.arange(length.max())
        inside = steps < length[:, None]
        past = np.where(inside, past_row[np.where(inside, start[log.list_user[some]][:, None] + steps, 0)], -1)
        known = (rows >= 0)[:, :, None] & (past >= 0)[:, None]
        largest = np.where(known, similar(rows, past), -np.inf).max(axis=2)
        places = spans(matched.start[some], lists.n_shown[some])
        largest = largest[np.arange(rows.shape[1]) < lists.n_shown[some][:, None]]
        found[places] = np.where(np.isneginf(largest), np.nan, largest)
    return found

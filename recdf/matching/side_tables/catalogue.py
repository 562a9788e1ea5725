"""What is known of items: the catalogue (what could have been recommended), categories and
features, by item code; past interactions, also by the user of each list; and aspects.

The categories of the items come from one of its columns. An item may have none, one or several.

Feature columns, or a caller's function, say how similar items are. Their arrays have one entry per
row of the frame that the caller gave. `row_of` is the row of each item code, -1 for a code without
a row. `recdf.metrics.diversity` computes similarities for one block of lists at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import Series

from ...errors import DataError, IdTypeError, OptionError
from ...inputs.constraints import a_number
from ...inputs.frames import column, read_numbers
from ...inputs.ids import as_series, check_labels
from ...inputs.list_cells import lists_in
from ...inputs.machine import sizes
from ...inputs.sorting import flags_at, last_places, offsets, run_heads, run_of, spans
from ..pairing import pair_within


@dataclass(frozen=True)
class Labels:
    """Categories of rows or item codes: entry i has `code[start[i]:start[i + 1]]`, which are
    positions in `names`."""

    names: pd.Index
    start: ndarray
    code: ndarray

    @property
    def length(self) -> ndarray:
        return np.diff(self.start)

    def of_rows(self, row_of: ndarray) -> Labels:
        """Return these categories by item code, given the row of each item code."""
        length = np.append(self.length, 0)[row_of]
        entries = spans(np.append(self.start[:-1], 0)[row_of], length)
        return Labels(self.names, offsets(length), self.code[entries])

    def entries(self, items: ndarray) -> tuple[ndarray, ndarray]:
        """Return all categories of some items, as the position in `items` and the category of each
        entry."""
        length = self.length[items]
        return run_of(length), self.code[spans(self.start[:-1][items], length)]


def read_labels(series: Series, where: str, separator: str | None) -> Labels:
    """Read categories from a column of plain values, of strings that `separator` splits, or of
    lists of values."""
    if (lists := lists_in(series, where)) is not None:
        length, listed = lists
        codes, names = pd.factorize(check_labels(listed, where))
    else:
        if isinstance(series.dtype, pd.CategoricalDtype):
            series = series.astype(series.cat.categories.dtype)
        row_code, found = pd.factorize(check_labels(series, where))
        values = list(found)
        kind = pd.api.types.infer_dtype(values, skipna=True)
        parts = [[value] for value in values]
        if kind == "string" and separator:
            parts = [
                [part.strip() for part in value.split(separator) if part.strip()]
                for value in values
            ]
        part_length = np.fromiter((len(part) for part in parts), np.int64, len(parts))
        part_code, names = pd.factorize(as_series([one for part in parts for one in part]))
        length = np.append(part_length, 0)[row_code]
        codes = part_code[spans(np.append(offsets(part_length)[:-1], 0)[row_code], length)]
    if (codes < 0).any():
        raise DataError(f"{where} holds lists with null values")
    return Labels(pd.Index(names), offsets(length), codes)


def unique_rows(codes: ndarray, n_items: int, where: str) -> ndarray:
    """Return the row of each item code, -1 for a code without a row."""
    repeated = len(codes) - len(pd.unique(codes))
    if repeated:
        raise DataError(
            f"{where} has {repeated:,} repeated ids; expected one row per item. An item of several "
            "categories has them in one cell: 'a|b', or a list"
        )
    return last_places(codes, n_items)


@dataclass
class Catalogue:
    """The items that could have been recommended: a frame, and the item code of each row."""

    frame: pd.DataFrame
    code: ndarray
    n_items: int
    _labels: dict[Any, Labels] = field(default_factory=dict, repr=False)

    @cached_property
    def codes(self) -> ndarray:
        """Codes of the distinct items, in order of the frame."""
        return pd.unique(self.code)

    @cached_property
    def inside(self) -> ndarray:
        """Whether the catalogue has each item code."""
        return flags_at(self.code, self.n_items)

    @cached_property
    def row_of(self) -> ndarray:
        return unique_rows(self.code, self.n_items, "items")

    @cached_property
    def row_of_first(self) -> ndarray:
        """First row of each item code, -1 for a code without a row. Ids may repeat here."""
        found = np.full(self.n_items, -1, np.int64)
        found[self.code[::-1]] = np.arange(len(self.code))[::-1]
        return found

    def labels(self, name: str, separator: str | None = "|") -> Labels:
        """Return the categories of each item from one column; `separator` splits strings that name
        several."""
        if (name, separator) not in self._labels:
            found = read_labels(column(self.frame, name, "items"), f"items[{name!r}]", separator)
            self._labels[name, separator] = found.of_rows(self.row_of)
        return self._labels[name, separator]


Similarity = Callable[[ndarray, ndarray], ndarray]


# ------------------------------------------------------------------------------------------
# similarity


@dataclass(eq=False)
class Likeness:
    """How alike items are: by the name of a similarity, or by a function of rows of the frame."""

    rows: ndarray
    columns: list[Series]
    kind: str | Similarity
    separator: str

    @cached_property
    def row_of(self) -> ndarray:
        """The row of each item code, -1 for an item that has no row or whose row has a null."""
        if callable(self.kind):
            return self.rows
        unknown = np.append(self._numbers[1], True)  # the last entry is that of row -1
        return np.where(unknown[self.rows], -1, self.rows)

    @cached_property
    def _numbers(self) -> tuple[ndarray, ndarray]:
        """Rows × features with one row of zeros below them, and which rows have a null.

        A feature is a number or the indicator of a category. Hamming similarity compares values
        position by position, so that a column of categories is one feature of their codes.
        """
        if not self.columns:
            raise OptionError("needs feature columns; ⟦+features=⟧ names none")
        one_hot = self.kind != "hamming"
        blocks, null = zip(
            *(_numbers_of(series, self.separator, one_hot) for series in self.columns), strict=True
        )
        matrix = np.concatenate(blocks, axis=1)
        return np.concatenate([matrix, np.zeros((1, matrix.shape[1]))]), np.logical_or.reduce(null)

    @cached_property
    def _unit(self) -> ndarray:
        """The rows scaled to length 1; a row of zeros stays as it is, so that its similarity is
        0."""
        matrix = self._numbers[0]
        length = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))[:, None]
        return np.divide(matrix, length, out=np.zeros_like(matrix), where=length > 0)

    @cached_property
    def vectors(self) -> tuple[ndarray, int] | None:
        """Vectors and a divisor such that similarity is the scalar product of two vectors over the
        divisor.

        It is None for a similarity that has no such form. The share of equal positions has it where
        there are few values, since each value can then become an indicator.
        """
        if callable(self.kind) or self.kind == "jaccard":
            return None
        if self.kind == "cosine":
            return self._unit, 1
        values = self._numbers[0][:-1]
        codes, n_values = zip(
            *((np.unique(c, return_inverse=True)[1], len(np.unique(c))) for c in values.T),
            strict=True,
        )
        if sum(n_values) > sizes().most_indicators:
            return None
        # An indicator (0 or 1) for each value of each position, and below them one row of zeros.
        found = np.zeros((len(values) + 1, sum(n_values)))
        for code, first in zip(codes, offsets(np.array(n_values)), strict=False):
            found[np.arange(len(code)), first + code.ravel()] = 1.0
        return found, len(codes)

    @cached_property
    def similar(self) -> tuple[Similarity, int, int]:
        """A function from two blocks of rows, (lists × a) and (lists × b), to similarities (lists ×
        a × b).

        Row -1 is the row of zeros. The other two values are the bytes that the function needs for
        each pair and for each row.
        """
        own = self.kind
        if callable(own):
            return lambda a, b: called(own, *np.broadcast_arrays(a[:, :, None], b[:, None])), 48, 8
        matrix = self._numbers[0]
        width = matrix.shape[1]
        if own == "hamming":
            return (
                lambda a, b: (matrix[a][:, :, None] == matrix[b][:, None]).mean(axis=-1),
                width,
                8 * width,
            )
        if own == "cosine":
            unit = self._unit
            return lambda a, b: unit[a] @ unit[b].swapaxes(1, 2), 8, 8 * width
        # 32-bit floats hold the counts exactly; only their ratio needs 64 bits.
        sets = (matrix != 0).astype(np.float32)
        size = sets.sum(axis=1)

        def jaccard(a: ndarray, b: ndarray) -> ndarray:
            both = sets[a] @ sets[b].swapaxes(1, 2)
            either = size[a][:, :, None] + size[b][:, None]
            either -= both
            np.maximum(either, 1.0, out=either)  # two empty sets have nothing in common
            return np.divide(both, either, dtype=np.float64)

        return jaccard, 16, 4 * width


def called(function: Similarity, a: ndarray, b: ndarray) -> ndarray:
    """Call the caller's similarity for pairs of positions. Row -1 is not passed to it; its
    similarity is 0."""
    real = (a >= 0) & (b >= 0)
    found = np.zeros(real.shape)
    values = np.asarray(function(a[real], b[real]), dtype=np.float64)
    if values.shape != (np.count_nonzero(real),):
        raise DataError(
            f"similarity returned shape {values.shape} for {np.count_nonzero(real):,} pairs"
        )
    found[real] = values
    return found


def _numbers_of(series: Series, separator: str, one_hot: bool) -> tuple[ndarray, ndarray]:
    """Return one column as a matrix, and which of its rows are null."""
    null = series.isna().to_numpy(dtype=bool)
    where = f"feature {series.name!r}"
    if (lists := lists_in(series, where)) is not None:
        kind = pd.api.types.infer_dtype(lists[1], skipna=True)
        if kind in ("integer", "floating", "mixed-integer-float", "boolean"):
            lengths = np.unique(lists[0][~null])
            if len(lengths) != 1:
                raise DataError(
                    f"{where} holds vectors of {len(lengths)} lengths ({lengths[:5].tolist()}); "
                    "expected one"
                )
            matrix = np.zeros((len(null), lengths[0]))
            matrix[~null] = lists[1].to_numpy(np.float64, na_value=np.nan).reshape(-1, lengths[0])
            return _finite(matrix, null, where)
    elif pd.api.types.is_numeric_dtype(series.dtype) or pd.api.types.is_bool_dtype(series.dtype):
        return _finite(read_numbers(series, where).astype(np.float64)[:, None], null, where)
    labels = read_labels(series, where, separator)
    if not one_hot and (labels.length <= 1).all():
        code = np.zeros(len(series))
        code[labels.length == 1] = labels.code + 1.0
        return code[:, None], null
    # In the order of the names and not of the rows, so that products of vectors do not depend on
    # the order of rows.
    place = np.argsort(np.argsort(labels.names.astype(str), kind="stable"))
    indicator = np.zeros((len(series), len(labels.names)))
    indicator[run_of(labels.length), place[labels.code]] = 1.0
    return indicator, null


def _finite(matrix: ndarray, null: ndarray, where: str) -> tuple[ndarray, ndarray]:
    """Return numbers with zeros in each row that has a null, and which rows these are."""
    if np.isinf(matrix).any():
        raise DataError(f"{where} holds {np.isinf(matrix).sum():,} infinite values")
    null = null | np.isnan(matrix).any(axis=1)
    matrix[null] = 0.0
    return matrix, null


# ------------------------------------------------------------------------------------------
# the log, and aspects

# The share of interactions that the most popular items hold.
Head = Annotated[float, a_number(above=0, most=1)]
# Below 1 the share of items, from 1 on the number of interactions, that bounds the tail.
TailSize = Annotated[float, a_number(above=0)]


@dataclass
class LogCodes:
    """Past interactions: the codes of user and item per row, and the user of each list, -1 if it is
    not in the log."""

    user: ndarray
    item: ndarray
    matched_user: ndarray | IdTypeError  # the error, if users of both have types that never match
    n_items: int
    rank: Callable[[], ndarray | None]

    @property
    def list_user(self) -> ndarray:
        """User of each list. Popularity does not read it, so it needs no users that match."""
        if isinstance(self.matched_user, IdTypeError):
            raise self.matched_user
        return self.matched_user

    @cached_property
    def n_users(self) -> int:
        return len(pd.unique(self.user))

    @cached_property
    def pairs(self) -> tuple[ndarray, ndarray, ndarray]:
        """The distinct items of each user: where each user starts, the items, and the interactions
        of each pair."""
        key = self.user.astype(np.int64) * self.n_items + self.item
        key, count = np.unique(key, return_counts=True)
        known = () if isinstance(self.matched_user, IdTypeError) else self.matched_user
        n_codes = int(max(self.user.max(initial=-1), np.max(known, initial=-1))) + 1
        length = np.bincount(key // self.n_items, minlength=n_codes)
        return offsets(length), (key % self.n_items).astype(np.int32), count

    @cached_property
    def pair_user(self) -> ndarray:
        return run_of(np.diff(self.pairs[0]))

    def count(self, share_of: str) -> ndarray:
        """Return the number of users (share_of "users") or of interactions ("events") of each item
        code."""
        return np.bincount(
            self.pairs[1] if share_of == "users" else self.item, minlength=self.n_items
        )

    def total(self, share_of: str) -> int:
        """Return the number of users, or of interactions, of the whole log."""
        return self.n_users if share_of == "users" else len(self.item)

    def share(self, share_of: str) -> ndarray:
        """Return p(i): the share of the users who have item i, or of the interactions with it."""
        return self.count(share_of) / max(self.total(share_of), 1)

    def surprise(self, share_of: str) -> ndarray:
        """Return −log2 p(i); an item that is not in the log counts as if one user had it."""
        return np.log2(max(self.total(share_of), 1)) - np.log2(np.maximum(self.count(share_of), 1))

    def by_popularity(self, least_first: bool = False) -> ndarray:
        """Item codes of the log, most interactions first, or least; items with equally many are
        sorted by id."""
        count = self.count("events")
        codes = np.flatnonzero(count)
        rank = self.rank()
        order = count[codes] if least_first else -count[codes]
        return codes[np.lexsort((codes if rank is None else rank[codes], order))]

    def rank_share(self, share_of: str) -> ndarray:
        """Return the mean rank of each item's count, from the smallest, over the items of the log;
        0 if not there."""
        count = self.count(share_of)
        codes = np.flatnonzero(count)
        _, level, n_level = np.unique(count[codes], return_inverse=True, return_counts=True)
        found = np.zeros(self.n_items)
        found[codes] = (np.cumsum(n_level) - (n_level - 1) / 2)[level] / max(len(codes), 1)
        return found

    def tail(self, size: float) -> ndarray:
        """Tell for each item code whether it is in the tail, which `size` cuts; an item that is not
        in the log is not.

        Below 1, `size` is the share of the items of the log that are the tail, at least one item;
        those with the fewest interactions, and of these those with the smaller ids. From 1 on, it
        is the most interactions of such an item.
        """
        if size >= 1:
            count = self.count("events")
            return np.logical_and(count > 0, count <= size)
        order = self.by_popularity(least_first=True)
        return flags_at(order[: max(int(size * len(order) + 1e-9), 1)], self.n_items)

    def head(self, share: float) -> ndarray:
        """Tell for each item code whether it is one of the most popular items that hold this share
        of interactions."""
        order = self.by_popularity()
        short = np.cumsum(self.count("events")[order]) < share * len(self.item) * (1 - 1e-12)
        return flags_at(order[: np.count_nonzero(short) + 1], self.n_items)

    def cooccurrence(self, one: ndarray, two: ndarray) -> ndarray:
        """Return, for pairs of item codes, users with both / √(users with the one · users with the
        other), or 0."""
        users = self.pair_user[np.argsort(self.pairs[1], kind="stable")]
        n = self.count("users")
        start = offsets(n)
        both = np.zeros(len(one))
        n_users = len(self.pairs[0])
        piece = np.cumsum(n[one] + n[two]) // sizes().paired_items
        for low, high in pairwise([*run_heads([piece]).tolist(), len(one)]):
            a = one[low:high]
            b = two[low:high]
            both[low:high] = pair_within(users, start[a], n[a], users, start[b], n[b], n_users).n
        return both / np.sqrt(np.maximum(n[one] * n[two], 1))

    def seen(self, item: ndarray, start: ndarray, length: ndarray) -> ndarray:
        """Tell for each recommended row whether the log has its item for the list's user.

        `item` is the code of each row; list i has the `length[i]` rows from `start[i]` on.
        """
        of_user, past, _ = self.pairs
        own = np.append(of_user[:-1], 0)[self.list_user]
        return pair_within(item, start, length, past, own, self.n_history, self.n_items).has_sought(
            len(item)
        )

    @cached_property
    def n_history(self) -> ndarray:
        """Distinct items in the history of each list's user."""
        return np.append(np.diff(self.pairs[0]), 0).take(self.list_user)


@dataclass(frozen=True, eq=False)
class Aspects:
    """What a user may want of an item: entries (user, item, aspect), ordered by user and item.

    `key` : user * n_items + item, where the user is 0 if all users have the same aspects ·
    `list_user` : the user of each list, -1 for none; None if all users have the same aspects ·
    `n_of_user` : number of distinct aspects of each user · `labels` : the label of each aspect,
    under the name of their column.
    """

    key: ndarray
    aspect: ndarray
    n_aspects: int
    list_user: ndarray | None
    n_of_user: ndarray
    n_items: int
    labels: Series

    def n_of_list(self, n_lists: int) -> ndarray:
        if self.list_user is None:
            return np.full(n_lists, self.n_of_user[0])
        return np.append(self.n_of_user, 0).take(self.list_user)

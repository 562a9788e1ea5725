"""Rows of a frame by the values of some columns: codes of the groups, their labels, and the rows of each.

Contract: codes are 0..n−1 in the order of the labels. Null labels and labels that cannot be compared raise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..errors import DataError, NullKeyError, examples
from .codes import encode
from .frames import column
from .ids import IdColumn, check_labels, read_ids
from .sorting import order_of_codes

__all__ = ["Codes", "close_ranks", "first_rows", "group_codes", "known_ids", "rank_keys", "split"]

Codes = npt.NDArray[np.int64]

# So many rows are looked at together.
COMPARED_ROWS = 2**18


class CodeColumn(Protocol):
    """Codes that are read by slices of rows: an array, or a `codes.Coded`, which computes them then."""

    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice, /) -> np.ndarray: ...


def group_codes(frame: pd.DataFrame, role: str, names: Sequence[str]) -> tuple[Codes, pd.DataFrame]:
    """Code the rows by groups; returns the codes and a frame of the groups' labels, sorted by value."""
    codes, n = np.zeros(len(frame), np.int64), min(len(frame), 1)
    for name in names:
        values = column(frame, name, role)
        null = values.isna()
        if null.any():
            raise NullKeyError(f"{role}[{name!r}] is null in {int(null.sum()):,} of {len(frame):,} rows")
        if isinstance(values.dtype, pd.CategoricalDtype):
            values = values.astype(values.cat.categories.dtype)
        check_labels(values, f"{role}[{name!r}]")
        try:
            own, values_of = pd.factorize(values, sort=True)
        except TypeError:
            raise DataError(f"{role}[{name!r}] mixes types that cannot be compared: {examples(values)}") from None
        codes, n = codes * len(values_of) + own, n * len(values_of)
        (codes,), n = close_ranks([codes], n)
    labels = frame[list(names)].iloc[first_rows(codes, n)].reset_index(drop=True)
    for name in names:
        if isinstance(labels[name].dtype, pd.CategoricalDtype):
            labels[name] = labels[name].astype(labels[name].cat.categories.dtype)
    return codes, labels


def close_ranks(codes: list[Codes], span: int) -> tuple[list[Codes], int]:
    """Renumber codes below `span` to 0..n−1 without changing their order."""
    rows = sum(map(len, codes))
    if span <= 8 * rows + 1024:
        present = np.zeros(span, bool)
        for own in codes:
            present[own] = True
        renumbered = np.cumsum(present) - 1
        return [renumbered[own] for own in codes], int(present.sum())
    present, together = np.unique(np.concatenate(codes), return_inverse=True)
    return np.split(together.astype(np.int64), np.cumsum([len(own) for own in codes])[:-1]), len(present)


def known_ids(frame: pd.DataFrame, role: str, name: str, hint: str = "") -> IdColumn:
    """Return a column of ids, of which none may be null."""
    ids = read_ids(column(frame, name, role), f"{role}[{name!r}]")
    if ids.null is not None:
        raise NullKeyError(f"{ids.where} is null in {np.count_nonzero(ids.null):,} of {len(frame):,} rows{hint}")
    return ids


def rank_keys(keys: Iterable[Sequence[IdColumn]]) -> tuple[list[Codes], int]:
    """Code the columns of a key, each over several tables, 0..n−1 in the order of the ids; also return n."""
    codes: list[Codes] = []
    n = 1
    for ids in keys:
        coded = encode(ids)
        rank = coded.rank()
        own = [one if rank is None else rank[one] for one in coded.codes]
        joint = [above * coded.n + one for above, one in zip(codes, own, strict=True)] if codes else own
        codes, n = close_ranks(joint, n * coded.n)
    return codes, n


def first_rows(codes: CodeColumn, n: int) -> Codes:
    """Row of the first appearance of every code below n; -1 for a code that no row has."""
    first = np.full(n, -1, np.int64)
    for above in range(0, len(codes), COMPARED_ROWS):
        part = codes[above : above + COMPARED_ROWS]
        new = np.flatnonzero(first.take(part) < 0)
        first[part[new][::-1]] = new[::-1] + above  # numpy keeps the last assignment: the first row
    return first


def split(codes: Codes, n: int) -> list[Codes]:
    """Row positions of every group, in row order."""
    return np.split(order_of_codes(codes, n), np.cumsum(np.bincount(codes, minlength=n))[:-1])

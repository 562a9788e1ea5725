"""Rows of a frame by the values of some columns: codes of the groups, their labels, and the rows of each.

Contract: codes are 0..n−1 in the order of the labels. Null labels and labels that cannot be compared raise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..errors import DataError, NullKeyError, examples
from .frames import column
from .ids import check_labels

__all__ = ["Codes", "close_ranks", "first_rows", "group_codes", "split"]

Codes = npt.NDArray[np.int64]


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


def first_rows(codes: Codes, n: int) -> Codes:
    """Row of the first appearance of every code."""
    first = np.empty(n, np.int64)
    # Of several values for one position the last is kept, so the rows go in from the end.
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return first


def split(codes: Codes, n: int) -> list[Codes]:
    """Row positions of every group, in row order."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.cumsum(np.bincount(codes, minlength=n))[:-1])

"""Columns of a log, checked one at a time.

Contract: a check returns its values or raises an error that names the column, what was found, how
often, and how to mend it. Nothing here changes a frame or reads its index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import ColumnError, DataError, EmptyPopulationError, OptionError, examples, kind_of
from ..inputs.codes import encode_keys, group_codes, known_ids, rank_keys, split
from ..inputs.frames import as_frame, column, read_numbers
from ..inputs.options import as_columns
from ..stats.numbers import Floats
from .rows import IntCodes

# Smaller numbers than this have lost digits, and their inverses are infinite.
LEAST_PROPENSITY = float(np.finfo(np.float64).tiny)

# What rounding may add to probabilities that sum to 1.
SUM_ROUNDING = 1e-6


Record = dict[str, Any]  # one row of a result


class Keys(NamedTuple):
    """Integer codes of the rows, equal where their ids are equal, and a number above all codes."""

    codes: IntCodes
    n: int


class ByGroups(NamedTuple):
    """The values of the `by` columns, sorted, and the rows of each; None stands for all rows."""

    labels: pd.DataFrame
    rows: list[IntCodes | None]

    def codes(self, n: int) -> IntCodes:
        """Return the number of the group of every one of `n` rows."""
        codes = np.zeros(n, np.int64)
        for g, some in enumerate(self.rows):
            codes[slice(None) if some is None else some] = g
        return codes


def log_frame(log: Any, role: str = "log", rows: str = "one row per shown item") -> pd.DataFrame:
    """Return a log as a frame with at least one row."""
    if isinstance(log, Mapping):
        raise TypeError(
            f"{role} is {kind_of(log)}; expected a table of rows: pass pandas.DataFrame({role})"
        )
    if not isinstance(log, pd.DataFrame) and not hasattr(log, "__arrow_c_stream__"):
        raise TypeError(
            f"{role} is {kind_of(log)}; expected a DataFrame, or an object with the Arrow stream "
            "interface (pyarrow, polars, DuckDB)"
        )
    frame = as_frame(log, role)
    if not len(frame):
        raise EmptyPopulationError(f"{role} has no rows; expected {rows}")
    return frame


def read_floats(frame: pd.DataFrame, name: str, role: str = "log") -> Floats:
    """A column of numbers without nulls and infinite values."""
    values = read_numbers(column(frame, name, role), f"{role}[{name!r}]")
    if values.dtype.kind == "f":
        # The sum is not finite if any value is not, and costs no array.
        with np.errstate(over="ignore", invalid="ignore"):
            suspicious = not np.isfinite(values.sum())
        if suspicious and (n := int(np.count_nonzero(~np.isfinite(values)))):
            raise DataError(
                f"{role}[{name!r}] holds {n:,} null or infinite values in {len(values):,} rows; "
                "expected finite numbers"
            )
    return values


def read_probabilities(
    frame: pd.DataFrame,
    name: str,
    *,
    zero: bool,
    what: str,
    role: str = "log",
    least: float = LEAST_PROPENSITY,
) -> Floats:
    """A column of probabilities in [0, 1], or from `least` to 1 unless `zero`."""
    where = f"{role}[{name!r}]"
    values = read_numbers(column(frame, name, role), where).astype(np.float64, copy=False)
    with np.errstate(invalid="ignore"):
        low, high = float(values.min()), float(values.max())
    if not zero and 0 < low < least:
        raise DataError(
            f"{where} is below {least:.3g} in {np.count_nonzero(values < least):,} of "
            f"{len(values):,} rows (from {low:.3g}); {what}. So small a number is no probability "
            "with which an item was shown; was it multiplied too often, or is it exp of a score?"
        )
    if (low >= 0 if zero else low > 0) and high <= 1:
        return values
    # Sums over positions and items may leave a probability above 1 by rounding.
    if (low >= 0 if zero else low > 0) and high <= 1 + SUM_ROUNDING:
        return np.minimum(values, 1.0)
    null = np.isnan(values)
    if null.any():
        raise DataError(
            f"{where} is null in {np.count_nonzero(null):,} of {len(values):,} rows; {what}"
        )
    bad = (values < 0) | (values > 1) if zero else (values <= 0) | (values > 1)
    text = (
        f"{where} is outside {'[0, 1]' if zero else '(0, 1]'} in {np.count_nonzero(bad):,} of "
        f"{len(values):,} rows "
    )
    text += f"({examples(values[bad])}); {what}"
    if high <= 0 and low < 0:
        text += ". All values are at most 0, so they look like logarithms: pass numpy.exp of them"
    elif low >= 0 and high <= 100 and high > 1 and np.count_nonzero(values > 1) > len(values) / 2:
        text += (
            ". Most values are above 1; percentages are to be divided by 100, and inverse "
            "propensities inverted"
        )
    raise DataError(text)


def log_key_codes(
    frame: pd.DataFrame, names: Sequence[str], argument: str, hint: str, *, ordered: bool = False
) -> Keys:
    """Codes of a key of one or more columns; with `ordered` they are in the order of the ids."""
    for name in names:
        if name not in frame.columns:
            try:
                column(frame, name, "log", suggest=())
            except ColumnError as error:
                given = names[0] if len(names) == 1 else list(names)
                raise error.within(after=f" (⟦{argument}={given!r}⟧; {hint})") from None
    ids = [known_ids(frame, "log", name, f"; drop these rows, or {hint}") for name in names]
    if ordered:
        (codes,), n = rank_keys([one] for one in ids)
        return Keys(codes, max(n, 1))
    (coded,), n = encode_keys([ids])
    return Keys(coded.all(), n)


def repeats_users(frame: pd.DataFrame, by: Sequence[str], user_col: str = "user_id") -> bool:
    """Whether a column of users is there and some user has several rows in one group."""
    names = list(dict.fromkeys([*by, user_col]))
    if user_col not in frame.columns or any(
        isinstance(frame[name], pd.DataFrame) for name in names
    ):
        return False
    try:  # most logs show it early, and then the whole column need not be read
        return bool(frame[names].head(10_000).duplicated().any() or frame[names].duplicated().any())
    except TypeError:  # values that cannot be compared are no users
        return False


def split_groups(frame: pd.DataFrame, by: Any, taken: Sequence[str], role: str = "log") -> ByGroups:
    """Rows of every value of the `by` columns; one group of all rows without them."""
    names = as_columns(by)
    if not names:
        return ByGroups(pd.DataFrame(index=[0]), [None])
    for name in names:
        column(frame, name, role)  # a column that is absent is the first error
        if name in taken:
            raise OptionError(f"⟦by={name!r}⟧ is also a column of the result; rename it in {role}")
    codes, labels = group_codes(frame, role, names)
    return ByGroups(labels, list(split(codes, len(labels))) if len(labels) > 1 else [None])


def beside_groups(
    labels: pd.DataFrame, rows: Sequence[Sequence[Record]], columns: Sequence[str]
) -> pd.DataFrame:
    """Table of these columns of the records of every group, behind its labels."""
    table = pd.DataFrame([record for own in rows for record in own])[list(columns)]
    which = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
    return pd.concat([labels.iloc[which].reset_index(drop=True), table], axis=1)

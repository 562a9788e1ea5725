"""What each row of `true` counts where relevant items were observed with unequal probabilities.

Contract: a row counts 1/max(propensity, propensity_floor). An item of a list has one propensity,
however often it stands there, so that no result depends on the order of rows.
"""

from __future__ import annotations

import numpy as np

from ..errors import DataError
from ..inputs.frames import column, read_numbers
from ..inputs.options import Options
from ..inputs.true_and_pred import ReadRows


def item_weights_of(table: ReadRows, rows: np.ndarray, options: Options) -> np.ndarray | None:
    """Return 1/propensity of some rows of `true`, which is what a relevant item counts; None
    without propensities."""
    if options.propensity_col is None:
        return None
    found: np.ndarray = 1 / np.maximum(
        _propensities(table, rows, options.propensity_col), options.propensity_floor
    )
    return found


def refuse_two_propensities(
    table: ReadRows, first: np.ndarray, repeat: np.ndarray, options: Options
) -> None:
    """Raise if a repeated row has another propensity than the first row of the same item in the
    same list."""
    name = options.propensity_col
    if name is None or not len(repeat):
        return
    one, other = (_propensities(table, rows, name) for rows in (first, repeat))
    differ = np.flatnonzero(one != other)
    if not len(differ):
        return
    at = differ[0]
    low, high = sorted(
        [one[at].item(), other[at].item()]
    )  # the message too is the same for every order of rows
    label = tuple(ids.show(repeat[at : at + 1])[0] for ids in (*table.keys, table.item))
    raise DataError(
        f"true[{name!r}] differs in {len(differ):,} of the rows that repeat an item of a list: "
        f"{label} has {low!r} and {high!r}; an item of a list has one propensity, so keep one row "
        "of each"
    )


def _propensities(table: ReadRows, rows: np.ndarray, name: str) -> np.ndarray:
    given = read_numbers(column(table.frame, name, table.role), f"{table.role}[{name!r}]").astype(
        np.float64
    )
    return given.take(table.frame_rows(rows))

"""The weight of each list of the population, which says how much the list counts in a mean.

Contract: weights are finite and at least 0, and every list has one. They come from one place: a column of `true`, a
column of the frame `users`, or a mapping of users to weights.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from ..errors import DataError
from ..inputs.codes import encode_keys
from ..inputs.frames import column, read_numbers
from ..inputs.ids import as_series, read_ids
from ..inputs.options import Options, as_columns
from ..inputs.true_and_pred import ReadRows, read_weights
from .ranked import Ranked

WEIGHT_PLACES = {"true": "a column of true", "users": "a column of ⟦users=⟧", "mapping": "a mapping"}


def list_weights(
    labels: pd.DataFrame, true_rows: ReadRows, true: Ranked, true_list: np.ndarray, users: pd.DataFrame | None,
    options: Options,
) -> np.ndarray | None:  # fmt: skip
    """Return the weight of each list, or None without weights.

    `labels` are the keys of the lists, and `true_list` is the entry of each among the ranked lists of `true`, -1 for
    none. `users` is the population where it was given as a frame.
    """
    source = options.weight_source
    if source is None:
        return None
    if source == "true":
        weights: np.ndarray = np.append(_of_true(true_rows, true, options), np.nan)[true_list]
    else:
        weights = _of_frame(labels, _given(users, options), source, options)
    missing = np.isnan(weights)
    if missing.any():
        some = ", ".join(map(repr, labels[missing].head(3).to_dict("records")))
        raise DataError(
            f"{missing.sum():,} of {len(weights):,} lists have no weight, such as {some}; weight_col is "
            f"{WEIGHT_PLACES[source]}, which lacks them"
        )
    return weights


def _of_true(rows: ReadRows, lists: Ranked, options: Options) -> np.ndarray:
    """Return the weight of each list of `true`, whose rows must agree."""
    name = options.weight_name
    given = read_numbers(column(rows.frame, name, "true"), f"true[{name!r}]").astype(np.float64)
    weights = given.take(rows.frame_rows(lists.all_rows()))
    start = lists.start[:-1]
    if not len(start):
        return np.empty(0)
    changes = np.flatnonzero(np.minimum.reduceat(weights, start) < np.maximum.reduceat(weights, start))
    if len(changes):
        first = rows.frame_rows(lists.rows(start[changes[:1]]))
        key = rows.frame[as_columns(options.user_col)].iloc[first].to_dict("records")[0]
        raise DataError(
            f"true[{name!r}] is not constant within {len(changes):,} lists, such as {key}; a list has one weight"
        )
    return weights.take(start)


def _given(users: pd.DataFrame | None, options: Options) -> pd.DataFrame:
    """Return the users and their weights as a frame."""
    if isinstance(options.weight_col, Mapping):
        keys = as_series(list(options.weight_col))
        return pd.DataFrame({as_columns(options.user_col)[0]: keys, "weight": list(options.weight_col.values())})
    assert users is not None
    return users


def _of_frame(labels: pd.DataFrame, frame: pd.DataFrame, source: str, options: Options) -> np.ndarray:
    """Return the weight of each list by the keys of a frame, NaN for a list that it does not have."""
    where = "weight_col" if source == "mapping" else f"users[{options.weight_name!r}]"
    weights = read_weights(column(frame, options.weight_name, "users"), where, options)
    if not len(frame) or not len(labels):
        return np.full(len(labels), np.nan)
    names = as_columns(options.user_col)
    keys = [
        [read_ids(table[name], f"{role}[{name!r}]") for name in names]
        for role, table in (("lists", labels), ("weight_col", frame))
    ]
    (of_lists, of_rows), n = encode_keys(keys)
    found, rows = np.full(n, np.nan), of_rows.all()
    found[rows] = weights
    differ = found[rows] != weights
    if differ.any():
        some = frame[names][differ].head(3).to_dict("records")
        raise DataError(f"{where} has two weights for {len(np.unique(rows[differ])):,} users, such as {some}")
    return found.take(of_lists.all())

"""Numbers besides gains: of rows, money, ratings, clicks and purchases; of lists, the weight in a
mean.

Contract: each array of rows has one entry per recommended row, or per row of `true`, in the order
of the ranked lists.

Weights are finite and at least 0, and every list has one. They come from one place: a column of
`true`, a column of the frame `users`, or a mapping of users to weights.

Where relevant items were observed with unequal probabilities, a row of `true` counts
1/max(propensity, propensity_floor). An item of a list has one propensity, however often it stands
there, so that no result depends on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError, examples
from ..inputs.codes import IdCodes, encode_keys
from ..inputs.frames import column, read_numbers, read_values
from ..inputs.ids import as_series, check_labels, read_ids
from ..inputs.options import Options, as_columns
from ..inputs.sorting import distinct
from ..inputs.true_and_pred import ReadRows, read_weights
from .ranked import Ranked, propensities
from .side_tables.sides import CheckedSide
from .true_and_pred_lists import PredLists

# Columns of `true` that say what users did with an item.
RESPONSES = ("clicks", "purchases")


@dataclass(frozen=True)
class Rating:
    """Functions that read the ratings that users gave (per row of `true`) and those predicted (per
    recommended row)."""

    given: Callable[[], np.ndarray]
    predicted: Callable[[], np.ndarray]


@dataclass(frozen=True)
class Values:
    """The value of each recommended row (as recommended) and of each row of `true` (as bought),
    both in list order."""

    pred: np.ndarray
    true: np.ndarray
    where: tuple[str, str]

    def checked(self, negative: str) -> Values:
        """Refuse negative values (refunds), or clip them to 0."""
        if negative == "clip":
            return Values(np.maximum(self.pred, 0.0), np.maximum(self.true, 0.0), self.where)
        for values, where in ((self.pred, self.where[0]), (self.true, self.where[1])):
            below = values[values < 0]
            if len(below):
                raise DataError(
                    f"{where} holds {len(below):,} negative values ({examples(below)}); "
                    'drop the refunds, or count them as 0: "revenue(negative=clip)@10" in '
                    "evaluate, "
                    'rd.revenue(..., negative="clip")'
                )
        return self


def responses_of(table: ReadRows, lists: Ranked, name: str) -> np.ndarray | None:
    """Return the clicks or purchases of each row of `true` from the column of this name; None
    without the column."""
    if name not in table.frame.columns:
        return None
    found = read_values(table.frame, name, table.role)
    if len(found) and found.min() < 0:
        below = examples(found[found < 0])
        raise DataError(f"{table.role}[{name!r}] holds negative numbers ({below}); expected counts")
    return found.take(table.frame_rows(lists.all_rows()))


def item_values(
    true_rows: ReadRows,
    pred_rows: ReadRows,
    true_lists: Ranked,
    pred_lists: PredLists,
    catalogue: CheckedSide | None,
    items: IdCodes,
    options: Options,
) -> Values | None:
    """Return the values in `value_col`: from the frame itself where it has the column, else from
    the catalogue."""
    name = options.value_col
    if name is None:
        return None
    of_item = None
    if catalogue is not None and name in catalogue.frame.columns:
        codes = items.codes[2]
        if len(pd.unique(codes)) < len(codes):
            raise DataError(
                f"items has {len(codes) - len(pd.unique(codes)):,} repeated ids; expected one row "
                "per item"
            )
        of_item = np.full(items.n, np.nan)
        of_item[codes] = read_values(catalogue.frame, name, "items")
    found = []
    for table, lists in ((pred_rows, pred_lists), (true_rows, true_lists)):
        if name in table.frame.columns:
            values = read_values(table.frame, name, table.role)
            found.append(values[table.frame_rows(lists.all_rows())])
        elif of_item is None:
            column(
                table.frame, name, table.role
            )  # raises an error that names the columns there are
        else:
            found.append(of_item[lists.item])
            lacking = np.isnan(found[-1])
            if lacking.any():
                raise DataError(
                    f"items has no {name!r} for {len(distinct(lists.item[lacking])):,} items of "
                    f"{table.role}"
                )
    return Values(found[0], found[1], (f"pred[{name!r}]", f"true[{name!r}]"))


WEIGHT_PLACES = {
    "true": "a column of true",
    "users": "a column of ⟦users=⟧",
    "mapping": "a mapping",
}


def list_weights(
    labels: pd.DataFrame,
    true_rows: ReadRows,
    true: Ranked,
    true_list: np.ndarray,
    users: pd.DataFrame | None,
    options: Options,
) -> np.ndarray | None:
    """Return the weight of each list, or None without weights.

    `labels` are the keys of the lists, and `true_list` is the entry of each among the ranked lists
    of `true`, -1 for none. `users` is the population where it was given as a frame.
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
            f"{missing.sum():,} of {len(weights):,} lists have no weight, such as {some}; "
            f"weight_col is {WEIGHT_PLACES[source]}, which lacks them"
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
    changes = np.flatnonzero(
        np.minimum.reduceat(weights, start) < np.maximum.reduceat(weights, start)
    )
    if len(changes):
        first = rows.frame_rows(lists.rows(start[changes[:1]]))
        key = rows.frame[as_columns(options.user_col)].iloc[first].to_dict("records")[0]
        raise DataError(
            f"true[{name!r}] is not constant within {len(changes):,} lists, such as {key}; a list "
            "has one weight"
        )
    return weights.take(start)


def _given(users: pd.DataFrame | None, options: Options) -> pd.DataFrame:
    """Return the users and their weights as a frame."""
    if isinstance(options.weight_col, Mapping):
        keys = as_series(list(options.weight_col))
        return pd.DataFrame(
            {as_columns(options.user_col)[0]: keys, "weight": list(options.weight_col.values())}
        )
    assert users is not None
    return users


def _of_frame(
    labels: pd.DataFrame, frame: pd.DataFrame, source: str, options: Options
) -> np.ndarray:
    """Return the weight of each list by the keys of a frame, NaN for a list that it does not
    have."""
    where = "weight_col" if source == "mapping" else f"users[{options.weight_name!r}]"
    weights = read_weights(column(frame, options.weight_name, "users"), where, options)
    return _by_key(labels, frame, weights, (where, "weights"), options)


def user_groups_of(
    labels: pd.DataFrame, users: pd.DataFrame | None, options: Options, name: str
) -> tuple[pd.Index, np.ndarray]:
    """Return the groups that a column of `users=` names, and the number of the group of each list,
    -1 for none."""
    if users is None:
        raise OptionError(f"needs ⟦+users=⟧ (a frame of users with the column {name!r})")
    where = f"users[{name!r}]"
    group, names = pd.factorize(check_labels(column(users, name, "users"), where))
    of_list = _by_key(labels, users, group, (where, "groups"), options)
    return pd.Index(names), np.nan_to_num(of_list, nan=-1).astype(np.int64)


def _by_key(
    labels: pd.DataFrame,
    frame: pd.DataFrame,
    values: np.ndarray,
    said: tuple[str, str],
    options: Options,
) -> np.ndarray:
    """Return the value of each list, of values by the rows of a frame of keys; NaN for a list that
    it does not have.

    `said` is what an error about keys with two values says of the values.
    """
    if not len(frame) or not len(labels):
        return np.full(len(labels), np.nan)
    # A mapping of users, and a frame of them, know nothing of the `by` columns that `true` has too.
    names = [name for name in as_columns(options.user_col) if name in frame]
    keys = [
        [read_ids(table[name], f"{role}[{name!r}]") for name in names]
        for role, table in (("lists", labels), (said[0].partition("[")[0], frame))
    ]
    (of_lists, of_rows), n = encode_keys(keys)
    found, rows = np.full(n, np.nan), of_rows.all()
    found[rows] = values
    differ = found[rows] != values
    if differ.any():
        some = frame[names][differ].head(3).to_dict("records")
        raise DataError(
            f"{said[0]} has two {said[1]} for {len(distinct(rows[differ])):,} users, such as {some}"
        )
    return found.take(of_lists.all())


def item_weights_of(table: ReadRows, rows: np.ndarray, options: Options) -> np.ndarray | None:
    """Return 1/propensity of some rows of `true`, which is what a relevant item counts; None
    without propensities."""
    if options.propensity_col is None:
        return None
    found: np.ndarray = 1 / np.maximum(
        propensities(table, rows, options.propensity_col), options.propensity_floor
    )
    return found

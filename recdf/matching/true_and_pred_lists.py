"""The rows of both frames as lists, and numbers besides gains: of rows, money, ratings, clicks and
purchases; of lists, the weight in a mean.

The lists of `true` have the largest gain first. Those of `pred` are ranked, paired with `true` and
settled, one block of lists after another.

Contract: the lists of all blocks are joined when something reads the item or the row at a place,
which few metrics do. Each array of rows has one entry per recommended row, or per row of `true`, in
the order of the ranked lists.

Weights are finite and at least 0, and every list has one. They come from one place: a column of
`true`, a column of the frame `users`, or a mapping of users to weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame, Series

from ..errors import DataError, OptionError, examples
from ..inputs.codes import IdCodes, encode_keys
from ..inputs.frames import column, float_column, read_values
from ..inputs.ids import as_series, check_labels, read_ids
from ..inputs.options import Options
from ..inputs.sorting import distinct, offsets, place_in_run, run_of
from ..inputs.true_and_pred import ReadRows, read_weights
from .hits import HitArrays, Hits, shared
from .list_keys import KeyColumns
from .ranked import (
    Ranked,
    joined,
)
from .side_tables.catalogue import unique_rows
from .side_tables.sides import CheckedSide

# Columns of `true` that say what users did with an item.
RESPONSES = ("clicks", "purchases")


@dataclass(frozen=True)
class TrueLists:
    """The rows of `true`, one list per key, largest gain first: list i has the rows
    start[i]:start[i + 1]."""

    start: ndarray
    gain: ndarray
    item: ndarray
    row: ndarray  # positions in the frame `true`

    def rows(self, places: ndarray) -> ndarray:
        """Return the positions in the frame of the rows at some places."""
        return self.row.take(places)

    @cached_property
    def n_relevant(self) -> ndarray:
        """Number of relevant rows of each list."""
        return self._n_where(self.gain > 0)

    @cached_property
    def n_judged(self) -> ndarray:
        """Number of judged rows of each list; the rows that nobody judged come last."""
        return self._n_where(self.gain >= 0)

    def _n_where(self, holds: ndarray) -> ndarray:
        return np.diff(self.start if holds.all() else offsets(holds)[self.start])

    @cached_property
    def constant_gain(self) -> bool:
        """Whether all rows have gain 1, as they do without a relevance column."""
        return bool((self.gain == 1.0).all())

    @cached_property
    def key(self) -> ndarray:
        """Number of the list that each row belongs to."""
        return run_of(np.diff(self.start))

    @cached_property
    def ideal(self) -> Hits:
        """The relevant rows of each list, best first, as hits of a list that recommends exactly
        them."""
        return self.ideal_by(self.gain)

    def ideal_by(self, gain: ndarray) -> Hits:
        """Return the ideal lists with other gains, which must descend within each list and keep
        relevant rows first."""
        n = self.n_relevant
        key = run_of(n)
        rank = place_in_run(n)
        rank += 1
        rows = self.start.take(key)
        rows += rank - 1
        return Hits(HitArrays(key, rank, gain.take(rows), rank, rows, rows))

    def kept(self, keep: ndarray) -> tuple[TrueLists, ndarray, ndarray]:
        """Keep the rows where `keep` is true.

        Also return the old place of each row that is kept, and for each old place the number of
        kept rows before it.
        """
        rows = np.flatnonzero(keep)
        to = offsets(keep)
        kept = TrueLists(to[self.start], self.gain[rows], self.item[rows], self.row[rows])
        return kept, rows, to


@dataclass
class PredLists:
    """The lists of `pred`. Places count its rows list after list, best first.

    `start` (n_lists + 1) : first place of each list · `doubtful` : for each doubt about the order,
    the lists for which it holds, and those that were looked at · `code` : code of each list ·
    `first` : row of the table where the list first appears · `n_pairs` : number of judged rows of
    each list · `rank`, `number`, `place`, `true_place` : what `Hits` says of each judged row, by
    ascending place · `repeat` : places whose item stands earlier in the same list · `repeat_list`,
    `repeat_rank` : the list of each repeated row, and its rank before repeated rows were dropped.
    """

    table: ReadRows
    parts: list[Ranked]
    start: ndarray
    doubtful: Mapping[str, int]
    code: ndarray
    first: ndarray
    n_pairs: ndarray
    rank: ndarray
    number: ndarray
    place: ndarray
    true_place: ndarray
    repeat: ndarray
    repeat_list: ndarray
    repeat_rank: ndarray

    def __len__(self) -> int:
        return int(self.start[-1])

    @property
    def lists(self) -> Ranked:
        """The lists with all their rows, in place of those of blocks."""
        if len(self.parts) > 1:
            self.parts = [joined(self.parts)]
        return self.parts[0]

    @property
    def item(self) -> ndarray:
        """Item code at each place."""
        return self.lists.item

    @property
    def as_given(self) -> bool:
        """Whether the places of rows are their positions in the frame."""
        return np.array_equal(self.rows(np.arange(len(self))), np.arange(len(self.table.frame)))

    def rows(self, places: ndarray) -> ndarray:
        """Return the positions in the frame of the rows at some places."""
        return self.table.frame_rows(self.lists.row.take(places))

    @property
    def some_tie(self) -> bool:
        """Whether some list has equal scores, or equal ranks."""
        return any(lists.tied is not None for lists in self.parts)

    @cached_property
    def level(self) -> ndarray | None:
        """A number per place: equal for equal scores of a list, and larger for every later score;
        None without ties."""
        tied = self.lists.tied if self.some_tie else None
        return None if tied is None else np.cumsum(~tied, dtype=np.int32)


# ------------------------------------------------------------------------------------------------
# numbers besides gains


class Values(NamedTuple):
    """The value of each recommended row (as recommended) and of each row of `true` (as bought),
    both in list order."""

    pred: ndarray
    true: ndarray
    where: tuple[str, str]

    def checked(self, negative: str) -> Values:
        """Refuse negative values (refunds), or clip them to 0."""
        if negative == "clip":
            return Values(np.maximum(self.pred, 0.0), np.maximum(self.true, 0.0), self.where)
        for values, where in zip((self.pred, self.true), self.where, strict=True):
            below = values[values < 0]
            if len(below):
                raise DataError(
                    f"{where} holds {len(below):,} negative values ({examples(below)}); "
                    'drop the refunds, or count them as 0: "revenue(negative=clip)@10" in '
                    "evaluate, "
                    'rd.revenue(..., negative="clip")'
                )
        return self


def responses_of(true: DataFrame, name: str) -> ndarray | None:
    """Return the clicks or purchases of each row of `true` from the column of this name; None
    without the column."""
    if name not in true.columns:
        return None
    found = read_values(true, name, "true")
    if len(found) and found.min() < 0:
        below = examples(found[found < 0])
        raise DataError(f"true[{name!r}] holds negative numbers ({below}); expected counts")
    return found


def item_values(
    pred: tuple[ReadRows, Ranked],
    true: tuple[ReadRows, Ranked],
    catalogue: CheckedSide | None,
    items: IdCodes,
    name: str,
) -> Values:
    """Return the values in `value_col`: from the frame itself where it has the column, else from
    the catalogue."""
    of_item = None
    found = []
    where = []
    if catalogue is not None and name in catalogue.frame.columns:
        row_of = unique_rows(items.codes[2], items.n, "items")
        of_item = np.append(read_values(catalogue.frame, name, "items"), np.nan)[row_of]
    for table, lists in (pred, true):
        role = table.role
        if of_item is None or name in table.frame.columns:
            values = read_values(table.frame, name, table.role)
            values = values.take(table.frame_rows(lists.row))
        else:
            values = of_item[lists.item]
            role = "items"
            if n := len(distinct(lists.item[np.isnan(values)])):
                raise DataError(f"items has no {name!r} for {n:,} items of {table.role}")
        found.append(shared(values))
        where.append(f"{role}[{name!r}]")
    return Values(found[0], found[1], (where[0], where[1]))


WEIGHT_PLACES = {
    "true": "a column of true",
    "users": "a column of ⟦users=⟧",
    "mapping": "a mapping",
}


def list_weights(
    labels: KeyColumns,
    rows: ReadRows,
    true: Ranked,
    true_list: ndarray,
    users: DataFrame | None,
    options: Options,
) -> ndarray | None:
    """Return the weight of each list, or None without weights.

    `labels` are the keys of the lists, and `true_list` is the entry of each among the ranked lists
    of `true`, -1 for none. `users` is the population where it was given as a frame.
    """
    source = options.weight_source
    name = options.weight_name
    if source is None:
        return None
    if source == "true":
        given = float_column(rows.frame, name, "true").take(rows.frame_rows(true.row))
        start = true.start[:-1]
        of_list = run_of(np.diff(true.start))
        changes = distinct(of_list[given != given.take(start)[of_list]])
        if len(changes):
            first = rows.frame_rows(true.row[start[changes[:1]]])
            key = rows.frame[options.list_key].iloc[first].to_dict("records")[0]
            raise DataError(
                f"true[{name!r}] is not constant within {len(changes):,} lists, such as {key}; a "
                "list has one weight"
            )
        weights: ndarray = np.append(given.take(start), np.nan)[true_list]
    else:
        if isinstance(options.weight_col, Mapping):
            keys = as_series(list(options.weight_col))
            users = DataFrame({options.list_key[0]: keys, name: list(options.weight_col.values())})
        assert users is not None
        where = "weight_col" if source == "mapping" else f"users[{name!r}]"
        given = read_weights(column(users, name, "users"), where, options)
        weights = _by_key(labels, users, given, (where, "weights"), options)
    missing = np.isnan(weights)
    if missing.any():
        some = ", ".join(map(repr, DataFrame(labels)[missing].head(3).to_dict("records")))
        raise DataError(
            f"{missing.sum():,} of {len(weights):,} lists have no weight, such as {some}; "
            f"weight_col is {WEIGHT_PLACES[source]}, which lacks them"
        )
    return weights


def user_groups_of(
    labels: KeyColumns, users: DataFrame | None, options: Options, name: str
) -> tuple[pd.Index, ndarray]:
    """Return the groups that a column of `users=` names, and the number of the group of each list,
    -1 for none."""
    if users is None:
        raise OptionError(f"needs ⟦+users=⟧ (a frame of users with the column {name!r})")
    where = f"users[{name!r}]"
    group, names = pd.factorize(check_labels(column(users, name, "users"), where))
    of_list = _by_key(labels, users, group, (where, "groups"), options)
    return pd.Index(names), np.nan_to_num(of_list, nan=-1).astype(np.int64)


def _by_key(
    labels: KeyColumns,
    frame: DataFrame,
    values: ndarray,
    said: tuple[str, str],
    options: Options,
) -> ndarray:
    """Return the value of each list, of values by the rows of a frame of keys; NaN for a list that
    it does not have.

    `said` is what an error about keys with two values says of the values.
    """
    # A mapping of users, and a frame of them, know nothing of the `by` columns that `true` has too.
    names = [name for name in options.list_key if name in frame]
    keys = [
        [read_ids(Series(table[name]), f"{role}[{name!r}]") for name in names]
        for role, table in (("lists", labels), (said[0].partition("[")[0], frame))
    ]
    (of_lists, of_rows), n = encode_keys(keys)
    found = np.full(n, np.nan)
    rows = of_rows.all()
    found[rows] = values
    differ = found[rows] != values
    if differ.any():
        some = frame[names][differ].head(3).to_dict("records")
        raise DataError(
            f"{said[0]} has two {said[1]} for {len(distinct(rows[differ])):,} users, such as {some}"
        )
    return found.take(of_lists.all())

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

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame, Series

from ..errors import DataError, OptionError, examples
from ..inputs.codes import IdCodes, encode_keys
from ..inputs.frames import column, float_column, read_numbers, read_values
from ..inputs.ids import as_series, check_labels, read_ids
from ..inputs.options import Options
from ..inputs.sorting import distinct, offsets, place_in_run, run_of, spans
from ..inputs.true_and_pred import OrderDoubt, ReadRows, is_rank, read_weights
from .hits import HitArrays, Hits
from .list_keys import Block, Blocks, KeyColumns
from .pairing import Excluded, Pairs
from .ranked import (
    Ranked,
    joined,
    pair,
    rank_pred,
    refuse_duplicates,
    refuse_ties,
    relevant_last,
    settle_pairs,
    tied_rows,
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
    rows: Callable[[ndarray], ndarray]  # from places to positions in the frame `true`

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
        places = lambda at: self.rows(rows[at])  # noqa: E731
        return TrueLists(to[self.start], self.gain[rows], self.item[rows], places), rows, to


class _Block(NamedTuple):
    """What is kept of one block: arrays as `PredLists` has them, among them rows of `pred` to name
    in a message, which are `tied` or `repeated`; and its lists."""

    arrays: dict[str, ndarray]
    counts: dict[str, int]
    doubtful: dict[str, int]
    lists: Ranked


class PredLists:
    """The lists of `pred`. Places count its rows list after list, best first.

    `code` : code of each list · `first` : row of the table where the list first appears · `start`
    (n_lists + 1) : first place of each list · `n_pairs` : number of judged rows of each list ·
    `rank`, `number`, `place`, `true_place` : what `Hits` says of each judged row, by ascending
    place · `repeat` : places whose item stands earlier in the same list · `repeat_list`,
    `repeat_rank` : the list of each repeated row, and its rank before repeated rows were dropped ·
    `some_tie` : whether some list has equal scores, or equal ranks.
    """

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

    def __init__(
        self,
        table: ReadRows,
        blocks: Blocks,
        items: IdCodes,
        true: Ranked,
        gain: ndarray,
        n_keys: int,
        options: Options,
        excluded: Excluded | None,
        doubts: Mapping[OrderDoubt, str],
    ) -> None:
        """Rank the blocks of a table, and pair them with the lists of `true`, which have these
        gains."""
        self._table, self._items, self._excluded = table, items, excluded
        self._true, self._gain, self._options, self._n_keys = true, gain, options, n_keys
        self._doubts = doubts
        # Where the rows of each key stand in `true`.
        self._true_start, self._true_length = np.zeros((2, n_keys), np.int64)
        self._true_start[true.code] = true.start[:-1]
        self._true_length[true.code] = np.diff(true.start)
        parts = blocks.each(self._measured)
        n_lists = n_rows = 0
        for own in (part.arrays for part in parts):  # places and lists count over all blocks
            own["place"] += np.int32(n_rows)
            own["repeat"] = own["repeat"] + n_rows
            own["repeat_list"] = own["repeat_list"] + n_lists
            n_lists += len(own["code"])
            n_rows += int(own["length"].sum())
        for name in parts[0].arrays:
            setattr(self, name, np.concatenate([part.arrays[name] for part in parts]))
        length, tied, repeated = map(vars(self).pop, ("length", "tied", "repeated"))
        self.start = offsets(length)
        self.counts: Counter[str] = Counter()
        self.doubtful: Counter[str] = Counter()
        for part in parts:
            self.counts.update(part.counts)
            self.doubtful.update(part.doubtful)
        refuse_ties(table, tied, self.counts.pop("tied", 0), options)
        refuse_duplicates(table, repeated, self.counts["pred_duplicates"], options)
        self.some_tie = any(part.lists.level is not None for part in parts)
        self._parts = [part.lists for part in parts]

    def __len__(self) -> int:
        return int(self.start[-1])

    def _ranked(self, block: Block) -> Ranked:
        if self._excluded is not None:
            block = self._excluded.left_of(block, block.code % self._n_keys)
        return rank_pred(self._table, block, self._items, self._options)

    def _paired(self, lists: Ranked) -> Pairs:
        """Find in each list the items that `true` has for its key, or only those that it judges."""
        key = lists.code % self._n_keys
        start = self._true_start.take(key)
        pairs = pair(lists, self._true.item, start, self._true_length.take(key), self._items.n)
        return pairs.where(self._gain[pairs.sought] >= 0) if self._options.judged_only else pairs

    def _measured(self, block: Block) -> _Block:
        options = self._options
        ranked = self._ranked(block)
        lists, pairs = ranked, self._paired(ranked)
        if options.ties == "worst":
            lists, pairs = relevant_last(ranked, pairs, self._gain)
        repeat = repeat_list = repeat_rank = pairs.repeat
        if len(repeat):  # its rank counts all rows of the list that are not condensed away
            n = len(ranked.item)
            left = pairs.has_sought(n) if options.judged_only else np.ones(n, bool)
            repeat = repeat[left[repeat]]
            upto = offsets(left)
            repeat_list = np.searchsorted(ranked.start, repeat, side="right") - 1
            repeat_rank = upto[repeat + 1] - upto[ranked.start[repeat_list]]
        tied = tied_rows(ranked) if options.ties == "raise" else ranked.start[:0]
        repeated = lists.rows(pairs.repeat[: 5 * (options.duplicates == "raise")])
        lists, pairs, counts = settle_pairs(lists, pairs, options)
        if self._excluded is not None:
            counts["pred_excluded"] = len(block.columns[0]) - len(ranked.item)
        if len(tied):
            counts["tied"] = len(tied)
        arrays = {
            "code": lists.code,
            "first": lists.first,
            "length": np.diff(lists.start),
            "n_pairs": pairs.n,
            "rank": pairs.place - np.repeat(lists.start[:-1] - 1, pairs.n),
            "number": 1 + place_in_run(pairs.n),
            "place": pairs.place.astype(np.int32),
            "true_place": pairs.sought.astype(np.int32),
            "repeat": pairs.repeat,
            "repeat_list": repeat_list,
            "repeat_rank": repeat_rank,
            "tied": tied[:1],
            "repeated": repeated,
        }
        return _Block(arrays, counts, self._doubtful(ranked), lists)

    def _doubtful(self, ranked: Ranked) -> dict[str, int]:
        """Count for each doubt about the order the lists for which it holds, and those that were
        looked at ("of counts").

        Lists of two items count from 1 to 2 by chance, so that three are needed there.
        """
        found: dict[str, int] = {}
        for doubt, name in self._doubts.items():
            length = np.diff(ranked.start)
            some = np.flatnonzero(length >= (3 if doubt == "counts" else 2))
            some = some[:: max(len(some) // LOOKED_AT, 1)]
            length, place = length[some], spans(ranked.start[some], length[some])
            start = np.cumsum(length) - length
            within = place_in_run(length)
            before = np.arange(len(place)) - 1
            row = ranked.rows(place)
            table = self._table
            if name == table.number_col and table.number is not None:
                number = table.number.take(row)
            else:
                values = table.frame[name].take(table.frame_rows(row))
                number = read_numbers(values, f"{table.role}[{name!r}]")
            if doubt == "distance":
                holds = number >= 0
            elif doubt == "counts":  # of a list, the last row has the largest score and comes first
                holds = number == np.repeat(length, length) - within
                holds &= (within == 0) | (row < row[before])
            else:
                above = number[before]
                holds = (within == 0) | ~(number < above if is_rank(name) else number > above)
            lists = np.logical_and.reduceat(holds, start) if len(start) else holds
            n = int(np.count_nonzero(lists))
            found |= {doubt: len(some) - n if doubt == "beside" else n, f"of {doubt}": len(some)}
        return found

    @property
    def _lists(self) -> Ranked:
        """The lists with all their rows, in place of those of blocks."""
        if len(self._parts) > 1:
            self._parts = [joined(self._parts)]
        return self._parts[0]

    @property
    def item(self) -> ndarray:
        """Item code at each place."""
        return self._lists.item

    @property
    def as_given(self) -> bool:
        """Whether the rows have the order that they have in the frame."""
        return isinstance(self._lists.row, slice) and self._table.row is None

    def all_rows(self) -> ndarray:
        """Row of the table at each place."""
        return self._lists.all_rows()

    def rows(self, places: ndarray) -> ndarray:
        """Return the positions in the frame of the rows at some places."""
        return self._table.frame_rows(self._lists.rows(places))

    @property
    def level(self) -> ndarray | None:
        """A number per place: equal for equal scores of a list, and larger for every later score;
        None without ties."""
        return self._lists.level if self.some_tie else None


# So many lists of a block are looked at, evenly spread, for an order that is not meant.
LOOKED_AT = 100


# ------------------------------------------------------------------------------------------------
# numbers besides gains


class Rating(NamedTuple):
    """Functions that read the ratings that users gave (per row of `true`) and those predicted (per
    recommended row)."""

    given: Callable[[], ndarray]
    predicted: Callable[[], ndarray]


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


def responses_of(table: ReadRows, lists: Ranked, name: str) -> ndarray | None:
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
    pred: tuple[ReadRows, PredLists],
    true: tuple[ReadRows, Ranked],
    catalogue: CheckedSide | None,
    items: IdCodes,
    options: Options,
) -> Values | None:
    """Return the values in `value_col`: from the frame itself where it has the column, else from
    the catalogue."""
    name = options.value_col
    of_item = None
    found = []
    if name is None:
        return None
    if catalogue is not None and name in catalogue.frame.columns:
        row_of = unique_rows(items.codes[2], items.n, "items")
        of_item = np.append(read_values(catalogue.frame, name, "items"), np.nan)[row_of]
    for table, lists in (pred, true):
        if of_item is None or name in table.frame.columns:
            values = read_values(table.frame, name, table.role)
            values = values.take(table.frame_rows(lists.all_rows()))
        else:
            values = of_item[lists.item]
            if n := len(distinct(lists.item[np.isnan(values)])):
                raise DataError(f"items has no {name!r} for {n:,} items of {table.role}")
        found.append(values)
    return Values(found[0], found[1], (f"pred[{name!r}]", f"true[{name!r}]"))


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
        given = float_column(rows.frame, name, "true").take(rows.frame_rows(true.all_rows()))
        start = true.start[:-1]
        of_list = run_of(np.diff(true.start))
        changes = distinct(of_list[given != given.take(start)[of_list]])
        if len(changes):
            first = rows.frame_rows(true.rows(start[changes[:1]]))
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

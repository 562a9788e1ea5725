"""The rows of both frames as lists, and numbers besides gains: of rows, money, ratings, clicks and
purchases; of lists, the weight in a mean.

The lists of `true` have the largest gain first. Those of `pred` are ranked, paired with `true` and
settled, one block of lists after another.

Contract: the hits and lengths of every block are kept, since most metrics need them. The item and
the row at every place are computed again, by the same steps, when something reads them. Each array
of rows has one entry per recommended row, or per row of `true`, in the order of the ranked lists.

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
from .list_keys import Block, Blocks, KeyColumns, split_codes
from .pairing import Pairs
from .ranked import (
    Ranked,
    joined,
    joined_pairs,
    pair,
    rank_pred,
    refuse_duplicates,
    refuse_ties,
    settle_pairs,
    tied_rows,
)
from .side_tables.sides import Sides

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

    def all_rows(self) -> ndarray:
        """Position in the frame of each row."""
        return self.rows(np.arange(len(self.gain)))

    def kept(self, keep: ndarray) -> tuple[TrueLists, ndarray]:
        """Keep the rows where `keep` is true; also return for each old place the number of kept
        rows before it."""
        rows = np.flatnonzero(keep)
        to = offsets(keep)
        places = lambda at: self.rows(rows[at])  # noqa: E731
        return TrueLists(to[self.start], self.gain[rows], self.item[rows], places), to


@dataclass(frozen=True)
class PredLists:
    """The lists of `pred`, beside the rows of `true` that judge them. Places count the recommended
    rows list after list, best first.

    table, ranked : the rows of `pred`, and the lists of them · pairs : the judged rows, by
    ascending place · repeat_list, repeat_rank : the list of each row that repeats an item, and its
    rank before such rows were dropped · counts : numbers of rows that repeat an item, or are not
    judged · doubtful : for each doubt about the order, the lists for which it holds, and those that
    were looked at.
    """

    table: ReadRows
    ranked: Ranked
    pairs: Pairs
    repeat_list: ndarray
    repeat_rank: ndarray
    counts: Mapping[str, int]
    doubtful: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.ranked.item)

    def rows(self, places: ndarray) -> ndarray:
        """Return the positions in the frame of the rows at some places."""
        return self.table.frame_rows(self.ranked.rows(places))

    def all_rows(self) -> ndarray:
        """Position in the frame of the row at each place."""
        return self.table.frame_rows(self.ranked.all_rows())


class _Block(NamedTuple):
    """The lists of one block with their pairs, the rows of `pred` that repeat an item or tie, and
    counts."""

    ranked: Ranked
    pairs: Pairs
    repeat_list: ndarray
    repeat_rank: ndarray
    repeated: ndarray
    tied: ndarray
    counts: dict[str, int]
    doubtful: dict[str, int]


def rank_lists(
    table: ReadRows,
    blocks: Blocks,
    items: IdCodes,
    true: Ranked,
    gain: ndarray,
    size: tuple[int, int],
    options: Options,
    doubts: Mapping[OrderDoubt, str],
) -> PredLists:
    """Rank the blocks of a table, and pair them with the lists of `true`, which have these gains.
    `size` is the number of keys, and that of values of `by`."""
    # Where the rows of each key stand in `true`.
    true_start, true_length = np.zeros((2, size[0]), np.int64)
    true_start[true.code] = true.start[:-1]
    true_length[true.code] = np.diff(true.start)

    def paired(block: Block) -> _Block:
        lists = rank_pred(table, block, items, options)
        key = split_codes(lists.code, *size)[1]
        pairs = pair(lists, true.item, true_start.take(key), true_length.take(key), items.n)
        if options.judged_only:
            pairs = pairs.where(gain[pairs.sought] >= 0)
        repeat = repeat_list = repeat_rank = pairs.repeat
        if len(repeat):  # its rank counts all rows of the list that are not condensed away
            n = len(lists.item)
            left = pairs.has_sought(n) if options.judged_only else np.ones(n, bool)
            repeat = repeat[left[repeat]]
            upto = offsets(left)
            repeat_list = np.searchsorted(lists.start, repeat, side="right") - 1
            repeat_rank = upto[repeat + 1] - upto[lists.start[repeat_list]]
        settled, pairs, counts = settle_pairs(lists, pairs, gain, options)
        of_repeats = repeat_list, repeat_rank, lists.rows(repeat)
        doubtful = _doubtful(table, lists, doubts)
        return _Block(settled, pairs, *of_repeats, tied_rows(lists), counts, doubtful)

    parts = blocks.each(paired)
    refuse_ties(table, np.concatenate([part.tied for part in parts]), options)
    refuse_duplicates(table, np.concatenate([part.repeated for part in parts]), options)
    ranked = joined([part.ranked for part in parts])
    above = offsets(np.array([len(part.ranked.code) for part in parts]))[:-1]
    own = zip(parts, above, strict=True)
    repeat_list = np.concatenate([part.repeat_list + n for part, n in own])
    counts: Counter[str] = Counter()
    doubtful: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
        doubtful.update(part.doubtful)
    return PredLists(
        table,
        ranked,
        joined_pairs([part.pairs for part in parts], [part.ranked for part in parts]),
        repeat_list,
        np.concatenate([part.repeat_rank for part in parts]),
        counts,
        doubtful,
    )


def _doubtful(table: ReadRows, ranked: Ranked, doubts: Mapping[OrderDoubt, str]) -> dict[str, int]:
    """Count for each doubt about the order the lists for which it holds, and those that were
    looked at ("of counts").

    Lists of two items count from 1 to 2 by chance, so that three are needed there.
    """
    found: dict[str, int] = {}
    for doubt, name in doubts.items():
        length = np.diff(ranked.start)
        some = np.flatnonzero(length >= (3 if doubt == "counts" else 2))
        some = some[:: max(len(some) // LOOKED_AT, 1)]
        length, place = length[some], spans(ranked.start[some], length[some])
        start = np.cumsum(length) - length
        within = place_in_run(length)
        before = np.arange(len(place)) - 1
        row = ranked.rows(place)
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


# So many lists of a block are looked at, evenly spread, for an order that is not meant.
LOOKED_AT = 100


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


def responses_of(table: ReadRows, lists: TrueLists, name: str) -> ndarray | None:
    """Return the clicks or purchases of each row of `true` from the column of this name; None
    without the column."""
    if name not in table.frame.columns:
        return None
    found = read_values(table.frame, name, table.role)
    if len(found) and found.min() < 0:
        below = examples(found[found < 0])
        raise DataError(f"{table.role}[{name!r}] holds negative numbers ({below}); expected counts")
    return found.take(lists.all_rows())


def item_values(table: ReadRows, item: ndarray, rows: ndarray, sides: Sides, name: str) -> ndarray:
    """Return the value of each row in the column `name`: of the frame itself where it has the
    column, else of the catalogue."""
    if name in table.frame.columns or not (
        sides.has("items") and name in sides.items.frame.columns
    ):
        return read_values(table.frame, name, table.role).take(rows)
    row_of = sides.items.row_of
    values: ndarray = np.append(read_values(sides.items.frame, name, "items"), np.nan)[row_of]
    found = values[item]
    if n := len(distinct(item[np.isnan(found)])):
        raise DataError(f"items has no {name!r} for {n:,} items of {table.role}")
    return found


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
            numbers = list(options.weight_col.values())
            users = DataFrame({options.list_key[0]: keys, name: numbers})
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
    rows = of_rows
    found[rows] = values
    differ = found[rows] != values
    if differ.any():
        some = frame[names][differ].head(3).to_dict("records")
        raise DataError(
            f"{said[0]} has two {said[1]} for {len(distinct(rows[differ])):,} users, such as {some}"
        )
    return found.take(of_lists)

"""Match once: two long frames become one record that every metric reads.

Contract: `match` checks the frames, codes the ids, ranks each list, finds the hits, and returns a
`Matched`: arrays in list order, no label among them but the key frames that are put back at the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .errors import (
    ColumnError,
    DataError,
    DuplicateError,
    DuplicateWarning,
    EmptyPopulationError,
    NoOverlapWarning,
    TieError,
    outside_recdf,
)
from .frames import (
    Table,
    as_frame,
    column,
    order_source,
    raw_ratings,
    raw_scores,
    read_pred,
    read_true,
    read_users,
    read_values,
)
from .grouping import group_rows, offsets, pair_within, rank_within, spans
from .ids import Codes, Ids, encode, encode_keys, read_ids
from .knowledge import BaseLists
from .lists import Hits, Matched, Rating, Truth, Values
from .options import Options, as_columns
from .sides import NOTHING, Given, Sides, read_sides


@dataclass(frozen=True)
class Ranked:
    """Rows of a table list after list, best first.

    `code` of each list · `start` (n_lists + 1) · `item` code of each row · `moves` : how the rows came to stand
    where they do, the last move last; row i came from moves[-1][i] before it · `level`: equal for rows of a
    list with equal numbers, None where no two are equal.
    """

    code: np.ndarray
    start: np.ndarray
    item: np.ndarray
    moves: tuple[np.ndarray, ...] = ()
    level: np.ndarray | None = None

    def rows(self, places: np.ndarray) -> np.ndarray:
        """Rows of the table at some places."""
        for move in reversed(self.moves):
            places = move[places]
        return places

    def all_rows(self) -> np.ndarray | None:
        """Row of the table at each place, None where they stand as in the table."""
        return self.rows(np.arange(len(self.item))) if self.moves else None

    def moved(self, places: np.ndarray) -> Ranked:
        """The same lists; the row that comes to stand at i stood at places[i]."""
        level = None if self.level is None else self.level[places]
        return Ranked(self.code, self.start, self.item[places], (*self.moves, places), level)

    def kept(self, keep: np.ndarray) -> Ranked:
        """Only the rows where `keep`; ranks close up, and a list may become empty."""
        return replace(self.moved(np.flatnonzero(keep)), start=offsets(keep)[self.start])


@dataclass(frozen=True)
class Pairs:
    """Recommended rows and the rows of `true` that judge them, by ascending `place`; and repeated rows.

    `place`, `truth` : places in the two `Ranked` · `repeat`, `first` : recommended rows whose item stands
    earlier in the same list, and where.
    """

    place: np.ndarray
    truth: np.ndarray
    repeat: np.ndarray
    first: np.ndarray


def match(
    true: Any, pred: Any, options: Options, given: Given = NOTHING, by_values: pd.DataFrame | None = None
) -> Matched:
    """Check, code, rank and match two frames; `true` may be None for metrics of `pred` alone.

    `by_values` are the distinct `by` values of the whole of which these frames are a part.
    """
    true_frame, pred_frame, options = _frames(true, pred, options)
    order = order_source(pred_frame, options)
    wanted, offered = read_true(true_frame, options), read_pred(pred_frame, order, options)
    asked = None if isinstance(options.users, str) else read_users(options.users, as_columns(options.user_col))
    doors = read_sides(given, options)
    base = doors.tables.get("base")

    true_heads, pred_heads = run_heads(wanted.keys), run_heads(offered.keys + offered.by)
    key_columns = [at_heads(wanted.keys, true_heads), at_heads(offered.keys, pred_heads)]
    key_columns += [] if asked is None else [asked[1]]
    item_columns = [wanted.item, offered.item, *doors.item_ids.values()]
    with ThreadPoolExecutor(1) as other_thread:  # strings take long, and Arrow lets both threads run
        encoding = other_thread.submit(encode, item_columns)
        key_codes, n_keys = encode_keys(key_columns if base is None else [*key_columns, base.keys])
        by_code, by_frame = _encode_by(offered, pred_heads, as_columns(options.by), by_values)
        item_codes = encoding.result()
    side_codes = dict(zip(doors.item_ids, item_codes.codes[2:], strict=True))

    counts = {**wanted.counts, **offered.counts}
    for table in doors.tables.values():
        counts.update(table.counts)
    truth, gain, repeated = _rank_true(wanted, key_codes[0], true_heads, item_codes.codes[0], options, counts)
    first = truth.code if asked is None else pd.unique(key_codes[2])
    only = first if not isinstance(options.users, str) or options.users in ("true", "both") else None
    code = _pair_code(key_codes[1], by_code, n_keys, only)
    shown = _rank_pred(offered, code, pred_heads, item_codes.codes[1], item_codes, options)
    label_row = shown.rows(shown.start[:-1])  # before a list may become empty

    truth_of_key = np.full(n_keys + 1, -1, np.int64)
    truth_of_key[truth.code] = np.arange(len(truth.code))
    pairs = _pair(shown, truth, truth_of_key[shown.code % n_keys], repeated)
    shown, pairs = _settle(shown, pairs, gain, offered, options, counts)
    warn_duplicates(counts, options)
    if not len(pairs.place):
        _warn_no_overlap(wanted, offered, key_codes, item_codes)

    lists = _population(first, shown.code, len(by_frame), n_keys, options)
    if not len(lists):
        raise no_lists(len(wanted), len(offered), options)
    sources = {
        "true": (wanted.frame, truth.code, wanted.frame_rows(truth.rows(truth.start[:-1]))),
        "pred": (offered.frame, shown.code % n_keys, offered.frame_rows(label_row)),
    }
    if asked is not None:
        sources["given"] = (asked[0], key_codes[2], np.arange(len(asked[0])))
    keys = _key_frame(lists % n_keys, n_keys, sources, options)
    sides = Sides(doors, side_codes, item_codes.n, keys, item_codes.rank)
    if base is not None:
        sides.base = _base_lists(base, key_codes[-1], side_codes["base"], item_codes, lists % n_keys, n_keys, options)

    of_list = pd.Index(lists).get_indexer(shown.code)
    start, n_pred = np.zeros(len(lists), np.int64), np.zeros(len(lists), np.int64)
    start[of_list], n_pred[of_list] = shown.start[:-1], np.diff(shown.start)
    list_truth = truth_of_key[lists % n_keys]
    n_relevant = np.diff(offsets(gain > 0)[truth.start])
    group = np.repeat(np.arange(len(shown.code)), np.diff(np.searchsorted(pairs.place, shown.start)))
    return Matched(
        keys=keys,
        by=by_frame,
        list_by=lists // n_keys,
        n_true=np.append(n_relevant, 0)[list_truth],
        n_pred=n_pred,
        start=start,
        item=shown.item,
        as_given=not shown.moves and offered.row is None,
        rows=lambda places: offered.frame_rows(shown.rows(places)),
        tie_level=shown.level,
        list_truth=list_truth,
        truth=Truth(truth.start, gain, truth.item, lambda places: wanted.frame_rows(truth.rows(places)), n_relevant),
        judged=Hits.of(
            of_list[group], pairs.place - shown.start[group] + 1, gain[pairs.truth], pairs.place, pairs.truth
        ),
        n_items=item_codes.n,
        counts=counts,
        order=order,
        catalogue=side_codes.get("items"),
        judged_only=options.judged_only,
        has_true=true is not None,
        repeats_kept=options.duplicates == "keep" and not {"true_duplicates", "pred_duplicates"}.isdisjoint(counts),
        values=_values(wanted, offered, truth, shown, doors.catalogue, item_codes, options),
        repeat=pairs.repeat,
        rating=Rating(
            lambda: raw_ratings(wanted, truth.all_rows(), options),
            lambda: raw_scores(offered, shown.all_rows(), order),
        ),
        sides=sides,
    )


def no_lists(n_true: int, n_pred: int, options: Options) -> EmptyPopulationError:
    """The error for an empty population, given the rows of both frames."""
    return EmptyPopulationError(
        f"there is no list to evaluate: true has {n_true:,} rows, pred {n_pred:,}, "
        f"users={options.spec()['users']!r}" + (f", by={options.by!r}" if options.by else "")
    )


def _frames(true: Any, pred: Any, options: Options) -> tuple[pd.DataFrame, pd.DataFrame, Options]:
    user_cols, by = as_columns(options.user_col), as_columns(options.by)
    names = [*by, *user_cols, options.item_col]
    twice = [name for name in names if names.count(name) > 1]
    if twice or not user_cols:
        raise ColumnError(f"by={by}, user_col={user_cols} and item_col={options.item_col!r} must be distinct columns")
    pred_frame = as_frame(pred, "pred", options.user_col, options.item_col)
    if true is None:  # metrics of `pred` alone: its lists are the population
        for name in [*user_cols, options.item_col]:
            column(pred_frame, name, "pred")
        true_frame = pred_frame[[*user_cols, options.item_col]].iloc[:0]
        users = options.users if not isinstance(options.users, str) else "pred"
        return true_frame, pred_frame, options.updated(users=users, relevance_col=None, min_relevance=None)
    true_frame = as_frame(true, "true", options.user_col, options.item_col)
    if isinstance(true, Mapping):
        if isinstance(options.users, str) and options.users == "true":
            options = options.updated(users=list(true))  # also the users whose list is empty
        if options.relevance_col is None and "relevance" in true_frame.columns:
            options = options.updated(relevance_col="relevance")
    return true_frame, pred_frame, options


# ------------------------------------------------------------------------------------------ list keys


def run_heads(columns: Sequence[Ids]) -> np.ndarray | None:
    """First row of each run of equal keys; None where runs are so short that they save nothing."""
    n = len(columns[0])
    change = np.ones(n, bool)
    if n:
        change[1:] = np.logical_or.reduce([ids.changes() for ids in columns])
    heads = np.flatnonzero(change)
    return heads if 4 * len(heads) <= 3 * n else None


def at_heads(columns: Sequence[Ids], heads: np.ndarray | None) -> list[Ids]:
    return list(columns) if heads is None else [ids.take(heads) for ids in columns]


def _encode_by(
    offered: Table, heads: np.ndarray | None, names: list[str], known: pd.DataFrame | None
) -> tuple[np.ndarray | None, pd.DataFrame]:
    """Code of the `by` value of each row (or head), in order of first appearance or as `known`, and their labels."""
    if not offered.by:
        return None, pd.DataFrame(index=range(1))
    if known is not None:
        first_seen = [read_ids(known[name], f"pred[{name!r}]") for name in names]
        both = encode_keys([first_seen, at_heads(offered.by, heads)])[0]
        return pd.factorize(np.concatenate(both))[0][len(known) :], known
    codes = pd.factorize(encode_keys([at_heads(offered.by, heads)])[0][0])[0]
    first = np.zeros(codes.max(initial=-1) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]  # the last assignment stays: the first row
    rows = first if heads is None else heads[first]
    return codes, _labels(offered, names, rows)


def _labels(table: Table, names: list[str], rows: np.ndarray) -> pd.DataFrame:
    return table.frame[names].take(table.frame_rows(rows)).reset_index(drop=True)


def _pair_code(key: np.ndarray, by: np.ndarray | None, n_keys: int, only: np.ndarray | None) -> np.ndarray:
    """One code per (by, key); -1 for keys that are not among `only`."""
    code = key if by is None else by.astype(np.int64) * n_keys + key
    if only is not None:
        wanted = np.zeros(n_keys, bool)
        wanted[only] = True
        if not wanted.all():
            code = np.where(wanted[key], code, -1)
    return code


def _population(base: np.ndarray, shown: np.ndarray, n_by: int, n_keys: int, options: Options) -> np.ndarray:
    """Codes of the lists of the population, by value after by value."""
    users = options.users if isinstance(options.users, str) else "true"
    if users == "pred":
        return shown[np.argsort(shown // n_keys, kind="stable")]
    lists = (np.arange(n_by)[:, None] * n_keys + base).ravel()
    if users == "both":
        return lists[np.isin(lists, shown)]
    if users == "all":
        further = shown[~np.isin(shown % n_keys, base)]
        lists = np.concatenate([lists, further])
        lists = lists[np.argsort(lists // n_keys, kind="stable")]
    return lists


def _key_frame(
    key: np.ndarray, n_keys: int, sources: dict[str, tuple[pd.DataFrame, np.ndarray, np.ndarray]], options: Options
) -> pd.DataFrame:
    """Labels of the lists' keys, in the dtype of the frame that the population is taken from.

    `sources` are frames, the key codes that they hold, and a row of the frame for each of these.
    """
    names = as_columns(options.user_col)
    users = options.users if isinstance(options.users, str) else "given"
    chosen = [sources[name] for name in {"both": ["true"], "all": ["pred", "true"]}.get(users, [users])]
    alone = len(chosen) == 1  # else only the rows that stand for a key are put together
    row_of, above, frames = np.full(n_keys, -1, np.int64), 0, []
    for frame, codes, rows in chosen:
        frames.append(frame[names] if alone else frame[names].take(rows))
        row_of[codes] = rows if alone else np.arange(len(rows)) + above
        above += len(rows)
    labels = frames[0] if alone else pd.concat(frames, ignore_index=True)
    return labels.take(row_of[key]).reset_index(drop=True)


# ---------------------------------------------------------------------------------- rank, pair, settle


def _all_differ(code: np.ndarray) -> bool:
    """Whether no code (at least 0) stands twice."""
    if not len(code) or code.max() > 64 * len(code):
        return len(pd.unique(code)) == len(code)
    seen = np.zeros(int(code.max()) + 1, bool)
    seen[code] = True
    return int(np.count_nonzero(seen)) == len(code)


def _group(code: np.ndarray, heads: np.ndarray | None, item: np.ndarray) -> Ranked:
    """Bring the rows of each code together, in order of first appearance; rows of code -1 are left out."""
    n = len(item)
    if heads is not None:
        length = np.diff(np.append(heads, n))
        inside = code >= 0
        if _all_differ(code[inside]):
            if inside.all():
                return Ranked(code, np.append(heads, n), item)
            row = spans(heads[inside], length[inside])
            return Ranked(code[inside], offsets(length[inside]), item[row], (row,))
        code = np.repeat(code, length)
    inside = code >= 0
    rows = None if inside.all() else np.flatnonzero(inside)
    codes, start, row = group_rows(code if rows is None else code[rows])
    if rows is not None:
        row = rows[row]
    return Ranked(codes, start, item[row], (row,))


def _ranked(lists: Ranked, number: np.ndarray, descending: bool) -> Ranked:
    """Order each list, best number first and NaN last; `level` tells which numbers are equal."""
    key = number
    for move in lists.moves:
        key = key[move]
    heads = lists.start[(lists.start > 0) & (lists.start < len(key))]
    step = key[1:] < key[:-1] if descending else key[1:] > key[:-1]
    step[heads - 1] = True  # the step into the next list
    if step.all():
        return lists
    if descending:
        flip = np.invert if key.dtype.kind in "iu" else np.negative
        key = flip(key, out=None if key is number else key)
    elif key is number:
        key = number.copy()
    places = rank_within(key, lists.start, sort=True)
    if places is not None:
        lists = lists.moved(places)
    same = key[1:] == key[:-1]
    if key.dtype.kind == "f":
        same |= np.isnan(key[1:]) & np.isnan(key[:-1])
    same[heads - 1] = False
    if not same.any():
        return lists
    return replace(lists, level=np.cumsum(np.append(True, ~same), dtype=np.int32))


def _tie_order(lists: Ranked, second: np.ndarray, by_row: bool = False) -> np.ndarray | None:
    """Places that order the rows of each level by `second` (int64 in 0..2**32), and then by row if asked.

    None if they stand so.
    """
    assert lists.level is not None
    tied = np.unique(np.searchsorted(lists.start, np.flatnonzero(np.diff(lists.level) == 0), side="right") - 1)
    length = np.diff(lists.start)[tied]
    rows = spans(lists.start[tied], length)
    key = (lists.level[rows].astype(np.int64) << 32) + second[rows]
    places = rank_within(key, offsets(length), stable=True)
    ordered = key if places is None else key[places]
    if by_row and (ordered[1:] == ordered[:-1]).any():  # the same item twice with the same number
        places = np.lexsort((lists.rows(rows), key))
    if places is None:
        return None
    order = np.arange(len(lists.item))
    order[rows] = rows[places]
    return order


def _rank_true(
    wanted: Table,
    code: np.ndarray,
    heads: np.ndarray | None,
    item: np.ndarray,
    options: Options,
    counts: dict[str, int],
) -> tuple[Ranked, np.ndarray, np.ndarray]:
    """Lists of `true` by key, largest gain first: the lists, gains, and repeated rows if they are kept."""
    assert wanted.number is not None
    lists = _group(code, heads, item)
    if len(lists.item) and np.ptp(wanted.number) > 0:
        lists = _ranked(lists, wanted.number, descending=True)
    repeat, _, _ = pair_within(lists.item, lists.start, lists.item[:0], np.zeros_like(lists.start))
    if len(repeat) and lists.level is not None:  # of equal gains the first row stays
        order = _tie_order(lists, lists.rows(np.arange(len(lists.item))))
        lists = lists if order is None else lists.moved(order)
        repeat, _, _ = pair_within(lists.item, lists.start, lists.item[:0], np.zeros_like(lists.start))
    if len(repeat):
        counts["true_duplicates"] = len(repeat)
        _refuse_duplicates(wanted, lists, repeat, options)
        if options.duplicates == "drop":
            keep = np.ones(len(lists.item), bool)
            keep[repeat] = False
            lists, repeat = lists.kept(keep), repeat[:0]
    rows = lists.all_rows()
    return lists, wanted.number if rows is None else wanted.number[rows], repeat


def _refuse_duplicates(table: Table, lists: Ranked, repeat: np.ndarray, options: Options) -> None:
    if options.duplicates != "raise":
        return
    rows = lists.rows(repeat[:5])
    shown = list(zip(*[ids.show(rows) for ids in (*table.by, *table.keys, table.item)], strict=True))
    raise DuplicateError(
        f"{table.role} has {len(repeat):,} repeated (list, item) rows of {len(table):,}: "
        f"{', '.join(map(repr, shown))}; "
        'drop them or pass duplicates="drop"'
    )


def _rank_pred(
    offered: Table,
    code: np.ndarray,
    heads: np.ndarray | None,
    item: np.ndarray,
    items: Codes,
    options: Options,
) -> Ranked:
    """Recommended lists, best first, ties settled by everything but relevance."""
    lists = _group(code, heads, item)
    if offered.number is None:
        return lists
    lists = _ranked(lists, offered.number, offered.descending)
    if lists.level is None:
        return lists
    if options.ties == "raise":
        place = np.flatnonzero(np.diff(lists.level) == 0)
        rows = lists.rows(place[:1])
        where = [ids.show(rows)[0] for ids in (*offered.by, *offered.keys)]
        raise TieError(
            f'pred has {len(place):,} items with the score of the item before them, first in list {where}; ties="raise"'
        )
    rank = items.rank()
    value = (lists.item if rank is None else rank[lists.item]).astype(np.int64)
    second = {"row": lists.rows(np.arange(len(lists.item))), "item_asc": value}.get(options.ties, items.n - value)
    order = _tie_order(lists, second, by_row=True)
    return lists if order is None else lists.moved(order)


def _base_lists(
    base: Table,
    code: np.ndarray,
    item: np.ndarray,
    items: Codes,
    key: np.ndarray,
    n_keys: int,
    options: Options,
) -> BaseLists:
    """The baseline's lists, each item once, and which of them belongs to each list of the population."""
    lists = _rank_pred(base, code, None, item, items, options)
    repeat, _, _ = pair_within(lists.item, lists.start, lists.item[:0], np.zeros_like(lists.start))
    if len(repeat):
        _refuse_duplicates(base, lists, repeat, options)
        keep = np.ones(len(lists.item), bool)
        keep[repeat] = False
        lists = lists.kept(keep)
    of_key = np.full(n_keys, -1, np.int64)
    of_key[lists.code] = np.arange(len(lists.code))
    return BaseLists(lists.start, lists.item, of_key[key])


def _pair(shown: Ranked, truth: Ranked, truth_of_list: np.ndarray, repeated: np.ndarray) -> Pairs:
    """Find each list's truth among its items. The j-th of equal items pairs with the j-th of equal rows of truth."""
    if len(truth_of_list) == len(truth.code) and (truth_of_list == np.arange(len(truth.code))).all():
        wanted, wanted_start, wanted_place = truth.item, truth.start, None
    else:
        length = np.append(np.diff(truth.start), 0)[truth_of_list]
        wanted_start = offsets(length)
        wanted_place = spans(truth.start[truth_of_list], length)
        wanted = truth.item[wanted_place]
    repeat, first, found = pair_within(shown.item, shown.start, wanted, wanted_start)
    if len(repeated) and len(repeat):
        found = _pair_repeats(shown, wanted, wanted_start, found, repeat)
    elif len(repeated):
        found[pair_within(wanted, wanted_start, wanted[:0], np.zeros_like(wanted_start))[0]] = -1
    query = np.flatnonzero(found >= 0)
    packed = (found[query].astype(np.int64) << 32) | query  # values sort faster than positions
    packed.sort()
    place, hit = packed >> 32, packed & (2**32 - 1)
    return Pairs(place, hit if wanted_place is None else wanted_place[hit], repeat, first)


def _pair_repeats(
    shown: Ranked, wanted: np.ndarray, wanted_start: np.ndarray, found: np.ndarray, repeat: np.ndarray
) -> np.ndarray:
    """Pair second occurrences with second rows of truth, and so on."""
    item, start, queries = shown.item[repeat], np.searchsorted(repeat, shown.start), np.arange(len(wanted))
    while True:
        again = pair_within(wanted[queries], wanted_start, wanted[:0], np.zeros_like(wanted_start))[0]
        found[queries[again]] = -1
        if not len(again) or not len(repeat):
            return found
        queries, wanted_start = queries[again], np.searchsorted(again, wanted_start)
        deeper, _, at = pair_within(item, start, wanted[queries], wanted_start)
        found[queries] = np.where(at >= 0, repeat[at], -1)
        repeat, item, start = repeat[deeper], item[deeper], np.searchsorted(deeper, start)


def _settle(
    shown: Ranked, pairs: Pairs, gain: np.ndarray, offered: Table, options: Options, counts: dict[str, int]
) -> tuple[Ranked, Pairs]:
    """Apply what needs the pairs: duplicates, condensed lists, and ties with the relevant items last."""
    keep = np.ones(len(shown.item), bool)
    if len(pairs.repeat):
        counts["pred_duplicates"] = len(pairs.repeat)
        _refuse_duplicates(offered, shown, pairs.repeat, options)
        if options.duplicates == "drop":
            keep[pairs.repeat] = False
    if options.judged_only:
        judged = np.zeros(len(keep), bool)
        judged[pairs.place] = True
        judged[pairs.repeat] |= judged[pairs.first]
        counts["pred_unjudged"] = int((keep & ~judged).sum())
        keep &= judged
    if not keep.all():
        to = offsets(keep)
        repeat = keep[pairs.repeat]
        pairs = Pairs(to[pairs.place], pairs.truth, to[pairs.repeat[repeat]], to[pairs.first[repeat]])
        shown = shown.kept(keep)
    if options.ties == "worst" and shown.level is not None:
        grade = np.zeros(len(shown.item), np.int64)
        grade[pairs.place] = np.searchsorted(np.unique(gain[gain > 0]), gain[pairs.truth], side="right")
        grade[pairs.repeat] = grade[pairs.first]
        order = _tie_order(shown, grade)
        if order is not None:
            to = np.empty_like(order)
            to[order] = np.arange(len(order))
            by_place = np.argsort(to[pairs.place])
            pairs = Pairs(to[pairs.place][by_place], pairs.truth[by_place], to[pairs.repeat], to[pairs.first])
            shown = shown.moved(order)
    return shown, pairs


def _values(
    wanted: Table,
    offered: Table,
    truth: Ranked,
    shown: Ranked,
    catalogue: tuple[pd.DataFrame, Ids] | None,
    items: Codes,
    options: Options,
) -> Values | None:
    """Value of each recommended row (as recommended) and of each row of `true` (as bought)."""
    name = options.value_col
    if name is None:
        return None
    of_item = None
    if catalogue is not None and name in catalogue[0].columns:
        codes = items.codes[2]
        if len(pd.unique(codes)) < len(codes):
            raise DataError(f"items has {len(codes) - len(pd.unique(codes)):,} repeated ids; expected one row per item")
        of_item = np.full(items.n, np.nan)
        of_item[codes] = read_values(catalogue[0], name, "items")
    found = []
    for table, lists in ((offered, shown), (wanted, truth)):
        if name in table.frame.columns:
            rows = table.frame_rows(lists.all_rows())
            values = read_values(table.frame, name, table.role)
            found.append(values if rows is None else values[rows])
        elif of_item is None:
            column(table.frame, name, table.role)  # says what there is
        else:
            found.append(of_item[lists.item])
            lacking = np.isnan(found[-1])
            if lacking.any():
                raise DataError(
                    f"items has no {name!r} for {len(np.unique(lists.item[lacking])):,} items of {table.role}"
                )
    return Values(found[0], found[1], (f"pred[{name!r}]", f"true[{name!r}]"))


# ------------------------------------------------------------------------------------------- warnings


def warn_duplicates(counts: dict[str, int], options: Options) -> None:
    repeated = {role: counts[f"{role}_duplicates"] for role in ("true", "pred") if f"{role}_duplicates" in counts}
    if repeated and options.duplicates == "drop":
        found = " and ".join(f"{n:,} of {role}" for role, n in repeated.items())
        warnings.warn(
            f"dropped repeated (list, item) rows: {found}; the best rank and the largest gain stay "
            '(duplicates="keep" counts them, "raise" refuses them); rd.check(true, pred) tells more',
            DuplicateWarning,
            stacklevel=outside_recdf(),
        )


def _warn_no_overlap(wanted: Table, offered: Table, key_codes: list[np.ndarray], items: Codes) -> None:
    """No hit at all: say so if that is because no user, or no item, is in both frames."""
    if not len(wanted) or not len(offered):
        return
    for what, one, two, mine, theirs in (
        ("user", key_codes[0], key_codes[1], wanted.keys[0], offered.keys[0]),
        ("item", items.codes[0], items.codes[1], wanted.item, offered.item),
    ):
        if not np.isin(pd.unique(two), pd.unique(one)).any():
            warn_no_overlap(what, mine, theirs)
            return


def warn_no_overlap(what: str, mine: Ids, theirs: Ids) -> None:
    """Warn that no user, or no item, is in both frames, with two ids of each."""
    samples = [f"{ids.where}: {', '.join(map(repr, ids.show(np.arange(min(2, len(ids))))))}" for ids in (mine, theirs)]
    warnings.warn(
        f"no recommended {what} is in true, so every list scores 0 ({'; '.join(samples)}); "
        "rd.check(true, pred) tells more",
        NoOverlapWarning,
        stacklevel=outside_recdf(),
    )

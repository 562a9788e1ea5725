"""Match once: two long frames become one record that every metric reads.

Contract: `match` checks the frames, codes the ids, ranks each list, finds the hits, and returns a
`Matched`: arrays in list order, without labels except the key frames that results get at the end.
It gives no warnings and accepts an empty population; the caller uses `overlap.warn` and
`overlap.no_lists`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ColumnError, OptionError
from ..inputs.codes import Coded, IdCodes, encode, encode_keys, first_rows
from ..inputs.frames import as_frame, column, read_order
from ..inputs.ids import IdColumn, read_by
from ..inputs.list_cells import refuse_joined
from ..inputs.machine import keep_freed_memory
from ..inputs.options import Options, as_columns
from ..inputs.row_rules import BrokenRows, RowsRefused
from ..inputs.sorting import distinct, run_of
from ..inputs.true_and_pred import (
    Hints,
    Order,
    ReadRows,
    by_in_true,
    hints_of,
    is_rank,
    order_source,
    raw_ratings,
    raw_scores,
    read_pred,
    read_true,
    read_users,
)
from .hits import HitArrays, Hits
from .list_keys import (
    ListCodes,
    at_heads,
    encode_by,
    key_frame,
    key_run_heads,
    place_of,
    population_of,
    split_codes,
)
from .lists import Matched
from .overlap import Overlap, compared, samples_of
from .pairing import Excluded
from .ranked import Ranked, base_lists, pred_blocks, rank_true
from .side_tables.sides import CheckedSides, Sides, read_sides
from .true_and_pred_lists import PredLists, TrueByKey, TrueLists
from .values_and_weights import (
    Rating,
    item_values,
    item_weights_of,
    list_weights,
    responses_of,
    user_groups_of,
)

# Counts of (list, item) pairs that occur twice in the rows that metrics read.
REPEATED = {"true_duplicates", "pred_duplicates"}


def match(
    true: Any,
    pred: Any,
    options: Options,
    given: Mapping[str, Any] | None = None,
    by_values: pd.DataFrame | None = None,
    part: bool = False,
    findings: dict[str, BrokenRows] | None = None,
) -> Matched:
    """Check, code, rank and match two frames; `true` may be None for metrics of `pred` alone.

    Where these frames are a `part` of larger data, `by_values` are the distinct `by` values of all
    of it. `findings` get what is wrong with the rows of each frame; `RowsRefused` then
    stands for the error, which the caller raises for all parts.
    """
    keep_freed_memory()
    rows = _read_true_and_pred(true, pred, options, given or {}, findings)
    refuse_joined(rows.true.item, rows.pred.item, [] if part else [*rows.pred.keys, *rows.pred.by])
    codes = _coded(rows, by_values)
    ranked = _rank_lists(rows, codes)
    return _matched(rows, codes, ranked, compare=not part)


# ------------------------------------------------------------------------------------------------
# read


@dataclass(frozen=True)
class _Rows:
    """Both frames, the given users and the side tables, all checked. `users` are a frame and its
    ids."""

    true: ReadRows
    pred: ReadRows
    users: tuple[pd.DataFrame, list[IdColumn]] | None
    checked: CheckedSides
    order: Order
    hints: Hints
    in_true: list[str]
    options: Options
    has_true: bool
    true_is_mapping: bool


def _read_true_and_pred(
    true: Any,
    pred: Any,
    options: Options,
    given: Mapping[str, Any],
    findings: dict[str, BrokenRows] | None,
) -> _Rows:
    true_frame, pred_frame, options = _both_frames(true, pred, options)
    in_true = by_in_true(true_frame, options)
    options = (
        options.updated(user_col=[*as_columns(options.user_col), *in_true]) if in_true else options
    )
    order = order_source(pred_frame, options)
    true_rows = read_true(true_frame, options, findings)
    pred_rows = read_pred(pred_frame, order, options, findings=findings)
    if findings is not None and any(found.refuses(options) for found in findings.values()):
        raise RowsRefused
    given_ids = options.population.given
    users = None if given_ids is None else read_users(given_ids, as_columns(options.user_col))
    checked = read_sides(given, options)
    hints = hints_of(None if true is None else true_frame, pred_frame, options)
    has_true, is_mapping = true is not None, isinstance(true, Mapping)
    return _Rows(
        true_rows, pred_rows, users, checked, order, hints, in_true, options, has_true, is_mapping
    )


def _both_frames(
    true: Any, pred: Any, options: Options
) -> tuple[pd.DataFrame, pd.DataFrame, Options]:
    user_cols, by = as_columns(options.user_col), as_columns(options.by)
    names = [*by, *user_cols, options.item_col]
    twice = [name for name in names if names.count(name) > 1]
    if twice or not user_cols:
        raise ColumnError(
            f"⟦by={by}⟧, ⟦user_col={user_cols}⟧ and ⟦item_col={options.item_col!r}⟧ must be "
            "distinct columns"
        )
    pred_frame = as_frame(pred, "pred", options.user_col, options.item_col)
    if true is None:  # metrics of `pred` alone: its lists are the population
        if options.judged_only or options.by_in_true:
            raise OptionError(
                f"{'⟦judged_only=True⟧' if options.judged_only else '⟦by_in_true=⟧'} needs ⟦+true=⟧"
            )
        for name in [*user_cols, options.item_col]:
            column(pred_frame, name, "pred")
        true_frame = pred_frame[[*user_cols, options.item_col]].iloc[:0]
        users = "pred" if options.population.given is None else options.users
        unused = {
            "relevance_col": False,
            "min_relevance": None,
            "propensity_col": None,
            "propensity_floor": 0.0,
        }
        return true_frame, pred_frame, options.updated(users=users, **unused)
    true_frame = as_frame(true, "true", options.user_col, options.item_col)
    if isinstance(true, Mapping) and options.population.rule == "true":
        options = options.updated(users=list(true))  # this includes users whose list is empty
    return true_frame, pred_frame, options


# ------------------------------------------------------------------------------------------------
# code


@dataclass(frozen=True)
class _Codes:
    """Codes of the rows. A key has one code in all tables, and so has an item.

    `true_heads` and `pred_heads` are the first rows of runs of equal keys. Where they are given,
    only these rows have codes of keys and `by` values; where they are None, every row has.
    """

    true_heads: np.ndarray | None
    pred_heads: np.ndarray | None
    true_key: Coded
    pred_key: Coded
    users_key: Coded | None
    base_key: Coded | None
    n_keys: int
    by: Coded | None
    by_values: pd.DataFrame
    items: IdCodes
    side_items: dict[str, Coded]

    @property
    def n_by(self) -> int:
        return len(self.by_values)


def _coded(rows: _Rows, by_values: pd.DataFrame | None) -> _Codes:
    base = rows.checked["base"].table if "base" in rows.checked else None
    true_heads, pred_heads = (
        key_run_heads(rows.true.keys),
        key_run_heads(rows.pred.keys + rows.pred.by),
    )
    key_columns = [at_heads(rows.true.keys, true_heads), at_heads(rows.pred.keys, pred_heads)]
    key_columns += [] if rows.users is None else [rows.users[1]]
    key_columns += [] if base is None else [base.keys]
    keys, n_keys = encode_keys(key_columns)
    by, by_frame = encode_by(rows.pred, pred_heads, as_columns(rows.options.by), by_values)
    item_ids = rows.checked.item_ids
    items = encode([rows.true.item, rows.pred.item, *item_ids.values()])
    return _Codes(
        true_heads=true_heads,
        pred_heads=pred_heads,
        true_key=keys[0],
        pred_key=keys[1],
        users_key=None if rows.users is None else keys[2],
        base_key=None if base is None else keys[-1],
        n_keys=n_keys,
        by=by,
        by_values=by_frame,
        items=items,
        side_items=dict(zip(item_ids, items.columns[2:], strict=True)),
    )


# ------------------------------------------------------------------------------------------------
# rank


@dataclass(frozen=True)
class _RankedLists:
    """Ranked lists of both frames, the keys of a population that does not come from `pred`, and
    what was excluded."""

    true: Ranked
    gain: np.ndarray
    pred: PredLists
    keys: np.ndarray
    counts: dict[str, int]
    excluded: Excluded | None


def _rank_lists(rows: _Rows, codes: _Codes) -> _RankedLists:
    options, n_keys, n_by = rows.options, codes.n_keys, codes.n_by
    counts = {**rows.true.counts, **rows.pred.counts}
    excluded = _excluded(rows, codes)
    true, gain = rank_true(
        rows.true, codes.true_key, codes.true_heads, n_keys, codes.items, options, counts, excluded
    )
    in_order = true.code[np.argsort(true.first)]  # in order of first appearance
    keys = in_order if codes.users_key is None else pd.unique(codes.users_key.all())
    # Lists of `pred` outside the population are left out before they are ranked.
    inside = None
    if options.population.knows_its_keys and len(keys) < n_keys:
        inside = np.zeros(n_keys, bool)
        inside[keys] = True
    list_codes = ListCodes(codes.pred_key, codes.by, n_by, n_keys, inside)
    blocks = pred_blocks(
        rows.pred, list_codes, codes.pred_heads, n_keys * n_by, codes.items.columns[1]
    )
    pred = PredLists(
        rows.pred,
        blocks,
        codes.items,
        TrueByKey.of(true, gain, n_keys, n_by),
        options,
        excluded,
        rows.hints.doubts,
    )
    return _RankedLists(true, gain, pred, keys, {**counts, **pred.counts}, excluded)


def _excluded(rows: _Rows, codes: _Codes) -> Excluded | None:
    """Return the rows to leave out, by list key, if there are any."""
    side = rows.checked.get("exclude")
    if side is None or side.table is None:
        return None
    at, item = (
        [as_columns(rows.options.user_col).index(name) for name in side.keys],
        codes.side_items["exclude"],
    )
    true, pred = ([table.keys[i] for i in at] for table in (rows.true, rows.pred))
    frames = (true, codes.true_key, codes.true_heads), (pred, codes.pred_key, codes.pred_heads)
    return Excluded.of(side.table.keys, item, frames, codes.n_keys, codes.items.n)


# ---------------------------------------------------------------------------------------------
# assemble


def _matched(rows: _Rows, codes: _Codes, ranked: _RankedLists, compare: bool) -> Matched:
    options, n_keys, n_by = rows.options, codes.n_keys, codes.n_by
    true, gain, pred, excluded = ranked.true, ranked.gain, ranked.pred, ranked.excluded
    lists = population_of(ranked.keys, pred.code, pred.first, n_by, n_keys, options)
    lists = lists[_agrees(rows, codes, ranked, lists)] if rows.in_true else lists
    list_by, key = split_codes(lists, n_keys, n_by)
    labels = _labels_of_lists(rows, codes, ranked, key)
    true_of_key = np.full(n_keys + 1, -1, np.int64)
    true_of_key[true.code] = np.arange(len(true.code))
    true_list = true_of_key.take(key)
    true_lists = TrueLists(
        true.start, gain, true.item, lambda places: rows.true.frame_rows(true.rows(places))
    )
    users = None if rows.users is None else rows.users[0]
    of_list = place_of(lists, pred.code, n_keys * n_by)
    start, n_pred = np.zeros(len(lists), np.int64), np.zeros(len(lists), np.int64)
    start[of_list], n_pred[of_list] = pred.start[:-1], np.diff(pred.start)
    # Without a column of relevance every gain is 1, which takes no memory.
    gains = (
        np.broadcast_to(1.0, len(pred.true_place))
        if rows.true.number_col is None
        else gain.take(pred.true_place)
    )
    of_pair = np.repeat(of_list, pred.n_pairs)
    pool = HitArrays(of_pair, pred.rank, gains, pred.number, pred.place, pred.true_place)
    side_codes = {
        name: coded.all() for name, coded in codes.side_items.items() if name != "exclude"
    }
    catalogue = rows.checked.get("items")
    sides = Sides(rows.checked, side_codes, codes.items, labels, _base(rows, codes, key))
    n_true = np.append(true_lists.n_relevant, 0).take(true_list)
    in_sides = _in_sides(codes, side_codes, sides)
    if excluded is not None:
        in_sides["exclude user"] = int(np.count_nonzero(excluded.length))
        in_sides["exclude pair"] = ranked.counts["true_excluded"] + ranked.counts["pred_excluded"]
    raw = Rating(
        lambda: raw_ratings(rows.true, true.all_rows(), options),
        lambda: raw_scores(rows.pred, pred.all_rows(), rows.order),
    )
    return Matched(
        keys=labels[[name for name in labels.columns if name not in rows.in_true]]
        if rows.in_true
        else labels,
        by=codes.by_values,
        list_by=list_by,
        n_true=n_true,
        n_pred=n_pred,
        start=start,
        pred_lists=pred,
        true_list=true_list,
        true_lists=true_lists,
        pool=Hits(pool),
        repeats=(of_list.take(pred.repeat_list), pred.repeat_rank),
        n_items=codes.items.n,
        counts=ranked.counts,
        side_counts=rows.checked.counts,
        order=rows.order,
        relevance_col=rows.true.number_col,
        overlap=_overlap(rows, codes, ranked, (true_list, n_true, n_pred), in_sides),
        first={}
        if compare
        else _first_row_of_lists(rows, codes, ranked, (key, true_list, of_list)),
        sides=sides,
        frames=(rows.true.frame, rows.pred.frame),
        judged_only=options.judged_only,
        has_true=rows.has_true,
        repeats_kept=options.duplicates == "keep" and not REPEATED.isdisjoint(ranked.counts),
        n_excluded=None
        if excluded is None
        else lambda inside: excluded.n_distinct(inside).take(key),
        values=item_values(rows.true, rows.pred, true, pred, catalogue, codes.items, options),
        weight=list_weights(labels, rows.true, true, true_list, users, options),
        item_weights=item_weights_of(rows.true, true.all_rows(), options),
        rating=raw,
        responses=cache(lambda name: responses_of(rows.true, true, name)),
        user_groups=cache(partial(user_groups_of, labels, users, options)),
    )


def _first_row_of_lists(
    rows: _Rows,
    codes: _Codes,
    ranked: _RankedLists,
    places: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> dict[str, np.ndarray]:
    """Return, by frame that names the population, the row where each list first stands in it; -1
    for nowhere."""
    key, true_list, of_list = places
    found: dict[str, np.ndarray] = {}
    for role in rows.options.population.frames:
        if role == "true":
            first = np.append(rows.true.frame_rows(ranked.true.first), -1).take(true_list)
        elif role == "pred":
            first = np.full(len(key), -1, np.int64)
            first[of_list] = rows.pred.frame_rows(ranked.pred.first)
        else:
            assert codes.users_key is not None
            first = first_rows(codes.users_key, codes.n_keys).take(key)
        found[role] = first
    return found


def _agrees(rows: _Rows, codes: _Codes, ranked: _RankedLists, lists: np.ndarray) -> np.ndarray:
    """Tell which lists have the same value in `by` and in the key, where `true` has a column of
    `by`."""
    list_by, key = split_codes(lists, codes.n_keys, codes.n_by)
    keys = pd.unique(key)
    labels = _labels_of_lists(rows, codes, ranked, keys)
    pairs = [
        read_by([codes.by_values[name], labels[name]], f"pred[{name!r}]") for name in rows.in_true
    ]
    (of_by, of_key), _ = encode_keys([list(column) for column in zip(*pairs, strict=True)])
    place = np.zeros(codes.n_keys, np.int64)
    place[keys] = of_key.all()
    agrees: np.ndarray = of_by.all()[list_by] == place[key]
    return agrees


def _labels_of_lists(
    rows: _Rows, codes: _Codes, ranked: _RankedLists, key: np.ndarray
) -> pd.DataFrame:
    """Return the labels of each list's key, in the dtype of the frame that the population is taken
    from."""
    true, pred = ranked.true, ranked.pred
    pred_key = split_codes(pred.code, codes.n_keys, codes.n_by)[1]
    sources = {
        "true": (rows.true.frame, true.code, rows.true.frame_rows(true.first)),
        "pred": (rows.pred.frame, pred_key, rows.pred.frame_rows(pred.first)),
    }
    if rows.users is not None and codes.users_key is not None:
        sources["given"] = (rows.users[0], codes.users_key.all(), np.arange(len(rows.users[0])))
    return key_frame(key, codes.n_keys, sources, rows.options)


def _base(rows: _Rows, codes: _Codes, key: np.ndarray) -> Any:
    """Return the lists of the baseline, if there is one."""
    table = rows.checked["base"].table if "base" in rows.checked else None
    if table is None or codes.base_key is None:
        return None
    return base_lists(
        table,
        codes.base_key,
        codes.side_items["base"],
        codes.items,
        key,
        codes.n_keys,
        rows.options,
    )


def _in_sides(codes: _Codes, side_codes: Mapping[str, np.ndarray], sides: Sides) -> dict[str, int]:
    """Tell for each side table whether it has an item of both frames, and of how many lists it has
    the user."""
    seen = np.zeros(codes.items.n if side_codes else 0, bool)
    for coded in codes.items.columns[:2] if side_codes else []:
        seen[coded.all()] = True
    found = {f"{name} item": int(seen[code].any()) for name, code in side_codes.items()}
    return {**found, **{f"{name} user": n for name, n in sides.n_known().items()}}


def _disordered(rows: _Rows, pred: PredLists, name: Any) -> int:
    """Count the lists whose rows are in another order than the scores, or ranks, of a column."""
    number = read_order(rows.pred.frame[name], f"pred[{name!r}]").take(
        pred.rows(np.arange(len(pred)))
    )
    worse = number[1:] < number[:-1] if is_rank(name) else number[1:] > number[:-1]
    of_list = run_of(np.diff(pred.start))
    return len(distinct(of_list[1:][worse & (of_list[1:] == of_list[:-1])]))


def _overlap(
    rows: _Rows,
    codes: _Codes,
    ranked: _RankedLists,
    lists: tuple[np.ndarray, np.ndarray, np.ndarray],
    in_sides: dict[str, int],
) -> Overlap:
    """Compare both frames; `lists` has the number of each list's list of `true`, and its lengths in
    both frames."""
    true_list, n_true, n_pred = lists
    # With nan_score="last" null ranks are repeated by the caller's own choice, so repeated ranks
    # are no warning.
    by_rank = rows.order["by"] == "rank" and rows.options.nan_score != "last"
    of_list, key = split_codes(ranked.pred.code, codes.n_keys, codes.n_by)
    n_judged = np.bincount(of_list, weights=ranked.pred.n_pairs, minlength=codes.n_by).astype(
        np.int64
    )
    shares = bool(n_judged.any())  # only a hit shows so far that users and items are shared
    samples = [
        samples_of(role, one.keys, one.item)
        for role, one in (("true", rows.true), ("pred", rows.pred))
    ]
    overlap = Overlap(
        n_true_rows=len(rows.true) - ranked.counts.get("true_excluded", 0),
        n_pred_rows=len(rows.pred) - ranked.counts.get("pred_excluded", 0),
        n_judged=n_judged,
        n_ranked=len(ranked.pred),
        n_lists=len(true_list),
        n_with_true=int(np.count_nonzero(true_list >= 0)),
        n_with_relevant=int(np.count_nonzero(n_true)),
        n_without_pred=int(np.count_nonzero(n_pred == 0)),
        relevant=bool((ranked.gain > 0).any()),
        has_true=rows.has_true and not rows.true_is_mapping,
        given=rows.users is not None,
        shares_user=shares,
        shares_item=shares,
        by_shares_item=n_judged > 0,
        samples=samples[0] | samples[1] | rows.checked.samples,
        in_sides=in_sides,
        ranks_repeat=by_rank and ranked.pred.some_tie,
        alone=codes.n_by == 1 or bool(np.bincount(key).max(initial=0) <= 1),
        disordered={name: _disordered(rows, ranked.pred, name) for name in rows.hints.unused_order},
        order=[str(rows.order["column"]), rows.hints.doubts.get("beside", "")],
        doubtful=ranked.pred.doubtful,
        swapped=rows.hints.swapped,
        true_by=rows.hints.true_by,
    )
    keys = codes.true_key, codes.pred_key
    return compared(overlap, keys, codes.items, ranked.pred, of_list)

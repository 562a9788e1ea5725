"""Match once: two long frames become one record that every metric reads.

Contract: `match` checks the frames, codes the ids, ranks each list, finds the hits, and returns a
`Matched`: arrays in list order, no label among them but the key frames that are put back at the end.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..errors import (
    ColumnError,
    DataError,
    DuplicateWarning,
    EmptyPopulationError,
    NoOverlapWarning,
    OptionError,
    outside_recdf,
)
from ..inputs.codes import Coded, Codes, encode, encode_keys
from ..inputs.frames import as_frame, column, read_values
from ..inputs.ids import Ids
from ..inputs.options import Options, as_columns
from ..inputs.tables import Table, order_source, raw_ratings, raw_scores, read_pred, read_true, read_users
from ..inputs.threads import each, keep_freed_memory
from .grouping import offsets, spans
from .list_keys import ListCodes, at_heads, encode_by, key_frame, place_of, population_of, run_heads, split
from .lists import Hits
from .matched import Matched, Rating, Truth, Values
from .pred_lists import Shown, Wanted
from .ranked import (
    Ranked,
    joined,
    pred_blocks,
    rank_pred,
    rank_true,
    refuse_duplicates,
    refuse_ties,
    repeats,
    tied_rows,
)
from .side_tables.knowledge import BaseLists
from .side_tables.sides import NOTHING, Given, Sides, read_sides


def match(
    true: Any, pred: Any, options: Options, given: Given = NOTHING, by_values: pd.DataFrame | None = None
) -> Matched:
    """Check, code, rank and match two frames; `true` may be None for metrics of `pred` alone.

    `by_values` are the distinct `by` values of the whole of which these frames are a part.
    """
    keep_freed_memory()
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
    keys, n_keys = encode_keys(key_columns if base is None else [*key_columns, base.keys])
    by_code, by_frame = encode_by(offered, pred_heads, as_columns(options.by), by_values)
    items = encode(item_columns)
    side_items = dict(zip(doors.item_ids, items.columns[2:], strict=True))
    side_codes = {name: column.all() for name, column in side_items.items()}

    counts = {**wanted.counts, **offered.counts}
    for table in doors.tables.values():
        counts.update(table.counts)
    truth, gain = rank_true(wanted, keys[0], true_heads, n_keys, items, options, counts)
    key_of_truth = truth.code[np.argsort(truth.first)]  # in order of first appearance
    first = key_of_truth if asked is None else pd.unique(keys[2].all())
    only = first if not isinstance(options.users, str) or options.users in ("true", "both") else None
    truth_of_key = np.full(n_keys + 1, -1, np.int64)
    truth_of_key[truth.code] = np.arange(len(truth.code))
    population = None
    if only is not None and len(only) < n_keys:
        population = np.zeros(n_keys, bool)
        population[only] = True
    codes = ListCodes(keys[1], by_code, len(by_frame), n_keys, population)
    blocks = pred_blocks(offered, codes, pred_heads, n_keys * len(by_frame), items.columns[1])
    beside = Wanted.by_key(truth, gain, n_keys, len(by_frame))
    shown = Shown(offered, blocks, items, beside, options)
    counts.update(shown.counts)
    warn_duplicates(counts, options)
    if not len(shown.place):
        _warn_no_overlap(wanted, offered, keys, items)
    elif len(by_frame) > 1:
        _warn_silent_recommenders(shown, items.columns[0], by_frame, n_keys)

    lists = population_of(first, shown.code, shown.first, len(by_frame), n_keys, options)
    if not len(lists):
        raise no_lists(len(wanted), len(offered), options)
    if true is not None and not isinstance(true, Mapping):
        strangers = asked is not None and not np.isin(first, truth.code).any()
        warn_no_truth(len(wanted), len(offered), bool((gain > 0).any()), strangers)
    list_by, key = split(lists, n_keys, len(by_frame))
    sources = {
        "true": (wanted.frame, truth.code, wanted.frame_rows(truth.first)),
        "pred": (offered.frame, split(shown.code, n_keys, len(by_frame))[1], offered.frame_rows(shown.first)),
    }
    if asked is not None:
        sources["given"] = (asked[0], keys[2].all(), np.arange(len(asked[0])))
    labels = key_frame(key, n_keys, sources, options)
    sides = Sides(doors, side_codes, items.n, labels, items.rank)
    if base is not None:
        sides.base = _base_lists(base, keys[-1], side_items["base"], items, key, n_keys, options)

    of_list = place_of(lists, shown.code, n_keys * len(by_frame))
    start, n_pred = np.zeros(len(lists), np.int64), np.zeros(len(lists), np.int64)
    start[of_list], n_pred[of_list] = shown.start[:-1], np.diff(shown.start)
    list_truth = truth_of_key.take(key)
    relevant = gain > 0
    n_relevant = np.diff(truth.start if relevant.all() else offsets(relevant)[truth.start])
    # Without a column of relevance every gain is 1, which takes no memory.
    one = np.broadcast_to(1.0, len(shown.truth)) if options.relevance_col is None else None
    return Matched(
        keys=labels,
        by=by_frame,
        list_by=list_by,
        n_true=np.append(n_relevant, 0).take(list_truth),
        n_pred=n_pred,
        start=start,
        shown=shown,
        list_truth=list_truth,
        truth=Truth(truth.start, gain, truth.item, lambda places: wanted.frame_rows(truth.rows(places)), n_relevant),
        judged=Hits(
            list=np.repeat(of_list, shown.n_pairs),
            rank=shown.rank,
            gain=gain.take(shown.truth) if one is None else one,
            number=shown.number,
            place=shown.place,
            truth=shown.truth,
        ),
        n_items=items.n,
        counts=counts,
        order=order,
        catalogue=side_codes.get("items"),
        judged_only=options.judged_only,
        has_true=true is not None,
        repeats_kept=options.duplicates == "keep" and not {"true_duplicates", "pred_duplicates"}.isdisjoint(counts),
        values=_values(wanted, offered, truth, shown, doors.catalogue, items, options),
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
        if options.judged_only:
            raise OptionError("judged_only=True needs true=, which judges")
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


def _base_lists(
    base: Table,
    code: Coded,
    item: Coded,
    items: Codes,
    key: np.ndarray,
    n_keys: int,
    options: Options,
) -> BaseLists:
    """The baseline's lists, each item once, and which of them belongs to each list of the population."""
    blocks = pred_blocks(base, code, None, n_keys, item)
    lists = joined(each(lambda make: rank_pred(base, make(), items, options), blocks))
    tied = tied_rows(lists)
    refuse_ties(base, tied, len(tied), options)
    repeat = repeats(lists, items.n)
    if len(repeat):
        refuse_duplicates(base, lists.rows(repeat[:5]), len(repeat), options)
        keep = np.ones(len(lists.item), bool)
        keep[repeat] = False
        lists = lists.kept(keep)
    of_key = np.full(n_keys, -1, np.int64)
    of_key[lists.code] = np.arange(len(lists.code))
    return BaseLists(lists.start, lists.item, of_key[key])


def _values(
    wanted: Table,
    offered: Table,
    truth: Ranked,
    shown: Shown,
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
            values = read_values(table.frame, name, table.role)
            found.append(values[table.frame_rows(lists.all_rows())])
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


def _warn_no_overlap(wanted: Table, offered: Table, keys: list[Coded], items: Codes) -> None:
    """No hit at all: say so if that is because no user, or no item, is in both frames."""
    if not len(wanted) or not len(offered):
        return
    for what, one, two, mine, theirs in (
        ("user", keys[0], keys[1], wanted.keys[0], offered.keys[0]),
        ("item", items.columns[0], items.columns[1], wanted.item, offered.item),
    ):
        if not np.isin(pd.unique(two.all()), pd.unique(one.all())).any():
            warn_no_overlap(what, mine, theirs)
            return


def warn_no_overlap(what: str, mine: Ids, theirs: Ids) -> None:
    """Warn that no user, or no item, is in both frames, with two ids of each."""
    samples = []
    for ids in (mine, theirs):
        some = list(dict.fromkeys(ids.show(np.arange(min(100, len(ids))))))[:2]
        samples.append(f"{ids.where}: {', '.join(map(repr, some))}")
    warnings.warn(
        f"no recommended {what} is in true, so every list scores 0 ({'; '.join(samples)}); "
        "rd.check(true, pred) tells more",
        NoOverlapWarning,
        stacklevel=outside_recdf(),
    )


def _warn_silent_recommenders(shown: Shown, wanted_item: Coded, by: pd.DataFrame, n_keys: int) -> None:
    """Warn of recommenders that share no user, or no item, with `true`, while others do."""
    of_list = shown.code // n_keys
    n_pairs = np.bincount(of_list, weights=shown.n_pairs, minlength=len(by))
    silent = []
    for value in np.flatnonzero(n_pairs == 0):
        lists = np.flatnonzero(of_list == value)
        rows = spans(shown.start[lists], np.diff(shown.start)[lists])
        if not np.isin(pd.unique(shown.item[rows]), pd.unique(wanted_item.all())).any():
            silent.append(int(value))
    warn_silent(by, silent)


def warn_silent(by: pd.DataFrame, silent: list[int]) -> None:
    """Warn of these rows of `by`, if any: recommenders that share nothing with `true`."""
    if silent:
        some = by.take(silent[:5])
        labels = zip(*(some[name].tolist() for name in some.columns), strict=True)
        named = ", ".join(repr(one[0] if len(one) == 1 else one) for one in labels)
        warnings.warn(
            f"{len(silent):,} of {len(by):,} by values recommend the users of true nothing that is in true, "
            f"and score 0: {named}; rd.check(true, pred, by=...) tells more",
            NoOverlapWarning,
            stacklevel=outside_recdf(),
        )


def warn_no_truth(n_true: int, n_pred: int, relevant: bool, strangers: bool) -> None:
    """Warn if nothing can be a hit because of `true` or of the given users alone."""
    if not n_pred:
        return
    if not n_true:
        reason = "true has no rows"
    elif not relevant:
        reason = "no row of true is relevant"
    elif strangers:
        reason = "none of the given users is in true"
    else:
        return
    warnings.warn(
        f"{reason}, so there can be no hit; rd.check(true, pred) tells more",
        NoOverlapWarning,
        stacklevel=outside_recdf(),
    )

"""Match once: two long frames become one record that every metric reads.

Contract: `match` checks the frames, codes the ids, ranks each list, finds the hits, and returns a
`Matched`: arrays in list order, without labels except the key frames that results get at the end.
It gives no warnings and accepts an empty population; the caller uses `overlap.warn` and
`overlap.no_lists`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame

from ..errors import ColumnError, OptionError
from ..inputs.codes import encode, encode_keys, first_rows
from ..inputs.frames import column, read_frame, read_numbers, read_order
from ..inputs.list_cells import refuse_joined
from ..inputs.machine import keep_freed_memory
from ..inputs.options import ByName, Options, as_columns
from ..inputs.sorting import distinct, flags_at, last_places, offsets, place_in_run, run_of, spans
from ..inputs.true_and_pred import (
    BrokenRows,
    RowsRefused,
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
from .hits import HitArrays, Hits, shared
from .list_keys import (
    Block,
    Blocks,
    KeyColumns,
    at_heads,
    encode_both,
    encode_by,
    key_frame,
    key_run_heads,
    list_codes,
    place_of,
)
from .lists import Matched
from .overlap import Overlap, samples_of
from .pairing import Excluded
from .ranked import (
    Ranked,
    base_lists,
    pair,
    pred_blocks,
    propensities,
    rank_pred,
    rank_true,
    refuse_duplicates,
    refuse_ties,
    relevant_last,
    settle_pairs,
    tied_rows,
)
from .side_tables.sides import Sides, read_sides
from .true_and_pred_lists import (
    PredLists,
    TrueLists,
    item_values,
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
    given: ByName | None = None,
    by_values: DataFrame | None = None,
    part: bool = False,
    findings: dict[str, BrokenRows] | None = None,
) -> Matched:
    """Check, code, rank and match two frames; `true` may be None for metrics of `pred` alone.

    Where these frames are a `part` of larger data, `by_values` are the distinct `by` values of all
    of it. `findings` get what is wrong with the rows of each frame; `RowsRefused` then
    stands for the error, which the caller raises for all parts.
    """
    keep_freed_memory()
    steps = _Steps(true, pred, options, given or {}, findings)
    keys = [] if part else [*steps.pred.keys, *steps.pred.by]
    refuse_joined(steps.true.item, steps.pred.item, keys)
    steps.code(by_values)
    steps.rank()
    return steps.matched(compare=not part)


# So many lists of a block are looked at, evenly spread, for an order that is not meant.
LOOKED_AT = 100


class _Steps:
    """The steps of one match, each of which leaves what it found for the next ones."""

    def __init__(
        self,
        true: Any,
        pred: Any,
        options: Options,
        given: ByName,
        findings: dict[str, BrokenRows] | None,
    ) -> None:
        """Read and check both frames, the given users and the side tables."""
        user_cols = options.list_key
        by = as_columns(options.by)
        names = [*by, *user_cols, options.item_col]
        if len(set(names)) < len(names) or not user_cols:
            raise ColumnError(
                f"⟦by={by}⟧, ⟦user_col={user_cols}⟧ and ⟦item_col={options.item_col!r}⟧ must be "
                "distinct columns"
            )
        pred_frame = read_frame(pred, "pred", options)
        if true is None:  # metrics of `pred` alone: its lists are the population
            if options.judged_only or options.by_in_true:
                asked = "⟦judged_only=True⟧" if options.judged_only else "⟦by_in_true=⟧"
                raise OptionError(f"{asked} needs ⟦+true=⟧")
            names = [*user_cols, options.item_col]
            for name in names:
                column(pred_frame, name, "pred")
            true_frame = pred_frame[names].iloc[:0]
            options = options.updated(
                users="pred" if options.population.given is None else options.users,
                relevance_col=False,
                min_relevance=None,
                propensity_col=None,
                propensity_floor=0.0,
            )
        else:
            true_frame = read_frame(true, "true", options)
            if isinstance(true, Mapping) and options.population.rule == "true":
                options = options.updated(users=list(true))  # also users whose list is empty
        self.in_true = by_in_true(true_frame, options)
        if self.in_true:
            options = options.updated(user_col=[*user_cols, *self.in_true])
        self.options, self.order = options, order_source(pred_frame, options)
        self.true = read_true(true_frame, options, findings)
        self.pred = read_pred(pred_frame, self.order, options, findings=findings)
        if findings is not None and any(found.refuses(options) for found in findings.values()):
            raise RowsRefused
        ids = options.population.given
        # The frame of the given users, and its ids.
        self.users = None if ids is None else read_users(ids, options.list_key)
        self.checked = read_sides(given, options)
        self.hints = hints_of(None if true is None else true_frame, pred_frame, options)
        self.has_true, self.true_is_table = true is not None, not isinstance(true, Mapping | None)

    def code(self, by_values: DataFrame | None) -> None:
        """Give a key one code in all tables, and so an item.

        `true_heads` and `pred_heads` are the first rows of runs of equal keys. Where there are
        any, only these rows have codes of keys and `by` values; where they are None, every row has.
        """
        true = self.true
        pred = self.pred
        base = self.checked.get("base")
        self.true_heads = key_run_heads(true.keys)
        self.pred_heads = key_run_heads(pred.keys + pred.by)
        self.key_ids = [
            at_heads(true.keys, self.true_heads),
            at_heads(pred.keys, self.pred_heads),
        ]
        columns = [*self.key_ids]
        columns += [] if self.users is None else [self.users[1]]
        columns += [] if base is None or base.table is None else [base.table.keys]
        (self.true_key, self.pred_key, *self.other_keys), self.n_keys = encode_keys(columns)
        names = as_columns(self.options.by)
        self.by, self.by_values = encode_by(pred, self.pred_heads, names, by_values)
        self.n_by, sides = len(self.by_values), self.checked.item_ids
        self.items = encode([true.item, pred.item, *sides.values()])
        self.side_items = dict(zip(sides, self.items.columns[2:], strict=True))

    def rank(self) -> None:
        """Rank the lists of both frames, without the rows of `exclude=`, and pair them."""
        options = self.options
        n_keys = self.n_keys
        items = self.items
        side = self.checked.get("exclude")
        self.counts, self.excluded = {**self.true.counts, **self.pred.counts}, None
        if side is not None and side.table is not None:
            at = [options.list_key.index(name) for name in side.keys]
            of_lists = [[ids[i] for i in at] for ids in self.key_ids]
            of_keys = self.true_key, self.pred_key
            item = self.side_items["exclude"]
            self.excluded = Excluded.of(side.table.keys, item, of_lists, of_keys, n_keys, items.n)
        keys = self.true_key, self.true_heads, n_keys
        true, gain = rank_true(self.true, *keys, items, options, self.counts, self.excluded)
        in_order = true.code[np.argsort(true.first)]  # in order of first appearance
        self.population = in_order if self.users is None else pd.unique(self.other_keys[0].all())
        # Lists of `pred` outside the population are left out before they are ranked.
        inside = None
        if "pred" not in options.population.frames and len(self.population) < n_keys:
            inside = flags_at(self.population, n_keys)
        self.true_lists, self.gain = true, gain
        codes = list_codes(self.pred_key, self.by, self.n_by, n_keys, inside)
        self.pred_lists = self._rank_pred(
            pred_blocks(self.pred, codes, self.pred_heads, n_keys * self.n_by, items.columns[1])
        )

    def _rank_pred(self, blocks: Blocks) -> PredLists:
        """Rank the blocks of `pred`, and pair them with the lists of `true`."""
        true = self.true_lists
        # Where the rows of each key stand in `true`.
        self.true_start, self.true_length = np.zeros((2, self.n_keys), np.int64)
        self.true_start[true.code] = true.start[:-1]
        self.true_length[true.code] = np.diff(true.start)
        parts = blocks.each(self._measured)
        counts: Counter[str] = Counter()
        doubtful: Counter[str] = Counter()
        n_lists = n_rows = 0
        for own, found, doubts, _ in parts:  # places and lists count over all blocks
            own["place"] += np.int32(n_rows)
            own["repeat"] = own["repeat"] + n_rows
            own["repeat_list"] = own["repeat_list"] + n_lists
            n_lists += len(own["code"])
            n_rows += int(own["length"].sum())
            counts.update(found)
            doubtful.update(doubts)
        arrays = {name: np.concatenate([own[name] for own, *_ in parts]) for name in parts[0][0]}
        refuse_ties(self.pred, arrays.pop("tied"), counts.pop("tied", 0), self.options)
        repeated = arrays.pop("repeated")
        refuse_duplicates(self.pred, repeated, counts["pred_duplicates"], self.options)
        self.counts |= counts
        start = offsets(arrays.pop("length"))
        return PredLists(self.pred, [lists for *_, lists in parts], start, doubtful, **arrays)

    def _measured(
        self, block: Block
    ) -> tuple[dict[str, ndarray], dict[str, int], dict[str, int], Ranked]:
        """Return what is kept of one block: arrays as `PredLists` has them, among them rows of
        `pred` to name in a message, which are `tied` or `repeated`; counts, doubts and lists."""
        options = self.options
        n_given = len(block.row)
        if self.excluded is not None:
            block = self.excluded.left_of(block, block.code % self.n_keys)
        ranked = rank_pred(self.pred, block, self.items, options)
        key = ranked.code % self.n_keys
        start = self.true_start.take(key)
        pairs = pair(ranked, self.true_lists.item, start, self.true_length.take(key), self.items.n)
        if options.judged_only:  # only the items that `true` judges
            pairs = pairs.where(self.gain[pairs.sought] >= 0)
        lists = ranked
        if options.ties == "worst":
            lists, pairs = relevant_last(ranked, pairs, self.gain)
        repeat = repeat_list = repeat_rank = pairs.repeat
        if len(repeat):  # its rank counts all rows of the list that are not condensed away
            n = len(ranked.item)
            left = pairs.has_sought(n) if options.judged_only else np.ones(n, bool)
            repeat = repeat[left[repeat]]
            upto = offsets(left)
            repeat_list = np.searchsorted(ranked.start, repeat, side="right") - 1
            repeat_rank = upto[repeat + 1] - upto[ranked.start[repeat_list]]
        tied = tied_rows(ranked) if options.ties == "raise" else ranked.row[:0]
        repeated = lists.row[pairs.repeat[: 5 * (options.duplicates == "raise")]]
        lists, pairs, counts = settle_pairs(lists, pairs, options)
        if self.excluded is not None:
            counts["pred_excluded"] = n_given - len(ranked.item)
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
        return arrays, counts, self._doubtful(ranked), lists

    def _doubtful(self, ranked: Ranked) -> dict[str, int]:
        """Count for each doubt about the order the lists for which it holds, and those that were
        looked at ("of counts").

        Lists of two items count from 1 to 2 by chance, so that three are needed there.
        """
        found: dict[str, int] = {}
        for doubt, name in self.hints.doubts.items():
            length = np.diff(ranked.start)
            some = np.flatnonzero(length >= (3 if doubt == "counts" else 2))
            some = some[:: max(len(some) // LOOKED_AT, 1)]
            length, place = length[some], spans(ranked.start[some], length[some])
            start = np.cumsum(length) - length
            within = place_in_run(length)
            before = np.arange(len(place)) - 1
            row = ranked.row[place]
            table = self.pred
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

    def matched(self, compare: bool) -> Matched:
        """Put the lists of the population beside `true`."""
        options, n_keys, true, pred = self.options, self.n_keys, self.true_lists, self.pred_lists
        lists = self._lists_of_population()
        list_by, key = np.divmod(lists, n_keys)
        labels = self._labels(key)
        true_list = last_places(true.code, n_keys).take(key)
        true_lists = TrueLists(
            true.start,
            self.gain,
            true.item,
            self.true.frame_rows(true.row),
        )
        of_list = place_of(lists, pred.code, n_keys * self.n_by)
        start = np.zeros(len(lists), np.int64)
        n_pred = np.zeros(len(lists), np.int64)
        start[of_list], n_pred[of_list] = pred.start[:-1], np.diff(pred.start)
        n_true = np.append(true_lists.n_relevant, 0).take(true_list)
        # Without a column of relevance every gain is 1, which takes no memory.
        gains = (
            np.broadcast_to(1.0, len(pred.true_place))
            if self.true.number_col is None
            else self.gain.take(pred.true_place)
        )
        of_pair = np.repeat(of_list, pred.n_pairs)
        pool = HitArrays(of_pair, pred.rank, gains, pred.number, pred.place, pred.true_place)
        side_codes = {
            name: coded.all() for name, coded in self.side_items.items() if name != "exclude"
        }
        base = self.checked.get("base")
        ranked_base = None
        if base is not None and base.table is not None:
            codes = self.other_keys[-1], self.side_items["base"]
            ranked_base = base_lists(base.table, *codes, self.items, key, n_keys, options)
        sides = Sides(self.checked, side_codes, self.items, labels, ranked_base)
        excluded = self.excluded
        users = None if self.users is None else self.users[0]
        weights = None
        if options.propensity_col is not None:
            given = propensities(self.true, true.row, options.propensity_col)
            weights = shared(1 / np.maximum(given, options.propensity_floor))
        return Matched(
            keys={name: one for name, one in labels.items() if name not in self.in_true},
            by=self.by_values,
            list_by=list_by,
            n_true=n_true,
            n_pred=n_pred,
            start=start,
            pred_lists=pred,
            true_list=true_list,
            true_lists=true_lists,
            pool=Hits(pool),
            repeats=(of_list.take(pred.repeat_list), pred.repeat_rank),
            n_items=self.items.n,
            counts=self.counts,
            side_counts=self.checked.counts,
            order=self.order,
            relevance_col=self.true.number_col,
            overlap=self._overlap((true_list, n_true, n_pred), sides),
            first={} if compare else self._first_rows(key, of_list),
            sides=sides,
            frames=(self.true.frame, self.pred.frame),
            judged_only=options.judged_only,
            has_true=self.has_true,
            repeats_kept=options.duplicates == "keep" and not REPEATED.isdisjoint(self.counts),
            n_excluded=None
            if excluded is None
            else lambda inside: excluded.n_distinct(inside).take(key),
            values=None
            if options.value_col is None
            else item_values(
                (self.pred, pred.lists),
                (self.true, true),
                self.checked.get("items"),
                self.items,
                options.value_col,
            ),
            weight=list_weights(labels, self.true, true, true_list, users, options),
            item_weights=weights,
            ratings=partial(raw_ratings, self.true, options),
            scores=partial(raw_scores, self.pred),
            responses=cache(partial(responses_of, self.true.frame)),
            user_groups=cache(partial(user_groups_of, labels, users, options)),
        )

    def _lists_of_population(self) -> ndarray:
        """Return the codes of the lists of the population, sorted by their `by` value."""
        code, n_keys, rule = self.pred_lists.code, self.n_keys, self.options.population.rule
        base = self.population[: 0 if rule == "pred" else None]
        lists: ndarray = (np.arange(self.n_by)[:, None] * n_keys + base).ravel()
        if rule == "both":
            lists = lists[np.isin(lists, code)]
        if rule in ("pred", "all"):
            seen = code[np.argsort(self.pred_lists.first)]
            lists = np.concatenate([lists, seen[~np.isin(seen % n_keys, base)]])
            lists = lists[np.argsort(lists // n_keys, kind="stable")]
        if not self.in_true:
            return lists
        # Where `true` has a column of `by`, the key and `by` must have the same value of it.
        list_by, key = np.divmod(lists, n_keys)
        keys = pd.unique(key)
        labels = self._labels(keys)
        place = np.zeros(n_keys, np.int64)
        (of_by, of_key), _ = encode_both(self.by_values, labels, self.in_true)
        place[keys] = of_key.all()
        return lists.take(np.flatnonzero(of_by.all()[list_by] == place[key]))

    def _labels(self, key: ndarray) -> KeyColumns:
        """Return the labels of each list's key, in the dtype of the frame that the population is
        taken from."""
        return key_frame(key, self.n_keys, self._sources(), self.options)

    def _sources(self) -> dict[str, tuple[DataFrame, ndarray, ndarray]]:
        """Return each frame that may name the population, the keys of the lists that it has, and
        the row where each of these first stands."""
        true = self.true_lists
        pred = self.pred_lists
        pred_key = pred.code % self.n_keys
        sources = {
            "true": (self.true.frame, true.code, self.true.frame_rows(true.first)),
            "pred": (self.pred.frame, pred_key, self.pred.frame_rows(pred.first)),
        }
        if self.users is not None:
            rows = first_rows(self.other_keys[0], self.n_keys)[self.population]
            sources["given"] = self.users[0], self.population, rows
        return sources

    def _first_rows(self, key: ndarray, of_list: ndarray) -> dict[str, ndarray]:
        """Return, by frame that names the population, the row where each list first stands in it;
        -1 for nowhere."""
        found: dict[str, ndarray] = {}
        sources = self._sources()
        for role in self.options.population.frames:
            _, codes, rows = sources[role]
            of_lists = role == "pred"  # where each key has a list for each value of `by`
            first = np.full(len(key) if of_lists else self.n_keys, -1)
            first[of_list if of_lists else codes] = rows
            found[role] = first if of_lists else first.take(key)
        return found

    def _overlap(self, lists: tuple[ndarray, ndarray, ndarray], sides: Sides) -> Overlap:
        """Compare both frames; `lists` has the number of each list's list of `true`, and its
        lengths in both frames.

        Only a hit shows without more work that users and items are shared. Ids are compared where
        nothing is a hit.
        """
        (true_list, n_true, n_pred), pred = lists, self.pred_lists
        of_list, key = np.divmod(pred.code, self.n_keys)
        n_judged = np.bincount(of_list, pred.n_pairs, self.n_by).astype(np.int64)
        by_shares_item = n_judged > 0
        shares_user = bool(n_judged.any())
        shares_item = shares_user
        if not by_shares_item.all():
            of_true, of_pred = (coded.all() for coded in self.items.columns[:2])
            in_true = flags_at(of_true, self.items.n)
            if shares_user:
                by_shares_item[np.repeat(of_list, np.diff(pred.start))[in_true[pred.item]]] = True
            else:
                shares_item = bool(in_true[of_pred].any())
                known = flags_at(self.true_key.all(), self.n_keys)
                shares_user = bool(known[self.pred_key.all()].any())
        disordered = {}
        for name in self.hints.unused_order:
            same_list = run_of(np.diff(pred.start))
            number = read_order(self.pred.frame[name], f"pred[{name!r}]")
            number = number.take(pred.rows(np.arange(len(pred))))
            worse = number[1:] < number[:-1] if is_rank(name) else number[1:] > number[:-1]
            worse &= same_list[1:] == same_list[:-1]
            disordered[name] = len(distinct(same_list[1:][worse]))
        # Whether each side table has an item of both frames, and of how many lists it has the user.
        in_sides = {f"{name} user": n for name, n in sides.n_known().items()}
        if sides.codes:
            seen = np.zeros(self.items.n, bool)
            for coded in self.items.columns[:2]:
                seen[coded.all()] = True
            items = {f"{name} item": int(seen[code].any()) for name, code in sides.codes.items()}
            in_sides = items | in_sides
        true_gone, pred_gone = (self.counts.get(f"{one}_excluded", 0) for one in ("true", "pred"))
        if self.excluded is not None:
            in_sides["exclude user"] = int(np.count_nonzero(self.excluded.length))
            in_sides["exclude pair"] = true_gone + pred_gone
        samples: dict[str, str] = {}
        if not (len(true_list) and shares_user and shares_item and all(in_sides.values())):
            samples = samples_of("true", self.true.keys, self.true.item)  # a message shows them
            samples |= samples_of("pred", self.pred.keys, self.pred.item) | self.checked.samples
        # With nan_score="last" null ranks are repeated by the caller's own choice, so repeated
        # ranks are no warning.
        by_rank = self.order["by"] == "rank" and self.options.nan_score != "last"
        return Overlap(
            n_true_rows=len(self.true) - true_gone,
            n_pred_rows=len(self.pred) - pred_gone,
            n_judged=n_judged,
            n_ranked=len(pred),
            n_lists=len(true_list),
            n_with_true=int(np.count_nonzero(true_list >= 0)),
            n_with_relevant=int(np.count_nonzero(n_true)),
            n_without_pred=int(np.count_nonzero(n_pred == 0)),
            relevant=bool((self.gain > 0).any()),
            has_true=self.true_is_table,
            given=self.users is not None,
            shares_user=shares_user,
            shares_item=shares_item,
            by_shares_item=by_shares_item,
            samples=samples,
            in_sides=in_sides,
            ranks_repeat=by_rank and pred.some_tie,
            alone=self.n_by == 1 or bool(np.bincount(key).max(initial=0) <= 1),
            disordered=disordered,
            order=[str(self.order["column"]), self.hints.doubts.get("beside", "")],
            doubtful=pred.doubtful,
            swapped=self.hints.swapped,
            true_by=self.hints.true_by,
        )

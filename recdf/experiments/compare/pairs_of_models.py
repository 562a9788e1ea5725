"""Numbers of pairs of models on the same lists: of lists in memory, or of buckets where they lie.

Contract: a bucket has all lists of its units, so that it makes their differences as rows in memory
do, and adds them up. Both give the same record of a pair, of which a row of numbers is made. Only
the width of rounding, and what a user's column looks like, are those of a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...judge.choices import TESTS, PairMissing, Row, TwoPlaces, as_columns
from ...judge.comparability import lists_shorter_than, names_of, other_truth, spec_of_each
from ...judge.comparisons import NUMBERS_OF_BOTH
from ...judge.per_user_columns import (
    Floats,
    Mask,
    by_columns,
    evaluated,
    frame_of,
    group_codes,
    unit_of,
)
from ...judge.users import ModelRows, model_pairs, paired_values, read_model_rows
from ...progress import Progress
from ...stats.resampling import wilcoxon
from ..metric_bounds import (
    DeclaredBounds,
    MetricBounds,
    bounds_of,
    rounding_of,
    seen_bounds,
)
from ..samples import Settings
from .by_segment import Segments
from .cheap_labels import CheapPair, cheap_column, powered_pair
from .paired import UnitSums, add_resamples, comparing, cut_off, paired_test

# Pairs whose differences are resampled together: 32 columns of a million users are 256 MB.
PAIRS_AT_ONCE = 32


class PairSums(NamedTuple):
    """What lists say of a metric and a pair.

    only : lists of one model alone (2) · lacking : lists that each model lacks (2) · totals : Σ w,
    Σ w b and Σ w m, over all lists and over those that both have · units, both : units of the two.
    """

    n_lists: Any
    only: Any
    lacking: Any
    totals: Any
    units: UnitSums
    both: UnitSums

    @classmethod
    def added(cls, parts: Sequence[PairSums]) -> PairSums:
        """Those of all parts."""
        *numbers, units, both = zip(*parts, strict=True)
        n_lists, only, lacking, totals = (np.sum(one, axis=0) for one in numbers)
        added = map(UnitSums.added, (units, both))
        return cls(n_lists, only, lacking, totals, *added)


def read_pair(
    metric: str,
    table: Floats,
    pair: TwoPlaces,
    runs: ModelRows,
    missing: PairMissing,
    has: Mask | None,
    takes_zero: bool = True,
) -> tuple[PairSums, tuple[Any, ...]]:
    """The record of a metric and a pair, which adds up over parts; and what its lists say: the
    values of two models by cell, NaN in both or in none, those where both have lists, units' sums
    of differences with what each is divided by, and how large rounding can be for a unit."""
    base, model, only = paired_values(metric, table, pair, runs, missing, takes_zero)
    sums, divisor = runs.unit_sums(runs.per_list(model - base))
    tolerance = rounding_of(base, model)
    limit = tolerance if divisor is None else tolerance * divisor
    sums = np.where(np.abs(sums) > limit, sums, 0.0)
    units = both = UnitSums.of(*runs.units_there(sums, divisor))
    there = ~np.isnan(base)
    lacking = np.zeros(2, np.int64)
    values = [base, model]
    if has is not None:
        own = has[[*pair]]
        lacking = (there & ~own & own[::-1]).sum(axis=1)
        values = [np.where(own.all(axis=0), one, np.nan) for one in values]
        difference = runs.per_list(values[1] - values[0])
        both = UnitSums.of(*runs.units_there(*runs.unit_sums(difference)))
    totals = []
    for both_models in ([base, model], values):
        (of_base, weight), (of_model, _) = map(runs.total, both_models)
        totals.append([weight, of_base, of_model])
    n_lists = np.count_nonzero(there)
    found = PairSums(n_lists, np.array(only), lacking, np.array(totals), units, both)
    return found, ([base, model], values, (sums, divisor), tolerance)


def row_of_pair(
    metric: str,
    models: Sequence[Any],
    pair: TwoPlaces,
    found: PairSums,
    bounds: MetricBounds | None,
    settings: Settings,
    repeated: bool,
    unlike: Mapping[str, Any],
    cheap: Sequence[CheapPair] = (),
) -> Row:
    """The numbers of a pair, and what the two models do not share. `cheap` is what cheap labels
    make of all lists, and perhaps of those that both have."""
    only = found.only.tolist()
    lacking = found.lacking.tolist()
    means, means_both = (
        [total / weight if weight else np.nan for total in two]
        for weight, *two in found.totals.tolist()
    )
    ends, powered = None, Row()
    if cheap:
        (*means,), ends, powered = cheap[0]
    tested = paired_test(found.units, metric, settings, repeated, ends)
    row = tested | {
        "metric": metric,
        "baseline": models[pair[0]],
        "model": models[pair[1]],
        "n_lists": int(found.n_lists),
        "n_only_baseline": only[0],
        "n_only_model": only[1],
        "mean_baseline": means[0],
        "mean_model": means[1],
        "reach": np.nan if bounds is None else bounds[1] - bounds[0],
        "rel_diff": means[1] / means[0] - 1 if means[0] > 0 else np.nan,
        "n_lacking_baseline": lacking[0],
        "n_lacking_model": lacking[1],
        **unlike,
        **powered,
        "powered": bool(cheap),
    }
    if any(lacking):
        n = found.both.n
        estimate = found.both.tested()[1]
        numbers: list[Any] = [*means_both, np.nan, np.nan]
        if n > 1:
            numbers[2:] = estimate.mean, np.sqrt(estimate.var)
        for own, ends, _ in cheap[1:]:
            if ends is not None:
                numbers = [*own, ends.mean, ends.se]
        row |= zip(NUMBERS_OF_BOTH, [n, *numbers], strict=False)
    # With missing="drop" the models themselves select the lists.
    dropped = "different_lists" * (settings.missing == "drop" and any(only))
    met = [one.get("remarks") for one in (tested, unlike, powered)]
    return row | {"remarks": "; ".join(filter(None, [*met, dropped]))}


class ModelLists(NamedTuple):
    """The columns of the lists of models: their key, folds, the model, and units and a weight if
    they are named."""

    keys: list[str]
    folds: list[str]
    model_col: str
    units: list[str]
    weight_col: str | None

    def read(self, per_user: Any, least: int = 2) -> ModelRows:
        runs = read_model_rows(per_user, *self[:4], least)
        return runs if self.weight_col is None else runs.weighted(self.weight_col)


# The label of every segment, as a frame of one row, with a row of numbers per metric and pair.
SegmentTables = list[tuple[DataFrame, list[Row]]]


class PairsInMemory:
    """The models of rows in memory, within segments if there are any.

    A segment without two models, or without the baseline, is left out: there is nothing to compare.
    `taken` are names of columns that a comparison has.
    """

    def __init__(
        self,
        per_user: Any,
        columns: ModelLists,
        within: Segments,
        baseline: Any,
        taken: Sequence[str],
    ) -> None:
        self.baseline, self.runs, mapped = baseline, [], isinstance(per_user, Mapping)
        if not within.names or (mapped and not per_user):
            self.runs.append((DataFrame(index=[0]), columns.read(per_user)))
        else:
            given = per_user if mapped else {"per_user": per_user}
            frames = {
                name: within.of_rows(frame_of("per_user", one)) for name, one in given.items()
            }
            for frame in frames.values():
                by_columns(frame, "per_user", within.names, taken)
            unknown, found = within.split([*frames.values()])
            within.warn_unknown(*unknown)
            for label, rows in found:
                pairs = zip(frames.items(), rows, strict=True)
                own = {name: frame.take(of) for (name, frame), of in pairs if len(of)}
                runs = columns.read(own if mapped else own["per_user"], least=0)
                if len(runs.models) > 1 and baseline in (None, *runs.models):
                    self.runs.append((label, runs))
            if not self.runs:
                raise within.nothing_to_compare(baseline)
        self.parts = self.runs[0][1].parts

    def tables(
        self,
        names: list[str],
        settings: Settings,
        declared: DeclaredBounds,
        progress: bool | None,
    ) -> SegmentTables:
        """The label of every segment, with a row of numbers per metric and pair."""
        n_tests = [len(names) * len(model_pairs(own.models, self.baseline)) for _, own in self.runs]
        resampled = TESTS[settings.tests[names[0]]].resampled
        steps = [-(-n // PAIRS_AT_ONCE) if resampled else len(names) for n in n_tests]
        with Progress(sum(steps), "compare_models", progress) as shown:
            return [
                (label, pairs_in_memory(names, own, self.baseline, settings, declared, shown))
                for label, own in self.runs
            ]


def pairs_in_memory(
    names: list[str],
    runs: ModelRows,
    baseline: Any,
    settings: Settings,
    declared: DeclaredBounds,
    progress: Progress,
) -> list[Row]:
    """One row of numbers per metric and pair."""
    pairs = model_pairs(runs.models, baseline)
    frames = [frame for _, frame in runs.parts]
    specs = [evaluated(frame) for frame in frames]
    n_true, n_pred = (
        runs.table(name)
        if all(name in frame for frame in frames)
        else np.full((len(runs.models), runs.n_cells), np.nan)
        for name in ("n_true", "n_pred")
    )
    unlike = comparing(
        names_of(specs[0], runs.models),
        specs if len(specs) == len(runs.models) else spec_of_each(specs[0], runs.models),
        lambda pair, whole: other_truth(n_true[pair], whole),
        lambda pair, k: lists_shorter_than(n_pred[pair], k),
    )
    has = has_lists(n_pred)
    rows: list[Row] = []
    waiting: list[tuple[Row, tuple[Floats, Floats | None]]] = []
    test = settings.tests[names[0]]

    for name in names:
        table = runs.table(name)
        cheap_table = None
        if all(cheap_column(name) in frame for frame in frames):
            cheap_table = runs.table(cheap_column(name))
        bounds = bounds_of(name, declared, table, *([] if cheap_table is None else [cheap_table]))
        for pair in pairs:
            given = runs, settings.missing, has, cheap_table is None
            found, (values, values_both, sums, tolerance) = read_pair(name, table, pair, *given)
            cheap = []  # of all lists, and of those that both have
            if cheap_table is not None:
                both = paired_values(cheap_column(name), cheap_table, pair, *given[:2], False)[:2]
                known = [~np.isnan([one[i] for one in (table, cheap_table)]) for i in pair]
                # Lists of one model alone are those without a value of one kind.
                lone = ((one & ~other).any(axis=0).sum() for one, other in (known, known[::-1]))
                found = found._replace(only=np.array([*lone]))
                more = runs, settings.confidence, bounds or seen_bounds(table, cheap_table)
                cheap.append(powered_pair(values, both, *more))
                if has is not None and found.lacking.any() and found.both.n > 2:
                    shared = has[[*pair]].all(axis=0)
                    both_have = [np.where(shared, one, np.nan) for one in both]
                    cheap.append(powered_pair(values_both, both_have, *more))
            of = bounds, settings, runs.repeated, unlike(name, *pair), cheap
            row = row_of_pair(name, runs.models, pair, found, *of)
            if test == "wilcoxon" and row["se"] > 0:
                d, by = runs.units_there(*sums)
                d = d if by is None else d / by
                row |= wilcoxon(d, settings.alternative, tolerance)
            rows.append(row)
            if TESTS[test].resampled and row["se"] > 0:
                waiting.append((row, sums))
            # One set of weights serves many pairs; the differences of all pairs would not fit in
            # memory.
            if len(waiting) == PAIRS_AT_ONCE:
                add_resamples(waiting, test, settings)
                waiting.clear()
                progress.add()
        if not TESTS[test].resampled:
            progress.add()
    if waiting:
        add_resamples(waiting, test, settings)
    return rows


def has_lists(n_pred: Floats) -> Mask | None:
    """Return which lists of each model have recommendations, if some are known to have none."""
    return n_pred > 0 if (n_pred == 0).any() else None


class BucketPairs(NamedTuple):
    """What a bucket gives: of each metric and pair; of each metric its smallest and its largest
    value; of each pair and cut-off; of each pair the lists of another truth, without and with a
    population that is that of the truth; and which models have lists."""

    sums: dict[tuple[str, int, int], PairSums]
    seen: dict[str, MetricBounds]
    short: dict[tuple[int, ...], Floats]
    truth: dict[tuple[int, ...], Floats]
    repeated: bool
    there: Mask


class ChangedRows:
    """A result in buckets whose rows are changed before anything is made of them.

    reads, gives : the columns that `change` needs, and those that it makes.
    """

    def __init__(
        self,
        result: Any,
        change: Callable[[DataFrame], DataFrame],
        reads: Sequence[str],
        gives: Mapping[str, Any],
    ) -> None:
        self.result, self.change, self.reads, self.gives = result, change, reads, gives
        self.spec, self.by_values = result.spec, result.by_values
        self.empty_rows = result.empty_rows.assign(
            **{name: pd.Series([], dtype=dtype) for name, dtype in gives.items()}
        )

    def each_bucket(
        self, work: Callable[[DataFrame], Any], columns: Sequence[str], keys: Sequence[str]
    ) -> list[Any]:
        own = [name for name in dict.fromkeys([*columns, *self.reads]) if name not in self.gives]
        return list(self.result.each_bucket(partial(_changed, self.change, work), own, keys))


def _changed(
    change: Callable[[DataFrame], DataFrame],
    work: Callable[[DataFrame], Any],
    rows: DataFrame,
) -> Any:
    return work(change(rows))


def pairs_of_bucket(
    columns: ModelLists,
    models: list[Any],
    pairs: list[TwoPlaces],
    metrics: list[str],
    cuts: list[int],
    missing: PairMissing,
    within: Segments,
    rows: DataFrame,
) -> tuple[tuple[int, int], dict[tuple[Any, ...], BucketPairs]]:
    """Make the differences of the units of one bucket in every segment, and add them up.

    Returns how many rows have no segment, and of how many, and what the others give by segment.
    """

    def of_segment(rows: DataFrame) -> BucketPairs:
        code = pd.Index(models).get_indexer(pd.Index(rows[columns.model_col]))
        runs = columns.read({name: rows[code == i] for i, name in enumerate(models)})
        n_true = runs.table("n_true")
        n_pred = runs.table("n_pred")
        has = has_lists(n_pred)
        tables = {metric: runs.table(metric) for metric in metrics}
        return BucketPairs(
            {
                (metric, *pair): read_pair(metric, table, pair, runs, missing, has)[0]
                for metric, table in tables.items()
                for pair in pairs
            },
            {metric: seen_bounds(table) for metric, table in tables.items()},
            {(*pair, k): lists_shorter_than(n_pred[[*pair]], k) for pair in pairs for k in cuts},
            {
                (*pair, whole): np.array(other_truth(n_true[[*pair]], whole))
                for pair in pairs
                for whole in (False, True)
            },
            runs.repeated,
            np.isin(np.arange(len(models)), code),
        )

    if not within.names:
        return (0, len(rows)), {(): of_segment(rows)}
    unknown, parts = within.split([rows])
    return unknown, {
        next(label[within.names].itertuples(index=False, name=None)): of_segment(rows.take(own))
        for label, (own,) in parts
    }


class PairsInBuckets:
    """The models of an engine's result, as `PairsInMemory` has those of rows in memory."""

    def __init__(
        self,
        result: Any,
        columns: ModelLists,
        within: Segments,
        baseline: Any,
        taken: Sequence[str],
    ) -> None:
        if within.known is not None:
            result = ChangedRows(result, within.of_rows, within.keys, within.dtypes)
        self.result, self.columns, self.within = result, columns, within
        self.baseline, empty = baseline, result.empty_rows
        self.parts = [("per_user", empty)]
        by_columns(empty, "per_user", within.names, taken)
        _, labels = group_codes(result.by_values, "per_user", [columns.model_col])
        self.models = labels[columns.model_col].tolist()
        # What is wrong with the columns, or with the models, shows without a row.
        columns.read(dict.fromkeys(self.models, empty))

    def tables(
        self,
        names: list[str],
        settings: Settings,
        declared: DeclaredBounds,
        progress: bool | None,
    ) -> SegmentTables:
        """Those of segments that have something to compare."""
        pairs = model_pairs(self.models, self.baseline)
        by = self.within.names
        cuts = {cut_off(self.result.spec, name) for name in names}
        work = partial(
            pairs_of_bucket,
            self.columns,
            self.models,
            pairs,
            names,
            [k for k in cuts if k is not None],
            settings.missing,
            self.within,
        )
        keys, folds, model_col, units, weight = self.columns
        units = units or unit_of(keys)
        used = [model_col, *keys, *folds, *units, "n_true", "n_pred", *names, *by]
        used += as_columns(weight)
        given = self.result.each_bucket(work, list(dict.fromkeys(used)), units)
        self.within.warn_unknown(*np.sum([n for n, _ in given], axis=0))
        by_label: dict[tuple[Any, ...], list[BucketPairs]] = {}
        for _, found in given:
            for label, one in found.items():
                by_label.setdefault(label, []).append(one)
        dtypes = dict(self.result.empty_rows[by].dtypes)
        frame = DataFrame(list(by_label), columns=by).astype(dtypes)
        code, labels = group_codes(frame, "per_user", by)
        tables = []
        given = list(by_label.values())
        for i, place in enumerate(np.argsort(code)):
            parts = given[place]
            there = np.any([one.there for one in parts], axis=0)
            own = [pair for pair in pairs if there[[*pair]].all()]
            if own:
                found = self._rows(names, own, settings, declared, parts)
                tables.append((labels.iloc[[i]], found))
        if not tables:
            raise self.within.nothing_to_compare(self.baseline)
        return tables

    def _rows(
        self,
        names: list[str],
        pairs: list[TwoPlaces],
        settings: Settings,
        declared: DeclaredBounds,
        parts: list[BucketPairs],
    ) -> list[Row]:
        """One row of numbers per metric and pair of one segment."""
        unlike = comparing(
            names_of(self.result.spec, self.models),
            spec_of_each(self.result.spec, self.models),
            lambda pair, whole: np.sum([one.truth[*pair, whole] for one in parts], axis=0),
            lambda pair, k: np.sum([one.short[*pair, k] for one in parts], axis=0),
        )
        repeated = any(one.repeated for one in parts)
        rows = []
        for name in names:
            bounds = bounds_of(name, declared, np.array([one.seen[name] for one in parts]))
            for pair in pairs:
                found = PairSums.added([one.sums[name, *pair] for one in parts])
                more = unlike(name, *pair)
                rows.append(
                    row_of_pair(name, self.models, pair, found, bounds, settings, repeated, more)
                )
        return rows

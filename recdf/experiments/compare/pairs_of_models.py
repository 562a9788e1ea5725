"""Numbers of pairs of models on the same lists: of lists in memory, or of buckets where they lie.

Contract: a bucket has all lists of its units, so that it makes their differences as rows in memory
do, and adds them up. Both give the same record of a pair, of which a row of numbers is made. Only
the width of rounding, and what a user's column looks like, are those of a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...judge.choices import TESTS, AnySpec, Row, TwoPlaces, as_columns
from ...judge.comparability import lists_shorter_than, names_of, other_truth, spec_of_each
from ...judge.comparisons import NUMBERS_OF_BOTH
from ...judge.per_user_columns import (
    Floats,
    Mask,
    evaluated,
    group_codes,
    split,
    unit_of,
)
from ...judge.users import ModelRows, model_pairs, paired_values, read_model_rows
from ...progress import Progress
from ...stats.resampling import wilcoxon
from ..join.join_experiment import zero_is_worst
from ..metric_bounds import (
    MetricBounds,
    bounds_of,
    rounding_of,
    seen_bounds,
)
from ..samples import Settings
from .by_segment import Segments
from .cheap_labels import CheapPair, cheap_column, powered_pair
from .paired import (
    CountsOfLists,
    UnitSums,
    add_resamples,
    cut_off,
    paired_test,
    unlikeness,
)

# Pairs whose differences are resampled together: 32 columns of a million users are 256 MB.
PAIRS_AT_ONCE = 32


class PairSums(NamedTuple):
    """What lists say of a metric and a pair.

    numbers : counts of lists (`_COUNTS`); Σ w, Σ w b and Σ w m, and these three over the lists that
    both models have · units, both : units of all lists, and of those that both have · cheap : what
    cheap labels make of all lists, and perhaps of those that both have.
    """

    numbers: Floats
    units: UnitSums
    both: UnitSums
    cheap: Sequence[CheapPair] = ()

    def without_top(self) -> PairSums:
        """The same without the differences that leave out the farthest units."""
        units, both = (one._replace(without_top=np.nan) for one in (self.units, self.both))
        return self._replace(units=units, both=both)

    @classmethod
    def added(cls, parts: Sequence[PairSums]) -> PairSums:
        """Those of all parts. Cheap labels do not add up: where there are some, there is one
        part."""
        numbers, units, both, cheap = zip(*parts, strict=True)
        return cls(np.sum(numbers, axis=0), UnitSums.added(units), UnitSums.added(both), cheap[0])


_COUNTS = "n_lists", "n_only_baseline", "n_only_model", "n_lacking_baseline", "n_lacking_model"


class ListPairs(NamedTuple):
    """What some lists say.

    sums : of each metric and pair · seen : the smallest and the largest value of each metric
    · counts : what lists do not share · repeated : whether a unit repeats · there : which models
    have lists.
    """

    sums: dict[tuple[str, int, int], PairSums]
    seen: dict[str, MetricBounds]
    counts: CountsOfLists
    repeated: bool
    there: Mask


class ComparedModels(NamedTuple):
    """The pairs of models that are compared by some metrics, and what each was evaluated with."""

    models: list[Any]
    baseline: Any
    specs: Sequence[AnySpec]
    metrics: Sequence[str]
    settings: Settings

    @property
    def pairs(self) -> list[TwoPlaces]:
        return model_pairs(self.models, self.baseline)

    @property
    def spec_of(self) -> Sequence[AnySpec]:
        """The record of every model."""
        each = len(self.specs) == len(self.models)
        return self.specs if each else spec_of_each(self.specs[0], self.models)

    def of_lists(self, runs: ModelRows, there: Mask) -> ListPairs:
        """What the lists say; without cheap labels it adds up over buckets."""
        frames = [frame for _, frame in runs.parts]
        n_true, n_pred = (
            runs.table(name)
            if all(name in frame for frame in frames)
            else np.full((len(runs.models), runs.n_cells), np.nan)
            for name in ("n_true", "n_pred")
        )
        cuts = [cut_off(*one) for one in product(self.spec_of, self.metrics)]
        found = ListPairs({}, {}, {}, runs.repeated, there)
        for pair in self.pairs:
            base, own = (self.spec_of[i] for i in pair)
            users = {one.get("options", {}).get("users") for one in (base, own)}
            # Whether the population of both is that of the truth.
            whole = base.get("by", 0) == own.get("by", 1) and users <= {"true", "all"}
            found.counts[pair] = np.array(other_truth(n_true[[*pair]], whole))
            for k in {one for one in cuts if one is not None}:
                found.counts[*pair, k] = lists_shorter_than(n_pred[[*pair]], k)
        some_lack = (n_pred == 0).any()
        with Progress(len(self.metrics), "compare_models", False) as shown:
            for name in self.metrics:
                labels = [one for one in (name, cheap_column(name)) if one in frames[0]]
                tables = [*map(runs.table, labels)]
                found.seen[name] = seen_bounds(*tables)
                takes_zero = len(labels) == 1 and zero_is_worst(name)
                for pair in self.pairs:
                    has = n_pred[[*pair]] > 0 if some_lack else None
                    values = [
                        paired_values(*one, pair, runs, self.settings.missing, takes_zero)
                        for one in zip(labels, tables, strict=True)
                    ]
                    sums = found.sums[name, *pair] = read_pair(values[0], runs, has)
                    if len(labels) == 1:
                        continue
                    known = ~np.isnan([table[[*pair]] for table in tables])
                    # Lists of one model alone are those without a value of one kind.
                    sums.numbers[1:3] = (known & ~known[:, ::-1]).any(axis=0).sum(axis=1)
                    masks: list[Any] = [True]  # all lists, and those that both have
                    if has is not None and sums.numbers[3:5].any() and sums.both.n > 2:
                        masks.append(has.all(axis=0))
                    both = np.array([one[:2] for one in values])
                    bounds = bounds_of(name, self.settings.bounds, *tables) or found.seen[name]
                    more = runs, self.settings.confidence, bounds
                    cheap = [powered_pair(np.where(mask, both, np.nan), *more) for mask in masks]
                    found.sums[name, *pair] = sums._replace(cheap=cheap)
                shown.add()
        return found

    def rows(self, parts: Sequence[ListPairs]) -> list[Row]:
        """One row of numbers per metric and pair that all parts together have."""
        names = names_of(self.specs[0], self.models)
        there = np.any([one.there for one in parts], axis=0)
        repeated = any(one.repeated for one in parts)
        counts = {
            key: np.sum([one.counts[key] for one in parts], axis=0) for key in parts[0].counts
        }
        rows = []
        for name in self.metrics:
            seen = np.array([one.seen[name] for one in parts])
            bounds = bounds_of(name, self.settings.bounds, seen)
            for pair in [one for one in self.pairs if there[[*one]].all()]:
                sums = PairSums.added([one.sums[name, *pair] for one in parts])
                unlike = unlikeness(name, pair, names, self.spec_of, counts)
                row = row_of_pair(name, sums, bounds, self.settings, repeated, unlike)
                row["baseline"], row["model"] = (self.models[i] for i in pair)
                rows.append(row)
        return rows

    def add_of_units(self, rows: Sequence[Row], runs: ModelRows) -> None:
        """Add the numbers of ranks or of resamples to the rows whose differences vary."""
        test = self.settings.tests[self.metrics[0]]
        varies = [at for at, row in enumerate(rows) if row["se"] > 0]
        tests = [*product(self.metrics, self.pairs)]

        @lru_cache(maxsize=1)  # the pairs of a metric stand together
        def table_of(name: str) -> Floats:
            return runs.table(name)

        # One set of weights serves many pairs; the differences of all would not fit in memory.
        with Progress(len(varies), "compare_models", False) as shown:
            for start in range(0, len(varies), PAIRS_AT_ONCE):
                waiting = []
                for at in varies[start : start + PAIRS_AT_ONCE]:
                    name, pair = tests[at]
                    given = runs, self.settings.missing
                    values = paired_values(name, table_of(name), pair, *given)
                    sums, tolerance = differences(values, runs)
                    waiting.append((rows[at], sums))
                    if test == "wilcoxon":
                        d, by = runs.units_there(*sums)
                        d = d if by is None else d / by
                        rows[at].update(wilcoxon(d, self.settings.alternative, tolerance))
                if TESTS[test].resampled:
                    add_resamples(waiting, test, self.settings)
                shown.add(len(waiting))


def differences(
    values: Sequence[Any], runs: ModelRows
) -> tuple[tuple[Floats, Floats | None], float]:
    """Units' sums of the differences of two models, with what each is divided by; and how large
    rounding can be for a unit. Smaller sums are 0."""
    base, model, *_ = values
    sums, divisor = runs.unit_sums(runs.per_list(model - base))
    tolerance = rounding_of(base, model)
    limit = tolerance if divisor is None else tolerance * divisor
    return (np.where(np.abs(sums) > limit, sums, 0.0), divisor), tolerance


def read_pair(
    values: tuple[Floats, Floats, tuple[int, int]], runs: ModelRows, has: Mask | None
) -> PairSums:
    """What the paired values of two models say. `has` tells which lists each model has, if some are
    known to be lacking."""
    base, model, only = values
    units = both = UnitSums.of(*runs.units_there(*differences(values, runs)[0]))
    there = ~np.isnan(base)
    lacking = [0, 0]
    shared = [base, model]
    if has is not None:
        lacking = (there & ~has & has[::-1]).sum(axis=1).tolist()
        shared = [np.where(has.all(axis=0), one, np.nan) for one in shared]
        difference = runs.per_list(shared[1] - shared[0])
        both = UnitSums.of(*runs.units_there(*runs.unit_sums(difference)))
    numbers = [np.count_nonzero(there), *only, *lacking]
    for of_base, of_model in ((base, model), shared):
        total, weight = runs.total(of_base)
        numbers += [weight, total, runs.total(of_model)[0]]
    return PairSums(np.array(numbers, np.float64), units, both)


def row_of_pair(
    metric: str,
    found: PairSums,
    bounds: MetricBounds | None,
    settings: Settings,
    repeated: bool,
    unlike: Row,
) -> Row:
    """The numbers of a pair, and what the two models do not share."""
    counts = dict(zip(_COUNTS, found.numbers[:5].astype(int).tolist(), strict=True))
    means, means_both = (
        [total / weight if weight else np.nan for total in totals]
        for weight, *totals in found.numbers[5:].reshape(2, 3).tolist()
    )
    ends, powered = None, Row()
    if found.cheap:
        (*means,), ends, powered = found.cheap[0]
    tested = paired_test(found.units, metric, settings, ends)
    row = tested | {
        **counts,
        "metric": metric,
        "mean_baseline": means[0],
        "mean_model": means[1],
        "reach": np.nan if bounds is None else bounds[1] - bounds[0],
        "rel_diff": means[1] / means[0] - 1 if means[0] > 0 else np.nan,
        **unlike,
        **powered,
        "powered": bool(found.cheap),
    }
    if row["n_lacking_baseline"] or row["n_lacking_model"]:
        n = found.both.n
        estimate = found.both.tested()[1]
        numbers: list[Any] = [*means_both, np.nan, np.nan]
        if n > 1:
            numbers[2:] = estimate.mean, np.sqrt(estimate.var)
        for own, ends, _ in found.cheap[1:]:
            if ends is not None:
                numbers = [*own, ends.mean, ends.se]
        row |= zip(NUMBERS_OF_BOTH, [n, *numbers], strict=False)
    # With missing="drop" the models themselves select the lists.
    selected = row["n_only_baseline"] or row["n_only_model"]
    dropped = "different_lists" if settings.missing == "drop" and selected else ""
    met = [one.get("remarks") for one in (tested, unlike, powered)]
    remarks = filter(None, ["repeated_units" * repeated, *met, dropped])
    return row | {"remarks": "; ".join(remarks)}


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


def tables_in_memory(
    per_user: Any,
    columns: ModelLists,
    within: Segments,
    baseline: Any,
    metrics: list[str],
    settings: Settings,
    progress: bool | None,
) -> SegmentTables:
    """Compare the models of rows in memory, within segments if there are any.

    A segment without two models, or without the baseline, is left out: there is nothing to compare.
    """
    found = []
    if not within.names:
        found.append((DataFrame(index=[0]), columns.read(per_user)))
    else:
        mapped = isinstance(per_user, Mapping)
        given = per_user if mapped else {"per_user": per_user}
        frames = {name: within.of_rows(one) for name, one in given.items()}
        unknown, segments = within.split([*frames.values()])
        within.warn_unknown(*unknown)
        for label, rows in segments:
            pairs = zip(frames.items(), rows, strict=True)
            own = {name: frame.take(of) for (name, frame), of in pairs if len(of)}
            runs = columns.read(own if mapped else own["per_user"], least=0)
            if len(runs.models) > 1 and baseline in (None, *runs.models):
                found.append((label, runs))
    test = TESTS[settings.tests[metrics[0]]]
    tables = []
    with Progress(len(found) * (1 + test.resampled), "compare_models", progress) as shown:
        for label, runs in found:
            specs = [evaluated(frame) for _, frame in runs.parts]
            compared = ComparedModels(runs.models, baseline, specs, metrics, settings)
            numbers = compared.rows([compared.of_lists(runs, np.ones(len(runs.models), bool))])
            shown.add()
            if not test.of_sums:
                compared.add_of_units(numbers, runs)
                shown.add(test.resampled)
            tables.append((label, numbers))
    return tables


class ChangedRows:
    """A result in buckets whose rows are changed before anything is made of them; `reads` are the
    columns that `change` needs."""

    def __init__(
        self, result: Any, change: Callable[[DataFrame], DataFrame], reads: Sequence[str]
    ) -> None:
        self.result, self.change, self.reads = result, change, reads
        self.spec, self.by_values = result.spec, result.by_values
        self.empty_rows = change(result.empty_rows)

    def each_bucket(
        self, work: Callable[[DataFrame], Any], columns: Sequence[str], keys: Sequence[str]
    ) -> list[Any]:
        made = {*self.empty_rows} - {*self.result.empty_rows}
        own = [name for name in dict.fromkeys([*columns, *self.reads]) if name not in made]
        return list(self.result.each_bucket(partial(_changed, self.change, work), own, keys))


def _changed(
    change: Callable[[DataFrame], DataFrame],
    work: Callable[[DataFrame], Any],
    rows: DataFrame,
) -> Any:
    return work(change(rows))


def pairs_of_bucket(
    columns: ModelLists, within: Segments, compared: ComparedModels, rows: DataFrame
) -> tuple[tuple[int, int], list[tuple[DataFrame, ListPairs]]]:
    """Return how many rows of a bucket have no segment, and of how many, and what the lists of
    every segment say, with its label."""
    unknown, segments = within.split([rows])
    found = []
    for label, (own,) in segments:
        some = rows.take(own)
        code = pd.Index(compared.models).get_indexer(pd.Index(some[columns.model_col]))
        runs = columns.read({name: some[code == i] for i, name in enumerate(compared.models)})
        there = np.isin(np.arange(len(compared.models)), code)
        lists = compared.of_lists(runs, there)
        # Sums of several buckets do not tell which units are the farthest, nor do those of one.
        sums = {name: one.without_top() for name, one in lists.sums.items()}
        found.append((label, lists._replace(sums=sums)))
    return unknown, found


def tables_in_buckets(
    result: Any,
    columns: ModelLists,
    within: Segments,
    baseline: Any,
    metrics: list[str],
    settings: Settings,
    progress: bool | None,
) -> SegmentTables:
    """Compare the models of an engine's result, as `tables_in_memory` does those of rows in
    memory."""
    if within.known is not None:
        result = ChangedRows(result, within.of_rows, within.keys)
    empty = result.empty_rows
    _, labels = group_codes(result.by_values, "per_user", [columns.model_col])
    models = labels[columns.model_col].tolist()
    # What is wrong with the columns, or with the models, shows without a row.
    columns.read(dict.fromkeys(models, empty))
    compared = ComparedModels(models, baseline, [result.spec], metrics, settings)
    keys, folds, model_col, units, weight = columns
    units = units or unit_of(keys)
    used = [model_col, *keys, *folds, *units, "n_true", "n_pred", *metrics, *within.names]
    used = list(dict.fromkeys([*used, *as_columns(weight)]))
    work = partial(pairs_of_bucket, columns, within, compared)
    given = result.each_bucket(work, used, units)
    within.warn_unknown(*np.sum([n for n, _ in given], axis=0))
    found = [one for _, of_segments in given for one in of_segments]
    labels_of = empty[within.names]
    of_found = pd.concat([labels_of, *(label for label, _ in found)]).astype(dict(labels_of.dtypes))
    code, labels = group_codes(of_found, "per_user", within.names)
    tables = []
    for segment, places in enumerate(split(code, len(labels))):
        if len(places) and (rows := compared.rows([found[place][1] for place in places])):
            tables.append((labels.iloc[[segment]], rows))
    return tables

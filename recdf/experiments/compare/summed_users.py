"""The comparison of variants from sums of users in parts, which are not in memory.

Of clusters in parts, a row comes into memory for each combination of a cluster, the other keys and
what is null."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Never

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas import DataFrame

from ...errors import RecdfError
from ...inputs.codes import known_ids
from ...inputs.constraints import OneLabel
from ...inputs.data_files import OfBatches, UserParts, frame_of_table
from ...inputs.options import as_columns
from ...judge.aggregates import Aggregates, RowsNeeded
from ...judge.choices import Columns, RaiseOrDrop, TwoPlaces
from ...judge.effects.means import estimate, fits
from ...judge.effects.units import Linear, Units
from ...judge.in_parts import (
    MOST_BITS,
    NO_USERS,
    CellForm,
    CellKey,
    Regressed,
    SummedUsers,
    Summing,
    extremes_of,
    floats_of,
)
from ...judge.per_user_columns import (
    Codes,
    Floats,
    Mask,
    MetricColumns,
    covariate_name,
    group_codes,
    list_columns,
)
from ...judge.users import LEFT_OUT, ExperimentRows, may_be_unit, read_experiment_rows
from ...stats.arms import HUGE, Sample, both
from ...stats.numbers import undefined_is_nan
from ..decide.balance import (
    Difference,
    TimeColumns,
    differences_in_time,
    looks_like_date,
    random_split_p,
)
from ..decide.sample_ratio import Arms
from ..metric_bounds import MetricKind
from ..samples import Ready, Settings, differ, read_metrics
from .arms_of_users import UsersInRows, no_estimate

# Each metric and its covariates.
NeededForms = Mapping[str, Sequence[MetricColumns]]
# A metric, a group and a pair of variants.
Place = tuple[int, int, TwoPlaces]


class AskedOfUsers(NamedTuple):
    """What a comparison of variants reads of users in parts, and how."""

    needed: NeededForms
    variant_col: str
    by_cols: list[str]
    user_col: Columns | None
    clusters: list[str]
    times: TimeColumns
    health: DataFrame | None
    nan: RaiseOrDrop
    weight: str | None
    control: OneLabel


def needed_columns(metrics: Iterable[MetricColumns]) -> list[str]:
    """The columns of some metrics, each once."""
    return list(dict.fromkeys(name for one in metrics for name in one if name is not None))


def linear(metrics: Iterable[MetricColumns], columns: Sequence[str]) -> list[Linear]:
    """Metrics by the places of their columns."""
    at = columns.index
    return [Linear(at(num), None if den is None else at(den)) for num, den in metrics]


# Ends of the names of products with the weight. Where it is 0, a numerator becomes null and a
# denominator 0; a value that is refused becomes NaN, so that the rows are read. A covariate stays
# known or null, and a copy of the weight is null where the covariate is. They begin with no null
# character, since pandas 2.2 takes names for equal that are equal up to it.
_NUM, _DEN, _PAST, _OWN = "\1num", "\1den", "\1past", "\1weight"


@dataclass(frozen=True)
class Weighing:
    """Gives a function batches with products of columns and the users' `weight` beside these. A
    weight that is no number of at least 0 becomes NaN: then the rows are needed."""

    function: OfBatches
    made: list[str]
    weight: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Any:
        return self.function(map(self.of, batches))

    def of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        sources = [name.partition("\1")[0] for name in self.made]
        (weight, *values), _ = floats_of(batch, [self.weight, *sources])
        weight = np.where((weight >= 0) & (weight < np.inf), weight, np.nan)
        unused = weight == 0
        columns = {name: batch.column(name) for name in batch.schema.names}
        columns[self.weight] = pa.array(weight)
        for name, source, one in zip(self.made, sources, values, strict=True):
            gaps = batch.column(source).is_null().to_numpy(zero_copy_only=False)
            with undefined_is_nan():
                product = weight if name.endswith(_OWN) else one * weight
            if not name.endswith((_PAST, _OWN)):
                den = name.endswith(_DEN)
                odd = unused & ((np.abs(one) >= HUGE) | (den & (one < 0)))  # refused in rows, too
                product = np.where(unused, np.where(odd, np.nan, 0.0), product)
                gaps = gaps & ~unused if den else gaps | (unused & ~odd)
            columns[name] = pa.array(product, mask=gaps)
        return pa.RecordBatch.from_pydict(columns)


def weighed(
    parts: UserParts, needed: NeededForms, weight: str | None
) -> tuple[UserParts, NeededForms]:
    """The parts with their weighted columns, if they have weights, and metrics and covariates as
    ratios of these: Σ w y / Σ w, or Σ w N / Σ w D. A user of weight 0 has nothing to count."""
    if weight is None:
        return parts, needed

    def past_of(num: str, den: str | None) -> MetricColumns:
        return num + _PAST, num + _OWN if den is None else den + _PAST

    own = {
        name: [
            (num + _NUM, weight if den is None else den + _DEN),
            *itertools.starmap(past_of, xs),
        ]
        for name, ((num, den), *xs) in needed.items()
    }
    if any("\1" in name for name in [weight, *parts.head.columns]):
        raise RowsNeeded
    every = needed_columns(itertools.chain(*own.values()))
    made = [name for name in every if name != weight]

    def run(function: OfBatches, columns: list[str]) -> list[Any]:
        products = [name for name in columns if name in made]
        sources = (name.partition("\1")[0] for name in columns)
        return parts.run(Weighing(function, products, weight), [*dict.fromkeys([weight, *sources])])

    sample = Weighing(iter, made, weight).of(parts.sample)
    return replace(parts, sample=sample, run=run, spans=lambda _: None), own


def _key_in_parts(
    parts: UserParts, user_col: Columns | None, variant_col: str, used: Collection[str | None]
) -> str | None:
    """The key of the users, if they have one; `RowsNeeded` where other columns may be the units
    that were assigned."""
    frame = parts.sample.to_pandas() if parts.some is None else parts.some
    named = as_columns(user_col)
    keys = named or ["user_id"] * ("user_id" in parts.head)
    if len(keys) > 1:
        raise RowsNeeded
    if named != ["user_id"]:
        arm = group_codes(frame, "data", [variant_col])[0]
        others = (name for name in frame.columns if name not in {*used, "user_id"})
        if (named and "user_id" in frame) or any(may_be_unit(frame[one], arm) for one in others):
            raise RowsNeeded
    return keys[0] if keys else None


def _need_rows(*_: Any) -> Never:
    """What is too skewed for its moments is tested by its ranks."""
    raise RowsNeeded


class InCells(NamedTuple):
    """Both arms of a metric by their cells (2, strata, patterns), as units; `constants` take the
    place of nulls in each pattern."""

    cells: Codes
    units: Units
    constants: Floats
    n_missing: int
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class SummedArms:
    """Users in parts, by their aggregates.

    The users of every group and variant are in `cells` (groups, variants, strata, patterns of what
    is null). `kinds` has the bits of what is null in each pattern, and `at` the column of each
    name. `metric_kinds` say what the columns of each metric tell, without weights. `spreads` has
    what the variance of each regression needs.
    """

    asked: AskedOfUsers
    needed: NeededForms
    at: Mapping[str, int]
    groups: DataFrame
    variants: pd.Series
    cells: Codes
    rows: ExperimentRows | None
    users: SummedUsers
    stratified: bool
    kinds: Codes
    metric_kinds: list[MetricKind]
    spreads: Mapping[Place, Floats] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        parts: UserParts,
        asked: AskedOfUsers,
        rows: ExperimentRows | None,
        before: SummedArms | None = None,
    ) -> SummedArms:
        """Add up the users; `RowsNeeded` is raised where their sums do not suffice.

        `rows` have their labels and times, if these matter. `before` is what a first pass over the
        users made: a second one keeps the units that are far from the mean of their own cell, for
        comparisons with the control.
        """
        by_cols, strata, weight = asked.by_cols, asked.times.strata, asked.weight
        labels = [*by_cols, *strata, asked.variant_col]
        beside: list[MetricColumns] = [] if weight is None else [(weight, None)]
        plain = [forms[0] for forms in asked.needed.values()]
        used = {*labels, weight, *needed_columns(plain)}
        key = _key_in_parts(parts, asked.user_col, asked.variant_col, used)
        if weight in labels:
            raise RowsNeeded
        parts, needed = weighed(parts, asked.needed, weight)
        every = [*itertools.chain(*needed.values())]
        columns = needed_columns([*beside, *every])
        of_metrics = (linear(own, columns) for own in needed.values())
        forms = [(metric, tuple(xs)) for metric, *xs in of_metrics]
        ends = needed_columns((num, None) for num, _ in plain) if weight else []
        cell_forms = {} if before is None else before.cell_forms(asked.control)
        summing = Summing.planned(
            parts, forms, columns, labels, key, needed_columns(beside), ends, cell_forms
        )
        users = SummedUsers.of(parts, summing, cell_forms)
        (group, groups), (variant, variants), (stratum, levels) = (
            group_codes(users.labels, "data", of) for of in (by_cols, [asked.variant_col], strata)
        )
        kinds, kind = np.unique([one for one, *_ in users.keys], return_inverse=True)
        cells = np.full((len(groups), len(variants), len(levels), len(kinds)), NO_USERS)
        cells[group, variant, stratum, kind] = np.arange(len(users.keys))
        metric_kinds = []
        for one in plain:
            if weight is not None:
                metric_kinds.append(MetricKind.of_extremes(one, summing.extremes))
                continue
            column = columns.index(one[0])
            known = users.record.cells(cells[..., kinds >> column & 1 == 0].ravel())
            seen = known.low[column], known.high[column]
            metric_kinds.append(MetricKind.of(one, seen, known.only_0_and_1(column)))
        found = cls(
            asked,
            needed,
            {name: i for i, name in enumerate(columns)},
            groups[by_cols],
            variants[asked.variant_col],
            cells,
            # A key was found to be distinct, so that every row is a user.
            replace(rows, users=np.arange(len(rows.variant))) if rows and key else rows,
            users,
            bool(strata),
            kinds,
            metric_kinds,
        )
        # Where rows are an error, they name them: other labels, values that are null, an arm
        # without users in a stratum, and denominators below 0.
        lost = [
            found.missing(one) & ~found.nothing_to_count(i)
            for i, (one, *_) in enumerate(needed.values())
        ]
        dens = [found.at[den] for _, den in every if den]
        if (
            (asked.nan == "raise" and np.any(lost))
            or (cells == NO_USERS).all(axis=3).any()
            or (users.record.low[dens] < 0).any()
            or (rows and rows.variants.tolist() != found.variants.tolist())
            or (rows and rows.groups.to_numpy().tolist() != found.groups.to_numpy().tolist())
        ):
            raise RowsNeeded
        return replace(found, spreads=found.regressions(parts, asked.control))

    @property
    def n(self) -> Floats:
        """Users of each group and variant."""
        return np.asarray(self.users.record.n[self.cells].sum(axis=(2, 3)))

    @property
    def counts(self) -> Floats:
        """Users of every variant, in each group and over all of them."""
        known = self.users.summing.user is not None or len(self.groups) == 1
        return np.vstack([self.n, self.n.sum(axis=0) if known else self.n[0] * np.nan])

    @property
    def left_out(self) -> Floats:
        """Users of each group and variant who were in several."""
        return np.zeros_like(self.n) if self.rows is None else self.rows.left_out

    def tested(self) -> dict[str, dict[str, MetricColumns]]:
        """What is to be alike in both arms of every metric, by its name: covariates and weights."""
        weight = self.asked.weight
        more: dict[str, MetricColumns] = {} if weight is None else {weight: (weight, None)}
        found = {}
        for metric, (_, *own) in self.needed.items():
            names = map(covariate_name, self.asked.needed[metric][1:])
            found[metric] = dict(zip(names, own, strict=True)) | more
        return found

    def missing(self, covariate: MetricColumns) -> Mask:
        """The patterns of users without a value."""
        return np.logical_or.reduce([self.kinds >> self.at[x] & 1 == 1 for x in covariate if x])

    def nothing_to_count(self, metric: int) -> Mask:
        """The patterns in which a null numerator stands beside a denominator of 0."""
        return self.kinds >> (len(self.at) + metric) & 1 == 1

    def count(self, patterns: Any, cells: Codes) -> Floats:
        """The users of some patterns in each stratum of both arms (2, strata)."""
        return np.asarray(self.users.record.n[cells[..., patterns]].sum(axis=2))

    def usable(
        self, tested: Iterable[MetricColumns], cells: Codes, patterns: Mask
    ) -> list[MetricColumns]:
        """Covariates that are not missing more often in one arm, among the users of some patterns;
        `RowsNeeded` where the denominators of one are all 0 in an arm."""
        used = []
        for x in tested:
            missing = self.missing(x)
            known = self.users.record.cells(cells[..., patterns & ~missing].reshape(2, -1))
            if x[1] is not None and known.mean[:, self.at[x[1]]].min() <= 0:
                raise RowsNeeded
            some = self.count(patterns & missing, cells)
            if not differ(some, self.count(patterns, cells), self.stratified, self.groups):
                used.append(x)
        return used

    def constants(
        self, columns: list[int], cells: Codes, named: Iterable[MetricColumns], patterns: Mask
    ) -> Floats:
        """What takes the place of what is missing of covariates, which is the mean of the users of
        some patterns in both arms (patterns, columns); `RowsNeeded` where two metrics share a
        column and not its gaps."""
        found = np.full((len(self.kinds), len(columns)), np.nan)
        gaps = dict[int, Mask]()
        for one in named:
            missing = self.missing(one) & patterns
            known = self.users.record.cells(cells[..., patterns & ~missing].reshape(1, -1))
            for at in (self.at[x] for x in one if x is not None):
                if not (gaps.setdefault(at, missing) == missing).all():
                    raise RowsNeeded
                found[missing, columns.index(at)] = known.mean[0, at]
        return found[patterns]

    def p_values(self, used: Mapping[str, MetricColumns], group: int, pair: TwoPlaces) -> Floats:
        """p that both arms have the same mean, of everything that is used."""
        cells = self.cells[group, list(pair)]
        every = self.kinds >= 0
        p = dict.fromkeys(used.values(), np.nan)
        named = self.usable(p, cells, every)
        names = needed_columns(named)
        columns = [self.at[name] for name in names]

        def third(form: Floats, record: Any, stratum: int) -> float:
            past, cubes = self.users.past, self.users.past_cubes
            if cubes is None or not {*columns} <= {*past}:
                raise RowsNeeded
            constants = np.tile(self.constants(past, cells, named, every), (2, 1))
            both_arms = cubes.cells(cells[:, stratum].reshape(1, -1), constants)
            every_past = np.zeros((4, len(past)))  # 0 of covariates that have no part in z
            half = (record.high - record.low) / 2
            of_columns = form, record.grid.base, record.above[0], half
            every_past[:, [past.index(i) for i in columns]] = of_columns
            own, base, above, half = every_past
            spread = np.sqrt(record.squares(form[None]) / record.n)
            return float(both_arms.of(own[None], base, above, half, spread)[0])

        if named:
            constants = self.constants(columns, cells, named, every)
            record = self.users.known(cells.reshape(-1, cells.shape[2]), columns, constants)
            found = random_split_p(linear(named, names), record, third, _need_rows)
            p |= zip(named, found, strict=True)
        return np.array([*p.values()])

    def each(self, control: OneLabel) -> Iterator[tuple[Place, InCells]]:
        """Every metric in both arms of every comparison."""
        pairs = Arms.of(self.groups, self.variants, control, "data").pairs
        for place in itertools.product(range(len(self.needed)), range(len(self.cells)), pairs):
            yield place, self.in_cells(*place)

    def cell_forms(self, control: OneLabel) -> dict[tuple[Any, ...], dict[CellKey, CellForm]]:
        """The form whose size says how far a unit is from the mean, in each cell of every metric,
        control and treatment."""
        found: dict[tuple[Any, ...], dict[CellKey, CellForm]] = defaultdict(dict)
        for (metric, *_), of in self.each(control):
            if no_estimate(of.units):
                raise RowsNeeded
            values = estimate(of.units).values
            n_columns = len(self.users.form(metric).columns)
            forms = found[metric, *self.users.variants_of(of.cells)]
            arms = of.cells.reshape(len(values.form), -1)
            for cells, form, centre in zip(arms, values.form, values.centres, strict=True):
                for cell, constant in zip(cells.tolist(), of.constants, strict=True):
                    if cell != NO_USERS:
                        rest = np.where(np.isnan(constant), form, 0)[:n_columns]
                        at = float(centre + form @ np.nan_to_num(constant))
                        forms[self.users.keys[cell]] = CellForm(rest, at, form, centre)
        return found

    def regressions(self, parts: UserParts, control: OneLabel) -> dict[Place, Floats]:
        """What the variance of each regression needs (2, strata, columns, columns), from another
        pass over the users."""
        of_cells: dict[int, list[Regressed]] = defaultdict(list)
        ends: dict[Place, int] = {}
        sizes: list[int] = []
        for place, of in self.each(control):
            if not of.units.regressed:
                continue
            columns = self.users.form(place[0]).columns
            for fit, own in zip(fits(of.units), of.cells, strict=True):
                read = [columns[i] if i < len(columns) else columns[0] for i in fit.columns]
                for stratum, cells in enumerate(own.tolist()):
                    for cell, constants in zip(cells, of.constants[:, fit.columns], strict=True):
                        needed = Regressed(len(sizes), fit, stratum, read, constants)
                        of_cells[cell].append(needed)
                    sizes.append(len(fit.columns))
            ends[place] = len(sizes)
        found = self.users.spreads(parts, of_cells, sizes) if sizes else []
        n_strata = self.cells.shape[2]
        return {
            place: np.reshape(found[end - 2 * n_strata : end], (2, n_strata, *found[end - 1].shape))
            for place, end in ends.items()
        }

    def in_cells(self, metric: int, group: int, pair: TwoPlaces) -> InCells:
        """Both arms of a metric, without users who have no value."""
        cells = self.cells[group, list(pair)]
        (one, *given), form = [*self.needed.values()][metric], self.users.form(metric)
        there = ~self.missing(one) & (self.users.record.n[cells].sum(axis=(0, 1)) > 0)
        used = self.usable(given, cells, there)
        known = cells[..., there]
        gaps = [self.missing(x)[there] for x in used]
        regressed = one[1] is None and bool(used)
        regressed &= len(used) > 1 or self.stratified or bool(np.any(gaps))
        flags = [gap for gap in gaps if gap.any()] if regressed else []
        constants = self.constants(form.columns, cells, [one, *used], there)
        constants = np.column_stack([constants, *flags])
        covariates = [form.covariates[given.index(x)] for x in used]
        covariates += [Linear(len(form.columns) + i) for i in range(len(flags))]
        units = self.users.units(metric, known, tuple(covariates), constants, self.stratified)
        spreads = self.spreads.get((metric, group, pair))
        units = replace(units, regressed=regressed, spreads=spreads)
        missing = np.logical_or.reduce([~there, *(self.missing(x) for x in given)])
        n_missing = int(self.count(missing & there, cells).sum())
        remarks = ("unequal_covariate_missing",) * (len(used) < len(given))
        return InCells(known, units, constants, n_missing, remarks)

    def ready(self, group: int, pair: TwoPlaces, settings: Settings) -> Iterator[Ready]:
        """The units of each metric in both arms."""
        known = zip(self.needed.items(), self.metric_kinds, strict=True)
        for metric, ((name, (one, *_)), kind) in enumerate(known):
            of = self.in_cells(metric, group, pair)
            odd = settings.tests[name] == "proportion" and not kind.share
            # The values of other arms tell nothing of those that may be 0 and 1 here.
            record = of.units.record
            assert isinstance(record, Aggregates)
            num, den = of.units.metric
            like = self.stratified and den is None and record.like_0_and_1(num)
            odd |= like and not record.only_0_and_1(num)
            if odd or no_estimate(of.units):
                raise RowsNeeded
            null = self.missing(one)
            unknown, dropped, every = (
                self.count(patterns, self.cells[group, list(pair)])
                for patterns in (null & ~self.nothing_to_count(metric), null, slice(None))
            )
            unequal = differ(unknown, every, self.stratified, self.groups)
            yield Ready(
                name,
                of.units,
                both(int, tuple(dropped.sum(axis=1))),
                of.remarks + ("unequal_missing",) * unequal,
                kind,
                of.n_missing,
            )


_ROWS, _KIND = "\1rows", "\1kind"  # added columns: the number of rows, and what is null in them
# A sum that is at most so many standard deviations is rounded by at most 1e-11 of one.
_MOST_OF_SUMS = 5e4


@dataclass(frozen=True)
class ClusterSums:
    """Adds up the numbers, and counts the rows, for each combination of the keys and of what is
    null: a bit for each number, and for each ratio with nothing to count, a null beside 0. Of
    numerators without weights, `plain`, it also gives the extremes of single rows.

    A negative denominator counts as infinite, so that the sum shows it. The number of rows is NaN
    where an id may be unknown.
    """

    keys: list[str]
    numbers: list[str]
    metrics: list[MetricColumns]
    ids: list[str]
    plain: list[str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> tuple[pa.Table, Floats] | None:
        own, extremes = [], []
        for batch in batches:
            read, _ = floats_of(batch, self.numbers)
            values = dict(zip(self.numbers, read, strict=True))
            null = [np.isnan(one) for one in read]
            for num, den in self.metrics:
                if den:
                    null.append(np.isnan(values[num]) & (values[den] == 0))
                    values[den] = np.where(values[den] < 0, np.inf, values[den])
            made = {name: batch.column(name) for name in self.keys}
            for name, one in made.items():
                if pa.types.is_dictionary(one.type):
                    made[name] = one.dictionary_decode()
            ids = [batch.column(name) for name in self.ids]
            unknown = any(one.null_count or pa.types.is_floating(one.type) for one in ids)
            made |= values
            made[_KIND] = 2 ** np.arange(len(null)) @ np.array(null)
            made[_ROWS] = np.full(len(batch), np.nan if unknown else 1.0)
            own.append(self.of(pa.table(made)))
            extremes.append(extremes_of(batch, self.plain))
        return (self.of(pa.concat_tables(own)), np.fmax.reduce(extremes)) if own else None

    def of(self, rows: pa.Table) -> pa.Table:
        added = [*self.numbers, _ROWS]
        keys = [*self.keys, _KIND]
        found = rows.group_by(keys, use_threads=False).aggregate([(x, "sum") for x in added])
        columns = [found[name] for name in [*keys, *(f"{x}_sum" for x in added)]]
        return pa.table(columns, names=[*keys, *added])


def _exact(data: pd.DataFrame, numbers: list[str], labels: list[str]) -> bool:
    """Whether the sums are exact enough for the spread of the clusters in each arm, segment and
    stratum. A sum of huge numbers loses the digits of a small spread; one of whole numbers does
    not."""
    for name in numbers:
        known = data[data[name].notna()]
        arms = known.groupby(labels, observed=True, dropna=False)
        mean = arms[name].transform("sum") / arms[_ROWS].transform("sum")
        apart = known[name] - known[_ROWS] * mean
        spread = np.sqrt((apart**2).groupby(arms.ngroup()).transform("mean"))
        far = known[name].abs() > _MOST_OF_SUMS * spread
        if (far & (known[name] % 1 != 0)).any():
            return False
    return True


def clusters_in_parts(
    parts: UserParts, asked: AskedOfUsers
) -> tuple[UsersInRows, list[Difference]]:
    """The sums of clusters in parts, and what times and strata say against their variants.

    There is a row for each cluster, combination of the other keys and kind of nulls, which stands
    for as many rows as it is the sum of.
    """
    head, weight, times = parts.head, asked.weight, asked.times
    # The users of a health table are looked for one by one, and those who were left out are counted
    # by rows.
    if asked.health is not None or LEFT_OUT in head:
        raise RowsNeeded
    labels = list(dict.fromkeys([asked.variant_col, *asked.by_cols, *times.strata]))
    dates = [name for name in head.columns if looks_like_date(head[name])]
    keys = list(dict.fromkeys([*labels, *asked.clusters, *dates, *times.named]))
    users = as_columns(asked.user_col) or ["user_id"] * ("user_id" in head.columns)
    ids = [name for name in users if name not in keys]
    parts, needed = weighed(parts, asked.needed, weight)
    metrics = [forms[0] for forms in needed.values()]
    beside: list[MetricColumns] = [] if weight is None else [(weight, None)]
    numbers = needed_columns([*beside, *itertools.chain(*needed.values())])
    made = {*numbers, _ROWS, _KIND} | {f"{name}_sum" for name in [*numbers, _ROWS]}
    models = {*list_columns(head)[:1]} - {*keys, *users}  # the rows tell whether it holds them
    if models or made & {*keys} or len(numbers) + len(metrics) > MOST_BITS:
        raise RowsNeeded
    plain = needed_columns((num, None) for (num, _), *_ in asked.needed.values())
    sums = ClusterSums(keys, numbers, metrics, ids, plain)
    try:
        sums([parts.sample])  # what cannot be added up fails here, and not in an engine's worker
        found = parts.run(sums, list(dict.fromkeys([*keys, *numbers, *ids, *plain])))
        tables, of_parts = zip(*filter(None, found), strict=True)
        data = parts.typed(frame_of_table(sums.of(pa.concat_tables(tables))), labels)
        null = data[numbers].isna().to_numpy()
        told = data[[_KIND]].to_numpy() >> np.arange(len(numbers)) & 1 == 1
        odd = (data[numbers].abs() >= HUGE).any(axis=None) or (null != told).any()
        odd |= weight is not None and data[weight].isna().any()
        if odd or data[_ROWS].sum() != parts.n or not _exact(data, numbers, labels):
            raise RowsNeeded
        of_rows = {
            name: [(num, den or _ROWS) for num, den in forms] for name, forms in needed.items()
        }
        past = {name: xs for name, (_, *xs) in of_rows.items()}
        extremes = dict(zip(plain, np.fmax.reduce(of_parts).tolist(), strict=True))
        columns = []
        specs = {name: forms[0] for name, forms in of_rows.items()}
        for one in read_metrics(data, specs, past, asked.nan):
            metric, *xs = asked.needed[one.name]
            own = dict(zip(map(covariate_name, xs), one.covariates.values(), strict=True))
            kind = MetricKind.of_extremes(metric, extremes)
            columns.append(replace(one, covariates=own, kind=kind))
        for name in ids:  # of another kind than ids have
            known_ids(parts.sample.select([name]).to_pandas(), "data", name)
        known = users if {*users} <= {*keys} else None
        rows = read_experiment_rows(
            data, asked.variant_col, asked.by_cols, known, times.strata, asked.clusters
        )
        if rows.randomised is not rows.clusters or data[dates].isna().any(axis=None):
            raise RowsNeeded
        size = data[_ROWS].to_numpy()
        rows, late = differences_in_time(
            data, replace(rows, size=size), [asked.variant_col, *asked.by_cols], times
        )
    # Of what is wrong, such as keys that are lists, the rows tell more.
    except (pa.ArrowException, RecdfError):
        raise RowsNeeded from None
    weights = {} if weight is None else {weight: Sample(data[weight].to_numpy(), size)}
    return UsersInRows(columns, weights, rows), late

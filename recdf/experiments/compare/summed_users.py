"""The comparison of variants from sums: of users in parts, which are not in memory, or of users of
whom only moments are known."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas import DataFrame

from ...inputs.constraints import OneLabel
from ...inputs.data_files import OfBatches, UserParts, needed_frame
from ...inputs.options import as_columns
from ...judge.aggregates import Aggregates, RowsNeeded, UnitsRecord
from ...judge.choices import Columns, RaiseOrDrop, Row
from ...judge.effects.fits import fits
from ...judge.effects.means import estimate
from ...judge.effects.units import Linear, Units
from ...judge.far_units import CellForm, CellKey
from ...judge.in_parts import NO_USERS, Regressed, SummedUsers, Summing, floats_of
from ...judge.per_user_columns import (
    Codes,
    Floats,
    Mask,
    MetricColumns,
    covariate_name,
    group_codes,
)
from ...judge.users import LEFT_OUT, ExperimentRows, may_be_unit, read_experiment_rows
from ...stats.arms import HUGE, both
from ...stats.numbers import undefined_is_nan
from ...stats.resampling import Split
from ..decide.balance import (
    Difference,
    ThirdMoment,
    TimeColumns,
    differences_in_time,
    looks_like_date,
    random_split_p,
)
from ..decide.experiment_health import key_of_health
from ..decide.sample_ratio import Arms, Surplus
from ..metric_bounds import MetricKind
from ..samples import Ready, Settings, differ
from .arms_of_users import compare_ready, no_estimate

Specs = Mapping[str, MetricColumns]


@dataclass(frozen=True)
class ArmsInCells:
    """The users of every group and variant in `cells` (groups, variants, strata, patterns of what
    is null); `at` has the column of each name. Methods take the cells of both arms of a comparison
    (2, strata, patterns).

    What it does not leave to its subclasses is that of moments in `usable`, and that of sums in
    `ranked` and `tested_together`.
    """

    specs: Specs
    covariates: Mapping[str, Sequence[MetricColumns]]
    at: Mapping[str, int]
    groups: DataFrame
    variants: pd.Series
    cells: Codes
    rows: ExperimentRows | None

    @property
    def n(self) -> Floats:
        """Users of each group and variant."""
        raise NotImplementedError

    def tested(self) -> dict[str, dict[str, MetricColumns]]:
        """What is to be alike in both arms of every metric, by its name."""
        found: dict[str, dict[str, MetricColumns]] = {}
        for metric in self.specs:
            found[metric] = own = {}
            for x in self.covariates.get(metric, ()):
                plain = (one.partition("\1")[0] for one in x if one and not one.endswith(_OWN))
                own[covariate_name(plain)] = x
        return found

    @property
    def counts(self) -> Floats:
        """Users of every variant, in each group and over all of them."""
        raise NotImplementedError

    @property
    def left_out(self) -> Floats:
        """Users of each group and variant who were in several."""
        return np.zeros_like(self.n) if self.rows is None else self.rows.left_out

    def ready(self, metric: int, cells: Codes, settings: Settings) -> Ready:
        """The units of a metric in both arms."""
        raise NotImplementedError

    def usable(self, tested: Sequence[MetricColumns], cells: Codes) -> list[MetricColumns]:
        """Covariates that can be used to compare both arms."""
        return list(tested)

    def sums_of(
        self, columns: list[int], cells: Codes, covariates: Sequence[MetricColumns]
    ) -> tuple[UnitsRecord, ThirdMoment]:
        """Some columns in each stratum of both arms, without gaps of the covariates, and their
        third moments; these raise `RowsNeeded` where nobody knows them."""
        raise NotImplementedError

    def ranked(self, of: Split, form: Floats, stratum: int) -> Split:
        """What is tested where a split is too skewed for its moments: of rows it is their ranks.
        Moments without rows leave the skewness out."""
        raise RowsNeeded

    def tested_together(self, names: Iterable[str]) -> list[list[str]]:
        """Covariates that are tested beside each other."""
        return [[*names]]

    def forms(self, names: Iterable[MetricColumns]) -> tuple[list[int], list[Linear]]:
        """The columns of some metrics, and the metrics by their places among these."""
        of = list(names)
        used = list(dict.fromkeys(name for one in of for name in one if name is not None))
        places = {name: i for i, name in enumerate(used)}
        return [self.at[name] for name in used], [linear(one, places) for one in of]

    def compare(
        self, group: int, pair: tuple[int, int], settings: Settings, surplus: Surplus
    ) -> list[Row]:
        """One row per metric for one treatment in one group."""
        cells = self.cells[group, list(pair)]
        ready = (self.ready(i, cells, settings) for i in range(len(self.specs)))
        return compare_ready(ready, settings, self.rows, surplus)

    def p_values(
        self, used: Mapping[str, MetricColumns], group: int, pair: tuple[int, int]
    ) -> Floats:
        """p that both arms have the same mean, of everything that is used."""
        cells = self.cells[group, list(pair)]
        p = dict.fromkeys(used, np.nan)
        for together in self.tested_together(used) if used else ():
            named = self.usable([used[name] for name in together], cells)
            if named:
                columns, covariates = self.forms(named)
                sums = self.sums_of(columns, cells, named)
                of_named = random_split_p(covariates, *sums, self.ranked)
                names = (name for name in together if used[name] in named)
                p |= zip(names, of_named.tolist(), strict=True)
        return np.array([*p.values()])


def linear(columns: MetricColumns, at: Mapping[str, int]) -> Linear:
    """A metric by the places of its columns."""
    num, den = columns
    return Linear(at[num], None if den is None else at[den])


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
        read = [self.weight, *(name.partition("\1")[0] for name in self.made)]
        (weight, *values), null = floats_of(batch, read)
        weight = np.where((weight >= 0) & (weight < np.inf), weight, np.nan)
        columns = {name: batch.column(name) for name in batch.schema.names}
        columns[self.weight] = pa.array(weight)
        for i, (name, one) in enumerate(zip(self.made, values, strict=True), 1):
            gaps = np.zeros(len(one), bool) if null is None else null >> i & 1 == 1
            with undefined_is_nan():
                product = weight if name.endswith(_OWN) else one * weight
            if not name.endswith((_PAST, _OWN)):
                den = name.endswith(_DEN)
                unused = weight == 0
                odd = unused & ((np.abs(one) >= HUGE) | (den & (one < 0)))  # refused in rows, too
                product = np.where(unused, np.where(odd, np.nan, 0.0), product)
                gaps = gaps & ~unused if den else gaps | (unused & ~odd)
            columns[name] = pa.array(product, mask=gaps)
        return pa.RecordBatch.from_arrays([*columns.values()], [*columns])


def weighed(
    parts: UserParts, specs: Specs, covariates: Mapping[str, Sequence[MetricColumns]], weight: str
) -> tuple[UserParts, Specs, dict[str, list[MetricColumns]]]:
    """The parts with their weighted columns, and metrics and covariates as ratios of these: Σ w y /
    Σ w, or Σ w N / Σ w D. A user of weight 0 has nothing to count."""

    def past_of(num: str, den: str | None) -> MetricColumns:
        return num + _PAST, num + _OWN if den is None else den + _PAST

    own: Specs = {
        name: (num + _NUM, weight if den is None else den + _DEN)
        for name, (num, den) in specs.items()
    }
    past = {name: [past_of(*x) for x in xs] for name, xs in covariates.items()}
    if any("\1" in name for name in [weight, *parts.head.columns]):
        raise RowsNeeded
    every = [*own.values(), *itertools.chain.from_iterable(past.values())]
    made = list(dict.fromkeys(name for one in every for name in one if name != weight and name))

    def run(function: OfBatches, columns: list[str]) -> list[Any]:
        products = [name for name in columns if name in made]
        sources = (name.partition("\1")[0] for name in columns)
        return parts.run(Weighing(function, products, weight), [*dict.fromkeys([weight, *sources])])

    sample = Weighing(iter, made, weight).of(parts.sample)
    return replace(parts, sample=sample, run=run, spans=lambda _: None), own, past


def _key_in_parts(
    parts: UserParts, user_col: Columns | None, variant_col: str, used: Collection[str | None]
) -> str | None:
    """The key of the users, if they have one; `RowsNeeded` where other columns may be the units
    that were assigned."""
    frame = parts.sample.to_pandas() if parts.some is None else parts.some
    named = as_columns(user_col)
    keys = named or [name for name in ["user_id"] if name in parts.head.columns]
    arm = group_codes(frame, "data", [variant_col])[0]
    guessed = named not in ([], ["user_id"]) and "user_id" in frame.columns
    others = [frame[name] for name in frame.columns if name not in {*used, "user_id"}]
    guessed |= named != ["user_id"] and any(may_be_unit(one, arm) for one in others)
    if guessed or len(keys) > 1:
        raise RowsNeeded
    return keys[0] if keys else None


class InCells(NamedTuple):
    """Both arms of a metric by their cells (2, strata, patterns), as units; `constants` take the
    place of nulls in each pattern. A metric and a cell of each arm are their key."""

    key: tuple[int, ...]
    cells: Codes
    units: Units
    constants: Floats
    n_missing: int
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class SummedArms(ArmsInCells):
    """Users in parts, by their aggregates.

    `identified` says whether the key of the users is known, `kinds` has the bits of what is null in
    each pattern, and `named` the columns of the metrics without weights. `spreads` has what the
    variance of each regression needs, by the key of `InCells`.
    """

    users: SummedUsers
    identified: bool
    stratified: bool
    kinds: Codes
    named: Specs
    weight: str | None
    spreads: Mapping[tuple[int, ...], Floats] = field(default_factory=dict)

    @property
    def n(self) -> Floats:
        return np.asarray(self.users.record.n[self.cells].sum(axis=(2, 3)))

    def missing(self, covariate: MetricColumns) -> Mask:
        """The patterns of users without a value."""
        return np.logical_or.reduce([self.kinds >> self.at[x] & 1 == 1 for x in covariate if x])

    def nothing_to_count(self, metric: int) -> Mask:
        """The patterns in which a null numerator stands beside a denominator of 0."""
        return self.kinds >> (len(self.at) + metric) & 1 == 1

    def count(self, patterns: Mask, cells: Codes) -> Floats:
        """The users of some patterns in each stratum of both arms (2, strata)."""
        return np.asarray(self.users.record.n[cells[..., patterns]].sum(axis=2))

    def usable(
        self, tested: Sequence[MetricColumns], cells: Codes, patterns: Any = True
    ) -> list[MetricColumns]:
        """Those that are not missing more often in one arm, among the users of some patterns (True
        for all); `RowsNeeded` where the denominators of one are all 0 in an arm."""
        every = np.ones(len(self.kinds), bool) & patterns
        of = self.count(every, cells)
        for x in tested:
            known = cells[..., every & ~self.missing(x)].reshape(2, -1)
            if (
                x[1] is not None
                and self.users.record.cells(known).mean[:, self.at[x[1]]].min() <= 0
            ):
                raise RowsNeeded
        missing = {x: self.count(every & self.missing(x), cells) for x in tested}
        return [x for x in tested if not differ(missing[x], of, self.stratified, self.groups)]

    def constants(
        self, columns: list[int], cells: Codes, named: Sequence[MetricColumns], patterns: Any = True
    ) -> Floats:
        """What takes the place of what is missing of covariates, which is the mean of the users of
        some patterns (True for all) in both arms (patterns, columns); `RowsNeeded` where two
        metrics share a column and not its gaps."""
        every = np.ones(len(self.kinds), bool) & patterns
        found = np.full((len(self.kinds), len(columns)), np.nan)
        gaps = dict[int, Mask]()
        for one in named:
            missing = self.missing(one) & every
            for at in {self.at[x] for x in one if x is not None}:
                if not (gaps.setdefault(at, missing) == missing).all():
                    raise RowsNeeded
                if missing.any():
                    known = cells[..., every & ~missing].reshape(1, -1)
                    found[missing, columns.index(at)] = self.users.record.cells(known).mean[0, at]
        return found[every]

    @classmethod
    def of(
        cls,
        parts: UserParts,
        specs: Specs,
        covariates: Mapping[str, Sequence[MetricColumns]],
        variant_col: str,
        by_cols: list[str],
        user_col: Columns | None,
        strata: list[str],
        rows: ExperimentRows | None,
        nan: RaiseOrDrop,
        weight: str | None,
        control: OneLabel,
        before: SummedArms | None = None,
    ) -> SummedArms:
        """Add up the users; `RowsNeeded` is raised where their sums do not suffice.

        `rows` have their labels and times, if these matter. `before` is what a first pass over the
        users made: a second one keeps the units that are far from the mean of their own cell, for
        comparisons with the `control`.
        """
        named = specs
        labels = [*by_cols, *strata, variant_col]
        beside = [*filter(None, [weight])]
        used = {*labels, *beside, *(name for one in specs.values() for name in one)}
        key = _key_in_parts(parts, user_col, variant_col, used)
        if weight in labels:
            raise RowsNeeded
        if weight is not None:
            parts, specs, covariates = weighed(parts, specs, covariates, weight)
        every = [*specs.values(), *itertools.chain.from_iterable(covariates.values())]
        summed = itertools.chain(beside, *every)
        plain = list(dict.fromkeys(num for num, _ in named.values())) if weight else []
        columns = list(dict.fromkeys(name for name in summed if name is not None))
        at = {name: i for i, name in enumerate(columns)}
        forms = [
            (linear(one, at), tuple(linear(x, at) for x in covariates.get(name, ())))
            for name, one in specs.items()
        ]
        cell_forms = {} if before is None else before.cell_forms(control)
        summing = Summing.planned(parts, forms, columns, labels, key, beside, plain, cell_forms)
        users = SummedUsers.of(parts, summing, cell_forms)
        variant, variants = group_codes(users.labels, "data", [variant_col])
        group, groups = group_codes(users.labels, "data", by_cols)
        stratum, levels = group_codes(users.labels, "data", strata)
        kinds, kind = np.unique([one for one, *_ in users.keys], return_inverse=True)
        cells = np.full((len(groups), len(variants), len(levels), len(kinds)), NO_USERS)
        cells[group, variant, stratum, kind] = np.arange(len(users.keys))
        if rows is not None:
            same = rows.variants.tolist(), rows.groups.to_numpy().tolist()
            if same != (variants[variant_col].tolist(), groups[by_cols].to_numpy().tolist()):
                raise RowsNeeded
            # A key was found to be distinct, so that every row is a user.
            rows = replace(rows, users=np.arange(len(rows.variant))) if key else rows
        found = cls(
            specs,
            covariates,
            at,
            groups[by_cols],
            variants[variant_col],
            cells,
            rows,
            users=users,
            identified=key is not None,
            stratified=bool(strata),
            kinds=kinds,
            named=named,
            weight=weight,
        )
        found._leave_errors_to_rows(nan)
        return replace(found, spreads=found.regressions(parts, control))

    def _leave_errors_to_rows(self, nan: RaiseOrDrop) -> None:
        """Raise `RowsNeeded` where rows are an error, which names them: values that are null, an
        arm without users in a stratum, and denominators below 0."""
        lost = [
            self.missing(one) & ~self.nothing_to_count(i)
            for i, one in enumerate(self.specs.values())
        ]
        of_covariates = itertools.chain.from_iterable(self.covariates.values())
        dens = [self.at[den] for _, den in (*self.specs.values(), *of_covariates) if den]
        if (
            (nan == "raise" and np.any(lost))
            or (self.cells == NO_USERS).all(axis=3).any()
            or (self.users.record.low[dens] < 0).any()
        ):
            raise RowsNeeded

    def each(self, control: OneLabel) -> Iterator[tuple[int, InCells]]:
        """Every metric in both arms of every comparison."""
        pairs = Arms.of(self.groups, self.variants, control, "data").pairs
        for metric, pair in itertools.product(range(len(self.specs)), pairs):
            for cells in self.cells:
                yield metric, self.in_cells(metric, cells[list(pair)])

    def cell_forms(self, control: OneLabel) -> dict[tuple[Any, ...], dict[CellKey, CellForm]]:
        """The form whose size says how far a unit is from the mean, in each cell of every metric,
        control and treatment."""
        found: dict[tuple[Any, ...], dict[CellKey, CellForm]] = {}
        for metric, of in self.each(control):
            if no_estimate(of.units):
                raise RowsNeeded
            values = estimate(of.units).values
            n_columns = len(self.users.form(metric).columns)
            forms = found.setdefault((metric, *self.users.variants_of(of.cells)), {})
            arms = of.cells.reshape(len(values.form), -1)
            for cells, form, centre in zip(arms, values.form, values.centres, strict=True):
                for cell, constant in zip(cells.tolist(), of.constants, strict=True):
                    if cell != NO_USERS:
                        rest = np.where(np.isnan(constant), form, 0)[:n_columns]
                        at = float(centre + form @ np.nan_to_num(constant))
                        forms[self.users.keys[cell]] = CellForm(rest, at, form, centre)
        return found

    def regressions(self, parts: UserParts, control: OneLabel) -> dict[tuple[int, ...], Floats]:
        """What the variance of each regression needs (2, strata, columns, columns), from another
        pass over the users."""
        of_cells: dict[int, list[Regressed]] = {}
        places: dict[tuple[int, ...], slice] = {}
        sizes: list[int] = []
        for metric, of in self.each(control):
            if not of.units.regressed:
                continue
            first = len(sizes)
            columns = self.users.form(metric).columns
            for fit, own in zip(fits(of.units), of.cells, strict=True):
                read = [columns[i] if i < len(columns) else columns[0] for i in fit.columns]
                for stratum, cells in enumerate(own.tolist()):
                    for cell, constants in zip(cells, of.constants[:, fit.columns], strict=True):
                        needed = Regressed(len(sizes), fit, stratum, read, constants)
                        of_cells.setdefault(cell, []).append(needed)
                    sizes.append(len(fit.columns))
            places[of.key] = slice(first, len(sizes))
        if not places:
            return {}
        found = self.users.spreads(parts, of_cells, sizes)
        shape = (2, self.cells.shape[2])
        return {
            key: np.reshape(found[at], (*shape, *found[at.start].shape))
            for key, at in places.items()
        }

    def in_cells(self, metric: int, cells: Codes) -> InCells:
        """Both arms of a metric, without users who have no value."""
        (name, one), form = [*self.specs.items()][metric], self.users.form(metric)
        there = ~self.missing(one) & (self.users.record.n[cells].sum(axis=(0, 1)) > 0)
        given = self.covariates.get(name, ())
        used = self.usable(given, cells, there)
        known = cells[..., there]
        gaps = [self.missing(x)[there] for x in used]
        regressed = one[1] is None and bool(used)
        regressed &= len(used) > 1 or self.stratified or bool(np.any(gaps))
        flags = [gap for gap in gaps if gap.any()] if regressed else []
        constants = self.constants(form.columns, cells, [one, *used], there)
        if regressed:
            constants = np.column_stack([constants, *flags])
        covariates = [form.covariates[given.index(x)] for x in used]
        covariates += [Linear(len(form.columns) + i) for i in range(len(flags))]
        units = self.users.units(metric, known, tuple(covariates), constants, self.stratified)
        key = metric, *known.max(axis=(1, 2)).tolist()
        units = replace(units, regressed=regressed, spreads=self.spreads.get(key))
        missing = np.logical_or.reduce([~there, *(self.missing(x) for x in given)])
        n_missing = int(self.count(missing & there, cells).sum())
        remarks = ("unequal_covariate_missing",) * (len(used) < len(given))
        return InCells(key, known, units, constants, n_missing, remarks)

    def tested(self) -> dict[str, dict[str, MetricColumns]]:
        weight: dict[str, MetricColumns] = (
            {} if self.weight is None else {self.weight: (self.weight, None)}
        )
        return {metric: own | weight for metric, own in super().tested().items()}

    @property
    def counts(self) -> Floats:
        known = self.identified or len(self.n) == 1
        over_all = self.n.sum(axis=0) if known else np.full(self.n.shape[1], np.nan)
        return np.vstack([self.n, over_all])

    @cached_property
    def metric_kinds(self) -> list[MetricKind]:
        """What the columns of each metric tell, without weights."""
        found = []
        for columns in self.named.values():
            if self.weight is not None:
                found.append(MetricKind.of_extremes(columns, self.users.summing.extremes))
                continue
            at = self.at[columns[0]]
            known = self.users.record.cells(self.cells[..., self.kinds >> at & 1 == 0].ravel())
            seen = known.low[at], known.high[at]
            found.append(MetricKind.of(columns, seen, known.only_0_and_1(at)))
        return found

    def ready(self, metric: int, cells: Codes, settings: Settings) -> Ready:
        name, (num, den) = [*self.specs.items()][metric]
        null = self.missing((num, den))
        empty = self.nothing_to_count(metric)
        of = self.in_cells(metric, cells)
        kind = self.metric_kinds[metric]
        odd = settings.tests[name] == "proportion" and not kind.share
        # The values of other arms tell nothing of those that may be 0 and 1 here.
        record = of.units.record
        assert isinstance(record, Aggregates)
        like = self.stratified and den is None and record.like_0_and_1(of.units.metric.num)
        odd |= like and not record.only_0_and_1(of.units.metric.num)
        if odd or no_estimate(of.units):
            raise RowsNeeded
        unknown = self.count(null & ~empty, cells)
        every = self.count(null | ~null, cells)
        dropped = both(int, tuple(self.count(null, cells).sum(axis=1)))
        unequal = differ(unknown, every, self.stratified, self.groups)
        return Ready(
            name,
            of.units,
            dropped,
            of.remarks + ("unequal_missing",) * unequal,
            kind,
            of.n_missing,
        )

    def sums_of(
        self, columns: list[int], cells: Codes, covariates: Sequence[MetricColumns]
    ) -> tuple[UnitsRecord, ThirdMoment]:
        def third(form: Floats, record: Any, stratum: int) -> float:
            past, cubes = self.users.past, self.users.past_cubes
            if cubes is None or not {*columns} <= {*past}:
                raise RowsNeeded
            cubes = cubes.cells(cells[:, stratum], self.constants(past, cells, covariates))
            every = np.zeros((4, len(past)))  # of all covariates: 0 of those that have no part in z
            half = (record.high - record.low) / 2
            of_columns = form, record.grid.base, record.above[0], half
            every[:, [past.index(i) for i in columns]] = of_columns
            spread = np.sqrt(record.squares(form[None]) / record.n).repeat(2)
            own, base, above, half = np.tile(every[:, None], (2, 1))
            return float(cubes.of(own, base, above, half[0], spread).sum())

        constants = self.constants(columns, cells, covariates)
        return self.users.known(cells.reshape(-1, cells.shape[2]), columns, constants), third


def rows_and_differences(
    given: Any,
    head: DataFrame,
    variant_col: str,
    by_cols: list[str],
    times: TimeColumns,
    health: DataFrame | None,
) -> tuple[ExperimentRows | None, list[Difference]]:
    """The rows of users in parts by their variants, strata and times, if there are any, and what
    these say against their variants: they are few columns, and the tests need them together."""
    names = times.named
    names += [name for name in head.columns if looks_like_date(head[name])]
    names += [*key_of_health(health), *({LEFT_OUT} & {*head.columns})]
    if not names:
        return None, []
    used = {*names, variant_col, *by_cols}
    data = needed_frame(given, "data", lambda head: [one for one in head.columns if one in used])
    rows = read_experiment_rows(data, variant_col, by_cols, None, times.strata, (), [*data.columns])
    return differences_in_time(data, rows, [variant_col, *by_cols], times)

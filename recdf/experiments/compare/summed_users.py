"""The comparison of variants from sums: of users in parts, which are not in memory, or of users of
whom only moments are known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ...inputs.data_files import OfBatches, UserParts, frame_of_table, needed_frame
from ...inputs.options import as_columns
from ...judge.aggregates import RowsNeeded, UnitsRecord
from ...judge.choices import Columns, RaiseOrDrop, Row
from ...judge.effects.fits import Fit, fits
from ...judge.effects.units import Linear, quantity
from ...judge.in_parts import Regressed, SummedUsers, floats_of
from ...judge.per_user_columns import Codes, Floats, MetricColumns, group_codes
from ...judge.users import ExperimentRows, may_be_unit, read_experiment_rows
from ...stats.arms import HUGE, MEAN_ROUNDING, both
from ...stats.numbers import undefined_is_nan
from ...stats.resampling import SKEWED, SYMMETRIC, skewed_p
from ..decide.balance import (
    TINY_REST,
    Difference,
    balance_of,
    in_time,
    looks_like_date,
    moved_by_worth,
)
from ..decide.experiment_health import key_of
from ..decide.sample_ratio import Surplus
from ..samples import MetricRows, Ready, Settings, defined_bounds, differ, read_metrics
from .arms_of_users import compare_ready, no_estimate, with_moved

Specs = Mapping[str, MetricColumns]


@dataclass(frozen=True)
class ArmsInCells:
    """The users of every group and variant in `cells` (groups, variants, strata, and parts that
    differ in what is null); `at` has the column of each name."""

    specs: Specs
    covariates: Mapping[str, Sequence[MetricColumns]]
    at: Mapping[str, int]
    groups: pd.DataFrame
    variants: pd.Series
    cells: Codes
    rows: ExperimentRows | None

    @property
    def n(self) -> Floats:
        """Users of each group and variant."""
        raise NotImplementedError

    def tested(self, metric: str) -> dict[str, MetricColumns]:
        """What is to be alike in both arms of a metric, by its name."""
        return {"/".join(filter(None, pair)): pair for pair in self.covariates.get(metric, ())}

    def counts(self, health: pd.DataFrame | None) -> Floats:
        """Users of every variant, in each group and over all of them."""
        raise NotImplementedError

    def ready(self, metric: int, pair: Codes, settings: Settings) -> Ready:
        """Both arms of a metric, which are two cells."""
        raise NotImplementedError

    def record_of(self, columns: list[int], pair: Codes) -> UnitsRecord:
        """Some columns in two cells."""
        raise NotImplementedError

    def third(self, form: Floats, both: Any, columns: list[int], pair: Codes) -> float:
        """Σ (f·(x − mean))³ of some columns over both arms; `RowsNeeded` where nobody knows it."""
        raise NotImplementedError

    def without_ranks(self) -> float:
        """The skewness to count with where a covariate is so skewed that rows compare its ranks."""
        raise RowsNeeded

    def tested_together(self, names: Iterable[str]) -> list[list[str]]:
        """Covariates that are tested beside each other."""
        return [[*names]]

    def forms(self, names: Iterable[MetricColumns]) -> tuple[list[int], list[Linear]]:
        """The columns of some metrics, and the metrics by their places among these."""
        of = list(names)
        used = list(dict.fromkeys(one for pair in of for one in pair if one is not None))
        places = {name: i for i, name in enumerate(used)}
        return [self.at[name] for name in used], [linear(pair, places) for pair in of]

    def compare(
        self, group: int, pair: tuple[int, int], settings: Settings, surplus: Surplus
    ) -> list[Row]:
        """One row per metric for one treatment in one group."""
        cells = self.cells[group, list(pair)]
        ready = [self.ready(i, cells, settings) for i in range(len(self.specs))]
        found = compare_ready(ready, settings, None, surplus)
        if self.rows is None or self.rows.movable is None:
            return found
        both_arms = self.rows.both(group, pair)
        for i, units in enumerate(one.units for one in ready):
            whole, n = units.whole, np.array(units.n)
            form = quantity(whole.strata.mean, whole.metric).form
            var = float((whole.record.squares(np.tile(form, (2, 1))) / (n - 1) / n).sum())
            worth = quantity(units.record.mean, units.metric).value.reshape(2, -1).T
            found[i] = with_moved(found[i], moved_by_worth(worth, var, both_arms, self.rows))
        return found

    def unbalanced(
        self, pairs: Sequence[tuple[int, int]]
    ) -> tuple[list[Difference], dict[str, Floats]]:
        """Test every covariate of every pair of control and treatment."""
        names = {name: self.tested(name) for name in self.specs}
        used = {x: pair for own in names.values() for x, pair in own.items()}
        n_groups, n_variants, n_strata, _ = self.cells.shape
        if used and n_strata > 1:
            raise RowsNeeded
        p = np.full((len(used), n_groups, n_variants, n_variants), np.nan)
        places = {name: i for i, name in enumerate(used)}
        for group, pair in itertools.product(range(n_groups), pairs):
            for together in self.tested_together(used) if used else ():
                columns, forms = self.forms([used[name] for name in together])
                found = self._p_values(columns, forms, self.cells[group, list(pair), 0])
                p[[places[name] for name in together], group, *pair] = found
        return balance_of(p, {x: [m for m in names if x in names[m]] for x in used}, self.specs)

    def _p_values(self, columns: list[int], covariates: Sequence[Linear], cells: Codes) -> Floats:
        """p of each covariate over random splits, and beside the others after a regression on
        them."""
        arms = self.record_of(columns, cells)
        if min(arms.n) < 2:
            return np.full(len(covariates), np.nan)
        both = arms.cells(np.array([[0, 1]]))
        forms = np.array([quantity(both.mean, one).form[0] for one in covariates])
        # In standard deviations: beside large covariates, small ones would be lost.
        spread = np.sqrt(np.maximum(np.diag(forms @ both.central[0] @ forms.T), 0.0))
        forms /= np.where(spread > 0, spread, 1.0)[:, None]
        if any(x.den is not None and not (arms.mean[:, x.den] > 0).all() for x in covariates):
            raise RowsNeeded
        half = (arms.high - arms.low) / 2 + np.abs((arms.high + arms.low) / 2 - both.mean[0])
        (n_c, n_t), n = arms.n, both.n[0]
        turn = (n - 2 * n_t) * math.sqrt(n - 1) / ((n - 2) * math.sqrt(n_c * n_t))

        def p_of(form: Floats) -> float:
            var, skewness = both.squares(form[None])[0] / n, 0.0
            # A constant ratio, such as a covariate times the weights, leaves rounding.
            if not math.sqrt(max(var, 0.0)) > MEAN_ROUNDING * (np.abs(form) @ half):
                return np.nan
            used = form != 0
            if turn and not abs(turn) * (np.abs(form) @ np.where(used, half, 0)) < (
                SYMMETRIC * math.sqrt(var)
            ):
                skewness = turn * self.third(form, both, columns, cells) / n / var**1.5
            if abs(skewness) > SKEWED:  # ranks take the place of values
                skewness = self.without_ranks()
            se = math.sqrt(var * n / (n - 1) * (1 / n_c + 1 / n_t))
            return skewed_p(form @ (arms.above[1] - arms.above[0]) / se, skewness)

        products = forms @ both.central[0] @ forms.T
        found = []
        for i, form in enumerate(forms):
            p, others = p_of(form), [j for j in range(len(forms)) if j != i]
            if others:
                inner = np.linalg.pinv(products[np.ix_(others, others)], hermitian=True)
                rest = form - inner @ products[others, i] @ forms[others]
                left = both.squares(rest[None])[0]
                if left > TINY_REST**2 * products[i, i]:
                    p = 2 * np.fmin(p, p_of(rest))
            found.append(p)
        return np.array(found)


def linear(pair: MetricColumns, at: Mapping[str, int]) -> Linear:
    """A metric by the places of its columns."""
    return Linear(at[pair[0]], None if pair[1] is None else at[pair[1]])


def needs_regression(specs: Specs, covariates: Mapping[str, Sequence[MetricColumns]]) -> bool:
    """Whether a mean has several covariates, by all of which a regression weighs each user."""
    return any(len(xs) > 1 and specs[name][1] is None for name, xs in covariates.items())


# Ends of the names of products with the weight. Where it is 0, a numerator is null and a
# denominator 0, whatever numbers they are; a covariate is known or null as ever.
_NUM, _DEN, _PAST = "\0num", "\0den", "\0past"


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
        read = [self.weight, *(name.partition("\0")[0] for name in self.made)]
        (weight, *values), null = floats_of(batch, read, np.full(len(read), np.nan))
        weight = np.where((weight >= 0) & (weight < np.inf), weight, np.nan)
        columns = {name: batch.column(name) for name in batch.schema.names}
        columns[self.weight] = pa.array(weight)
        for i, (name, one) in enumerate(zip(self.made, values, strict=True), 1):
            gaps = np.zeros(len(one), bool) if null is None else null >> i & 1 == 1
            with undefined_is_nan():
                product = one * weight
            if not name.endswith(_PAST):
                den, unused = name.endswith(_DEN), weight == 0
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

    def ratio(pair: MetricColumns, ends: tuple[str, str]) -> MetricColumns:
        num, den = pair
        return num + ends[0], weight if den is None else den + ends[1]

    own = {name: ratio(pair, (_NUM, _DEN)) for name, pair in specs.items()}
    past = {name: [ratio(x, (_PAST, _PAST)) for x in xs] for name, xs in covariates.items()}
    if any("\0" in name for name in [weight, *parts.head.columns]):
        raise RowsNeeded
    every = [*own.values(), *itertools.chain.from_iterable(past.values())]
    made = list(dict.fromkeys(name for pair in every for name in pair if name != weight and name))

    def run(function: OfBatches, columns: list[str]) -> list[Any]:
        products = [name for name in columns if name in made]
        sources = (name.partition("\0")[0] for name in columns)
        return parts.run(Weighing(function, products, weight), [*dict.fromkeys([weight, *sources])])

    sample = Weighing(iter, made, weight).of(parts.sample)
    return replace(parts, sample=sample, run=run, spans=lambda _: None), own, past


@dataclass(frozen=True)
class SummedArms(ArmsInCells):
    """Users in parts, by their aggregates. `named` are the columns of the metrics without
    weights."""

    users: SummedUsers
    identified: bool
    kinds: Codes
    named: Specs
    weight: str | None
    spreads: Mapping[int, Floats]

    @property
    def n(self) -> Floats:
        return np.asarray(self.users.record.n[self.cells].sum(axis=(2, 3)))

    def record_of(self, columns: list[int], pair: Codes) -> UnitsRecord:
        return self.users.record.cells(pair).columns(columns)

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
        before: SummedUsers | None = None,
    ) -> SummedArms:
        """Add up the users; `RowsNeeded` if that does not suffice. `rows` have their labels and
        times, if these matter."""
        named, beside = specs, [*filter(None, [weight])]
        used = {variant_col, *by_cols, *strata, *beside}
        used |= {name for pair in specs.values() for name in pair if name}
        frame = parts.sample.to_pandas() if parts.some is None else parts.some
        if weight in {variant_col, *by_cols, *strata}:
            raise RowsNeeded
        if weight is not None:
            parts, specs, covariates = weighed(parts, specs, covariates, weight)
        pairs: list[MetricColumns] = [(name, None) for name in beside]
        pairs += [*specs.values(), *itertools.chain.from_iterable(covariates.values())]
        columns = list(dict.fromkeys(name for pair in pairs for name in pair if name is not None))
        at = {name: i for i, name in enumerate(columns)}
        if explicit := as_columns(user_col):
            keys = explicit
        else:
            keys = [name for name in ["user_id"] if name in parts.head.columns]
        arm = group_codes(frame, "data", [variant_col])[0]
        # Ids beside the key that may be the units that were assigned need the rows.
        guessed = explicit not in ([], ["user_id"]) and "user_id" in frame.columns
        others = [frame[name] for name in frame.columns if name not in {*used, "user_id"}]
        guessed |= explicit != ["user_id"] and any(may_be_unit(one, arm) for one in others)
        tested = [*beside, *itertools.chain.from_iterable(covariates.values())]
        in_memory = parts.some is not None and needs_regression(specs, covariates)
        if guessed or len(keys) > 1 or (strata and tested) or in_memory:
            raise RowsNeeded
        forms = [
            (linear(pair, at), tuple(linear(x, at) for x in covariates.get(name, ())))
            for name, pair in specs.items()
        ]
        labels = [*by_cols, *strata, variant_col]
        key = keys[0] if keys else None
        users = SummedUsers.of(parts, forms, columns, labels, key, beside, before)
        variant, variants = group_codes(users.labels, "data", [variant_col])
        group, groups = group_codes(users.labels, "data", by_cols)
        stratum, levels = group_codes(users.labels, "data", strata)
        kinds, kind = np.unique([one for one, *_ in users.cells], return_inverse=True)
        last = len(users.cells)
        cells = np.full((len(groups), len(variants), len(levels), len(kinds)), last)
        cells[group, variant, stratum, kind] = np.arange(last)
        lost = bool(strata) and bool(kinds.any())
        for i, pair in enumerate(specs.values()):
            null = np.logical_or.reduce([kinds >> at[name] & 1 for name in pair if name])
            lost |= nan == "raise" and bool((null & ~(kinds >> (len(at) + i) & 1)).any())
        past = {name for xs in covariates.values() for x in xs for name in x if name is not None}
        if lost or any((kinds >> at[name] & 1).any() for name in past):
            raise RowsNeeded
        if (cells == last).all(axis=3).any() or any(
            users.record.low[at[den]] < 0 for _, den in pairs if den is not None
        ):
            raise RowsNeeded
        if rows is not None:
            same = rows.variants.tolist(), rows.groups.to_numpy().tolist()
            if same != (variants[variant_col].tolist(), groups[by_cols].to_numpy().tolist()):
                raise RowsNeeded
            rows = replace(rows, users=np.arange(len(rows.variant))) if keys else rows
        labels_of = groups[by_cols], variants[variant_col]
        found = cls(
            specs,
            covariates,
            at,
            *labels_of,
            cells,
            rows,
            users,
            bool(keys),
            kinds,
            named,
            weight,
            {},
        )
        regressed = [i for i, (one, xs) in enumerate(forms) if one.den is None and len(xs) > 1]
        if not regressed:
            return found
        spreads = users.spreads(parts, [found.regression(i, *forms[i]) for i in regressed])
        return replace(found, spreads=dict(zip(regressed, spreads, strict=True)))

    def regression(self, metric: int, one: Linear, covariates: Sequence[Linear]) -> Regressed:
        """That of a metric on its covariates, in each group and variant."""
        columns = [one.num, *(x.num for x in covariates)]
        known = self.kinds >> one.num & 1 == 0
        arms = self.cells[:, :, 0, known].reshape(-1, np.count_nonzero(known))
        found: list[Fit | None] = [None] * len(self.users.record.n)
        for cells, fit in zip(arms, fits(self.users.record.cells(arms), columns), strict=True):
            for cell in cells.tolist():
                found[cell] = fit
        found[-1] = None  # that of no users
        return Regressed(columns, found)

    def tested(self, metric: str) -> dict[str, MetricColumns]:
        found = {}
        for pair in self.covariates.get(metric, ()):
            names = [name.partition("\0")[0] for name in pair if name and name != self.weight]
            found["/".join(names)] = pair
        return found if self.weight is None else {**found, self.weight: (self.weight, None)}

    def counts(self, health: pd.DataFrame | None) -> Floats:
        known = self.identified or len(self.n) == 1
        over_all = self.n.sum(axis=0) if known else np.full(self.n.shape[1], np.nan)
        return np.vstack([self.n, over_all])

    def ready(self, metric: int, pair: Codes, settings: Settings) -> Ready:
        name, (num, den) = [*self.specs.items()][metric]
        null = self.kinds >> self.at[num] & 1 == 1
        empty = self.kinds >> (len(self.at) + metric) & 1 == 1
        if den is not None:
            null |= self.kinds >> self.at[den] & 1 == 1
        units = self.users.units(metric, pair[:, :, ~null])
        share = settings.tests[name] == "proportion"
        odd = share and (den is not None or not self.users.record.only_0_and_1(self.at[num]))
        if odd or no_estimate(units):
            raise RowsNeeded
        if metric in self.spreads:
            of_arms = self.spreads[metric][pair[:, 0, ~null]].sum(axis=1)
            units = replace(units, spreads=of_arms)
        n = self.users.record.n[pair]
        n_null, dropped = (
            both(int, tuple(n[:, :, of].sum(axis=(1, 2)))) for of in (null & ~empty, null)
        )
        num, den = self.named[name]
        bounds = defined_bounds(num) if den in (None, f"{num}__n") else None
        of = None if den is None else (num, den)
        warnings = unequal_missing(n_null, both(lambda *some: sum(some), units.n, dropped))
        return Ready(name, units, dropped, warnings, pair=of, bounds=bounds)

    def third(self, form: Floats, both: Any, columns: list[int], pair: Codes) -> float:
        cubes, past = self.users.cubes_of(-1, pair), self.users.past
        if cubes is None or not {*columns} <= {*past}:
            raise RowsNeeded
        own = [columns.index(i) for i in past]
        tiled, above = (np.tile(x[own], (2, 1)) for x in (form, both.above[0]))
        half, spread = (both.high - both.low)[own] / 2, np.sqrt(both.squares(form[None]) / both.n)
        return float(cubes.of(tiled, both.grid.base[own], above, half, spread.repeat(2)).sum())


_ROWS = "\0rows"  # the column of their number
# Sums that reach as far as so many of their standard deviations are exact to 1e-11 of these.
_MOST_OF_SUMS = 5e4


@dataclass(frozen=True)
class ClusterSums:
    """Sums of the numbers and the number of rows, for each combination of the keys; NaN where a
    number is null, one of `dens` is negative, or one of the `ids` may be unknown."""

    keys: list[str]
    numbers: list[str]
    dens: set[str | None]
    ids: list[str]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> pa.Table | None:
        own = []
        for batch in batches:
            made = {name: batch.column(name) for name in self.keys}
            for name, one in made.items():
                if pa.types.is_dictionary(one.type):
                    made[name] = one.dictionary_decode()
            values, _ = floats_of(batch, self.numbers, np.full(len(self.numbers), np.nan))
            for name, one in zip(self.numbers, values, strict=True):
                made[name] = pa.array(np.where(one < 0, np.nan, one) if name in self.dens else one)
            ids = [batch.column(name) for name in self.ids]
            unknown = any(one.null_count or pa.types.is_floating(one.type) for one in ids)
            made[_ROWS] = pa.array(np.full(len(batch), np.nan if unknown else 1.0))
            own.append(self.of(pa.table(made)))
        return self.of(pa.concat_tables(own)) if own else None

    def of(self, rows: pa.Table) -> pa.Table:
        added = [*self.numbers, _ROWS]
        found = rows.group_by(self.keys, use_threads=False).aggregate([(x, "sum") for x in added])
        columns = [found[name] for name in [*self.keys, *(f"{x}_sum" for x in added)]]
        return pa.table(columns, names=[*self.keys, *added])


def _exact(data: pd.DataFrame, numbers: list[str], labels: list[str]) -> bool:
    """Whether the sums of the clusters tell their distances in each arm. Sums of huge numbers lose
    the digits of a small spread; those of whole numbers are exact."""
    arms = data.groupby(labels, observed=True, dropna=False)
    rows, of_arm = data[_ROWS], arms[_ROWS].transform("sum")
    for name in numbers:
        apart = data[name] - rows * (arms[name].transform("sum") / of_arm)
        spread = np.sqrt((apart**2).groupby(arms.ngroup()).transform("mean"))
        far = data[name].abs() > _MOST_OF_SUMS * spread
        if (far & (data[name] % 1 != 0)).any():
            return False
    return True


def clusters_in_parts(
    parts: UserParts,
    specs: Specs,
    covariates: Mapping[str, Sequence[MetricColumns]],
    keys: list[str],
    labels: list[str],
    ids: list[str],
) -> tuple[pd.DataFrame, list[MetricRows]]:
    """A row for each cluster and combination of the other keys, and the metrics of these rows.
    `labels` are the keys of segments and variants, and `ids` those of users."""
    every = [*specs.values(), *itertools.chain.from_iterable(covariates.values())]
    numbers = list(dict.fromkeys(name for pair in every for name in pair if name is not None))
    made = {*numbers, _ROWS} | {f"{name}_sum" for name in [*numbers, _ROWS]}
    if made & {*keys}:
        raise RowsNeeded
    sums = ClusterSums(keys, numbers, {den for _, den in specs.values()}, ids)
    try:
        sums([parts.sample])  # what cannot be added up fails here, and not in an engine's worker
        found = filter(None, parts.run(sums, list(dict.fromkeys([*keys, *numbers, *ids]))))
        data = parts.typed(frame_of_table(sums.of(pa.concat_tables(found))), labels)
    except pa.ArrowException:  # such as keys that are lists
        raise RowsNeeded from None
    small = (np.abs(data[numbers].to_numpy()) < HUGE).all()  # and no NaN
    if not small or data[_ROWS].sum() != parts.n or not _exact(data, numbers, labels):
        raise RowsNeeded

    def counted(pair: MetricColumns) -> MetricColumns:
        return pair[0], pair[1] or _ROWS

    own = {name: counted(pair) for name, pair in specs.items()}
    past = {name: [*map(counted, xs)] for name, xs in covariates.items()}
    metrics = []
    for one, (num, den) in zip(read_metrics(data, own, past, "raise"), specs.values(), strict=True):
        names = ["/".join(filter(None, pair)) for pair in covariates.get(one.name, ())]
        xs = dict(zip(names, one.covariates.values(), strict=True))
        bounds = defined_bounds(num) if den in (None, f"{num}__n") else None
        pair = None if den is None else (num, den)
        metrics.append(replace(one, covariates=xs, bounds=bounds, pair=pair))
    return data, metrics


def unequal_missing(n_null: tuple[int, int], of: tuple[float, float]) -> tuple[str, ...]:
    """The code of the remark that one arm has more users without a value, if it does."""
    return ("unequal_missing",) if differ(n_null, of) else ()


def labels_in_memory(
    given: Any,
    head: pd.DataFrame,
    variant_col: str,
    by_cols: list[str],
    times: tuple[str | None, list[str], str | None],
    health: pd.DataFrame | None,
) -> tuple[ExperimentRows | None, list[Difference]]:
    """The rows of users in parts by their variants, strata and times, if there are any: these are
    few columns, and what is tested about them needs them together."""
    time_col, strata, covariate_time_col = times
    names = [*strata, *filter(None, [time_col, covariate_time_col])]
    names += [name for name in head.columns if looks_like_date(head[name])]
    if health is not None and "users_digest" in health.columns and len(health):
        names += key_of(health["users_digest"].iloc[0])
    if not names:
        return None, []
    used = {*names, variant_col, *by_cols}
    data = needed_frame(given, "data", lambda head: [one for one in head.columns if one in used])
    rows = read_experiment_rows(data, variant_col, by_cols, None, strata, (), [*data.columns])
    return in_time(data, rows, [variant_col, *by_cols], *times)

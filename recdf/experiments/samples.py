"""Options of a comparison, and columns of a frame as the units that the statistics work on: metrics
with their covariates, caps and nulls; then the units of two arms, with which rows count, what is
summed per cluster and what is adjusted for."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from pandas import DataFrame

from ..errors import DataError, OptionError
from ..inputs.constraints import (
    SHARE,
    AtLeast2,
    Natural,
    Repetitions,
    Share,
    check_record,
    check_value,
)
from ..inputs.frames import OneRecord
from ..judge.cautions import UNEQUAL
from ..judge.choices import (
    Alternative,
    Columns,
    Correction,
    PairMissing,
    PairTest,
    RaiseOrDrop,
    Relative,
    VariantTest,
    as_columns,
)
from ..judge.comparisons import Comparison, default_columns, unit_of_rows
from ..judge.effects.units import Linear, Units
from ..judge.per_user_columns import (
    Codes,
    CovariateColumns,
    Floats,
    Mask,
    MetricColumns,
    covariate_name,
    exact_sums,
    metric_specs,
    metric_values,
    read_weight,
    some_keys,
)
from ..judge.users import ArmRows, ExperimentRows
from ..stats.arms import HUGE, Sample
from ..stats.resampling import Split, splits_p
from ..stats.shares import equal_shares_test
from .metric_bounds import UNKNOWN_KIND, MetricBounds, MetricKind

# ------------------------------------------------------------------------------------------
# Options of one comparison of models or of variants: checked once, and handed on as one record.


def subset(name: str, chosen: str | Collection[str] | None, specs: Collection[str]) -> list[str]:
    """Metrics that an option names; one that is not compared raises."""
    named = as_columns(chosen)
    unknown = [metric for metric in named if metric not in specs]
    if unknown:
        raise OptionError(
            f"⟦{name}=⟧ names {unknown}, which are not compared; metrics are {list(specs)}"
        )
    return named


def per_metric(argument: str, given: Any, specs: Collection[str], allowed: Any) -> dict[str, Any]:
    """An option by metric, from one value for all of them or from a mapping of some to theirs."""
    mapped = isinstance(given, Mapping)
    found = dict(given) if mapped else {} if given is None else dict.fromkeys(specs, given)
    for name in subset(argument, list(found), specs):
        check_value(f"{argument}[{name!r}]" if mapped else argument, found[name], allowed)
    return found


@dataclass(frozen=True)
class Settings:
    """Options that every pair of arms or models needs, and the table that is made of them.

    `tests` has the test of every metric, and `margins` what does not matter in some of them.
    `primary` metrics are a family of their own, and `bounds` are those that the caller declares.
    """

    tests: Mapping[str, VariantTest | PairTest] = field(default_factory=dict)
    alternative: Alternative = "two-sided"
    confidence: Share = 0.95
    correction: Correction = "holm"
    family: Columns | None = None
    primary: Sequence[str] = ()
    n_resamples: Repetitions = 2000
    seed: Natural = 0
    sequential_n: AtLeast2 | None = None
    relative: Relative = "fieller"
    missing: PairMissing = "raise"
    margins: Mapping[str, float] = field(default_factory=dict)
    details: bool = True
    bounds: Mapping[str, MetricBounds] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_record(self)

    @property
    def alpha(self) -> float:
        return 1 - self.confidence

    def compared(
        self, table: DataFrame, columns: list[str], kind: str, labels: Mapping[str, Any]
    ) -> DataFrame:
        """Return the columns of a comparison, which shows itself and says how it was made."""
        result = table.assign(confidence=self.confidence)[columns]
        for place, name in enumerate(labels):
            result.insert(place, name, labels[name])
        result.attrs["recdf_comparison"] = OneRecord(
            {
                "kind": kind,
                "by": [*labels],
                "confidence": self.confidence,
                "tests": sorted({*self.tests.values()}),
                "alternative": self.alternative,
                "correction": self.correction,
                "family": as_columns(self.family),
                "primary": list(self.primary),
                "sequential_n": self.sequential_n,
                "unit": unit_of_rows(result),
            }
        )
        return default_columns(Comparison.of(result), self.details)


def which_tests(test: Any, specs: Mapping[str, Any]) -> dict[str, Any]:
    """Test of every metric; Student's t for those that a mapping does not name."""
    return dict.fromkeys(specs, "t") | per_metric("test", test, specs, VariantTest)


# ------------------------------------------------------------------------------------------
# Columns of a frame as metrics with their covariates, caps and nulls; then as units of two arms.


def declared_bounds(bounds: Any, metrics: Collection[str]) -> dict[str, MetricBounds]:
    """Return what `bounds=` says of the metrics; a wrong name or pair raises."""
    if bounds is None:
        return {}
    if not isinstance(bounds, Mapping):
        raise OptionError(
            f'⟦bounds={bounds!r}⟧ is no mapping; expected such as {{"latency": (0, 30)}}'
        )
    found = {}
    subset("bounds", list(bounds), metrics)
    for name, pair in bounds.items():
        try:
            low, high = map(float, pair)
        except (TypeError, ValueError):
            low = high = math.nan
        if not (low < high and math.isfinite(high - low)):
            raise OptionError(
                f"bounds[{name!r}] is {pair!r}; expected two finite numbers, the smaller first"
            )
        found[name] = low, high
    return found


@dataclass(frozen=True)
class MetricRows:
    """One metric over all rows.

    `defined` is None when every row counts. Rows that do not are null, have the weight 0, or, for a
    ratio of sums, have nothing to count (a denominator of 0 beside a null numerator). Only the
    first kind is in `null`, since the others add nothing to either sum.
    """

    name: str
    sample: Sample
    covariates: dict[str, Sample]
    defined: Mask | None = None
    null: Mask | None = None
    cap: float = np.nan
    kind: MetricKind = UNKNOWN_KIND

    def kept(self, rows: Codes) -> Codes:
        """The rows that count."""
        return rows if self.defined is None else rows[self.defined[rows]]

    def n_null(self, rows: Codes) -> int:
        return 0 if self.null is None else int(self.null[rows].sum())


def covariate_specs(
    covariates: Any, specs: Mapping[str, MetricColumns], data: DataFrame, role: str = "data"
) -> dict[str, list[MetricColumns]]:
    """Columns of the covariates of every metric: one column, a list of columns, or for a ratio a
    tuple of two."""
    if covariates is None:
        return {}
    if isinstance(covariates, Collection) and not isinstance(covariates, Mapping):
        one = isinstance(covariates, str | tuple)
        covariates = dict.fromkeys(specs, covariates if one else list(covariates))
    if not isinstance(covariates, Mapping):
        raise OptionError(
            f"⟦covariates={covariates!r}⟧; expected a column, a list of columns, or a mapping of "
            "metrics to them"
        )
    subset("covariates", list(covariates), specs)
    found = {}
    for metric, given in covariates.items():
        several = given if isinstance(given, list) else [given]
        named = {str(i): one for i, one in enumerate(several)}
        specs_of = metric_specs(named, data, role, f"covariates[{metric!r}]")
        found[metric] = list(dict.fromkeys(specs_of.values()))
        if specs[metric][1] is None and any(den is not None for _, den in found[metric]):
            raise OptionError(
                f"covariates[{metric!r}]={given!r} holds a pair, the numerator and denominator of "
                "a ratio of sums, and the metric is a mean; pass several covariates as a list"
            )
    return found


def refuse_huge(metric: MetricRows) -> None:
    """Raise where the squares of the values of a metric are no numbers."""
    for values in (metric.sample.num, metric.sample.den):
        if values is not None and np.abs(values).max(initial=0.0) >= HUGE:
            raise DataError(
                f"metric {metric.name!r} has values of {HUGE:g} or more in size, whose squares are "
                "no numbers"
            )


def read_metrics(
    data: DataFrame,
    specs: Mapping[str, MetricColumns],
    covariates: CovariateColumns,
    nan: RaiseOrDrop,
    role: str = "data",
    cap: Mapping[str, float] | None = None,
    weight_col: str | None = None,
) -> list[MetricRows]:
    """Columns of every metric, checked; a null metric raises or marks its row as not defined.

    A weighted mean is the ratio Σ w y / Σ w, and a weighted ratio of sums is Σ w N / Σ w D. A row
    of weight 0 does not count.
    """
    weight = None if weight_col is None else read_weight(data, role, weight_col)
    values = cache(partial(metric_values, data, role))
    if cap is not None and not isinstance(cap, Mapping):
        raise OptionError(
            f"⟦cap={cap!r}⟧; expected a mapping of metrics to quantiles, such as {{'revenue': "
            "0.999}"
        )
    caps = per_metric("cap", cap, specs, SHARE)
    metrics = []

    def sample_of(columns: MetricColumns) -> Sample:
        num, den = columns
        return Sample(values(num), None if den is None else values(den))

    for name, columns in specs.items():
        sample = sample_of(columns)
        den = sample.den
        null, empty = np.isnan(sample.num), np.zeros(len(data), bool)
        if den is not None:
            if below := int((den < 0).sum()):
                raise DataError(
                    f"{role}[{columns[1]!r}] is negative in {below:,} rows; a denominator is not"
                )
            # A user without a defined list has a null sum over 0 lists. That is no missing value:
            # the user adds nothing to either sum of the ratio.
            empty = null & (den == 0)
            null = (null & ~empty) | np.isnan(den)
        if weight is not None:
            null = null & (weight > 0)
            empty = empty | (weight == 0)
        if null.any() and nan == "raise":
            raise DataError(
                f"metric {name!r} is null in {int(null.sum()):,} of {len(data):,} rows (first: "
                "rows "
                f'{np.flatnonzero(null)[:5].tolist()}); pass ⟦+nan="drop"⟧ to leave them out, or '
                "say what they "
                'are worth (evaluate with ⟦+undefined="zero"⟧)'
            )
        dropped = null | empty
        xs = {covariate_name(x): sample_of(x) for x in covariates.get(name, ())}
        limit = np.nan
        if name in caps and den is not None:
            raise OptionError(
                f"⟦cap=⟧ names {name!r}, which is a ratio of sums; a cap is for means"
            )
        if name in caps and not dropped.all():
            limit = float(np.quantile(sample.num[~dropped], caps[name]))
            sample = Sample(np.minimum(sample.num, limit))
        kind = MetricKind.of(columns)._replace(cap=limit)
        kind = kind.of_values(sample.num) if den is None else kind
        if weight is not None:
            sample = weighted(sample, weight, name)
            xs = {of: weighted(x, weight, of) for of, x in xs.items()}
        defined = ~dropped if dropped.any() else None
        nulls = null if null.any() else None
        metrics.append(MetricRows(name, sample, xs, defined, nulls, limit, kind))
    return metrics


def weighted(sample: Sample, weight: Floats, name: str) -> Sample:
    """Numerators and denominators times the weights; a mean has the denominator 1."""
    with np.errstate(over="ignore"):
        num, den = weight * sample.num, weight if sample.den is None else weight * sample.den
    if np.isinf(num).any() or np.isinf(den).any():
        raise DataError(f"{name!r} times the weights is too large for a number")
    return Sample(num, den)


def without_gaps(covariate: Sample, size: Floats | None = None) -> Sample:
    """The covariate with the mean of all units in place of what is missing. Each value is the sum
    of as many rows as `size` says, or of one row."""
    known = ~covariate.missing
    if known.all():
        return covariate
    size = np.ones(len(known)) if size is None else size
    n = max(size[known].sum(), 1)
    return covariate.each(lambda values: np.where(known, values, size * (values[known].sum() / n)))


def sum_by(sample: Sample, clusters: Codes) -> tuple[Sample, Codes]:
    """Sums per cluster, and the clusters; a mean becomes the ratio to the number of rows."""
    present, own = np.unique(clusters, return_inverse=True)

    def counted(one: Sample) -> Sample:
        return Sample(
            one.num,
            np.ones(len(own)) if one.den is None else one.den,
            tuple(map(counted, one.covariates)),
        )

    return counted(sample).each(lambda values: exact_sums(values, own, len(present))), present


@dataclass(frozen=True)
class Ready:
    """The units of one metric in both arms, how many rows and covariates were left out, and the
    `rows` that count with their values (None where there are only sums)."""

    name: str
    units: Units
    n_dropped: Sequence[float]
    remarks: tuple[str, ...]
    kind: MetricKind
    n_covariate_missing: int = 0
    cap: float = np.nan
    rows: tuple[ArmRows, Sample] | None = None


class Worth(NamedTuple):
    """How much more the strata of the treatment's users are worth: the difference, the least that
    matters, its z, and its error if users were units."""

    moved: float = 0.0
    least: float = 0.0
    z: float = 0.0
    error: float = 0.0


@dataclass(frozen=True)
class Covariates:
    """The covariates that can be used, of the rows of both arms, without gaps; an indicator for
    each that has gaps; and why others cannot be used."""

    filled: tuple[Sample, ...]
    gaps: tuple[Sample, ...]
    n_missing: int
    remarks: tuple[str, ...]

    @classmethod
    def of(cls, metric: MetricRows, both: ArmRows, data: ExperimentRows) -> Covariates:
        """Those of the rows of a metric that count."""
        covariates = [one.each(both.take) for one in metric.covariates.values()]
        # A covariate that is missing more often in one arm was not fixed before the experiment:
        # adjusting by it would turn the missing values into an effect, so it is left out.
        reasons = [why_left_out(one, both, data) for one in covariates]
        used = [one for one, reason in zip(covariates, reasons, strict=True) if not reason]
        missing = np.logical_or.reduce([both.arm < 0, *(one.missing for one in covariates)])
        n_missing = int(data.counts(both.where(missing)).sum())
        size = None if data.size is None else both.take(data.size)
        filled = tuple(without_gaps(one, size) for one in used)
        gaps = tuple(Sample(one.missing.astype(np.float64)) for one in used if one.missing.any())
        return cls(filled, gaps, n_missing, tuple(dict.fromkeys(filter(None, reasons))))


def make_units(
    metric: MetricRows, both: ArmRows, data: ExperimentRows, resampled: bool = False
) -> Ready:
    """The units of a metric in the rows of both arms; `resampled` ones are not adjusted by a
    regression."""
    kept = data.comparable(both.defined(metric.defined))
    sample = metric.sample.each(kept.take)
    covariates = Covariates.of(metric, kept, data)
    used = covariates.filled
    remarks = list(covariates.remarks)
    regressed = sample.den is None and data.clusters is None and not resampled and bool(used)
    regressed &= len(used) > 1 or data.strata is not None or bool(covariates.gaps)
    sample = sample._replace(covariates=used + covariates.gaps * regressed)
    if data.clusters is not None and np.isin(*kept.split(kept.take(data.clusters))).any():
        remarks.append("shared_clusters")
    null = metric.null
    if null is not None and unequal(both.take(null), both, data):
        remarks.append("unequal_missing")
    dropped = (data.counts(both) - data.counts(kept)).sum(axis=1).astype(int).tolist()
    return Ready(
        metric.name,
        in_strata(sample, kept, data, metric.name, regressed),
        dropped,
        tuple(remarks),
        metric.kind,
        covariates.n_missing,
        metric.cap,
        (kept, sample),
    )


def differ(some: Floats, of: Floats, stratified: bool, groups: Sized) -> bool:
    """Whether shares of the rows of both arms (2, strata) differ beyond chance, within strata if
    there are any. All `groups` that are tested share the level."""
    level = UNEQUAL / len(groups)
    if not stratified:
        return bool(equal_shares_test(some[:, 0], of[:, 0])[1] < level)
    known = of.min(axis=0) >= 2
    splits = [Split.of_flags(*one) for one in zip(some.T[known], of.T[known], strict=True)]
    return bool(splits_p(splits, map(Split.by_ranks, splits)) < level)


def unequal(flags: Mask, both: ArmRows, data: ExperimentRows) -> bool:
    """Whether the shares of flagged rows differ between two arms beyond chance."""
    if not flags.any():
        return False
    stratified = data.strata is not None
    return differ(data.counts(both.where(flags)), data.counts(both), stratified, data.groups)


def why_left_out(covariate: Sample, both: ArmRows, data: ExperimentRows) -> str:
    """Why a covariate of the rows of both arms is left out, or nothing."""
    if unequal(covariate.missing, both, data):
        return "unequal_covariate_missing"
    # New users have no past: a ratio over nothing explains nothing.
    if covariate.den is None:
        return ""
    known = both.split(np.where(covariate.missing, 0.0, covariate.den))
    return "" if all(one.any() for one in known) else "no_covariate"


def units_of(sample: Sample, both: ArmRows, **more: Any) -> Units:
    """The rows of both arms as units, of which more is known."""
    columns: list[Floats] = []
    forms = []
    for part in (sample, *sample.covariates):
        forms.append(Linear(len(columns), None if part.den is None else len(columns) + 1))
        columns += [part.num] if part.den is None else [part.num, part.den]
    return Units(columns, forms[0], both.arm, tuple(forms[1:]), **more)


def grouped(
    sample: Sample,
    kept: ArmRows,
    data: ExperimentRows,
    regressed: bool = False,
) -> Units:
    """The rows of both arms as units in strata: users, or clusters with a row in each of their
    strata."""
    stratum = None
    n_strata = 1
    cluster = None
    if data.strata is not None:
        present, stratum = np.unique(kept.take(data.strata[0]), return_inverse=True)
        n_strata = len(present)
    if data.clusters is not None:
        clusters = kept.take(data.clusters)
        n_clusters = int(clusters.max(initial=-1)) + 1
        cell = (kept.arm * n_clusters + clusters) * n_strata + (0 if stratum is None else stratum)
        sample, cell = sum_by(sample, cell)
        unit = cell // n_strata
        kept = ArmRows(None, unit // n_clusters)
        if stratum is not None:
            stratum = cell % n_strata
            cluster = np.unique(unit, return_inverse=True)[1]
    return units_of(
        sample,
        kept,
        stratum=stratum,
        n_strata=n_strata,
        cluster=cluster,
        clustered=data.clusters is not None,
        counted=None if cluster is not None else kept.n,
        regressed=regressed,
    )


def in_strata(
    sample: Sample,
    kept: ArmRows,
    data: ExperimentRows,
    metric: str,
    regressed: bool = False,
) -> Units:
    """The units that `grouped` makes; strata with too few of them raise."""
    units = grouped(sample, kept, data, regressed)
    if data.strata is None:
        return units
    few = np.bincount(units.cell, minlength=2 * units.n_strata).reshape(2, -1).min(axis=0) < 2
    if few.any():
        what = "clusters" if units.clustered else "users"
        codes, labels = data.strata
        present = np.unique(kept.take(codes))
        arms = " and ".join(map(repr, data.variants.iloc[np.unique(kept.take(data.variant))]))
        segment = list(data.groups.columns)
        value = some_keys(data.groups, kept.take(data.group)[:1], segment)
        within = f" where {segment} is {value}" if segment else ""
        raise DataError(
            f"{int(few.sum()):,} of {len(few):,} strata have fewer than 2 {what} in an arm of "
            f"{arms}{within} for metric {metric!r} "
            f"({some_keys(labels, present[few], list(labels.columns))}); merge strata, or leave "
            f"those {what} out"
        )
    return units

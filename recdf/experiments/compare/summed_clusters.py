"""Sums of clusters whose rows are in parts. A row comes into memory for each combination of
a cluster, the other keys and what is null."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa

from ...inputs.data_files import UserParts, frame_of_table
from ...judge.aggregates import RowsNeeded
from ...judge.choices import RaiseOrDrop
from ...judge.in_parts import MOST_BITS, extremes_of, floats_of
from ...judge.per_user_columns import Floats, MetricColumns, covariate_name
from ...stats.arms import HUGE, Sample
from ..metric_bounds import MetricKind
from ..samples import MetricRows, read_metrics
from .summed_users import Specs, weighed

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
            made = {name: batch.column(name) for name in self.keys}
            for name, one in made.items():
                if pa.types.is_dictionary(one.type):
                    made[name] = one.dictionary_decode()
            read, _ = floats_of(batch, self.numbers)
            values = dict(zip(self.numbers, read, strict=True))
            null = [np.isnan(one) for one in read]
            null += [np.isnan(values[num]) & (values[den] == 0) for num, den in self.metrics if den]
            made[_KIND] = pa.array(sum(one.astype(np.int64) << i for i, one in enumerate(null)))
            for den in {den for _, den in self.metrics if den}:
                values[den] = np.where(values[den] < 0, np.inf, values[den])
            made |= {name: pa.array(one) for name, one in values.items()}
            extremes.append(extremes_of(batch, self.plain))
            ids = [batch.column(name) for name in self.ids]
            unknown = any(one.null_count or pa.types.is_floating(one.type) for one in ids)
            made[_ROWS] = pa.array(np.full(len(batch), np.nan if unknown else 1.0))
            own.append(self.of(pa.table(made)))
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
    parts: UserParts,
    specs: Specs,
    covariates: Mapping[str, Sequence[MetricColumns]],
    keys: list[str],
    labels: list[str],
    ids: list[str],
    nan: RaiseOrDrop,
    weight: str | None,
) -> tuple[pd.DataFrame, list[MetricRows], dict[str, Sample], Floats]:
    """A row for each cluster, combination of the other keys and kind of nulls, with the metrics and
    the weights of these rows, and how many rows each is the sum of. `labels` are the keys of
    segments, strata and variants, and `ids` those of users."""
    own, past = specs, covariates
    if weight is not None:
        parts, own, past = weighed(parts, specs, covariates, weight)
    every = [(weight, None), *own.values(), *itertools.chain.from_iterable(past.values())]
    numbers = list(dict.fromkeys(name for pair in every for name in pair if name is not None))
    made = {*numbers, _ROWS, _KIND} | {f"{name}_sum" for name in [*numbers, _ROWS]}
    if made & {*keys} or len(numbers) + len(own) > MOST_BITS:
        raise RowsNeeded
    plain = list(dict.fromkeys(num for num, _ in specs.values()))
    sums = ClusterSums(keys, numbers, [*own.values()], ids, plain)
    try:
        sums([parts.sample])  # what cannot be added up fails here, and not in an engine's worker
        found = parts.run(sums, list(dict.fromkeys([*keys, *numbers, *ids, *plain])))
        tables, of_parts = zip(*filter(None, found), strict=True)
        data = parts.typed(frame_of_table(sums.of(pa.concat_tables(tables))), labels)
    except pa.ArrowException:  # such as keys that are lists
        raise RowsNeeded from None
    null = data[numbers].isna().to_numpy()
    told = data[[_KIND]].to_numpy() >> np.arange(len(numbers)) & 1 == 1
    odd = (data[numbers].abs() >= HUGE).any(axis=None) or (null != told).any()
    odd |= weight is not None and data[weight].isna().any()
    if odd or data[_ROWS].sum() != parts.n or not _exact(data, numbers, labels):
        raise RowsNeeded

    def counted(pair: MetricColumns) -> MetricColumns:
        return pair[0], pair[1] or _ROWS

    own = {name: counted(pair) for name, pair in own.items()}
    past = {name: [*map(counted, xs)] for name, xs in past.items()}
    of_rows = dict(zip(plain, np.fmax.reduce(of_parts).tolist(), strict=True))
    metrics = []
    for one, columns in zip(read_metrics(data, own, past, nan), specs.values(), strict=True):
        names = map(covariate_name, covariates.get(one.name, ()))
        xs = dict(zip(names, one.covariates.values(), strict=True))
        metrics.append(replace(one, covariates=xs, kind=MetricKind.of_extremes(columns, of_rows)))
    rows = data[_ROWS].to_numpy()
    weights = {} if weight is None else {weight: Sample(data[weight].to_numpy(), rows)}
    return data, metrics, weights, rows

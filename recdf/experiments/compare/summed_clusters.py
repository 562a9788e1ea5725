"""Clusters of users in parts: their sums, which come into memory as a row for each cluster."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pyarrow as pa

from ...inputs.data_files import UserParts, frame_of_table
from ...judge.aggregates import RowsNeeded
from ...judge.in_parts import floats_of
from ...judge.per_user_columns import MetricColumns
from ...stats.arms import HUGE
from ..samples import MetricRows, defined_bounds, read_metrics
from .summed_users import Specs

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
    rows = data[_ROWS]
    of_arm = arms[_ROWS].transform("sum")
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

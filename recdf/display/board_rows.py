"""The lists that a leaderboard is of: rows in memory, or in buckets, where an engine or a file has
them.

Contract: both kinds give the same means of groups and the same comparisons. What comes of a bucket
is small, and adds up. All columns of segments are read once; group 0 has all lists.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..evaluation.result import Evaluation
from ..evaluation.value_moments import (
    CONFIDENCE,
    GroupMoments,
    mean_table,
    moments_of_units,
    unit_codes,
    with_unit_errors,
)
from ..experiments.compare.by_segment import segments_of_lists
from ..experiments.compare.pairs_in_buckets import ChangedRows
from ..judge.choices import Correction
from ..judge.comparability import spec_of_each
from ..judge.per_user_columns import Mask, key_codes, unit_of
from ..judge.users import repeated_unit
from .given_tables import labels, restated, spec_with_bounds
from .leaderboard_values import different_lists
from .pairs import compare, compare_numbered
from .row_words import EVERYONE
from .segments import SegmentGroups, coded_segments, group_means, model_means

MODEL_NUMBER, GROUP_NUMBER = (
    "recdf: model",
    "recdf: number of group",
)  # columns beside those of the rows


@dataclass(frozen=True)
class RowsInMemory:
    """The lists of a result in memory, with their groups."""

    result: Evaluation
    groups: dict[str, SegmentGroups]

    def group_means(self, columns: list[str]) -> list[pd.DataFrame]:
        """Return the means of every model within the groups of every column of segments."""
        return [group_means(self.result, one, columns, name) for name, one in self.groups.items()]

    def different_lists(self, columns: list[str]) -> list[str]:
        """Return the columns that have values for some lists of one model and not of another."""
        return different_lists(self.result, columns)

    def tests(
        self, columns: list[str], baseline: str | None, correction: Correction
    ) -> pd.DataFrame:
        """Compare models over all lists and within every group; all tests are one family."""
        within: dict[tuple[str, str], np.ndarray] = {
            (EVERYONE, ""): np.arange(len(self.result.per_user)),
            **{
                (segment, group): rows
                for segment, of_segment in self.groups.items()
                for group, rows in of_segment.rows().items()
            },
        }
        how: dict[str, Any] = {"baseline": baseline, "correction": correction}
        table = compare(self.result, columns, **how, within=within if self.groups else None)
        return in_groups(table, list(within))


def in_groups(table: pd.DataFrame, groups: list[tuple[str, str]]) -> pd.DataFrame:
    """Return comparisons with the column of segments and the group before them."""
    table = pd.DataFrame(table)
    keys = table.pop("group").tolist() if "group" in table.columns else groups * len(table)
    for place, name in enumerate(("segment", "group")):
        table.insert(place, name, [key[place] for key in keys])
    return table


@dataclass(frozen=True)
class Labelling:
    """Number the model of every row, and repeat the rows for each of their groups.

    first : the number of the first group of each column of segments.
    """

    by_values: pd.DataFrame
    segments: pd.DataFrame | None
    keys: list[str]
    first: Mapping[Any, int]

    def __call__(self, rows: pd.DataFrame) -> pd.DataFrame:
        by = list(self.by_values.columns)
        models, model = pd.MultiIndex.from_frame, np.zeros(len(rows), np.int64)
        if by:
            model = models(self.by_values).get_indexer(models(rows[by]))
        rows = rows.assign(**{MODEL_NUMBER: model}).assign(**{GROUP_NUMBER: 0})
        if self.segments is None:
            return rows
        found, parts = (
            segments_of_lists(rows, self.segments, self.keys, list(self.first)),
            [rows],
        )
        for name, first in self.first.items():
            group = found[name].fillna(-1).to_numpy(np.int64)
            own = np.flatnonzero(group >= 0)
            parts.append(rows.take(own).assign(**{GROUP_NUMBER: first + group[own]}))
        return pd.concat(parts, ignore_index=True)


class BucketMeans(NamedTuple):
    """What a bucket gives of its lists: moments by cell (group · models + model), of each column
    those of units if lists are not independent, the columns whose values are of different lists,
    and whether a unit stands in several rows of a model, and whether another column repeats."""

    moments: GroupMoments
    of_units: list[GroupMoments]
    apart: Mask
    repeated: tuple[bool, bool]

    def __add__(self, other: BucketMeans) -> BucketMeans:  # type: ignore[override]
        return BucketMeans(
            self.moments + other.moments,
            [one + two for one, two in zip(self.of_units, other.of_units, strict=True)],
            self.apart | other.apart,
            (self.repeated[0] or other.repeated[0], self.repeated[1] or other.repeated[1]),
        )


@dataclass(frozen=True)
class MeansOfBucket:
    """Add up the lists of one bucket."""

    columns: list[str]
    keys: list[str]
    units: list[str]
    clustered: bool
    weight: str | None
    n_models: int
    n_groups: int

    def __call__(self, rows: pd.DataFrame) -> BucketMeans:
        n_cells = self.n_models * self.n_groups
        cell = rows[GROUP_NUMBER].to_numpy() * self.n_models + rows[MODEL_NUMBER].to_numpy()
        values = [rows[name].to_numpy(np.float64, na_value=np.nan) for name in self.columns]
        weight = None if self.weight is None else rows[self.weight].to_numpy(np.float64)
        of_units = []
        if self.clustered:
            unit = unit_codes(rows, self.units)
            of_units = moments_of_units(values, cell, unit, n_cells, weight)
        whole = (rows[GROUP_NUMBER] == 0).to_numpy()
        (code,), _ = key_codes([("per_user", rows[whole])], self.keys)
        counts = [np.bincount(code[~np.isnan(one[whole])]) for one in values]
        first = rows[whole & (rows[MODEL_NUMBER] == rows[MODEL_NUMBER].min()).to_numpy()]
        several = bool(first.duplicated(self.units).any())
        return BucketMeans(
            GroupMoments.of(values, cell, n_cells, weight),
            of_units,
            np.array([bool((n[n > 0] < self.n_models).any()) for n in counts], bool),
            (several, repeated_unit(first, self.keys, len(first))),
        )


class RowsInBuckets:
    """The lists of a result whose rows are in buckets. `result` has no rows, and the summary and
    record that a leaderboard reads."""

    def __init__(
        self,
        given: Any,
        segments: pd.DataFrame | None = None,
        unit_col: str | Sequence[str] | None = None,
        bounds: Any = None,
    ) -> None:
        spec, key = dict(spec_with_bounds(given.spec, bounds)), list(given.spec["user_col"])
        self.units = [unit_col] if isinstance(unit_col, str) else list(unit_col or unit_of(key))
        self.weight, self.key = spec.get("weight"), key
        self.models = labels(given.by_values, list(spec["by"]))
        known, keys, names = (None, [], {}) if segments is None else coded_segments(segments, key)
        self.names = names
        first, self.groups = {}, [(EVERYONE, "")]
        for name, own in names.items():
            first[name] = len(self.groups)
            self.groups += [(str(name), one) for one in own]
        self.first = first
        label = Labelling(given.by_values, known, keys, first)
        reads = [*spec["by"], *keys, *key, *self.units]
        numbers = dict.fromkeys((MODEL_NUMBER, GROUP_NUMBER), "int64")
        self.rows = ChangedRows(given, label, reads, numbers)
        self.per_list = [name for name in spec["metrics"] if name in given.empty_rows.columns]
        self.rows.by_values = pd.DataFrame({MODEL_NUMBER: range(len(self.models))})
        specs = spec_of_each(spec, self.models)
        self.rows.spec = {"joined": {str(code): one for code, one in enumerate(specs)}}
        summary = given.summary
        if self.units != key and self.per_list:
            spec["unit_col"] = self.units
            moments = self._moments.take(np.arange(len(self.models)))
            confidence = spec.get("confidence", CONFIDENCE)
            means = mean_table(given.by_values, self.per_list, moments, spec, confidence)
            summary = restated(given, means, ["se", "ci_low", "ci_high"])
        elif unit_col is None and self._of_all.repeated == (False, True):
            spec["repeated_units"] = True
        self.result = Evaluation(given.empty_rows, summary, spec)

    @functools.cached_property
    def _of_all(self) -> BucketMeans:
        """The sums of all buckets."""
        work = MeansOfBucket(
            self.per_list,
            self.key,
            self.units,
            self.units != self.key,
            self.weight,
            len(self.models),
            len(self.groups),
        )
        used = [*self.per_list, *filter(None, [self.weight])]
        parts: list[BucketMeans] = self.rows.each_bucket(work, used, self.units)
        return functools.reduce(lambda one, two: one + two, parts)

    @property
    def _moments(self) -> GroupMoments:
        """The moments of every cell, with the errors of units where lists are not independent."""
        found = self._of_all
        return (
            with_unit_errors(found.moments, found.of_units)[0] if found.of_units else found.moments
        )

    def group_means(self, columns: list[str]) -> list[pd.DataFrame]:
        """Return the means of every model within the groups of every column of segments."""
        found, n_models = [], len(self.models)
        for name, own in self.names.items():
            groups = self.first[name] + np.arange(len(own))
            for i, model in enumerate(self.models):
                moments = self._moments.take(groups * n_models + i)
                segment = (str(name), own)
                found.append(model_means(self.result, model, segment, self.per_list, moments))
        table = pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=["column"])
        return [table[table["column"].isin(columns)]] if found else []

    def different_lists(self, columns: list[str]) -> list[str]:
        """Return the columns that have values for some lists of one model and not of another."""
        return [
            name
            for name, apart in zip(self.per_list, self._of_all.apart, strict=True)
            if apart and name in columns
        ]

    def tests(
        self, columns: list[str], baseline: str | None, correction: Correction
    ) -> pd.DataFrame:
        """Compare models over all lists and within every group; all tests are one family."""
        options: dict[str, Any] = {"weight_col": self.weight, "unit_col": self.units}
        if self.names:
            options["by"] = GROUP_NUMBER
        options |= {"user_col": self.key, "model_col": MODEL_NUMBER}
        options |= {"baseline": baseline, "correction": correction}
        table = compare_numbered(self.rows, self.result, self.models, columns, **options)
        if self.names:
            table = table.rename(columns={GROUP_NUMBER: "group"})
            table["group"] = [self.groups[code] for code in table["group"]]
        return in_groups(table, self.groups[:1])

"""The values of a leaderboard: models by metrics, for all lists and for every segment, with their
places; over the folds of a cross-validation, and with the spread over seeds. The lists are rows in
memory, or in buckets, where an engine or a file has them.

Contract: both kinds give the same means of groups and the same comparisons. What comes of a bucket
is small, and adds up. All columns of segments are read once; group 0 has all lists.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import OptionError, closest
from ..evaluation.result import Evaluation
from ..evaluation.value_moments import (
    CONFIDENCE,
    GroupMoments,
    mean_table,
    means,
    moments_of_units,
    unit_codes,
    with_unit_errors,
)
from ..experiments.compare.by_segment import known_segments, segment_columns, segments_of_lists
from ..experiments.compare.pairs_of_models import ChangedRows
from ..judge.choices import Correction
from ..judge.comparability import spec_of_each
from ..judge.per_user_columns import Mask, key_codes, unit_of
from ..judge.users import repeated_unit
from ..tables.cells import form_of, number
from .given_tables import (
    LABELS,
    RESTATED,
    chosen,
    column_names,
    compare,
    compare_numbered,
    direction_word,
    each_name,
    labels,
    list_places,
    model_codes,
    model_rows,
    powered_means,
    restated,
    spec_with_bounds,
)
from .kinds import n_differs
from .row_words import EVERYONE

# Columns beside those of the rows.
MODEL_NUMBER, GROUP_NUMBER = "recdf: model", "recdf: number of group"


# -- groups of lists, such as segments of users: read once per list, kept as one code per row


class SegmentGroups(NamedTuple):
    """The groups of one column of segments: their names, and a code for every row of `per_user`, −1
    for no group."""

    names: list[str]
    codes: np.ndarray

    def rows(self) -> dict[str, np.ndarray]:
        """Return the rows of `per_user` of every group, in the order of the names."""
        order = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[order], np.arange(len(self.names) + 1))
        return dict(zip(self.names, np.split(order, starts)[1:-1], strict=True))


def segment_groups(result: Evaluation, segments: pd.DataFrame) -> dict[str, SegmentGroups]:
    """Return the groups of every column of segments; lists whose user has none are in no group."""
    known, keys, names = coded_segments(segments, result.spec["user_col"])
    # The ids of a list are looked up once, not once for every model.
    places = list_places(result, model_rows(result))
    lists = result.per_user[keys].take(places.first_row)
    joined = segments_of_lists(lists, known, keys, list(names)).fillna(-1)
    found = {}
    for name, own in names.items():
        # Numbers of 16 bits are sorted many times faster than longer ones.
        codes = joined[name].to_numpy(np.int16 if len(own) <= np.iinfo(np.int16).max else np.int64)
        found[str(name)] = SegmentGroups(own, codes[places.of_row])
    return found


def coded_segments(
    segments: pd.DataFrame, user_col: list[str]
) -> tuple[pd.DataFrame, list[str], dict[Any, list[str]]]:
    """Return the segments of each user as numbers, −1 for none, the columns of the key, and the
    names of the groups of each column, in the order of the frame."""
    keys, names = segment_columns(segments, user_col)
    known = known_segments(segments, keys, names)
    labels_of = {}
    for name in names:
        codes, values = pd.factorize(known[name])
        labels_of[name] = labels(pd.DataFrame({name: values}), [name])
        known[name] = codes
    return known, keys, labels_of


def group_means(
    result: Evaluation, groups: SegmentGroups, columns: list[str], segment: str
) -> pd.DataFrame:
    """Return means of every model within every group, in the columns of the leaderboard."""
    spec, per_user, weights = result.spec, result.per_user, None
    of_models, at = model_rows(result), np.flatnonzero(groups.codes >= 0)
    models, codes = list(of_models), model_codes(of_models)
    units, weight = spec.get("unit_col", []), each_name(spec.get("weight"))
    rows = per_user[list(dict.fromkeys([*columns, *units, *weight]))].take(at)
    rows = rows.assign(**{MODEL_NUMBER: codes[at], GROUP_NUMBER: groups.codes[at]})
    if weight:
        weights = rows[weight[0]].to_numpy(np.float64)
    cells, confidence = [MODEL_NUMBER, GROUP_NUMBER], spec.get("confidence", CONFIDENCE)
    found = means(rows, cells, columns, {}, confidence, units, weights)
    table = named_cells(result, found, models, (segment, groups.names), columns)
    if LABELS in spec:
        grouped = rows.reset_index(drop=True).groupby(cells)
        of_cells = [(name, at[own.index]) for _, own in grouped for name in columns]
        table[RESTATED] = powered_means(result, of_cells)[RESTATED].to_numpy()
    return table


def named_cells(
    result: Evaluation,
    found: pd.DataFrame,
    models: list[str],
    segment: tuple[str, list[str]],
    columns: list[str],
) -> pd.DataFrame:
    """Return means of the numbers of models and of the groups of a column of segments with the
    names of both, model after model."""
    found = found.sort_values([MODEL_NUMBER, GROUP_NUMBER], kind="stable", ignore_index=True)
    n_cells = len(found) // max(len(columns), 1)
    return found[["value", "ci_low", "ci_high", "n", "n_undefined"]].assign(
        model=[models[i] for i in found[MODEL_NUMBER]],
        segment=segment[0],
        group=[segment[1][i] for i in found[GROUP_NUMBER]],
        column=columns * n_cells,
        better=[direction_word(result, name) for name in columns] * n_cells,
    )


# -- the lists of a result with their groups


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
        per_user, rows = self.result.per_user, model_rows(self.result)
        partly = [name for name in columns if name in per_user and per_user[name].isna().any()]
        places = list_places(self.result, rows).of_row if partly else np.zeros(0, np.int64)
        counts = {name: np.bincount(places[per_user[name].notna().to_numpy()]) for name in partly}
        return [name for name, n in counts.items() if (n[n > 0] < len(rows)).any()]

    def tests(
        self, columns: list[str], baseline: str | None, correction: Correction
    ) -> pd.DataFrame:
        """Compare models over all lists and within every group; all tests are one family."""
        within = {(EVERYONE, ""): np.arange(len(self.result.per_user))}
        for segment, of_segment in self.groups.items():
            within |= {(segment, group): rows for group, rows in of_segment.rows().items()}
        rows = within if self.groups else None
        table = compare(self.result, columns, baseline=baseline, correction=correction, within=rows)
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
        rows = rows.assign(**{MODEL_NUMBER: model, GROUP_NUMBER: np.zeros_like(model)})
        if self.segments is None:
            return rows
        found = segments_of_lists(rows, self.segments, self.keys, list(self.first))
        parts = [rows]
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
    repeated: Mask

    def __add__(self, other: BucketMeans) -> BucketMeans:  # type: ignore[override]
        return BucketMeans(
            self.moments + other.moments,
            [one + two for one, two in zip(self.of_units, other.of_units, strict=True)],
            self.apart | other.apart,
            self.repeated | other.repeated,
        )


@dataclass(frozen=True)
class MeansOfBucket:
    """Add up the lists of one bucket."""

    columns: list[str]
    keys: list[str]
    units: list[str]
    weight: str | None
    n_models: int
    n_groups: int

    def __call__(self, rows: pd.DataFrame) -> BucketMeans:
        n_cells = self.n_models * self.n_groups
        cell = rows[GROUP_NUMBER].to_numpy() * self.n_models + rows[MODEL_NUMBER].to_numpy()
        values = [rows[name].to_numpy(np.float64, na_value=np.nan) for name in self.columns]
        weight = None if self.weight is None else rows[self.weight].to_numpy(np.float64)
        of_units = []
        if self.units != self.keys:
            unit = unit_codes(rows, self.units)
            of_units = moments_of_units(values, cell, unit, n_cells, weight)
        whole = (rows[GROUP_NUMBER] == 0).to_numpy()
        (code,), _ = key_codes([("per_user", rows[whole])], self.keys)
        counts = [np.bincount(code[~np.isnan(one[whole])]) for one in values]
        first = rows[whole & (rows[MODEL_NUMBER] == rows[MODEL_NUMBER].min()).to_numpy()]
        several = first.duplicated(self.units).any()
        return BucketMeans(
            GroupMoments.of(values, cell, n_cells, weight),
            of_units,
            np.array([bool((n[n > 0] < self.n_models).any()) for n in counts], bool),
            np.array([several, repeated_unit(first, self.keys, len(first))]),
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
        self.units = each_name(unit_col) or unit_of(key)
        self.weight, self.key = spec.get("weight"), key
        self.models = labels(given.by_values, list(spec["by"]))
        known, keys, names = (None, [], {}) if segments is None else coded_segments(segments, key)
        self.names = names
        self.groups = [(EVERYONE, "")]
        self.groups += [(str(name), one) for name, own in names.items() for one in own]
        sizes = map(len, names.values())
        self.first = dict(zip(names, itertools.accumulate(sizes, initial=1), strict=False))
        label = Labelling(given.by_values, known, keys, self.first)
        reads = [*spec["by"], *keys, *key, *self.units]
        numbers = {MODEL_NUMBER: "int64", GROUP_NUMBER: "int64"}
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
            own = mean_table(given.by_values, self.per_list, moments, spec, confidence)
            summary = restated(given, own, ["se", "ci_low", "ci_high"])
        elif unit_col is None and self._of_all.repeated.tolist() == [False, True]:
            spec["repeated_units"] = True
        self.result = Evaluation(given.empty_rows, summary, spec)

    @functools.cached_property
    def _of_all(self) -> BucketMeans:
        """The sums of all buckets."""
        work = MeansOfBucket(
            self.per_list,
            self.key,
            self.units,
            self.weight,
            len(self.models),
            len(self.groups),
        )
        used = [*self.per_list, *each_name(self.weight)]
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
        confidence = self.result.spec.get("confidence", CONFIDENCE)
        for name, own in self.names.items():
            first = self.first[name] * n_models
            cells = first + np.flatnonzero(self._moments.rows[first:][: len(own) * n_models])
            groups, models = np.divmod(cells - first, n_models)
            numbers = pd.DataFrame({MODEL_NUMBER: models, GROUP_NUMBER: groups})
            table = mean_table(numbers, self.per_list, self._moments.take(cells), {}, confidence)
            table = named_cells(self.result, table, self.models, (str(name), own), self.per_list)
            found.append(table[table["column"].isin(columns)])
        return found

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
        table = compare_numbered(
            self.rows,
            self.result,
            self.models,
            columns,
            baseline=baseline,
            correction=correction,
            user_col=self.key,
            model_col=MODEL_NUMBER,
            weight_col=self.weight,
            unit_col=self.units,
            by=GROUP_NUMBER if self.names else None,
        )
        if self.names:
            table["group"] = [self.groups[code] for code in table.pop(GROUP_NUMBER)]
        return in_groups(table, self.groups[:1])


# -- values and places


def values_frame(
    rows: RowsInMemory | RowsInBuckets, table: pd.DataFrame, columns: list[str]
) -> pd.DataFrame:
    """Return the values of all lists and of every group: models stand in the order of the first
    metric, the best first, and each group has places of its own."""
    blocks = [table[table["column"].isin(columns)].assign(segment=EVERYONE, group="")]
    blocks += rows.group_means([name for name in columns if name in rows.result.per_user.columns])
    names = ["segment", "group", "model", "column", "better", "value", "ci_low", "ci_high"]
    frame = pd.concat([block[[*names, "n", "n_undefined"]] for block in blocks], ignore_index=True)
    frame = frame.rename(columns={"column": "metric"})
    frame["half_width"] = (frame["ci_high"] - frame["ci_low"]) / 2
    downward = frame["value"].where(frame["better"] == "smaller", -frame["value"])
    places = downward.groupby([frame["segment"], frame["group"], frame["metric"]])
    # A mean over other lists is no better or worse than this one.
    apart = frame["metric"].isin(rows.different_lists(columns)) | n_differs(frame)
    unplaced = (frame["better"] == "") | apart | (table["model"].nunique() == 1)
    frame["place"] = places.rank(method="min").mask(unplaced).astype("Int64")
    whole = (frame["segment"] == EVERYONE) & (frame["metric"] == columns[0])
    best = frame["model"][downward[whole].sort_values(kind="stable").index].tolist()
    block = frame.groupby(["segment", "group"], sort=False).ngroup()
    order = frame["metric"].map(columns.index), frame["model"].map(best.index), block
    return frame.take(np.lexsort(order)).reset_index(drop=True)


def columns_of(
    table: pd.DataFrame, metrics: str | Sequence[str] | None, k: int | None
) -> list[str]:
    """Return the columns, such as ndcg@10, in the order that was asked for."""
    kept = table if k is None else table[table["k"].isna() | (table["k"] == k)]
    known = list(dict.fromkeys(kept["column"]))
    if not known:
        raise OptionError(
            f"the result has no metric at ⟦k={k}⟧; it has k of {sorted(set(table['k'].dropna()))}"
        )
    found: list[str] = []
    for name in known if metrics is None else each_name(metrics):
        own = kept["column"][(kept["column"] == name) | (kept["metric"] == name)]
        if own.empty:
            chosen("metrics", name, known, "metric of the result")
        found += own.tolist()
    return list(dict.fromkeys(found))


SEEDS = "seeds"  # in the spec: the spread of a metric over the seeds of a model
REPEATS = "repeats"  # in the spec: the columns of folds and seeds that were averaged


def over_repeats(
    result: Evaluation, fold: str | Sequence[str] | None, seed_col: str | None
) -> Evaluation:
    """Return the result with the mean over folds and seeds of every list; its spec tells the spread
    over seeds."""
    by, key, columns = list(result.spec["by"]), list(result.spec["user_col"]), []
    for argument, given in (("fold", fold), ("seed_col", seed_col)):
        for name in each_name(given):
            columns.append(name)
            if name not in (*by, *key[1:]):
                raise OptionError(
                    f"⟦{argument}={name!r}⟧ tells no lists apart; the result is by "
                    f"{by or 'nothing'}, with lists of {key}{closest(name, [*by, *key])}",
                    argument=argument,
                    value=name,
                )
    if not columns:
        return result
    models, lists = ([name for name in names if name not in columns] for names in (by, key))
    if not models:
        raise OptionError(
            f"the result is by {by} alone, so that no models are left; evaluate with ⟦+by=⟧ for "
            "models too"
        )
    spec = {name: value for name, value in result.spec.items() if name != SEEDS}
    spec |= {"by": models, "user_col": lists, REPEATS: columns}
    metrics = [name for name in spec["metrics"] if name in result.per_user.columns]
    if seed_col is not None:
        spec[SEEDS] = _spread(result, models, seed_col, metrics)
    per_user = _averaged_lists(result.per_user, [*models, *lists], metrics, spec.get("weight"))
    confidence = spec.get("confidence", CONFIDENCE)
    weights = None if "weight" not in spec else per_user[spec["weight"]].to_numpy(np.float64)
    parts = [means(per_user, models, metrics, spec, confidence, (), weights)] if metrics else []
    # Metrics that are one number for all lists, as means over folds and seeds.
    summary = result.summary
    own = summary[[name not in metrics for name in column_names(summary, result)]]
    if "item_by" in spec:
        own = own[own[spec["item_by"]].isna()]
    grouped = own.groupby([*models, "metric", "k"], sort=False, dropna=False, observed=True)
    found = grouped.agg(value=("value", "mean"), n=("n", "max"), n_undefined=("n_undefined", "max"))
    of_all = found.reset_index().reindex(columns=(parts[0] if parts else summary).columns)
    parts.append(of_all.astype({"n": "int64", "n_undefined": "int64"}))
    summary = pd.concat(parts, ignore_index=True)
    per_user.attrs = {"recdf": spec}
    return Evaluation(per_user, summary, spec)


def _averaged_lists(
    per_user: pd.DataFrame, keys: list[str], metrics: list[str], weight: str | None
) -> pd.DataFrame:
    """Return one row for each key: counts are added, and undefined values left out of a mean."""
    how = {} if weight is None else {weight: "first"}
    how |= {name: "sum" for name in ("n_true", "n_pred") if name in per_user.columns}
    how |= dict.fromkeys(metrics, "mean")
    grouped = per_user.groupby(keys, sort=False, dropna=False, observed=True)
    return grouped.agg(how).astype(dict.fromkeys(metrics, "float64")).reset_index()


def _spread(
    result: Evaluation, models: list[str], seed_col: str, metrics: list[str]
) -> dict[str, Any]:
    """Return the number of seeds of each model, and the deviation of a metric over them."""
    keys = [*models, seed_col]
    of_seeds = _averaged_lists(result.per_user, [*keys, *result.spec["user_col"]], metrics, None)
    each = of_seeds.groupby(keys, sort=False, dropna=False, observed=True)[metrics]
    means_of_seeds = each.mean().reset_index()
    grouped = means_of_seeds.groupby(pd.Series(labels(means_of_seeds, models)), sort=False)
    sd = {name: grouped[name].std().dropna().to_dict() for name in metrics}
    return {"column": seed_col, "n": grouped.size().to_dict(), "sd": sd}


def seed_sentences(result: Evaluation, tests: pd.DataFrame) -> list[str]:
    """Say what the spread over seeds is, and which differences are smaller."""
    seeds = result.spec.get(SEEDS)
    if seeds is None:
        return []
    counts = sorted({*seeds["n"].values()})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    said = [f"The ± over seeds is the standard deviation over {n} trainings ({seeds['column']})."]
    for row in tests.to_dict("records"):
        if row.get("group", ""):
            continue
        of_metric = seeds["sd"].get(row["metric"], {})
        pair = [of_metric.get(str(row[name]), np.nan) for name in ("baseline", "model")]
        spread = float(np.nanmax([*pair, 0.0]))
        if abs(row["diff"]) < spread:
            form = form_of(row["diff"], half=spread)
            apart, own = (number(size, form) for size in (abs(row["diff"]), spread))
            said.append(
                f"{row['model']} and {row['baseline']} differ by {apart} in {row['metric']}, "
                f"less than the spread over seeds ({own})."
            )
    return said

"""The values of a leaderboard: models by metrics, for all lists and for every segment, with their
places; over the folds of a cross-validation, and with the spread over seeds. The lists are rows in
memory, or in buckets, where an engine or a file has them.

Contract: both kinds give the same means of groups and the same comparisons. What comes of a bucket
is small, and adds up. All columns of segments are read once; group 0 has all lists.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..errors import OptionError, closest
from ..evaluation.result import Evaluation
from ..evaluation.value_moments import (
    CONFIDENCE,
    GroupMoments,
    mean_table,
    moments_of_units,
    unit_codes,
    with_unit_errors,
)
from ..experiments.compare.by_segment import Segments
from ..experiments.compare.paired import unlike_metrics
from ..experiments.compare.pairs_of_models import ChangedRows
from ..judge.choices import Columns, as_columns
from ..judge.comparability import spec_of_numbered
from ..judge.per_user_columns import Mask, key_codes, split, unit_of
from ..judge.users import repeated_unit
from ..judge.verdict import is_withheld
from ..tables.cells import form_of, number
from .given_tables import (
    GROUP,
    LABELS,
    MODEL,
    RESTATED,
    UNIT,
    as_result,
    chosen,
    column_names,
    compare,
    compare_numbered,
    count_range,
    direction_word,
    labels,
    list_places,
    means_of_lists,
    model_rows,
    numbered_lists,
    powered_means,
    restated,
    spec_with_bounds,
)
from .kinds import n_differs
from .page_blocks import EVERYONE

# -- groups of lists, such as segments of users: read once per list

Group = tuple[str, str]  # a column of segments, and one of its values
ALL_LISTS: Group = (EVERYONE, "")


def segment_groups(result: Evaluation, segments: DataFrame) -> dict[Group, np.ndarray]:
    """Return the rows of `per_user` of every group; lists whose user has no segment are in none."""
    known, names = coded_segments(segments, result.spec["user_col"])
    # The ids of a list are looked up once, not once for every model.
    places, first_row = list_places(result, model_rows(result))
    joined = known.of_lists(result.per_user[known.keys].take(first_row)).fillna(-1)
    found: dict[Group, np.ndarray] = {}
    for name, own in names.items():
        lacking, *rows = split(joined[name].to_numpy(int)[places] + 1, len(own) + 1)
        known._replace(names=[name]).warn_unknown(len(lacking), len(places))
        found |= {(str(name), one): at for one, at in zip(own, rows, strict=True)}
    return found


def coded_segments(
    segments: DataFrame, user_col: list[str]
) -> tuple[Segments, dict[Any, list[str]]]:
    """Return the segments of each user as numbers, −1 for none, and the names of the groups of each
    column, in the order of the frame."""
    found = Segments.of([], segments, user_col, every=True)
    labels_of = {}
    for name in found.names:
        found.known[name], values = pd.factorize(found.known[name])
        labels_of[name] = labels(DataFrame({name: values}), [name])
    return found, labels_of


def named_cells(
    result: Evaluation,
    found: DataFrame,
    models: list[str],
    groups: list[Group],
    columns: list[str],
) -> DataFrame:
    """Return means of the numbers of models and of groups of segments with the names of both, group
    after group."""
    found = found.sort_values([GROUP, MODEL], kind="stable", ignore_index=True)
    n_cells = len(found) // max(len(columns), 1)
    return found[["value", "ci_low", "ci_high", "n", "n_undefined"]].assign(
        model=[models[i] for i in found[MODEL]],
        segment=[groups[i][0] for i in found[GROUP]],
        group=[groups[i][1] for i in found[GROUP]],
        column=columns * n_cells,
        better=[direction_word(result, name) for name in columns] * n_cells,
    )


# -- the lists of a result with their groups


class RowsInMemory(NamedTuple):
    """The lists of a result in memory, with the rows of their groups."""

    result: Evaluation
    groups: Mapping[Group, np.ndarray] = {}

    def group_means(self, columns: list[str]) -> list[DataFrame]:
        """Return the means of every model within every group, in the columns of the leaderboard."""
        if not (self.groups and columns):
            return []
        spec = self.result.spec
        rows = numbered_lists(self.result, [*columns, *as_columns(spec.get("weight"))], self.groups)
        found = means_of_lists(rows, [GROUP, MODEL], columns, spec, [UNIT] * ("unit_col" in spec))
        models = list(model_rows(self.result))
        table = named_cells(self.result, found, models, list(self.groups), columns)
        if LABELS in spec:
            cells = rows.groupby([GROUP, MODEL])
            of_cells = [
                (at[0], name, own.index.to_numpy()) for at, own in cells for name in columns
            ]
            table[RESTATED] = powered_means(self.result, of_cells)[RESTATED].to_numpy()
        return [table]

    def different_lists(self, columns: list[str]) -> list[str]:
        """Return the columns that have values for some lists of one model and not of another."""
        per_user = self.result.per_user
        rows = model_rows(self.result)
        partly = [name for name in columns if name in per_user]
        places = list_places(self.result, rows)[0] if partly else np.zeros(0, int)
        counts = {name: np.bincount(places[per_user[name].notna()]) for name in partly}
        return [name for name, n in counts.items() if (n[n > 0] < len(rows)).any()]

    def tests(self, columns: list[str], **options: Any) -> DataFrame:
        """Compare models over all lists and within every group; all tests are one family."""
        if self.groups:
            options["within"] = {ALL_LISTS: np.arange(len(self.result.per_user)), **self.groups}
        return in_groups(compare(self.result, columns, **options))


def in_groups(table: DataFrame) -> DataFrame:
    """Return comparisons with the column of segments and the group before them."""
    table = DataFrame(table)
    keys = table.pop("group") if "group" in table else [ALL_LISTS] * len(table)
    for place, name in enumerate(("segment", "group")):
        table.insert(place, name, [key[place] for key in keys])
    return table


def numbered_rows(
    by_values: DataFrame,
    segments: Segments,
    first: Mapping[Any, int],
    rows: DataFrame,
) -> DataFrame:
    """Number the model of every row, and repeat the rows for each of their groups; `first` holds
    the number of the first group of each column of segments."""
    model: Any = 0
    if by := list(by_values.columns):
        models = pd.MultiIndex.from_frame
        model = models(by_values).get_indexer(models(rows[by]))
    parts = [rows.assign(**{MODEL: model, GROUP: 0})]
    if first:
        found = segments.of_lists(rows).fillna(-1).astype(int)
        for name, number_of_first in first.items():
            own = np.flatnonzero(found[name] >= 0)
            group = number_of_first + found[name].array[own]
            parts.append(parts[0].take(own).assign(**{GROUP: group}))
    return pd.concat(parts, ignore_index=True)


def means_of_bucket(
    columns: list[str],
    keys: list[str],
    units: list[str],
    weight_col: str | None,
    n_models: int,
    n_groups: int,
    rows: DataFrame,
) -> tuple[list[GroupMoments], Mask]:
    """Return what a bucket gives of its lists: moments by cell (group · models + model), and behind
    them those of units of each column if lists are not independent; and which columns have values
    of different lists, whether a unit stands in several rows of a model, and whether another column
    repeats."""
    group = rows[GROUP].to_numpy()
    model = rows[MODEL].to_numpy()
    cell = group * n_models + model
    n_cells = n_models * n_groups
    values = [rows[name].to_numpy(float, na_value=np.nan) for name in columns]
    weight = rows[weight_col].to_numpy(float) if weight_col else None
    counted = GroupMoments.of(values, cell, n_cells, weight)
    moments = [replace(counted, rows=np.bincount(cell, minlength=n_cells))]  # also of weight 0
    if columns and units != keys:
        moments += moments_of_units(values, cell, unit_codes(rows, units), n_cells, weight)
    whole = group == 0
    (code,), _ = key_codes([("per_user", rows[whole])], keys)
    counts = [np.bincount(code[~np.isnan(one[whole])]) for one in values]
    first = rows[whole & (model == model.min(initial=0))]
    apart = [(n[n > 0] < n_models).any() for n in counts]
    repeated = first.duplicated(units).any(), repeated_unit(first, keys, len(first))
    return moments, np.array([*apart, *repeated])


class RowsInBuckets:
    """The lists of a result whose rows are in buckets. `result` has no rows, and the summary and
    record that a leaderboard reads."""

    def __init__(
        self,
        given: Any,
        segments: DataFrame | None,
        unit_col: Columns | None,
        bounds: Any,
    ) -> None:
        spec = dict(spec_with_bounds(given.spec, bounds))
        key = given.spec["user_col"]
        self.units = as_columns(unit_col) or unit_of(key)
        self.weight = spec.get("weight")
        self.key = key
        self.models = labels(given.by_values, spec["by"])
        known, names = (Segments([]), {}) if segments is None else coded_segments(segments, key)
        self.known = known
        self.groups = [ALL_LISTS]
        first = dict[Any, int]()
        for name, values in names.items():
            first[name] = len(self.groups)
            self.groups += [(str(name), one) for one in values]
        label = functools.partial(numbered_rows, given.by_values, known, first)
        reads = [*spec["by"], *known.keys, *key, *self.units]
        self.rows = ChangedRows(given, label, reads)
        self.per_list = [name for name in spec["metrics"] if name in given.empty_rows]
        self.rows.by_values = DataFrame({MODEL: range(len(self.models))})
        self.rows.spec = spec_of_numbered(spec, self.models)
        summary = given.summary
        if self.per_list and self.units != key:
            spec["unit_col"] = self.units
            moments = self._moments.take(np.arange(len(self.models)))
            own = mean_table(
                given.by_values, self.per_list, moments, spec, spec.get("confidence", CONFIDENCE)
            )
            summary = restated(given, own)
        elif self.per_list and unit_col is None and self._of_all[1][-2:].tolist() == [False, True]:
            spec["repeated_units"] = True
        self.result = Evaluation(given.empty_rows, summary, spec)

    @functools.cached_property
    def _of_all(self) -> tuple[list[GroupMoments], Mask]:
        """The sums of all buckets, and what holds in any of them."""
        n_cells = len(self.models), len(self.groups)
        work = functools.partial(
            means_of_bucket, self.per_list, self.key, self.units, self.weight, *n_cells
        )
        used = [*self.per_list, *as_columns(self.weight)]
        parts, found = zip(*self.rows.each_bucket(work, used, self.units), strict=True)
        sums = [functools.reduce(operator.add, own) for own in zip(*parts, strict=True)]
        return sums, np.any(found, axis=0)

    @property
    def _moments(self) -> GroupMoments:
        """The moments of every cell, with the errors of units where lists are not independent."""
        found, *of_units = self._of_all[0]
        return with_unit_errors(found, of_units)[0] if of_units else found

    def group_means(self, columns: list[str]) -> list[DataFrame]:
        """Return the means of every model within the groups of all columns of segments."""
        if not (self.known.names and self.per_list):
            return []
        moments = self._moments
        n = moments.rows.reshape(len(self.groups), -1).sum(axis=1)
        for name in self.known.names:
            own = [column == str(name) for column, _ in self.groups]
            self.known._replace(names=[name]).warn_unknown(n[0] - n[own].sum(), n[0])
        confidence = self.result.spec.get("confidence", CONFIDENCE)
        cells = np.flatnonzero(moments.rows)
        cells = cells[cells >= len(self.models)]
        groups, models = np.divmod(cells, len(self.models))
        numbers = DataFrame({MODEL: models, GROUP: groups})
        found = mean_table(numbers, self.per_list, moments.take(cells), {}, confidence)
        table = named_cells(self.result, found, self.models, self.groups, self.per_list)
        return [table[table["column"].isin(columns)]]

    def different_lists(self, columns: list[str]) -> list[str]:
        """Return the columns that have values for some lists of one model and not of another."""
        apart = dict(zip(self.per_list, self._of_all[1] if self.per_list else [], strict=False))
        return [name for name in columns if apart.get(name)]

    def tests(self, columns: list[str], **options: Any) -> DataFrame:
        """Compare models over all lists and within every group; all tests are one family."""
        table = compare_numbered(
            self.rows,
            self.result,
            self.models,
            columns,
            self.groups if self.groups[1:] else (),
            user_col=self.key,
            model_col=MODEL,
            weight_col=self.weight,
            unit_col=self.units,
            **options,
        )
        return in_groups(table)


# -- values and places


def values_frame(
    rows: RowsInMemory | RowsInBuckets, table: DataFrame, columns: list[str]
) -> DataFrame:
    """Return the values of all lists and of every group: models stand in the order of the first
    metric, the best first, and each group has places of its own."""
    blocks = [table[table["column"].isin(columns)].assign(segment=EVERYONE, group="")]
    blocks += rows.group_means([name for name in columns if name in rows.result.per_user])
    names = ["segment", "group", "model", "column", "better", "value", "ci_low", "ci_high"]
    frame = pd.concat([block[[*names, "n", "n_undefined"]] for block in blocks], ignore_index=True)
    frame = frame.rename(columns={"column": "metric"})
    frame.insert(8, "half_width", (frame["ci_high"] - frame["ci_low"]) / 2)
    downward = frame["value"].where(frame["better"] == "smaller", -frame["value"])
    places = downward.groupby([frame["segment"], frame["group"], frame["metric"]])
    # A mean over other lists, or by another definition, is no better or worse than this one.
    unlike = unlike_metrics(rows.result.spec, [*table["model"].unique()], columns)
    apart = frame["metric"].isin([*rows.different_lists(columns), *unlike]) | n_differs(frame)
    unplaced = (frame["better"] == "") | apart | (table["model"].nunique() == 1)
    frame["place"] = places.rank(method="min").mask(unplaced).astype("Int64")
    whole = (frame["segment"] == EVERYONE) & (frame["metric"] == columns[0])
    best = frame["model"][downward[whole].sort_values(kind="stable").index].tolist()
    block = frame.groupby(["segment", "group"], sort=False).ngroup()
    order = frame["metric"].map(columns.index), frame["model"].map(best.index), block
    return frame.take(np.lexsort(order)).reset_index(drop=True)


def columns_of(table: DataFrame, metrics: Columns | None, k: int | None) -> list[str]:
    """Return the columns, such as ndcg@10, in the order that was asked for."""
    kept = table if k is None else table[table["k"].isna() | (table["k"] == k)]
    known = list(dict.fromkeys(kept["column"]))
    if not known:
        depths = sorted({*table["k"].dropna().tolist()})
        raise OptionError(f"the result has no metric at ⟦k={k}⟧; it has k of {depths}")
    found: list[str] = []
    for name in known if metrics is None else as_columns(metrics):
        own = kept["column"][(kept["column"] == name) | (kept["metric"] == name)].tolist()
        found += own or [chosen("metrics", name, known, "metric of the result")]
    return list(dict.fromkeys(found))


SEEDS = "seeds"  # in the spec: the spread of a metric over the seeds of a model
REPEATS = "repeats"  # in the spec: the columns of folds and seeds that were averaged


def read_result(given: Any, fold: Columns | None, seed_col: str | None, bounds: Any) -> Evaluation:
    """Return the result that a caller gives, with the mean over the folds and seeds of every list;
    its spec tells the bounds of its metrics and the spread over seeds."""
    result = as_result(given)
    columns = list[str]()
    spec = spec_with_bounds(result.spec, bounds)
    by = spec["by"]
    key = spec["user_col"]
    for argument, names in (("fold", fold), ("seed_col", seed_col)):
        for name in as_columns(names):
            columns.append(name)
            if name not in (*by, *key[1:]):
                raise OptionError(
                    f"⟦{argument}={name!r}⟧ tells no lists apart; the result is by "
                    f"{by or 'nothing'}, with lists of {key}{closest(name, [*by, *key])}",
                    argument=argument,
                    value=name,
                )
    if not columns:
        return Evaluation(result.per_user, result.summary, spec)
    models, lists = ([name for name in names if name not in columns] for names in (by, key))
    if not models:
        raise OptionError(
            f"the result is by {by} alone, so that no models are left; evaluate with ⟦+by=⟧ for "
            "models too"
        )
    spec = {**spec, "by": models, "user_col": lists, REPEATS: columns}
    metrics = [name for name in spec["metrics"] if name in result.per_user]
    weight = spec.get("weight")
    if seed_col:
        spec[SEEDS] = _spread(result, models, seed_col, metrics)
    per_user = _averaged_lists(result.per_user, [*models, *lists], metrics, weight)
    parts = [means_of_lists(per_user, models, metrics, spec)] if metrics else []
    # Metrics that are one number for all lists, as means over folds and seeds.
    summary = result.summary
    own = summary[[name not in metrics for name in column_names(summary, result)]]
    if "item_by" in spec:
        own = own[own[spec["item_by"]].isna()]
    grouped = own.groupby([*models, "metric", "k"], sort=False, dropna=False, observed=True)
    found = grouped.agg({"value": "mean", "n": "max", "n_undefined": "max"}).reset_index()
    of_all = found.reindex(columns=(parts[0] if parts else summary).columns)
    parts.append(of_all.astype({"n": "int64", "n_undefined": "int64"}))
    summary = pd.concat(parts, ignore_index=True)
    per_user.attrs = {"recdf": spec}
    return Evaluation(per_user, summary, spec)


def _averaged_lists(
    per_user: DataFrame, keys: list[str], metrics: list[str], weight: str | None = None
) -> DataFrame:
    """Return one row for each key: counts are added, and undefined values left out of a mean."""
    how = {weight: "first"} if weight else {}
    how |= {name: "sum" for name in ("n_true", "n_pred") if name in per_user.columns}
    how |= dict.fromkeys(metrics, "mean")
    grouped = per_user.groupby(keys, sort=False, dropna=False, observed=True)
    return grouped.agg(how).astype(dict.fromkeys(metrics, "float64")).reset_index()


def _spread(
    result: Evaluation, models: list[str], seed_col: str, metrics: list[str]
) -> dict[str, Any]:
    """Return the number of seeds of each model, and the deviation of a metric over them."""
    keys = [*models, seed_col]
    of_seed = _averaged_lists(result.per_user, [*keys, *result.spec["user_col"]], metrics)
    of_seed = _averaged_lists(of_seed, keys, metrics)
    grouped = of_seed.groupby(pd.Series(labels(of_seed, models)), sort=False)
    sd = {name: grouped[name].std().dropna().to_dict() for name in metrics}
    return {"column": seed_col, "n": grouped.size().to_dict(), "sd": sd}


def seed_sentences(result: Evaluation, tests: DataFrame) -> list[str]:
    """Say what the spread over seeds is, and which differences are smaller."""
    seeds = result.spec.get(SEEDS)
    if not seeds:
        return []
    said = [
        "The ± over seeds is the standard deviation over "
        f"{count_range(seeds['n'].values(), 'training')} ({seeds['column']})."
    ]
    for row in tests.to_dict("records"):
        if row.get("group", "") or is_withheld(row):
            continue
        of_metric = seeds["sd"].get(row["metric"], {})
        pair = [of_metric.get(str(row[name]), np.nan) for name in ("baseline", "model")]
        spread = np.nanmax([*pair, 0.0])
        apart = abs(row["diff"])
        if apart < spread:
            form = form_of(apart, half=spread)
            said.append(
                f"{row['model']} and {row['baseline']} differ by {number(apart, form)} in "
                f"{row['metric']}, less than the spread over seeds ({number(spread, form)})."
            )
    return said

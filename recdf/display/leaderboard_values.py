"""The values of a leaderboard: models by metrics, for all lists and for every segment, with their
places; over the folds of a cross-validation, and with the spread over seeds. The lists are rows in
memory, or in buckets, where an engine or a file has them.

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
from ..experiments.compare.by_segment import segments_of_lists
from ..experiments.compare.pairs_of_models import ChangedRows
from ..judge.choices import Correction
from ..judge.comparability import spec_of_each
from ..judge.per_user_columns import Mask, key_codes, unit_of
from ..judge.users import repeated_unit
from ..tables.cells import form_of, number
from .given_tables import labels, restated, spec_with_bounds
from .kinds import TABLE_KINDS, n_differs
from .pairs import compare, compare_numbered, list_places, model_rows
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
        per_user, rows = self.result.per_user, model_rows(self.result)
        partly = [name for name in columns if name in per_user and per_user[name].isna().any()]
        places = list_places(self.result, rows).of_row if partly else np.zeros(0, np.int64)
        counts = {name: np.bincount(places[per_user[name].notna().to_numpy()]) for name in partly}
        return [name for name, n in counts.items() if (n[n > 0] < len(rows)).any()]

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


# -- values and places


def values_frame(
    rows: RowsInMemory | RowsInBuckets, table: pd.DataFrame, columns: list[str]
) -> pd.DataFrame:
    """Return the values of all lists and of every group with their places, the best models
    first."""
    models = list(dict.fromkeys(table["model"]))
    blocks = [table[table["column"].isin(columns)].assign(segment=EVERYONE, group="")]
    per_list = [name for name in columns if name in rows.result.per_user.columns]
    blocks += rows.group_means(per_list)
    return _tidy(blocks, columns, models, rows.different_lists(columns))


def floors_of(given: Any) -> pd.DataFrame:
    """Return the table of levels of an audit, or raise and say what to pass."""
    floors = getattr(given, "floors", given)
    needed = TABLE_KINDS["floors"].columns
    if isinstance(floors, pd.DataFrame) and {*needed} <= {*floors.columns}:
        return floors
    what = f"floors={given}" if isinstance(given, bool) else "floors has no levels"
    raise OptionError(
        f"{what}, and a result holds no frames to compute them from; pass "
        "⟦+floors=rd.audit(true, pred, metrics, k, train=train, items=items, by=...)⟧, with the "
        "frames, metrics and options of the result",
        argument="floors",
    )


def floor_rows(frame: pd.DataFrame, given: Any) -> pd.DataFrame:
    """Return rows of the levels of an audit for the metrics of a leaderboard; a ceiling is one of
    each model."""
    floors, blocks = floors_of(given), []
    labels = floors.get("by", pd.Series("", floors.index)).astype(str)
    for level in ("chance", "popularity", "ceiling"):
        own = floors[["metric", "n"]].assign(model=level, value=floors[level])
        if level != "ceiling":
            own["model"] += " level"
        elif labels.nunique() > 1:
            own["model"] += " of " + labels
        blocks.append(own.drop_duplicates(["model", "metric"]))
    better = frame.drop_duplicates("metric").set_index("metric")["better"]
    found = pd.concat(blocks, ignore_index=True)
    found = found[found["metric"].isin(better.index) & found["value"].notna()].reset_index(
        drop=True
    )
    found = found.assign(
        segment=EVERYONE, group="", marks="", n_undefined=0, better=found["metric"].map(better)
    )
    return found.reindex(columns=frame.columns).astype(frame.dtypes)


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
    if metrics is None:
        return known
    found: list[str] = []
    for name in [metrics] if isinstance(metrics, str) else list(metrics):
        own = [
            c
            for c, metric in zip(kept["column"], kept["metric"], strict=True)
            if name in (c, metric)
        ]
        if not own:
            raise OptionError(
                f"metrics names {name!r}; the result has {known}{closest(name, known)}"
            )
        found += own
    return list(dict.fromkeys(found))


def _tidy(
    blocks: Sequence[pd.DataFrame],
    columns: Sequence[str],
    models: Sequence[str],
    apart: Sequence[str],
) -> pd.DataFrame:
    """Join the blocks: models stand in the order of the first metric, and each block has places of
    its own."""
    wanted = ["segment", "group", "model", "column", "better", "value", "ci_low", "ci_high"]
    frame = pd.concat([block[[*wanted, "n", "n_undefined"]] for block in blocks], ignore_index=True)
    frame = frame.rename(columns={"column": "metric"})
    frame["half_width"] = (frame["ci_high"] - frame["ci_low"]) / 2
    downward = frame["value"].where(frame["better"] == "smaller", -frame["value"])
    places = downward.groupby([frame["segment"], frame["group"], frame["metric"]])
    # A mean over other lists is no better or worse than this one.
    apart_or_alone = frame["metric"].isin(apart) | n_differs(frame) | (len(models) == 1)
    unplaced = (frame["better"] == "") | apart_or_alone
    frame["place"] = places.rank(method="min").mask(unplaced).astype("Int64")
    whole = (frame["segment"] == EVERYONE) & (frame["metric"] == columns[0])
    best = frame["model"][downward[whole].sort_values(kind="stable").index]
    order = pd.DataFrame(
        {
            "block": frame.groupby(["segment", "group"], sort=False).ngroup(),
            "model": frame["model"].map({model: i for i, model in enumerate(best)}),
            "metric": frame["metric"].map(list(columns).index),
        }
    )
    return frame.take(np.lexsort(order.to_numpy().T[::-1])).reset_index(drop=True)


SEEDS = "seeds"  # in the spec: the spread of a metric over the seeds of a model
REPEATS = "repeats"  # in the spec: the columns of folds and seeds that were averaged


def over_repeats(
    result: Evaluation, fold: str | Sequence[str] | None, seed_col: str | None
) -> Evaluation:
    """Return the result with the mean over folds and seeds of every list; its spec tells the spread
    over seeds."""
    by, key, columns = list(result.spec["by"]), list(result.spec["user_col"]), []
    for argument, given in (("fold", fold), ("seed_col", seed_col)):
        for name in [given] if isinstance(given, str) else given or ():
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
    confidence = spec.get("confidence", 0.95)
    weights = None if "weight" not in spec else per_user[spec["weight"]].to_numpy(np.float64)
    parts = [means(per_user, models, metrics, spec, confidence, (), weights)] if metrics else []
    summary = pd.concat([*parts, _of_all_lists(result, models, parts)], ignore_index=True)
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


def _of_all_lists(result: Evaluation, models: list[str], parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Return the metrics that are one number for all lists, as means over folds and seeds."""
    known = [name for name in result.spec["metrics"] if name not in result.per_user.columns]
    named = {(one["name"], one["k"]) for name in known for one in [result.spec["metrics"][name]]}
    summary = result.summary
    pairs = zip(summary["metric"], summary["k"].astype(object), strict=True)
    own = summary[[(name, None if pd.isna(k) else k) in named for name, k in pairs]]
    if "item_by" in result.spec:
        own = own[own[result.spec["item_by"]].isna()]
    keys = [*models, "metric", "k"]
    grouped = own.groupby(keys, sort=False, dropna=False, observed=True)
    found = grouped.agg(value=("value", "mean"), n=("n", "max"), n_undefined=("n_undefined", "max"))
    columns = parts[0].columns if parts else summary.columns
    return (
        found.reset_index().reindex(columns=columns).astype({"n": "int64", "n_undefined": "int64"})
    )


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


def spread_of_rows(result: Evaluation, frame: pd.DataFrame) -> list[float]:
    """Return the spread over seeds of each row of a leaderboard; null for rows of segments."""
    spread = result.spec[SEEDS]["sd"]
    rows = zip(frame["model"], frame["metric"], frame["group"], strict=True)
    return [
        np.nan if group else spread.get(metric, {}).get(model, np.nan)
        for model, metric, group in rows
    ]


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

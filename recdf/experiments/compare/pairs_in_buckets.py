"""Differences of models made where their lists lie: each bucket adds its own up, and the sums of
all buckets are what a t test reads of a pair.

Contract: a bucket has all lists of its units, so that it makes their differences as rows in memory
do. Only the width of rounding, and what a user's column looks like, are those of a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...errors import OptionError
from ...inputs.options import as_columns
from ...judge.choices import PairMissing
from ...judge.comparability import lists_shorter_than, other_truth, spec_of_each
from ...judge.per_user_columns import Mask, by_columns, group_codes, require, split, unit_of
from ...judge.users import paired_values, read_model_rows
from ...stats.arms import Arm
from ...stats.moments import MEAN_ROUNDING
from ...stats.numbers import Floats
from ..samples import MetricBounds, Settings, bounds_of, seen_bounds
from .by_segment import (
    columns_of_segments,
    known_segments,
    segments_of_lists,
    warn_unknown,
)
from .comparable_runs import (
    NONE_LACKING,
    comparing,
    cut_off,
    has_lists,
    row_of_both,
    without_lacking,
)
from .paired import PairUnits, paired_test, without_rounding
from .two_sample import MOST_TOP_UNITS, n_top, top_units


class UnitSums(NamedTuple):
    """Units' sums D of differences and W of weights.

    mean (2), two (2, 2), three (2, 2, 2) : means, and sums of products of two and of three of the
    distances from them · counts : D above 0, D below 0, Σ D²/W · largest : of abs(D), of abs(D/W)
    and of abs(W − 1) · far : the smallest and the largest D/W.
    """

    n: Any
    mean: Floats
    two: Floats
    three: Floats
    counts: Floats
    largest: Floats
    far: Floats

    @classmethod
    def of(cls, sums: Floats, weights: Floats | None) -> UnitSums:
        w = np.ones(len(sums)) if weights is None else weights
        n, x, d = len(sums), np.array([sums, w]), sums / w
        mean = x.mean(axis=1) if n else np.zeros(2)
        z = x - mean[:, None]
        two = (z[:, None] * z).reshape(4, n)
        return cls(
            n,
            mean,
            two.sum(axis=1).reshape(2, 2),
            (two @ z.T).reshape(2, 2, 2),
            np.array([(d > 0).sum(), (d < 0).sum(), sums @ d], np.float64),
            np.array([np.abs(one).max(initial=0.0) for one in (sums, d, w - 1)]),
            _farthest(d),
        )

    @classmethod
    def added(cls, parts: Sequence[UnitSums]) -> UnitSums:
        """Those of all parts, counted from the mean of all, h from that of each part."""
        ns, means_of, two_of, three_of, counts, largest, far = zip(*parts, strict=True)
        n, means, two = np.array(ns), np.array(means_of), np.array(two_of)
        mean = n @ means / max(n.sum(), 1)
        h = means - mean
        cross = np.einsum("pa,pbc->abc", h, two)
        cross = cross + cross.transpose(1, 0, 2) + cross.transpose(1, 2, 0)
        return cls(
            n.sum(),
            mean,
            two.sum(axis=0) + np.einsum("p,pa,pb->ab", n, h, h),
            np.sum(three_of, axis=0) + cross + np.einsum("p,pa,pb,pc->abc", n, h, h, h),
            np.sum(counts, axis=0),
            np.max(largest, axis=0),
            _farthest(np.concatenate(far)),
        )

    def units(self) -> PairUnits:
        """What a test reads of them."""
        n, weighted = int(self.n), self.largest[2] > 0
        wins, losses, by_weight = self.counts.tolist()
        known = PairUnits(n, int(wins), int(losses), float(self.largest[1]))
        if n < 1:
            return known
        ratio = self.mean[0] / self.mean[1]
        form = np.array([1.0, -ratio]) / self.mean[1]
        squares = max(form @ self.two @ form, 0.0)
        varies = np.sqrt(squares / n) > MEAN_ROUNDING * self.largest[0] / self.mean[1]
        var = squares / n if varies else 0.0
        cubes = np.einsum("a,b,c,abc->", form, form, form, self.three) / n
        total, far = n * self.mean[1], self.far
        weights = self.two[1, 1] + n * self.mean[1] ** 2  # Σ W²
        spread, without = n * var / max(n - 1, 1), np.nan
        if weighted:
            spread = (by_weight - ratio**2 * total) / (total - weights / total) if n > 1 else 0.0
        else:  # which units are the farthest is known where all weigh the same
            top, out, _ = top_units(np.arange(len(far)), far - ratio, n_top(n))
            without = (total * ratio - out @ far[top]) / max(n - out.sum(), 1)
        return known._replace(
            estimate=Arm(ratio, np.float64(var / max(n - 1, 1)), np.float64(n - 1)),
            skewness=cubes / var**1.5 if var > 0 else 0.0,
            without_top=without,
            spread=float(np.sqrt(max(spread, 0.0))),
            typical=total / np.sqrt(weights / n),
            effective=total**2 / weights if weighted else None,
        )


def _farthest(d: Floats) -> Floats:
    """The smallest and the largest, all of a few."""
    d = np.sort(d)
    k = MOST_TOP_UNITS
    return d if len(d) <= 2 * k else np.concatenate([d[:k], d[-k:]])


class PairSums(NamedTuple):
    """What a bucket gives of a metric and a pair.

    counts : lists, those of one model alone (2), Σ w, Σ w b and Σ w m over them, lists that each
    lacks (2), and the three sums over the lists that both have · seen : the smallest value of the
    metric, and the largest, of any model · units, both : the units of all lists, and of those that
    both have.
    """

    counts: Floats
    seen: MetricBounds
    units: UnitSums
    both: UnitSums


class BucketPairs(NamedTuple):
    """What a bucket gives: of each metric and pair, of each pair and cut-off, and of each pair the
    lists of another truth, without and with a population that is that of the truth; and which
    models have lists."""

    sums: dict[tuple[str, int, int], PairSums]
    short: dict[tuple[int, ...], Floats]
    truth: dict[tuple[int, ...], Floats]
    repeated: bool
    there: Mask


class ChangedRows:
    """A result in buckets whose rows are changed before anything is made of them.

    reads, gives : the columns that `change` needs, and those that it makes.
    """

    def __init__(
        self,
        result: Any,
        change: Callable[[pd.DataFrame], pd.DataFrame],
        reads: Sequence[str],
        gives: Mapping[str, Any],
    ) -> None:
        self.result, self.change, self.reads, self.gives = result, change, reads, gives
        self.spec, self.by_values = result.spec, result.by_values
        self.empty_rows = result.empty_rows.assign(
            **{name: pd.Series([], dtype=dtype) for name, dtype in gives.items()}
        )

    def each_bucket(
        self, work: Callable[[pd.DataFrame], Any], columns: Sequence[str], keys: Sequence[str]
    ) -> list[Any]:
        own = [name for name in dict.fromkeys([*columns, *self.reads]) if name not in self.gives]
        return list(self.result.each_bucket(Changing(self.change, work), own, keys))


@dataclass(frozen=True)
class Changing:
    """Change rows, then make something of them."""

    change: Callable[[pd.DataFrame], pd.DataFrame]
    work: Callable[[pd.DataFrame], Any]

    def __call__(self, rows: pd.DataFrame) -> Any:
        return self.work(self.change(rows))


@dataclass(frozen=True)
class InSegments:
    """Add the segments of every list to the rows."""

    segments: pd.DataFrame
    keys: list[str]
    names: list[str]

    def __call__(self, rows: pd.DataFrame) -> pd.DataFrame:
        found = segments_of_lists(rows, self.segments, self.keys, self.names)
        return rows.assign(**{name: found[name].array for name in self.names})


def with_segments(
    result: Any,
    by: list[str],
    segments: pd.DataFrame | None,
    user_col: list[str],
    taken: Sequence[str],
) -> tuple[Any, list[str]]:
    """Return a result in buckets that has the columns of `by`, and their names."""
    if segments is not None:
        keys, by = columns_of_segments(by, segments, user_col)
        known = known_segments(segments, keys, by)
        result = ChangedRows(result, InSegments(known, keys, by), keys, dict(known[by].dtypes))
    return result, by_columns(result.empty_rows, "per_user", by, taken)


@dataclass(frozen=True)
class PairsOfBucket:
    """Make the differences of the units of one bucket in every segment, and add them up."""

    models: list[Any]
    pairs: list[tuple[int, int]]
    metrics: list[str]
    cuts: list[int]
    model_col: str
    keys: list[str]
    folds: list[str]
    units: list[str]
    weight_col: str | None
    missing: PairMissing
    by: list[str]

    def __call__(
        self, rows: pd.DataFrame
    ) -> tuple[tuple[int, int], dict[tuple[Any, ...], BucketPairs]]:
        """Return how many rows have no segment, and of how many, and what the others give by
        segment."""
        known = rows[rows[self.by].notna().all(axis=1)] if self.by else rows
        code, labels = group_codes(known, "per_user", self.by)
        names = labels[self.by].itertuples(index=False, name=None) if self.by else [()]
        parts = zip(names, split(code, max(len(labels), 1)), strict=False)
        found = {name: self._of_segment(known.take(own)) for name, own in parts}
        return (len(rows) - len(known), len(rows)), found

    def _of_segment(self, rows: pd.DataFrame) -> BucketPairs:
        code = pd.Index(self.models).get_indexer(pd.Index(rows[self.model_col]))
        frames = {name: rows[code == i] for i, name in enumerate(self.models)}
        runs = read_model_rows(frames, self.keys, self.folds, self.model_col, self.units)
        if self.weight_col is not None:
            runs = runs.weighted(self.weight_col)
        n_true, n_pred = runs.table("n_true"), runs.table("n_pred")
        has, sums = has_lists(runs), {}
        for metric in self.metrics:
            table = runs.table(metric)
            for b, m in self.pairs:
                base, model, only = paired_values(metric, table, (b, m), runs, self.missing)
                d, divisor = runs.unit_sums(runs.per_list(model - base))
                d, _ = without_rounding(d, divisor, (base, model))
                lacking, pair = [0, 0], [base, model]
                if has is not None:
                    lacking, pair = without_lacking(base, model, (has[b], has[m]))
                of_both = runs.unit_sums(runs.per_list(pair[1] - pair[0]))
                counts = [np.count_nonzero(~np.isnan(base)), *only, *lacking]
                for one, other in ((base, model), pair):
                    counts += [runs.total(one)[1], runs.total(one)[0], runs.total(other)[0]]
                sums[metric, b, m] = PairSums(
                    np.array(counts, np.float64),
                    seen_bounds(table),
                    UnitSums.of(*runs.units_there(d, divisor)),
                    UnitSums.of(*runs.units_there(*of_both)),
                )
        return BucketPairs(
            sums,
            {
                (*pair, k): lists_shorter_than(n_pred[[*pair]], k)
                for pair in self.pairs
                for k in self.cuts
            },
            {
                (*pair, whole): np.array(other_truth(n_true[[*pair]], whole))
                for pair in self.pairs
                for whole in (False, True)
            },
            runs.repeated,
            np.isin(np.arange(len(self.models)), code),
        )


class PairsInBuckets:
    """The models of an engine's result, as `ModelRows` has those of rows in memory."""

    def __init__(
        self,
        result: Any,
        keys: list[str],
        folds: list[str],
        model_col: str,
        units: list[str],
        by: Sequence[str] = (),
    ) -> None:
        self.result, self.keys, self.folds, self.units = result, keys, folds, units
        self.by = list(by)
        empty = result.empty_rows
        require(empty, "per_user", [model_col, *keys, *folds, *units])
        self.parts, self.model_col = [("per_user", empty)], model_col
        self.weight_col: str | None = None
        _, labels = group_codes(result.by_values, "per_user", [model_col])
        self.models = labels[model_col].tolist()
        if len(self.models) < 2:
            raise OptionError(
                f"per_user has {len(self.models)} models ({self.models}); a comparison needs at "
                "least two"
            )

    def weighted(self, name: str) -> PairsInBuckets:
        self.weight_col = name
        return self

    def tables(
        self,
        names: list[str],
        pairs: list[tuple[int, int]],
        settings: Settings,
        declared: Mapping[str, MetricBounds],
    ) -> list[tuple[pd.DataFrame, list[dict[str, Any]]]]:
        """The label of every segment, as a frame of one row, with a row of numbers per metric and
        pair; those that have nothing to compare are left out."""
        spec = self.result.spec
        cuts = [k for k in {cut_off(spec, name) for name in names} if k is not None]
        work = PairsOfBucket(
            self.models,
            pairs,
            names,
            cuts,
            self.model_col,
            self.keys,
            self.folds,
            self.units,
            self.weight_col,
            settings.missing,
            self.by,
        )
        units = self.units or unit_of(self.keys)
        used = [self.model_col, *self.keys, *self.folds, *units, "n_true", "n_pred", *names]
        used += [*as_columns(self.weight_col), *self.by]
        given = self.result.each_bucket(work, list(dict.fromkeys(used)), units)
        n_unknown, n_rows = (sum(counts) for counts in zip(*(n for n, _ in given), strict=True))
        warn_unknown(n_unknown, n_rows, self.by)
        by_label: dict[tuple[Any, ...], list[BucketPairs]] = {}
        for _, found in given:
            for label, one in found.items():
                by_label.setdefault(label, []).append(one)
        labels, places = [pd.DataFrame(index=[0])], np.zeros(1, np.int64)
        if self.by:
            frame = pd.DataFrame(list(by_label), columns=self.by)
            frame = frame.astype(dict(self.result.empty_rows[self.by].dtypes))
            code, found = group_codes(frame, "per_user", self.by)
            labels, places = [found.iloc[[i]] for i in range(len(found))], np.argsort(code)
        tables, given = [], list(by_label.values())
        for label, place in zip(labels, places, strict=True):
            parts = given[place]
            there = np.any([one.there for one in parts], axis=0)
            own = [pair for pair in pairs if there[[*pair]].all()]
            if own:
                tables.append((label, self._rows(names, own, settings, declared, parts)))
        return tables

    def _rows(
        self,
        names: list[str],
        pairs: list[tuple[int, int]],
        settings: Settings,
        declared: Mapping[str, MetricBounds],
        parts: list[BucketPairs],
    ) -> list[dict[str, Any]]:
        """One row of numbers per metric and pair of one segment."""
        unlike = comparing(
            self.models,
            spec_of_each(self.result.spec, self.models),
            lambda pair, whole: np.sum([one.truth[*pair, whole] for one in parts], axis=0),
            lambda pair, k: np.sum([one.short[*pair, k] for one in parts], axis=0),
        )
        repeated, rows = any(one.repeated for one in parts), []
        for name in names:
            for b, m in pairs:
                sums = [one.sums[name, b, m] for one in parts]
                found, both = (
                    UnitSums.added([getattr(one, of) for one in sums]).units()
                    for of in ("units", "both")
                )
                counts: list[float] = np.sum([one.counts for one in sums], axis=0).tolist()
                n_lists, *only, base_lacks, model_lacks = map(int, counts[:5])
                of_lists, of_both = counts[5:8], counts[8:]
                means, both_means = (
                    [_mean(one, w) for one in two] for w, *two in (of_lists, of_both)
                )
                tested = paired_test(found, name, settings, repeated)
                if base_lacks or model_lacks:
                    estimate = both.estimate if both.n > 1 else None
                    lacking = [base_lacks, model_lacks]
                    tested |= row_of_both(lacking, both_means, both.n, estimate)
                bounds = bounds_of(name, declared, np.array([one.seen for one in sums]))
                row = numbers_of_pair(
                    name, (b, m), n_lists, only, means, tested, bounds, settings.missing
                )
                rows.append(with_remarks(row, unlike(name, b, m), {}))
        return rows


def _mean(total: float, weight: float) -> float:
    return total / weight if weight else np.nan


def numbers_of_pair(
    metric: str,
    pair: tuple[int, int],
    n_lists: int,
    only: Sequence[int],
    means: Sequence[float],
    tested: dict[str, Any],
    bounds: MetricBounds | None,
    missing: PairMissing,
) -> dict[str, Any]:
    """The numbers of a pair; with missing="drop" the models themselves select the lists."""
    dropped = missing == "drop" and any(only)
    return {
        "metric": metric,
        "baseline": pair[0],
        "model": pair[1],
        "n_users": tested["wins"] + tested["ties"] + tested["losses"],
        "n_lists": n_lists,
        "n_only_baseline": only[0],
        "n_only_model": only[1],
        "mean_baseline": means[0],
        "mean_model": means[1],
        "reach": np.nan if bounds is None else bounds[1] - bounds[0],
        "rel_diff": means[1] / means[0] - 1 if means[0] > 0 else np.nan,
        **NONE_LACKING,
        **tested,
        "different_lists": "different_lists" * dropped,
    }


def with_remarks(
    row: dict[str, Any], unlike: Mapping[str, Any], powered: Mapping[str, Any]
) -> dict[str, Any]:
    """The row with what the two models do not share, and with the numbers of cheap labels."""
    met = [row["remarks"], unlike["remarks"], powered.get("remarks"), row.pop("different_lists")]
    found = {**row, **unlike, **powered, "powered": bool(powered)}
    return found | {"remarks": "; ".join(filter(None, met))}

"""Compare models on the same users, pair by pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError, DuplicateError, OptionError
from ..inputs.options import as_columns, check_choice
from .columns import (
    Codes,
    Floats,
    count,
    frame_of,
    group_codes,
    key_codes,
    metric_values,
    require,
    share,
    some_keys,
)
from .paired import PairSettings, paired_resamples, paired_test
from .stats.inference import ALTERNATIVES, CORRECTIONS
from .verdict import check_smaller, decide

__all__ = ["compare_models"]

TESTS = ("t", "randomization", "bootstrap", "wilcoxon")
RESAMPLED = ("randomization", "bootstrap")

# Pairs whose differences are resampled together: 32 columns of a million users are 256 MB.
PAIRS_AT_ONCE = 32


def compare_models(
    per_user: pd.DataFrame | Mapping[str, pd.DataFrame],
    metrics: str | Sequence[str] | None = None,
    *,
    baseline: Any = None,
    user_col: str | Sequence[str] = "user_id",
    model_col: str = "model",
    fold: str | Sequence[str] | None = None,
    test: str = "t",
    users: str = "raise",
    alternative: str = "two-sided",
    confidence: float = 0.95,
    margin: float | Mapping[str, float] | None = None,
    correction: str = "holm",
    family: str | Sequence[str] | None = None,
    n_resamples: int = 10_000,
    seed: int = 0,
    smaller_is_better: str | Sequence[str] | None = None,
) -> pd.DataFrame:
    """Compare models on the same users by the differences d = model − baseline per user.

    * test "t": t = d̄/(s_d/√n) with n − 1 degrees of freedom, interval d̄ ∓ t_q·s_d/√n.
    * "randomization": signs of d are flipped B times; p = (1 + #{|T*| ≥ |T|})/(B + 1) with T = Σd, exact over all
      2^m patterns when these are at most B (m users differ, m ≤ 16). Interval d̄ ∓ the confidence quantile of the
      flipped mean of d − d̄.
    * "bootstrap": percentile interval and p of Poisson(1) weights per user.
    * "wilcoxon": signed ranks, normal approximation. It does not test the mean, whose t interval stands beside it:
      with skewed differences it rejects although the means are equal (warning "wilcoxon_not_mean").

    Parameters
    ----------
    per_user : DataFrame or mapping
        One row per (model, user), such as `result.per_user` evaluated `by="model"`, or model → its frame.
    metrics : str or list of str, optional
        Metric columns. Default: the metrics that `evaluate` computed, else every float column that is not a key.
    baseline : label, optional
        The model that all others are compared with. Default: all pairs, the earlier in the order of names (or of
        the mapping) as the baseline.
    user_col, model_col : default "user_id", "model"
        Key of a list (string or list of strings), column of the model in a long frame.
    fold : str or list of str, optional
        Columns of folds or repetitions: models are paired within (user, fold), and a user counts once with the
        mean over folds, because folds of one user are not independent.
    test : {"t", "randomization", "bootstrap", "wilcoxon"}, default "t"
    users : {"raise", "inner", "zero"}, default "raise"
        Users with a value for one model of a pair only: error; leave them out; or count 0 for the other model.
        Users without a value for both are left out.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater": the model has the larger value. One-sided intervals are open on one side.
    confidence : float, default 0.95
        Of the interval; alpha = 1 − confidence.
    margin : float or mapping, optional
        Largest difference that does not matter (in units of the metric, or metric → number): adds `p_equivalence`
        of the two one-sided t tests (TOST).
    correction, family
        As in `compare_variants`.
    n_resamples, seed : int, default 10_000, 0
        Of the randomization test and the bootstrap.
    smaller_is_better : str or list of str, optional
        Metrics of which less is better. Default: columns of metrics that recdf marks so, such as first_rank@10.

    Returns
    -------
    DataFrame
        One row per (metric, pair): `metric`, `baseline`, `model`, `n_users` (with both), `n_only_baseline`,
        `n_only_model`, `mean_baseline`, `mean_model`, `diff`, `rel_diff` (null unless the baseline's mean is positive),
        `se`, `ci_low`, `ci_high`, `d_z` (d̄/s_d), `wins`, `ties` (|d| ≤ 1e-12), `losses` (of the model), `statistic`,
        `df`, `p_value`, `p_adj`, `reject`, `p_equivalence`, `test`, `n_resamples`, `seed` (null without resampling),
        `warning`, `verdict`.
        Warnings: "zero_variance" (all differences equal: no statistics), "too_few_users" (below 2),
        "wilcoxon_not_mean".
        Verdict, first rule that holds: "better" or "worse" (p_adj ≤ alpha) · "equivalent" (p_equivalence ≤ alpha) ·
        "no difference shown".

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError
        A column is missing, keys are of kinds that can never match, a key or model is null.
    OptionError
        An unknown option value, an unknown baseline, fewer than two models.
    DuplicateError
        Several rows of a user for one model.
    DataError
        Users with values for one model only (`users="raise"`); a metric that is infinite or not numeric.
    MissingExtraError
        If SciPy is not installed and the test or `margin` needs it.

    References
    ----------
    Urbano, Lima, Hanjalic: Statistical significance testing in information retrieval, SIGIR 2019.
    Schuirmann 1987 (TOST).

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> long = pd.DataFrame({"model": ["als"] * 4 + ["pop"] * 4, "user_id": [1, 2, 3, 4] * 2,
    ...                      "mrr@5": [1, .5, .5, 1, .5, 0, .2, .5]})
    >>> table = rd.compare_models(long, "mrr@5", baseline="pop")
    >>> table[["model", "n_users", "diff", "ci_low", "ci_high", "wins", "verdict"]].round(3)
      model  n_users  diff  ci_low  ci_high  wins verdict
    0   als        4  0.45   0.291    0.609     4  better
    """
    check_choice("test", test, TESTS)
    check_choice("users", users, ("raise", "inner", "zero"))
    check_choice("alternative", alternative, ALTERNATIVES)
    check_choice("correction", correction, CORRECTIONS)
    alpha = 1 - share("confidence", confidence)
    runs = _read_runs(per_user, as_columns(user_col), as_columns(fold), model_col)
    names = _metric_names(metrics, runs, [*as_columns(user_col), *as_columns(fold), model_col])
    margins = _margins(margin, names)
    smaller = check_smaller(smaller_is_better, {name: name for name in names}, runs.spec)
    settings = PairSettings(
        test, users, alternative, confidence, count("n_resamples", n_resamples), count("seed", seed, 0)
    )
    if baseline is None:
        pairs = [(b, m) for b in range(len(runs.models)) for m in range(b + 1, len(runs.models))]
    elif baseline in runs.models:
        b = runs.models.index(baseline)
        pairs = [(b, m) for m in range(len(runs.models)) if m != b]
    else:
        raise OptionError(f"baseline={baseline!r} is not a model; models are {runs.models}")
    rows: list[dict[str, Any]] = []
    waiting: list[tuple[dict[str, Any], Floats]] = []
    for name in names:
        for row, d in _compare_pairs(name, runs.table(name), pairs, runs, settings, margins.get(name)):
            rows.append(row)
            if test in RESAMPLED and not row["warning"]:
                waiting.append((row, d))
            # One set of weights serves many pairs; the differences of all pairs would not fit in memory.
            if len(waiting) == PAIRS_AT_ONCE:
                _resample(waiting, settings)
    _resample(waiting, settings)
    result = pd.DataFrame(rows)
    for column in ("baseline", "model"):
        result[column] = pd.Series([runs.models[i] for i in result[column]])
    result["test"] = test
    result["n_resamples"] = result["n_resamples"].astype("Int64")
    result["seed"] = pd.array([seed if test in RESAMPLED else pd.NA] * len(result), dtype="Int64")
    equivalent = result["p_equivalence"].to_numpy() <= alpha
    decided = decide(result, correction=correction, family=family, alpha=alpha, smaller=smaller, equivalent=equivalent)
    result = result.assign(**decided)[RESULT_COLUMNS]
    result.attrs["recdf_comparison"] = {
        "kind": "models",
        "by": [],
        "confidence": confidence,
        "alternative": alternative,
        "correction": correction,
    }
    return result


RESULT_COLUMNS = [
    "metric", "baseline", "model", "n_users", "n_only_baseline", "n_only_model", "mean_baseline", "mean_model",
    "diff", "rel_diff", "se", "ci_low", "ci_high", "d_z", "wins", "ties", "losses", "statistic", "df", "p_value",
    "p_adj", "reject", "p_equivalence", "test", "n_resamples", "seed", "warning", "verdict",
]  # fmt: skip


@dataclass(frozen=True)
class _Runs:
    """Rows of all models: `place` is model · n_cells + cell, a cell being a user or a (user, fold)."""

    parts: list[tuple[str, pd.DataFrame]]
    models: list[Any]
    place: Codes
    n_cells: int
    user_of_cell: Codes | None
    show: Callable[[Codes], str]

    @property
    def spec(self) -> Mapping[str, Any]:
        """What `evaluate` wrote about the first frame."""
        return self.parts[0][1].attrs.get("recdf") or {}

    def table(self, metric: str) -> Floats:
        """Values of a metric as (models, cells), NaN where there is none; cells in the order of the ids."""
        values = np.full(len(self.models) * self.n_cells, np.nan)
        read = [metric_values(frame, role, metric) for role, frame in self.parts]
        values[self.place] = read[0] if len(read) == 1 else np.concatenate(read)
        return values.reshape(len(self.models), self.n_cells)

    def per_user(self, values: Floats) -> Floats:
        """Mean over the folds of each user, NaN skipped; the values themselves without folds."""
        if self.user_of_cell is None:
            return values
        defined = ~np.isnan(values)
        of = self.user_of_cell[defined]
        n = int(self.user_of_cell.max(initial=-1)) + 1
        with np.errstate(invalid="ignore"):
            return np.bincount(of, weights=values[defined], minlength=n) / np.bincount(of, minlength=n)


def _read_runs(per_user: Any, keys: list[str], folds: list[str], model_col: str) -> _Runs:
    """Check the frames and give every row its place."""
    if isinstance(per_user, Mapping):
        models = list(per_user)
        parts = [(f"per_user[{name!r}]", frame_of(f"per_user[{name!r}]", per_user[name])) for name in models]
        model = np.repeat(np.arange(len(parts)), [len(frame) for _, frame in parts])
    else:
        parts = [("per_user", frame_of("per_user", per_user))]
        model, labels = group_codes(per_user, "per_user", [model_col])
        models = labels[model_col].tolist()
    if len(models) < 2:
        raise OptionError(f"per_user has {len(models)} models ({models}); a comparison needs at least two")
    for role, frame in parts:
        require(frame, role, [*keys, *folds])
    coded, n_cells = key_codes(parts, [*keys, *folds])
    cell = np.concatenate(coded)
    place = model * n_cells + cell

    def show(cells: Codes) -> str:
        """Keys of up to five cells."""
        ends = np.cumsum([len(frame) for _, frame in parts])
        shown = []
        for one in cells[:5]:
            row = int(np.argmax(cell == one))
            part = int(np.searchsorted(ends, row, side="right"))
            frame = parts[part][1]
            at = row - int(ends[part]) + len(frame)
            shown.append(some_keys(frame, [at], [*keys, *folds]))
        return ", ".join(shown)

    counts = np.bincount(place, minlength=len(models) * n_cells)
    if (counts > 1).any():
        twice = np.unique(np.flatnonzero(counts > 1) % max(n_cells, 1))
        raise DuplicateError(
            f"per_user has several rows per model and {[*keys, *folds]}: {len(twice):,} keys, such as {show(twice)}. "
            "Name the columns that tell them apart in user_col= or fold=, or roll them up first with rd.roll_up"
        )
    user_of_cell = None
    if folds:
        user_of_cell = np.zeros(n_cells, np.int64)
        user_of_cell[cell] = np.concatenate(key_codes(parts, keys)[0])
    return _Runs(parts, models, place, n_cells, user_of_cell, show)


def _metric_names(metrics: str | Sequence[str] | None, runs: _Runs, keys: list[str]) -> list[str]:
    if metrics is not None:
        names = as_columns(metrics)
        if not names:
            raise OptionError("metrics is empty; expected at least one column of per_user")
        for role, frame in runs.parts:
            require(frame, role, names)
        return list(dict.fromkeys(names))
    known = runs.spec.get("metrics")
    names = [
        name
        for name in runs.parts[0][1].columns
        if name not in keys
        and (known is None or name in known)
        and all(name in frame.columns and pd.api.types.is_float_dtype(frame[name].dtype) for _, frame in runs.parts)
    ]
    if not names:
        raise OptionError(f"per_user has no float column besides {keys}; name the metrics to compare in metrics=")
    return names


def _margins(margin: Any, names: list[str]) -> dict[str, float]:
    margins = margin if isinstance(margin, Mapping) else {} if margin is None else dict.fromkeys(names, margin)
    for name, value in margins.items():
        if name not in names:
            raise OptionError(f"margin names {name!r}, which is not compared; metrics are {names}")
        if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 < value < np.inf:
            raise OptionError(f"margin={value!r} for {name!r}; expected a number above 0")
    return {name: float(value) for name, value in margins.items()}


def _resample(waiting: list[tuple[dict[str, Any], Floats]], settings: PairSettings) -> None:
    """Fill the rows that wait for their resamples, and empty the list."""
    if waiting:
        found = paired_resamples([d for _, d in waiting], settings)
        for (row, _), numbers in zip(waiting, found, strict=True):
            row.update(numbers)
        waiting.clear()


def _compare_pairs(
    metric: str, table: Floats, pairs: list[tuple[int, int]], runs: _Runs, settings: PairSettings, margin: float | None
) -> Iterator[tuple[dict[str, Any], Floats]]:
    """Row and differences (NaN: not a unit of this pair) of every pair for one metric."""
    complete = not np.isnan(table).any()
    # One mean per model, not one per pair, where all models have the same users.
    averages = [float(runs.per_user(values).mean()) for values in table] if complete else []
    for b, m in pairs:
        if complete:
            only = (0, 0)
            d = units = runs.per_user(table[m] - table[b])
            means = (averages[b], averages[m])
        else:
            base, model, only = _paired(metric, table, (b, m), runs, settings.users)
            base, model, d = runs.per_user(base), runs.per_user(model), runs.per_user(model - base)
            kept = ~np.isnan(d)
            units = d[kept]
            means = (float(base[kept].mean()), float(model[kept].mean())) if len(units) else (np.nan, np.nan)
        row = {
            "metric": metric,
            "baseline": b,
            "model": m,
            "n_users": len(units),
            "n_only_baseline": only[0],
            "n_only_model": only[1],
            "mean_baseline": means[0],
            "mean_model": means[1],
            "rel_diff": means[1] / means[0] - 1 if means[0] > 0 else np.nan,
            **paired_test(units, settings, margin),
        }
        yield row, d


def _paired(
    metric: str, table: Floats, pair: tuple[int, int], runs: _Runs, users: str
) -> tuple[Floats, Floats, tuple[int, int]]:
    """Values of both models by cell, NaN in both or in none, and how many cells only one of them has."""
    base, model = table[pair[0]], table[pair[1]]
    has_base, has_model = ~np.isnan(base), ~np.isnan(model)
    only = has_base & ~has_model, has_model & ~has_base
    if users == "raise" and (only[0] | only[1]).any():
        first, second = (runs.models[i] for i in pair)
        raise DataError(
            f"{metric!r} has a value for {first!r} only in {int(only[0].sum()):,} users and for {second!r} only in "
            f'{int(only[1].sum()):,} ({runs.show(np.flatnonzero(only[0] | only[1])[:5])}); pass users="inner" to leave '
            'them out, or "zero" to count 0 for the model that lacks them'
        )
    if users == "zero":
        return np.where(only[1], 0.0, base), np.where(only[0], 0.0, model), (int(only[0].sum()), int(only[1].sum()))
    both = has_base & has_model
    return np.where(both, base, np.nan), np.where(both, model, np.nan), (int(only[0].sum()), int(only[1].sum()))

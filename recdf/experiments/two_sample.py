"""One treatment against the control in one segment: samples in, rows of numbers out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import DataError, OptionError
from .columns import Codes, Floats, some_keys
from .experiment_rows import ExperimentRows
from .options import Alternative, Method
from .samples import Metric, fill_covariate, sum_by
from .stats.always_valid import always_valid_multiplier, always_valid_p
from .stats.arms import Arm, Sample, arm, cuped_arm, cuped_theta, linearise, pool, stratified_arm
from .stats.bootstrap import bootstrap_p, quantile_interval, replicate_estimates, standard_error
from .stats.effects import Effect, effect

__all__: list[str] = []


@dataclass(frozen=True)
class Settings:
    """Options of a comparison that every pair of arms needs."""

    alternative: Alternative
    confidence: float
    sequential_n: int | None
    method: Method
    n_resamples: int
    seed: int


def compare_arms(
    metrics: list[Metric], arms: tuple[Codes, Codes], data: ExperimentRows, settings: Settings
) -> list[dict[str, Any]]:
    """One row per metric for one treatment in one segment."""
    stratum, clusters, users = data.strata, data.clusters, data.users
    how: list[str] = [settings.method if settings.sequential_n is None else "sequential"]
    how += ["strata"] if stratum is not None else ["cluster"] if clusters is not None else []
    rows: list[dict[str, Any]] = []
    samples = []
    for metric in metrics:
        (control, kept_c), (treatment, kept_t) = metric.take(arms[0]), metric.take(arms[1])
        control, treatment, n_filled = fill_covariate(control, treatment)
        warnings = []
        if clusters is not None:
            if np.isin(clusters[kept_c], clusters[kept_t]).any():
                warnings.append("shared_clusters")
            control, treatment = sum_by(control, clusters[kept_c]), sum_by(treatment, clusters[kept_t])
        found, x, problems = _effect(control, treatment, _strata(stratum, kept_c, kept_t, metric), settings)
        if np.isnan(x):
            control, treatment = (s._replace(x_num=None, x_den=None) for s in (control, treatment))
        samples.append((control, treatment, found["theta"], x))
        rows.append(
            {
                "metric": metric.name,
                "n_control": len(control.num),
                "n_treatment": len(treatment.num),
                "n_dropped": len(arms[0]) + len(arms[1]) - len(kept_c) - len(kept_t),
                **found,
                "method": "+".join([how[0], *(["cuped"] if control.x_num is not None else []), *how[1:]]),
                "n_covariate_missing": n_filled,
                "warning": "; ".join(warnings + problems),
            }
        )
    if settings.method == "bootstrap":
        tested = [i for i, row in enumerate(rows) if not np.isnan(row["se"])]
        # Metrics over the same units share one set of weights; dropped users make other units.
        together = [i for i in tested if metrics[i].defined is None]
        for batch in [together, *([i] for i in tested if i not in together)]:
            if batch:
                replaced = _bootstrap([samples[i] for i in batch], users is None and clusters is None, settings)
                for i, found in zip(batch, replaced, strict=True):
                    rows[i].update(found)
    return rows


def _bootstrap(samples: Sequence[Any], unordered: bool, settings: Settings) -> list[dict[str, float]]:
    """se, intervals and p of each (control, treatment, θ, x) from the replicates of both arms."""
    thetas, xs = [sample[2] for sample in samples], [sample[3] for sample in samples]
    control, treatment = (
        replicate_estimates(
            [sample[side] for sample in samples], thetas, xs, settings.n_resamples, (settings.seed, side), unordered
        )
        for side in (0, 1)
    )
    diff = treatment - control
    options: dict[str, Any] = {"alternative": settings.alternative, "confidence": settings.confidence}
    low, high = quantile_interval(diff, np.zeros(len(samples)), **options)
    with np.errstate(divide="ignore", invalid="ignore"):
        positive = (control > 0).all(axis=0) & (treatment > 0).all(axis=0)
        relative = np.where(positive, treatment / control - 1, np.nan)
    rel_low, rel_high = quantile_interval(relative, np.zeros(len(samples)), **options)
    names = ("se", "ci_low", "ci_high", "rel_ci_low", "rel_ci_high", "p_value")
    found: tuple[Floats, ...] = (
        standard_error(diff),
        low,
        high,
        rel_low,
        rel_high,
        bootstrap_p(diff, settings.alternative),
    )
    return [dict(zip(names, map(float, numbers), strict=True)) for numbers in zip(*found, strict=True)]


def _strata(stratum: Any, kept_c: Codes, kept_t: Codes, metric: Metric) -> tuple[Codes, Codes, Floats] | None:
    """Strata codes 0..H−1 of both arms and the strata's shares W_h."""
    if stratum is None:
        return None
    if metric.sample.den is not None:
        raise OptionError(f"metric {metric.name!r} is a ratio of sums; strata are for means only")
    codes, labels = stratum
    present, own = np.unique(codes[np.concatenate([kept_c, kept_t])], return_inverse=True)
    in_c, in_t = own[: len(kept_c)], own[len(kept_c) :]
    counts = np.array([np.bincount(part, minlength=len(present)) for part in (in_c, in_t)])
    few = counts.min(axis=0, initial=2) < 2
    if few.any():
        shown = some_keys(labels, present[few], list(labels.columns))
        raise DataError(
            f"{int(few.sum()):,} of {len(present):,} strata have fewer than 2 users in an arm "
            f"for metric {metric.name!r} "
            f"({shown}); merge strata, or leave those users out"
        )
    return in_c, in_t, counts.sum(axis=0) / counts.sum()


def _effect(
    control: Sample, treatment: Sample, strata: Any, settings: Settings
) -> tuple[dict[str, float], float, list[str]]:
    """Estimates of both arms and their difference, the covariate's value over both, and what stood in the way."""
    if min(len(control.num), len(treatment.num)) < 2:
        means = [linearise(s.num, s.den)[0] if len(s.num) else np.nan for s in (control, treatment)]
        return _row(NO_EFFECT, means), np.nan, ["too_few_users"]
    plain = arm(control.num, control.den), arm(treatment.num, treatment.den)
    if not (np.isfinite(plain[0].mean) and np.isfinite(plain[1].mean)):
        return _row(NO_EFFECT, [plain[0].mean, plain[1].mean]), np.nan, ["zero_denominator"]
    theta: Any = np.nan
    x: Any = np.nan
    arms, problems = plain, []
    if any(s.x_den is not None and not s.x_den.any() for s in (control, treatment)):
        # New users have no past: a ratio over nothing explains nothing.
        control, treatment = (s._replace(x_num=None, x_den=None) for s in (control, treatment))
        problems = ["no_covariate"]
    if control.x_num is not None:
        theta, x = cuped_theta(pool(control, treatment))
        arms = cuped_arm(control, theta, x), cuped_arm(treatment, theta, x)
    if strata is not None:
        # Only means have strata, so the adjustment can be made user by user.
        values = [s.num if s.x_num is None else s.num - theta * (s.x_num - x) for s in (control, treatment)]
        arms = stratified_arm(values[0], strata[0], strata[2]), stratified_arm(values[1], strata[1], strata[2])
    means = [arms[0].mean, arms[1].mean]
    if not arms[0].var + arms[1].var > 0:
        return _row(NO_EFFECT, means, theta), x, [*problems, "zero_variance"]
    reduction = np.nan if arms is plain else 1 - (arms[0].var + arms[1].var) / (plain[0].var + plain[1].var)
    return _row(_tested(arms, len(control.num) + len(treatment.num), settings), means, theta, reduction), x, problems


NO_EFFECT = Effect(*[np.nan] * 10)


def _row(found: Effect, means: Sequence[Any], theta: Any = np.nan, reduction: Any = np.nan) -> dict[str, float]:
    # A sum of denominators of 0 gives no mean, not an infinite one.
    means = [mean if np.isfinite(mean) else np.nan for mean in means]
    relative = means[1] / means[0] - 1 if means[0] > 0 else np.nan
    numbers = {
        "mean_control": means[0],
        "mean_treatment": means[1],
        **found._replace(diff=means[1] - means[0], rel_diff=relative)._asdict(),
        "theta": theta,
        "variance_reduction": reduction,
    }
    return {name: float(value) for name, value in numbers.items()}


def _tested(arms: tuple[Arm, Arm], n: int, settings: Settings) -> Effect:
    if settings.method == "bootstrap":
        # A se that exists marks the row; the replicates fill in the rest and SciPy is not asked for.
        return NO_EFFECT._replace(se=np.sqrt(arms[0].var + arms[1].var))
    if settings.sequential_n is None:
        return effect(*arms, alternative=settings.alternative, confidence=settings.confidence)
    multiplier = always_valid_multiplier(n, settings.sequential_n, settings.confidence)
    found = effect(*arms, confidence=settings.confidence, always_valid=multiplier)
    return found._replace(
        p_value=always_valid_p(found.statistic, n, settings.sequential_n, settings.confidence), df=np.nan
    )

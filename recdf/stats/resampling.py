"""Resampling of units: random weights in fixed tiles, and the Poisson bootstrap made of them.

Contract: `columns` are arrays over the same units, in the order of the units' ids. A replicate is a
weighted sum of every column. The weight of unit u in replicate b depends only on (seed, u, b),
because weights come in fixed tiles of 1024 units × 1024 replicates, each with its own generator. So
a result is the same for any order of the rows, for any number of further replicates, and on any
machine. It needs the memory of one tile.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..progress import Progress
from .arms import Sample, moments_of, open_sided
from .numbers import Alternative, Floats, Integers, scipy_module, undefined_is_nan

# One number, or several where samples, such as the arms of an experiment, must have weights of
# their own.
Seed = int | tuple[int, ...]

TILE = 1024

# Poisson(1) from a uniform 16-bit number: how many of the 65,536 numbers mean a count of 0, 1, ..
# 7.
_POISSON = np.repeat(np.arange(8.0), (24110, 24109, 12054, 4018, 1005, 200, 35, 5))

# Replicates that are multiplied at once. Larger products are split between threads by the linear
# algebra library, which takes longer than it saves, and several times longer on a busy machine.
REPLICATES_AT_ONCE = 32

# A function that writes the weights of one tile into an array (replicates, TILE), from the tile's
# seeds.
Fill = Callable[[Floats, list[int]], None]


def distinct_columns(columns: Sequence[Floats]) -> tuple[list[Floats], list[int]]:
    """Return the different arrays among some, and the place of each among these: equal ones are
    summed once."""
    found: list[Floats] = []
    places = []
    for one in columns:
        known = (j for j, other in enumerate(found) if one is other or np.array_equal(one, other))
        places.append(next(known, len(found)))
        found += [one] if places[-1] == len(found) else []
    return found, places


def by_row(**columns: Iterable[float]) -> list[dict[str, Any]]:
    """Return columns of numbers as rows by name."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def poisson_sums(columns: Sequence[Floats], n_resamples: int, seed: Seed) -> Floats:
    """Return sums of every column under Poisson(1) weights per unit: an array (n_resamples,
    columns)."""

    def fill(weights: Floats, seeds: list[int]) -> None:
        numbers = _random_16_bits(seeds, weights.size)
        _POISSON.take(numbers, out=weights.reshape(-1), mode="clip")

    return _tiled_sums(columns, n_resamples, seed, fill)


def sign_sums(columns: Sequence[Floats], n_resamples: int, seed: Seed) -> Floats:
    """Return sums of every column under random signs per unit: an array (n_resamples, columns)."""

    # A sign is 1 − 2·bit, so Σ s·x = Σ x − 2 Σ bit·x, and a tile needs only bits.
    def fill(weights: Floats, seeds: list[int]) -> None:
        raw = random_words(seeds, weights.size // 64)
        weights.reshape(-1)[:] = np.unpackbits(raw.view(np.uint8))

    totals = np.array([values.sum() for values in columns])
    return totals - 2 * _tiled_sums(columns, n_resamples, seed, fill)


def split_sums(columns: Sequence[Floats], share: float, n_splits: int, seed: Seed) -> Floats:
    """Return sums of every column over the units that a random split puts into an arm: (n_splits,
    columns).

    Each unit is put there with the probability `share`, to 16 bits.
    """

    def fill(weights: Floats, seeds: list[int]) -> None:
        numbers = _random_16_bits(seeds, weights.size)
        np.less(numbers, round(share * 2**16), out=weights.reshape(-1))

    return _tiled_sums(columns, n_splits, seed, fill)


def _tiled_sums(columns: Sequence[Floats], n_resamples: int, seed: Seed, fill: Fill) -> Floats:
    n = len(columns[0])
    sums = np.zeros((n_resamples, len(columns)))
    seeds = _seeds(seed)
    # Both arrays are used again for each tile, because new ones would cost most of the time.
    block = np.empty((TILE, len(columns)))
    weights = np.empty((TILE, TILE))
    with Progress(n, "the resamples") as progress:
        for unit_tile, start in enumerate(range(0, n, TILE)):
            width = min(TILE, n - start)
            for j, values in enumerate(columns):
                block[:width, j] = values[start : start + width]
            for replicate_tile, first in enumerate(range(0, n_resamples, TILE)):
                rows = min(TILE, n_resamples - first)
                fill(weights[:rows], [*seeds, unit_tile, replicate_tile])
                for start_row in range(0, rows, REPLICATES_AT_ONCE):
                    some = slice(start_row, min(start_row + REPLICATES_AT_ONCE, rows))
                    sums[first + some.start : first + some.stop] += (
                        weights[some, :width] @ block[:width]
                    )
            progress.add(width)
    return sums


def _seeds(seed: Seed) -> list[int]:
    return [*map(int, seed if isinstance(seed, Sequence) else [seed])]


def random_words(seeds: list[int], n: int) -> npt.NDArray[np.uint64]:
    """Return 64-bit random numbers for one tile."""
    # random_raw is the stream of the bit generator itself, which NumPy keeps stable over versions.
    words = np.random.default_rng(seeds).bit_generator.random_raw(n)
    return words.astype("<u8", copy=False)


def _random_16_bits(seeds: list[int], n: int) -> npt.NDArray[np.uint16]:
    return random_words(seeds, n // 4).view("<u2")


def replicate_estimates(
    samples: Sequence[Sample],
    n_resamples: int,
    seed: Seed,
    slopes: Sequence[tuple[Floats, Floats]] | None = None,
    unordered: bool = False,
) -> Floats:
    """Return replicates (n_resamples, samples) of ΣN/ΣD − Σθ(ΣX/ΣX_d − x) over the same units; a
    missing D is 1.

    `slopes` are θ and x of the covariates that samples have. `unordered` units have no ids to sort
    by. They are sorted by their own values, which makes the replicates the same for any order of
    the rows.
    """
    ones = np.ones(len(samples[0].num))
    parts = [part for sample in samples for part in (sample, *sample.covariates)]
    given = [
        ones if values is None else values for part in parts for values in (part.num, part.den)
    ]
    columns, places = distinct_columns([ones, *given])
    if unordered:
        order = np.lexsort(columns)
        columns = [values[order] for values in columns]
    sums = poisson_sums(columns, n_resamples, seed)
    with undefined_is_nan():
        ratios = iter((sums[:, places[1::2]] / sums[:, places[2::2]]).T)
    replicates = np.empty((n_resamples, len(samples)))
    for j in range(len(samples)):
        replicates[:, j] = next(ratios)
        for slope, x in zip(*slopes[j], strict=True) if slopes else ():
            replicates[:, j] -= slope * (next(ratios) - x)
    # A replicate in which every unit with a denominator has weight 0 has no ratio.
    replicates[np.isinf(replicates)] = np.nan
    return replicates


def standard_error(replicates: Floats) -> Floats:
    """Return the standard deviation of the replicates (B, columns)."""
    return _by_column(lambda part: part.std(axis=0, ddof=1), replicates)


def bootstrap_effect(
    replicates: Floats, alternative: Alternative, confidence: float
) -> dict[str, Floats]:
    """Return the standard error, percentile interval and p of effects from replicates (B, columns)
    of them.

    p of "the effect is 0" is the share of replicates on the other side of 0, with 1 added to both
    counts; replicates within a billionth of their spread are 0. A two-sided p is twice the smaller
    tail.
    """

    def p_value(part: Floats) -> Floats:
        near = 1e-9 * part.std(axis=0)
        below = (1 + (part <= near).sum(axis=0)) / (len(part) + 1)
        above = (1 + (part >= -near).sum(axis=0)) / (len(part) + 1)
        if alternative == "two-sided":
            return np.minimum(1.0, 2 * np.minimum(below, above))
        return below if alternative == "greater" else above

    low, high = quantile_interval(replicates, alternative, confidence)
    return {
        "se": standard_error(replicates),
        "ci_low": low,
        "ci_high": high,
        "p_value": _by_column(p_value, replicates),
    }


def quantile_interval(
    replicates: Floats, alternative: Alternative, confidence: float
) -> tuple[Floats, Floats]:
    """Return the percentile interval of replicates (B, columns)."""
    tail = (1 - confidence) / (2 if alternative == "two-sided" else 1)
    low, high = _by_column(lambda part: np.quantile(part, [tail, 1 - tail], axis=0), replicates)
    return open_sided(low, high, alternative)


def _by_column(statistic: Callable[[Floats], Floats], replicates: Floats) -> Floats:
    """Compute a statistic of every column of replicates, without replicates that have no value
    (NaN)."""
    if not np.isnan(replicates).any():
        return statistic(replicates)
    width = np.full_like(statistic(np.zeros((2, 1))), np.nan)
    parts = [column[~np.isnan(column)][:, None] for column in replicates.T]
    return np.concatenate([statistic(part) if len(part) > 1 else width for part in parts], axis=-1)


DrawnCounts = npt.NDArray[np.uint8]
# A function of sorted values, and of how often each is drawn in each replicate: an array
# (replicates, values).
Statistic = Callable[[Floats, DrawnCounts], Floats]


def drawn_quantile(q: float) -> Statistic:
    """Return the statistic "quantile q", linear between the drawn values as in `numpy.quantile`."""

    def statistic(x: Floats, counts: DrawnCounts) -> Floats:
        upto = counts.astype(
            np.int32
        )  # summing bytes into longer numbers would take many times longer
        np.cumsum(upto, axis=1, out=upto)
        last = np.maximum(upto[:, -1] - 1, 0)
        place = q * last
        below = np.floor(place)
        ranks = np.minimum([below, below + 1], last).astype(np.int32)
        rows = [row.searchsorted(own, "right") for row, own in zip(upto, ranks.T, strict=True)]
        low, high = x[np.minimum(np.array(rows).T, len(x) - 1)]
        return np.where(upto[:, -1] > 0, low + (place - below) * (high - low), np.nan)

    return statistic


def drawn_std(x: Floats, counts: DrawnCounts) -> Floats:
    """Return the standard deviation of the drawn values, with divisor n − 1."""
    with undefined_is_nan():
        off = x - x.mean()
        n = counts.sum(axis=1, dtype=np.float64)
        spread = counts @ off**2 - (counts @ off) ** 2 / n
        return np.where(n > 1, np.sqrt(np.maximum(spread, 0.0) / (n - 1)), np.nan)


def replicate_statistic(
    values: Floats, unit: Integers, statistic: Statistic, n_resamples: int, seed: Seed
) -> Floats:
    """Return replicates of a statistic of some values; values of one unit (a code 0, 1, ...) are
    drawn together."""
    order = np.argsort(values, kind="stable")
    x = values[order]
    unit = unit[order]
    shape = (REPLICATES_AT_ONCE, unit.max() + 1)
    found = []
    for block in range(-(-n_resamples // REPLICATES_AT_ONCE)):
        numbers = _random_16_bits([*_seeds(seed), 0, block], math.prod(shape))
        counts = _POISSON.astype(np.uint8)[numbers].reshape(shape)
        found.append(statistic(x, counts.take(unit, axis=1)))
    return np.concatenate(found)[:n_resamples]


# ------------------------------------------------------------------------------------------
# Permutation tests of two arms, and of paired differences: by random signs, by all patterns of
# signs, or by signed ranks (Wilcoxon).
#
# Of two arms, the labels are shuffled over the units, and the statistic is studentised.
#
# The shuffled statistics show how skewed the t statistic of these values is where one arm is
# small. Each of them is divided by its own standard error, so that the test also holds for unequal
# variances (Janssen 1997). The p of a random split itself comes from a formula, not from shuffles.

# A block of shuffles has so many cells: 4 million random numbers take 32 MB.
_CELLS = 1 << 22


def permuted_t(
    control: Floats, treatment: Floats, n_resamples: int, seed: int
) -> tuple[Floats, Floats]:
    """Return Welch's t of every column of two arms (units, columns), and its values under shuffled
    labels: (n_resamples, columns).

    In each replicate every unit has a random number, and the units with the smallest numbers are
    the treatment. So the result depends only on the seed and on the order of the units.
    """
    n_c = len(control)
    n_t = len(treatment)
    both = np.concatenate([control, treatment])
    centred = both - both.mean(axis=0)
    n = n_c + n_t
    sums = np.concatenate([centred, centred**2], axis=1)
    total = sums.sum(axis=0)

    def welch_t(*arms: Floats) -> Floats:
        """Return t from sums and sums of squares of both arms, the halves of the last axis."""
        size = np.reshape([n_c, n_t], (2, 1, 1))
        parts, squares = np.split(np.array(arms), 2, axis=2)
        off = squares - parts**2 / size
        # Rounding leaves 1e-17 where the values of an arm are all equal.
        of_arms = np.where(off > 1e-12 * np.abs(squares), off, 0.0) / (size - 1) / size
        diff = np.diff(parts / size, axis=0)[0]
        var = of_arms.sum(axis=0)
        with undefined_is_nan():
            flat = np.where(diff == 0, 0.0, np.sign(diff) * np.inf)
            return np.where(var > 0, diff / np.sqrt(var), flat)

    found = np.empty((n_resamples, both.shape[1]))
    rows = max(1, _CELLS // n)
    with Progress(n_resamples, "the permutations") as progress:
        for start in range(0, n_resamples, rows):
            block = range(start, min(start + rows, n_resamples))
            words = np.stack([random_words([seed, b, 0, 0], n) for b in block])
            cut = np.partition(words, n_t - 1, axis=1)[:, n_t - 1]
            treated = 1.0 * (words <= cut[:, None]) @ sums
            found[block.start : block.stop] = welch_t(total - treated, treated)
            progress.add(len(block))
    arms = (own.sum(axis=0)[None] for own in (sums[:n_c], sums[n_c:]))
    return welch_t(*arms)[0], found


# Skewness of the difference below which a normal distribution is as good, and above which ranks are
# compared.
SYMMETRIC, SKEWED = 1e-3, 0.2


class Split(NamedTuple):
    """The units of both arms in a stratum, the difference of their means, and the variance and the
    skewness of all values together."""

    n_control: float
    n_treatment: float
    diff: float
    var: float
    skewness: float

    @classmethod
    def of(cls, control: Floats, treatment: Floats) -> Split:
        """That of values."""
        units = moments_of(control, treatment)
        diff = float(treatment.mean() - control.mean())
        return cls(len(control), len(treatment), diff, float(units.var), float(units.skewness))

    @classmethod
    def of_flags(cls, some: Floats, n: Floats) -> Split:
        """That of `some` ones among n zeros and ones of each arm."""
        share, (n_c, n_t) = float(some.sum() / n.sum()), n.tolist()
        control, treatment = (some / n).tolist()
        var = share * (1 - share)
        skewness = (1 - 2 * share) / math.sqrt(var) if var > 0 else 0.0
        return cls(n_c, n_t, treatment - control, var, skewness)

    def by_ranks(self) -> Split:
        """That of the ranks of zeros and ones, which are n/2 apart."""
        apart = (self.n_control + self.n_treatment) / 2
        return self._replace(diff=apart * self.diff, var=apart**2 * self.var)


def splits_p(strata: Iterable[Split], ranked: Iterable[Split]) -> float:
    """Return the two-sided p of the differences of two means in strata, over all splits of the
    units of each into arms of these sizes. The differences are added by their number of units.

    Over these splits the difference has mean 0, a known variance and the skewness γ(N − 2n_t)√(N −
    1)/((N − 2)√(n_t n_c)), where γ is that of all N values. p is that of Pearson's distribution of
    type III with these moments (Mielke & Berry 2007). Where the skewness is large, the tail is of
    another form, and ranks take the place of values. NaN where all values are equal.
    """
    diff, var, skewness = _split_moments(strata)
    if abs(skewness) > SKEWED:
        diff, var, skewness = _split_moments(ranked)
    return skewed_p(diff / math.sqrt(var), skewness) if var > 0 else np.nan


def turn_of_split(n_control: float, n_treatment: float) -> float:
    """Return what the skewness of all values is multiplied by in that of the difference."""
    n = n_control + n_treatment
    odds = (n - 2 * n_treatment) * math.sqrt(n - 1)
    return odds / ((n - 2) * math.sqrt(n_control * n_treatment))


def skewed_p(z: float, skewness: float) -> float:
    """Return the two-sided p of Pearson's distribution of type III with variance 1."""
    if abs(skewness) < SYMMETRIC:
        return math.erfc(abs(z) / math.sqrt(2))
    special = scipy_module("special")
    shape = 4 / skewness**2
    at = max(shape + 2 * z / skewness, 0.0)
    return min(1.0, 2 * min(special.gammaincc(shape, at), special.gammainc(shape, at)))


def _split_moments(strata: Iterable[Split]) -> tuple[float, float, float]:
    """Return the sum of N·difference over strata, with its variance and skewness over random
    splits."""
    total = var = cubes = 0.0
    for n_c, n_t, diff, var_of_values, skewness in strata:
        n = n_c + n_t
        spread = n * math.sqrt(var_of_values * n / (n - 1) * (1 / n_c + 1 / n_t))
        if spread > 0:
            total = total + n * diff
            var = var + spread**2
            cubes += spread**3 * skewness * turn_of_split(n_c, n_t)
    return total, var, cubes / var**1.5 if var > 0 else 0.0


def sign_flip_p(
    sums: Floats,
    observed: Floats,
    alternative: Alternative,
    tie: float = 1e-12,
    scale: Floats | float | None = None,
) -> Floats:
    """Return p = (1 + #{T* at least as extreme as T})/(B + 1); values within `tie` count as tied.

    `sums` (B, columns) are the resampled statistics T*, and `observed` (columns) are the statistics
    T. `tie` is relative to T or, where that is larger, to the `scale` of T*: without it their root
    mean square. Else rounding would break the ties where T is 0.
    """
    spread = np.sqrt(np.mean(sums**2, axis=0)) if scale is None else scale
    slack = tie * np.maximum(np.abs(observed), spread)
    sizes = {"two-sided": np.abs, "greater": np.positive, "less": np.negative}
    size = sizes[alternative]
    with undefined_is_nan():
        extreme = size(sums) >= size(observed) - slack
    return (1 + extreme.sum(axis=0)) / (len(sums) + 1)


def sign_flip_interval(
    centred: Floats, mean: Floats, alternative: Alternative, confidence: float
) -> tuple[Floats, Floats]:
    """Return mean ∓ the `confidence` quantile of flipped centred means (two-sided: of their
    absolute values)."""
    half = np.quantile(
        np.abs(centred) if alternative == "two-sided" else centred, confidence, axis=0
    )
    return open_sided(mean - half, mean + half, alternative)


def exact_sign_flip_p(values: Floats, alternative: Alternative) -> float:
    """Return the exact p over all 2^m sign patterns of the m values that are not 0, without
    simulation."""
    values = values[values != 0]
    patterns = (np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) & 1
    sums = (1 - 2 * patterns) @ values
    observed = np.array([values.sum()])
    return float(
        (sign_flip_p(sums[:, None], observed, alternative)[0] * (len(sums) + 1) - 1) / len(sums)
    )


def wilcoxon(diff: Floats, alternative: Alternative, tolerance: float) -> dict[str, float | bool]:
    """Return Wilcoxon's signed-rank statistic and p by the normal approximation; zeros are dropped
    (SciPy).

    Sizes that are at most `tolerance` apart have one rank. `ranks_higher` says whether the ranks of
    positive differences are the larger sum.
    """
    # Differences of one size that differ by rounding alone are made equal.
    stats = scipy_module("stats")
    size = np.abs(diff)
    order = size.argsort()
    starts = np.diff(size[order], prepend=-np.inf) > tolerance
    size[order] = size[order][starts][np.cumsum(starts) - 1]
    diff = np.sign(diff) * size
    with warnings.catch_warnings():
        # Below 10 differences SciPy warns of the approximation, although it was requested here.
        warnings.simplefilter("ignore", UserWarning)
        found = stats.wilcoxon(diff, alternative=alternative, method="approx")
        # With "greater" the statistic is the sum of the ranks of positive differences.
        ranks_up = stats.wilcoxon(diff, alternative="greater", method="approx").statistic
    n = (diff != 0).sum()
    higher = ranks_up > n * (n + 1) / 4
    return {"statistic": found.statistic, "p_value": found.pvalue, "ranks_higher": higher}

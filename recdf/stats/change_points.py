"""When did a series of nightly values change its level? By bets on ranks, so that one may look
every night, and by a second look at what the bets find.

Contract, for nights with values x and standard errors s of their own:

1. Scale. Night t has variance v = s² + τ², where τ² is robust: τ² = max(0, median(q/.4549 − s²))
   with q the squared distance from the median of its day of the week.
2. Ranks. r = (x − mean of its day of the week, by 1/v, clipped at 4 sd)/sd, and R its rank among
   r₁..r_t. Without a change R is uniform on 1..t, whatever the law of the nights.
3. Evidence. A night gives exp(δ z(R)) over its mean over all ranks, z the normal score and δ = ±1,
   ±2, ±3; a change at night j multiplies what the nights from j on give. The sum over j, with
   weights that add up to 1, exceeds 1/α ever with a chance of at most α. One night gives at most
   a bounded amount, so that an outage alone is no change.
4. The second look, because nights may be alike: a change is found (`found`) if at least two nights
   are on its side, and the mean after it differs by more than 4 standard errors, of the largest of
   three variances and with the long-run variance of the nights before it, at one of its standard
   errors; it is sure (`sure`) at three of them.
5. The first nights, from which ranks begin, have none of their own, and the ranks after them are
   few. So every night from the 22nd to the 42nd the step that fits best is looked at, too. It is
   sure if a week has followed, and the levels differ by more than 4 standard errors, with the
   long-run variance of what is off both levels, at three of its standard errors.

References: Gandy and Lau 2013; Shin, Ramdas and Rinaldo 2024 (e-detectors); Andrews 1991.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import NamedTuple

import numpy as np

from .numbers import Floats, normal_quantile

SHIFTS = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])  # in nightly standard deviations
HALF_OF_WEIGHT = 30.0  # nights within which a change begins with probability one half
LEAST_NIGHTS = 22  # fewer tell nothing of a change
CLIP, OUTLIER = 4.0, 5.0  # standard deviations: cut in means, named as a night apart
LEAST_Z, EARLY_LOOK, SURE_LOOK = 4.0, 1.0, 3.0  # see 4 above
NO_LONGER = 2.0  # standard errors within which the latest nights no longer differ
RECENT, LAGS = 14, 14
# Nights before a change, and nights that tell of one among the first.
LEAST_BEFORE, NIGHTS_AFTER = 8, 7
STEPS_UNTIL = 42  # nights; later ones have enough before them for bets
# Standard errors of correlations: without a change, with one, and with one beyond CLEAR errors.
TOO_ALIKE, ALIKE_BEFORE, ALIKE_CLEAR, CLEAR = 3.0, 2.0, 2.5, 6.0
NOTHING_LEFT = 1e-9  # share of the squares of a step that rounding leaves
ALIKENESS = ("from one to the next", "from week to week", "in slow waves")
MEDIAN_OF_SQUARE = 0.4549  # of a standard normal variable


class Nights(NamedTuple):
    """Values, their standard errors (0 where unknown), and a code of the day of the week."""

    x: Floats
    se: Floats
    day: np.ndarray

    def __len__(self) -> int:
        return len(self.x)

    def take(self, first: int, end: int | None = None) -> Nights:
        some = slice(first, end)
        return Nights(self.x[some], self.se[some], self.day[some])


class LevelChange(NamedTuple):
    """First night of the new level, the nights on which it was found and was sure (None: not yet),
    ln of its evidence when it was found (NaN where a step of the first nights tells alone), and its
    size in standard deviations of a night.

    `ends` is the night after its last one where the latest nights no longer differ, and `drifts`
    says that a line fits better than a step.
    """

    begins: int
    found: int
    sure: int | None
    log_evidence: float
    size: float
    ends: int | None = None
    drifts: bool = False


class Series(NamedTuple):
    """The changes of a series, how its nights are alike ("" if they are not), its outlier nights
    with their distances in standard deviations, and the standard deviation of a night."""

    changes: list[LevelChange]
    alike: str
    outliers: dict[int, float]
    sd: float


def _changes_in_turn(nights: Nights, alpha: float) -> tuple[list[LevelChange], int]:
    """Return the changes, and where the likeliest of the last search begins.

    After each sure change the search begins anew with the nights that follow, at half of what was
    left of α.
    """
    changes: list[LevelChange] = []
    start, left, n, likeliest = 0, alpha, len(nights), 0
    earlier = nights.take(0, 0)
    while n - start >= LEAST_NIGHTS:
        left /= 2 if changes else 1
        change, begins = _first_change(nights.take(start), left, earlier)
        likeliest = start + begins
        if change is None:
            break
        sure = None if change.sure is None else start + change.sure
        changes.append(
            change._replace(begins=start + change.begins, found=start + change.found, sure=sure)
        )
        if sure is None:
            break
        earlier = nights.take(changes[-2].begins if len(changes) > 1 else 0, changes[-1].begins)
        start = sure + 1
    return changes, likeliest


def changes_of_level(nights: Nights, alpha: float) -> Series:
    """Return what a series says on the morning after its last night."""
    n = len(nights)
    changes, likeliest = _changes_in_turn(nights, alpha)
    edges = [0, *(one.begins for one in changes), n]
    like = np.zeros(3)
    line = None
    least = math.inf
    if changes:  # what is off a line through all nights, if it fits better than these levels
        off = off_levels(nights, [0, n])[0]
        time = np.arange(n) - (n - 1) / 2
        fitted = time * ((time @ off) / (time @ time))
        steps = ((b - a) * off[a:b].mean() ** 2 for a, b in itertools.pairwise(edges))
        if fitted @ fitted > sum(steps):
            line = off - fitted
            changes = [changes[0]._replace(drifts=True)]
            edges = [0, n]
    for i, (first, at, end) in enumerate(zip(edges, edges[1:], edges[2:], strict=False)):
        before = nights.take(first, at)
        after = nights.take(at, end)
        like = np.maximum(like, likeness(off_levels(before, [0, at - first])[0])[0])
        _, z, _ = second_look(before, after.take(-RECENT), EARLY_LOOK)
        least = min(least, abs(z))
        if end == n and not (z * changes[i].size > 0 and abs(z) > NO_LONGER):
            side = math.copysign(1.0, changes[i].size)
            beyond = side * second_look(before, after, EARLY_LOOK)[2] - abs(changes[i].size) / 2
            changes[i] = changes[i]._replace(ends=at + int(np.argmax(np.cumsum(beyond))) + 1)
            edges = sorted({*edges, changes[i].ends or n})
    apart = {}
    sd = math.nan
    if n >= LEAST_NIGHTS:
        # A change that is not yet shown must not pass for nights that are alike.
        parts = edges if changes else sorted({0, likeliest, n})
        off = off_levels(nights, parts)[0] if line is None else line
        like = np.maximum(like, likeness(off)[0])
        off, of_nights = off_levels(nights, edges, cut=False)
        apart = {int(at): off[at] for at in np.flatnonzero(np.abs(off) > OUTLIER)}
        sd = np.median(of_nights) if np.ptp(nights.x) > 0 else math.nan
    most = np.argmax(like)
    limit = TOO_ALIKE
    if any(one.ends is None for one in changes):
        limit = ALIKE_CLEAR if line is None and least > CLEAR else ALIKE_BEFORE
    return Series(changes, ALIKENESS[most] if like[most] > limit else "", apart, sd)


def seen_in_a_week(n: int, alpha: float) -> float:
    """Return the size, in standard deviations of a night, of a change that is found within seven
    nights in 8 of 10 cases, after n nights; NaN where none is. Fitted to simulations."""
    needed = -math.log(alpha)
    return 2.4 + 10 * needed / n if n >= 6.5 * needed else math.nan


def _first_change(nights: Nights, alpha: float, earlier: Nights) -> tuple[LevelChange | None, int]:
    """Return the first sure change, or else the first that was found, and where the likeliest
    begins; `earlier` are nights of the level before the last change."""
    step = _first_step(nights)
    if step is not None and len(earlier):
        again = second_look(earlier, nights.take(step.begins, step.found + 1), EARLY_LOOK)[1]
        # What leads back to the level before ends the last change and is none of its own.
        step = step if abs(again) > NO_LONGER else None
    if step is not None and step.begins <= _first_bet(_days(nights)):
        return step, step.begins
    found: LevelChange | None = None
    evidence, begins = log_evidence(nights)
    over = np.flatnonzero(evidence > -math.log(alpha))
    for last in map(int, [*over[:30], *over[30::7]]):  # a look that fails for a month is weekly
        if step is not None and last > step.found:
            break
        at = int(begins[last])
        if last == at or at < LEAST_BEFORE or (found is not None and at > found.begins + RECENT):
            continue
        before = nights.take(0, at)
        after = nights.take(at, last + 1)
        size, z, off = second_look(before, after, EARLY_LOOK)
        if abs(z) <= LEAST_Z or np.count_nonzero(off * size > 0) < 2:
            continue
        found = found or LevelChange(at, last, None, evidence[last], size)
        if abs(second_look(before, after, SURE_LOOK)[1]) > LEAST_Z:
            return found._replace(begins=at, sure=last, size=size), at
    if step is not None and found is not None:
        step = step._replace(found=found.found, log_evidence=found.log_evidence)
    return step or found, int(begins[-1])


def _first_step(nights: Nights) -> LevelChange | None:
    """Return the first clear step of the first nights, a week after it or later."""
    for last in range(LEAST_NIGHTS - 1, min(len(nights), STEPS_UNTIL)):
        at, size, z = _clearest_step(nights.take(0, last + 1))
        if abs(z) > LEAST_Z and last - at >= NIGHTS_AFTER - 1:
            return LevelChange(at, last, last, math.nan, size)
    return None


def _clearest_step(nights: Nights) -> tuple[int, float, float]:
    """Return where a step fits best, its size in standard deviations of a night, and the same over
    its standard error, with the long-run variance of what is off both levels."""
    n = len(nights)
    day = _days(nights)
    of_day = np.eye(day.max() + 1)[day]
    begins = np.arange(LEAST_BEFORE, n - 1)
    steps = (np.arange(n)[:, None] >= begins).astype(float)

    def within_days(columns: Floats, sd: Floats) -> Floats:
        weighed = of_day / sd[:, None]
        return columns - weighed @ np.linalg.lstsq(weighed, columns, rcond=None)[0]

    off, sd = off_levels(nights, [0, n])
    steps /= sd[:, None]
    step = within_days(steps, sd)
    # A step where the days of the week change has nothing left that these do not explain.
    left = (step**2).sum(axis=0)
    known = left > NOTHING_LEFT * (steps**2).sum(axis=0)
    fits = np.divide((off @ step) ** 2, left, out=np.zeros(len(left)), where=known)
    if not fits.any():
        return n, 0.0, 0.0
    best = int(np.argmax(fits))
    edges = [0, int(begins[best]), n]
    off, sd = off_levels(nights, edges, cut=False)
    # So few nights may seem nearly equal: no more than three of them are cut.
    reach = max(CLIP, np.sort(np.abs(off))[-4])
    far = off - np.clip(off, -reach, reach)
    values = (nights.x - np.median(nights.x)) / sd - far
    one = (np.arange(n) >= edges[1]) / sd
    value, one = within_days(np.column_stack([values, one]), sd).T
    size = (one @ value) / (one @ one)
    rest = value - size * one
    spread = max(1.0, rest @ rest / (n - of_day.shape[1] - 1))
    error = math.sqrt(_long_run(rest, SURE_LOOK) * spread / (one @ one))
    return edges[1], size / (np.median(sd) * math.sqrt(spread)), size / error


def _first_bet(day: np.ndarray) -> int:
    """Return how many nights the ranks begin with: three of each day of the week."""
    return 3 * (day.max() + 1) if day.any() else LEAST_BEFORE


@functools.cache
def _log_mean_bets(n: int) -> Floats:
    """Return ln of the mean of exp(δ z) over the normal scores of ranks 1..n."""
    z = np.array([normal_quantile((rank - 0.5) / n) for rank in range(1, n + 1)])
    return np.log(np.exp(SHIFTS[:, None] * z).mean(axis=1))


def _medians(values: Floats, group: np.ndarray) -> Floats:
    """Return the median of the group of every value."""
    in_order = values[np.lexsort((values, group))]
    size = np.bincount(group)
    first = np.cumsum(size) - size
    return ((in_order[first + (size - 1) // 2] + in_order[first + size // 2]) / 2)[group]


def _weighted_means(values: Floats, group: np.ndarray, weight: Floats) -> Floats:
    """Return the weighted mean of the group of every value."""
    total = np.maximum(np.bincount(group, weight), 1e-300)
    return (np.bincount(group, weight * values) / total)[group]


def _days(nights: Nights) -> np.ndarray:
    """Return codes 0.. of the days of the week that there are."""
    return np.unique(nights.day, return_inverse=True)[1]


def between(nights: Nights, off: Floats, spent: Floats | float) -> float:
    """Return τ² from distances of which the share `spent` is fitted."""
    squares = off**2 / (MEDIAN_OF_SQUARE * np.maximum(1 - spent, 0.25))
    return max(0.0, np.median(squares - nights.se**2))


def variances(nights: Nights, tau2: float) -> Floats:
    """Return s² + τ² of every night, and at least what rounding makes of equal values."""
    least = 1e-24 * np.square(nights.x).max() + 1e-300
    return np.maximum(nights.se**2 + tau2, least)


def _by_day(nights: Nights) -> tuple[Floats, float]:
    """Return the median of the day of the week of every night, and τ² around it."""
    day = _days(nights)
    middle = _medians(nights.x, day)
    return middle, between(nights, nights.x - middle, 1 / np.bincount(day)[day])


def log_evidence(nights: Nights) -> tuple[Floats, np.ndarray]:
    """Return ln of the evidence at every night, and the night at which the likeliest change until
    then begins."""
    n = len(nights)
    day = _days(nights)
    evidence = np.zeros(n)
    begins = np.zeros(n, np.int64)
    total = np.full(len(SHIFTS), -np.inf)
    best = np.zeros(len(SHIFTS))
    start = np.zeros(len(SHIFTS), np.int64)
    first = _first_bet(day)
    for last in range(first, n):
        seen = nights.take(0, last + 1)
        own = day[: last + 1]
        if last == first or last % 7 == 0:
            middle, tau2 = _by_day(seen)
            usual = np.full(day.max() + 1, np.median(seen.x))
            usual[own] = middle
            of_all = usual[day]
            variance = variances(nights, tau2)
            reach = CLIP * np.sqrt(variance)
            cut = np.clip(nights.x, of_all - reach, of_all + reach)
        weight = 1 / variance[: last + 1]
        since = last - first
        mean = _weighted_means(cut[: last + 1], own, weight)
        left = 1 - weight / np.bincount(own, weight)[own]
        r = (seen.x - mean) * np.sqrt(weight / np.maximum(left, 1e-9))
        below = r < r[-1] - 1e-9
        same = np.abs(r - r[-1]) < 1e-9
        rank = np.count_nonzero(below) + (np.count_nonzero(same) + 1) / 2
        won = SHIFTS * normal_quantile((rank - 0.5) / (last + 1)) - _log_mean_bets(last + 1)
        begun = math.log(HALF_OF_WEIGHT / ((HALF_OF_WEIGHT + since) * (HALF_OF_WEIGHT + since + 1)))
        total = np.logaddexp(total, begun) + won
        later = math.log(HALF_OF_WEIGHT / (HALF_OF_WEIGHT + since + 1))
        evidence[last] = np.logaddexp(np.logaddexp.reduce(total) - math.log(len(SHIFTS)), later)
        start[best <= 0] = last
        best = np.maximum(best, 0) + won
        begins[last] = start[best.argmax()]
    return evidence, begins


def off_levels(nights: Nights, edges: list[int], cut: bool = True) -> tuple[Floats, Floats]:
    """Return distances from levels between edges plus days of the week, in standard deviations,
    and these. With `cut`, far nights are clipped, and weighted means are taken off once more."""
    n = len(nights)
    part = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    day = _days(nights) if n >= LEAST_NIGHTS - 1 else np.zeros(n, np.int64)
    off = nights.x - np.median(nights.x)
    for group in (part, day, part, day):
        off = off - _medians(off, group)
    tau2 = between(nights, off, (day.max() + part.max()) / n)
    sd = np.sqrt(variances(nights, tau2))
    if cut:
        off = np.clip(off, -CLIP * sd, CLIP * sd)
        for group in (part, day, part, day, part):
            off = off - _weighted_means(off, group, sd**-2)
    return off / sd, sd


def likeness(off: Floats) -> tuple[Floats, float]:
    """Return correlations of nights at lag 1, at lag 7 and summed over lags 1 to 14, in standard
    errors; and the long-run variance over the variance (Bartlett)."""
    n = len(off)
    off = off - off.mean()
    squares = off @ off
    lags = min(LAGS, n // 4)
    if squares <= 0 or lags < 1:
        return np.zeros(3), 1.0
    r = np.array([off[lag:] @ off[:-lag] / squares + 1 / n for lag in range(1, lags + 1)])
    long_run = 1 + 2 * (1 - np.arange(1, lags + 1) / (lags + 1)) @ r
    week = r[6] if lags >= 7 else 0.0
    root = math.sqrt(n)
    return np.array([r[0] * root, week * root, r.sum() * root / math.sqrt(lags)]), long_run


def _long_run(off: Floats, more: float) -> float:
    """Return the long-run variance over the variance, `more` of its standard errors larger.

    Its error is that of 2 Σ w r, where each r has the variance 1/n and Bartlett's weights of 14
    lags have Σ w² = 4.5.
    """
    return max(1.0, likeness(off)[1] + more * 2 * math.sqrt(4.5 / len(off)))


def second_look(before: Nights, after: Nights, more: float) -> tuple[float, float, Floats]:
    """Return how far the nights after a change are off, in standard deviations, on average, over
    its standard error, and each.

    The long-run variance of the nights before is taken `more` of its standard errors larger.
    """
    n = len(before)
    m = len(after)
    off, _ = off_levels(before, [0, n])
    long_run = _long_run(off, more)
    middle, tau2 = _by_day(before)
    var = variances(before, tau2)
    reach = CLIP * np.sqrt(var)
    level = _weighted_means(
        np.clip(before.x, middle - reach, middle + reach), _days(before), 1 / var
    )
    of_day = dict(zip(before.day.tolist(), level.tolist(), strict=True))
    usual = np.median(before.x)
    gone = after.x - np.array([of_day.get(day, usual) for day in after.day.tolist()])
    off_by = np.clip(gone / np.sqrt(variances(after, tau2)), -2 * CLIP, 2 * CLIP)
    recent = off[-RECENT:] @ off[-RECENT:] / RECENT if n > 2 * RECENT else 0.0
    n_fitted = 7 if n >= LEAST_NIGHTS - 1 else 1  # fewer nights are off one level for all days
    spread = max(1.0, off @ off / (n - n_fitted), recent)
    of_after = (4 * spread + np.square(off_by - off_by.mean()).sum()) / (3 + m)
    fitted = max(1, 7 / min(m, 7)) / n
    error = math.sqrt(long_run * (max(spread, of_after) / m + spread * fitted))
    size = off_by.mean()
    return size, size / error, off_by

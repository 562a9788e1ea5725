"""How often a year of nights of one level is said to have changed, and how soon a change is found.

    python benchmarks/nights.py [--runs 300] [--only NAME ...] [--write]

A year is false in silence where a change is said without the words that it may be none (early,
drifts, back, nights that are alike). `--write` puts both tables on the page docs/history.md. The
exit code is 1 if more than 5 % of the years of a setting are false in silence.
"""

from __future__ import annotations

import argparse
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from recdf.stats.change_points import Nights, changes_of_level

PAGE = Path(__file__).parents[1] / "docs" / "history.md"
YEAR, MOST, SERIES = 365, 0.05, 4
DAY = np.arange(YEAR) % 7


def plain(draw):
    """Nights whose standard errors are not known."""
    return lambda rng: (draw(rng), 0.0)


def of_lists(counts, share=0.3):
    """Nights of a share over their lists, with their standard errors."""

    def draw(rng):
        n = counts(rng)
        found = rng.binomial(n, share) / n
        return found, np.sqrt(found * (1 - found) / n)

    return draw


def autoregressive(rng, lag, rho, share=1.0):
    """Nights of which a share of the variance is alike from one night to the `lag`-th next."""
    wave, steps = rng.normal(size=YEAR), rng.normal(size=YEAR) * np.sqrt(1 - rho**2)
    for night in range(lag, YEAR):
        wave[night] = rho * wave[night - lag] + steps[night]
    return np.sqrt(share) * wave + np.sqrt(1 - share) * rng.normal(size=YEAR)


def holidays(rng, n, size, length=1):
    nights = rng.normal(size=YEAR)
    for first in rng.choice(YEAR - length, n, replace=False):
        nights[first : first + length] += size * rng.choice([-1, 1])
    return nights


def some_nights(rng, kept):
    """A job that misses nights; those that ran have their own days of the week."""
    there = kept(rng)
    return rng.normal(size=YEAR)[there] + 0.5 * DAY[there], 0.0, DAY[there]


NULLS = {
    "heavy nights, t(3)": plain(lambda rng: rng.standard_t(3, YEAR)),
    "lognormal nights": plain(lambda rng: rng.lognormal(0, 1, YEAR)),
    "9,000 lists, from July 1,000": of_lists(
        lambda rng: np.where(np.arange(YEAR) < 180, 9000, 1000)
    ),
    "9,000 lists, 500 on weekends": of_lists(lambda rng: np.where(DAY < 5, 9000, 500)),
    "lognormal counts of lists": of_lists(lambda rng: rng.lognormal(8, 1, YEAR).astype(int) + 20),
    "1 hit in 500 of 2,000 lists": of_lists(lambda rng: np.full(YEAR, 2000), 0.002),
    "spread doubles in July": plain(
        lambda rng: rng.normal(size=YEAR) * np.where(np.arange(YEAR) < 180, 1, 2)
    ),
    "one outage of -8 sd": plain(lambda rng: rng.normal(size=YEAR) - 8 * (np.arange(YEAR) == 200)),
    "an outage of three nights": plain(lambda rng: holidays(rng, 1, 8, 3)),
    "ten holidays of 6 sd": plain(lambda rng: holidays(rng, 10, 6)),
    "alike from night to night, .5": plain(lambda rng: autoregressive(rng, 1, 0.5)),
    "slow waves, .95, a fifth of the variance": plain(
        lambda rng: autoregressive(rng, 1, 0.95, 0.2)
    ),
    "alike from week to week, .7": plain(lambda rng: autoregressive(rng, 7, 0.7)),
    "windows of 28 days": plain(
        lambda rng: np.convolve(rng.normal(size=YEAR + 27), np.ones(28) / 28, mode="valid")
    ),
    "drifts by 1 sd in the year": plain(lambda rng: rng.normal(size=YEAR) + np.arange(YEAR) / YEAR),
    "one night in ten is missing": lambda rng: some_nights(rng, lambda g: g.random(YEAR) > 0.1),
    "Monday to Friday": lambda rng: some_nights(rng, lambda g: DAY < 5),
    "normal nights": plain(lambda rng: rng.normal(size=YEAR)),
}
SIZES = (2.0, 2.7, 3.5, 5.0)
BEFORE, AFTER = 180, 45


def nights_of(values, se=0.0, day=DAY):
    return Nights(values, np.broadcast_to(np.asarray(se, float), values.shape), day)


def year(name, seed):
    """Of one year: whether a change was ever said, whether it has a warning, and whether it stands
    at the end without one."""
    found = changes_of_level(
        nights_of(*NULLS[name](np.random.default_rng([seed, *name.encode()]))), 0.05
    )
    sure = [one.sure is not None and one.ends is None and not one.drifts for one in found.changes]
    alike = bool(found.alike)
    return bool(sure), alike or not all(sure), any(sure) and not alike


def delay(size, seed):
    """Nights until a drop is found, and until it is a verdict."""
    rng = np.random.default_rng([seed, int(10 * size)])
    values = rng.normal(size=BEFORE + AFTER)
    values[BEFORE:] -= size
    found = changes_of_level(nights_of(values, day=DAY[: BEFORE + AFTER]), 0.05 / SERIES).changes
    at = found[0] if found else None
    early, sure = (None, None) if at is None else (at.found, at.sure)
    return [np.inf if one is None else one - BEFORE + 1 for one in (early, sure)]


def tables(given):
    lines = [
        "| a year of one level | change said | with a warning | in silence |",
        "|---|--:|--:|--:|",
    ]
    worst = 0.0
    with ProcessPoolExecutor(given.processes) as pool:
        for name in given.only or NULLS:
            shares = np.mean(list(pool.map(year, [name] * given.runs, range(given.runs))), axis=0)
            worst = max(worst, shares[2])
            lines.append(f"| {name} | " + " | ".join(f"{one:.3f}" for one in shares) + " |")
            print(lines[-1], flush=True)
        late = [
            "| drop, in standard deviations of a night | found after (median) | a verdict after "
            "(median) | nine of ten found within | found within a week |",
            "|---|---|---|---|---|",
        ]
        for size in () if given.only else SIZES:
            nights = np.array(list(pool.map(delay, [size] * given.runs, range(given.runs))))
            median = np.median(nights, axis=0)
            most = np.quantile(nights[:, 0], 0.9, method="inverted_cdf")
            week = np.mean(nights[:, 0] <= 7)
            late.append(
                f"| {size:g} | {median[0]:g} nights | {median[1]:g} nights | {most:g} nights | "
                f"{week:.0%} |"
            )
            print(late[-1], flush=True)
    return lines, late, worst


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--runs", type=int, default=300)
    asked.add_argument("--only", nargs="*", default=[])
    asked.add_argument("--processes", type=int, default=2)
    asked.add_argument("--write", action="store_true", help="put the tables on docs/history.md")
    given = asked.parse_args()
    *both, worst = tables(given)
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        for name, lines in zip(("years", "delays"), both, strict=True):
            put = f"<!-- {name} -->\n" + "\n".join(lines) + "\n<!-- end -->"
            text = re.sub(rf"<!-- {name} -->.*?<!-- end -->", lambda _: put, text, flags=re.S)  # noqa: B023
        PAGE.write_text(text, encoding="utf-8")
    return int(worst > MOST)


if __name__ == "__main__":
    sys.exit(main())

"""How often the 95 % intervals of experiments hold, and what the warnings say where they do not.

    python benchmarks/experiment_calibration.py [runs]

Without an effect, so that an interval holds if it covers 0. One row per setting: coverage of Welch's t, of the
permutation test and of Welch's t after a cap at the 99.9 % quantile of all users; share of the runs flagged as skewed.
Then clusters: coverage of the delta method and of the jackknife.
"""

from __future__ import annotations

import sys

import numpy as np

from recdf.stats import effects, permutation
from recdf.stats.arms import Sample, arm, effective_number, estimate_arm
from recdf.stats.moments import moments_of, skewness_of_means

N_SHUFFLED = 199


def payers(share, sigma):
    return lambda rng, n: (rng.random(n) < share) * rng.lognormal(0, sigma, n)


SKEWED = {
    "5 % payers, lognormal 1.5": payers(0.05, 1.5),
    "30 % payers, lognormal 1": payers(0.3, 1.0),
    "lognormal 1.5": payers(1.0, 1.5),
    "normal": lambda rng, n: rng.normal(size=n),
}
ARMS = [(1000, 1000), (1900, 100), (190, 10), (950, 50)]
CLUSTERS = {"equal": 0.0, "lognormal 1": 1.0, "lognormal 1.5": 1.5}


def holds(found):
    return bool(found.ci_low <= 0 <= found.ci_high)


def of_skewed_values(draw, n_c, n_t, runs, rng):
    """Coverage of the three intervals and the share of flagged runs."""
    counts = np.zeros(4)
    for run in range(runs):
        both = draw(rng, n_c + n_t)
        capped = np.minimum(both, np.quantile(both, 0.999))
        sides = both[:n_c], both[n_c:]
        shuffled = permutation.permuted_t(both[:, None], n_t, N_SHUFFLED, run)
        observed = permutation.observed_t(sides[0][:, None], sides[1][:, None])
        p = permutation.permutation_p(shuffled, observed, "two-sided")[0]
        constant = not (arm(sides[0]).var > 0 and arm(sides[1]).var > 0)
        counts += [
            constant or holds(effects.effect(arm(sides[0]), arm(sides[1]))),
            p > 0.05,
            constant or holds(effects.effect(arm(capped[:n_c]), arm(capped[n_c:]))),
            constant or abs(skewness_of_means(*map(moments_of, sides))) > 0.2,
        ]
    return counts / runs


def of_clusters(sigma, n, runs, rng):
    """Coverage of the delta method and the jackknife, and the median of the effective number of clusters."""
    counts, effective = np.zeros(2), []
    for _ in range(runs):
        sides = []
        for _ in range(2):
            size = np.maximum(1.0, np.floor(rng.lognormal(3, sigma, n)))
            sides.append(Sample(rng.normal(size=n) * size + rng.normal(size=n) * np.sqrt(size), size))
        effective.append(min(effective_number(side.den) for side in sides))
        counts += [
            holds(effects.effect(*(arm(s.num, s.den) for s in sides))),
            holds(effects.effect(*(estimate_arm(s, leave_out=True) for s in sides))),
        ]
    return [*counts / runs, np.median(effective)]


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rng = np.random.default_rng(0)
    print("| values | users | Welch | permutation | cap | flagged |\n|---|---|---|---|---|---|")
    for name, draw in SKEWED.items():
        for n_c, n_t in ARMS:
            found = of_skewed_values(draw, n_c, n_t, runs, rng)
            print(f"| {name} | {n_c:,} / {n_t:,} | " + " | ".join(f"{share:.3f}" for share in found) + " |")
    print("\n| cluster sizes | clusters per arm | effective | delta method | jackknife |\n|---|---|---|---|---|")
    for name, sigma in CLUSTERS.items():
        for n in (5, 10, 20, 40):
            delta, jackknife, effective = of_clusters(sigma, n, runs, rng)
            print(f"| {name} | {n} | {effective:.1f} | {delta:.3f} | {jackknife:.3f} |")


if __name__ == "__main__":
    main()

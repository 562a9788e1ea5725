"""How often experiments without an effect are called significant, and how often they are warned of.

    python benchmarks/calibration.py [--runs 2000] [--only clusters] [--seed 0] [--write]

Each setting draws experiments of which the truth is that nothing differs, and each method tests them at 5 %. A method
may reject more than 8 % of them only where at least 90 % of the runs have a warning, or a verdict that is withheld.
`--write` puts the table on the page docs/calibration.md. The exit code is 1 if a setting breaks the rule.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

import recdf as rd

PAGE = Path(__file__).parents[1] / "docs" / "calibration.md"
MOST, LEAST_WARNED = 0.08, 0.9
EQUAL = {"A": 1, "B": 1}


def arms(rng, n_a, n_b, **columns):
    """Rows of both arms in random order; the columns are drawn for all rows together, so that nothing differs."""
    variant = np.repeat(["A", "B"], [n_a, n_b])
    return pd.DataFrame({"user_id": np.arange(n_a + n_b), "variant": rng.permutation(variant), **columns})


def payers(rng, n, share=0.05, sigma=1.5):
    return (rng.random(n) < share) * rng.lognormal(0, sigma, n)


def values(draw, n_a=500, n_b=500):
    return lambda rng: arms(rng, n_a, n_b, y=draw(rng, n_a + n_b))


def normal(rng, n):
    return rng.normal(1, 1, n)


def lognormal(rng, n):
    return rng.lognormal(0, 1.5, n)


def rare(rng, n):
    return (rng.random(n) < 0.02).astype(float)


def missing(rng, unequal):
    data = arms(rng, 500, 500, y=normal(rng, 1000))
    lost = rng.random(1000) < np.where(unequal & (data["variant"] == "B") & (data["y"] < 1), 0.5, 0.2 * (not unequal))
    return data.assign(y=data["y"].mask(lost))


def clusters(rng, n, sigma=0.0):
    """Rows of n clusters per arm, whose sizes are lognormal; the rows of a cluster have a level in common."""
    size = np.maximum(1, np.floor(rng.lognormal(2, sigma, 2 * n))).astype(int)
    own = np.repeat(np.arange(2 * n), size)
    variant = rng.permutation(np.repeat(["A", "B"], n))[own]
    y = rng.normal(size=2 * n)[own] + rng.normal(size=len(own))
    return pd.DataFrame({"variant": variant, "household": own, "y": y, "row_id": rng.permutation(len(own))})


def ramp(rng, rows=1):
    """Half of the users come in a week with 5 % treatment, the others, who are worth more, in one with 50 %."""
    week = np.repeat([0, 1], 500)
    variant = np.where(rng.random(1000) < np.where(week == 0, 0.05, 0.5), "B", "A")
    level = rng.normal(size=1000) + week
    data = pd.DataFrame({"person": np.arange(1000), "variant": variant, "week": week, "level": level})
    data["day"] = pd.Timestamp("2026-11-02") + pd.to_timedelta(7 * week, unit="D")
    data = data.loc[np.repeat(np.arange(1000), rows)].reset_index(drop=True)
    return data.assign(y=data["level"] + rng.normal(size=len(data)))


def triggered(rng, broken):
    """Users who saw the tested page; where that is broken, the treatment brings light users to it."""
    n = 3000
    heavy = rng.random(n) < 0.4
    variant = np.where(rng.random(n) < 0.5, "B", "A")
    seen = rng.random(n) < np.where(heavy, 0.8, np.where((variant == "B") & broken, 0.5, 0.2))
    data = pd.DataFrame({"user_id": np.arange(n), "variant": variant, "y": rng.normal(size=n) + heavy})
    return data[seen].reset_index(drop=True)


def clicks(rng, n_a=500, n_b=500, sigma=0.5, bots=0):
    """Views and clicks of users with their own click rate; bots have thousands of views and no click."""
    n = n_a + n_b
    data = arms(rng, n_a, n_b, views=np.floor(rng.lognormal(1.5, sigma, n)) + 1.0)
    data["y"] = rng.binomial(data["views"].astype(int), rng.beta(1, 9, n)).astype(float)
    robots = rng.choice(n, bots, replace=False)
    data.loc[robots, ["views", "y"]] = np.column_stack([rng.pareto(1, bots) * 5000 + 5000, np.zeros(bots)])
    return data


def busy_bots(rng):
    y = rng.poisson(1, 2000).astype(float)
    robots = rng.choice(2000, 4, replace=False)
    y[robots] = rng.lognormal(6, 1, 4)
    return arms(rng, 1000, 1000, y=y)


def with_past(rng, n_a=500, n_b=500, gaps=0.0, skewed=False, late=False, several=1):
    n = n_a + n_b
    before = rng.normal(size=(several, n))
    level = before.sum(axis=0) + rng.normal(size=n)
    data = arms(rng, n_a, n_b, y=np.exp(level) if skewed else level)
    for i, own in enumerate(before):
        moved = 0.5 * (late & (data["variant"] == "B"))
        data[f"x{i}"] = np.where(rng.random(n) < gaps, np.nan, (np.exp(own) if skewed else own) + moved)
    return data


def models(rng, n, draw, lists=1):
    """Values of two models for the same lists; the differences have the mean 0."""
    user = np.repeat(np.arange(n), lists)
    base, d = rng.normal(size=n * lists), draw(rng, n)[user] + 0.3 * rng.normal(size=n * lists) * (lists > 1)
    frame = {"user_id": user, "list": np.arange(len(user))}
    return pd.concat([pd.DataFrame({**frame, "model": m, "y": base + s * d}) for m, s in (("a", 0), ("b", 1))])


def skewed_difference(rng, n):
    return payers(rng, n, 0.1, 1.0) - 0.1 * np.exp(0.5)


T, RATIO = {}, {"metrics": {"y": ("y", "views")}}
SKEW = {"t": T, "permutation": {"test": "permutation", "n_resamples": 199}, "cap 0.99": {"cap": {"y": 0.99}}}
SHARE = {"t": T, "proportion": {"test": "proportion"}}
CUPED = {"t": T, "cuped": {"covariates": "x0"}}
ALL_PAST = {"regression": {"covariates": ["x0", "x1", "x2"]}}
HOUSE = {"cluster": "household"}
PERSON = {"cluster": "person", "strata": "week"}
PAIRED = {"paired t": {"test": "t"}, "randomization": {"test": "randomization", "n_resamples": 999}}
KEY = ["user_id", "list"]

# Kind and setting → a function that draws it, and the methods with their arguments.
SETTINGS = {
    ("skew", "normal, 500/500"): (values(normal), {**SKEW, "bootstrap": {"test": "bootstrap", "n_resamples": 200}}),
    ("skew", "lognormal 1.5, 500/500"): (values(lognormal), SKEW),
    ("skew", "5 % payers, 1,000/1,000"): (values(payers, 1000, 1000), SKEW),
    ("skew", "2 % of ones, 500/500"): (values(rare), SHARE),
    ("imbalance", "normal, 950/50"): (values(normal, 950, 50), SKEW),
    ("imbalance", "lognormal 1.5, 950/50"): (values(lognormal, 950, 50), SKEW),
    ("imbalance", "5 % payers, 1,900/100"): (values(payers, 1900, 100), SKEW),
    ("imbalance", "2 % of ones, 950/50"): (values(rare, 950, 50), SHARE),
    ("missing", "a fifth, at random"): (lambda rng: missing(rng, False), {"t": {"nan": "drop"}}),
    ("missing", "low values of one arm"): (lambda rng: missing(rng, True), {"t": {"nan": "drop"}}),
    ("clusters", "40 per arm, equal"): (lambda rng: clusters(rng, 40), {"cluster": HOUSE, "rows": T}),
    ("clusters", "40 per arm, lognormal 1"): (lambda rng: clusters(rng, 40, 1.0), {"cluster": HOUSE, "rows": T}),
    ("clusters", "10 per arm, equal"): (lambda rng: clusters(rng, 10), {"cluster": HOUSE}),
    ("clusters", "10 per arm, lognormal 1.5"): (lambda rng: clusters(rng, 10, 1.5), {"cluster": HOUSE}),
    ("ramp-up", "5 %, then 50 %"): (ramp, {"t": T, "strata": {"strata": "week"}, "t, time_col": {"time_col": "day"}}),
    ("ramp-up", "rows of users"): (lambda rng: ramp(rng, 3), {"strata+cluster": PERSON, "rows": {"strata": "week"}}),
    ("triggering", "alike in both arms"): (lambda rng: triggered(rng, False), {"t": {"expected": EQUAL}}),
    ("triggering", "more light users"): (lambda rng: triggered(rng, True), {"t": {"expected": EQUAL}}),
    ("bots", "2 of 1,000 users, ratio"): (lambda rng: clicks(rng, bots=2), {"ratio": RATIO}),
    ("bots", "1 of 1,000 users, ratio"): (lambda rng: clicks(rng, bots=1), {"ratio": RATIO}),
    ("bots", "4 of 2,000 users, mean"): (busy_bots, SKEW),
    ("few units", "normal, 5/5"): (values(normal, 5, 5), {"t": T, "permutation": SKEW["permutation"]}),
    ("few units", "lognormal 1.5, 5/5"): (values(lognormal, 5, 5), {"t": T}),
    ("few units", "lognormal 1.5, 12/12"): (values(lognormal, 12, 12), {"t": T}),
    ("few units", "lognormal 1.5, 40/10"): (values(lognormal, 40, 10), {"t": T}),
    ("ratio", "lognormal 0.5 views"): (clicks, {"ratio": RATIO}),
    ("ratio", "lognormal 1.5 views"): (lambda rng: clicks(rng, sigma=1.5), {"ratio": RATIO}),
    ("ratio", "lognormal 1.5 views, 950/50"): (lambda rng: clicks(rng, 950, 50, 1.5), {"ratio": RATIO}),
    ("cuped", "normal"): (with_past, CUPED),
    ("cuped", "a fifth is missing"): (lambda rng: with_past(rng, gaps=0.2), CUPED),
    ("cuped", "lognormal, 950/50"): (lambda rng: with_past(rng, 950, 50, skewed=True), CUPED),
    ("cuped", "measured too late"): (lambda rng: with_past(rng, late=True), {"cuped": CUPED["cuped"]}),
    ("cuped", "three covariates, 40/40"): (lambda rng: with_past(rng, 40, 40, several=3), ALL_PAST),
    ("sequential", "normal, first look"): (values(normal, 100, 100), {"sequential": {"sequential_n": 1000}}),
    ("paired", "500 lists, normal"): (lambda rng: models(rng, 500, lambda r, n: r.normal(size=n)), PAIRED),
    ("paired", "500 lists, skewed"): (lambda rng: models(rng, 500, skewed_difference), PAIRED),
    ("paired", "15 lists, normal"): (lambda rng: models(rng, 15, lambda r, n: r.normal(size=n)), PAIRED),
    ("paired", "15 lists, skewed"): (lambda rng: models(rng, 15, skewed_difference), PAIRED),
    ("paired", "100 users with 5 lists"): (
        lambda rng: models(rng, 100, lambda r, n: r.normal(size=n), 5),
        {"paired t": {"test": "t", "user_col": KEY}, "paired t, lists": {"test": "t", "user_col": ["list"]}},
    ),
}  # fmt: skip


def compare(kind, data, given):
    """One row of a comparison, of two models or of two variants."""
    if kind == "paired":
        return rd.compare_models(data, "y", baseline="a", **{"user_col": KEY[:1], **given}).iloc[0]
    return rd.compare_variants(data, given.get("metrics", "y"), control="A", **{
        name: value for name, value in given.items() if name != "metrics"
    }).iloc[0]  # fmt: skip


def of_setting(kind, name, runs, seed):
    """Per method: shares of the runs that reject, that are warned of, and that reject without any warning."""
    draw, methods = SETTINGS[kind, name]
    found = {method: np.zeros(3) for method in methods}
    for run in range(runs):
        data = draw(np.random.default_rng([seed, run]))
        for method, given in methods.items():
            row = compare(kind, data, given)
            rejects = bool(row["p_value"] <= 0.05) or bool(row["ci_low"] > 0) or bool(row["ci_high"] < 0)
            warned = row["warning"] != "" or row["verdict"].startswith(("invalid", "check"))
            found[method] += [rejects, warned, rejects and not warned]
    return {method: counts / runs for method, counts in found.items()}


def table(kinds, runs, seed, processes):
    """All settings, as rows that are printed while they are made."""
    rows, chance = [], 2 * np.sqrt(MOST * (1 - MOST) / runs)
    chosen = [setting for setting in SETTINGS if not kinds or setting[0] in kinds]
    with ProcessPoolExecutor(processes, initializer=warnings.simplefilter, initargs=("ignore",)) as pool:
        waiting = [pool.submit(of_setting, *setting, runs, seed) for setting in chosen]
        for (kind, name), found in zip(chosen, waiting, strict=True):
            for method, (rejects, warned, quiet) in found.result().items():
                kept = rejects <= MOST + chance or warned >= LEAST_WARNED
                rows.append((kind, name, method, rejects, warned, quiet, kept))
                shown = f"{kind:11} {name:28} {method:15} {rejects:.3f} {warned:.3f} {quiet:.3f}"
                print(shown, "" if kept else "breaks the rule", flush=True)
    return rows


def as_page(rows, runs):
    """The text of the page."""
    lines = ["| | experiments without an effect | method | rejected | warned | rejected without a warning |"]
    lines += ["|---|---|---|--:|--:|--:|"]
    before = ""
    for kind, name, method, rejects, warned, quiet, _ in rows:
        first = "" if kind == before else kind
        lines.append(f"| {first} | {name} | {method} | {rejects:.3f} | {warned:.2f} | {quiet:.3f} |")
        before = kind
    text = (PAGE.read_text() if PAGE.exists() else "<!-- table -->\n<!-- end -->\n").split("<!-- table -->")
    end = text[1].split("<!-- end -->")[1]
    said = f"{runs:,} runs of each setting; the standard error of a share of 0.05 is {np.sqrt(0.05 * 0.95 / runs):.3f}."
    return f"{text[0]}<!-- table -->\n\n{said}\n\n" + "\n".join(lines) + f"\n\n<!-- end -->{end}"


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--runs", type=int, default=2000, help="experiments of each setting")
    asked.add_argument("--only", nargs="*", default=[], help="kinds of settings, such as clusters")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--processes", type=int, default=2)
    asked.add_argument("--write", action="store_true", help="put the table on docs/calibration.md")
    given = asked.parse_args()
    rows = table(given.only, given.runs, given.seed, given.processes)
    if given.write:
        PAGE.write_text(as_page(rows, given.runs))
    broken = [row for row in rows if not row[-1]]
    print(f"{len(broken)} of {len(rows)} rows break the rule")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())

"""How often experiments without an effect are called significant, and how often they are warned of.

    python benchmarks/calibration.py [--runs 2000] [--minutes 60] [--kept counts.json] [--write]

Each setting draws experiments of which the truth is that nothing differs, and each method tests
them at 5 %. A method may reject more than 8 % of them only where at least 90 % of the runs have a
warning, or a verdict that is withheld. `--write` puts the tables on docs/calibration.md
and docs/calibration_settings.md.
With `--minutes` no round of runs begins after that time, and with `--kept` a later call goes on
where this one ended. The exit code is 1 if a setting breaks the rule, or rejects more or less than
chance allows for a reason that is not known.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binom

sys.path.insert(0, str(Path(__file__).parents[1]))

import recdf as rd
from recdf.judge.verdict import codes_of, warnings_of

DOCS = Path(__file__).parents[1] / "docs"
MOST, LEAST_WARNED = 0.08, 0.9
# A share outside of what 5 % gives with this probability is not chance; all rows together pass it
# in 93 % of all seeds.
BAND, ROUND = 0.999, 100
EQUAL = {"A": 1, "B": 1}


def arms(rng, n_a, n_b, **columns):
    """Rows of both arms in random order; the columns are drawn for all rows together, so that
    nothing differs."""
    variant = np.repeat(["A", "B"], [n_a, n_b])
    return pd.DataFrame(
        {"user_id": np.arange(n_a + n_b), "variant": rng.permutation(variant), **columns}
    )


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
    lost = rng.random(1000) < np.where(
        unequal & (data["variant"] == "B") & (data["y"] < 1), 0.5, 0.2 * (not unequal)
    )
    return data.assign(y=data["y"].mask(lost))


def clusters(rng, n, sigma=0.0):
    """Rows of n clusters per arm, whose sizes are lognormal; the rows of a cluster have a level in
    common."""
    size = np.maximum(1, np.floor(rng.lognormal(2, sigma, 2 * n))).astype(int)
    own = np.repeat(np.arange(2 * n), size)
    variant = rng.permutation(np.repeat(["A", "B"], n))[own]
    y = rng.normal(size=2 * n)[own] + rng.normal(size=len(own))
    return pd.DataFrame(
        {"variant": variant, "household": own, "y": y, "row_id": rng.permutation(len(own))}
    )


def ramp(rng, rows=1):
    """Half of the users come in a week with 5 % treatment, the others, who are worth more, in one
    with 50 %."""
    week = np.repeat([0, 1], 500)
    variant = np.where(rng.random(1000) < np.where(week == 0, 0.05, 0.5), "B", "A")
    level = rng.normal(size=1000) + week
    data = pd.DataFrame(
        {"person": np.arange(1000), "variant": variant, "week": week, "level": level}
    )
    data["day"] = pd.Timestamp("2026-11-02") + pd.to_timedelta(7 * week, unit="D")
    data = data.loc[np.repeat(np.arange(1000), rows)].reset_index(drop=True)
    return data.assign(y=data["level"] + rng.normal(size=len(data)))


def triggered(rng, broken):
    """Users who saw the tested page; where that is broken, the treatment brings light users to
    it."""
    n = 3000
    heavy = rng.random(n) < 0.4
    variant = np.where(rng.random(n) < 0.5, "B", "A")
    seen = rng.random(n) < np.where(heavy, 0.8, np.where((variant == "B") & broken, 0.5, 0.2))
    data = pd.DataFrame(
        {"user_id": np.arange(n), "variant": variant, "y": rng.normal(size=n) + heavy}
    )
    return data[seen].reset_index(drop=True)


def clicks(rng, n_a=500, n_b=500, sigma=0.5, bots=0):
    """Views and clicks of users with their own click rate; bots have thousands of views and no
    click."""
    n = n_a + n_b
    data = arms(rng, n_a, n_b, views=np.floor(rng.lognormal(1.5, sigma, n)) + 1.0)
    data["y"] = rng.binomial(data["views"].astype(int), rng.beta(1, 9, n)).astype(float)
    robots = rng.choice(n, bots, replace=False)
    data.loc[robots, ["views", "y"]] = np.column_stack(
        [rng.pareto(1, bots) * 5000 + 5000, np.zeros(bots)]
    )
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
        data[f"x{i}"] = np.where(
            rng.random(n) < gaps, np.nan, (np.exp(own) if skewed else own) + moved
        )
    return data


def models(rng, n, draw, lists=1):
    """Values of two models for the same lists; the differences have the mean 0."""
    user = np.repeat(np.arange(n), lists)
    base, d = (
        rng.normal(size=n * lists),
        draw(rng, n)[user] + 0.3 * rng.normal(size=n * lists) * (lists > 1),
    )
    frame = {"user_id": user, "list": np.arange(len(user))}
    return pd.concat(
        [pd.DataFrame({**frame, "model": m, "y": base + s * d}) for m, s in (("a", 0), ("b", 1))]
    )


def requests(rng, n, unit=0):
    """Latencies of the requests of n users, who have a level of their own, perhaps rounded; each
    user is in one variant."""
    user = np.repeat(np.arange(n), rng.poisson(9, n) + 1)
    variant = np.where(rng.random(n) < 0.5, "B", "A")[user]
    y = np.exp(rng.normal(size=n)[user] + rng.normal(size=len(user)))
    y = np.round(y / unit) * unit if unit else y
    return pd.DataFrame({"person": user, "variant": variant, "y": y})


def two_models(base, change, **columns):
    """Values of ndcg@10 of two models on the same lists."""
    frame = pd.DataFrame({"user_id": np.arange(len(base)), **columns})
    sides = (("a", base), ("b", np.clip(base + change, 0, 1)))
    return pd.concat([frame.assign(model=name, **{"ndcg@10": y}) for name, y in sides])


def rare_losses(rng, n, share, size, lists=1, true=0.0):
    """A few users lose much, the others gain a little, so that the true difference is `true`."""
    few = rng.random(n) < share
    gain = (share * size + true) / (1 - share)
    change = np.repeat(np.where(few, -size, 2 * gain * rng.random(n)), lists)
    base = np.where(change < 0, size, 0.4)
    user = np.repeat(np.arange(n), lists)
    return two_models(base, change, user_id=user, list=np.arange(n * lists))


def losing_arm(rng, n, share=0.01, std=0.01):
    """Two arms of n users whose mean is the same: the treatment takes all from a few, and gives
    the others a little."""
    frame = arms(rng, n, n, **{"ndcg@10": rng.normal(0.5, std, 2 * n)})
    b = frame["variant"] == "B"
    lost = b & (rng.random(2 * n) < share)
    gained = frame["ndcg@10"] + b * 0.5 * share / (1 - share)
    return frame.assign(**{"ndcg@10": gained.mask(lost, 0.0).clip(0, 1)})


def slow_arm(rng, n):
    """Two arms of n users whose mean is the same: 1 % of the requests of the treatment take 30
    seconds, and the others a little less than those of the control."""
    frame = arms(rng, n, n, seconds=rng.normal(2, 0.2, 2 * n))
    b = frame["variant"] == "B"
    slow = b & (rng.random(2 * n) < 0.01)
    return frame.assign(seconds=(frame["seconds"] - b * 28 * 0.01 / 0.99).mask(slow, 30.0))


def heavy_ratio(rng, n):
    """Two arms of n users with one share of clicks: the treatment takes clicks from the users with
    the most views."""
    heavy, views, gain = heavy_share(rng, 2 * n)
    frame = arms(rng, n, n, views=views)
    rate = 0.5 + (frame["variant"] == "B") * np.where(heavy, -0.3, gain)
    return frame.assign(clicks=views * (rate + rng.normal(0, 0.1, 2 * n)))


def heavy_share(rng, n):
    """Which users have 40 lists each (0.8 %), how many lists each user has, and what the others
    must gain where those lose 0.3."""
    heavy = rng.random(n) < 0.008
    gain = 0.3 * 0.008 * 40 / (0.992 * 3)
    return heavy, np.where(heavy, 40, 1 + rng.poisson(2, n)), gain


def heavy_losses(rng, n):
    """Two models whose mean over all lists is the same: the users with the most lists lose."""
    heavy, lists, gain = heavy_share(rng, n)
    user = np.repeat(np.arange(n), lists)
    change = np.where(heavy, -0.3, 2 * gain * rng.random(n))[user]
    return two_models(np.full(len(user), 0.5), change, user_id=user, list=np.arange(len(user)))


def heavy_arm(rng, n):
    """Two arms of n users whose mean over all lists is the same: the treatment takes from the users
    with the most lists."""
    heavy, lists, gain = heavy_share(rng, 2 * n)
    frame = arms(rng, n, n, lists=lists, **{"ndcg@10": rng.normal(0.5, 0.1, 2 * n)})
    change = (frame["variant"] == "B") * np.where(heavy, -0.3, gain)
    return frame.assign(**{"ndcg@10": (frame["ndcg@10"] + change).clip(0, 1)})


def heavy_labels(rng, n, many=1500):
    """All lists of n users with labels of people, and of many with those of a judge, who misses
    what the users with the most lists lose; and the true mean."""
    heavy, lists, _ = heavy_share(rng, many)
    user = np.repeat(np.arange(many), lists)
    judge = np.clip(rng.normal(0.5, 0.1, many)[user], 0, 1)
    y = np.where(heavy[user], judge - 0.3, judge).clip(0, 1)
    cheap = pd.DataFrame({"user_id": user, "list": np.arange(len(user)), "ndcg@10": judge})
    return cheap.assign(**{"ndcg@10": y})[user < n], cheap, y.mean()


def few_labels(rng, n, draw, many=1500):
    """Labels of people on n lists and of a judge on many, and the true mean."""
    y, judge, mean = draw(rng, many)
    cheap = pd.DataFrame({"user_id": np.arange(many), "ndcg@10": judge})
    return cheap.assign(**{"ndcg@10": y}).head(n), cheap, mean


def hits_missed(rng, n, share=0.1):
    y = (rng.random(n) < 0.3).astype(float)
    return y, y * (rng.random(n) > share), 0.3


def nearly_all_hits(rng, n):
    y = (rng.random(n) < 0.97).astype(float)
    return y, np.where(rng.random(n) < 0.5, y, 1.0), 0.97


def far_off(rng, n):
    y = rng.beta(2, 3, n)
    return y, np.where(rng.random(n) < 0.03, 1.0, y), 0.4


def useless(rng, n):
    return rng.beta(2, 3, n), rng.random(n), 0.4


def pareto_lists(rng, n, heavy_loss):
    """Numbers of lists with a Pareto tail; the heaviest users of the population lose. The
    candidate has lost exactly the budget of 0.02."""
    population = np.minimum(np.floor(rng.pareto(1.5, 50 * n) + 1), 2000)
    rank = np.argsort(np.argsort(population, kind="stable"), kind="stable") / len(population)
    worse = rank >= 1 - heavy_loss
    share = population[worse].sum() / population.sum()
    gain = (0.5 * share - 0.02) / (1 - share)
    own = rng.choice(50 * n, n, replace=False)
    change = np.where(worse[own], -0.5, gain * (1 + 0.2 * rng.normal(size=n)))
    base = pd.DataFrame({"user_id": own, "n": population[own], "ndcg@10": 0.5})
    users = pd.DataFrame({"user_id": np.arange(50 * n), "n": population})
    return base.assign(**{"ndcg@10": 0.5 + change}), base, users


def timeouts(rng, n):
    """1 % of the requests time out after 30 seconds, which is more than the budget of 0.2."""
    base = rng.gamma(4, 0.2, n)
    late = rng.random(n) < 0.01
    frame = pd.DataFrame({"user_id": np.arange(n), "seconds": base})
    return frame.assign(seconds=np.where(late, 30.0, base + 0.02 * rng.random(n))), frame, None


def counts(rng, n):
    return rng.poisson(2, n).astype(float)


def slow_path(share):
    """Latencies around 100 ms, a share of which takes ten times as long."""
    return lambda rng, n: np.where(rng.random(n) < share, 1000.0, 100.0) + rng.normal(0, 10, n)


def prices(rng, n):
    return rng.choice([4.99, 9.99, 19.99, 49.99], n, p=[0.2, 0.3, 0.4, 0.1])


def rounded(rng, n):
    return np.round(rng.lognormal(4, 0.7, n), -1)


def thin_week(rng, share, p):
    """Zeros and ones of two weeks of 1,000 users; in the first one few of them are treated."""
    week = np.repeat([0, 1], 1000)
    variant = np.where(rng.random(2000) < np.where(week == 0, share, 0.5), "B", "A")
    y = (rng.random(2000) < np.where(week == 0, *p)).astype(float)
    return pd.DataFrame({"user_id": np.arange(2000), "variant": variant, "week": week, "y": y})


def thin_clicks(rng, share):
    """The same weeks with clicks and views, of which few cells of the first week have a click."""
    data = thin_week(rng, share, (0, 0)).assign(views=rng.poisson(5, 2000) + 1.0)
    return data.assign(y=rng.binomial(data["views"].astype(int), 0.02).astype(float))


def views_lost(rng, n, lost=0.04):
    """Clicks are alike; the treatment does not log some of the views without a click."""
    data = arms(rng, n // 2, n // 2, views=rng.poisson(20 * rng.lognormal(0, 0.8, n)) + 1.0)
    data["y"] = rng.binomial(data["views"].astype(int), 0.1).astype(float)
    gone = rng.binomial((data["views"] - data["y"]).astype(int), lost)
    return data.assign(views=data["views"] - gone * (data["variant"] == "B"))


def stores(rng, n, unknown=0, crossed=0):
    """Users of 120 stores, which were assigned as wholes."""
    store, of_store = rng.integers(0, 120, n), rng.random(120) < 0.5
    treated = of_store[store] ^ (np.arange(n) < crossed)
    y = rng.normal(size=n) + 0.25 * rng.normal(size=120)[store]
    data = {"user_id": np.arange(n), "variant": np.where(treated, "B", "A"), "y": y}
    return pd.DataFrame({**data, "store": np.where(np.arange(n) < unknown, np.nan, store)})


def brought(rng, n, share, heavy=False):
    """The treatment brings users to the page who are as light as the lightest third, or as heavy as
    the heaviest, and all users."""
    activity, seen = rng.gamma(1, 1, n), rng.random(n) < 0.4
    data = arms(rng, n // 2, n // 2, y=rng.poisson(3 * activity).astype(float))
    like = activity > np.quantile(activity, 0.7) if heavy else activity < np.quantile(activity, 0.3)
    exposed = seen | (like & (data["variant"] == "B") & (rng.random(n) < share))
    return data[exposed].reset_index(drop=True), data[["user_id", "variant"]]


def moved_past(rng, n, shift=0.1):
    """Two values from before, of which the first was logged higher in the treatment."""
    level = rng.normal(size=n)
    data = arms(rng, n // 2, n // 2, y=level + 0.7 * rng.normal(size=n))
    past = {f"x{i}": level + 0.5 * rng.normal(size=n) for i in range(2)}
    data = data.assign(**past)
    return data.assign(x0=data["x0"] + shift * data["x0"].std() * (data["variant"] == "B"))


def skewed_difference(rng, n):
    return payers(rng, n, 0.1, 1.0) - 0.1 * np.exp(0.5)


T, RATIO = {}, {"metrics": {"y": ("y", "views")}}
SKEW = {
    "t": T,
    "permutation": {"test": "permutation", "n_resamples": 199},
    "cap 0.99": {"cap": {"y": 0.99}},
}
SHARE = {"t": T, "proportion": {"test": "proportion"}}
CUPED = {"t": T, "cuped": {"covariates": "x0"}}
ALL_PAST = {"regression": {"covariates": ["x0", "x1", "x2"]}}
HOUSE = {"cluster": "household"}
PERSON = {"cluster": "person", "strata": "week"}
PAIRED = {"paired t": {"test": "t"}, "randomization": {"test": "randomization", "n_resamples": 999}}
KEY = ["user_id", "list"]
P50, P95, P99 = ({f"p{100 * p:g}": {"quantiles": p}} for p in (0.5, 0.95, 0.99))
QUANTILES = {**P50, "p90": {"quantiles": 0.9}}
REQUESTS = {name: {**one, "cluster": "person"} for name, one in {**QUANTILES, **P99}.items()}
PARTS = {"total": {"part": 0}, "share above 0": {"part": 1}, "mean above 0": {"part": 2}}

# Kinds of settings whose trouble is not in the sample; they have a table of their own.
UNKIND = ("rare losses", "losing arm", "few labels", "gate")
GATES = ("Pareto lists, n = 1,000", "time-outs, n = 60", "time-outs, n = 300")
LOST = {name: {"test": name, "n_resamples": 199} for name in ("t", "randomization", "bootstrap")}
NDCG = {"t": {"metrics": "ndcg@10", "expected": EQUAL}}
SLOW = {"t": {"metrics": "seconds", "expected": EQUAL, "smaller_is_better": "seconds"}}
GATE = {"budgets": {"ndcg@10": -0.02}, "weight_col": "n"}
SECONDS = {"budgets": {"seconds": 0.2}, "smaller_is_better": "seconds"}

# Why a setting, or a method in a kind of settings, rejects more or less than 5 %: the reader finds
# it on the page.
UNEQUAL_ARMS = {"more": "the small arm's mean is skewed, so t is too"}
PEERS = {"more": "rows of one user or household are taken for independent"}
SAFE_SKEW = {"less": "one large value makes both the difference and its error"}
STEPS = {"less": "the ends of an interval are values that there are"}
OTHER_USERS = {"more": "the variants hold other users: what is compared differs"}
SKEWED_LISTS = {"more": "the difference of a list is skewed, so t is too"}
EXACT = {"less": "exact for counts, of which few are possible"}
UNSEEN = {"more": "the sample often holds none of the few who lose"}
ALLOWED = {"less": "it allows for one list more at a bound"}
# What no rule sees wholly: a shift of about one standard error.
SEEN_IN_PART = (
    "10 % heavy users, n = 8,000",
    "6 % light users brought",
    "10 % light users, n = 8,000",
    "covariate moved by 0.1 sd",
)
TRAPS = {
    "4 % of views lost, 8,000 users": "fewer views for the same clicks",
    "stores assigned whole": "users of a store are taken for independent",
    "one store unknown, one user crossed": "users of a store are taken for independent",
    "stores, 8 % crossed": "users of a store are taken for independent",
    "2% ramp, clicks over views": "a thin week without a click looks sure",
    "10 % light users, n = 8,000": "the variants hold other users: what is compared differs",
    "10 % heavy users, n = 8,000": "the variants hold other users: what is compared differs",
    "6 % light users brought": "the variants hold other users: what is compared differs",
    "covariate moved by 0.1 sd": "a shift of this size is seen in a third of the runs alone",
}
WHY = {
    **{("traps", name): {"more": reason} for name, reason in TRAPS.items()},
    **{("rare losses", method): UNSEEN for method in LOST},
    **{("losing arm", method): UNSEEN for method in ("t", "ratio")},
    ("few labels", "both"): ALLOWED,
    ("few labels", "0.8 % with 40 lists, n = 60"): UNSEEN,
    **{("gate", name): {"less": "the bound holds for every n"} for name in GATES},
    ("skew", "proportion"): EXACT,
    ("imbalance", "proportion"): EXACT,
    ("skew", "t"): SAFE_SKEW,
    ("skew", "permutation"): SAFE_SKEW,
    ("few units", "t"): SAFE_SKEW,
    ("imbalance", "2 % of ones, 950/50", "t"): {
        "less": "the small arm expects one user with a 1, and often has none"
    },
    ("imbalance", "t"): UNEQUAL_ARMS,
    ("imbalance", "cap 0.99"): UNEQUAL_ARMS,
    ("few units", "lognormal 1.5, 40/10", "t"): UNEQUAL_ARMS,
    ("cuped", "lognormal, 950/50"): UNEQUAL_ARMS,
    ("ratio", "lognormal 1.5 views, 950/50"): UNEQUAL_ARMS,
    ("zero-inflated", "5 % payers, 1,900/100"): UNEQUAL_ARMS,
    ("zero-inflated", "5 % payers, 1,000/1,000"): SAFE_SKEW,
    ("zero-inflated", "30 % payers, 500/500"): SAFE_SKEW,
    ("missing", "low values of one arm"): OTHER_USERS,
    ("ramp-up", "5 %, then 50 %"): OTHER_USERS,
    ("triggering", "more light users"): OTHER_USERS,
    ("clusters", "rows"): PEERS,
    ("ramp-up", "rows"): PEERS,
    ("paired", "paired t, lists"): PEERS,
    ("clusters", "cluster"): {
        "less": "the jackknife is cautious with few clusters, or unequal ones"
    },
    ("bots", "ratio"): {"more": "the arm of the largest bot has the lower click rate"},
    ("bots", "t"): SAFE_SKEW,
    ("bots", "permutation"): SAFE_SKEW,
    ("bots", "cap 0.99"): SAFE_SKEW,
    ("ratio", "ratio"): {
        "less": "one large user makes both the difference and its error",
        **UNEQUAL_ARMS,
    },
    ("cuped", "measured too late"): {"more": "the covariate has moved with the treatment"},
    ("sequential", "sequential"): {"less": "the interval holds at all looks, of which this is one"},
    ("paired", "15 lists, skewed"): SKEWED_LISTS,
    ("paired", "500 lists, skewed"): SKEWED_LISTS,
    **{("quantiles", of): STEPS for of in ("p50", "p90", "p95", "p99")},
}

# Kind and setting → a function that draws it, and the methods with their arguments.
SETTINGS = {
    ("rare losses", "1 % lose 0.9, 100 lists"): (lambda r: rare_losses(r, 100, 0.01, 0.9), LOST),
    ("rare losses", "2 % lose 0.8, 60 lists"): (
        lambda r: rare_losses(r, 60, 0.02, 0.8),
        {"t": LOST["t"]},
    ),
    ("rare losses", "2 % lose 0.8, 300 lists"): (
        lambda r: rare_losses(r, 300, 0.02, 0.8),
        {"t": LOST["t"]},
    ),
    ("rare losses", "100 users with 3 lists"): (
        lambda r: rare_losses(r, 100, 0.02, 0.8, lists=3),
        {"t": {"user_col": ["user_id", "list"]}},
    ),
    ("rare losses", "0.8 % with 40 lists, 200 users"): (
        lambda r: heavy_losses(r, 200),
        {"t": {"user_col": ["user_id", "list"]}},
    ),
    ("rare losses", "equivalent by 0.02, 60 lists"): (
        lambda r: rare_losses(r, 60, 0.03, 0.9, true=-0.02),
        {"t": {"margin": 0.02}},
    ),
    ("losing arm", "1 % lose all, 60 users"): (lambda r: losing_arm(r, 60), NDCG),
    ("losing arm", "1 % lose all, 300 users"): (lambda r: losing_arm(r, 300), NDCG),
    ("losing arm", "0.8 % with 40 lists, 200 users"): (
        lambda r: heavy_arm(r, 200),
        {"t": {**NDCG["t"], "weight_col": "lists"}},
    ),
    ("losing arm", "1 % take 30 s, 60 users"): (lambda r: slow_arm(r, 60), SLOW),
    ("losing arm", "1 % take 30 s, 200 users"): (lambda r: slow_arm(r, 200), SLOW),
    ("losing arm", "0.8 % with 40 views, 100 users"): (
        lambda r: heavy_ratio(r, 100),
        {"ratio": {"metrics": {"ctr": ("clicks", "views")}, "expected": EQUAL}},
    ),
    ("few labels", "0.8 % with 40 lists, n = 60"): (
        lambda r: heavy_labels(r, 60),
        {"both": {"user_col": ["user_id", "list"]}},
    ),
    ("few labels", "judge misses 10 %, n = 60"): (
        lambda r: few_labels(r, 60, hits_missed),
        {"both": {}},
    ),
    ("few labels", "97 % hits, n = 30"): (
        lambda r: few_labels(r, 30, nearly_all_hits),
        {"both": {}},
    ),
    ("few labels", "97 % hits, n = 100"): (
        lambda r: few_labels(r, 100, nearly_all_hits),
        {"both": {}},
    ),
    ("few labels", "3 % far off, n = 60"): (lambda r: few_labels(r, 60, far_off), {"both": {}}),
    ("few labels", "3 % far off, n = 300"): (lambda r: few_labels(r, 300, far_off), {"both": {}}),
    ("few labels", "useless judge, n = 100"): (
        lambda r: few_labels(r, 100, useless),
        {"both": {}},
    ),
    ("gate", "Pareto lists, n = 1,000"): (
        lambda r: pareto_lists(r, 1000, 0.0005),
        {"gate": GATE, "gate, users=": {**GATE, "users": True}},
    ),
    ("gate", "time-outs, n = 60"): (
        lambda r: timeouts(r, 60),
        {"gate": SECONDS, "gate, bounds=": {**SECONDS, "bounds": {"seconds": (0, 30)}}},
    ),
    ("gate", "time-outs, n = 300"): (
        lambda r: timeouts(r, 300),
        {"gate, bounds=": {**SECONDS, "bounds": {"seconds": (0, 30)}}},
    ),
    **{
        ("traps", f"{share:.0%} ramp, {p[0]:.0%} and {p[1]:.0%} of ones"): (
            lambda r, share=share, p=p: thin_week(r, share, p),
            {"strata": {"strata": "week", "time_col": "week"}},
        )
        for share in (0.02, 0.05)
        for p in ((0.02, 0.02), (0.05, 0.1), (0.02, 0.2))
    },
    ("traps", "2% ramp, clicks over views"): (
        lambda r: thin_clicks(r, 0.02),
        {"strata": {**RATIO, "strata": "week", "time_col": "week"}},
    ),
    ("traps", "4 % of views lost, 8,000 users"): (lambda r: views_lost(r, 8000), {"ratio": RATIO}),
    ("traps", "stores assigned whole"): (lambda r: stores(r, 4000), {"t": T}),
    ("traps", "one store unknown, one user crossed"): (
        lambda r: stores(r, 4000, 1, 1),
        {"t": T},
    ),
    ("traps", "stores, 8 % crossed"): (
        lambda r: stores(r, 4000, 0, 320),
        {"t": T},
    ),
    ("traps", "6 % light users brought"): (
        lambda r: brought(r, 20_000, 0.08),
        {"health=": T},
    ),
    ("traps", "10 % light users, n = 8,000"): (
        lambda r: brought(r, 8_000, 0.13),
        {"health=": T},
    ),
    ("traps", "10 % heavy users, n = 8,000"): (
        lambda r: brought(r, 8_000, 0.13, heavy=True),
        {"health=": T},
    ),
    ("traps", "covariate moved by 0.1 sd"): (
        lambda r: moved_past(r, 2000),
        {"one": {"covariates": "x0"}, "two": {"covariates": ["x0", "x1"]}},
    ),
    ("skew", "normal, 500/500"): (
        values(normal),
        {**SKEW, "bootstrap": {"test": "bootstrap", "n_resamples": 200}},
    ),
    ("skew", "lognormal 1.5, 500/500"): (values(lognormal), SKEW),
    ("skew", "5 % payers, 1,000/1,000"): (values(payers, 1000, 1000), SKEW),
    ("skew", "2 % of ones, 500/500"): (values(rare), SHARE),
    ("imbalance", "normal, 950/50"): (values(normal, 950, 50), SKEW),
    ("imbalance", "lognormal 1.5, 950/50"): (values(lognormal, 950, 50), SKEW),
    ("imbalance", "5 % payers, 1,900/100"): (values(payers, 1900, 100), SKEW),
    ("imbalance", "2 % of ones, 950/50"): (values(rare, 950, 50), SHARE),
    ("missing", "a fifth, at random"): (lambda rng: missing(rng, False), {"t": {"nan": "drop"}}),
    ("missing", "low values of one arm"): (lambda rng: missing(rng, True), {"t": {"nan": "drop"}}),
    ("clusters", "40 per arm, equal"): (
        lambda rng: clusters(rng, 40),
        {"cluster": HOUSE, "rows": T},
    ),
    ("clusters", "40 per arm, lognormal 1"): (
        lambda rng: clusters(rng, 40, 1.0),
        {"cluster": HOUSE, "rows": T},
    ),
    ("clusters", "10 per arm, equal"): (lambda rng: clusters(rng, 10), {"cluster": HOUSE}),
    ("clusters", "10 per arm, lognormal 1.5"): (
        lambda rng: clusters(rng, 10, 1.5),
        {"cluster": HOUSE},
    ),
    ("ramp-up", "5 %, then 50 %"): (
        ramp,
        {"t": T, "strata": {"strata": "week"}, "t, time_col": {"time_col": "day"}},
    ),
    ("ramp-up", "rows of users"): (
        lambda rng: ramp(rng, 3),
        {"strata+cluster": PERSON, "rows": {"strata": "week"}},
    ),
    ("triggering", "alike in both arms"): (
        lambda rng: triggered(rng, False),
        {"t": {"expected": EQUAL}},
    ),
    ("triggering", "more light users"): (
        lambda rng: triggered(rng, True),
        {"t": {"expected": EQUAL}},
    ),
    ("bots", "2 of 1,000 users, ratio"): (lambda rng: clicks(rng, bots=2), {"ratio": RATIO}),
    ("bots", "1 of 1,000 users, ratio"): (lambda rng: clicks(rng, bots=1), {"ratio": RATIO}),
    ("bots", "4 of 2,000 users, mean"): (busy_bots, SKEW),
    ("few units", "normal, 5/5"): (
        values(normal, 5, 5),
        {"t": T, "permutation": SKEW["permutation"]},
    ),
    ("few units", "lognormal 1.5, 5/5"): (values(lognormal, 5, 5), {"t": T}),
    ("few units", "lognormal 1.5, 12/12"): (values(lognormal, 12, 12), {"t": T}),
    ("few units", "lognormal 1.5, 40/10"): (values(lognormal, 40, 10), {"t": T}),
    ("ratio", "lognormal 0.5 views"): (clicks, {"ratio": RATIO}),
    ("ratio", "lognormal 1.5 views"): (lambda rng: clicks(rng, sigma=1.5), {"ratio": RATIO}),
    ("ratio", "lognormal 1.5 views, 950/50"): (
        lambda rng: clicks(rng, 950, 50, 1.5),
        {"ratio": RATIO},
    ),
    ("cuped", "normal"): (with_past, CUPED),
    ("cuped", "a fifth is missing"): (lambda rng: with_past(rng, gaps=0.2), CUPED),
    ("cuped", "lognormal, 950/50"): (lambda rng: with_past(rng, 950, 50, skewed=True), CUPED),
    ("cuped", "measured too late"): (
        lambda rng: with_past(rng, late=True),
        {"cuped": CUPED["cuped"]},
    ),
    ("cuped", "three covariates, 40/40"): (lambda rng: with_past(rng, 40, 40, several=3), ALL_PAST),
    ("sequential", "normal, first look"): (
        values(normal, 100, 100),
        {"sequential": {"sequential_n": 1000}},
    ),
    ("paired", "500 lists, normal"): (
        lambda rng: models(rng, 500, lambda r, n: r.normal(size=n)),
        PAIRED,
    ),
    ("paired", "500 lists, skewed"): (lambda rng: models(rng, 500, skewed_difference), PAIRED),
    ("paired", "15 lists, normal"): (
        lambda rng: models(rng, 15, lambda r, n: r.normal(size=n)),
        PAIRED,
    ),
    ("paired", "15 lists, skewed"): (lambda rng: models(rng, 15, skewed_difference), PAIRED),
    ("paired", "100 users with 5 lists"): (
        lambda rng: models(rng, 100, lambda r, n: r.normal(size=n), 5),
        {
            "paired t": {"test": "t", "user_col": KEY},
            "paired t, lists": {"test": "t", "user_col": ["list"]},
        },
    ),
    ("quantiles", "5 % slow path, 1,000/1,000"): (values(slow_path(0.05), 1000, 1000), P95),
    ("quantiles", "5 % slow path, 1,900/100"): (values(slow_path(0.05), 1900, 100), P95),
    ("quantiles", "1 % slow path, 5,000/5,000"): (values(slow_path(0.01), 5000, 5000), P99),
    ("quantiles", "half cache hits, 500/500"): (values(slow_path(0.5)), P50),
    ("quantiles", "half cache hits, 950/50"): (values(slow_path(0.5), 950, 50), P50),
    ("quantiles", "price points, 500/500"): (values(prices), P50),
    ("quantiles", "rounded to 10 ms, 200/200"): (values(rounded, 200, 200), {**P50, **P95}),
    ("quantiles", "rounded requests of 400 users"): (lambda rng: requests(rng, 400, 0.5), REQUESTS),
    ("quantiles", "normal, 100/100"): (values(normal, 100, 100), P99),
    ("quantiles", "normal, 950/50"): (values(normal, 950, 50), P99),
    ("quantiles", "lognormal 1.5, 500/500"): (values(lognormal), {**QUANTILES, **P99}),
    ("quantiles", "lognormal 1.5, 950/50"): (values(lognormal, 950, 50), QUANTILES),
    ("quantiles", "5 % payers, 1,000/1,000"): (values(payers, 1000, 1000), QUANTILES),
    ("quantiles", "counts, 500/500"): (values(counts), QUANTILES),
    ("quantiles", "requests of 400 users"): (lambda rng: requests(rng, 400), REQUESTS),
    ("zero-inflated", "5 % payers, 1,000/1,000"): (values(payers, 1000, 1000), PARTS),
    ("zero-inflated", "30 % payers, 500/500"): (values(lambda rng, n: payers(rng, n, 0.3)), PARTS),
    ("zero-inflated", "5 % payers, 1,900/100"): (values(payers, 1900, 100), PARTS),
}


def compare(kind, data, given):
    """One row of a comparison, of two models or of two variants."""
    if kind in ("paired", "rare losses"):
        given = {"user_col": KEY[:1], **given}
        metric = "y" if kind == "paired" else "ndcg@10"
        return rd.compare_models(data, metric, baseline="a", **given, details=True).iloc[0]
    given = {"metrics": "y", "control": "A", **given}
    if isinstance(data, tuple):
        data, users = data
        given["health"] = rd.experiments.experiment_health(data, users)
    if kind == "zero-inflated":
        part = given.pop("part")
        return rd.experiments.compare_zero_inflated(data, **given, details=True).iloc[part]
    function = rd.experiments.compare_quantiles if kind == "quantiles" else rd.compare_variants
    return function(data, **given).iloc[0]


def outcome(kind, data, given):
    """Whether a run is wrong about what is true, and whether its reader is warned."""
    if kind == "few labels":
        human, cheap, mean = data
        row = rd.experiments.prediction_powered(human, cheap, "ndcg@10", **given).iloc[0]
        warned = row["withheld"] != "" or row["holds_for"] != ""
        return not row["ci_low"] <= mean <= row["ci_high"], warned
    if kind == "gate":
        own, base, users = data
        given = {**given, "users": users if given.get("users") else None}
        row = rd.gate(own, base, **given).table.iloc[0]
        passed = row["effect"] == "pass"
        return row["p_pass"] <= 0.05, not passed or row["holds_for"] != ""
    row = compare(kind, data, given)
    # What a few unseen users would have to have is a warning where they are the trouble.
    said = {"heavier_unseen", "unbounded"} & {*codes_of(row["remarks"])} and kind in UNKIND
    warned = row["withheld"] != "" or bool(warnings_of(row["remarks"]) or said)
    if "margin" in given:
        return row["p_equivalence"] <= 0.05, warned
    return row["p_value"] <= 0.05 or row["ci_low"] > 0 or row["ci_high"] < 0, warned


def of_setting(kind, name, runs, seed):
    """Per method: how many of the runs reject, are warned of, and reject without any warning."""
    draw, methods = SETTINGS[kind, name]
    found = {method: np.zeros(3) for method in methods}
    for run in runs:
        data = draw(np.random.default_rng([seed, run]))
        for method, given in methods.items():
            rejects, warned = map(bool, outcome(kind, data, given))
            found[method] += [rejects, warned, rejects and not warned]
    return found


def counted(chosen, given):
    """The counts of all settings, and of how many runs each: rounds of runs, as many as are asked
    for or have time."""
    found, done, end = {}, 0, time.monotonic() + 60 * given.minutes
    if given.kept and given.kept.exists():
        done, kept = json.loads(given.kept.read_text(encoding="utf-8"))
        found = {tuple(key): np.array(numbers) for *key, numbers in kept}
    with ProcessPoolExecutor(
        given.processes, initializer=warnings.simplefilter, initargs=("ignore",)
    ) as pool:
        while done < given.runs and (not done or time.monotonic() < end):
            runs = range(done, min(done + ROUND, given.runs))
            waiting = [pool.submit(of_setting, *setting, runs, given.seed) for setting in chosen]
            for setting, counts_of in zip(chosen, waiting, strict=True):
                for method, some in counts_of.result().items():
                    found[*setting, method] = found.get((*setting, method), 0) + some
            done = runs.stop
            if given.kept:
                given.kept.write_text(
                    json.dumps([done, [[*key, list(numbers)] for key, numbers in found.items()]])
                )
            print(f"{done:,} runs of each setting", flush=True)
    return found, done


def why(kind, name, method, rejected, runs):
    """Why a share of rejections is not 5 %: "" where it may be chance, None where the reason is not
    known."""
    low, high = binom.interval(BAND, runs, 0.05)
    if low <= round(rejected * runs) <= high:
        return ""
    of = WHY.get((kind, name, method)) or WHY.get((kind, name)) or WHY.get((kind, method)) or {}
    return of.get("more" if rejected > 0.05 else "less")


def table(chosen, given):
    """All settings as rows, which are printed, and how many runs they are made of."""
    rows = []
    found, runs = counted(chosen, given)
    chance = 2 * np.sqrt(MOST * (1 - MOST) / runs)
    for (kind, name, method), shares in found.items():
        rejects, warned, quiet = shares / runs
        reason = why(kind, name, method, rejects, runs)
        heeded = min(rejects, quiet) <= MOST + chance or warned >= LEAST_WARNED
        kept = (heeded or name in SEEN_IN_PART) and reason is not None
        rows.append((kind, name, method, rejects, warned, quiet, reason or "", kept))
        shown = f"{kind:13} {name:28} {method:15} {rejects:.3f} {warned:.3f} {quiet:.3f}"
        said = "" if kept else "is not explained" if reason is None else "breaks the rule"
        print(shown, reason or "", said, flush=True)
    return rows, runs


TAILS = ("quantiles", "zero-inflated")


def write_pages(rows, runs):
    """Put the tables on their pages; one of which no setting was run stays as it is."""
    for page, marker, kept in (
        ("calibration", "unkind", lambda kind: kind in UNKIND),
        ("calibration_settings", "traps", lambda kind: kind == "traps"),
        ("calibration", "tails", lambda kind: kind in TAILS),
        ("calibration_settings", "table", lambda kind: kind not in (*UNKIND, *TAILS, "traps")),
    ):
        own = [row for row in rows if kept(row[0])]
        if own:
            path = DOCS / f"{page}.md"
            before, _, rest = path.read_text(encoding="utf-8").partition(f"<!-- {marker} -->")
            end = rest.partition("<!-- end -->")[2]
            text = f"{before}<!-- {marker} -->\n\n{as_table(own, runs)}\n\n<!-- end -->{end}"
            path.write_text(text, encoding="utf-8")


def as_table(rows, runs):
    """Rows with a sentence that says how exact they are, and numbered reasons below them."""
    lines = ["| | no effect in | method | rejected | warned | rejected without a warning |"]
    lines += ["|---|---|---|--:|--:|--:|"]
    before, reasons = "", []
    for kind, name, method, rejects, warned, quiet, reason, _ in rows:
        first = "" if kind == before else kind
        if reason and reason not in reasons:
            reasons.append(reason)
        note = f" ({reasons.index(reason) + 1})" if reason else ""
        lines.append(
            f"| {first} | {name} | {method} | {rejects:.3f}{note} | {warned:.2f} | {quiet:.3f} |"
        )
        before = kind
    low, high = binom.interval(BAND, runs, 0.05) / np.float64(runs)
    said = (
        f"{runs:,} runs of each setting; the standard error of a share of 0.05 is "
        f"{np.sqrt(0.05 * 0.95 / runs):.3f}. Where the truth is 0.05, a share is between {low:.3f} "
        f"and {high:.3f} with a probability of {BAND}. A number in "
        "brackets says why others are outside."
    )
    notes = "\n".join(f"{number}. {reason}" for number, reason in enumerate(reasons, start=1))
    return f"{said}\n\n" + "\n".join(lines) + (f"\n\n{notes}" if notes else "")


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--runs", type=int, default=2000, help="experiments of each setting")
    asked.add_argument(
        "--minutes", type=float, default=np.inf, help="begin no more rounds of runs after this time"
    )
    asked.add_argument("--kept", type=Path, help="a file of counts, which are added to")
    asked.add_argument("--only", nargs="*", default=[], help="kinds of settings, such as clusters")
    asked.add_argument("--seed", type=int, default=0)
    asked.add_argument("--processes", type=int, default=2)
    asked.add_argument("--write", action="store_true", help="put the tables on the pages")
    given = asked.parse_args()
    rows, runs = table([one for one in SETTINGS if not given.only or one[0] in given.only], given)
    if given.write:
        write_pages(rows, runs)
    broken = [row for row in rows if not row[-1]]
    print(f"{len(broken)} of {len(rows)} rows break the rule or are not explained")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())

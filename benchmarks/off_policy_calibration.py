"""Coverage of the off-policy intervals and of their flags on simulated logs whose truth is known.

    python benchmarks/off_policy_calibration.py [--runs 1000] [--rows 20000000] [--only easy]
    [--seed 0] [--out it.csv]

Each setting draws logs from a known logging policy, estimates a known target policy, and counts how
often the 95 % interval holds the true value: over all runs, and over the runs without a flag. Flags
must leave out what does not cover. The table is on the page docs/off_policy_why.md, whose text says
what each setting is.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

import recdf as rd

# Rows that are drawn at once; runs of one setting are stacked and estimated with by="run".
ROWS_AT_ONCE = 400_000
CONTEXTS = 400_000

# Flags that speak about a log without saying that the interval is wrong.
NO_HARM = {"mean_weight_untestable"}


@dataclass(frozen=True)
class Setting:
    """How a log is drawn: policies are softmax(scale·(x·θ)) over the actions, x the features of a
    user."""

    name: str
    n: int
    users: int | None = None  # None: every row is a user of its own
    logging: float = 0.5
    target: float = 1.0
    n_actions: int = 10
    rate: float = 0.1
    user_effect: float = 1.0
    skewed_users: bool = False
    reward: str = "click"  # or "money", "rating"
    fault: str = ""  # or "unsupported", "other_event", "sampled_down"
    deterministic: bool = False
    worlds: int = 1  # policies and rewards are drawn anew so many times
    tables: str = ""  # or "types", "rare": policies are tables and not functions of features
    estimators: tuple[str, ...] = ("ips", "snips")
    clip: tuple[float, ...] | None = None
    method: str = "delta"
    cluster: bool = True


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


class World:
    """The features of users, what actions are worth to them, and the two policies."""

    def __init__(self, setting, rng):
        self.setting = setting
        self.theta = rng.normal(size=(5, setting.n_actions)) / np.sqrt(5)
        self.policy = rng.normal(size=(5, setting.n_actions)) / np.sqrt(5)
        x, effect = self.users(CONTEXTS, rng)
        self.truth = float((self.target(x) * self.mean_reward(x, effect)).sum(axis=1).mean())

    def users(self, n, rng):
        return rng.normal(size=(n, 5)), self.setting.user_effect * rng.normal(size=n)

    def mean_reward(self, x, effect):
        low = np.log(self.setting.rate / (1 - self.setting.rate))
        chance = 1 / (1 + np.exp(-(low + x @ self.theta + effect[:, None])))
        return {"click": chance, "money": chance * np.exp(0.5), "rating": 1 + 4 * chance}[
            self.setting.reward
        ]

    def draw_reward(self, mean, rng):
        if self.setting.reward == "click":
            return (rng.random(len(mean)) < mean).astype(float)
        if (
            self.setting.reward == "money"
        ):  # a lognormal amount of mean exp(1/2) where there is a sale
            return (rng.random(len(mean)) < mean / np.exp(0.5)) * np.exp(rng.normal(size=len(mean)))
        return 1 + rng.binomial(4, (mean - 1) / 4).astype(float)

    def logging(self, x):
        scores = self.setting.logging * (x @ self.policy)
        if self.setting.fault == "unsupported":
            scores[:, :2] = -np.inf
        return softmax(scores)

    def target(self, x):
        scores = self.setting.target * (x @ self.theta)
        if not self.setting.deterministic:
            return softmax(scores)
        return (scores == scores.max(axis=1, keepdims=True)).astype(float)


class TableWorld(World):
    """Policies and rewards that are tables over the types of users.

    "types": four types, policies of one softmax that differ by noise, and a reward level of each
    user. "rare": the logging policy shows one of two items in 0.2 % of its decisions and the target
    policy in 25 %. Both earn the same, so that the few heavy rows often have no reward, and nothing
    seen says that they carry the value.
    """

    def __init__(self, setting, rng):
        self.setting = setting
        if setting.tables == "rare":
            self.logged, self.wanted = np.array([[0.998, 0.002]]), np.array([[0.75, 0.25]])
            self.rates = np.full((1, 2), setting.rate)
        else:
            scores = rng.normal(size=(4, setting.n_actions))
            self.logged = softmax(setting.logging * scores)
            self.wanted = softmax(
                setting.logging * scores + setting.target * rng.normal(size=scores.shape)
            )
            self.rates = setting.rate * np.exp(0.5 * rng.normal(size=scores.shape) + 0.3 * scores)
        self.truth = float((self.wanted * self.rates).sum(axis=1).mean())

    def users(self, n, rng):
        level = self.setting.user_effect * rng.normal(size=n) - self.setting.user_effect**2 / 2
        return rng.integers(0, len(self.logged), n), level

    def mean_reward(self, x, effect):
        return np.minimum(self.rates[x] * np.exp(effect)[:, None], 1)

    def logging(self, x):
        return self.logged[x]

    def target(self, x):
        return self.wanted[x]


def draw(world, runs, rng):
    """Logs of several runs, stacked."""
    setting = world.setting
    n_users = setting.users or setting.n
    x, effect = world.users(runs * n_users, rng)
    if setting.users is None:
        user = np.arange(runs * setting.n)
    else:
        share = (
            rng.lognormal(0, 1.5, (runs, n_users))
            if setting.skewed_users
            else np.ones((runs, n_users))
        )
        edges = np.cumsum(share, axis=1) / share.sum(axis=1, keepdims=True)
        own = np.concatenate(
            [np.searchsorted(edge, rng.random(setting.n)).clip(0, n_users - 1) for edge in edges]
        )
        user = own + np.repeat(np.arange(runs) * n_users, setting.n)
    x, effect = x[user], effect[user]
    logged, target = world.logging(x), world.target(x)
    action = (
        (rng.random((len(x), 1)) > np.cumsum(logged, axis=1))
        .sum(axis=1)
        .clip(0, setting.n_actions - 1)
    )
    rows, means = np.arange(len(x)), world.mean_reward(x, effect)
    # A reward model that knows the features and not the user.
    model = world.mean_reward(x, np.zeros(len(x)))
    log = pd.DataFrame(
        {
            "run": np.repeat(np.arange(runs), setting.n),
            "user_id": user,
            "item_id": action,
            "reward": world.draw_reward(means[rows, action], rng),
            "propensity": logged[rows, action],
            "target_propensity": target[rows, action],
            "q_logged": model[rows, action],
            "q_target": (model * target).sum(axis=1),
        }
    )
    if setting.fault == "other_event":  # propensities of a policy that saw other features
        other = world.logging(x[rng.permutation(len(x))])
        log["propensity"] = other[rows, action]
    if setting.fault.startswith("sampled_down"):
        keep = (log["reward"] > 0) | (rng.random(len(log)) < 0.2)
        log["kept"] = np.where(log["reward"] > 0, 1.0, 5.0)
        log = log[keep]
    return log


def estimates(setting, runs, seed=0):
    """All estimates of all runs: the result of `ope_estimate`, with `covers` and `flagged`."""
    rng = np.random.default_rng([seed, sum(map(ord, setting.name)), setting.n])
    return pd.concat(
        [
            in_one_world(setting, runs // setting.worlds, rng).assign(world=i)
            for i in range(setting.worlds)
        ],
        ignore_index=True,
    )


def in_one_world(setting, runs, rng):
    """The estimates of runs that share their policies and rewards."""
    world = (TableWorld if setting.tables else World)(setting, rng)
    at_once = max(ROWS_AT_ONCE // setting.n, 1)
    options = {
        "estimators": setting.estimators,
        "clip": None if setting.clip is None else list(setting.clip),
        "cluster": "user_id" if setting.cluster else None,
        "method": setting.method,
        "by": "run",
    }
    if any(name not in ("ips", "snips") for name in setting.estimators):
        options |= {"q_logged": "q_logged", "q_target": "q_target"}
    if setting.fault == "sampled_down_weighted":
        options["weight_col"] = "kept"
    if setting.method == "bootstrap":
        options["n_resamples"] = 400
    found = []
    for start in range(0, runs, at_once):
        log = draw(world, min(at_once, runs - start), rng)
        if setting.method == "bounded":
            highest = float((log["target_propensity"] / log["propensity"]).max())
            options |= {"reward_range": (0, 1), "weight_range": (0, 2 * highest)}
        found.append(rd.ope.estimate(log, **options))
    table = pd.concat(found, ignore_index=True)
    table["covers"] = (table["ci_low"] <= world.truth) & (world.truth <= table["ci_high"])
    table["flagged"] = [
        any(flag not in NO_HARM for flag in flags.split(", ") if flag) for flags in table["flags"]
    ]
    return table


def measure(setting, runs, seed=0):
    """One row per estimator: coverage of all runs, of unflagged runs, and the share of flagged
    ones."""
    table, rows = estimates(setting, runs, seed), []
    for (name, clip), own in table.groupby(["estimator", "clip"], sort=False, dropna=False):
        clean = own[~own["flagged"]]
        counts = own.loc[own["flagged"], "flags"].str.split(", ").explode().value_counts() / len(
            own
        )
        rows.append(
            {
                "setting": setting.name,
                "n": setting.n,
                "users": setting.users or setting.n,
                "method": setting.method,
                "estimator": name,
                "clip": clip,
                "runs": len(own),
                "ess": own["ess"].median(),
                "ess_reward": own["ess_reward"].median(),
                "ess_influence": own["ess_influence"].median(),
                "coverage": own["covers"].mean(),
                "flagged": own["flagged"].mean(),
                "unflagged": len(clean),
                "coverage_unflagged": clean["covers"].mean() if len(clean) else np.nan,
                "flags": ", ".join(
                    f"{flag} {part:.0%}" for flag, part in counts.items() if part >= 0.05
                ),
            }
        )
    return rows


EASY = Setting("easy", 2000)
MEDIUM = Setting("medium", 2000, logging=1.0, target=2.0)
HARD = Setting("hard", 2000, logging=2.0, target=4.0, rate=0.03)
BETWEEN = Setting("between", 10_000, logging=1.5, target=3.0, rate=0.06, worlds=10)
TYPES = Setting(
    "types",
    15_000,
    users=3000,
    logging=1.8,
    target=2.5,
    rate=0.03,
    user_effect=0.5,
    worlds=50,
    tables="types",
)
RARE = Setting("rare item", 15_000, n_actions=2, rate=0.05, user_effect=0.0, tables="rare")
CLUSTERS = {"users": 500, "user_effect": 1.5}


def settings():
    """All settings: three degrees of overlap by size, with and without clusters, and what goes
    wrong in practice."""
    found = []
    for base in (EASY, MEDIUM, HARD):
        for n in (500, 2000, 10_000):
            found.append(replace(base, n=n))
            found.append(
                replace(base, name=f"{base.name}, users", n=n, **{**CLUSTERS, "users": n // 5})
            )
    for n in (2000, 10_000, 30_000):
        found.append(replace(BETWEEN, n=n))
    found.append(replace(BETWEEN, name="between, users", **{**CLUSTERS, "users": 2000}))
    found += [
        TYPES,
        replace(TYPES, name="types, near", logging=0.7, target=0.4, rate=0.02, worlds=10),
        RARE,
    ]
    big = replace(EASY, n=10_000)
    model = ("dr", "sndr", "dm")
    found += [
        replace(MEDIUM, name="medium, model", n=10_000, estimators=model),
        replace(EASY, name="easy, model", n=10_000, estimators=model),
        replace(
            MEDIUM, name="medium, clipped", n=10_000, estimators=("ips", "snips"), clip=(5, 20, 50)
        ),
        replace(
            MEDIUM,
            name="medium, clipped model",
            n=10_000,
            estimators=("dr", "switch_dr", "dros"),
            clip=(5, 50),
        ),
        replace(big, name="easy, clipped", estimators=("ips", "snips"), clip=(2, 10)),
        replace(big, name="rows for users", users=200, user_effect=1.5, cluster=False),
        replace(big, name="users for rows", users=200, user_effect=1.5),
        replace(big, name="few users", users=30, user_effect=1.5),
        replace(big, name="60 users", users=60, user_effect=1.5),
        replace(big, name="100 users", users=100, user_effect=1.5),
        replace(big, name="unequal users", users=400, user_effect=1.5, skewed_users=True),
        replace(big, name="unequal users, few", users=80, user_effect=1.5, skewed_users=True),
        replace(big, name="rare rewards", rate=0.005),
        replace(big, name="money", reward="money"),
        replace(big, name="money, rare", reward="money", rate=0.01),
        replace(big, name="ratings", reward="rating", rate=0.5),
        replace(MEDIUM, name="ratings, medium", n=10_000, reward="rating", rate=0.5),
        replace(big, name="deterministic", deterministic=True),
        replace(big, name="deterministic, small", deterministic=True, n=2000),
        replace(big, name="unsupported", fault="unsupported"),
        replace(big, name="unsupported, small", fault="unsupported", n=1000),
        replace(
            big, name="unsupported ratings", fault="unsupported", reward="rating", rate=0.5, n=2000
        ),
        replace(MEDIUM, name="other event", fault="other_event", n=10_000),
        replace(big, name="sampled down", fault="sampled_down"),
        replace(big, name="sampled down, weighted", fault="sampled_down_weighted"),
        replace(MEDIUM, name="medium", n=10_000, method="bootstrap"),
        replace(HARD, name="hard", n=2000, interval="bounded"),
        replace(MEDIUM, name="medium", n=500, interval="bounded"),
        replace(
            MEDIUM, name="medium, users", n=2000, interval="bounded", **{**CLUSTERS, "users": 400}
        ),
        replace(big, name="rare rewards", rate=0.005, interval="bounded"),
    ]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument(
        "--rows",
        type=int,
        default=20_000_000,
        help="fewer runs of settings with more rows than this",
    )
    parser.add_argument("--only", default="", help="settings whose name begins so")
    parser.add_argument(
        "--seed", type=int, default=0, help="another one draws other policies and other logs"
    )
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows, start = [], time.perf_counter()
    for setting in settings():
        if setting.name.startswith(given.only):
            rows += measure(setting, min(given.runs, given.rows // setting.n), given.seed)
            spent = time.perf_counter() - start
            print(f"{spent:6.0f} s  {setting.name} n={setting.n} {setting.method}", file=sys.stderr)
    table = pd.DataFrame(rows)
    print(table.round(3).to_string(index=False))
    if given.out is not None:
        table.to_csv(given.out, index=False)


if __name__ == "__main__":
    main()

"""Experiments over some days, and their arms by hand: what the tests of effects over time share."""

import math

import numpy as np
import pandas as pd
from scipy import stats

ORDERS = {"control": "A", "time_col": "time", "exposure_col": "exposed"}


def welch(values):
    """Estimate and variance of a mean, or of a ratio of sums by the delta method."""
    n = len(values)
    if len(values[0]) == 1:
        mean = math.fsum(v[0] for v in values) / n
        z = [v[0] - mean for v in values]
    else:
        dens = math.fsum(v[1] for v in values)
        mean = math.fsum(v[0] for v in values) / dens
        z = [(v[0] - mean * v[1]) / (dens / n) for v in values]
    return mean, math.fsum(one * one for one in z) / (n - 1) / n, z


def panel(rng, n=400, days=14, effect=lambda age: 0.0 * age, persistent=1.0):
    """Users who come over a week, with a value that each keeps and an effect by days since the
    exposure."""
    users = pd.DataFrame(
        {
            "user_id": range(n),
            "variant": rng.choice(["A", "B"], n),
            "exposed": rng.integers(0, 7, n),
        }
    )
    rows = users.merge(pd.DataFrame({"time": range(days)}), how="cross")
    own = rng.normal(0, persistent, n)
    age = rows["time"] - rows["exposed"]
    rows["x"] = (
        own[rows["user_id"]] + rng.normal(0, 1, len(rows)) + (rows["variant"] == "B") * effect(age)
    )
    return rows


def many(rows, values):
    """The rows with a column for each of many outcomes, and their names: a call then has as many
    experiments."""
    names = [f"x{i}" for i in range(values.shape[1])]
    return pd.concat([rows, pd.DataFrame(values, columns=names, index=rows.index)], axis=1), names


def assert_level(rejected, runs, least=0.001, level=0.05):
    """As many rejections as chance allows at this level."""
    assert stats.binom.cdf(rejected, runs, level) > least
    assert stats.binom.sf(rejected - 1, runs, level) > least


def ramp(rng, n=1000, days=8):
    """Users who come over five days with growing shares of B, and of C from the fourth day on;
    later ones buy more."""
    users = pd.DataFrame(
        {"user_id": range(n), "exposed": np.arange(n) * 5 // n, "shop": np.arange(n) // 2}
    )
    draw = rng.random(n)[users["shop"]]
    users["variant"] = np.where(draw < 0.2 + 0.1 * users["exposed"], "B", "A")
    users.loc[(draw > 0.75) & (users["exposed"] > 2), "variant"] = "C"
    rows = users.merge(pd.DataFrame({"time": range(days)}), how="cross")
    level = rng.normal(0, 1, n)[rows["shop"]] + rows["exposed"] + 0.3 * rows["time"]
    rows["x"] = level + rng.normal(0, 1, len(rows))
    rows["shown"] = rng.poisson(3 + rows["exposed"])
    return rows, users

"""Experiments whose tables of users are elsewhere: ids of several kinds, users in two variants,
strangers, nulls, days and several variants."""

import numpy as np
import pandas as pd

import recdf as rd

EXPERIMENTS = rd.experiments
IDS = {
    "integers": lambda ids: ids,
    "strings": lambda ids: pd.Series(ids).map("u{}".format).to_numpy(),
    "categories": lambda ids: pd.Categorical(pd.Series(ids).map("u{}".format)),
    "short": lambda ids: ids.astype(np.int16),
}


def assigned(kind="integers", n=400, variants="ABC"):
    rng = np.random.default_rng(len(kind))
    users = pd.DataFrame({"user_id": IDS[kind](rng.permutation(n))})
    users["variant"] = rng.choice(list(variants), n)
    users["country"] = rng.choice(["fi", "se", None], n, p=[0.6, 0.3, 0.1])
    users["day"] = rng.integers(1, 5, n)
    users["hole"] = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 3, n))
    users["seen"] = pd.Timestamp("2026-09-01") + pd.to_timedelta(users["day"], "D")
    # Users in two variants and in two rows of one, whose rows lie in different parts.
    twice = users.iloc[:30].assign(variant=users["variant"].iloc[30:60].to_numpy())
    return pd.concat([users, twice, users.iloc[60:80]], ignore_index=True)


def with_metrics(kind, users):
    """Most of the users, and some whom no row of the assignment has."""
    more = pd.Series(IDS[kind](np.arange(390, 420)))
    ids = pd.concat([users["user_id"].iloc[:350], more], ignore_index=True)
    return pd.DataFrame({"user_id": ids.astype("category") if kind == "categories" else ids})


RAMP = {day: {"A": 1.0, "B": day, "C": 1.0, "D": 0.5} for day in range(1, 5)}
CALLS = {
    "health": lambda metrics, users: EXPERIMENTS.experiment_health(metrics, users),
    "health by day": lambda metrics, users: EXPERIMENTS.experiment_health(
        metrics, users, by="day", expected=RAMP
    ),
    "health by time": lambda metrics, users: EXPERIMENTS.experiment_health(
        metrics, users, by=["seen", "day"]
    ),
    "ratio": lambda metrics, users: EXPERIMENTS.find_srm(
        users, ["country", "day", "hole", "seen"], expected=RAMP[2]
    ),
    "ratio of a ramp-up": lambda metrics, users: EXPERIMENTS.find_srm(
        users, "country", strata="day", expected=RAMP, confidence=0.9
    ),
}
REFUSED = {
    "assignment has no column 'county'; it has 'user_id', 'variant', 'country'": lambda users: (
        EXPERIMENTS.find_srm(users, "county")
    ),
    "'country'.* is null in": lambda users: EXPERIMENTS.find_srm(users, "day", strata="country"),
    "no share for variant 'A'": lambda users: EXPERIMENTS.find_srm(
        users, "day", expected={"Q": 1.0}
    ),
    "can never match": lambda users: EXPERIMENTS.experiment_health(
        pd.DataFrame({"user_id": ["a", "b"]}), users
    ),
}


def assert_same(found, expected):
    pd.testing.assert_frame_equal(
        pd.DataFrame(found), pd.DataFrame(expected), rtol=1e-9, atol=1e-12
    )

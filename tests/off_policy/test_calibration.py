"""Coverage on simulated logs whose truth is known: a short version of
benchmarks/off_policy_calibration.py.

400 runs know a coverage of 95 % to about 1.1 %, so the bounds here are wider than those of the long
run on the page.
"""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

RUNS, ACTIONS = 400, 4
LOGGED = np.array([0.4, 0.3, 0.2, 0.1])
TARGET = np.array([0.1, 0.2, 0.3, 0.4])
RATE = np.array([0.1, 0.2, 0.3, 0.5])


def draw(n, seed, users=None, target=TARGET, scale=1.0):
    """Stacked logs of all runs; with `users`, each user has a taste and the target policy is the
    same for all."""
    rng = np.random.default_rng(seed)
    n_users = users or n
    user = np.arange(RUNS * n) % n_users + np.repeat(np.arange(RUNS), n) * n_users
    taste = rng.uniform(0, 2, RUNS * n_users)[user] if users else 1.0
    item = rng.choice(ACTIONS, RUNS * n, p=LOGGED)
    log = pd.DataFrame({"run": np.repeat(np.arange(RUNS), n), "user_id": user, "item_id": item})
    log["reward"] = (rng.random(len(log)) < scale * RATE[item] * taste).astype(float)
    return log.assign(propensity=LOGGED[item], target_propensity=target[item])


def coverage(table, truth):
    return (
        ((table["ci_low"] <= truth) & (truth <= table["ci_high"]))
        .groupby(table["estimator"])
        .mean()
    )


TRUTH = float(TARGET @ RATE)


@pytest.mark.long
@pytest.mark.parametrize("users", [None, 120])
def test_delta(users):
    table = rd.ope.estimate(draw(1200, 0, users), by="run")
    assert coverage(table, TRUTH).between(0.92, 0.98).all()
    lift = TRUTH - float(LOGGED @ RATE)
    table[["ci_low", "ci_high"]] = table[["lift_ci_low", "lift_ci_high"]]
    assert coverage(table, lift).between(0.92, 0.98).all()
    # The log is good, so flags must not cry: chance alone gives `unsupported` to 2.3 %.
    assert (table["flags"] != "").mean() < 0.06


@pytest.mark.long
def test_rows_that_are_taken_for_independent_cover_too_rarely():
    log = draw(1200, 1, users=30)
    rows = rd.ope.estimate(log, by="run", cluster=None)
    users = rd.ope.estimate(log, by="run")
    assert (coverage(rows, TRUTH) < 0.85).all()
    assert (coverage(users, TRUTH) > 0.9).all()
    assert users["flags"].str.contains("few_clusters").all()


@pytest.mark.long
def test_bootstrap():
    log = draw(600, 2, users=120)
    table = rd.ope.estimate(log[log["run"] < 200], by="run", interval="bootstrap", n_resamples=200)
    assert coverage(table, TRUTH).between(0.9, 0.99).all()


@pytest.mark.long
def test_bounded_intervals_hold_where_rewards_are_few():
    scale = 0.02
    log = draw(300, 3, scale=scale)
    log = log[log["run"] < 200]
    options = {"by": "run", "cluster": None}
    delta = rd.ope.estimate(log, **options)
    bounded = rd.ope.estimate(
        log, interval="bounded", reward_range=(0, 1), weight_range=(0, 4), **options
    )
    assert (coverage(delta, scale * TRUTH) < 0.93).all()
    assert (coverage(bounded, scale * TRUTH) >= 0.95).all()
    for table in (delta, bounded):
        assert table["flags"].str.contains("few_rewards").all()


@pytest.mark.long
def test_unsupported_actions_are_flagged():
    log = draw(1200, 4)
    # The target policy shows a fifth action in a fifth of its decisions, and the log never does.
    table = rd.ope.estimate(log.assign(target_propensity=log["target_propensity"] * 0.8), by="run")
    assert table["flags"].str.contains("unsupported").mean() > 0.99
    assert (coverage(table, 0.8 * TRUTH + 0.2 * 0.9) < 0.5).all()


@pytest.mark.long
def test_negatives_that_were_sampled_down_are_flagged_and_mended():
    log = draw(3000, 5)
    rng = np.random.default_rng(50)
    log = log[(log["reward"] > 0) | (rng.random(len(log)) < 0.2)]
    log["kept"] = np.where(log["reward"] > 0, 1.0, 5.0)
    silent = rd.ope.estimate(log, by="run")
    assert (coverage(silent, TRUTH) < 0.05).all()
    assert silent["flags"].str.contains("mean_weight").mean() > 0.95
    mended = rd.ope.estimate(log, by="run", weight_col="kept")
    assert coverage(mended, TRUTH).between(0.92, 0.98).all()


@pytest.mark.long
def test_clipping_that_biases_is_flagged():
    table = rd.ope.estimate(draw(1200, 6), by="run", clip=1.5)
    assert (coverage(table, TRUTH) < 0.9).all()
    assert table["flags"].str.contains("clip_bias").mean() > 0.95

"""Intervals: delta, bootstrap and bounded, against other programs and against each other."""

import math

import numpy as np
import pandas as pd
import pytest
from off_policy.logs import bandit_log, slate_log
from oracles.off_policy import logging_value, units_of, value
from scipy import optimize, stats

import recdf as rd
from recdf.off_policy.weighted_rows import student_quantile
from recdf.stats.resampling import poisson_sums

JUDGED = ["flags", "effect", "withheld", "trust"]
Q = {"q_logged": "q_logged", "q_target": "q_target"}


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_delta_is_normal(confidence):
    table = rd.ope.estimate(bandit_log(), confidence=confidence)
    low, high = stats.norm.interval(confidence, table["value"], table["se"])
    assert table["ci_low"].tolist() == pytest.approx(low.tolist(), abs=1e-12)
    assert table["ci_high"].tolist() == pytest.approx(high.tolist(), abs=1e-12)
    low, high = stats.norm.interval(confidence, table["lift"], table["lift_se"])
    assert table["lift_ci_low"].tolist() == pytest.approx(low.tolist(), abs=1e-12)
    assert table["lift_ci_high"].tolist() == pytest.approx(high.tolist(), abs=1e-12)
    assert (table["confidence"] == confidence).all()


# ------------------------------------------------------------------------------------------
# bootstrap


def counts_of(n_clusters, n_resamples, seed):
    """The Poisson counts of every replicate and cluster: sums of the columns of an identity
    matrix."""
    return poisson_sums(list(np.eye(n_clusters)), n_resamples, seed)


ASKED = [
    ("ips", None),
    ("snips", None),
    ("dr", None),
    ("sndr", 2.0),
    ("switch_dr", 2.0),
    ("dros", 2.0),
    ("dm", None),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("name", "clip"), ASKED)
def test_bootstrap_replicates_are_estimates_of_resampled_users(name, clip):
    log = bandit_log(n=25, users=6)
    row = rd.ope.estimate(
        log, estimators=name, clip=clip, interval="bootstrap", n_resamples=60, seed=4, **Q
    ).iloc[0]
    units = units_of(log.drop(columns="kept"))
    users = sorted(set(log["user_id"]))
    values, lifts = [], []
    for counts in counts_of(len(users), 60, 4):
        times = [counts[users.index(user)] for user in log["user_id"]]
        if sum(times):
            values.append(value(units, name, clip, multiplicity=times))
            lifts.append(values[-1] - logging_value(units, times))
    expected = [np.std(values, ddof=1), *np.quantile(values, [0.025, 0.975])]
    assert row[["se", "ci_low", "ci_high"]].tolist() == pytest.approx(expected, rel=1e-10)
    expected = [np.std(lifts, ddof=1), *np.quantile(lifts, [0.025, 0.975])]
    assert row[["lift_se", "lift_ci_low", "lift_ci_high"]].tolist() == pytest.approx(
        expected, rel=1e-10
    )
    assert row["value"] == pytest.approx(value(units, name, clip), rel=1e-12)


@pytest.mark.parametrize("name", ["ips", "snips"])
def test_bootstrap_of_ragged_slates(name):
    log = slate_log(units=12, users=5, ragged=True)
    options = {
        "slate_col": "slate",
        "interaction": "cascade",
        "propensity_kind": "conditional",
        "ragged": "as_logged",
    }
    options |= {"interval": "bootstrap", "n_resamples": 40, "seed": 1}
    row = rd.ope.estimate(log, estimators=name, **options).iloc[0]
    units = units_of(log.drop(columns="kept"), "slate")
    users = sorted(set(log["user_id"]))
    values = []
    for counts in counts_of(len(users), 40, 1):
        times = [float(counts[users.index(unit[0]["user_id"])]) for unit in units]
        try:
            values.append(value(units, name, None, "cascade", times))
        except ZeroDivisionError:  # a position that was not drawn
            continue
    assert row[["ci_low", "ci_high"]].tolist() == pytest.approx(
        np.quantile(values, [0.025, 0.975]).tolist(), rel=1e-10
    )


def test_bootstrap_agrees_with_delta_on_a_large_log():
    log = bandit_log(n=4000, users=800)
    names = ["ips", "snips", "dr", "sndr"]
    delta = rd.ope.estimate(log, estimators=names, **Q)
    bootstrap = rd.ope.estimate(log, estimators=names, interval="bootstrap", n_resamples=1000, **Q)
    # The standard deviation of 1,000 replicates is known to about 1/√2000.
    np.testing.assert_allclose(bootstrap["se"], delta["se"], rtol=0.1)
    np.testing.assert_allclose(bootstrap["lift_se"], delta["lift_se"], rtol=0.1)


# --------------------------------------------------------------------------------------------
# bounded


@pytest.mark.few(12)
@pytest.mark.parametrize("df", [1, 2, 3, 10, 600, 2000, 2001, 10_000, 10_000_000])
@pytest.mark.parametrize("p", [0.6, 0.9, 0.975, 0.9995])
def test_student_quantile(df, p):
    assert student_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-9)


def bounded_by_search(weight, term, weights, unseen_term, confidence):
    """The interval by maximising over the reweightings themselves, for the atoms that were seen and
    one unseen."""
    n = len(weight)
    quantile = stats.f.isf(1 - confidence, 1, n)

    def moments(unseen, unseen_f):
        return np.append(weight, unseen), np.append(term, unseen_f)

    likeliest_unseen = weights[1] if weight.sum() < n else weights[0]
    w, _ = moments(likeliest_unseen, 0)
    least = (w.mean() - 1) ** 2 / np.mean((w - w.mean()) ** 2)
    budget = least + quantile / (n + 1)
    ends = []
    for sign in (1, -1):
        found = []
        for unseen in weights:
            w, f = moments(unseen, unseen_term(unseen, sign))

            def objective(q, f=f, sign=sign):
                return sign * (q @ f) / (n + 1)

            constraints = [
                {"type": "eq", "fun": lambda q: q.sum() / (n + 1) - 1},
                {"type": "eq", "fun": lambda q, w=w: (q @ w) / (n + 1) - 1},
                {"type": "ineq", "fun": lambda q: budget - np.mean((q - 1) ** 2)},
            ]
            options = {"maxiter": 500, "ftol": 1e-14}
            got = optimize.minimize(
                objective, np.ones(n + 1), method="SLSQP", constraints=constraints, options=options
            )
            if got.success:
                found.append(got.fun)
        ends.append(sign * min(found))
    return ends


@pytest.mark.long
def test_bounded_interval_is_the_extreme_reweighting():
    rng = np.random.default_rng(5)
    log = bandit_log(n=25, seed=5).assign(reward=rng.random(25))
    log = log.assign(target_propensity=(log["propensity"] * rng.uniform(0, 2, 25)).clip(upper=1))
    weight = (log["target_propensity"] / log["propensity"]).to_numpy()
    reward = log["reward"].to_numpy()
    options = {
        "interval": "bounded",
        "reward_range": (-1, 2),
        "weight_range": (0, 4),
        "cluster": None,
    }
    row = rd.ope.estimate(log, estimators="ips", **options).iloc[0]

    def unseen_gain(w, sign):
        return w * (-1 if sign > 0 else 2)

    def unseen_lift(w, sign):
        ends = [(w - 1) * -1, (w - 1) * 2]
        return min(ends) if sign > 0 else max(ends)

    expected = bounded_by_search(weight, weight * reward, (0, 4), unseen_gain, 0.95)
    assert row[["ci_low", "ci_high"]].tolist() == pytest.approx(expected, abs=1e-5)
    expected = bounded_by_search(weight, (weight - 1) * reward, (0, 4), unseen_lift, 0.95)
    assert row[["lift_ci_low", "lift_ci_high"]].tolist() == pytest.approx(expected, abs=1e-5)


def test_bounded_intervals_lie_in_the_rewards_and_know_clusters():
    log = bandit_log()
    options = {"interval": "bounded", "reward_range": (0, 3), "weight_range": (0, 20)}
    rows = rd.ope.estimate(log, cluster=None, **options)
    users = rd.ope.estimate(log, **options)
    for table in (rows, users):
        assert (table["ci_low"] >= 0).all()
        assert (table["ci_high"] <= 3).all()
        assert ((table["ci_low"] <= table["value"]) & (table["value"] <= table["ci_high"])).all()
        assert (table["lift_ci_low"].abs() <= 3).all()
        # The value's word says that the interval alone may be used.
        assert (
            table["trust"].str.startswith("use the interval only")
            | table["flags"].str.contains("cluster")
        ).all()
    assert not np.allclose(rows["ci_high"], users["ci_high"])
    # Users of one row each are rows.
    alone = rd.ope.estimate(log.assign(user_id=np.arange(len(log))), **options)
    pd.testing.assert_frame_equal(alone.drop(columns=JUDGED), rows.drop(columns=JUDGED))


def test_bounded_interval_of_wider_rewards_is_wider():
    widths = []
    for rewards in [(0, 3), (-2, 3), (-2, 5)]:
        options = {"interval": "bounded", "reward_range": rewards, "weight_range": (0, 20)}
        row = rd.ope.estimate(bandit_log(), estimators="ips", **options).iloc[0]
        widths.append(row["ci_high"] - row["ci_low"])
    assert widths[0] < widths[1] < widths[2] < math.inf


@pytest.mark.parametrize("seed", range(8))
def test_a_bounded_interval_has_its_ends_in_order(seed):
    # Weights far above 1 throughout: no reweighting of the rows has a mean of 1.
    rng = np.random.default_rng(seed)
    log = pd.DataFrame(
        {
            "user_id": range(6),
            "reward": rng.uniform(-1, 1, 6),
            "propensity": 10.0 ** rng.uniform(-9, -3, 6),
            "target_propensity": rng.uniform(0.1, 1, 6),
        }
    )
    possible = {"reward_range": (-1.0, 1.0), "weight_range": (0.0, 1e10)}
    table = rd.ope.estimate(log, interval="bounded", confidence=0.5, **possible)
    assert (table["ci_low"] <= table["ci_high"]).all()
    assert (table["lift_ci_low"] <= table["lift_ci_high"]).all()
    assert table["ci_low"].ge(-1).all()
    assert table["ci_high"].le(1).all()

"""propensity_check and popularity_propensity."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

import recdf as rd


def logged(n=4000, seed=0, positions=2):
    rng = np.random.default_rng(seed)
    share = np.array([0.5, 0.3, 0.15, 0.05])
    item = rng.choice(4, n, p=share)
    return pd.DataFrame(
        {
            "position": rng.integers(1, positions + 1, n),
            "item_id": item,
            "propensity": share[item],
            "reward": 1.0,
        }
    )


def test_right_propensities_pass():
    found = rd.ope.propensity_check(logged(), n_actions=4)
    assert len(found) == 8
    assert (found["flags"] == "").all()
    assert found["ratio"].between(0.8, 1.2).all()


def test_every_number_by_loops():
    log = logged(800)
    found = rd.ope.propensity_check(log, n_actions=4)
    for row in found.itertuples():
        stratum = log[log["position"] == row.position]
        x = np.where(stratum["item_id"] == row.item_id, 1 / stratum["propensity"], 0)
        inverse = 1 / stratum["propensity"]
        assert row.n_rows == len(stratum)
        assert row.n_shown == (x > 0).sum()
        assert row.inverse_sum == pytest.approx(x.sum())
        assert row.ratio == pytest.approx(x.mean())
        spread = max(((x - 1) ** 2).sum(), len(x) * (x**2).sum() / x.sum() - len(x))
        z = (x.sum() - len(x)) / math.sqrt(spread)
        assert row.z == pytest.approx(z)
        if row.n_shown >= 50:
            assert row.p_value == pytest.approx(2 * stats.norm.sf(abs(z)))
        else:
            assert math.isnan(row.p_value)
        assert row.mean_inverse == pytest.approx(inverse.mean())
        z = (inverse.mean() - 4) / (inverse.std(ddof=1) / math.sqrt(len(inverse)))
        assert row.actions_z == pytest.approx(z)
        assert row.actions_p == pytest.approx(2 * stats.norm.sf(abs(z)))
    known = found["p_value"].notna()
    assert known.any()
    assert not known.all()
    adjusted = multipletests(found.loc[known, "p_value"], method="holm")[1]
    assert found.loc[known, "p_adj"].tolist() == pytest.approx(adjusted.tolist())
    assert found.loc[~known, "p_adj"].isna().all()


def test_propensities_of_another_event_are_found():
    # Probabilities of a slate of two in place of those of the position.
    wrong = logged().assign(propensity=lambda log: log["propensity"] * 0.5)
    found = rd.ope.propensity_check(wrong, n_actions=4)
    assert found["flags"].str.contains("item").mean() > 0.8
    assert found["flags"].str.contains("n_actions").all()


def test_sampling_by_reward_is_found():
    # Item 0 earns more, so it is kept more often.
    rng = np.random.default_rng(0)
    log = logged(20_000, positions=1)
    reward = rng.random(len(log)) < np.where(log["item_id"] == 0, 0.6, 0.05)
    kept = log[reward | (rng.random(len(log)) < 0.1)]
    found = rd.ope.propensity_check(kept, n_actions=4).set_index("item_id")
    assert found.loc[0, "ratio"] > 1.3
    assert (found.loc[1:, "ratio"] < 0.8).all()
    assert (found["flags"] != "").all()


def test_uniform_propensities_are_exact():
    log = pd.DataFrame({"item_id": ["a", "b"] * 60, "propensity": 0.5})
    found = rd.ope.propensity_check(log, by="item_id", n_actions=2)
    assert found["actions_z"].tolist() == [0, 0]
    assert found["flags"].tolist() == ["", ""]
    found = rd.ope.propensity_check(log, by="item_id", n_actions=3)
    assert found["flags"].tolist() == ["n_actions", "n_actions"]
    assert found["actions_z"].tolist() == [-math.inf] * 2


def test_without_a_number_of_actions_the_mean_is_only_shown():
    found = rd.ope.propensity_check(logged())
    assert found[["n_actions", "actions_z", "actions_p"]].isna().all(axis=None)
    assert found["mean_inverse"].notna().all()


def test_popularity():
    log = pd.DataFrame({"item_id": ["b"] * 9 + ["a"] + ["c"] * 4})
    found = rd.ope.popularity_propensity(log)
    assert found["item_id"].tolist() == ["a", "b", "c"]
    assert found["n"].tolist() == [1, 9, 4]
    assert found["propensity"].tolist() == pytest.approx([(1 / 9) ** 1.25, 1, (4 / 9) ** 1.25])
    assert rd.ope.popularity_propensity(log, floor=0.5)["propensity"].tolist() == pytest.approx(
        [0.5, 1, 0.5]
    )
    assert rd.ope.popularity_propensity(log, gamma=1)["propensity"].tolist() == pytest.approx(
        [1 / 9, 1, 4 / 9]
    )
    assert rd.ope.popularity_propensity(log, gamma=0)["propensity"].tolist() == pytest.approx(
        [1 / 3, 1, 2 / 3]
    )

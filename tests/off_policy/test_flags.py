"""Each flag where it must stand, one step away where it must not, and the word of trust that
follows."""

import math

import numpy as np
import pandas as pd
import pytest
from off_policy.logs import bandit_log

import recdf as rd
from recdf.off_policy.estimate_value import FLAGS, trust
from recdf.off_policy.plan import Plan
from recdf.off_policy.read_log import read_log
from recdf.off_policy.weighted_rows import model_mismatch_z


def even_log(n, rewards=None, users=None, weight=1.0):
    """A log of equal weights; the first `rewards` rows have reward 1, on every second row."""
    rewards = n // 2 if rewards is None else rewards
    reward = np.zeros(n)
    reward[: 2 * rewards : 2] = 1
    user = np.arange(n) if users is None else np.arange(n) % users
    return pd.DataFrame(
        {"user_id": user, "reward": reward, "propensity": 0.5, "target_propensity": 0.5 * weight}
    )


def flags_of(log, estimator="ips", **options):
    """Flags but `same_policy`, which stands on every log of equal weights 1."""
    flags = rd.ope.estimate(log, estimators=estimator, **options).iloc[0]["flags"]
    return flags.removeprefix("same_policy").removeprefix(", ").split(", ")


@pytest.mark.parametrize(("rewards", "flagged"), [(99, True), (100, False)])
def test_few_rewards(rewards, flagged):
    assert ("few_rewards" in flags_of(even_log(1000, rewards))) is flagged


@pytest.mark.parametrize(("n_heavy", "flagged"), [(0, False), (10, False), (30, True)])
def test_rewards_that_heavy_rows_happen_not_to_have(n_heavy, flagged):
    # Weights are 0.75 where there are rewards, and 12.5 in a few rows without one, of which the
    # rewards say nothing.
    heavy = np.arange(2000) >= 2000 - n_heavy
    log = even_log(2000, 400).assign(target_propensity=0.75, propensity=np.where(heavy, 0.06, 1.0))
    row = rd.ope.estimate(log, estimators="snips").iloc[0]
    weights = np.where(heavy, 12.5, 0.75)
    expected = weights.sum() ** 2 / (weights**2).sum() * 400 * 0.75 / weights.sum()
    assert row["ess_reward"] == pytest.approx(400)
    assert row["ess_reward_expected"] == pytest.approx(expected)
    assert expected == pytest.approx(row["ess"] * row["value"])
    assert (expected < 100) == flagged
    assert ("few_rewards" in row["flags"]) is flagged


def test_rewards_to_expect_of_amounts_and_of_negatives_that_were_sampled_down():
    amounts = even_log(1000).assign(reward=np.arange(1000.0))
    found = rd.ope.diagnostics(amounts).iloc[0]
    assert found["ess_reward_expected"] == pytest.approx(499_500**2 / 332_833_500)
    # 500 slates of two rows, each of them with one reward: 250 first rows and 250 second ones have
    # it.
    slates = even_log(1000).assign(slate=np.arange(1000) // 2, position=np.arange(1000) % 2 + 1)
    slates["reward"] = (slates["slate"] % 2 == slates["position"] - 1).astype(float)
    found = rd.ope.diagnostics(
        slates, slate_col="slate", interaction="independent", cluster="slate"
    ).iloc[0]
    assert (found["ess_reward"], found["ess_reward_expected"]) == pytest.approx((500, 500))
    # 200 rewards are kept, and of the rows without one every fifth: as many rewards as there were.
    kept = even_log(1000, 200).assign(kept=lambda log: np.where(log["reward"] > 0, 1.0, 5.0))
    found = rd.ope.estimate(kept, weight_col="kept")
    assert found["ess_reward_expected"].tolist() == pytest.approx([200, 200])


@pytest.mark.parametrize(("n", "flagged"), [(299, True), (300, False)])
def test_low_ess(n, flagged):
    found = flags_of(even_log(n, n // 2))
    assert ("low_ess" in found) is flagged
    assert ("mean_weight_untestable" in found) is flagged


@pytest.mark.parametrize(("n", "flagged"), [(40_100, True), (39_900, False)])
def test_low_ess_share(n, flagged):
    log = even_log(n)
    # 400 rows hold all weight, and the mean weight is 1.
    log["target_propensity"], log["propensity"] = 0.0, 400 / n
    log.loc[:399, "target_propensity"] = 1.0
    assert ("low_ess" in flags_of(log)) is flagged


@pytest.mark.parametrize(("largest", "flagged"), [(120, True), (105, False)])
def test_dominated(largest, flagged):
    log = even_log(1000).assign(propensity=0.005, target_propensity=0.005)
    log.loc[0, "target_propensity"] = 0.005 * largest
    row = rd.ope.estimate(log, estimators="ips").iloc[0]
    assert row["max_weight_share"] == pytest.approx(largest / (999 + largest))
    assert ("dominated" in row["flags"]) is flagged


def two_weights(share):
    """Weights 0 and 2; the share of rows with weight 2 sets the mean weight, whose z is known."""
    log = even_log(1000)
    n_high = round(1000 * share)
    log["target_propensity"] = np.where(np.arange(1000) < n_high, 1.0, 0.0)
    return log


@pytest.mark.parametrize("share", [0.45, 0.46, 0.47, 0.5, 0.54, 0.55])
def test_mean_weight_and_unsupported(share):
    row = rd.ope.estimate(two_weights(share), estimators="ips").iloc[0]
    z = (2 * share - 1) / (2 * math.sqrt(share * (1 - share) / 999))
    diagnosed = rd.ope.diagnostics(two_weights(share)).iloc[0]
    assert diagnosed["weight_mean_z"] == pytest.approx(z, abs=1e-9)
    assert ("mean_weight" in row["flags"].split(", ")) is (abs(z) > 3)
    assert ("unsupported" in row["flags"]) is (z < -2)
    assert row["unsupported_mass"] == pytest.approx(max(1 - 2 * share, 0), abs=1e-12)


def test_the_mean_weight_is_tested_over_clusters():
    # The same low share, but whole users of 50 rows have one weight: chance explains it.
    log = two_weights(0.4).assign(user_id=np.arange(1000) // 50)
    assert "mean_weight" in flags_of(log, cluster=None)
    assert not {"mean_weight", "unsupported"} & set(flags_of(log))


@pytest.mark.parametrize(("users", "flagged"), [(49, True), (50, False)])
def test_few_clusters(users, flagged):
    log = even_log(2000, users=users)
    assert ("few_clusters" in flags_of(log)) is flagged
    assert "few_clusters" not in flags_of(log, cluster=None)


def test_rows_of_users_that_are_taken_for_independent():
    log = even_log(2000, users=1000)
    assert flags_of(log, cluster=None) == ["unclustered"]
    assert flags_of(log) == [""]
    assert flags_of(even_log(2000), cluster=None) == [""]
    assert flags_of(log.drop(columns="user_id"), cluster=None) == [""]
    assert rd.ope.diagnostics(log, cluster=None)["flags"][0] == "same_policy, unclustered"
    # A log that is stacked by model repeats its users, but not within a model.
    stacked = pd.concat([even_log(2000).assign(model=model) for model in "ab"])
    assert (
        rd.ope.estimate(stacked, by="model", cluster=None)["flags"].tolist() == ["same_policy"] * 4
    )
    # The value does not depend on clusters, but its interval does.
    word = "do not use the interval: users have several rows"
    assert rd.ope.estimate(log, cluster=None)["trust"].tolist() == [word, word]


def test_concentrated():
    # One user in a hundred has half of the rows.
    rng = np.random.default_rng(0)
    log = even_log(2000).assign(reward=rng.integers(0, 2, 2000), user_id=np.arange(2000) % 100)
    assert "concentrated" not in flags_of(log)
    heavy = log.assign(
        user_id=np.where(np.arange(2000) % 2, 0, log["user_id"]),
        reward=lambda log: log["user_id"] == 0,
    )
    row = rd.ope.estimate(heavy, estimators="ips").iloc[0]
    assert "concentrated" in row["flags"]
    psi = (heavy["reward"] - heavy["reward"].mean()).groupby(heavy["user_id"]).sum()
    assert row["ess_influence"] == pytest.approx((psi**2).sum() ** 2 / (psi**4).sum())


def test_clip_bias():
    log = bandit_log(5000, users=5000)
    weights = log["target_propensity"] / log["propensity"]
    table = rd.ope.estimate(log, clip=[1.0, weights.max()], estimators=["ips", "snips"])
    assert table["flags"].str.contains("clip_bias").tolist() == [True, False, True, False]


def test_a_reward_model_alone_is_never_trusted():
    log = even_log(1000).assign(q_logged=0.5, q_target=0.5)
    row = rd.ope.estimate(log, estimators="dm", q_logged="q_logged", q_target="q_target").iloc[0]
    assert row["flags"] == "model_only, same_policy"
    assert row["trust"] == "do not use alone: reward model only"


@pytest.mark.parametrize(
    ("flags", "half", "method", "word"),
    [
        ([], 0.2, "delta", "ok"),
        ([], 0.21, "delta", "wide"),
        ([], math.nan, "delta", "wide"),
        (["mean_weight_untestable"], 0.1, "delta", "ok"),
        (["few_rewards", "low_ess"], 0.1, "delta", "do not use: few rewards"),
        (["low_ess", "dominated"], 0.1, "bootstrap", "do not use: few effective rows"),
        (["unsupported"], 0.1, "delta", "do not use: unsupported actions, or wrong propensities"),
        (
            ["unsupported", "mean_weight"],
            0.1,
            "delta",
            "do not use: unsupported actions, or wrong propensities",
        ),
        (["same_policy"], 0.1, "delta", "ok"),
        (["few_rewards", "low_ess"], 0.1, "bounded", "use the interval only: few rewards"),
        (["few_rewards", "unsupported"], 0.1, "bounded", "do not use: few rewards"),
    ],
)
def test_trust_follows_from_the_flags(flags, half, method, word):
    assert trust(flags, 1.0, 1 - half, 1 + half, method)["trust"] == word


def test_every_flag_has_a_meaning_and_stands_on_the_docstring():
    for name, (_, meaning) in FLAGS.items():
        assert meaning
        assert f"`{name}`" in rd.ope.estimate.__doc__


def test_flags_without_a_finding_are_empty():
    # The logging policy decides by a coin, and the target policy by another one.
    other = even_log(2000).assign(
        target_propensity=lambda log: np.where(np.arange(2000) % 4 < 2, 0.4, 0.6)
    )
    row = rd.ope.estimate(other, estimators="snips").iloc[0]
    assert row["flags"] == ""
    assert row["trust"] == "ok"


RATES = np.array([0.1, 0.2, 0.3, 0.4])


def model_log(n=4000, seed=0):
    """Four items, shown by one policy and asked for by another; the model knows the reward of each
    item."""
    logged, target = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.3, 0.3, 0.2, 0.2])
    rng = np.random.default_rng(seed)
    item = rng.choice(4, n, p=logged)
    log = pd.DataFrame(
        {
            "user_id": np.arange(n) // 2,
            "item_id": item,
            "reward": (rng.random(n) < RATES[item]) * 1.0,
        }
    )
    log = log.assign(propensity=logged[item], target_propensity=target[item])
    return log.assign(q_logged=RATES[item], q_target=float(target @ RATES))


@pytest.mark.parametrize(
    ("change", "flagged"),
    [
        ({}, False),
        ({"q_logged": 0.3, "q_target": 0.3}, False),  # a bad model of the right policy
        (
            {"q_target": 0.2},
            True,
        ),  # the logging policy's mean, 0.1·0.4 + 0.2·0.3 + 0.3·0.2 + 0.4·0.1
        ({"q_target": 0.115}, True),  # candidates whose probabilities sum to a half
        ({"q_logged": "q_target", "q_target": "q_logged"}, True),  # swapped
        ({"q_logged": 5.0, "q_target": 0.1}, True),
    ],
)
def test_model_mismatch(change, flagged):
    log = model_log()
    log = log.assign(
        **{name: log[value] if isinstance(value, str) else value for name, value in change.items()}
    )
    options = {
        "estimators": ["ips", "dm", "dr", "sndr"],
        "q_logged": "q_logged",
        "q_target": "q_target",
    }
    table = rd.ope.estimate(log, **options).set_index("estimator")
    found = table["flags"].str.contains("model_mismatch")
    assert found.to_dict() == {"ips": False, "dm": flagged, "dr": flagged, "sndr": flagged}
    word = "do not use: reward model does not fit the target policy"
    assert (table.loc[["dr", "sndr"], "trust"] == word).tolist() == [flagged, flagged]
    both = pd.concat(
        [
            log.assign(model="a"),
            log.assign(model="b", q_target=0.23, q_logged=model_log()["q_logged"]),
        ]
    )
    compared = rd.ope.compare(both, **options | {"estimators": "dr"})
    assert ("model_mismatch" in compared["flags"][0]) is flagged


@pytest.mark.parametrize("cluster", ["user_id", None])
@pytest.mark.parametrize("kept", [None, "kept"])
def test_size_of_a_model_mismatch(cluster, kept):
    log = model_log(60).assign(kept=lambda log: 1.0 + np.arange(60) % 3)
    plan = Plan(
        "dr",
        weight_col=kept,
        q_logged="q_logged",
        q_target="q_target",
        cluster=cluster,
    )
    log["q_target"] = np.linspace(0.1, 0.3, 60)
    s = log["kept"] if kept else np.ones(60)
    w = log["target_propensity"] / log["propensity"] * s
    logged, target = (w * log["q_logged"]).sum() / w.sum(), (s * log["q_target"]).sum() / s.sum()
    psi = w * (log["q_logged"] - logged) / w.sum() - s * (log["q_target"] - target) / s.sum()
    sums = psi.groupby(log["user_id"] if cluster else np.arange(60)).sum()
    se = math.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum())
    found = model_mismatch_z(read_log(log, plan).rows(None, None))
    assert found == pytest.approx((logged - target) / se)


def test_an_estimate_says_of_which_clusters_it_speaks():
    """Users of 40 rows are so rare that a log of 200 may have none, and they may lose all."""
    log = even_log(1000)
    log["user_id"] = np.r_[np.zeros(3), np.arange(997)].astype(int)  # one of 4 rows
    row = rd.ope.estimate(log, estimators="ips").iloc[0]
    assert row["holds_for"] == "clusters of up to 4 rows"
    assert (row["effect"], row["trust"]) == ("ok", "ok, for clusters of up to 4 rows")
    both = pd.concat([log.assign(model="x"), log.assign(model="y")])
    row = rd.ope.compare(both, estimators="ips").iloc[0]
    assert row["holds_for"] == "clusters of up to 4 rows"
    for even in (even_log(1000), even_log(1000, users=500)):
        row = rd.ope.estimate(even, estimators="ips").iloc[0]
        assert (row["holds_for"], row["trust"]) == ("", "ok")
    few = rd.ope.estimate(log.assign(reward=log["reward"] * (log.index < 90)), estimators="ips")
    assert few["trust"].tolist() == ["do not use: few rewards"]

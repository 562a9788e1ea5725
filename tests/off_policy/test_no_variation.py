"""A log whose rewards do not vary, such as one of clicked rows only, tells nothing; a log with
other rows does."""

import re

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main

BOUNDS = {"interval": "bounded", "reward_range": (0.0, 1.0), "weight_range": (0.0, 3.0)}
LIMITS = ["se", "ci_low", "ci_high", "lift_se", "lift_ci_low", "lift_ci_high"]


def clicks(n=4000, seed=0):
    """Impressions of two items; the target policy shows them the other way round."""
    rng = np.random.default_rng(seed)
    item = rng.random(n) < 0.4
    log = pd.DataFrame({"user_id": np.arange(n), "reward": (rng.random(n) < 0.3) * 1.0})
    return log.assign(
        propensity=np.where(item, 0.4, 0.6), target_propensity=np.where(item, 0.6, 0.4)
    )


@pytest.mark.few(5)
@pytest.mark.parametrize("options", [{}, {"interval": "bootstrap"}, BOUNDS, {"cluster": None}])
@pytest.mark.parametrize("value", [1.0, 0.25, [0.1 + 0.2, 0.3]])
def test_clicked_rows_only(options, value):
    log = clicks()
    whole = rd.ope.estimate(log, **options)
    assert whole["trust"].tolist() == ["ok", "ok"]
    table = rd.ope.estimate(
        log[log["reward"] > 0].assign(reward=lambda rows: np.resize(value, len(rows))), **options
    )
    assert table["flags"].str.startswith("no_variation").all()
    assert table["trust"].tolist() == ["do not use: rewards do not vary"] * 2
    assert table[LIMITS].isna().all(axis=None)


def test_no_reward_at_all_has_a_bounded_interval_alone():
    log = clicks().assign(reward=0.0)
    table = rd.ope.estimate(log)
    assert table[LIMITS].isna().all(axis=None)
    assert table["trust"].tolist() == ["do not use: few rewards"] * 2
    bounded = rd.ope.estimate(log, **BOUNDS)
    assert bounded["trust"].tolist() == ["use the interval only: few rewards"] * 2
    assert (bounded["ci_high"] > 0).all()


def test_one_group_and_one_target():
    log = clicks().assign(
        country=lambda log: np.where(log["reward"] * (log["user_id"] % 3 == 0) > 0, "x", "y")
    )
    table = rd.ope.estimate(log, by="country", estimators="snips").set_index("country")
    assert table.loc["x", "trust"] == "do not use: rewards do not vary"
    assert table.loc["y", "trust"] == "ok"
    # Policy b shows what was clicked, and nothing else.
    only = log["target_propensity"].where(log["reward"] > 0, 0.0)
    both = pd.concat([log.assign(model="a"), log.assign(model="b", target_propensity=only)])
    found = rd.ope.estimate(both, by="model", estimators="snips").set_index("model")
    assert found["flags"].str.contains("no_variation").to_dict() == {"a": False, "b": True}
    compared = rd.ope.compare(both, estimators="snips").iloc[0]
    assert compared["trust"] == "do not use: rewards do not vary"
    assert compared[["se", "ci_low", "ci_high"]].isna().all()
    diagnosed = rd.ope.diagnostics(both, by="model").set_index("model")
    assert diagnosed.loc["b", "trust"] == "do not use: rewards do not vary"
    assert diagnosed.loc["a", "trust"] == "ok"


def test_slates_that_were_all_clicked_once():
    rng = np.random.default_rng(1)
    n = 2000
    log = pd.DataFrame({"user_id": np.repeat(np.arange(n), 3), "slate": np.repeat(np.arange(n), 3)})
    log["position"] = np.tile([1, 2, 3], n)
    log["propensity"], log["target_propensity"] = 0.5, rng.choice([0.4, 0.6], 3 * n)
    log["reward"] = (log["position"] == np.repeat(rng.integers(1, 4, n), 3)) * 1.0
    options = {"slate_col": "slate", "interaction": "independent", "estimators": "snips"}
    assert rd.ope.estimate(log, **options)["flags"].str.contains("no_variation").all()
    log.loc[log["slate"] < 100, "reward"] = 0.0
    assert not rd.ope.estimate(log, **options)["flags"].str.contains("no_variation").any()


@pytest.mark.long
def test_the_command_and_the_page_say_why(tmp_path, capsys):
    log = clicks()
    log = log[log["reward"] > 0].assign(item_id="a")
    log.to_csv(tmp_path / "log.csv", index=False)
    assert main(["ope", str(tmp_path / "log.csv")]) == 0
    printed = capsys.readouterr().out
    assert "do not use: rewards do not vary" in printed
    assert "no_variation: all rewards under the target policy are equal" in printed
    shop = rd.sample_shop()
    result = rd.evaluate(shop.true, shop.pred, "ndcg", by="model")
    rd.report(result, tmp_path / "report.html", off_policy=rd.ope.estimate(log))
    words = re.sub("<[^>]+>", " ", (tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "2 of them should not be used" in words
    assert "no variation" in words


@pytest.mark.parametrize("value", [-3.0, 1e12, 0.1])
def test_flags_do_not_follow_the_rounding_of_rewards_that_do_not_vary(value):
    rng = np.random.default_rng(0)
    log = pd.DataFrame(
        {
            "user_id": rng.integers(0, 20, 60),
            "reward": value,
            "propensity": rng.uniform(0.05, 1, 60),
            "target_propensity": rng.uniform(0, 1, 60),
        }
    )
    tables = [
        rd.ope.estimate(log.sample(frac=1, random_state=seed), clip=[None, 2.0])
        for seed in range(20)
    ]
    for table in tables:
        assert table["ess_influence"].isna().all()
        assert table["flags"].tolist() == tables[0]["flags"].tolist()

"""Numbers of other programs and closed forms: tests/golden/ope.json and ope_older.json (obp,
vw-estimators, hand)."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import recdf as rd

GOLDEN = Path(__file__).parents[1] / "golden"
OPE = json.loads((GOLDEN / "ope.json").read_text(encoding="utf-8"))["data"]
OLD = json.loads((GOLDEN / "ope_older.json").read_text(encoding="utf-8"))
Q = {"q_logged": "q_logged", "q_target": "q_target"}
CLOSE = {"rel": 1e-9, "abs": 1e-13}


def bandit():
    return pd.read_csv(GOLDEN / "ope_bandit.csv")


def campaign(name):
    log = pd.read_parquet(GOLDEN / "ope_open_bandit.parquet")
    return log[log["campaign"] == name]


CASES = {"bandit": (bandit, OPE["bandit"], "user_id")} | {
    name: (lambda name=name: campaign(name), OPE["open_bandit"]["campaigns"][name], None)
    for name in ("men", "women", "all")
}


def by_estimator(table):
    assert table["estimator"].is_unique
    return table.set_index("estimator")


@pytest.mark.parametrize("case", CASES)
def test_values_of_obp(case):
    make, golden, cluster = CASES[case]
    table = by_estimator(
        rd.ope.estimate(
            make(), estimators=["ips", "snips", "dm", "dr", "sndr"], cluster=cluster, **Q
        )
    )
    for name in table.index:
        assert table.loc[name, "value"] == pytest.approx(golden["obp"][name]["value"], **CLOSE), (
            name
        )


@pytest.mark.parametrize("case", CASES)
def test_clipped_values_of_obp(case):
    make, golden, cluster = CASES[case]
    clips = sorted({int(name.split("=")[1][:-1]) for name in golden["obp"] if "clip" in name})
    assert len(clips) == 3
    table = rd.ope.estimate(
        make(), estimators=["ips", "dr", "switch_dr", "dros"], clip=clips, cluster=cluster, **Q
    ).set_index(["estimator", "clip"])
    assert len(table) == 12
    for name, clip in table.index:
        expected = golden["obp"][f"{name}[clip={clip:.0f}]"]["value"]
        assert table.loc[(name, clip), "value"] == pytest.approx(expected, **CLOSE), (name, clip)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("clustered", [True, False])
def test_closed_forms(case, clustered):
    make, golden, cluster = CASES[case]
    closed = golden["closed_form"]
    which = "se_cluster" if clustered else "se_rows"
    table = by_estimator(
        rd.ope.estimate(
            make(),
            estimators=["ips", "snips", "dr", "sndr"],
            cluster=cluster if clustered else None,
            **Q,
        )
    )
    for name in table.index:
        assert table.loc[name, "value"] == pytest.approx(closed[name]["value"], **CLOSE)
        assert table.loc[name, "se"] == pytest.approx(closed[name][which], **CLOSE)
    snips = table.loc["snips"]
    assert snips["lift"] == pytest.approx(closed["snips_lift"]["value"], **CLOSE)
    assert snips["lift_se"] == pytest.approx(closed["snips_lift"][which], **CLOSE)
    for name in (
        "ess",
        "weight_mean",
        "weight_max",
        "max_weight_share",
        "logging_value",
        "ess_reward",
    ):
        assert snips[name] == pytest.approx(closed[name], **CLOSE), name


@pytest.mark.few(2)
@pytest.mark.parametrize("case", CASES)
def test_clipped_closed_forms(case):
    make, golden, _ = CASES[case]
    for clip, closed in golden["clipped_closed_form"].items():
        table = by_estimator(rd.ope.estimate(make(), clip=float(clip), cluster=None))
        assert table.loc["ips", "value"] == pytest.approx(closed["ips"], **CLOSE)
        assert table.loc["snips", "value"] == pytest.approx(closed["snips"], **CLOSE)
        assert table.loc["snips", "se"] == pytest.approx(closed["snips_se_rows"], **CLOSE)
        assert table.loc["snips", "n_clipped"] == closed["n_clipped"]
        assert table.loc["snips", "clipped_mass"] == pytest.approx(closed["clipped_mass"], **CLOSE)


@pytest.mark.parametrize("case", CASES)
def test_bounded_interval_of_vw_estimators(case):
    make, golden, _ = CASES[case]
    vw = golden["vw_estimators_0.2.2"]
    table = rd.ope.estimate(
        make(),
        cluster=None,
        interval="bounded",
        reward_range=(vw["rmin"], vw["rmax"]),
        weight_range=(vw["wmin"], vw["wmax"]),
        confidence=1 - vw["alpha"],
    )
    for row in table.itertuples():
        assert [row.ci_low, row.ci_high] == pytest.approx(vw["cressieread_interval"], **CLOSE)


@pytest.mark.parametrize("name", ["men", "women", "all"])
def test_every_campaign_of_open_bandit_has_too_few_rewards(name):
    table = rd.ope.estimate(
        campaign(name), estimators=["ips", "snips", "dr", "sndr"], cluster=None, **Q
    )
    assert table["flags"].str.contains("few_rewards").all()
    assert (table["trust"] == "do not use: few rewards").all()


SLATE_KINDS = {
    "marginal": "item",
    "conditional": "conditional",
    "cascade": "prefix",
    "slate": "slate",
}
SLATES = [
    ("iips", "marginal"),
    ("sniips", "marginal"),
    ("rips", "conditional"),
    ("snrips", "conditional"),
    ("rips", "cascade"),
    ("snrips", "cascade"),
    ("sips", "conditional"),
    ("snsips", "conditional"),
    ("sips", "cascade"),
    ("snsips", "cascade"),
    ("sips", "slate"),
    ("snsips", "slate"),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("name", "kind"), SLATES)
def test_slates(name, kind):
    log = pd.read_csv(GOLDEN / "ope_slate.csv")
    options = {
        "propensity_col": f"p_{kind}",
        "target_col": f"e_{kind}",
        "propensity_kind": SLATE_KINDS[kind],
    }
    row = rd.ope.estimate(log, estimators=name, slate_col="slate", cluster=None, **options).iloc[0]
    closed = OPE["slate"]["closed_form"][name]
    assert row["value"] == pytest.approx(OPE["slate"]["obp"][name], **CLOSE)
    assert row["value"] == pytest.approx(closed["value"], **CLOSE)
    assert row["se"] == pytest.approx(closed["se"], **CLOSE)
    if "ess_by_position" in closed:
        assert row["ess"] == pytest.approx(min(closed["ess_by_position"]), **CLOSE)
    interaction = {"i": "independent", "r": "cascade", "s": "standard"}[name.removeprefix("sn")[0]]
    usual = "snips" if name.startswith("sn") else "ips"
    options |= {"slate_col": "slate", "interaction": interaction, "cluster": None}
    same = rd.ope.estimate(log, estimators=usual, **options).iloc[0]
    assert same.drop("estimator").equals(row.drop("estimator"))


def test_the_older_log():
    log, golden = pd.read_csv(GOLDEN / "ope_log.csv"), OLD["ope_log"]
    plain = by_estimator(
        rd.ope.estimate(log, estimators=["ips", "snips", "dm", "dr", "sndr"], cluster=None, **Q)
    )
    for name in plain.index:
        assert plain.loc[name, "value"] == pytest.approx(golden[name], **CLOSE)
    assert plain.loc["ips", ["ess", "weight_max", "weight_mean"]].tolist() == pytest.approx(
        [golden["ess"], golden["w_max"], golden["w_mean"]], **CLOSE
    )
    clipped = rd.ope.estimate(
        log, estimators=["ips", "dr", "switch_dr", "dros"], clip=[1, 3], cluster=None, **Q
    )
    for row in clipped.itertuples():
        key = {"ips": "ips_clip", "dr": "dr_clip", "switch_dr": "switch_dr", "dros": "dros"}[
            row.estimator
        ]
        assert row.value == pytest.approx(golden[f"{key}{row.clip:.0f}"], **CLOSE)


def test_the_older_slates():
    log, golden = pd.read_csv(GOLDEN / "slate_log.csv"), OLD["slate_log"]
    marginal = {"propensity_col": "marg_propensity", "target_col": "marg_target"}
    conditional = {
        "propensity_col": "cond_propensity",
        "target_col": "cond_target",
        "propensity_kind": "conditional",
    }
    for names, options in (
        (["iips", "sniips"], marginal),
        (["rips", "snrips", "sips", "snsips"], conditional),
    ):
        table = by_estimator(
            rd.ope.estimate(log, estimators=names, slate_col="slate_id", **options)
        )
        for name in names:
            assert table.loc[name, "value"] == pytest.approx(golden[name], **CLOSE)
        assert table["logging_value"].tolist() == pytest.approx(
            [golden["on_policy"]] * len(names), **CLOSE
        )
    assert np.isfinite(table["se"]).all()

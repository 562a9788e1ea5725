"""Effects by period of a ramp-up, which are compared within the days of exposure."""

import math

import numpy as np
import pandas as pd
import pytest
from experiments.periods import ORDERS, assert_level, many, ramp, welch
from quick import few
from scipy import stats

import recdf as rd
from recdf.experiments import effect_over_time


def stratified(values, stratum, unit):
    """Σ W_h R_h of an arm, by hand; with the contribution of each user to it. Values are (num,) or
    (num, den)."""
    parts = {}
    for h, share in stratum["share"].items():
        own = {user: one for user, one in values.items() if stratum["of"][user] == h}
        mean, _, z = welch(list(own.values()))
        for user, one in zip(own, z, strict=True):
            parts[user] = share * one / len(own)
        parts[h, "mean"] = share * mean
    return math.fsum(one for key, one in parts.items() if isinstance(key, tuple)), {
        key: one for key, one in parts.items() if not isinstance(key, tuple)
    }


def variance(parts, stratum, unit):
    """Σ_g (Σ_h √(n_h/(n_h − 1))·(u_gh − mean of u_h))², with u_gh what unit g adds in stratum h."""
    cells = {}
    for user, one in parts.items():
        cell = stratum[user], unit(user)
        cells[cell] = cells.get(cell, 0.0) + one
    units = {}
    for h in {h for h, _ in cells}:
        own = {g: one for (k, g), one in cells.items() if k == h}
        centre, n = math.fsum(own.values()) / len(own), len(own)
        for g, one in own.items():
            units[g] = units.get(g, 0.0) + math.sqrt(n / (n - 1)) * (one - centre)
    return math.fsum(one * one for one in units.values())


@pytest.mark.long
@pytest.mark.parametrize("kind", ["daily", "cumulative", "since_exposure"])
@pytest.mark.parametrize(
    ("columns", "cluster"), few([(["x", "shown"], None), (["x"], None), (["x"], "shop")], 1)
)
def test_a_ramp_up_is_compared_within_the_days_of_exposure(rng, kind, columns, cluster):
    rows, users = ramp(rng)
    metric = {"m": columns[0] if len(columns) == 1 else tuple(columns)}
    table = effect_over_time(rows, metric, kind=kind, cluster=cluster, **ORDERS, details=True)
    who = users.set_index("user_id")
    day, variant, shop = who["exposed"].to_dict(), who["variant"].to_dict(), who["shop"].to_dict()
    own_unit = (lambda user: user) if cluster is None else shop.get

    def of_period(period, cumulative):
        """{user: sums}, of the users who are there."""
        age = rows["time"] - rows["exposed"]
        if kind == "since_exposure":
            chosen = rows[age == period]
            there = [user for user in day if day[user] + period < 8]
        else:
            chosen = rows[
                (age >= 0) & ((rows["time"] <= period) if cumulative else (rows["time"] == period))
            ]
            there = [user for user in day if day[user] <= period]
        sums = chosen.groupby("user_id")[columns].sum()
        return dict(
            zip(sums.index.tolist(), map(tuple, sums.to_numpy().tolist()), strict=True)
        ), there

    for treatment in "BC":
        found = table[table["treatment"] == treatment].reset_index(drop=True)
        parts, effects, weights, place = {}, [], [], []
        for period in range(8):
            for cumulative in {kind == "cumulative", False}:
                sums, there = of_period(period, cumulative)
                values = {
                    v: {u: sums[u] for u in there if variant[u] == v} for v in ("A", treatment)
                }
                n = {
                    v: {h: len({own_unit(u) for u in own if day[u] == h}) for h in range(5)}
                    for v, own in values.items()
                }
                strata = [h for h in range(5) if min(own[h] for own in n.values()) >= 2]
                if not strata:
                    assert np.isnan(found.loc[period, "se"])
                    continue
                values = {
                    v: {u: one for u, one in own.items() if day[u] in strata}
                    for v, own in values.items()
                }
                size = {
                    h: sum(
                        one[-1] if len(columns) > 1 else 1
                        for own in values.values()
                        for u, one in own.items()
                        if day[u] == h
                    )
                    for h in strata
                }
                stratum = {"of": day, "share": {h: size[h] / sum(size.values()) for h in strata}}
                means, of_users = zip(
                    *(stratified(own, stratum, own_unit) for own in values.values()), strict=True
                )
                if cumulative == (kind == "cumulative"):
                    row = found.loc[period]
                    assert row["diff"] == pytest.approx(means[1] - means[0], rel=1e-9)
                    if cluster is None:
                        se = math.sqrt(sum(variance(one, day, own_unit) for one in of_users))
                        assert row["se"] == pytest.approx(se, rel=1e-9)
                        assert row["n_treatment"] == len(values[treatment])
                        assert row["n_dropped_control"] == sum(
                            day[u] not in strata for u in there if variant[u] == "A"
                        )
                if not cumulative:
                    inverse = sum(
                        stratum["share"][h] ** 2 / sum(day[u] == h for u in own)
                        for own in values.values()
                        for h in strata
                    )
                    effects.append(means[1] - means[0])
                    weights.append(1 / inverse)
                    place.append(period)
                    for own in of_users:
                        for user, one in own.items():
                            parts.setdefault(user, {})[len(place) - 1] = one
        centre = np.average(place, weights=weights)
        c = [
            w
            * (d - centre)
            / sum(v * (e - centre) ** 2 for v, e in zip(weights, place, strict=True))
            for w, d in zip(weights, place, strict=True)
        ]
        assert found["trend"].iloc[0] == pytest.approx(
            math.fsum(np.multiply(c, effects)), rel=1e-9, abs=1e-12
        )
        var = 0.0
        for v in ("A", treatment):
            mine = {
                u: sum(c[d] * one for d, one in own.items())
                for u, own in parts.items()
                if variant[u] == v
            }
            var += variance(mine, day, own_unit)
        assert found["trend_se"].iloc[0] == pytest.approx(math.sqrt(var), rel=1e-9)


def test_a_ramped_day_is_that_of_compare_variants_in_strata(rng):
    rows, _ = ramp(rng)
    rows = rows[rows["variant"] != "C"]
    table = effect_over_time(rows, "x", cluster="shop", **ORDERS, details=True)
    last = table[table["period"] == 7].iloc[0]
    same = rd.compare_variants(
        rows[rows["time"] == 7],
        "x",
        control="A",
        cluster="shop",
        strata="exposed",
        time_col="exposed",
        details=True,
    ).iloc[0]
    assert last["method"] == same["method"] == "welch+strata+cluster"
    for name in (
        "n_control",
        "n_treatment",
        "mean_control",
        "diff",
        "se",
        "df",
        "p_value",
        "diff_without_top",
    ):
        assert last[name] == pytest.approx(same[name], rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["daily", "cumulative", "since_exposure"])
def test_a_ramp_up_covers_the_truth_and_fades_only_by_chance(rng, kind):
    """The treatment gains .5 on every day; users who come later, and all users on later days, have
    more."""
    draws, of_draw, n = 2, 60, 600
    missed = fading = pooled = 0
    for _ in range(draws):
        users = pd.DataFrame({"user_id": range(n), "exposed": rng.integers(0, 4, n)})
        users["variant"] = np.where(rng.random(n) < 0.2 + 0.15 * users["exposed"], "B", "A")
        rows = users.merge(pd.DataFrame({"time": range(4)}), how="cross")
        certain = rows["exposed"] + 0.5 * rows["time"] + 0.5 * (rows["variant"] == "B")
        own = rng.normal(0, 1, (n, of_draw))[rows["user_id"]]
        rows, names = many(rows, own + rng.normal(0, 1, own.shape) + certain.to_numpy()[:, None])
        table = effect_over_time(rows, names, kind=kind, correction="none", **ORDERS, details=True)
        last = table[table["period"] == (2 if kind == "since_exposure" else 3)]
        if (
            kind == "cumulative"
        ):  # users of the first day have had it four times, and the others less often
            there = users.groupby("exposed").size()
            truth = 0.5 * ((4 - there.index) * there).sum() / there.sum()
            missed += ((last["ci_low"] > truth) | (last["ci_high"] < truth)).sum()
        else:
            missed += (abs(last["diff"] - 0.5) > (last["ci_high"] - last["ci_low"]) / 2).sum()
        fading += (table[:of_draw]["trend_p"] < 0.05).sum()
        assert not table["verdict"].str.contains("shares").any()
        # The days of exposure put together would be wrong.
        day = rows[rows["time"] == 3].groupby("variant")[names].mean()
        pooled += (day.loc["B"] - day.loc["A"] > 0.8).sum()
    assert pooled == draws * of_draw
    assert stats.binom.sf(missed - 1, draws * of_draw, 0.05) > 0.001
    assert_level(fading, draws * of_draw)

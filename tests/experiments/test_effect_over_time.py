"""Effects by period: daily, cumulative and by days since the exposure, and their trend."""

import datetime
import math

import numpy as np
import pandas as pd
import pytest
from quick import few
from scipy import stats

import recdf as rd
from recdf.experiments import effect_over_time

ORDERS = {"control": "A", "time_col": "time", "exposure_col": "exposed"}


@pytest.fixture
def log(rng):
    """Purchases of 300 users of three variants who are exposed over a week, some of them more than
    once a day."""
    n = 300
    users = pd.DataFrame(
        {"user_id": [f"u{i:03}" for i in range(n)], "variant": rng.choice(["A", "B", "C"], n)}
    )
    users["region"] = rng.integers(0, 60, n)
    start = pd.Timestamp("2026-03-25 06:00")
    users["exposed"] = start + pd.to_timedelta(rng.integers(0, 7 * 86400, n), unit="s")
    rows = users.iloc[rng.integers(0, n - 10, 4000)].reset_index(drop=True)  # ten users have no row
    rows["time"] = start + pd.to_timedelta(rng.integers(0, 12 * 86400, len(rows)), unit="s")
    rows["value"] = rng.gamma(2, 3, len(rows)).round(2)
    rows["shown"] = rng.integers(0, 4, len(rows))
    rows["wait"] = rng.exponential(1, len(rows))
    return rows, users


def by_hand(rows, users, kind, columns, how="sum"):
    """One number per user of every period, in plain Python: {period: {user: value or (num,
    den)}}."""
    who = {row["user_id"]: row for row in users.to_dict("records")}
    events = [
        row for row in rows.to_dict("records") if row["time"] >= who[row["user_id"]]["exposed"]
    ]
    last = {}
    for row in rows.to_dict("records"):
        day = row["time"].date()
        last[day] = max(last.get(day, row["time"]), row["time"])
    end = max(last.values())
    if kind == "since_exposure":
        n = max(math.floor((end - one["exposed"]) / pd.Timedelta("1D")) for one in who.values())
        periods = list(range(n))
    else:
        periods = sorted(last)
    found, events_of = {}, {user: [] for user in who}
    for row in events:
        events_of[row["user_id"]].append(row)
    for period in periods:
        values = {}
        for user, one in who.items():
            if kind == "since_exposure":
                if (end - one["exposed"]) / pd.Timedelta("1D") < period + 1:
                    continue
                of = [
                    row
                    for row in events_of[user]
                    if math.floor((row["time"] - one["exposed"]) / pd.Timedelta("1D")) == period
                ]
            else:
                if one["exposed"] > last[period]:
                    continue
                so_far = [row for row in events_of[user] if row["time"].date() <= period]
                of = (
                    so_far
                    if kind == "cumulative"
                    else [row for row in so_far if row["time"].date() == period]
                )
            sums = [math.fsum(row[column] for row in of) for column in columns]
            if how == "mean":
                sums = [sums[0] / len(of) if of else 0.0]
            values[user] = sums
        found[period] = values
    return found, {user: one["variant"] for user, one in who.items()}


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


@pytest.mark.long
@pytest.mark.parametrize("kind", ["daily", "cumulative", "since_exposure"])
@pytest.mark.parametrize(
    ("columns", "how"),
    few([(["value"], "sum"), (["value"], "mean"), (["value", "shown"], "sum")], 1),
)
def test_every_period_is_that_of_plain_python(log, kind, columns, how):
    rows, users = log
    metric = {"m": columns[0] if len(columns) == 1 else tuple(columns)}
    options = {"how": how, "larger_is_better": "m"} if len(columns) == 1 else {}
    table = effect_over_time(
        rows.drop(columns=["variant", "exposed"]),
        metric,
        kind=kind,
        assignment=users,
        **ORDERS,
        **options,
        details=True,
    )
    expected, variant = by_hand(rows, users, kind, columns, how)
    slope = {"B": [], "C": []}
    daily = expected if kind != "cumulative" else by_hand(rows, users, "daily", columns, how)[0]
    for place, (period, values) in enumerate(expected.items()):
        arms = {v: [own for user, own in values.items() if variant[user] == v] for v in "ABC"}
        for treatment in "BC":
            (m0, v0, _), (m1, v1, _) = welch(arms["A"]), welch(arms[treatment])
            row = table[(table["treatment"] == treatment)].iloc[place]
            label = row["period"] if kind == "since_exposure" else row["period"].date()
            assert (label, row["n_control"], row["n_treatment"]) == (
                period,
                len(arms["A"]),
                len(arms[treatment]),
            )
            assert row["diff"] == pytest.approx(m1 - m0, rel=1e-9)
            assert row["se"] == pytest.approx(math.sqrt(v0 + v1), rel=1e-9)
            slope[treatment].append(
                label if kind == "since_exposure" else (label - datetime.date(2026, 3, 25)).days
            )
    for treatment, days in slope.items():
        parts, effects, weights = {}, [], []
        for values in daily.values():
            arms = {
                v: {user: own for user, own in values.items() if variant[user] == v}
                for v in ("A", treatment)
            }
            n = [len(arms["A"]), len(arms[treatment])]
            effects.append(
                welch(list(arms[treatment].values()))[0] - welch(list(arms["A"].values()))[0]
            )
            weights.append(n[0] * n[1] / sum(n))
            for one in arms.values():
                for user, z in zip(one, welch(list(one.values()))[2], strict=True):
                    parts.setdefault(user, {})[len(weights) - 1] = z / len(one)
        centre = np.average(days, weights=weights)
        c = [
            w
            * (d - centre)
            / sum(v * (e - centre) ** 2 for v, e in zip(weights, days, strict=True))
            for w, d in zip(weights, days, strict=True)
        ]
        row = table[table["treatment"] == treatment].iloc[0]
        assert row["trend"] == pytest.approx(
            math.fsum(a * b for a, b in zip(c, effects, strict=True)), rel=1e-9
        )
        var = 0.0
        for arm in ("A", treatment):
            u = [
                sum(c[d] * z for d, z in own.items())
                for user, own in parts.items()
                if variant[user] == arm
            ]
            var += len(u) / (len(u) - 1) * math.fsum((one - sum(u) / len(u)) ** 2 for one in u)
        assert row["trend_se"] == pytest.approx(math.sqrt(var), rel=1e-9)


def test_two_users_an_arm_by_hand():
    rows = pd.DataFrame(
        {
            "user_id": [1, 2, 3, 4, 1, 2, 3],
            "variant": list("AABBAAB"),
            "time": [0, 0, 0, 1, 1, 1, 1],
            "exposed": [0, 0, 0, 1, 0, 0, 0],
            "x": [1.0, 3, 6, 4, 2, 2, 8],
        }
    )
    table = effect_over_time(rows, "x", **ORDERS, details=True)
    # User 4 is not there on day 0, and one user is no arm; on day 1 B has 8 and 4, A has 2 and 2.
    assert table["n_treatment"].tolist() == [1, 2]
    assert table["diff"].tolist() == [4.0, 4.0]
    assert table["remarks"].tolist()[0] == "too_few_users; ratio_not_checked"
    assert table["period"].tolist() == [0, 1]


def test_the_day_is_that_of_join_and_compare(log):
    rows, users = log
    rows = rows.drop(columns=["variant", "exposed", "region"])
    table = effect_over_time(
        rows,
        ["value", "shown"],
        assignment=users,
        expected=dict.fromkeys("ABC", 1),
        **ORDERS,
        details=True,
    )
    per_day = rd.logs.time_slice(rows, "time", "1D", name="period")
    joined = rd.join_experiment(
        per_day.drop(columns="wait"),
        users.drop(columns="region"),
        by="period",
        how="sum",
        missing="zero",
        exposure_col="exposed",
        time_col="time",
        larger_is_better=["value", "shown"],
    )
    same = rd.compare_variants(
        joined.drop(columns=["exposed"]),
        ["value", "shown"],
        control="A",
        by="period",
        expected=dict.fromkeys("ABC", 1),
        details=True,
    )
    pd.testing.assert_frame_equal(
        pd.DataFrame(table)[list(same.columns)], pd.DataFrame(same), check_dtype=False, rtol=1e-12
    )


def test_the_trend_of_a_full_panel_is_welchs_test_of_the_users_slopes(rng):
    users = pd.DataFrame({"user_id": range(80), "variant": ["A", "B"] * 40, "exposed": 0})
    rows = users.merge(pd.DataFrame({"time": range(9)}), how="cross")
    rows["x"] = rng.normal(rows["user_id"] % 7, 1) + (rows["variant"] == "B") * (
        3 - rows["time"] / 5
    )
    for kind in ("daily", "since_exposure", "cumulative"):
        table = effect_over_time(rows, "x", kind=kind, **ORDERS, details=True)
        grid = rows.pivot(index="user_id", columns="time", values="x").to_numpy()
        slopes = np.polyfit(np.arange(9), grid.T, 1)[0]
        test = stats.ttest_ind(slopes[1::2], slopes[::2], equal_var=False)
        assert table["trend_p"].tolist() == pytest.approx([test.pvalue] * 9, rel=1e-9)
        assert table["trend"].iloc[0] == pytest.approx(
            slopes[1::2].mean() - slopes[::2].mean(), rel=1e-9
        )
        low, high = test.confidence_interval()
        assert (table["trend_ci_low"].iloc[0], table["trend_ci_high"].iloc[0]) == pytest.approx(
            (low, high), rel=1e-9
        )
        assert table["trend_verdict"].unique().tolist() == ["fades (sample ratio not checked)"]
        thirds = grid[:, :3].mean(axis=1), grid[:, 6:].mean(axis=1)
        assert table["trend_early"].iloc[0] == pytest.approx(
            thirds[0][1::2].mean() - thirds[0][::2].mean()
        )
        assert table["trend_late"].iloc[0] == pytest.approx(
            thirds[1][1::2].mean() - thirds[1][::2].mean()
        )


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


@pytest.mark.parametrize(
    ("effect", "word"),
    [
        (lambda age: 1.5 * np.exp(-age / 3), "fades"),
        (lambda age: 0.2 * age, "grows"),
        (lambda age: -0.2 * age, "grows"),
        (lambda age: 0.5 + 0 * age, "no trend shown"),
        (lambda age: 2 - 0.6 * age, "turns"),
    ],
)
def test_a_known_effect_is_named(rng, effect, word):
    table = effect_over_time(
        panel(rng, effect=effect),
        "x",
        kind="since_exposure",
        expected={"A": 1, "B": 1},
        **ORDERS,
        details=True,
    )
    assert table["trend_verdict"].unique().tolist() == [word]


def test_days_of_the_calendar_mix_new_and_old_users_and_days_since_exposure_do_not(rng):
    rows = panel(rng, n=4000, effect=lambda age: 2 - 0.25 * age)
    table = effect_over_time(rows, "x", kind="since_exposure", **ORDERS, details=True)
    known = 2 - 0.25 * table["period"]
    assert (abs(table["diff"] - known) < 4.5 * table["se"]).all()
    assert len(table) == 14


def many(rows, values):
    """The rows with a column for each of many outcomes, and their names: a call then has as many
    experiments."""
    names = [f"x{i}" for i in range(values.shape[1])]
    return pd.concat([rows, pd.DataFrame(values, columns=names, index=rows.index)], axis=1), names


def assert_level(rejected, runs, least=0.001, level=0.05):
    """As many rejections as chance allows at this level."""
    assert stats.binom.cdf(rejected, runs, level) > least
    assert stats.binom.sf(rejected - 1, runs, level) > least


@pytest.mark.slow
@pytest.mark.parametrize(("options", "cluster"), [({}, None), ({"cluster": "shop"}, "shop")])
def test_without_a_trend_the_test_rejects_as_often_as_it_says(rng, options, cluster):
    rejected, draws, of_draw = 0, 4, 50
    for _ in range(draws):
        users = pd.DataFrame({"user_id": range(160), "exposed": rng.integers(0, 3, 160)})
        users["shop"] = users["user_id"] % 80 if cluster else users["user_id"]
        users["variant"] = rng.choice(["A", "B"], 160)[users["shop"]]
        rows = users.merge(pd.DataFrame({"time": range(4)}), how="cross")
        # What each user, or shop, does by itself.
        drift = rng.normal(0, 1, (160, of_draw))[rows["shop"]] * rows["time"].to_numpy()[:, None]
        effect = 0.7 * (rows["variant"] == "B").to_numpy()[:, None]
        rows, names = many(rows, drift + rng.normal(0, 1, drift.shape) + effect)
        table = effect_over_time(rows, names, **ORDERS, **options, details=True)
        rejected += (table[:of_draw]["trend_p"] < 0.05).sum()
    assert_level(rejected, draws * of_draw)


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [0.0, 1.0])
def test_cumulative_bands_hold_on_all_days_together(rng, persistent):
    runs = 80
    rows = panel(rng, n=150, days=12)
    own = rng.normal(0, 1, (150, runs))[rows["user_id"]] * persistent
    rows, names = many(rows.drop(columns="x"), own + rng.normal(0, 1, own.shape))
    table = effect_over_time(
        rows, names, kind="cumulative", correction="none", **ORDERS, details=True
    )
    missed = ((table["ci_low"] > 0) | (table["ci_high"] < 0)).groupby(table["metric"]).any().sum()
    once = (abs(table["diff"]) > 1.96 * table["se"]).groupby(table["metric"]).any().sum()
    assert stats.binom.sf(missed - 1, runs, 0.05) > 0.01
    assert once > missed  # an interval for one day, read on every day, misses more often


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
        rows = users.merge(pd.DataFrame({"time": range(6)}), how="cross")
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


@pytest.mark.long
def test_users_who_are_not_assigned_yet_are_absent(log):
    rows, users = log
    table = effect_over_time(
        rows.drop(columns=["variant", "exposed"]), "value", assignment=users, **ORDERS, details=True
    )
    first = table[table["treatment"] == "B"].iloc[0]
    day = pd.Timestamp("2026-03-26")
    assert first["n_control"] == ((users["exposed"] < day) & (users["variant"] == "A")).sum()
    alone = effect_over_time(
        rows, "value", **ORDERS, details=True
    )  # users without a row are not known from rows alone
    last = table["n_control"].iloc[-1], alone["n_control"].iloc[-1]
    assert last == (
        (users["variant"] == "A").sum(),
        rows.loc[rows["variant"] == "A", "user_id"].nunique(),
    )


def test_active_users_only_are_compared_where_it_is_asked_for(log):
    rows, _ = log
    table = effect_over_time(rows, "value", missing="drop", **ORDERS, details=True)
    kept = rows[
        (rows["time"] >= rows["exposed"]) & (rows["time"].dt.date == datetime.date(2026, 4, 2))
    ]
    per_user = kept.groupby(["variant", "user_id"])["value"].sum()
    day = table[(table["period"] == "2026-04-02") & (table["treatment"] == "B")].iloc[0]
    assert day["diff"] == pytest.approx(per_user["B"].mean() - per_user["A"].mean())
    assert day["n_control"] == len(per_user["A"])
    assert day["n_dropped_control"] > 0


@pytest.mark.long
def test_measures_of_lists_are_means_and_absent_lists_are_worth_what_the_join_says(log):
    rows, _ = log
    rows = rows.assign(
        **{
            "ndcg@10": rows["wait"] / 20,
            "first_rank@10": rows["shown"] + 1.0,
            "hits@10": rows["shown"],
        }
    )
    table = effect_over_time(
        rows, ["ndcg@10", "first_rank@10", "hits@10"], **ORDERS, details=True
    ).set_index(["metric", "treatment"])
    day = rows[
        (rows["time"] >= rows["exposed"]) & (rows["time"].dt.date == datetime.date(2026, 4, 2))
    ]
    users = rows[["user_id", "variant"]].drop_duplicates().set_index("user_id")["variant"]
    found = table[table["period"] == "2026-04-02"]
    mean = day.groupby("user_id")["ndcg@10"].mean().reindex(users.index).fillna(0)
    assert found.loc[("ndcg@10", "B"), "mean_treatment"] == pytest.approx(mean[users == "B"].mean())
    rank = day[day["variant"] == "B"].groupby("user_id")["first_rank@10"].mean()
    assert found.loc[("first_rank@10", "B"), "mean_treatment"] == pytest.approx(rank.mean())
    assert found.loc[("first_rank@10", "B"), "n_treatment"] == len(rank)
    named = effect_over_time(
        rows.rename(columns={"value": "revenue"}), "revenue", **ORDERS, details=True
    )
    assert (
        named["diff"].tolist()
        == effect_over_time(rows, "value", **ORDERS, details=True)["diff"].tolist()
    )
    hits = day.groupby("user_id")["hits@10"].sum().reindex(users.index).fillna(0)
    assert found.loc[("hits@10", "B"), "mean_treatment"] == pytest.approx(hits[users == "B"].mean())
    with pytest.raises(rd.OptionError, match=r"wait.*larger_is_better"):
        effect_over_time(rows, "wait", how="mean", **ORDERS, details=True)
    waits = effect_over_time(
        rows, "wait", how="mean", smaller_is_better="wait", **ORDERS, details=True
    )
    assert waits["n_dropped"].iloc[-1] > 0


@pytest.mark.long
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize("kind", ["daily", "since_exposure"])
def test_days_are_those_of_the_zone(log, zone, kind):
    rows, _ = log
    plain = effect_over_time(rows, "value", kind=kind, **ORDERS, details=True)
    # The same clock in another zone; clocks change on the 29th in Europe.
    zoned = rows.assign(
        **{
            name: rows[name].dt.tz_localize(zone, nonexistent="shift_forward")
            for name in ("time", "exposed")
        }
    )
    own = effect_over_time(zoned, "value", kind=kind, **ORDERS, details=True)
    assert own["period"].tolist() == plain["period"].tolist()
    if zone != "Europe/Berlin":
        assert own["diff"].tolist() == plain["diff"].tolist()
    # Exposures in another zone are the same instants.
    other = zoned.assign(exposed=zoned["exposed"].dt.tz_convert("Asia/Tokyo"))
    pd.testing.assert_frame_equal(
        effect_over_time(other, "value", kind=kind, **ORDERS, details=True), own
    )


def test_midnights_of_a_zone_are_whole_days_apart_when_clocks_change():
    days = pd.date_range("2026-03-27", "2026-03-31", tz="Europe/Berlin")
    users = pd.DataFrame({"user_id": range(6), "variant": list("AABBAB"), "exposed": days[0]})
    rows = users.merge(pd.DataFrame({"time": days}), how="cross")
    rows["x"] = rows["time"].dt.day
    table = effect_over_time(rows, "x", kind="since_exposure", **ORDERS, details=True)
    assert table["mean_control"].tolist() == [27, 28, 29, 30, 31]
    assert table["period"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.long
def test_dates_of_every_kind_are_the_same_days(log):
    rows, _ = log
    dates = rows.assign(time=rows["time"].dt.normalize(), exposed=rows["exposed"].dt.normalize())
    plain = pd.DataFrame(effect_over_time(dates, "value", **ORDERS, details=True))
    objects = dates.assign(time=dates["time"].dt.date, exposed=dates["exposed"].dt.date)
    pd.testing.assert_frame_equal(
        pd.DataFrame(effect_over_time(objects, "value", **ORDERS, details=True)), plain
    )
    zero = pd.Timestamp("2026-03-01")
    numbers = dates.assign(
        time=(dates["time"] - zero).dt.days, exposed=(dates["exposed"] - zero).dt.days
    )
    counted = effect_over_time(numbers, "value", **ORDERS, details=True)
    assert counted["diff"].tolist() == plain["diff"].tolist()
    assert counted["trend"].tolist() == pytest.approx(plain["trend"].tolist(), rel=1e-9)
    assert counted["period"].iloc[0] == 24
    arrow = dates.assign(time=dates["time"].astype("timestamp[us][pyarrow]"))
    assert (
        effect_over_time(arrow, "value", **ORDERS, details=True)["diff"].tolist()
        == plain["diff"].tolist()
    )


@pytest.mark.long
def test_the_order_of_the_rows_does_not_matter_and_nothing_is_changed(log, rng):
    rows, _ = log
    before = rows.copy()
    for kind in ("daily", "cumulative", "since_exposure"):
        table = effect_over_time(
            rows, {"v": "value", "r": ("value", "shown")}, kind=kind, **ORDERS, details=True
        )
        again = effect_over_time(
            rows.sample(frac=1, random_state=5),
            {"v": "value", "r": ("value", "shown")},
            kind=kind,
            **ORDERS,
            details=True,
        )
        pd.testing.assert_frame_equal(table, again, check_exact=True)
    pd.testing.assert_frame_equal(rows, before)


def test_clusters_are_the_units(log):
    rows, users = log
    variant = users.drop_duplicates("region").set_index("region")["variant"]
    rows = rows.assign(variant=rows["region"].map(variant))
    table = effect_over_time(rows, "value", cluster="region", **ORDERS, details=True)
    last = table.iloc[-1]
    day = rows[(rows["time"] >= rows["exposed"]) & (rows["time"].dt.normalize() == last["period"])]
    people = rows[["user_id", "variant", "region"]].drop_duplicates()
    people["value"] = people["user_id"].map(day.groupby("user_id")["value"].sum()).fillna(0)
    same = rd.compare_variants(people, "value", control="A", cluster="region", details=True).iloc[
        -1
    ]
    for name in ("n_control", "n_treatment", "diff", "se", "p_value"):
        assert last[name] == pytest.approx(same[name], rel=1e-12)


def test_shares_that_change_are_named_and_the_verdicts_hold(rng):
    users = pd.DataFrame({"user_id": range(4000), "exposed": rng.integers(0, 8, 4000)})
    users["variant"] = np.where(
        rng.random(4000) < np.where(users["exposed"] < 4, 0.2, 0.5), "B", "A"
    )
    rows = users.merge(pd.DataFrame({"time": range(8)}), how="cross").assign(
        x=lambda f: rng.normal(size=len(f))
    )
    table = effect_over_time(rows, "x", **ORDERS, details=True)
    changed = ["strata_differ" in text for text in table["remarks"]]
    assert changed == [False] * 4 + [True] * 4
    assert (table["method"] == "welch+strata").all()
    assert table["verdict"].iloc[-1] == "no difference shown (sample ratio not checked)"
    assert table["trend_verdict"].iloc[0] == "no trend shown (sample ratio not checked)"


@pytest.mark.long
def test_days_of_one_variant_alone_are_left_out(rng):
    """Before the first treated users there is nothing to compare; what these days had says
    nothing."""
    users = pd.DataFrame({"user_id": range(900), "exposed": np.arange(900) // 150})
    users["variant"] = np.where((users["exposed"] > 2) & (rng.random(900) < 0.5), "B", "A")
    rows = users.merge(pd.DataFrame({"time": range(6)}), how="cross")
    rows["x"] = rng.normal(0, 1, len(rows)) + 10 * (rows["exposed"] < 3)
    for kind in ("daily", "cumulative", "since_exposure"):
        table = effect_over_time(rows, "x", kind=kind, **ORDERS, details=True).set_index("period")
        late = effect_over_time(
            rows[rows["exposed"] > 2], "x", kind=kind, **ORDERS, details=True
        ).set_index("period")
        both = [d for d in late.index if late.loc[d, "n_treatment"] > 1]
        if kind != "since_exposure":
            assert (
                table["remarks"].str.contains("too_few_users").tolist() == [True] * 3 + [False] * 3
            )
            assert table.loc[5, "n_dropped_control"] == 450
        assert (abs(table.loc[both, "diff"] - late.loc[both, "diff"]) < 0.2).all()
        assert table["trend"].iloc[0] == pytest.approx(late["trend"].iloc[0], abs=0.2)


def test_a_broken_sample_ratio_invalidates_the_trend(rng):
    rows = panel(rng, n=2000, effect=lambda age: 3 - age)
    table = effect_over_time(rows, "x", expected={"A": 2, "B": 1}, **ORDERS, details=True)
    assert set(table["verdict"]) == set(table["trend_verdict"]) == {"invalid: sample ratio"}


@pytest.mark.long
def test_null_rows_raise_or_are_left_out(log):
    rows, _ = log
    gaps = rows.assign(value=rows["value"].where(rows.index % 9 != 0))
    with pytest.raises(rd.DataError, match=r"null in 445 of 4,000 rows.*nan"):
        effect_over_time(gaps, "value", **ORDERS, details=True)
    kept = effect_over_time(gaps, {"r": ("value", "shown")}, nan="drop", **ORDERS, details=True)
    clean = effect_over_time(gaps.dropna(), {"r": ("value", "shown")}, **ORDERS, details=True)
    assert kept["mean_control"].tolist() == clean["mean_control"].tolist()
    assert (
        effect_over_time(gaps, "value", nan="drop", **ORDERS, details=True)["n_dropped"].sum() > 0
    )


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"kind": "weekly"}, rd.OptionError, "since_exposure"),
        ({"kind": "since_exposure", "exposure_col": None}, rd.OptionError, "exposure_col"),
        ({"sequential_n": 100}, rd.OptionError, "cumulative"),
        ({"control": "Z"}, rd.OptionError, "control='Z'"),
        ({"time_col": "when"}, rd.ColumnError, "when"),
        ({"missing": "nan"}, rd.OptionError, "missing"),
        ({"how": {"other": "sum"}}, rd.OptionError, "other"),
        ({"how": "median"}, rd.OptionError, "median"),
        ({"time_col": "shown"}, rd.DataError, "cannot be compared"),
    ],
)
def test_what_cannot_be_is_an_error(log, change, error, words):
    rows, _ = log
    with pytest.raises(error, match=words):
        effect_over_time(rows, "value", **{**ORDERS, **change}, details=True)


def test_users_in_two_variants_raise_or_are_left_out(log):
    rows, _ = log
    rows = rows.copy()
    rows.loc[0, "variant"] = {"A": "B", "B": "C", "C": "A"}[rows.loc[0, "variant"]]
    with pytest.raises(rd.DataError, match="1 users of rows are in more than one variant"):
        effect_over_time(rows, "value", **ORDERS, details=True)
    dropped = effect_over_time(rows, "value", multi_variant="drop", **ORDERS, details=True)
    clean = effect_over_time(
        rows[rows["user_id"] != rows.loc[0, "user_id"]], "value", **ORDERS, details=True
    )
    assert dropped["diff"].tolist() == clean["diff"].tolist()


def test_without_exposures_all_users_are_there_from_the_first_row(log):
    rows, _ = log
    table = effect_over_time(rows, "value", **{**ORDERS, "exposure_col": None}, details=True)
    assert table["n_control"].nunique() == 1
    assert table["n_control"].iloc[0] == rows.loc[rows["variant"] == "A", "user_id"].nunique()


@pytest.mark.long
def test_the_table_is_drawn_and_goes_to_parquet(log, tmp_path):
    rows, _ = log
    for kind in ("daily", "cumulative", "since_exposure"):
        table = effect_over_time(rows, ["value", "shown"], kind=kind, **ORDERS, details=True)
        ax = rd.plot.over_time(table, "value", treatment="B")
        assert kind.replace("_", " ") in ax.get_title(loc="left") + ax.get_title()
        table.to_parquet(tmp_path / "t.parquet")
        assert rd.plot.over_time.data(
            pd.read_parquet(tmp_path / "t.parquet"), "value", treatment="C"
        )["diff"].tolist() == (
            table.loc[(table["metric"] == "value") & (table["treatment"] == "C"), "diff"].tolist()
        )


@pytest.mark.parametrize(
    ("value", "word"),
    [(0.0, "no trend shown"), (0.1, "no trend shown"), (None, "check: zero variance")],
)
def test_values_that_never_vary_have_no_trend_by_rounding(value, word):
    users = pd.DataFrame({"user_id": range(100), "variant": ["A", "B"] * 50, "exposed": 0})
    rows = users.merge(pd.DataFrame({"time": range(5)}), how="cross")
    rows["x"] = 0.7 + (rows["variant"] == "B") * (rows["time"] / 7 if value is None else value)
    table = effect_over_time(rows, "x", expected={"A": 1, "B": 1}, **ORDERS, details=True)
    assert table["trend_verdict"].unique().tolist() == [word]
    assert table["trend"].iloc[0] == pytest.approx(
        1 / 7 if value is None else 0.0, abs=0 if value is not None else None
    )
    assert table["trend_p"].isna().all()

"""Effects by period: daily, cumulative and by days since the exposure, and their trend."""

import datetime
import math

import numpy as np
import pandas as pd
import pytest
from experiments.periods import ORDERS, assert_level, many, panel, welch
from quick import few
from scipy import stats

import recdf as rd
from recdf.experiments import effect_over_time


def by_hand(rows, users, kind, columns, how="sum"):
    """One number per user of every period, in plain Python: {period: {user: value or (num,
    den)}}."""
    who = {row["user_id"]: row for row in users.to_dict("records")}
    one_day = pd.Timedelta("1D")
    events = [
        row
        | {
            "day": row["time"].date(),
            "age": math.floor((row["time"] - who[row["user_id"]]["exposed"]) / one_day),
        }
        for row in rows.to_dict("records")
        if row["time"] >= who[row["user_id"]]["exposed"]
    ]
    last = {}
    for row in rows.to_dict("records"):
        day = row["time"].date()
        last[day] = max(last.get(day, row["time"]), row["time"])
    end = max(last.values())
    if kind == "since_exposure":
        n = max(math.floor((end - one["exposed"]) / one_day) for one in who.values())
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
                if (end - one["exposed"]) / one_day < period + 1:
                    continue
                of = [row for row in events_of[user] if row["age"] == period]
            else:
                if one["exposed"] > last[period]:
                    continue
                so_far = [row for row in events_of[user] if row["day"] <= period]
                of = (
                    so_far
                    if kind == "cumulative"
                    else [row for row in so_far if row["day"] == period]
                )
            sums = [math.fsum(row[column] for row in of) for column in columns]
            if how == "mean":
                sums = [sums[0] / len(of) if of else 0.0]
            values[user] = sums
        found[period] = values
    return found, {user: one["variant"] for user, one in who.items()}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["daily", "cumulative", "since_exposure"])
@pytest.mark.parametrize(
    ("columns", "how"),
    few([(["value"], "sum"), (["value"], "mean"), (["value", "shown"], "sum")], 1),
)
def test_every_period_is_that_of_plain_python(purchases, kind, columns, how):
    rows, users = purchases
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


@pytest.mark.long
def test_the_day_is_that_of_join_and_compare(purchases):
    rows, users = purchases
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
    # A comparison takes the sums of a column called "shown" for values of the metric of that name.
    same = pd.DataFrame(same).drop(columns="metric_low")
    pd.testing.assert_frame_equal(
        pd.DataFrame(table)[list(same.columns)], same, check_dtype=False, rtol=1e-12
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
        said = "fades, unless 3 in 40 users of the treatment rise by "
        (verdict,) = table["trend_verdict"].unique()
        assert verdict.startswith(said)
        # Three more users of B who rise by so much a day more than the others take it away.
        own = slopes[1::2].mean() + float(verdict.removeprefix(said).split()[0])
        turned = np.append(slopes[1::2], [own] * 3).mean() - slopes[::2].mean()
        assert turned == pytest.approx(0, abs=0.02 * abs(table["trend"].iloc[0]))
        thirds = grid[:, :3].mean(axis=1), grid[:, 6:].mean(axis=1)
        assert table["trend_early"].iloc[0] == pytest.approx(
            thirds[0][1::2].mean() - thirds[0][::2].mean()
        )
        assert table["trend_late"].iloc[0] == pytest.approx(
            thirds[1][1::2].mean() - thirds[1][::2].mean()
        )


@pytest.mark.few(2)
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
    (verdict,) = table["trend_verdict"].unique()
    assert verdict.partition(", unless 3 in ")[0] == word  # the metric x has no bounds


def test_a_trend_holds_for_the_largest_weight_of_any_day(rng):
    """A store of each arm has 15 users, and all others one; views of a day are 8 to 12."""
    users = pd.DataFrame({"user_id": range(600), "variant": ["A", "B"] * 300})
    users["store"] = np.maximum(users["user_id"] // 2 - 14, 0) * 2 + users["user_id"] % 2
    rows = users.merge(pd.DataFrame({"time": range(6)}), how="cross")
    rows["views"] = 8 + (rows["user_id"] + rows["time"]) % 5
    fades = (rows["variant"] == "B") * (2 - 0.3 * rows["time"])
    rows["x"] = rng.normal(3, 1, len(rows)) + fades
    rows["y"] = rows["x"] * rows["views"]
    options = {"control": "A", "time_col": "time", "exposure_col": None}
    options |= {"expected": {"A": 1, "B": 1}}
    for kind in ("daily", "cumulative"):
        table = effect_over_time(rows, {"r": ("y", "views")}, kind=kind, **options)
        assert ", for users with views of up to 12, " in table["trend_verdict"].iloc[0]
        table = effect_over_time(rows, "x", cluster="store", kind=kind, **options)
        assert ", for clusters with a size of up to 15, " in table["trend_verdict"].iloc[0]
    # On the last day 12 users of a store come, and 9 before.
    come = np.where(rows["time"] == 5, 12, 9)
    few = rows[(rows["store"] > 1) | (rows["user_id"] // 2 < come)]
    table = effect_over_time(few, "x", cluster="store", missing="drop", **options)
    assert ", for clusters with a size of up to 12, " in table["trend_verdict"].iloc[0]


def test_days_of_the_calendar_mix_new_and_old_users_and_days_since_exposure_do_not(rng):
    rows = panel(rng, n=4000, effect=lambda age: 2 - 0.25 * age)
    table = effect_over_time(rows, "x", kind="since_exposure", **ORDERS, details=True)
    known = 2 - 0.25 * table["period"]
    assert (abs(table["diff"] - known) < 4.5 * table["se"]).all()
    assert len(table) == 14


@pytest.mark.slow
@pytest.mark.parametrize(("options", "cluster"), [({}, None), ({"cluster": "shop"}, "shop")])
def test_without_a_trend_the_test_rejects_as_often_as_it_says(rng, options, cluster):
    rejected, draws, of_draw = 0, 4, 50
    for _ in range(draws):
        users = pd.DataFrame({"user_id": range(160), "exposed": rng.integers(0, 3, 160)})
        users["shop"] = users["user_id"] % 80 if cluster else users["user_id"]
        users["variant"] = rng.choice(["A", "B"], 160)[users["shop"]]
        rows = users.merge(pd.DataFrame({"time": range(3)}), how="cross")
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
    rows = panel(rng, n=150, days=8)
    own = rng.normal(0, 1, (150, runs))[rows["user_id"]] * persistent
    rows, names = many(rows.drop(columns="x"), own + rng.normal(0, 1, own.shape))
    table = effect_over_time(
        rows, names, kind="cumulative", correction="none", **ORDERS, details=True
    )
    missed = ((table["ci_low"] > 0) | (table["ci_high"] < 0)).groupby(table["metric"]).any().sum()
    once = (abs(table["diff"]) > 1.96 * table["se"]).groupby(table["metric"]).any().sum()
    assert stats.binom.sf(missed - 1, runs, 0.05) > 0.01
    assert once > missed  # an interval for one day, read on every day, misses more often


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [1e151, 1e180, 1e200])
def test_huge_values_are_named_in_each_period_and_in_the_trend(size):
    """The squares of values from 1e150 on overflow, or come near it."""
    users = pd.DataFrame({"user_id": range(40), "variant": ["A", "B"] * 20, "exposed": 0.0})
    rows = users.merge(pd.DataFrame({"day": [0.0, 1.0, 2.0, 3.0]}), how="cross")
    rows["orders"] = size * (1 + (7 * rows["user_id"] + 3 * rows["day"]) % 5)
    found = effect_over_time(
        rows, "orders", control="A", time_col="day", exposure_col="exposed", how="sum", details=True
    )
    assert len(found) == 4
    assert (found["withheld"] == "huge_values").all()
    assert (found["trend_withheld"] == "huge_values").all()
    assert found["trend_verdict"].str.startswith("check: huge values").all()
    assert found["trend"].isna().all()

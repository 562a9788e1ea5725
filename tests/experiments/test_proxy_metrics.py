"""Which offline metric predicts: the formulas by hand, what noise may not do, and what is
refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recdf as rd


def past(n, seed, *, slope=0.5, scatter=0.4, noise=0.7, shared=0.0):
    """Experiments with a known line: offline differences and online effects, each with its sampling
    noise."""
    rng = np.random.default_rng(seed)
    true = rng.normal(0.3, 1, n)
    online = slope * true + rng.normal(0, scatter, n)
    x_se, y_se = (
        noise * rng.uniform(0.7, 1.3, n),
        noise * np.hypot(slope, scatter) * rng.uniform(0.7, 1.3, n),
    )
    first, other = rng.normal(size=(2, n))
    second = shared * first + np.sqrt(1 - shared**2) * other
    return pd.DataFrame(
        {
            "x": true + x_se * first,
            "x_se": x_se,
            "y": online + y_se * second,
            "y_se": y_se,
            "c": shared * x_se * y_se,
            "true_x": true,
            "true_y": online,
        }
    )


def by_hand(tests, confidence):
    """The slope and its interval in loops, as the formula says."""
    n, x, y = len(tests), tests["x"].tolist(), tests["y"].tolist()
    mean_x, mean_y = sum(x) / n, sum(y) / n
    above = [
        n / (n - 1) * (a - mean_x) * (b - mean_y) - c
        for a, b, c in zip(x, y, tests["c"], strict=True)
    ]
    below = [n / (n - 1) * (a - mean_x) ** 2 - s**2 for a, s in zip(x, tests["x_se"], strict=True)]
    top, bottom = sum(above) / n, sum(below) / n
    t = stats.t.ppf((1 + confidence) / 2, n - 2)

    def rejected(slope):
        rest = [a - slope * b for a, b in zip(above, below, strict=True)]
        mean = sum(rest) / n
        return abs(mean) > t * (sum((one - mean) ** 2 for one in rest) / (n - 1) / n) ** 0.5

    return top / bottom, rejected


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_slope_and_the_ends_of_its_interval_are_those_of_the_formula(seed):
    tests = past(40, seed, noise=0.4, shared=0.5)
    row = rd.experiments.proxy_metrics(
        tests, offline="x", online="y", cov="c", confidence=0.9
    ).iloc[0]
    slope, rejected = by_hand(tests, 0.9)
    assert row["slope"] == pytest.approx(slope, rel=1e-12)
    low, high = row["slope_low"], row["slope_high"]
    step = 1e-6 * (high - low)
    assert rejected(low - step)
    assert not rejected(low + step)
    assert not rejected(high - step)
    assert rejected(high + step)


def test_the_naive_line_is_that_of_scipy():
    tests = past(25, 4)
    row = rd.experiments.proxy_metrics(tests, offline="x", online="y").iloc[0]
    line = stats.linregress(tests["x"], tests["y"])
    reach = stats.t.ppf(0.975, 23) * line.stderr
    found = row[["naive_slope", "naive_low", "naive_high", "naive_correlation"]].astype(float)
    expected = [line.slope, line.slope - reach, line.slope + reach, line.rvalue]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def simulated(n_runs, **how):
    tables = [past(60, seed, **how) for seed in range(n_runs)]
    rows = [
        rd.experiments.proxy_metrics(one, offline="x", online="y", cov="c").iloc[0]
        for one in tables
    ]
    return tables, pd.DataFrame(rows)


def covers(rows, low, high, slope):
    return ((rows[low] <= slope) & (slope <= rows[high]))[rows[low].notna()].mean()


@pytest.mark.long
def test_the_true_slope_is_covered_where_the_naive_line_is_wrong():
    _, rows = simulated(200)
    assert covers(rows, "slope_low", "slope_high", 0.5) >= 0.9  # 95 % less three standard errors
    assert covers(rows, "naive_low", "naive_high", 0.5) < 0.6


@pytest.mark.long
def test_noise_that_both_sides_share_makes_no_relation():
    _, rows = simulated(200, slope=0.0, shared=0.8)
    assert (rows["verdict"] == "predicts").mean() <= 0.07
    assert covers(rows, "naive_low", "naive_high", 0.0) < 0.6


@pytest.mark.long
def test_the_share_of_right_calls_and_the_regret_are_those_of_the_true_effects():
    tables, rows = simulated(150)
    right = np.mean([((one["x"] > 0) == (one["true_y"] > 0)).mean() for one in tables])
    lost = np.mean(
        [(np.maximum(one["true_y"], 0) - one["true_y"] * (one["x"] > 0)).mean() for one in tables]
    )
    assert rows["called_right"].mean() == pytest.approx(right, abs=0.01)
    assert rows["regret"].mean() == pytest.approx(lost, rel=0.1)


def test_a_smaller_is_better_metric_turns_the_verdict_and_no_number_of_the_line():
    tests = past(60, 1, noise=0.4)
    plain = rd.experiments.proxy_metrics(tests, offline="x", online="y").iloc[0]
    turned = rd.experiments.proxy_metrics(
        tests, offline="x", online="y", smaller_is_better="x"
    ).iloc[0]
    assert (plain["verdict"], turned["verdict"]) == ("predicts", "predicts the opposite")
    assert plain["slope"] == turned["slope"]
    assert plain["called_right"] == pytest.approx(1 - turned["called_right"])


def test_intervals_of_several_metrics_hold_together():
    tests = past(60, 1).assign(z=lambda one: one["x"], z_se=1.0)
    one = rd.experiments.proxy_metrics(tests, offline="x", online="y", confidence=0.975).iloc[0]
    two = rd.experiments.proxy_metrics(tests, offline=["x", "z"], online="y").iloc[0]
    assert two["slope_low"] == pytest.approx(one["slope_low"], rel=1e-12)


@pytest.mark.parametrize(("n", "noise", "warning"), [(9, 0.1, "few_tests"), (60, 1.6, "noise")])
def test_what_the_data_cannot_tell_has_no_verdict(n, noise, warning):
    row = rd.experiments.proxy_metrics(past(n, 2, noise=noise), offline="x", online="y").iloc[0]
    assert row["verdict"].startswith("cannot tell: ")
    assert warning in row["remarks"].split("; ")


BAD = [
    (lambda t: t, {"cov": {("y", "x"): "c"}}, rd.OptionError, "for pairs of"),
    (lambda t: t, {"cov": 0.5}, rd.OptionError, "cov=0.5"),
    (lambda t: t.head(2), {}, rd.DataError, "at least 3 experiments"),
    (lambda t: t.assign(x_se=0.0), {}, rd.DataError, "not above 0 in 20 of 20"),
    (lambda t: t.assign(x=np.nan), {}, rd.DataError, "null in 20 of 20"),
    (lambda t: t.assign(x=1.0), {}, rd.DataError, "same value"),
    (lambda t: t.drop(columns="y_se"), {}, rd.ColumnError, "no column 'y_se'"),
    (lambda t: t.assign(c=9.0), {"cov": "c"}, rd.DataError, "expected a covariance"),
    (
        lambda t: t.assign(e=1),
        {"experiment_col": "e"},
        rd.DuplicateError,
        "share the users of its control",
    ),
    (lambda t: t, {"online": "x"}, rd.OptionError, "two kinds"),
    (lambda t: t, {"offline": ["x", "true_x"], "cov": "c"}, rd.OptionError, "for pairs of"),
    (lambda t: t, {"confidence": 1.5}, rd.OptionError, "confidence"),
    (lambda t: t, {"offline": []}, rd.OptionError, "offline= is empty"),
]


@pytest.mark.parametrize(("change", "options", "error", "words"), BAD)
def test_bad_input_is_a_named_error(change, options, error, words):
    tests = change(past(20, 1).assign(true_x_se=1.0))
    with pytest.raises(error, match=words):
        rd.experiments.proxy_metrics(tests, **{"offline": "x", "online": "y", **options})


def test_the_table_is_not_changed_and_any_order_gives_the_same():
    tests = past(30, 3)
    before = tests.copy()
    one = rd.experiments.proxy_metrics(tests, offline="x", online="y")
    two = rd.experiments.proxy_metrics(
        tests.sample(frac=1, random_state=1), offline="x", online="y"
    )
    pd.testing.assert_frame_equal(tests, before)
    pd.testing.assert_frame_equal(one, two, rtol=1e-9)


def test_names_of_past_tests_keep_the_direction_of_a_metric():
    rng = np.random.default_rng(0)
    effect = rng.normal(0, 0.1, 30)  # of an error, which is better when smaller
    tests = pd.DataFrame({"rmse": -effect, "rmse_se": 0.01, "ctr": effect, "ctr_se": 0.01})
    named = tests.add_prefix("offline_").rename(
        columns=lambda name: name.replace("offline_ctr", "online_ctr")
    )
    plain = rd.experiments.proxy_metrics(tests, offline="rmse", online="ctr")
    other = rd.experiments.proxy_metrics(named, offline="offline_rmse", online="online_ctr")
    assert plain["verdict"].tolist() == other["verdict"].tolist() == ["predicts"]
    assert plain["called_right"].tolist() == other["called_right"].tolist()

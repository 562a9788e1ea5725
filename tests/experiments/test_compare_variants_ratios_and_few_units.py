"""`compare_variants` gives no false verdict from what a ratio hides: moved denominators, few units
that decide, skew by its formula, pairs as covariates."""

import re

import numpy as np
import pandas as pd
import pytest
from experiments.verdicts import arms, compare
from scipy import stats

import recdf as rd
from recdf.errors import DuplicateError, OptionError

pytestmark = pytest.mark.slow

CTR = {"ctr": ("clicks", "shown")}


def shop(rng, n=4000, lift=0.0):
    """Users with about six impressions each, of which 10 % are clicked."""
    data = pd.DataFrame(
        {
            "user_id": range(n),
            "variant": np.repeat(["A", "B"], n // 2),
            "shown": rng.poisson(5, n) + 1,
        }
    )
    data["clicks"] = rng.binomial(
        data["shown"], np.where(data["variant"] == "B", 0.1 * (1 + lift), 0.1)
    )
    return data


def with_bots(rng, data, n=10, shown=500, variant="B"):
    bots = data.index[data["variant"] == variant][:n]
    return data.assign(
        shown=data["shown"].where(~data.index.isin(bots), shown),
        clicks=data["clicks"].where(~data.index.isin(bots), int(0.9 * shown)),
    )


def found_in(data, metrics=CTR, **options):
    return rd.compare_variants(
        data, metrics, control="A", **{"expected": {"A": 1, "B": 1}, **options}, details=True
    ).iloc[0]


# -- denominators


def test_a_denominator_that_the_treatment_moves(rng):
    # B shows three times as much for the same clicks: was "worse".
    data = shop(rng)
    moved = data.assign(shown=data["shown"].where(data["variant"] == "A", 3 * data["shown"]))
    found = found_in(moved, {**CTR, "clicks": "clicks"})
    means = moved.groupby("variant")["shown"].mean()
    assert (found["mean_denominator_control"], found["mean_denominator_treatment"]) == (
        pytest.approx(means["A"]),
        pytest.approx(means["B"]),
    )
    one, other = (part["shown"] for _, part in moved.groupby("variant"))
    assert found["p_denominator"] == pytest.approx(
        stats.ttest_ind(other, one, equal_var=False).pvalue
    )
    assert found["p_value"] < 1e-10
    assert found["verdict"] == "check: denominator differs"
    assert "denominator_differs" in found["remarks"].split("; ")
    notes = (
        rd.experiments.report_table(rd.compare_variants(moved, CTR, control="A", details=True))
        .frame["notes"]
        .iloc[0]
    )
    assert f"denominator differs ({means['B']:.4g} vs. {means['A']:.4g})" in notes


@pytest.mark.parametrize("test", ["t", "bootstrap", "permutation"])
def test_denominators_count_the_units_of_the_test(rng, test):
    # Sessions of users: B's users come twice as often, so the mean over sessions is over other
    # sessions.
    user = np.repeat(np.arange(400), np.where(np.arange(400) % 2 == 1, 6, 3))
    rows = pd.DataFrame(
        {
            "user_id": user,
            "variant": np.where(user % 2 == 1, "B", "A"),
            "ndcg": rng.random(len(user)),
        }
    )
    found = found_in(rows, "ndcg", cluster="user_id", test=test, n_resamples=200)
    assert (found["mean_denominator_control"], found["mean_denominator_treatment"]) == (3, 6)
    assert found["verdict"] == "check: denominator differs"
    alike = found_in(rows[rows.groupby("user_id").cumcount() < 3], "ndcg", cluster="user_id")
    assert "denominator_differs" not in alike["remarks"]


def test_honest_ratios_are_rarely_bothered(rng):
    # Ten ratios in one table: the level holds for all of them together. A level for each would warn
    # in ten of 100 runs; chance warns in six with a probability below .001.
    runs, warned = 100, 0
    for _ in range(runs):
        data = shop(rng, 400)
        more = {f"d{i}": rng.poisson(5, 400) + 1 for i in range(9)}
        metrics = {**CTR, **{name: ("clicks", name) for name in more}}
        table = rd.compare_variants(data.assign(**more), metrics, control="A", details=True)
        warned += table["remarks"].str.contains("denominator_differs").any()
    assert warned <= stats.binom.ppf(0.999, runs, 0.01)


def test_the_sample_shop_shows_as_much_in_both_arms():
    shop = rd.sample_shop()
    lists = rd.evaluate(shop.true, shop.shown, ["hits@20"], users="pred")
    users = lists.join_experiment(shop.assignment, missing="zero")
    found = found_in(users, {"ctr": ("hits@20", "n_pred")})
    assert found["p_denominator"] > 0.5
    assert found["effect"] == "better"


# -- few units


@pytest.mark.parametrize("variant", ["A", "B"])
@pytest.mark.parametrize("metrics", [CTR, "clicks"])
def test_ten_bots_decide(rng, metrics, variant):
    # 10 x 500 impressions at 90 % clicks: was "better" or "worse".
    honest = shop(rng)
    data = with_bots(rng, honest, variant=variant)
    found = found_in(data, metrics)
    assert found["p_value"] < 0.01
    bots = data["shown"] == 500
    want = found_in(data[~bots], metrics)["diff"]
    assert found["diff_without_top"] == pytest.approx(want, abs=1e-12)
    assert "few_units" in found["remarks"].split("; ")
    assert found["verdict"] == "check: few units decide"
    permuted = found_in(data, metrics, test="permutation", n_resamples=200)
    assert permuted["verdict"] == "check: few units decide"
    note = (
        rd.experiments.report_table(rd.compare_variants(data, metrics, control="A", details=True))
        .frame["notes"]
        .iloc[0]
    )
    shown = re.search(r"few units \((\S+) without them\)", note)[1].replace("−", "-")
    assert float(shown) == pytest.approx(want, rel=0.005)


def test_ten_bots_hide_an_effect(rng):
    data = with_bots(rng, shop(rng, lift=0.5), variant="A", shown=100)
    found = found_in(data, "clicks")
    assert found["p_value"] > 0.05 or found["diff"] < 0
    assert found["verdict"] == "check: few units decide"


def test_the_top_does_not_depend_on_the_order_of_rows_or_on_ties(rng):
    data = arms(rng.integers(0, 4, 300) * 1.0, rng.integers(0, 4, 200) * 1.0)
    found = compare(data)["diff_without_top"]
    assert compare(data.sample(frac=1, random_state=1))["diff_without_top"] == pytest.approx(
        found, rel=1e-12
    )
    # By hand: of all values 3 (the farthest from the mean of 1.5), ten users' worth goes out, from
    # both arms alike.
    centre = data["m"].mean()
    far = (data["m"] - centre).abs().round(9)
    tied = far == far.max()
    weight = np.where(tied, 1 - 10 / tied.sum(), 1.0)
    means = {
        v: np.average(part["m"], weights=weight[part.index]) for v, part in data.groupby("variant")
    }
    assert found == pytest.approx(means["B"] - means["A"], rel=1e-9)


def test_broad_effects_in_skewed_revenue_are_left_alone(rng):
    rejected = warned = 0
    for _ in range(100):
        revenue = rng.lognormal(0, 1.5, 4000) * np.repeat([1.0, 1.3], 2000)
        found = compare(arms(revenue[:2000], revenue[2000:]))
        rejected += found["p_value"] <= 0.05
        warned += "few_units" in found["remarks"]
    assert rejected >= 60
    assert warned <= 10


def ramp(rng, cells, lift=0.0):
    """Revenue in the periods of a ramp-up, each with its number of users in A and in B; it
    grows."""
    parts = [
        pd.DataFrame(
            {
                "week": week,
                "variant": np.repeat(["A", "B"], n),
                "m": rng.lognormal(0.4 * week, 1.5, sum(n)) * np.repeat([1.0, 1 + lift], n),
            }
        )
        for week, n in enumerate(cells)
    ]
    return pd.concat(parts, ignore_index=True)


def in_weeks(data):
    return rd.compare_variants(data, "m", control="A", strata="week", details=True).iloc[0]


@pytest.mark.parametrize(
    "cells", [[(1960, 40), (1800, 200), (1000, 1000)], [(60, 2940), (5400, 600)]]
)
@pytest.mark.parametrize("lift", [0.0, 0.3])
def test_a_thin_arm_of_a_ramp_up_is_judged_by_its_own_size(rng, cells, lift):
    # Of the 6,000 users of the first case 40 have most of the variance; ten of them were taken for
    # few of 6,000.
    runs = pd.DataFrame({f"m{run}": ramp(rng, cells, lift)["m"] for run in range(60)})
    data = ramp(rng, cells).drop(columns="m").join(runs)
    found = rd.compare_variants(data, [*runs], control="A", strata="week", details=True)
    assert len(found) == 60
    assert found["remarks"].str.contains("few_units").sum() <= 8
    assert (found["p_value"] <= 0.05).sum() <= 9 or lift


@pytest.mark.parametrize("arm", ["A", "B"])
def test_a_whale_in_a_thin_period_hides_an_effect(rng, arm):
    data = pd.DataFrame(
        {
            "week": np.repeat([0, 1], [80, 8000]),
            "variant": np.tile(["A", "B"], 4040),
            "m": rng.normal(1, 1, 8080),
        }
    )
    data["m"] += 0.2 * (data["variant"] == "B")
    assert "few_units" not in in_weeks(data)["remarks"]
    whale = data.index[(data["week"] == 0) & (data["variant"] == arm)][3]
    hidden = data.assign(m=data["m"].where(data.index != whale, 2000 if arm == "A" else -2000))
    found = in_weeks(hidden)
    assert found["p_value"] > 0.05
    assert found["verdict"] == "check: few units decide"
    assert found["diff_without_top"] == pytest.approx(0.2, abs=0.1)


def test_the_difference_without_top_units_is_that_of_the_strata(rng):
    # By hand: the ten units whose part in the estimate is farthest from the mean leave their
    # stratum and arm.
    data = ramp(rng, [(300, 900), (700, 400)])
    weight = data.groupby("week")["m"].size() / len(data)
    mean, size = (data.groupby(["week", "variant"])["m"].transform(how) for how in ("mean", "size"))
    n_arm = data.groupby("variant")["m"].transform("size")
    share = data["week"].map(weight)
    part = (data["m"] - data.groupby("week")["m"].transform("mean")) * share / size * n_arm
    left = data.drop(index=(part - part.mean()).abs().nlargest(10).index)
    means = left.groupby(["variant", "week"])["m"].mean().unstack()
    want = (means.loc["B"] - means.loc["A"]) @ weight
    found = in_weeks(data)
    assert found["diff"] == pytest.approx(
        ((mean * share / size)[data["variant"] == "B"]).sum()
        - ((mean * share / size)[data["variant"] == "A"]).sum()
    )
    assert found["diff_without_top"] == pytest.approx(want, rel=1e-9)


# -- skew


def formula(parts):
    """Skewness of the difference by its formula, from the residuals of both arms."""
    n_c, n_t = map(len, parts)
    return (
        stats.skew(np.concatenate(parts)) * (1 / n_t**2 - 1 / n_c**2) / (1 / n_t + 1 / n_c) ** 1.5
    )


def test_skew_is_that_of_the_residuals_of_each_arm(rng):
    # With an effect, values around the ratio of both arms together are more skewed than the
    # residuals of the arms.
    fired = {True: 0, False: 0}
    for _ in range(40):
        n = 950, 50
        shown = np.ceil(rng.lognormal(1.5, 0.6, sum(n)))
        clicks = rng.binomial(shown.astype(int), np.repeat([0.05, 0.6], n))
        data = pd.DataFrame(
            {"user_id": range(sum(n)), "variant": np.repeat(["A", "B"], n), "c": clicks, "d": shown}
        )
        parts = []
        for _, part in data.groupby("variant"):
            ratio = part["c"].sum() / part["d"].sum()
            parts.append((part["c"] - ratio * part["d"]) / part["d"].mean())
        want = abs(formula(parts)) > 0.2
        found = rd.compare_variants(data, {"r": ("c", "d")}, control="A", details=True)[
            "remarks"
        ].iloc[0]
        assert ("skewed" in found.split("; ")) == want
        fired[bool(want)] += 1
    assert min(fired.values()) > 0


def test_skew_within_strata_and_beside_a_covariate(rng):
    # Few users of a rich country make the values skewed, and not the residuals within countries.
    rich = np.r_[np.arange(950) % 50 == 0, np.arange(50) % 10 == 0]
    value = 20.0 * rich + rng.normal(size=1000)
    data = arms(value[:950], value[950:], rich=rich, past=20.0 * rich + rng.normal(0, 0.1, 1000))
    assert "skewed" in compare(data)["remarks"]
    for options in ({"strata": "rich"}, {"covariates": "past"}):
        assert "skewed" not in compare(data, **options)["remarks"]


def test_ten_of_ten_thousand_are_named(rng):
    # In equal arms the formula gives 0; ten users at 450 are few units, or skewed in unequal arms.
    value = rng.exponential(1, 10_000)
    value[np.r_[9990:10_000]] = 450
    assert compare(arms(value[:5000], value[5000:]))["verdict"] == "check: few units decide"
    assert "skewed" in compare(arms(value[:9000], value[9000:]))["remarks"].split("; ")


# -- covariates of a ratio


def past(rng, n=600):
    data = shop(rng, n)
    taste = rng.gamma(5, 0.02, n)
    for name in ("", "pre_"):
        data[name + "shown"] = rng.poisson(20, n) + 1
        data[name + "clicks"] = rng.binomial(data[name + "shown"], np.minimum(taste, 1))
    return data


def test_a_pair_is_a_tuple_and_a_list_is_a_list(rng):
    data = past(rng)
    want = found_in(data, covariates={"ctr": ("pre_clicks", "pre_shown")})
    assert want["method"] == "welch+cuped"
    pd.testing.assert_series_equal(found_in(data, covariates=("pre_clicks", "pre_shown")), want)
    pd.testing.assert_series_equal(found_in(data, covariates=[("pre_clicks", "pre_shown")]), want)
    # Two covariates were read as a numerator and a denominator.
    several = [
        found_in(data, covariates=one)
        for one in (["pre_clicks", "pre_shown"], ["pre_shown", "pre_clicks"])
    ]
    assert several[0]["se"] == pytest.approx(several[1]["se"], rel=1e-12)
    assert np.isnan(several[0]["theta"])
    assert several[0]["se"] != want["se"]
    both = {**CTR, "clicks": "clicks"}
    with pytest.raises(
        OptionError, match="the metric is a mean; pass several covariates as a list"
    ):
        found_in(data, both, covariates=("pre_clicks", "pre_shown"))
    planned = rd.experiments.plan_experiment(
        data, CTR, n=1000, covariates=["pre_clicks", "pre_shown"]
    )["variance_reduction"]
    assert planned[0] == pytest.approx(several[0]["variance_reduction"], abs=0.05)


# -- repeated units


def sessions(rng, n=60, each=20, names=("user_id", "session_id")):
    """Sessions of users who differ from each other, with no effect."""
    user = np.repeat(np.arange(n), each)
    taste = rng.normal(size=n)
    data = pd.DataFrame(
        {
            names[0]: user,
            names[1]: np.arange(n * each) % each,
            "variant": np.where(user % 2, "B", "A"),
        }
    )
    return data.assign(m=taste[user] + rng.normal(size=n * each))


def test_sessions_taken_for_users(rng):
    # 78 % of runs without an effect had a winner.
    won = 0
    for _ in range(40):
        found = found_in(sessions(rng), "m", user_col=["user_id", "session_id"])
        won += found["p_value"] <= 0.05
        assert found["verdict"] == "check: repeated units"
        assert "repeated_units" in found["remarks"].split("; ")
    assert won > 15
    data = sessions(rng)
    row = found_in(data, "m", user_col=["user_id", "session_id"])
    clustered = found_in(data, "m", cluster="user_id")
    assert (
        clustered["design_effect"] != clustered["design_effect"]
    )  # null: rows are known to be clustered
    assert "repeated_units" not in clustered["remarks"]
    z = data["m"] - data.groupby("variant")["m"].transform("mean")
    by_unit = sum(
        (z[rows].groupby(data["user_id"][rows]).sum() ** 2).sum() * 30 / 29 / 600**2
        for rows in (data["variant"] == "A", data["variant"] == "B")
    )
    assert row["design_effect"] == pytest.approx(by_unit / row["se"] ** 2)
    table = rd.compare_variants(
        data, "m", control="A", user_col=["user_id", "session_id"], details=True
    )
    assert (
        f"repeated units (design effect {row['design_effect']:.3g})"
        in rd.experiments.report_table(table).frame["notes"].iloc[0]
    )


def test_a_repeated_unit_is_found_without_a_key(rng):
    # Neither attrs nor a name says that the rows are sessions of customers.
    data = sessions(rng, names=("customer", "visit")).assign(country=rng.choice(list("xyz"), 1200))
    assert found_in(data, "m")["verdict"] == "check: repeated units"
    data["device"] = np.arange(1200)
    for key in ("device", ["device", "customer"]):
        assert found_in(data, "m", user_col=key)["verdict"] == "check: repeated units"
    renamed = data.rename(columns={"customer": "user_id"})
    for key in ("device", ["device", "user_id"]):
        assert found_in(renamed, "m", user_col=key)["verdict"] == "check: repeated units"
    with pytest.raises(DuplicateError, match="several rows of a user"):
        rd.experiments.variant_moments(renamed, "m", user_col=["device", "user_id"])
    assert (
        len(
            rd.experiments.variant_moments(renamed, "m", user_col=["device", "user_id"], by="visit")
        )
        == 40
    )
    # Buckets by which users are assigned hold users who are not alike.
    bucket = rng.integers(0, 100, 5000)
    users = pd.DataFrame(
        {"visitor": np.arange(5000), "bucket": bucket, "variant": np.where(bucket < 50, "A", "B")}
    )
    assert found_in(users.assign(m=rng.normal(size=5000)), "m", user_col="visitor")["remarks"] == ""
    assert "repeated_units" not in found_in(data.drop(columns="customer"), "m")["remarks"]
    # A row per user and week is no repetition within the week.
    assert (
        "repeated_units"
        not in found_in(renamed, "m", user_col=["user_id", "device"], by="visit")["remarks"]
    )


def test_joined_sessions_are_named(rng):
    data = sessions(rng)
    keys = ["user_id", "session_id"]
    joined = rd.join_experiment(
        data.drop(columns="variant"), data[[*keys, "variant"]], user_col=keys
    )
    for users in (joined, joined.merge(data[keys].assign(x=1), on=keys)):  # merge drops attrs
        assert found_in(users, "m", user_col=keys)["verdict"] == "check: repeated units"


def test_columns_that_are_no_ids_of_units(rng):
    # Whole numbers, texts and lists of users who were assigned one by one.
    n = 2000
    data = arms(rng.normal(size=n // 2), rng.normal(size=n // 2)).drop(columns="user_id")
    data = data.assign(
        age=rng.integers(18, 80, n), country=rng.choice(list("abcdefgh"), n), seen=[[1, 2]] * n
    )
    data["cents"], data["row"] = rng.integers(0, 100_000, n), np.arange(n)
    assert "repeated_units" not in found_in(data, "m")["remarks"]
    few = data.assign(
        variant=np.where(np.arange(n) < 1990, "A", "B")
    )  # most values are in one arm by chance
    assert "repeated_units" not in found_in(few, "m")["remarks"]

"""`compare_variants` gives no false verdict from odd tables: sample ratios, relative
intervals, no numbers, directions, exposure."""

import numpy as np
import pandas as pd
import pytest
from experiments.verdicts import NUMBERS, arms, compare
from scipy import stats

import recdf as rd
from recdf.errors import DataError, OptionError
from recdf.stats.arms import arm, effect

# -- the sample ratio


@pytest.mark.long
def test_an_unchecked_sample_ratio_is_said(rng):
    # 10,000 against 5,000 users and no planned shares: was plainly "better".
    data = arms(rng.normal(size=10_000), rng.normal(0.2, 1, 5_000))
    assert compare(data)["verdict"].endswith(" or less (sample ratio not checked)")
    assert compare(data, expected={"A": 2, "B": 1})["effect"] == "better"
    groups = data[["user_id", "variant"]]
    for expected, withheld in ((None, "sample_ratio"), ({"A": 2, "B": 1}, "")):
        health = rd.experiments.experiment_health(data[["user_id"]], groups, expected=expected)
        assert compare(data, health=health)["withheld"] == withheld
    with pytest.raises(OptionError, match="both given"):
        compare(data, health=health, expected={"A": 2, "B": 1})
    with pytest.raises(OptionError, match="no variant 'B'"):
        compare(data, health=health[health["variant"] == "A"])
    with pytest.raises(TypeError, match="health is a dict"):
        compare(data, health={})
    # Too few users to test the ratio is not a ratio that was checked.
    few = arms(np.arange(3.0), np.arange(3.0))
    assert (
        rd.compare_variants(few, "m", control="A", expected={"A": 1, "B": 1}, details=True)[
            "verdict"
        ]
        .iloc[0]
        .startswith("check")
    )


def test_health_by_segment_speaks_for_its_segment(rng):
    data = arms(
        rng.normal(size=900),
        rng.normal(0.6, 1, 500),
        s=["x"] * 500 + ["y"] * 400 + ["x"] * 480 + ["y"] * 20,
    )
    health = rd.experiments.experiment_health(
        data[["user_id"]], data[["user_id", "variant", "s"]], by="s"
    )
    table = rd.compare_variants(data, "m", control="A", by="s", health=health, details=True)
    assert table["effect"].tolist() == ["better", ""]
    assert table["withheld"].tolist() == ["", "sample_ratio"]
    with pytest.raises(OptionError, match=r"not by \['s'\]"):
        compare(data, health=health)


def experiment(rng, n=(1000, 1000), ids=0, **columns):
    """Users of both variants, with the metric m and further columns."""
    data = arms(rng.normal(size=n[0]), rng.normal(0.3, 1, n[1]), **columns)
    return data.assign(user_id=data["user_id"] + ids)


def health_of(data, **options):
    return rd.experiments.experiment_health(data[["user_id"]], data.drop(columns="m"), **options)


@pytest.mark.long
def test_health_of_another_experiment_is_refused(rng):
    mine, plan = experiment(rng, (10_000, 5_000)), {"A": 2, "B": 1}
    small = health_of(experiment(rng, (1_009, 991)))
    with pytest.raises(
        OptionError, match=r"1,009 of 'A', 991 of 'B', and data has 10,000 of 'A', 5,000 of 'B'"
    ):
        compare(mine, health=small)
    # As many users, but other ones; other users who are more; the same users, assigned by another
    # draw.
    for other in (
        experiment(rng, (10_000, 5_000), ids=10**6),
        experiment(rng, (20_000, 10_000), ids=10**6),
        mine.assign(variant=rng.permutation(mine["variant"])),
    ):
        with pytest.raises(OptionError, match="made of other users than data"):
            compare(mine, health=health_of(other, expected=plan))
    own = health_of(mine, expected=plan)
    assert compare(mine, health=own)["effect"] == "better"
    # The ids may be stored in another form, and the rows in another order.
    other_form = mine.assign(
        user_id=mine["user_id"].astype("int32"), variant=mine["variant"].astype("category")
    )
    assert compare(other_form.sample(frac=1, random_state=1), health=own)["effect"] == "better"
    text = mine.assign(user_id="u" + mine["user_id"].astype(str))
    for kind in (object, "category", "str"):
        assert (
            compare(text.astype({"user_id": kind}), health=health_of(text, expected=plan))["effect"]
            == "better"
        )
    with pytest.raises(OptionError, match="made of other users"):
        rd.experiments.compare_variants_from_moments(
            rd.experiments.variant_moments(mine, "m"), control="A", health=small, details=True
        )


@pytest.mark.long
def test_health_may_be_of_more_users_than_are_compared(rng, tmp_path):
    data = experiment(
        rng, (3_000, 3_000), country=rng.choice(["x", "y"], 6_000), old=rng.random(6_000) < 0.3
    )
    health = health_of(data)
    health.to_parquet(tmp_path / "health.parquet")
    health = pd.read_parquet(tmp_path / "health.parquet")
    health.attrs = {}
    assert compare(data[data["old"]], health=health)["effect"] == "better"
    assert compare(data, by="country", health=health)["effect"] == "better"
    assert (
        compare(data[data["old"]], by="country", health=health_of(data, by="country"))["effect"]
        == "better"
    )
    assert (
        compare(data.assign(m=data["m"].where(~data["old"])), nan="drop", health=health)["effect"]
        == "better"
    )
    renamed = data.rename(columns={"user_id": "customer"})
    assert compare(renamed, user_col="customer", health=health)["effect"] == "better"
    visits = pd.concat([data, data])
    assert compare(visits, cluster="user_id", health=health)["effect"] == "better"
    with pytest.raises(OptionError, match="made of other users"):
        compare(visits.drop(columns="user_id"), health=health)
    # Two variants of three.
    third = experiment(rng, (10, 3_000), ids=10_000).replace({"variant": {"B": "C"}})
    three = health_of(pd.concat([data, third[third["variant"] == "C"]]))
    assert compare(data, health=three)["effect"] == "better"
    # Twenty of three thousand users: the same test that `expected=` makes.
    assert rd.experiments.compare_variants_from_moments(
        rd.experiments.variant_moments(data, "m"), control="A", health=health, details=True
    )["effect"].tolist() == ["better"]


@pytest.mark.long
def test_the_sample_ratio_is_that_of_the_users_compared(rng):
    # The treatment pulls light users into exposure; all assigned users fit the plan. Was "worse",
    # silently.
    n = 10_000
    heavy, treated = rng.random(n) < 0.5, rng.random(n) < 0.5
    seen = rng.random(n) < np.where(heavy, 0.6, 0.2 + 0.15 * treated)
    day = pd.Timestamp("2026-09-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="h")
    groups = pd.DataFrame(
        {"user_id": range(n), "variant": np.where(treated, "B", "A"), "seen_at": day.where(seen)}
    )
    rows = pd.DataFrame({"user_id": range(n), "m": heavy + rng.normal(size=n), "time": day})[seen]
    health = rd.experiments.experiment_health(rows, groups, expected={"A": 1, "B": 1})
    assert not health["srm_flag"].any()
    users = rd.join_experiment(
        rows, groups, missing="zero", exposure_col="seen_at", time_col="time"
    )
    found = compare(users, health=health)
    assert found["verdict"] == "invalid: sample ratio"
    assert found["remarks"] == "sample_ratio; unbounded"
    exposed = rd.experiments.experiment_health(users, users, expected={"A": 1, "B": 1})
    assert found["srm_p"] <= exposed["srm_p"].iloc[0] < 0.001
    # Users without metrics who are left out, more of them in one arm: the users who are left would
    # fit the plan.
    lost = np.where(treated, rng.random(n) < 0.10, rng.random(n) < 0.06)
    joined = rd.join_experiment(
        rows[["user_id", "m"]].assign(m=1.0), groups[["user_id", "variant"]], missing="nan"
    )
    part = joined.assign(m=rng.normal(size=n))[~lost]
    assert stats.binomtest(int((part["variant"] == "A").sum()), len(part)).pvalue > 0.001
    assert compare(part, health=health)["verdict"] == "invalid: sample ratio"
    moments = rd.experiments.variant_moments(part, "m")
    assert rd.experiments.compare_variants_from_moments(
        moments, control="A", health=health, details=True
    )["verdict"].tolist() == ["invalid: sample ratio"]


def test_shares_that_change_over_time_are_named(rng):
    # Ramp-up 90/10 in a good week, 10/90 in a bad one: pooled +.67 of a true −.15.
    week = np.repeat([1, 2], 5000)
    treated = rng.random(10_000) < np.where(week == 1, 0.1, 0.9)
    m = np.where(week == 1, 0.0, 1.0) - 0.15 * treated + rng.normal(size=10_000)
    data = pd.DataFrame(
        {"user_id": range(10_000), "variant": np.where(treated, "B", "A"), "week": week, "m": m}
    )
    found = compare(data, time_col="week")
    assert found["diff"] > 0.5
    assert (found["remarks"], found["verdict"]) == (
        "shares_change; unbounded; ratio_not_checked",
        "check: shares of the variants change",
    )
    strata = compare(data, strata="week", time_col="week")
    assert strata["diff"] == pytest.approx(-0.15, abs=0.08)
    assert strata["verdict"].startswith("worse")
    days = data.assign(
        day=pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.permutation(10_000), unit="min")
    )
    assert compare(days, time_col="day")["remarks"] == "unbounded; ratio_not_checked"
    cohorts = data.assign(cohort=np.where(week == 1, "old", "new"))
    assert (
        compare(cohorts, time_col="cohort")["remarks"]
        == "shares_change; unbounded; ratio_not_checked"
    )


# -- relative intervals


def test_relative_interval_agrees_with_the_test(rng):
    # The log interval contradicted p in up to 16 % of skewed runs without an effect.
    sides = arm(rng.lognormal(0, 1.5, (2000, 60))), arm(rng.lognormal(0, 1.5, (2000, 30)))
    contradicted = {}
    for relative in ("fieller", "log"):
        found = effect(*sides, relative=relative)
        known = ~np.isnan(found.rel_ci_low)
        inside = (found.rel_ci_low <= 0) & (found.rel_ci_high >= 0)
        contradicted[relative] = np.mean((inside != (found.p_value > 0.05))[known])
    assert contradicted["fieller"] == 0
    assert contradicted["log"] > 0.02


def test_fieller_by_inverting_the_test(rng):
    data = arms(rng.gamma(2, size=80), rng.gamma(2, 1.2, 70))
    found = compare(data)
    c, t = (part["m"].to_numpy() for _, part in data.groupby("variant"))
    quantile = stats.t.ppf(0.975, found["df"])
    for limit in (found["rel_ci_low"] + 1, found["rel_ci_high"] + 1):
        se = np.sqrt(t.var(ddof=1) / len(t) + limit**2 * c.var(ddof=1) / len(c))
        assert abs(t.mean() - limit * c.mean()) == pytest.approx(quantile * se)
    # A control that may be 0 has no bounded ratio.
    assert np.isnan(compare(arms(rng.normal(0.1, 5, 50), rng.normal(0.1, 5, 50)))["rel_ci_low"])


# -- numbers that are no numbers


def test_huge_values_and_empty_denominators_are_named():
    # Values of 1e155 overflow when squared: the standard error was infinite.
    found = compare(arms(np.r_[np.full(20, 1e200), np.ones(20)], np.arange(40.0)))
    assert (found["remarks"], found["verdict"]) == (
        "huge_values; ratio_not_checked",
        "check: huge values",
    )
    assert found[NUMBERS].isna().all()
    assert found["mean_control"] == pytest.approx(5e199)
    past = arms(np.arange(40.0), np.arange(40.0), past=np.r_[1e200, np.ones(79)], other=1.0)
    for covariates in ("past", ["past", "other"]):
        assert compare(past, covariates=covariates)["remarks"] == "huge_values; ratio_not_checked"
    data = arms(np.arange(1000.0), np.arange(1000.0) + 3)
    data["n"] = np.where(data["user_id"] % 25 == 0, 1.0, 0.0)
    assert "mostly_zero_denominator" in compare(data, {"r": ("m", "n")})["remarks"]


@pytest.mark.parametrize("options", [{}, {"weight_col": "w"}])
def test_a_segment_without_users_of_two_of_three_variants_has_no_effect(rng, options):
    data = arms(rng.normal(size=60), rng.normal(size=60), x=rng.normal(size=120))
    data = data.assign(w=1 + np.arange(120) % 3, half=np.arange(120) % 2, country="fi")
    alone = data[:40].assign(user_id=range(200, 240), variant="C")
    data = pd.concat([data, alone, alone.assign(user_id=range(300, 340), country="se")])
    given = {"metrics": "m", "control": "A", "covariates": "x", "by": "country", **options}
    table = rd.compare_variants(data, **given, details=True).set_index(["country", "treatment"])
    assert table["diff"].isna().tolist() == [False, False, True, True]
    assert (table.loc["se", "withheld"] == "too_few_users").all()
    assert table.loc["fi", "balance_p"].notna().all()
    with pytest.raises(DataError, match="have fewer than 2 users in an arm"):
        rd.compare_variants(data, **given, strata="half")


def test_replicates_without_a_denominator_are_no_ratio(rng):
    # One user in twenty has something in the denominator: some replicates have none, and were
    # infinite.
    data = arms(rng.random(40) + 1, rng.random(40) + 1)
    data["n"] = np.where(data["user_id"] % 20 == 0, 1.0, 0.0)
    found = compare(data, {"r": ("m", "n")}, test="bootstrap", n_resamples=200)
    assert np.isfinite(found[["se", "ci_low", "ci_high", "p_value"]].astype(float)).all()
    tiny = compare(arms([1e-160], [1e160]))
    assert tiny["rel_diff"] != np.inf


def test_users_without_lists_leave_the_ratio_and_are_counted():
    # After roll_up by sums a user without defined lists has a null sum over 0 lists: was an error
    # for all metrics.
    sessions = pd.DataFrame(
        {
            "user_id": np.repeat(np.arange(100), 2),
            "n_pred": 10,
            "ndcg@10": np.tile([0.2, 0.5], 100) + 0.001,
        }
    )
    sessions["ndcg@10"] += np.arange(200) / 1000
    sessions.loc[sessions["user_id"] < 5, "ndcg@10"] = np.nan
    users = rd.experiments.roll_up(sessions, how="sum")
    users["variant"] = np.where(users["user_id"] % 2, "A", "B")
    recipe = {"ndcg": ("ndcg@10", "ndcg@10__n"), "ctr": ("n_pred", "n_rows")}
    table = rd.compare_variants(users, recipe, control="A", details=True)
    assert table["n_dropped"].tolist() == [5, 0]
    known = sessions.dropna().assign(variant=lambda x: np.where(x["user_id"] % 2, "A", "B"))
    want = known.groupby("variant")["ndcg@10"].mean()
    assert table["diff"].iloc[0] == pytest.approx(want["B"] - want["A"])
    # A null numerator over lists that exist is a missing value.
    with pytest.raises(DataError, match="'ndcg' is null in 5 of 100"):
        rd.compare_variants(
            users.assign(**{"ndcg@10__n": 2}),
            {"ndcg": ("ndcg@10", "ndcg@10__n")},
            control="A",
            details=True,
        )


def test_one_control_has_one_mean(rng):
    past = rng.normal(size=900)
    data = pd.DataFrame(
        {
            "user_id": range(900),
            "variant": np.repeat(list("ABC"), 300),
            "past": past,
            "m": past + rng.normal(size=900),
        }
    )
    table = rd.compare_variants(data, "m", control="A", covariates="past", details=True)
    assert table["mean_control"].tolist() == [pytest.approx(data["m"][:300].mean())] * 2
    adjusted = table["mean_treatment_adjusted"] - table["mean_control_adjusted"]
    np.testing.assert_allclose(table["diff"], adjusted)
    assert (
        rd.compare_variants(data, "m", control="A", details=True)["mean_control_adjusted"]
        .isna()
        .all()
    )


# -- direction


def test_metrics_without_direction_are_higher_or_lower(rng):
    data = arms(rng.normal(size=200), rng.normal(1, 1, 200))
    data = data.assign(**{"arp@10": data["m"], "first_rank@10": data["m"], "hits@10": -data["m"]})
    table = rd.compare_variants(
        data,
        ["arp@10", "first_rank@10", "hits@10"],
        control="A",
        expected={"A": 1, "B": 1},
        details=True,
    )
    assert table["effect"].tolist() == ["higher", "worse", "lower"]
    table = rd.compare_variants(
        data,
        "arp@10",
        control="A",
        smaller_is_better="arp@10",
        expected={"A": 1, "B": 1},
        details=True,
    )
    assert table["effect"].tolist() == ["worse"]
    # The mean of a metric over lists has the direction of the metric.
    lists = data.assign(**{"first_rank@10__n": 1.0})
    ratio = {"rank": ("first_rank@10", "first_rank@10__n")}
    assert compare(lists, ratio, expected={"A": 1, "B": 1})["effect"] == "worse"
    with pytest.raises(
        OptionError, match=r"\['m'\] are in smaller_is_better and in larger_is_better"
    ):
        compare(data, smaller_is_better="m", larger_is_better="m")


def joined(metric, values, **options):
    per_user = pd.DataFrame({"user_id": range(len(values)), metric: values})
    groups = pd.DataFrame(
        {"user_id": range(len(values) + 2), "variant": ["A", "B"] * (len(values) // 2 + 1)}
    )
    return rd.join_experiment(per_user, groups, **{"missing": "zero", **options})


ZEROS = [
    ("ndcg@10", "zero", 0.0),
    ("hits@10", "zero", 0.0),
    ("revenue@10", "zero", 0.0),
    ("dcg@10", "zero", 0.0),
    ("first_rank@10", "zero", None),
    ("fallout@10", "zero", None),
    ("arp@10", "zero", None),
    ("mcc@10", "zero", None),
    ("fallout@10", "worst", 1.0),
    ("mcc@10", "worst", -1.0),
    ("first_rank@10", "worst", None),
    ("ndcg@10", "worst", 0.0),
    ("n_visits", "zero", 0.0),
    ("ndcg@10__n", "zero", 0.0),
]


@pytest.mark.parametrize(("metric", "missing", "want"), ZEROS)
def test_a_missing_list_is_not_a_zero_of_every_metric(metric, missing, want):
    # first_rank and other metrics of which less is better got the best value there is: "better".
    found = joined(metric, [0.5, 0.25], missing=missing)
    assert found["has_metrics"].tolist() == [True, True, False, False]
    filled = found[metric].iloc[2:]
    assert filled.isna().all() if want is None else (filled == want).all()
    assert found.attrs["recdf_experiment"]["null_for_missing"] == ([metric] if want is None else [])


def test_a_metric_of_unknown_direction_names_the_argument():
    with pytest.raises(
        OptionError, match=r"per_user\['latency'\].*larger_is_better=.*smaller_is_better="
    ):
        joined("latency", [0.5, 0.25])
    assert joined("latency", [0.5, 0.25], smaller_is_better="latency")["latency"].isna().sum() == 2
    assert joined("spend", [5, 2], larger_is_better="spend")["spend"].tolist() == [5, 2, 0, 0]
    # Nobody is missing: there is nothing to fill.
    per_user = pd.DataFrame({"user_id": [1, 2], "latency": [3.0, 4.0]})
    groups = pd.DataFrame({"user_id": [1, 2], "variant": ["A", "B"]})
    assert rd.join_experiment(per_user, groups, missing="zero")["latency"].tolist() == [3.0, 4.0]


# -- exposure


def visits():
    return pd.DataFrame(
        {
            "user_id": [1, 1, 2, 2, 3],
            "week": [1, 2, 1, 2, 2],
            "day": [2, 9, 3, 10, 12],
            "hits@10": [1.0, 2, 3, 4, 5],
        }
    )


def test_weeks_before_the_exposure_are_absent():
    # by="week" counted users who were not exposed yet as zeros.
    groups = pd.DataFrame({"user_id": [1, 2, 3, 4], "variant": list("ABAB"), "at": [1, 8, 11, 2]})
    found = rd.join_experiment(
        visits(), groups, by="week", missing="zero", exposure_col="at", time_col="day"
    )
    cells = list(zip(found["week"], found["user_id"], found["hits@10"], strict=True))
    # User 2 was exposed in week 2, user 3 too; user 4 was exposed in week 1 and never came.
    assert cells == [(1, 1, 1.0), (1, 4, 0.0), (2, 1, 2.0), (2, 2, 4.0), (2, 3, 5.0), (2, 4, 0.0)]
    counts = found.attrs["recdf_experiment"]
    assert (
        counts["n_cells_before_exposure"],
        counts["n_missing"],
        counts["n_before_exposure"],
    ) == (2, 2, 1)


@pytest.mark.parametrize("never", [None, np.nan, pd.NaT])
def test_users_who_were_never_exposed(never):
    groups = pd.DataFrame(
        {"user_id": [1, 2, 3, 3], "variant": list("ABAA"), "at": [1, 3, never, never]}
    )
    if never is pd.NaT:
        groups["at"] = pd.to_datetime(["2026-01-01", "2026-01-03", None, None])
    lists = visits().assign(
        day=visits()["day"] if never is not pd.NaT else pd.Timestamp("2026-01-20")
    )
    options = {"how": "sum", "exposure_col": "at", "time_col": "day"}
    found = rd.join_experiment(lists.drop(columns="week"), groups, **options)
    assert found["user_id"].tolist() == [1, 2]
    assert found.attrs["recdf_experiment"]["n_unexposed"] == 1
    # A user with one time of exposure among nulls was exposed then.
    late = groups.assign(user_id=[1, 2, 3, 2]).iloc[[0, 3, 1, 2]].assign(variant=list("ABBA"))
    found = rd.join_experiment(lists.drop(columns="week"), late, **options)
    assert found["user_id"].tolist() == [1, 2]
    with pytest.raises(DataError, match="null in all 4 rows; nobody was exposed"):
        rd.join_experiment(lists, groups.assign(at=pd.NaT), **options)

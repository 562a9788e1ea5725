"""What differs between the arms before the experiment: ramp-ups, unknown dates, users of both arms,
what the treatment moves. Expected shares of runs are those of a simulation without an effect."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import recdf as rd

PLANNED = {"A": 1, "B": 1}
RUNS = 12


def ramp(seed, rising=True):
    """Users of 14 days in two weeks; the share of B rises within a week, and so does the metric."""
    draw = np.random.default_rng(seed)
    day = draw.integers(0, 14, 6000)
    share = np.linspace(0.02, 0.5, 7)[day % 7] if rising else 0.3
    start = pd.Timestamp("2026-11-02")
    return pd.DataFrame(
        {
            "user_id": np.arange(6000),
            "variant": np.where(draw.random(6000) < share, "B", "A"),
            "week": day // 7,
            "assigned_at": start + pd.to_timedelta(day, "D"),
            "spend": draw.normal(0, 1, 6000) + 0.15 * (day % 7),
        }
    )


def compare(users, metric="spend", **options):
    return rd.compare_variants(
        users, metric, control="A", larger_is_better=metric, **options, details=True
    ).iloc[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_ramp_up_within_the_strata_is_named(seed):
    within = {"strata": "week", "time_col": "week"}
    found = compare(ramp(seed), **within)
    assert (found["withheld"], found["verdict"]) == (
        "shares_change",
        "check: shares of the variants change",
    )
    assert found["unbalanced"] == "assigned_at"
    assert compare(ramp(seed, rising=False), **within)["withheld"] == ""
    # A day as the stratum is what the sentence asks for.
    days = ramp(seed).assign(day=lambda users: users["assigned_at"].dt.day)
    assert compare(days, strata="day", time_col="day")["withheld"] == ""


def test_dates_that_are_no_time_of_the_strata_are_not_tested():
    users = ramp(2, rising=False)
    rising = np.where(users["variant"] == "B", 400, 0) + np.arange(len(users)) % 365
    users["born"] = pd.Timestamp("1980-01-01") + pd.to_timedelta(rising, "D")
    assert compare(users, strata="week", time_col="week")["withheld"] == ""


def test_one_unknown_date_does_not_hide_a_ramp_up():
    users = ramp(1)
    users.loc[7, "assigned_at"] = pd.NaT
    found = compare(users)
    assert (found["withheld"], found["unbalanced"]) == ("shares_change", "assigned_at")
    half = ramp(1)
    half.loc[::2, "assigned_at"] = pd.NaT  # a column with many gaps is no time of the assignment
    assert compare(half)["withheld"] == ""


def both_arms(seed, share, how):
    """Users of whom the active ones more often came in both arms; the first variant decides."""
    draw = np.random.default_rng(seed)
    active, n = draw.gamma(1, 1, 2000), 2000
    users = pd.DataFrame(
        {
            "user_id": np.arange(n),
            "variant": np.where(draw.random(n) < share, "B", "A"),
            "seen": pd.Timestamp("2026-11-01"),
        }
    )
    twice = users[draw.random(n) < 0.06 * active]
    later = twice.assign(
        variant=twice["variant"].map({"A": "B", "B": "A"}), seen=pd.Timestamp("2026-11-05")
    )
    values = pd.DataFrame(
        {
            "user_id": np.arange(n),
            "spend": draw.poisson(3 * active).astype(float),
            "time": pd.Timestamp("2026-11-10"),
        }
    )
    assigned = pd.concat([users, later], ignore_index=True)
    times = {"exposure_col": "seen", "time_col": "time"}
    if how == "first":
        return rd.join_experiment(values, assigned, multi_variant="first", **times), users
    return rd.join_experiment(values, assigned, multi_variant="drop", **times), users


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_users_of_both_arms_that_were_left_out_withhold_in_unequal_arms(seed):
    dropped, _ = both_arms(seed, 0.1, "drop")
    found = compare(dropped)
    assert (found["withheld"], found["verdict"]) == ("users_in_both", "check: users in both arms")
    assert "users in both arms" in found["unbalanced"]
    equal, _ = both_arms(seed, 0.5, "drop")
    assert compare(equal)["withheld"] == ""


def test_the_variant_seen_first_counts_each_user_once():
    first, users = both_arms(0, 0.1, "first")
    assert first.set_index("user_id")["variant"].equals(users.set_index("user_id")["variant"])
    assert compare(first)["withheld"] == ""
    with pytest.raises(rd.OptionError, match="the variant seen first, which needs the time"):
        rd.join_experiment(
            first[["user_id", "spend"]], users.drop(columns="seen"), multi_variant="first"
        )


def visits(seed, moved):
    """B makes some users visit more often; within a number of visits nothing differs."""
    draw = np.random.default_rng(seed)
    treated = draw.random(6000) < 0.5
    number = draw.poisson(2 + moved * treated)
    return pd.DataFrame(
        {
            "user_id": np.arange(6000),
            "variant": np.where(treated, "B", "A"),
            "visits": np.minimum(number, 6),
            "spend": number + draw.poisson(3, 6000).astype(float),
        }
    )


@pytest.mark.long
def test_strata_that_the_treatment_moves_withhold_the_verdict():
    options = {"strata": "visits", "expected": PLANNED}
    moved = [compare(visits(seed, 0.25), **options) for seed in range(RUNS)]
    assert {one["withheld"] for one in moved} == {"strata_moved"}
    assert moved[0]["verdict"] == "check: strata differ in worth"
    assert moved[0]["unbalanced"].startswith("strata of spend")
    still = [compare(visits(seed, 0.0), **options)["remarks"] for seed in range(RUNS)]
    assert sum("strata" in remarks for remarks in still) <= 1


def more_visits(seed, moved, segments=4):
    """Active users spend more, and B makes all of them visit more often. So its users of any number
    of visits are less active, and spend less than those of A. The segments differ in nothing."""
    draw = np.random.default_rng(seed)
    active, treated = draw.gamma(2, 1, 6000), draw.random(6000) < 0.5
    users = pd.DataFrame({"user_id": range(6000), "variant": np.where(treated, "B", "A")})
    users["segment"] = draw.integers(0, segments, 6000)
    users["visits"] = np.minimum(draw.poisson(active * (1 + moved * treated)), 4)
    return users.assign(spend=active + draw.normal(size=6000))


def p_within_segments(users):
    """p of the treatment in a regression of what the strata of each segment are worth, the mean of
    the means of both arms, on treatment and segment."""
    means = users.groupby(["segment", "visits", "variant"])["spend"].mean()
    worth = means.groupby(["segment", "visits"]).mean().rename("worth").reset_index()
    y = users.merge(worth, on=["segment", "visits"], how="left")["worth"]
    treated = (users["variant"] == "B").astype(float)
    y, x = (one - one.groupby(users["segment"]).transform("mean") for one in (y, treated))
    return stats.pearsonr(x, y).pvalue


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("moved", [0.2, 0.0])
def test_strata_that_the_treatment_moves_are_tested_over_all_segments(seed, moved):
    """Each of four segments alone shows it in a third of them, and "worse" was said in half of the
    runs."""
    users = more_visits(seed, moved)
    options = {"control": "A", "expected": PLANNED, "strata": "visits", "by": "segment"}
    table = rd.compare_variants(users, "spend", **options, larger_is_better="spend")
    p = p_within_segments(users)
    assert (table["withheld"] == "strata_moved").all() == (p < 0.001)
    assert moved == (p < 0.01) * 0.2
    if moved:
        assert set(rd.experiments.segment_effects(table)["withheld"]) <= {"", "strata_moved"}


def test_weeks_of_the_same_users_are_not_added_up():
    """One chance, seen four times, is no stronger than in each week, in which it is not shown."""
    users = next(
        one.assign(segment=0)
        for one in (more_visits(seed, 0) for seed in range(200))
        if 0.02 < p_within_segments(one.assign(segment=0)) < 0.05
    )
    weeks = pd.concat([users.assign(segment=week) for week in range(4)])
    options = {"control": "A", "expected": PLANNED, "strata": "visits", "by": "segment"}
    apart = weeks.assign(user_id=range(len(weeks)))
    found = [
        rd.compare_variants(one, "spend", **options, larger_is_better="spend")["withheld"]
        for one in (weeks, weeks.drop(columns="user_id"), apart)
    ]
    assert [set(one) for one in found] == [{""}, {""}, {"strata_moved"}]


@pytest.mark.few(1)
@pytest.mark.parametrize("moved", [0.25, 0.0])
def test_segments_that_the_treatment_moves_withhold_the_verdicts(moved):
    """Active users spend more, and B makes all of them visit more often. So its users of any number
    of visits are less active."""
    draw = np.random.default_rng(5)
    treated, active = np.arange(6000) % 2 == 1, np.repeat(draw.gamma(2, 1, 3000), 2)
    users = pd.DataFrame({"user_id": range(6000), "variant": np.where(treated, "B", "A")})
    users["visits"] = np.minimum(draw.poisson(active * (1 + moved * treated)), 4)
    users["spend"] = active + draw.normal(size=6000)
    options = {"control": "A", "expected": PLANNED, "by": "visits", "larger_is_better": "spend"}
    moments = rd.experiments.variant_moments(users, "spend", by="visits")
    found = [
        rd.compare_variants(users, "spend", **options),
        rd.experiments.compare_quantiles(users, "spend", quantiles=0.5, **options),
        rd.experiments.compare_variants_from_moments(moments, **options),
    ]
    for table in found:
        assert ("strata_moved" in "; ".join(table["remarks"])) == bool(moved)
        assert not (moved and table["effect"].any())
    worth = users.groupby("visits")["spend"].mean()
    index, arm = users["visits"].map(worth), users["variant"]
    assert (stats.ttest_ind(index[arm == "A"], index[arm == "B"]).pvalue < 0.001) == bool(moved)


def test_strata_of_clusters_are_fixed_where_the_rows_of_a_cluster_share_them():
    """Regions of houses that were assigned whole: rows would count each house many times."""
    for seed in (0, 4, 6):
        draw = np.random.default_rng(seed)
        house = np.repeat(np.arange(200), draw.integers(1, 12, 200))
        region, treated = draw.integers(0, 5, 200), draw.random(200) < 0.5
        y = draw.normal(size=len(house)) + draw.normal(size=200)[house] + 0.8 * region[house]
        variant = np.where(treated, "B", "A")[house]
        columns = {"house": house, "region": region[house], "variant": variant, "spend": y}
        users = pd.DataFrame(columns)
        assert "strata" not in compare(users, strata="region", cluster="house")["remarks"]


def of_cells(rows):
    """Users by (segment, variant, visits, users, users without a value)."""
    names = ("segment", "variant", "visits")
    parts = [
        pd.DataFrame(
            {**dict(zip(names, labels, strict=True)), "null": np.arange(n) < n_null}, range(n)
        )
        for *labels, n, n_null in rows
    ]
    users = pd.concat(parts, ignore_index=True)
    noise = np.random.default_rng(2).normal(size=len(users))
    spend = (5.0 * users["visits"] + noise).mask(users.pop("null"))
    return users.assign(user_id=range(len(users)), spend=spend)


@pytest.mark.parametrize(
    ("odd", "remark", "p"),
    [
        # 3,300 users, of whom B has 1,570 + 80: z = (1,730 − 1,570)/√3,300
        ([("A", 0, 1730, 0), ("B", 0, 1570, 0)], "exposure_differs", 0.0053),
        # 12 and 30 of 450 users without a value
        ([("A", 0, 450, 12), ("B", 0, 450, 30)], "unequal_missing", 0.0045),
        # 45 and 55 % of 450 users visit: z = 0.1/√(0.5/450)
        (
            [("A", 0, 248, 0), ("A", 1, 202, 0), ("B", 0, 202, 0), ("B", 1, 248, 0)],
            "strata_differ_in_worth",
            0.0022,
        ),
    ],
)
def test_segments_share_the_level_of_a_check(odd, remark, p):
    """Of eight segments, one has p below .01 in eight of a hundred honest experiments."""
    if remark == "exposure_differs":
        z = (odd[0][2] - odd[1][2]) / np.sqrt(odd[0][2] + odd[1][2])
        assert 2 * stats.norm.sf(z) == pytest.approx(p, abs=0.0002)
    else:
        table = [[n - n_null, n_null] for *_, n, n_null in odd]
        if remark != "unequal_missing":
            table = [[odd[0][2], odd[1][2]], [odd[2][2], odd[3][2]]]
        chi2 = stats.chi2_contingency(table, correction=False)
        assert chi2.pvalue == pytest.approx(p, abs=0.0005)
    even = [
        (f"even {i}", variant, visits, 225, 0)
        for i in range(7)
        for variant in "AB"
        for visits in (0, 1)
    ]
    users = of_cells([*even, *(("odd", *one) for one in odd)])
    options = {"control": "A", "expected": PLANNED, "by": "segment", "nan": "drop"}
    options |= {"strata": "visits"} if remark == "strata_differ_in_worth" else {}
    for frame, told in ((users, False), (users[users["segment"] == "odd"], True)):
        found = rd.compare_variants(frame, "spend", **options, larger_is_better="spend")
        assert found["remarks"].str.contains(remark).any() == told

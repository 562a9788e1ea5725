"""The planned shares of a ramp-up: one plan for each period, in every check of the sample ratio."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import recdf as rd

find_srm, experiment_health = rd.experiments.find_srm, rd.experiments.experiment_health

PLAN = {"one": {"A": 90, "B": 5, "C": 5}, "two": {"A": 0.5, "B": 0.25, "C": 0.25}}


def ramped(seed=0, n=8000, lost=0.0):
    """Users of two periods, as planned; a part of the users of B with the browser "y" is lost in
    the first one."""
    rng = np.random.default_rng(seed)
    users = pd.DataFrame(
        {"user_id": np.arange(n), "period": np.where(np.arange(n) < 0.6 * n, "one", "two")}
    )
    u, share = rng.random(n), np.where(users["period"] == "one", 0.05, 0.25)
    users["variant"] = np.select([u < share, u < 2 * share], ["B", "C"], "A")
    users["browser"], users["country"] = (
        rng.choice(["x", "y"], n, p=[0.7, 0.3]),
        rng.choice(["fi", "se"], n),
    )
    users["clicks"], users["shown"] = rng.poisson(3, n), 10
    gone = (users["variant"] == "B") & (users["browser"] == "y") & (users["period"] == "one")
    return users[~(gone & (rng.random(n) < lost))].reset_index(drop=True)


def by_scipy(users):
    """Sum over the periods of scipy's χ², and its p."""
    stats = pytest.importorskip("scipy.stats")
    chi2 = 0.0
    for period, plan in PLAN.items():
        n = (
            users.loc[users["period"] == period, "variant"]
            .value_counts()
            .reindex(list("ABC"), fill_value=0)
        )
        share = np.array([plan[name] for name in "ABC"])
        chi2 += stats.chisquare(n, n.sum() * share / share.sum()).statistic
    return chi2, stats.chi2.sf(chi2, 4)


def over_time(users, kind="cumulative", days=4, **options):
    """Effects over time of users of whom the first period came on the days 0 and 1, the second one
    on 2 and 3."""
    exposed = 2 * (users["period"] == "two") + users["user_id"] % 2
    rows = users.assign(exposed=exposed).merge(pd.DataFrame({"day": range(days)}), how="cross")
    return rd.experiments.effect_over_time(
        rows,
        "clicks",
        control="A",
        time_col="day",
        exposure_col="exposed",
        kind=kind,
        **options,
        details=True,
    )


@pytest.mark.long
def test_each_period_has_its_plan():
    users = ramped(lost=0.5)
    options = {"control": "A", "strata": "period", "time_col": "period", "expected": PLAN}
    table = rd.compare_variants(
        users, {"clicks": "clicks", "ctr": ("clicks", "shown")}, **options, details=True
    )
    assert table["srm_p"].tolist() == pytest.approx([by_scipy(users)[1]] * 4, rel=1e-9)
    assert not table["verdict"].str.contains("not checked").any()
    segments = rd.compare_variants(
        users, "clicks", by="browser", **options, details=True
    ).set_index(["browser", "treatment"])
    for name, part in users.groupby("browser"):
        want = min(by_scipy(part)[1], by_scipy(users)[1])
        assert segments.loc[(name, "B"), "srm_p"] == pytest.approx(want, rel=1e-9)


@pytest.mark.long
def test_a_ramp_up_as_planned_is_no_fault_and_a_broken_period_is():
    fits = [
        rd.compare_variants(
            ramped(seed),
            "clicks",
            control="A",
            strata="period",
            time_col="period",
            expected=PLAN,
            details=True,
        )["srm_p"].iloc[0]
        for seed in range(100)
    ]
    assert min(fits) > 0.001
    assert 0.01 <= np.mean(np.array(fits) < 0.05) <= 0.11
    broken = rd.compare_variants(
        ramped(n=20_000, lost=0.8),
        "clicks",
        control="A",
        strata="period",
        time_col="period",
        expected=PLAN,
        details=True,
    )
    assert set(broken["verdict"]) == {"invalid: sample ratio"}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["cumulative", "daily"])
def test_effects_over_time_take_the_shares_of_each_period(kind):
    users = ramped()
    assert users["user_id"].is_unique
    table = over_time(users, kind, expected=PLAN, strata="period").set_index(
        ["period", "treatment"]
    )
    early = users["period"] == "one"
    for day in range(4):
        there = users[np.where(early, 0, 2) + users["user_id"] % 2 <= day]
        own = by_scipy(there)[1] if day > 1 else by_scipy_of_first(there)
        assert table.loc[(day, "B"), "srm_p"] == pytest.approx(
            min(own, by_scipy(users)[1]), rel=1e-9
        )
    assert not table["verdict"].str.contains("not checked|invalid").any()
    assert not table["trend_verdict"].str.contains("not checked|invalid").any()
    # The effects themselves need no strata: days of exposure are finer.
    plain = over_time(users, kind)
    assert table["diff"].tolist() == pytest.approx(plain["diff"].tolist(), rel=0.2, abs=0.01)
    broken = over_time(ramped(n=20_000, lost=0.8), kind, expected=PLAN, strata="period")
    assert set(broken["verdict"]) == set(broken["trend_verdict"]) == {"invalid: sample ratio"}


def by_scipy_of_first(users):
    stats = pytest.importorskip("scipy.stats")
    n = users["variant"].value_counts().reindex(list("ABC"))
    return stats.chisquare(n, len(users) * np.array([0.9, 0.05, 0.05])).pvalue


@pytest.mark.long
def test_effects_over_time_count_clusters_in_their_period():
    users = ramped(n=4000)
    pair = pd.concat(
        [users, users.assign(user_id=users["user_id"] + len(users))], ignore_index=True
    )
    pair["shop"] = pair["user_id"] % len(users)
    found = over_time(pair, expected=PLAN, strata="period", cluster="shop")
    assert found["srm_p"].iloc[-1] == pytest.approx(by_scipy(users)[1], rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("cluster", [None, "user_id"])
@pytest.mark.parametrize("lost", [0.0, 0.8])
def test_a_health_table_by_period_is_taken_within_strata(lost, cluster):
    users = ramped(n=20_000, lost=lost)
    health = experiment_health(
        users[["user_id"]], users, expected=PLAN, by="period", cluster=cluster
    )
    options = {"control": "A", "strata": "period", "time_col": "period", "cluster": cluster}
    table = rd.compare_variants(users, "clicks", health=health, **options, details=True)
    want = rd.compare_variants(users, "clicks", expected=PLAN, **options, details=True)
    assert table["srm_p"].tolist() == pytest.approx(want["srm_p"].tolist(), rel=1e-9)
    assert table["verdict"].tolist() == want["verdict"].tolist()
    assert table["verdict"].str.startswith("invalid").all() == (lost > 0)
    by = rd.compare_variants(users, "clicks", health=health, by="browser", **options, details=True)
    segments = rd.compare_variants(
        users, "clicks", expected=PLAN, by="browser", **options, details=True
    )
    assert by["verdict"].tolist() == segments["verdict"].tolist()
    # A variant whose users are lost on the way from the assignment to the data.
    rng = np.random.default_rng(5)
    seen = users[
        (users["variant"] != "B") | (users["period"] == "one") | (rng.random(len(users)) < 0.8)
    ]
    found = rd.compare_variants(seen, "clicks", health=health, **options, details=True)
    assert set(found["verdict"]) == {"invalid: sample ratio"}
    with pytest.raises(rd.OptionError, match="other users"):
        rd.compare_variants(
            users.assign(user_id=users["user_id"] + 10**6),
            "clicks",
            health=health,
            **options,
            details=True,
        )


def test_the_health_table_has_a_row_for_each_period():
    stats = pytest.importorskip("scipy.stats")
    users = ramped()
    health = experiment_health(users[["user_id"]], users, expected=PLAN, by="period")
    assert health["expected_share"].tolist() == pytest.approx([0.9, 0.05, 0.05, 0.5, 0.25, 0.25])
    n = health["n_assigned"].to_numpy().reshape(2, 3)
    for i, share in enumerate(([0.9, 0.05, 0.05], [0.5, 0.25, 0.25])):
        assert health["srm_p"].iloc[3 * i] == pytest.approx(
            stats.chisquare(n[i], n[i].sum() * np.array(share)).pvalue
        )


def test_a_health_table_by_segment_has_the_shares_of_each():
    users = ramped()
    health = experiment_health(users[["user_id"]], users, expected=PLAN, by="period")
    table = rd.compare_variants(
        users, "clicks", control="A", by="period", health=health, details=True
    )
    want = health.drop_duplicates("period").set_index("period")["srm_p"]
    assert table.set_index("period")["srm_p"].to_dict() == pytest.approx(want.to_dict())
    assert not table["verdict"].str.contains("invalid").any()


@pytest.mark.long
def test_the_broken_level_is_found_across_the_periods():
    users = ramped(n=20_000, lost=0.6)
    found = find_srm(users, ["country", "browser"], expected=PLAN, strata="period")
    first = found.iloc[0]
    assert first[["column", "level", "variant", "explains"]].tolist() == ["browser", "y", "B", True]
    for _, row in found.iterrows():
        inside = users[row["column"]] == row["level"]
        assert (row["chi2"], row["p_value"]) == pytest.approx(by_scipy(users[inside]), rel=1e-9)
        assert row["p_without"] == pytest.approx(by_scipy(users[~inside])[1], rel=1e-9)
        own = users[inside]["period"].value_counts()
        share = {"A": (0.9, 0.5), "B": (0.05, 0.25), "C": (0.05, 0.25)}[row["variant"]]
        assert row["n_expected"] == pytest.approx(own["one"] * share[0] + own["two"] * share[1])
    # A level that is not in every period.
    late = users.assign(shop=np.where(users["period"] == "two", "new", "old"))
    assert set(find_srm(late, "shop", expected=PLAN, strata="period")["level"]) == {"new", "old"}


def test_clusters_are_counted_once_in_their_period():
    users = ramped(n=3000)
    twice = pd.concat([users, users], ignore_index=True)
    options = {
        "control": "A",
        "strata": "period",
        "time_col": "period",
        "expected": PLAN,
        "cluster": "user_id",
    }
    assert rd.compare_variants(twice, "clicks", **options, details=True)["srm_p"].iloc[
        0
    ] == pytest.approx(by_scipy(users)[1])
    moved = twice.assign(period=np.where(np.arange(len(twice)) < len(users), "one", "two"))
    with pytest.raises(rd.OptionError, match="are in several strata"):
        rd.compare_variants(moved, "clicks", **options, details=True)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda u: rd.compare_variants(u, "clicks", control="A", expected=PLAN, details=True),
            "in strata=",
        ),
        (
            lambda u: rd.compare_variants(
                u, "clicks", control="A", strata=["period", "country"], expected=PLAN, details=True
            ),
            "and no other, in strata=",
        ),
        (
            lambda u: rd.compare_variants(
                u, "clicks", control="A", strata="country", expected=PLAN, details=True
            ),
            "no shares for country 'fi', 'se'; it has those of 'one', 'two'",
        ),
        (
            lambda u: rd.compare_variants(
                u,
                "clicks",
                control="A",
                strata="period",
                expected=PLAN | {"two": {"A": 1, "B": 1}},
                details=True,
            ),
            "no share for variant 'C'",
        ),
        (lambda u: experiment_health(u, u, expected=PLAN), "in by="),
        (lambda u: find_srm(u, "browser", expected=PLAN), "in strata="),
        (
            lambda u: rd.compare_variants(
                u,
                "clicks",
                control="A",
                strata="country",
                health=experiment_health(u, u, by="period", expected=PLAN),
                details=True,
            ),
            "compare within strata='period'",
        ),
        (lambda u: over_time(u, expected=PLAN), "in strata="),
        (
            lambda u: over_time(u, expected=PLAN, strata="country"),
            "no shares for country 'fi', 'se'",
        ),
    ],
)
def test_what_cannot_be_checked_says_what_to_pass(call, words):
    with pytest.raises(rd.OptionError, match=words):
        call(ramped())


@pytest.mark.long
def test_the_report_names_the_period_of_each_variant(tmp_path):
    users = ramped(n=20_000, lost=0.8)
    health = experiment_health(users[["user_id"]], users, expected=PLAN, by="period")
    table = rd.compare_variants(
        users,
        "clicks",
        control="A",
        strata="period",
        time_col="period",
        expected=PLAN,
        details=True,
    )
    page = rd.report(None, tmp_path / "page.html", experiment=table, health=health).read_text(
        "utf-8"
    )
    assert "one B" in page
    assert "two B" in page
    assert "do not fit the plan" in page

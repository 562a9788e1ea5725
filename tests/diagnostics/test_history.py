"""The history of a job: changes of level, drift of the data, false alarms, and folders that are no
history."""

import copy
from statistics import NormalDist

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main
from recdf.stats.change_points import (
    HALF_OF_WEIGHT,
    SHIFTS,
    Nights,
    changes_of_level,
    log_evidence,
)

pytestmark = pytest.mark.usefixtures("without_pictures")

NIGHTS = 40


def run(words):
    """Run the command in this process and return its exit code."""
    return main([str(word) for word in words])


def results(folder, values, *, start="2026-09-01", n=400, seed=0, name="{:%Y-%m-%d}"):
    """Write a result for every night: a share of users whose first item is a hit."""
    rng = np.random.default_rng(seed)
    for day, share in zip(pd.date_range(start, periods=len(values)), values, strict=True):
        hit = rng.random(n) < share
        true = pd.DataFrame({"user_id": np.arange(n), "item_id": 1})
        pred = pd.DataFrame({"user_id": np.arange(n), "item_id": np.where(hit, 1, 2), "rank": 1})
        rd.evaluate(true, pred, ["hitrate@1"]).to_parquet(folder / name.format(day))


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A job whose hit rate falls by 0.12 in its 30th night."""
    folder = tmp_path_factory.mktemp("results")
    results(folder, [0.5] * 29 + [0.38] * (NIGHTS - 29))
    return folder


@pytest.mark.long
def test_a_planted_change_is_found_within_a_week_with_its_night_and_its_size(job):
    row = rd.diagnostics.History(job).changes().iloc[0]
    assert row["verdict"] == "worse"
    assert row["changed"] == pd.Timestamp("2026-09-30")
    assert row["found"] <= pd.Timestamp("2026-10-06")
    assert row["diff"] == pytest.approx(-0.12, abs=0.03)
    assert row["diff"] == pytest.approx(row["after"] - row["before"], rel=1e-12)


@pytest.mark.long
def test_the_summary_has_a_row_for_every_night_and_the_values_of_the_results(job):
    history = rd.diagnostics.History(job)
    assert len(history.summary) == NIGHTS
    one = rd.read_parquet(job / "2026-09-07").summary
    own = history.summary[history.summary["date"] == "2026-09-07"].iloc[0]
    assert own["value"] == one["value"].iloc[0]
    assert own["column"] == "hitrate@1"


@pytest.mark.long
def test_since_shows_what_was_found_since_and_still_searches_in_all_nights(job):
    late = rd.diagnostics.History(job, since="30d")
    assert len(late.summary) == 30
    pd.testing.assert_frame_equal(late.changes(), rd.diagnostics.History(job).changes())
    row = rd.diagnostics.History(job, since="2026-10-09").changes().iloc[0]
    assert row["verdict"] == "no change shown"
    assert pd.isna(row["changed"])


@pytest.mark.long
def test_no_alarm_before_the_change(job):
    assert rd.diagnostics.History(job, until="2026-09-29").changes()["verdict"].tolist() == [
        "no change shown"
    ]


@pytest.mark.long
def test_segments_have_series_of_their_own(job):
    users = pd.DataFrame({"user_id": np.arange(400), "group": np.arange(400) % 2})
    changes = rd.diagnostics.History(job, users=users, by="group").changes()
    assert sorted(changes["group"]) == [0, 1]


def alone(x, se=0.0, weekly=True):
    day = np.arange(len(x)) % 7 if weekly else np.zeros(len(x), int)
    return Nights(x, np.broadcast_to(np.asarray(se, float), x.shape), day)


def evidence_by_hand(x):
    """The mixture over first nights and shifts of products of bets on ranks, without days of the
    week and standard errors, where the ranks are those of the values."""
    first, bets = 8, {}
    for t in range(first, len(x)):
        scores = [NormalDist().inv_cdf((r - 0.5) / (t + 1)) for r in range(1, t + 2)]
        z = scores[sorted(x[: t + 1]).index(x[t])]
        bets[t] = np.exp(SHIFTS * z) / np.mean([np.exp(SHIFTS * one) for one in scores], axis=0)
    total, spent = 0.0, 0.0
    for s, start in enumerate(range(first, len(x))):
        weight = HALF_OF_WEIGHT / ((HALF_OF_WEIGHT + s) * (HALF_OF_WEIGHT + s + 1))
        total += weight * np.mean(np.prod([bets[t] for t in range(start, len(x))], axis=0))
        spent += weight
    return total + 1 - spent


def test_the_evidence_is_the_mixture_of_bets_on_ranks():
    x = np.random.default_rng(1).normal(5, 2, 33)
    found, _ = log_evidence(alone(x, weekly=False))
    for last in (9, 20, 32):
        assert np.exp(found[last]) == pytest.approx(evidence_by_hand(x[: last + 1]), rel=1e-9)


def test_level_and_unit_of_a_metric_do_not_matter():
    x = np.random.default_rng(2).normal(size=50)
    one, two = log_evidence(alone(x))[0], log_evidence(alone(1e-3 * x + 7))[0]
    np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-9)


def test_one_night_gives_a_bounded_amount_however_far_it_is():
    x = np.random.default_rng(3).normal(size=60)
    for far in (20.0, 1e6):
        outage = np.where(np.arange(60) == 40, -far, x)
        series = changes_of_level(alone(outage), 0.05)
        assert (series.changes, [*series.outliers]) == ([], [40])


def test_a_fall_among_the_first_nights_which_have_no_rank_of_their_own_is_found():
    x = np.random.default_rng(4).normal(0, 0.04, 34) + np.where(np.arange(34) < 19, 0.6, 0.3)
    (change,) = changes_of_level(alone(x), 0.05).changes
    assert (change.begins, change.sure, change.ends) == (19, 25, None)
    assert changes_of_level(alone(x[:25]), 0.05).changes == []  # a week must have passed
    level = x + np.where(np.arange(34) < 19, 0.0, 0.3)
    outage = changes_of_level(alone(np.where(np.arange(34) == 12, 0.1, level)), 0.05)
    assert (outage.changes, [*outage.outliers]) == ([], [12])


@pytest.mark.parametrize("night", [8, 10, 14, 18, 22, 26, 29])
def test_a_large_fall_in_a_short_job_is_said_by_its_last_night(night):
    """It had hidden itself: in its own variance, or as likeness of the nights."""
    for seed in range(4):
        rng = np.random.default_rng([night, seed])
        x = rng.normal(0, 0.04, 36) + np.where(np.arange(36) < night, 0.6, 0.4)
        series = changes_of_level(alone(x, 0.04), 0.05)
        (change,) = series.changes
        assert abs(change.begins - night) <= 1
        assert (change.sure is None, change.ends) == (False, None)
        assert change.found >= max(night, 21)  # the night on which one could know


@pytest.mark.parametrize("moved", [20, 22, 24, 99])
def test_a_job_that_changes_its_day_of_the_week_hides_no_step(moved):
    """A step where the days change has nothing left that these do not explain."""
    rng = np.random.default_rng(1)
    x = rng.normal(0, 0.04, 42) - 0.5 * (np.arange(42) >= 12)
    nights = Nights(x, np.full(42, 0.04), (np.arange(42) >= moved).astype(int))
    (change,) = changes_of_level(nights, 0.05).changes
    assert change.begins == 12
    assert change.sure <= 21


@pytest.mark.slow
def test_nearly_all_large_falls_of_short_jobs_are_verdicts():
    draws = {
        "normal": lambda rng: rng.normal(size=36),
        "t(3)": lambda rng: rng.standard_t(3, 36) / 3**0.5,
        "lognormal": lambda rng: (rng.lognormal(size=36) - 1.65) / 2.16,
    }
    for draw in draws.values():
        said = 0
        for seed in range(60):
            rng = np.random.default_rng(seed)
            night = rng.integers(8, 30)
            found = changes_of_level(alone(draw(rng) - 5 * (np.arange(36) >= night)), 0.05)
            sure = any(one.sure is not None and one.ends is None for one in found.changes)
            said += sure and not found.alike
        assert said >= 54  # with 95 %, fewer have a chance of 3 %


@pytest.mark.slow
def test_a_short_job_of_one_level_hardly_ever_alarms_by_its_first_nights():
    rng, n = np.random.default_rng(5), 40
    for draw in (
        rng.normal,
        lambda size: rng.standard_t(3, size),
        lambda size: rng.lognormal(0, 1, size),
    ):
        found = [changes_of_level(alone(draw(size=n)), 0.05).changes for _ in range(130)]
        assert sum(map(bool, found)) <= 2


@pytest.mark.slow
def test_false_alarms_of_unkind_years_are_rarer_than_one_in_twenty():
    rng = np.random.default_rng(3)
    halved = np.where(np.arange(365) < 180, 9000, 1000)
    draws = {
        "weekly": lambda: (rng.normal(size=365) + np.arange(365) % 7, 0.0),
        "lognormal": lambda: (rng.lognormal(0, 1, 365), 0.0),
        "fewer lists": lambda: (rng.binomial(halved, 0.3) / halved, np.sqrt(0.21 / halved)),
    }
    for draw in draws.values():
        said = sum(bool(changes_of_level(alone(*draw()), 0.05).changes) for _ in range(20))
        assert said <= 1  # of 5 % a year there are none: where a fifth had one, more would be seen


def test_nights_that_are_alike_are_no_evidence():
    rolling = np.convolve(np.random.default_rng(4).normal(size=90), np.ones(28) / 28, mode="valid")
    assert changes_of_level(alone(rolling), 0.05).alike
    plain = np.random.default_rng(5).normal(size=63)
    assert changes_of_level(alone(plain), 0.05).alike == ""
    weeks = np.repeat(np.random.default_rng(6).normal(size=20), 7)
    assert changes_of_level(alone(weeks + 0.1 * plain[0]), 0.05).alike


@pytest.mark.long
def test_one_night_far_off_fails_the_job_on_its_morning_alone(tmp_path, capsys):
    results(tmp_path, [0.5] * 24 + [0.05] + [0.5], n=1000)
    call = ["history", tmp_path, "--fail-on", "drift", "worse", "-q", "--until"]
    assert [run([*call, f"2026-09-{day}"]) for day in (24, 25, 26)] == [0, 1, 0]
    assert "hitrate@1: newest night far off; outlier night 2026-09-25" in capsys.readouterr().err


@pytest.fixture(scope="module")
def history(job):
    return rd.diagnostics.History(job)


def shown(history, values, se=0.1, metric="hitrate@1"):
    """What a history says of nights of these values, which stand in place of its own."""
    history = copy.copy(history)
    days = pd.date_range("2026-01-01", periods=len(values))
    history._values = pd.DataFrame(
        {"date": days, "job": "", "column": metric, "value": values, "se": se, "unlike": ""}
    )
    history.since = days[0]
    return history.changes().iloc[-1]


@pytest.mark.long
def test_what_is_said_of_a_change(history):
    x = 10 + 0.1 * np.random.default_rng(7).normal(size=200)
    night = np.arange(200)
    row = shown(history, x)
    assert (row["effect"], row["withheld"], row["remarks"]) == ("none", "", "")
    assert row["verdict"] == "no change shown"
    assert row["could_see"] == pytest.approx(0.27, rel=0.2)
    row = shown(history, x - 0.4 * (night >= 160))
    assert (row["effect"], row["verdict"]) == ("worse", "worse")
    assert row["changed"] == pd.Timestamp("2026-01-01") + pd.Timedelta(days=160)
    assert row["found"] <= row["sure"] <= row["changed"] + pd.Timedelta(days=6)
    row = shown(history, x - 0.4 * (night >= 196), se=0.1)
    assert row["withheld"] in ("", "early")
    row = shown(history, x - 0.4 * ((night >= 100) & (night < 120)))
    assert (row["effect"], row["remarks"]) == ("none", "back")
    begun = f"{row['changed']:%Y-%m-%d}"
    assert row["verdict"] == f"no change shown now; was lower from {begun} to 2026-04-30"
    assert begun in ("2026-04-09", "2026-04-10", "2026-04-11")
    assert row["after"] == pytest.approx(9.6, abs=0.1)
    row = shown(history, x - 0.006 * night)
    assert (row["effect"], row["remarks"]) == ("drifts", "line_fits")
    assert row["per_month"] == pytest.approx(-0.006 * 365.25 / 12, rel=0.1)
    assert row["verdict"] == "drifts by −0.178 a month; a line fits better than a step"
    row = shown(history, np.where(night == 90, 9.2, x))
    assert (row["effect"], row["remarks"]) == ("none", "outlier_night")
    assert "outlier night 2026-04-01 (-" in row["verdict"]
    for value, effect in ((9.4, "none"), (7.5, "far_off"), (12.5, "far_off")):
        row = shown(history, np.where(night == len(x) - 1, value, x))
        assert (row["effect"], row["remarks"]) == (effect, "outlier_night")
    assert row["verdict"].startswith("newest night far off; outlier night ")
    row = shown(history, np.where(night == 90, 9.0, 10.0) + 1e-6 * (x - 10), se=0.0)
    assert row["verdict"].startswith(
        "no change shown; outlier night 2026-04-01 (more than 1000 sd below)"
    )
    row = shown(history, x[:20])
    assert (row["withheld"], row["verdict"]) == ("few_runs", "cannot tell: fewer than 22 nights")


@pytest.mark.long
def test_an_early_word_says_that_it_is_one(history):
    x = 10 + 0.1 * np.random.default_rng(8).normal(size=90)
    said = [shown(history, (x - 0.28 * (np.arange(90) >= 60))[:n]) for n in range(61, 80)]
    early = [row for row in said if row["withheld"] == "early"]
    assert early
    assert "early: lower since 2026-03-0" in early[0]["verdict"]
    assert early[0]["effect"] == ""
    assert said[-1]["effect"] == "worse"


@pytest.mark.long
def test_few_runs_and_changed_definitions_say_so(tmp_path):
    true, pred = {"u": ["a"], "v": ["b"]}, {"u": ["a"], "v": ["a", "b"]}
    for night in range(24):
        metric = "ndcg@2" if night < 8 else {"ndcg@2": "ndcg(discount=jk)@2"}
        rd.evaluate(true, pred, metric).to_parquet(tmp_path / f"2026-11-{night + 1:02d}")
    row = rd.diagnostics.History(tmp_path).changes().iloc[0]
    assert (row["effect"], row["withheld"]) == ("", "definition_changed")
    assert row["unlike"].startswith("8 nights (2026-11-01 to 2026-11-08) with other definition")
    assert "discount=jk" in row["unlike"]
    assert (
        rd.diagnostics.History(tmp_path, until="2026-11-05").changes().iloc[0]["withheld"]
        == "few_runs"
    )


def test_folders_that_are_no_history_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="is no folder"):
        rd.diagnostics.History(tmp_path / "none")
    with pytest.raises(rd.DataError, match="holds no result"):
        rd.diagnostics.History(tmp_path)
    results(tmp_path, [0.5], name="tonight")
    with pytest.raises(rd.DataError, match="no date in its path"):
        rd.diagnostics.History(tmp_path)


def test_two_results_of_one_day_are_refused(tmp_path):
    results(tmp_path, [0.5])
    results(tmp_path, [0.5], name="{:%Y%m%d}")
    with pytest.raises(rd.DataError, match="two results of one day"):
        rd.diagnostics.History(tmp_path)


@pytest.mark.long
def test_unknown_metrics_days_and_columns_are_refused(job):
    history = rd.diagnostics.History(job)
    with pytest.raises(rd.OptionError, match="no result has metrics="):
        history.changes("ndcg@5")
    with pytest.raises(rd.OptionError, match="metric='ndcg@5' is not a metric of the job"):
        rd.plot.history.data(history, "ndcg@5")
    with pytest.raises(rd.DataError, match="no result is from"):
        rd.diagnostics.History(job, since="2027-01-01", until="2027-02-01")
    with pytest.raises(rd.OptionError, match="users"):
        rd.diagnostics.History(job, by="group")
    with pytest.raises(rd.OptionError, match="since='soon' is no day"):
        rd.diagnostics.History(job, since="soon")
    assert run(["history", job, "--since", "soon"]) == 2


@pytest.mark.long
def test_drift_of_the_data_comes_from_the_profiles_of_the_command(tmp_path, capsys):
    rng = np.random.default_rng(6)
    for night, day in enumerate(pd.date_range("2026-09-01", periods=32)):
        n = 300
        true = pd.DataFrame({"user_id": np.arange(n), "item_id": 1})
        score = rng.normal(0 if night < 24 else 5, 1, n)
        # From the 24th night on the scores are of another scale, and half of the users are unknown.
        pred = pd.DataFrame(
            {"user_id": np.arange(n) + (n // 2 if night >= 24 else 0), "item_id": 1, "score": score}
        )
        true.to_parquet(tmp_path / "t.parquet")
        pred.to_parquet(tmp_path / "p.parquet")
        files = [
            "--true",
            tmp_path / "t.parquet",
            "--pred",
            tmp_path / "p.parquet",
            "-m",
            "hitrate@1",
        ]
        assert (
            run(["evaluate", *files, "--profile", "--out", tmp_path / "job" / f"{day:%Y-%m-%d}"])
            == 0
        )
    drift = rd.diagnostics.History(tmp_path / "job").drift().set_index("quantity")
    assert drift.loc["score_q50", "verdict"] == "drifted"
    assert drift.loc["score_q50", "changed"] == pd.Timestamp("2026-09-25")
    assert drift.loc["unknown_users", "after"] == 0.5
    assert drift.loc["users", "verdict"] == "no change shown"
    capsys.readouterr()
    assert run(["history", tmp_path / "job", "--fail-on", "drift"]) == 1
    assert "drifted" in capsys.readouterr().out
    assert run(["history", tmp_path / "job"]) == 0


def test_the_profile_of_an_older_result_does_not_count(tmp_path):
    results(tmp_path, [0.5])
    profile = pd.DataFrame({"model": [""], "quantity": ["judged"], "value": [0.1]})
    profile.to_parquet(tmp_path / "2026-09-01" / "profile.parquet")
    assert rd.diagnostics.History(tmp_path).data["quantity"].tolist() == ["users"]


def test_a_profile_counts_what_the_frames_hold():
    true = pd.DataFrame({"user_id": ["a", "a", "b"], "item_id": [1, 2, 3]})
    pred = pd.DataFrame(
        {
            "model": ["m", "m", "m", "n"],
            "user_id": ["a", "a", "c", "b"],
            "item_id": [1, 9, 9, 3],
            "score": [4.0, 2.0, 1.0, 8.0],
        }
    )
    table = rd.diagnostics.data_profile(true, pred, by="model", items=[1, 2, 3])
    wide = table.pivot(index="model", columns="quantity", values="value")
    expected = {
        "rows_pred": [3, 1],
        "lists_pred": [2, 1],
        "items_pred": [2, 1],
        "unknown_users": [0.5, 0],
        "judged": [0.5, 1],
        "unknown_items": [2 / 3, 0],
        "score_q50": [2, 8],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(wide[name], values, err_msg=name)


@pytest.mark.long
def test_the_report_has_a_page_for_a_job_alone(job, tmp_path):
    pytest.importorskip("jinja2")
    page = rd.report(path=tmp_path / "page.html", history=rd.diagnostics.History(job)).read_text(
        encoding="utf-8"
    )
    assert "Recommendations: History" in page
    assert ": worse" in page
    assert "1 of 1" not in page
    # Only a search that finds nothing says what it could have seen.
    assert "would be seen within a week" not in page
    assert "missing" not in page.split("Recommendations: History")[1].split("<table")[0]
    assert run(["report", "--history", job, "--out", tmp_path / "two.html"]) == 0
    with pytest.raises(TypeError, match=r"expected rd\.diagnostics\.History"):
        rd.report(path=tmp_path / "three.html", history=str(job))


@pytest.mark.long
def test_the_report_of_a_steady_job_says_what_would_have_been_seen(tmp_path):
    pytest.importorskip("jinja2")
    results(tmp_path / "nights", [0.5] * NIGHTS)
    history = rd.diagnostics.History(tmp_path / "nights")
    row = history.changes().iloc[0]
    assert row["effect"] == "none"
    page = rd.report(path=tmp_path / "page.html", history=history).read_text(encoding="utf-8")
    assert f"{row['could_see']:.2g} would be seen within a week" in page


@pytest.mark.long
@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"undefined": "zero"}, "undefined zero, not"),
        ({"score_col": None}, "order of pred row, not score"),
    ],
)
def test_nights_that_were_evaluated_in_another_way_are_named(tmp_path, other, said):
    true = {"u": ["a"], "v": ["b"]}
    for night in range(24):
        pred = pd.DataFrame(
            {"user_id": ["u", "v", "v"], "item_id": ["a", "a", "b"], "score": [1.0, 2.0, 1.0]}
        )
        options = dict(other) if night in (3, 5) else {}
        if "score_col" in options:  # the job lost the column of scores
            pred, options = pred.drop(columns="score"), {}
        result = rd.evaluate(true, pred, "ndcg@2", **options)
        result.to_parquet(tmp_path / f"2026-11-{night + 1:02d}")
    history = rd.diagnostics.History(tmp_path)
    row = history.changes().iloc[0]
    assert row["withheld"] == "definition_changed"
    assert row["unlike"].startswith("2 nights (2026-11-04 to 2026-11-06) with ")
    assert said in row["unlike"]
    assert row["verdict"] == f"cannot tell: {row['unlike']}"
    assert history.summary["unlike"].ne("").sum() == 2


@pytest.mark.parametrize(("far", "unit"), [(0.0, 1.0), (1e9, 1.0), (1e-12, 1e-18)])
def test_a_fall_is_found_however_far_from_zero_the_nights_are(far, unit):
    x = np.random.default_rng(0).normal(0, 1, 60)
    x[40:] -= 5
    change = changes_of_level(Nights(far + unit * x, np.zeros(60), np.arange(60) % 7), 0.05)
    assert [(one.begins, one.found) for one in change.changes] == [(40, 44)]
    same = far + np.arange(60) % 3 * np.spacing(far)  # rounding alone
    assert not changes_of_level(Nights(same, np.zeros(60), np.arange(60) % 7), 0.05).changes


def test_segments_of_weighted_results_have_weighted_means(tmp_path):
    # Users a and b: hit and miss, with weights 3 and 1, so that the mean is 3/4.
    true = pd.DataFrame({"user_id": ["a", "b"], "item_id": 1, "w": [3.0, 1.0]})
    pred = pd.DataFrame({"user_id": ["a", "b"], "item_id": [1, 2]})
    rd.evaluate(true, pred, "hitrate@1", weight_col="w").to_parquet(tmp_path / "2026-11-01")
    users = pd.DataFrame({"user_id": ["a", "b"], "all": "x"})
    whole = rd.diagnostics.History(tmp_path).summary
    segment = rd.diagnostics.History(tmp_path, users=users, by="all").summary
    assert whole["value"].tolist() == [0.75]
    numbers = ["value", "std", "se", "ci_low", "ci_high", "n", "n_effective"]
    pd.testing.assert_frame_equal(segment[numbers], whole[numbers])


def test_every_job_has_an_age_of_its_own(tmp_path):
    true = pd.DataFrame({"user_id": ["a"], "item_id": [1]})
    for night in ("a/2026-11-01", "a/2026-11-20", "b/2026-11-03"):
        rd.evaluate(true, true, "hitrate@1").to_parquet(tmp_path / night)
    history = rd.diagnostics.History(tmp_path, until="2026-11-21")
    gaps = history.gaps(max_age=2)
    old = gaps[gaps["verdict"] == "too old"]
    assert old[["job", "what"]].to_numpy().tolist() == [["b", "newest night 2026-11-03"]]
    assert "too old" not in set(history.gaps(max_age=18)["verdict"])
    # A job that ended before all that is asked is not missed each night; the last of all jobs is.
    late = rd.diagnostics.History(tmp_path, until="2026-11-21", since="2026-11-10")
    assert "too old" not in set(late.gaps(max_age=2)["verdict"])
    gone = rd.diagnostics.History(tmp_path, until="2026-12-21", since="2026-11-10")
    assert gone.gaps(max_age=2)["job"].tolist() == ["a"]

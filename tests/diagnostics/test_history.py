"""The history of a job: changes of level, drift of the data, false alarms, and folders that are no
history."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main
from recdf.stats.change_points import SPREAD, changes_of_level, log_evidence

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
    row = rd.History(job).changes().iloc[0]
    assert row["verdict"] == "worse"
    assert row["changed"] == pd.Timestamp("2026-09-30")
    assert row["found"] <= pd.Timestamp("2026-10-06")
    assert row["diff"] == pytest.approx(-0.12, abs=0.03)
    assert row["diff"] == pytest.approx(row["after"] - row["before"], rel=1e-12)


def test_the_summary_has_a_row_for_every_night_and_the_values_of_the_results(job):
    history = rd.History(job)
    assert len(history.summary) == NIGHTS
    one = rd.read_parquet(job / "2026-09-07").summary
    own = history.summary[history.summary["date"] == "2026-09-07"].iloc[0]
    assert own["value"] == one["value"].iloc[0]
    assert own["column"] == "hitrate@1"


@pytest.mark.long
def test_since_shows_what_was_found_since_and_still_searches_in_all_nights(job):
    late = rd.History(job, since="30d")
    assert len(late.summary) == 30
    pd.testing.assert_frame_equal(late.changes(), rd.History(job).changes())
    row = rd.History(job, since="2026-10-09").changes().iloc[0]
    assert row["verdict"] == "no change shown"
    assert pd.isna(row["changed"])


def test_no_alarm_before_the_change(job):
    assert rd.History(job, until="2026-09-29").changes()["verdict"].tolist() == ["no change shown"]


@pytest.mark.long
def test_segments_have_series_of_their_own(job):
    users = pd.DataFrame({"user_id": np.arange(400), "group": np.arange(400) % 2})
    changes = rd.History(job, users=users, by="group").changes()
    assert sorted(changes["group"]) == [0, 1]


def evidence_by_hand(x):
    """The e-process of values without weekdays: one Bayes factor per start, each by least squares
    of numpy."""
    n = len(x)
    total, weights = 0.0, 0.0
    for start in range(1, n):
        step = (np.arange(n) >= start).astype(float)
        step -= step.mean()
        rest = x - x.mean()
        spread = step @ step
        fit = (step @ rest) ** 2 / (spread * (rest @ rest))
        factor = (1 + SPREAD * spread) ** -0.5 * (
            1 - SPREAD * spread / (1 + SPREAD * spread) * fit
        ) ** (-(n - 1) / 2)
        weight = 30 / ((29 + start) * (30 + start))
        total, weights = total + weight * factor, weights + weight
    return total + 1 - weights


def test_the_evidence_is_the_mixture_of_bayes_factors():
    x = np.random.default_rng(1).normal(5, 2, 23)
    found, _ = log_evidence(x, np.zeros(23, int))
    for last in (7, 15, 22):
        # The first night has a weight too, though nothing can begin there.
        assert np.exp(found[last]) == pytest.approx(evidence_by_hand(x[: last + 1]), rel=1e-9)


def test_level_and_unit_of_a_metric_do_not_matter():
    x, day = np.random.default_rng(2).normal(size=50), np.arange(50) % 7
    one, two = log_evidence(x, day)[0], log_evidence(1e-3 * x + 7, day)[0]
    np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_false_alarms_are_rarer_than_one_in_twenty_years():
    rng = np.random.default_rng(3)
    day = np.arange(365) % 7
    weekly = np.array([0.0, 1, 2, 3, 4, 5, 6])[day]
    alarms = sum(
        bool(changes_of_level(rng.normal(size=365) + weekly, day, 0.05)[0]) for _ in range(40)
    )
    assert alarms <= 5  # with 5 % a year, more have a chance below 2 %


def test_nights_that_are_alike_are_no_evidence():
    rolling = np.convolve(np.random.default_rng(4).normal(size=90), np.ones(28) / 28, mode="valid")
    _, alike = changes_of_level(rolling, np.zeros(len(rolling), int), 0.05)
    assert alike > 3
    _, alone = changes_of_level(np.random.default_rng(5).normal(size=63), np.zeros(63, int), 0.05)
    assert alone < 3


@pytest.mark.long
def test_few_runs_and_changed_definitions_say_so(tmp_path):
    true, pred = {"u": ["a"], "v": ["b"]}, {"u": ["a"], "v": ["a", "b"]}
    for night in range(16):
        metric = "ndcg@2" if night < 8 else {"ndcg@2": "ndcg(discount=jk)@2"}
        rd.evaluate(true, pred, metric).to_parquet(tmp_path / f"2026-11-{night + 1:02d}")
    row = rd.History(tmp_path).changes().iloc[0]
    assert (row["verdict"], row["remarks"]) == ("cannot tell", "definition_changed")
    assert rd.History(tmp_path, until="2026-11-05").changes().iloc[0]["remarks"] == "few_runs"


def test_folders_that_are_no_history_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="is no folder"):
        rd.History(tmp_path / "none")
    with pytest.raises(rd.DataError, match="holds no result"):
        rd.History(tmp_path)
    results(tmp_path, [0.5], name="tonight")
    with pytest.raises(rd.DataError, match="no date in its path"):
        rd.History(tmp_path)


def test_two_results_of_one_day_are_refused(tmp_path):
    results(tmp_path, [0.5])
    results(tmp_path, [0.5], name="{:%Y%m%d}")
    with pytest.raises(rd.DataError, match="two results of one day"):
        rd.History(tmp_path)


def test_unknown_metrics_days_and_columns_are_refused(job):
    history = rd.History(job)
    with pytest.raises(rd.OptionError, match="no result has metrics="):
        history.changes("ndcg@5")
    with pytest.raises(rd.OptionError, match="no result has metric="):
        rd.plot.history.data(history, "ndcg@5")
    with pytest.raises(rd.DataError, match="no result is from"):
        rd.History(job, since="2027-01-01", until="2027-02-01")
    with pytest.raises(rd.OptionError, match="users"):
        rd.History(job, by="group")
    with pytest.raises(rd.OptionError, match="since='soon' is no day"):
        rd.History(job, since="soon")
    assert run(["history", job, "--since", "soon"]) == 2


@pytest.mark.long
def test_drift_of_the_data_comes_from_the_profiles_of_the_command(tmp_path, capsys):
    rng = np.random.default_rng(6)
    for night, day in enumerate(pd.date_range("2026-09-01", periods=30)):
        n = 300
        true = pd.DataFrame({"user_id": np.arange(n), "item_id": 1})
        score = rng.normal(0 if night < 20 else 5, 1, n)
        # From the 20th night on the scores are of another scale, and half of the users are unknown.
        pred = pd.DataFrame(
            {"user_id": np.arange(n) + (n // 2 if night >= 20 else 0), "item_id": 1, "score": score}
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
    drift = rd.History(tmp_path / "job").drift().set_index("quantity")
    assert drift.loc["score_q50", "verdict"] == "drifted"
    assert drift.loc["score_q50", "changed"] == pd.Timestamp("2026-09-21")
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
    assert rd.History(tmp_path).data["quantity"].tolist() == ["users"]


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


def test_the_report_has_a_page_for_a_job_alone(job, tmp_path):
    pytest.importorskip("jinja2")
    page = rd.report(path=tmp_path / "page.html", history=rd.History(job)).read_text(
        encoding="utf-8"
    )
    assert "History of recommendations" in page
    assert "1 of 1: worse" in page
    assert run(["report", "--history", job, "--out", tmp_path / "two.html"]) == 0
    with pytest.raises(TypeError, match=r"expected rd\.History"):
        rd.report(path=tmp_path / "three.html", history=str(job))

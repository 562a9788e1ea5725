"""Folders as people leave them: stamps with a time, half-written nights, models that come later,
changed options."""

import datetime
import shutil

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main
from recdf.stats.change_points import Nights, changes_of_level

pytestmark = pytest.mark.usefixtures("without_pictures")

USERS = 40
SEGMENTS = pd.DataFrame({"user_id": range(USERS), "kind": np.repeat(["a", "b"], USERS // 2)})


def night(seed=0, metrics=("hitrate@1",), **options):
    rng = np.random.default_rng(seed)
    true = pd.DataFrame({"user_id": range(USERS), "item_id": 1})
    pred = pd.DataFrame(
        {"user_id": range(USERS), "item_id": rng.integers(1, 3, USERS), "score": 1.0}
    )
    by = options.get("by")
    return rd.evaluate(
        true, pred if by is None else pred.assign(**{by: "x"}), list(metrics), **options
    )


STORE = {}


@pytest.fixture(scope="module", autouse=True)
def _store(tmp_path_factory):
    STORE["folder"] = tmp_path_factory.mktemp("nights")
    yield
    STORE.clear()


def job(folder, names, **options):
    """Each night is evaluated and written once: the jobs have copies."""
    for seed, name in enumerate(names):
        stored = STORE.setdefault((seed, repr(options)), STORE["folder"] / str(len(STORE)))
        if not stored.exists():
            night(seed, **options).to_parquet(stored)
        shutil.copytree(stored, folder / name)
    return folder


STAMPS = [
    "2026-10-0{}",
    "2026100{}",
    "date=2026-10-0{}",
    "2026/10/0{}",
    "2026_10_0{}",
    "2026-10-0{}T02:15:07",
    "2026100{}_021507",
    "2026100{}021507",
    "scheduled__2026-10-0{}T00:00:00+00:00",
    "2026-10-0{}T021507.123Z",
]


@pytest.mark.long
@pytest.mark.parametrize("stamp", STAMPS)
def test_a_stamp_is_read_as_its_day(tmp_path, stamp):
    history = rd.diagnostics.History(job(tmp_path, [stamp.format(day) for day in (1, 2, 3)]))
    assert history.summary["date"].dt.strftime("%Y-%m-%d").tolist() == [
        "2026-10-01",
        "2026-10-02",
        "2026-10-03",
    ]
    assert set(history.summary["job"]) <= {"", "scheduled"}


def test_two_stamps_of_one_day_are_two_results_of_one_day(tmp_path):
    job(tmp_path, ["2026-10-01T02:00", "2026-10-01T14:00"])
    with pytest.raises(rd.DataError, match="two results of one day"):
        rd.diagnostics.History(tmp_path)


@pytest.mark.parametrize("name", ["job-123456789", "2026-13-45", "2026-02-30"])
def test_a_number_that_is_no_day_is_no_date(tmp_path, name):
    with pytest.raises(rd.DataError, match="no date in its path below"):
        rd.diagnostics.History(job(tmp_path, [name]))


@pytest.mark.parametrize("given", [None, 3, ["a"], night()])
@pytest.mark.parametrize(
    "function", [rd.diagnostics.History, rd.diagnostics.past_runs, rd.diagnostics.past_tests]
)
def test_what_is_no_path_is_named(function, given):
    with pytest.raises(TypeError, match=r"folder is .*; expected the path"):
        function(given)


def test_a_night_without_its_summary_is_named(tmp_path):
    job(tmp_path, ["2026-10-01", "2026-10-02"])
    (tmp_path / "2026-10-02" / "summary.parquet").unlink()
    with pytest.raises(rd.DataError, match="2026-10-02 is no whole result"):
        rd.diagnostics.History(tmp_path)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["date", "job", "path", "column", "level", "verdict"])
def test_models_in_a_column_of_the_history_are_refused(tmp_path, name):
    with pytest.raises(rd.DataError, match="columns of the history; rename"):
        rd.diagnostics.History(job(tmp_path, ["2026-10-01"], by=name))


@pytest.mark.long
def test_a_model_column_that_came_later_makes_series_of_its_own(tmp_path):
    job(tmp_path, [f"2026-10-{day:02d}" for day in range(1, 16)])
    job(tmp_path, [f"2026-10-{day:02d}" for day in range(16, 31)], by="model")
    changes = rd.diagnostics.History(tmp_path).changes()
    assert changes["n_runs"].tolist() == [15, 15]
    assert changes["model"].isna().tolist() == [True, False]


@pytest.mark.long
def test_another_option_is_another_definition(tmp_path):
    days = [f"2026-10-{day:02d}" for day in range(1, 31)]
    job(tmp_path, days[:20], metrics=["ndcg@1"])
    job(tmp_path, days[20:], metrics=["ndcg@1"], undefined="zero")
    history = rd.diagnostics.History(tmp_path)
    assert history.changes()["withheld"].tolist() == ["definition_changed"]
    assert history.summary["definition"].str.endswith("; undefined=zero").sum() == 10


DAYS = [30, "30 days", "x", pd.NaT, 1.5, ["2026-10-01"]]


@pytest.mark.few(3)
@pytest.mark.parametrize("since", DAYS)
def test_what_is_no_day_is_named(tmp_path, since):
    job(tmp_path, ["2026-10-01"])
    with pytest.raises(rd.OptionError, match="is no day; expected one such as 2026-11-01, or 30d"):
        rd.diagnostics.History(tmp_path, since=since)


SAME_DAY = [
    "2026-10-02",
    datetime.date(2026, 10, 2),
    pd.Timestamp("2026-10-02 05:00", tz="UTC"),
    "2d",
]


@pytest.mark.few(1)
@pytest.mark.parametrize("since", SAME_DAY)
def test_a_day_may_be_given_in_many_ways(tmp_path, since):
    history = rd.diagnostics.History(
        job(tmp_path, ["2026-10-01", "2026-10-02", "2026-10-03"]), since=since
    )
    assert len(history.summary) == 2


BAD_USERS = [
    ({"users": SEGMENTS}, rd.OptionError, "pass both, or neither"),
    ({"by": "kind"}, rd.OptionError, "pass both, or neither"),
    ({"users": SEGMENTS, "by": "other"}, rd.ColumnError, "users has no column 'other'"),
    (
        {"users": SEGMENTS.rename(columns={"user_id": "u"}), "by": "kind"},
        rd.ColumnError,
        "has no column 'user_id'",
    ),
    (
        {"users": pd.concat([SEGMENTS, SEGMENTS]), "by": "kind"},
        rd.DuplicateError,
        "users has several rows per .*: 40 rows too many",
    ),
    ({"users": SEGMENTS.astype({"user_id": str}), "by": "kind"}, rd.IdTypeError, "can never match"),
    ({"users": SEGMENTS.to_dict("list"), "by": "kind"}, TypeError, "users is a dict"),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("options", "error", "words"), BAD_USERS)
def test_users_that_do_not_fit_are_named(tmp_path, options, error, words):
    job(tmp_path, ["2026-10-01"])
    with pytest.raises(error, match=words):
        rd.diagnostics.History(tmp_path, **options)


def test_options_of_a_search_are_checked(tmp_path):
    history = rd.diagnostics.History(job(tmp_path, ["2026-10-01"]))
    with pytest.raises(rd.OptionError, match="weekly='yes'"):
        history.changes(weekly="yes")
    with pytest.raises(TypeError, match=r"expected rd\.diagnostics\.History"):
        rd.plot.history(tmp_path)
    assert history.changes()["changed"].dtype == history.summary["date"].dtype


def test_the_command_names_a_metric_that_no_result_has(tmp_path, capsys):
    job(tmp_path, ["2026-10-01"])
    assert main(["history", str(tmp_path), "--metric", "ndcg@10"]) == 2
    assert "no result has --metric ndcg@10" in capsys.readouterr().err


@pytest.mark.long
def test_numbers_that_never_change_are_no_sign_of_nights_that_are_alike(tmp_path, capsys):
    """The logarithm of 10,000 less the mean of such logarithms is not quite 0."""
    same = Nights(np.full(44, np.log(10_000.0)), np.zeros(44), np.arange(44) % 7)
    series = changes_of_level(same, 0.05)
    assert (series.changes, series.alike, series.outliers) == ([], "", {})
    for day in pd.date_range("2026-09-01", periods=24):
        true = pd.DataFrame({"user_id": range(10_000), "item_id": 1})
        pred = true.assign(item_id=np.random.default_rng(day.day).integers(1, 3, 10_000), score=1.0)
        rd.evaluate(true, pred, "hitrate@1").to_parquet(tmp_path / f"{day:%Y-%m-%d}")
    drift = rd.diagnostics.History(tmp_path).drift()
    assert drift[["quantity", "verdict"]].to_numpy().tolist() == [["users", "no change shown"]]
    assert main(["history", str(tmp_path)]) == 0
    assert "users     10,000  no change shown" in capsys.readouterr().out


def test_the_reason_of_a_failed_job_names_the_series_alone(tmp_path, capsys):
    job(tmp_path, ["2026-10-01"])
    assert main(["history", str(tmp_path), "--fail-on", "warning"]) == 1
    assert (
        "--fail-on warning: hitrate@1: cannot tell: fewer than 22 nights" in capsys.readouterr().err
    )


@pytest.mark.long
def test_what_is_missing_is_found_and_fails_the_job(tmp_path, capsys):
    days = [f"2026-10-{day:02d}" for day in range(1, 23)]
    job(tmp_path, [day for day in days if day != "2026-10-14"], metrics=["hitrate@1", "mrr@1"])
    frame = pd.DataFrame({"user_id": range(USERS), "item_id": 1})
    two = pd.concat([frame.assign(model="als"), frame.assign(model="knn")])
    for day, pred in (("2026-10-21", two), ("2026-10-22", two[two["model"] == "knn"])):
        folder = tmp_path / "models" / day
        rd.evaluate(frame, pred.assign(score=1.0), "hitrate@1", by="model").to_parquet(folder)
    call = ["history", str(tmp_path), "--until", "2026-10-22"]
    history = rd.diagnostics.History(tmp_path, until="2026-10-25")
    assert history.gaps()[["job", "what", "effect"]].to_numpy().tolist() == [
        ["", "night 2026-10-14", "missing"],
        ["models", "model als", "missing"],
    ]
    assert history.gaps().loc[1, "last"] == pd.Timestamp("2026-10-21")
    assert history.gaps(max_age=3)["effect"].tolist() == ["missing"] * 2
    late = history.gaps(max_age=2)
    late = late.loc[late["effect"] == "too_old", ["job", "what", "verdict"]]
    assert late.to_numpy().tolist() == [
        ["", "newest night 2026-10-22", "too old"],
        ["models", "newest night 2026-10-22", "too old"],
    ]
    assert main(call) == 0
    assert main([*call, "--fail-on", "drift", "worse"]) == 1
    said = capsys.readouterr()
    assert "night 2026-10-14" in said.out
    assert "--fail-on drift: night 2026-10-14: missing (and 1 more)" in said.err
    page = rd.report(path=tmp_path / "page.html", history=history).read_text(encoding="utf-8")
    assert "Gaps: model als: missing." in page
    with pytest.raises(rd.OptionError, match="max_age"):
        history.gaps(max_age=-1)


def test_a_job_that_misses_a_metric_says_so(tmp_path):
    job(tmp_path, ["2026-10-01", "2026-10-02"], metrics=["hitrate@1", "mrr@1"])
    job(tmp_path, ["2026-10-03"])
    gaps = rd.diagnostics.History(tmp_path).gaps()
    assert gaps[["what", "effect"]].to_numpy().tolist() == [["mrr@1", "missing"]]


@pytest.mark.long
def test_honest_jobs_miss_nothing(tmp_path):
    weekdays = pd.bdate_range("2026-10-01", periods=12)
    job(tmp_path, [f"daily/{day:%Y-%m-%d}" for day in pd.date_range("2026-10-01", periods=16)])
    job(tmp_path, [f"weekdays/{day:%Y-%m-%d}" for day in weekdays])
    job(
        tmp_path,
        [f"weekly/{day:%Y-%m-%d}" for day in pd.date_range("2026-09-03", periods=7, freq="7D")],
    )
    assert len(rd.diagnostics.History(tmp_path).gaps()) == 0


@pytest.mark.long
def test_a_bad_night_is_left_out_and_the_table_says_so(tmp_path, capsys):
    days = [f"2026-10-{day:02d}" for day in range(1, 9)]
    job(tmp_path, days)
    (tmp_path / "2026-10-03" / "quarantined").touch()
    (tmp_path / "2026-10-03" / "summary.parquet").unlink()
    history = rd.diagnostics.History(tmp_path, without=["2026-10-05"])
    assert len(history.summary) == 6
    assert history.left_out["why"].tolist() == ["quarantined", "without"]
    assert history.headline.endswith("left out: 2026-10-03, 2026-10-05")
    assert history.gaps()["verdict"].tolist() == ["left out"] * 2
    call = ["history", str(tmp_path), "--without", "2026-10-05", "--fail-on", "drift", "worse"]
    assert main(call) == 0
    assert "night 2026-10-05" in capsys.readouterr().out
    with pytest.raises(rd.OptionError, match="there is no result of that day"):
        rd.diagnostics.History(tmp_path, without="2026-11-05")
    with pytest.raises(rd.OptionError, match="without='x' is no day"):
        rd.diagnostics.History(tmp_path, without="x")


@pytest.mark.long
def test_a_night_of_one_job_is_left_out_in_that_job_alone(tmp_path):
    days = [f"2026-10-{day:02}" for day in range(1, 29)]
    shutil.copytree(job(tmp_path / "a", days), tmp_path / "b")
    shutil.rmtree(tmp_path / "b" / days[19])
    (tmp_path / "a" / days[19] / "quarantined").touch()
    found = rd.diagnostics.History(tmp_path).gaps()
    assert found[["job", "what", "verdict"]].to_numpy().tolist() == [
        ["b", "night 2026-10-20", "missing"],
        ["a", "night 2026-10-20", "left out"],
    ]
    (tmp_path / "a" / days[19] / "quarantined").unlink()
    meant = rd.diagnostics.History(tmp_path, without=days[19]).gaps()
    assert meant["effect"].tolist() == ["left_out"]  # in all jobs, on purpose


@pytest.mark.long
def test_what_is_left_out_may_have_no_date_and_is_not_of_later(tmp_path):
    job(tmp_path, ["2026-10-01", "2026-10-02", "2026-10-05", "tried"])
    for name in ("2026-10-05", "tried"):
        (tmp_path / name / "quarantined").touch()
    history = rd.diagnostics.History(tmp_path)
    assert history.headline.endswith("left out: 2026-10-05, tried")
    assert history.gaps()["what"].tolist() == ["night 2026-10-05", "tried"]
    early = rd.diagnostics.History(tmp_path, until="2026-10-02")
    assert early.headline == "2 results, 2026-10-01 to 2026-10-02; left out: tried"
    assert early.gaps()["what"].tolist() == ["tried"]
    (tmp_path / "tried" / "quarantined").unlink()
    with pytest.raises(rd.DataError, match="tried has no date in its path"):
        rd.diagnostics.History(tmp_path)


def test_since_of_any_number_of_days(tmp_path):
    job(tmp_path, ["2026-10-01"])
    assert len(rd.diagnostics.History(tmp_path, since="999999999d").summary) == 1
    with pytest.raises(rd.OptionError, match="since='9999999999999d' is no day"):
        rd.diagnostics.History(tmp_path, since="9999999999999d")
    for argument in ("since", "until", "without"):
        with pytest.raises(rd.OptionError, match=f"{argument}='NaT' is no day"):
            rd.diagnostics.History(tmp_path, **{argument: np.datetime64("NaT")})
    with pytest.raises(rd.DataError, match="holds no result that is not left out"):
        rd.diagnostics.History(tmp_path, without="2026-10-01")

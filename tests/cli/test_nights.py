"""Nights of a job, one after another, and faults planted in them: each fault leads to a code other
than 0 or to a line on stderr, and no honest night to either."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.command import run

DAYS = pd.date_range("2026-11-01", periods=6)
USERS, ITEMS = 300, 40
GATE = ["gate", "--baseline-model", "knn", "--budget", "ndcg@5=-10%"]
HISTORY = ["history", "results", "--fail-on", "drift", "worse", "--max-age", "1"]


def night(number):
    """The log, the clicks, and the lists of two models of one night; their users are the same."""
    rng = np.random.default_rng(number)
    start = DAYS[number].tz_localize("UTC")
    taste = np.random.default_rng(99).permuted(np.tile(np.arange(ITEMS), (USERS, 1)), axis=1)
    shown = taste[:, :8]
    log = pd.DataFrame(
        {
            "user_id": np.repeat(np.arange(USERS), 8),
            "session_id": 1,
            "item_id": shown.ravel(),
            "position": np.tile(np.arange(1, 9), USERS),
            "time": start + pd.to_timedelta(np.repeat(rng.integers(0, 80_000, USERS), 8), unit="s"),
        }
    )
    clicked = rng.random(len(log)) < np.tile(0.4 / np.arange(1, 9), USERS)
    clicks = log.loc[clicked, ["user_id", "item_id", "time"]]
    delay = pd.to_timedelta(rng.integers(5, 300, len(clicks)), unit="s")
    clicks = clicks.assign(time=clicks["time"] + delay).reset_index(drop=True)
    models = []
    for model, noise in (("als", 1.0), ("knn", 6.0)):
        noisy = np.argsort(np.arange(8) + noise * rng.random((USERS, 8)), axis=1)
        items = np.take_along_axis(shown, noisy, axis=1).ravel()
        lists = {"model": model, "user_id": np.repeat(np.arange(USERS), 8), "item_id": items}
        models.append(pd.DataFrame(lists | {"score": np.tile(np.arange(8, 0, -1) / 9, USERS)}))
    pred = pd.concat(models, ignore_index=True).assign(day=str(DAYS[number].date()))
    return {"log": log, "clicks": clicks, "pred": pred, "true": None}


def doubled(tables):
    tables["clicks"] = pd.concat([tables["clicks"]] * 2, ignore_index=True)


def early(tables):
    tables["clicks"]["time"] -= pd.Timedelta("30s")


def one_model(tables):
    tables["pred"] = tables["pred"].query("model == 'als'")


def of_another_day(tables):
    tables["pred"]["day"] = str(DAYS[0].date())


def null_ids(tables):
    tables["pred"]["item_id"] = (
        tables["pred"]["item_id"].astype("Int64").mask(tables["pred"].index < 5)
    )


def ids_of_text(tables):
    tables["pred"]["item_id"] = "i" + tables["pred"]["item_id"].astype(str)


def ranks_as_scores(tables):
    tables["pred"]["score"] = tables["pred"].groupby(["model", "user_id"]).cumcount() + 1


def half_of_the_clicks(tables):
    lost = tables["clicks"].index % 2 == 0
    tables["clicks"].loc[lost, "item_id"] += 1000


def doubled_log(tables):
    tables["log"] = pd.concat([tables["log"]] * 2, ignore_index=True)


def clicks_of_another_night(tables):
    tables["clicks"] = night(3)["clicks"]


def half_of_the_clicks_lost(tables):
    tables["clicks"] = tables["clicks"][::2].reset_index(drop=True)


def cut_to_five(tables):
    lists = tables["pred"].groupby(["model", "user_id"])
    tables["pred"] = lists.head(5).reset_index(drop=True)


def shuffled_scores(tables):
    own = tables["pred"]["model"] == "als"
    scores = tables["pred"].loc[own, "score"]
    tables["pred"].loc[own, "score"] = np.random.default_rng(0).permutation(scores)


def constant_scores(tables):
    tables["pred"].loc[tables["pred"]["model"] == "als", "score"] = 0.5


def both_at_chance(tables):
    """All lists are of random items, so that the models are alike."""
    rng = np.random.default_rng(0)
    n = len(tables["pred"]) // 8
    tables["pred"]["item_id"] = rng.permuted(np.tile(np.arange(ITEMS), (n, 1)), axis=1)[
        :, :8
    ].ravel()


def no_rows(tables):
    tables["pred"] = tables["pred"][:0]


def at_chance(tables):
    """One model recommends random items of the log."""
    own = tables["pred"]["model"] == "als"
    rng = np.random.default_rng(0)
    tables["pred"].loc[own, "score"] = rng.random(int(own.sum()))


FAULTS = [
    doubled,
    early,
    one_model,
    of_another_day,
    null_ids,
    ids_of_text,
    ranks_as_scores,
    half_of_the_clicks,
    doubled_log,
    clicks_of_another_night,
    half_of_the_clicks_lost,
    cut_to_five,
    shuffled_scores,
    constant_scores,
    both_at_chance,
    no_rows,
    at_chance,
]


def played(capsys, number, tables, before):
    """Run the commands of a night until one ends with another code than 0, and return the codes and
    what was said on stderr."""
    day = str(DAYS[number].date())
    for name in ("log", "clicks", "pred"):
        tables[name].to_parquet(f"{name}.parquet", index=False)
    lists, result = f"lists/{day}", f"results/{day}"
    fail = ["--fail-on", "warning"]
    against = ["--against", before] if before else []
    log = ["log.parquet", "--clicks", "clicks.parquet", "--out", lists, *against]
    files = ["--true", f"{lists}/true.parquet", "--pred", "pred.parquet", "--by", "model"]
    files += ["--relevance-col", "relevance"]
    expected = ["--expect", "models=als,knn", "rows>=4000", "true.rows[relevance=1]>=200"]
    expected += ["--expect-days", f"{day}..{day}", "--max-age", "26h"]
    commands = [
        ["impressions", *log, *fail, "drift"],
        ["check", *files, *expected, *fail],
        ["evaluate", *files, "-m", "ndcg@5", *expected, "--profile", "--out", result, *fail],
        ["compare", result, "--baseline", "knn", "--fail-on", "worse", "invalid"],
        [*GATE, "--model", "als", result, "--baseline", result, "--summary", f"{result}.md"],
        [*HISTORY, "--until", str((DAYS[number] + pd.Timedelta("1D")).date())],
    ]
    said = []
    for command in commands:
        code, _, err = run(capsys, *command, "-q")
        said.append((command[0], code, err))
        if code:
            break
    return said


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """Where the first test of the module leaves the nights that it has played."""
    return tmp_path_factory.mktemp("nights") / "job"


@pytest.fixture
def job(once, tmp_path, monkeypatch, capsys):
    """Four honest nights have been played in the current folder."""
    monkeypatch.chdir(tmp_path)
    if once.exists():
        shutil.copytree(once, tmp_path, dirs_exist_ok=True)
        return f"lists/{DAYS[3].date()}"
    before = None
    for number in range(4):
        for command, code, err in played(capsys, number, night(number), before):
            assert (number, command, code, err) == (number, command, 0, "")
        before = f"lists/{DAYS[number].date()}"
    shutil.copytree(tmp_path, once)
    return before


@pytest.mark.slow
def test_honest_nights_pass_and_each_fault_is_said(job, capsys):
    for fault in FAULTS:
        tables = night(4)
        fault(tables)
        said = played(capsys, 4, tables, job)
        assert any(code or err for _, code, err in said), fault.__name__
        for folder in ("lists", "results"):
            shutil.rmtree(f"{folder}/{DAYS[4].date()}", ignore_errors=True)
    for _, code, err in played(capsys, 4, night(4), job):
        assert (code, err) == (0, "")


@pytest.mark.slow
@pytest.mark.usefixtures("job")
def test_nights_that_do_not_come_are_said_and_one_in_quarantine_is_left_out(capsys):
    late = [*HISTORY, "--until", DAYS[5].date()]
    code, _, err = run(capsys, *late)
    assert (code, "newest night 2026-11-04: too old" in err) == (1, True)
    in_time = [*HISTORY, "--until", DAYS[4].date()]
    assert run(capsys, *in_time)[::2] == (0, "")
    Path(f"results/{DAYS[2].date()}/quarantined").touch()
    code, out, err = run(capsys, *in_time)
    assert (code, err) == (0, "")
    assert "left out: 2026-11-03" in out
    shutil.rmtree(f"results/{DAYS[2].date()}")
    code, _, err = run(capsys, *in_time)
    assert (code, "night 2026-11-03: missing" in err) == (1, True)

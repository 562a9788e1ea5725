"""`recdf impressions` writes what `from_impressions` makes, in parts and from text, and `recdf
evaluate` reads it."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.command import fails, run

import recdf as rd


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A log of 300 users, its clicks and purchases, as files in the current folder."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 3000
    start = pd.Timestamp("2026-09-01", tz="UTC")
    log = pd.DataFrame(
        {
            "user_id": np.char.add("u", rng.integers(0, 300, n).astype(str)),
            "session_id": rng.integers(0, 3, n),
            "item_id": rng.integers(0, 20, n),
            "position": rng.integers(0, 9, n),
            "time": start + pd.to_timedelta(rng.integers(0, 86400, n), unit="s"),
        }
    )
    events = log.iloc[rng.integers(0, n, 400)][["user_id", "item_id", "time"]].reset_index(
        drop=True
    )
    events["time"] += pd.to_timedelta(rng.integers(-7200, 7200, 400), unit="s")
    frames = {
        "log": log,
        "clicks": events[:300],
        "purchases": events[300:].assign(price=rng.integers(1, 9, 100) / 2),
    }
    for name, frame in frames.items():
        frame.to_parquet(f"{name}.parquet", index=False)
        frame.to_csv(f"{name}.csv", index=False)
    return frames


RULES = [
    "--time-col",
    "time",
    "--value-col",
    "price",
    "--window",
    "1h",
    "--unattributed",
    "true",
]


def expected(shop):
    options = {
        "time_col": "time",
        "value_col": "price",
        "window": "1h",
        "unattributed": "true",
    }
    return rd.from_impressions(
        shop["log"], clicks=shop["clicks"], purchases=shop["purchases"], **options
    )


def rows(frame):
    """The rows of a table in an order of their own."""
    plain = frame.astype({"user_id": object}).sort_values(
        ["user_id", "session_id", "item_id"], ignore_index=True
    )
    return plain.assign(
        **{
            name: plain[name].astype("datetime64[ns, UTC]")
            for name in plain.columns
            if name == "time"
        }
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("ending", "limit"), [("parquet", "1GB"), ("parquet", "100KB"), ("csv", "1GB")]
)
def test_writes_what_from_impressions_makes(shop, capsys, ending, limit):
    events = ["--clicks", f"clicks.{ending}", "--purchases", f"purchases.{ending}"]
    command = [
        "impressions",
        f"log.{ending}",
        *events,
        "--memory-limit",
        limit,
        "--out",
        "lists",
        *RULES,
    ]
    code, out, err = run(capsys, *command)
    assert (code, err) == (0, "")
    whole = expected(shop)
    for name, table in (("true", whole.true), ("pred", whole.pred)):
        written = pd.read_parquet(f"lists/{name}.parquet")
        pd.testing.assert_frame_equal(rows(written), rows(table), check_dtype=False)
    spec = json.loads(Path("lists/impressions.json").read_text(encoding="utf-8"))
    assert spec["counts"] == whole.spec["counts"]
    assert spec["positions"] == whole.spec["positions"]
    assert f"{whole.spec['counts']['lists']:,} lists" in out


def test_evaluate_reads_the_files(shop, capsys):
    command = [
        "impressions",
        "log.parquet",
        "--purchases",
        "purchases.parquet",
        "--window",
        "24h",
        "--out",
        "lists",
    ]
    code, out, err = run(capsys, *command, "--value-col", "price")
    assert (code, err) == (0, "")
    next_command = out.splitlines()[-1].removeprefix("next: recdf ").split()
    code, out, err = run(capsys, *next_command, "revenue@10", "--out", "result")
    assert (code, err) == (0, "")
    lists = rd.from_impressions(
        shop["log"], purchases=shop["purchases"], time_col="time", value_col="price", window="24h"
    )
    options = {
        "user_col": ["user_id", "session_id"],
        "relevance_col": "relevance",
        "value_col": "price",
    }
    result = rd.evaluate(*lists, ["hits@10", "revenue@10"], **options)
    written = rd.read_parquet("result")
    assert written.per_user["hits@10"].sum() == result.per_user["hits@10"].sum() > 0
    assert written.per_user["revenue@10"].sum() == pytest.approx(
        result.per_user["revenue@10"].sum()
    )


def test_options_of_the_command(shop, capsys):
    shop["log"].assign(clicked=shop["log"].index % 7 == 0).drop(columns="session_id").to_parquet(
        "visits.parquet"
    )
    options = [
        "--clicked-col",
        "clicked",
        "--session-gap",
        "30min",
        "--rank-by-time",
        "--relevance",
        "clicked=2",
    ]
    code, _, err = run(capsys, "impressions", "visits.parquet", *options, "--out", "lists")
    assert (code, err) == (0, "")
    true = pd.read_parquet("lists/true.parquet")
    assert sorted(true["relevance"].unique()) == [0.0, 2.0]
    code, _, _ = run(
        capsys,
        "impressions",
        "visits.parquet",
        "--clicked-col",
        "clicked",
        "--list-cols",
        "--out",
        "one",
    )
    assert code == 0
    assert pd.read_parquet("one/true.parquet").columns.tolist() == [
        "user_id",
        "item_id",
        "relevance",
        "clicks",
    ]


@pytest.mark.long
def test_none_of_the_events_belongs_to_an_impression(shop, capsys):
    shop["purchases"].assign(item_id=99).to_parquet("others.parquet")
    files = ["log.parquet", "--purchases", "others.parquet", "--out", "lists"]
    code, _, err = run(capsys, "impressions", *files, "--memory-limit", "100KB")
    assert code == 0
    assert err.startswith("recdf: warning: none of the 100 purchases belongs to an impression")
    assert err.count("\n") == 1


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["log.parquet", "--out", "lists"], "nothing says what was relevant"),
        (["log.parquet", "--purchases", "purchases.parquet"], "--out is missing"),
        (["log.parquet", "--purchases", "absent.parquet", "--out", "lists"], "absent.parquet"),
        (
            [
                "log.parquet",
                "--purchases",
                "purchases.parquet",
                "--user-col",
                "who",
                "--out",
                "lists",
            ],
            "'who'",
        ),
        (
            [
                "log.parquet",
                "--clicked-col",
                "position",
                "--relevance",
                "clicked",
                "--out",
                "lists",
            ],
            "such as clicked=1",
        ),
        (
            ["log.parquet", "--purchases", "purchases.parquet", "--window", "x", "--out", "lists"],
            "is no span of time",
        ),
        (
            ["log.parquet", "--purchases", "purchases.parquet", "--window", "60", "--out", "lists"],
            'write --window 60s, "24h"',
        ),
    ],
)
def test_fails_in_one_line(shop, capsys, arguments, words):
    assert words in fails(capsys, "impressions", *arguments)
    assert not Path("lists").exists()


@pytest.mark.long
def test_what_a_killed_process_left_is_removed(shop, capsys):
    Path("lists/.recdf-writing-gone").mkdir(parents=True)
    shop["log"].to_csv("log.csv", index=False)
    files = ["log.csv", "--purchases", "purchases.parquet", "--out", "lists"]
    assert run(capsys, "impressions", *files)[0] == 0
    written = sorted(path.name for path in Path("lists").iterdir())
    assert written == ["impressions.json", "pred.parquet", "run.json", "true.parquet"]


@pytest.mark.long
def test_a_result_that_is_there_is_kept(shop, capsys):
    command = ["impressions", "log.parquet", "--purchases", "purchases.parquet", "--out", "lists"]
    assert run(capsys, *command)[0] == 0
    assert "pass --overwrite" in fails(capsys, *command)
    assert run(capsys, *command, "--overwrite")[0] == 0

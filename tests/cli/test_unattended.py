"""The command as a nightly job calls it: exit codes, files of every layout, formats, a file of options, signals."""

import errno
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.command import WITH_RECDF, fails, refused, run

import recdf as rd
from recdf.cli import files as cli_files

TRUE = pd.DataFrame({"user_id": [1, 1, 2, 3], "item_id": [10, 20, 30, 10], "day": ["mon", "mon", "tue", "tue"]})
PRED = pd.DataFrame(
    {
        "model": ["a"] * 4 + ["b"] * 4,
        "user_id": [1, 1, 2, 3, 1, 2, 2, 3],
        "item_id": [10, 40, 40, 30, 20, 10, 30, 10],
        "score": [0.5, 0.3, 0.9, 0.4, 0.5, 0.7, 0.6, 0.1],
    }
)
CALL = ["evaluate", "--true", "true.parquet", "--pred", "pred.parquet", "--by", "model", "-m", "mrr@2", "hits@2"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder, with both frames as parquet."""
    monkeypatch.chdir(tmp_path)
    TRUE.to_parquet("true.parquet", index=False)
    PRED.to_parquet("pred.parquet", index=False)
    return tmp_path


def expected(true=TRUE, pred=PRED, metrics=("mrr@2", "hits@2"), **options):
    return rd.evaluate(true, pred, list(metrics), **{"by": "model", **options})


# ------------------------------------------------------------------------------------------ exit codes

NO_ROWS = TRUE.head(0)
STRANGERS = PRED.assign(user_id=PRED["user_id"] + 100)
OTHER_ITEMS = PRED.assign(item_id=PRED["item_id"] + 100)
ONE_MODEL_OFF = PRED.assign(item_id=PRED["item_id"].where(PRED["model"] == "a", PRED["item_id"] + 100))


@pytest.mark.parametrize("stream", [[], ["--stream"]])
@pytest.mark.parametrize(
    ("true", "pred", "words"),
    [
        (TRUE, PRED.head(0), "--pred pred.parquet has no rows"),
        (NO_ROWS, PRED, "--true true.parquet has no rows"),
        (NO_ROWS, PRED.head(0), "--true true.parquet and --pred pred.parquet have no rows"),
        (TRUE, STRANGERS, "no recommended user is in true"),
        (TRUE, OTHER_ITEMS, "no recommended item is in true"),
        (TRUE, ONE_MODEL_OFF, "1 of 2 by values"),
    ],
)
def test_what_no_honest_number_comes_from_is_refused(capsys, true, pred, words, stream):
    true.to_parquet("true.parquet")
    pred.to_parquet("pred.parquet")
    line = refused(capsys, *CALL, *stream, "--out", "out")
    assert line.startswith("recdf evaluate: refused: ")
    assert words in line
    assert "--allow-empty" in line
    assert not Path("out").exists()
    code, out, _ = run(capsys, *CALL, *stream, "--out", "out", "--allow-empty")
    assert code == 0
    assert Path("out").exists() is bool(out)


def test_a_bad_call_is_2_and_a_sound_result_0(capsys):
    assert run(capsys, *CALL)[0] == 0
    assert run(capsys, *CALL, "--item-col", "itm")[0] == 2
    Path("true.parquet").write_bytes(b"PAR1")
    assert run(capsys, *CALL)[0] == 2


@pytest.mark.parametrize(("fail_on", "code"), [([], 0), (["error"], 0), (["warning"], 1), (["error", "warning"], 1)])
def test_check_fails_on_what_is_asked(capsys, fail_on, code):
    pd.concat([PRED, PRED.head(1)]).to_parquet("pred.parquet")
    call = ["check", "--true", "true.parquet", "--pred", "pred.parquet", "--by", "model", "-k", "1"]
    findings = rd.check(TRUE, pd.concat([PRED, PRED.head(1)]), 1, by="model")
    assert set(findings["severity"]) >= {"warning"}
    assert "error" not in set(findings["severity"])
    assert run(capsys, *call, *(["--fail-on", *fail_on] if fail_on else []))[0] == code


def test_check_writes_its_findings(capsys):
    call = ["check", "--true", "true.parquet", "--pred", "pred.parquet", "--by", "model", "--out", "found"]
    code, out, _ = run(capsys, *call)
    assert code == 0
    assert "findings.parquet" in out
    written = pd.read_parquet("found/findings.parquet")
    assert written["finding"].tolist() == rd.check(TRUE, PRED, 10, by="model")["finding"].tolist()
    assert "pass --overwrite" in fails(capsys, *call)


def test_an_invalid_experiment_fails_if_asked(capsys):
    shop = rd.sample_shop()
    shop.shown.to_parquet("shown.parquet")
    shop.true.to_parquet("true.parquet")
    users = shop.assignment
    odd = users[(users["variant"] != users["variant"].iloc[0]) | (np.arange(len(users)) % 3 == 0)]
    odd.to_parquet("users.parquet")
    assert run(capsys, *CALL[:3], "--pred", "shown.parquet", "-m", "hits@5", "--users", "pred", "--out", "r")[0] == 0
    control = users["variant"].iloc[0]
    call = ["experiment", "r", "--assignment", "users.parquet", "--control", control, "--missing", "zero"]
    assert run(capsys, *call)[0] == 0
    assert run(capsys, *call, "--fail-on", "invalid")[0] == 1


# ------------------------------------------------------------------------------------------ what is printed


def test_json_and_csv_hold_every_digit_and_nothing_else(capsys):
    table = expected().summary
    code, out, err = run(capsys, *CALL, "--format", "json", "--out", "out")
    assert code == 0
    assert "wrote" in err
    rows = json.loads(out)
    assert [row["value"] for row in rows] == table["value"].tolist()
    assert [row["k"] for row in rows] == table["k"].tolist()
    assert set(rows[0]) == set(table.columns)
    _, out, err = run(capsys, *CALL, "--format", "csv")
    assert err == ""
    assert pd.read_csv(StringIO(out))["value"].tolist() == table["value"].tolist()


def test_nulls_are_null_in_json(capsys):
    TRUE.head(1).to_parquet("true.parquet")  # one user has no deviation
    rows = json.loads(run(capsys, *CALL, "--format", "json", "--allow-empty")[1])
    assert rows[0]["std"] is None


@pytest.mark.usefixtures("small_shop")
def test_every_command_speaks_json(capsys):
    run(capsys, *CALL, "--out", "result")
    found = json.loads(run(capsys, "compare", "result", "--format", "json", "--baseline", "a")[1])
    assert {row["model"] for row in found} == {"b"}
    found = json.loads(
        run(capsys, "check", "--true", "true.parquet", "--pred", "pred.parquet", "--by", "model", "--format", "json")[1]
    )
    assert all({"finding", "severity"} <= set(row) for row in found)
    assert {"summary", "segments"} == set(json.loads(run(capsys, "demo", "--format", "json")[1]))
    (report,) = json.loads(run(capsys, "report", "result", "--out", "r.html", "--format", "json")[1])
    assert report == {"file": "r.html", "bytes": Path("r.html").stat().st_size}
    PRED[PRED["model"] == "a"].assign(clicked=[1, 0, 1, 0]).to_parquet("log.parquet")
    call = ["impressions", "log.parquet", "--list-cols", "--clicked-col", "clicked", "--rank-by-time", "--out", "lists"]
    counts = {(row["of"], row["count"]): row["n"] for row in json.loads(run(capsys, *call, "--format", "json")[1])}
    assert counts["log", "impressions"] == 4


def test_quiet_prints_errors_alone_and_verbose_says_more(capsys):
    assert run(capsys, *CALL, "-q", "--out", "out") == (0, "", "")
    assert "itm" in fails(capsys, *CALL, "-q", "--item-col", "itm")
    _, _, err = run(capsys, *CALL, "-v")
    assert "read --true true.parquet: 4 rows" in err
    _, _, err = run(capsys, *CALL, "-v", "--item-col", "itm")
    assert "Traceback" in err


@pytest.mark.parametrize(
    "change",
    [
        {"score": np.nan},
        {"user_id": None},
        {"item_id": "x"},
        {"user_id": 99},
        {"user_id": 1.5},
    ],
)
def test_no_message_speaks_python(capsys, change):
    PRED.assign(**change).to_parquet("pred.parquet")
    code, _, err = run(capsys, *CALL)
    assert code in (1, 2)
    for word in ("rd.", ".astype", "=True", "null_keys", "nan_score", "by=", "user_col="):
        assert word not in err


# ------------------------------------------------------------------------------------------ files of every layout


def hive(frame, root, column, ending):
    for value, rows in frame.groupby(column):
        part = Path(root) / f"{column}={value}" / f"part.{ending}"
        part.parent.mkdir(parents=True)
        rows = rows.drop(columns=column)
        rows.to_parquet(part, index=False) if ending == "parquet" else rows.to_csv(part, index=False)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_folders_globs_and_hive_folders_are_one_frame(capsys, ending):
    hive(PRED, "lists", "model", ending)
    Path("lists/_SUCCESS").touch()
    Path("lists/.hidden.parquet").write_bytes(b"no parquet")
    for pred in ("lists", f"lists/*/*.{ending}", "lists/model=*"):
        call = [*CALL[:3], "--pred", pred, *CALL[5:]]
        assert run(capsys, *call, "--out", "out", "--overwrite")[0] == 0
        found = rd.read_parquet("out")
        assert found.per_user.astype({"model": str}).equals(expected().per_user.astype({"model": str}))
    assert "no such file" in fails(capsys, *CALL[:3], "--pred", "lists/*.tsv", *CALL[5:])


def test_a_folder_of_several_kinds_is_refused(capsys):
    Path("mixed").mkdir()
    PRED.to_parquet("mixed/a.parquet")
    PRED.to_csv("mixed/b.csv")
    assert "several kinds (.csv, .parquet)" in fails(capsys, *CALL[:3], "--pred", "mixed", *CALL[5:])


@pytest.mark.parametrize("kinds", [("category", "str"), ("str", "category"), ("category", "ordered")])
def test_categories_in_some_files_of_a_folder(capsys, kinds):
    """As with --stream: a job that began to write categories is evaluated as before."""
    Path("days").mkdir()
    for number, (kind, part) in enumerate(zip(kinds, (PRED[:3], PRED[3:]), strict=True)):
        label = pd.CategoricalDtype(sorted(part["model"].unique()), ordered=True) if kind == "ordered" else kind
        part.astype({"model": label}).to_parquet(f"days/{number}.parquet")
    call = [*CALL[:3], "--pred", "days", *CALL[5:]]
    for options in ([], ["--stream"]) if "ordered" not in kinds else ([],):
        assert run(capsys, *call, *options, "--out", "out", "--overwrite")[0] == 0
        found = rd.read_parquet("out").per_user
        assert found.astype({"model": str}).equals(expected().per_user.astype({"model": str}))
        assert isinstance(found["model"].dtype, pd.CategoricalDtype) == (kinds == ("category", "str"))


@pytest.mark.parametrize("name", ["score", "model", "item_id"])
def test_a_file_of_a_folder_that_lacks_a_column_is_named(capsys, name):
    """Its rows were null there, and --nan-score last would have ranked them without a word."""
    Path("days").mkdir()
    PRED[:3].assign(new=1).to_parquet("days/0.parquet")
    PRED[3:].drop(columns=name).to_parquet("days/1.parquet")
    call = [*CALL[:3], "--pred", "days", *CALL[5:]]
    for options in ([], ["--stream"]):
        assert f"days/1.parquet has no column '{name}'" in fails(capsys, *call, *options)


def test_a_full_disk_is_told_with_its_places(capsys, monkeypatch):
    """Arrow names no file. The error is raised where a writer is made, since a test has no disk to fill."""

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "Error writing bytes to file. Detail: [errno 28] No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    assert "No space left on the device of --out or of the temporary folder" in fails(capsys, *CALL, "--out", "out")
    assert not Path("out").exists()


def test_addresses_are_read_by_fsspec(capsys):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    with memory.open("/bucket/model=a/1.csv", "w") as file:
        PRED[PRED["model"] == "a"].drop(columns="model").to_csv(file, index=False)
    with memory.open("/bucket/model=b/1.csv", "w") as file:
        PRED[PRED["model"] == "b"].drop(columns="model").to_csv(file, index=False)
    with memory.open("/true/true.parquet", "wb") as file:
        file.write(Path("true.parquet").read_bytes())
    tail = ["-m", "mrr@2", "hits@2", "--by", "model", "--format", "csv"]
    for pred in ("memory://bucket", "memory://bucket/*/*.csv"):
        _, out, err = run(capsys, "evaluate", "--true", "memory://true/true.parquet", "--pred", pred, *tail)
        assert err == ""
        assert pd.read_csv(StringIO(out))["value"].tolist() == expected().summary["value"].tolist()
    assert "no such file" in fails(capsys, "evaluate", "--true", "memory://no.csv", "--pred", "memory://bucket", *tail)


def test_without_fsspec_an_address_names_the_package(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    assert "pip install fsspec" in fails(capsys, *CALL[:3], "--pred", "s3://bucket/pred.parquet", *CALL[5:])


@pytest.mark.parametrize(
    "call",
    [
        [*CALL, "--out", "s3://bucket/result"],
        ["compare", "s3://bucket/result"],
        ["experiment", "s3://bucket/result", "--assignment", "true.parquet", "--control", "A"],
        ["report", "s3://bucket/result"],
        ["report", "result", "--out", "s3://bucket/report.html"],
        ["report", "result", "--check", "s3://bucket/check.parquet"],
        ["impressions", "s3://bucket/log.parquet", "--out", "lists"],
        ["impressions", "true.parquet", "--out", "s3://bucket/lists"],
    ],
)
def test_results_are_not_written_to_addresses_nor_read_from_them(capsys, call):
    assert "s3://bucket/" in (message := fails(capsys, *call))
    assert "is an address; expected a path of this machine" in message
    assert sorted(path.name for path in Path().iterdir()) == ["pred.parquet", "true.parquet"]


def test_side_tables_come_from_files(capsys):
    items = pd.DataFrame(
        {"item_id": [10, 20, 30, 40], "group": list("xxyy"), "price": [1.0, 2.0, 3.0, 4.0], "size": [0, 1, 0, 1]}
    )
    log = pd.DataFrame({"user_id": [1, 2, 2, 3], "item_id": [10, 10, 20, 40]})
    aspects = pd.DataFrame({"user_id": [1, 2, 3], "aspect": [1, 1, 2], "item_id": [10, 30, 10]})
    base = pd.DataFrame({"user_id": [1, 2, 3], "item_id": [40, 40, 10]})
    for name, frame in {"items": items, "log": log, "aspects": aspects, "base": base}.items():
        frame.to_csv(f"{name}.csv", index=False)
    pd.DataFrame({"item_id": [40]}).to_csv("popular.csv", index=False)
    items[["item_id", "price", "size"]].to_parquet("features.parquet")
    metrics = ["surprisal@2", "subtopic_recall@2", "serendipity@2", "ild@2", "hits@2"]
    given = {"items": items, "log": log, "aspects": aspects, "base": base, "popular": [40], "item_by": "group"}
    flags = [word for name in ("items", "log", "aspects", "base", "popular") for word in (f"--{name}", f"{name}.csv")]
    call = [*CALL[:7], "-m", *metrics, *flags, "--item-by", "group", "--out", "out", "--overwrite"]
    assert run(capsys, *call, "--features", "price", "size")[0] == 0
    assert rd.read_parquet("out") == expected(metrics=metrics, **given, features=["price", "size"])
    assert run(capsys, *call, "--features", "features.parquet")[0] == 0
    of_file = items.set_index("item_id")[["price", "size"]]
    assert rd.read_parquet("out") == expected(metrics=metrics, **given, features=of_file)


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_columns_that_are_carried(capsys, stream):
    pred = PRED.assign(time=range(8), day="mon")
    pred.to_parquet("pred.parquet", index=False)
    assert run(capsys, *CALL, "--carry", "time=min", "day", "--out", "out", *stream)[0] == 0
    assert rd.read_parquet("out") == expected(pred=pred, carry={"time": "min", "day": "constant"})


def test_groups_of_items_of_streamed_files(capsys):
    items = pd.DataFrame({"item_id": [10, 20, 30, 40], "group": list("xxyy")})
    items.to_parquet("items.parquet")
    call = [*CALL, "--items", "items.parquet", "--item-by", "group", "--out", "out"]
    assert run(capsys, *call, "--stream")[0] == 0
    assert rd.read_parquet("out") == expected(items=items, item_by="group")


# ------------------------------------------------------------------------------------------ a file of options


def config(text):
    Path("job.toml").write_text(text, encoding="utf-8")
    return ["--config", "job.toml"]


def test_a_file_of_options_stands_for_the_flags(capsys):
    job = config(
        """
        true = "true.parquet"
        pred = "pred.parquet"
        metrics = ["mrr@2", "hits@2"]
        by = "model"
        out = "out"
        judged_only = false
        overwrite = true
        """
    )
    assert run(capsys, "evaluate", *job)[0] == 0
    assert rd.read_parquet("out") == expected()
    assert run(capsys, "evaluate", *job, "-m", "ndcg@1")[0] == 0  # a flag wins
    assert rd.read_parquet("out") == expected(metrics=["ndcg@1"])


def test_one_file_has_a_table_for_each_command(capsys):
    job = config(
        """
        [evaluate]
        true = "true.parquet"
        pred = "pred.parquet"
        by = ["model"]
        m = "mrr"
        k = [1, 2]
        out = "out"
        [compare]
        results = "out"
        baseline = "a"
        format = "csv"
        seed = -1
        """
    )
    assert run(capsys, "evaluate", *job)[0] == 0
    assert rd.read_parquet("out") == rd.evaluate(TRUE, PRED, "mrr", k=[1, 2], by="model")
    assert "seed" in fails(capsys, "compare", *job)
    assert run(capsys, "compare", *job, "--seed", "1")[0] == 0
    assert "no table [check]" in fails(capsys, "check", *job)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tru = 1", "has no option 'tru'; did you mean 'true'?"),
        ("true = [", "is no TOML file"),
        ("overwrite = 1", "expected true or false"),
        ("true = ['a', 'b']", "expected one value"),
        ("by = [[1]]", "expected text, a number, or a list"),
        ("config = 'other'", "has no option 'config'"),
    ],
)
def test_a_wrong_file_of_options(capsys, text, words):
    assert words in fails(capsys, "evaluate", *config(text))


def test_a_missing_file_of_options(capsys):
    assert "absent.toml: No such file" in fails(capsys, "evaluate", "--config", "absent.toml")


# ------------------------------------------------------------------------------------------ signals

STOPPED = """
import os, signal, sys
from recdf.evaluation import storage
from recdf.cli import run

number = getattr(signal, sys.argv.pop())

def stop(*arguments):
    os.kill(os.getpid(), number)
    return keep(*arguments)

keep, storage.to_table = storage.to_table, stop
run()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM to send")
@pytest.mark.parametrize(
    ("stream", "name", "code"), [([], "SIGTERM", 143), ([], "SIGINT", 130), (["--stream"], "SIGTERM", 143)]
)
def test_sigterm_ends_like_ctrl_c(capsys, name, code, stream):
    run(capsys, *CALL, "--out", "out")
    before = {path: path.read_bytes() for path in Path("out").iterdir()}
    call = [sys.executable, "-c", STOPPED, *CALL, *stream, "-k", "3", "--out", "out", "--overwrite", name]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=WITH_RECDF)
    assert (done.returncode, done.stderr) == (code, "")
    assert {path: path.read_bytes() for path in Path("out").iterdir()} == before


def test_the_handler_of_the_caller_comes_back(capsys):
    before = signal.getsignal(signal.SIGTERM)
    run(capsys, *CALL)
    assert signal.getsignal(signal.SIGTERM) is before


def test_folder_columns():
    assert cli_files._folder_columns("a/day=2026-01-01/x%20y=1/p.parquet") == {"day": "2026-01-01", "x%20y": "1"}
    assert cli_files._folder_columns("a/day=__HIVE_DEFAULT_PARTITION__/p.parquet") == {"day": None}


# ------------------------------------------------------------------------------------------ the page


def test_the_commands_of_the_page_end_with_the_codes_that_it_gives(capsys):
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
    Path("job.toml").write_text(re.search(r"```toml\n(.*?)```", page, flags=re.S)[1], encoding="utf-8")
    commands = re.findall(r"^recdf (.*?) +# (\d+)$", page, flags=re.M)
    assert len(commands) > 8
    for command, code in commands:
        assert (command, run(capsys, *shlex.split(command))[0]) == (command, int(code))

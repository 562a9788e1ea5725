"""`recdf check`, and the first commands of docs/command_line.md."""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from cli.command import fails, run

import recdf as rd

# -- recdf check


@pytest.fixture
def lists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    users = [user for user in range(1, 31) for _ in range(12)]
    pred = pd.DataFrame(
        {"user_id": users, "item_id": list(range(12)) * 30, "rank": list(range(1, 13)) * 30}
    )
    pred.to_csv("pred.csv", index=False)
    pred[pred["rank"] == 2][["user_id", "item_id"]].to_csv("true.csv", index=False)
    pred[["item_id"]].drop_duplicates().to_csv("items.csv", index=False)
    return pred


def check(capsys, *arguments):
    return run(capsys, "check", "--true", "true.csv", "--pred", "pred.csv", *arguments)


def test_check_of_clean_data(capsys, lists):
    assert check(capsys, "--items", "items.csv") == (0, "nothing odd found at k = 10\n", "")


def test_check_prints_findings_and_a_warning_is_no_error(capsys, lists):
    lists.assign(rank=lists["rank"] - 1, model="m").to_csv("pred.csv", index=False)
    lists[lists["rank"] == 1].to_parquet("log.parquet")
    code, out, err = check(
        capsys, "-k", "5", "--log", "log.parquet", "--by", "model", "--rank-col", "rank"
    )
    assert (code, err) == (0, "")
    found = rd.check(
        pd.read_csv("true.csv"),
        pd.read_csv("pred.csv"),
        5,
        log=pd.read_parquet("log.parquet"),
        by="model",
    )
    assert set(found["finding"]) == {
        "ranks that do not start at 1",
        "recommendations already in the log",
    }
    for row in found.itertuples():
        assert re.search(rf"^{row.severity} +m: {row.finding} +{row.count} ", out, flags=re.M)
    assert {*" ".join(found["effect"]).split()} <= {*out.split()}
    assert out.splitlines()[-1] == "found: 0 errors, 2 warnings, 0 notes"


def test_check_of_errors_is_exit_code_1(capsys, lists):
    lists.assign(user_id=lists["user_id"].map("u{}".format)).to_csv("pred.csv", index=False)
    code, out, err = check(capsys)
    assert (code, err) == (1, "recdf check: exit code 1: error: no user in common: 30\n")
    assert re.search(r"^error +no user in common +30 +100\.0% ", out, flags=re.M)
    assert "true ['1', '2'], pred ['u1', 'u1']" in " ".join(out.split())
    assert out.endswith("found: 1 error, 0 warnings, 0 notes\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--item-col", "itm_id"], "did you mean 'item_id'?"),
        (["-k", "0"], "-k 0; expected a positive integer"),
        (["--log", "absent.csv"], "absent.csv: no such file"),
        (["--like", "trec"], "did you mean 'trec_eval'?"),
        (["--users", "pred"], "unrecognized arguments: --users"),
        (["--score-col", "rank", "--rank-col", "rank"], "both given"),
    ],
)
def test_check_misused_is_exit_code_2(capsys, lists, arguments, expected):
    assert expected in fails(
        capsys, "check", "--true", "true.csv", "--pred", "pred.csv", *arguments
    )


def test_help_lists_the_conventions(capsys):
    for command in ("evaluate", "check"):
        assert ",".join(rd.CONVENTIONS) in "".join(run(capsys, command, "--help")[1].split())


# -- the first commands of the page


@pytest.mark.long
def test_commands_of_the_page_run(capsys, tmp_path, monkeypatch, demo):
    """In order, in an empty folder, as a reader would type them; the demo has run already."""
    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).parents[2] / "docs/command_line.md").read_text(encoding="utf-8")
    section = text.split("\n## Six commands\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```$", section, flags=re.S | re.M)
    commands = [
        shlex.split(line) for block in blocks for line in block.replace("\\\n", " ").splitlines()
    ]
    assert {command[1] for command in commands} == {
        "demo",
        "evaluate",
        "check",
        "compare",
        "experiment",
    }
    for command in commands:
        assert command[0] == "recdf"
        if command[1:] == ["demo"]:
            demo.copy_to(tmp_path)
            code, out, err = demo.code, demo.out, demo.err
        else:
            code, out, err = run(capsys, *command[1:])
        assert (code, err) == (0, ""), command
        assert out

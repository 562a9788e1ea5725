"""`recdf audit`, as a job calls it: exit codes, files of text, and files that are read in parts."""

import json

import pandas as pd
import pytest
from cli.command import run
from cli.shop import SHOP

import recdf as rd

FRAMES = {"true": SHOP.true, "pred": SHOP.pred, "train": SHOP.log, "items": SHOP.items}
FILES = [word for name in FRAMES for word in (f"--{name}", f"{name}.parquet")]
OPTIONS = ["--by", "model", "--time-col", "timestamp", "--cutoff", "2026-08-30"]


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, frame in FRAMES.items():
        frame.to_parquet(f"{name}.parquet")
        frame.to_csv(f"{name}.csv", index=False)


def test_findings_are_printed_and_written(capsys):
    code, out, err = run(capsys, "audit", *FILES, *OPTIONS, "--out", "kept")
    assert (code, err) == (0, "")
    assert "rows of train after the cut-off" in out
    want = rd.audit(
        SHOP.true, SHOP.pred, train=SHOP.log, items=SHOP.items, by="model", time_col="timestamp", cutoff="2026-08-30"
    )
    pd.testing.assert_frame_equal(pd.read_parquet("kept/findings.parquet"), want)
    pd.testing.assert_frame_equal(pd.read_parquet("kept/floors.parquet"), want.floors)
    assert run(capsys, "audit", *FILES, *OPTIONS, "--fail-on", "warning")[0] == 1
    with open("kept/run.json", encoding="utf-8") as file:
        assert json.load(file)["exit"] == 0


def test_text_files_give_the_same(capsys):
    text = [word.replace(".parquet", ".csv") for word in FILES]
    assert run(capsys, "audit", *text, *OPTIONS)[1] == run(capsys, "audit", *FILES, *OPTIONS)[1]


@pytest.mark.parametrize("limit", ["1MB", "4MB", "1GB"])
def test_files_in_parts_give_the_same_numbers(capsys, limit):
    run(capsys, "audit", *FILES, *OPTIONS, "-m", "ndcg@5", "recall@10", "--out", "whole")
    assert (
        run(capsys, "audit", *FILES, *OPTIONS, "-m", "ndcg@5", "recall@10", "--out", "parts", "--memory-limit", limit)[
            0
        ]
        == 0
    )
    for name in ("findings", "floors"):
        whole, parts = (pd.read_parquet(f"{folder}/{name}.parquet") for folder in ("whole", "parts"))
        texts = [one for one in ("examples", "ranges") if one in whole]  # examples are the first of any part
        pd.testing.assert_frame_equal(parts.drop(columns=texts), whole.drop(columns=texts), rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--cutoff", "2026-08-30"], 2, "--time-col"),
        (["--cutoff", "soon", "--time-col", "timestamp"], 2, "soon"),
        (["-m", "coverage"], 2, "coverage"),
        (["--train", "nowhere.parquet"], 2, "nowhere"),
    ],
)
def test_a_wrong_call_ends_with_two(capsys, words, code, said):
    files = FILES if "--train" not in words else [word for word in FILES if "train" not in word]
    for more in ([], ["--stream"]):
        got, _, err = run(capsys, "audit", *files, *words, *more)
        assert (got, len(err.splitlines())) == (code, 1)
        assert said in err

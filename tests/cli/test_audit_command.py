"""`recdf audit`, as a job calls it: exit codes, files of text, and files that are read in parts."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from cli.command import run
from cli.shop import SHOP

import recdf as rd

FRAMES = {"true": SHOP.true, "pred": SHOP.pred, "train": SHOP.log, "items": SHOP.items}
FILES = [word for name in FRAMES for word in (f"--{name}", f"{name}.parquet")]
MOVIES = Path(__file__).parents[3] / "shared/data/movielens_latest_small/ratings.parquet"
OPTIONS = ["--by", "model", "--time-col", "timestamp", "--cutoff", "2026-08-30"]


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, frame in FRAMES.items():
        frame.to_parquet(f"{name}.parquet")
        frame.to_csv(f"{name}.csv", index=False)


@pytest.mark.long
def test_findings_are_printed_and_written(capsys):
    code, out, err = run(capsys, "audit", *FILES, *OPTIONS, "--out", "kept")
    assert (code, err) == (0, "")
    assert "rows of train after the cut-off" in out
    want = rd.audit(
        SHOP.true,
        SHOP.pred,
        train=SHOP.log,
        items=SHOP.items,
        by="model",
        time_col="timestamp",
        cutoff="2026-08-30",
    )
    pd.testing.assert_frame_equal(pd.read_parquet("kept/findings.parquet"), want)
    pd.testing.assert_frame_equal(pd.read_parquet("kept/floors.parquet"), want.floors)
    assert run(capsys, "audit", *FILES, *OPTIONS, "--fail-on", "warning")[0] == 1
    with open("kept/run.json", encoding="utf-8") as file:
        assert json.load(file)["exit"] == 0


@pytest.mark.long
def test_text_files_give_the_same(capsys):
    text = [word.replace(".parquet", ".csv") for word in FILES]
    assert run(capsys, "audit", *text, *OPTIONS)[1] == run(capsys, "audit", *FILES, *OPTIONS)[1]


@pytest.mark.long
def test_columns_with_other_names(capsys):
    run(capsys, "audit", *FILES, *OPTIONS, "--out", "same")
    SHOP.true.rename(columns={"user_id": "customer"}).to_parquet("true.parquet")
    SHOP.pred.rename(columns={"user_id": "uid", "item_id": "sku", "score": "yhat"}).to_parquet(
        "pred.parquet"
    )
    names = [
        "--true-cols",
        "user_id=customer",
        "--pred-cols",
        "user_id=uid",
        "item_id=sku",
        "score=yhat",
    ]
    code, _, err = run(capsys, "audit", *FILES, *OPTIONS, *names, "--out", "other")
    assert code == 0, err
    floors = (pd.read_parquet(f"{folder}/floors.parquet") for folder in ("same", "other"))
    pd.testing.assert_frame_equal(*floors, rtol=1e-12)
    code, _, err = run(capsys, "audit", *FILES, *OPTIONS, *names[3:])
    assert (code, "user_id" in err) == (2, True)


@pytest.mark.few(2)
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
    got, _, err = run(capsys, "audit", *files, *words)
    assert (got, len(err.splitlines())) == (code, 1)
    assert said in err


@pytest.mark.long
@pytest.mark.parametrize("leak", [False, True])
def test_a_job_of_a_shell_goes_on_after_a_clean_split_and_stops_at_a_leak(leak, shell):
    if not MOVIES.exists():
        pytest.skip(f"{MOVIES} is absent")
    log = pd.read_parquet(MOVIES)
    cut = log["timestamp"].quantile(0.8)
    train, true = log[log["timestamp"] <= cut], log[log["timestamp"] > cut]
    near = (
        train[train["timestamp"] > train["timestamp"].quantile(0.9)]["item_id"]
        .value_counts()
        .index[:200]
    )
    pred = true[["user_id"]].drop_duplicates().merge(pd.DataFrame({"item_id": near}), how="cross")
    seen = (
        pred.merge(train[["user_id", "item_id"]], how="left", indicator=True)["_merge"]
        .eq("both")
        .to_numpy()
    )
    hit = (
        pred.merge(true[["user_id", "item_id"]], how="left", indicator=True)["_merge"]
        .eq("both")
        .to_numpy()
    )
    pred = (
        pred[~seen]
        .assign(hit=hit[~seen])
        .sort_values(["user_id", "hit"], ascending=[True, False], kind="stable")
    )
    pred.groupby("user_id").head(10)[["user_id", "item_id"]].to_parquet("lists.parquet")
    true.to_parquet("test.parquet")
    (pd.concat([train, true.head(50)]) if leak else train).to_parquet("past.parquet")
    job = f"""set -e
    recdf audit --true test.parquet --pred lists.parquet --train past.parquet \\
        --time-col timestamp --cutoff '{cut}' --fail-on warning
    echo went on"""
    done = shell(job)
    assert (done.returncode, "went on" in done.stdout) == ((1, False) if leak else (0, True)), (
        done.stdout + done.stderr
    )
    found = re.search(r"^warning +rows of true that stand in train +50 ", done.stdout, re.MULTILINE)
    assert (found is not None) == leak, done.stdout

"""The command `recdf`: what it prints and writes, how it reads ids, and how it fails."""

import argparse
import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli.command import WITH_RECDF, fails, instead, run

import recdf as rd
from recdf._version import version_and_build
from recdf.inputs.options import NAMES, OPTIONS

TRUE = pd.DataFrame(
    {
        "user_id": [1, 1, 2],
        "item_id": [10, 20, 30],
        "gain": [3.0, 0.0, 1.0],
        "value": [5.0, 6.0, 7.0],
    }
)
PRED = pd.DataFrame(
    {
        "model": ["a"] * 4 + ["b"] * 3,
        "user_id": [1, 1, 2, 2, 1, 2, 2],
        "item_id": [10, 40, 40, 30, 20, 10, 40],
        "score": [0.1 + 0.2, 0.3, 0.9, 0.4, 0.5, 0.7, 0.6],
        "value": [5.5, 1.0, 1.0, 7.5, 6.0, 5.0, 1.0],
    }
)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder with true and pred as parquet and as CSV, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for name, frame in {"true": TRUE, "pred": PRED}.items():
        frame.to_parquet(f"{name}.parquet", index=False)
        frame.to_csv(f"{name}.csv", index=False)
    return tmp_path


def evaluate(capsys, *arguments, true="true.parquet", pred="pred.parquet"):
    """Result that `recdf evaluate` writes to a folder."""
    code, _, err = run(
        capsys,
        "evaluate",
        "--true",
        true,
        "--pred",
        pred,
        *arguments,
        "--out",
        "out",
        "--overwrite",
    )
    assert (code, err) == (0, "")
    return rd.read_parquet("out")


# ------------------------------------------------------------------------------------------
# evaluate


def test_prints_the_summary_and_writes_nothing_without_out(capsys, files):
    before = sorted(files.iterdir())
    code, out, err = run(
        capsys,
        "evaluate",
        "--true",
        "true.parquet",
        "--pred",
        "pred.parquet",
        "-m",
        "ndcg@2",
        "--by",
        "model",
    )
    assert (code, err) == (0, "")
    assert (
        out == rd.evaluate(TRUE, PRED, "ndcg@2", by="model").summary.to_string(index=False) + "\n"
    )
    assert sorted(files.iterdir()) == before


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["parquet", "csv", "csv.gz", "tsv"])
def test_equals_the_call_from_python(capsys, files, kind):
    if kind == "csv.gz":
        TRUE.to_csv("true.csv.gz", index=False)
        PRED.to_csv("pred.csv.gz", index=False)
    if kind == "tsv":
        TRUE.to_csv("true.tsv", index=False, sep="\t")
        PRED.to_csv("pred.tsv", index=False, sep="\t")
    metrics = ["ndcg(gain=exp2)", "recall", "money_recall@1", "mapr(normalizer=achievable)@2"]
    arguments = [
        "-m",
        metrics[0],
        "-m",
        *metrics[1:],
        "-k",
        "1",
        "-k",
        "2",
        "--by",
        "model",
        "--value-col",
        "value",
    ]
    written = evaluate(
        capsys, *arguments, "--relevance-col", "gain", true=f"true.{kind}", pred=f"pred.{kind}"
    )
    expected = rd.evaluate(
        TRUE, PRED, metrics, k=[1, 2], by="model", value_col="value", relevance_col="gain"
    )
    assert written == expected


@pytest.mark.long
def test_every_option_has_an_argument_that_reaches_the_result(capsys, files):
    given = {
        "user_col": "user_id",
        "item_col": "item_id",
        "rank_col": "score",
        "relevance_col": "gain",
        "min_relevance": 2.0,
        "value_col": "value",
        "weight_col": "weight",
        "propensity_col": "observed",
        "propensity_floor": 0.25,
        "judged_only": True,
        "by": "model",
        "by_in_true": False,
        "users": "both",
        "ties": "worst",
        "duplicates": "keep",
        "null_keys": "drop",
        "nan_score": "last",
        "undefined": "zero",
        "like": "trec_eval",
    }
    assert set(given) | {"score_col", "true_cols", "pred_cols", "items_sep", "wide"} == set(NAMES)
    true = TRUE.assign(weight=[2.0, 2.0, 1.0], observed=[0.5, 0.1, 1.0])
    true.to_parquet("true.parquet", index=False)
    arguments = []
    for name, value in given.items():
        arguments += ["--" + name.replace("_", "-")] + ([] if value is True else [str(value)])
    written = evaluate(capsys, "-m", "recall@2", *arguments)
    assert written == rd.evaluate(true, PRED, "recall@2", **given)
    assert {name: written.spec["options"][name] for name in given} == given


def test_composite_keys_and_several_by_columns(capsys, files):
    true = TRUE.assign(session=["x", "x", "y"])
    pred = PRED.assign(session=["x", "x", "y", "y", "x", "y", "y"], day="mon")
    true.to_parquet("true.parquet")
    pred.to_parquet("pred.parquet")
    written = evaluate(
        capsys,
        "-m",
        "mrr@2",
        "--user-col",
        "user_id",
        "--user-col",
        "session",
        "--by",
        "model",
        "day",
    )
    assert written == rd.evaluate(
        true, pred, "mrr@2", user_col=["user_id", "session"], by=["model", "day"]
    )


@pytest.mark.long
def test_items_and_users_come_from_files(capsys, files):
    pd.DataFrame({"item_id": [10, 20, 30, 40, 50]}).to_csv("items.csv", index=False)
    pd.DataFrame({"user_id": [2, 7]}).to_csv("users.csv", index=False)
    written = evaluate(
        capsys, "-m", "fallout@2", "--by", "model", "--items", "items.csv", "--users", "users.csv"
    )
    assert written == rd.evaluate(
        TRUE, PRED, "fallout@2", by="model", items=[10, 20, 30, 40, 50], users=[2, 7]
    )
    assert "neither one of true, pred, both, all nor a file" in fails(
        capsys,
        "evaluate",
        "--true",
        "true.csv",
        "--pred",
        "pred.csv",
        "-m",
        "mrr@2",
        "--users",
        "tru",
    )


def test_a_folder_of_parquet_files_is_one_frame(capsys, files):
    (files / "parts").mkdir()
    PRED.iloc[:4].to_parquet("parts/1.parquet")
    PRED.iloc[4:].to_parquet("parts/2.parquet")
    assert evaluate(capsys, "-m", "mrr@2", "--by", "model", pred="parts") == rd.evaluate(
        TRUE, PRED, "mrr@2", by="model"
    )


def test_an_index_that_pandas_stored_is_a_column(capsys, files):
    TRUE.set_index("user_id").to_parquet("true.parquet")
    assert evaluate(capsys, "-m", "mrr@2", "--by", "model") == rd.evaluate(
        TRUE, PRED, "mrr@2", by="model"
    )


def test_out_is_kept_unless_overwrite(capsys, files):
    call = [
        "evaluate",
        "--true",
        "true.parquet",
        "--pred",
        "pred.parquet",
        "--by",
        "model",
        "--out",
        "out",
        "-m",
    ]
    code, out, _ = run(capsys, *call, "mrr@2")
    assert code == 0
    assert f"wrote {Path('out/per_user.parquet')} (4 rows)" in out
    assert "already holds per_user.parquet; pass --overwrite" in fails(capsys, *call, "ndcg@2")
    assert rd.read_parquet("out").summary["metric"].unique().tolist() == ["mrr"]
    assert run(capsys, *call, "ndcg@2", "--overwrite")[0] == 0
    assert rd.read_parquet("out").summary["metric"].unique().tolist() == ["ndcg"]
    call[call.index("out")] = "true.csv"
    assert "true.csv is a file" in fails(capsys, *call, "mrr@2")


# -- ids


def csv(name, text):
    Path(name).write_text(text, encoding="utf-8")


def test_ids_with_leading_zeros_stay_what_they_are(capsys, files):
    csv("t.csv", "user_id,item_id\n007,1\n7,2\n")
    csv("p.csv", "user_id,item_id\n7,1\n7,2\n007,2\n")
    table = evaluate(capsys, "-m", "recall@9", true="t.csv", pred="p.csv").per_user
    assert table["user_id"].tolist() == ["007", "7"]
    assert table["recall@9"].tolist() == [0.0, 1.0]


def test_one_file_with_text_ids_makes_both_text(capsys, files):
    csv("t.csv", "user_id,item_id\n1,5\n2,6\n")
    csv("p.csv", "user_id,item_id\n1,5\n2,6\n2,x6\n")
    table = evaluate(capsys, "-m", "recall@9", true="t.csv", pred="p.csv").per_user
    assert table["recall@9"].tolist() == [1.0, 1.0]
    assert table["user_id"].tolist() == [1, 2]  # the users are integers all the same


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "id_", ["NA", "null", "1.0", "1e3", " 1", "+1", "-0", "True", "2026-01-01", "Zoë", "१"]
)
def test_text_ids_are_never_interpreted(capsys, files, id_):
    csv("t.csv", f"user_id,item_id\n{id_},{id_}\n")
    csv("p.csv", f"user_id,item_id\n{id_},{id_}\n")
    table = evaluate(capsys, "-m", "recall@9", true="t.csv", pred="p.csv").per_user
    assert table["user_id"].tolist() == [id_]
    assert table["recall@9"].tolist() == [1.0]


@pytest.mark.few(2)
@pytest.mark.parametrize("id_", [0, -5, 2**53 + 1, 2**63 - 1, -(2**63)])
def test_integer_ids_stay_exact(capsys, files, id_):
    csv("t.csv", f"user_id,item_id\n{id_},1\n")
    csv("p.csv", f"user_id,item_id\n{id_},1\n")
    assert evaluate(capsys, "-m", "recall@9", true="t.csv", pred="p.csv").per_user[
        "user_id"
    ].tolist() == [id_]


def test_integers_beyond_64_bits_are_text(capsys, files):
    csv("t.csv", f"user_id,item_id\n{2**64},1\n")
    csv("p.csv", f"user_id,item_id\n{2**64},1\n")
    assert evaluate(capsys, "-m", "recall@9", true="t.csv", pred="p.csv").per_user[
        "user_id"
    ].tolist() == [str(2**64)]


@pytest.mark.few(2)
@pytest.mark.parametrize("dtype", ["int32", "Int64", "str", "category"])
def test_text_files_follow_the_type_of_a_parquet_file(capsys, files, dtype):
    kind = str if dtype in ("str", "category") else int
    TRUE.assign(user_id=TRUE["user_id"].astype(kind).astype(dtype)).to_parquet("t.parquet")
    table = evaluate(
        capsys, "-m", "recall@9", "--by", "model", true="t.parquet", pred="pred.csv"
    ).per_user
    assert table["recall@9"].tolist() == [0.5, 1.0, 0.5, 0.0]


def test_integers_beside_nulls_in_parquet_stay_exact(capsys, files):
    big = 2**53 + 1
    frame = pd.DataFrame({"user_id": pd.array([big, None, 1], dtype="Int64"), "item_id": [1, 2, 3]})
    frame.to_parquet("t.parquet")
    table = evaluate(
        capsys, "-m", "recall@9", "--null-keys", "drop", true="t.parquet", pred="t.parquet"
    ).per_user
    assert table["user_id"].tolist() == [big, 1]


def test_ids_that_cannot_match_are_refused(capsys, files):
    csv("p.csv", "user_id,item_id\n01,1\n")
    assert "can never match" in fails(
        capsys, "evaluate", "--true", "true.parquet", "--pred", "p.csv", "-m", "mrr@9"
    )


def test_empty_id_is_null(capsys, files):
    csv("p.csv", "user_id,item_id\n1,10\n,10\n")
    call = ["evaluate", "--true", "true.csv", "--pred", "p.csv", "-m", "mrr@9"]
    assert "1 in pred['user_id']; drop these rows or pass --null-keys drop" in fails(capsys, *call)
    assert run(capsys, *call, "--null-keys", "drop")[0] == 0


def test_scores_in_text_files_are_read_exactly(capsys, files):
    scores = 0.1 + 0.2, 0.3  # the first is larger by one bit
    csv("t.csv", "user_id,item_id\n1,1\n")
    csv(
        "p.csv",
        f"user_id,item_id,score\n1,1,{scores[0]!r}\n1,2,{scores[1]!r}\n",
    )
    assert (
        evaluate(capsys, "-m", "mrr@9", true="t.csv", pred="p.csv").summary["value"].item() == 1.0
    )


# -- errors, warnings


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "the following arguments are required: command"),
        (["evaluat"], "invalid choice: 'evaluat'"),
        (["evaluate"], "--true, --pred, -m/--metrics"),
        (
            ["evaluate", "--true", "t", "--pred", "p", "-m", "mrr", "-k", "many"],
            "invalid int value: 'many'",
        ),
        (
            ["evaluate", "--true", "t", "--pred", "p", "-m", "mrr", "--ties", "x"],
            "invalid choice: 'x'",
        ),
        (
            ["evaluate", "--true", "t", "--pred", "p", "-m", "mrr", "--over"],
            "unrecognized arguments: --over",
        ),
    ],
)
def test_usage_errors(capsys, arguments, expected):
    assert expected in fails(capsys, *arguments)


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["-m", "mrr", "-k", "0"], "-k 0; expected a positive integer"),
        (["-m", "nddcg@3"], "did you mean 'ndcg'?"),
        (["-m", "revenue@3"], "revenue@3 needs --value-col"),
        (["-m", "mrr", "--user-col", "usr_id"], "did you mean 'user_id'?"),
        (["-m", "mrr", "--score-col", "score", "--rank-col", "score"], "both given"),
        (["-m", "mrr", "--like", "trec"], "did you mean 'trec_eval'?"),
        (["-m", "mrr", "--items", "absent.csv"], "absent.csv: no such file"),
        (["-m", "mrr", "--true", "absent.parquet"], "absent.parquet: no such file"),
        (["-m", "mrr", "--true", "broken.parquet"], "broken.parquet cannot be read"),
        (["-m", "mrr", "--true", "broken.csv.gz"], "broken.csv.gz cannot be read"),
        (["-m", "mrr", "--true", "empty.csv"], "empty.csv cannot be read"),
        (["-m", "mrr", "--true", "latin.csv"], "latin.csv cannot be read"),
        (["-m", "mrr", "--true", "long_row.csv"], "long_row.csv cannot be read"),
        (
            ["-m", "mrr", "--true", "notes.txt"],
            "its first line is 'user_id,item_id'; name its format",
        ),
        (["-m", "mrr", "--out", "true.csv/results"], "true.csv"),
    ],
)
def test_errors_are_one_line(capsys, files, arguments, expected):
    Path("broken.parquet").write_bytes(b"PAR1 no more")
    Path("broken.csv.gz").write_bytes(b"\x1f\x8b\x08 no more")
    Path("empty.csv").touch()
    Path("latin.csv").write_bytes("user_id,item_id\nZoë,1\n".encode("latin-1"))
    csv("long_row.csv", "user_id,item_id\n1,2,3\n")
    csv("notes.txt", "user_id,item_id\n")
    call = ["evaluate", "--true", "true.csv", "--pred", "pred.csv", "--by", "model"]
    assert expected in fails(capsys, *instead(call, arguments))


def test_warnings_are_one_line_each(capsys, files):
    PRED.assign(item_id=99).to_csv("pred.csv", index=False)
    call = [
        "evaluate",
        "--true",
        "true.csv",
        "--pred",
        "pred.csv",
        "-m",
        "mrr@2",
        "--by",
        "model",
        "--allow-empty",
    ]
    code, out, err = run(capsys, *call)
    assert code == 0
    assert "mrr" in out
    assert err
    assert all(line.startswith("recdf: warning: ") for line in err.splitlines())
    assert "recdf check" in err
    assert "rd.check" not in err
    assert run(capsys, *call, "--quiet") == (0, "", "")
    assert run(capsys, *call, "--fail-on", "warning")[0] == 1


def test_messages_speak_of_arguments_not_of_parameters(capsys, files):
    PRED.assign(score=np.nan).to_parquet("pred.parquet")
    line = fails(
        capsys,
        "evaluate",
        "--true",
        "true.parquet",
        "--pred",
        "pred.parquet",
        "-m",
        "mrr",
        "--by",
        "model",
    )
    assert "--nan-score last" in line
    assert "nan_score" not in line


# -- demo, command


@pytest.mark.long
def test_demo_writes_its_folder_again(capsys, demo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (demo.code, demo.err) == (0, "")
    assert "knn" in demo.out
    assert "loyal" in demo.out
    assert max(map(len, demo.out.splitlines())) <= 80
    demo.copy_to(tmp_path)
    result = rd.read_parquet("recdf-demo")
    assert set(result.summary["model"]) == {"knn", "popularity", "random"}
    assert run(capsys, "demo") == (0, demo.out, "")
    assert rd.read_parquet("recdf-demo") == result


@pytest.mark.long
@pytest.mark.usefixtures("small_shop")
def test_demo_writes_no_other_result_again(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "demo", "--out", "mine")[0] == 0
    assert "pass --overwrite" in fails(capsys, "demo", "--out", "mine")
    assert run(capsys, "demo", "--out", "mine", "--overwrite")[0] == 0


@pytest.mark.long
def test_what_the_demo_says_to_try_next_works(capsys, demo, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    demo.copy_to(tmp_path)
    monkeypatch.chdir("recdf-demo")
    commands = [line.split() for line in demo.out.splitlines() if line.startswith("  recdf ")]
    assert len(commands) == 5
    for command in commands:
        assert run(capsys, *command[1:])[0] == 0


def test_help_explains_every_option(capsys):
    code, out, _ = run(capsys, "evaluate", "--help")
    assert code == 0
    text = " ".join(out.split())
    for name in NAMES:
        assert "--" + name.replace("_", "-") in text
    for name, option in OPTIONS.items():
        values = option.constraint.values
        shown = f"They are {', '.join(values)}" if name == "like" else "{" + ",".join(values) + "}"
        assert shown in text or not values
    assert argparse.SUPPRESS not in text


def test_version(capsys):
    assert run(capsys, "--version") == (0, f"recdf {version_and_build()}\n", "")


@pytest.mark.slow
def test_installed_command(files):
    """The script that the package installs, or the module where the package is not installed."""
    script = shutil.which("recdf", path=sysconfig.get_path("scripts"))
    command = [script] if script else [sys.executable, "-m", "recdf"]
    call = [
        *command,
        "evaluate",
        "--true",
        "true.csv",
        "--pred",
        "pred.parquet",
        "-m",
        "mrr@2",
        "--by",
        "model",
    ]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=WITH_RECDF)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout
        == rd.evaluate(TRUE, PRED, "mrr@2", by="model").summary.to_string(index=False) + "\n"
    )
    done = subprocess.run(
        [*call, "--item-col", "itm_id"], capture_output=True, text=True, check=False, env=WITH_RECDF
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("recdf evaluate: error: true has no column 'itm_id'")


@pytest.mark.long
def test_false_and_folds_of_true(capsys, files):
    """A flag with the word False stands for False, and one without a column for True; a file of
    options has both."""
    true, pred = TRUE.assign(fold=[0, 1, 0]), PRED.assign(fold=0)
    true.to_parquet("true.parquet", index=False)
    pred.to_parquet("pred.parquet", index=False)
    options = {"by": ["model", "fold"], "score_col": False, "relevance_col": False}
    flags = ["--by", "model", "fold", "--score-col", "False", "--relevance-col", "False"]
    for words, value in (([], True), (["fold"], "fold"), (["False"], False)):
        written = evaluate(capsys, "-m", "mrr@2", *flags, "--by-in-true", *words)
        assert written == rd.evaluate(true, pred, "mrr@2", **options, by_in_true=value)


@pytest.mark.long
def test_other_statistics_than_the_mean_are_printed(capsys, files):
    call = [
        "evaluate",
        "--true",
        "true.parquet",
        "--pred",
        "pred.parquet",
        "-m",
        "recall",
        "ndcg",
        "--by",
        "model",
    ]
    code, out, _ = run(capsys, *call, "--stat", "median", "0.9", "--format", "json")
    assert code == 0
    expected = rd.evaluate(TRUE, PRED, ["recall", "ndcg"], by="model").summarize(
        stat=["median", 0.9]
    )
    assert [
        [row["model"], row["stat"], row["metric"], row["value"]] for row in json.loads(out)
    ] == (expected[["model", "stat", "metric", "value"]].values.tolist())
    code, out, _ = run(capsys, *call, "--weight-by", "relevant", "--format", "json")
    assert {row["stat"] for row in json.loads(out)} == {"mean"}
    assert "did you mean 'median'" in fails(capsys, *call, "--stat", "medain")
    assert "weight_by" in fails(capsys, *call, "--weight-by", "users").replace("-", "_")

"""What was read stands in the spec: the numbers of files and rows of both frames."""

import json

import pandas as pd
import pytest

import recdf as rd
from recdf.cli import main

READ = {"true": {"files": 1, "rows": 4}, "pred": {"files": 3, "rows": 6}}


def frames():
    true = pd.DataFrame({"user_id": [1, 1, 2, 3], "item_id": [1, 2, 1, 3]})
    return true, pd.DataFrame({"user_id": [1, 1, 2, 2, 3, 3], "item_id": [1, 3, 2, 1, 3, 1]})


@pytest.fixture
def paths(tmp_path):
    true, pred = frames()
    true.to_parquet(tmp_path / "true.parquet")
    for user, rows in pred.groupby("user_id"):
        (folder := tmp_path / "pred").mkdir(exist_ok=True)
        rows.to_parquet(folder / f"{user}.parquet")
    return tmp_path / "true.parquet", tmp_path / "pred"


def changed(result, **read):
    return rd.Evaluation(
        result.per_user, result.summary, json.loads(json.dumps(result.spec)) | read
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("buckets", [1, 2])
@pytest.mark.parametrize("kept", [True, False])
def test_evaluate_parquet(paths, tmp_path, buckets, kept):
    out = {"out": tmp_path / "out"} if kept else {}
    result = rd.evaluate_parquet(*paths, "mrr@2", buckets=buckets, **out)
    assert result.spec["files"] == READ
    if kept:
        assert rd.read_parquet(tmp_path / "out").spec["files"] == READ
    in_memory = rd.evaluate(*frames(), "mrr@2")
    assert "files" not in in_memory.spec
    assert result == in_memory


@pytest.mark.parametrize("flags", [[], ["--stream"]])
def test_the_command(paths, tmp_path, capsys, flags):
    call = [
        "evaluate",
        "--true",
        str(paths[0]),
        "--pred",
        str(paths[1]),
        "-m",
        "mrr@2",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main([*call, "-v", *flags]) == 0
    assert "3 files, 6 rows" in capsys.readouterr().err
    stored = rd.read_parquet(tmp_path / "out")
    assert stored.spec["files"] == READ
    assert stored == rd.evaluate(*frames(), "mrr@2")


def test_results_are_equal_whatever_the_number_of_files_but_not_with_other_options(paths):
    one, other = (rd.evaluate_parquet(*paths, "mrr@2", users=users) for users in ("true", "pred"))
    assert one == changed(
        one, files={"true": {"files": 7, "rows": 4}, "pred": {"files": 1, "rows": 6}}
    )
    assert one != other


@pytest.mark.parametrize("odd", [5, {"true": 3}, {"true": {"files": "x", "rows": 4}}])
def test_a_spec_with_odd_numbers_of_files_is_refused(paths, tmp_path, odd):
    changed(rd.evaluate_parquet(*paths, "mrr@2"), files=odd).to_parquet(tmp_path / "odd")
    with pytest.raises(rd.DataError, match="spec\\['files'\\]"):
        rd.read_parquet(tmp_path / "odd")

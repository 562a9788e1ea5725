"""`--stream` and `--memory-limit` of the command: parquet files in parts."""

import pandas as pd
import pytest
from partitions.parquet_files import assert_equal, data, write
from registry.seeded import ITEMS, quietly

import recdf as rd
from recdf.cli import main

pytestmark = pytest.mark.usefixtures("nothing_left_behind")


@pytest.mark.long
def test_command_line(tmp_path, capsys):
    true, pred = write(tmp_path, *data())
    arguments = [
        "evaluate",
        "--true",
        str(true),
        "--pred",
        str(pred),
        "-m",
        "ndcg@5",
        "--by",
        "model",
    ]
    arguments += ["--relevance-col", "relevance", "--score-col", "score", "--nan-score", "last"]
    assert main([*arguments, "--out", str(tmp_path / "one")]) == 0
    printed = capsys.readouterr()
    streamed = [*arguments, "--out", str(tmp_path / "two"), "--memory-limit", "20KB"]
    assert main(streamed) == 0
    again = capsys.readouterr()
    assert again.out.replace("two", "one") == printed.out
    assert again.err == printed.err
    assert_equal(rd.read_parquet(tmp_path / "two"), rd.read_parquet(tmp_path / "one"))
    assert main(streamed) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert main([*arguments, "--stream"]) == 0
    assert capsys.readouterr().out + "\n" == printed.out[: printed.out.index("wrote")]
    assert main([*arguments, "--memory-limit", "20XB"]) == 2
    assert "--memory-limit" in capsys.readouterr().err


def test_command_line_with_a_glob_and_files_of_items_and_users(tmp_path, capsys):
    true, pred = data()
    paths = write(tmp_path, true, pred)
    pd.DataFrame({"item_id": ITEMS}).to_csv(tmp_path / "items.csv", index=False)
    true[["user_id"]].drop_duplicates().head(20).to_csv(tmp_path / "users.csv", index=False)
    arguments = [
        "evaluate",
        "--true",
        *map(str, [tmp_path / "tru*.parquet"]),
        "--pred",
        str(paths[1]),
        "-m",
        *(metrics := ["fallout@5", "coverage@5", "gini@2"]),
    ]
    arguments += ["--items", str(tmp_path / "items.csv"), "--users", str(tmp_path / "users.csv")]
    assert main([*arguments, "--stream", "--nan-score", "last", "--score-col", "score"]) == 0
    options = {
        "items": ITEMS,
        "users": true["user_id"].unique()[:20],
        "nan_score": "last",
        "score_col": "score",
    }
    expected = quietly(rd.evaluate, true, pred, metrics, **options)
    assert capsys.readouterr().out == expected.summary.to_string(index=False) + "\n"

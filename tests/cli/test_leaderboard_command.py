"""`recdf leaderboard`, and `compare` and `report` on runs in folders of their own."""

import json

import pandas as pd
import pytest
from cli.command import fails, run

import recdf as rd

SHOP = rd.sample_shop(n_users=400, n_items=100)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder for each model."""
    root = tmp_path_factory.mktemp("runs")
    for model, rows in SHOP.pred.groupby("model"):
        result = rd.evaluate(SHOP.true, rows.drop(columns="model"), ["ndcg", "recall"])
        result.to_parquet(root / model)
    return root


@pytest.mark.long
def test_runs_are_named_by_their_folders(folders, capsys, tmp_path):
    paths = [folders / name for name in ("knn", "popularity", "random")]
    call = ["leaderboard", *paths, "--baseline", "popularity", "--out", tmp_path / "board"]
    code, out, err = run(capsys, *call)
    board = rd.leaderboard({path.name: path for path in paths}, baseline="popularity")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["model", "ndcg@10", "↑", "recall@10", "↑"]
    stored = pd.read_parquet(tmp_path / "board" / "leaderboard.parquet")
    pd.testing.assert_frame_equal(stored, board.frame, check_dtype=False)
    code, out, _ = run(capsys, *call[:-2], "--format", "json", "--metrics", "ndcg")
    rows = json.loads(out)
    assert [row["marks"] for row in rows] == ["+", "", "−"]


def test_one_result_of_several_models(capsys, tmp_path):
    rd.evaluate(SHOP.true, SHOP.pred, "ndcg", by="model").to_parquet(tmp_path)
    code, out, _ = run(capsys, "leaderboard", tmp_path)
    assert code == 0
    assert out.startswith("model")


@pytest.mark.long
def test_compare_and_report_take_several_folders(folders, capsys, tmp_path):
    paths = [folders / name for name in ("knn", "popularity")]
    code, out, _ = run(
        capsys,
        "compare",
        *paths,
        "--baseline",
        "popularity",
        "--metric",
        "ndcg@10",
        "--out",
        tmp_path / "cmp",
    )
    assert code == 0
    assert "knn vs. popularity" in out
    table = pd.read_parquet(tmp_path / "cmp" / "comparison.parquet")
    whole = rd.evaluate(SHOP.true, SHOP.pred, "ndcg", by="model")
    want = whole.compare_models("ndcg@10", baseline="popularity").query("model == 'knn'")
    assert table["diff"].tolist() == pytest.approx(want["diff"].tolist(), abs=1e-12)
    code, _, _ = run(
        capsys,
        "report",
        *paths,
        "--comparison",
        tmp_path / "cmp" / "comparison.parquet",
        "--out",
        tmp_path / "page.html",
    )
    assert code == 0


@pytest.mark.long
def test_folders_of_one_name_and_a_folder_twice(folders, capsys, tmp_path):
    for name in ("a", "b"):
        rd.read_parquet(folders / "knn").to_parquet(tmp_path / name / "results")
    code, out, _ = run(capsys, "leaderboard", tmp_path / "a/results", tmp_path / "b/results")
    assert code == 0
    assert "a/results" in out
    twice = fails(capsys, "leaderboard", folders / "knn", folders / "knn")
    assert "names a folder twice" in twice


def test_an_unknown_baseline_is_named(folders, capsys):
    said = fails(capsys, "leaderboard", folders / "knn", folders / "random", "--baseline", "rand")
    assert "did you mean 'random'" in said


@pytest.fixture
def of_own_metric():
    """A result of two models and a metric of one's own, which says no upper bound."""

    @rd.metric(bounds=(0, None), better="larger")
    def seconds_saved(lists):
        return 3.0 * lists.n_hits

    pred = SHOP.pred[SHOP.pred["model"] != "random"]
    return rd.evaluate(SHOP.true, pred, seconds_saved, 10, by="model")


@pytest.mark.long
def test_bounds_of_ones_own_metric_reach_the_tests(of_own_metric, capsys, tmp_path):
    result, name = of_own_metric, "seconds_saved@10"
    plain = rd.leaderboard(result, baseline="popularity").comparisons
    assert plain["turned_by"].isna().all()
    board = rd.leaderboard(result, baseline="popularity", bounds={name: (0, 30)})
    expected = result.compare_models(baseline="popularity", bounds={name: (0, 30)}, details=True)
    assert board.comparisons["turned_by"].tolist() == pytest.approx(expected["turned_by"].tolist())
    assert (expected["turned_by"] > 0).all()
    result.to_parquet(tmp_path / "result")
    call = ["leaderboard", tmp_path / "result", "--baseline", "popularity"]
    code, _, err = run(capsys, *call, "--bounds", f"{name}=0,30", "--out", tmp_path / "board")
    assert (code, err) == (0, "")
    stored = pd.read_parquet(tmp_path / "board" / "comparison.parquet")
    assert stored["turned_by"].tolist() == board.comparisons["turned_by"].tolist()


@pytest.mark.long
def test_a_report_takes_bounds(of_own_metric, capsys, tmp_path):
    result, name = of_own_metric, "seconds_saved@10"
    with pytest.raises(rd.DataError, match="outside of"):
        rd.report(result, tmp_path / "report.html", bounds={name: (0, 0.1)})
    result.to_parquet(tmp_path / "result")
    call = ["report", tmp_path / "result", "--out", tmp_path / "report.html"]
    code, _, err = run(capsys, *call, "--bounds", f"{name}=0,0.1")
    assert code == 2
    assert "outside of" in err

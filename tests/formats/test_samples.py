"""Files that other tools wrote, read by `rd.read` and by the command: equal to the long frame,
without glue."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from cli.command import run
from quick import crossed

import recdf as rd

SAMPLES = Path(__file__).parent / "samples"
# What `make_samples.py` gave to the tools.
PRED = {
    "u2": {"007": 3.25, "7": 3.25, "d10": 1.5, "d2": -0.5},
    "u1": {"d1": 0.123456789, "d3": 0.1234567891, "d2": 0.5},
    "u3": {"x": 1e-05},
}
TRUE = {"u2": {"7": 2, "d2": 1, "d9": 0}, "u1": {"d3": 1, "d2": 0, "d1": 3}, "u4": {"x": 1}}
METRICS = ["ndcg@3", "mapr@10", "precision@2", "recall@2", "mrr@10"]


def as_dict(frame, name):
    found = {}
    for row in frame.to_dict("records"):
        found.setdefault(row["user_id"], {})[row["item_id"]] = row[name]
    return found


def same(found, expected):
    """Whether two results are equal but for the order of their rows."""
    one, two = (
        result.per_user.sort_values("user_id", ignore_index=True) for result in (found, expected)
    )
    pd.testing.assert_frame_equal(one, two, check_dtype=False)
    assert found.summary["value"].tolist() == pytest.approx(
        expected.summary["value"].tolist(), abs=1e-12
    )
    return True


RUNS = [
    "ranx.trec",
    "beir.run",
    "ranx_run.json",
    "lenskit.parquet",
    "lenskit_flat.parquet",
    "polars.arrow",
    "polars.jsonl",
    "polars.jsonl.gz",
    "pandas.csv.zst",
    "mteb/NFCorpus_predictions.json",
]
if not hasattr(pa, "string_view"):
    RUNS.remove("polars.arrow")  # its strings are views, which pyarrow 15 cannot convert
QRELS = ["ranx_qrels.trec", "ranx_qrels.json", "beir", "beir/qrels/test.tsv"]


@pytest.mark.few(4)
@pytest.mark.parametrize("name", RUNS)
def test_recommendations(name):
    found = rd.read(SAMPLES / name)
    assert as_dict(found, "score") == PRED
    expected = rd.evaluate(TRUE, PRED, METRICS)
    assert same(rd.evaluate(TRUE, found.drop(columns="rank", errors="ignore"), METRICS), expected)


@pytest.mark.parametrize("name", QRELS)
def test_what_is_relevant(name):
    found = rd.read(SAMPLES / name)
    assert as_dict(found, "relevance") == TRUE
    assert same(rd.evaluate(found, PRED, METRICS), rd.evaluate(TRUE, PRED, METRICS))


@pytest.mark.long
@pytest.mark.parametrize(
    ("pred", "true"), crossed([name for name in RUNS if not name.startswith("lenskit")], QRELS)
)
def test_the_command_takes_them_without_glue(true, pred, capsys, tmp_path):
    call = [
        "evaluate",
        "--true",
        str(SAMPLES / true),
        "--pred",
        str(SAMPLES / pred),
        "-m",
        *METRICS,
        "-q",
    ]
    expected = rd.evaluate(TRUE, PRED, METRICS)
    for more in ([], ["--stream"]):
        code, _, err = run(capsys, *call, *more, "--out", str(tmp_path / f"out{len(more)}"))
        assert (code, err) == (0, "")
        assert same(rd.read_parquet(tmp_path / f"out{len(more)}"), expected)


def test_check_gate_and_diff_take_them(capsys):
    true, pred = str(SAMPLES / "ranx_qrels.trec"), str(SAMPLES / "ranx.trec")
    code, out, _ = run(capsys, "check", "--true", true, "--pred", pred, "--format", "json")
    assert code in (0, 1)
    assert json.loads(out)
    code, out, _ = run(capsys, "diff", pred, str(SAMPLES / "beir.run"))
    assert code == 0


def test_two_folders_of_runs_are_told_apart_by_their_tag(tmp_path):
    for name in ("ranx.trec", "beir.run"):
        shutil.copy(SAMPLES / name, tmp_path / name.replace("trec", "run"))
    found = rd.evaluate(TRUE, rd.read(tmp_path), METRICS, by="run")
    expected = rd.evaluate(TRUE, PRED, METRICS).summary["value"].tolist()
    for _, rows in found.summary.groupby("run"):
        assert rows["value"].tolist() == expected


def test_atomic_files():
    found = rd.read(SAMPLES / "shop/shop.inter")
    assert list(found) == ["user_id", "item_id", "rating", "timestamp"]
    assert as_dict(found, "rating") == PRED
    assert found["timestamp"].dtype == float
    items = rd.read(SAMPLES / "shop/shop.item")
    assert items["item_id"].tolist() == ["007", "d1"]
    assert [None if one is None else list(one) for one in items["class"]] == [["film", "old"], None]
    assert items["price"].tolist() == [9.5, 1.0]


@pytest.mark.parametrize("name", ["open_bandit", "open_bandit/men.csv"])
def test_a_log_of_open_bandit(name):
    log = rd.read(SAMPLES / name)
    assert log[["item_id", "position", "reward"]].to_dict("list") == {
        "item_id": [0, 1, 2, 0, 1, 2],
        "position": [1, 2, 3, 1, 2, 3],
        "reward": [0, 1, 0, 1, 0, 1],
    }
    found = rd.ope.estimate(log.assign(target_propensity=1 / 3), estimators="ips", cluster=None)
    by_hand = (
        sum(reward / 3 / p for reward, p in zip([0, 1, 0, 1, 0, 1], log["propensity"], strict=True))
        / 6
    )
    assert found["value"].item() == pytest.approx(by_hand, abs=1e-12)


def test_a_submission_of_kaggle(capsys, tmp_path):
    found = rd.read(SAMPLES / "submission.csv")
    first = [("0001", "0706016001"), ("0001", "0706016002"), ("0001", "0372860001")]
    assert list(found.itertuples(index=False, name=None)) == [*first, ("0002", "0706016001")]
    true = tmp_path / "true.csv"
    true.write_text("user_id,item_id\n0001,0706016002\n0002,0706016001\n0003,0706016001\n")
    assert rd.evaluate(rd.read(true), found, "mrr@10").per_user["mrr@10"].tolist() == [
        0.5,
        1.0,
        0.0,
    ]
    call = [
        "evaluate",
        "--true",
        str(true),
        "--pred",
        str(SAMPLES / "submission.csv"),
        "-m",
        "mrr@10",
        "--format",
        "csv",
    ]
    assert "0.5," in run(capsys, *call)[1]
    assert run(capsys, *call, "--stream") == run(capsys, *call)


def test_a_table_of_delta(capsys, tmp_path):
    pytest.importorskip("deltalake", reason="the extra recdf[delta] is not installed")
    found = rd.read(SAMPLES / "delta")
    assert as_dict(found, "score") == {
        user: items for user, items in PRED.items() if user != "u3"
    }  # deleted
    call = [
        "evaluate",
        "--true",
        str(SAMPLES / "beir"),
        "--pred",
        str(SAMPLES / "delta"),
        "-m",
        "ndcg@3",
    ]
    assert run(capsys, *call)[0] == 0
    assert run(capsys, *call) == run(capsys, *call, "--stream")


def test_a_table_of_iceberg(capsys, tmp_path):
    sql = pytest.importorskip(
        "pyiceberg.catalog.sql", reason="the extra recdf[iceberg] is not installed"
    )
    catalog = sql.SqlCatalog(
        "it", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}"
    )
    catalog.create_namespace("ns")
    rows = rd.read(SAMPLES / "polars.arrow")
    data = pa.Table.from_pandas(
        rows.astype({"user_id": object, "item_id": object}), preserve_index=False
    )
    table = catalog.create_table("ns.pred", schema=data.schema)
    for _ in range(11):  # more than nine states, whose numbers do not sort as text
        table.append(data[:1])
    table.overwrite(data)
    place = table.location().removeprefix("file://")
    found = rd.read(place)
    assert as_dict(found, "score") == PRED
    assert len(found) == len(data)
    call = ["evaluate", "--true", str(SAMPLES / "beir"), "--pred", place, "-m", "ndcg@3"]
    assert run(capsys, *call)[0] == 0
    assert run(capsys, *call) == run(capsys, *call, "--stream")


def test_without_its_package_a_table_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    with pytest.raises(rd.MissingExtraError, match=r"pip install 'recdf\[delta\]'"):
        rd.read(SAMPLES / "delta")
    code, _, err = run(
        capsys,
        "evaluate",
        "--true",
        str(SAMPLES / "beir"),
        "--pred",
        str(SAMPLES / "delta"),
        "-m",
        "mrr",
    )
    assert code == 2
    assert "recdf[delta]" in err

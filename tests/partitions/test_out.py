"""`out=` of evaluate_parquet: what is written, what a stored result reads, and what an interrupted
run leaves."""

import json
import os
import pickle

import pyarrow.parquet as pq
import pytest
from partitions.parquet_files import METRICS, USUAL, assert_equal, check, data, write
from registry.seeded import ITEMS

import recdf as rd
from recdf.evaluation import part as measuring
from recdf.evaluation import storage
from recdf.evaluation import summary_rows as merging
from recdf.metrics import call as calling
from recdf.partitions import buckets
from recdf.partitions import evaluate_parquet as in_files

pytestmark = [
    pytest.mark.usefixtures("small_pieces", "nothing_left_behind"),
    pytest.mark.filterwarnings("ignore::recdf.RecdfWarning"),
]


@pytest.mark.long
def test_out_holds_what_to_parquet_writes(tmp_path):
    paths = write(tmp_path, *data())
    expected = check(paths, by="model")
    options = USUAL | {"items": ITEMS, "by": "model", "buckets": 7}
    stored = rd.evaluate_parquet(*paths, METRICS, k=[2], out=tmp_path / "out", **options)
    expected.to_parquet(tmp_path / "expected")
    for name in ("per_user", "summary"):
        one, two = (
            pq.read_table(tmp_path / folder / f"{name}.parquet") for folder in ("out", "expected")
        )
        assert one.schema.equals(two.schema)
        specs = [json.loads(table.schema.metadata[b"recdf"]) for table in (one, two)]
        n_rows = [pq.read_metadata(path).num_rows for path in paths]
        read = {
            role: {"files": 1, "rows": n} for role, n in zip(("true", "pred"), n_rows, strict=True)
        }
        assert specs[0] == specs[1] | {"files": read}
        assert one.schema.metadata[b"recdf_dtypes"] == two.schema.metadata[b"recdf_dtypes"]
    assert sorted(os.listdir(tmp_path / "out")) == ["per_user.parquet", "summary.parquet"]
    assert_equal(stored, expected)
    assert_equal(rd.read_parquet(tmp_path / "out"), expected)
    assert stored == rd.read_parquet(tmp_path / "out")


def test_a_stored_result_reads_its_rows_once_when_they_are_asked_for(tmp_path, monkeypatch):
    paths, calls = write(tmp_path, *data()), []
    read = storage.read_tables
    monkeypatch.setattr(in_files, "read_tables", lambda *given: calls.append(given) or read(*given))
    stored = rd.evaluate_parquet(*paths, "ndcg@5", out=tmp_path / "out", **USUAL)
    assert isinstance(stored, rd.Evaluation)
    assert "per_user.parquet" in repr(stored)
    assert "<table" in stored._repr_html_()
    assert not stored.summary.empty
    assert not calls
    assert stored.per_user is stored.per_user
    assert len(calls) == 1


@pytest.mark.parametrize("read_before", [False, True])
def test_a_stored_result_can_be_pickled(tmp_path, monkeypatch, read_before):
    """Its folder is found from wherever the other process stands."""
    monkeypatch.chdir(tmp_path)
    paths = write(tmp_path, *data())
    stored = rd.evaluate_parquet(*paths, "ndcg@5", out="out", **USUAL)
    expected = rd.read_parquet("out")
    assert not read_before or stored == expected
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    copy = pickle.loads(pickle.dumps(stored))
    assert copy == expected
    assert repr(copy) == repr(stored)


def test_a_stored_result_is_not_mixed_with_one_that_was_written_over_it(tmp_path):
    paths = write(tmp_path, *data())
    stored = rd.evaluate_parquet(*paths, "ndcg@5", out=tmp_path / "out", **USUAL)
    rd.evaluate_parquet(*paths, "recall@5", out=tmp_path / "out", overwrite=True, **USUAL)
    with pytest.raises(rd.DataError, match="was overwritten since; read the new result"):
        _ = stored.per_user


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["per_user", "summary", "spec"])
def test_the_tables_of_a_result_cannot_be_replaced(tmp_path, name):
    stored = rd.evaluate_parquet(*write(tmp_path, *data()), "ndcg@5", out=tmp_path / "out", **USUAL)
    for one in (stored, rd.read_parquet(tmp_path / "out")):
        with pytest.raises(AttributeError, match=name):
            setattr(one, name, None)


@pytest.mark.long
def test_a_result_is_not_replaced_unasked(tmp_path):
    paths = write(tmp_path, *data())
    rd.evaluate_parquet(*paths, "ndcg@5", out=tmp_path / "out", **USUAL)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        rd.evaluate_parquet(*paths, "recall@5", out=tmp_path / "out", **USUAL)
    assert list(rd.read_parquet(tmp_path / "out").summary["metric"]) == ["ndcg"]
    rd.evaluate_parquet(*paths, "recall@5", out=tmp_path / "out", overwrite=True, **USUAL)
    assert list(rd.read_parquet(tmp_path / "out").summary["metric"]) == ["recall"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "where"),
    [
        (calling, "match"),
        (measuring, "defined_values"),
        (buckets, "hash_buckets"),
        (merging, "encode"),
        (storage, "to_table"),
    ],
)
@pytest.mark.parametrize("earlier", [False, True])
def test_an_interrupted_run_leaves_nothing(tmp_path, monkeypatch, module, where, earlier):
    paths, out = write(tmp_path, *data()), tmp_path / "out"
    before = {}
    if earlier:
        rd.evaluate_parquet(*paths, "recall@5", out=out, **USUAL)
        before = {path.name: path.read_bytes() for path in out.iterdir()}
    real, calls = getattr(module, where), []

    def interrupted(*given, **named):
        calls.append(where)
        if len(calls) == (1 if module is merging else 2):
            raise KeyboardInterrupt
        return real(*given, **named)

    monkeypatch.setattr(module, where, interrupted)
    for folder in (out, None):
        calls.clear()
        with pytest.raises(KeyboardInterrupt):
            rd.evaluate_parquet(
                *paths, ["ndcg@5", "hhi@5"], out=folder, overwrite=True, buckets=5, **USUAL
            )
    assert out.exists() == earlier
    assert before == ({path.name: path.read_bytes() for path in out.iterdir()} if earlier else {})

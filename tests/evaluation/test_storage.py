"""Results in parquet files: what is read equals what was written, and no failure loses a result."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from registry.labels import LABELS, relabelled
from registry.seeded import frames, quietly

import recdf as rd

TRUE = {"u": ["a", "b"], "v": ["c"]}
OLD = rd.evaluate(TRUE, {"u": ["a"], "v": ["c"]}, "mrr@1")
NEW = rd.evaluate(TRUE, {"u": ["x", "a"], "v": ["c"]}, ["ndcg@1", "mrr@1"])
FILES = {"per_user.parquet", "summary.parquet"}


def equal(one, two):
    """Equal in every value, dtype and word of the spec, said by pandas and not by recdf."""
    pd.testing.assert_frame_equal(one.per_user, two.per_user, check_exact=True)
    pd.testing.assert_frame_equal(one.summary, two.summary, check_exact=True)
    assert one.per_user.attrs == two.per_user.attrs == {"recdf": one.spec}
    assert one.summary.attrs == two.summary.attrs == {"recdf": one.spec}
    assert one.spec == two.spec
    assert one == two


def names(folder):
    return {path.name for path in Path(folder).iterdir()}


@pytest.mark.parametrize("label", LABELS)
def test_ids_of_every_dtype_come_back(label, tmp_path):
    true, pred = (relabelled(frame, label) for frame in frames(5))
    result = quietly(
        rd.evaluate,
        true,
        pred,
        ["ndcg", "confusion"],
        [1, 3],
        score_col="score",
        nan_score="last",
        by="model",
        items=LABELS[label](np.arange(14)),
    )
    # Parquet has no type for these; UUIDs came with pyarrow 18.
    if label in ("object of huge int", "object of tuple") or (label == "object of UUID" and pa.__version__ < "18"):
        with pytest.raises(rd.DataError, match="convert it"):
            result.to_parquet(tmp_path)
        assert names(tmp_path) == set()
        return
    result.to_parquet(tmp_path)
    assert names(tmp_path) == FILES
    equal(rd.read_parquet(tmp_path), result)


def test_composite_keys_and_by_of_other_dtypes_come_back(tmp_path):
    true, pred = frames(11)
    pred = pred.assign(
        variant=pd.Categorical(pred["model"], categories=["z", "b", "a"], ordered=True),
        day=pd.to_datetime(pred["user_id"] % 3, unit="D").astype("datetime64[s]"),
        arm=pd.Categorical(pred["user_id"] % 2, categories=[5, 1, 0]),
        shop=pd.Series(pred["model"], dtype=pd.ArrowDtype(pa.string())).astype("category"),
        city=pd.Series(pred["model"], dtype="string"),
    )
    keys = {"user": lambda frame: frame["user_id"] % 4, "week": lambda frame: (frame["user_id"] // 4).astype(str)}
    true, pred = true.assign(**keys), pred.assign(**keys)
    options = {"score_col": "score", "nan_score": "last", "users": "pred", "undefined": "zero", "like": "trec_eval"}
    options |= {"user_col": ["user", "week"], "by": ["variant", "day", "arm", "shop", "city"]}
    result = quietly(rd.evaluate, true, pred, {"mine": "ndcg@3", "rp": "rprecision"}, **options)
    result.to_parquet(tmp_path)
    equal(rd.read_parquet(tmp_path), result)


def test_nulls_and_undefined_values_come_back(tmp_path):
    true = pd.DataFrame({"user_id": [1, 2], "item_id": [1, 2], "gain": [0.0, 1.0]})
    result = rd.evaluate(true, {1: [1], 2: [2]}, ["recall@3", "rprecision"], relevance_col="gain")
    assert result.per_user["recall@3"].isna().tolist() == [True, False]
    assert result.summary["k"].isna().tolist() == [False, True]
    result.to_parquet(tmp_path)
    equal(rd.read_parquet(tmp_path), result)


def test_folders_are_made_and_may_be_strings(tmp_path):
    folder = str(tmp_path / "a" / "b")
    OLD.to_parquet(folder)
    equal(rd.read_parquet(folder), OLD)


def test_the_spec_stands_in_the_schema_metadata(tmp_path):
    OLD.to_parquet(tmp_path)
    for name in FILES:
        metadata = pq.read_schema(tmp_path / name).metadata
        written = json.loads(metadata[b"recdf"])
        assert written == OLD.spec


def test_results_differ_where_a_value_a_dtype_or_the_spec_does(tmp_path):
    again = rd.evaluate(TRUE, {"u": ["a"], "v": ["c"]}, "mrr@1")
    assert again == OLD
    assert OLD != NEW
    assert rd.evaluate(TRUE, {"u": ["a"], "v": ["c"]}, "mrr@1", ties="row") != OLD
    assert rd.Evaluation(OLD.per_user.assign(n_true=[2.0, 1.0]), OLD.summary, OLD.spec) != OLD
    assert OLD != "a result"
    with pytest.raises(TypeError, match="hashable"):
        hash(OLD)


# ------------------------------------------------------------------------------------------- other readers


@pytest.fixture
def written(tmp_path):
    true, pred = frames(5)
    options = {"score_col": "score", "nan_score": "last", "by": "model", "relevance_col": False}
    result = quietly(rd.evaluate, true, pred, ["ndcg@3", "recall@3"], **options)
    result.to_parquet(tmp_path)
    return tmp_path, result


def test_plain_pyarrow_and_pandas_read_it(written):
    folder, result = written
    table = pq.read_table(folder / "per_user.parquet")
    assert table.column_names == list(result.per_user.columns)
    assert table["ndcg@3"].to_pylist() == result.per_user["ndcg@3"].tolist()
    assert table.schema.field("n_true").type == pa.int64()
    assert table.schema.field("ndcg@3").type == pa.float64()
    plain = pd.read_parquet(folder / "summary.parquet")
    pd.testing.assert_frame_equal(plain, result.summary)


def test_duckdb_reads_it(written):
    duckdb = pytest.importorskip("duckdb")
    folder, result = written
    rows = duckdb.sql(
        f"""select s.model, s.value, avg(p."ndcg@3"), count(p."ndcg@3"), stddev_samp(p."ndcg@3")
        from '{folder}/summary.parquet' s join '{folder}/per_user.parquet' p using (model)
        where metric = 'ndcg' and k = 3 group by all order by model"""
    ).fetchall()
    expected = result.summary[result.summary["metric"] == "ndcg"].set_index("model")
    assert [row[0] for row in rows] == ["a", "b"]
    for model, value, mean, n, std in rows:
        assert value == expected.loc[model, "value"] == pytest.approx(mean, abs=1e-12)
        assert n == expected.loc[model, "n"]
        assert std == pytest.approx(expected.loc[model, "std"], abs=1e-12)


def test_polars_reads_it(written):
    polars = pytest.importorskip("polars")
    folder, result = written
    for name in ("per_user", "summary"):
        frame = polars.read_parquet(folder / f"{name}.parquet")
        expected = getattr(result, name)
        assert frame.columns == list(expected.columns)
        assert frame.height == len(expected)
        assert frame[frame.columns[-1]].sum() == pytest.approx(expected.iloc[:, -1].sum())


# ---------------------------------------------------------------------------------------------- refusals


def test_an_old_result_is_not_overwritten_unasked(tmp_path):
    OLD.to_parquet(tmp_path)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        NEW.to_parquet(tmp_path)
    equal(rd.read_parquet(tmp_path), OLD)
    (tmp_path / "per_user.parquet").unlink()
    with pytest.raises(FileExistsError, match=r"summary\.parquet"):
        NEW.to_parquet(tmp_path)
    NEW.to_parquet(tmp_path, overwrite=True)
    equal(rd.read_parquet(tmp_path), NEW)


def test_overwriting_leaves_other_files_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    OLD.to_parquet(tmp_path)
    NEW.to_parquet(tmp_path, overwrite=True)
    equal(rd.read_parquet(tmp_path), NEW)
    assert names(tmp_path) == FILES | {"notes.txt"}


@pytest.mark.parametrize("name", sorted(FILES))
def test_reading_what_is_not_there(name, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"per_user\.parquet does not exist"):
        rd.read_parquet(tmp_path / "absent")
    OLD.to_parquet(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        rd.read_parquet(tmp_path)


@pytest.mark.parametrize("name", sorted(FILES))
def test_reading_files_of_others(name, tmp_path):
    OLD.to_parquet(tmp_path)
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / name)
    with pytest.raises(rd.DataError, match="no recdf metadata"):
        rd.read_parquet(tmp_path)


def test_the_summary_of_another_result_is_not_believed(tmp_path):
    """Same options, other data: the files say themselves that they do not belong together."""
    other = rd.evaluate(TRUE, {"u": ["x"], "v": ["c"]}, "mrr@1", users=["u", "v"])
    same_spec = rd.evaluate(TRUE, {"u": ["a"], "v": ["x"]}, "mrr@1", users=["u", "v"])
    assert other.spec == same_spec.spec
    for folder, result in (("one", other), ("two", same_spec)):
        result.to_parquet(tmp_path / folder)
    os.replace(tmp_path / "one" / "summary.parquet", tmp_path / "two" / "summary.parquet")
    equal(rd.read_parquet(tmp_path / "two"), same_spec)


# ------------------------------------------------------------------------------------------------ crashes


FULL = OSError(28, "No space left on device")


def fail_at(call, monkeypatch, target, error=FULL):
    """Make one call of a function fail, the others work."""
    module, name = target
    works, calls = getattr(module, name), []

    def fails(*args, **kwargs):
        calls.append(args)
        if len(calls) == call:
            raise error
        return works(*args, **kwargs)

    monkeypatch.setattr(module, name, fails)


STEPS = [
    ((pq, "write_table"), 1),
    ((pq, "ParquetWriter"), 1),
    ((os, "fsync"), 1),
    ((os, "fsync"), 2),
    ((os, "replace"), 1),
    ((os, "replace"), 2),
]


@pytest.mark.parametrize(("target", "call"), STEPS)
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()])
def test_a_failure_at_any_step_keeps_the_old_result(target, call, error, tmp_path, monkeypatch):
    OLD.to_parquet(tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    fail_at(call, monkeypatch, target, error)
    with pytest.raises(type(error)):
        NEW.to_parquet(tmp_path, overwrite=True)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    equal(rd.read_parquet(tmp_path), OLD)
    NEW.to_parquet(tmp_path, overwrite=True)
    equal(rd.read_parquet(tmp_path), NEW)


@pytest.mark.parametrize(("target", "call"), STEPS)
def test_a_failure_of_the_first_write_leaves_nothing(target, call, tmp_path, monkeypatch):
    fail_at(call, monkeypatch, target)
    with pytest.raises(OSError, match="No space left"):
        NEW.to_parquet(tmp_path)
    assert names(tmp_path) == set()


CRASH = """
import os, sys
import recdf as rd

folder, step = sys.argv[1], int(sys.argv[2])
new = rd.evaluate({"u": ["a", "b"], "v": ["c"]}, {"u": ["x", "a"], "v": ["c"]}, ["ndcg@1", "mrr@1"])
replace, calls = os.replace, []

def crash(*args):
    calls.append(args)
    if len(calls) == step:
        os._exit(9)
    replace(*args)

os.replace = crash
new.to_parquet(folder, overwrite=True)
"""


@pytest.mark.parametrize("step", [1, 2])
def test_a_killed_process_leaves_the_old_result_readable(step, tmp_path):
    """Nothing runs after the kill: no cleaning up, no restoring."""
    OLD.to_parquet(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CRASH), str(tmp_path), str(step)],
        cwd=Path(rd.__file__).parents[1],
        check=False,
    )
    assert done.returncode == 9
    equal(rd.read_parquet(tmp_path), OLD)
    NEW.to_parquet(tmp_path, overwrite=True)
    equal(rd.read_parquet(tmp_path), NEW)

"""Results in parquet files: what is read equals what was written, and no failure loses a result."""

import datetime as dt
import errno
import itertools
import json
import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import case
from registry.labels import LABELS, relabelled
from registry.seeded import frames, quietly

import recdf as rd
from recdf.evaluation import publishing, sealed, storage

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
        with pytest.raises(rd.DataError, match="convert it before evaluating"):
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
        NEW.to_parquet(tmp_path / "result")
    assert names(tmp_path) == set()


# ------------------------------------------------------------------------- processes that were killed

# A process starts slowly, so one of them forks all the others, before Arrow has threads that a fork would lose.
FORKING = """
import os, signal, sys, traceback
import recdf as rd

def forked(work, *given):
    child = os.fork()
    if child:
        return child
    try:
        work(*given)
        os._exit(0)  # at once: Arrow may abort a process that ends while its threads start (seen with pyarrow 26)
    except BaseException:
        traceback.print_exc()
        os._exit(1)

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
WRITER = f"""{FORKING}
def write(folder, step):
    new = rd.evaluate({{"u": ["a", "b"], "v": ["c"]}}, {{"u": ["x", "a"], "v": ["c"]}}, ["ndcg@1", "mrr@1"])
    replace, calls = os.replace, []

    def crash(*args):
        calls.append(args)
        if len(calls) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*args)

    os.replace = crash
    new.to_parquet(folder, overwrite=True)

print(*(ended(forked(write, folder, int(step))) for folder, step in zip(sys.argv[1::2], sys.argv[2::2])))
"""
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="fork and SIGKILL are of POSIX")


def python(code, *arguments):
    """What a Python process that runs some code beside this one prints."""
    environment = os.environ | {"PYTHONPATH": str(Path(rd.__file__).parents[1])}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@forks
def test_what_a_killed_process_left_is_swept_by_the_next_call(tmp_path):
    """Nothing runs after the kill: before the first rename, and between the two."""
    cases = list(itertools.product([False, True], [1, 2], ["read", "write"]))
    folders = [tmp_path / str(number) for number in range(len(cases))]
    for folder, (first, _, _) in zip(folders, cases, strict=True):
        folder.mkdir()
        if not first:
            OLD.to_parquet(folder)
    calls = zip(folders, (step for _, step, _ in cases), strict=True)
    killed = python(WRITER, *itertools.chain.from_iterable(calls))
    assert killed.stderr == ""
    assert killed.stdout.split() == [str(-signal.SIGKILL)] * len(cases)
    for folder, (first, step, then) in zip(folders, cases, strict=True):
        with case(f"first={first} step={step} then={then}"):
            check_swept(folder, first, then)


def check_swept(folder, first, then):
    """The next call finds the old result, or none if the killed process wrote the first one, and sweeps the rest."""
    assert len(names(folder) - FILES) == 1
    if then == "write":
        (OLD if first else NEW).to_parquet(folder, overwrite=not first)
        equal(rd.read_parquet(folder), OLD if first else NEW)
    elif first:
        with pytest.raises(FileNotFoundError):
            rd.read_parquet(folder)
    else:
        equal(rd.read_parquet(folder), OLD)
        pd.testing.assert_frame_equal(pd.read_parquet(folder / "summary.parquet"), OLD.summary)
    assert names(folder) == (set() if first and then == "read" else FILES)


def test_the_folder_of_a_writer_that_lives_is_left_alone(tmp_path):
    OLD.to_parquet(tmp_path)
    with publishing.staged(tmp_path, overwrite=True) as staging:
        equal(rd.read_parquet(tmp_path), OLD)
        OLD.to_parquet(tmp_path, overwrite=True)
        assert staging.exists()
        storage.write_files(staging, [NEW.per_user], NEW.summary, NEW.spec)
    equal(rd.read_parquet(tmp_path), NEW)
    assert names(tmp_path) == FILES


@pytest.mark.parametrize("age", [0, 2 * publishing.DAY])
def test_without_locks_a_folder_is_swept_after_a_day(age, tmp_path, monkeypatch):
    monkeypatch.setattr(publishing, "fcntl", None)
    OLD.to_parquet(tmp_path)
    left = tmp_path / f"{publishing.PREFIX}left"
    left.mkdir()
    os.utime(left, (left.stat().st_mtime - age,) * 2)
    equal(rd.read_parquet(tmp_path), OLD)
    assert left.exists() is (age == 0)


def test_of_two_first_writers_one_is_refused(tmp_path):
    late = publishing.staged(tmp_path, overwrite=False)
    storage.write_files(late.__enter__(), [NEW.per_user], NEW.summary, NEW.spec)
    OLD.to_parquet(tmp_path)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        late.__exit__(None, None, None)
    equal(rd.read_parquet(tmp_path), OLD)


LOOPS = f"""{FORKING}
def loop(folder, role, n):
    results = [rd.read_parquet(f"{{folder}}/{{name}}") for name in ("one", "two")]
    for turn in range(n):
        if role == "write":
            results[turn % 2].to_parquet(f"{{folder}}/shared", overwrite=True)
        else:
            assert rd.read_parquet(f"{{folder}}/shared") in results

folder, n, *roles = sys.argv[1:]
print(*map(ended, [forked(loop, folder, role, int(n)) for role in roles]))
"""


@forks
def test_readers_beside_writers_find_one_whole_result(tmp_path):
    """The results differ in both tables, one has exposure rows that per_user does not hold."""
    true, pred = frames(5)
    options = {"score_col": "score", "nan_score": "last", "by": "model"}
    quietly(rd.evaluate, true, pred, ["ndcg@3"], **options).to_parquet(tmp_path / "one")
    quietly(rd.evaluate, true, pred, ["ndcg@2", "gini@3"], items=range(14), **options).to_parquet(tmp_path / "two")
    rd.read_parquet(tmp_path / "one").to_parquet(tmp_path / "shared")
    roles = ["write", "write", "read", "read", "read"]
    ended = python(LOOPS, tmp_path, 6, *roles)
    assert (ended.stdout.split(), ended.stderr) == (["0"] * len(roles), "")
    assert names(tmp_path / "shared") == FILES


# --------------------------------------------------------------------------------------- damaged files


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_cut_at_any_place_is_refused(name, tmp_path):
    OLD.to_parquet(tmp_path)
    whole = (tmp_path / name).read_bytes()
    for n in [0, 1, 4, 7, 8, 11, 12, 13, *np.linspace(14, len(whole) - 1, 30).astype(int)]:
        (tmp_path / name).write_bytes(whole[:n])
        with case(f"cut to {n} of {len(whole)} bytes"), pytest.raises(rd.DataError, match=name):
            rd.read_parquet(tmp_path)


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_flipped_bit_is_found_wherever_it_is(name, tmp_path):
    OLD.to_parquet(tmp_path)
    whole = (tmp_path / name).read_bytes()
    inside = np.linspace(0, len(whole) - 1, 60).astype(int)
    for at in [*range(0, 40, 4), *inside, *range(len(whole) - 60, len(whole), 3)]:
        flipped = bytearray(whole)
        flipped[at] ^= 1 << (at % 8)
        (tmp_path / name).write_bytes(flipped)
        with case(f"bit {at % 8} of byte {at} of {len(whole)}"), pytest.raises(rd.DataError, match=name):
            rd.read_parquet(tmp_path)


@pytest.mark.parametrize("metadata", [{}, {b"recdf": b"{"}, {b"recdf": b"{}", b"recdf_dtypes": b'{"no": {}}'}])
def test_metadata_that_are_not_of_recdf_are_refused(metadata, tmp_path):
    """A file that is whole, and sealed, but says something else."""
    OLD.to_parquet(tmp_path)
    carried = sealed.Carried(b"", (tmp_path / "summary.parquet").read_bytes())
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata(metadata), tmp_path / "per_user.parquet")
    sealed.seal(tmp_path / "per_user.parquet", carried)
    with pytest.raises(rd.DataError, match=r"per_user\.parquet holds no result"):
        rd.read_parquet(tmp_path)


def test_a_result_that_another_program_wrote_anew_is_refused(tmp_path):
    OLD.to_parquet(tmp_path)
    pq.write_table(pq.read_table(tmp_path / "per_user.parquet"), tmp_path / "per_user.parquet")
    with pytest.raises(rd.DataError, match="another program"):
        rd.read_parquet(tmp_path)


def test_equal_results_have_equal_bytes(tmp_path):
    for folder in ("one", "two"):
        rd.evaluate(TRUE, {"u": ["a"], "v": ["c"]}, "mrr@1").to_parquet(tmp_path / folder)
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_an_address_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rd.OptionError, match="s3://bucket/result is an address"):
        OLD.to_parquet("s3://bucket/result")
    with pytest.raises(rd.OptionError, match=r"s3://bucket/report\.html is an address"):
        rd.report(OLD, "s3://bucket/report.html")
    with pytest.raises(rd.OptionError, match=r"s3://bucket/true\.parquet is an address"):
        rd.evaluate_parquet("s3://bucket/true.parquet", "s3://bucket/pred.parquet", "mrr@1")
    assert names(tmp_path) == set()


@pytest.mark.parametrize("error", [1e-13, 1e-9])
def test_equality_has_the_documented_tolerance(error):
    value = OLD.per_user.assign(**{"mrr@1": OLD.per_user["mrr@1"] + error})
    assert (rd.Evaluation(value, OLD.summary, OLD.spec) == OLD) is (error < 1e-12)


def test_a_file_that_a_network_drive_lost_is_opened_again(tmp_path, monkeypatch):
    OLD.to_parquet(tmp_path)
    fail_at(1, monkeypatch, (storage, "open_sealed"), OSError(errno.ESTALE, "Stale file handle"))
    equal(rd.read_parquet(tmp_path), OLD)


# ----------------------------------------------------------------------------------- dtypes of `by` columns

DAYS = [dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 3, 1)]
BY = {
    "categories of timedelta": pd.to_timedelta([3, 1, 2], unit="h"),
    "categories of bool": pd.Index([True, False]),
    "categories of date": pd.Index(DAYS[::-1], dtype=object),
    "categories of Decimal": pd.Index([Decimal("1.50"), Decimal(0), Decimal("-2.25")], dtype=object),
    "categories of int": pd.Index([5, 9, 1]),
    "categories of Int64": pd.Index(pd.array([5, 9, 1], dtype="Int64")),
    "categories of float": pd.Index([0.1 + 0.2, 0.3, -1.0]),
    "categories of time": pd.Index([dt.time(3), dt.time(1)], dtype=object),
    "categories of period": pd.period_range("2026-01", periods=3, freq="M"),
    "categories of interval": pd.interval_range(0.0, 3.0, closed="left"),
    "categories of instants": pd.DatetimeIndex(DAYS, tz="Asia/Tokyo"),
}
COLUMNS = {
    **{name: pd.Series(pd.Categorical.from_codes([0, 1, 0], values)) for name, values in BY.items()},
    "ordered categories": pd.Series(pd.Categorical(["x", "y", "x"], ["unused", "y", "x"], ordered=True)),
    "bool": pd.Series([True, False, True]),
    "boolean": pd.Series([True, False, True], dtype="boolean"),
    "intervals": pd.Series(pd.interval_range(0, 3)),
    "periods": pd.Series(pd.period_range("2026Q1", periods=3, freq="Q-OCT")),
    "sparse": pd.Series(pd.arrays.SparseArray([1, 0, 2])),
    "fractions": pd.Series([0.1 + 0.2, 0.3, 1e300]),
    "Decimals": pd.Series([Decimal("0.10"), Decimal(2), Decimal("1e20")], dtype=object),
    "dates": pd.Series(DAYS, dtype=object),
    "Arrow timestamps": pd.Series(DAYS, dtype=pd.ArrowDtype(pa.timestamp("s"))),
    "Arrow bytes of two": pd.Series([b"aa", b"bb", b"cc"], dtype=pd.ArrowDtype(pa.binary(2))),
}
REFUSED = {
    "tuples": pd.Series([("a", "b"), ("a", "c"), ("b", "c")]),
    "frozensets": pd.Series([frozenset("a"), frozenset("b"), frozenset("c")]),
    "complex numbers": pd.Series([1j, 2j, 3j]),
    "objects": pd.Series([1, "a", 2.5], dtype=object),
    "categories of tuples": pd.Series(
        pd.Categorical.from_codes([0, 1, 0], pd.Index([("a", "b"), ("c", "d")], tupleize_cols=False))
    ),
}


def by_result(column):
    pred = pd.DataFrame({"kind": column.array, "user_id": ["u", "u", "v"], "item_id": ["a", "b", "c"]})
    return quietly(rd.evaluate, TRUE, pred, ["mrr@1", "coverage@1"], by="kind", items=["a", "b", "c"])


@pytest.mark.parametrize("name", COLUMNS)
def test_by_columns_of_every_dtype_come_back(name, tmp_path):
    result = by_result(COLUMNS[name])
    result.to_parquet(tmp_path)
    equal(rd.read_parquet(tmp_path), result)
    assert pd.read_parquet(tmp_path / "summary.parquet")["kind"].tolist() == result.summary["kind"].tolist()


@pytest.mark.parametrize("name", REFUSED)
def test_by_columns_that_would_come_back_changed_are_refused(name, tmp_path):
    result = by_result(REFUSED[name])
    with pytest.raises(rd.DataError, match=r"column 'kind' .* convert it before evaluating"):
        result.to_parquet(tmp_path / "result")
    assert names(tmp_path) == set()


def test_periods_and_intervals_come_back_in_a_new_process(tmp_path):
    """Arrow knows these types only after pandas told it."""
    kinds = ["intervals", "periods"]
    for kind in kinds:
        by_result(COLUMNS[kind]).to_parquet(tmp_path / kind)
    code = "import sys, recdf as rd; [print(rd.read_parquet(name).per_user['kind'].dtype) for name in sys.argv[1:]]"
    out = python(code, *(tmp_path / kind for kind in kinds)).stdout
    assert out.split("\n")[:2] == [str(COLUMNS[kind].dtype) for kind in kinds]


def test_many_categories_stay_in_their_order(tmp_path):
    """More than parquet keeps in a dictionary."""
    users = [f"user {number:032d}" for number in range(40_000)]
    column = pd.Categorical(users[::-1], categories=[*users[1::2], *users[::2], "unused"])
    frame = pd.DataFrame({"user_id": column, "item_id": "a"})
    result = rd.evaluate(frame, frame, "mrr@1")
    result.to_parquet(tmp_path)
    equal(rd.read_parquet(tmp_path), result)

"""Results in parquet files: what is read equals what was written, and what is refused."""

import datetime as dt
import json
import os
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evaluation.stored import FILES, NEW, OLD, TRUE, equal, names, python
from quick import few
from registry.labels import LABELS, relabelled
from registry.seeded import frames, quietly

import recdf as rd

NO_PARQUET = ("object of huge int", "object of tuple")


@pytest.mark.few(3)
@pytest.mark.parametrize("label", few(LABELS, [*list(LABELS)[::3], *NO_PARQUET]))
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
    if label in NO_PARQUET or (label == "object of UUID" and pa.__version__ < "18"):
        with pytest.raises(rd.DataError, match="convert it before evaluating"):
            result.to_parquet(tmp_path)
        assert names(tmp_path) == set()
        return
    result.to_parquet(tmp_path)
    assert names(tmp_path) == FILES
    equal(rd.read_parquet(tmp_path), result)


@pytest.mark.long
def test_composite_keys_and_by_of_other_dtypes_come_back(tmp_path):
    true, pred = frames(11)
    pred = pred.assign(
        variant=pd.Categorical(pred["model"], categories=["z", "b", "a"], ordered=True),
        day=pd.to_datetime(pred["user_id"] % 3, unit="D").astype("datetime64[s]"),
        arm=pd.Categorical(pred["user_id"] % 2, categories=[5, 1, 0]),
        shop=pd.Series(pred["model"], dtype=pd.ArrowDtype(pa.string())).astype("category"),
        city=pd.Series(pred["model"], dtype="string"),
    )
    keys = {
        "user": lambda frame: frame["user_id"] % 4,
        "week": lambda frame: (frame["user_id"] // 4).astype(str),
    }
    true, pred = true.assign(**keys), pred.assign(**keys)
    options = {
        "score_col": "score",
        "nan_score": "last",
        "users": "pred",
        "undefined": "zero",
        "like": "trec_eval",
    }
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


# -- other readers


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


# ----------------------------------------------------------------------------------------------
# refusals


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


# -- dtypes of `by` columns

DAYS = [dt.date(2026, 1, 1), dt.date(2026, 1, 2), dt.date(2026, 3, 1)]
BY = {
    "categories of timedelta": pd.to_timedelta([3, 1, 2], unit="h"),
    "categories of bool": pd.Index([True, False]),
    "categories of date": pd.Index(DAYS[::-1], dtype=object),
    "categories of Decimal": pd.Index(
        [Decimal("1.50"), Decimal(0), Decimal("-2.25")], dtype=object
    ),
    "categories of int": pd.Index([5, 9, 1]),
    "categories of Int64": pd.Index(pd.array([5, 9, 1], dtype="Int64")),
    "categories of float": pd.Index([0.1 + 0.2, 0.3, -1.0]),
    "categories of time": pd.Index([dt.time(3), dt.time(1)], dtype=object),
    "categories of period": pd.period_range("2026-01", periods=3, freq="M"),
    "categories of interval": pd.interval_range(0.0, 3.0, closed="left"),
    "categories of instants": pd.DatetimeIndex(DAYS, tz="Asia/Tokyo"),
}
COLUMNS = {
    **{
        name: pd.Series(pd.Categorical.from_codes([0, 1, 0], values)) for name, values in BY.items()
    },
    "ordered categories": pd.Series(
        pd.Categorical(["x", "y", "x"], ["unused", "y", "x"], ordered=True)
    ),
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
        pd.Categorical.from_codes(
            [0, 1, 0], pd.Index([("a", "b"), ("c", "d")], tupleize_cols=False)
        )
    ),
}


def by_result(column):
    pred = pd.DataFrame(
        {"kind": column.array, "user_id": ["u", "u", "v"], "item_id": ["a", "b", "c"]}
    )
    return quietly(
        rd.evaluate, TRUE, pred, ["mrr@1", "coverage@1"], by="kind", items=["a", "b", "c"]
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("name", few(COLUMNS, list(COLUMNS)[::3]))
def test_by_columns_of_every_dtype_come_back(name, tmp_path):
    result = by_result(COLUMNS[name])
    result.to_parquet(tmp_path)
    equal(rd.read_parquet(tmp_path), result)
    assert (
        pd.read_parquet(tmp_path / "summary.parquet")["kind"].tolist()
        == result.summary["kind"].tolist()
    )


@pytest.mark.parametrize("name", REFUSED)
def test_by_columns_that_would_come_back_changed_are_refused(name, tmp_path):
    result = by_result(REFUSED[name])
    with pytest.raises(rd.DataError, match=r"column 'kind' .* convert it before evaluating"):
        result.to_parquet(tmp_path / "result")
    assert names(tmp_path) == set()


@pytest.mark.long
def test_periods_and_intervals_come_back_in_a_new_process(tmp_path):
    """Arrow knows these types only after pandas told it."""
    kinds = ["intervals", "periods"]
    for kind in kinds:
        by_result(COLUMNS[kind]).to_parquet(tmp_path / kind)
    code = (
        "import sys, recdf as rd; [print(rd.read_parquet(name).per_user['kind'].dtype) for name in "
        "sys.argv[1:]]"
    )
    out = python(code, *(tmp_path / kind for kind in kinds)).stdout
    assert out.split("\n")[:2] == [str(COLUMNS[kind].dtype) for kind in kinds]


@pytest.mark.long
def test_many_categories_stay_in_their_order(tmp_path):
    """More than parquet keeps in a dictionary."""
    users = [f"user {number:032d}" for number in range(40_000)]
    column = pd.Categorical(users[::-1], categories=[*users[1::2], *users[::2], "unused"])
    frame = pd.DataFrame({"user_id": column, "item_id": "a"})
    result = rd.evaluate(frame, frame, "mrr@1")
    result.to_parquet(tmp_path)
    equal(rd.read_parquet(tmp_path), result)


def test_large_integers_beside_nulls_keep_their_digits(tmp_path):
    true = pd.DataFrame({"user_id": [1, 2, 3], "item_id": 1})
    pred = pd.DataFrame({"user_id": [1, 2], "item_id": 1, "shop": [2**53 + 1, 2**60 + 1]})
    result = rd.evaluate(true, pred, "recall@1", carry="shop")
    result.to_parquet(tmp_path / "result")
    found = rd.read_parquet(tmp_path / "result")
    assert found == result
    assert found.per_user["shop"].tolist() == [2**53 + 1, 2**60 + 1, pd.NA]

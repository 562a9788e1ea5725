"""The dtype of a key column: the unified type of both frames, and of all files of one, in memory
and from files."""

import itertools

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from quick import few

import recdf as rd

LARGE = pd.ArrowDtype(pa.large_string())
STR = (
    pd.Series(["a"]).astype("str").dtype
)  # pandas below 3 has no dtype of this name: it gives objects
KINDS = [
    ["int64", "int32", "Int64", "uint8", "int64[pyarrow]"],
    ["str", "object", "string", "category", LARGE],
    ["datetime64[ns]", "datetime64[s]"],
]
# Each two of a kind, of which every other pair is turned.
PAIRS = [two for kind in KINDS for two in itertools.combinations_with_replacement(kind, 2)]
DTYPES = [two[:: 1 - 2 * (i % 2)] for i, two in enumerate(PAIRS)]
DATES = pd.to_datetime(["2020-01-01", "2020-01-02"])
VALUES = {"i": ([1, 2], [2, 3]), "s": (["a", "b"], ["b", "c"]), "d": (DATES, DATES)}


def values(dtype):
    name = str(dtype).lower()
    return VALUES["d" if "date" in name else "i" if "int" in name else "s"]


@pytest.mark.long
@pytest.mark.parametrize(("one", "two"), few(DTYPES, DTYPES[::3]), ids=str)
def test_both_frames_agree_on_a_dtype(one, two, tmp_path):
    left, right = values(one)
    true = pd.DataFrame({"user_id": pd.Series(left).astype(one), "item_id": ["a", "b"]})
    pred = pd.DataFrame({"user_id": pd.Series(right).astype(two), "item_id": ["b", "a"]})
    paths = tmp_path / "true.parquet", tmp_path / "pred.parquet"
    for frame, path in zip((true, pred), paths, strict=True):
        frame.to_parquet(path)
    for users in ("all", "true") if one == two else ("all",):
        in_memory = rd.evaluate(*map(pd.read_parquet, paths), "hits@2", users=users).per_user
        from_files = rd.evaluate_parquet(*paths, "hits@2", users=users, buckets=3).per_user
        pd.testing.assert_frame_equal(from_files, in_memory)


@pytest.mark.long
@pytest.mark.parametrize(
    ("one", "two", "expected"),
    [
        ("int32", "int64", "int64"),
        ("uint8", "int32", "int32"),
        ("category", "str", "category"),
        ("str", "category", STR),
        ("category", LARGE, "category"),
        ("datetime64[s]", "datetime64[ns]", "datetime64[ns]"),
    ],
    ids=str,
)
def test_files_of_one_frame_may_drift(one, two, expected, tmp_path):
    """No label is lost where a column is of another type in the second file, and all parts have one
    dtype."""
    labels = [5, 6, 7, 8] if "int" in one else list("abcd")
    if "date" in one:
        labels = list(pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04"]))
    for number, (some, dtype) in enumerate(((labels[:2], one), (labels[2:], two))):
        frame = pd.DataFrame({"user_id": pd.Series(some).astype(dtype), "item_id": ["a", "b"]})
        frame.to_parquet(tmp_path / f"{number}.parquet")
    for users in ("true", "pred", "all"):
        found = rd.evaluate_parquet(tmp_path, tmp_path, "hits@2", users=users, buckets=3).per_user
        assert found["user_id"].tolist() == labels
        assert found["user_id"].dtype == expected


@pytest.mark.parametrize("buckets", [1, 2])
def test_large_ids_beside_nulls_stay_exact(tmp_path, buckets):
    """pandas has floats for such columns of a file that notes no dtype of pandas."""
    users = [2**53 + 1, 2**53, 2**53 + 2]
    true = pa.table({"user_id": [None, *users], "item_id": [1, 2, 3, 4]})
    pred = pa.table({"user_id": users, "item_id": [2, 9, 4], "score": [1.0, 2.0, 3.0]})
    for table, name in ((true, "true"), (pred, "pred")):
        pq.write_table(table, tmp_path / name)
    for name in ("true", "all", "pred"):
        found = rd.evaluate_parquet(
            tmp_path / "true",
            tmp_path / "pred",
            "hits@1",
            null_keys="drop",
            buckets=buckets,
            users=name,
        ).per_user
        assert found["user_id"].tolist() == users
        assert found["hits@1"].tolist() == [1, 0, 1]

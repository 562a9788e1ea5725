"""Columns of types that Arrow has and pandas has not: exact from files as in memory, or an error
that says the mend."""

import uuid
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from partitions.parquet_files import write

import recdf as rd
from recdf.inputs.machine import Sizes, sized

TRUE = pd.DataFrame({"user_id": [1, 2], "item_id": [1, 2]})
PRED = pd.DataFrame(
    {"user_id": [1, 1, 2, 2], "item_id": [1, 2, 1, 2], "score": [4.0, 3.0, 2.0, 1.0]}
)
TIMES = pd.to_datetime(["2020-01-01", "2020-01-02"] * 2)


def with_by(by):
    return pa.table({**{name: pa.array(PRED[name]) for name in PRED}, "by": by})


@pytest.mark.parametrize(
    ("by", "words"),
    [
        (pa.array([[1], [2], [1], [2]]), "list<"),
        (pa.array([{"a": 1}, {"a": 2}] * 2), "struct<a: int64>"),
        (pa.array([[("a", 1)], [("a", 2)]] * 2, pa.map_(pa.string(), pa.int64())), "map<string"),
        (pa.array([[1], [2]] * 2, pa.list_(pa.int64(), 1)), "fixed_size_list<"),
    ],
    ids=["list", "struct", "map", "fixed size list"],
)
def test_by_columns_that_cannot_be_compared(tmp_path, by, words):
    table = with_by(by)
    paths = write(tmp_path, TRUE, table)
    calls = [
        lambda: rd.evaluate(TRUE, table, "hits@1", by="by"),
        lambda: rd.evaluate_parquet(*paths, "hits@1", by="by"),
    ]
    for call in calls:
        with pytest.raises(rd.IdTypeError) as found:
            call()
        assert "pred['by'] is " + words in str(found.value)
        assert ".astype(str)" in str(found.value)
    with pytest.raises(
        rd.IdTypeError,
        match=r"pred\['by'\] holds values that cannot tell rows apart.*astype\(str\)",
    ):
        rd.evaluate(TRUE, pd.read_parquet(paths[1]), "hits@1", by="by")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "by",
    [
        pa.array(TIMES).dictionary_encode(),
        pa.array(TIMES.date).dictionary_encode(),
        pa.array([1.5, 2.0] * 2, pa.float32()),
        pa.array([True, False] * 2),
    ],
    ids=["dictionary of timestamps", "dictionary of dates", "float32", "bool"],
)
@sized(Sizes(read_rows=1))
def test_by_columns_of_rare_types(tmp_path, by):
    """Items 1 and 2 are recommended by one each, so that each has one hit."""
    paths = write(tmp_path, TRUE, with_by(by))
    first, second = by[:2].to_pylist()
    for buckets in (1, 3):
        found = rd.evaluate_parquet(*paths, "hits@1", by="by", buckets=buckets).per_user
        assert found["by"].tolist() == [first, first, second, second]
        assert found["hits@1"].tolist() == [1.0, 0.0, 0.0, 1.0]


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@sized(Sizes(read_rows=2))
def test_float_ids_of_several_row_groups(tmp_path, dtype):
    """-0.0 and 0.0 are one id."""
    true = pd.DataFrame(
        {"user_id": np.arange(6, dtype=dtype), "item_id": np.array([0, 1, 2, 3, 4, 5], dtype)}
    )
    pred = true.assign(item_id=np.array([-0.0, 1, 2, 3, 4, 9], dtype), score=1.0)
    paths = write(tmp_path, true, pred, rows=2)
    for buckets in (1, 3):
        found = rd.evaluate_parquet(*paths, "hits@1", buckets=buckets).per_user
        assert found["user_id"].dtype == dtype
        assert found["hits@1"].tolist() == [1.0] * 5 + [0.0]


def test_dtypes_that_pandas_writes_and_cannot_read(tmp_path):
    columns = {"user_id": pa.array([b"aa", b"bb"], pa.binary(2)), "item_id": pa.array([1, 2])}
    columns["price"] = pa.array([Decimal("1.5"), Decimal(2)], pa.decimal128(9, 2))
    frame = pd.DataFrame(
        {name: pd.Series(one, dtype=pd.ArrowDtype(one.type)) for name, one in columns.items()}
    )
    frame.to_parquet(path := tmp_path / "rows.parquet")
    of_files = rd.evaluate_parquet(path, path, "revenue@1", value_col="price")
    of_frames = rd.evaluate(rd.read(path), rd.read(path), "revenue@1", value_col="price")
    for result in (of_files, of_frames):
        assert result.per_user["user_id"].tolist() == [b"aa", b"bb"]
        assert result.per_user["revenue@1"].tolist() == [1.5, 2.0]


@pytest.mark.long
def test_periods_in_files_beside_periods_of_a_catalogue(tmp_path):
    """Parquet stores a period as an integer, which never matches one: an error says so, and its
    mend works."""
    months = pd.period_range("2020-01", periods=4, freq="M")
    true = pd.DataFrame({"user_id": [1, 2], "item_id": months[:2]})
    pred = pd.DataFrame({"user_id": [1, 1, 2, 2], "item_id": months, "score": [4.0, 3.0, 2.0, 1.0]})
    paths = write(tmp_path, true, pred)
    for items in (months, pd.DataFrame({"item_id": months})):
        with pytest.raises(
            rd.IdTypeError, match=r"items\['item_id'\] pandas.*Period ids.*astype\(str\)"
        ):
            rd.evaluate_parquet(*paths, "coverage@1", items=items, buckets=3)
    paths = write(tmp_path, *(frame.astype({"item_id": str}) for frame in (true, pred)))
    found = rd.evaluate_parquet(*paths, "coverage@1", items=months.astype(str), buckets=3)
    assert found.summary["value"].tolist() == [0.5]


NEEDS_UUID = pytest.mark.skipif(not hasattr(pa, "uuid"), reason="this pyarrow has no type of UUIDs")


@NEEDS_UUID
@pytest.mark.long
@pytest.mark.parametrize("buckets", [1, 3])
def test_uuids_in_files_are_those_of_frames(tmp_path, buckets):
    """Arrow stores them as bytes. They come back as UUIDs, beside ids of frames and of calls."""
    ids = [uuid.UUID(int=10**37 + number) for number in range(4)]
    stored = pa.array([one.bytes for one in ids], pa.uuid())
    true = pa.table({"user_id": stored[:2], "item_id": stored[:2]})
    pred = {"user_id": stored.take([0, 0, 1, 1]), "item_id": stored, "score": [4.0, 3.0, 2.0, 1.0]}
    paths = write(tmp_path, true, pa.table(pred | {"by": stored.take([2] * 4)}))
    frames = [pd.read_parquet(path) for path in paths]
    for options in ({}, {"users": ids[:2]}, {"users": "all", "carry": {"score": "first"}}):
        options |= {"by": "by", "items": ids}
        found = rd.evaluate_parquet(*paths, ["hits@1", "coverage@1"], buckets=buckets, **options)
        assert found == rd.evaluate(*frames, ["hits@1", "coverage@1"], **options)
        assert {type(one) for one in found.per_user["user_id"]} == {uuid.UUID}
        assert set(found.per_user["by"]) == {ids[2]}
        found.to_parquet(tmp_path / "kept", overwrite=True)
        assert rd.read_parquet(tmp_path / "kept") == found


@NEEDS_UUID
def test_uuids_never_match_texts(tmp_path):
    ids = [uuid.UUID(int=number) for number in range(2)]
    true = pa.table({"user_id": [1, 2], "item_id": pa.array([one.bytes for one in ids], pa.uuid())})
    paths = write(tmp_path, true, PRED.assign(item_id=[*map(str, ids)] * 2))
    with pytest.raises(rd.IdTypeError, match="can never match"):
        rd.evaluate_parquet(*paths, "hits@1")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("column", "options"),
    [
        ("user_id", {"user_col": ""}),
        ("item_id", {"item_col": ""}),
        ("by", {"by": ""}),
        ("score", {"score_col": ""}),
        ("rank", {"rank_col": ""}),
        ("weight", {"weight_col": ""}),
        ("by", {"carry": [""]}),
    ],
)
def test_a_column_without_a_name(tmp_path, column, options):
    """Of three items, the only hit stands first by the score alone."""
    pred = pd.DataFrame({"user_id": 1, "item_id": [8, 9, 1], "score": [1.5, 2, 9], "by": "a"})
    if column == "rank":
        pred = pred.drop(columns="score").assign(rank=[3, 2, 1])
    true = TRUE.assign(weight=2.0)
    frames = [frame.rename(columns={column: ""}) for frame in (true, pred)]
    want = rd.evaluate(*frames, "hits@1", **options)
    assert want.summary["value"].tolist() == [0.5]
    paths = write(tmp_path, *frames)
    for buckets in (1, 2):
        found = rd.evaluate_parquet(*paths, "hits@1", buckets=buckets, **options)
        assert found == want


@pytest.mark.parametrize("name", ["user_id", "item_id", "score"])
def test_nulls_in_one_row_group_alone(tmp_path, name):
    pred = PRED.astype({"user_id": "Int64", "item_id": "Int64"})
    pred.loc[2, name] = None
    options = {"null_keys": "drop", "nan_score": "last"}
    for k in (1, 2):
        found = rd.evaluate_parquet(*write(tmp_path, TRUE, pred, rows=1), "ndcg", k=k, **options)
        assert found == rd.evaluate(
            TRUE, pd.read_parquet(tmp_path / "pred.parquet"), "ndcg", k=k, **options
        )


def months(frame, frequency, name="user_id"):
    """Turn ids into periods: the n-th month, or the n-th of another frequency."""
    return frame.assign(
        **{name: pd.PeriodIndex.from_ordinals(frame[name].to_numpy(), freq=frequency)}
    )


@pytest.mark.long
@pytest.mark.parametrize("users", ["true", "all"])
def test_periods_of_one_frequency(tmp_path, users):
    frames = [months(frame, "D") for frame in (TRUE, PRED)]
    paths = write(tmp_path, *frames)
    for buckets in (1, 3):
        assert rd.evaluate_parquet(*paths, "recall@1", users=users, buckets=buckets) == rd.evaluate(
            *frames, "recall@1", users=users
        )


@pytest.mark.parametrize("name", ["user_id", "item_id"])
@pytest.mark.parametrize("other", ["Y", None])
def test_periods_of_two_frequencies_are_refused(tmp_path, name, other):
    """Files store them as integers, of which the 1st month and the 1st year are both 1."""
    pred = PRED if other is None else months(PRED, other, name)
    paths = write(tmp_path, months(TRUE, "M", name), pred)
    words = "no periods" if other is None else "periods of frequency Y"
    with pytest.raises(
        rd.IdTypeError, match=rf"true\['{name}'\] holds periods of frequency M and .* holds {words}"
    ):
        rd.evaluate_parquet(*paths, "recall@1")


def test_files_of_periods_of_two_frequencies_are_refused(tmp_path):
    folder = tmp_path / "pred"
    folder.mkdir()
    for number, frequency in enumerate(("M", "D")):
        months(PRED, frequency).to_parquet(folder / f"{number}.parquet")
    with pytest.raises(
        rd.DataError, match=r"pred: the files .*'user_id' holds period\[D\] and period\[M\]"
    ):
        rd.evaluate_parquet(write(tmp_path, months(TRUE, "M"), PRED)[0], folder, "recall@1")


@pytest.mark.long
def test_by_a_day_of_a_file_is_a_warning(tmp_path):
    days = pd.to_datetime(["2026-09-01", "2026-09-02", "2026-09-03"])
    true = pd.DataFrame({"user_id": [1, 2, 3], "item_id": 1})
    paths = write(tmp_path, true, true.assign(day=days))
    for more in ({"buckets": 1}, {"buckets": 3}, {"buckets": 3, "out": tmp_path / "out"}):
        with pytest.warns(rd.TimeByWarning, match="67% of the lists are missing"):
            rd.evaluate_parquet(*paths, "mrr@1", by="day", **more)


@sized(Sizes(block_rows=1))
def test_the_first_rows_of_a_result_need_not_have_the_types_of_all(tmp_path):
    """They have Decimals of fewer digits, and no carried day."""
    users = [Decimal("0.5"), Decimal("10.25"), Decimal("3")]
    true = TRUE.loc[[0, 1, 1]].assign(user_id=users)
    days = [None, *TIMES.date[:2]]
    pred = pd.DataFrame({"user_id": users[::-1], "item_id": 2, "score": 1.0, "day": days[::-1]})
    paths = write(tmp_path, true, pred)
    options = {"carry": "day", "users": "all", "buckets": 3}
    found = rd.evaluate_parquet(*paths, "hits@1", **options)
    assert found == rd.evaluate(true, pred, "hits@1", carry="day", users="all")
    assert found.per_user["day"].tolist() == days


@pytest.mark.parametrize("n", [0, 2])
def test_a_column_without_any_value_holds_numbers_that_are_null(tmp_path, n):
    """Arrow gives it a type of its own."""
    pred = PRED[:n].assign(score=pd.Series([None] * n, dtype=object))
    for given in (pred, pa.table(pred)):
        assert rd.evaluate(TRUE, given, "hits@1", nan_score="drop").summary["value"][0] == 0
        if n:
            with pytest.raises(rd.DataError, match="holds 2 null scores of 2"):
                rd.evaluate(TRUE, given, "hits@1")
    found = rd.evaluate_parquet(*write(tmp_path, TRUE, pred), "hits@1", nan_score="drop", buckets=2)
    assert found.summary["value"][0] == 0

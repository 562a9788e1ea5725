"""What pandas wrote beside the values, and types that differ between files: the same for every way
of reading."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from quick import few

import recdf as rd
from recdf.cli import main

B = 2**60
WHOLE_AND_PARTS = [[], ["--stream"], ["--memory-limit", "1KB"]]
NOON = pd.Timestamp("2026-01-01 12:00", tz="Europe/Berlin")
LISTS = pd.DataFrame(
    {"user_id": [1, 1, 2, 2, 3], "item_id": [1, 2, 1, 2, 1], "extra": [1, 1, 2, 2, 3]}
)
PRED = pd.concat([LISTS.assign(model="b"), LISTS.assign(model="a")], ignore_index=True)


def extra(*values, dtype=None):
    return PRED.assign(extra=pd.Series([values[(i % 5) // 2] for i in range(10)], dtype=dtype))


FRAMES = {
    "a key in the index": PRED.set_index("user_id"),
    "two keys in the index": PRED.set_index(["user_id", "item_id"]),
    "a by column in the index": PRED.set_index("model"),
    "a named index of numbers": PRED.rename_axis("row"),
    "categories": PRED.astype({"model": pd.CategoricalDtype(["b", "a", "c"])}),
    "ordered categories": PRED.astype(
        {"model": pd.CategoricalDtype(["b", "a", "c"], ordered=True)}
    ),
    "carried categories": extra("x", "y", "z").astype(
        {"extra": pd.CategoricalDtype(["z", "y", "x"])}
    ),
    "nullable keys": PRED.astype({"user_id": "Int64"}),
    "nullable integers": extra(1, None, 3, dtype="Int64"),
    "floats beside nulls": extra(1.5, None, 3),
    "nullable bools": extra(True, None, False, dtype="boolean"),
    "strings": extra("x", None, "z", dtype="string"),
    "a nullable by column": PRED.assign(model=pd.array([1] * 5 + [2] * 5, dtype="Int64")),
    "a by column of bools": PRED.assign(model=pd.array([True] * 5 + [False] * 5, dtype="boolean")),
    "Arrow's integers": PRED.astype({"extra": "int64[pyarrow]"}),
    "instants with a time zone": extra(NOON, NOON + pd.Timedelta("1D"), NOON),
    "models of instants": PRED.assign(model=[NOON] * 5 + [NOON + pd.Timedelta("1D")] * 5),
    "dates": extra(*[datetime.date(2026, 1, day) for day in (1, 2, 3)]),
    "periods": extra(*pd.period_range("2026-01", periods=3, freq="M")),
    "decimals": extra(Decimal("1.5"), Decimal("2.5"), Decimal("3.5")),
    "integers without a sign": PRED.astype({"extra": "uint64"}),
}


def results(tmp_path, capsys, *more, true=None, ways=WHOLE_AND_PARTS):
    """The result of each way of reading, or the line on stderr."""
    if true is None:
        pd.DataFrame({"user_id": [1, 2, 3, 4], "item_id": [1, 2, 1, 1]}).to_parquet(
            tmp_path / "true.parquet"
        )
    found = []
    for i, flags in enumerate(ways):
        out = tmp_path / str(i)
        call = [
            "--true",
            tmp_path / "true.parquet",
            "--pred",
            tmp_path / "pred",
            "-m",
            "mrr@2",
            "--out",
            out,
            *more,
        ]
        code = main(["evaluate", *map(str, call), *flags])
        said = capsys.readouterr().err
        found.append(said if code else rd.read_parquet(out))
    return found


READ_IN_ALL_WAYS = ["two keys in the index", "categories", "nullable integers", "dates"]


@pytest.mark.long
@pytest.mark.parametrize("name", few(FRAMES, READ_IN_ALL_WAYS))
def test_what_pandas_wrote(name, tmp_path, capsys):
    (folder := tmp_path / "pred").mkdir()
    for i in range(2):
        FRAMES[name].iloc[5 * i : 5 * i + 5].to_parquet(folder / f"{i}.parquet")
    # A stream is read as rows beyond the memory are, but in one bucket.
    ways = WHOLE_AND_PARTS if name in READ_IN_ALL_WAYS else WHOLE_AND_PARTS[::2]
    one, *others = results(tmp_path, capsys, "--by", "model", "--carry", "extra=first", ways=ways)
    for other in others:
        pd.testing.assert_frame_equal(one.per_user, other.per_user)
        assert one == other


def write_kinds(folder, **columns):
    """One file for each of the two arrays of every column."""
    folder.mkdir()
    for i in range(2):
        own = {name: pa.array(*arrays[i]) for name, arrays in columns.items()}
        pq.write_table(
            pa.table({"user_id": [2 * i, 2 * i + 1], "item_id": [1, 1], **own}),
            folder / f"{i}.parquet",
        )


KINDS = {
    "text and integers": ([(["x", "y"],), ([1, 2],)], ["string", "int64"]),
    "a list": ([([[1], [2]],), ([1, 2],)], ["list", "int64"]),
    "integers that floats lose": ([([B + 1, B + 3],), ([0.5, 1.5],)], ["int64", "double"]),
    "integers beyond the other type": (
        [([-1, 2],), ([2**63 + 1, 5], pa.uint64())],
        ["uint64", "int64"],
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", KINDS)
def test_a_carried_column_whose_types_clash_is_named_with_its_types(name, tmp_path, capsys):
    write_kinds(tmp_path / "pred", kind=KINDS[name][0])
    for said in results(tmp_path, capsys, "--carry", "kind"):
        assert "'kind'" in said
        assert all(kind in said for kind in KINDS[name][1])
        assert "Traceback" not in said
    assert len({len(found.per_user) for found in results(tmp_path, capsys)}) == 1  # nobody needs it


@pytest.mark.parametrize("name", ["integers that floats lose", "integers beyond the other type"])
def test_keys_whose_types_clash(name, tmp_path, capsys):
    write_kinds(tmp_path / "pred", user_id=KINDS[name][0])
    for said in results(tmp_path, capsys):
        assert "'user_id'" in said
        assert all(kind in said for kind in KINDS[name][1])


@pytest.mark.long
@pytest.mark.parametrize("first", [0, 1])
def test_keys_with_and_without_a_sign_in_files_of_one_frame(first, tmp_path, capsys):
    ids = np.array([[B + 1, B + 3], [B + 5, B + 7]])
    kinds = [pa.int64(), pa.uint64()][:: 1 if first else -1]
    write_kinds(tmp_path / "pred", user_id=[(ids[i], kinds[i]) for i in range(2)])
    pd.DataFrame({"user_id": ids.ravel(), "item_id": [1, 2, 1, 1]}).to_parquet(
        tmp_path / "true.parquet"
    )
    for found in results(tmp_path, capsys, "--users", "pred", true="written"):
        assert found.per_user["user_id"].tolist() == ids.ravel().tolist()
        assert found.per_user["mrr@2"].tolist() == [1.0, 0.0, 1.0, 1.0]

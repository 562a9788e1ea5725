"""Rows by bucket: each bucket has its rows in their order, wherever they are kept."""

from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

from recdf.partitions.buckets import dealt, hash_buckets, narrowed
from recdf.partitions.files_run import BucketCells, Memory

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])
N_PARTS = 4


def batches():
    rng = np.random.default_rng(3)
    edges = [
        10,
        20,
        30,
        40,
        43,
        50,
        60,
        70,
        80,
        90,
    ]  # a small batch may fit into memory where others do not
    for numbers in np.split(np.arange(100), edges):
        part = rng.integers(0, N_PARTS - 1, len(numbers)).astype(np.uint16)
        yield pa.table([numbers, [f"t{n}" for n in numbers]], SCHEMA), part


def written(cells):
    """How many bytes are in the file, which has no name that others could see."""
    return 0 if cells._file is None else cells._file.seek(0, 2)


def add(cells, table, part):
    cells.extend([dealt(table, part, len(cells.n_bytes))])


@pytest.mark.parametrize("memory", [0, 500, 10**9])
def test_a_bucket_has_its_rows_in_order(tmp_path, memory):
    """In the file, in memory, or the first ones in memory and the rest in the file; the last bucket
    is empty."""
    expected = [[] for _ in range(N_PARTS)]
    with closing(BucketCells(tmp_path, N_PARTS, SCHEMA, Memory(memory))) as cells:
        for table, part in batches():
            add(cells, table, part)
            for number, where in zip(table["number"].to_pylist(), part.tolist(), strict=True):
                expected[where].append(number)
        for _ in range(2):  # buckets may be read again
            for part in range(N_PARTS):
                table = cells.read(part)
                assert table["number"].to_pylist() == expected[part]
                assert table["text"].to_pylist() == [f"t{number}" for number in expected[part]]
                assert table.schema == SCHEMA
        assert (written(cells) > 0) == (memory != 10**9)
    assert (cells.n_bytes[:-1] > 0).all()
    assert cells.n_bytes[-1] == 0
    assert list(tmp_path.iterdir()) == []


def test_cells_share_their_memory(tmp_path):
    memory = Memory(1000)
    with (
        closing(BucketCells(tmp_path, 1, SCHEMA, memory)) as one,
        closing(BucketCells(tmp_path, 1, SCHEMA, memory)) as two,
    ):
        for cells in (one, two):
            for table, part in list(batches())[:6]:
                add(cells, table, np.zeros_like(part))
        assert [cells.read(0)["number"].to_pylist() for cells in (one, two)] == [
            list(range(50))
        ] * 2
        assert [written(cells) > 0 for cells in (one, two)] == [False, True]


@pytest.mark.parametrize("memory", [0, 100, 10**9])
def test_rows_of_two_widths_come_back_in_order(tmp_path, memory):
    """A later batch may hold ids that need 64 bits, or none at all."""
    numbers = [[1, 2, 3], [2**40, -(2**31)], [], [7, 2**31 - 1], [-(2**31) - 1]]
    expected = [n for batch in numbers for n in batch]
    with closing(BucketCells(tmp_path, 2, SCHEMA, Memory(memory))) as cells:
        for batch in numbers:
            table = pa.table([batch, [f"t{n}" for n in batch]], SCHEMA)
            add(cells, narrowed(table, {"number"}), np.zeros(len(batch), np.uint16))
        for _ in range(2):
            found = cells.read(0)
            assert found["number"].to_pylist() == expected
            assert found["text"].to_pylist() == [f"t{n}" for n in expected]
            assert cells.read(1).to_pydict() == {"number": [], "text": []}


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([2**31 - 1, -(2**31)], pa.int64(), pa.int32()),
        ([0, 99_999], pa.int64(), pa.int32()),
        ([2**31 - 1], pa.uint32(), pa.uint32()),
        ([2**31], pa.int64(), pa.int64()),
        ([-(2**31) - 1], pa.int64(), pa.int64()),
        ([5, None], pa.int64(), pa.int32()),
        ([None], pa.int64(), pa.int64()),
        ([], pa.int64(), pa.int64()),
        ([1], pa.uint64(), pa.int32()),
        ([2**63], pa.uint64(), pa.uint64()),
        ([1], pa.int8(), pa.int8()),
        ([1.0], pa.float64(), pa.float64()),
    ],
)
def test_only_ids_that_fit_get_narrow(values, kind, expected):
    table = pa.table({"id": pa.array(values, kind), "score": pa.array(values, kind)})
    found = narrowed(table, {"id"})
    assert found.schema.types == [expected, kind]
    assert found.to_pydict() == table.to_pydict()
    assert table.schema.types == [kind, kind]


def test_keys_are_dealt_by_value():
    numbers = np.arange(-500, 500)
    forms = [pa.array(numbers, kind) for kind in (pa.int16(), pa.int32(), pa.int64(), pa.float64())]
    forms.append(pa.array(numbers).dictionary_encode())
    dealt = [hash_buckets([form], 13) for form in forms]
    assert all((one == dealt[0]).all() for one in dealt)
    assert np.bincount(dealt[0], minlength=13).min() > 40
    texts = [f"{'x' * (number % 30)}{number}" for number in numbers]
    texts = [
        pa.array(["", *texts, "é"], kind) for kind in (pa.string(), pa.large_string(), pa.binary())
    ]
    texts += [
        texts[0].dictionary_encode(),
        pa.concat_arrays([pa.array(["junk"]), texts[0]]).slice(1),
    ]
    dealt = [hash_buckets([form], 13) for form in texts]
    assert all((one == dealt[0]).all() for one in dealt)
    assert np.bincount(dealt[0], minlength=13).min() > 40

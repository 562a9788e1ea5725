"""Parts of rows: each has its rows in their order, wherever they are kept."""

from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest

from recdf.partitions.store import Memory, Store, part_of

SCHEMA = pa.schema([("number", pa.int64()), ("text", pa.string())])
N_PARTS = 4


def batches():
    rng = np.random.default_rng(3)
    for first in range(0, 100, 10):
        numbers = np.arange(first, first + 10)
        part = rng.integers(0, N_PARTS - 1, 10).astype(np.uint16)
        yield pa.table([numbers, [f"t{n}" for n in numbers]], SCHEMA), part


@pytest.mark.parametrize("memory", [None, 0, 500, 10**9])
def test_a_part_has_its_rows_in_order(tmp_path, memory):
    """In the file, in memory, or the first ones in memory and the rest in the file; the last part is empty."""
    path = tmp_path / "rows.arrow"
    expected = [[] for _ in range(N_PARTS)]
    with closing(Store(path, N_PARTS, SCHEMA, None if memory is None else Memory(memory))) as store:
        for table, part in batches():
            store.add(table, part)
            for number, where in zip(table["number"].to_pylist(), part.tolist(), strict=True):
                expected[where].append(number)
        for _ in range(2):  # parts may be read again
            for part in range(N_PARTS):
                table = store.read(part)
                assert table["number"].to_pylist() == expected[part]
                assert table["text"].to_pylist() == [f"t{number}" for number in expected[part]]
                assert table.schema == SCHEMA
    assert path.exists() == (memory != 10**9)
    assert (store.n_bytes[:-1] > 0).all()
    assert store.n_bytes[-1] == 0


def test_stores_share_their_memory(tmp_path):
    memory = Memory(1000)
    paths = [tmp_path / name for name in ("one", "two")]
    with closing(Store(paths[0], 1, SCHEMA, memory)) as one, closing(Store(paths[1], 1, SCHEMA, memory)) as two:
        for store in (one, two):
            for table, part in list(batches())[:5]:
                store.add(table, np.zeros_like(part))
        assert [store.read(0)["number"].to_pylist() for store in (one, two)] == [list(range(50))] * 2
    assert [path.exists() for path in paths] == [False, True]


def test_keys_are_dealt_by_value():
    numbers = np.arange(-500, 500)
    forms = [pa.array(numbers, kind) for kind in (pa.int16(), pa.int32(), pa.int64(), pa.float64())]
    forms.append(pa.array(numbers).dictionary_encode())
    dealt = [part_of([form], 13) for form in forms]
    assert all((one == dealt[0]).all() for one in dealt)
    assert np.bincount(dealt[0], minlength=13).min() > 40
    texts = [f"{'x' * (number % 30)}{number}" for number in numbers]
    texts = [pa.array(["", *texts, "é"], kind) for kind in (pa.string(), pa.large_string(), pa.binary())]
    texts += [texts[0].dictionary_encode(), pa.concat_arrays([pa.array(["junk"]), texts[0]]).slice(1)]
    dealt = [part_of([form], 13) for form in texts]
    assert all((one == dealt[0]).all() for one in dealt)
    assert np.bincount(dealt[0], minlength=13).min() > 40

"""Rows packed by bucket: what stays together, what is spread, and what crosses unchanged."""

import decimal
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import recdf as rd
from recdf.evaluation.evaluate import call_of
from recdf.partitions.buckets import (
    CELL_BYTES,
    PACKED,
    Packing,
    add_in_pairs,
    bucket_of,
    by_role,
    narrowed,
)
from recdf.partitions.engine_contract import (
    MOST_OPENED,
    Shared,
    inline_handle,
    opened,
    to_bytes,
)

ROLE = {"role": "pred"}


def of_cells(cells, schema):
    return by_role(cells, {"pred": schema})["pred"]


WORDS = [f"user {i}" for i in range(40)]
N = 7


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (pa.array(range(40), pa.int32()), pa.array(range(40), pa.float64())),
        (pa.array(range(40), pa.uint8()), pa.array([*range(40)], pa.int64())),
        (pa.array(WORDS), pa.array(WORDS, pa.large_string()).dictionary_encode()),
        (
            pa.array(range(40)).cast(pa.timestamp("s")),
            pa.array(range(40)).cast(pa.timestamp("s")).cast(pa.timestamp("ns")),
        ),
        (
            pa.array([decimal.Decimal(i) for i in range(40)], pa.decimal128(9, 2)),
            pa.array([decimal.Decimal(i) for i in range(40)], pa.decimal256(60, 5)),
        ),
    ],
    ids=["integers", "unsigned", "strings", "instants", "decimals"],
)
def test_equal_keys_have_one_bucket_whatever_their_types_and_nulls_beside_them(one, two):
    alone = bucket_of(pa.table({"u": one, "i": range(40)}), ["u"], "i", N)
    with_null = pa.chunked_array([two.slice(0, 11), pa.nulls(1, two.type), two.slice(11)])
    other = bucket_of(pa.table({"u": with_null, "i": range(41)}), ["u"], "i", N)
    assert np.delete(other, 11).tolist() == alone.tolist()
    assert len(set(alone.tolist())) > 3


@pytest.mark.parametrize(
    "item", [pa.array(range(700)), pa.nulls(700, pa.int64()), pa.array([5] * 700)]
)
def test_rows_without_a_key_are_spread_unless_they_are_all_equal(item):
    table = pa.table({"u": pa.array([float("nan")] * 700), "i": item})
    counts = np.bincount(bucket_of(table, ["u"], "i", N), minlength=N)
    assert counts.sum() == 700
    assert counts.max() < 200 or len(item.unique().drop_null()) == 1


def test_rows_cross_unchanged_in_the_types_of_the_schema():
    schema = pa.schema([("u", pa.string()), ("i", pa.int64()), ("x", pa.float64())], ROLE)
    table = pa.table(
        {
            "x": [-0.0, 1.5, None, 2.0],
            "u": pa.array(list("abca")).dictionary_encode(),
            "i": [2**60, 1, 2, None],
        }
    )
    batches = list(Packing(["u"], "i", 3, schema)(table.to_batches(2)))
    assert all(batch.schema == PACKED for batch in batches)
    cells = [cell for batch in batches for cell in batch["cell"]]
    rows = of_cells([*cells, pa.scalar(None, pa.binary())], schema).to_pylist()
    expected = [
        {"u": u, "i": i, "x": x}
        for u, i, x in [("a", 2**60, 0.0), ("b", 1, 1.5), ("c", 2, None), ("a", None, 2.0)]
    ]
    assert sorted(rows, key=str) == sorted(expected, key=str)
    assert list(Packing(["u"], "i", 3, schema)(iter([]))) == []


def test_the_rows_of_a_long_bucket_fill_several_cells_of_bounded_size():
    schema = pa.schema([("u", pa.string()), ("i", pa.int64())], ROLE)
    table = pa.table({"u": ["one user"] * 40_000, "i": range(40_000)}, schema=schema)
    (batch,) = Packing(["u"], "i", N, schema)(table.to_batches(10_000))
    assert len(set(batch["bucket"].to_pylist())) == 1
    sizes = [len(cell.as_buffer()) for cell in batch["cell"]]
    assert len(sizes) >= 3  # 40,000 rows of 14 bytes
    assert max(sizes) < 1.1 * CELL_BYTES + 1_000
    assert of_cells(list(batch["cell"]), schema).equals(table)


def test_sums_are_taken_two_at_a_time():
    assert add_in_pairs([[i] for i in range(7)]) == list(range(7))
    assert add_in_pairs([]) is None


# -----------------------------------------------------------------------------------------------
# shipped


def helped(lists):
    """What a kernel calls goes along with it."""
    return np.full(len(lists), 0.5)


@rd.metric
def uses_a_helper(lists):
    """A constant; larger is better, in [0, 1]."""
    return helped(lists)


del rd.METRICS["uses_a_helper"]  # tests of all metrics must not find it


def test_a_call_is_opened_once_and_its_own_metrics_come_by_value():
    pytest.importorskip("cloudpickle")
    items = pd.DataFrame({"item_id": [1]})
    call = call_of(rd.evaluate, [uses_a_helper, "ndcg"], 5, {"items": items}, True)
    data = to_bytes(Shared(call))
    handle = inline_handle(data)
    shared = opened(handle)
    assert opened(pickle.loads(pickle.dumps(handle))) is shared
    own, ndcg = (request.metric for request in shared.call.requests)
    assert ndcg is rd.ndcg
    assert own is not uses_a_helper
    assert own({"u": ["a"]}, {"u": ["a"]}, k=1) == 0.5
    assert own.kernel.__globals__["helped"] is not helped
    assert "uses_a_helper" not in rd.METRICS
    for i in range(MOST_OPENED):
        other = to_bytes(Shared(call, given=pd.DataFrame({"user_id": [i]})))
        opened(inline_handle(other))
    assert opened(handle) is not shared


def test_a_metric_that_its_module_has_pickles_by_name_and_another_by_value():
    cloudpickle = pytest.importorskip("cloudpickle")

    @rd.metric
    def of_a_function(lists):
        """A constant; larger is better, in [0, 1]."""
        return np.ones(len(lists))

    del rd.METRICS["of_a_function"]
    assert (
        cloudpickle.loads(cloudpickle.dumps(of_a_function))({"u": ["a"]}, {"u": ["a"]}, k=1) == 1.0
    )
    assert pickle.loads(pickle.dumps(rd.ndcg)) is rd.ndcg


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, -3, None], pa.int8()),
        ([-129, 127], pa.int16()),
        ([0, 255], pa.uint8()),
        ([-1, 255], pa.int16()),
        ([-1, 2**62], pa.int64()),
        ([-(2**63), 5], pa.int64()),
        ([2**33, 0], pa.int64()),
        ([None, None], pa.int64()),
    ],
)
def test_integers_cross_in_the_narrowest_type_and_come_back(values, kind):
    table = pa.table({"a": pa.array(values, pa.int64()), "s": ["x"] * len(values)}, metadata=ROLE)
    narrow = narrowed(table)
    assert narrow.schema.field("a").type == kind
    back = of_cells([narrow, narrow.slice(1)], table.schema)
    assert back == pa.concat_tables([table, table.slice(1)])

"""Ids of every dtype that recdf reads: ways to write the integers 0, 1, ... that keep their
order."""

import datetime as dt
import decimal
import uuid

import numpy as np
import pandas as pd
import pyarrow as pa


def strings(ids):
    return [f"i{int(i) + 100:04d}" for i in ids]


START = dt.datetime(2026, 1, 1)

LABELS = {
    "int8": lambda ids: pd.Series(ids, dtype="int8"),
    "int16": lambda ids: pd.Series(ids, dtype="int16"),
    "int32": lambda ids: pd.Series(ids, dtype="int32"),
    "uint8": lambda ids: pd.Series(ids + 10, dtype="uint8"),
    "uint64": lambda ids: pd.Series(ids + 10, dtype="uint64"),
    "uint64 beyond int64": lambda ids: pd.Series(
        [2**63 + 10 + int(i) for i in ids], dtype="uint64"
    ),
    "around int64 max": lambda ids: pd.Series([2**63 - 20 + int(i) for i in ids], dtype="uint64"),
    "int64 beyond 2**53": lambda ids: pd.Series(2**53 + ids, dtype="int64"),
    "wide int64": lambda ids: pd.Series(ids * 10**17, dtype="int64"),
    "Int64": lambda ids: pd.Series(ids, dtype="Int64"),
    "Int64 beyond 2**53": lambda ids: pd.Series(2**53 + ids, dtype="Int64"),
    "UInt8": lambda ids: pd.Series(ids + 10, dtype="UInt8"),
    "float64": lambda ids: pd.Series(ids, dtype="float64"),
    "float32": lambda ids: pd.Series(ids, dtype="float32"),
    "Float64": lambda ids: pd.Series(ids, dtype="Float64"),
    "object of int": lambda ids: pd.Series([int(i) for i in ids], dtype=object),
    "object of numpy int": lambda ids: pd.Series([np.int16(i) for i in ids], dtype=object),
    "object of huge int": lambda ids: pd.Series([10**30 + int(i) for i in ids], dtype=object),
    "object of whole float": lambda ids: pd.Series([float(i) for i in ids], dtype=object),
    "object of str": lambda ids: pd.Series(strings(ids), dtype=object),
    "str": lambda ids: pd.Series(strings(ids), dtype="str"),
    "string[python]": lambda ids: pd.Series(strings(ids), dtype="string[python]"),
    "string[pyarrow]": lambda ids: pd.Series(strings(ids), dtype="string[pyarrow]"),
    "arrow string": lambda ids: pd.Series(strings(ids), dtype=pd.ArrowDtype(pa.string())),
    "arrow large_string": lambda ids: pd.Series(
        strings(ids), dtype=pd.ArrowDtype(pa.large_string())
    ),
    "arrow binary": lambda ids: pd.Series(
        [s.encode() for s in strings(ids)], dtype=pd.ArrowDtype(pa.binary())
    ),
    "arrow int32": lambda ids: pd.Series(ids, dtype=pd.ArrowDtype(pa.int32())),
    "arrow uint64": lambda ids: pd.Series(
        [2**63 + 10 + int(i) for i in ids], dtype=pd.ArrowDtype(pa.uint64())
    ),
    "arrow dictionary": lambda ids: pd.Series(
        pd.arrays.ArrowExtensionArray(
            pa.chunked_array([pa.array(strings(ids)).dictionary_encode()])
        )
    ),
    "arrow timestamp": lambda ids: pd.Series(
        [START + dt.timedelta(int(i)) for i in ids], dtype=pd.ArrowDtype(pa.timestamp("us"))
    ),
    "arrow date": lambda ids: pd.Series(
        [dt.date(2026, 1, 1) + dt.timedelta(int(i)) for i in ids], dtype=pd.ArrowDtype(pa.date32())
    ),
    # Categories stand in an order that is not the order of their values, and some are not used.
    "category of str": lambda ids: pd.Series(
        pd.Categorical(
            strings(ids), categories=["unused", *strings(range(99, -20, -1)), "also unused"]
        )
    ),
    "ordered category": lambda ids: pd.Series(
        pd.Categorical(strings(ids), categories=strings(range(99, -20, -1)), ordered=True)
    ),
    "category of int": lambda ids: pd.Series(pd.Categorical(ids, categories=range(99, -20, -1))),
    "category of string[pyarrow]": lambda ids: pd.Series(
        strings(ids), dtype="string[pyarrow]"
    ).astype("category"),
    "datetime64[ns]": lambda ids: pd.Series(pd.to_datetime(ids, unit="D")).astype("datetime64[ns]"),
    "datetime64[s]": lambda ids: pd.Series(pd.to_datetime(ids, unit="D")).astype("datetime64[s]"),
    "datetime with time zone": lambda ids: pd.Series(
        pd.to_datetime(ids, unit="D", utc=True)
    ).dt.tz_convert("Asia/Tokyo"),
    "timedelta": lambda ids: pd.Series(pd.to_timedelta(ids, unit="D")),
    "period": lambda ids: pd.Series(pd.PeriodIndex.from_ordinals(np.asarray(ids, int), freq="D")),
    "object of datetime": lambda ids: pd.Series(
        [START + dt.timedelta(int(i)) for i in ids], dtype=object
    ),
    "object of date": lambda ids: pd.Series(
        [START.date() + dt.timedelta(int(i)) for i in ids], dtype=object
    ),
    "object of UUID": lambda ids: pd.Series(
        [uuid.UUID(int=10**37 + int(i)) for i in ids], dtype=object
    ),
    "object of bytes": lambda ids: pd.Series([s.encode() for s in strings(ids)], dtype=object),
    "object of Decimal": lambda ids: pd.Series(
        [decimal.Decimal(int(i)) / 3 for i in ids], dtype=object
    ),
    "object of tuple": lambda ids: pd.Series([("shop", int(i)) for i in ids], dtype=object),
}


def relabelled(frame, label):
    """The frame with its integer ids replaced by others that stand in the same order."""
    return frame.assign(
        user_id=LABELS[label](frame["user_id"].to_numpy()).array,
        item_id=LABELS[label](frame["item_id"].to_numpy()).array,
    )

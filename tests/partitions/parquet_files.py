"""Frames in parquet files, of which evaluate_parquet gives the answer that evaluate gives of the
frames."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from registry.seeded import ITEMS, frames

import recdf as rd

METRICS = [
    "ndcg(gain=exp2)",
    "recall",
    "mapr(normalizer=achievable)",
    "err",
    "mrr",
    "confusion@3",
    "precision",
]

USUAL = {"relevance_col": "relevance", "nan_score": "last", "score_col": "score"}

N_USERS = 60


def data(seed=1):
    """Frames with holes, ties, repeats, grades and null scores."""
    true, pred = frames(seed, top=3.0, n_users=N_USERS)
    return true.copy(), pred.copy()


def distinct_data():
    return (frame.drop_duplicates(["user_id", "item_id"]).copy() for frame in data())


def write(folder, true, pred, rows=100):
    """Write both frames or Arrow tables, in row groups that cut lists."""
    paths = folder / "true.parquet", folder / "pred.parquet"
    for table, path in zip((true, pred), paths, strict=True):
        table = (
            table
            if isinstance(table, pa.Table)
            else pa.Table.from_pandas(table, preserve_index=False)
        )
        pq.write_table(table, path, row_group_size=rows)
    return paths


def assert_equal(found, expected):
    for name in ("per_user", "summary"):
        pd.testing.assert_frame_equal(
            getattr(found, name), getattr(expected, name), rtol=1e-12, atol=1e-12
        )
    assert {**found.spec, "files": None} == {**expected.spec, "files": None}


def check(paths, metrics=METRICS, k=(2,), parts=(3,), **options):
    """Streamed in parts, the result is that of the frames that pandas reads. One part is tried in
    some tests: nothing is dealt or put together in it."""
    options = USUAL | {"items": ITEMS} | options
    whole = [pd.read_parquet(path) for path in paths]
    expected = rd.evaluate(*whole, metrics, k=list(k), **options)
    for buckets in parts:
        assert_equal(
            rd.evaluate_parquet(*paths, metrics, k=list(k), buckets=buckets, **options), expected
        )
    return expected


def both(paths, *arguments, catch=Exception, **options):
    """The message of an error, or of the one warning, in memory and streamed in several buckets."""
    found = []
    for function, given in (
        (rd.evaluate, map(pd.read_parquet, paths)),
        (rd.evaluate_parquet, paths),
    ):
        extra = {"buckets": 5} if function is rd.evaluate_parquet else {}
        if issubclass(catch, Warning):
            with pytest.warns(catch) as caught:
                function(*given, *arguments, **USUAL | options | extra)
            assert len(caught) == 1
            assert caught[0].filename == __file__
            found.append(str(caught[0].message))
        else:
            with pytest.raises(catch) as raised:
                function(*given, *arguments, **USUAL | options | extra)
            found.append(str(raised.value))
    return found


def as_dtype(kind):
    """Turn a column of integers into another kind."""
    return {
        "int32": lambda ids: ids.astype("int32"),
        "Int64": lambda ids: ids.astype("Int64"),
        "float": lambda ids: ids.astype("float64"),
        "big": lambda ids: ids.astype("int64") * 2**45,
        "string": lambda ids: ids.map("a fairly long id of a user: {}".format),
        "category": lambda ids: ids.map("u{}".format).astype("category"),
        "int category": lambda ids: ids.astype("category"),
        "time": lambda ids: pd.Timestamp("2026-01-01") + pd.to_timedelta(ids, unit="h"),
        "zone": lambda ids: (
            pd.Timestamp("2026-01-01", tz="Asia/Tokyo") + pd.to_timedelta(ids, unit="h")
        ),
        "date": lambda ids: (pd.Timestamp("2026-01-01") + pd.to_timedelta(ids, unit="D")).dt.date,
        "large_string": lambda ids: ids.map("u{}".format).astype(pd.ArrowDtype(pa.large_string())),
        "bytes": lambda ids: ids.map(lambda i: b"\0" * (i % 5) + b"%d" % i),
    }[kind]

"""Tables of many users in parts: row groups of files, partitions of a frame of Spark or Dask.

Contract: no engine is imported here; its frame has the methods. What runs on the batches of a part
is sent to the workers, and gives what can be sent back.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from .data_files import NeededColumns, by_places, data_files, folder_columns, frame_of_table
from .frames import engine_of
from .machine import each, limited, sizes

# What is computed of the batches of one part, where they are.
OfBatches = Callable[[Iterator[pa.RecordBatch]], Any]


@dataclass(frozen=True)
class UserParts:
    """Rows in parts: row groups of files, or partitions of an engine's frame.

    `head` is a row of the columns that are needed and `sample` the first rows. `spans` gives the
    smallest and the largest values of columns of numbers, `run` what a function makes of the
    batches of every part, and `distinct` whether no value of a column stands twice.
    """

    n: int
    head: pd.DataFrame
    sample: pa.RecordBatch
    spans: Callable[[list[str]], tuple[np.ndarray, np.ndarray] | None]
    run: Callable[[OfBatches, list[str]], list[Any]]
    distinct: Callable[[str], bool]

    def frame_of(self, columns: Mapping[str, list[Any]]) -> pd.DataFrame:
        """Values of some columns as a frame, with the types that the rows have."""
        kinds = {name: self.sample.schema.field(name).type for name in columns}
        plain = {
            name: of.value_type if pa.types.is_dictionary(of) else of for name, of in kinds.items()
        }
        table = pa.table({name: pa.array(columns[name], of) for name, of in plain.items()})
        return frame_of_table(table)


def users_in_parts(data: Any, needed: NeededColumns, label: str) -> UserParts | None:
    """Return the parts of many rows in files, or in a frame of Spark or Dask; None of others."""
    if (engine := engine_of(data)) is not None and hasattr(data, "columns"):
        found = _parts_of_spark(data, needed) if engine == "spark" else _parts_of_dask(data, needed)
    elif isinstance(data, str | os.PathLike):
        found = _parts_of_files(data_files(os.fspath(data)), needed, label)
    else:
        return None
    return None if found is None or found.n < sizes().summed_rows else found


def _parts_of_files(files: list[str], needed: NeededColumns, label: str) -> UserParts | None:
    try:
        metas = [pq.read_metadata(file) for file in files]
    except (pa.ArrowException, OSError):
        return None
    schemas = [one.schema.to_arrow_schema() for one in metas]
    n = sum(one.num_rows for one in metas)
    odd = folder_columns(files) or any(one != schemas[0] for one in schemas[1:])
    if n < sizes().summed_rows or odd or not metas[0].num_rows:
        return None
    read = [label] if label in schemas[0].names else []
    read = [
        name for name in read if schemas[0].field(name).type in (pa.string(), pa.large_string())
    ]
    work = [(i, g) for i, meta in enumerate(metas) for g in range(meta.num_row_groups)]

    def batches(part: tuple[int, int], names: list[str]) -> Iterator[pa.RecordBatch]:
        file, group = part
        texts = [name for name in read if name in names]
        with pq.ParquetFile(files[file], metadata=metas[file], read_dictionary=texts) as opened:
            yield from opened.iter_batches(
                sizes().read_rows, row_groups=[group], columns=names, use_threads=False
            )

    def spans(names: list[str]) -> tuple[np.ndarray, np.ndarray] | None:
        places = {metas[0].schema.column(i).path: i for i in range(metas[0].num_columns)}
        of = [[metas[i].row_group(g).column(places[n]).statistics for i, g in work] for n in names]
        if any(one is None or not one.has_min_max or one.null_count for own in of for one in own):
            return None
        low = [float(min(one.min for one in own)) for own in of]
        return np.array(low), np.array([float(max(one.max for one in own)) for own in of])

    def distinct(name: str) -> bool:
        ids = pa.chunked_array([one.column(0) for part in work for one in batches(part, [name])])
        return len(ids) == len(ids.unique())

    first = next(pq.ParquetFile(files[0]).iter_batches(2**10)).slice(0, 1)
    head = frame_of_table(pa.Table.from_batches([first]))
    names = needed(head)
    return UserParts(
        n,
        head[names],
        next(batches(work[0], names)),
        spans,
        lambda function, columns: each(lambda part: function(batches(part, columns)), work),
        distinct,
    )


def _parts_of_dask(data: Any, needed: NeededColumns) -> UserParts | None:
    head = data.head(2**12, npartitions=-1)
    names = needed(head.head(1))
    n = len(data)

    def run(function: OfBatches, columns: list[str]) -> list[Any]:
        def of(rows: pd.DataFrame) -> pd.Series:
            table = pa.Table.from_pandas(rows, preserve_index=False)
            return pd.Series([function(iter(table.to_batches(sizes().read_rows)))], dtype=object)

        empty = pd.Series([], dtype=object)
        return list(data[columns].map_partitions(of, meta=empty).compute())

    def spans(columns: list[str]) -> tuple[np.ndarray, np.ndarray]:
        found = [getattr(data[columns], of)().compute() for of in ("min", "max")]
        low, high = (one.to_numpy(np.float64, na_value=np.nan) for one in found)
        return low, high

    def distinct(name: str) -> bool:
        return len(data[[name]].drop_duplicates(split_out=data.npartitions)) == n

    sample = pa.Table.from_pandas(head[names], preserve_index=False).combine_chunks().to_batches()
    return UserParts(n, head[names].head(1), sample[0], spans, run, distinct) if sample else None


def _parts_of_spark(data: Any, needed: NeededColumns) -> UserParts | None:
    places, at = by_places(data)
    first = places.limit(2**12).toArrow().rename_columns(list(at))
    names = needed(frame_of_table(first.slice(0, 1)))
    n = places.count()

    def run(function: OfBatches, columns: list[str]) -> list[Any]:
        def of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            named = (pa.RecordBatch.from_arrays(one.columns, columns) for one in batches)
            with limited(1):
                found = pickle.dumps(function(named))
            yield pa.record_batch([pa.array([found], pa.binary())], ["part"])

        rows = places.select(*(at[name] for name in columns))
        found = rows.mapInArrow(of, "part binary").toArrow()
        return [pickle.loads(one) for one in found["part"].to_pylist()]

    def spans(columns: list[str]) -> tuple[np.ndarray, np.ndarray]:
        asked = [f"double({of}({at[name]}))" for of in ("min", "max") for name in columns]
        values = [one[0].as_py() for one in places.selectExpr(*asked).toArrow().columns]
        low, high = np.reshape(np.array(values, np.float64), (2, -1))
        return low, high

    def distinct(name: str) -> bool:
        return bool(places.select(at[name]).distinct().count() == n)

    sample = first.select(names).combine_chunks().to_batches()
    head = frame_of_table(first.slice(0, 1).select(names))
    return UserParts(n, head, sample[0], spans, run, distinct) if sample else None

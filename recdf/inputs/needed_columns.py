"""Read only the columns that a call needs, from files and from objects that hand over Arrow
data."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import dataset

from ..errors import DataError, kind_of
from .data_files import data_files, pandas_metadata
from .frames import plain_table, refuse_engine_frame
from .lazy_frames import lazy_rows, unwrapped
from .machine import each, sizes

# Takes one row of all columns, and returns the names of the columns to read.
NeededColumns = Callable[[pd.DataFrame], list[str]]


def needed_frame(data: Any, role: str, needed: NeededColumns, label: str = "") -> Any:
    """Return a DataFrame as it is, and else one of the columns that are needed, in the order of the
    data.

    `data` is the path of a parquet file, folder or glob, a dataset of pyarrow, a relation of
    DuckDB, a (lazy) frame of polars, or any other object with the Arrow stream interface, which is
    read batch by batch. Texts of the column `label` are few, and are read from files as a
    dictionary.
    """
    data = unwrapped(data)
    data = (
        data.lazy()
        if type(data).__module__.startswith("polars.") and hasattr(data, "lazy")
        else data
    )
    if isinstance(data, pd.DataFrame):
        return data
    refuse_engine_frame(data, role)
    files: list[str] = []
    if isinstance(data, str | os.PathLike):
        files = data_files(os.fspath(data))
        if not files:
            raise DataError(
                f"{role}={os.fspath(data)!r} is no file, folder or glob that matches any"
            )
        data = dataset.dataset(files, format="parquet", partitioning="hive")
    if isinstance(data, dataset.Dataset):
        # Without this, whole row groups of all columns would be read for one row.
        names = needed(
            _frame_of_table(data.head(1, batch_size=2**10, batch_readahead=0, fragment_readahead=0))
        )
        if not files:
            return _frame_of_table(data.to_table(columns=names))
        labels = (
            [label]
            if label in names and data.schema.field(label).type in (pa.string(), pa.large_string())
            else []
        )
        of_labels = dataset.ParquetFileFormat(dictionary_columns=labels)
        return _frame_of_table(
            _read(dataset.dataset(files, format=of_labels, partitioning="hive"), names)
        )
    if (rows := lazy_rows(data)) is not None and (
        few := lazy_rows(data.limit(1) if hasattr(data, "limit") else None)
    ):
        names = needed(_frame_of_table(few.table(few.schema.names, role)))
        return _frame_of_table(pa.concat_tables(rows.batches(names, role)))
    data = data.to_reader() if hasattr(data, "to_reader") else data
    if not hasattr(data, "__arrow_c_stream__") or isinstance(data, pd.Series):
        raise TypeError(
            f"{role} is {kind_of(data)}; expected a DataFrame, such as result.per_user, a path of "
            "parquet files, or an object with the Arrow stream interface (pyarrow, polars, DuckDB)"
        )
    reader = (
        data if isinstance(data, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(data)
    )
    first = next(
        (batch for batch in reader if batch.num_rows), pa.RecordBatch.from_pylist([], reader.schema)
    )
    names = needed(_frame_of_table(pa.Table.from_batches([first.slice(0, 1)])))
    return _frame_of_table(
        pa.Table.from_batches([first.select(names), *(batch.select(names) for batch in reader)])
    )


def _read(data: dataset.Dataset, names: list[str]) -> pa.Table:
    """The columns of parquet files. Threads read row groups, and copy numbers into arrays of all
    rows at once."""
    groups = [group for file in data.get_fragments() for group in file.split_by_row_group()]
    ends = np.cumsum([group.row_groups[0].num_rows for group in groups])
    if len(groups) >= ends[-1:].sum() / sizes().coded_rows * 4:  # few rows in each
        return data.to_table(columns=names)
    types = {name: data.schema.field(name).type for name in names}
    numbers = {
        name: np.empty(ends[-1], of.to_pandas_dtype())
        for name, of in types.items()
        if pa.types.is_integer(of) or pa.types.is_floating(of)
    }

    def read(i: int) -> pa.Table:
        table = groups[i].to_table(schema=data.schema, columns=names, use_threads=False)
        for name, whole in numbers.items():
            if not table[name].null_count:
                mine = whole[ends[i] - table.num_rows : ends[i]]
                np.concatenate([chunk.to_numpy() for chunk in table[name].chunks], out=mine)
                table = table.set_column(names.index(name), name, pa.array(mine))
        return table

    table = pa.concat_tables(each(read, range(len(groups))))
    for name, whole in numbers.items():
        if not table[name].null_count:
            table = table.set_column(names.index(name), name, pa.array(whole))
    return table


def _frame_of_table(table: pa.Table) -> pd.DataFrame:
    """The table with no column as an index, and with what pandas wrote of its attributes."""
    written = json.dumps(pandas_metadata(table.schema.metadata))
    frame: pd.DataFrame = (
        plain_table(table).replace_schema_metadata({"pandas": written}).to_pandas(split_blocks=True)
    )
    return frame

"""Rows that are not in memory yet: lazy frames, datasets, readers, relations. Only the needed
columns are read.

Contract: the rows are read once per call, batch by batch, in the order in which their library gives
them. A call that needs them in memory raises an error before they take more than their share of it.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import Table

from ..errors import ColumnError, DataError, examples
from .machine import memory_bytes

READER = "a RecordBatchReader"


def refuse_twice(names: Iterable[Any], role: str, wanted: Iterable[Any] | None = None) -> None:
    """Raise where several columns have one name, of those that are wanted, or of all."""
    count = Counter(names)
    asked = count if wanted is None else dict.fromkeys(wanted)
    if twice := [name for name in asked if count[name] > 1]:
        raise ColumnError(
            f"{role} has several columns of one name ({examples(twice)}); expected distinct names"
        )


@dataclass(frozen=True)
class LazyRows:
    """Rows of another library.

    kind : what they are, for messages · schema : the types of all columns · read : returns pieces
    of the rows, with some columns.
    """

    kind: str
    schema: pa.Schema
    read: Callable[[list[str]], Iterable[Any]]

    def batches(self, names: list[str], role: str) -> Iterator[Table]:
        """Yield tables with some columns. A reader without rows was probably read before, which is
        an error."""
        refuse_twice(self.schema.names, role, names)
        n_rows = 0
        for piece in self.read(names):
            table = Table.from_batches([piece]) if isinstance(piece, pa.RecordBatch) else piece
            n_rows += len(table)
            yield table.select(names)
        if not n_rows and self.kind == READER:
            words = (
                "it was read before, or is empty; pass what it is made of, or what "
                "reader.read_all() returns"
            )
            raise DataError(f"{role} is {READER}, which has no rows: {words}")

    def table(self, names: list[str], role: str) -> Table:
        """Return some columns of all rows. Raise an error if they take more than a quarter of the
        memory."""
        held = []
        n_bytes = 0
        limit = memory_bytes(None)
        for table in self.batches(names, role):
            held.append(table)
            n_bytes += sum(
                4 * len(one) if pa.types.is_dictionary(one.type) else one.nbytes
                for one in table.columns
            )
            if n_bytes > limit:
                words = (
                    f"more than {limit / 1e9:.3g} GB, a quarter of memory; rd.evaluate_parquet "
                    "takes it in parts"
                )
                raise DataError(f"{role} is {self.kind} of {words}, within memory_limit=")
        return pa.concat_tables(held) if held else self.schema.empty_table().select(names)


def unwrapped(data: Any) -> Any:
    """Return the frame that one of narwhals holds, and anything else as it is."""
    return data.to_native() if type(data).__module__.startswith("narwhals.") else data


def lazy_rows(data: Any) -> LazyRows | None:
    """Return rows that are not in memory; None if `data` is anything else."""
    data = unwrapped(data)
    package = type(data).__module__.partition(".")[0]
    kind = type(data).__name__
    if isinstance(data, LazyRows):
        return data
    if package == "polars" and kind == "LazyFrame":
        rows = data.collect_schema().to_frame().to_arrow()

        def collected(names: list[str]) -> Any:
            """Return pieces, with plain strings; old versions of polars have all rows in one."""
            chosen = data.select(names)
            in_pieces = hasattr(chosen, "collect_batches")
            pieces = chosen.collect_batches() if in_pieces else [chosen.collect()]
            return (piece.to_arrow() for piece in pieces)

        return LazyRows("a LazyFrame", rows.schema, collected)
    if package in ("duckdb", "_duckdb") and hasattr(data, "project"):
        quoted = {name: '"' + name.replace('"', '""') + '"' for name in data.columns}
        new = hasattr(data, "to_arrow_reader")
        reader = operator.methodcaller("to_arrow_reader" if new else "fetch_arrow_reader")
        read: Any = lambda names: reader(data.project(", ".join(map(quoted.__getitem__, names))))  # noqa: E731
        return LazyRows("a relation of DuckDB", reader(data.limit(0)).schema, read)
    if package == "ibis" and hasattr(data, "to_pyarrow_batches"):
        read = lambda names: data.select(*names).to_pyarrow_batches()  # noqa: E731
        return LazyRows("a table of Ibis", data.schema().to_pyarrow(), read)
    if isinstance(data, pa.RecordBatchReader):
        return LazyRows(READER, data.schema, lambda names: data)
    if package == "pyarrow" and kind == "Scanner":
        return LazyRows("a Scanner", data.projected_schema, lambda names: data.to_batches())
    if package == "pyarrow" and kind.endswith("Dataset"):
        from pyarrow import dataset

        # No rows are read far ahead of their use, and no bytes of a parquet file are kept.
        few: dict[str, Any] = {"batch_readahead": 1, "fragment_readahead": 1}
        if isinstance(getattr(data, "format", None), dataset.ParquetFileFormat):
            few["fragment_scan_options"] = dataset.ParquetFragmentScanOptions(pre_buffer=False)
        read = lambda names: data.to_batches(columns=names, use_threads=False, **few)  # noqa: E731
        return LazyRows("a Dataset", data.schema, read)
    return None

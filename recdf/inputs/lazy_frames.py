"""Rows that are not in memory yet: lazy frames, datasets, readers, relations. Only the needed columns are read.

Contract: the rows are read once per call, batch by batch, in the order in which their library gives them. A call that
needs them in memory raises an error before they take more than their share of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..errors import DataError
from .memory_limit import memory_bytes


@dataclass(frozen=True)
class LazyRows:
    """Rows of another library.

    kind : what they are, for messages · schema : the types of all columns · read : returns pieces of the rows, with
    some columns · once : they can be read a single time.
    """

    kind: str
    schema: pa.Schema
    read: Callable[[list[str]], Iterable[Any]]
    once: bool = False

    def batches(self, names: Sequence[str], role: str) -> Iterator[pa.Table]:
        """Yield tables with some columns. A reader without rows was probably read before, which is an error."""
        none = True
        for piece in self.read(list(names)):
            found = piece.to_arrow() if hasattr(piece, "to_arrow") else piece  # plain strings, where polars has views
            table = pa.Table.from_batches([found]) if isinstance(found, pa.RecordBatch) else pa.table(found)
            none &= not len(table)
            yield table.select(list(names))
        if none and self.once:
            raise DataError(
                f"{role} is {self.kind}, which has no rows: it was read before, since it can be read only once, or is "
                f"empty; pass what it is made of, or {role} = reader.read_all()"
            )

    def table(self, names: Sequence[str], role: str) -> pa.Table:
        """Return some columns of all rows. Raise an error if they take more than a quarter of the memory."""
        held, n_bytes, limit = [], 0, memory_bytes(None)
        for table in self.batches(names, role):
            held.append(table)
            n_bytes += sum(4 * len(one) if pa.types.is_dictionary(one.type) else one.nbytes for one in table.columns)
            if n_bytes > limit:
                again = ", of a new reader" if self.once else ""
                raise DataError(
                    f"{role} is {self.kind} that takes more than {limit / 1e9:.3g} GB, a quarter of the machine's memory; call "
                    f"rd.evaluate_parquet with it{again}, which evaluates it in parts within memory_limit=, or collect it first"
                )
        schema = pa.schema([self.schema.field(name) for name in names])
        return pa.concat_tables(held) if held else schema.empty_table()


def lazy_rows(data: Any) -> LazyRows | None:
    """Return rows that are not in memory; None if `data` is anything else."""
    package, _, rest = type(data).__module__.partition(".")
    if isinstance(data, LazyRows):
        return data
    if package == "narwhals" and hasattr(data, "to_native"):
        return lazy_rows(data.to_native())
    if package == "polars" and hasattr(data, "collect_schema") and hasattr(data, "collect"):
        return _of_polars(data)
    if package in ("duckdb", "_duckdb") and hasattr(data, "project"):
        return LazyRows("a relation of DuckDB", _duckdb_reader(data.limit(0)).schema, lambda names: _duckdb_reader(
            data.project(", ".join('"' + name.replace('"', '""') + '"' for name in names))
        ))  # fmt: skip
    if package == "ibis" and hasattr(data, "to_pyarrow_batches"):
        return LazyRows("a table of Ibis", data.schema().to_pyarrow(), lambda names: (
            data.select(*names).to_pyarrow_batches()
        ))  # fmt: skip
    if isinstance(data, pa.RecordBatchReader):
        return LazyRows("a RecordBatchReader", data.schema, lambda names: data, once=True)
    if package == "pyarrow" and rest == "_dataset":
        if hasattr(data, "projected_schema"):
            return LazyRows("a Scanner", data.projected_schema, lambda names: data.to_batches())
        return LazyRows("a Dataset", data.schema, lambda names: data.to_batches(columns=names))
    return None


def _duckdb_reader(relation: Any) -> Any:
    return (relation.to_arrow_reader if hasattr(relation, "to_arrow_reader") else relation.fetch_arrow_reader)()


def _of_polars(data: Any) -> LazyRows | None:
    if not hasattr(data, "lazy") or hasattr(data, "to_arrow"):
        return None
    import polars

    def read(names: list[str]) -> Any:
        chosen = data.select(names)
        return chosen.collect_batches() if hasattr(chosen, "collect_batches") else [chosen.collect()]

    return LazyRows("a LazyFrame", polars.DataFrame(schema=data.collect_schema()).to_arrow().schema, read)

"""Files that fit in memory are read in several threads and measured as one part, as `evaluate` measures frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd
import pyarrow as pa

from ..evaluation.part import ListRows, Part, PartResult, measure
from ..inputs.progress import Progress
from .file_call import FileCall
from .source import as_frame, labels_as
from .whole_columns import read_whole


def measure_whole(asked: FileCall, progress: Progress) -> PartResult:
    """Read both frames and measure them. The labels have the dtypes that pandas would give them."""
    tables = {role: read_whole(source, asked.names[role], asked.ids[role]) for role, source in asked.sources.items()}
    progress.add(asked.n_rows)
    found = measure(asked.call, Part(as_frame(tables["true"]), as_frame(tables["pred"])))
    if found.measured is None:
        return found
    heads = {role: _head(table, asked.sources[role].schema) for role, table in tables.items()}
    kinds = asked.sources["pred"].schema
    by = found.measured.by
    by = asked.by_frame(
        pa.table({name: labels_as(pa.array(by[name].array), kinds.field(name).type) for name in asked.by})
    )
    rows = {bucket: _labelled(asked, rows, by, heads) for bucket, rows in found.rows.items()}
    return replace(found, measured=replace(found.measured, by=by), rows=rows)


def _head(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the first row, in the types of the files."""
    return pa.table({name: labels_as(table[name].slice(0, 1), schema.field(name).type) for name in table.column_names})


def _labelled(asked: FileCall, rows: ListRows, by: pd.DataFrame, heads: Mapping[str, pa.Table]) -> ListRows:
    """Return the rows of lists, with labels in the dtypes that pandas would give them."""
    labels = pa.table(asked.label_arrays(rows))
    keys = rows.keys
    if asked.given is None:
        keys = asked.key_frame(labels.select(asked.user_cols), heads)
    carried = asked.carried_frame(labels, bool((rows.columns["n_pred"] == 0).any()))
    return replace(rows, keys=keys, by=by, carried={name: carried[name] for name in carried.columns})

"""Files that fit in memory are read in several threads and measured as one part, as `evaluate` measures frames."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from ..evaluation.part import Part, PartResult, measure
from ..inputs.progress import Progress
from .file_labels import FileLabels
from .source import as_frame, labels_as
from .whole_columns import read_whole
from .work import rows_table


def measure_whole(files: FileLabels, progress: Progress, together_rows: int) -> PartResult:
    """Read both frames and measure them. The labels have the dtypes that pandas would give them."""
    needed, sources = files.needed, files.sources
    tables = {
        role: read_whole(source, needed.schemas[role].names, files.ids[role], together_rows)
        for role, source in sources.items()
    }
    progress.add(files.n_rows)
    found = measure(needed.call, Part(as_frame(tables["true"]), as_frame(tables["pred"])))
    if found.measured is None:
        return found
    by = found.measured.by
    if needed.by:
        kinds = sources["pred"].schema
        columns = {name: labels_as(pa.array(by[name].array), kinds.field(name).type) for name in needed.by}
        by = sources["pred"].as_pandas(pa.table(columns))
    ((bucket, rows),) = found.rows.items()
    # The first row, in the types of the files.
    heads = {role: table.slice(0, 1).cast(sources[role].fields(table.column_names)) for role, table in tables.items()}
    keys = [] if needed.given is not None else list(needed.key_fields)
    labels = rows_table(rows, pa.schema([*keys, *(needed.other_fields.field(name) for name in needed.call.carry)]))
    carried = files.carried(labels, bool((rows.columns["n_pred"] == 0).any()))
    rows = replace(
        rows,
        keys=files.keys(labels.select(needed.keys), heads) if keys else rows.keys,
        by=by,
        carried={name: carried[name] for name in carried.columns},
    )
    return replace(found, measured=replace(found.measured, by=by), rows={bucket: rows})

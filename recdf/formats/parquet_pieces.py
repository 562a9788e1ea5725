"""Files of any format as parquet files, piece by piece, so that a frame may be larger than memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .file_sets import FileSet, possible_kinds, settle_ids, typed


def as_parquet(
    paths: Mapping[str, Any], keys: Sequence[str], by: Sequence[str], names: Mapping[str, Any], folder: Any
) -> dict[str, Any]:
    """Write files of other formats as parquet files, with the types of `read_files`, and return where each frame is.

    Files are read piece by piece, twice where their columns have no types. Parquet files of this machine stay where
    they are.
    """
    from pyarrow import parquet  # costs import time that other commands need not pay

    sets = {name: replace(FileSet.of(path), role=name, names=names[name] or None) for name, path in paths.items()}
    ids = [*keys, *by]
    kinds = {name: possible_kinds(files.pieces(), ids) for name, files in sets.items() if files.is_text}
    settle_ids(kinds, [next(files.pieces()).schema for name, files in sets.items() if name not in kinds], keys)
    found = dict(paths)
    for name, files in sets.items():
        if not files.is_plain_parquet:
            found[name] = os.path.join(folder, name)
            os.mkdir(found[name])
            rows = 0
            for table in files.pieces():
                whole = typed(table, kinds.get(name, {}), ids, files, rows)
                parquet.write_table(whole, os.path.join(found[name], f"{rows:015}.parquet"), compression="zstd")
                rows += len(table)
    return found

"""Apply `from_impressions` to a log that is larger than memory: to one part of the users at a time, into two files.

Contract: a hash of the user distributes the rows of the log and of its events to parts, so that a part has all rows of
its users. Each part is attributed alone. The parts together have the rows of `true` and `pred` that one call returns,
one part after another.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import DuplicateWarning, NoOverlapWarning, RecdfError
from ..evaluation.publishing import staged_files
from ..inputs.impressions import Impressions, from_impressions, warn_of_counts
from .source import Source, as_frame
from .store import Store, memory_bytes, part_of

__all__ = ["FILES", "deal_impressions"]

FILES = ("true.parquet", "pred.parquet", "impressions.json")

BATCH_ROWS = 2**18
# Attribution needs this many bytes for each byte of a part, the part itself included.
BYTES_PER_BYTE = 6
TEXT_BYTES = 32  # estimated size of a string


def deal_impressions(
    paths: Mapping[str, Any], out: Path, *, user_col: str, memory_limit: int | str | None = None, **options: Any
) -> dict[str, Any]:
    """Write `true.parquet`, `pred.parquet` and `impressions.json` (rules and counts) into a folder.

    Parameters
    ----------
    paths : mapping
        The paths by role: "log", and "clicks" and "purchases" if there are any. A path is a parquet file, a folder of
        such files, or a glob.
    out : Path
        Folder to write to. It is made if it does not exist. The three files replace older ones of the same names in
        one step, and if the call fails, none of them is replaced.
    user_col : str
        Column of the user, which has the same name in all files.
    memory_limit : int or str, optional
        The most memory to use: bytes, or text such as "1GB". By default it is a quarter of the machine's memory.
    **options
        The options of `from_impressions`.

    Returns
    -------
    dict
        The spec of `from_impressions`, with the counts of all parts together.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError
        For the same reasons as in `from_impressions`. If the log is in several parts, counts are those of one part, and
        the message says so.
    FileNotFoundError
        If a path matches no file.
    """
    sources = {role: Source(path, role) for role, path in paths.items()}
    names = {role: list(source.schema.names) for role, source in sources.items()}
    n_parts = _n_parts(sources, memory_bytes(memory_limit))
    with ExitStack() as stack:
        folder = stack.enter_context(staged_files(out, FILES, overwrite=True))
        stores = {
            role: stack.enter_context(closing(Store(folder.parent / role, n_parts, source.fields(names[role]))))
            for role, source in sources.items()
        }
        for role, source in sources.items():
            if user_col not in names[role]:  # from_impressions raises the error
                from_impressions(**_heads(sources), user_col=user_col, **options)
            for table in source.batches(names[role], BATCH_ROWS):
                stores[role].add(table, _parts(table[user_col], n_parts))
        spec = _write(_measured(stores, n_parts, {"user_col": user_col, **options}), folder)
    warn_of_counts(spec["counts"], [role for role in sources if role != "log"])
    return spec


def _heads(sources: Mapping[str, Source]) -> dict[str, Any]:
    """Return frames without rows, on which `from_impressions` raises its errors about columns."""
    return {role: as_frame(source.schema.empty_table()) for role, source in sources.items()}


def _n_parts(sources: Mapping[str, Source], limit: int) -> int:
    """Return the number of parts that is needed for one part to fit into memory."""
    width = {
        role: sum(field.type.bit_width / 8 if _is_fixed(field.type) else TEXT_BYTES for field in source.schema)
        for role, source in sources.items()
    }
    n_bytes = sum(source.n_rows * width[role] for role, source in sources.items())
    return int(min(max(np.ceil(BYTES_PER_BYTE * n_bytes / limit), 1), 2**15))


def _is_fixed(kind: Any) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_temporal, pa.types.is_boolean)
    return any(test(kind) for test in tests)


def _parts(user: pa.ChunkedArray, n_parts: int) -> np.ndarray:
    """Return the part of each row. Rows without a user go to the first part, which refuses or drops them."""
    part = np.zeros(len(user), np.uint16)
    if not user.null_count:
        return part_of([user], n_parts)
    known = user.is_valid().to_numpy().astype(bool)
    part[known] = part_of([user.filter(pa.array(known))], n_parts)
    return part


def _measured(stores: Mapping[str, Store], n_parts: int, options: dict[str, Any]) -> Iterator[Impressions]:
    """Yield the two tables of each part that has rows."""
    for part in range(n_parts):
        frames: dict[str, Any] = {role: as_frame(store.read(part)) for role, store in stores.items()}
        if n_parts > 1 and not any(map(len, frames.values())):
            continue
        try:
            with warnings.catch_warnings():
                for category in (NoOverlapWarning, DuplicateWarning):  # `deal_impressions` warns once for all parts
                    warnings.simplefilter("ignore", category)
                found = from_impressions(**frames, **options)
        except RecdfError as error:
            if n_parts == 1:
                raise
            where = f"found in one of {n_parts:,} parts of the users; counts are of that one"
            raise type(error)(f"{error} ({where})") from error
        yield found


def _write(parts: Iterator[Impressions], folder: Path) -> dict[str, Any]:
    """Write the tables of one part after another, and return the spec with the counts of all parts."""
    import pyarrow.parquet as pq  # here, since it would make the import of recdf slower

    spec: dict[str, Any] | None = None
    writers: dict[str, Any] = {}
    with ExitStack() as stack:
        for found in parts:
            for name, frame in (("true", found.true), ("pred", found.pred)):
                table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
                if name not in writers:
                    writers[name] = stack.enter_context(pq.ParquetWriter(folder / f"{name}.parquet", table.schema))
                writers[name].write_table(table.cast(writers[name].schema))
            spec = found.spec if spec is None else _added(spec, found.spec)
    assert spec is not None
    (folder / "impressions.json").write_text(json.dumps(spec, indent=1), encoding="utf-8")
    return spec


def _added(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    """Add the specs of two parts."""
    positions = dict(one["positions"])
    positions["start"] = min(positions["start"], two["positions"]["start"])
    for name in ("lists_with_holes", "lists_with_ties"):
        positions[name] += two["positions"][name]
    return {**one, "positions": positions, "counts": _sums(one["counts"], two["counts"])}


def _sums(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    found = dict(one)
    for name, value in two.items():
        if isinstance(value, dict):
            found[name] = _sums(one.get(name, {}), value)
        else:
            found[name] = one.get(name, 0) + value
    return found

"""Apply `from_impressions` to a log that is larger than memory: to one part of the users at a time,
into two files.

Contract: a hash of the user distributes the rows of the log and of its events to parts, so that a
part has all rows of its users. Each part is attributed alone. The parts together have the rows of
`true` and `pred` that one call returns, one part after another.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import DuplicateWarning, LogWarning, NoOverlapWarning, RecdfError, warn_user
from ..evaluation.storage import local_path
from ..inputs.machine import memory_bytes
from ..logs.event_checks import skews
from ..logs.impressions import Impressions, from_impressions, warn_of_counts
from ..logs.log_checks import SPEC_FILE, moved_since, read_spec
from ..logs.persons import with_persons
from ..logs.times import Clock
from ..publishing import published
from .files_run import BucketCells, Memory
from .packed import bucket_of, dealt
from .source import Source, frame_of_arrow

IMPRESSION_FILES = ("true.parquet", "pred.parquet", SPEC_FILE)

BATCH_ROWS = 2**18
# Attribution needs this many bytes for each byte of a part, the part itself included.
BYTES_PER_BYTE = 6
MOST_LOG_BUCKETS = 2**15


def impressions_parquet(
    log_path: Any,
    out: Any,
    *,
    clicks_path: Any = None,
    purchases_path: Any = None,
    refunds_path: Any = None,
    persons_path: Any = None,
    user_col: str = "user_id",
    memory_limit: int | str | None = None,
    overwrite: bool = False,
    against: Any = None,
    **options: Any,
) -> dict[str, Any]:
    """Turn parquet files of a log of impressions, which may be larger than memory, into files of
    `true` and `pred`.

    The users are divided into parts by a hash of their id, and `from_impressions` attributes the
    events of one part after another. `rd.evaluate_parquet` reads what is written.

    Parameters
    ----------
    log_path : path, or list of paths
        Parquet files with one row per impression: a file, a folder, or a glob such as
        "log/*.parquet".
    out : path
        Folder for `true.parquet`, `pred.parquet` and `impressions.json`, the record of rules and
        counts. It is made if it does not exist. The three files appear in one step, and if the call
        fails, older ones stay as they are.
    clicks_path, purchases_path, refunds_path : path, or list of paths, optional
        Parquet files with one row per event: user, item and time.
    persons_path : path, or list of paths, optional
        Parquet files with one row per device: `user_col` and `person_col`. They must fit in memory.
    user_col : str, default "user_id"
        Column of the user, which has the same name in all files.
    memory_limit : int or str, optional
        Memory to use: bytes, or text such as "1GB". By default it is a quarter of the machine's
        memory.
    overwrite : bool, default False
        Replace files that `out` already holds.
    against : path, optional
        `impressions.json` of an earlier run, or its folder. A share that moved since then (of
        events attributed, logged twice or unknown, ...) is a `LogWarning`, and is in `moved` of the
        spec: the difference is beyond chance (p < 0.001 of a test of two shares, after Holm's
        correction over all shares), and the odds of the share changed by a quarter or more.
    **options
        The other options of `from_impressions`: columns, and rules of attribution.

    Returns
    -------
    dict
        The spec of `from_impressions`, with the counts of all parts together. `impressions.json`
        holds it too.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError
        For the same reasons as in `from_impressions`. If the log is in several parts, counts are
        those of one part, and the message says so.
    FileNotFoundError
        If a path matches no file.
    FileExistsError
        If `out` holds one of the files and `overwrite` is False.

    Notes
    -----
    Use it for a log that does not fit in memory; the command `recdf impressions` does the same. For
    frames in memory, use `from_impressions`. The rows are those of one call of it, one part of the
    users after another.

    Examples
    --------
    >>> import pathlib, tempfile, pandas as pd, recdf as rd
    >>> log = pd.DataFrame(
    ...     {
    ...         "user_id": [1, 1, 2],
    ...         "session_id": 1,
    ...         "item_id": ["tea", "mug", "tea"],
    ...         "position": [0, 1, 0],
    ...         "clicked": [False, True, False],
    ...     }
    ... )
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     log.to_parquet(folder / "log.parquet")
    ...     spec = rd.logs.impressions_parquet(
    ...         folder / "log.parquet", folder / "lists", clicked_col="clicked"
    ...     )
    ...     files = folder / "lists/true.parquet", folder / "lists/pred.parquet"
    ...     result = rd.evaluate_parquet(*files, "hits@10", **spec["options"])
    >>> spec["counts"]["impressions"], result.per_user["hits@10"].tolist()
    (3, [1.0, 0.0])
    """
    given = {
        "log": log_path,
        "clicks": clicks_path,
        "purchases": purchases_path,
        "refunds": refunds_path,
        "persons": persons_path,
    }
    older = None if against is None else read_spec(against)  # `out` may replace it
    sources = {role: Source(path, role) for role, path in given.items() if path is not None}
    target, limit, options = (
        local_path(out),
        memory_bytes(memory_limit),
        {"user_col": user_col, **options},
    )
    person_col, persons = options.get("person_col"), None
    owned = (
        person_col is None
        if persons_path is None
        else person_col in sources["persons"].schema.names
    )
    if not owned or not all(user_col in source.schema.names for source in sources.values()):
        heads: dict[str, Any] = {
            role: frame_of_arrow(source.schema.empty_table()) for role, source in sources.items()
        }
        from_impressions(**heads, **options)  # raises the error of the column
    n_bytes = sum(
        source.n_rows * source.row_bytes(source.schema.names) for source in sources.values()
    )
    n_parts = int(min(BYTES_PER_BYTE * n_bytes / limit + 1, MOST_LOG_BUCKETS))
    if persons_path is not None and n_parts > 1:
        source = sources["persons"]
        persons = frame_of_arrow(
            pa.concat_tables(
                [source.schema.empty_table(), *source.batches(source.schema.names, BATCH_ROWS)]
            )
        )
    to_user = partial(_user_column, persons, (user_col, person_col, options.get("time_col")))
    memory = Memory(np.inf if n_parts == 1 else 0)
    with ExitStack() as stack:
        files = [target / name for name in IMPRESSION_FILES]
        place = stack.enter_context(published(files, overwrite=overwrite))
        folder = place(files[0]).parent
        cells = {}
        for role, source in sources.items():
            names = source.schema.names
            cells[role] = stack.enter_context(
                closing(BucketCells(folder, n_parts, source.fields(names), memory))
            )
            tables = source.batches(names, BATCH_ROWS)
            cells[role].extend(
                dealt(table, _buckets(to_user(table), n_parts), n_parts) for table in tables
            )
        spec = _write_parts(_measured_parts(cells, n_parts, options), folder)
        if older is not None:
            spec["moved"] = moved_since(spec, older)
        text = json.dumps(spec, indent=1)
        (folder / SPEC_FILE).write_text(text, encoding="utf-8")
    warn_of_counts(spec)
    for sentence in spec.get("moved", []):
        warn_user(f"⟦against={against!s}⟧: {sentence}", LogWarning)
    return spec


def _user_column(
    persons: pd.DataFrame | None, names: tuple[str, Any, Any], table: pa.Table
) -> pa.ChunkedArray:
    """Return the user of each row, or the person if devices are mapped to persons."""
    if persons is None:
        return table[names[0]]
    devices = {"log": frame_of_arrow(table.select([names[0]]))}
    return pa.chunked_array(
        [pa.array(with_persons(devices, persons, *names)[0]["log"][names[1]], from_pandas=True)]
    )


def _buckets(user: pa.ChunkedArray, n_buckets: int) -> np.ndarray:
    """Return the bucket of each row. Rows without a user are in the first one, which refuses or
    drops them."""
    bucket = bucket_of(pa.table({"user": user}), ["user"], "user", n_buckets)
    bucket[user.is_null().to_numpy()] = 0
    return bucket


def _measured_parts(
    cells: Mapping[str, BucketCells], n_parts: int, options: dict[str, Any]
) -> Iterator[Impressions]:
    """Yield the two tables of each part that has rows."""
    for part in range(n_parts):
        frames: dict[str, Any] = {
            role: frame_of_arrow(one.read(part)) for role, one in cells.items()
        }
        if n_parts > 1 and not any(map(len, frames.values())):
            continue
        try:
            with warnings.catch_warnings():
                for category in (NoOverlapWarning, DuplicateWarning, LogWarning):
                    warnings.simplefilter("ignore", category)  # the caller warns once for all parts
                found = from_impressions(**frames, **options)
        except RecdfError as error:
            if n_parts == 1:
                raise
            where = f"found in one of {n_parts:,} parts of the users; counts are of that one"
            raise type(error)(f"{error} ({where})") from error
        yield found


def _write_parts(parts: Iterator[Impressions], folder: Path) -> dict[str, Any]:
    """Write the tables of one part after another, and return the spec with the counts of all
    parts."""
    import pyarrow.parquet as pq  # here, since it would make the import of recdf slower

    spec: dict[str, Any] | None = None
    writers: dict[str, Any] = {}
    ahead: dict[str, list[np.ndarray]] = {}
    with ExitStack() as stack:
        for found in parts:
            for name, frame in (("true", found.true), ("pred", found.pred)):
                table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(
                    None
                )
                if name not in writers:
                    writers[name] = stack.enter_context(
                        pq.ParquetWriter(folder / f"{name}.parquet", table.schema)
                    )
                writers[name].write_table(table.cast(writers[name].schema))
            spec = found.spec if spec is None else _added(spec, found.spec)
            for name, seconds in found._ahead.items():
                ahead.setdefault(name, []).append(seconds)
    assert spec is not None
    if spec["clock"] is not None:
        together = {name: np.concatenate(parts) for name, parts in ahead.items()}
        spec["ahead"] = skews(together, Clock(**spec["clock"]))
    return spec


def _added(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    """Add the specs of two parts."""
    positions = dict(one["positions"])
    positions["start"] = min(positions["start"], two["positions"]["start"])
    for name in ("lists_with_holes", "lists_with_ties"):
        positions[name] += two["positions"][name]
    return {
        **one,
        "positions": positions,
        "first_copies": {
            name: [row for spec in (one, two) for row in spec["first_copies"].get(name, [])][:3]
            for name in one["first_copies"] | two["first_copies"]
        },
        "counts": _summed_counts_of_parts(one["counts"], two["counts"]),
    }


def _summed_counts_of_parts(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    return one | {
        name: _summed_counts_of_parts(one.get(name, {}), value)
        if isinstance(value, dict)
        else one.get(name, 0) + value
        for name, value in two.items()
    }

"""Apply `from_impressions` to a log that is larger than memory: to one part of the users at a time,
into two files.

Contract: a hash of the user distributes the rows of the log and of its events to parts, so that a
part has all rows of its users. Each part is attributed alone. The parts together have the rows of
`true` and `pred` that one call returns, one part after another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import LogWarning, RecdfError, warn_user
from ..evaluation.finish import told
from ..evaluation.part import Failure
from ..evaluation.storage import local_path
from ..inputs.machine import memory_bytes
from ..logs.impression_rows import LogInParts, Rules
from ..logs.impressions import from_impressions
from ..logs.log_checks import SPEC_FILE, moved_since, read_spec
from ..publishing import published
from .dealt_logs import (
    OfUsers,
    Persons,
    check_schemas,
    joint_schemas,
    packing_of,
    schemas_of_tables,
    table_of,
    without_tables,
)
from .engine_methods import Here
from .files_run import BucketCells, Memory
from .packed import HEAD_LENGTH, dealt
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
    target, limit = local_path(out), memory_bytes(memory_limit)
    with ExitStack() as stack:
        files = [target / name for name in IMPRESSION_FILES]
        place = stack.enter_context(published(files, overwrite=overwrite))
        log = LogOfFiles(sources, place(files[0]).parent, limit)
        roles: dict[str, Any] = dict.fromkeys(sources, log)
        spec = from_impressions(**roles, user_col=user_col, **options).spec
        if older is not None:
            spec["moved"] = moved_since(spec, older)
        text = json.dumps(spec, indent=1)
        (log.folder / SPEC_FILE).write_text(text, encoding="utf-8")
    for sentence in spec.get("moved", []):
        warn_user(f"⟦against={against!s}⟧: {sentence}", LogWarning)
    return spec


class LogOfFiles(LogInParts):
    """A log and its events in files. The tables of one part after another are written to a
    folder."""

    def __init__(self, sources: Mapping[str, Source], folder: Path, limit: int) -> None:
        self.sources, self.folder = sources, folder
        n_bytes = sum(one.n_rows * one.row_bytes(one.schema.names) for one in sources.values())
        self.n_parts = int(min(BYTES_PER_BYTE * n_bytes / limit + 1, MOST_LOG_BUCKETS))

    def run(self, work: OfUsers, rules: Rules) -> Any:
        import pyarrow.parquet as pq  # here, since it would make the import of recdf slower

        own = {role: source.fields(source.schema.names) for role, source in self.sources.items()}
        empty = check_schemas(work, rules, joint_schemas(own, rules), self._heads)
        schemas = schemas_of_tables(empty)
        persons, total = self._persons(rules), without_tables(empty)
        with ExitStack() as stack:
            cells = {
                role: stack.enter_context(closing(self._dealt(role, rules, schema, persons)))
                for role, schema in own.items()
            }
            writers = {
                name: stack.enter_context(pq.ParquetWriter(self.folder / f"{name}.parquet", schema))
                for name, schema in schemas.items()
            }
            for part in range(self.n_parts):
                frames = {role: frame_of_arrow(one.read(part)) for role, one in cells.items()}
                if self.n_parts > 1 and not any(map(len, frames.values())):
                    continue
                try:
                    found = work(frames)
                except RecdfError as error:
                    raise told(Failure(error, part), self.n_parts, "users") from error
                for name, schema in schemas.items():
                    writers[name].write_table(table_of(found, name, schema))
                total += without_tables(found)
        return total

    def _heads(self) -> dict[str, Any]:
        return {
            role: frame_of_arrow(next(source.batches(source.schema.names, HEAD_LENGTH)))
            for role, source in self.sources.items()
            if source.n_rows
        }

    def _persons(self, rules: Rules) -> Here | None:
        """Return the persons, which tell the part of a row, where there are several parts."""
        if "persons" not in self.sources or self.n_parts == 1:
            return None
        source = self.sources["persons"]
        rows = source.batches(source.schema.names, BATCH_ROWS)
        table = pa.concat_tables([source.schema.empty_table(), *rows])
        return Here(Persons(frame_of_arrow(table), rules))

    def _dealt(
        self, role: str, rules: Rules, schema: pa.Schema, persons: Here | None
    ) -> BucketCells:
        """Return the rows of a frame by part, in their order."""
        packing = packing_of(rules, schema, self.n_parts, persons)
        memory = Memory(np.inf if self.n_parts == 1 else 0)
        cells = BucketCells(self.folder, self.n_parts, schema, memory)
        rows = self.sources[role].batches(schema.names, BATCH_ROWS)
        cells.extend(dealt(table, packing.buckets(table), self.n_parts) for table in rows)
        return cells

"""Raw logs, and lists to be checked, whose users are in parts: deal the rows of all frames by user,
run a function on each bucket of users, and add up what it returns.

Contract: a hash of the user, or of the person, decides the bucket of a row, so that a bucket has
all rows of its users. `from_impressions`, `check_log` and the findings of `check` that add up run
on each bucket as they do in memory. Their counts are added; an error of a bucket is raised by the
call.

    log, clicks, ... ─ each: pack ─► cells by bucket ─ meet: attribute ─► counts ─ add up ─► spec
                                                    └ meet: attribute ─► true, pred

The rows are in frames of an engine, or in files (`impressions_parquet`). Files are attributed one
part of the users after another. The parts together have the rows of `true` and `pred` that one call
returns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pandas import DataFrame
from pyarrow import Schema, Table

from ..diagnostics.data_checks import (
    check_options,
    columns_to_check,
    findings_of_parts,
    findings_of_users,
)
from ..docstrings import says_as
from ..errors import LogWarning, OptionError, warn_user
from ..evaluation.storage import local_path
from ..evaluation.summary_rows import common_type
from ..inputs.constraints import check_value
from ..inputs.frames import id_frame
from ..inputs.machine import memory_bytes
from ..inputs.options import ByName, Names, as_columns
from ..logs.impression_rows import LogInParts, Rules, raw_frame, with_persons
from ..logs.impressions import Impressions, from_impressions
from ..logs.log_checks import SPEC_FILE, moved_since, read_spec
from ..metrics.call import check_k
from ..publishing import published
from .buckets import (
    HEAD_LENGTH,
    Packing,
    RowsByRole,
    Schemas,
    add_in_pairs,
    arrow_table_of,
    ascending,
    bucket_of,
    cast_table,
)
from .engine_contract import no_order, opened
from .engine_run import distinct_values, watched
from .files_run import BATCH_ROWS, files_engine
from .in_buckets import InBuckets
from .needed import id_kinds
from .source import Source, frame_of_arrow, plain_schema

Found = TypeVar("Found")
OfUsers = Callable[[ByName], Any]


@dataclass(frozen=True, kw_only=True)
class LogPacking(Packing):
    """Deal the rows of a log or of its events, as `role` says, by user, or, where `persons` gives
    the frame of all devices, by the person of a device."""

    role: str
    rules: Rules
    persons: Any

    def buckets(self, table: Table) -> np.ndarray:
        if self.persons is None:
            return super().buckets(table)
        (device,) = self.keys
        person = self.rules.user_col
        devices = {self.role: frame_of_arrow(table.select([device]))}
        found, _ = with_persons(devices, opened(self.persons), device, person, self.rules.time_col)
        users = pa.array(found[self.role][person].array, from_pandas=True)
        rows = pa.table({"user": users, "spread": table[self.spread]})
        return bucket_of(rows, ["user"], "spread", self.n_buckets)


def dealt_log(
    engine: Any,
    frames: ByName,
    rules: Rules,
    n_buckets: int,
    work: OfUsers,
    head: Callable[[Any, Names, int], Table],
    persons: Table | None,
) -> tuple[Any, InBuckets]:
    """Deal the rows of a log and of its events by user, or by the persons of all devices. Rows
    without a user are spread by their item.

    Return also the result of `work` on no rows, which raises the errors that need none. Where ids
    or times of two frames are of different kinds, it gets some rows (`head`) for the message: a
    bucket might have the rows of one of the frames only.
    """
    schemas = joint_schemas(
        {
            role: one.schema if isinstance(one, Table) else plain_schema(engine.schema(one))
            for role, one in frames.items()
        },
        rules,
    )
    empty = work({role: frame_of_arrow(one.empty_table()) for role, one in schemas.items()})
    shared = (rules.device_col, rules.user_col, rules.item_col, rules.time_col, *rules.list_cols)
    for name in filter(None, shared):
        if len({*id_kinds(schemas, name).values()}) > 1:
            some = {
                role: one if isinstance(one, Table) else head(one, schemas[role].names, HEAD_LENGTH)
                for role, one in frames.items()
            }
            work({role: frame_of_arrow(one) for role, one in some.items()})
    by = None if persons is None else engine.sent(frame_of_arrow(persons))
    user = rules.device_col or rules.user_col
    packings = {}
    for role, schema in schemas.items():
        if isinstance(frames[role], Source):  # each part compares the types that files have
            schema = frames[role].schema
        spread = rules.item_col if rules.item_col in schema.names else user
        how = [user], spread, n_buckets, schema
        named = "log" if role == "persons" else role  # each device there has its person
        packings[role] = LogPacking(*how, role=named, rules=rules, persons=by)
    return empty, InBuckets(engine, frames, packings)


def joint_schemas(schemas: Schemas, rules: Rules) -> dict[str, Schema]:
    """Return the columns of each frame. Labels that end in one column of a table get one type."""
    joint = [(rules.device_col, rules.user_col)] if rules.device_col else []
    if rules.unattributed == "true":
        joint += [(name, name) for name in (rules.user_col, rules.item_col, *rules.source_lists)]
    kinds: dict[Any, pa.DataType] = {}
    for names in joint:
        own = [one.field(name).type for one in schemas.values() for name in {*names} & {*one.names}]
        kind = common_type(own)
        kinds |= dict.fromkeys(names, kind) if kind is not None else {}
    return {
        role: pa.schema([one.with_type(kinds.get(one.name, one.type)) for one in fields])
        for role, fields in schemas.items()
    }


def on_users(
    _: int, rows: RowsByRole, work: OfUsers, rules: Rules, keep: Callable[[Any], Any]
) -> Any:
    """Run `work` on the users of one bucket, and `keep` a part of what it returns. The order of
    rows follows from their values alone."""
    frames = {}
    for role, table in rows.items():
        if role != "persons":
            first = [one for one in (rules.time_col, rules.rank_col) if one in table.column_names]
            names = list(dict.fromkeys([*first, *table.column_names]))
            table = ascending(table.select(names)).select(table.column_names)
        frames[role] = frame_of_arrow(table)
    return keep(work(frames))


def schemas_of_tables(found: Any) -> dict[str, Schema]:
    """Return the columns of both tables that impressions have; findings have none."""
    names = ("true", "pred") if isinstance(found, Impressions) else ()
    return {
        name: plain_schema(Schema.from_pandas(getattr(found, name), preserve_index=False))
        for name in names
    }


def table_of(found: Impressions, name: str, schema: Schema) -> Table:
    """Return one of both tables of impressions, with these columns."""
    return Table.from_pandas(getattr(found, name), preserve_index=False).cast(schema)


def without_tables(result: Any) -> Any:
    """Return what is added up over buckets: counts of impressions, or findings."""
    empty = DataFrame()
    return replace(result, true=empty, pred=empty) if isinstance(result, Impressions) else result


IMPRESSIONS_SAY = """\
Turn a raw log of impressions in {Engine} into `true` and `pred`, as `rd.from_impressions` does.

Parameters
----------
log, clicks, purchases, refunds : DataFrame of {Engine}
    As in `rd.from_impressions`. The rows of a {Engine} frame have no order: where the order of two
    rows would decide, the values of their columns do, from the smallest on.
persons : DataFrame of pandas or {Engine}, optional
    One row per device. It must fit in memory.
partitions : int, optional
    Number of buckets that the users are distributed to, as in `rd.{space}.evaluate`.
**options
    The other options of `rd.from_impressions`.

Returns
-------
Impressions
    `.true` and `.pred` are {Engine} frames for `rd.{space}.evaluate`, with `**lists.options`. They
    are computed from the log whenever they are used: write them, or `persist` them, if you use them
    several times. `.events` and `.spec` are in memory, and those of `rd.from_impressions`.

Raises
------
ColumnError, IdTypeError, NullKeyError, DataError, OptionError
    As `rd.from_impressions`. Where a message counts rows, they are those of one bucket.
EngineError
    If a job of {Engine} fails.

Examples
--------
>>> import recdf as rd  # doctest: +SKIP
>>> lists = rd.{space}.from_impressions(log, clicks=clicks, time_col="time")  # doctest: +SKIP
>>> rd.{space}.evaluate(*lists, "ctr", **lists.options).summary  # doctest: +SKIP"""

LOG_CHECK_SAYS = """\
Find what is unusual in a raw log in {Engine}: those findings of `rd.logs.check_log` that add up
over users.

The arguments are those of `rd.{space}.from_impressions` and `rd.logs.check_log`. Findings that
compare all users or all rows are left out: implausible click rates, a user with over 5 % of the
impressions, hours without a row, clocks that differ by hours, positions that do not start at 1, and
propensities that do not fit the actions.

Returns
-------
DataFrame
    As `rd.logs.check_log` returns it, in memory. The examples are those of the first buckets.

Examples
--------
>>> rd.{space}.check_log(log, clicks=clicks)  # doctest: +SKIP"""


def on_engine(
    function: Callable[..., Found], engine_of: Callable[..., AbstractContextManager[Any]], name: str
) -> Callable[..., Found]:
    """Return `from_impressions` or `check_log` for frames of an engine."""

    def of_log(
        log: Any,
        *,
        clicks: Any = None,
        purchases: Any = None,
        refunds: Any = None,
        persons: Any = None,
        partitions: int | None = None,
        **options: Any,
    ) -> Found:
        frames = {"log": log, "clicks": clicks, "purchases": purchases, "refunds": refunds}
        with engine_of(frames, options) as engine:
            engine, given, n_buckets = watched(engine, frames, partitions)
            if persons is not None:
                given["persons"] = persons_of_engine(engine, persons)
            found = LogOfEngine(engine, given, n_buckets)
            return function(**dict.fromkeys(given, found), **options)

    of_log.__name__ = of_log.__qualname__ = function.__name__
    of_log.__doc__ = IMPRESSIONS_SAY if function is from_impressions else LOG_CHECK_SAYS
    return says_as({"Engine": name, "space": name.lower()})(of_log)


def persons_of_engine(engine: Any, given: Any) -> Table:
    """Return the persons in memory. Those of a frame of the engine get an order."""
    persons = engine.local(given)
    table = arrow_table_of(raw_frame(persons, "persons"), "persons has")
    table = cast_table(table, plain_schema(table.schema))
    return table if persons is given else ascending(table)


@dataclass(frozen=True)
class LogOfEngine(LogInParts):
    """A log and its events in frames of an engine, by role. The persons are in memory."""

    engine: Any
    frames: dict[str, Any]
    n_buckets: int

    def run(self, work: OfUsers, rules: Rules) -> Any:
        engine = self.engine
        if rules.rank_col is None and rules.time_col is None:
            raise OptionError(
                "⟦rank_col=None⟧ ranks lists by time, or by row where there are no times, and a "
                f"{engine.name} frame has no order of rows; pass ⟦+time_col=⟧ or ⟦+rank_col=⟧"
            )
        persons = self.frames.get("persons")
        how = self.frames, rules, self.n_buckets, work, engine.head, persons
        empty, dealt = dealt_log(engine, *how)
        of_users = partial(on_users, work=work, rules=rules)
        sums, _ = dealt.results_of_buckets(partial(of_users, keep=without_tables))
        total = add_in_pairs([without_tables(empty), *sums])
        of_tables = schemas_of_tables(empty)
        if not of_tables:
            return total
        # The tables without rows have the dtypes that they have in memory.
        none = {role: schema.empty_table() for role, schema in dealt.schemas.items()}
        likes = work(
            {
                role: none[role].to_pandas()
                if isinstance(frame, Table)
                else engine.labels(none[role], frame)
                for role, frame in self.frames.items()
            }
        )
        tables = {}
        for name, kinds in of_tables.items():
            like = getattr(likes, name)
            like.attrs = {}
            keep = partial(table_of, name=name, schema=kinds)
            table = dealt.tables(engine.sent(partial(of_users, keep=keep)), kinds)
            tables[name] = engine.typed(table, like)
        return replace(total, **tables)


CHECK_SAYS = """\
Find what is unusual in frames of {Engine}, and how it affects the metrics: those findings of
`rd.check` that add up over users.

Parameters
----------
true, pred, log : DataFrame of {Engine}
    As in `rd.check`.
k : int, default 10
    Cut-off that the findings refer to.
items : DataFrame, list, Series or Index, optional
    Catalogue, which must fit in memory.
partitions : int, optional
    Number of buckets that the users are distributed to, as in `rd.{space}.evaluate`.
**options
    The shared options, as in `rd.check`.

Returns
-------
DataFrame
    As `rd.check` returns it, in memory: null ids, scores and ranks, broken relevance and weights,
    rows twice, lists without recommendations, truth or relevant items, short lists, ties, ranks
    that do not start at 1 or have gaps, items outside the catalogue or in the log already. What
    needs all rows together is left out: ids without overlap, columns that nothing uses, candidates
    that look sampled, orders that contradict each other, and what ties do to the metrics. The
    examples are those of the first buckets.

Examples
--------
>>> rd.{space}.check(true, pred, by="model")  # doctest: +SKIP"""


def check_on_engine(
    engine_of: Callable[..., AbstractContextManager[Any]], name: str
) -> Callable[..., DataFrame]:
    """Return `check` for frames of an engine."""

    def check(
        true: Any,
        pred: Any,
        k: int = 10,
        *,
        log: Any = None,
        items: Any = None,
        partitions: int | None = None,
        **options: Any,
    ) -> DataFrame:
        settled = check_options(options)
        k = check_k(k)
        frames = {"true": true, "pred": pred} | ({} if log is None else {"log": log})
        with engine_of(frames, options) as engine:
            engine, given, n_buckets = watched(engine, frames, partitions)
            if items is not None:
                items = id_frame(engine.local(items), "items", [settled.item_col]).dropna()
            schemas = {role: plain_schema(engine.schema(one)) for role, one in given.items()}
            nothing = {role: one.empty_table() for role, one in schemas.items()}
            empty = {role: frame_of_arrow(one) for role, one in nothing.items()}
            columns = columns_to_check(empty, settled)
            keys = as_columns(settled.user_col)
            by = as_columns(settled.by)
            item = settled.item_col
            if set(columns["pred"]) == {*keys, *by, item}:
                raise no_order(settled, empty["pred"], engine.name)
            of_by = pa.schema([schemas["pred"].field(one) for one in by])
            by_values = frame_of_arrow(distinct_values(engine, pred, of_by)) if by else None
            read = {role: one.select(columns[role]) for role, one in nothing.items()}
            packings = {
                role: Packing(keys, item, n_buckets, one.schema) for role, one in read.items()
            }
            work = partial(findings_of_rows, k=k, options=settled, items=items, by_values=by_values)
            parts, _ = InBuckets(engine, given, packings).results_of_buckets(work)
            return findings_of_parts(add_in_pairs(parts or [work(0, read)]))

    check.__doc__ = CHECK_SAYS
    check.__qualname__ = check.__name__
    return says_as({"Engine": name, "space": name.lower()})(check)


def findings_of_rows(_: int, rows: RowsByRole, **how: Any) -> Any:
    """Check the rows of one bucket of users."""
    return findings_of_users({role: frame_of_arrow(one) for role, one in rows.items()}, **how)


IMPRESSION_FILES = ("true.parquet", "pred.parquet", SPEC_FILE)

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
    >>> log = DataFrame(
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
    check_value("overwrite", overwrite, bool)
    given = {
        "log": log_path,
        "clicks": clicks_path,
        "purchases": purchases_path,
        "refunds": refunds_path,
        "persons": persons_path,
    }
    older = None if against is None else read_spec(against)  # `out` may replace it
    sources = {role: Source(path, role) for role, path in given.items() if path is not None}
    target = local_path(out)
    limit = memory_bytes(memory_limit)
    with ExitStack() as stack:
        files = [target / name for name in IMPRESSION_FILES]
        place = stack.enter_context(published(files, overwrite=overwrite))
        log = LogOfFiles(sources, place(files[0]).parent, limit)
        roles: dict[str, Any] = dict.fromkeys(sources, log)
        spec = from_impressions(**roles, user_col=user_col, **options).spec
        if older is not None:
            spec["moved"] = moved_since(spec, older)
        (log.folder / SPEC_FILE).write_text(json.dumps(spec, indent=1), encoding="utf-8")
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

        persons = None
        one = self.n_parts == 1
        if "persons" in self.sources and not one:  # they tell the part of a row
            source = self.sources["persons"]
            rows = source.batches(source.schema.names, BATCH_ROWS)
            persons = pa.concat_tables([source.schema.empty_table(), *rows])
        with ExitStack() as stack:
            memory = np.inf if one else 0
            engine = stack.enter_context(
                files_engine(self.sources, "impressions_parquet", memory, self.folder, shown=False)
            )
            how = self.sources, rules, self.n_parts, work, Source.head, persons
            empty, dealt = dealt_log(engine, *how)
            writers = {
                name: stack.enter_context(pq.ParquetWriter(self.folder / f"{name}.parquet", kinds))
                for name, kinds in schemas_of_tables(empty).items()
            }

            def attributed(_: int, rows: RowsByRole) -> Any:
                found = work({role: frame_of_arrow(table) for role, table in rows.items()})
                for name, writer in writers.items():
                    writer.write_table(table_of(found, name, writer.schema))
                return without_tables(found)

            parts, _ = dealt.results_of_buckets(attributed)
        return sum(parts, start=without_tables(empty))

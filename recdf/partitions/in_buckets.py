"""Any work on frames of an engine whose rows are dealt to buckets, such as all rows of some users:
what the work makes of each bucket comes back.

Contract: the work is sent once to each worker, with what it holds. It takes the number of a bucket,
and its rows by the role of their frame. Frames in memory are dealt here, and sent with the work. An
error of a bucket travels back, and is raised as the error of all.

Two kinds of work are here, too: the moments of an experiment (`moments_of_rows`), and the rows per
list of an evaluation by an engine (`EngineRows`).

    frames ─ pack ─► cells by bucket ─ meet: work ─► one cell of each bucket ─► list of results
                                                  └► a table of each bucket ─► lazy frame
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from operator import itemgetter
from typing import Any

import pandas as pd
import pyarrow as pa
from pandas import DataFrame
from pyarrow import Schema, Table

from ..errors import ColumnError, EngineError, IdTypeError, OptionError, RecdfError, closest
from ..evaluation.evaluate import told
from ..evaluation.part import Failure
from ..experiments.compare.from_moments import variant_moments
from ..experiments.compare.moment_table import read_moments
from ..experiments.join.join_experiment import (
    JoinOptions,
    arms_left_out,
    join_frames,
    known_values,
    no_common_user,
    read_frames,
)
from ..inputs.data_files import frame_of_table
from ..inputs.options import ByName, Names, as_columns, check_names
from ..judge.per_user_columns import named_frame, refuse_variant, require, warn_of_weights
from ..judge.users import LEFT_OUT, own_variant
from .buckets import (
    CELL,
    HEAD_LENGTH,
    PACKED,
    Cells,
    Packing,
    RowsByRole,
    Schemas,
    arrow_table_of,
    by_role,
    working_on,
)
from .engine_contract import Engine, Watched, as_dtypes, labels_of_table, opened
from .needed import id_kinds
from .source import plain_schema


@dataclass(frozen=True)
class OnBucketRows:
    """Work on the number and the rows of one bucket.

    in_memory : gives the rows of frames in memory, sorted by bucket.
    """

    work: Any
    schemas: Schemas
    in_memory: Any

    def __call__(self, bucket: int, cells: Cells) -> Table:
        with working_on(bucket):
            in_memory = (one.of(bucket) for one in opened(self.in_memory))
            return opened(self.work)(bucket, by_role([*cells, *in_memory], self.schemas))


@dataclass(frozen=True)
class AsCell:
    """Make one cell of the number of a bucket, of what the work makes of its rows, or of its error,
    and of how many rows the first frame has.

    In threads of this process, an error ends all work `at_once`.
    """

    work: Callable[[int, RowsByRole], Any]
    n_buckets: int
    at_once: bool

    def __call__(self, bucket: int, rows: RowsByRole) -> Table:
        try:
            made = self.work(bucket, rows)
        except (RecdfError, TypeError) as error:
            made = Failure(error, bucket)
            if self.at_once:
                raise told(made, self.n_buckets, "users") from None
        n_rows = len(next(iter(rows.values())))
        return pa.table([[pickle.dumps((bucket, made, n_rows))]], schema=CELL)


class InBuckets:
    """Frames of an engine, and tables in memory, whose rows are dealt to buckets by the packing of
    each role. `every` : whether a bucket may be worked on that has no rows."""

    def __init__(
        self,
        engine: Any,
        frames: ByName,
        packings: Mapping[str, Packing],
        every: bool = False,
    ) -> None:
        self.engine, self.packed, self.schemas = engine, dict[str, Any](), dict[str, Schema]()
        in_memory = []
        for role, frame in frames.items():
            schema = packings[role].schema
            schema = schema.with_metadata({**(schema.metadata or {}), "role": role})
            packing, self.schemas[role] = replace(packings[role], schema=schema), schema
            self.n_buckets = packing.n_buckets
            if isinstance(frame, Table):
                in_memory.append(packing.deal(frame))
                continue
            lists = packing.lists
            names = schema.names if lists is None else lists.names(schema.names)
            self.packed[role] = engine.each(frame, names, packing, PACKED)
        self.every = every or bool(in_memory)  # a bucket may have only rows that are in memory
        self.in_memory = engine.sent(in_memory) if in_memory else in_memory

    def tables(self, work: Any, schema: Schema) -> Any:
        """Return a lazy frame of the rows that the work makes of the number and the rows of each
        bucket. It may be what `sent` of the engine returned."""
        on_rows = OnBucketRows(work, self.schemas, self.in_memory)
        packed = list(self.packed.values())
        return self.engine.meet(packed, self.n_buckets, on_rows, schema, self.every)

    def results_of_buckets(self, work: Callable[[int, RowsByRole], Any]) -> tuple[list[Any], int]:
        """Return what the work makes of each bucket, in their order, and how many rows the first
        frame has."""
        as_cell = AsCell(work, self.n_buckets, at_once=not isinstance(self.engine, Watched))
        cells = self.engine.collect(self.tables(self.engine.sent(as_cell), CELL))["cell"]
        # Of buffers, since bytes would be one more copy of what may be large.
        found = sorted((pickle.loads(one.as_buffer()) for one in cells), key=itemgetter(0))
        for _, made, _ in found:
            if isinstance(made, Failure):
                raise told(made, self.n_buckets, "users")
        return [made for _, made, _ in found], sum(n_rows for *_, n_rows in found)

    def made_of_frames(self, work: Callable[..., Any]) -> tuple[list[Any], int]:
        """As `results_of_buckets`, of the rows as pandas frames, in the order of the roles."""
        return self.results_of_buckets(partial(_on_frames, work))


def _on_frames(work: Callable[..., Any], _: int, rows: RowsByRole) -> Any:
    return work(*map(frame_of_table, rows.values()))


def users_in_buckets(
    engine: Any,
    frames: ByName,
    columns: Mapping[str, Collection[str]],
    keys: Names,
    n_buckets: int,
    schemas: Schemas,
) -> InBuckets:
    """Deal some columns of frames by user, with the dtypes that they have in pandas. Frames of the
    engine have `schemas`; others are in memory."""
    given = dict(frames)
    packings = {}
    for role, frame in frames.items():
        if role in schemas:
            own = [one for one in plain_schema(schemas[role]) if one.name in columns[role]]
            schema = pa.schema(own)
            labels = engine.labels(schema.empty_table(), frame)
        else:
            labels = frame[[name for name in frame.columns if name in columns[role]]]
            given[role] = arrow_table_of(labels, f"{role} has")
            schema = plain_schema(given[role].schema)
        dtypes = Schema.from_pandas(labels[:0], preserve_index=False).metadata
        packings[role] = Packing(keys, keys[0], n_buckets, schema.with_metadata(dtypes))
    for name in keys:
        kinds = id_kinds({role: one.schema for role, one in packings.items()}, name)
        if len({*kinds.values()}) > 1:
            words = " and ".join(
                f"{role}[{name!r}] holds {kind} ids" for role, kind in kinds.items()
            )
            raise IdTypeError(f"{words}; they can never match. Convert one of them")
    return InBuckets(engine, given, packings)


def made_of_rows(
    engine: Any,
    rows: Any,
    work: Callable[[DataFrame], Any],
    columns: Names,
    keys: Names,
    n_buckets: int,
) -> tuple[list[Any], int]:
    """Return what `work` makes of some columns of the rows of a result in each bucket of `keys`,
    and the number of rows."""
    schemas = {"per_user": engine.schema(rows)}
    read = {"per_user": columns}
    dealt = users_in_buckets(engine, {"per_user": rows}, read, keys, n_buckets, schemas)
    return dealt.made_of_frames(work)


@dataclass(frozen=True)
class EngineRows:
    """Rows per list in a frame of an engine.

    empty : a pandas frame with the columns and dtypes, without rows · by : the `by` values of the
    rows · n : the number of rows · n_buckets : the number of buckets that the lists were
    distributed to · labels : gives a table with these rows the dtypes of `rd.evaluate`.
    """

    engine: Engine
    frame: Any
    empty: DataFrame
    by: DataFrame
    n: int
    n_buckets: int
    labels: Callable[[Table], DataFrame]

    def check(
        self, n: int, what: str = "the rows per list were computed again, and there are"
    ) -> None:
        """Raise if there are more or fewer rows than when the summary was made."""
        if n != self.n:
            raise EngineError(
                f"{what} {n:,} rows, but the summary is of {self.n:,} lists. If the frames have "
                "changed since the call, evaluate them again"
            )


# ------------------------------------------------------------------------------------------
# Moments of the users of an experiment.
#
# Contract: the rows per list and the assignment are dealt by a hash of the user, so that a bucket
# has all rows of its users. On every bucket a worker calls the functions that `rd.join_experiment`
# and `rd.experiments.variant_moments` call. The moments of all buckets are added.


# The options that are not those of the join.
NOT_OF_JOIN = ("user_col", "variant_col", "by", "nan", "covariates")


@dataclass(frozen=True)
class Reduction:
    """How users are joined and reduced, the same in memory and in every bucket.

    own : the evaluation is `by` the variant too, so that only rows of each user's own variant count
    · by_values : the values of `join.by` in all buckets · spec : that of the evaluation · asked :
    the arguments of `variant_moments`.
    """

    join: JoinOptions
    own: bool
    by_values: DataFrame
    spec: ByName
    asked: ByName

    def of_bucket(
        self, per_user: DataFrame, assignment: DataFrame
    ) -> tuple[bool, DataFrame | Exception, DataFrame]:
        """Whether an assigned user has rows, the moments, and the users who were in several
        variants. Without an assigned user an error counts only if another bucket has one."""
        join = self.join
        per_user.attrs["recdf"] = self.spec  # it tells which columns are no metrics
        if self.own:
            per_user = own_variant(per_user, assignment, join.keys, join.variant_col)
        frames = read_frames(per_user, assignment, join)
        common = not frames.users.stranger.all()
        left_out = arms_left_out(frames, join.variant_col)
        try:
            joined = join_frames(frames, join, self.by_values)
            return common, variant_moments(joined, **self.asked), left_out
        except (RecdfError, TypeError) as error:
            if common:
                raise
            return common, error, left_out


def reduction_of(
    rows: EngineRows,
    columns: Collection[str],
    spec: ByName,
    metrics: Any,
    options: ByName,
) -> tuple[Reduction, list[str]]:
    """Take the columns of the evaluation for what the caller did not say. Return also the columns
    that the metrics and covariates name."""
    variant = options["variant_col"]
    by = options["by"]
    list_key = spec["user_col"]
    own = variant in spec["by"] and variant in columns
    segments = as_columns(by)
    if by is None:
        segments = [name for name in spec["by"] if name != variant or not own]
    keys = as_columns(options["user_col"])
    keys = keys or [name for name in list_key if name in columns] or list_key
    refuse_variant(segments, variant)
    if metrics is None:
        metrics = [name for name in spec["metrics"] if name in rows.empty.columns]
    names = [*rows.empty.columns, *columns, "has_metrics"]
    used = [*dict.fromkeys([*_names_in(metrics), *_names_in(options["covariates"])])]
    for name in (*used, *segments):
        if name not in names:
            raise ColumnError(
                f"neither per_user nor assignment has a column {name!r}{closest(name, names)}"
            )
    given = {name: value for name, value in options.items() if name not in NOT_OF_JOIN}
    given.setdefault("over", [name for name in list_key if name not in keys])
    for name in ("exposure_col", "time_col"):  # these need the users of all buckets
        if given.get(name) is not None:
            raise OptionError(
                f"⟦{name}=⟧ needs the rows of all users together. Bring them into memory "
                "(result.to_pandas()) for ⟦rd.join_experiment⟧ and rd.experiments.variant_moments, "
                "or drop the rows before each exposure before you evaluate"
            )
    no_options = (*NOT_OF_JOIN, "keys", "known")
    valid = [one.name for one in fields(JoinOptions) if one.name not in no_options]
    check_names(list(given), [*NOT_OF_JOIN, *valid], "variant_moments")
    # Workers do not know metrics that were registered in this process only.
    known = known_values(rows.empty.columns, given.get("missing", "raise"))
    of_rows = [name for name in segments if name in spec["by"]]
    join = JoinOptions(keys, variant, of_rows, **given, known=known)
    by_values = DataFrame(index=range(1))
    if of_rows:
        by_values = rows.by[of_rows].drop_duplicates(ignore_index=True)
    asked = {"metrics": metrics, "user_col": keys, "variant_col": variant, "by": segments}
    asked |= {name: options[name] for name in ("covariates", "nan")}
    return Reduction(join, own, by_values, dict(spec), asked), used


def made_of(
    found: Iterable[tuple[bool, DataFrame | Exception, DataFrame]], n_buckets: int = 1
) -> list[DataFrame]:
    """Return the moments of all buckets, or raise the error of one."""
    made = []
    for _, one, _ in found:
        if isinstance(one, Exception):
            raise told(Failure(one, 0), n_buckets, "users")
        made.append(one)
    return made


def moments_of_rows(
    rows: EngineRows,
    described: DataFrame,
    assignment: Any,
    metrics: Any,
    options: ByName,
) -> DataFrame:
    """Return the moments of the users of an assignment, which is in memory or a frame of the
    engine. Nothing is computed before the columns are checked. `described` has the columns of the
    rows, and what was evaluated."""
    engine = rows.engine
    spec = described.attrs["recdf"]
    schemas = dict[str, Schema]()
    if isinstance(assignment, DataFrame):
        assignment = named_frame("assignment", assignment)
        empty = assignment[:0]
    elif not isinstance(assignment, type(rows.frame)):
        raise TypeError(
            f"assignment is a {type(assignment).__name__}; expected a pandas DataFrame, or a frame "
            f"of {engine.name} as per_user is"
        )
    else:
        schemas["assignment"] = engine.schema(assignment)
        empty = engine.labels(schemas["assignment"].empty_table(), assignment)
    reduction, used = reduction_of(rows, list(map(str, empty.columns)), spec, metrics, options)
    join = reduction.join
    by = reduction.asked["by"]
    variant = join.variant_col
    of_assignment = [name for name in (*by, variant) if name not in join.by]
    own = [variant] if reduction.own else []
    over = [] if join.how is None else as_columns(join.over)
    over += join.how if isinstance(join.how, Mapping) else []
    read = {
        "per_user": [*spec["by"], *own, *join.keys, *over, *used],
        "assignment": [*join.keys, *of_assignment, *used],
    }
    # Messages list all columns that a frame has, since the one that the caller means may be among
    # them.
    require(rows.empty, "per_user", join.keys)
    require(empty, "assignment", [*join.keys, variant])
    frames = {"per_user": rows.frame, "assignment": assignment}
    schemas["per_user"] = engine.schema(rows.frame)
    dealt = users_in_buckets(engine, frames, read, join.keys, rows.n_buckets, schemas)
    no_rows = (frame_of_table(schema.empty_table()) for schema in dealt.schemas.values())
    made_of([reduction.of_bucket(*no_rows)])  # raises what needs no rows
    warn_of_weights(described, "per_user", [*by, *used])
    found, n_rows = dealt.made_of_frames(reduction.of_bucket)
    rows.check(n_rows)
    if not any(common for common, *_ in found):
        per_user, assigned = (
            one
            if isinstance(one, DataFrame)
            else labels_of_table(engine.head(one, join.keys, HEAD_LENGTH))
            for one in frames.values()
        )
        raise no_common_user(per_user, assigned, join.keys)
    made = made_of(found, dealt.n_buckets)
    moments = pd.concat([one for one in made if len(one)] or made[:1], ignore_index=True)
    if join.multi_variant == "drop":  # a bucket may have none of an arm that stayed
        arms = pd.concat([one for *_, one in found]).groupby(variant, observed=True).sum()
        each = moments[variant].map(arms["lost"] / arms["stayed"].clip(lower=1)).astype(float)
        users = moments[[name for name in ("n", "n_null", "n_empty") if name in moments]]
        moments[LEFT_OUT] = users.sum(axis=1) * each
        if "other" in moments:  # a row of two metrics has no users of its own
            moments[LEFT_OUT] = moments[LEFT_OUT].mask(moments["other"].notna())
    dtypes = dict(rows.empty.dtypes[join.by]) | dict(empty.dtypes[of_assignment])
    moments = as_dtypes(moments, dtypes)
    if not len(moments):
        return moments
    return read_moments(moments, variant, by, moments["metric"].unique().tolist()).frame()


def _names_in(given: Any) -> list[str]:
    """The columns in a name, a list or tuple of names, or a mapping of these."""
    if isinstance(given, Mapping):
        given = list(given.values())
    if isinstance(given, list | tuple):
        return [name for one in given for name in _names_in(one)]
    return as_columns(given)

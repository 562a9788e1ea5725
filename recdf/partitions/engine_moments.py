"""Moments of the users of an experiment, computed where their rows are.

Contract: the rows per list and the assignment are packed by a hash of the user, so that a bucket
has all rows of its users. On every bucket a worker calls the functions that `rd.join_experiment`
and `rd.experiments.variant_moments` call. The moments of all buckets are added. An error of a
bucket travels to the driver, which raises it.

    per_user, assignment ─ each: pack ─► cells by bucket ─ meet: join, reduce ─► moments of buckets
    ─ add up ─► moments
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, DataError, IdTypeError, OptionError, RecdfError, closest
from ..experiments.compare.from_moments import variant_moments
from ..experiments.compare.moment_table import read_moments
from ..experiments.join.join_experiment import (
    Frames,
    JoinOptions,
    join_frames,
    known_values,
    no_common_user,
    read_frames,
)
from ..inputs.options import as_columns, check_names
from ..judge.choices import RaiseOrDrop
from ..judge.per_user_columns import named_frame, require, warn_of_weights
from ..judge.users import own_variant
from .buckets import (
    HEAD_LENGTH,
    PACKED,
    Cells,
    Packing,
    Schemas,
    arrow_table_of,
    by_role,
    cells_by_bucket,
    working_on,
)
from .engine_methods import (
    EngineRows,
    Handle,
    as_dtypes,
    labels_of_table,
    opened,
)
from .in_buckets import OF_BUCKET, all_made, made_of, shared
from .needed import decoded, id_kind_of


@dataclass(frozen=True)
class Reduction:
    """How users are joined and reduced, the same in memory and in every bucket.

    own : the evaluation is `by` the variant too, so that only rows of each user's own variant count
    · columns : all that the metrics and covariates name · by : segments of the moments ·
    by_values : the values of `join.by` in all buckets · spec : that of the evaluation.
    """

    join: JoinOptions
    own: bool
    metrics: Any
    covariates: Any
    columns: list[str]
    by: list[str]
    nan: RaiseOrDrop
    by_values: pd.DataFrame
    spec: Mapping[str, Any]

    def frames(self, per_user: pd.DataFrame, assignment: pd.DataFrame) -> Frames:
        per_user.attrs["recdf"] = self.spec  # it tells which columns are no metrics
        if self.own:
            per_user = own_variant(per_user, assignment, self.join.keys, self.join.variant_col)
        return read_frames(per_user, assignment, self.join)

    def moments(self, frames: Frames) -> pd.DataFrame:
        users = join_frames(frames, self.join, self.by_values)
        names: dict[str, Any] = {
            "variant_col": self.join.variant_col,
            "by": self.by,
            "user_col": self.join.keys,
        }
        given = {"covariates": self.covariates, "nan": self.nan}
        return variant_moments(users, self.metrics, **given, **names)


@dataclass(frozen=True)
class Reducing:
    """Join the users of one bucket, and reduce them to moments.

    assigned : the cells of an assignment in memory by bucket, None if it is a frame of the engine.
    """

    reduction: Reduction
    schemas: Schemas
    assigned: Handle | None

    def __call__(self, bucket: int, cells: Cells) -> pa.Table:
        with working_on(bucket):
            assigned = opened(self.assigned).get(bucket, []) if self.assigned is not None else []
            tables = by_role([*cells, *assigned], self.schemas)
            rows, users = tables["per_user"], tables["assignment"]
            return made_of(bucket, lambda: self._moments(rows, users), len(rows))

    def _moments(self, rows: pa.Table, users: pa.Table) -> tuple[bool, pd.DataFrame | Exception]:
        """Whether an assigned user has rows, and the moments. Without such a user an error counts
        only if another bucket has one."""
        frames = self.reduction.frames(labels_of_table(rows), labels_of_table(users))
        common = not frames.users.stranger.all()
        try:
            return common, self.reduction.moments(frames)
        except (RecdfError, TypeError) as error:
            if common:
                raise
            return common, error


@dataclass(frozen=True)
class MomentsCall:
    """One call: the rows of an evaluation, an assignment in memory or in a frame of the engine, and
    what to do."""

    rows: EngineRows
    assignment: Any
    reduction: Reduction

    @classmethod
    def of(
        cls,
        rows: EngineRows,
        spec: Mapping[str, Any],
        assignment: Any,
        metrics: Any,
        options: Mapping[str, Any],
    ) -> MomentsCall:
        """Take the columns of the evaluation for what the caller did not say."""
        if isinstance(assignment, pd.DataFrame):
            assignment = named_frame("assignment", assignment)
        columns = _column_names(rows, assignment)
        variant, by = options["variant_col"], options["by"]
        own = variant in spec["by"] and variant in columns
        segments = (
            [name for name in spec["by"] if name != variant or not own]
            if by is None
            else as_columns(by)
        )
        list_key = spec["user_col"]
        keys = (
            as_columns(options["user_col"])
            or [name for name in list_key if name in columns]
            or list_key
        )
        if metrics is None:
            metrics = [name for name in spec["metrics"] if name in rows.empty.columns]
        names = [*rows.empty.columns, *columns, "has_metrics"]
        used = [*dict.fromkeys([*_names_in(metrics), *_names_in(options["covariates"])])]
        for name in (*used, *segments):
            if name not in names:
                raise ColumnError(
                    f"neither per_user nor assignment has a column {name!r}{closest(name, names)}"
                )
        given = {
            name: value
            for name, value in options.items()
            if name not in ("user_col", "variant_col", "by", "nan", "covariates")
        }
        given.setdefault("over", [name for name in list_key if name not in keys])
        _check_join_options(given)
        # Workers do not know metrics that were registered in this process only.
        known = known_values(rows.empty.columns, given.get("missing", "raise"))
        join = JoinOptions(
            keys, variant, [name for name in segments if name in spec["by"]], **given, known=known
        )
        by_values = (
            rows.by[join.by].drop_duplicates(ignore_index=True)
            if join.by
            else pd.DataFrame(index=range(1))
        )
        reduction = Reduction(
            join,
            own,
            metrics,
            options["covariates"],
            used,
            segments,
            options["nan"],
            by_values,
            dict(spec),
        )
        return cls(rows, assignment, reduction)

    def result(self) -> pd.DataFrame:
        """Return the moments of all users. Nothing is computed before the columns are checked."""
        schemas = self._schemas()
        outcomes = self.rows.engine.collect(self._outcomes(schemas))
        self.rows.check(sum(outcomes["n_rows"].to_pylist()))
        found = all_made(outcomes, self.rows.n_buckets)
        if not any(common for common, _ in found):
            raise self._no_common_user()
        for _, one in found:
            if isinstance(one, Exception):
                raise one
        some = [one for _, one in found if len(one)] or [found[0][1]]
        moments = pd.concat(some, ignore_index=True)
        moments = as_dtypes(moments, self._dtypes(moments))
        if not len(moments):
            return moments
        names, reduction = moments["metric"].unique().tolist(), self.reduction
        return read_moments(moments, reduction.join.variant_col, reduction.by, names).frame()

    @property
    def in_memory(self) -> bool:
        return isinstance(self.assignment, pd.DataFrame)

    @cached_property
    def _assigned(self) -> pa.Table:
        """The columns of an assignment in memory that are read."""
        names = [name for name in self._of_assignment if name in self.assignment.columns]
        return arrow_table_of(self.assignment[names], "assignment has")

    @property
    def _of_assignment(self) -> list[str]:
        join, reduction = self.reduction.join, self.reduction
        segments = [name for name in reduction.by if name not in join.by]
        return list(dict.fromkeys([*join.keys, join.variant_col, *segments, *reduction.columns]))

    @property
    def _of_rows(self) -> list[str]:
        join, reduction = self.reduction.join, self.reduction
        over = [] if join.how is None else as_columns(join.over)
        own = [join.variant_col] if reduction.own else []
        return list(dict.fromkeys([*join.by, *own, *join.keys, *over, *reduction.columns]))

    def _schemas(self) -> Schemas:
        """Check the columns of both frames, and raise what needs no rows."""
        engine, join = self.rows.engine, self.reduction.join
        of_assignment = self._assigned.schema if self.in_memory else engine.schema(self.assignment)
        of_rows = engine.schema(self.rows.frame)
        # Messages list all columns that a frame has, since the one that the caller means may be
        # among them.
        require(self.rows.empty, "per_user", join.keys)
        all_names = _column_names(self.rows, self.assignment)
        require(pd.DataFrame(columns=all_names), "assignment", [*join.keys, join.variant_col])
        schemas = {
            "per_user": _some(of_rows, self._of_rows),
            "assignment": _some(of_assignment, self._of_assignment),
        }
        for name in join.keys:
            kinds = {role: id_kind_of(schema.field(name).type) for role, schema in schemas.items()}
            if len(set(kinds.values()) - {"empty"}) > 1:
                words = " and ".join(
                    f"{role}[{name!r}] holds {kind} ids" for role, kind in kinds.items()
                )
                raise IdTypeError(f"{words}; they can never match. Convert one of them")
        empty = (labels_of_table(schema.empty_table()) for schema in schemas.values())
        self.reduction.moments(self.reduction.frames(*empty))
        head = self.rows.empty.copy(deep=False)
        head.attrs["recdf"] = self.reduction.spec
        warn_of_weights(head, "per_user", [*self.reduction.by, *self.reduction.columns])
        return schemas

    def _outcomes(self, schemas: Schemas) -> Any:
        """Return a lazy frame with the outcome of every bucket."""
        engine, n_buckets = self.rows.engine, self.rows.n_buckets
        schemas = {role: one.with_metadata({"role": role}) for role, one in schemas.items()}
        keys, variant = self.reduction.join.keys, self.reduction.join.variant_col
        packing = Packing(keys, keys[0], n_buckets, schemas["per_user"], kept=False)
        rows = engine.each(self.rows.frame, schemas["per_user"].names, packing, PACKED)
        packing = Packing(keys, variant, n_buckets, schemas["assignment"], kept=False)
        if not self.in_memory:
            assigned = engine.each(self.assignment, schemas["assignment"].names, packing, PACKED)
            work = Reducing(self.reduction, schemas, None)
            return engine.meet([assigned, rows], n_buckets, work, OF_BUCKET, False)
        cells = shared(engine, cells_by_bucket(packing, self._assigned))
        work = Reducing(self.reduction, schemas, cells)
        return engine.meet([rows], n_buckets, work, OF_BUCKET, True)  # some have no rows

    def _no_common_user(self) -> DataError:
        keys, engine = self.reduction.join.keys, self.rows.engine
        heads = [labels_of_table(engine.head(self.rows.frame, keys, HEAD_LENGTH))]
        heads.append(
            self.assignment
            if self.in_memory
            else labels_of_table(engine.head(self.assignment, keys, HEAD_LENGTH))
        )
        return no_common_user(heads[0], heads[1], keys)

    def _dtypes(self, moments: pd.DataFrame) -> dict[str, Any]:
        """Return the dtypes of the labels, as rows in memory have them."""
        by = self.reduction.join.by
        names = [
            name for name in (*self.reduction.by, self.reduction.join.variant_col) if name not in by
        ]
        of_rows = {name: self.rows.empty.dtypes[name] for name in by}
        if self.in_memory:
            return of_rows | {name: self.assignment.dtypes[name] for name in names}
        table = pa.Table.from_pandas(moments[names], preserve_index=False)
        labels = self.rows.engine.labels(table, self.assignment)
        return of_rows | {name: labels.dtypes[name] for name in names}


def _some(schema: pa.Schema, names: list[str]) -> pa.Schema:
    """Return those of the columns that a frame has, without dictionaries."""
    return pa.schema(
        [(name, decoded(schema.field(name).type)) for name in names if name in schema.names]
    )


def _column_names(rows: EngineRows, assignment: Any) -> list[str]:
    """Return the columns of an assignment, which is a pandas frame or one of the engine."""
    if isinstance(assignment, pd.DataFrame):
        return [str(name) for name in assignment.columns]
    if not isinstance(assignment, type(rows.frame)):
        kind, engine = type(assignment).__name__, rows.engine.name
        raise TypeError(
            f"assignment is a {kind}; expected a pandas DataFrame, or a frame of {engine} as "
            "per_user is"
        )
    return [str(name) for name in rows.engine.schema(assignment).names]


def _check_join_options(given: Mapping[str, Any]) -> None:
    """Refuse unknown options of the join, and times of exposure, which need the users of all
    buckets."""
    for name in ("exposure_col", "time_col"):
        if given.get(name) is not None:
            raise OptionError(
                f"⟦{name}=⟧ needs the rows of all users together. Bring them into memory "
                "(result.to_pandas()) for ⟦rd.join_experiment⟧ and rd.experiments.variant_moments, "
                "or drop the rows before each exposure before you evaluate"
            )
    valid = [
        one.name
        for one in fields(JoinOptions)
        if one.name not in ("keys", "variant_col", "by", "known")
    ]
    own = ["user_col", "variant_col", "by", "nan", "covariates"]
    check_names(list(given), [*own, *valid], "variant_moments")


def _names_in(given: Any) -> list[str]:
    """The columns in a name, a list or tuple of names, or a mapping of these."""
    if isinstance(given, Mapping):
        given = list(given.values())
    if isinstance(given, list | tuple):
        return [name for one in given for name in _names_in(one)]
    return as_columns(given)

"""Moments of the users of an experiment, computed where their rows are.

Contract: the rows per list and the assignment are packed by a hash of the user, so that a bucket
has all rows of its users. On every bucket a worker calls the functions that `rd.join_experiment`
and `rd.experiments.variant_moments` call. The moments of all buckets are added. An error of a
bucket travels to the driver, which raises it.

    per_user, assignment ─ each: pack ─► cells by bucket ─ meet: join, reduce ─► moments of buckets
    ─ add up ─► moments
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, IdTypeError, OptionError, RecdfError, closest
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
from ..judge.per_user_columns import named_frame, require, warn_of_weights
from ..judge.users import own_variant
from .buckets import HEAD_LENGTH, Packing, Schemas, arrow_table_of
from .engine_methods import EngineRows, as_dtypes, labels_of_table
from .in_buckets import InBuckets, on_labels
from .needed import decoded, id_kind_of

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
    by_values: pd.DataFrame
    spec: Mapping[str, Any]
    asked: Mapping[str, Any]

    def frames(self, per_user: pd.DataFrame, assignment: pd.DataFrame) -> Frames:
        per_user.attrs["recdf"] = self.spec  # it tells which columns are no metrics
        if self.own:
            per_user = own_variant(per_user, assignment, self.join.keys, self.join.variant_col)
        return read_frames(per_user, assignment, self.join)

    def moments(self, frames: Frames) -> pd.DataFrame:
        return variant_moments(join_frames(frames, self.join, self.by_values), **self.asked)

    def of_bucket(
        self, per_user: pd.DataFrame, assignment: pd.DataFrame
    ) -> tuple[bool, pd.DataFrame | Exception]:
        """Whether an assigned user has rows, and the moments. Without such a user an error counts
        only if another bucket has one."""
        frames = self.frames(per_user, assignment)
        common = not frames.users.stranger.all()
        try:
            return common, self.moments(frames)
        except (RecdfError, TypeError) as error:
            if common:
                raise
            return common, error


def reduction_of(
    rows: EngineRows,
    columns: Collection[str],
    spec: Mapping[str, Any],
    metrics: Any,
    options: Mapping[str, Any],
) -> tuple[Reduction, list[str]]:
    """Take the columns of the evaluation for what the caller did not say. Return also the columns
    that the metrics and covariates name."""
    variant, by, list_key = options["variant_col"], options["by"], spec["user_col"]
    own = variant in spec["by"] and variant in columns
    segments = as_columns(by)
    if by is None:
        segments = [name for name in spec["by"] if name != variant or not own]
    keys = as_columns(options["user_col"])
    keys = keys or [name for name in list_key if name in columns] or list_key
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
    _check_join_options(given)
    # Workers do not know metrics that were registered in this process only.
    known = known_values(rows.empty.columns, given.get("missing", "raise"))
    of_rows = [name for name in segments if name in spec["by"]]
    join = JoinOptions(keys, variant, of_rows, **given, known=known)
    by_values = pd.DataFrame(index=range(1))
    if of_rows:
        by_values = rows.by[of_rows].drop_duplicates(ignore_index=True)
    asked = {"metrics": metrics, "user_col": keys, "variant_col": variant, "by": segments}
    asked |= {name: options[name] for name in ("covariates", "nan")}
    return Reduction(join, own, by_values, dict(spec), asked), used


def moments_of_rows(
    rows: EngineRows,
    spec: Mapping[str, Any],
    assignment: Any,
    metrics: Any,
    options: Mapping[str, Any],
) -> pd.DataFrame:
    """Return the moments of the users of an assignment, which is in memory or a frame of the
    engine. Nothing is computed before the columns are checked."""
    engine, in_memory = rows.engine, isinstance(assignment, pd.DataFrame)
    if in_memory:
        assignment = named_frame("assignment", assignment)
    elif not isinstance(assignment, type(rows.frame)):
        raise TypeError(
            f"assignment is a {type(assignment).__name__}; expected a pandas DataFrame, or a frame "
            f"of {engine.name} as per_user is"
        )
    known = {"per_user": engine.schema(rows.frame)}
    known |= {} if in_memory else {"assignment": engine.schema(assignment)}
    columns = list(map(str, assignment.columns if in_memory else known["assignment"].names))
    reduction, used = reduction_of(rows, columns, spec, metrics, options)
    join, by, variant = reduction.join, reduction.asked["by"], reduction.join.variant_col
    of_assignment = [name for name in (*by, variant) if name not in join.by]
    own = [variant] if reduction.own else []
    over = [] if join.how is None else as_columns(join.over)
    read = {
        "per_user": [*join.by, *own, *join.keys, *over, *used],
        "assignment": [*join.keys, *of_assignment, *used],
    }
    frames = {"per_user": rows.frame, "assignment": assignment}
    if in_memory:
        names = [name for name in columns if name in read["assignment"]]
        frames["assignment"] = arrow_table_of(assignment[names], "assignment has")
        known["assignment"] = frames["assignment"].schema
    # Messages list all columns that a frame has, since the one that the caller means may be among
    # them.
    require(rows.empty, "per_user", join.keys)
    require(pd.DataFrame(columns=columns), "assignment", [*join.keys, variant])
    schemas = {role: _some(schema, read[role]) for role, schema in known.items()}
    _check_kinds(schemas, join.keys)
    empty = (labels_of_table(schema.empty_table()) for schema in schemas.values())
    reduction.moments(reduction.frames(*empty))  # raises what needs no rows
    described = rows.empty.copy(deep=False)
    described.attrs["recdf"] = reduction.spec
    warn_of_weights(described, "per_user", [*by, *used])
    packings = {
        role: Packing(
            join.keys, join.keys[0] if role == "per_user" else variant, rows.n_buckets, schema
        )
        for role, schema in schemas.items()
    }
    found, n_rows = InBuckets(engine, frames, packings).made(
        partial(on_labels, reduction.of_bucket)
    )
    rows.check(n_rows)
    if not any(common for common, _ in found):

        def head(frame: Any) -> pd.DataFrame:
            if isinstance(frame, pd.DataFrame):
                return frame
            return labels_of_table(engine.head(frame, join.keys, HEAD_LENGTH))

        raise no_common_user(head(rows.frame), head(assignment), join.keys)
    for _, one in found:
        if isinstance(one, Exception):
            raise one
    moments = pd.concat([one for _, one in found if len(one)] or [found[0][1]], ignore_index=True)
    labels = assignment
    if not in_memory:
        table = pa.Table.from_pandas(moments[of_assignment], preserve_index=False)
        labels = engine.labels(table, assignment)
    dtypes = dict(rows.empty.dtypes[join.by]) | dict(labels.dtypes[of_assignment])
    moments = as_dtypes(moments, dtypes)
    if not len(moments):
        return moments
    return read_moments(moments, variant, by, moments["metric"].unique().tolist()).frame()


def _check_kinds(schemas: Schemas, keys: Collection[str]) -> None:
    """Raise if the ids of both frames can never be equal."""
    for name in keys:
        kinds = {role: id_kind_of(schema.field(name).type) for role, schema in schemas.items()}
        if len({*kinds.values()} - {"empty"}) > 1:
            words = " and ".join(
                f"{role}[{name!r}] holds {kind} ids" for role, kind in kinds.items()
            )
            raise IdTypeError(f"{words}; they can never match. Convert one of them")


def _some(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """Return those of the columns that a frame has, without dictionaries."""
    return pa.schema(
        [
            (name, decoded(schema.field(name).type))
            for name in dict.fromkeys(names)
            if name in schema.names
        ]
    )


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
    no_options = ("keys", "variant_col", "by", "known")
    valid = [one.name for one in fields(JoinOptions) if one.name not in no_options]
    check_names(list(given), [*NOT_OF_JOIN, *valid], "variant_moments")


def _names_in(given: Any) -> list[str]:
    """The columns in a name, a list or tuple of names, or a mapping of these."""
    if isinstance(given, Mapping):
        given = list(given.values())
    if isinstance(given, list | tuple):
        return [name for one in given for name in _names_in(one)]
    return as_columns(given)

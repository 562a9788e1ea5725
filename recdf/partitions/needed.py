"""What a call reads of frames of which only the columns are known. It is checked before any row is
read.

Contract: `Needed.of` raises the errors that `evaluate` raises for frames with these columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import pandas as pd
import pyarrow as pa
from pandas import DataFrame
from pyarrow import ArrowException, DataType, Schema, Table

from ..errors import ColumnError, DataError, EmptyPopulationError, IdTypeError, OptionError
from ..evaluation.part import check_carried
from ..evaluation.summary_rows import check_item_by, common_type
from ..evaluation.value_moments import refuse_summary_names
from ..inputs.frames import column
from ..inputs.ids import IdColumn, exact_nulls, nullable, read_ids, with_alike_ids
from ..inputs.list_cells import ItemLists, item_lists
from ..inputs.options import as_columns
from ..inputs.true_and_pred import (
    Order,
    by_in_true,
    hints_of,
    order_source,
    read_users,
    relevance_source,
)
from ..matching.side_tables.sides import CheckedSides, read_sides
from ..matching.true_and_pred_lists import RESPONSES
from ..metrics.call import Call
from .buckets import Schemas
from .source import Source, frame_of_arrow

# column with the number of each row in its files; the lists are ordered by these numbers
ROW = "__row__"
PLACE = "__place__"  # column of distinct integers by which rows of results are to be sorted


@dataclass(frozen=True)
class Needed:
    """What a call reads of `true` and `pred`.

    schemas : for each role, the columns to read and their types · order : what ranks the rows of
    `pred` · relevance : the column that grades the rows of `true` · given : the population that the
    caller gave, if any · lists : how the rows of each frame hold items; the columns above are those
    of its long form.
    """

    call: Call
    schemas: Schemas
    order: Order
    relevance: str | None
    given: DataFrame | None
    lists: Mapping[str, ItemLists]

    @classmethod
    def of(cls, call: Call, schemas: Schemas) -> Self:
        """Check the columns of both frames, or those of `pred` where there is no `true`."""
        options = call.options
        by = as_columns(call.options.by)
        keys = options.list_key
        tables = {role: schema.empty_table() for role, schema in schemas.items()}

        def dtype(kind: DataType) -> Any:
            # Numbers have dtypes of numpy, with which very many columns cost little.
            number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
            return None if number else pd.ArrowDtype(kind)

        empty: dict[str, DataFrame] = {
            role: table.to_pandas(types_mapper=dtype, ignore_metadata=True)
            for role, table in tables.items()
        }
        orders = (options.score_col, options.rank_col)
        lists = item_lists(empty, options.item_col, options.items_sep, options.wide, orders)
        empty = {role: lists[role].frame(frame) for role, frame in empty.items()}
        schemas = {role: lists[role].table(table).schema for role, table in tables.items()}
        with suppress(EmptyPopulationError):  # no rows raise all errors that need no rows
            call.match(empty.get("true"), empty["pred"])
        taken = [name for name in call.result_columns if name in (*by, *keys)]
        if taken:
            raise ColumnError(
                f"the key or by column {taken[0]!r} has the name of a result column; rename it"
            )
        refuse_summary_names(by)
        _check_signs(call, schemas)
        for name, rule in call.carry.items():
            check_carried(column(empty["pred"], name, "pred"), rule)
        checked = read_sides(call.given, options)  # side tables with checked columns and ids
        if call.item_by is not None:
            check_item_by(call.item_by, by, checked["items"].frame)
        order = order_source(empty["pred"], options)
        relevance = relevance_source(empty["true"], options) if "true" in empty else None
        given = options.population.given
        given = None if given is None else read_users(given, keys)[0]
        names = _read_names(call, empty, checked, order, relevance)
        read = {
            role: pa.schema([schemas[role].field(name) for name in names[role]], {"role": role})
            for role in schemas
        }
        return cls(call, read, order, relevance, given, lists)

    def names(self, role: str) -> list[str]:
        """The columns to read of a frame, of which its long form is made."""
        return self.lists[role].names(self.schemas[role].names)

    @cached_property
    def per_user(self) -> Schema:
        """The columns of the per-user table, with the types that they have in all parts."""
        by = [self.schemas["pred"].field(name) for name in self.by]
        return pa.schema([*by, *self.key_fields, *self.other_fields])

    @cached_property
    def key_fields(self) -> Schema:
        """The key columns of the per-user table."""
        fields = []
        for name in self.keys:
            kinds = [self.schemas[role].field(name).type for role in self.roles]
            if any(map(pa.types.is_integer, kinds)):  # ids that are floats are whole numbers
                kinds = [pa.int64() if pa.types.is_floating(kind) else kind for kind in kinds]
            kind = (kinds[0] if len(set(kinds)) == 1 else common_type(kinds)) or kinds[0]
            if self.given is not None:
                try:
                    kind = decoded(pa.array(self.given[name].array, from_pandas=True).type)
                except (OverflowError, ArrowException) as error:
                    raise DataError(
                        f"users[{name!r}] has ids that Arrow cannot hold in one column: {error}"
                    ) from error
            fields.append((name, kind))
        return pa.schema(fields)

    @cached_property
    def other_fields(self) -> Schema:
        """The columns of the per-user table that are no labels of lists."""
        carried = [self.schemas["pred"].field(name) for name in self.call.carry]
        kinds = dict.fromkeys(self.call.result_columns, pa.float64())
        kinds |= {name: pa.int64() for name in ("n_true", "n_pred") if name in kinds}
        return pa.schema([*carried, *kinds.items()])

    @property
    def roles(self) -> Sequence[str]:
        """The frames that name the lists."""
        found = [role for role in self.call.options.population.frames if role in self.schemas]
        return found or ["pred"]

    @property
    def keys(self) -> list[str]:
        return self.call.options.list_key

    @property
    def by(self) -> list[str]:
        return as_columns(self.call.options.by)

    @cached_property
    def beside(self) -> dict[str, list[IdColumn]]:
        """The columns of both frames that hold ids, with the ids of side tables that are compared
        with them."""
        checked = read_sides(self.call.given, self.call.options)
        found = {name: checked.key_ids(name) for name in self.keys}
        return found | {self.call.options.item_col: list(checked.item_ids.values())}

    def kinds_differ(self) -> bool:
        """Tell, from the types alone, whether there are two columns whose ids can never be
        equal."""
        for name, sides in self.beside.items():
            kinds = {*id_kinds(self.schemas, name).values()}
            if len(kinds | {ids.kind for ids in sides if len(ids)}) > 1:
                return True
        return False


@dataclass(frozen=True)
class NeededOfFiles(Needed):
    """What a call reads of files; `sources` are those of both frames."""

    sources: Mapping[str, Source] = field(default_factory=dict)

    @classmethod
    def of_files(cls, call: Call, true: Source, pred: Source) -> NeededOfFiles:
        """Check the columns of both frames."""
        sources = {"true": true, "pred": pred}
        needed = cls.of(call, {role: source.schema for role, source in sources.items()})
        ids = call.options.pair
        taken = [name for name in (*needed.by, *ids) if name in (ROW, PLACE)]
        if taken:
            raise ColumnError(
                f"{taken[0]!r} names a column that evaluate_parquet adds to the rows; rename it"
            )
        for name in ids:
            # Files store periods as integers, which may be equal by chance.
            kinds = {role: source.periods.get(name) for role, source in sources.items()}
            if len(set(kinds.values())) > 1:
                said = " and ".join(
                    f"{role}[{name!r}] holds "
                    + ("no periods" if kind is None else f"periods of frequency {kind}")
                    for role, kind in kinds.items()
                )
                raise IdTypeError(
                    f"{said}; they can never match. Convert one of them, e.g. with .dt.asfreq"
                )
        for name, rule in call.carry.items():
            kind = pred.files_schema.field(name).type
            if rule in ("min", "max") and pa.types.is_dictionary(kind):
                raise OptionError(
                    f"carry[{name!r}]={rule!r}: pred[{name!r}] holds categories, whose order is "
                    "not known when files "
                    'are read in parts; store the column as strings or numbers, or take "first" or '
                    '"last"'
                )
        return replace(needed, sources=sources)

    @property
    def n_rows(self) -> int:
        return sum(source.n_rows for source in self.sources.values())

    @cached_property
    def row_bytes(self) -> dict[str, float]:
        """An estimate of the bytes that a row of each frame takes in memory."""
        return {role: one.row_bytes(self.names(role)) for role, one in self.sources.items()}

    @property
    def n_bytes(self) -> float:
        return sum(one.n_rows * self.row_bytes[role] for role, one in self.sources.items())

    @property
    def ids(self) -> dict[str, set[str]]:
        """The columns that hold ids, by role. Their types may change on the way, but not their
        values."""
        keys = {*self.call.options.pair}
        return {"true": keys, "pred": {*keys, *self.by} - set(self.call.carry)}

    def carried(self, table: Table, some_without_pred: bool) -> DataFrame:
        """Return the carried columns of some lists.

        `some_without_pred` says that the population has lists that `pred` lacks. These have no
        carried value, so integers and bools take pandas' nullable dtypes. They do so in every block
        of rows, so that all blocks have the same dtypes.
        """
        pred = self.sources["pred"]
        table = table.select(list(self.call.carry))
        found = pred.as_pandas(table)
        likes = pred.as_pandas(table.slice(0, 0))
        for name in likes.columns if some_without_pred else []:
            if nullable(likes[name]).dtype != likes[name].dtype:
                found[name] = exact_nulls(table[name])
        return found

    def key_labels(self, keys: Table, heads: Mapping[str, Table]) -> DataFrame:
        """Return key columns in the dtypes of the frame that the population is taken from.

        `heads` are some rows of each frame. They are empty only if the frame is empty.
        """
        roles = self.call.options.population.frames
        if len(roles) == 1:
            return self.sources[roles[0]].as_pandas(keys)
        likes = [self.sources[role].as_pandas(heads[role].select(self.keys)) for role in roles]
        # `evaluate` also leaves out empty frames.
        likes = [like for like in likes if len(like)] or likes[:1]
        frame = keys.to_pandas()
        source = self.sources[roles[0]]
        # pandas would read the integers of periods as dates, and UUIDs as bytes.
        for name in (source.periods.keys() | source.uuids) & {*frame.columns}:
            frame[name] = source.as_pandas(keys.select([name]))[name]
        return frame.astype(pd.concat(with_alike_ids(likes, frame, "keys")).dtypes.to_dict())


def _check_signs(call: Call, schemas: Schemas) -> None:
    """Raise if keys of both frames are to stand in one column, and only one frame has them without
    a sign."""
    roles = [role for role in call.options.population.frames if role in schemas]
    for name in call.options.list_key if len(roles) > 1 else ():
        kinds = {role: decoded(schemas[role].field(name).type) for role in roles}
        unsigned = [role for role, kind in kinds.items() if kind == pa.uint64()]
        if unsigned and any(
            pa.types.is_signed_integer(kind) or pa.types.is_floating(kind)
            for kind in kinds.values()
        ):
            raise IdTypeError(
                f"⟦users='all'⟧: {unsigned[0]}[{name!r}] holds uint64 and the other frame signed "
                "numbers, which no column of both keeps exact; store both as int64, or as strings"
            )


def _read_names(
    call: Call,
    empty: Mapping[str, DataFrame],
    checked: CheckedSides,
    order: Order,
    relevance: str | None,
) -> dict[str, list[str]]:
    """Return the columns that the call reads from each frame."""
    options = call.options
    keys = call.options.pair
    answered = "true" in empty and any(
        request.metric.family == "responses" for request in call.requests
    )
    answers = [name for name in RESPONSES if answered and name in empty["true"].columns]
    weights = [options.weight_name] if options.weight_source == "true" else []
    in_true = by_in_true(empty["true"], options) if "true" in empty else []
    hints = hints_of(None, empty["pred"], options)
    unused = [*hints.unused_order, *hints.doubts.values()]  # read to warn where it says otherwise
    names: dict[str, Sequence[Any]] = {
        "true": [*keys, *in_true, relevance, options.propensity_col, *weights, *answers],
        "pred": [*as_columns(options.by), *keys, order["column"], *unused, *call.carry],
    }
    if options.value_col is not None:
        of_items = "items" in checked and options.value_col in checked["items"].frame.columns
        for role, frame in reversed(list(empty.items())):
            if not of_items:  # an error lists the existing columns
                column(frame, options.value_col, role)
            if options.value_col in frame.columns:
                names[role] = [*names[role], options.value_col]
    return {role: [*dict.fromkeys(one for one in names[role] if one is not None)] for role in empty}


def decoded(kind: DataType) -> DataType:
    """Return the type of the values if this is a dictionary type, and any other type as it is."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def id_kinds(schemas: Schemas, name: str) -> dict[str, str]:
    """Return the kind of ids that a column holds in each frame, by role. A frame without the
    column, or whose type does not tell the kind, is left out."""
    found = {}
    for role, schema in schemas.items():
        for value in (0, "a") if name in schema.names else ():
            # IdTypeError is a TypeError: the rows will raise it.
            with suppress(ArrowException, TypeError):
                table = pa.table({"id": pa.array([value]).cast(schema.field(name).type)})
                found[role] = read_ids(frame_of_arrow(table)["id"], "id").kind
                break
    return found

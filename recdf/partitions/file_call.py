"""One call on files: which columns it needs, checked before any row is read, and the labels of its results.

Contract: `FileCall.of` raises the errors that `evaluate` raises for frames with these columns. The labels of results
are in the dtypes that they would have if pandas had read the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, EmptyPopulationError, IdTypeError
from ..evaluation.item_groups import check_item_by
from ..evaluation.part import ListRows
from ..evaluation.summary import SUMMARY
from ..inputs.frames import column
from ..inputs.options import as_columns
from ..inputs.population import Population
from ..inputs.tables import Order, order_source, read_users, relevance_source
from ..matching.side_tables.given import read_sides
from ..matching.values import RESPONSES
from ..metrics.call import Call
from .carried import carried_frame, check_rule
from .results import PLACE
from .source import Source, as_frame, common_type, labels_as

ROW = "__row__"  # column with the number of a row in its files; the lists are ordered by it


@dataclass(frozen=True)
class FileCall:
    """A call, the files of both frames, and what it reads of them.

    names : the columns to read, by role · order, relevance : the columns that rank and grade the rows · given : the
    population that the caller gave, if any · key_types : for each key column a type that holds the keys of all parts.
    """

    call: Call
    sources: Mapping[str, Source]
    names: Mapping[str, list[str]]
    order: Order
    relevance: str | None
    given: pd.DataFrame | None
    key_types: Mapping[str, pa.DataType | None]

    @classmethod
    def of(cls, call: Call, true: Source, pred: Source) -> FileCall:
        """Check the columns of both frames."""
        sources, options = {"true": true, "pred": pred}, call.options
        empty = {role: as_frame(source.schema.empty_table()) for role, source in sources.items()}
        with suppress(EmptyPopulationError):  # raises errors that need no rows
            call.match(empty["true"], empty["pred"])
        _check_names(call)
        _check_periods(call, sources)
        order, relevance = order_source(empty["pred"], options), relevance_source(empty["true"], options)
        for name, rule in call.carry.items():
            column(empty["pred"], name, "pred")
            check_rule(pred, name, rule)
        given, user_cols = options.population.given, as_columns(options.user_col)
        # One part may have lists of only one frame, with the types of its keys, while another part has lists of both.
        of_keys = [role for role in sources if given is not None or role in options.population.frames]
        return cls(
            call=call,
            sources=sources,
            names=_needed(call, empty, order, relevance),
            order=order,
            relevance=relevance,
            given=None if given is None else read_users(given, user_cols)[0],
            key_types={
                name: common_type([sources[role].schema.field(name).type for role in of_keys]) for name in user_cols
            },
        )

    @property
    def user_cols(self) -> list[str]:
        return as_columns(self.call.options.user_col)

    @property
    def by(self) -> list[str]:
        return as_columns(self.call.options.by)

    @property
    def population(self) -> Population:
        return self.call.options.population

    @property
    def n_rows(self) -> int:
        return sum(source.n_rows for source in self.sources.values())

    def label_arrays(self, rows: ListRows) -> dict[str, Any]:
        """Return the keys of lists and their carried columns as Arrow arrays, of the same types in all parts.

        Keys are left out where the caller gave the population, which has them.
        """
        columns: dict[str, Any] = {}
        if self.given is None:
            for name in self.user_cols:
                columns[name] = labels_as(pa.array(rows.keys[name].array), self.key_types[name])
        kinds = self.sources["pred"].schema
        for name, series in rows.carried.items():
            columns[name] = labels_as(pa.array(series.array, from_pandas=True), kinds.field(name).type)
        return columns

    def carried_frame(self, labels: pa.Table, some_without_pred: bool) -> pd.DataFrame:
        """Return the carried columns of some lists; `some_without_pred`: `pred` lacks some list of the population."""
        return carried_frame(self.sources["pred"], labels.select(list(self.call.carry)), some_without_pred)

    def by_frame(self, values: pa.Table) -> pd.DataFrame:
        """Return `by` values as the labels of results; one row without columns where there is no `by`."""
        if not self.by:
            return pd.DataFrame(index=range(1))
        return self.sources["pred"].as_pandas(values)

    def key_frame(self, keys: pa.Table, heads: Mapping[str, pa.Table]) -> pd.DataFrame:
        """Return key columns in the dtypes of the frame that the population is from.

        `heads` are some rows of each frame, which are empty only if the frame is.
        """
        roles = self.population.frames
        if len(roles) == 1:
            return self.sources[roles[0]].as_pandas(keys)
        likes = [self.sources[role].as_pandas(heads[role].select(self.user_cols)) for role in roles]
        likes = [like for like in likes if len(like)] or likes[:1]  # `evaluate` also leaves out empty frames
        frame: pd.DataFrame = keys.to_pandas()
        source = self.sources[roles[0]]
        for name in source.periods.keys() & frame.columns:  # pandas would read their integers as dates
            frame[name] = source.as_pandas(keys.select([name]))[name]
        return frame.astype(pd.concat(likes).dtypes.to_dict())


def _check_names(call: Call) -> None:
    """Raise for columns whose names results, the summary, or the added columns have."""
    options = call.options
    by, user_cols = as_columns(options.by), as_columns(options.user_col)
    taken = [name for name in call.result_columns if name in (*by, *user_cols)]
    if taken:
        raise ColumnError(f"the key or by column {taken[0]!r} has the name of a result column; rename it")
    taken = [name for name in (*by, *user_cols, options.item_col) if name in (ROW, PLACE)]
    if taken:
        raise ColumnError(f"{taken[0]!r} names a column that evaluate_parquet adds to the rows; rename it")
    taken = [name for name in by if name in SUMMARY]
    if taken:
        raise ColumnError(f"the by column {taken[0]!r} has the name of a column of the summary; rename it")


def _check_periods(call: Call, sources: Mapping[str, Source]) -> None:
    """Raise for periods of different frequencies, which files store as integers that would be equal by chance."""
    for name in (*as_columns(call.options.user_col), call.options.item_col):
        kinds = {role: source.periods.get(name) for role, source in sources.items()}
        if len(set(kinds.values())) > 1:
            said = " and ".join(
                f"{role}[{name!r}] holds " + ("no periods" if kind is None else f"periods of frequency {kind}")
                for role, kind in kinds.items()
            )
            raise IdTypeError(f"{said}; they can never match. Convert one of them, e.g. with .dt.asfreq")


def _needed(
    call: Call, empty: dict[str, pd.DataFrame], order: Order, relevance: str | None
) -> dict[str, list[str]]:
    """Return the columns that the call reads from each frame."""
    options = call.options
    doors = read_sides(call.given, options)
    if call.item_by is not None and doors.catalogue is not None:
        check_item_by(call.item_by, as_columns(options.by), doors.catalogue[0])  # before any row is read
    keys = [*as_columns(options.user_col), options.item_col]
    answered = any(request.metric.family == "responses" for request in call.requests)
    answers = [name for name in RESPONSES if answered and name in empty["true"].columns]
    weights = [options.weight_name] if options.weight_source == "true" else []
    names: dict[str, Sequence[Any]] = {
        "true": [*keys, relevance, options.propensity_col, *weights, *answers],
        "pred": [*as_columns(options.by), *keys, order["column"], *call.carry],
    }
    if options.value_col is not None:
        of_items = doors.catalogue is not None and options.value_col in doors.catalogue[0].columns
        for role, frame in reversed(empty.items()):
            if not of_items:
                column(frame, options.value_col, role)  # raises an error that names the columns there are
            if options.value_col in frame.columns:
                names[role] = [*names[role], options.value_col]
    return {role: list(dict.fromkeys(filter(None, listed))) for role, listed in names.items()}

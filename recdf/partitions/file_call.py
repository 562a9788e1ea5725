"""One call on files: what it reads of them, which is checked before any row is read, and the labels of its results.

Contract: `FileCall.of` raises the errors that `evaluate` raises for frames with these columns. The labels of results
are in the dtypes that they would have if pandas had read the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, IdTypeError
from ..evaluation.part import ListRows
from ..inputs.options import as_columns
from ..inputs.population import Population
from ..metrics.call import Call
from .carried import carried_frame, check_rule
from .needed import Needed
from .results import PLACE
from .source import Source, common_type, labels_as

ROW = "__row__"  # column with the number of each row in its files; the lists are ordered by these numbers


@dataclass(frozen=True)
class FileCall:
    """A call, what it needs of both frames, and the files that hold the frames.

    `key_types` has, for each key column, a type that can hold the keys of all parts.
    """

    needed: Needed
    sources: Mapping[str, Source]
    key_types: Mapping[str, pa.DataType | None]

    @classmethod
    def of(cls, call: Call, true: Source, pred: Source) -> FileCall:
        """Check the columns of both frames."""
        sources, options = {"true": true, "pred": pred}, call.options
        needed = Needed.of(call, {role: source.schema for role, source in sources.items()})
        user_cols = as_columns(options.user_col)
        taken = [name for name in (*needed.by, *user_cols, options.item_col) if name in (ROW, PLACE)]
        if taken:
            raise ColumnError(f"{taken[0]!r} names a column that evaluate_parquet adds to the rows; rename it")
        _check_periods(call, sources)
        for name, rule in call.carry.items():
            check_rule(pred, name, rule)
        # A part whose lists come from one frame has the key types of that frame. Another part may have lists of both.
        of_keys = [role for role in sources if needed.given is not None or role in options.population.frames]
        kinds = {name: [sources[role].schema.field(name).type for role in of_keys] for name in user_cols}
        return cls(needed, sources, {name: common_type(kinds[name]) for name in user_cols})

    @property
    def call(self) -> Call:
        return self.needed.call

    @property
    def names(self) -> dict[str, list[str]]:
        """The columns to read, by role."""
        return {role: schema.names for role, schema in self.needed.schemas.items()}

    @property
    def ids(self) -> dict[str, set[str]]:
        """The columns that hold ids, by role. Their types may change on the way, but not their values."""
        keys = {*self.user_cols, self.call.options.item_col}
        return {"true": keys, "pred": {*keys, *self.by} - set(self.call.carry)}

    @property
    def given(self) -> pd.DataFrame | None:
        """The population that the caller gave, if any."""
        return self.needed.given

    @property
    def user_cols(self) -> list[str]:
        return self.needed.keys

    @property
    def by(self) -> list[str]:
        return self.needed.by

    @property
    def population(self) -> Population:
        return self.call.options.population

    @property
    def n_rows(self) -> int:
        return sum(source.n_rows for source in self.sources.values())

    def label_arrays(self, rows: ListRows) -> dict[str, Any]:
        """Return the keys of lists and their carried columns as Arrow arrays, of the same types in all parts.

        Keys are left out if the caller gave the population, because `given` then has them.
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
        """Return the carried columns of some lists. `some_without_pred`: `pred` lacks some list of the population."""
        return carried_frame(self.sources["pred"], labels.select(list(self.call.carry)), some_without_pred)

    def by_frame(self, values: pa.Table) -> pd.DataFrame:
        """Return `by` values as the labels of results. Without `by`, return one row without columns."""
        if not self.by:
            return pd.DataFrame(index=range(1))
        return self.sources["pred"].as_pandas(values)

    def key_frame(self, keys: pa.Table, heads: Mapping[str, pa.Table]) -> pd.DataFrame:
        """Return key columns in the dtypes of the frame that the population is taken from.

        `heads` are some rows of each frame. They are empty only if the frame is empty.
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


def _check_periods(call: Call, sources: Mapping[str, Source]) -> None:
    """Raise if periods have different frequencies. Files store them as integers, which may be equal by chance."""
    for name in (*as_columns(call.options.user_col), call.options.item_col):
        kinds = {role: source.periods.get(name) for role, source in sources.items()}
        if len(set(kinds.values())) > 1:
            said = " and ".join(
                f"{role}[{name!r}] holds " + ("no periods" if kind is None else f"periods of frequency {kind}")
                for role, kind in kinds.items()
            )
            raise IdTypeError(f"{said}; they can never match. Convert one of them, e.g. with .dt.asfreq")

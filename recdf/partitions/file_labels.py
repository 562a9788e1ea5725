"""What a call reads of files, which is checked before any row is read, and the labels of its results.

Contract: `FileLabels.of` raises the errors that `evaluate` raises for frames with these columns. The labels of results
are in the dtypes that they would have if pandas had read the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, IdTypeError, OptionError
from ..evaluation.carry import nullable
from ..metrics.call import Call
from .local import ROW
from .needed import Needed
from .results import PLACE
from .source import Source


@dataclass(frozen=True)
class FileLabels:
    """What a call needs of both frames, and the files that hold them."""

    needed: Needed
    sources: Mapping[str, Source]

    @classmethod
    def of(cls, call: Call, true: Source, pred: Source) -> FileLabels:
        """Check the columns of both frames."""
        sources = {"true": true, "pred": pred}
        needed = Needed.of(call, {role: source.schema for role, source in sources.items()})
        ids = [*needed.keys, call.options.item_col]
        taken = [name for name in (*needed.by, *ids) if name in (ROW, PLACE)]
        if taken:
            raise ColumnError(f"{taken[0]!r} names a column that evaluate_parquet adds to the rows; rename it")
        _check_periods(ids, sources)
        for name, rule in call.carry.items():
            if rule in ("min", "max") and pa.types.is_dictionary(pred.files_schema.field(name).type):
                raise OptionError(
                    f"carry[{name!r}]={rule!r}: pred[{name!r}] holds categories, whose order is not known when files "
                    'are read in parts; store the column as strings or numbers, or take "first" or "last"'
                )
        return cls(needed, sources)

    @property
    def n_rows(self) -> int:
        return sum(source.n_rows for source in self.sources.values())

    @property
    def ids(self) -> dict[str, set[str]]:
        """The columns that hold ids, by role. Their types may change on the way, but not their values."""
        keys = {*self.needed.keys, self.needed.call.options.item_col}
        return {"true": keys, "pred": {*keys, *self.needed.by} - set(self.needed.call.carry)}

    def carried(self, table: pa.Table, some_without_pred: bool) -> pd.DataFrame:
        """Return the carried columns of some lists.

        `some_without_pred` says that the population has lists that `pred` lacks. These have no carried value, so
        integers and bools take pandas' nullable dtypes. They do so in every block of rows, so that all blocks have the
        same dtypes.
        """
        pred, table = self.sources["pred"], table.select(list(self.needed.call.carry))
        if not table.num_columns:
            return pd.DataFrame(index=range(len(table)))
        found, likes = pred.as_pandas(table), pred.as_pandas(table.slice(0, 0))
        for name in likes.columns if some_without_pred else []:
            dtype: Any = nullable(likes[name]).dtype
            if dtype != likes[name].dtype:
                found[name] = pd.Series(dtype.__from_arrow__(table[name]))
        return found

    def keys(self, keys: pa.Table, heads: Mapping[str, pa.Table]) -> pd.DataFrame:
        """Return key columns in the dtypes of the frame that the population is taken from.

        `heads` are some rows of each frame. They are empty only if the frame is empty.
        """
        roles = self.needed.call.options.population.frames
        if len(roles) == 1:
            return self.sources[roles[0]].as_pandas(keys)
        likes = [self.sources[role].as_pandas(heads[role].select(self.needed.keys)) for role in roles]
        likes = [like for like in likes if len(like)] or likes[:1]  # `evaluate` also leaves out empty frames
        frame: pd.DataFrame = keys.to_pandas()
        source = self.sources[roles[0]]
        for name in source.periods.keys() & frame.columns:  # pandas would read their integers as dates
            frame[name] = source.as_pandas(keys.select([name]))[name]
        return frame.astype(pd.concat(likes).dtypes.to_dict())


def _check_periods(names: list[str], sources: Mapping[str, Source]) -> None:
    """Raise if periods have different frequencies. Files store them as integers, which may be equal by chance."""
    for name in names:
        kinds = {role: source.periods.get(name) for role, source in sources.items()}
        if len(set(kinds.values())) > 1:
            said = " and ".join(
                f"{role}[{name!r}] holds " + ("no periods" if kind is None else f"periods of frequency {kind}")
                for role, kind in kinds.items()
            )
            raise IdTypeError(f"{said}; they can never match. Convert one of them, e.g. with .dt.asfreq")

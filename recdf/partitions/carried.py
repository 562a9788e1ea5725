"""Columns of `pred` that `carry=` copies into the results, with the dtypes that they have over all files."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import OptionError
from ..evaluation.carry import nullable
from .source import Source


def check_rule(pred: Source, name: str, rule: str) -> None:
    """Raise if `carry` asks for the "min" or "max" of categories: one part of the files does not know their order."""
    if rule in ("min", "max") and pa.types.is_dictionary(pred.files_schema.field(name).type):
        raise OptionError(
            f"carry[{name!r}]={rule!r}: pred[{name!r}] holds categories, whose order is not known when files are read "
            'in parts; store the column as strings or numbers, or take "first" or "last"'
        )


def carried_frame(pred: Source, table: pa.Table, some_missing: bool) -> pd.DataFrame:
    """Return some rows of the carried columns.

    `some_missing` says that the population has lists that `pred` lacks. These have no carried value, so integers and
    bools take pandas' nullable dtypes. They do so in every block of rows, so that all blocks have the same dtypes.
    """
    if not table.num_columns:
        return pd.DataFrame(index=range(len(table)))
    found = pred.as_pandas(table)
    likes = pred.as_pandas(table.slice(0, 0))
    for name in likes.columns if some_missing else []:
        dtype: Any = nullable(likes[name]).dtype
        if dtype != likes[name].dtype:
            found[name] = pd.Series(dtype.__from_arrow__(table[name]))
    return found

"""A `PartResult` as an Arrow table with one row, which a worker sends to the driver without pickle.

Contract: all results have the same schema. `tree` is JSON of the whole result: records by the name
of their class with their fields in order, and numbers and texts as they are. Arrays, frames and
labels stand beside it in `arrays`, each as the bytes of an Arrow stream, and the tree has their
places. Rows per list are not sent, since engines keep them as a table. Rows of exposure are not
sent either: only a part that is the whole population has them.
"""

from __future__ import annotations

import builtins
import json
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc

from .. import errors
from ..inputs.row_rules import BrokenRows
from ..matching.overlap import Overlap
from .dtypes import to_stream
from .exposure_sums import ExposureSums, SumKey
from .part import Failure, Measured, PartResult
from .summary_rows import ItemGroups
from .value_moments import GroupMoments

SCHEMA = pa.schema({"tree": pa.large_string(), "arrays": pa.list_(pa.large_binary())})
RECORDS: dict[str, Any] = {
    one.__name__: one
    for one in (
        *(PartResult, Measured, Failure, Overlap, GroupMoments),
        *(ItemGroups, ExposureSums, SumKey),
    )
}


def to_arrow(result: PartResult) -> pa.Table:
    """Return the numbers of a result, or its error, as a table."""
    measured = result.measured
    if measured is not None and measured.exposed is not None:
        raise ValueError(
            "rows of exposure were made of a whole population, which is no part; measure with "
            "whole=False"
        )
    arrays: list[bytes] = []
    sent = replace(result, rows={}, measured=measured and replace(measured, side_tables=None))
    tree = json.dumps(_packed(sent, arrays))
    return pa.table({"tree": [tree], "arrays": [arrays]}, schema=SCHEMA)


def from_arrow(table: pa.Table) -> PartResult:
    """Read the result that `to_arrow` wrote."""
    (row,) = table.to_pylist()
    result: PartResult = _unpacked(json.loads(row["tree"]), row["arrays"])
    return result


def _packed(value: Any, arrays: list[bytes]) -> Any:
    """Return a value in types of JSON, and put the arrays in it beside those that are there."""

    def place(table: pa.Table) -> int:
        arrays.append(to_stream(table))
        return len(arrays) - 1

    def packed(one: Any) -> Any:
        return _packed(one, arrays)

    match value:
        case pd.DataFrame():
            table = pa.Table.from_pandas(value, preserve_index=False)
            return {"frame": place(table), "rows": len(value)}
        case pd.Series():
            return {"series": packed(value.to_frame("label"))}
        case np.ndarray():
            return {"array": place(pa.table({"one": value.ravel()})), "shape": value.shape}
        case pa.Array():
            return {"labels": place(pa.table({"one": value}))}
        case np.generic():
            return value.item()
        case BrokenRows():
            return {"findings": value.to_json()}
        case Exception():
            return {"error": _error_json(value)}
        case frozenset():
            return {"set": sorted(value)}
        case Mapping():
            return {"pairs": [[packed(key), packed(one)] for key, one in value.items()]}
    if (name := type(value).__name__) in RECORDS:
        return {"of": name, "given": [packed(getattr(value, one)) for one in value.__match_args__]}
    return [packed(one) for one in value] if isinstance(value, list | tuple) else value


def _unpacked(tree: Any, arrays: list[bytes]) -> Any:
    """Return the value that `_packed` wrote."""

    def unpacked(one: Any) -> Any:
        return _unpacked(one, arrays)

    def table(at: int) -> pa.Table:
        return ipc.open_stream(arrays[at]).read_all()

    match tree:
        case {"frame": at, "rows": rows}:
            frame = _frame(table(at))
            return frame if len(frame.columns) else pd.DataFrame(index=range(rows))
        case {"series": found}:
            return unpacked(found)["label"]
        case {"array": at, "shape": shape}:
            return table(at)["one"].to_numpy().reshape(shape).copy()
        case {"labels": at}:
            return table(at)["one"].combine_chunks()
        case {"findings": found}:
            return BrokenRows.from_json(found)
        case {"error": found}:
            return _error(found)
        case {"set": found}:
            return frozenset(found)
        case {"pairs": pairs}:
            return {unpacked(key): unpacked(one) for key, one in pairs}
        case {"of": name, "given": given}:
            return RECORDS[name](*map(unpacked, given))
    return list(map(unpacked, tree)) if isinstance(tree, list) else tree


def _error_json(error: Exception) -> dict[str, Any]:
    return {
        "class": type(error).__name__,
        "message": getattr(error, "marked", str(error)),
        "data": json.loads(json.dumps(getattr(error, "data", {}), default=str)),
        "notes": [*getattr(error, "__notes__", []), *_trace(error)],
    }


def _trace(error: Exception) -> Iterator[str]:
    """Give the lines of code that raised an error, unless recdf raised it, or it came from another
    process."""
    if error.__traceback__ is not None and not isinstance(error, errors.RecdfError):
        yield "In the part that failed:\n" + "".join(traceback.format_tb(error.__traceback__))


def _error(found: Mapping[str, Any]) -> Exception:
    """Make the error again from the name of its class and its message.

    Errors of a user's own metric may be of any class. One that is not known here, or that takes
    other arguments, becomes a RuntimeError. Notes below the message name the metric, and show the
    lines of code that raised it.
    """
    name, message = found["class"], found["message"]
    kind = getattr(errors, name, None) or getattr(builtins, name, None)
    try:
        error: Exception = kind(message, **found["data"])  # type: ignore[misc]
    except TypeError:
        error = RuntimeError(f"{name}: {message}")
    for note in found["notes"]:
        error.add_note(note)
    return error


def _frame(table: pa.Table) -> pd.DataFrame:
    # pandas 2.2 does not find the dtype of periods and intervals of Arrow by its name, which the
    # metadata has.
    unnamed = any(isinstance(kind, pa.BaseExtensionType) for kind in table.schema.types)
    how: dict[str, Any] = (
        {"types_mapper": pd.ArrowDtype, "ignore_metadata": True} if unnamed else {}
    )
    frame: pd.DataFrame = table.to_pandas(**how)
    return frame

"""A `PartResult` as one Arrow table, which a worker sends to the driver without pickle.

Contract: all results have the same schema, with one row per piece: its name, details as JSON, and
its numbers. Labels have types that differ, so they are stored as the bytes of an Arrow stream. Rows
per list are not sent, since engines keep them as a table. Rows of exposure are not sent either:
only a part that is the whole population has them.
"""

from __future__ import annotations

import builtins
import json
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc as ipc

from .. import errors
from ..inputs.row_rules import BrokenRows
from ..matching.counts import Over
from ..matching.overlap import Overlap
from .dtypes import to_stream
from .exposure_sums import ExposureSums, Role, SumKey
from .part import Failure, Measured, PartResult
from .summary_rows import ItemGroups
from .value_moments import GroupMoments

SCHEMA = pa.schema(
    {
        "piece": pa.string(),
        "details": pa.string(),
        "floats": pa.list_(pa.float64()),
        "integers": pa.list_(pa.int64()),
        "labels": pa.binary(),
    }
)


IN_JSON = (
    "counts",
    "side_counts",
    "order",
    "relevance_col",
)  # fields of `Measured` that JSON can hold


class _PartRow(NamedTuple):
    """One row of the table."""

    piece: str
    details: dict[str, Any]
    floats: np.ndarray = np.empty(0)
    integers: np.ndarray = np.empty(0, np.int64)
    labels: bytes | None = None


# ------------------------------------------------------------------------------------------------
# write


def to_arrow(result: PartResult) -> pa.Table:
    """Return the numbers of a result, or its error, as a table."""
    pieces = [_PartRow("buckets", {}, integers=np.array(sorted(result.buckets), np.int64))]
    if result.failure is not None:
        error, bucket = result.failure.error, result.failure.bucket
        details = {
            "class": type(error).__name__,
            "message": getattr(error, "marked", str(error)),
            "bucket": bucket,
        }
        details["data"] = json.loads(json.dumps(getattr(error, "data", {}), default=str))
        details["notes"] = [*getattr(error, "__notes__", []), *_trace(error)]
        pieces.append(_PartRow("failure", details))
    for role, findings in result.findings.items():
        pieces.append(_PartRow("findings", {"role": role, **findings.to_json()}))
    if result.measured is not None:
        pieces += _measured_rows(result.measured)
    rows = [piece._replace(details=json.dumps(piece.details)) for piece in pieces]  # type: ignore[arg-type]
    return pa.table(
        dict(zip(SCHEMA.names, map(list, zip(*rows, strict=True)), strict=True)), schema=SCHEMA
    )


def _trace(error: Exception) -> Iterator[str]:
    """Give the lines of code that raised an error, unless recdf raised it, or it came from another
    process."""
    if error.__traceback__ is not None and not isinstance(error, errors.RecdfError):
        yield "In the part that failed:\n" + "".join(traceback.format_tb(error.__traceback__))


def _measured_rows(measured: Measured) -> Iterator[_PartRow]:
    if measured.exposed is not None:
        raise ValueError(
            "rows of exposure were made of a whole population, which is no part; measure with "
            "whole=False"
        )
    counts = {name: getattr(measured, name) for name in IN_JSON}
    yield _PartRow("by", {"rows": len(measured.by)}, labels=_stream(measured.by))
    yield _PartRow("counts", counts, integers=measured.n_lists)
    overlap = asdict(measured.overlap)
    n_judged, by_shares_item = overlap.pop("n_judged"), overlap.pop("by_shares_item")
    yield _PartRow("overlap", overlap, by_shares_item.astype(np.float64), n_judged)
    if measured.moments is not None:
        yield from _moments("moments", measured.moments)
    if measured.groups is not None:
        groups = measured.groups
        details = {"columns": groups.columns, "counts": dict(groups.counts)}
        yield _PartRow("groups", details, labels=_stream(groups.labels.to_frame("label")))
        for one in groups.moments:
            yield from _moments("moments of group", one)
    if measured.exposure is not None:
        for role, labels in measured.exposure.labels.items():
            yield _PartRow("items", {"role": role}, labels=to_stream(pa.table({"item": labels})))
        for key, values in measured.exposure.sums.items():
            details = {**key._asdict(), "over": measured.exposure.over[key.name]}
            numbers: dict[str, Any] = {
                "integers" if values.dtype.kind in "iub" else "floats": values
            }
            yield _PartRow("sum", details, **numbers)


def _moments(piece: str, moments: GroupMoments) -> Iterator[_PartRow]:
    arrays = moments.sums()
    details = {"columns": moments.n.shape[1], "arrays": len(arrays)}
    yield _PartRow(piece, details, np.concatenate([one.ravel() for one in arrays]), moments.rows)


def _stream(frame: pd.DataFrame) -> bytes:
    return to_stream(pa.Table.from_pandas(frame, preserve_index=False))


# -------------------------------------------------------------------------------------------------
# read


def from_arrow(table: pa.Table) -> PartResult:
    """Read the result that `to_arrow` wrote."""
    pieces = [_read_part_row(row) for row in table.to_pylist()]
    (buckets,) = [
        frozenset(piece.integers.tolist()) for piece in pieces if piece.piece == "buckets"
    ]
    findings = {
        one.details["role"]: BrokenRows.from_json(one.details)
        for one in pieces
        if one.piece == "findings"
    }
    for piece in pieces:
        if piece.piece == "failure":
            return PartResult(buckets, failure=_failure(piece.details), findings=findings)
    named = {piece.piece: piece for piece in pieces}
    return PartResult(
        buckets, _measured_of(named, pieces) if "by" in named else None, findings=findings
    )


def _read_part_row(row: Mapping[str, Any]) -> _PartRow:
    floats, integers = np.array(row["floats"], np.float64), np.array(row["integers"], np.int64)
    return _PartRow(row["piece"], json.loads(row["details"]), floats, integers, row["labels"])


def _failure(details: Mapping[str, Any]) -> Failure:
    """Make the error again from the name of its class and its message.

    Errors of a user's own metric may be of any class. One that is not known here, or that takes
    other arguments, becomes a RuntimeError. Notes below the message name the metric, and show the
    lines of code that raised it.
    """
    name, message, data = details["class"], details["message"], details["data"]
    kind = getattr(errors, name, None) or getattr(builtins, name, None)
    try:
        error = kind(message, **data)  # type: ignore[misc]
    except TypeError:
        error = RuntimeError(f"{name}: {message}")
    for note in details["notes"]:
        error.add_note(note)
    return Failure(error, details["bucket"])


def _measured_of(named: Mapping[str, _PartRow], pieces: list[_PartRow]) -> Measured:
    counts, overlap = named["counts"], named["overlap"]
    by_shares_item = overlap.floats.astype(bool)
    moments = [_moments_of(piece) for piece in pieces if piece.piece == "moments"]
    groups = None
    if "groups" in named:
        of_groups = [_moments_of(piece) for piece in pieces if piece.piece == "moments of group"]
        details = named["groups"].details
        groups = ItemGroups(
            _frame_of_row(named["groups"])["label"],
            details["columns"],
            of_groups,
            details["counts"],
        )
    by = _frame_of_row(named["by"])
    return Measured(
        by=by if len(by.columns) else pd.DataFrame(index=range(named["by"].details["rows"])),
        n_lists=counts.integers,
        moments=moments[0] if moments else None,
        groups=groups,
        exposure=_exposure(pieces),
        overlap=Overlap(
            n_judged=overlap.integers, by_shares_item=by_shares_item, **overlap.details
        ),
        **counts.details,
    )


def _exposure(pieces: list[_PartRow]) -> ExposureSums | None:
    labels: dict[Role, pa.Array] = {}
    over: dict[str, Over] = {}
    sums: dict[SumKey, np.ndarray] = {}
    for piece in pieces:
        if piece.piece == "items":
            labels[piece.details["role"]] = _open(piece)["item"].combine_chunks()
        elif piece.piece == "sum":
            key = SumKey(piece.details["k"], piece.details["by"], piece.details["name"])
            over[key.name] = piece.details["over"]
            sums[key] = piece.integers if len(piece.integers) else piece.floats
    return ExposureSums(labels, over, sums) if labels else None


def _moments_of(piece: _PartRow) -> GroupMoments:
    details = piece.details
    return GroupMoments(
        piece.integers, *piece.floats.reshape(details["arrays"], -1, details["columns"])
    )


def _open(piece: _PartRow) -> pa.Table:
    return ipc.open_stream(piece.labels or b"").read_all()


def _frame_of_row(piece: _PartRow) -> pd.DataFrame:
    table = _open(piece)
    # pandas 2.2 does not find the dtype of periods and intervals of Arrow by its name, which the
    # metadata has.
    unnamed = any(isinstance(kind, pa.BaseExtensionType) for kind in table.schema.types)
    how: dict[str, Any] = (
        {"types_mapper": pd.ArrowDtype, "ignore_metadata": True} if unnamed else {}
    )
    frame: pd.DataFrame = table.to_pandas(**how)
    return frame

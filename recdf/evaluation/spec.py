"""`spec`: the JSON-safe record of what was computed, which travels with both tables.

`definitions` reads from it and the registry what each metric of a result means: one row per column.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict, cast

import pandas as pd

from .._version import version_and_build
from ..errors import OptionError
from ..inputs.options import Options, as_columns
from ..inputs.true_and_pred import Order
from ..matching.side_tables.digest import DescribedSide
from ..metrics.metric import find
from ..metrics.record import Request
from .mean_tables import CONFIDENCE


class MetricSpec(TypedDict):
    """The metric of a column of `per_user`: its name, its k, and the string with every
    parameter."""

    name: str
    k: int | None
    definition: str


class Spec(TypedDict):
    """The record of a call: version, key and `by` columns, metrics by column, options, counts of
    rows, digests."""

    recdf: str
    user_col: list[str]
    by: list[str]
    metrics: dict[str, MetricSpec]
    options: dict[str, Any]
    order: Order
    relevance: str | None
    counts: dict[str, int]
    confidence: float
    truth: NotRequired[str]
    side_tables: NotRequired[dict[str, DescribedSide]]
    files: NotRequired[dict[str, dict[str, int]]]
    item_by: NotRequired[str]
    carry: NotRequired[dict[str, str]]
    weight: NotRequired[str]
    interval_unit: NotRequired[str]
    joined: NotRequired[dict[str, dict[str, Any]]]


def spec_of(
    requests: Sequence[Request],
    options: Options,
    order: Order,
    relevance_col: str | None,
    counts: Mapping[str, int],
    side_tables: Mapping[str, DescribedSide],
    item_by: str | None = None,
) -> Spec:
    """Return the record of a call: the metrics and options, the columns that order `pred` and grade
    `true`, and counts."""
    spec: Spec = {
        "recdf": version_and_build(),
        "user_col": list(map(str, as_columns(options.user_col))),
        "by": list(map(str, as_columns(options.by))),
        "metrics": {name: one for request in requests for name, one in _request_columns(request)},
        "options": options.spec(),
        "order": order,
        "relevance": None if relevance_col is None else str(relevance_col),
        "counts": dict(counts),
        "confidence": CONFIDENCE,
    }
    if len(spec["user_col"]) > 1:
        spec["interval_unit"] = (
            "list"  # standard errors of the summary take the lists of a user for independent
        )
    if options.weight_name is not None:
        spec["weight"] = options.weight_name
    if side_tables:
        spec["side_tables"] = dict(side_tables)
    if item_by is not None:
        spec["item_by"] = item_by
    return cast(Spec, OneSpec(spec))


class OneSpec(dict[str, Any]):
    """A spec of which there is one for all frames: a deep copy is the spec itself, and no part of
    it may be changed.

    pandas copies `attrs` deeply for each column that is taken out of a frame, which would take
    longer than the work on the column. A pickle holds a plain dict.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> OneSpec:
        return self

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        return dict, (dict(self),)


def _request_columns(request: Request) -> list[tuple[str, MetricSpec]]:
    """Return the columns of a request. A name that the caller gave replaces the metric's; each
    output has a column."""
    name = request.name
    found: list[tuple[str, MetricSpec]] = []
    for column, output in zip(request.columns, request.metric.outputs, strict=True):
        if len(request.metric.outputs) > 1:
            name = output
        elif request.own_column is not None:
            name = column
        found.append((column, {"name": name, "k": request.k, "definition": request.definition}))
    return found


METRIC_FIELDS = ("name", "k", "definition")  # of a metric in a spec
# Columns of texts, with the fields of the metric's record.
DEFINITION_FIELDS = {
    "family": "family",
    "meaning": "doc",
    "formula": "formula",
    "better": "better",
    "references": "references",
}


def better_of(column: str) -> str | None:
    """Return "larger" or "smaller" for a column such as "first_rank@10", None where the metric has
    no direction."""
    try:
        return find(re.split("[@(]", column)[0]).stated(column)[1]
    except OptionError:  # not a metric of the registry
        return None


def definitions(spec: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row per metric column of a spec: its definition with every option, its meaning and
    its formula.

    A metric that is not registered, such as a user's own function in another session, has empty
    texts.
    """
    rows = []
    for column, found in spec["metrics"].items():
        try:
            record: Any = find(found["definition"].partition("@")[0].partition("(")[0])
        except OptionError:
            record = None
        texts = {
            name: " ".join((getattr(record, field, "") or "").split())
            for name, field in DEFINITION_FIELDS.items()
        }
        if record is not None:
            texts["better"] = record.stated(found["definition"])[1] or ""
        rows.append({"column": column, **{name: found[name] for name in METRIC_FIELDS}, **texts})
    return pd.DataFrame(rows, columns=["column", *METRIC_FIELDS, *DEFINITION_FIELDS])

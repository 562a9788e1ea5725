"""Findings about data: rows are collected one after another and become one table, errors first,
that shows itself."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

from pandas import DataFrame

from ..errors import in_words
from .cells import (
    SHOWN_ROWS,
    Align,
    AnyFrame,
    Cell,
    amount,
    html_of_pandas,
    number,
    to_html,
    to_text,
    visible,
)

Severity = Literal["error", "warning", "info"]  # in the order of a table

FINDING_COLUMNS = {
    "finding": "str",
    "severity": "str",
    "count": "int64",
    "share": "float64",
    "examples": "str",
    "effect": "str",
    "code": "str",
}
FINDING_EXAMPLES = 5
NARROWEST = 30  # columns of a terminal for the effect of a finding


@dataclass
class Findings:
    """Rows of the result, in the order in which they are found.

    `refused_numbers` tells that no lists can be made, because of null scores or of relevances that
    cannot be gains. `parts` tells that the data are those of some users, so that what is not found
    counts too: the findings of all parts add up.
    """

    columns: ClassVar[Mapping[str, str]] = FINDING_COLUMNS
    rows: list[dict[str, Any]] = field(default_factory=list)
    refused_numbers: bool = False
    parts: bool = False

    def add(
        self,
        code: str,
        finding: str,
        severity: Severity,
        count: Any,
        of: Any,
        examples: Any,
        effect: str,
        by: str = "",
        ranges: str = "",
        frame: str = "",
    ) -> None:
        """Add a finding that concerns `count` of `of` rows or lists; `by` names whose they are.
        Readers know a finding by its `code`, and by the `frame` that it is about.

        A finding of 0 rows is not shown. `of` is None for a finding about all the data.
        """
        words = examples
        if not isinstance(examples, str):
            words = ", ".join(map(repr, list(examples)[:FINDING_EXAMPLES]))
        self.rows.append(
            {
                "finding": in_words(finding),
                "severity": severity,
                "count": int(count),
                "of": of,
                "examples": words,
                "effect": in_words(effect),
                "code": code,
                "by": by,
                "ranges": ranges,
                "frame": frame,
            }
        )

    def __add__(self, other: Findings) -> Findings:
        """Return the findings of two parts of the data. The examples are those of the first part
        that has some."""
        rows: dict[Any, dict[str, Any]] = {}
        for row in (*self.rows, *other.rows):
            of = row["examples"] if row["code"] == "null_ids" else ""  # each column has its own
            key = row["code"], row["finding"], row["by"], row["frame"], of
            before = rows.setdefault(key, row)
            if before is not row and row["of"] is not None:
                sums = {name: before[name] + row[name] for name in ("count", "of")}
                rows[key] = (before if before["count"] else row) | sums
        refused = self.refused_numbers or other.refused_numbers
        return type(self)(list(rows.values()), refused, self.parts)

    def table(self) -> DataFrame:
        """Return all findings as a table: errors, then warnings, then infos."""
        place = get_args(Severity).index
        found = (row for row in self.rows if row["count"])
        rows = sorted(found, key=lambda row: place(row["severity"]))
        for row in rows:
            of = 1 if row["of"] is None else row["of"]
            row["share"] = row["count"] / of if of else math.nan
            if row["code"] == "empty":
                row["count"] = 1  # in however many parts
        return ShownFindings(DataFrame(rows, columns=[*self.columns]).astype(self.columns))


def row_objects(frame: DataFrame) -> list[Any]:
    """Return rows as tuples of Python objects; the rows of a single column are the objects
    themselves."""
    rows = frame.astype(object).to_numpy().tolist()
    return [row[0] if len(row) == 1 else tuple(row) for row in rows]


def row_names(frame: DataFrame) -> list[str]:
    """Return the labels of each row as one text, which is empty without columns."""
    return [" · ".join(map(str, row)) for row in frame.astype(object).to_numpy().tolist()]


class ShownFindings(DataFrame, metaclass=AnyFrame):
    """What `check` returns: a DataFrame that shows every finding with the whole text of its
    effect."""

    def _whole(self) -> bool:
        return all(name in self.columns for name in FINDING_COLUMNS)

    def __repr__(self) -> str:
        return findings_text(self) if self._whole() else super().__repr__()

    def _repr_html_(self) -> str | None:
        if not self._whole():
            return html_of_pandas(self)
        if not len(self):
            return "<p>no findings</p>"
        rows = [
            [*_first_cells(row), Cell(row["effect"]), Cell(row["examples"])]
            for row in self.head(SHOWN_ROWS).to_dict("records")
        ]
        return to_html(
            [*FINDING_HEAD, "effect", "examples"], rows, [*FINDING_SIDES, "left", "left"]
        )


def finding_of(row: Mapping[Any, Any]) -> str:
    """Return a finding with the recommender whose lists it is about, such as "knn: lists shorter
    than 10"."""
    return f"{row['by']}: {row['finding']}" if row.get("by", "") else row["finding"]


FINDING_HEAD = ["severity", "finding", "count", "share"]
FINDING_SIDES: list[Align] = ["left", "left", "right", "right"]


def _first_cells(row: dict[Any, Any]) -> list[Cell]:
    severity = row["severity"]
    share = number(row["share"], ".1%")
    first = Cell(severity, bold=severity == "error")
    return [first, Cell(finding_of(row)), Cell(f"{int(row['count']):,}"), Cell(share)]


def findings_text(findings: DataFrame) -> str:
    """Return findings for a terminal, the effect wrapped to its width and the examples below it."""
    if not len(findings):
        return "no findings"
    shown = findings.head(SHOWN_ROWS).to_dict("records")
    left = to_text(FINDING_HEAD, [*map(_first_cells, shown)], FINDING_SIDES).splitlines()
    margin = max(map(len, left)) + 2
    width = max(NARROWEST, shutil.get_terminal_size((120, 24)).columns - margin)
    lines = [left[0].ljust(margin) + "effect, examples"]
    for start, row in zip(left[1:], shown, strict=True):
        texts = visible(row["effect"]), visible(row["examples"])
        wrapped = [line for part in texts for line in textwrap.wrap(part, width)] or [""]
        lines.append((start.ljust(margin) + wrapped[0]).rstrip())
        lines += [" " * margin + line for line in wrapped[1:]]
    if len(findings) > len(shown):
        lines.append(f"... and {amount(len(findings) - len(shown), 'more finding')}")
    return "\n".join(lines)

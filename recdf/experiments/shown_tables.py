"""Tables that show themselves: comparisons and findings as people read them, in a notebook and in a terminal.

Contract: each is a DataFrame in every respect but its look. What is taken from it, rows or columns, is a plain
DataFrame, which `rd.report_table` shows in the same way.
"""

from __future__ import annotations

import shutil
import textwrap
from typing import Any, Self

import pandas as pd

from .cells import Align, Cell, number, to_html, to_text, visible
from .report import COMPARED, SHOWN_ROWS, ReportTable, report_table

__all__: list[str] = []

FOUND = ("finding", "severity", "count", "share", "examples", "effect")
LEAST_NEEDED = ("means", "MDE", "var. reduction", "n", "wins/ties/losses", "relative")
NARROWEST = 30  # columns of a terminal for the effect of a finding


class _AnyFrame(type):
    """A class that differs from a DataFrame in its look alone, so that every DataFrame is an instance of it.

    `pandas.testing` asks for this before it compares: a table that was read back from parquet equals the one written.
    """

    def __instancecheck__(cls, one: object) -> bool:
        return isinstance(one, pd.DataFrame)


class Comparison(pd.DataFrame, metaclass=_AnyFrame):
    """What `compare_models` and `compare_variants` return: a DataFrame that shows effects, intervals and verdicts."""

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Self:
        """Return a frame as this class, its attrs included."""
        shown = cls(frame)
        shown.attrs = frame.attrs
        return shown

    def _whole(self) -> bool:
        sides = ("baseline", "model") if "baseline" in self.columns else ("control", "treatment")
        return len(self) > 0 and all(name in self.columns for name in (*COMPARED, *sides))

    def __repr__(self) -> str:
        return comparison_text(self) if self._whole() else super().__repr__()

    def _repr_html_(self) -> str | None:
        return report_table(self)._repr_html_() if self._whole() else _html_of_pandas(self)


class Findings(pd.DataFrame, metaclass=_AnyFrame):
    """What `check` returns: a DataFrame that shows every finding with the whole text of its effect."""

    def _whole(self) -> bool:
        return all(name in self.columns for name in FOUND)

    def __repr__(self) -> str:
        return findings_text(self) if self._whole() else super().__repr__()

    def _repr_html_(self) -> str | None:
        if not self._whole():
            return _html_of_pandas(self)
        if not len(self):
            return "<p>no findings</p>"
        rows = [
            [Cell(str(row["severity"]), bold=row["severity"] == "error"), Cell(row["finding"]), *_numbers(row),
             Cell(row["effect"]), Cell(str(row["examples"]))]
            for row in self.head(SHOWN_ROWS).to_dict("records")
        ]  # fmt: skip
        head = ["severity", "finding", "count", "share", "effect", "examples"]
        return to_html(head, rows, ["left", "left", "right", "right", "left", "left"])


def _html_of_pandas(frame: pd.DataFrame) -> str | None:
    """The look that pandas gives a frame, names escaped."""
    found: Any = pd.DataFrame(frame)
    html: str | None = found._repr_html_()
    return html


def comparison_text(comparison: pd.DataFrame) -> str:
    """Return a comparison for a terminal; where the window is narrow, without the columns that matter least."""
    table = report_table(comparison)
    text = table.to_text()
    for name in LEAST_NEEDED:
        if max(map(len, text.splitlines())) <= shutil.get_terminal_size((120, 24)).columns:
            break
        table = ReportTable(table.frame.drop(columns=[c for c in table.frame.columns if c.split(" (")[0] == name]))
        text = table.to_text()
    return text


def _numbers(row: dict[Any, Any]) -> tuple[Cell, Cell]:
    return Cell(f"{int(row['count']):,}"), Cell(number(row["share"], ".1%"))


def findings_text(findings: pd.DataFrame) -> str:
    """Return findings for a terminal, the effect wrapped to its width and the examples below it."""
    if not len(findings):
        return "no findings"
    sides: list[Align] = ["left", "left", "right", "right"]
    head = ["severity", "finding", "count", "share"]
    shown = findings.head(SHOWN_ROWS).to_dict("records")
    cells = [[Cell(str(row["severity"])), Cell(row["finding"]), *_numbers(row)] for row in shown]
    left = to_text(head, cells, sides).splitlines()
    margin = max(map(len, left)) + 2
    width = max(NARROWEST, shutil.get_terminal_size((120, 24)).columns - margin)
    lines = [left[0].ljust(margin) + "effect, examples"]
    for start, row in zip(left[1:], shown, strict=True):
        texts = [part for part in (visible(row["effect"]), visible(row["examples"])) if part]
        wrapped = [line for part in texts for line in textwrap.wrap(part, width)] or [""]
        lines.append((start.ljust(margin) + wrapped[0]).rstrip())
        lines += [" " * margin + line for line in wrapped[1:]]
    if len(findings) > len(shown):
        lines.append(f"... and {len(findings) - len(shown):,} more findings")
    return "\n".join(lines)

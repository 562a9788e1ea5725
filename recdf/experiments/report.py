"""Comparisons and findings as tables for people: notebook, terminal, Markdown, LaTeX.

Contract: a table that shows itself is a DataFrame in every respect but its look. What is taken from it, rows or
columns, is a plain DataFrame, which `rd.report_table` shows in the same way.
"""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import pandas as pd

from ..errors import ColumnError
from .cells import Align, Cell, interval, number, p_value, plain_rows, to_html, to_latex, to_markdown, to_text, visible
from .columns import count, frame_of

__all__ = ["ReportTable", "report_table"]

COMPARED = ("metric", "diff", "ci_low", "ci_high", "p_adj", "verdict", "warning")
# Rows that a notebook or a terminal shows of a long table; `to_markdown()` and the others give all of them.
SHOWN_ROWS = 60


@dataclass(frozen=True)
class ReportTable:
    """A table of strings that shows itself: as HTML in a notebook, as Markdown when printed.

    `frame` holds the cells; every column is a string column.
    """

    frame: pd.DataFrame

    def to_markdown(self) -> str:
        """Return a Markdown table, padded to be readable as text too."""
        return to_markdown(*self._parts())

    def to_latex(self) -> str:
        """Return a LaTeX tabular; it needs no package."""
        return to_latex(*self._parts(), booktabs=False)

    def to_html(self) -> str:
        """Return an HTML table."""
        return to_html(*self._parts())

    def to_text(self) -> str:
        """Return aligned columns for a terminal, long tables cut."""
        more = len(self.frame) - SHOWN_ROWS
        return to_text(*self._parts(SHOWN_ROWS)) + (f"\n... and {more:,} more rows" if more > 0 else "")

    def _parts(self, rows: int | None = None) -> tuple[list[str], list[list[Cell]], list[Align]]:
        shown = self.frame if rows is None else self.frame.head(rows)
        names = [str(name) for name in shown.columns]
        return names, plain_rows(shown.itertuples(index=False, name=None)), ["left"] * len(names)

    def _repr_html_(self) -> str:
        more = len(self.frame) - SHOWN_ROWS
        return to_html(*self._parts(SHOWN_ROWS)) + (f"<p>... and {more:,} more rows</p>" if more > 0 else "")

    def __str__(self) -> str:
        more = len(self.frame) - SHOWN_ROWS
        return to_markdown(*self._parts(SHOWN_ROWS)) + (f"\n... and {more:,} more rows" if more > 0 else "")

    __repr__ = __str__


def note_of(row: Mapping[Any, Any], digits: int = 4) -> str:
    """Return the warnings of a row in words, with the numbers and columns that a reader asks for next."""
    said = str(row.get("warning", "")).replace("_", " ")
    if "mean_denominator_control" in row:
        means = f"{row['mean_denominator_treatment']:.4g} vs. {row['mean_denominator_control']:.4g}"
        said = said.replace("denominator differs", f"denominator differs ({means})")
    if "diff_without_top" in row:
        without = number(row["diff_without_top"], f"+.{digits}f")
        said = said.replace("few units", f"few units ({without} without them)")
    if "design_effect" in row:
        said = said.replace("repeated units", f"repeated units (design effect {row['design_effect']:.3g})")
    return said + (f": {visible(row['unbalanced'])}" if row.get("unbalanced", "") else "")


def report_table(comparison: pd.DataFrame, *, digits: int = 4) -> ReportTable:
    """Format a comparison of variants or models for a reader: effect and interval first, verdict last.

    Parameters
    ----------
    comparison : DataFrame
        What `compare_variants` or `compare_models` returned, all of it or some of its rows.
    digits : int, default 4
        Decimals of values in units of the metric. Relative effects have one decimal of a per cent.

    Returns
    -------
    ReportTable
        Shown as HTML by a notebook and as Markdown by `print`; `.to_markdown()`, `.to_latex()`, `.to_html()`, `.frame`.
        Columns: segments, `metric`, `comparison`, `effect` with its interval, `relative` with its interval (variants),
        `p` (adjusted), `means` and `n` (treatment vs. control, or users), `MDE` (variants), `var. reduction` (if any
        row has one), `wins/ties/losses` (models), `verdict`, `notes` (if any row has a warning). A null is "–".

    Raises
    ------
    ColumnError
        If the frame is not a comparison.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame({"user_id": range(40), "variant": ["A", "B"] * 20, "ctr": [1, 2, 3, 4, 2, 5, 3, 4] * 5})
    >>> table = rd.report_table(rd.compare_variants(users, "ctr", control="A", expected={"A": 1, "B": 1}), digits=2)
    >>> table.frame[["metric", "comparison", "effect (95% CI)", "p", "verdict"]]
      metric comparison       effect (95% CI)       p verdict
    0    ctr    B vs. A  +1.50 [+0.86, +2.14]  <0.001  better
    """
    frame_of("comparison", comparison)
    count("digits", digits, 0)
    models = "baseline" in comparison.columns
    base, other = ("baseline", "model") if models else ("control", "treatment")
    needed = [*COMPARED, base, other]
    missing = [name for name in needed if name not in comparison.columns]
    if missing:
        raise ColumnError(
            f"comparison has no column {missing[0]!r}; expected what compare_variants or compare_models returns"
        )
    levels: list[float] = comparison["confidence"].unique().tolist() if "confidence" in comparison.columns else []
    level = f"{100 * levels[0]:g}% CI" if len(levels) == 1 else "CI"

    def text(*names: str, form: Callable[..., str]) -> list[str]:
        return [form(*values) for values in zip(*(comparison[name].tolist() for name in names), strict=True)]

    def plain(value: Any) -> str:
        return number(value, f".{digits}f")

    def estimate(form: str) -> Callable[..., str]:
        return lambda effect, low, high: f"{number(effect, form)} {interval(low, high, form)}".rstrip()

    before = list(comparison.columns[: list(comparison.columns).index("metric")])
    cells = {name: [str(value) for value in comparison[name].tolist()] for name in [*before, "metric"]}
    cells["comparison"] = text(other, base, form=lambda new, old: f"{new} vs. {old}")
    cells[f"effect ({level})"] = text("diff", "ci_low", "ci_high", form=estimate(f"+.{digits}f"))
    if models:
        cells["relative"] = text("rel_diff", form=lambda value: number(value, "+.1%"))
    else:
        cells[f"relative ({level})"] = text("rel_diff", "rel_ci_low", "rel_ci_high", form=estimate("+.1%"))
    cells["p"] = text("p_adj", form=p_value)
    cells["means"] = text(f"mean_{other}", f"mean_{base}", form=lambda new, old: f"{plain(new)} vs. {plain(old)}")
    if models:
        cells["n"] = text("n_users", form=lambda n: f"{n:,}")
        cells["wins/ties/losses"] = text("wins", "ties", "losses", form=lambda *v: "/".join(f"{n:,}" for n in v))
    else:
        cells["n"] = text("n_treatment", "n_control", form=lambda new, old: f"{new:,} vs. {old:,}")
        cells["MDE"] = text("mde", form=plain)
        if comparison["variance_reduction"].notna().any():
            cells["var. reduction"] = text("variance_reduction", form=lambda value: number(value, ".1%"))
    cells["verdict"] = text("verdict", form=str)
    if (comparison["warning"] != "").any():
        cells["notes"] = [note_of(row, digits) for row in comparison.to_dict("records")]
    return ReportTable(pd.DataFrame(cells))


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

"""Tables that show themselves in a notebook and in a terminal: a table of strings, and a DataFrame
with its own look.

Contract: a table that shows itself is a DataFrame in every respect but its look. What is taken from
it, rows or columns, is a plain DataFrame.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from .cells import Align, Cell, html_text, plain_rows, to_html, to_latex, to_markdown, to_text

# Rows that a notebook or a terminal shows of a long table; `to_markdown()` and the others give all
# of them.
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
        return to_text(*self._parts(SHOWN_ROWS)) + (
            f"\n... and {more:,} more rows" if more > 0 else ""
        )

    def _parts(self, rows: int | None = None) -> tuple[list[str], list[list[Cell]], list[Align]]:
        shown = self.frame if rows is None else self.frame.head(rows)
        names = [str(name) for name in shown.columns]
        return names, plain_rows(shown.itertuples(index=False, name=None)), ["left"] * len(names)

    def _repr_html_(self) -> str:
        more = len(self.frame) - SHOWN_ROWS
        return to_html(*self._parts(SHOWN_ROWS)) + (
            f"<p>... and {more:,} more rows</p>" if more > 0 else ""
        )

    def __str__(self) -> str:
        more = len(self.frame) - SHOWN_ROWS
        return to_markdown(*self._parts(SHOWN_ROWS)) + (
            f"\n... and {more:,} more rows" if more > 0 else ""
        )

    __repr__ = __str__


class ShownResult:
    """A result that shows itself as a headline, a table and notes."""

    @property
    def headline(self) -> str:
        """What was found, as one line."""
        raise NotImplementedError

    @property
    def notes(self) -> list[str]:
        """What a reader of the table must know, a sentence each."""
        return []

    def _shown(self) -> ReportTable:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(
            [self.headline, "", self._shown().to_text(), *([""] if self.notes else []), *self.notes]
        )

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{html_text(part)}</p>" for part in self.notes)
        return f"<p><b>{html_text(self.headline)}</b></p>{self._shown()._repr_html_()}{notes}"


class AnyFrame(type):
    """A class that differs from a DataFrame in its look alone, so that every DataFrame is an
    instance of it.

    `pandas.testing` asks for this before it compares: a table that was read back from parquet
    equals the one written.
    """

    def __instancecheck__(cls, one: object) -> bool:
        return isinstance(one, pd.DataFrame)


def html_of_pandas(frame: pd.DataFrame) -> str | None:
    """The look that pandas gives a frame, names escaped."""
    found: Any = pd.DataFrame(frame)
    html: str | None = found._repr_html_()
    return html

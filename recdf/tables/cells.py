"""Cells of a table for people: numbers as text, and the same cells as Markdown, LaTeX, HTML and
plain text; and the frames that show themselves in this way.

Contract: every text is escaped here and nowhere else. A name from a log can hold tags, pipes,
dollars, line breaks and marks that turn the direction of writing round; it comes out as letters in
all four forms.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import pandas as pd

NULL = "–"

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "−": "$-$",
    "∞": r"$\infty$",
    "<": "$<$",
    ">": "$>$",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "–": "--",
    "·": r"$\cdot$",
    "…": r"\ldots{}",
    "|": r"$|$",
    '"': r"\symbol{34}",
    "⟨": r"$\langle$",
    "⟩": r"$\rangle$",
    "×": r"$\times$",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
}

_SUPERSCRIPT = dict(zip("abcdefghijklmnoprstuvwxyz+−", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ⁺⁻", strict=True))

# Letters for models in the order of the table. There is no superscript q in Unicode.
LETTERS = "abcdefghijklmnoprstuvwxyz"


class Cell(NamedTuple):
    """One cell: a main text with its weight, a mark in superscript, and a smaller text behind
    it."""

    text: str
    bold: bool = False
    underline: bool = False
    mark: str = ""
    small: str = ""


CellRows = Sequence[Sequence[Cell]]
Align = Literal["left", "right"]


# -- numbers and names


def number(value: Any, form: str) -> str:
    """Return a number in a format, with a true minus sign; a null is a dash."""
    if pd.isna(value):
        return NULL
    return format(value, form).replace("-", "−").replace("inf", "∞")


def brief(value: Any) -> str:
    """Return a cell of any kind in few letters: a number with four digits that count, a day,
    nothing for a null."""
    if pd.isna(value):
        return ""
    if isinstance(value, pd.Timestamp):
        return f"{value:%Y-%m-%d}"
    return (
        str(value)
        if not isinstance(value, float)
        else f"{value:,.0f}"
        if abs(value) >= 1000
        else f"{value:.4g}"
    )


def interval(low: Any, high: Any, form: str) -> str:
    """Return the two bounds in brackets, or nothing where there is no interval."""
    return "" if pd.isna(low) or pd.isna(high) else f"[{number(low, form)}, {number(high, form)}]"


def digits_for(*values: Any, significant: int = 3) -> int:
    """Return the decimals with which the largest of some numbers has three digits that count.

    >>> digits_for(0.0463, 0.0318), digits_for(8.36), digits_for(1234.5)
    (4, 2, 0)
    """
    finite = [
        abs(float(value))
        for value in values
        if not pd.isna(value) and abs(float(value)) != math.inf
    ]
    largest = max(finite, default=0.0)
    return 3 if largest == 0 else max(0, min(6, significant - 1 - math.floor(math.log10(largest))))


def p_value(p: Any) -> str:
    """Return a p-value with three decimals, the smallest as <0.001."""
    if pd.isna(p):
        return NULL
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def visible(text: Any) -> str:
    """Return a text in which control characters and marks of the writing direction are shown by
    their numbers.

    >>> visible("a\\u202eb")
    'a⟨U+202E⟩b'
    """
    words = re.sub(r"[\t\r\n\u2028\u2029]+", " ", str(text))
    if words.isprintable():
        return words
    hidden = ("Cc", "Cf", "Cs", "Co", "Cn")
    return "".join(f"⟨U+{ord(c):04X}⟩" if unicodedata.category(c) in hidden else c for c in words)


def shorten(text: str, length: int) -> str:
    """Return a text cut in its middle to `length` characters: names of runs often differ at their
    end.

    >>> shorten("bert4rec-2026-11-20-seed7", 15)
    'bert4re…0-seed7'
    """
    if len(text) <= length:
        return text
    head = (length - 1 + 1) // 2
    return f"{text[:head]}…{text[len(text) - (length - 1 - head) :]}"


def short_names(names: Iterable[Any], length: int) -> list[str]:
    """Return names cut to `length` characters so that different names stay different.

    Names that are equal once their middle is cut show where they differ instead, or their number at
    last.

    >>> short_names(["a-long-run-lr1-seed-7", "a-long-run-lr2-seed-7"], 12)
    ['a-l…lr1-seed', 'a-l…lr2-seed']
    """
    shown = [visible(name) for name in names]
    cut = {name: shorten(name, length) for name in shown}
    for short in {text for text in cut.values() if list(cut.values()).count(text) > 1}:
        alike = [name for name in cut if cut[name] == short]
        differ = next(
            (i for i, letters in enumerate(zip(*alike, strict=False)) if len(set(letters)) > 1), 0
        )
        head = length // 4
        start = max(head, min(differ - 2, min(map(len, alike)) - (length - head - 1)))
        for i, name in enumerate(alike):
            text = f"{name[:head]}…{name[start : start + length - head - 1]}"
            cut[name] = text if text not in cut.values() else f"{short[: length - 5]}… {i + 1}"
    return [cut[name] for name in shown]


def superscript(mark: str) -> str:
    """Return letters and signs as superscript characters."""
    return "".join(_SUPERSCRIPT.get(letter, letter) for letter in mark)


# -- one cell


def markdown_text(text: Any) -> str:
    """Return a text whose pipes, tags, stars and links mean nothing to Markdown."""
    safe = (
        visible(text)
        .replace("\\", "\\\\")
        .replace("|", r"\|")
        .replace("*", r"\*")
        .replace("](", r"]\(")
    )
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", safe)


def latex_text(text: Any) -> str:
    """Return a text in which every character that LaTeX would interpret is written out."""
    return "".join(_LATEX.get(letter, letter) for letter in visible(text))


def html_text(text: Any) -> str:
    """Return a text without a character that HTML would interpret; its direction cannot spread to
    its neighbours."""
    return html.escape(visible(text), quote=True)


def _markdown(cell: Cell) -> str:
    text = markdown_text(cell.text)
    text = f"**{text}**" if cell.bold else f"_{text}_" if cell.underline else text
    return text + superscript(cell.mark) + (f" {markdown_text(cell.small)}" if cell.small else "")


def _latex(cell: Cell) -> str:
    text = latex_text(cell.text)
    text = (
        rf"\textbf{{{text}}}" if cell.bold else rf"\underline{{{text}}}" if cell.underline else text
    )
    mark = f"$^{{{cell.mark.replace('−', '-')}}}$" if cell.mark else ""
    return text + mark + (rf" {{\footnotesize {latex_text(cell.small)}}}" if cell.small else "")


def _html(cell: Cell) -> str:
    text = html_text(cell.text)
    text = f"<b>{text}</b>" if cell.bold else f"<u>{text}</u>" if cell.underline else text
    text += f"<sup>{html_text(cell.mark)}</sup>" if cell.mark else ""
    return text + (f" <small>{html_text(cell.small)}</small>" if cell.small else "")


# -- whole tables


def to_markdown(head: Sequence[str], body: CellRows, align: Sequence[Align]) -> str:
    """Return a Markdown table, padded so that it reads as text too."""
    rows = [
        [markdown_text(name) for name in head],
        *([_markdown(cell) for cell in row] for row in body),
    ]
    widths = [max(3, *(len(row[j]) for row in rows)) for j in range(len(head))]
    lines = [f"| {' | '.join(map(_padded, row, widths, align))} |" for row in rows]
    rule = (
        "-" * (width + 1) + (":" if side == "right" else "-")
        for width, side in zip(widths, align, strict=True)
    )
    lines.insert(1, "|" + "|".join(rule) + "|")
    return "\n".join(lines)


def to_latex(head: Sequence[str], body: CellRows, align: Sequence[Align], *, booktabs: bool) -> str:
    """Return a LaTeX tabular, with the rules of booktabs or with plain lines that need no
    package."""
    top, middle, bottom = (
        (r"\toprule", r"\midrule", r"\bottomrule") if booktabs else (r"\hline",) * 3
    )
    columns = "".join("r" if side == "right" else "l" for side in align)
    first = " & ".join(latex_text(name) for name in head) + r" \\"
    rows = [" & ".join(_latex(cell) for cell in row) + r" \\" for row in body]
    return "\n".join(
        [rf"\begin{{tabular}}{{{columns}}}", top, first, middle, *rows, bottom, r"\end{tabular}"]
    )


def to_html(head: Sequence[str], body: CellRows, align: Sequence[Align]) -> str:
    """Return an HTML table for a notebook."""
    style = [
        ' style="text-align: right"' if side == "right" else ' style="text-align: left"'
        for side in align
    ]
    cells = "".join(
        f"<th{how}>{html_text(name)}</th>" for name, how in zip(head, style, strict=True)
    )
    lines = ["<table>", f"<thead><tr>{cells}</tr></thead>", "<tbody>"]
    for row in body:
        lines.append(
            "<tr>"
            + "".join(f"<td{h}>{_html(c)}</td>" for c, h in zip(row, style, strict=True))
            + "</tr>"
        )
    return "\n".join([*lines, "</tbody>", "</table>"])


def to_text(head: Sequence[str], body: CellRows, align: Sequence[Align]) -> str:
    """Return aligned columns for a terminal."""
    rows = [[visible(name) for name in head]]
    for row in body:
        rows.append(
            [
                visible(c.text) + superscript(c.mark) + (f" {visible(c.small)}" if c.small else "")
                for c in row
            ]
        )
    widths = [max(len(row[j]) for row in rows) for j in range(len(head))]
    return "\n".join("  ".join(map(_padded, row, widths, align)).rstrip() for row in rows)


def plain_rows(rows: Iterable[Sequence[Any]]) -> list[list[Cell]]:
    """Return rows of texts as cells without weight."""
    return [[Cell(str(text)) for text in row] for row in rows]


def _padded(text: str, width: int, side: Align) -> str:
    return text.rjust(width) if side == "right" else text.ljust(width)


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

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
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

NULL = "–"
POWERS = {0: "", 6: "M", 9: "G", 12: "T", 15: "P"}
# Half an interval that is a smaller part of its number, or a bound that is a smaller part of the
# last digit, is rounding alone.
RESIDUE = 1e-12

_LATEX = str.maketrans(
    {
        **{letter: rf"\{letter}" for letter in "&%$#_{}"},
        "\\": r"\textbackslash{}",
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
)

_SUPERSCRIPT = str.maketrans("abcdefghijklmnoprstuvwxyz+−", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ⁺⁻")

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


class Form(NamedTuple):
    """How the numbers of one row are written: decimals of value / 10**power, which may be below 0,
    and a sign that may be "+" (a plus before numbers above 0), "%" or both."""

    decimals: int
    power: int = 0
    sign: str = ""


def form_of(*values: Any, half: Any = math.nan, sign: str = "", significant: int = 3) -> Form:
    """Return how some numbers are written beside each other: two digits count of half their
    interval. Without an interval, three digits of the largest number count, or fewer where these
    say all.

    From 1e6 on, numbers are written in M, G, T and P, and below 1e-5 with an exponent. A number
    that is not 0 gets up to three digits more, so that it is not written as 0.

    >>> [number(one, form_of(one, half=0.0131)) for one in (0.18539, 1234.5, 0.0001)]
    ['0.185', '1,234.500', '0.0001']
    >>> number(1352983870967.742, form_of(1352983870967.742, half=4.5e9))
    '1.3530T'
    """
    unit = 100 if "%" in sign else 1
    found = [abs(float(value)) * unit for value in values if not pd.isna(value)]
    sizes = [value for value in found if 0 < value < math.inf]
    half = abs(float(half)) * unit
    largest = max([*sizes, half if half < math.inf else 0], default=0.0)
    if not largest:
        return Form(0, 0, sign)
    power = math.floor(math.log10(largest)) // 3 * 3
    power = 0 if largest >= 1e-5 and power < 6 else power
    sizes = [value / 10.0**power for value in sizes]
    if largest * RESIDUE < half < math.inf:
        decimals = 1 - _exponent(half / 10.0**power, 1)
    else:
        decimals = max(0, significant - 1 - _exponent(max(sizes), significant - 1))
        exact = (
            n
            for n in range(decimals)
            if all(abs(round(value, n) - value) <= 1e-9 * value for value in sizes)
        )
        return Form(next(exact, decimals), power, sign)
    more = (n for n in range(4) if round(min(sizes, default=1.0), decimals + n))
    return Form(decimals + next(more, 0), power, sign)


def _exponent(value: float, digits: int) -> int:
    """Return the power of ten of a number that is rounded to some digits behind its first one."""
    return int(f"{value:.{digits}e}".partition("e")[2])


def number(value: Any, form: Form | str) -> str:
    """Return a number in a form, with a true minus sign; a null is a dash."""
    if pd.isna(value):
        return NULL
    if isinstance(form, str):
        return format(value, form).replace("-", "−").replace("inf", "∞")
    decimals, power, sign = form
    scaled = round(float(value) * (100 if "%" in sign else 1) / 10.0**power, decimals) + 0.0
    plus = "+" if "+" in sign and scaled else ""
    last = 10.0 ** (power - decimals - 2 * ("%" in sign))
    if not scaled and abs(value) > RESIDUE * last:
        least = number(math.copysign(last, value), form)
        return f"{'<' if value > 0 else '>'}{least.removeprefix('+')}"
    text = f"{scaled:{plus},.{max(decimals, 0)}f}" if scaled or not power else "0"
    unit = POWERS.get(power, f"e{power}") if scaled and math.isfinite(scaled) else ""
    return f"{text}{unit}{'%' * ('%' in sign)}".replace("-", "−").replace("inf", "∞")


def brief(value: Any) -> str:
    """Return a cell of any kind in few letters: a number with the digits that count, a day, nothing
    for a null."""
    if pd.isna(value):
        return ""
    if isinstance(value, pd.Timestamp):
        return f"{value:%Y-%m-%d}"
    if not isinstance(value, float):
        return str(value)
    return number(value, estimate_form(value, significant=4))


def interval(low: Any, high: Any, form: Form | str) -> str:
    """Return the two bounds in brackets, or nothing where there is no interval."""
    known = not (pd.isna(low) or pd.isna(high) or low == high)
    return f"[{number(low, form)}, {number(high, form)}]" if known else ""


def is_one_sided(low: Any, high: Any) -> bool:
    """Whether an interval is open on one side, as that of a one-sided test is."""
    return bool(np.isinf(low) != np.isinf(high))


def estimate_form(
    value: Any, low: Any = math.nan, high: Any = math.nan, sign: str = "", significant: int = 3
) -> Form:
    """Return how an estimate and the bounds of its interval are written. Of an interval that is
    open on one side, the other side counts."""
    ends = [float(end) for end in (low, high) if not pd.isna(end) and math.isfinite(end)]
    half = (ends[1] - ends[0]) / 2 if len(ends) == 2 else abs(value - ends[0]) if ends else math.nan
    return form_of(value, *ends, half=half, sign=sign, significant=significant)


def estimated(
    value: Any, low: Any = math.nan, high: Any = math.nan, sign: str = "", significant: int = 3
) -> str:
    """Return an estimate with its interval, such as +0.046 [+0.032, +0.061]."""
    form = estimate_form(value, low, high, sign, significant)
    return f"{number(value, form)} {interval(low, high, form)}".rstrip()


def plus_minus(value: Any, half: Any, beside: Iterable[Any] = ()) -> tuple[str, str]:
    """Return a value and half its interval, such as 0.185 and ± 0.013; nothing instead of ± 0.
    Without an interval, a value has the digits of those that stand beside it."""
    known = not pd.isna(half) and half > RESIDUE * abs(value)
    form = form_of(value, half=half) if known else form_of(value, *beside, significant=4)
    return number(value, form), f"± {number(half, form)}" if known else ""


def amount(n: Any, noun: str) -> str:
    """Return a number with its noun: 1 model, 2 more models."""
    return f"{int(n):,} {noun}{'' if n == 1 else 's'}"


def doing(n: Any, verb: str, noun: str = "") -> str:
    """Return a number with what so many do: 1 gains, 2 gain, 1 user prefers."""
    who = amount(n, noun) if noun else f"{int(n):,}"
    return f"{who} {verb}{'s' if n == 1 else ''}"


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
    head = length // 2
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
    return mark.translate(_SUPERSCRIPT)


# -- one cell


def markdown_text(text: Any) -> str:
    """Return a text whose pipes, tags, stars and links mean nothing to Markdown."""
    safe = re.sub(r"([\\|*]|(?<=\])\()", r"\\\1", visible(text))
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", safe)


def latex_text(text: Any) -> str:
    """Return a text in which every character that LaTeX would interpret is written out."""
    return visible(text).translate(_LATEX)


def html_text(text: Any) -> str:
    """Return a text without a character that HTML would interpret; its direction cannot spread to
    its neighbours."""
    return html.escape(visible(text), quote=True)


class Markup(NamedTuple):
    """How cells are written: what makes a text safe, the forms of its weights and of the smaller
    text, and how a mark is written."""

    safe: Callable[[Any], str]
    bold: str
    underline: str
    small: str
    mark: Callable[[str], str]

    def rows(self, head: Sequence[str], body: CellRows) -> list[list[str]]:
        """Return the texts of a table, those of its head first."""
        return [list(map(self.safe, head)), *(list(map(self.cell, row)) for row in body)]

    def cell(self, cell: Cell) -> str:
        text = self.safe(cell.text)
        if cell.bold or cell.underline:
            text = (self.bold if cell.bold else self.underline).format(text)
        text += self.mark(cell.mark) if cell.mark else ""
        return text + (self.small.format(self.safe(cell.small)) if cell.small else "")


PLAIN_TEXT = Markup(visible, "{}", "{}", " {}", superscript)
MARKDOWN = Markup(markdown_text, "**{}**", "_{}_", " {}", superscript)
LATEX = Markup(
    latex_text,
    r"\textbf{{{}}}",
    r"\underline{{{}}}",
    r" {{\footnotesize {}}}",
    lambda mark: f"$^{{{mark.replace('−', '-')}}}$",
)
HTML = Markup(
    html_text,
    "<b>{}</b>",
    "<u>{}</u>",
    " <small>{}</small>",
    lambda mark: f"<sup>{html_text(mark)}</sup>",
)


# -- whole tables


def to_markdown(head: Sequence[str], body: CellRows, align: Sequence[Align]) -> str:
    """Return a Markdown table, padded so that it reads as text too."""
    rows = MARKDOWN.rows(head, body)
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"| {' | '.join(map(_padded, row, widths, align))} |" for row in rows]
    ends = [":" if side == "right" else "-" for side in align]
    rule = ["-" * (width + 1) + end for width, end in zip(widths, ends, strict=True)]
    return "\n".join([lines[0], f"|{'|'.join(rule)}|", *lines[1:]])


def to_latex(head: Sequence[str], body: CellRows, align: Sequence[Align], *, booktabs: bool) -> str:
    """Return a LaTeX tabular, with the rules of booktabs or with plain lines that need no
    package."""
    rules = (r"\toprule", r"\midrule", r"\bottomrule") if booktabs else (r"\hline",) * 3
    columns = "".join(side[0] for side in align)
    first, *rows = (rf"{' & '.join(row)} \\" for row in LATEX.rows(head, body))
    start = rf"\begin{{tabular}}{{{columns}}}"
    end = r"\end{tabular}"
    return "\n".join([start, rules[0], first, rules[1], *rows, rules[2], end])


def to_html(head: Sequence[str], body: CellRows, align: Sequence[Align]) -> str:
    """Return an HTML table for a notebook."""

    def line(row: list[str], tag: str) -> str:
        sides = zip(row, align, strict=True)
        cells = (f'<{tag} style="text-align: {side}">{text}</{tag}>' for text, side in sides)
        return f"<tr>{''.join(cells)}</tr>"

    first, *rows = HTML.rows(head, body)
    lines = ["<table>", f"<thead>{line(first, 'th')}</thead>", "<tbody>"]
    return "\n".join([*lines, *(line(row, "td") for row in rows), "</tbody>", "</table>"])


def to_text(head: Sequence[str], body: CellRows, align: Sequence[Align]) -> str:
    """Return aligned columns for a terminal."""
    rows = PLAIN_TEXT.rows(head, body)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(_padded, row, widths, align)).rstrip() for row in rows)


def brief_cells(table: DataFrame) -> dict[str, list[str]]:
    """Return the cells of a table in few letters, by column; the digits of an estimate and of its
    bounds follow its interval."""
    cells = {str(name): [brief(value) for value in table[name]] for name in table.columns}
    for low in [name for name in cells if name.endswith("_low") and f"{name[:-3]}high" in cells]:
        stem = low[:-4]
        high = f"{low[:-3]}high"
        known = {"ci": ["diff", "value", "hit_rate"], "rel_ci": ["rel_diff"]}.get(stem, [])
        for name in (stem, stem.removesuffix("_ci"), *known):
            if name in cells:
                ends = zip(table[name], table[low], table[high], strict=True)
                forms = [estimate_form(*one) for one in ends]
                for column in (name, low, high):
                    texts = map(number, table[column], forms)
                    cells[column] = ["" if text == NULL else text for text in texts]
    return cells


# Columns that hold an empty text where there is nothing to say.
MAY_BE_EMPTY = (
    "effect withheld remarks effect_both withheld_both trend_effect trend_withheld trend_remarks "
    "turned_to unlike unbalanced detail better margin note harms deviations unknown flags srm_flag "
    "missing_flag by ranges segment segment_value holds_for unless reason "
    "recommended"
)
# Intervals that may be open on one side. JSON has no number for that.
_INTERVALS = ("ci_{}", "rel_ci_{}", "ci_{}_both", "change_{}")


def as_written(table: DataFrame) -> DataFrame:
    """Return a table of recdf as it was written, where a file has nulls in place of empty texts or
    of one end of an interval, or nulls of other dtypes than those of numpy in place of NaN.
    Segments keep their values."""
    may_be_empty = MAY_BE_EMPTY.split()
    segments = columns_before(table, "metric") if "metric" in table else []
    changed: dict[Any, Any] = {}
    for name, column in table.items():
        nulls = column.isna()
        if name in may_be_empty and nulls.any():
            changed[name] = column.astype(object).mask(nulls, "").array
        elif name in segments or column.dtype == np.float64 or not nulls.any():
            continue
        elif nulls.all():
            changed[name] = np.nan
        elif pd.api.types.is_any_real_numeric_dtype(column.dtype):
            changed[name] = column.to_numpy(np.float64, na_value=np.nan)
    for name in _INTERVALS:
        ends = name.format("low"), name.format("high")
        if {*ends} <= {*table}:
            lost = table[[*ends]].isna()
            for end, far in zip(ends, (-np.inf, np.inf), strict=True):
                if (open_end := lost[end] & ~lost.all(axis=1)).any():
                    known = table[end].to_numpy(np.float64, na_value=np.nan)
                    changed[end] = np.where(open_end, far, known)
    if changed:
        table = table.copy(deep=False)
    for name, values in changed.items():
        table[name] = values
    return table


def columns_before(table: Iterable[Any], name: str) -> list[Any]:
    """Return the columns before one of a table, or of a row of it, which tell its rows apart."""
    names = list(table)
    return names[: names.index(name)]


def beside_columns(frame: DataFrame, columns: Any) -> DataFrame:
    """Return a frame with further columns of its rows, in their order. No two columns share a name.
    All are made at once, since pandas warns of a column that is added to more than a hundred."""
    every = {name: getattr(one, "array", one) for name, one in [*frame.items(), *columns.items()]}
    joined = DataFrame(every, index=frame.index)
    joined.attrs = frame.attrs
    return joined


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

    frame: DataFrame

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
        return self._cut(to_text)

    def _parts(self, rows: int | None = None) -> tuple[list[str], list[list[Cell]], list[Align]]:
        shown = self.frame if rows is None else self.frame.head(rows)
        names = [str(name) for name in shown.columns]
        return names, plain_rows(shown.itertuples(index=False, name=None)), ["left"] * len(names)

    def _repr_html_(self) -> str:
        return self._cut(to_html, "<p>{}</p>")

    def _cut(self, write: Callable[..., str], more: str = "\n{}") -> str:
        left = len(self.frame) - SHOWN_ROWS
        said = more.format(f"... and {amount(left, 'more row')}") if left > 0 else ""
        return write(*self._parts(SHOWN_ROWS)) + said

    def __str__(self) -> str:
        return self._cut(to_markdown)

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
        return isinstance(one, DataFrame)


def html_of_pandas(frame: DataFrame) -> str | None:
    """The look that pandas gives a frame, names escaped."""
    found: Any = DataFrame(frame)
    return found._repr_html_()

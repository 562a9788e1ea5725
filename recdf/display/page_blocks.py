"""What people read of a table, as plain records: sections of sentences, tables and pictures; what a
row says; and for a row of estimates what a picture draws of it: panel, label, the estimate with
its interval, and its numbers in words.

Contract: a record holds texts and numbers, never markup. The template escapes every text, and shows
its hidden characters by their numbers. What a row says follows from it and from nothing else. Of a
comparison, or an off-policy estimate, whose verdict is withheld, a sentence quotes no effect.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..diagnostics.gate_records import row_cells
from ..diagnostics.history import CHANGE_COLUMNS
from ..experiments.decide.decide_experiment import allowed_of, change_text
from ..judge.choices import Row
from ..judge.comparisons import note_of, sides_of
from ..judge.verdict import codes_of, is_withheld, sign_of
from ..off_policy.estimate_value import FLAGS
from ..tables.cells import (
    Cell,
    Form,
    amount,
    brief,
    columns_before,
    doing,
    estimate_form,
    estimated,
    interval,
    is_one_sided,
    number,
    p_value,
    shorten,
    visible,
)

TableRow = Mapping[Any, Any]
BadgeKind = Literal["better", "worse", "open", "warning", "error", "info", "good"]

# The mark beside the word of a badge, so that its colour says nothing alone; the badge that a
# reader has to see first stands first.
SIGNS = {
    "error": "✕",
    "warning": "!",
    "worse": "▼",
    "open": "●",
    "better": "▲",
    "good": "✓",
    "info": "i",
}
BAR_WIDTH = 160
BAR_HEIGHT = 18
BAR_EDGE = 6


# A sentence marks the names from data inside it, which are shown bold, their writing direction kept
# to themselves. No name holds these marks: `visible` writes them as numbers.
OPEN = "\ue000"
CLOSE = "\ue001"
NAME_LENGTH = 60  # of a name in a sentence


def marked(name: str) -> str:
    """Return a name as a sentence marks it."""
    return f"{OPEN}{name}{CLOSE}"


def name_of(label: Any) -> str:
    """Return a name from data as a sentence shows it, its middle cut where it is long."""
    return marked(shorten(visible(label), NAME_LENGTH))


def plain(sentence: str) -> str:
    """Return a sentence without the marks of its names."""
    return sentence.replace(OPEN, "").replace(CLOSE, "")


def listed(names: Sequence[str], most: int, noun: str) -> str:
    """Return names joined by commas, those beyond the first ones as a number."""
    said = ", ".join(names[:most])
    if (more := len(names) - most) > 0:
        said += f" and {amount(more, f'more {noun}')}"
    return said


# Lines of a card that hold what speaks against its verdict, and what stands beside it.
FOR_WHOM_WORSE = "For whom worse"
OVERTURN = "What could overturn it"
BESIDE = "Beside it"


class Reason(NamedTuple):
    """What speaks against a verdict: its sentence, words for the badge and what to do, none where
    nothing changes, whether nobody may act on the numbers, the line of the card that it is said in,
    and what to watch where the verdict is to be acted on."""

    said: str
    badge: str = ""
    action: str = ""
    stops: bool = False
    line: str = OVERTURN
    watch: str = ""


class Badge(NamedTuple):
    """A word with a sign and a colour."""

    kind: BadgeKind
    text: str

    @property
    def sign(self) -> str:
        return SIGNS[self.kind]

    @property
    def rank(self) -> int:
        """The place among badges, of which a reader has to see the first."""
        return [*SIGNS].index(self.kind)


class Case(NamedTuple):
    """What a table says before anything speaks against it: the badge, the sentences of the first
    lines and what to do; whether reasons can temper it; what speaks against it, or stands beside
    it; and the row of a comparison that it is about.

    Of models, each verdict that is not withheld can be tempered. Of an experiment only one that
    ships can be, since the others ask for nothing that could go wrong.
    """

    badge: Badge
    which: Sequence[str]
    action: str
    can_be_tempered: bool = False
    amounts: Sequence[str] = ()
    sure: Sequence[str] = ()
    reasons: Sequence[Reason] = ()
    row: TableRow | None = None


class Bar(NamedTuple):
    """An interval as a picture in a cell: places in units of the drawing, zero in its middle."""

    low: float
    high: float
    point: float
    kind: BadgeKind
    label: str


class Shown(NamedTuple):
    """One cell of a report's table: what is written, what it is sorted by, and what is drawn beside
    it."""

    cell: Cell
    sort: float | str | None = None
    badge: Badge | None = None
    bar: Bar | None = None
    code: bool = False
    # Of a formula: "sub", "sup" or nothing, what bears it, and the text.
    parts: Sequence[tuple[str, str, str]] = ()


ShownRow = Mapping[str, Shown]  # the cells of a row by the heads of their columns


class TableBlock(NamedTuple):
    """A table: its caption, columns with their sides, rows, and the frame that can be saved as
    CSV."""

    caption: str
    head: Sequence[str]
    align: Sequence[str]
    rows: Sequence[Sequence[Shown]]
    csv: str
    file: str
    stacked: bool = False  # on a phone each row becomes a card
    more: int = 0  # rows that are left out
    folded: str = ""  # the text to unfold it by, if it is folded
    # Metric and k of each column that a reader can choose, else empty texts.
    groups: Sequence[tuple[str, str]] = ()
    off: Sequence[int] = ()  # columns that the script hides until they are chosen

    @property
    def badge(self) -> Badge | None:
        """The badge of its rows that a reader has to see first."""
        marks = [one.badge for row in self.rows for one in row if one.badge]
        return min(marks, key=lambda one: one.rank, default=None)


class Entry(NamedTuple):
    """One line of a legend, and its mark: a filled box, or a line and a marker as matplotlib names
    them."""

    name: str
    colour: str
    filled: bool = False
    line: str = "None"
    marker: str = ""


class Section(NamedTuple):
    """One section of the page."""

    id: str
    title: str
    text: Sequence[str] = ()
    badge: Badge | None = None
    # Of a verdict: what each line says, the first one largest.
    lines: Sequence[tuple[str, Sequence[str]]] = ()
    tables: Sequence[TableBlock] = ()
    drawings: Sequence[Any] = ()  # each a `plot.picture.Drawing`
    lists: Sequence[str] = ()
    pairs: Mapping[str, str] = {}
    code: str = ""  # the whole spec, folded
    said: Sequence[Reason] = ()  # what the card quotes of it
    case: Case | None = None  # of a page that is about it alone


def flag_words(row: TableRow) -> str:
    """Return the flags of an estimate in words."""
    return str(row["flags"]).replace("_", " ")


def look_of(row: TableRow) -> BadgeKind:
    """Return the look of the badge of a verdict."""
    if is_withheld(row) or "missing_lists" in codes_of(row.get("remarks")):
        return "warning"
    return sign_of(row)


def effect_text(row: TableRow) -> str:
    """Difference, interval and relative difference of a row in words."""
    diff, low, high = (row[name] for name in ("diff", "ci_low", "ci_high"))
    form = estimate_form(diff, low, high, "+")
    words = number(diff, form)
    if interval(low, high, form):
        sided = "one-sided " * is_one_sided(low, high)
        words += f" ({sided}interval {number(low, form)} to {number(high, form)})"
    if pd.notna(relative := row.get("rel_diff")):
        words += f", {estimated(relative, sign='+%', significant=2)}"
    return words


# -- cells


def text(value: Any, *, code: bool = False) -> Shown:
    """Return a cell of a text, sorted by its letters."""
    return Shown(Cell(str(value)), str(value).casefold(), code=code)


def formula(words: str) -> Shown:
    """Return a cell of a formula whose subscripts and superscripts are MathML: x_{i ≤ k}, y_i,
    z^2."""
    bearing = r"([^\W_]+|[ΣΠ√)])([_^])(\{[^{}]*\}|\([^()]*\)|[^\s{}()·,;/+−|]+)"
    first, *found = re.split(bearing, words)
    parts = [("", "", first)]
    for base, mark, low, rest in zip(*(found[i::4] for i in range(4)), strict=True):
        parts += [("sub" if mark == "_" else "sup", base, low.strip("{}()")), ("", "", rest)]
    return Shown(Cell(words), words.casefold(), parts=parts)


def value(found: Any, form: Form | str | None = None, *, small: str = "") -> Shown:
    """Return a cell of a number, sorted by the number itself."""
    form = estimate_form(found, significant=4) if form is None else form
    return Shown(Cell(number(found, form), small=small), None if pd.isna(found) else float(found))


def badge(kind: BadgeKind, words: str, small: str = "") -> Shown:
    """Return a cell of a badge, with a note behind it."""
    return Shown(Cell(words, small=small), words.casefold(), Badge(kind, words))


def reaches(ends: DataFrame, scales: Any) -> pd.Series:
    """Return how far the intervals of each row reach from zero on its scale; `ends` has the
    estimates and their bounds."""
    sizes = ends.abs().replace(np.inf, np.nan).max(axis=1)
    return sizes.groupby(scales).transform("max").fillna(0).replace(0, 1)


def interval_bar(ends: list[float], reach: float, kind: BadgeKind, name: str) -> Shown:
    """Return an estimate and its bounds as a picture from −`reach` to `reach`."""
    diff, low, high = ends
    half = BAR_WIDTH / 2
    form = estimate_form(diff, low, high, "+")
    point, *around = (number(one, form) for one in ends)
    if math.isnan(diff):
        return Shown(Cell(point))
    places = half + np.clip(np.array(ends) / reach, -1, 1) * (half - BAR_EDGE)
    middle, low, high = np.where(np.isnan(places), places[0], places).round(1).tolist()
    label = f"{name}: {point}, from {' to '.join(around)}"
    return Shown(Cell(""), diff, bar=Bar(low, high, middle, kind, label))


def shown_table(
    caption: str,
    rows: Sequence[ShownRow],
    most: int,
    frame: DataFrame,
    file: str,
    more: int = 0,
    **look: Any,
) -> TableBlock:
    """Return a table of cells, of which the page shows the first rows; columns of numbers stand to
    the right. `frame` can be saved, and has `more` rows that have no cells."""
    head = list(dict.fromkeys(name for row in rows[:most] for name in row))
    cells = [[row.get(name, value(np.nan)) for name in head] for row in rows[:most]]
    more += len(rows) - len(cells)
    align = [
        "left" if any(one.bar or isinstance(one.sort, str) for one in column) else "right"
        for column in zip(*cells, strict=True)
    ]
    return TableBlock(caption, head, align, cells, csv_of(frame), file, more=more, **look)


def csv_of(frame: DataFrame) -> str:
    """Return a frame as CSV text with full numbers."""
    return frame.to_csv(index=False, lineterminator="\n")


# -- what a row says

EVERYONE = "all"  # the segment of all lists in a leaderboard
IN_SEGMENT = "within"  # a column of segments that are named with their column


# -- comparisons of models or variants


def segment_of(row: TableRow) -> str:
    """Return the segment of a row, which the columns before `metric` name."""
    names = columns_before(row, "metric")
    return " · ".join(f"{'' if one == IN_SEGMENT else f'{one} = '}{row[one]}" for one in names)


def metric_of(row: TableRow) -> str:
    """Return the metric of a row, with its segment."""
    where = segment_of(row)
    return name_of(row["metric"]) + (f" ({name_of(where)})" if where else "")


def who_is_compared(row: TableRow) -> str:
    """Return the two sides of a row, its metric and its segment."""
    new, old = (name_of(row[side]) for side in sides_of(row))
    return plain(f"{new} against {old} on {metric_of(row)}")


def of_comparison(row: TableRow) -> str:
    if is_withheld(row):
        return f"{who_is_compared(row)}: {row['verdict']}."
    said = f"{who_is_compared(row)}: {row['verdict']}, {effect_text(row)}."
    if "preference" in row:
        new, old = (plain(name_of(row[name])) for name in sides_of(row))
        said += f" {doing(row['wins'], 'prefer', 'user')} {new}, {doing(row['losses'], 'prefer')} "
        said += f"{old} (sign test, p {p_value(row['p_sign'])})."
    return said


def trend_words(row: TableRow) -> str:
    """Return the verdict and the slope of the trend of a row, or nothing if it has none."""
    if "trend_verdict" not in row:
        return ""
    said = f"trend: {visible(row['trend_verdict'])}"
    if row.get("trend_withheld"):
        return said
    slope = estimated(row["trend"], row["trend_ci_low"], row["trend_ci_high"], "+")
    return f"{said}, {slope} per day"


# -- off-policy

LIFT = ("lift", "lift_ci_low", "lift_ci_high")


def policy_of(row: TableRow) -> str:
    """Return the policy of an estimate, which the columns before `estimator` name."""
    names = columns_before(row, "estimator")
    return " · ".join(f"{row[name]}" for name in names) or "The target policy"


def is_useless(row: TableRow) -> bool:
    """Whether neither value nor interval of an estimate may be used."""
    return bool(row.get("withheld")) and not row["effect"]


def amount_of_estimate(row: TableRow) -> str:
    """Return the value and the lift of an estimate with their intervals."""
    lift, low, high = (row[name] for name in LIFT)
    said = f"value {estimated(row['value'], row['ci_low'], row['ci_high'])}"
    return f"{said}, {estimated(lift, low, high, '+')} beside the logging policy"


def look_of_estimate(row: TableRow) -> BadgeKind:
    """Return the look of an estimate; one with a doubt never looks like a result."""
    if is_useless(row):
        return "error"
    if flag_words(row) and not row.get("effect"):
        return "warning"
    _, low, high = (row[name] for name in LIFT)
    return "better" if low > 0 else "worse" if high < 0 else "open"


def trust_of(row: TableRow) -> str:
    """Return whether to believe an estimate, in words."""
    return str(row.get("trust") or flag_words(row) or "no flag")


def flag_meanings(row: TableRow) -> str:
    """Return what the flags of an estimate mean, in sentences."""
    if row.get("effect") == "interval_only":
        return "its bounded interval allows for them; its value says little"
    return "; ".join(FLAGS[name][1] for name in row["flags"].split(", ") if name in FLAGS)


# -- data


def arm_of(row: TableRow) -> str:
    """Return the variant of a row of a table of health, behind the labels of its group."""
    return " ".join(str(row[name]) for name in [*columns_before(row, "variant"), "variant"])


# -- rows of estimates, which a picture draws


def ends_of(row: TableRow, stem: str) -> Row:
    """Return the estimate of a row with its interval, whose columns begin with `stem`."""
    return {"diff": row[stem], "ci_low": row[f"{stem}_low"], "ci_high": row[f"{stem}_high"]}


def drawn_role(row: TableRow) -> Row:
    allowed, relative = allowed_of(row)
    margin = f", margin {row['margin']}" if row["margin"] else ""
    return {
        "metric": "Change in per cent of the control" if relative else f"Change of {row['metric']}",
        "label": f"{row['metric']}, {row['treatment']}",
        "numbers": f"{row['role']}: {change_text(row)}{margin}",
        **ends_of(row, "change"),
        "allowed": allowed,
        "percent": relative,
    }


def drawn_plan(row: TableRow) -> Row:
    """Users or lists that are needed; the effect that is found, if their number was given."""
    metric = row["metric"]
    beside = ""
    unit = "users"
    if "n_lists" in row:
        n = row["n"]
        unit = "lists"
        beside = f", beside {row['baseline']}"
        metric = f"{metric}, {row['model']}"
    else:
        n = row["n_control"] + row["n_treatment"]
    share: str = f" ({estimated(row['mde_rel'], sign='%')})" if pd.notna(row["mde_rel"]) else ""
    found = f"{estimated(row['mde_abs'])}{share}"
    needed = f"{number(n, ',d')} {unit}"
    days = f", {amount(row['days'], 'day')}" if pd.notna(row.get("days")) else ""
    guards = row.get("role") == "guardrail"
    said = f"{needed} {interval(row['n_low'], row['n_high'], ',.0f')}".rstrip() + days
    said += f"; {'shows a loss below' if guards else 'finds'} {found}"
    drawn = {
        "label": metric,
        "from_zero": True,
        "metric": f"{unit.capitalize()} that are needed{beside}",
        "diff": n,
        "ci_low": row["n_low"],
        "ci_high": row["n_high"],
    }
    if pd.isna(row["n_low"]):
        said += f"; its margin with power {number(row['power'], '.0%')}" if guards else ""
        what = f"Smallest change that is found{beside}"
        drawn |= {"metric": what, "diff": row["mde_rel"], "percent": True}
    said += f"; {warned}" if (warned := note_of(row)) else ""
    return drawn | {"numbers": said}


def drawn_change(row: TableRow) -> Row:
    what = [str(row[name]) for name in row if name not in CHANGE_COLUMNS and pd.notna(row[name])]
    if pd.isna(row["diff"]):
        numbers = f"{brief(row['level'])}, {amount(int(row['n_runs']), 'run')}"
        if row["effect"] == "none" and not pd.isna(row["could_see"]):
            numbers += f"; {estimated(row['could_see'], significant=2)} would be seen within a week"
    else:
        numbers = f"{brief(row['before'])} to {brief(row['after'])} "
        numbers += f"from {pd.Timestamp(row['changed']):%Y-%m-%d}"  # a text in a table from CSV
    return {
        "metric": "Changes of level",
        "label": ", ".join(filter(None, what)),
        "diff": row["diff"],
        "numbers": numbers,
    }


def drawn_budget(row: TableRow) -> Row:
    cells = row_cells(row)
    relative = row["relative"]
    return {
        "metric": "Change in per cent of the baseline"
        if relative
        else f"Change of {row['metric']}",
        "label": cells["metric"],
        "numbers": cells["change"],
        **ends_of(row, "change"),
        "allowed": row["allowed"],
        "percent": relative,
        "words": f"{cells['change']}  {cells['verdict']}, budget {cells['budget']}"
        f"{(', ' + cells['why']) * (row['effect'] in ('pass', 'fail') and bool(cells['why']))}",
    }

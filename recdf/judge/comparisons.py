"""Comparisons of models and variants as tables for people: notebook, terminal, Markdown, LaTeX."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from functools import partial
from typing import Self

import pandas as pd

from ..errors import ColumnError, kind_of
from ..tables.cells import (
    AnyFrame,
    ReportTable,
    brief,
    columns_before,
    estimated,
    form_of,
    html_of_pandas,
    number,
    p_value,
    visible,
)
from .choices import AnyRow
from .per_user_columns import frame_of
from .verdict import VERDICT_COLUMNS, warnings_of, with_known_codes

COMPARISON_COLUMNS = ("metric", "diff", "ci_low", "ci_high", "p_adj", *VERDICT_COLUMNS)
# The columns that a reader of a decision needs, by a column that no other comparison has; all
# others come with details=True.
_ESTIMATE = "diff se ci_low ci_high rel_diff"
_ARMS = "metric control treatment n_control n_treatment"
_PAIR = "metric baseline model n_users"
_TESTS = "p_value p_adj"
DEFAULT_COLUMNS = {
    "shrunken": f"{_ARMS} {_PAIR} diff ci_low ci_high confidence shrunken shrunken_low "
    f"shrunken_high n_segments q {_TESTS}",
    "trend_verdict": f"{_ARMS} diff ci_low ci_high {_TESTS} kind trend trend_ci_low trend_ci_high "
    "trend_withheld trend_verdict",
    "preference": f"{_PAIR} diff ci_low ci_high wins ties losses {_TESTS} preference "
    "preference_low preference_high p_sign",
    "n_human": f"{_PAIR} mean_baseline mean_model diff se ci_low ci_high wins losses {_TESTS} "
    "n_human n_cheap",
    "baseline": f"{_PAIR} mean_baseline mean_model {_ESTIMATE} wins ties losses {_TESTS}",
    "treatment": f"{_ARMS} mean_control mean_treatment {_ESTIMATE} rel_ci_low rel_ci_high {_TESTS}",
}
# The column with the numbers of a warning about variants.
DETAIL_OF = {
    "denominator_differs": "mean_denominator_treatment",
    "few_units": "diff_without_top",
    "repeated_units": "design_effect",
    **dict.fromkeys(
        (
            "shares_change",
            "users_in_both",
            "covariate_after",
            "covariate_differs",
            "strata_differ",
            "strata_differ_in_worth",
        ),
        "unbalanced",
    ),
}
LEAST_NEEDED = ("means", "MDE", "var. reduction", "n", "wins/ties/losses", "labels", "relative")


def note_of(row: AnyRow, beside: str = "") -> str:
    """Return the warnings of a row in words, with the numbers and columns that a reader asks for
    next; `beside` is the code of one that stands there already."""
    numbers = {}
    if "treatment" in row:
        numbers = {
            code: f" ({name}, with details=True)"
            for code, name in DETAIL_OF.items()
            if name not in row
        }
    if "mean_denominator_control" in row:
        both = (row[f"mean_denominator_{side}"] for side in ("treatment", "control"))
        numbers["denominator_differs"] = f" ({' vs. '.join(map(brief, both))})"
    if "diff_without_top" in row:
        without = estimated(row["diff_without_top"], sign="+")  # often far below the interval
        numbers["few_units"] = f" ({without} without them)"
    if "design_effect" in row:
        numbers["repeated_units"] = f" (design effect {estimated(row['design_effect'])})"
    said = [
        code.replace("_", " ") + numbers.get(code, "")
        for code in warnings_of(row.get("remarks"))
        if code != beside or code in numbers
    ]
    unbalanced = f": {visible(row['unbalanced'])}" if row.get("unbalanced", "") else ""
    return "; ".join(said) + unbalanced


def default_columns(table: pd.DataFrame, details: bool) -> pd.DataFrame:
    """Return a comparison without the columns that few readers need, unless these are asked for."""
    if details:
        return table
    named = next(names for mark, names in DEFAULT_COLUMNS.items() if mark in table)
    kept = {*columns_before(table, "metric"), *named.split(), *VERDICT_COLUMNS}
    shown = table[[name for name in table.columns if name in kept]]
    return Comparison.of(shown) if type(table) is Comparison else shown


def need_details(table: pd.DataFrame, names: Iterable[str]) -> None:
    """Raise if a comparison lacks columns that it has with details=True alone."""
    if missing := [name for name in names if name not in table]:
        raise ColumnError(
            f"table has no column {missing[0]!r}; make the comparison with ⟦+details=True⟧",
            column=missing[0],
        )


def confidence_of(comparison: pd.DataFrame) -> float | None:
    """Return the confidence of a comparison, from its column where it has it; None where that is
    not one number."""
    known = comparison.attrs.get("recdf_comparison", {}).get("confidence")
    found = comparison["confidence"].unique().tolist() if "confidence" in comparison else [known]
    return found[0] if len(found) == 1 else None


def report_table(comparison: pd.DataFrame) -> ReportTable:
    """Format a comparison of variants or models for a reader: effect and interval first, verdict
    last.

    Parameters
    ----------
    comparison : DataFrame
        What `compare_variants` or `compare_models` returned, all of it or some of its rows.

    Returns
    -------
    ReportTable
        Shown as HTML by a notebook and as Markdown by `print`; `.to_markdown()`, `.to_latex()`,
        `.to_html()`, `.frame`. Columns, where the comparison has theirs: segments, `metric`,
        `comparison`, `effect` with its interval, `relative` with its interval (variants), `p`
        (adjusted), `means` and `n` (treatment vs. control, or users), `labels` (with `cheap=`),
        `MDE` (variants, `details=True`), `var. reduction` (the same, if any row has one),
        `wins/ties/losses` (models), `verdict`, `notes` (if any row has a warning). A null is "–".

    Raises
    ------
    ColumnError
        If the frame is not a comparison.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame(
    ...     {"user_id": range(40), "variant": ["A", "B"] * 20, "ctr": [1, 2, 3, 4, 2, 5, 3, 4] * 5}
    ... )
    >>> compared = rd.compare_variants(users, "ctr", control="A", expected={"A": 1, "B": 1})
    >>> table = rd.experiments.report_table(compared)
    >>> table.frame[["metric", "comparison", "effect (95% CI)", "p", "verdict"]]
      metric comparison       effect (95% CI)       p verdict
    0    ctr    B vs. A  +1.50 [+0.86, +2.14]  <0.001  better
    """
    if not isinstance(comparison, pd.DataFrame):
        raise TypeError(f"comparison is {kind_of(comparison)}; expected the table of a comparison")
    frame_of("comparison", comparison)
    models = "baseline" in comparison
    base, other = ("baseline", "model") if models else ("control", "treatment")
    needed = [*COMPARISON_COLUMNS, base, other]
    missing = [name for name in needed if name not in comparison]
    if missing:
        raise ColumnError(
            f"comparison has no column {missing[0]!r}; expected what compare_variants or "
            "compare_models returns"
        )
    comparison, confidence = with_known_codes(comparison, "comparison"), confidence_of(comparison)
    level = "CI" if confidence is None else f"{100 * confidence:g}% CI"
    before = columns_before(comparison, "metric")
    cells = {name: [str(value) for value in comparison[name]] for name in [*before, "metric"]}

    def add(title: str, form: Callable[..., str], *names: str) -> None:
        """Add a column of texts, if the comparison has what they are made of."""
        if {*names} <= {*comparison}:
            values = zip(*(comparison[name] for name in names), strict=True)
            cells[title] = [form(*row) for row in values]

    def means(new: float, old: float, low: float, high: float) -> str:
        form = form_of(new, old, half=(high - low) / 2)
        return f"{number(new, form)} vs. {number(old, form)}"

    relative = partial(estimated, sign="+%")
    add("comparison", "{} vs. {}".format, other, base)
    add(f"effect ({level})", partial(estimated, sign="+"), "diff", "ci_low", "ci_high")
    if models:
        add("relative", relative, "rel_diff")
    else:
        add(f"relative ({level})", relative, "rel_diff", "rel_ci_low", "rel_ci_high")
    add("p", p_value, "p_adj")
    add("means", means, f"mean_{other}", f"mean_{base}", "ci_low", "ci_high")
    if models:
        add("n", "{:,}".format, "n_users")
        add("labels", "{:,} of people, {:,} cheap".format, "n_human", "n_cheap")
        add("wins/ties/losses", "{:,}/{:,}/{:,}".format, "wins", "ties", "losses")
    else:
        add("n", "{:,} vs. {:,}".format, "n_treatment", "n_control")
        add("MDE", estimated, "mde")
        if comparison.get("variance_reduction", pd.Series()).notna().any():
            add("var. reduction", partial(number, form=".1%"), "variance_reduction")
    add("verdict", str, "verdict")
    notes = [note_of(row) for row in comparison.to_dict("records")]
    if any(notes):
        cells["notes"] = notes
    return ReportTable(pd.DataFrame(cells))


class Comparison(pd.DataFrame, metaclass=AnyFrame):
    """What `compare_models` and `compare_variants` return: a DataFrame that shows effects,
    intervals and verdicts."""

    @classmethod
    def of(cls, frame: pd.DataFrame) -> Self:
        """Return a frame as this class, its attrs included."""
        shown = cls(frame)
        shown.attrs = frame.attrs
        return shown

    def _whole(self) -> bool:
        sides = ("baseline", "model") if "baseline" in self else ("control", "treatment")
        return len(self) > 0 and all(name in self for name in (*COMPARISON_COLUMNS, *sides))

    def __repr__(self) -> str:
        return comparison_text(self) if self._whole() else super().__repr__()

    def _repr_html_(self) -> str | None:
        return report_table(self)._repr_html_() if self._whole() else html_of_pandas(self)


def comparison_text(comparison: pd.DataFrame) -> str:
    """Return a comparison for a terminal; where the window is narrow, without the columns that
    matter least."""
    table = report_table(comparison)
    text = table.to_text()
    for name in LEAST_NEEDED:
        if max(map(len, text.splitlines())) <= shutil.get_terminal_size((120, 24)).columns:
            break
        table = ReportTable(
            table.frame.drop(columns=[c for c in table.frame.columns if c.split(" (")[0] == name])
        )
        text = table.to_text()
    return text

"""Comparisons of models and variants as tables for people: notebook, terminal, Markdown, LaTeX."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from functools import partial
from typing import Self

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..errors import ColumnError, DataError, kind_of
from ..tables.cells import (
    AnyFrame,
    ReportTable,
    as_written,
    brief,
    columns_before,
    estimated,
    form_of,
    html_of_pandas,
    number,
    p_value,
    visible,
)
from .cautions.table import CAUTIONS
from .choices import AnyRow
from .per_user_columns import frame_of
from .verdict import EFFECTS, VERDICT_COLUMNS, codes_of, unit_of_method, warnings_of

COMPARISON_COLUMNS = ("metric", "diff", "ci_low", "ci_high", "p_adj", *VERDICT_COLUMNS)
# All columns of a comparison of variants, and of models.
_OF_VARIANTS = (
    "metric control treatment n_control n_treatment n_dropped n_dropped_control "
    "n_dropped_treatment mean_control mean_treatment mean_control_adjusted "
    "mean_treatment_adjusted diff se se_control se_treatment ci_low ci_high rel_diff rel_ci_low "
    "rel_ci_high statistic df p_value p_adj reject mde confidence method cap theta "
    "variance_reduction n_covariate_missing n_typical_control n_typical_treatment "
    "mean_denominator_control mean_denominator_treatment p_denominator diff_without_top "
    "design_effect metric_low metric_high turned_by turned_to unseen srm_p seen_loss balance_p "
    "covariate_could_hide unbalanced detail unless holds_for better"
)
VARIANT_RESULT_COLUMNS = [*_OF_VARIANTS.split(), *VERDICT_COLUMNS]
NUMBERS_OF_BOTH = ["n_both", "mean_baseline_both", "mean_model_both", "diff_both", "se_both"]
_OF_MODELS = (
    "metric baseline model n_users n_lists n_only_baseline n_only_model mean_baseline "
    "mean_model diff diff_without_top rel_diff se ci_low ci_high d_z turned_by turned_to "
    "turning_value unseen wins ties losses statistic df p_value p_adj reject p_equivalence "
    "p_equivalence_adj confidence test n_resamples seed n_lacking_baseline n_lacking_model "
    f"{' '.join(NUMBERS_OF_BOTH)} ci_low_both ci_high_both "
    "effect_both withheld_both turned_by_both unlike holds_for"
)
MODEL_RESULT_COLUMNS = [*_OF_MODELS.split(), *VERDICT_COLUMNS]
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
# What else they have with details=True.
DETAILS = {
    "shrunken": "mean_effect tau",
    "trend_verdict": "early late trend_se trend_p trend_p_adj trend_early trend_late trend_effect "
    "trend_remarks",
    "preference": "mde n_needed n_shown_a n_shown_b p_balance n_clicks n_clicks_no_team "
    "n_clicks_elsewhere",
    "n_human": "diff_human ci_low_human ci_high_human diff_cheap bias bias_low bias_high weight "
    "n_effective p_random",
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
NOT_IN_A_TERMINAL = ("means", "MDE", "var. reduction", "n", "wins/ties/losses", "labels")
LEAST_NEEDED = (*NOT_IN_A_TERMINAL, "relative")


def sides_of(row: AnyRow | DataFrame) -> tuple[str, str]:
    """Return the columns of the new and the old side of a comparison."""
    return ("model", "baseline") if "baseline" in row else ("treatment", "control")


def segments_first(table: DataFrame) -> DataFrame:
    """Return a table as it was written, and the columns of the segments of a comparison before
    `metric`. These are columns that no comparison has of itself, if they stand there, the
    comparison was made within them, or nothing else tells rows apart. Where a file lost what it was
    made within, they stand before the last column of a comparison, or its order was changed."""
    table = as_written(table)
    names = list(table.columns)
    if not {"metric", "diff"} <= {*names}:
        return table
    mark = next((one for one in DEFAULT_COLUMNS if one in names), "treatment")
    own = {*(MODEL_RESULT_COLUMNS if "baseline" in names else VARIANT_RESULT_COLUMNS)}
    own |= {"quantile", "n_typical", *f"{DEFAULT_COLUMNS[mark]} {DETAILS.get(mark, '')}".split()}
    others = [name for name in names if name not in own]
    new, old = sides_of(table)
    labels = [name for name in ("metric", old, new) if name in names]
    places = [names.index(name) for name in [*labels, *VERDICT_COLUMNS] if name in names]
    last = max(places) if places == sorted(places) else len(names)
    before = [*columns_before(table, "metric")]
    before += table.attrs.get("recdf_comparison", {}).get("by", names[:last])
    segments = [name for name in others if name in before]
    rows = zip(*(map(str, table[name]) for name in [*segments, *labels]), strict=True)
    if len({*rows}) < len(table):
        segments = others
    first = [*segments, "metric"]
    return table[[*first, *(name for name in names if name not in first)]]


def with_known_codes(table: DataFrame, role: str) -> DataFrame:
    """Return a comparison as it was written; what is no code of one raises."""
    table = segments_first(table)
    for name in [one for one in VERDICT_COLUMNS[:3] if one in table]:
        known = CAUTIONS if name != "effect" else {*EFFECTS["models"], *EFFECTS["labels"]}
        for cell in table[name]:
            codes = codes_of(cell) if name == "remarks" else [cell] * (cell != "")
            if not isinstance(cell, str) or not {*codes} <= {*known}:
                where = f"{role}[{name!r}]"
                raise DataError(
                    f"{where} holds {cell!r}, which is no code of a comparison; pass the table as "
                    "recdf returned it",
                    column=where,
                )
    if {"effect", "withheld"} <= {*table}:
        neither = int((table["effect"].eq("") & table["withheld"].eq("")).sum())
        if neither:
            raise DataError(
                f"{role} has no 'effect', and nothing in 'withheld', in {neither:,} of "
                f"{len(table):,} rows; pass the table as recdf returned it",
                count=neither,
            )
    return table


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
        CAUTIONS[code].name + numbers.get(code, "")
        for code in warnings_of(row.get("remarks"))
        if code != beside or code in numbers
    ]
    unbalanced = f": {visible(row['unbalanced'])}" if row.get("unbalanced", "") else ""
    return "; ".join(said) + unbalanced


def default_columns(table: DataFrame, details: bool) -> DataFrame:
    """Return a comparison without the columns that few readers need, unless these are asked for."""
    if details:
        return table
    named = next(names for mark, names in DEFAULT_COLUMNS.items() if mark in table)
    kept = {*columns_before(table, "metric"), *named.split(), *VERDICT_COLUMNS}
    kept |= {"method"} if unit_of_rows(table) != "user" else set()
    shown = table[[name for name in table.columns if name in kept]]
    return Comparison.of(shown) if type(table) is Comparison else shown


def need_details(table: DataFrame, names: Iterable[str]) -> None:
    """Raise if a comparison lacks columns that it has with details=True alone."""
    if missing := [name for name in names if name not in table]:
        anew = "anew, since an earlier release may have made the table, "
        anew *= "reject" in table  # and other columns that come with details alone
        raise ColumnError(
            f"table has no column {missing[0]!r}; make the comparison {anew}with ⟦+details=True⟧",
            column=missing[0],
        )


def confidence_of(comparison: DataFrame) -> float | None:
    """Return the confidence of a comparison, from its column where it has it; None where that is
    not one number."""
    known = comparison.attrs.get("recdf_comparison", {}).get("confidence")
    found = comparison["confidence"].unique().tolist() if "confidence" in comparison else [known]
    return found[0] if len(found) == 1 else None


def words_of_tests(comparison: DataFrame) -> str:
    """Return what the models of a comparison were tested with."""
    known = {"t": "paired t ", "wilcoxon": "Wilcoxon "}
    found = comparison.attrs.get("recdf_comparison", {}).get("tests", ())
    tests = {*comparison.get("test", found)}
    words = "".join(known.get(one, f"{one} ") for one in tests) * (len(tests) == 1)
    return f"{'one-sided ' * bool(sides_of_tests(comparison))}{words}tests"


def sides_of_tests(comparison: DataFrame) -> str:
    """Return "larger" or "smaller" where one-sided tests can show that alone, by the open ends of
    their intervals; an empty text for two-sided tests."""
    low, high = (np.isinf(comparison[f"ci_{end}"].astype("float64")) for end in ("low", "high"))
    return "larger" if (high & ~low).any() else "smaller" if (low & ~high).any() else ""


def level_of(comparison: DataFrame) -> str:
    """Return the confidence of a comparison before a word, such as '95 % ', if it has one."""
    confidence = confidence_of(comparison)
    return "" if confidence is None else f"{100 * confidence:g} % "


def unit_of_rows(comparison: DataFrame) -> str:
    """Return what a comparison counts: users, lists or clusters, as its method says, which a table
    of these has without details too, or else its record."""
    if "method" in comparison:
        # Of several, clusters come first and users last, as in the alphabet.
        return min(map(unit_of_method, comparison["method"].unique()), default="user")
    return comparison.attrs.get("recdf_comparison", {}).get("unit", "user")


def heads_before(row: AnyRow | DataFrame, taken: Iterable[str]) -> dict[str, str]:
    """Return the heads of the segments and the metric of a table for people, with their columns. A
    segment may have the name of a head that is taken."""
    names = [*columns_before(row, "metric"), "metric"]
    return {f"segment {name}" if name in taken else name: name for name in names}


def report_table(comparison: DataFrame) -> ReportTable:
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
    ...     {
    ...         "user_id": range(200),
    ...         "variant": ["A", "B"] * 100,
    ...         "hit": [0, 1, 0, 1, 1, 1, 0, 0] * 25,
    ...     }
    ... )
    >>> compared = rd.compare_variants(users, "hit", control="A", expected={"A": 1, "B": 1})
    >>> table = rd.experiments.report_table(compared)
    >>> table.frame[["metric", "comparison", "effect (95% CI)", "p", "verdict"]]
      metric comparison       effect (95% CI)       p verdict
    0    hit    B vs. A  +0.50 [+0.38, +0.62]  <0.001  better
    """
    if not isinstance(comparison, DataFrame):
        raise TypeError(f"comparison is {kind_of(comparison)}; expected the table of a comparison")
    frame_of("comparison", comparison)
    other, base = sides_of(comparison)
    needed = [*COMPARISON_COLUMNS, base, other]
    if missing := [name for name in needed if name not in comparison]:
        raise ColumnError(
            f"comparison has no column {missing[0]!r}; expected what compare_variants or "
            "compare_models returns"
        )
    comparison, confidence = with_known_codes(comparison, "comparison"), confidence_of(comparison)
    level = "CI" if confidence is None else f"{100 * confidence:g}% CI"
    cells: dict[str, list[str]] = {}

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
    if other == "model":
        add("relative", relative, "rel_diff")
    else:
        add(f"relative ({level})", relative, "rel_diff", "rel_ci_low", "rel_ci_high")
    add("p", p_value, "p_adj")
    add("means", means, f"mean_{other}", f"mean_{base}", "ci_low", "ci_high")
    if other == "model":
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
    heads = heads_before(comparison, cells)
    before = {head: list(map(str, comparison[name])) for head, name in heads.items()}
    return ReportTable(DataFrame({**before, **cells}))


class Comparison(DataFrame, metaclass=AnyFrame):
    """What `compare_models` and `compare_variants` return: a DataFrame that shows effects,
    intervals and verdicts."""

    @classmethod
    def of(cls, frame: DataFrame) -> Self:
        """Return a frame as this class, its attrs included."""
        shown = cls(frame)
        shown.attrs = frame.attrs
        return shown

    def _whole(self) -> bool:
        return len(self) > 0 and {*COMPARISON_COLUMNS, *sides_of(self)} <= {*self}

    def __repr__(self) -> str:
        return comparison_text(self) if self._whole() else super().__repr__()

    def _repr_html_(self) -> str | None:
        return report_table(self)._repr_html_() if self._whole() else html_of_pandas(self)


def comparison_text(comparison: DataFrame) -> str:
    """Return a comparison for a terminal; where the window is narrow, without the columns that
    matter least."""
    table = report_table(comparison)
    text = table.to_text()
    segments = columns_before(table.frame, "metric")
    for name in LEAST_NEEDED:
        if max(map(len, text.splitlines())) <= shutil.get_terminal_size((120, 24)).columns:
            break
        others = table.frame.columns.difference(segments)
        table = ReportTable(
            table.frame.drop(columns=[c for c in others if c.split(" (")[0] == name])
        )
        text = table.to_text()
    return text

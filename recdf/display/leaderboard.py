"""`leaderboard`: models by metrics with intervals, directions and tests, for a notebook or a
paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pandas import DataFrame

from ..evaluation.result import Evaluation, Result
from ..evaluation.shown import NO_INTERVAL
from ..experiments.compare.paired import sentence_of_both
from ..experiments.decide.adjust_pvalues import adjustment
from ..judge.cautions.table import CAUTIONS
from ..judge.choices import Columns, Correction, Positive, checks_names
from ..judge.comparisons import confidence_of, words_of_tests
from ..judge.verdict import codes_of, sign_of, warning_sentences
from ..tables.cells import (
    LETTERS,
    SHOWN_ROWS,
    Align,
    Cell,
    amount,
    html_text,
    latex_text,
    markdown_text,
    to_html,
    to_latex,
    to_markdown,
    to_text,
    visible,
)
from .given_tables import (
    LABELS,
    chosen,
    direction_word,
    in_buckets,
    summary_of,
    with_both_labels,
    with_units,
)
from .kinds import LEADERBOARD_KEYS, SEED_SD, TABLE_KINDS
from .leaderboard_values import (
    REPEATS,
    SEEDS,
    RowsInBuckets,
    RowsInMemory,
    columns_of,
    read_result,
    seed_sentences,
    segment_groups,
    values_frame,
)
from .page_blocks import EVERYONE


@dataclass(frozen=True)
class Leaderboard:
    """A table of models by metrics that shows itself in a notebook and in a terminal.

    Attributes
    ----------
    frame : DataFrame
        One row per model and metric (and segment): `segment`, `group`, `model`, `metric`, `better`,
        `value`, `ci_low`, `ci_high`, `half_width` (half of the interval; with `cheap=` the ± that
        is shown reaches the farther end), `n`, `n_undefined`, `place` (1 for the best, null without
        a direction, or where models have values for different lists), `marks`; with `seed_col=`
        also `seed_sd`.
    notes : tuple of str
        What the marks, weights and intervals mean, one sentence each.
    comparisons : DataFrame
        The tests behind the marks: the columns of `rd.compare_models`, such as `diff`, `p_value`,
        `p_adj`, `wins`, `ties` and `losses`, after `segment` and `group`. It has no rows if no test
        was made.
    """

    frame: DataFrame
    notes: tuple[str, ...]
    comparisons: DataFrame = field(default_factory=DataFrame)

    def to_markdown(self) -> str:
        """Return a Markdown table with its notes below."""
        notes = (f"* {markdown_text(note)}" for note in self.notes)
        return "\n".join([to_markdown(*self.head_and_cells()), "", *notes])

    def to_latex(self) -> str:
        r"""Return a LaTeX tabular with the rules of booktabs.

        Returns
        -------
        str
            Needs `\usepackage{booktabs}`. The notes stand below it in small type. Names in scripts
            other than Latin need XeLaTeX or LuaLaTeX with a font that has them.
        """
        notes = rf"\par\smallskip{{\footnotesize {' '.join(map(latex_text, self.notes))}\par}}"
        return f"{to_latex(*self.head_and_cells(), booktabs=True)}\n{notes}"

    def to_html(self) -> str:
        """Return an HTML table with its notes below."""
        return self._html(None)

    def _html(self, most: int | None) -> str:
        head, body, align = self.head_and_cells()
        left = len(body) - (most or len(body))
        notes = "".join(f"<p><small>{html_text(note)}</small></p>" for note in self._notes(left))
        return to_html(head, body[:most], align) + notes

    def head_and_cells(self) -> tuple[list[str], list[list[Cell]], list[Align]]:
        """Return the names of the columns, the rows of cells and the side of every column."""
        rows = TABLE_KINDS["leaderboard"].cells(self.frame)
        head = list(rows[0]) if rows else []
        align: list[Align] = ["left" if name in ("segment", "model") else "right" for name in head]
        return head, [[one.cell for one in row.values()] for row in rows], align

    def _notes(self, left: int) -> list[str]:
        """Return the notes, and how many rows are left out."""
        more = f"{amount(left, 'more row')} not shown; .frame has all of them."
        return [*self.notes, *[more] * (left > 0)]

    def _repr_html_(self) -> str:
        return self._html(SHOWN_ROWS)

    def __str__(self) -> str:
        head, body, align = self.head_and_cells()
        # A terminal has neither bold nor underline: the best value has a star.
        starred = [
            [cell._replace(text="*" * cell.bold + cell.text) for cell in row]
            for row in body[:SHOWN_ROWS]
        ]
        notes = map(visible, self._notes(len(body) - SHOWN_ROWS))
        return "\n".join([to_text(head, starred, align), "", *notes])

    __repr__ = __str__


@checks_names
def leaderboard(
    result: Result | Mapping[str, Any],
    *,
    baseline: Any = None,
    k: Positive | None = None,
    metrics: Columns | None = None,
    correction: Correction | None = "holm",
    segments: DataFrame | None = None,
    unit_col: Columns | None = None,
    cheap: Evaluation | None = None,
    fold: Columns | None = None,
    seed_col: str | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> Leaderboard:
    """Make a table of models by metrics: values with intervals, the best and second, and which
    differences hold.

    Parameters
    ----------
    result : Evaluation or mapping
        An evaluation of one model or several (`by=`), or model → its own evaluation or folder, as
        `rd.join_results` takes them.
    baseline : label, optional
        The model that the others are compared with: "+" is better than the baseline, "−" is worse.
        Default: every pair is compared, and the letters behind a value name the models that it is
        better than.
    k : int, optional
        Show the metrics at this cut-off, and those without one. Default: all.
    metrics : str or list of str, optional
        Names such as "ndcg" or "ndcg@10", in the order of the columns. Default: all metrics of the
        result. The first one decides the order of the models, the best first.
    correction : str or None, default "holm"
        Adjustment of the p-values over all tests of the table, as in `compare_models`. None
        makes no tests and needs no SciPy.
    segments : DataFrame, optional
        One row per user: the list key (or some of its columns) and one column or more of segments.
        The table then has rows for all lists and for every value of every segment; all their tests
        are one family.
    unit_col : str or list of str, optional
        Columns that name who is independent of whom, for intervals and tests. Default: `user_id`,
        or else the first of the list key.
    cheap : Evaluation, optional
        The same models on more lists under cheap labels, where people judged those of `result`, a
        random sample of them. Means, intervals and tests are then those of
        `rd.experiments.prediction_powered`, and metrics that are one number for all lists are those
        of `cheap`. Where fewer than 30 lists have labels of people, or these are no random sample,
        there is no interval and no mark.
    fold : str or list of str, optional
        Columns of folds: a model has one row, and a user counts once, with the mean over the folds,
        as in `rd.compare_models`.
    seed_col : str, optional
        Column of repeated trainings of a model. A user counts once, with the mean over them; behind
        the interval over users stands the standard deviation of the model's mean over seeds, and a
        difference that is smaller than it is named.
    bounds : mapping, optional
        Metric of one's own → its smallest and largest value, as in `rd.compare_models`.

    Returns
    -------
    Leaderboard
        Shows itself in a notebook and a terminal; `.to_markdown()`, `.to_latex()`, `.to_html()`,
        the numbers in `.frame`, and the tests behind the marks in `.comparisons`.

    Raises
    ------
    ColumnError, OptionError
        An unknown metric, model or option; segments without the list key, or with users twice.
    MissingExtraError
        If SciPy is not installed and tests are wanted.

    Notes
    -----
    Tests are those of `rd.compare_models`: paired t tests on the lists that both models have a
    value for. Metrics of exposure are one number for all lists; they have no interval and no test.
    Metrics without a direction have neither a best value nor marks.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> result = rd.evaluate(shop.true, shop.pred, ["ndcg", "recall"], by="model")
    >>> board = rd.leaderboard(result, baseline="popularity")
    >>> board.frame[["model", "metric", "marks", "value", "half_width", "place"]].head(3).round(3)
            model     metric marks  value  half_width  place
    0         knn    ndcg@10     +  0.185       0.013      1
    1         knn  recall@10     +  0.231       0.016      1
    2  popularity    ndcg@10        0.139       0.012      2
    """
    if in_buckets(result, {"fold": fold, "seed_col": seed_col, "cheap": cheap}):
        rows: RowsInMemory | RowsInBuckets = RowsInBuckets(result, segments, unit_col, bounds)
    else:
        found = with_units(read_result(result, fold, seed_col, bounds), unit_col)
        found = found if cheap is None else with_both_labels(found, cheap)
        rows = RowsInMemory(found, {} if segments is None else segment_groups(found, segments))
    result = rows.result
    table = summary_of(result)
    columns = columns_of(table, metrics, k)
    models = list(dict.fromkeys(table["model"]))
    base = None if baseline is None else chosen("baseline", baseline, models)
    tested = [name for name in columns if name in result.per_user and direction_word(result, name)]
    tests = DataFrame()
    if correction and tested and len(models) > 1:
        tests = rows.tests(tested, baseline=base, correction=correction)
        tests.attrs = {"recdf_comparison": {"correction": correction}}
    return board_of(result, values_frame(rows, table, columns), base, tests)


def board_of(
    result: Evaluation, frame: DataFrame, baseline: str | None, tests: DataFrame
) -> Leaderboard:
    """Return the leaderboard of some values, with the marks of comparisons and the notes that
    follow from both."""
    found: dict[tuple[Any, ...], str] = {}
    letters = dict(zip(frame["model"].unique(), LETTERS, strict=False))
    for row in tests.to_dict("records"):
        sign = sign_of(row)
        model = str(row["model"])
        other = str(row["baseline"])
        if sign == "open":
            continue
        mark = "+" if sign == "better" else "−"
        if baseline is None:  # letters of the models that it is better than
            model, other = (model, other) if sign == "better" else (other, model)
            mark = letters.get(other, "")
        place = row.get("segment", EVERYONE), row.get("group", ""), model, str(row["metric"])
        found[place] = "".join(sorted(found.get(place, "") + mark))
    places = frame[LEADERBOARD_KEYS].itertuples(index=False, name=None)
    frame["marks"] = [found.get(place, "") for place in places]
    said = [*notes(result, frame, baseline, tests)]
    if SEEDS in result.spec:
        spread = result.spec[SEEDS]["sd"]
        rows = zip(frame["model"], frame["metric"], frame["group"], strict=True)
        frame[SEED_SD] = [
            np.nan if group else spread.get(metric, {}).get(model, np.nan)
            for model, metric, group in rows
        ]
        said += seed_sentences(result, tests)
    return Leaderboard(frame, tuple(said), tests)


def notes(
    result: Evaluation, frame: DataFrame, baseline: str | None, tests: DataFrame
) -> Iterator[str]:
    """Yield sentences that say what the table shows, each only where the table has what it speaks
    of; what the intervals rest on, and where the tests are not to be trusted."""
    directed = frame["better"] != ""
    placed = frame["place"].notna()
    apart = frame.loc[directed & ~placed & frame["value"].notna(), "metric"].unique()
    over = " and ".join(result.spec.get(REPEATS, ()))
    mark = "A letter behind a value names a model that it is better than"
    if baseline is not None:
        mark = f"+ is better and − is worse than {baseline}"
    how = ""
    if len(tests):
        below = "" if (sure := confidence_of(tests)) is None else f"p ≤ {1 - sure:.2g}, "
        how = f"{words_of_tests(tests)}, {below}p-values {adjustment(tests).words}"
    half = f"{100 * result.spec.get('confidence', 0.95):g} % interval of the "
    half += f"{'weighted ' * ('weight' in result.spec)}mean."
    half = f"± {'reaches the farther end' if LABELS in result.spec else 'is half'} of the {half}"
    told = {
        **dict.fromkeys(result.spec.get(LABELS, ()), True),
        f"A user counts once, with the mean over {over}.": over,
        half: frame["half_width"].notna().any(),
        "Arrows say whether higher or lower values are better.": directed.any(),
        "The best value of a metric is bold (in plain text: a star), the second best is underlined "
        "(in Markdown: italic).": placed.any(),
        f"Models have values of {', '.join(apart)} for different lists or by different rules, so "
        "that none is marked as best.": len(apart) and frame["model"].nunique() > 1,
        f"{mark} ({how}).": how,
    }
    yield from (text for text, there in told.items() if there)
    if "repeated_units" in result.spec:
        yield f"± takes all lists for independent: {CAUTIONS['repeated_units'].sentence}."
    elif "unit_col" in result.spec:
        yield (
            f"Intervals and tests do not take the lists of one "
            f"{' and '.join(result.spec['unit_col'])} for independent."
        )
    if (result.summary["ci_low"].isna() & (result.summary["std"] == 0)).any():
        yield NO_INTERVAL
    if not len(tests):
        return
    for row in tests.to_dict("records"):
        lacks = "missing_lists" in codes_of(row["remarks"])
        if lacks and row.get("segment", EVERYONE) == EVERYONE and (both := sentence_of_both(row)):
            yield both
    withheld = tests["withheld"][tests["withheld"] != ""].value_counts()
    if len(withheld):
        said = "Where a verdict is withheld there is no mark"
        said += f", in {withheld.sum()} of {len(tests)} comparisons" * (len(tests) > 1)
        why = (f"{n} {CAUTIONS[str(code)].topic}" for code, n in withheld.items())
        yield f"{said} ({', '.join(why)})."
    yield from warning_sentences(tests)

"""Sections about the models of a result: leaderboard, curves, comparison, trade-offs, users,
exposure, segments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ...experiments.compare.by_segment import segment_sentences
from ...experiments.decide.adjust_pvalues import adjustment
from ...judge.comparisons import confidence_of
from ...judge.verdict import is_withheld, says_worse, turned
from ...tables.cells import NULL, amount, estimate_form, shorten, visible
from .. import plot
from ..kinds import TABLE_KINDS, Kind, harm_first, n_differs, page_part, record_of
from ..leaderboard_values import RowsInMemory, values_frame
from ..pairs import compare, model_rows
from ..plot.style import BEST, REST, looks
from ..row_words import segment_of
from ..segments import SegmentGroups, segment_groups
from .page_blocks import (
    NAME_LENGTH,
    SIGNS,
    Drawing,
    Reason,
    Section,
    Shown,
    TableBlock,
    badge_of,
    effect_text,
    listed,
    name_of,
    shown_table,
    text,
    value,
)
from .report_inputs import ACCURACY, ReportTables, Subject
from .svg import SIZE, drawing

MANY_PANELS = 9
MATRIX_ABOVE = 12  # more pairs than these have stand in a matrix


class Pen:
    """Draws the pictures of one page; each gets a number, which keeps their ids apart, and models
    keep their looks."""

    def __init__(self, subject: Subject | None) -> None:
        self.drawn, self.looks = 0, {}
        self.shown: list[
            tuple[str, str]
        ] = []  # names and colours that the legend of an earlier picture has
        if subject is None:
            return
        marked = [
            *([] if subject.baseline is None else [subject.baseline]),
            *subject.ranking(subject.primary),
        ]
        most = BEST + (subject.baseline is not None)
        # The same page has the same colours, whatever was drawn before.
        self.looks = looks(subject.models, list(dict.fromkeys(marked))[:most], {})

    def __call__(
        self, draw: Callable[..., Any], *args: Any, size: Any = SIZE, **options: Any
    ) -> Drawing:
        self.drawn += 1
        made = drawing(
            lambda ax: draw(*args, **options, ax=ax), self.drawn, size=size, looks=self.looks
        )
        if REST not in self.looks.values():
            return made
        legend = tuple(
            entry for entry in made.legend if (entry.name, entry.colour) not in self.shown
        )
        if self.shown and legend != made.legend:
            made = replace(
                made, caption=f"{made.caption}; colours of the models as in the first picture"
            )
        self.shown += [(entry.name, entry.colour) for entry in legend]
        return replace(made, legend=legend)


# ------------------------------------------------------------------------------------------
# leaderboard, curves


def leaderboard_section(subject: Subject, experiment: bool) -> Section:
    """Show models by metrics, each at one k, and fold every value below."""
    pooled = ", all variants together" if experiment and len(subject.models) == 1 else ""
    frame = subject.board.frame
    cells = TABLE_KINDS["leaderboard"].cells(frame)
    columns = list(frame["metric"].drop_duplicates())
    names = subject.summary.drop_duplicates("column").set_index("column")
    off = frozenset(i + 1 for i, name in enumerate(columns) if name not in subject.columns)
    at_k = names["k"].astype("Int64").astype(str).replace("<NA>", "")
    groups = [(str(names["metric"][name]), str(at_k[name])) for name in columns]
    at = "" if subject.k is None else f" at k = {subject.k}"
    mean = "weighted mean" if "weight" in subject.result.spec else "mean"
    table = shown_table(
        f"Metrics{at}, {mean} over {_lists(subject)}{pooled}",
        cells[: subject.max_rows],
        len(cells),
        frame,
        "leaderboard.csv",
        groups=(("", ""), *groups),
        off=off,
    )
    return Section(
        "leaderboard",
        "Leaderboard",
        tables=(table, _all_values(subject)),
        lists=subject.board.notes,
    )


def _lists(subject: Subject) -> str:
    n = subject.summary.loc[subject.summary["column"].isin(subject.columns), "n"].astype(int)
    if n.min() == n.max():
        return amount(n.max(), "list")
    return f"{n.min():,} to {n.max():,} lists, those where the metric is defined"


def _all_values(subject: Subject) -> TableBlock:
    """Return every row of the summary as a folded table."""
    whole = len(subject.result.summary) == len(subject.summary)
    frame = subject.result.summary if whole else subject.summary
    rows = []
    for row in subject.summary.itertuples(index=False):
        ends = row.value, row.ci_low, row.ci_high
        names = {"model": text(row.model), "metric": text(row.column)}
        form = estimate_form(*ends, significant=4)
        numbers = (value(found, form) for found in ends)
        counts = {"n": value(row.n, ",d"), "undefined": value(row.n_undefined, ",d")}
        heads = ("value", "interval from", "to")
        rows.append({**names, **dict(zip(heads, numbers, strict=True)), **counts})
    many = len(subject.models) > MATRIX_ABOVE
    return shown_table(
        "Every metric at every k",
        rows[: min(subject.max_rows, 120) if many else subject.max_rows],
        len(rows),
        frame,
        "summary.csv",
        folded=f"{amount(len(rows), 'value')}, every metric at every k",
    )


def curves_section(subject: Subject, pen: Pen) -> Section | None:
    """Draw one picture for each metric that has several k."""
    depths = (
        subject.summary[subject.summary["k"].notna()].groupby("metric", sort=False)["k"].nunique()
    )
    metrics = [str(name) for name in depths.index[depths > 1]]
    if not metrics:
        return None
    marked = subject.baseline if len(subject.models) > 4 else None
    drawings = [
        pen(plot.curve, subject.result, metric, highlight=marked)
        for metric in metrics[:MANY_PANELS]
    ]
    left: tuple[str, ...] = ()
    if len(metrics) > MANY_PANELS:
        drawn = f"The first {MANY_PANELS} of {len(metrics)} metrics are drawn"
        left = (f"{drawn}; the table of all values has the others.",)
    return Section("curves", "Curves over k", text=left, drawings=tuple(drawings))


# ------------------------------------------------------------------------------------------
# comparison


def comparison_section(subject: Subject) -> Section | None:
    """Show the differences, one in a row, each with its interval as a picture."""
    if subject.comparison is None or not len(subject.comparison):
        return None
    if subject.baseline is None and len(subject.models) > MATRIX_ABOVE:
        return Section(
            "comparison", "Comparison", tables=(_pair_matrix(subject, subject.comparison),)
        )
    confidence = confidence_of(subject.comparison)
    level = "" if confidence is None else f"{100 * confidence:g} % "
    bases = list(dict.fromkeys(map(str, subject.comparison["baseline"])))
    against = (
        f"Differences from {bases[0]}" if len(bases) == 1 else "Differences of pairs of models"
    )
    caption = f"{against}, {level}intervals"
    most = subject.max_rows
    table = block(TABLE_KINDS["pairs"], subject.comparison, caption, "comparison.csv", most)
    how = (
        "The data support the differences inside an interval, and not those outside. “No "
        "difference shown” is no proof that there is none."
    )
    return Section("comparison", "Comparison", tables=(table,), text=(how,))


def _pair_matrix(subject: Subject, comparison: pd.DataFrame) -> TableBlock:
    """Return pairs of many models as a matrix of signs: the model of the row against that of the
    column."""
    order = {model: place for place, model in enumerate(subject.ranking(subject.primary))}
    signs = [["–"] * len(order) for _ in order]
    own = comparison[comparison["metric"].astype(str) == subject.primary]
    turned = {"better": "worse", "worse": "better"}
    for one in own.to_dict("records"):
        kind = badge_of(one)
        row, column = order[str(one["model"])], order[str(one["baseline"])]
        signs[row][column], signs[column][row] = SIGNS[kind], SIGNS[turned.get(kind, kind)]
    rows = [
        {
            "model": text(f"{i + 1} {model}"),
            **{f"{j + 1}": text(sign) for j, sign in enumerate(signs[i])},
        }
        for model, i in order.items()
    ]
    caption = (
        f"{subject.primary}, the model of the row against that of the column, by their numbers: ▲ "
        "better, ▼ worse, ● no difference shown, ! withheld"
    )
    return shown_table(caption, rows, len(rows), comparison, "comparison.csv")


def _has_words(one: Shown) -> bool:
    return bool(one.badge or one.bar) or one.cell.text not in ("", NULL)


def block(kind: Kind, given: pd.DataFrame, caption: str, file: str, most: int) -> TableBlock:
    """Return a table of a known kind as the page shows it: rows that say worse first, without the
    columns that say nothing; what all rows are about stands in the caption."""
    table = harm_first(given)
    cells = kind.cells(table.head(most))
    if len(what := {one["what"].cell.text for one in cells if "what" in one}) == 1:
        caption = f"{caption}: {what.pop()}"
        cells = [{name: one[name] for name in one if name != "what"} for one in cells]
    head = [name for name in (cells or [{}])[0] if any(_has_words(one[name]) for one in cells)]
    rows = [{name: one[name] for name in head} for one in cells]
    return shown_table(caption, rows, len(table), table if file else None, file, stacked=True)


def forest_drawings(table: pd.DataFrame, most: int, pen: Pen) -> list[Drawing]:
    """Draw a table as `plot.forest` does, a picture for each of its panels, with the first `most`
    rows."""
    rows = harm_first(table)
    panels = rows.groupby(plot.forest.data(rows)["metric"], sort=False)
    return [
        pen(plot.forest, rows.head(most), size=(SIZE[0], 1.2 + 0.4 * len(rows.head(most))))
        for _, rows in panels
    ]


# ------------------------------------------------------------------------------------------
# trade-offs, users


def tradeoff_section(subject: Subject, pen: Pen) -> Section | None:
    """Draw the primary metric against each metric of another kind."""
    family = subject.meanings.set_index("column")["family"]
    others = [name for name in subject.columns[1:] if family.get(name, "") not in ACCURACY]
    if len(subject.models) < 2 or not others or family.get(subject.primary, "") not in ACCURACY:
        return None
    drawings = [
        pen(plot.tradeoff, subject.result, x=name, y=subject.primary) for name in others[:3]
    ]
    return Section("trade-offs", "Trade-offs", drawings=tuple(drawings))


def users_section(subject: Subject, pen: Pen) -> Section | None:
    """Draw who gets nothing, and who gains and who loses by the best model."""
    if subject.primary not in subject.result.per_user.columns:
        return None
    drawings = [pen(plot.users, subject.people, subject.primary)]
    if subject.pair is not None and subject.values(subject.primary)["n"].nunique() == 1:
        model, rival = subject.pair
        drawings.append(
            pen(plot.winners, subject.people, subject.primary, model=model, baseline=rival)
        )
    alone = "These are the lists that people judged, under their labels alone."
    said = () if subject.people is subject.result else (alone,)
    return Section("users", "Users", text=said, drawings=tuple(drawings))


def exposure_section(subject: Subject, tables: ReportTables, pen: Pen) -> Section | None:
    """Draw how evenly impressions fall on items, and how they spread over popular and rare ones."""
    if tables.exposure is None:
        return None
    drawings = [pen(plot.exposure, tables.exposure)]
    if tables.log is not None:
        drawings.append(pen(plot.longtail, tables.exposure, tables.log))
    return Section("exposure", "Exposure", drawings=tuple(drawings))


# ------------------------------------------------------------------------------------------
# segments


def segments_section(
    subject: Subject, tables: ReportTables, pen: Pen
) -> tuple[Section | None, list[Reason]]:
    """Comparisons within segments, one family of tests, and for whom the best model is worse."""
    if tables.segments is None:
        return None, []
    given = tables.segments
    if page_part(given):
        return given_segments(tables, subject.max_rows, pen, subject.pair, subject.primary)
    groups = segment_groups(subject.result, given)
    parts: list[TableBlock] = []
    said: list[Reason] = []
    duel = subject.tested_pair
    if duel is not None:
        compared = _within_segments(subject, groups, *duel)
        caption = (
            f"{duel[0]} against {duel[1]} within segments; p-values {adjustment(compared).words}"
        )
        most = subject.max_rows
        parts.append(block(TABLE_KINDS["pairs"], compared, caption, "segments.csv", most))
        said = worse_for(compared.to_dict("records"), [str(one) for one in compared["segment"]])
    rows = RowsInMemory(subject.result, groups)
    means = values_frame(rows, subject.summary, [subject.primary])
    parts.append(_means_by_segment(subject, means))
    return Section("segments", "Segments", tables=tuple(parts)), said


def given_segments(
    tables: ReportTables,
    most: int,
    pen: Pen,
    pair: tuple[str, str] | None = None,
    metric: str | None = None,
) -> tuple[Section | None, list[Reason]]:
    """Show comparisons within segments, and say for whom the pair of the headline is worse on its
    metric."""
    given = tables.segments
    if given is None:
        return None, []
    shrunken, caption = page_part(given) == "segments", "Comparisons within segments"
    caption += (
        "; p and verdict are about the difference between all segments of a metric"
        if shrunken
        else ""
    )
    table = block(record_of(given), given, caption, "segments.csv", most)
    drawings = forest_drawings(given, most, pen) if shrunken else []
    section = Section("segments", "Segments", tables=(table,), drawings=tuple(drawings))
    if "treatment" in given.columns:  # the pair and the metric of the experiment's first row
        first = next(iter(tables.experiment.values()), given).iloc[0]
        pair, metric = (str(first["treatment"]), str(first["control"])), str(first["metric"])
    base, other = (
        ("control", "treatment") if "treatment" in given.columns else ("baseline", "model")
    )
    if pair is None or other not in given.columns:
        return section, []
    own = given[given["metric"].astype(str) == metric]
    rows, names = [], []
    for row in own.to_dict("records"):
        sides = str(row[other]), str(row[base])
        if sides == pair or (other == "model" and sides == pair[::-1]):
            rows.append(row if sides == pair else turned(row))
            names.append(segment_of(row))
    said = worse_for(rows, names)
    if shrunken:  # no segment has a verdict of its own
        said = [Reason(sentence) for sentence in segment_sentences(own).values()]
    none = f"The comparisons within segments are not about {pair[0]} and {pair[1]} on {metric}."
    return section, said or [Reason(none)]


def _within_segments(
    subject: Subject, groups: dict[str, SegmentGroups], model: str, rival: str
) -> pd.DataFrame:
    """Compare the two models within every group of every column of segments; all tests are one
    family."""
    of_model = model_rows(subject.result)
    pair = np.sort(np.concatenate([of_model[model], of_model[rival]]))
    within = {
        f"{segment} = {group}": pair[of_segment.codes[pair] == code]
        for segment, of_segment in groups.items()
        for code, group in enumerate(of_segment.names)
    }
    table = compare(
        subject.result, [subject.primary], baseline=rival, correction="holm", within=within
    )
    return table.rename(columns={"group": "segment"})


def worse_for(rows: Sequence[Mapping[Any, Any]], names: Sequence[str]) -> list[Reason]:
    """Say in which segments a pair is worse, each with the form of its verdict, or that this is
    shown in none."""
    if not rows:
        return []
    first = rows[0]
    sides = ("model", "baseline") if "baseline" in first else ("treatment", "control")
    who = f"{name_of(first[sides[0]])} against {name_of(first[sides[1]])}: "
    worse = {
        shorten(visible(name), NAME_LENGTH): row
        for name, row in zip(names, rows, strict=True)
        if says_worse(row)
    }
    withheld = sum(map(is_withheld, rows))
    but = f" The verdict is withheld in {withheld} of them." if withheld and len(rows) > 1 else ""
    if not worse:
        none = f"shown to be worse in none of {len(rows)} segments.{but}"
        if withheld == len(rows):
            none = "the verdict is withheld in each segment."
        elif len(rows) == 1:
            none = f"not shown to be worse in the one segment, {names[0]}."
        return [Reason(who + none)]
    said = "; ".join(f"{name}: {row['verdict']}, {effect_text(row)}" for name, row in worse.items())
    words = listed([*worse], 3, "segment")
    text = f"worse in {len(worse)} of {amount(len(rows), 'segment')}: {said}.{but}"
    return [Reason(who + text, action=f" Watch {words}, where it is worse.")]


def _means_by_segment(subject: Subject, frame: pd.DataFrame) -> TableBlock:
    """Return the means of the primary metric, models by segments."""
    cells: dict[tuple[str, str], Shown] = {}
    for row, apart in zip(frame.to_dict("records"), n_differs(frame).tolist(), strict=True):
        part = "all lists" if row["segment"] == "all" else f"{row['segment']} = {row['group']}"
        form = estimate_form(row["value"], row["ci_low"], row["ci_high"])
        n = f"n = {int(row['n']):,}" if apart else ""
        cells[row["model"], part] = value(row["value"], form, small=n)
    parts = list(dict.fromkeys(part for _, part in cells))
    rows = [
        {"model": text(model)} | {part: cells.get((model, part), value(np.nan)) for part in parts}
        for model in dict.fromkeys(model for model, _ in cells)
    ]
    caption, file = f"Mean {subject.primary} by segment", "segment-means.csv"
    return shown_table(caption, rows[: subject.max_rows], len(rows), frame, file)

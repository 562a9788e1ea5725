"""Sections about the models of a result: leaderboard, curves, comparison, trade-offs, users,
exposure, segments; examples, definitions, reproducibility. `Page` is what they are made for.

Contract: a function here yields the sections of its tables, none where nothing was given.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import platform
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..._version import version_and_build
from ...experiments.compare.by_segment import segment_sentences
from ...experiments.decide.adjust_pvalues import adjustment
from ...judge.comparisons import level_of, sides_of
from ...judge.verdict import is_withheld, says_worse, turned
from ...tables.cells import NULL, amount, shorten, visible
from .. import plot
from ..given_tables import compare, count_range, labels, model_rows, need
from ..kinds import ALONE, TABLE_KINDS, harm_first, record_of
from ..leaderboard_values import RowsInMemory, segment_groups, values_frame
from ..plot.models import DIRECTION
from ..plot.style import BEST, REST, Drawing, looks
from ..row_words import IN_SEGMENT, segment_of
from .page_blocks import (
    FOR_WHOM_WORSE,
    NAME_LENGTH,
    SIGNS,
    Case,
    Reason,
    Section,
    TableBlock,
    csv_of,
    effect_text,
    formula,
    listed,
    look_of,
    name_of,
    shown_table,
    text,
)
from .report_inputs import ACCURACY, ReportTables, Subject
from .svg import SIZE, drawing

MANY_PANELS = 9
MATRIX_ABOVE = 12  # more pairs than these have stand in a matrix
MANY_LISTS_SHOWN = 5
Sections = Iterator[Section]


class Page:
    """What the sections of one page read, and how they show it. Each picture gets a number, which
    keeps their ids apart, and models keep their looks."""

    def __init__(
        self, subject: Subject | None, tables: ReportTables, most: int, examples: Any
    ) -> None:
        self.subject = subject
        self.tables = tables
        self.most = most
        self.examples = examples
        self.drawn = 0
        self.looks = {}
        # Names and colours that the legend of an earlier picture has.
        self.shown = set[tuple[str, str]]()
        if subject:
            base = [] if subject.baseline is None else [subject.baseline]
            marked = [*dict.fromkeys([*base, *subject.order])]
            # The same page has the same colours, whatever was drawn before.
            self.looks = looks(subject.models, marked[: BEST + len(base)], {})

    def draw(
        self, picture: Callable[..., Any], *args: Any, lines: int = 0, **options: Any
    ) -> Drawing:
        """Return a picture of `rd.plot`, as high as its lines need. Where some models are grey, a
        legend leaves out what an earlier one has said."""
        self.drawn += 1
        made = drawing(
            lambda ax: picture(*args, **options, ax=ax),
            self.drawn,
            size=(SIZE[0], 1.2 + 0.4 * lines) if lines else SIZE,
            looks=self.looks,
        )
        legend = [one for one in made.legend if one[:2] not in self.shown]
        if REST in self.looks.values():
            self.shown |= {one[:2] for one in legend}
        if len(legend) < len(made.legend):
            made.caption += "; colours of the models as in the first picture"
        made.legend = legend
        return made

    def forests(self, table: DataFrame) -> list[Drawing]:
        """Draw a table as `plot.forest` does, a picture for each of its panels."""
        rows = harm_first(table)
        panels = rows.groupby(plot.forest.data(rows)["metric"], sort=False)
        heads = (panel.head(self.most) for _, panel in panels)
        return [self.draw(plot.forest, one, lines=len(one)) for one in heads]

    def block(self, given: DataFrame, caption: str, file: str) -> TableBlock:
        """Return a table of a known kind as the page shows it: rows that say worse first, without
        the columns that say nothing; what all rows are about stands in the caption."""
        table = harm_first(given)
        cells = record_of(given).cells(table.head(self.most))
        columns = {name: [row[name] for row in cells] for name in (cells[0] if cells else ())}
        said = [
            name
            for name, column in columns.items()
            if any(one.badge or one.bar or one.cell.text not in ("", NULL) for one in column)
        ]
        if len(what := {one.cell.text for one in columns.get("what", ())}) == 1:
            caption = f"{caption}: {what.pop()}"
            said.remove("what")
        rows = [{name: row[name] for name in said} for row in cells]
        more = len(table) - len(rows)
        return shown_table(caption, rows, self.most, table, file, more, stacked=True)


# -- leaderboard, curves


def leaderboard_section(subject: Subject, page: Page) -> Sections:
    """Show models by metrics, each at one k until a reader chooses another one."""
    frame = subject.board.frame
    summary = subject.summary
    columns = frame["metric"].unique()
    names = summary.drop_duplicates("column").set_index("column").loc[columns]
    at_k = names["k"].astype("Int64").astype(str).replace("<NA>", "")
    n = summary.loc[summary["column"].isin(subject.columns), "n"]
    alone = page.tables.experiment and len(subject.models) == 1
    caption = f"Metrics{'' if subject.k is None else f' at k = {subject.k}'}, "
    caption += (
        f"{'weighted ' * ('weight' in subject.result.spec)}mean over {count_range(n, 'list')}"
    )
    caption += ", those where the metric is defined" * (n.nunique() > 1)
    caption += ", all variants together" * bool(alone)
    board = shown_table(
        caption,
        TABLE_KINDS["leaderboard"].cells(frame),
        page.most,
        frame,
        "leaderboard.csv",
        groups=[("", ""), *zip(names["metric"].map(str), at_k, strict=True)],
        off=[i for i, name in enumerate(columns, 1) if name not in subject.columns],
    )
    yield Section("leaderboard", "Leaderboard", tables=[board], lists=subject.board.notes)


def curves_section(subject: Subject, page: Page) -> Sections:
    """Draw one picture for each metric that has several k."""
    depths = subject.summary.dropna(subset="k").groupby("metric", sort=False)["k"].nunique()
    metrics = depths.index[depths > 1].tolist()
    if not metrics:
        return
    marked = subject.baseline if len(subject.models) > 4 else None
    drawn = metrics[:MANY_PANELS]
    drawings = [page.draw(plot.curve, subject.result, one, highlight=marked) for one in drawn]
    said = [
        f"The first {MANY_PANELS} of {len(metrics)} metrics are drawn; the leaderboard has the "
        "others."
    ]
    yield Section("curves", "Curves over k", said * (drawn != metrics), drawings=drawings)


# -- comparison


def comparison_section(subject: Subject, page: Page) -> Sections:
    """Show the differences, one in a row, each with its interval as a picture; many models as a
    matrix of signs."""
    table = subject.comparison
    if table.empty:
        return
    bases = table["baseline"].map(str).unique()
    against = f"from {bases[0]}" if len(bases) == 1 else "of pairs of models"
    how = [
        "The data support the differences inside an interval, and not those outside. “No "
        "difference shown” is no proof that there is none."
    ]
    if subject.baseline is None and len(subject.models) > MATRIX_ABOVE:
        own = table[table["metric"].map(str) == subject.primary].to_dict("records")
        signs = {
            (str(row["model"]), str(row["baseline"])): SIGNS[look_of(row)]
            for row in [*own, *map(turned, own)]
        }
        order = [*enumerate(subject.order, 1)]
        rows = [
            {"model": text(f"{i} {model}")}
            | {f"{j}": text(signs.get((model, one), NULL)) for j, one in order}
            for i, model in order
        ]
        caption = f"{subject.primary}, the model of the row against that of the column, by their "
        caption += "numbers: ▲ better, ▼ worse, ● no difference shown, ! withheld"
        shown = shown_table(caption, rows, len(rows), table, "comparison.csv")
        how = []
    else:
        caption = f"Differences {against}, {level_of(table)}intervals"
        shown = page.block(table, caption, "comparison.csv")
    yield Section("comparison", "Comparison", how, tables=[shown])


# -- trade-offs, users, exposure


def drawn_sections(subject: Subject, page: Page) -> Sections:
    """Draw the primary metric against each metric of another kind; who gets nothing, and who gains
    and who loses by the best model; how evenly impressions fall on items, and how they spread over
    popular and rare ones."""
    metric = subject.primary
    people = subject.people
    pair = subject.pair
    others = [name for name in subject.columns[1:] if subject.family(name) not in ACCURACY]
    if pair and others and subject.family(metric) in ACCURACY:
        drawings = [page.draw(plot.tradeoff, subject.result, x, metric) for x in others[:3]]
        yield Section("trade-offs", "Trade-offs", drawings=drawings)
    if metric in subject.result.per_user.columns:
        drawings = [page.draw(plot.users, people, metric)]
        if pair and subject.values(metric)["n"].nunique() == 1:
            model, rival = pair
            drawings.append(page.draw(plot.winners, people, metric, model=model, baseline=rival))
        said = ["These are the lists that people judged, under their labels alone."]
        said *= people is not subject.result
        yield Section("users", "Users", said, drawings=drawings)
    if (exposure := page.tables.exposure) is not None:
        drawings = [page.draw(plot.exposure, exposure)]
        if page.tables.log is not None:
            drawings.append(page.draw(plot.longtail, exposure, page.tables.log))
        yield Section("exposure", "Exposure", drawings=drawings)


# -- segments


def segments_section(subject: Subject | None, page: Page) -> Sections:
    """Show comparisons within segments, which are made of the users' segments if they are not
    given, and say for whom the pair of the headline is worse on its metric."""
    given = page.tables.segments
    caption = "Comparisons within segments"
    tables = []
    if given is None:
        return
    pair, metric = (subject.pair, subject.primary) if subject else (None, "")
    if subject and not record_of(given).part:
        groups = segment_groups(subject.result, given)
        given = None
        means = values_frame(RowsInMemory(subject.result, groups), subject.summary, [metric])
        cells = TABLE_KINDS["leaderboard"].cells(means.assign(marks=""))
        of_means = f"Mean {metric} by segment", cells, page.most, means, "segment-means.csv"
        tables = [shown_table(*of_means)]
        if pair and metric in subject.tested:
            of_model = model_rows(subject.result)
            both = np.sort(np.concatenate([of_model[one] for one in pair]))
            within = {" = ".join(one): np.intersect1d(both, rows) for one, rows in groups.items()}
            given = compare(
                subject.result, [metric], baseline=pair[1], correction="holm", within=within
            ).rename(columns={"group": IN_SEGMENT})
            caption = f"{pair[0]} against {pair[1]} within segments; p-values "
            caption += adjustment(given).words
    said = list[Reason]()
    drawings = list[Drawing]()
    case = None
    if given is not None:
        new, old = sides_of(given)
        if new == "treatment":  # the pair and the metric of the experiment's first row
            first = next(iter(page.tables.experiment.values()), given).iloc[0]
            pair = (str(first[new]), str(first[old]))
            metric = str(first["metric"])
        if pair and new in given:
            said = _for_whom(given, pair, metric)
        if record_of(given).part == "segments":
            caption += "; p and verdict are about the difference between all segments of a metric"
            drawings = page.forests(given)
        tables.insert(0, page.block(given, caption, "segments.csv"))
        if not subject and (badge := tables[0].badge):
            case = Case(badge, [*segment_sentences(given).values()], ALONE)
    yield Section("segments", "Segments", tables=tables, drawings=drawings, said=said, case=case)


def _for_whom(given: DataFrame, pair: tuple[str, str], metric: str) -> list[Reason]:
    """Say in which segments a pair is worse on a metric, each with the form of its verdict, or that
    this is shown in none; and whether its effect differs between segments."""
    new, old = sides_of(given)
    rows = [row for row in given.to_dict("records") if str(row["metric"]) == metric]
    if new == "model":
        rows = [turned(row) if str(row[old]) == pair[0] else row for row in rows]
    rows = [row for row in rows if (str(row[new]), str(row[old])) == pair]
    found = list[Reason]()
    shrunken = record_of(given).part == "segments"
    if rows and not shrunken:  # shrunken effects have one verdict on all segments
        worse = {
            shorten(visible(segment_of(row)), NAME_LENGTH): f"{row['verdict']}, {effect_text(row)}"
            for row in rows
            if says_worse(row)
        }
        watch = ""
        said = f"{name_of(pair[0])} against {name_of(pair[1])}: shown to be worse in "
        said += f"{len(worse) or 'none'} of {amount(len(rows), 'segment')}"
        if worse:
            said += f": {'; '.join(map(': '.join, worse.items()))}"
            watch = f"Watch {listed([*worse], 3, 'segment')}, where it is worse."
        withheld = sum(map(is_withheld, rows))
        said += f". The verdict is withheld in {withheld}." if withheld else "."
        found.append(Reason(said, watch=watch, line=FOR_WHOM_WORSE))
    if shrunken or (new == "treatment" and "se" in given and rows and segment_of(rows[0])):
        about = segment_sentences(given).get((metric, *pair))
        found += [Reason(about, line=FOR_WHOM_WORSE)] if about else []
    none = f"The comparisons within segments are not about {pair[0]} and {pair[1]} on {metric}."
    return found or [Reason(none, line=FOR_WHOM_WORSE)]


# -- lists of users, definitions, how to get the same numbers


def examples_section(subject: Subject, page: Page) -> Sections:
    """Draw the lists of the first users of a hit table, the models of the headline side by side."""
    if isinstance(examples := page.examples, bool | None):
        return
    by = subject.result.spec["by"]
    key = subject.result.spec["user_col"]
    source = "True, or what rd.diagnostics.hit_table returned"
    names = np.array(labels(need(examples, "examples", [*by, *key, "rank", "hit"], source), by))
    models = [name for name in subject.pair or subject.models[:1] if name in names]
    drawings = []
    lists = examples[np.isin(names, models)].groupby(key, sort=False)
    for user, own in itertools.islice(lists, MANY_LISTS_SHOWN):
        n_items = Counter(labels(own, by))
        there = [one for one in models if one in n_items]
        drawings.append(page.draw(plot.lists, own, user, models=there, lines=max(n_items.values())))
    said = "These are rows of users: this page was made with examples=, and is not for everybody."
    yield Section("examples", "Examples", [said], drawings=drawings)


def definitions_section(subject: Subject, page: Page) -> Sections:
    """Show the formula and the options of every metric of the page."""
    shown = subject.meanings[subject.meanings["column"].isin(subject.columns)]
    rows = [
        {
            "metric": text(row["column"]),
            "meaning": text(row["meaning"] or "a metric of your own"),
            "formula": formula(row["formula"] or NULL),
            "definition with every option": text(row["definition"], code=True),
            "direction": text(DIRECTION[row["better"]] or "no direction"),
        }
        for row in shown.to_dict("records")
    ]
    table = shown_table(
        "The metrics of this page",
        rows,
        page.most,
        subject.meanings,
        "definitions.csv",
        stacked=True,
        folded=f"Formulas of {amount(len(rows), 'metric')}",
    )
    yield Section("definitions", "Definitions", tables=[table])


def reproducibility_section(subject: Subject, page: Page) -> Sections:
    """Show what is needed to get the same numbers again: versions, rows, options and a digest."""
    result = subject.result
    spec = subject.result.spec
    digest = hashlib.sha256(csv_of(result.summary).encode())
    pairs = {
        "recdf": f"{spec.get('recdf', '')} evaluated, {version_and_build()} wrote this page",
        "Python, pandas, NumPy": f"{platform.python_version()}, {pd.__version__}, {np.__version__}",
        "rows": f"{len(result.per_user):,} in per_user, {len(result.summary):,} in summary",
        "digest of the summary": f"sha256 {digest.hexdigest()}",
    }
    # List key, models, order, options and counts: all that was recorded.
    code = json.dumps(spec, indent=1, ensure_ascii=False, default=str)
    yield Section("reproducibility", "Reproducibility", pairs=pairs, code=code)

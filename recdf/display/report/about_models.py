"""Sections about the models of a result: leaderboard, curves, comparison, trade-offs, users,
exposure, segments; examples, definitions, reproducibility. `Page` is what they are made for:
`Subject` is the result with its models and metrics, and `ReportTables` are the tables beside it.

Contract: a function of sections yields the sections of its tables, none where nothing was given.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import platform
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..._version import version_and_build
from ...diagnostics.gate_records import Gate
from ...diagnostics.history import History
from ...evaluation.result import Evaluation
from ...evaluation.spec import definitions
from ...experiments.compare.by_segment import segment_sentences
from ...experiments.decide.adjust_pvalues import adjustment
from ...experiments.decide.decide_experiment import ExperimentPlan
from ...judge.comparisons import level_of, sides_of, unit_of_rows, with_known_codes
from ...judge.verdict import codes_of, is_withheld, says_worse, sentence, sign_of, turned
from ...tables.cells import NULL, amount, short_names, shorten, visible
from .. import plot
from ..given_tables import (
    chosen,
    compare,
    count_range,
    direction_word,
    labels,
    model_rows,
    need,
    summary_of,
    with_both_labels,
    with_units,
)
from ..kinds import ALONE, TABLE_KINDS, harm_first, record_of
from ..leaderboard import board_of
from ..leaderboard_values import RowsInMemory, columns_of, segment_groups, values_frame
from ..page_blocks import (
    FOR_WHOM_WORSE,
    IN_SEGMENT,
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
    marked,
    name_of,
    segment_of,
    shown_table,
    text,
)
from ..plot.effects import SOURCE
from ..plot.models import DIRECTION
from ..plot.picture import BEST, REST, Drawing, ModelLook, looks
from .svg import SIZE, drawing

# Families whose metrics say how good the lists are; every other metric is a price or a gain beside
# that.
ACCURACY = ("ranking", "relevance", "user_models", "rating", "money", "")
BOTH_SIDES = ("model", "baseline")


GivenTable = DataFrame | None  # None where its section is left out
NamedTables = Mapping[str, DataFrame]


class ReportTables(NamedTuple):
    """Tables that a caller gave beside the result. A section is left out where its table is None,
    or where `experiment` or `beside` is empty."""

    experiment: NamedTables
    health: GivenTable
    check: GivenTable
    segments: GivenTable
    off_policy: GivenTable
    exposure: GivenTable
    log: GivenTable
    position: GivenTable
    over_time: GivenTable
    gate: Gate | None
    roles: Mapping[str, Any] | ExperimentPlan | None = None
    ran: Mapping[str, Any] | None = None
    history: History | None = None
    decision: GivenTable = None
    beside: Mapping[str, DataFrame] = {}  # other tables of the experiment, by their name

    @property
    def effects(self) -> list[dict[Any, Any]]:
        """The rows of all effects of the experiment, with what they count."""
        return [
            row | {"unit": unit_of_rows(table)}
            for table in self.experiment.values()
            for row in table.to_dict("records")
        ]


class Subject:
    """What the report is about: one result, the metrics at one k, one baseline, one comparison."""

    def __init__(
        self,
        result: Evaluation,
        baseline: Any,
        k: int,
        comparison: GivenTable,
        unit_col: Any,
        metrics: Any,
        cheap: Any,
    ) -> None:
        found = with_units(result, unit_col)
        # Without attrs, which pandas would copy for every frame and column that is made.
        per_user = DataFrame(found.per_user)
        whole = DataFrame(found.summary)
        # The lists with labels of people, which is `result` where there are no cheap ones.
        self.people = self.result = Evaluation(per_user, whole, found.spec)
        if cheap is not None:
            self.result = with_both_labels(self.people, cheap)
        summary = summary_of(self.result)
        self.models = tuple(dict.fromkeys(summary["model"]))
        # Names of models in sentences.
        self.short = dict(zip(self.models, short_names(self.models, NAME_LENGTH), strict=True))
        if comparison is not None:
            need(comparison, "comparison", TABLE_KINDS["pairs"].columns, SOURCE)
            comparison = with_known_codes(comparison, "comparison")
            of_all = set(comparison["baseline"].map(str))
            if baseline is None and len(of_all) == 1 and of_all < {*self.models}:
                (baseline,) = of_all
        base = None if baseline is None else chosen("baseline", baseline, self.models)
        self.baseline = base
        if metrics is not None:
            wanted = columns_of(summary, metrics, None)
            summary = summary.set_index("column", drop=False).loc[wanted].reset_index(drop=True)
        self.summary = summary
        self.meanings = definitions(self.result.spec)
        # Each metric at its cut-off nearest to k, of two that are as near the first one.
        known = summary[["metric", "column", "k"]].drop_duplicates("column")
        far = (known["k"].astype("Float64") - k).abs().fillna(0).sort_values(kind="stable")
        shown = known.loc[far.index].drop_duplicates("metric").sort_index()
        # The first metric decides.
        self.columns = tuple(shown["column"])
        self.primary = shown["column"].iloc[0]
        cutoffs = shown["k"].dropna().unique()
        self.k = int(cutoffs[0]) if len(cutoffs) == 1 else None
        # Every metric that has a direction is compared with the baseline; without one, all pairs
        # by the first such metric.
        in_rows = self.result.per_user
        self.tested = [name for name in self.columns if self.better(name) and name in in_rows]
        if comparison is not None:
            comparison = self._of_this_result(comparison)
        elif len(self.models) > 1 and self.tested:
            tested = self.tested if base is not None else self.tested[:1]
            comparison = compare(self.result, tested, baseline=base, correction="holm")
        else:  # nothing is compared
            comparison = DataFrame(columns=TABLE_KINDS["pairs"].columns)
        self.comparison = comparison
        # With a baseline, the marks of the leaderboard are those of the comparison; no test is
        # made twice.
        marked = base is not None and comparison.columns[0] == "metric"
        ours = comparison["baseline"].map(str) == base
        tests = comparison[ours] if marked else DataFrame()
        every = [*dict.fromkeys([*self.columns, *summary["column"]])]
        values = values_frame(RowsInMemory(self.result), summary, every)
        self.board = board_of(self.result, values, base, tests)

    def _of_this_result(self, comparison: DataFrame) -> DataFrame:
        """Return a comparison that was given, the verdict withheld where a row has other numbers
        than the result, or says the other direction."""
        values = self.summary.set_index(["model", "column"])["value"].to_dict()
        found = []
        for row in comparison.to_dict("records"):
            sign = sign_of(row)
            metric = str(row["metric"])
            remarks = codes_of(row["remarks"])
            code = ""
            own = [values.get((str(row[side]), metric), np.nan) for side in BOTH_SIDES]
            powered = "n_human" in row  # then a difference need not be that of the means
            means = [row.get(f"mean_{side}", np.nan) for side in BOTH_SIDES]
            alike = np.isnan(own) | np.isnan(means) | np.isclose(own, means, 1e-6, 1e-9)
            if not alike[powered:].all() and "different_lists" not in remarks:
                code = "other_numbers"
            better = self.better(metric)
            up = row["diff"] > 0
            if sign != "open":
                if powered and (own[0] - own[1]) * row["diff"] < 0:
                    code = "labels_disagree"
                if better and (up == (better == "larger")) != (sign == "better"):
                    code = "other_direction"
            if code and not is_withheld(row):
                said = sentence("models", "", code, remarks, row)
                row |= {"effect": "", "withheld": code, "verdict": said}
            found.append(row)
        names = "effect", "withheld", "verdict"
        return comparison.assign(**{name: [row[name] for row in found] for name in names})

    def name(self, label: Any) -> str:
        """Return a model or metric as a sentence names it; different models stay different."""
        return marked(self.short[str(label)]) if str(label) in self.short else name_of(label)

    @cached_property
    def pairs(self) -> DataFrame:
        """Return the comparison of every pair of models on the first metric, all one family, which
        may be the one that the page has."""
        own = self.comparison
        metric = self.primary
        few = self.baseline is None or len(self.models) < 3
        if few or own.empty or metric not in self.result.per_user:
            return own
        how = adjustment(own).how
        how = "holm" if how in ("", "none") else how
        return compare(self.result, [metric], baseline=None, correction=how)

    def better(self, column: str) -> str:
        """Return the direction of a column: "larger", "smaller" or an empty text."""
        return direction_word(self.result, column)

    def family(self, column: str) -> str:
        """Return the family of a metric, an empty text for one of the caller's own."""
        return self.meanings.set_index("column")["family"].get(column, "")

    def values(self, column: str) -> DataFrame:
        """Return the rows of one metric, by model."""
        return self.summary[self.summary["column"] == column].set_index("model")

    @cached_property
    def order(self) -> list[str]:
        """The models from the best to the worst by the first metric; undefined values come last."""
        rising = self.better(self.primary) == "smaller"
        return [*self.values(self.primary)["value"].sort_values(ascending=rising).index]

    @property
    def pair(self) -> tuple[str, str] | None:
        """The best model beside its rival, which is the baseline or else the second best; None with
        one model."""
        if len(self.order) < 2:
            return None
        rival = self.order[1] if self.baseline is None else self.baseline
        return next(one for one in self.order if one != rival), rival

    @property
    def of_accuracy(self) -> bool:
        """Whether the first metric says how good the lists are."""
        return self.better(self.primary) == "larger" and self.family(self.primary) in ACCURACY[:3]


MANY_PANELS = 9
MATRIX_ABOVE = 12  # more pairs than these have stand in a matrix
MANY_LISTS_SHOWN = 5
Sections = Iterator[Section]


@dataclass
class Page:
    """What the sections of one page read, and how they show it. Each picture gets a number, which
    keeps their ids apart, and models keep their looks."""

    subject: Subject | None
    tables: ReportTables
    most: int
    examples: Any
    drawn: int = 0
    # Names and colours that the legend of an earlier picture has.
    shown: set[tuple[str, str]] = field(default_factory=set)

    @cached_property
    def looks(self) -> Mapping[str, ModelLook]:
        """The looks of all models, the same whatever was drawn before."""
        if not (subject := self.subject):
            return {}
        base = [] if subject.baseline is None else [subject.baseline]
        marked = [*dict.fromkeys([*base, *subject.order])]
        return looks(subject.models, marked[: BEST + len(base)], {})

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
            both = np.concatenate([of_model[one] for one in pair])
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

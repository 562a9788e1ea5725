"""What a report is asked for, checked once: the result, its models and metrics, and the tables
beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ...diagnostics.gate_records import Gate
from ...diagnostics.history import History
from ...errors import DataError, OptionError
from ...evaluation.result import Evaluation
from ...evaluation.spec import definitions
from ...experiments.decide.adjust_pvalues import adjustment
from ...experiments.decide.decide_experiment import ExperimentPlan, decide_experiment
from ...judge.choices import POSITIVE, check_value
from ...judge.verdict import codes_of, is_withheld, sentence, sign_of
from ...publishing import refuse_two_runs
from ...tables.cells import short_names
from ..given_tables import (
    check_model,
    direction_word,
    need,
    need_gate,
    need_history,
    summary_of,
    with_units,
)
from ..joined_labels import with_both_labels
from ..kinds import TABLE_KINDS, page_part
from ..leaderboard import Leaderboard, board_of
from ..leaderboard_values import RowsInMemory, columns_of, values_frame
from ..pairs import compare
from ..plot.effects import SOURCE
from .page_blocks import NAME_LENGTH, marked, name_of

# Families whose metrics say how good the lists are; every other metric is a price or a gain beside
# that.
ACCURACY = ("ranking", "relevance", "user_models", "rating", "money", "")
EXPERIMENT_SOURCE = (
    "what rd.compare_variants or a function of rd.experiments returned, or a mapping of names to "
    "such"
)
ONE_PAGE = "or make a page for each experiment"
MANY_SEGMENTS = 12  # a carried column of more values names no segments


@dataclass(frozen=True)
class ReportTables:
    """Tables that a caller gave beside the result, each None where its section is left out."""

    experiment: Mapping[str, pd.DataFrame]
    health: pd.DataFrame | None
    check: pd.DataFrame | None
    segments: pd.DataFrame | None
    off_policy: pd.DataFrame | None
    exposure: pd.DataFrame | None
    log: pd.DataFrame | None
    position: pd.DataFrame | None
    over_time: pd.DataFrame | None
    gate: Gate | None
    roles: Mapping[str, Any] | ExperimentPlan | None = None
    ran: Mapping[str, Any] | None = None
    decision: pd.DataFrame | None = None
    history: History | None = None
    beside: Mapping[str, pd.DataFrame] = field(
        default_factory=dict
    )  # other tables of the experiment, by their name


@dataclass(frozen=True)
class Subject:
    """What the report is about: one result, the metrics at one k, one baseline, one comparison."""

    result: Evaluation
    summary: pd.DataFrame
    models: tuple[str, ...]
    columns: tuple[str, ...]
    k: int | None
    baseline: str | None
    board: Leaderboard
    comparison: pd.DataFrame | None
    meanings: pd.DataFrame
    max_rows: int
    # the lists with labels of people, which is `result` where there are no cheap ones
    people: Evaluation
    short: Mapping[str, str] = field(default_factory=dict)  # names of models in sentences

    def name(self, label: Any) -> str:
        """Return a model or metric as a sentence names it; different models stay different."""
        return marked(self.short[str(label)]) if str(label) in self.short else name_of(label)

    @cached_property
    def pairs(self) -> pd.DataFrame | None:
        """Return the comparison of every pair of models on the first metric, all one family; None
        where there is nothing more to compare than `comparison` holds."""
        own = self.comparison
        if own is None or len(self.models) < 3 or self.primary not in self.result.per_user.columns:
            return own
        here = own[own["metric"].astype(str) == self.primary]
        sides = zip(here["model"].map(str), here["baseline"].map(str), strict=True)
        n = len({frozenset(pair) for pair in sides})
        if n == len(here) == len(self.models) * (len(self.models) - 1) // 2:
            return own
        how: Any = adjustment(own).how
        how = "holm" if how in ("", "none") else how
        return compare(self.result, [self.primary], baseline=None, correction=how)

    @property
    def primary(self) -> str:
        """The metric that decides: the first one."""
        return self.columns[0]

    def better(self, column: str) -> str:
        """Return the direction of a column: "larger", "smaller" or an empty text."""
        found = self.summary.loc[self.summary["column"] == column, "better"]
        return str(found.iloc[0]) if len(found) else ""

    def family(self, column: str) -> str:
        """Return the family of a metric, an empty text for one of the caller's own."""
        return str(self.meanings.set_index("column")["family"].get(column, ""))

    def values(self, column: str) -> pd.DataFrame:
        """Return the rows of one metric, by model."""
        return self.summary[self.summary["column"] == column].set_index("model")

    def ranking(self, column: str) -> list[str]:
        """Return the models from the best to the worst by one metric; undefined values come
        last."""
        values = self.values(column)["value"]
        return [
            str(name)
            for name in values.sort_values(ascending=self.better(column) == "smaller").index
        ]

    @property
    def pair(self) -> tuple[str, str] | None:
        """The best model beside its rival, which is the baseline or else the second best; None with
        one model."""
        order = self.ranking(self.primary)
        if len(order) < 2:
            return None
        rival = self.baseline if self.baseline is not None else order[1]
        return (order[0] if order[0] != rival else order[1]), rival

    @property
    def tested_pair(self) -> tuple[str, str] | None:
        """The pair of the headline, if the values of its lists can be compared."""
        there = self.better(self.primary) and self.primary in self.result.per_user.columns
        return self.pair if there else None

    @property
    def of_accuracy(self) -> bool:
        """Whether the first metric says how good the lists are."""
        return self.better(self.primary) == "larger" and self.family(self.primary) in ACCURACY[:3]


def read_subject(
    result: Evaluation,
    baseline: Any,
    k: int,
    comparison: pd.DataFrame | None,
    max_rows: int,
    unit_col: Any = None,
    metrics: Any = None,
    cheap: Any = None,
) -> Subject:
    """Check the result and what is said about it."""
    check_value("max_rows", max_rows, POSITIVE)
    people = result = _without_attrs(with_units(result, unit_col))
    if cheap is not None:
        result = with_both_labels(people, cheap)
    summary = summary_of(result)
    models = tuple(dict.fromkeys(summary["model"]))
    if comparison is not None:
        comparison = need(comparison, "comparison", TABLE_KINDS["pairs"].columns, SOURCE)
        of_all = set(comparison["baseline"].map(str))
        if baseline is None and len(of_all) == 1 and of_all < {*models}:
            (baseline,) = of_all
    base = None if baseline is None else check_model("baseline", baseline, models)
    if metrics is not None:
        wanted = columns_of(summary, metrics, None)
        parts = [summary[summary["column"] == name] for name in wanted]
        summary = pd.concat(parts, ignore_index=True)
    columns, at = _columns_at(summary, k)
    if comparison is None:
        comparison = _own_comparison(result, summary, columns, base, len(models))
    else:
        comparison = _of_this_result(comparison, summary, result)
    # With a baseline, the marks of the leaderboard are those of the comparison; no test is made
    # twice.
    tests = pd.DataFrame()
    if comparison is not None and base is not None and not list(comparison.columns).index("metric"):
        tests = comparison
    every = [*columns, *(name for name in dict.fromkeys(summary["column"]) if name not in columns)]
    board = board_of(result, values_frame(RowsInMemory(result, {}), summary, every), base, tests)
    meanings = definitions(result.spec)
    short = dict(zip(models, short_names(models, NAME_LENGTH), strict=True))
    return Subject(
        *(result, summary, models, columns, at, base, board, comparison, meanings, max_rows),
        people,
        short,
    )


def _of_this_result(
    comparison: pd.DataFrame, summary: pd.DataFrame, result: Evaluation
) -> pd.DataFrame:
    """Return a comparison that was given, the verdict withheld where a row has other numbers than
    the result."""
    values = summary.set_index(["model", "column"])["value"].to_dict()
    found = []
    for row in comparison.to_dict("records"):
        code = _of_other_numbers(row, values, direction_word(result, str(row["metric"])))
        codes = ("", code, codes_of(row["remarks"]))
        found.append(
            {**row, "effect": "", "withheld": code, "verdict": sentence("models", *codes, row)}
            if code and not is_withheld(row)
            else row
        )
    told = comparison.copy(deep=False)  # of its own class, with its attrs
    for name in ("effect", "withheld", "verdict"):
        told[name] = pd.Series([row[name] for row in found], told.index, dtype=str)
    return told


def _of_other_numbers(row: Mapping[Any, Any], values: Mapping[Any, float], better: str) -> str:
    """Return why a row of a comparison that was given decides nothing about this result, as a
    code of cautions, or nothing."""
    sign, metric = sign_of(row), str(row["metric"])
    if (
        sign != "open"
        and better
        and ((row["diff"] > 0) == (better == "larger")) != (sign == "better")
    ):
        return "other_direction"
    own = {side: values.get((str(row[side]), metric), np.nan) for side in ("model", "baseline")}
    powered = "n_human" in row  # a difference need not be that of the means, each of both labels
    if powered and sign != "open" and (own["model"] - own["baseline"]) * row["diff"] < 0:
        return "labels_disagree"
    means = [(own[side], row.get(f"mean_{side}")) for side in own if side != "model" or not powered]
    known = [(one, other) for one, other in means if pd.notna(one) and pd.notna(other)]
    same = all(np.isclose(*pair, rtol=1e-6, atol=1e-9) for pair in known)
    return "" if same or "different_lists" in codes_of(row["remarks"]) else "other_numbers"


def carried_segments(result: Evaluation) -> pd.DataFrame | None:
    """Return the columns of few values that a result carries as segments of its users, if no two
    models have other values."""
    table, spec = result.per_user, result.spec
    names = [
        name
        for name in spec.get("carry", {})
        if name in table.columns and table[name].nunique() <= MANY_SEGMENTS
    ]
    keys = list(spec["user_col"])
    found = table[[*keys, *names]].drop_duplicates()
    return found if names and not found.duplicated(keys).any() else None


def check_alone(tables: ReportTables, beside: Mapping[str, Any]) -> None:
    """Refuse what speaks of models on a page that has no result."""
    named = [name for name, found in beside.items() if found is not None]
    if tables.segments is not None and not page_part(tables.segments):
        named.append("segments")
    if named:
        raise OptionError(
            f"{named[0]}= is about the models of a result, and the page has none; leave it out"
        )


def _without_attrs(result: Evaluation) -> Evaluation:
    """Return the same tables without attrs, which pandas would copy for every frame and column that
    is made."""
    per_user, summary = result.per_user.copy(deep=False), result.summary.copy(deep=False)
    per_user.attrs, summary.attrs = {}, {}
    return Evaluation(per_user, summary, result.spec)


def _columns_at(summary: pd.DataFrame, k: int) -> tuple[tuple[str, ...], int | None]:
    """Return the columns that are shown, each metric at its cut-off nearest to k, and this cut-off
    if all share it."""
    check_value("k", k, POSITIVE)
    known = summary[["metric", "column", "k"]].drop_duplicates("column")
    distance = (known["k"].astype("Float64") - float(k)).abs().fillna(0.0).astype("float64")
    nearest = distance.groupby(known["metric"]).transform("min")
    shown = known[distance == nearest].drop_duplicates(
        "metric"
    )  # of two that are as near, the smaller one
    cutoffs = {int(found) for found in shown["k"].dropna()}
    return tuple(shown["column"]), cutoffs.pop() if len(cutoffs) == 1 else None


def _own_comparison(
    result: Evaluation,
    summary: pd.DataFrame,
    columns: tuple[str, ...],
    baseline: str | None,
    n_models: int,
) -> pd.DataFrame | None:
    """Compare every metric that has a direction with the baseline; without one, all pairs by the
    first such metric."""
    directed = set(summary.loc[summary["better"] != "", "column"])
    tested = [name for name in columns if name in directed and name in result.per_user.columns]
    if n_models < 2 or not tested:
        return None
    return compare(
        result, tested if baseline is not None else tested[:1], baseline=baseline, correction="holm"
    )


def read_report_tables(experiment: Any, given: ReportTables) -> ReportTables:
    """Check the tables beside the result: each must be what its function returns."""
    given = _sorted_out(experiment, given)
    if isinstance(experiment, pd.DataFrame) and given.health is not None:
        # Of several tables, some may be of another run over the same users.
        refuse_two_runs({"experiment": experiment, "health": given.health})
    for name, call in (
        ("health", "rd.experiments.experiment_health"),
        ("check", "rd.check"),
        ("off_policy", "rd.ope.estimate"),
    ):
        if (table := getattr(given, name)) is not None:
            need(table, name, TABLE_KINDS[name].columns, f"what {call} returned")
    if given.gate is not None:
        need_gate(given.gate)
    if given.history is not None:
        need_history(given.history)
    named = {name: getattr(given, name) for name in ("health", "off_policy", "over_time")}
    for name, table in {**named, **given.experiment, **given.beside}.items():
        if table is not None and table.empty:
            raise DataError(
                f"{name or 'experiment'} has no rows; leave it out, or pass the table that was "
                "meant"
            )
    if given.log is not None and given.exposure is None:
        raise OptionError(
            "⟦log=⟧ is for the picture of the long tail, which needs ⟦exposure=⟧ (from "
            "rd.diagnostics.exposure_table)"
        )
    if given.roles is None:
        return given
    if not given.experiment:
        raise OptionError("⟦roles=⟧ is about the metrics of an experiment; pass ⟦+experiment=⟧ too")
    table = next(iter(given.experiment.values()))
    return replace(given, decision=decide_experiment(table, roles=given.roles, ran=given.ran))


def _sorted_out(experiment: Any, given: ReportTables) -> ReportTables:
    """Tell the tables of an experiment by their columns: effects, those with an argument of their
    own, and others."""
    by_name = experiment if isinstance(experiment, Mapping) else {"": experiment}
    parts: dict[str, Any] = {"experiment": {}, "beside": {}}
    for name, table in by_name.items() if experiment is not None else ():
        role = f"experiment[{name!r}]" if name else "experiment"
        if isinstance(table, Mapping):
            raise OptionError(
                f"{role} is a mapping of tables; name each table in experiment= itself, {ONE_PAGE}"
            )
        part = page_part(table)
        if part in ("experiment", "beside"):
            parts[part][str(name)] = table
        elif not part:
            need(table, role, TABLE_KINDS["experiment"].columns, EXPERIMENT_SOURCE)
        elif part in parts or getattr(given, part) is not None:
            raise OptionError(f"{role} is a second table for {part}=; pass one of them, {ONE_PAGE}")
        else:
            parts[part] = table
    return replace(given, **parts)

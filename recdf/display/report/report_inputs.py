"""What a report is asked for, checked once: the result, its models and metrics, and the tables
beside it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from pandas import DataFrame

from ...diagnostics.gate_records import Gate
from ...diagnostics.history import History
from ...errors import DataError, OptionError
from ...evaluation.result import Evaluation
from ...evaluation.spec import definitions
from ...experiments.decide.adjust_pvalues import adjustment
from ...experiments.decide.decide_experiment import ExperimentPlan, decide_experiment
from ...experiments.decide.experiment_health import withheld_by
from ...judge.comparisons import segments_first, unit_of_rows, with_known_codes
from ...judge.verdict import codes_of, is_withheld, sentence, sign_of
from ...publishing import refuse_two_runs
from ...tables.cells import as_written, short_names
from ..given_tables import (
    chosen,
    compare,
    direction_word,
    need,
    need_gate,
    need_history,
    summary_of,
    with_both_labels,
    with_units,
)
from ..kinds import TABLE_KINDS, record_of
from ..leaderboard import board_of
from ..leaderboard_values import RowsInMemory, columns_of, values_frame
from ..plot.effects import BY_PERIOD, PERIOD_COLUMNS, SOURCE
from .page_blocks import NAME_LENGTH, marked, name_of

# Families whose metrics say how good the lists are; every other metric is a price or a gain beside
# that.
ACCURACY = ("ranking", "relevance", "user_models", "rating", "money", "")
EXPERIMENT_SOURCE = (
    "what rd.compare_variants or a function of rd.experiments returned, or a mapping of names to "
    "such"
)
BOTH_SIDES = ("model", "baseline")
MANY_SEGMENTS = 12  # a carried column of more values names no segments


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
    decision: GivenTable = None
    history: History | None = None
    beside: Mapping[str, DataFrame] = {}  # other tables of the experiment, by their name

    @property
    def effects(self) -> list[dict[Any, Any]]:
        """The rows of all effects of the experiment, with what they count."""
        tables = self.experiment.values()
        return [
            row | {"unit": unit_of_rows(table)}
            for table in tables
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
        tests = comparison if marked else DataFrame()
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
            code = ""
            own = [values.get((str(row[side]), metric), np.nan) for side in BOTH_SIDES]
            powered = "n_human" in row  # then a difference need not be that of the means
            means = [row.get(f"mean_{side}", np.nan) for side in BOTH_SIDES]
            alike = np.isnan(own) | np.isnan(means) | np.isclose(own, means, 1e-6, 1e-9)
            if not alike[powered:].all() and "different_lists" not in codes_of(row["remarks"]):
                code = "other_numbers"
            better = self.better(metric)
            up = row["diff"] > 0
            if powered and sign != "open" and (own[0] - own[1]) * row["diff"] < 0:
                code = "labels_disagree"
            if better and sign != "open" and (up == (better == "larger")) != (sign == "better"):
                code = "other_direction"
            if code and not is_withheld(row):
                said = sentence("models", "", code, codes_of(row["remarks"]), row)
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


def carried_segments(result: Evaluation) -> GivenTable:
    """Return the columns of few values that a result carries as segments of its users, if no two
    models have other values."""
    table = result.per_user
    spec = result.spec
    names = [
        name
        for name in spec.get("carry", {})
        if name in table and table[name].nunique() <= MANY_SEGMENTS
    ]
    keys = spec["user_col"]
    found = table[[*keys, *names]].drop_duplicates()
    return found if names and not found.duplicated(keys).any() else None


def read_report_tables(experiment: Any, given: ReportTables) -> ReportTables:
    """Check the tables beside the result: each must be what its function returns. Those of an
    experiment are told by their columns: effects, those with an argument of their own, and others
    beside the effects."""
    by_name = experiment if isinstance(experiment, Mapping) else {"": experiment}
    parts: dict[str, Any] = {"experiment": {}, "beside": {}}
    for name, table in by_name.items() if experiment is not None else ():
        role = f"experiment[{name!r}]" if name else "experiment"
        part = record_of(table).part
        if part in ("experiment", "beside"):
            read = with_known_codes(table, role) if part == "experiment" else segments_first(table)
            parts[part][str(name)] = read
        elif not part:
            need(table, role, TABLE_KINDS["experiment"].columns, EXPERIMENT_SOURCE)
        elif part in parts or getattr(given, part) is not None:
            raise OptionError(
                f"{role} is a second table for the part {part!r} of the page; pass one of them, or "
                "make a page for each experiment"
            )
        else:
            parts[part] = segments_first(table)
    calls = {
        "health": "rd.experiments.experiment_health",
        "check": "rd.check",
        "off_policy": "rd.ope.estimate",
        "over_time": "",
    }
    for name, call in calls.items():
        if (table := parts.get(name, getattr(given, name))) is not None:
            columns = TABLE_KINDS[name].columns if call else PERIOD_COLUMNS
            returned = f"what {call} returned" if call else BY_PERIOD
            parts[name] = as_written(need(table, name, columns, returned))
    given = given._replace(**parts)
    if isinstance(experiment, DataFrame) and given.health is not None:
        # Of several tables, some may be of another run over the same users.
        refuse_two_runs({"experiment": experiment, "health": given.health})
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
    # What was compared without the health that stands beside it is withheld all the same.
    code = "sample_ratio" * (given.health is not None and any(given.health["srm_flag"]))
    of_effects = ("experiment", "beside", "segments", "over_time", "decision")
    given = given._replace(**{name: withheld_by(code, getattr(given, name)) for name in of_effects})
    if given.roles is None:
        return given
    if not given.experiment:
        raise OptionError("⟦roles=⟧ is about the metrics of an experiment; pass ⟦+experiment=⟧ too")
    table = next(iter(given.experiment.values()))
    decision = decide_experiment(table, roles=given.roles, ran=given.ran)
    return given._replace(decision=withheld_by(code, decision))

"""Sections about an experiment, and the card of a page without a result.

Rules: validity comes first, with what was checked; harms come before all other effects; counts of
segments speak of the pair and the metric of the first row; an invalid one shows no effect in large
type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...experiments.compare.by_segment import segment_sentences
from ...experiments.decide.adjust_pvalues import adjustment
from ...experiments.decide.decide_experiment import role_verdicts
from ...experiments.decide.sample_ratio import seen_words
from ...judge.cautions.table import CAUTIONS, UNLIKE
from ...judge.comparisons import confidence_of, note_of
from ...judge.verdict import codes_of, hides_harm, is_withheld, says_worse, warnings_of
from ...tables.cells import amount, p_value, visible
from .. import plot
from ..given_tables import sides_of_tests
from ..kinds import (
    FEW,
    TABLE_KINDS,
    harm_first,
    page_part,
)
from ..row_words import of_trend, segment_of, who_is_compared
from .about_models import Pen, block, forest_drawings, worse_for
from .beside import (
    MadeSection,
    decision_case,
    decision_said,
    doubts_beside,
    estimates_card,
    gate_card,
    off_policy_card,
    worst,
)
from .card import collect, could_show, one_sided, tempered, undecided_harm, verdict_section
from .overturning import Case
from .page_blocks import (
    Badge,
    Drawing,
    Reason,
    Section,
    TableBlock,
    badge_of,
    effect_text,
    name_of,
    plain,
)
from .report_inputs import ReportTables

NO_EFFECT = (
    "No effect is shown here, since the comparison is not sound; the tables have the numbers."
)


def experiment_section(tables: ReportTables, most: int, pen: Pen, alone: bool) -> MadeSection:
    """Show the effects of an experiment, harms first, also by rank and over time.

    On a page that is about it alone, another section says whether it is sound.
    """
    drawings: list[Drawing] = []
    if tables.position is not None:
        drawings.append(pen(plot.position, tables.position))
    if tables.over_time is not None:
        drawings += _over_time_drawings(tables.over_time, pen)
    decided = decision_said(tables)
    if not tables.experiment and tables.health is None:
        if not drawings and not decided:
            return None, []
        title = "Decision" if decided else "Positions" if tables.over_time is None else "Over time"
        said = [Reason(one) for one in (decided or _trends(tables.over_time))]
        return Section("positions", title, text=tuple(decided), drawings=tuple(drawings)), said
    mark, sound = _soundness(tables)
    parts: list[TableBlock] = []
    judged = tables.decision is not None and tables.roles is not None
    for i, (name, table) in enumerate(tables.experiment.items()):
        controls = table["control"].unique().tolist()
        what = f"differences from {controls[0]}" if len(controls) == 1 else "pairs of variants"
        caption = f"Effects{f', {name}' if name else ''}: {what}, harms first"
        if judged and i == 0 and (level := confidence_of(table)) is not None:
            sided = "one" if sides_of_tests(table) else "two"
            caption += (
                f"; {sided}-sided {100 * level:g} % intervals, beside the bounds of the roles"
            )
        file = f"experiment{f'-{i}' if i else ''}.csv"
        parts.append(block(TABLE_KINDS["experiment"], table, caption, file, most))
    if judged and tables.roles is not None:
        roles = role_verdicts(next(iter(tables.experiment.values())), tables.roles)
        caption = "Roles: bounds of a guardrail are one-sided, as its test is"
        parts.insert(0, block(TABLE_KINDS["role"], roles, caption, "roles.csv", most))
        drawings = [*forest_drawings(roles, most, pen), *drawings]
    if tables.health is not None:
        kind = TABLE_KINDS["health"]
        parts.append(block(kind, tables.health, kind.title, "health.csv", most))
    section = Section(
        "experiment",
        "Effects" if alone else "Experiment",
        text=() if alone else (*decided, sound, *_checked(tables)),
        badge=None if alone else mark,
        tables=tuple(parts),
        drawings=tuple(drawings),
    )
    quoted = [*decided, *_experiment_said(tables), sound]
    return section, [Reason(one) for one in quoted]


def _over_time_drawings(table: pd.DataFrame, pen: Pen) -> list[Drawing]:
    """Draw the effect by period, a picture for each metric and pair of variants."""
    names = [name for name in ("metric", "treatment", "control") if name in table.columns]
    found = table[names].drop_duplicates().itertuples(index=False)
    return [pen(plot.over_time, table, **dict(zip(names, one, strict=True))) for one in found]


def _trends(given: pd.DataFrame | None, row: Mapping[Any, Any] | None = None) -> list[str]:
    """Say whether effects fade, if a table of periods knows: all, or that of a row."""
    if given is None or page_part(given) != "over_time":
        return []
    names = [name for name in ("metric", "treatment", "control") if name in given.columns]
    if row is not None:
        given = given[(given[names] == pd.Series(row)[names]).all(axis=1)]
    rows = given.drop_duplicates(names).to_dict("records")
    return list(map(of_trend, rows))


def _experiment_said(tables: ReportTables) -> list[str]:
    """Say the first few effects of the first table, harms first, for the head of a page about
    models."""
    table = next(iter(tables.experiment.values()), None)
    if table is None:
        return []
    rows = harm_first(table).to_dict("records")
    said: list[str] = [f"Experiment, {TABLE_KINDS['experiment'].said(row)}" for row in rows[:FEW]]
    if more := len(rows) - FEW if len(rows) > FEW else 0:
        stand = "stands" if more == 1 else "stand"
        said.append(f"{amount(more, 'more effect')} {stand} in the section Experiment.")
    return said


def _checked(tables: ReportTables) -> list[str]:
    """Say which checks of the experiment stand behind its tables, and which do not."""
    table = next(iter(tables.experiment.values()), pd.DataFrame())
    health = pd.DataFrame() if tables.health is None else tables.health

    def known(column: str) -> bool:
        return any(column in one.columns and one[column].notna().any() for one in (table, health))

    short = "treatment" in table.columns and "srm_p" not in table.columns
    found = {
        "the sample ratio": known("srm_p") or (short and _fits_plan(table.to_dict("records"))),
        "users without metrics": known("missing_p"),
        "effects over time": tables.over_time is not None,
    }
    if not short:
        found |= {"covariates": known("balance_p"), "denominators": known("p_denominator")}
    done, left = (
        ", ".join(name for name, there in found.items() if there is wanted) or "nothing"
        for wanted in (True, False)
    )
    said = [f"Checked: {done}. Not checked here: {left}."]
    more = "The comparison has its main columns. With details=True it also says which loss of users"
    more += " would have been seen (seen_loss), and p of covariates (balance_p) and of denominators"
    return [*said, f"{more} (p_denominator)."] if short else said


def _fits_plan(rows: Sequence[Mapping[Any, Any]]) -> bool:
    """Whether the users who are compared were tested against the plan, and fit it."""
    codes = {code for row in rows for code in codes_of(row["remarks"])}
    return bool(rows) and codes.isdisjoint(("sample_ratio", "ratio_not_checked"))


def _soundness(tables: ReportTables) -> tuple[Badge, str]:
    """Say what the sample ratio and the users without metrics mean for the effects."""
    health = tables.health
    rows = [row for one in tables.experiment.values() for row in one.to_dict("records")]
    broken = [row for row in rows if "sample_ratio" in codes_of(row["remarks"])]
    tested = [row["srm_p"] for row in rows if not pd.isna(row.get("srm_p", np.nan))]
    wrong = Badge("error", "sample ratio")
    why = "Find out why before reading an effect."
    if broken and (health is None or not health["srm_flag"].astype(bool).any()):
        said, p = _users(broken[0]), broken[0].get("srm_p", np.nan)
        return wrong, f"The users who are compared do not fit the plan: {said}{_p(p)}. {why}"
    if health is None and tested:
        said = f"Sample ratio of the users who are compared as planned{_p(min(tested))}"
        return Badge("good", "sound"), f"{said}{seen_words(rows, 'treatment')}."
    if health is None and _fits_plan(rows) and "srm_p" not in rows[0]:
        return Badge("good", "sound"), "Sample ratio of the users who are compared as planned."
    if health is None:
        how = "pass health= (what rd.experiments.experiment_health returned)"
        return Badge("warning", "not checked"), f"The sample ratio was not checked: {how}."
    records = health.to_dict("records")
    arms, p = ", ".join(map(TABLE_KINDS["health"].said, records)), health["srm_p"].min()
    if health["srm_flag"].astype(bool).any():
        said = f"The users per variant do not fit the plan: {arms}{_p(p)}. {why}"
        return wrong, said
    lost = health["missing_p"].min() if "missing_p" in health.columns else np.nan
    if health["missing_flag"].astype(bool).any():
        said = f"Users without metrics differ between the variants{_p(lost)}."
        return Badge("error", "missing metrics"), f"{said} The effects may come from that alone."
    missing = ", ".join(f"{rate:.1%}" for rate in health["missing_rate"])
    fits, mark = "Sample ratio as planned", Badge("good", "sound")
    if pd.isna(p):
        fits, mark = "The sample ratio could not be tested", Badge("warning", "not tested")
    said = f"{fits}: {arms}{_p(p)}{seen_words([*records, *rows], 'variant')}."
    return mark, f"{said} Users without metrics: {missing}{_p(lost)}."


def _p(p: Any) -> str:
    """Return a p-value behind what it is of; nothing where there is none."""
    words = p_value(p)
    return "" if pd.isna(p) else f"; p {'' if words.startswith('<') else '= '}{words}"


def _users(row: Mapping[Any, Any]) -> str:
    return f"{amount(int(row['n_treatment']), 'user')} against {int(row['n_control']):,}"


def validity_section(tables: ReportTables) -> Section | None:
    """Say whether the experiment is sound, and what was checked: the first section of a page about
    an experiment."""
    if not tables.experiment and tables.health is None:
        return None
    mark, said = _soundness(tables)
    return Section("validity", "Is it sound?", text=(said, *_checked(tables)), badge=mark)


def experiment_card(tables: ReportTables) -> Section | None:
    """Return the verdict about the first metric and treatment of an experiment, harms said before
    everything open."""
    table = next(iter(tables.experiment.values()), None)
    if table is None or not len(table):
        return None
    rows = [row for one in tables.experiment.values() for row in one.to_dict("records")]
    row = rows[0]
    sound, soundness = _soundness(tables)
    invalid = sound.kind == "error" or row["withheld"] in UNLIKE
    believed = not invalid and not is_withheld(row)
    harmed = [one for one in rows if says_worse(one)]
    case = _effect_case(table, row, sound, invalid)
    doubts = doubts_beside(tables.beside, row)
    reasons = list(doubts)
    if tables.decision is None:
        own = [one for one in rows[1:] if _sides(one) == _sides(row)]
        if believed and (names := _metrics_of(one for one in own if says_worse(one))):
            reasons.append(Reason("", f"worse on {names}", f"weigh the loss on {names} first"))
            if case.badge.kind == "open":
                no = f"Do not ship {name_of(row['treatment'])}."
                case = case._replace(badge=Badge("worse", f"harm on {names}"), action=no)
        withheld = (one for one in own if hides_harm(one, one.get("better")))
        reasons += [undecided_harm(names)] if (names := _metrics_of(withheld)) else []
    else:
        case = decision_case(tables.decision)._replace(which=case.which)
    if believed and "ratio_not_checked" in codes_of(row["remarks"]) and sound.kind != "good":
        todo = "check the sample ratio first (expected=, or health=)"
        reasons.append(Reason("", "the sample ratio is not checked", todo))
    mark, action = tempered(case, reasons if case.ships else ())
    amounts = [NO_EFFECT, *_checked(tables)]
    if believed:
        amounts = [f"{effect_text(row)}.", *_trends(tables.over_time, row)]
    said = [f"Worse: {TABLE_KINDS['experiment'].said(one)}" for one in harmed]
    if invalid and harmed:
        unsaid = ", ".join(map(who_is_compared, harmed))
        said = [f"Worse by the numbers as they stand: {unsaid}."]
    held = [
        f"Not decided: {who_is_compared(one)}: {one['verdict']}."
        for one in rows
        if is_withheld(one)
    ]
    return verdict_section(
        mark,
        (*decision_said(tables), case.which),
        action,
        how_much=amounts,
        sure=(soundness, *_test_words(table, row, believed)),
        for_whom=(
            *(said or ["No metric is shown to be worse."]),
            *held,
            *_worse_segments(tables, row),
        ),
        doubts=(*(doubt.said for doubt in doubts), *_warned(rows)),
    )


def _sides(row: Mapping[Any, Any]) -> tuple[Any, Any]:
    return row["treatment"], row["control"]


def _metrics_of(rows: Iterable[Mapping[Any, Any]]) -> str:
    """Name the metrics of some effects, each with its segment."""
    names = (
        plain(name_of(one["metric"])) + (f" ({visible(part)})" if (part := segment_of(one)) else "")
        for one in rows
    )
    return ", ".join(dict.fromkeys(names))


def _effect_case(table: pd.DataFrame, row: Mapping[Any, Any], sound: Badge, invalid: bool) -> Case:
    """Return what the first row says before anything speaks against it."""
    the = "the control " if table["control"].nunique() == 1 else ""
    new, verdict, where = name_of(row["treatment"]), str(row["verdict"]), segment_of(row)
    than = f"{the}{name_of(row['control'])} on {name_of(row['metric'])}"
    than += f" ({where})." if where else "."
    if invalid or is_withheld(row):
        mark = Badge("error", "invalid") if invalid else Badge("warning", "withheld")
        which = f"The verdict is withheld ({verdict}): {new} against {than}"
        why = {"sample ratio": "find out why the users do not fit the plan"}.get(sound.text)
        why = "find out why metrics are missing" if sound.text == "missing metrics" else why
        why = why or CAUTIONS[row["withheld"]].sentence
        return Case(mark, which, f"Do not act: {why}.", stands=False)
    kind = badge_of(row)
    if kind in ("better", "worse"):
        todo = f"{'Ship' if kind == 'better' else 'Do not ship'} {new}."
        which = f"{new} is {kind} than {than}"
        return Case(Badge(kind, kind), which, todo, ships=kind == "better")
    which = f"{verdict[:1].upper()}{verdict[1:]}: {new} against {than}"
    todo = "Decide by a metric that has a direction."
    if row["effect"] == "none":
        n = int(row["n_treatment"]) + int(row["n_control"])
        more = collect(row, n, "user")
        todo = f"Keep {name_of(row['control'])}. {more}"
    return Case(Badge("open", verdict), which, todo)


def _test_words(table: pd.DataFrame, row: Mapping[Any, Any], believed: bool) -> list[str]:
    p = f"{_p(row['p_adj'])}, " if believed else "; p-values "
    shown = could_show(row, "An effect of {}", "experiments of this size")
    return [f"{_users(row)}{p}{adjustment(table).words}.", *one_sided(table), *shown]


def _worse_segments(tables: ReportTables, row: Mapping[Any, Any]) -> list[str]:
    """Say in which segments the treatment of the first row is worse, on its metric."""
    given = tables.segments
    if given is None or "treatment" not in given.columns:
        return []
    labels = ["treatment", "control", "metric"]
    own = given[(given[labels] == pd.Series(row)[labels]).all(axis=1)]
    shrunken = page_part(given) == "segments"  # then no segment has a verdict of its own
    rows = [] if shrunken else own.to_dict("records")
    said = [reason.said for reason in worse_for(rows, list(map(segment_of, rows)))]
    if {"se", "shrunken"} & {*given.columns} and list(given.columns).index("metric") > 0:
        key = str(row["metric"]), str(row["treatment"]), str(row["control"])
        said += [text for found, text in segment_sentences(given).items() if found == key]
    return said


def _warned(effects: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Say the warnings of every effect that has one."""
    rows = [row for row in effects if warnings_of(row["remarks"])]
    said: list[str] = [f"{who_is_compared(row)}: {note_of(row)}." for row in rows[:FEW]]
    if len(rows) > FEW:
        carry = "carries" if len(rows) - FEW == 1 else "carry"
        said.append(f"{amount(len(rows) - FEW, 'more effect')} {carry} a warning.")
    return said or ["No effect carries a warning."]


# What a page about one of these sections alone asks for, by its badge.
NEXT_STEPS: dict[str, dict[str, str]] = {
    "history": {
        **dict.fromkeys(
            ("error", "worse"), "Find out what changed before trusting the newest numbers."
        ),
        **dict.fromkeys(("warning", "open"), "Do nothing now: wait for more nights."),
        **dict.fromkeys(("better", "good"), "Go on."),
    },
    "data-health": {
        "error": "Mend the data before anything is compared.",
        "warning": "Look at the warnings before anything is compared.",
        "good": "Compare the models.",
    },
}


def alone_card(
    tables: ReportTables, sections: Sequence[Section], said: Mapping[str, Sequence[Reason]]
) -> Section:
    """Return the card of a page without a result: that of the first table that has a verdict."""
    makers = (experiment_card, off_policy_card, gate_card, estimates_card)
    found = next((card for make in makers if (card := make(tables)) is not None), None)
    if found is not None:
        return found
    which = [reason.said for some in said.values() for reason in some if reason.said]
    mark = worst([one.badge for one in sections]) or Badge("info", "no verdict")
    steps = next((NEXT_STEPS[one.id] for one in sections if one.id in NEXT_STEPS), {})
    step = steps.get(mark.kind, "Do not act on this alone: pass the effects too (experiment=).")
    return verdict_section(mark, which or ["There is no verdict."], step)

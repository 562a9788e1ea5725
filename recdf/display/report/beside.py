"""Sections of the tables beside a result and beside the effects of an experiment, and the cards of
pages that are about one of them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ...experiments.decide.decide_experiment import plan_sentence
from ...judge.verdict import sentence
from ...tables.cells import amount, number, visible
from ...tables.findings import finding_of
from .. import plot
from ..kinds import (
    FEW,
    GATE_LOOKS,
    TABLE_KINDS,
    Kind,
    estimates_frame,
    harm_first,
    record_of,
)
from ..row_words import (
    amount_of_estimate,
    flag_meanings,
    is_useless,
    lift_text,
    look_of_estimate,
    policy_of,
    trust_of,
)
from .about_models import Pen, block, forest_drawings
from .card import tempered, verdict_section
from .overturning import Case
from .page_blocks import Badge, BadgeKind, Reason, Section, flag_words, name_of, plain, text
from .report_inputs import ReportTables
from .svg import SIZE

NO_VALUE = (
    "No value is shown here, since the estimate should not be used; the table has the numbers."
)
NONE_BELOW = "No estimate without a flag is below the logging policy."
MadeSection = tuple[Section | None, list[Reason]]
SEVEREST: list[BadgeKind] = ["error", "warning", "worse", "open", "better", "good", "info"]


def worst(marks: Sequence[Badge | None]) -> Badge | None:
    """Return the badge that a reader has to see first."""
    known = [mark for mark in marks if mark is not None]
    return min(known, key=lambda one: SEVEREST.index(one.kind), default=None)


# -- decisions, and tables beside the effects


DECISIONS: dict[str, tuple[BadgeKind, str]] = {
    "ship": ("better", "Ship {}."),
    "ship_not_as_planned": ("warning", "Ship {}, and say that it was not as planned."),
    "do_not_ship": ("worse", "Do not ship {}."),
    "keep_running": ("open", "Keep the experiment running: do not ship {} yet."),
    "invalid": ("error", "Do not act on {}: the experiment is invalid."),
}


def decision_said(tables: ReportTables) -> list[str]:
    """Say the decision about every treatment, with its reasons."""
    rows = [] if tables.decision is None else tables.decision.to_dict("records")
    said = list(map(TABLE_KINDS["decision"].said, rows))
    return [*said, *[f"{plan_sentence(row)}." for row in rows[:1] if plan_sentence(row)]]


def decision_case(decision: pd.DataFrame) -> Case:
    """Return the badge and the action of a decision: its look is that of the first treatment, and
    its words tell treatments apart."""
    names: dict[str, list[str]] = {}
    for row in decision.to_dict("records"):
        names.setdefault(row["effect"], []).append(name_of(row["treatment"]))
    words = {effect: sentence("decision", effect) for effect in names}
    if len(names) > 1:
        words = {one: f"{plain(' and '.join(names[one]))}: {said}" for one, said in words.items()}
    todo = " ".join(DECISIONS[one][1].format(" and ".join(names[one])) for one in names)
    kind = DECISIONS["invalid" if "invalid" in names else next(iter(names))][0]
    ships = any(one.startswith("ship") for one in names)
    return Case(Badge(kind, "; ".join(words.values())), "", todo, ships=ships)


def doubts_beside(tables: Mapping[str, pd.DataFrame], effect: Mapping[Any, Any]) -> list[Reason]:
    """Return what the tables beside the effects have against one, or against a decision (which
    names none): their worst rows."""
    found = []
    for name, table in tables.items():
        kind = record_of(table)
        if kind.read is None:
            continue
        bad = table[(estimates_frame(kind, table)["sign"] == "worse").to_numpy(bool)]
        if not len(bad):
            continue
        said = f"{titled(kind, name)}: {' '.join(words_of_table(kind, bad))}"
        words, todo, alike = kind.against
        for one in {*alike.split()} & effect.keys():
            bad = bad[bad[one].isin([effect[one]])]
        if kind is TABLE_KINDS["aa"] and not str(effect.get("method", "welch")).startswith("welch"):
            bad = bad[:0]  # the splits tried the t test
        found.append(Reason(said, words, todo) if len(bad) else Reason(said))
    return found


def estimate_section(
    place: str, name: str, table: pd.DataFrame, most: int, pen: Pen
) -> MadeSection:
    """Show a table that stands beside the effects: how many rows have which verdict, a row of a
    table and a mark of a picture for each."""
    kind = record_of(table)
    made = block(kind, table, titled(kind, name), f"{place}.csv", most)
    marks = [shown.badge for row in made.rows for shown in row]
    told = kind.read is not None and len(table) <= FEW  # by the rows below
    said = () if told else words_of_table(kind, table)
    section = Section(
        place,
        titled(kind, name),
        text=said,
        badge=worst(marks),
        tables=(made,),
        drawings=() if kind.read is None else tuple(forest_drawings(table, most, pen)),
    )
    return section, []


def words_of_table(kind: Kind, table: pd.DataFrame) -> tuple[str, ...]:
    """Say the rows of a table that has few, and how many of any other have which verdict."""
    words: list[str] = []
    if kind.read is not None and len(table) > FEW:
        counts = estimates_frame(kind, table)["verdict"].value_counts(sort=False).to_dict()
        words = [f"{n} of {len(table)}: {verdict}" for verdict, n in counts.items() if verdict]
    rows = harm_first(table)[:FEW].to_dict("records")
    return ("; ".join(words) + ".",) if words else tuple(map(kind.said, rows))


def titled(kind: Kind, name: str) -> str:
    """Return the title of a table with the name that the caller gave it."""
    return f"{kind.title}, {name}" if name else kind.title


def estimates_card(tables: ReportTables) -> Section | None:
    """Return the card of a page about tables that stand beside no effects: what each says, and what
    the worst of them asks for."""
    which: list[str] = decision_said(tables)
    todo: dict[str, str] = {}
    marks: list[Badge | None] = []
    for name, table in tables.beside.items():
        kind = record_of(table)
        made = block(kind, table, "", "", len(table))
        own = worst([shown.badge for row in made.rows for shown in row]) or Badge("info", "plan")
        marks.append(own)
        which += [f"{titled(kind, name)}: {one}" for one in words_of_table(kind, table)]
        look = "Look at what is open before acting."
        todo[own.text] = kind.ask(table) if kind.ask else kind.todo.get(own.kind, look)
    mark = worst(marks)
    if tables.decision is not None:
        case = decision_case(tables.decision)
        mark, action = tempered(case, doubts_beside(tables.beside, {}) if case.ships else ())
        todo = {mark.text: action}
    if mark is None:
        return None
    return verdict_section(mark, which, todo[mark.text])


# -- off-policy


def off_policy_section(tables: ReportTables, most: int) -> MadeSection:
    """Show estimates of policies that did not run; a flagged estimate never stands without its
    flag."""
    table = tables.off_policy
    if table is None:
        return None, []
    flagged = sum(bool(flag_words(found)) for found in table["flags"])
    said = "No off-policy estimate is flagged."
    if flagged:
        carry = "carries" if flagged == 1 else "carry"
        said = f"{flagged} of {amount(len(table), 'off-policy estimate')} {carry} a flag."
    useless = sum(map(is_useless, table.to_dict("records")))
    if useless:
        said += f" {useless} of them should not be used; the column trust says why."
    doubt = (
        " A flagged estimate can be far off, and its interval holds the true value less often than "
        "it says."
    )
    section = Section(
        "off-policy",
        "Off-policy estimates",
        text=(said + (doubt if flagged else ""),),
        badge=Badge("warning", "flagged") if flagged else Badge("good", "no flag"),
        tables=(block(TABLE_KINDS["off_policy"], table, "Estimates", "off-policy.csv", most),),
    )
    return section, [Reason(said)]


def off_policy_card(tables: ReportTables) -> Section | None:
    """Return the verdict about the best estimate that may be trusted: its trust is the badge."""
    if tables.off_policy is None:
        return None
    rows = tables.off_policy.to_dict("records")
    usable = [row for row in rows if not is_useless(row)]
    trusted = [row for row in usable if not flag_words(row["flags"])]
    row = max(trusted or usable or rows, key=lambda one: float(one["value"]))
    flags, useless = flag_words(row["flags"]), not usable
    trust = trust_of(row)
    mark = Badge("error" if useless else "warning" if flags else "good", trust)
    name = name_of(policy_of(row))
    among = "that may be trusted" if trusted else "that may be used, each with a flag"
    n = len(trusted or usable)
    which = f"{name}, estimated by {row['estimator']}, "
    if useless:
        which = f"{which}is one of {amount(len(rows), 'estimate')}; none should be used."
    elif n == 1:
        which = f"{which}is the one of {amount(len(rows), 'estimate')} {among}."
    else:
        which = f"{which}has the largest value of {n} estimates {among}."
    found = amount_of_estimate(row)
    effective = f"{number(row['ess'], ',.0f')} effective rows." if "ess" in row else ""
    low, high = (float(row.get(f"lift_ci_{end}", np.nan)) for end in ("low", "high"))
    below = [one for one in trusted if look_of_estimate(one) == "worse"]
    names = ", ".join(f"{policy_of(one)} by {one['estimator']}" for one in below)
    action = "Do not replace the logging policy: no gain is shown."
    if useless or flags:
        action = f"Do not act: {flag_meanings(row) or trust}."
    elif low > 0:
        action = f"Test {name} online."
    elif high < 0:
        action = "Keep the logging policy."
    elif not lift_text(row):
        action = "Compare it with the value of the logging policy before acting on it."
    if tables.decision is not None:
        mark, _, action = decision_case(tables.decision)[:3]
    return verdict_section(
        mark,
        (*decision_said(tables), which),
        action,
        how_much=[NO_VALUE if useless else f"{found[0].upper()}{found[1:]}."],
        sure=[f"Trust: {trust}. {effective}".rstrip()],
        for_whom=[f"Worse than the logging policy: {names}." if names else NONE_BELOW],
        doubts=[f"Flags: {flags}. {flag_meanings(row)}." if flags else "It carries no flag."],
    )


# -- gate, history, data


def gate_section(tables: ReportTables, most: int, pen: Pen) -> MadeSection:
    """Show each budget of a gate with its change and verdict, as the table of the gate does."""
    gate = tables.gate
    if gate is None:
        return None, []
    panels = gate.table.groupby(plot.gate.data(gate)["metric"].to_numpy(), sort=False)
    section = Section(
        "gate",
        "Gate",
        text=tuple(gate.notes),
        badge=Badge(GATE_LOOKS[gate.verdict], gate.verdict),
        tables=(block(TABLE_KINDS["gate"], gate.table, "Budgets", "gate.csv", most),),
        drawings=tuple(
            pen(plot.gate, replace(gate, table=rows), size=(SIZE[0], 1.2 + 0.4 * len(rows)))
            for _, rows in panels
        ),
    )
    against = {"fail": "the gate fails", "undecided": "the gate is undecided"}
    todo = f"pass the gate first ({gate.headline})"
    said = f"Gate: {gate.headline}."
    return section, [Reason(said, against.get(gate.verdict, ""), todo)]


GATE_ACTIONS = {
    "pass": "Replace the baseline: every budget is met.",
    "fail": "Do not replace the baseline.",
    "undecided": "Do not replace the baseline yet: the gate is undecided.",
}


def gate_card(tables: ReportTables) -> Section | None:
    """Return the card of a page about a gate: its verdict is the badge."""
    gate = tables.gate
    if gate is None:
        return None
    rows, kind = gate.table.to_dict("records"), TABLE_KINDS["gate"]
    first = min(rows, key=lambda row: SEVEREST.index(kind.look(row)))
    worse = [row for row in rows if row["effect"] in ("fail", "pass_but_worse")]
    return verdict_section(
        Badge(GATE_LOOKS[gate.verdict], gate.verdict),
        [f"{gate.headline}."],
        GATE_ACTIONS[gate.verdict],
        how_much=[f"{kind.said(first)}."],
        sure=gate.notes,
        for_whom=[f"{kind.said(row)}." for row in worse] or ["No budget is broken."],
    )


def history_section(tables: ReportTables, most: int, pen: Pen) -> MadeSection:
    """Show when the metrics and the data of a job changed, and the metrics by date."""
    history = tables.history
    if history is None:
        return None, []
    kind, blocks, said = TABLE_KINDS["changes"], [], []
    for title, table in (("Metrics", history.changes()), ("Data", history.drift())):
        if len(table):
            blocks.append(block(kind, table, title, f"{title.lower()}.csv", most))
            said += [f"{title}: {one}" for one in words_of_table(kind, table)]
    gaps = history.gaps()
    said += [f"{row['what']}: {row['verdict']}." for row in gaps.head(most).to_dict("records")]
    marks = [shown.badge for made in blocks for row in made.rows for shown in row]
    gone = gaps["effect"].isin(["missing", "too_old"]).any()
    section = Section(
        "history",
        "History",
        text=(*said, f"{history.headline}."),
        badge=worst([*marks, *([Badge("worse", "missing")] if gone else [])]),
        tables=tuple(blocks),
        drawings=tuple(
            pen(plot.history, history, name)
            for name in history.summary["column"].drop_duplicates()[:FEW]
        ),
    )
    return section, [Reason(one) for one in section.text]


def check_section(tables: ReportTables, most: int, examples: bool) -> MadeSection:
    """Show the findings of `rd.check` with the whole text of their effects; ids of users only if
    they are asked for."""
    table = tables.check
    if table is None:
        return None, []
    rows = table.to_dict("records")
    n = [int((table["severity"] == level).sum()) for level in ("error", "warning")]
    kind: BadgeKind = "error" if n[0] else "warning" if n[1] else "good"
    counted = f"{amount(n[0], 'error')}, {amount(n[1], 'warning')}"
    floors, parts = getattr(table, "floors", None), []
    with_ids = examples and "examples" in table.columns
    if rows:
        saved = table if with_ids else table.drop(columns="examples", errors="ignore")
        made = block(TABLE_KINDS["check"], saved, "Findings", "check.csv", most)
        if with_ids:
            ids = [text(row["examples"], code=True) for row in rows[: len(made.rows)]]
            with_all = tuple((*row, one) for row, one in zip(made.rows, ids, strict=True))
            head, align = (*made.head, "examples"), (*made.align, "left")
            made = replace(made, head=head, align=align, rows=with_all)
        parts.append(made)
    if floors is not None:
        parts.append(block(TABLE_KINDS["floors"], floors, "Levels", "levels.csv", most))
    asked = "check" if floors is None else "audit"
    found = f"What rd.{asked} found in the data, errors first."
    section = Section(
        "data-health",
        "Data health",
        text=(found,),
        badge=Badge(kind, counted),
        tables=tuple(parts),
    )
    serious = [finding_of(row) for row in rows if row["severity"] in ("error", "warning")]
    named = "; ".join([*serious[:FEW], *(["…"] if len(serious) > FEW else [])])
    why = f" ({visible(named)})" if named else ""
    return section, [Reason(f"Data health: {counted}{why}.")]

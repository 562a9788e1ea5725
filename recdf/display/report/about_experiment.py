"""Sections of the tables beside a result: an experiment and what stands beside its effects,
off-policy estimates, a gate, a history, findings in the data; and the cards of pages without a
result.

Rules: validity comes first, with what was checked; harms come before all other effects; counts of
segments speak of the pair and the metric of the first row; an invalid experiment shows no effect in
large type, and a flagged estimate never stands without its flag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...diagnostics.gate_records import Gate
from ...diagnostics.history import History
from ...experiments.decide.adjust_pvalues import adjustment
from ...experiments.decide.decide_experiment import plan_sentence, role_verdicts
from ...experiments.decide.sample_ratio import seen_words
from ...judge.cautions.table import UNLIKE
from ...judge.comparisons import level_of, note_of, sides_of_tests
from ...judge.verdict import (
    codes_of,
    has,
    hides_harm,
    is_withheld,
    says_worse,
    sentence,
    warnings_of,
)
from ...tables.cells import amount, number, p_value
from .. import plot
from ..kinds import (
    ALONE,
    FEW,
    TABLE_KINDS,
    Kind,
    harm_first,
    record_of,
)
from ..page_blocks import (
    BESIDE,
    FOR_WHOM_WORSE,
    Badge,
    BadgeKind,
    Case,
    Reason,
    Section,
    TableBlock,
    TableRow,
    amount_of_estimate,
    effect_text,
    flag_meanings,
    flag_words,
    is_useless,
    listed,
    look_of_estimate,
    metric_of,
    name_of,
    plain,
    policy_of,
    trust_of,
    who_is_compared,
)
from ..plot.picture import Drawing
from .about_models import GivenTable, NamedTables, Page, ReportTables, Sections
from .card import card_section, case_of_row, collect, could_show, one_sided, undecided_harm

# What the sample ratio and the users without metrics mean, and why nobody may act on the effects.
SOUND = Badge("good", "sound")
UNLIKE_THE_PLAN = Badge("error", "sample ratio")
NOT_ALIKE = Badge("error", "not alike")
METRICS_MISSING = Badge("error", "missing metrics")
METRICS_DIFFER = Reason("", "metrics are missing", "find out why metrics are missing")
RATIO_UNCHECKED = Reason(
    "", "the sample ratio is not checked", "check the sample ratio first (expected=, or health=)"
)


# -- the effects of an experiment


def experiment_section(page: Page, effects: NamedTables) -> Sections:
    """Show the effects of an experiment, harms first.

    On a page that is about it alone, another section says whether it is sound.
    """
    tables = page.tables
    decided = _decision_said(tables)
    if not effects and tables.health is None:
        if decided:
            yield Section("decision", "Decision", decided, said=_beside(decided))
        return
    sound = _validity(tables)
    parts = []
    drawings: Sequence[Drawing] = ()
    quoted = [*decided]
    for i, (name, table) in enumerate(effects.items()):
        controls = table["control"].unique()
        what = f"differences from {controls[0]}" if len(controls) == 1 else "pairs of variants"
        caption = f"Effects{f', {name}' if name else ''}: {what}, harms first"
        if i == 0:
            quoted += map("Experiment, {}".format, _words_of_table(table))
            if tables.roles is not None:
                caption += f"; {'one' if sides_of_tests(table) else 'two'}-sided {level_of(table)}"
                caption += "intervals, beside the bounds of the roles"
                roles = role_verdicts(table, tables.roles)
                of_roles = "Roles: bounds of a guardrail are one-sided, as its test is"
                parts.append(page.block(roles, of_roles, "roles.csv"))
                drawings = page.forests(roles)
        parts.append(page.block(table, caption, f"experiment-{i}.csv"))
    if tables.health is not None:
        parts.append(
            page.block(
                tables.health, f"{_units(tables.effects).capitalize()} per variant", "health.csv"
            )
        )
    said = _beside([*quoted, sound.text[0]])
    shown = Section("experiment", "Effects", tables=parts, drawings=drawings, said=said)
    if page.subject:
        text = [*decided, *sound.text]
        shown = shown._replace(title="Experiment", text=text, badge=sound.badge)
    yield shown


def position_section(page: Page, table: DataFrame) -> Sections:
    yield Section("positions", "Positions", drawings=[page.draw(plot.position, table)])


def _beside(words: Iterable[str]) -> list[Reason]:
    """Return sentences that a card quotes beside its verdict."""
    return [Reason(one, line=BESIDE) for one in words]


PAIR_OF_EFFECT = ["metric", "treatment", "control"]


def over_time_section(page: Page, table: DataFrame) -> Sections:
    """Draw effects by period, a picture for each metric and pair of variants."""
    shown: Any = table.filter(PAIR_OF_EFFECT).drop_duplicates().to_dict("records")
    drawings = [page.draw(plot.over_time, table, **one) for one in shown]
    which = _trends(table)
    case = None
    if which:
        held, verdict = table[["trend_withheld", "trend_verdict"]].iloc[0]
        case = Case(Badge("warning" if held else "open", verdict), which, ALONE)
    yield Section("over-time", "Over time", drawings=drawings, said=_beside(which), case=case)


def _trends(given: GivenTable, row: TableRow | None = None) -> list[str]:
    """Say whether effects fade, if a table of periods knows: all, or that of a row."""
    if given is None or record_of(given).part != "over_time":
        return []
    names = given.columns.intersection(PAIR_OF_EFFECT)
    return [
        TABLE_KINDS["over_time"].said(one)
        for one in given.drop_duplicates(names).to_dict("records")
        if row is None or all(one[name] == row[name] for name in names)
    ]


def _validity(tables: ReportTables) -> Section:
    """Return the section that says whether the experiment is sound, and which checks stand behind
    its tables, and which do not."""
    sound, said = _soundness(tables)
    table = next(iter(tables.experiment.values()), DataFrame())
    known = [
        name
        for one in (table, tables.health)
        if one is not None
        for name in one.dropna(axis=1, how="all")
    ]
    found = {
        "the sample ratio": "srm_p" in known or sound in (SOUND, UNLIKE_THE_PLAN),
        f"{_units(tables.effects)} without metrics": "missing_rate" in known,
        "effects over time": tables.over_time is not None,
    }
    if "srm_p" in table:  # other tables say nothing of these checks
        found |= {"covariates": "balance_p" in known, "denominators": "p_denominator" in known}
    done, left = (
        ", ".join(name for name in found if found[name] == wanted) or "nothing"
        for wanted in (True, False)
    )
    checked = f"Checked: {done}. Not checked here: {left}."
    return Section("validity", "Is it sound?", [said, checked], sound)


def _soundness(tables: ReportTables) -> tuple[Badge, str]:
    """Say what the sample ratio and the users without metrics mean for the effects."""
    health = tables.health
    rows = tables.effects
    remarks = [code for row in rows for code in codes_of(row["remarks"])]
    units = _units(rows)
    why = "Find out why before reading an effect."
    flagged = health is not None and any(health["srm_flag"])
    if "sample_ratio" in remarks and not flagged:
        broken = next(row for row in rows if "sample_ratio" in codes_of(row["remarks"]))
        said = f"{_users(broken)}{_p(broken.get('srm_p'))}"
        return UNLIKE_THE_PLAN, f"The {units} who are compared do not fit the plan: {said}. {why}"
    # Of many segments, one may be unlike by chance.
    whole = rows[: len(next(iter(tables.experiment.values()), ()))]
    unlike = [row["verdict"] for row in whole if row["withheld"] in UNLIKE]
    if unlike and not flagged:
        return NOT_ALIKE, f"The variants are not alike ({unlike[0]}). {why}"
    p = pd.Series([row.get("srm_p") for row in rows], dtype="float64").min()
    if health is None:
        # Not in a table that has its main columns alone; its cautions know it then.
        if pd.isna(p) and (not rows or "srm_p" in rows[0] or "ratio_not_checked" in remarks):
            return Badge("warning", "not checked"), (
                "The sample ratio was not checked: pass health= (what "
                "rd.experiments.experiment_health returned)."
            )
        seen: str = "" if pd.isna(p) else seen_words(rows, "treatment", units)
        return SOUND, f"Sample ratio of the {units} who are compared as planned{_p(p)}{seen}."
    records = health.to_dict("records")
    n_strata = len(health) // max(health["variant"].nunique(), 1)
    in_strata = n_strata > 1
    if pd.isna(p) or not in_strata:
        p = np.minimum(1.0, health["srm_p"].min() * n_strata)
    arms = ", ".join(map(TABLE_KINDS["health"].said, records))
    if flagged:
        return UNLIKE_THE_PLAN, f"The {units} per variant do not fit the plan: {arms}{_p(p)}. {why}"
    lost = _p(health["missing_p"].min() if "missing_p" in health else None)
    lacking = f"{units.capitalize()} without metrics"
    if any(health["missing_flag"]):
        said = f"{lacking} differ between the variants{lost}."
        return METRICS_MISSING, f"{said} The effects may come from that alone."
    badge, said = SOUND, "Sample ratio as planned"
    if pd.isna(p):
        badge, said = Badge("warning", "not tested"), "The sample ratio could not be tested"
    # The loss that one stratum would have shown is not that of all of them.
    told = (rows, "treatment") if in_strata else ([*records, *rows], "variant")
    said += f": {arms}{_p(p)}{seen_words(*told, units)}. {lacking}: "
    return badge, f"{said}{', '.join(map('{:.1%}'.format, health['missing_rate']))}{lost}."


def _units(rows: Sequence[TableRow]) -> str:
    """What the rows of a comparison of variants count."""
    return f"{rows[0]['unit'] if rows else 'user'}s"


def _p(p: Any) -> str:
    """Return a p-value behind what it is of; nothing where there is none."""
    words = p_value(p)
    return "" if pd.isna(p) else f"; p {'' if words.startswith('<') else '= '}{words}"


def _users(row: TableRow) -> str:
    return f"{amount(int(row['n_treatment']), row['unit'])} against {int(row['n_control']):,}"


def experiment_case(page: Page, segments: Sequence[Reason]) -> Case | None:
    """Return what is said about the first metric and treatment of an experiment, harms before
    everything open; `segments` is what the section of segments says of it."""
    tables = page.tables
    rows = tables.effects
    if not rows:
        return None
    row = rows[0]
    table = next(iter(tables.experiment.values()))
    sound, soundness = _soundness(tables)
    new = name_of(row["treatment"])
    old = name_of(row["control"])
    own = [one for one in rows[1:] if all(one[side] == row[side] for side in PAIR_OF_EFFECT[1:])]
    invalid = sound.kind == "error" or row["withheld"] in UNLIKE
    believed = not invalid and not is_withheld(row)
    than = f"{'the control ' * (table['control'].nunique() == 1)}{old} on {metric_of(row)}"
    keep = f"Keep {old}. {collect(row, int(row['n_treatment'] + row['n_control']), row['unit'])}"
    case = case_of_row(row, new, than, f"Ship {new}.", keep)
    if sound == METRICS_MISSING:
        case = case._replace(action=f"Do not act: {METRICS_DIFFER.action}.")
    if invalid:
        why = row["verdict"] if is_withheld(row) else sound.text
        which = [f"The verdict is withheld ({why}): {new} against {than}."]
        case = case._replace(badge=Badge("error", "invalid"), which=which)
    case = case._replace(can_be_tempered=case.badge.kind == "better")
    reasons = _doubts_beside(tables.beside, row)
    if tables.decision is not None:
        case = _decision_case(tables.decision)._replace(which=case.which)
    else:
        if believed and (names := _metrics_of(filter(says_worse, own))):
            reasons.append(Reason("", f"worse on {names}", f"weigh the loss on {names} first"))
            if case.badge.kind == "open":
                harm = Badge("worse", f"harm on {names}")
                case = case._replace(badge=harm, action=f"Do not ship {new}.")
        if names := _metrics_of(one for one in own if hides_harm(one, one.get("better"))):
            reasons.append(undecided_harm(names)._replace(said=""))
    amounts = [
        "No effect is shown here, since the verdict is withheld; the tables have the numbers.",
        *_validity(tables).text[1:],
    ]
    p = "; p-values "
    if believed:
        amounts = [f"{effect_text(row)}.", *_trends(tables.over_time, row)]
        p = f"{_p(row['p_adj'])}, "
    reasons += [METRICS_DIFFER] * (sound == METRICS_MISSING)
    if "ratio_not_checked" in codes_of(row["remarks"]) and sound.kind != "good":
        reasons.append(RATIO_UNCHECKED)
    harmed = list(filter(says_worse, rows))
    worse = [f"Worse: {TABLE_KINDS['experiment'].said(one)}" for one in harmed]
    if invalid and harmed:
        worse = [f"Worse by the numbers as they stand: {', '.join(map(who_is_compared, harmed))}."]
    worse = worse or ["No metric is shown to be worse."]
    worse += [
        f"Not decided: {who_is_compared(one)}: {one['verdict']}."
        for one in filter(is_withheld, rows)
    ]
    worse += [one.said for one in segments]
    notes = [
        f"{who_is_compared(one)}: {note_of(one)}" for one in rows if warnings_of(one["remarks"])
    ]
    said = f"Warnings: {listed(notes, FEW, 'effect')}." if notes else "No effect carries a warning."
    reasons += [*(Reason(one, line=FOR_WHOM_WORSE) for one in worse), Reason(said)]
    people = f"{_users(row)}{p}{adjustment(table).words}."
    return case._replace(
        which=[*_decision_said(tables), *case.which],
        amounts=amounts,
        sure=[soundness, people, *one_sided(table), *could_show(row)],
        reasons=reasons,
    )


def _metrics_of(rows: Iterable[TableRow]) -> str:
    """Name the metrics of some effects, each with its segment."""
    return plain(", ".join(dict.fromkeys(map(metric_of, rows))))


# -- decisions, and tables beside the effects


DECISIONS: dict[str, tuple[BadgeKind, str]] = {
    "ship": ("better", "Ship {}."),
    "ship_not_as_planned": ("warning", "Ship {}, and say that it was not as planned."),
    "do_not_ship": ("worse", "Do not ship {}."),
    "keep_running": ("open", "Keep the experiment running: do not ship {} yet."),
    "invalid": ("error", "Do not act on {}: the experiment is invalid."),
}


def _decision_said(tables: ReportTables) -> list[str]:
    """Say the decision about every treatment, with its reasons."""
    rows = [] if tables.decision is None else tables.decision.to_dict("records")
    planned = (f"{said}." for row in rows[:1] if (said := plan_sentence(row)))
    return [*map(TABLE_KINDS["decision"].said, rows), *planned]


def _decision_case(decision: DataFrame) -> Case:
    """Return the badge and the action of a decision: its look is that of the first treatment, and
    its words tell treatments apart."""
    names = decision["treatment"].map(name_of).groupby(decision["effect"], sort=False)
    who = {str(effect): " and ".join(treatments) for effect, treatments in names}
    words = [
        f"{plain(of)}: " * (len(who) > 1) + sentence("decision", effect)
        for effect, of in who.items()
    ]
    todo = " ".join(DECISIONS[effect][1].format(of) for effect, of in who.items())
    kind = DECISIONS["invalid" if "invalid" in who else next(iter(who))][0]
    ships = not who.keys().isdisjoint(("ship", "ship_not_as_planned"))
    return Case(Badge(kind, "; ".join(words)), (), todo, ships)


def _doubts_beside(tables: NamedTables, effect: TableRow) -> list[Reason]:
    """Return what the tables beside the effects have against one, or against a decision (which
    names none): their worst rows."""
    found = []
    for name, table in tables.items():
        kind = record_of(table)
        rows = table.to_dict("records") if kind.read else ()
        bad = table.iloc[[i for i, row in enumerate(rows) if kind.drawn(row)["sign"] == "worse"]]
        if not len(bad):
            continue
        said = f"{_titled(kind, name)}: {' '.join(_words_of_table(bad))}"
        words, todo, alike = kind.against
        for one in {*alike.split()} & effect.keys():
            bad = bad[bad[one].isin([effect[one]])]
        if kind is TABLE_KINDS["aa"] and not str(effect.get("method", "welch")).startswith("welch"):
            bad = bad[:0]  # the splits tried the t test
        found.append(Reason(said, words if len(bad) else "", todo))
    return found


def told_section(
    page: Page,
    name: str,
    title: str,
    tables: NamedTables,
    notes: Sequence[str] = (),
    drawings: Sequence[Drawing] = (),
) -> Section:
    """Return the section of tables of known kinds: what they say, the first one that a reader has
    to see first, the cells of their rows, and a picture of these, if no other is given.

    The case is that of a page about these tables alone: the badge of the first one, and what it
    asks for."""
    blocks = list[TableBlock]()
    parts = []
    pictures = [*drawings]
    for caption, table in tables.items():
        kind = record_of(table)
        block = page.block(table, caption, f"{name}-{len(blocks)}.csv")
        mark, whole = block.badge or Badge("info", "plan"), ""
        if kind.overall:
            mark, whole = kind.overall(table)
        if len(table):
            blocks.append(block)
        if len(table) or whole:
            parts.append((mark, caption, kind, table, whole))
        if kind.read and not drawings:
            pictures += page.forests(table)
    parts.sort(key=lambda part: part[0].rank)
    text = []
    which = []
    said = []
    for mark, caption, kind, table, whole in parts:
        rows = _words_of_table(table)
        words = [f"{caption}: {one}" for one in ([whole] if whole else rows)]
        # The rows of a small table that are drawn say it themselves.
        if whole or drawings or not kind.read or len(table) > FEW:
            text += words
        which += [*words, *rows] if whole else words
        badge, todo, _ = kind.against if mark.kind not in ("good", "info") else ("", "", "")
        said += [Reason(one, badge, todo, line=kind.line) for one in words]
    mark, _, kind, table, _ = parts[0]
    case = Case(mark, which, kind.asks(table, mark), sure=notes)
    of_rows: Any = {"tables": blocks, "drawings": pictures, "said": said, "case": case}
    return Section(name, title, [*text, *notes], mark, **of_rows)


def beside_sections(page: Page, tables: NamedTables) -> Sections:
    """Show the tables that stand beside the effects, which say nothing of models."""
    for i, (name, table) in enumerate(tables.items()):
        title = _titled(record_of(table), name)
        yield told_section(page, f"beside-{i}", title, {title: table})._replace(said=())


def gate_section(page: Page, gate: Gate) -> Sections:
    """Show each budget of a gate with its change and verdict."""
    yield told_section(page, "gate", "Gate", {"Gate": gate.table}, gate.notes)


def check_section(page: Page, table: DataFrame) -> Sections:
    """Show the findings of `rd.check` with the whole text of their effects; ids of users only if
    they are asked for. Of an audit, show its levels too."""
    shown = table if page.examples is True else table.drop(columns="examples", errors="ignore")
    told = told_section(page, "data-health", "Data health", {"Data health": shown})
    if (floors := getattr(table, "floors", None)) is not None:
        told = told._replace(tables=[*told.tables, page.block(floors, "Levels", "levels.csv")])
    yield told


def history_section(page: Page, history: History) -> Sections:
    """Show when the metrics and the data of a job changed, what is missing, and the metrics by
    date."""
    yield told_section(
        page,
        "history",
        "History",
        {"Metrics": history.changes(), "Data": history.drift(), "Gaps": history.gaps()},
        [f"{history.headline}."],
        [page.draw(plot.history, history, one) for one in history.summary["column"].unique()[:FEW]],
    )


def _words_of_table(table: DataFrame) -> list[str]:
    """Say the rows of a table that has few; of any other, how many have which verdict, and the rows
    that say worse."""
    rows = harm_first(table).to_dict("records")
    words = list[str]()
    if len(rows) > FEW and "verdict" in table:
        counts = Counter(row["verdict"] for row in rows)
        words = ["; ".join(f"{n} of {len(rows)}: {verdict}" for verdict, n in counts.items()) + "."]
        rows = list(filter(says_worse, rows))
    return [*words, *map(record_of(table).said, rows[:FEW])]


def _titled(kind: Kind, name: str) -> str:
    """Return the title of a table with the name that the caller gave it."""
    return kind.title if name in ("", kind.title.lower()) else f"{kind.title}, {name}"


# -- off-policy, history


def off_policy_section(page: Page, table: DataFrame) -> Sections:
    """Show estimates of policies that did not run. The case is about the best estimate that may be
    trusted: its trust is the badge."""
    rows = table.to_dict("records")
    usable = [row for row in rows if not is_useless(row)]
    trusted = [row for row in usable if not row["flags"]]
    known = trusted or usable
    row = max(known or rows, key=lambda one: one["value"])
    trust = trust_of(row)
    name = name_of(policy_of(row))
    found = amount_of_estimate(row)
    amounts = [f"{found[0].upper()}{found[1:]}."]
    overturn = "It carries no flag."
    among = "that may be trusted"
    kind: BadgeKind = "good"
    actions = {
        "better": f"Test {name} online.",
        "worse": "Keep the logging policy.",
        "open": "Do not replace the logging policy: no gain is shown.",
    }
    action = actions.get(look_of_estimate(row), f"Do not act: {flag_meanings(row) or trust}.")
    if row["flags"]:
        kind = "warning" if row.get("withheld", True) else kind
        among = "that may be used, each with a flag"
        overturn = f"Flags: {flag_words(row)}. {flag_meanings(row)}."
    if not usable:
        kind = "error"
        among = "of which none should be used"
        amounts = [
            "No value is shown here, since the estimate should not be used; the table has the "
            "numbers."
        ]
    which = f"{name}, estimated by {row['estimator']}, has the largest value of the estimates "
    which += f"{among} ({len(known)} of {len(rows)})."
    named = [
        f"{policy_of(one)} by {one['estimator']}"
        for one in trusted
        if look_of_estimate(one) == "worse"
    ]
    worse = "No estimate without a flag is below the logging policy."
    if named:
        worse = f"Worse than the logging policy: {', '.join(named)}."
    sure = f"Trust: {trust}."
    if "ess" in row:
        sure += f" {number(row['ess'], ',.0f')} effective rows."
    reasons = [Reason(worse, line=FOR_WHOM_WORSE), Reason(overturn)]
    case = Case(Badge(kind, trust), [which], action, False, amounts, [sure], reasons)
    told = told_section(page, "off-policy", "Off-policy estimates", {"Estimates": table})
    yield told._replace(case=case)


# -- the card of a page without a result


def alone_sections(page: Page, sections: Sequence[Section]) -> Sections:
    """Yield what stands before the sections of a page without a result: whether the experiment is
    sound, and the card about its effects; else about what all tables say, with the badge and the
    action of the one that a reader has to see first."""
    tables = page.tables
    cases = [one.case for one in sections if one.case]
    sound = _validity(tables)
    if tables.experiment or tables.health is not None:
        yield sound
    segments = next((one.said for one in sections if one.id == "segments"), ())
    if case := experiment_case(page, segments):
        yield card_section(case)
        return
    which = [said for case in cases for said in case.which]
    which = which or [reason.said for one in sections for reason in one.said]
    nothing = Case(Badge("info", "no verdict"), (), ALONE)
    case = min(cases, key=lambda one: one.badge.rank, default=nothing)
    reasons = [reason for one in cases for reason in one.reasons]
    if (decision := tables.decision) is not None:
        case = _decision_case(decision)._replace(amounts=case.amounts)
        reasons += [one._replace(said="") for one in _doubts_beside(tables.beside, {})]
        unchecked = any(has(decision["remarks"], "ratio_not_checked"))
        reasons += [RATIO_UNCHECKED] * (unchecked and tables.health is None)
        reasons += [METRICS_DIFFER] * (sound.badge == METRICS_MISSING)
        which = [*_decision_said(tables), *which]
    which = list(dict.fromkeys(which)) or ["There is no verdict."]
    sure = [said for one in cases for said in one.sure]
    yield card_section(case._replace(which=which, sure=sure, reasons=reasons))

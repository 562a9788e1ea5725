"""Sections of the tables beside a result: an experiment and what stands beside its effects,
off-policy estimates, a gate, a history, findings in the data; and the cards of pages without a
result.

Rules: validity comes first, with what was checked; harms come before all other effects; counts of
segments speak of the pair and the metric of the first row; an invalid experiment shows no effect in
large type, and a flagged estimate never stands without its flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...experiments.decide.adjust_pvalues import adjustment
from ...experiments.decide.decide_experiment import plan_sentence, role_verdicts
from ...experiments.decide.sample_ratio import seen_words
from ...judge.cautions.table import CAUTIONS, UNLIKE
from ...judge.comparisons import confidence_of, note_of
from ...judge.verdict import codes_of, hides_harm, is_withheld, says_worse, sentence, warnings_of
from ...tables.cells import amount, number, p_value, visible
from .. import plot
from ..given_tables import sides_of_tests
from ..kinds import (
    FEW,
    TABLE_KINDS,
    Kind,
    estimates_frame,
    harm_first,
    page_part,
    record_of,
)
from ..row_words import (
    amount_of_estimate,
    flag_meanings,
    is_useless,
    lift_text,
    look_of_estimate,
    policy_of,
    segment_of,
    trust_of,
    who_is_compared,
)
from .about_models import Page, Sections
from .card import (
    Case,
    collect,
    could_show,
    one_sided,
    tempered,
    undecided_harm,
    verdict_section,
)
from .page_blocks import (
    Badge,
    BadgeKind,
    Reason,
    Section,
    TableRow,
    badge_of,
    effect_text,
    flag_words,
    name_of,
    plain,
    worst,
)
from .report_inputs import GivenTable, ReportTables

NO_EFFECT = (
    "No effect is shown here, since the comparison is not sound; the tables have the numbers."
)
NO_VALUE = (
    "No value is shown here, since the estimate should not be used; the table has the numbers."
)
NONE_BELOW = "No estimate without a flag is below the logging policy."


# -- the effects of an experiment


def experiment_section(page: Page) -> Sections:
    """Show the effects of an experiment, harms first, also by rank and over time.

    On a page that is about it alone, another section says whether it is sound.
    """
    tables, over_time, alone = page.tables, page.tables.over_time, page.subject is None
    drawings = []
    if tables.position is not None:
        drawings.append(page.draw(plot.position, tables.position))
    if over_time is not None:  # a picture for each metric and pair of variants
        names = [name for name in PAIR_OF_EFFECT if name in over_time.columns]
        for one in over_time[names].drop_duplicates().itertuples(index=False):
            shown = dict(zip(names, one, strict=True))
            drawings.append(page.draw(plot.over_time, over_time, **shown))
    decided = _decision_said(tables)
    if not tables.experiment and tables.health is None:
        if drawings or decided:
            title = "Decision" if decided else "Positions" if over_time is None else "Over time"
            said = [Reason(one) for one in decided or _trends(over_time)]
            yield Section("positions", title, text=decided, drawings=drawings, said=said)
        return
    mark, sound = _soundness(tables)
    parts, quoted = [], [*decided]
    for i, (name, table) in enumerate(tables.experiment.items()):
        controls, level = table["control"].unique().tolist(), confidence_of(table)
        what = f"differences from {controls[0]}" if len(controls) == 1 else "pairs of variants"
        caption = f"Effects{f', {name}' if name else ''}: {what}, harms first"
        if i == 0 and tables.decision is not None and tables.roles is not None:
            if level is not None:
                sided = "one" if sides_of_tests(table) else "two"
                caption += f"; {sided}-sided {100 * level:g} % intervals, beside the bounds of the "
                caption += "roles"
            roles = role_verdicts(table, tables.roles)
            one_sided_bounds = "Roles: bounds of a guardrail are one-sided, as its test is"
            parts.append(page.block(roles, one_sided_bounds, "roles.csv"))
            drawings = [*page.forests(roles), *drawings]
        if i == 0:
            rows = list(map(TABLE_KINDS["experiment"].said, harm_first(table).to_dict("records")))
            quoted += [f"Experiment, {one}" for one in rows[:FEW]]
            if len(rows) > FEW:
                stand = "stands" if len(rows) == FEW + 1 else "stand"
                more = amount(len(rows) - FEW, "more effect")
                quoted.append(f"{more} {stand} in the section Experiment.")
        parts.append(page.block(table, caption, f"experiment{f'-{i}' if i else ''}.csv"))
    if tables.health is not None:
        parts.append(page.block(tables.health, TABLE_KINDS["health"].title, "health.csv"))
    yield Section(
        "experiment",
        "Effects" if alone else "Experiment",
        text=() if alone else (*decided, sound, *_checked(tables)),
        badge=None if alone else mark,
        tables=parts,
        drawings=drawings,
        said=[Reason(one) for one in (*quoted, sound)],
    )


PAIR_OF_EFFECT = ["metric", "treatment", "control"]


def _trends(given: GivenTable, row: TableRow | None = None) -> list[str]:
    """Say whether effects fade, if a table of periods knows: all, or that of a row."""
    if given is None or page_part(given) != "over_time":
        return []
    names = [name for name in PAIR_OF_EFFECT if name in given.columns]
    rows = given.drop_duplicates(names).to_dict("records")
    return [
        TABLE_KINDS["over_time"].said(one)
        for one in rows
        if row is None or all(one[name] == row[name] for name in names)
    ]


def _checked(tables: ReportTables) -> list[str]:
    """Say which checks of the experiment stand behind its tables, and which do not."""
    table = next(iter(tables.experiment.values()), pd.DataFrame())
    health = pd.DataFrame() if tables.health is None else tables.health
    known = {*table.columns[table.notna().any()], *health.columns[health.notna().any()]}
    short, sound = "srm_p" not in table.columns, _soundness(tables)[0].text
    found = {
        "the sample ratio": "srm_p" in known or sound in ("sound", "sample ratio"),
        "users without metrics": "missing_p" in known,
        "effects over time": tables.over_time is not None,
    }
    if not short:
        found |= {"covariates": "balance_p" in known, "denominators": "p_denominator" in known}
    done, left = (
        ", ".join(name for name, there in found.items() if there is wanted) or "nothing"
        for wanted in (True, False)
    )
    more = " With details=True the comparison also checks covariates and denominators."
    return [f"Checked: {done}. Not checked here: {left}.{more if short else ''}"]


def _soundness(tables: ReportTables) -> tuple[Badge, str]:
    """Say what the sample ratio and the users without metrics mean for the effects."""
    health = tables.health
    rows = [row for one in tables.experiment.values() for row in one.to_dict("records")]
    broken = [row for row in rows if "sample_ratio" in codes_of(row["remarks"])]
    wrong, good = Badge("error", "sample ratio"), Badge("good", "sound")
    why = "Find out why before reading an effect."
    flagged = health is not None and health["srm_flag"].astype(bool).any()
    if broken and not flagged:
        said = f"{_users(broken[0])}{_p(broken[0].get('srm_p', np.nan))}"
        return wrong, f"The users who are compared do not fit the plan: {said}. {why}"
    if health is None:
        tested = [row["srm_p"] for row in rows if not pd.isna(row.get("srm_p", np.nan))]
        said = "Sample ratio of the users who are compared as planned"
        if tested:
            return good, f"{said}{_p(min(tested))}{seen_words(rows, 'treatment')}."
        # Tested against the plan, by a table that has its main columns.
        codes = {code for row in rows for code in codes_of(row["remarks"])}
        if rows and "srm_p" not in rows[0] and "ratio_not_checked" not in codes:
            return good, f"{said}."
        how = "pass health= (what rd.experiments.experiment_health returned)"
        return Badge("warning", "not checked"), f"The sample ratio was not checked: {how}."
    records, p = health.to_dict("records"), health["srm_p"].min()
    arms = ", ".join(map(TABLE_KINDS["health"].said, records))
    if flagged:
        return wrong, f"The users per variant do not fit the plan: {arms}{_p(p)}. {why}"
    lost = _p(health["missing_p"].min() if "missing_p" in health.columns else np.nan)
    if health["missing_flag"].astype(bool).any():
        said = f"Users without metrics differ between the variants{lost}."
        return Badge("error", "missing metrics"), f"{said} The effects may come from that alone."
    missing = ", ".join(f"{rate:.1%}" for rate in health["missing_rate"])
    said = "Sample ratio as planned"
    if pd.isna(p):
        said, good = "The sample ratio could not be tested", Badge("warning", "not tested")
    said += f": {arms}{_p(p)}{seen_words([*records, *rows], 'variant')}."
    return good, f"{said} Users without metrics: {missing}{lost}."


def _p(p: Any) -> str:
    """Return a p-value behind what it is of; nothing where there is none."""
    words = p_value(p)
    return "" if pd.isna(p) else f"; p {'' if words.startswith('<') else '= '}{words}"


def _users(row: TableRow) -> str:
    return f"{amount(int(row['n_treatment']), 'user')} against {int(row['n_control']):,}"


def experiment_card(page: Page, segments: Sequence[Reason]) -> Section | None:
    """Return the verdict about the first metric and treatment of an experiment, harms said before
    everything open; `segments` is what the section of segments says of it."""
    tables = page.tables
    rows = [row for one in tables.experiment.values() for row in one.to_dict("records")]
    table = next(iter(tables.experiment.values()), None)
    if table is None or not len(table):
        return None
    row, (sound, soundness) = rows[0], _soundness(tables)
    invalid = sound.kind == "error" or row["withheld"] in UNLIKE
    believed = not invalid and not is_withheld(row)
    case = _effect_case(table, row, sound, invalid)
    doubts = _doubts_beside(tables.beside, row)
    reasons = list(doubts)
    if tables.decision is None:
        sides = PAIR_OF_EFFECT[1:]
        own = [one for one in rows[1:] if all(one[side] == row[side] for side in sides)]
        if believed and (names := _metrics_of(one for one in own if says_worse(one))):
            reasons.append(Reason("", f"worse on {names}", f"weigh the loss on {names} first"))
            if case.badge.kind == "open":
                no = f"Do not ship {name_of(row['treatment'])}."
                case = case._replace(badge=Badge("worse", f"harm on {names}"), action=no)
        withheld = (one for one in own if hides_harm(one, one.get("better")))
        reasons += [undecided_harm(names)] if (names := _metrics_of(withheld)) else []
    else:
        case = _decision_case(tables.decision)._replace(which=case.which)
    if believed and "ratio_not_checked" in codes_of(row["remarks"]) and sound.kind != "good":
        todo = "check the sample ratio first (expected=, or health=)"
        reasons.append(Reason("", "the sample ratio is not checked", todo))
    mark, action = tempered(case, reasons if case.ships else ())
    harmed = [one for one in rows if says_worse(one)]
    worse = [f"Worse: {TABLE_KINDS['experiment'].said(one)}" for one in harmed]
    if invalid and harmed:
        unsaid = ", ".join(map(who_is_compared, harmed))
        worse = [f"Worse by the numbers as they stand: {unsaid}."]
    held = [
        f"Not decided: {who_is_compared(one)}: {one['verdict']}."
        for one in rows
        if is_withheld(one)
    ]
    p = f"{_p(row['p_adj'])}, " if believed else "; p-values "
    warned = [one for one in rows if warnings_of(one["remarks"])]
    notes: list[str] = [f"{who_is_compared(one)}: {note_of(one)}." for one in warned[:FEW]]
    if len(warned) > FEW:
        carry = "carries" if len(warned) == FEW + 1 else "carry"
        notes.append(f"{amount(len(warned) - FEW, 'more effect')} {carry} a warning.")
    effect = [f"{effect_text(row)}.", *_trends(tables.over_time, row)]
    lines = {
        "Which": [*_decision_said(tables), case.which],
        "By how much": effect if believed else [NO_EFFECT, *_checked(tables)],
        "How sure": [
            soundness,
            f"{_users(row)}{p}{adjustment(table).words}.",
            *one_sided(table),
            *could_show(row, "An effect of {}", "experiments of this size"),
        ],
        "For whom worse": [
            *(worse or ["No metric is shown to be worse."]),
            *held,
            *(reason.said for reason in segments),
        ],
        "What could overturn it": [
            *(doubt.said for doubt in doubts),
            *(notes or ["No effect carries a warning."]),
        ],
        "So": [action],
    }
    return verdict_section(mark, lines)


def _metrics_of(rows: Iterable[TableRow]) -> str:
    """Name the metrics of some effects, each with its segment."""
    names = (
        plain(name_of(one["metric"])) + (f" ({visible(part)})" if (part := segment_of(one)) else "")
        for one in rows
    )
    return ", ".join(dict.fromkeys(names))


def _effect_case(table: pd.DataFrame, row: TableRow, sound: Badge, invalid: bool) -> Case:
    """Return what the first row says before anything speaks against it."""
    the = "the control " if table["control"].nunique() == 1 else ""
    new, verdict, where = name_of(row["treatment"]), str(row["verdict"]), segment_of(row)
    than = f"{the}{name_of(row['control'])} on {name_of(row['metric'])}"
    than += f" ({where})." if where else "."
    kind = badge_of(row)
    if invalid or is_withheld(row):
        why = {
            "sample ratio": "find out why the users do not fit the plan",
            "missing metrics": "find out why metrics are missing",
        }.get(sound.text) or CAUTIONS[row["withheld"]].sentence
        mark = Badge("error", "invalid") if invalid else Badge("warning", "withheld")
        which = f"The verdict is withheld ({verdict}): {new} against {than}"
        return Case(mark, which, f"Do not act: {why}.", stands=False)
    if kind in ("better", "worse"):
        todo = f"{'Ship' if kind == 'better' else 'Do not ship'} {new}."
        return Case(Badge(kind, kind), f"{new} is {kind} than {than}", todo, ships=kind == "better")
    todo = "Decide by a metric that has a direction."
    if row["effect"] == "none":
        n = int(row["n_treatment"]) + int(row["n_control"])
        todo = f"Keep {name_of(row['control'])}. {collect(row, n, 'user')}"
    which = f"{verdict[:1].upper()}{verdict[1:]}: {new} against {than}"
    return Case(Badge("open", verdict), which, todo)


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
    planned = [f"{said}." for row in rows[:1] if (said := plan_sentence(row))]
    return [*map(TABLE_KINDS["decision"].said, rows), *planned]


def _decision_case(decision: pd.DataFrame) -> Case:
    """Return the badge and the action of a decision: its look is that of the first treatment, and
    its words tell treatments apart."""
    names: dict[str, list[str]] = {}
    for row in decision.to_dict("records"):
        names.setdefault(row["effect"], []).append(name_of(row["treatment"]))
    words, todo = [], []
    for effect, treatments in names.items():
        who, said = " and ".join(treatments), sentence("decision", effect)
        words.append(f"{plain(who)}: {said}" if len(names) > 1 else said)
        todo.append(DECISIONS[effect][1].format(who))
    kind = DECISIONS["invalid" if "invalid" in names else next(iter(names))][0]
    ships = any(one.startswith("ship") for one in names)
    return Case(Badge(kind, "; ".join(words)), "", " ".join(todo), ships=ships)


def _doubts_beside(tables: Mapping[str, pd.DataFrame], effect: TableRow) -> list[Reason]:
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
        said = f"{_titled(kind, name)}: {' '.join(_words_of_table(bad))}"
        words, todo, alike = kind.against
        for one in {*alike.split()} & effect.keys():
            bad = bad[bad[one].isin([effect[one]])]
        if kind is TABLE_KINDS["aa"] and not str(effect.get("method", "welch")).startswith("welch"):
            bad = bad[:0]  # the splits tried the t test
        found.append(Reason(said, words, todo) if len(bad) else Reason(said))
    return found


def beside_sections(page: Page) -> Sections:
    """Show the tables that stand beside the effects: how many rows have which verdict, a row of a
    table and a mark of a picture for each."""
    for i, (name, table) in enumerate(page.tables.beside.items()):
        kind, title = record_of(table), _titled(record_of(table), name)
        made = page.block(table, title, f"beside-{i}.csv")
        told = kind.read is not None and len(table) <= FEW  # by the rows below
        yield Section(
            f"beside-{i}",
            title,
            text=() if told else _words_of_table(table),
            badge=worst(shown.badge for row in made.rows for shown in row),
            tables=[made],
            drawings=() if kind.read is None else page.forests(table),
        )


def _words_of_table(table: pd.DataFrame) -> list[str]:
    """Say the rows of a table that has few, and how many of any other have which verdict."""
    kind, words = record_of(table), []
    if kind.read is not None and len(table) > FEW:
        counts = estimates_frame(kind, table)["verdict"].value_counts(sort=False)
        words = [f"{n} of {len(table)}: {verdict}" for verdict, n in counts.items() if verdict]
    rows = harm_first(table)[:FEW].to_dict("records")
    return ["; ".join(words) + "."] if words else list(map(kind.said, rows))


def _titled(kind: Kind, name: str) -> str:
    """Return the title of a table with the name that the caller gave it."""
    return f"{kind.title}, {name}" if name else kind.title


# -- off-policy, history


def off_policy_section(page: Page) -> Sections:
    """Show estimates of policies that did not run. The card is about the best estimate that may be
    trusted: its trust is the badge."""
    table = page.tables.off_policy
    if table is None:
        return
    rows = table.to_dict("records")
    usable = [row for row in rows if not is_useless(row)]
    trusted = [row for row in usable if not flag_words(row["flags"])]
    flagged = sum(bool(row["flags"]) for row in rows)
    said, mark = "No off-policy estimate is flagged.", Badge("good", "no flag")
    if flagged:
        carry, mark = "carries" if flagged == 1 else "carry", Badge("warning", "flagged")
        said = f"{flagged} of {amount(len(rows), 'off-policy estimate')} {carry} a flag."
    if useless := len(rows) - len(usable):
        said += f" {useless} of them should not be used; the column trust says why."
    doubt = (
        " A flagged estimate can be far off, and its interval holds the true value less often than "
        "it says."
    )
    yield Section(
        "off-policy",
        "Off-policy estimates",
        text=[said + (doubt if flagged else "")],
        badge=mark,
        tables=[page.block(table, "Estimates", "off-policy.csv")],
        said=[Reason(said)],
        card=_off_policy_card(page.tables, rows, usable, trusted),
    )


def _off_policy_card(
    tables: ReportTables, rows: list[Any], usable: list[Any], trusted: list[Any]
) -> Section:
    """Return the verdict about the best estimate that may be trusted."""
    row = max(trusted or usable or rows, key=lambda one: float(one["value"]))
    flags, trust, name = flag_words(row["flags"]), trust_of(row), name_of(policy_of(row))
    mark = Badge("error" if not usable else "warning" if flags else "good", trust)
    n, estimates = len(trusted or usable), amount(len(rows), "estimate")
    among = "that may be trusted" if trusted else "that may be used, each with a flag"
    which = f"{name}, estimated by {row['estimator']}, "
    if not usable:
        which += f"is one of {estimates}; none should be used."
    elif n == 1:
        which += f"is the one of {estimates} {among}."
    else:
        which += f"has the largest value of {n} estimates {among}."
    look = look_of_estimate(row)
    action = "Do not replace the logging policy: no gain is shown."
    if not usable or flags:
        action = f"Do not act: {flag_meanings(row) or trust}."
    elif look != "open":
        action = f"Test {name} online." if look == "better" else "Keep the logging policy."
    elif not lift_text(row):
        action = "Compare it with the value of the logging policy before acting on it."
    if tables.decision is not None:
        mark, _, action = _decision_case(tables.decision)[:3]
    below = ", ".join(
        f"{policy_of(one)} by {one['estimator']}"
        for one in trusted
        if look_of_estimate(one) == "worse"
    )
    found = amount_of_estimate(row)
    effective = f" {number(row['ess'], ',.0f')} effective rows." if "ess" in row else ""
    lines = {
        "Which": [*_decision_said(tables), which],
        "By how much": [f"{found[0].upper()}{found[1:]}." if usable else NO_VALUE],
        "How sure": [f"Trust: {trust}.{effective}"],
        "For whom worse": [f"Worse than the logging policy: {below}." if below else NONE_BELOW],
        "What could overturn it": [
            f"Flags: {flags}. {flag_meanings(row)}." if flags else "It carries no flag."
        ],
        "So": [action],
    }
    return verdict_section(mark, lines)


def history_section(page: Page) -> Sections:
    """Show when the metrics and the data of a job changed, and the metrics by date."""
    history = page.tables.history
    if history is None:
        return
    made, parts = [], []
    for title, table in (("Metrics", history.changes()), ("Data", history.drift())):
        if len(table):
            made.append(block := page.block(table, title, f"{title.lower()}.csv"))
            mark = worst(shown.badge for row in block.rows for shown in row)
            parts.append((mark, [f"{title}: {one}" for one in _words_of_table(table)]))
    gaps = history.gaps()
    said = [f"{row['what']}: {row['verdict']}." for row in gaps.to_dict("records")[: page.most]]
    gone = gaps["effect"].isin(["missing", "too_old"]).any()
    parts.append((Badge("worse", "missing") if gone else None, said))
    badge = worst(mark for mark, _ in parts)
    # What the badge is about stands first.
    parts.sort(key=lambda part: part[0] is None or part[0] is not badge)
    said = [f"{one[0].upper()}{one[1:]}" for _, own in parts for one in own]
    said.append(f"{history.headline}.")
    yield Section(
        "history",
        "History",
        text=said,
        badge=badge,
        tables=made,
        drawings=[
            page.draw(plot.history, history, name)
            for name in history.summary["column"].unique()[:FEW]
        ],
        said=list(map(Reason, said)),
    )


# -- the card of a page without a result

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


def alone_sections(page: Page, sections: Sequence[Section]) -> Sections:
    """Yield what stands before the sections of a page without a result: whether the experiment is
    sound, and the card of the first table that has a verdict."""
    tables, of = page.tables, {one.id: one for one in sections}
    if tables.experiment or tables.health is not None:
        mark, said = _soundness(tables)
        text = [said, *_checked(tables)]
        yield Section("validity", "Is it sound?", text=text, badge=mark)
    found = experiment_card(page, of["segments"].said if "segments" in of else ())
    cards = [of[name].card for name in ("off-policy", "gate") if name in of]
    if made := next((card for card in (found, *cards) if card is not None), None):
        yield made
        return
    # Tables that stand beside no effects: what each says, and what the worst of them asks for.
    which, todo, marks = _decision_said(tables), dict[str, str](), list[Badge]()
    for i, table in enumerate(tables.beside.values()):
        section, kind = of[f"beside-{i}"], record_of(table)
        own = section.badge or Badge("info", "plan")
        which += [f"{section.title}: {one}" for one in _words_of_table(table)]
        look = "Look at what is open before acting."
        todo[own.text] = kind.ask(table) if kind.ask else kind.todo.get(own.kind, look)
        marks.append(own)
    worst_mark = worst(marks)
    if tables.decision is not None:
        case = _decision_case(tables.decision)
        against = _doubts_beside(tables.beside, {}) if case.ships else ()
        worst_mark, action = tempered(case, against)
        todo = {worst_mark.text: action}
    if worst_mark is None:
        which = [reason.said for one in sections for reason in one.said] or ["There is no verdict."]
        worst_mark = worst(one.badge for one in sections) or Badge("info", "no verdict")
        steps = next((NEXT_STEPS[name] for name in of if name in NEXT_STEPS), {})
        alone = "Do not act on this alone: pass the effects too (experiment=)."
        todo = {worst_mark.text: steps.get(worst_mark.kind, alone)}
    yield verdict_section(worst_mark, {"Which": which, "So": [todo[worst_mark.text]]})

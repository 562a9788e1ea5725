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

from ...diagnostics.history import History
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
from .card import card_section, collect, could_show, doubt, one_sided, undecided_harm
from .page_blocks import (
    FOR_WHOM_WORSE,
    OVERTURN,
    Badge,
    BadgeKind,
    Case,
    Reason,
    Section,
    TableBlock,
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


def experiment_section(page: Page, effects: Mapping[str, pd.DataFrame]) -> Sections:
    """Show the effects of an experiment, harms first, also by rank and over time.

    On a page that is about it alone, another section says whether it is sound.
    """
    tables, over_time, alone = page.tables, page.tables.over_time, page.subject is None
    drawings = [] if tables.position is None else [page.draw(plot.position, tables.position)]
    if over_time is not None:  # a picture for each metric and pair of variants
        names = [name for name in PAIR_OF_EFFECT if name in over_time.columns]
        shown: list[Any] = over_time[names].drop_duplicates().to_dict("records")
        drawings += [page.draw(plot.over_time, over_time, **one) for one in shown]
    decided = _decision_said(tables)
    if not effects and tables.health is None:
        if drawings or decided:
            title = "Decision" if decided else "Positions" if over_time is None else "Over time"
            said = list(map(Reason, decided or _trends(over_time)))
            yield Section("positions", title, text=decided, drawings=drawings, said=said)
        return
    mark, sound = _soundness(tables)
    parts, quoted = list[TableBlock](), [*decided]
    for i, (name, table) in enumerate(effects.items()):
        controls, level = table["control"].unique().tolist(), confidence_of(table)
        what = f"differences from {controls[0]}" if len(controls) == 1 else "pairs of variants"
        caption = f"Effects{f', {name}' if name else ''}: {what}, harms first"
        if not parts:
            if tables.decision is not None and tables.roles is not None:
                sided = "one" if sides_of_tests(table) else "two"
                if level is not None:
                    caption += f"; {sided}-sided {100 * level:g} % intervals, beside the bounds "
                    caption += "of the roles"
                roles = role_verdicts(table, tables.roles)
                one_sided_bounds = "Roles: bounds of a guardrail are one-sided, as its test is"
                parts.append(page.block(roles, one_sided_bounds, "roles.csv"))
                drawings = [*page.forests(roles), *drawings]
            first = harm_first(table)[:FEW].to_dict("records")
            quoted += [f"Experiment, {TABLE_KINDS['experiment'].said(row)}" for row in first]
            if (more := len(table) - FEW) > 0:
                stand = f"{amount(more, 'more effect')} {'stands' if more == 1 else 'stand'}"
                quoted.append(f"{stand} in the section Experiment.")
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
        said=list(map(Reason, (*quoted, sound))),
    )


PAIR_OF_EFFECT = ["metric", "treatment", "control"]


def _trends(given: GivenTable, row: TableRow | None = None) -> list[str]:
    """Say whether effects fade, if a table of periods knows: all, or that of a row."""
    if given is None or page_part(given) != "over_time":
        return []
    names = [name for name in PAIR_OF_EFFECT if name in given.columns]
    rows = given.drop_duplicates(names).to_dict("records")
    known = [one for one in rows if row is None or all(one[name] == row[name] for name in names)]
    return list(map(TABLE_KINDS["over_time"].said, known))


def _checked(tables: ReportTables) -> list[str]:
    """Say which checks of the experiment stand behind its tables, and which do not."""
    table = next(iter(tables.experiment.values()), pd.DataFrame())
    known = {*table.columns[table.notna().any()]}
    if tables.health is not None:
        known |= {*tables.health.columns[tables.health.notna().any()]}
    short, sound = "srm_p" not in table.columns, _soundness(tables)[0].text
    found = {
        "the sample ratio": "srm_p" in known or sound in ("sound", "sample ratio"),
        "users without metrics": "missing_p" in known,
        "effects over time": tables.over_time is not None,
    }
    if not short:
        found |= {"covariates": "balance_p" in known, "denominators": "p_denominator" in known}
    done = ", ".join(name for name, there in found.items() if there) or "nothing"
    left = ", ".join(name for name, there in found.items() if not there) or "nothing"
    more = " With details=True the comparison also checks covariates and denominators."
    return [f"Checked: {done}. Not checked here: {left}.{more if short else ''}"]


def _soundness(tables: ReportTables) -> tuple[Badge, str]:
    """Say what the sample ratio and the users without metrics mean for the effects."""
    health = tables.health
    rows = [row for one in tables.experiment.values() for row in one.to_dict("records")]
    of_row = [codes_of(row["remarks"]) for row in rows]
    broken = [row for row, codes in zip(rows, of_row, strict=True) if "sample_ratio" in codes]
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
        if (
            rows
            and "srm_p" not in rows[0]
            and not any("ratio_not_checked" in one for one in of_row)
        ):
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
    missing = ", ".join(map("{:.1%}".format, health["missing_rate"]))
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
    if not rows:
        return None
    row, table, (sound, soundness) = (
        rows[0],
        next(iter(tables.experiment.values())),
        _soundness(tables),
    )
    invalid = sound.kind == "error" or row["withheld"] in UNLIKE
    believed = not invalid and not is_withheld(row)
    case = _effect_case(table, row, sound, invalid)
    reasons = _doubts_beside(tables.beside, row)
    if tables.decision is None:
        sides = PAIR_OF_EFFECT[1:]
        own = [one for one in rows[1:] if all(one[side] == row[side] for side in sides)]
        names = _metrics_of(filter(says_worse, own)) if believed else ""
        if names:
            reasons.append(Reason("", f"worse on {names}", f"weigh the loss on {names} first"))
            if case.badge.kind == "open":
                no = f"Do not ship {name_of(row['treatment'])}."
                case = case._replace(badge=Badge("worse", f"harm on {names}"), action=no)
        if names := _metrics_of(one for one in own if hides_harm(one, one.get("better"))):
            reasons.append(undecided_harm(names)._replace(said=""))
    else:
        case = _decision_case(tables.decision)._replace(which=case.which)
    if believed and "ratio_not_checked" in codes_of(row["remarks"]) and sound.kind != "good":
        todo = "check the sample ratio first (expected=, or health=)"
        reasons.append(Reason("", "the sample ratio is not checked", todo))
    harmed = list(filter(says_worse, rows))
    worse = [f"Worse: {TABLE_KINDS['experiment'].said(one)}" for one in harmed]
    if invalid and harmed:
        unsaid = ", ".join(map(who_is_compared, harmed))
        worse = [f"Worse by the numbers as they stand: {unsaid}."]
    held = [
        f"Not decided: {who_is_compared(one)}: {one['verdict']}."
        for one in filter(is_withheld, rows)
    ]
    warned = [one for one in rows if warnings_of(one["remarks"])]
    notes: list[str] = [f"{who_is_compared(one)}: {note_of(one)}." for one in warned[:FEW]]
    if (more := len(warned) - FEW) > 0:
        carry = "carries" if more == 1 else "carry"
        notes.append(f"{amount(more, 'more effect')} {carry} a warning.")
    for said in (*(worse or ["No metric is shown to be worse."]), *held):
        reasons.append(Reason(said, line=FOR_WHOM_WORSE))
    reasons += [Reason(one.said, line=FOR_WHOM_WORSE) for one in segments]
    reasons += [Reason(one, line=OVERTURN) for one in notes or ["No effect carries a warning."]]
    p = f"{_p(row['p_adj'])}, " if believed else "; p-values "
    amounts = [f"{effect_text(row)}.", *_trends(tables.over_time, row)]
    sure = [
        soundness,
        f"{_users(row)}{p}{adjustment(table).words}.",
        *one_sided(table),
        *could_show(row, "An effect of {}", "experiments of this size"),
    ]
    case = case._replace(which=[*_decision_said(tables), *case.which])
    return card_section(
        case, amounts if believed else [NO_EFFECT, *_checked(tables)], sure, reasons
    )


def _metrics_of(rows: Iterable[TableRow]) -> str:
    """Name the metrics of some effects, each with its segment."""
    names = (
        plain(name_of(one["metric"])) + (f" ({visible(part)})" if (part := segment_of(one)) else "")
        for one in rows
    )
    return ", ".join(dict.fromkeys(names))


def _effect_case(table: pd.DataFrame, row: TableRow, sound: Badge, invalid: bool) -> Case:
    """Return what the first row says before anything speaks against it: only a variant that would
    be shipped can be spoken against."""
    the = "the control " if table["control"].nunique() == 1 else ""
    new, verdict, where = name_of(row["treatment"]), str(row["verdict"]), segment_of(row)
    than = f"{the}{name_of(row['control'])} on {name_of(row['metric'])}"
    than += f" ({where})." if where else "."
    kind = badge_of(row)
    mark, which = (
        Badge("open", verdict),
        f"{verdict[:1].upper()}{verdict[1:]}: {new} against {than}",
    )
    todo = "Decide by a metric that has a direction."
    if invalid or is_withheld(row):
        mark = Badge("error", "invalid") if invalid else Badge("warning", "withheld")
        which = f"The verdict is withheld ({verdict}): {new} against {than}"
        why = {
            "sample ratio": "find out why the users do not fit the plan",
            "missing metrics": "find out why metrics are missing",
        }.get(sound.text) or CAUTIONS[row["withheld"]].sentence
        todo = f"Do not act: {why}."
    elif kind in ("better", "worse"):
        mark, which = Badge(kind, kind), f"{new} is {kind} than {than}"
        todo = f"{'Ship' if kind == 'better' else 'Do not ship'} {new}."
    elif row["effect"] == "none":
        n = int(row["n_treatment"]) + int(row["n_control"])
        todo = f"Keep {name_of(row['control'])}. {collect(row, n, 'user')}"
    return Case(mark, [which], todo, stands=mark.kind == "better")


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
    who = {effect: " and ".join(treatments) for effect, treatments in names.items()}
    words = [
        f"{plain(of)}: " * (len(who) > 1) + sentence("decision", effect)
        for effect, of in who.items()
    ]
    todo = " ".join(DECISIONS[effect][1].format(of) for effect, of in who.items())
    kind = DECISIONS["invalid" if "invalid" in who else next(iter(who))][0]
    ships = not who.keys().isdisjoint(("ship", "ship_not_as_planned"))
    return Case(Badge(kind, "; ".join(words)), (), todo, stands=ships)


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
        found.append(doubt(said, words if len(bad) else "", todo))
    return found


def beside_sections(page: Page, tables: Mapping[str, pd.DataFrame]) -> Sections:
    """Show the tables that stand beside the effects: how many rows have which verdict, a row of a
    table and a mark of a picture for each."""
    for i, (name, table) in enumerate(tables.items()):
        kind, title, said = (
            record_of(table),
            _titled(record_of(table), name),
            _words_of_table(table),
        )
        made = page.block(table, title, f"beside-{i}.csv")
        told = kind.read is not None and len(table) <= FEW  # by the rows below
        mark = made.badge or Badge("info", "plan")
        yield Section(
            f"beside-{i}",
            title,
            text=() if told else said,
            badge=made.badge,
            tables=[made],
            drawings=() if kind.read is None else page.forests(table),
            case=Case(mark, [f"{title}: {one}" for one in said], kind.asks(table, mark)),
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


def off_policy_section(page: Page, table: pd.DataFrame) -> Sections:
    """Show estimates of policies that did not run. The card is about the best estimate that may be
    trusted: its trust is the badge."""
    rows = table.to_dict("records")
    flagged = sum(bool(row["flags"]) for row in rows)
    said, doubt, mark = "No off-policy estimate is flagged.", "", Badge("good", "no flag")
    if flagged:
        carry, mark = "carries" if flagged == 1 else "carry", Badge("warning", "flagged")
        said = f"{flagged} of {amount(len(rows), 'off-policy estimate')} {carry} a flag."
        doubt = " A flagged estimate can be far off, and its interval holds the true value less "
        doubt += "often than it says."
    if useless := sum(map(is_useless, rows)):
        said += f" {useless} of them should not be used; the column trust says why."
    yield Section(
        "off-policy",
        "Off-policy estimates",
        text=[said + doubt],
        badge=mark,
        tables=[page.block(table, "Estimates", "off-policy.csv")],
        said=[Reason(said)],
        card=_off_policy_card(page.tables, rows),
    )


def _off_policy_card(tables: ReportTables, rows: list[Any]) -> Section:
    """Return the verdict about the best estimate that may be trusted."""
    usable = [row for row in rows if not is_useless(row)]
    trusted = [row for row in usable if not row["flags"]]
    known = trusted or usable
    row = max(known or rows, key=lambda one: float(one["value"]))
    flags, trust, name = flag_words(row["flags"]), trust_of(row), name_of(policy_of(row))
    mark = Badge("error" if not known else "warning" if flags else "good", trust)
    estimates, look = amount(len(rows), "estimate"), look_of_estimate(row)
    among = "that may be trusted" if trusted else "that may be used, each with a flag"
    which = f"has the largest value of {len(known)} estimates {among}."
    if not known:
        which = f"is one of {estimates}; none should be used."
    elif len(known) == 1:
        which = f"is the one of {estimates} {among}."
    action = "Do not replace the logging policy: no gain is shown."
    if not known or flags:
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
    overturn = f"Flags: {flags}. {flag_meanings(row)}." if flags else "It carries no flag."
    worse = f"Worse than the logging policy: {below}." if below else NONE_BELOW
    first = f"{name}, estimated by {row['estimator']}, {which}"
    return card_section(
        Case(mark, [*_decision_said(tables), first], action, stands=False),
        [f"{found[0].upper()}{found[1:]}." if known else NO_VALUE],
        [f"Trust: {trust}.{effective}"],
        [
            Reason(worse, line=FOR_WHOM_WORSE),
            Reason(overturn, line=OVERTURN),
        ],
    )


def history_section(page: Page, history: History) -> Sections:
    """Show when the metrics and the data of a job changed, and the metrics by date."""
    made, parts, changes = [], [], history.changes()
    for title, table in (("Metrics", changes), ("Data", history.drift())):
        if len(table):
            made.append(page.block(table, title, f"{title.lower()}.csv"))
            parts.append((made[-1].badge, [f"{title}: {one}" for one in _words_of_table(table)]))
    gaps = history.gaps()
    gone = gaps["effect"].isin(["missing", "too_old"]).any()
    named = [f"{row['what']}: {row['verdict']}." for row in gaps.to_dict("records")[: page.most]]
    parts.append((Badge("worse", "missing") if gone else None, named))
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
        case=badge and Case(badge, (), TABLE_KINDS["changes"].asks(changes, badge)),
    )


# -- the card of a page without a result


def alone_sections(page: Page, sections: Sequence[Section]) -> Sections:
    """Yield what stands before the sections of a page without a result: whether the experiment is
    sound, and the card of the first table that has a verdict; else what the tables beside an
    experiment, or else all sections, say, and what the worst of them asks for."""
    tables, cases = page.tables, [one.case for one in sections if one.case is not None]
    if tables.experiment or tables.health is not None:
        mark, said = _soundness(tables)
        text = [said, *_checked(tables)]
        yield Section("validity", "Is it sound?", text=text, badge=mark)
    segments = next((one.said for one in sections if one.id == "segments"), ())
    found = [experiment_card(page, segments), *(one.card for one in sections)]
    if made := next(filter(None, found), None):
        yield made
        return
    beside = [case for case in cases if case.which]
    which = [*_decision_said(tables), *(one for case in beside for one in case.which)]
    which = which or [reason.said for one in sections for reason in one.said]
    alone = "Do not act on this alone: pass the effects too (experiment=)."
    nothing, against = Case(Badge("info", "no verdict"), (), alone), list[Reason]()
    case = min(beside or cases, key=lambda one: one.badge.rank, default=nothing)
    if tables.decision is not None:
        case = _decision_case(tables.decision)
        against = [one._replace(said="") for one in _doubts_beside(tables.beside, {})]
    case = case._replace(which=which or ["There is no verdict."])
    yield card_section(case, reasons=against)

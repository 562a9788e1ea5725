"""Sections of the tables beside a result, and the cards of pages that have no result.

Rules of a page about an experiment: validity comes first, with what was checked; harms come before
all other effects; counts of segments speak of the pair and the metric of the first row; an invalid
one shows no effect in large type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ...experiments.compare.by_segment import segment_sentences
from ...experiments.decide.adjust_pvalues import adjustment
from ...experiments.decide.decide_experiment import plan_sentence, role_verdicts
from ...experiments.decide.sample_ratio import seen_words
from ...judge.cautions.table import CAUTIONS, UNLIKE
from ...judge.comparisons import note_of
from ...judge.verdict import codes_of, hides_harm, is_withheld, says_worse, warnings_of
from ...tables.cells import estimated, number, p_value, visible
from ...tables.findings import finding_of
from .. import plot
from ..given_tables import confidence_of
from ..kinds import (
    GATE_LOOKS,
    TABLE_KINDS,
    Kind,
    estimates_frame,
    flag_meanings,
    is_useless,
    lift_text,
    look_of_estimate,
    page_part,
    policy_of,
    record_of,
    segment_of,
    trend_words,
    value_text,
)
from .about_models import Pen, block, forest_drawings, harm_first, worse_for
from .card import (
    DOUBTS,
    FOR_WHOM,
    HOW_MUCH,
    SO,
    SURE,
    WHICH,
    Case,
    collect,
    kept,
    tempered,
    undecided_harm,
)
from .page_blocks import (
    Badge,
    BadgeKind,
    Drawing,
    Reason,
    Section,
    TableBlock,
    amount,
    badge_of,
    effect_text,
    flag_words,
    listed,
    name_of,
    plain,
    text,
)
from .report_inputs import ReportTables
from .svg import SIZE

FEW = 4  # rows that are sentences too
AS_OFTEN_AS_NOT = 0.5  # power of a plan that fails as often as not
NO_EFFECT = (
    "No effect is shown here, since the comparison is not sound; the tables have the numbers."
)
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


# -- an experiment


def experiment_section(tables: ReportTables, most: int, pen: Pen, alone: bool) -> MadeSection:
    """Show the effects of an experiment, harms first, also by rank and over time.

    On a page that is about it alone, another section says whether it is sound.
    """
    drawings: list[Drawing] = []
    if tables.position is not None:
        drawings.append(pen(plot.position, tables.position))
    if tables.over_time is not None:
        drawings += _over_time_drawings(tables.over_time, pen)
    decided = _decision_said(tables)
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
            caption += f"; two-sided {100 * level:g} % intervals, beside the bounds of the roles"
        file = f"experiment{f'-{i}' if i else ''}.csv"
        parts.append(block(TABLE_KINDS["experiment"], harm_first(table), caption, file, most))
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
    said: list[str] = [
        f"{name_of(row['treatment'])}: {row['decision']}. {row['reasons']}." for row in rows
    ]
    return [*said, *[f"{plan_sentence(row)}." for row in rows[:1] if plan_sentence(row)]]


def _over_time_drawings(table: pd.DataFrame, pen: Pen) -> list[Drawing]:
    """Draw the effect by period, a picture for each metric and pair of variants."""
    names = [name for name in ("metric", "treatment", "control") if name in table.columns]
    found = table[names].drop_duplicates().itertuples(index=False)
    return [pen(plot.over_time, table, **dict(zip(names, one, strict=True))) for one in found]


def _trends(given: pd.DataFrame | None, row: Mapping[Any, Any] | None = None) -> list[str]:
    """Say whether effects fade, if a table of periods knows: all, or that of a row."""
    if given is None or not {"metric", "treatment", "trend_verdict"} <= set(given.columns):
        return []
    names = [name for name in ("metric", "treatment", "control") if name in given.columns]
    if row is not None:
        given = given[(given[names] == pd.Series(row)[names]).all(axis=1)]
    rows = given.drop_duplicates(names).to_dict("records")
    return [f"{trend_words(one).capitalize()}." for one in rows]


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

    found = {
        "the sample ratio": known("srm_p"),
        "users without metrics": known("missing_p"),
        "covariates": known("balance_p"),
        "denominators": known("p_denominator"),
        "effects over time": tables.over_time is not None,
    }
    done, left = (
        ", ".join(name for name, there in found.items() if there is wanted) or "nothing"
        for wanted in (True, False)
    )
    return [f"Checked: {done}. Not checked here: {left}."]


def _soundness(tables: ReportTables) -> tuple[Badge, str]:
    """Say what the sample ratio and the users without metrics mean for the effects."""
    health = tables.health
    rows = [row for one in tables.experiment.values() for row in one.to_dict("records")]
    broken = [row for row in rows if "sample_ratio" in codes_of(row["remarks"])]
    tested = [row["srm_p"] for row in rows if not pd.isna(row.get("srm_p", np.nan))]
    wrong = Badge("error", "sample ratio")
    why = "Find out why before reading an effect."
    if broken and (health is None or not health["srm_flag"].astype(bool).any()):
        users, p = _users(broken[0]), _p(broken[0].get("srm_p", np.nan))
        return wrong, f"The users who are compared do not fit the plan: {users}; p {p}. {why}"
    if health is None and tested:
        said = f"Sample ratio of the users who are compared as planned; p {_p(min(tested))}"
        return Badge("good", "sound"), f"{said}{seen_words(rows, 'treatment')}."
    if health is None:
        how = "pass health= (what rd.experiments.experiment_health returned)"
        return Badge("warning", "not checked"), f"The sample ratio was not checked: {how}."
    records = health.to_dict("records")
    arms, p = ", ".join(map(TABLE_KINDS["health"].said, records)), health["srm_p"].min()
    if health["srm_flag"].astype(bool).any():
        said = f"The users per variant do not fit the plan: {arms}; p {_p(p)}. {why}"
        return wrong, said
    lost = health["missing_p"].min() if "missing_p" in health.columns else np.nan
    if health["missing_flag"].astype(bool).any():
        said = f"Users without metrics differ between the variants; p {_p(lost)}."
        return Badge("error", "missing metrics"), f"{said} The effects may come from that alone."
    missing = ", ".join(f"{rate:.1%}" for rate in health["missing_rate"])
    fits, mark = "Sample ratio as planned", Badge("good", "sound")
    if pd.isna(p):
        fits, mark = "The sample ratio could not be tested", Badge("warning", "not tested")
    said = f"{fits}: {arms}; p {_p(p)}{seen_words([*records, *rows], 'variant')}."
    return mark, f"{said} Users without metrics: {missing}; p {_p(lost)}."


def _p(p: Any) -> str:
    words = p_value(p)
    return words if words.startswith("<") else f"= {words}"


def _pair_of(row: Mapping[Any, Any]) -> str:
    names = (name_of(row[name]) for name in ("treatment", "control", "metric"))
    return "{} against {} on {}".format(*map(plain, names))


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
    doubts = _doubts_beside(tables.beside, row)
    reasons = [one for one in doubts if case.badge.kind == "better"]
    own = [one for one in rows[1:] if _sides(one) == _sides(row)]
    if believed and (names := _metrics_of(one for one in own if says_worse(one))):
        if case.badge.kind == "open":
            no = f"Do not ship {name_of(row['treatment'])}."
            case = case._replace(badge=Badge("worse", f"harm on {names}"), action=no)
        elif case.badge.kind == "better":
            reasons.append(Reason("", f"worse on {names}", f"weigh the loss on {names} first"))
    if case.badge.kind == "better":
        withheld = (one for one in own if hides_harm(one, one.get("better")))
        reasons += [undecided_harm(names)] if (names := _metrics_of(withheld)) else []
    if believed and "ratio_not_checked" in codes_of(row["remarks"]) and sound.kind != "good":
        todo = "check the sample ratio first (expected=, or health=)"
        unchecked = "the sample ratio is not checked"
        reasons += [Reason("", unchecked, todo)] if case.badge.kind == "better" else []
    mark, action = tempered(case, reasons)
    if tables.decision is not None:
        mark, action = _decision_badge(tables.decision)
    amounts = [NO_EFFECT, *_checked(tables)]
    if believed:
        amounts = [f"{effect_text(row)}, {_users(row)}.", *_trends(tables.over_time, row)]
    said = [f"Worse: {TABLE_KINDS['experiment'].said(one)}" for one in harmed]
    if invalid and harmed:
        unsaid = ", ".join(map(_pair_of, harmed))
        said = [f"Worse by the numbers as they stand: {unsaid}."]
    held = [f"Not decided: {_pair_of(one)}: {one['verdict']}." for one in rows if is_withheld(one)]
    lines = [
        (WHICH, (*_decision_said(tables), case.which)),
        (HOW_MUCH, amounts),
        (SURE, (soundness, *_test_words(table, row, believed))),
        (
            FOR_WHOM,
            (*(said or ["No metric is shown to be worse."]), *held, *_worse_segments(tables, row)),
        ),
        (DOUBTS, (*(doubt.said for doubt in doubts), *_warned(rows))),
        (SO, [action]),
    ]
    return Section("verdict", "Verdict", badge=mark, lines=kept(lines))


def _sides(row: Mapping[Any, Any]) -> tuple[Any, Any]:
    return row["treatment"], row["control"]


def _metrics_of(rows: Iterable[Mapping[Any, Any]]) -> str:
    """Name the metrics of some effects, each with its segment."""
    names = (
        plain(name_of(one["metric"])) + (f" ({visible(part)})" if (part := segment_of(one)) else "")
        for one in rows
    )
    return ", ".join(dict.fromkeys(names))


def _decision_badge(decision: pd.DataFrame) -> tuple[Badge, str]:
    """Return the badge and the action of a decision: those of its first treatment."""
    first = decision.iloc[0]
    kind, todo = DECISIONS[first["effect"]]
    return Badge(kind, str(first["decision"])), todo.format(name_of(first["treatment"]))


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
        return Case(Badge(kind, kind), which, todo)
    which = f"{verdict[:1].upper()}{verdict[1:]}: {new} against {than}"
    todo = "Decide by a metric that has a direction."
    if row["effect"] == "none":
        n = int(row["n_treatment"]) + int(row["n_control"])
        more = collect(row["diff"], row.get("mde", np.nan), n, "user")
        todo = f"Keep {name_of(row['control'])}. {more}"
    return Case(Badge("open", verdict), which, todo)


def _test_words(table: pd.DataFrame, row: Mapping[Any, Any], believed: bool) -> list[str]:
    least = row.get("mde", np.nan)
    shown = f" An effect of {estimated(least)} is shown in 8 of 10 experiments of this size."
    p = f" p {_p(row['p_adj'])}." if believed else ""
    said = f"{_users(row)}; p-values {adjustment(table).words}.{p}"
    return [f"{said}{('' if pd.isna(least) else shown)}"]


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
    if "se" in given.columns and list(given.columns).index("metric") > 0:
        key = str(row["metric"]), str(row["treatment"]), str(row["control"])
        said += [text for found, text in segment_sentences(given).items() if found == key]
    return said


def _warned(effects: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Say the warnings of every effect that has one."""
    rows = [row for row in effects if warnings_of(row["remarks"])]
    said: list[str] = [f"{_pair_of(row)}: {note_of(row)}." for row in rows[:FEW]]
    if len(rows) > FEW:
        carry = "carries" if len(rows) - FEW == 1 else "carry"
        said.append(f"{amount(len(rows) - FEW, 'more effect')} {carry} a warning.")
    return said or ["No effect carries a warning."]


# -- tables beside the effects


def estimate_section(
    place: str, name: str, table: pd.DataFrame, most: int, pen: Pen
) -> MadeSection:
    """Show a table that stands beside the effects: how many rows have which verdict, a row of a
    table and a mark of a picture for each."""
    kind = record_of(table)
    made = block(kind, table, titled(kind, name), f"{place}.csv", most)
    marks = [shown.badge for row in made.rows for shown in row]
    said = _words_of(kind, table)
    section = Section(
        place,
        titled(kind, name),
        text=said,
        badge=worst(marks),
        tables=(made,),
        drawings=() if kind.read is None else tuple(forest_drawings(table, most, pen)),
    )
    return section, []


def _words_of(kind: Kind, table: pd.DataFrame) -> tuple[str, ...]:
    """Say the rows of a table that has few, and how many of any other have which verdict."""
    words: list[str] = []
    if kind.read is not None and len(table) > FEW:
        counts = estimates_frame(kind, table)["verdict"].value_counts(sort=False).to_dict()
        words = [f"{n} of {len(table)}: {verdict}" for verdict, n in counts.items() if verdict]
    rows = harm_first(table)[:FEW].to_dict("records")
    return ("; ".join(words) + ".",) if words else tuple(map(kind.said, rows))


# What a table beside the effects has against one of them, what is to be done, and the columns in
# which its rows must be alike.
AGAINST = {
    "Sample ratio by level": (
        "a level breaks the sample ratio",
        "find out where its users are lost",
        "",
    ),
    "A/A test": ("its test does not hold", "take the test that is recommended", "metric cap"),
    "Roles": ("a metric is harmed", "weigh its loss first", "treatment control"),
}


def _doubts_beside(tables: Mapping[str, pd.DataFrame], effect: Mapping[Any, Any]) -> list[Reason]:
    """Return what the tables beside the effects have against one: their worst rows."""
    found = []
    for name, table in tables.items():
        kind = record_of(table)
        if kind.read is None:
            continue
        bad = table[(estimates_frame(kind, table)["sign"] == "worse").to_numpy(bool)]
        if not len(bad):
            continue
        said = f"{titled(kind, name)}: {' '.join(_words_of(kind, bad))}"
        words, todo, alike = AGAINST.get(kind.title, ("", "", ""))
        for one in alike.split():
            bad = bad[bad[one].isin([effect.get(one, np.nan)])]
        if "cap" in alike and not str(effect.get("method")).startswith("welch"):
            bad = bad[:0]  # the splits tried the t test
        found.append(Reason(said, words, todo) if len(bad) else Reason(said))
    return found


def titled(kind: Kind, name: str) -> str:
    """Return the title of a table with the name that the caller gave it."""
    return f"{kind.title}, {name}" if name else kind.title


def estimates_card(tables: ReportTables) -> Section | None:
    """Return the card of a page about tables that stand beside no effects: what each says, and what
    the worst of them asks for."""
    which: list[str] = _decision_said(tables)
    todo: dict[str, str] = {}
    marks: list[Badge | None] = []
    for name, table in tables.beside.items():
        kind = record_of(table)
        made = block(kind, table, "", "", len(table))
        own = worst([shown.badge for row in made.rows for shown in row]) or Badge("info", "plan")
        marks.append(own)
        which += [f"{titled(kind, name)}: {one}" for one in _words_of(kind, table)]
        if kind.read is None:
            todo[own.text] = _pairs_action(table)
        elif "mde_abs" in table.columns:
            todo[own.text] = _plan_action(table)
        else:
            todo[own.text] = kind.todo.get(own.kind, "Look at what is open before acting.")
    mark = worst(marks)
    if tables.decision is not None:
        mark, action = _decision_badge(tables.decision)
        todo = {mark.text: action}
    if mark is None:
        return None
    lines = [(WHICH, which), (SO, [todo[mark.text]])]
    return Section("verdict", "Verdict", badge=mark, lines=kept(lines))


def _plan_action(table: pd.DataFrame) -> str:
    """Say how many users or lists a plan asks for, or which guardrail they would not show safe."""
    unit = "list" if "n_lists" in table.columns else "user"
    n = table["n"] if unit == "list" else table["n_control"] + table["n_treatment"]
    weak = table["metric"][table["power"] < AS_OFTEN_AS_NOT] if "power" in table.columns else ()
    if len(weak):
        named = listed(list(map(name_of, weak)), FEW, "metric")
        return f"Plan more {unit}s first: with so few, nothing is likely to be shown on {named}."
    return f"Run it with {amount(int(n.max()), unit)}, and decide at the end alone."


def _pairs_action(table: pd.DataFrame) -> str:
    """Say what to do after a comparison of models that has no result beside it."""
    row = table.iloc[0].to_dict()
    if len(table) > 1:
        return "Pass the result too: it says which of these pairs decides."
    if is_withheld(row):
        return f"Do not act: {CAUTIONS[row['withheld']].sentence}."
    sign = badge_of(row)
    if sign in ("better", "worse"):
        winner = row["model"] if sign == "better" else row["baseline"]
        return f"Prefer {name_of(winner)}."
    return f"Keep {name_of(row['baseline'])}: no difference is shown."


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
    trust = visible(row.get("trust") or flags or "no flag")
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
    lift = f", {lift_text(row)} beside the logging policy" if lift_text(row) else ""
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
    elif not lift:
        action = "Compare it with the value of the logging policy before acting on it."
    if tables.decision is not None:
        mark, action = _decision_badge(tables.decision)
    lines = [
        (WHICH, (*_decision_said(tables), which)),
        (HOW_MUCH, [NO_VALUE if useless else f"Value {value_text(row)}{lift}."]),
        (SURE, [f"Trust: {trust}. {effective}".rstrip()]),
        (
            FOR_WHOM,
            [f"Worse than the logging policy: {names}." if names else NONE_BELOW],
        ),
        (DOUBTS, [f"Flags: {flags}. {flag_meanings(row)}." if flags else "It carries no flag."]),
        (SO, [action]),
    ]
    return Section("verdict", "Verdict", badge=mark, lines=kept(lines))


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
    lines: list[tuple[str, Sequence[str]]] = [
        (WHICH, [f"{gate.headline}."]),
        (HOW_MUCH, [f"{kind.said(first)}."]),
        (SURE, gate.notes),
        (
            FOR_WHOM,
            [f"{TABLE_KINDS['gate'].said(row)}." for row in worse] or ["No budget is broken."],
        ),
        (SO, [GATE_ACTIONS[gate.verdict]]),
    ]
    badge = Badge(GATE_LOOKS[gate.verdict], gate.verdict)
    return Section("verdict", "Verdict", badge=badge, lines=kept(lines))


def history_section(tables: ReportTables, most: int, pen: Pen) -> MadeSection:
    """Show when the metrics and the data of a job changed, and the metrics by date."""
    history = tables.history
    if history is None:
        return None, []
    kind, blocks, said = TABLE_KINDS["changes"], [], []
    for title, table in (("Metrics", history.changes()), ("Data", history.drift())):
        if len(table):
            blocks.append(block(kind, table, title, f"{title.lower()}.csv", most))
            said += [f"{title}: {one}" for one in _words_of(kind, table)]
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
    lines: list[tuple[str, Sequence[str]]] = [
        (WHICH, which or ["There is no verdict."]),
        (SO, [step]),
    ]
    return Section("verdict", "Verdict", badge=mark, lines=kept(lines))

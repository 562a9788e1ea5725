"""Sections about an experiment and about off-policy estimates, and the cards of pages that are
about nothing else.

Rules of a page about an experiment: validity comes first, with what was checked; harms come before
all other effects; counts of segments speak of the pair and the metric of the headline; an invalid
one shows no effect in large type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...experiments.compare.by_segment import segment_sentences
from ...experiments.decide.adjust_pvalues import adjustment
from ...experiments.decide.decide_experiment import (
    change_text,
    plan_sentence,
    role_verdicts,
)
from ...experiments.decide.sample_ratio import seen_words
from ...judge.cautions.table import UNLIKE
from ...judge.comparisons import note_of
from ...judge.verdict import codes_of, warnings_of
from ...off_policy.estimate_value import MEANINGS
from ...tables.cells import Cell, estimate_form, estimated, interval, number, p_value
from .. import plot
from ..plot.effect_plots import trend_words
from .about_estimates import doubts_beside
from .about_models import Pen, comparison_table, forest_drawings, segment_labels, worse_for
from .card import DOUBTS, FOR_WHOM, HOW_MUCH, SURE, WHICH, kept
from .page_blocks import (
    Badge,
    BadgeKind,
    Drawing,
    Name,
    Reason,
    Section,
    Sentence,
    Shown,
    TableBlock,
    badge,
    badge_of,
    bars,
    csv_of,
    cut,
    effect_text,
    text,
    value,
)
from .report_inputs import ReportTables

__all__: list[str] = []

FEW = 4  # effects of an experiment that the head of a page about models quotes


def harm_first(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of an experiment with what is worse before all others."""
    worse = np.array([badge_of(row) == "worse" for row in table.to_dict("records")], bool)
    return table.iloc[np.argsort(~worse, kind="stable")].reset_index(drop=True)


def experiment_section(
    tables: ReportTables, most: int, pen: Pen, alone: bool
) -> tuple[Section | None, list[Reason]]:
    """Show the effects of an experiment, harms first, also by rank and over time.

    On a page that is about it alone, another section says whether it is sound.
    """
    drawings = []
    if tables.position is not None:
        drawings.append(pen(plot.position, tables.position))
    if tables.over_time is not None:
        drawings += _over_time_drawings(tables.over_time, pen)
    if not tables.experiment and tables.health is None:
        decided = tuple(_decision_said(tables))
        if not drawings and not decided:
            return None, []
        title = "Decision" if decided else "Positions" if tables.over_time is None else "Over time"
        return Section("positions", title, text=decided, drawings=tuple(drawings)), []
    mark, sentence = _soundness(tables)
    parts = []
    for i, (name, table) in enumerate(tables.experiment.items()):
        controls = table["control"].unique().tolist()
        what = f"differences from {controls[0]}" if len(controls) == 1 else "pairs of variants"
        caption = f"Effects{f', {name}' if name else ''}: {what}, harms first"
        part = harm_first(table)
        part.attrs = table.attrs
        parts.append(comparison_table(part, caption, f"experiment{f'-{i}' if i else ''}.csv", most))
    if tables.decision is not None and tables.roles is not None:
        judged = role_verdicts(next(iter(tables.experiment.values())), tables.roles)
        parts.insert(0, _roles_block(judged, most))
        drawings = [*forest_drawings(judged, most, pen), *drawings]
    if tables.health is not None:
        parts.append(_health_block(tables.health, most))
    section = Section(
        "experiment",
        "Effects" if alone else "Experiment",
        text=() if alone else (*_decision_said(tables), sentence, *_checked(tables)),
        badge=None if alone else mark,
        tables=tuple(parts),
        drawings=tuple(drawings),
    )
    said = [*_decision_said(tables), *_experiment_said(tables), sentence]
    return section, [Reason(one) for one in said]


DECISIONS: dict[str, BadgeKind] = {
    "ship": "better",
    "ship_not_as_planned": "warning",
    "do_not_ship": "worse",
    "keep_running": "open",
    "invalid": "error",
}


def _decision_said(tables: ReportTables) -> list[Sentence]:
    """Say the decision about every treatment, with its reasons."""
    rows = [] if tables.decision is None else tables.decision.to_dict("records")
    said: list[Sentence] = [
        (Name(row["treatment"]), f": {row['decision']}. {row['reasons']}.") for row in rows
    ]
    return [*said, *[(f"{plan_sentence(row)}.",) for row in rows[:1] if plan_sentence(row)]]


def _roles_block(judged: pd.DataFrame, most: int) -> TableBlock:
    """Show what each role makes of its metric."""
    rows = []
    for row in judged.to_dict("records"):
        change, _, ends = change_text(row).partition(" ")
        mark = badge(badge_of(row), row["verdict"])
        rows.append(
            (
                text(row["metric"]),
                text(row["role"]),
                text(row["treatment"]),
                text(row["margin"] or "–"),
                Shown(Cell(change, small=ends), row["change"]),
                mark,
                text(row["note"]),
            )
        )
    head = ("metric", "role", "treatment", "margin", "change [bounds]", "verdict", "note")
    align = ("left", "left", "left", "right", "right", "left", "left")
    shown, more = cut(rows, most)
    caption = "Roles: bounds of a guardrail are one-sided, as its test is"
    return TableBlock(
        caption, head, align, shown, csv_of(judged), "roles.csv", stacked=True, more=more
    )


def _over_time_drawings(table: pd.DataFrame, pen: Pen) -> list[Drawing]:
    """Draw the effect by period, a picture for each metric and pair of variants."""
    names = [name for name in ("metric", "treatment", "control") if name in table.columns]
    found = table[names].drop_duplicates().itertuples(index=False)
    return [pen(plot.over_time, table, **dict(zip(names, one, strict=True))) for one in found]


def _trend_said(tables: ReportTables, row: pd.Series) -> list[Sentence]:
    """Say whether the effect of the headline fades, if a table of periods knows."""
    given = tables.over_time
    if given is None or not {"metric", "treatment", "trend_verdict"} <= set(given.columns):
        return []
    labels = [name for name in ("metric", "treatment", "control") if name in given.columns]
    own = given[(given[labels] == row[labels]).all(axis=1)]
    return [(f"{trend_words(one).capitalize()}.",) for one in own.head(1).to_dict("records")]


def _checked(tables: ReportTables) -> list[Sentence]:
    """Say which checks of the experiment stand behind its tables, and which do not."""
    table = next(iter(tables.experiment.values()), pd.DataFrame())
    health = pd.DataFrame() if tables.health is None else tables.health
    known = {
        "the sample ratio": _has_values(table, "srm_p") or _has_values(health, "srm_p"),
        "users without metrics": _has_values(health, "missing_p"),
        "covariates": _has_values(table, "balance_p"),
        "denominators": _has_values(table, "p_denominator"),
        "effects over time": tables.over_time is not None,
    }
    done, left = (
        [name for name, found in known.items() if found is wanted] for wanted in (True, False)
    )
    return [
        (
            f"Checked: {', '.join(done) or 'nothing'}. Not checked here: "
            f"{', '.join(left) or 'nothing'}.",
        )
    ]


def _has_values(table: pd.DataFrame, column: str) -> bool:
    return bool(column in table.columns and table[column].notna().any())


def _soundness(tables: ReportTables) -> tuple[Badge, Sentence]:
    """Say what the sample ratio and the users without metrics mean for the effects."""
    health, rows = (
        tables.health,
        [row for one in tables.experiment.values() for row in one.to_dict("records")],
    )
    broken = [row for row in rows if "sample_ratio" in codes_of(row["remarks"])]
    tested = [row["srm_p"] for row in rows if not pd.isna(row.get("srm_p", np.nan))]
    if broken and (health is None or not health["srm_flag"].astype(bool).any()):
        p = broken[0].get("srm_p", np.nan)
        return Badge("error", "sample ratio"), (
            f"The users who are compared do not fit the plan: {_users(pd.Series(broken[0]))}; p "
            f"{_p(p)}. Find out why before reading an effect.",
        )
    if health is None and tested:
        return Badge("good", "sound"), (
            "Sample ratio of the users who are compared as planned; p "
            f"{_p(min(tested))}{seen_words(pd.DataFrame(rows), 'treatment')}.",
        )
    if health is None:
        return Badge("warning", "not checked"), (
            "The sample ratio was not checked: pass health= (what rd.experiments.experiment_health "
            "returned).",
        )
    arms = ", ".join(
        f"{_arm(row)} {int(row['n_assigned']):,} ({row['share']:.1%}, planned "
        f"{row['expected_share']:.1%})"
        for row in health.to_dict("records")
    )
    p, lost = (
        health["srm_p"].min(),
        health["missing_p"].min() if "missing_p" in health.columns else np.nan,
    )
    if health["srm_flag"].astype(bool).any():
        return Badge("error", "sample ratio"), (
            f"The users per variant do not fit the plan: {arms}; p {_p(p)}. Find out why before "
            "reading an effect.",
        )
    if health["missing_flag"].astype(bool).any():
        return Badge("error", "missing metrics"), (
            f"Users without metrics differ between the variants; p {_p(lost)}. The effects may "
            "come from that alone.",
        )
    missing = ", ".join(f"{rate:.1%}" for rate in health["missing_rate"])
    fits, mark = "Sample ratio as planned", Badge("good", "sound")
    if pd.isna(p):
        fits, mark = "The sample ratio could not be tested", Badge("warning", "not tested")
    seen = seen_words(health, "variant")
    lost_users = f"Users without metrics: {missing}; p {_p(lost)}."
    return mark, (f"{fits}: {arms}; p {_p(p)}{seen}. {lost_users}",)


def _arm(row: Mapping[Any, Any]) -> str:
    """The variant of a row of the health table, behind the labels of its group."""
    names = list(row)
    return " ".join(str(row[name]) for name in names[: names.index("variant") + 1])


def _p(p: Any) -> str:
    words = p_value(p)
    return words if words.startswith("<") else f"= {words}"


def validity_section(tables: ReportTables) -> Section | None:
    """Say whether the experiment is sound, and what was checked: the first section of a page about
    an experiment."""
    if not tables.experiment and tables.health is None:
        return None
    mark, sentence = _soundness(tables)
    return Section("validity", "Is it sound?", text=(sentence, *_checked(tables)), badge=mark)


def experiment_card(tables: ReportTables) -> Section | None:
    """Return the verdict about the first metric and treatment of an experiment, harms said before
    everything open."""
    table = next(iter(tables.experiment.values()), None)
    if table is None or not len(table):
        return None
    one_control = table["control"].nunique() == 1
    pairs = table["treatment"].map(str) + (
        "" if one_control else " against " + table["control"].map(str)
    )
    table, the = table.assign(pair=pairs), "the control " * one_control
    row = table.iloc[0]
    where, verdict = segment_labels(table)[0], str(row["verdict"])
    sound, soundness = _soundness(tables)
    harmed = [one for one in harm_first(table).to_dict("records") if badge_of(one) == "worse"]
    labels = ["metric", "treatment", "control"]
    other = [
        one for one in harmed if [one[name] for name in labels] != [row[name] for name in labels]
    ]
    pair: Sentence = (
        Name(row["treatment"]),
        f" against {the}",
        Name(row["control"]),
        " on ",
        Name(row["metric"]),
        f" ({where})." if where else ".",
    )
    trend: list[Sentence] = []
    kind = badge_of(row.to_dict())
    believed = kind != "warning" and sound.kind != "error"
    names = ", ".join(dict.fromkeys(str(one["metric"]) for one in other))
    if not believed:
        invalid = sound.kind == "error" or row["withheld"] in UNLIKE
        mark, which = (
            Badge("error" if invalid else "warning", "invalid" if invalid else "withheld"),
            ("The verdict is withheld (", Name(verdict), "): ", *pair),
        )
        amount: Sentence = (
            "No effect is shown here, since the comparison is not sound; the tables have the "
            "numbers.",
        )
    else:
        amount = (f"{effect_text(row.to_dict())}, {_users(row)}.",)
        trend = _trend_said(tables, row)
        if kind in ("better", "worse"):
            which = (Name(row["treatment"]), f" is {kind} than {the}", *pair[2:])
        else:
            which = (f"{verdict.capitalize()}: ", *pair)
        mark = Badge(
            "open" if kind == "open" else kind, kind if kind in ("better", "worse") else verdict
        )
        if names:
            mark = Badge("worse", f"harm on {names}") if kind == "open" else mark
            mark = Badge("warning", f"better, but worse on {names}") if kind == "better" else mark
    if tables.decision is not None:
        first = tables.decision.iloc[0]
        mark = Badge(DECISIONS[first["effect"]], str(first["decision"]))
    lines = [
        (WHICH, (*_decision_said(tables), which)),
        (HOW_MUCH, (amount, *trend)),
        (SURE, (soundness, *_test_words(table, row, believed))),
        (FOR_WHOM, (*_harms(harmed, believed), *_worse_segments(tables, row))),
        (DOUBTS, (*doubts_beside(tables.beside), *_warned(table))),
    ]
    return Section("verdict", "Verdict", badge=mark, lines=kept(lines))


def _test_words(table: pd.DataFrame, row: pd.Series, believed: bool) -> list[Sentence]:
    least = row.get("mde", np.nan)
    shown = f" An effect of {estimated(least)} is shown in 8 of 10 experiments of this size."
    p = f" p {_p(row['p_adj'])}." if believed else ""
    return [
        (
            f"{_users(row).capitalize()}; p-values "
            f"{adjustment(table).words}.{p}{'' if pd.isna(least) else shown}",
        )
    ]


def _harms(harmed: list[dict[Any, Any]], believed: bool) -> list[Sentence]:
    """Say every metric that is shown to be worse, with its effect."""
    said = []
    for one in harmed:
        effect = f" ({effect_text(one)}; p {_p(one['p_adj'])})" if believed else ""
        said.append(f"{one['pair']} on {one['metric']}{effect}")
    return [(f"Worse: {'; '.join(said)}.",)] if said else [("No metric is shown to be worse.",)]


def _worse_segments(tables: ReportTables, row: pd.Series) -> list[Sentence]:
    """Say in which segments the treatment of the headline is worse, on its metric."""
    given = tables.segments
    if given is None or "treatment" not in given.columns:
        return []
    own = given[(given["treatment"] == row["treatment"]) & (given["control"] == row["control"])]
    own = own[own["metric"] == row["metric"]]
    shrunken = "shrunken" in given.columns  # then no segment has a verdict of its own
    reasons = [] if shrunken else worse_for(own.to_dict("records"), segment_labels(own))
    said: list[Sentence] = [reason.said for reason in reasons]
    if "se" in given.columns and list(given.columns).index("metric") > 0:
        key = str(row["metric"]), str(row["treatment"]), str(row["control"])
        said += [
            (sentence,) for found, sentence in segment_sentences(given).items() if found == key
        ]
    return said


def _warned(table: pd.DataFrame) -> list[Sentence]:
    """Say the warnings of every effect that has one."""
    rows = [row for row in table.to_dict("records") if warnings_of(row["remarks"])]
    said: list[Sentence] = [
        (f"{row['pair']} on {row['metric']}: {note_of(row)}.",) for row in rows[:FEW]
    ]
    said += [(f"{len(rows) - FEW} more effects carry a warning.",)] if len(rows) > FEW else []
    return said or [("No effect carries a warning.",)]


def _users(row: pd.Series) -> str:
    return f"{int(row['n_treatment']):,} users against {int(row['n_control']):,}"


def _experiment_said(tables: ReportTables) -> list[Sentence]:
    """Say the first few effects of the first table, harms first, for the head of a page about
    models."""
    table = next(iter(tables.experiment.values()), None)
    if table is None:
        return []
    ordered = harm_first(table)
    said: list[Sentence] = [
        (
            f"Experiment, {row['treatment']} against {row['control']} on "
            f"{row['metric']}{f' ({where})' if where else ''}: {row['verdict']}, "
            f"{effect_text(row)}.",
        )
        for row, where in zip(
            ordered.head(FEW).to_dict("records"), segment_labels(ordered), strict=False
        )
    ]
    if len(table) > FEW:
        said.append((f"{len(table) - FEW:,} more effects stand in the section Experiment.",))
    return said


def _health_block(health: pd.DataFrame, most: int) -> TableBlock:
    rows = [
        (
            text(_arm(row)),
            value(row["n_assigned"], ",d"),
            value(row["share"], ".1%"),
            value(row["expected_share"], ".1%"),
            value(row["missing_rate"], ".1%"),
            value(row["srm_p"], ".3g"),
        )
        for row in health.to_dict("records")
    ]
    head = (
        "variant",
        "assigned",
        "share",
        "planned share",
        "without metrics",
        "p of the sample ratio",
    )
    shown, more = cut(rows, most)
    return TableBlock(
        "Users per variant",
        head,
        ("left", *["right"] * 5),
        shown,
        csv_of(health),
        "health.csv",
        more=more,
    )


# ------------------------------------------------------------------------------------------
# off-policy


def off_policy_section(tables: ReportTables, most: int) -> tuple[Section | None, list[Reason]]:
    """Show estimates of policies that did not run; a flagged estimate never stands without its
    flag."""
    table = tables.off_policy
    if table is None:
        return None, []
    frame = table.reset_index(drop=True)
    flags = [flag_words(found) for found in frame["flags"]]
    shown, more = cut(_estimates(frame, flags), most)
    by, lifts, optional = _off_policy_columns(frame)
    # What says whether to believe an estimate stands before it.
    head = [
        *by,
        "estimator",
        *(["clip"] if "clip" in optional else []),
        *(["trust"] if "trust" in optional else []),
    ]
    head += [
        "flags",
        "value [interval]",
        *(["lift over the logging policy", "lift [interval]"] if lifts else []),
    ]
    head += ["effective rows"] if "ess" in optional else []
    right = {"clip", "value [interval]", "lift [interval]", "effective rows"}
    align = tuple("right" if name in right else "left" for name in head)
    parts = TableBlock(
        "Estimates",
        tuple(head),
        align,
        shown,
        csv_of(table),
        "off-policy.csv",
        stacked=True,
        more=more,
    )
    flagged = sum(bool(found) for found in flags)
    said = "No off-policy estimate is flagged."
    if flagged:
        said = (
            f"{flagged} of {len(frame)} off-policy estimates "
            f"{'carries' if flagged == 1 else 'carry'} a flag."
        )
    useless = sum(map(_is_useless, frame.to_dict("records")))
    if useless:
        said += f" {useless} of them should not be used; the column trust says why."
    doubt = (
        " A flagged estimate can be far off, and its interval holds the true value less often than "
        "it says."
    )
    mark = Badge("warning", "flagged") if flagged else Badge("good", "no flag")
    sentence: Sentence = (said + (doubt if flagged else ""),)
    section = Section(
        "off-policy", "Off-policy estimates", text=(sentence,), badge=mark, tables=(parts,)
    )
    return section, [Reason((said,))]


def _off_policy_columns(frame: pd.DataFrame) -> tuple[list[str], bool, set[str]]:
    """Return the columns before the estimator, whether there are lifts, and which optional columns
    there are."""
    by = list(frame.columns[: list(frame.columns).index("estimator")])
    lifts = all(name in frame.columns for name in ("lift", "lift_ci_low", "lift_ci_high"))
    optional = {
        name
        for name in ("clip", "ess", "trust")
        if name in frame.columns and frame[name].notna().any()
    }
    return by, lifts, optional


def _estimates(frame: pd.DataFrame, flags: list[str]) -> list[tuple[Shown, ...]]:
    """Return one row per estimate; every row that has flags names them."""
    by, lifts, optional = _off_policy_columns(frame)
    records = frame.to_dict("records")
    kinds = [_kind_of_lift(row, lifts, found) for row, found in zip(records, flags, strict=True)]
    names = [str(row["estimator"]) for row in records]
    places = (
        bars(frame["lift"], frame["lift_ci_low"], frame["lift_ci_high"], kinds, names)
        if lifts
        else []
    )
    rows = []
    for i, row in enumerate(records):
        form = estimate_form(row["value"], row["ci_low"], row["ci_high"])
        cells = [*(text(row[name]) for name in by), text(row["estimator"])]
        cells += [value(row["clip"], "g")] if "clip" in optional else []
        cells += [text(row["trust"])] if "trust" in optional else []
        flag = badge("warning", flags[i]) if flags[i] else badge("good", "no flag")
        cells.append(flag._replace(cell=Cell(flag.cell.text, small=meaning_of(row["flags"]))))
        cells.append(value(row["value"], form, small=interval(row["ci_low"], row["ci_high"], form)))
        if lifts:
            plus = estimate_form(row["lift"], row["lift_ci_low"], row["lift_ci_high"], "+")
            bounds = interval(row["lift_ci_low"], row["lift_ci_high"], plus)
            cells += [places[i], value(row["lift"], plus, small=bounds)]
        cells += [value(row["ess"], ",.0f")] if "ess" in optional else []
        rows.append(tuple(cells))
    return rows


def flag_words(found: Any) -> str:
    """Return flags as one text, whether they are a text or a list."""
    if isinstance(found, str):
        return found.replace("_", " ")
    if isinstance(found, list | tuple | np.ndarray):
        return ", ".join(str(flag).replace("_", " ") for flag in found)
    return "" if pd.isna(found) else str(found)


def meaning_of(found: Any) -> str:
    """Return what the flags of an estimate mean, in sentences."""
    names = (
        found.replace(" ", "").split(",")
        if isinstance(found, str)
        else list(found)
        if np.iterable(found)
        else []
    )
    return "; ".join(MEANINGS[name] for name in names if name in MEANINGS)


def off_policy_card(tables: ReportTables) -> Section | None:
    """Return the verdict about the first off-policy estimate: its trust is the badge."""
    if tables.off_policy is None:
        return None
    frame = tables.off_policy.reset_index(drop=True)
    row, flags = frame.iloc[0], flag_words(frame["flags"].iloc[0])
    by, lifts, _ = _off_policy_columns(frame)
    trust = str(row["trust"]) if _has_values(frame, "trust") else flags or "no flag"
    useless = _is_useless(row.to_dict())
    mark = Badge("error" if useless else "warning" if flags else "good", trust)
    name = " · ".join(str(row[column]) for column in by) or "The target policy"
    which: Sentence = (
        Name(name),
        f", estimated by {row['estimator']}, is the first of {len(frame)} estimates.",
    )
    amount = f"Value {estimated(row['value'], row['ci_low'], row['ci_high'])}"
    if lifts:
        lift = estimated(row["lift"], row["lift_ci_low"], row["lift_ci_high"], "+")
        amount += f", {lift} beside the logging policy"
    hidden = (
        "No value is shown here, since the estimate should not be used; the table has the numbers."
    )
    rows = f"{number(row['ess'], ',.0f')} effective rows" if "ess" in frame.columns else ""
    worse = [
        f"{' · '.join(str(one[c]) for c in by)} by {one['estimator']}"
        for one in frame.to_dict("records")
        if lifts and _kind_of_lift(one, lifts, flag_words(one["flags"])) == "worse"
    ]
    if tables.decision is not None:
        first = tables.decision.iloc[0]
        mark = Badge(DECISIONS[first["effect"]], str(first["decision"]))
    lines = [
        (WHICH, (*_decision_said(tables), which)),
        (HOW_MUCH, ((hidden if useless else f"{amount.rstrip()}.",),)),
        (SURE, ((f"Trust: {trust}. {rows}".rstrip(". ") + ".",),)),
        (
            FOR_WHOM,
            (
                (
                    f"Worse than the logging policy: {', '.join(worse)}."
                    if worse
                    else "No estimate without a flag is below the logging policy.",
                ),
            ),
        ),
        (
            DOUBTS,
            (
                (
                    f"Flags: {flags}. {meaning_of(row['flags'])}.".replace("..", ".")
                    if flags
                    else "The estimate carries no flag.",
                ),
            ),
        ),
    ]
    return Section("verdict", "Verdict", badge=mark, lines=kept(lines))


def _is_useless(row: dict[Any, Any]) -> bool:
    """Whether neither value nor interval of an estimate may be used."""
    return bool(row.get("withheld")) and not row["effect"]


def _kind_of_lift(row: dict[Any, Any], lifts: bool, flags: str) -> BadgeKind:
    """Return the look of an estimate; a flagged one never looks like a result."""
    if flags:
        return "warning"
    if not lifts or pd.isna(row["lift_ci_low"]):
        return "open"
    return "better" if row["lift_ci_low"] > 0 else "worse" if row["lift_ci_high"] < 0 else "open"

"""The verdict about the models of a result: six lines and a badge, from the codes of the tables,
and what could overturn it: lists that models lack, orders of ties, findings in the data.

Contract: docs/report.md has the rules. A line is a function of rows and nothing else. What would
change the verdict stands in the badge, and "So" asks for no more than the badge allows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...experiments.compare.cheap_labels import compared_labels
from ...experiments.compare.comparable_runs import sentence_of_both
from ...experiments.decide.adjust_pvalues import adjustment
from ...judge.cautions import FEW_LISTS
from ...judge.cautions.table import CAUTIONS
from ...judge.verdict import (
    codes_of,
    hides_harm,
    is_withheld,
    says_worse,
    sign_of,
    turned,
    warning_sentences,
    warnings_of,
)
from ...tables.cells import (
    amount,
    doing,
    estimate_form,
    estimated,
    is_one_sided,
    number,
    visible,
)
from ..given_tables import (
    ONLY,
    count_range,
    list_places,
    model_rows,
    sides_of_tests,
    words_of_tests,
)
from ..kinds import TABLE_KINDS
from ..leaderboard_values import seed_sentences
from ..row_words import sides_of
from .page_blocks import (
    BESIDE,
    FOR_WHOM_WORSE,
    OVERTURN,
    Badge,
    Case,
    Reason,
    Section,
    TableRow,
    effect_text,
    listed,
    look_of,
    name_of,
    plain,
)
from .report_inputs import BOTH_SIDES, GivenTable, Subject

POWER_Z = 0.8416  # of the normal distribution: 8 of 10
OUT_OF_REACH = 100  # times as many lists as there are
TOO_FEW = ("few_lists", "few_lists_differ")
MANY_NAMED = 5
# What `rd.audit` finds of rows that a model must not know: the rows, and whether many of them leave
# nothing to decide. The others temper a verdict.
LEAKS = {
    "true_in_train": ("of the test rows stand in train", True),
    "train_after_cutoff": ("of the rows of train are later than the cut-off", True),
    "true_before_cutoff": ("of the test rows are before the cut-off", True),
    "train_after_own": ("of the rows of train are later than the user's test rows", False),
    "hits_cold": ("of the hits are items that train does not know", False),
}
SOME, MANY = 0.01, 0.1  # shares of rows from which a leak tempers and withholds a verdict
NO_BETTER = ("below_chance", "at_chance", "below_popularity", "at_popularity")
TIE_FINDINGS = ("ties", "ties_across_k", "constant_scores", "repeated_ranks")  # findings about them
NO_DIRECTION = "Decide by a metric that has a direction."
# What to do where a row is neither better nor worse, nor open.
OPEN_ACTIONS = {
    "equivalent": "Choose between the two by other means than this metric.",
    **dict.fromkeys(("higher", "lower"), NO_DIRECTION),
    **dict.fromkeys(
        ("ranks_higher", "ranks_lower"), "Do not act: the test says nothing of the mean."
    ),
}


def pair_row(table: pd.DataFrame, metric: str, model: str, rival: str) -> tuple[Any, int]:
    """Return the one row about two models as `model` sees it, None if it is not there, and how many
    tests of the metric were adjusted together with it."""
    on = (table["metric"].astype(str) == metric).to_numpy(bool)
    sides = [*zip(table["model"].map(str), table["baseline"].map(str), strict=True)]
    places = [i for i, two in enumerate(sides) if on[i] and {*two} == {model, rival}]
    if len(places) != 1:  # no row, or rows of several segments, none of which is about all lists
        return None, 0
    row = table.iloc[places[0]].to_dict()
    row = row if sides[places[0]] == (model, rival) else turned(row)
    return row, adjustment(table).among(places[0], on)


def card_section(case: Case) -> Section:
    """Return a card with its lines that say something. Each reason is told in its line, and what
    it objects to the case is added to the badge."""
    badge, action, which = case.badge, case.action, case.which
    stop = next((one.badge for one in case.reasons if one.stops), None)
    words = dict.fromkeys(one.badge for one in case.reasons if one.badge)
    if stop is not None:
        badge, action = Badge("error", f"withheld: {stop}"), f"Do not act: {stop}."
        if case.stands:
            first = f"Nothing is decided. By the numbers as they stand: {which[0]}"
            which = [first, *which[1:]]
    elif words and case.stands:
        beside = " and " if badge.kind == "warning" else ", but "
        actions = (one.action for one in case.reasons if one.badge and one.action)
        badge = Badge("warning", f"{badge.text}{beside}{' and '.join(words)}")
        action = f"Do not act yet: {next(actions, 'find out why')}."
    elif badge.kind == "better":
        watch = (one for one in case.reasons if one.line == FOR_WHOM_WORSE and not one.badge)
        action += "".join(one.action for one in watch)
    lines = {"Which": which, "By how much": case.amounts, "How sure": case.sure}
    for line in (FOR_WHOM_WORSE, OVERTURN, BESIDE):
        lines[line] = [one.said for one in case.reasons if one.line == line and one.said]
    lines["So"] = [action]
    said = [(name, sentences) for name, sentences in lines.items() if sentences]
    return Section("verdict", "Verdict", badge=badge, lines=said)


def case_of_row(row: TableRow, new: str, than: str, ship: str, keep: str) -> Case:
    """Return what the row of a headline says before anything speaks against it. `than` names what
    is compared with and the metric; `ship` and `keep` are what to do where it is better, and where
    nothing is shown."""
    verdict, kind = str(row["verdict"]), look_of(row)
    which = f"{verdict[:1].upper()}{verdict[1:]}: {new} against {than}."
    badge, action = Badge("open", verdict), OPEN_ACTIONS.get(row["effect"], keep)
    if is_withheld(row):
        few = row["withheld"] in TOO_FEW
        badge = Badge("warning", "too few lists to tell" if few else "withheld")
        which = f"The verdict is withheld ({verdict}): {new} against {than}."
        action = f"Do not act: {CAUTIONS[row['withheld']].sentence}."
        if few:
            action = "Collect more lists: a verdict needs 20 that differ."
        if row["withheld"] == "few_lists":
            more = max(1, FEW_LISTS - int(row["n_users"]))
            action = f"Collect {amount(more, 'more list')} at least: a verdict needs {FEW_LISTS}."
    elif kind == "warning":
        badge = Badge(kind, verdict)
        action = "Do not act on the mean: find out why lists are missing."
    elif kind != "open":
        badge, which = Badge(kind, kind), f"{new} is {kind} than {than}."
        action = ship if kind == "better" else f"Do not ship {new}."
    return Case(badge, [which], action, not is_withheld(row), row=row)


def models_card(subject: Subject, check: GivenTable, said: Sequence[Reason]) -> Section:
    """Return the card about the models of a result; `said` is what other sections say of it."""
    case, together = _case(subject)
    row = case.row
    own = sorted(_overturning(subject, check, case), key=lambda one: (not one.stops, not one.badge))
    harms, others = _other_metrics(subject, row)
    reasons = [*own, *harms, *said]
    if all(one.line != FOR_WHOM_WORSE for one in said):
        reasons.append(Reason("Not looked at: segments of users (segments=).", line=FOR_WHOM_WORSE))
    shown = could_show(row, "With so many lists, a difference of {}", "cases")
    amounts = [*([] if row is None else _amount(subject, row, together)), *others]
    sure = [*_belief(subject, row), *shown]
    return card_section(case._replace(amounts=amounts, sure=sure, reasons=reasons))


# -- which


def _case(subject: Subject) -> tuple[Case, int]:
    """Return what the first metric says of the best model, by the rules of docs/report.md, and how
    many tests were adjusted together."""
    metric, best = subject.primary, subject.order[0]
    values, named, pair = subject.values(metric), subject.name(metric), subject.pair
    if pair is None:
        at: Any = values.loc[best]
        which = f"{named} is {estimated(at['value'], at['ci_low'], at['ci_high'])}. One model was "
        which += "evaluated: nothing is compared."
        todo = "Compare it with a baseline before acting on it."
        return Case(Badge("info", "one model"), [which], todo), 0
    why = "has no value per user to test" if subject.comparison.empty else ""
    why = why if subject.better(metric) else "has no better direction"
    why = "is undefined for every list" if values["value"].isna().all() else why
    which = f"the first metric, {named}, {why}."
    todo = "Name a metric first that has a direction and a value for each list."
    if not why:
        if best == pair[1]:
            return _baseline_stays(subject)
        row, together = pair_row(subject.comparison, metric, *pair)
        if row is not None:
            return _of_pair(subject, row, together), together
        which = "the comparison that was given has not one row of "
        which += f"{subject.name(best)} and {subject.name(pair[1])} on {named}."
        todo = "Compare the two on all lists."
    return Case(Badge("open", "no verdict"), [f"There is no verdict: {which}"], todo), 0


def _of_pair(subject: Subject, row: TableRow, together: int) -> Case:
    """Return what the row about the best model and its rival says. Say that the model was picked
    among several, and whether the tests take that into account. Name the models beside the pair
    that are not shown to be worse than it, over all pairs of models."""
    best, rival, n = subject.name(row["model"]), subject.name(row["baseline"]), len(subject.models)
    table, also, against, keep = subject.pairs, "", "the second best, ", ""
    said = [f"It {_best_mean(subject)} of {n} models."]
    if n > 2:
        counted = "taken into account" if together >= n - 1 else "not taken into account"
        how = adjustment(subject.comparison).words
        said[0] += f" That it was picked among several is {counted}: the p-values are {how}."
    if subject.baseline is None:
        said.append("No baseline was named, so the best model is compared with the second best.")
    else:
        against, keep = "the baseline ", f"Keep {rival}. "
    others = [one for one in subject.order if one not in (row["model"], row["baseline"])]
    rows = {one: pair_row(table, subject.primary, row["model"], one)[0] for one in others}
    known = {one: found for one, found in rows.items() if found is not None}
    if known and row["withheld"] not in TOO_FEW:
        how = f"over all {amount(len(table), 'pair')}, p-values {adjustment(table).words}"
        alike = [subject.name(one) for one, found in known.items() if sign_of(found) != "better"]
        named = f"Not shown to be worse than {best}: {listed(alike, MANY_NAMED, 'model')}"
        each = "The other model is" if len(known) == 1 else "Each of the others is"
        said.append(f"{named if alike else f'{each} shown to be worse than {best}'} ({how}).")
        if alike:
            also = f"; it is not shown to be better than {listed(alike, 2, 'model')}"
    users = float(row["n_users"])
    keep += collect(row, users, "list" if row.get("n_lists") == users else "user")
    than = f"{against}{rival} on {subject.name(subject.primary)}"
    case = case_of_row(row, best, than, f"Ship {best} to a test{also}.", keep)
    return case._replace(which=[*case.which, *said])


def _baseline_stays(subject: Subject) -> tuple[Case, int]:
    """Return what the rows say where the baseline has the best mean."""
    base, *others = subject.order
    table, keep, metric = subject.comparison, subject.name(base), subject.name(subject.primary)
    found = [pair_row(table, subject.primary, one, base) for one in others]
    (first, together), rows = found[0], [row for row, _ in found if row is not None]
    shown = [subject.name(row["model"]) for row in rows if sign_of(row) != "worse"]
    doubted = [row for row in rows if look_of(row) == "warning"]
    better = "shown to be better" if shown or len(rows) < len(found) else "better"
    which = f"No model is {better} than the baseline {keep}, which {_best_mean(subject)} of "
    case = Case(Badge("open", "keep the baseline"), [], f"Keep {keep}.", True, row=first)
    said = [f"{which}{metric}."]
    if better == "better":
        each = "Each of the others" if len(rows) > 1 else subject.name(others[0])
        return case._replace(which=[*said, f"{each} is shown to be worse."]), together
    if doubted:  # what is better where both have lists comes first
        row = min(doubted, key=lambda row: (is_withheld(row), row.get("effect_both") != "better"))
        case = case_of_row(row, subject.name(row["model"]), f"{keep} on {metric}", "", "")
        said += case.which
    elif first is not None:
        said.append(f"The next best is {subject.name(first['model'])}: {first['verdict']}.")
    if len(shown) > 1 and not (doubted and case.row and case.row["withheld"] in TOO_FEW):
        named = f"Not shown to be worse than {keep}: {listed(shown, MANY_NAMED, 'model')}"
        said.append(f"{named} (p-values {adjustment(table).words}).")
    return case._replace(which=said), together


def collect(row: TableRow, n: float, unit: str) -> str:
    """Say how many more lists or users than n would show a difference of the size that was
    found."""
    diff, least = row["diff"], least_shown(row)
    if (row["ci_low"] == -math.inf and diff > 0) or (row["ci_high"] == math.inf and diff < 0):
        return "Test it two-sided: this test cannot show a difference on this side."
    more = n * ((least / diff) ** 2 - 1) if least is not None and diff else 0.0
    if more <= 0:
        return f"More {unit}s would show a difference only if there is one."
    if more >= OUT_OF_REACH * n:
        return f"The difference is too small for any number of {unit}s within reach."
    step = 10 ** max(0, math.floor(math.log10(more)) - 1)
    rounded = max(1, math.ceil(more / step) * step)
    enough = "with so many, a difference of this size is shown in 8 of 10 cases"
    return f"Collect about {amount(rounded, f'more {unit}')}: {enough}."


def least_shown(row: TableRow) -> float | None:
    """Return the difference that so many lists or users show in 8 of 10 cases, with the interval
    of the row, which is adjusted as its test is."""
    ends = [abs(row[end] - row["diff"]) for end in ("ci_low", "ci_high")]
    finite, se = [end for end in ends if math.isfinite(end)], row.get("se")
    half = sum(finite) / len(finite) if finite else 0.0
    if half and pd.notna(se) and se > 0:
        return float(half + POWER_Z * se)
    return None if pd.isna(row.get("mde")) else float(row["mde"])


def _best_mean(subject: Subject) -> str:
    """Say whether the model with the best mean has it alone."""
    values = subject.values(subject.primary)["value"]
    alone = (values == values[subject.order[0]]).sum() == 1
    return "has the best mean" if alone else "shares the best mean"


# -- by how much, how sure


def _amount(subject: Subject, row: TableRow, together: int) -> list[str]:
    """Say the difference, its interval, how many gain and lose, and the warnings of the row."""
    smaller, codes = subject.better(subject.primary) == "smaller", codes_of(row["remarks"])
    gain, lose = (int(row.get(one, 0)) for one in ("wins", "losses")[:: -1 if smaller else 1])
    judged = " whose lists people judged" if "n_human" in row else ""
    new, old = (subject.name(row[side]) for side in BOTH_SIDES)
    text = f"{new} − {old}: {effect_text(row)}. {gain:,} of "
    text += f"{amount(row['n_users'], 'user')}{judged} "
    text += f"{'gains' if gain == 1 else 'gain'} and {doing(lose, 'lose')}."
    if together > 1:
        text += " The interval holds for all comparisons of the page together."
    warned = [code for code in warnings_of(row["remarks"]) if code != row["withheld"]]
    said = [text + "".join(f" Warning: {CAUTIONS[code].sentence}." for code in warned)]
    if "different_lists" in codes and "n_lists" in row:
        both = int(row["n_lists"])
        n_new, n_old = (both + int(row[f"n_only_{side}"]) for side in BOTH_SIDES)
        said.append(
            f"{new} has a value for {amount(n_new, 'list')}, {old} for {n_old:,}, and both "
            f"for {both:,}."
        )
    elif "different_lists" in codes:
        how_many = "a comparison with details=True says for how many (n_only_model)"
        said.append(f"Some lists have a value for one of the two; {how_many}.")
    return said


def _belief(subject: Subject, row: TableRow | None) -> list[str]:
    """Say what stands behind the numbers: the test, the number of lists, the correction, the
    warnings."""
    table = subject.comparison
    if table.empty:
        return []
    rows = table if row is None else pd.DataFrame([row])
    units = [unit for unit in ("list", "user") if f"n_{unit}s" in rows.columns]
    if len(units) == 2 and {*rows["n_lists"]} == {*rows["n_users"]}:
        units = ["list"]
    n = " of ".join(count_range(rows[f"n_{unit}s"], unit) for unit in units)
    empty = subject.result.per_user.get("n_pred", pd.Series(1)).eq(0).any() and subject.of_accuracy
    counted = ", where a list without recommendations counts as 0" if empty else ""
    tests, words = words_of_tests(table), adjustment(table).words
    return [
        f"{tests[:1].upper()}{tests[1:]} on {n}{counted}; p-values {words}.",
        *one_sided(rows),
        *compared_labels(table),
        *(warning_sentences(table) or ["No comparison carries a warning."]),
    ]


def one_sided(rows: pd.DataFrame) -> list[str]:
    """Say what one-sided tests can show: nothing on the other side."""
    if not (side := sides_of_tests(rows)):
        return []
    sides = sides_of(rows)
    new, old = (rows[one].map(name_of).unique() for one in sides)
    one = len(new) == len(old) == 1
    who = (new[0], old[0]) if one else (f"a {sides[0]}", f"its {sides[1]}")
    can = f"they can show that {who[0]} has {side} values than {who[1]}"
    return [f"The tests are one-sided: {can}, and nothing else."]


def could_show(row: TableRow | None, of_size: str, cases: str) -> list[str]:
    """Say which difference so many lists or users show in 8 of 10 cases."""
    least = None if row is None else least_shown(row)
    if row is None or least is None:
        return []
    sign, ends = "", (row["ci_low"], row["ci_high"])
    if is_one_sided(*ends):
        sign, least = "+", least if ends[1] == math.inf else -least
    return [f"{of_size.format(estimated(least, sign=sign))} is shown in 8 of 10 {cases}."]


# -- for whom worse


def _other_metrics(subject: Subject, row: TableRow | None) -> tuple[list[Reason], list[str]]:
    """Return on which other metrics the model of the headline is worse, and what the others
    show."""
    harms, by_words = list[Reason](), dict[str, list[str]]()
    model, rival = ("", "") if row is None else (str(row[side]) for side in BOTH_SIDES)
    of_best = model == subject.order[0]
    for column in subject.columns[1:]:
        other, _ = pair_row(subject.comparison, column, model, rival)
        if other is None:
            continue
        name = plain(subject.name(column))
        if says_worse(other):
            who = f"{subject.name(model)} against {subject.name(rival)} on {subject.name(column)}"
            said = f"{who}: {other['verdict']}, {effect_text(other)}."
            worse, todo = f"worse on {name}" * of_best, f"weigh the loss on {name} first"
            harms.append(Reason(said, worse, todo * of_best, line=FOR_WHOM_WORSE))
            continue
        if hides_harm(other, subject.better(column)) and of_best:
            harms.append(undecided_harm(name))
        verdict = "verdict withheld" if is_withheld(other) else str(other["verdict"])
        by_words.setdefault(verdict, []).append(name)
    parts = "; ".join(f"{words} on {', '.join(names)}" for words, names in by_words.items())
    others = [f"On other metrics: {parts}."] if parts else []
    nothing = "Nothing was compared beside the first metric."
    nothing = "No other metric is shown to be worse." if others else nothing
    return harms or [Reason(nothing, line=FOR_WHOM_WORSE)], others


def undecided_harm(names: str) -> Reason:
    """Return what speaks against a verdict where the numbers of a withheld one say worse."""
    said = f"By numbers whose verdict is withheld, it is worse on {names}."
    todo = f"settle first whether {names} is worse"
    return Reason(said, f"perhaps worse on {names}", todo, line=FOR_WHOM_WORSE)


# -- what could overturn it


def _overturning(subject: Subject, check: GivenTable, case: Case) -> Iterator[Reason]:
    """Yield what could overturn the verdict, from the result and from what was found in its
    data."""
    row, rows, per_user = case.row, model_rows(subject.result), subject.result.per_user
    names = {model: plain(subject.name(model)) for model in rows}
    models = list(subject.models) if row is None else [str(row[side]) for side in BOTH_SIDES]
    if "n_pred" in per_user.columns and rows:
        # How many of the lists of the population each model lacks.
        n, n_pred = len(list_places(subject.result, rows).first_row), per_user["n_pred"].to_numpy()
        lacks = {one: n - int(np.count_nonzero(n_pred[own])) for one, own in rows.items()}
        lacking = [
            f"{names[one]} lacks {lost:,} of {n:,} ({lost / n:.1%})"
            for one, lost in lacks.items()
            if lost
        ]
        as_zero = any(len(own) == n for one, own in rows.items() if lacks[one])
        counts = ", which count as 0" if as_zero and subject.of_accuracy else ""
        said = f"Lists without recommendations{counts}: {listed(lacking, MANY_NAMED, 'model')}."
        each = "Every model has" if len(rows) > 1 else "The model has"
        yield Reason(said if lacking else f"{each} recommendations for all lists.")
    if row is not None:
        both = {side: plain(subject.name(row[side])) for side in BOTH_SIDES}
        yield Reason(sentence_of_both({**row, **both}))
        for i, said in enumerate(seed_sentences(subject.result, pd.DataFrame([row]))):
            beyond = "not beyond the spread over seeds" if i and sign_of(row) != "open" else ""
            yield Reason(said, beyond, "train each model with more seeds")
    if subject.of_accuracy and {"n_pred", subject.primary} <= {*per_user.columns}:
        # A model has lists and not one hit, as with ids of another kind.
        for model in models:
            own = per_user[["n_pred", subject.primary]].take(rows[model]).astype("Float64")
            n = int((own["n_pred"] > 0).sum())
            if n and not (own[subject.primary].abs() > 0).any():
                name = names[model]
                said = f"{name} has {amount(n, 'list')} and not one hit: are its ids those of true?"
                yield Reason(said, f"{name} has no hit", f"check the ids of {name}")
    if check is None:
        yield Reason(
            "Not looked at: ties, ids, sampled candidates and leaks; check= takes what rd.check or "
            "rd.audit returned."
        )
        return
    by = check["by"] if "by" in check.columns else pd.Series("", check.index)
    known = check[by.isin(["", *models])]
    if row is not None:
        yield from _of_ties(subject, known, row)
    is_better = case.badge.kind == "better"
    for one in known[known["severity"].isin(["error", "warning"])].to_dict("records"):
        # Ties and lacking lists are said in sentences of their own.
        if one["code"] not in (*TIE_FINDINGS, "no_recommendations"):
            # Findings of an audit name their metric; those of a check have none.
            of_best = (one.get("metric"), one.get("by")) == (subject.primary, models[0])
            yield _of_finding(one, of_best and one["code"] in NO_BETTER, is_better)


def _of_finding(one: TableRow, no_better: bool, is_better: bool) -> Reason:
    """Return what was found in the data, with what it does to a verdict. `no_better` tells that the
    best model is no better than chance or popularity."""
    code, share, badge, action = one["code"], one["share"], "", ""
    leak, many_stop = LEAKS.get(code, ("", False))
    if leak and share >= SOME:
        badge, action = f"{number(share, '.0%')} {leak}", "take them out"
    elif no_better and is_better:
        badge = code.replace("_", " ")
        action = "find out why the model is no better than that"
    elif one["severity"] == "error" and not no_better:
        badge, action = "the data have errors", "mend the data"
    elif code == "sampled":
        badge, action = "among sampled candidates", "rank all items"
    return Reason(TABLE_KINDS["check"].said(one), badge, action, many_stop and share >= MANY)


def _of_ties(subject: Subject, check: pd.DataFrame, row: TableRow) -> Iterator[Reason]:
    """Say how far other orders of equal scores could move the difference, and whether that changes
    the verdict."""
    column, moves, words = subject.primary, dict[str, tuple[float, float]](), []
    for one in check[check["code"].isin(TIE_FINDINGS)].to_dict("records"):
        if not one["ranges"]:
            continue
        if one["by"] == "" and len(subject.models) > 1:
            effect = visible(one["effect"])
            yield Reason(f"Ties: {effect}, of all models together; pass by= to rd.check.")
            return
        model = one["by"] or ONLY
        name, found = plain(subject.name(model)), json.loads(one["ranges"]).get(column)
        if found is None:
            lists = amount(one["count"], "list")
            words.append(f"{lists} of {name}; what that does to {column} is not known")
            continue
        at: Any = subject.values(column).loc[model]
        moves[model] = (min(found[0] - at["value"], 0.0), max(found[1] - at["value"], 0.0))
        form = estimate_form(at["value"], at["ci_low"], at["ci_high"])
        low, high, is_now = (number(end, form) for end in (*found, at["value"]))
        moved = f"could be {low} to {high}, where it is {is_now}"
        words.append(f"{column} of {name} {f'stays at {low}' if low == high else moved}")
    if not words:
        return
    said, turns = f"Under other orders of equal scores: {'; '.join(words)}.", False
    if moves:
        own, other = (moves.get(str(row[side]), (0.0, 0.0)) for side in BOTH_SIDES)
        shifts = [0.0, own[0] - other[1], own[1] - other[0]]
        # What the interval would show if the difference were moved.
        least, most = (
            row["diff" if pd.isna(row[end]) else end] + np.array(shifts)
            for end in ("ci_low", "ci_high")
        )
        turns = len({*np.where(least > 0, 1, np.where(most < 0, -1, 0))}) > 1
        form = estimate_form(row["diff"], row["ci_low"], row["ci_high"], "+")
        low, high = (number(row["diff"] + shift, form) for shift in shifts[1:])
        what = "so that the verdict depends on it" if turns else "and the verdict stays"
        ends = f"could be {low} to {high}, {what}" if low != high else f"stays at {low}"
        said += f" The difference {ends}."
    todo = "break the ties of the scores, and evaluate again"
    yield Reason(said, "not robust: ties" if turns else "", todo)

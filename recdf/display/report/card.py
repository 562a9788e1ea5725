"""The verdict of a page, of models and of experiments: lines and a badge, from the codes of the
tables, and what could overturn it: lists that models lack, orders of ties, findings in the data.

Contract: docs/report.md has the rules. A line is a function of rows and nothing else. What would
change the verdict stands in the badge, and "So" asks for no more than the badge allows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...experiments.compare.cheap_labels import compared_labels
from ...experiments.compare.paired import sentence_of_both
from ...experiments.decide.adjust_pvalues import adjustment
from ...judge.cautions import FEW_LISTS, FEW_UNITS
from ...judge.cautions.table import CAUTIONS
from ...judge.comparisons import sides_of, sides_of_tests, unit_of_rows, words_of_tests
from ...judge.verdict import (
    codes_of,
    hides_harm,
    is_withheld,
    says_worse,
    sentence,
    sign_of,
    turned,
    unit_of_method,
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
)
from ..given_tables import (
    ONLY,
    count_range,
    list_places,
    model_rows,
    model_values,
)
from ..kinds import TABLE_KINDS
from ..leaderboard_values import seed_sentences
from ..page_blocks import (
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
from .about_models import BOTH_SIDES, GivenTable, Subject

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
SOME = 0.01  # share of rows from which a leak tempers a verdict
MANY = 0.1  # and from which it withholds one
NO_BETTER = ("below_chance", "at_chance", "below_popularity", "at_popularity")
TIE_FINDINGS = ("ties", "ties_across_k", "constant_scores", "repeated_ranks")  # findings about them
# What to do where a row is neither better nor worse, nor open.
OPEN_ACTIONS = {
    "equivalent": "Choose between the two by other means than this metric.",
    **dict.fromkeys(("higher", "lower"), "Decide by a metric that has a direction."),
    **dict.fromkeys(
        ("ranks_higher", "ranks_lower"), "Do not act: the test says nothing of the mean."
    ),
}


def pair_row(table: DataFrame, metric: str, model: str, rival: str) -> TableRow | None:
    """Return the one row about two models as `model` sees it, and as `together` how many tests of
    the metric were adjusted with it; None if it is not there."""
    on = table["metric"].map(str).eq(metric).to_numpy(bool)
    places = np.flatnonzero(on & table[[*BOTH_SIDES]].astype(str).isin([model, rival]).all(axis=1))
    if len(places) != 1:  # no row, or rows of several segments, none of which is about all lists
        return None
    row = table.iloc[places[0]].to_dict()
    row = row if str(row["model"]) == model else turned(row)
    return {**row, "together": adjustment(table).among(places[0], on)}


def card_section(case: Case) -> Section:
    """Return a card with its lines that say something. Each reason is told in its line, and what
    it objects to the case is added to the badge."""
    badge = case.badge
    action = case.action
    which = [*case.which]
    reasons = case.reasons
    against = [one for one in reasons if one.badge]
    if stop := next((one.badge for one in against if one.stops), ""):
        badge = Badge("error", f"withheld: {stop}")
        action = f"Do not act: {stop}."
        if case.can_be_tempered:
            which[0] = f"Nothing is decided. By the numbers as they stand: {which[0]}"
    elif against and case.can_be_tempered:
        beside = " and " if badge.kind == "warning" else ", but "
        words = " and ".join(dict.fromkeys(one.badge for one in against))
        badge = Badge("warning", f"{badge.text}{beside}{words}")
        action = next((one.action for one in against if one.action), "find out why")
        action = f"Do not act yet: {action}."
    elif badge.kind == "better":
        action = " ".join([action, *(one.watch for one in reasons if one.watch)])
    lines = {"Which": which, "By how much": case.amounts, "How sure": case.sure}
    for line in (FOR_WHOM_WORSE, OVERTURN, BESIDE):
        lines[line] = [one.said for one in reasons if one.line == line and one.said]
    lines["So"] = [action]
    said = [one for one in lines.items() if one[1]]
    return Section("verdict", "Verdict", badge=badge, lines=said)


def case_of_row(row: TableRow, new: str, than: str, ship: str, keep: str) -> Case:
    """Return what the row of a headline says before anything speaks against it. `than` names what
    is compared with and the metric; `ship` and `keep` are what to do where it is better, and where
    nothing is shown."""
    verdict = row["verdict"]
    kind = look_of(row)
    held = is_withheld(row)
    which = f"{verdict[:1].upper()}{verdict[1:]}: {new} against {than}."
    word = verdict
    action = OPEN_ACTIONS.get(row["effect"], keep)
    if held:
        few = row["withheld"] in TOO_FEW
        word = "too few lists to tell" if few else "withheld"
        which = f"The verdict is withheld ({verdict}): {new} against {than}."
        action = f"Do not act: {CAUTIONS[row['withheld']].sentence}."
        if few:
            action = f"Collect more lists: a verdict needs {FEW_UNITS} that differ."
        if row["withheld"] == "few_lists":
            more = max(1, FEW_LISTS - int(row["n_users"]))
            action = f"Collect {amount(more, 'more list')} at least: a verdict needs {FEW_LISTS}."
    elif kind == "warning":
        action = "Do not act on the mean: find out why lists are missing."
    elif kind != "open":
        word = kind
        said = f"{new} is {kind} than {than}"
        which = f"{sentence('models', said, '', codes_of(row['remarks']), row)}."
        action = ship if kind == "better" else f"Do not ship {new}."
    return Case(Badge(kind, word), [which], action, not held, row=row)


def models_card(subject: Subject, check: GivenTable, said: Sequence[Reason]) -> Section:
    """Return the card about the models of a result; `said` is what other sections say of it."""
    case = _case(subject)
    row = case.row
    own = sorted(_overturning(subject, check, case), key=lambda one: (not one.stops, not one.badge))
    harms, others = _other_metrics(subject, row)
    reasons = [*own, *harms, *said]
    sure = _belief(subject, row)
    if all(one.line != FOR_WHOM_WORSE for one in said):
        reasons.append(Reason("Not looked at: segments of users (segments=).", line=FOR_WHOM_WORSE))
    if row:
        others = [*_amount(subject, row), *others]
        sure += could_show(row)
    return card_section(case._replace(amounts=others, sure=sure, reasons=reasons))


# -- which


def _case(subject: Subject) -> Case:
    """Return what the first metric says of the best model, by the rules of docs/report.md."""
    metric = subject.primary
    best = subject.order[0]
    values = subject.values(metric)
    named = subject.name(metric)
    pair = subject.pair
    if not pair:
        at = values.loc[best]
        which = f"{named} is {estimated(at['value'], at['ci_low'], at['ci_high'])}. One model was "
        which += "evaluated: nothing is compared."
        todo = "Compare it with a baseline before acting on it."
        return Case(Badge("info", "one model"), [which], todo)
    todo = "Name a metric first that has a direction and a value for each list."
    if values["value"].isna().all():
        why = "is undefined for every list"
    elif not subject.better(metric):
        why = "has no better direction"
    elif subject.comparison.empty or metric not in subject.result.per_user:
        why = "has no value per user to test"
    elif best == pair[1] and any(
        pair_row(subject.comparison, metric, one, best) for one in subject.order[1:]
    ):
        return _baseline_stays(subject)
    elif row := pair_row(subject.comparison, metric, *pair):
        return _of_pair(subject, row)
    else:
        why = f"has not one row of {' and '.join(map(subject.name, pair))} in the comparison that "
        why += "was given"
        todo = "Compare the two on all lists."
    which = f"There is no verdict: the first metric, {named}, {why}."
    return Case(Badge("open", "no verdict"), [which], todo)


def _of_pair(subject: Subject, row: TableRow) -> Case:
    """Return what the row about the best model and its rival says. Say that the model was picked
    among several, and whether the tests take that into account. Name the models beside the pair
    that are not shown to be worse than it, over all pairs of models."""
    best = subject.name(row["model"])
    rival = subject.name(row["baseline"])
    n = len(subject.models)
    table = subject.pairs
    also = ""
    against = "the second best, "
    keep = ""
    said = [f"It {_best_mean(subject)} of {n} models."]
    if n > 2:
        told = adjustment(subject.comparison)
        taken = told.allows_for(row["together"], n - 1)
        said[0] += f" That it was picked among several {taken} taken into account: the p-values "
        said[0] += f"are {told.words}."
    if subject.baseline is None:
        said.append("No baseline was named, so the best model is compared with the second best.")
    else:
        against = "the baseline "
        keep = f"Keep {rival}. "
    known = [
        found
        for one in subject.order
        if one not in (row["model"], row["baseline"])
        and (found := pair_row(table, subject.primary, one, row["model"]))
    ]
    if known and row["withheld"] not in TOO_FEW:
        alike = _not_worse(subject, known)
        named = f"{'The other model' if len(known) == 1 else 'Each of the others'} is shown to be "
        named += f"worse than {best}"
        if alike:
            named = f"Not shown to be worse than {best}: {listed(alike, MANY_NAMED, 'model')}"
            also = f"; it is not shown to be better than {listed(alike, 2, 'model')}"
        named += f" (over all {amount(len(table), 'pair')}, p-values {adjustment(table).words})."
        said.append(named)
    n_users = row["n_users"]
    unit = "list" if row.get("n_lists") == n_users else unit_of_method(row.get("method"))
    keep += collect(row, n_users, unit)
    than = f"{against}{rival} on {subject.name(subject.primary)}"
    case = case_of_row(row, best, than, f"Ship {best} to a test{also}.", keep)
    return case._replace(which=[*case.which, *said])


def _not_worse(subject: Subject, rows: list[TableRow]) -> list[str]:
    """Name the models of rows that are not shown to be worse. What a row says of worse, which may
    hold for all lists alone, stands beside the name."""
    return [
        subject.name(row["model"]) + f" ({row['verdict']})" * says_worse(row)
        for row in rows
        if sign_of(row) != "worse"
    ]


def _baseline_stays(subject: Subject) -> Case:
    """Return what the rows say where the baseline has the best mean."""
    base, *others = subject.order
    table = subject.comparison
    keep = subject.name(base)
    metric = subject.name(subject.primary)
    found = [pair_row(table, subject.primary, one, base) for one in others]
    first = found[0]
    rows = [row for row in found if row]
    shown = _not_worse(subject, rows)
    doubted = [row for row in rows if look_of(row) == "warning"]
    all_worse = not shown and len(rows) == len(found)
    none = f"No model is {'' if all_worse else 'shown to be '}better"
    case = Case(Badge("open", "keep the baseline"), [], f"Keep {keep}.", True, row=first)
    said = [f"{none} than the baseline {keep}, which {_best_mean(subject)} of {metric}."]
    if doubted:  # what is better where both have lists comes first
        row = min(doubted, key=lambda row: (is_withheld(row), row.get("effect_both") != "better"))
        case = case_of_row(row, subject.name(row["model"]), f"{keep} on {metric}", "", "")
        said += case.which
    elif first:
        said.append(f"The next best is {subject.name(first['model'])}: {first['verdict']}.")
    if len(shown) > 1 and not (doubted and case.row and case.row["withheld"] in TOO_FEW):
        named = f"Not shown to be worse than {keep}: {listed(shown, MANY_NAMED, 'model')}"
        said.append(f"{named} (p-values {adjustment(table).words}).")
    return case._replace(which=said)


def collect(row: TableRow, n: float, unit: str) -> str:
    """Say how many more lists or users than n would show a difference of the size that was
    found."""
    diff = row["diff"]
    least = least_shown(row)
    if (row["ci_low"] == -math.inf and diff > 0) or (row["ci_high"] == math.inf and diff < 0):
        return "Test it two-sided: this test cannot show a difference on this side."
    more = n * ((least / diff) ** 2 - 1) if diff else 0.0
    if not more > 0:
        return f"More {unit}s would show a difference only if there is one."
    if more >= OUT_OF_REACH * n:
        return f"The difference is too small for any number of {unit}s within reach."
    step = 10 ** max(0, math.floor(math.log10(more)) - 1)
    more = math.ceil(more / step) * step
    said = f"Collect about {amount(more, f'more {unit}')}: with so many, a difference of this size "
    return f"{said}is shown in 8 of 10 cases."


def least_shown(row: TableRow) -> float:
    """Return the difference that so many lists or users show in 8 of 10 cases, with the interval
    of the row, which is adjusted as its test is; NaN where that is not known."""
    ends = (abs(row[end] - row["diff"]) for end in ("ci_low", "ci_high"))
    finite = list(filter(math.isfinite, ends))
    se = row.get("se", np.nan)
    known = se > 0 and any(finite)
    return np.mean(finite) + POWER_Z * se if known else row.get("mde", np.nan)


def _best_mean(subject: Subject) -> str:
    """Say whether the model with the best mean has it alone."""
    values = subject.values(subject.primary)["value"]
    n = (values == values[subject.order[0]]).sum()
    return f"{'has' if n == 1 else 'shares'} the best mean"


# -- by how much, how sure


def _amount(subject: Subject, row: TableRow) -> list[str]:
    """Say the difference, its interval, how many gain and lose, and the warnings of the row."""
    gain, lose = (int(row.get(one, 0)) for one in ("wins", "losses"))
    if subject.better(subject.primary) == "smaller":
        gain, lose = lose, gain
    new, old = (subject.name(row[side]) for side in BOTH_SIDES)
    n = amount(row["n_users"], unit_of_method(row.get("method")))
    text = f"{new} − {old}: {effect_text(row)}. {gain:,} of {n} "
    text += "whose lists people judged " * ("n_human" in row)
    held = " The verdict is withheld, so that this is no finding." * is_withheld(row)
    text += f"{'gains' if gain == 1 else 'gain'} and {doing(lose, 'lose')}.{held}"
    text += " The interval holds for all comparisons of the page together." * (row["together"] > 1)
    for code in warnings_of(row["remarks"]):
        text += f" Warning: {CAUTIONS[code].sentence}." * (code != row["withheld"])
    if "different_lists" not in codes_of(row["remarks"]) or "n_lists" not in row:
        return [text]
    both = int(row["n_lists"])
    n_new, n_old = (both + int(row[f"n_only_{side}"]) for side in BOTH_SIDES)
    has = f"{new} has a value for {amount(n_new, 'list')}, {old} for {n_old:,}"
    return [text, f"{has}, and both for {both:,}."]


def _belief(subject: Subject, row: TableRow | None) -> list[str]:
    """Say what stands behind the numbers: the test, the number of lists, the correction, the
    warnings."""
    table = subject.comparison
    if table.empty:
        return []
    rows = DataFrame([row]) if row else table
    counts = {"n_lists": "list", "n_users": unit_of_rows(table)}
    names = [name for name in counts if name in rows]
    if len(names) == 2 and {*rows["n_lists"]} == {*rows["n_users"]}:
        names = ["n_lists"]
    n = " of ".join(count_range(rows[name], counts[name]) for name in names)
    if subject.of_accuracy and subject.result.per_user["n_pred"].eq(0).any():
        n += ", where a list without recommendations counts as 0"
    tests = words_of_tests(table)
    return [
        f"{tests[:1].upper()}{tests[1:]} on {n}; p-values {adjustment(table).words}.",
        *one_sided(rows),
        *compared_labels(table),
        *(warning_sentences(table) or ["No comparison carries a warning."]),
    ]


def one_sided(rows: DataFrame) -> list[str]:
    """Say what one-sided tests can show: nothing on the other side."""
    if not (side := sides_of_tests(rows)):
        return []
    pairs = rows[[*sides_of(rows)]].drop_duplicates()
    new, old = map(name_of, pairs.iloc[0])
    if len(pairs) > 1:
        new = f"a {pairs.columns[0]}"
        old = f"its {pairs.columns[1]}"
    can = f"they can show that {new} has {side} values than {old}"
    return [f"The tests are one-sided: {can}, and nothing else."]


def could_show(row: TableRow) -> list[str]:
    """Say which difference so many lists or users show in 8 of 10 cases."""
    least = least_shown(row)
    if is_withheld(row) or not least > 0:
        return []
    sign = "+" * is_one_sided(low := row["ci_low"], row["ci_high"])
    found = estimated(-least if sign and low == -math.inf else least, sign=sign)
    return [f"With so much data, a difference of {found} would be shown in 8 of 10 cases."]


# -- for whom worse


def _other_metrics(subject: Subject, row: TableRow | None) -> tuple[list[Reason], list[str]]:
    """Return on which other metrics the model of the headline is worse, and what the others
    show."""
    harms = list[Reason]()
    by_words = dict[str, list[str]]()
    pair = [str(row[side]) for side in BOTH_SIDES] if row else []
    for column in subject.columns[1:] if pair else ():
        if not (other := pair_row(subject.comparison, column, *pair)):
            continue
        of_best = pair[0] == subject.order[0]
        name = plain(subject.name(column))
        if says_worse(other):
            said = f"{' against '.join(map(subject.name, pair))} on {subject.name(column)}: "
            said += f"{other['verdict']}, {effect_text(other)}."
            worse = f"worse on {name}" * of_best
            todo = f"weigh the loss on {name} first"
            harms.append(Reason(said, worse, todo * of_best, line=FOR_WHOM_WORSE))
            continue
        if hides_harm(other, subject.better(column)) and of_best:
            harms.append(undecided_harm(name))
        verdict = "verdict withheld" if is_withheld(other) else other["verdict"]
        by_words.setdefault(verdict, []).append(name)
    parts = "; ".join(f"{words} on {', '.join(names)}" for words, names in by_words.items())
    nothing = "Nothing was compared beside the first metric."
    others = list[str]()
    if parts:
        nothing = "No other metric is shown to be worse."
        others = [f"On other metrics: {parts}."]
    return harms or [Reason(nothing, line=FOR_WHOM_WORSE)], others


def undecided_harm(names: str) -> Reason:
    """Return what speaks against a verdict where the numbers of a withheld one say worse."""
    return Reason(
        f"By numbers whose verdict is withheld, it is worse on {names}.",
        f"perhaps worse on {names}",
        f"settle first whether {names} is worse",
        line=FOR_WHOM_WORSE,
    )


# -- what could overturn it


def _overturning(subject: Subject, check: GivenTable, case: Case) -> Iterator[Reason]:
    """Yield what could overturn the verdict, from the result and from what was found in its
    data."""
    row = case.row
    rows = model_rows(subject.result)
    per_user = subject.result.per_user
    names = {model: plain(subject.name(model)) for model in rows}
    models = [str(row[side]) for side in BOTH_SIDES] if row else list(rows)
    n = len(list_places(subject.result, rows)[1])
    has = {one: int((per_user["n_pred"].take(at) > 0).sum()) for one, at in rows.items()}
    lacks = {one: n - there for one, there in has.items() if there < n}
    lacking = [f"{names[one]} lacks {k:,} of {n:,} ({k / n:.1%})" for one, k in lacks.items()]
    said = f"{'Every' if len(rows) > 1 else 'The'} model has recommendations for all lists."
    if lacks:
        as_zero = subject.of_accuracy and any(len(rows[one]) == n for one in lacks)
        said = f"Lists without recommendations{', which count as 0' * as_zero}: "
        said += f"{listed(lacking, MANY_NAMED, 'model')}."
    yield Reason(said)
    if row:
        both = {side: names[str(row[side])] for side in BOTH_SIDES}
        yield Reason(sentence_of_both({**row, **both}))
        for i, said in enumerate(seed_sentences(subject.result, DataFrame([row]))):
            beyond = "not beyond the spread over seeds" if i and sign_of(row) != "open" else ""
            yield Reason(said, beyond, "train each model with more seeds")
    if subject.of_accuracy and subject.primary in per_user:
        values = model_values(subject.result, subject.primary)
        # A model has lists and not one hit, as with ids of another kind.
        for model in (one for one in models if has[one] and not np.any(values[one] > 0)):
            name = names[model]
            said = f"{name} has {amount(has[model], 'list')} and not one hit: are its ids those of "
            yield Reason(f"{said}true?", f"{name} has no hit", f"check the ids of {name}")
    if check is None:
        yield Reason(
            "Not looked at: ties, ids, sampled candidates and leaks; check= takes what rd.check or "
            "rd.audit returned."
        )
        return
    found = [one for one in check.to_dict("records") if one.get("by", "") in ("", *models)]
    if row:
        yield from _of_ties(subject, found, row)
    for one in found:
        code = one["code"]
        share = one["share"]
        badge = ""
        action = ""
        # Ties and lacking lists are said in sentences of their own.
        own_sentence = code in (*TIE_FINDINGS, "no_recommendations")
        if own_sentence or one["severity"] not in ("error", "warning"):
            continue
        # Findings of an audit name their metric; those of a check have none.
        of_best = (one.get("metric"), one.get("by")) == (subject.primary, models[0])
        no_better = of_best and code in NO_BETTER
        leak, many_stop = LEAKS.get(code, ("", False))
        if leak and share >= SOME:
            badge = f"{number(share, '.0%')} {leak}"
            action = "take them out"
        elif no_better and case.badge.kind == "better":
            badge = code.replace("_", " ")
            action = "find out why the model is no better than that"
        elif one["severity"] == "error" and not no_better:
            badge = "the data have errors"
            action = "mend the data"
        elif code == "sampled":
            badge = "among sampled candidates"
            action = "rank all items"
        yield Reason(TABLE_KINDS["check"].said(one), badge, action, many_stop and share >= MANY)


def _of_ties(subject: Subject, check: Sequence[TableRow], row: TableRow) -> Iterator[Reason]:
    """Say how far other orders of equal scores could move the difference, and whether that changes
    the verdict."""
    column = subject.primary
    moves = dict[str, tuple[float, float]]()
    words = []
    for one in (one for one in check if one["code"] in TIE_FINDINGS and one["ranges"]):
        if one["by"] == "" and len(subject.models) > 1:
            yield Reason(f"Ties: {one['effect']}, of all models together; pass by= to rd.check.")
            return
        model = one["by"] or ONLY
        name = plain(subject.name(model))
        found = json.loads(one["ranges"]).get(column)
        if found is None:
            said = (
                f"{amount(one['count'], 'list')} of {name}; what that does to {column} is not known"
            )
            words.append(said)
            continue
        at = subject.values(column).loc[model]
        moves[model] = (min(found[0] - at["value"], 0.0), max(found[1] - at["value"], 0.0))
        form = estimate_form(at["value"], at["ci_low"], at["ci_high"])
        low, high = (number(end, form) for end in found)
        said = f"could be {low} to {high}, where it is {number(at['value'], form)}"
        words.append(f"{column} of {name} {f'stays at {low}' if low == high else said}")
    said = f"Under other orders of equal scores: {'; '.join(words)}."
    turns = False
    if moves and not is_withheld(row):
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
    if words:
        todo = "break the ties of the scores, and evaluate again"
        yield Reason(said, "not robust: ties" * turns, todo)

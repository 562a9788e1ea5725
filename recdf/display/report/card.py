"""The verdict about the models of a result: six lines and a badge, from the codes of the tables.

Contract: docs/report.md has the rules. A line is a function of rows and nothing else. What would
change the verdict stands in the badge, and "So" asks for no more than the badge allows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...experiments.compare.cheap_labels import compared_labels
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
from ...tables.cells import amount, doing, estimated, is_one_sided, number
from ..given_tables import sides_of_tests, words_of_tests
from ..row_words import sides_of
from .overturning import MANY_NAMED, Case, doubts_about
from .page_blocks import Badge, Reason, Section, effect_text, listed, name_of, plain
from .report_inputs import Subject

POWER_Z = 0.8416  # of the normal distribution: 8 of 10
OUT_OF_REACH = 100  # times as many lists as there are
TOO_FEW = ("few_lists", "few_lists_differ")


def pair_row(table: pd.DataFrame | None, metric: str, model: str, rival: str) -> tuple[Any, int]:
    """Return the one row about two models as `model` sees it, None if it is not there, and how many
    tests of the metric were adjusted together with it."""
    if table is None:
        return None, 0
    on = (table["metric"].astype(str) == metric).to_numpy(bool)
    models, bases = table["model"].map(str), table["baseline"].map(str)
    back = on & (models == rival) & (bases == model)
    places = np.flatnonzero(on & (models == model) & (bases == rival) | back)
    if len(places) != 1:  # no row, or rows of several segments, none of which is about all lists
        return None, 0
    row = table.iloc[places[0]].to_dict()
    return turned(row) if back.any() else row, adjustment(table).among(int(places[0]), on)


def models_card(
    subject: Subject,
    check: pd.DataFrame | None,
    said: Mapping[str, Sequence[Reason]],
) -> Section:
    """Return the card about the models of a result; `said` holds what other sections say of it, by
    their id."""
    case, rest = _case(subject), dict(said)
    harms, others = _other_metrics(subject, case.row)
    segments, own = list(rest.pop("segments", ())), doubts_about(subject, check, case)
    reasons = [*own, *harms, *segments, *(reason for some in rest.values() for reason in some)]
    badge, action = tempered(case, reasons)
    which = case.which
    if any(reason.stops for reason in reasons) and case.stands:
        which = f"Nothing is decided. By the numbers as they stand: {which}"
    worse: list[str] = [reason.said for reason in (*harms, *segments)]
    if not harms:
        nothing = "Nothing was compared beside the first metric."
        worse.insert(0, "No other metric is shown to be worse." if others else nothing)
    if not segments:
        worse.append("Not looked at: segments of users (segments=).")
    doubts = sorted(own, key=lambda reason: (not reason.stops, not reason.badge))
    return verdict_section(
        badge,
        (which, *case.below),
        action,
        how_much=(*_amount(subject, case), *others, *_reach(subject)),
        sure=(
            *belief(subject, case.row),
            *could_show(case.row, "With so many lists, a difference of {}", "cases"),
        ),
        for_whom=worse,
        doubts=[reason.said for reason in (*doubts, *rest.pop("data-health", ()))],
        beside=[reason.said for some in rest.values() for reason in some],
    )


def verdict_section(
    badge: Badge,
    which: Sequence[str],
    action: str,
    *,
    how_much: Sequence[str] = (),
    sure: Sequence[str] = (),
    for_whom: Sequence[str] = (),
    doubts: Sequence[str] = (),
    beside: Sequence[str] = (),
) -> Section:
    """Return a card: the lines that say something, in the order of reading."""
    lines = {
        "Which": which,
        "By how much": how_much,
        "How sure": sure,
        "For whom worse": for_whom,
        "What could overturn it": doubts,
        "Beside it": beside,
        "So": [action],
    }
    said = tuple((name, tuple(sentences)) for name, sentences in lines.items() if sentences)
    return Section("verdict", "Verdict", badge=badge, lines=said)


def tempered(case: Case, reasons: Sequence[Reason]) -> tuple[Badge, str]:
    """Return the badge and the action of a case with what speaks against it."""
    stop = next((reason for reason in reasons if reason.stops), None)
    if stop is not None:
        return Badge("error", f"withheld: {stop.badge}"), f"Do not act: {stop.badge}."
    words = list(dict.fromkeys(reason.badge for reason in reasons if reason.badge))
    if not words or not case.stands:
        watch = [reason.action for reason in reasons if reason.action and not reason.badge]
        return case.badge, case.action + "".join(watch if case.badge.kind == "better" else ())
    beside = " and " if case.badge.kind == "warning" else ", but "
    todo = next((reason.action for reason in reasons if reason.action), "find out why")
    badge = Badge("warning", f"{case.badge.text}{beside}{' and '.join(words)}")
    return badge, f"Do not act yet: {todo}."


# -- which


def _case(subject: Subject) -> Case:
    """Return what the first metric says of the best model, by the rules of docs/report.md."""
    metric, order, table = subject.primary, subject.ranking(subject.primary), subject.comparison
    best = order[0]
    if len(order) == 1:
        return _one_model(subject, best)
    undefined = subject.values(metric)["value"].isna().all()
    if undefined or not subject.better(metric) or table is None:
        why = (
            "is undefined for every list"
            if undefined
            else "has no better direction"
            if not subject.better(metric)
            else "has no value per user to test"
        )
        which = f"There is no verdict: the first metric, {subject.name(metric)}, {why}."
        action = "Name a metric first that has a direction and a value for each list."
        return Case(Badge("open", "no verdict"), which, action, stands=False)
    rival = subject.baseline if subject.baseline is not None else order[1]
    if best == rival:
        return _baseline_stays(subject, order)
    row, together = pair_row(table, metric, best, rival)
    pair = f"{subject.name(rival)} on {subject.name(metric)}."
    if row is None:
        which = "There is no verdict: the comparison that was given has not one row of "
        which += f"{subject.name(best)} and {pair}"
        action = "Compare the two on all lists."
        return Case(Badge("open", "no verdict"), which, action, stands=False)
    return _of_pair(subject, row, together, pair)


def _of_pair(subject: Subject, row: Mapping[Any, Any], together: int, pair: str) -> Case:
    """Return what the row about the best model and its rival says."""
    best, rival = subject.name(row["model"]), subject.name(row["baseline"])
    against = "the baseline " if subject.baseline is not None else "the second best, "
    beside, alike = _beside_best(subject, row)
    below = [*_picked(subject, together), *beside]
    if is_withheld(row):
        few = "too few lists to tell" if row["withheld"] in TOO_FEW else "withheld"
        which = f"The verdict is withheld ({row['verdict']}): {best} against {pair}"
        return Case(
            Badge("warning", few), which, _withheld_action(row), below, row, False, together
        )
    if "missing_lists" in codes_of(row["remarks"]):
        said = str(row["verdict"])
        which = (
            f"{best} {_best_mean(subject)} of {subject.name(subject.primary)}. Against {rival}: "
        )
        which += f"{said}."
        action = "Do not act on the mean: find out why lists are missing."
        return Case(Badge("warning", said), which, action, below, row, True, together)
    if sign_of(row) == "better":
        which = f"{best} is better than {against}{pair}"
        also = f"; it is not shown to be better than {listed(alike, 2, 'model')}" if alike else ""
        ship = f"Ship {best} to a test{also}."
        return Case(Badge("better", "better"), which, ship, below, row, True, together)
    ranks = "found to differ by its signed ranks, which say nothing of the mean, from"
    found, mark = {
        "equivalent": ("equivalent to", "equivalent"),
        "ranks_higher": (ranks, "no verdict"),
        "ranks_lower": (ranks, "no verdict"),
    }.get(row["effect"], ("not shown to be better than", "no difference shown"))
    which = f"{best} {_best_mean(subject)} of {subject.name(subject.primary)}"
    which = f"{which}, and is {found} {against}{rival}."
    stay = f"Keep {rival}. " if subject.baseline is not None else ""
    todo = "Do not act: the test says nothing of the mean."
    if row["effect"] == "none":
        n = float(row["n_users"])
        unit = "list" if row.get("n_lists") == n else "user"
        todo = stay + collect(row, n, unit)
    elif row["effect"] == "equivalent":
        todo = f"Choose between {best} and {rival} by other means than this metric."
    return Case(Badge("open", mark), which, todo, below, row, True, together)


def _picked(subject: Subject, together: int) -> list[str]:
    """Say that the model was picked among several, and whether the tests take that into account."""
    n, said = len(subject.models), []
    if n > 2 and subject.comparison is not None:
        counted = "taken into account" if together >= n - 1 else "not taken into account"
        said.append(
            f"It {_best_mean(subject)} of {n} models. That it was picked among several is "
            f"{counted}: the p-values are {adjustment(subject.comparison).words}."
        )
    if subject.baseline is None:
        said.append("No baseline was named, so the best model is compared with the second best.")
    return said


def _beside_best(subject: Subject, row: Mapping[Any, Any]) -> tuple[list[str], list[str]]:
    """Name the models beside the pair that are not shown to be worse than the best one, over all
    pairs of models."""
    best, metric, table = str(row["model"]), subject.primary, subject.pairs
    rest = [one for one in subject.ranking(metric) if one not in (best, str(row["baseline"]))]
    if table is None or not rest or row["withheld"] in TOO_FEW:
        return [], []
    rows = {one: pair_row(table, metric, best, one)[0] for one in rest}
    known = {one: found for one, found in rows.items() if found is not None}
    alike = [subject.name(one) for one, found in known.items() if sign_of(found) != "better"]
    if not known:
        return [], []
    how = f"over all {amount(len(table), 'pair')}, p-values {adjustment(table).words}"
    if not alike:
        each = "The other model is" if len(known) == 1 else "Each of the others is"
        return [f"{each} shown to be worse than {subject.name(best)} ({how})."], []
    named = listed(alike, MANY_NAMED, "model")
    return [f"Not shown to be worse than {subject.name(best)}: {named} ({how})."], alike


def _withheld_action(row: Mapping[Any, Any]) -> str:
    """Say what would make a verdict possible."""
    if row["withheld"] == "few_lists":
        more = max(1, FEW_LISTS - int(row["n_users"]))
        return f"Collect {amount(more, 'more list')} at least: a verdict needs {FEW_LISTS}."
    if row["withheld"] in TOO_FEW:
        return "Collect more lists: a verdict needs 20 that differ."
    return f"Do not act: {CAUTIONS[row['withheld']].sentence}."


def collect(row: Mapping[Any, Any], n: float, unit: str) -> str:
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


def least_shown(row: Mapping[Any, Any]) -> float | None:
    """Return the difference that so many lists or users show in 8 of 10 cases, with the interval
    of the row, which is adjusted as its test is."""
    ends = np.abs(np.array([row["ci_low"], row["ci_high"]]) - row["diff"])
    half, se = ends[np.isfinite(ends)].mean() if np.isfinite(ends).any() else np.nan, row.get("se")
    if pd.notna(se) and se > 0 and half > 0:
        return float(half + POWER_Z * se)
    return None if pd.isna(row.get("mde")) else float(row["mde"])


def _baseline_stays(subject: Subject, order: Sequence[str]) -> Case:
    """Return what the rows say where the baseline has the best mean."""
    found = [pair_row(subject.comparison, subject.primary, one, order[0]) for one in order[1:]]
    rows = [row for row, _ in found if row is not None]
    first, together = found[0]
    base = subject.name(order[0])
    mean = f"the baseline {base}, which {_best_mean(subject)} of {subject.name(subject.primary)}"
    keep = f"Keep {base}."
    lacking = [row for row in rows if "missing_lists" in codes_of(row["remarks"])]
    where = next(
        (row for row in lacking if row.get("effect_both") == "better"),
        lacking[0] if lacking else None,
    )
    if where is not None:
        which = f"No model is shown to be better than {mean} over all lists. "
        which = f"{which}{subject.name(where['model'])} is {where['verdict']}."
        action = "Do not act on the mean: find out why lists are missing."
        return Case(Badge("warning", str(where["verdict"])), which, action, row=where)
    if len(rows) == len(found) and all(sign_of(row) == "worse" for row in rows):
        worse = "Each of the others is shown to be worse."
        if len(rows) == 1:
            worse = f"{subject.name(order[1])} is shown to be worse."
        which = f"No model is better than {mean}."
        badge = Badge("open", "keep the baseline")
        return Case(badge, which, keep, [worse], first, True, together)
    which = f"No model is shown to be better than {mean}."
    below: list[str] = []
    if first is not None:
        below = [f"The next best is {subject.name(first['model'])}: {first['verdict']}."]
    shown = [subject.name(row["model"]) for row in rows if sign_of(row) != "worse"]
    held = [row for row in rows if is_withheld(row)]
    few = len(held) == len(rows) and all(row["withheld"] in TOO_FEW for row in held)
    if len(shown) > 1 and not few and subject.comparison is not None:
        named = listed(shown, MANY_NAMED, "model")
        how = f" (p-values {adjustment(subject.comparison).words})."
        below.append(f"Not shown to be worse than {base}: {named}{how}")
    if held:
        badge = Badge("warning", "too few lists to tell" if few else "withheld")
        which = f"A verdict is withheld. {which}"
        return Case(badge, which, _withheld_action(held[0]), below, first, False, together)
    badge = Badge("open", "keep the baseline")
    return Case(badge, which, keep, below, first, True, together)


def _best_mean(subject: Subject) -> str:
    """Say whether the model with the best mean has it alone."""
    values = subject.values(subject.primary)["value"]
    best = values.min() if subject.better(subject.primary) == "smaller" else values.max()
    return "has the best mean" if (values == best).sum() == 1 else "shares the best mean"


def _one_model(subject: Subject, model: str) -> Case:
    row: Any = subject.values(subject.primary).loc[model]
    shown = estimated(row["value"], row["ci_low"], row["ci_high"])
    which = f"{subject.name(subject.primary)} is {shown}. One model was evaluated: nothing is "
    which += "compared."
    action = "Compare it with a baseline before acting on it."
    return Case(Badge("info", "one model"), which, action, stands=False)


# -- by how much, how sure


def _amount(subject: Subject, case: Case) -> list[str]:
    """Say the difference, its interval, how many gain and lose, and the warnings of the row."""
    row = case.row
    if row is None:
        return []
    smaller = subject.better(subject.primary) == "smaller"
    gain, lose = (int(row.get(name, 0)) for name in ("wins", "losses")[:: -1 if smaller else 1])
    judged = " whose lists people judged" if "n_human" in row else ""
    n = int(row["n_users"])
    said = f": {effect_text(row)}. {gain:,} of {amount(n, 'user')}{judged} "
    said += f"{'gains' if gain == 1 else 'gain'} and {doing(lose, 'lose')}."
    if case.together > 1:
        said += " The interval holds for all comparisons of the page together."
    codes = [code for code in warnings_of(row["remarks"]) if code != row["withheld"]]
    said += "".join(f" Warning: {CAUTIONS[code].sentence}." for code in codes)
    pair = f"{subject.name(row['model'])} − {subject.name(row['baseline'])}"
    if "different_lists" not in codes_of(row["remarks"]):
        return [pair + said]
    if "n_lists" not in row:
        how_many = "a comparison with details=True says for how many (n_only_model)"
        return [pair + said, f"Some lists have a value for one of the two; {how_many}."]
    both = int(row["n_lists"])
    counts = [both + int(row[f"n_only_{side}"]) for side in ("model", "baseline")]
    return [
        pair + said,
        f"{subject.name(row['model'])} has a value for {amount(counts[0], 'list')}, "
        f"{subject.name(row['baseline'])} for {counts[1]:,}, and both for {both:,}.",
    ]


def belief(subject: Subject, row: Mapping[Any, Any] | None) -> list[str]:
    """Say what stands behind the numbers: the test, the number of lists, the correction, the
    warnings."""
    table = subject.comparison
    if table is None or not len(table):
        return []
    rows = table if row is None else pd.DataFrame([row])
    counts = {
        f"{unit}{'' if sizes == [1] else 's'}": sizes
        for unit in ("list", "user")
        if f"n_{unit}s" in rows.columns and (sizes := sorted({int(n) for n in rows[f"n_{unit}s"]}))
    }
    spans = [
        f"{n[0]:,} {unit}" if n[0] == n[-1] else f"{n[0]:,} to {n[-1]:,} {unit}"
        for unit, n in counts.items()
    ]
    n = " of ".join(spans[: len({*map(tuple, counts.values())})])
    empty = subject.result.per_user.get("n_pred", pd.Series(1)).eq(0).any()
    counted = ", where a list without recommendations counts as 0" if empty else ""
    counted *= subject.of_accuracy
    tests = words_of_tests(table)
    said: list[str] = [
        f"{tests[:1].upper()}{tests[1:]} on {n}{counted}; p-values {adjustment(table).words}."
    ]
    said += one_sided(rows)
    warned = warning_sentences(table) or ["No comparison carries a warning."]
    return [*said, *compared_labels(table), *warned]


def one_sided(rows: pd.DataFrame) -> list[str]:
    """Say what one-sided tests can show: nothing on the other side."""
    if not (side := sides_of_tests(rows)):
        return []
    sides = sides_of(rows)
    new, old = (rows[one].map(name_of).unique() for one in sides)
    who = f"a {sides[0]}", f"its {sides[1]}"
    if len(new) == len(old) == 1:
        who = new[0], old[0]
    can = f"they can show that {who[0]} has {side} values than {who[1]}"
    return [f"The tests are one-sided: {can}, and nothing else."]


def could_show(row: Mapping[Any, Any] | None, of_size: str, cases: str) -> list[str]:
    """Say which difference so many lists or users show in 8 of 10 cases."""
    least = None if row is None else least_shown(row)
    if row is None or least is None:
        return []
    sign, ends = "", (row["ci_low"], row["ci_high"])
    if is_one_sided(*ends):
        sign, least = "+", least * (1 if ends[1] == math.inf else -1)
    return [of_size.format(estimated(least, sign=sign)) + f" is shown in 8 of 10 {cases}."]


def _reach(subject: Subject) -> list[str]:
    """Say what share of the catalogue the models of the headline show."""
    family = subject.meanings.set_index("column")["name"]
    column = next((name for name in subject.columns if family.get(name) == "coverage"), None)
    if column is None or subject.tested_pair is None:
        return []
    values = subject.values(column)["value"]
    one, two = subject.tested_pair
    shares = (f"{number(values.get(model, np.nan), '.0%')}" for model in (one, two))
    return [
        f"{subject.name(one)} shows {next(shares)} of the catalogue, "
        f"{subject.name(two)} {next(shares)}."
    ]


# -- for whom worse


def _other_metrics(
    subject: Subject, row: Mapping[Any, Any] | None
) -> tuple[list[Reason], list[str]]:
    """Return on which other metrics the model of the headline is worse, and what the others
    show."""
    if row is None:
        return [], []
    model, rival = str(row["model"]), str(row["baseline"])
    found = {
        column: other
        for column in subject.columns[1:]
        if (other := pair_row(subject.comparison, column, model, rival)[0]) is not None
    }
    harms, by_words = [], dict[str, list[str]]()
    of_best = model == subject.ranking(subject.primary)[0]
    for column, other in found.items():
        if says_worse(other):
            who = f"{subject.name(model)} against {subject.name(rival)} on {subject.name(column)}"
            said = f"{who}: {other['verdict']}, {effect_text(other)}."
            name = plain(subject.name(column))
            act = f"weigh the loss on {name} first"
            harms.append(Reason(said, *((f"worse on {name}", act) if of_best else ())))
        else:
            if hides_harm(other, subject.better(column)) and of_best:
                harms.append(undecided_harm(plain(subject.name(column))))
            words = "verdict withheld on" if is_withheld(other) else OTHERS.get(other["effect"], "")
            by_words.setdefault(words or "not shown to differ on", []).append(column)
    parts = [
        f"{words} {', '.join(plain(subject.name(one)) for one in columns)}"
        for words, columns in by_words.items()
    ]
    others: list[str] = [f"On other metrics: {'; '.join(parts)}."] if parts else []
    return harms, others


def undecided_harm(names: str) -> Reason:
    """Return what speaks against a verdict where the numbers of a withheld one say worse."""
    said = f"By numbers whose verdict is withheld, it is worse on {names}."
    return Reason(said, f"perhaps worse on {names}", f"settle first whether {names} is worse")


OTHERS = {
    "better": "better on",
    "ranks_higher": "signed ranks differ on",
    "ranks_lower": "signed ranks differ on",
    "higher": "different on",
    "lower": "different on",
    "equivalent": "equivalent on",
}

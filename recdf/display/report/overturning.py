"""What could overturn a verdict about models: lists that they lack, orders of ties, and what was
found in the data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...experiments.compare.comparable_runs import sentence_of_both
from ...judge.verdict import (
    sign_of,
)
from ...tables.cells import amount, estimate_form, number, visible
from ..given_tables import ONLY
from ..kinds import TABLE_KINDS
from ..leaderboard_values import seed_sentences
from ..pairs import list_places, model_rows
from .page_blocks import (
    Badge,
    Reason,
    listed,
    plain,
)
from .report_inputs import Subject

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


class Case(NamedTuple):
    """What the first metric says before anything speaks against it, and the pair of models that it
    is about."""

    badge: Badge
    which: str
    action: str
    below: Sequence[str] = ()
    row: Mapping[Any, Any] | None = None
    stands: bool = True  # there is a verdict that could be overturned
    together: int = 0
    ships: bool = False  # the action is to take the new side


def doubts_about(subject: Subject, check: pd.DataFrame | None, case: Case) -> list[Reason]:
    """Return what could overturn the verdict, from the result and from what was found in its
    data."""
    row, found = case.row, [_lacking_lists(subject)]
    models = list(subject.models) if row is None else [str(row["model"]), str(row["baseline"])]
    if row is not None:
        both = sentence_of_both(
            {**row, **{side: plain(subject.name(row[side])) for side in BOTH_SIDES}}
        )
        found += [Reason(both)] if both else []
        sentences = seed_sentences(subject.result, pd.DataFrame([row]))
        beyond = "not beyond the spread over seeds"
        found += [
            Reason(text, beyond, "train each model with more seeds")
            if i and sign_of(row) != "open"
            else Reason(text)
            for i, text in enumerate(sentences)
        ]
    found += [_no_hit(subject, model) for model in models]
    if check is None:
        found.append(
            Reason(
                "Not looked at: ties, ids, sampled candidates and leaks; check= takes what "
                "rd.check or rd.audit returned."
            )
        )
    else:
        by = check["by"] if "by" in check.columns else pd.Series("", check.index)
        own = check[by.isin(["", *models])]
        found += [] if row is None else [_of_ties(subject, own, row)]
        found += _of_findings(subject, own, models, case)
    return [reason for reason in found if reason is not None]


BOTH_SIDES = ("model", "baseline")


def _lacking_lists(subject: Subject) -> Reason | None:
    """Say how many of the lists of the population each model lacks."""
    per_user, rows = subject.result.per_user, model_rows(subject.result)
    if "n_pred" not in per_user.columns or not rows:
        return None
    n, n_pred = len(list_places(subject.result, rows).first_row), per_user["n_pred"].to_numpy()
    lacks = {model: n - int(np.count_nonzero(n_pred[own])) for model, own in rows.items()}
    named: list[str] = [
        f"{plain(subject.name(model))} lacks {lost:,} of {n:,} ({lost / n:.1%})"
        for model, lost in lacks.items()
        if lost
    ]
    if not named:
        each = "Every model has" if len(rows) > 1 else "The model has"
        return Reason(f"{each} recommendations for all lists.")
    as_zero = any(len(own) == n for model, own in rows.items() if lacks[model])
    counts = ", which count as 0" if as_zero and subject.of_accuracy else ""
    said = listed(named, MANY_NAMED, "model")
    return Reason(f"Lists without recommendations{counts}: {said}.")


def _no_hit(subject: Subject, model: str) -> Reason | None:
    """Say where a model has lists and not one hit, as with ids of another kind."""
    rows, per_user = model_rows(subject.result)[model], subject.result.per_user
    read = ("n_pred", subject.primary)
    if not (subject.of_accuracy and {*read} <= {*per_user.columns}):
        return None
    n_pred, values = (per_user[name].to_numpy(np.float64, na_value=np.nan)[rows] for name in read)
    n, name = int((n_pred > 0).sum()), plain(subject.name(model))
    if not n or np.nansum(np.abs(values)) > 0:
        return None
    said = f"{name} has {amount(n, 'list')} and not one hit: are its ids those of true?"
    return Reason(said, f"{name} has no hit", f"check the ids of {name}")


def _of_ties(subject: Subject, check: pd.DataFrame, row: Mapping[Any, Any]) -> Reason | None:
    """Say how far other orders of equal scores could move the difference, and whether that changes
    the verdict."""
    column, moves, words = subject.primary, {}, []
    for one in check[check["code"].isin(TIE_FINDINGS)].to_dict("records"):
        if not one["ranges"]:
            continue
        found = json.loads(one["ranges"]).get(column)
        if one["by"] == "" and len(subject.models) > 1:
            said = f"Ties: {visible(one['effect'])}, of all models together; pass by= to rd.check."
            return Reason(said)
        model = one["by"] or ONLY
        name = plain(subject.name(model))
        if found is None:
            lists = amount(int(one["count"]), "list")
            words.append(f"{lists} of {name}; what that does to {column} is not known")
            continue
        at: Any = subject.values(column).loc[model]
        value = float(at["value"])
        moves[model] = (min(found[0] - value, 0.0), max(found[1] - value, 0.0))
        form = estimate_form(value, at["ci_low"], at["ci_high"])
        low, high = (number(end, form) for end in found)
        if low == high:
            words.append(f"{column} of {name} stays at {low}")
        else:
            is_now = number(value, form)
            words.append(f"{column} of {name} could be {low} to {high}, where it is {is_now}")
    if not words:
        return None
    own, other = (moves.get(str(row[side]), (0.0, 0.0)) for side in BOTH_SIDES)
    shifts = own[0] - other[1], own[1] - other[0]
    larger = subject.better(column) == "larger"
    turns = len({_sign_if_moved(row, larger, shift) for shift in (0.0, *shifts)}) > 1
    form = estimate_form(row["diff"], row["ci_low"], row["ci_high"], "+")
    low, high = (number(row["diff"] + shift, form) for shift in shifts)
    ends = f" The difference stays at {low}." if low == high else ""
    if low != high:
        what = "so that the verdict depends on it" if turns else "and the verdict stays"
        ends = f" The difference could be {low} to {high}, {what}."
    said = f"Under other orders of equal scores: {'; '.join(words)}.{ends if moves else ''}"
    if not (turns and moves):
        return Reason(said)
    return Reason(said, "not robust: ties", "break the ties of the scores, and evaluate again")


def _sign_if_moved(row: Mapping[Any, Any], larger: bool, shift: float) -> str:
    """Return what the interval would show if the difference were moved."""
    low, high = (row["diff"] if pd.isna(row[end]) else row[end] for end in ("ci_low", "ci_high"))
    up, down = low + shift > 0, high + shift < 0
    return "open" if not (up or down) else "better" if up == larger else "worse"


def _of_findings(
    subject: Subject, check: pd.DataFrame, models: Sequence[str], case: Case
) -> list[Reason]:
    """Return what was found in the data of these models, or of all, with what it does to a
    verdict."""
    found = []
    for row in check[check["severity"].isin(["error", "warning"])].to_dict("records"):
        code, share = row["code"], row["share"]
        if code in (*TIE_FINDINGS, "no_recommendations"):  # said in a sentence of their own
            continue
        said = TABLE_KINDS["check"].said(row)
        badge = action = ""
        leak, stops = LEAKS.get(code, ("", False))
        if leak and share >= SOME:
            badge, action = f"{number(share, '.0%')} {leak}", "take them out"
        elif code in NO_BETTER and (row["metric"], row["by"]) == (subject.primary, models[0]):
            if case.badge.kind == "better":
                badge, action = (
                    code.replace("_", " "),
                    "find out why the model is no better than that",
                )
        elif row["severity"] == "error":
            badge, action = "the data have errors", "mend the data"
        elif code == "sampled":
            badge, action = "among sampled candidates", "rank all items"
        found.append(Reason(said, badge, action, bool(leak) and stops and share >= MANY))
    return found

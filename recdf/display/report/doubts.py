"""What could overturn a verdict: faults of the data that decide it, recomputed where the tables
allow it.

Contract: a doubt has a sentence, and words for the badge only where the sign or the verdict of the
comparison changes.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import pandas as pd

from ...experiments.compare.where_both import sentence_of_both
from ...tables.cells import estimate_form, number, visible
from ...tables.findings import finding_of
from ..folds_and_seeds import seed_sentences
from ..given_tables import ONLY
from ..pairs import model_rows
from .headline import Duel
from .page_blocks import Sentence
from .report_inputs import Subject

__all__: list[str] = []

MANY_NAMED = 5
# Findings that are said in a sentence of their own.
SAID = (
    "lists without recommendations",
    "ties across rank",
    "constant scores",
    "equal scores",
    "ranks repeat",
)


class Doubt(NamedTuple):
    """One thing that could overturn the verdict: words for the badge, or none where nothing
    changes."""

    badge: str
    said: Sentence


def find_doubts(subject: Subject, check: pd.DataFrame | None, duel: Duel | None) -> list[Doubt]:
    """Return what could overturn the verdict about two models, what changes it first."""
    found = [_lacking_lists(subject)]
    if duel is not None:
        both = sentence_of_both(duel.row)
        found += [Doubt("", (both,))] if both else []
        row = pd.DataFrame([duel.row])
        found += [
            Doubt(
                "not beyond the spread over seeds" if i and duel.sign != "open" else "", (sentence,)
            )
            for i, sentence in enumerate(seed_sentences(subject.result, row))
        ]
    models = list(subject.models) if duel is None else [duel.model, duel.rival]
    found += [_no_hit(subject, model) for model in models]
    if check is None:
        said = (
            "Not looked at: ties, ids, candidates and leaks; check= takes what rd.check returned."
        )
        found.append(Doubt("", (said,)))
    else:
        by = check["by"] if "by" in check.columns else pd.Series("", check.index)
        own = check[by.isin(["", *models])]
        found += [_of_ties(subject, own, duel)] if duel is not None else []
        found += _of_findings(own, models)
    known = [doubt for doubt in found if doubt is not None]
    return sorted(known, key=lambda doubt: not doubt.badge)


def _lacking_lists(subject: Subject) -> Doubt | None:
    """Say what share of the lists each model lacks."""
    per_user = subject.result.per_user
    if "n_pred" not in per_user.columns:
        return None
    empty = per_user["n_pred"].to_numpy() == 0
    counts = [
        (model, int(empty[rows].sum()), len(rows))
        for model, rows in model_rows(subject.result).items()
    ]
    lacks = [
        f"{visible(model)} lacks {n:,} of {of:,} ({n / of:.1%})" for model, n, of in counts if n
    ]
    if not lacks:
        return Doubt("", ("Every model has recommendations for all lists.",))
    more = (
        f" and {len(lacks) - MANY_NAMED} more models lack some" if len(lacks) > MANY_NAMED else ""
    )
    return Doubt(
        "",
        (
            "Lists without recommendations, which count as 0: "
            f"{', '.join(lacks[:MANY_NAMED])}{more}.",
        ),
    )


def _no_hit(subject: Subject, model: str) -> Doubt | None:
    """Say where a model has lists and not one hit, as with ids of another kind."""
    rows, per_user = model_rows(subject.result)[model], subject.result.per_user
    if (
        subject.primary not in per_user.columns
        or "n_pred" not in per_user.columns
        or not subject.of_accuracy
    ):
        return None
    read = ("n_pred", subject.primary)
    n_pred, values = (per_user[name].to_numpy(np.float64, na_value=np.nan)[rows] for name in read)
    if not (n_pred > 0).any() or np.nansum(np.abs(values)) > 0:
        return None
    said = (
        f"{visible(model)} has {int((n_pred > 0).sum()):,} lists and not one hit: are its ids "
        "those of true?"
    )
    return Doubt(f"{visible(model)} has no hit", (said,))


def _of_ties(subject: Subject, check: pd.DataFrame, duel: Duel) -> Doubt | None:
    """Say how far other orders of equal scores could move the difference, and whether that changes
    the verdict."""
    if "ranges" not in check.columns or "metric" in check.columns:  # those of an audit are no ties
        return None
    column, moves, words = subject.primary, {}, []
    for row in check[check["ranges"] != ""].to_dict("records"):
        found = json.loads(row["ranges"]).get(column)
        if row["by"] == "" and len(subject.models) > 1:
            return Doubt(
                "",
                (f"Ties: {visible(row['effect'])}, of all models together; pass by= to rd.check.",),
            )
        model = row["by"] or ONLY
        if found is None:
            words.append(
                f"{int(row['count']):,} lists of {visible(model)}; what that does to {column} is "
                "not known"
            )
            continue
        value = float(subject.values(column)["value"][model])
        moves[model] = (min(found[0] - value, 0.0), max(found[1] - value, 0.0))
        form = estimate_form(value, *found)
        low, high = (number(one, form) for one in found)
        if low == high:
            words.append(f"{column} of {visible(model)} stays at {low}")
            continue
        words.append(
            f"{column} of {visible(model)} could be {low} to {high}, where it is "
            f"{number(value, form)}"
        )
    if not words:
        return None
    own, other = (moves.get(model, (0.0, 0.0)) for model in (duel.model, duel.rival))
    shifts = own[0] - other[1], own[1] - other[0]
    form = estimate_form(duel.diff, duel.low, duel.high, "+")
    span = " to ".join(number(duel.diff + shift, form) for shift in shifts)
    turns = len({_verdict_if_moved(subject, duel, shift) for shift in (0.0, *shifts)}) > 1
    what = "so that the verdict depends on it" if turns else "and the verdict stays"
    ends = f" The difference could be {span}, {what}."
    said = f"Under other orders of equal scores: {'; '.join(words)}.{ends if moves else ''}"
    return Doubt("not robust: ties" if turns and moves else "", (said,))


def _verdict_if_moved(subject: Subject, duel: Duel, shift: float) -> str:
    """Return what the interval would show if the difference were moved."""
    low, high = (duel.diff if np.isnan(end) else end for end in (duel.low, duel.high))
    up, down = low + shift > 0, high + shift < 0
    return (
        "open"
        if not (up or down)
        else "better"
        if up == (subject.better(subject.primary) == "larger")
        else "worse"
    )


def _of_findings(check: pd.DataFrame, models: list[str]) -> list[Doubt]:
    """Say the errors and warnings of `rd.check` about these models, or about all data."""
    found = []
    for row in check[check["severity"].isin(["error", "warning"])].to_dict("records"):
        if str(row["finding"]).startswith(SAID):
            continue
        said = (
            f"{finding_of(row)} ({int(row['count']):,}, {number(row['share'], '.1%')}): "
            f"{row['effect']}."
        )
        own = row.get("by", "") in models or not row.get("by", "")
        sampled = str(row["finding"]).startswith("candidates look sampled")
        badge = (
            "the data have errors"
            if row["severity"] == "error" and own
            else "among sampled candidates" * sampled
        )
        found.append(Doubt(badge, (visible(said),)))
    return found

"""The first sentence of a report: which model to take, by how much, and whether the data show it.

The rule, in order:

1. The primary metric is the first one. No other metric can decide.
2. With a baseline, the model with the best mean is set against the baseline. It is "better" only
   where the comparison says so after the correction for all its tests; that it was picked among
   several is said.
3. Without a baseline, the best model is set against the second best; every pair of models counts in
   the correction.
4. With one model, the first row of an experiment decides, if one is given (`experiment_headline`).
5. Otherwise, and for a metric without a direction, there is no verdict, and the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...experiments.compare.cheap_labels import compared_labels
from ...experiments.decide.adjust_pvalues import adjustment
from ...judge.cautions.table import CAUTIONS
from ...judge.verdict import (
    codes_of,
    is_withheld,
    sentence,
    sign_of,
    warning_sentences,
    warnings_of,
)
from ...tables.cells import digits_for, number
from .page_blocks import Badge, BadgeKind, Name, Sentence
from .report_inputs import Subject

__all__: list[str] = []


# Effects seen from the other model.
TURNED = {"better": "worse", "higher": "lower", "ranks_higher": "ranks_lower"}
TURNED |= {bad: good for good, bad in TURNED.items()}
TOO_FEW = ("few_lists", "few_lists_differ")
# Effects on other metrics than the first one that are neither for nor against a model.
OTHERS = {"ranks_higher": "ranks", "ranks_lower": "ranks", "higher": "apart", "lower": "apart"}


class Duel(NamedTuple):
    """The row of the comparison that decides, turned so that `model` is the one with the better
    mean.

    `together` is the number of tests of this metric whose p-values were adjusted together with this
    one.
    """

    model: str
    rival: str
    diff: float
    low: float
    high: float
    relative: float
    sign: str
    verdict: str
    gain: int
    lose: int
    n: int
    warned: str
    together: int
    row: dict[Any, Any]  # with the codes of the verdict, turned with the rest

    @property
    def turned(self) -> bool:
        """Whether the effect is another one where both models have lists."""
        return "missing_lists" in codes_of(self.row["remarks"])

    @property
    def effect(self) -> str:
        """Difference, interval and relative difference in words."""
        return effect_text(self.diff, self.low, self.high, self.relative)


class Headline(NamedTuple):
    """The badge, the first sentence, what stands below it, and the comparison that it is about."""

    badge: Badge
    which: Sentence
    below: list[Sentence]
    duel: Duel | None = None


def headline(subject: Subject) -> Headline:
    """Return what the first metric says of the best model."""
    column = subject.primary
    order = subject.ranking(column)
    if len(order) == 1:
        return Headline(Badge("info", "one model"), _one_model(subject, order[0]), [])
    if (
        not subject.better(column)
        or subject.comparison is None
        or subject.values(column)["value"].isna().all()
    ):
        return Headline(Badge("open", "no verdict"), _no_direction(subject), [])
    rival = subject.baseline if subject.baseline is not None else order[1]
    best = order[0]
    if best == rival:  # the baseline itself has the best mean
        return _baseline_stays(subject, order)
    duel = find_duel(subject, column, best, rival)
    if duel is None:
        return Headline(Badge("open", "no verdict"), _not_compared(subject, best, rival), [])
    return _of_duel(subject, duel, len(order))


def find_duel(subject: Subject, column: str, model: str, rival: str) -> Duel | None:
    """Return the comparison of two models on one metric, or None if it was not made."""
    if subject.comparison is None:
        return None
    table = subject.comparison
    on = table["metric"].astype(str) == column
    models, bases = table["model"].map(str), table["baseline"].map(str)
    straight, turned = (
        (models == one) & (bases == other) & on for one, other in ((model, rival), (rival, model))
    )
    places = np.flatnonzero(straight | turned)
    if len(places) != 1:  # no row, or rows of several segments, none of which is about all lists
        return None
    row, flip = table.iloc[places[0]].to_dict(), bool(turned.iloc[places[0]])
    wins, losses = (int(row.get(name, 0)) for name in ("wins", "losses"))
    up, down = (losses, wins) if flip else (wins, losses)
    if other := _of_other_numbers(subject, column, row):
        row |= {"effect": "", "withheld": other}
    relative, diff, low, high = (
        row.get("rel_diff", np.nan),
        row["diff"],
        row["ci_low"],
        row["ci_high"],
    )
    if flip:
        means = row.get("mean_baseline", np.nan), row.get("mean_model", np.nan)
        relative = means[0] / means[1] - 1 if means[1] > 0 else np.nan
        of_effects = row.keys() & {"effect", "effect_both"}
        row |= {name: TURNED.get(row[name], row[name]) for name in of_effects}
        diff, low, high = -diff, -high, -low
    gain, lose = (down, up) if subject.better(column) == "smaller" else (up, down)
    codes = [code for code in warnings_of(row["remarks"]) if code != row["withheld"]]
    warned = "".join(f" Warning: {CAUTIONS[code].sentence}." for code in codes)
    if "different_lists" in codes_of(row["remarks"]):
        both = int(row.get("n_lists", row["n_users"]))
        warned += (
            f" {row['model']} has a value for {both + int(row['n_only_model']):,} lists, "
            f"{row['baseline']} for {both + int(row['n_only_baseline']):,}, and both for {both:,}."
        )
    return Duel(
        model,
        rival,
        float(diff),
        float(low),
        float(high),
        float(relative),
        sign_of(row),
        sentence("models", row["effect"], row["withheld"], codes_of(row["remarks"]), row),
        gain,
        lose,
        int(row["n_users"]),
        warned,
        adjustment(table).among(int(places[0]), on.to_numpy()),
        row,
    )


def _of_other_numbers(subject: Subject, column: str, row: Mapping[Any, Any]) -> str:
    """Return why a row of a comparison that was given decides nothing about this result, as a
    code of cautions, or nothing."""
    sign, values = sign_of(row), subject.values(column)["value"]
    up = (row["diff"] > 0) == (subject.better(column) == "larger")
    if sign != "open" and subject.better(column) and up != (sign == "better"):
        return "other_direction"
    powered = (
        "n_human" in row
    )  # then a difference need not be that of the means, each of both labels
    apart = values.get(str(row["model"]), np.nan) - values.get(str(row["baseline"]), np.nan)
    if powered and sign != "open" and apart * row["diff"] < 0:
        return "labels_disagree"
    of = ("baseline",) if powered else ("model", "baseline")
    means = [(values.get(str(row[name])), row.get(f"mean_{name}")) for name in of]
    known = [(one, other) for one, other in means if pd.notna(one) and pd.notna(other)]
    if "different_lists" in codes_of(row["remarks"]) or all(
        np.isclose(*pair, rtol=1e-6, atol=1e-9) for pair in known
    ):
        return ""
    return "other_numbers"


def effect_text(diff: float, low: float, high: float, relative: float) -> str:
    """Difference, interval and relative difference in words."""
    form = f"+.{digits_for(diff, low, high)}f"
    words = number(diff, form)
    if not np.isnan(low):
        words += f" (interval {number(low, form)} to {number(high, form)})"
    return words + ("" if np.isnan(relative) else f", {number(relative, '+.0%')}")


def _of_duel(subject: Subject, duel: Duel, n_models: int) -> Headline:
    against = "the baseline " if subject.baseline is not None else "the second best, "
    picked: list[Sentence] = []
    if n_models > 2:
        counted = (
            "taken into account" if duel.together >= n_models - 1 else "not taken into account"
        )
        how = adjustment(subject.comparison).words if subject.comparison is not None else ""
        picked.append(
            (
                f"It {_best_model(subject)} of {n_models} models. That it was picked among several "
                f"is {counted}: the p-values are {how}.",
            )
        )
    if subject.baseline is None:
        picked.append(
            ("No baseline was named, so the best model is compared with the second best.",)
        )
    pair: Sentence = (Name(duel.rival), " on ", Name(subject.primary), ".")
    if duel.sign == "better":
        better: Sentence = (Name(duel.model), f" is better than {against}", *pair)
        return Headline(Badge("better", "better"), better, picked, duel)
    if is_withheld(duel.row):
        few = "too few lists to tell" if duel.row["withheld"] in TOO_FEW else "withheld"
        said: Sentence = (
            "The verdict is withheld (",
            Name(duel.verdict),
            "): ",
            Name(duel.model),
            " against ",
            *pair,
        )
        return Headline(Badge("warning", few), said, picked, duel)
    if duel.turned:
        said = (
            Name(duel.model),
            f" {_best_model(subject)} of {subject.primary}. Against ",
            Name(duel.rival),
            f": {duel.verdict}.",
        )
        return Headline(Badge("warning", duel.verdict), said, picked, duel)
    ranks = "found to differ by its signed ranks, which say nothing of the mean, from"
    found, mark = {
        "equivalent": ("equivalent to", "equivalent"),
        "ranks_higher": (ranks, "no verdict"),
        "ranks_lower": (ranks, "no verdict"),
    }.get(duel.row["effect"], ("not shown to be better than", "no difference shown"))
    said = (
        Name(duel.model),
        f" {_best_model(subject)} of {subject.primary}, and is {found} {against}",
        Name(duel.rival),
        ".",
    )
    return Headline(Badge("open", mark), said, picked, duel)


def _baseline_stays(subject: Subject, order: list[str]) -> Headline:
    duels = [find_duel(subject, subject.primary, model, order[0]) for model in order[1:]]
    mean = (
        "the baseline ",
        Name(order[0]),
        f", which {_best_model(subject)} of ",
        Name(subject.primary),
        ".",
    )
    turned = [duel for duel in duels if duel is not None and duel.turned]
    where = next(
        (duel for duel in turned if duel.row["effect_both"] == "better"),
        turned[0] if turned else None,
    )
    if where is not None:
        turns: Sentence = (
            "No model is shown to be better than ",
            *mean[:-1],
            " over all lists. ",
            Name(where.model),
            f" is {where.verdict}.",
        )
        return Headline(Badge("warning", where.verdict), turns, [], where)
    if all(duel is not None and duel.sign == "worse" for duel in duels):
        below: Sentence = ("Each of the others is shown to be worse.",)
        return Headline(
            Badge("open", "keep the baseline"),
            ("No model is better than ", *mean),
            [below],
            duels[0],
        )
    said: list[Sentence] = []
    if (first := duels[0]) is not None:
        said.append(("The next best is ", Name(first.model), f": {first.verdict}."))
    kept = ("No model is shown to be better than ", *mean)
    if any(duel is not None and is_withheld(duel.row) for duel in duels):
        few = all(duel is not None and duel.row["withheld"] in TOO_FEW for duel in duels)
        mark = Badge("warning", "too few lists to tell" if few else "withheld")
        return Headline(mark, ("A verdict is withheld. ", *kept), said, first)
    return Headline(Badge("open", "keep the baseline"), kept, said, first)


def _best_model(subject: Subject) -> str:
    """Say whether the model with the best mean has it alone."""
    values = subject.values(subject.primary)["value"]
    best = values.min() if subject.better(subject.primary) == "smaller" else values.max()
    return "has the best mean" if (values == best).sum() == 1 else "shares the best mean"


def _one_model(subject: Subject, model: str) -> Sentence:
    row: Any = subject.values(subject.primary).loc[model]
    bounds = (
        "" if pd.isna(row["ci_low"]) else f" (interval {row['ci_low']:.3f} to {row['ci_high']:.3f})"
    )
    return (
        Name(subject.primary),
        f" is {row['value']:.3f}{bounds}. One model was evaluated: nothing is compared.",
    )


def _no_direction(subject: Subject) -> Sentence:
    why = (
        "has no better direction"
        if not subject.better(subject.primary)
        else "has no value per user to test"
    )
    why = (
        "is undefined for every list"
        if subject.values(subject.primary)["value"].isna().all()
        else why
    )
    return ("There is no verdict: the first metric, ", Name(subject.primary), f", {why}.")


def _not_compared(subject: Subject, best: str, rival: str) -> Sentence:
    return (
        "There is no verdict: the comparison that was given has not one row of ",
        Name(best),
        " and ",
        Name(rival),
        " on ",
        Name(subject.primary),
        ".",
    )


# -- beside the headline


def other_metrics(subject: Subject) -> list[Sentence]:
    """Say on which other metrics the best model is better, worse, or not shown to differ."""
    if subject.comparison is None or subject.pair is None or subject.baseline is None:
        return []
    best, _ = subject.pair
    words = {
        "worse": "worse on ",
        "better": "better on ",
        "open": "not shown to differ on ",
        "check": "verdict withheld on ",
        "ranks": "signed ranks differ on ",
        "apart": "different on ",
    }
    by_sign: dict[str, list[str]] = {sign: [] for sign in words}
    for column in subject.columns[1:]:
        duel = find_duel(subject, column, best, subject.baseline)
        if duel is not None:
            sign = "check" if is_withheld(duel.row) else OTHERS.get(duel.row["effect"], duel.sign)
            by_sign[sign].append(f"{column} ({duel.effect})" if sign == "worse" else column)
    parts = [words[sign] + ", ".join(names) for sign, names in by_sign.items() if names]
    return (
        [(Name(best), " against ", Name(subject.baseline), ": " + "; ".join(parts) + ".")]
        if parts
        else []
    )


def belief(subject: Subject) -> list[Sentence]:
    """Say what speaks for and against the numbers: the test, the number of lists, the correction,
    the warnings."""
    table = subject.comparison
    if table is None or not len(table):
        return []
    names = {
        "t": "Paired t tests",
        "wilcoxon": "Wilcoxon tests",
        "randomization": "Randomization tests",
        "bootstrap": "Bootstrap tests",
    }
    tests = table["test"].astype(str).unique().tolist() if "test" in table.columns else []
    kind = names.get(tests[0], "Tests") if len(tests) == 1 else "Tests"
    counts = [
        sorted({int(n) for n in table[name]})
        for name in ("n_users", "n_lists")
        if name in table.columns
    ]
    users, lists = (
        f"{n[0]:,}" if n[0] == n[-1] else f"{n[0]:,} to {n[-1]:,}" for n in (counts[0], counts[-1])
    )
    n = f"{lists} lists" if users == lists else f"{lists} lists of {users} users"
    lacking = table.filter(like="n_lacking_").any(axis=None)
    counted = (
        ", where a list that a model lacks counts as 0" if lacking else " that both models have"
    )
    said: list[Sentence] = [(f"{kind} on {n}{counted}; p-values {adjustment(table).words}.",)]
    side = table.attrs.get("recdf_comparison", {}).get("alternative", "two-sided")
    if side != "two-sided":
        found = "larger" if side == "greater" else "smaller"
        said.append(
            (
                f"The tests are one-sided: they can show that a model has {found} values, and "
                "nothing else.",
            )
        )
    said += [(text,) for text in compared_labels(table)]
    return [
        *said,
        *((text,) for text in warning_sentences(table) or ["No comparison carries a warning."]),
    ]


def badge_of(row: Mapping[Any, Any]) -> BadgeKind:
    """Return the look of the badge of a verdict."""
    if is_withheld(row) or "missing_lists" in codes_of(row.get("remarks")):
        return "warning"
    return sign_of(row)

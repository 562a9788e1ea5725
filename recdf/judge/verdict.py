"""Verdicts: codes in columns, and the only place that makes sentences of them.

Contract: `add_verdicts` runs all cautions over a table and adds `effect` (a code of `EFFECTS`, ""
where the verdict is withheld), `withheld` (the code of the caution that withholds it, or ""),
`remarks` (all codes that hold, the most serious first, joined by "; ") and `verdict`, their
sentence for people. Nothing reads a sentence back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..stats.numbers import Mask
from .cautions import HEALTH_ALPHA
from .cautions.few_lists import FEW_LISTS
from .cautions.few_lists_differ import FEW_UNITS
from .cautions.table import CAUTIONS, RANK, UNLIKE

VERDICT_COLUMNS = ["effect", "withheld", "remarks", "verdict"]

# The effects of each kind of verdict, in words.
_DIRECTIONS = {
    "better": "better",
    "worse": "worse",
    "higher": "higher",
    "lower": "lower",
    "none": "no difference shown",
}
EFFECTS: dict[str, dict[str, str]] = {
    "variants": _DIRECTIONS,
    "models": {
        **_DIRECTIONS,
        "equivalent": "equivalent",
        "ranks_higher": "ranks higher",
        "ranks_lower": "ranks lower",
    },
    "trend": {"fades": "fades", "grows": "grows", "turns": "turns", "none": "no trend shown"},
    "segments": {
        "differs": "differs between segments",
        "none": "no difference between segments shown",
    },
    "labels": {**_DIRECTIONS, "both": "both", "human_alone": "human alone"},
    "proxy": {
        "predicts": "predicts",
        "predicts_opposite": "predicts the opposite",
        "none": "no relation shown",
    },
    "aa": {
        "holds": "holds",
        "rejects_often": "rejects too often",
        "rejects_rarely": "rejects too rarely",
    },
    "ratio": {"fits": "fits"},
    "history": {
        "better": "better",
        "worse": "worse",
        "changed": "changed",
        "drifted": "drifted",
        "none": "no change shown",
    },
    "gate": {
        "pass": "pass",
        "pass_but_worse": "pass, but worse",
        "fail": "fail",
        "undecided": "undecided",
        "not_gated": "not gated",
    },
    "role": {
        **_DIRECTIONS,
        "safe": "safe",
        "within_margin": "worse, within the margin",
        "harmed": "harmed beyond the margin",
        "not_safe": "not shown safe",
    },
    "decision": {
        "ship": "ship",
        "ship_not_as_planned": "ship, not as planned",
        "do_not_ship": "do not ship",
        "keep_running": "keep running",
        "invalid": "invalid",
    },
}
# Kinds whose verdicts say no more than this where they are withheld; `remarks` say why.
CANNOT_TELL = dict.fromkeys(("labels", "proxy", "history"), "cannot tell")


def sentence(
    kind: str,
    effect: str,
    withheld: str = "",
    remarks: Iterable[str] = (),
    row: Mapping[Any, Any] | None = None,
) -> str:
    """Return the verdict of a row in words: why it is withheld, else the effect and what is added
    to it."""
    known = {**(row or {})}
    if "effect_both" in known:
        known["both"] = EFFECTS["models"].get(known["effect_both"], "not shown")
    if withheld:
        return CANNOT_TELL.get(kind) or CAUTIONS[withheld].words.format_map(known)
    added = [CAUTIONS[code].adds for code in remarks if CAUTIONS[code].adds]
    return EFFECTS[kind][effect] + "".join(one.format_map(known) for one in added)


def codes_of(remarks: Any) -> list[str]:
    """Return the codes of one cell of `remarks`."""
    return [code for code in str(remarks).split("; ") if code]


def by_rank(codes: Iterable[str]) -> str:
    """Return codes as one cell of `remarks`, the most serious first."""
    return "; ".join(sorted(set(codes), key=RANK.__getitem__))


def has(remarks: pd.Series, *codes: str) -> Mask:
    """Return which rows carry any of the codes."""
    return np.array([not {*codes}.isdisjoint(codes_of(text)) for text in remarks], np.bool_)


def remark(table: pd.DataFrame, rows: Any, code: str) -> None:
    """Add a code to the remarks of some rows of a table."""
    table["remarks"] = [
        by_rank([*codes_of(text), code]) if there else text
        for text, there in zip(table["remarks"], rows, strict=True)
    ]


def warnings_of(remarks: Any) -> list[str]:
    """Return the codes of a cell that are warnings, and not only notes."""
    return [code for code in codes_of(remarks) if CAUTIONS[code].warns]


def effects_of(table: pd.DataFrame, reject: Mask, better: Mapping[str, str | None]) -> list[str]:
    """Return the effect of every row: better or worse, higher or lower of a metric without
    direction, none."""
    effects = []
    for metric, diff, shown in zip(table["metric"], table["diff"], reject, strict=True):
        good, bad = ("higher", "lower") if better[metric] is None else ("better", "worse")
        effect = good if (diff > 0) == (better[metric] != "smaller") else bad
        effects.append(effect if shown else "none")
    return effects


def add_verdicts(table: pd.DataFrame, kind: str, effects: Sequence[str]) -> None:
    """Run all cautions over a table of comparisons, and add its four columns.

    `remarks` of the table, if there are any, hold the codes that the arithmetic met.
    """
    if "remarks" not in table.columns:
        table["remarks"] = ""
    table["effect"] = pd.Series(effects, table.index, dtype=object)
    for one in CAUTIONS.values():
        if one.fires is not None and {*one.needs.split()} <= {*table.columns}:
            remark(table, one.fires(table), one.code)
    found = []
    for row in table.to_dict("records"):
        remarks = codes_of(by_rank(codes_of(row["remarks"])))
        withheld = next((code for code in remarks if CAUTIONS[code].withheld(kind, row)), "")
        effect = "" if withheld else row["effect"]
        said = sentence(kind, effect, withheld, remarks, row)
        found.append((effect, withheld, "; ".join(remarks), said))
    of_columns = list(zip(*found, strict=True)) or [()] * 4
    for name, values in zip(VERDICT_COLUMNS, of_columns, strict=True):
        table[name] = pd.Series(values, table.index, dtype=str)


def are_invalid(table: pd.DataFrame) -> Mask:
    """Return which rows say that the variants are not alike, or were not assigned alike."""
    return table["withheld"].isin(UNLIKE).to_numpy(bool)


# -- verdicts as texts, until every table has the codes


def effect_words(table: pd.DataFrame, reject: Mask, better: Mapping[str, str | None]) -> list[str]:
    """ "better" or "worse" of a rejected difference, "higher" or "lower" of a metric without
    direction."""
    words = []
    for metric, diff, shown in zip(table["metric"], table["diff"], reject, strict=True):
        good, bad = ("higher", "lower") if better[metric] is None else ("better", "worse")
        word = good if (diff > 0) == (better[metric] != "smaller") else bad
        words.append(word if shown else "no difference shown")
    return words


# Warnings that withhold the verdict of a comparison of variants, the most serious first.
WITHHELD = {
    "sample_ratio": "invalid: sample ratio",
    "unequal_missing": "check: unequal missing values",
    "shares_change": "check: shares of the variants change",
    "covariate_after": "check: covariate after exposure",
    "covariate_differs": "check: covariate differs",
    "huge_values": "check: huge values",
    "zero_denominator": "check: zero denominator",
    "too_few_users": "check: tiny arms",
    "tiny": "check: tiny arms",
    "constant_arm": "check: constant arm",
    "different_lists": "check: undefined for different lists",
    "few_users_carry": "check: few users carry it",
    "repeated_units": "check: repeated units",
    "few_units": "check: few units decide",
    "denominator_differs": "check: denominator differs",
    "skewed": "check: skewed",
    "not_random": "check: lists of people not random",
}

# Of these verdicts, those that say that the variants are not alike, or were not assigned alike.
NOT_ALIKE = [
    WITHHELD[name]
    for name in ("sample_ratio", "shares_change", "covariate_after", "covariate_differs")
]

# Warnings that withhold it, too.
OF_PAIRS = ("huge_values", "different_lists", "few_users_carry", "not_random")

# What a warning of `compare_models` means to a reader.
PAIR_WARNINGS = {
    "zero_variance": "all users have the same difference, so that there is nothing to test",
    "too_few_users": "fewer than two users have a value for both models",
    "huge_values": "the values are too large to compute with",
    "different_lists": "only one of the models has a value for some lists, and the difference is "
    "that of the others",
    "missing_lists": "a model has no recommendations for some lists of the other, where it counts "
    "as 0",
    "few_human": "people judged lists of fewer than 30 users, so that there is no verdict",
    "not_random": "the lists that people judged are no random sample of all, so that there is no "
    "verdict",
    "wilcoxon_not_mean": "the Wilcoxon test is not about the mean, which stands beside it",
    "repeated_units": "a column that repeats looks like users, whose lists are not independent; "
    "unit_col= names it",
    "mostly_zero": "95 % or more of the users get the same from both models, so that few users "
    "decide",
    "few_users_carry": "a few users have most of the weight, so that there is no verdict",
    "few_differ": "fewer than 50 users differ, so that the test errs more often than it says",
    "skewed": "a few large differences decide, so that the test errs more often than it says",
}


def warning_sentences(table: pd.DataFrame) -> list[str]:
    """Say what every warning of a comparison of models means, and how many of its rows carry it."""
    words = Counter(
        word for text in table["warning"].astype(str) for word in text.split("; ") if word
    )
    return [
        f"{n} of {len(table)} comparisons {'carries' if n == 1 else 'carry'} the warning "
        f"“{word.replace('_', ' ')}”"
        f"{f': {PAIR_WARNINGS[word]}' if word in PAIR_WARNINGS else ''}."
        for word, n in words.items()
    ]


NOT_CHECKED = " (sample ratio not checked)"


def variant_verdicts(
    table: pd.DataFrame, reject: Mask, better: Mapping[str, str | None], ratio_checked: Mask
) -> list[str]:
    """Verdict of every row: withheld for a warning, else the effect in a word, and what has not
    been checked."""
    verdicts = []
    rows = zip(
        effect_words(table, reject, better),
        table["warning"],
        table["diff"],
        table["balance_p"],
        strict=True,
    )
    for (word, warning, diff, balance_p), checked in zip(rows, ratio_checked, strict=True):
        named = warning.split("; ")
        if "covariate_differs" in named and balance_p >= HEALTH_ALPHA:  # only a remark
            named.remove("covariate_differs")
        reason = next((text for name, text in WITHHELD.items() if name in named), "")
        if not reason and "zero_variance" in named and diff != 0:
            reason = "check: zero variance"
        verdicts.append(reason or (word if checked else word + NOT_CHECKED))
    return verdicts


def model_verdicts(
    table: pd.DataFrame,
    reject: Mask,
    equivalent: Mask,
    better: Mapping[str, str | None],
    ranks: Mask | None,
) -> list[str]:
    """Verdict of every pair; with `ranks` (the signed ranks are higher) it follows the ranks and
    not the mean."""
    if ranks is None:
        words = effect_words(table, reject, better)
    else:
        shown = np.where(ranks, "ranks higher", "ranks lower")
        words = np.where(reject, shown, "no difference shown").tolist()
    verdicts = []
    for word, shown_effect, within, reason in zip(
        words, reject, equivalent, _withheld_pairs(table), strict=True
    ):
        within_margin = f"{word}, within the margin" if shown_effect else "equivalent"
        verdicts.append(reason or (within_margin if within else word))
    return verdicts


# Doubts about a period that a trend shares: its users are not alike, or not all of them are there.
DOUBTFUL_TRENDS = [*NOT_ALIKE, WITHHELD["unequal_missing"]]


def trend_verdicts(
    table: pd.DataFrame, of_periods: Sequence[Sequence[str]], least: int
) -> list[str]:
    """Verdict of every trend: "fades" or "grows" is about the size of the effect, and "turns" about
    its sign."""
    verdicts = []
    for row, periods in zip(table.to_dict("records"), of_periods, strict=True):
        doubt = next((text for text in DOUBTFUL_TRENDS if text in periods), "")
        equal = "check: zero variance" if np.isnan(row["se"]) and abs(row["diff"]) > 0 else ""
        tiny = WITHHELD["tiny"] if row["n"] < least else equal
        shown = (
            "turns"
            if row["turns"]
            else "grows"
            if abs(row["late"]) > abs(row["early"])
            else "fades"
        )
        checked = "" if all(NOT_CHECKED not in text for text in periods) else NOT_CHECKED
        verdicts.append(doubt or tiny or (shown if row["reject"] else "no trend shown") + checked)
    return verdicts


DIFFERS, DOES_NOT_DIFFER = "differs between segments", "no difference between segments shown"


def segments_verdict(
    of_segments: Sequence[str], doubts: Sequence[str], differs: bool, without_doubts: bool
) -> str:
    """Verdict of the segments of one metric and pair; a difference that rests on segments in doubt
    is withheld."""
    doubt = next((text for text in NOT_ALIKE if text in doubts), "")
    if differs and not without_doubts and doubts:
        doubt = doubt or doubts[0]
    checked = NOT_CHECKED if any(text.endswith(NOT_CHECKED) for text in of_segments) else ""
    return doubt or (DIFFERS if differs else DOES_NOT_DIFFER) + checked


def _withheld_pairs(table: pd.DataFrame) -> list[str]:
    """Why the verdict of each pair of models is withheld, or an empty text."""
    found = []
    differ = table["wins"] + table["losses"]
    for n, n_differ, warning in zip(table["n_users"], differ, table["warning"], strict=True):
        named = warning.split("; ")
        reasons = {
            "check: too few lists": n < FEW_LISTS,
            "check: zero variance": "zero_variance" in named and n_differ,
            "check: too few lists differ": 0 < n_differ < FEW_UNITS,
            **{WITHHELD[name]: name in named for name in OF_PAIRS},
        }
        found.append(next((text for text, holds in reasons.items() if holds), ""))
    return found

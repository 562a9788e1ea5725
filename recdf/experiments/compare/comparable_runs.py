"""What two models must share before their values are compared, and what both have lists for."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...judge.cautions import FEW_LISTS, MANY_SHORT
from ...judge.choices import AnySpec, Better, Row
from ...judge.comparability import Fact, facts_of
from ...judge.verdict import codes_of, effects_of, sentence
from ...metrics.strings import request_of
from ...stats.numbers import undefined_is_nan
from ...stats.turned import turned_by
from ...tables.cells import amount, estimated, form_of, number, visible


def frames_of_results(per_user: Any, in_buckets: bool = False) -> Any:
    """Return the tables of results, which hold in `attrs` what they were evaluated with. With
    `in_buckets` a result whose rows stay where they are is returned as it is."""
    if isinstance(per_user, Mapping):
        return {name: frames_of_results(one) for name, one in per_user.items()}
    if in_buckets and getattr(per_user, "rows_stay", False):
        return per_user
    if not hasattr(per_user, "per_user") or not hasattr(per_user, "spec"):
        return per_user
    if not isinstance(per_user.per_user, pd.DataFrame):
        per_user = per_user.to_pandas()  # the rows of an engine come into memory
    table = per_user.per_user.copy(deep=False)
    table.attrs = {"recdf": per_user.spec}
    return table


def comparing(
    models: Sequence[Any],
    specs: Sequence[AnySpec],
    truth: Callable[[list[int], bool], Any] | None,
    short: Callable[[list[int], int], Any] | None,
) -> Callable[[str, int, int], Row]:
    """Return a function of a metric and two models that says what they do not share."""

    @functools.cache
    def of_truth(base: int, model: int) -> str:
        """How the truths differ, or nothing."""
        own = [specs[base], specs[model]]
        if truth is not None:
            users = {one.get("options", {}).get("users") for one in own}
            alike = own[0].get("by", 0) == own[1].get("by", 1)
            unlike, of = truth([base, model], alike and users <= {"true", "all"})
            if unlike:
                return f"{unlike:,} of {amount(of, 'list')}"
        digests = {one.get("truth") for one in own}
        return "other items" if len(digests) == 2 and None not in digests else ""

    @functools.cache  # for all metrics of a cut-off
    def of_short(base: int, model: int, k: int) -> Any:
        assert short is not None
        found = short([base, model], k)
        return found[:2] / max(found[2], 1)

    def compared(metric: str, base: int, model: int) -> Row:
        codes, unlike = [], []
        if others := of_truth(base, model):
            codes, unlike = ["other_truth"], [f"other truth ({others})"]
        own, other = specs[model], specs[base]
        if own is not other and own and other:
            facts = differing_facts(own, other, metric)
            codes += [one.code for one in facts.values()]
            unlike += [_said(name, one) for name, one in facts.items()]
        shares, k = np.zeros(2), cut_off(own, metric)
        if k is not None and short is not None:
            shares = of_short(base, model, k)
            shorter = models[(base, model)[int(np.argmax(shares))]]
            unlike.append(f"{shares.max():.0%} of the lists of {shorter} are shorter than {k}")
        return {
            "short_baseline": shares[0],
            "short_model": shares[1],
            "unlike": unlike[0] if codes or shares.max() >= MANY_SHORT else "",
            "remarks": "; ".join(dict.fromkeys(codes)),
        }

    return compared


def differing_facts(own: AnySpec, base: AnySpec, metric: str) -> dict[str, Fact]:
    """Return what two results of a metric were evaluated with where it differs."""
    meant: list[str | None] = []  # with all parameters; None if it was not recorded
    for spec in (own, base):
        found = spec.get("metrics", {}).get(metric, {}).get("definition")
        request = None if found is None else request_of(found)
        meant.append(found if request is None else request.definition)
    facts = facts_of(own, base, {metric: meant})
    return {name: one for name, one in facts.items() if one.differs}


def unlike_nights(own: AnySpec, base: AnySpec, metric: str) -> str:
    """Say how a night of a job was evaluated where another night was not, or nothing.

    Truth, side tables and the number of given users may be others every night.
    """
    own, base = (
        {
            **spec,
            "side_tables": {},
            "options": {
                name: re.sub(r"[\d,]+ given", "given", str(one)) if name == "users" else one
                for name, one in spec.get("options", {}).items()
            },
        }
        for spec in (own, base)
    )
    return ", ".join(_said(name, one) for name, one in differing_facts(own, base, metric).items())


def _said(name: str, fact: Fact) -> str:
    """Say what of two models differs; of definitions only the parameters that do."""
    own, base = (str(one) for one in (fact.own, fact.base))
    if fact.code == "other_definition":
        parts = [re.split(r"[(,)]", one.rpartition("@")[0] or one) for one in (own, base)]
        pairs = [pair for pair in zip(*parts, strict=False) if pair[0] != pair[1]]
        own, base = (" ".join(one) for one in zip(*pairs, strict=True)) if pairs else (own, base)
        name = f"other {name}:"
    return f"{name.removeprefix('option ')} {own}, not {base}"


def cut_off(spec: AnySpec, metric: str) -> int | None:
    """Return k of a metric, from its record or its name."""
    known = spec.get("metrics", {}).get(metric)
    if known is not None:
        return known.get("k")
    k = metric.rpartition("@")[2]
    return int(k) if k.isdecimal() and "@" in metric else None


NUMBERS_OF_BOTH = ["n_both", "mean_baseline_both", "mean_model_both", "diff_both", "se_both"]
COLUMNS_OF_BOTH = [
    "n_lacking_baseline",
    "n_lacking_model",
    *NUMBERS_OF_BOTH,
    "ci_low_both",
    "ci_high_both",
    "effect_both",
    "withheld_both",
    "turned_by_both",
]


def judge_both(table: pd.DataFrame, better: Mapping[str, Better | None]) -> None:
    """Add the interval and the effect on the lists that both models have.

    The interval is as many standard errors wide as the one beside it.
    """
    names = ["ci_low", "ci_high", "se", "diff", "n_users", "typical", "reach"]
    of_both = ["diff_both", "se_both", "n_both"]
    low, high, se, diff, users, typical, reach, both, se_both, n = (
        table[name].to_numpy(np.float64) for name in names + of_both
    )
    with undefined_is_nan():
        lower, upper = both - (diff - low) / se * se_both, both + (high - diff) / se * se_both
    table["ci_low_both"], table["ci_high_both"] = lower, upper
    shown = (lower > 0) | (upper < 0)
    effects = effects_of(table.assign(diff=both), shown, better)
    lacking = table["n_lacking_baseline"] + table["n_lacking_model"] > 0
    few = lacking & (n < FEW_LISTS)
    by = turned_by(both, n * typical / np.maximum(users, 1), -reach, reach, 0.0)
    table["turned_by_both"] = np.where(shown & ~table["powered"], by, np.nan)
    turned = lacking & ~few & (table["turned_by_both"] < table["unseen"])
    withheld = np.select([few, turned], ["few_lists", "unseen_units"], "")
    table["effect_both"] = pd.Series(np.where(lacking & (withheld == ""), effects, ""), dtype=str)
    table["withheld_both"] = pd.Series(withheld, dtype=str)


def sentence_of_both(row: Mapping[Any, Any]) -> str:
    """Say how many lists each model lacks, and how they compare where both have lists; nothing if
    none is lacking."""
    if "n_both" not in row and "missing_lists" in codes_of(row["remarks"]):
        return (
            "A model lacks lists that the other has, and counts as 0 there; n_lacking_model, "
            "n_lacking_baseline and diff_both of a comparison with details=True say how much that "
            "changes."
        )
    lacks = [
        f"{visible(row[role])} lacks {int(row[f'n_lacking_{role}']):,} of "
        f"{amount(row['n_lists'], 'list')}"
        for role in ("model", "baseline")
        if row.get(f"n_lacking_{role}", 0)
    ]
    if not lacks:
        return ""
    text = f"{' and '.join(lacks)} that the other has, and counts as 0 there"
    if pd.isna(row["diff_both"]):
        return f"{text}; no list is in both."
    means = row["mean_model_both"], row["mean_baseline_both"]
    around = row["diff_both"], row["ci_low_both"], row["ci_high_both"]
    form = form_of(*means, half=(around[2] - around[1]) / 2)
    of_both = f"{' against '.join(number(mean, form) for mean in means)}: {estimated(*around, '+')}"
    turned = {"turned_by": row["turned_by_both"], "turned_to": "lose or gain"}
    said = sentence("models", row["effect_both"], row["withheld_both"], row=turned)
    return f"{text}. Where both have lists, {row['metric']} is {of_both}, {said}."

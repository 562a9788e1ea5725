"""What two models must share before their values are compared, as columns of the pair."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...inputs.per_user_columns import evaluated
from ...judge.cautions.not_comparable import MANY_SHORT
from ...judge.comparability import Fact, facts_of, lists_shorter_than, other_truth, spec_of_each
from ...metrics.strings import request_of
from ...stats.numbers import Floats
from .runs import Runs


def frames_of_results(per_user: Any) -> Any:
    """Return the tables of results, which hold in `attrs` what they were evaluated with."""
    if isinstance(per_user, Mapping):
        return {name: frames_of_results(one) for name, one in per_user.items()}
    if not hasattr(per_user, "per_user") or not hasattr(per_user, "spec"):
        return per_user
    table = per_user.per_user.copy(deep=False)
    table.attrs = {"recdf": per_user.spec}
    return table


def comparing(runs: Runs) -> Callable[[str, int, int], dict[str, Any]]:
    """Return a function of a metric and two models that says what they do not share."""
    frames = [frame for _, frame in runs.parts]
    if len(frames) == len(runs.models):
        specs: Sequence[Mapping[str, Any]] = [evaluated(frame) for frame in frames]
    else:
        specs = spec_of_each(evaluated(frames[0]), runs.models)
    counts: dict[str, Floats] = {
        name: runs.table(name)
        for name in ("n_true", "n_pred")
        if all(name in frame.columns for frame in frames)
    }
    truths: dict[tuple[int, int], str] = {}

    @functools.cache  # for all metrics of a cut-off
    def of_short(base: int, model: int, k: int) -> Floats:
        return lists_shorter_than(counts["n_pred"][[base, model]], k)

    def compared(metric: str, base: int, model: int) -> dict[str, Any]:
        pair = [base, model]
        if (base, model) not in truths:
            truths[base, model] = _other_truth([specs[i] for i in pair], counts, pair)
        codes, unlike = [], []
        if truths[base, model]:
            codes, unlike = ["other_truth"], [f"other truth ({truths[base, model]})"]
        own, other = specs[model], specs[base]
        if own is not other and own and other:
            facts = differing_facts(own, other, metric)
            codes += [one.code for one in facts.values()]
            unlike += [_said(name, one) for name, one in facts.items()]
        shares, k = np.zeros(2), _cut_off(own, metric)
        if k is not None and "n_pred" in counts:
            shares = of_short(base, model, k)
            shorter = int(np.argmax(shares))
            unlike.append(
                f"{shares[shorter]:.0%} of the lists of {runs.models[pair[shorter]]} are shorter "
                f"than {k}"
            )
        return {
            "short_baseline": shares[0],
            "short_model": shares[1],
            "unlike": unlike[0] if codes or shares.max() >= MANY_SHORT else "",
            "remarks": "; ".join(dict.fromkeys(codes)),
        }

    return compared


def differing_facts(
    own: Mapping[str, Any], base: Mapping[str, Any], metric: str
) -> dict[str, Fact]:
    """Return what two results of a metric were evaluated with where it differs."""
    facts = facts_of(own, base, {metric: [_definition(spec, metric) for spec in (own, base)]})
    return {name: one for name, one in facts.items() if one.differs}


def unlike_nights(own: Mapping[str, Any], base: Mapping[str, Any], metric: str) -> str:
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


def _other_truth(
    specs: Sequence[Mapping[str, Any]], counts: Mapping[str, Floats], pair: Sequence[int]
) -> str:
    """Say how the truths of two models differ, or nothing."""
    if "n_true" in counts:
        whole = all(
            one.get("options", {}).get("users") in ("true", "all") for one in specs
        ) and specs[0].get("by", 0) == specs[1].get("by", 1)
        unlike, of = other_truth(counts["n_true"][pair], whole)
        if unlike:
            return f"{unlike:,} of {of:,} lists"
    truths = {one.get("truth") for one in specs}
    return "other items" if len(truths) == 2 and None not in truths else ""


def _said(name: str, fact: Fact) -> str:
    """Say what of two models differs; of definitions only the parameters that do."""
    own, base = (str(one) for one in (fact.own, fact.base))
    if fact.code == "other_definition":
        parts = [re.split(r"[(,)]", one.rpartition("@")[0] or one) for one in (own, base)]
        pairs = [pair for pair in zip(*parts, strict=False) if pair[0] != pair[1]]
        own, base = (" ".join(one) for one in zip(*pairs, strict=True)) if pairs else (own, base)
        name = f"other {name}:"
    return f"{name.removeprefix('option ')} {own}, not {base}"


def _definition(spec: Mapping[str, Any], metric: str) -> str | None:
    """Return what a metric means in a result with all its parameters; None if it was not
    recorded."""
    found: str | None = spec.get("metrics", {}).get(metric, {}).get("definition")
    request = None if found is None else request_of(found)
    return found if request is None else request.definition


def _cut_off(spec: Mapping[str, Any], metric: str) -> int | None:
    """Return k of a metric, from its record or its name."""
    known = spec.get("metrics", {}).get(metric)
    if known is not None:
        return known.get("k")  # type: ignore[no-any-return]
    k = metric.rpartition("@")[2]
    return int(k) if k.isdecimal() and "@" in metric else None

"""The off-policy estimators: which weight each of them gives a row, and what else it uses.

Contract: an estimator is one record of `ESTIMATORS`. Its value is the mean over units of base +
g·(reward − base of the log), where g is the row's importance weight after `effective_weight`.
Nothing here knows a column.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from ..errors import OptionError, closest
from ..stats.numbers import Floats

Interaction = Literal["independent", "cascade", "standard"]
IntervalKind = Literal["delta", "bootstrap", "bounded"]

# What happens to a weight above the clip: it is cut to the clip, the row falls back on the reward
# model, or the weight shrinks smoothly. "model" uses no weight at all.
WeightRule = Literal["cap", "switch", "shrink", "model"]


class Estimator(NamedTuple):
    """One estimator: its rule for large weights, whether it uses a reward model, and whether
    weights are divided by their mean. `unclipped` names the estimator that it becomes when the clip
    grows without bound."""

    name: str
    rule: WeightRule
    uses_q: bool
    normalised: bool
    unclipped: str


ESTIMATORS: dict[str, Estimator] = {
    one.name: one
    for one in (
        Estimator("ips", "cap", False, False, "ips"),
        Estimator("snips", "cap", False, True, "snips"),
        Estimator("dm", "model", True, False, "dm"),
        Estimator("dr", "cap", True, False, "dr"),
        Estimator("sndr", "cap", True, True, "sndr"),
        Estimator("switch_dr", "switch", True, False, "dr"),
        Estimator("dros", "shrink", True, False, "dr"),
    )
}

# The names that papers on slates use, as an estimator and an interaction.
SLATE_NAMES: dict[str, tuple[str, Interaction]] = {
    "iips": ("ips", "independent"),
    "sniips": ("snips", "independent"),
    "rips": ("ips", "cascade"),
    "snrips": ("snips", "cascade"),
    "sips": ("ips", "standard"),
    "snsips": ("snips", "standard"),
}


class EstimatorRequest(NamedTuple):
    """One row of the result: an estimator under the name that the caller used, and its clip."""

    label: str
    estimator: Estimator
    clip: float | None
    interaction: Interaction | None


def find_estimator(
    name: object, interaction: Interaction | None
) -> tuple[Estimator, Interaction | None]:
    """Return the estimator of a name and the interaction that it implies."""
    if isinstance(name, str) and name in SLATE_NAMES:
        base, implied = SLATE_NAMES[name]
        if interaction not in (None, implied):
            raise OptionError(
                f"estimators names {name!r}, which means ⟦+interaction={implied!r}⟧, not "
                f"{interaction!r}"
            )
        return ESTIMATORS[base], implied
    if not isinstance(name, str) or name not in ESTIMATORS:
        known = [*ESTIMATORS, *SLATE_NAMES]
        raise OptionError(
            f"estimators names {name!r}; valid are {', '.join(known)}{closest(str(name), known)}"
        )
    return ESTIMATORS[name], interaction


def effective_weight(weight: Floats, rule: WeightRule, clip: float | None) -> Floats:
    """The weight that a row has in an estimator.

    cap: min(w, L). switch: w where w ≤ L, else 0. shrink: L·w/(w² + L). Without a clip the weight
    is unchanged.
    """
    if rule == "model":
        return np.zeros_like(weight)
    if clip is None:
        return weight
    if rule == "cap":
        return np.minimum(weight, clip)
    if rule == "switch":
        return np.where(weight <= clip, weight, 0.0)
    # L·w/(w² + L) with both sides divided by w, so that the square of a large weight does not
    # overflow.
    with np.errstate(divide="ignore"):
        return clip / (weight + clip / weight)

"""What one call asks of a log: the estimators, and the options of the call, checked before any row
is read.

Contract: an estimator is one record of `ESTIMATORS`. Its value is the mean over units of base +
g·(reward − base of the log), where g is the row's importance weight after `effective_weight`.
Nothing here knows a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, NamedTuple

import numpy as np

from ..errors import OptionError, closest
from ..inputs.constraints import (
    NONE,
    Constraint,
    a_number,
    either,
)
from ..inputs.options import as_columns
from ..judge.choices import Columns
from ..stats.numbers import Floats

Interaction = Literal["independent", "cascade", "standard"]
IntervalKind = Literal["delta", "bootstrap", "bounded"]

SlateKind = Literal["item", "conditional", "prefix", "slate"]

MODEL_COLUMNS = ("q_logged", "q_target")  # the arguments with the columns of a reward model

# Which kinds of propensity give the weights of an interaction, and what the kind holds.
ALLOWED = {
    "independent": ("item",),
    "cascade": ("conditional", "prefix"),
    "standard": ("conditional", "prefix", "slate"),
}
MEANING = {
    "item": "the probability of the item at its position, whatever stands at the others",
    "conditional": "the probability of the item at its position, given the items above it",
    "prefix": "the probability of the items down to this position",
    "slate": "the probability of the whole slate",
}

# What happens to a weight above the clip: it is cut to the clip, the row falls back on the reward
# model, or the weight shrinks smoothly. "model" uses no weight at all.
WeightRule = Literal["cap", "switch", "shrink", "model"]
# What the sums of a request depend on: its rule, whether it uses a reward model, and its clip.
RequestKind = tuple[WeightRule, bool, float | None]


class Estimator(NamedTuple):
    """One estimator: its rule for large weights, whether it uses a reward model, and whether
    weights are divided by their mean. `unclipped` names the estimator that it becomes when the clip
    grows without bound."""

    name: str
    rule: WeightRule
    uses_q: bool
    normalised: bool
    unclipped: str


ESTIMATORS = {
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

    @property
    def kind(self) -> RequestKind:
        """Requests of one kind share their sums."""
        return self.estimator.rule, self.estimator.uses_q, self.clip


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


# ------------------------------------------------------------------------------------------
# What one call asks of every group of a log: requests, intervals, resampling; checked before any
# row is read.


Ragged = Literal["raise", "as_logged"]
LOW_AND_HIGH = Constraint(
    "a pair of finite numbers (lowest, highest)",
    lambda pair: (
        isinstance(pair, list | tuple)
        and len(pair) == 2
        and all(map(a_number().holds, pair))
        and pair[0] < pair[1]
    ),
    "pair of float",
)
Range = Annotated[tuple[float, float] | None, either(LOW_AND_HIGH, NONE)]


@dataclass(frozen=True)
class Plan:
    """What one call asks, under the names of its arguments: which column of a log holds
    what, how its rows belong together, what is estimated.

    Weights outside `weight_range` are an error, and so are rewards outside `reward_range`.
    """

    estimators: str | Sequence[str]
    clip: float | Sequence[float | None] | None = None
    interaction: Interaction | None = None
    slate_col: Columns | None = None
    propensity_kind: SlateKind = "item"
    ragged: Ragged = "raise"
    cluster: Columns | None = None
    reward_col: str = "reward"
    propensity_col: str = "propensity"
    target_col: str = "target_propensity"
    position_col: str = "position"
    weight_col: str | None = None
    q_logged: str | None = None
    q_target: str | None = None
    confidence: float = 0.95
    interval: IntervalKind = "delta"
    reward_range: Range = None
    weight_range: Range = None
    n_resamples: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        needing = [one.label for one in self.requests if one.estimator.uses_q]
        missing = [f"⟦{name}=⟧" for name in MODEL_COLUMNS if getattr(self, name) is None]
        if needing and missing:
            raise OptionError(
                f"estimators names {needing[0]!r}, which needs {' and '.join(missing)}: columns of "
                "a reward model at the logged item and on average under the target policy "
                "(reward_table makes them)"
            )
        if self.interval != "bounded":
            return
        for name in ("reward_range", "weight_range"):
            if getattr(self, name) is None:
                raise OptionError(
                    f"⟦interval='bounded'⟧ needs ⟦+{name}=⟧: the lowest and highest, seen or not"
                )
        for request in self.requests:
            if request.estimator.name not in ("ips", "snips") or request.clip is not None:
                raise OptionError(
                    "⟦interval='bounded'⟧ is for ips and snips without a clip, not "
                    f"{request.label!r}"
                )
        if self.unit or self.weight_col is not None:
            raise OptionError(
                "⟦interval='bounded'⟧ takes neither slates nor sample weights; use delta or "
                "bootstrap"
            )

    @property
    def unit(self) -> list[str]:
        """The columns of the slate."""
        return as_columns(self.slate_col)

    @property
    def model(self) -> list[str | None]:
        """The columns of the reward model, None where no estimator uses it."""
        used = any(request.estimator.uses_q for request in self.requests)
        return [getattr(self, name) if used else None for name in MODEL_COLUMNS]

    @cached_property
    def requests(self) -> list[EstimatorRequest]:
        """One request per estimator and clip, in the order in which they were asked for."""
        given = self.estimators
        unit = self.unit
        names = as_columns(given)
        if not names or len(set(names)) < len(names):
            raise OptionError(f"⟦estimators={given!r}⟧; expected one or more names, each once")
        clips = [None] if self.clip is None else as_columns(self.clip)
        for one in clips:
            if one is not None and not a_number(above=0).holds(one):
                raise OptionError(
                    f"⟦clip={self.clip!r}⟧ holds {one!r}; expected finite weights above 0, or None "
                    "for no clip"
                )
        if not clips or len(set(clips)) < len(clips):
            raise OptionError(f"⟦clip={self.clip!r}⟧; expected one or more weights, each once")
        found = []
        for name in names:
            base, implied = SLATE_NAMES.get(name, (name, self.interaction))
            if base not in ESTIMATORS:
                known = [*ESTIMATORS, *SLATE_NAMES]
                raise OptionError(
                    f"estimators names {name!r}; valid are {', '.join(known)}{closest(name, known)}"
                )
            estimator = ESTIMATORS[base]
            kind = self.propensity_kind
            own = [None] if estimator.rule == "model" else clips
            kinds = ("item",) if implied is None else ALLOWED[implied]
            refused = {
                f"names {name!r}, which means ⟦+interaction={implied!r}⟧, not "
                f"{self.interaction!r}": self.interaction not in (None, implied),
                f"names {name!r} with ⟦+interaction={implied!r}⟧, but ⟦+slate_col=⟧ names no "
                "slate": implied is not None and not unit,
                f"are of slates of ⟦slate_col={unit!r}⟧, so say which positions a reward depends "
                "on: ⟦interaction='independent'⟧, 'cascade' or 'standard'": unit
                and implied is None,
                f"names {name!r}, which is not defined for slates; use ips and snips": unit
                and estimator.uses_q,
                f"of ⟦interaction={implied!r}⟧ cannot be computed from ⟦propensity_kind={kind!r}⟧ "
                f"({MEANING[kind]}); it needs {' or '.join(map(repr, kinds))}": implied is not None
                and kind not in kinds,
                f"of ⟦propensity_kind={kind!r}⟧ are about slates; name the slate in "
                "⟦+slate_col=⟧": implied is None and kind != "item",
                f"names {name!r}, which needs ⟦+clip=⟧: the weight above which it uses the model": (
                    estimator.rule in ("switch", "shrink") and None in own
                ),
            }
            for words, holds in refused.items():
                if holds:
                    raise OptionError(f"estimators {words}")
            found += [
                EstimatorRequest(name, estimator, None if one is None else float(one), implied)
                for one in own
            ]
        return found

    @property
    def all_requests(self) -> list[EstimatorRequest]:
        """The requests, and what each clipped one is compared with to find what clipping
        changed."""
        found = list(self.requests)
        for label, estimator, _, interaction in self.requests:
            whole = EstimatorRequest(label, ESTIMATORS[estimator.unclipped], None, interaction)
            if whole[1:] not in [other[1:] for other in found]:
                found.append(whole)
        return found

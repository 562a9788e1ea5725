"""What one call asks of a log: the estimators, and the options of the call, checked before any row
is read.

Contract: an estimator is one record of `ESTIMATORS`. Its value is the mean over units of base +
g·(reward − base of the log), where g is the row's importance weight after `effective_weight`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import OptionError, closest
from ..inputs.constraints import NATURAL, SHARE, a_number, check_value, one_of
from ..inputs.options import as_columns
from ..stats.numbers import Floats

# ------------------------------------------------------------------------------------------
# The off-policy estimators: which weight each of them gives a row, and what else it uses.
#
# Contract: an estimator is one record of `ESTIMATORS`. Its value is the mean over units of base +
# g·(reward − base of the log), where g is the row's importance weight after `effective_weight`.
# Nothing here knows a column.


Interaction = Literal["independent", "cascade", "standard"]
IntervalKind = Literal["delta", "bootstrap", "bounded"]

SlateKind = Literal["item", "conditional", "prefix", "slate"]

# Which kinds of propensity give the weights of an interaction, and what the kind holds.
ALLOWED: dict[Interaction, tuple[SlateKind, ...]] = {
    "independent": ("item",),
    "cascade": ("conditional", "prefix"),
    "standard": ("conditional", "prefix", "slate"),
}
MEANING: dict[SlateKind, str] = {
    "item": "the probability of the item at its position, whatever stands at the others",
    "conditional": "the probability of the item at its position, given the items above it",
    "prefix": "the probability of the items down to this position",
    "slate": "the probability of the whole slate",
}

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

    @property
    def kind(self) -> tuple[WeightRule, bool, float | None]:
        """What its sums depend on: requests of one kind share them."""
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


RAGGED = ("raise", "as_logged")


class ValueRange(NamedTuple):
    """Smallest and largest value."""

    low: float
    high: float


@dataclass(frozen=True)
class Plan:
    """What one call asks, checked: which column of a log holds what, how its rows belong together,
    what is estimated.

    Weights outside `weight_range` are an error, and so are rewards outside `reward_range`.
    """

    requests: tuple[EstimatorRequest, ...] = ()
    reward: str = "reward"
    propensity: str = "propensity"
    target: str = "target_propensity"
    position: str = "position"
    sample_weight: str | None = None
    q_logged: str | None = None
    q_target: str | None = None
    unit: tuple[str, ...] = ()
    cluster: tuple[str, ...] = ()
    kind: SlateKind = "item"
    ragged: bool = False
    confidence: float = 0.95
    interval: IntervalKind = "delta"
    reward_range: ValueRange | None = None
    weight_range: ValueRange | None = None
    n_resamples: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        check_value("interval", self.interval, IntervalKind)
        check_value("confidence", self.confidence, SHARE)
        check_value("n_resamples", self.n_resamples, a_number(2, whole=True))
        check_value("seed", self.seed, NATURAL)
        if self.interval != "bounded":
            return
        for name, given in vars(self).items():
            if name.endswith("_range") and given is None:
                raise OptionError(
                    f"⟦interval='bounded'⟧ needs ⟦+{name}=⟧(lowest, highest), seen or not"
                )
        for request in self.requests:
            if request.estimator.name not in ("ips", "snips") or request.clip is not None:
                raise OptionError(
                    "⟦interval='bounded'⟧ is for ips and snips without a clip, not "
                    f"{request.label!r}"
                )
        if self.unit or self.sample_weight is not None:
            raise OptionError(
                "⟦interval='bounded'⟧ takes neither slates nor sample weights; use delta or "
                "bootstrap"
            )

    @property
    def all_requests(self) -> tuple[EstimatorRequest, ...]:
        """The requests, and what each clipped one is compared with to find what clipping
        changed."""
        found = list(self.requests)
        for label, estimator, _, interaction in self.requests:
            whole = EstimatorRequest(label, ESTIMATORS[estimator.unclipped], None, interaction)
            if whole[1:] not in [other[1:] for other in found]:
                found.append(whole)
        return tuple(found)


def read_range(name: str, given: Any) -> ValueRange | None:
    """Return a pair of finite numbers, the first below the second."""
    if given is None:
        return None
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        raise OptionError(f"⟦{name}={given!r}⟧; expected two numbers (lowest, highest)") from None
    if not (np.isfinite([low, high]).all() and low < high):
        raise OptionError(
            f"⟦{name}={given!r}⟧; expected two finite numbers, the first below the second"
        )
    return ValueRange(low, high)


def read_requests(
    estimators: Any,
    clip: Any,
    interaction: Interaction | None,
    unit: list[str],
    kind: SlateKind,
    ragged: str,
) -> tuple[EstimatorRequest, ...]:
    """Return one request per estimator and clip, in the order in which they were asked for; check
    what slates are."""
    check_value("propensity_kind", kind, SlateKind)
    check_value("ragged", ragged, one_of(RAGGED))
    check_value("interaction", interaction, Interaction | None)
    names = as_columns(estimators)
    if not names or len(set(names)) < len(names):
        raise OptionError(f"⟦estimators={estimators!r}⟧; expected one or more names, each once")
    clips: list[Any] = [None] if clip is None else as_columns(clip)
    for one in clips:
        if one is not None and not a_number(above=0).holds(one):
            raise OptionError(
                f"⟦clip={clip!r}⟧ holds {one!r}; expected finite weights above 0, or None for no "
                "clip"
            )
    if not clips or len(set(clips)) < len(clips):
        raise OptionError(f"⟦clip={clip!r}⟧; expected one or more weights, each once")
    found = []
    for name in names:
        base, implied = SLATE_NAMES.get(name, (name, interaction))
        if base not in ESTIMATORS:
            known = [*ESTIMATORS, *SLATE_NAMES]
            raise OptionError(
                f"estimators names {name!r}; valid are {', '.join(known)}"
                f"{closest(str(name), known)}"
            )
        estimator = ESTIMATORS[base]
        own = [None] if estimator.rule == "model" else clips
        kinds = ("item",) if implied is None else ALLOWED[implied]
        refused = {
            f"names {name!r}, which means ⟦+interaction={implied!r}⟧, not {interaction!r}": (
                interaction not in (None, implied)
            ),
            f"names {name!r} with ⟦+interaction={implied!r}⟧, but ⟦+slate_col=⟧ names no slate": (
                implied is not None and not unit
            ),
            f"are of slates of ⟦slate_col={unit!r}⟧, so say which positions a reward depends on: "
            "⟦interaction='independent'⟧, 'cascade' or 'standard'": (unit and implied is None),
            f"names {name!r}, which is not defined for slates; use ips and snips": (
                unit and estimator.uses_q
            ),
            f"of ⟦interaction={implied!r}⟧ cannot be computed from ⟦propensity_kind={kind!r}⟧ "
            f"({MEANING[kind]}); it needs {' or '.join(map(repr, kinds))}": (
                implied is not None and kind not in kinds
            ),
            f"of ⟦propensity_kind={kind!r}⟧ are about slates; name the slate in ⟦+slate_col=⟧": (
                implied is None and kind != "item"
            ),
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
    return tuple(found)


def model_columns(
    requests: Iterable[EstimatorRequest], q_logged: str | None, q_target: str | None
) -> tuple[str | None, str | None]:
    """Return the columns of the reward model, where an estimator uses them."""
    needing = [request.label for request in requests if request.estimator.uses_q]
    if not needing:
        return None, None
    missing = [
        name for name, given in (("q_logged", q_logged), ("q_target", q_target)) if given is None
    ]
    if missing:
        raise OptionError(
            f"estimators names {needing[0]!r}, which needs "
            f"{' and '.join(f'⟦{name}=⟧' for name in missing)}: columns of a reward model at the "
            "logged item and on average under the target policy (reward_table makes them)"
        )
    return q_logged, q_target

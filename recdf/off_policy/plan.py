"""What one call asks of every group of a log: requests, intervals, resampling; checked before any
row is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import OptionError
from ..inputs.constraints import NATURAL, SHARE, a_number, check_value, one_of
from .bounded import ValueRange
from .estimators import ESTIMATORS, EstimatorRequest, Interaction, IntervalKind, find_estimator
from .slates import SlateKind, check_kind

RAGGED = ("raise", "as_logged")


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
    slate_propensity: str | None = None
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
        if self.interval == "bounded":
            self._check_bounded()

    def _check_bounded(self) -> None:
        """Refuse what the bounded interval is not defined for."""
        for name, given in (
            ("reward_range", self.reward_range),
            ("weight_range", self.weight_range),
        ):
            if given is None:
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
        for request in self.requests:
            whole = EstimatorRequest(
                "", ESTIMATORS[request.estimator.unclipped], None, request.interaction
            )
            there = any(
                other.clip is None
                and other.estimator is whole.estimator
                and other.interaction == whole.interaction
                for other in found
            )
            if request.clip is not None and not there:
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
    names = [estimators] if isinstance(estimators, str) else list(estimators)
    if not names or len(set(names)) < len(names):
        raise OptionError(f"⟦estimators={estimators!r}⟧; expected one or more names, each once")
    clips = _read_clips(clip)
    found = []
    for name in names:
        estimator, implied = find_estimator(name, interaction)
        _check_slate(name, implied, estimator.uses_q, unit)
        if implied is not None:
            check_kind(implied, kind)
        elif kind != "item":
            raise OptionError(
                f"⟦propensity_kind={kind!r}⟧ is about slates; name the slate in ⟦+slate_col=⟧"
            )
        own = [None] if estimator.rule == "model" else clips
        if estimator.rule in ("switch", "shrink") and None in own:
            raise OptionError(
                f"estimators names {name!r}, which needs ⟦+clip=⟧: the weight above which it uses "
                "the model"
            )
        found += [EstimatorRequest(name, estimator, one, implied) for one in own]
    return tuple(found)


def _check_slate(name: str, interaction: Interaction | None, uses_q: bool, unit: list[str]) -> None:
    if interaction is not None and not unit:
        raise OptionError(
            f"estimators names {name!r} with ⟦+interaction={interaction!r}⟧, but ⟦+slate_col=⟧ "
            "names no slate"
        )
    if unit and interaction is None:
        raise OptionError(
            f"⟦slate_col={unit!r}⟧ makes slates, so say which positions a reward depends on: "
            "⟦interaction='independent'⟧, 'cascade' or 'standard'"
        )
    if unit and uses_q:
        raise OptionError(
            f"estimators names {name!r}, which is not defined for slates; use ips and snips"
        )


def _read_clips(clip: Any) -> list[float | None]:
    given: list[Any] = [clip] if clip is None or np.isscalar(clip) else list(clip)
    found: list[float | None] = []
    for one in given:
        if one is not None and not a_number(above=0).holds(one):
            raise OptionError(
                f"⟦clip={clip!r}⟧ holds {one!r}; expected finite weights above 0, or None for no "
                "clip"
            )
        found.append(None if one is None else float(one))
    if not found or len(set(found)) < len(found):
        raise OptionError(f"⟦clip={clip!r}⟧; expected one or more weights, each once")
    return found


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

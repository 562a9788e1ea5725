"""Budgets of a gate: by how much a metric may change for the worse, as texts and numbers that people write."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import OptionError

__all__: list[str] = []

BUDGET_FORM = "a share of the baseline's mean such as '-2%', or a number in units of the metric such as -0.05"
_NAME = re.compile(r"(?P<metric>.+?)(?:\[(?P<segment>[^\[\]=]+)(?:=(?P<value>[^\[\]]*))?\])?")


class Budget(NamedTuple):
    """One budget: the metric, the segment column and value (None: all lists, all values), and the change allowed."""

    metric: str
    segment: str | None
    value: str | None
    allowed: float
    relative: bool

    @property
    def text(self) -> str:
        """The budget as people write it."""
        return signed(self.allowed, self.relative)


def signed(change: float, relative: bool) -> str:
    """Return a change with its sign, in per cent where it is relative."""
    if math.isnan(change):
        return "–"
    shown = f"{100 * change:+.3g}%" if relative else f"{change:+.3g}"
    return ("+0" if not change else shown.replace("inf", "∞")).replace("-", "−")


def read_budgets(given: Any) -> list[Budget]:
    """Read a mapping of metrics to budgets; one that is not written as a budget raises."""
    if not isinstance(given, Mapping) or not given:
        raise OptionError(
            f"budgets={given!r}; expected a mapping of metrics to {BUDGET_FORM}, as {{'ndcg@10': '-2%'}}",
            argument="budgets", value=given,
        )  # fmt: skip
    return [_read_budget(name, value) for name, value in given.items()]


def _read_budget(name: Any, value: Any) -> Budget:
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    text = value.strip().replace("−", "-") if isinstance(value, str) else ""
    relative = text.endswith("%")
    try:
        number = float(text.removesuffix("%")) / (100 if relative else 1) if text else value
        allowed = math.nan if isinstance(number, bool | str) else float(number)
    except (TypeError, ValueError):
        allowed = math.nan
    if found is None or not math.isfinite(allowed):
        raise _bad_budget(f"budgets[{name!r}]", f"={value!r}; expected {BUDGET_FORM}", value)
    return Budget(found["metric"], found["segment"], found["value"], allowed, relative)


def _bad_budget(name: str, says: str, value: Any) -> OptionError:
    return OptionError(name + says, argument=name, value=value)


def check_budget(budget: Budget, better: str | None, values: tuple[float, float] | None) -> None:
    """Raise if a budget allows what is better, or all that a metric can lose, or if the metric has no direction."""
    metric, sign, says = budget.metric, "-" if better == "larger" else "+", ""
    most = 1.0 if budget.relative and better == "larger" else math.inf
    if not budget.relative and values is not None:
        most = values[1] - values[0]
    if better is None:
        says = f": neither larger nor smaller values of {metric!r} are better, so nothing says what a loss is; name it "
        says += "in ⟦+smaller_is_better=⟧ or ⟦+larger_is_better=⟧"
    elif budget.allowed and (budget.allowed < 0) != (sign == "-"):
        says = f" allows what is better, since {better} values of {metric!r} are; a budget says how much may be lost: "
        says += f"expected {sign}{signed(abs(budget.allowed), budget.relative)[1:]}"
    elif abs(budget.allowed) >= most:
        low, high = values or (0.0, math.inf)
        all_of = "there is to lose" if budget.relative else f"values from {low:g} to {high:g} can lose"
        says = f" is all that {all_of}; expected {BUDGET_FORM}"
    if says:
        raise _bad_budget(f"budgets[{metric!r}]", f"={budget.text}{says}", budget.text)

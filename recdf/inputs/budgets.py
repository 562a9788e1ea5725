"""By how much a metric may change for the worse: budgets of a gate and margins of guardrails, as
people write them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

from ..errors import OptionError

BUDGET_FORM = (
    "a share of the baseline's mean such as '-2%', or a number in units of the metric such as -0.05"
)
_NAME = re.compile(r"\s*([^\[\]]+?)\s*(?:\[\s*([^\[\]=]+?)\s*(?:=\s*([^\[\]]*?)\s*)?\])?\s*")


class Budget(NamedTuple):
    """One budget: the metric, the segment column and value (None: all lists, all values), and the
    change allowed."""

    metric: str
    segment: str | None
    value: str | None
    allowed: float
    relative: bool

    @property
    def text(self) -> str:
        """The budget as people write it."""
        return signed(self.allowed, self.relative)

    @property
    def name(self) -> str:
        """What the budget is of, as people write it."""
        value = "" if self.value is None else f"={self.value}"
        return self.metric if self.segment is None else f"{self.metric}[{self.segment}{value}]"


def signed(change: float, relative: bool) -> str:
    """Return a change with its sign, in per cent where it is relative; `read_change` reads it
    back."""
    if math.isnan(change):
        return "–"
    shown = f"{100 * change:+.12g}%" if relative else f"{change:+.12g}"
    return shown.replace("inf", "∞").replace("-", "−") if change else "0"


def read_budgets(given: Any) -> list[Budget]:
    """Read a mapping of metrics to budgets; one that is not written as a budget raises."""
    if not isinstance(given, Mapping) or not given:
        expected = f"expected a mapping of metrics to {BUDGET_FORM}, as {{'ndcg@10': '-2%'}}"
        raise OptionError(f"⟦budgets={given!r}⟧; {expected}", value=given)
    read: dict[str, Budget] = {}
    for name, value in given.items():
        found = _NAME.fullmatch(name) if isinstance(name, str) else None
        if found is None:
            expected = (
                "the name of a metric, or of one in a segment, as 'ndcg@10[country=DE]' or "
                "'ndcg@10[country]'"
            )
            raise OptionError(f"⟦budgets[{name!r}]={value!r}⟧; expected {expected}", value=value)
        one = Budget(found[1], found[2], found[3], *read_change(f"budgets[{name!r}]", value))
        if one.name in read:
            raise OptionError(
                f"⟦budgets[{name!r}]={value!r}⟧: {one.name} has two budgets", value=value
            )
        read[one.name] = one
    return list(read.values())


def read_change(argument: str, value: Any) -> tuple[float, bool]:
    """Return the change that a text or number says, and whether it is relative; anything else
    raises."""
    number, relative = value, False
    if isinstance(value, str):
        text = value.strip().replace("−", "-")
        relative = text.endswith("%")
        try:
            number = float(text.removesuffix("%")) / (100 if relative else 1)
        except ValueError:
            number = None
    plain = isinstance(number, Real) and not isinstance(number, bool)
    if not plain or not math.isfinite(number):
        raise OptionError(
            f"⟦{argument}={value!r}⟧; expected {BUDGET_FORM}", argument=argument, value=value
        )
    return float(number), relative


def check_budget(
    budget: Budget,
    better: str | None,
    values: tuple[float, float] | None,
    argument: str = "budgets",
) -> None:
    """Raise if a budget allows what is better, or all that a metric can lose, or if the metric has
    no direction."""
    metric, sign, says = budget.metric, "-" if better == "larger" else "+", ""
    most = 1.0 if budget.relative and better == "larger" else math.inf
    if not budget.relative and values is not None:
        most = values[1] - values[0]
    if better is None:
        says = (
            f": neither larger nor smaller values of {metric!r} are better, so nothing says what a "
            "loss is; name it "
        )
        says += "in ⟦+smaller_is_better=⟧ or ⟦+larger_is_better=⟧"
    elif budget.allowed and (budget.allowed < 0) != (sign == "-"):
        says = (
            f" allows what is better, since {better} values of {metric!r} are; a budget says how "
            "much may be lost: "
        )
        says += f"expected {sign}{signed(abs(budget.allowed), budget.relative)[1:]}"
    elif abs(budget.allowed) >= most:
        low, high = values or (0.0, math.inf)
        all_of = (
            "there is to lose" if budget.relative else f"values from {low:g} to {high:g} can lose"
        )
        says = f" is all that {all_of}; " + (
            "" if budget.relative else f"did you mean '{budget.text}%'? "
        )
        says += f"expected {BUDGET_FORM}"
    if says:
        name = f"{argument}[{budget.name!r}]"
        raise OptionError(f"⟦{name}={budget.text}⟧{says}", argument=name, value=budget.text)

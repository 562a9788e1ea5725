"""What values arguments take: constraints that refuse other values, and that docstrings and the
command line show; and the types of frames, catalogues and shared options, which type checkers
read. At run time the value of an option is checked against the same `Literal`.

`Population` is what the option `users` asks for, and what follows from it. A `Budget` says by how
much a metric may change for the worse: budgets of a gate and margins of guardrails, as people write
them.
"""

from __future__ import annotations

import functools
import math
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame, Series

from ..errors import OptionError, closest, kind_of

# Larger integers have no place in a table.
MOST_INTEGER = 2**64
MOST_FLOAT = float(np.finfo(float).max)


@dataclass(frozen=True)
class Constraint:
    """What an argument takes.

    words : what is expected, for messages · holds : whether a value is so · typed : its type, as
    docstrings write it · values : all valid words, where they can be listed.
    """

    words: str
    holds: Callable[[Any], bool]
    typed: str = ""
    values: tuple[Any, ...] = ()

    @property
    def only_words(self) -> bool:
        """Whether it takes a few words and nothing else."""
        return self.typed.startswith("{") and self.typed.endswith("}")

    def check(self, name: str, value: Any, of: str = "") -> Any:
        """Return the value, as a plain one of Python if it is a scalar of numpy, and a Decimal as a
        float; raise OptionError if it is wrong.

        `of` is what takes the argument, such as a metric, for the message.
        """
        if not self.holds(value):
            several = isinstance(value, Collection) and not isinstance(value, str | bytes)
            short = not several or (
                isinstance(value, list | tuple | set | dict) and len(value) <= 5
            )
            if isinstance(value, Integral) and abs(int(value)) >= MOST_INTEGER:
                short = False  # Python writes no integer of more than 4,300 digits
                expected = "expected one nearer to 0"
            else:
                expected = f"expected {self.words}"
                if self.values:
                    expected = f"valid are {self.words}{closest(value, self.values)}"
            found = f"={value!r}" if short else f" is {kind_of(value)}"
            named = f"⟦{name}{found}⟧" if found[0] == "=" else f"{name}{found}"
            said = f"{of}{named}; {expected}"
            raise OptionError(said, argument=name.partition("[")[0], value=value)
        if isinstance(value, Decimal):
            return float(value)
        return value.item() if isinstance(value, np.generic) else value


def one_of(values: Sequence[Any]) -> Constraint:
    """Return the constraint that a value is one of a few, of the same type: 1 is not True."""
    shown = ", ".join(map(repr, values))
    typed = "{" + shown.replace("'", '"') + "}" if len(values) > 1 else shown
    return Constraint(
        shown,
        lambda given: any(
            (isinstance(given, str) or type(given) is type(one)) and given == one for one in values
        ),
        typed,
        tuple(one for one in values if isinstance(one, str)),
    )


def a_number(
    least: float | None = None,
    most: float | None = None,
    *,
    above: float | None = None,
    whole: bool = False,
) -> Constraint:
    """Return the constraint that a value is a finite number, a `whole` one if so asked, within
    these limits."""
    bounds = {"of at least": least, "above": above, "at most": most}
    limits = [f"{word} {bound:,}" for word, bound in bounds.items() if bound is not None]
    words = "an integer" if whole else "a number" if limits else "a finite number"
    if least is not None and most is not None:
        limits = [f"from {least:,} to {most:,}"]

    def holds(value: Any) -> bool:
        kind: Any = Integral if whole else Real | Decimal
        largest = math.inf
        if isinstance(value, Integral):
            largest = MOST_INTEGER if whole else MOST_FLOAT
        return (
            isinstance(value, kind)
            and not isinstance(value, bool)
            and value == value  # NaN is not
            and abs(value) < largest
            and (least is None or value >= least)
            and (above is None or value > above)
            and (most is None or value <= most)
        )

    return Constraint(
        " ".join([words, " and ".join(limits)]).strip(), holds, "int" if whole else "float"
    )


def either(*constraints: Constraint) -> Constraint:
    """Return the constraint that a value keeps one of several."""

    def joined(words: Sequence[str]) -> str:
        return ", ".join(words[:-1]) + " or " * (len(words) > 1) + "".join(words[-1:])

    return Constraint(
        joined([one.words for one in constraints]),
        lambda value: any(one.holds(value) for one in constraints),
        joined([one.typed for one in constraints if one.typed]),
        tuple(value for one in constraints for value in one.values),
    )


def _is_name(value: Any) -> bool:
    return (
        _is_label(value) and not isinstance(value, bool | np.bool_ | None) and not callable(value)
    )


def _is_label(value: Any) -> bool:
    """Whether a value can be looked up: a tuple of lists cannot, nor can what equals nothing."""
    with suppress(TypeError):
        return hash(value) is not None and value is not pd.NA
    return False


ANY = Constraint("anything", lambda value: True)
NONE = Constraint("None", lambda value: value is None)
# What a value of a plain type is, and a collection of them.
PLAIN_KINDS: dict[Any, Constraint] = {
    bool: Constraint("True or False", lambda value: isinstance(value, bool | np.bool_), "bool"),
    float: a_number(),
    int: a_number(whole=True),
    str: Constraint("a name", _is_name, "str"),
    # Names of columns and labels may also stand in other collections than lists.
    Sequence[str]: Constraint(
        "a list of names",
        lambda value: (
            isinstance(value, Collection | pd.Index)
            and not isinstance(value, str | bytes | Mapping | DataFrame)
            and all(map(_is_name, value))
        ),
        "list of str",
    ),
    Mapping: Constraint("a mapping", lambda value: isinstance(value, Mapping), "mapping"),
    types.NoneType: NONE,
    Callable: Constraint("a function", callable, "function"),
}
# What the name of a column is, and names of columns.
COLUMN_KINDS: dict[Any, Constraint] = {
    str: Constraint("the name of a column", _is_name, "str"),
    Sequence[str]: Constraint(
        "a list of names",
        lambda value: isinstance(value, Sequence) and all(map(_is_name, value)),
        "list of str",
    ),
}
# One value of a column.
LABEL = Constraint("one label", _is_label)
OneLabel = Annotated[Any, LABEL]
# Nearer to 0 or 1 the arithmetic of quantiles and numbers of users has no digits left.
NEAREST = 1e-12
SHARE, POSITIVE, NATURAL = (
    Constraint(
        f"a number between 0 and 1, at least {NEAREST} from both",
        lambda value: (
            a_number(NEAREST, 1 - NEAREST).holds(value) and not isinstance(value, Decimal)
        ),
        "float",
    ),
    a_number(1, whole=True),
    a_number(0, whole=True),
)
Share = Annotated[float, SHARE]
Positive = Annotated[int, POSITIVE]
Natural = Annotated[int, NATURAL]
AtLeast2 = Annotated[int, a_number(2, whole=True)]
# Of random repetitions, whose results are kept: more would not fit into memory.
MOST_REPETITIONS = 10**7
Repetitions = Annotated[int, a_number(1, most=MOST_REPETITIONS, whole=True)]
SeveralRepetitions = Annotated[int, a_number(2, most=MOST_REPETITIONS, whole=True)]
Above0 = Annotated[float, a_number(above=0)]


def constraint_of(hint: Any, plain: Mapping[Any, Constraint] = PLAIN_KINDS) -> Constraint:
    """Return the constraint that an annotation states: `Literal`, a union, a plain type, or
    `Annotated` with one."""
    for one in (hint, *getattr(hint, "__metadata__", ())):
        if isinstance(one, Constraint):
            return one
    origin = typing.get_origin(hint)
    inside = typing.get_args(hint)
    if origin is Literal:
        return one_of(inside)
    if origin in (typing.Union, types.UnionType):
        return either(*(constraint_of(one, plain) for one in inside))
    return plain.get(hint, plain.get(origin, ANY))


def check_value(name: str, value: Any, hint: Any) -> Any:
    """Return the value if it keeps a constraint, or that of an annotation; raise OptionError
    otherwise."""
    return constraint_of(hint).check(name, value)


@functools.cache
def constraints_taken(function: Callable[..., Any]) -> dict[str, Constraint]:
    """Return the constraints of those arguments of a function, or fields of a record, that are
    names, mappings, labels or flags, have a few values, or keep a constraint by their
    annotations."""
    found = {}
    for name, hint in typing.get_type_hints(function, include_extras=True).items():
        union = typing.get_origin(hint) in (types.UnionType, typing.Union)
        parts = typing.get_args(hint) if union else [hint]
        told = any(
            one in (str, bool, Sequence[str])
            or typing.get_origin(one) is Literal
            or hasattr(one, "__metadata__")
            for one in parts
        )
        if name != "return" and told:
            found[name] = constraint_of(hint)
    return found


def check_record(record: Any) -> None:
    """Check the fields of a record whose annotations state a constraint."""
    for name, constraint in constraints_taken(record.__class__).items():
        constraint.check(name, getattr(record, name))


# -- types of what calls accept


class ArrowStream(Protocol):
    """A table with the Arrow C stream interface, as pyarrow, polars, DuckDB and others have it."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


# Rows of `true`, `pred` and of side tables: a long frame, or a mapping of users to their items.
Rows = DataFrame | Mapping[Any, Any] | ArrowStream

# A collection of ids, or a frame with a column of ids.
Ids = (
    DataFrame
    | Series
    | pd.Index
    | ndarray
    | list[Any]
    | tuple[Any, ...]
    | set[Any]
    | frozenset[Any]
    | range
)

# Features of items: columns of `items`, a frame indexed by item, or a function of positions in
# `items`.
Features = str | list[str] | Rows | Series | Callable[[ndarray, ndarray], ndarray]

PopulationRule = Literal["true", "pred", "both", "all"]
Ties = Literal["item_desc", "item_asc", "row", "worst", "raise"]
Duplicates = Literal["drop", "keep", "raise"]
NullKeys = Literal["raise", "drop"]
NanScore = Literal["raise", "last", "drop"]
Undefined = Literal["nan", "zero", "one", "raise"]


PopulationFrame = Literal["true", "pred", "given"]


@dataclass(frozen=True, eq=False)
class Population:
    """The lists over which a mean is taken.

    Attributes
    ----------
    rule : {"true", "pred", "both", "all", "given"}
        Which lists they are: those of a frame, those that stand in both frames or in any, or those
        of given ids.
    given : ids or frame of ids, optional
        The ids as the caller gave them, with the rule "given" only.
    """

    rule: PopulationRule | Literal["given"]
    given: Ids | None = None

    @classmethod
    def of(cls, users: PopulationRule | Ids) -> Population:
        """The population that a value of the option `users` asks for."""
        return cls(users) if isinstance(users, str) else cls("given", users)

    @property
    def frames(self) -> tuple[PopulationFrame, ...]:
        """The frames that name the lists, and whose labels and dtypes the keys of the result
        have. Where there are two, labels of the first come first."""
        if self.rule == "all":
            return "pred", "true"
        return ("true",) if self.rule == "both" else (self.rule,)

    @property
    def words(self) -> str:
        """The population in the spec and in messages: ids are counted, not listed."""
        return self.rule if self.given is None else f"{len(self.given)} given ids"


# -- budgets

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
    expected = f"expected a mapping of metrics to {BUDGET_FORM}, as {{'ndcg@10': '-2%'}}"
    if not isinstance(given, Mapping) or not given:
        raise OptionError(f"⟦budgets={given!r}⟧; {expected}", value=given)
    read: dict[str, Budget] = {}
    for name, value in given.items():
        found = _NAME.fullmatch(str(name))
        where = f"budgets[{name!r}]"
        if not isinstance(name, str) or found is None:
            raise OptionError(
                f"⟦{where}={value!r}⟧; expected the name of a metric, or of one in a segment, as "
                "'ndcg@10[country=DE]' or 'ndcg@10[country]'",
                value=value,
            )
        one = Budget(found[1], found[2], found[3], *read_change(where, value))
        if one.name in read:
            raise OptionError(f"⟦{where}={value!r}⟧: {one.name} has two budgets", value=value)
        read[one.name] = one
    return list(read.values())


def read_change(argument: str, value: Any) -> tuple[float, bool]:
    """Return the change that a text or number says, and whether it is relative; anything else
    raises."""
    number = value
    relative = False
    if isinstance(value, str):
        text = value.strip().replace("−", "-")
        relative = text.endswith("%")
        with suppress(ValueError):
            number = float(text.removesuffix("%")) / (100 if relative else 1)
    if not PLAIN_KINDS[float].holds(number):
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
    metric = budget.metric
    sign = "-" if better == "larger" else "+"
    says = ""
    low, high = values or (0.0, math.inf)
    most = (1.0 if better == "larger" else math.inf) if budget.relative else high - low
    if better is None:
        says = (
            f": neither larger nor smaller values of {metric!r} are better, so nothing says what a "
            "loss is; name it in ⟦+smaller_is_better=⟧ or ⟦+larger_is_better=⟧"
        )
    elif budget.allowed and (budget.allowed < 0) != (sign == "-"):
        right = signed(abs(budget.allowed), budget.relative)[1:]
        says = (
            f" allows what is better, since {better} values of {metric!r} are; a budget says how "
            f"much may be lost: expected {sign}{right}"
        )
    elif abs(budget.allowed) >= most and budget.relative:
        says = f" is all that there is to lose; expected {BUDGET_FORM}"
    elif abs(budget.allowed) >= most:
        says = (
            f" is all that values from {low:g} to {high:g} can lose; did you mean "
            f"'{budget.text}%'? expected {BUDGET_FORM}"
        )
    if says:
        name = f"{argument}[{budget.name!r}]"
        raise OptionError(f"⟦{name}={budget.text}⟧{says}", argument=name, value=budget.text)

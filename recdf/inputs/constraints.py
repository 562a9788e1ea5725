"""What values arguments take: constraints that refuse other values, and that docstrings and the
command line show; and the types of frames, catalogues and shared options, which type checkers
read. At run time the value of an option is checked against the same `Literal`.

`Population` is what the option `users` asks for, and what follows from it.
"""

from __future__ import annotations

import functools
import math
import types
import typing
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import pandas as pd

from ..errors import OptionError, closest, kind_of


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
        """Return the value, as a plain one of Python if it is a scalar of numpy; raise OptionError
        if it is wrong.

        `of` is what takes the argument, such as a metric, for the message.
        """
        if not self.holds(value):
            several = isinstance(value, Collection) and not isinstance(value, str | bytes)
            short = not several or (
                isinstance(value, list | tuple | set | dict) and len(value) <= 5
            )
            found = f"={value!r}" if short else f" is {kind_of(value)}"
            expected = "valid are" if self.values else "expected"
            named = f"⟦{name}{found}⟧" if found[0] == "=" else f"{name}{found}"
            said = f"{of}{named}; {expected} {self.words}{closest(str(value), self.values)}"
            raise OptionError(said, argument=name.partition("[")[0], value=value)
        return value.item() if isinstance(value, np.generic) else value


def one_of(values: Sequence[Any]) -> Constraint:
    """Return the constraint that a value is one of a few, of the same type."""
    shown = ", ".join(map(repr, values))
    typed = "{" + shown.replace("'", '"') + "}" if len(values) > 1 else shown
    return Constraint(
        shown,
        lambda given: any(type(given) is type(one) and given == one for one in values),
        typed,
        tuple(one for one in values if isinstance(one, str)),
    )


def a_number(
    least: float | None = None,
    most: float | None = None,
    *,
    above: float | None = None,
    below: float | None = None,
    whole: bool = False,
) -> Constraint:
    """Return the constraint that a value is a finite number, a `whole` one if so asked, within
    these limits."""
    bounds = {"of at least": least, "above": above, "at most": most, "below": below}
    limits = [f"{word} {bound:,}" for word, bound in bounds.items() if bound is not None]
    words = "an integer" if whole else "a number" if limits else "a finite number"
    if least is not None and most is not None:
        limits = [f"from {least:,} to {most:,}"]
    elif above is not None and below is not None:
        limits = [f"between {above:,} and {below:,}, both excluded"]

    def holds(value: Any) -> bool:
        plain = isinstance(value, Integral if whole else Real | Decimal) and not isinstance(
            value, bool
        )
        return (
            plain
            and value == value
            and -math.inf < value < math.inf
            and (
                (least is None or value >= least)
                and (above is None or value > above)
                and (most is None or value <= most)
                and (below is None or value < below)
            )
        )

    return Constraint(
        " ".join([words, " and ".join(limits)]).strip(), holds, "int" if whole else "float"
    )


def either(*constraints: Constraint) -> Constraint:
    """Return the constraint that a value keeps one of several."""

    def joined(words: Sequence[str]) -> str:
        return ", ".join(words[:-1]) + " or " * (len(words) > 1) + words[-1]

    return Constraint(
        joined([one.words for one in constraints]),
        lambda value: any(one.holds(value) for one in constraints),
        joined([one.typed for one in constraints if one.typed]),
        tuple(value for one in constraints for value in one.values),
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, Hashable) and not isinstance(value, bool | np.bool_ | None)


ANY = Constraint("anything", lambda value: True)
NONE = Constraint("None", lambda value: value is None)
# What a value of a plain type is.
PLAIN_KINDS: dict[Any, Constraint] = {
    bool: Constraint("True or False", lambda value: isinstance(value, bool), "bool"),
    float: a_number(),
    int: a_number(whole=True),
    str: Constraint("a name", _is_name, "str"),
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
SHARE, POSITIVE, NATURAL = (
    a_number(above=0, below=1),
    a_number(1, whole=True),
    a_number(0, whole=True),
)
Share = Annotated[float, SHARE]
Positive = Annotated[int, POSITIVE]
Natural = Annotated[int, NATURAL]


def constraint_of(hint: Any, plain: Mapping[Any, Constraint] = PLAIN_KINDS) -> Constraint:
    """Return the constraint that an annotation states: `Literal`, a union, a plain type, or
    `Annotated` with one."""
    own = [one for one in getattr(hint, "__metadata__", ()) if isinstance(one, Constraint)]
    if own:
        return own[0]
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return one_of(inside)
    if origin in (typing.Union, types.UnionType):
        return either(*(constraint_of(one, plain) for one in inside))
    return plain.get(hint, plain.get(origin, ANY))


def check_value(name: str, value: Any, hint: Any) -> Any:
    """Return the value if it keeps a constraint, or that of an annotation; raise OptionError
    otherwise."""
    return (hint if isinstance(hint, Constraint) else _plain_constraint(hint)).check(name, value)


_plain_constraint = functools.cache(constraint_of)


@functools.cache
def _constraints(kind: type) -> dict[str, Constraint]:
    """Return the constraints of the fields of a record whose annotations state one."""
    return {
        name: constraint_of(hint)
        for name, hint in typing.get_type_hints(kind, include_extras=True).items()
        if any(
            typing.get_origin(one) in (Literal, Annotated) for one in (hint, *typing.get_args(hint))
        )
    }


def check_record(record: Any) -> None:
    """Check the fields of a record whose annotations state a constraint."""
    for name, constraint in _constraints(record.__class__).items():
        constraint.check(name, getattr(record, name))


# -- types of what calls accept


class ArrowStream(Protocol):
    """A table with the Arrow C stream interface, as pyarrow, polars, DuckDB and others have it."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


# Rows of `true`, `pred` and of side tables: a long frame, or a mapping of users to their items.
Rows = pd.DataFrame | Mapping[Any, Any] | ArrowStream

# A collection of ids, or a frame with a column of ids.
Ids = (
    pd.DataFrame
    | pd.Series
    | pd.Index
    | np.ndarray
    | list[Any]
    | tuple[Any, ...]
    | set[Any]
    | frozenset[Any]
    | range
)

# Features of items: columns of `items`, a frame indexed by item, or a function of positions in
# `items`.
Features = str | list[str] | Rows | pd.Series | Callable[[np.ndarray, np.ndarray], np.ndarray]

PopulationRule = Literal["true", "pred", "both", "all"]
Ties = Literal["item_desc", "item_asc", "row", "worst", "raise"]
Duplicates = Literal["drop", "keep", "raise"]
NullKeys = Literal["raise", "drop"]
NanScore = Literal["raise", "last", "drop"]
Undefined = Literal["nan", "zero", "one", "raise"]


PopulationFrame = Literal["true", "pred", "given"]

# The frames that name the lists of a population. Where there are two, labels of the first come
# first.
FRAMES_OF_RULE: dict[str, tuple[PopulationFrame, ...]] = {
    "true": ("true",),
    "pred": ("pred",),
    "both": ("true",),
    "all": ("pred", "true"),
    "given": ("given",),
}


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
        have."""
        return FRAMES_OF_RULE[self.rule]

    @property
    def knows_its_keys(self) -> bool:
        """Whether the keys of all lists are known without `pred`, so that other rows of `pred` can
        be left out."""
        return "pred" not in self.frames

    @property
    def words(self) -> str:
        """The population in the spec and in messages: ids are counted, not listed."""
        return self.rule if self.given is None else f"{len(self.given)} given ids"

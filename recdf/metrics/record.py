"""The record of a metric beside its kernel, its docstring, and the request for its values. Nothing
is computed here."""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import OptionError, valid
from ..inputs.constraints import Constraint, constraint_of
from ..inputs.options import NAMES, ByName, Names, Options, parameters
from ..inputs.sorting import exact_sums
from ..matching.counts import OF_LOG, SUMS, ListCounts, Sum
from ..matching.side_tables.sides import SIDE_TABLES, SIDES

# ------------------------------------------------------------------------------------------
# The docstrings of metrics: their sections, and the text that all metrics share.
#
# Contract: the docstring of a kernel holds only its own text; the record adds the arguments,
# options, result and errors, and the imports of examples. `says_as` puts what another metric says
# of a parameter where the kernel has its name in braces.


class Argument(NamedTuple):
    """One argument: its type for a type checker (a name of `inputs.constraints`), its type in
    words, its meaning."""

    hint: str
    kind: str
    meaning: str


ARGUMENTS: dict[str, Any] = {
    "true": Argument(
        "Rows",
        "DataFrame, mapping or Arrow stream",
        "What is relevant: one row per (list key, relevant item).",
    ),
    "pred": Argument(
        "Rows",
        "DataFrame, mapping or Arrow stream",
        "What was recommended: one row per (list key, item).",
    ),
    **SIDE_TABLES,
}


# Sections of a kernel's docstring that come after the text that all metrics share.
BELOW = ("Notes", "References", "Examples")

_TITLE = re.compile(r"\n\n([A-Z]\w*)\n-+\n")

# The options, which are the same for all metrics, are explained in one place.
OPTIONS_TEXT = """\
**options
    What every call takes: columns, order, ties, population, repeated rows, undefined values, and
    `like=` for the definitions of another library. `help(rd.evaluate)` explains each."""

# What a call returns.
ONE_NUMBER = """\
float, or dict of groups to floats
    One number for all lists; there is no `.per_user`."""
MEAN = """\
float
    Mean over the defined lists of {}; `.per_user(...)` takes the same arguments
    and returns a frame: `by` columns, list key columns, one column named by the metric string."""

RAISES = """\
ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError
    For input that no metric can be computed from; each is also the builtin KeyError, TypeError or
    ValueError."""


def section(doc: str, title: str) -> str:
    """Return the text of one section of a numpydoc docstring in one line; empty if there is no such
    section."""
    return " ".join(_doc_sections(doc).get(title, "").split())


def _doc_sections(doc: str) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by title, in their order; the text above them has
    the title ""."""
    pieces = _TITLE.split(doc)
    return {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}


# ------------------------------------------------------------------------------------------
# The record of a metric beside its kernel, and the request for its values. Nothing is computed
# here.
#
# A kernel is a function of `Lists` (all lists cut at k) and of keyword parameters. It returns one
# float per list, NaN where the metric has no value. A kernel of exposure is a function of
# `Counts` and returns one float, or one per group. The kernel's docstring and signature are the
# only source of what the record says about them.


Kernel = Callable[..., Any]
Bounds = tuple[float | None, float | None]
MetricDirection = Literal["larger", "smaller"] | None

OPTION_PARAMETERS = parameters()  # they end the signature of every metric
# The things in recommended lists that a side table may not know; `call.py` says how they are
# counted.
Unknown = Literal[
    "items",
    "items_or_log",
    "log",
    "log_users",
    "features",
    "negatives",
    "grades",
    "category",
    "group",
]

# The package of the families; the rest of a module's path is the name of the family.
ROOM = __name__.rpartition(".")[0] + "."


@dataclass(frozen=True, eq=False, repr=False)
class MetricRecord:
    """All that is known about one metric. The fields are the keywords of `@rd.metric`, which
    explains them.

    What the kernel's docstring and signature say is read from there: `name`, `family` (the module
    of a built-in metric), `doc` (meaning, direction and range in one line), `formula`,
    `references`, `defaults` (of the metric's own parameters). `sides` are the side tables that a
    call may name by keyword.
    """

    kernel: Kernel
    _: KW_ONLY
    bounds: Bounds = (0.0, 1.0)
    better: MetricDirection = "larger"
    aliases: Names = ()
    needs: Names = ()
    outputs: Names = ()
    cut: bool = True
    arguments: Names = ("true", "pred")
    optional: Names = ()
    k: int | None = 10
    per: Literal["list", "item"] = "list"
    sums: Sequence[str | tuple[Any, ...]] | Callable[[ByName], Sequence[Sum]] | None = None
    unknown: Sequence[Unknown] = ()
    where: Mapping[str, ByName] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = (*NAMES, *self.arguments, *self.sides, "k", "options")
        for p in self._own:
            if p.default is inspect.Parameter.empty or p.name in taken:
                raise OptionError(
                    f"parameter {p.name!r} of metric {self.name!r} must have a default and not be "
                    "named like an option"
                )
        needs = dict.fromkeys([*self.needs, *(name for name in self.arguments if name in SIDES)])
        if "true" in self.arguments and "true" not in self.optional:
            needs = {"true": None, **needs}
        settled = {
            "aliases": tuple(self.aliases),
            "needs": tuple(needs),
            "outputs": tuple(self.outputs) or (self.name,),
            "arguments": tuple(self.arguments),
            "optional": tuple(self.optional),
            # `help`, `inspect` and `pickle` read these from a metric as they do from a function.
            "__module__": self.kernel.__module__,
            "__name__": self.name,
            "__qualname__": self.name,
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "__doc__", self._full_doc())
        object.__setattr__(self, "__signature__", self._signature())

    def exposure_sums(self, params: ByName) -> list[Sum]:
        """The sums over lists that the kernel reads: those that the record names, or all that its
        side tables allow."""
        if self.per == "list":
            return []
        if callable(self.sums):
            return list(self.sums(params))
        if self.sums is None:
            return [one for one in SUMS.values() if one.name not in OF_LOG or "log" in self.needs]
        return [SUMS[one] if isinstance(one, str) else Sum(*one) for one in self.sums]

    # ------------------------------------------------------------------------------------------
    # what the kernel says about itself

    @property
    def name(self) -> str:
        """Name of the metric, which is the name of its kernel."""
        return self.kernel.__name__

    @property
    def built_in(self) -> bool:
        """Whether the metric comes with the package."""
        return str(self.__module__).startswith(ROOM)

    @property
    def family(self) -> str:
        """Module of a built-in metric below `recdf.metrics`, such as "ranking"; the last part of
        any other module."""
        module = str(self.kernel.__module__)
        return (
            module.removeprefix(ROOM).partition(".")[0]
            if self.built_in
            else module.rpartition(".")[2]
        )

    @cached_property
    def _docstring(self) -> str:
        return inspect.getdoc(self.kernel) or ""

    @property
    def doc(self) -> str:
        """Meaning, direction and range in one line."""
        return self._docstring.split("\n\n")[0].replace("\n", " ")

    @property
    def formula(self) -> str:
        """Section Formula of the kernel's docstring, in one line."""
        return section(self._docstring, "Formula")

    @property
    def references(self) -> str:
        """Section References of the kernel's docstring, in one line."""
        return section(self._docstring, "References")

    @cached_property
    def _own(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.kernel).parameters.values())[1:]

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """The metric's own parameters and their defaults."""
        return {p.name: p.default for p in self._own}

    @cached_property
    def hints(self) -> dict[str, Any]:
        """Types of the parameters and of the result, where the kernel is annotated."""
        try:
            return typing.get_type_hints(self.kernel)
        except NameError:  # a user's annotations may use names that do not exist at run time
            return {}

    @cached_property
    def constraints(self) -> dict[str, Constraint]:
        """What the parameters take, where the kernel's annotations say so."""
        hints = typing.get_type_hints(self.kernel, include_extras=True) if self.hints else {}
        return {name: constraint_of(hint) for name, hint in hints.items() if name in self.defaults}

    # ------------------------------------------------------------------------------------------
    # what a call of it looks like

    def stated(self, text: str) -> tuple[Bounds, MetricDirection]:
        """Bounds and direction of the metric with the parameters of a metric string or the name of
        a column."""
        changed = self.changed(text)
        return changed.get("bounds", self.bounds), changed.get("better", self.better)

    def changed(self, text: str) -> dict[str, Any]:
        """What `where` says of the parameters of a metric string or the name of a column."""
        inside = text.partition("(")[2].rpartition(")")[0].split(",")
        return {
            name: value
            for one, new in self.where.items()
            if one in inside
            for name, value in new.items()
        }

    @cached_property
    def sides(self) -> tuple[str, ...]:
        """Side tables by keyword. The catalogue may always be given, since it may hold values."""
        useful = ("items", "exclude", *self.needs, *self.optional)
        return tuple(name for name in SIDES if name in useful and name not in self.arguments)

    def _signature(self) -> inspect.Signature:
        by_place = inspect.Parameter.POSITIONAL_OR_KEYWORD
        by_name = inspect.Parameter.KEYWORD_ONLY
        found = [inspect.Parameter(name, by_place) for name in self.arguments]
        found.append(inspect.Parameter("k", by_place, default=self.k))
        found += [p for p in self._own if p.kind is by_place]
        found += [p for p in self._own if p.kind is not by_place]
        found += [inspect.Parameter(name, by_name, default=None) for name in self.sides]
        return inspect.Signature([*found, *OPTION_PARAMETERS])

    def _full_doc(self) -> str:
        """The kernel's docstring with the text that metrics share: frames, parameters, options,
        results, errors."""
        found = _doc_sections(self._docstring)
        explained = found.pop("Parameters", "").strip()
        if self.built_in:
            texts = {text.partition(" ")[0]: text for text in re.split(r"\n(?=\S)", explained)}
            explained = "\n".join(texts[name] for name in self.defaults if name in texts)
            examples = found.get("Examples", "").strip()
            if examples and "import" not in examples:
                pandas = "pandas as pd, " * ("pd." in examples)
                found["Examples"] = f">>> import {pandas}recdf as rd\n{examples}"
        whole = "" if self.k else " None is the whole list."
        optional = {*self.optional, *self.sides}
        arguments = [
            f"{name} : {one.kind}{', optional' * (name in optional)}\n    {one.meaning}"
            for name in (*self.arguments, *self.sides)
            for one in [ARGUMENTS[name]]
        ]
        parameters = [
            *arguments[: len(self.arguments)],
            f"k : int, default {self.k}\n    Cut-off: ranks 1 to k count.{whole}",
            *([explained] if explained else []),
            *arguments[len(self.arguments) :],
            OPTIONS_TEXT,
        ]
        lists = "the population" if "true" in self.arguments else "`pred`, or of the given `users`"
        shared = {
            "Parameters": "\n".join(parameters),
            "Returns": (ONE_NUMBER if self.per == "item" else MEAN).format(lists),
            "Raises": RAISES,
        }
        below = {title: found.pop(title) for title in BELOW if title in found}
        return "\n\n".join(
            f"{title}\n{'-' * len(title)}\n{text.strip()}" if title else text.strip()
            for title, text in (found | shared | below).items()
        )

    # ------------------------------------------------------------------------------------------
    # requests

    def request(
        self, params: ByName, k: int | None, options: Options, label: str | None = None
    ) -> Request:
        """Check parameters and make a request; a convention gives the parameters that the caller
        does not."""
        defaults = options.parameters(self.name)
        for name, value in (*params.items(), *defaults.items()):
            self._check(name, value)
        given = [name for name in self.defaults if name in params]
        changed = {
            n: params[n] for n in given if is_frame(params[n]) or params[n] != self.defaults[n]
        }
        inside = ",".join(f"{n}={show(v)}" for n, v in changed.items())
        name = label or self.name + (f"({inside})" if inside else "")
        return Request(self, {**self.defaults, **defaults, **params}, k, name)

    def choices(self, name: str) -> list[Any]:
        """Return the valid values of a parameter that is annotated with `Literal`, or else an empty
        list."""
        return list(self.constraints[name].values) if name in self.constraints else []

    def _check(self, name: str, value: Any) -> None:
        if name not in self.defaults:
            hint = (
                f". A cut-off is written {self.name + '@10'!r}, or passed as k="
                if name == "k"
                else ""
            )
            raise OptionError(
                f"{self.name} has no parameter {name!r}{valid(name, self.defaults)}{hint}"
            )
        if name in self.constraints and value is not self.defaults[name]:
            self.constraints[name].check(name, value, f"{self.name} parameter ")

    def __reduce__(self) -> str | tuple[Any, ...]:
        """A metric that its module has under its name goes by that name, and any other by value.

        Its kernel goes by value too, which cloudpickle can do and pickle cannot.
        """
        name = self.name
        if getattr(sys.modules.get(self.__module__), name, None) is self:
            return name
        return self.by_value()

    def by_value(self) -> tuple[Any, ...]:
        """Return, as `__reduce__` does, what makes the metric where it is not registered."""
        keywords = {one.name: getattr(self, one.name) for one in fields(self)[1:]}
        return partial(type(self), self.kernel, **keywords), ()

    def __repr__(self) -> str:
        return f"<recdf metric {self.name}: {self.doc}>"


@dataclass(frozen=True)
class Request:
    """One metric with its parameters at one k (None: k is ignored), and the name of its results."""

    metric: MetricRecord
    params: dict[str, Any]
    k: int | None
    name: str
    own_column: str | None = None

    @property
    def pooled(self) -> bool:
        """Whether it is one ratio of sums over all lists: its kernel then returns what is summed,
        above and below."""
        return bool(self.params.get("pooled"))

    @property
    def per(self) -> Literal["list", "item"]:
        """Whether there is a value for each list, or one for all lists, as a metric of exposure
        has."""
        return "item" if self.pooled else self.metric.per

    @property
    def sums(self) -> list[Sum]:
        """The sums over lists from which the one value for all lists follows."""
        return (
            [Sum(self.definition, self._summed, "lists")]
            if self.pooled
            else self.metric.exposure_sums(self.params)
        )

    def _summed(self, counts: ListCounts) -> np.ndarray:
        lists = counts.lists
        mine = counts.mine
        parts = lists.matched.derived(
            self.definition, lambda: self.metric.kernel(lists, **self.params)
        )
        weight = 1.0 if lists.matched.weight is None else lists.matched.weight[mine]
        return np.concatenate(
            [exact_sums(np.broadcast_to(one, len(lists))[mine] * weight) for one in parts]
        )

    @property
    def needs(self) -> Names:
        """What it needs with these parameters."""
        return self.metric.changed(self.definition).get("needs", self.metric.needs)

    @property
    def tables(self) -> set[str]:
        """The side tables that its values depend on."""
        named = {*self.needs, *self.metric.optional}
        if named & {"value", "candidates", "features"} or self.unknown:
            named.add("items")
        return {"exclude", *(name for name in SIDES if name in named or "metric" in self.params)}

    @property
    def unknown(self) -> Sequence[Unknown]:
        """What side tables may not know that it reads with these parameters."""
        return self.metric.changed(self.definition).get("unknown", self.metric.unknown)

    @property
    def bounds(self) -> Bounds:
        """Bounds of the values with these parameters."""
        return self.metric.stated(self.definition)[0]

    @property
    def better(self) -> MetricDirection:
        """Direction in which the metric is better with these parameters."""
        return self.metric.stated(self.definition)[1]

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the per-user table."""
        if self.own_column is not None:
            return [self.own_column]
        at = "" if self.k is None else f"@{self.k}"
        if len(self.metric.outputs) == 1:
            return [self.name + at]
        return [
            self.name.replace(self.metric.name, output, 1) + at for output in self.metric.outputs
        ]

    @cached_property
    def definition(self) -> str:
        """Canonical metric string with every parameter written out."""
        inside = ",".join(f"{name}={show(value)}" for name, value in self.params.items())
        return (
            self.metric.name
            + (f"({inside})" if inside else "")
            + ("" if self.k is None else f"@{self.k}")
        )


def show(value: Any) -> str:
    """Return a parameter's value as metric strings write it: the name of a function, else the
    value."""
    return getattr(value, "__name__", None) or ("given" if is_frame(value) else str(value))


def is_frame(value: Any) -> bool:
    """Tell whether a parameter is a table, which has neither a truth value nor a short text."""
    return hasattr(value, "columns")

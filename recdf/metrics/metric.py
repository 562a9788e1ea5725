"""A metric is one record beside its kernel: `Metric`, the `@metric` decorator, the registry.

Contract: a kernel is a function of `Lists` (all lists cut at k) and keyword parameters that returns one
float per list, NaN where the metric has no value. Its docstring and signature are the record's only source.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
import pandas as pd

from ..errors import ColumnError, OptionError, UndefinedMetricError, closest
from ..inputs.options import NAMES, Options, check_choice, parameters
from ..matching.counts import Counts
from ..matching.list_keys import labels_of
from ..matching.matched import Matched
from ..matching.side_tables.sides import SIDES, Given
from .call import Call, check_k
from .docstrings import full_doc, section
from .record import Request, show

__all__ = ["METRICS", "Metric", "metric", "metrics_table"]

Kernel = Callable[..., Any]

METRICS: dict[str, Metric] = {}
_ALIASES: dict[str, str] = {}


class Metric:
    """One metric: a callable record.

    Call it with frames for the mean over the population, `.per_user` for one value per list, or name it in
    `evaluate`. Attributes: `name`, `doc` (meaning, direction and range in a line), `formula`, `bounds`,
    `better` ("larger", "smaller" or None), `references`, `defaults` (of its parameters), `aliases`, `needs`,
    `outputs` (column names; one, but for `confusion`), `cut` (False where k is ignored), `family`, `arguments`
    (positional, before k), `per` ("list", or "item" for a metric of exposure, which is one number for all lists
    and has no `per_user`).
    """

    def __init__(
        self,
        kernel: Kernel,
        *,
        bounds: tuple[float | None, float | None] = (0.0, 1.0),
        better: Literal["larger", "smaller"] | None = "larger",
        aliases: Sequence[str] = (),
        needs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        cut: bool = True,
        arguments: Sequence[str] = ("true", "pred"),
        optional: Sequence[str] = (),
        k: int | None = 10,
        per: Literal["list", "item"] = "list",
    ) -> None:
        self.kernel = kernel
        self.name = self.__name__ = self.__qualname__ = kernel.__name__
        self.__module__ = kernel.__module__
        self.family = kernel.__module__.rpartition(".")[2]
        doc = inspect.getdoc(kernel) or ""
        self.doc = doc.split("\n\n")[0].replace("\n", " ")
        self.formula = section(doc, "Formula")
        self.references = section(doc, "References")
        self.bounds, self.better, self.aliases = bounds, better, tuple(aliases)
        self.outputs, self.cut, self.per = tuple(outputs) or (self.name,), cut, per
        self.arguments, self.optional, self.default_k = tuple(arguments), tuple(optional), k
        self.needs = tuple(dict.fromkeys([*needs, *(name for name in arguments if name in SIDES)]))
        if "true" in arguments and "true" not in optional:
            self.needs = ("true", *self.needs)
        # Side tables by keyword: the catalogue may always be given, it may hold values.
        self.sides = tuple(n for n in SIDES if n not in arguments and n in ("items", *self.needs, *optional))
        own = list(inspect.signature(kernel).parameters.values())[1:]
        self.defaults: dict[str, Any] = {p.name: p.default for p in own}
        for p in own:
            if p.default is inspect.Parameter.empty or p.name in (*NAMES, *self.arguments, *self.sides, "k"):
                raise OptionError(
                    f"parameter {p.name!r} of metric {self.name!r} must have a default and not be named like an option"
                )
        try:
            self._types = typing.get_type_hints(kernel)
        except NameError:  # a user's annotations may name what is not there at run time
            self._types = {}
        self.__signature__ = self._signature(own)
        self.__doc__ = full_doc(doc, self.arguments, self.default_k, self.sides, self.optional, per)

    def _signature(self, own: list[inspect.Parameter]) -> inspect.Signature:
        by_place, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        found = [inspect.Parameter(name, by_place) for name in self.arguments]
        found.append(inspect.Parameter("k", by_place, default=self.default_k))
        found += [p for p in own if p.kind is by_place]
        self._positional = [p.name for p in found]
        found += [p for p in own if p.kind is not by_place]
        found += [inspect.Parameter(name, by_name, default=None) for name in self.sides]
        return inspect.Signature([*found, *parameters()])

    @property
    def built_in(self) -> bool:
        """Whether the metric comes with the package."""
        return str(self.__module__).startswith("recdf.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call, true, pred = self._call(args, kwargs)
        (request,) = call.requests
        with call.match(true, pred) as matched:
            if call.options.by:
                where = "evaluate" if self.per == "item" else f"{self.name}.per_user or evaluate"
                raise OptionError(f"{self.name}(...) is one number; with by= use {where}")
            if self.per == "item":
                return compute_counts([Counts(matched.at(request.k))], request, call.options)[0]
            found = {name: mean(values) for name, values in compute(matched, request, call.options).items()}
        return found if len(found) > 1 else next(iter(found.values()))

    @property
    def per_user(self) -> Callable[..., pd.DataFrame]:
        """One row per list of the population: `by` columns, list key columns, the metric at k."""
        if self.per == "item":
            raise AttributeError(
                f"{self.name} is one number for all lists, so it has no per_user; for users, evaluate parts of pred"
            )
        return self._per_user

    def _per_user(self, *args: Any, **kwargs: Any) -> pd.DataFrame:
        """One row per list of the population: `by` columns, list key columns, the metric at k."""
        call, true, pred = self._call(args, kwargs)
        with call.match(true, pred) as matched:
            return per_user_frame(matched, compute(matched, call.requests[0], call.options))

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Call, Any, Any]:
        """What is asked by these arguments, and `true` and `pred` among them."""
        given = self._bind(args, kwargs)
        shared = Options.of({name: value for name, value in given.items() if name in NAMES})
        params = {name: value for name, value in given.items() if name in self.defaults}
        k = given.get("k", self.default_k)
        whole = k is None and self.default_k is None
        request = self.request(params, check_k(k) if self.cut and not whole else None, shared)
        taken = {*self.arguments, *self.sides}
        sides = Given(**{name: value for name, value in given.items() if name in SIDES and name in taken})
        true = given.get("true")
        return Call(shared, given=sides).asking([request], true), true, given["pred"]

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Arguments by name, as Python binds them."""
        if len(args) > len(self._positional):
            raise TypeError(
                f"{self.name}() takes {len(self._positional)} positional arguments ({', '.join(self._positional)}) "
                f"but {len(args)} were given"
            )
        given = dict(zip(self._positional, args, strict=False))
        known = [*self._positional, *self.defaults, *self.sides, *NAMES]
        for name, value in kwargs.items():
            if name in given:
                raise TypeError(f"{self.name}() got multiple values for argument {name!r}")
            if name not in known:
                valid = ", ".join(dict.fromkeys(known[len(self.arguments) + 1 :]))
                raise OptionError(f"{self.name} has no option {name!r}{closest(name, known)}; valid are {valid}")
            given[name] = value
        for name in self.arguments:
            if name not in given and name not in self.optional:
                raise TypeError(f"{self.name}() is missing the argument {name!r}")
        return given

    def request(self, params: Mapping[str, Any], k: int | None, options: Options, label: str | None = None) -> Request:
        """Check parameters and say what is to be computed; a convention fills in what is not given."""
        defaults = options.parameters(self.name)
        for name, value in (*params.items(), *defaults.items()):
            self._check(name, value)
        changed = {n: params[n] for n in self.defaults if n in params and params[n] != self.defaults[n]}
        inside = ",".join(f"{n}={show(v)}" for n, v in changed.items())
        name = label or self.name + (f"({inside})" if inside else "")
        return Request(self, {**self.defaults, **defaults, **params}, k, name)

    def choices(self, name: str) -> list[Any]:
        """Values of a parameter that is annotated with `Literal`, or an empty list."""
        hint = self._types.get(name)
        literals = [one for one in (hint, *typing.get_args(hint)) if typing.get_origin(one) is Literal]
        return [choice for one in literals for choice in typing.get_args(one)]

    def _check(self, name: str, value: Any) -> None:
        if name not in self.defaults:
            known = list(self.defaults)
            raise OptionError(
                f"{self.name} has no parameter {name!r}{closest(name, known)}; valid are {', '.join(known) or 'none'}"
            )
        kind, choices = self._types.get(name), self.choices(name)
        if choices and not (callable(value) and typing.get_origin(kind) is not Literal):
            check_choice(f"{self.name} parameter {name}", value, choices)
        elif float in (kind, *typing.get_args(kind)) and not (
            _is_number(value) or value is self.defaults[name] is None
        ):
            raise OptionError(f"{self.name} parameter {name}={value!r}; expected a finite number")
        elif kind is bool and not isinstance(value, bool):
            raise OptionError(f"{self.name} parameter {name}={value!r}; expected True or False")

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<recdf metric {self.name}: {self.doc}>"


def compute(matched: Matched, request: Request, options: Options) -> dict[str, np.ndarray]:
    """Values per list of one request, by column."""
    lists = matched.at(request.k)
    try:
        found = request.metric.kernel(lists, **request.params)
    except OptionError as error:
        raise OptionError(f"{request.definition}: {error}") from None
    parts = found if isinstance(found, tuple) else (found,)
    if len(parts) != len(request.columns):
        raise TypeError(f"metric {request.metric.name!r} returned {len(parts)} arrays, expected {len(request.columns)}")
    result = {}
    for column, part in zip(request.columns, parts, strict=True):
        values = np.asarray(part, dtype=np.float64)
        if values is part and not (request.metric.built_in and values.flags.writeable):
            values = values.copy()  # others may read the array; those that built-in kernels share are read-only
        if values.shape != (len(lists),):
            raise TypeError(
                f"metric {request.metric.name!r} returned shape {values.shape}, "
                f"expected one value per list, ({len(lists)},)"
            )
        values = _onto_bounds(values, request.metric.bounds)
        count = {} if options.convention is None else options.convention.undefined
        if request.metric.name in count:
            empty = (lists.n_true if count[request.metric.name] == "n_true" else lists.n_pred) == 0
            values = np.where(empty, np.nan, values)
        result[column] = _settle_undefined(column, values, options)
    return result


def _onto_bounds(values: np.ndarray, bounds: tuple[float | None, float | None]) -> np.ndarray:
    """Take back the last digits by which rounding carries a value past a bound."""
    for bound, beyond in zip(bounds, (np.less, np.greater), strict=True):
        if bound is not None and beyond(values, bound).any():
            values = np.where(beyond(values, bound) & np.isclose(values, bound, rtol=1e-12, atol=1e-12), bound, values)
    return values


def compute_counts(counts: Iterable[Counts], request: Request, options: Options) -> list[Any]:
    """Value of one request for the counts of each `by` value: a number, or a mapping of groups to numbers."""
    found: list[Any] = []
    for one in counts:
        try:
            value = request.metric.kernel(one, **request.params)
        except OptionError as error:
            raise OptionError(f"{request.definition}: {error}") from None
        parts = value if isinstance(value, dict) else {None: value}
        values = _onto_bounds(np.array(list(parts.values()), np.float64), request.metric.bounds)
        values = _settle_undefined(request.columns[0], values, options)
        settled = dict(zip(parts, values.tolist(), strict=True))
        found.append(settled if isinstance(value, dict) else settled[None])
    return found


def _settle_undefined(column: str, values: np.ndarray, options: Options) -> np.ndarray:
    if options.undefined == "nan":
        return values
    missing = np.isnan(values)
    if not missing.any():
        return values
    if options.undefined == "raise":
        raise UndefinedMetricError(
            f'{column} has no value for {missing.sum():,} of {len(values):,} lists; undefined="raise"'
        )
    return np.where(missing, 0.0, values)


def mean(values: np.ndarray) -> float:
    """Mean of the defined values, NaN if there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def label_frame(matched: Matched) -> pd.DataFrame:
    """`by` and list key columns, one row per list."""
    return per_user_frame(matched, {})


def per_user_frame(matched: Matched, columns: dict[str, np.ndarray]) -> pd.DataFrame:
    """`by` and list key columns, then others, one row per list."""
    labels = [(str(name), matched.keys[name]) for name in matched.keys.columns]
    if len(matched.by.columns):
        by = labels_of(matched.by, list(matched.by.columns), matched.list_by)
        labels = [*((str(name), by[name]) for name in by.columns), *labels]
    found = dict(labels)
    if len(found) < len(labels):
        raise ColumnError(f"the key and by columns {[name for name, _ in labels]} have equal names")
    taken = [name for name in columns if name in found]
    if taken:
        raise ColumnError(f"the key or by column {taken[0]!r} has the name of a result column; rename it")
    # Not consolidated: millions of lists times many metrics would be copied.
    return pd.DataFrame({**found, **columns}, copy=False)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))


# -------------------------------------------------------------------------------------------- registry


@overload
def metric(kernel: Kernel, /) -> Metric: ...
@overload
def metric(
    *,
    bounds: tuple[float | None, float | None] = ...,
    better: Literal["larger", "smaller"] | None = ...,
    aliases: Sequence[str] = ...,
    needs: Sequence[str] = ...,
    outputs: Sequence[str] = ...,
    cut: bool = ...,
    arguments: Sequence[str] = ...,
    optional: Sequence[str] = ...,
    k: int | None = ...,
    per: Literal["list", "item"] = ...,
) -> Callable[[Kernel], Metric]: ...
def metric(kernel: Kernel | None = None, /, **record: Any) -> Any:
    """Make a function of `Lists` a metric that works everywhere a built-in one does.

    Parameters
    ----------
    kernel : function
        Takes `Lists` (all lists cut at k, see `recdf.Lists`) and parameters with defaults,
        keyword-only ones or such that may follow k by place; returns one float per list, NaN where undefined.
        Parameters annotated with `Literal` are checked against its values.
    bounds : tuple of float or None, default (0, 1)
        Least and largest possible value, None where there is no bound.
    better : {"larger", "smaller", None}, default "larger"
        Direction.
    aliases : sequence of str
        Further names for metric strings.
    needs : sequence of {"value", "candidates", "log", "items", "aspects", "features", "base", "popular"}
        What it needs beyond its arguments.
    outputs : sequence of str
        Names of the results of a kernel that returns a tuple of arrays.
    cut : bool, default True
        False for a metric that ignores k.
    arguments : sequence of str, default ("true", "pred")
        Positional arguments before k: "pred" and what the metric is about, such as ("log", "pred").
    optional : sequence of str
        Arguments and side tables that may be None.
    k : int or None, default 10
        Default of k; None is the whole list.
    per : {"list", "item"}, default "list"
        "item" for a metric of exposure: the kernel takes `recdf.Counts`, numbers per item over the lists
        of one `by` value, and returns one float (or a mapping of groups to floats). `evaluate_parquet` takes it if it
        reads only what adds up over lists, which `Counts.summed` says.

    Returns
    -------
    Metric

    Raises
    ------
    OptionError
        If the name belongs to a built-in metric, or a parameter is named like an option.

    Examples
    --------
    >>> import numpy as np, recdf as rd
    >>> @rd.metric
    ... def my_last_rr(lists):
    ...     "Reciprocal rank of the last hit; larger is better, in [0, 1]."
    ...     value = np.zeros(len(lists))
    ...     value[lists.hits.list] = 1 / lists.hits.rank  # of equal lists the last hit stays
    ...     return value
    >>> rd.evaluate({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, "my_last_rr@3").summary["value"].round(3).tolist()
    [0.333]
    """
    if kernel is None:
        return lambda function: metric_of(function, record)
    return metric_of(kernel, record)


def metric_of(kernel: Kernel, record: dict[str, Any]) -> Metric:
    made = Metric(kernel, **record)
    for name in (made.name, *made.aliases):
        held = METRICS.get(_ALIASES.get(name, name))
        if held is not None and held.built_in and held.__module__ != made.__module__:
            raise OptionError(f"{name!r} is the built-in metric {held.name}; give yours another name")
    METRICS[made.name] = made
    _ALIASES.update(dict.fromkeys(made.aliases, made.name))
    return made


def metrics_table() -> pd.DataFrame:
    """All metrics as a frame, one row each.

    Returns
    -------
    DataFrame
        `metric`, `family`, `aliases`, `parameters` (with defaults), `better` ("larger", "smaller", ""),
        `low`, `high` (bounds, null for none), `needs`, `meaning`, `formula`, `references`.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.metrics_table().set_index("metric").loc["mapr", ["aliases", "better"]].tolist()
    ['map, ap', 'larger']
    """
    rows = [
        {
            "metric": m.name,
            "family": m.family,
            "aliases": ", ".join(m.aliases),
            "parameters": ", ".join(f"{name}={show(value)}" for name, value in m.defaults.items()),
            "better": m.better or "",
            "low": np.nan if m.bounds[0] is None else float(m.bounds[0]),
            "high": np.nan if m.bounds[1] is None else float(m.bounds[1]),
            "needs": ", ".join(need for need in m.needs if need != "true"),
            "meaning": m.doc,
            "formula": m.formula,
            "references": m.references,
        }
        for m in METRICS.values()
    ]
    return pd.DataFrame(rows)


def find(name: str) -> Metric:
    """The metric of this name or alias."""
    found = METRICS.get(_ALIASES.get(name, name))
    if found is None:
        known = sorted([*METRICS, *_ALIASES])
        raise OptionError(f"unknown metric {name!r}{closest(name, known)}; valid are {', '.join(known)}")
    return found

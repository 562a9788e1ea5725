"""A metric is one record beside its kernel: `Metric`, the `@metric` decorator, metric strings, the registry.

Contract: a kernel is a function of `Lists` (all lists cut at k) and keyword parameters that returns one
float per list, NaN where the metric has no value. Its docstring and signature are the record's only source.
"""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
import pandas as pd

from .errors import ColumnError, OptionError, UndefinedMetricError, closest
from .lists import Matched
from .match import match
from .options import DESCRIPTION, NAMES, Options, check_choice, parameters

__all__ = ["METRICS", "Metric", "metric", "metrics_table"]

Kernel = Callable[..., Any]

# What a metric may need beyond the lists, and the arguments that give it.
NEEDS = {
    "value": ("value_col", "value_col= (a value of items in pred, true or items)"),
    "candidates": ("items", "items= (the catalogue) or judged_only=True"),
}

COMMON = """
true, pred : DataFrame, mapping or Arrow stream
    What was wanted, one row per (list key, relevant item); what was shown, one row per (list key, item).
k : int, default 10
    Cut-off: ranks 1 to k count.{own}
items : DataFrame, list, Series or Index, optional
    Catalogue: all items that could have been shown.
"""

METRICS: dict[str, Metric] = {}
_ALIASES: dict[str, str] = {}


class Metric:
    """One metric: a callable record.

    Call it with frames for the mean over the population, `.per_user` for one value per list, or name it in
    `evaluate`. Attributes: `name`, `doc` (meaning, direction and range in a line), `formula`, `bounds`,
    `better` ("larger", "smaller" or None), `references`, `defaults` (of its parameters), `aliases`, `needs`,
    `outputs` (column names; one, but for `confusion`), `cut` (False where k is ignored), `family`.
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
    ) -> None:
        self.kernel = kernel
        self.name = self.__name__ = self.__qualname__ = kernel.__name__
        self.__module__ = kernel.__module__
        self.family = kernel.__module__.rpartition(".")[2]
        doc = inspect.getdoc(kernel) or ""
        self.doc = doc.split("\n\n")[0].replace("\n", " ")
        self.formula = _section(doc, "Formula")
        self.references = _section(doc, "References")
        self.bounds, self.better, self.aliases = bounds, better, tuple(aliases)
        self.needs, self.outputs, self.cut = tuple(needs), tuple(outputs) or (self.name,), cut
        own = list(inspect.signature(kernel).parameters.values())[1:]
        self.defaults: dict[str, Any] = {p.name: p.default for p in own}
        for p in own:
            if p.kind is not inspect.Parameter.KEYWORD_ONLY or p.default is inspect.Parameter.empty or p.name in NAMES:
                raise OptionError(
                    f"parameter {p.name!r} of metric {self.name!r} must be keyword-only, have a default, "
                    "and not be named like an option"
                )
        try:
            self._types = typing.get_type_hints(kernel)
        except NameError:  # a user's annotations may name what is not there at run time
            self._types = {}
        positional = [
            inspect.Parameter("true", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            inspect.Parameter("pred", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            inspect.Parameter("k", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=10),
        ]
        items = inspect.Parameter("items", inspect.Parameter.KEYWORD_ONLY, default=None)
        self.__signature__ = inspect.Signature([*positional, *own, items, *parameters()])
        self.__doc__ = _full_doc(doc)

    def __call__(self, true: Any, pred: Any, k: int = 10, *, items: Any = None, **options: Any) -> Any:
        matched, request, shared = self._match(true, pred, k, items, options)
        if shared.by:
            raise OptionError(f"{self.name}(...) is one number; with by= use {self.name}.per_user or evaluate")
        found = {name: mean(values) for name, values in compute(matched, request, shared).items()}
        return found if len(found) > 1 else next(iter(found.values()))

    def per_user(self, true: Any, pred: Any, k: int = 10, *, items: Any = None, **options: Any) -> pd.DataFrame:
        """One row per list of the population: `by` columns, list key columns, the metric at k."""
        matched, request, shared = self._match(true, pred, k, items, options)
        return pd.concat([label_frame(matched), pd.DataFrame(compute(matched, request, shared))], axis=1)

    def _match(
        self, true: Any, pred: Any, k: int, items: Any, options: dict[str, Any]
    ) -> tuple[Matched, Request, Options]:
        for name in options:
            if name not in NAMES and name not in self.defaults:
                known = [*self.defaults, "items", *NAMES]
                raise OptionError(
                    f"{self.name} has no option {name!r}{closest(name, known)}; valid are {', '.join(known)}"
                )
        shared = Options.of({name: value for name, value in options.items() if name in NAMES})
        params = {name: value for name, value in options.items() if name in self.defaults}
        request = self.request(params, check_k(k) if self.cut else None, shared)
        check_needs([request], shared, items)
        return match(true, pred, shared, items), request, shared

    def request(self, params: Mapping[str, Any], k: int | None, options: Options, label: str | None = None) -> Request:
        """Check parameters and say what is to be computed; a convention fills in what is not given."""
        defaults = options.parameters(self.name)
        for name, value in (*params.items(), *defaults.items()):
            self._check(name, value)
        changed = {n: params[n] for n in self.defaults if n in params and params[n] != self.defaults[n]}
        inside = ",".join(f"{n}={_show(v)}" for n, v in changed.items())
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

    def __reduce__(self) -> str:
        return self.__qualname__

    def __repr__(self) -> str:
        return f"<recdf metric {self.name}: {self.doc}>"


@dataclass(frozen=True)
class Request:
    """One metric with its parameters at one k (None: k is ignored), and the name of its results."""

    metric: Metric
    params: dict[str, Any]
    k: int | None
    name: str
    own_column: str | None = None

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the per-user table."""
        if self.own_column is not None:
            return [self.own_column]
        at = "" if self.k is None else f"@{self.k}"
        if len(self.metric.outputs) == 1:
            return [self.name + at]
        return [self.name.replace(self.metric.name, output, 1) + at for output in self.metric.outputs]

    @property
    def definition(self) -> str:
        """Canonical metric string with every parameter written out."""
        inside = ",".join(f"{name}={_show(value)}" for name, value in self.params.items())
        return self.metric.name + (f"({inside})" if inside else "") + ("" if self.k is None else f"@{self.k}")


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
        values = np.array(part, dtype=np.float64)  # a copy: kernels may return arrays that others read
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


def _settle_undefined(column: str, values: np.ndarray, options: Options) -> np.ndarray:
    missing = np.isnan(values)
    if options.undefined == "nan" or not missing.any():
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
    by = matched.by.take(matched.list_by).reset_index(drop=True)
    labels = matched.keys.copy(deep=False) if not len(by.columns) else pd.concat([by, matched.keys], axis=1)
    labels.columns = pd.Index(map(str, labels.columns))
    if not labels.columns.is_unique:
        raise ColumnError(f"the key and by columns {list(labels.columns)} have equal names")
    return labels


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))


def check_k(k: Any) -> int:
    """Return k as an int, or raise."""
    if isinstance(k, bool | np.bool_) or not isinstance(k, int | np.integer) or not 1 <= k < 2**31:
        raise OptionError(f"k={k!r}; expected a positive integer below 2**31")
    return int(k)


def check_needs(requests: Sequence[Request], options: Options, items: Any) -> None:
    """Raise if a metric lacks what it needs beyond the two frames."""
    given = {"value": options.value_col is not None, "candidates": items is not None or options.judged_only}
    for request in requests:
        for need in request.metric.needs:
            if not given[need]:
                raise OptionError(f"{request.columns[0]} needs {NEEDS[need][1]}")


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
) -> Callable[[Kernel], Metric]: ...
def metric(kernel: Kernel | None = None, /, **record: Any) -> Any:
    """Make a function of `Lists` a metric that works everywhere a built-in one does.

    Parameters
    ----------
    kernel : function
        Takes `Lists` (all lists cut at k, see `recdf.lists.Lists`) and keyword-only parameters with
        defaults; returns one float per list, NaN where undefined. Parameters annotated with `Literal`
        are checked against its values.
    bounds : tuple of float or None, default (0, 1)
        Least and largest possible value, None where there is no bound.
    better : {"larger", "smaller", None}, default "larger"
        Direction.
    aliases : sequence of str
        Further names for metric strings.
    needs : sequence of {"value", "candidates"}
        What it needs beyond the two frames.
    outputs : sequence of str
        Names of the results of a kernel that returns a tuple of arrays.
    cut : bool, default True
        False for a metric that ignores k.

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
    ... def last_rr(lists):
    ...     "Reciprocal rank of the last hit; larger is better, in [0, 1]."
    ...     value = np.zeros(len(lists))
    ...     value[lists.hits.list] = 1 / lists.hits.rank  # of equal lists the last hit stays
    ...     return value
    >>> rd.evaluate({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, "last_rr@3").summary["value"].round(3).tolist()
    [0.333]
    """
    if kernel is None:
        return lambda function: metric_of(function, record)
    return metric_of(kernel, record)


def metric_of(kernel: Kernel, record: dict[str, Any]) -> Metric:
    made = Metric(kernel, **record)
    for name in (made.name, *made.aliases):
        held = METRICS.get(_ALIASES.get(name, name))
        if held is not None and held.__module__.startswith("recdf.") and held.__module__ != made.__module__:
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
            "parameters": ", ".join(f"{name}={_show(value)}" for name, value in m.defaults.items()),
            "better": m.better or "",
            "low": np.nan if m.bounds[0] is None else float(m.bounds[0]),
            "high": np.nan if m.bounds[1] is None else float(m.bounds[1]),
            "needs": ", ".join(m.needs),
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


# ------------------------------------------------------------------------------------- metric strings

_STRING = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\((.*)\))?\s*(?:@\s*(\w+))?\s*")


def parse(
    metrics: str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric],
    k: int | Sequence[int],
    options: Options,
) -> list[Request]:
    """Read metric strings, records, or a mapping of own names to them, each at every k it does not name."""
    if isinstance(k, Sequence | np.ndarray | pd.Index | pd.Series | range) and not isinstance(k, str):
        ks = [check_k(one) for one in k]
        if not ks:
            raise OptionError("k is an empty list; expected positive integers")
    else:
        ks = [check_k(k)]
    if isinstance(metrics, str | Metric) or not isinstance(metrics, Iterable):
        metrics = [metrics]
    named = metrics.items() if isinstance(metrics, Mapping) else [(None, one) for one in metrics]
    requests = [request for own, one in named for request in _parse_one(own, one, list(dict.fromkeys(ks)), options)]
    columns = [column for request in requests for column in request.columns]
    if not columns:
        raise OptionError("metrics is empty; name at least one, such as 'ndcg@10'")
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise OptionError(f"metrics gives {', '.join(map(repr, twice))} more than once")
    return requests


def _parse_one(own: str | None, text: str | Metric, ks: list[int], options: Options) -> list[Request]:
    if isinstance(text, Metric):
        found, params, at, label = text, {}, None, None
    elif isinstance(text, str):
        match_ = _STRING.fullmatch(text)
        if match_ is None:
            raise OptionError(
                f"metric string {text!r} is not of the form 'name', 'name@k' or 'name(parameter=value)@k'"
            )
        name, inside, at = match_.groups()
        found = find(name)
        params = _parse_parameters(found, text, inside or "")
        given = ",".join(part.replace(" ", "") for part in (inside or "").split(",") if part.strip())
        label = name + (f"({given})" if given else "")
    else:
        raise OptionError(f"metric {text!r} is a {type(text).__name__}; expected a metric string or a Metric")
    if at is not None:
        if not at.isdecimal() or not 1 <= int(at) < 2**31:
            raise OptionError(f"metric string {text!r}: k must be a positive integer below 2**31")
        ks = [int(at)]
    requests = []
    for k in ks if found.cut else [None]:
        request = found.request(params, k, options, label)
        if own is not None:
            alone = at is not None or len(ks) == 1 or not found.cut
            if len(found.outputs) > 1:
                raise OptionError(
                    f"{found.name} has several columns ({', '.join(found.outputs)}) and takes no own name"
                )
            if not isinstance(own, str) or own in ("", "n_true", "n_pred"):
                raise OptionError(f"own name {own!r} of metric {text!r}; expected a name of no other result column")
            request = Request(found, request.params, k, own, own_column=own if alone else None)
        requests.append(request)
    return requests


def _parse_parameters(found: Metric, text: str, inside: str) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in inside.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name or not value:
            raise OptionError(f"metric string {text!r}: {part!r} is not of the form parameter=value")
        if name in params:
            raise OptionError(f"metric string {text!r} gives {name!r} twice")
        params[name] = value if value in found.choices(name) else _literal(value)
    return params


def _literal(text: str) -> Any:
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("'\"")


def _show(value: Any) -> str:
    return getattr(value, "__name__", None) or str(value)


# ------------------------------------------------------------------------------------------ docstrings


def _section(doc: str, title: str) -> str:
    """Text of one section of a numpydoc docstring, in one line."""
    found = re.search(rf"(?:^|\n){title}\n-+\n(.*?)(?=\n\n[A-Z]\w*\n-+\n|\Z)", doc, flags=re.S)
    return " ".join(found.group(1).split()) if found else ""


def _full_doc(doc: str) -> str:
    """The kernel's docstring with what all metrics share: frames, options, results, errors."""
    own = re.search(r"(?:^|\n)Parameters\n-+\n(.*?)(?=\n\n[A-Z]\w*\n-+\n|\Z)", doc, flags=re.S)
    shared = COMMON.format(own="\n" + own.group(1).rstrip() if own else "").strip() + "\n" + DESCRIPTION
    block = (
        f"Parameters\n----------\n{shared}\n\n"
        "Returns\n-------\nfloat\n    Mean over the defined lists of the population; "
        "`.per_user(...)` takes the same arguments\n"
        "    and returns a frame: `by` columns, list key columns, one column named by the metric string.\n\n"
        "Raises\n------\nColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError\n"
        "    For input that no metric can be computed from; each is also the builtin KeyError, TypeError or ValueError."
    )
    if own:
        return doc[: own.start()].rstrip() + "\n\n" + block + doc[own.end() :]
    head, formula, rest = doc.partition("\n\nReferences\n")
    if not formula:
        head, formula, rest = doc.partition("\n\nExamples\n")
    return head.rstrip() + "\n\n" + block + formula + rest

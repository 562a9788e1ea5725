"""Metrics as users meet them: what can be called, the `@metric` decorator, and the registry."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Concatenate, NoReturn, ParamSpec, Protocol, overload

import numpy as np
from pandas import DataFrame

from ..errors import OptionError, valid
from ..inputs.door import at_the_door
from ..inputs.options import NAMES, Options, check_names
from ..matching.counts import ListCounts
from .call import Call, check_k
from .compute import compute, compute_counts, mean, per_user_frame, settle_undefined
from .record import Bounds, Kernel, MetricDirection, MetricRecord, Request, show

METRICS: dict[str, Metric] = {}
_ALIASES: dict[str, str] = {}

NOT_NEGATIVE: Bounds = (0.0, None)  # bounds of a count or a sum

KernelArguments = ParamSpec("KernelArguments")


class Metric(MetricRecord):
    """One metric: a record that can be called.

    Call it with frames for the mean over the population, `.per_user` for one value per list, or
    name it in `evaluate`. Attributes: `name`, `doc` (meaning, direction and range in a line),
    `formula`, `bounds`, `better` ("larger", "smaller" or None), `references`, `defaults` (of its
    parameters), `aliases`, `needs`, `outputs` (column names; one, but for `confusion`), `cut`
    (False where k is ignored), `family`, `arguments` (positional, before k), `per` ("list", or
    "item" for a metric of exposure, which is one number for all lists and has no `per_user`).
    """

    def stated(self, text: str) -> tuple[Bounds, MetricDirection]:
        """Bounds and direction with the parameters of a metric string; those of the metric that it
        takes, if any."""
        inner = re.search(r"\(metric=((\w+)(\([^()]*\))?)", text) if self.built_in else None
        try:
            return super().stated(text) if inner is None else find(inner[2]).stated(inner[1])
        except OptionError:  # only named like a metric string
            return super().stated(text)

    def request(
        self, params: Mapping[str, Any], k: int | None, options: Options, label: str | None = None
    ) -> Request:
        """Make a request; a metric that this one takes has the parameters of the convention too."""
        made = super().request(params, k, options, label)
        inner = made.params.get("metric") if self.built_in else None
        if inner is not None:
            text = inner.name if isinstance(inner, Metric) else inner
            name, _, inside = text.rstrip(") ").partition("(")
            given = [part for part in inside.split(",") if part]
            named = {part.partition("=")[0].strip() for part in given}
            more = options.parameters(find(name.strip()).name).items()
            given += [f"{one}={show(value)}" for one, value in more if one not in named]
            made.params["metric"] = f"{name}({','.join(given)})" if more else inner
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The value over all lists."""
        call, true, pred = self._call(args, kwargs)
        (request,) = call.requests
        with call.match(true, pred) as matched:
            if call.options.by:
                per_user = f"{self.name}.per_user or " * (request.per == "list")
                raise OptionError(
                    f"{self.name}(...) is one number; with ⟦+by=⟧ use {per_user}evaluate"
                )
            if request.per == "list":
                columns = compute(matched, request, call.options)
                found = {name: mean(values, matched.weight) for name, values in columns.items()}
                return found if len(found) > 1 else next(iter(found.values()))
            counts = ListCounts(matched.at(request.k))
            groups, numbers = compute_counts(counts, request, call.options)
            settled = settle_undefined(numbers, request, call.options).tolist()
            return settled[0] if groups == [None] else dict(zip(groups, settled, strict=True))

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Call, Any, Any]:
        """What is asked by these arguments, and `true` and `pred` among them."""
        named = dict.fromkeys(["k", *self.defaults, *self.sides, *NAMES, "options"])
        check_names([one for one in kwargs if one not in self.arguments], [*named], self.name)
        try:
            bound = inspect.signature(self).bind_partial(*args, **kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None
        for name in self.arguments:
            if name not in bound and name not in self.optional:
                raise TypeError(f"{self.name}() is missing the argument {name!r}")
        given = at_the_door(bound)
        params = {name: value for name, value in given.items() if name in self.defaults}
        k = given.get("k", self.k)
        whole = k is None and self.k is None
        taken = {*self.arguments, *self.sides, *NAMES} - {"true", "pred"}
        true = given.get("true")
        arguments = {name: value for name, value in given.items() if name in taken}

        def requests(options: Options) -> list[Request]:
            return [self.request(params, check_k(k) if self.cut and not whole else None, options)]

        return Call.from_arguments(self, arguments, true, requests), true, given["pred"]


class ListMetric(Metric):
    """A metric with one value per list; called, it is the mean over the population."""

    def per_user(self, *args: Any, **kwargs: Any) -> DataFrame:
        """One row per list of the population: `by` columns, list key columns, the metric at k."""
        call, true, pred = self._call(args, kwargs)
        if call.requests[0].pooled:
            raise OptionError(
                f"{self.name}(pooled=True) is one number for all lists, and no list has a value of "
                "it"
            )
        with call.match(true, pred) as matched:
            return per_user_frame(matched, compute(matched, call.requests[0], call.options))


class ExposureMetric(Metric):
    """A metric of exposure: one number for all lists, from counts per item."""

    @property
    def per_user(self) -> NoReturn:
        """There is none."""
        raise AttributeError(
            f"{self.name} is one number for all lists, so it has no per_user; for users, evaluate "
            "parts of pred"
        )


# --------------------------------------------------------------------------------------------
# decorator


class MetricDecorator(Protocol[KernelArguments]):
    """`@metric`, or `@metric(...)` with keywords: those of the record.

    For a type checker both make a `ListMetric`, which is what a user's metric nearly always is.
    """

    @overload
    def __call__(self, kernel: Kernel, /) -> ListMetric: ...
    @overload
    def __call__(
        self, *args: KernelArguments.args, **keywords: KernelArguments.kwargs
    ) -> Callable[[Kernel], ListMetric]: ...


def _keywords_of(
    record: Callable[Concatenate[Kernel, KernelArguments], MetricRecord],
) -> Callable[[Callable[..., Any]], MetricDecorator[KernelArguments]]:
    """Give a decorator the keywords of a record, so that they are written once: as the record's
    fields."""

    def give(decorator: Any) -> Any:
        fields = [
            p for p in inspect.signature(record).parameters.values() if p.kind is p.KEYWORD_ONLY
        ]
        kernel = inspect.Parameter("kernel", inspect.Parameter.POSITIONAL_ONLY, default=None)
        decorator.__signature__ = inspect.Signature([kernel, *fields])
        return decorator

    return give


@_keywords_of(MetricRecord)
def metric(kernel: Kernel | None = None, /, **keywords: Any) -> Any:
    """Make a function of `Lists` a metric that works everywhere a built-in one does.

    Parameters
    ----------
    kernel : function
        It takes `rd.Lists`, which are all lists cut at k, and returns one float per list, NaN where
        the metric has no value. Its other parameters have defaults and become parameters of the
        metric; those that are not keyword-only may follow k by place. Parameters annotated with
        `Literal` are checked against its values.
    bounds : tuple of float or None, default (0, 1)
        Least and largest possible value, None where there is no bound.
    better : {"larger", "smaller", None}, default "larger"
        In which direction the metric is better; None if in neither.
    aliases : sequence of str
        Further names for metric strings.
    needs : sequence of str
        What the metric needs beyond its arguments: "value", "candidates", or side tables by their
        names, such as "log".
    outputs : sequence of str
        Names of the results of a kernel that returns a tuple of arrays.
    cut : bool, default True
        False for a metric that ignores k.
    arguments : sequence of str, default ("true", "pred")
        Positional arguments before k: "pred" and what the metric is about, such as ("log", "pred").
    optional : sequence of str
        Arguments and side tables that may be None. "propensity" says that the kernel counts
        relevant items by `Lists.item_weights`; other metrics that read `true` are refused in a call
        with `propensity_col`. "not_judged" says that the kernel asks what is judged: in a call with
        such a metric, a row of `true` with a null or negative relevance is in `Lists.pool` and not
        judged, and no error.
    k : int or None, default 10
        Default of k; None is the whole list.
    per : {"list", "item"}, default "list"
        "item" for a metric of exposure: the kernel takes `rd.Counts`, numbers per item over the
        lists of one `by` value, and returns one float (or a mapping of groups to floats).
    sums : sequence of str, optional
        For a metric of exposure, what it reads of `rd.Counts`: "lengths" (for `n_lists`,
        `n_lists_shown` and `deepest`), "shown", "n_lists_with", "first_shown", "exposure", "hits",
        "relevant", "had", "new"; or a tuple of a name, a function and "pred", "true", "log" or
        "lists", as `Counts.summed` takes them. `evaluate_parquet` adds these up over parts of the
        files. By default all that the package knows. Where the sums depend on the parameters of the
        metric: a function of these, as a mapping, that returns the tuples.
    unknown : sequence of str, default ()
        What side tables may not know, to be counted in `Evaluation.spec`: "items", "items_or_log",
        "log" (rows whose item is not there), "log_users" (lists whose user is not there),
        "features", "category", "group" (rows whose item has none), "negatives" (lists of which
        `true` judges only relevant items). `UnknownWarning` and `JudgedWarning` say if these are
        many.
    where : mapping, optional
        `bounds`, `better`, `needs` and `unknown` where a parameter has a value, as in
        `{"of=last": {"better": "smaller"}}`.

    A parameter `pooled` of a kernel, False by default, says that the metric can be one ratio of
    sums over all lists. With True the kernel returns two arrays per list: what is summed above the
    line, and below it.

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
    >>> rd.evaluate({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, "my_last_rr@3").summary[
    ...     "value"
    ... ].round(3).tolist()
    [0.333]
    """
    if kernel is None:
        return partial(metric, **keywords)
    kind = ExposureMetric if keywords.get("per") == "item" else ListMetric
    made = kind(kernel, **keywords)
    # Enter it under its name and aliases; those of built-in metrics are taken.
    for name in (made.name, *made.aliases):
        held = METRICS.get(_ALIASES.get(name, name))
        if held is not None and held.built_in and held.__module__ != made.__module__:
            raise OptionError(
                f"{name!r} is the built-in metric {held.name}; give yours another name"
            )
    METRICS[made.name] = made
    _ALIASES.update(dict.fromkeys(made.aliases, made.name))
    return made


def metrics_table() -> DataFrame:
    """All metrics as a frame, one row each.

    Returns
    -------
    DataFrame
        `metric`, `family`, `aliases`, `parameters` (with defaults), `better` ("larger", "smaller",
        ""), `low`, `high` (bounds, null for none), `needs`, `meaning`, `formula`, `references`.

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
    return DataFrame(rows)


def written(name: str) -> str:
    """The name as metrics and columns have it: as it stands, if a metric is called so, else in
    lower case."""
    return name if name in METRICS or name in _ALIASES else name.lower()


def find(name: str) -> Metric:
    """The metric of this name or alias, in any case."""
    found = METRICS.get(_ALIASES.get(written(name), written(name)))
    if found is None:
        known = sorted([*METRICS, *_ALIASES])
        with_k = re.fullmatch(r"(\w+?)(?:_at)?_?(\d+)", written(name))
        if with_k is not None and with_k[1] in known:
            raise OptionError(
                f"unknown metric {name!r}; did you mean {f'{with_k[1]}@{with_k[2]}'!r}?"
            )
        raise OptionError(f"unknown metric {name!r}{valid(name, known)}")
    return found

"""Metric strings, such as "ndcg@10" or "mapr(normalizer=achievable)@20", mappings of own names, and
the direction of the metric that a column is named after."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from pandas.api.types import is_list_like

from ..errors import OptionError, kind_of
from ..inputs.options import Options
from .call import check_k
from .metric import METRICS, Metric, find, written
from .record import Bounds, MetricDirection, Request

# ------------------------------------------------------------------------------------------
# Metric strings, such as "ndcg@10" or "mapr(normalizer=achievable)@20", and mappings of own names
# to them.
#
# `parse` turns the metrics that a caller names into `Request`s. It checks every parameter before
# anything is computed.


_STRING = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\((.*)\))?\s*(?:@\s*(\w+))?\s*")
_BETWEEN = re.compile(r",(?![^(]*\))")  # commas that are not inside the brackets of another metric


# What a call takes as its metrics.
Metrics = str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric]


def parse(metrics: Metrics, k: int | Sequence[int], options: Options) -> list[Request]:
    """Make requests from metric strings, metrics, or a mapping of own names to them; those without
    a k get every k."""
    several: Any = k if is_list_like(k, allow_sets=False) else [k]
    ks = [check_k(one) for one in several]
    if not ks:
        raise OptionError("k is an empty list; expected positive integers")
    if isinstance(metrics, str | Metric) or not isinstance(metrics, Iterable):
        metrics = [metrics]
    named = metrics.items() if isinstance(metrics, Mapping) else [(None, one) for one in metrics]
    requests = [
        request
        for own, one in named
        for request in _parse_one(own, one, list(dict.fromkeys(ks)), options)
    ]
    columns = [column for request in requests for column in request.columns]
    if not columns:
        raise OptionError("metrics is empty; name at least one, such as 'ndcg@10'")
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise OptionError(f"metrics gives {', '.join(map(repr, twice))} more than once")
    return requests


def _parse_one(
    own: str | None, text: str | Metric, ks: list[int], options: Options
) -> list[Request]:
    if isinstance(text, Metric):
        found, params, label, at = text, dict[str, Any](), None, None
    elif isinstance(text, str):
        found, params, label, at = read_string(text)
    else:
        own = "; a function of your own becomes a metric by @rd.metric" if callable(text) else ""
        raise OptionError(
            f"metric {text!r} is {kind_of(text)}; expected a string such as 'ndcg@10', or a "
            f"Metric{own}"
        )
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
                    f"{found.name} has several columns ({', '.join(found.outputs)}) and takes no "
                    "own name"
                )
            if not isinstance(own, str) or own in ("", "n_true", "n_pred"):
                raise OptionError(
                    f"own name {own!r} of metric {text!r}; expected a name of no other result "
                    "column"
                )
            request = Request(found, request.params, k, own, own_column=own if alone else None)
        requests.append(request)
    return requests


def read_string(text: str) -> tuple[Metric, dict[str, Any], str, str | None]:
    """Return the metric of a string, its parameters, the string without the cut-off, and the
    cut-off."""
    match_ = _STRING.fullmatch(text)
    if match_ is None:
        several = (
            "; pass several metrics as a list, and several cut-offs in ⟦+k=⟧" if "," in text else ""
        )
        raise OptionError(
            f"metric string {text!r} is not of the form 'name', 'name@k' or "
            f"'name(parameter=value)@k'{several}"
        )
    name, inside, at = match_.groups()
    found = find(name)
    params = _parse_parameters(found, text, inside or "")
    given = ",".join(part.replace(" ", "") for part in (inside or "").split(",") if part.strip())
    return found, params, written(name) + (f"({given})" if given else ""), at


def _parse_parameters(found: Metric, text: str, inside: str) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in _BETWEEN.split(inside))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name or not value:
            raise OptionError(
                f"metric string {text!r}: {part!r} is not of the form parameter=value"
            )
        if name in params:
            raise OptionError(f"metric string {text!r} gives {name!r} twice")
        params[name] = value if value in found.choices(name) else _literal(value)
    return params


def _literal(text: str) -> Any:
    words = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text.strip("'\"")


# ------------------------------------------------------------------------------------------
# The direction in which a metric is better, by the name of its column. Experiments know nothing
# else of metrics.


# Sums over the recommended items: a list that was not shown adds 0 to them, although a larger sum
# is not always better.
_SUMS = frozenset({"hits", "dcg", "tp", "fp", "aclt", "shown", "clicked", "bought"})


class Direction(NamedTuple):
    """The direction and the bounds of a metric; each is None where the metric has none.

    `counts` says that the metric is a count or a sum over the recommended items, which is 0 for an
    empty list.
    """

    better: MetricDirection
    bounds: Bounds
    counts: bool


def request_of(text: str) -> Request | None:
    """Return the request of a metric string with all its parameters; None if it is none of a known
    metric."""
    try:
        found, params, _, at = read_string(text)
        return found.request(
            params, int(at) if at is not None and at.isdecimal() else None, Options()
        )
    except OptionError:
        return None


def direction_of(column: str) -> Direction | None:
    """Return the direction of the metric of a column such as "first_rank@10"; None if it is of no
    known metric."""
    name = re.split("[@(]", column)[0]
    metric = METRICS.get(name)
    if metric is None:
        named = (one for one in METRICS.values() if name in one.outputs or name in one.aliases)
        metric = next(named, None)
    if metric is None:
        return None
    bounds, better = metric.stated(column)
    return Direction(better, bounds, name in _SUMS)

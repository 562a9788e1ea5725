"""The arguments of `evaluate` beside frames, metrics and k, for `evaluate` itself, for files and for engines.

Contract: the signature and the docstring of each of these functions follow from the records of the side tables and of
the options.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ..inputs.door import through_the_door
from ..inputs.options import DESCRIPTION, CallArguments, parameters
from ..matching.side_tables.records import SIDE_TABLES, SideTableArguments
from ..metrics.call import Call, Carry
from ..metrics.strings import parse


class EvaluateArguments(CallArguments, SideTableArguments, total=False):
    """Side tables, `item_by`, `carry` and the shared options as keyword arguments. Side tables may be engine frames."""

    item_by: str | None
    carry: Carry


METRIC_ARGUMENTS = """\
metrics : str, Metric, list of them, or mapping of own names to them
    Metrics such as "ndcg@10", "ndcg" (at every `k`) or "mapr(normalizer=achievable)@20".
k : int or list of int, default 10
    Cut-offs of the metrics whose string has none."""

OTHER_ARGUMENTS = """\
item_by : str, optional
    Column of `items` with the groups of each item. The summary then also holds each accuracy metric within each
    group: the metric of the same lists, with only those rows of `true` whose item is in the group. The population
    follows from these rows too. In rows about all items the column is null. An item of several groups (`A|B`)
    counts in each of them.
carry : str, list of str or mapping, optional
    Columns of `pred` to copy into `per_user`, between the key and `n_true`, such as the time and the variant of a
    visit. A column must be constant within each list, unless a mapping such as `{"time": "min"}` says how to reduce
    it: "first" and "last" by rank, "min" or "max". It keeps its dtype and is null for lists that `pred` does not
    have."""

EngineFunction = TypeVar("EngineFunction", bound=Callable[..., Any])


def takes_evaluate_arguments(function: EngineFunction, engine: str = "", **texts: str) -> EngineFunction:
    """Show the arguments in the signature and the docstring of a function that takes them as `**arguments`.

    `engine` is the name of an engine, whose frames may be side tables too. `texts` replace further words in braces.
    """
    signature, by_name = inspect.signature(function), inspect.Parameter.KEYWORD_ONLY
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    hints: dict[str, Any] = {**dict.fromkeys(SIDE_TABLES, "Any"), "item_by": "str | None", "carry": "Carry"}
    more = [inspect.Parameter(name, by_name, default=None, annotation=hint) for name, hint in hints.items()]
    function = through_the_door(function)
    function.__signature__ = signature.replace(parameters=[*own, *more, *parameters()])  # type: ignore[attr-defined]
    frame = f"DataFrame (of pandas or {engine})" if engine else "DataFrame"
    sides = "".join(
        f"{name} : {one.kind.replace('DataFrame', frame)}, optional\n    {one.meaning}\n"
        for name, one in SIDE_TABLES.items()
    )
    words = {"metrics": METRIC_ARGUMENTS, "side_tables": sides + OTHER_ARGUMENTS, "options": DESCRIPTION, **texts}
    text = inspect.getdoc(function) or ""
    for word, meaning in words.items():
        text = text.replace(f"{{{word}}}", meaning)
    function.__doc__ = text
    return function


def call_of(function: Callable[..., Any], metrics: Any, k: Any, arguments: Any, true: Any) -> Call:
    """Check the arguments of a function that takes `EvaluateArguments`, and return the call."""
    return Call.from_arguments(function, arguments, true, partial(parse, metrics, k))

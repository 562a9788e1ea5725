"""`evaluate`: from two frames and the names of metrics to an `Evaluation` with two tidy tables.

Files and engines take the same arguments beside frames, metrics and k. The signature and the
docstring of each of these functions follow from the records of the side tables and of the options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, Unpack

from ..inputs.door import takes_options
from ..inputs.options import CallArguments
from ..matching.side_tables.records import SIDE_TABLES, SideTableArguments
from ..metrics.call import Call, Carry
from ..metrics.metric import Metric
from ..metrics.strings import parse
from .finish import finish
from .part import Part, measure
from .result import Evaluation


class EvaluateArguments(CallArguments, SideTableArguments, total=False):
    """Side tables, `item_by`, `carry` and the shared options as keyword arguments. Side tables may
    be engine frames."""

    item_by: str | None
    carry: Carry


METRIC_ARGUMENTS = """\
metrics : str, Metric, list of them, or mapping of own names to them
    Metrics such as "ndcg@10", "ndcg" (at every `k`) or "mapr(normalizer=achievable)@20".
k : int or list of int, default 10
    Cut-offs of the metrics whose string has none."""

OTHER_ARGUMENTS = """\
item_by : str, optional
    Column of `items` with the groups of each item. The summary then also holds each accuracy metric
    within each group: the metric of the same lists, with only those rows of `true` whose item is in
    the group. The population follows from these rows too. In rows about all items the column is
    null. An item of several groups (`A|B`) counts in each of them.
carry : str, list of str or mapping, optional
    Columns of `pred` to copy into `per_user`, between the key and `n_true`, such as the time and
    the variant of a visit. A column must be constant within each list, unless a mapping such as
    `{"time": "min"}` says how to reduce it: "first" and "last" by rank, "min" or "max". It keeps
    its dtype and is null for lists that `pred` does not have."""

EngineFunction = TypeVar("EngineFunction", bound=Callable[..., Any])


def takes_evaluate_arguments(
    function: EngineFunction, engine: str = "", **texts: str
) -> EngineFunction:
    """Show the arguments in the signature and the docstring of a function that takes them as
    `**arguments`.

    `engine` is the name of an engine, whose frames may be side tables too. `texts` stand where the
    docstring has their names.
    """
    frame = f"DataFrame (of pandas or {engine})" if engine else "DataFrame"
    sides = "".join(
        f"{name} : {one.kind.replace('DataFrame', frame)}, optional\n    {one.meaning}\n"
        for name, one in SIDE_TABLES.items()
    )
    return takes_options(
        function,
        more={**dict.fromkeys(SIDE_TABLES, "Any"), "item_by": "str | None", "carry": "Carry"},
        texts={"metrics": METRIC_ARGUMENTS, "side_tables": sides + OTHER_ARGUMENTS, **texts},
    )


def call_of(function: Callable[..., Any], metrics: Any, k: Any, arguments: Any, true: Any) -> Call:
    """Check the arguments of a function that takes `EvaluateArguments`, and return the call."""
    return Call.from_arguments(function, arguments, true, partial(parse, metrics, k))


@takes_evaluate_arguments
def evaluate(
    true: Any,
    pred: Any,
    metrics: str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric],
    k: int | Sequence[int] = 10,
    **arguments: Unpack[EvaluateArguments],
) -> Evaluation:
    """Evaluate recommendations: one row per list and one row per metric.

    Parameters
    ----------
    true : DataFrame, mapping or Arrow stream
        One row per (list key, item) that is relevant or judged. It may be None if no metric needs
        it.
    pred : DataFrame, mapping or Arrow stream
        One row per (list key, item) that was recommended, with a score, a rank, or in row order.
    {metrics}
    {side_tables}
    {options}

    Returns
    -------
    Evaluation
        `.per_user` (one row per list of the population and `by` value), `.summary` (one row per
        `by` value, metric and k; metrics of exposure stand here alone), `.spec`.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError,
    UndefinedMetricError
        If no correct number can be computed from the input; the message names the argument, the
        column, what was found and what was expected.

    Examples
    --------
    >>> import recdf as rd
    >>> true = {"ann": ["a", "b"], "bob": ["c"]}
    >>> pred = {"ann": ["a", "x", "b"], "bob": ["x", "y", "z"]}
    >>> result = rd.evaluate(true, pred, ["hitrate", "recall"], k=[1, 3])
    >>> result.per_user
      user_id  n_true  n_pred  hitrate@1  hitrate@3  recall@1  recall@3
    0     ann       2       3        1.0        1.0       0.5       1.0
    1     bob       1       3        0.0        0.0       0.0       0.0
    >>> result.summary[["metric", "k", "value", "n"]]
        metric  k  value  n
    0  hitrate  1   0.50  2
    1  hitrate  3   0.50  2
    2   recall  1   0.25  2
    3   recall  3   0.50  2
    """
    call = call_of(evaluate, metrics, k, arguments, true)
    return finish(call, measure(call, Part(true, pred)))

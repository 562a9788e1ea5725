"""`evaluate`: from two frames and the names of metrics to an `Evaluation` with two tidy tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from ..inputs.door import takes_options
from ..inputs.options import CallArguments
from ..matching.side_tables.given import Given
from ..metrics.call import Call
from ..metrics.metric import Metric
from ..metrics.strings import parse
from .carry import Carry, carry_rules
from .finish import finish
from .part import Part, measure
from .result import Evaluation

__all__ = ["evaluate"]


@takes_options
def evaluate(
    true: Any,
    pred: Any,
    metrics: str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric],
    k: int | Sequence[int] = 10,
    *,
    items: Any = None,
    log: Any = None,
    aspects: Any = None,
    features: Any = None,
    base: Any = None,
    popular: Any = None,
    item_by: str | None = None,
    carry: Carry = None,
    **options: Unpack[CallArguments],
) -> Evaluation:
    """Evaluate recommendations: one row per list and one row per metric.

    Parameters
    ----------
    true : DataFrame, mapping or Arrow stream
        One row per (list key, item) that is relevant or judged. It may be None if no metric needs it.
    pred : DataFrame, mapping or Arrow stream
        One row per (list key, item) that was recommended, with a score, a rank, or in row order.
    metrics : str, Metric, list of them, or mapping of own names to them
        Metrics such as "ndcg@10", "ndcg" (at every `k`) or "mapr(normalizer=achievable)@20".
    k : int or list of int, default 10
        Cut-offs of the metrics whose string has none.
    items : DataFrame, list, Series or Index, optional
        Catalogue: one row per item that could have been shown; with `value_col` also the items' values.
    log : DataFrame, mapping or Arrow stream, optional
        Past interactions, one row per (user, item), with those columns of the list key that it has.
    aspects : mapping or DataFrame, optional
        User -> list of item sets; or one row per (user, aspect, item); or per (aspect, item), for all users.
    features : str, list of str, DataFrame, Series, mapping or callable, optional
        What items are compared by: columns of `items`, or a frame indexed by item, or
        a similarity of two arrays of positions in `items`.
    base : DataFrame, mapping or Arrow stream, optional
        A baseline's recommendations, in the columns of `pred`.
    popular : list, Series, Index or DataFrame, optional
        Items that everybody knows.
    item_by : str, optional
        Column of `items` with the groups of each item. The summary then also holds each accuracy metric within each
        group: the metric of the same lists, with only those rows of `true` whose item is in the group. The population
        follows from these rows too. In rows about all items the column is null. An item of several groups (`A|B`)
        counts in each of them.
    carry : str, list of str or mapping, optional
        Columns of `pred` to copy into `per_user`, between the key and `n_true`, such as the time and the variant of a
        visit. A column must be constant within each list, unless a mapping such as `{"time": "min"}` says how to reduce
        it: "first" and "last" by rank, "min" or "max". It keeps its dtype and is null for lists that `pred` does not
        have.
    {options}

    Returns
    -------
    Evaluation
        `.per_user` (one row per list of the population and `by` value), `.summary` (one row per `by` value,
        metric and k; metrics of exposure stand here alone), `.spec`.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError, UndefinedMetricError
        If no correct number can be computed from the input; the message names the argument, the column, what was
        found and what was expected.

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
    given = Given(items=items, log=log, aspects=aspects, features=features, base=base, popular=popular)
    call = Call.of(evaluate, options, given)
    requests = parse(metrics, k, call.options)
    call = call.asking(requests, true, item_by)
    call = replace(call, carry=carry_rules(carry, call.options, call.columns))
    return finish(call, measure(call, Part(true, pred)))

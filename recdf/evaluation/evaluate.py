"""`evaluate`: from two frames and the names of metrics to an `Evaluation` with two tidy tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from ..metrics.metric import Metric
from .evaluate_arguments import EvaluateArguments, call_of, takes_evaluate_arguments
from .finish import finish
from .part import Part, measure
from .result import Evaluation


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
        One row per (list key, item) that is relevant or judged. It may be None if no metric needs it.
    pred : DataFrame, mapping or Arrow stream
        One row per (list key, item) that was recommended, with a score, a rank, or in row order.
    {metrics}
    {side_tables}
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
    call = call_of(evaluate, metrics, k, arguments, true)
    return finish(call, measure(call, Part(true, pred)))

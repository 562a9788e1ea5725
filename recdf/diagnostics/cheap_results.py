"""`with_cheap_labels`: one result from few human labels and many cheap ones, for comparisons and the leaderboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import OptionError
from ..evaluation.result import Evaluation
from ..evaluation.summary import summarize
from ..experiments.compare.cheap_labels import with_cheap_values

JOINED = "cheap_labels"  # in the spec of such a result


def refuse_joined_labels(role: str, spec: Mapping[str, Any]) -> None:
    """Raise for a result whose values have a meaning in their mean alone."""
    if JOINED in spec:
        raise OptionError(
            f"{role} joins human and cheap labels: its values of lists mean nothing, only their means do; pass "
            "the result of one kind of labels, or use rd.compare_models", argument=role,
        )  # fmt: skip


def with_cheap_labels(human: Evaluation, cheap: Evaluation) -> Evaluation:
    """Return one result whose means and intervals use both kinds of labels.

    The value of a list becomes λ(1 + n/N)·f, and for the n lists that people judged also (n + N)/n times Y − λf around
    its mean: numbers without a meaning of their own, whose mean, and its variance, are those that
    `prediction_powered` finds. `compare_models` and `leaderboard` take them. `gate`, `diff` and `report` refuse them:
    a gate relies on the bounds of a metric, which these numbers leave, and the others show values of lists.

    Parameters
    ----------
    human, cheap : Evaluation
        The same recommendations evaluated on human labels and on cheap ones, which have the lists of `human` and more.

    Returns
    -------
    Evaluation
        With the lists of `cheap`. The spec says under "cheap_labels" how many lists people judged.

    Raises
    ------
    OptionError
        The results have other models, keys or metrics, or metrics without a value for each list.
    DataError
        As `prediction_powered` does.

    Notes
    -----
    Use it from some hundred judged lists on: the tests that follow count n + N lists, and with few judged ones the
    intervals of `prediction_powered`, with n − 2 degrees of freedom, are the right ones. Medians and other statistics
    than the mean have no meaning here.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> cheap = rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
    >>> people = rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model", users=shop.true["user_id"].unique()[:300])
    >>> both = rd.diagnostics.with_cheap_labels(people, cheap)
    >>> both.summary[["model", "value", "n"]].round(3)
            model  value     n
    0         knn  0.185  1537
    1  popularity  0.139  1537
    2      random  0.011  1537
    """
    specs: list[dict[str, Any]] = [human.spec, cheap.spec]
    for name in ("user_col", "by", "metrics"):
        if specs[0][name] != specs[1][name]:
            raise OptionError(f"human and cheap differ in {name}: {specs[0][name]} and {specs[1][name]}")
    by, names = list(human.spec["by"]), list(human.spec["metrics"])
    if len(by) > 1:
        raise OptionError(f"the results tell models apart by {by}; expected one column")
    if missing := [name for name in names if name not in human.per_user.columns]:
        raise OptionError(f"{missing} have no value for each list; leave them out")
    keys = list(human.spec["user_col"])
    rows = with_cheap_values(human.per_user, cheap.per_user, names, keys, by[0] if by else "model")
    spec = {**cheap.spec, JOINED: {"n_human": len(human.per_user), "n": len(rows)}}
    rows.attrs["recdf"] = spec
    return Evaluation(rows, summarize(rows), spec)

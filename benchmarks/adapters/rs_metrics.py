"""rs_metrics."""

from __future__ import annotations

from typing import Any

from .frames import ranked
from .record import SIX, Adapter, Means, Tables, Values


def rs_metrics_lists(true: Any, pred: Any) -> tuple[dict[Any, list[Any]], dict[Any, list[Any]]]:
    """Its functions take frames too, but would turn them into these lists for each metric and k."""
    from rs_metrics.helpers import pandas_to_dict

    return pandas_to_dict(true), pandas_to_dict(ranked(pred))


def rs_metrics_six(true: Any, pred: Any, ks: list[int]) -> Means:
    from rs_metrics import metrics

    relevant, shown = rs_metrics_lists(true, pred)
    return {
        f"{name}@{k}": float(getattr(metrics, name)(relevant, shown, k=k))
        for k in ks
        for name in SIX
    }


def rs_metrics_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    from rs_metrics import metrics

    relevant, shown = rs_metrics_lists(true, pred)
    values = {
        f"{name}@{k}": dict(
            zip(
                relevant,
                getattr(metrics, name)(relevant, shown, k=k, apply_mean=False),
                strict=True,
            )
        )
        for k in ks
        for name in SIX
    }
    return values, rs_metrics_six(true, pred, ks)


def rs_metrics_beyond(tables: Tables, ks: list[int]) -> tuple[Values, Means]:
    from rs_metrics import metrics

    pred, log = ranked(tables.pred), tables.log
    by_category = tables.items.groupby("category")["item_id"].agg(set).tolist()
    aspects = dict.fromkeys(tables.true["user_id"].unique(), by_category)
    shown = tables.true[
        tables.true["user_id"].isin(pred["user_id"])
    ]  # a list without items fails in a_ndcg
    means = {}
    for k in ks:
        means |= {
            f"coverage@{k}": metrics.coverage(tables.items["item_id"], pred, k=k),
            f"popularity@{k}": metrics.popularity(log, pred, k=k),
            f"surprisal@{k}": metrics.surprisal(log, pred, k=k),
            f"a_ndcg[shown users]@{k}": metrics.a_ndcg(shown, pred, aspects, k=k),
        }
    return {}, {name: float(value) for name, value in means.items()}


ADAPTERS = {
    "rs_metrics": Adapter(
        "rs_metrics", rs_metrics_accuracy, rs_metrics_six, rs_metrics_beyond, module="rs_metrics"
    ),
}

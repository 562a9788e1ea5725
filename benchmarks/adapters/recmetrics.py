"""recmetrics: lists of lists, one of each kind for every user of the truth."""

from __future__ import annotations

from typing import Any

from .frames import module_of, ranked
from .record import Adapter, Means, Values


def recmetrics_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    metrics = module_of("recmetrics", "metrics.py")

    relevant = true.groupby("user_id")["item_id"].agg(list)
    shown = ranked(pred).groupby("user_id")["item_id"].agg(list)
    lists = [shown.get(user, []) for user in relevant.index]
    return {}, {f"mapr[mark]@{k}": float(metrics.mark(relevant.tolist(), lists, k=k)) for k in ks}


ADAPTERS = {"recmetrics": Adapter("recmetrics", recmetrics_accuracy, module="recmetrics")}

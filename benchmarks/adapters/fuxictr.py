"""FuxiCTR: the rows of a user with their labels; its functions are called for a group at a time, as
it does itself."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from .frames import mean, module_of, ranked, with_relevance
from .record import Adapter, Means, Values


def fuxictr_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    metrics = module_of("fuxictr", "metrics.py")
    rows = (
        ranked(pred)
        .merge(with_relevance(true), on=["user_id", "item_id"], how="left")
        .fillna({"relevance": 0})
    )
    values: Values = defaultdict(dict)
    weighted = []
    for user, group in rows.groupby("user_id"):
        label, score = (group["relevance"] > 0).astype(int).to_numpy(), group["score"].to_numpy()
        if 0 < label.sum() < len(label):
            values["auc"][user] = metrics.avgAUC(label, score)[0]
            weighted.append(metrics.gAUC(label, score))
        values["mrr"][user] = metrics.MRR(label, score)
        for k in ks:
            values[f"ndcg@{k}"][user] = metrics.NDCG(k)(group["relevance"].to_numpy(), score)
    return dict(values), mean(values) | {
        "auc[gAUC]": sum(a for a, _ in weighted) / sum(n for _, n in weighted)
    }


ADAPTERS = {"fuxictr": Adapter("fuxictr", fuxictr_accuracy, judged=True)}

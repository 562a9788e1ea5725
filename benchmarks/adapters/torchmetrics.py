"""TorchMetrics: a query is the rows of a user with their labels; a query without a relevant row
counts 0."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from .frames import mean, ranked, with_relevance
from .record import Adapter, Means, Values


def torchmetrics_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    import torch
    from torchmetrics.functional import retrieval

    rows = (
        ranked(pred)
        .merge(with_relevance(true), on=["user_id", "item_id"], how="left")
        .fillna({"relevance": 0})
    )
    own = {
        "precision": retrieval.retrieval_precision,
        "recall": retrieval.retrieval_recall,
        "hitrate": retrieval.retrieval_hit_rate,
        "mapr": retrieval.retrieval_average_precision,
        "mrr": retrieval.retrieval_reciprocal_rank,
        "ndcg": retrieval.retrieval_normalized_dcg,
        "fallout": retrieval.retrieval_fall_out,
    }
    values: Values = defaultdict(dict)
    for user, query in rows.groupby("user_id"):
        scores = torch.tensor(query["score"].to_numpy(), dtype=torch.float64)
        gain = torch.tensor(query["relevance"].to_numpy(), dtype=torch.int64)
        for name, function in own.items():
            label = gain if name == "ndcg" else (gain > 0).int()
            for k in ks:
                values[f"{name}@{k}"][user] = float(function(scores, label, top_k=k))
        values["rprecision"][user] = float(
            retrieval.retrieval_r_precision(scores, (gain > 0).int())
        )
        values["auc"][user] = float(retrieval.retrieval_auroc(scores, (gain > 0).int()))
    return dict(values), mean(values)


ADAPTERS = {
    "torchmetrics": Adapter(
        "torchmetrics", torchmetrics_accuracy, judged=True, module="torchmetrics"
    )
}

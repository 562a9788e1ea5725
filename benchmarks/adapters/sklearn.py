"""scikit-learn."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from .frames import mean, ranked, with_relevance
from .record import Adapter, Means, Values


def sklearn_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    """scikit-learn scores a list of candidates: here the recommended items with their gains, 0 for
    a miss."""
    from sklearn.metrics import average_precision_score, dcg_score, ndcg_score, roc_auc_score

    judged = ranked(pred).merge(with_relevance(true), on=["user_id", "item_id"], how="left")
    judged["relevance"] = judged["relevance"].fillna(0)
    values: Values = defaultdict(dict)
    for user, rows in judged.groupby("user_id"):
        gains, scores = rows["relevance"].to_numpy(float), rows["score"].to_numpy()
        if len(rows) > 1:  # ndcg_score refuses a single document
            for k in ks:
                values[f"ndcg@{k}"][user] = ndcg_score([gains], [scores], k=k)
                values[f"ndcg[ignore_ties=True]@{k}"][user] = ndcg_score(
                    [gains], [scores], k=k, ignore_ties=True
                )
                values[f"dcg@{k}"][user] = dcg_score([gains], [scores], k=k)
        if 0 < (gains > 0).sum() < len(rows):
            values["auc"][user] = roc_auc_score(gains > 0, scores)
            values["mapr[shown]"][user] = average_precision_score(gains > 0, scores)
    return dict(values), mean(values)


ADAPTERS = {
    "sklearn": Adapter("scikit-learn", sklearn_accuracy, judged=True),
}

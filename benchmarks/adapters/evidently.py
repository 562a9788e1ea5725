"""evidently: the rows of a user with their labels and ranks, in one frame; it gives means, over
users with a label."""

from __future__ import annotations

from typing import Any

from .frames import ranked, with_relevance
from .record import Adapter, Means, Values


def evidently_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    from evidently.legacy import metrics
    from evidently.legacy.pipeline.column_mapping import ColumnMapping
    from evidently.legacy.report import Report

    rows = (
        ranked(pred)
        .merge(with_relevance(true), on=["user_id", "item_id"], how="left")
        .fillna({"relevance": 0})
    )
    rows = rows.rename(columns={"rank": "prediction", "relevance": "target"})
    columns = ColumnMapping(recommendations_type="rank", user_id="user_id", item_id="item_id")
    own = {
        "precision": metrics.PrecisionTopKMetric,
        "recall": metrics.RecallTopKMetric,
        "mapr": metrics.MAPKMetric,
        "f1": metrics.FBetaTopKMetric,
        "ndcg": metrics.NDCGKMetric,
        "mrr": metrics.MRRKMetric,
        "hitrate": metrics.HitRateKMetric,
    }
    means = {}
    for k in ks:
        report = Report(metrics=[metric(k=k) for metric in own.values()])
        report.run(reference_data=None, current_data=rows, column_mapping=columns)
        for name, one in zip(own, report.as_dict()["metrics"], strict=True):
            means[f"{name}@{k}"] = float(list(one["result"]["current"])[k - 1])
    return {}, means


ADAPTERS = {"evidently": Adapter("evidently", evidently_accuracy, judged=True)}

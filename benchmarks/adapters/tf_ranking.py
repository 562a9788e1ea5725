"""TF-Ranking: a list is the rows of a user with their labels; its metrics weigh lists, by their
labels where graded."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from .frames import ranked, with_relevance
from .record import Adapter, Means, Values


def tf_ranking_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    import tensorflow_ranking as tfr

    rows = (
        ranked(pred)
        .merge(with_relevance(true), on=["user_id", "item_id"], how="left")
        .fillna({"relevance": 0})
    )
    lists = {
        user: (list(r["relevance"].astype(float)), list(r["score"]))
        for user, r in rows.groupby("user_id")
    }
    own = tfr.keras.metrics
    found = {
        "ndcg": own.NDCGMetric,
        "dcg": own.DCGMetric,
        "mrr": own.MRRMetric,
        "precision": own.PrecisionMetric,
    }
    found |= {
        "recall": own.RecallMetric,
        "mapr": own.MeanAveragePrecisionMetric,
        "hitrate": own.HitsMetric,
    }
    values: Values = defaultdict(dict)
    means = {}
    for name, metric in found.items():
        for k in ks:
            whole = metric(topn=k)
            for user, (labels, scores) in lists.items():
                one = metric(topn=k)
                one.update_state([labels], [scores])
                whole.update_state([labels], [scores])
                values[f"{name}@{k}"][user] = float(one.result())
            means[f"{name}@{k}"] = float(whole.result())
    for user, (labels, scores) in lists.items():
        for name, metric in {
            "relevant_rank": own.ARPMetric(),
            "pair_accuracy": own.OPAMetric(),
        }.items():
            metric.update_state([labels], [scores])
            values[name][user] = float(metric.result())
    return dict(values), means


ADAPTERS = {"tf_ranking": Adapter("tensorflow-ranking", tf_ranking_accuracy, judged=True)}

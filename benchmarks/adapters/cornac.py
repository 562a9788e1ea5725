"""Cornac: the metrics of one user at a time, for the users that both frames have, as `ranking_eval`
calls them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from .frames import mean, ranked
from .record import Adapter, Means, Values


def cornac_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    from cornac import metrics

    relevant = {user: rows.to_numpy() for user, rows in true.groupby("user_id")["item_id"]}
    own = {
        "ndcg": metrics.NDCG,
        "arhr": metrics.NCRR,
        "hitrate": metrics.HitRatio,
        "precision": metrics.Precision,
    }
    own |= {"recall": metrics.Recall, "f1": metrics.FMeasure}
    values: Values = defaultdict(dict)
    for user, rows in ranked(pred).groupby("user_id"):
        if user not in relevant:
            continue
        items, scores, positive = (
            rows["item_id"].to_numpy(),
            rows["score"].to_numpy(),
            relevant[user],
        )
        for name, metric in own.items():
            for k in ks:
                values[f"{name}@{k}"][user] = metric(k).compute(gt_pos=positive, pd_rank=items)
        hits = np.isin(items, positive)
        if hits.any():  # MRR raises without a hit, and AP and AUC divide by 0
            values["mrr[lists with a hit]"][user] = metrics.MRR().compute(
                gt_pos=positive, pd_rank=items
            )
            values["mapr"][user] = metrics.MAP().compute(
                item_indices=items, pd_scores=scores, gt_pos=positive
            )
            if not hits.all():
                values["auc"][user] = metrics.AUC().compute(
                    item_indices=items, pd_scores=scores, gt_pos=positive
                )
    return dict(values), mean(values)


ADAPTERS = {"cornac": Adapter("cornac", cornac_accuracy, module="cornac.metrics")}

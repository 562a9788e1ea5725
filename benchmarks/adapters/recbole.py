"""RecBole: its metrics take a matrix of hits with one row per user of the truth, all of the same
length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .frames import ranked
from .record import Adapter, Means, Values


def recbole_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    for name, kind in {
        "float": float,
        "bool": bool,
    }.items():  # its metrics read names that numpy has dropped
        setattr(np, name, kind)
    from recbole.evaluator import metrics

    pred, users = ranked(pred), pd.Index(pd.unique(true["user_id"]))
    length = pred.groupby("user_id").size()
    if length.nunique() > 1 or not users.isin(length.index).all():
        raise ValueError(
            "lists are not full: its collector always has the first k of the whole catalogue"
        )
    row = users.get_indexer(pred["user_id"])
    shown, wanted = (
        pd.MultiIndex.from_frame(frame[["user_id", "item_id"]]) for frame in (pred, true)
    )
    hit = shown.isin(wanted)
    matrix = np.zeros((len(users), int(length.iloc[0])), bool)
    matrix[row[row >= 0], pred["rank"].to_numpy()[row >= 0] - 1] = hit[row >= 0]
    n_true = true.groupby("user_id").size().reindex(users).to_numpy()
    config = {"metric_decimal_place": 4, "topk": [k for k in ks if k <= matrix.shape[1]]}
    found = {
        "hitrate": metrics.Hit(config).metric_info(matrix),
        "mrr": metrics.MRR(config).metric_info(matrix),
        "mapr": metrics.MAP(config).metric_info(matrix, n_true),
        "recall": metrics.Recall(config).metric_info(matrix, n_true),
        "ndcg": metrics.NDCG(config).metric_info(matrix, n_true),
        "precision": metrics.Precision(config).metric_info(matrix),
    }
    columns = {
        f"{name}@{k}": each[:, k - 1] for name, each in found.items() for k in config["topk"]
    }
    values = {name: dict(zip(users, column, strict=True)) for name, column in columns.items()}
    return values, {name: float(column.mean()) for name, column in columns.items()}


ADAPTERS = {"recbole": Adapter("recbole", recbole_accuracy, module="recbole.evaluator")}

"""implicit: its evaluation asks a model for recommendations, and gets here those that were
logged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .frames import ranked
from .record import Adapter, Means, Values


class LoggedModel:
    """A model that recommends the logged lists; the end of a short list is padded with an item that
    is none."""

    def __init__(self, ids: np.ndarray) -> None:
        self.ids = ids

    def recommend(
        self, users: Any, user_items: Any, N: int = 10, **_: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        ids = np.full((len(users), N), -1, np.int32)
        found = self.ids[users, :N]
        ids[:, : found.shape[1]] = found
        return ids, np.zeros(ids.shape, np.float32)


def implicit_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    from implicit.evaluation import ranking_metrics_at_k
    from scipy.sparse import csr_matrix

    pred = ranked(pred)
    users = pd.unique(true["user_id"])  # users without recommendations have a list of paddings
    n_items = 1 + int(max(true["item_id"].max(), pred["item_id"].max()))
    row = pd.Index(users).get_indexer(true["user_id"])
    shape = len(users), n_items
    test = csr_matrix((np.ones(len(true), np.float32), (row, true["item_id"].to_numpy())), shape)
    shown = pred[pred["user_id"].isin(users)]
    ids = np.full((len(users), int(shown["rank"].max())), -1, np.int32)
    ids[pd.Index(users).get_indexer(shown["user_id"]), shown["rank"] - 1] = shown["item_id"]
    means = {}
    for k in ks:
        found = ranking_metrics_at_k(
            LoggedModel(ids), csr_matrix(shape), test, K=k, show_progress=False
        )
        names = {"precision": "precision", "map": "mapr", "ndcg": "ndcg", "auc": "auc"}
        means |= {f"{ours}@{k}": float(found[theirs]) for theirs, ours in names.items()}
    return {}, means


ADAPTERS = {"implicit": Adapter("implicit", implicit_accuracy, module="implicit.evaluation")}

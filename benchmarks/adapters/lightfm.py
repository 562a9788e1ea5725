"""LightFM: its evaluation asks a model for the rank of every item of the truth, from 0; here those
of the lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .frames import ranked
from .record import Adapter, Means, Values


class RankedModel:
    """A model with the ranks of logged lists."""

    def __init__(self, ranks: Any) -> None:
        self.ranks = ranks

    def predict_rank(self, *_: Any, **__: Any) -> Any:
        return self.ranks.copy()

    def get_user_representations(self, *_: Any) -> Any: ...


def lightfm_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    from lightfm import evaluation
    from scipy.sparse import csr_matrix

    users = pd.Index(sorted(set(true["user_id"])))
    n_items = 1 + int(max(true["item_id"].max(), pred["item_id"].max()))
    rows = true.merge(
        ranked(pred)[["user_id", "item_id", "rank"]], on=["user_id", "item_id"], how="left"
    )
    at = (users.get_indexer(rows["user_id"]), rows["item_id"].to_numpy())
    shape = len(users), n_items
    test = csr_matrix((np.ones(len(rows), np.float32), at), shape)
    # An item that is not shown has no rank: it is behind any cut-off.
    ranks = csr_matrix(((rows["rank"] - 1).fillna(np.inf).to_numpy(np.float32), at), shape)
    model, values = RankedModel(ranks), {}
    for k in ks:
        values[f"precision@{k}"] = evaluation.precision_at_k(model, test, k=k)
        values[f"recall@{k}"] = evaluation.recall_at_k(model, test, k=k)
    values["mrr"] = evaluation.reciprocal_rank(model, test)
    if rows["rank"].notna().all() and ranked(pred).groupby("user_id").size().eq(n_items).all():
        values["auc"] = evaluation.auc_score(model, test)
    named = {
        name: dict(zip(users, map(float, found), strict=True)) for name, found in values.items()
    }
    return named, {name: float(np.mean(found, dtype=np.float64)) for name, found in values.items()}


ADAPTERS = {"lightfm": Adapter("lightfm", lightfm_accuracy, module="lightfm.evaluation")}

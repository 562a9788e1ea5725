"""recpack."""

from __future__ import annotations

from typing import Any

import pandas as pd

from .record import Adapter, Means, Tables, Values


class RecpackMatrices:
    """Users x items: 1 where relevant, and the scores."""

    def __init__(self, true: Any, pred: Any) -> None:
        from scipy.sparse import csr_matrix

        n_true = len(true)
        users, self.users = pd.factorize(pd.concat([true["user_id"], pred["user_id"]]))
        items, self.items = pd.factorize(pd.concat([true["item_id"], pred["item_id"]]))
        shape = len(self.users), len(self.items)
        self.true = csr_matrix(
            (true["user_id"].notna().to_numpy(float), (users[:n_true], items[:n_true])), shape
        )
        self.pred = csr_matrix((pred["score"].to_numpy(), (users[n_true:], items[n_true:])), shape)

    def measure(self, metric: Any) -> tuple[dict[Any, float], float]:
        metric.calculate(self.true, self.pred)
        if "user_id" not in metric.results:
            return {}, float(metric.value)
        by_user = metric.results.groupby("user_id")["score"].sum()
        return dict(zip(self.users[by_user.index], by_user, strict=True)), float(metric.value)


def recpack_six(true: Any, pred: Any, ks: list[int]) -> Means:
    import recpack.metrics as rp

    own = {
        "precision": rp.PrecisionK,
        "recall": rp.RecallK,
        "ndcg": rp.NDCGK,
        "mrr": rp.ReciprocalRankK,
    }
    matrices = RecpackMatrices(true, pred)
    means = {}
    for name, metric in ((f"{name}@{k}", metric(k)) for k in ks for name, metric in own.items()):
        metric.calculate(matrices.true, matrices.pred)
        means[name] = float(metric.value)
    return means


def recpack_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    import recpack.metrics as rp

    own = {
        "precision": rp.PrecisionK,
        "recall": rp.RecallK,
        "ndcg": rp.NDCGK,
        "mrr": rp.ReciprocalRankK,
    }
    own |= {"recall[calibrated]": rp.CalibratedRecallK, "dcg": rp.DCGK, "hits": rp.HitK}
    matrices = RecpackMatrices(true, pred)
    measured = {
        f"{name}@{k}": matrices.measure(metric(k)) for k in ks for name, metric in own.items()
    }
    return {name: values for name, (values, _) in measured.items()}, {
        name: m for name, (_, m) in measured.items()
    }


def recpack_beyond(tables: Tables, ks: list[int]) -> tuple[Values, Means]:
    import recpack.metrics as rp
    from scipy.sparse import csr_matrix

    matrices = RecpackMatrices(tables.true, tables.pred)
    features = tables.features.set_index("item_id").reindex(matrices.items).fillna(0)
    values, means = {}, {}
    for k in ks:
        diversity = rp.IntraListDiversityK(k)
        diversity.fit(csr_matrix(features.to_numpy(bool)))
        values[f"ild[jaccard]@{k}"], means[f"ild[jaccard]@{k}"] = matrices.measure(diversity)
        means[f"coverage@{k}"] = matrices.measure(rp.CoverageK(k))[1]
    return values, means


ADAPTERS = {
    "recpack": Adapter(
        "recpack", recpack_accuracy, recpack_six, recpack_beyond, module="recpack.metrics"
    ),
}

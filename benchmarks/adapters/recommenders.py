"""Microsoft recommenders."""

from __future__ import annotations

from typing import Any

import pandas as pd

from .frames import mean, top, with_relevance
from .record import Adapter, Means, Tables, Values


def recommenders_means(
    true: Any, pred: Any, calls: dict[str, tuple[str, dict[str, Any]]], ks: list[int]
) -> Means:
    from recommenders.evaluation import python_evaluation as evaluation

    evaluation._get_reciprocal_rank.cache_clear()  # else a second run is answered from memory
    columns = {
        "col_user": "user_id",
        "col_item": "item_id",
        "col_rating": "relevance",
        "col_prediction": "score",
    }
    true, pred = with_relevance(true), pred[["user_id", "item_id", "score"]]
    return {
        f"{name}@{k}": float(getattr(evaluation, function)(true, pred, k=k, **columns, **options))
        for k in ks
        for name, (function, options) in calls.items()
    }


RECOMMENDERS_CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "precision": ("precision_at_k", {}),
    "recall": ("recall_at_k", {}),
    "ndcg": ("ndcg_at_k", {}),
    "mapr": ("map_at_k", {}),
}


def recommenders_six(true: Any, pred: Any, ks: list[int]) -> Means:
    return recommenders_means(true, pred, RECOMMENDERS_CALLS, ks)


def recommenders_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    calls = RECOMMENDERS_CALLS | {
        "mapr[function=map]": ("map", {}),
        "rprecision": ("r_precision_at_k", {}),
        "ndcg[score_type=raw]": ("ndcg_at_k", {"score_type": "raw"}),
        "ndcg[score_type=exp]": ("ndcg_at_k", {"score_type": "exp"}),
    }
    return {}, recommenders_means(true, pred, calls, ks)


def recommenders_beyond(tables: Tables, ks: list[int]) -> tuple[Values, Means]:
    """These functions have no k: they get the first k. They refuse a recommendation that is already
    in the log."""
    from recommenders.evaluation import python_evaluation as evaluation

    columns = {"col_user": "user_id", "col_item": "item_id"}
    vectors = tables.features.set_index("item_id").to_numpy(float)
    features = pd.DataFrame({"item_id": tables.features["item_id"], "features": list(vectors)})
    values, means = {}, {}
    for k in ks:
        reco = top(tables.pred, k)[["user_id", "item_id"]]
        hits = reco.merge(tables.true[["user_id", "item_id"]].assign(relevance=1), how="left")
        hits["relevance"] = hits["relevance"].fillna(0)
        by_vector = {
            "item_sim_measure": "item_feature_vector",
            "item_feature_df": features,
            **columns,
        }
        diversity = evaluation.user_diversity(tables.log, reco, **by_vector)
        serendipity = evaluation.user_serendipity(
            tables.log, hits, col_relevance="relevance", **columns
        )
        values[f"ild@{k}"] = dict(
            zip(diversity["user_id"], diversity["user_diversity"], strict=True)
        )
        values[f"serendipity@{k}"] = dict(
            zip(serendipity["user_id"], serendipity["user_serendipity"], strict=True)
        )
        means[f"surprisal@{k}"] = float(evaluation.novelty(tables.log, reco, **columns))
        means[f"coverage@{k}"] = float(evaluation.catalog_coverage(tables.log, reco, **columns))
        means[f"entropy@{k}"] = float(
            evaluation.distributional_coverage(tables.log, reco, **columns)
        )
    return values, means | mean(values)


ADAPTERS = {
    "recommenders": Adapter(
        "recommenders",
        recommenders_accuracy,
        recommenders_six,
        recommenders_beyond,
        module="recommenders.evaluation.python_evaluation",
    ),
}

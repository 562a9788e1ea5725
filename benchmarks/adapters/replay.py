"""RePlay, on polars and on pandas."""

from __future__ import annotations

from typing import Any

from .record import Adapter, Means, Tables, Values

REPLAY_NAMES = {
    "Precision": "precision",
    "Recall": "recall",
    "NDCG": "ndcg",
    "MAP": "mapr",
    "MRR": "mrr",
    "HitRate": "hitrate",
    "RocAuc": "auc",
    "Coverage": "coverage",
    "Novelty": "unseen",
    "Surprisal": "surprisal",
    "Unexpectedness_base_recommendations": "unexpectedness",
    "CategoricalDiversity": "categories",
}


def replay_call(
    classes: list[str], tables: Tables, ks: list[int], per_user: bool = False
) -> dict[str, Any]:
    import replay.metrics as rp

    mode = {"mode": rp.PerUser()} if per_user else {}
    measure = rp.OfflineMetrics(
        [getattr(rp, name)(ks, **mode) for name in classes],
        query_column="user_id",
        rating_column="score",
        category_column="category",
    )
    answer = measure(tables.pred, tables.true, tables.log, tables.base)
    named = ((key.replace("-PerUser", "").partition("@"), value) for key, value in answer.items())
    return {f"{REPLAY_NAMES[name]}@{k}": value for (name, _, k), value in named}


def replay_six(true: Any, pred: Any, ks: list[int]) -> Means:
    return replay_call(
        ["Precision", "Recall", "NDCG", "MAP", "MRR", "HitRate"], Tables(true, pred), ks
    )


def replay_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    classes, tables = (
        ["Precision", "Recall", "NDCG", "MAP", "MRR", "HitRate", "RocAuc"],
        Tables(true, pred),
    )
    return replay_call(classes, tables, ks, per_user=True), replay_call(classes, tables, ks)


def replay_beyond(tables: Tables, ks: list[int]) -> tuple[Values, Means]:
    classes = ["Novelty", "Surprisal", "Unexpectedness", "CategoricalDiversity"]
    return replay_call(classes, with_category(tables), ks, per_user=True), replay_call(
        [*classes, "Coverage"], with_category(tables), ks
    )


def with_category(tables: Tables) -> Tables:
    if hasattr(tables.pred, "join") and hasattr(tables.pred, "with_columns"):  # polars
        pred = tables.pred.join(tables.items, on="item_id", how="left", maintain_order="left")
    else:
        pred = tables.pred.merge(tables.items, on="item_id", how="left")
    return Tables(tables.true, pred, tables.log, base=tables.base)


def read_polars(path: str, **options: Any) -> Any:
    import polars

    return polars.read_parquet(path, **options)


ADAPTERS = {
    "replay": Adapter(
        "replay-rec",
        replay_accuracy,
        replay_six,
        replay_beyond,
        read=read_polars,
        module="replay.metrics",
    ),
    "replay_pandas": Adapter(
        "replay-rec", replay_accuracy, replay_six, replay_beyond, module="replay.metrics"
    ),
}

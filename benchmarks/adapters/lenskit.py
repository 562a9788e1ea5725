"""LensKit."""

from __future__ import annotations

from typing import Any

import numpy as np

from .frames import ranked
from .record import Adapter, Means, Tables, Values


def lenskit_run(true: Any, pred: Any, metrics: dict[str, Any]) -> tuple[Values, Means]:
    from lenskit.data import ItemListCollection
    from lenskit.metrics import MeasurementCollector

    outputs = ItemListCollection.from_df(
        ranked(pred)[["user_id", "item_id", "score", "rank"]], "user_id"
    )
    test = ItemListCollection.from_df(true, "user_id")
    collector = MeasurementCollector()
    for name, metric in metrics.items():
        collector.add_metric(metric, name)
    run = collector.measure_run(outputs, test)
    values = {
        name: run.list_metrics[name].to_dict() for name in metrics if name in run.list_metrics
    }
    means = {name.removesuffix(".mean"): value for name, value in run.summary_metrics.items()}
    return values, {name: float(value) for name, value in means.items() if name in metrics}


def lenskit_metrics(ks: list[int]) -> dict[str, Any]:
    from lenskit.metrics import NDCG, Hit, Precision, Recall, RecipRank

    own = {"precision": Precision, "recall": Recall, "ndcg": NDCG, "mrr": RecipRank, "hitrate": Hit}
    return {f"{name}@{k}": metric(k) for k in ks for name, metric in own.items()}


def lenskit_map(ks: list[int]) -> dict[str, Any]:
    from lenskit.metrics.ranking import AveragePrecision

    return {f"mapr@{k}": AveragePrecision(k) for k in ks}


def lenskit_six(true: Any, pred: Any, ks: list[int]) -> Means:
    return lenskit_run(true, pred, lenskit_metrics(ks) | lenskit_map(ks))[1]


def lenskit_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    """AveragePrecision gets the users with truth alone: it divides by zero on any other."""
    from lenskit.metrics import DCG, NDCG, RBP, LogRankWeight

    metrics = lenskit_metrics(ks)
    for k in ks:
        metrics |= {f"dcg@{k}": DCG(k), f"rbp@{k}": RBP(k)}
        metrics[f"ndcg[offset=1]@{k}"] = NDCG(k, weight=LogRankWeight(offset=1))
    values, means = lenskit_run(true, pred, metrics)
    known = pred[pred["user_id"].isin(true["user_id"])]
    precise = lenskit_map(ks)
    if "relevance" in true.columns:
        precise |= {f"ndcg[gain=relevance]@{k}": NDCG(k, gain="relevance") for k in ks}
    more_values, more_means = lenskit_run(true, known, precise)
    empty = lenskit_of_empty_lists(set(true["user_id"]) - set(pred["user_id"]), ks)
    return values | more_values | empty, means | more_means


def lenskit_of_empty_lists(users: set[Any], ks: list[int]) -> Values:
    """Average precision of users with truth and an empty list, which a frame of recommendations
    cannot hold."""
    from lenskit.data import ItemList

    nothing, truth = (
        ItemList(item_ids=np.array([], np.int64), ordered=True),
        ItemList(item_ids=np.array([1])),
    )
    return {
        f"mapr[empty list]@{k}": {
            user: lenskit_map([k])[f"mapr@{k}"].measure_list(nothing, truth) for user in users
        }
        for k in ks
    }


def lenskit_beyond(tables: Tables, ks: list[int]) -> tuple[Values, Means]:
    """Gini counts over the catalogue and whatever else is shown: LensKit refuses an item that it
    does not know."""
    from lenskit.data import DatasetBuilder, Vocabulary
    from lenskit.metrics import ILS, Entropy, ExposureGini, ListGini, LogRankWeight

    builder, catalogue = DatasetBuilder(), tables.items["item_id"].tolist()
    builder.add_entities("item", catalogue)
    builder.add_list_attribute(
        "item", "category", catalogue, [[name] for name in tables.items["category"]]
    )
    dataset, items = builder.build(), Vocabulary(sorted({*catalogue, *tables.pred["item_id"]}))
    metrics = {}
    for k in ks:
        metrics |= {
            f"ils[category]@{k}": ILS(dataset, "category", k),
            f"gini@{k}": ListGini(k, items=items),
        }
        metrics[f"category_entropy@{k}"] = Entropy(dataset, "category", k)
        metrics[f"gini[exposure, offset=1]@{k}"] = ExposureGini(
            k, items=items, weight=LogRankWeight(offset=1)
        )
    return lenskit_run(tables.true, tables.pred, metrics)


ADAPTERS = {
    "lenskit": Adapter(
        "lenskit", lenskit_accuracy, lenskit_six, lenskit_beyond, module="lenskit.metrics"
    ),
}

"""RecTools."""

from __future__ import annotations

from typing import Any

from .frames import ranked
from .record import Adapter, Means, Tables, Values


def rectools_metrics(ks: list[int]) -> dict[str, Any]:
    from rectools import metrics as rt

    classes = {
        "precision": rt.Precision,
        "recall": rt.Recall,
        "ndcg": rt.NDCG,
        "mapr": rt.MAP,
        "mrr": rt.MRR,
        "hitrate": rt.HitRate,
    }
    return {f"{name}@{k}": metric(k=k) for k in ks for name, metric in classes.items()}


def rectools_six(true: Any, pred: Any, ks: list[int]) -> Means:
    from rectools.metrics import calc_metrics

    return calc_metrics(rectools_metrics(ks), reco=ranked(pred), interactions=true)


def rectools_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    from rectools import metrics as rt

    chosen = rectools_metrics(ks)
    for k in ks:
        chosen |= {
            f"f1@{k}": rt.F1Beta(k=k),
            f"precision[r_precision=True]@{k}": rt.Precision(k=k, r_precision=True),
            f"mapr[divide_by_k=True]@{k}": rt.MAP(k=k, divide_by_k=True),
            f"ndcg[divide_by_achievable=True]@{k}": rt.NDCG(k=k, divide_by_achievable=True),
            f"pauc@{k}": rt.PartialAUC(k=k),
            f"pap@{k}": rt.PAP(k=k),
        }
    values = {name: metric.calc_per_user(pred, true).to_dict() for name, metric in chosen.items()}
    return values, rt.calc_metrics(chosen, reco=pred, interactions=true)


def rectools_beyond(tables: Tables, ks: list[int]) -> tuple[Values, Means]:
    from rectools import metrics as rt

    true, pred, log = tables.true, tables.pred, tables.log
    catalogue = tables.items["item_id"].unique()
    distance = rt.PairwiseHammingDistanceCalculator(tables.features.set_index("item_id"))
    values, means = {}, {}
    for k in ks:
        values |= {
            f"surprisal@{k}": rt.MeanInvUserFreq(k=k).calc_per_user(pred, log),
            f"popularity@{k}": rt.AvgRecPopularity(k=k).calc_per_user(pred, log),
            f"popularity[normalize=True]@{k}": rt.AvgRecPopularity(
                k=k, normalize=True
            ).calc_per_user(pred, log),
            f"ild[hamming]@{k}": rt.IntraListDiversity(
                k=k, distance_calculator=distance
            ).calc_per_user(pred),
            f"serendipity@{k}": rt.Serendipity(k=k).calc_per_user(pred, true, log, catalogue),
            f"intersection@{k}": rt.Intersection(k=k).calc_per_user(pred, tables.base),
            f"user_coverage@{k}": rt.CoveredUsers(k=k).calc_per_user(pred, true),
            f"accuracy@{k}": rt.Accuracy(k=k).calc_per_user(pred, true, catalogue),
            f"mcc@{k}": rt.MCC(k=k).calc_per_user(pred, true, catalogue),
        }
        means[f"coverage@{k}"] = float(rt.CatalogCoverage(k=k).calc(pred, catalogue))
        means[f"coverage[normalize=True]@{k}"] = rt.CatalogCoverage(k=k, normalize=True).calc(
            pred, catalogue
        )
    means |= {name: float(series.mean()) for name, series in values.items()}
    return {name: series.to_dict() for name, series in values.items()}, means


ADAPTERS = {
    "rectools": Adapter(
        "rectools", rectools_accuracy, rectools_six, rectools_beyond, module="rectools.metrics"
    ),
}

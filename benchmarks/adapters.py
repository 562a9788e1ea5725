"""Measure recommendations with another library, inside that library's own environment.

    python adapters.py measure PEER REQUEST.json ANSWER.json
    python adapters.py time PEER REQUEST.json ANSWER.json

`peers.py` starts it and passes frames as parquet files; it imports numpy, pandas and the one library that it measures,
never `recdf`. Each library is used in the way its documentation shows, with its defaults. A metric is named by the
metric of `recdf` that it is called after, so `ndcg@10` is what the library itself calls NDCG at 10, and an option that
is not the library's default stands in brackets: `ndcg[divide_by_achievable=True]@10`.
Without `@k`, whole lists are read.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import math
import platform
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SIX = ("precision", "recall", "ndcg", "mapr", "mrr", "hitrate")

Values = dict[str, Mapping[Any, float]]  # metric -> user -> value
Means = dict[str, float]  # metric -> the library's own global number


@dataclass
class Tables:
    """The frames of one request: `true` and `pred`, and what the metrics beyond accuracy read."""

    true: Any
    pred: Any
    log: Any = None
    items: Any = None  # item_id, category
    features: Any = None  # item_id and one 0/1 column a feature
    base: Any = None  # recommendations of a baseline


@dataclass(frozen=True)
class Adapter:
    """A library: its distribution, how it reads a frame, and what it computes.

    `six` gives the global numbers of the six benchmark metrics (those that the library has), `accuracy` the values per
    user and the global numbers of every metric it shares with `recdf`, `beyond` the same for metrics that need side
    tables. `judged` tells that a row of `true` with relevance 0 is not relevant to the library. `module` is what a user
    imports; the benchmark imports it before the clock starts.
    """

    distribution: str
    accuracy: Callable[[Any, Any, list[int]], tuple[Values, Means]]
    six: Callable[[Any, Any, list[int]], Means] | None = None
    beyond: Callable[[Tables, list[int]], tuple[Values, Means]] | None = None
    read: Callable[..., Any] = pd.read_parquet
    judged: bool = False
    module: str = ""


def ranked(pred: Any) -> Any:
    """Rows in rank order, with a column `rank`, for the libraries that read the one or the other.

    The benchmark gives scores alone, and the ranks are part of the conversion; rows already in order are not sorted.
    """
    if "rank" in pred.columns:
        return pred.sort_values(["user_id", "rank"], kind="stable")
    scores, starts = pred["score"].to_numpy(), list_starts(pred)
    falling = scores[1:] <= scores[:-1]
    if not (pred["user_id"].is_monotonic_increasing and (falling | starts[1:]).all()):
        pred = pred.sort_values(["user_id", "score"], ascending=[True, False], kind="stable")
        starts = list_starts(pred)
    position, first = np.arange(len(pred)), np.flatnonzero(starts)
    return pred.assign(rank=position - np.repeat(first, np.diff(first, append=len(pred))) + 1)


def list_starts(pred: Any) -> np.ndarray:
    """True for a row whose user is not that of the row before."""
    users = pred["user_id"].to_numpy()
    starts = np.ones(len(users), dtype=bool)
    starts[1:] = users[1:] != users[:-1]
    return starts


def top(pred: Any, k: int) -> Any:
    """The first k of each list, for the metrics that have no k of their own."""
    return pred[pred["rank"] <= k].reset_index(drop=True)


def nested(frame: Any, column: str) -> dict[str, dict[str, float]]:
    """{user: {item: value}} with string ids, each label made once."""
    users, user_labels = pd.factorize(frame["user_id"])
    items, item_labels = pd.factorize(frame["item_id"])
    order = users.argsort(kind="stable")
    labels = item_labels.astype(str).to_numpy(dtype=object)[items[order]].tolist()
    values = frame[column].to_numpy()[order].tolist()
    ends = np.cumsum(np.bincount(users)).tolist()
    starts = [0, *ends[:-1]]
    return {
        user: dict(zip(labels[start:end], values[start:end], strict=True))
        for user, start, end in zip(user_labels.astype(str), starts, ends, strict=True)
    }


def with_relevance(true: Any) -> Any:
    return true if "relevance" in true.columns else true.assign(relevance=1)


def mean(values: Values) -> Means:
    """For libraries that leave the mean to the caller: the plain mean over the users they report."""
    return {name: sum(by_user.values()) / len(by_user) for name, by_user in values.items() if by_user}


# -- RecTools ----------------------------------------------------------------------------------------------------------


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
            f"popularity[normalize=True]@{k}": rt.AvgRecPopularity(k=k, normalize=True).calc_per_user(pred, log),
            f"ild[hamming]@{k}": rt.IntraListDiversity(k=k, distance_calculator=distance).calc_per_user(pred),
            f"serendipity@{k}": rt.Serendipity(k=k).calc_per_user(pred, true, log, catalogue),
            f"intersection@{k}": rt.Intersection(k=k).calc_per_user(pred, tables.base),
            f"user_coverage@{k}": rt.CoveredUsers(k=k).calc_per_user(pred, true),
            f"accuracy@{k}": rt.Accuracy(k=k).calc_per_user(pred, true, catalogue),
            f"mcc@{k}": rt.MCC(k=k).calc_per_user(pred, true, catalogue),
        }
        means[f"coverage@{k}"] = float(rt.CatalogCoverage(k=k).calc(pred, catalogue))
        means[f"coverage[normalize=True]@{k}"] = rt.CatalogCoverage(k=k, normalize=True).calc(pred, catalogue)
    means |= {name: float(series.mean()) for name, series in values.items()}
    return {name: series.to_dict() for name, series in values.items()}, means


# -- RePlay, on polars and on pandas -----------------------------------------------------------------------------------

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


def replay_call(classes: list[str], tables: Tables, ks: list[int], per_user: bool = False) -> dict[str, Any]:
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
    return replay_call(["Precision", "Recall", "NDCG", "MAP", "MRR", "HitRate"], Tables(true, pred), ks)


def replay_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    classes, tables = ["Precision", "Recall", "NDCG", "MAP", "MRR", "HitRate", "RocAuc"], Tables(true, pred)
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


# -- ranx --------------------------------------------------------------------------------------------------------------


def ranx_evaluate(true: Any, pred: Any, names: dict[str, str]) -> tuple[Values, Means]:
    """`make_comparable=True`: without it ranx refuses any user who is in one of the frames only."""
    from ranx import Qrels, Run, evaluate

    columns = {"q_id_col": "user_id", "doc_id_col": "item_id"}
    qrels = Qrels.from_df(ranx_ids(with_relevance(true)), score_col="relevance", **columns)
    run = Run.from_df(ranx_ids(pred), score_col="score", **columns)
    means = evaluate(qrels, run, list(names), make_comparable=True)
    means = means if isinstance(means, dict) else {next(iter(names)): means}
    return {names[m]: dict(scores) for m, scores in run.scores.items()}, {names[m]: float(v) for m, v in means.items()}


def ranx_ids(frame: Any) -> Any:
    """ranx accepts string ids of dtype object alone."""
    return frame.assign(**{name: frame[name].astype(str).astype(object) for name in ("user_id", "item_id")})


def ranx_six(true: Any, pred: Any, ks: list[int]) -> Means:
    own = {"map": "mapr", "hit_rate": "hitrate", **{name: name for name in ("precision", "recall", "ndcg", "mrr")}}
    return ranx_evaluate(true, pred, {f"{m}@{k}": f"{name}@{k}" for k in ks for m, name in own.items()})[1]


def ranx_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    own = {"map": "mapr", "hit_rate": "hitrate", "ndcg_burges": "ndcg[burges]", "dcg_burges": "dcg[burges]"}
    own |= {name: name for name in ("precision", "recall", "f1", "hits", "ndcg", "dcg", "mrr")}
    names = {f"{m}@{k}": f"{name}@{k}" for k in ks for m, name in own.items()}
    names |= {"r-precision": "rprecision", "rbp.80": "rbp[p=0.8]", "bpref": "bpref"}
    return ranx_evaluate(true, pred, names)


# -- trec_eval: pytrec_eval and ir_measures ----------------------------------------------------------------------------


def pytrec_eval_values(true: Any, pred: Any, names: dict[str, str]) -> Values:
    import pytrec_eval

    evaluator = pytrec_eval.RelevanceEvaluator(nested(with_relevance(true), "relevance"), set(names))
    by_user = evaluator.evaluate(nested(pred, "score"))
    return {
        name: {user: row[measure] for user, row in by_user.items()}
        for measure, name in pytrec_eval_answers(names).items()
    }


def pytrec_eval_answers(names: dict[str, str]) -> dict[str, str]:
    """`P.5,10` is asked, `P_5` and `P_10` are answered."""
    answers = {}
    for asked, name in names.items():
        measure, _, cuts = asked.partition(".")
        if measure == "set_F" or not cuts:
            answers[measure] = name
        else:
            answers |= {f"{measure}_{k}": f"{name}@{k}" for k in cuts.split(",")}
    return answers


def pytrec_eval_six(true: Any, pred: Any, ks: list[int]) -> Means:
    cuts = ",".join(map(str, ks))
    cut = {"P": "precision", "recall": "recall", "ndcg_cut": "ndcg", "map_cut": "mapr", "success": "hitrate"}
    names = {f"{measure}.{cuts}": name for measure, name in cut.items()} | {"recip_rank": "mrr"}
    return mean(pytrec_eval_values(true, pred, names))


def pytrec_eval_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    cuts = ",".join(map(str, ks))
    cut = {"P": "precision", "recall": "recall", "ndcg_cut": "ndcg", "map_cut": "mapr", "success": "hitrate"}
    names = {f"{measure}.{cuts}": name for measure, name in cut.items()}
    names |= {"recip_rank": "mrr", "map": "mapr", "ndcg": "ndcg", "Rprec": "rprecision", "bpref": "bpref"}
    names |= {"set_P": "precision[set]", "set_recall": "recall", "set_F": "f1[set]", "num_rel_ret": "hits"}
    values = pytrec_eval_values(true, pred, names)
    return values, mean(values)


def ir_frames(true: Any, pred: Any) -> tuple[Any, Any]:
    names = {"user_id": "query_id", "item_id": "doc_id"}
    texts = {"query_id": str, "doc_id": str}
    qrels = with_relevance(true).rename(columns=names).astype(texts)
    return qrels, pred.rename(columns=names)[["query_id", "doc_id", "score"]].astype(texts)


def ir_values(qrels: Any, run: Any, measures: dict[Any, str]) -> tuple[Values, Means]:
    import ir_measures

    values: Values = {name: {} for name in measures.values()}
    for metric in ir_measures.iter_calc(list(measures), qrels, run):
        values[measures[metric.measure]][metric.query_id] = metric.value
    means = ir_measures.calc_aggregate(list(measures), qrels, run)
    return values, {name: float(means[measure]) for measure, name in measures.items()}


def ir_six(true: Any, pred: Any, ks: list[int]) -> Means:
    import ir_measures as ir

    measures = ir_cut_measures(ks)
    means = ir.calc_aggregate(list(measures), *ir_frames(true, pred))
    return {name: float(means[measure]) for measure, name in measures.items()}


def ir_cut_measures(ks: list[int]) -> dict[Any, str]:
    from ir_measures import AP, RR, P, R, Success, nDCG

    cut = {P: "precision", R: "recall", nDCG: "ndcg", AP: "mapr", RR: "mrr", Success: "hitrate"}
    return {measure @ k: f"{name}@{k}" for k in ks for measure, name in cut.items()}


def ir_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    from ir_measures import AP, ERR, RBP, RR, Bpref, Rprec, SetF, SetP, SetR, nDCG

    qrels, run = ir_frames(true, pred)
    measures = ir_cut_measures(ks)
    if qrels["query_id"].str.isdigit().all():  # gdeval, the program behind these two, reads numbers only
        measures |= {ERR @ k: f"err@{k}" for k in ks}
        measures |= {nDCG(dcg="exp-log2") @ k: f"ndcg[dcg=exp-log2]@{k}" for k in ks}
    measures |= {AP: "mapr", RR: "mrr", nDCG: "ndcg", Rprec: "rprecision", Bpref: "bpref"}
    measures |= {SetP: "precision[set]", SetR: "recall", SetF: "f1[set]", RBP(rel=1, p=0.8): "rbp[p=0.8]"}
    return ir_values(qrels, run, measures)


def ir_beyond(tables: Tables, ks: list[int]) -> tuple[Values, Means]:
    """Aspects are the categories: a relevant item is judged for its category, as a subtopic."""
    from ir_measures import StRecall, alpha_nDCG

    qrels, run = ir_frames(tables.true, tables.pred)
    category = tables.items.set_index(tables.items["item_id"].astype(str))["category"]
    qrels = qrels.assign(iteration=qrels["doc_id"].map(category).astype(str))
    ks = [k for k in ks if k <= 20]  # ndeval knows no deeper cut-off
    measures = {alpha_nDCG(alpha=0.5) @ k: f"a_ndcg@{k}" for k in ks}
    measures |= {StRecall @ k: f"subtopic_recall@{k}" for k in ks}
    return ir_values(qrels, run, measures)


# -- recommenders ------------------------------------------------------------------------------------------------------


def recommenders_means(true: Any, pred: Any, calls: dict[str, tuple[str, dict[str, Any]]], ks: list[int]) -> Means:
    from recommenders.evaluation import python_evaluation as evaluation

    evaluation._get_reciprocal_rank.cache_clear()  # else a second run is answered from memory
    columns = {"col_user": "user_id", "col_item": "item_id", "col_rating": "relevance", "col_prediction": "score"}
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
    """These functions have no k: they get the first k. They refuse a recommendation that is already in the log."""
    from recommenders.evaluation import python_evaluation as evaluation

    columns = {"col_user": "user_id", "col_item": "item_id"}
    vectors = tables.features.set_index("item_id").to_numpy(float)
    features = pd.DataFrame({"item_id": tables.features["item_id"], "features": list(vectors)})
    values, means = {}, {}
    for k in ks:
        reco = top(tables.pred, k)[["user_id", "item_id"]]
        hits = reco.merge(tables.true[["user_id", "item_id"]].assign(relevance=1), how="left")
        hits["relevance"] = hits["relevance"].fillna(0)
        by_vector = {"item_sim_measure": "item_feature_vector", "item_feature_df": features, **columns}
        diversity = evaluation.user_diversity(tables.log, reco, **by_vector)
        serendipity = evaluation.user_serendipity(tables.log, hits, col_relevance="relevance", **columns)
        values[f"ild@{k}"] = dict(zip(diversity["user_id"], diversity["user_diversity"], strict=True))
        values[f"serendipity@{k}"] = dict(zip(serendipity["user_id"], serendipity["user_serendipity"], strict=True))
        means[f"surprisal@{k}"] = float(evaluation.novelty(tables.log, reco, **columns))
        means[f"coverage@{k}"] = float(evaluation.catalog_coverage(tables.log, reco, **columns))
        means[f"entropy@{k}"] = float(evaluation.distributional_coverage(tables.log, reco, **columns))
    return values, means | mean(values)


# -- recpack -----------------------------------------------------------------------------------------------------------


class RecpackMatrices:
    """Users x items: 1 where relevant, and the scores."""

    def __init__(self, true: Any, pred: Any) -> None:
        from scipy.sparse import csr_matrix

        n_true = len(true)
        users, self.users = pd.factorize(pd.concat([true["user_id"], pred["user_id"]]))
        items, self.items = pd.factorize(pd.concat([true["item_id"], pred["item_id"]]))
        shape = len(self.users), len(self.items)
        self.true = csr_matrix((true["user_id"].notna().to_numpy(float), (users[:n_true], items[:n_true])), shape)
        self.pred = csr_matrix((pred["score"].to_numpy(), (users[n_true:], items[n_true:])), shape)

    def measure(self, metric: Any) -> tuple[dict[Any, float], float]:
        metric.calculate(self.true, self.pred)
        if "user_id" not in metric.results:
            return {}, float(metric.value)
        by_user = metric.results.groupby("user_id")["score"].sum()
        return dict(zip(self.users[by_user.index], by_user, strict=True)), float(metric.value)


def recpack_six(true: Any, pred: Any, ks: list[int]) -> Means:
    import recpack.metrics as rp

    own = {"precision": rp.PrecisionK, "recall": rp.RecallK, "ndcg": rp.NDCGK, "mrr": rp.ReciprocalRankK}
    matrices = RecpackMatrices(true, pred)
    means = {}
    for name, metric in ((f"{name}@{k}", metric(k)) for k in ks for name, metric in own.items()):
        metric.calculate(matrices.true, matrices.pred)
        means[name] = float(metric.value)
    return means


def recpack_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    import recpack.metrics as rp

    own = {"precision": rp.PrecisionK, "recall": rp.RecallK, "ndcg": rp.NDCGK, "mrr": rp.ReciprocalRankK}
    own |= {"recall[calibrated]": rp.CalibratedRecallK, "dcg": rp.DCGK, "hits": rp.HitK}
    matrices = RecpackMatrices(true, pred)
    measured = {f"{name}@{k}": matrices.measure(metric(k)) for k in ks for name, metric in own.items()}
    return {name: values for name, (values, _) in measured.items()}, {name: m for name, (_, m) in measured.items()}


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


# -- rs_metrics --------------------------------------------------------------------------------------------------------


def rs_metrics_lists(true: Any, pred: Any) -> tuple[dict[Any, list[Any]], dict[Any, list[Any]]]:
    """Its functions take frames too, but would turn them into these lists for each metric and k."""
    from rs_metrics.helpers import pandas_to_dict

    return pandas_to_dict(true), pandas_to_dict(ranked(pred))


def rs_metrics_six(true: Any, pred: Any, ks: list[int]) -> Means:
    from rs_metrics import metrics

    relevant, shown = rs_metrics_lists(true, pred)
    return {f"{name}@{k}": float(getattr(metrics, name)(relevant, shown, k=k)) for k in ks for name in SIX}


def rs_metrics_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    from rs_metrics import metrics

    relevant, shown = rs_metrics_lists(true, pred)
    values = {
        f"{name}@{k}": dict(zip(relevant, getattr(metrics, name)(relevant, shown, k=k, apply_mean=False), strict=True))
        for k in ks
        for name in SIX
    }
    return values, rs_metrics_six(true, pred, ks)


def rs_metrics_beyond(tables: Tables, ks: list[int]) -> tuple[Values, Means]:
    from rs_metrics import metrics

    pred, log = ranked(tables.pred), tables.log
    by_category = tables.items.groupby("category")["item_id"].agg(set).tolist()
    aspects = dict.fromkeys(tables.true["user_id"].unique(), by_category)
    shown = tables.true[tables.true["user_id"].isin(pred["user_id"])]  # a list without items fails in a_ndcg
    means = {}
    for k in ks:
        means |= {
            f"coverage@{k}": metrics.coverage(tables.items["item_id"], pred, k=k),
            f"popularity@{k}": metrics.popularity(log, pred, k=k),
            f"surprisal@{k}": metrics.surprisal(log, pred, k=k),
            f"a_ndcg[shown users]@{k}": metrics.a_ndcg(shown, pred, aspects, k=k),
        }
    return {}, {name: float(value) for name, value in means.items()}


# -- LensKit -----------------------------------------------------------------------------------------------------------


def lenskit_run(true: Any, pred: Any, metrics: dict[str, Any]) -> tuple[Values, Means]:
    from lenskit.data import ItemListCollection
    from lenskit.metrics import MeasurementCollector

    outputs = ItemListCollection.from_df(ranked(pred)[["user_id", "item_id", "score", "rank"]], "user_id")
    test = ItemListCollection.from_df(true, "user_id")
    collector = MeasurementCollector()
    for name, metric in metrics.items():
        collector.add_metric(metric, name)
    run = collector.measure_run(outputs, test)
    values = {name: run.list_metrics[name].to_dict() for name in metrics if name in run.list_metrics}
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
    """Average precision of users with truth and an empty list, which a frame of recommendations cannot hold."""
    from lenskit.data import ItemList

    nothing, truth = ItemList(item_ids=np.array([], np.int64), ordered=True), ItemList(item_ids=np.array([1]))
    return {
        f"mapr[empty list]@{k}": {user: lenskit_map([k])[f"mapr@{k}"].measure_list(nothing, truth) for user in users}
        for k in ks
    }


def lenskit_beyond(tables: Tables, ks: list[int]) -> tuple[Values, Means]:
    """Gini counts over the catalogue and whatever else is shown: LensKit refuses an item that it does not know."""
    from lenskit.data import DatasetBuilder, Vocabulary
    from lenskit.metrics import ILS, Entropy, ExposureGini, ListGini, LogRankWeight

    builder, catalogue = DatasetBuilder(), tables.items["item_id"].tolist()
    builder.add_entities("item", catalogue)
    builder.add_list_attribute("item", "category", catalogue, [[name] for name in tables.items["category"]])
    dataset, items = builder.build(), Vocabulary(sorted({*catalogue, *tables.pred["item_id"]}))
    metrics = {}
    for k in ks:
        metrics |= {f"ils[category]@{k}": ILS(dataset, "category", k), f"gini@{k}": ListGini(k, items=items)}
        metrics[f"category_entropy@{k}"] = Entropy(dataset, "category", k)
        metrics[f"gini[exposure, offset=1]@{k}"] = ExposureGini(k, items=items, weight=LogRankWeight(offset=1))
    return lenskit_run(tables.true, tables.pred, metrics)


# -- scikit-learn ------------------------------------------------------------------------------------------------------


def sklearn_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    """scikit-learn scores a list of candidates: here the recommended items with their gains, 0 for a miss."""
    from sklearn.metrics import average_precision_score, dcg_score, ndcg_score, roc_auc_score

    judged = ranked(pred).merge(with_relevance(true), on=["user_id", "item_id"], how="left")
    judged["relevance"] = judged["relevance"].fillna(0)
    values: Values = defaultdict(dict)
    for user, rows in judged.groupby("user_id"):
        gains, scores = rows["relevance"].to_numpy(float), rows["score"].to_numpy()
        if len(rows) > 1:  # ndcg_score refuses a single document
            for k in ks:
                values[f"ndcg@{k}"][user] = ndcg_score([gains], [scores], k=k)
                values[f"ndcg[ignore_ties=True]@{k}"][user] = ndcg_score([gains], [scores], k=k, ignore_ties=True)
                values[f"dcg@{k}"][user] = dcg_score([gains], [scores], k=k)
        if 0 < (gains > 0).sum() < len(rows):
            values["auc"][user] = roc_auc_score(gains > 0, scores)
            values["mapr[shown]"][user] = average_precision_score(gains > 0, scores)
    return dict(values), mean(values)


# -- the table, and the two commands -----------------------------------------------------------------------------------

ADAPTERS = {
    "rectools": Adapter("rectools", rectools_accuracy, rectools_six, rectools_beyond, module="rectools.metrics"),
    "replay": Adapter(
        "replay-rec", replay_accuracy, replay_six, replay_beyond, read=read_polars, module="replay.metrics"
    ),
    "replay_pandas": Adapter("replay-rec", replay_accuracy, replay_six, replay_beyond, module="replay.metrics"),
    "ranx": Adapter("ranx", ranx_accuracy, ranx_six, judged=True, module="ranx"),
    "pytrec_eval": Adapter(
        "pytrec_eval-terrier", pytrec_eval_accuracy, pytrec_eval_six, judged=True, module="pytrec_eval"
    ),
    "ir_measures": Adapter("ir_measures", ir_accuracy, ir_six, ir_beyond, judged=True, module="ir_measures"),
    "recommenders": Adapter(
        "recommenders",
        recommenders_accuracy,
        recommenders_six,
        recommenders_beyond,
        module="recommenders.evaluation.python_evaluation",
    ),
    "recpack": Adapter("recpack", recpack_accuracy, recpack_six, recpack_beyond, module="recpack.metrics"),
    "rs_metrics": Adapter("rs_metrics", rs_metrics_accuracy, rs_metrics_six, rs_metrics_beyond, module="rs_metrics"),
    "lenskit": Adapter("lenskit", lenskit_accuracy, lenskit_six, lenskit_beyond, module="lenskit.metrics"),
    "sklearn": Adapter("scikit-learn", sklearn_accuracy, judged=True),
}


def versions(adapter: Adapter) -> dict[str, str]:
    found = {"library": f"{adapter.distribution} {importlib.metadata.version(adapter.distribution)}"}
    found["python"] = platform.python_version()
    for name in ("pandas", "numpy", "polars"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def measure(adapter: Adapter, request: dict[str, Any]) -> dict[str, Any]:
    """Every frame of the request: {frame: {accuracy, beyond}}, an error as text where the library raises one."""
    answer: dict[str, Any] = {}
    for name, files in request["frames"].items():
        relevant = files.pop("relevant", files["true"])
        if not adapter.judged:
            files["true"] = relevant
        tables = Tables(**{key: adapter.read(path) for key, path in files.items()})
        answer[name] = {"accuracy": attempt(adapter.accuracy, tables.true, tables.pred, request["k"])}
        if tables.log is not None and adapter.beyond is not None:
            answer[name]["beyond"] = attempt(adapter.beyond, tables, request["k"])
    return answer


def attempt(function: Callable[..., tuple[Values, Means]], *arguments: Any) -> dict[str, Any]:
    try:
        values, means = function(*arguments)
    except Exception as error:  # the library's own error is an answer too
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"per_user": {name: plain(by_user) for name, by_user in values.items()}, "mean": plain(means)}


def plain(values: Mapping[Any, float]) -> dict[str, float]:
    """JSON-safe: string keys; NaN stays NaN."""
    return {str(key): float(value) if value is not None else math.nan for key, value in values.items()}


def benchmark(adapter: Adapter, request: dict[str, Any]) -> dict[str, Any]:
    """Seconds from loaded frames to numbers, each repetition, and the peak memory over the loaded frames.

    `pred` comes without its column `rank`: every library starts from the scores. Importing the library is timed apart.
    """
    if adapter.six is None:
        raise SystemExit(f"{adapter.distribution} has no benchmark")
    start = time.perf_counter()
    importlib.import_module(adapter.module)
    importing = time.perf_counter() - start
    true = adapter.read(request["true"], columns=["user_id", "item_id"])
    pred = adapter.read(request["pred"], columns=["user_id", "item_id", "score"])
    before = memory("VmRSS")
    reset_peak()
    seconds, processor = [], []
    for _ in range(request["repeat"]):
        start, start_of_processor = time.perf_counter(), time.process_time()
        means = adapter.six(true, pred, request["k"])
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - start_of_processor)
    peak = round(memory("VmHWM") - before)
    times = {"seconds": seconds, "processor_seconds": processor, "import_seconds": importing}
    return {**times, "peak_mb": peak, "mean": plain(means)}


def memory(label: str) -> float:
    """A line of /proc/self/status in MB (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(label):
            return int(line.split()[1]) / 1024
    return math.nan


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def main() -> None:
    command, peer, request_path, answer_path = sys.argv[1:]
    warnings.simplefilter("ignore")  # the libraries' own deprecations
    adapter, request = ADAPTERS[peer], json.loads(Path(request_path).read_text())
    answer = measure(adapter, request) if command == "measure" else benchmark(adapter, request)
    found = {"versions": versions(adapter), "judged": adapter.judged, "answer": answer}
    Path(answer_path).write_text(json.dumps(found))


if __name__ == "__main__":
    main()

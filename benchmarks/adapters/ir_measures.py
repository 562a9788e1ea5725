"""trec_eval, by ir_measures."""

from __future__ import annotations

from typing import Any

from .frames import with_relevance
from .record import Adapter, Means, Tables, Values


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
    if (
        qrels["query_id"].str.isdigit().all()
    ):  # gdeval, the program behind these two, reads numbers only
        measures |= {ERR @ k: f"err@{k}" for k in ks}
        measures |= {nDCG(dcg="exp-log2") @ k: f"ndcg[dcg=exp-log2]@{k}" for k in ks}
    measures |= {AP: "mapr", RR: "mrr", nDCG: "ndcg", Rprec: "rprecision", Bpref: "bpref"}
    measures |= {
        SetP: "precision[set]",
        SetR: "recall",
        SetF: "f1[set]",
        RBP(rel=1, p=0.8): "rbp[p=0.8]",
    }
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


ADAPTERS = {
    "ir_measures": Adapter(
        "ir_measures", ir_accuracy, ir_six, ir_beyond, judged=True, module="ir_measures"
    ),
}

"""ranx."""

from __future__ import annotations

from typing import Any

from .frames import with_relevance
from .record import Adapter, Means, Values


def ranx_evaluate(true: Any, pred: Any, names: dict[str, str]) -> tuple[Values, Means]:
    """`make_comparable=True`: without it ranx refuses any user who is in one of the frames only."""
    from ranx import Qrels, Run, evaluate

    columns = {"q_id_col": "user_id", "doc_id_col": "item_id"}
    qrels = Qrels.from_df(ranx_ids(with_relevance(true)), score_col="relevance", **columns)
    run = Run.from_df(ranx_ids(pred), score_col="score", **columns)
    means = evaluate(qrels, run, list(names), make_comparable=True)
    means = means if isinstance(means, dict) else {next(iter(names)): means}
    return {names[m]: dict(scores) for m, scores in run.scores.items()}, {
        names[m]: float(v) for m, v in means.items()
    }


def ranx_ids(frame: Any) -> Any:
    """ranx accepts string ids of dtype object alone."""
    return frame.assign(
        **{name: frame[name].astype(str).astype(object) for name in ("user_id", "item_id")}
    )


def ranx_six(true: Any, pred: Any, ks: list[int]) -> Means:
    own = {
        "map": "mapr",
        "hit_rate": "hitrate",
        **{name: name for name in ("precision", "recall", "ndcg", "mrr")},
    }
    return ranx_evaluate(
        true, pred, {f"{m}@{k}": f"{name}@{k}" for k in ks for m, name in own.items()}
    )[1]


def ranx_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    own = {
        "map": "mapr",
        "hit_rate": "hitrate",
        "ndcg_burges": "ndcg[burges]",
        "dcg_burges": "dcg[burges]",
    }
    own |= {name: name for name in ("precision", "recall", "f1", "hits", "ndcg", "dcg", "mrr")}
    names = {f"{m}@{k}": f"{name}@{k}" for k in ks for m, name in own.items()}
    names |= {"r-precision": "rprecision", "rbp.80": "rbp[p=0.8]", "bpref": "bpref"}
    return ranx_evaluate(true, pred, names)


ADAPTERS = {
    "ranx": Adapter("ranx", ranx_accuracy, ranx_six, judged=True, module="ranx"),
}

"""trec_eval, by pytrec_eval."""

from __future__ import annotations

from typing import Any

from .frames import mean, nested, with_relevance
from .record import Adapter, Means, Values


def pytrec_eval_values(true: Any, pred: Any, names: dict[str, str]) -> Values:
    import pytrec_eval

    evaluator = pytrec_eval.RelevanceEvaluator(
        nested(with_relevance(true), "relevance"), set(names)
    )
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
    cut = {
        "P": "precision",
        "recall": "recall",
        "ndcg_cut": "ndcg",
        "map_cut": "mapr",
        "success": "hitrate",
    }
    names = {f"{measure}.{cuts}": name for measure, name in cut.items()} | {"recip_rank": "mrr"}
    return mean(pytrec_eval_values(true, pred, names))


def pytrec_eval_accuracy(true: Any, pred: Any, ks: list[int]) -> tuple[Values, Means]:
    cuts = ",".join(map(str, ks))
    cut = {
        "P": "precision",
        "recall": "recall",
        "ndcg_cut": "ndcg",
        "map_cut": "mapr",
        "success": "hitrate",
    }
    names = {f"{measure}.{cuts}": name for measure, name in cut.items()}
    names |= {
        "recip_rank": "mrr",
        "map": "mapr",
        "ndcg": "ndcg",
        "Rprec": "rprecision",
        "bpref": "bpref",
    }
    names |= {
        "set_P": "precision[set]",
        "set_recall": "recall",
        "set_F": "f1[set]",
        "num_rel_ret": "hits",
    }
    values = pytrec_eval_values(true, pred, names)
    return values, mean(values)


ADAPTERS = {
    "pytrec_eval": Adapter(
        "pytrec_eval-terrier",
        pytrec_eval_accuracy,
        pytrec_eval_six,
        judged=True,
        module="pytrec_eval",
    ),
}

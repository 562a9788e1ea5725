"""Calls that type checkers must accept, with the types that they must see. A test runs them too."""

from typing import Any, Literal, assert_type

import numpy as np
import pandas as pd

import recdf as rd


def calls() -> None:
    true = pd.DataFrame({"user_id": [1, 2], "item_id": [1, 1], "genre": ["x", "x"]})
    pred = pd.DataFrame(
        {"user_id": [1, 2, 1], "item_id": [1, 3, 1], "score": [1.0, 2.0, 0.5], "model": list("aab")}
    )
    log, aspects, catalogue = (
        true,
        {1: [[1]]},
        pd.DataFrame({"item_id": [1, 3], "genre": ["x", "y"]}),
    )
    one = pred[pred["model"] == "a"]

    assert_type(rd.ndcg(true, one), float)
    assert_type(
        rd.ndcg(true, one, 5, gain="exp2", log_base=3, discount="jk", ties="row", users=[1, 2]),
        float,
    )
    assert_type(rd.ndcg({1: ["a"]}, {1: ["a"]}, k=10, discount=lambda rank: 1 / rank), float)
    assert_type(rd.ndcg.per_user(true, pred, k=10, by="model", relevance_col=None), pd.DataFrame)
    assert_type(rd.ndcg.bounds, tuple[float | None, float | None])
    assert_type(rd.ndcg.better, Literal["larger", "smaller"] | None)
    assert_type(rd.mapr(true, one, normalizer="achievable", like="trec_eval"), float)
    assert_type(rd.a_ndcg(true, one, aspects, 10, 0.5, ideal="even"), float)
    assert_type(rd.coverage([1, 2], one), float)
    assert_type(rd.coverage(true["item_id"], one, k=None), float)
    assert_type(rd.popularity(log, one, share_of="events"), float)
    assert_type(
        rd.serendipity(None, one, relevant=False, log={1: [3]}, features={1: [1.0], 3: [2.0]}),
        float,
    )
    assert_type(rd.confusion(true, one, items=range(9)), dict[str, float])
    assert_type(rd.exposure_share(one, items=catalogue, group_col="genre"), dict[object, float])
    assert_type(
        rd.evaluate(true, pred, ["ndcg", "recall@5"], k=[5, 10], by="model", ties="worst"),
        rd.Evaluation,
    )
    assert_type(rd.evaluate(true, one, {"mine": rd.ndcg}).per_user, pd.DataFrame)
    assert_type(rd.metrics_table(), pd.DataFrame)
    assert_type(rd.METRICS, dict[str, rd.Metric])

    project = rd.Options(user_col="user_id", ties="row", pred_cols={"score": "yhat"})
    assert_type(project.replace(ties="worst", pred_cols=None), rd.Options)
    assert_type(rd.ndcg(true, one, options=project.replace(pred_cols={})), float)
    assert_type(
        rd.evaluate(true, one, "ndcg", options=rd.Options(), true_cols={"user_id": "user_id"}),
        rd.Evaluation,
    )

    @rd.metric
    def share_of_hits(lists: rd.Lists) -> Any:
        """Share of the recommended items that are hits."""
        return lists.n_hits / np.maximum(lists.n_pred, 1)

    @rd.metric(better="smaller", bounds=(0.0, None), aliases=("missed",))
    def misses(lists: rd.Lists, *, kind: Literal["all", "some"] = "all") -> Any:
        """Number of misses."""
        return lists.n_pred - lists.n_hits

    assert_type(misses.per_user(true, one, 5, kind="some"), pd.DataFrame)
    share_of_hits(true, one, k=5)
    rd.evaluate(true, one, [share_of_hits, "misses@3"])

    per_user = rd.evaluate(true, pred, "ndcg", by="model").per_user
    pairs = rd.compare_models(per_user, test="randomization", correction="holm")
    assert_type(pairs, pd.DataFrame)

    assert_type(rd.experiments.adjust_pvalues(pairs), pd.DataFrame)
    mixed = rd.experiments.interleave(one, one, 5, method="optimized", seed=1)
    assert_type(
        rd.experiments.compare_interleaved(mixed, mixed.head(3), credit="binary"), pd.DataFrame
    )
    assert_type(
        rd.experiments.bootstrap_ci(per_user, "ndcg@10", by="model", n_resamples=99), pd.DataFrame
    )
    bandit = pd.DataFrame(
        {
            "item_id": [1, 2],
            "reward": [1.0, 0.0],
            "propensity": 0.5,
            "target_propensity": [0.9, 0.1],
        }
    )
    assert_type(rd.ope.estimate(bandit, cluster=None), pd.DataFrame)
    assert_type(rd.ope.diagnostics(bandit, cluster=None), pd.DataFrame)
    assert_type(rd.logs.from_dict({1: ["a"]}), pd.DataFrame)
    assert_type(rd.diagnostics.hit_table(true, one), pd.DataFrame)

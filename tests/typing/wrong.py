"""Calls that type checkers must refuse: mypy's code of the error stands beside each line."""

import pandas as pd

import recdf as rd


def calls() -> None:
    true = pd.DataFrame({"user_id": [1], "item_id": [1]})
    pred = pd.DataFrame({"user_id": [1], "item_id": [1], "score": [1.0]})

    rd.ndcg(true, pred, kk=10)  # error: call-arg
    rd.ndcg(true, pred, k="10")  # error: arg-type
    rd.ndcg(true)  # error: call-arg
    rd.ndcg(true, pred, ties="foo")  # error: arg-type
    rd.ndcg(true, pred, gain="exp")  # error: arg-type
    rd.ndcg(true, pred, users="everyone")  # error: arg-type
    rd.ndcg(7, pred)  # error: arg-type
    _y: str = rd.ndcg(true, pred)  # error: assignment
    _z: float = rd.ndcg.per_user(true, pred)  # error: assignment
    rd.ndcg.per_user(true, pred, kk=10)  # error: call-arg
    rd.ndcg.bounds = (0.0, 2.0)  # error: misc
    rd.mapr(true, pred, normalizer="reachable")  # error: arg-type
    rd.coverage.per_user([1], pred)  # error: attr-defined
    rd.coverage(true, pred, by=3)  # error: arg-type
    _c: float = rd.confusion(true, pred)  # error: assignment
    rd.evaluate(true, pred, "ndcg", kk=10)  # error: call-arg
    rd.evaluate(true, pred, "ndcg", ties="foo")  # error: arg-type
    rd.check(true, pred, duplicates="first")  # error: arg-type
    rd.compare_models(pred, correction="holmm")  # error: arg-type
    rd.compare_variants(pred, "ndcg@10", control="A", correction="holmm")  # error: arg-type
    rd.compare_variants(pred, "ndcg@10", control="A", test="wilcoxon")  # error: arg-type
    rd.compare_variants(pred, "ndcg@10", control="A", alternative="two_sided")  # error: arg-type
    rd.compare_variants(pred, "ndcg@10", control="A", test="proportions")  # error: arg-type
    rd.compare_variants(pred, "ndcg@10", control="A", relative="delta")  # error: arg-type
    rd.experiments.compare_variants_from_moments(
        pred,
        control="A",
        covariates=7,  # error: arg-type
    )
    rd.compare_models(pred, test="ttest")  # error: arg-type
    rd.join_experiment(pred, pred, missing="zeros")  # error: arg-type
    rd.experiments.roll_up(pred, how="median")  # error: arg-type
    rd.experiments.bootstrap_ci(pred, "ndcg@10", n_resamples="many")  # error: arg-type
    rd.ndgc(true, pred)  # error: attr-defined
    rd.ope.estmate(pred)  # error: attr-defined
    rd.ope.estimate(pred, estimators=7)  # error: arg-type
    rd.experiments.compare_model(pred)  # error: attr-defined
    rd.diagnostics.hit_tabel(true, pred)  # error: attr-defined
    rd.logs.from_impression(pred)  # error: attr-defined
    rd.Options(user_column="x")  # error: call-arg
    rd.ndcg(true, pred, options={"user_col": "x"})  # error: arg-type
    rd.metric(better="bigger")  # error: call-overload
    rd.metric(bound=(0, 1))  # error: call-overload

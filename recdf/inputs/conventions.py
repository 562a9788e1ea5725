"""Conventions: what other libraries mean by a metric's name, as plain data.

Contract: a `Convention` holds defaults of options and of metric parameters. `like=` applies them,
and options that are given explicitly take precedence. Nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pandas as pd

from .constraints import NONE, Constraint, either, one_of


@dataclass(frozen=True)
class Convention:
    """Rules of one library.

    Attributes
    ----------
    name, library : str
        Name for `like=`; library and version that it was compared with.
    rules : str
        The rules in words.
    order : {"rank", "score", "row"}
        Which column orders `pred` when neither `score_col` nor `rank_col` is given: one named
        `rank`, else `score`; one named `score`, else `rank`; or row order.
    score_bits : {64, 32}
        With 32, scores of `pred` that are equal as 32-bit floats are equal.
    not_judged : {"raise", "keep"}
        Whether a null or negative relevance is an error, or an item of the pool that nobody judged.
    options : mapping
        Defaults of the shared options, such as {"users": "pred"}.
    metrics : mapping
        Metric → defaults of its parameters, for each metric that the library has.
    undefined : mapping
        Metric → "n_true" or "n_pred": it has no value for a list where that is 0, so the mean skips
        the list.
    differs : mapping
        Metric (or "*") → what cannot be reproduced.

    Examples
    --------
    >>> import recdf as rd
    >>> ours = rd.Convention("ours", metrics={"precision": {"divisor": "shown"}})
    >>> rd.precision({"u": ["a"]}, {"u": ["a"]}, k=10, like=ours)
    1.0
    """

    name: str
    library: str = ""
    rules: str = ""
    order: Literal["rank", "score", "row"] = "rank"
    score_bits: Literal[64, 32] = 64
    not_judged: Literal["raise", "keep"] = "raise"
    options: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    undefined: Mapping[str, Literal["n_true", "n_pred"]] = field(default_factory=dict)
    differs: Mapping[str, str] = field(default_factory=dict)


# Parameters that several libraries have.
BINARY: dict[str, Any] = {"gain": "binary"}
OF_SHOWN: dict[str, Any] = {"divisor": "shown"}
ACHIEVABLE: dict[str, Any] = {"normalizer": "achievable"}


def _metrics(names: str = "", **others: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return metrics that a library computes as recdf does by default, and others with their
    parameters."""
    return {name: {} for name in names.split()} | others


CONVENTIONS: dict[str, Convention] = {
    record.name: record
    for record in (
        Convention(
            "trec_eval",
            "trec_eval 9, by pytrec_eval-terrier 0.5.11",
            "The defaults of recdf, ordered by score in 32 bits: larger item id first among "
            "equal scores. A list without relevant items has the value 0 and counts in the "
            "mean. A negative relevance says not judged.",
            order="score",
            score_bits=32,
            not_judged="keep",
            options={"undefined": "zero"},
            metrics=_metrics(
                "hitrate hits precision recall rprecision mapr mrr ndcg bpref infap "
                "normalized_gain utility",
                rbp={"p": 0.9},
                rbp_residual={"p": 0.9, "beyond": "unjudged"},
                f1=OF_SHOWN,
                iprecision={"rounding": "trec9"},
                pair_accuracy={"within": "judged"},
            ),
            differs={
                "*": "pytrec_eval reports only users with recommendations; recdf, like trec_eval "
                "-c, all users of true.",
                "rbp": "trec_eval 10 scales gains above 1 by bounds that it reads before it sets "
                "them.",
                "pair_accuracy": "Its prefs_simp puts the smaller of equally scored ids first.",
            },
        ),
        Convention(
            "ranx",
            "ranx 0.3.21",
            "Score order, row order among equal scores; linear gains. A list without "
            "relevant items has the value 0 and counts in the mean.",
            order="score",
            options={"ties": "row", "undefined": "zero"},
            metrics=_metrics(
                "hitrate hits precision recall f1 rprecision mapr mrr ndcg dcg rbp bpref",
                iprecision={"rounding": "trec9"},
            ),
            differs={
                "*": "In lists of more than 15 items its sort is not stable: equal scores stand in "
                "no defined order.",
                "rbp": "ranx also takes gains above 1.",
                "bpref": "ranx gives NaN without judged items that are not relevant.",
            },
        ),
        Convention(
            "rectools",
            "RecTools 0.19.0",
            "Rank order; binary; NDCG divides by the gain of k relevant items, however few "
            "there are; a list has k − TP false positives, however short it is. Its metrics "
            "beyond accuracy, of lists alone, are means over "
            'the users of pred: pass users="pred" for these.',
            options={"ties": "row"},
            metrics=_metrics(
                "hitrate precision recall f1 mapr mrr pauc pap surprisal sufficient unrepeated "
                "overlap user_coverage",
                ndcg={**BINARY, "ideal": "k"},
                accuracy={"length": "k"},
                mcc={"length": "k"},
                popularity={"share_of": "events"},
                ild={"similarity": "hamming"},
                coverage={"normalize": False},
                serendipity={"of": "rank"},
            ),
            differs={
                "*": "RecTools takes ranks as they are, gaps included; recdf ranks anew, so gaps "
                "close up.",
                "accuracy": "RecTools counts below 0 where the catalogue is too small for k ranks; "
                "recdf has no value.",
                "mcc": "RecTools gives 0 where a factor under the root is 0; recdf leaves it "
                "undefined.",
                "popularity": "RecTools has it so with normalize=True and counts interactions "
                "without.",
                "ild": "RecTools counts positions, ours times the number of features, and gives 0 "
                "to one item.",
            },
        ),
        Convention(
            "replay",
            "RePlay 0.22.0",
            "Score order, larger item id first among equal scores; binary; MAP divides by "
            "min(k, n_true).",
            order="score",
            metrics=_metrics(
                "hitrate precision recall mrr unseen categories coverage",
                mapr=ACHIEVABLE,
                ndcg=BINARY,
                auc={"tied": "ranked", "one_class": "share"},
                surprisal={"normalize": True, "divisor": "k"},
                unexpectedness={"divisor": "k"},
            ),
            differs={
                "categories": "RePlay leaves equal scores in no defined order.",
                "unseen": "RePlay gives 1 to a user without recommendations; recdf leaves it "
                "undefined.",
                "unexpectedness": "RePlay gives 0 to a user without recommendations or baseline; "
                "recdf gives 1.",
            },
        ),
        Convention(
            "recommenders",
            "recommenders 1.2.1",
            "Score order, row order among equal scores; binary; MAP divides by min(k, "
            "n_true); means over the users of both frames, of NDCG over the users of true.",
            order="score",
            options={"ties": "row"},
            metrics=_metrics(
                "precision recall ild entropy coverage rprecision pooled_rmse pooled_mae pooled_r2 "
                "pooled_explained_variance pooled_auc pooled_log_loss",
                mapr=ACHIEVABLE,
                ndcg=BINARY,
                serendipity={"of": "similarity"},
                surprisal={"share_of": "events"},
            ),
            undefined={"precision": "n_pred", "recall": "n_pred", "mapr": "n_pred"},
            differs={
                "rprecision": "Its mean leaves out users by a rule of its own.",
                "surprisal": "recommenders takes the mean over rows, "
                'rd.summarize(weight_by="rows"), where an item '
                "that is not in the log counts 0.",
                "coverage": "recommenders also counts items that are not in the log, so that it "
                "may pass 1.",
            },
        ),
        Convention(
            "rs_metrics",
            "rs_metrics 0.6.0",
            "Row order; binary; precision divides by the items shown.",
            order="row",
            metrics=_metrics(
                "hitrate recall mapr mrr popularity surprisal coverage",
                precision=OF_SHOWN,
                ndcg=BINARY,
            ),
            differs={
                "precision": "A user without recommendations makes its mean NaN; recdf skips that "
                "user and counts it."
            },
        ),
        Convention(
            "lenskit",
            "LensKit 2026.4.0",
            "Rank order; binary; the lists of pred; precision divides by the items shown, "
            "recall by min(k, n_true), average precision by min(n_true, items shown); "
            "discount 1 to rank 2, then 1/log2(rank).",
            options={"users": "pred", "ties": "row"},
            metrics=_metrics(
                "hitrate mrr ils gini least_promoted pooled_rmse pooled_mae",
                precision=OF_SHOWN,
                recall={"divisor": "achievable"},
                mapr={"normalizer": "shown"},
                ndcg={**BINARY, "discount": "jk"},
                dcg={**BINARY, "discount": "jk"},
                rbp={**BINARY, "p": 0.85},
                rbo={"p": 0.85},
                category_entropy={"smoothing": 1e-06},
                popularity={"unit": "rank"},
            ),
            undefined={
                "hitrate": "n_true",
                "mrr": "n_true",
                "dcg": "n_true",
                "rbp": "n_true",
                "mapr": "n_pred",
            },
            differs={
                "*": "LensKit also takes negative gains; recdf refuses them.",
                "mapr": "LensKit raises for a list without relevant items; recdf leaves it "
                "undefined.",
                "ils": "LensKit gives 1 to a list of one item; recdf leaves it undefined.",
            },
        ),
        Convention(
            "recpack",
            "recpack 0.3.6",
            "Score order; binary; users of true.",
            order="score",
            metrics=_metrics(
                "hits precision recall mrr coverage",
                ndcg=BINARY,
                dcg=BINARY,
                ild={"similarity": "jaccard"},
                percentile_rank={"pooled": True},
            ),
            differs={
                "percentile_rank": "recpack gives 100 times the number.",
                "*": "Equal scores stand in no defined order, and a score of 0 is not a "
                "recommendation.",
            },
        ),
        Convention(
            "sklearn",
            "scikit-learn 1.9.1",
            "ndcg_score on a scored candidate list: equal scores share their mean gain; the "
            "ideal is the candidate list itself, re-sorted.",
            order="score",
            options={"users": "pred"},
            metrics=_metrics(
                "auc pooled_rmse pooled_mae pooled_mse pooled_r2 pooled_explained_variance "
                "pooled_log_loss pooled_brier pooled_auc",
                ndcg={"ideal": "listed", "tied": "averaged"},
                dcg={"tied": "averaged"},
                mapr={"normalizer": "hits", "tied": "worst"},
                pair_accuracy={**BINARY, "tied": "wrong"},
                relevant_rank={"of": "last", "tied": "worst"},
            ),
            differs={
                "*": "Only a list of candidates is seen: relevant items that are not among them do "
                "not count.",
                "pair_accuracy": "label_ranking_loss is 1 less this.",
                "mapr": "average_precision_score takes the steps of the curve, at which ties share "
                "a rank.",
            },
        ),
        Convention(
            "implicit",
            "implicit 0.7.3",
            "Rank order; binary; users of true. Precision is one ratio of sums over all "
            "users; average precision divides by min(k, n_true), the area under the curve is "
            "that of the whole catalogue.",
            metrics=_metrics(
                precision={"divisor": "achievable", "pooled": True},
                mapr=ACHIEVABLE,
                ndcg=BINARY,
                auc={"within": "catalogue"},
            ),
            differs={
                "auc": "Its catalogue has every item up to the last column; a short list is filled "
                "with misses."
            },
        ),
        Convention(
            "cornac",
            "Cornac 3.0.1",
            "Score order; binary; the users of both frames; cumulated reciprocal ranks "
            "divide by those of min(n_true, items shown) hits; in average precision and the "
            "area under the curve a tie is a mistake.",
            order="score",
            options={"users": "both"},
            metrics=_metrics(
                "hitrate precision recall f1 mrr pooled_mae pooled_rmse pooled_mse",
                ndcg=BINARY,
                auc={"tied": "wrong"},
                arhr={"normalizer": "achievable_shown"},
                mapr={"normalizer": "hits", "tied": "worst"},
            ),
            differs={
                "mrr": "Cornac raises an error for a list without a hit.",
                "mapr": "Cornac ranks all items that are not of training, where every relevant "
                "item is a hit.",
                "auc": "Cornac ranks all items that are not of training.",
            },
        ),
        Convention(
            "recbole",
            "RecBole 1.2.1",
            "Score order; binary; users of true; average precision divides by min(k, "
            "n_true); lists are full.",
            order="score",
            metrics=_metrics(
                "hitrate precision recall mrr auc coverage gini pooled_mae pooled_rmse "
                "pooled_log_loss pooled_auc",
                mapr=ACHIEVABLE,
                ndcg=BINARY,
                popularity={"unit": "count"},
                aplt={"tail": 0.1},
                entropy={"log_base": "e", "divisor": "items"},
            ),
            differs={
                "*": "RecBole rounds values to 4 decimals.",
                "auc": "GAUC is the mean with the weight of n_true: "
                'rd.summarize(weight_by="relevant").',
            },
        ),
        Convention(
            "elliot",
            "elliot 0.3.1, read and golden numbers",
            "Rank order; users of both frames with a relevant item; NDCG with gains 2^(g − "
            "threshold + 1) − 1.",
            options={"users": "both"},
            metrics=_metrics(
                "hitrate precision recall f1 mrr coverage user_coverage entropy popularity aplt "
                "aclt epc efd pop_reo pop_rsp gini bias_disparity item_gap subtopic_recall "
                "pooled_mae pooled_mse pooled_rmse",
                ndcg={"gain": "exp2"},
            ),
            differs={
                "ndcg": "recdf takes gains as they are, which is its threshold of 1.",
                "gini": "elliot reports 1 − gini · N/(N − 1).",
                "auc": "elliot divides by one more miss than there are, and by min(k, n_true).",
                "mapr": "elliot takes the mean of precision at all ranks, not only at hits.",
            },
        ),
        Convention(
            "evidently",
            "evidently 0.7.23",
            "Rank order; binary; users of pred with a relevant item, which only labelled "
            "rows of pred can be; precision divides by the items shown.",
            options={"users": "pred", "ties": "row"},
            metrics=_metrics(
                "hitrate recall mapr mrr ild gini personalization mar",
                precision=OF_SHOWN,
                f1=OF_SHOWN,
                ndcg={"ideal": "listed"},
                popularity={"unit": "count", "divisor": "known"},
                surprisal={"divisor": "known"},
            ),
            undefined=dict.fromkeys(
                ("hitrate", "precision", "f1", "mrr", "ndcg", "arhr"), "n_true"
            ),
            differs={
                "mapr": "After the end of a list evidently goes on adding the precision of its "
                "last hit, also above 1.",
                "ild": "evidently divides the sum of distances by m, not by the m(m − 1)/2 pairs.",
                "serendipity": "evidently takes 1 − the sum of similarities over the length of the "
                "past, of all items.",
                "gini": "evidently takes the n shown items for the catalogue and divides by n − 1.",
                "personalization": "evidently takes every list to have k items.",
            },
        ),
        Convention(
            "torchmetrics",
            "TorchMetrics 1.9.0",
            "Score order; a query is the labelled rows of a user: relevant items that are "
            "not among them do not count; average precision divides by the hits; equal "
            "scores share their mean gain in NDCG; a query without a relevant row counts 0.",
            order="score",
            options={"users": "pred", "undefined": "zero"},
            metrics=_metrics(
                "hitrate precision recall mrr rprecision fallout auc",
                mapr={"normalizer": "hits"},
                ndcg={"ideal": "listed", "tied": "averaged"},
            ),
            differs={
                "*": "TorchMetrics computes in 32 bits, and counts no hit with a score of 0 or "
                "less in precision, hit rate and average precision.",
                "auc": "It gives 0 to one class, and puts scores outside [0, 1] through a sigmoid, "
                "where they may tie.",
            },
        ),
        Convention(
            "tf_ranking",
            "TF-Ranking 0.5.5",
            "Score order; a list is the labelled rows of a user, relevant from 1 on; gains "
            "2^g − 1; precision divides by the items shown.",
            order="score",
            options={"users": "pred"},
            metrics=_metrics(
                "hitrate recall mapr mrr",
                precision=OF_SHOWN,
                ndcg={"gain": "exp2", "ideal": "listed"},
                dcg={"gain": "exp2"},
                relevant_rank={"of": "mean"},
                pair_accuracy={"tied": "wrong"},
            ),
            differs={
                "*": "TF-Ranking orders equal scores at random, and weighs lists by their labels "
                "where graded."
            },
        ),
        Convention(
            "fuxictr",
            "FuxiCTR 2.3.10",
            "Score order; a list is the labelled rows of a user; gains 2^g − 1.",
            order="score",
            options={"users": "pred"},
            metrics=_metrics(
                "auc pooled_log_loss pooled_auc",
                mrr={"of": "all"},
                ndcg={"gain": "exp2", "ideal": "listed"},
            ),
            differs={
                "auc": "avgAUC is this one, gAUC its mean with the weight of rows: "
                'rd.summarize(weight_by="rows").',
                "ndcg": "A list without a relevant row counts 0 there.",
            },
        ),
        Convention(
            "lightfm",
            "LightFM 1.17",
            "Score order; binary; users of true.",
            order="score",
            metrics=_metrics("precision recall mrr", auc={"within": "catalogue"}),
            differs={"*": "LightFM ranks the whole catalogue, and computes in 32 bits."},
        ),
        Convention(
            "surprise",
            "scikit-surprise 1.1.5",
            "Predicted ratings, all rows together.",
            metrics=_metrics(
                "pooled_mae pooled_mse pooled_rmse", pair_accuracy={"pooled": True, "tied": "wrong"}
            ),
            differs={
                "pair_accuracy": "Surprise divides means over different users: right pairs, and "
                "wrong ones."
            },
        ),
        Convention(
            "recmetrics",
            "recmetrics 0.1.5",
            'Rank order; binary; users of true. Its mark, a "mean average recall", is '
            "average precision.",
            metrics=_metrics("mapr surprisal coverage ils personalization pooled_mse pooled_rmse"),
            differs={"surprisal": "recmetrics divides the sum by n, the length that it is told."},
        ),
        Convention(
            "ndeval",
            "ndeval, by pyndeval 0.0.8",
            "Rank order; binary per aspect; users of true, 0 without a relevant item; α = "
            ".5, depth 20.",
            options={"undefined": "zero"},
            metrics=_metrics("a_ndcg subtopic_recall intent_aware"),
            differs={
                "a_ndcg": "ndeval does not divide at k = 1, where its ERR-IA may be 2; it has six "
                "decimals."
            },
        ),
        Convention(
            "cwl_eval",
            "cwl_eval 1.0.8",
            "Rank order; users of true, 0 without a relevant item.",
            options={"undefined": "zero", "ties": "row"},
            metrics=_metrics("user_model rbp rbp_residual mrr precision"),
            differs={"user_model": "cwl_eval keeps equal scores in row order."},
        ),
    )
}


LIKE = either(
    replace(one_of(tuple(CONVENTIONS)), typed="str"),
    Constraint(
        "a Convention of your own", lambda value: isinstance(value, Convention), "Convention"
    ),
    NONE,
)


def find_convention(like: str | Convention | None, argument: str = "like") -> Convention | None:
    """Return the convention of this name, or the caller's own `Convention` as it is."""
    if like is not None:
        LIKE.check(argument, like)
    return CONVENTIONS[like] if isinstance(like, str) else like


def conventions_table() -> pd.DataFrame:
    """All conventions as a frame, one row per convention and metric that the library has.

    Returns
    -------
    DataFrame
        `convention`, `library`, `metric`, `parameters` (that differ from recdf's defaults),
        `options`, `rules`, `differs` (what cannot be reproduced; empty: nothing).

    Examples
    --------
    >>> import recdf as rd
    >>> table = rd.conventions_table().set_index(["convention", "metric"])
    >>> table.loc[("rectools", "ndcg"), "parameters"]
    'gain=binary, ideal=k'
    """

    def settings(values: Mapping[str, Any]) -> str:
        return ", ".join(f"{name}={value}" for name, value in values.items())

    rows = [
        {
            "convention": record.name,
            "library": record.library,
            "metric": metric,
            "parameters": settings(params),
            "options": settings({"order": record.order, **record.options}),
            "rules": record.rules,
            "differs": " ".join(
                filter(None, (record.differs.get("*", ""), record.differs.get(metric, "")))
            ),
        }
        for record in CONVENTIONS.values()
        for metric, params in record.metrics.items()
    ]
    return pd.DataFrame(rows)

"""The metrics as type checkers see them. Written by `python tests/generated.py`.

At run time the package's `__init__.py` exports what is registered, and `@metric` makes each
function of lists a record that is called with frames. A type checker can follow neither: no generic
type can turn the parameters of a kernel into those of a call, to which frames, `k`, side tables and
the shared options are added.
"""

from collections.abc import Callable
from typing import Literal, Unpack

import numpy as np
import pandas as pd

from ..inputs.constraints import Features, Ids, Rows
from ..inputs.options import CallArguments
from .metric import ListMetric, Metric

__all__ = [
    "a_ndcg",
    "accuracy",
    "aclt",
    "aplt",
    "arhr",
    "arp_ratio",
    "auc",
    "bias_disparity",
    "bought",
    "bpref",
    "brier",
    "calibration",
    "categories",
    "category_entropy",
    "clicked",
    "confusion",
    "conversion",
    "coverage",
    "ctr",
    "dcg",
    "efd",
    "entropy",
    "epc",
    "err",
    "explained_variance",
    "exposure_ratio",
    "exposure_share",
    "f1",
    "fallout",
    "first_rank",
    "gini",
    "hhi",
    "hitrate",
    "hits",
    "ild",
    "ils",
    "infap",
    "intent_aware",
    "iprecision",
    "item_gap",
    "judged",
    "least_promoted",
    "log_loss",
    "mae",
    "mapr",
    "mar",
    "mcc",
    "money_ndcg",
    "money_precision",
    "money_recall",
    "mrr",
    "mse",
    "ndcg",
    "normalized_gain",
    "overlap",
    "pair_accuracy",
    "pap",
    "pauc",
    "percentile_rank",
    "personalization",
    "pooled_auc",
    "pooled_brier",
    "pooled_explained_variance",
    "pooled_log_loss",
    "pooled_mae",
    "pooled_mse",
    "pooled_r2",
    "pooled_rmse",
    "pop_reo",
    "pop_rsp",
    "popularity",
    "precision",
    "r2",
    "rbo",
    "rbp",
    "rbp_residual",
    "recall",
    "relevant_rank",
    "revenue",
    "rmse",
    "rprecision",
    "serendipity",
    "shown",
    "specificity",
    "subtopic_recall",
    "sufficient",
    "surprisal",
    "unexpectedness",
    "unrepeated",
    "unseen",
    "user_coverage",
    "user_model",
    "utility",
]

class _ANdcg(ListMetric):
    """α-nDCG: gain from relevant items, which shrinks as aspects are repeated; larger is better, at least 0."""

    def __call__(
        self, true: Rows, pred: Rows, aspects: Rows, k: int = 10, alpha: float = 0.5, *,
        ideal: Literal["greedy", "even", "aspects", "none"] = "greedy",
        discount: Literal["log", "reciprocal", "geometric"] = "log", p: float = 0.5, aspect_col: str | None = None,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, aspects: Rows, k: int = 10, alpha: float = 0.5, *,
        ideal: Literal["greedy", "even", "aspects", "none"] = "greedy",
        discount: Literal["log", "reciprocal", "geometric"] = "log", p: float = 0.5, aspect_col: str | None = None,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

a_ndcg: _ANdcg

class _Accuracy(ListMetric):
    """Share of the candidates that are rightly recommended or rightly left out; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, length: Literal["shown", "k"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, length: Literal["shown", "k"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

accuracy: _Accuracy

class _Aclt(ListMetric):
    """Number of recommended items that are in the long tail; a count, at least 0."""

    def __call__(
        self, log: Rows, pred: Rows, k: int = 10, *, head: float = 0.8, tail: float | None = None,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, log: Rows, pred: Rows, k: int = 10, *, head: float = 0.8, tail: float | None = None,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

aclt: _Aclt

class _Aplt(ListMetric):
    """Share of the recommended items that are in the long tail; neither direction is better, in [0, 1]."""

    def __call__(
        self, log: Rows, pred: Rows, k: int = 10, *, head: float = 0.8, tail: float | None = None,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, log: Rows, pred: Rows, k: int = 10, *, head: float = 0.8, tail: float | None = None,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

aplt: _Aplt

class _Arhr(ListMetric):
    """Sum of the reciprocal ranks of all hits; larger is better, at least 0 (at most Σ_{i ≤ k} 1/i)."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *,
        normalizer: Literal["none", "achievable", "achievable_shown"] = "none", items: Ids | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *,
        normalizer: Literal["none", "achievable", "achievable_shown"] = "none", items: Ids | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

arhr: _Arhr

class _ArpRatio(ListMetric):
    """Popularity of the recommended items over that of the user's past; above 1 is more popular, at least 0."""

    def __call__(
        self, log: Rows, pred: Rows, k: int = 10, *, share_of: Literal["users", "events"] = "users",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, log: Rows, pred: Rows, k: int = 10, *, share_of: Literal["users", "events"] = "users",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

arp_ratio: _ArpRatio

class _Auc(ListMetric):
    """Share of (hit, miss) pairs in the right order, equal scores counting half; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, within: Literal["shown", "catalogue"] = "shown",
        tied: Literal["half", "ranked", "wrong", "worst"] = "half",
        one_class: Literal["undefined", "share"] = "undefined", max_fpr: float | None = None, items: Ids | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, within: Literal["shown", "catalogue"] = "shown",
        tied: Literal["half", "ranked", "wrong", "worst"] = "half",
        one_class: Literal["undefined", "share"] = "undefined", max_fpr: float | None = None, items: Ids | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

auc: _Auc

class _BiasDisparity(Metric):
    """How much more a group of users is recommended a group of items than it chose; neither direction is better."""

    def __call__(
        self, log: Rows, pred: Rows, k: int = 10, *, user_group_col: str = "group", group_col: str = "group",
        of: Literal["both", "lists", "log"] = "both", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> dict[object, float]: ...

bias_disparity: _BiasDisparity

class _Bought(ListMetric):
    """Number of items in the first k that were bought; larger is better, at least 0. The numerator of `conversion`."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

bought: _Bought

class _Bpref(ListMetric):
    """Preference of judged relevant over judged other items; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

bpref: _Bpref

class _Brier(ListMetric):
    """Brier score, the mean squared error of a list's probabilities; smaller is better, in [0, 1]. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

brier: _Brier

class _Calibration(ListMetric):
    """Divergence of the recommended categories from those of the user's past, in nats; smaller is better, at least
    0."""

    def __call__(
        self, log: Rows, pred: Rows, k: int = 10, *, category_col: str = "category",
        divergence: Literal["kl", "js"] = "kl", smoothing: float = 0.01, separator: str = "|",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, log: Rows, pred: Rows, k: int = 10, *, category_col: str = "category",
        divergence: Literal["kl", "js"] = "kl", smoothing: float = 0.01, separator: str = "|",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

calibration: _Calibration

class _Categories(ListMetric):
    """Number of distinct categories in the first k, over k; larger is better, at least 0 (at most 1 if items have
    one)."""

    def __call__(
        self, pred: Rows, k: int = 10, *, category_col: str = "category",
        divisor: Literal["k", "shown", "catalogue"] = "k", separator: str = "|", items: Ids | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, pred: Rows, k: int = 10, *, category_col: str = "category",
        divisor: Literal["k", "shown", "catalogue"] = "k", separator: str = "|", items: Ids | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

categories: _Categories

class _CategoryEntropy(ListMetric):
    """Shannon entropy of the recommended categories, in bits; larger is better, at least 0."""

    def __call__(
        self, pred: Rows, k: int = 10, *, category_col: str = "category",
        discount: Literal["none", "log", "geometric"] = "none", p: float = 0.85, smoothing: float = 0.0,
        separator: str = "|", items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, pred: Rows, k: int = 10, *, category_col: str = "category",
        discount: Literal["none", "log", "geometric"] = "none", p: float = 0.85, smoothing: float = 0.0,
        separator: str = "|", items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

category_entropy: _CategoryEntropy

class _Clicked(ListMetric):
    """Number of items in the first k that were clicked; larger is better, at least 0. The numerator of `ctr`."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

clicked: _Clicked

class _Confusion(ListMetric):
    """Confusion counts of the first k, in the four columns tp, fp, fn, tn; counts, at least 0."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, length: Literal["shown", "k"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> dict[str, float]: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, length: Literal["shown", "k"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

confusion: _Confusion

class _Conversion(ListMetric):
    """Conversion rate: items bought in the first k over items shown or clicked; larger is better, at least 0."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, per: Literal["shown", "clicked"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, per: Literal["shown", "clicked"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

conversion: _Conversion

class _Coverage(Metric):
    """Share of the catalogue that is recommended to anyone; larger is better, in [0, 1]."""

    def __call__(
        self, items: Ids, pred: Rows, k: int | None = None, *, normalize: bool = True, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

coverage: _Coverage

class _Ctr(ListMetric):
    """Click-through rate, the share of the items shown in the first k that were clicked; larger is better, in [0,
    1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

ctr: _Ctr

class _Dcg(ListMetric):
    """Discounted gain of the list; larger is better within one list, at least 0."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, gain: Literal["linear", "exp2", "binary"] = "linear",
        discount: Literal["log", "jk", "none"] | Callable[[int], float] = "log", log_base: float = 2,
        tied: Literal["ranked", "averaged"] = "ranked", of: Literal["list", "ideal"] = "list",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, gain: Literal["linear", "exp2", "binary"] = "linear",
        discount: Literal["log", "jk", "none"] | Callable[[int], float] = "log", log_base: float = 2,
        tied: Literal["ranked", "averaged"] = "ranked", of: Literal["list", "ideal"] = "list",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

dcg: _Dcg

class _Efd(ListMetric):
    """Expected free discovery, the surprise, in bits, of what is relevant and high up; larger is better, at least 0."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, relevant: bool = True, discount: Literal["log", "none"] = "log",
        items: Ids | None = None, log: Rows | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, relevant: bool = True, discount: Literal["log", "none"] = "log",
        items: Ids | None = None, log: Rows | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

efd: _Efd

class _Entropy(Metric):
    """Shannon entropy of exposure, in bits; larger is better, at least 0."""

    def __call__(
        self, pred: Rows, k: int = 10, *, normalize: bool = False, log_base: float | Literal["e"] = 2,
        divisor: Literal["items"] | None = None, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

entropy: _Entropy

class _Epc(ListMetric):
    """Expected popularity complement, the novelty of what is relevant and high up; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, relevant: bool = True, discount: Literal["log", "none"] = "log",
        items: Ids | None = None, log: Rows | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, relevant: bool = True, discount: Literal["log", "none"] = "log",
        items: Ids | None = None, log: Rows | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

epc: _Epc

class _Err(ListMetric):
    """Expected reciprocal rank of the item that satisfies the user; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, max_gain: float | None = None, items: Ids | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, max_gain: float | None = None, items: Ids | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

err: _Err

class _ExplainedVariance(ListMetric):
    """Share of the variance of a list's ratings that the scores explain; larger is better, at most 1. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

explained_variance: _ExplainedVariance

class _ExposureRatio(Metric):
    """Share of a group in the exposure over its share in the relevant items; 1 is proportional, at least 0."""

    def __call__(
        self, true: Rows | None, pred: Rows, k: int = 10, *, group_col: str = "group",
        discount: Literal["log", "none"] = "log", relative_to: Literal["relevance", "catalogue"] = "relevance",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> dict[object, float]: ...

exposure_ratio: _ExposureRatio

class _ExposureShare(Metric):
    """Share of the rank-discounted exposure that each group of items gets; neither direction is better, in [0, 1]."""

    def __call__(
        self, pred: Rows, k: int = 10, *, group_col: str = "group", discount: Literal["log", "none"] = "log",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> dict[object, float]: ...

exposure_share: _ExposureShare

class _F1(ListMetric):
    """Weighted harmonic mean of precision and recall; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, beta: float = 1.0, divisor: Literal["k", "shown"] = "k",
        combine: Literal["harmonic", "product"] = "harmonic", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, beta: float = 1.0, divisor: Literal["k", "shown"] = "k",
        combine: Literal["harmonic", "product"] = "harmonic", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

f1: _F1

class _Fallout(ListMetric):
    """Share of the irrelevant candidates that are recommended; smaller is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, length: Literal["shown", "k"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, length: Literal["shown", "k"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

fallout: _Fallout

class _FirstRank(ListMetric):
    """Rank of the first hit; smaller is better, at least 1. Undefined without a hit."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

first_rank: _FirstRank

class _Gini(Metric):
    """Gini index of exposure over the catalogue; smaller is better, in [0, 1]."""

    def __call__(
        self, items: Ids, pred: Rows, k: int | None = None, *, discount: Literal["none", "log", "geometric"] = "none",
        p: float = 0.85, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...

gini: _Gini

class _Hhi(Metric):
    """Herfindahl-Hirschman index, the concentration of exposure; smaller is better, in [0, 1]."""

    def __call__(
        self, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

hhi: _Hhi

class _Hitrate(ListMetric):
    """Share of lists with at least one hit in the first k; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

hitrate: _Hitrate

class _Hits(ListMetric):
    """Number of hits in the first k; a count, at least 0."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

hits: _Hits

class _Ild(ListMetric):
    """Intra-list diversity, the mean dissimilarity of two recommended items; larger is better, in [0, 2]."""

    def __call__(
        self, pred: Rows, k: int = 10, *,
        similarity: Literal["cosine", "jaccard", "hamming"] | Callable[[np.ndarray, np.ndarray], np.ndarray] = "cosine",
        separator: str = "|", items: Ids | None = None, features: Features | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, pred: Rows, k: int = 10, *,
        similarity: Literal["cosine", "jaccard", "hamming"] | Callable[[np.ndarray, np.ndarray], np.ndarray] = "cosine",
        separator: str = "|", items: Ids | None = None, features: Features | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

ild: _Ild

class _Ils(ListMetric):
    """Intra-list similarity, the mean similarity of two recommended items; smaller is better, in [−1, 1]."""

    def __call__(
        self, pred: Rows, k: int = 10, *,
        similarity: Literal["cosine", "jaccard", "hamming"] | Callable[[np.ndarray, np.ndarray], np.ndarray] = "cosine",
        separator: str = "|", items: Ids | None = None, features: Features | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, pred: Rows, k: int = 10, *,
        similarity: Literal["cosine", "jaccard", "hamming"] | Callable[[np.ndarray, np.ndarray], np.ndarray] = "cosine",
        separator: str = "|", items: Ids | None = None, features: Features | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

ils: _Ils

class _Infap(ListMetric):
    """Average precision inferred from a pool of which only a sample is judged; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

infap: _Infap

class _IntentAware(ListMetric):
    """Mean over a user's aspects of a metric for each of them; larger is better, in [0, 1], unless the metric says
    so."""

    def __call__(
        self, true: Rows, pred: Rows, aspects: Rows, k: int = 10, *, metric: str | Metric = "precision",
        weights: Literal["equal"] | pd.DataFrame = "equal", aspect_col: str | None = None,
        max_gain: float | None = None, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, aspects: Rows, k: int = 10, *, metric: str | Metric = "precision",
        weights: Literal["equal"] | pd.DataFrame = "equal", aspect_col: str | None = None,
        max_gain: float | None = None, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

intent_aware: _IntentAware

class _Iprecision(ListMetric):
    """Interpolated precision at a level of recall; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, at: float | Literal["11pt"] = 0.0,
        rounding: Literal["up", "trec9", "nearest"] = "up", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, at: float | Literal["11pt"] = 0.0,
        rounding: Literal["up", "trec9", "nearest"] = "up", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

iprecision: _Iprecision

class _ItemGap(Metric):
    """How far apart groups of items are in the gain per recommendation; smaller is better, at least 0."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, group_col: str = "group", stat: Literal["mad", "gap"] = "mad",
        gain: Literal["linear", "exp2", "binary"] = "linear", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

item_gap: _ItemGap

class _Judged(ListMetric):
    """Share of the first k that `true` judges, as relevant or not; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *,
        of: Literal["judged", "unjudged", "nonrelevant", "shown"] = "judged",
        divisor: Literal["shown", "k", "none"] = "shown", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *,
        of: Literal["judged", "unjudged", "nonrelevant", "shown"] = "judged",
        divisor: Literal["shown", "k", "none"] = "shown", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

judged: _Judged

class _LeastPromoted(ListMetric):
    """From how far below k a re-ranking fetched its deepest item; neither direction is better, a count, at least 0."""

    def __call__(
        self, base: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, base: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

least_promoted: _LeastPromoted

class _LogLoss(ListMetric):
    """Log loss (cross-entropy) of the predicted probabilities of a list; smaller is better, at least 0. k is
    ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

log_loss: _LogLoss

class _Mae(ListMetric):
    """Mean absolute error of the predicted ratings of a list; smaller is better, at least 0. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

mae: _Mae

class _Mapr(ListMetric):
    """Average precision at the ranks of the hits (MAP over lists); larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *,
        normalizer: Literal["relevant", "achievable", "hits", "k", "shown"] = "relevant",
        transform: Literal["none", "log_odds"] = "none", tied: Literal["ranked", "worst"] = "ranked",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *,
        normalizer: Literal["relevant", "achievable", "hits", "k", "shown"] = "relevant",
        transform: Literal["none", "log_odds"] = "none", tied: Literal["ranked", "worst"] = "ranked",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

mapr: _Mapr

class _Mar(ListMetric):
    """Average recall at the ranks of the hits; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *,
        normalizer: Literal["relevant", "achievable", "hits", "k", "shown"] = "hits", items: Ids | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *,
        normalizer: Literal["relevant", "achievable", "hits", "k", "shown"] = "hits", items: Ids | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

mar: _Mar

class _Mcc(ListMetric):
    """Matthews correlation between being recommended and being relevant; larger is better, in [−1, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, length: Literal["shown", "k"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, length: Literal["shown", "k"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

mcc: _Mcc

class _MoneyNdcg(ListMetric):
    """NDCG whose gain is the value for which an item was bought; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, negative: Literal["error", "clip"] = "error",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, negative: Literal["error", "clip"] = "error",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

money_ndcg: _MoneyNdcg

class _MoneyPrecision(ListMetric):
    """Share of the value of the first k items that belongs to hits; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, negative: Literal["error", "clip"] = "error",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, negative: Literal["error", "clip"] = "error",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

money_precision: _MoneyPrecision

class _MoneyRecall(ListMetric):
    """Value of the hits over the value of all that was bought; larger is better, at least 0."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, negative: Literal["error", "clip"] = "error",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, negative: Literal["error", "clip"] = "error",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

money_recall: _MoneyRecall

class _Mrr(ListMetric):
    """Reciprocal rank of the first hit, 0 without one; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, of: Literal["first", "all"] = "first",
        tied: Literal["ranked", "worst"] = "ranked", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, of: Literal["first", "all"] = "first",
        tied: Literal["ranked", "worst"] = "ranked", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

mrr: _Mrr

class _Mse(ListMetric):
    """Mean squared error of the predicted ratings of a list; smaller is better, at least 0. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

mse: _Mse

class _Ndcg(ListMetric):
    """Discounted gain of the list over that of the ideal list; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, gain: Literal["linear", "exp2", "binary"] = "linear",
        discount: Literal["log", "jk", "none"] | Callable[[int], float] = "log", log_base: float = 2,
        ideal: Literal["relevant", "k", "shown", "listed"] = "relevant",
        tied: Literal["ranked", "averaged"] = "ranked", average: Literal["none", "hits", "levels"] = "none",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, gain: Literal["linear", "exp2", "binary"] = "linear",
        discount: Literal["log", "jk", "none"] | Callable[[int], float] = "log", log_base: float = 2,
        ideal: Literal["relevant", "k", "shown", "listed"] = "relevant",
        tied: Literal["ranked", "averaged"] = "ranked", average: Literal["none", "hits", "levels"] = "none",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

ndcg: _Ndcg

class _NormalizedGain(ListMetric):
    """Gain of the hits, less where more gain was possible above; larger is better, in [0, 1]. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, gain: Literal["linear", "exp2", "binary"] = "linear",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, gain: Literal["linear", "exp2", "binary"] = "linear",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

normalized_gain: _NormalizedGain

class _Overlap(ListMetric):
    """Share of the recommended items that a baseline recommends too; neither direction is better, in [0, 1]."""

    def __call__(
        self, base: Rows, pred: Rows, k: int = 10, *, base_k: int | None = None,
        divisor: Literal["shown", "base", "union"] = "shown", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, base: Rows, pred: Rows, k: int = 10, *, base_k: int | None = None,
        divisor: Literal["shown", "base", "union"] = "shown", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

overlap: _Overlap

class _PairAccuracy(ListMetric):
    """Share of the pairs of items with unequal gains whose better item stands higher; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, within: Literal["shown", "judged"] = "shown",
        gain: Literal["linear", "binary"] = "linear", tied: Literal["half", "wrong", "right"] = "half",
        pooled: bool = False, items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, within: Literal["shown", "judged"] = "shown",
        gain: Literal["linear", "binary"] = "linear", tied: Literal["half", "wrong", "right"] = "half",
        pooled: bool = False, items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

pair_accuracy: _PairAccuracy

class _Pap(ListMetric):
    """Area under the ROC curve of the first k hits and k misses; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, insufficient: Literal["ignore", "exclude", "raise"] = "ignore",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, insufficient: Literal["ignore", "exclude", "raise"] = "ignore",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

pap: _Pap

class _Pauc(ListMetric):
    """Area under the ROC curve up to k misses, over the whole list; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, insufficient: Literal["ignore", "exclude", "raise"] = "ignore",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, insufficient: Literal["ignore", "exclude", "raise"] = "ignore",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

pauc: _Pauc

class _PercentileRank(ListMetric):
    """Mean place of the relevant items in the catalogue, 0 for the top; smaller is better, in [0, 1]. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, unshown: Literal["middle", "bottom"] = "middle",
        pooled: bool = False, items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, unshown: Literal["middle", "bottom"] = "middle",
        pooled: bool = False, items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

percentile_rank: _PercentileRank

class _Personalization(Metric):
    """How different the lists of two users are on average, by the items in both; larger is better, in [0, 1]."""

    def __call__(
        self, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

personalization: _Personalization

class _PooledAuc(Metric):
    """Area under the ROC curve of all scores of all lists together; larger is better, in [0, 1]. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

pooled_auc: _PooledAuc

class _PooledBrier(Metric):
    """Brier score of all predicted probabilities together; smaller is better, in [0, 1]. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

pooled_brier: _PooledBrier

class _PooledExplainedVariance(Metric):
    """Share of the variance of all ratings that the scores explain; larger is better, at most 1. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

pooled_explained_variance: _PooledExplainedVariance

class _PooledLogLoss(Metric):
    """Log loss (cross-entropy) of all predicted probabilities together; smaller is better, at least 0. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

pooled_log_loss: _PooledLogLoss

class _PooledMae(Metric):
    """Mean absolute error of all predicted ratings together; smaller is better, at least 0. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

pooled_mae: _PooledMae

class _PooledMse(Metric):
    """Mean squared error of all predicted ratings together; smaller is better, at least 0. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

pooled_mse: _PooledMse

class _PooledR2(Metric):
    """Coefficient of determination of all predicted ratings together; larger is better, at most 1. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

pooled_r2: _PooledR2

class _PooledRmse(Metric):
    """Root mean squared error of all predicted ratings together; smaller is better, at least 0. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

pooled_rmse: _PooledRmse

class _PopReo(Metric):
    """Inequality between groups in the chance that a relevant item is recommended; smaller is better, at least 0."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, group_col: str | None = None, head: float = 0.8,
        items: Ids | None = None, log: Rows | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

pop_reo: _PopReo

class _PopRsp(Metric):
    """Inequality between groups in the chance that an item is recommended; smaller is better, at least 0."""

    def __call__(
        self, log: Rows, pred: Rows, k: int = 10, *, group_col: str | None = None, head: float = 0.8,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...

pop_rsp: _PopRsp

class _Popularity(ListMetric):
    """Mean popularity of the recommended items; neither direction is better, in [0, 1]."""

    def __call__(
        self, log: Rows, pred: Rows, k: int = 10, *, share_of: Literal["users", "events"] = "users",
        unit: Literal["share", "count", "rank"] = "share", divisor: Literal["shown", "known"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, log: Rows, pred: Rows, k: int = 10, *, share_of: Literal["users", "events"] = "users",
        unit: Literal["share", "count", "rank"] = "share", divisor: Literal["shown", "known"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

popularity: _Popularity

class _Precision(ListMetric):
    """Share of the first k that is relevant; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *,
        divisor: Literal["k", "shown", "achievable", "achievable_shown"] = "k", pooled: bool = False,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *,
        divisor: Literal["k", "shown", "achievable", "achievable_shown"] = "k", pooled: bool = False,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

precision: _Precision

class _R2(ListMetric):
    """Coefficient of determination of the predicted ratings of a list; larger is better, at most 1. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

r2: _R2

class _Rbo(ListMetric):
    """Rank-biased overlap, how alike the tops of two rankings are; neither direction is better, in [0, 1]."""

    def __call__(
        self, true: Rows | None, pred: Rows, k: int = 10, *, p: float = 0.9,
        against: Literal["base", "ideal"] = "base", normalize: bool = False,
        unshown: Literal["last", "first"] = "last", items: Ids | None = None, base: Rows | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows | None, pred: Rows, k: int = 10, *, p: float = 0.9,
        against: Literal["base", "ideal"] = "base", normalize: bool = False,
        unshown: Literal["last", "first"] = "last", items: Ids | None = None, base: Rows | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

rbo: _Rbo

class _Rbp(ListMetric):
    """Rank-biased precision: gain for a user who goes on with probability p; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, p: float = 0.8, gain: Literal["linear", "binary"] = "linear",
        normalize: Literal["endless", "achievable"] = "endless", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, p: float = 0.8, gain: Literal["linear", "binary"] = "linear",
        normalize: Literal["endless", "achievable"] = "endless", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

rbp: _Rbp

class _RbpResidual(ListMetric):
    """How much items that nobody judged could add to `rbp`; smaller is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, p: float = 0.8, beyond: Literal["always", "unjudged"] = "always",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, p: float = 0.8, beyond: Literal["always", "unjudged"] = "always",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

rbp_residual: _RbpResidual

class _Recall(ListMetric):
    """Share of the relevant items that are among the first k; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, divisor: Literal["relevant", "achievable"] = "relevant",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, divisor: Literal["relevant", "achievable"] = "relevant",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

recall: _Recall

class _RelevantRank(ListMetric):
    """Rank of the first or last hit, or the mean of all; smaller is better, at least 1. Undefined without a hit."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, of: Literal["first", "last", "mean"] = "first",
        tied: Literal["ranked", "worst"] = "ranked", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, of: Literal["first", "last", "mean"] = "first",
        tied: Literal["ranked", "worst"] = "ranked", items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

relevant_rank: _RelevantRank

class _Revenue(ListMetric):
    """Value of the hits in the first k, in the unit of the value column; larger is better, at least 0."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, negative: Literal["error", "clip"] = "error",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, negative: Literal["error", "clip"] = "error",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

revenue: _Revenue

class _Rmse(ListMetric):
    """Root mean squared error of the predicted ratings of a list; smaller is better, at least 0. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

rmse: _Rmse

class _Rprecision(ListMetric):
    """Precision at the rank that equals the number of relevant items; larger is better, in [0, 1]. k is ignored."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, multiple: float = 1, at_most: int | None = None,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, multiple: float = 1, at_most: int | None = None,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

rprecision: _Rprecision

class _Serendipity(ListMetric):
    """Share of the first k that is relevant, new, unlike the user's past and not popular; larger is better, in [0,
    1]."""

    def __call__(
        self, true: Rows | None, pred: Rows, k: int = 10, *,
        of: Literal["threshold", "rank", "similarity"] = "threshold", threshold: float = 0.7, relevant: bool = True,
        top: int | None = None,
        similarity: Literal["cosine", "jaccard", "hamming", "cooccurrence"] | Callable[..., np.ndarray] = "cosine",
        separator: str = "|", items: Ids | None = None, log: Rows | None = None, features: Features | None = None,
        popular: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows | None, pred: Rows, k: int = 10, *,
        of: Literal["threshold", "rank", "similarity"] = "threshold", threshold: float = 0.7, relevant: bool = True,
        top: int | None = None,
        similarity: Literal["cosine", "jaccard", "hamming", "cooccurrence"] | Callable[..., np.ndarray] = "cosine",
        separator: str = "|", items: Ids | None = None, log: Rows | None = None, features: Features | None = None,
        popular: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

serendipity: _Serendipity

class _Shown(ListMetric):
    """Number of items shown in the first k; a count, at least 0, and the denominator of `ctr`."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

shown: _Shown

class _Specificity(ListMetric):
    """Share of the irrelevant candidates that are not recommended; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, length: Literal["shown", "k"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, length: Literal["shown", "k"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

specificity: _Specificity

class _SubtopicRecall(ListMetric):
    """Share of the aspects of the relevant items that the hits cover; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, aspects: Rows, k: int = 10, *, aspect_col: str | None = None,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, aspects: Rows, k: int = 10, *, aspect_col: str | None = None,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

subtopic_recall: _SubtopicRecall

class _Sufficient(ListMetric):
    """Whether a list has k items; larger is better, in [0, 1]."""

    def __call__(
        self, pred: Rows, k: int = 10, *, deep: bool = False, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, pred: Rows, k: int = 10, *, deep: bool = False, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

sufficient: _Sufficient

class _Surprisal(ListMetric):
    """Mean self-information of the recommended items, in bits; larger is better, at least 0."""

    def __call__(
        self, log: Rows, pred: Rows, k: int = 10, *, share_of: Literal["users", "events"] = "users",
        normalize: bool = False, divisor: Literal["shown", "k", "known"] = "shown", items: Ids | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, log: Rows, pred: Rows, k: int = 10, *, share_of: Literal["users", "events"] = "users",
        normalize: bool = False, divisor: Literal["shown", "k", "known"] = "shown", items: Ids | None = None,
        exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

surprisal: _Surprisal

class _Unexpectedness(ListMetric):
    """Share of the recommended items that a baseline does not recommend; larger is better, in [0, 1]."""

    def __call__(
        self, base: Rows, pred: Rows, k: int = 10, *, divisor: Literal["shown", "k"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, base: Rows, pred: Rows, k: int = 10, *, divisor: Literal["shown", "k"] = "shown",
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

unexpectedness: _Unexpectedness

class _Unrepeated(ListMetric):
    """Whether a list shows no item twice; larger is better, in [0, 1]."""

    def __call__(
        self, pred: Rows, k: int = 10, *, deep: bool = False, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, pred: Rows, k: int = 10, *, deep: bool = False, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

unrepeated: _Unrepeated

class _Unseen(ListMetric):
    """Share of the recommended items that the user has not had; larger is better, in [0, 1]."""

    def __call__(
        self, log: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, log: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

unseen: _Unseen

class _UserCoverage(Metric):
    """Share of the lists of the population with at least one item; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...

user_coverage: _UserCoverage

class _UserModel(ListMetric):
    """Gain per item that a user sees who goes down the list by a model; larger is better, in [0, 1]."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *,
        model: Literal["rbp", "npv", "precision", "sdcg", "insq", "inst", "bpm", "nerr8", "nerr9", "nerr10", "nerr11", "set", "tbg", "umeasure", "weights"] = "rbp",
        measure: Literal["utility", "total", "items", "residual"] = "utility", p: float | None = None,
        rate: float = 0.25, T: float = 1.0, beta: float = 0.5, halflife: float = 224.0, length: float = 1000.0,
        weights: Literal["log", "jk", "none"] | Callable[[int], float] = "log",
        gain: Literal["linear", "binary"] = "linear", max_gain: float | None = None, depth: int = 1000,
        cost_col: str | None = None, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *,
        model: Literal["rbp", "npv", "precision", "sdcg", "insq", "inst", "bpm", "nerr8", "nerr9", "nerr10", "nerr11", "set", "tbg", "umeasure", "weights"] = "rbp",
        measure: Literal["utility", "total", "items", "residual"] = "utility", p: float | None = None,
        rate: float = 0.25, T: float = 1.0, beta: float = 0.5, halflife: float = 224.0, length: float = 1000.0,
        weights: Literal["log", "jk", "none"] | Callable[[int], float] = "log",
        gain: Literal["linear", "binary"] = "linear", max_gain: float | None = None, depth: int = 1000,
        cost_col: str | None = None, items: Ids | None = None, exclude: Rows | None = None,
        **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

user_model: _UserModel

class _Utility(ListMetric):
    """What a list is worth if hits, misses and missed items have prices; larger is better, without bounds."""

    def __call__(
        self, true: Rows, pred: Rows, k: int = 10, *, a: float = 1.0, b: float = -1.0, c: float = 0.0, d: float = 0.0,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> float: ...
    def per_user(
        self, true: Rows, pred: Rows, k: int = 10, *, a: float = 1.0, b: float = -1.0, c: float = 0.0, d: float = 0.0,
        items: Ids | None = None, exclude: Rows | None = None, **options: Unpack[CallArguments],
    ) -> pd.DataFrame: ...

utility: _Utility

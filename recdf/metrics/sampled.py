"""`sampled_values` corrects metrics of one relevant item among a few sampled negatives for the
whole catalogue.

Contract: it takes and returns arrays and numbers only. A sampled rank is the rank of the relevant
item among itself and the sampled items.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..errors import FewNegativesWarning, OptionError, warn_user
from ..inputs.constraints import a_number, check_value
from ..stats.numbers import Floats, undefined_is_nan

SampledMetric = Literal["recall", "hitrate", "ndcg", "mrr", "map", "auc"]

# Without a cut-off the first ranks of the catalogue still have most of the value.
TOP = 10

# Number of ranks of the catalogue that are summed at once.
AT_ONCE = 4096


def sampled_values(
    metric: SampledMetric, *, n_items: int, n_sampled: int, k: int | None = 10, gamma: float = 0.1
) -> Floats:
    """Values of a metric by sampled rank, whose mean is nearer to the metric over all items than
    the sampled metric is.

    Larger is better, as for the metric itself. Single values may lie outside the range of the
    metric. With few negatives the mean is far too low for a good model, as the notes say.

    Formula
    -------
    Let R be the rank of the relevant item among all n = `n_items` items, and r its rank among
    itself and m = `n_sampled` random negatives. Then r − 1 is binomial(m, (R − 1)/(n − 1)). Let
    A[R, r] = P(r given R)/√n, let b[R] = f(R)/√n with the metric f, and c[r] = Σ_R P(r given R)/n.
    The values are ((1 − γ)·AᵀA + γ·diag(c))⁻¹·Aᵀb with γ = `gamma`. Of all functions of r, they
    have the least bias² + γ·variance on average over R. For auc, the value of r is 1 − (r − 1)/m,
    which is unbiased.

    Parameters
    ----------
    metric : {"recall", "hitrate", "ndcg", "mrr", "map", "auc"}
        Metric of a list with one relevant item: recall and hitrate are 1[R ≤ k], ndcg 1[R ≤
        k]/log2(R + 1), mrr and map 1[R ≤ k]/R, auc (n − R)/(n − 1).
    n_items : int
        Number of items in the catalogue that the relevant item is ranked among, itself included.
    n_sampled : int
        Number of negatives that were sampled uniformly for every list, without replacement: at most
        n_items − 1.
    k : int or None, default 10
        Cut-off in the ranking of the whole catalogue. With None there is no cut-off. auc ignores
        it.
    gamma : float, default 0.1
        Weight γ of the variance, in (0, 1]. Near 0 the values have little bias and a very large
        variance.

    Returns
    -------
    ndarray of float64, shape (n_sampled + 1,)
        The values of sampled ranks 1, 2, ..., n_sampled + 1. Look up the value for the sampled rank
        of each list, and average these values.

    Raises
    ------
    OptionError
        If the metric is not one of these, or a number is out of range.

    Warns
    -----
    FewNegativesWarning
        If k · n_sampled/n_items < 1 (10 in place of k without a cut-off): the sample then seldom
        has an item of the first k, so that the sampled rank cannot tell whether the relevant item
        is among them.

    Notes
    -----
    Use it where only a few negatives were ranked and no more can be. Do not use it where all items
    can be ranked: rank them instead. Uncorrected sampled metrics may put models in another order
    than the metrics over all items; only auc needs no correction. The correction assumes that all
    ranks R are equally likely beforehand. A good model has most of them at the top, so that its
    values come out too low. In a simulation with 10,000 items, k = 10 and γ = 0.1, a model with
    recall .653, ndcg .503 and mrr .456 got .180, .083 and .055 from 100 negatives, and .661, .352
    and .260 from 1,000. So recall is right where k · n_sampled/n_items ≥ 1, while ndcg, mrr and map
    stay too low. A confidence interval of the mean says how much the lists vary, and does not
    contain this error.

    References
    ----------
    Krichene and Rendle (2020), "On sampled metrics for item recommendation", KDD.

    Examples
    --------
    >>> import recdf as rd
    >>> by_rank = rd.diagnostics.sampled_values("recall", n_items=1000, n_sampled=100, k=10)
    >>> by_rank[[0, 1, 50]].round(2).tolist()
    [1.1, 0.17, 0.0]
    >>> ranks = [1, 1, 3, 20]
    >>> by_rank[[rank - 1 for rank in ranks]].mean().round(3).item()
    0.495
    """
    check_value("metric", metric, SampledMetric)
    for name, value, least in (
        ("n_items", n_items, 2),
        ("n_sampled", n_sampled, 1),
        ("k", 1 if k is None else k, 1),
    ):
        check_value(name, value, a_number(least, whole=True))
    if n_sampled >= n_items:
        raise OptionError(
            f"n_sampled={n_sampled} of ⟦n_items={n_items}⟧; only {n_items - 1} items are "
            "negatives, each drawn once"
        )
    check_value("gamma", gamma, a_number(above=0, most=1))
    if metric == "auc":  # a linear function of the rank: its sampled value is unbiased
        return np.linspace(1.0, 0.0, n_sampled + 1)
    top = TOP if k is None else k
    always_one = k is None and metric in ("recall", "hitrate")
    if top * n_sampled < n_items and not always_one:
        warn_user(
            f"n_sampled={n_sampled:,} of ⟦n_items={n_items:,}⟧ has "
            f"{top * n_sampled / n_items:.2g} of the first {top} items on average, so that "
            f"{metric} of a good model comes out far too low, and its interval does not say so; "
            f"sample at least {-(-n_items // top):,} negatives, or rank all items",
            FewNegativesWarning,
        )
    above = np.arange(n_sampled + 1)
    log_factorial = np.append(0.0, np.cumsum(np.log(np.arange(1, n_sampled + 1))))
    log_choose = log_factorial[-1] - log_factorial - log_factorial[::-1]
    squares = np.zeros((n_sampled + 1, n_sampled + 1))
    expected = np.zeros(n_sampled + 1)
    likely = np.zeros(n_sampled + 1)
    for start in range(1, n_items + 1, AT_ONCE):
        ranks = np.arange(start, min(start + AT_ONCE, n_items + 1))
        # P(sampled rank given rank): binomial probabilities, by their logarithms. 0·log 0 is 0
        # here: if no item is above the relevant one, no sampled item is above it.
        p = ((ranks - 1) / (n_items - 1))[:, None]
        with undefined_is_nan():
            upper = np.where(above > 0, above * np.log(p), 0.0)
            lower = np.where(above < n_sampled, (n_sampled - above) * np.log1p(-p), 0.0)
        chance = np.exp(log_choose + upper + lower)
        credit = np.ones(len(ranks)) if k is None else (ranks <= k) * 1.0
        if metric == "ndcg":
            credit /= np.log2(ranks + 1)
        elif metric in ("mrr", "map"):
            credit /= ranks
        squares += chance.T @ chance
        expected += chance.T @ credit
        likely += chance.sum(axis=0)
    system = (1 - gamma) * squares + gamma * np.diag(likely)
    return np.asarray(np.linalg.solve(system, expected), dtype=np.float64)

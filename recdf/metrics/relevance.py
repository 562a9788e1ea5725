"""Relevance: are the relevant items among the first k recommended ones, in whatever order?"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy import ndarray

from ..docstrings import says_as
from ..errors import OptionError
from ..inputs.constraints import Positive, a_number
from ..matching.hits import quotient, ratio
from ..matching.lists import Lists
from .metric import NOT_NEGATIVE, metric

# ------------------------------------------------------------------------------------------
# Recall, precision, ndcg, mapr and mrr where relevant items were observed with unequal
# probabilities.
#
# Contract: with `propensity_col` a relevant item counts v = 1/max(propensity, propensity_floor)
# in place of 1. A metric is the sum of v that the list earns, divided by the largest sum that it
# could earn. So values stay in [0, 1], only the ratios of propensities within a list matter, and
# equal propensities change nothing.


def observed_hits(lists: Lists) -> Any:
    """Return v of each hit."""
    weights = lists.item_weights
    return 1.0 if weights is None else weights.take(lists.hits.true_place)


def possible(lists: Lists, kind: str = "achievable") -> ndarray:
    """Return Σ v of the relevant items, or of the min(k, n_true) of them with the largest v."""
    if lists.item_weights is None:
        return lists.n_true if kind == "relevant" else np.minimum(lists.k, lists.n_true)
    if kind == "relevant":
        return lists.sum_true(lists.item_weights)
    return lists.sum_best(lists.item_weights, lambda hits: hits.gain)


def refuse(name: str, value: str, taken: tuple[str, ...]) -> None:
    """Raise if a parameter has a value for which no formula with propensities exists."""
    if value not in taken:
        raise OptionError(
            f'{name}="{value}" has no form with ⟦+propensity_col=⟧; take '
            f"{' or '.join(map(repr, taken))}, or measure without ⟦+propensity_col=⟧"
        )


@metric(aliases=("hr", "success"))
def hitrate(lists: Lists) -> ndarray:
    """Share of lists with at least one hit in the first k; larger is better, in [0, 1].

    Formula
    -------
    1 if any h_i = 1 for i ≤ k else 0, where h_i = 1 if the item at rank i is relevant.

    Notes
    -----
    Use it where one good item is enough: a banner with a few places, the next purchase, a user who
    leaves after the first success. It cannot tell one hit from five, nor rank 1 from rank k. Take
    `recall` when users look for several items, and `mrr` or `ndcg` when the rank matters.

    References
    ----------
    trec_eval `success`.

    Examples
    --------
    >>> rd.hitrate({"u": ["a"], "v": ["b"]}, {"u": ["x", "a"], "v": ["x", "y"]}, k=2)
    0.5
    """
    return lists.n_hits > 0


@metric(bounds=NOT_NEGATIVE, better=None)
def hits(lists: Lists) -> ndarray:
    """Number of hits in the first k; a count, at least 0.

    Formula
    -------
    Σ_{i ≤ k} h_i, where h_i = 1 if the item at rank i is relevant.

    Notes
    -----
    Use it as one half of a ratio, such as hits per recommended item in `compare_variants`, or to
    read the raw counts. It grows with k and with the number of relevant items. Do not compare users
    or data sets by it; take `precision` or `recall`.

    References
    ----------
    trec_eval `num_rel_ret`.

    Examples
    --------
    >>> rd.hits({"u": ["a", "b"]}, {"u": ["a", "x", "b"]}, k=3)
    2.0
    """
    return lists.n_hits


@metric(optional=("propensity",))
def precision(
    lists: Lists,
    *,
    divisor: Literal["k", "shown", "achievable", "achievable_shown"] = "k",
    pooled: bool = False,
) -> ndarray:
    """Share of the first k that is relevant; larger is better, in [0, 1].

    Formula
    -------
    Σ_{i ≤ k} h_i / d, where h_i = 1 if the item at rank i is relevant and d is the divisor. With
    `propensity_col`: Σ_{i ≤ k} h_i v_i / (d · v̄), where v = 1/max(propensity, propensity_floor)
    and v̄ is the mean v of the min(k, n_true) relevant items with the largest v. With
    `pooled=True`: Σ_lists w Σ_{i ≤ k} h_i / Σ_lists w d, where w is the weight of the list, 1
    without `weight_col`.

    Parameters
    ----------
    divisor : {"k", "shown", "achievable", "achievable_shown"}, default "k"
        "k": d = k. "shown": d = min(k, n_pred), undefined for a list without recommendations.
        "achievable": d = min(k, n_true), undefined for a list without relevant items.
        "achievable_shown": d = min(k, n_pred, n_true), undefined for a list without relevant items,
        and 0 for one without recommendations. With `propensity_col` only "k" and "achievable" are
        taken.
    pooled : bool, default False
        True: one ratio of sums over all lists instead of the mean of the ratios. It is one number
        for all lists, without an interval.

    Notes
    -----
    Use it where places are scarce and a wasted place costs something, as in an e-mail with five
    products. With the divisor k, a user with fewer than k relevant items can never reach 1, so the
    mean also depends on how many relevant items users have. This is not so with
    `divisor="achievable"`. The order inside the first k does not count. Pooled, a list counts as
    much as its divisor: use it to reproduce numbers of implicit, or for the share of all shown
    places that were hits. Do not use it to compare models by a test, since it has no value per
    user.

    References
    ----------
    trec_eval `P`; `relative_P` for "achievable", `set_relative_P` for "achievable_shown"; implicit
    `precision` for "achievable" and `pooled=True`.

    Examples
    --------
    >>> rd.precision({"u": ["a", "b"]}, {"u": ["a", "x"]}, k=4)
    0.25
    >>> rd.precision({"u": ["a", "b"]}, {"u": ["a", "x"]}, k=4, divisor="shown")
    0.5
    """
    if lists.item_weights is not None:
        if pooled:
            raise OptionError(
                "⟦pooled=True⟧ has no form with ⟦+propensity_col=⟧; measure without one of them"
            )
        # Σ v of the hits, divided by d times the mean v of the best relevant items.
        refuse("divisor", divisor, ("k", "achievable"))
        n_best = np.minimum(lists.k, lists.n_true)
        share = ratio(lists.sum(observed_hits(lists)), possible(lists))
        if divisor == "achievable":
            return share
        return np.where(n_best > 0, share * n_best / lists.k, 0.0)
    below = {"k": lists.k, "shown": lists.n_shown, "achievable": np.minimum(lists.k, lists.n_true)}
    below["achievable_shown"] = np.minimum(lists.n_shown, lists.n_true)
    found = quotient(lists.n_hits, below[divisor], pooled)
    return found if pooled or divisor != "achievable_shown" else _or_zero(found, lists.n_true)


def _or_zero(found: ndarray, n_true: ndarray) -> ndarray:
    """Return 0 in place of 0/0 for a list that has relevant items, and NaN for one that has
    none."""
    return np.where(n_true > 0, np.nan_to_num(found), np.nan)


@metric(optional=("propensity",))
def recall(lists: Lists, *, divisor: Literal["relevant", "achievable"] = "relevant") -> ndarray:
    """Share of the relevant items that are among the first k; larger is better, in [0, 1].

    Formula
    -------
    Σ_{i ≤ k} h_i / d, where h_i = 1 if the item at rank i is relevant and d is the divisor. With
    `propensity_col`: Σ_{i ≤ k} h_i v_i / Σ_t v_t, where v = 1/max(propensity, propensity_floor).
    The second sum is over all relevant items t, and for "achievable" over the min(k, n_true) of
    them with the largest v.

    Parameters
    ----------
    divisor : {"relevant", "achievable"}, default "relevant"
        "relevant": d = n_true. "achievable": d = min(k, n_true), which is called capped recall.
        Both are undefined for a list without relevant items.

    Notes
    -----
    Use it for large k, and for the first stage of a pipeline, which must find the items that a
    later stage ranks. A user with more than k relevant items can never reach 1, except with
    `divisor="achievable"`. The order inside the first k does not count. A user with one relevant
    item has the same weight as a user with fifty.

    References
    ----------
    trec_eval `recall`; Yang et al. (2018), RecSys, for propensities.

    Examples
    --------
    >>> rd.recall({"u": ["a", "b"]}, {"u": ["a", "x"]}, k=1)
    0.5
    >>> rd.recall({"u": ["a", "b"]}, {"u": ["a", "x"]}, k=1, divisor="achievable")
    1.0
    """
    found = lists.n_hits
    if lists.item_weights is not None:
        found = lists.sum(observed_hits(lists))
    return ratio(found, possible(lists, divisor))


@metric(aliases=("fbeta",))
def f1(
    lists: Lists,
    *,
    beta: Annotated[float, a_number(0)] = 1.0,
    divisor: Literal["k", "shown"] = "k",
    combine: Literal["harmonic", "product"] = "harmonic",
) -> ndarray:
    """Weighted harmonic mean of precision and recall; larger is better, in [0, 1].

    Formula
    -------
    (1 + β²) P R / (β² P + R), 0 when P = R = 0, where P is precision@k with the divisor and R
    recall@k; P · R with combine="product". Undefined for a list without relevant items, and 0 for
    one without recommendations.

    Parameters
    ----------
    beta : float, default 1
        Weight β of recall. Above 1 recall counts more, and below 1 precision counts more.
    divisor : {"k", "shown"}, default "k"
        Divisor of precision: k, or min(k, n_pred).
    combine : {"harmonic", "product"}, default "harmonic"
        "harmonic": the weighted harmonic mean. "product": P · R, which takes no `beta`.

    Notes
    -----
    Use it when one number has to summarize precision and recall, as for a set of tags. It hides
    which of the two has changed, so report both beside it. For ranked lists, `mapr` and `ndcg` say
    more, because they use the ranks.

    References
    ----------
    van Rijsbergen (1979), Information Retrieval. trec_eval `set_F` has divisor "shown", and its
    parameter is β²; its `set_map` is the product with divisor "shown".

    Examples
    --------
    >>> rd.f1({"u": ["a", "b"]}, {"u": ["a", "x"]}, k=2)
    0.5
    """
    if combine == "product" and beta != 1:
        raise OptionError(f'⟦beta={beta}⟧ weighs a harmonic mean; ⟦combine="product"⟧ has none')
    below = lists.n_shown if divisor == "shown" else lists.k
    if combine == "product":
        return _or_zero(ratio(lists.n_hits**2, below * lists.n_true), lists.n_true)
    # P = hits / below, R = hits / n_true
    return _or_zero(
        ratio((1 + beta**2) * lists.n_hits, beta**2 * lists.n_true + below), lists.n_true
    )


@metric(cut=False)
def rprecision(
    lists: Lists,
    *,
    multiple: Annotated[float, a_number(above=0)] = 1,
    at_most: Positive | None = None,
) -> ndarray:
    """Precision at the rank that equals the number of relevant items; larger is better, in [0, 1].
    k is ignored.

    Formula
    -------
    Σ_{i ≤ c} h_i / c, where c = n = n_true and h_i = 1 if the item at rank i is relevant. Undefined
    for n = 0. With `multiple`, c = ⌊multiple · n + 0.9⌋. With `at_most`, the sum is over i ≤ min(c,
    at_most), over c as before.

    Parameters
    ----------
    multiple : float, default 1
        The cut-off as a multiple of n, rounded up unless little is missing.
    at_most : int, optional
        Ranks beyond it do not count.

    Notes
    -----
    Use it to compare users who have very different numbers of relevant items: the cut-off follows
    each user, so 1 can always be reached. Do not use it to describe a page with a fixed number of
    places. Where every user has one relevant item, it is `hitrate@1`.

    References
    ----------
    trec_eval `Rprec`, `Rprec_mult`; recommenders `r_precision_at_k` has `at_most`.

    Examples
    --------
    >>> rd.rprecision({"u": ["a", "b"]}, {"u": ["a", "x", "b"]})
    0.5
    """
    upto = np.floor(multiple * lists.n_true + 0.9)
    last = upto if at_most is None else np.minimum(upto, at_most)
    return ratio(lists.sum(lists.hits.rank <= last[lists.hits.list]), upto)


Length = Literal["shown", "k"]


@metric(bounds=NOT_NEGATIVE, better=None, needs=("candidates",), outputs=("tp", "fp", "fn", "tn"))
def confusion(
    lists: Lists, *, length: Length = "shown"
) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """Confusion counts of the first k, in the four columns tp, fp, fn, tn; counts, at least 0.

    Formula
    -------
    tp = hits, fp = m − tp, fn = n − tp, tn = c − tp − fp − fn, where m is the length of the list, n
    = n_true and c is the number of candidates: the items of the catalogue or, with `judged_only`,
    the judged items of the list.

    Parameters
    ----------
    length : {"shown", "k"}, default "shown"
        "shown": m = min(k, n_pred). "k": m = k, as in RecTools. A rank without an item then counts
        as a false positive, and tn is undefined if there are too few candidates for k ranks.

    Notes
    -----
    Use it to see the counts behind `accuracy`, `fallout`, `specificity` and `mcc`, or to compute a
    ratio that this package does not have. With a catalogue as the candidates, nearly all of them
    are true negatives, and every ratio with tn says little about the list.

    References
    ----------
    Manning, Raghavan, Schütze (2008), Introduction to Information Retrieval, section 8.3.

    Examples
    --------
    >>> rd.confusion({"u": ["a", "b"]}, {"u": ["a", "x"]}, k=2, items=["a", "b", "x", "y", "z"])
    {'tp@2': 1.0, 'fp@2': 1.0, 'fn@2': 1.0, 'tn@2': 2.0}
    """
    tp = lists.n_hits
    fn = lists.n_true - tp
    fp = (lists.n_shown if length == "shown" else lists.k) - tp
    tn = lists.n_candidates - tp - fp - fn
    if length == "k":  # there may be fewer candidates than ranks
        tn = np.where(tn < 0, np.nan, tn)
    return tp, fp, fn, tn


@metric(needs=("candidates",))
def accuracy(lists: Lists, *, length: Length = "shown") -> ndarray:
    """Share of the candidates that are rightly recommended or rightly left out; larger is better,
    in [0, 1].

    Formula
    -------
    (tp + tn) / (tp + fp + fn + tn), the counts of `confusion`.

    Parameters
    ----------
    length : {"shown", "k"}, default "shown"
        Length of a list, as in `confusion`.

    Notes
    -----
    Use it when every candidate is judged and both kinds of mistake cost the same, as for labelled
    candidates with `judged_only=True`. With a whole catalogue as the candidates it is close to 1
    for every model, even for one that recommends nothing; take `precision` and `recall` there.

    References
    ----------
    Manning, Raghavan, Schütze (2008), Introduction to Information Retrieval, section 8.3.

    Examples
    --------
    >>> rd.accuracy({"u": ["a", "b"]}, {"u": ["a", "x"]}, k=2, items=["a", "b", "x", "y"])
    0.5
    """
    tp, fp, fn, tn = confusion.kernel(lists, length=length)
    return ratio(tp + tn, tp + fp + fn + tn)


@metric(better="smaller", needs=("candidates",))
@says_as(accuracy)
def fallout(lists: Lists, *, length: Length = "shown") -> ndarray:
    """Share of the irrelevant candidates that are recommended; smaller is better, in [0, 1].

    Formula
    -------
    fp / (fp + tn), the counts of `confusion`; undefined when every candidate is relevant.

    Notes
    -----
    Use it with judged candidates, to say how often an item that is known to be bad is recommended.
    With a whole catalogue as the candidates it is about k over the size of the catalogue, whatever
    the model does.

    References
    ----------
    Manning, Raghavan, Schütze (2008), Introduction to Information Retrieval, section 8.4.

    Examples
    --------
    >>> rd.fallout({"u": ["a", "b"]}, {"u": ["a", "x"]}, k=2, items=["a", "b", "x", "y"])
    0.5

    Parameters
    ----------
    {length}
    """
    _, fp, _, tn = confusion.kernel(lists, length=length)
    return ratio(fp, fp + tn)


@metric(needs=("candidates",))
@says_as(accuracy)
def specificity(lists: Lists, *, length: Length = "shown") -> ndarray:
    """Share of the irrelevant candidates that are not recommended; larger is better, in [0, 1].

    Formula
    -------
    tn / (fp + tn), the counts of `confusion`; undefined when every candidate is relevant.

    Notes
    -----
    Use it where `fallout` would be used and larger should be better: it is 1 − fallout. With a
    whole catalogue as the candidates it is close to 1 for every model.

    References
    ----------
    Manning, Raghavan, Schütze (2008), Introduction to Information Retrieval, section 8.6.

    Examples
    --------
    >>> rd.specificity({"u": ["a", "b"]}, {"u": ["a", "x"]}, k=2, items=["a", "b", "x", "y"])
    0.5

    Parameters
    ----------
    {length}
    """
    _, fp, _, tn = confusion.kernel(lists, length=length)
    return ratio(tn, fp + tn)


@metric(bounds=(-1.0, 1.0), needs=("candidates",))
@says_as(accuracy)
def mcc(lists: Lists, *, length: Length = "shown") -> ndarray:
    """Matthews correlation between being recommended and being relevant; larger is better, in [−1,
    1].

    Formula
    -------
    (tp·tn − fp·fn) / √((tp+fp)(tp+fn)(tn+fp)(tn+fn)), the counts of `confusion`; undefined when a
    factor is 0.

    Notes
    -----
    Use it with judged candidates of which few are relevant: unlike `accuracy`, it is about 0 for a
    model that guesses. With a whole catalogue as the candidates it comes close to √(precision ·
    recall), which is easier to explain.

    References
    ----------
    Matthews (1975), Biochimica et Biophysica Acta 405(2).

    Examples
    --------
    >>> rd.mcc({"u": ["a", "b"]}, {"u": ["a", "b"]}, k=2, items=["a", "b", "x", "y"])
    1.0

    Parameters
    ----------
    {length}
    """
    tp, fp, fn, tn = confusion.kernel(lists, length=length)
    factors = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return ratio(tp * tn - fp * fn, np.sqrt(np.maximum(factors, 0.0)))

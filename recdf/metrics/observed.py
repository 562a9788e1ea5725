"""Recall, precision, ndcg, mapr and mrr where relevant items were observed with unequal
probabilities.

Contract: with `propensity_col` a relevant item counts v = 1/max(propensity, propensity_floor) in
place of 1. A metric is the sum of v that the list earns, divided by the largest sum that it could
earn. So values stay in [0, 1], only the ratios of propensities within a list matter, and equal
propensities change nothing.
"""

from __future__ import annotations

import numpy as np

from ..errors import OptionError
from ..matching.hits import Hits, ratio
from ..matching.lists import Lists


def observed_recall(lists: Lists, divisor: str) -> np.ndarray:
    """Return Σ v of the hits, divided by Σ v of the relevant items or of the min(k, n_true) best of
    them."""
    return ratio(lists.sum(_observed_hits(lists)), _possible(lists, divisor, "divisor"))


def observed_precision(lists: Lists, divisor: str) -> np.ndarray:
    """Return Σ v of the hits, divided by d times the mean v of the min(k, n_true) best relevant
    items."""
    refuse("divisor", divisor, ("k", "achievable"))
    n_best = np.minimum(lists.k, lists.n_true)
    share = ratio(lists.sum(_observed_hits(lists)), _best_possible(lists))
    if divisor == "achievable":
        return share
    return np.where(n_best > 0, share * n_best / lists.k, 0.0)


def observed_average_precision(lists: Lists, normalizer: str) -> np.ndarray:
    """Return Σ v · P@i over the hits, divided by the possible Σ v. P@i is the plain share of hits
    in ranks 1 to i."""
    hits = lists.hits
    return ratio(
        lists.sum(_observed_hits(lists) * hits.number / hits.rank),
        _possible(lists, normalizer, "normalizer"),
    )


def observed_reciprocal_rank(lists: Lists, of: str) -> np.ndarray:
    """Return v / rank of the first hit over the largest relevant v, or Σ v / rank of all hits over
    the relevant Σ v."""
    earned = _observed_hits(lists) / lists.hits.rank
    if of == "all":
        return ratio(lists.sum(earned), _relevant_observed(lists))
    first = lists.sum(np.where(lists.hits.number == 1, earned, 0.0))
    return np.where(first > 0, ratio(first, _best_possible(lists.matched.at(1))), 0.0)


def weights_of(lists: Lists) -> np.ndarray:
    """Return v of each row of `true`."""
    weights = lists.item_weights
    assert weights is not None
    return weights


def _observed_hits(lists: Lists) -> np.ndarray:
    return weights_of(lists).take(lists.hits.true_place)


def _relevant_observed(lists: Lists) -> np.ndarray:
    return lists.sum_true(weights_of(lists))


def _best_possible(lists: Lists) -> np.ndarray:
    """Sum v over the min(k, n_true) relevant items of each list that have the largest v."""
    return lists.sum_best(weights_of(lists), _gain)


def _gain(hits: Hits) -> np.ndarray:
    return hits.gain


def _possible(lists: Lists, kind: str, name: str) -> np.ndarray:
    refuse(name, kind, ("relevant", "achievable"))
    return _relevant_observed(lists) if kind == "relevant" else _best_possible(lists)


def refuse(name: str, value: str, taken: tuple[str, ...]) -> None:
    """Raise if a parameter has a value for which no formula with propensities exists."""
    if value not in taken:
        raise OptionError(
            f'{name}="{value}" has no form with ⟦+propensity_col=⟧; take '
            f"{' or '.join(map(repr, taken))}, or measure without ⟦+propensity_col=⟧"
        )

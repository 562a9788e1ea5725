"""Exposure: how do all lists together use the catalogue? Each metric is one number, computed from
counts per item."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np

from ..errors import OptionError
from ..inputs.constraints import Share, a_number
from ..inputs.sorting import exact_sums
from ..matching.counts import Counts, exposure_sum
from .metric import NOT_NEGATIVE, metric


@metric(
    arguments=("items", "pred"),
    k=None,
    per="item",
    sums=("shown",),
    unknown=("items",),
    where={"normalize=False": {"bounds": NOT_NEGATIVE}},
)
def coverage(counts: Counts, *, normalize: bool = True) -> float:
    """Share of the catalogue that is recommended to anyone; larger is better, in [0, 1].

    Formula
    -------
    |items of the catalogue that are in the first k of any list| / |items of the catalogue|.
    Recommended items outside the catalogue count only in `spec["counts"]`.

    Parameters
    ----------
    normalize : bool, default True
        With False: the number of items, not divided.

    Notes
    -----
    Use it to see how much of the catalogue is recommended at all. One recommendation of an item
    counts as much as a million. The value grows with the number of lists, so compare models on the
    same users and the same k. `gini` and `entropy` tell how even the exposure is.

    References
    ----------
    Ge, Delgado & Jannach (2010), RecSys. RecTools and recommenders count items outside the
    catalogue too.

    Examples
    --------
    >>> rd.coverage([1, 2, 3, 4], {"u": [1, 2], "v": [2, 5]})
    0.5
    """
    catalogue = counts.sides.items
    return _divided(
        np.count_nonzero(counts.shown[catalogue.codes]), len(catalogue.codes) if normalize else 1
    )


@metric(per="item", sums=("lengths",))
def user_coverage(counts: Counts) -> float:
    """Share of the lists of the population with at least one item; larger is better, in [0, 1].

    Formula
    -------
    |lists with a recommendation| / |lists of the population|.

    Notes
    -----
    Use it before other metrics: a model that recommends to some users only may look good on those.
    It does not say whether the recommendations are good.

    References
    ----------
    Ge, Delgado & Jannach (2010), RecSys.

    Examples
    --------
    >>> rd.user_coverage({"u": ["a"], "v": ["b"]}, {"u": ["a"]}, k=1)
    0.5
    """
    return _divided(counts.n_lists_shown, counts.n_lists)


@metric(
    better="smaller",
    arguments=("items", "pred"),
    k=None,
    per="item",
    unknown=("items",),
    sums=lambda params: [exposure_sum(params["discount"], params["p"])],
)
def gini(
    counts: Counts, *, discount: Literal["none", "log", "geometric"] = "none", p: Share = 0.85
) -> float:
    """Gini index of exposure over the catalogue; smaller is better, in [0, 1].

    Formula
    -------
    Σ_j (2j − n − 1) x_j / (n Σ_j x_j), where x_1 ≤ x_2 ≤ ... are the exposures of the n items of
    the catalogue: by default the number of times that an item is recommended, 0 for one that never
    is. Recommended items outside the catalogue count only in `spec["counts"]`. Undefined when
    nothing of the catalogue is recommended.

    Parameters
    ----------
    discount : {"none", "log", "geometric"}, default "none"
        The exposure x of an item is the sum of disc(rank) over its recommendations. "none":
        disc(rank) = 1. "log": 1/log2(rank + 1). "geometric": p^(rank − 1).
    p : float, default 0.85
        In (0, 1), for `discount="geometric"`: chance that a user who sees a rank looks at the next
        one.

    Notes
    -----
    Use it to see how unevenly exposure falls on the catalogue: 0 if all items are recommended
    equally often, close to 1 if a few items take everything. It depends on the sizes: with fewer
    recommendations than items it cannot be 0. So compare models on the same users, k and catalogue.
    A small value alone is no merit, because random recommendations have one.

    References
    ----------
    Gini (1912); LensKit `ListGini`, and with discount="geometric" `ExposureGini`. elliot reports 1
    − gini n / (n − 1); evidently takes the items that are recommended for the catalogue.

    Examples
    --------
    >>> rd.gini([1, 2, 3, 4], {"u": [1, 2], "v": [3, 4]})
    0.0
    """
    exposure = np.sort(counts.exposure(discount, p)[counts.sides.items.codes])
    n = len(exposure)
    above = exact_sums((2 * np.arange(1, n + 1) - n - 1) * exposure)[0]
    return _divided(above, n * exact_sums(exposure)[0])


@metric(bounds=NOT_NEGATIVE, arguments=("pred",), per="item", sums=("shown",))
def entropy(
    counts: Counts,
    *,
    normalize: bool = False,
    log_base: Annotated[float, a_number(above=1)] | Literal["e"] = 2,
    divisor: Literal["items"] | None = None,
) -> float:
    """Shannon entropy of exposure, in bits; larger is better, at least 0.

    Formula
    -------
    −Σ_i s_i log2 s_i, where s_i is the share of item i in all recommendations. Undefined when there
    are none.

    Parameters
    ----------
    normalize : bool, default False
        Divide by the logarithm of the number of items, so that values lie in [0, 1]; undefined for
        one item. Items are those that are recommended and, if `items` is given, those of the
        catalogue.
    log_base : float or "e", default 2
        Base of the logarithm, above 1; "e" is that of the natural logarithm.
    divisor : {"items"}, optional
        "items": divide by the number of items that are recommended.

    Notes
    -----
    Use it to see how many items really share the exposure: 2 to the power of the entropy is the
    number of items that would have the same entropy if all were recommended equally often. It
    cannot be large when there are few recommendations, so compare models on the same users and k,
    and use `normalize=True` to compare catalogues. Random recommendations have the largest value.

    References
    ----------
    Shannon (1948), Bell System Technical Journal 27; Adomavicius & Kwon (2012), IEEE TKDE 24(5).
    RecBole has log_base="e" and divisor="items", which falls as more items share the exposure.

    Examples
    --------
    >>> rd.entropy({"u": ["a", "b"], "v": ["c", "d"]}, k=2)
    2.0
    """
    shown = counts.shown[counts.shown > 0]
    if not len(shown):
        return np.nan
    share = shown / shown.sum()
    value = abs(float(exact_sums(share * np.log2(share))[0]))
    if normalize and divisor is not None:
        raise OptionError(
            f"⟦normalize=True⟧ and ⟦divisor={divisor!r}⟧ both divide; leave one of them out"
        )
    if not normalize:
        return float(
            value / np.log2(np.e if log_base == "e" else log_base) / (len(shown) if divisor else 1)
        )
    there = counts.shown > 0
    if counts.sides.has("items"):
        there = there | counts.sides.items.inside
    return _divided(value, np.log2(np.count_nonzero(there)))


@metric(arguments=("pred",), per="item", sums=("lengths", "n_lists_with"))
def personalization(counts: Counts) -> float:
    """How different the lists of two users are on average, by the items in both; larger is better,
    in [0, 1].

    Formula
    -------
    1 − Σ_i c_i (c_i − 1) / (L (L − 1) d), where c_i is the number of lists that recommend item i, L
    the number of lists that are not empty, and d = k, or the length of the longest list if none has
    k items. This is the mean over all pairs of lists of 1 − (items in both) / d. Undefined for
    fewer than two lists.

    Notes
    -----
    Use it to find a model that recommends the same to everybody: a list of bestsellers has the
    value 0. It does not know relevance, and random recommendations have the largest value. For
    groups of users with different tastes, compute it within each group as well.

    References
    ----------
    Common practice: 1 − the mean overlap of two lists at k.

    Examples
    --------
    >>> rd.personalization({"u": ["a", "b"], "v": ["a", "c"]}, k=2)
    0.5
    """
    n = counts.n_lists_shown
    with_item = counts.n_lists_with
    return 1.0 - _divided(int((with_item * (with_item - 1)).sum()), n * (n - 1) * counts.deepest)


@metric(better="smaller", arguments=("pred",), per="item", sums=("shown",))
def hhi(counts: Counts) -> float:
    """Herfindahl-Hirschman index, the concentration of exposure; smaller is better, in [0, 1].

    Formula
    -------
    Σ_i s_i², where s_i is the share of item i in all recommendations. Undefined when there are
    none.

    Notes
    -----
    Use it to see whether a few items take most of the exposure: 1 / hhi is the number of equally
    exposed items that would be as concentrated. The most exposed items dominate it. Take `gini` to
    include items of the catalogue that are never recommended.

    References
    ----------
    Hirschman (1964), American Economic Review 54(5).

    Examples
    --------
    >>> rd.hhi({"u": ["a", "b"], "v": ["c", "d"]}, k=2)
    0.25
    """
    shown = counts.shown[counts.shown > 0]
    return float(exact_sums((shown / shown.sum()) ** 2)[0]) if len(shown) else np.nan


def _divided(above: Any, below: Any) -> float:
    """Return above / below, or NaN (undefined) if below is 0."""
    return float(above / below) if below else np.nan

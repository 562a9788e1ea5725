"""Discovery: which hits are such that the user would hardly have found them alone?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy import ndarray

from ..errors import OptionError
from ..inputs.constraints import Natural
from ..inputs.sorting import flags_at, run_of, spans
from ..matching.hits import ratio
from ..matching.lists import Lists
from .diversity import nearest, total_to_past
from .metric import metric

AnySimilarity = Literal["cosine", "jaccard", "hamming", "cooccurrence"] | Callable[..., ndarray]
LOG_ALONE = {"needs": ("log",), "unknown": ("log_users", "log")}


@metric(
    needs=("log", "features"),
    optional=("true", "popular"),
    unknown=("log_users", "features"),
    where={
        "similarity=cooccurrence": LOG_ALONE,
        "of=rank": {"needs": ("log", "items"), "unknown": ("log", "items")},
        "of=similarity": {"bounds": (0.0, 2.0)},
    },
)
def serendipity(
    lists: Lists,
    *,
    of: Literal["threshold", "rank", "similarity"] = "threshold",
    threshold: float = 0.7,
    relevant: bool = True,
    top: Natural | None = None,
    similarity: AnySimilarity = "cosine",
    separator: str = "|",
) -> ndarray:
    """Share of the first k that is relevant, new, unlike the user's past and not popular; larger is
    better, in [0, 1].

    Formula
    -------
    Σ_i h_i s_i / m over the first k items, where m = min(k, n_pred), h_i = 1 if item i is relevant,
    and s_i says how unexpected it is. By default s_i = 1 if item i is not in the user's rows of
    `log`, has a similarity below `threshold` to each item there, and is not popular; otherwise s_i
    = 0. Items without features are left out of the sum and of m. Undefined if the user's log has no
    item with features, or if the list has none.

    Parameters
    ----------
    of : {"threshold", "rank", "similarity"}, default "threshold"
        "threshold": as above. "rank": s_i = max(0, (N + 1 − i) / N − (N + 1 − q_i) / N), where N is
        the number of items of the catalogue (`items`) and q_i the rank of item i by its
        interactions in `log`, 1 for the most, equal ranks for equal numbers; the second term is 0
        for an item that is not there. No features are read, and undefined is only a list without
        items. "similarity": s_i = 1 − the mean similarity of item i to the items of the user's
        past, and 0 for an item of that past; with features below 0 it may be up to 2.
    threshold : float, default 0.7
        An item is expected if its similarity to an item of the user's past is at least this.
    relevant : bool, default True
        Whether an item must be relevant to count. With False, `true` may be None, and h_i = 1.
    top : int, optional
        The `top` items with the most interactions in `log` are popular too, beside those of
        `popular`. Of equally frequent items, those with the smaller ids are taken.
    similarity : {"cosine", "jaccard", "hamming", "cooccurrence"} or callable, default "cosine"
        As in `ild`. "cooccurrence", with `of="similarity"`: users of `log` with both items /
        √(users with the one · users with the other), for which no features are read and every item
        is known.
    separator : str, default "|"
        Sign between the categories of one string.

    Notes
    -----
    Use it when the aim is discovery: hits that neither bestsellers nor items like those of the past
    would have brought. Such hits are rare, so intervals are wide and many users are needed. The
    threshold, the features and the popular items decide what counts. Fix them before you look at
    the results, and report them. `of="rank"` only asks whether hits stand higher than their
    popularity would place them.

    References
    ----------
    Ge, Delgado & Jannach (2010), RecSys; Kotkov, Wang & Veijalainen (2016), Knowledge-Based Systems
    111. of="rank" is `Serendipity` of RecTools; of="similarity" that of recommenders, whose default
    is similarity="cooccurrence".

    Examples
    --------
    >>> features = {"a": [1, 0], "b": [1, 0], "c": [0, 1]}
    >>> rd.serendipity(
    ...     {1: ["b", "c"]}, {1: ["b", "c"]}, k=2, log={1: ["a"], 2: ["b"]}, features=features
    ... )
    0.5
    """
    if relevant:
        lists.matched.needs_true("or ⟦relevant=False⟧")
    only = {"threshold": threshold != 0.7, "top": top is not None}
    wrong = [name for name, given in only.items() if given and of != "threshold"]
    wrong += ["similarity"] if (of == "rank" and similarity != "cosine") else []
    if wrong:
        raise OptionError(f"⟦{wrong[0]}=⟧ is not read with ⟦of={of!r}⟧; leave one of them out")
    if of == "threshold" and similarity == "cooccurrence":
        raise OptionError('⟦similarity="cooccurrence"⟧ is for ⟦+of="similarity"⟧')
    if of == "rank":
        n_items = len(lists.sides.items.codes)
        count = lists.sides.log.count("events")
        levels = np.unique(count[count > 0])
        q = len(levels) - np.searchsorted(levels, count)  # 1 for the most
        place, of_list = _shown_or_hit(lists, relevant)
        item = lists.matched.item[place]
        rank = place - lists.matched.start[of_list] + 1
        gained = np.where(count[item] > 0, q[item] - rank, n_items + 1 - rank) / n_items
        return ratio(np.bincount(of_list, np.maximum(gained, 0.0), len(lists)), lists.n_shown)
    if of == "similarity":
        return _unlike_past(lists, similarity, separator, relevant)
    matched = lists.matched
    largest = lists.once_of_pred(nearest, lists.sides.features(similarity, separator))
    # The margin keeps rounding from making 0.7 smaller than 0.7.
    found = (largest < threshold - 1e-12) & ~lists.seen
    if relevant:
        hit = flags_at(matched.hits.place, len(matched.item))
        found &= hit
    if lists.sides.has("popular"):
        found &= ~lists.sides.popular[matched.item]
    if top is not None:
        known = flags_at(lists.sides.log.by_popularity()[:top], matched.n_items)
        found &= ~known[matched.item]
    return ratio(lists.sum_shown(found * 1.0), lists.sum_shown(~np.isnan(largest) * 1.0))


def _shown_or_hit(lists: Lists, relevant: bool) -> tuple[ndarray, ndarray]:
    """Return the place of each row of the first k, or of each of them that is a hit, and its
    list."""
    if relevant:
        return lists.hits.place, lists.hits.list
    return spans(lists.matched.start, lists.n_shown), run_of(lists.n_shown)


def _unlike_past(
    lists: Lists, similarity: AnySimilarity, separator: str, relevant: bool
) -> ndarray:
    """Return the mean of 1 − the mean similarity to the past; items of the past count 0."""
    matched = lists.matched
    log = lists.sides.log
    like = None
    known = np.ones(matched.n_items, bool)
    if similarity != "cooccurrence":
        like = lists.sides.features(similarity, separator)
        known = like.row_of >= 0
    start, past, _ = log.pairs
    n_past = np.append(np.bincount(log.pair_user, known[past], len(start) - 1), 0)[log.list_user]
    place, of_list = _shown_or_hit(lists, relevant)
    new = known[matched.item[place]] & ~lists.seen[place] & (n_past > 0)[of_list]
    place = place[new]
    of_list = of_list[new]
    mean = total_to_past(lists, place, of_list, like) / n_past[of_list]
    below = np.where(n_past > 0, lists.sum_shown(known[matched.item] * 1.0), 0)
    return ratio(np.bincount(of_list, 1.0 - mean, len(lists)), below)

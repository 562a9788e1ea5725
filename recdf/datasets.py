"""The sample shop: a small, complete set of frames to try every part of recdf on.

Contract: everything follows from the seed and nothing is downloaded; `sample_shop` returns plain
frames that join on `user_id` and `item_id`; the models learn from `log` alone, so their quality is
earned and never read off `true`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import ndarray
from pandas import DataFrame

SEGMENTS = np.array(["new", "regular", "loyal"])
CHANNELS = np.array(["app", "web"])
CATEGORIES = np.array(
    ["bath", "books", "garden", "kitchen", "lighting", "office", "textiles", "toys"]
)
GROUPS = np.array(["own", "partner"])
SHOP_MODELS = np.array(["knn", "popularity", "random"])
VARIANTS = np.array(["A", "B"])

# Log odds of buying an average one of 500 items, per segment: a new customer hardly has a past but
# buys from now on.
PAST_LOG_ODDS = np.array([-7.0, -5.0, -4.2])
PERIOD_LOG_ODDS = np.array([-7.3, -7.0, -6.4])
TASTE = 1.5  # log odds per standard deviation of a user's liking for a category
RANK_ONE_ODDS = 2.2  # log odds that rank 1 of the shown list adds; rank r adds SHOWN / log2(r + 1)

PERIOD_START = np.datetime64("2026-09-01", "us")
PAST_DAYS = 180
PERIOD_DAYS = 30


@dataclass(frozen=True, eq=False)  # two frames have no single truth value of being equal
class Shop:
    """The frames of a sample shop; each has a RangeIndex and at most one row per key.

    Attributes
    ----------
    users : DataFrame, one row per user
        `user_id`, `segment` (new, regular, loyal), `channel` (app, web), `personalised` (False: the
        user opted out and no model has recommendations for them).
    items : DataFrame, one row per item
        `item_id`, `price` (currency units, whole cents), `category`, `group` (own, partner),
        `is_new` (launched when the evaluated period starts, so absent from `log`).
    log : DataFrame, one row per (user, item) bought in the 180 days before the evaluated period
        `user_id`, `item_id`, `timestamp`, `value` (price paid).
    true : DataFrame, one row per (user, item) bought in the evaluated 30 days and not before
        `user_id`, `item_id`, `timestamp`, `value` (price paid).
    pred : DataFrame, one row per (model, user, item), best first within each list
        `model` (knn, popularity, random), `user_id`, `item_id`, `score`, `value` (price as
        recommended).
    assignment : DataFrame, one row per user
        `user_id`, `variant` (A: popularity, B: knn), `pre_spend` (money spent in `log`: a covariate
        that the variant cannot have changed).
    shown : DataFrame, one row per (user, item) shown in the experiment, best first within each list
        `variant`, `user_id`, `item_id`, `rank` (from 1), `value` (price as shown).
    """

    users: DataFrame
    items: DataFrame
    log: DataFrame
    true: DataFrame
    pred: DataFrame
    assignment: DataFrame
    shown: DataFrame


def sample_shop(seed: int = 0, n_users: int = 2000, n_items: int = 500, n_recs: int = 20) -> Shop:
    """Generate a shop: users, items, a past, three recommenders, and an A/B experiment with a real
    effect.

    Users like categories, items differ in appeal, and a purchase is an independent draw whose log
    odds add both up. Three models learn from the past purchases: `knn` (item co-occurrence),
    `popularity` (number of buyers) and `random`. Users are randomised to see the list of
    `popularity` (A) or of `knn` (B), and seeing an item makes buying it more likely, so B buys more
    of what it is shown and spends more. As in any real log, `true` therefore favours what was
    shown: `knn` and `popularity` each had half of the users to influence.

    Parameters
    ----------
    seed : int, default 0
        Seed of `numpy.random.default_rng`; the same seed gives the same frames.
    n_users, n_items : int, default 2000 and 500
        Size of the shop, at least 1 each. Working memory grows with their product.
    n_recs : int, default 20
        Longest list of a model, at least 1. Lists are shorter where a model has no more to say.

    Returns
    -------
    Shop
        Frames `users`, `items`, `log`, `true`, `pred`, `assignment` and `shown`.

    Raises
    ------
    ValueError
        If a size is smaller than 1.

    Notes
    -----
    The holes of real data are there: users without purchases, users without recommendations (opted
    out, or no past for `knn` to start from; the experiment shows these the popular items), items
    nobody bought before.

    Examples
    --------
    >>> shop = sample_shop(seed=0, n_users=100, n_items=50, n_recs=5)
    >>> shop.pred.columns.tolist()
    ['model', 'user_id', 'item_id', 'score', 'value']
    >>> shop.pred.groupby("model").size().to_dict()
    {'knn': 440, 'popularity': 490, 'random': 490}
    >>> hits = shop.pred.merge(shop.true, on=["user_id", "item_id"])
    >>> hits.groupby("model").size().to_dict()
    {'knn': 62, 'popularity': 71, 'random': 12}
    """
    for name, size in (("n_users", n_users), ("n_items", n_items), ("n_recs", n_recs)):
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size!r}")
    rng = np.random.default_rng(seed)

    # Users and items.
    segment = np.searchsorted([0.3, 0.8], rng.random(n_users), side="right")
    channel = rng.integers(0, len(CHANNELS), n_users)
    personalised = rng.random(n_users) >= 0.02
    liking = rng.standard_normal((n_users, len(CATEGORIES)))
    category = rng.integers(0, len(CATEGORIES), n_items)
    group = (rng.random(n_items) < 0.4).astype(np.int64)
    is_new = rng.random(n_items) < 0.05
    price = np.round(np.exp(2.5 + 0.7 * rng.standard_normal(n_items)), 2)
    appeal = 0.8 * rng.standard_normal(n_items)
    # A look-up, not a matrix product: sums of products differ in the last bit from one BLAS to the
    # next. The last term keeps the purchases per user about the same however many items there are
    # to choose from.
    taste = appeal + TASTE * liking[:, category] + np.log(500 / n_items)

    # The past, and what each model makes of it.
    bought = (
        rng.random((n_users, n_items)) < _sigmoid(PAST_LOG_ODDS[segment, None] + taste)
    ) & ~is_new
    candidate = ~bought & personalised[:, None]
    scores = {
        "knn": _knn(bought),
        # The number of buyers of each item, the same for all users.
        "popularity": np.broadcast_to(bought.sum(axis=0) * 1.0, bought.shape),
        "random": rng.random((n_users, n_items)),
    }
    lists = [
        _best_of_rows(np.where(candidate, scores[model], 0.0), n_recs) for model in SHOP_MODELS
    ]

    # The experiment: what is shown, and what is bought because of taste and of having been shown.
    variant = rng.integers(0, 2, n_users)
    # knn is silent about users without a past; a shop shows them what is popular instead.
    use_knn = (variant == 1) & bought.any(axis=1)
    served = np.where(use_knn[:, None], scores["knn"], scores["popularity"])
    shown_user, shown_item, shown_rank, _ = _best_of_rows(np.where(candidate, served, 0.0), n_recs)
    log_odds = PERIOD_LOG_ODDS[segment, None] + taste
    log_odds[shown_user, shown_item] += RANK_ONE_ODDS / np.log2(shown_rank + 1)
    buys = (rng.random((n_users, n_items)) < _sigmoid(log_odds)) & ~bought

    user_ids = _shop_labels("u", n_users)
    item_ids = _shop_labels("i", n_items)

    def purchases(matrix: ndarray, start: np.datetime64, days: int) -> DataFrame:
        user, item = np.nonzero(matrix)
        second = rng.integers(0, days * 86_400, len(user)).astype("timedelta64[s]")
        return DataFrame(
            {
                "user_id": user_ids[user],
                "item_id": item_ids[item],
                "timestamp": start + second,
                "value": price[item],
            }
        )

    user, item, _, score = (np.concatenate(parts) for parts in zip(*lists, strict=True))
    return Shop(
        users=DataFrame(
            {
                "user_id": user_ids,
                "segment": SEGMENTS[segment],
                "channel": CHANNELS[channel],
                "personalised": personalised,
            }
        ),
        items=DataFrame(
            {
                "item_id": item_ids,
                "price": price,
                "category": CATEGORIES[category],
                "group": GROUPS[group],
                "is_new": is_new,
            }
        ),
        log=purchases(bought, PERIOD_START - np.timedelta64(PAST_DAYS, "D"), PAST_DAYS),
        true=purchases(buys, PERIOD_START, PERIOD_DAYS),
        pred=DataFrame(
            {
                "model": np.repeat(SHOP_MODELS, [len(part[0]) for part in lists]),
                "user_id": user_ids[user],
                "item_id": item_ids[item],
                "score": score,
                "value": price[item],
            }
        ),
        assignment=DataFrame(
            {
                "user_id": user_ids,
                "variant": VARIANTS[variant],
                # Cents are summed as integers, so that no order of summation shows in the last
                # digit.
                "pre_spend": np.where(bought, np.rint(price * 100).astype(np.int64), 0).sum(axis=1)
                / 100,
            }
        ),
        shown=DataFrame(
            {
                "variant": VARIANTS[variant[shown_user]],
                "user_id": user_ids[shown_user],
                "item_id": item_ids[shown_item],
                "rank": shown_rank,
                "value": price[shown_item],
            }
        ),
    )


def _shop_labels(letter: str, n: int) -> ndarray:
    """Ids `u0001`, `u0002`, ... whose text order is their number order."""
    numbers = np.arange(1, n + 1).astype(str)
    return np.char.add(letter, np.char.zfill(numbers, max(4, len(str(n)))))


def _sigmoid(log_odds: ndarray) -> ndarray:
    """Probability of the given log odds."""
    return 1.0 / (1.0 + np.exp(-log_odds))


def _knn(bought: ndarray) -> ndarray:
    """Score items, (n_users, n_items), by the sum of their cosine similarities to what the user
    bought."""
    x = bought.astype(np.float64)
    together = x.T @ x  # users who bought both: whole numbers, exact in any order of summation
    buyers = np.maximum(together.diagonal(), 1.0)
    similarity = together / np.sqrt(np.outer(buyers, buyers))
    # Rounding hides the last bits, in which one machine's matrix product differs from another's.
    return np.round(x @ similarity, 6)


def _best_of_rows(score: ndarray, n: int) -> tuple[ndarray, ndarray, ndarray, ndarray]:
    """Cut each row of (n_users, n_items) scores to its n best; a score of 0 is no recommendation.

    Returns user code, item code, rank and score of the rows of all lists, by user and then best
    first; equal scores stand in item order.
    """
    order = np.argsort(-score, axis=1, kind="stable")[:, :n]
    best = np.take_along_axis(score, order, axis=1)
    user, position = np.nonzero(best > 0)
    return user, order[user, position], position + 1, best[user, position]

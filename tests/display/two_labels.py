"""Two models whose lists people judged for some users, and a judge for all: planted cases for pages
and tables."""

import numpy as np
import pandas as pd

import recdf as rd

USERS, ITEMS = 1500, 6


def results(
    judge="good", n=200, better="new", judged=None, metrics=("ndcg@5", "precision@5"), seed=1
):
    """Result on labels of people of n users, and on those of a judge of all users."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "model": np.repeat(["new", "old"], USERS * ITEMS),
            "user_id": np.tile(np.repeat(np.arange(USERS), ITEMS), 2),
            "rank": np.tile(np.arange(1, ITEMS + 1), 2 * USERS),
        }
    )
    rows["item_id"] = np.arange(len(rows))
    taste = rng.beta(2, 3, USERS)[rows["user_id"]]
    rows["people"] = rng.random(len(rows)) < np.clip(taste + 0.15 * (rows["model"] == better), 0, 1)
    against = np.where(rows["model"] == better, -0.1, 0.5)
    chance = {
        "good": np.where(rows["people"], 0.95, 0.05),
        "useless": 0.5,
        "biased": np.where(rows["people"], 0.9, 0.1) + against,
    }[judge]
    rows["judge"] = rng.random(len(rows)) < chance
    users = (
        rng.choice(USERS, n, replace=False) if judged is None else judged(taste[::ITEMS][:USERS])
    )
    found = []
    for who, own in (("people", users), ("judge", np.arange(USERS))):
        true = rows[rows[who]][["user_id", "item_id"]]
        own = pd.Series(own, name="user_id")
        found.append(rd.evaluate(true, rows, list(metrics), by="model", rank_col="rank", users=own))
    return found[0], found[1], rows

"""Draw the pictures of real data in gallery.md: python docs/draw_movielens.py [FOLDER]

FOLDER holds `ratings.parquet` and `movies.parquet` of MovieLens latest-small (Harper and Konstan
2015), by default `../shared/data/movielens_latest_small`. The data are not part of this project:
only pictures of aggregates are stored. Without the folder the script says so and draws nothing.

The question: from what a user rated first, which movies does the user rate with 4 or more stars
later?

* `true`: the last fifth of the ratings of each user, if they have 4 stars or more.
* `pred`: 20 movies that the user has not rated before, from three models that know the earlier
  ratings only.
  - popularity: movies by number of ratings.
  - itemknn: movies by the sum of their cosine similarities to the movies that the user liked.
  - random: any movies, as a floor.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import recdf as rd

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "shared" / "data" / "movielens_latest_small"
N_RECS = 20
LIKED = 4


def split(ratings: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The first four fifths of the ratings of each user, and the last fifth."""
    ratings = ratings.sort_values(["user_id", "timestamp", "item_id"], ignore_index=True)
    place = ratings.groupby("user_id").cumcount()
    n = ratings.groupby("user_id")["item_id"].transform("size")
    late = place >= 0.8 * n
    return ratings[~late].reset_index(drop=True), ratings[late].reset_index(drop=True)


def recommend(past: pd.DataFrame) -> pd.DataFrame:
    """20 movies for each user from each model; movies that the user has rated are left out."""
    user, users = pd.factorize(past["user_id"], sort=True)
    item, items = pd.factorize(past["item_id"], sort=True)
    rated = np.zeros((len(users), len(items)), dtype=np.float32)
    rated[user, item] = 1
    liked = rated.copy()
    liked[user, item] = past["rating"] >= LIKED
    norm = np.sqrt((liked**2).sum(axis=0))
    similar = (liked.T @ liked) / np.maximum(np.outer(norm, norm), 1)
    np.fill_diagonal(similar, 0)
    scores = {
        "itemknn": liked @ similar,
        "popularity": np.tile(rated.sum(axis=0), (len(users), 1)),
        "random": np.random.default_rng(0).random(rated.shape),
    }
    parts = []
    for model, score in scores.items():
        score = np.where(rated > 0, -np.inf, score)
        best = np.argsort(-score, axis=1, kind="stable")[:, :N_RECS]
        rows = {
            "model": model,
            "user_id": np.repeat(users, N_RECS),
            "item_id": items.to_numpy()[best].ravel(),
        }
        parts.append(pd.DataFrame(rows).assign(rank=np.tile(np.arange(1, N_RECS + 1), len(users))))
    return pd.concat(parts, ignore_index=True)


def draw(folder: Path, target: Path) -> None:
    """Draw every picture that needs no experiment."""
    ratings = pd.read_parquet(folder / "ratings.parquet")
    movies = pd.read_parquet(folder / "movies.parquet")
    past, later = split(ratings)
    true = later[later["rating"] >= LIKED][["user_id", "item_id"]]
    pred = recommend(past)
    result = rd.evaluate(
        true,
        pred,
        ["ndcg", "recall", "coverage"],
        k=[1, 5, 10, 20],
        by="model",
        items=movies[["item_id"]],
    )
    exposed = rd.diagnostics.exposure_table(pred, by="model", items=movies[["item_id"]])
    ranks = rd.diagnostics.position_table(true, pred, k=10, by="model")
    n_rated = past.groupby("user_id").size().rename("n_rated").reset_index()
    n_rated["history"] = pd.cut(
        n_rated["n_rated"], [0, 50, 150, 10**6], labels=["up to 50", "51–150", "over 150"]
    )
    users = result.per_user.merge(n_rated, on="user_id", validate="many_to_one")
    segments = rd.summarize(users, by=["model", "history"], metrics=["ndcg@10"])
    compared = result.compare_models(["ndcg@10", "recall@10"], baseline="popularity")
    pictures = {
        "curve": lambda: rd.plot.curve(result, "ndcg"),
        "forest": lambda: rd.plot.forest(compared),
        "tradeoff": lambda: rd.plot.tradeoff(result, x="coverage@10", y="ndcg@10"),
        "users": lambda: rd.plot.users(result, "ndcg@10"),
        "winners": lambda: rd.plot.winners(
            result, "ndcg@10", model="itemknn", baseline="popularity"
        ),
        "exposure": lambda: rd.plot.exposure(exposed),
        "longtail": lambda: rd.plot.longtail(exposed, past[["user_id", "item_id"]]),
        "position": lambda: rd.plot.position(ranks),
        "heat": lambda: rd.plot.heat(segments, rows="model", columns="history"),
    }
    target.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        picture()
        plt.gcf().savefig(target / f"{name}.png", dpi=80)
        plt.close("all")
    print(f"{len(pictures)} pictures of {true['user_id'].nunique():,} users")
    print(rd.leaderboard(result, k=10, baseline="popularity"))


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else FOLDER
    if not (folder / "ratings.parquet").is_file():
        print(
            f"draw_movielens: {folder.name} is absent, so nothing is drawn; see the first lines of "
            "the script"
        )
        return
    draw(folder, HERE / "gallery" / "movielens")


if __name__ == "__main__":
    main(sys.argv[1:])

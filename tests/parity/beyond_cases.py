"""What is compared of metrics beyond accuracy: library, its name, metric, arguments, frames."""

import numpy as np
import pandas as pd


def category(side):
    """Categories as aspects; the adapter of ir_measures makes "no category" one more."""
    shown = pd.Index(np.arange(200), name="item_id")
    frame = (
        side["items"]
        .set_index("item_id")["category"]
        .reindex(shown)
        .fillna("none")
        .rename("aspect")
    )
    return frame.reset_index()


def everything(side, pred):
    """The catalogue and whatever else is shown: LensKit refuses an item that it does not know."""
    return pd.unique(pd.concat([side["items"]["item_id"], pred["item_id"]]))


# library, its name, metric, arguments, frames, what is not compared
CASES = [
    ("replay", "unseen", "unseen", {}, ("plain", "holes")),
    ("replay", "surprisal", "surprisal", {"normalize": True, "divisor": "k"}, ("plain", "holes")),
    ("replay", "unexpectedness", "unexpectedness", {"divisor": "k"}, ("plain", "holes")),
    ("replay", "categories", "categories", {"items": "items"}, ("plain",)),
    (
        "replay_pandas",
        "surprisal",
        "surprisal",
        {"normalize": True, "divisor": "k"},
        ("plain", "holes"),
    ),
    ("rectools", "surprisal", "surprisal", {}, ("plain", "holes")),
    (
        "rectools",
        "popularity[normalize=True]",
        "popularity",
        {"share_of": "events"},
        ("plain", "holes"),
    ),
    (
        "recpack",
        "ild[jaccard]",
        "ild",
        {"similarity": "jaccard", "features": "features"},
        ("plain", "holes"),
    ),
    ("recommenders", "ild", "ild", {"features": "features"}, ("plain",)),
    ("recommenders", "entropy", "entropy", {}, ("plain",)),
    (
        "lenskit",
        "ils[category]",
        "ils",
        {"items": "items", "features": "category"},
        ("plain", "holes"),
    ),
    ("lenskit", "gini", "gini", {"items": everything}, ("plain", "holes")),
    ("ir_measures", "a_ndcg", "a_ndcg", {"aspects": category}, ("plain", "holes")),
    (
        "ir_measures",
        "subtopic_recall",
        "subtopic_recall",
        {"aspects": category},
        ("plain", "holes"),
    ),
    ("rectools", "accuracy", "accuracy", {"items": everything, "length": "k"}, ("plain",)),
    ("rectools", "mcc", "mcc", {"items": everything, "length": "k"}, ("plain",)),
    ("rs_metrics", "surprisal", "surprisal", {}, ("plain", "holes")),
    ("rs_metrics", "popularity", "popularity", {}, ("plain", "holes")),
    ("rs_metrics", "coverage", "coverage", {}, ("plain", "holes")),
]

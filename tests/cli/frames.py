"""Two small frames, and the call that evaluates them."""

import pandas as pd

import recdf as rd

TRUE = pd.DataFrame(
    {"user_id": [1, 1, 2, 3], "item_id": [10, 20, 30, 10], "day": ["mon", "mon", "tue", "tue"]}
)
PRED = pd.DataFrame(
    {
        "model": ["a"] * 4 + ["b"] * 4,
        "user_id": [1, 1, 2, 3, 1, 2, 2, 3],
        "item_id": [10, 40, 40, 30, 20, 10, 30, 10],
        "score": [0.5, 0.3, 0.9, 0.4, 0.5, 0.7, 0.6, 0.1],
    }
)
CALL = [
    "evaluate",
    "--true",
    "true.parquet",
    "--pred",
    "pred.parquet",
    "--by",
    "model",
    "-m",
    "mrr@2",
    "hits@2",
]


def expected(true=TRUE, pred=PRED, metrics=("mrr@2", "hits@2"), **options):
    return rd.evaluate(true, pred, list(metrics), **{"by": "model", **options})

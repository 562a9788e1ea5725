"""Two small frames without a mistake, for tests that plant one."""

import pandas as pd

TRUE = pd.DataFrame(
    {
        "user_id": [1, 1, 2],
        "item_id": [10, 11, 12],
        "relevance": [1.0, 2.0, 0.0],
        "price": [1.0, 2.0, 3.0],
    }
)
PRED = pd.DataFrame(
    {
        "user_id": [1, 1, 2],
        "item_id": [10, 13, 12],
        "score": [0.9, 0.1, 0.5],
        "place": [1, 2, 1],
        "price": [1.0, 2.0, 3.0],
    }
)


def true(**columns):
    return {"true": TRUE.assign(**columns)}


def pred(**columns):
    return {"pred": PRED.assign(**columns)}


def strings(*values):
    return pd.Series(values, dtype="str")

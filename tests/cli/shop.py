"""A small shop, and its results in a folder."""

import numpy as np
import pandas as pd

import recdf as rd

SHOP = rd.sample_shop(n_users=400, n_items=100)
GROUPS = SHOP.assignment.merge(SHOP.users[["user_id", "segment"]])
METRICS = ["revenue@10", "hits@10"]


def shown(**options):
    """Metrics of the lists that the experiment showed."""
    return rd.evaluate(
        SHOP.true, SHOP.shown, METRICS, **{"users": "pred", "value_col": "value", **options}
    )


def models(metrics=("ndcg@10", "recall@10"), **options):
    return rd.evaluate(SHOP.true, SHOP.pred, list(metrics), **{"by": "model", **options})


def written(path):
    return pd.read_parquet(path)


def sessions(frame):
    return frame.assign(session=np.where(frame["item_id"].str[-1].isin(list("02468")), 1, 2))

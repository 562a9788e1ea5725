"""A number about all lists of a model is the same, whatever order the rows of the models have."""

import numpy as np
import pandas as pd
import pytest
from registry.seeded import assert_close, quietly

import recdf as rd

N_USERS, N_ITEMS = 30, 8
MODELS = ["a", "b", "c"]


def frames():
    """`true` with ratings, and `pred` sorted by user and then by model."""
    rng = np.random.default_rng(5)
    true = pd.DataFrame(
        [(u, i) for u in range(N_USERS) for i in rng.choice(N_ITEMS, 3, replace=False)],
        columns=["user_id", "item_id"],
    ).assign(relevance=lambda rows: rng.integers(0, 2, len(rows)), value=1.5)
    pred = pd.DataFrame(
        [
            (u, model, i)
            for u in range(N_USERS)
            for model in MODELS
            for i in rng.choice(N_ITEMS, 4, replace=False)
        ],
        columns=["user_id", "model", "item_id"],
    ).assign(score=lambda rows: rng.uniform(0.01, 0.99, len(rows)), value=1.5)
    return true, pred[rng.random(len(pred)) < 0.8]


TRUE, PRED = frames()
ITEMS = pd.DataFrame({"item_id": range(N_ITEMS), "group": list("xxyyzzww"), "category": "c"})
USERS = pd.DataFrame({"user_id": range(N_USERS)}).assign(group=lambda users: users["user_id"] % 2)
OPTIONS = {"items": ITEMS, "log": TRUE, "users": USERS, "score_col": "score"}
OF_ALL_LISTS = [name for name, one in rd.METRICS.items() if one.per == "item"]


def values(call, pred, metrics, **options):
    found = quietly(call, TRUE, pred, metrics, 2, **OPTIONS, **options).summary
    return found.set_index("metric")[["value"]], found.get("model")


@pytest.mark.few(3)
@pytest.mark.parametrize("order", ["user_id", "model", "item_id"])
@pytest.mark.parametrize(
    ("call", "options", "left_out"),
    [
        (rd.evaluate, {}, ()),
        (rd.evaluate_parquet, {"buckets": 3}, ("pooled_auc",)),  # which does not add up
    ],
    ids=["whole", "parts"],
)
def test_a_model_beside_others_has_its_own_numbers(order, call, options, left_out):
    metrics = [name for name in OF_ALL_LISTS if name not in left_out]
    in_order = PRED.sort_values(order, kind="stable")
    together, models = values(call, in_order, metrics, by="model", **options)
    for model in MODELS:
        alone, _ = values(rd.evaluate, PRED[PRED["model"] == model].drop(columns="model"), metrics)
        assert_close(together[(models == model).to_numpy()], alone, model)

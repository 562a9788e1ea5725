"""Lists without ties, as frames in a good order."""

import numpy as np
import pandas as pd
import pytest
from matching.watched import (
    N_ITEMS,
    N_LISTS,
    N_PRED,
)


@pytest.fixture
def frames():
    """`true` and `pred`, both by user, and `pred` by falling score without ties."""
    rng = np.random.default_rng(7)
    users = rng.permutation(N_LISTS)
    pred = [(user, item) for user in users for item in rng.choice(N_ITEMS, N_PRED, replace=False)]
    true = [
        (user, item)
        for user in users[::-1]
        for item in rng.choice(N_ITEMS, rng.integers(1, 9), replace=False)
    ]
    true, pred = (pd.DataFrame(rows, columns=["user_id", "item_id"]) for rows in (true, pred))
    return true, pred.assign(score=np.tile(np.linspace(1, 0, N_PRED), N_LISTS))

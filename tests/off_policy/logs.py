"""Small random logs for the tests."""

import numpy as np
import pandas as pd


def bandit_log(n=40, users=11, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "user_id": rng.integers(0, users, n),
            "item_id": rng.integers(0, 5, n),
            "reward": rng.integers(0, 4, n).astype(float),
            "propensity": rng.uniform(0.05, 1, n),
            "target_propensity": rng.uniform(0, 1, n) * (rng.random(n) < 0.8),
            "q_logged": rng.uniform(0, 3, n),
            "q_target": rng.uniform(0, 3, n),
            "kept": rng.integers(1, 4, n).astype(float),
        }
    )


def slate_log(units=25, positions=3, users=7, seed=0, ragged=False):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, positions + 1, units) if ragged else np.full(units, positions)
    unit = np.repeat(np.arange(units), lengths)
    n = len(unit)
    kept = rng.integers(1, 4, units).astype(float)
    return pd.DataFrame(
        {
            "slate": unit,
            "user_id": (unit * 5) % users,
            "position": np.concatenate([np.arange(1, length + 1) for length in lengths]),
            "item_id": rng.integers(0, 9, n),
            "reward": rng.integers(0, 3, n).astype(float),
            "propensity": rng.uniform(0.2, 1, n),
            "target_propensity": rng.uniform(0.1, 1, n),
            "kept": kept[unit],
        }
    )

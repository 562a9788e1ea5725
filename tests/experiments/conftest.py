"""The recorded experiment, and random numbers that are the same in every run of a test."""

import numpy as np
import pandas as pd
import pytest
from experiments.variants import HERE


@pytest.fixture(scope="module")
def log():
    return pd.read_csv(HERE / "experiment.csv")


@pytest.fixture
def rng(request):
    return np.random.default_rng(sum(map(ord, request.node.originalname)))


@pytest.fixture
def purchases(rng):
    """Purchases of 300 users of three variants who are exposed over a week, some of them more than
    once a day."""
    n = 300
    users = pd.DataFrame(
        {"user_id": [f"u{i:03}" for i in range(n)], "variant": rng.choice(["A", "B", "C"], n)}
    )
    users["region"] = rng.integers(0, 60, n)
    start = pd.Timestamp("2026-03-25 06:00")
    users["exposed"] = start + pd.to_timedelta(rng.integers(0, 7 * 86400, n), unit="s")
    rows = users.iloc[rng.integers(0, n - 10, 4000)].reset_index(drop=True)  # ten users have no row
    rows["time"] = start + pd.to_timedelta(rng.integers(0, 12 * 86400, len(rows)), unit="s")
    rows["value"] = rng.gamma(2, 3, len(rows)).round(2)
    rows["shown"] = rng.integers(0, 4, len(rows))
    rows["wait"] = rng.exponential(1, len(rows))
    return rows, users

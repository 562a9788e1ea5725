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

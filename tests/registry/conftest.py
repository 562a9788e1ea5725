"""A registry of metrics that a test may add to."""

import importlib

import oracles
import pytest

import recdf as rd

pytest.register_assert_rewrite("registry.oracle_check", "registry.invariance_checks")
metric_module = importlib.import_module(
    "recdf.metrics.metric"
)  # recdf.metrics.metric is the decorator


@pytest.fixture
def register(monkeypatch):
    """Register a metric for one test, with the oracle of a metric that it pretends to be."""
    monkeypatch.setattr(metric_module, "METRICS", dict(rd.METRICS))
    known = dict(oracles.ORACLES)

    def wrong(kernel, pretends="recall"):
        made = rd.metric(kernel)
        # The registry of the package is the copy now; `rd.METRICS` was bound to the true one on
        # import.
        oracles.ORACLES[made.name] = oracles.ORACLES[pretends]
        return made

    yield wrong
    for name in oracles.ORACLES.keys() - known.keys():
        del oracles.ORACLES[name]

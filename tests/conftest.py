"""Hypothesis without deadlines or chance: the same examples on every run, and no minutes spent on
shrinking them.

The profile `soak` tries many more examples, which differ from run to run: `pytest
--hypothesis-profile=soak`.
"""

import gc
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, settings

pytest.register_assert_rewrite(
    "partitions.parquet_files"
)  # before the first folder of tests imports it

# Processes that tests start keep the bytecode of the package; compiling it takes longer than most
# of what they do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

if "PYTEST_XDIST_WORKER" in os.environ:
    # There is a worker for each core. A second thread in each would only wait for the first, and
    # starting it costs more than the few rows of a test. Arrow reads this variable when it is
    # imported, and so do processes that a test starts. tests/inputs/test_threads.py sets the number
    # of threads itself.
    os.environ["OMP_NUM_THREADS"] = "1"

QUICK = {
    "max_examples": 30,
    "derandomize": True,
    "deadline": None,
    "database": None,
    "phases": [Phase.explicit, Phase.generate],
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("recdf", **QUICK)
settings.register_profile(
    "soak", **{**QUICK, "max_examples": 2000, "derandomize": False, "phases": list(Phase)}
)
settings.load_profile("recdf")


@pytest.fixture
def nothing_left_behind(tmp_path, monkeypatch):
    """The folder where temporary files are made, which must be empty at the end."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


class Leftovers:
    """What a test leaves is gone after it, for the tests that follow in its process: open figures,
    and metrics that the test or doctest made."""

    def pytest_collection_finish(self):
        """Thousands of tests stay in memory to the end: the garbage collector need not look at them
        again and again."""
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self):
        done = yield
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
        if "recdf" in sys.modules:
            rd = sys.modules["recdf"]
            for name in rd.METRICS.keys() - set(rd.metrics.__all__):
                del rd.METRICS[name]
        return done


def pytest_configure(config):
    config.pluginmanager.register(Leftovers())


@pytest.fixture
def resized():
    """Give the pieces of the package other sizes for the rest of a test, such as
    `resized(list_block_rows=4)`."""
    from recdf.inputs.sizes import (
        sized,
        sizes,
    )  # after the number of threads is set, which Arrow reads once

    with ExitStack() as stack:
        yield lambda **given: stack.enter_context(sized(replace(sizes(), **given)))

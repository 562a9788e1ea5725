"""What holds for every test: examples of Hypothesis, processor time, and what a test leaves behind.

Hypothesis has neither deadlines nor chance: the same examples on every run, and no minutes spent on
shrinking them. It tries more of them in CI; cases that chance brings rarely stand beside a test as
its `@example`, so that every run has them. The profile `soak` tries many more, which differ from
run to run: `pytest --hypothesis-profile=soak`.
"""

import functools
import gc
import os
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import pytest
from _pytest.doctest import DoctestModule
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
    # imported, and so do processes that a test starts. tests/inputs/test_machine.py sets the number
    # of threads itself.
    os.environ["OMP_NUM_THREADS"] = "1"

# What a test writes need not survive a loss of power. The command waits for the disk at each of its
# files, which takes longer than writing them; processes that a test starts still do.
os.fsync = lambda descriptor: None

# The objects of collected tests stay. So the garbage collector looks for others less often.
gc.set_threshold(100_000, 50, 100)

IN_CI = bool(os.environ.get("CI"))
QUICK = {
    "max_examples": 20 if IN_CI else 10,
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


class ProcessorTime:
    """The processor time of each test and of the processes that it starts, without its end, at
    which the fixtures of the whole run may stop their processes. A run ends with the
    tests over `NAMED` seconds that have neither of the marks `long` and `slow`; in CI those over
    `REFUSED` seconds fail it. This is the only place that looks at a clock."""

    NAMED, REFUSED = 0.3, 3.0

    def __init__(self):
        self.spent = {}
        self.before = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self):
        self.before = sum(os.times()[:4])
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        report = yield
        now = sum(os.times()[:4])
        report.processor_time = now - self.before  # a worker sends it along with the report
        self.before = now
        return report

    def pytest_runtest_logreport(self, report):
        if report.when != "teardown" and not {"long", "slow"} & set(report.keywords):
            time = getattr(report, "processor_time", 0.0)  # a worker that crashed sends none
            self.spent[report.nodeid] = self.spent.get(report.nodeid, 0.0) + time

    def over(self, limit):
        found = [(time, name) for name, time in self.spent.items() if time > limit]
        return sorted(found, reverse=True)

    def pytest_sessionfinish(self, session):
        if IN_CI and session.exitstatus == 0 and self.over(self.REFUSED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        found = self.over(self.NAMED)
        if not found:
            return
        terminalreporter.section("processor time")
        terminalreporter.line(f"Without a mark, over {self.NAMED} s of processor time:")
        for time, name in found:
            refused = IN_CI and time > self.REFUSED
            say = " (too long: speed it up, split it, or mark it long)" if refused else ""
            terminalreporter.line(f"{time:6.2f} s  {name}{say}")


def _generate_each_shop_once():
    """Most pages, examples of docstrings and many tests begin with `rd.sample_shop()`, which takes
    longer than what they do with it. They get copies."""
    import recdf as rd  # after the number of threads is set, which Arrow reads once

    generated = functools.cache(rd.sample_shop)

    @functools.wraps(rd.sample_shop)
    def sample_shop(*given, **named):
        shop = generated(*given, **named)
        return type(shop)(**{name: frame.copy() for name, frame in vars(shop).items()})

    rd.sample_shop = sample_shop


@contextmanager
def _alone(path):
    """Until the end of this block another worker waits that comes to the same file. So one of them
    compiles a file, and the others read its bytecode; they follow one file behind."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks: each worker compiles each file
        yield
        return
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    if not isinstance(collector, pytest.Module):
        return (yield)
    with _alone(collector.path):
        return (yield)


def pytest_configure(config):
    if not config.getoption("numprocesses", None):  # a worker, or the only process
        with _alone(__file__):
            _generate_each_shop_once()
    config.pluginmanager.register(Leftovers())
    config.pluginmanager.register(ProcessorTime())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Of the cases of a test that is marked `few(n)`, which try one rule on other values, the quick
    suite takes n, evenly among all; the others carry the mark `long`."""
    cases = {}
    for item in items:
        if (mark := item.get_closest_marker("few")) and not item.get_closest_marker("long"):
            cases.setdefault((item.parent.nodeid, item.originalname, mark.args[0]), []).append(item)
    for (_, _, n), some in cases.items():
        quick = {i * (len(some) - 1) // max(n - 1, 1) for i in range(n)}
        for i, item in enumerate(some):
            if i not in quick:
                item.add_marker(pytest.mark.long)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Doctests stand in the package: the files of tests are not read for any, which would take as
    long as the collection of the tests themselves."""
    found = yield
    return [one for one in found if not isinstance(one, DoctestModule)]


@pytest.fixture
def without_pictures(monkeypatch):
    """Pages that draw no picture, for tests that read their words: pictures take half the time of a
    page. `test_picture_matrix` and `test_report` of tests/display draw those of odd data, too."""
    from recdf.display.plot.picture import Drawing
    from recdf.display.report import about_models

    monkeypatch.setattr(about_models, "drawing", lambda *_, **__: Drawing({}, svg="<svg/>"))


@pytest.fixture
def resized():
    """Give the pieces of the package other sizes for the rest of a test, such as
    `resized(list_block_rows=4)`."""
    from recdf.inputs.machine import (  # after the number of threads is set, which Arrow reads once
        sized,
        sizes,
    )

    with ExitStack() as stack:
        yield lambda **given: stack.enter_context(sized(replace(sizes(), **given)))

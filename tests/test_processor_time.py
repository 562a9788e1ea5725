"""A run names its unmarked tests over .3 s of processor time, and fails in CI for those over 3 s.

No other test looks at a clock.
"""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

TESTS = Path(__file__).parent


@pytest.fixture
def watching(request):
    """The class of the plugin."""
    plugins = map(type, request.config.pluginmanager.get_plugins())
    return next(one for one in plugins if one.__name__ == "ProcessorTime")


@pytest.fixture
def run(watching, monkeypatch):
    """What a run says at its end, and its exit code, for phases (test, when, seconds, marks)."""

    def end(phases, ci):
        monkeypatch.setitem(watching.pytest_sessionfinish.__globals__, "IN_CI", ci)
        watch, lines = watching(), []
        for name, when, seconds, *marks in phases:
            watch.pytest_runtest_logreport(
                SimpleNamespace(nodeid=name, when=when, processor_time=seconds, keywords=marks)
            )
        session = SimpleNamespace(exitstatus=0)
        watch.pytest_sessionfinish(session)
        watch.pytest_terminal_summary(SimpleNamespace(section=lines.append, line=lines.append))
        return "\n".join(lines), int(session.exitstatus)

    return end


LONG = [("long", "call", 9.0, "long"), ("slow", "call", 9.0, "slow")]


def test_setup_and_call_of_a_test_count_together(run):
    phases = [("a", "setup", 0.2), ("a", "call", 0.2), ("b", "call", 0.2), *LONG]
    said, code = run([*phases, ("b", "teardown", 9.0)], ci=True)
    assert said.splitlines()[1:] == [
        "Without a mark, over 0.3 s of processor time:",
        "  0.40 s  a",
    ]
    assert code == 0


@pytest.mark.parametrize(("ci", "code"), [(True, 1), (False, 0)])
def test_a_test_over_three_seconds_fails_in_ci(run, ci, code):
    said, found = run([("a", "call", 3.1), *LONG], ci)
    assert found == code
    assert ("mark it long" in said) is ci


def test_a_run_of_quick_and_marked_tests_says_nothing(run):
    assert run([("a", "call", 0.1), *LONG], ci=True) == ("", 0)


def test_a_worker_that_crashed_sends_a_report_without_a_time(watching):
    watch = watching()
    watch.pytest_runtest_logreport(SimpleNamespace(nodeid="a", when="???", keywords=[]))
    assert watch.over(0.0) == []


def test_no_test_looks_at_a_clock():
    clock = re.compile(r"perf_counter|process_time\(|monotonic\(|time\.time\(|\bsleep\(")
    found = [
        path.name
        for path in TESTS.rglob("test_*.py")
        if path != Path(__file__) and clock.search(path.read_text(encoding="utf-8"))
    ]
    assert not found

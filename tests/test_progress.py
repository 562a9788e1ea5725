"""The progress of long calls: silent where nobody reads it, and one line of all loops inside each
other elsewhere."""

import io
import sys
import threading

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf import progress as module
from recdf.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True

    @property
    def lines(self):
        return self.getvalue().splitlines()


@pytest.fixture
def start(monkeypatch):
    """Make stderr a terminal. Tests call this themselves, because pytest sets stderr
    after fixtures."""

    def terminal(seconds=module.SHOWN_AFTER):
        monkeypatch.setattr(module, "SHOWN_AFTER", seconds)
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return terminal


class Clock:
    """A clock that moves by one second whenever it is read."""

    now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def test_a_terminal_gets_a_line_every_two_seconds(start):
    terminal = start()
    with Progress(6, "work", clock=Clock()) as progress:
        for _ in range(6):
            progress.add()
    # The clock is read once at the start, once in each step, and once more for each line.
    assert terminal.lines == [f"recdf: {share}% of work done" for share in (33, 67, 100)]


def test_a_short_call_says_nothing(start):
    terminal = start()
    with Progress(3, "work", clock=lambda: 0.0) as progress:
        progress.add(3)
    assert terminal.lines == []


def test_what_is_asked_for_is_said_even_of_a_short_call(start, monkeypatch):
    terminal = start()
    with Progress(3, "work", show=True, clock=lambda: 0.0) as progress:
        progress.add(1)
    assert terminal.lines == ["recdf: 100% of work done"]
    with Progress(3, "work", show=False, clock=Clock()) as progress:
        progress.add(3)
    assert len(terminal.lines) == 1
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # no terminal
    with Progress(3, "work", clock=Clock()) as progress:
        progress.add(3)
    assert sys.stderr.getvalue() == ""


def test_an_inner_loop_moves_the_outer_one_within_its_step(start):
    terminal = start(seconds=0.0)
    with Progress(2, "all") as outer:
        for _ in range(2):
            with Progress(4, "a part") as inner:
                inner.add(2)
            outer.add()
    assert terminal.lines == [f"recdf: {share}% of all done" for share in (25, 50, 75, 100)]


def test_an_error_leaves_nothing_behind(start):
    terminal = start(seconds=0.0)
    with pytest.raises(ValueError, match="broken"), Progress(2, "all"), Progress(2, "a part"):
        raise ValueError("broken")
    with Progress(1, "the next call") as progress:
        progress.add()
    assert terminal.lines == ["recdf: 100% of the next call done"]


def test_threads_are_silent(start):
    terminal = start(seconds=0.0)

    def work():
        with Progress(1, "work") as progress:
            progress.add()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert terminal.lines == []


@pytest.fixture
def users():
    rng = np.random.default_rng(0)
    n = 1500  # two tiles of random weights, so that a call says more than its end
    frame = pd.DataFrame(
        {"user_id": np.arange(n), "hits@10": rng.random(n), "mrr@10": rng.random(n)}
    )
    return frame.assign(variant=np.where(np.arange(n) % 2, "A", "B"))


def models(users):
    halved = users.assign(model="pop", **{"hits@10": users["hits@10"] / 2})
    return pd.concat([users.assign(model="als"), halved], ignore_index=True)


def log(n=1500):
    rng = np.random.default_rng(0)
    reward = rng.integers(0, 2, n)
    return pd.DataFrame(
        {"user_id": np.arange(n), "reward": reward, "propensity": 0.5, "target_propensity": 0.4}
    )


LONG = {
    "bootstrap_ci": lambda users: rd.experiments.bootstrap_ci(users, "hits@10", n_resamples=20),
    "compare_models": lambda users: rd.compare_models(
        models(users), "hits@10", test="bootstrap", n_resamples=20
    ),
    "compare_models by randomization": lambda users: rd.compare_models(
        models(users), "hits@10", test="randomization", n_resamples=20
    ),
    "compare_models by t": lambda users: rd.compare_models(models(users), ["hits@10", "mrr@10"]),
    "compare_variants": lambda users: rd.compare_variants(
        users, "hits@10", control="A", test="bootstrap", n_resamples=20
    ),
    "compare_variants by permutation": lambda users: rd.compare_variants(
        users, "hits@10", control="A", test="permutation", n_resamples=5000
    ),
    "ope_estimate": lambda _: rd.ope.estimate(log(), interval="bootstrap", n_resamples=20),
    "check": lambda _: rd.check({"ann": ["a"]}, {"ann": ["a"]}),
    "compare_conventions": lambda _: rd.diagnostics.compare_conventions(
        {"ann": ["a"]}, {"ann": ["a"]}, metrics=["ndcg", "precision"]
    ),
    "evaluate": lambda _: rd.evaluate({"ann": ["a"]}, {"ann": ["a"]}, ["ndcg", "recall"]),
}


@pytest.mark.parametrize("name", LONG)
def test_long_calls_show_how_far_they_are(name, users, start):
    terminal = start(seconds=0.0)
    LONG[name](users)
    lines = terminal.lines
    assert len(lines) > 1
    shares = [int(line.removeprefix("recdf: ").split("%")[0]) for line in lines]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert all(line.endswith(f"% of {name.split()[0]} done") for line in lines)


def test_the_same_numbers_with_progress_and_without(users, capsys):
    silent = rd.experiments.bootstrap_ci(users, "hits@10", n_resamples=20, progress=False)
    assert capsys.readouterr().err == ""
    pd.testing.assert_frame_equal(
        rd.experiments.bootstrap_ci(users, "hits@10", n_resamples=20, progress=True), silent
    )
    assert "100%" in capsys.readouterr().err

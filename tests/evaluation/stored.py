"""Results that tests write into folders."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import recdf as rd

TRUE = {"u": ["a", "b"], "v": ["c"]}
OLD = rd.evaluate(TRUE, {"u": ["a"], "v": ["c"]}, "mrr@1")
NEW = rd.evaluate(TRUE, {"u": ["x", "a"], "v": ["c"]}, ["ndcg@1", "mrr@1"])
FILES = {"per_user.parquet", "summary.parquet"}


def equal(one, two):
    """Equal in every value, dtype and word of the spec, said by pandas and not by recdf."""
    pd.testing.assert_frame_equal(one.per_user, two.per_user, check_exact=True)
    pd.testing.assert_frame_equal(one.summary, two.summary, check_exact=True)
    assert one.per_user.attrs == two.per_user.attrs == {"recdf": one.spec}
    assert one.summary.attrs == two.summary.attrs == {"recdf": one.spec}
    assert one.spec == two.spec
    assert one == two


def names(folder):
    return {path.name for path in Path(folder).iterdir()}


FULL = OSError(28, "No space left on device")


def fail_at(call, monkeypatch, target, error=FULL):
    """Make one call of a function fail, the others work."""
    module, name = target
    works, calls = getattr(module, name), []

    def fails(*args, **kwargs):
        calls.append(args)
        if len(calls) == call:
            raise error
        return works(*args, **kwargs)

    monkeypatch.setattr(module, name, fails)


def python(code, *arguments):
    """What a Python process that runs some code beside this one prints."""
    environment = os.environ | {"PYTHONPATH": str(Path(rd.__file__).parents[1])}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="fork and SIGKILL are of POSIX")
# A process starts slowly, so one of them forks all the others, before Arrow has threads that a fork
# would lose.
FORKING = """
import os, signal, sys, traceback, warnings
# Threads of numpy wait, and hold no lock.
warnings.filterwarnings("ignore", "This process", DeprecationWarning)
import recdf as rd

def forked(work, *given):
    child = os.fork()
    if child:
        return child
    try:
        work(*given)
        # At once: Arrow may abort a process that ends while its threads start (pyarrow 26).
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)

def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

def kill_at_rename(step):
    replace, calls = os.replace, []

    def crash(*args):
        calls.append(args)
        if len(calls) == step:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(*args)

    os.replace = crash
"""

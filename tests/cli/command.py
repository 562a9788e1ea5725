"""The command `recdf`, called as a shell calls it."""

import os
from pathlib import Path

from recdf.cli import main

# The environment of a process that finds this checkout's package.
WITH_RECDF = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}


def run(capsys, *arguments):
    """Exit code, stdout, stderr of `recdf arguments`; numbers and paths may be given as they
    are."""
    code = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def fails(capsys, *arguments):
    """The one line with which `recdf arguments` fails."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def refused(capsys, *arguments):
    """The one line with which `recdf arguments` refuses a result: exit code 1, and nothing on
    stdout."""
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def instead(call, arguments):
    """A call with these arguments, which replace flags with one value that the call has already."""
    again = [
        place for place, word in enumerate(call) if str(word).startswith("--") and word in arguments
    ]
    kept = [word for place, word in enumerate(call) if not {place, place - 1} & set(again)]
    return [*kept, *arguments]

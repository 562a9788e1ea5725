"""The command `recdf`: files in, a table on the screen, parquet files out.

Contract: `main(argv)` returns the exit code. Results go to stdout. A problem is one line on stderr and exit code 2 (or
1 where the result is refused), and a warning of recdf is one line on stderr. The options are made from those of the
functions and never written twice.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

import pyarrow as pa

from .._version import __version__
from ..errors import EmptyPopulationError, NoOverlapWarning, OptionError, RecdfError, RecdfWarning
from . import deciding, demo, evaluating, impressions, off_policy, reporting
from .arguments import Parser, in_flags, option_texts
from .config import add_config, with_config
from .output import add_output

__all__ = ["main", "option_texts", "run"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : list of str, optional
        Arguments without the program's name; by default those of the process.

    Returns
    -------
    int
        0: the result is sound. 1: it is refused, or there is a finding that `--fail-on` asks about. 2: the call or a
        file is wrong, after one line on stderr that says what. 130 after Ctrl-C, 143 after SIGTERM.

    Examples
    --------
    >>> from recdf.cli import main
    >>> main(["evaluate", "--true", "t.txt", "--pred", "p.txt", "-m", "ndcg@10"])  # and a line on stderr
    2
    """
    parser, commands = _parser()
    words = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in words if not word.startswith("-")), "")
    try:
        if command in commands:
            words = with_config(words, commands[command], command)
        given = parser.parse_args(words)
    except SystemExit as stop:  # --help, --version, or a usage error that has been printed
        return stop.code if isinstance(stop.code, int) else 2
    except (OptionError, OSError) as error:
        print(f"recdf {command}: error: {_one_line(error, {})}", file=sys.stderr)
        return 2
    with _ended_by_sigterm(), warnings.catch_warnings():
        warnings.simplefilter("always", RecdfWarning)
        if not getattr(given, "allow_empty", True):
            warnings.simplefilter("error", NoOverlapWarning)
        seen: list[Warning | str] = []
        warnings.showwarning = _show_warning(warnings.showwarning, given, seen)
        code = _run(given)
    return 1 if code == 0 and seen and "warning" in getattr(given, "fail_on", []) else code


def run() -> None:
    """Run the program `recdf`, and end with the exit code of `main`, whatever libraries do while the interpreter ends.

    The threads of Arrow may abort a process that ends soon after they started (seen with pyarrow 26: exit code 134
    after a sound result). All files are closed and all output is written by then, so the process ends at once.
    """
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _run(given: argparse.Namespace) -> int:
    flags = given.parser.flags()
    try:
        code = given.run(given) or 0
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output, such as `head`, has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except _Terminated:
        return 128 + signal.SIGTERM
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except (EmptyPopulationError, NoOverlapWarning) as error:
        refused = not getattr(given, "allow_empty", False)
        if refused or not given.quiet:
            how = "; pass --allow-empty to go on all the same" if refused else ""
            what = "refused" if refused else "nothing to evaluate"
            print(f"recdf {given.command}: {what}: {_one_line(error, flags)}{how}", file=sys.stderr)
        return int(refused)
    except (RecdfError, OSError, ValueError, TypeError, MemoryError, ImportError, pa.ArrowException) as error:
        if given.verbose:
            traceback.print_exc()
        print(f"recdf {given.command}: error: {_one_line(error, flags)}", file=sys.stderr)
        return 2
    except Exception as error:  # a trace would end with 1, which says that the result was refused
        if given.verbose:
            traceback.print_exc()
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        print(f"recdf {given.command}: error: a defect of recdf: {what} (-v shows where)", file=sys.stderr)
        return 2
    return code


class _Terminated(KeyboardInterrupt):
    """Raised at SIGTERM; code that cleans up after Ctrl-C also cleans up after this."""


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Make SIGTERM end the command as Ctrl-C does: temporary files are removed and the old result is kept."""

    def stop(*_: object) -> None:
        raise _Terminated

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread, where no signal arrives
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _parser() -> tuple[argparse.ArgumentParser, Mapping[str, Parser]]:
    """Return the parser, and the parser of each command by its name."""
    parser = Parser(prog="recdf", description="Evaluate logged recommendations.")
    parser.add_argument("--version", action="version", version=f"recdf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    evaluating.add_evaluate(commands)
    evaluating.add_check(commands)
    impressions.add_impressions(commands)
    deciding.add_compare(commands)
    deciding.add_experiment(commands)
    off_policy.add_ope(commands)
    reporting.add_report(commands)
    demo.add_demo(commands)
    for name, command in commands.choices.items():
        add_config(command)
        add_output(command, fail_on=name in ("evaluate", "check", "compare", "experiment"))
    return parser, commands.choices


# ------------------------------------------------------------------------------------------ messages


def _one_line(error: BaseException, flags: Mapping[str, str]) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:  # of Arrow, which names no file
        return f"No space left on the device of --out or of the temporary folder ({tempfile.gettempdir()})"
    return in_flags(" ".join(str(error).split()) or type(error).__name__, flags)


def _show_warning(
    usual: Callable[..., None], given: argparse.Namespace, seen: list[Warning | str]
) -> Callable[..., None]:
    """Print a warning of recdf as one line in the words of the command line, and remember it."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, RecdfWarning):
            return usual(message, category, filename, lineno, file, line)
        seen.append(message)
        if not given.quiet:
            text = in_flags(" ".join(str(message).split()), given.parser.flags())
            print(f"recdf: warning: {text}", file=sys.stderr)
        return None

    return show

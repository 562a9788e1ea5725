"""The command `recdf`: files in, a table on the screen, parquet files out.

Contract: `main(argv)` returns the exit code. What was asked for goes to stdout; a problem is one line on
stderr and code 2, a warning of recdf one line on stderr. Options are those of the functions, never written twice.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TextIO

import pyarrow as pa

from .._version import __version__
from ..errors import RecdfError, RecdfWarning
from . import deciding, demo, evaluating, impressions, off_policy, reporting
from .arguments import Parser, in_flags, option_texts

__all__ = ["main", "option_texts"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 after one line that says what is wrong.

    Parameters
    ----------
    argv : list of str, optional
        Arguments without the program's name; by default those of the process.

    Returns
    -------
    int
        Exit code; that of `recdf check` is 1 when it finds an error in the data.

    Examples
    --------
    >>> from recdf.cli import main
    >>> main(["evaluate", "--true", "t.txt", "--pred", "p.txt", "-m", "ndcg@10"])  # and a line on stderr
    2
    """
    try:
        given = _parser().parse_args(argv)
    except SystemExit as stop:  # --help, --version, or a usage error that has been printed
        return stop.code if isinstance(stop.code, int) else 2
    code = 0
    with warnings.catch_warnings():
        warnings.simplefilter("always", RecdfWarning)
        warnings.showwarning = _show_warning(warnings.showwarning)
        try:
            code = given.run(given) or 0
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, head say, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            return 130
        except (RecdfError, OSError, ValueError, TypeError, MemoryError, pa.ArrowException) as error:
            print(f"recdf {given.command}: error: {_one_line(error, given)}", file=sys.stderr)
            return 2
    return code


def _parser() -> argparse.ArgumentParser:
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
    return parser


# ------------------------------------------------------------------------------------------ messages


def _one_line(error: BaseException, given: argparse.Namespace) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = " ".join(str(error).split()) or type(error).__name__
    return in_flags(text, given.parser.flags())


def _show_warning(usual: Callable[..., None]) -> Callable[..., None]:
    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, RecdfWarning):
            print(f"recdf: warning: {' '.join(str(message).split())}", file=sys.stderr)
        else:
            usual(message, category, filename, lineno, file, line)

    return show

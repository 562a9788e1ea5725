"""The command `recdf`: files in, a table on the screen, parquet files out.

Contract: `main(argv)` returns the exit code. Results go to stdout. A problem is one line on stderr
and exit code 2 (or 1 where the result is refused), and a warning of recdf is one line on stderr.
The options are made from those of the functions and never written twice.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import os
import shlex
import signal
import sys
import time
import traceback
import warnings
from argparse import Namespace
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow import ArrowException

from .._version import version_and_build
from ..errors import (
    EmptyPopulationError,
    NoOverlapWarning,
    OptionError,
    RecdfError,
    RecdfWarning,
    closest,
)
from ..formats.file_sets import FileSet, is_remote
from ..publishing import (
    PER_USER,
    RESULT_FILES,
    is_hidden,
    plain_file,
    publish_text,
    refuse_files,
)
from .arguments import Parser, given_files, in_flags, with_formats
from .commands import STDOUT, complain, fail_on
from .deciding import COMPARE, EXPERIMENT, GATE
from .evaluating import AUDIT, CHECK, EVALUATE, Unexpected
from .made_commands import MADE
from .option_files import with_files
from .stored_runs import DEMO, REPORT

__all__ = ["main", "run"]

# Errors that tell of the call, of its files or of the machine.
EXPECTED = (RecdfError, OSError, ValueError, TypeError, MemoryError, ImportError, ArrowException)


# What Python makes of a path that is not UTF-8, which Arrow cannot open.
NOT_UTF8 = (
    "{!r} is not UTF-8, and files are opened by names in UTF-8 only: rename the file or folder"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    argv : list of str, optional
        Arguments without the program's name; by default those of the process.

    Returns
    -------
    int
        0: the result is sound. 1: it is refused, or there is a finding that `--fail-on` asks about.
        2: the call or a file is wrong. 4: the same call may work later, since room or memory ran
        out, or a file was moved while it was read. Before 2 and 4, one line on stderr says what. 3:
        `recdf gate` is undecided. 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP.

    Examples
    --------
    >>> from recdf.cli import main
    >>> main(
    ...     ["evaluate", "--true", "t.txt", "--pred", "p.txt", "-m", "ndcg@10"]
    ... )  # and a line on stderr
    2
    """
    parser, commands = _parser()
    words = sys.argv[1:] if argv is None else argv
    if odd := next((w for w in words if w.encode("utf-8", "ignore").decode() != w), None):
        complain(f"recdf: error: {NOT_UTF8.format(odd)}")
        return 2
    command = next((word for word in words if not word.startswith("-")), "")
    of_project: list[str] = []
    try:
        if command in commands:
            words, of_project = with_files(words, commands, command)
        given, unknown = parser.parse_known_args(words)
        if unknown:
            meant = closest(unknown[0].partition("=")[0], given.parser._option_string_actions)
            given.parser.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
    except SystemExit as stop:  # --help, --version, or a usage error that has been printed
        return stop.code if isinstance(stop.code, int) else 2
    except (OptionError, OSError) as error:
        complain(f"recdf {command}: error: {_one_line(error)}")
        return 2
    if of_project and (not given.quiet or "--quiet" in of_project):
        complain(f"recdf: options of {given.project}: {shlex.join(of_project)}")
    seen: list[tuple[str, str]] = []
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        """Print a warning of recdf as one line in the words of the command, and remember it."""
        if not issubclass(category, RecdfWarning):
            usual(message, category, *place, **more)
            return
        seen.append(("warning", str(message)))
        if not given.quiet:
            complain(f"recdf: warning: {' '.join(str(message).split())}")

    try:
        with _ended_by_signals(), warnings.catch_warnings(), in_flags(given.parser.flags()):
            warnings.simplefilter("always", RecdfWarning)
            if not getattr(given, "allow_empty", True):
                warnings.simplefilter("error", NoOverlapWarning)
            warnings.showwarning = show
            record = RunRecord(given, words)
            code = _run_command(given, record)
            code = code or fail_on(given, seen)
            if code in (0, 1, 3):
                record.write(code)
            return code
    except OSError as error:
        complain(
            f"recdf {command}: error: the record of the run cannot be written: {_one_line(error)}"
        )
        return 4 if can_be_retried(error) else 2
    except KeyboardInterrupt as stopped:
        return 128 + (stopped.args or [signal.SIGINT])[0]


def run() -> None:
    """Run the program `recdf`, and end with the exit code of `main`, whatever libraries do while
    the interpreter ends.

    The threads of Arrow may abort a process that ends soon after they started (seen with pyarrow
    26: exit code 134 after a sound result). All files are closed and all output is written by then,
    so the process ends at once.
    """
    _open_streams()
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _open_streams() -> None:
    """Open what the caller has closed (`>&-`): else a file that is written would get the number of
    a stream.

    An ASCII terminal shows other letters as escapes.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # the lowest free number is that of the stream
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "w", encoding="utf-8"))
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _run_command(given: Namespace, record: RunRecord) -> int:
    """Run the command, say on stderr in one line what is wrong, and return the exit code."""
    what = ""
    try:
        with_formats(given)
        record.check()
        code = given.run(given)
        if changed := record.changed():
            what = f"error: {changed[0]} changed while it was read; run this again"
            code = 4
    except Unexpected as error:
        what = f"refused: {_one_line(error)}"
        code = 1
    except (EmptyPopulationError, NoOverlapWarning) as error:
        code = int(not getattr(given, "allow_empty", False))
        if code:
            what = f"refused: {_one_line(error)}; pass --allow-empty to go on all the same"
        elif not given.quiet:
            what = f"nothing to evaluate: {_one_line(error)}"
    except Exception as error:
        if given.verbose:
            complain(traceback.format_exc())
        if isinstance(error, EXPECTED):
            changed = record.changed()
            moved = f" ({changed[0]} was moved or changed while it was read)" if changed else ""
            what = f"error: {_one_line(error)}{moved}"
            code = 4 if changed or can_be_retried(error) else 2
        else:  # a trace would end with 1, which says that the result was refused
            text = f"{type(error).__name__}: {' '.join(str(error).split())}"
            what = f"error: a defect of recdf: {text} (-v shows where)"
            code = 2
    if what:
        complain(f"recdf {given.command}: {what}")
    return code


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Make Ctrl-C, SIGTERM and SIGHUP end the command in order: temporary files go, and the old
    result is kept.

    A signal that the caller ignores, as `nohup` does with SIGHUP, stays ignored.
    """
    before: dict[int, Any] = {}

    def stop(number: int, _: object) -> None:
        for one in before:  # a second signal does not stop the cleaning up
            signal.signal(one, signal.SIG_IGN)
        raise KeyboardInterrupt(
            number
        )  # code that cleans up after Ctrl-C cleans up after the others too

    with suppress(ValueError):  # not in the main thread, where no signal arrives
        for name in {"SIGINT", "SIGTERM", "SIGHUP"} & set(dir(signal)):
            number = getattr(signal, name)
            if signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@cache
def _parser() -> tuple[argparse.ArgumentParser, Mapping[str, Parser]]:
    """Return the parser, and the parser of each command by its name."""
    parser = Parser(
        prog="recdf", description="Evaluate logged recommendations. Begin with: recdf demo"
    )
    parser.add_argument("--version", action="version", version=f"recdf {version_and_build()}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for command in (EVALUATE, CHECK, AUDIT, COMPARE, EXPERIMENT, GATE, REPORT, *MADE, DEMO):
        command.add(commands)
    return parser, commands.choices


# ------------------------------------------------------------------------------------------
# messages


def _one_line(error: BaseException) -> str:
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return NOT_UTF8.format(str(error.object))
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split()) or type(error).__name__


# ------------------------------------------------------------------------------------------
# `run.json` beside a result says what was run on which files, and how it ended. The inputs are
# listed before the command reads them, so that one that has gone or changed since is found.


RECORD = "run.json"
HASHED_AT_ONCE, MOST_BLOCKS = 2**20, 64  # of a larger file, so many blocks are hashed
# Errors of the machine and not of the call: with more room, memory or time the same call may work.
PASSING = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ENOMEM,
    errno.EIO,
    errno.ESTALE,
    errno.EMFILE,
    errno.ENFILE,
    errno.EAGAIN,
    errno.EBUSY,
    errno.ETIMEDOUT,
    errno.ECONNRESET,
    errno.ECONNREFUSED,
    errno.ENETUNREACH,
}


class RunRecord:
    """The files that a command is given and those that it may write, and what is written about its
    run."""

    def __init__(self, given: Namespace, words: Iterable[str]) -> None:
        self.given, self.words, self.started = given, words, time.time()
        # The arguments that name files of this machine; the command itself says what is wrong with
        # a name.
        self.inputs: dict[str, list[str]] = {}
        self.out: Path | None = getattr(given, "out", None)
        names = getattr(given, "writes", [""])  # in the folder; "" is a file itself
        self.outputs = [] if self.out is None else [self.out / name for name in names]
        # What an earlier run of this command wrote beside a result is no input, and is replaced.
        replaced = {os.path.realpath(path) for path in self.outputs}
        for action in given.parser._actions:
            values = getattr(given, action.dest, None)
            usage = {*str(action.metavar).split()}
            of_runs = usage & {"RESULTS", "BEFORE", "AFTER", "FOLDER"}
            is_read = of_runs or usage & {"FILE", "LOG", "TABLE"}
            if is_read and values is not None and action.dest != "out":
                self.inputs[action.dest] = [
                    path
                    for one in (values if isinstance(values, list) else [values])
                    for path in _files_read(str(one), replaced if of_runs else ())
                ]
        self.states = {path: _state(path) for paths in self.inputs.values() for path in paths}
        self.older = {path: _state(path) for path in self._place()[1]}

    def check(self) -> None:
        """Check all files that the command and its record are written to before it does any work.
        None of them may be one of its inputs, which would be lost."""
        place = self._place()[0]
        if self.out is not None and os.path.isdir(place):
            raise IsADirectoryError(
                errno.EISDIR, "is a folder; expected a file or none", str(place)
            )
        with suppress(FileNotFoundError, NotADirectoryError):  # but not that a name is too long
            os.lstat(place)
        beside = given_files(self.given, "junit", "summary")
        read = {}
        for path in self.states:
            real = Path(os.path.realpath(path))
            read[real] = path
            if real.parent.name == PER_USER:  # rows in parts
                read[real.parent] = path
        for name, path in [*(("out", path) for path in self.outputs), *beside.items()]:
            if lost := read.get(Path(os.path.realpath(path))):
                raise OptionError(
                    f"--{name} {getattr(self.given, name)} would replace {lost}, which this "
                    "command reads; name another place"
                )
        refuse_files(self.outputs, getattr(self.given, "overwrite", False))
        refuse_files(beside.values(), True)

    def changed(self) -> list[str]:
        """Return the inputs that have gone or changed since the command began."""
        return [path for path, state in self.states.items() if _state(path) != state]

    def write(self, code: int) -> None:
        """Write the record beside the result that this run wrote, if it wrote one."""
        place, files = self._place()
        outputs = [path for path in files if _state(path) != self.older.get(path)]
        if not outputs:
            return  # the run was refused, and what stands there is an older result, or nothing
        record = {
            "command": ["recdf", *self.words],
            "recdf": version_and_build(),
            "started": datetime.fromtimestamp(self.started, UTC).isoformat(timespec="seconds"),
            "seconds": round(time.time() - self.started, 3),
            "exit": code,
            "rows": {name: of["rows"] for name, of in getattr(self.given, "files", {}).items()},
            "inputs": {
                name: [_file_record(path) for path in paths] for name, paths in self.inputs.items()
            },
            "outputs": [_file_record(path) for path in outputs],
        }
        publish_text(place, json.dumps(record, indent=1) + "\n")

    def _place(self) -> tuple[Path, list[str]]:
        """Return the path of the record, and the files of the result."""
        out = self.out
        other = command = self.given.command
        if out is None or not (os.path.isdir(out) or hasattr(self.given, "writes")):
            return Path(f"{out}.{RECORD}"), [] if out is None else [str(out)]
        with suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
            other = json.loads(plain_file(out / RECORD).read_text(encoding="utf-8"))["command"][1]
        files = sorted(
            str(path)
            for path in out.rglob("*.parquet")
            if path.is_file() and not (path.is_symlink() or is_hidden(path))
        )
        return out / (RECORD if other == command else f"run-{command}.json"), files


def _files_read(name: str, replaced: Collection[str]) -> list[str]:
    """Return the files of this machine that a path stands for. In a folder of runs, the records of
    runs, and what is replaced beside a result, are no input."""
    found: list[str] = []
    with suppress(OSError, RecdfError):
        found += [] if is_remote(name) else FileSet.of(name).files

    def is_input(path: str) -> bool:
        folder, file = os.path.split(path)
        stored = file in RESULT_FILES and os.path.lexists(os.path.join(folder, PER_USER))
        return not path.endswith(".json") and (stored or os.path.realpath(path) not in replaced)

    return list(filter(is_input, found)) if os.path.isdir(name) else found


def _state(path: str) -> tuple[int, int] | None:
    """Return what changes with a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _file_record(path: str) -> dict[str, Any]:
    """Return size and SHA-256 of a file; of a large one, the digest is that of blocks at equal
    distances."""
    size = os.path.getsize(path)
    digest = hashlib.sha256()
    whole = size <= HASHED_AT_ONCE * MOST_BLOCKS
    starts = np.linspace(0, size - HASHED_AT_ONCE, MOST_BLOCKS).astype(int)
    with open(path, "rb") as file:
        for start in [0] if whole else starts:
            file.seek(start)
            digest.update(file.read(-1 if whole else HASHED_AT_ONCE))
    return {
        "path": path,
        "bytes": size,
        "sha256" if whole else f"sha256_of_{MOST_BLOCKS}_mib": digest.hexdigest(),
    }


def can_be_retried(error: BaseException | None) -> bool:
    """Whether the same call may work at another time: no room, no memory, a drive that does not
    answer."""
    if isinstance(error, OSError) and error.filename == STDOUT:
        return False  # the files are written, and nobody got the tables
    while error is not None:
        if isinstance(error, MemoryError) or (
            isinstance(error, OSError) and error.errno in PASSING
        ):
            return True
        error = error.__cause__ or error.__context__
    return False

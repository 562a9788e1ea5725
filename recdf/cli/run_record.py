"""`run.json` beside a result: what was run on which files, and how it ended.

Contract: the inputs are listed before the command reads them, so that one that has gone or changed since is found.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from .._version import __version__
from ..errors import RecdfError
from ..evaluation.publishing import staging_folder
from .files import FileSet, is_remote
from .output import COMPARISON_FILES

RECORD = "run.json"
HASHED_AT_ONCE, MOST_BLOCKS = 2**20, 64  # of a larger file, so many blocks are hashed
# Errors of the machine and not of the call: with more room, memory or time the same call may work.
PASSING = {
    errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EIO, errno.ESTALE, errno.EMFILE, errno.ENFILE, errno.EAGAIN,
    errno.EBUSY, errno.ETIMEDOUT, errno.ECONNRESET, errno.ECONNREFUSED, errno.ENETUNREACH,
}  # fmt: skip


class RunRecord:
    """The files that a command is given, and what is written about its run."""

    def __init__(self, given: argparse.Namespace, words: Iterable[str]) -> None:
        self.given, self.words, self.started = given, list(words), time.time()
        self.inputs = dict(_inputs(given))
        self.out: Path | None = getattr(given, "out", None)
        # A comparison may replace an earlier one that stands beside the result.
        own = [] if self.out is None else [self.out.absolute() / name for name in COMPARISON_FILES]
        paths = [path for paths in self.inputs.values() for path in paths if Path(path).absolute() not in own]
        self.states = {path: _state(path) for path in paths}
        self.older = {path: _state(path) for path in self._place()[1]}

    def changed(self) -> list[str]:
        """Return the inputs that have gone or changed since the command began."""
        return [path for path, state in self.states.items() if _state(path) != state]

    def write(self, code: int) -> None:
        """Write the record beside the result that this run wrote, if it wrote one."""
        place, outputs = self._place()
        if all(_state(path) == self.older.get(path) for path in outputs):
            return  # the run was refused, and what stands there is an older result, or nothing
        record = {
            "command": ["recdf", *self.words],
            "recdf": __version__,
            "started": datetime.fromtimestamp(self.started, UTC).isoformat(timespec="seconds"),
            "seconds": round(time.time() - self.started, 3),
            "exit": code,
            "rows": getattr(self.given, "rows", {}),
            "inputs": {name: [_file_record(path) for path in paths] for name, paths in self.inputs.items()},
            "outputs": [_file_record(path) for path in outputs],
        }
        with staging_folder(place.parent) as staging:
            (staging / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
            os.replace(staging / RECORD, place)

    def _place(self) -> tuple[Path, list[str]]:
        """Return the path of the record, and the files of the result."""
        out, command = self.out, self.given.command
        if out is None or not out.is_dir():
            return Path(f"{out}.{RECORD}"), [] if out is None else [str(out)]
        other = command
        with suppress(OSError, ValueError, LookupError, TypeError):
            other = json.loads((out / RECORD).read_text(encoding="utf-8"))["command"][1]
        files = sorted(str(path) for path in out.rglob("*.parquet") if path.is_file())
        return out / (RECORD if other == command else f"run-{command}.json"), files


def _inputs(given: argparse.Namespace) -> Iterator[tuple[str, list[str]]]:
    """Give the arguments that name files of this machine; the command itself says what is wrong with a name."""
    for action in given.parser._actions:
        values = getattr(given, action.dest, None)
        if values is None or action.dest == "out" or not {"FILE", "LOG", "RESULTS"} & set(str(action.metavar).split()):
            continue
        paths: list[str] = []
        for value in map(str, values if isinstance(values, list) else [values]):
            with suppress(OSError, RecdfError):
                paths += [] if is_remote(value) else FileSet.of(value).paths
        yield action.dest, [path for path in paths if not path.endswith(".json")]  # no record of an earlier run


def _state(path: str) -> tuple[int, int] | None:
    """Return what changes with a file; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _file_record(path: str) -> dict[str, Any]:
    """Return size and SHA-256 of a file; of a large one, the digest is that of blocks at equal distances."""
    size, digest = os.path.getsize(path), hashlib.sha256()
    whole = size <= HASHED_AT_ONCE * MOST_BLOCKS
    with open(path, "rb") as file:
        for start in [0] if whole else np.linspace(0, size - HASHED_AT_ONCE, MOST_BLOCKS).astype(int):
            file.seek(start)
            digest.update(file.read(-1 if whole else HASHED_AT_ONCE))
    return {"path": path, "bytes": size, "sha256" if whole else f"sha256_of_{MOST_BLOCKS}_mib": digest.hexdigest()}


def can_be_retried(error: BaseException | None) -> bool:
    """Whether the same call may work at another time: no room, no memory, a drive that does not answer."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in PASSING):
            return True
        error = error.__cause__ or error.__context__
    return False

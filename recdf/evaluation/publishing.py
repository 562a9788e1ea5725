"""Publishing a result: files are written to a hidden folder, and one rename makes them the result.

The result is `per_user.parquet`, a file or a folder of files (see `storage`), which also contains
the bytes of `summary.parquet` (see `sealed`). Renaming it is therefore the single step in which a
result becomes visible to `read_parquet`. `summary.parquet` is for other programs. It is renamed
just before, and put back if the process ends before the second rename.

A folder cannot replace another one in one step. So an older folder first moves into the hidden
folder. If the process ends then, the next read or write moves it back. Readers that come in between
wait for the lock.

Processes that work at the same time use locks, which the operating system releases when a process
ends in any way:

* A lock on the hidden folder says that its writer is alive. Without it, the next write or read
  removes the folder.
* A lock on the folder of the result lets one writer at a time rename its two files.

Readers need no lock, so what they are guaranteed also holds on a file system without locks
(Windows, some network drives). There a hidden folder counts as left behind when nothing in it
changed for a day.

Other commands write several files that belong together (`staged` with `names`). The older ones all
move into the hidden folder before the first new one takes its place, so that files of two runs are
never beside each other. A last rename, inside the hidden folder, ends the step: if the process ends
before it, the next read or write brings the older files back.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..errors import DataError, WriteError
from .sealed import open_sealed

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

RESULT_FILES = PER_USER, SUMMARY_FILE = ("per_user.parquet", "summary.parquet")
HIDDEN_NAME = (
    "_recdf"  # in a folder of files: what belongs to the rows, which other readers of parquet skip
)
OLD = "old"  # in a hidden folder: the older result, or files, that are being replaced
NEW, NAMES_FILE, REPLACED = (
    "new",
    "names",
    "replaced",
)  # of several files: the new ones, what they are called, the end
PREFIX = ".recdf-writing-"
# in the attrs of tables that one run writes, which pandas stores: a digest of all of them
RUN = "recdf_run"
DAY = 24 * 60 * 60
# to make a hidden folder while other processes remove it; a folder such as /proc takes none
MOST_TRIES = 100
BUSY = (errno.EWOULDBLOCK, errno.EAGAIN)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WINDOWS = os.name == "nt"
REPLACE_WAITS = (
    0.01,
    0.03,
    0.1,
    0.3,
    1.0,
)  # seconds, on Windows, where nobody may have the old file open


# -------------------------------------------------------------------------------------------
# writing


@contextmanager
def staged(folder: Any, names: Sequence[str] = RESULT_FILES, *, overwrite: bool) -> Iterator[Path]:
    """Give a hidden folder for files; at the end of the block they replace those of `names` in
    `folder`, all of them.

    `names` are all files that a run may write, so that none of an older run stays beside those of a
    newer one. Those of a result are both written: sealed, or `per_user.parquet` is a folder of
    files (see `storage`). A failure at any point leaves only the old files.
    """
    target = Path(folder).absolute()
    with made(target), staging_folder(target, wait=True) as staging:
        _refuse_present(target, names, overwrite)
        new = staging if names is RESULT_FILES else staging / NEW
        new.mkdir(exist_ok=True)
        yield new
        with _locked(target):
            held = _refuse_present(target, names, overwrite)
            try:
                if names is RESULT_FILES:
                    _publish_result(staging, target)
                else:
                    _publish_files(staging, target, held)
            except BaseException:
                _take_back(staging, target)
                raise


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; if that or the block fails, remove those that are new."""
    new = [path for path in (folder, *folder.parents) if not os.path.exists(path)]
    try:
        _make(folder)
        yield
    except BaseException:
        for path in new:
            with suppress(
                OSError
            ):  # it was not made, or another process has written something into it
                path.rmdir()
        raise


def _make(folder: Path) -> None:
    """Make a folder and those above it. An error says in plain words what is in the way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        file = next(
            (
                one
                for one in (folder, *folder.parents)
                if os.path.exists(one) and not os.path.isdir(one)
            ),
            None,
        )
        if file is not None:
            raise type(error)(
                f"{file} is a file; expected a folder, in which the result is written"
            ) from error
        raise _named_error(
            error, f"the folder {folder} cannot be made: {error.strerror or error}"
        ) from error


def _named_error(error: OSError, text: str) -> OSError:
    """Return an error of the same kind, or WriteError for a full disk, whose message names the
    folder."""
    said = WriteError(text) if error.errno in FULL else type(error)(text)
    said.errno = error.errno
    return said


@contextmanager
def staging_folder(parent: Path, *, wait: bool = False, sweeping: bool = True) -> Iterator[Path]:
    """Give a hidden folder in `parent` that is removed at the end, or by the next call if this
    process is killed.

    With `sweeping`, what killed processes left in `parent` is removed first. With `wait`, this
    waits for a lock that another process holds at that moment.
    """
    if sweeping:
        sweep(parent, wait=wait)
    staging, lock = _new_staging(parent)
    try:
        yield staging
    except OSError as error:  # that of Arrow names no file
        if error.errno not in FULL or isinstance(error, WriteError):
            raise
        raise _named_error(
            error, f"nothing can be written into the folder {parent}: {os.strerror(error.errno)}"
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _new_staging(parent: Path) -> tuple[Path, int | None]:
    for _ in range(MOST_TRIES):
        _make(parent)
        try:
            staging = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
            lock = _lock(staging, wait=True)
        except FileNotFoundError:  # another process removed the folder before its lock was held
            continue
        except OSError as error:
            text = f"nothing can be written into the folder {parent}: {error.strerror or error}"
            raise _named_error(error, text) from error
        if staging.exists():
            return staging, lock
        if lock is not None:
            os.close(lock)
    raise FileNotFoundError(f"nothing can be written into the folder {parent}")


def _publish_result(staging: Path, target: Path) -> None:
    folders = [one for one in (staging / PER_USER, target / PER_USER) if one.is_dir()]
    if folders and (target / PER_USER).exists():
        put_in_place(target / PER_USER, staging / OLD)
    put_in_place(staging / SUMMARY_FILE, target / SUMMARY_FILE)
    put_in_place(staging / PER_USER, target / PER_USER)
    with suppress(OSError):  # not every system can sync a folder to the disk
        handle = os.open(target, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _refuse_present(target: Path, names: Iterable[str], overwrite: bool) -> list[str]:
    """Return the files that are there, and raise if they may not be replaced."""
    present = [name for name in names if (target / name).exists()]
    if present and not overwrite:
        raise FileExistsError(
            f"{target} already holds {present[0]}; pass overwrite=True to replace the result"
        )
    return present


def _publish_files(staging: Path, target: Path, held: list[str]) -> None:
    new = sorted(os.listdir(staging / NEW))
    for name in new:
        to_disk(staging / NEW / name)
    if (
        held in ([], new) and len(new) == 1
    ):  # then one rename is enough, and the older file is never missing
        put_in_place(staging / NEW / new[0], target / new[0])
        return
    (staging / NAMES_FILE).write_text("\n".join(new), encoding="utf-8")
    (staging / OLD).mkdir()
    for name in held:
        put_in_place(target / name, staging / OLD / name)
    for name in new:
        put_in_place(staging / NEW / name, target / name)
    put_in_place(staging / OLD, staging / REPLACED)


def to_disk(path: Path) -> None:
    """Wait until a file is on the disk and not only in the system's memory."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())


def put_in_place(source: Path, target: Path) -> None:
    """Rename a file or folder. On Windows, wait until no program, such as a scanner of viruses, has
    it open."""
    for seconds in REPLACE_WAITS:
        try:
            return os.replace(source, target)
        except PermissionError:
            if not WINDOWS:
                raise
            time.sleep(seconds)
    return os.replace(source, target)


# -- after a process that was killed


def sweep(folder: Path, *, wait: bool = False) -> None:
    """Remove the hidden folders of processes that have ended, and undo a rename that one of them
    left half done."""
    with suppress(OSError), os.scandir(folder) as entries:
        left = [Path(entry.path) for entry in entries if entry.name.startswith(PREFIX)]
        if not left:
            return
        with _locked(folder, wait=wait) as held:
            for staging in left if held else []:
                _sweep_one(staging, folder)


def _sweep_one(staging: Path, target: Path) -> None:
    try:
        lock = _lock(staging, wait=False)
    except OSError:  # its writer is alive, or it was removed already
        return
    try:
        if lock is not None or _unchanged_for_a_day(staging):
            _take_back(staging, target)
            shutil.rmtree(staging, ignore_errors=True)
    finally:
        if lock is not None:
            os.close(lock)


def _take_back(staging: Path, target: Path) -> None:
    """Undo the first renames if the last one did not happen."""
    if (staging / NAMES_FILE).exists():
        _take_back_files(staging, target)
        return
    begun = (staging / PER_USER).exists() and not (staging / SUMMARY_FILE).exists()
    with suppress(OSError, DataError):
        if (staging / OLD).exists() and not (target / PER_USER).exists():
            put_in_place(staging / OLD, target / PER_USER)
        if begun and (target / PER_USER).exists():
            _put_summary(target, staging)
        elif begun:
            (target / SUMMARY_FILE).unlink()


def _take_back_files(staging: Path, target: Path) -> None:
    """Bring the older files back. A process may end here too: the next one goes on where this one
    ended."""
    if not (staging / OLD).exists():
        return
    for name in (staging / NAMES_FILE).read_text(encoding="utf-8").splitlines():
        if not (staging / NEW / name).exists() and (target / name).exists():
            put_in_place(target / name, staging / NEW / name)
    for path in (staging / OLD).iterdir():
        put_in_place(path, target / path.name)


@contextmanager
def held_still(folders: Iterable[Path]) -> Iterator[None]:
    """Hold folders still while several files of each are read, after the work of killed processes
    there is undone."""
    with contextlib.ExitStack() as stack:
        for folder in sorted({folder.absolute() for folder in folders if folder.is_dir()}):
            sweep(folder, wait=True)
            stack.enter_context(_locked(folder))
        yield


def refuse_two_runs(tables: Mapping[Any, Any]) -> None:
    """Raise if two frames say that they were written by two runs; a frame of one's own says
    nothing."""
    runs = {str(name): table.attrs[RUN] for name, table in tables.items() if RUN in table.attrs}
    if len(set(runs.values())) > 1:
        raise DataError(
            f"{' and '.join(runs)} were written by two runs; take those of one run, or write them "
            "again"
        )


def settle_folder(folder: Path) -> None:
    """Sweep a folder before it is read. If its result is missing, wait for a writer that is at its
    renames."""
    sweep(folder)
    if not (folder / PER_USER).exists():
        sweep(folder, wait=True)


def repair_summary(folder: Path) -> None:
    """Write the summary inside `per_user.parquet` to `summary.parquet`, unless a writer is at
    work."""
    with suppress(OSError, DataError), _locked(folder, wait=False) as held:
        if held:
            with staging_folder(folder, sweeping=False) as staging:
                _put_summary(folder, staging)


def _put_summary(target: Path, staging: Path) -> None:
    if (target / PER_USER).is_dir():
        summary = (target / PER_USER / HIDDEN_NAME / SUMMARY_FILE).read_bytes()
    else:
        with open_sealed(target / PER_USER) as sealed:
            summary = sealed.carried.summary
    if not (target / SUMMARY_FILE).exists() or (target / SUMMARY_FILE).read_bytes() != summary:
        (staging / SUMMARY_FILE).write_bytes(summary)
        put_in_place(staging / SUMMARY_FILE, target / SUMMARY_FILE)


def _unchanged_for_a_day(staging: Path) -> bool:
    with suppress(OSError):
        last = max(path.stat().st_mtime for path in (staging, *staging.iterdir()))
        return time.time() - last > DAY
    return False


# ---------------------------------------------------------------------------------------------
# locks


def _lock(folder: Path, *, wait: bool) -> int | None:
    """Lock a folder; None where that is not possible. BlockingIOError if another has the lock and
    `wait` is False."""
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        os.close(handle)
        if error.errno in BUSY:
            raise BlockingIOError(error.errno, f"{folder} is locked by another process") from None
        return None  # a file system without locks
    except BaseException:
        os.close(handle)
        raise
    return handle


@contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a folder; give False, without the lock, if `wait` is False and another
    process has it."""
    with contextlib.ExitStack() as stack:
        try:
            lock = _lock(folder, wait=wait)
        except BlockingIOError:
            yield False
            return
        if lock is not None:
            stack.callback(os.close, lock)
        yield True

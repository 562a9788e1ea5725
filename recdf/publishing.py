"""Every file that recdf writes appears as a whole, and the files of one run appear together.

Files are written to a hidden folder beside their place. One file then takes its place by one
rename. Several files appear by the rename that gives the hidden folder its manifest: from this step
on the new files count, wherever they lie. Then the older files move into the hidden folder, the new
ones take their places, and the hidden folder is removed. Files of two runs are thus never beside
each other. Only the first file is replaced directly, so that it is never missing.

Readers write nothing and take no lock. If a process ended after its manifest was there, `where`
finds the new files that are still in the hidden folder, and the next writer completes its work. If
it ended before, the older files are all in their places, and the next writer removes the rest.
`steadily` reads several files again if a writer replaced one of them in the meantime.

A stranger may have put anything into a folder. Only plain names count, no link is followed, and
what is neither a file nor a folder is not opened. Only hidden folders of this user, and of the
owner of the folder, count; in /tmp those of others are left alone.

Writers use locks, which the operating system releases when a process ends in any way: one on the
hidden folder says that its writer lives, and one on the folder itself lets one writer at a time
publish. On a file system without locks (Windows, some network drives) a hidden folder without a
manifest counts as left behind when nothing in it has changed for a day.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa

from .errors import DataError, WriteError, in_words

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")
# The files of a result. The first one may be a folder of files, with `HIDDEN_NAME` in it.
RESULT_FILES = PER_USER, SUMMARY_FILE, PROFILE = (
    "per_user.parquet",
    "summary.parquet",
    "profile.parquet",
)
HIDDEN_NAME = "_recdf"  # what belongs to the rows, which other readers of parquet skip
PREFIX, MANIFEST, OLD = ".recdf-writing-", ".recdf-manifest.json", ".recdf-old-"
LONGEST_MANIFEST = 2**20
# in the attrs of tables that one run writes, which pandas stores: a digest of all of them
RUN = "recdf_run"
DAY = 24 * 60 * 60
MOST_TRIES = 100  # to make a hidden folder while other processes remove it
MOST_READS = 10  # of files that writers replace meanwhile
BUSY = (errno.EWOULDBLOCK, errno.EAGAIN)
# What recdf never leaves in a hidden folder: folders in the way of files.
STRANGE = (errno.EISDIR, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EXDEV)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
WINDOWS = os.name == "nt"
# Seconds, on Windows, where nobody may have the older file open.
REPLACE_WAITS = (0.01, 0.03, 0.1, 0.3, 1.0)


# -------------------------------------------------------------------------------------------
# reading


def where(path: Path) -> Path:
    """Return where a file lies: at its place, or where a writer that ended has left it."""
    for staging, files in reversed(_committed(path.parent)):
        if path.name in files:
            left = staging / path.name
            return left if os.path.lexists(left) or not files[path.name] else path
    return path


def is_there(path: Path) -> bool:
    """Tell whether there is a file, folder or link of this path for a reader."""
    return os.path.lexists(where(path))


def names_in(folder: Path) -> set[str]:
    """Return the names of the files of a folder, also of those that `where` finds elsewhere."""
    left = [name for _, files in _committed(folder) for name in files]
    return {name for name in (*os.listdir(folder), *left) if is_there(folder / name)}


def plain_file(path: Path) -> Path:
    """Return a path, and raise DataError unless it is that of a file, or of nothing."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise DataError(f"{path} is a link, a folder or a pipe; expected a file")
    return path


def is_folder(path: Path) -> bool:
    """Tell whether a path is that of a folder, and not of a link to one."""
    return os.path.isdir(path) and not os.path.islink(path)


def read_table(path: Path) -> pd.DataFrame:
    """Read a parquet file that a run of recdf wrote beside others."""
    try:
        return pd.read_parquet(plain_file(where(path)))
    except (ValueError, TypeError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as a parquet file: {error}") from error


def is_hidden(path: Path) -> bool:
    """Tell whether a path is in the hidden folder of a writer."""
    return any(name.startswith(PREFIX) for name in path.parts)


def folders_below(root: Path) -> Iterator[Path]:
    """Give a folder and those below it in their order, but for links and for what recdf hides."""
    for top, below, _ in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith((PREFIX, PER_USER)))
        yield Path(top)


def steadily(paths: Sequence[Path], read: Callable[[], T]) -> T:
    """Call a function that reads files, and again if a writer replaced one of them meanwhile."""
    last: Exception | None = None
    for _ in range(MOST_READS):
        before = [_identity(path) for path in paths]
        try:
            found = read()
        except (OSError, ValueError) as error:
            stale = getattr(error, "errno", None) == errno.ESTALE  # of a network drive
            if not stale and before == [_identity(path) for path in paths]:
                raise
            last = error
            continue
        if before == [_identity(path) for path in paths]:
            return found
    raise last or DataError(f"{paths[0].parent} changes whenever it is read; read it again")


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Return numbers that tell a file or folder from another one of the same name."""
    try:
        found = os.lstat(where(path))
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def refuse_two_runs(tables: Mapping[Any, Any]) -> None:
    """Raise if two frames say that they were written by two runs; a frame of one's own says
    nothing."""
    runs = {str(name): table.attrs[RUN] for name, table in tables.items() if RUN in table.attrs}
    if len(set(runs.values())) > 1:
        raise DataError(
            f"{' and '.join(runs)} were written by two runs; take those of one run, or write them "
            "again"
        )


def _hidden(folder: Path) -> list[Path]:
    """Return the hidden folders of writers, without those of strangers."""
    with suppress(OSError), os.scandir(folder) as entries:
        found = [one for one in entries if one.name.startswith(PREFIX)]
        owners = (os.stat(folder).st_uid, getattr(os, "geteuid", int)()) if found else ()
        return sorted(Path(one.path) for one in found if _is_folder_of(one, owners))
    return []


def _is_folder_of(entry: os.DirEntry[str], owners: Sequence[int]) -> bool:
    with suppress(OSError):  # it was removed meanwhile
        return (
            entry.is_dir(follow_symlinks=False)
            and entry.stat(follow_symlinks=False).st_uid in owners
        )
    return False


def _committed(folder: Path) -> list[tuple[Path, dict[str, bool]]]:
    """Return the hidden folders that have a manifest, the latest last, and which files it names."""
    found = []
    for staging in _hidden(folder):
        with suppress(FileNotFoundError, PermissionError):
            time_ns = os.lstat(staging / MANIFEST).st_mtime_ns
            found.append((time_ns, staging, _manifest(staging)))
    return [(staging, files) for _, staging, files in sorted(found, key=lambda one: one[0])]


def _manifest(staging: Path) -> dict[str, bool]:
    """Return the files that a manifest names: whether a file is new, or has to go."""
    path = staging / MANIFEST
    try:
        if plain_file(path).stat().st_size > LONGEST_MANIFEST:
            raise ValueError("it is too long")
        files = json.loads(path.read_text(encoding="utf-8"))
        for name, new in files.items():
            if Path(name).name != name or name in ("..", MANIFEST) or not isinstance(new, bool):
                raise ValueError(f"{name!r} is no plain name")
            if not (name == PER_USER and is_folder(staging / name)):
                plain_file(staging / name)
    except (ValueError, AttributeError, RecursionError) as error:
        raise DataError(f"{path} is not as recdf writes it: {error}; remove {staging}") from error
    return dict(files)


# -------------------------------------------------------------------------------------------
# writing


def refuse_files(files: Iterable[Path], overwrite: bool) -> None:
    """Raise unless all these files can be written. It is asked before a command does any work, and
    again before the first file is written."""
    for path in files:
        above = next(one for one in path.absolute().parents if os.path.lexists(one))
        if not os.path.isdir(above):
            kind = FileExistsError if above == path.absolute().parent else NotADirectoryError
            raise kind(f"{above} is a file; expected a folder, in which the result is written")
        if is_folder(path) and not (path.name == PER_USER and is_folder(path / HIDDEN_NAME)):
            raise IsADirectoryError(f"{path} is a folder; expected a file, or nothing")
        if not overwrite and (os.path.lexists(path) or _is_left(path)):
            pass_it = in_words("⟦+overwrite=True⟧")
            raise FileExistsError(
                f"{path.parent} already holds {path.name}; pass {pass_it} to replace it"
            )


def _is_left(path: Path) -> bool:
    """Tell whether a writer that ended left a file that is not yet in its place."""
    with suppress(DataError):  # a writer passes over what is not of recdf
        return is_there(path)
    return False


@contextmanager
def published(
    files: Iterable[Path], *, overwrite: bool, verdicts: Iterable[Path] = ()
) -> Iterator[Callable[[Path], Path]]:
    """Give a function that says where to write each of the files; at the end of the block they
    replace older ones, all of them.

    `files` are all files that a run may write, so that none of an older run stays beside those of a
    newer one. `verdicts` may be in other folders, and replace what is there. They come last, and
    the older ones go before anything else is replaced, so that none tells of another run. A
    failure at any point leaves only the older files, or only the new ones. What is in /dev or
    /proc, such as /dev/stdout, is written directly.
    """
    files, verdicts = list(files), [path for path in verdicts if not _is_stream(path)]
    refuse_files(files, overwrite)
    refuse_files(verdicts, True)
    real: dict[str, Path] = {}  # the same folder may be named in several ways
    groups: dict[Path, list[str]] = {}
    for path in (*files, *verdicts):
        folder = real.setdefault(os.path.realpath(path.parent), path.parent.absolute())
        groups.setdefault(folder, []).append(path.name)
    with ExitStack() as stack:
        staging: dict[Path, Path] = {}
        for folder, names in groups.items():
            stack.enter_context(made(folder))
            what = folder / names[0] if len(names) == 1 else None
            staging[folder] = stack.enter_context(staging_folder(folder, what=what))

        def place(path: Path) -> Path:
            folder = real.get(os.path.realpath(path.parent))
            return path if folder is None else staging[folder] / path.name

        yield place
        for path in (*files, *verdicts):
            with named_if_full(path):
                _to_disk(place(path))
        for folder in sorted(groups):
            stack.enter_context(_locked(folder))
        refuse_files(files, overwrite)
        for path in verdicts if len(groups) > 1 else ():
            path.unlink(missing_ok=True)
        for folder, names in groups.items():
            _publish(staging[folder], folder, list(dict.fromkeys(names)))


def publish_text(path: Path, text: str) -> None:
    """Write a file in one step: a reader sees the older one or the new one."""
    with published([], overwrite=True, verdicts=[path]) as place:
        write_text(path, place(path), text)


def write_text(path: Path, place: Path, text: str) -> None:
    """Write the text of a file to the place where it is prepared."""
    with named_if_full(path):
        place.write_text(text, encoding="utf-8", newline="\n")


def _is_stream(path: Path) -> bool:
    """Tell whether a path is that of a stream or device, which no file can replace."""
    folder = os.path.realpath(path.parent)
    return folder == "/dev" or (folder.startswith("/proc/") and os.path.exists(path))


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; if that or the block fails, remove those that are new."""
    new = [path for path in (folder, *folder.parents) if not os.path.exists(path)]
    try:
        _make(folder)
        yield
    except BaseException:
        for path in new:
            with suppress(OSError):  # it was not made, or another process wrote something into it
                path.rmdir()
        raise


def _make(folder: Path) -> None:
    """Make a folder and those above it. An error says in plain words what is in the way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse_files([folder / PER_USER], True)
        raise _reworded(error, f"the folder {folder} cannot be made: {error.strerror}") from error


def _reworded(error: OSError, text: str) -> OSError:
    """Return an error of the same kind, or WriteError for a full disk, with another message."""
    said = WriteError(text) if error.errno in FULL else type(error)(text)
    said.errno = error.errno
    return said


@contextmanager
def named_if_full(path: Path, into: str = "") -> Iterator[None]:
    """Let the error of a full disk name the file; those of Arrow, and of writing, name none."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL or isinstance(error, WriteError):
            raise
        said = into or f"{path} cannot be written"
        raise _reworded(error, f"{said}: {os.strerror(error.errno or 0)}") from error


@contextmanager
def staging_folder(parent: Path, *, what: Path | None = None) -> Iterator[Path]:
    """Give a hidden folder in `parent` that is removed at the end, or by the next call if this
    process is killed. `what` is the one file that will be written."""
    with _locked(parent):
        _settle(parent)
    into = f"nothing can be written into the folder {parent}"
    with ExitStack() as stack:
        staging, lock = _new_staging(parent)
        if lock is not None:
            stack.callback(os.close, lock)
        try:
            with named_if_full(what or parent, "" if what else into):
                yield staging
        finally:
            if not os.path.lexists(staging / MANIFEST):  # else the next writer completes the work
                shutil.rmtree(staging, ignore_errors=True)


def _new_staging(parent: Path) -> tuple[Path, int | None]:
    into = f"nothing can be written into the folder {parent}"
    for _ in range(MOST_TRIES):
        staging = parent / f"{PREFIX}{secrets.token_hex(6)}"
        try:
            staging.mkdir()
            lock = _lock(staging, wait=True)
        except FileNotFoundError:  # another process removed the folder before its lock was held
            _make(parent)
            continue
        except OSError as error:
            raise _reworded(error, f"{into}: {error.strerror}") from error
        if staging.exists():
            return staging, lock
        if lock is not None:
            os.close(lock)
    raise FileNotFoundError(into)


def _publish(staging: Path, target: Path, names: Sequence[str]) -> None:
    _settle(target, but=staging)
    new = [name for name in names if os.path.lexists(staging / name)]
    gone = [name for name in names if name not in new and os.path.lexists(target / name)]
    if len(new) == 1 and not gone:
        put_in_place(staging / new[0], target / new[0])
    elif new or gone:
        begun = staging / f"{MANIFEST}-begun"
        begun.write_text(json.dumps(dict.fromkeys(new, True) | dict.fromkeys(gone, False)))
        _to_disk(begun)
        put_in_place(begun, staging / MANIFEST)
        try:
            _complete(staging, target)
        except BaseException:
            with suppress(OSError):
                _complete(staging, target)
            raise
    _to_disk(target, below=False)


def _complete(staging: Path, target: Path) -> None:
    """Put the files of a manifest in their places. A process may end here too: the next one goes on
    where this one ended."""
    _to_disk(staging, below=False)
    files = _manifest(staging)
    left = [name for name, new in files.items() if not new or os.path.lexists(staging / name)]
    refuse_files([target / name for name in left], True)
    for name in left:
        direct = name == next(iter(files)) and not (
            is_folder(staging / name) or is_folder(target / name)
        )
        if not direct:
            _move(target / name, staging / f"{OLD}{name}")
    for name in left:
        if files[name]:
            _move(staging / name, target / name)
    (staging / MANIFEST).unlink(missing_ok=True)


def _move(source: Path, target: Path) -> None:
    """Put a file in its place, unless it is not there or, without locks, another process did so."""
    with suppress(FileNotFoundError):
        put_in_place(source, target)


def _to_disk(path: Path, *, below: bool = True) -> None:
    """Wait until a file or folder is on the disk and not only in the system's memory."""
    if below and is_folder(path):
        for one in path.iterdir():
            _to_disk(one)
    elif is_folder(path):
        with suppress(OSError):  # not every system can do this with a folder
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    elif path.is_file():
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


def _settle(folder: Path, but: Path | None = None) -> None:
    """Complete or remove the work of writers that have ended, while the lock of a folder is
    held. What cannot be removed does not stop the rest."""
    for staging in _hidden(folder):
        if staging == but:
            continue
        if os.path.lexists(staging / MANIFEST):  # its writer would still hold the lock
            try:
                _complete(staging, folder)
            except (DataError, IsADirectoryError):
                pass  # recdf did not write this
            except OSError as error:
                if error.errno not in STRANGE:
                    raise
        with suppress(OSError):  # its writer is alive, or removed it
            _remove(staging)


def _remove(staging: Path) -> None:
    lock = _lock(staging, wait=False)
    try:
        if lock is not None or _unchanged_for_a_day(staging):
            shutil.rmtree(staging, ignore_errors=True)
    finally:
        if lock is not None:
            os.close(lock)


def _unchanged_for_a_day(staging: Path) -> bool:
    last = max(path.lstat().st_mtime for path in (staging, *staging.iterdir()))
    return time.time() - last > DAY


# ---------------------------------------------------------------------------------------------
# locks


def _lock(folder: Path, *, wait: bool) -> int | None:
    """Lock a folder; None where that is not possible. BlockingIOError if another has the lock and
    `wait` is False."""
    if fcntl is None:
        return None
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
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
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder."""
    lock = _lock(folder, wait=True)
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)

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
import fnmatch
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
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
MOST_TRIES = 100  # to make a hidden folder while other processes remove the folder that it is in
MOST_READS = 100  # of files that writers replace meanwhile
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
    for _, staging, files in reversed(_committed(path.parent)):
        if path.name in files:
            left = staging / path.name
            return left if os.path.lexists(left) or not files[path.name] else path
    return path


def is_there(path: Path) -> bool:
    """Tell whether there is a file, folder or link of this path for a reader."""
    return os.path.lexists(where(path))


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
        return steadily([path], lambda: pd.read_parquet(plain_file(where(path))))
    except (ValueError, TypeError, pa.ArrowException) as error:
        raise DataError(f"{path} cannot be read as a parquet file: {error}") from error


def read_bytes(path: Path) -> bytes:
    """Return what is in a file that a run of recdf wrote."""
    return steadily([path], lambda: plain_file(where(path)).read_bytes())


def is_hidden(path: Path) -> bool:
    """Tell whether a path is in the hidden folder of a writer."""
    return any(name.startswith(PREFIX) for name in path.parts)


def files_below(root: Path, pattern: str) -> Iterator[Path]:
    """Give the files of a name in a folder and below it, folder by folder; no link is followed, and
    a file that a writer has left counts at its place."""
    for top, below, names in os.walk(root):
        left = [name for _, _, files in _committed(Path(top)) for name in files]
        for name in sorted({*fnmatch.filter((*below, *names, *left), pattern)}):
            if is_there(Path(top, name)):
                yield Path(top, name)
        below[:] = sorted(name for name in below if not name.startswith((PREFIX, PER_USER)))


def steadily(paths: Sequence[Path], read: Callable[[], T]) -> T:
    """Call a function that reads files, and again if a writer replaced one of them meanwhile, or
    moved one that the function then did not find."""
    last = None
    for _ in range(MOST_READS):
        before = [_found(path) for path in paths]
        try:
            found = read()
        except (OSError, ValueError) as error:
            stale = getattr(error, "errno", None) == errno.ESTALE  # of a network drive
            if not stale and before == [_found(path) for path in paths]:
                raise
            last = error
            continue
        if all(one[1:] == _found(path)[1:] for one, path in zip(before, paths, strict=True)):
            return found
    raise last or DataError(f"{paths[0].parent} changes whenever it is read; read it again")


def _found(path: Path) -> tuple[Path | int, ...]:
    """Return where a file or folder lies, and numbers that tell it from another one of the same
    name."""
    with suppress(OSError):
        found = os.lstat(place := where(path))
        return place, found.st_ino, found.st_mtime_ns, found.st_size
    return ()


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
    found = []
    with suppress(OSError):
        owners = (os.stat(folder).st_uid, getattr(os, "geteuid", int)())
        for staging in sorted(folder.glob(f"{PREFIX}*")):
            with suppress(FileNotFoundError):  # it was removed meanwhile
                if is_folder(staging) and os.lstat(staging).st_uid in owners:
                    found.append(staging)
    return found


def _committed(folder: Path) -> list[tuple[int, Path, dict[str, bool]]]:
    """Return the hidden folders that have a manifest, the latest last: the time of the manifest,
    the folder, and which files it names."""
    found = []
    for staging in _hidden(folder):
        with suppress(FileNotFoundError, PermissionError):
            time_ns = os.lstat(staging / MANIFEST).st_mtime_ns
            found.append((time_ns, staging, _manifest(staging)))
    return sorted(found, key=lambda one: one[0])


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
    return files


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
        there = os.path.lexists(path)
        with suppress(DataError):  # a writer passes over what is not of recdf
            there = there or is_there(path)
        if there and not overwrite:
            pass_it = in_words("⟦+overwrite=True⟧")
            raise FileExistsError(
                f"{path.parent} already holds {path.name}; pass {pass_it} to replace it"
            )


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

    def folder_of(path: Path) -> Path:  # which may be named in several ways
        return Path(os.path.realpath(path.parent))

    def is_stream(path: Path) -> bool:  # which no file can replace
        folder = str(folder_of(path))
        return folder == "/dev" or (folder.startswith("/proc/") and os.path.exists(path))

    files, verdicts = list(files), [path for path in verdicts if not is_stream(path)]
    refuse_files(files, overwrite)
    refuse_files(verdicts, True)
    groups: dict[Path, list[Path]] = {}
    for path in (*files, *verdicts):
        groups.setdefault(folder_of(path), []).append(path)
    with ExitStack() as stack:
        staging = {}
        for folder in groups:
            stack.enter_context(made(folder))
            staging[folder] = stack.enter_context(staging_folder(folder))

        def place(path: Path) -> Path:
            folder = folder_of(path)
            return staging[folder] / path.name if folder in staging else path

        yield place
        for path in (*files, *verdicts):
            with named_if_full(path):
                _to_disk(place(path))
        for folder in sorted(groups):
            stack.enter_context(_locked(folder))
        refuse_files(files, overwrite)
        for path in verdicts if len(groups) > 1 else ():
            path.unlink(missing_ok=True)
        for folder, paths in groups.items():
            with named_if_full(paths[0]):
                _publish(staging[folder], folder, dict.fromkeys(path.name for path in paths))


def publish_text(path: Path, text: str) -> None:
    """Write a file in one step: a reader sees the older one or the new one."""
    with published([], overwrite=True, verdicts=[path]) as place:
        write_text(path, place(path), text)


def write_text(path: Path, place: Path, text: str) -> None:
    """Write the text of a file to the place where it is prepared."""
    with named_if_full(path):
        place.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; if that or the block fails, remove those that are new."""
    new = [path for path in (folder, *folder.parents) if not os.path.exists(path)]
    try:
        with _told(f"the folder {folder} cannot be made"):
            folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for path in new:
            with suppress(OSError):  # it was not made, or another process wrote something into it
                path.rmdir()
        raise


@contextmanager
def _told(words: str, only: Sequence[int] = ()) -> Iterator[None]:
    """Put words before what the system says of an error, or of `only` some errors; that of a full
    disk becomes a WriteError."""
    try:
        yield
    except OSError as error:
        if isinstance(error, WriteError) or (only and error.errno not in only):
            raise
        text = f"{words}: {os.strerror(error.errno or 0)}"
        told = WriteError(text) if error.errno in FULL else type(error)(text)
        told.errno = error.errno
        raise told from error


def named_if_full(path: Path) -> AbstractContextManager[None]:
    """Let the error of a full disk name the file; those of Arrow, and of writing, name none."""
    return _told(f"{path} cannot be written", FULL)


@contextmanager
def staging_folder(parent: Path) -> Iterator[Path]:
    """Give a hidden folder in `parent` that is removed at the end, or by the next call if this
    process is killed."""
    staging = parent / f"{PREFIX}{secrets.token_hex(6)}"
    into = "nothing can be written into the"
    with ExitStack() as stack:
        for left in reversed(range(MOST_TRIES)):
            try:
                with _locked(parent):
                    _settle(parent)
                    with _told(f"{into} folder {parent}"):
                        staging.mkdir()
                    stack.enter_context(_locked(staging))
                    break
            except FileNotFoundError:  # another process, which had made the folder, removed it
                if not left:
                    raise FileNotFoundError(f"{into} folder {parent}") from None
                parent.mkdir(parents=True, exist_ok=True)
        try:
            with _told(f"{into} folder {parent}", FULL):
                yield staging
        finally:
            if not os.path.lexists(staging / MANIFEST):  # else the next writer completes the work
                shutil.rmtree(staging, ignore_errors=True)


def _publish(staging: Path, target: Path, names: Iterable[str]) -> None:
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
    first = next(iter(files))  # it is replaced directly, so that it is never missing
    if not files[first] or is_folder(staging / first) or is_folder(target / first):
        first = ""
    older = [(target / name, staging / f"{OLD}{name}") for name in left if name != first]
    newer = [(staging / name, target / name) for name in left if files[name]]
    for source, place in (*older, *newer):
        with suppress(FileNotFoundError):  # there is none, or another process moved it
            put_in_place(source, place)
    (staging / MANIFEST).unlink(missing_ok=True)


def _to_disk(path: Path, *, below: bool = True) -> None:
    """Wait until a file or folder is on the disk and not only in the system's memory."""
    folder = is_folder(path)
    for one in path.iterdir() if folder and below else ():
        _to_disk(one)
    if folder or path.is_file():
        # Not every system can do this with a folder.
        with suppress(OSError) if folder else nullcontext():
            handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def put_in_place(source: Path, target: Path) -> None:
    """Rename a file or folder. On Windows, wait until no program, such as a scanner of viruses, has
    it open."""
    for seconds in REPLACE_WAITS if WINDOWS else ():
        with suppress(PermissionError):
            return os.replace(source, target)
        time.sleep(seconds)
    return os.replace(source, target)


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
        with suppress(OSError), _locked(staging, wait=False) as held:
            last = max(path.lstat().st_mtime for path in (staging, *staging.iterdir()))
            if held or time.time() - last > DAY:
                shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of a folder; False where the system has none. BlockingIOError if another
    process has it and `wait` is False."""
    if fcntl is None:
        yield False
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        held = True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise
        except OSError:  # a file system without locks
            held = False
        yield held
    finally:
        os.close(handle)

"""A process that is killed at one of its file operations, within the process of the test.

From the operation on, no operation changes a file: what handlers of exceptions do is not done. A
copy of the files just before the operation shows the same.
"""

import builtins
import io
import os
import shutil
from contextlib import contextmanager, suppress

import pyarrow.parquet as pq

WRITES = set("wax+")
OPERATIONS = [
    *((os, name) for name in ("open", "mkdir", "rmdir", "rename", "replace", "unlink", "remove")),
    *((os, name) for name in ("fsync", "truncate", "link", "symlink", "write")),
    *((module, "open") for module in (builtins, io)),
    *((pq, name) for name in ("write_table", "ParquetWriter")),
    (shutil, "copyfile"),
]


class Killed(BaseException):
    """The process ends here."""


def _changes(name, given, named):
    """Whether an operation changes something: a file that is opened for reading does not."""
    mode = named.get("mode", given[1] if len(given) > 1 else "r")
    return name != "open" or not isinstance(mode, str) or bool(WRITES & set(mode))


@contextmanager
def _watched(monkeypatch, before):
    """Call `before` with the name of each operation that changes a file, just before it."""
    opened = set()  # descriptors, which the system closes when a process ends
    with monkeypatch.context() as patch:
        for module, name in OPERATIONS:
            works = getattr(module, name)

            def operation(*given, works=works, name=name, **named):
                if _changes(name, given, named):
                    before(name)
                found = works(*given, **named)
                if isinstance(found, int) and name == "open":
                    opened.add(found)
                return found

            patch.setattr(module, name, operation)
        close = os.close
        patch.setattr(os, "close", lambda one: opened.discard(one) or close(one))
        with suppress(Killed):
            yield
        for one in opened:
            close(one)


@contextmanager
def killed_at(step, monkeypatch):
    """Kill at an operation, from 1 on. Gives a list with all operations until then."""
    done = []

    def before(name):
        done.append(name)
        if len(done) >= step:
            raise Killed

    with _watched(monkeypatch, before):
        yield done


@contextmanager
def photographed(copies, wanted, monkeypatch):
    """Copy the working folder into `copies` before each operation that is wanted, as a process
    would leave it that is killed there: one run stands for many that are killed.

    `wanted` takes the names of all operations so far. Gives a dictionary that is filled with these
    names and the copy, by the number of the operation.
    """
    done, taken, copying = [], {}, []

    def before(name):
        if copying:
            return
        done.append(name)
        if wanted(done):
            copying.append(True)
            taken[len(done)] = done[:], shutil.copytree(".", copies / str(len(done)), symlinks=True)
            copying.clear()

    with _watched(monkeypatch, before):
        yield taken


def is_killed(done, step):
    return len(done) >= step


def tree(folder):
    """All below a folder: the bytes of files, the targets of links, and None for others."""
    found = {}
    for top, below, files in os.walk(folder):
        for name in (*below, *files):
            path = os.path.join(top, name)
            if os.path.islink(path):
                found[path] = os.readlink(path)
            elif os.path.isfile(path) and os.path.getsize(path) < 2**20:
                with open(path, "rb") as file:
                    found[path] = file.read()
            else:
                found[path] = os.path.getsize(path) if os.path.isfile(path) else None
    return found

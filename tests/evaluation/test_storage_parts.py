"""A result in parts replaces another one, or leaves it as it was, also if the process is killed
between two renames."""

import itertools
import os
import signal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evaluation.stored import FORKING, NEW, OLD, equal, forks, names, python

import recdf as rd
from recdf.evaluation import publishing
from recdf.evaluation.storage import read_parts, staged_parts, write_head

TESTS = Path(__file__).parents[1]
FILES = {"per_user.parquet", "summary.parquet"}


def write_parts(result, folder):
    """Write a result as the workers of an engine do: the rows in two files."""
    with staged_parts(folder, overwrite=True) as rows:
        rows.mkdir()
        for number in range(2):
            table = pa.Table.from_pandas(result.per_user[number::2], preserve_index=False)
            pq.write_table(table, rows / f"{number}.parquet")
        write_head(rows, result.per_user[:0], result.summary, result.spec)


def write_file(result, folder):
    result.to_parquet(folder, overwrite=True)


# The kind of the older result, and that of the newer one.
KINDS = [(write_parts, write_parts), (write_parts, write_file), (write_file, write_parts)]

KILLED = f"""{FORKING}
from evaluation.stored import NEW
from evaluation.test_storage_parts import write_file, write_parts

def write(folder, kind, step):
    kill_at_rename(step)
    globals()[kind](NEW, folder)

given = zip(*[iter(sys.argv[1:])] * 3)
print(*(ended(forked(write, folder, kind, int(step))) for folder, kind, step in given))
"""


@pytest.mark.long
@forks
def test_a_process_that_is_killed_while_it_replaces_a_result(tmp_path):
    """It is killed before each of the three renames. The next read finds the older result whole."""
    calls, folders = [], []
    for (older, newer), step in itertools.product(KINDS, [1, 2, 3]):
        folder = tmp_path / f"{older.__name__}-{newer.__name__}-{step}"
        older(OLD, folder)
        folders.append(folder)
        calls += [folder, newer.__name__, step]
    done = python(f"import sys; sys.path.insert(0, {os.fspath(TESTS)!r})\n{KILLED}", *calls)
    assert done.stderr == ""
    assert done.stdout.split() == [str(-signal.SIGKILL)] * len(folders)
    for folder in folders:
        equal(rd.read_parquet(folder), OLD)
        pd.testing.assert_frame_equal(pd.read_parquet(folder / "summary.parquet"), OLD.summary)
        assert names(folder) == FILES


@pytest.mark.parametrize(("older", "newer"), KINDS)
def test_an_error_at_any_rename_leaves_the_older_result(older, newer, tmp_path, monkeypatch):
    older(OLD, tmp_path)
    replace = os.replace
    for step in (1, 2, 3):
        calls = []

        def fails(*given, calls=calls, step=step):
            calls.append(given)
            if len(calls) == step:
                raise OSError("the drive has gone")
            replace(*given)

        monkeypatch.setattr(os, "replace", fails)
        with pytest.raises(OSError, match="the drive has gone"):
            newer(NEW, tmp_path)
        monkeypatch.setattr(os, "replace", replace)
        equal(rd.read_parquet(tmp_path), OLD)
        assert names(tmp_path) == FILES
    newer(NEW, tmp_path)
    equal(rd.read_parquet(tmp_path), NEW)


def test_a_reader_between_two_renames_waits_for_the_writer(tmp_path, monkeypatch):
    """The reader is called while the older folder is away; it would wait for the lock, which the
    test stands for."""
    write_parts(OLD, tmp_path)
    waits = []
    monkeypatch.setattr(publishing, "sweep", lambda folder, wait=False: waits.append(wait))
    publishing.settle_folder(tmp_path)
    publishing.settle_folder(tmp_path / "away")
    assert waits == [False, False, True]


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    from recdf.evaluation import storage

    write_parts(OLD, tmp_path)
    read, done = storage._read_parts, []

    def meanwhile(rows):
        found = read(rows)
        if not done:
            done.append(write_parts(NEW, tmp_path))
        return found

    monkeypatch.setattr(storage, "_read_parts", meanwhile)
    assert read_parts(tmp_path).spec == NEW.spec
    (tmp_path / "summary.parquet").write_bytes(b"of another program")
    equal(rd.read_parquet(tmp_path), NEW)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "summary.parquet"), NEW.summary)

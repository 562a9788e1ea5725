"""A result in parts replaces another one, or leaves it as it was, also if the process is killed
between two renames."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import case
from evaluation.stored import NEW, OLD, equal, names
from killed import photographed, tree

import recdf as rd
from recdf.evaluation.storage import staged_parts

TESTS = Path(__file__).parents[1]
FILES = {"per_user.parquet", "summary.parquet"}


def write_parts(result, folder):
    """Write a result as the workers of an engine do: the rows in two files."""
    head = result.per_user[:0], result.summary, result.spec
    with staged_parts(folder, head, overwrite=True) as rows:
        rows.mkdir()
        for number in range(2):
            table = pa.Table.from_pandas(result.per_user[number::2], preserve_index=False)
            pq.write_table(table, rows / f"{number}.parquet")


def write_file(result, folder):
    result.to_parquet(folder, overwrite=True)


# The kind of the older result, and that of the newer one.
KINDS = [(write_parts, write_parts), (write_parts, write_file), (write_file, write_parts)]


@pytest.mark.long
@pytest.mark.parametrize(("older", "newer"), KINDS)
def test_a_kill_at_any_operation_leaves_one_result(older, newer, tmp_path, monkeypatch):
    """A reader changes nothing, and the next writer leaves nothing behind."""
    (tmp_path / "run").mkdir()
    monkeypatch.chdir(tmp_path / "run")
    older(OLD, Path("out"))
    with photographed(tmp_path / "killed", lambda done: True, monkeypatch) as taken:
        newer(NEW, Path("out"))
    equal(rd.read_parquet("out"), NEW)
    checked = []
    for step, (done, folder) in taken.items():
        monkeypatch.chdir(folder)
        if (before := tree(".")) in checked:  # the operation before changed no file, as fsync
            continue
        checked.append(before)
        with case(f"killed at {step}: {done[-3:]}"):
            found = rd.read_parquet("out")
            equal(found, NEW if found.spec == NEW.spec else OLD)
            assert tree(".") == before
            older(OLD, Path("out"))
            assert names(Path("out")) == FILES
    assert len(checked) > 15


@pytest.mark.long
@pytest.mark.parametrize(("older", "newer"), KINDS)
def test_an_error_at_any_rename_leaves_one_result(older, newer, tmp_path, monkeypatch):
    """The older one until the manifest is in its place, and then the newer one."""
    replace = os.replace
    for step in (1, 2, 3, 4, 5):
        older(OLD, tmp_path)
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
        equal(rd.read_parquet(tmp_path), OLD if step == 1 else NEW)
        assert names(tmp_path) == FILES


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    from recdf.evaluation import storage

    write_parts(OLD, tmp_path)
    read, done = storage._read_parts, []

    def meanwhile(*given):
        found = read(*given)
        if not done:
            done.append(write_parts(NEW, tmp_path))
        return found

    monkeypatch.setattr(storage, "_read_parts", meanwhile)
    equal(rd.read_parquet(tmp_path), NEW)
    (tmp_path / "summary.parquet").write_bytes(b"of another program")
    with pytest.raises(rd.DataError, match=r"summary\.parquet is no whole parquet file"):
        rd.read_parquet(tmp_path)

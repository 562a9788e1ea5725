"""A write that fails or is killed leaves the old result or the new one, and readers beside it find
one of them."""

import errno
import itertools
import os
import signal
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from cases import case
from evaluation.stored import FILES, FORKING, FULL, NEW, OLD, equal, fail_at, forks, names, python
from killed import tree
from registry.seeded import frames, quietly

import recdf as rd
from recdf import publishing
from recdf.evaluation import storage

pytestmark = pytest.mark.slow

# ------------------------------------------------------------------------------------------------
# crashes


# The calls that fail, and whether the new result counts from there on: its manifest is there.
STEPS = [
    ((pq, "write_table"), 1, False),
    ((pq, "ParquetWriter"), 1, False),
    ((os, "fsync"), 1, False),
    ((os, "fsync"), 2, False),
    ((os, "replace"), 1, False),
    ((os, "replace"), 2, True),
    ((os, "replace"), 3, True),
]


@pytest.mark.parametrize(("target", "call", "new"), STEPS)
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()])
def test_a_failure_at_any_step_keeps_one_result(target, call, new, error, tmp_path, monkeypatch):
    for name, result in (("old", OLD), ("new", NEW), ("out", OLD)):
        result.to_parquet(tmp_path / name)
    fail_at(call, monkeypatch, target, error)
    with pytest.raises(type(error)):
        NEW.to_parquet(tmp_path / "out", overwrite=True)
    monkeypatch.undo()
    found = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    kept = tmp_path / ("new" if new else "old")
    assert found == {path.name: path.read_bytes() for path in kept.iterdir()}
    equal(rd.read_parquet(tmp_path / "out"), NEW if new else OLD)
    NEW.to_parquet(tmp_path / "out", overwrite=True)
    equal(rd.read_parquet(tmp_path / "out"), NEW)


@pytest.mark.parametrize(("target", "call", "new"), STEPS)
def test_a_failure_of_the_first_write(target, call, new, tmp_path, monkeypatch):
    fail_at(call, monkeypatch, target)
    with pytest.raises(
        rd.WriteError, match=rf"{tmp_path}/result(/\w+\.parquet cannot be written)?: No space left"
    ) as caught:
        NEW.to_parquet(tmp_path / "result")
    monkeypatch.undo()
    assert isinstance(caught.value, OSError)
    assert caught.value.errno == errno.ENOSPC
    assert names(tmp_path) == ({"result"} if new else set())
    if new:
        equal(rd.read_parquet(tmp_path / "result"), NEW)


def test_a_full_disk_of_a_report_and_of_parts_is_said_with_its_path(tmp_path, monkeypatch):
    fail_at(1, monkeypatch, (os, "replace"))
    with pytest.raises(rd.WriteError, match=r"new/report\.html cannot be written: No space left"):
        rd.report(OLD, tmp_path / "new" / "report.html")
    monkeypatch.undo()
    for name, frame in (
        ("true", {"user_id": ["u"], "item_id": ["a"]}),
        ("pred", {"user_id": ["u"], "item_id": ["a"]}),
    ):
        pd.DataFrame(frame).to_parquet(tmp_path / f"{name}.parquet")
    paths = tmp_path / "true.parquet", tmp_path / "pred.parquet"
    fail_at(1, monkeypatch, (pq, "ParquetWriter"))
    with pytest.raises(rd.WriteError, match=f"{tmp_path}/new: No space left on device"):
        rd.evaluate_parquet(*paths, "mrr@1", out=tmp_path / "new")
    assert names(tmp_path) == {"true.parquet", "pred.parquet"}


# -- processes that were killed

WRITER = f"""{FORKING}
def write(folder, step):
    true = {{"u": ["a", "b"], "v": ["c"]}}
    new = rd.evaluate(true, {{"u": ["x", "a"], "v": ["c"]}}, ["ndcg@1", "mrr@1"])
    kill_at_rename(step)
    new.to_parquet(folder, overwrite=True)

given = zip(sys.argv[1::2], sys.argv[2::2])
print(*(ended(forked(write, folder, int(step))) for folder, step in given))
"""


@forks
def test_what_a_killed_process_left_is_read_where_it_lies(tmp_path):
    """Nothing runs after the kill: before the manifest, and then before each file takes its
    place."""
    cases = list(itertools.product([False, True], [1, 2, 3], ["read", "write"]))
    folders = [tmp_path / str(number) for number in range(len(cases))]
    for folder, (first, _, _) in zip(folders, cases, strict=True):
        folder.mkdir()
        if not first:
            OLD.to_parquet(folder)
    calls = zip(folders, (step for _, step, _ in cases), strict=True)
    killed = python(WRITER, *itertools.chain.from_iterable(calls))
    assert killed.stderr == ""
    assert killed.stdout.split() == [str(-signal.SIGKILL)] * len(cases)
    for folder, (first, step, then) in zip(folders, cases, strict=True):
        with case(f"first={first} step={step} then={then}"):
            expected = NEW if step > 1 else None if first else OLD
            check_left(folder, expected, then)


def check_left(folder, expected, then):
    """A reader finds what counts, and changes nothing; a writer completes or removes the rest."""
    assert len(names(folder) - FILES) == 1
    before = tree(folder)
    if then == "write":
        if expected is not None:
            with pytest.raises(FileExistsError):
                OLD.to_parquet(folder)
        OLD.to_parquet(folder, overwrite=expected is not None)
        equal(rd.read_parquet(folder), OLD)
        assert names(folder) == FILES
        return
    if expected is None:
        with pytest.raises(FileNotFoundError):
            rd.read_parquet(folder)
    else:
        equal(rd.read_parquet(folder), expected)
    assert tree(folder) == before


def test_the_folder_of_a_writer_that_lives_is_left_alone(tmp_path):
    OLD.to_parquet(tmp_path)
    with storage.staged(tmp_path, overwrite=True) as staging:
        equal(rd.read_parquet(tmp_path), OLD)
        OLD.to_parquet(tmp_path, overwrite=True)
        assert staging.exists()
        storage.write_files(staging, [NEW.per_user], NEW.summary, NEW.spec)
    equal(rd.read_parquet(tmp_path), NEW)
    assert names(tmp_path) == FILES


@pytest.mark.parametrize("age", [0, 2 * publishing.DAY])
def test_without_locks_a_folder_is_swept_after_a_day(age, tmp_path, monkeypatch):
    monkeypatch.setattr(publishing, "fcntl", None)
    OLD.to_parquet(tmp_path)
    left = tmp_path / f"{publishing.PREFIX}left"
    left.mkdir()
    os.utime(left, (left.stat().st_mtime - age,) * 2)
    equal(rd.read_parquet(tmp_path), OLD)
    assert left.exists()
    NEW.to_parquet(tmp_path, overwrite=True)
    assert left.exists() is (age == 0)


def on_windows(monkeypatch):
    """What Windows lacks and refuses: a folder cannot be opened, nor a file be replaced that is
    open."""
    works, opened, tries = os.replace, os.open, []

    def replace(source, target):
        tries.append(Path(target).name)
        if tries.count(Path(target).name) == 1:
            raise PermissionError(
                13, "The process cannot access the file because it is being used", str(target)
            )
        return works(source, target)

    def open_file(path, *how, **more):
        if (
            os.path.isdir(path) and not more
        ):  # shutil, which removes folders, has its own way on Windows
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *how, **more)

    monkeypatch.setattr(publishing, "fcntl", None)
    monkeypatch.setattr(publishing, "WINDOWS", True)
    monkeypatch.setattr(publishing.time, "sleep", lambda _: None)
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(os, "open", open_file)
    return tries


def test_a_result_is_replaced_where_files_are_open_and_folders_cannot_be(tmp_path, monkeypatch):
    OLD.to_parquet(tmp_path)
    tries = on_windows(monkeypatch)
    NEW.to_parquet(tmp_path, overwrite=True)
    equal(rd.read_parquet(tmp_path), NEW)
    assert max(map(tries.count, tries)) == 2
    assert sorted(os.listdir(tmp_path)) == ["per_user.parquet", "summary.parquet"]


def test_files_of_one_run_are_replaced_together_there_too(tmp_path, monkeypatch):
    on_windows(monkeypatch)
    files = tmp_path / "a.parquet", tmp_path / "b.parquet"
    for text in ("old", "new"):
        with publishing.published(files, overwrite=True) as place:
            for path in files:
                place(path).write_text(text, encoding="utf-8")
    assert [path.read_text(encoding="utf-8") for path in sorted(tmp_path.iterdir())] == [
        "new",
        "new",
    ]


def test_of_two_first_writers_one_is_refused(tmp_path):
    late = storage.staged(tmp_path, overwrite=False)
    storage.write_files(late.__enter__(), [NEW.per_user], NEW.summary, NEW.spec)
    OLD.to_parquet(tmp_path)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        late.__exit__(None, None, None)
    equal(rd.read_parquet(tmp_path), OLD)


LOOPS = f"""{FORKING}
def loop(folder, role, n):
    results = [rd.read_parquet(f"{{folder}}/{{name}}") for name in ("one", "two")]
    for turn in range(n):
        if role == "write":
            results[turn % 2].to_parquet(f"{{folder}}/shared", overwrite=True)
        else:
            assert rd.read_parquet(f"{{folder}}/shared") in results

folder, n, *roles = sys.argv[1:]
print(*map(ended, [forked(loop, folder, role, int(n)) for role in roles]))
"""


@forks
def test_readers_beside_writers_find_one_whole_result(tmp_path):
    """The results differ in both tables, one has exposure rows that per_user does not hold."""
    true, pred = frames(5)
    options = {"score_col": "score", "nan_score": "last", "by": "model"}
    quietly(rd.evaluate, true, pred, ["ndcg@3"], **options).to_parquet(tmp_path / "one")
    quietly(rd.evaluate, true, pred, ["ndcg@2", "gini@3"], items=range(14), **options).to_parquet(
        tmp_path / "two"
    )
    rd.read_parquet(tmp_path / "one").to_parquet(tmp_path / "shared")
    roles = ["write", "write", "read", "read", "read"]
    ended = python(LOOPS, tmp_path, 6, *roles)
    assert (ended.stdout.split(), ended.stderr) == (["0"] * len(roles), "")
    assert names(tmp_path / "shared") == FILES

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
from registry.seeded import frames, quietly

import recdf as rd
from recdf.evaluation import publishing, storage

pytestmark = pytest.mark.slow

# ------------------------------------------------------------------------------------------------
# crashes


STEPS = [
    ((pq, "write_table"), 1),
    ((pq, "ParquetWriter"), 1),
    ((os, "fsync"), 1),
    ((os, "fsync"), 2),
    ((os, "replace"), 1),
    ((os, "replace"), 2),
]


@pytest.mark.parametrize(("target", "call"), STEPS)
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()])
def test_a_failure_at_any_step_keeps_the_old_result(target, call, error, tmp_path, monkeypatch):
    OLD.to_parquet(tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    fail_at(call, monkeypatch, target, error)
    with pytest.raises(type(error)):
        NEW.to_parquet(tmp_path, overwrite=True)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    equal(rd.read_parquet(tmp_path), OLD)
    NEW.to_parquet(tmp_path, overwrite=True)
    equal(rd.read_parquet(tmp_path), NEW)


@pytest.mark.parametrize(("target", "call"), STEPS)
def test_a_failure_of_the_first_write_leaves_nothing(target, call, tmp_path, monkeypatch):
    fail_at(call, monkeypatch, target)
    with pytest.raises(
        rd.WriteError, match=f"{tmp_path}/result: No space left on device"
    ) as caught:
        NEW.to_parquet(tmp_path / "result")
    assert isinstance(caught.value, OSError)
    assert caught.value.errno == errno.ENOSPC
    assert names(tmp_path) == set()


def test_a_full_disk_of_a_report_and_of_parts_is_said_with_its_path(tmp_path, monkeypatch):
    fail_at(1, monkeypatch, (os, "replace"))
    with pytest.raises(rd.WriteError, match=f"{tmp_path}/new: No space left on device"):
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
def test_what_a_killed_process_left_is_swept_by_the_next_call(tmp_path):
    """Nothing runs after the kill: before the first rename, and between the two."""
    cases = list(itertools.product([False, True], [1, 2], ["read", "write"]))
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
            check_swept(folder, first, then)


def check_swept(folder, first, then):
    """The next call finds the old result, or none if the killed process wrote the first one, and
    sweeps the rest."""
    assert len(names(folder) - FILES) == 1
    if then == "write":
        (OLD if first else NEW).to_parquet(folder, overwrite=not first)
        equal(rd.read_parquet(folder), OLD if first else NEW)
    elif first:
        with pytest.raises(FileNotFoundError):
            rd.read_parquet(folder)
    else:
        equal(rd.read_parquet(folder), OLD)
        pd.testing.assert_frame_equal(pd.read_parquet(folder / "summary.parquet"), OLD.summary)
    assert names(folder) == (set() if first and then == "read" else FILES)


def test_the_folder_of_a_writer_that_lives_is_left_alone(tmp_path):
    OLD.to_parquet(tmp_path)
    with publishing.staged(tmp_path, overwrite=True) as staging:
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
    for text in ("old", "new"):
        with publishing.staged(tmp_path, ("a.parquet", "b.parquet"), overwrite=True) as staging:
            for name in ("a.parquet", "b.parquet"):
                (staging / name).write_text(text, encoding="utf-8")
    assert [path.read_text(encoding="utf-8") for path in sorted(tmp_path.iterdir())] == [
        "new",
        "new",
    ]


def test_of_two_first_writers_one_is_refused(tmp_path):
    late = publishing.staged(tmp_path, overwrite=False)
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

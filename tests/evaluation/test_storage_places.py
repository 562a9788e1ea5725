"""Places that take no result: an error in plain words, and nothing stays. A place may begin with
`~`."""

import errno
import os
from pathlib import Path

import pytest
from evaluation.stored import FILES, NEW, OLD, equal, fail_at, names

import recdf as rd


def evaluated(folder):
    """A result that evaluate_parquet writes into a folder."""
    files = Path(__file__).parents[1] / "golden" / "candidates.parquet"
    rd.evaluate_parquet(files, files, "mrr@1", out=folder)


WRITERS = [OLD.to_parquet, evaluated]


def refused(folder, error, words):
    """Both writers refuse the folder, before a file is read."""
    for write in WRITERS:
        with pytest.raises(error, match=words):
            write(folder)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="this platform has no /proc")
@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("/proc", "^nothing can be written into the folder /proc$"),
        ("/proc/x", "^the folder /proc/x cannot be made: No such file or directory$"),
        ("/proc/self/status", "^/proc/self/status is a file; expected a folder"),
    ],
)
def test_the_folder_of_processes(folder, words):
    refused(folder, OSError, words)


def test_a_folder_without_the_right_to_write(tmp_path):
    tmp_path.chmod(0o555)
    try:
        if os.access(tmp_path, os.W_OK):
            pytest.skip(
                "this user may write into every folder, as root may, or this system has other "
                "rights"
            )
        refused(
            tmp_path,
            PermissionError,
            r"^nothing can be written into the folder .*: Permission denied$",
        )
        refused(tmp_path / "out", PermissionError, r"out cannot be made: Permission denied$")
        assert names(tmp_path) == set()
    finally:
        tmp_path.chmod(0o755)


def test_a_drive_that_is_read_only(tmp_path, monkeypatch):
    """Only its owner can make one, so the system call answers as such a drive does."""
    for write in WRITERS:
        fail_at(4, monkeypatch, (os, "mkdir"), OSError(errno.EROFS, "Read-only file system"))
        with pytest.raises(
            OSError, match=r"^nothing can be written into the folder .*out: Read-only file system$"
        ):
            write(tmp_path / "deep" / "out")
        monkeypatch.undo()
    assert names(tmp_path) == set()


def test_a_file_and_a_path_below_it(tmp_path):
    file = tmp_path / "file"
    file.write_text("kept")
    words = r"file is a file; expected a folder, in which the result is written$"
    refused(file, FileExistsError, words)
    refused(file / "deep" / "out", NotADirectoryError, words)
    refused(
        tmp_path / "new" / ("x" * 999),
        OSError,
        r"^the folder .* cannot be made: File name too long$",
    )
    assert names(tmp_path) == {"file"}
    assert file.read_text(encoding="utf-8") == "kept"


def test_new_folders_go_again_when_the_result_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    fail_at(1, monkeypatch, (os, "fsync"))
    with pytest.raises(OSError, match="No space left"):
        OLD.to_parquet(tmp_path / "there" / "new" / "out")
    assert names(tmp_path) == {"there"}
    assert names(tmp_path / "there") == set()


def test_the_home_folder_and_an_empty_path(tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.chdir(tmp_path)
    NEW.to_parquet("~/out")
    assert names(home / "out") == FILES
    equal(rd.read_parquet("~/out"), NEW)
    for name in ("true", "pred"):
        NEW.per_user.assign(item_id=1).to_parquet(home / f"{name}.parquet")
    assert (
        rd.evaluate_parquet("~/true.parquet", "~/pr*.parquet", "mrr@1").summary["value"].item()
        == 1.0
    )
    refused("", rd.OptionError, r'^the path is empty; pass "." for the current folder$')
    with pytest.raises(rd.OptionError, match="the path is empty"):
        rd.read_parquet("")
    assert names(tmp_path) == {"home"}

"""Files appear as a whole, and what a stranger put into a folder does no harm: no reader and no
writer touches what is outside, and neither hangs."""

import itertools
import json
import os
import shutil
import stat
from pathlib import Path

import pandas as pd
import pytest
from cases import case
from cli.command import run
from cli.frames import PRED, TRUE
from cli.shop import SHOP, models
from evaluation.stored import FULL, NEW, OLD, equal, fail_at, names
from killed import is_killed, killed_at, tree

import recdf as rd
from recdf import publishing
from recdf.publishing import MANIFEST, PREFIX, published, steadily, where

VICTIM = {"secret.txt": b"theirs", "per_user.parquet": b"theirs", "true.parquet": b"theirs"}
has_fifo = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")

# -------------------------------------------------------------------------------------------
# strangers


def manifest(staging, files):
    (staging / MANIFEST).write_text(json.dumps(files), encoding="utf-8")


def link_to_victim(path):
    path.symlink_to("../../victim", target_is_directory=True)


def old_undoing(staging):
    """What an earlier recdf would have moved into the result, or deleted."""
    (staging / "new").mkdir()
    (staging / "names").touch()
    (staging / "per_user.parquet").touch()
    link_to_victim(staging / "old")


def names_outside(staging):
    manifest(staging, {"../victim/secret.txt": False, "/etc/hostname": False, "..": True})


def absolute_names(staging):
    manifest(staging, {str(staging.parents[1] / "victim" / "secret.txt"): True})


def file_in_the_place_of_a_folder(staging):
    """The older folder, which may be full of files, stays."""
    (staging / "notes").touch()
    (staging.parent / "notes" / "mine").mkdir(parents=True, exist_ok=True)
    manifest(staging, {"notes": True})


def link_as_manifest(staging):
    (staging / MANIFEST).symlink_to("../../victim/secret.txt")


def link_as_file(staging):
    (staging / "per_user.parquet").symlink_to("../../victim/per_user.parquet")
    manifest(staging, {"per_user.parquet": True, "summary.parquet": False})


def link_as_rows(staging):
    link_to_victim(staging / "per_user.parquet")
    manifest(staging, {"per_user.parquet": True})


def folder_as_file(staging):
    (staging / "summary.parquet").mkdir()
    manifest(staging, {"summary.parquet": True})


def folder_as_manifest(staging):
    (staging / MANIFEST).mkdir()


def pipe_as_manifest(staging):
    os.mkfifo(staging / MANIFEST)


def pipe_as_file(staging):
    os.mkfifo(staging / "per_user.parquet")
    manifest(staging, {"per_user.parquet": True})


def no_utf8(staging):
    (staging / MANIFEST).write_bytes(b'{"per_user.parquet\xff": true}')


def no_json(staging):
    (staging / MANIFEST).write_bytes(b"[" * 5000)


def no_names(staging):
    manifest(staging, ["per_user.parquet"])


def far_too_long(staging):
    with open(staging / MANIFEST, "wb") as file:
        file.truncate(2**40)


def its_own_files(staging):
    manifest(staging, {MANIFEST: True, f"{PREFIX}b": True, "": True})


HARMLESS = [old_undoing, file_in_the_place_of_a_folder]
PLANTED = [
    names_outside,
    absolute_names,
    link_as_manifest,
    link_as_file,
    link_as_rows,
    folder_as_file,
    folder_as_manifest,
    pytest.param(pipe_as_manifest, marks=has_fifo),
    pytest.param(pipe_as_file, marks=has_fifo),
    no_utf8,
    no_json,
    no_names,
    far_too_long,
    its_own_files,
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder of dated results, with somebody else's folder two levels above a hidden one."""
    root = tmp_path / "past"
    for name, data in VICTIM.items():
        for victim in (tmp_path / "victim", root / "victim"):
            victim.mkdir(exist_ok=True, parents=True)
            (victim / name).write_bytes(data)
    shutil.rmtree(root / "victim")
    (tmp_path / "past" / "2026-11-01").mkdir(parents=True)
    OLD.to_parquet(root / "2026-11-01")
    TRUE.to_parquet(root / "2026-11-01" / "true.parquet")
    PRED.to_parquet(root / "2026-11-01" / "pred.parquet")
    pd.DataFrame({"a": [1]}).to_parquet(root / "2026-11-01" / "health.parquet")
    monkeypatch.chdir(tmp_path)
    return root / "2026-11-01"


def planted(plant, place, name="a"):
    staging = place / f"{PREFIX}{name}"
    staging.mkdir()
    plant(staging)
    return staging


FILES = ["--true", "past/2026-11-01/true.parquet", "--pred", "past/2026-11-01/pred.parquet"]
READERS = [
    ["compare", "past/2026-11-01"],
    ["gate", "past/2026-11-01", "--baseline", "past/2026-11-01", "--budget", "mrr@1=-1%"],
    ["diff", "past/2026-11-01", "past/2026-11-01"],
    ["history", "past"],
    ["report", "past/2026-11-01", "--out", "page.html", "--overwrite"],
    [
        "report",
        "past/2026-11-01",
        "--out",
        "page.html",
        "--health",
        "past/2026-11-01/health.parquet",
    ],
    ["report", "--history", "past", "--out", "page.html"],
    ["evaluate", *FILES, "-m", "mrr@1", "--by", "model"],
    ["check", *FILES, "--by", "model"],
    ["aa", "past/2026-11-01"],
    ["plan", "past/2026-11-01", "--metric", "mrr@1", "--rel-effect", "0.1"],
]


@pytest.mark.few(6)
@pytest.mark.parametrize("plant", PLANTED)
def test_what_was_planted_is_not_believed(plant, place):
    """An error names the folder, and nothing was changed, in the folder or outside."""
    planted(plant, place)
    before = tree(".")
    for path in (place, place / "true.parquet"):
        with pytest.raises(rd.DataError, match=PREFIX):
            rd.read_parquet(path) if path == place else rd.read(path)
    assert tree(".") == before


@pytest.mark.long
@pytest.mark.parametrize("plant", PLANTED)
def test_no_command_believes_what_was_planted(plant, place, capsys):
    """One line says what to remove."""
    staging = planted(plant, place)
    before = tree(".")
    for call in READERS:
        with case(" ".join(call[:2])):
            code, out, err = run(capsys, *call)
            assert (code, out, err.count("\n")) == (2, "", 1), err
            assert f"remove {staging}" in err or f"remove past/2026-11-01/{PREFIX}a" in err
            assert tree(".") == before


@pytest.mark.long
def test_hidden_folders_without_a_manifest_are_passed_over(place, capsys):
    planted(old_undoing, place)
    link_to_victim(place / f"{PREFIX}link")
    (place / f"{PREFIX}file").write_bytes(b"\xff")
    if hasattr(os, "mkfifo"):
        os.mkfifo(place / f"{PREFIX}pipe")
    before = tree(".")
    equal(rd.read_parquet(place), OLD)
    for call in READERS:
        run(capsys, *call)
        Path("page.html").unlink(missing_ok=True)
        Path("page.html.run.json").unlink(missing_ok=True)
        assert tree(".") == before


def test_overwrite_is_true_or_false(place):
    log = place / "log.parquet"
    pd.DataFrame({"user_id": [1], "item_id": [1], "rank": [1]}).to_parquet(log)
    calls = [
        lambda: NEW.to_parquet(place, overwrite="no"),
        lambda: NEW.to_duckdb("nightly", overwrite="no"),
        lambda: rd.evaluate_parquet(log, log, "hits", out=place, overwrite="no"),
        lambda: rd.logs.impressions_parquet(log, place, overwrite="no"),
    ]
    before = tree(place)
    for call in calls:
        with pytest.raises(rd.OptionError, match=r"overwrite='no'; expected True or False"):
            call()
    assert tree(place) == before


@pytest.mark.few(2)
@pytest.mark.parametrize("plant", [*HARMLESS, *PLANTED])
def test_a_writer_goes_on_and_touches_nothing_outside(plant, place):
    """What recdf did not write is removed, and does not stop what comes after it."""
    planted(plant, place, "a")
    shutil.copytree(planted(old_undoing, place, "b"), place / f"{PREFIX}c", symlinks=True)
    outside = tree("victim")
    with pytest.raises(FileExistsError):
        NEW.to_parquet(place)
    NEW.to_parquet(place, overwrite=True)
    equal(rd.read_parquet(place), NEW)
    assert tree("victim") == outside
    kept = {"per_user.parquet", "summary.parquet", "true.parquet", "pred.parquet", "health.parquet"}
    assert names(place) - {"notes"} == kept
    assert not (place / "notes").exists() or (place / "notes" / "mine").is_dir()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid(), reason="needs another user")
def test_a_hidden_folder_of_another_user_is_left_alone(place):
    """As in /tmp, where everybody may make folders."""
    staging = planted(lambda one: manifest(one, {"true.parquet": False}), place)
    os.chown(staging, 12345, 12345)
    equal(rd.read_parquet(place), OLD)
    assert where(place / "true.parquet") == place / "true.parquet"
    NEW.to_parquet(place, overwrite=True)
    assert staging.exists()
    assert (place / "true.parquet").exists()


# What stands where a file of a result should be.
NO_FILES = {
    "link": lambda path: path.symlink_to("../../victim/secret.txt"),
    "link to nothing": lambda path: path.symlink_to("../../nowhere"),
    "folder": lambda path: path.mkdir(),
    "pipe": lambda path: os.mkfifo(path),
    "bytes": lambda path: path.write_bytes(b"\xff\xfe"),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize("name", ["per_user.parquet", "summary.parquet", "profile.parquet"])
def test_what_is_no_file_is_an_error_and_not_opened(what, name, place, capsys):
    (place / name).unlink(missing_ok=True)
    NO_FILES[what](place / name)
    before = tree(".")
    if name != "profile.parquet":
        with pytest.raises((rd.DataError, FileNotFoundError), match=name):
            rd.read_parquet(place)
    code, _, err = run(capsys, "history", "past")
    read_by_history = name != "per_user.parquet"
    assert (code, err.count("\n")) == ((2, 1) if read_by_history else (0, 0)), err
    assert name in err or not read_by_history
    assert tree(".") == before


@pytest.mark.long
@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize("name", ["run.json", "comparison.parquet"])
def test_records_and_tables_that_are_no_files(what, name, place, capsys):
    other = rd.evaluate(TRUE, PRED, "mrr@1", by="model")
    other.to_parquet("other")
    assert run(capsys, "compare", "other", "--out", place, "--overwrite")[0] == 0
    (place / name).unlink()
    NO_FILES[what](place / name)
    before = tree(".")
    code, _, err = run(capsys, "history", "past")
    assert (code, err.count("\n")) == (2, 1)
    assert name in err
    table = place / name
    code, _, err = run(capsys, "report", "--experiment", table, "--out", "page.html")
    assert (code, err.count("\n")) == (2, 1)
    assert tree(".") == before


@pytest.mark.long
def test_a_link_to_data_is_followed(place, capsys):
    SHOP.log.to_parquet("log.parquet")
    rd.diagnostics.exposure_table(SHOP.pred, by="model").to_parquet("exposure.parquet")
    models().to_parquet("models")
    call = ["report", "models", "--out", "page.html"]
    for name in ("log", "exposure"):
        (place / f"{name}.parquet").symlink_to(Path(f"{name}.parquet").absolute())
        call += [f"--{name}", place / f"{name}.parquet"]
    assert run(capsys, *call)[0] == 0


# -------------------------------------------------------------------------------------------
# writing


def write(files, overwrite=True, verdicts=()):
    """Write texts into files that belong together, and into those that come last."""
    with published(files, overwrite=overwrite, verdicts=verdicts) as at:
        for path, text in {**files, **dict(verdicts)}.items():
            at(path).write_text(text, encoding="utf-8")


@pytest.mark.long
def test_links_are_replaced_and_not_followed(tmp_path):
    kept = tmp_path / "kept.xml"
    kept.write_text("mine")
    gate = rd.gate(OLD, OLD, {"mrr@1": -0.1})
    writers = {
        "junit.xml": gate.to_junit,
        "report.html": lambda path: rd.report(OLD, path, overwrite=True),
        "values.txt": OLD.to_trec,
        "run.txt": lambda path: rd.write_trec({"u": {"a": 1.0}}, path, kind="run"),
    }
    for name, writer in writers.items():
        (tmp_path / name).symlink_to(kept)
        writer(tmp_path / name)
        assert not (tmp_path / name).is_symlink()
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) & 0o400
    for name in ("per_user.parquet", "summary.parquet"):
        (tmp_path / name).symlink_to(kept)
    with pytest.raises(FileExistsError, match="already holds"):
        OLD.to_parquet(tmp_path)
    OLD.to_parquet(tmp_path, overwrite=True)
    equal(rd.read_parquet(tmp_path), OLD)
    assert kept.read_text() == "mine"


def test_a_full_disk_names_the_file_and_keeps_the_older_one(tmp_path, monkeypatch):
    path = tmp_path / "junit.xml"
    path.write_text("older")
    gate = rd.gate(OLD, OLD, {"mrr@1": -0.1})
    for target in ((os, "fsync"), (os, "replace"), (Path, "write_text")):
        fail_at(1, monkeypatch, target)
        with pytest.raises(rd.WriteError, match=r"junit\.xml cannot be written: No space left"):
            gate.to_junit(path)
        monkeypatch.undo()
        assert path.read_text() == "older"
        assert names(tmp_path) == {"junit.xml"}


@pytest.mark.long
def test_all_files_are_checked_before_the_first_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    calls = {
        "demo": ["demo", "--out", "out"],
        "true.parquet": ["demo", "--out", "out"],
        "profile.parquet": ["evaluate", *FILES, "-m", "mrr@1", "--out", "out"],
        "checks.parquet": ["gate", "x", "--baseline", "x", "--budget", "mrr@1=1%", "--out", "out"],
        "roles.parquet": ["compare", "x", "--out", "out"],
        "page": ["report", "x", "--out", "out/page"],
    }
    for name, call in calls.items():
        for overwrite in ([], ["--overwrite"]):
            for make in (Path.mkdir, Path.touch):
                path = Path("out", "report.html" if name == "demo" else name)
                path.parent.mkdir()
                make(path)
                if make is Path.mkdir or not overwrite:
                    code, out, err = run(capsys, *call, *overwrite)
                    what = "is a folder" if make is Path.mkdir else "pass --overwrite to replace it"
                    with case(f"{call[0]} {name} {overwrite} {make}"):
                        assert (code, out, err.count("\n")) == (2, "", 1)
                        assert path.name in err
                        assert what in err or overwrite == []
                        assert names("out") == {path.name}
                shutil.rmtree("out")
    for flag in ("--junit", "--summary"):
        Path("folder").mkdir(exist_ok=True)
        call = ["gate", "x", "--baseline", "x", "--budget", "mrr@1=1%", flag, "folder"]
        assert "folder is a folder" in run(capsys, *call)[2]


@pytest.mark.long
def test_a_verdict_comes_last_and_never_tells_of_another_run(tmp_path, monkeypatch):
    """Also if it stands in another folder, which one rename cannot reach."""
    tables = {tmp_path / "out" / name: "old" for name in ("gate", "checks")}
    verdict = tmp_path / "ci" / "junit.xml"
    for step in range(1, 100):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        write(tables, verdicts={verdict: "old"})
        with killed_at(step, monkeypatch) as done:
            write(dict.fromkeys(tables, "new"), verdicts={verdict: "new"})
        before = tree(tmp_path)
        (found,) = {where(path).read_text() for path in tables}
        assert not verdict.exists() or verdict.read_text() == found
        assert tree(tmp_path) == before
        if not is_killed(done, step):
            break
    assert verdict.read_text() == found == "new"
    assert not list(tmp_path.rglob(f"{PREFIX}*"))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("n_old", "n_new"), [(1, 1), (2, 2), (1, 0), (2, 0), pytest.param(3, 2, marks=pytest.mark.long)]
)
def test_a_kill_at_any_operation_leaves_all_files_of_one_run(n_old, n_new, tmp_path, monkeypatch):
    """Also if the newer run only removes files, the first one among them."""
    old = {tmp_path / name: f"old {name}" for name in ("a", "b", "gone")[:n_old]}
    new = {tmp_path / name: f"new {name}" for name in ("a", "b")[:n_new]}
    for step in range(1, 100):
        for path in tmp_path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        write(old)
        with killed_at(step, monkeypatch) as done, published(old, overwrite=True) as at:
            for path, text in new.items():
                at(path).write_text(text)
        before = tree(tmp_path)
        found = {path: where(path).read_text() for path in old if publishing.is_there(path)}
        assert found in (old, new)
        in_place = {path: path.read_text() for path in old if path.exists()}
        assert in_place.items() <= old.items() or in_place.items() <= new.items()
        assert tree(tmp_path) == before
        if not is_killed(done, step):
            break
        write({tmp_path / "another": ""})
        assert {path: path.read_text() for path in old if path.exists()} == found
        assert names(tmp_path) == {"another", *(path.name for path in found)}
    assert found == new


def test_the_same_folder_under_two_names_is_locked_once(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "link").symlink_to("out", target_is_directory=True)
    write({tmp_path / "out" / "a": "1"}, verdicts={tmp_path / "link" / "b": "2"})
    assert names(tmp_path / "out") == {"a", "b"}


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="this system has no such files")
def test_a_stream_is_written_to_and_not_replaced(tmp_path, capfd):
    rd.write_trec({"u": {"a": 1.0}}, "/dev/stdout", kind="run")
    rd.gate(OLD, OLD, {"mrr@1": -0.1}).to_junit("/dev/null")
    assert "recdf" in capfd.readouterr().out
    assert Path("/dev/stdout").is_symlink()
    assert not Path("/dev/null").is_file()


def test_what_changes_whenever_it_is_read_is_an_error(tmp_path):
    path = tmp_path / "a"
    path.touch()
    turn = itertools.count()
    with pytest.raises(rd.DataError, match="changes whenever it is read"):
        steadily([path], lambda: os.utime(path, (0, next(turn))))
    assert steadily([path], path.read_bytes) == b""
    with pytest.raises(OSError, match="No space") as caught:
        fails(FULL, path)
    assert caught.value is FULL


def fails(error, path):
    def read():
        raise error

    steadily([path], read)


def test_a_file_that_a_writer_moves_between_finding_and_opening_is_read(tmp_path):
    """A rename keeps all numbers of a file: only its place tells that it was moved."""
    write({tmp_path / name: name for name in ("a", "b")})
    staging = tmp_path / f"{PREFIX}1"
    staging.mkdir()
    for name in ("a", "b"):
        (staging / name).write_text(f"new {name}")
    manifest(staging, {"a": True, "b": True})
    moves = iter([*(staging / name for name in ("b", "a")), None])

    def read():
        place = where(tmp_path / "b")
        if (moved := next(moves)) is not None:
            moved.rename(tmp_path / moved.name)
        return place.read_text()

    assert steadily([tmp_path / "a", tmp_path / "b"], read) == "new b"

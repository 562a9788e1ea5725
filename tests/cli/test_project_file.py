"""The options of a project: recdf.toml, or [tool.recdf] of pyproject.toml, in the current folder or
above."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from cli.command import WITH_RECDF, fails, run

import recdf as rd

TRUE = pd.DataFrame({"customer": [1, 1, 2], "item_id": [1, 2, 3], "relevance": [1, 5, 1]})
PRED = pd.DataFrame(
    {"uid": [1, 1, 1, 2], "item_id": [1, 2, 9, 3], "yhat": [3.0, 2, 1, 1], "model": ["a"] * 4}
)
NAMES = {"true_cols": {"user_id": "customer"}, "pred_cols": {"user_id": "uid", "score": "yhat"}}
CALL = ["evaluate", "--true", "true.parquet", "--pred", "pred.parquet", "-m", "recall"]
TYPED = ["--true-cols", "user_id=customer", "--pred-cols", "user_id=uid", "score=yhat"]
PROJECT = """
k = [1, 2]
[true-cols]
user_id = "customer"
[pred-cols]
user_id = "uid"
score = "yhat"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A repository with two files of rows, in which the command runs."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    TRUE.to_parquet("true.parquet")
    PRED.to_parquet("pred.parquet")
    return tmp_path / "project"


def write(text, name="recdf.toml"):
    Path(name).write_text(text, encoding="utf-8")


def summary(capsys, *words):
    code, out, err = run(capsys, *words, "--format", "json")
    assert code == 0, err
    return {f"{row['metric']}@{row['k']}": row["value"] for row in json.loads(out)}, err


EXPECTED = {"recall@1": (1 / 2 + 1) / 2, "recall@2": 1}


@pytest.mark.long
@pytest.mark.parametrize("name", ["recdf.toml", "pyproject.toml"])
def test_what_a_project_states_counts_as_typed_and_is_said(capsys, name):
    tables = PROJECT.replace("[true", "[tool.recdf.true").replace("[pred", "[tool.recdf.pred")
    write(PROJECT if name == "recdf.toml" else f"[tool.recdf]{tables}", name)
    found, err = summary(capsys, *CALL, "--out", "out")
    assert found == EXPECTED
    said = "-k1 -k2 --true-cols=user_id=customer --pred-cols=user_id=uid --pred-cols=score=yhat"
    assert err.splitlines()[0] == f"recdf: options of {name}: {said}"
    assert rd.read_parquet("out") == rd.evaluate(TRUE, PRED, "recall", k=[1, 2], **NAMES)
    record = json.loads(Path("out/run.json").read_text(encoding="utf-8"))
    assert f"--project={name}" in record["command"]
    assert "--true-cols=user_id=customer" in record["command"]
    assert [one["path"] for one in record["inputs"]["project"]] == [name]
    code, _, err = run(
        capsys, *record["command"][1:], "--overwrite"
    )  # the recorded call is the same call
    assert (code, rd.read_parquet("out")) == (
        0,
        rd.evaluate(TRUE, PRED, "recall", k=[1, 2], **NAMES),
    ), err
    assert run(capsys, *CALL, "-q")[2] == ""


@pytest.mark.long
def test_the_nearest_file_counts_and_the_search_ends_at_the_repository(capsys, folder, monkeypatch):
    write("k = 7", folder.parent / "recdf.toml")
    assert "recall@10" in summary(capsys, *CALL, *TYPED)[0]  # it is above the repository
    write("[tool.other]\nk = 5", "pyproject.toml")
    (folder / "jobs").mkdir()
    write(PROJECT, folder / "recdf.toml")
    monkeypatch.chdir("jobs")
    above = ["evaluate", "--true", "../true.parquet", "--pred", "../pred.parquet", "-m", "recall"]
    found, err = summary(capsys, *above)
    assert found == EXPECTED
    assert f"options of {folder / 'recdf.toml'}: " in err
    write("[tool.recdf]\nk = 1", "pyproject.toml")
    assert list(summary(capsys, *above, *TYPED)[0]) == ["recall@1"]  # the two files are not mixed
    write("k = 2", "recdf.toml")
    assert list(summary(capsys, *above, *TYPED)[0]) == ["recall@2"]  # and recdf.toml comes first
    assert "recall@10" in summary(capsys, *above, *TYPED, "--no-project")[0]
    assert summary(capsys, *above, "--project", folder / "recdf.toml")[0] == EXPECTED


def test_the_search_ends_at_the_home_folder(capsys, folder, monkeypatch):
    (folder / ".git").rmdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    write("k = 7", folder.parent / "recdf.toml")
    assert "recall@10" in summary(capsys, *CALL, *TYPED)[0]
    write("k = 6")
    assert "recall@6" in summary(capsys, *CALL, *TYPED)[0]


def test_a_home_folder_that_is_a_link_ends_the_search_too(capsys, folder, monkeypatch):
    (folder / ".git").rmdir()
    link = folder.parent / "link"
    try:
        link.symlink_to(folder, target_is_directory=True)
    except OSError:
        pytest.skip("links cannot be made here")
    monkeypatch.setenv("HOME", str(link))
    monkeypatch.setenv("USERPROFILE", str(link))
    write("k = 7", folder.parent / "recdf.toml")
    assert "recall@10" in summary(capsys, *CALL, *TYPED)[0]


@pytest.mark.slow
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)
def test_a_folder_that_the_user_cannot_search_has_no_file(folder):
    """A job that changes its user, as `sudo -u`, is often in a folder of the user that started
    it."""
    code = (
        "import os, sys, recdf.cli.option_files as files; os.chdir(sys.argv[1]); "
        "os.setuid(65534);print(files._project(None))"
    )
    write("k = 7")
    folder.chmod(0o700)
    done = subprocess.run(
        [sys.executable, "-c", code, folder], env=WITH_RECDF, capture_output=True, text=True
    )
    assert done.stdout == "None\n", done.stderr


def test_flags_win_over_config_and_that_over_the_project(capsys):
    write(f'judged-only = true\nties = "item_asc"{PROJECT}')
    write('k = [3]\njudged-only = false\nties = "row"', "job.toml")
    found, err = summary(capsys, *CALL, "--config", "job.toml")
    assert (list(found), "judged" in err, "ties" in err) == (["recall@3"], False, False)
    assert list(summary(capsys, *CALL, "--config", "job.toml", "-k", "4", "5")[0]) == [
        "recall@4",
        "recall@5",
    ]
    assert list(summary(capsys, *CALL, "-k", "4")[0]) == ["recall@4"]
    code, _, err = run(capsys, *CALL, "--true-cols", "user_id=no_such")
    assert (code, "no_such" in err) == (2, True)
    write("no-project = true", "job.toml")
    assert "recall@10" in summary(capsys, *CALL, *TYPED, "--config", "job.toml")[0]


def test_a_table_of_a_command_comes_before_what_all_share(capsys):
    files = 'true = "true.parquet"\npred = "pred.parquet"'
    write(f'{PROJECT}\n[evaluate]\nk = 3\n{files}\n[compare]\nmetric = ["recall@1"]')
    assert list(summary(capsys, "evaluate", "-m", "recall")[0]) == ["recall@3"]
    write("[compare]\nbaseline = 'a'")
    assert (
        "recall@10" in summary(capsys, *CALL, *TYPED)[0]
    )  # no table of this command, which is no error
    assert run(capsys, *CALL, *TYPED)[2] == ""  # and nothing was taken


def test_a_key_of_another_command_is_left_out_and_an_unknown_one_is_an_error(capsys):
    write(f'baseline = "a"{PROJECT}')
    assert summary(capsys, *CALL)[0] == EXPECTED
    write(f'baselin = "a"{PROJECT}')
    assert "recdf.toml: no command has an option 'baselin'; did you mean 'baseline'?" in fails(
        capsys, *CALL
    )
    write("[evaluate]\nbaseline = 'a'")
    assert "recdf.toml [evaluate]: recdf evaluate has no option 'baseline'" in fails(capsys, *CALL)
    write("[evalute]\nk = 3")
    assert "no command has an option 'evalute'; did you mean 'evaluate'?" in fails(capsys, *CALL)


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("k = 'five'", "recdf.toml: k = 'five': invalid int value"),
        ("k = 1.5", "recdf.toml: k = 1.5: invalid int value"),
        ("k = true", "recdf.toml: k = True; expected text, a number, or a list of them"),
        ("ties = 'rows'", "recdf.toml: ties = 'rows': invalid choice: 'rows' (choose from "),
        ("judged-only = 'yes'", "recdf.toml: judged-only = 'yes'; expected true or false"),
        ("item-col = ['a', 'b']", "recdf.toml: item-col = ['a', 'b']; expected one value"),
        ("by = []", "recdf.toml: by = []; expected a value"),
        ("by = {a = 1}", "recdf.toml: by = {'a': 1}; expected text"),
        (
            "true-cols = {user_id = ['a']}",
            "recdf.toml: true-cols = {'user_id': ['a']}; expected text",
        ),
        (
            "[tool.recdf]\nk = 3",
            "no command has an option 'tool'; leave out tool.recdf, which is for pyproject.toml",
        ),
        ("k = 3\nk = 4", "recdf.toml is no TOML file"),
        ("user-col = 'a'\nuser_col = 'b'", "recdf.toml: user_col is given twice, as user-col too"),
        *(
            (f"{key} = 1", f"no command has an option '{key}'")
            for key in ("config", "project", "no-project", "help")
        ),
    ],
)
def test_a_wrong_file_is_an_error_that_names_it_and_the_key(capsys, text, words):
    write(text)
    assert words in fails(capsys, *CALL)
    assert run(capsys, *CALL, *TYPED, "--no-project")[0] == 0
    assert run(capsys, "evaluate", "--help")[0] == 0


def test_a_file_may_begin_with_the_mark_that_editors_of_windows_write(capsys):
    Path("recdf.toml").write_text(PROJECT, encoding="utf-8-sig")
    assert summary(capsys, *CALL)[0] == EXPECTED
    Path("job.toml").write_text("k = 2", encoding="utf-8-sig")
    assert list(summary(capsys, *CALL, "--config", "job.toml")[0]) == ["recall@2"]


def test_a_wrong_value_of_config_names_the_file_too(capsys):
    write("k = 'five'", "job.toml")
    assert "--config job.toml: k = 'five': invalid int value" in fails(
        capsys, *CALL, "--config", "job.toml"
    )


@pytest.mark.long
def test_only_what_is_used_is_said(capsys):
    write(f'results = "other"\nquiet = true{PROJECT}')
    _, err = summary(capsys, *CALL, "-k", "4", "--true-cols", "user_id=customer")
    options = "--quiet --pred-cols=user_id=uid --pred-cols=score=yhat"
    assert err == f"recdf: options of recdf.toml: {options}\n"  # though the file asks for quiet
    assert summary(capsys, *CALL, *TYPED, "-q")[1] == ""
    write("k = 7")
    assert (
        summary(capsys, *CALL, *TYPED, "-k5")[1] == ""
    )  # the value may be in one word with the flag
    write(PROJECT)
    assert run(capsys, *CALL, "--out", "out", "-q")[2] == ""
    write('results = "out"\nformat = "json"')
    code, out, err = run(capsys, "report", "--out", "page.html")
    assert (code, err) == (0, "recdf: options of recdf.toml: out --format=json\n"), out
    code, _, err = run(capsys, "report", "absent", "--out", "page.html")
    assert (code, err.splitlines()[0]) == (2, "recdf: options of recdf.toml: --format=json")


def test_the_current_folder_was_removed(capsys, folder, monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    files = ["--true", folder / "true.parquet", "--pred", folder / "pred.parquet"]
    code, _, err = run(capsys, "evaluate", *files, "-m", "recall", *TYPED)
    assert code == 0, err


def test_a_named_file_that_has_no_options(capsys):
    write("[project]\nname = 'x'", "pyproject.toml")
    assert "--project pyproject.toml has no table [tool.recdf]" in fails(
        capsys, *CALL, "--project", "pyproject.toml"
    )
    assert "absent.toml: No such file" in fails(capsys, *CALL, "--project", "absent.toml")
    write("[tool]\nrecdf = 3", "pyproject.toml")
    assert "pyproject.toml: tool.recdf = 3; expected a table [tool.recdf]" in fails(capsys, *CALL)
    write("tool = 3", "pyproject.toml")
    assert "recall@10" in summary(capsys, *CALL, *TYPED)[0]


def test_paths_of_a_project_are_those_of_its_folder(capsys, folder, monkeypatch):
    (folder / "jobs").mkdir()
    (folder / "data").mkdir()
    for name in ("true", "pred"):
        Path(f"{name}.parquet").rename(f"data/{name}.parquet")
    write(
        f'users = "pred"{PROJECT}\n[evaluate]\ntrue = "data/true.parquet"\npred = '
        '"data/pre*.parquet"\nout = "night"'
    )
    monkeypatch.chdir("jobs")
    assert summary(capsys, "evaluate", "-m", "recall")[0] == EXPECTED
    assert (folder / "night" / "per_user.parquet").exists()
    write(
        PROJECT + f'\n[evaluate]\ntrue = "{(folder / "data/true.parquet").as_posix()}"',
        "../recdf.toml",
    )
    assert (
        summary(capsys, "evaluate", "-m", "recall", "--pred", "../data/pred.parquet")[0] == EXPECTED
    )


@pytest.mark.slow
def test_a_process_reads_the_project_of_its_folder(folder):
    write(PROJECT)
    done = subprocess.run(
        [sys.executable, "-m", "recdf", *CALL, "--format", "csv"],
        cwd=folder,
        env=WITH_RECDF | {"LANG": "C"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "options of recdf.toml" in done.stderr
    assert os.listdir(folder).count("recdf.toml") == 1
    assert done.stdout.splitlines()[0].startswith("metric,")


def test_the_example_of_the_page(capsys):
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "command_line_files.md").read_text(encoding="utf-8")
    section = page.partition("## The options of a project")[2]
    write(section.partition("```toml\n")[2].partition("```")[0], "pyproject.toml")
    PRED.rename(columns={"yhat": "p_click", "item_id": "sku"}).to_parquet("pred.parquet")
    TRUE.rename(columns={"item_id": "sku"}).to_parquet("true.parquet")
    code, _, err = run(capsys, *CALL)
    assert code == 0, err
    said = section.partition("```text\n")[2].partition("```")[0]
    assert err == said.replace("recdf.toml", "pyproject.toml")

"""What a release has beside the package: versions that agree, workflows, the conda recipe, scripts,
the site."""

import json
import re
import runpy
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import recdf as rd

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PYTHONS = [
    one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", one)
]


def read_yaml(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def test_the_version_is_the_same_everywhere():
    assert str(read_yaml("CITATION.cff")["version"]) == rd.__version__
    assert str(read_yaml(".ci/conda/recipe.yaml")["context"]["version"]) == rd.__version__


def test_the_classifiers_name_the_pythons():
    assert PYTHONS == ["3.11", "3.12", "3.13", "3.14"]
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_all_has_every_extra_of_users_but_spark():
    extras = PROJECT["optional-dependencies"]
    (whole,) = extras["all"]
    named = set(re.fullmatch(r"recdf\[(.*)\]", whole)[1].split(","))
    of_users = {name for name in extras if not name.startswith("spark")}
    assert named == of_users - {"all", "test", "browser", "docs", "lint"}, (
        "a new extra of users stands in all, too"
    )


def test_the_conda_recipe_asks_for_what_the_package_asks_for():
    run = read_yaml(".ci/conda/recipe.yaml")["requirements"]["run"]
    lowest = {}
    for one in PROJECT["dependencies"]:  # of two lines for one library, the stricter comes later
        name, version = re.match(r"([\w-]+)>=([\d.]+)", one).groups()
        lowest[name] = version
    lowest["python"] = PROJECT["requires-python"].removeprefix(">=")
    assert {line.split()[0]: line.split()[1].removeprefix(">=") for line in run} == lowest
    assert "hatchling >=1.24" in read_yaml(".ci/conda/recipe.yaml")["requirements"]["host"]


# ------------------------------------------------------------------------------------------
# workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_one(path):
    found = read_yaml(path)
    assert found[True]  # YAML reads the word "on" as true
    assert found["permissions"]
    assert found["jobs"]
    for name, job in found["jobs"].items():
        assert {"runs-on", "timeout-minutes", "steps"} <= set(job), name
        assert {job.get("needs", name)} <= set(found["jobs"])
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), step
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "actions/checkout@v1")), (
                step
            )
            for script in re.findall(
                r"(?:bash|python) ((?:\.ci|docs)/[\w.]+)", step.get("run", "")
            ):
                assert (ROOT / script).exists(), script


def test_the_suite_runs_on_every_system_and_python():
    jobs = read_yaml(".github/workflows/ci.yml")["jobs"]
    matrix = jobs["suite"]["strategy"]["matrix"]
    assert [one.partition("-")[0] for one in matrix["os"]] == ["ubuntu", "macos", "windows"]
    assert matrix["python"] == PYTHONS
    lowest = re.search(
        r"/lowest\" (pandas==.*)$", (ROOT / ".ci/run").read_text(encoding="utf-8"), flags=re.M
    )[1]
    assert [one["versions"] for one in matrix["include"]] == [lowest]
    assert [step["run"] for step in jobs["all-checks"]["steps"] if "run" in step] == [
        "bash .ci/run"
    ]


# -- scripts

SCRIPTS = [path for path in sorted((ROOT / ".ci").iterdir()) if path.is_file()]
needs_bash = pytest.mark.skipif(
    not shutil.which("bash") or not shutil.which("git"), reason="needs bash and git"
)


@needs_bash
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_one_of_bash(path):
    assert path.read_text(encoding="utf-8").startswith("#!/usr/bin/env bash\n")
    assert (
        subprocess.run(["bash", "-n", path.relative_to(ROOT).as_posix()], cwd=ROOT).returncode == 0
    )


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository with what a release looks at, and a wheel that is always right; `release` runs
    the script there."""
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "somebody")
        monkeypatch.setenv(f"{name}_EMAIL", "somebody@example.org")
    folder = tmp_path / "checkout"
    files = {
        "recdf/_version.py": '__version__ = "0.2.0"\n',
        "CHANGELOG.md": "# Changelog\n\n## 0.2.0\n\n* New.\n\n## 0.1.0\n",
        "CITATION.cff": "version: 0.2.0\n",
        ".ci/wheel": 'touch "$1/recdf-0.2.0.tar.gz"\n',
        ".ci/release": (ROOT / ".ci/release").read_text(encoding="utf-8"),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", newline="\n")

    def git(*words):
        subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)

    def release(*changes, commit=True):
        for name, old, new in changes:
            text = (folder / name).read_text(encoding="utf-8")
            assert old in text
            (folder / name).write_text(text.replace(old, new), encoding="utf-8", newline="\n")
        if commit:
            git("add", "-A")
            git("commit", "-q", "--allow-empty", "-m", "x")
        done = subprocess.run(
            ["bash", ".ci/release", "--check"],
            cwd=folder,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        return done.returncode, done.stdout + done.stderr

    git("init", "-q")
    release.git, release.folder = git, folder
    return release


@needs_bash
def test_a_release_is_built_where_everything_agrees(checkout):
    code, said = checkout()
    assert code == 0, said
    assert "version, changelog and tag of 0.2.0 agree" in said
    assert "recdf-0.2.0.tar.gz" in said
    checkout.git("tag", "v0.2.0")
    assert checkout(commit=False)[0] == 0
    assert checkout() == (1, ".ci/release: the tag v0.2.0 is that of another commit\n")


@pytest.mark.few(3)
@needs_bash
@pytest.mark.parametrize(
    ("change", "commit", "words"),
    [
        (("CHANGELOG.md", "* New", "* Newer"), False, "not committed"),
        (("CHANGELOG.md", "## 0.2.0", "## Unreleased"), True, "no section '## 0.2.0'"),
        (("CHANGELOG.md", "* New.", "## Unreleased"), True, "still has the section Unreleased"),
        (("CITATION.cff", "0.2.0", "0.1.0"), True, "CITATION.cff names another version"),
        (("recdf/_version.py", "0.2.0", "0.2"), True, "no version such as"),
    ],
)
def test_a_release_stops_at_what_is_wrong(checkout, change, commit, words):
    checkout()
    code, said = checkout(change, commit=commit)
    assert code == 1
    assert words in said


@needs_bash
def test_a_release_does_nothing_that_nobody_confirms(checkout):
    checkout()
    done = subprocess.run(
        ["bash", ".ci/release"],
        cwd=checkout.folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, "nobody is at a terminal" in done.stderr) == (1, True)
    tags = subprocess.run(["git", "tag"], cwd=checkout.folder, capture_output=True, text=True)
    assert tags.stdout == ""


# -- the site of all versions

SITE = runpy.run_path(str(ROOT / "docs/publish.py"))


def test_the_newest_version_that_is_no_early_one_is_stable(tmp_path):
    for name in ("0.9.0", "0.10.0", "0.10.1rc1", "stable", "0.2", "_static"):
        (tmp_path / name).mkdir()
    assert SITE["versions_of"](tmp_path) == ["0.10.1rc1", "0.10.0", "0.9.0"]
    assert SITE["write_switcher"](tmp_path, "https://example.org/recdf") == "0.10.0"
    entries = json.loads((tmp_path / "switcher.json").read_text(encoding="utf-8"))
    assert [(one["version"], one["url"].rpartition("recdf")[2]) for one in entries] == [
        ("0.10.1rc1", "/0.10.1rc1/"),
        ("0.10.0", "/stable/"),
        ("0.9.0", "/0.9.0/"),
    ]
    assert [one["version"] for one in entries if one.get("preferred")] == ["0.10.0"]
    assert 'url=stable/"' in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_a_first_early_version_is_all_there_is(tmp_path):
    (tmp_path / "0.1.0b2").mkdir()
    assert SITE["write_switcher"](tmp_path, "https://example.org") == "0.1.0b2"

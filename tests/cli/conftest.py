"""What stands in a folder for all tests of the command: the demo and the results of a small
shop."""

import contextlib
import functools
import io
import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from cli.forked import Forks, in_shell
from cli.frames import PRED, TRUE
from cli.shop import GROUPS, models, shown

import recdf as rd
from recdf.cli import main
from recdf.cli import stored_runs as demo_command


class Demo(NamedTuple):
    """What `recdf demo` gave in an empty folder."""

    folder: Path  # the folder in which it was called
    code: int
    out: str
    err: str

    def copy_to(self, folder: Path) -> None:
        """Put all that the demo wrote into another folder, as if the demo had been called there."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    folder, out, err = tmp_path_factory.mktemp("demo"), io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["demo"])
    return Demo(folder, code, out.getvalue(), err.getvalue())


@pytest.fixture(autouse=True)
def _words_of_pages(without_pictures):
    """Pages of commands draw no picture in the process of a test. `demo`, which stands for all
    tests, and commands in processes of their own draw them."""


@functools.wraps(demo_command.report)  # flags are made from its signature
def empty_page(_, path, **__):
    path.parent.mkdir()
    path.touch()
    return path


@pytest.fixture
def small_shop(monkeypatch):
    """The demo is about a shop of fewer users and draws no report, for tests that do not read its
    numbers."""
    shop = rd.sample_shop(n_users=100, n_items=60)
    monkeypatch.setattr(demo_command, "sample_shop", lambda: shop)
    report = demo_command.report

    @functools.wraps(report)  # flags are made from its signature
    def page(result, path, **given):
        of_demo = given.get("title") == "Models of the sample shop"
        return (empty_page if of_demo else report)(result, path, **given)

    monkeypatch.setattr(demo_command, "report", page)


@pytest.fixture(scope="session")
def results_of_the_shop(tmp_path_factory):
    """A folder with the results `ab` and `models` and the assignment, to be read alone."""
    made = tmp_path_factory.mktemp("shop")
    shown().to_parquet(made / "ab")
    models().to_parquet(made / "models")
    GROUPS.to_parquet(made / "groups.parquet")
    GROUPS.to_csv(made / "groups.csv", index=False)
    return made


@pytest.fixture
def folder(results_of_the_shop, tmp_path, monkeypatch):
    """The current folder, with copies of the results and of the assignment."""
    shutil.copytree(results_of_the_shop, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def recdf():
    """Call `recdf` in a process of its own, which need not import the package again."""
    calls = Forks()
    yield calls
    calls.close()


@pytest.fixture
def shell(request):
    """Run a script in bash whose `recdf` is a process of its own."""
    return request.getfixturevalue("recdf").shell if hasattr(os, "fork") else in_shell


@pytest.fixture
def in_their_folder(tmp_path, monkeypatch):
    """The current folder, with both frames as parquet."""
    monkeypatch.chdir(tmp_path)
    TRUE.to_parquet("true.parquet", index=False)
    PRED.to_parquet("pred.parquet", index=False)
    return tmp_path

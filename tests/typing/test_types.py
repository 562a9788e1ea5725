"""Type checkers know what `rd.ndcg` takes and returns: they accept every line of right.py and
refuse each of wrong.py.

The checkers come with the extra `recdf[lint]`; without them these tests are skipped.
"""

import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path

import generated
import pytest

import recdf as rd
from recdf.inputs.options import OPTIONS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RIGHT, WRONG = HERE / "right.py", HERE / "wrong.py"
# That of `mypy` itself, which has the same options: only a first run reads pandas and the package.
CACHE = ROOT / ".mypy_cache"


def expected():
    """Lines of wrong.py and the code of the error that mypy must report there."""
    lines = WRONG.read_text(encoding="utf-8").splitlines()
    found = {number: re.search(r"# error: ([\w-]+)$", line) for number, line in enumerate(lines, 1)}
    return {number: one[1] for number, one in found.items() if one}


def output_of(checker, *arguments):
    """What a type checker prints about the two files."""
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed; recdf[lint] brings it")
    # pyright runs on Node.js, which it cannot fetch without a network.
    if subprocess.run([sys.executable, "-m", checker, "--version"], capture_output=True).returncode:
        pytest.skip(f"{checker} does not start on this machine")
    command = [sys.executable, "-m", checker, *arguments, str(RIGHT), str(WRONG)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=1800).stdout


@pytest.mark.slow
def test_mypy_accepts_right_lines_and_refuses_each_wrong_one():
    output = output_of("mypy", f"--cache-dir={CACHE}")  # strict, as pyproject.toml says
    found = re.findall(r"typing[\\/](\w+)\.py:(\d+): error: .*\[([\w-]+)\]$", output, flags=re.M)
    assert [one for one in found if one[0] == "right"] == []
    assert {int(line): code for name, line, code in found if name == "wrong"} == expected(), output


@pytest.mark.slow
def test_pyright_accepts_right_lines_and_refuses_each_wrong_one():
    output = output_of("pyright", f"--pythonpath={sys.executable}")
    found = re.findall(r"typing[\\/](\w+)\.py:(\d+):\d+ - error", output)
    assert [one for one in found if one[0] == "right"] == []
    assert {int(line) for name, line in found if name == "wrong"} == set(expected()), output


@pytest.mark.filterwarnings("ignore::recdf.UnknownWarning")
def test_right_lines_run():
    runpy.run_path(str(RIGHT))["calls"]()


@pytest.mark.parametrize("path", generated.STUBS, ids=lambda path: "/".join(path.parts[-2:]))
def test_the_stubs_are_up_to_date(path):
    assert path.read_text(encoding="utf-8") == generated.STUBS[path](), (
        "run python tests/generated.py"
    )


def test_a_record_of_options_has_every_shared_option():
    assert vars(rd.Options()).keys() - {"_given"} == OPTIONS.keys()

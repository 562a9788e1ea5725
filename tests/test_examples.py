"""Every example runs, as its reader would run it, and warns of nothing."""

import functools
import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from quick import few

import recdf as rd

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
TRANSACTIONS = ROOT.parent / "shared/data/online_retail/transactions.parquet"

# What an example needs as arguments; a file that is absent is a reason to skip it.
ARGUMENTS = {"online_retail.py": [TRANSACTIONS]}
# Smaller inputs than a reader would take.
SIZES = {"impressions.py": ["20000"], "engine_chain.py": ["600"]}


@pytest.mark.long
def test_the_quickstart_runs_as_a_process_without_a_warning():
    command = [sys.executable, "-W", "error", ROOT / "examples" / "quickstart.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ndcg" in done.stdout


def run(monkeypatch, capsys, example, *arguments):
    """Exit code, stdout and stderr of an example, which is run as the main script in this
    process."""
    script = ROOT / "examples" / example
    monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
    code = 0
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.mark.parametrize(
    "example", few([name for name in EXAMPLES if name != "quickstart.py"], ["impressions.py"])
)
def test_runs_without_a_warning(monkeypatch, capsys, example):
    for path in ARGUMENTS.get(example, []):
        if not path.is_file():
            pytest.skip(f"real data is absent: ../{path.relative_to(ROOT.parent).as_posix()}")
    if example == "engine_chain.py":
        pytest.importorskip("dask.dataframe")
    code, out, err = run(
        monkeypatch, capsys, example, *ARGUMENTS.get(example, []), *SIZES.get(example, [])
    )
    assert (code, err) == (0, "")
    assert "ndcg" in out


def test_online_retail_says_when_there_is_no_file(monkeypatch, capsys, tmp_path):
    code, _, err = run(monkeypatch, capsys, "online_retail.py", tmp_path / "absent.parquet")
    assert code == 2
    assert err.startswith("online_retail: no such file: ")


# -- the notebook

NOTEBOOKS = sorted(path.name for path in (ROOT / "examples").glob("*.ipynb"))
LARGEST = 300_000  # bytes


def code_cells(notebook):
    text = (ROOT / "examples" / notebook).read_text(encoding="utf-8")
    return [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


@pytest.mark.long
@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_runs_without_a_warning(notebook, monkeypatch, capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("jinja2")
    plt.switch_backend("Agg")
    monkeypatch.setattr(
        rd, "sample_shop", functools.partial(rd.sample_shop, n_users=200, n_items=60, n_recs=20)
    )
    names = {}
    for number, cell in enumerate(code_cells(notebook)):
        exec(compile("".join(cell["source"]), f"{notebook}[{number}]", "exec"), names)
    plt.close("all")
    assert "report.html" in capsys.readouterr().out


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_a_notebook_was_executed_and_is_small(notebook):
    path = ROOT / "examples" / notebook
    assert path.stat().st_size < LARGEST
    assert not any(
        found in path.read_text(encoding="utf-8")
        for found in ("/root/", "/home/", "/tmp/", "Traceback")
    )
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell["outputs"] or "sample_shop" not in "".join(cell["source"]) for cell in cells)

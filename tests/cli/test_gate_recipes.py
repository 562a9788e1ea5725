"""docs/gate.md and the recipes of docs/gate_recipes.md: each runs with a candidate that passes and
with one that does not."""

import re
import sys
import types
from pathlib import Path

import pandas as pd
import pytest
from cli.command import run
from cli.shop import SHOP

import recdf as rd

yaml = pytest.importorskip("yaml")
DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "gate_recipes.md").read_text(encoding="utf-8")
WORKFLOWS = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.S)]


def of_model(name):
    return SHOP.pred[SHOP.pred["model"] == name]


@pytest.fixture(params=["knn", "random"])
def candidate(request, tmp_path, monkeypatch):
    """The files that a pipeline finds, and whether the candidate should pass."""
    monkeypatch.chdir(tmp_path)
    SHOP.true.to_parquet("true.parquet")
    of_model(request.param).to_parquet("candidate.parquet")
    rd.evaluate(SHOP.true, of_model("popularity"), ["ndcg@10", "recall@10"]).to_parquet(
        "production"
    )
    return request.param == "knn"


@pytest.fixture
def folder(candidate):
    """A folder of the candidate's result beside the files."""
    rd.evaluate(
        SHOP.true, pd.read_parquet("candidate.parquet"), ["ndcg@10", "recall@10"]
    ).to_parquet("candidate")
    return candidate


@pytest.mark.long
def test_the_first_ten_minutes(capsys, tmp_path, monkeypatch):
    """Each line of the page's shell ends with the code behind it."""
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "gate.md").read_text(encoding="utf-8")
    lines = re.findall(r"```sh\n(.*?)```", page, flags=re.S)[0].splitlines()
    assert len(lines) == 5
    for line in lines:
        words, _, code = line.partition("#")
        assert run(capsys, *words.split()[1:])[0] == int(code), line


@pytest.mark.slow
def test_github(candidate, shell):
    steps = WORKFLOWS[0]["jobs"]["gate"]["steps"]
    # A shell stops at the first failure, as those of CI systems do.
    gate = next(step["run"] for step in steps if step.get("name") == "Gate")
    done = shell(f"set -e\n{gate}")
    assert done.returncode == (0 if candidate else 1)
    assert done.stderr.startswith("" if candidate else "recdf gate: exit code 1: ndcg@10: fail")
    assert done.stderr.count("\n") == (0 if candidate else 1)
    assert (
        Path("gate.md")
        .read_text(encoding="utf-8")
        .startswith("### Passed" if candidate else "### Failed")
    )


@pytest.mark.slow
def test_gitlab(candidate, shell):
    job = WORKFLOWS[1]["gate"]
    done = shell("\n".join(["set -e", *job["script"]]))
    assert done.returncode == (0 if candidate else 1)
    assert done.stderr.startswith("" if candidate else "recdf gate: exit code 1: ndcg@10: fail")
    assert done.stderr.count("\n") == (0 if candidate else 1)
    assert Path(job["artifacts"]["reports"]["junit"]).exists()
    assert job["allow_failure"]["exit_codes"] == 3


def functions():
    """The functions of the page's recipes."""
    found = {"rd": rd}
    for block in re.findall(r"```python\n(def .*?)```", PAGE, flags=re.S):
        exec(block, found)
    return found


@pytest.mark.few(1)
def test_pytest(folder):
    if folder:
        functions()["test_candidate_may_go_out"]()
    else:
        with pytest.raises(AssertionError):
            functions()["test_candidate_may_go_out"]()


@pytest.mark.long
def test_airflow(folder):
    gate = functions()["gate_candidate"]
    if folder:
        assert gate("candidate", "production").startswith("### Passed")
    else:
        with pytest.raises(RuntimeError, match="### Failed"):
            gate("candidate", "production")


@pytest.mark.long
def test_mlflow(folder, monkeypatch):
    logged = {}
    stand_in = types.ModuleType("mlflow")
    stand_in.log_metrics = logged.update
    stand_in.log_table = lambda data, artifact_file: logged.update({artifact_file: data})
    stand_in.log_text = lambda text, artifact_file: logged.update({artifact_file: text})
    monkeypatch.setitem(sys.modules, "mlflow", stand_in)
    assert functions()["log_gate"]("candidate", "production") is folder
    assert logged["gate_passed"] == float(folder)
    assert logged["ndcg_at_10"] == rd.read_parquet("candidate").summary["value"].iloc[0]
    assert logged["gate.json"]["metric"].tolist() == ["ndcg@10", "recall@10"]

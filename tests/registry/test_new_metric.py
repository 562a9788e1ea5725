"""A metric is its function alone: one that stands in a module of the package is found everywhere.

The metrics are added to a copy of the package, in a process of its own.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import recdf as rd

pytestmark = pytest.mark.slow

NEW_FAMILY = '''"""A family of its own."""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..matching.lists import Lists
from .metric import metric


@metric(better="smaller", aliases=("brand",))
def brand_new(lists: Lists, *, divisor: Literal["k", "two"] = "k") -> np.ndarray:
    """Share of the first k that are hits, or half their number; smaller is better, in [0, 1].

    Formula
    -------
    Σ h_i / d.

    Parameters
    ----------
    divisor : {"k", "two"}, default "k"
        d = k · 2.

    References
    ----------
    This test.
    """
    return lists.n_hits / (lists.k if divisor == "k" else 2)
'''

IN_A_FAMILY = '''

@metric(arguments=("items", "pred"), k=None, per="item")
def newer(counts: Counts) -> float:
    """Lists over lists, which is 1; larger is better, in [0, 1]."""
    return counts.n_lists / counts.n_lists
'''

LOOK = """
import json, inspect, pickle
import generated
import recdf as rd
from recdf.metrics import brand_new, newer

true, pred = {"u": ["a", "b"]}, {"u": ["a", "x"]}
table = rd.metrics_table().set_index("metric")
new = ("brand_new", "newer")
unpickled = pickle.loads(pickle.dumps(brand_new))
evaluated = rd.evaluate(true, pred, ["brand(divisor=two)@4", "newer"], k=4, items=["a"])
print(json.dumps({
    "package": rd.__file__,
    "exported": [name in rd.__all__ and name in rd.metrics.__all__ for name in new],
    "same": rd.brand_new is brand_new is rd.METRICS["brand_new"] is unpickled,
    "called": [rd.brand_new(true, pred, k=4, divisor="two"), rd.newer(["a"], pred)],
    "per_user": rd.brand_new.per_user(true, pred, k=4)["brand_new@4"].tolist(),
    "evaluated": evaluated.summary["value"].tolist(),
    "table": table.loc[["brand_new", "newer"], ["family", "better"]].values.tolist(),
    "signature": list(inspect.signature(rd.brand_new).parameters)[:4],
    "stub": [f"\\n{name}: _" in generated.stub() for name in ("brand_new", "newer")],
    "page": [row for row in generated.families_table() if "brand_new" in row or "newer" in row],
}))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What a process sees whose package has two more metrics."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(
        Path(rd.__file__).parent, folder / "recdf", ignore=shutil.ignore_patterns("__pycache__")
    )
    metrics = folder / "recdf" / "metrics"
    (metrics / "brand.py").write_text(NEW_FAMILY, encoding="utf-8")
    with (metrics / "exposure.py").open("a", encoding="utf-8") as file:
        file.write(IN_A_FAMILY)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(Path(__file__).parents[1])]),
    }
    command = [sys.executable, "-W", "error", "-c", LOOK]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["package"].startswith(str(folder))
    return found


def test_it_is_exported(seen):
    assert seen["exported"] == [True, True]
    assert seen["same"]


def test_it_can_be_called_and_named(seen):
    assert seen["called"] == [0.5, 1.0]
    assert seen["per_user"] == [0.25]
    assert seen["evaluated"] == [0.5, 1.0]
    assert seen["signature"] == ["true", "pred", "k", "divisor"]


def test_tables_and_pages_have_it(seen):
    assert seen["table"] == [["brand", "smaller"], ["exposure", "larger"]]
    assert seen["stub"] == [True, True]
    exposure, brand = seen["page"]
    assert exposure.startswith("| [Exposure](handbook/exposure.rst) |")
    assert exposure.endswith(", `newer` |")
    asks = "docs/families.toml is to say what it asks."
    assert brand == f"| [Brand](handbook/brand.rst) | {asks} | `brand_new` |"

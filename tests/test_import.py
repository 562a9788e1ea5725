"""`import recdf` loads pandas and pyarrow, its own modules, and nothing else."""

import ast
import functools
import json
import subprocess
import sys
from pathlib import Path

import recdf as rd

EXTRAS = {
    *(
        "scipy",
        "matplotlib",
        "pyspark",
        "dask",
        "distributed",
        "cloudpickle",
        "polars",
        "duckdb",
        "tqdm",
        "sklearn",
        "statsmodels",
        "IPython",
        "numba",
        "plotly",
    ),
    *("pyarrow.parquet", "pyarrow.dataset", "argparse", "multiprocessing", "seaborn"),
}

LOADED = """
import json, sys
import numpy, pandas, pyarrow, pyarrow.compute
before = set(sys.modules)
{}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@functools.cache
def loaded(code):
    """Modules that some code loads on top of pandas and pyarrow, in a process of its own."""
    command = [sys.executable, "-c", LOADED.format(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(rd.__file__).parents[1])
    return json.loads(done.stdout)


def test_import_loads_no_extra():
    found = loaded("import recdf")
    assert "recdf.evaluation.evaluate" in found
    assert [name for name in found if name in EXTRAS or name.split(".")[0] in EXTRAS] == []


def test_import_loads_little_beyond_itself():
    others = {name.split(".")[0] for name in loaded("import recdf")}
    assert others - {"recdf", "numpy", "pandas", "pyarrow"} <= set(sys.stdlib_module_names)


def test_evaluating_loads_no_extra():
    found = loaded("import recdf; recdf.evaluate({1: [1]}, {1: [1]}, ['ndcg', 'mrr'])")
    extras = EXTRAS - {"pyarrow.dataset"}  # grouping a pyarrow table loads it
    assert [name for name in found if name in extras or name.split(".")[0] in extras] == []


def test_all_is_sorted_and_true():
    own = [name for name in rd.__all__ if name not in rd.metrics.__all__]
    assert own == sorted(own, key=lambda name: (not name.isupper(), name.lower() == name, name))
    assert rd.__all__ == [*own, *sorted(rd.metrics.__all__)]
    for name in rd.__all__:
        assert getattr(rd, name) is not None
    public = {name for name in vars(rd) if not name.startswith("_")}
    modules = {name for name in public if isinstance(getattr(rd, name), type(sys))}
    assert public - modules == set(rd.__all__) - modules


def test_what_is_loaded_late_is_what_type_checkers_see():
    source = Path(rd.__file__).read_text(encoding="utf-8")
    seen = next(node for node in ast.parse(source).body if isinstance(node, ast.If)).body
    assert {name.name: f".{node.module}" for node in seen for name in node.names if name.name not in rd._MODULES} == {
        name: module for name, module in rd._LATE.items() if name not in rd._MODULES
    }
    modules = {name.name: f".{node.module}.{name.name}" for node in seen for name in node.names}
    assert {name: modules[name] for name in rd._MODULES} == rd._MODULES
    assert {*rd._MODULES, *rd.__all__} <= {*dir(rd)}


def test_importing_loads_no_room_that_evaluate_does_not_need():
    found = loaded("import recdf")
    rooms = {name.split(".")[1] for name in found if name.startswith("recdf.")}
    assert not rooms & {"diagnostics", "display", "off_policy", "partitions", "cli"}


def test_the_package_is_typed_and_has_a_version():
    assert (Path(rd.__file__).parent / "py.typed").exists()
    assert rd.__version__.count(".") == 2

"""`import recdf` loads pandas and pyarrow, its own modules, and nothing else."""

import functools
import importlib
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

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
    *(
        "jinja2",
        "fsspec",
        "ibis",
        "narwhals",
        "deltalake",
        "pyiceberg",
        "pytest",
        "hypothesis",
        "numpy.polynomial",
    ),
    *("pyarrow.parquet", "pyarrow.dataset", "argparse", "multiprocessing", "seaborn"),
}

# Importing a module sets its name in the package, where it must not hide a function.
ALL_MODULES = """
import pkgutil, recdf, types
for one in pkgutil.walk_packages(recdf.__path__, "recdf."):
    if "__main__" not in one.name and "spark" not in one.name and "dask" not in one.name:
        __import__(one.name)
for space in ("", ".experiments", ".ope", ".logs", ".diagnostics"):
    module = __import__("recdf" + space, fromlist=["x"])
    for name in module.__all__:
        assert not isinstance(getattr(module, name), types.ModuleType), (space, name)
"""
# One process runs these one after another, since pandas and pyarrow take longer to import than all
# of recdf.
STEPS = [
    "import recdf",
    "recdf.experiments, recdf.logs; dir(recdf.ope)",
    "recdf.evaluate({1: [1]}, {1: [1]}, ['ndcg', 'mrr'])",
    ALL_MODULES,
]
LOADED = """
import json, sys
import numpy, pandas, pyarrow, pyarrow.compute
before = set(sys.modules)
for step in json.loads(sys.argv[1]):
    exec(step)
    print(json.dumps(sorted(set(sys.modules) - before)))
"""


@functools.cache
def loaded_after_each_step():
    """Modules that are loaded on top of pandas and pyarrow after each of the steps."""
    command = [sys.executable, "-c", LOADED, json.dumps(STEPS)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(rd.__file__).parents[1]
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_import_loads_no_extra():
    found = loaded_after_each_step()[0]
    assert "recdf.evaluation.evaluate" in found
    assert [name for name in found if name in EXTRAS or name.split(".")[0] in EXTRAS] == []


def test_import_loads_little_beyond_itself():
    others = {name.split(".")[0] for name in loaded_after_each_step()[0]}
    assert others - {"recdf", "numpy", "pandas", "pyarrow"} <= set(sys.stdlib_module_names)


def test_evaluating_loads_no_extra():
    found = loaded_after_each_step()[2]
    extras = EXTRAS - {"pyarrow.dataset"}  # grouping a pyarrow table loads it
    assert [name for name in found if name in extras or name.split(".")[0] in extras] == []


# What `dir(recdf)` lists beside the metrics, the errors and the warnings.
LISTED = {
    *(
        "Convention",
        "Counts",
        "Evaluation",
        "Hits",
        "Lists",
        "Metric",
        "Options",
    ),  # what users make or annotate
    *(
        "check",
        "compare_models",
        "compare_variants",
        "conventions_table",
        "evaluate",
        "evaluate_parquet",
    ),
    *(
        "from_impressions",
        "join_experiment",
        "join_results",
        "leaderboard",
        "metric",
        "metrics_table",
        "read_parquet",
        "report",
    ),
    *("read", "write_trec"),
    *("audit", "ceiling", "chance_level", "diff", "gate", "sample_shop", "summarize"),
}
SPACES = [
    "dask",
    "diagnostics",
    "errors",
    "experiments",
    "logs",
    "metrics",
    "ope",
    "plot",
    "spark",
]
IN_SPACES = {
    "experiments": "ReportTable aa_test adjust_pvalues arrivals_by_day bootstrap_ci "
    "compare_interleaved compare_models compare_quantiles compare_variants "
    "compare_variants_from_moments compare_zero_inflated decide_experiment "
    "effect_over_time experiment_health find_srm interleave join_experiment "
    "plan_comparison plan_experiment prediction_powered proxy_metrics read_plan "
    "report_table role_verdicts roll_up segment_effects variant_moments",
    "ope": "compare diagnostics estimate popularity_propensity propensity_check reward_table "
    "target_from_recs",
    "logs": "Impressions assign_persons check_log from_dict from_impressions from_labelled "
    "from_sparse from_top_k impressions_parquet time_slice",
    "diagnostics": "History audit ceiling chance_level check compare_conventions data_profile diff "
    "exposure_table gate hit_table label_agreement past_runs past_tests "
    "position_table sample_to_judge sampled_values user_gap",
}
# Classes of what functions at the top return; users annotate them, and do not make them.
RESULTS = {"Diff", "Gate", "Impressions", "Leaderboard", "Shop"}


def public(module):
    """What `dir` lists, without the names of Python."""
    return [name for name in dir(module) if not name.startswith("__")]


def test_dir_lists_the_public_names():
    errors = {name for name in rd.__all__ if name.endswith(("Error", "Warning"))}
    assert {"RecdfError", "WriteError"} <= errors
    assert set(rd.__all__) == LISTED | errors | set(rd.metrics.__all__)
    assert public(rd) == sorted([*rd.__all__, *SPACES])
    assert not any(name.startswith("_") for name in rd.__all__)
    for name in rd.__all__:
        assert getattr(rd, name) is not None


@pytest.mark.parametrize("space", IN_SPACES)
def test_dir_of_a_namespace_lists_its_public_names(space):
    module = importlib.import_module(f"recdf.{space}")
    assert getattr(rd, space) is module
    assert public(module) == sorted(module.__all__) == sorted(IN_SPACES[space].split())
    for name in module.__all__:
        thing = getattr(module, name)
        assert callable(thing)
        assert pickle.loads(pickle.dumps(thing)) is thing
        assert space == "ope" or name not in LISTED or getattr(rd, name) is thing
    assert all(f"`{name}`" in module.__doc__ for name in module.__all__ if name.islower())


@pytest.mark.parametrize("space", ["plot", "spark", "dask"])
def test_dir_of_a_module_lists_its_public_names(space):
    module = getattr(rd, space)
    assert sorted(dir(module)) == sorted(module.__all__)


def test_a_name_of_a_namespace_stands_there_alone():
    """Some functions stand at the top too, and are listed there."""
    for space, names in IN_SPACES.items():
        for name in {*names.split()} - LISTED - RESULTS - {*SPACES}:
            with pytest.raises(AttributeError, match=rf"no attribute '{name}'; it is .*{space}"):
                getattr(rd, name)
    with pytest.raises(AttributeError, match=r"; it is recdf\.experiments\.bootstrap_ci$"):
        getattr(rd, "bootstrap_ci")  # noqa: B009


def test_registries_and_classes_of_results_are_at_the_top_and_not_listed():
    assert all(getattr(rd, name) is not None for name in RESULTS | {"METRICS", "CONVENTIONS"})
    assert not RESULTS & {*dir(rd), *rd.__all__}  # nor after they have been used


def test_a_namespace_has_its_functions_whatever_was_imported_before():
    assert "recdf.display.report.page" in loaded_after_each_step()[3]


def test_names_are_loaded_late_and_an_unknown_one_has_a_suggestion():
    found = loaded_after_each_step()[1]
    rooms = {name.split(".")[1] for name in found if name.startswith("recdf.")}
    assert not rooms & {"off_policy", "partitions", "display"}
    with pytest.raises(AttributeError, match="has no attribute 'compare_model'") as error:
        rd.experiments.compare_model  # noqa: B018
    assert (error.value.name, error.value.obj) == (
        "compare_model",
        rd.experiments,
    )  # Python suggests from these


def test_importing_loads_no_room_that_evaluate_does_not_need():
    found = loaded_after_each_step()[0]
    rooms = {name.split(".")[1] for name in found if name.startswith("recdf.")}
    assert not rooms & {"diagnostics", "display", "off_policy", "partitions", "cli"}


def test_the_package_is_typed_and_has_a_version():
    assert (Path(rd.__file__).parent / "py.typed").exists()
    assert rd.__version__.count(".") == 2

"""Whatever lists side tables follows from their records."""

import inspect
import os
import re
import shutil
import subprocess
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import pytest

import recdf as rd
from recdf.cli import main
from recdf.evaluation.evaluate import EvaluateArguments
from recdf.matching.side_tables.sides import SIDE_TABLES, SIDES
from recdf.metrics.call import NEEDS
from recdf.metrics.record import ARGUMENTS

NAMES = list(SIDE_TABLES)


def test_a_record_stands_by_its_name():
    assert [one.name for one in SIDE_TABLES.values()] == NAMES
    assert NAMES == ["items", "log", "aspects", "features", "base", "popular", "exclude"]


@pytest.mark.parametrize("function", [rd.evaluate, rd.evaluate_parquet])
def test_arguments_of_functions(function):
    signature = inspect.signature(function)
    taken = [name for name in signature.parameters if name in EvaluateArguments.__annotations__]
    assert set(taken) == set(EvaluateArguments.__annotations__)
    assert [name for name in taken if name in SIDE_TABLES] == NAMES
    for name in taken:
        assert name in function.__doc__


@pytest.mark.parametrize("name", NAMES)
def test_messages_and_docstrings(name):
    one = SIDE_TABLES[name]
    assert SIDES[name] == NEEDS[name] == f"⟦+{name}=⟧ ({one.about})"
    assert (ARGUMENTS[name].hint, ARGUMENTS[name].kind, ARGUMENTS[name].meaning) == (
        one.hint,
        one.kind,
        one.meaning,
    )


def test_what_metrics_need_and_take_is_a_record():
    others = {"true", "pred", "value", "candidates", "propensity", "not_judged"}
    for metric in rd.METRICS.values():
        assert {*metric.needs, *metric.arguments, *metric.optional, *metric.sides} <= {
            *NAMES,
            *others,
        }
        for name in metric.sides:
            assert name in inspect.signature(metric).parameters


FLAGS = [("evaluate", name) for name, one in SIDE_TABLES.items() if one.flag]


@pytest.mark.parametrize(("command", "name"), [*FLAGS, ("check", "items"), ("check", "log")])
def test_flags_of_the_command(command, name, capsys):
    with suppress(SystemExit):
        main([command, "--help"])
    assert f"--{name} FILE" in (told := " ".join(capsys.readouterr().out.split()))
    assert SIDE_TABLES[name].flag in told


PLANTED = '''
import contextlib, importlib.util, inspect, io
import numpy as np, pandas as pd, recdf as rd
from recdf.cli import main


@rd.metric(needs=("prices",), bounds=(0, None))
def mean_price(lists):
    """Mean price of the items shown."""
    price = lists.sides.prices.frame["price"].to_numpy()
    return lists.mean_shown(np.append(price, 0.0)[lists.sides.prices.row_of])


true = pd.DataFrame({"user_id": [1, 2], "item_id": [10, 30]})
pred = pd.DataFrame({"user_id": [1, 1, 2], "item_id": [10, 20, 30], "rank": [1, 2, 1]})
prices = pd.DataFrame({"item_id": [30, 10, 20], "price": [8.0, 2.0, 4.0]})
true.to_parquet("true.parquet")
pred.to_parquet("pred.parquet")
for function in (rd.evaluate, rd.evaluate_parquet, rd.spark.evaluate, rd.dask.evaluate, mean_price):
    assert "prices" in inspect.signature(function).parameters, function
    assert "prices : DataFrame" in inspect.getdoc(function), function
results = [rd.evaluate(true, pred, ["mean_price@2"], prices=prices)]
for buckets in (1, 3):
    given = ("true.parquet", "pred.parquet", "mean_price@2")
    results.append(rd.evaluate_parquet(*given, buckets=buckets, prices=prices))
if importlib.util.find_spec("dask"):
    import dask.dataframe as dd
    frames = [dd.from_pandas(frame, npartitions=2) for frame in (true, pred)]
    results.append(rd.dask.evaluate(*frames, "mean_price@2", prices=prices).to_pandas())
for result in results:
    assert result.per_user.sort_values("user_id")["mean_price@2"].tolist() == [3.0, 8.0]
    assert result.spec["side_tables"]["prices"]["columns"] == ["item_id", "price"]
assert mean_price(true, pred, k=2, prices=prices) == 5.5
try:
    rd.evaluate(true, pred, "mean_price@2")
except rd.OptionError as error:
    assert "needs prices= (one row per item, with the column price)" in str(error)
else:
    raise AssertionError("no error")
with contextlib.redirect_stdout(io.StringIO()) as told, contextlib.suppress(SystemExit):
    main(["evaluate", "--help"])
assert "--prices FILE" in told.getvalue()
'''


@pytest.mark.slow
def test_a_new_side_table_is_one_record(tmp_path):
    """The record that CONTRIBUTING.md has as an example is planted in a copy of the package:
    functions, files, an engine, messages and the command have it."""
    root = Path(rd.__path__[0])
    shutil.copytree(root, tmp_path / "recdf", ignore=shutil.ignore_patterns("__pycache__"))
    records = tmp_path / "recdf" / "matching" / "side_tables" / "sides.py"
    text = records.read_text(encoding="utf-8")
    contributing = Path(__file__).parents[2] / "CONTRIBUTING.md"
    (prices,) = re.findall(
        r"^ +prices: Annotated.*?^ +\]\n", contributing.read_text("utf-8"), flags=re.M | re.S
    )
    prices = textwrap.indent(textwrap.dedent(prices), " " * 4)
    before, after = text.split("\n\nSIDE_TABLES: dict")
    records.write_text(f"{before}{prices}\n\nSIDE_TABLES: dict{after}", encoding="utf-8")
    where = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", PLANTED], cwd=tmp_path, env=where, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr

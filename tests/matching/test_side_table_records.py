"""Whatever lists side tables follows from their records."""

import dataclasses
import inspect
from contextlib import suppress

import pytest

import recdf as rd
from recdf.cli import main
from recdf.matching.side_tables.given import Given
from recdf.matching.side_tables.records import SIDE_TABLES, SIDES
from recdf.matching.side_tables.sides import Sides
from recdf.metrics.call import NEEDS
from recdf.metrics.docstrings import ARGUMENTS

NAMES = list(SIDE_TABLES)


def test_a_record_stands_by_its_name():
    assert [one.name for one in SIDE_TABLES.values()] == NAMES
    assert NAMES == ["items", "log", "aspects", "features", "base", "popular"]


def test_what_is_given():
    assert [field.name for field in dataclasses.fields(Given)] == NAMES


@pytest.mark.parametrize("function", [rd.evaluate, rd.evaluate_parquet])
def test_arguments_of_functions(function):
    signature = inspect.signature(function)
    taken = [name for name in signature.parameters if name in SIDE_TABLES]
    assert taken == NAMES
    for name in NAMES:
        assert name in function.__doc__


@pytest.mark.parametrize("name", NAMES)
def test_messages_docstrings_and_codes(name):
    one = SIDE_TABLES[name]
    assert SIDES[name] == NEEDS[name] == f"{name}= ({one.about})"
    assert (ARGUMENTS[name].hint, ARGUMENTS[name].kind, ARGUMENTS[name].meaning) == (one.hint, one.kind, one.meaning)
    assert hasattr(Sides, name)


def test_what_metrics_need_and_take_is_a_record():
    others = {"true", "pred", "value", "candidates", "propensity"}
    for metric in rd.METRICS.values():
        assert {*metric.needs, *metric.arguments, *metric.optional, *metric.sides} <= {*NAMES, *others}
        for name in metric.sides:
            assert name in inspect.signature(metric).parameters


FLAGS = [("evaluate", name) for name, one in SIDE_TABLES.items() if one.flag]


@pytest.mark.parametrize(("command", "name"), [*FLAGS, ("check", "items"), ("check", "log")])
def test_flags_of_the_command(command, name, capsys):
    with suppress(SystemExit):
        main([command, "--help"])
    assert f"--{name} FILE" in (told := " ".join(capsys.readouterr().out.split()))
    assert SIDE_TABLES[name].flag in told

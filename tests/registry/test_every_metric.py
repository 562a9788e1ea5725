"""Every registered metric: equal to the oracle, documented, with examples that run; and the
registry is covered."""

import doctest
import inspect
import itertools
import re

import oracles
import pytest
from cases import case
from registry.oracle_check import (
    EVERY,
    OPTION_SETS,
    check_oracle,
    evaluate_under,
    every_metric,
)
from registry.seeded import BUILT_IN, SPACE, counts_candidates, oracle_values, text, variants

import recdf as rd
from recdf.metrics.record import section

really_every_metric = pytest.mark.parametrize("metric", EVERY, ids=[m.name for m in EVERY])

# -- the oracle


@every_metric
def test_equals_the_oracle(metric):
    """Under the first five of the sets of options: each variant of a metric meets one of them."""
    for number in range(5):
        with case(f"option set {number}:", OPTION_SETS[number]):
            check_oracle(metric, number)


@pytest.mark.long
@every_metric
def test_alone_it_equals_the_oracle(metric):
    with case(OPTION_SETS[0]):
        check_oracle(metric, 0, alone=True)


@pytest.mark.long
@every_metric
def test_equals_the_oracle_under_more_options(metric):
    for number in range(5, len(OPTION_SETS)):
        with case(f"option set {number}:", OPTION_SETS[number]):
            check_oracle(metric, number)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "metric",
    [m for m in BUILT_IN if any(counts_candidates(m, p) for p in variants(m))],
    ids=lambda metric: metric.name,
)
def test_a_metric_of_candidates_refuses_repeated_rows(metric):
    kept = [number for number, one in enumerate(OPTION_SETS) if one["duplicates"] == "keep"]
    counting = [params for params in variants(metric) if counts_candidates(metric, params)]
    for params, number in zip(counting, itertools.cycle(kept), strict=False):
        with case(text(metric, params)), pytest.raises(rd.DataError, match='duplicates="keep"'):
            evaluate_under(number, text(metric, params), k=3)


def test_option_sets_try_every_value_of_every_option():
    for name, values in SPACE.items():
        assert {str(one[name]) for one in OPTION_SETS} == set(map(str, values))


# -- the registry is covered, checks check


def missing_oracle(metric):
    """What to do that the metric has an oracle, which has its name, its family and its kind."""
    where = f"tests/oracles/{metric.family}.py"
    function = oracles.ORACLES.get(metric.name)
    if function is None:
        return f"add an @oracle function named {metric.name} to {where}"
    if function.__module__ != f"oracles.{metric.family}":
        return f"move the oracle {metric.name} from {function.__module__} to {where}"
    if (metric.per == "item") != (metric.name in oracles.OF_ALL_LISTS):
        return f"{metric.name} is per {metric.per}; an oracle of all lists has @oracle(of_all=True)"
    return (
        None
        if function.__doc__
        else f"say in the docstring of the oracle {metric.name} what it computes"
    )


def test_every_metric_has_an_oracle():
    assert [what for metric in EVERY if (what := missing_oracle(metric))] == []


def test_every_oracle_has_a_metric():
    unknown = oracles.ORACLES.keys() - {metric.name for metric in EVERY}
    assert not unknown, f"tests/oracles has {sorted(unknown)}, which recdf lacks"


def test_a_metric_without_an_oracle_is_told_what_to_do(register):
    def brand_new(lists):
        return lists.n_hits / lists.k

    made = register(brand_new)
    assert missing_oracle(made).startswith(
        "move the oracle brand_new from oracles.relevance to tests/oracles/"
    )
    del oracles.ORACLES["brand_new"]
    assert (
        missing_oracle(made)
        == "add an @oracle function named brand_new to tests/oracles/test_every_metric.py"
    )
    with pytest.raises(
        AssertionError, match="add an @oracle function named brand_new to the module of its family"
    ):
        oracle_values({}, "brand_new", {})


@really_every_metric
def test_every_metric_documents_itself(metric):
    doc = inspect.getdoc(metric)
    titles = ["Formula", "Parameters", "Returns", "Raises", "Notes", "References", "Examples"]
    assert [
        one.partition("\n")[0] for one in re.split(r"\n\n(?=[A-Z]\w*\n-+\n)", doc)[1:]
    ] == titles
    assert section(doc, "Notes").startswith("Use it ")  # when to use it, then when not
    assert metric.doc.endswith(".")
    assert metric.formula
    assert metric.references
    assert metric.better is None or f"{metric.better} is better" in metric.doc
    for name in metric.defaults:
        assert f"\n{name} : " in doc


@pytest.mark.few(31)
@really_every_metric
def test_every_example_runs(metric):
    test = doctest.DocTestParser().get_doctest(metric.__doc__, {}, metric.name, None, None)
    assert len(test.examples) >= 2
    failures = []
    doctest.DocTestRunner(verbose=False).run(test, out=failures.append)
    assert not failures, "".join(failures)

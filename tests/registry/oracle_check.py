"""The check that a metric of `true` and `pred` equals its oracle under many options.

It raises AssertionError, so that test_checks.py can show that it catches a metric that is wrong.
"""

import functools
import itertools
import random

import numpy as np
import oracles
import pytest
from registry.seeded import (
    BUILT_IN,
    ITEMS,
    SPACE,
    assert_close,
    assert_within_bounds,
    column_options,
    condensed,
    counts_candidates,
    frames,
    oracle_values,
    quietly,
    records,
    text,
    variants,
)

import recdf as rd

EVERY = list(rd.METRICS.values())
# `test_beyond` holds the others, with their side tables, against their oracles.
every_metric = pytest.mark.parametrize("metric", BUILT_IN, ids=[m.name for m in BUILT_IN])


def option_sets(n, seed=1):
    """Combinations of options in which every two values of two options meet."""
    draw, found = random.Random(seed), []
    pairs = {
        ((a, i), (b, j))
        for (a, va), (b, vb) in itertools.combinations(SPACE.items(), 2)
        for i in range(len(va))
        for j in range(len(vb))
    }
    while len(found) < n or pairs:
        best = max(
            (
                {name: draw.randrange(len(values)) for name, values in SPACE.items()}
                for _ in range(60)
            ),
            key=lambda one: len(pairs & set(itertools.combinations(one.items(), 2))),
        )
        pairs -= set(itertools.combinations(best.items(), 2))
        one = {name: SPACE[name][i] for name, i in best.items()}
        if not one["relevance"]:
            one["min_relevance"] = None
        found.append(one)
    return found


OPTION_SETS = option_sets(20)

KS = ((1, 40), (3, 40), (2, 5))  # no list is longer than 40


@functools.cache
def oracle_lists(number, k):
    options = {name: value for name, value in OPTION_SETS[number].items() if name != "undefined"}
    true, pred = frames(number)
    pred = pred[pred["model"] == "a"]
    if options["nan_score"] == "drop" and options["order"] == "score":
        pred = pred[pred["score"].notna()]  # "drop" means: as if the row were not there
    return oracles.match_lists(records(true), records(pred), k, items=ITEMS, **options)


def tried_under(metric, number):
    """The variants of a metric that meet one set of options."""
    tried = variants(metric)
    if len(tried) > 20:  # of ndcg: each of its many variants meets a fifth of the option sets
        tried = tried[number % 5 :: 5]
    if (
        OPTION_SETS[number]["duplicates"] == "keep"
    ):  # then nothing says how many candidates there are
        tried = [params for params in tried if not counts_candidates(metric, params)]
    return tried


def evaluate_under(number, metrics, **options):
    """Evaluate metric strings under one set of options."""
    true, pred = frames(number)
    own, pred = column_options(OPTION_SETS[number], pred[pred["model"] == "a"])
    return quietly(
        rd.evaluate, true, pred, metrics, **own, items=ITEMS, value_col="value", **options
    )


def columns_under(number, metrics):
    """Users of the result, and for each metric its columns: of every variant at several k."""
    ks = KS[number % 3]
    tried = {
        metric.name: [text(metric, params) for params in tried_under(metric, number)]
        for metric in metrics
    }
    result = evaluate_under(number, [one for some in tried.values() for one in some], k=ks)
    values, found, start = result.per_user.iloc[:, 3:], {}, 0
    for metric in metrics:
        end = start + len(tried[metric.name]) * len(ks if metric.cut else ks[:1]) * len(
            metric.outputs
        )
        found[metric.name], start = values.iloc[:, start:end], end
    assert start == values.shape[1]
    return result.per_user["user_id"].tolist(), found


@functools.cache
def built_in_under(number):
    return columns_under(number, BUILT_IN)


def check_oracle(metric, number, alone=False):
    """All variants of the metric at several k equal the oracle, list by list, under one set of
    options. A metric that is evaluated alone cannot owe its numbers to another one."""
    ks, options, tried = KS[number % 3], OPTION_SETS[number], tried_under(metric, number)
    if not tried:
        return
    together = metric in BUILT_IN and not alone
    users, columns = built_in_under(number) if together else columns_under(number, [metric])
    found = columns[metric.name]
    assert users == list(oracle_lists(number, 1))
    if options["undefined"] == "nan":
        assert_within_bounds(metric, found)
    expected = []
    for params, k in itertools.product(tried, ks if metric.cut else ks[:1]):
        lists = oracle_lists(number, k)
        if options["judged_only"] and counts_candidates(metric, params):
            lists = {user: condensed(one) for user, one in lists.items()}
        expected.append(oracle_values(lists, metric.name, params, options["undefined"]))
    assert_close(found, np.hstack(expected), options)

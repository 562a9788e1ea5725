"""Every registered metric: equal to the oracle, and the invariances that any metric must have.

A check is a plain function of a metric that raises AssertionError, so that the end of this file can show that each
of them catches a metric that is wrong.
"""

import functools
import itertools
import random
from dataclasses import replace

import numpy as np
import oracle
import pytest
from seeded import (
    ITEMS,
    assert_close,
    column_options,
    frames,
    oracle_values,
    quietly,
    records,
    text,
    variants,
)

import recdf as rd

BUILT_IN = list(rd.METRICS.values())
every_metric = pytest.mark.parametrize("metric", BUILT_IN, ids=[m.name for m in BUILT_IN])

# ------------------------------------------------------------------------------------------- the oracle

SPACE = {
    "order": ["score", "rank", "row"],
    "ties": ["item_desc", "item_asc", "row", "worst"],
    "users": ["true", "pred", "both", "all", [-5, 1, 4, 22, 999]],
    "relevance": [True, False],
    "min_relevance": [None, 0.5],
    "duplicates": ["drop", "keep"],
    "judged_only": [False, True],
    "nan_score": ["last", "drop"],
    "undefined": ["nan", "zero"],
}


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
            ({name: draw.randrange(len(values)) for name, values in SPACE.items()} for _ in range(60)),
            key=lambda one: len(pairs & set(itertools.combinations(one.items(), 2))),
        )
        pairs -= set(itertools.combinations(best.items(), 2))
        one = {name: SPACE[name][i] for name, i in best.items()}
        if not one["relevance"]:
            one["min_relevance"] = None
        found.append(one)
    return found


OPTION_SETS = option_sets(30)


KS = (1, 3, 40)


@functools.cache
def oracle_lists(number, k):
    options = {name: value for name, value in OPTION_SETS[number].items() if name != "undefined"}
    true, pred = frames(number)
    pred = pred[pred["model"] == "a"]
    if options["nan_score"] == "drop" and options["order"] == "score":
        pred = pred[pred["score"].notna()]  # "drop" means: as if the row were not there
    return oracle.match_lists(records(true), records(pred), k, items=ITEMS, **options)


def counts_candidates(metric, params):
    return "candidates" in metric.needs or params.get("within") == "catalogue"


def check_oracle(metric, number):
    """All variants of the metric at several k equal the oracle, list by list, under one set of options."""
    true, pred = frames(number)
    options, pred = column_options(OPTION_SETS[number], pred[pred["model"] == "a"])
    tried = variants(metric)
    if len(tried) > 20:  # of ndcg: each of its many variants meets a third of the option sets
        tried = tried[number % 3 :: 3]
    evaluate = functools.partial(quietly, rd.evaluate, true, pred, k=KS, **options, items=ITEMS, value_col="value")
    if options["duplicates"] == "keep":
        for params in filter(functools.partial(counts_candidates, metric), tried):
            with pytest.raises(rd.DataError, match='duplicates="keep"'):
                evaluate(metrics=text(metric, params))
        tried = [params for params in tried if not counts_candidates(metric, params)]
        if not tried:
            return
    result = evaluate(metrics=[text(metric, params) for params in tried])
    found = result.per_user.iloc[:, 3:]
    assert result.per_user["user_id"].tolist() == list(oracle_lists(number, 1))
    if options["undefined"] == "nan":
        low, high = metric.bounds
        assert not (found < (-np.inf if low is None else low)).any(axis=None)
        assert not (found > (np.inf if high is None else high)).any(axis=None)
    start = 0
    for params, k in itertools.product(tried, KS if metric.cut else KS[:1]):
        lists = oracle_lists(number, k)
        if options["judged_only"] and counts_candidates(metric, params):  # the judged items are the candidates
            lists = {user: replace(one, catalogue={t.item for t in one.judged}) for user, one in lists.items()}
        expected = oracle_values(lists, metric.name, params, options["undefined"])
        columns = found.iloc[:, start : start + len(metric.outputs)]
        assert_close(columns, expected, (list(columns), options))
        start += len(metric.outputs)
    assert start == found.shape[1]


@every_metric
@pytest.mark.parametrize("number", range(len(OPTION_SETS)))
def test_equals_the_oracle(metric, number):
    check_oracle(metric, number)

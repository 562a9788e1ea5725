"""The invariances that any metric must have, whatever the rows, labels and dtypes."""

import itertools

import pytest
from cases import case
from quick import few
from registry.invariance_checks import (
    CHECKS,
    KINDS,
    check_labels,
    check_own_columns,
    check_single_call,
)
from registry.labels import LABELS
from registry.oracle_check import every_metric
from registry.seeded import BUILT_IN

import recdf as rd

# -------------------------------------------------------------------------------------------
# invariances


@pytest.mark.parametrize("name", few(CHECKS, CHECKS.keys() - {"bounds", "by", "inputs_untouched"}))
def test_invariance(name):
    CHECKS[name](tuple(BUILT_IN))


@pytest.mark.few(3)
@every_metric
def test_a_metric_by_itself(metric):
    check_single_call(metric)
    check_own_columns(metric)


@pytest.mark.few(1)
@pytest.mark.parametrize("label", ["object of str", "category of str", "uint64 beyond int64"])
def test_labels_do_not_matter(label):
    check_labels(tuple(BUILT_IN), label)


@pytest.mark.few(6)
@pytest.mark.parametrize("label", LABELS)
def test_every_dtype_of_ids(label):
    check_labels((rd.ndcg,), label)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS, ids=[f"like {kind[0]}" for kind in KINDS])
def test_dtypes_of_one_kind_match(kind):
    """Each beside the next of its kind."""
    for one, other in itertools.pairwise([*kind, kind[0]]):
        with case(one, "beside", other):
            check_labels((rd.mrr,), one, other)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS, ids=[f"like {kind[0]}" for kind in KINDS])
def test_any_two_dtypes_of_one_kind_match(kind):
    for one, other in itertools.permutations(kind, 2):
        with case(one, "beside", other):
            check_labels((rd.mrr,), one, other)

"""The checks of metrics check: each catches a metric that is wrong."""

import numpy as np
import pandas as pd
import pytest
from registry.invariance_checks import (
    CHECKS,
    check_bounds,
    check_by,
    check_composite_key,
    check_inputs_untouched,
    check_k_beyond_the_list,
    check_labels,
    check_own_columns,
    check_parts,
    check_row_order,
)
from registry.oracle_check import OPTION_SETS, check_oracle
from registry.seeded import frames

import recdf as rd


def fails(check, *args):
    with pytest.raises(AssertionError):
        check(*args)


def some_option_sets_fail(metric):
    """How many of the option sets tell the metric from its oracle."""
    failed = 0
    for number in range(len(OPTION_SETS)):
        try:
            check_oracle(metric, number)
        except AssertionError:
            failed += 1
    return failed


@pytest.mark.long
def test_a_right_metric_passes(register):
    def again(lists):
        return np.divide(
            lists.n_hits, lists.n_true, out=np.full(len(lists), np.nan), where=lists.n_true > 0
        )

    made = register(again)
    assert some_option_sets_fail(made) == 0
    for check in CHECKS.values():
        check((made,))
    check_own_columns(made)


@pytest.mark.long
def test_the_oracle_check_catches_a_wrong_divisor(register):
    def by_k(lists):
        return np.where(lists.n_true > 0, lists.n_hits / lists.k, np.nan)

    assert some_option_sets_fail(register(by_k)) == len(OPTION_SETS)


@pytest.mark.long
def test_the_oracle_check_catches_a_silent_zero(register):
    def zero_for_undefined(lists):
        return lists.n_hits / np.maximum(lists.n_true, 1)

    made = register(zero_for_undefined)
    assert (
        some_option_sets_fail(made) >= 3
    )  # where lists without truth count and undefined is not zero


@pytest.mark.long
def test_the_oracle_check_catches_hits_below_the_cut(register):
    def whole_list(lists):
        return np.divide(
            lists.whole.n_hits,
            lists.n_true,
            out=np.full(len(lists), np.nan),
            where=lists.n_true > 0,
        )

    assert some_option_sets_fail(register(whole_list)) > len(OPTION_SETS) / 2


def test_the_row_order_check_catches_a_metric_of_rows(register):
    def first_row(lists):
        return (
            lists.matched.item[np.minimum(lists.matched.start, len(lists.matched.item) - 1)] % 2 / 2
            + np.arange(len(lists)) / 1e3
        )

    fails(check_row_order, (register(first_row),))


def test_the_label_check_catches_a_metric_of_codes(register):
    def code(lists):
        return lists.sum(lists.matched.item[lists.hits.place] / 1e9)

    fails(check_labels, (register(code),), "category of str")


def test_the_parts_check_catches_a_metric_of_all_lists(register):
    def share_of_hits(lists):
        return lists.n_hits / max(lists.n_hits.sum(), 1)

    fails(check_parts, (register(share_of_hits),))
    fails(check_by, (register(share_of_hits),))


def test_the_bounds_check_catches_a_value_outside(register):
    def arhr_as_share(lists):
        return lists.sum(1 / lists.hits.rank)

    made = register(arhr_as_share)
    for check in (check_bounds, check_k_beyond_the_list):
        with pytest.raises(
            rd.DataError, match=r"arhr_as_share is 1\.5 for the list .*outside its bounds"
        ):
            check((made,))


def test_the_inputs_check_catches_a_metric_that_writes(register):
    true, _pred = frames(9)

    def writes(lists):
        true.loc[true.index[0], "value"] += 1
        return lists.n_hits / lists.k

    # The frames of the check are cached, so the metric reaches the very frame that is checked.
    before = true["value"].iloc[0]
    try:
        fails(check_inputs_untouched, (register(writes),))
    finally:
        true.loc[true.index[0], "value"] = before


def test_the_key_check_catches_a_metric_of_labels(register):
    def of_label(lists):
        first = next(iter(lists.matched.keys.values()))
        return (pd.util.hash_array(np.asarray(first)) % 97) / 97

    fails(check_composite_key, (register(of_label),))


def test_the_column_check_catches_a_shared_array(register):
    def shared(lists):
        return lists.matched.cache.setdefault("shared", np.zeros(len(lists)))

    made = register(shared)
    check_own_columns(made)  # what others write is copied
    object.__setattr__(made, "__module__", "recdf.metrics.relevance")  # a record is frozen
    fails(check_own_columns, made)

"""Attribution on codes and times: equal to a plain loop, and the rules at the edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.impressions import attributed

from recdf.logs import attribution
from recdf.logs.attribution import (
    ATTRIBUTED,
    OUTCOMES,
    TimedPairs,
    find_candidates,
    give_credit,
)

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 12)), max_size=25)


def moments(rows):
    array = np.array(rows, np.int64).reshape(-1, 3)
    return TimedPairs(*array.T)


def check(impressions, events, window, rule, skew, value):
    """Compare with the loop: the shares and values of the rows, and what became of each event."""
    expected = attributed(impressions, events, window, rule, skew)
    candidates = find_candidates(moments(impressions), moments(events), window, skew)
    belongs = candidates.outcome == ATTRIBUTED
    assert belongs.tolist() == [bool(shares) for shares in expected]
    credit = give_credit(candidates, rule, np.array(value[: len(events)]))
    share, worth = np.zeros(len(impressions)), np.zeros(len(impressions))
    for shares, price in zip(expected, value, strict=False):
        for row, part in shares.items():
            share[row] += part
            worth[row] += part * price
    assert credit.row.tolist() == np.flatnonzero(share > 0).tolist()
    np.testing.assert_allclose(credit.share, share[credit.row], rtol=1e-12)
    np.testing.assert_allclose(credit.value, worth[credit.row], rtol=1e-12)
    assert credit.share.sum() == pytest.approx(sum(map(bool, expected)), rel=1e-12)


@given(
    impressions=ROWS,
    events=ROWS,
    window=st.one_of(st.none(), st.integers(0, 6)),
    rule=st.sampled_from(["last", "first", "all"]),
    skew=st.integers(0, 3),
)
def test_equals_a_plain_loop(impressions, events, window, rule, skew):
    check(impressions, events, window, rule, skew, [1.0 + i for i in range(25)])


@given(impressions=ROWS, events=ROWS, window=st.one_of(st.none(), st.integers(0, 6)))
def test_many_impressions_of_one_event(impressions, events, window):
    """The same shares where events have more impressions than are written out one by one, and by
    small chunks."""
    few, chunk = attribution.FEW_CANDIDATES, attribution.CHUNK_SHARES
    for attribution.FEW_CANDIDATES, attribution.CHUNK_SHARES in ((1, chunk), (few, 1)):
        try:
            check(impressions, events, window, "all", 0, [1.0 + i for i in range(25)])
        finally:
            attribution.FEW_CANDIDATES, attribution.CHUNK_SHARES = few, chunk


@given(impressions=ROWS, events=ROWS)
def test_seconds_as_fractions(impressions, events):
    """Float times give what the same times give as integers."""
    log, some = moments(impressions), moments(events)
    whole = find_candidates(log, some, 4)
    parts = find_candidates(log._replace(time=log.time / 2), some._replace(time=some.time / 2), 2.0)
    assert whole.row.tolist() == parts.row.tolist()
    assert (whole.low.tolist(), whole.high.tolist()) == (parts.low.tolist(), parts.high.tolist())


def alone(times):
    """One user and one item at some times."""
    nobody = np.zeros(len(times), np.int64)
    return TimedPairs(nobody, nobody, np.array(times))


def outcome_of(impression_time, event_time, window=None, skew=0):
    found = find_candidates(
        alone([impression_time]),
        alone([event_time]),
        window,
        skew,
    )
    return [OUTCOMES[outcome] for outcome in found.outcome]


@pytest.mark.parametrize(
    ("impression", "event", "window", "skew", "expected"),
    [
        (5, 5, None, 0, "attributed"),  # at the same time
        (5, 5, 0, 0, "attributed"),  # a window of nothing is the time itself
        (0, 5, 5, 0, "attributed"),  # exactly as old as the window
        (0, 5, 4, 0, "outside_window"),
        (6, 5, None, 0, "before_impression"),
        (6, 5, None, 1, "attributed"),  # within the skew of the clocks
        (7, 5, None, 1, "before_impression"),
    ],
)
def test_edges(impression, event, window, skew, expected):
    assert outcome_of(impression, event, window, skew) == [expected]


def test_an_impression_before_the_event_goes_before_one_within_the_skew():
    log = alone([1, 6])
    event = alone([5])
    for rule in ("last", "first", "all"):
        assert give_credit(find_candidates(log, event, None, 3), rule).row.tolist() == [0]


def test_of_impressions_at_one_time_first_and_last_are_by_row():
    log = alone([2, 2, 2])
    event = alone([2])
    candidates = find_candidates(log, event, None)
    assert give_credit(candidates, "first").row.tolist() == [0]
    assert give_credit(candidates, "last").row.tolist() == [2]
    np.testing.assert_allclose(give_credit(candidates, "all").share, [1 / 3] * 3)


def test_times_at_the_ends_of_the_clock():
    """A window that reaches past the smallest number reaches to it."""
    least = np.iinfo(np.int64).min
    assert outcome_of(least, least + 3, 2**62) == ["attributed"]
    assert outcome_of(least + 5, least + 3, 2**62) == ["before_impression"]


def test_more_rows_than_a_block(resized):
    resized(sorted_rows=7)
    rng = np.random.default_rng(0)
    impressions = [tuple(row) for row in rng.integers(0, [3, 3, 50], (100, 3)).tolist()]
    events = [tuple(row) for row in rng.integers(0, [4, 3, 50], (30, 3)).tolist()]
    check(impressions, events, 10, "last", 2, [2.0] * 30)

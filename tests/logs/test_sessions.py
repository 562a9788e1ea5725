"""Sessions by a gap in time, ranks within lists and repeated items: equal to plain loops."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oracles.impressions import ranks, sessions, standing

from recdf.inputs.sorting import dense_codes, stable_order
from recdf.logs.attribution import (
    arrange_lists,
    rank_lists,
    repeated_rows,
    sessions_by_gap,
    standing_rows,
)

SMALL = st.integers(0, 4)
ROWS = st.lists(st.tuples(SMALL, SMALL, SMALL, SMALL), max_size=30)


def columns(rows):
    return np.array(rows, np.int64).reshape(-1, 4).T


@given(rows=st.lists(st.tuples(SMALL, st.integers(0, 40)), max_size=30), gap=st.integers(0, 10))
def test_sessions(rows, gap):
    user, time = np.array(rows, np.int64).reshape(-1, 2).T
    assert sessions_by_gap([user], time, gap).tolist() == sessions(rows, gap)
    assert sessions_by_gap([user], time / 2, gap / 2).tolist() == sessions(rows, gap)


def test_a_pause_of_exactly_the_gap_does_not_end_a_session():
    user, time = np.zeros(3, np.int64), np.array([0, 30, 61])
    assert sessions_by_gap([user], time, 30).tolist() == [1, 1, 2]


def test_a_pause_longer_than_the_clock_can_hold():
    limits = np.iinfo(np.int64)
    user, time = np.zeros(2, np.int64), np.array([limits.min, limits.max])
    assert sessions_by_gap([user], time, 30).tolist() == [1, 2]


def ranks_of(lists, position, time, stays=None):
    return rank_lists(arrange_lists([lists], position, time), position, stays).rank.tolist()


@given(rows=ROWS)
def test_ranks(rows):
    lists, position, time, _ = columns(rows)
    expected = ranks([(row[0], row[1], row[2]) for row in rows])
    assert ranks_of(lists, position, time) == expected
    assert ranks_of(lists, position / 2, time) == expected
    assert ranks_of(lists, None, time) == ranks([(row[0], 0, row[2]) for row in rows])
    assert ranks_of(lists, None, None) == ranks([(row[0], 0, 0) for row in rows])


@given(rows=ROWS, keep=st.lists(st.booleans(), min_size=30, max_size=30))
def test_ranks_of_some_rows(rows, keep):
    lists, position, time, _ = columns(rows)
    stays = np.array(keep[: len(rows)], bool)
    expected = ranks(
        [(row[0], row[1], row[2]) for row, stay in zip(rows, keep, strict=False) if stay]
    )
    assert ranks_of(lists, position, time, stays) == expected


@given(rows=ROWS)
def test_ranks_of_lists_that_stand_together(rows):
    """Rows of a list that follow each other are ranked without a look at single rows."""
    rows = [row for row in sorted(rows) for _ in range(3)]
    lists, position, time, _ = columns(rows)
    assert ranks_of(lists, position, time) == ranks([(row[0], row[1], row[2]) for row in rows])
    assert ranks_of(lists, None, time) == ranks([(row[0], 0, row[2]) for row in rows])
    assert ranks_of(lists, np.arange(len(rows)), time) == ranks(
        [(row[0], i, 0) for i, row in enumerate(rows)]
    )


@given(rows=ROWS)
def test_repeats(rows):
    lists, item, time, position = columns(rows)
    expected = standing([(row[0], row[1], row[2], row[3]) for row in rows])
    repeated = repeated_rows(lists, item, 5)
    pairs = [(row[0], row[1]) for row in rows]
    assert repeated.tolist() == [i for i, pair in enumerate(pairs) if pairs.count(pair) > 1]
    keys = [time[repeated], position[repeated], repeated]
    found = np.arange(len(rows))
    found[repeated] = standing_rows(repeated, lists, item, keys)
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("positions", "start", "holes", "ties"),
    [
        ([[0, 1, 2], [0, 1]], 0, 0, 0),
        ([[1, 2], [1, 3, 9]], 1, 1, 0),
        ([[1, 1, 2], [1, 2, 2, 2]], 1, 0, 2),
        ([[2, 1, 5], [7]], 1, 1, 0),
    ],
)
def test_what_positions_look_like(positions, start, holes, ties):
    lists = np.repeat(np.arange(len(positions)), [len(part) for part in positions])
    position = np.concatenate(positions)
    found = rank_lists(arrange_lists([lists], position, None), position)
    assert found.n_lists == len(positions)
    assert (found.start, found.lists_with_holes, found.lists_with_ties) == (start, holes, ties)


def test_two_items_at_position_0_of_one_byte_leave_no_hole():
    position = np.array([0, 0, 1], np.uint8)
    found = rank_lists(arrange_lists([np.zeros(3, np.int64)], position, None), position)
    assert (found.lists_with_holes, found.lists_with_ties) == (0, 1)


@given(rows=ROWS, wide=st.booleans())
@example(rows=[(4, 4, 4, 4), (0, 0, 0, 0), (4, 4, 4, 4), (4, 0, 4, 0)], wide=True)
def test_stable_order(rows, wide):
    keys = list(columns(rows))
    if wide:  # keys that do not fit into one number together
        keys = [key * (2**61 // 5) for key in keys]
    expected = sorted(range(len(rows)), key=lambda i: rows[i])
    assert stable_order(keys).tolist() == expected


@given(rows=ROWS)
def test_dense_codes(rows):
    one, two, _, _ = columns(rows)
    known = sorted({(row[0], row[1]) for row in rows})
    codes, n = dense_codes([one, two])
    assert (codes.tolist(), n) == ([known.index((row[0], row[1])) for row in rows], len(known))

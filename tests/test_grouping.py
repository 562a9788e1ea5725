"""Grouping, ranking and pairing of codes, against plain loops."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recdf import grouping
from recdf.grouping import at, offsets, pair_within, rank_within, spans


def int32(values):
    return np.array(values, dtype=np.int32)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5))))
def test_spans_and_offsets(ranges):
    start = np.array([a for a, _ in ranges], dtype=np.int64)
    length = np.array([n for _, n in ranges], dtype=np.int64)
    assert spans(start, length).tolist() == [a + i for a, n in ranges for i in range(n)]
    assert offsets(length).tolist() == [sum(length[:i]) for i in range(len(length) + 1)]


def test_at():
    values = np.arange(10)
    assert at(values, slice(2, 4)).base is values
    assert at(values, np.array([7, 7, 0])).tolist() == [7, 7, 0]


NUMBERS = {
    np.float64: st.sampled_from([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 5e-324, 0.1]),
    np.int64: st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1]),
    np.uint64: st.sampled_from([0, 1, 2**64 - 1, 2**63]),
}


def place(number):
    return (np.isnan(number), number)


@settings(max_examples=150)
@given(st.data(), st.sampled_from(list(NUMBERS)), st.booleans(), st.booleans())
def test_rank_within(data, dtype, stable, even):
    length = st.just(data.draw(st.integers(0, 4))) if even else st.integers(0, 20)
    lists = data.draw(st.lists(length.flatmap(lambda n: st.lists(NUMBERS[dtype], min_size=n, max_size=n)), max_size=8))
    key = np.array([x for one in lists for x in one], dtype=dtype)
    start = offsets(np.array([len(one) for one in lists], dtype=np.int64))
    before = key.copy()
    places = rank_within(key, start, stable=stable)
    np.testing.assert_array_equal(key, before)
    order = np.arange(len(key)) if places is None else places
    for first, last in pairwise(start):
        own = order[first:last].tolist()
        expected = sorted(range(first, last), key=lambda i: place(key[i]))
        assert sorted(own) == sorted(expected)
        assert [place(key[i])[0] or key[i] for i in own] == [place(key[i])[0] or key[i] for i in expected]
        if stable:
            assert own == expected


def slow_pairs(lists, wanted):
    repeat, first, found, row = [], [], [], 0
    for items, looked_for in zip(lists, wanted, strict=True):
        seen = {}
        for item in items:
            if item in seen:
                repeat.append(row)
                first.append(seen[item])
            else:
                seen[item] = row
            row += 1
        found += [seen.get(item, -1) for item in looked_for]
    return repeat, first, found


def assert_pairs(lists, wanted):
    item, looked_for = (int32([x for one in both for x in one]) for both in (lists, wanted))
    start, wanted_start = (offsets(np.array([len(x) for x in both], dtype=np.int64)) for both in (lists, wanted))
    found = pair_within(item, start, looked_for, wanted_start)
    assert tuple(array.tolist() for array in found) == slow_pairs(lists, wanted)


# Codes that collide: equal in their low bits, and in the low bits of more than one hash.
ITEMS = st.integers(0, 6) | st.integers(0, 40).map(lambda i: i * 1024) | st.integers(0, 2**31 - 1)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.lists(ITEMS, max_size=12), st.lists(ITEMS, max_size=8)), max_size=8))
def test_pair_within(both):
    assert_pairs([one for one, _ in both], [two for _, two in both])


@pytest.mark.parametrize("slots", [1, 16, 2**18])
def test_pair_within_over_several_blocks(slots, monkeypatch):
    """Slots left from an earlier block are empty to a later one."""
    monkeypatch.setattr(grouping, "TABLE_SLOTS", slots)
    rng = np.random.default_rng(slots)
    for top in (5, 10**6):
        lists = [rng.integers(0, top, rng.integers(0, 9)).tolist() for _ in range(40)]
        wanted = [[*rng.choice([*one, -1 % top], 2), *rng.integers(0, top, 3)] for one in lists]
        assert_pairs(lists, [list(map(int, one)) for one in wanted])


def test_pair_within_nothing():
    assert_pairs([], [])
    assert_pairs([[], []], [[], [3]])
    assert_pairs([[1]], [[]])


@pytest.mark.parametrize("cells", [1, 2**20])
def test_rank_within_over_several_blocks(cells, monkeypatch):
    if hasattr(grouping, "SORT_CELLS"):
        monkeypatch.setattr(grouping, "SORT_CELLS", cells)
    rng = np.random.default_rng(1)
    length = rng.integers(0, 30, 50)
    key, start = rng.integers(0, 9, length.sum()), offsets(length)
    order = rank_within(key, start, stable=True)
    list_of = np.repeat(np.arange(50), length)
    np.testing.assert_array_equal(order, np.lexsort((key, list_of)))

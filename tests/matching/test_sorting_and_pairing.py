"""Grouping, ranking and pairing of codes, against plain loops."""

from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recdf.inputs.machine import Sizes, sized
from recdf.inputs.sorting import (
    alike,
    offsets,
    order_of_codes,
    rank_within,
    sort_within,
    spans,
    windows,
)
from recdf.matching.pairing import pair_within


def int32(values):
    return np.array(values, dtype=np.int32)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5))))
def test_spans_and_offsets(ranges):
    start = np.array([a for a, _ in ranges], dtype=np.int64)
    length = np.array([n for _, n in ranges], dtype=np.int64)
    assert spans(start, length).tolist() == [a + i for a, n in ranges for i in range(n)]
    assert offsets(length).tolist() == [sum(length[:i]) for i in range(len(length) + 1)]


@pytest.mark.parametrize("n", [1, 2**12, 2**12 + 1, 2**16, 2**16 + 1, 2**20, 2**25])
def test_stable_order(n):
    codes = np.random.default_rng(n).integers(0, n, 3000).astype(np.int32) // 2 * 2
    np.testing.assert_array_equal(order_of_codes(codes, n), np.argsort(codes, kind="stable"))


NUMBERS = {
    # The last two differ from 0.1 and 1 by digits that places are put over.
    np.float64: st.sampled_from(
        [
            0.0,
            -0.0,
            1.0,
            -1.0,
            np.inf,
            -np.inf,
            np.nan,
            -np.nan,
            5e-324,
            0.1,
            0.1 + 2e-17,
            1 - 2**-53,
        ]
    ),
    np.int64: st.sampled_from([0, 1, -1, 2**63 - 1, 2**63 - 2, -(2**63), 2**53 + 1])
    | st.integers(-2, 2),
    np.uint64: st.sampled_from([0, 1, 2**64 - 1, 2**64 - 2, 2**63])
    | st.integers(2**63 - 2, 2**63 + 2),
}


def slow_order(numbers, descending):
    """Positions, NaN last, equal ones as they stand."""
    return sorted(
        range(len(numbers)),
        key=lambda i: (
            np.isnan(numbers[i]),
            0 if np.isnan(numbers[i]) else -numbers[i] if descending else numbers[i],
        ),
    )


@pytest.mark.long
@settings(max_examples=4 * settings.default.max_examples)
@given(st.data(), st.sampled_from(list(NUMBERS)), st.booleans(), st.booleans())
def test_rank_within(data, dtype, descending, even):
    length = st.just(data.draw(st.integers(0, 4))) if even else st.integers(0, 20)
    narrow = data.draw(st.booleans()) and dtype != np.float64
    numbers = st.integers(3, 9) if narrow else NUMBERS[dtype]
    lists = data.draw(
        st.lists(length.flatmap(lambda n: st.lists(numbers, min_size=n, max_size=n)), max_size=8)
    )
    key = np.array([x for one in lists for x in one], dtype=dtype)
    start = offsets(np.array([len(one) for one in lists], dtype=np.int64))
    key.flags.writeable = False
    expected = [
        int(a) + i
        for a, one in zip(start, lists, strict=False)
        for i in slow_order(one, descending)
    ]
    found = rank_within(key, start, descending)
    if found is None:
        assert expected == list(range(len(key)))
    else:
        assert found[0].tolist() == expected
        np.testing.assert_array_equal(found[1], key[expected])


@pytest.mark.parametrize("cells", [1, 2**20])
@pytest.mark.parametrize("even", [True, False])
def test_sort_within(cells, even, resized):
    resized(matrix_cells=cells)
    rng = np.random.default_rng(1)
    length = np.full(50, 12) if even else rng.integers(0, 30, 50)
    key = rng.choice([0, 3, -5, 2**63 - 2, -(2**63)], length.sum())
    expected = [x for one in np.split(key, np.cumsum(length)[:-1]) for x in sorted(one.tolist())]
    sort_within(key, offsets(length))
    assert key.tolist() == expected


def test_windows():
    values = np.arange(10, 16)
    assert windows(values, np.array([3, 0, 4]), 2).tolist() == [[13, 14], [10, 11], [14, 15]]
    assert windows(values, np.array([4, 5, 0]), 3)[:, 0].tolist() == [14, 15, 10]
    assert windows(values, np.array([4, 5, 0]), 3)[0, 1] == 15
    assert windows(values[1:], np.array([0]), 2).tolist() == [[11, 12]]


def slow_pairs(lists, wanted):
    """Repeats, their firsts, and pairs of the j-th of equal items with the j-th that is wanted, by
    their numbers."""
    repeat, first, pairs, row, query = [], [], set(), 0, 0
    for items, looked_for in zip(lists, wanted, strict=True):
        seen, asked = {}, {}
        for item in items:
            if item in seen:
                repeat.append(row)
                first.append(seen[item][0])
            seen.setdefault(item, []).append(row)
            row += 1
        for item in looked_for:
            asked.setdefault(item, []).append(query)
            query += 1
        pairs |= {
            pair for item in seen for pair in zip(seen[item], asked.get(item, []), strict=False)
        }
    return repeat, first, pairs


def assert_pairs(lists, wanted, n_items=2**31, order=None):
    """`order`: how the lists lie in memory."""
    order = range(len(lists)) if order is None else order
    arrays = []
    for both in (lists, wanted):
        length = np.array([len(one) for one in both], dtype=np.int64)
        start = np.zeros(len(both), np.int64)
        start[order] = offsets(length[order])[:-1]
        arrays += [int32([x for i in order for x in both[i]]), start, length]
    found = pair_within(*arrays, n_items)
    repeat, first, place, query = found.repeat, found.first, found.place, found.sought
    # Rows as they would be numbered if the lists lay in their own order.
    own, own_wanted = (offsets(length)[:-1] for length in (arrays[2], arrays[5]))
    number = spans(own[order], arrays[2][order])
    wanted_number = spans(own_wanted[order], arrays[5][order])
    expected_repeat, expected_first, pairs = slow_pairs(lists, wanted)
    assert (repeat[1:] > repeat[:-1]).all()
    assert dict(zip(number[repeat], number[first], strict=True)) == dict(
        zip(expected_repeat, expected_first, strict=True)
    )
    assert len(place) == len(pairs)
    list_of = np.repeat(np.arange(len(lists)), arrays[2])
    assert (
        found.n.tolist()
        == np.bincount(
            list_of[np.array([row for row, _ in pairs], np.int64)], minlength=len(lists)
        ).tolist()
    )
    assert set(zip(number[place], wanted_number[query], strict=True)) == pairs


# The largest codes stand next to the numbers beyond the end of a list.
ITEMS = (
    st.integers(0, 6)
    | st.integers(0, 40).map(lambda i: i * 1024)
    | st.integers(2**31 - 9, 2**31 - 1)
)


@settings(max_examples=2 * settings.default.max_examples)
@given(
    st.lists(st.tuples(st.lists(ITEMS, max_size=12), st.lists(ITEMS, max_size=8)), max_size=8),
    st.randoms(),
)
@example([([2**31 - 1, 0, 2**31 - 1], [2**31 - 1] * 3), ([], [2**31 - 1]), ([3, 3], [])], Random(0))
@example([([5], []), ([5, 6, 5, 5], [5, 5, 6]), ([1024, 0], [0, 1024])], Random(1))
def test_pair_within(both, random):
    lists, wanted = [one for one, _ in both], [two for _, two in both]
    assert_pairs(lists, wanted)
    assert_pairs(lists, wanted, order=random.sample(range(len(both)), len(both)))


@pytest.mark.few(5)
@pytest.mark.parametrize("cells", [1, 16, 2**18])
@pytest.mark.parametrize("top", [5, 10**6, 2**24 - 30, 2**24, 2**31])
def test_pair_within_by_codes_of_any_size(cells, top, resized):
    """In one matrix and in many, in 32 bits and in 64: the last codes below `n_items` are no end of
    a list."""
    resized(matrix_cells=cells)
    rng = np.random.default_rng(top % 1009)
    lists = [(top - 1 - rng.integers(0, 40, rng.integers(0, 70)) % top).tolist() for _ in range(40)]
    wanted = [[*rng.choice([*one, 0], 2), *rng.integers(0, top, 3)] for one in lists]
    assert_pairs(lists, [list(map(int, one)) for one in wanted], n_items=top)


def test_pair_within_leaves_its_input_alone():
    arrays = [
        int32([3, 3, 1]),
        np.array([0]),
        np.array([3]),
        int32([3, 2]),
        np.array([0]),
        np.array([2]),
    ]
    for array in arrays:
        array.flags.writeable = False
    found = pair_within(*arrays, 4)
    assert (found.repeat.tolist(), found.first.tolist(), found.n.tolist()) == ([1], [0], [1])
    assert (found.place.tolist(), found.sought.tolist()) == ([0], [0])


def test_pair_within_nothing():
    assert_pairs([], [])
    assert_pairs([[], []], [[], [3]])
    assert_pairs([[1]], [[]])


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=30),
    st.sampled_from([1, 40, 2**18]),
)
def test_alike(lengths, cells):
    one, two = (
        np.array(length, dtype=np.int64)
        for length in ([a for a, _ in lengths], [b for _, b in lengths])
    )
    with sized(Sizes(matrix_cells=cells)):
        groups = [group.tolist() for group in alike(one, two)]
    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    few = len(one) * (one.max(initial=0) + two.max(initial=0)) <= cells // 64
    assert len(groups) == 1 or not few or not len(one)
    for group in [] if few else groups:
        for length in (one[group], two[group]):
            assert length.max() <= max(2 * length.min() - 1, 1)
        assert len(group) == 1 or len(group) * (one[group].max() + two[group].max()) <= cells

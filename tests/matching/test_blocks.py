"""Blocks of lists, against a dictionary of rows by code."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quick import few

from recdf.inputs.codes import Coded
from recdf.inputs.machine import Sizes, sized
from recdf.matching.list_keys import list_blocks

CODES = st.integers(-1, 5) | st.integers(0, 2**20 - 1)


def by_code(codes):
    rows = {}
    for row, code in enumerate(codes):
        if code >= 0:
            rows.setdefault(code, []).append(row)
    return rows


def lists_of(made):
    """code -> rows of all blocks, and how many of these are slices, which copy no column."""
    found, slices = {}, 0
    for block in made.each(lambda block: block):
        rows = block.row
        slices += bool(block.columns) and not block.columns[1].flags.owndata
        assert block.start[0] == 0
        assert block.start[-1] == len(rows)
        if block.columns:
            assert [column.tolist() for column in block.columns] == [
                (rows * 3).tolist(),
                (rows / 2).tolist(),
            ]
        for code, first, a, z in zip(
            block.code, block.first, block.start[:-1], block.start[1:], strict=True
        ):
            assert code not in found
            found[int(code)] = rows[a:z].tolist()
            assert first == rows[a]
    return found, slices


def values(n):
    """Two columns of n rows."""
    return [Coded(np.arange(n) * 3), np.arange(n) / 2]


@pytest.fixture
def small(resized):
    resized(list_block_rows=4, dealt_rows=8)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("block_rows", "dealt_rows"), [(1, 1), (4, 3), (2**18, 2**19)])
@given(codes=st.lists(CODES, max_size=40))
def test_rows_are_dealt_to_blocks(dtype, block_rows, dealt_rows, codes):
    with sized(Sizes(list_block_rows=block_rows, dealt_rows=dealt_rows)):
        array = np.array(codes, dtype=dtype)
        found, _ = lists_of(list_blocks(array, None, len(codes), 2**20, values(len(codes))))
        assert found == by_code(codes)
        assert lists_of(list_blocks(Coded(array + 7, 7), None, len(codes), 2**20, []))[0] == found


def test_codes_beyond_int32():
    codes = np.array([2**40, 1, 2**40])
    assert lists_of(list_blocks(codes, None, 3, 2**40 + 1, values(3)))[0] == {2**40: [0, 2], 1: [1]}


def test_blocks_of_neighbouring_codes(small):
    """Every block has about as many rows as it may, whatever the order of the rows."""
    codes = np.random.default_rng(0).permutation(np.repeat(np.arange(64), 4))
    made = list_blocks(codes, None, len(codes), 64, [])
    assert made.n == 64
    monotone = made.each(lambda block: block.code.tolist())
    assert monotone == [[code] for code in range(64)]


@pytest.mark.parametrize(
    "codes", [[], [0], [0, 0, 0], [3, 3, 1, 1, 1, 0], [5, -1, -1, 2, 2, 7, 0, 0, 0, 0, 0, 0, 9]]
)
def test_lists_that_stand_together_are_blocks_as_they_are(codes, small):
    array = np.array(codes, dtype=np.int32)
    heads = np.flatnonzero(np.diff(array, prepend=-2))
    made = list_blocks(Coded(array[heads]), heads, len(codes), 10, values(len(codes)))
    found, slices = lists_of(made)
    assert found == by_code(codes)
    if -1 not in codes:
        assert slices == made.n
    assert made.n == 1 + sum(a // 4 != z // 4 for a, z in pairwise(heads))


@pytest.mark.long
@pytest.mark.parametrize("dealt_rows", few([100, 2**16, 2**18], [2**16, 2**18]))
def test_small_and_large_chunks_deal_alike(resized, dealt_rows):
    """In groups of four blocks and more; every call makes the same blocks again."""
    resized(list_block_rows=2**12, group_rows=2**13, dealt_rows=dealt_rows)
    codes = np.random.default_rng(0).integers(-1, 5000, 200_000)
    made = list_blocks(codes, None, len(codes), 5000, values(len(codes)))
    assert made.n > 20
    assert lists_of(made)[0] == lists_of(made)[0] == by_code(codes.tolist())


def test_runs_of_a_code_that_comes_back_are_dealt(small):
    codes = [1, 1, 2, 2, 1, 1]
    found, slices = lists_of(
        list_blocks(Coded(np.array([1, 2, 1])), np.array([0, 2, 4]), 6, 3, values(6))
    )
    assert (found, slices) == (by_code(codes), 0)


@pytest.mark.parametrize("code", [[], [0], [3, 1, 2], [3, 1, 3], [10**9, 5], [10**9, 5, 10**9]])
def test_all_differ(code):
    """By marks on a table, or by hashing where the table would be large."""
    array = np.array(code, dtype=np.int64)
    made = list_blocks(array, np.arange(len(array)), len(array), 2 * 10**9, values(len(array)))
    assert (lists_of(made)[1] == made.n) == (len(set(code)) == len(code))

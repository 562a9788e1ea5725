"""Fast paths of hits and statistics: each is taken where it should be, and gives the numbers of the
slow one."""

import numpy as np
import pandas as pd
import pytest
from matching.watched import N_ITEMS, Watch, assert_same, result, shuffled

import recdf as rd
from recdf.evaluation import value_moments
from recdf.inputs import sorting
from recdf.inputs.sorting import rank_within
from recdf.matching import pairing
from recdf.matching.pairing import pair_within

# -- hits and statistics


@pytest.mark.few(1)
@pytest.mark.parametrize("cells", [1, 64, 2**18])
def test_pairs_in_one_matrix_and_in_many(frames, cells, resized):
    fast = result(*frames)
    resized(matrix_cells=cells)
    assert_same(result(*frames), fast)


def test_runs_are_looked_for_only_where_an_item_stands_twice(frames, monkeypatch):
    true, pred = frames
    watch = Watch(monkeypatch, pairing, "_in_runs")
    fast = result(true, pred)
    assert not watch.calls
    with pytest.warns(rd.DuplicateWarning):
        twice = result(true, pd.concat([pred, pred.iloc[-1:]], ignore_index=True))
    assert len(watch.calls) == 1
    assert_same(twice, fast)


@pytest.mark.parametrize("n_items", [2**29 - 4, 2**29 - 3, 2**31 - 9])
def test_pairs_are_found_where_four_bytes_no_longer_hold_their_keys(n_items, resized):
    """Three bits for a place and its side leave 29 for the item; four columns end in numbers beyond
    all items."""
    resized(row_cells=4)
    item = np.array([5, n_items - 1, 7], np.int32)
    found = pair_within(
        item, np.array([0]), np.array([3]), item, np.array([1]), np.array([1]), n_items
    )
    assert [array.tolist() for array in vars(found).values()] == [[1], [1], [1], [], []]


@pytest.mark.parametrize("change", [lambda frame: frame, shuffled])
def test_keys_of_pairs_of_four_and_of_eight_bytes_give_the_same(frames, change, resized):
    given = [change(frame) for frame in frames]
    fast = result(*given)
    resized(narrow_bits=0)
    assert_same(result(*given), fast)


@pytest.mark.few(3)
@pytest.mark.parametrize("n_pred", [3, (3, 5), 80])
@pytest.mark.parametrize("cells", [1, 4, 512])
def test_short_lists_that_share_a_row_give_the_same(n_pred, cells, resized):
    """The last row has lists left over, which are empty, whether the lists have one length or
    several."""
    rng = np.random.default_rng(4)
    length = np.full(50, n_pred) if isinstance(n_pred, int) else rng.integers(*n_pred, 50)
    rows = [
        (user, item)
        for user in range(50)
        for item in rng.choice(N_ITEMS, length[user], replace=False)
    ]
    pred = pd.DataFrame(rows, columns=["user_id", "item_id"])
    true = (
        pred.groupby("user_id")
        .tail(2)
        .assign(item_id=lambda table: (table["item_id"] + table.index % 2) % N_ITEMS)
    )
    true = true.drop_duplicates()
    fast = result(true, pred)
    assert fast.per_user["recall@20"].gt(0).any()
    resized(row_cells=cells)
    assert_same(result(true, pred), fast)


@pytest.mark.few(1)
@pytest.mark.parametrize("cells", [1, 50, 2**20])
def test_ranks_in_one_matrix_and_in_many(frames, cells, resized):
    true, pred = frames
    ragged = shuffled(pred.drop(index=pred.index[pred.index % 7 < pred["user_id"] % 5]))
    ragged["score"] = ragged["score"].round(1)
    fast = result(true, ragged)
    resized(matrix_cells=cells)
    assert_same(result(true, ragged), fast)


def test_only_lists_in_which_the_last_digits_matter_are_ordered_again(monkeypatch):
    watch = Watch(monkeypatch, sorting.np, "lexsort")
    close = np.array([1.0, 1.0 + 2**-52, 0.2, 0.1, 0.3, 0.2])
    places, ordered = rank_within(close, np.array([0, 2, 3, 6]), descending=True)
    assert places.tolist() == [1, 0, 2, 4, 5, 3]
    assert ordered.tolist() == [1.0 + 2**-52, 1.0, 0.2, 0.3, 0.2, 0.1]
    assert [len(calls[0][0]) for calls in watch.calls] == [2]


@pytest.mark.parametrize("terms", [1, 2, 2**15])
@pytest.mark.parametrize(
    ("values", "squares"),
    [
        ([1.0, 2.0, 6.0], 14.0),  # mean 3: 4 + 1 + 9
        ([1.0, np.nan, 2.0, 6.0], 14.0),
        ([np.nan, np.nan], 0.0),
        ([np.inf, -np.inf, 1.0], np.nan),
        ([np.nan, np.inf, 1.0], np.nan),
    ],
)
def test_squares_of_one_group_and_of_several(values, squares, terms, resized):
    resized(summed_terms=terms)
    column, group = np.array(values), np.zeros(len(values), np.int64)
    others = [np.arange(1.0, len(values) + 1), np.full(len(values), np.nan)]
    for n_groups in (1, 2):
        found = value_moments.GroupMoments.of([column, *others], group, n_groups)
        np.testing.assert_array_equal(
            found.sums[2][0], [squares, np.var(others[0]) * len(values), 0.0]
        )
        np.testing.assert_array_equal(
            found.sums[0, 0], [np.count_nonzero(~np.isnan(column)), len(values), 0]
        )


def test_a_summary_of_one_group_equals_that_of_many(frames):
    """One group is summed as it stands, several by their first rows; an undefined value leaves
    both."""
    true, pred = frames
    barren = pd.concat([true, pd.DataFrame({"user_id": [-1], "item_id": [0]})]).assign(gain=1.0)
    barren.loc[barren["user_id"] == -1, "gain"] = 0.0
    both = pd.concat([pred.assign(model="a"), pred.assign(model="b")], ignore_index=True)
    one = result(barren, pred, relevance_col="gain").summary
    two = result(barren, both, relevance_col="gain", by="model").summary
    assert one["n_undefined"].any()
    for model in "ab":
        part = two[two["model"] == model].drop(columns="model").reset_index(drop=True)
        pd.testing.assert_frame_equal(part, one, rtol=1e-12)


def test_groups_that_stand_apart_are_summarized_as_those_that_stand_together(frames):
    per_user = result(*frames).per_user.assign(segment=lambda table: table["user_id"] % 3)
    together = per_user.sort_values("segment", kind="stable", ignore_index=True)
    apart, sorted_ = (rd.summarize(table, by="segment") for table in (per_user, together))
    order = ["segment", "metric", "k"]
    pd.testing.assert_frame_equal(
        apart.sort_values(order, ignore_index=True),
        sorted_.sort_values(order, ignore_index=True),
        rtol=1e-12,
    )

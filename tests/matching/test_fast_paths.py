"""Every fast path: that it is taken where it should be, and that the answer is that of the slow path."""

import importlib
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import recdf as rd
from recdf.evaluation import moments
from recdf.inputs import codes as coding
from recdf.inputs import ids
from recdf.matching import blocks, grouping, ranked
from recdf.matching import list_keys as keys
from recdf.matching.grouping import offsets, pair_within, rank_within

match = importlib.import_module("recdf.matching.match")

METRICS = ["precision", "recall", "ndcg", "mapr", "mrr", "hitrate", "auc"]
N_LISTS, N_PRED, N_ITEMS = 60, 12, 80
STRINGS = {"user_id": "str", "item_id": "str"}
ARROW_TYPES = [pa.large_string(), pa.dictionary(pa.int32(), pa.string())]


@pytest.fixture
def frames():
    """`true` and `pred`, both by user, and `pred` by falling score without ties."""
    rng = np.random.default_rng(7)
    users = rng.permutation(N_LISTS)
    pred = [(user, item) for user in users for item in rng.choice(N_ITEMS, N_PRED, replace=False)]
    true = [(user, item) for user in users[::-1] for item in rng.choice(N_ITEMS, rng.integers(1, 9), replace=False)]
    true, pred = (pd.DataFrame(rows, columns=["user_id", "item_id"]) for rows in (true, pred))
    return true, pred.assign(score=np.tile(np.linspace(1, 0, N_PRED), N_LISTS))


def shuffled(frame):
    return frame.sample(frac=1, random_state=3, ignore_index=True)


def result(true, pred, **options):
    return rd.evaluate(true, pred, METRICS, k=[1, 5, 20], **options)


def assert_same(one, two):
    """Row for row, by the labels of the lists; order and dtype of the labels may differ."""
    keys = [name for name in one.per_user.columns if name in ("model", "user_id", "session")]

    def in_order(evaluation):
        table = evaluation.per_user
        return table.astype(dict.fromkeys(keys, str)).sort_values(keys, ignore_index=True)

    pd.testing.assert_frame_equal(in_order(one), in_order(two), check_exact=True)
    numbers = one.summary.select_dtypes("number")
    pd.testing.assert_frame_equal(numbers, two.summary[numbers.columns], rtol=1e-12, atol=1e-15)


class Watch:
    """Calls of a function that goes on as before."""

    def __init__(self, monkeypatch, module, name):
        self.calls, self.answers = [], []
        function = getattr(module, name)

        def watched(*args, **options):
            self.calls.append(args)
            self.answers.append(function(*args, **options))
            return self.answers[-1]

        monkeypatch.setattr(module, name, watched)


def refuse(monkeypatch, module, name):
    def refused(*_, **__):
        raise AssertionError(f"{name} was called")

    monkeypatch.setattr(module, name, refused)


# ------------------------------------------------------------------------------------- grouped and ranked input


def test_grouped_input_is_not_grouped_again(frames, monkeypatch):
    slow = result(*map(shuffled, frames))
    refuse(monkeypatch, blocks, "_dealt")
    assert_same(result(*frames), slow)


def test_shuffled_input_is_grouped(frames, monkeypatch):
    watch = Watch(monkeypatch, blocks, "_dealt")
    slow = result(*map(shuffled, frames))
    assert [len(code) for code, *_ in watch.calls] == [len(frame) for frame in frames]
    assert_same(result(*frames), slow)


def test_input_without_run_heads_gives_the_same(frames, monkeypatch):
    fast = result(*frames)
    monkeypatch.setattr(match, "run_heads", lambda columns: None)
    watch = Watch(monkeypatch, blocks, "_dealt")
    assert_same(result(*frames), fast)
    assert len(watch.calls) == 2


def test_run_heads_only_where_runs_are_long():
    def heads(users):
        return keys.run_heads([ids.read_ids(pd.Series(users), "user_id")])

    assert heads([4, 4, 4, 2, 2, 4]).tolist() == [0, 3, 5]
    assert heads([1, 2, 3, 3]).tolist() == [0, 1, 2]
    assert heads([1, 2, 3, 4]) is None
    assert heads(["a", "a", "b"]).tolist() == [0, 2]


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_run_heads_part_by_part(rows, monkeypatch):
    users = np.array([4, 4, 4, 2, 2, 4, 4, 4, 4, 1, 1, 1, 1, 1, 1, 8])
    monkeypatch.setattr(keys, "HEAD_ROWS", rows)
    assert keys.run_heads([ids.read_ids(pd.Series(users), "user_id")]).tolist() == [0, 3, 5, 9, 15]
    texts = pd.Series(users).astype(str)
    assert keys.run_heads([ids.read_ids(texts, "user_id")]).tolist() == [0, 3, 5, 9, 15]


def test_run_heads_does_not_look_further_than_the_first_part_of_shuffled_rows(monkeypatch):
    monkeypatch.setattr(keys, "HEAD_ROWS", 4)
    refuse(monkeypatch, keys, "each")
    assert keys.run_heads([ids.read_ids(pd.Series([1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5]), "user_id")]) is None


@pytest.mark.parametrize("rows", [1, 3, 2**18])
def test_by_values_stand_in_order_of_first_appearance(frames, rows, monkeypatch):
    true, pred = frames
    model = np.array(["b", "c", "a"])[np.sort(np.random.default_rng(5).integers(0, 3, len(pred)))]
    monkeypatch.setattr(keys, "HEAD_ROWS", rows)
    for order in (slice(None), slice(None, None, -1)):
        both = pred.assign(model=model).iloc[order].reset_index(drop=True)
        assert result(true, both, by="model").summary["model"].drop_duplicates().tolist() == ["b", "c", "a"][order]


@pytest.mark.parametrize("n_codes", [10, 10**12])
def test_place_of_a_list(n_codes):
    """By a table, or by hashing where the table would be large."""
    assert keys.place_of(np.array([3, 9, 0]), np.array([0, 3]), n_codes).tolist() == [2, 0]


def test_runs_of_a_user_that_come_back_are_put_together(frames, monkeypatch):
    true, pred = frames
    halves = pd.concat([pred[pred.index % N_PRED < 6], pred[pred.index % N_PRED >= 6]], ignore_index=True)
    fast = result(true, pred)
    watch = Watch(monkeypatch, blocks, "_dealt")
    assert_same(result(true, halves), fast)
    assert [len(code) for code, *_ in watch.calls] == [len(pred)]


def test_rows_of_users_outside_the_population_are_left_out_of_grouped_input(frames, monkeypatch):
    true, pred = frames
    few = true[true["user_id"] < 20]
    slow = result(shuffled(few), shuffled(pred))
    refuse(monkeypatch, blocks, "_dealt")
    assert_same(result(few, pred), slow)


def test_ranked_lists_are_not_sorted(frames, monkeypatch):
    true, pred = frames
    slow = result(true, shuffled(pred))
    refuse(monkeypatch, ranked, "rank_within")
    assert_same(result(true, pred), slow)
    by_rank = pred.assign(rank=np.tile(np.arange(1, N_PRED + 1), N_LISTS)).drop(columns="score")
    assert_same(result(true, by_rank), slow)


def test_lists_out_of_rank_are_sorted(frames, monkeypatch):
    true, pred = frames
    watch = Watch(monkeypatch, ranked, "rank_within")
    backwards = pred.iloc[::-1].reset_index(drop=True)
    assert_same(result(true, backwards), result(true, pred))
    assert len(watch.calls) == 1


def test_rank_within_says_that_nothing_moves():
    assert rank_within(np.array([1.0, 1.0, np.nan, 0.0, 2.0]), np.array([0, 3, 5])) is None
    assert rank_within(np.array([2.0, 2.0, 1.0, 5.0]), np.array([0, 3, 4]), descending=True) is None
    assert [found.tolist() for found in rank_within(np.array([1.0, 0.0]), np.array([0, 2]))] == [[1, 0], [0.0, 1.0]]


# ------------------------------------------------------------------------------------------------------- codes


def test_small_ranges_of_integers_are_their_own_codes(frames, monkeypatch):
    slow = result(*(frame * {"user_id": 10**12, "item_id": 10**13, "score": 1} for frame in scored(frames)))
    refuse(monkeypatch, coding, "_encode_hashed")
    fast = result(*scored(frames))
    monkeypatch.undo()
    pd.testing.assert_frame_equal(fast.per_user.drop(columns="user_id"), slow.per_user.drop(columns="user_id"))


def scored(frames):
    """Both frames with the same columns, so that one factor for each column is enough."""
    true, pred = frames
    return true.assign(score=1.0), pred


def test_integers_give_the_same_by_hashing(frames, monkeypatch):
    for pair in (frames, tuple(map(shuffled, frames))):
        fast = result(*pair)
        watch = Watch(monkeypatch, coding, "_encode_hashed")
        monkeypatch.setattr(coding, "encode_integers", coding._encode_hashed)
        assert_same(result(*pair), fast)
        assert len(watch.calls) == 2  # users and items
        monkeypatch.undo()


@pytest.mark.parametrize(("step", "span", "direct"), [(8, 0, True), (9, 0, False), (9, 82, True), (9, 81, False)])
def test_direct_addressing_by_the_width_of_the_range(step, span, direct, monkeypatch):
    """At most DIRECT_SPAN numbers, or four times the rows."""
    monkeypatch.setattr(coding, "DIRECT_SPAN", span)
    values = np.arange(10) * step - 7
    codes = coding.encode_integers([values, values[::-1]])
    assert (codes.labels is None) == direct
    np.testing.assert_array_equal(codes.codes[0], codes.codes[1][::-1])
    assert len(set(codes.codes[0].tolist())) == 10
    assert all(0 <= code < codes.n for code in codes.codes[0].tolist())


@pytest.mark.parametrize("ties", ["item_desc", "item_asc"])
def test_ties_go_by_the_ids_however_they_are_coded(frames, ties):
    true, pred = (shuffled(frame.assign(item_id=frame["item_id"] - 40)) for frame in frames)
    pred["score"] = pred["score"].round(1)
    wide = [frame.assign(item_id=frame["item_id"] * 10**15) for frame in (true, pred)]
    assert_same(result(true, pred, ties=ties), result(*wide, ties=ties))


def test_runs_of_objects_give_the_same_as_rows_that_are_read_one_by_one(frames):
    """Of a run of equal objects the first alone is read; shuffled rows have no runs."""
    objects = [frame.astype({"user_id": object, "item_id": object}) for frame in frames]
    assert_same(result(*objects), result(*frames))
    assert_same(result(*map(shuffled, objects)), result(*frames))


def test_objects_that_compare_to_no_bool_are_read_one_by_one(frames):
    """Whether two ids are equal is itself null beside a null."""
    texts = [frame.astype(STRINGS).astype({"user_id": object, "item_id": object}) for frame in frames]
    with_nulls = [frame.copy() for frame in texts]
    for frame in with_nulls:
        frame.loc[[0, 7, 8], "user_id"] = pd.NA
        frame.loc[20, "item_id"] = pd.NA
    without = [frame.drop(index=[0, 7, 8, 20]) for frame in texts]
    assert_same(result(*with_nulls, null_keys="drop"), result(*without))


@pytest.mark.parametrize("dtype", ["str", "category", "string[pyarrow]", object])
def test_string_ids_give_the_same_as_integers(frames, dtype):
    texts = [frame.astype(STRINGS).astype({"user_id": dtype, "item_id": dtype}) for frame in frames]
    assert_same(result(*texts), result(*frames))
    assert_same(result(*map(shuffled, texts)), result(*frames))


def test_pieces_of_a_long_column_of_strings_are_encoded_at_once(frames, monkeypatch):
    texts = [frame.astype(STRINGS) for frame in map(shuffled, frames)]
    texts[1].loc[[0, 7], "item_id"] = None
    slow = result(*texts, null_keys="drop")
    monkeypatch.setattr(coding, "PIECE_ROWS", 2)
    for n in (2, 3):
        monkeypatch.setattr(coding, "n_threads", lambda n=n: n)
        assert_same(result(*texts, null_keys="drop"), slow)


@pytest.mark.parametrize("rows", [[], [0], [0, 0, 3, 4, 6], [2, 3], [6, 0, 3]])
def test_rows_of_chunks_of_strings(rows):
    """Ascending rows are taken chunk by chunk."""
    chunks = pa.chunked_array([["a", "b"], [], ["c", None, "a"], ["d", "e"]], pa.large_string())
    whole = chunks.to_pylist()
    for array in (chunks, chunks[1:]):
        taken = ids.Ids("a", "string", array).take(np.array([row for row in rows if row < len(array)], np.int64))
        shift = len(chunks) - len(array)
        assert taken.values.to_pylist() == [whole[row + shift] for row in rows if row < len(array)]


@pytest.mark.parametrize("most", [1000, 1])
def test_codes_stay_in_the_chunks_of_a_column(most, monkeypatch):
    monkeypatch.setattr(coding, "MOST_PARTS", most)
    monkeypatch.setattr(coding, "PIECE_ROWS", 6)
    chunks = pa.chunked_array([["a", "bb"], [], ["c", "a"], ["bb"], ["d", "a", "c"]], pa.large_string())
    (column,) = coding.encode([ids.Ids("a", "string", chunks)]).columns
    assert (len(column.parts) > 2) == (most > 1)
    whole = [0, 1, 2, 0, 1, 3, 0, 2]
    assert len(column) == 8
    assert column.all().tolist() == whole
    for a in range(9):
        for z in range(9):
            assert column[a:z].tolist() == whole[a:z]
            assert column.mapped(np.array([9, 8, 7, 6], np.int32))[a:z].tolist() == [9 - x for x in whole[a:z]]


@pytest.mark.parametrize(
    "dtype",
    ["object", "str", "string[python]", "string[pyarrow]", "category", *map(pd.ArrowDtype, ARROW_TYPES)],
    ids=str,
)
def test_labels_keep_their_dtype_and_chunks(dtype, monkeypatch):
    column = pd.concat([pd.Series(["a", "b"]), pd.Series(["c", "a", None])]).astype(dtype)
    watch = Watch(monkeypatch, ids, "_take")
    for rows in (np.array([0, 1, 1, 4]), np.array([4, 0, 2]), np.array([], np.int64)):
        pd.testing.assert_series_equal(ids.take_rows(column, rows), column.iloc[rows].reset_index(drop=True))
    arrow = isinstance(column.dtype, pd.ArrowDtype) or getattr(column.dtype, "storage", "") == "pyarrow"
    assert len(watch.calls) == 3 * arrow


@pytest.mark.parametrize("dtype", ["int64", "Int64", "int64[pyarrow]", "datetime64[ns, UTC]"])
def test_labels_of_numbers_keep_their_dtype(dtype):
    column = pd.Series([7, 8, 9], dtype=dtype)
    pd.testing.assert_series_equal(ids.take_rows(column, np.array([2, 0])), column.iloc[[2, 0]].reset_index(drop=True))


def test_chunks_of_strings_share_a_dictionary():
    """Arrow gives all chunks of one column one dictionary, which `encode` relies on."""
    chunks = pa.chunked_array([["a", "b"], ["c", None, "a"], [], ["d"]], pa.large_string())
    other = pa.chunked_array([["d", "c"]], chunks.type)
    encoded = coding.encode([ids.Ids("a", "string", chunks), ids.Ids("b", "string", other)])
    assert [codes.tolist() for codes in encoded.codes] == [[0, 1, 2, -1, 0, 3], [3, 2]]


# ------------------------------------------------------------------------------------------- hits and statistics


@pytest.mark.parametrize("cells", [1, 64, 2**18])
def test_pairs_in_one_matrix_and_in_many(frames, cells, monkeypatch):
    fast = result(*frames)
    monkeypatch.setattr(grouping, "MATRIX_CELLS", cells)
    assert_same(result(*frames), fast)


def test_runs_are_looked_for_only_where_an_item_stands_twice(frames, monkeypatch):
    true, pred = frames
    watch = Watch(monkeypatch, grouping, "_in_runs")
    fast = result(true, pred)
    assert not watch.calls
    with pytest.warns(rd.DuplicateWarning):
        twice = result(true, pd.concat([pred, pred.iloc[-1:]], ignore_index=True))
    assert len(watch.calls) == 1
    assert_same(twice, fast)


@pytest.mark.parametrize("n_items", [2**29 - 4, 2**29 - 3, 2**31 - 9])
def test_pairs_are_found_where_four_bytes_no_longer_hold_their_keys(n_items, monkeypatch):
    """Three bits for a place and its side leave 29 for the item; four columns end in numbers beyond all items."""
    monkeypatch.setattr(grouping, "ROW_CELLS", 4)
    item = np.array([5, n_items - 1, 7], np.int32)
    found = pair_within(item, np.array([0]), np.array([3]), item, np.array([1]), np.array([1]), n_items)
    assert [array.tolist() for array in vars(found).values()] == [[1], [1], [1], [], []]


@pytest.mark.parametrize("change", [lambda frame: frame, shuffled])
def test_keys_of_pairs_of_four_and_of_eight_bytes_give_the_same(frames, change, monkeypatch):
    given = [change(frame) for frame in frames]
    fast = result(*given)
    monkeypatch.setattr(grouping, "NARROW_BITS", 0)
    assert_same(result(*given), fast)


@pytest.mark.parametrize("n_pred", [3, (3, 5), 80])
@pytest.mark.parametrize("cells", [1, 4, 512])
def test_short_lists_that_share_a_row_give_the_same(n_pred, cells, monkeypatch):
    """The last row has lists left over, which are empty, whether the lists have one length or several."""
    rng = np.random.default_rng(4)
    length = np.full(50, n_pred) if isinstance(n_pred, int) else rng.integers(*n_pred, 50)
    rows = [(user, item) for user in range(50) for item in rng.choice(N_ITEMS, length[user], replace=False)]
    pred = pd.DataFrame(rows, columns=["user_id", "item_id"])
    true = pred.groupby("user_id").tail(2).assign(item_id=lambda table: (table["item_id"] + table.index % 2) % N_ITEMS)
    true = true.drop_duplicates()
    fast = result(true, pred)
    assert fast.per_user["recall@20"].gt(0).any()
    monkeypatch.setattr(grouping, "ROW_CELLS", cells)
    assert_same(result(true, pred), fast)


@pytest.mark.parametrize("cells", [1, 50, 2**20])
def test_ranks_in_one_matrix_and_in_many(frames, cells, monkeypatch):
    true, pred = frames
    ragged = shuffled(pred.drop(index=pred.index[pred.index % 7 < pred["user_id"] % 5]))
    ragged["score"] = ragged["score"].round(1)
    fast = result(true, ragged)
    monkeypatch.setattr(grouping, "MATRIX_CELLS", cells)
    assert_same(result(true, ragged), fast)


def test_lists_of_one_length_need_no_padding(monkeypatch):
    key = np.random.default_rng(1).integers(-99, 99, 32)
    even, one_by_one = key.copy(), [np.sort(part) for part in np.split(key, 4)]
    refuse(monkeypatch, grouping, "windows")
    grouping.sort_within(even, offsets(np.full(4, 8)))
    np.testing.assert_array_equal(even, np.concatenate(one_by_one))


def test_only_lists_in_which_the_last_digits_matter_are_ordered_again(monkeypatch):
    watch = Watch(monkeypatch, grouping.np, "lexsort")
    close = np.array([1.0, 1.0 + 2**-52, 0.2, 0.1, 0.3, 0.2])
    places, ordered = rank_within(close, np.array([0, 2, 3, 6]), descending=True)
    assert places.tolist() == [1, 0, 2, 4, 5, 3]
    assert ordered.tolist() == [1.0 + 2**-52, 1.0, 0.2, 0.3, 0.2, 0.1]
    assert [len(calls[0][0]) for calls in watch.calls] == [2]


@pytest.mark.parametrize("ties", ["item_desc", "item_asc", "worst"])
def test_ties_in_lists_too_long_for_one_integer(frames, ties, monkeypatch):
    """Where level, item and place together take more than an integer's bits, a slower sort gives the same."""
    true, pred = map(shuffled, frames)
    pred["score"] = pred["score"].round(1)
    fast = result(true, pred, ties=ties)
    monkeypatch.setattr(ranked, "KEY_BITS", 0)
    watch = Watch(monkeypatch, ranked.np, "lexsort")
    assert_same(result(true, pred, ties=ties), fast)
    assert watch.calls


@pytest.mark.parametrize("part_rows", [1, 2, 2**15])
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
def test_squares_of_one_group_and_of_several(values, squares, part_rows, monkeypatch):
    monkeypatch.setattr(moments, "PART_ROWS", part_rows)
    column, group = np.array(values), np.zeros(len(values), np.int64)
    for n_groups in (1, 2):
        found = moments.Moments.of([column], group, n_groups).squares[0]
        np.testing.assert_array_equal(found, [squares])


def test_a_summary_of_one_group_equals_that_of_many(frames):
    """One group is summed as it stands, several by their first rows; an undefined value leaves both."""
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
        apart.sort_values(order, ignore_index=True), sorted_.sort_values(order, ignore_index=True), rtol=1e-12
    )


# ------------------------------------------------------------------------------------------- where the time goes


def test_the_benchmark_knows_the_steps(frames, monkeypatch):
    """`benchmarks/steps.py` times functions by their names."""
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[2] / "benchmarks"), *sys.path])
    steps = importlib.import_module("steps")
    before, clock = ranked.rank_true, steps.Clock()
    with steps.watched(clock):
        importlib.import_module("recdf.evaluation.evaluate").evaluate(*map(shuffled, frames), "ndcg")
    assert ranked.rank_true is before
    assert set(clock.seconds) == set(steps.STEPS)
    assert all(seconds >= 0 for seconds in clock.seconds.values())


# ---------------------------------------------------------------------------------------------------- blocks


@pytest.mark.parametrize("rows", [1, 40, 2**18])
def test_one_block_and_many_give_the_same(frames, rows, monkeypatch):
    """With repeated rows, ties, and metrics that read the items of all places."""
    true, pred = frames
    pred = pd.concat([pred, pred.sample(50, random_state=1)]).assign(score=lambda table: table["score"].round(1))
    metrics = [*METRICS, "coverage", "gini"]
    for change in (lambda frame: frame, shuffled):
        given = tuple(map(change, (true, pred.sort_values("user_id", kind="stable", ignore_index=True))))
        for options in ({}, {"duplicates": "keep"}, {"judged_only": True}, {"ties": "worst"}, {"users": "pred"}):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", rd.DuplicateWarning)
                monkeypatch.undo()
                whole = rd.evaluate(*given, metrics, k=[1, 5], items=np.arange(N_ITEMS), **options)
                monkeypatch.setattr(blocks, "BLOCK_ROWS", rows)
                monkeypatch.setattr(blocks, "DEALT_ROWS", rows)
                parts = rd.evaluate(*given, metrics, k=[1, 5], items=np.arange(N_ITEMS), **options)
            pd.testing.assert_frame_equal(whole.per_user, parts.per_user, check_exact=True)
            pd.testing.assert_frame_equal(whole.summary, parts.summary, rtol=1e-12)
            assert whole.spec == parts.spec


def test_items_of_many_blocks_are_read_when_asked_for(frames, monkeypatch):
    true, pred = frames
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 40)
    shown = importlib.import_module("recdf.matching.pred_lists")
    watch = Watch(monkeypatch, shown, "joined")
    result(true, pred)
    assert not watch.calls
    rd.evaluate(true, pred, ["coverage", "gini"], items=np.arange(N_ITEMS))
    assert len(watch.calls) == 1


def test_freed_memory_stays_for_the_next_call(frames, monkeypatch):
    """A block that is never touched tells glibc so; what it is for shows in `benchmarks/`."""
    watch = Watch(monkeypatch, match, "keep_freed_memory")
    result(*frames)
    assert len(watch.calls) == 1
    memory = importlib.import_module("recdf.inputs.threads")
    sizes = []
    monkeypatch.setattr(memory.np, "empty", lambda size, dtype: sizes.append(size * np.dtype(dtype).itemsize))
    memory.keep_freed_memory()
    assert 2**24 < sizes[0] < 2**25

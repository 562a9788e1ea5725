"""Fast paths of grouped and ranked input and of blocks: each is taken where it should be, with the
same answer."""

import importlib
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matching.watched import (
    METRICS,
    N_ITEMS,
    N_LISTS,
    N_PRED,
    Watch,
    assert_same,
    match,
    refuse,
    result,
    shuffled,
)

import recdf as rd
from recdf.inputs import ids
from recdf.inputs.machine import Sizes, sized
from recdf.inputs.sorting import rank_within
from recdf.matching import list_keys as keys
from recdf.matching import ranked

# -- grouped and ranked input


def test_grouped_input_is_not_grouped_again(frames, monkeypatch):
    slow = result(*map(shuffled, frames))
    refuse(monkeypatch, keys, "_dealt")
    assert_same(result(*frames), slow)


def test_shuffled_input_is_grouped(frames, monkeypatch):
    watch = Watch(monkeypatch, keys, "_dealt")
    slow = result(*map(shuffled, frames))
    assert [len(code) for code, *_ in watch.calls] == [len(frame) for frame in frames]
    assert_same(result(*frames), slow)


def test_input_without_run_heads_gives_the_same(frames, monkeypatch):
    fast = result(*frames)
    monkeypatch.setattr(match, "key_run_heads", lambda columns: None)
    watch = Watch(monkeypatch, keys, "_dealt")
    assert_same(result(*frames), fast)
    assert len(watch.calls) == 2


def test_run_heads_only_where_runs_are_long():
    def heads(users):
        return keys.key_run_heads([ids.read_ids(pd.Series(users), "user_id")])

    assert heads([4, 4, 4, 2, 2, 4]).tolist() == [0, 3, 5]
    assert heads([1, 2, 3, 3]).tolist() == [0, 1, 2]
    assert heads([1, 2, 3, 4]) is None
    assert heads(["a", "a", "b"]).tolist() == [0, 2]


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_run_heads_part_by_part(rows, resized):
    users = np.array([4, 4, 4, 2, 2, 4, 4, 4, 4, 1, 1, 1, 1, 1, 1, 8])
    resized(key_rows=rows)
    assert keys.key_run_heads([ids.read_ids(pd.Series(users), "user_id")]).tolist() == [
        0,
        3,
        5,
        9,
        15,
    ]
    texts = pd.Series(users).astype(str)
    assert keys.key_run_heads([ids.read_ids(texts, "user_id")]).tolist() == [0, 3, 5, 9, 15]


def test_run_heads_does_not_look_further_than_the_first_part_of_shuffled_rows(monkeypatch, resized):
    resized(key_rows=4)
    refuse(monkeypatch, keys, "each")
    assert (
        keys.key_run_heads(
            [ids.read_ids(pd.Series([1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5]), "user_id")]
        )
        is None
    )


@pytest.mark.parametrize("rows", [1, 3, 2**18])
def test_by_values_stand_in_order_of_first_appearance(frames, rows, resized):
    true, pred = frames
    model = np.array(["b", "c", "a"])[np.sort(np.random.default_rng(5).integers(0, 3, len(pred)))]
    resized(key_rows=rows)
    for order in (slice(None), slice(None, None, -1)):
        both = pred.assign(model=model).iloc[order].reset_index(drop=True)
        assert (
            result(true, both, by="model").summary["model"].drop_duplicates().tolist()
            == ["b", "c", "a"][order]
        )


@pytest.mark.parametrize("n_codes", [10, 10**12])
def test_place_of_a_list(n_codes):
    """By a table, or by hashing where the table would be large."""
    assert keys.place_of(np.array([3, 9, 0]), np.array([0, 3]), n_codes).tolist() == [2, 0]


def test_runs_of_a_user_that_come_back_are_put_together(frames, monkeypatch):
    true, pred = frames
    halves = pd.concat(
        [pred[pred.index % N_PRED < 6], pred[pred.index % N_PRED >= 6]], ignore_index=True
    )
    fast = result(true, pred)
    watch = Watch(monkeypatch, keys, "_dealt")
    assert_same(result(true, halves), fast)
    assert [len(code) for code, *_ in watch.calls] == [len(pred)]


def test_rows_of_users_outside_the_population_are_left_out_of_grouped_input(frames, monkeypatch):
    true, pred = frames
    few = true[true["user_id"] < 20]
    slow = result(shuffled(few), shuffled(pred))
    refuse(monkeypatch, keys, "_dealt")
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
    assert [found.tolist() for found in rank_within(np.array([1.0, 0.0]), np.array([0, 2]))] == [
        [1, 0],
        [0.0, 1.0],
    ]


# -- where the time goes


def test_the_benchmark_knows_the_steps(frames, monkeypatch):
    """`benchmarks/steps.py` times functions by their names."""
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[2] / "benchmarks"), *sys.path])
    steps = importlib.import_module("steps")
    before, clock = ranked.rank_true, steps.Clock()
    with steps.watched(clock):
        importlib.import_module("recdf.evaluation.evaluate").evaluate(
            *map(shuffled, frames), "ndcg"
        )
    assert ranked.rank_true is before
    assert set(clock.seconds) == set(steps.STEPS)
    assert all(seconds >= 0 for seconds in clock.seconds.values())


# --------------------------------------------------------------------------------------------------
# blocks


@pytest.mark.long
@pytest.mark.parametrize("rows", [7, 40])
def test_one_block_and_many_give_the_same(frames, rows):
    """With repeated rows, ties, and metrics that read the items of all places."""
    true, pred = frames
    pred = pd.concat([pred, pred.sample(50, random_state=1)]).assign(
        score=lambda table: table["score"].round(1)
    )
    metrics = [*METRICS, "coverage", "gini"]
    for change in (lambda frame: frame, shuffled):
        given = tuple(
            map(change, (true, pred.sort_values("user_id", kind="stable", ignore_index=True)))
        )
        for options in (
            {},
            {"duplicates": "keep"},
            {"judged_only": True},
            {"ties": "worst"},
            {"users": "pred"},
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", rd.DuplicateWarning)
                warnings.simplefilter("ignore", rd.JudgedWarning)
                whole = rd.evaluate(*given, metrics, k=[1, 5], items=np.arange(N_ITEMS), **options)
                with sized(Sizes(list_block_rows=rows, dealt_rows=rows)):
                    parts = rd.evaluate(
                        *given, metrics, k=[1, 5], items=np.arange(N_ITEMS), **options
                    )
            pd.testing.assert_frame_equal(whole.per_user, parts.per_user, check_exact=True)
            pd.testing.assert_frame_equal(whole.summary, parts.summary, rtol=1e-12)
            assert whole.spec == parts.spec


def test_items_of_many_blocks_are_read_when_asked_for(frames, monkeypatch, resized):
    true, pred = frames
    resized(list_block_rows=40)
    shown = importlib.import_module("recdf.matching.true_and_pred_lists")
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
    memory = importlib.import_module("recdf.inputs.machine")
    sizes = []
    monkeypatch.setattr(
        memory.np, "empty", lambda size, dtype: sizes.append(size * np.dtype(dtype).itemsize)
    )
    memory.keep_freed_memory()
    assert 2**24 < sizes[0] < 2**25

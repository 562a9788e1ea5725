"""Threads: as many as Arrow says, fewer where an engine says so; the same answer with any number,
and no deadlock."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pandas as pd
import pyarrow as pa
import pytest
from registry.seeded import frames

import recdf as rd
from recdf.inputs import machine

METRICS = ["ndcg@3", "recall@3", "hhi@2"]
OPTIONS = {
    "score_col": "score",
    "nan_score": "last",
    "relevance_col": "relevance",
    "duplicates": "keep",
}


@pytest.fixture
def cpu_count():
    """Set the number of threads of Arrow for one test."""
    before = pa.cpu_count()
    yield pa.set_cpu_count
    pa.set_cpu_count(before)


@pytest.fixture
def small(resized):
    """Cut small frames into many blocks, as large frames are."""
    resized(list_block_rows=16, dealt_rows=16, key_rows=16, coded_rows=16)


@pytest.fixture(scope="module")
def strings():
    true, pred = frames(3, top=3.0, n_users=40)
    return tuple(frame.assign(user_id=frame["user_id"].map("u{}".format)) for frame in (true, pred))


def evaluated(strings):
    return rd.evaluate(*strings, METRICS, **OPTIONS)


def of_child(strings):
    return evaluated(strings).summary


def of_files(paths, buckets):
    return rd.evaluate_parquet(*paths, METRICS, buckets=buckets, **OPTIONS).summary


def test_there_are_as_many_threads_as_arrow_says(cpu_count):
    for n in (1, 2, 7):
        cpu_count(n)
        assert machine.n_threads() == n
    cpu_count(1000)
    assert machine.n_threads() == machine.MOST_THREADS


def test_limited_lowers_the_number_and_gives_it_back(cpu_count):
    cpu_count(6)
    with machine.limited(3):
        with machine.limited(5):
            assert machine.n_threads() == 3
        with machine.limited(1):
            assert machine.n_threads() == 1
        assert machine.n_threads() == 3
    with pytest.raises(KeyError), machine.limited(1):
        raise KeyError
    assert machine.n_threads() == 6


def test_one_thread_is_the_thread_of_the_caller(cpu_count):
    cpu_count(4)
    with machine.limited(1):
        assert set(machine.each(lambda _: threading.get_ident(), range(9))) == {
            threading.get_ident()
        }


def test_work_within_a_thread_starts_no_further_threads(cpu_count):
    cpu_count(3)
    assert machine.each(lambda _: machine.n_threads(), range(9)) == [1] * 9
    assert machine.n_threads() == 3


def test_rows_at_the_same_time_do_not_grow_with_the_threads(cpu_count):
    for n in (1, 2, 16, 500):
        cpu_count(n)
        assert machine.n_threads() * machine.rows_at_a_time(2**19) <= machine.ROWS_IN_FLIGHT
    assert machine.rows_at_a_time(4) == 4


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_the_number_of_threads_changes_no_answer(strings, cpu_count):
    cpu_count(1)
    expected = evaluated(strings)
    for n in (2, 5):
        cpu_count(n)
        assert evaluated(strings) == expected


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_calls_in_a_pool_of_threads(strings, cpu_count):
    cpu_count(3)
    expected = evaluated(strings)
    with ThreadPoolExecutor(4) as pool:
        assert all(found == expected for found in pool.map(evaluated, [strings] * 8))


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.usefixtures("small")
def test_calls_after_a_fork(strings, tmp_path, cpu_count):
    cpu_count(3)
    paths = [tmp_path / f"{name}.parquet" for name in ("true", "pred")]
    for frame, path in zip(strings, paths, strict=True):
        frame.to_parquet(path)
    expected = evaluated(strings).summary  # threads have run in the parent
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        pd.testing.assert_frame_equal(pool.submit(of_child, strings).result(timeout=60), expected)
        for buckets in (None, 3):
            found = pool.submit(of_files, paths, buckets).result(timeout=60)
            pd.testing.assert_frame_equal(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 3])
def test_a_stream_keeps_the_order_and_few_parts(cpu_count, n):
    cpu_count(n)
    made, done = [], []

    def parts():
        for number in range(20):
            made.append(number)
            yield number

    for number in machine.stream(lambda number: number * 10, parts()):
        done.append(number)
        assert len(made) - len(done) <= n + 1
    assert done == list(range(0, 200, 10))


@pytest.mark.parametrize(
    ("n", "most", "inside"), [(1, 4, 1), (4, 1, 4), (4, 2, 2), (3, 2, 1), (3, 9, 1)]
)
def test_a_stream_works_on_so_many_parts_at_a_time(cpu_count, n, most, inside):
    """The threads are shared out among the parts; with one part at a time, the calls follow one
    another."""
    cpu_count(n)
    lock, running, largest = threading.Lock(), set(), []

    def work(number):
        with lock:
            running.add(number)
            largest.append(len(running))
        found = number, machine.n_threads()
        with lock:
            running.discard(number)
        return found

    assert list(machine.stream(work, range(50), most)) == [(number, inside) for number in range(50)]
    assert max(largest) <= min(n, most)


@pytest.mark.parametrize("n", [1, 3])
def test_a_stream_gives_the_error_of_a_part(cpu_count, n):
    cpu_count(n)
    with pytest.raises(ZeroDivisionError):
        list(machine.stream(lambda number: 1 // (number - 5), range(10**6)))
    with pytest.raises(
        RuntimeError, match="StopIteration"
    ):  # it must not end the stream as if all parts were done
        list(machine.stream(lambda number: next(iter(())), range(3)))
    some = machine.stream(str, range(10**6))
    assert next(some) == "0"
    some.close()  # the rest is not made

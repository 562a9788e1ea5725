"""Users in frames of Dask and in files are counted in buckets: the tables are those of all rows in
memory, and no rows come there."""

from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from partitions.user_cases import CALLS, REFUSED, assert_same, assigned, with_metrics
from quick import few

import recdf as rd
from recdf.inputs import data_files
from recdf.inputs.machine import sized, sizes
from recdf.partitions import users_elsewhere

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(autouse=True)
def _small_buckets():
    with dask.config.set(scheduler="synchronous"), sized(replace(sizes(), summed_rows=64)):
        yield


@pytest.fixture
def no_rows(monkeypatch):
    """Only a table that is in memory already is read as a whole."""

    def refused(data, *given):
        assert isinstance(data, pd.DataFrame), "rows came into memory"
        return data

    for module in (data_files, users_elsewhere):
        monkeypatch.setattr(module, "needed_frame", refused)


def in_files(frame, folder):
    path = folder / f"{len([*folder.iterdir()])}.parquet"
    frame.to_parquet(path, index=False, row_group_size=150)
    return path


def in_dask(frame, folder):
    return dd.from_pandas(frame, npartitions=3, sort=False)


PLACES = {"files": in_files, "Dask": in_dask}


@pytest.mark.parametrize(
    ("kind", "place", "name"),
    few(
        [  # each two of a kind, a place and a call meet
            (kind, place, name)
            for i, kind in enumerate(("strings", "integers", "categories", "short"))
            for j, place in enumerate(PLACES)
            for name in list(CALLS)[(i + j) % 2 :: 2]
        ],
        [("strings", "files", "health by time"), ("strings", "Dask", "ratio")],
    ),
)
def test_the_table_is_that_of_the_rows(kind, place, name, tmp_path, no_rows):
    users = assigned(kind)
    given = [PLACES[place](one, tmp_path) for one in (with_metrics(kind, users), users)]
    read = [pd.read_parquet(one) if place == "files" else one.compute() for one in given]
    assert_same(CALLS[name](*given), CALLS[name](*read))


@pytest.mark.long
@pytest.mark.parametrize("name", ["health", "health by time"])
def test_tables_may_lie_in_different_places(name, tmp_path):
    users = assigned()
    metrics = with_metrics("integers", users)
    expected = CALLS[name](metrics, users)
    for there in (in_files, in_dask):
        assert_same(CALLS[name](there(metrics, tmp_path), users), expected)
        assert_same(CALLS[name](metrics, there(users, tmp_path)), expected)
    assert_same(CALLS[name](in_files(metrics, tmp_path), in_dask(users, tmp_path)), expected)


def test_clusters_come_into_memory(tmp_path):
    """A bucket cannot have all rows of its users and all of its clusters."""
    users = assigned().assign(house=lambda one: one["day"] % 2)
    found = rd.experiments.find_srm(in_files(users, tmp_path), "day", cluster="house")
    assert_same(found, rd.experiments.find_srm(users, "day", cluster="house"))


@pytest.mark.parametrize("words", few(REFUSED, 2))
def test_errors_have_the_words_of_memory(words, tmp_path):
    for there in (in_files, in_dask):
        with pytest.raises(rd.RecdfError, match=words):
            REFUSED[words](there(assigned(), tmp_path))


def test_the_first_object_may_be_null():
    users = assigned().astype({"country": object})
    users.loc[0, "country"] = None
    with dask.config.set({"dataframe.convert-string": False}):
        found = rd.experiments.find_srm(in_dask(users, None), "country")
    assert_same(found, rd.experiments.find_srm(users, "country"))


def test_no_rows_are_an_error():
    with pytest.raises(rd.DataError, match="assignment has no rows"):
        rd.experiments.find_srm(in_dask(assigned().iloc[:0], None), "day")


def test_a_path_without_files_is_refused_as_by_comparisons(tmp_path):
    path = tmp_path / "none.parquet"
    for call in (
        lambda: rd.experiments.find_srm(path, "segment"),
        lambda: rd.experiments.experiment_health(path, path),
        lambda: rd.compare_variants(path, "revenue", control="A"),
    ):
        with pytest.raises(rd.DataError, match="is no file, folder or glob that matches any"):
            call()


@pytest.mark.few(2)
@pytest.mark.parametrize("how", ["file", "stream", "polars", "dask"])
def test_large_integers_beside_a_null_are_told_apart(tmp_path, how):
    """Not all writers of files note a dtype of pandas, which has floats for such columns."""
    users = assigned().drop_duplicates("user_id")
    users["shop"] = (users["day"] + 2**60).astype("Int64").mask(users["day"] == 1)
    table = pa.Table.from_pandas(users, preserve_index=False).replace_schema_metadata()
    pq.write_table(table, tmp_path / "users.parquet")
    given = {
        "file": lambda: tmp_path / "users.parquet",
        "stream": lambda: table,
        "polars": lambda: pytest.importorskip("polars").from_arrow(table),
        "dask": lambda: dd.from_pandas(users.astype({"shop": object}), npartitions=2),
    }[how]()
    found, expected = (rd.experiments.find_srm(one, "shop") for one in (given, users))
    assert sorted(found["level"]) == ["(null)", *(str(2**60 + day) for day in (2, 3, 4))]
    pd.testing.assert_frame_equal(found, expected)

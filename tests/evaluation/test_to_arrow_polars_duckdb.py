"""A result as tables of Arrow, polars and DuckDB: the values, the dtypes and the spec."""

import datetime as dt
import json
import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import recdf as rd

TRUE = pd.DataFrame({"user_id": [1, 1, 2, 3], "item_id": list("abca")})
PRED = pd.DataFrame(
    {
        "user_id": [1, 1, 2],
        "item_id": list("axc"),
        "score": [3.0, 2.0, 1.0],
        "model": ["m", "m", "n"],
    }
)


def result():
    return rd.evaluate(TRUE, PRED, "recall@2", by="model")


@pytest.mark.parametrize("which", ["per_user", "summary"])
def test_the_tables_are_those_of_pandas(which):
    found = result()
    frame = getattr(found, which)
    pd.testing.assert_frame_equal(found.to_arrow(which).to_pandas(), frame)
    assert json.loads(found.to_arrow(which).schema.metadata[b"recdf"]) == found.spec
    polars = found.to_polars(which)
    assert isinstance(polars, pl.DataFrame)
    pd.testing.assert_frame_equal(polars.to_pandas(), frame, check_dtype=False)
    assert found.to_arrow().equals(found.to_arrow("per_user"))


KEYS = {
    "integers": [1, 2, 3],
    "strings": ["u", "v", "w"],
    "dates": [dt.date(2026, 11, day) for day in (1, 2, 3)],
    "times": pd.to_datetime(["2026-11-01", "2026-11-02", "2026-11-03"], utc=True),
    "categories": pd.Categorical(["u", "v", "w"], ["w", "v", "u"], ordered=True),
    "Int64": pd.array([1, 2, 3], "Int64"),
    "Arrow strings": pd.array(["u", "v", "w"], pd.ArrowDtype(pa.large_string())),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KEYS)
def test_dtypes_survive(kind):
    true = pd.DataFrame({"user_id": KEYS[kind], "item_id": list("abc")})
    found = rd.evaluate(true, true, "mrr@1")
    pd.testing.assert_frame_equal(found.to_arrow().to_pandas(), found.per_user)
    assert found.to_polars()["mrr@1"].to_list() == [1.0, 1.0, 1.0]
    with duckdb.connect() as database:
        assert found.to_duckdb("found", database).project('"mrr@1"').fetchall() == [(1.0,)] * 3


@pytest.mark.long
def test_tables_of_duckdb():
    found = result()
    with duckdb.connect() as database:
        rows = found.to_duckdb("nightly", database).df()
        assert list(rows) == list(found.per_user)
        np.testing.assert_array_equal(rows["recall@2"], found.per_user["recall@2"])
        summary = database.sql("select * from nightly_summary").df()
        np.testing.assert_allclose(summary["value"], found.summary["value"])
        comments = database.sql(
            "select table_name, comment from duckdb_tables() order by all"
        ).fetchall()
        assert [json.loads(comment) for _, comment in comments] == [found.spec] * 2
        with pytest.raises(duckdb.CatalogException, match=r"nightly.*already exists"):
            found.to_duckdb("nightly", database)
        found.to_duckdb("nightly", database, overwrite=True)
        database.sql("create schema lab")
        assert len(found.to_duckdb("lab.nightly", database).df()) == len(found.per_user)
        assert database.sql("select count(*) from lab.nightly_summary").fetchall() == [
            (len(found.summary),)
        ]


def test_both_tables_of_duckdb_or_none():
    with duckdb.connect() as database:
        database.sql("create table twice_summary as select 1 as a")
        with pytest.raises(duckdb.CatalogException, match="twice_summary"):
            result().to_duckdb("twice", database)
        assert [name for (name,) in database.sql("show tables").fetchall()] == ["twice_summary"]


def test_they_go_back_into_recdf():
    variant = pd.DataFrame({"user_id": [1, 2, 3], "variant": ["A", "B", "B"]})
    found = rd.evaluate(TRUE, PRED, "recall@2").join_experiment(variant, missing="zero")
    expected = rd.compare_variants(found, "recall@2", control="A")
    for frame in (
        pl.from_pandas(found),
        pl.from_pandas(found).lazy(),
        duckdb.from_arrow(pa.Table.from_pandas(found)),
    ):
        pd.testing.assert_frame_equal(rd.compare_variants(frame, "recall@2", control="A"), expected)


def test_stored_results_too(tmp_path):
    TRUE.to_parquet(tmp_path / "true.parquet")
    PRED.to_parquet(tmp_path / "pred.parquet")
    stored = rd.evaluate_parquet(
        tmp_path / "true.parquet", tmp_path / "pred.parquet", "mrr@1", out=tmp_path / "out"
    )
    assert stored.to_polars().height == len(stored.per_user)


def test_what_is_wrong_is_said(monkeypatch):
    with pytest.raises(rd.OptionError, match="which='spec'; valid are 'per_user' and 'summary'"):
        result().to_polars("spec")
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(rd.MissingExtraError, match=r"to_polars needs polars.*pip install polars"):
        result().to_polars()
    with pytest.raises(rd.MissingExtraError, match="to_duckdb needs duckdb"):
        result().to_duckdb("a")

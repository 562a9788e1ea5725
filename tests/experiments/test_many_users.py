"""Users in any order give the same table to the last bit, and files that of the columns that are
needed."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from quick import few

import recdf as rd
from recdf import DataError
from recdf.inputs.data_files import needed_frame

METRICS = {
    name: name for name in ["level", "spend", "bought", "count", "heavy", "tight", "same"]
} | {
    "ctr": ("clicks", "views"),
    "per_view": ("level", "views"),
}


def users(seed, n=6000, variants=("A", "B", "C")):
    rng = np.random.default_rng(seed)
    views = rng.poisson(5, n)
    data = pd.DataFrame({"user_id": rng.permutation(n), "variant": rng.choice(variants, n)})
    data["level"], data["spend"] = rng.normal(3, 1, n), rng.exponential(1, n)
    data["bought"], data["count"] = (rng.random(n) < 0.1).astype(int), rng.poisson(3, n)
    data["heavy"], data["tight"], data["same"] = (
        rng.lognormal(0, 2, n),
        rng.normal(1e6, 1e-3, n),
        1.0,
    )
    data["views"], data["clicks"] = views, rng.binomial(views, 0.2)
    data["before"] = data["level"] + rng.normal(size=n)
    data["gaps"] = data["level"].where(rng.random(n) < 0.9)
    return data


def assert_same(found, expected, rtol=1e-11):
    pd.testing.assert_frame_equal(found, expected, rtol=rtol, atol=1e-15)


@pytest.mark.few(1)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("variants", [("A", "B"), ("A", "B", "C")])
def test_rows_in_any_order_give_the_same_numbers(known, variants):
    data = users(1, variants=variants)
    data = data if known else data.drop(columns="user_id")
    given = {"control": "A", "covariates": {"level": "before", "spend": "before"}}
    first = rd.compare_variants(data, METRICS, **given)
    again = rd.compare_variants(data.sample(frac=1, random_state=1), METRICS, **given)
    pd.testing.assert_frame_equal(first, again, check_exact=True)


@pytest.fixture
def stored(tmp_path):
    data = users(2).assign(
        day=pd.Timestamp("2026-11-02"), text="2026-11-03", unused=[object.__name__] * 6000
    )
    data["variant"] = data["variant"].where(data["variant"] != "C", "A")
    path = tmp_path / "users.parquet"
    data.to_parquet(path, index=False, row_group_size=1000)
    return data, path


SOURCES = {
    "path": lambda path: path,
    "text": str,
    "glob": lambda path: str(path.parent / "*.parquet"),
    "dataset": pyarrow.dataset.dataset,
    "reader": lambda path: pyarrow.dataset.dataset(path).scanner(batch_size=700).to_reader(),
    "table": pyarrow.parquet.read_table,
}


@pytest.mark.long
@pytest.mark.parametrize(
    "source", few([*SOURCES, "polars", "lazy", "duckdb"], ["path", "reader", "duckdb"])
)
def test_files_and_arrow_data_give_the_table_of_the_frame(stored, source):
    data, path = stored
    if source in ("polars", "lazy"):
        polars = pytest.importorskip("polars")
        given = polars.read_parquet(path) if source == "polars" else polars.scan_parquet(path)
    elif source == "duckdb":
        given = pytest.importorskip("duckdb").read_parquet(str(path))
    else:
        given = SOURCES[source](path)
    options = {"control": "A", "covariates": {"level": "before"}, "expected": {"A": 2, "B": 1}}
    assert_same(
        rd.compare_variants(given, METRICS, **options),
        rd.compare_variants(data, METRICS, **options),
        0,
    )


def test_only_needed_columns_are_read(stored, tmp_path):
    _, path = stored
    read = []

    class Watched:
        def __init__(self, table):
            self.table = table

        def __arrow_c_stream__(self, schema=None):
            read.append(self.table.num_columns)
            return self.table.__arrow_c_stream__(schema)

    table = pyarrow.parquet.read_table(path)
    kept = needed_frame(Watched(table), "data", lambda head: ["variant", "level"])
    assert list(kept.columns) == ["variant", "level"]
    assert len(kept) == table.num_rows
    assert read


def test_what_cannot_be_read_is_said(tmp_path, stored):
    with pytest.raises(DataError, match="no file, folder or glob"):
        rd.compare_variants(tmp_path / "absent.parquet", "level", control="A")
    with pytest.raises(rd.ColumnError, match=r"'lever'.*did you mean"):
        rd.compare_variants(stored[1], "lever", control="A")
    with pytest.raises(TypeError, match="expected a DataFrame"):
        rd.compare_variants([1, 2], "level", control="A")
    repeated = pa.concat_tables([pyarrow.parquet.read_table(stored[1])] * 2)
    with pytest.raises(rd.DuplicateError):
        rd.compare_variants(repeated, "level", control="A")


def test_an_empty_stream_is_an_empty_frame(stored):
    empty = pyarrow.parquet.read_table(stored[1]).slice(0, 0)
    with pytest.raises(rd.OptionError, match="control"):
        rd.compare_variants(empty, "level", control="A")


@pytest.mark.few(1)
@pytest.mark.parametrize("names", [["variant", "count", "part"], None])
def test_row_groups_are_read_at_the_same_time_as_one_after_another(tmp_path, names, resized):
    rng = np.random.default_rng(3)
    data = users(3, 5000).assign(
        day=pd.Timestamp("2026-11-02"), small=np.float32(0.1), byte=np.uint8(7), flag=True
    )
    data["late"] = (
        data["count"].astype("Int64").where(data.index < 4000)
    )  # null in the last row groups only
    data["none"] = pd.Series(np.nan, data.index)
    for part, rows in enumerate(np.split(rng.permutation(5000), [2000, 2000, 4900])):
        (tmp_path / f"part={part}").mkdir()
        table = pa.Table.from_pandas(data.iloc[np.sort(rows)], preserve_index=False)
        wide = table.schema.set(1, pa.field("variant", pa.large_string()))
        pyarrow.parquet.write_table(
            table.cast(wide), tmp_path / f"part={part}" / "a.parquet", row_group_size=700
        )

    def read():
        return needed_frame(tmp_path, "data", lambda head: names or list(head.columns))

    expected = read()
    resized(coded_rows=500)
    found = read()
    pd.testing.assert_frame_equal(found, expected)
    assert {"part", "count"} <= set(found.columns)
    given = {"metrics": ["level", "count"], "control": "A", "by": "part"}
    if names is None:
        pd.testing.assert_frame_equal(
            rd.compare_variants(tmp_path, **given), rd.compare_variants(expected, **given)
        )


def test_a_file_without_row_groups_is_an_empty_frame(tmp_path, resized):
    resized(coded_rows=500)
    pyarrow.parquet.ParquetWriter(
        tmp_path / "none.parquet", pa.schema([("variant", pa.string())])
    ).close()
    assert len(needed_frame(tmp_path / "none.parquet", "data", lambda head: ["variant"])) == 0

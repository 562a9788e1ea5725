"""Which files a path names, and the columns in the names of folders: the same for every reader."""

import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import recdf as rd
from recdf.cli import main
from recdf.inputs.data_files import data_files, folder_columns


def write(path, **columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(columns).to_parquet(path, index=False)


def lists(users, items=(1, 2)):
    return {"user_id": np.repeat(users, len(items)), "item_id": np.tile(items, len(users))}


def names(path, below):
    return [os.path.relpath(file, below) for file in data_files(str(path))]


def test_files_of_a_folder(tmp_path):
    for name in (
        "b.parquet",
        "a/x.parquet",
        "_SUCCESS",
        ".b.parquet.crc",
        "_temporary/y.parquet",
        "a/.z/w.parquet",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert names(tmp_path, tmp_path) == ["a/x.parquet", "b.parquet"]
    assert names(tmp_path / "*", tmp_path) == ["a/x.parquet", "b.parquet"]
    assert names(tmp_path / "**", tmp_path) == ["a/x.parquet", "b.parquet"]
    assert names(tmp_path / "_temporary" / "*", tmp_path) == [
        "_temporary/y.parquet"
    ]  # the path names the folder
    assert names(tmp_path / "nothing*", tmp_path) == []


def test_links_are_followed_and_every_file_is_read_once(tmp_path):
    data, other = tmp_path / "data", tmp_path / "other"
    for file in (data / "day=1/a.parquet", other / "deep/b.parquet"):
        file.parent.mkdir(parents=True)
        file.write_bytes(b"")
    (data / "day=2").symlink_to(other)
    (data / "latest").symlink_to(data / "day=1")  # another way to the same file
    (data / "also.parquet").symlink_to(data / "day=1/a.parquet")
    (other / "circle").symlink_to(data)
    (data / "a_circle").symlink_to(data)
    expected = ["day=1/a.parquet", "day=2/deep/b.parquet"]
    assert names(data, data) == expected
    assert names(data / "**", data) == expected


@pytest.fixture
def linked(tmp_path, monkeypatch):
    """`pred/` has one file of its own and a link to a folder with another one."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "true.parquet", **lists([1, 2, 3], [1]))
    write(tmp_path / "pred/own.parquet", **lists([1]))
    write(tmp_path / "elsewhere/further.parquet", **lists([2, 3]))
    (tmp_path / "pred/link").symlink_to(tmp_path / "elsewhere")
    return tmp_path


@pytest.mark.long
def test_a_linked_folder_counts_for_every_reader(linked, capsys):
    assert rd.evaluate_parquet("true.parquet", "pred", "recall@2").summary["value"][0] == 1.0
    assert (
        rd.evaluate_parquet("true.parquet", "pred", "recall@2", buckets=2).summary["value"][0]
        == 1.0
    )
    call = [
        "evaluate",
        "--true",
        "true.parquet",
        "-m",
        "recall@2",
        "--format",
        "json",
        "-v",
        "--pred",
    ]
    for pred in ("pred", "pred/*", "pred/**/*.parquet"):
        for stream in ([], ["--stream"]):
            assert main([*call, pred, *stream]) == 0
            out, err = capsys.readouterr()
            assert '"value": 1.0' in out
            assert "read --true true.parquet: 1 file, 3 rows" in err
            assert f"read --pred {pred}: 2 files, 6 rows" in err


def test_a_linked_folder_of_text_files(linked, capsys):
    for file in (linked / "pred/own.parquet", linked / "elsewhere/further.parquet"):
        pd.read_parquet(file).to_csv(file.with_suffix(".csv"), index=False)
        file.unlink()
    call = [
        "evaluate",
        "--true",
        "true.parquet",
        "--pred",
        "pred",
        "-m",
        "recall@2",
        "--format",
        "json",
        "-v",
    ]
    assert main(call) == 0
    out, err = capsys.readouterr()
    assert '"value": 1.0' in out
    assert "read --pred pred: 2 files, 6 rows" in err


def test_a_link_that_leads_nowhere_is_an_error(linked, capsys):
    (linked / "pred/gone.parquet").symlink_to(linked / "nothing.parquet")
    with pytest.raises(rd.DataError, match="gone"):
        rd.evaluate_parquet("true.parquet", "pred", "recall@2")
    assert main(["evaluate", "--true", "true.parquet", "--pred", "pred", "-m", "recall@2"]) == 2
    assert "gone.parquet" in capsys.readouterr().err


# -- columns of folders


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["1", "12"], pa.int32(), [1, 12]),
        (["1", "a"], pa.string(), ["1", "a"]),
        (["1", ""], pa.int32(), [1, None]),
        (["", ""], pa.string(), [None, None]),
        (["1", "__HIVE_DEFAULT_PARTITION__"], pa.int32(), [1, None]),
        (["1", "3000000000"], pa.int64(), [1, 3_000_000_000]),
        (["1", "99999999999999999999"], pa.string(), ["1", "99999999999999999999"]),
        (["a%20b", "c"], pa.string(), ["a b", "c"]),
    ],
)
def test_values_of_folders(values, kind, expected):
    found = folder_columns([f"data/m={value}/part.parquet" for value in values])["m"]
    assert found.type == kind
    assert found.to_pylist() == expected


def test_names_of_folders():
    found = folder_columns(["a/day=2026-01-01/x%20y=1/p.parquet"])
    assert {name: values.to_pylist() for name, values in found.items()} == {
        "day": ["2026-01-01"],
        "x%20y": [1],
    }
    assert folder_columns(["a/=1/b=/p.parquet", "a/c/p.parquet"])["b"].to_pylist() == [None, None]


def per_user(capsys, *flags):
    call = [
        "evaluate",
        "--true",
        "true.parquet",
        "--pred",
        "pred",
        "-m",
        "recall@2",
        "--out",
        "out",
        "--overwrite",
    ]
    code = main([*call, "-q", *flags])
    return code, (rd.read_parquet("out").per_user if code == 0 else capsys.readouterr().err)


VALUES = st.sampled_from(
    ["1", "2", "a", "", "3000000000", "__HIVE_DEFAULT_PARTITION__", "007", "a%2Fb"]
)


@pytest.mark.long
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    folders=st.lists(VALUES, min_size=1, max_size=3, unique=True),
    stored=st.sampled_from(["none", "all", "first"]),
    odd=st.booleans(),
)
def test_both_readers_see_the_same_rows_and_columns(
    folders, stored, odd, tmp_path_factory, monkeypatch, capsys
):
    """Partitions of any values, a key that is a column too, and a column of other kinds that nobody
    needs."""
    where = tmp_path_factory.mktemp("folders")
    monkeypatch.chdir(where)
    write(where / "true.parquet", **lists([1, 2], [1]))
    for i, value in enumerate(folders):
        rows = lists([1, 2], [1, 3 + i])
        if stored == "all" or (stored == "first" and i == 0):
            rows["m"] = ["x"] * 4
        if odd:
            rows["unneeded"] = ["text"] * 4 if i else [1.5] * 4
        write(where / f"pred/m={value}/part.parquet", **rows)
    one, two = (per_user(capsys, "--by", "m", *flags) for flags in ([], ["--stream"]))
    assert one[0] == two[0]
    if one[0] == 0:
        assert one[1]["m"].astype(object).tolist() == two[1]["m"].astype(object).tolist()
        pd.testing.assert_frame_equal(one[1].drop(columns="m"), two[1].drop(columns="m"))


def test_columns_that_nobody_needs_may_differ(tmp_path):
    write(tmp_path / "true.parquet", **lists([1, 2], [1]))
    write(tmp_path / "pred/a.parquet", **lists([1]), other=["text"] * 2)
    write(tmp_path / "pred/b.parquet", **lists([2]), other=[1.5] * 2)
    assert (
        rd.evaluate_parquet(tmp_path / "true.parquet", tmp_path / "pred", "recall@2").summary[
            "value"
        ][0]
        == 1.0
    )
    with pytest.raises(rd.DataError, match="columns of different kinds: 'other'"):
        rd.evaluate_parquet(tmp_path / "true.parquet", tmp_path / "pred", "recall@2", by="other")


# -- odd types and widths


@pytest.mark.few(2)
@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("kind", ["string_view", "binary_view", "json_"])
def test_ids_of_odd_types(kind, buckets, tmp_path):
    if not hasattr(pa, kind):
        pytest.skip(f"this pyarrow has no {kind}")
    of_type = getattr(pa, kind)()

    def column(texts):
        if kind == "json_":
            return pa.ExtensionArray.from_storage(of_type, pa.array(texts))
        return pa.array(
            [text.encode() for text in texts] if kind == "binary_view" else texts, of_type
        )

    try:
        pq.write_table(
            pa.table({"user_id": column(["a", "b"]), "item_id": column(["x", "x"])}),
            tmp_path / "true.parquet",
        )
    except pa.ArrowNotImplementedError:
        pytest.skip(f"this pyarrow writes no {kind}")
    rows = {
        "user_id": column(["a", "a", "b"]),
        "item_id": column(["y", "x", "y"]),
        "score": [0.9, 0.8, 0.7],
    }
    pq.write_table(pa.table(rows), tmp_path / "pred.parquet")
    found = rd.evaluate_parquet(
        tmp_path / "true.parquet", tmp_path / "pred.parquet", "mrr@2", buckets=buckets
    )
    assert found.per_user["mrr@2"].tolist() == [0.5, 0.0]


@pytest.mark.long
def test_columns_that_are_not_needed_cost_little(tmp_path):
    """With a step for each pair of columns this file would take minutes, and the whole suite with
    it."""
    wide = {f"c{i}": pa.array([0.0]) for i in range(4000)}
    pq.write_table(pa.table({"user_id": [1], "item_id": [1], **wide}), tmp_path / "true.parquet")
    found = rd.evaluate_parquet(tmp_path / "true.parquet", tmp_path / "true.parquet", "recall@1")
    assert found.summary["value"][0] == 1.0


def variants(n, first=0, **columns):
    users = np.arange(n) + first
    return {"user_id": users, "variant": np.where(users % 2, "A", "B"), "m": users % 7, **columns}


def effect(users, **given):
    return rd.compare_variants(users, "m", control="A", expected={"A": 1, "B": 1}, **given)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "columns",
    [
        {"m": np.arange(100) % 7 + 0.5},
        {"m": np.arange(100) + 2**40},
        {"user_id": np.arange(100) + 2**40},
        {"variant": pd.Categorical(["A", "B"] * 50)},
        {"z": 1},
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_users_of_files_have_one_type_over_all_files(columns, turned, tmp_path):
    small = variants(100, m=(np.arange(100) % 7).astype("int8"))
    parts = [small, variants(100, 100, **columns)][:: -1 if turned else 1]
    for i, part in enumerate(parts):
        write(tmp_path / f"{i}.parquet", **part)
    expected = effect(pd.concat(map(pd.DataFrame, parts)))
    pd.testing.assert_frame_equal(effect(tmp_path), expected, rtol=1e-12)


def test_a_column_of_nulls_is_no_type(tmp_path):
    write(tmp_path / "0.parquet", **variants(100, m=[None] * 100))
    write(tmp_path / "1.parquet", **variants(100, 100))
    expected = effect(pd.DataFrame(variants(100, 100)))
    assert effect(tmp_path, nan="drop")["diff"][0] == pytest.approx(expected["diff"][0])


@pytest.mark.parametrize("columns", [{"m": [True, False] * 50}, {"user_id": list("ab") * 50}])
def test_types_that_do_not_go_together_are_refused(columns, tmp_path):
    write(tmp_path / "0.parquet", **variants(100, **columns))
    write(tmp_path / "1.parquet", **variants(100, 100))
    with pytest.raises(rd.DataError, match="data: the files have columns of different kinds: "):
        effect(tmp_path)


def test_values_that_one_type_does_not_hold_are_refused(tmp_path):
    write(tmp_path / "0.parquet", **variants(100, m=np.arange(100) + 2**60))
    write(tmp_path / "1.parquet", **variants(100, 100, m=np.arange(100) / 2))
    with pytest.raises(rd.DataError, match="data: the files cannot be read as one table: "):
        effect(tmp_path)


@pytest.mark.parametrize(
    ("days", "kind"), [((1, 2), "int32"), ((1, 2**40), "int64"), (("1", "x"), "str")]
)
def test_folders_of_users_are_columns(days, kind, tmp_path):
    for i, day in enumerate(days):
        write(tmp_path / f"day={day}/0.parquet", **variants(100, 100 * i))
    found = effect(tmp_path, by="day")["day"]
    assert found.tolist() == list(days)
    assert found.dtype == kind or kind == "str"


def test_a_folder_without_a_value_is_null(tmp_path):
    for i, day in enumerate(["1", ""]):
        write(tmp_path / f"day={day}/0.parquet", **variants(100, 100 * i))
    with pytest.raises(rd.NullKeyError, match=r"data\['day'\] is null in 100 of 200 rows"):
        effect(tmp_path, by="day")


def test_a_file_of_users_that_is_not_parquet_is_named(tmp_path):
    (tmp_path / "users.csv").write_text("user_id,variant,m\n1,A,2\n")
    with pytest.raises(rd.DataError, match=r"rows: .* cannot be read as parquet: .*users.csv"):
        rd.experiments.effect_over_time(
            tmp_path, "m", control="A", time_col="day", exposure_col=None
        )

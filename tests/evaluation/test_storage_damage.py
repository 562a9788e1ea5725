"""A damaged file of a result is found."""

import errno

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import case
from evaluation.stored import FILES, OLD, TRUE, equal, fail_at, names
from quick import few

import recdf as rd
from recdf.evaluation import storage

# -- damaged files


@pytest.mark.parametrize("name", few(sorted(FILES), ["per_user.parquet"]))
def test_a_file_cut_at_any_place_is_refused(name, tmp_path):
    OLD.to_parquet(tmp_path)
    whole = (tmp_path / name).read_bytes()
    for n in [0, 1, 4, 7, 8, 11, 12, 13, *np.linspace(14, len(whole) - 1, 30).astype(int)]:
        (tmp_path / name).write_bytes(whole[:n])
        with case(f"cut to {n} of {len(whole)} bytes"), pytest.raises(rd.DataError, match=name):
            rd.read_parquet(tmp_path)


@pytest.mark.parametrize("name", few(sorted(FILES), ["per_user.parquet"]))
def test_a_flipped_bit_is_found_wherever_it_is(name, tmp_path):
    OLD.to_parquet(tmp_path)
    whole = (tmp_path / name).read_bytes()
    inside = np.linspace(0, len(whole) - 1, 60).astype(int)
    for at in [*range(0, 40, 4), *inside, *range(len(whole) - 60, len(whole), 3)]:
        flipped = bytearray(whole)
        flipped[at] ^= 1 << (at % 8)
        (tmp_path / name).write_bytes(flipped)
        with (
            case(f"bit {at % 8} of byte {at} of {len(whole)}"),
            pytest.raises(rd.DataError, match=name),
        ):
            rd.read_parquet(tmp_path)


@pytest.mark.parametrize(
    "metadata", [{}, {b"recdf": b"{"}, {b"recdf": b"{}", b"recdf_dtypes": b'{"no": {}}'}]
)
def test_metadata_that_are_not_of_recdf_are_refused(metadata, tmp_path):
    """A file that is whole, and sealed, but says something else."""
    OLD.to_parquet(tmp_path)
    summary = (tmp_path / "summary.parquet").read_bytes()
    pq.write_table(
        pa.table({"a": [1]}).replace_schema_metadata(metadata), tmp_path / "per_user.parquet"
    )
    storage.seal(tmp_path / "per_user.parquet", b"", summary)
    with pytest.raises(rd.DataError, match=r"per_user\.parquet holds no result"):
        rd.read_parquet(tmp_path)


def test_a_result_that_another_program_wrote_anew_is_refused(tmp_path):
    OLD.to_parquet(tmp_path)
    pq.write_table(pq.read_table(tmp_path / "per_user.parquet"), tmp_path / "per_user.parquet")
    with pytest.raises(rd.DataError, match="another program"):
        rd.read_parquet(tmp_path)


def test_equal_results_have_equal_bytes(tmp_path):
    for folder in ("one", "two"):
        rd.evaluate(TRUE, {"u": ["a"], "v": ["c"]}, "mrr@1").to_parquet(tmp_path / folder)
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_an_address_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rd.OptionError, match="s3://bucket/result is an address"):
        OLD.to_parquet("s3://bucket/result")
    with pytest.raises(rd.OptionError, match=r"s3://bucket/report\.html is an address"):
        rd.report(OLD, "s3://bucket/report.html")
    with pytest.raises(rd.OptionError, match=r"s3://bucket/true\.parquet is an address"):
        rd.evaluate_parquet("s3://bucket/true.parquet", "s3://bucket/pred.parquet", "mrr@1")
    for address, path in (
        ("dbfs:/Volumes/a/b", "/Volumes/a/b"),
        ("dbfs:/a b", "/dbfs/a b"),
        ("dbfs:///a", "/dbfs/a"),
    ):
        with pytest.raises(
            rd.OptionError,
            match=f"{address} is an address; expected a path of this .*: pass {path}$",
        ):
            OLD.to_parquet(address)
    with pytest.raises(rd.OptionError, match="file://host/x is an address"):
        OLD.to_parquet("file://host/x")
    assert names(tmp_path) == set()


@pytest.mark.few(1)
@pytest.mark.parametrize("scheme", ["file://", "file:", "file://localhost"])
def test_a_file_address_is_a_path_of_this_machine(tmp_path, monkeypatch, scheme):
    monkeypatch.chdir(tmp_path)
    folder = scheme + (tmp_path / "a b").as_uri().removeprefix(
        "file://"
    )  # with a space, which an address encodes
    OLD.to_parquet(folder)
    assert names(tmp_path) == {"a b"}
    assert rd.read_parquet(folder) == rd.read_parquet("a b") == OLD
    pd.DataFrame({"user_id": [1], "item_id": [2], "score": [1.0]}).to_parquet("rows.parquet")
    rows = scheme + (tmp_path / "rows.parquet").as_uri().removeprefix("file://")
    assert rd.evaluate_parquet(rows, rows, "mrr@1").summary["value"].tolist() == [1.0]


@pytest.mark.parametrize("error", [1e-13, 1e-9])
def test_equality_has_the_documented_tolerance(error):
    value = OLD.per_user.assign(**{"mrr@1": OLD.per_user["mrr@1"] + error})
    assert (rd.Evaluation(value, OLD.summary, OLD.spec) == OLD) is (error < 1e-12)


def test_a_file_that_a_network_drive_lost_is_opened_again(tmp_path, monkeypatch):
    OLD.to_parquet(tmp_path)
    fail_at(1, monkeypatch, (storage, "open_sealed"), OSError(errno.ESTALE, "Stale file handle"))
    equal(rd.read_parquet(tmp_path), OLD)

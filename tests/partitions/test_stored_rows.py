"""A result of `evaluate_parquet` whose rows stay in their file: models are compared in buckets, as
the same rows in memory are."""

import pandas as pd
import pytest
from partitions.pair_cases import OF_USERS, with_columns

import recdf as rd
from recdf.partitions import evaluate_parquet as in_files


@pytest.fixture
def stored(tmp_path):
    files = []
    for name, frame in zip(("true", "pred"), with_columns(), strict=True):
        files.append(tmp_path / f"{name}.parquet")
        frame.to_parquet(files[-1])
    # Less memory than the rows take.
    return lambda memory_limit=12_000, out="out", **options: rd.evaluate_parquet(
        *files,
        ["ndcg", "mrr@1"],
        5,
        by="model",
        out=tmp_path / out,
        overwrite=True,
        memory_limit=memory_limit,
        **options,
    )


def never(*given):
    raise AssertionError("all rows were read")


@pytest.mark.long
def test_rows_stay_in_their_file(stored, monkeypatch):
    result, in_memory = stored(), stored("1GB", "whole")
    assert result.rows_stay
    assert not in_memory.rows_stay
    in_memory = rd.Evaluation(in_memory.per_user, in_memory.summary, in_memory.spec)
    monkeypatch.setattr(in_files, "read_tables", never)
    result._per_user = never
    asked = {"segments": OF_USERS, "baseline": "svd"}
    with pytest.warns(rd.UnknownWarning, match="have no country"):
        found, expected = (rd.leaderboard(one, **asked) for one in (result, in_memory))
    pd.testing.assert_frame_equal(found.frame, expected.frame, rtol=1e-9, atol=1e-12)
    pd.testing.assert_frame_equal(found.comparisons, expected.comparisons, rtol=1e-9, atol=1e-12)
    assert found.notes == expected.notes
    found, expected = (one.compare_models("mrr@1", details=True) for one in (result, in_memory))
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.long
def test_rows_that_another_result_replaced_are_not_read(stored):
    result = stored()
    stored(users="pred")
    with pytest.raises(rd.DataError, match="was overwritten since"):
        rd.leaderboard(result)


def test_what_needs_all_rows_reads_them(stored):
    result = stored()
    assert rd.summarize(result, stat="median")["value"].notna().all()
    assert not result.rows_stay  # they are in memory now

"""`memory_limit=` and `buckets=` of evaluate_parquet: how many buckets are made, and what is
refused."""

import pandas as pd
import pytest
from partitions.parquet_files import METRICS, USUAL, assert_equal, data, write
from registry.seeded import ITEMS

import recdf as rd
from recdf.partitions import files_run

pytestmark = [
    pytest.mark.usefixtures("small_pieces", "nothing_left_behind"),
    pytest.mark.filterwarnings("ignore::recdf.RecdfWarning"),
]


@pytest.mark.long
def test_a_small_memory_limit_makes_many_buckets(tmp_path, monkeypatch):
    made = []
    cells = files_run.BucketCells

    def counted(folder, n_buckets, schema, memory):
        if files_run.PLACE not in schema.names:  # rows, not lists of the result
            made.append(n_buckets)
        return cells(folder, n_buckets, schema, memory)

    monkeypatch.setattr(files_run, "BucketCells", counted)
    paths = write(tmp_path, *data())
    expected = rd.evaluate(*map(pd.read_parquet, paths), METRICS, items=ITEMS, by="model", **USUAL)
    for limit in (60_000, "60KB", "60 kib", 10**9):
        found = rd.evaluate_parquet(
            *paths, METRICS, items=ITEMS, by="model", memory_limit=limit, **USUAL
        )
        assert_equal(found, expected)
    assert len(made) == 6  # three calls; in the last one all fits, and nothing is dealt
    assert min(made) > 5


def test_a_list_beyond_the_limit_is_an_error(tmp_path):
    true, pred = data()
    pred["user_id"] = 7
    with pytest.raises(
        rd.OptionError, match=r"memory_limit=10,000: one of .* buckets of lists has"
    ):
        rd.evaluate_parquet(
            *write(tmp_path, true, pred), "ndcg", memory_limit=10_000, by="model", **USUAL
        )


@pytest.mark.parametrize(
    "limit", [0, 0.5, -1, "1XB", "big", True, "1.2.3GB", "", "9" * 400, f"{10**300}TB"]
)
def test_a_memory_limit_that_is_none(tmp_path, limit):
    with pytest.raises(rd.OptionError, match="memory_limit="):
        rd.evaluate_parquet("t", "p", "ndcg", memory_limit=limit)


@pytest.mark.parametrize("buckets", [0, True, 2.0])
def test_a_number_of_buckets_that_is_none(buckets):
    with pytest.raises(rd.OptionError, match="buckets="):
        rd.evaluate_parquet("t", "p", "ndcg", buckets=buckets)

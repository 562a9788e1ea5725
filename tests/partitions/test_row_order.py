"""Files and Dask: the same rows in another order have the same bytes, with one bucket and with
several."""

import numpy as np
import pandas as pd
import pytest
from quick import few

import recdf as rd

METRICS = ["ndcg@7", "recall@7", "mrr@7", "rbp@7", "unseen@7"]
OPTIONS = {"by": "model", "weight_col": "w"}


def frames(seed=None):
    rng = np.random.default_rng(4)
    names = np.array([f"u{i}" for i in range(120)])
    true = pd.DataFrame(
        {"user_id": np.repeat(names, 6), "item_id": rng.integers(0, 10**9, 720) % 40}
    )
    true = true.drop_duplicates().assign(
        w=lambda rows: rng.random(120)[rows["user_id"].str[1:].astype(int)]
    )
    pred = pd.DataFrame(
        {"model": np.repeat(["a", "b"], 2400), "user_id": np.tile(np.repeat(names, 20), 2)}
    )
    pred["item_id"] = np.concatenate([rng.permutation(40)[:20] for _ in range(240)])
    pred["score"] = rng.permutation(len(pred)) / 7
    log = pd.DataFrame({"user_id": rng.choice(names, 900), "item_id": rng.integers(0, 40, 900)})
    tables = [true, pred, log]
    return tables if seed is None else [table.sample(frac=1, random_state=seed) for table in tables]


def rows_of(result):
    tables = (result.per_user, ["model", "user_id"]), (result.summary, ["model", "metric"])
    return [table.sort_values(labels).reset_index(drop=True) for table, labels in tables]


def assert_same_bytes(one, two):
    for expected, found in zip(rows_of(one), rows_of(two), strict=True):
        assert [name for name in expected if not expected[name].equals(found[name])] == []


@pytest.mark.long
@pytest.mark.parametrize("buckets", few([1, 4], 1))
def test_files(tmp_path, buckets):
    found = []
    for seed in (None, 1, 2):
        true, pred, log = frames(seed)
        (folder := tmp_path / str(seed)).mkdir()
        true.to_parquet(folder / "true.parquet")
        for i in range(3):
            pred.iloc[i::3].to_parquet(folder / f"pred-{i}.parquet", row_group_size=500)
        paths = folder / "true.parquet", folder / "pred-*.parquet"
        found.append(rd.evaluate_parquet(*paths, METRICS, buckets=buckets, log=log, **OPTIONS))
    for other in found[1:]:
        assert_same_bytes(found[0], other)
    in_memory = rd.evaluate(*frames()[:2], METRICS, log=frames()[2], **OPTIONS)
    assert found[0] == in_memory
    if buckets == 1:
        assert_same_bytes(found[0], in_memory)


@pytest.mark.long
def test_dask():
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    found = []
    for seed in (None, 1):
        true, pred, log = frames(seed)
        given = (
            dd.from_pandas(true.reset_index(drop=True), 2),
            dd.from_pandas(pred.reset_index(drop=True), 3),
        )
        with dask.config.set(scheduler="synchronous"):
            found.append(
                rd.dask.evaluate(*given, METRICS, log=log, partitions=4, **OPTIONS).to_pandas()
            )
    assert_same_bytes(*found)

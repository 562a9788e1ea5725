"""Ids of 64 bits without a sign beside those with one: exact in every result, or an error that names the column."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

B = 2**60


def frames(signed="int64", unsigned="uint64", last=B + 5):
    true = pd.DataFrame({"user_id": pd.Series([B + 1, B + 3], dtype="int64").astype(signed), "item_id": [1, 1]})
    ids = pd.Series(np.array([B + 3, last], dtype="uint64")).astype(unsigned)
    return true, pd.DataFrame({"user_id": ids, "item_id": [1, 1]})


@pytest.mark.parametrize("last", [B + 5, 2**63 + 7])
@pytest.mark.parametrize("unsigned", ["uint64", "UInt64", "uint64[pyarrow]"])
@pytest.mark.parametrize("signed", ["int64", "Int64", "int64[pyarrow]"])
def test_users_of_both_frames_are_exact(signed, unsigned, last):
    found = rd.evaluate(*frames(signed, unsigned, last), "recall@1", users="all").per_user
    assert found["user_id"].tolist() == [B + 1, B + 3, last]
    assert pd.api.types.is_integer_dtype(found["user_id"].dtype)
    assert found["recall@1"].tolist()[:2] == [0.0, 1.0]


def test_ids_that_no_dtype_holds_are_an_error():
    true, pred = frames(last=2**63 + 7)
    true["user_id"] -= 2**61
    pred.loc[0, "user_id"] = B + 3 - 2**60
    with pytest.raises(rd.IdTypeError, match="'user_id' has ids from -"):
        rd.evaluate(true, pred, "recall@1", users="all", undefined="nan")


@pytest.mark.parametrize("buckets", [1, 3])
def test_files(tmp_path, buckets):
    true, pred = frames()
    true.to_parquet(tmp_path / "true.parquet")
    pred.to_parquet(tmp_path / "pred.parquet")
    call = (tmp_path / "true.parquet", tmp_path / "pred.parquet", "recall@1")
    with pytest.raises(rd.IdTypeError, match="holds uint64 and the other frame signed integers"):
        rd.evaluate_parquet(*call, users="all", buckets=buckets)
    assert rd.evaluate_parquet(*call, buckets=buckets).per_user["user_id"].tolist() == [B + 1, B + 3]

"""What a message shows: whole keys, dates as dates, and named errors for ids that no file can
hold."""

import pandas as pd
import pytest

import recdf as rd

DATES = pd.to_datetime(["2026-01-02", "2026-03-04"])


def write(folder, true, pred):
    for name, frame in (("true", true), ("pred", pred)):
        frame.to_parquet(folder / f"{name}.parquet")
    return folder / "true.parquet", folder / "pred.parquet"


def test_all_columns_of_a_key_are_shown(tmp_path):
    """Users and sessions are both known, yet no session of one user is that of the other frame."""
    true = pd.DataFrame({"user": [1, 2], "session": ["x", "y"], "item_id": ["a", "b"]})
    pred = pd.DataFrame({"user": [1, 2], "session": ["y", "x"], "item_id": ["a", "b"]})
    words = (
        r"true\['user'\], true\['session'\]: \(1, 'x'\), \(2, 'y'\); "
        r"pred\['user'\], pred\['session'\]: \(1, 'y'\)"
    )
    with pytest.warns(rd.NoOverlapWarning, match=words):
        rd.evaluate(true, pred, "mrr@1", user_col=["user", "session"])
    with pytest.warns(rd.NoOverlapWarning, match=words):
        rd.evaluate_parquet(
            *write(tmp_path, true, pred), "mrr@1", user_col=["user", "session"], buckets=2
        )


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "dtype", ["datetime64[ns]", "datetime64[us]", "datetime64[s]", "datetime64[ns, UTC]"]
)
def test_datetime_ids_are_shown_as_dates(dtype, tmp_path):
    dates = pd.Series(DATES).astype("datetime64[ns]")
    dates = dates.dt.tz_localize("UTC") if "UTC" in dtype else dates.astype(dtype)
    true = pd.DataFrame({"user_id": [1], "item_id": dates[:1]})
    pred = pd.DataFrame({"user_id": 1, "item_id": dates[[1, 1]]})
    with pytest.warns(
        rd.NoOverlapWarning, match=r"true\['item_id'\]: '2026-01-02 00:00:00'; pred.*'2026-03-04"
    ):
        rd.evaluate(true, pred[:1], "mrr@1")
    with pytest.warns(
        rd.NoOverlapWarning, match=r"true\['item_id'\]: '2026-01-02 00:00:00'; pred.*'2026-03-04"
    ):
        rd.evaluate_parquet(*write(tmp_path, true, pred[:1]), "mrr@1")
    with pytest.raises(rd.DuplicateError, match=r"\(1, '2026-03-04 00:00:00'\)"):
        rd.evaluate(true, pred, "mrr@1", duplicates="raise")
    assert rd.check(true, pred[:1])["examples"].str.contains("2026-03-04").any()


@pytest.mark.long
def test_users_beyond_64_bits(tmp_path):
    true = pd.DataFrame({"user_id": [1, 2], "item_id": ["a", "b"]})
    pred = pd.DataFrame({"user_id": [1, 2], "item_id": ["a", "x"]})
    users = [1, 2**70]
    assert rd.evaluate(true, pred, "mrr@1", users=users).per_user["mrr@1"].tolist() == [1.0, 0.0]
    with pytest.raises(rd.DataError, match=r"column 'user_id' .* cannot be stored in parquet"):
        rd.evaluate_parquet(*write(tmp_path, true, pred), "mrr@1", users=users, buckets=3)
    large = [2**63 + 1, 2]
    found = rd.evaluate_parquet(*write(tmp_path, true, pred), "mrr@1", users=large, buckets=3)
    assert found.per_user["user_id"].tolist() == large

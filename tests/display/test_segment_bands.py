"""Segments of amounts and dates are cut into bands; names in their thousands are asked about."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

pytestmark = pytest.mark.usefixtures("without_pictures")


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    pred = pd.DataFrame(
        {
            "model": np.repeat(["a", "b"], 400),
            "user_id": [*range(400)] * 2,
            "item_id": rng.integers(0, 2, 800),
        }
    )
    return rd.evaluate({u: [1] for u in range(400)}, pred, "hitrate@1", by="model")


@pytest.mark.long
def test_amounts_and_dates_are_cut_into_four_bands(result, tmp_path):
    rng = np.random.default_rng(1)
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 700, 400), "D")
    segments = pd.DataFrame(
        {"user_id": range(400), "spend": rng.gamma(2, 10, 400), "day": days, "few": [1, 2] * 200}
    )
    frame = rd.leaderboard(result, segments=segments).frame
    for name, bands in (("spend", 4), ("day", 4), ("few", 2)):
        own = frame[(frame["segment"] == name) & (frame["model"] == "a")]
        assert len(own) == bands
        assert own["n"].sum() == 400
        if bands == 4:
            assert own["n"].between(80, 120).all()
    low, high = segments["spend"].quantile([0, 0.25])
    assert f"{low:.4g} to {high:.4g}" in set(frame["group"])
    assert rd.report(result, tmp_path / "r.html", segments=segments).stat().st_size < 300_000


@pytest.mark.few(1)
@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["s", "ns"])
def test_dates_of_any_kind_and_nulls_are_cut(result, zone, unit):
    days = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(400), "D")).dt.as_unit(
        unit
    )
    days = days.dt.tz_localize(zone).where(np.arange(400) != 7)
    segments = pd.DataFrame({"user_id": range(400), "day": days})
    with pytest.warns(rd.UnknownWarning, match="of 800 rows of per_user have no day"):
        frame = rd.leaderboard(result, segments=segments).frame
    own = frame[(frame["segment"] == "day") & (frame["model"] == "a")]
    assert sorted(own["n"]) == [99, 100, 100, 100]  # the list without a date is in none


@pytest.mark.long
def test_thousands_of_names_are_asked_about(result, tmp_path):
    names = pd.DataFrame({"user_id": range(400), "town": [f"t{i}" for i in range(400)]})
    for call in (
        lambda: rd.leaderboard(result, segments=names),
        lambda: rd.report(result, tmp_path / "r.html", segments=names),
    ):
        with pytest.raises(rd.OptionError, match="has 400 different values, such as 't0'"):
            call()


def test_users_without_a_segment_are_told(result, tmp_path):
    """Nobody with one is an error; a frame of polars is read as one of pandas is."""
    users = pd.DataFrame({"user_id": range(400), "few": [1, 2] * 200})
    calls = (
        lambda segments: rd.leaderboard(result, segments=segments),
        lambda segments: rd.report(result, tmp_path / "r.html", segments=segments, overwrite=True),
        lambda segments: result.compare_models(segments=segments),
    )
    for call in calls:
        call(pytest.importorskip("polars").from_pandas(users))
        with pytest.warns(rd.UnknownWarning, match="200 of 800 rows of per_user have no few"):
            call(users[:300])
        for none in (users.assign(few=None), users.assign(user_id=users["user_id"] + 900)):
            with pytest.raises(rd.OptionError, match="segments= has few for none of"):
                call(none)


def test_a_carried_column_of_nulls_is_no_segment(tmp_path):
    true = {"u": ["a"], "v": ["b"]}
    pred = pd.DataFrame({"user_id": ["u", "v"], "item_id": ["a", "x"], "few": None})
    result = rd.evaluate(true, pred, "mrr@1", carry="few")
    page = rd.report(result, tmp_path / "r.html").read_text()
    assert "Not looked at: segments of users" in page


def test_ids_of_another_type_say_so(result):
    with pytest.raises(rd.IdTypeError, match="can never match"):
        rd.leaderboard(
            result,
            segments=pd.DataFrame(
                {"user_id": [f"u{i}" for i in range(400)], "s": ["x", "y"] * 200}
            ),
        )

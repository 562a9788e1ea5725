"""Events of files are added up by user and day where they are; the table is that of their rows."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd
from recdf.experiments.compare import user_periods
from recdf.inputs.machine import Sizes, sized

N_USERS, N_ROWS, N_DAYS = 60, 1500, 6


def events(seed, zone=None):
    """Several events of a user on a day, over the hours when clocks change in Berlin."""
    rng = np.random.default_rng(seed)
    user = rng.integers(0, N_USERS, N_ROWS)

    def times(n, days):
        minutes = pd.to_timedelta(rng.integers(0, days * 24 * 60, n), unit="min")
        found = pd.Series(pd.Timestamp("2026-03-27") + minutes)
        return found.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else found

    rows = pd.DataFrame(
        {
            "user_id": user,
            "time": times(N_ROWS, N_DAYS),
            "variant": np.where(user % 2, "A", "B"),
            "exposed": times(N_USERS, 3).iloc[user].reset_index(drop=True),
            "store": user % 7,
            "country": np.where(user % 3, "fi", "no"),
            "item_id": rng.integers(0, 9, N_ROWS),  # differs within a user
            "revenue": rng.normal(3, 1, N_ROWS),
            "ndcg@10": rng.random(N_ROWS),
            "views": rng.integers(0, 5, N_ROWS),
        }
    )
    rows["clicks"] = rng.binomial(rows["views"], 0.3)
    return rows


METRICS = {"revenue": "revenue", "ndcg": "ndcg@10", "ctr": ("clicks", "views")}
OPTIONS = {"control": "A", "time_col": "time", "exposure_col": "exposed", "details": True}


def both(rows, folder, *more, **options):
    """The table of a file in several parts, and that of its rows."""
    path = folder / "events.parquet"
    rows.to_parquet(path, row_group_size=len(rows) // 4)
    with sized(Sizes(summed_rows=len(rows) // 3)):
        found = rd.experiments.effect_over_time(path, METRICS, *more, **(OPTIONS | options))
    memory = pd.read_parquet(path)
    expected = rd.experiments.effect_over_time(memory, METRICS, *more, **(OPTIONS | options))
    return pd.DataFrame(found), pd.DataFrame(expected)


CASES = {
    "plain": ({}, {}),
    "zone": ({"zone": "Europe/Berlin"}, {}),
    "means": ({}, {"how": {"revenue": "mean"}, "missing": "drop"}),
    "strata": ({}, {"strata": "country", "expected": {"A": 0.5, "B": 0.5}}),
    "clusters": (
        {"changed": {"variant": lambda rows: np.where(rows["store"] % 2, "A", "B")}},
        {"cluster": "store"},
    ),
    "nulls": (
        {"changed": {"ndcg@10": lambda rows: rows["ndcg@10"].mask(rows.index % 5 == 0)}},
        {"nan": "drop"},
    ),
    "nobody is exposed in some rows": (
        {"changed": {"exposed": lambda rows: rows["exposed"].mask(rows["user_id"] < 9)}},
        {},
    ),
    "exposed at each event": ({"changed": {"exposed": lambda rows: rows["time"]}}, {}),
    "users in both arms": (
        {"changed": {"variant": lambda rows: rows["variant"].mask(rows.index % 300 == 0, "A")}},
        {"multi_variant": "drop"},
    ),
    "strata that change": (
        {"changed": {"country": lambda rows: np.where(rows.index % 2, "fi", "no")}},
        {"strata": "country"},
    ),
}


# What is added up by user and day is the same for each kind; exposures are read for one alone.
@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("case", "kind"),
    [
        *((case, "since_exposure") for case in CASES),
        *((case, kind) for kind in ("daily", "cumulative") for case in ("zone", "clusters")),
    ],
)
def test_a_file_has_the_table_of_its_rows(case, kind, tmp_path):
    made, options = CASES[case]
    rows = events(3, made.get("zone")).assign(**made.get("changed", {}))
    found, expected = both(rows, tmp_path, kind=kind, **options)
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9, atol=1e-12)
    assert expected["diff"].notna().any()


def test_an_assignment_beside_a_file(tmp_path):
    rows = events(4)
    users = rows.drop_duplicates("user_id")[["user_id", "variant", "exposed"]].iloc[5:]
    found, expected = both(rows.drop(columns=["variant", "exposed"]), tmp_path, assignment=users)
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9, atol=1e-12)


def test_few_rows_come_into_memory(tmp_path, monkeypatch):
    seen, read = [], user_periods.rows_in_memory

    def watched(*given):
        seen.append(read(*given))
        return seen[-1]

    monkeypatch.setattr(rd.experiments.compare.over_time, "rows_in_memory", watched)
    rows = events(5).drop(columns="item_id")
    rows["exposed"] = rows["time"].min()
    both(rows, tmp_path)
    (of_file, counts), (of_memory, ones) = seen
    # The row with the earliest exposure of a user stays alone.
    assert len(of_file) <= N_USERS * (N_DAYS + 1) < len(of_memory) == counts.sum() == ones.sum()


def test_a_column_that_a_file_lacks_is_named(tmp_path):
    with pytest.raises(rd.ColumnError, match="rows has no column 'views'"):
        both(events(6).drop(columns="views"), tmp_path)


def test_values_that_are_refused_in_rows_are_refused_in_files(tmp_path):
    rows = events(7)
    rows["views"] = rows["views"].where(rows.index != 3, -1)
    with pytest.raises(rd.DataError, match=r"rows\['views'\] is negative in 1 rows"):
        both(rows, tmp_path)


@pytest.mark.parametrize("column", ["ndcg@10", "variant", "views"])
def test_messages_count_the_rows_of_a_file(column, tmp_path):
    rows = events(8)
    odd = rows["user_id"] == 4
    rows[column] = rows[column].mask(odd, -1 if column == "views" else None)
    n = odd.sum()
    with sized(Sizes(summed_rows=len(rows) // 3)):
        rows.to_parquet(tmp_path / "events.parquet")
        with pytest.raises(
            rd.RecdfError, match=rf"(null|negative) in {n} .*\(found in one of \d buckets of users"
        ):
            rd.experiments.effect_over_time(tmp_path / "events.parquet", METRICS, **OPTIONS)


@pytest.mark.parametrize("label", ["cluster", "strata"])
def test_an_unknown_cluster_or_stratum_is_refused_in_any_row_of_a_user(label, tmp_path):
    rows = events(8)
    rows["place"] = (rows["user_id"] // 2).astype(str)
    last = rows.index[rows["user_id"] == 4][-1]
    rows["place"] = rows["place"].mask(rows.index == last)
    rows.to_parquet(tmp_path / "events.parquet")
    for given in (rows, tmp_path / "events.parquet"):
        with pytest.raises(rd.NullKeyError, match=r"'place'\] is null in 1 of"):
            rd.experiments.effect_over_time(given, METRICS, **{**OPTIONS, label: "place"})


def test_messages_of_kinds_of_times_count_nothing(tmp_path):
    rows = events(9)
    for name, words in (("exposed", "cannot be compared"), ("time", "holds (str|object) values")):
        own = rows.assign(exposed=rows["exposed"].dt.tz_localize("UTC"))
        own = rows.assign(time="now") if name == "time" else own
        own.to_parquet(tmp_path / "events.parquet")
        with (
            sized(Sizes(summed_rows=len(rows) // 3)),
            pytest.raises(rd.DataError, match=words) as caught,
        ):
            rd.experiments.effect_over_time(tmp_path / "events.parquet", METRICS, **OPTIONS)
        assert "buckets" not in str(caught.value)


@pytest.mark.parametrize("first_null", [0, 1])
def test_stores_of_which_one_is_unknown_and_dates_are_read(first_null, tmp_path):
    """Stores that were assigned whole, and users who came in a ramp-up, with the time of each."""
    rng = np.random.default_rng(3)
    n = 1200
    store = rng.integers(0, 40, n)
    users = pd.DataFrame({"user_id": np.arange(n), "revenue": rng.normal(size=40)[store]})
    known = np.arange(n) >= first_null
    stores = users.assign(variant=np.where(store % 2, "B", "A"), store=store)
    stores["store"] = stores["store"].where(known)
    came = pd.Timestamp("2026-03-01") + pd.to_timedelta(np.arange(n) * 14 // n, unit="D")
    treated = rng.random(n) < np.linspace(0.03, 0.6, n)
    ramp = users.assign(variant=np.where(treated, "B", "A"), came=came)
    for code, one in (("repeated_units", stores), ("shares_change", ramp)):
        rows = one.merge(
            pd.DataFrame({"time": pd.date_range("2026-03-27", periods=2)}), how="cross"
        )
        rows.to_parquet(tmp_path / "events.parquet")
        for data in (rows, tmp_path / "events.parquet"):
            given = OPTIONS | {"exposure_col": None}
            found = rd.experiments.effect_over_time(data, "revenue", **given)
            assert set(found["withheld"]) == {code}

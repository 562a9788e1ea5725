"""Devices that belong to one person: their events and their lists, and the assignment of an
experiment."""

import json

import numpy as np
import pandas as pd
import pytest
from cli.command import run
from hypothesis import given
from hypothesis import strategies as st
from logs.impression_logs import bought, log_of, quietly
from logs.test_impressions import CLICKS, LOG, PURCHASES, SMALL, frames
from oracles import impressions as oracle

import recdf as rd

PERSONS = st.lists(st.tuples(SMALL, st.integers(2, 5), st.integers(0, 3)), max_size=6)
DEVICES = pd.DataFrame({"user_id": ["ann", "bob"], "person_id": ["p", "p"]})


def by_device(log):
    """Distinct lists for the oracle: a number for device and session."""
    return [{**row, "session": 10 * row["user"] + row["session"]} for row in log]


@pytest.mark.long
@given(
    log=LOG,
    clicks=CLICKS,
    purchases=PURCHASES,
    persons=PERSONS,
    attribution=st.sampled_from(["last", "all"]),
)
def test_equals_a_plain_loop(log, clicks, purchases, persons, attribution):
    def of_persons(rows):
        return [{**row, "user": oracle.person_of(row["user"], persons)} for row in rows]

    mine = of_persons(by_device(log)), of_persons(clicks), of_persons(purchases)
    true, pred, counts = oracle.tables(*mine, window=3, attribution=attribution)
    log_frame, click_frame, purchase_frame = frames(log, clicks, purchases)
    mapping = pd.DataFrame(persons, columns=["user_id", "person_id", "time"]).astype("int64")
    found = quietly(
        log_frame,
        clicks=click_frame,
        purchases=purchase_frame,
        persons=mapping.assign(
            time=pd.Timestamp("2026-09-01") + pd.to_timedelta(mapping["time"], unit="min")
        ),
        person_col="person_id",
        time_col="time",
        value_col="price",
        window="3min",
        attribution=attribution,
    )
    assert found.options["user_col"] == ["person_id", "user_id", "session_id"]
    numbers = ["relevance", "clicks", "purchases", "price"]
    rows = found.true[["person_id", "user_id", "session_id", "item_id"]].astype("int64")
    keys = zip(
        rows["person_id"], 10 * rows["user_id"] + rows["session_id"], rows["item_id"], strict=True
    )
    values = found.true[numbers].to_numpy().tolist()
    mine_true = dict(zip((tuple(map(int, key)) for key in keys), values, strict=True))
    assert mine_true.keys() == true.keys()
    for key, values in true.items():
        assert mine_true[key] == pytest.approx(values, rel=1e-12)
    assert len(found.pred) == len(pred)
    assert found.events["attributed"].tolist() == [counts["clicks"], counts["purchases"]]
    devices = {row["user"] for row in [*log, *clicks, *purchases]}
    owners = {
        one: {person for device, person, _ in persons if device == one} for one, _, _ in persons
    }
    assert found.spec["counts"]["persons"] == {
        "devices": len(devices),
        "unknown_devices": len(devices - set(owners)),
        "shared_devices": sum(len(one) > 1 for one in owners.values()),
    }


def test_a_purchase_on_another_device():
    """Bob's tea was shown to the same person as Ann's, in a list of its own although both are
    session 1."""
    options = {"time_col": "time", "purchases": bought(20, user="bob"), "value_col": "price"}
    log = log_of(time=log_of()["time"] + pd.to_timedelta([10, 0, 60, 0], unit="min"))
    alone = rd.from_impressions(log, **options)
    found = rd.from_impressions(log, persons=DEVICES, person_col="person_id", **options)
    assert alone.true["purchases"].tolist() == [0, 0, 0, 1]
    assert found.true["purchases"].tolist() == [1, 0, 0, 0]
    assert found.true.columns.tolist()[:4] == ["person_id", "user_id", "session_id", "item_id"]
    assert found.true["person_id"].unique().tolist() == ["p"]
    assert found.spec["counts"]["lists"] == alone.spec["counts"]["lists"] == 3
    assert found.spec["device_col"] == "user_id"
    assert "persons: 2 devices, 0 unknown_devices, 0 shared_devices" in repr(found)
    result = rd.evaluate(*found, "revenue@10", **found.options)
    assert result.per_user["revenue@10"].sum() == 5


def test_one_list_per_person():
    found = rd.from_impressions(
        log_of(clicked=True),
        clicked_col="clicked",
        list_cols=(),
        persons=DEVICES,
        person_col="person_id",
    )
    assert found.options["user_col"] == ["person_id"]
    assert found.true[["person_id", "item_id", "clicks"]].to_numpy().tolist() == [
        ["p", "tea", 3],
        ["p", "mug", 1],
    ]


def test_a_click_names_the_list_of_its_device():
    clicks = bought(90, user="bob").assign(session_id=1)
    found = rd.from_impressions(
        log_of(),
        time_col="time",
        clicks=clicks,
        persons=DEVICES,
        person_col="person_id",
        window="1min",
    )
    assert found.true["clicks"].tolist() == [0, 0, 0, 1]
    assert found.events["by_list"].tolist() == [1]


def test_refunds_on_another_device():
    found = rd.from_impressions(
        log_of(),
        time_col="time",
        purchases=bought(70),
        refunds=bought(80, user="bob"),
        value_col="price",
        persons=DEVICES,
        person_col="person_id",
    )
    assert found.events["refunded"].tolist() == [1]


def test_unknown_devices_stay_themselves():
    found = rd.from_impressions(
        log_of(clicked=True), clicked_col="clicked", persons=DEVICES[:1], person_col="person_id"
    )
    assert found.true["person_id"].tolist() == ["p", "p", "p", "bob"]
    assert found.spec["counts"]["persons"] == {
        "devices": 2,
        "unknown_devices": 1,
        "shared_devices": 0,
    }
    with pytest.warns(rd.NoOverlapWarning, match="none of the 2 devices is in persons"):
        rd.from_impressions(
            log_of(clicked=True),
            clicked_col="clicked",
            persons=DEVICES.assign(user_id="x"),
            person_col="person_id",
        )


def test_inputs_are_not_modified():
    log, persons = log_of(clicked=True), DEVICES.copy()
    rd.from_impressions(log, clicked_col="clicked", persons=persons, person_col="person_id")
    pd.testing.assert_frame_equal(log, log_of(clicked=True))
    pd.testing.assert_frame_equal(persons, DEVICES)


@pytest.mark.parametrize(
    ("columns", "options", "error", "words"),
    [
        ({}, {"person_col": None}, rd.OptionError, "persons= and person_col= go together"),
        ({}, {"persons": None}, rd.OptionError, "persons= and person_col= go together"),
        ({}, {"person_col": "who"}, rd.ColumnError, "persons has no column 'who'"),
        (
            {},
            {"persons": DEVICES.drop(columns="user_id")},
            rd.ColumnError,
            "persons has no column 'user_id'",
        ),
        (
            {"person_id": 1},
            {},
            rd.OptionError,
            "log has a column 'person_id', which comes from persons=",
        ),
        ({"user_id": [1, 1, 2, 2]}, {}, rd.IdTypeError, "can never match"),
        (
            {"user_id": ["ann", "ann", "new", "bob"]},
            {"persons": DEVICES.assign(person_id=[1, 2])},
            rd.IdTypeError,
            "can",
        ),
        ({}, {"person_col": "item_id"}, rd.OptionError, "'item_id' is named for two purposes"),
        ({}, {"persons": {"ann": "p"}}, TypeError, "persons is a mapping"),
    ],
)
def test_bad_input(columns, options, error, words):
    given = {"persons": DEVICES, "person_col": "person_id"} | options
    with pytest.raises(error, match=words):
        rd.from_impressions(log_of(clicked=True, **columns), clicked_col="clicked", **given)


# -- the assignment


ASSIGNED = st.lists(st.tuples(SMALL, st.sampled_from("AB"), st.integers(0, 3)), max_size=8)


@pytest.mark.long
@given(assigned=ASSIGNED, persons=PERSONS, timed=st.booleans())
def test_the_first_assignment_of_a_person_stands(assigned, persons, timed):
    persons = [(device, person, 0) for device, person, _ in persons]
    expected = {}
    for row in sorted(range(len(assigned)), key=lambda i: (assigned[i][2] if timed else 0, i)):
        expected.setdefault(oracle.person_of(assigned[row][0], persons), row)
    found = rd.logs.assign_persons(
        pd.DataFrame(assigned, columns=["user_id", "variant", "day"]).astype(
            {"user_id": "int64", "day": "int64"}
        ),
        pd.DataFrame([row[:2] for row in persons], columns=["user_id", "person_id"]).astype(
            "int64"
        ),
        person_col="person_id",
        time_col="day" if timed else None,
    )
    rows = sorted((row, person) for person, row in expected.items())
    assert found["person_id"].tolist() == [person for _, person in rows]
    assert found["variant"].tolist() == [assigned[row][1] for row, _ in rows]
    devices = [
        len({d for d, _, _ in assigned if oracle.person_of(d, persons) == person})
        for _, person in rows
    ]
    assert found["n_devices"].tolist() == devices


def test_a_later_device_does_not_assign_a_person_again():
    assignment = pd.DataFrame(
        {"user_id": ["bob", "ann", "cat"], "variant": ["B", "A", "B"], "day": [5, 1, 2]}
    )
    found = rd.logs.assign_persons(assignment, DEVICES, person_col="person_id", time_col="day")
    assert found[["person_id", "variant", "day", "n_devices"]].to_numpy().tolist() == [
        ["p", "A", 1, 2],
        ["cat", "B", 2, 1],
    ]
    with pytest.raises(rd.ColumnError, match="assignment has no column 'when'"):
        rd.logs.assign_persons(assignment, DEVICES, person_col="person_id", time_col="when")


# -------------------------------------------------------------------------------------------------
# files


def shop(folder):
    """Two devices of each of forty persons, one of which is shown items while the other one buys,
    and others."""
    n = 40
    log = pd.concat(
        [log_of(user_id=[f"d{i}"] * 3 + [f"e{i}"]) for i in range(n)], ignore_index=True
    )
    purchases = pd.concat(
        [bought(70, user=f"e{i}", price=1.0 + i) for i in range(n)], ignore_index=True
    )
    i = np.arange(0, n, 2)
    persons = pd.concat(
        [
            pd.DataFrame({"user_id": [f"d{k}" for k in i], "person_id": [f"p{k}" for k in i]}),
            pd.DataFrame({"user_id": [f"e{k}" for k in i], "person_id": [f"p{k}" for k in i]}),
            pd.DataFrame({"user_id": ["e0", "d0"], "person_id": ["p2", "p0"]}),
        ],
        ignore_index=True,
    )
    found = {"log": log, "purchases": purchases, "persons": persons}
    for name, one in found.items():
        one.to_parquet(folder / f"{name}.parquet", index=False)
        one.to_csv(folder / f"{name}.csv", index=False)
    return found


OPTIONS = {"time_col": "time", "value_col": "price", "person_col": "person_id"}


@pytest.mark.long
@pytest.mark.parametrize("limit", ["1GB", "30KB"])
def test_files_are_alike(tmp_path, limit):
    given = shop(tmp_path)
    expected = rd.from_impressions(given.pop("log"), **given, **OPTIONS)
    assert expected.spec["counts"]["persons"] == {
        "devices": 80,
        "unknown_devices": 40,
        "shared_devices": 1,
    }
    assert (
        expected.true.query("session_id == 2")["purchases"].sum() == 20
    )  # of the other device of the same person
    paths = {f"{name}_path": tmp_path / f"{name}.parquet" for name in (*given, "log")}
    spec = rd.logs.impressions_parquet(
        **paths, out=tmp_path / "lists", memory_limit=limit, **OPTIONS
    )
    assert spec["counts"] == expected.spec["counts"]
    keys = ["person_id", "user_id", "session_id", "item_id"]
    for name, table in (("true", expected.true), ("pred", expected.pred)):
        written = pd.read_parquet(tmp_path / f"lists/{name}.parquet")
        one, two = (part.sort_values(keys, ignore_index=True) for part in (written, table))
        pd.testing.assert_frame_equal(one, two, check_dtype=False, check_flags=False)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("options", "words"),
    [({"person_col": None}, "go together"), ({"person_col": "who"}, "persons has no column 'who'")],
)
@pytest.mark.parametrize("limit", ["1GB", "30KB"])
def test_files_of_persons_without_their_column(tmp_path, options, words, limit):
    paths = {f"{name}_path": tmp_path / f"{name}.parquet" for name in shop(tmp_path)}
    with pytest.raises((rd.OptionError, rd.ColumnError), match=words):
        rd.logs.impressions_parquet(
            **paths, out=tmp_path / "lists", memory_limit=limit, **OPTIONS | options
        )
    assert not (tmp_path / "lists").exists()


@pytest.mark.long
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_command(tmp_path, monkeypatch, capsys, ending):
    shop(tmp_path)
    monkeypatch.chdir(tmp_path)
    files = [
        f"log.{ending}",
        "--purchases",
        f"purchases.{ending}",
        "--persons",
        f"persons.{ending}",
    ]
    code, out, err = run(
        capsys,
        "impressions",
        *files,
        "--value-col",
        "price",
        "--person-col",
        "person_id",
        "--out",
        "lists",
    )
    assert (code, err) == (0, "")
    counts = [line.split() for line in out.splitlines() if line.startswith("persons ")]
    wanted = {"devices": "80", "unknown_devices": "40", "shared_devices": "1"}
    assert {name: n for _, name, n in counts} == wanted
    assert "--user-col person_id user_id session_id" in out
    spec = json.loads((tmp_path / "lists/impressions.json").read_text(encoding="utf-8"))
    assert (spec["user_col"], spec["device_col"]) == ("person_id", "user_id")
    code, out, err = run(capsys, *out.splitlines()[-1].removeprefix("next: recdf ").split())
    assert (code, err) == (0, "")


def test_roll_up_and_join_count_persons_and_not_their_devices():
    rng = np.random.default_rng(3)
    key = ["person_id", "user_id", "session_id"]
    lists = pd.DataFrame({"session_id": range(40)})
    true = lists.assign(person_id=lists.index // 4, user_id=lists.index // 2, item_id=1)
    pred = true.assign(item_id=rng.integers(1, 3, 40), rank=1)
    per_user = rd.evaluate(true, pred, "recall", k=1, user_col=key).per_user
    owners = pd.DataFrame({"user_id": range(20), "person_id": np.arange(20) // 2})
    by_device = pd.DataFrame(
        {"user_id": range(20), "variant": ["A", "B"] * 10, "at": pd.Timestamp("2026-09-01")}
    )
    persons = rd.logs.assign_persons(by_device, owners, person_col="person_id", time_col="at")
    rolled = rd.experiments.roll_up(per_user, unit_col="person_id")
    expected = per_user.groupby("person_id")["recall@1"].mean()
    for joined in (
        rd.join_experiment(per_user, persons, user_col="person_id", how="mean"),
        rd.join_experiment(rolled, persons, user_col="person_id"),
    ):
        found = joined.set_index("person_id")["recall@1"]
        pd.testing.assert_series_equal(found.sort_index(), expected, check_names=False)
    with pytest.raises(rd.DataError, match="several units are of one 'person_id'"):
        rd.experiments.roll_up(per_user)
    with pytest.raises(rd.DataError, match="both have 'person_id'"):
        rd.join_experiment(per_user, persons, how="mean")
    with pytest.raises(rd.DataError, match="several units are of one 'person_id'"):
        rd.join_experiment(per_user, by_device, how="mean")
    devices = per_user.drop(columns="person_id")
    assert len(rd.experiments.roll_up(devices, over="session_id")) == 20


@pytest.mark.parametrize("dtype", ["Int32", "int32[pyarrow]"])
def test_a_null_device_is_found_once_in_a_frame_of_any_dtype(dtype):
    log = pd.DataFrame({"user_id": [1, 2, None], "item_id": list("abc"), "position": [1, 1, 1]})
    log = log.astype({"user_id": dtype}).assign(session_id=1, clicked=True)
    persons = pd.DataFrame({"user_id": [1, 2], "person_id": ["p", "q"]})
    options = {"persons": persons, "person_col": "person_id"}
    found = rd.logs.check_log(log, **options)
    assert found[["finding", "count"]].to_numpy().tolist() == [["null user_id in log", 1]]
    lists = rd.from_impressions(log, clicked_col="clicked", null_keys="drop", **options)
    assert lists.pred["person_id"].tolist() == ["p", "q"]


DAYS = {"user_id": ["phone", "laptop"], "variant": ["A", "B"]}
OWNERS = pd.DataFrame({"user_id": ["phone", "laptop"], "person_id": "ann"})


def assigned(**columns):
    frame = pd.DataFrame(DAYS).assign(**columns)
    return rd.logs.assign_persons(frame, OWNERS, person_col="person_id", time_col="day")


def test_days_are_put_in_order_as_times():
    later = pd.Timestamp("2026-10-01")
    assert assigned(day=[later, pd.Timestamp("2026-09-02")])["variant"].tolist() == ["B"]
    # A Python date beside a Timestamp, and a day that nobody knows.
    assert assigned(day=[later, pd.Timestamp("2026-09-02").date()])["variant"].tolist() == ["B"]
    assert assigned(day=[pd.NaT, later])["variant"].tolist() == ["B"]
    with pytest.raises(rd.DataError, match="expected times: parse them first"):
        assigned(day=["9/2/2026", "10/1/2026"])
    with pytest.raises(rd.DataError, match="with and without one"):
        assigned(day=[pd.Timestamp("2026-09-02", tz="UTC"), later])


def test_days_of_owners_are_put_in_order_as_times():
    log = pd.DataFrame({"user_id": ["d"], "item_id": [1], "position": [1]})
    log["time"] = pd.Timestamp("2026-11-01")
    owners = pd.DataFrame({"user_id": ["d", "d"], "person_id": ["eve", "bob"]})
    call = {"list_cols": (), "person_col": "person_id", "time_col": "time", "clicks": log}
    days = pd.to_datetime(["2026-10-01", "2026-09-02"])
    found = rd.from_impressions(log, persons=owners.assign(time=days), **call)
    assert found.true["person_id"].tolist() == ["bob"]
    with pytest.raises(rd.DataError, match="expected times: parse them first"):
        rd.from_impressions(log, persons=owners.assign(time=["9/2/2026", "10/1/2026"]), **call)


def test_an_assigned_device_without_an_id_is_refused():
    with pytest.raises(rd.NullKeyError, match=r"assignment\['user_id'\] is null in 1 of 2 rows"):
        assigned(user_id=[None, "laptop"], day=[1, 2])

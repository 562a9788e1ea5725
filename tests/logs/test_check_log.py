"""`check_log`: a clean log has no finding, and each planted fault is found with its count."""

import numpy as np
import pandas as pd
import pytest

import recdf as rd

START = pd.Timestamp("2026-09-01 10:00")


def clean():
    """100 users with one list of three items each, one every ten minutes, and their clicks 30
    seconds later."""
    user = np.repeat(np.arange(100), 3)
    log = pd.DataFrame(
        {
            "user_id": user,
            "session_id": 1,
            "item_id": np.tile([0, 1, 2], 100) + user % 7,
            "position": np.tile([1, 2, 3], 100),
            "time": START + pd.to_timedelta(10 * user, unit="min"),
            "variant": np.where(user % 2, "A", "B"),
        }
    )
    clicks = log.iloc[::3][["user_id", "item_id", "time"]].reset_index(drop=True)
    return log, clicks.assign(time=clicks["time"] + pd.Timedelta("30s"))


def findings(log, clicks=None, **options):
    """Count of each finding."""
    found = rd.logs.check_log(log, clicks=clicks, **{"time_col": "time", **options})
    assert found.columns.tolist() == [
        "finding",
        "severity",
        "count",
        "share",
        "examples",
        "effect",
        "code",
    ]
    assert found[["count", "share"]].dtypes.astype(str).tolist() == ["int64", "float64"]
    order = {"error": 0, "warning": 1, "info": 2}
    assert found["severity"].map(order).is_monotonic_increasing
    return dict(zip(found["finding"], found["count"], strict=True))


def test_a_clean_log_has_no_finding():
    assert findings(*clean(), variant_col="variant", window="1h") == {}


def shifted(frame, rows, span):
    """The frame with the times of some rows moved."""
    time = frame["time"].copy()
    time.iloc[rows] += pd.Timedelta(span)
    return frame.assign(time=time)


def changed(frame, rows, name, value):
    values = frame[name].astype(object)
    values.iloc[rows] = value
    return frame.assign(**{name: values.infer_objects()})


def bot(log):
    """User 0 is shown 1,500 items, one a list."""
    more = pd.DataFrame(
        {"user_id": 0, "session_id": np.arange(10, 1510), "item_id": 500, "position": 1}
    )
    return pd.concat([log, more.assign(time=START, variant="B")], ignore_index=True)


PLANTED = {
    "a user who is a program": (
        lambda log, clicks: (bot(log), clicks),
        {"users with over 1,000 impressions": 1},
    ),
    "clicks of items not shown": (
        lambda log, clicks: (log, changed(clicks, [3, 5], "item_id", 900)),
        {"clicks without an impression": 2},
    ),
    "clicks before their impression": (
        lambda log, clicks: (log, shifted(clicks, [3, 5, 7], "-1min")),
        {"impressions after the clicks": 3},
    ),
    "late clicks": (
        lambda log, clicks: (log, shifted(clicks, [3], "3h")),
        {"clicks after the window": 1},
    ),
    "clicks in another zone": (
        lambda log, clicks: (log, shifted(clicks, slice(None), "-2h")),
        {"impressions after the clicks": 100, "clocks in two zones": 100},
    ),
    "clicks in a zone of half hours": (
        lambda log, clicks: (log, shifted(clicks, slice(None), "5h30min")),
        {"clicks after the window": 100, "clocks in two zones": 100},
    ),
    "missing positions": (
        lambda log, clicks: (changed(log, [299], "position", None), clicks),
        {"positions missing": 1},
    ),
    "null users": (
        lambda log, clicks: (changed(log, [299], "user_id", None), clicks),
        {"null user_id in log": 1},
    ),
    "positions from 0": (
        lambda log, clicks: (log.assign(position=log["position"] - 1), clicks),
        {"positions that do not start at 1": 1},
    ),
    "holes": (
        lambda log, clicks: (changed(log, [2, 5], "position", 9), clicks),
        {"positions with holes": 2},
    ),
    "pages": (
        lambda log, clicks: (changed(log, [2], "position", 2), clicks),
        {"a position twice in a list": 1},
    ),
    "one item in two lists": (
        lambda log, clicks: (changed(log, [1, 4], "item_id", 900), clicks),
        {},
    ),
    "an item twice": (
        lambda log, clicks: (changed(log, [1, 2], "item_id", 900), clicks),
        {"items shown twice in a list": 1},
    ),
    "a row twice": (
        lambda log, clicks: (pd.concat([log, log.iloc[[7]]], ignore_index=True), clicks),
        {"rows logged twice": 1, "items shown twice in a list": 1, "a position twice in a list": 1},
    ),
    "a broken hour": (
        lambda log, clicks: (
            log[
                (log["time"] < START + pd.Timedelta("2h"))
                | (log["time"] >= START + pd.Timedelta("5h"))
            ],
            clicks[:0],
        ),
        {"hours without a row": 3},
    ),
    "variants within a list": (
        lambda log, clicks: (changed(log, [4], "variant", "B"), clicks),
        {"variants that change within a list": 1, "users in several variants": 1},
    ),
    "clicks written twice": (
        lambda log, clicks: (log, pd.concat([clicks, clicks.iloc[[3, 5]]], ignore_index=True)),
        {"clicks logged twice": 2},
    ),
    "seconds read as milliseconds": (
        lambda log, clicks: (log, shifted(clicks, slice(None), "-20000D")),
        {"impressions after the clicks": 100, "times that have nothing in common": 100},
    ),
    "clicks that name another list": (
        lambda log, clicks: (log, clicks.assign(session_id=[2, None, *[1] * 98])),
        {"clicks that name an unknown list": 1},
    ),
    "clicks by time in another list": (
        lambda log, clicks: (
            pd.concat(
                [log, log.iloc[:1].assign(session_id=2, time=START + pd.Timedelta("10s"))],
                ignore_index=True,
            ),
            clicks.assign(session_id=1),
        ),
        {"clicks that name another list": 1},
    ),
    "one user with many rows": (
        lambda log, clicks: (
            pd.concat([log, bot(log).iloc[300:320].assign(item_id=range(20))], ignore_index=True),
            clicks,
        ),
        {"a user with over 5 % of the impressions": 1},
    ),
    "no variant": (lambda log, clicks: (changed(log, [4], "variant", None), clicks), None),
}


@pytest.mark.few(8)
@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults_are_found(fault):
    plant, expected = PLANTED[fault]
    log, clicks = plant(*clean())
    found = findings(log, clicks, variant_col="variant", window="1h")
    if expected is None:
        assert found["null variants"] == 1
    else:
        assert found == expected


def test_refunds():
    log, clicks = clean()
    purchases = clicks.assign(price=[-4.5, *[3.0] * 99])
    found = rd.logs.check_log(
        log, purchases=purchases, value_col="price", time_col="time", window="1h"
    )
    assert found[["finding", "count", "examples"]].to_numpy().tolist() == [
        ["prices below 0", 1, "-4.5"]
    ]
    with pytest.raises(rd.OptionError, match="pass purchases="):
        rd.logs.check_log(log, value_col="price", time_col="time")


def test_variants_between_lists():
    log, _ = clean()
    log["session_id"] = np.tile([1, 1, 2], 100)
    log = changed(log, [2], "variant", "A")
    assert findings(log.assign(position=1, item_id=range(300)), variant_col="variant") == {
        "a position twice in a list": 100,
        "users in several variants": 1,
    }


@pytest.mark.parametrize(
    ("propensity", "options", "expected"),
    [
        (0.25, {"n_actions": 4}, {}),
        (0.25, {"n_actions": 5}, {"propensities that do not fit the actions": 300}),
        (0.25, {}, {"propensities that do not fit the actions": 300}),  # the log has nine items
        (1 / 9, {}, {}),
        (
            np.where(np.arange(300) < 2, 0.0, 0.25),
            {"n_actions": 4},
            {"propensities outside (0, 1]": 2},
        ),
        (
            np.tile([0.5, 0.5, 0.25], 100),
            {"n_actions": 2},
            {"propensities that do not fit the actions": 300},
        ),
    ],
)
def test_propensities(propensity, options, expected):
    log, _ = clean()
    assert (
        findings(log.assign(propensity=propensity), propensity_col="propensity", **options)
        == expected
    )


def test_frames_that_cannot_be_compared_are_an_error():
    log, clicks = clean()
    zoned = clicks.assign(time=clicks["time"].dt.tz_localize("UTC"))
    for other in (zoned, clicks.assign(user_id=clicks["user_id"].astype(str))):
        assert findings(log, other) == {"columns that cannot be read or compared": 1}
    assert findings(log[:0], clicks) == {"log is empty": 1}


def test_sessions_made_of_gaps_and_logs_without_times():
    log, clicks = clean()
    assert findings(log.drop(columns="session_id"), clicks, session_gap="5min") == {}
    assert findings(log.drop(columns="time"), time_col=None) == {}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"user_col": "who"}, rd.ColumnError, "log has no column 'who'"),
        ({"variant_col": "arm"}, rd.ColumnError, "log has no column 'arm'"),
        ({"time_col": None, "clicks": clean()[1]}, rd.OptionError, "needs time_col="),
        (
            {"time_col": "time", "window": "soon", "clicks": clean()[1]},
            rd.OptionError,
            "no span of time",
        ),
    ],
)
def test_bad_input(options, error, words):
    with pytest.raises(error) as found:
        rd.logs.check_log(clean()[0], **options)
    assert words in str(found.value)


# -- click rates


def clicked(rng, rates, shown):
    """A log in which users click with their own rates, and its clicks."""
    user = np.repeat(np.arange(len(shown)), shown)
    at = START + pd.to_timedelta(7 * np.arange(len(user)), unit="s")
    log = pd.DataFrame(
        {
            "user_id": user,
            "session_id": np.arange(len(user)),
            "item_id": np.arange(len(user)) % 97,
            "position": 1,
            "time": at,
        }
    )
    clicks = log.loc[rng.random(len(user)) < rates[user], ["user_id", "item_id", "time"]]
    return log, clicks.assign(time=clicks["time"] + pd.Timedelta("1s"))


@pytest.mark.few(3)
@pytest.mark.parametrize("spread", [0.0, 0.7])
@pytest.mark.parametrize(("n", "shown"), [(10, 500), (10, 50), (60, 100)])
def test_programs_that_click_on_everything_are_named(n, shown, spread):
    rng = np.random.default_rng(n + shown)
    rates = 1 / (1 + np.exp(2.2 - spread * rng.normal(size=2000)))
    impressions = rng.poisson(6, 2000) + 1
    rates[:n], impressions[:n] = 0.9, shown
    log, clicks = clicked(rng, rates, impressions)
    found = rd.logs.check_log(log, clicks=clicks, time_col="time").set_index("finding")
    row = found.loc["users with implausible click rates"]
    assert row["count"] == n
    assert row["severity"] == "warning"
    assert all(int(one.split(":")[0]) < n for one in row["examples"].split(", "))
    assert f"of {shown}" in row["examples"]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, n: np.full(n, 0.1),
        lambda rng, n: 1 / (1 + np.exp(2.2 - rng.normal(size=n))),
        lambda rng, n: rng.beta(0.5, 4.5, n),
        lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, 0.3),
    ],
    ids=["equal", "logit-normal", "beta", "many who never click"],
)
def test_honest_users_who_differ_are_not_named(draw):
    rng = np.random.default_rng(3)
    log, clicks = clicked(rng, draw(rng, 2000), np.ceil(rng.lognormal(2.5, 1, 2000)).astype(int))
    found = rd.logs.check_log(log, clicks=clicks, time_col="time", many=10**6)
    assert "users with implausible click rates" not in set(found["finding"])


@pytest.mark.long
def test_devices_refunds_and_named_lists_are_those_of_from_impressions():
    """What from_impressions is told, the check is told too, and finds the same events."""
    times = pd.to_datetime("2026-09-01 10:00") + pd.to_timedelta([0, 1, 2, 3], unit="h")
    log = pd.DataFrame(
        {
            "user_id": ["phone", "phone", "tv", "desk"],
            "session_id": [1, 2, 1, 1],
            "item_id": ["tea", "jam", "tea", "ham"],
            "position": [1, 1, 1, 1],
            "time": times,
        }
    )
    later = times[-1] + pd.Timedelta("1h")
    bought = pd.DataFrame(
        {
            "user_id": ["laptop", "desk", "phone"],
            "item_id": ["tea", "ham", "rye"],
            "time": later,
            "price": 5.0,
            "session_id": [9, 1, 2],
            "order": [1, 2, 3],
        }
    )
    back = pd.DataFrame(
        {
            "user_id": ["desk", "desk"],
            "item_id": ["ham", "tea"],
            "time": later,
            "price": [7.0, 1.0],
            "order": [2, 2],
        }
    )
    persons = pd.DataFrame(
        {"user_id": ["phone", "laptop", "tv", "tv"], "person_id": ["ann", "ann", "bob", "eve"]}
    )
    told = {
        "time_col": "time",
        "purchases": bought,
        "refunds": back,
        "order_col": "order",
        "value_col": "price",
        "persons": persons,
        "person_col": "person_id",
    }
    found = rd.logs.check_log(log, **told).set_index("finding")["count"]
    with pytest.warns(rd.errors.RecdfWarning):
        events = rd.from_impressions(log, **told)
    assert found["purchases without an impression"] == events.events["never_shown"].item() == 1
    counts = events.spec["counts"]
    assert found["refunds without a purchase"] == counts["refunds"]["without_purchase"] == 1
    assert found["refunds beyond what was paid"] == counts["refunds"]["beyond_price"] == 1
    assert found["devices that persons does not name"] == counts["persons"]["unknown_devices"] == 1
    assert found["devices of several persons"] == counts["persons"]["shared_devices"] == 1
    # By device, the purchase on the laptop has no impression either.
    alone = {name: of for name, of in told.items() if "person" not in name}
    assert (
        rd.logs.check_log(log, **alone).set_index("finding")["count"][
            "purchases without an impression"
        ]
        == 2
    )
    named = rd.logs.check_log(log, named_lists="all", **alone).set_index("finding")["count"]
    assert named["purchases that name an unknown list"] == 1
    with pytest.raises(rd.OptionError, match="named_lists"):
        rd.logs.check_log(log, named_lists="some", **alone)
    for left_out, words in (
        ("purchases", "pass purchases="),
        ("refunds", "pass refunds="),
        ("persons", "go together"),
    ):
        less = {left_out: None} | ({"value_col": None} if left_out == "purchases" else {})
        with pytest.raises(rd.OptionError, match=words):
            rd.logs.check_log(log, **{**told, **less})


def test_a_null_is_no_further_variant():
    log = pd.DataFrame(
        {
            "user_id": [1, 1, 2, 2, 3],
            "session_id": 1,
            "item_id": [1, 2, 1, 2, 1],
            "position": [1, 2, 1, 2, 1],
            "variant": ["A", None, "A", "B", None],
        }
    )
    found = rd.logs.check_log(log, variant_col="variant").set_index("code")
    assert found["count"].to_dict() == {"null_variants": 2, "mixed_lists": 1, "mixed_users": 1}
    # One of the two users, and of the two lists, of whom a variant is known.
    assert found["share"].to_dict() == {
        "null_variants": 0.4,
        "mixed_lists": 0.5,
        "mixed_users": 0.5,
    }
    none = rd.logs.check_log(log.assign(variant=None), variant_col="variant")
    assert none["code"].tolist() == ["null_variants"]


def test_arguments_of_a_log_check_are_named():
    log = pd.DataFrame({"user_id": [1], "session_id": 1, "item_id": 1, "position": 1})
    for many in (None, float("inf"), "10", -1):
        with pytest.raises(rd.OptionError, match=r"many=.*; expected an integer of at least 0"):
            rd.logs.check_log(log, many=many)
    with pytest.raises(TypeError, match="log is None; expected a DataFrame"):
        rd.logs.check_log(None)
    for call in (rd.logs.check_log, rd.from_impressions):
        with pytest.raises(
            rd.OptionError, match=r"list_cols=\[\['a'\]\]; expected a name or a list"
        ):
            call(log.assign(clicked=1), list_cols=[["a"]])


def test_events_of_the_hours_after_a_newsletter_fit_its_log():
    shown = pd.Timestamp("2026-11-02 10:00")
    log = pd.DataFrame({"user_id": range(40), "item_id": 1, "position": 1, "time": shown})

    def found(hours, **options):
        clicks = log[["user_id", "item_id"]].assign(time=shown + pd.Timedelta(hours=hours))
        table = rd.logs.check_log(log, list_cols=(), time_col="time", clicks=clicks, **options)
        return "times_apart" in set(table["code"])

    assert not found(8)
    assert not found(8, window="24h")
    assert not found(48, window="7D")
    assert found(48)
    assert found(24 * 365 * 50)


@pytest.mark.parametrize("n", ["7", 0, 2.5])
def test_numbers_of_actions_are_counts(n):
    log = pd.DataFrame({"user_id": [1], "item_id": 1, "position": 1, "propensity": 0.5})
    with pytest.raises(rd.OptionError, match="expected an integer of at least 1"):
        rd.logs.check_log(log, list_cols=(), propensity_col="propensity", n_actions=n)


def test_columns_of_a_log_may_be_called_by_numbers():
    time = pd.Timestamp("2026-11-01 10:00")
    log = pd.DataFrame({0: ["a", "a", "b"], 1: 1, 2: ["x", "y", "x"], 3: [1, 2, 1], 4: time})
    bought = pd.DataFrame({0: ["a", "b"], 2: ["x", "z"], 4: time, 5: [1.0, -2.0]})
    owners = pd.DataFrame({0: ["a"], 9: ["ann"]})

    def named(frame, **more):
        texts = {0: "user_id", 1: "session_id", 2: "item_id", 3: "position", 4: "time", 5: "price"}
        return frame.rename(columns=texts | {9: "person_id"})

    keys = {"user_col": 0, "item_col": 2, "rank_col": 3, "list_cols": 1, "time_col": 4}
    call = {"value_col": 5, "person_col": 9}
    found = rd.logs.check_log(log, purchases=bought, persons=owners, **keys, **call)
    plain = {"time_col": "time", "value_col": "price", "person_col": "person_id"}
    own = rd.logs.check_log(named(log), purchases=named(bought), persons=named(owners), **plain)
    pd.testing.assert_frame_equal(found, own)
    lists = rd.from_impressions(log, purchases=bought, persons=owners, **keys, **call)
    revenue = rd.evaluate(*lists, "revenue@5", **lists.options).summary["value"]
    assert revenue.tolist() == [0.5]  # 1 in the list of ann, and nothing in that of b
    assigned = rd.logs.assign_persons(log[[0, 3]].head(1), owners, person_col=9, user_col=0)
    assert assigned.columns.tolist() == [9, 0, 3, "n_devices"]
    assert rd.logs.time_slice(log, 4, "1D", name=7)[7].eq(time.normalize()).all()

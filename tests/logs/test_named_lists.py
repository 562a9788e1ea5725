"""Clicks and purchases that name the list of their impression belong to it; the others go by the
window."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs.impression_logs import START, log_of, quietly
from logs.test_impressions import CLICKS, LOG, PURCHASES, as_dicts, frame
from oracles import impressions as oracle

import recdf as rd

NAMED = st.one_of(st.none(), st.integers(0, 3))


@pytest.mark.long
@given(
    log=LOG,
    clicks=CLICKS,
    purchases=PURCHASES,
    lists=st.lists(NAMED, min_size=16, max_size=16),
    window=st.sampled_from([None, 0, 3]),
    attribution=st.sampled_from(["last", "first", "all"]),
    named=st.sampled_from([None, "clicks", "all", "none"]),
)
def test_equals_a_plain_loop(log, clicks, purchases, lists, window, attribution, named):
    clicks = [{**event, "session": one} for event, one in zip(clicks, lists[:8], strict=False)]
    purchases = [
        {**event, "session": one} for event, one in zip(purchases, lists[8:], strict=False)
    ]
    rules = {"attribution": attribution}
    kinds = {None: ["clicks"], "clicks": ["clicks"], "all": ["clicks", "purchases"], "none": []}[
        named
    ]
    true, pred, counts = oracle.tables(
        log, clicks, purchases, window=window, skew=1, named_lists=kinds, **rules
    )
    found = quietly(
        frame(log, ["user", "session", "item", "time", "position"]),
        clicks=frame(clicks, ["user", "session", "item", "time"]).astype({"session_id": "Int64"}),
        purchases=frame(purchases, ["user", "session", "item", "time", "price"]).astype(
            {"session_id": "Int64", "price": float}
        ),
        time_col="time",
        value_col="price",
        window=None if window is None else f"{window}min",
        clock_skew="1min",
        **rules,
        **({} if named is None else {"named_lists": named}),
    )
    mine_true, mine_pred = as_dicts(found)
    assert mine_pred == pred
    assert mine_true.keys() == true.keys()
    for key, values in true.items():
        assert mine_true[key] == pytest.approx(values, rel=1e-12)
    events = found.events.set_index("event")
    for kind in ("clicks", "purchases"):
        assert events.loc[kind, "attributed"] == counts[kind]
        assert events.loc[kind, "by_list"] == counts[kind, "by_list"]
        assert events.loc[kind, "unknown_list"] == counts[kind, "unknown_list"]
    reasons = ["attributed", "never_shown", "before_impression", "outside_window", "unknown_list"]
    assert events[reasons].sum(axis=1).tolist() == [len(clicks), len(purchases)]


def clicks_of(*rows):
    """Clicks of ann on tea: session and minutes after the first impression."""
    return pd.DataFrame(
        {
            "user_id": "ann",
            "session_id": pd.array([session for session, _ in rows], dtype="Int64"),
            "item_id": "tea",
            "time": [START + pd.Timedelta(minutes, "min") for _, minutes in rows],
        }
    )


@pytest.mark.parametrize(
    ("session", "minutes", "expected", "count"),
    [
        (1, 70, [1, 0, 0, 0], "by_list"),  # by time, it would be the later one
        (1, 5000, [1, 0, 0, 0], "by_list"),  # the window is not asked
        (2, 30, [0, 0, 1, 0], "by_list"),  # the clock of the clicks is behind
        (None, 70, [0, 0, 1, 0], "attributed"),
        (None, 5000, [0, 0, 0, 0], "outside_window"),
        (3, 70, [0, 0, 0, 0], "unknown_list"),
    ],
)
def test_by_hand(session, minutes, expected, count):
    found = quietly(log_of(), time_col="time", clicks=clicks_of((session, minutes)), window="60min")
    assert found.true["clicks"].tolist() == expected
    assert found.events[count].tolist() == [1]
    assert found.spec["named_lists"] == "clicks"


def test_a_list_without_the_item_gets_nothing():
    clicks = clicks_of((2, 70)).assign(item_id="mug")
    found = quietly(log_of(), time_col="time", clicks=clicks)
    assert found.true["clicks"].sum() == 0
    assert found.events["never_shown"].tolist() == [1]


def test_purchases_follow_the_list_they_name_when_asked():
    """The session of a purchase is often that of the payment, so that the window decides by
    default."""
    bought = clicks_of((1, 70))
    assert quietly(log_of(), time_col="time", purchases=bought).true["purchases"].tolist() == [
        0,
        0,
        1,
        0,
    ]
    found = quietly(log_of(), time_col="time", purchases=bought, named_lists="all")
    assert found.true["purchases"].tolist() == [1, 0, 0, 0]


def test_clicks_on_unknown_lists_stay_in_true_when_asked():
    found = quietly(
        log_of(), time_col="time", clicks=clicks_of((3, 70), (1, 70)), unattributed="true"
    )
    assert found.true[["session_id", "item_id", "clicks"]].iloc[-1].tolist() == [3, "tea", 1]
    assert found.true["clicks"].tolist() == [1, 0, 0, 0, 1]
    assert found.events[["unknown_list", "kept_in_true"]].to_numpy().tolist() == [[1, 1]]


@pytest.mark.parametrize(("gap", "lists"), [("30min", ("session_id",)), (None, ())])
def test_lists_that_the_log_does_not_name_are_not_asked(gap, lists):
    """Sessions that are made have numbers of their own, and with one list a user there is no list
    to name."""
    log = log_of() if gap is None else log_of().drop(columns="session_id")
    found = quietly(
        log,
        time_col="time",
        clicks=clicks_of((1, 5000)),
        window="60min",
        session_gap=gap,
        list_cols=lists,
    )
    assert found.events["outside_window"].tolist() == [1]


def test_names_of_another_kind_are_refused():
    with pytest.raises(rd.IdTypeError, match="session_id"):
        rd.from_impressions(
            log_of(), time_col="time", clicks=clicks_of((1, 5)).assign(session_id="s1")
        )
    with pytest.raises(rd.OptionError, match="named_lists"):
        rd.from_impressions(log_of(), time_col="time", clicks=clicks_of((1, 5)), named_lists="both")


@pytest.mark.long
@pytest.mark.parametrize("limit", ["1GB", "30KB"])
def test_files_are_alike(tmp_path, limit):
    log = pd.concat(
        [log_of(user_id=[f"u{i}", f"u{i}", f"u{i}", f"v{i}"]) for i in range(50)], ignore_index=True
    )
    clicks = pd.concat(
        [clicks_of((1, 70), (None, 70), (3, 5)).assign(user_id=f"u{i}") for i in range(50)],
        ignore_index=True,
    )
    log.to_parquet(tmp_path / "log.parquet")
    clicks.to_parquet(tmp_path / "clicks.parquet")
    paths = {"log_path": tmp_path / "log.parquet", "clicks_path": tmp_path / "clicks.parquet"}
    spec = rd.logs.impressions_parquet(
        **paths, out=tmp_path / "lists", time_col="time", memory_limit=limit
    )
    assert spec["counts"]["clicks"] == {
        "events": 150,
        "attributed": 100,
        "never_shown": 0,
        "before_impression": 0,
        "outside_window": 0,
        "unknown_list": 50,
        "by_list": 50,
        "logged_twice": 0,
    }
    true = (
        pd.read_parquet(tmp_path / "lists/true.parquet")
        .groupby(["session_id", "item_id"])["clicks"]
        .sum()
    )
    assert true.to_dict() == {(1, "mug"): 0, (1, "tea"): 50, (2, "tea"): 50}


@pytest.mark.long
def test_check_log_says_how_far_two_clocks_differ():
    """Clicks that are 1, 2, ..., 100 seconds ahead of their impression, and one that is a day
    ahead."""
    user = range(101)
    log = pd.DataFrame(
        {"user_id": user, "session_id": 1, "item_id": "tea", "position": 1, "time": START}
    )
    seconds = [*range(1, 101), 86400]
    clicks = log[["user_id", "item_id"]].assign(time=START - pd.to_timedelta(seconds, unit="s"))
    found = rd.logs.check_log(log, time_col="time", clicks=clicks).set_index("finding")
    effect = found.loc["impressions after the clicks", "effect"]
    assert (
        "half of the 100 within 600 s came at most 50s before it, 90 % at most 90s, 99 % at most "
        "99s" in effect
    )
    assert 'clock_skew="99s"' in effect
    kept = rd.from_impressions(log, time_col="time", clicks=clicks, clock_skew="99s")
    assert kept.events["attributed"].tolist() == [99]
    numbers = [
        frame.assign(time=[0] * 101 if frame is log else [-one for one in seconds])
        for frame in (log, clicks)
    ]
    found = rd.logs.check_log(numbers[0], time_col="time", clicks=numbers[1]).set_index("finding")
    assert "half came at most 51 before it" in found.loc["impressions after the clicks", "effect"]

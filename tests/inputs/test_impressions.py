"""`from_impressions`: equal to plain loops over small logs, and every rule that the docstring states."""

import json
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles import impressions as oracle

import recdf as rd

START = pd.Timestamp("2026-09-01 10:00")
SMALL = st.integers(0, 3)
LOG = st.lists(
    st.fixed_dictionaries(
        {"user": SMALL, "session": st.integers(0, 2), "item": SMALL, "time": st.integers(0, 12), "position": SMALL}
    ),
    max_size=20,
)
CLICKS = st.lists(st.fixed_dictionaries({"user": SMALL, "item": SMALL, "time": st.integers(0, 12)}), max_size=8)
PURCHASES = st.lists(
    st.fixed_dictionaries({"user": SMALL, "item": SMALL, "time": st.integers(0, 12), "price": st.integers(0, 9)}),
    max_size=8,
)
NAMES = {"user": "user_id", "item": "item_id", "session": "session_id"}


def frame(rows, columns):
    """Rows of the oracle as a frame with times in minutes after START."""
    found = pd.DataFrame(rows, columns=columns).rename(columns=NAMES)
    return found.assign(time=START + pd.to_timedelta(found["time"].astype("int64"), unit="min"))


def frames(log, clicks, purchases):
    return (
        frame(log, ["user", "session", "item", "time", "position"]),
        frame(clicks, ["user", "item", "time"]),
        frame(purchases, ["user", "item", "time", "price"]).astype({"price": float}),
    )


def quietly(*args, **options):
    """from_impressions without the warning that no event belongs to an impression, which small logs often get."""
    with warnings.catch_warnings():
        for category in (rd.NoOverlapWarning, rd.DuplicateWarning):
            warnings.simplefilter("ignore", category)
        return rd.from_impressions(*args, **options)


def as_dicts(found, each=False):
    """The two tables in the form of the oracle."""
    keys = ["user_id", "session_id", "item_id"]
    numbers = ["relevance", "clicks", "purchases", "price"]
    rows = range(len(found.true))
    true = {
        (*key, *([row] if each else [])): values
        for row, key, values in zip(
            rows,
            found.true[keys].itertuples(index=False, name=None),
            found.true[numbers].to_numpy().tolist(),
            strict=True,
        )
    }
    pred = {
        (*key, *([row] if each else [])): values
        for row, key, values in zip(
            rows,
            found.pred[keys].itertuples(index=False, name=None),
            found.pred[["rank", "position"]].itertuples(index=False, name=None),
            strict=False,
        )
    }
    return true, pred


@given(
    log=LOG,
    clicks=CLICKS,
    purchases=PURCHASES,
    window=st.sampled_from([None, 0, 3]),
    attribution=st.sampled_from(["last", "first", "all"]),
    repeats=st.sampled_from(["first", "last", "each"]),
    skew=st.sampled_from([0, 2]),
)
def test_equals_a_plain_loop(log, clicks, purchases, window, attribution, repeats, skew):
    rules = {"attribution": attribution, "repeats": repeats}
    true, pred, counts = oracle.tables(log, clicks, purchases, window=window, skew=skew, **rules)
    found = quietly(
        frames(log, clicks, purchases)[0],
        clicks=frames(log, clicks, purchases)[1],
        purchases=frames(log, clicks, purchases)[2],
        time_col="time",
        value_col="price",
        window=None if window is None else f"{window}min",
        clock_skew=f"{skew}min",
        **rules,
    )
    mine_true, mine_pred = as_dicts(found, repeats == "each")
    assert mine_pred == pred
    assert mine_true.keys() == true.keys()
    for key, values in true.items():
        assert mine_true[key] == pytest.approx(values, rel=1e-12)
    assert found.events["attributed"].tolist() == [counts["clicks"], counts["purchases"]]
    assert found.events["events"].tolist() == [len(clicks), len(purchases)]
    reasons = found.events[["attributed", "never_shown", "before_impression", "outside_window"]]
    assert reasons.sum(axis=1).tolist() == [len(clicks), len(purchases)]


@given(log=LOG, clicks=CLICKS, purchases=PURCHASES, window=st.sampled_from([None, 0, 3]))
def test_what_belongs_to_no_impression_stays_in_true(log, clicks, purchases, window):
    true, pred, _ = oracle.tables(log, clicks, purchases, window=window, unattributed="true")
    log_frame, click_frame, purchase_frame = frames(log, clicks, purchases)
    found = quietly(
        log_frame,
        clicks=click_frame,
        purchases=purchase_frame,
        time_col="time",
        value_col="price",
        window=None if window is None else f"{window}min",
        unattributed="true",
    )
    mine_true, mine_pred = as_dicts(found)
    assert len(mine_true) == len(found.true)
    assert (mine_true, mine_pred) == (true, pred)
    left = found.events[["kept_in_true", "shown_in_list", "without_list"]].sum(axis=1) + found.events["attributed"]
    assert left.tolist() == [len(clicks), len(purchases)]


@given(log=LOG, purchases=PURCHASES, seed=st.integers(0, 9))
def test_the_order_of_rows_does_not_matter(log, purchases, seed):
    """Where no two impressions of an item have the same time, and no two positions of a list are equal."""
    log = [{**row, "time": i % 7 * 2, "position": i} for i, row in enumerate(log[:7])]
    log_frame, _, purchase_frame = frames(log, [], purchases)
    options = {"purchases": purchase_frame, "time_col": "time", "value_col": "price"}
    expected = quietly(log_frame, **options)
    rng = np.random.default_rng(seed)
    shuffled = log_frame.take(rng.permutation(len(log_frame)))
    options["purchases"] = purchase_frame.take(rng.permutation(len(purchase_frame)))
    found = quietly(shuffled, **options)
    for one, two in zip(expected, found, strict=True):
        keys = ["user_id", "session_id", "item_id"]
        pd.testing.assert_frame_equal(
            one.sort_values(keys, ignore_index=True), two.sort_values(keys, ignore_index=True), check_flags=False
        )


# ---------------------------------------------------------------------------------------------- rules by hand


def log_of(**columns):
    """Three impressions of ann, two of them in one list, and one of bob."""
    found = pd.DataFrame(
        {
            "user_id": ["ann", "ann", "ann", "bob"],
            "session_id": [1, 1, 2, 1],
            "item_id": ["tea", "mug", "tea", "tea"],
            "position": [0, 3, 0, 1],
            "time": START + pd.to_timedelta([0, 0, 60, 0], unit="min"),
        }
    )
    return found.assign(**columns)


def bought(minutes, item="tea", user="ann", price=5.0):
    return pd.DataFrame(
        {"user_id": [user], "item_id": [item], "time": [START + pd.Timedelta(minutes, "min")], "price": [price]}
    )


@pytest.mark.parametrize(
    ("attribution", "window", "minutes", "expected"),
    [
        ("last", None, 70, [0, 0, 1, 0]),
        ("first", None, 70, [1, 0, 0, 0]),
        ("all", None, 70, [0.5, 0, 0.5, 0]),
        ("first", "30min", 70, [0, 0, 1, 0]),
        ("last", "10min", 70, [0, 0, 1, 0]),
        ("last", None, 60, [0, 0, 1, 0]),
        ("last", None, 59, [1, 0, 0, 0]),
    ],
)
def test_attribution(attribution, window, minutes, expected):
    true, _ = rd.from_impressions(
        log_of(), time_col="time", purchases=bought(minutes), attribution=attribution, window=window
    )
    assert true["purchases"].tolist() == expected


def test_relevance_is_that_of_the_deepest_event_and_value_is_what_was_paid():
    clicks = pd.concat([bought(1), bought(2), bought(1, "mug")])[["user_id", "item_id", "time"]]
    purchases = pd.concat([bought(3, price=4.0), bought(4, price=2.5)])
    log = log_of(price=[9.0, 8.0, 9.0, 9.0])
    found = rd.from_impressions(log, time_col="time", clicks=clicks, purchases=purchases, value_col="price")
    assert found.true["relevance"].tolist() == [3.0, 1.0, 0.0, 0.0]
    assert found.true["clicks"].tolist() == [2.0, 1.0, 0.0, 0.0]
    assert found.true["purchases"].tolist() == [2.0, 0.0, 0.0, 0.0]
    assert found.true["price"].tolist() == [6.5, 0.0, 0.0, 0.0]
    assert found.pred["price"].tolist() == [6.5, 0.0, 0.0, 0.0]
    assert found.pred["price_shown"].tolist() == [9.0, 8.0, 9.0, 9.0]
    result = rd.evaluate(
        *found,
        ["hits@10", "revenue@10", "ndcg@10"],
        user_col=["user_id", "session_id"],
        relevance_col="relevance",
        value_col="price",
    )
    assert result.per_user["hits@10"].tolist() == [2.0, 0.0, 0.0]
    assert result.per_user["revenue@10"].tolist() == [6.5, 0.0, 0.0]
    assert result.per_user["n_pred"].tolist() == [2, 1, 1]


def test_value_as_shown_counts_each_purchase_at_the_price_of_its_impression():
    log = log_of(price=[9.0, 8.0, 7.0, 9.0])
    purchases = pd.concat([bought(3), bought(70), bought(80)])
    true, pred = rd.from_impressions(
        log, time_col="time", purchases=purchases, value_col="price", value="shown", attribution="last"
    )
    assert true["price"].tolist() == pred["price"].tolist() == [9.0, 0.0, 14.0, 0.0]


def test_levels_of_relevance():
    log = log_of(clicked=[True, False, False, False])
    options = {"clicked_col": "clicked", "relevance": {"clicked": 2}}
    true, pred = rd.from_impressions(log, **options)
    assert true["relevance"].tolist() == [2.0, 0.0, 0.0, 0.0]
    assert "clicked" not in pred.columns
    true, _ = rd.from_impressions(log.assign(clicked=[0, 3, 0, 1]), **options)
    assert true["clicks"].tolist() == [0.0, 3.0, 0.0, 1.0]


def test_positions_stay_and_ranks_have_no_holes():
    found = rd.from_impressions(log_of(clicked=False), clicked_col="clicked")
    assert found.pred["position"].tolist() == [0, 3, 0, 1]
    assert found.pred["rank"].tolist() == [1, 2, 1, 1]
    positions = {"column": "position", "start": 0.0, "lists_with_holes": 1, "lists_with_ties": 0}
    assert found.spec["positions"] == positions


def test_a_position_column_named_rank_is_kept_as_position():
    log = log_of(clicked=False).rename(columns={"position": "rank"})
    _, pred = rd.from_impressions(log, clicked_col="clicked", rank_col="rank")
    assert (pred["position"].tolist(), pred["rank"].tolist()) == ([0, 3, 0, 1], [1, 2, 1, 1])


def test_without_positions_a_list_is_ranked_by_time():
    log = log_of(clicked=False, session_id=1, time=START + pd.to_timedelta([5, 3, 4, 0], unit="s"))
    _, pred = rd.from_impressions(log, clicked_col="clicked", rank_col=None, time_col="time", repeats="each")
    assert pred["rank"].tolist() == [3, 1, 2, 1]
    _, pred = rd.from_impressions(log, clicked_col="clicked", rank_col=None, repeats="each")
    assert pred["rank"].tolist() == [1, 2, 3, 1]


@pytest.mark.parametrize(
    ("repeats", "position", "clicks"), [("first", [3, 4, 1], [0, 3, 0]), ("last", [3, 2, 1], [0, 3, 0])]
)
def test_an_item_shown_twice_in_a_list(repeats, position, clicks):
    """One impression stands for both, with the clicks of both; row 0 is shown after row 2."""
    log = log_of(
        session_id=1, position=[2, 3, 4, 1], time=START + pd.to_timedelta([9, 0, 1, 0], unit="s"), n_clicks=[1, 0, 2, 0]
    )
    found = rd.from_impressions(log, clicked_col="n_clicks", time_col="time", repeats=repeats)
    order = [1, 2, 3] if repeats == "first" else [0, 1, 3]
    assert found.pred["item_id"].tolist() == log["item_id"].take(order).tolist()
    assert dict(zip(found.pred["position"], found.true["clicks"], strict=True)) == dict(
        zip(log["position"].take(order), [0, 3, 0] if repeats == "first" else [3, 0, 0], strict=True)
    )
    assert found.spec["counts"]["repeated"] == 1


def test_a_click_on_a_later_impression_of_the_same_item():
    """Each impression stays, but `true` cannot say which of them was clicked; a warning counts such lists."""
    log = pd.DataFrame({
        "user_id": ["ann"] * 3 + ["bob"] * 2,
        "session_id": 1,
        "item_id": ["tea", "mug", "tea", "tea", "tea"],
        "position": [1, 2, 3, 1, 2],
    })
    options = {"clicked_col": "clicked", "repeats": "each"}
    with pytest.warns(rd.DuplicateWarning, match="in 1 of 2 lists a later impression"):
        found = rd.from_impressions(log.assign(clicked=[0, 0, 1, 1, 0]), **options)
    assert found.spec["counts"]["better_later"] == 1
    key = ["user_id", "session_id"]
    result = rd.evaluate(*found, ["hits@3", "mrr@3"], user_col=key, duplicates="keep")
    assert result.per_user["hits@3"].tolist() == [1.0, 1.0]  # right
    assert result.per_user["mrr@3"].tolist() == [1.0, 1.0]  # ann's click was at rank 3
    quiet = rd.from_impressions(log.assign(clicked=[1, 0, 1, 1, 0]), **options)
    assert quiet.spec["counts"]["better_later"] == 0


def test_what_was_paid_for_a_later_impression_of_the_same_item_counts():
    log = pd.DataFrame({
        "user_id": "ann", "session_id": 1, "item_id": ["tea", "mug", "tea", "tea"], "position": [1, 2, 3, 4],
        "time": [10, 10, 10, 20],
    })  # fmt: skip
    bought = pd.DataFrame({"user_id": "ann", "item_id": ["tea"], "time": [25], "price": [8.0]})
    with pytest.warns(rd.DuplicateWarning, match="later impression"):
        lists = rd.from_impressions(log, time_col="time", purchases=bought, value_col="price", repeats="each")
    assert lists.true["price"].tolist() == [0, 0, 0, 8]
    options = {"user_col": ["user_id", "session_id"], "value_col": "price", "duplicates": "keep"}
    found = rd.evaluate(*lists, ["revenue@9", "bought@9"], **options).per_user
    assert found[["revenue@9", "bought@9"]].to_numpy().tolist() == [[8.0, 1.0]]


def test_users_without_impressions_stay_apart_in_clicks_and_purchases():
    """With one list per user, each of them has a list of their own in `true`."""
    log = pd.DataFrame({"user_id": ["a"], "item_id": ["x"], "position": [1], "time": [0]})
    clicks = pd.DataFrame({"user_id": ["u3", "u4", "u5", "a"], "item_id": ["y", "y", "y", "x"], "time": 5})
    bought = pd.DataFrame({"user_id": ["u5", "u3", "u9", "a"], "item_id": ["y", "y", "y", "x"], "time": 6})
    options = {"list_cols": (), "unattributed": "true", "time_col": "time"}
    true, _ = rd.from_impressions(log, clicks=clicks, purchases=bought, **options)
    found = true.set_index("user_id")[["clicks", "purchases"]].astype(int)
    assert found.to_dict("index") == {
        "a": {"clicks": 1, "purchases": 1},
        "u3": {"clicks": 1, "purchases": 1},
        "u4": {"clicks": 1, "purchases": 0},
        "u5": {"clicks": 1, "purchases": 1},
        "u9": {"clicks": 0, "purchases": 1},
    }


def test_metrics_of_events_that_were_not_given_are_refused():
    log = log_of()
    lists = rd.from_impressions(log, time_col="time", purchases=bought(70))
    key = {"user_col": ["user_id", "session_id"]}
    with pytest.raises(rd.DataError, match="no column 'clicks'"):
        rd.evaluate(*lists, "ctr@3", **key)
    assert rd.evaluate(*lists, "conversion@3", **key).per_user["conversion@3"].max() > 0


def test_a_gap_of_zero_separates_all_times():
    log = log_of(time=[0, 0, 7, 0], clicked=1).drop(columns="session_id")
    true, _ = rd.from_impressions(log, clicked_col="clicked", time_col="time", session_gap=0)
    assert true["session_id"].tolist() == [1, 1, 2, 1]


def test_events_that_name_no_list_leave_session_ids_integers():
    log = pd.DataFrame({"user_id": ["a"], "session_id": [1], "item_id": ["x"], "position": [1], "time": [0]})
    clicks = pd.DataFrame({"user_id": "a", "session_id": [None, 1.0], "item_id": ["y", "x"], "time": 5})
    true, _ = rd.from_impressions(log, time_col="time", clicks=clicks, unattributed="true")
    assert true["session_id"].dtype == np.int64
    assert true[["session_id", "item_id"]].to_numpy().tolist() == [[1, "x"], [1, "y"]]


def test_the_options_evaluate_the_tables():
    log = log_of().rename(columns={"user_id": "who", "item_id": "what"})
    sold = bought(70).rename(columns={"user_id": "who", "item_id": "what"})
    names = {"user_col": "who", "item_col": "what", "time_col": "time", "value_col": "price"}
    lists = rd.from_impressions(log, purchases=sold, repeats="each", **names)
    found = rd.evaluate(*lists, ["bought@9", "revenue@9"], **lists.options).per_user
    assert found[["who", "session_id", "bought@9", "revenue@9"]].to_numpy().tolist() == [
        ["ann", 1, 0.0, 0.0],
        ["ann", 2, 1.0, 5.0],
        ["bob", 1, 0.0, 0.0],
    ]


def test_sessions_by_a_gap():
    log = log_of(clicked=[True, False, False, True]).drop(columns="session_id")
    for gap, expected in (("60min", [1, 1, 1, 1]), ("59min", [1, 1, 2, 1])):
        true, pred = rd.from_impressions(
            log, clicked_col="clicked", time_col="time", session_gap=gap, repeats="each"
        )
        assert pred["session_id"].tolist() == true["session_id"].tolist() == expected


def test_sessions_by_a_gap_within_other_columns():
    log = log_of(clicked=False, variant=["A", "B", "B", "A"]).drop(columns="session_id")
    _, pred = rd.from_impressions(
        log, clicked_col="clicked", time_col="time", session_gap="2h", list_cols="variant", repeats="each"
    )
    assert pred.columns[:4].tolist() == ["user_id", "variant", "session_id", "item_id"]
    assert pred["session_id"].tolist() == [1, 1, 1, 1]
    assert pred["rank"].tolist() == [1, 2, 1, 1]


def test_one_list_per_user():
    found = rd.from_impressions(
        log_of(),
        list_cols=(),
        time_col="time",
        purchases=pd.concat([bought(70), bought(5, user="eve"), bought(-5, user="bob")]),
        unattributed="true",
    )
    assert found.true.drop(columns="relevance").to_dict("list") == {
        "user_id": ["ann", "ann", "bob", "eve"],
        "item_id": ["tea", "mug", "tea", "tea"],
        "purchases": [1.0, 0.0, 0.0, 1.0],
    }
    assert found.events.loc[0, ["kept_in_true", "shown_in_list", "without_list"]].tolist() == [1, 1, 0]


def test_an_event_without_an_impression_stays_in_the_list_that_it_names():
    events = pd.concat([bought(70, "pen"), bought(70, "pen", "eve"), bought(70, "pen"), bought(-9, "cup")])
    events["session_id"] = pd.array([1, 4, None, None], dtype="Int64")
    found = quietly(log_of(), time_col="time", purchases=events, unattributed="true", clicks=bought(1))
    added = found.true.iloc[4:]
    assert added[["user_id", "session_id", "item_id"]].to_numpy().tolist() == [
        ["ann", 1, "pen"],
        ["eve", 4, "pen"],
        ["ann", 2, "pen"],  # names no list: the last one that began before it
        ["ann", 1, "cup"],  # before all lists of its user: the first one
    ]
    assert added["relevance"].tolist() == [3.0] * 4


def test_recall_keeps_its_meaning():
    """ann bought two items, of which one was shown."""
    purchases = pd.concat([bought(5), bought(5, "pen")])
    options = {"list_cols": (), "time_col": "time", "purchases": purchases}
    recall = {}
    for rule in ("count", "true"):
        lists = rd.from_impressions(log_of(), unattributed=rule, **options)
        recall[rule] = rd.evaluate(*lists, "recall@10", relevance_col="relevance").per_user["recall@10"][0]
    assert recall == {"count": 1.0, "true": 0.5}


# ------------------------------------------------------------------------------------- times, ids and frames


TIMES = {
    "seconds": lambda t: t.astype("datetime64[s]"),
    "nanoseconds": lambda t: t.astype("datetime64[ns]"),
    "objects": lambda t: pd.Series(list(t), dtype=object),
    "arrow": lambda t: t.astype(pd.ArrowDtype(pa.timestamp("ms"))),
}


@pytest.mark.parametrize("one", TIMES)
@pytest.mark.parametrize("two", TIMES)
def test_units_of_time_may_differ(one, two):
    log, purchases = log_of(), bought(60)
    log["time"], purchases["time"] = TIMES[one](log["time"]), TIMES[two](purchases["time"])
    true, _ = rd.from_impressions(log, time_col="time", purchases=purchases, window="0s")
    assert true["purchases"].tolist() == [0, 0, 1, 0]


def test_time_zones_may_differ():
    log, purchases = log_of(), bought(60)
    log["time"] = log["time"].dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    purchases["time"] = purchases["time"].dt.tz_localize("UTC").dt.tz_convert("America/New_York")
    true, _ = rd.from_impressions(log, time_col="time", purchases=purchases, window="0s")
    assert true["purchases"].tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("kind", ["int64", "float64", "Int64"])
def test_times_as_plain_numbers(kind):
    log, purchases = log_of(time=[0, 0, 60, 0]), bought(0).assign(time=60)
    log["time"] = log["time"].astype(kind)
    true, _ = rd.from_impressions(log, time_col="time", purchases=purchases, window=0)
    assert true["purchases"].tolist() == [0, 0, 1, 0]


def test_dates():
    log = log_of(time=pd.to_datetime(["2026-09-01"] * 4).date)
    purchases = bought(0).assign(time=pd.to_datetime(["2026-09-02"]).date)
    true, _ = rd.from_impressions(log, time_col="time", purchases=purchases, window="1D", attribution="all")
    assert true["purchases"].tolist() == [0.5, 0, 0.5, 0]


@pytest.mark.parametrize("kind", ["str", "category", "arrow"])
def test_ids_of_any_dtype(kind):
    dtype = pd.ArrowDtype(pa.large_string()) if kind == "arrow" else kind
    log = log_of().astype({"user_id": dtype, "item_id": dtype})
    true, pred = rd.from_impressions(log, time_col="time", purchases=bought(70))
    assert true["purchases"].tolist() == [0, 0, 1, 0]
    for name in ("user_id", "item_id"):
        assert pred[name].dtype == true[name].dtype == log[name].dtype


def test_arrow_streams():
    log, purchases = pa.Table.from_pandas(log_of()), pa.Table.from_pandas(bought(70))
    true, _ = rd.from_impressions(log, time_col="time", purchases=purchases)
    assert true["purchases"].tolist() == [0, 0, 1, 0]


def test_inputs_are_not_modified():
    log, purchases = log_of(), bought(70)
    copies = log.copy(), purchases.copy()
    found = rd.from_impressions(log, time_col="time", purchases=purchases, value_col="price")
    for table in found:
        for name in table.columns:
            table.loc[:, name] = table[name].iloc[0]
    pd.testing.assert_frame_equal(log, copies[0])
    pd.testing.assert_frame_equal(purchases, copies[1])


def test_an_index_is_never_read():
    log = log_of().set_axis([7, 7, 3, 1])
    true, pred = rd.from_impressions(log, time_col="time", purchases=bought(70).set_axis([9]))
    assert true["purchases"].tolist() == [0, 0, 1, 0]
    assert isinstance(true.index, pd.RangeIndex)
    assert isinstance(pred.index, pd.RangeIndex)


def test_empty_frames():
    log, purchases = log_of(), bought(70)
    true, pred = rd.from_impressions(log, time_col="time", purchases=purchases[:0], value_col="price")
    assert (true["relevance"].sum(), true["price"].sum(), len(pred)) == (0, 0, 4)
    found = rd.from_impressions(log[:0], time_col="time", purchases=purchases, value_col="price")
    assert (len(found.true), len(found.pred), found.events["never_shown"].tolist()) == (0, 0, [1])


def test_rows_with_nulls_are_dropped_and_counted():
    log, purchases = log_of(), pd.concat([bought(70), bought(70, user=None)], ignore_index=True)
    log.loc[1, "time"] = pd.NaT
    log.loc[3, "position"] = np.nan
    found = rd.from_impressions(log, time_col="time", purchases=purchases, null_keys="drop")
    assert found.pred["item_id"].tolist() == ["tea", "tea"]
    assert found.spec["counts"]["null_rows"] == {"log": 2, "purchases": 1}


def test_the_spec_is_json_and_travels_with_the_tables():
    found = rd.from_impressions(log_of(), time_col="time", purchases=bought(70), window=pd.Timedelta("1h"))
    assert json.loads(json.dumps(found.spec)) == found.spec
    assert found.spec["counts"]["purchases"]["attributed"] == 1
    assert found.spec["window"] == "0 days 01:00:00"
    assert found.true.attrs["recdf_impressions"] == found.pred.attrs["recdf_impressions"] == found.spec
    assert "4 impressions in 3 lists" in repr(found)


# --------------------------------------------------------------------------------------------------- bad input


CLICKED = {"clicked_col": "clicked"}
BOUGHT = {"time_col": "time", "purchases": bought(70)}
NAIVE, ZONED = bought(70), bought(70).assign(time=lambda f: f["time"].dt.tz_localize("UTC"))
BAD = [
    ({}, {}, rd.OptionError, "nothing says what was relevant"),
    ({}, {"clicked_col": "x"}, rd.ColumnError, "log has no column 'x'"),
    ({}, {**BOUGHT, "time_col": None}, rd.OptionError, "purchases= needs time_col="),
    ({}, {**CLICKED, "session_gap": "30min"}, rd.OptionError, "session_gap= needs time_col="),
    ({}, {**CLICKED, "window": "24h"}, rd.OptionError, "window= is about events"),
    ({}, {**CLICKED, "clicks": bought(1), "time_col": "time"}, rd.OptionError, "would count twice"),
    ({}, {**CLICKED, "value_col": "price"}, rd.OptionError, "pass purchases="),
    ({}, {**CLICKED, "attribution": "middle"}, rd.OptionError, "attribution"),
    ({}, {**CLICKED, "relevance": {"seen": 1}}, rd.OptionError, "relevance has 'seen'"),
    ({}, {**CLICKED, "relevance": {"clicked": -1}}, rd.OptionError, "expected a finite number"),
    ({}, {**CLICKED, "list_cols": "user_id"}, rd.OptionError, "'user_id' is named for two purposes"),
    ({}, {**CLICKED, "session_gap": "30min", "time_col": "time"}, rd.OptionError, "session_gap makes one"),
    ({"session_id": None}, CLICKED, rd.NullKeyError, "4 in log['session_id']"),
    ({"position": np.nan}, CLICKED, rd.DataError, "4 in log['position']"),
    ({"clicked": None}, CLICKED, rd.DataError, "where null means no click"),
    ({"clicked": -1}, CLICKED, rd.DataError, "negative"),
    ({"clicked": "yes"}, CLICKED, rd.DataError, "expected numbers"),
    ({"rank": 1}, CLICKED, rd.DataError, "log has a column 'rank'"),
    ({"user_id": 5}, BOUGHT, rd.IdTypeError, "purchases['user_id'] string ids"),
    ({"time": "2026-09-01"}, BOUGHT, rd.DataError, "pd.to_datetime(log['time'])"),
    ({"time": 7}, BOUGHT, rd.DataError, "turn the numbers into datetimes"),
    ({}, {**BOUGHT, "purchases": ZONED}, rd.DataError, "log['time'].dt.tz_localize"),
    ({}, {**BOUGHT, "window": 24}, rd.OptionError, 'write window="24s"'),
    ({}, {**BOUGHT, "window": "a day"}, rd.OptionError, "is no span of time"),
    ({}, {**BOUGHT, "window": "2"}, rd.OptionError, "window='2' has no unit"),
    ({}, {**BOUGHT, "clock_skew": "1.5"}, rd.OptionError, "clock_skew='1.5' has no unit"),
    ({"clicked": 0.5}, {"clicked_col": "clicked"}, rd.DataError, "4 fractions"),
    ({}, {**BOUGHT, "window": "-1h"}, rd.OptionError, "not negative"),
    ({}, {**BOUGHT, "value_col": "cost"}, rd.ColumnError, "purchases has no column 'cost'"),
    ({}, {**BOUGHT, "purchases": NAIVE.assign(price=None), "value_col": "price"}, rd.DataError, "null or infinite"),
    ({}, {**BOUGHT, "purchases": {"ann": ["tea"]}}, TypeError, "purchases is a mapping"),
    ({}, {**BOUGHT, "purchases": NAIVE.assign(item_id=None)}, rd.NullKeyError, "purchases has null ids"),
]


@pytest.mark.parametrize(("columns", "options", "error", "words"), BAD, ids=[row[3] for row in BAD])
def test_bad_input(columns, options, error, words):
    log = log_of(**{"clicked": True, **columns})
    with pytest.raises(error) as found:
        rd.from_impressions(log, **options)
    assert words in str(found.value)


@pytest.mark.parametrize(
    ("drop", "words"), [("session_id", "pass list_cols=() for one list per user"), ("position", "pass rank_col=None")]
)
def test_a_missing_column_names_the_way_out(drop, words):
    with pytest.raises(rd.ColumnError) as found:
        rd.from_impressions(log_of(clicked=True).drop(columns=drop), clicked_col="clicked")
    assert words in str(found.value)


def test_numbers_for_times_need_a_number_for_the_window():
    options = {"time_col": "time", "purchases": bought(0).assign(time=60)}
    with pytest.raises(rd.OptionError, match="the times are plain numbers"):
        rd.from_impressions(log_of(time=0), window="24h", **options)


def test_times_of_mixed_zones_in_one_column():
    zones = ["UTC", "Asia/Tokyo", "UTC", None]
    times = [pd.Timestamp("2026-09-01", tz=zone) for zone in zones]
    log = log_of(time=pd.Series(times, dtype=object))
    with pytest.raises(rd.DataError, match="utc=True"):
        rd.from_impressions(log, **BOUGHT)


def test_events_none_of_which_belongs_to_an_impression_are_a_warning():
    with pytest.warns(rd.NoOverlapWarning, match="none of the 1 purchases belongs to an impression .1 never_shown"):
        rd.from_impressions(log_of(), time_col="time", purchases=bought(70, "cup"))

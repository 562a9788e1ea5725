"""`from_impressions`: every rule that the docstring states, on logs that were worked by hand."""

import numpy as np
import pandas as pd
import pytest
from logs.impression_logs import START, bought, log_of, quietly

import recdf as rd

# ----------------------------------------------------------------------------------------------
# rules by hand


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
    found = rd.from_impressions(
        log, time_col="time", clicks=clicks, purchases=purchases, value_col="price"
    )
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
        log,
        time_col="time",
        purchases=purchases,
        value_col="price",
        value="shown",
        attribution="last",
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
    log["item_id"] = ["tea", "mug", "cup", "tea"]
    _, pred = rd.from_impressions(log, clicked_col="clicked", rank_col=None, time_col="time")
    assert pred["rank"].tolist() == [3, 1, 2, 1]
    _, pred = rd.from_impressions(log, clicked_col="clicked", rank_col=None)
    assert pred["rank"].tolist() == [1, 2, 3, 1]


def test_an_item_shown_twice_in_a_list():
    """The first impression stands for both, with the clicks of both; row 0 is shown after row
    2."""
    log = log_of(
        session_id=1,
        position=[2, 3, 4, 1],
        time=START + pd.to_timedelta([9, 0, 1, 0], unit="s"),
        n_clicks=[1, 0, 2, 0],
    )
    found = rd.from_impressions(log, clicked_col="n_clicks", time_col="time")
    assert found.pred["item_id"].tolist() == log["item_id"].take([1, 2, 3]).tolist()
    assert found.pred["position"].tolist() == [3, 4, 1]
    assert found.true["clicks"].tolist() == [0, 3, 0]
    assert found.spec["counts"]["repeated"] == 1


def test_users_without_impressions_stay_apart_in_clicks_and_purchases():
    """With one list per user, each of them has a list of their own in `true`."""
    log = pd.DataFrame({"user_id": ["a"], "item_id": ["x"], "position": [1], "time": [0]})
    clicks = pd.DataFrame(
        {"user_id": ["u3", "u4", "u5", "a"], "item_id": ["y", "y", "y", "x"], "time": 5}
    )
    bought = pd.DataFrame(
        {"user_id": ["u5", "u3", "u9", "a"], "item_id": ["y", "y", "y", "x"], "time": 6}
    )
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
    log = pd.DataFrame(
        {"user_id": ["a"], "session_id": [1], "item_id": ["x"], "position": [1], "time": [0]}
    )
    clicks = pd.DataFrame(
        {"user_id": "a", "session_id": [None, 1.0], "item_id": ["y", "x"], "time": 5}
    )
    true, _ = rd.from_impressions(log, time_col="time", clicks=clicks, unattributed="true")
    assert true["session_id"].dtype == np.int64
    assert true[["session_id", "item_id"]].to_numpy().tolist() == [[1, "x"], [1, "y"]]


def test_the_options_evaluate_the_tables():
    log = log_of().rename(columns={"user_id": "who", "item_id": "what"})
    sold = bought(70).rename(columns={"user_id": "who", "item_id": "what"})
    names = {"user_col": "who", "item_col": "what", "time_col": "time", "value_col": "price"}
    lists = rd.from_impressions(log, purchases=sold, **names)
    found = rd.evaluate(*lists, ["bought@9", "revenue@9"], **lists.options).per_user
    assert found[["who", "session_id", "bought@9", "revenue@9"]].to_numpy().tolist() == [
        ["ann", 1, 0.0, 0.0],
        ["ann", 2, 1.0, 5.0],
        ["bob", 1, 0.0, 0.0],
    ]


def test_sessions_by_a_gap():
    log = log_of(clicked=[True, False, False, True]).drop(columns="session_id")
    log["item_id"] = ["tea", "mug", "cup", "tea"]
    for gap, expected in (("60min", [1, 1, 1, 1]), ("59min", [1, 1, 2, 1])):
        true, pred = rd.from_impressions(
            log, clicked_col="clicked", time_col="time", session_gap=gap
        )
        assert pred["session_id"].tolist() == true["session_id"].tolist() == expected


def test_sessions_by_a_gap_within_other_columns():
    log = log_of(clicked=False, variant=["A", "B", "B", "A"]).drop(columns="session_id")
    _, pred = rd.from_impressions(
        log,
        clicked_col="clicked",
        time_col="time",
        session_gap="2h",
        list_cols="variant",
    )
    assert pred.columns[:4].tolist() == ["user_id", "variant", "session_id", "item_id"]
    assert pred["session_id"].tolist() == [1, 1, 1, 1]
    assert pred["rank"].tolist() == [1, 2, 1, 1]


def test_one_list_per_user():
    found = quietly(
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
    assert found.events.loc[0, ["kept_in_true", "shown_in_list", "without_list"]].tolist() == [
        1,
        1,
        0,
    ]


def test_an_event_without_an_impression_stays_in_the_list_that_it_names():
    events = pd.concat(
        [bought(70, "pen"), bought(70, "pen", "eve"), bought(70, "pen"), bought(-9, "cup")]
    )
    events["session_id"] = pd.array([1, 4, None, None], dtype="Int64")
    found = quietly(
        log_of(), time_col="time", purchases=events, unattributed="true", clicks=bought(1)
    )
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
        recall[rule] = rd.evaluate(*lists, "recall@10", relevance_col="relevance").per_user[
            "recall@10"
        ][0]
    assert recall == {"count": 1.0, "true": 0.5}


@pytest.mark.parametrize("name", ["rank", "relevance", "clicks", "purchases"])
def test_what_was_paid_overwrites_nothing(name):
    log = pd.DataFrame({"user_id": [1], "item_id": 1, "position": 1, "time": 1})
    bought = pd.DataFrame({"user_id": [1], "item_id": 1, "time": 2, name: 9.0})
    with pytest.raises(rd.OptionError, match=f"'{name}' is a column that from_impressions writes"):
        rd.from_impressions(log, list_cols=(), time_col="time", purchases=bought, value_col=name)

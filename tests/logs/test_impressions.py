"""`from_impressions`: equal to plain loops over small logs, whatever the order of their rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs.impression_logs import START, quietly
from oracles import impressions as oracle

SMALL = st.integers(0, 3)
LOG = st.lists(
    st.fixed_dictionaries(
        {
            "user": SMALL,
            "session": st.integers(0, 2),
            "item": SMALL,
            "time": st.integers(0, 12),
            "position": SMALL,
        }
    ),
    max_size=20,
)
CLICKS = st.lists(
    st.fixed_dictionaries({"user": SMALL, "item": SMALL, "time": st.integers(0, 12)}), max_size=8
)
PURCHASES = st.lists(
    st.fixed_dictionaries(
        {"user": SMALL, "item": SMALL, "time": st.integers(0, 12), "price": st.integers(0, 9)}
    ),
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


def as_dicts(found):
    """The two tables in the form of the oracle."""
    keys = ["user_id", "session_id", "item_id"]
    numbers = ["relevance", "clicks", "purchases", "price"]
    true = zip(
        found.true[keys].itertuples(index=False, name=None),
        found.true[numbers].to_numpy().tolist(),
        strict=True,
    )
    pred = zip(
        found.pred[keys].itertuples(index=False, name=None),
        found.pred[["rank", "position"]].itertuples(index=False, name=None),
        strict=True,
    )
    return dict(true), dict(pred)


@pytest.mark.long
@given(
    log=LOG,
    clicks=CLICKS,
    purchases=PURCHASES,
    window=st.sampled_from([None, 0, 3]),
    attribution=st.sampled_from(["last", "first", "all"]),
    skew=st.sampled_from([0, 2]),
)
def test_equals_a_plain_loop(log, clicks, purchases, window, attribution, skew):
    rules = {"attribution": attribution}
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
    mine_true, mine_pred = as_dicts(found)
    assert mine_pred == pred
    assert mine_true.keys() == true.keys()
    for key, values in true.items():
        assert mine_true[key] == pytest.approx(values, rel=1e-12)
    assert found.events["attributed"].tolist() == [counts["clicks"], counts["purchases"]]
    assert found.events["events"].tolist() == [len(clicks), len(purchases)]
    reasons = found.events[["attributed", "never_shown", "before_impression", "outside_window"]]
    assert reasons.sum(axis=1).tolist() == [len(clicks), len(purchases)]


@pytest.mark.long
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
    left = (
        found.events[["kept_in_true", "shown_in_list", "without_list"]].sum(axis=1)
        + found.events["attributed"]
    )
    assert left.tolist() == [len(clicks), len(purchases)]


@pytest.mark.long
@given(log=LOG, purchases=PURCHASES, seed=st.integers(0, 9))
def test_the_order_of_rows_does_not_matter(log, purchases, seed):
    """Where no two impressions of an item have the same time, and no two positions of a list are
    equal."""
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
            one.sort_values(keys, ignore_index=True),
            two.sort_values(keys, ignore_index=True),
            check_flags=False,
        )

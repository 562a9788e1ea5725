"""Fairness by hand, with exposures and chances that can be counted."""

import math

import pandas as pd
import pytest
from close import close

import recdf as rd

# Examples are small, so that side tables lack much of them.
pytestmark = pytest.mark.filterwarnings("ignore::recdf.UnknownWarning")

ITEMS = pd.DataFrame({"item_id": list("abcd"), "group": ["own", "own", "partner", None]})
PRED = {1: ["a", "c"], 2: ["c", "d"], 3: ["b", "a"]}


def test_exposure_share():
    second = 1 / math.log2(3)
    own, partner = 1 + 1 + second, second + 1
    found = rd.exposure_share(PRED, 2, items=ITEMS)
    assert found == {"own": close(own / (own + partner)), "partner": close(partner / (own + partner))}
    assert sum(found.values()) == close(1.0)
    assert rd.exposure_share(PRED, 2, items=ITEMS, discount="none") == close({"own": 3 / 5, "partner": 2 / 5})
    result = rd.evaluate(None, PRED, "exposure_share", k=2, items=ITEMS, users="pred")
    assert result.summary["metric"].tolist() == ["exposure_share[own]", "exposure_share[partner]"]
    assert result.spec["counts"]["pred_without_group"] == 1


def test_exposure_ratio():
    true = {1: ["a"], 2: ["c", "d"], 3: ["b"]}
    found = rd.exposure_ratio(true, PRED, 2, items=ITEMS, discount="none")
    assert found == close({"own": (3 / 5) / (2 / 3), "partner": (2 / 5) / (1 / 3)})
    of_catalogue = {"items": ITEMS, "discount": "none", "relative_to": "catalogue"}
    assert rd.exposure_ratio(None, PRED, 2, **of_catalogue) == close(
        {"own": (3 / 5) / (2 / 3), "partner": (2 / 5) / (1 / 3)}
    )
    with pytest.raises(rd.OptionError, match="needs true="):
        rd.exposure_ratio(None, PRED, 2, items=ITEMS)
    with pytest.raises(rd.ColumnError, match="items has no column 'brand'"):
        rd.exposure_share(PRED, 2, items=ITEMS, group_col="brand")


@pytest.mark.filterwarnings("ignore:log= has no item")
def test_equal_chances_are_fair():
    true = {1: ["a", "c"], 2: ["a", "c"]}
    pred = {1: ["a", "c"], 2: ["x", "y"]}
    assert rd.pop_reo(true, pred, 2, log={9: ["x"]}, items=ITEMS, group_col="group") == 0.0
    # own: 2 of 4 relevant shown, partner: none.
    assert rd.pop_reo(true, {1: ["a"], 2: ["a"]}, 2, log={9: ["x"]}, items=ITEMS, group_col="group") == close(1.0)
    with pytest.warns(rd.NoOverlapWarning):
        assert math.isnan(rd.pop_reo(true, {1: ["x"]}, 2, log={9: ["x"]}, items=ITEMS, group_col="group"))


def test_pop_rsp_by_hand():
    log = pd.DataFrame({"user_id": [1, 2, 3, 4, 4], "item_id": ["a", "a", "a", "a", "b"]})
    pred = {1: ["b"], 4: ["a"], 9: ["a"]}
    # a, the head: had by 1 and 4, so one pair, shown once. b, the tail: had by 4, so two pairs, shown once.
    mean, half = (1 + 1 / 2) / 2, (1 - 1 / 2) / 2
    assert rd.pop_rsp(log, pred, 1) == close(half / mean)
    # Items nobody has had are of the tail as soon as the catalogue knows them.
    p_tail = 1 / (2 + 3)
    assert rd.pop_rsp(log, pred, 1, items=list("abz")) == close(((1 - p_tail) / 2) / ((1 + p_tail) / 2))


def test_arp_ratio():
    log = {1: ["a"], 2: ["a", "b"], 3: ["a"]}
    found = rd.arp_ratio.per_user(log, {1: ["b"], 2: ["a"], 8: ["a"]}).iloc[:, 1]
    assert found.tolist() == close([1 / 3, 1 / ((1 + 1 / 3) / 2), math.nan])


def test_user_gap():
    true, pred = {u: ["a"] for u in range(6)}, {0: ["a"], 1: ["a"], 2: ["x", "a"], 3: ["x", "a"], 4: ["x"], 5: ["a"]}
    result = rd.evaluate(true, pred, ["mrr", "hitrate"], k=2)
    segments = pd.DataFrame({"user_id": range(6), "segment": list("nnooll")})
    joined = result.per_user.merge(segments, on="user_id", validate="many_to_one")
    table = rd.user_gap(joined, by="segment").set_index("metric")
    # Means of mrr: n 1, o 1/2, l 1/2.
    assert table.loc["mrr", ["k", "gap", "mad", "low", "high", "n_groups"]].tolist() == close(
        [2, 0.5, 1 / 3, 0.5, 1, 3]
    )
    assert table.loc["hitrate", ["gap", "mad"]].tolist() == close([0.5, 1 / 3])


def test_user_gap_per_recommender():
    pred = pd.DataFrame({"model": list("xxyy"), "user_id": [1, 2, 1, 2], "item_id": list("aaab")})
    result = rd.evaluate({1: ["a"], 2: ["b"]}, pred, "mrr@1", by="model")
    joined = result.per_user.assign(segment=result.per_user["user_id"])
    joined.attrs = result.per_user.attrs
    table = rd.user_gap(joined, by="segment")
    assert table[["model", "gap"]].to_numpy().tolist() == [["x", 1.0], ["y", 0.0]]
    alone = rd.user_gap(joined[joined["user_id"] == 1], by="segment")
    assert alone["gap"].isna().all()
    assert alone["n_groups"].tolist() == [1, 1]

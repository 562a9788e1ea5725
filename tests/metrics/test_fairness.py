"""Fairness by hand, with exposures and chances that can be counted."""

import math

import oracles
import pandas as pd
import pytest
from close import close
from registry.seeded import distinct, quietly, records, side_tables
from registry.test_beyond import world_of

import recdf as rd

# Examples are small, so that side tables lack much of them.
pytestmark = pytest.mark.filterwarnings("ignore::recdf.UnknownWarning")

ITEMS = pd.DataFrame({"item_id": list("abcd"), "group": ["own", "own", "partner", None]})
PRED = {1: ["a", "c"], 2: ["c", "d"], 3: ["b", "a"]}


def test_exposure_share():
    second = 1 / math.log2(3)
    own, partner = 1 + 1 + second, second + 1
    found = rd.exposure_share(PRED, 2, items=ITEMS)
    assert found == {
        "own": close(own / (own + partner)),
        "partner": close(partner / (own + partner)),
    }
    assert sum(found.values()) == close(1.0)
    assert rd.exposure_share(PRED, 2, items=ITEMS, discount="none") == close(
        {"own": 3 / 5, "partner": 2 / 5}
    )
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
    assert rd.pop_reo(
        true, {1: ["a"], 2: ["a"]}, 2, log={9: ["x"]}, items=ITEMS, group_col="group"
    ) == close(1.0)
    with pytest.warns(rd.NoOverlapWarning):
        assert math.isnan(
            rd.pop_reo(true, {1: ["x"]}, 2, log={9: ["x"]}, items=ITEMS, group_col="group")
        )


def test_pop_rsp_by_hand():
    log = pd.DataFrame({"user_id": [1, 2, 3, 4, 4], "item_id": ["a", "a", "a", "a", "b"]})
    pred = {1: ["b"], 4: ["a"], 9: ["a"]}
    # a, the head: had by 1 and 4, so one pair, shown once. b, the tail: had by 4, so two pairs,
    # shown once.
    mean, half = (1 + 1 / 2) / 2, (1 - 1 / 2) / 2
    assert rd.pop_rsp(log, pred, 1) == close(half / mean)
    # Items nobody has had are of the tail as soon as the catalogue knows them.
    p_tail = 1 / (2 + 3)
    assert rd.pop_rsp(log, pred, 1, items=list("abz")) == close(
        ((1 - p_tail) / 2) / ((1 + p_tail) / 2)
    )


def test_arp_ratio():
    log = {1: ["a"], 2: ["a", "b"], 3: ["a"]}
    found = rd.arp_ratio.per_user(log, {1: ["b"], 2: ["a"], 8: ["a"]}).iloc[:, 1]
    assert found.tolist() == close([1 / 3, 1 / ((1 + 1 / 3) / 2), math.nan])


def test_user_gap():
    true, pred = (
        {u: ["a"] for u in range(6)},
        {0: ["a"], 1: ["a"], 2: ["x", "a"], 3: ["x", "a"], 4: ["x"], 5: ["a"]},
    )
    result = rd.evaluate(true, pred, ["mrr", "hitrate"], k=2)
    segments = pd.DataFrame({"user_id": range(6), "segment": list("nnooll")})
    joined = result.per_user.merge(segments, on="user_id", validate="many_to_one")
    table = rd.diagnostics.user_gap(joined, by="segment").set_index("metric")
    # Means of mrr: n 1, o 1/2, l 1/2.
    assert table.loc["mrr", ["k", "gap", "mad", "low", "high", "n_groups"]].tolist() == close(
        [2, 0.5, 1 / 3, 0.5, 1, 3]
    )
    assert table.loc["hitrate", ["gap", "mad"]].tolist() == close([0.5, 1 / 3])
    lists = {u: "nnooll"[u] for u in range(6)}
    carried = pd.DataFrame(
        [(u, item, lists[u]) for u, items in pred.items() for item in items],
        columns=["user_id", "item_id", "segment"],
    )
    result = rd.evaluate(true, carried, ["mrr", "hitrate"], k=2, carry="segment")
    polars = pytest.importorskip("polars")
    for given in (result, polars.from_pandas(joined), polars.from_pandas(joined).lazy()):
        found = rd.diagnostics.user_gap(given, by="segment", within=[]).set_index("metric")
        pd.testing.assert_frame_equal(found, table)
    assert len(rd.diagnostics.user_gap(result, by="segment")) == 2


def test_user_gap_per_recommender():
    pred = pd.DataFrame({"model": list("xxyy"), "user_id": [1, 2, 1, 2], "item_id": list("aaab")})
    result = rd.evaluate({1: ["a"], 2: ["b"]}, pred, "mrr@1", by="model")
    joined = result.per_user.assign(segment=result.per_user["user_id"])
    joined.attrs = result.per_user.attrs
    table = rd.diagnostics.user_gap(joined, by="segment")
    assert table[["model", "gap"]].to_numpy().tolist() == [["x", 1.0], ["y", 0.0]]
    alone = rd.diagnostics.user_gap(joined[joined["user_id"] == 1], by="segment")
    assert alone["gap"].isna().all()
    assert alone["n_groups"].tolist() == [1, 1]


def test_item_gap_by_hand():
    true = {1: {"a": 1, "c": 2}, 2: {"c": 1}, 3: {"b": 4}}
    # Gain per recommendation: a 1/2, b 4, c (2 + 1)/2. So own has 2.25 and partner 1.5.
    assert rd.item_gap(true, PRED, 2, items=ITEMS) == close(0.75)
    assert rd.item_gap(true, PRED, 2, items=ITEMS, gain="binary") == close(1 - 3 / 4)
    assert rd.item_gap(true, PRED, 1, items=ITEMS) == close(4 / 2 + 1 / 2 - 1)
    three = ITEMS.assign(group=["x", "y", "z", None])
    assert rd.item_gap(true, PRED, 2, items=three) == close((3.5 + 1 + 2.5) / 3)
    assert rd.item_gap(true, PRED, 2, items=three, stat="gap") == close(3.5)
    assert math.isnan(rd.item_gap(true, PRED, 2, items=ITEMS.assign(group="own")))


USERS = pd.DataFrame({"user_id": [1, 2, 3, 4], "group": ["new", "new", "old", None]})
LOG = pd.DataFrame({"user_id": [1, 1, 2, 3, 3, 4], "item_id": list("abcccd")})


def test_bias_disparity_by_hand():
    found = rd.bias_disparity(LOG, PRED, 2, items=ITEMS, users=USERS)
    # New users: shown a, c, c (and d, of no group); had a, b, c. Old: shown b, a; had c.
    expected = {
        "new:own": (1 / 3) / (2 / 3) - 1,
        "new:partner": (2 / 3) / (1 / 3) - 1,
        "old:partner": -1.0,
    }
    assert math.isnan(found.pop("old:own"))  # shown what they never had
    assert found == close(expected)
    lists = rd.bias_disparity(LOG, PRED, 2, items=ITEMS, users=USERS, of="lists")
    assert lists == close(
        {"new:own": 1 / 2, "new:partner": 2.0, "old:own": 3 / 2, "old:partner": 0.0}
    )
    of_log = rd.bias_disparity(LOG, PRED, 2, items=ITEMS, users=USERS, of="log")
    assert of_log == close({"new:own": 1.0, "new:partner": 1.0, "old:own": 0.0, "old:partner": 3.0})


def groups_of_users(seed):
    """Frames with ids of text, two recommenders, and users in three groups or none."""
    true, pred = distinct(seed)
    tables = side_tables(seed)
    users = pd.DataFrame({"user_id": sorted({*true["user_id"], *pred["user_id"]})})
    users["segment"] = [("a", "b", "c d", None)[i % 4] for i in range(len(users))]
    return true, pred, {"users": users, "items": tables["items"], "log": tables["log"]}


NAMES = [f"bias_disparity(user_group_col=segment,of={of})" for of in ("both", "lists", "log")]


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", [1, 2])
def test_bias_disparity_equals_the_oracle(seed):
    true, pred, given = groups_of_users(seed)
    result = quietly(rd.evaluate, true, pred, NAMES, 3, by="model", **given).summary
    groups = dict(zip(given["users"]["user_id"], given["users"]["segment"], strict=True))
    groups = {user: group for user, group in groups.items() if isinstance(group, str)}
    for model, part in pred.groupby("model"):
        world = world_of(side_tables(seed), "score")
        world.user_groups = groups
        listed = {"order": "score", "users": list(given["users"]["user_id"]), "world": world}
        lists = oracles.match_lists(records(true), records(part), 3, **listed)
        for name, of in zip(NAMES, ("both", "lists", "log"), strict=True):
            rows = result[(result["model"] == model) & result["metric"].str.startswith(name)]
            found = dict(
                zip(rows["metric"].str.partition("[")[2].str[:-1], rows["value"], strict=True)
            )
            assert found == close(oracles.ORACLES["bias_disparity"](lists, of=of))


@pytest.mark.long
def test_bias_disparity_adds_up_over_files(tmp_path):
    true, pred, given = groups_of_users(3)
    true.to_parquet(tmp_path / "true.parquet")
    pred.to_parquet(tmp_path / "pred.parquet")
    options = {"by": "model", **given}
    paths = [tmp_path / "true.parquet", tmp_path / "pred.parquet"]
    found = quietly(rd.evaluate_parquet, *paths, NAMES, 3, buckets=5, **options)
    expected = quietly(rd.evaluate, true, pred, NAMES, 3, **options)
    pd.testing.assert_frame_equal(found.summary, expected.summary, rtol=1e-12)


def test_what_bias_disparity_needs_is_named():
    with pytest.raises(
        rd.OptionError, match=r"needs users= \(a frame of users with the column 'group'\)"
    ):
        rd.bias_disparity(LOG, PRED, 2, items=ITEMS)
    with pytest.raises(rd.ColumnError, match="age"):
        rd.bias_disparity(LOG, PRED, 2, items=ITEMS, users=USERS, user_group_col="age")
    twice = pd.concat([USERS, USERS.assign(group="old")])
    with pytest.raises(rd.DataError, match=r"users\['group'\] has two groups for 3 users"):
        rd.bias_disparity(LOG, PRED, 2, items=ITEMS, users=twice)

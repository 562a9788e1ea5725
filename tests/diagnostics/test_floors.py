"""Chance levels equal the mean over all orders; ceilings are those of the best order."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pandas as pd
import pytest

import recdf as rd

ITEMS = list("abcdef")
TRUE = pd.DataFrame(
    {
        "user_id": ["u", "u", "v", "w", "w", "w"],
        "item_id": ["a", "b", "c", "d", "e", "f"],
        "relevance": [1.0, 0.5, 1.0, 1.0, 0.0, 0.25],
    }
)
EXACT = [
    "precision",
    "precision(divisor=achievable)",
    "precision(divisor=shown)",
    "recall",
    "recall(divisor=achievable)",
    "hitrate",
    "hits",
    "f1",
    "f1(beta=2)",
    "rprecision",
    "mrr",
    "mrr(of=all)",
    "arhr",
    "dcg",
    "rbp",
    "rbp(p=0.5,gain=binary)",
    "ndcg",
    "ndcg(gain=exp2,discount=jk)",
    "ndcg(ideal=k)",
    "ndcg(gain=binary,discount=none)",
    "mapr",
    "mapr(normalizer=achievable)",
    "mapr(normalizer=k)",
    "mapr(normalizer=shown)",
]


def over_all_orders(
    true: pd.DataFrame, candidates: dict[str, list[str]], metrics: list[str], k: int | list[int]
) -> pd.DataFrame:
    """Return the mean of each metric over all orders of each user's candidates: one evaluation of
    very many lists."""
    truths, preds, users = [], [], []
    for user, items in candidates.items():
        orders = np.array(list(itertools.permutations(items)), object)
        numbers = np.arange(len(orders)) + len(users)
        users += [user] * len(orders)
        preds.append(
            pd.DataFrame({"user_id": np.repeat(numbers, len(items)), "item_id": orders.ravel()})
        )
        own = true[true["user_id"] == user].drop(columns="user_id")
        truths.append(own.merge(pd.DataFrame({"user_id": numbers}), how="cross"))
    result = rd.evaluate(pd.concat(truths), pd.concat(preds), metrics, k=k)
    values = result.per_user.drop(columns=["n_true", "n_pred"]).set_index("user_id").sort_index()
    means = values.groupby(np.array(users, object)[values.index], sort=False).mean()
    return means.loc[list(candidates)]


@functools.cache
def of_six_items() -> pd.DataFrame:
    return over_all_orders(TRUE, dict.fromkeys("uvw", ITEMS), EXACT, [1, 3, 6, 9])


@pytest.mark.few(2)
@pytest.mark.parametrize("k", [1, 3, 6, 9])
def test_exact_levels_are_means_over_all_orders(k: int) -> None:
    level = rd.chance_level(TRUE, EXACT, k, items=ITEMS)
    assert (level["how"] == "exact").all()
    want = of_six_items().filter(regex=f"@{k}$|^rprecision$")
    assert want.shape == (3, len(EXACT))
    got = level.per_user.set_index("user_id")
    np.testing.assert_allclose(got[want.columns], want, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(level["value"], want.mean(), rtol=1e-12)
    counted = rd.chance_level(TRUE, EXACT, k, items=6)
    np.testing.assert_allclose(counted["value"], level["value"], rtol=1e-14)


def test_excluded_pairs_are_neither_candidates_nor_relevant() -> None:
    exclude = pd.DataFrame({"user_id": ["u", "u", "v", "z"], "item_id": ["a", "c", "nowhere", "d"]})
    exclude = pd.concat([exclude, exclude])  # repeated rows count once
    level = rd.chance_level(TRUE, EXACT, 3, items=ITEMS, exclude=exclude)
    left = TRUE[~((TRUE["user_id"] == "u") & (TRUE["item_id"] == "a"))]
    want = over_all_orders(left, {"u": list("bdef"), "v": ITEMS, "w": ITEMS}, EXACT, 3)
    np.testing.assert_allclose(
        level.per_user.set_index("user_id")[want.columns], want, rtol=1e-12, atol=1e-14
    )


def test_excluded_pairs_of_users_hold_for_each_of_their_lists() -> None:
    exclude = pd.DataFrame({"user_id": ["u", "w"], "item_id": ["c", "d"]})
    one = rd.chance_level(TRUE, ["ndcg", "mrr"], 3, items=ITEMS, exclude=exclude)["value"]
    twice = pd.concat([TRUE.assign(visit=1), TRUE.assign(visit=2)])
    keys = ["user_id", "visit"]
    of_visits = rd.chance_level(
        twice, ["ndcg", "mrr"], 3, items=ITEMS, exclude=exclude, user_col=keys
    )
    np.testing.assert_allclose(of_visits["value"], one)
    some = rd.chance_level(TRUE, "ndcg", 3, items=ITEMS, users=np.array(["u", "v"]))
    assert some.per_user["user_id"].tolist() == ["u", "v"]


def test_a_relevant_item_outside_the_catalogue_is_never_hit() -> None:
    level = rd.chance_level(TRUE, ["recall", "mapr", "ndcg"], 3, items=list("acdexyz"))
    want = over_all_orders(
        TRUE, {user: list("acdexyz") for user in "uvw"}, ["recall", "mapr", "ndcg"], 3
    )
    np.testing.assert_allclose(level["value"], want.mean(), rtol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("items", [6, ITEMS])
@pytest.mark.parametrize("excluded", [False, True])
def test_simulated_levels_are_near_within_their_errors(items: object, excluded: bool) -> None:
    metrics = ["bpref", "mapr(normalizer=hits)", "err(max_gain=2)", "mar", "ndcg(ideal=shown)"]
    exclude = pd.DataFrame({"user_id": ["u"], "item_id": ["c"]}) if excluded else None
    level = rd.chance_level(TRUE, metrics, 4, items=items, exclude=exclude, seed=3)
    candidates = {"u": list("abdef") if excluded else ITEMS, "v": ITEMS, "w": ITEMS}
    with pytest.warns(rd.errors.JudgedWarning):
        want = over_all_orders(TRUE, candidates, metrics, 4).mean()
    assert (level["how"] == "simulated").all()
    assert (level["se"] < 0.005).all()
    assert (np.abs(level["value"].to_numpy() - want.to_numpy()) < 4 * level["se"]).all()
    again = rd.chance_level(TRUE, metrics, 4, items=items, exclude=exclude, seed=3)
    pd.testing.assert_frame_equal(level, again)


@pytest.mark.long
def test_levels_of_a_large_catalogue_against_a_simulation_of_it() -> None:
    rng = np.random.default_rng(0)
    true = pd.DataFrame(
        {"user_id": np.repeat(np.arange(50), 8), "item_id": rng.integers(0, 300, 400)}
    )
    true = true.drop_duplicates()
    level = rd.chance_level(true, ["ndcg", "mrr", "mapr", "hitrate"], 10, items=range(300))
    users = np.arange(50 * 400)
    pred = pd.DataFrame(
        {
            "user_id": np.repeat(users, 10),
            "item_id": np.argpartition(rng.random((len(users), 300)), 10)[:, :10].ravel(),
        }
    )
    many = pd.concat([true.assign(user_id=true["user_id"] + 50 * i) for i in range(400)])
    drawn = rd.evaluate(many, pred, ["ndcg", "mrr", "mapr", "hitrate"]).summary
    assert (np.abs(level["value"] - drawn["value"]) < 4 * drawn["se"]).all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"items": 2}, "items=2, but true has 6 items"),
        ({"items": 0}, "items=0"),
        ({"items": ITEMS, "metrics": "coverage"}, "metric of exposure"),
        ({"items": ITEMS, "metrics": "ndgc"}, "unknown metric"),
        ({"items": ITEMS, "seed": -1}, "seed=-1"),
        ({"items": ITEMS, "by": "model"}, "by="),
        ({"items": [1, 2, 3]}, "item_id"),
    ],
)
def test_what_has_no_chance_level_is_refused(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(rd.errors.RecdfError, match=said):
        rd.chance_level(TRUE, **{"metrics": "ndcg", **arguments})


@pytest.mark.long
@pytest.mark.parametrize("name", ["metric", "k", "value", "n"])
def test_groups_do_not_have_the_name_of_a_column_of_the_result(name: str) -> None:
    pred = pd.DataFrame({"user_id": [1, 2], "item_id": [1, 1], "score": 1.0, name: ["x", "y"]})
    with pytest.raises(rd.OptionError, match=f"by='{name}' is also a column of the result"):
        rd.ceiling({1: [1], 2: [2]}, pred, "ndcg", 3, by=name)


def test_ceiling_is_the_best_of_all_orders() -> None:
    pred = {"u": ["x", "b", "a"], "v": ["x", "c"], "w": ["e", "f", "d", "x"]}
    level = rd.ceiling(TRUE, pred, ["ndcg", "recall", "mrr", "err"], k=2)
    best = {}
    for user, items in pred.items():
        orders = [{user: list(order)} for order in itertools.permutations(items)]
        own = TRUE[TRUE["user_id"] == user]
        metrics = ["ndcg", "recall", "mrr", "err(max_gain=1)"]
        values = [rd.evaluate(own, order, metrics, k=2).summary["value"] for order in orders]
        best[user] = np.max(values, axis=0)
    np.testing.assert_allclose(level["value"], np.mean(list(best.values()), axis=0))
    np.testing.assert_allclose(
        level.per_user.drop(columns=["user_id", "n_true", "n_pred"]), list(best.values())
    )


def test_a_chance_level_needs_a_catalogue():
    with pytest.raises(rd.OptionError, match=r"^items=None; expected the catalogue"):
        rd.diagnostics.chance_level({"u": ["a"]}, "recall", items=None)

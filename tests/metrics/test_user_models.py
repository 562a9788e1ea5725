"""User models: numbers worked by hand, costs, depth, and what is refused."""

import numpy as np
import oracles
import pandas as pd
import pytest
from cases import case
from close import close
from registry.seeded import ITEMS, assert_close, distinct, records
from registry.union.frames import table

import recdf as rd

TRUE, PRED = {"u": {"a": 2, "b": 1, "x": 0}}, {"u": ["a", "x", "y", "b"]}
# γ is 1, 0, 0, 1/2 at ranks 1 to 4; y is not judged.


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("params", "measures"),
    [
        # V = 1, 1/2, 1/4, 1/8 of four ranks: (1 + 1/16) / (15/8). One more rank is seen with 1/16.
        ({"model": "rbp", "p": 0.5, "depth": 4}, (17 / 30, 17 / 16 - 1.5 / 16, 15 / 8, 2 / 15)),
        ({"model": "npv", "rate": 1.0, "depth": 4}, (17 / 30, 17 / 16 - 1.5 / 16, 15 / 8, 2 / 15)),
        # All of the first k = 4 are seen, and one of them is not judged.
        ({"model": "precision"}, (1.5 / 4, 1.5, 4, 1 / 4)),
        # The first item gives all that is wanted.
        ({"model": "bpm", "T": 1.0}, (1, 1, 1, 0)),
        # T = 1.5 is reached at rank 4; if y were perfect, at rank 3.
        ({"model": "bpm", "T": 1.5}, (1.5 / 4, 1.5, 4, 2 / 3 - 1.5 / 4)),
        # The first item satisfies for certain.
        ({"model": "nerr8"}, (1, 1, 1, 0)),
        # V = 1, 4/9, 4/16, 4/25 for T = 1.
        (
            {"model": "insq", "depth": 4},
            (
                (1 + 2 / 25) / (1 + 4 / 9 + 4 / 16 + 4 / 25),
                1 + 2 / 25 - 1.5 * 4 / 36,
                1 + 4 / 9 + 4 / 16 + 4 / 25,
                0.25 / (1 + 4 / 9 + 4 / 16 + 4 / 25),
            ),
        ),
        # c = 1 after rank 1, so that V = 1, (1/2)², (1/2)²(2/3)², (1/2)²(2/3)²(3/4)².
        (
            {"model": "inst", "depth": 3},
            (1 / (1 + 1 / 4 + 1 / 9), 1 - 1 / 16, 1 + 1 / 4 + 1 / 9, None),
        ),
        # Half of the users are left after two items.
        (
            {"model": "tbg", "halflife": 2.0, "depth": 3},
            (1 / (1 + 2**-0.5 + 0.5), None, None, 0.5 / (1.5 + 2**-0.5)),
        ),
        # W ∝ 3/3, 2/3, 1/3, and nobody sees rank 4.
        ({"model": "umeasure", "length": 3.0}, (1 / 2, None, None, 1 / 6)),
        # 1/log2 of 2, 3, 4, 5.
        (
            {"model": "weights"},
            (
                (1 + 0.5 / np.log2(5)) / (1 + 1 / np.log2(3) + 0.5 + 1 / np.log2(5)),
                None,
                None,
                None,
            ),
        ),
        ({"model": "weights", "weights": "none"}, (1.5 / 4, None, None, 1 / 4)),
    ],
    ids=str,
)
def test_by_hand(params, measures):
    for measure, expected in zip(("utility", "total", "items", "residual"), measures, strict=True):
        if expected is not None:
            with case(measure):
                assert rd.user_model(TRUE, PRED, 4, measure=measure, **params) == close(expected)


@pytest.mark.parametrize(("depth", "expected"), [(100, 0.4450), (1000, 0.4389), (10_000, 0.4383)])
def test_depth_is_part_of_the_number(depth, expected):
    true = table("true")
    found = (
        rd.user_model.per_user(true, table("pred"), model="insq", depth=depth)
        .set_index("user_id")
        .iloc[:, 0]
    )
    assert found[10] == pytest.approx(expected, abs=5e-5)


@pytest.mark.long
def test_without_relevant_or_without_recommended_items():
    """Nothing relevant: no utility, but a residual. No list: utility 0, and everything unknown."""
    true = pd.DataFrame(
        {"user_id": ["u", "v", "v"], "item_id": ["x", "a", "b"], "relevance": [0, 1, 1]}
    )
    for model in rd.user_model.choices("model"):
        with case(model):
            found = rd.user_model.per_user(true, {"u": ["x", "y"]}, 2, model=model).iloc[:, 1]
            assert found.tolist() == close([np.nan, 0.0])
            found = rd.user_model.per_user(
                true, {"u": ["x", "y"]}, 2, model=model, measure="residual"
            ).iloc[:, 1]
            assert found[0] > 0
            assert found[1] == close(1.0)


@pytest.mark.few(4)
@pytest.mark.parametrize("model", ["tbg", "umeasure"])
@pytest.mark.parametrize("measure", ["utility", "residual"])
@pytest.mark.parametrize("depth", [3, 9, 30])
def test_costs_of_items(model, measure, depth):
    true, pred = distinct(4)
    pred = pred[pred["model"] == "a"]
    items = pd.DataFrame({"item_id": ITEMS, "minutes": np.linspace(0, 3, len(ITEMS))})
    params = {"model": model, "measure": measure, "depth": depth, "halflife": 4.0, "length": 11.5}
    found = rd.user_model.per_user(true, pred, cost_col="minutes", items=items, **params).iloc[:, 1]
    world = oracles.World(items={row["item_id"]: row for row in records(items)})
    lists = oracles.match_lists(
        records(true), records(pred), 10, order="score", relevance=True, world=world
    )
    expected = [
        oracles.ORACLES["user_model"](one, cost_col="minutes", **params) for one in lists.values()
    ]
    assert_close(found, expected)
    same = rd.user_model.per_user(
        true, pred, cost_col="one", items=items.assign(one=1), **params
    ).iloc[:, 1]
    assert_close(same, rd.user_model.per_user(true, pred, **params).iloc[:, 1])


def test_weights_by_a_function():
    halves = rd.user_model(TRUE, PRED, 4, model="weights", weights=lambda rank: 0.5**rank)
    assert halves == close(rd.user_model(TRUE, PRED, 4, model="rbp", p=0.5, depth=4))


def test_k_counts_only_where_users_stop_there():
    models = [model for model in rd.user_model.choices("model") if model not in ("weights",)]
    table = rd.evaluate(
        TRUE, PRED, [f"user_model(model={model},T=3)" for model in models], [2, 3]
    ).per_user
    differ = {
        model
        for model in models
        if table[f"user_model(model={model},T=3)@2"][0]
        != table[f"user_model(model={model},T=3)@3"][0]
    }
    assert differ == {
        "precision",
        "sdcg",
        "bpm",
        "set",
    }  # the first hit satisfies for certain in nerr


def test_whole_gains_reach_a_whole_number_exactly():
    """Ten items of gain 0.1 each give 1, whatever the sum of ten floats is."""
    items = list("abcdefghijkl")
    true = {"u": dict.fromkeys(items, 1)}
    assert rd.user_model(true, {"u": items}, 12, model="bpm", measure="items", max_gain=10) == 10


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"model": "tbg", "measure": "items"}, 'model="tbg" has no chance to go on'),
        ({"model": "rbp", "cost_col": "minutes"}, "cost_col= is the time of"),
        ({"model": "tbg", "cost_col": "minutes"}, "column of items="),
        ({"max_gain": 1}, "max_gain=1.0 takes gains"),
        ({"p": 1.0}, "between 0 and 1"),
        ({"depth": 0}, "from 1 to 10,000,000"),
        ({"model": "rpb"}, "did you mean 'rbp'"),
    ],
    ids=str,
)
def test_refused(params, words):
    with pytest.raises(rd.RecdfError, match=words):
        rd.user_model(TRUE, PRED, **params)


def test_costs_that_are_missing_or_negative():
    items = pd.DataFrame({"item_id": ["a", "x", "y"], "minutes": [1.0, 2.0, 3.0]})
    with pytest.raises(rd.DataError, match="items has no 'minutes' for 1 items of pred"):
        rd.user_model(TRUE, PRED, model="tbg", cost_col="minutes", items=items)
    items = pd.DataFrame({"item_id": ["a", "b", "x", "y"], "minutes": [1.0, -2.0, 3.0, 4.0]})
    with pytest.raises(rd.DataError, match=r"negative costs \(-2.0\)"):
        rd.user_model(TRUE, PRED, model="umeasure", cost_col="minutes", items=items)


def test_rbp_of_what_is_achievable():
    """Two relevant items at ranks 1 and 3: (1 + 1/4) over (1 + 1/2)."""
    true, pred = {"u": ["a", "b"], "v": ["c"]}, {"u": ["a", "x", "b"]}
    found = rd.rbp.per_user(true, pred, p=0.5, normalize="achievable").iloc[:, 1]
    assert found.tolist() == close([1.25 / 1.5, 0.0])


def test_residual_of_rbp():
    """Ranks 2 and beyond 3 are not judged: 1/4 + 1/8. An empty list is all unknown."""
    true = {"u": {"a": 1, "x": 0}, "v": {"c": 1}}
    found = rd.rbp_residual.per_user(true, {"u": ["a", "y", "x"]}, p=0.5).iloc[:, 1]
    assert found.tolist() == close([3 / 8, 1.0])
    assert rd.rbp_residual(true, {"u": ["a", "y", "x"]}, k=1, p=0.5, users=["u"]) == close(0.5)


def test_bounds_are_those_of_the_measure():
    """With its defaults the metric lies in [0, 1], as its first line says; totals may exceed 1."""
    bounds = rd.metrics_table().set_index("metric").loc["user_model", ["low", "high"]]
    assert bounds.tolist() == [0.0, 1.0]
    assert rd.user_model(TRUE, PRED, measure="items") > 1
    assert rd.user_model(TRUE, PRED, measure="total", model="precision", k=4, max_gain=2) > 1
    stated = rd.METRICS["user_model"].stated
    assert [
        stated(f"user_model(measure={one})")[0][1] for one in ("utility", "total", "items")
    ] == [1.0, None, None]


def test_the_residual_of_trec_eval_is_0_where_all_is_judged():
    """u: two of two shown items are judged, p² = .25 by default; v: one of two, .5 · .5 + .25."""
    true, pred = {"u": {"a": 1, "x": 0}, "v": {"a": 1}}, {"u": ["a", "x"], "v": ["a", "y"]}
    for options, expected in (
        ({}, [0.25, 0.5]),
        ({"beyond": "unjudged"}, [0, 0.5]),
        ({"like": "trec_eval"}, [0, 0.5]),
        ({"like": "cwl_eval"}, [0.25, 0.5]),
    ):
        found = rd.rbp_residual.per_user(true, pred, p=0.5, **options)
        assert found.iloc[:, 1].tolist() == close(expected)
    shallow = rd.rbp_residual.per_user(true, pred, k=1, p=0.5, beyond="unjudged").iloc[:, 1]
    assert shallow.tolist() == [0, 0]
    nothing = rd.rbp_residual.per_user(true, {"u": ["a"]}, p=0.5, beyond="unjudged").iloc[:, 1]
    assert nothing.tolist() == [0, 1]  # v is shown nothing

"""The same data give the same bytes: every metric, whatever the order of rows, the other lists, and
the threads.

Values are compared bit by bit. Numbers of many digits make a change in the order of almost any sum
visible.
"""

import functools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from quick import few
from registry.seeded import BUILT_IN, quietly, text, variants
from registry.test_beyond import VARIANTS

import recdf as rd
from recdf.inputs.sorting import exact_sums

N_USERS, N_ITEMS = 300, 120


def asked(kind):
    """Every metric as it is, and with the choices that the other tests try."""
    found = []
    for metric in rd.METRICS.values():
        if metric.name == "bias_disparity":  # it needs groups of users, and its sums are counts
            continue
        own = variants(metric)[:12] if metric in BUILT_IN else VARIANTS.get(metric.name, [])
        found += [text(metric, params) for params in [{}, *own]]
    if kind == "propensities":
        found = [
            "recall",
            "precision",
            "mapr",
            "ndcg",
            "mrr(of=all)",
            "recall(divisor=achievable)",
            "mrr",
        ]
    return list(dict.fromkeys(found))


@functools.cache
def tables():
    """`true`, `pred` and side tables with ids of text, lists of very different lengths, and odd
    numbers everywhere."""
    rng = np.random.default_rng(3)

    def lists(n, longest):
        length = rng.integers(1, longest, n)
        items = np.concatenate([rng.choice(N_ITEMS, one, replace=False) for one in length])
        return pd.DataFrame({"list": np.repeat(np.arange(n), length), "item_id": items}).assign(
            value=lambda rows: rng.random(len(rows)) * 9
        )

    pred = lists(2 * N_USERS, 70)
    pred = pred.assign(
        user_id=pred["list"] % N_USERS, model=np.where(pred["list"] < N_USERS, "a", "b")
    )
    true = lists(N_USERS, 30).rename(columns={"list": "user_id"})
    true["relevance"] = rng.choice([0.0, 0.1, 0.3, 0.7, 1.0], len(true))
    true["weight"] = rng.random(N_USERS)[true["user_id"]]
    true["propensity"] = rng.uniform(0.1, 1, len(true))
    for name in ("impressions", "clicks", "purchases"):
        true[name] = rng.random(len(true))
    genres = [
        "|".join(rng.choice(list("abcdefghijk"), n, replace=False))
        for n in rng.integers(1, 6, N_ITEMS)
    ]
    items = pd.DataFrame(
        {"item_id": np.arange(N_ITEMS), "category": genres, "group": rng.choice([*"xyz"], N_ITEMS)}
    )
    features = pd.DataFrame(
        {"item_id": np.arange(N_ITEMS), "genre": genres, "size": rng.normal(size=N_ITEMS)}
    )
    seen = rng.integers(0, N_ITEMS, 6000) ** 2 // N_ITEMS
    seen = rng.integers(0, N_ITEMS, 6000) ** 2 // N_ITEMS
    log = pd.DataFrame({"user_id": rng.integers(0, N_USERS, 6000), "item_id": seen})
    aspects = log.assign(aspect=rng.choice([*"uvwxyz"], len(log))).drop_duplicates()
    base = log.drop_duplicates().assign(score=lambda rows: rng.permutation(len(rows)))
    found = {
        "true": true,
        "pred": pred.drop(columns="list").assign(score=rng.permutation(len(pred)) / 2**16),
    }
    found |= {"items": items, "features": features, "log": log, "aspects": aspects, "base": base}
    return {
        name: table.assign(
            **{key: [f"{key}{one}" for one in table[key]] for key in table if key.endswith("_id")}
        )
        for name, table in found.items()
    }


OPTIONS = {
    "plain": {"value_col": "value", "item_by": "group"},
    "weights": {"value_col": "value", "weight_col": "weight"},
    "propensities": {"propensity_col": "propensity"},
}


def numbers(kind, seed=None, users=None):
    """Both tables of results, sorted by their labels; the rows of all tables shuffled, or of some
    users alone."""
    given = dict(tables())
    if seed is not None:
        given = {
            name: table.sample(frac=1, random_state=seed + i)
            for i, (name, table) in enumerate(given.items())
        }
    if users is not None:
        given |= {
            name: given[name][given[name]["user_id"].isin(users)] for name in ("true", "pred")
        }
    given["features"] = given["features"].set_index("item_id")
    given["popular"] = [f"item_id{i}" for i in range(9)]
    result = quietly(
        rd.evaluate, metrics=asked(kind), k=[7, 60], by="model", **OPTIONS[kind], **given
    )
    order = [name for name in ("model", "group", "metric", "k") if name in result.summary]
    return result.per_user.set_index(["model", "user_id"]).sort_index(), result.summary.set_index(
        order
    ).sort_index()


plain = functools.cache(numbers)


def assert_same_bytes(one, two):
    differ = [
        name for name in one if one[name].to_numpy().tobytes() != two[name].to_numpy().tobytes()
    ]
    assert not differ


@pytest.mark.parametrize("kind", few(OPTIONS, ["propensities"]))
def test_the_order_of_rows_changes_no_bit(kind):
    for expected, found in zip(plain(kind), numbers(kind, 10), strict=True):
        pd.testing.assert_index_equal(expected.index, found.index)
        assert_same_bytes(expected, found)


@pytest.mark.long
def test_the_other_lists_change_no_bit_of_a_list():
    """So a list has the same values in a part of the population, which another computer may
    measure."""
    expected = plain("plain")[0]
    some = expected.index.get_level_values("user_id").unique()[::3]
    # The largest gain of `true` is the scale of some metrics; both parts have gains of 1.
    found = numbers("plain", users=some)[0]
    assert_same_bytes(expected.loc[found.index], found)


@pytest.mark.long
def test_the_number_of_threads_changes_no_bit():
    """The others run with one thread, or with one for each core."""
    before = pa.cpu_count()
    pa.set_cpu_count(7)
    try:
        found = numbers("plain", 30)
    finally:
        pa.set_cpu_count(before)
    for expected, table in zip(plain("plain"), found, strict=True):
        assert_same_bytes(expected, table)


def test_one_number_for_a_metric_is_that_of_the_summary():
    true, pred = (tables()[name] for name in ("true", "pred"))
    pred = pred[pred["model"] == "a"]
    expected = rd.evaluate(true, pred, "ndcg", 7).summary["value"][0]
    for seed in range(5):
        assert (
            rd.ndcg(
                true.sample(frac=1, random_state=seed), pred.sample(frac=1, random_state=seed), 7
            )
            == expected
        )


def test_summarize_of_shuffled_lists():
    result = quietly(
        rd.evaluate, tables()["true"], tables()["pred"], ["ndcg", "recall"], 7, by="model"
    )
    joined = result.per_user.assign(
        shop=result.per_user["user_id"].str[-1], w=result.per_user["n_true"] / 7
    )
    for options in ({}, {"unit_col": "user_id"}, {"weight_col": "w"}):
        tidy = [
            rd.summarize(rows, by=["model", "shop"], **options)
            .set_index(["model", "shop", "metric"])
            .sort_index()
            for rows in (joined, joined.sample(frac=1, random_state=1))
        ]
        assert_same_bytes(*tidy)


# ----------------------------------------------------------------------------------------------
# sums

SUMMED = {
    "shares": lambda rng, n: rng.random(n),
    "of both signs, of very different size": lambda rng, n: (
        rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n)
    ),
    "that cancel": lambda rng, n: np.resize([1e16, 1.0, -1e16], n),
    "all equal": lambda rng, n: np.full(n, 0.1),
    "nearly 0": lambda rng, n: rng.random(n) * 5e-320,
    "huge": lambda rng, n: rng.random(n) * 1e303,
}


@pytest.mark.few(3)
@pytest.mark.parametrize("make", SUMMED.values(), ids=SUMMED)
@pytest.mark.parametrize("n", few([1, 3, 1000, 20_000, 70_000], 4))
def test_a_sum_is_exact_and_rounded_once(make, n):
    rng = np.random.default_rng(n)
    values, group = make(rng, n), rng.integers(0, 4, n)
    assert exact_sums(values).tolist() == [math.fsum(values)]
    assert exact_sums(values, group, 5).tolist() == [
        math.fsum(values[group == i]) for i in range(5)
    ]
    assert exact_sums(values)[0] == float(sum(map(Fraction, values.tolist())))


@pytest.mark.parametrize(
    "kinds", [list(SUMMED), [kind for kind in SUMMED if kind != "huge"]], ids=["all", "usual"]
)
def test_rows_of_a_matrix_are_summed_as_if_alone(kinds):
    matrix = np.stack([SUMMED[kind](np.random.default_rng(3), 20_000) for kind in kinds])
    assert exact_sums(matrix).tolist() == [math.fsum(row) for row in matrix]
    matrix[0, 5], matrix[1, 7] = np.nan, np.inf
    assert np.isnan(exact_sums(matrix)[0])
    assert exact_sums(matrix)[1:].tolist() == [np.inf, *(math.fsum(row) for row in matrix[2:])]


def test_sums_of_nothing_and_of_what_is_no_number():
    assert exact_sums(np.empty(0)).tolist() == [0.0]
    values = np.array([np.inf, 1e300, np.nan, 3.0, -np.inf, np.inf, 1e308, 1e308])
    found = exact_sums(values, np.array([0, 1, 2, 1, 3, 3, 4, 4]), 5)
    np.testing.assert_array_equal(found, [np.inf, 1e300, np.nan, np.nan, np.inf])

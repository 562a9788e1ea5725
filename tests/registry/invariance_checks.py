"""Invariances, which must hold of any metric of `true` and `pred`.

A check is a plain function of metrics that raises AssertionError, so that test_checks.py can show
that each of them catches a metric that is wrong. One call evaluates all metrics, which costs little
more than a call of one: frames are matched once. The columns of a table that differ are named in
the message.
"""

import functools
import pickle

import numpy as np
import pandas as pd
from registry.labels import LABELS, relabelled, strings
from registry.seeded import (
    ITEMS,
    N_ITEMS,
    assert_close,
    assert_own_memory,
    distinct,
    frames,
    quietly,
    text,
    variants,
)

import recdf as rd

SIDES = {"items": ITEMS, "value_col": "value", "relevance_col": "relevance", "duplicates": "drop"}


def result_of(metrics, true, pred, k=3, **options):
    """The per-user table and summary of all variants of the metrics."""
    tried = [text(metric, params) for metric in metrics for params in variants(metric)[:12]]
    return quietly(rd.evaluate, true, pred, tried, k, **{**SIDES, **options})


def values_of(*args, **kwargs):
    """Values per list, labels left out."""
    return only_values(result_of(*args, **kwargs))


def only_values(result):
    return result.per_user.iloc[:, result.per_user.columns.get_loc("n_pred") + 1 :]


def check_row_order(metrics):
    """Rows in another order give the same lists, in their order of first appearance."""
    true, pred = distinct(3)
    reference = result_of(metrics, true, pred, by="model").per_user.set_index(["model", "user_id"])
    for seed in range(3):
        found = result_of(
            metrics,
            true.sample(frac=1, random_state=seed),
            pred.sample(frac=1, random_state=seed + 9),
            by="model",
        )
        table = found.per_user.set_index(["model", "user_id"])
        assert_close(table.loc[reference.index], reference)


def check_ties_ignore_row_order(metrics):
    true, pred = frames(4)
    pred = pred[pred["model"] == "a"].drop_duplicates(["user_id", "item_id"])
    for ties in ("item_desc", "item_asc", "worst"):
        options = {
            "ties": ties,
            "score_col": "score",
            "nan_score": "last",
            "users": sorted(set(true["user_id"])),
        }
        reference = values_of(metrics, true, pred, **options)
        assert_close(
            values_of(metrics, true, pred.sample(frac=1, random_state=1), **options), reference
        )


# Columns of one frame may have another dtype of the same kind in the other frame.
KINDS = [
    [
        "int8",
        "int16",
        "int32",
        "Int64",
        "float64",
        "float32",
        "Float64",
        "object of int",
        "arrow int32",
        "category of int",
    ],
    [
        "object of str",
        "str",
        "string[python]",
        "string[pyarrow]",
        "arrow string",
        "arrow large_string",
        "arrow dictionary",
        "category of str",
        "ordered category",
        "category of string[pyarrow]",
    ],
    ["uint64 beyond int64", "arrow uint64"],
    ["datetime64[ns]", "datetime64[s]"],
    ["arrow binary", "object of bytes"],
]


@functools.cache
def values_of_plain_labels(metrics):
    """Of integers, and kept: the metrics are compared with them under many labels."""
    true, pred = frames(5)
    return values_of(metrics, true, pred[pred["model"] == "a"], score_col="score", nan_score="last")


@functools.cache
def frames_labelled(label):
    """`true`, `pred` and the catalogue under one kind of labels."""
    true, pred = frames(5)
    return (
        relabelled(true, label),
        relabelled(pred[pred["model"] == "a"], label),
        LABELS[label](np.arange(N_ITEMS)),
    )


def check_labels(metrics, label, other=None):
    """Ids of another kind or dtype (in `pred`, perhaps one more) give the same values, in the dtype
    of `true`."""
    true, _, items = frames_labelled(label)
    _, pred, _ = frames_labelled(other or label)
    found = result_of(metrics, true, pred, score_col="score", nan_score="last", items=items)
    assert_close(only_values(found), values_of_plain_labels(metrics), (label, other))
    pd.testing.assert_series_equal(
        found.per_user["user_id"],
        true["user_id"].drop_duplicates().reset_index(drop=True),
        check_names=False,
    )


def assert_within_bounds(values, metrics, tried, ks=(1,)):
    """Each column is within the bounds of its metric; a bound that is None does not bind."""
    of_column = [
        metric.stated(text(metric, params))[0]
        for metric, some in zip(metrics, tried, strict=True)
        for params in some
        for _ in range(len(ks if metric.cut else ks[:1]) * len(metric.outputs))
    ]
    low, high = np.array(of_column, dtype=float).T  # no value is below or above NaN
    beyond = ((values < low) | (values > high)).any()
    assert not beyond.any(), f"beyond their bounds: {list(values.columns[beyond])}"


def check_k_beyond_the_list(metrics):
    """No list is longer than 60: larger k change only what divides by k."""
    true, pred = distinct(6)
    long = values_of(metrics, true, pred, 60, by="model")
    longer = values_of(metrics, true, pred, 60, by="model", min_relevance=0.0)
    assert_close(longer, long)
    assert_within_bounds(long, metrics, [variants(metric)[:12] for metric in metrics])
    assert np.isfinite(long.to_numpy()[long.notna()]).all()


def check_bounds(metrics):
    """Also of the best list, the worst one and one without hits, and of gains above 1, a value is
    within the bounds."""
    catalogue = [*ITEMS, *(i + 99 for i in ITEMS)]
    for top in (1.0, 3.0):
        true, _ = frames(7, top)
        best = true.sort_values("relevance", ascending=False, kind="stable")[
            ["user_id", "item_id", "value"]
        ]
        pred = pd.concat(
            {"best": best, "worst": best[::-1], "none": best.assign(item_id=best["item_id"] + 99)},
            names=["model", None],
        ).reset_index("model")
        tried = [
            [p for p in variants(metric) if top == 1 or not takes_shares(metric, p)]
            for metric in metrics
        ]
        asked = [text(metric, p) for metric, some in zip(metrics, tried, strict=True) for p in some]
        result = quietly(
            rd.evaluate, true, pred, asked, (1, 2, 9), by="model", **{**SIDES, "items": catalogue}
        )
        assert_within_bounds(only_values(result), metrics, tried, (1, 2, 9))


def takes_shares(metric, params):
    """The metric refuses gains above 1."""
    return metric.name == "rbp" or (params.get("ideal") == "k" and params["gain"] != "binary")


def check_parts(metrics):
    """Parts of the users, evaluated alone, make up the whole."""
    true, pred = frames(8)
    options = {"by": "model", "score_col": "score", "nan_score": "last", "users": "all"}
    everyone = pd.unique(pd.concat([true["user_id"], pred["user_id"]]))
    # The largest gain of `true`, which err takes as its scale, is to be the same in every part.
    lift = pd.DataFrame({"user_id": [-1], "item_id": [0], "relevance": [1.0], "value": [0.0]})
    whole = result_of(metrics, pd.concat([true, lift]), pred, **options).per_user.set_index(
        ["model", "user_id"]
    )
    parts = []
    for some in (everyone[part::3] for part in range(3)):
        own_true = pd.concat([true[true["user_id"].isin(some)], lift])
        parts.append(
            result_of(metrics, own_true, pred[pred["user_id"].isin(some)], **options).per_user
        )
    merged = pd.concat(parts).drop_duplicates(["model", "user_id"]).set_index(["model", "user_id"])
    assert_close(merged.loc[whole.index], whole)


def check_inputs_untouched(metrics):
    """Whatever the frames' index and memory, they are the same afterwards, and so are the
    values."""
    true, pred = frames(9)
    options = {"by": "model", "score_col": "score", "nan_score": "last"}
    reference = values_of(metrics, true, pred, **options)
    odd = [
        (true, pred),
        (
            true.set_axis([7] * len(true)),
            pred.set_axis(pd.MultiIndex.from_product([[0], range(len(pred))])),
        ),
        (true.set_axis(true["user_id"].rename("user_id")), pred.set_axis([np.nan] * len(pred))),
        (pd.concat([true, true])[: len(true)], pd.concat([pred, pred])[len(pred) :]),
        (read_only(true), read_only(pred)),
        (true[true.columns[::-1]], pred[pred.columns[::-1]]),
    ]
    for one, two in odd:
        before = one.copy(deep=True), two.copy(deep=True)
        catalogue = pd.DataFrame({"item_id": ITEMS}, index=[3] * N_ITEMS)
        users = pd.DataFrame({"user_id": true["user_id"].unique()})
        assert_close(
            values_of(metrics, one, two, **{**options, "items": catalogue, "users": users}),
            reference,
        )
        pd.testing.assert_frame_equal(one, before[0])
        pd.testing.assert_frame_equal(two, before[1])
        assert one.attrs == two.attrs == {}
        pd.testing.assert_frame_equal(
            catalogue, pd.DataFrame({"item_id": ITEMS}, index=[3] * N_ITEMS)
        )


def read_only(frame):
    columns = {name: frame[name].to_numpy(copy=True) for name in frame}
    for array in columns.values():
        array.flags.writeable = False
    return pd.DataFrame(columns, copy=False)


def check_by(metrics):
    """Each value of `by` gives what a call of its own gives; every value has the whole
    population."""
    true, pred = frames(10)
    pred = pred.assign(day=pd.Categorical(pred["user_id"] % 2))
    options = {"score_col": "score", "nan_score": "last", "users": "all"}
    found = result_of(metrics, true, pred, by=["model", "day"], **{**options, "users": "true"})
    for (model, day), table in found.per_user.groupby(["model", "day"], observed=True):
        alone = pred[(pred["model"] == model) & (pred["day"] == day)]
        expected = result_of(metrics, true, alone, **{**options, "users": "true"})
        pd.testing.assert_frame_equal(
            table.drop(columns=["model", "day"]).reset_index(drop=True), expected.per_user
        )
        rows = (found.summary["model"] == model) & (found.summary["day"] == day)
        assert_close(found.summary.loc[rows, "value":], expected.summary.loc[:, "value":])
    for users in ("pred", "both"):
        found = result_of(metrics, true, pred, by="model", **{**options, "users": users}).per_user
        for model, table in found.groupby("model"):
            expected = result_of(
                metrics, true, pred[pred["model"] == model], **{**options, "users": users}
            ).per_user
            pd.testing.assert_frame_equal(
                table.drop(columns="model").reset_index(drop=True), expected
            )


def check_composite_key(metrics):
    """Two key columns are one key."""
    true, pred = frames(11)
    pred = pred[pred["model"] == "b"]
    options = {"score_col": "score", "nan_score": "last", "users": "all"}
    reference = result_of(metrics, true, pred, **options).per_user
    true, pred = (
        frame.assign(user=frame["user_id"] % 4, day=strings(frame["user_id"] // 4))
        for frame in (true, pred)
    )
    found = result_of(metrics, true, pred, user_col=["user", "day"], **options).per_user
    assert list(found.columns[:2]) == ["user", "day"]
    assert found["user"].tolist() == (reference["user_id"] % 4).tolist()
    assert found["day"].tolist() == strings(reference["user_id"] // 4)
    pd.testing.assert_frame_equal(found.iloc[:, 2:], reference.iloc[:, 1:])


def check_single_call(metric):
    """The number, the per-user frame and evaluate agree; the metric survives pickling."""
    true, pred = distinct(12)
    pred = pred[pred["model"] == "a"]
    again = pickle.loads(pickle.dumps(metric))
    assert again is metric
    sides, given = SIDES, (true, pred)
    if "true" not in metric.arguments:
        sides, given, true = {"duplicates": "drop"}, (pred,), None
    for params in variants(metric)[:3]:
        result = quietly(rd.evaluate, true, pred, text(metric, params), 3, **sides)
        one = quietly(metric.per_user, *given, 3, **params, **sides)
        assert one.columns[0] == "user_id"
        assert_close(one.iloc[:, 1:], result.per_user.iloc[:, 3:])
        value = quietly(metric, *given, 3, **params, **sides)
        values = list(value.values()) if isinstance(value, dict) else [value]
        assert all(type(x) is float for x in values)
        assert_close(values, result.per_user.iloc[:, 3:].mean())
        assert_close(values, result.summary["value"])


def check_own_columns(metric):
    """Columns are arrays of their own, also where the same is asked twice and k is beyond every
    list."""
    true, pred = distinct(13)
    tried = [text(metric, params) for params in variants(metric)[:6]]
    # Several columns take no own names, and so are asked for once.
    twice = (
        {f"{i}:{one}": one for i in range(2) for one in tried}
        if len(metric.outputs) == 1
        else tried
    )
    result = quietly(rd.evaluate, true, pred[pred["model"] == "a"], twice, k=99, **SIDES)
    assert_own_memory(result.per_user)


CHECKS = {
    function.__name__.removeprefix("check_"): function
    for function in (
        check_row_order,
        check_ties_ignore_row_order,
        check_k_beyond_the_list,
        check_bounds,
        check_parts,
        check_inputs_untouched,
        check_by,
        check_composite_key,
    )
}

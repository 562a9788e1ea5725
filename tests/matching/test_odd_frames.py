"""Frames that nobody would write: equal to the oracle, or refused, and never a value out of
bounds."""

import contextlib
import datetime as dt
import decimal
import math
import uuid

import numpy as np
import oracles
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from registry.seeded import assert_close, quietly, records

import recdf as rd

# -- frames nobody would write

METRICS = [
    *(
        "hitrate",
        "hits",
        "precision(divisor=shown)",
        "recall",
        "f1",
        "rprecision",
        "mapr",
        "mapr(normalizer=shown)",
    ),
    *(
        "mar",
        "mrr",
        "mrr(of=all)",
        "arhr",
        "ndcg",
        "ndcg(gain=exp2,ideal=shown)",
        "ndcg(tied=averaged)",
        "err",
        "auc",
    ),
    *(
        "pauc",
        "pap",
        "bpref",
        "first_rank",
        "money_precision",
        "money_recall",
        "revenue",
        "money_ndcg",
    ),
]
INT64 = st.integers(-(2**63), 2**63 - 1) | st.sampled_from(
    [-(2**63), 2**63 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 0]
)
ODD_TEXT = st.text(max_size=3) | st.sampled_from(["", " ", "\0", "nan", "None", "é", "e\u0301"])
POOLS = st.one_of(
    *(
        st.lists(ids, min_size=1, max_size=6, unique=True)
        for ids in (
            st.integers(-3, 40),
            INT64,
            st.integers(0, 2**64 - 1) | st.just(2**64 - 1),
            ODD_TEXT,
        )
    )
)
NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.1, 5e-324, 1e308, -1e308]
SCORES = st.sampled_from([*NUMBERS, math.inf, -math.inf, math.nan])
GAINS = st.sampled_from([0.0, 0.0, 1.0, 1.0, 2.0, 0.5, 1e-9, 30.0])
VALUES = st.sampled_from([0.0, 0.1, 0.7, 3.0, 1e-12, 1e9])


@st.composite
def odd_frames(draw):
    users, items = draw(POOLS), draw(POOLS)
    user, item = st.sampled_from(users), st.sampled_from(items)
    true = draw(st.lists(st.tuples(user, item, GAINS, VALUES), min_size=1, max_size=12))
    pred = draw(st.lists(st.tuples(user, item, SCORES, VALUES), max_size=14))
    true = pd.DataFrame(
        {
            "user_id": pd.Series([row[0] for row in true], dtype=object),
            "item_id": pd.Series([row[1] for row in true], dtype=object),
            "relevance": [row[2] for row in true],
            "value": [row[3] for row in true],
        }
    )
    pred = pd.DataFrame(
        {
            "user_id": pd.Series([row[0] for row in pred], dtype=object),
            "item_id": pd.Series([row[1] for row in pred], dtype=object),
            "score": np.array([row[2] for row in pred], float),
            "value": np.array([row[3] for row in pred], float),
        }
    )
    return true, pred, {"user_id": users, "item_id": items}


def cast(frame, name, pool, form):
    """The id column in another form that holds the same ids, where it can."""
    if form == "category":
        return frame.assign(
            **{name: pd.Categorical(frame[name], categories=pd.Index(pool[::-1], dtype=object))}
        )
    if form == "inferred" and len(frame):
        return frame.assign(**{name: pd.Series(frame[name].tolist())})
    return frame


@pytest.mark.long
@given(
    odd_frames(),
    st.tuples(*[st.sampled_from(["object", "inferred", "category"])] * 4),
    st.sampled_from(["item_desc", "item_asc", "row", "worst"]),
    st.sampled_from(["true", "pred", "both", "all"]),
    st.sampled_from(["drop", "keep"]),
    st.booleans(),
    st.sampled_from(["score", "row"]),
    st.integers(1, 5),
)
def test_odd_frames_equal_the_oracle(frames, forms, ties, users, duplicates, judged_only, order, k):
    true, pred, pools = frames
    expected = oracles.match_lists(
        records(true),
        records(pred),
        k,
        order=order,
        users=users,
        relevance=True,
        ties=ties,
        duplicates=duplicates,
        judged_only=judged_only,
    )
    before = true.copy(deep=True), pred.copy(deep=True)
    true = cast(
        cast(true, "user_id", pools["user_id"], forms[0]), "item_id", pools["item_id"], forms[1]
    )
    pred = cast(
        cast(pred, "user_id", pools["user_id"], forms[2]), "item_id", pools["item_id"], forms[3]
    )
    options = {"ties": ties, "users": users, "duplicates": duplicates, "judged_only": judged_only}
    if order == "row":
        pred = pred.drop(columns="score")
    if not expected:
        with pytest.raises(rd.EmptyPopulationError):
            quietly(
                rd.evaluate,
                true,
                pred,
                "mrr",
                relevance_col="relevance",
                nan_score="last",
                **options,
            )
        return
    names = [name for name in METRICS if not (name.startswith("bpref") and duplicates == "keep")]
    result = quietly(
        rd.evaluate,
        true,
        pred,
        names,
        k,
        relevance_col="relevance",
        value_col="value",
        nan_score="last",
        **options,
    )
    assert result.per_user["user_id"].tolist() == list(expected)
    for name, column in zip(names, result.per_user.columns[3:], strict=True):
        metric, params = metric_and_params(name)
        slow = [float(oracles.ORACLES[metric](one, **params)) for one in expected.values()]
        assert_close(result.per_user[column], slow, name)
        low, high = rd.METRICS[metric].bounds
        assert not (result.per_user[column] < low).any()
        assert high is None or not (result.per_user[column] > high).any()
    if order == "score":
        pd.testing.assert_frame_equal(before[0], frames[0])
        pd.testing.assert_frame_equal(before[1], frames[1])


def metric_and_params(text):
    name, _, inside = text.rstrip(")").partition("(")
    return name, dict(part.split("=") for part in inside.split(",") if part)


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.tuples(st.integers(0, 2)),
    st.lists(st.integers(0, 2), max_size=1),
    st.just({}),
    st.dates(),
    st.datetimes(),
    st.just(np.int8(3)),
    st.just(np.float32(2)),
    st.just(np.str_("a")),
    st.just(np.datetime64("2026-01-01")),
    st.just(decimal.Decimal("1.5")),
    st.just(uuid.UUID(int=1)),
    st.just(pd.Timestamp("2026-01-01", tz="UTC")),
    st.just(pd.Timedelta(1, "D")),
    st.just(pd.Interval(0, 1)),
    st.just(frozenset()),
    st.just(object),
    st.just(1j),
)
LIKELY = st.sampled_from(
    [1, 2, 3, "a", "b", "1", 1.0, 2.5, None, math.nan, True, dt.date(2026, 1, 1)]
)


@st.composite
def columns(draw, n):
    values = draw(
        st.lists(
            draw(st.sampled_from([ANYTHING, LIKELY, st.integers(0, 3), st.sampled_from("abc")])),
            min_size=n,
            max_size=n,
        )
    )
    column = pd.Series(values, dtype=object)
    if draw(st.booleans()):
        with contextlib.suppress(Exception):  # pandas refuses some of these itself
            column = column.astype("category") if draw(st.booleans()) else column.infer_objects()
    return column


@st.composite
def any_frames(draw):
    n, m = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    true = pd.DataFrame({name: draw(columns(n)) for name in ("user_id", "item_id", "relevance")})
    pred = pd.DataFrame({name: draw(columns(m)) for name in ("user_id", "item_id", "score")})
    return true, pred


@pytest.mark.long
@settings(max_examples=2 * settings.default.max_examples)
@given(any_frames(), st.booleans(), st.booleans(), st.booleans())
@example(
    (
        pd.DataFrame({"user_id": [1], "item_id": [1]}),
        pd.DataFrame({"user_id": [1], "item_id": [1]}),
    ),
    False,
    False,
    True,
)
def test_anything_at_all_is_evaluated_within_bounds_or_refused(frames, graded, scored, lenient):
    true, pred = frames
    options = {"null_keys": "drop", "nan_score": "last", "duplicates": "drop"} if lenient else {}
    if graded and "relevance" in true:
        options["relevance_col"] = "relevance"
    if not scored:
        pred = pred[["user_id", "item_id"]]
    names = [
        "hitrate@2",
        "precision@2",
        "recall@2",
        "ndcg@2",
        "mapr@2",
        "auc@2",
        "ndcg(gain=exp2)@2",
    ]
    try:
        result = quietly(rd.evaluate, true, pred, names, **options)
    except rd.RecdfError:
        return
    values = result.per_user.iloc[:, 3:]
    assert len(values) > 0
    assert not (values < 0).any(axis=None)
    assert not (values > 1).any(axis=None)
    whole = true.dropna(subset=["user_id", "item_id"]) if lenient else true
    assert len(result.per_user) == len(set(whole["user_id"]))
    wanted = set(zip(true["user_id"], true["item_id"], strict=True))
    if not graded:
        hit = any(pair in wanted for pair in zip(pred["user_id"], pred["item_id"], strict=True))
        assert (result.per_user["ndcg@2"].max() > 0) <= hit
    assert repr(result)
    assert result._repr_html_()

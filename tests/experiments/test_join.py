"""join_experiment: who is in the table, what a missing list is, exposure and time, and bad
joins."""

import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from experiments.variants import GROUPS, METRICS
from hypothesis import assume, given
from hypothesis import strategies as st

import recdf as rd
from recdf.errors import (
    ColumnError,
    DataError,
    DuplicateError,
    IdTypeError,
    NullKeyError,
    OptionError,
)


def test_join_keeps_every_assigned_user_in_order():
    joined = rd.join_experiment(METRICS, GROUPS, missing="zero")
    want = pd.DataFrame(
        {
            "user_id": [4, 2, 1],
            "variant": ["B", "B", "A"],
            "segment": ["x", "y", "x"],
            "n_pred": [0, 10, 10],
            "ndcg@10": [0.0, 0.25, 0.5],
            "has_metrics": [False, True, True],
        }
    )
    pd.testing.assert_frame_equal(joined, want)
    counts = joined.attrs["recdf_experiment"]
    assert (counts["n_assigned"], counts["n_missing"], counts["n_unassigned"]) == (3, 1, 1)
    json.dumps(joined.attrs)


def test_join_missing_options():
    nan = rd.join_experiment(METRICS, GROUPS, missing="nan")
    assert nan["n_pred"].dtype == "Int64"
    assert nan["n_pred"].isna().tolist() == nan["ndcg@10"].isna().tolist() == [True, False, False]
    dropped = rd.join_experiment(METRICS, GROUPS, missing="drop")
    assert dropped["user_id"].tolist() == [2, 1]
    assert dropped["n_pred"].dtype == "int64"
    with pytest.raises(DataError, match=r"1 of 3 assigned users have no metrics \(4\)"):
        rd.join_experiment(METRICS, GROUPS)


def test_join_by_gives_each_value_all_assigned_users():
    both = pd.concat([METRICS.assign(model="als"), METRICS.iloc[:1].assign(model="pop")])
    with pytest.raises(DuplicateError, match=r"several rows per \['user_id'\]"):
        rd.join_experiment(both, GROUPS, missing="zero")
    joined = rd.join_experiment(both, GROUPS, by="model", missing="zero")
    assert joined["model"].tolist() == ["als"] * 3 + ["pop"] * 3
    assert joined["user_id"].tolist() == [4, 2, 1] * 2
    assert joined["ndcg@10"].tolist() == [0, 0.25, 0.5, 0, 0, 0.5]
    table = rd.compare_variants(joined, "ndcg@10", control="A", by="model")
    assert table["model"].tolist() == ["als", "pop"]


@pytest.mark.parametrize(
    "dtype", ["int8", "uint64", "Int64", "float64", "category", "int64[pyarrow]", object]
)
def test_join_accepts_ids_of_another_width(dtype):
    joined = rd.join_experiment(METRICS.astype({"user_id": dtype}), GROUPS, missing="zero")
    assert joined["ndcg@10"].tolist() == [0.0, 0.25, 0.5]
    assert joined["user_id"].dtype == GROUPS["user_id"].dtype


@pytest.mark.parametrize("dtype", [object, "category", "string[pyarrow]", "string[python]", "str"])
def test_join_accepts_strings_however_stored(dtype):
    names = {1: "ä1", 2: "b2", 3: "c3", 4: "d4"}
    metrics = METRICS.assign(user_id=METRICS["user_id"].map(names)).astype({"user_id": dtype})
    groups = GROUPS.assign(user_id=GROUPS["user_id"].map(names))
    assert rd.join_experiment(metrics, groups, missing="zero")["ndcg@10"].tolist() == [
        0.0,
        0.25,
        0.5,
    ]


def test_join_is_exact_beyond_2_to_53():
    big = 2**53
    metrics = pd.DataFrame({"user_id": [big, big + 1, 2**63 - 1], "m": [1.0, 2.0, 3.0]})
    groups = pd.DataFrame(
        {"user_id": np.array([2**63 - 1, big + 1, big], dtype="uint64"), "variant": list("ABB")}
    )
    assert rd.join_experiment(metrics, groups)["m"].tolist() == [3.0, 2.0, 1.0]


def test_join_composite_key():
    metrics = pd.DataFrame({"user": [1, 1, 2], "session": ["a", "b", "a"], "m": [1.0, 2.0, 3.0]})
    groups = pd.DataFrame({"session": ["a", "a", "b"], "user": [2, 1, 1], "variant": list("ABA")})
    assert rd.join_experiment(metrics, groups, user_col=["user", "session"])["m"].tolist() == [
        3.0,
        1.0,
        2.0,
    ]


def test_users_twice_and_in_two_variants():
    groups = pd.DataFrame({"user_id": [1, 1, 2, 3, 3], "variant": ["A", "A", "B", "A", "B"]})
    with pytest.raises(
        DataError, match=r"1 users of assignment are in more than one variant \(3\)"
    ):
        rd.join_experiment(METRICS, groups)
    joined = rd.join_experiment(METRICS, groups, multi_variant="drop")
    assert joined["user_id"].tolist() == [1, 2]
    assert joined["n_multi_variant"].tolist() == [1.0, 1.0]
    with pytest.raises(DataError, match="column 'n_multi_variant', which join_experiment writes"):
        rd.join_experiment(METRICS.assign(n_multi_variant=0), groups)
    counts = joined.attrs["recdf_experiment"]
    assert (counts["n_multi_variant"], counts["n_repeated"], counts["n_unassigned"]) == (1, 2, 0)


def exposed():
    days = pd.DataFrame(
        {
            "user_id": [1, 1, 1, 2, 2],
            "day": pd.to_datetime([f"2026-01-0{d}" for d in (1, 3, 4, 2, 9)]),
            "n_pred": [10, 10, 10, 10, 10],
            "hits@10": [9.0, 1.0, 2.0, 4.0, 8.0],
        }
    )
    groups = pd.DataFrame(
        {
            "user_id": [2, 1, 1],
            "variant": ["B", "A", "A"],
            "at": pd.to_datetime(["2026-01-05", "2026-01-04", "2026-01-03"]),
        }
    )
    return days, groups


def test_rows_before_exposure_are_dropped_and_counted():
    days, groups = exposed()
    joined = rd.join_experiment(days, groups, exposure_col="at", time_col="day", how="sum")
    # User 1 was first exposed on the 3rd; user 2 on the 5th.
    assert joined["hits@10"].tolist() == [8.0, 3.0]
    assert joined["n_pred"].tolist() == [10, 20]
    assert joined["n_before_exposure"].tolist() == [1, 1]
    assert joined.attrs["recdf_experiment"]["n_before_exposure"] == 2
    with pytest.raises(DuplicateError, match=r"rd\.experiments\.roll_up"):
        rd.join_experiment(days, groups, exposure_col="at", time_col="day")


def test_exposure_time_kinds():
    days, groups = exposed()
    aware = groups.assign(at=groups["at"].dt.tz_localize("Europe/Berlin"))
    with pytest.raises(DataError, match="datetime with time zone"):
        rd.join_experiment(days, aware, exposure_col="at", time_col="day", how="sum")
    both = days.assign(day=days["day"].dt.tz_localize("UTC"))
    joined = rd.join_experiment(both, aware, exposure_col="at", time_col="day", how="sum")
    assert joined["n_before_exposure"].tolist() == [1, 1]
    numbers = rd.join_experiment(
        days.assign(day=days["day"].dt.day),
        groups.assign(at=groups["at"].dt.day.astype("float64")),
        exposure_col="at",
        time_col="day",
        how="sum",
    )
    assert numbers["hits@10"].tolist() == [8.0, 3.0]
    assert not any(name.startswith("day") for name in numbers.columns)
    dates = rd.join_experiment(
        days.assign(day=days["day"].dt.date),
        groups.assign(at=groups["at"].dt.as_unit("s")),
        exposure_col="at",
        time_col="day",
        how="sum",
    )
    assert dates["hits@10"].tolist() == [8.0, 3.0]


TIMES = {"missing": "zero", "time_col": "t", "exposure_col": "at"}

BAD_JOINS = [
    (
        "int against str",
        lambda m, a: (m, a.astype({"user_id": str}), {}),
        IdTypeError,
        "integer.*string",
    ),
    ("no column", lambda m, a: (m, a.drop(columns="variant"), {}), ColumnError, "variant"),
    ("null user", lambda m, a: (m, a.assign(user_id=[None, 2.0, 1.0]), {}), NullKeyError, "1 of 3"),
    (
        "null variant",
        lambda m, a: (m, a.assign(variant=["A", None, "B"]), {}),
        NullKeyError,
        "variant.*1 of 3",
    ),
    (
        "no user in common",
        lambda m, a: (m, a.assign(user_id=[7, 8, 9]), {"missing": "zero"}),
        DataError,
        "no user",
    ),
    ("column in both", lambda m, a: (m, a.assign(n_pred=1), {}), DataError, "both have 'n_pred'"),
    (
        "variant in both",
        lambda m, a: (m.assign(variant="A"), a, {}),
        DataError,
        "both have 'variant'",
    ),
    (
        "unassigned",
        lambda m, a: (m, a, {"missing": "zero", "unassigned": "raise"}),
        DataError,
        r"1 users.*\(3\)",
    ),
    ("option", lambda m, a: (m, a, {"missing": "zeros"}), OptionError, "did you mean 'zero'"),
    ("half of the exposure", lambda m, a: (m, a, {"time_col": "t"}), OptionError, "go together"),
    (
        "text as time",
        lambda m, a: (m.assign(t="now"), a.assign(at="now"), TIMES),
        DataError,
        "pd.to_datetime",
    ),
    (
        "null time",
        lambda m, a: (m.assign(t=[1, None, 2]), a.assign(at=1), TIMES),
        DataError,
        "null in 1 of 3",
    ),
    ("not a frame", lambda m, a: (m.to_dict(), a, {}), TypeError, "per_user is a dict"),
]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [case[1:] for case in BAD_JOINS],
    ids=[case[0] for case in BAD_JOINS],
)
def test_bad_joins(make, error, words):
    metrics, groups, options = make(METRICS, GROUPS)
    with pytest.raises(error, match=words):
        rd.join_experiment(metrics, groups, **options)


@pytest.mark.long
@given(
    st.lists(st.integers(-3, 12), unique=True, min_size=1),
    st.lists(st.integers(-3, 12), unique=True, min_size=1),
    st.sampled_from(["int64", "uint8", "Int32", "str", "category", "object"]),
    st.sampled_from(["zero", "nan", "drop"]),
)
def test_join_is_a_left_merge(measured, assigned, dtype, missing):
    assume(set(measured) & set(assigned))
    metrics = pd.DataFrame({"user_id": measured, "n_pred": 7, "m": np.arange(len(measured)) / 4})
    groups = pd.DataFrame({"user_id": assigned, "variant": ["AB"[u % 2] for u in assigned]})
    want = groups.merge(metrics, how="inner" if missing == "drop" else "left")
    if missing == "zero":
        want = want.fillna({"n_pred": 0, "m": 0})
    shift = metrics["user_id"] + 3, groups["user_id"] + 3
    text = dtype == "str"
    metrics["user_id"] = shift[0].astype(str) if text else shift[0].astype(dtype)
    groups["user_id"] = shift[1].astype("string" if text else "int64")
    joined = rd.join_experiment(metrics, groups, missing=missing, larger_is_better="m")
    assert joined["user_id"].tolist() == [str(u + 3) if text else u + 3 for u in want["user_id"]]
    for name in ("n_pred", "m"):
        np.testing.assert_array_equal(
            joined[name].to_numpy(float, na_value=np.nan), want[name].to_numpy(float)
        )


def test_users_without_metrics_are_not_left_out_of_unlike_shares_in_silence():
    """Of 1,000 users of each variant 300 and 400 have no metrics: 4.7 standard errors apart."""
    groups = pd.DataFrame({"user_id": range(2000), "variant": ["A"] * 1000 + ["B"] * 1000})
    there = groups["user_id"].between(300, 999) | (groups["user_id"] >= 1400)
    metrics = groups[there].drop(columns="variant").assign(clicks=1.0)
    said = "from 30.0% to 40.0% of the users of a variant have no metrics"
    with pytest.warns(rd.RecdfWarning, match=said) as found:
        rd.join_experiment(metrics, groups, missing="drop")
    assert found[0].message.argument == "missing"
    alike = groups[groups["user_id"] % 10 > 2].drop(columns="variant").assign(clicks=1.0)
    assert len(rd.join_experiment(alike, groups, missing="drop")) == 1400


@pytest.mark.parametrize("kind", [Decimal, float, int])
def test_numbers_as_objects_are_metrics(kind):
    """A driver of a database gives objects; the tables are those of plain numbers."""
    plain = METRICS.assign(**{"revenue@10": 3.0, "clicks": [2.5] + [1.5] * (len(METRICS) - 1)})
    as_kind = plain.assign(**{"revenue@10": [kind(3)] * len(METRICS)})
    if kind is Decimal:
        as_kind["clicks"] = plain["clicks"].map(Decimal)
    as_kind["revenue@10"] = as_kind["revenue@10"].astype(object)
    for missing in ("zero", "worst"):
        joined = [
            rd.join_experiment(one, GROUPS, missing=missing, larger_is_better="clicks")
            for one in (plain, as_kind)
        ]
        pd.testing.assert_frame_equal(*joined)
    with pytest.raises(OptionError, match=r"per_user\['clicks'\] is no metric that recdf knows"):
        rd.join_experiment(as_kind, GROUPS, missing="zero")
    for how in ("sum", "mean", "max"):
        rolled = [
            rd.experiments.roll_up(pd.concat([one, one]), how=how, over=[])
            for one in (plain, as_kind)
        ]
        pd.testing.assert_frame_equal(*rolled)
    ids = METRICS.assign(store=pd.Series([1, None] * len(METRICS), dtype=object))
    with pytest.raises(DataError, match=r"whole numbers in \['store'\], which may be ids"):
        rd.experiments.roll_up(ids, how="sum")

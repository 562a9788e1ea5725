"""`carry=`: columns of `pred` beside the metrics, in their dtype, one value per list, and no
metrics themselves."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from registry.seeded import quietly

import recdf as rd

TIMES = pd.to_datetime(["2026-09-01 10:00", "2026-09-02 11:00", "2026-09-03 12:00"], utc=True)
PRED = pd.DataFrame(
    {
        "user_id": [2, 1, 1, 2, 3],
        "item_id": ["a", "a", "b", "b", "a"],
        "rank": [2, 1, 2, 1, 1],
        "time": TIMES.take([1, 0, 0, 1, 2]),
        "variant": pd.Categorical(["B", "A", "A", "B", "A"]),
        "visit": [7, 5, 5, 7, 9],
        "new": [True, False, False, True, False],
        "seconds": [4, 1, 2, 3, 5],
    }
)
TRUE = pd.DataFrame({"user_id": [1, 2, 3], "item_id": ["a", "a", "b"]})
CARRY = ["time", "variant", "visit", "new"]


def test_columns_stand_before_n_true_in_their_dtype():
    per_user = rd.evaluate(TRUE, PRED, "mrr@2", carry=CARRY).per_user
    assert per_user.columns.tolist() == ["user_id", *CARRY, "n_true", "n_pred", "mrr@2"]
    assert per_user[CARRY].dtypes.to_dict() == PRED[CARRY].dtypes.to_dict()
    expected = PRED.drop_duplicates("user_id").set_index("user_id")[CARRY]
    assert per_user.set_index("user_id")[CARRY].to_dict() == expected.to_dict()


def test_the_spec_says_what_was_carried():
    result = rd.evaluate(TRUE, PRED, "mrr@2", carry={"time": "min", "visit": "constant"})
    assert result.spec["carry"] == {"time": "min", "visit": "constant"}
    assert "carry" not in rd.evaluate(TRUE, PRED, "mrr@2").spec


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("first", [1, 3, 5]), ("last", [2, 4, 5]), ("min", [1, 3, 5]), ("max", [2, 4, 5])],
)
def test_rules(rule, expected):
    """`first` and `last` go by rank: the best of user 2 is the row that stands last."""
    assert (
        rd.evaluate(TRUE, PRED, "mrr@2", carry={"seconds": rule}).per_user["seconds"].tolist()
        == expected
    )


def test_lists_that_pred_does_not_have_are_null():
    true = pd.concat([TRUE, pd.DataFrame({"user_id": [9], "item_id": ["a"]})])
    per_user = rd.evaluate(true, PRED, "mrr@2", carry=CARRY).per_user
    assert per_user[CARRY].iloc[3].isna().all()
    assert per_user["visit"].tolist()[:3] == [5, 7, 9]
    assert (str(per_user["visit"].dtype), str(per_user["new"].dtype)) == ("Int64", "boolean")
    assert per_user["time"].dtype == PRED["time"].dtype


def test_a_list_that_changes_is_an_error_that_names_it():
    with pytest.raises(rd.DataError) as found:
        rd.evaluate(TRUE, PRED, "mrr@2", carry="seconds")
    for words in (
        "pred['seconds'] is not constant within 2 lists",
        "'user_id': 1",
        "1, 2",
        '"first"',
    ):
        assert words in str(found.value)


def test_a_null_beside_a_value_is_a_change():
    pred = PRED.assign(visit=pd.array([7, 5, None, 7, 9], dtype="Int64"))
    with pytest.raises(rd.DataError, match="not constant within 1 lists"):
        rd.evaluate(TRUE, pred, "mrr@2", carry="visit")
    assert rd.evaluate(TRUE, pred, "mrr@2", carry={"visit": "min"}).per_user["visit"].tolist() == [
        5,
        7,
        9,
    ]
    nulls = PRED.assign(visit=pd.array([7, None, None, 7, 9], dtype="Int64"))
    assert rd.evaluate(TRUE, nulls, "mrr@2", carry="visit").per_user["visit"].isna().tolist() == [
        True,
        False,
        False,
    ]


def test_by():
    pred = pd.concat([PRED.assign(model="x"), PRED.assign(model="y", visit=PRED["visit"] + 10)])
    per_user = rd.evaluate(TRUE, pred, "mrr@2", by="model", carry="visit").per_user
    assert per_user["visit"].tolist() == [5, 7, 9, 15, 17, 19]


@pytest.mark.long
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 9)),
        max_size=12,
        unique_by=lambda row: row[:2],
    ),
    rule=st.sampled_from(["min", "max", "first", "last"]),
)
def test_equals_a_plain_loop(rows, rule):
    pred = pd.DataFrame(rows, columns=["user_id", "item_id", "number"])
    true = pd.DataFrame({"user_id": range(4), "item_id": 0})
    per_user = quietly(
        lambda: rd.evaluate(true, pred, "hits@9", carry={"number": rule}, users="all")
    ).per_user
    choose = {"min": min, "max": max, "first": lambda own: own[0], "last": lambda own: own[-1]}[
        rule
    ]
    for user, number in zip(per_user["user_id"], per_user["number"], strict=True):
        own = [row[2] for row in rows if row[0] == user]
        assert pd.isna(number) if not own else number == choose(own)


def test_carried_columns_are_no_metrics():
    result = rd.evaluate(TRUE, PRED, "mrr@2", carry=["visit", "time"])
    assert result.summary["metric"].unique().tolist() == ["mrr"]
    segments = pd.DataFrame({"user_id": [1, 2, 3], "segment": list("xyx")})
    for per_user in (result.per_user, result.per_user.merge(segments)):
        assert rd.summarize(per_user, by="time")["metric"].unique().tolist() == ["mrr"]
        assert (
            "visit"
            not in rd.experiments.roll_up(per_user, how="sum", over=["visit", "time"]).columns
        )
    assert "visit" not in rd.experiments.roll_up(result.per_user, how="sum").columns


def test_time_and_variant_on_the_way_to_an_experiment():
    """Rows before the exposure of their user go, without a merge by hand; the carried variant is
    not in the way."""
    result = rd.evaluate(TRUE, PRED, "hits@2", carry=["time", "variant"])
    assignment = pd.DataFrame(
        {
            "user_id": [1, 2, 3],
            "variant": ["A", "B", "A"],
            "exposed_at": TIMES + pd.to_timedelta([-1, 1, -1], unit="h"),
        }
    )
    users = result.join_experiment(
        assignment,
        exposure_col="exposed_at",
        time_col="time",
        how={"hits@2": "sum"},
        missing="zero",
    )
    assert users["hits@2"].tolist() == [1.0, 0.0, 0.0]
    assert users["n_before_exposure"].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("carry", "error", "words"),
    [
        ("when", rd.ColumnError, "pred has no column 'when'"),
        ("user_id", rd.OptionError, "comes along by itself"),
        ({"visit": "mean"}, rd.OptionError, "carry['visit']"),
        ({"variant": "min"}, rd.DataError, "has no order"),
    ],
)
def test_bad_input(carry, error, words):
    with pytest.raises(error) as found:
        rd.evaluate(TRUE, PRED, "mrr@2", carry=carry)
    assert words in str(found.value)

"""Ids of 64 bits without a sign beside those with one: exact in every result, or an error that
names the column."""

import numpy as np
import pandas as pd
import pytest
from quick import few

import recdf as rd

B = 2**60


def frames(signed="int64", unsigned="uint64", last=B + 5):
    true = pd.DataFrame(
        {"user_id": pd.Series([B + 1, B + 3], dtype="int64").astype(signed), "item_id": [1, 1]}
    )
    ids = pd.Series(np.array([B + 3, last], dtype="uint64")).astype(unsigned)
    return true, pd.DataFrame({"user_id": ids, "item_id": [1, 1]})


@pytest.mark.few(8)
@pytest.mark.parametrize("last", [B + 5, 2**63 + 7])
@pytest.mark.parametrize("unsigned", ["uint64", "UInt64", "uint64[pyarrow]"])
@pytest.mark.parametrize("signed", ["int64", "Int64", "int64[pyarrow]"])
def test_users_of_both_frames_are_exact(signed, unsigned, last):
    found = rd.evaluate(*frames(signed, unsigned, last), "recall@1", users="all").per_user
    assert found["user_id"].tolist() == [B + 1, B + 3, last]
    assert pd.api.types.is_integer_dtype(found["user_id"].dtype)
    assert found["recall@1"].tolist()[:2] == [0.0, 1.0]


@pytest.mark.few(2)
@pytest.mark.parametrize("whole", ["float64", "Float64", "double[pyarrow]"])
@pytest.mark.parametrize("signed", ["int64", "category", "int64[pyarrow]"])
def test_integers_beside_floats_are_exact(tmp_path, signed, whole):
    ids = pd.Series([B + 1, B + 3, 7]).astype(signed)
    true = pd.DataFrame({"user_id": ids, "item_id": [1, 1, 1]})
    pred = pd.DataFrame({"user_id": pd.Series([7, 9]).astype(whole), "item_id": [1, 1]})
    found = [rd.evaluate(true, pred, "recall@1", users="all")]
    if signed != "category":
        files = [tmp_path / "true.parquet", tmp_path / "pred.parquet"]
        true.to_parquet(files[0])
        pred.to_parquet(files[1])
        found.append(rd.evaluate_parquet(*files, "recall@1", users="all"))
    for result in found:
        assert result.per_user["user_id"].tolist() == [*ids, 9]


def test_ids_that_no_dtype_holds_are_an_error():
    true, pred = frames(last=2**63 + 7)
    true["user_id"] -= 2**61
    pred.loc[0, "user_id"] = B + 3 - 2**60
    with pytest.raises(rd.IdTypeError, match="'user_id' has ids from -"):
        rd.evaluate(true, pred, "recall@1", users="all", undefined="nan")


@pytest.mark.parametrize("buckets", [1, 3])
def test_files(tmp_path, buckets):
    true, pred = frames()
    true.to_parquet(tmp_path / "true.parquet")
    pred.to_parquet(tmp_path / "pred.parquet")
    call = (tmp_path / "true.parquet", tmp_path / "pred.parquet", "recall@1")
    with pytest.raises(rd.IdTypeError, match="holds uint64 and the other frame signed numbers"):
        rd.evaluate_parquet(*call, users="all", buckets=buckets)
    assert rd.evaluate_parquet(*call, buckets=buckets).per_user["user_id"].tolist() == [
        B + 1,
        B + 3,
    ]


IDS = [B + i for i in range(1, 81, 2)]
USERS = pd.Series(np.array(IDS, dtype="uint64"))


def models(signed, unsigned):
    """A result of two models whose frames have users of both kinds."""
    true = pd.DataFrame({"user_id": USERS.astype(signed), "item_id": 1})
    items = np.random.default_rng(1).integers(1, 3, (2, len(IDS)))
    parts = [
        pd.DataFrame({"user_id": USERS.astype(unsigned), "item_id": items[i], "model": "ab"[i]})
        for i in (0, 1)
    ]
    return rd.evaluate(true, pd.concat(parts), "mrr@1", by="model")


def of_users(kind, **columns):
    return pd.DataFrame({"user_id": USERS.astype(kind), **columns})


def model(result, name):
    return result.per_user[result.per_user["model"] == name].drop(columns="model")


def joined(result, other):
    return rd.join_experiment(model(result, "a"), of_users(other, variant=["c", "t"] * 20))


# What is asked with users of the other kind, and the answer that users of one kind have.
ASKED = {
    "join_experiment": lambda result, other: joined(result, other)[
        ["variant", "mrr@1"]
    ].values.tolist(),
    "experiment_health": lambda result, other: rd.experiments.experiment_health(
        model(result, "a"), of_users(other, variant=["c", "t"] * 20)
    )[["n_assigned", "n_with_metrics", "n_unassigned"]].values.tolist(),
    "compare_variants": lambda result, other: rd.compare_variants(
        joined(result, other), "mrr@1", control="c"
    )["diff"].tolist(),
    "compare_models": lambda result, other: rd.compare_models(
        {
            "a": model(result, "a"),
            "b": model(result, "b").assign(user_id=USERS.astype(other).to_numpy()),
        }
    )["diff"].tolist(),
    "leaderboard": lambda result, other: rd.leaderboard(
        result, segments=of_users(other, region=["n", "s"] * 20)
    ).to_html(),
}
FLOATS = "'user_id'\\] is float64 and 40 ids are not whole numbers below 2\\*\\*53"


@pytest.mark.few(1)
@pytest.mark.parametrize("unsigned", ["uint64", "UInt64", "uint64[pyarrow]"])
@pytest.mark.parametrize("asked", few(ASKED, ASKED.keys() - {"leaderboard"}))
def test_tables_match_users_of_both_kinds(asked, unsigned):
    expected = ASKED[asked](models("int64", "int64"), "int64")
    assert ASKED[asked](models("int64", unsigned), unsigned) == expected
    assert ASKED[asked](models(unsigned, "int64"), "int64") == expected
    with pytest.raises(rd.IdTypeError, match=FLOATS):
        ASKED[asked](models("int64", unsigned), "float64")
    with pytest.raises(rd.IdTypeError, match=r"they can never match|holds string ids|integer ids"):
        ASKED[asked](models("int64", unsigned), "str")


def test_rows_of_both_kinds_that_pandas_joins_to_floats_are_an_error():
    result = models("int64", "uint64")
    kinds = {"a": "int64", "b": "uint64"}
    both = pd.concat(
        [model(result, name).assign(model=name).astype({"user_id": kinds[name]}) for name in kinds]
    )
    for call in (
        rd.compare_models,
        lambda frame: rd.experiments.bootstrap_ci(frame, "mrr@1", by="model"),
    ):
        with pytest.raises(rd.IdTypeError, match="is float64 and 80 ids"):
            call(both)


@pytest.mark.parametrize(("one", "two"), [("int64", "uint64"), ("UInt64", "Int64")])
def test_tables_with_ids_of_both_kinds_below_each_other_are_exact(one, two):
    ids = pd.Series([B + 1, B + 3, B + 5, B + 7])
    frames = [
        pd.DataFrame({"user_id": ids.astype(kind), "item_id": ids.astype(kind)})
        for kind in (one, two)
    ]
    first, second = frames[0].iloc[:3], frames[1].iloc[1:]
    results = {
        name: rd.evaluate(frames[0], frame, "recall@1", users="pred")
        for name, frame in (("a", first), ("b", second))
    }
    joined = rd.join_results(results).per_user
    assert joined["user_id"].tolist() == [*ids[:3], *ids[1:]]
    changes = rd.diff(results["a"], results["b"], pred=(first, second)).per_list
    assert changes["user_id"].tolist() == [*ids]
    assert changes["status"].tolist() == ["left", "both", "both", "entered"]
    assert changes["n_common"].tolist() == [0, 1, 1, 0]
    mixed = rd.experiments.interleave(first, second, k=1)
    assert set(mixed["user_id"]) <= {*ids}
    assert set(mixed["item_id"]) <= {*ids}
    shown = rd.diagnostics.exposure_table(second, k=1, items=first["item_id"])
    assert shown["item_id"].tolist() == [*ids]
    missed = rd.diagnostics.hit_table(frames[0], second, k=1, users="true", missed=True)
    assert missed["item_id"].tolist() == [*ids]


def test_rows_of_logs_below_each_other_are_exact():
    """Persons of `persons` beside devices that it lacks, and items of the log beside those of
    purchases."""
    log = {"user_id": np.array([1, 2, 3], "uint64"), "item_id": [B + 1, B + 3, B + 5]}
    log = pd.DataFrame(log).assign(session_id=1, position=1, time=10)
    persons = pd.DataFrame({"user_id": [1, 2], "person": [B + 1, B + 3]})
    bought = {"user_id": [1, 1], "time": 11, "item_id": np.array([B + 1, B + 7], "uint64")}
    how = {"persons": persons, "person_col": "person", "time_col": "time", "window": 5}
    found = rd.from_impressions(log, purchases=pd.DataFrame(bought), unattributed="true", **how)
    assert found.pred["person"].tolist() == [B + 1, B + 3, 3]
    assert found.true["item_id"].tolist() == [B + 1, B + 3, B + 5, B + 7]


def test_given_users():
    true, pred = frames()
    asked = [B + 3, B + 9, 2**63 + 7]
    for users in (asked, pd.DataFrame({"user_id": np.array(asked, "uint64")})):
        assert (
            rd.evaluate(true, pred, "recall@1", users=users).per_user["user_id"].tolist() == asked
        )
    assert rd.evaluate(true, pred, "recall@1", users=[-1, *asked]).per_user["user_id"].tolist() == [
        -1,
        *asked,
    ]
    with pytest.raises(rd.IdTypeError, match="is float64 and 1 ids"):
        rd.evaluate(true, pred, "recall@1", users=[float(B + 3)])


@pytest.mark.parametrize("rule", ["constant", "max"])
def test_carried_ids_beside_lists_that_pred_lacks(rule):
    true, pred = frames()
    carried = pred.assign(session=pred["user_id"])
    found = rd.evaluate(true, carried, "recall@1", carry={"session": rule}).per_user["session"]
    assert [None if pd.isna(one) else int(one) for one in found] == [None, B + 3]


@pytest.mark.parametrize("kind", ["int64", "uint64", "UInt64"])
def test_items_and_log(kind):
    ids = pd.Series(np.array([B + 1, B + 3, B + 5, B + 7], "uint64"))
    true = pd.DataFrame({"user_id": [1, 2], "item_id": ids[:2].astype("int64")})
    pred = pd.DataFrame({"user_id": [1, 1, 2], "item_id": ids[[0, 2, 1]].to_numpy()})
    log = pd.DataFrame({"user_id": [1, 2], "item_id": ids[:2].astype(kind)})
    items = pd.DataFrame({"item_id": ids.astype(kind)})
    found = rd.evaluate(
        true, pred, ["coverage@2", "unseen@2", "mrr@2"], items=items, log=log
    ).summary
    # Three of four items are shown; one of the two items of user 1 and none of user 2 is new to the
    # user.
    assert found["value"].tolist() == [0.75, 0.25, 1.0]

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
    with pytest.raises(rd.IdTypeError, match="holds uint64 and the other frame signed integers"):
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

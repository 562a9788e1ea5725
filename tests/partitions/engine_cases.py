"""Cases that every engine must answer as `rd.evaluate` does: frames, options, errors and warnings.

Expected values come from `rd.evaluate` on the same rows in memory, which other tests compare with
slow oracles.
"""

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa

import recdf as rd

USERS, ITEMS = 23, 12
LISTS = ["ndcg", "recall", "mapr(normalizer=achievable)", "mrr", "hitrate@1"]


def frames(seed=0, users=USERS, **columns):
    """`true` with relevances and `pred` of two models, each of which lacks some users; further
    columns of `pred`."""
    rng = np.random.default_rng(seed)
    true = pd.DataFrame(
        {"user_id": rng.integers(0, users, 90), "item_id": rng.integers(0, ITEMS, 90)}
    )
    true = true.drop_duplicates(ignore_index=True)
    true["relevance"] = rng.integers(0, 3, len(true)).astype(float)
    pred = pd.DataFrame(
        {"user_id": rng.integers(3, users + 5, 260), "item_id": rng.integers(0, ITEMS, 260)}
    )
    pred.insert(0, "model", rng.choice(["svd", "als"], len(pred)))
    pred = pred.drop_duplicates(ignore_index=True)
    pred["score"] = rng.normal(size=len(pred))
    return true, pred.assign(**columns)


def side_tables(seed=1):
    rng = np.random.default_rng(seed)
    return {
        "items": pd.DataFrame(
            {"item_id": range(ITEMS), "category": list("abc") * 4, "price": range(1, ITEMS + 1)}
        ),
        "log": pd.DataFrame(
            {"user_id": rng.integers(0, USERS, 60), "item_id": rng.integers(0, ITEMS, 60)}
        ),
    }


def case_side_tables_exposure_and_groups():
    true, pred = frames()
    metrics = [
        *LISTS,
        "unseen",
        "category_entropy",
        "ild@3",
        "hhi",
        "coverage",
        "personalization",
        "pop_rsp",
    ]
    options = {"by": "model", "features": "category", "item_by": "category", **side_tables()}
    return true, pred, metrics, options


def case_pooled_values_and_intents():
    true, pred = frames(33)
    true["weight"] = true["user_id"] % 3 + 0.5
    aspects = pd.DataFrame(
        {"item_id": [*range(ITEMS), *range(5)], "aspect": [*"xyz" * 4, *"wwwww"]}
    )
    pooled = [
        "precision(pooled=True)",
        "pair_accuracy(pooled=True)",
        "percentile_rank(pooled=True)",
    ]
    intents = [
        "intent_aware(metric=err)",
        "intent_aware(metric=mapr(tied=worst))",
        "a_ndcg(discount=reciprocal)",
    ]
    options = {
        "by": "model",
        "weight_col": "weight",
        "aspects": aspects,
        "items": side_tables()["items"],
    }
    return (
        true,
        pred,
        [*pooled, *intents, "ndcg(average=levels)", "pair_accuracy", "percentile_rank"],
        options,
    )


def case_the_largest_gain_of_all():
    true, pred = frames(2)
    metrics = ["err", "rbp(gain=binary)", "ndcg"]
    return true, pred.astype({"user_id": "int32"}), metrics, {"by": "model", "min_relevance": 1.0}


def case_items_that_nobody_judged():
    true, pred = frames(14)
    true["relevance"] = true["relevance"].where(true.index % 4 > 0).where(true.index % 5 > 0, -1.0)
    metrics = [
        "judged",
        "infap",
        "bpref",
        "rbp_residual",
        "user_model(model=inst)",
        "user_model(measure=residual)",
    ]
    again = pd.concat([pred, pred.sample(40, random_state=3)], ignore_index=True)
    return (
        true,
        again,
        [*LISTS, *metrics, "utility", "unrepeated", "sufficient", "iprecision"],
        {"by": "model"},
    )


def case_seen_items_are_left_out():
    true, pred = frames(12)
    seen = pd.concat([true.sample(20, random_state=1), pred.sample(60, random_state=2)])[
        ["user_id", "item_id"]
    ]
    top = true.loc[
        true["relevance"] == 2, ["user_id", "item_id"]
    ]  # the largest gain is that of what is left
    seen = pd.concat([seen, top, pd.DataFrame({"user_id": [900, None], "item_id": [1, 2]})])
    options = {"exclude": seen.astype("Int64"), "null_keys": "drop", **side_tables()}
    return true, pred, [*LISTS, "err", "hhi", "coverage"], {"by": "model", **options}


def case_seen_items_of_users_of_sessions():
    true, pred = (frame.assign(session=frame["item_id"] % 3) for frame in frames(13))
    seen = pred.sample(60, random_state=2)[["user_id", "item_id"]]
    return true, pred, LISTS, {"user_col": ["user_id", "session"], "users": "all", "exclude": seen}


def case_all_users_of_both_frames():
    true, pred = frames(3)
    return true.astype({"user_id": "int32"}), pred, [*LISTS, "hhi"], {"by": "model", "users": "all"}


def case_all_users_where_the_first_frame_has_the_narrower_integers():
    true, pred = frames(3)
    true["user_id"] = true["user_id"].replace({0: 2**40})  # whom `pred` lacks
    return true, pred.astype({"user_id": "int32"}), LISTS, {"by": "model", "users": "all"}


def case_given_users_with_unknown_ones():
    true, pred = frames(4)
    given = pd.DataFrame({"user_id": [25, 3, 7, 21, 9, 1000, 0]})
    return true, pred, LISTS, {"by": "model", "users": given, "judged_only": True}


def case_a_row_for_each_session():
    true, pred = frames(5)
    for frame in (true, pred):
        frame["session"] = frame["item_id"] % 2
    return true, pred, LISTS, {"by": "model", "user_col": ["user_id", "session"], "users": "both"}


def case_nulls_that_are_dropped():
    true, pred = frames(6)
    true["user_id"] = true["user_id"].where(true.index % 3 > 0).astype("Int64")
    pred["item_id"] = pred["item_id"].where(pred.index % 7 > 0).astype("Int64")
    pred["score"] = pred["score"].where(pred.index % 5 > 0)
    return true, pred, [*LISTS, "hhi"], {"by": "model", "null_keys": "drop", "nan_score": "drop"}


def case_money_and_carried_columns():
    true, pred = frames(7)
    pred["shelf"] = np.where(pred["user_id"] % 2 == 0, "top", "side")
    pred["position"] = pred["item_id"]
    options = {
        "value_col": "price",
        "items": side_tables()["items"],
        "by": "model",
        "users": "pred",
    }
    return (
        true,
        pred,
        ["revenue", "ndcg"],
        {**options, "carry": {"shelf": "constant", "position": "min"}},
    )


def case_keys_of_decimals_and_of_instants():
    true, pred = frames(8)
    day = datetime.datetime(2026, 1, 1)
    for frame in (true, pred):
        frame["day"] = (day + pd.to_timedelta(frame["user_id"] % 2, unit="D")).astype(
            "datetime64[us]"
        )
        frame["user_id"] = [
            decimal.Decimal(user) + decimal.Decimal("0.25") for user in frame["user_id"]
        ]
    return true, pred, LISTS, {"user_col": ["user_id", "day"], "by": "model", "users": "pred"}


def case_weights_and_propensities():
    true, pred = frames(29)
    true["weight"], true["seen"] = true["user_id"] % 4 + 0.5, 1 / (1 + true["item_id"])
    options = {
        "by": "model",
        "weight_col": "weight",
        "propensity_col": "seen",
        "propensity_floor": 0.1,
    }
    return true, pred, ["recall", "ndcg", "mrr"], options


def case_given_users_with_weights():
    true, pred = frames(30)
    given = pd.DataFrame({"user_id": [25, 3, 7, 1000], "weight": [1.0, 0.0, 2.5, 4.0]})
    return true, pred, ["recall", "hhi"], {"by": "model", "weight_col": "weight", "users": given}


def case_folds_matched_with_those_of_true():
    true, pred = frames(31)
    for frame in (true, pred):
        frame["fold"] = frame["item_id"] % 3
    pred["fold"] = (pred["user_id"] + pred["item_id"]) % 4  # one of them is not in true
    options = {"by": ["model", "fold"], "by_in_true": True, "users": "all", **side_tables()}
    return true, pred, [*LISTS, "hhi", "unseen"], options


def case_options_of_a_project_and_names_of_columns():
    true, pred = frames(32)
    names = {"user_id": "user.id", "item_id": "user_id", "score": "p click"}
    project = rd.Options(by="model", users="both", true_cols={"item_id": "sku"}, pred_cols=names)
    true = true.rename(columns={"item_id": "sku"})
    return true, pred.rename(columns=names), LISTS, {"options": project}


def in_cells(frame, keys):
    """One row per list, with all of its items in a cell, as Arrow has them."""
    lists = frame.groupby(keys, as_index=False, sort=False).agg(list)
    table = pa.Table.from_pandas(lists, preserve_index=False).replace_schema_metadata()
    return table.to_pandas(types_mapper=pd.ArrowDtype).assign(**lists[keys])


def case_lists_in_cells():
    true, pred = frames(40)
    return (
        in_cells(true, ["user_id"]),
        in_cells(pred, ["model", "user_id"]),
        [*LISTS, "err", "hhi"],
        {"by": "model"},
    )


def case_lists_in_cells_in_their_own_order():
    true, pred = frames(41)
    lists = in_cells(pred.drop(columns="score"), ["model", "user_id"])
    return true, lists, LISTS, {"by": "model", "users": "all", **side_tables()}


def case_texts_of_items():
    true, pred = frames(42)
    texts = (
        pred.astype({"item_id": str})
        .groupby(["model", "user_id"], as_index=False)["item_id"]
        .agg(" ".join)
    )
    return true, texts, LISTS, {"by": "model", "users": "both", "items_sep": " "}


def case_a_wide_table():
    true, pred = frames(43)
    pred["rank"] = pred.groupby(["model", "user_id"]).cumcount() + 1
    wide = (
        pred.pivot(index=["model", "user_id"], columns="rank", values="item_id")
        .add_prefix("top")
        .astype("Int64")
    )
    return true, wide.reset_index().rename_axis(columns=None), LISTS, {"by": "model", "wide": "top"}


def case_pred_alone():
    _, pred = frames(9)
    return (
        None,
        pred,
        ["category_entropy", "hhi", "coverage"],
        {"by": "model", **side_tables(), "log": None},
    )


CASES = {
    name.removeprefix("case_"): make for name, make in globals().items() if name.startswith("case_")
}


# -- errors and warnings


def broken(change, options=None, metrics="ndcg"):
    """A call that `rd.evaluate` refuses; an engine raises the same error with the same message."""
    true, pred = frames(10)
    true, pred = change(true, pred)
    return true, pred, metrics, options or {}


@rd.metric
def divides_by_zero(lists):
    """A metric that fails; larger is better, in [0, 1]."""
    return 1 / 0


del rd.METRICS["divides_by_zero"]  # other tests read the registry; the engines do not need it


def beside_rows_without_users(true, pred, models=("svd", "als")):
    """Frames in which the items of some models are only in rows of `true` without a user, which
    stand first."""
    strange = pred["item_id"] + 1000 * pred["model"].isin(models)
    of_none = true[:12].assign(user_id=None, item_id=range(1000, 1012))
    true = pd.concat([of_none, true], ignore_index=True)
    return true.astype({"user_id": "Int64"}), pred.assign(item_id=strange)


def two_propensities(true, pred):
    """Frames in which one item of one list has two propensities."""
    once = true.drop_duplicates(["user_id", "item_id"], ignore_index=True).assign(seen=0.5)
    return pd.concat([once, once[:1].assign(seen=0.25)], ignore_index=True), pred


def t_as_text(frame):
    """Pairs of a frame whose users are strings."""
    return frame[["user_id", "item_id"]].astype({"user_id": "str"})


def now_and_then(frame, name):
    """A frame with a null in every ninth row of a column."""
    values = frame[name].where(frame.index % 9 > 0)
    return frame.assign(**{name: values.astype("Int64") if name.endswith("_id") else values})


ERRORS = {
    "null keys": lambda: broken(lambda t, p: (t, now_and_then(p, "user_id"))),
    "null scores": lambda: broken(lambda t, p: (t, now_and_then(p, "score"))),
    "negative relevance": lambda: broken(lambda t, p: (t.assign(relevance=-1.0), p)),
    "no such column": lambda: broken(lambda t, p: (t, p), {"score_col": "points"}),
    "kinds of ids": lambda: broken(lambda t, p: (t.assign(user_id=t["user_id"].astype(str)), p)),
    "kinds of side tables": lambda: broken(lambda t, p: (t, p), {"items": ["a", "b"]}, "coverage"),
    "kinds of seen items": lambda: broken(
        lambda t, p: (t, p), {"exclude": t_as_text(frames()[0])}, "ndcg"
    ),
    "two propensities": lambda: broken(
        two_propensities, {"propensity_col": "seen", "by": "model"}, "recall"
    ),
    "unknown column": lambda: broken(lambda t, p: (t, p), {"pred_cols": {"user_id": "uid"}}),
    "two columns of a name": lambda: broken(
        lambda t, p: (t, p), {"pred_cols": {"user_id": "item_id"}}
    ),
    "unknown option": lambda: broken(lambda t, p: (t, p), {"tiez": "row"}),
    "unknown metric": lambda: broken(lambda t, p: (t, p), metrics="ndgc"),
    "no lists": lambda: broken(lambda t, p: (t[:0], p[:0])),
    "no score": lambda: broken(lambda t, p: (t, p.rename(columns={"item_id": "movieId"}))),
    "metric of one's own": lambda: broken(lambda t, p: (t, p), metrics=divides_by_zero),
}

# Calls that warn: (change of the frames, options).
WARNINGS = {
    "no user": (lambda t, p: (t, p.assign(user_id=p["user_id"] + 1000)), {}),
    "no item": (lambda t, p: (t, p.assign(item_id=p["item_id"] + 1000)), {"by": "model"}),
    "no item but in rows without a user": (beside_rows_without_users, {"null_keys": "drop"}),
    "no item of one model but in rows without a user": (
        lambda t, p: beside_rows_without_users(t, p, ["als"]),
        {"null_keys": "drop", "by": "model"},
    ),
    "one model": (
        lambda t, p: (t, p.assign(item_id=p["item_id"] + 1000 * (p["model"] == "svd"))),
        {"by": "model"},
    ),
    "a day as by": (
        lambda t, p: (
            t,
            p.assign(day=[datetime.date(2026, 1, 1 + user % 3) for user in p["user_id"]]),
        ),
        {"by": "day"},
    ),
    "a variant as by": (
        lambda t, p: (t, p.assign(model=np.where(p["user_id"] % 2 == 0, "A", "B"))),
        {"by": "model"},
    ),
    "positives alone": (lambda t, p: (t.assign(relevance=1.0), p), {"judged_only": True}),
    "seen items of others": (
        lambda t, p: (t, p),
        {"exclude": pd.DataFrame({"user_id": [1000], "item_id": [1]})},
    ),
    "seen items of others in their lists": (
        lambda t, p: (t, p),
        {"exclude": pd.DataFrame({"user_id": [*range(23)], "item_id": [1000] * 23})},
    ),
    "a log of others": (
        lambda t, p: (t, p),
        {"log": pd.DataFrame({"user_id": [1000], "item_id": [1000]})},
    ),
    "folds in true": (
        lambda t, p: (t.assign(fold=t["item_id"] % 2), p.assign(fold=p["item_id"] % 2)),
        {"by": ["model", "fold"]},
    ),
    "repeated rows": (lambda t, p: (t, pd.concat([p, p[:7]], ignore_index=True)), {"by": "model"}),
}


# -------------------------------------------------------------------------------------------------
# compare


def in_key_order(per_user, result):
    """Rows of `per_user` sorted by `by` value, as the summary of `result` has them, and by list
    key."""
    by, keys = result.spec["by"], result.spec["user_col"]
    if not by:
        return per_user.sort_values(keys, ignore_index=True)
    place = {
        value: i
        for i, value in enumerate(result.summary[by].drop_duplicates().itertuples(index=False))
    }
    rows = per_user.assign(
        **{"place of by": [place[value] for value in per_user[by].itertuples(index=False)]}
    )
    return rows.sort_values(["place of by", *keys], ignore_index=True).drop(columns="place of by")


def assert_same(result, expected, keys=None):
    """The tables of an engine are those of `rd.evaluate`, up to the order of `by` values and of
    lists.

    `keys` are the dtypes of key columns where the engine has none like those of pandas.
    """
    by = expected.spec["by"]
    order = (
        result.summary[by].drop_duplicates(ignore_index=True)
        if by
        else pd.DataFrame(index=range(1))
    )
    summary = order.merge(expected.summary, on=by, how="left") if by else expected.summary
    pd.testing.assert_frame_equal(result.summary, summary, rtol=1e-12, atol=1e-12)
    assert result.spec == expected.spec
    found = result.to_pandas().per_user
    per_user = in_key_order(expected.per_user, result).astype(keys or {})
    pd.testing.assert_frame_equal(found, per_user, rtol=1e-12, atol=1e-12)


def without_part(error):
    """The message of an error without the words of a part, which say that the counts are its
    own."""
    return str(error).partition(" (found in one of")[0]


def outcome(work, *given, **options):
    """What a call returns or raises, and the messages of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", rd.RecdfWarning)
        try:
            found = work(*given, **options)
        except Exception as error:
            found = error
    said = [
        (one.category, str(one.message))
        for one in caught
        if issubclass(one.category, rd.RecdfWarning)
    ]
    return found, said

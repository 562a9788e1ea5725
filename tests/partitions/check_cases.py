"""Data whose findings every engine must report as `rd.check` does, as far as they add up."""

import numpy as np
import pandas as pd
from partitions.engine_cases import frames

import recdf as rd

# What `rd.check` says of all rows together alone.
OF_ALL_ROWS = {
    "by_in_true",
    "swapped",
    "nothing_in_common",
    "look_alike_ids",
    "never_recommended",
    "unused_numbers",
    "unused_labels",
    "constant_relevance",
    "all_relevant",
    "sampled",
    "rank_against_order",
    "score_against_order",
    "rows_against_scores",
    "order_counts",
    "order_distance",
    "order_beside",
}


def case_two_models():
    true, pred = frames(1)
    return true, pred, {"by": "model", "k": 4}


def case_ties_and_rows_twice():
    true, pred = frames(2)
    pred = pd.concat([pred.assign(score=pred["score"].round()), pred[:7]], ignore_index=True)
    return pd.concat([true, true[:3]]), pred, {"by": "model", "k": 3}


def case_ties_that_do_not_reach_k():
    true, pred = frames(3)
    return true, pred.assign(score=pred["score"].round(1)), {"by": "model", "k": 40}


def case_ranks_with_gaps_and_nulls():
    true, pred = frames(4)
    pred = pred.drop(columns="score").assign(rank=np.arange(len(pred)) % 17)
    pred.loc[3:5, "user_id"] = np.nan
    pred.loc[[5, 9], "item_id"] = np.nan
    true.loc[1, "item_id"] = np.nan
    return true, pred, {"by": "model", "rank_col": "rank"}


def case_null_scores_and_side_tables():
    true, pred = frames(5)
    pred.loc[4:9, "score"] = np.nan
    log = pred.loc[::6, ["user_id", "item_id"]]
    return true, pred, {"log": log, "items": list(range(9)), "nan_score": "last"}


def case_broken_relevance():
    true, pred = frames(6)
    true.loc[2, "relevance"] = -1.0
    return true, pred, {"by": "model"}


def case_one_model_with_weights():
    true, pred = frames(7)
    pred = pred[pred["model"] == "svd"].drop(columns="model")
    weight = np.where(true["user_id"] == 3, -1.0, 1.0)
    return true.assign(weight=weight), pred, {"weight_col": "weight"}


CASES_OF_CHECKS = {
    name.removeprefix("case_"): function
    for name, function in list(globals().items())
    if name.startswith("case_")
}


def assert_same_check(check, true, pred, log, options, in_memory):
    """`check` takes frames of an engine; `in_memory` has their rows."""
    given = {} if log is None else {"log": log}
    found = check(true, pred, partitions=4, **given, **options)
    true, pred, log = in_memory
    expected = rd.check(true, pred, **({} if log is None else {"log": log}), **options)
    expected = expected[~expected["code"].isin(OF_ALL_ROWS)]
    keys = ["finding", "by"]
    compared = [*keys, "severity", "count", "share", "code"]
    tables = (one[compared].sort_values(keys).reset_index(drop=True) for one in (found, expected))
    assert len(found)
    pd.testing.assert_frame_equal(*map(pd.DataFrame, tables), rtol=1e-12, check_dtype=False)

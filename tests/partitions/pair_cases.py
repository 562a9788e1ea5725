"""Comparisons of models that an engine makes in its buckets as rows in memory do."""

import numpy as np
import pandas as pd
import pytest
from partitions.engine_cases import frames

import recdf as rd


def with_columns(seed=0):
    """Frames with a weight of each user, and with two sessions of each."""
    true, pred = frames(seed)
    for frame in (true, pred):
        frame["session"] = frame["item_id"] % 2
    return true.assign(weight=true["user_id"] % 3 + 0.5), pred


SESSIONS = {"user_col": ["user_id", "session"]}
# Options of the evaluation, and of the comparison.
PAIRS = {
    "all lists": ({}, {}),
    "one baseline and margins": ({"users": "all"}, {"baseline": "svd", "margin": 0.2}),
    "lists that a model lacks are left out": ({"users": "pred"}, {"missing": "drop"}),
    "lists that a model lacks count 0": (
        {"users": "pred"},
        {"missing": "zero", "metrics": ["ndcg@5", "recall@5"], "alternative": "greater"},
    ),
    "weights": ({"weight_col": "weight"}, {"missing": "drop", "correction": "bh"}),
    "several lists of a user": (SESSIONS, {"missing": "drop"}),
    "lists that are units": (SESSIONS, {"missing": "drop", "unit_col": ["user_id", "session"]}),
    "folds": (SESSIONS, {"missing": "drop", "fold": "session"}),
    "signs of rows": ({}, {"test": "randomization", "n_resamples": 200}),
}


def assert_same_pairs(evaluated, name):
    """`evaluated` evaluates two frames on an engine. Which units are the farthest is not told by
    sums of units that do not weigh the same."""
    options, asked = PAIRS[name]
    asked = {"details": True, **asked}
    if asked.get("missing") != "drop":  # a model without a hit has no first rank
        asked = {"metrics": ["ndcg@5", "recall@5", "mrr@1"], **asked}
    result = evaluated(*with_columns(), {"by": "model", **options})
    found, expected = result.compare_models(**asked), result.to_pandas().compare_models(**asked)
    if name in ("weights", "several lists of a user"):
        unknown = found["diff_without_top"].isna()
        assert unknown.any()
        expected.loc[unknown, "diff_without_top"] = np.nan
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9, atol=1e-12)
    assert found.attrs == expected.attrs


def assert_errors_of_pairs(evaluated):
    result = evaluated(*with_columns(), {"by": "model", "users": "pred"})
    for options, error, words in [
        ({}, rd.DataError, r"has a value for .* only in .* \(found in one of 3 buckets of users"),
        ({"baseline": "sdv"}, rd.OptionError, "is not a model; models are .*; did you mean 'svd'"),
        ({"metrics": "ndgc@5"}, rd.ColumnError, "did you mean 'ndcg@5'"),
    ]:
        with pytest.raises(error, match=words):
            result.compare_models(**options)

"""Comparisons of models that an engine makes in its buckets as rows in memory do."""

import warnings

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
    user = true["user_id"]
    return true.assign(weight=user % 3 + 0.5, some=1.0 * (user % 4 > 0)), pred


def results_of(evaluate):
    """The result of an engine under some options, and its rows in memory. `evaluate` takes two
    frames and options; each result is made once and compared in many ways."""
    made = {}

    def result_under(options):
        if repr(options) not in made:
            true, pred = with_columns()
            if "by" in options:  # of an only model
                pred = pred[pred["model"] == "svd"]
            result = evaluate(true, pred, {"by": "model", **options})
            made[repr(options)] = result, result.to_pandas()
        return made[repr(options)]

    return result_under


SESSIONS = {"user_col": ["user_id", "session"]}
# One user in five is in no segment, and there are so many amounts that they are cut into bands.
PLACES = np.arange(60)
OF_USERS = pd.DataFrame(
    {
        "user_id": PLACES,
        "country": np.where(PLACES % 5, np.where(PLACES % 3, "no", "fi"), None),
        "spend": (PLACES * 7) % 41,
    }
)
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
    "segments": ({}, {"segments": OF_USERS, "by": ["country"]}),
    "amounts": ({"users": "all"}, {"segments": OF_USERS, "by": "spend", "baseline": "svd"}),
    "segments that the lists have": (SESSIONS, {"missing": "drop", "by": "session", "fold": []}),
}


def assert_same_pairs(result_under, name):
    """`result_under` is that of `results_of`. Which units are the farthest is not told by sums of
    units that do not weigh the same."""
    options, asked = PAIRS[name]
    asked = {"details": True, **asked}
    if asked.get("missing") != "drop":  # a model without a hit has no first rank
        asked = {"metrics": ["ndcg@5", "recall@5", "mrr@1"], **asked}
    (found, told), (expected, said) = (
        warned(one.compare_models, **asked) for one in result_under(options)
    )
    assert told == said
    assert bool(told) == (name == "segments")
    if name in ("weights", "several lists of a user"):
        unknown = found["diff_without_top"].isna()
        assert unknown.any()
        expected.loc[unknown, "diff_without_top"] = np.nan
    pd.testing.assert_frame_equal(found, expected, rtol=1e-9, atol=1e-12)
    assert found.attrs == expected.attrs


def warned(function, *given, **options):
    """What a function returns, and what it warns of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = function(*given, **options)
    return found, [str(one.message) for one in said if one.category is rd.UnknownWarning]


# Options of the evaluation, and of the leaderboard.
BOARDS = {
    "all pairs": ({"users": "pred"}, {}),
    "segments and a baseline": ({}, {"baseline": "svd", "segments": OF_USERS, "metrics": "mrr@1"}),
    "no tests": ({}, {"correction": None, "segments": OF_USERS[["user_id", "spend"]]}),
    "weights": ({"weight_col": "weight"}, {"segments": OF_USERS}),
    "a group of weight 0": (
        {"weight_col": "some"},
        {"segments": OF_USERS.assign(spend=PLACES % 4)},
    ),
    "several lists of a user": (SESSIONS, {"segments": OF_USERS}),
    "units that are named": (SESSIONS, {"unit_col": "session"}),
    "lists that are units": (SESSIONS, {"unit_col": ["user_id", "session"]}),
    "an only model": ({"by": None}, {"segments": OF_USERS}),
}


def assert_same_board(result_under, name):
    """The leaderboard of an engine's result is that of the same rows in memory."""
    options, asked = BOARDS[name]
    (found, warned_of), (expected, of_memory) = (
        warned(rd.leaderboard, one, **asked) for one in result_under(options)
    )
    assert warned_of == of_memory
    assert bool(warned_of) == ("country" in asked.get("segments", ()))
    pd.testing.assert_frame_equal(found.frame, expected.frame, rtol=1e-9, atol=1e-12)
    assert found.notes == expected.notes
    told, said = (
        one.comparisons.drop(columns="diff_without_top", errors="ignore")
        for one in (found, expected)
    )
    pd.testing.assert_frame_equal(told, said, rtol=1e-9, atol=1e-12)
    assert bool(len(said)) == (name not in ("no tests", "an only model"))


def assert_errors_of_boards(result_under):
    result, _ = result_under(SESSIONS)
    with pytest.raises(rd.OptionError, match=r"^fold= needs the rows of all"):
        rd.leaderboard(result, fold="session")
    with pytest.raises(rd.OptionError, match="several rows for 1 keys"):
        rd.leaderboard(result, segments=pd.concat([OF_USERS, OF_USERS[:1]]))
    with pytest.raises(rd.IdTypeError, match=r"integer ids .* string ids"):
        rd.leaderboard(result, segments=OF_USERS.astype({"user_id": "str"}))


def assert_errors_of_pairs(result_under):
    result, _ = result_under({"users": "pred"})
    none = OF_USERS.assign(country=None)[["user_id", "country"]]
    for call in (
        lambda: result.compare_models("mrr@1", baseline="svd", segments=none, missing="drop"),
        lambda: rd.leaderboard(result, segments=none),
    ):
        with pytest.raises(rd.OptionError, match="segments= has country for none of the users"):
            call()
    for options, error, words in [
        ({}, rd.DataError, r"has a value for .* only in .* \(found in one of 3 buckets of users"),
        ({"baseline": "sdv"}, rd.OptionError, "is not a model; models are .*; did you mean 'svd'"),
        ({"metrics": "ndgc@5"}, rd.ColumnError, "did you mean 'ndcg@5'"),
    ]:
        with pytest.raises(error, match=words):
            result.compare_models(**options)

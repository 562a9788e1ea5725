"""Cases of `variant_moments` that every engine must answer as rows in memory do."""

import numpy as np
import pandas as pd
from partitions.engine_cases import CASES, frames

import recdf as rd


def assigned(seed=0, users=35, **columns):
    """Users 0 to 34 in two variants, of whom the frames have 3 to 27, and a column that was known
    before."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"user_id": rng.permutation(users), "variant": rng.choice(["B", "A"], users)}
    )
    return table.assign(pre=rng.normal(size=users), **columns)


def case_users_without_rows_and_rows_without_users():
    true, pred = frames()
    return true, pred, {"by": "model"}, assigned().iloc[4:], {"missing": "zero"}


def case_segments_null_metrics_and_columns_of_the_assignment():
    true, pred = frames(1)
    groups = assigned(1, segment=lambda table: np.where(table["user_id"] % 3 == 0, "x", "y"))
    twice = pd.concat([groups, groups[:3].assign(variant="A")], ignore_index=True).astype(
        {"user_id": "int32"}
    )
    more = {"metrics": ["ndcg@5", "pre", "has_metrics"], "by": ["model", "segment"], "nan": "drop"}
    return true, pred, {"by": "model"}, twice, {"missing": "nan", "multi_variant": "drop", **more}


def case_lists_of_sessions():
    true, pred = frames(2)
    for frame in (true, pred):
        frame["session"] = frame["item_id"] % 2
        frame["user_id"] = "u" + frame["user_id"].astype(str)
    groups = assigned(2)
    groups["user_id"] = "u" + groups["user_id"].astype(str)
    return (
        true,
        pred,
        {"user_col": ["user_id", "session"], "by": "model"},
        groups,
        {"how": "mean", "missing": "drop"},
    )


def case_keys_of_decimals_and_of_instants():
    true, pred, _, options = CASES["keys_of_decimals_and_of_instants"]()
    groups = pred[["user_id", "day"]].drop_duplicates(ignore_index=True)
    groups["variant"] = np.where(groups.index % 2 == 0, 1, 2)
    return true, pred, options, groups, {"missing": "zero"}


def case_lists_by_variant():
    true, pred = frames(3)
    pred = pred.rename(columns={"model": "variant"}).assign(
        variant=lambda rows: rows["variant"].str[0]
    )
    groups = assigned(3).assign(variant=lambda rows: np.where(rows["user_id"] % 2 == 0, "s", "a"))
    shown = (
        set(pred.loc[pred["variant"] == "s", "user_id"]),
        set(pred.loc[pred["variant"] == "a", "user_id"]),
    )
    own = [user in shown[user % 2] or user not in shown[0] | shown[1] for user in groups["user_id"]]
    return true, pred, {"by": "variant"}, groups[own], {"missing": "worst"}


def case_ratios_and_covariates():
    true, pred = frames(4)
    asked = {"metrics": {"share": ("ndcg@5", "n_pred"), "n_true": "n_true"}}
    asked["covariates"] = {"share": ["pre"]}
    return true, pred, {"by": "model"}, assigned(4), {"missing": "zero", **asked}


CASES_OF_MOMENTS = {
    name.removeprefix("case_"): make for name, make in globals().items() if name.startswith("case_")
}


def in_memory(result, assignment, metrics=None, by=None, nan="raise", covariates=None, **options):
    """The moments of the rows of an engine's result, joined in memory."""
    rows = result.to_pandas()
    users = rows.join_experiment(assignment, **options)
    if by is None:
        by = [name for name in rows.spec["by"] if name != "variant"]
    if metrics is None:
        metrics = [name for name in rows.spec["metrics"] if name in users.columns]
    keys = [name for name in rows.spec["user_col"] if name in assignment.columns]
    of_users = {"by": by, "nan": nan, "user_col": keys, "covariates": covariates}
    return rd.experiments.variant_moments(users, metrics, **of_users)


def assert_same_moments(found, expected, labels=None):
    """`labels` are the dtypes of labels of the assignment where the engine has none like those of
    pandas."""
    pd.testing.assert_frame_equal(found, expected.astype(labels or {}), rtol=1e-12, atol=1e-15)


GROUPS = assigned()

# Change of the assignment (or the assignment), options, error, words of the message.
REFUSED = [
    (GROUPS.assign(user_id=GROUPS["user_id"].astype(str)), {}, rd.IdTypeError, "can never match"),
    (
        GROUPS.rename(columns={"variant": "arm"}),
        {},
        rd.ColumnError,
        "no column 'variant'; it has 'user_id', 'arm', 'pre'",
    ),
    (
        GROUPS,
        {"metrics": {"ctr": ("ndcg@5", "shown")}},
        rd.ColumnError,
        "neither per_user nor assignment has a column 'shown'",
    ),
    (
        GROUPS.assign(note="x"),
        {"metrics": "note"},
        rd.DataError,
        r"\['note'\] (is|holds) .*; expected numbers",
    ),
    (GROUPS.drop(columns="user_id"), {}, rd.ColumnError, "'user_id'"),
    (
        GROUPS.assign(**{"ndcg@5": 1.0}),
        {},
        rd.DataError,
        "per_user and assignment both have 'ndcg@5'",
    ),
    (
        GROUPS,
        {"metrics": "ndgc@5"},
        rd.ColumnError,
        "neither per_user nor assignment has .* did you mean 'ndcg@5'",
    ),
    (GROUPS, {"by": "country"}, rd.ColumnError, "'country'"),
    (GROUPS, {"missing": "none"}, rd.OptionError, "missing="),
    (GROUPS, {"mising": "zero"}, rd.OptionError, "has no option 'mising'; did you mean 'missing'"),
    (GROUPS, {"time_col": "day"}, rd.OptionError, "time_col= needs the rows of all users together"),
    (
        {"user_id": [1]},
        {},
        TypeError,
        "assignment is a dict; expected a pandas DataFrame, or a frame of",
    ),
]

# The same, of errors that only the rows tell. The counts are those of one bucket.
OF_ROWS = [
    (
        GROUPS,
        {},
        rd.DataError,
        r"assigned users have no metrics .*found in one of 3 buckets of users; counts are of",
    ),
    (
        GROUPS.assign(user_id=GROUPS["user_id"] + 1000),
        {},
        rd.DataError,
        r"^no user of assignment is in per_user: assignment\['user_id'\] has 10.*, "
        r"per_user\['user_id'\] has \d",
    ),
    (
        pd.concat([GROUPS, GROUPS.assign(variant="A")]),
        {"missing": "zero"},
        rd.DataError,
        "in more than one variant",
    ),
    (
        GROUPS.assign(user_id=GROUPS["user_id"].astype("Int64").where(GROUPS["user_id"] != 7)),
        {"missing": "zero", "nan": "drop"},
        rd.NullKeyError,
        "is null in 1 of",
    ),
    (GROUPS, {"missing": "nan"}, rd.DataError, "metric 'ndcg@5' is null in"),
    (
        GROUPS[3:],
        {"missing": "zero", "nan": "drop", "unassigned": "raise"},
        rd.DataError,
        "users .* are in no variant",
    ),
]

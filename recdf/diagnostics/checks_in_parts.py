"""What `check` finds in the rows of some users: the findings of several parts add up.

Contract: a part has all rows of its users. Findings that need all rows together are left out, and
what is not found counts too, so that shares are those of all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import pandas as pd

from ..errors import RecdfWarning
from ..inputs.frames import column
from ..inputs.options import Options, as_columns
from ..inputs.true_and_pred import by_in_true, order_source, relevance_source
from ..judge.per_user_columns import require
from ..metrics.call import Call
from .check_findings import Data, ListFindings, check_empty, check_lists, read_checked_ids
from .data_checks import (
    MANY_SEEN,
    check_catalogue,
    check_list_weights,
    check_order_column,
    check_relevance,
    check_seen,
    forgiving,
)
from .order_findings import check_order


def columns_to_check(frames: Mapping[str, pd.DataFrame], options: Options) -> dict[str, list[str]]:
    """Return the columns of `true`, `pred` and `log` that a check of users in parts reads."""
    pair = [*as_columns(options.user_col), options.item_col]
    of_true = [relevance_source(frames["true"], options), options.propensity_col]
    of_true += [options.weight_name, *by_in_true(frames["true"], options)]
    of_pred = [*as_columns(options.by), order_source(frames["pred"], options)["column"]]
    more = {"true": of_true, "pred": of_pred, "log": []}
    found = {role: list(dict.fromkeys([*pair, *filter(None, more[role])])) for role in frames}
    for role, names in found.items():
        require(frames[role], role, names)
    return found


def findings_of_users(
    frames: Mapping[str, pd.DataFrame],
    k: int,
    options: Options,
    items: pd.DataFrame | None,
    by_values: pd.DataFrame | None,
) -> ListFindings:
    """Return what is unusual in the rows of some users; the findings of several parts add up."""
    true, pred = frames["true"], frames["pred"]
    data, found = (
        Data(true, pred, k, options, order_source(pred, options)),
        ListFindings(parts=True),
    )
    for role, frame in frames.items():
        check_empty(found, role, frame)
        found.add(ROWS, "rows", "info", 0, len(frame), "", "", frame=role)
        for name in data.pair:
            read_checked_ids(found, column(frame, name, role), role)
    check_order_column(found, data)
    check_relevance(found, data)
    check_list_weights(found, data)
    if found.refused_numbers:
        return found
    call = Call(forgiving(options), given={} if items is None else {"items": items})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecdfWarning)
        with call.match_part(true, pred, by_values, False) as matched:
            found.matched = matched
            check_lists(found, data, matched)
            check_order(found, data, matched)
            if items is not None:
                check_catalogue(found, data, matched)
            del found.matched  # the lists of a bucket stay with its worker
    if "log" in frames:
        check_seen(found, frames["log"], data)
    return found


ROWS = "rows"  # a finding that is not shown: how many rows a frame has
OF_NUMBERS = ("empty", "null_ids", "null_order", "infinite_order", "bad_relevance", "bad_column")


def findings_of_parts(found: ListFindings) -> pd.DataFrame:
    """Return the sum of the findings of all parts as `check` returns them."""
    there = {row["code"] for row in found.rows if row["count"]}
    repeats = any(
        row["count"] for row in found.rows if (row["code"], row["frame"]) == ("duplicates", "pred")
    )
    left_out = {"ties"} if "ties_across_k" in there else set()
    left_out |= {"first_rank", "rank_gaps"} if repeats else set()
    rows = [row for row in found.rows if row["code"] not in left_out]
    n_rows = {row["frame"]: row["of"] for row in rows if row["code"] == ROWS}
    if found.refused_numbers:
        rows = [row for row in rows if row["code"] in OF_NUMBERS]
    for row in rows:
        if row["code"] == "bad_column":  # parts without such rows say nothing
            row["of"] = n_rows["true"]
        if row["code"] == "null_ids":
            row["of"] = n_rows[row["frame"]]
        if row["code"] in ("pred_seen", "true_seen"):
            row["severity"] = "warning" if row["count"] > MANY_SEEN * row["of"] else "info"
    found.rows = [row for row in rows if row["code"] != "empty" or row["count"] == row["of"]]
    return found.table()

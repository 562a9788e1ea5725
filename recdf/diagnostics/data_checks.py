"""`check`: unusual features of the data that affect the metrics, one row per finding, of whole
frames or of users in parts.
`data_profile`: what a run keeps of its data, to be compared with later runs.

Contract of a part: it has all rows of its users. Findings that need all rows together are left
out, and what is not found counts too, so that shares are those of all rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import pandas as pd

from ..errors import RecdfWarning
from ..inputs.codes import encode_keys
from ..inputs.door import takes_options
from ..inputs.frames import as_frame, column, id_frame, read_numbers
from ..inputs.ids import IdColumn, read_ids
from ..inputs.options import CallArguments, Options, as_columns
from ..inputs.sorting import distinct
from ..inputs.true_and_pred import by_in_true, hints_of, order_source, relevance_source
from ..judge.per_user_columns import require
from ..matching.hits import ratio
from ..matching.lists import Matched
from ..metrics.call import Call, check_k
from ..progress import Progress
from .check_findings import (
    MANY_SEEN,
    Data,
    ListFindings,
    check_catalogue,
    check_empty,
    check_ids,
    check_lists,
    check_numbers,
    check_sampled,
    check_seen,
    check_side,
    check_unused_numbers,
    forgiving,
    parts_by,
    read_checked_ids,
)
from .levels import matched_quietly
from .order_findings import check_order, list_of_places


@takes_options(every_number=True)
def check(
    true: Any,
    pred: Any,
    k: int = 10,
    *,
    log: Any = None,
    items: Any = None,
    exclude: Any = None,
    **options: Unpack[CallArguments],
) -> pd.DataFrame:
    """Find what is unusual in the data, and how it affects the metrics: one row per finding, none
    for clean data.

    Parameters
    ----------
    true, pred : DataFrame, mapping or Arrow stream
        As for `evaluate`.
    k : int, default 10
        Cut-off that the findings refer to.
    log : DataFrame, optional
        Past interactions (list key, item): recommendations of items that the user already had are
        reported.
    items : DataFrame, list, Series or Index, optional
        Catalogue: items outside it are reported.
    exclude : DataFrame, mapping or Arrow stream, optional
        Rows of (user, item) to leave out of both frames, as for `evaluate`; findings are of the
        rows that are left.
    {options}

    Returns
    -------
    DataFrame
        `finding`, `severity` ("error": `evaluate` refuses or scores nothing; "warning": numbers
        change; "info": worth knowing), `count`, `share` (of the rows or lists that it concerns),
        `examples` (text), `effect` (what it does to the metrics), `code`
        (names the finding for programs), `by` (whose lists it is about,
        where `by=` tells recommenders apart: one row for each), `ranges` (of ties: JSON of each
        metric with its mean for the worst and the best order, else ""). Errors first.

    Raises
    ------
    ColumnError, OptionError
        If a column is missing or an option is wrong.

    Examples
    --------
    >>> import recdf as rd
    >>> found = rd.check({"u": ["a"], "v": ["b"]}, {"u": ["a", "x"]}, k=2)
    >>> found[["finding", "severity", "count", "share", "examples"]]
                             finding severity  count  share examples
    0  lists without recommendations  warning      1    0.5      'v'
    """
    shared = check_options(options)
    k = check_k(k)
    given = {"true": true, "pred": pred}
    frames = {
        role: as_frame(one, role, shared.user_col, shared.item_col) for role, one in given.items()
    }
    data, found = Data(**frames, k=k, options=shared), ListFindings()
    for role, frame in frames.items():
        check_empty(found, role, frame)
    hints, n_true = hints_of(data.true, data.pred, shared), len(data.true)
    effect = (
        "each value is scored with all rows of true; ⟦+by_in_true=True⟧ scores it with those of "
        "the same value"
    )
    n, of_by = len(hints.true_by), hints.true_by
    found.add("by_in_true", "true has columns of by", "warning", n, 0, of_by, effect)
    effect = (
        "true comes first, then pred; ⟦+score_col=False⟧ says that the rows of pred are in order"
    )
    n = hints.swapped and n_true
    found.add("swapped", "true and pred look swapped", "warning", n, n_true, "", effect)
    with Progress(4, "check") as progress:
        pred_ids = check_ids(found, data)
        check_numbers(found, data)
        progress.add()
        if pred_ids is None or found.refused_numbers:
            return found.table()
        if items is not None:
            items = id_frame(items, "items", [shared.item_col])
            usable = check_side(found, "items", items, [shared.item_col], pred_ids)
            items = items[items[shared.item_col].notna()] if usable else None
        if exclude is not None:
            data = _left_without(exclude, found, data, pred_ids)
        if not len(data.pred) + len(data.true):
            return found.table()
        call = _forgiving_call(data, items)
        with matched_quietly(call, data.true, data.pred) as matched:
            progress.add()
            _check_matched(found, data, matched)
            check_sampled(found, matched)
            if data.order["column"] is None and shared.score_col is not False:
                check_unused_numbers(found, data, matched.overlap.disordered)
        progress.add()
        if log is not None:
            log = as_frame(log, "log", shared.user_col, shared.item_col)
            if check_side(found, "log", log, data.pair, pred_ids):
                check_seen(found, log, data)
    return found.table()


def check_options(options: Mapping[str, Any]) -> Options:
    """Return the shared options of a check."""
    given = {**options, "ties": "item_desc", "undefined": "nan"}
    return Call.from_arguments(check, given).options


def _forgiving_call(data: Data, items: pd.DataFrame | None) -> Call:
    return Call(forgiving(data.options), given={} if items is None else {"items": items})


def _check_matched(found: ListFindings, data: Data, matched: Matched) -> None:
    """Add the findings about the lists that the rows make."""
    found.matched = matched
    check_lists(found, data, matched)
    check_order(found, data, matched)
    if matched.sides.has("items"):
        check_catalogue(found, data, matched)


def _left_without(
    exclude: Any, found: ListFindings, data: Data, pred_ids: dict[str, IdColumn]
) -> Data:
    """Return the rows that `evaluate` keeps, and those with null ids, which are a finding."""
    options = data.options
    exclude = as_frame(exclude, "exclude", options.user_col, options.item_col)
    keys = as_columns(options.user_col)
    names = [*([name for name in keys if name in exclude.columns] or keys), options.item_col]
    if not check_side(found, "exclude", exclude, names, pred_ids):
        return data
    frames = {"exclude": exclude.dropna(subset=names), "true": data.true, "pred": data.pred}
    ids = [[read_ids(one[name], role) for name in names] for role, one in frames.items()]
    null = {role: frames[role][data.pair].isna().any(axis=1) for role in ("true", "pred")}
    (out, *codes), _ = encode_keys(ids)
    left = {}
    for (role, nulls), code in zip(null.items(), codes, strict=True):
        gone = np.isin(code.all(), out.all()) & ~nulls.to_numpy()
        effect = "evaluate leaves them out before lists are ranked"
        found.of_rows("excluded", f"rows of {role} in exclude", "info", gone, "", effect)
        left[role] = frames[role][~gone]
    return replace(data, **left)


# ------------------------------------------------------------------------------------------
# The findings of users in parts, which add up.

ROWS = "rows"  # a finding that is not shown: how many rows a frame has
OF_NUMBERS = ("empty", "null_ids", "null_order", "infinite_order", "bad_relevance", "bad_column")


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
    data, found = Data(frames["true"], frames["pred"], k, options), ListFindings(parts=True)
    for role, frame in frames.items():
        check_empty(found, role, frame)
        found.add(ROWS, "rows", "info", 0, len(frame), "", "", frame=role)
        for name in data.pair:
            read_checked_ids(found, column(frame, name, role), role)
    check_numbers(found, data)
    if found.refused_numbers:
        return found
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecdfWarning)
        with _forgiving_call(data, items).match_part(
            data.true, data.pred, by_values, False
        ) as matched:
            _check_matched(found, data, matched)
            del found.matched  # the lists of a bucket stay with its worker
    if "log" in frames:
        check_seen(found, frames["log"], data)
    return found


def findings_of_parts(found: ListFindings) -> pd.DataFrame:
    """Return the sum of the findings of all parts as `check` returns them."""
    there = {(row["code"], row["frame"]) for row in found.rows if row["count"]}
    left_out = {"ties"} if ("ties_across_k", "") in there else set()
    left_out |= {"first_rank", "rank_gaps"} if ("duplicates", "pred") in there else set()
    n_rows = {row["frame"]: row["of"] for row in found.rows if row["code"] == ROWS}
    kept = []
    for row in found.rows:
        code = row["code"]
        if code in left_out or (found.refused_numbers and code not in OF_NUMBERS):
            continue
        if code in ("bad_column", "null_ids"):  # parts without such rows say nothing
            row["of"] = n_rows[row["frame"] or "true"]
        if code in ("pred_seen", "true_seen"):
            row["severity"] = "warning" if row["count"] > MANY_SEEN * row["of"] else "info"
        if code != "empty" or row["count"] == row["of"]:
            kept.append(row)
    found.rows = kept
    return found.table()


# ------------------------------------------------------------------------------------------
# `data_profile`: sizes, unknown ids, judged share and scores of the data of one run, to be
# compared over time.


AT_SHARES = (0.01, 0.1, 0.5, 0.9, 0.99)


@takes_options()
def data_profile(
    true: Any, pred: Any, *, items: Any = None, **options: Unpack[CallArguments]
) -> pd.DataFrame:
    """Describe the data of one evaluation in a few numbers per recommender, for `History` to
    compare over time.

    Parameters
    ----------
    true, pred : DataFrame, mapping or Arrow stream
        As for `evaluate`.
    items : DataFrame, list, Series or Index, optional
        Catalogue, outside which items of `pred` are unknown.
    {options}

    Returns
    -------
    DataFrame
        `model` (`by` values, "" without `by`), `quantity`, `value`. Quantities: "rows_pred",
        "lists_pred", "items_pred"; "unknown_users" (share of the lists of `pred` that `true`
        lacks), "unknown_items" (share of rows outside `items`, if given), "judged" (share of the
        rows of known users that have a row in `true`), and "score_q01" to "score_q99" (quantiles of
        the scores, if `pred` has any).

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError
        As `evaluate` does.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.diagnostics.data_profile({"ann": ["a"]}, {"ann": ["a", "x"], "bob": ["y"]})
      model       quantity  value
    0            rows_pred    3.0
    1           lists_pred    2.0
    2           items_pred    3.0
    3        unknown_users    0.5
    4               judged    0.5
    """
    call = Call.from_arguments(data_profile, {**options, "items": items, "users": "all"})
    item_col, score_col = call.options.item_col, call.options.score_col or "score"
    frame = as_frame(pred, "pred", call.options.user_col, item_col)
    with call.match(true, frame) as matched:
        n_models = max(len(matched.by), 1)
        names = [name for name, _ in parts_by(matched)]
        n_places, place_list = len(matched.item), list_of_places(matched)
        model, shown = matched.list_by[place_list], matched.n_pred > 0
        in_true = matched.true_list >= 0
        known_rows = in_true[place_list]
        is_judged = np.zeros(n_places, bool)
        is_judged[matched.judged.place] = True
        rows = matched.rows(np.arange(n_places))

        def each(of: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
            return np.bincount(of if where is None else of[where], minlength=n_models).astype(
                np.float64
            )

        found = {
            "rows_pred": each(model),
            "lists_pred": each(matched.list_by, shown),
            "items_pred": each(distinct(model * matched.n_items + matched.item) // matched.n_items),
            "unknown_users": ratio(
                each(matched.list_by, shown & ~in_true), each(matched.list_by, shown)
            ),
            "judged": ratio(each(model, is_judged & known_rows), each(model, known_rows)),
        }
    if items is not None:
        known = pd.Index(items[item_col] if isinstance(items, pd.DataFrame) else items)
        outside = ~frame[item_col].isin(known).to_numpy()[rows]
        found["unknown_items"] = ratio(each(model, outside), found["rows_pred"])
    if score_col in frame.columns:
        scores = pd.Series(read_numbers(frame[score_col], f"pred[{score_col!r}]")[rows])
        levels = scores.groupby(model).quantile(np.array(AT_SHARES)).unstack()
        found |= {
            f"score_q{round(100 * q):02d}": levels[q].reindex(range(n_models)).to_numpy()
            for q in AT_SHARES
        }
    wide = pd.DataFrame({"model": names, **found})
    table = wide.melt("model", var_name="quantity")
    return table.sort_values(
        "model", key=lambda one: one.map(names.index), kind="stable", ignore_index=True
    )

"""`check`: unusual features of the data that affect the metrics, one row per finding.
`data_profile`: what a run keeps of its data, to be compared with later runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, Unpack

import numpy as np
import pandas as pd

from ..errors import EmptyPopulationError, examples
from ..inputs.door import takes_options
from ..inputs.frames import as_frame, column, id_frame, read_numbers
from ..inputs.ids import IdColumn
from ..inputs.options import CallArguments, Options
from ..inputs.sorting import distinct, run_of, spans
from ..inputs.true_and_pred import (
    argument_of,
    broken_of_true,
    gains,
    hints_of,
    order_source,
    read_relevance,
    relevance_source,
)
from ..matching.hits import ratio
from ..matching.lists import Matched
from ..metrics.call import Call, check_k
from ..progress import Progress
from ..tables.findings import Severity
from .check_findings import (
    Data,
    ListFindings,
    check_empty,
    check_ids,
    check_lists,
    check_side,
    labels_where,
    parts_by,
)
from .levels import matched_quietly
from .order_findings import check_order

# ------------------------------------------------------------------------------------------
# `check`: unusual features of the data that affect the metrics, one row per finding.


# If a larger share of the recommendations is in the user's log already, the finding is a warning.
MANY_SEEN = 0.05

AGAIN = "they can be right only where users want again what they had"
UNORDERED: Final[Mapping[str, Any]] = {"by": None, "score_col": False, "rank_col": None}
LEAK = (
    "train and test overlap, or users want again what they had: a model that leaves out seen items "
    "cannot hit them"
)


@partial(takes_options, every_number=True)
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
    true_frame = as_frame(true, "true", shared.user_col, shared.item_col)
    pred_frame = as_frame(pred, "pred", shared.user_col, shared.item_col)
    data = Data(true_frame, pred_frame, k, shared, order_source(pred_frame, shared))
    found = ListFindings()
    for role, frame in (("true", data.true), ("pred", data.pred)):
        check_empty(found, role, frame)
    hints = hints_of(data.true, data.pred, shared)
    effect = (
        "each value is scored with all rows of true; ⟦+by_in_true=True⟧ scores it with those of "
        "the same value"
    )
    found.add(
        "by_in_true",
        "true has columns of by",
        "warning",
        len(hints.true_by),
        0,
        hints.true_by,
        effect,
    )
    effect = (
        "true comes first, then pred; ⟦+score_col=False⟧ says that the rows of pred are in order"
    )
    found.add(
        "swapped",
        "true and pred look swapped",
        "warning",
        hints.swapped and len(data.true),
        len(data.true),
        "",
        effect,
    )
    with Progress(4, "check") as progress:
        pred_ids = check_ids(found, data.true, data.pred, shared)
        check_order_column(found, data)
        check_relevance(found, data)
        check_list_weights(found, data)
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
        given = {} if items is None else {"items": items}
        with matched_quietly(
            Call(forgiving(data.options), given=given), data.true, data.pred
        ) as matched:
            progress.add()
            found.matched = matched
            check_lists(found, data, matched)
            check_sampled(found, matched)
            check_order(found, data, matched)
            if data.order["column"] is None and shared.score_col is not False:
                _check_unused_numbers(found, data, matched.overlap.disordered)
            if items is not None:
                check_catalogue(found, data, matched)
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


def forgiving(options: Options) -> Options:
    """Return options that refuse no row, since each kind of row that would be refused is a
    finding."""
    plain = options.updated(propensity_col=None, propensity_floor=0.0, weight_col=None)
    return plain.updated(null_keys="drop", nan_score="last", duplicates="drop", users="all")


def _of_pairs(options: Options) -> Options:
    """Return options that read users, items and their order alone."""
    plain = forgiving(options)
    return plain.updated(
        relevance_col=False, min_relevance=None, value_col=None, judged_only=False, by_in_true=None
    )


def _left_without(
    exclude: Any, found: ListFindings, data: Data, pred_ids: dict[str, IdColumn]
) -> Data:
    """Return the rows that `evaluate` keeps, and those with null ids, which are a finding."""
    options = _of_pairs(data.options).updated(**UNORDERED, duplicates="keep")
    exclude = as_frame(exclude, "exclude", options.user_col, options.item_col)
    names = [name for name in data.pair if name in exclude.columns or name == options.item_col]
    if not check_side(found, "exclude", exclude, names, pred_ids):
        return data
    kept = [
        frame[data.pair].isna().any(axis=1).to_numpy(copy=True) for frame in (data.true, data.pred)
    ]
    call, pairs = (
        Call(options, given={"exclude": exclude}),
        (data.true[data.pair], data.pred[data.pair]),
    )
    with suppress(EmptyPopulationError), matched_quietly(call, *pairs) as left:
        kept[0][left.true_lists.rows(np.arange(len(left.true_lists.item)))] = True
        kept[1][left.rows(np.arange(len(left.item)))] = True
    for role, keep in zip(("true", "pred"), kept, strict=True):
        effect = "evaluate leaves them out before lists are ranked"
        found.add(
            "excluded",
            f"rows of {role} in exclude",
            "info",
            np.count_nonzero(~keep),
            len(keep),
            "",
            effect,
        )
    return replace(data, true=data.true[kept[0]], pred=data.pred[kept[1]])


# ----------------------------------------------------------------------------------------------
# numbers


def check_order_column(found: ListFindings, data: Data) -> None:
    """Report null and infinite scores or ranks."""
    name, what = data.order["column"], data.order["by"]
    if name is None:
        return
    number = read_numbers(column(data.pred, name, "pred"), f"pred[{name!r}]").astype(np.float64)
    null, infinite = np.isnan(number), np.isinf(number)
    effect = 'evaluate raises; ⟦+nan_score="last"⟧ or "drop" decides'
    where, n = f"pred[{name!r}]", len(data.pred)
    found.add("null_order", f"null {what}s", "error", null.sum(), n, where, effect)
    effect = "they rank before or after all others"
    found.add("infinite_order", f"infinite {what}s", "warning", infinite.sum(), n, where, effect)
    found.refused_numbers |= bool(null.all())


def _check_unused_numbers(found: ListFindings, data: Data, disordered: Mapping[Any, int]) -> None:
    """Report columns of numbers in `pred`, which may be scores, where the order of the rows
    decides."""
    used = {*data.pair, *data.by, data.options.value_col}
    for name in data.pred.columns:
        series, likely = data.pred[name], bool(disordered.get(name))
        floats = isinstance(series, pd.Series) and pd.api.types.is_float_dtype(series.dtype)
        if name in used or not (likely or floats):
            continue
        argument = argument_of(name) if likely else "⟦score_col=⟧ or ⟦rank_col=⟧"
        effect = f"the order of the rows decides; if this column ranks the items, pass {argument}"
        n = len(series)
        severity: Severity = "warning" if likely else "info"
        found.add(
            "unused_numbers",
            "a column of numbers in pred is not used",
            severity,
            n,
            n,
            f"pred[{name!r}]",
            effect,
        )


def check_relevance(found: ListFindings, data: Data) -> None:
    """Report relevance that is constant, that cannot be a gain, or that is in a column which is not
    used."""
    name = relevance_source(data.true, data.options)
    if name is None:
        if not found.parts:
            _check_unused_labels(found, data)
        return
    gain = read_relevance(data.true, name, data.options)
    bad = ~np.isfinite(gain) | (gain < 0)
    some = gain[bad][:5].tolist()
    found.add(
        "bad_relevance",
        "negative, null or infinite relevance",
        "error",
        bad.sum(),
        len(gain),
        some,
        "evaluate raises",
    )
    found.refused_numbers |= bool(bad.any())
    if found.parts:
        return
    if not bad.any() and len(gain) > 1 and gain.min() == gain.max():
        effect = (
            "relevance has no grades"
            if gain[0] > 0
            else "nothing is relevant: recall and ndcg are undefined"
        )
        severity: Severity = "info" if gain[0] > 0 else "warning"
        found.add(
            "constant_relevance",
            "constant relevance",
            severity,
            len(gain),
            len(gain),
            [float(gain[0])],
            effect,
        )
    elif not bad.any() and len(gain) > 1 and gain.min() > 0:
        effect = (
            "no row is judged and not relevant: ⟦judged_only=True⟧ keeps hits alone, and bpref is "
            "undefined or 0"
        )
        found.add(
            "all_relevant",
            "every judged row is relevant",
            "info",
            len(gain),
            len(gain),
            f"true[{name!r}]",
            effect,
        )


def check_list_weights(found: ListFindings, data: Data) -> None:
    """Report propensities of `true` that are no probabilities above 0, and weights of lists that
    are none."""
    for broken in broken_of_true(data.true, data.options):
        must = (
            "probabilities, above 0 and at most 1"
            if broken.rule.of == "propensity"
            else "finite numbers, at least 0"
        )
        effect = f"evaluate raises; {broken.where} must hold {must}"
        some = list(broken.some[:5])
        found.add(
            "bad_column",
            broken.rule.breaks,
            "error",
            broken.rows.sum(),
            len(data.true),
            some,
            effect,
        )


def _check_unused_labels(found: ListFindings, data: Data) -> None:
    """Report columns of 0 and 1 in `true`, which look like relevance, where every row counts as
    relevant."""
    options = data.options
    used = {*data.pair, *data.by, options.value_col, options.propensity_col, options.weight_name}
    for name in data.true.columns:
        series = data.true[name]
        if name in used or not isinstance(series, pd.Series) or not _is_label(series):
            continue
        zero = int((series.fillna(0) == 0).sum())
        effect = (
            "every row of true counts as relevant; if this column says which are, pass "
            "⟦+relevance_col=⟧"
        )
        found.add(
            "unused_labels",
            "a column of 0 and 1 in true is not used",
            "warning",
            zero,
            len(series),
            f"true[{name!r}]",
            effect,
        )


def _is_label(series: pd.Series) -> bool:
    """Tell whether a column holds both 0 and 1, or both False and True, and nothing else."""
    if not (
        pd.api.types.is_numeric_dtype(series.dtype) or pd.api.types.is_bool_dtype(series.dtype)
    ):
        return False
    values = pd.unique(series.dropna())
    return len(values) == 2 and set(values.tolist()) == {0, 1}


# -- side tables


def check_catalogue(found: ListFindings, data: Data, matched: Matched) -> None:
    """Report items of both frames that the catalogue does not have."""
    inside = matched.sides.items.inside
    for role, codes, rows, frame in (
        ("pred", matched.item, matched.rows, data.pred),
        ("true", matched.true_lists.item, matched.true_lists.rows, data.true),
    ):
        outside = ~inside[codes]
        if outside.any() or found.parts:
            some = examples(frame[data.options.item_col].take(rows(np.flatnonzero(outside)[:1000])))
            effect = "coverage counts them apart; confusion counts refuse them"
            found.add(
                "outside_catalogue",
                f"items of {role} outside the catalogue",
                "warning",
                outside.sum(),
                len(codes),
                some,
                effect,
            )


def check_seen(found: ListFindings, log: pd.DataFrame, data: Data) -> None:
    """Report items among the first k, and relevant items of `true`, that the log already has for
    the user."""
    plain = _of_pairs(data.options).updated(users="both")
    name, true = relevance_source(data.true, data.options), data.true
    if name is not None:
        true = true[gains(read_relevance(true, name, data.options), data.options) > 0]
    for code, frame, k, options, what, effect in (
        ("pred_seen", data.pred, data.k, plain, "recommendations", AGAIN),
        ("true_seen", true[data.pair], None, plain.updated(**UNORDERED), "relevant items", LEAK),
    ):
        # The log may have no user of these lists.
        with (
            suppress(EmptyPopulationError),
            matched_quietly(Call(options), log[data.pair], frame) as known,
        ):
            seen, shown = known.at(k).n_hits, known.at(k).n_shown
            for name, own in parts_by(known):
                n_rows, n_seen, some = (
                    int(shown[own].sum()),
                    seen[own].sum(),
                    labels_where(known, own & (seen > 0)),
                )
                severity: Severity = "warning" if n_rows and n_seen > MANY_SEEN * n_rows else "info"
                found.add(
                    code, f"{what} already in the log", severity, n_seen, n_rows, some, effect, name
                )


# Candidates look sampled if there are so many lists, and nearly all of them have all their relevant
# items beside the same number of others.
MANY_LISTS, NEARLY_ALL = 20, 0.95
# Slates of a shop, too, can hold one clicked item beside a fixed number of others. These are few,
# and the same items stand in many slates, while random items are spread evenly: the variance of
# their counts is about the mean. The relevant items are not counted, since popular ones stand in
# many lists whatever the others are.
MANY_OTHERS, FEW_OTHERS, EVEN = 20, 5, 1.5


def check_sampled(found: ListFindings, matched: Matched) -> None:
    """Report lists that look like the relevant items of a user among a few sampled ones."""
    lists = matched.at(None)
    others = matched.n_pred - lists.n_hits.astype(np.int64)
    n_items = len(distinct(matched.item))
    # Recommenders mostly rank the same candidates.
    counts = np.bincount(np.delete(matched.item, matched.hits.place)) / len(matched.by)
    counts = counts[counts > 0]
    for name, own in parts_by(matched):
        served = own & (matched.n_true > 0) & (matched.n_pred > 0)
        if served.sum() < MANY_LISTS:
            continue
        usual = int(np.bincount(others[served]).argmax())
        alike = served & (lists.n_hits == matched.n_true) & (others == usual)
        even = (
            len(counts)
            and counts.var() < EVEN * counts.mean()
            and (matched.n_true[alike] == 1).all()
        )
        all_items = n_items <= matched.n_pred[served].max()
        if (
            alike.sum() < NEARLY_ALL * served.sum()
            or all_items
            or usual < (FEW_OTHERS if even else MANY_OTHERS)
        ):
            continue
        effect = (
            f"lists hold all relevant items and {usual:,} others. If these were sampled, metrics "
            "may order models otherwise than over all items: rank all items, or correct lists of "
            "one relevant item with rd.diagnostics.sampled_values(metric, n_items=..., "
            f"n_sampled={usual})"
        )
        some = labels_where(matched, alike)
        found.add(
            "sampled",
            "candidates look sampled",
            "warning",
            alike.sum(),
            served.sum(),
            some,
            effect,
            name,
        )


# ------------------------------------------------------------------------------------------
# `data_profile`: sizes, unknown ids, judged share and scores of the data of one run, to be
# compared over time.


AT_SHARES = (0.01, 0.1, 0.5, 0.9, 0.99)


@takes_options
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
        n_places = len(matched.item)
        place_list = np.empty(n_places, np.int64)  # lists may stand in any order
        place_list[spans(matched.start, matched.n_pred)] = run_of(matched.n_pred)
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

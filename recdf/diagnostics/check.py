"""`check`: what in the data decides the numbers, one row per finding."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..errors import EmptyPopulationError, RecdfWarning, examples
from ..inputs.frames import as_frame, column, id_frame, read_numbers
from ..inputs.ids import read_ids
from ..inputs.options import NAMES, Options, as_columns, check_names, takes_options
from ..inputs.tables import order_source
from ..matching.lists import Hits
from ..matching.match import match
from ..matching.matched import Matched
from ..matching.side_tables.sides import Given
from ..metrics.metric import check_k, compute, find, label_frame, mean
from .check_ids import Findings, check_ids, check_side, plain_rows

__all__ = ["check"]

# A share of recommendations that users already had is worth a warning above this.
MANY_SEEN = 0.05


@takes_options
def check(true: Any, pred: Any, k: int = 10, *, log: Any = None, items: Any = None, **options: Any) -> pd.DataFrame:
    """What is odd in the data and what it does to the metrics: one row per finding, none for clean data.

    Parameters
    ----------
    true, pred : DataFrame, mapping or Arrow stream
        As for `evaluate`.
    k : int, default 10
        Cut-off that the findings refer to.
    log : DataFrame, optional
        Past interactions (list key, item): recommendations of items that the user already had are reported.
    items : DataFrame, list, Series or Index, optional
        Catalogue: items outside it are reported.
    {options}

    Returns
    -------
    DataFrame
        `finding`, `severity` ("error": `evaluate` refuses or scores nothing; "warning": numbers change; "info":
        worth knowing), `count`, `share` (of the rows or lists that it concerns), `examples` (text), `effect` (what
        it does to the metrics). Errors first.

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
    0  users without recommendations  warning      1    0.5      'v'
    """
    check_names(list(options), NAMES, "check")
    shared = Options.of({**options, "ties": "item_desc", "undefined": "nan"})
    k, found = check_k(k), Findings()
    true_frame = as_frame(true, "true", shared.user_col, shared.item_col)
    pred_frame = as_frame(pred, "pred", shared.user_col, shared.item_col)
    order = order_source(pred_frame, shared)
    found.add(
        "true is empty", "error", int(not len(true_frame)), 1, "0 rows", "nothing is relevant: there is no metric"
    )
    found.add("pred is empty", "error", int(not len(pred_frame)), 1, "0 rows", "every list scores 0")
    offered = check_ids(found, true_frame, pred_frame, shared)
    numbers = _check_numbers(found, true_frame, pred_frame, order, shared)
    if offered is None or not numbers:
        return found.table()
    if items is not None:
        items = id_frame(items, "items", [shared.item_col])
        usable = check_side(found, "items", items, [shared.item_col], offered)
        items = items[items[shared.item_col].notna()] if usable else None
    forgiving = shared.updated(null_keys="drop", nan_score="last", duplicates="drop", users="all")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecdfWarning)
        matched = match(true_frame, pred_frame, forgiving, Given(items=items))
    _check_lists(found, matched, true_frame, pred_frame, k, shared)
    _check_order(found, matched, pred_frame, order, k, shared)
    if items is not None:
        _check_catalogue(found, matched, true_frame[shared.item_col], pred_frame[shared.item_col])
    if log is not None:
        log = as_frame(log, "log", shared.user_col, shared.item_col)
        if check_side(found, "log", log, [*as_columns(shared.user_col), shared.item_col], offered):
            _check_seen(found, log, pred_frame, k, forgiving)
    return found.table()


# ---------------------------------------------------------------------------------------------- numbers


def _check_numbers(
    found: Findings, true: pd.DataFrame, pred: pd.DataFrame, order: dict[str, str | None], options: Options
) -> bool:
    """Null and infinite scores, relevance that says nothing or is negative."""
    name = order["column"]
    if name is not None:
        number = read_numbers(column(pred, name, "pred"), f"pred[{name!r}]").astype(np.float64)
        null, infinite = np.isnan(number), np.isinf(number)
        what = order["by"]
        effect = 'evaluate raises; nan_score="last" or "drop" decides'
        found.add(f"null {what}s", "error", int(null.sum()), len(pred), f"pred[{name!r}]", effect)
        effect = "they rank before or after all others"
        found.add(f"infinite {what}s", "warning", int(infinite.sum()), len(pred), f"pred[{name!r}]", effect)
        if null.all():
            return False
    if options.relevance_col is None:
        return True
    gain = read_numbers(column(true, options.relevance_col, "true"), f"true[{options.relevance_col!r}]").astype(float)
    bad = ~np.isfinite(gain) | (gain < 0)
    found.add(
        "negative, null or infinite relevance",
        "error",
        int(bad.sum()),
        len(gain),
        gain[bad][:5].tolist(),
        "evaluate raises",
    )
    if not bad.any() and len(gain) > 1 and gain.min() == gain.max():
        effect = "relevance has no grades" if gain[0] > 0 else "nothing is relevant: recall and ndcg are undefined"
        severity = "info" if gain[0] > 0 else "warning"
        found.add("constant relevance", severity, len(gain), len(gain), [float(gain[0])], effect)
    return not bad.any()


# ----------------------------------------------------------------------------------------------- lists


def _names(matched: Matched, where: np.ndarray) -> list[Any]:
    """Labels of the first lists where `where`."""
    return plain_rows(label_frame(matched).take(np.flatnonzero(where)[:5]))


def _dropped(frame: pd.DataFrame, names: list[str], kept: np.ndarray) -> list[Any]:
    """The first rows with ids that are not among the positions `kept`: these stand elsewhere too."""
    gone = np.ones(len(frame), bool)
    gone[kept] = False
    return plain_rows(frame[names].take(np.flatnonzero(gone)).dropna().head(5))


def _check_lists(
    found: Findings, matched: Matched, true: pd.DataFrame, pred: pd.DataFrame, k: int, options: Options
) -> None:
    pair = [*as_columns(options.user_col), options.item_col]
    for role, frame, names, lists in (
        ("true", true, pair, matched.truth),
        ("pred", pred, [*as_columns(options.by), *pair], matched),
    ):
        effect = 'evaluate keeps the best and warns; duplicates="keep" counts them all'
        if count := matched.counts.get(f"{role}_duplicates", 0):
            if options.judged_only:  # other rows are dropped as well
                rows = plain_rows(frame[names][frame[names].duplicated().to_numpy()].dropna().head(5))
            else:
                rows = _dropped(frame, names, lists.rows(np.arange(len(lists.item))))
            found.add(f"duplicate rows in {role}", "warning", count, len(frame), rows, effect)
    judged, served = matched.list_truth >= 0, matched.n_pred > 0
    without = judged & ~served
    effect = 'they score 0; users="both" leaves them out'
    found.add(
        "users without recommendations",
        "warning",
        int(without.sum()),
        int(judged.sum()),
        _names(matched, without),
        effect,
    )
    without = served & ~judged
    effect = 'not evaluated; users="pred" counts them'
    found.add("users without truth", "info", int(without.sum()), int(served.sum()), _names(matched, without), effect)
    short = served & (matched.n_pred < k)
    effect = f"precision@{k} counts the missing ranks as misses"
    found.add(f"lists shorter than {k}", "info", int(short.sum()), int(served.sum()), _names(matched, short), effect)
    long = matched.n_true > k
    ceiling = np.minimum(matched.n_true[judged], k) / np.maximum(matched.n_true[judged], 1)
    effect = ""
    if long.any():
        limit = ceiling[matched.n_true[judged] > 0].mean()
        effect = f"mean recall@{k} cannot pass {limit:.4g}; precision@{k} is not limited there"
    found.add(
        f"more than {k} relevant items", "info", int(long.sum()), int(judged.sum()), _names(matched, long), effect
    )
    empty = judged & (matched.n_true == 0)
    effect = "recall and ndcg are undefined there and skipped by the mean"
    found.add(
        "users without a relevant item", "info", int(empty.sum()), int(judged.sum()), _names(matched, empty), effect
    )


def _check_order(
    found: Findings, matched: Matched, pred: pd.DataFrame, order: dict[str, str | None], k: int, options: Options
) -> None:
    """Ties, constant scores, ranks with gaps, orders that contradict one another."""
    served = np.flatnonzero(matched.n_pred > 0)
    start, length = matched.start[served], matched.n_pred[served]
    if matched.tie_level is not None:
        level = matched.tie_level
        cut = length > k
        across = np.zeros(len(matched), bool)
        across[served[cut]] = level[start[cut] + k - 1] == level[start[cut] + k]
        constant = np.zeros(len(matched), bool)
        constant[served] = (length > 1) & (level[start] == level[start + length - 1])
        effect = "their order is the order of item ids, or of rows: it says nothing"
        found.add("constant scores", "warning", int(constant.sum()), len(served), _names(matched, constant), effect)
        effect = _tie_range(matched, k)
        if across.any():
            found.add(
                f"ties across rank {k}", "warning", int(across.sum()), len(served), _names(matched, across), effect
            )
        else:
            tied = _lists_where(matched, _tied(matched))
            found.add("equal scores", "info", int(tied.sum()), len(served), _names(matched, tied), effect)
    if order["by"] == "rank" and "pred_duplicates" not in matched.counts:
        rank = _in_list_order(matched, read_numbers(pred[order["column"]], "rank"))
        first = np.zeros(len(matched), bool)
        first[served] = rank[start] != 1
        effect = "recdf ranks anew, so a shift changes nothing here; other tools may read rank 0 or 2 as it stands"
        found.add(
            "ranks that do not start at 1", "warning", int(first.sum()), len(served), _names(matched, first), effect
        )
        gaps = _lists_where(matched, rank[1:] > rank[:-1] + 1)
        effect = "gaps close up: items below a gap move up"
        found.add("ranks with gaps", "warning", int(gaps.sum()), len(served), _names(matched, gaps), effect)
        if "score" in pred.columns and pd.api.types.is_numeric_dtype(pred["score"].dtype):
            score = _in_list_order(matched, read_numbers(pred["score"], "score"))
            several = np.zeros(len(matched), bool)
            several[served] = length > 1
            if several.any() and not _lists_where(matched, score[1:] != score[:-1]).any():
                effect = "rank decides; by these scores, as other tools order, every list is one tie"
                names = _names(matched, several)
                found.add("constant scores", "info", int(several.sum()), len(served), names, effect)
            against = _lists_where(matched, score[1:] > score[:-1])
            effect = "rank decides; pass score_col= to order by score"
            names = _names(matched, against)
            found.add(
                "score order that contradicts the ranks", "warning", int(against.sum()), len(served), names, effect
            )
    if order["by"] == "score" and not matched.as_given and len(served) == _runs(pred, options):
        rows = matched.rows(np.arange(len(matched.item)))
        against = _lists_where(matched, (rows[1:] < rows[:-1]) & ~_tied(matched))
        effect = "the score decides; if the rows were in the right order, smaller scores are better: pass rank_col="
        names = _names(matched, against)
        found.add("row order that contradicts the scores", "info", int(against.sum()), len(served), names, effect)


def _in_list_order(matched: Matched, number: np.ndarray) -> np.ndarray:
    return number if matched.as_given else number[matched.rows(np.arange(len(matched.item)))]


def _lists_where(matched: Matched, step: np.ndarray) -> np.ndarray:
    """Lists in which a step from one place to the next is flagged."""
    served = np.flatnonzero(matched.n_pred > 0)
    served = served[np.argsort(matched.start[served], kind="stable")]
    start = matched.start[served]
    step[start[1:] - 1] = False  # a step into the next list
    flagged = np.zeros(len(matched), bool)
    flagged[served[np.searchsorted(start, np.flatnonzero(step), side="right") - 1]] = True
    return flagged


def _tied(matched: Matched) -> np.ndarray:
    if matched.tie_level is None:
        return np.zeros(max(len(matched.item) - 1, 0), bool)
    return np.diff(matched.tie_level) == 0


def _runs(pred: pd.DataFrame, options: Options) -> int:
    """Number of runs of equal list keys: that of the lists where the frame is grouped."""
    keys = [read_ids(pred[name], name) for name in (*as_columns(options.by), *as_columns(options.user_col))]
    if any(ids.null is not None for ids in keys):
        return -1
    return int(np.logical_or.reduce([ids.changes(slice(None)) for ids in keys]).sum()) + 1


TIE_METRICS = ("hitrate", "precision", "recall", "mapr", "ndcg", "mrr")


def _tie_range(matched: Matched, k: int) -> str:
    """Mean of each metric with the relevant items of every tie last, and first."""
    assert matched.tie_level is not None
    judged, options = matched.judged, Options()
    own = matched.tie_level[judged.place]
    begin = matched.start[judged.list]
    top = np.searchsorted(matched.tie_level, own, side="left") - begin
    bottom = np.searchsorted(matched.tie_level, own, side="right") - begin
    words = []
    cases = []
    for best in (False, True):
        order = np.lexsort((-judged.gain if best else judged.gain, own))
        first = np.searchsorted(own[order], own[order], side="left")
        last = np.searchsorted(own[order], own[order], side="right")
        number = np.arange(len(order))
        rank = top[order] + 1 + (number - first) if best else bottom[order] - (last - 1 - number)
        hits = Hits.of(judged.list[order], rank, judged.gain[order], judged.place[order], judged.truth[order])
        cases.append(replace(matched, judged=hits, _views={}))
    evaluated = matched.list_truth >= 0
    for name in TIE_METRICS:
        request = find(name).request({}, k, options)
        low, high = (mean(next(iter(compute(case, request, options).values()))[evaluated]) for case in cases)
        if high - low > 1e-12:
            words.append(f"{name}@{k} from {low:.4g} to {high:.4g}")
    return "; ".join(words) if words else f"no metric at {k} depends on it"


def _check_catalogue(found: Findings, matched: Matched, true_item: pd.Series, pred_item: pd.Series) -> None:
    assert matched.catalogue is not None
    inside = np.zeros(matched.n_items, bool)
    inside[matched.catalogue] = True
    for role, codes, rows, ids in (
        ("pred", matched.item, matched.rows, pred_item),
        ("true", matched.truth.item, matched.truth.rows, true_item),
    ):
        outside = ~inside[codes]
        if outside.any():
            some = examples(ids.take(rows(np.flatnonzero(outside)[:1000])))
            effect = "coverage counts them apart; confusion counts refuse them"
            found.add(f"items of {role} outside the catalogue", "warning", int(outside.sum()), len(codes), some, effect)


def _check_seen(found: Findings, log: pd.DataFrame, pred: pd.DataFrame, k: int, options: Options) -> None:
    """Recommendations, in the first k, of what the user's own log holds."""
    past = options.updated(users="both", relevance_col=None, min_relevance=None, value_col=None, judged_only=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecdfWarning)
        keys = [*as_columns(options.user_col), options.item_col]
        for name in keys:
            column(log, name, "log")
        try:
            known = match(log[keys], pred, past)
        except EmptyPopulationError:  # the log has nobody who was recommended something
            return
    seen = known.at(k).n_hits
    shown = int(known.at(k).n_shown.sum())
    severity = "warning" if shown and seen.sum() > MANY_SEEN * shown else "info"
    effect = "they can be right only where users want again what they had"
    names = _names(known, seen > 0)
    found.add("recommendations already in the log", severity, int(seen.sum()), shown, names, effect)

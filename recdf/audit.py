"""`check`: what in the data decides the numbers, one row per finding."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from .errors import IdTypeError, RecdfWarning
from .frames import as_frame, column, order_source, read_numbers
from .ids import Ids, check_kinds, encode, read_ids
from .lists import Hits, Matched
from .match import match, run_heads
from .metric import check_k, compute, find, label_frame, mean
from .options import NAMES, Options, as_columns, check_names, takes_options
from .sides import Given

__all__ = ["check"]

# A share of `true` that nobody was recommended is worth a word above this.
FEW_ITEMS_IN_COMMON = 0.5
MANY_SEEN = 0.05


@dataclass
class Findings:
    """Rows of the result, in the order in which they are found."""

    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, finding: str, severity: str, count: int, of: int, examples: Any, effect: str) -> None:
        """One finding that concerns `count` of `of`; nothing if it concerns none."""
        if count:
            words = examples if isinstance(examples, str) else ", ".join(map(repr, list(examples)[:5]))
            share = count / of if of else float("nan")
            values = (finding, severity, int(count), share, words, effect)
            self.rows.append(dict(zip(COLUMNS, values, strict=True)))

    def table(self) -> pd.DataFrame:
        types = {
            "finding": "str",
            "severity": "str",
            "count": "int64",
            "share": "float64",
            "examples": "str",
            "effect": "str",
        }
        table = pd.DataFrame(self.rows, columns=COLUMNS).astype(types)
        order = table["severity"].map({"error": 0, "warning": 1, "info": 2})
        return table.iloc[np.argsort(order.to_numpy(), kind="stable")].reset_index(drop=True)


COLUMNS = ["finding", "severity", "count", "share", "examples", "effect"]


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
    comparable = _check_ids(found, true_frame, pred_frame, shared)
    comparable &= _check_numbers(found, true_frame, pred_frame, order, shared)
    if not comparable:
        return found.table()
    forgiving = shared.updated(null_keys="drop", nan_score="last", duplicates="drop", users="all")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecdfWarning)
        matched = match(true_frame, pred_frame, forgiving, Given(items=items))
    _check_lists(found, matched, len(true_frame), len(pred_frame), k)
    _check_order(found, matched, pred_frame, order, k, shared)
    if items is not None:
        _check_catalogue(found, matched)
    if log is not None:
        _check_seen(found, as_frame(log, "log", shared.user_col, shared.item_col), pred_frame, k, forgiving)
    return found.table()


# ------------------------------------------------------------------------------------- ids and numbers


def _check_ids(found: Findings, true: pd.DataFrame, pred: pd.DataFrame, options: Options) -> bool:
    """Null ids, kinds that cannot match, look-alikes; False if nothing can be compared."""
    comparable = len(true) > 0 and len(pred) > 0
    for what, names in (("user", as_columns(options.user_col)), ("item", [options.item_col])):
        for name in names:
            pair = []
            for role, frame in (("true", true), ("pred", pred)):
                series = column(frame, name, role)
                try:
                    ids = read_ids(series, f"{role}[{name!r}]")
                except IdTypeError as error:
                    found.add(
                        "ids of an unusable type",
                        "error",
                        len(series),
                        len(series),
                        str(error),
                        "evaluate refuses them",
                    )
                    comparable = False
                    continue
                if ids.null is not None:
                    effect = 'evaluate raises; null_keys="drop" leaves these rows out'
                    found.add(f"null ids in {role}", "error", int(ids.null.sum()), len(ids), ids.where, effect)
                pair.append(ids)
            if len(pair) < 2 or not comparable:
                continue
            try:
                check_kinds(pair)
            except IdTypeError as error:
                effect = "no row can ever match: every metric would be 0"
                found.add(f"{what} ids that cannot match", "error", len(pair[1]), len(pair[1]), str(error), effect)
                comparable = False
                continue
            comparable &= _check_common(found, what, name, pair[0], pair[1])
    return comparable


def _check_common(found: Findings, what: str, name: str, wanted: Ids, offered: Ids) -> bool:
    """Ids of `true` that nobody of `pred` has, and whether they only look different."""
    heads = [None if ids.null is not None else run_heads([ids]) for ids in (wanted, offered)]
    codes = encode(
        [ids if head is None else ids.take(head) for ids, head in zip((wanted, offered), heads, strict=True)]
    )
    present = []
    for code in codes.codes:
        flags = np.zeros(codes.n + 1, bool)  # the last one is for nulls, code -1
        flags[code] = True
        present.append(flags[:-1])
    common = present[0] & present[1]
    own = codes.codes[0] if heads[0] is None else np.repeat(codes.codes[0], np.diff(np.append(heads[0], len(wanted))))
    _check_look_alikes(found, what, codes.labels, own, *present)
    if not common.any():
        sample = [ids.show(np.arange(min(2, len(ids)))) for ids in (wanted, offered)]
        examples = f"true {sample[0]}, pred {sample[1]}"
        found.add(f"no {what} in common", "error", len(wanted), len(wanted), examples, "every list scores 0")
        return False
    lost = ~np.append(common, True)[own]
    missed = int(lost.sum())
    if what == "item" and missed > FEW_ITEMS_IN_COMMON * len(wanted):
        row = np.flatnonzero(lost)[:5]
        effect = f"recall cannot pass {1 - missed / len(wanted):.3g} of the rows of true"
        found.add("relevant items that nobody was recommended", "info", missed, len(wanted), wanted.show(row), effect)
    return True


def _check_look_alikes(
    found: Findings, what: str, labels: Any, own: np.ndarray, mine: np.ndarray, theirs: np.ndarray
) -> None:
    """Strings of one frame only that equal one of the other but for zeros, a trailing .0, blanks or case."""
    if not isinstance(labels, pa.Array | pa.ChunkedArray) or not pa.types.is_large_string(labels.type):
        return
    text = labels if isinstance(labels, pa.Array) else labels.combine_chunks()
    plain = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    plain = pc.replace_substring_regex(plain, r"\.0+$", "")
    plain = pc.replace_substring_regex(plain, r"^0+(\d)", r"\1")
    code = plain.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    only_mine, only_theirs = mine & ~theirs, theirs & ~mine
    in_theirs = np.zeros(int(code.max(initial=-1)) + 1, bool)
    in_theirs[code[only_theirs]] = True
    alike = only_mine & in_theirs[code]
    if not alike.any():
        return
    first = int(np.flatnonzero(alike)[0])
    other = int(np.flatnonzero(only_theirs & (code == code[first]))[0])
    examples = f"true {text[first].as_py()!r}, pred {text[other].as_py()!r}"
    effect = "they do not match: write both the same way (leading zeros, '.0', blanks, case)"
    count = int(np.append(alike, False)[own].sum())
    found.add(f"{what} ids that only look different", "warning", count, len(own), examples, effect)


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
    labels = label_frame(matched).take(np.flatnonzero(where)[:5])
    rows = labels.astype(object).to_numpy().tolist()
    return [row[0] if len(row) == 1 else tuple(row) for row in rows]


def _check_lists(found: Findings, matched: Matched, n_true_rows: int, n_pred_rows: int, k: int) -> None:
    for role, total in (("true", n_true_rows), ("pred", n_pred_rows)):
        effect = 'evaluate keeps the best and warns; duplicates="keep" counts them all'
        count = matched.counts.get(f"{role}_duplicates", 0)
        found.add(f"duplicate rows in {role}", "warning", count, total, "", effect)
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
    effect = f"mean recall@{k} cannot pass {ceiling[matched.n_true[judged] > 0].mean():.4g}" if long.any() else ""
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
    return int(np.logical_or.reduce([ids.changes() for ids in keys]).sum()) + 1


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


def _check_catalogue(found: Findings, matched: Matched) -> None:
    assert matched.catalogue is not None
    inside = np.zeros(matched.n_items, bool)
    inside[matched.catalogue] = True
    for role, codes in (("pred", matched.item), ("true", matched.truth.item)):
        outside = ~inside[codes]
        effect = "coverage counts them apart; confusion counts refuse them"
        found.add(f"items of {role} outside the catalogue", "warning", int(outside.sum()), len(codes), "", effect)


def _check_seen(found: Findings, log: pd.DataFrame, pred: pd.DataFrame, k: int, options: Options) -> None:
    """Recommendations, in the first k, of what the user's own log holds."""
    past = options.updated(users="both", relevance_col=None, min_relevance=None, value_col=None, judged_only=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecdfWarning)
        keys = [*as_columns(options.user_col), options.item_col]
        for name in keys:
            column(log, name, "log")
        known = match(log[keys], pred, past)
    seen = known.at(k).n_hits
    shown = int(known.at(k).n_shown.sum())
    severity = "warning" if shown and seen.sum() > MANY_SEEN * shown else "info"
    effect = "they can be right only where users want again what they had"
    names = _names(known, seen > 0)
    found.add("recommendations already in the log", severity, int(seen.sum()), shown, names, effect)

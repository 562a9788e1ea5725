"""`audit`: is the evaluation itself sound? Leaks between training data and truth, and levels that
need no model.

Contract: findings and levels are made of one row per list, with the metrics, their levels and what
they are without the rows of each finding; and of counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from numbers import Integral, Number
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..errors import ColumnError, EmptyPopulationError, OptionError
from ..evaluation.summary_rows import population_within, within
from ..evaluation.value_moments import CONFIDENCE, groups_of, means
from ..inputs.codes import encode, encode_keys, known_ids
from ..inputs.constraints import check_value
from ..inputs.door import takes_options
from ..inputs.frames import id_frame, read_frame
from ..inputs.options import CallArguments, as_columns
from ..inputs.sorting import distinct, flags_at, last_places
from ..inputs.true_and_pred import gains, read_relevance, relevance_source
from ..judge.per_user_columns import unit_of
from ..logs.times import read_times
from ..matching.lists import Matched
from ..matching.overlap import Overlap
from ..metrics.call import Call
from ..metrics.compute import mean, per_user_frame
from ..metrics.strings import Metrics
from ..stats.numbers import Floats, Integers, Mask
from ..tables.cells import amount, beside_columns, form_of, number
from ..tables.findings import Findings, ShownFindings, row_names, row_objects
from .data_checks import check_doubts
from .levels import (
    best_order,
    call_of_levels,
    chance_of,
    matched_quietly,
    true_rows,
    values_of,
    with_ranks,
)

# Each finding: its severity, its name, and what it does to the metrics.
KNOWN = {
    "true_in_train": (
        "warning",
        "rows of true that stand in train",
        "a model that remembers train hits them, and one that leaves out seen items cannot",
    ),
    "pred_in_train": (
        "warning",
        "recommended items that the user has in train",
        "they can be right only where users want again what they had; without: as with "
        "⟦+exclude=train⟧",
    ),
    "train_after_cutoff": (
        "warning",
        "rows of train after the cut-off",
        "the model has learned from the time of the test; without: the lists of other users",
    ),
    "train_after_own": (
        "warning",
        "rows of train after the user's own row of true",
        "the model knows what the user did afterwards; without: the lists of other users",
    ),
    "train_after_list": (
        "info",
        "lists whose truth is older than other users' rows of train",
        "the model knows what was popular later (a split by user, not by time); without: the other "
        "lists",
    ),
    "true_before_cutoff": (
        "warning",
        "rows of true before the cut-off",
        "they belong to the training data; without: those rows left out",
    ),
    "true_cold": (
        "info",
        "relevant items that were not known before",
        "the catalogue grows; without: those rows left out",
    ),
    "hits_cold": (
        "warning",
        "hits that the training data cannot explain",
        "train does not know these items, so that the model has them from elsewhere, perhaps from "
        "true; without: those hits taken out of pred",
    ),
    "pred_cold": (
        "info",
        "recommended items that were not known before",
        "the model knows items not only from train",
    ),
    "pred_unknown": (
        "info",
        "users of pred that train lacks",
        "nothing personal can be known of them; without: other users' lists",
    ),
}


KNOWN_BY_MODEL = ("pred_in_train", "hits_cold", "pred_cold", "pred_unknown")  # others stand once


# Fewer hits on items that train lacks, or as many as chance may give, are no warning.
LEAST_COLD_HITS, COLD_ALPHA = 5, 0.001


class Question(NamedTuple):
    """What an audit is asked of which frames; `items` is the size of the catalogue, None for a side
    table or what is counted."""

    frames: dict[str, DataFrame]
    call: Call
    items: int | None
    time_col: str | None
    cutoff: Any

    @property
    def keys(self) -> list[str]:
        return self.call.options.list_key

    def rows_by(self, frame: DataFrame) -> dict[str, Mask]:
        """Return the rows of each `by` value, by its text: "" without `by`."""
        by = [name if name in frame else str(name) for name in as_columns(self.call.options.by)]
        code, labels = groups_of(frame, by)
        return {name: code == place for place, name in enumerate(row_names(labels))}

    def mean(self, lists: DataFrame, name: str) -> float:
        """Return the mean of a column of lists, NaN where they have no such column."""
        if name not in lists:
            return np.nan
        weight = self.call.options.weight_name
        weights = None if weight is None else lists[weight].to_numpy(float)
        return mean(lists[name].to_numpy(float), weights)


class UserItemPairs:
    """Users and items of the frames as codes.

    The code of an item is its place by popularity: the rows of train that are no leaks, since they
    stand in true too or are later than the cut-off. So the pairs of a user stand in that order.
    Users are those that `train` tells apart. `fair` is each pair of train that is no leak once, as
    sorted numbers. `cold` tells which items were not known before: they have no row in train (in
    the log, if there is no train), or their first row in the log (in train, if there is no log) is
    later than the cut-off. `times` are those of each frame.
    """

    def __init__(self, lists: DataFrame, asked: Question) -> None:
        item = asked.call.options.item_col
        frames = asked.frames
        with_users = {**frames, "lists": lists}
        with_users.pop("log", None)
        of_users = frames.get("train", frames["true"])
        own = [name for name in asked.keys if name in of_users] or asked.keys
        users, self.n_users = encode_keys(
            [[known_ids(one, role, key) for key in own] for role, one in with_users.items()]
        )
        self.users = {
            role: one.all().astype(np.int64) for role, one in zip(with_users, users, strict=True)
        }
        items = encode([known_ids(one, role, item) for role, one in frames.items()])
        codes = dict(zip(frames, items.codes, strict=True))
        self.items, self.n_items = codes, items.n
        self.times = times = clock_of(asked)
        cutoff = times["cutoff"][0]
        counted = codes.get("train", codes.get("log", np.empty(0, np.int32)))
        self.known = len(counted) > 0
        popularity = n = np.bincount(counted, minlength=items.n)
        leaked = np.zeros(0, bool)
        if "train" in frames:
            leaked = np.isin(self.of("train"), self.of("true"))
            if "train" in times:
                leaked |= times["train"] > cutoff
            popularity = n - np.bincount(codes["train"][leaked], minlength=items.n)
        first = np.full(items.n, np.nan)
        dated = "log" if "log" in frames else "train"
        if dated in times:
            np.fmin.at(first, codes[dated], times[dated])
        there = flags_at(np.concatenate(items.codes), items.n)
        rank = items.rank()
        order = np.lexsort((np.arange(items.n) if rank is None else rank, -popularity))
        order = order[there[order]]
        self.cold = ((n == 0) | (first > cutoff))[order]
        place = last_places(order, items.n)
        self.items = {role: place[one] for role, one in codes.items()}
        self.n_items, self.n_popular = len(order), (popularity > 0).sum()
        self.fair = distinct(self.of("train")[~leaked]) if "train" in frames else place[:0]

    def of(self, role: str) -> Integers:
        """One number for the user and the item of each row."""
        return self.users[role] * self.n_items + self.items[role]

    def popular_lists(self, matched: Matched, frame_row: Integers) -> Matched:
        """Return lists of the most popular items of train, less those that the user has there.

        Rows of train that are leaks count for neither. The rank of a relevant item
        is its place by popularity, less the items of the user that come before it.
        """
        lists = np.arange(len(matched))
        user = self.users["lists"]
        first, end = (np.searchsorted(self.fair, (user + one) * self.n_items) for one in (0, 1))
        of, row = true_rows(matched, lists, (self.items["true"] < self.n_popular)[frame_row])
        before = np.searchsorted(self.fair, self.of("true")[frame_row[row]]) - first[of]
        rank = self.items["true"][frame_row[row]] + 1 - before
        return with_ranks(matched, lists, self.n_popular - (end - first), of, row, rank)


def clock_of(asked: Question) -> dict[str, Floats]:
    """Return the times of each frame and the cut-off, infinite without one, as numbers of one
    clock; NaN for a null."""
    name = asked.time_col
    cutoff = asked.cutoff
    columns = {
        role: (f"{role}[{name!r}]", one[name]) for role, one in asked.frames.items() if name in one
    }
    if cutoff is not None:
        plain = all(pd.api.types.is_numeric_dtype(one.dtype) for _, one in columns.values())
        last: Any = pd.NaT
        if plain or not isinstance(cutoff, Number):
            with suppress(ValueError, TypeError):
                last = float(cutoff) if plain else pd.Timestamp(cutoff)
        if pd.isna(last):
            what = "a number" if plain else "a time such as 2026-11-01"
            raise OptionError(f"⟦cutoff={cutoff!r}⟧; expected {what}", value=cutoff)
        columns["cutoff"] = "cutoff", pd.Series([last])
    read = read_times(list(columns.values()))[1]
    return {"cutoff": np.array([np.inf])} | {
        role: np.where(one.isna().to_numpy(bool), np.nan, own.values.astype(float))
        for (role, (_, one)), own in zip(columns.items(), read, strict=True)
    }


# The frame of a finding, its rows, and the rows that it could be about.
Mark = tuple[str, Mask, Mask]


def rows_of_findings(pairs: UserItemPairs, asked: Question) -> dict[str, Mark]:
    """Return the rows that each finding is about."""
    options = asked.call.options
    frames = asked.frames
    users = pairs.users
    time = pairs.times
    found = {}
    every = {role: np.ones(len(one), bool) for role, one in frames.items()}
    name = relevance_source(frames["true"], options)
    relevant = every["true"]
    if name is not None:
        relevant = gains(read_relevance(frames["true"], name, options), options) > 0
    cutoff = time["cutoff"][0]
    if "train" in frames:
        train = pairs.of("train")
        found["true_in_train"] = "true", np.isin(pairs.of("true"), train) & relevant, relevant
        found["pred_in_train"] = "pred", np.isin(pairs.of("pred"), train), every["pred"]
        known = flags_at(users["train"], pairs.n_users)
        user_of_model = frames["pred"][as_columns(options.by)].assign(**{"": users["pred"]})
        head = ~user_of_model.duplicated().to_numpy()
        found["pred_unknown"] = "pred", head & ~known[users["pred"]], head
    if "train" in time:
        found["train_after_cutoff"] = "train", time["train"] > cutoff, every["train"]
    if "true" in time:
        early = (time["true"] < cutoff) & relevant & np.isfinite(cutoff)
        found["true_before_cutoff"] = "true", early, relevant
    if "train" in time and "true" in time:
        own = np.full(pairs.n_users, np.inf)
        np.fmin.at(own, users["true"][relevant], time["true"][relevant])
        found["train_after_own"] = "train", time["train"] > own[users["train"]], every["train"]
        if asked.cutoff is None:
            older = own[users["lists"]] < np.fmax.reduce(time["train"])
            found["train_after_list"] = "lists", older, every["lists"]
    found["true_cold"] = "true", pairs.cold[pairs.items["true"]] & relevant, relevant
    found["pred_cold"] = "pred", pairs.cold[pairs.items["pred"]], every["pred"]
    hits = np.isin(pairs.of("pred"), pairs.of("true")[relevant])
    found["hits_cold"] = "pred", found["pred_cold"][1] & hits, hits
    return found


def beyond_chance(count: int, chance: float) -> bool:
    """Whether chance gives so many events with p < COLD_ALPHA, by Chernoff's bound of the Poisson
    distribution."""
    if count < LEAST_COLD_HITS or count <= chance:
        return False
    log_p = -math.inf if chance == 0 else count - chance - count * math.log(count / chance)
    return log_p < math.log(COLD_ALPHA)


# ------------------------------------------------------------------------------------------
# What an audit finds.

INTERVAL = ["value", "ci_low", "ci_high", "n_users"]
LEAST_LISTS = 30  # the metric of fewer lists that are left is not shown
LEVEL_WORDS = {
    "below chance": "a random order of the catalogue does better",
    "at chance": "no better than a random order of the catalogue is shown",
    "below popularity": "the most popular items of train, less the seen ones, do better",
    "at popularity": "no difference from the most popular items of train, less the seen ones, is "
    "shown",
    "at its ceiling": "no better order of the items in the lists is to be had; only other items "
    "can raise it",
}


class AuditFindings(Findings):
    """Findings with the metrics with and without the rows or lists that they concern."""

    columns: ClassVar[Mapping[str, str]] = {
        **Findings.columns,
        "by": "str",
        "metric": "str",
        "value": "float64",
        "value_without": "float64",
        "ranges": "str",
    }

    def about(self, metric: str, value: float, without: float, *finding: Any) -> None:
        """Add a finding that stands beside a metric."""
        self.add(*finding)
        self.rows[-1] |= {"metric": metric, "value": value, "value_without": without}


class Audited(ShownFindings):
    """What `audit` returns: its findings, and in `floors` the levels beside each metric."""

    _metadata: ClassVar[list[str]] = ["floors"]
    floors: DataFrame

    def __repr__(self) -> str:
        levels = self.floors.to_string(index=False) if hasattr(self, "floors") else ""
        return f"{super().__repr__()}\n\n{levels}".rstrip("\n")

    def _repr_html_(self) -> str | None:
        levels = DataFrame(self.floors).to_html(index=False) if hasattr(self, "floors") else ""
        return (super()._repr_html_() or "") + levels


def _measured(asked: Question) -> tuple[DataFrame, dict[str, Mark], UserItemPairs, Overlap]:
    """Return one row per list with all levels of each metric, the rows of each finding, and what
    both frames share. The frames get those rows as "lists"."""
    call, frames, more = asked.call, asked.frames, {}
    marks: dict[str, Mark] = {}
    counted = asked.items is None and "items" not in call.given
    given = *as_columns(call.options.by), *asked.keys, call.options.weight_name
    names = {str(name): name for name in given}  # a frame of lists has texts as names

    def without(key: str) -> dict[str, Floats]:
        """Return the metrics of each list without the rows of a finding, NaN for lists that are
        left out."""
        role, where, _ = marks[key]
        if not where.any():
            return values
        if role == "true":
            part = within(matched, ~where[frame_row])
            stay = population_within(matched, part, call.options)
            found = values_of(part, call)
        elif role == "pred" and key != "pred_unknown":
            true = frames["true"]
            if key == "pred_in_train":
                true = true[~np.isin(pairs.of("true"), pairs.of("train"))]
            labels = lists[[*matched.by.columns, *matched.keys]]
            try:
                with matched_quietly(call, true, frames["pred"][~where]) as part:
                    own = per_user_frame(part, values_of(part, call)).rename(columns=names)
                    rest = labels.merge(own, on=list(labels), how="left")
            except EmptyPopulationError:
                rest = labels.reindex(columns=list(values))
            return {name: rest[name].to_numpy(float) for name in values}
        else:
            hurt = flags_at(pairs.users[role][where], pairs.n_users)
            stay = ~hurt[pairs.users["lists"]]
            found = values
        return {name: np.where(stay, one, np.nan) for name, one in found.items()}

    with matched_quietly(call, frames["true"], frames["pred"]) as matched:
        values = values_of(matched, call)
        weight = {} if matched.weight is None else {str(call.options.weight_name): matched.weight}
        lists = per_user_frame(matched, {**weight, "n_pred": matched.n_pred, **values})
        lists = lists.rename(columns=names)
        pairs = UserItemPairs(lists, asked)
        frames["lists"] = lists
        more["chance"] = chance_of(matched, call, pairs.n_items if counted else asked.items)[0]
        more["ceiling"] = values_of(best_order(matched), call)
        if pairs.known:
            marks = rows_of_findings(pairs, asked)
            frame_row = matched.true_lists.rows(np.arange(len(matched.true_lists.item)))
            if "train" in frames:
                more["popularity"] = values_of(pairs.popular_lists(matched, frame_row), call)
            for key in marks.keys() - {"pred_cold"}:
                more[f"without {key}"] = without(key)
    levels = {
        f"{name} {what}": one for what, by_name in more.items() for name, one in by_name.items()
    }
    return beside_columns(lists, levels), marks, pairs, matched.overlap


def _compared(lists: DataFrame, asked: Question, found: AuditFindings) -> DataFrame:
    """Return the levels beside each metric, and add what is below chance, at popularity or at its
    ceiling."""
    rows = []
    weight = asked.call.options.weight_name
    units = unit_of(asked.keys)
    for by, mine in asked.rows_by(lists).items():
        own = lists[mine]
        n = mine.sum()
        weights = None if weight is None else own[weight].to_numpy(float)
        for request, metric in zip(asked.call.requests, asked.call.columns, strict=True):
            value = asked.mean(own, metric)
            said = []
            row: dict[str, Any] = {"by": by} if asked.call.options.by else {}
            row |= {"metric": metric, "n": n, "value": value}
            sign = -1 if request.better == "smaller" else 1
            cut = (own["n_pred"] > (request.k or np.inf)).any()
            for level in ("chance", "popularity", "ceiling"):
                row[level] = asked.mean(own, f"{metric} {level}")
                gain = sign * (own[metric] - own.get(f"{metric} {level}", np.nan))
                of_gain = means(
                    own[units].assign(d=gain), [], ["d"], {}, CONFIDENCE, units, weights
                )
                diff, low, high, n_users = of_gain[INTERVAL].to_numpy(float)[0]
                if np.isnan(low) and n_users > 1:  # equal differences, which have no interval
                    low = high = diff
                word = f"below {level}" if high < 0 else f"at {level}" if low <= 0 else ""
                if level == "ceiling":
                    ordered = cut or request.metric.family == "ranking"
                    word = f"at its {level}" if high >= 0 and ordered else ""
                if word:
                    said.append(word)
                    ends = sorted((sign * low, sign * high))
                    numbers = value, row[level], sign * diff, *ends
                    form = form_of(*numbers, half=(high - low) / 2)
                    texts = (number(x, form) for x in numbers)
                    shown = "{} against {}, difference {} (interval {} to {})".format(*texts)
                    severity = "info" if level == "ceiling" else "warning"
                    what = word.replace(" ", "_"), f"{metric} is {word}", severity
                    effect = f"{LEVEL_WORDS[word]}: {shown}"
                    found.about(metric, value, np.nan, *what, n, n, "", effect, by)
            rows.append({**row, "said": ", ".join(said)})
    return DataFrame(rows)


def _add_leaks(
    found: AuditFindings,
    lists: DataFrame,
    marks: Mapping[str, Mark],
    pairs: UserItemPairs,
    asked: Question,
) -> None:
    """Add the findings about rows, each with the metrics with and without them; before them users,
    and items, none of which train shares with true and pred."""
    item, apart, (first, *_) = asked.call.options.item_col, asked.rows_by(lists), asked.call.columns
    frames = asked.frames
    for what, codes, name in (("user", pairs.users, asked.keys[0]), ("item", pairs.items, item)):
        of = np.concatenate([codes["true"], codes["pred"]])
        if "train" in frames and not np.isin(of, codes["train"]).any():
            ids = ", ".join(
                f"{role}[{name!r}] {row_objects(frames[role][[name]].head(1))[0]!r}"
                for role in ("true", "pred", "train")
                if name in frames[role] and len(frames[role])
            )
            finding = f"train has no {what} of true and pred"
            effect = f"are its ids those of true? Nothing about {what}s seen in train can be found"
            found.add("nothing_in_train", finding, "warning", len(of), len(of), ids, effect)
    for key, (role, where, of) in marks.items():
        by_model = asked.rows_by(frames[role]) if key in KNOWN_BY_MODEL else {"": True}
        for by, own in by_model.items():
            rows = np.flatnonzero(where & own)
            if not len(rows):
                continue
            severity, finding, effect = KNOWN[key]
            words = []
            both = {}
            for label, mine in apart.items() if by not in apart else [("", apart[by])]:
                both = {
                    one: [asked.mean(lists[mine], f"{one}{end}") for end in ("", f" without {key}")]
                    for one in asked.call.columns
                }
                said = [_with_and_without(lists[mine], one, key, *both[one]) for one in both]
                words.append(f"{label}: " * bool(label) + ", ".join(said))
            if by not in apart:  # one finding for all models, whose numbers stand in its words
                both = {one: [np.nan, np.nan] for one in both}
            if key == "hits_cold":
                # A random order of the catalogue hits each cold row of true once in n_items.
                of_cold = pairs.users["true"][marks["true_cold"][1]]
                n_cold = np.bincount(of_cold, minlength=pairs.n_users)
                chance = (n_cold[pairs.users["pred"][own]] / pairs.n_items).sum()
                if not beyond_chance(len(rows), chance):
                    severity = "info"
                    effect = (
                        "no more than by chance: a random order hits about "
                        f"{number(chance, '.3g')} of them"
                    )
            effect = effect if key == "pred_cold" else "; ".join([effect, *words])
            ranges = {one: [None if np.isnan(x) else x for x in two] for one, two in both.items()}
            names = [one for one in (*asked.keys, item) if one in frames[role]]
            some = row_objects(frames[role][names].take(rows[:5]))
            n = np.count_nonzero(of & own)
            about = key, finding, severity, len(rows), n, some, effect, by, json.dumps(ranges)
            found.about(first, *both[first], *about)


def _with_and_without(lists: DataFrame, metric: str, key: str, value: float, without: float) -> str:
    """Write a metric with and without a finding, and of how many lists; of few it is no number."""
    n, left = (
        lists[name].notna().sum() if name in lists else 0
        for name in (metric, f"{metric} without {key}")
    )
    form = form_of(value, without, half=(value - without) / 2)
    of_left = number(without, form) if left >= min(LEAST_LISTS, n) else "–"
    of_lists = "" if left == n else f" ({left:,} of {amount(n, 'list')})"
    return f"{metric} {number(value, form)} with, {of_left} without{of_lists}"


@takes_options()
def audit(
    true: Any,
    pred: Any,
    metrics: Metrics = ("ndcg", "recall"),
    k: int | Sequence[int] = 10,
    *,
    train: Any = None,
    log: Any = None,
    items: Any = None,
    time_col: str | None = None,
    cutoff: Any = None,
    **options: Unpack[CallArguments],
) -> Audited:
    """Find what makes an evaluation unsound: leaks between training data and truth, and models no
    better than none.

    Parameters
    ----------
    true, pred : DataFrame, mapping or Arrow stream
        As for `evaluate`.
    metrics : str, Metric, list of them, or mapping of own names to them, default ("ndcg", "recall")
        Metrics of accuracy. Each finding says what they are with and without the rows that it is
        about.
    k : int or list of int, default 10
        Cut-offs of the metrics whose string has none.
    train : DataFrame, optional
        What the model has learned from: one row per interaction, with the list key (or some of its
        columns) and item.
    log : DataFrame, optional
        All interactions, from which the first date of an item is taken. Default: those of `train`.
    items : int, DataFrame, list, Series or Index, optional
        The catalogue, or the number of its items, for the chance level. Default: the items of all
        frames.
    time_col : str, optional
        Column of times in `train` and `log`, and in `true` if it has it: datetimes or numbers.
    cutoff : time or number, optional
        The last moment of training. Rows of `train` later than it are leaks.
    {options}

    Returns
    -------
    DataFrame
        The columns of `check` and `metric`, `value`, `value_without`: the first metric with the
        rows of the finding and without them. `ranges` has both numbers of every metric as JSON. A
        finding about true and train alone stands once for all `by` values, whose numbers are in
        `effect`. The table
        has no rows if nothing was found. Its attribute `floors` is a table of each metric with its
        level of `chance`, `popularity` (the most popular items of train without its leaked rows,
        less those that the user has there) and `ceiling`, and what is `said` of the model.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError
        As for `evaluate`; also for times that cannot be compared, and a cut-off without times.

    Examples
    --------
    >>> import recdf as rd
    >>> true = {"ann": ["a", "b"], "bob": ["c"]}
    >>> pred = {"ann": ["a", "x"], "bob": ["c", "a"]}
    >>> found = rd.audit(true, pred, "recall", train={"ann": ["a", "c"], "bob": ["a", "b", "x"]})
    >>> found[["finding", "count", "value", "value_without"]].head(2)
                                            finding  count  value  value_without
    0              rows of true that stand in train      1   0.75            0.5
    1  recommended items that the user has in train      2   0.75            0.5
    """
    counted = items is None or isinstance(items, Integral)
    side = None if counted else id_frame(items, "items", [options.get("item_col", "item_id")])
    given = {**options, "items": side}
    call = call_of_levels(audit, given, metrics, k, ("by_in_true", "judged_only"))
    check_value("time_col", time_col, str | None)
    if cutoff is not None and time_col is None:
        raise OptionError(
            "⟦cutoff=⟧ needs ⟦+time_col=⟧ (the column of times in train, log or true)"
        )
    names = (*call.options.list_key, call.options.item_col)
    frames = {
        role: read_frame(one, role, call.options)
        for role, one in {"true": true, "pred": pred, "train": train, "log": log}.items()
        if one is not None or role in ("true", "pred")
    }
    if call.options.null_keys == "drop":
        frames = {
            role: one.dropna(subset=[name for name in names if name in one])
            for role, one in frames.items()
        }
    if time_col is not None and not any(
        time_col in frames.get(role, ()) for role in ("train", "log")
    ):
        raise ColumnError(
            f"neither train nor log has the column ⟦time_col={time_col!r}⟧", column=time_col
        )
    # The ids of items are of one kind, or this raises.
    encode([known_ids(one[:1], role, names[-1]) for role, one in frames.items()])
    if "log" in frames:
        frames["log"] = frames["log"].dropna(subset=names[-1:])
    found = AuditFindings()
    asked = Question(frames, call, items if counted else None, time_col, cutoff)
    lists, marks, pairs, overlap = _measured(asked)
    check_doubts(found, overlap)
    if pairs.known:
        _add_leaks(found, lists, marks, pairs, asked)
    floors = _compared(lists, asked, found)
    table = Audited(found.table())
    table.floors = floors
    return table

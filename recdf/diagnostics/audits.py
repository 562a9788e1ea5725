"""`audit`: is the evaluation itself sound? Leaks between training data and truth, and levels that
need no model.

Contract: the users are audited in parts, each with all rows of its users, by the same code for
frames and files. A part gives one row per list, with the metrics, their levels and what they are
without the rows of each finding; and counts.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
import pandas as pd

from ..errors import ColumnError, EmptyPopulationError, OptionError
from ..evaluation.summary_rows import population_within, within
from ..evaluation.value_moments import CONFIDENCE, groups_of, means
from ..inputs.codes import encode, encode_keys, first_rows, known_ids
from ..inputs.door import takes_options
from ..inputs.frames import as_frame, column, id_frame
from ..inputs.options import CallArguments, as_columns
from ..inputs.sorting import distinct
from ..inputs.true_and_pred import gains, read_relevance, relevance_source
from ..logs.times import read_times
from ..matching.lists import Matched
from ..matching.overlap import Overlap
from ..metrics.call import Call
from ..metrics.compute import mean, per_user_frame
from ..stats.numbers import Floats
from ..tables.cells import form_of, number
from ..tables.findings import Findings, Severity, ShownFindings, findings_text, row_objects
from .check_findings import check_doubts
from .levels import (
    Metrics,
    best_order,
    call_of_levels,
    chance_of,
    matched_quietly,
    true_rows,
    values_of,
    with_ranks,
)

__all__ = ["audit"]

AuditFrames = Mapping[str, pd.DataFrame]
# The frames of an audit, each by a function that reads it from the start, in batches of rows.
Readers = Mapping[str, Callable[[], Iterable[pd.DataFrame]]]

# Each finding: its severity, its name, and what it does to the metrics.
KNOWN: Mapping[str, tuple[Severity, str, str]] = {
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
LEAST_LISTS = 30  # the metric of fewer lists that are left is not shown
# Fewer hits on items that train lacks, or as many as chance may give, are no warning.
LEAST_COLD_HITS, COLD_ALPHA = 5, 0.001
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
    floors: pd.DataFrame

    def __repr__(self) -> str:
        text = findings_text(self) if self._whole() else super().__repr__()
        return (
            f"{text}\n\n{self.floors.to_string(index=False)}" if hasattr(self, "floors") else text
        )

    def _repr_html_(self) -> str | None:
        html = super()._repr_html_()
        return (
            (html or "") + pd.DataFrame(self.floors).to_html(index=False)
            if hasattr(self, "floors")
            else html
        )


class Question(NamedTuple):
    """What an audit is asked; `items` is the size of the catalogue, None for a side table or what
    is counted."""

    call: Call
    items: int | None
    time_col: str | None
    cutoff: Any

    @property
    def keys(self) -> list[str]:
        return as_columns(self.call.options.user_col)

    def rows_by(self, frame: pd.DataFrame) -> dict[str, np.ndarray]:
        """Return the rows of each `by` value, by its text: "" without `by`."""
        code, labels = groups_of(frame, as_columns(self.call.options.by))
        heads = labels.astype(object).to_numpy().tolist()
        return {" · ".join(map(str, one)): code == place for place, one in enumerate(heads)}

    def mean(self, lists: pd.DataFrame, name: str) -> float:
        """Return the mean of a column of lists, NaN where they have no such column."""
        weight = self.call.options.weight_name
        values = lists[name].to_numpy(float) if name in lists else np.zeros(0)
        return mean(
            values, None if weight is None else lists[weight].to_numpy(float)[: len(values)]
        )


def question(
    metrics: Metrics,
    k: Any,
    items: Any,
    time_col: str | None,
    cutoff: Any,
    options: Mapping[str, Any],
) -> Question:
    """Check what is asked."""
    counted = items is None or isinstance(items, Integral)
    given = {
        **options,
        "items": None
        if counted
        else id_frame(items, "items", [options.get("item_col", "item_id")]),
    }
    call = call_of_levels(audit, given, metrics, k, ("by_in_true", "judged_only"))
    if cutoff is not None and time_col is None:
        raise OptionError(
            "⟦cutoff=⟧ needs ⟦+time_col=⟧ (the column of times in train, log or true)",
            argument="cutoff",
        )
    return Question(call, items if counted else None, time_col, cutoff)


def _history(read: Readers, asked: Question) -> pd.DataFrame:
    """Return one row per item of all frames, the most popular first: `n`, and the `first` and
    `last` time if there is.

    `n` counts rows of train, which has the last times; the first times are those of `log` if that
    is given. Without train, `n` counts the rows of `log`.
    """
    item, time = asked.call.options.item_col, asked.time_col
    how, parts = {"n": "sum", "first": "min", "last": "max"}, []
    of = {
        "n": "train" if "train" in read else "log",
        "first": "log" if "log" in read else "train",
        "last": "train",
    }
    for role, batches in read.items():
        for batch in batches():
            rows = pd.DataFrame({"n": np.full(len(batch), int(of["n"] == role))})
            for name in ("first", "last"):
                if of[name] == role and time in batch:
                    rows[name] = batch[time].array
            ids = column(batch, item, role).reset_index(drop=True)
            parts.append(
                rows.groupby(ids, observed=True).agg(
                    {name: one for name, one in how.items() if name in rows}
                )
            )
    rows = pd.concat(parts)
    found = (
        rows.groupby(level=0)
        .agg({name: one for name, one in how.items() if name in rows})
        .rename_axis(item)
    )
    return found.reset_index()


def _leaked(frames: AuditFrames, history: pd.DataFrame, asked: Question) -> np.ndarray:
    """Tell which rows of train stand in true too, or are later than the cut-off."""
    two, item = {role: frames[role] for role in ("true", "train")}, asked.call.options.item_col
    names = [*([name for name in asked.keys if name in two["train"]] or asked.keys), item]
    (true, train), _ = encode_keys(
        [[known_ids(one, role, name) for name in names] for role, one in two.items()]
    )
    leaked: np.ndarray = np.isin(train.all(), true.all())
    time = {} if asked.cutoff is None else _clock({"train": two["train"]}, history, asked)
    return leaked | (time["train"] > time["cutoff"][0]) if "train" in time else leaked


def _by_popularity(
    history: pd.DataFrame, parts: Iterable[AuditFrames], asked: Question
) -> pd.DataFrame:
    """Order the items by `n_fair`, their rows of train less those that are leaks."""
    item, n_leaked = asked.call.options.item_col, np.zeros(len(history), np.int64)
    for frames in parts:
        rows = frames["train"][_leaked(frames, history, asked)]
        ids = encode([known_ids(history, "train", item), known_ids(rows, "train", item)])
        n_leaked += np.bincount(ids.codes[1], minlength=ids.n)[ids.codes[0]]
    ordered = history.assign(n_fair=history["n"] - n_leaked)
    return ordered.sort_values("n_fair", ascending=False, kind="stable")


class _Pairs:
    """Users and items of the frames of a part as codes, and each pair of `train` once, as sorted
    numbers.

    The code of an item is its place by `n_fair` of the history, so that the pairs of a user stand
    in that order. Users are those that `train` tells apart.
    """

    def __init__(self, frames: AuditFrames, history: pd.DataFrame, asked: Question) -> None:
        item, held = asked.call.options.item_col, {**frames, "items": history}
        own = [
            name for name in asked.keys if name in frames.get("train", frames["true"])
        ] or asked.keys
        del held["lists"]
        users, self.n_users = encode_keys(
            [[known_ids(one, role, key) for key in own] for role, one in frames.items()]
        )
        items = encode([known_ids(one, role, item) for role, one in held.items()])
        *codes, of_history = items.codes
        place = first_rows(of_history, items.n)
        self.n_items, self.n_popular = len(history), int((history["n_fair"] > 0).sum())
        self.users = {
            role: one.all().astype(np.int64) for role, one in zip(frames, users, strict=True)
        }
        self.items = {role: place[one] for role, one in zip(held, codes, strict=False)}
        self.train = self.fair = np.zeros(0, np.int64)
        if "train" in frames:
            pairs = self.of("train")
            self.train = distinct(pairs)
            self.fair = distinct(pairs[~_leaked(frames, history, asked)])

    def of(self, role: str) -> np.ndarray:
        """One number for the user and the item of each row."""
        pairs: np.ndarray = self.users[role] * self.n_items + self.items[role]
        return pairs

    @cached_property
    def seen(self) -> dict[str, np.ndarray]:
        """Tell which rows of true and pred are in train too."""
        pairs, train = {role: self.of(role) for role in ("true", "pred")}, np.append(self.train, -1)
        return {role: train[np.searchsorted(self.train, own)] == own for role, own in pairs.items()}

    def popular_lists(self, matched: Matched, frame_row: np.ndarray) -> Matched:
        """Return lists of the most popular items of train, less those that the user has there.

        Rows of train that are leaks count for neither. The rank of a relevant item
        is its place by popularity, less the items of the user that come before it.
        """
        lists, user = np.arange(len(matched)), self.users["lists"]
        seen = self.fair
        first, end = (np.searchsorted(seen, (user + one) * self.n_items) for one in (0, 1))
        of, row = true_rows(matched, lists, (self.items["true"] < self.n_popular)[frame_row])
        before = np.searchsorted(seen, self.of("true")[frame_row[row]]) - first[of]
        rank = self.items["true"][frame_row[row]] + 1 - before
        return with_ranks(matched, lists, self.n_popular - (end - first), of, row, rank)


def _clock(frames: AuditFrames, history: pd.DataFrame, asked: Question) -> dict[str, Floats]:
    """Return the times of each frame, the end of train and the cut-off as numbers of one clock; NaN
    for a null."""
    name, cutoff = asked.time_col, asked.cutoff
    columns = {
        role: (f"{role}[{name!r}]", one[name]) for role, one in frames.items() if name in one
    }
    if "first" in history:
        columns["items"] = "the first times of items", history["first"]
    if "last" in history:
        columns["end"] = "the last time of train", pd.Series([history["last"].max()])
    if cutoff is not None:
        plain = all(pd.api.types.is_numeric_dtype(one.dtype) for _, one in columns.values())
        try:
            columns["cutoff"] = (
                "cutoff",
                pd.Series([float(cutoff) if plain else pd.Timestamp(cutoff)]),
            )
        except (ValueError, TypeError):
            words = (
                f"⟦cutoff={cutoff!r}⟧; expected "
                f"{'a number' if plain else 'a time such as 2026-11-01'}"
            )
            raise OptionError(words, argument="cutoff", value=cutoff) from None
    read = read_times(list(columns.values()))[1]
    return {
        role: np.where(one.isna().to_numpy(bool), np.nan, own.values.astype(float))
        for (role, (_, one)), own in zip(columns.items(), read, strict=True)
    }


# The frame of a finding, its rows, and the rows that it could be about.
Mark = tuple[str, np.ndarray, np.ndarray]


def _marks(
    frames: AuditFrames, pairs: _Pairs, history: pd.DataFrame, asked: Question
) -> dict[str, Mark]:
    """Return the rows that each finding is about."""
    options, users = asked.call.options, pairs.users
    every = {role: np.ones(len(one), bool) for role, one in frames.items()}
    name = relevance_source(frames["true"], options)
    relevant = (
        every["true"]
        if name is None
        else gains(read_relevance(frames["true"], name, options), options) > 0
    )
    time = _clock(frames, history, asked)
    cutoff, found = time["cutoff"][0] if "cutoff" in time else np.inf, {}
    if "train" in frames:
        found["true_in_train"] = "true", pairs.seen["true"] & relevant, relevant
        found["pred_in_train"] = "pred", pairs.seen["pred"], every["pred"]
        known, head = np.zeros(pairs.n_users, bool), ~every["pred"]
        known[users["train"]] = True
        for mine in asked.rows_by(frames["pred"]).values():
            head[np.flatnonzero(mine)[~pd.Series(users["pred"][mine]).duplicated().to_numpy()]] = (
                True
            )
        found["pred_unknown"] = "pred", head & ~known[users["pred"]], head
    if "train" in time:
        found["train_after_cutoff"] = "train", time["train"] > cutoff, every["train"]
    if "true" in time:
        found["true_before_cutoff"] = (
            "true",
            (time["true"] < cutoff) & relevant & np.isfinite(cutoff),
            relevant,
        )
    if "train" in time and "true" in time:
        own = np.full(pairs.n_users, np.inf)
        np.fmin.at(own, users["true"][relevant], time["true"][relevant])
        found["train_after_own"] = "train", time["train"] > own[users["train"]], every["train"]
        if asked.cutoff is None:
            found["train_after_list"] = (
                "lists",
                own[users["lists"]] < time["end"][0],
                every["lists"],
            )
    cold = (history["n"] == 0).to_numpy() | (time.get("items", np.zeros(len(history))) > cutoff)
    found["true_cold"] = "true", cold[pairs.items["true"]] & relevant, relevant
    found["pred_cold"] = "pred", cold[pairs.items["pred"]], every["pred"]
    hits = np.isin(pairs.of("pred"), pairs.of("true")[relevant])
    found["hits_cold"] = "pred", found["pred_cold"][1] & hits, hits
    return found


def _cold_hits_by_chance(
    marks: Mapping[str, Mark], frames: AuditFrames, pairs: _Pairs, asked: Question
) -> dict[str, float]:
    """Return how many hits on items that train lacks a random order of the catalogue would have,
    for each `by` value."""
    wanted = np.bincount(pairs.users["true"][marks["true_cold"][1]], minlength=pairs.n_users)
    each = wanted[pairs.users["pred"]] / pairs.n_items
    return {by: float(each[own].sum()) for by, own in asked.rows_by(frames["pred"]).items()}


def _beyond_chance(count: int, chance: float) -> bool:
    """Whether chance gives so many events with p < COLD_ALPHA, by Chernoff's bound of the Poisson
    distribution."""
    if count < LEAST_COLD_HITS or count <= chance:
        return False
    log_p = -math.inf if chance == 0 else count - chance - count * math.log(count / chance)
    return log_p < math.log(COLD_ALPHA)


def _measured(
    frames: AuditFrames, history: pd.DataFrame, asked: Question
) -> tuple[pd.DataFrame, pd.DataFrame, Overlap]:
    """Audit some users, with all their rows: return one row per list, the counts of each finding,
    and what both frames share."""
    call, counts, more = asked.call, [], {}
    counted = asked.items is None and "items" not in call.given
    with matched_quietly(call, frames["true"], frames["pred"]) as matched:
        values = values_of(matched, call)
        weight = {} if matched.weight is None else {str(call.options.weight_name): matched.weight}
        lists = per_user_frame(matched, {**weight, "n_pred": matched.n_pred, **values})
        more["chance"] = chance_of(matched, call, len(history) if counted else asked.items)[0]
        more["ceiling"] = values_of(best_order(matched), call)
        if history["n"].any():
            frames = {**frames, "lists": lists}
            pairs = _Pairs(frames, history, asked)
            marks = _marks(frames, pairs, history, asked)
            by_chance = _cold_hits_by_chance(marks, frames, pairs, asked)
            frame_row = matched.true_lists.rows(np.arange(len(matched.true_lists.item)))
            if "train" in frames:
                popular = pairs.popular_lists(matched, frame_row)
                more["popularity"] = values_of(popular, call)
            for key, (role, where, of) in marks.items():
                rows = frames[role][
                    [one for one in (*asked.keys, call.options.item_col) if one in frames[role]]
                ]
                for by, own in (
                    asked.rows_by(frames[role]) if key in KNOWN_BY_MODEL else {"": True}
                ).items():
                    some = row_objects(rows.take(np.flatnonzero(where & own)[:5]))
                    n, n_of = int((where & own).sum()), int((of & own).sum())
                    chance = by_chance[by] if key == "hits_cold" else 0.0
                    counts.append((key, by, n, n_of, some, chance))
            if "train" in frames:
                counts += _shared_with_train(frames, pairs, asked)
            for key in marks.keys() - {"pred_cold"}:
                more[f"without {key}"] = _values_without(
                    key, marks, frames, pairs, matched, values, frame_row, call
                )
    levels = {
        f"{name} {what}": one for what, by_name in more.items() for name, one in by_name.items()
    }
    table = pd.DataFrame(counts, columns=["key", "by", "count", "of", "examples", "chance"])
    return lists.assign(**levels), table, matched.overlap


def _shared_with_train(
    frames: AuditFrames, pairs: _Pairs, asked: Question
) -> Iterable[tuple[str, str, int, int, list[Any], float]]:
    """Give how many rows of true and pred have a user, and an item, of train; and an id of each
    frame."""
    roles = ("true", "pred", "train")
    for what, codes, name in (
        ("user", pairs.users, asked.keys[0]),
        ("item", pairs.items, asked.call.options.item_col),
    ):
        of = np.concatenate([codes["true"], codes["pred"]])
        known = np.isin(of, codes["train"])
        some = [
            f"{role}[{name!r}] {row_objects(frames[role][[name]].head(1))[0]!r}"
            for role in roles
            if name in frames[role] and len(frames[role])
        ]
        yield f"{what} of train", "", int(known.sum()), len(known), some, 0.0


def _values_without(
    key: str,
    marks: Mapping[str, Mark],
    frames: AuditFrames,
    pairs: _Pairs,
    matched: Matched,
    values: dict[str, Floats],
    frame_row: np.ndarray,
    call: Call,
) -> dict[str, Floats]:
    """Return the metrics of each list without the rows of a finding, NaN for lists that are left
    out."""
    role, where, _ = marks[key]
    if not where.any():  # another part may have such rows
        return values
    if role == "true":
        part = within(matched, ~where[frame_row])
        stay = population_within(matched, part, call.options)
        return {name: np.where(stay, one, np.nan) for name, one in values_of(part, call).items()}
    if role == "pred" and key != "pred_unknown":
        both = ("true_in_train", key) if key == "pred_in_train" else (key,)
        out = {marks[one][0]: marks[one][1] for one in both}
        left = (
            frames[role][~out[role]] if role in out else frames[role] for role in ("true", "pred")
        )
        lists = frames["lists"][[*matched.by.columns, *matched.keys.columns]]
        try:
            with matched_quietly(call, *left) as part:
                found = lists.merge(
                    per_user_frame(part, values_of(part, call)), on=list(lists), how="left"
                )
        except EmptyPopulationError:
            found = lists.reindex(columns=list(values))
        return {name: found[name].to_numpy(float) for name in values}
    hurt = np.zeros(pairs.n_users, bool)
    hurt[pairs.users[role][where]] = True
    return {name: np.where(hurt[pairs.users["lists"]], np.nan, one) for name, one in values.items()}


def _compared(lists: pd.DataFrame, asked: Question, found: AuditFindings) -> pd.DataFrame:
    """Return the levels beside each metric, and add what is below chance, at popularity or at its
    ceiling."""
    rows, weight = [], asked.call.options.weight_name
    units = [asked.keys[0]]
    for by, mine in asked.rows_by(lists).items():
        own, weights = (
            lists[mine],
            None if weight is None else lists.loc[mine, weight].to_numpy(float),
        )
        for request, metric in zip(asked.call.requests, asked.call.columns, strict=True):
            row: dict[str, Any] = {
                "metric": metric,
                "n": len(own),
                "value": asked.mean(own, metric),
            }
            said, sign = [], -1 if request.better == "smaller" else 1
            ordered = (
                request.metric.family == "ranking" or (own["n_pred"] > (request.k or np.inf)).any()
            )
            for level in ("chance", "popularity", "ceiling"):
                row[level] = asked.mean(own, f"{metric} {level}")
                paired = own[units].assign(
                    d=sign * (own[metric] - own.get(f"{metric} {level}", np.nan))
                )
                of_d = means(paired, [], ["d"], {}, CONFIDENCE, units, weights)
                diff, low, high, n_users = (
                    of_d[["value", "ci_low", "ci_high", "n_users"]].to_numpy(float)[0].tolist()
                )
                if np.isnan(low) and n_users > 1:  # equal differences, which have no interval
                    low = high = diff
                word = f"below {level}" if high < 0 else f"at {level}" if low <= 0 else ""
                if level == "ceiling":
                    word = f"at its {level}" if high >= 0 and ordered else ""
                if word:
                    said.append(word)
                    numbers = (
                        row["value"],
                        row[level],
                        sign * diff,
                        *sorted((sign * low, sign * high)),
                    )
                    form = form_of(*numbers, half=(high - low) / 2)
                    texts = (number(x, form) for x in numbers)
                    shown = "{} against {}, difference {} (interval {} to {})".format(*texts)
                    severity = "info" if level == "ceiling" else "warning"
                    found.about(
                        metric,
                        row["value"],
                        np.nan,
                        f"{metric} is {word}",
                        severity,
                        len(own),
                        len(own),
                        "",
                        f"{LEVEL_WORDS[word]}: {shown}",
                        by,
                    )
            rows.append(
                {**({"by": by} if asked.call.options.by else {}), **row, "said": ", ".join(said)}
            )
    return pd.DataFrame(rows)


def _table(
    lists: pd.DataFrame, counts: pd.DataFrame, overlaps: Sequence[Overlap], asked: Question
) -> Audited:
    found, apart, (first, *_) = AuditFindings(), asked.rows_by(lists), asked.call.columns
    doubtful: Counter[str] = sum((Counter(one.doubtful) for one in overlaps), Counter())
    repeat = any(one.ranks_repeat for one in overlaps)
    check_doubts(found, replace(overlaps[0], doubtful=doubtful, ranks_repeat=repeat))
    shared = counts["key"].str.endswith(" of train")
    for what in ("user", "item"):
        rows = counts[counts["key"] == f"{what} of train"]
        if not len(rows):
            continue
        found.add(
            f"train has no {what} of true and pred",
            "warning",
            int(rows["of"].sum()) * (rows["count"].sum() == 0),
            rows["of"].sum(),
            ", ".join(rows["examples"].iloc[0]),
            f"are its ids those of true? Nothing about {what}s seen in train can be found",
        )
    counts = counts[~shared]
    for key, by in counts[["key", "by"]].drop_duplicates().itertuples(index=False):
        rows = counts[(counts["key"] == key) & (counts["by"] == by)]
        severity, finding, effect = KNOWN[key]
        both, words = {}, []
        for label, mine in apart.items() if by not in apart else [("", apart[by])]:
            own = lists[mine]
            both = {
                one: (asked.mean(own, one), asked.mean(own, f"{one} without {key}"))
                for one in asked.call.columns
            }
            said = (_with_and_without(own, one, key, *two) for one, two in both.items())
            words.append(f"{label}: " * bool(label) + ", ".join(said))
        if by not in apart:  # one finding for all models, whose numbers stand in its words
            both = dict.fromkeys(both, (np.nan, np.nan))
        effect = effect if key == "pred_cold" else "; ".join([effect, *words])
        ranges = json.dumps(
            {one: [None if np.isnan(x) else x for x in two] for one, two in both.items()}
        )
        count, of, some = rows["count"].sum(), rows["of"].sum(), rows["examples"].sum()[:5]
        if key == "hits_cold" and not _beyond_chance(count, chance := rows["chance"].sum()):
            severity = "info"
            few = (
                f"no more than by chance: a random order hits about {number(chance, '.3g')} of them"
            )
            effect = f"{few}; {effect.partition('; ')[2]}"
        if count:
            found.about(first, *both[first], finding, severity, count, of, some, effect, by, ranges)
    floors = _compared(lists, asked, found)
    table = Audited(found.table())
    table.floors = floors
    return table


def _with_and_without(
    lists: pd.DataFrame, metric: str, key: str, value: float, without: float
) -> str:
    """Write a metric with and without a finding, and of how many lists; of few it is no number."""
    n, left = (
        int(lists[name].notna().sum()) if name in lists else 0
        for name in (metric, f"{metric} without {key}")
    )
    form = form_of(value, without, half=(value - without) / 2)
    of_left = number(without, form) if left >= min(LEAST_LISTS, n) else "–"
    of_lists = "" if left == n else f" ({left:,} of {n:,} lists)"
    return f"{metric} {number(value, form)} with, {of_left} without{of_lists}"


def audited(
    read: Readers, n_parts: int, part_of: Callable[[pd.DataFrame], Any], asked: Question
) -> Audited:
    """Audit the users in parts one after another; `part_of` tells the part of each row of a
    frame."""

    def frames_of(part: int, *roles: str) -> AuditFrames:
        return {
            role: pd.concat(
                [one if n_parts == 1 else one[part_of(one) == part] for one in read[role]()]
            )
            for role in roles
            if role in read
        }

    item = asked.call.options.item_col
    heads = {role: next(iter(batches()))[:1] for role, batches in read.items()}
    encode([known_ids(one, role, item) for role, one in heads.items()])  # of one kind, or an error
    history, found = _history(read, asked), []
    parts = range(n_parts) if "train" in read else ()
    history = _by_popularity(history, (frames_of(i, "true", "train") for i in parts), asked)
    for part in range(n_parts):
        try:
            frames = frames_of(part, "true", "pred", "train")
            found.append(_measured(frames, history, asked))
        except EmptyPopulationError:
            if part == n_parts - 1 and not found:
                raise
    *tables, overlaps = zip(*found, strict=True)
    lists, counts = (pd.concat(some, ignore_index=True) for some in tables)
    return _table(lists, counts, overlaps, asked)


@takes_options
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
    asked = question(metrics, k, items, time_col, cutoff, options)
    user, item = asked.call.options.user_col, asked.call.options.item_col
    given = {"true": true, "pred": pred, "train": train, "log": log}
    read = {role: as_frame(one, role, user, item) for role, one in given.items() if one is not None}
    if asked.call.options.null_keys == "drop":
        names = (*asked.keys, item)
        read = {
            role: one.dropna(subset=[name for name in names if name in one])
            for role, one in read.items()
        }
    if time_col is not None and not any(
        time_col in read[role] for role in ("train", "log") if role in read
    ):
        raise ColumnError(
            f"neither train nor log has the column ⟦time_col={time_col!r}⟧", column=time_col
        )
    return audited({role: partial(list, [one]) for role, one in read.items()}, 1, len, asked)

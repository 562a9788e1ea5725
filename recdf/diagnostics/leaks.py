"""Leaks between the data that a model has learned from and the truth: what an audit asks, and the
rows that each of its findings is about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import OptionError
from ..evaluation.value_moments import groups_of
from ..inputs.codes import encode, encode_keys, first_rows, known_ids
from ..inputs.frames import column
from ..inputs.options import as_columns
from ..inputs.sorting import distinct
from ..inputs.true_and_pred import gains, read_relevance, relevance_source
from ..logs.times import read_times
from ..matching.lists import Matched
from ..metrics.call import Call
from ..metrics.compute import mean
from ..stats.numbers import Floats
from ..tables.findings import Severity
from .levels import (
    true_rows,
    with_ranks,
)

AuditFrames = Mapping[str, pd.DataFrame]


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


# Fewer hits on items that train lacks, or as many as chance may give, are no warning.
LEAST_COLD_HITS, COLD_ALPHA = 5, 0.001


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


def items_seen(frames: AuditFrames, asked: Question) -> pd.DataFrame:
    """Return one row per item of all frames, the most popular first: `n`, and the `first` and
    `last` time if there is.

    `n` counts rows of train, which has the last times; the first times are those of `log` if that
    is given. Without train, `n` counts the rows of `log`.
    """
    item, time = asked.call.options.item_col, asked.time_col
    how, parts = {"n": "sum", "first": "min", "last": "max"}, []
    of = {
        "n": "train" if "train" in frames else "log",
        "first": "log" if "log" in frames else "train",
        "last": "train",
    }
    for role, frame in frames.items():
        rows = pd.DataFrame({"n": np.full(len(frame), int(of["n"] == role))})
        for name in ("first", "last"):
            if of[name] == role and time in frame:
                rows[name] = frame[time].array
        ids = column(frame, item, role).reset_index(drop=True)
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


def by_popularity(history: pd.DataFrame, frames: AuditFrames, asked: Question) -> pd.DataFrame:
    """Order the items by `n_fair`, their rows of train less those that are leaks."""
    item, n_leaked = asked.call.options.item_col, np.zeros(len(history), np.int64)
    if "train" in frames:
        rows = frames["train"][_leaked(frames, history, asked)]
        ids = encode([known_ids(history, "train", item), known_ids(rows, "train", item)])
        n_leaked = np.bincount(ids.codes[1], minlength=ids.n)[ids.codes[0]]
    ordered = history.assign(n_fair=history["n"] - n_leaked)
    return ordered.sort_values("n_fair", ascending=False, kind="stable")


class UserItemPairs:
    """Users and items of the frames as codes, and each pair of `train` once, as sorted numbers.

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


def rows_of_findings(
    frames: AuditFrames, pairs: UserItemPairs, history: pd.DataFrame, asked: Question
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


def cold_hits_by_chance(
    marks: Mapping[str, Mark], frames: AuditFrames, pairs: UserItemPairs, asked: Question
) -> dict[str, float]:
    """Return how many hits on items that train lacks a random order of the catalogue would have,
    for each `by` value."""
    wanted = np.bincount(pairs.users["true"][marks["true_cold"][1]], minlength=pairs.n_users)
    each = wanted[pairs.users["pred"]] / pairs.n_items
    return {by: float(each[own].sum()) for by, own in asked.rows_by(frames["pred"]).items()}


def beyond_chance(count: int, chance: float) -> bool:
    """Whether chance gives so many events with p < COLD_ALPHA, by Chernoff's bound of the Poisson
    distribution."""
    if count < LEAST_COLD_HITS or count <= chance:
        return False
    log_p = -math.inf if chance == 0 else count - chance - count * math.log(count / chance)
    return log_p < math.log(COLD_ALPHA)

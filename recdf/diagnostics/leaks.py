"""Leaks between the data that a model has learned from and the truth: what an audit asks, and the
rows that each of its findings is about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..errors import OptionError
from ..evaluation.value_moments import groups_of
from ..inputs.codes import encode, encode_keys, known_ids
from ..inputs.options import as_columns
from ..inputs.sorting import distinct, flags_at, last_places
from ..inputs.true_and_pred import gains, read_relevance, relevance_source
from ..logs.times import read_times
from ..matching.lists import Matched
from ..metrics.call import Call
from ..metrics.compute import mean
from ..stats.numbers import Floats, Integers, Mask
from ..tables.findings import row_names
from .levels import true_rows, with_ranks

AuditFrames = Mapping[str, DataFrame]


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
    """What an audit is asked; `items` is the size of the catalogue, None for a side table or what
    is counted."""

    call: Call
    items: int | None
    time_col: str | None
    cutoff: Any

    @property
    def keys(self) -> list[str]:
        return self.call.options.list_key

    def rows_by(self, frame: DataFrame) -> dict[str, Mask]:
        """Return the rows of each `by` value, by its text: "" without `by`."""
        code, labels = groups_of(frame, as_columns(self.call.options.by))
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

    def __init__(self, frames: AuditFrames, lists: DataFrame, asked: Question) -> None:
        item = asked.call.options.item_col
        if "log" in frames:
            frames = {**frames, "log": frames["log"].dropna(subset=[item])}
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
        self.times = times = clock_of(frames, asked)
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


def clock_of(frames: AuditFrames, asked: Question) -> dict[str, Floats]:
    """Return the times of each frame and the cut-off, infinite without one, as numbers of one
    clock; NaN for a null."""
    name = asked.time_col
    cutoff = asked.cutoff
    columns = {
        role: (f"{role}[{name!r}]", one[name]) for role, one in frames.items() if name in one
    }
    if cutoff is not None:
        plain = all(pd.api.types.is_numeric_dtype(one.dtype) for _, one in columns.values())
        try:
            last = float(cutoff) if plain else pd.Timestamp(cutoff)
            columns["cutoff"] = "cutoff", pd.Series([last])
        except (ValueError, TypeError):
            what = "a number" if plain else "a time such as 2026-11-01"
            raise OptionError(f"⟦cutoff={cutoff!r}⟧; expected {what}", value=cutoff) from None
    read = read_times(list(columns.values()))[1]
    return {"cutoff": np.array([np.inf])} | {
        role: np.where(one.isna().to_numpy(bool), np.nan, own.values.astype(float))
        for (role, (_, one)), own in zip(columns.items(), read, strict=True)
    }


# The frame of a finding, its rows, and the rows that it could be about.
Mark = tuple[str, Mask, Mask]


def rows_of_findings(frames: AuditFrames, pairs: UserItemPairs, asked: Question) -> dict[str, Mark]:
    """Return the rows that each finding is about."""
    options = asked.call.options
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

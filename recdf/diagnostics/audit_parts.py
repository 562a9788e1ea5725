"""The parts of an audit: some users with all their rows give counts, sums of metrics and one row per list.

Contract: parts add up, so that frames and files are audited by the same code. Facts about all items come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import EmptyPopulationError, OptionError
from ..evaluation.evaluate import evaluate
from ..inputs.codes import first_rows
from ..inputs.frames import column
from ..inputs.options import Options, as_columns
from ..logs.times import read_times
from ..metrics.strings import parse
from ..stats.numbers import Floats
from ..tables.findings import row_objects
from .chance import chance_level
from .floors import Metrics, PairCodes, ceiling, is_among, list_codes, pair_codes, popular_lists, row_gains


@dataclass
class Facts:
    """What must be known of all rows before a part is audited.

    history : one row per item of train and log, the most popular first, with `n` rows of train and the `first` time ·
    end : the latest time of train · items : the catalogue, or how many items there are.
    """

    history: pd.DataFrame | None
    end: Any
    items: Any


class Question(NamedTuple):
    """What an audit is asked: `given` are the options as the caller passed them."""

    metrics: Metrics
    k: Any
    options: Options
    given: Mapping[str, Any]
    columns: list[str]
    time_col: str | None
    cutoff: Any

    @property
    def keys(self) -> list[str]:
        return as_columns(self.options.user_col)

    @property
    def by(self) -> list[str]:
        return as_columns(self.options.by)


class Mark(NamedTuple):
    """Rows of one frame that a finding is about, among those that it could be about."""

    role: str
    where: np.ndarray
    of: np.ndarray


@dataclass
class AuditPart:
    """What some users give: one row per list; `counts` by (finding, by value); `without`, sums of metrics and lists."""

    lists: pd.DataFrame
    counts: dict[tuple[str, str], tuple[int, int, list[Any]]] = field(default_factory=dict)
    without: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)

    def __add__(self, other: AuditPart) -> AuditPart:
        counts, without = dict(self.counts), dict(self.without)
        for key, (count, of, some) in other.counts.items():
            before = counts.get(key, (0, 0, []))
            counts[key] = before[0] + count, before[1] + of, [*before[2], *some][:5]
        for key, sums in other.without.items():
            without[key] = without[key] + sums if key in without else sums
        return AuditPart(pd.concat([self.lists, other.lists], ignore_index=True), counts, without)


def facts_of(frames: Mapping[str, Iterable[pd.DataFrame]], items: Any, asked: Question) -> Facts:
    """Collect the facts from the batches of each frame."""
    item, time = asked.options.item_col, asked.time_col
    known, counted, dated, ends = [], [], [], []
    for role, batches in frames.items():
        for batch in batches:
            ids = column(batch, item, role)
            known.append(ids.drop_duplicates())
            if role == "train":
                counted.append(ids.groupby(ids, observed=True).size())
            if time in batch.columns and role in ("train", "log"):
                ends += [batch[time].max()] if role == "train" else []
                if role == "log" or "log" not in frames:
                    dated.append(batch[time].groupby(ids, observed=True).min())
            elif role == "log":
                dated.append(pd.Series(index=pd.Index(known[-1]), dtype="float64"))
    n_items = items if items is not None else len(pd.concat(known).drop_duplicates())
    if not counted and not dated:
        return Facts(None, None, n_items)
    none = pd.Series(dtype="int64")
    n = pd.concat(counted).groupby(level=0).sum() if counted else none
    first = pd.concat(dated).groupby(level=0).min() if dated else none
    history = pd.DataFrame({"n": n, "first": first}).rename_axis(item).reset_index()
    history["n"] = history["n"].fillna(0).astype("int64")
    return Facts(history.sort_values("n", ascending=False, kind="stable"), pd.Series(ends, dtype=object).max(), n_items)


def _read_clock(frames: Mapping[str, pd.DataFrame], facts: Facts, asked: Question) -> dict[str, Floats]:
    """Return the times of each frame, the end of train and the cut-off as numbers of one clock; NaN for a null."""
    name = asked.time_col
    names = [role for role, one in frames.items() if name in one]
    columns = {f"{role}[{name!r}]": frames[role][name] for role in names}
    if facts.history is not None and facts.history["first"].notna().any():
        columns["the first times of items"] = facts.history["first"]
        names.append("items")
    if facts.end is not None and not pd.isna(facts.end):
        columns["the last time of train"] = pd.Series([facts.end])
        names.append("end")
    if asked.cutoff is not None:
        plain = isinstance(asked.cutoff, int | float | np.number)
        try:
            columns["cutoff"] = pd.Series([asked.cutoff if plain else pd.Timestamp(asked.cutoff)])
        except (ValueError, TypeError):
            words = f"cutoff={asked.cutoff!r}; expected a time such as '2026-11-01', or a number"
            raise OptionError(words, argument="cutoff", value=asked.cutoff) from None
        names.append("cutoff")
    read = read_times(list(columns.items()))[1]
    return {
        name: np.where(one.isna().to_numpy(bool), np.nan, own.values.astype(float))
        for name, one, own in zip(names, columns.values(), read, strict=True)
    }


def _marks(frames: Mapping[str, pd.DataFrame], codes: PairCodes, facts: Facts, asked: Question) -> dict[str, Mark]:
    """Return the rows that each finding is about."""
    assert facts.history is not None
    relevant = row_gains(frames["true"], asked.options) > 0
    every = {role: np.ones(len(one), bool) for role, one in frames.items()}
    time = _read_clock(frames, facts, asked)
    cutoff = time["cutoff"][0] if "cutoff" in time else np.inf
    found = {}
    if "train" in frames:
        found["true_in_train"] = Mark("true", codes.found("true", "train") & relevant, relevant)
        found["pred_in_train"] = Mark("pred", codes.found("pred", "train"), every["pred"])
        by = frames["pred"][asked.by].assign(**{"recdf user": codes.users["pred"]})
        head = ~by.duplicated().to_numpy()
        known = is_among(codes.users["pred"], codes.users["train"])
        found["pred_unknown"] = Mark("pred", head & ~known, head)
    if "train" in time:
        found["train_after_cutoff"] = Mark("train", time["train"] > cutoff, every["train"])
    if "true" in time:
        found["true_before_cutoff"] = Mark("true", (time["true"] < cutoff) & relevant & np.isfinite(cutoff), relevant)
    if "train" in time and "true" in time:
        own = np.full(codes.n_users, np.inf)
        np.fmin.at(own, codes.users["true"][relevant], time["true"][relevant])
        found["train_after_own"] = Mark("train", time["train"] > own[codes.users["train"]], every["train"])
        if asked.cutoff is None:
            older = own[codes.users["lists"]] < time["end"][0]
            found["train_after_list"] = Mark("lists", older, every["lists"])
    warm = np.ones(len(facts.history), bool) if "train" not in frames else facts.history["n"].to_numpy() > 0
    if "items" in time:
        warm = warm & ~(time["items"] > cutoff)
    is_warm = np.zeros(codes.n_items, bool)
    is_warm[codes.items["items"][warm]] = True
    found["true_cold"] = Mark("true", ~is_warm[codes.items["true"]] & relevant, relevant)
    found["pred_cold"] = Mark("pred", ~is_warm[codes.items["pred"]], every["pred"])
    return found


def by_texts(frame: pd.DataFrame, by: Sequence[str]) -> pd.Series:
    """Return the `by` values of each row as one text, "" without `by`."""
    found = pd.Series("", index=frame.index, dtype=object)
    for name in by:
        text = frame[name].astype(object).map(str)
        found = text if name == by[0] else found + " · " + text
    return found


def measured(frames: Mapping[str, pd.DataFrame], facts: Facts, asked: Question) -> AuditPart:
    """Audit some users, with all their rows."""
    true, pred, train = frames["true"], frames["pred"], frames.get("train")
    lists = evaluate(true, pred, asked.metrics, asked.k, **asked.given).per_user
    part = AuditPart(lists)
    items = facts.items
    levels = {"ceiling": ceiling(true, pred, asked.metrics, asked.k, **asked.given).per_user}
    alone = {name: one for name, one in asked.given.items() if name != "by"}
    levels["chance"] = chance_level(true, asked.metrics, asked.k, items=items, **alone).per_user
    if facts.history is not None:
        own = asked.keys if train is None else [name for name in asked.keys if name in train.columns] or asked.keys
        together = {**frames, "lists": lists[own], "items": facts.history[[asked.options.item_col]]}
        codes = pair_codes({role: one for role, one in together.items() if role != "log"}, own, asked.options.item_col)
        _count(part, {**frames, "lists": lists}, codes, _marks({**frames, "lists": lists}, codes, facts, asked), asked)
        if train is not None:
            levels["popularity"] = _popular_level(true, lists, codes, facts, asked)
    for level, table in levels.items():
        if level == "ceiling":  # has the same lists in the same order
            place = np.arange(len(lists))
        else:
            place = list_codes(table, {"lists": lists}, asked.options)["lists"]
        for name in asked.columns:
            part.lists[f"{name} {level}"] = np.append(table[name].to_numpy(float), np.nan)[place]
    return part


def _count(
    part: AuditPart, frames: Mapping[str, pd.DataFrame], codes: PairCodes, marks: Mapping[str, Mark], asked: Question
) -> None:
    """Count the rows of each finding, for each `by` value, and take the metrics without them."""
    true, pred = frames["true"], frames["pred"]
    values = {role: by_texts(frames[role], asked.by) for role in ("pred", "lists")}
    for name in values["lists"].unique():
        mine = {role: (one == name).to_numpy() for role, one in values.items()}
        for key, (role, where, of) in marks.items():
            inside = mine.get(role, True)
            rows = frames[role][[one for one in (*asked.keys, asked.options.item_col) if one in frames[role]]]
            some = row_objects(rows.take(np.flatnonzero(where & inside)[:5]))
            part.counts[key, name] = int((where & inside).sum()), int((of & inside).sum()), some
            if key == "pred_cold":
                continue
            if not (where & inside).any():  # another part may have such rows
                left = part.lists[mine["lists"]]
            elif role == "true":
                left = _evaluated(true[~where], pred[mine["pred"]], asked)
            elif key == "pred_in_train":
                left = _evaluated(true, pred[mine["pred"]], asked, exclude=frames["train"])
            else:
                hurt = np.zeros(codes.n_users, bool)
                hurt[codes.users[role][where & inside]] = True
                left = part.lists[mine["lists"] & ~hurt[codes.users["lists"]]]
            part.without[key, name] = metric_sums(left, asked)


def _evaluated(true: pd.DataFrame, pred: pd.DataFrame, asked: Question, **more: Any) -> pd.DataFrame | None:
    try:
        return evaluate(true, pred, asked.metrics, asked.k, **asked.given, **more).per_user
    except EmptyPopulationError:
        return None


def metric_sums(lists: pd.DataFrame | None, asked: Question) -> np.ndarray:
    """Return for each metric the sum of its values and that of the weights of its lists."""
    found = np.zeros((2, len(asked.columns)))
    if lists is not None:
        weight = weights_of_lists(lists, asked)
        for place, name in enumerate(asked.columns):
            value = lists[name].to_numpy(float)
            found[:, place] = np.nansum(weight * value), weight[~np.isnan(value)].sum()
    return found


def weights_of_lists(lists: pd.DataFrame, asked: Question) -> Floats:
    name = asked.options.weight_name
    return np.ones(len(lists)) if name is None else lists[name].to_numpy(float)


def _popular_level(
    true: pd.DataFrame, lists: pd.DataFrame, codes: PairCodes, facts: Facts, asked: Question
) -> pd.DataFrame:
    """Return the metrics of the most popular items of train, less those that the user has there."""
    assert facts.history is not None
    item, first = asked.options.item_col, ~lists.duplicated(asked.keys).to_numpy()
    heads = lists[asked.keys][first].reset_index(drop=True)
    users, of_list = np.unique(codes.users["lists"][first], return_inverse=True)
    row_of = np.full(codes.n_users, -1)
    row_of[users] = np.arange(len(users))
    seen = row_of[codes.users["train"]]
    there = facts.history["n"].to_numpy() > 0
    longest = max([one.k or 0 for one in parse(asked.metrics, asked.k, asked.options)]) or int(there.sum())
    popular = codes.items["items"][there]
    user, code = popular_lists(seen[seen >= 0], codes.items["train"][seen >= 0], len(users), popular, longest)
    rows = pd.DataFrame({"user": of_list, "list": np.arange(len(heads))})
    rows = rows.merge(pd.DataFrame({"user": user, "code": code}), on="user")
    label = first_rows(codes.items["items"], codes.n_items)[rows["code"].to_numpy()]
    pred = heads.take(rows["list"].to_numpy()).reset_index(drop=True)
    pred = pred.assign(**{item: facts.history[item].take(label).array})
    given = {name: one for name, one in asked.given.items() if name != "by"}
    return evaluate(true, pred, asked.metrics, asked.k, **{**given, "score_col": False, "rank_col": None}).per_user

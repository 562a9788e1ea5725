"""`audit`: is the evaluation itself sound? Leaks between training data and truth, and levels that need no model.

Contract: an audit is a sum over parts, each some users with all their rows. A part gives counts, sums of metrics and
one row per list; facts about all items come first. `audit_parts` therefore takes frames and files alike.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
import pandas as pd

from ..errors import ColumnError, EmptyPopulationError, OptionError, RecdfWarning
from ..evaluation.evaluate import evaluate
from ..evaluation.summary import CONFIDENCE
from ..inputs.codes import first_rows
from ..inputs.door import takes_options
from ..inputs.frames import column, id_frame
from ..inputs.options import CallArguments, Options, as_columns
from ..logs.times import read_times
from ..metrics.call import Call
from ..metrics.compute import mean
from ..metrics.strings import parse
from ..stats.numbers import Floats
from ..stats.student import interval_quantile
from ..tables.cells import number
from ..tables.findings import Findings, Severity, ShownFindings, findings_text, row_objects
from .floors import Metrics, PairCodes, ceiling, chance_level, is_among, list_codes, pair_codes, popular_lists, row_gains, with_keys

__all__ = ["audit"]

# Each finding: its name, its severity, and what it does to the metrics.
KNOWN: Mapping[str, tuple[str, Severity, str]] = {
    "true_in_train": (
        "rows of true that stand in train", "warning",
        "a model that remembers train hits them, and one that leaves out seen items cannot",
    ),
    "pred_in_train": (
        "recommended items that the user has in train", "warning",
        "they can be right only where users want again what they had; without: taken out of pred and true",
    ),
    "train_after_cutoff": (
        "rows of train after the cut-off", "warning",
        "the model has learned from the time that it is tested on; without: the lists of other users",
    ),
    "train_after_own": (
        "rows of train after the user's own row of true", "warning",
        "the model knows what the user did afterwards; without: the lists of other users",
    ),
    "train_after_list": (
        "lists whose truth is older than other users' rows of train", "info",
        "the model knows what was popular later (a split by user, not by time); without: the other lists",
    ),
    "true_before_cutoff": (
        "rows of true before the cut-off", "warning", "they belong to the training data; without: those rows left out",
    ),
    "true_cold": (
        "relevant items that were not known before", "info",
        "a model that knows items only from train cannot hit them; without: those rows left out",
    ),
    "pred_cold": ("recommended items that were not known before", "info", "the model knows items from elsewhere than train"),
    "pred_unknown": (
        "users of pred that train lacks", "info", "nothing personal can be known of them; without: their lists left out",
    ),
}  # fmt: skip
LEVELS = ("chance", "popularity", "ceiling")


class AuditFindings(Findings):
    """Findings with the metrics with and without the rows or lists that they concern."""

    columns: ClassVar[Mapping[str, str]] = {
        **Findings.columns, "by": "str", "metric": "str", "value": "float64", "value_without": "float64",
        "ranges": "str",
    }  # fmt: skip


class Audited(ShownFindings):
    """What `audit` returns: its findings, and in `floors` the levels beside each metric."""

    _metadata: ClassVar[list[str]] = ["floors"]
    floors: pd.DataFrame

    def __repr__(self) -> str:
        text = findings_text(self) if self._whole() else super().__repr__()
        return f"{text}\n\n{self.floors.to_string(index=False)}" if hasattr(self, "floors") else text

    def _repr_html_(self) -> str | None:
        html = super()._repr_html_()
        return (html or "") + pd.DataFrame(self.floors).to_html(index=False) if hasattr(self, "floors") else html


# -------------------------------------------------------------------------------------------------------------- parts


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


def _times(frames: Mapping[str, pd.DataFrame], facts: Facts, asked: Question) -> dict[str, Floats]:
    """Return the times of each frame, the end of train and the cut-off as numbers of one clock; NaN for a null."""
    columns = {f"{role}[{asked.time_col!r}]": one[asked.time_col] for role, one in frames.items() if asked.time_col in one}
    names = [role for role, one in frames.items() if asked.time_col in one]
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
    time = _times(frames, facts, asked)
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


def _by_values(frame: pd.DataFrame, by: Sequence[str]) -> pd.Series:
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
            levels["popularity"] = _popularity(true, lists, codes, facts, asked)
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
    values = {role: _by_values(frames[role], asked.by) for role in ("pred", "lists")}
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
                left = _evaluated(true[~marks["true_in_train"].where], pred[mine["pred"] & ~where], asked)
            else:
                hurt = np.zeros(codes.n_users, bool)
                hurt[codes.users[role][where & inside]] = True
                left = part.lists[mine["lists"] & ~hurt[codes.users["lists"]]]
            part.without[key, name] = _sums(left, asked)


def _evaluated(true: pd.DataFrame, pred: pd.DataFrame, asked: Question) -> pd.DataFrame | None:
    try:
        return evaluate(true, pred, asked.metrics, asked.k, **asked.given).per_user
    except EmptyPopulationError:
        return None


def _sums(lists: pd.DataFrame | None, asked: Question) -> np.ndarray:
    """Return for each metric the sum of its values and that of the weights of its lists."""
    found = np.zeros((2, len(asked.columns)))
    if lists is not None:
        weight = _weight(lists, asked)
        for place, name in enumerate(asked.columns):
            value = lists[name].to_numpy(float)
            found[:, place] = np.nansum(weight * value), weight[~np.isnan(value)].sum()
    return found


def _weight(lists: pd.DataFrame, asked: Question) -> Floats:
    name = asked.options.weight_name
    return np.ones(len(lists)) if name is None else lists[name].to_numpy(float)


def _popularity(
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
    pred = heads.take(rows["list"]).reset_index(drop=True).assign(**{item: facts.history[item].take(label).array})
    given = {name: one for name, one in asked.given.items() if name != "by"}
    return evaluate(true, pred, asked.metrics, asked.k, **{**given, "score_col": False, "rank_col": None}).per_user


# -------------------------------------------------------------------------------------------------------------- table


def _interval(d: Floats, weight: Floats, unit: np.ndarray, confidence: float) -> tuple[float, float, float]:
    """Return the weighted mean of paired differences with its interval, over independent units."""
    there = ~np.isnan(d)
    d, weight, unit = d[there], weight[there], unit[there]
    if not weight.sum():
        return np.nan, np.nan, np.nan
    middle = float((weight * d).sum() / weight.sum())
    sums = np.bincount(unit, weight * (d - middle) / weight.sum())
    n = len(np.unique(unit))
    half = interval_quantile(n - 1, confidence) * np.sqrt(n / max(n - 1, 1) * (sums**2).sum())
    return middle, middle - half, middle + half


def _floors(lists: pd.DataFrame, asked: Question, found: AuditFindings) -> pd.DataFrame:
    """Return the levels beside each metric, and add what is below chance, at popularity or at its ceiling."""
    rows, values = [], _by_values(lists, asked.by)
    unit = lists.groupby(asked.keys[0], sort=False, observed=True).ngroup().to_numpy()
    for name in values.unique():
        mine = (values == name).to_numpy()
        own, weight = lists[mine], _weight(lists, asked)[mine]
        for request, metric in zip(parse(asked.metrics, asked.k, asked.options), asked.columns, strict=True):
            value = own[metric].to_numpy(float)
            row = {**({"by": name} if asked.by else {}), "metric": metric, "n": len(own), "value": mean(value, weight)}
            said = []
            sign = -1 if request.metric.better == "smaller" else 1
            for level in LEVELS:
                other = own[f"{metric} {level}"].to_numpy(float) if f"{metric} {level}" in own else np.full(len(own), np.nan)
                row[level] = mean(other, weight)
                diff, low, high = _interval(sign * (value - other), weight, unit[mine], CONFIDENCE)
                ordered = request.metric.family == "ranking" or (own["n_pred"] > (request.k or np.inf)).any()
                if level == "ceiling":
                    word = f"at its {level}" if high >= 0 and ordered else ""
                else:
                    word = f"below {level}" if high < 0 else f"at {level}" if low <= 0 else ""
                if word:
                    said.append(word)
                    effect = EFFECTS[word] + (
                        f": {number(row['value'], '.4g')} against {number(row[level], '.4g')}, difference "
                        f"{number(sign * diff, '.3g')} ({100 * CONFIDENCE:g} % interval "
                        f"{number(min(sign * low, sign * high), '.3g')} to {number(max(sign * low, sign * high), '.3g')})"
                    )
                    found.add(f"{metric} is {word}", "info" if level == "ceiling" else "warning", len(own), len(own), "", effect, name)
                    found.rows[-1] |= {"metric": metric, "value": row["value"], "value_without": np.nan}
            rows.append({**row, "said": ", ".join(said)})
    return pd.DataFrame(rows)


EFFECTS = {
    "below chance": "a random order of the catalogue does better",
    "at chance": "no better than a random order of the catalogue is shown",
    "below popularity": "the most popular items of train, less the seen ones, do better",
    "at popularity": "no difference from the most popular items of train, less the seen ones, is shown",
    "at its ceiling": "no better order of the items in the lists is to be had; only other items can raise it",
}


def _table(part: AuditPart, asked: Question) -> Audited:
    found, values = AuditFindings(), _by_values(part.lists, asked.by)
    for (key, name), (count, of, some) in part.counts.items():
        if not count:
            continue
        finding, severity, effect = KNOWN[key]
        whole = _sums(part.lists[(values == name).to_numpy()], asked)
        sums = part.without.get((key, name))
        with np.errstate(invalid="ignore"):
            before = whole[0] / whole[1]
            after = np.full(len(asked.columns), np.nan) if sums is None else sums[0] / sums[1]
        if sums is not None:
            effect += "; " + ", ".join(
                f"{metric} {number(one, '.4g')} with, {number(two, '.4g')} without"
                for metric, one, two in zip(asked.columns, before, after, strict=True)
            )
        pairs = zip(asked.columns, before.tolist(), after.tolist(), strict=True)
        ranges = json.dumps({metric: [None if np.isnan(one) else one for one in two] for metric, *two in pairs})
        found.add(finding, severity, count, of, some, effect, name, ranges)
        found.rows[-1] |= {"metric": asked.columns[0], "value": before[0], "value_without": after[0]}
    floors = _floors(part.lists, asked, found)
    table = Audited(found.table())
    table.floors = floors
    return table


def question(metrics: Metrics, k: Any, time_col: str | None, cutoff: Any, options: Mapping[str, Any]) -> Question:
    """Check what is asked."""
    call = Call.from_arguments(audit, options, True, lambda checked: parse(metrics, k, checked))
    for request in call.requests:
        if request.metric.per == "item" or len(request.columns) > 1 or request.metric.better is None:
            raise OptionError(
                f"{request.name} has no levels to stand beside it; expected metrics of accuracy, such as 'ndcg@10'",
                argument="metrics",
            )  # fmt: skip
    if cutoff is not None and time_col is None:
        raise OptionError("⟦cutoff=⟧ needs ⟦+time_col=⟧ (the column of times in train, log or true)", argument="cutoff")
    for name in ("by_in_true", "judged_only"):
        if getattr(call.options, name):
            raise OptionError(f"an audit takes no ⟦{name}=⟧", argument=name)
    return Question(metrics, k, call.options, dict(options), call.columns, time_col, cutoff)


def audit_parts(parts: Iterable[Mapping[str, pd.DataFrame]], facts: Facts, asked: Question) -> Audited:
    """Audit parts of the users one after another."""
    total: AuditPart | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecdfWarning)
        for frames in parts:
            one = measured(frames, facts, asked)
            total = one if total is None else total + one
    assert total is not None
    return _table(total, asked)


@takes_options
def audit(
    true: Any, pred: Any, metrics: Metrics = ("ndcg", "recall"), k: int | Sequence[int] = 10, *, train: Any = None,
    log: Any = None, items: Any = None, time_col: str | None = None, cutoff: Any = None,
    **options: Unpack[CallArguments],
) -> Audited:  # fmt: skip
    """Find what makes an evaluation unsound: leaks between training data and truth, and models no better than none.

    Parameters
    ----------
    true, pred : DataFrame, mapping or Arrow stream
        As for `evaluate`.
    metrics : str, Metric, list of them, or mapping of own names to them, default ("ndcg", "recall")
        Metrics of accuracy. Each finding says what they are with and without the rows that it is about.
    k : int or list of int, default 10
        Cut-offs of the metrics whose string has none.
    train : DataFrame, optional
        What the model has learned from: one row per interaction, with the list key (or some of its columns) and item.
    log : DataFrame, optional
        All interactions, from which the first date of an item is taken. Default: those of `train`.
    items : int, DataFrame, list, Series or Index, optional
        The catalogue, or the number of its items, for the chance level. Default: the items of all frames.
    time_col : str, optional
        Column of times in `train` and `log`, and in `true` if it has it: datetimes or numbers.
    cutoff : time or number, optional
        The last moment of training. Rows of `train` later than it are leaks.
    {options}

    Returns
    -------
    DataFrame
        The columns of `check` and `metric`, `value`, `value_without`: the first metric with the rows of the finding and
        without them. `ranges` has both numbers of every metric as JSON. It has no rows if nothing was found. Its
        attribute `floors` is a table of each metric with its level of `chance`, `popularity` (the most popular items
        of train, less those that the user has there) and `ceiling`, and what is `said` of the model.

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
    >>> found[["finding", "count", "share", "value", "value_without"]].head(2)
                                              finding  count     share  value  value_without
    0                rows of true that stand in train      1  0.333333   0.75            0.5
    1  recommended items that the user has in train        2  0.500000   0.75            0.5
    """
    asked = question(metrics, k, time_col, cutoff, options)
    given = {"true": true, "pred": pred, "train": train, "log": log}
    frames = {
        role: with_keys(one, role, asked.options) for role, one in given.items() if one is not None
    }
    catalogue = items if items is None or isinstance(items, Integral) else id_frame(items, "items", [asked.options.item_col])
    if time_col is not None and not any(time_col in frames[role] for role in ("train", "log") if role in frames):
        raise ColumnError(f"neither train nor log has the column ⟦time_col={time_col!r}⟧", column=time_col)
    facts = facts_of({role: [one] for role, one in frames.items()}, catalogue, asked)
    return audit_parts([frames], facts, asked)

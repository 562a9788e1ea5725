"""`audit`: is the evaluation itself sound? Leaks between training data and truth, and levels that need no model."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar, Unpack

import numpy as np
import pandas as pd

from ..errors import ColumnError, OptionError, RecdfWarning
from ..evaluation.summary import CONFIDENCE
from ..inputs.door import takes_options
from ..inputs.frames import id_frame
from ..inputs.options import CallArguments
from ..metrics.call import Call
from ..metrics.compute import mean
from ..metrics.strings import parse
from ..stats.numbers import Floats
from ..stats.student import interval_quantile
from ..tables.cells import number
from ..tables.findings import Findings, Severity, ShownFindings, findings_text
from .audit_parts import AuditPart, Facts, Question, by_texts, facts_of, measured, metric_sums, weights_of_lists
from .floors import Metrics, with_keys

__all__ = ["audit"]

# Each finding: its name, its severity, and what it does to the metrics.
KNOWN: Mapping[str, tuple[str, Severity, str]] = {
    "true_in_train": (
        "rows of true that stand in train", "warning",
        "a model that remembers train hits them, and one that leaves out seen items cannot",
    ),
    "pred_in_train": (
        "recommended items that the user has in train", "warning",
        "they can be right only where users want again what they had; without: as with ⟦+exclude=train⟧",
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
    "pred_cold": ("recommended items that were not known before", "info", "the model knows items not only from train"),
    "pred_unknown": (
        "users of pred that train lacks", "info", "nothing personal can be known of them; without: other users' lists",
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


def _interval(d: Floats, weight: Floats, unit: np.ndarray) -> tuple[float, float, float]:
    """Return the weighted mean of paired differences with its interval, over independent units."""
    there = ~np.isnan(d)
    d, weight, unit = d[there], weight[there], unit[there]
    if not weight.sum():
        return np.nan, np.nan, np.nan
    middle = float((weight * d).sum() / weight.sum())
    sums = np.bincount(unit, weight * (d - middle) / weight.sum())
    n = len(np.unique(unit))
    half = interval_quantile(n - 1, CONFIDENCE) * np.sqrt(n / max(n - 1, 1) * (sums**2).sum())
    return middle, middle - half, middle + half


def _floors(lists: pd.DataFrame, asked: Question, found: AuditFindings) -> pd.DataFrame:
    """Return the levels beside each metric, and add what is below chance, at popularity or at its ceiling."""
    rows, values = [], by_texts(lists, asked.by)
    unit = lists.groupby(asked.keys[0], sort=False, observed=True).ngroup().to_numpy()
    for name in values.unique():
        mine = (values == name).to_numpy()
        own, weight = lists[mine], weights_of_lists(lists, asked)[mine]
        no_level = pd.Series(np.nan, index=own.index)
        for request, metric in zip(parse(asked.metrics, asked.k, asked.options), asked.columns, strict=True):
            value = own[metric].to_numpy(float)
            row = {**({"by": name} if asked.by else {}), "metric": metric, "n": len(own), "value": mean(value, weight)}
            said = []
            sign = -1 if request.metric.better == "smaller" else 1
            for level in LEVELS:
                other = own.get(f"{metric} {level}", no_level).to_numpy(float)
                row[level] = mean(other, weight)
                diff, low, high = _interval(sign * (value - other), weight, unit[mine])
                ordered = request.metric.family == "ranking" or (own["n_pred"] > (request.k or np.inf)).any()
                if level == "ceiling":
                    word = f"at its {level}" if high >= 0 and ordered else ""
                else:
                    word = f"below {level}" if high < 0 else f"at {level}" if low <= 0 else ""
                if word:
                    said.append(word)
                    ends = sorted((sign * low, sign * high))
                    shown = [number(one, ".4g") for one in (row["value"], row[level], sign * diff, *ends)]
                    effect = EFFECTS[word] + ": {} against {}, difference {} (interval {} to {})".format(*shown)
                    severity: Severity = "info" if level == "ceiling" else "warning"
                    found.add(f"{metric} is {word}", severity, len(own), len(own), "", effect, name)
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
    found, values = AuditFindings(), by_texts(part.lists, asked.by)
    for (key, name), (count, of, some) in part.counts.items():
        if not count:
            continue
        finding, severity, effect = KNOWN[key]
        whole = metric_sums(part.lists[(values == name).to_numpy()], asked)
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
    >>> found[["finding", "count", "value", "value_without"]].head(2)
                                            finding  count  value  value_without
    0              rows of true that stand in train      1   0.75            0.5
    1  recommended items that the user has in train      2   0.75            0.5
    """
    asked = question(metrics, k, time_col, cutoff, options)
    given = {"true": true, "pred": pred, "train": train, "log": log}
    frames = {role: with_keys(one, role, asked.options) for role, one in given.items() if one is not None}
    counted = items is None or isinstance(items, Integral)
    catalogue = items if counted else id_frame(items, "items", [asked.options.item_col])
    if time_col is not None and not any(time_col in frames[role] for role in ("train", "log") if role in frames):
        raise ColumnError(f"neither train nor log has the column ⟦time_col={time_col!r}⟧", column=time_col)
    facts = facts_of({role: [one] for role, one in frames.items()}, catalogue, asked)
    return audit_parts([frames], facts, asked)

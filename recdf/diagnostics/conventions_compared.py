"""`compare_conventions`: the same data by the rules of every library, and the rules that make the
difference."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError
from ..evaluation.evaluate import evaluate
from ..inputs.constraints import Features
from ..inputs.conventions import CONVENTIONS, Convention, find_convention
from ..inputs.door import takes_options
from ..inputs.options import ByName, CallArguments, Options, as_columns
from ..matching.lists import Matched
from ..matching.side_tables.sides import as_frames
from ..metrics.call import Call
from ..metrics.compute import defined_values, mean, settle_undefined
from ..metrics.metric import Metric, find
from ..metrics.strings import parse
from ..progress import Progress

# A convention, or one of its rules alone, may refuse data that others accept, such as gains above
# 1.
REFUSALS = (DataError, OptionError)
# Settings of a convention that say how frames are read, in words.
OF_FRAMES = {
    "order": "order by {}",
    "score_bits": "scores of {} bits",
    "not_judged": "relevance that is no judgement: {}",
}
# What a convention may say of lists that have no value.
SKIPPED = {
    "n_pred": "lists without recommendations skipped",
    "n_true": "lists without truth skipped",
    None: "no list skipped",
}
METRICS_IN_COMMON = ("hitrate", "precision", "recall", "mapr", "ndcg", "mrr")


@takes_options()
def compare_conventions(
    true: Any,
    pred: Any,
    metrics: str | Metric | Sequence[str | Metric] = METRICS_IN_COMMON,
    k: int = 10,
    *,
    conventions: Sequence[str | Convention] = tuple(CONVENTIONS),
    exclude: Any = None,
    items: Any = None,
    log: Any = None,
    features: Features | None = None,
    aspects: Any = None,
    base: Any = None,
    **options: Unpack[CallArguments],
) -> pd.DataFrame:
    """Compute the same metrics by the rules of every library, and name the rules that make the
    difference.

    Parameters
    ----------
    true, pred : DataFrame, mapping or Arrow stream
        As for `evaluate`, without `by`.
    metrics : str, Metric or list of them
        Names of metrics, with or without a cut-off, as in "ndcg@10". The parameters are those of
        each convention.
    k : int, default 10
        Cut-off of metrics without one.
    conventions : list of str or Convention, default all
        Conventions to compare; the others are compared with the first one.
    exclude : DataFrame, mapping or Arrow stream, optional
        Rows of (user, item) to leave out of both frames, as for `evaluate`.
    items, log, features, aspects, base : as for `evaluate`, optional
        Side tables that metrics need. A convention whose metric lacks one says so in `rule`.
    {options}

    Returns
    -------
    DataFrame
        One row per metric and convention that has it: `metric`, `k`, `convention`, `value`, `diff`
        (from the first convention that computes the metric), `n` (lists in the mean),
        `n_undefined`, `rule`: the rules that, each applied alone to the first convention, change
        the number, with the change; "" where nothing differs. A convention that refuses the data
        has a NaN, `n` 0 and the reason as `rule`.

    Raises
    ------
    OptionError
        If `by` or `like` is given, or a name is unknown.

    Examples
    --------
    >>> import recdf as rd
    >>> table = rd.diagnostics.compare_conventions({"u": ["a"]}, {"u": ["a", "x"]}, ["precision"])
    >>> table.set_index("convention").loc["rs_metrics", "rule"]
    'divisor=shown (+0.4)'
    """
    for name in ("by", "like"):
        if options.get(name) is not None:
            raise OptionError(f"compare_conventions takes no ⟦{name}=⟧")
    sides = {
        "exclude": exclude,
        "items": items,
        "log": log,
        "features": features,
        "aspects": aspects,
        "base": base,
    }
    call = Call.from_arguments(compare_conventions, {**options, **sides})  # checks names and values
    sides = as_frames(call.given, call.options)  # each convention reads them
    records = [
        record
        for like in as_columns(conventions)
        if (record := find_convention(like, "conventions")) is not None
    ]
    if not records:
        raise OptionError("conventions is empty; name at least one")
    requests = parse(metrics, k, call.options)
    named = [metrics] if isinstance(metrics, str | Metric) else metrics
    if given := [one for one in named if isinstance(one, str) and "(" in one]:
        raise OptionError(
            f"metric string {given[0]!r} has parameters, which are here those of each convention; "
            f"pass {given[0].partition('(')[0]!r}"
        )
    for record in records:  # a wrong option is no refusal of data
        Call.from_arguments(compare_conventions, {**options, "like": record})
    rows = []
    with ExitStack() as stack, Progress(len(requests), "compare_conventions") as progress:
        measure = _Measure((true, pred), options, sides, stack)
        for request in requests:
            metric = request.metric.name
            at = k if request.k is None else request.k
            base = None
            start = np.nan
            for record in records:
                if metric not in record.metrics:
                    continue
                try:
                    value, n, n_undefined = measure(metric, at, record)
                    if base is None:
                        base = record
                        start = value
                    rule = _rule(measure, metric, at, base, record, start, value)
                except REFUSALS as error:
                    value, n, n_undefined, rule = np.nan, 0, measure.n_lists(record), str(error)
                rows.append((metric, at, record.name, value, value - start, n, n_undefined, rule))
            progress.add()
    columns = ["metric", "k", "convention", "value", "diff", "n", "n_undefined", "rule"]
    return pd.DataFrame(rows, columns=columns).astype(
        {"k": "Int64", "n": "int64", "n_undefined": "int64"}
    )


@dataclass
class _Measure:
    """Measure the mean of a metric by a convention. Frames are matched once per set of options;
    `stack` closes them."""

    frames: tuple[Any, Any]
    given: ByName
    sides: ByName
    stack: ExitStack
    matched: dict[str, Matched] = field(default_factory=dict)

    def __call__(self, metric: str, k: int, record: Convention) -> tuple[float, int, int]:
        arguments = {**self.given, "like": record}
        options = Options(**arguments)
        request = find(metric).request({}, k, options)
        key = self._key(record)
        if request.per == "item":  # one number for all lists
            table = evaluate(*self.frames, metric, k, **{**self.sides, **arguments}).summary
            return table[["value", "n", "n_undefined"]].to_numpy(float)[0]
        if key not in self.matched:
            call = Call(options, given=self.sides)
            self.matched[key] = self.stack.enter_context(call.match(*self.frames))
        found = next(iter(defined_values(self.matched[key], request, options).values()))
        values = settle_undefined(found, request, options)
        n = int((~np.isnan(values)).sum())
        return mean(values, self.matched[key].weight), n, np.isnan(found).sum()

    def n_lists(self, record: Convention) -> int:
        """Return the number of lists by a convention; 0 if its options refuse the frames."""
        return len(self.matched.get(self._key(record), ()))

    def _key(self, record: Convention) -> str:
        rules = [getattr(record, name) for name in OF_FRAMES]
        return repr([*rules, sorted(record.options.items())])


def _rule(
    measure: _Measure,
    metric: str,
    k: int,
    base: Convention,
    other: Convention,
    start: float,
    value: float,
) -> str:
    """Describe the settings of `other` that, each applied alone to `base`, change the value."""
    if _same(start, value):
        return ""
    changes = _single_changes(metric, base, other)
    found = []
    for words, changed in changes:
        with suppress(*REFUSALS):  # a rule may refuse the data without the other rules
            change = measure(metric, k, changed)[0] - start
            if not _same(change, 0.0):
                found.append(f"{words} ({change:+.4g})")
    together = " and ".join(words for words, _ in changes)
    return ", ".join(found) or f"only together: {together} ({value - start:+.4g})"


def _single_changes(
    metric: str, base: Convention, other: Convention
) -> list[tuple[str, Convention]]:
    """Return copies of `base` with one setting of `other` each, and a description of the
    setting."""
    changes = []
    for name, words in OF_FRAMES.items():
        own = getattr(other, name)
        if own != getattr(base, name):
            changes.append((words.format(own), {name: own}))
    defaults = Options()
    for name in sorted({*base.options, *other.options}):
        if base.options.get(name) != other.options.get(name):
            value = other.options.get(name, getattr(defaults, name))
            changes.append((f"{name}={value}", {"options": {**base.options, name: value}}))
    usual = find(metric).defaults
    ours, theirs = ({**usual, **one.metrics[metric]} for one in (base, other))
    for name in sorted(usual):
        if ours[name] != theirs[name]:
            metrics = {**base.metrics, metric: {**base.metrics[metric], name: theirs[name]}}
            changes.append((f"{name}={theirs[name]}", {"metrics": metrics}))
    if base.undefined.get(metric) != other.undefined.get(metric):
        words = SKIPPED[other.undefined.get(metric)]
        changes.append((words, {"undefined": other.undefined}))
    name = f"{base.name}, changed"
    return [(words, replace(base, name=name, **parts)) for words, parts in changes]


def _same(one: float, two: float) -> bool:
    return bool(np.isclose(one, two, rtol=0, atol=1e-12, equal_nan=True))

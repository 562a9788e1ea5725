"""`compare_conventions`: the same data by the rules of every library, and the rules that make the
difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Unpack

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError
from ..evaluation.evaluate import evaluate
from ..inputs.accepted import Features
from ..inputs.conventions import CONVENTIONS, Convention, find_convention
from ..inputs.door import takes_options
from ..inputs.options import CallArguments, Options
from ..matching.lists import Matched
from ..matching.side_tables.records import as_frames
from ..metrics.call import Call
from ..metrics.compute import defined_values, mean, settle_undefined
from ..metrics.metric import Metric, find
from ..metrics.strings import parse
from ..progress import Progress

# A convention, or one of its rules alone, may refuse data that others accept, such as gains above
# 1.
REFUSALS = (DataError, OptionError)
METRICS_IN_COMMON = ("hitrate", "precision", "recall", "mapr", "ndcg", "mrr")


@takes_options
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
    records = [record for like in conventions if (record := find_convention(like)) is not None]
    if not records:
        raise OptionError("conventions is empty; name at least one")
    requests = parse(metrics, k, call.options)
    named = [metrics] if isinstance(metrics, str | Metric) else metrics
    if given := [one for one in named if isinstance(one, str) and "(" in one]:
        raise OptionError(
            f"metric string {given[0]!r} has parameters, which are here those of each convention; "
            f"pass {given[0].partition('(')[0]!r}"
        )
    names = [(one.metric.name, k if one.k is None else one.k) for one in requests]
    for record in records:
        Call.from_arguments(
            compare_conventions, {**options, "like": record}
        )  # a wrong option is no refusal of data
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(len(names), "compare_conventions"))
        rows = _convention_rows(
            _Measure(true, pred, k, options, sides, stack), names, records, progress
        )
    columns = ["metric", "k", "convention", "value", "diff", "n", "n_undefined", "rule"]
    return pd.DataFrame(rows, columns=columns).astype(
        {"k": "Int64", "n": "int64", "n_undefined": "int64"}
    )


def _convention_rows(
    measure: _Measure,
    metrics: list[tuple[str, int]],
    records: list[Convention],
    progress: Progress,
) -> list[tuple[Any, ...]]:
    """Make one row per metric and convention that has it."""
    rows: list[tuple[Any, ...]] = []
    for metric, k in metrics:
        measure.k = k
        having = [record for record in records if metric in record.metrics]
        base, start = None, float("nan")
        for record in having:
            try:
                value, n, n_undefined = measure(metric, record)
            except REFUSALS as error:
                rows.append(
                    (
                        metric,
                        k,
                        record.name,
                        float("nan"),
                        float("nan"),
                        0,
                        measure.n_lists(record),
                        str(error),
                    )
                )
                continue
            if base is None:
                base, start = record, value
            rule = "" if record is base else _rule(measure, metric, base, record, value)
            rows.append((metric, k, record.name, value, value - start, n, n_undefined, rule))
        progress.add()
    return rows


class _Measure:
    """Measure the mean of a metric by a convention. Frames are matched once per set of options;
    `stack` closes them."""

    def __init__(
        self,
        true: Any,
        pred: Any,
        k: int,
        given: Mapping[str, Any],
        sides: Mapping[str, Any],
        stack: ExitStack,
    ) -> None:
        self.frames, self.k, self.given, self.sides, self.stack = (
            (true, pred),
            k,
            given,
            sides,
            stack,
        )
        self.matched: dict[Any, Matched] = {}

    def __call__(self, metric: str, record: Convention) -> tuple[float, int, int]:
        options = Options(**{**self.given, "like": record})
        if find(metric).request({}, self.k, options).per == "item":  # one number for all lists
            (true, pred), arguments = self.frames, {**self.sides, **self.given, "like": record}
            rows = evaluate(true, pred, metric, self.k, **arguments).summary
            return (
                float(rows["value"].iloc[0]),
                int(rows["n"].iloc[0]),
                int(rows["n_undefined"].iloc[0]),
            )
        key = self._key(record)
        if key not in self.matched:
            self.matched[key] = self.stack.enter_context(
                Call(options, given=self.sides).match(*self.frames)
            )
        request = find(metric).request({}, self.k, options)
        found = next(iter(defined_values(self.matched[key], request, options).values()))
        values = settle_undefined(found, request, options)
        n = int(np.count_nonzero(~np.isnan(values)))
        return mean(values, self.matched[key].weight), n, int(np.isnan(found).sum())

    def n_lists(self, record: Convention) -> int:
        """Return the number of lists by a convention; 0 if its options refuse the frames."""
        return len(self.matched.get(self._key(record), ()))

    def _key(self, record: Convention) -> tuple[Any, str]:
        return record.order, repr(sorted(record.options.items()))


def _rule(measure: _Measure, metric: str, base: Convention, other: Convention, value: float) -> str:
    """Describe the settings of `other` that, each applied alone to `base`, change the value."""
    start = measure(metric, base)[0]
    if _same(start, value):
        return ""
    changes = _single_changes(metric, base, other)
    found = []
    for words, changed in changes:
        try:
            change = measure(metric, changed)[0] - start
        except REFUSALS:  # this rule refuses the data without the other rules
            continue
        if not _same(change, 0.0):
            found.append(f"{words} ({change:+.4g})")
    together = " and ".join(words for words, _ in changes)
    return ", ".join(found) or f"only together: {together} ({value - start:+.4g})"


def _single_changes(
    metric: str, base: Convention, other: Convention
) -> list[tuple[str, Convention]]:
    """Return copies of `base` with one setting of `other` each, and a description of the
    setting."""

    def changed(**parts: Any) -> Convention:
        settings = {
            "order": base.order,
            "options": base.options,
            "undefined": base.undefined,
            "metrics": base.metrics,
        }
        return Convention(f"{base.name}, changed", **{**settings, **parts})

    result = []
    if other.order != base.order:
        result.append((f"order by {other.order}", changed(order=other.order)))
    for name in sorted({*base.options, *other.options}):
        if base.options.get(name) != other.options.get(name):
            default = getattr(Options(), name)
            value = other.options.get(name, default)
            result.append((f"{name}={value}", changed(options={**base.options, name: value})))
    ours, theirs = base.metrics[metric], other.metrics[metric]
    for name in sorted({*ours, *theirs}):
        value = theirs.get(name, find(metric).defaults[name])
        if ours.get(name, find(metric).defaults[name]) != value:
            metrics: Mapping[str, Any] = {**base.metrics, metric: {**ours, name: value}}
            result.append((f"{name}={value}", changed(metrics=metrics)))
    if base.undefined.get(metric) != other.undefined.get(metric):
        words = {"n_pred": "without recommendations", "n_true": "without truth"}.get(
            other.undefined.get(metric, ""), ""
        )
        result.append(
            (
                f"lists {words} skipped" if words else "no list skipped",
                changed(undefined=other.undefined),
            )
        )
    return result


def _same(one: float, two: float) -> bool:
    return one == two or abs(one - two) <= 1e-12 or (np.isnan(one) and np.isnan(two))

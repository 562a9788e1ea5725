"""`gate`: may the candidate replace the baseline? Budgets of what may be lost, and a verdict that its data bear out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError, examples
from ..experiments.choices import Correction, check_value
from ..experiments.compare.runs import Runs, read_runs
from ..experiments.decide.verdict import FEW_LISTS, directions
from ..experiments.experiment_columns import Codes, Floats, Mask
from ..experiments.join.missing_users import zero_is_worst
from ..inputs.budgets import Budget, check_budget, read_budgets, signed
from ..inputs.constraints import SHARE, Natural, Share
from ..inputs.frames import column
from ..inputs.options import as_columns
from ..metrics.direction import direction_of
from ..stats.allowed_change import Change
from ..stats.many_tests import adjust
from .gate_result import FAIL, NOT_GATED, PASS, PASS_BUT_WORSE, UNDECIDED, Gate
from .gate_sides import Side, check_metrics, data_checks, read_side

__all__ = ["gate"]

Worst = Literal["pass", "undecided", "fail"]
Looks = Literal["once", "any"]


@dataclass(frozen=True)
class _Settings:
    """Options of a gate that every row needs."""

    alpha: float
    min_lists: int
    looks: bool
    better: Mapping[str, Any]
    values: Mapping[str, tuple[float, float] | None]


def gate(
    candidate: Any,
    baseline: Any,
    budgets: Mapping[str, str | float],
    *,
    by: str | Sequence[str] | None = None,
    alpha: Annotated[float, SHARE] = 0.05,
    correction: Correction = "holm",
    min_lists: Natural = FEW_LISTS,
    looks: Looks | None = None,
    worst: Worst = "pass",
    user_col: str | Sequence[str] | None = None,
    unit_col: str | Sequence[str] | None = None,
    weight_col: str | None = None,
    smaller_is_better: str | Sequence[str] | None = None,
    larger_is_better: str | Sequence[str] | None = None,
) -> Gate:
    """Decide whether a candidate loses no more than its budgets against a baseline on the same lists.

    With d = candidate − baseline per list and a budget of δ: pass if the lower bound of the mean of d, one-sided at
    1 − α, is above −δ; fail if the upper bound is below −δ; else undecided. A relative budget is about
    m_c − (1 − δ)·m_b. (Where smaller is better, the signs are turned.) All rows must pass, which needs no correction:
    a bad candidate passes with probability α at most. That any row fails is corrected for the number of rows.

    The bound is that of Student's t where at least 50 users differ and the skewness of the differences is at most
    .14·√n. Else it is the betting bound of Waudby-Smith and Ramdas, which holds for every number of users, for metrics
    that have bounds. For others the row is undecided, with the warning "skewed".

    Parameters
    ----------
    candidate, baseline : Evaluation, path or DataFrame
        A result of `rd.evaluate`, the folder of one, or a per-user table (one row per list). Each has one recommender.
    budgets : mapping
        Metric → change that is still allowed: "-2%" of the baseline's mean, or -0.05 in units of the metric; "+2%"
        where smaller is better. A budget of a segment is named "ndcg@10[country=DE]", or "ndcg@10[country]" for each.
    by : str or list of str, optional
        Columns of the per-user tables, such as carried ones, whose values are shown as segments. A segment is gated
        only if it has a budget of its own and `min_lists` users.
    alpha : float, default 0.05
        Largest probability that a candidate passes which has lost just more than a budget.
    correction : {"holm", "bh", "bonferroni", "none"}, default "holm"
        For the rows that fail.
    min_lists : int, default 30
        With fewer users than that a row is undecided, and a segment is not gated.
    looks : {"once", "any"}, optional
        With "any", the gate may be asked again whenever judged lists have arrived, and α holds for all looks
        together. The bound is wider, and only metrics with bounds have it.
    worst : {"pass", "undecided", "fail"}, default "pass"
        What becomes of a row that is within its budget and shown to be worse than the baseline ("pass, but worse").
    user_col : str or list of str, optional
        Key of a list. Default: that of the evaluation, or "user_id".
    unit_col : str or list of str, optional
        Columns that name who is independent of whom, such as the user of a session. Default: `user_id` if the key of a
        list has it, else its first column. All numbers of users are of these units.
    weight_col : str, optional
        Column of the weights of lists. Default: that of the evaluation.
    smaller_is_better, larger_is_better : str or list of str, optional
        Metrics whose direction recdf does not know. By default larger values of such a metric are better.

    Returns
    -------
    Gate
        `.passed`, `.verdict` ("pass", "fail", "undecided"), `.reasons`, `.table` (one row per metric and segment),
        `.checks` (what was compared of the data); it is true where it passed.
        If the truth, the options, the definitions or the side tables of the two differ, all rows are undecided.
        A list that one side lacks counts with the metric's worst value (`n_only_candidate`, `n_only_baseline`).

    Raises
    ------
    OptionError
        A budget that is not written as one, that allows what is better or all that can be lost; several recommenders
        in a table; a metric at another k.
    ColumnError
        A metric, key or segment that a side lacks.
    FileNotFoundError, DataError
        A folder that is missing or damaged.
    MissingExtraError
        If SciPy is not installed.

    References
    ----------
    Waudby-Smith and Ramdas: Estimating means of bounded random variables by betting, JRSS B 2024. Berger 1982
    (intersection-union tests). Fieller 1954.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> old, new = (rd.evaluate(shop.true, shop.pred[shop.pred["model"] == name], "ndcg@10")
    ...             for name in ("popularity", "knn"))
    >>> gate = rd.gate(new, old, {"ndcg@10": "-2%"})
    >>> gate.passed, gate.verdict
    (True, 'pass')
    >>> gate.table[["metric", "budget", "change", "change_low", "n_users", "bound", "verdict"]].round(3)
        metric budget  change  change_low  n_users bound verdict
    0  ndcg@10    −2%   0.334       0.236     1537     t    pass
    """
    for name, value, kind in (
        ("alpha", alpha, Share), ("correction", correction, Correction), ("min_lists", min_lists, Natural),
        ("looks", looks, Looks | None), ("worst", worst, Worst),
    ):  # fmt: skip
        check_value(name, value, kind)
    read = read_budgets(budgets)
    sides = read_side("candidate", candidate), read_side("baseline", baseline)
    metrics = list(dict.fromkeys(one.metric for one in read))
    check_metrics(sides, metrics)
    known = {name: _definition(sides, name) for name in metrics}
    settings = _Settings(
        alpha, min_lists, looks == "any", directions(known, smaller_is_better, larger_is_better),
        {name: _metric_bounds(definition) for name, definition in known.items()},
    )  # fmt: skip
    for one in read:
        check_budget(one, settings.better[one.metric], settings.values[one.metric])
    runs = _paired_runs(sides, user_col, unit_col, weight_col)
    checks = data_checks(*sides, runs, metrics)
    rows = [
        _gate_row(one, segment, value, mask, runs, settings)
        for segment, value, mask, own in _segments(read, sides, runs, as_columns(by))
        for one in own
    ]
    order = {name: i for i, name in enumerate(metrics)}
    rows.sort(key=lambda row: order[row["metric"]])
    differs = [f"{name} differs" for name in checks["check"][checks["found"] == "differs"]]
    judged = _judged(sides, runs, alpha)
    return Gate.of(_decided(pd.DataFrame(rows), alpha, correction, worst, differs, judged), checks, alpha, looks)


def _definition(sides: Sequence[Side], metric: str) -> str:
    """Return the definition of a column by either side; the column's own name where neither knows it."""
    found = [side.spec.get("metrics", {}).get(metric, {}).get("definition") for side in sides]
    return next(filter(None, found), metric)


def _metric_bounds(definition: str) -> tuple[float, float] | None:
    """Return the bounds of a metric, if it has both."""
    known = direction_of(definition)
    low, high = (None, None) if known is None else known.bounds
    return None if low is None or high is None else (low, high)


def _paired_runs(sides: tuple[Side, Side], user_col: Any, unit_col: Any, weight_col: str | None) -> Runs:
    """Return both tables on the same lists, the baseline first."""
    keys = as_columns(user_col)
    if not keys:
        own = [list(side.spec.get("user_col", [])) for side in sides]
        if all(own) and own[0] != own[1]:
            raise OptionError(
                f"candidate has lists of {own[0]} and baseline of {own[1]}; evaluate both with the same ⟦+user_col=⟧",
                argument="user_col", value=own[0],
            )  # fmt: skip
        keys = own[0] or own[1] or ["user_id"]
    runs = read_runs({side.role: side.per_user for side in sides[::-1]}, keys, [], "model", as_columns(unit_col))
    weight = weight_col or next(filter(None, (side.spec.get("weight") for side in sides)), None)
    return runs if weight is None else runs.weighted(weight)


def _segments(
    budgets: Sequence[Budget], sides: Sequence[Side], runs: Runs, by: Sequence[str]
) -> Iterator[tuple[str, Any, Mask | None, list[Budget]]]:
    """Yield each segment column, value and its lists, all lists first, with a budget or a place for each metric."""
    first = {one.metric: one for one in reversed(budgets)}
    of_all = {one.metric: one for one in budgets if one.segment is None}
    yield "", "", None, list(of_all.values())
    asked = [one.segment for one in budgets if one.segment is not None]
    for name in dict.fromkeys([*by, *asked]):
        of_cell, labels = _segment_of_lists(runs, name)
        texts = [str(label) for label in labels]
        for one in budgets:
            if one.segment == name and one.value is not None and one.value not in texts:
                raise OptionError(
                    f"budgets names {name}={one.value}, which no list has; {name!r} has {examples(pd.Series(texts))}",
                    argument="budgets", value=one.value,
                )  # fmt: skip
        for code, text in enumerate(texts):
            own = {one.metric: one for one in budgets if one.segment == name and one.value is None}
            own |= {one.metric: one for one in budgets if one.segment == name and one.value == text}
            shown = {metric: one._replace(allowed=math.nan) for metric, one in first.items()}
            yield name, text, of_cell == code, list((shown | own).values())


def _segment_of_lists(runs: Runs, name: str) -> tuple[Codes, Any]:
    """Return the segment of each list, −1 where neither side names one, and the labels of the segments."""
    codes, labels = pd.factorize(pd.concat([column(frame, name, role) for role, frame in runs.parts]), sort=True)
    cell, some = runs.place % runs.n_cells, codes >= 0  # a side without recommendations carries nothing
    of_cell = np.full(runs.n_cells, -1)
    of_cell[cell[some]] = codes[some]
    if (of_cell[cell[some]] != codes[some]).any():
        unlike = np.unique(cell[some][of_cell[cell[some]] != codes[some]])
        raise DataError(
            f"{name!r} differs between candidate and baseline in {len(unlike):,} lists ({runs.show(unlike)}); a list "
            "is in one segment", argument="by", value=name,
        )  # fmt: skip
    return of_cell, labels


def _gate_row(
    budget: Budget, segment: str, value: str, mask: Mask | None, runs: Runs, settings: _Settings
) -> dict[str, Any]:
    """One row of numbers; what may not be decided says why in `reason`."""
    gated, better = not math.isnan(budget.allowed), settings.better[budget.metric]
    base, own = runs.table(budget.metric)
    if mask is not None:
        base, own = np.where(mask, base, np.nan), np.where(mask, own, np.nan)
    only = np.isnan(base) & ~np.isnan(own), ~np.isnan(base) & np.isnan(own)
    values = settings.values[budget.metric]
    worst = _worst_value(budget.metric, better, values)
    base, own = np.where(only[0], worst, base), np.where(only[1], worst, own)
    if math.isnan(worst):
        base, own = np.where(only[1], np.nan, base), np.where(only[0], np.nan, own)
    n_only = [int(np.count_nonzero(one)) for one in only]
    row = {
        "metric": budget.metric, "segment": segment, "segment_value": value, "budget": budget.text if gated else "",
        "verdict": NOT_GATED, "better": better, "mean_baseline": runs.mean(base), "mean_candidate": runs.mean(own),
    }  # fmt: skip
    change = _change_of_units(base, own, budget, values, runs, settings)
    sign = -1 if change.smaller else 1
    low, high = sorted(sign * end for end in change.ends())
    positive = row["mean_baseline"] > 0
    row |= {
        "diff": row["mean_candidate"] - row["mean_baseline"],
        "rel_diff": row["mean_candidate"] / row["mean_baseline"] - 1 if positive else math.nan,
        "change": sign * change.point, "change_low": low, "change_high": high, "allowed": budget.allowed,
        "relative": budget.relative, "provable": high if change.smaller else low, "n_users": change.n,
        "n_lists": int(np.count_nonzero(~np.isnan(base))), "n_differ": change.n_differ,
        "n_only_candidate": n_only[0], "n_only_baseline": n_only[1], "p_pass": math.nan, "p_fail": math.nan,
        "n_needed": math.nan, "bound": change.bound, "warning": "" if change.bound else "skewed", "reason": "",
    }  # fmt: skip
    if change.n < settings.min_lists:
        row["reason"] = f"fewer than {settings.min_lists} users"
    elif budget.relative and not positive:
        row["reason"] = "the mean of the baseline is not above 0, so that no share of it is a budget"
    elif math.isnan(worst) and any(n_only):
        row["reason"] = f"{sum(n_only):,} lists have a value on one side only"
    elif not change.bound:
        row["reason"] = "few large differences decide, and the metric has no bounds"
    elif gated:
        row["p_pass"] = change.p_value(sign * budget.allowed, better=True)
        row["p_fail"] = change.p_value(sign * budget.allowed, better=False)
        if row["p_pass"] > settings.alpha:
            row["n_needed"] = change.needed()
    few = change.n < settings.min_lists and segment
    row["verdict"] = UNDECIDED if gated and not few else NOT_GATED
    return row


def _worst_value(metric: str, better: str, values: tuple[float, float] | None) -> float:
    """Return what a list without a value counts as; NaN if that is not known."""
    if values is not None:
        return values[0] if better == "larger" else values[1]
    return 0.0 if better == "larger" and zero_is_worst(metric) else math.nan


def _change_of_units(
    base: Floats, own: Floats, budget: Budget, values: tuple[float, float] | None, runs: Runs, settings: _Settings
) -> Change:
    """Return the units of both sides, ready to be tested."""
    sums, weight = runs.unit_sums(own - base)
    of_base, _ = runs.unit_sums(np.where(np.isnan(own), np.nan, base))
    ones = np.ones(len(sums)) if weight is None else weight
    there = ones > 0
    single = runs.weights is None and runs.unit_of_list is None
    smaller = settings.better[budget.metric] == "smaller"
    scale = of_base if budget.relative else ones
    if values is not None:  # a column of another kind may have the name of a metric
        both = np.concatenate([base, own])
        outside = (np.nanmin(both, initial=values[0]) < values[0]) | (np.nanmax(both, initial=values[1]) > values[1])
        values = None if outside else values
    allowed = 0.0 if math.isnan(budget.allowed) else budget.allowed * (-1 if smaller else 1)
    return Change(
        (-sums if smaller else sums)[there], scale[there], None if single else ones[there], values, smaller,
        budget.relative, allowed, settings.alpha, settings.looks,
    )  # fmt: skip


def _judged(sides: Sequence[Side], runs: Runs, alpha: float) -> dict[str, str]:
    """Return which verdicts the unjudged items of the two could turn, and why.

    Items that nobody judged count as not relevant: a side that shows more of them may be better than its number.
    """
    names = [name for name in sides[0].per_user.columns if str(name).startswith("judged")]
    found: dict[str, str] = {}
    for name in [one for one in names if one in sides[1].per_user.columns]:
        base, own = runs.table(name)
        sums, weight = runs.unit_sums(own - base)
        d = sums if weight is None else sums[weight > 0] / weight[weight > 0]
        change = Change(d, np.ones(len(d)), None, (0.0, 1.0), False, False, 0.0, alpha)
        for better, verdict, less in ((False, FAIL, "candidate"), (True, PASS, "baseline")):
            if change.p_value(0.0, better=better) <= alpha:
                shares = f"{np.nanmean(own):.1%} of the candidate and {np.nanmean(base):.1%} of the baseline"
                found[verdict] = f"fewer items of the {less} are judged ({name}: {shares}), so that it is underrated"
    return found


def _decided(
    table: pd.DataFrame, alpha: float, correction: Correction, worst: Worst, differs: Sequence[str],
    judged: Mapping[str, str],
) -> pd.DataFrame:  # fmt: skip
    """Return the rows with their verdicts."""
    open_rows = (table["verdict"] == UNDECIDED).to_numpy()
    p_fail = np.where(open_rows, table["p_fail"], np.nan)
    table.insert(list(table.columns).index("p_fail") + 1, "p_fail_adj", adjust(p_fail, correction))
    verdicts, reasons = [], []
    for row in table.to_dict("records"):
        verdict, reason = row["verdict"], row["reason"]
        if verdict == UNDECIDED and differs:
            reason = "; ".join(filter(None, ["the data differ", reason]))
        elif verdict == UNDECIDED and not reason:
            harm = row["change_low"] > 0 if row["better"] == "smaller" else row["change_high"] < 0
            if row["p_pass"] <= alpha:
                verdict = PASS if not harm else {"pass": PASS_BUT_WORSE, "fail": FAIL}.get(worst, UNDECIDED)
                reason = "" if not harm else "worse than the baseline, within the budget"
            elif row["p_fail_adj"] <= alpha:
                verdict = FAIL
            doubt = judged.get(PASS if verdict == PASS_BUT_WORSE else verdict, "")
            verdict, reason = (UNDECIDED, doubt) if doubt else (verdict, reason)
            if verdict == UNDECIDED and not reason:
                reason = _what_it_needs(row)
        verdicts.append(verdict)
        reasons.append(reason)
    table["verdict"], table["reason"] = pd.Series(verdicts, dtype=str), pd.Series(reasons, dtype=str)
    return table


def _what_it_needs(row: Mapping[Any, Any]) -> str:
    """Say which budget an undecided row could have passed, and about how many users its own budget needs."""
    said = f"the smallest budget that passes here is {signed(row['provable'], row['relative'])}"
    if math.isnan(row["n_needed"]):
        return said
    return f"{said}; if the change stays, this one needs about {int(row['n_needed']):,} users"

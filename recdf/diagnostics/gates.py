"""`gate`: may the candidate replace the baseline? Budgets of what may be lost, and a verdict that
its data bear out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..errors import EmptyPopulationError, OptionError
from ..experiments.compare.cheap_labels import (
    FEW_HUMAN,
    JUDGED,
    NOT_RANDOM,
    cheap_column,
    powered_pair,
    share_p_random,
)
from ..experiments.decide.adjust_pvalues import directions
from ..experiments.join.join_experiment import zero_is_worst
from ..experiments.metric_bounds import (
    MetricBounds,
    bounds_of,
    defined_bounds,
    rounding_of,
    seen_bounds,
)
from ..experiments.samples import declared_bounds
from ..inputs.constraints import Budget, Natural, Share, check_budget, read_budgets
from ..inputs.door import checks_names
from ..inputs.options import as_columns
from ..judge.cautions import FEW_LISTS
from ..judge.choices import AnyRow, Columns, Correction, Row
from ..judge.per_user_columns import (
    Floats,
    Mask,
    frame_of,
    key_codes,
    read_weight,
    require,
    unit_of,
)
from ..judge.users import ModelRows
from ..judge.verdict import add_verdicts, users_up_to
from ..stats.always_valid import Change, PoweredChange
from ..stats.many_tests import adjust
from ..stats.prediction_powered import labelled_units
from ..stats.turned import missing_by_chance
from ..tables.cells import amount, estimated
from .gate_records import (
    DOUBTFUL,
    FAIL,
    NOT_GATED,
    PASS,
    PASS_BUT_WORSE,
    UNDECIDED,
    Gate,
    Side,
    check_metrics,
    checks_table,
    data_checks,
    look_at_frames,
    places_of_budgets,
    read_side,
    rows_of_sides,
    runs_of_both_labels,
)

NO_SAMPLE = "the lists that people judged are no random sample of all"

Worst = Literal["pass", "undecided", "fail"]


@checks_names
def gate(
    candidate: Any,
    baseline: Any,
    budgets: Mapping[str, str | float],
    *,
    by: Columns | None = None,
    alpha: Share = 0.05,
    correction: Correction = "holm",
    min_lists: Natural = FEW_LISTS,
    looks: Literal["once", "any"] | None = None,
    worst: Worst = "pass",
    user_col: Columns | None = None,
    unit_col: Columns | None = None,
    weight_col: str | None = None,
    pred: Sequence[Any] | None = None,
    true: Any = None,
    log: Any = None,
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    cheap: Sequence[Any] | None = None,
    bounds: Mapping[str, MetricBounds] | None = None,
    users: DataFrame | None = None,
) -> Gate:
    """Decide whether a candidate loses no more than its budgets against a baseline on the same
    lists.

    With d = candidate − baseline per list and a budget of δ: pass if the lower bound of the mean of
    d, one-sided at 1 − α, is above −δ; fail if the upper bound is below −δ; else undecided. A
    relative budget is about m_c − (1 − δ)·m_b. (Where smaller is better, the signs are turned.) All
    rows must pass, which needs no correction: a bad candidate passes with probability α at most.
    That any row fails is corrected for the number of rows.

    The bound is that of Student's t with Johnson's correction for skewness where the values of the
    metric reach over at most half of √Σ(d − mean of d)²: then a user who loses all, and is not in
    the sample, could not change much. Users of unequal weights or numbers of lists must also be
    worth 30 equal ones, and the skewness of their differences at most .14·√n. Else it is the
    betting bound of Waudby-Smith and Ramdas, which holds for every number of users, for metrics
    that have bounds. A metric without bounds is undecided, and the row says how large the
    differences of three unseen users are that would turn what Student's t says.

    Parameters
    ----------
    candidate, baseline : Evaluation, path or DataFrame
        A result of `rd.evaluate`, the folder of one, or a per-user table (one row per list). Each
        has one recommender. Of a result of Spark or Dask the columns that the budgets name come
        into memory.
    budgets : mapping
        Metric → change that is still allowed: "-2%" of the baseline's mean, or -0.05 in units of
        the metric; "+2%" where smaller is better. A budget of a segment is named
        "ndcg@10[country=DE]", or "ndcg@10[country]" for each.
    by : str or list of str, optional
        Columns of the per-user tables, such as carried ones, whose values are shown as segments. A
        segment is gated only if it has a budget of its own and `min_lists` users.
    alpha : float, default 0.05
        Largest probability that a candidate passes which has lost just more than a budget.
    correction : {"holm", "hochberg", "sidak", "holm_sidak", "bonferroni", "bh", "by", "none"}
        For the rows that fail; default "holm".
    min_lists : int, default 30
        With fewer users than that a row is undecided, and a segment is not gated.
    looks : {"once", "any"}, optional
        With "any", the gate may be asked again whenever judged lists have arrived, and α holds for
        all looks together. The bound is wider, and only metrics with bounds have it.
    worst : {"pass", "undecided", "fail"}, default "pass"
        What becomes of a row that is within its budget and shown to be worse than the baseline
        ("pass, but worse").
    user_col : str or list of str, optional
        Key of a list. Default: that of the evaluation, or "user_id".
    unit_col : str or list of str, optional
        Columns that name who is independent of whom, such as the user of a session. Default:
        `user_id` if the key of a list has it, else its first column. All numbers of users are of
        these units.
    weight_col : str, optional
        Column of the weights of lists. Default: that of the evaluation.
    pred, true, log : pair of frames, frame, frame, optional
        The recommendations of candidate and baseline, the truth they were evaluated on, and past
        interactions. With them the gate looks at what no metric tells: if `rd.check` finds sampled
        candidates, or items that are in the log already make up shares that differ by more than 5
        %, all rows are undecided; and items that stand nowhere in `true` count as unjudged. `pred`
        needs `true`, and `true` and `log` are read with `pred` only.
    smaller_is_better, larger_is_better : str or list of str, optional
        Metrics whose direction recdf does not know. By default larger values of such a metric are
        better.
    cheap : pair of Evaluation, path or DataFrame, optional
        Candidate and baseline on more lists under cheap labels (of a language model, of clicks),
        while `candidate` and `baseline` have the lists that people judged, a random sample of them.
        The change is then that of `rd.experiments.prediction_powered`, tested by t with n − 2
        degrees of freedom. Where the weight of the cheap labels is 0, and where one large loss more
        among the lists of people could decide, which cheap labels may not see, the labels of people
        count alone.
    bounds : mapping, optional
        Metric → (smallest, largest value), for metrics that recdf does not know, such as
        `{"latency": (0, 30)}`.
    users : DataFrame, optional
        The population: one row per list, with the columns that name a unit, with `weight_col` if
        the lists have weights, and with the columns of segments that have a budget. Where users
        have unequal weights or numbers of lists, those heavier than any that was seen could turn a
        verdict. With this frame their share of all weight Q is known, and a mean whose distance to
        the budget is s stands only if (1 − Q)·s is at least Q times the worst distance. Without it
        the row says up to what weight it holds.

    Returns
    -------
    Gate
        `.passed`, `.verdict` ("pass", "fail", "undecided"), `.reasons`, `.table` (one row per
        metric and segment), `.checks` (what was compared of the data); it is true where it passed.
        If the truth, the options, the definitions or the side tables of the two differ, all rows
        are undecided. A list that one side lacks counts with the metric's worst value
        (`n_only_candidate`, `n_only_baseline`). With `unit_col=` the table names the units in
        `unit`, and `n_users` counts them. With `cheap=` all counts are of what people judged,
        and the table also has `labels` ("both", or "people" where these count alone), `n_cheap`
        (lists with cheap labels alone), `bias` (of the difference under cheap labels, with
        `bias_low` and `bias_high`), `weight` and `p_random`, as in
        `rd.experiments.prediction_powered`. Below 30 users that people judged, and where their
        lists are no random sample, a row is undecided.

    Raises
    ------
    OptionError
        A budget that is not written as one, that allows what is better or all that can be lost;
        several recommenders in a table; a metric at another k; `cheap=` with `looks="any"`;
        `bounds` that are no pairs of numbers.
    ColumnError
        A metric, key or segment that a side lacks.
    FileNotFoundError, DataError
        A folder that is missing or damaged; a value outside of `bounds`.
    MissingExtraError
        If SciPy is not installed.

    References
    ----------
    Waudby-Smith and Ramdas: Estimating means of bounded random variables by betting, JRSS B 2024.
    Berger 1982 (intersection-union tests). Fieller 1954.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> old, new = (
    ...     rd.evaluate(shop.true, shop.pred[shop.pred["model"] == name], "ndcg@10")
    ...     for name in ("popularity", "knn")
    ... )
    >>> gate = rd.gate(new, old, {"ndcg@10": "-2%"})
    >>> gate.passed, gate.verdict
    (True, 'pass')
    >>> gate.table[
    ...     ["metric", "budget", "change", "change_low", "n_users", "bound", "verdict"]
    ... ].round(3)
        metric budget  change  change_low  n_users bound verdict
    0  ndcg@10    −2%   0.334       0.236     1537     t    pass
    """
    read = read_budgets(budgets)
    used = {*(one.metric for one in read), *(one.segment for one in read if one.segment)}
    used |= {*as_columns(by), *as_columns(user_col), *as_columns(unit_col), *as_columns(weight_col)}
    sides = read_side("candidate", candidate, used), read_side("baseline", baseline, used)
    metrics = list(dict.fromkeys(one.metric for one in read))
    check_metrics(sides, metrics)
    known = {
        name: next(filter(None, (side.recorded(name, "definition") for side in sides)), name)
        for name in metrics
    }
    better = directions(known, smaller_is_better, larger_is_better)
    declared = declared_bounds(bounds, metrics)
    for one in read:
        check_budget(
            one, better[one.metric], declared.get(one.metric) or defined_bounds(known[one.metric])
        )
    keys = _keys_of_lists(sides, user_col)
    looked: list[tuple[str, ...]] = []
    if pred is None and (true is not None or log is not None):
        raise OptionError(
            "⟦true=⟧ and ⟦log=⟧ are what ⟦+pred=⟧ is looked at with; pass it too, or none of them"
        )
    if pred is not None:
        k = next((int(end) for name in metrics if (end := name.rpartition("@")[2]).isdigit()), 10)
        sides, looked = look_at_frames(sides, pred, true, log, k, keys)
    weight = weight_col or sides[0].spec.get("weight") or sides[1].spec.get("weight")
    runs = rows_of_sides(sides, keys, as_columns(unit_col), weight)
    _refuse_other_lists(sides, runs, metrics, keys)
    checks = checks_table(data_checks(sides, runs, metrics), looked)
    units = as_columns(unit_col) or unit_of(keys)
    if users is not None:
        users = frame_of("users", users)
        require(users, "users", [*units, *as_columns(weight)])
    if cheap is not None:
        if looks == "any":
            raise OptionError(
                '⟦cheap=⟧ and ⟦looks="any"⟧ exclude each other: both labels are tested once, by t'
            )
        min_lists = max(min_lists, FEW_HUMAN)
        runs, of_cheap = runs_of_both_labels(
            cheap, sides, metrics, keys, as_columns(unit_col), weight
        )
        checks = pd.concat([checks, of_cheap], ignore_index=True)
    rows_of = _Rows(
        runs,
        alpha,
        min_lists,
        looks == "any",
        better,
        known,
        declared,
        users,
        units,
        weight,
        weight is not None or units != keys,
    )
    rows = [rows_of.row(*place) for place in places_of_budgets(read, runs, as_columns(by))]
    rows.sort(key=lambda row: metrics.index(row["metric"]))
    table = DataFrame(rows)
    if "p_random" in table:
        share_p_random(table, [f"{row['segment']}={row['segment_value']}" for row in rows])
        doubted = (table["p_random"] < NOT_RANDOM) & (table["reason"] == "")
        table.loc[doubted, ["p_pass", "p_fail", "n_needed"]] = math.nan
        table.loc[doubted, "reason"] = NO_SAMPLE
    differs = bool(checks["found"].isin(DOUBTFUL).any())
    p_fail = table["p_fail"].where(table["effect"] == UNDECIDED).to_numpy()
    table["p_fail_adj"] = adjust(p_fail, correction)
    judged = rows_of.underrated()
    decided = [_decide(row, worst, differs, judged) for row in table.to_dict("records")]
    effects, reasons = zip(*decided, strict=True)
    table["reason"] = pd.Series(reasons, dtype=str)
    add_verdicts(table, "gate", effects)
    if unit_col is not None:
        table["unit"] = " and ".join(units)
    return Gate(table, checks)


def _refuse_other_lists(
    sides: Sequence[Side], runs: ModelRows, metrics: Sequence[str], keys: Sequence[str]
) -> None:
    """Raise where a side has no list, or no list with a value of the other one."""
    for side in sides:
        if side.per_user.empty:
            raise EmptyPopulationError(f"{side.role} has no rows; expected one row per list")
    known = [~np.isnan(runs.table(name)) for name in metrics]
    if all(of.any(axis=1).all() and not of.all(axis=0).any() for of in known):
        raise EmptyPopulationError(
            "candidate and baseline share no list with a value of a metric; compare their columns "
            f"{list(keys)}"
        )


class _Rows(NamedTuple):
    """Rows of numbers from the lists of both sides, with what every row needs: options, and of each
    metric its direction, definition and declared bounds.

    `uneven` says that users may have several lists, or weights.
    """

    runs: ModelRows
    alpha: float
    min_lists: int
    looks: bool
    better: Mapping[str, Any]
    definitions: Mapping[str, str]
    declared: Mapping[str, MetricBounds]
    users: DataFrame | None
    units: list[str]
    weight: str | None
    uneven: bool

    def row(self, budget: Budget, segment: str, value: str, lists: Mask | bool) -> Row:
        """Return one row; what may not be decided says why in `reason`."""
        metric = budget.metric
        better = self.better[metric]
        smaller = better == "smaller"
        sign = -1 if smaller else 1
        gated = not math.isnan(budget.allowed)
        table = self.runs.table(metric)
        values = bounds_of(metric, self.declared, table, definition=self.definitions[metric])
        zero = 0.0 if better == "larger" and zero_is_worst(metric) else math.nan
        worst = values[smaller] if values else zero  # what a list without a value counts as
        both, lacks = _both_sides(table, lists, worst)
        n_only_baseline, n_only_candidate = lacks.sum(axis=1)
        mean_candidate, mean_baseline = map(self.runs.mean, both)
        change = self.change(both, values, budget, smaller)
        labelled = {}
        most = change.weight.max(initial=0.0)
        if all(cheap_column(metric) in frame for _, frame in self.runs.parts):
            of_cheap, _ = _both_sides(self.runs.table(cheap_column(metric)), lists, worst)
            ends = values or seen_bounds(both, of_cheap)
            given = np.array([both[::-1], of_cheap[::-1]]), self.runs
            means, _, found = powered_pair(*given, 1 - self.alpha, ends)
            shown = ("n_cheap", "bias", "bias_low", "bias_high", "weight", "p_random")
            labelled = {name: found[name] for name in shown} | {"labels": "people"}
            most = found["judged_up_to"]
            if change.bound == "t" and found["weight"] > 0:
                more = self.powered(change, both, of_cheap)
                if more.bound:
                    change, (mean_baseline, mean_candidate) = more, means
                    labelled["labels"] = "both"
        low, high = sorted(sign * end for end in change.ends())
        row = {
            "metric": metric,
            "segment": segment,
            "segment_value": value,
            "budget": budget.text if gated else "",
            "effect": UNDECIDED if gated else NOT_GATED,
            "better": better,
            "mean_baseline": mean_baseline,
            "mean_candidate": mean_candidate,
            "diff": mean_candidate - mean_baseline,
            "rel_diff": mean_candidate / mean_baseline - 1 if mean_baseline > 0 else math.nan,
            "change": sign * change.point,
            "change_low": low,
            "change_high": high,
            "allowed": budget.allowed,
            "relative": budget.relative,
            "provable": high if smaller else low,
            "n_users": change.n,
            "n_lists": np.count_nonzero(~np.isnan(both[0])),
            "n_differ": np.count_nonzero(np.abs(change.gain) > rounding_of(both) * change.weight),
            "n_only_candidate": n_only_candidate,
            "n_only_baseline": n_only_baseline,
            **dict.fromkeys(("p_pass", "p_fail", "p_fail_adj", "n_needed"), math.nan),
            "alpha": self.alpha,
            "bound": change.bound,
            "turning_value": sign * change.turning() if values is None else math.nan,
            "unseen_weight": math.nan,
            "holds_for": "",
            "remarks": "" if change.bound else "skewed",
            "reason": "",
            **labelled,
        }
        if self.uneven and change.n:
            unseen = row["unseen_weight"] = self.unseen_weight(segment, value, most)
            if math.isnan(unseen):
                row["holds_for"] = users_up_to(most, "a weight" * bool(self.weight))
        few = change.n < self.min_lists
        if few and segment:
            row["effect"] = NOT_GATED
        reasons = {
            f"fewer than {amount(self.min_lists, 'user')}": few,
            "the mean of the baseline is not above 0, so that no share of it is a budget": (
                budget.relative and not mean_baseline > 0
            ),
            f"a value on one side only in {amount(lacks.sum(), 'list')}": math.isnan(worst)
            and lacks.any(),
            NO_SAMPLE: labelled.get("p_random", 1.0) < NOT_RANDOM,
            "one large loss more could decide, and no bounds of the metric are known: all turns if "
            f"{_turned(row)}": not change.bound,
        }
        row["reason"] = next((text for text, holds in reasons.items() if holds), "")
        if gated and not row["reason"]:
            row |= {
                f"p_{name}": change.p_value(change.allowed, better=name == PASS)
                for name in (PASS, FAIL)
            }
            if values and row["p_pass"] > self.alpha:
                row["n_needed"] = change.needed()
            unseen = row["unseen_weight"]
            if (
                values
                and unseen > 0
                and any(
                    row[f"p_{name}"] <= self.alpha
                    and not change.outweighs(unseen, better=name == PASS)
                    for name in (PASS, FAIL)
                )
            ):
                row["reason"] = (
                    f"{unseen:.1%} of the weight is of users heavier than any here, who could turn "
                    "it"
                )
        return row

    def unseen_weight(self, segment: str, value: str, most: float) -> float:
        """Return the share of the population's weight in units heavier than `most`; NaN if no frame
        of users tells."""
        users = self.users
        if users is None or (segment and segment not in users):
            return math.nan
        own = users[users[segment].astype(str) == value] if segment else users
        (unit,), _ = key_codes([("users", own)], self.units)
        weight = None if self.weight is None else read_weight(own, "users", self.weight)
        total = np.bincount(unit, weight)
        return total[total > most * (1 + 1e-12)].sum() / max(total.sum(), 1e-300)

    def change(
        self, both: Floats, values: MetricBounds | None, budget: Budget, smaller: bool = False
    ) -> Change:
        """Return the units of both sides, ready to be tested."""
        (gain, weight), (of_base, _) = map(self.runs.unit_sums, (both[0] - both[1], both[1]))
        weight = np.ones(len(gain)) if weight is None else weight
        there = weight > 0
        low, high = values or seen_bounds(both)
        sign = -1 if smaller else 1
        return Change(
            sign * gain[there],
            (of_base if budget.relative else weight)[there],
            weight[there],
            high - low,
            values,
            smaller,
            budget.relative,
            0.0 if math.isnan(budget.allowed) else sign * budget.allowed,
            self.alpha,
            self.looks,
        )

    def powered(self, change: Change, both: Floats, cheap: Floats) -> PoweredChange:
        """Return the change from both labels beside that of people alone."""
        sign = -1 if change.smaller else 1
        y, f = (sign * (one[0] - one[1]) for one in (both, cheap))
        of_base = (both[1], cheap[1]) if change.relative else (0 * y + 1, 0 * f + 1)
        judged = np.any(self.runs.table(JUDGED) > 0, axis=0)
        gains, scales = (
            labelled_units(*pair, judged, self.runs.weights, self.runs.unit_of_list)
            for pair in ((y, f), of_base)
        )
        own = {one.name: getattr(change, one.name) for one in fields(Change)}
        return PoweredChange(**own, gains=gains, scales=scales)

    def underrated(self) -> dict[str, str]:
        """Return which verdicts the unjudged items of the two could turn, and why.

        Items that nobody judged count as not relevant: a side that shows more of them may be better
        than its number.
        """
        (_, own_frame), (_, base_frame) = self.runs.parts
        found = {}
        names = own_frame.columns.intersection(base_frame.columns, sort=False)
        for name in [one for one in names if str(one).startswith("judged")]:
            both = self.runs.table(name)
            budget = Budget(name, None, None, 0.0, False)
            change = self._replace(looks=False).change(both, (0.0, 1.0), budget)
            for better, verdict, less in ((False, FAIL, "candidate"), (True, PASS, "baseline")):
                if change.p_value(0.0, better=better) <= self.alpha:
                    own, base = np.nanmean(both, axis=1)
                    found[verdict] = (
                        f"fewer items of the {less} are judged ({name}: {own:.1%} of the candidate "
                        f"and {base:.1%} of the baseline), so that it is underrated"
                    )
        return found


def _turned(row: AnyRow) -> str:
    """Say how many users with what difference would turn what is said of a row."""
    unseen = missing_by_chance(row["alpha"])
    by = estimated(row["turning_value"], sign="+")
    of_all = amount(row["n_users"], "user")
    return f"{estimated(unseen, significant=1)} in {of_all} differ by {by} or more"


def _both_sides(table: Floats, lists: Mask | bool, worst: float) -> tuple[Floats, Mask]:
    """Return the values of some lists, the worst one where a side lacks a list, and where it
    does."""
    both = np.where(lists, table, np.nan)
    lacks = np.isnan(both) & ~np.isnan(both[::-1])
    both[lacks[::-1] if math.isnan(worst) else lacks] = worst
    return both, lacks


def _decide(row: AnyRow, worst: Worst, differs: bool, judged: Mapping[str, str]) -> tuple[str, str]:
    """Return the effect of a row with its reason."""
    effect = row["effect"]
    reason = row["reason"]
    if effect == UNDECIDED and differs:
        return effect, "; ".join(filter(None, ["the data differ", reason]))
    if effect != UNDECIDED or reason:
        return effect, reason
    if row["p_pass"] <= row["alpha"]:
        effect = PASS
        if row["change_low"] > 0 if row["better"] == "smaller" else row["change_high"] < 0:
            effect = {"pass": PASS_BUT_WORSE, "fail": FAIL}.get(worst, UNDECIDED)
            reason = "worse than the baseline, within the budget"
    elif row["p_fail_adj"] <= row["alpha"]:
        effect = FAIL
    word = PASS if effect == PASS_BUT_WORSE else effect
    unbounded = not math.isnan(row["turning_value"])
    if word in judged:
        return UNDECIDED, judged[word]
    if word != UNDECIDED and unbounded:
        said = f"{word}, unless {_turned(row)}; bounds= declares them"
        return UNDECIDED, f"no bounds of the metric are known: {said}"
    if word != UNDECIDED and row["holds_for"]:
        said = f"holds for {row['holds_for']}, the most that was seen"
        reason = "; ".join(filter(None, [reason, said]))
    if word == UNDECIDED and not reason:
        by = "no bounds of the metric are known, and by Student's t " if unbounded else ""
        least = estimated(row["provable"], sign="+%" if row["relative"] else "+")
        reason = f"{by}the smallest budget that passes here is {least}"
        if not math.isnan(row["n_needed"]):
            needed = amount(row["n_needed"], "user")
            reason += f"; if the change stays, this one needs about {needed}"
    return effect, reason


def _keys_of_lists(sides: Sequence[Side], user_col: Any) -> list[str]:
    """Return the columns that name a list in both tables."""
    own = [side.spec.get("user_col", []) for side in sides]
    if not user_col and all(own) and own[0] != own[1]:
        raise OptionError(
            f"candidate has lists of {own[0]} and baseline of {own[1]}; evaluate both with the "
            "same ⟦+user_col=⟧",
            argument="user_col",
            value=own[0],
        )
    return as_columns(user_col) or own[0] or own[1] or ["user_id"]

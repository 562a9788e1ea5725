"""Which of two recommenders do the users of interleaved lists prefer?"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import pandas as pd

from ...errors import DataError, NoOverlapWarning, examples, warn_user
from ...inputs.door import takes_columns
from ...inputs.options import Options, as_columns
from ...judge.cautions import HEALTH_ALPHA, TINY
from ...judge.choices import Alternative
from ...judge.comparisons import Comparison, default_columns
from ...judge.per_user_columns import (
    Codes,
    Floats,
    frame_of,
    key_codes,
    metric_values,
    require,
)
from ...judge.users import only_rows
from ...judge.verdict import VERDICT_COLUMNS, add_verdicts, remark
from ...stats.arms import arm
from ...stats.effect_sizes import one_sample
from ...stats.moments import HUGE
from ...stats.scipy_extra import scipy_module
from ...stats.shares import wilson
from ...stats.student import least_paired_effect, paired_units_needed
from .compare_models import compare_models
from .two_sample import POWER


@takes_columns("item_col")
def compare_interleaved(
    log: pd.DataFrame,
    clicks: pd.DataFrame,
    *,
    unit_col: str | Sequence[str] = "user_id",
    credit: str = "clicks",
    user_col: str | Sequence[str] | None = None,
    item_col: str = "item_id",
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    options: Options | None = None,
    details: bool = False,
) -> pd.DataFrame:
    """Compare the two recommenders of interleaved lists by the clicks that their items got.

    For every unit, d is the credit of b minus that of a, 0 for a unit without clicks. The test is
    Student's t of d over all units, as in `compare_models`. Beside it stands the sign test of the
    units that prefer b (d > 0) against those that prefer a: p = P(at most min(wins, losses) or at
    least max(wins, losses) heads of wins + losses fair coins).

    Parameters
    ----------
    log : DataFrame
        What `interleave` returned for the lists that were shown: a row per item with `team`, and
        `credit` if the lists were optimized. Lists without clicks belong to it.
    clicks : DataFrame
        One row per click (or purchase), with the key of the list and the item.
    unit_col : str or list of str, default "user_id"
        Columns of `log` that name who is independent of whom: the user, not the list.
    credit : str, default "clicks"
        What a click counts: "clicks", 1; "binary", every unit counts 1 for the recommender with
        more credit; or a column of `clicks`, such as revenue. Of optimized lists each click counts
        times the `credit` of its item.
    user_col : str or list of str, optional
        Key of a list in both frames, such as ["user_id", "session_id"]. Default: `unit_col`.
    item_col : str, default "item_id"
        Column of the item in both frames.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        "greater": b is preferred. Of the t test and its interval.
    confidence : float, default 0.95
        Of the intervals.
    options : Options, optional
        `item_col` of a project, where it is not given here.
    details : bool, default False
        Return all columns, not only those that a decision needs.

    Returns
    -------
    DataFrame
        One row with the columns of `compare_models` but for the means, `rel_diff` and `se`
        (`baseline` is "a", `model` is "b", the metric is the credit per unit; `wins` are units that
        prefer b), and before `effect`: `preference` (share of b among the units that prefer one),
        `preference_low`, `preference_high` (Wilson's interval) and `p_sign`. With `details` also
        all columns of `compare_models`, `mde` (smallest true difference found with power 0.8),
        `n_needed` (units that would show a true difference of the size of `diff` with power 0.8;
        for the next experiment, since after this one it only restates p), `n_shown_a`, `n_shown_b`
        (items by team), `p_balance`, `n_clicks`, `n_clicks_no_team` (on items of no team),
        `n_clicks_elsewhere` (on items that are not in `log`; neither kind counts). `p_balance`
        tests that teams were drawn by fair coins: by Student's t that the mean credit of the items
        shown, and that of the first item with a team, is 0 (the smaller p, times 2; null below 20
        units). Below 0.001 the remark is "unbalanced_teams" and the verdict "invalid: teams out of
        balance", as for lists of the balanced method where it is biased, or where rows of the log
        are lost. Other remarks and verdicts are those of `compare_models`: "better" says that b is
        preferred to a.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError
        A column is missing; ids are null, or of kinds that can never match.
    DuplicateError
        `log` has an item twice in a list, as when a user has several lists and `user_col` does not
        tell them apart.
    DataError
        A team other than "a", "b" and ""; a credit that is null, negative or not numeric.
    MissingExtraError
        If SciPy is not installed.

    References
    ----------
    Radlinski, Kurup, Joachims, CIKM 2008; Chapelle, Joachims, Radlinski, Yue: Large-scale
    validation and analysis of interleaved search evaluation, TOIS 2012.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> a, b = ({user: items for user in range(60)} for items in (["tea", "jam"], ["ham", "rye"]))
    >>> log = rd.experiments.interleave(a, b, k=2)
    >>> clicks = log[(log["team"] == "b") & (log["user_id"] % 3 > 0)]
    >>> table = rd.experiments.compare_interleaved(log, clicks)
    >>> table[
    ...     ["n_users", "diff", "ci_low", "ci_high", "wins", "losses", "preference", "effect"]
    ... ].round(3)
       n_users   diff  ci_low  ci_high  wins  losses  preference  effect
    0       60  0.667   0.544    0.789    40       0         1.0  better
    """
    frame_of("log", log)
    frame_of("clicks", clicks)
    units = as_columns(unit_col)
    keys = as_columns(user_col) or units
    require(log, "log", [*units, *keys, item_col, "team"])
    require(clicks, "clicks", [*keys, item_col])
    weight = (
        np.ones(len(clicks))
        if credit in ("clicks", "binary")
        else metric_values(clicks, "clicks", credit)
    )
    wrong = ~(weight >= 0)
    if wrong.any():
        raise DataError(
            f"clicks[{credit!r}] is null or negative in {int(wrong.sum()):,} of {len(clicks):,} "
            "rows"
        )
    own = _credit_of_items(log)
    place = _places_in_log(log, clicks, keys, item_col)
    known = place >= 0
    if len(clicks) and not known.any():
        warn_user(
            f"none of the {len(clicks):,} clicks is on an item of log; compare the columns "
            f"{[*keys, item_col]}",
            NoOverlapWarning,
            argument="clicks",
        )
    earned = own * np.bincount(place[known], weights=weight[known], minlength=len(log))
    (unit,), n_units = key_codes([("log", log)], units)
    sides = [_summed(np.maximum(sign * earned, 0), unit, n_units) for sign in (-1, 1)]
    if credit == "binary":
        sides = [(one > other).astype(np.float64) for one, other in (sides, sides[::-1])]
    metric = "credit" if credit in ("clicks", "binary") else credit
    a, b = (pd.DataFrame({"unit": np.arange(n_units), metric: of}) for of in sides)
    table = compare_models(
        {"a": a, "b": b},
        metric,
        baseline="a",
        user_col="unit",
        alternative=alternative,
        confidence=confidence,
        larger_is_better=metric,
        bounds={metric: (0, 1)} if credit == "binary" else None,
        details=True,
    )
    more = _preference(sides[1] - sides[0], confidence, alternative) | {
        "n_shown_a": int((own < 0).sum()),
        "n_shown_b": int((own > 0).sum()),
        "p_balance": _balance(log, own, unit, key_codes([("log", log)], keys)[0][0], n_units),
        "n_clicks": len(clicks),
        "n_clicks_no_team": int((own[place[known]] == 0).sum()),
        "n_clicks_elsewhere": int((~known).sum()),
    }
    if more["p_balance"] < HEALTH_ALPHA:
        remark(table, [True] * len(table), "unbalanced_teams")
        add_verdicts(table, "models", table["effect"])
    before = [name for name in table.columns if name not in VERDICT_COLUMNS]
    whole = Comparison.of(table.assign(**more)[[*before, *more, *VERDICT_COLUMNS]])
    return default_columns(whole, details)


def _credit_of_items(log: pd.DataFrame) -> Floats:
    """What a click on each item counts: positive for b, negative for a, 0 for no team."""
    team = log["team"].astype(object).where(log["team"].notna(), "").astype(str)
    unknown = ~team.isin(["a", "b", ""])
    if unknown.any():
        raise DataError(
            f'log["team"] is neither "a", "b" nor "" in {int(unknown.sum()):,} of {len(log):,} '
            f"rows ({examples(team[unknown])})",
            column="team",
            count=int(unknown.sum()),
        )
    if "credit" in log.columns:
        return np.nan_to_num(metric_values(log, "log", "credit"))
    return np.asarray((team == "b").to_numpy(np.float64) - (team == "a").to_numpy(np.float64))


def _places_in_log(
    log: pd.DataFrame, clicks: pd.DataFrame, keys: list[str], item_col: str
) -> Codes:
    """Row of the log of every click; −1 where its item was not in the list."""
    (shown, clicked), n = key_codes([("log", log), ("clicks", clicks)], [*keys, item_col])
    advice = "; name in ⟦+user_col=⟧ what tells the lists of a user apart"
    return only_rows("log", log, shown, n, [*keys, item_col], advice)[clicked]


def _summed(values: Floats, unit: Codes, n_units: int) -> Floats:
    """Sum of each unit."""
    return np.bincount(unit, weights=values, minlength=n_units).astype(np.float64)


def _preference(d: Floats, confidence: float, alternative: Alternative) -> dict[str, float]:
    """Share of units that prefer b, the sign test, and how many units show how large a
    difference."""
    wins, n = int((d > 1e-12).sum()), int((np.abs(d) > 1e-12).sum())
    p_sign = (
        min(1.0, 2 * float(scipy_module("special").bdtr(min(wins, n - wins), n, 0.5)))
        if n
        else np.nan
    )
    share = wins / n if n else np.nan
    low, high = (
        wilson(share, n, NormalDist().inv_cdf((1 + confidence) / 2)) if n else (np.nan, np.nan)
    )
    found = {
        "preference": share,
        "preference_low": low,
        "preference_high": high,
        "p_sign": p_sign,
        "mde": np.nan,
        "n_needed": np.nan,
    }
    sane = len(d) > 1 and np.abs(d).max() < HUGE
    sd, diff = (float(np.std(d, ddof=1)), abs(float(d.mean()))) if sane else (0.0, 0.0)
    if sd > 0:
        of_test = 1 - confidence, POWER, alternative
        found["mde"] = least_paired_effect(len(d), *of_test) * sd
        found["n_needed"] = paired_units_needed(diff / sd, *of_test) if diff > 0 else np.nan
    return found


def _balance(log: pd.DataFrame, own: Floats, unit: Codes, lists: Codes, n_units: int) -> float:
    """p of a mean credit of 0, of all items that were shown to a unit and of the first that has a
    team."""
    if n_units < TINY:
        return np.nan
    rank = metric_values(log, "log", "rank") if "rank" in log.columns else np.arange(len(log))
    teamed = np.flatnonzero(own != 0)
    order = teamed[np.lexsort((rank[teamed], lists[teamed]))]
    first = order[np.diff(lists[order], prepend=-1) > 0]
    p = []
    for rows in (teamed, first):
        found = one_sample(arm(_summed(own[rows], unit[rows], n_units)))
        constant = 1.0 if found.diff == 0 else 0.0
        p.append(constant if np.isnan(found.p_value) else float(found.p_value))
    return min(1.0, 2 * min(p))

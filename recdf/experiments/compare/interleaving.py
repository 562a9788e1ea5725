"""Interleaved lists: one list per user, mixed from those of two recommenders, and which of the two
the users prefer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...errors import ColumnError, DataError, NoOverlapWarning, RecdfWarning, examples, warn_user
from ...inputs.door import takes_options
from ...inputs.frames import as_frame
from ...inputs.ids import with_alike_ids
from ...inputs.sorting import place_in_run
from ...inputs.true_and_pred import order_source, read_pred
from ...judge.cautions import HEALTH_ALPHA, TINY
from ...judge.choices import Alternative, Columns, Natural, Options, Positive, Row, as_columns
from ...judge.comparisons import Comparison, default_columns
from ...judge.per_user_columns import (
    Codes,
    Floats,
    Mask,
    first_rows,
    key_codes,
    metric_values,
    require,
)
from ...judge.users import only_rows
from ...judge.verdict import VERDICT_COLUMNS, add_verdicts, remark
from ...stats.arms import arm, one_sample
from ...stats.numbers import normal_quantile, scipy_module
from ...stats.shares import wilson
from ...stats.student import PairedTest
from ...stats.turned import missing_by_chance
from ..decide.experiment_health import Hashes, hash_users
from .compare_models import compare_models
from .two_sample import POWER

# ------------------------------------------------------------------------------------------
# Lists for an experiment, one per user.


Interleaving = Literal["team_draft", "optimized", "balanced"]

# Users whose lists are made together, so that their arrays stay in the cache of the processor.
USERS_AT_ONCE = 2**13


@takes_options("user_col", "item_col", "score_col", "rank_col")
def interleave(
    a: DataFrame,
    b: DataFrame,
    k: Positive = 10,
    *,
    method: Interleaving = "team_draft",
    seed: Natural = 0,
    user_col: Columns = "user_id",
    item_col: str = "item_id",
    score_col: str | Literal[False] | None = None,
    rank_col: str | None = None,
    options: Options | None = None,
) -> DataFrame:
    """Mix the lists of two recommenders into one list per user, and say which of them each item
    stands for.

    Clicks on the mixed lists tell which recommender a user prefers (`compare_interleaved`). Every
    user sees both, so that the differences between users, which an A/B test must average out,
    cancel.

    * "team_draft" (Radlinski et al. 2008): the recommender with fewer items in the list picks next,
      and a coin decides where both have as many. It adds its best item that is not in the list yet,
      which is then of its team.
    * "optimized" (Radlinski & Craswell 2013): at rank t, recommender a picks with the probability
      π_t for which the expected credit of that rank is 0, so that a user who clicks at random
      prefers neither. The credit of an item is its rank in a minus its rank in b (the length of the
      list + 1 where it is not in it). Where no π_t does that, about one rank in a hundred, the item
      earns no credit.
    * "balanced" (Joachims 2002): the items a₁, b₁, a₂, b₂, ... without repetitions; a coin decides
      who is first. It is biased where one list is a shifted copy of the other, and warns.

    Items of a shared prefix, the first items that both lists have in the same order, are of no
    team, because a click on them tells nothing. So are items that stand in only because the other
    list has ended.

    Parameters
    ----------
    a, b : DataFrame
        Recommended items in long form, as `pred` of `evaluate`; or mappings of users to their
        items.
    k : int, default 10
        Length of the mixed lists.
    method : {"team_draft", "optimized", "balanced"}, default "team_draft"
        How lists are mixed.
    seed : int, default 0
        Of the coins. The coins of a user depend on the seed and the user's id alone, so that the
        list is the same whoever else is in the frames, and in whatever order the rows stand.
    user_col : str or list of str, default "user_id"
        Key of a list in both frames, such as ["user_id", "session_id"].
    item_col : str, default "item_id"
        Column of the item in both frames.
    score_col, rank_col : str, optional
        Column that orders the items of a list, descending or ascending, as in `evaluate`: by
        default `rank`, else `score`, else the order of the rows. Equal scores are ordered by the
        larger item id.
    options : Options, optional
        The columns of a project, where they are not given here.

    Returns
    -------
    DataFrame
        One row per item of a list, by user and rank: the columns of `user_col`, `item_col`, `rank`
        (from 1) and `team` ("a", "b", or "" for no team). With "optimized" also `credit`, positive
        where b ranks the item higher, and the team is who ranks it higher; with "balanced" the team
        is that, too. A user whom only one frame has gets that list, without teams.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError
        A column is missing; ids are null, or of kinds that can never match.
    DuplicateError
        An item stands twice in a list.
    OptionError
        An option is out of range.

    References
    ----------
    Radlinski, Kurup, Joachims: How does clickthrough data reflect retrieval quality?, CIKM 2008.
    Radlinski, Craswell: Optimized interleaving for online retrieval evaluation, WSDM 2013.

    Examples
    --------
    >>> import recdf as rd
    >>> a, b = {"ann": ["tea", "jam", "rye"]}, {"ann": ["tea", "ham", "jam"]}
    >>> lists = rd.experiments.interleave(a, b, k=3)
    >>> lists["item_id"].tolist(), lists["team"].tolist()
    (['tea', 'ham', 'jam'], ['', 'b', 'a'])
    """
    chosen = Options(user_col=user_col, item_col=item_col, score_col=score_col, rank_col=rank_col)
    keys = as_columns(user_col)
    _refuse_same(keys, item_col)
    if taken := sorted({*keys, item_col} & {"rank", "team", "credit"}):
        raise ColumnError(
            f"a result of interleave has columns {taken} of its own; rename those of a and b"
        )
    given = ("a", a), ("b", b)
    tables = [(role, as_frame(one, role, user_col, item_col)) for role, one in given]
    pairs, n_pairs = key_codes(tables, [*keys, item_col])
    frames = with_alike_ids([frame for _, frame in tables], [*keys, item_col], "a and b")
    # One row for each user and item, in the order of the ids.
    listed = pd.concat([frame[[*keys, item_col]] for frame in frames], ignore_index=True)
    listed = listed.iloc[first_rows(np.concatenate(pairs), n_pairs)].reset_index(drop=True)
    (user,), n_users = key_codes([("a and b", listed)], keys)
    ranks = np.full((2, n_pairs), -1)
    lengths = np.zeros((2, n_users), np.int64)
    for own, (role, frame) in enumerate(tables):
        read = read_pred(frame, order_source(frame, chosen), chosen, role)
        number = read.number
        if number is None:
            number = np.arange(len(frame))
        elif read.descending:
            # Ranks of the distinct numbers can be negated, which unsigned integers cannot.
            number = -np.unique(number, return_inverse=True)[1]
        only_rows(role, frame, pairs[own], n_pairs, [*keys, item_col], "; drop them")
        of_row = user[pairs[own]]
        order = np.lexsort((-pairs[own], number, of_row))
        lengths[own] = np.bincount(of_row, minlength=n_users)
        ranks[own, pairs[own][order]] = place_in_run(lengths[own])
    # The first k items of each recommender by user (−1: none), and the ranks that they have in the
    # whole list of the other; the rank in a list that lacks the item is the length of that list.
    k = min(k, lengths.sum(axis=0).max(initial=0))  # no list is longer
    items = np.full((2, n_users, k), -1)
    elsewhere = np.full((2, n_users, k), k)
    there = np.where(ranks < 0, lengths[:, user], ranks)
    side, item = np.nonzero((ranks >= 0) & (ranks < k))
    place = side, user[item], ranks[side, item]
    items[place], elsewhere[place] = item, there[1 - side, item]
    hashed = hash_users(listed.iloc[first_rows(user, n_users)], keys, "a and b")
    parts = []
    for start in range(0, max(n_users, 1), USERS_AT_ONCE):
        some = slice(start, start + USERS_AT_ONCE)
        coin = partial(user_coin, hashed[some], seed)
        parts.append(_draft(items[:, some], elsewhere[:, some], method, coin))
    found, team, credit = np.concatenate(parts, axis=1)
    if method == "balanced":
        warn_user(
            "Balanced interleaving is biased where one list is a shifted copy of the other: a user "
            'who clicks at random then prefers one of them. Pass ⟦+method="team_draft"⟧',
            RecdfWarning,
            argument="method",
            value=method,
        )
    at = np.nonzero(found >= 0)
    result = listed.iloc[found[at]].reset_index(drop=True)
    result["rank"] = at[1] + 1
    result["team"] = pd.Series(np.array(["", "a", "b"], object)[team[at]], dtype=str)
    return result.assign(credit=credit[at]) if method == "optimized" else result


def user_coin(hashed: Hashes, seed: int, number: int) -> Floats:
    """Return a uniform number for every user; `number` tells several of a user apart."""
    salt = np.random.default_rng([seed, number]).integers(2**64, dtype=np.uint64)
    mixed = pd.util.hash_array(hashed ^ salt)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _draft(
    items: Codes, elsewhere: Codes, method: Interleaving, coin: Callable[[int], Floats]
) -> Codes:
    """Fill the lists of some users, rank by rank: items by user and rank (−1: none), their team (0:
    none, 1: a, 2: b) and credit."""
    _, n, k = items.shape
    # Two more columns: the first is never taken, so that the list has ended where it is the first
    # that is free, and the second stands for all ranks that are not filled.
    taken = np.pad(items < 0, ((0, 0), (0, 0), (0, 2)))
    whole = found, team, credit = np.full((3, n, k), [[[-1]], [[0]], [[0]]])
    ahead = np.zeros(n, np.int64)
    shared = np.logical_and.accumulate(items[0] == items[1], axis=1)
    chance = np.full((n, k), 0.5)
    settled = np.ones((n, k), bool)
    if method == "optimized":
        chance, settled = _chances(items, elsewhere)
    for t in range(k):
        next_a, next_b = free = taken.argmin(axis=2)
        has_a, has_b = free < k
        # Who is behind picks next, and a coin decides where nobody is.
        lead = {"team_draft": ahead, "balanced": next_a - next_b}.get(method, 0 * ahead)
        heads = coin(0 if method == "balanced" else t) < chance[:, t]
        picks_a = has_a & ((lead < 0) | ((lead == 0) & heads))
        rows = np.flatnonzero(has_a | has_b)
        side = (has_b & ~picks_a).astype(np.int64)[rows]  # who picks: 0 is a
        place = free[side, rows]
        rank = elsewhere[side, rows, place]
        found[rows, t] = items[side, rows, place]
        taken[side, rows, place] = True
        taken[1 - side, rows, np.where(rank < k, rank, k + 1)] = True
        earns = (has_a & has_b & ~shared[:, t] & settled[:, t])[rows]
        sign = earns * (1 - 2 * side)
        ahead[rows] += sign
        credit[rows, t] = sign * (place - rank)
        team[rows, t] = earns * (side + 1)
    if method != "team_draft":
        team[:] = np.array([0, 2, 1])[np.sign(credit)]
    return whole


def _chances(items: Codes, elsewhere: Codes) -> tuple[Floats, Mask]:
    """Probability by user and rank that a picks, with which the expected credit of the rank is 0,
    if there is one.

    After t picks the list holds the first i items of a and, of b, the first t − i that are not
    among these. Of all pairs of (t, i) `mass` has the probability. An item that a picks moves i
    behind it; one that b picks leaves i.
    """
    (a, b), (a_in_b, b_in_a) = items, elsewhere
    n, k = a.shape
    user = np.arange(n)
    place = np.arange(k)
    # What an item earns, and 0 behind the last place.
    of_a, of_b = (np.pad(one, ((0, 0), (0, 1))) for one in (place - a_in_b, b_in_a - place))
    chance = np.full((n, k), 0.5)
    settled = np.ones((n, k), bool)
    mass = np.zeros((k + 1, n))
    mass[0] = 1.0
    # By i: −1 and the places in b of the items that are not among the first i of a, in order; k
    # where there are no more.
    left = np.full((k, n, k + 1), -1, np.int32)
    for first in range(k):
        left[first, :, 1:] = np.sort(np.where((b >= 0) & (b_in_a >= first), place, k))
    for t in range(k):
        i = np.arange(t + 1)
        own = mass[: t + 1]
        next_b = left[i, :, t - i + 1]
        unseen = (a >= 0) & (a_in_b > left[i, :, t - i, None]) & (place >= i[:, None, None])
        next_a = np.where(unseen.any(axis=2), unseen.argmax(axis=2), k)
        has_both = np.maximum(next_a, next_b) < k
        credit_a = (own * has_both * of_a[user, next_a]).sum(axis=0)
        credit_b = (own * has_both * of_b[user, next_b]).sum(axis=0)
        width = credit_b - credit_a
        rounding = 1e-9 * k
        some = width > rounding
        chance[some, t] = np.clip(credit_b[some] / width[some], 0, 1)
        # No chance makes up for a credit of the same sign, whoever picks.
        settled[:, t] = (credit_a <= rounding) & (credit_b >= -rounding)
        by_a = own * np.where(has_both, chance[:, t], next_a < k)
        own -= by_a
        np.add.at(mass, (np.minimum(next_a + 1, k), user), by_a)
    return chance, settled


# ------------------------------------------------------------------------------------------
# Which of the two recommenders do the users prefer?


def _refuse_same(keys: list[str], item_col: str) -> None:
    if len({*keys, item_col}) <= len(keys):
        raise ColumnError(
            f"the key of users, {keys}, and ⟦item_col={item_col!r}⟧ must be distinct columns"
        )


@takes_options("item_col")
def compare_interleaved(
    log: DataFrame,
    clicks: DataFrame,
    *,
    unit_col: Columns = "user_id",
    credit: str = "clicks",
    user_col: Columns | None = None,
    item_col: str = "item_id",
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    options: Options | None = None,
    details: bool = False,
) -> DataFrame:
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
    units = as_columns(unit_col)
    keys = as_columns(user_col) or units
    _refuse_same(units, item_col)
    _refuse_same(keys, item_col)
    require(log, "log", [*units, *keys, item_col, "team"])
    require(clicks, "clicks", [*keys, item_col])
    by_column = credit not in ("clicks", "binary")
    metric = credit if by_column else "credit"
    weight = metric_values(clicks, "clicks", credit) if by_column else np.ones(len(clicks))
    if wrong := np.count_nonzero(~(weight >= 0)):
        raise DataError(
            f"clicks[{credit!r}] is null or negative in {wrong:,} of {len(clicks):,} rows"
        )
    own = _credit_of_items(log)
    tables = [("log", log), ("clicks", clicks)]
    (shown, clicked), n_shown = key_codes(tables, [*keys, item_col])
    advice = "; name in ⟦+user_col=⟧ what tells the lists of a user apart"
    row = only_rows("log", log, shown, n_shown, [*keys, item_col], advice)[clicked]
    known = row >= 0  # other clicks are on items that were not in their list
    if len(clicks) and not known.any():
        warn_user(
            f"none of the {len(clicks):,} clicks is on an item of log; compare the columns "
            f"{[*keys, item_col]}",
            NoOverlapWarning,
            argument="clicks",
        )
    earned = own * np.bincount(row[known], weight[known], len(log))
    (unit,), n_units = key_codes(tables[:1], units)

    def of_units(values: Floats, rows: Any = slice(None)) -> Floats:
        """Sum of each unit."""
        return np.bincount(unit[rows], values[rows], n_units).astype(np.float64)

    a, b = (of_units(np.maximum(sign * earned, 0)) for sign in (-1, 1))
    bounds = None
    if credit == "binary":
        a, b = (a > b).astype(np.float64), (b > a).astype(np.float64)
        bounds = {metric: (0, 1)}
    key = f"unit of {metric}"
    table = compare_models(
        {name: DataFrame({key: range(n_units), metric: of}) for name, of in (("a", a), ("b", b))},
        metric,
        baseline="a",
        user_col=key,
        alternative=alternative,
        confidence=confidence,
        larger_is_better=metric,
        bounds=bounds,
        details=True,
    )
    p_balance = np.nan
    if n_units >= TINY:
        # Of all items that were shown to a unit, and of the first of each list that has a team.
        rank = metric_values(log, "log", "rank") if "rank" in log else np.arange(len(log))
        (lists,), _ = key_codes(tables[:1], keys)
        teamed = np.flatnonzero(own != 0)
        order = teamed[np.lexsort((rank[teamed], lists[teamed]))]
        first = order[np.diff(lists[order], prepend=-1) > 0]
        tested = [one_sample(arm(of_units(own, some))) for some in (teamed, first)]
        # Without a spread, teams are in balance if the mean is 0.
        p = [np.nan_to_num(one.p_value, nan=float(one.diff == 0)) for one in tested]
        p_balance = min(1.0, 2 * float(min(p)))
    found = _preference(
        table.iloc[0].to_dict(), float(bounds is not None), confidence, alternative
    ) | {
        "n_shown_a": (own < 0).sum(),
        "n_shown_b": (own > 0).sum(),
        "p_balance": p_balance,
        "n_clicks": len(clicks),
        "n_clicks_no_team": (own[row[known]] == 0).sum(),
        "n_clicks_elsewhere": (~known).sum(),
    }
    if p_balance < HEALTH_ALPHA:
        remark(table, [True], "unbalanced_teams")
        add_verdicts(table, "models", table["effect"])
    verdicts = {name: table.pop(name) for name in VERDICT_COLUMNS}  # they stand last
    return default_columns(Comparison.of(table.assign(**found, **verdicts)), details)


def _credit_of_items(log: DataFrame) -> Floats:
    """What a click on each item counts: positive for b, negative for a, 0 for no team."""
    team = log["team"].astype(object).where(log["team"].notna(), "").astype(str)
    sign = team.map({"a": -1.0, "b": 1.0, "": 0.0}).astype(np.float64)
    if len(unknown := team[sign.isna()]):
        raise DataError(
            f'log["team"] is neither "a", "b" nor "" in {len(unknown):,} of {len(log):,} rows '
            f"({examples(unknown)})",
            column="team",
            count=len(unknown),
        )
    if "credit" not in log:
        return np.asarray(sign, np.float64)
    credit = metric_values(log, "log", "credit")
    if wrong := int(np.count_nonzero(~(credit * sign >= 0) & (sign != 0))):
        raise DataError(
            f'log["credit"] is null, or has the sign of the other team, in {wrong:,} of '
            f"{len(log):,} rows; interleave(method='optimized') writes it: positive for items of "
            "b, negative for those of a",
            column="credit",
            count=wrong,
        )
    return np.nan_to_num(credit)


def _preference(
    row: dict[Any, Any], reach: float, confidence: float, alternative: Alternative
) -> Row:
    """Share of units that prefer b, the sign test, and how many units show how large a
    difference, from the row of a and b as two models. A unit differs by `reach` at most; by 0
    where nobody knows."""
    wins = row["wins"]
    n = wins + row["losses"]
    share = low = high = p_sign = mde = n_needed = np.nan
    if n:
        share = wins / n
        low, high = wilson(share, n, normal_quantile((1 + confidence) / 2))
        p_sign = min(1.0, 2 * scipy_module("special").bdtr(min(wins, n - wins), n, 0.5))
    if row["se"] > 0:
        n_units = row["n_users"]
        sd = row["se"] * np.sqrt(n_units)
        unseen = missing_by_chance(1 - confidence) * reach / sd
        test = PairedTest(1 - confidence, POWER, alternative, unseen=unseen)
        mde = test.least_effect(n_units) * sd
        if row["diff"]:
            n_needed = test.rows_needed(abs(row["diff"]) / sd)
    return {
        "preference": share,
        "preference_low": low,
        "preference_high": high,
        "p_sign": p_sign,
        "mde": mde,
        "n_needed": n_needed,
    }

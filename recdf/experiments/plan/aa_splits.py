"""Does the test hold on one's own data? Many experiments without an effect, by splitting past users
at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import OptionError
from ...inputs.constraints import SeveralRepetitions
from ...inputs.door import takes_options
from ...judge.choices import (
    Alternative,
    Columns,
    NamedMetrics,
    Options,
    RaiseOrDrop,
    Row,
    a_number,
    as_columns,
    check_value,
)
from ...judge.effects.means import JACKKNIFE_BELOW
from ...judge.per_user_columns import Codes, Floats, exact_sums, metric_specs, warn_of_weights
from ...judge.users import read_experiment_rows
from ...judge.verdict import add_verdicts, remark
from ...progress import Progress
from ...stats.arms import Arm, effect, effective_number
from ...stats.numbers import scipy_module, undefined_is_nan
from ...stats.resampling import distinct_columns, split_sums
from ...stats.shares import wilson
from ..samples import MetricRows, Settings, read_metrics, refuse_huge

# Caps that are tried beside the plain metric, the mildest first.
CAPS = (0.999, 0.99, 0.98)
# Of the interval of the share of rejections: 99 %, so that a sound metric is seldom called unsound.
Z_OF_SHARE = 2.5758293035489004


@takes_options("user_col", engines="named")
def aa_test(
    per_user: Any,
    metrics: NamedMetrics,
    *,
    shares: Sequence[float] | Mapping[Any, float] = (0.5, 0.5),
    n: SeveralRepetitions = 1000,
    user_col: Columns | None = None,
    cluster: Columns | None = None,
    cap: Mapping[str, float] | None = None,
    nan: RaiseOrDrop = "raise",
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
    seed: int = 0,
    progress: bool | None = None,
    options: Options | None = None,
) -> pd.DataFrame:
    """Split past users at random n times, and count how often a test finds a difference, where
    there is none.

    Each unit is in the treatment with the probability s_t/(s_c + s_t). The test of a split is that
    of `compare_variants`: Welch's t of means, of ratios by the delta method, of sums per cluster.
    It needs only sums of N, D, N², D² and N·D over the treatment, so that all splits are one
    product of matrices.

    Parameters
    ----------
    per_user : DataFrame, frame of Spark or Dask, or path
        One row per user of the past, or several with `cluster`.
    metrics : str, list of str or mapping
        As in `compare_variants`: columns, or name → (numerator, denominator).
    shares : pair of numbers or mapping, default (0.5, 0.5)
        Planned shares of control and treatment; only their ratio counts.
    n : int, default 1000
        Number of splits.
    user_col : str or list of str, optional
        Key of a user, which must be unique without `cluster`. Default: "user_id" if there is such a
        column; else rows are users.
    cluster : str or list of str, optional
        Columns of clusters, which are split as wholes: the user of several sessions, the region of
        users.
    cap : mapping, optional
        Metric → quantile, as in `compare_variants`. Default: means that are not 0/1 are tried
        without a cap and with caps at 0.999, 0.99 and 0.98.
    nan : {"raise", "drop"}, default "raise"
        Rows whose metric is null.
    alternative : {"two-sided", "greater", "less"}, default "two-sided"
        Of the tests.
    confidence : float, default 0.95
        Of the tests, whose level is alpha = 1 − confidence.
    seed : int, default 0
        Of the splits. They depend on the order of the ids and not on that of the rows.
    progress : bool, optional
        Show the progress on stderr. By default only on a terminal, and only after two seconds.
    options : Options, optional
        `user_col` of a project, where it is not given here.

    Returns
    -------
    DataFrame
        One row per (metric, cap): `metric`, `cap` (null: none), `cap_value`, `n_units`, `n_splits`
        (those with a test: an arm of equal values has none), `n_rejected`, `n_rejected_low`,
        `n_rejected_high` (with a lower and a higher treatment), `rejected` (share), `rejected_low`,
        `rejected_high` (its 99 % interval, Wilson), `ks`, `p_ks` (distance of the p-values from the
        uniform distribution, Kolmogorov and Smirnov), `alpha`, `effect`, `withheld`, `remarks`,
        `verdict` and `recommended`. Verdict: "rejects too often" or "rejects too rarely" where
        alpha is outside the interval, else "holds"; "not tested" without a split that has a test.
        `recommended`, the same in all rows of a metric, is the first that holds: "t", or "t,
        cap=0.99"; else "proportion" for a 0/1 metric, and "permutation" for others, which holds
        because it splits in the same way ("" where no split has a test). Remark: "few_clusters",
        with fewer than 40 clusters in an arm, where `compare_variants` takes the jackknife, which
        rejects less often.

    Raises
    ------
    ColumnError, NullKeyError
        A column is missing; a key is null.
    DuplicateError
        Several rows of a user without `cluster`.
    OptionError, DataError
        An option out of range; a metric that is not numeric, infinite, or null with `nan="raise"`.
    MissingExtraError
        If SciPy is not installed.

    Notes
    -----
    It cannot see what went wrong in logging or in the assignment of a real experiment; an A/A
    experiment can.

    References
    ----------
    Kohavi, Tang, Xu: Trustworthy online controlled experiments, 2020, chapter 19.

    Examples
    --------
    >>> import numpy as np, pandas as pd, recdf as rd
    >>> users = pd.DataFrame(
    ...     {"user_id": range(2000), "revenue": np.random.default_rng(1).lognormal(0, 2, 2000)}
    ... )
    >>> table = rd.experiments.aa_test(users, "revenue", shares=(0.9, 0.1))
    >>> table[["cap", "rejected", "rejected_low", "rejected_high", "verdict", "recommended"]].round(
    ...     3
    ... )
         cap  rejected  rejected_low  rejected_high            verdict  recommended
    0    NaN     0.138         0.112          0.168  rejects too often  t, cap=0.98
    1  0.999     0.130         0.105          0.160  rejects too often  t, cap=0.98
    2  0.990     0.071         0.053          0.095  rejects too often  t, cap=0.98
    3  0.980     0.063         0.046          0.086              holds  t, cap=0.98
    """
    settings = Settings(alternative=alternative, confidence=confidence, seed=seed)
    planned = list(shares.values()) if isinstance(shares, Mapping) else as_columns(shares)
    if len(planned) != 2:
        raise OptionError(
            f"⟦shares={shares!r}⟧; expected two shares, of control and treatment", argument="shares"
        )
    for one in planned:
        check_value("shares", one, a_number(above=0))
    specs = metric_specs(metrics, per_user, "per_user")
    past = read_experiment_rows(
        per_user, None, [], user_col, cluster=as_columns(cluster), role="per_user"
    )
    warn_of_weights(per_user, "per_user", [name for pair in specs.values() for name in pair])
    code = np.arange(len(per_user)) if past.randomised is None else past.randomised
    plain = read_metrics(per_user, specs, {}, nan, "per_user", cap)
    rows: list[Row] = []
    with Progress(len(plain), "aa_test", progress) as shown:
        for metric in plain:
            spec = {metric.name: specs[metric.name]}
            shares_of_users = metric.kind.share
            tried = {np.nan if cap is None else cap.get(metric.name, np.nan): metric}
            for one in (
                CAPS if cap is None and metric.sample.den is None and not shares_of_users else ()
            ):
                (capped,) = read_metrics(per_user, spec, {}, nan, "per_user", {metric.name: one})
                if capped.cap < metric.kind.seen[1]:
                    tried[one] = capped
            sums = [_unit_columns(one, code) for one in tried.values()]
            found = _rejections(sums, planned[1] / sum(planned), n, settings, bool(cluster))
            recommended = "proportion" if shares_of_users and not cluster else "permutation"
            if not any(row["n_splits"] for row in found):
                recommended = ""
            for one, row in zip(tried, found, strict=True):
                if row["effect"] == "holds" and row["n_splits"]:
                    recommended = "t" if np.isnan(one) else f"t, cap={one:g}"
                    break
            for (one, own), row in zip(tried.items(), found, strict=True):
                of = {"metric": metric.name, "cap": one, "cap_value": own.cap}
                rows.append(of | row | {"recommended": recommended})
            shown.add()
    table = pd.DataFrame(rows)
    remark(table, table["n_splits"] == 0, "not_tested")
    remark(table, [past.repeated is not None] * len(table), "repeated_units")
    add_verdicts(table, "aa", table["effect"])
    table["recommended"] = table.pop("recommended")  # it stands last
    return table


def _unit_columns(metric: MetricRows, code: Codes) -> list[Floats]:
    """1, N, N², D, D² and N·D of every unit, N around the ratio of all; 0 for a unit without a row
    that counts.

    A mean is the ratio of the sum to the number of rows.
    """
    refuse_huge(metric)
    own = code
    n = code.max(initial=-1) + 1
    den_of_rows = metric.sample.den
    sums = [metric.sample.num, np.ones(len(code)) if den_of_rows is None else den_of_rows]
    if metric.defined is not None:
        own = code[metric.defined]
        sums = [one[metric.defined] for one in sums]
    num, den = (exact_sums(one, own, n) for one in sums)
    total = den.sum()
    num = num - (num.sum() / total if total else 0.0) * den
    there = 1.0 * (np.bincount(own, minlength=n) > 0)
    if np.array_equal(den, there):  # a mean, whose columns are equal: one array each saves memory
        return [there, num, num * num, there, there, num]
    return [there, num, num * num, den, den * den, num * den]


def _rejections(
    units: list[list[Floats]], share: float, n_splits: int, settings: Settings, clustered: bool
) -> list[Row]:
    """Test every split for every list of columns of units: how often p is at most alpha, how far p
    is from uniform, and the effect."""
    columns, places = distinct_columns([column for own in units for column in own])
    treatment = split_sums(columns, share, n_splits, settings.seed)
    totals = np.array([column.sum() for column in columns])
    alpha = settings.alpha
    rows = []
    for own in units:
        at = places[: len(own)]
        places = places[len(own) :]
        arms = _arm_of_sums(totals[at] - treatment[:, at]), _arm_of_sums(treatment[:, at])
        with undefined_is_nan():
            tested = effect(*arms, settings.alternative, settings.confidence, "fieller", None)
        p = np.asarray(tested.p_value)
        diff = np.asarray(tested.diff)
        known = ~np.isnan(p) & (arms[0].var > 0) & (arms[1].var > 0)
        p = p[known]
        diff = diff[known]
        reject = p <= alpha
        n = len(p) or np.nan  # of no tests there is no share
        rejected = reject.sum() / n
        low, high = wilson(rejected, n, Z_OF_SHARE)
        ordered = np.sort(p)
        steps = np.arange(len(p) + 1) / n
        apart = np.append(steps[1:] - ordered, ordered - steps[:-1])
        ks = apart.max() if len(p) else np.nan
        found = "rejects_rarely" if high < alpha else "holds"
        found = "rejects_often" if low > alpha else found
        few = clustered and effective_number(own[3]) * min(share, 1 - share) < JACKKNIFE_BELOW
        rows.append(
            {
                "n_units": int(own[0].sum()),
                "n_splits": len(p),
                "n_rejected": reject.sum(),
                "n_rejected_low": (reject & (diff < 0)).sum(),
                "n_rejected_high": (reject & (diff > 0)).sum(),
                "rejected": rejected,
                "rejected_low": low,
                "rejected_high": high,
                "ks": ks,
                "p_ks": scipy_module("special").kolmogorov(np.sqrt(n) * ks),
                "alpha": alpha,
                "effect": found,
                "remarks": "few_clusters" if few else "",
            }
        )
    return rows


def _arm_of_sums(sums: Floats) -> Arm:
    """The estimate of an arm in every split, from its sums of 1, N, N², D, D² and N·D."""
    count, num, squares, den, den_squares, cross = sums.T
    with undefined_is_nan():
        ratio = num / den
        spread = squares - 2 * ratio * cross + ratio**2 * den_squares
        spread = np.where(spread > 1e-12 * squares, spread, 0.0)
        return Arm(ratio, spread * count / (count - 1) / den**2, count - 1)

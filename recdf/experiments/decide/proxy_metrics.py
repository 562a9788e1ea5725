"""Which offline metric predicts the online effect? From past experiments, with the noise of both
sides taken out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pandas import DataFrame

from ...errors import DataError, DuplicateError, OptionError
from ...inputs.door import checks_names
from ...judge.choices import Columns, Row, Share, as_columns
from ...judge.per_user_columns import Floats, frame_of, metric_values, require_labels, some_keys
from ...judge.verdict import add_verdicts, by_rank
from ...stats.many_tests import launches_by_sign, true_effects
from ...stats.student import t_quantile
from .adjust_pvalues import directions

LEAST_TESTS = 10  # fewer experiments say nothing about the next one
Effects = str | Sequence[str] | Mapping[str, str]


@checks_names
def proxy_metrics(
    tests: DataFrame,
    *,
    offline: Effects,
    online: Effects,
    cov: str | Mapping[tuple[str, str], str] | None = None,
    experiment_col: Columns | None = None,
    smaller_is_better: Columns | None = None,
    larger_is_better: Columns | None = None,
    confidence: Share = 0.95,
) -> DataFrame:
    """Say which offline metric predicts the online effect, from past experiments that measured
    both.

    Both differences of an experiment are estimates. Their noise pulls the slope of a naive
    regression towards 0, and noise that they share (the same users) pushes it away from 0. Here it
    is taken out: with x̂ and ŷ the centred differences of n experiments, a factor f = n/(n − 1) and
    the sampling (co)variances v and c of each experiment,

        slope = mean(f·x̂·ŷ − c) / mean(f·x̂² − v_x)

    is that of the true effects. Its interval is Fieller's over the experiments, with the t quantile
    of n − 2 degrees of freedom. `correlation` has √(mean(f·x̂² − v_x)·mean(f·ŷ² − v_y)) below the
    line; its interval is approximate.

    Parameters
    ----------
    tests : DataFrame
        One row per past experiment: what the offline comparison said of the variant that was then
        launched, and what the experiment found. `rd.diagnostics.past_tests` reads it from folders
        of results.
    offline, online : str, list of str or mapping
        Columns of differences, treatment less control. The standard errors are in a column of the
        same name with "_se", or in the one that a mapping names: {"ndcg": "ndcg_error"}.
    cov : str or mapping, optional
        Column of the sampling covariance of both differences, where they were measured on the same
        users; with several metrics, (offline, online) → column. Default: they were measured on
        other users, so that it is 0.
    experiment_col : str or list of str, optional
        Names an experiment, to find several rows of one.
    smaller_is_better, larger_is_better : str or list of str, optional
        As in `compare_variants`: they decide what is a win.
    confidence : float, default 0.95
        Of the intervals of all pairs together (Bonferroni), since the best of several metrics is
        looked for.

    Returns
    -------
    DataFrame
        One row per pair of an online and an offline metric: `online`, `offline`, `n_tests`; `slope`
        (online effect per unit of the offline one) and `correlation` of the true effects, with
        intervals, null where the data bound them nowhere; `naive_slope`, its interval,
        `naive_correlation` (ordinary regression of the estimates, for comparison); `noise_offline`,
        `noise_online` (share of the variance of the estimates that is sampling noise);
        `called_right` (share of the experiments in which the offline metric has the sign of the
        true online effect) and `regret` (online effect that is lost per experiment if the sign of
        the offline metric decides), both with normal true effects; `confidence`, `effect`,
        `withheld`, `remarks`, `verdict`. Verdict: "predicts", "predicts the opposite", "no relation
        shown"; "cannot tell: ..." with a remark: "few_tests" (fewer than 10), "noise" (of sampling,
        above the signal of either side, or a slope without bounds).

    Raises
    ------
    ColumnError, OptionError
        A column is missing; a name stands on both sides.
    DuplicateError
        Several rows of one experiment: they share the users of its control, so that their errors
        are not independent.
    DataError
        Null or infinite values, a standard error that is not above 0, a covariance beyond what the
        errors allow, or fewer than 3 experiments.
    MissingExtraError
        If SciPy is not installed.

    Notes
    -----
    Use it to choose the metric that gates launches. Do not read the slope as what happens if a
    metric is optimised on purpose: it describes experiments like those of the past. Experiments
    that were run because the offline metric was good are such a selection.

    References
    ----------
    Bibaut, Chou, Ejdemyr, Kallus 2024 (true effects of many experiments); Fieller 1954.

    Examples
    --------
    >>> import numpy as np, pandas as pd, recdf as rd
    >>> rng = np.random.default_rng(1)
    >>> true = rng.normal(0.002, 0.01, 60)
    >>> tests = pd.DataFrame(
    ...     {
    ...         "ndcg": true + rng.normal(0, 0.006, 60),
    ...         "ndcg_se": 0.006,
    ...         "ctr": 0.5 * true + rng.normal(0, 0.003, 60),
    ...         "ctr_se": 0.003,
    ...     }
    ... )
    >>> found = rd.experiments.proxy_metrics(tests, offline="ndcg", online="ctr")
    >>> found[["slope", "slope_low", "slope_high", "naive_slope", "called_right", "verdict"]].round(
    ...     2
    ... )
       slope  slope_low  slope_high  naive_slope  called_right   verdict
    0   0.59       0.44        0.96         0.36          0.82  predicts
    """
    frame_of("tests", tests)
    sides = error_columns("offline", offline), error_columns("online", online)
    if twice := sorted(set(sides[0]) & set(sides[1])):
        raise OptionError(
            f"{twice} are in ⟦offline=⟧ and in ⟦online=⟧; expected two kinds of metrics"
        )
    if len(tests) < 3:
        raise DataError(
            f"tests has {len(tests)} rows; a line needs at least 3 experiments", count=len(tests)
        )
    if keys := require_labels(tests, "tests", as_columns(experiment_col)):
        again = tests.duplicated(keys, keep=False).to_numpy()
        if again.any():
            raise DuplicateError(
                f"tests has several rows of one experiment ({some_keys(tests, again, keys)}), "
                "which share the users of its control, so that their errors are not independent; "
                "keep one row of each experiment",
                argument="experiment_col",
                count=int(again.sum()),
            )
    effects = {}
    for name, error in (sides[0] | sides[1]).items():
        effects[name] = diff, se = _numbers(tests, name), _numbers(tests, error)
        if bad := (se <= 0).sum():
            raise DataError(
                f"tests[{error!r}] is not above 0 in {bad} of {len(se)} rows; expected standard "
                "errors"
            )
        if not diff.var() > 0:
            raise DataError(
                f"tests[{name!r}] has the same value in all rows, which shows no relation"
            )
    # `past_tests` writes where a metric was measured before its name.
    known = {name: str(name).removeprefix("offline_").removeprefix("online_") for name in effects}
    better = directions(known, smaller_is_better, larger_is_better)
    pairs = [(name, goal) for goal in sides[1] for name in sides[0]]
    named: Any = {} if cov is None else cov
    if isinstance(cov, str) and len(pairs) == 1:
        named = {pairs[0]: cov}
    if not isinstance(named, Mapping) or named.keys() - pairs:
        raise OptionError(
            f"⟦cov={cov!r}⟧; expected (offline, online) → column of tests, for pairs of {pairs}"
        )
    level = 1 - (1 - confidence) / len(pairs)
    rows = []
    for name, goal in pairs:
        (x, x_se), (y, y_se) = effects[name], effects[goal]
        shared = np.zeros(len(x))
        if (column := named.get((name, goal))) is not None:
            shared = _numbers(tests, column)
            if (np.abs(shared) > x_se * y_se * (1 + 1e-9)).any():
                raise DataError(
                    f"tests[{column!r}] is beyond the product of both standard errors; expected a "
                    "covariance"
                )
        up_x, up_y = (-1.0 if better[one] == "smaller" else 1.0 for one in (name, goal))
        row = _pair_row(x, y, x_se**2, y_se**2, shared, up_x, up_y, level)
        rows.append({"online": goal, "offline": name, **row, "confidence": confidence})
    table = DataFrame(rows)
    add_verdicts(table, "proxy", table["effect"])
    return table


def _pair_row(
    x: Floats,
    y: Floats,
    var_x: Floats,
    var_y: Floats,
    cov: Floats,
    up_x: float,
    up_y: float,
    level: float,
) -> Row:
    """What all experiments say about one pair of metrics: x and y are the estimates, and `up` is 1
    where larger is better, −1 where smaller is."""
    n = len(x)
    up = up_x * up_y
    true = true_effects(x, y, var_x, var_y, cov, level)
    upwards = true._replace(cov=up * true.cov)
    right, regret = launches_by_sign(up_x * x, up_y * y, var_x, var_y, up * cov, upwards)
    noisy = var_x.mean() > true.var_x or var_y.mean() > true.var_y or np.isnan(true.slope_low)
    doubts = {"few_tests": n < LEAST_TESTS, "noise": noisy}
    side = up * np.sign(true.slope_low) * (true.slope_low * true.slope_high > 0)
    # The least-squares line of the estimates, as people draw it.
    (xx, xy), (_, yy) = np.cov(x, y)
    naive = xy / xx
    rest = np.sqrt(max(yy / xx - naive**2, 0.0) / (n - 2))
    reach = t_quantile(n - 2, "two-sided", level) * rest
    return {
        "n_tests": n,
        **{k: v for k, v in true._asdict().items() if k not in ("var_x", "var_y", "cov")},
        "naive_slope": naive,
        "naive_low": naive - reach,
        "naive_high": naive + reach,
        "naive_correlation": xy / np.sqrt(xx * yy),
        "noise_offline": var_x.mean() / xx,
        "noise_online": var_y.mean() / yy,
        "called_right": right,
        "regret": regret,
        "effect": {1.0: "predicts", -1.0: "predicts_opposite"}.get(side, "none"),
        "remarks": by_rank(code for code, holds in doubts.items() if holds),
    }


# -- what is handed over


def error_columns(argument: str, given: Effects) -> dict[str, str]:
    """Column of the differences → column of their standard errors."""
    if isinstance(given, Mapping):
        named = dict(given)
    else:
        named = {name: f"{name}_se" for name in as_columns(given)}
    if not named:
        raise OptionError(f"⟦{argument}=⟧ is empty; expected at least one column of tests")
    return named


def _numbers(tests: DataFrame, name: str) -> Floats:
    values = metric_values(tests, "tests", name, squared=True)
    if missing := np.isnan(values).sum():
        raise DataError(
            f"tests[{name!r}] is null in {missing} of {len(values)} rows; leave these experiments "
            "out"
        )
    return values

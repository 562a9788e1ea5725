"""Where a broken sample ratio comes from: the browser, country or day whose users do not fit the
plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import OptionError
from ...inputs.door import takes_columns
from ...inputs.options import Options, as_columns
from ...judge.verdict import add_verdicts
from ...stats.many_tests import adjust
from ...stats.shares import share_tests
from ..experiment_columns import frame_of, group_codes, require
from .experiment_health import experiment_health, planned_shares, plans_of

_LEVEL, _STRATUM = "level of the column", "stratum of the plan"


@takes_columns("user_col")
def find_srm(
    assignment: pd.DataFrame,
    columns: str | Sequence[str],
    *,
    expected: Mapping[Any, Any] | None = None,
    user_col: str | Sequence[str] = "user_id",
    variant_col: str = "variant",
    cluster: str | Sequence[str] | None = None,
    strata: str | Sequence[str] | None = None,
    confidence: float = 0.999,
    options: Options | None = None,
) -> pd.DataFrame:
    """Find the levels of columns (browser, country, day) in which the users per variant do not fit
    the plan.

    For every level, Pearson's χ² = Σ (O_v − E_v)²/E_v of its users per variant O_v against E_v =
    N·share_v, Holm's correction over all levels of all columns, and the same test of all other
    users: if that fits although the whole does not, the level explains the broken ratio.

    Parameters
    ----------
    assignment : DataFrame
        One row per assigned user; users in two variants are left out.
    columns : str or list of str
        Columns of `assignment` that were known before the assignment. Null is a level of its own.
    expected : mapping, optional
        Planned share (or weight, > 0) of every variant. Default: equal shares. In a ramp-up, those
        of each period as in `experiment_health`, with its column as `strata`: χ² is then the sum
        over the periods.
    user_col : str or list of str, default "user_id"
        Key of a user.
    variant_col : str, default "variant"
        Column of the variant.
    cluster : str or list of str, optional
        Columns that were assigned as a whole, and are counted in place of users, as in
        `experiment_health`.
    strata : str, optional
        Column of the periods that `expected` has shares of.
    confidence : float, default 0.999
        A level does not fit where p_adj is below alpha = 1 − confidence.
    options : Options, optional
        `user_col` of a project, where it is not given here.

    Returns
    -------
    DataFrame
        One row per level, the smallest p first: `column`, `level` (as text), `n_users`, `variant`
        (the one that is farthest from its plan, in standard deviations), `n_variant`, `n_expected`
        (of that variant), `chi2`, `p_value` (null where an expected count is below 8), `p_adj`,
        `p_all` (of all users), `p_without` (of all other users), `explains` (the level does not
        fit, the whole does not, and without the level it does), `effect` ("fits"), `withheld`
        ("sample_ratio", "not_tested"), `remarks`, `verdict`.

    Raises
    ------
    ColumnError, NullKeyError, OptionError, DataError
        As `experiment_health`; no columns are named.
    MissingExtraError
        If SciPy is not installed and there are more than two variants.

    References
    ----------
    Fabijan et al.: Diagnosing sample ratio mismatch in online controlled experiments, KDD 2019.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame({"user_id": range(1000), "variant": ["A", "B"] * 500})
    >>> users["browser"] = ["x"] * 600 + ["y"] * 400
    >>> lost = users[
    ...     (users["browser"] == "x") | (users["variant"] == "A") | (users["user_id"] % 10 > 8)
    ... ]
    >>> found = rd.experiments.find_srm(lost, "browser", expected={"A": 1, "B": 1})
    >>> found[
    ...     ["level", "n_users", "variant", "n_variant", "p_without", "explains", "verdict"]
    ... ].round(3)
      level  n_users variant  n_variant  p_without  explains                verdict
    0     y      240       B         40        1.0      True  invalid: sample ratio
    1     x      600       A        300        0.0     False                   fits
    """
    names_of_columns = require(
        frame_of("assignment", assignment), "assignment", as_columns(columns)
    )
    if not names_of_columns:
        raise OptionError("columns is empty; expected columns of assignment, such as browser")
    periods = require(assignment, "assignment", as_columns(strata))
    stratum, labels = group_codes(assignment, "assignment", periods)
    plans = plans_of(expected, periods, labels, "strata")
    keys = [*as_columns(user_col), *as_columns(cluster), variant_col]
    users = assignment[list(dict.fromkeys(keys))].assign(**{_STRATUM: stratum})

    def counted(rows: pd.DataFrame, by: list[str], shares: Mapping[Any, Any]) -> pd.DataFrame:
        return experiment_health(
            rows,
            rows,
            user_col=user_col,
            variant_col=variant_col,
            expected=shares,
            by=by,
            confidence=confidence,
            cluster=cluster,
        )

    variants = group_codes(assignment, "assignment", [variant_col])[1][variant_col].tolist()
    whole = counted(
        users, [_STRATUM], {h: planned_shares(plan, variants) for h, plan in enumerate(plans)}
    )
    names = whole["variant"].drop_duplicates().reset_index(drop=True)
    planned, total = (
        whole[name].to_numpy().reshape(-1, len(names)) for name in ("expected_share", "n_assigned")
    )
    cells = pd.MultiIndex.from_product([range(len(planned)), names])
    parts = {}
    for name in dict.fromkeys(names_of_columns):
        level = (
            assignment[name].astype(object).where(assignment[name].notna(), "(null)").astype(str)
        )
        found = counted(
            users.assign(**{_LEVEL: level.to_numpy()}),
            [_LEVEL, _STRATUM],
            dict.fromkeys(names, 1.0),
        )
        n_users = found.pivot(index=_LEVEL, columns=[_STRATUM, "variant"], values="n_assigned")
        parts[name] = n_users.reindex(columns=cells, fill_value=0).fillna(0)
    levels = pd.concat(parts, names=["column"])
    each = levels.to_numpy(np.float64).reshape(-1, *planned.shape)
    n, (chi2, p) = (
        each.sum(axis=1).astype(np.int64),
        np.array([share_tests(own, planned) for own in each]).T,
    )
    of_stratum = each.sum(axis=2, keepdims=True) * planned
    expect, spread = of_stratum.sum(axis=1), np.sqrt((of_stratum * (1 - planned)).sum(axis=1))
    far = (n - expect) / np.maximum(spread, 1e-300)
    far = (np.abs(far) + 1e-9 * (far < 0)).argmax(
        axis=1
    )  # of two variants, the one that lacks users
    row, first = np.arange(len(n)), levels.index.to_frame(index=False)
    p_adj, p_all = adjust(p, "holm"), share_tests(total, planned)[1]
    without = np.array([share_tests(np.maximum(total - own, 0), planned)[1] for own in each])
    alpha = 1 - confidence
    broken = p_adj < alpha
    result = pd.DataFrame(
        {
            "column": first["column"],
            "level": first[_LEVEL],
            "n_users": n.sum(axis=1),
            "variant": names.take(far).reset_index(drop=True),
            "n_variant": n[row, far],
            "n_expected": expect[row, far],
            "chi2": chi2,
            "p_value": p,
            "p_adj": p_adj,
            "p_all": p_all,
            "p_without": without,
            "explains": broken & (p_all < alpha) & (without >= alpha),
            "remarks": np.select([np.isnan(p), broken], ["not_tested", "sample_ratio"], ""),
        }
    )
    add_verdicts(result, "ratio", ["fits"] * len(result))
    return result.sort_values("p_value", kind="stable", ignore_index=True)

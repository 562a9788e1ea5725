"""Where a broken sample ratio comes from: the browser, country or day whose users do not fit the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import OptionError
from ...inputs.door import takes_columns
from ...inputs.options import Options, as_columns
from ...stats.many_tests import adjust
from ...stats.shares import share_test
from ..experiment_columns import frame_of, require
from .experiment_health import experiment_health
from .verdict import WITHHELD

_LEVEL = "level of the column"


@takes_columns("user_col")
def find_srm(
    assignment: pd.DataFrame,
    columns: str | Sequence[str],
    *,
    expected: Mapping[Any, float] | None = None,
    user_col: str | Sequence[str] = "user_id",
    variant_col: str = "variant",
    cluster: str | Sequence[str] | None = None,
    confidence: float = 0.999,
    options: Options | None = None,
) -> pd.DataFrame:
    """Find the levels of columns (browser, country, day) in which the users per variant do not fit the plan.

    For every level, Pearson's χ² = Σ (O_v − E_v)²/E_v of its users per variant O_v against E_v = N·share_v, Holm's
    correction over all levels of all columns, and the same test of all other users: if that fits although the whole
    does not, the level explains the broken ratio.

    Parameters
    ----------
    assignment : DataFrame
        One row per assigned user; users in two variants are left out.
    columns : str or list of str
        Columns of `assignment` that were known before the assignment. Null is a level of its own.
    expected : mapping, optional
        Planned share (or weight, > 0) of every variant. Default: equal shares.
    user_col : str or list of str, default "user_id"
        Key of a user.
    variant_col : str, default "variant"
        Column of the variant.
    cluster : str or list of str, optional
        Columns that were assigned as a whole, and are counted in place of users, as in `experiment_health`.
    confidence : float, default 0.999
        A level does not fit where p_adj is below alpha = 1 − confidence.
    options : Options, optional
        `user_col` of a project, where it is not given here.

    Returns
    -------
    DataFrame
        One row per level, the smallest p first: `column`, `level` (as text), `n_users`, `variant` (the one that is
        farthest from its plan, in standard deviations), `n_variant`, `n_expected` (of that variant), `chi2`, `p_value`
        (null where an expected count is below 8), `p_adj`, `p_all` (of all users), `p_without` (of all other users),
        `explains` (the level does not fit, the whole does not, and without the level it does), `verdict` ("invalid:
        sample ratio", "fits" or "not tested").

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
    >>> lost = users[(users["browser"] == "x") | (users["variant"] == "A") | (users["user_id"] % 10 > 8)]
    >>> found = rd.experiments.find_srm(lost, "browser", expected={"A": 1, "B": 1})
    >>> found[["level", "n_users", "variant", "n_variant", "p_without", "explains", "verdict"]].round(3)
      level  n_users variant  n_variant  p_without  explains                verdict
    0     y      240       B         40        1.0      True  invalid: sample ratio
    1     x      600       A        300        0.0     False                   fits
    """
    names = require(frame_of("assignment", assignment), "assignment", as_columns(columns))
    if not names:
        raise OptionError("columns is empty; expected columns of assignment, such as browser")
    keys = [*as_columns(user_col), *as_columns(cluster), variant_col]
    users = assignment[list(dict.fromkeys(keys))]
    how = {"user_col": user_col, "variant_col": variant_col, "expected": expected, "cluster": cluster}

    def counted(by: str | None, rows: pd.DataFrame) -> pd.DataFrame:
        return experiment_health(rows, rows, by=by, confidence=confidence, **how)  # type: ignore[arg-type]

    whole = counted(None, users)
    planned, n_variants = whole["expected_share"].to_numpy(), len(whole)
    parts = []
    for name in dict.fromkeys(names):
        level = assignment[name].astype(object).where(assignment[name].notna(), "(null)").astype(str)
        parts.append(counted(_LEVEL, users.assign(**{_LEVEL: level.to_numpy()})).assign(column=name))
    health = pd.concat(parts, ignore_index=True)
    n = health["n_assigned"].to_numpy().reshape(-1, n_variants)
    first = health.iloc[::n_variants].reset_index(drop=True)
    expect = n.sum(axis=1, keepdims=True) * planned
    far = (n - expect) / np.sqrt(np.maximum(expect * (1 - planned), 1e-300))
    far = (np.abs(far) + 1e-9 * (far < 0)).argmax(axis=1)  # of two variants, the one that lacks users
    row = np.arange(len(n))
    p, total = first["srm_p"].to_numpy(np.float64), whole["n_assigned"].to_numpy()
    p_adj, p_all = adjust(p, "holm"), float(whole["srm_p"].iloc[0])
    without = np.array([share_test(np.maximum(total - own, 0), planned)[1] for own in n])
    alpha = 1 - confidence
    broken = p_adj < alpha
    result = pd.DataFrame({
        "column": first["column"], "level": first[_LEVEL], "n_users": n.sum(axis=1),
        "variant": whole["variant"].take(far).reset_index(drop=True), "n_variant": n[row, far],
        "n_expected": expect[row, far], "chi2": first["srm_chi2"], "p_value": p, "p_adj": p_adj, "p_all": p_all,
        "p_without": without, "explains": broken & (p_all < alpha) & (without >= alpha),
        "verdict": np.select([np.isnan(p), broken], ["not tested", WITHHELD["sample_ratio"]], "fits"),
    })  # fmt: skip
    return result.sort_values("p_value", kind="stable", ignore_index=True)

"""From p-values to decisions: adjustment for many tests, and the verdict in plain words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..errors import OptionError
from ..inputs.options import as_columns
from ..metrics.direction import direction_of
from .columns import frame_of, group_codes, metric_values, require, share, split
from .options import Correction, check_literal
from .stats.many_tests import adjust

__all__ = ["adjust_pvalues"]


def adjust_pvalues(
    table: pd.DataFrame,
    *,
    p_col: str = "p_value",
    method: Correction = "holm",
    family: str | Sequence[str] | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Adjust p-values for the number of tests read together, so that `alpha` holds for all of them.

    With p₍₁₎ ≤ .. ≤ p₍ₘ₎ the p-values of a family: holm (family-wise error) min(1, max_{j≤i} (m − j + 1)·p₍ⱼ₎);
    bonferroni min(1, m·p); bh (false discovery rate) min(1, min_{j≥i} m/j·p₍ⱼ₎).

    Parameters
    ----------
    table : DataFrame
        A comparison, or any frame with a column of p-values. Null p-values are not tests and are not counted.
    p_col : str, default "p_value"
        Column of p-values in [0, 1].
    method : {"holm", "bh", "bonferroni", "none"}, default "holm"
        Adjustment.
    family : str or list of str, optional
        Columns whose values tell families apart (`"metric"`: each metric is adjusted by itself). Default: the
        whole table is one family.
    alpha : float, default 0.05
        Level of `reject`.

    Returns
    -------
    DataFrame
        The table with `p_adj` (float64, null where p is) and `reject` (bool: p_adj ≤ alpha); columns of these
        names are replaced.

    Raises
    ------
    ColumnError
        If a column is missing.
    OptionError
        If `method` or `alpha` is not valid, or a p-value is outside [0, 1].

    References
    ----------
    Holm 1979; Benjamini & Hochberg 1995.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> rd.adjust_pvalues(pd.DataFrame({"p_value": [0.01, 0.04, 0.03]}))
       p_value  p_adj  reject
    0     0.01   0.03    True
    1     0.04   0.06   False
    2     0.03   0.06   False
    """
    check_literal("method", method, Correction)
    share("alpha", alpha)
    families = require(frame_of("table", table), "table", as_columns(family))
    p = metric_values(table, "table", p_col)
    outside = (p < 0) | (p > 1)
    if outside.any():
        raise OptionError(
            f"table[{p_col!r}] is outside [0, 1] in {int(outside.sum()):,} rows: {p[outside][:5].tolist()}"
        )
    result = table.copy()
    result["p_adj"] = _adjusted(p, table, families, method)
    result["reject"] = result["p_adj"].to_numpy() <= alpha
    return result


def _adjusted(p: npt.NDArray[np.float64], table: pd.DataFrame, families: list[str], method: Correction) -> Any:
    codes, labels = group_codes(table, "table", families)
    p_adj = np.full(len(p), np.nan)
    for rows in split(codes, len(labels)):
        p_adj[rows] = adjust(p[rows], method)
    return p_adj


def check_smaller(
    smaller_is_better: str | Collection[str] | None, columns: Mapping[str, str], spec: Mapping[str, Any]
) -> set[str]:
    """Metrics (name → column) of which less is better; by default those whose registered metric says so.

    `spec` is what `evaluate` wrote about the columns, if it did; else the column's own name tells the metric.
    """
    if smaller_is_better is None:
        known = spec.get("metrics", {})
        return {
            name
            for name, column in columns.items()
            if better_of(known[column]["name"] if column in known else column) == "smaller"
        }
    named = set(as_columns(smaller_is_better if isinstance(smaller_is_better, str) else list(smaller_is_better)))
    unknown = sorted(named - set(columns))
    if unknown:
        raise OptionError(f"smaller_is_better names {unknown}, which are not compared; metrics are {list(columns)}")
    return named


def better_of(column: str) -> str | None:
    """Return "larger" or "smaller" for a column such as "first_rank@10", None where the metric has no direction."""
    known = direction_of(column)
    return None if known is None else known.better


def decide(
    table: pd.DataFrame,
    *,
    correction: Correction,
    family: str | Sequence[str] | None,
    alpha: float,
    smaller: set[str],
    primary: Collection[str] = (),
    invalid: npt.NDArray[np.bool_] | None = None,
    equivalent: npt.NDArray[np.bool_] | None = None,
) -> dict[str, Any]:
    """Columns `p_adj`, `reject` and `verdict` of a comparison.

    Verdict, first rule that holds: "invalid: sample ratio" (users per variant do not fit the plan) · "better" or
    "worse" (adjusted p ≤ alpha; the sign of `diff`, turned round where less is better) · "equivalent" (TOST
    p ≤ alpha; only with a margin) · "no difference shown" (also where there was no test; the warning says why).
    """
    families = require(table, "the comparison", as_columns(family))
    labelled = table[families].copy()
    if primary:
        labelled["primary metric"] = table["metric"].isin(list(primary)).to_numpy()
    p_adj = _adjusted(table["p_value"].to_numpy(), labelled, list(labelled.columns), correction)
    reject = p_adj <= alpha
    up = (table["diff"].to_numpy() > 0) != table["metric"].isin(list(smaller)).to_numpy()
    verdict = np.where(reject, np.where(up, "better", "worse"), "no difference shown").astype(object)
    if equivalent is not None:
        verdict[~reject & equivalent] = "equivalent"
    if invalid is not None:
        verdict[invalid] = "invalid: sample ratio"
    return {"p_adj": p_adj, "reject": reject, "verdict": verdict}

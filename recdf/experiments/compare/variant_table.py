"""From the rows of single comparisons to the table of an experiment: labels, checks, adjusted
p-values, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from ...judge.verdict import add_verdicts, effects_of, remark
from ..choices import Alternative, Better
from ..decide.adjust_pvalues import read_together
from ..decide.balance import Difference
from ..decide.sample_ratio import Arms, SampleRatio
from ..experiment_columns import Codes, Floats
from ..settings import Settings
from .two_sample import VARIANT_RESULT_COLUMNS, Row


def compare_each(arms: Arms, test: Callable[[int, tuple[int, int]], list[Row]]) -> pd.DataFrame:
    """Test every pair of variants in every group; `test` takes the group and the pair, and gives a
    row per metric.

    Returns one row per (group, metric, pair) with its labels and numbers.
    """
    found: list[Row] = []
    for g in range(len(arms.groups)):
        for of_metric in zip(*[test(g, pair) for pair in arms.pairs], strict=True):
            found += of_metric
    table = pd.DataFrame(found)
    group, *pair = arms.of_rows(len(table))
    for side, variant in zip(("control", "treatment"), pair, strict=True):
        table[side] = arms.variants.iloc[variant].reset_index(drop=True)
    return pd.concat([arms.groups.iloc[group].reset_index(drop=True), table], axis=1)


def decide(
    arms: Arms,
    result: pd.DataFrame,
    ratio: SampleRatio,
    better: Mapping[str, Better | None],
    settings: Settings,
    differences: Sequence[Difference] = (),
    balance: Mapping[str, Floats] | None = None,
    intervals: Callable[[pd.DataFrame, Floats, Alternative], None] | None = None,
) -> pd.DataFrame:
    """Add what the checks found, the adjusted p-values and the verdicts, with which side of each
    metric is better."""
    at = arms.of_rows(len(result))
    by_cols = list(arms.groups.columns)
    remark(result, ratio.fails[at[0]], "sample_ratio")
    remark(result, ~ratio.checked[at[0]], "ratio_not_checked")
    _add_differences(result, at, differences, balance or {})
    read_together(result, settings, intervals)
    add_verdicts(result, "variants", effects_of(result, result["reject"].to_numpy(), better))
    result["srm_p"], result["seen_loss"] = ratio.p[at[0]], ratio.seen[at[0], at[2]]
    result["better"] = pd.Series([better[metric] or "" for metric in result["metric"]], dtype=str)
    return settings.compared(result, VARIANT_RESULT_COLUMNS, "variants", by_cols)


def _add_differences(
    table: pd.DataFrame,
    at: tuple[Codes, Codes, Codes],
    differences: Sequence[Difference],
    balance: Mapping[str, Floats],
) -> None:
    """Name what differs between the two variants of every row, with p of their covariates."""
    names = pd.Series([""] * len(table), dtype=object)
    for code, name, where, metrics in differences:
        rows = where[at[: where.ndim]] & (
            True if metrics is None else table["metric"].isin(metrics).to_numpy()
        )
        names[rows] += f", {name}"
        remark(table, rows, code)
    table["unbalanced"] = names.str.removeprefix(", ").astype(str)
    p = {metric: of[at] for metric, of in balance.items()}
    table["balance_p"] = [
        p[metric][i] if metric in p else np.nan for i, metric in enumerate(table["metric"])
    ]

"""From the rows of single comparisons to the table of an experiment: labels, checks, adjusted p-values, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...errors import OptionError
from ...inputs.options import as_columns
from ...stats.many_tests import adjust
from ...tables.comparisons import Comparison
from ..choices import Better
from ..decide.balance import Difference
from ..decide.sample_ratio import SampleRatio
from ..decide.verdict import Families, read_together, variant_verdicts
from ..experiment_columns import Codes, Floats, Mask
from ..units import UNEQUAL
from .two_sample import VARIANT_RESULT_COLUMNS, Row, Settings

__all__: list[str] = []


@dataclass(frozen=True)
class Arms:
    """Labels of the segments (one row without columns if there are none) and of the variants, one of them control."""

    groups: pd.DataFrame
    variants: pd.Series
    control: int

    @classmethod
    def of(cls, groups: pd.DataFrame, variants: pd.Series, control: Any, role: str) -> Arms:
        """Refuse a control that is not among the variants, and a variant that is alone."""
        names, where = variants.tolist(), f"{role}[{variants.name!r}]"
        if control not in names:
            raise OptionError(f"control={control!r} is not in {where}; its variants are {names}")
        if len(names) < 2:
            raise OptionError(f"{where} has one variant, {names[0]!r}; a comparison needs at least two")
        return cls(groups, variants, names.index(control))

    @property
    def treatments(self) -> list[int]:
        return [t for t in range(len(self.variants)) if t != self.control]


class Tested(NamedTuple):
    """One row per (group, metric, treatment) with its labels and numbers, and the group and variant of each."""

    table: pd.DataFrame
    group: Codes
    variant: Codes


def compare_each(arms: Arms, test: Callable[[int, int], list[Row]]) -> Tested:
    """Test every treatment in every group; `test` takes the group and the treatment, and gives a row per metric."""
    found: list[Row] = []
    where: list[tuple[int, int]] = []
    for g in range(len(arms.groups)):
        compared = [test(g, t) for t in arms.treatments]
        for of_metric in zip(*compared, strict=True):
            found += of_metric
            where += [(g, t) for t in arms.treatments]
    table = pd.DataFrame(found)
    in_group, treatment = np.array(where).T
    table["treatment"] = arms.variants.iloc[treatment].reset_index(drop=True)
    table["control"] = arms.variants.iloc[[arms.control] * len(where)].reset_index(drop=True)
    labels = arms.groups.iloc[in_group].reset_index(drop=True)
    return Tested(pd.concat([labels, table], axis=1), in_group, treatment)


def decide(
    tested: Tested,
    ratio: SampleRatio,
    families: Families,
    better: Mapping[str, Better | None],
    settings: Settings,
    differences: Sequence[Difference] = (),
    balance: Mapping[str, Floats] | None = None,
) -> pd.DataFrame:
    """Add what the checks found, the adjusted p-values and the verdicts, with which side of each metric is better."""
    result, group, _ = tested
    by_cols = [name for name in result.columns if name not in VARIANT_RESULT_COLUMNS]
    _add_warning(result, ratio.fails[group], "sample_ratio")
    moved = adjust(result["p_denominator"].to_numpy(), "holm") < UNEQUAL
    _add_warning(result, moved, "denominator_differs")
    _add_differences(tested, differences, balance or {})
    read_together(result, families, settings.alternative)
    verdicts = variant_verdicts(result, result["reject"].to_numpy(), better, ratio.checked[group])
    result["verdict"] = pd.Series(verdicts, dtype=str)
    result["srm_p"] = ratio.p[group]
    result["confidence"] = settings.confidence
    result = result[[*by_cols, *VARIANT_RESULT_COLUMNS]]
    result.attrs["recdf_comparison"] = {
        "kind": "variants",
        "by": by_cols,
        "confidence": settings.confidence,
        "alternative": settings.alternative,
        "correction": families.correction,
        "family": as_columns(families.family),
        "primary": list(families.primary),
        "sequential_n": settings.sequential_n,
    }
    return Comparison.of(result)


def _add_differences(tested: Tested, differences: Sequence[Difference], balance: Mapping[str, Floats]) -> None:
    """Name what differs between the two variants of every row, with p of their covariates."""
    table, *at = tested
    names = pd.Series([""] * len(table), dtype=object)
    for warning, name, where, metrics in differences:
        rows = where[tuple(at)[: where.ndim]] & (True if metrics is None else table["metric"].isin(metrics).to_numpy())
        names[rows] += f", {name}"
        _add_warning(table, rows & ~table["warning"].str.endswith(warning).to_numpy(), warning)
    table["unbalanced"] = names.str.removeprefix(", ").astype(str)
    p = {metric: of[tuple(at)] for metric, of in balance.items()}
    table["balance_p"] = [p[metric][i] if metric in p else np.nan for i, metric in enumerate(table["metric"])]


def _add_warning(table: pd.DataFrame, rows: Mask, name: str) -> None:
    if rows.any():
        table.loc[rows, "warning"] = [f"{before}; {name}".removeprefix("; ") for before in table.loc[rows, "warning"]]

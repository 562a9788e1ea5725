"""Whether the users per variant fit the plan: the shares of the variants, and that they stay the same over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import ColumnError, OptionError, examples, kind_of
from .columns import Codes, Floats, Mask, column_codes, distinct, require
from .experiment_rows import ExperimentRows
from .health import planned_shares
from .stats.counts import LEAST_EXPECTED, independence_test, share_test

__all__: list[str] = []

# Level of these checks: an experiment with thousands of users finds a broken ratio far beyond it.
ALPHA = 0.001

# Periods into which a time of assignment is cut, each with as many users.
PERIODS = 10


class SampleRatio(NamedTuple):
    """Per group: whether the users per variant do not fit the plan, and whether that was tested at all."""

    fails: Mask
    checked: Mask


class UnitCounts(NamedTuple):
    """Units of every variant: those of each group (a row of the array), and of all groups, None if unknown."""

    by_group: Floats
    overall: Floats | None


def check_sample_ratio(
    expected: Mapping[Any, float] | None,
    health: pd.DataFrame | None,
    groups: pd.DataFrame,
    variants: list[Any],
    count: Callable[[], UnitCounts],
) -> SampleRatio:
    """The sample ratio from the planned shares and the counted units, or from what `experiment_health` found."""
    if expected is not None and health is not None:
        raise OptionError("expected and health are both given; the health table has the expected shares already")
    if health is not None:
        return _from_health(health, groups, variants)
    if expected is not None:
        return _from_plan(planned_shares(expected, variants), variants, count())
    nothing = np.zeros(len(groups), bool)
    return SampleRatio(nothing, nothing)


def _from_plan(shares: Mapping[Any, float], variants: list[Any], counts: UnitCounts) -> SampleRatio:
    """Units per variant against the planned shares, in every group and over all of them."""
    absent = [name for name in shares if name not in variants]
    planned = [shares[name] for name in [*variants, *absent]]

    def p_value(units: Floats) -> float:
        return share_test([*units, *[0] * len(absent)], planned)[1]

    p = np.array([p_value(units) for units in counts.by_group])
    overall = np.nan if counts.overall is None else p_value(counts.overall)
    return SampleRatio((p < ALPHA) | (overall < ALPHA), ~np.isnan(p) | ~np.isnan(overall))


def count_units(rows: ExperimentRows) -> UnitCounts:
    """Distinct units of every variant, in each group and over all of them."""
    n_groups, n_variants = len(rows.groups), len(rows.variants)
    units = rows.randomised
    unit = np.arange(len(rows.variant)) if units is None else units
    n_units = int(unit.max(initial=-1)) + 1

    def counts(cell: Codes, n: int) -> Floats:
        once = distinct(cell * n_units + unit, n * n_variants * n_units)
        return np.bincount(once // n_units, minlength=n * n_variants).reshape(n, -1).astype(np.float64)

    by_group = counts(rows.group * n_variants + rows.variant, n_groups)
    # Without a key, rows of several groups could be the same users, whose counts must not be added.
    overall = counts(rows.variant, 1)[0] if units is not None or n_groups == 1 else None
    return UnitCounts(by_group, overall)


def _from_health(health: pd.DataFrame, groups: pd.DataFrame, variants: list[Any]) -> SampleRatio:
    """What a table of `experiment_health` says of every group; one without segments speaks for all groups."""
    if not isinstance(health, pd.DataFrame):
        raise TypeError(f"health is {kind_of(health)}; expected the table of rd.experiment_health")
    require(health, "health", ["variant", "srm_p", "srm_flag"])
    lacking = [name for name in variants if name not in health["variant"].tolist()]
    if lacking:
        raise OptionError(
            f"health has no variant {examples(lacking)}; it has {examples(health['variant'])}. "
            "Pass the table that experiment_health made of this experiment"
        )
    by = list(health.columns[: list(health.columns).index("variant")])
    unknown = [name for name in by if name not in groups.columns]
    if unknown:
        raise OptionError(f"health is by {by}, but the comparison is not by {unknown}; make it without them")
    one = health.drop_duplicates(by) if by else health.iloc[:1]
    flagged, tested = (one["srm_flag"] != "").to_numpy(), one["srm_p"].notna().to_numpy()
    if not by:
        n = len(groups)
        return SampleRatio(np.full(n, flagged[0]), np.full(n, tested[0]))
    place = {key: i for i, key in enumerate(zip(*(one[name] for name in by), strict=True))}
    keys = list(zip(*(groups[name] for name in by), strict=True))
    absent = [key for key in keys if key not in place]
    if absent:
        raise OptionError(f"health has no rows for {by} {absent[0]}; make it with by={by} from the same assignment")
    at = [place[key] for key in keys]
    return SampleRatio(flagged[at], tested[at])


def shares_change(data: pd.DataFrame, time_col: str | None, rows: ExperimentRows) -> Mask:
    """Per group: the shares of the variants differ between periods (or cohorts) of `time_col`.

    Then users of different periods are compared, and an effect of the period looks like one of the treatment.
    Times and numbers are cut into periods of equal size; other values are taken as they are.
    """
    changes = np.zeros(len(rows.groups), bool)
    if time_col is None:
        return changes
    if time_col not in data.columns:
        raise ColumnError(f"data has no column {time_col!r} (time_col); it has {', '.join(map(repr, data.columns))}")
    code, n_codes = column_codes(data, "data", time_col)
    for g in range(len(changes)):
        mine = rows.group == g
        table = np.zeros((n_codes, len(rows.variants)))
        np.add.at(table, (code[mine], rows.variant[mine]), 1)
        share = table.sum(axis=0).min() / max(table.sum(), 1)
        periods = _merge_periods(table, share, ordered=pd.api.types.is_numeric_dtype(data[time_col].dtype)
                                 or pd.api.types.is_datetime64_any_dtype(data[time_col].dtype))  # fmt: skip
        changes[g] = independence_test(periods)[1] < ALPHA
    return changes


def _merge_periods(table: Floats, least_share: float, *, ordered: bool) -> Floats:
    """Rows of neighbouring times put together so that χ² holds; small cohorts are put together too."""
    users = table.sum(axis=1)
    if ordered:
        most = max(1, min(PERIODS, int(users.sum() * least_share / LEAST_EXPECTED)))
        period = np.minimum((np.cumsum(users) - users / 2) / max(users.sum(), 1) * most, most - 1).astype(np.int64)
    else:
        small = users * least_share < LEAST_EXPECTED
        period = np.where(small, 0, np.cumsum(~small))
    merged = np.zeros((int(period.max(initial=0)) + 1, table.shape[1]))
    np.add.at(merged, period, table)
    return np.asarray(merged[merged.sum(axis=1) > 0])

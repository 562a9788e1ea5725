"""A ramp-up seen from the days of exposure: the users of each period, and the strata within which
to compare them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from ...judge.cautions import HEALTH_ALPHA, UNEQUAL
from ...stats.shares import LEAST_EXPECTED, equal_shares_test, independence_test
from ..decide.balance import merge_periods
from ..experiment_columns import Floats, Mask, group_codes
from ..experiment_rows import ExperimentRows
from .user_periods import People, Periods, days_of


class Exposures:
    """Users by the day of their exposure, which is the first of their cluster where clusters were
    assigned.

    If columns of strata are named, the day is one within a stratum; `labels` are their values.
    """

    def __init__(
        self, people: People, periods: Periods, users: ExperimentRows, strata: list[str]
    ) -> None:
        start, stop, variant, unit = periods.start, periods.stop, people.variant, users.randomised
        stratum, self.labels = group_codes(people.frame, "assignment", strata)
        day = stratum * 0 if people.exposed is None else days_of(people.exposed, people.zone)
        day = day - day.min(initial=np.iinfo(day.dtype).max)
        n_days = int(day.max(initial=0)) + 1
        known, cohort = np.unique(stratum * n_days + day, return_inverse=True)
        self.cohort = cohort
        if unit is not None and unit is users.clusters:
            order = np.lexsort([cohort, unit])
            first = order[np.unique(unit[order], return_index=True)[1]]
            stop = np.zeros(len(first), np.int64)
            np.maximum.at(stop, unit, periods.stop)
            start, variant, cohort = start[first], variant[first], cohort[first]
            self.cohort = cohort[unit]
        shape = len(known), len(people.variants)

        def table(present: Mask) -> Floats:
            cell = cohort[present] * shape[1] + variant[present]
            return (
                np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)
            )

        there = [table((start <= period) & (period < stop)) for period in range(len(periods.rows))]
        self.ever = table(start < stop)
        # Assigned units by stratum and variant in every period, and (last) in all of them together.
        of_label = known // n_days == np.arange(len(self.labels))[:, None]
        self.counts = of_label.astype(np.float64) @ np.array([*there, self.ever])
        p = np.array([_p_of_shares(one) for one in [*there, self.ever]])
        # Periods whose users were assigned with changing shares.
        self.changed = p[:-1] < HEALTH_ALPHA
        # Strata are right without a ramp-up too, so that a hint is enough.
        self.ramped = bool(strata or self.changed.any() or p[-1] < UNEQUAL)

    def within(self, users: ExperimentRows, arms: tuple[int, int]) -> ExperimentRows:
        """The users in strata of two variants: days of exposure, small ones put together where the
        shares are alike."""
        if not self.ramped:
            return users
        table = self.ever[:, list(arms)]
        strata, of_day = [table[0]], np.zeros(len(table), np.int64)
        for day in range(1, len(table)):
            last, new = strata[-1], table[day]
            small = min(last.min(), new.min()) < LEAST_EXPECTED
            if (
                small
                and not equal_shares_test([last[1], new[1]], [last.sum(), new.sum()])[1]
                < HEALTH_ALPHA
            ):
                strata[-1] = last + new
            else:
                strata.append(new)
            of_day[day] = len(strata) - 1
        labels = pd.DataFrame({"exposed": np.arange(len(strata))})
        return replace(users, strata=(of_day[self.cohort], labels), drop_thin=True)


def _p_of_shares(table: Floats) -> float:
    """p that the variants which are there had the same shares on all days."""
    table = table[table.any(axis=1)]
    table = table[:, table.any(axis=0)]
    if not table.size:
        return np.nan
    share = table.sum(axis=0).min() / table.sum()
    return independence_test(merge_periods(table, share, True))[1]

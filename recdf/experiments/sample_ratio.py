"""Whether the users per variant fit the shares that were planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .columns import Codes, Mask, distinct
from .experiment_rows import ExperimentRows
from .health import planned_shares
from .stats.counts import share_test

__all__: list[str] = []

# Level of the check: an experiment with thousands of users finds a broken ratio far beyond it.
ALPHA = 0.001


def fails_sample_ratio(expected: Mapping[Any, float] | None, rows: ExperimentRows) -> Mask:
    """Per group: the units per variant do not fit the planned shares, there or over all groups."""
    n_groups = len(rows.groups)
    if expected is None:
        return np.zeros(n_groups, bool)
    names = rows.names
    shares = planned_shares(expected, names)
    planned = [shares[name] for name in [*names, *(name for name in shares if name not in names)]]
    units = rows.randomised
    unit = np.arange(len(rows.variant)) if units is None else units
    n_units = int(unit.max()) + 1

    def fails(cell: Codes, n: int) -> Mask:
        once = distinct(cell * n_units + unit, n * len(planned) * n_units)
        counts = np.bincount(once // n_units, minlength=n * len(planned)).reshape(n, -1)
        return np.array([share_test(row, planned)[1] < ALPHA for row in counts])

    # Without a key, rows of several groups could be the same users, whose counts must not be added.
    overall = bool(fails(rows.variant, 1)[0]) if units is not None or n_groups == 1 else False
    return fails(rows.group * len(planned) + rows.variant, n_groups) | overall

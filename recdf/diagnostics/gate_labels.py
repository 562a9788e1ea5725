"""Both sides of a gate with labels of people and cheap ones: the lists with both, and their
change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from ..experiments.compare.cheap_labels import JUDGED, join_labels, shared_metrics
from ..experiments.compare.runs import Runs, read_runs
from ..experiments.experiment_columns import Floats
from ..stats.allowed_change import Change, PoweredChange
from ..stats.prediction_powered import labelled_units
from .gate_sides import Side, check_metrics, checks_table, data_checks, pair_of, read_side

__all__: list[str] = []


def runs_of_both_labels(
    cheap: Any,
    sides: Sequence[Side],
    metrics: Sequence[str],
    keys: list[str],
    units: list[str],
    weight: str | None,
) -> tuple[Runs, pd.DataFrame]:
    """Return the lists of both sides with both labels, and what was compared of the cheap ones."""
    roles = [side.role for side in sides]
    given = [
        read_side(role, one)
        for role, one in pair_of(cheap, roles, "cheap", "results under cheap labels").items()
    ]
    check_metrics([side._replace(role=f"cheap of the {side.role}") for side in given], metrics)
    own = read_runs({side.role: side.per_user for side in given}, keys, [], "model", units)
    checks = checks_table(
        {f"cheap: {name}": pair for name, pair in data_checks(given, own, metrics).items()}
    )
    both = {}
    for side, more in zip(sides, given, strict=True):
        shared_metrics(side.per_user, more.per_user, metrics, side.role)
        both[side.role] = join_labels(side.per_user, more.per_user, metrics, keys, side.role)
    runs = read_runs(both, keys, [], "model", units)
    return runs if weight is None else runs.weighted(weight), checks


def powered_change(change: Change, both: Floats, cheap: Floats, runs: Runs) -> PoweredChange:
    """Return the change from both labels beside that of people alone."""
    sign = -1 if change.smaller else 1
    y, f = (sign * (one[0] - one[1]) for one in (both, cheap))
    of_base = (both[1], cheap[1]) if change.relative else (0 * y + 1, 0 * f + 1)
    judged = np.asarray((runs.table(JUDGED) > 0).any(axis=0))
    gains, scales = (
        labelled_units(one, other, judged, runs.weights, runs.unit_of_list)
        for one, other in ((y, f), of_base)
    )
    own = {one.name: getattr(change, one.name) for one in fields(Change)}
    return PoweredChange(**own, gains=gains, scales=scales)

"""Per-user values of several models as one table: the same users in the columns, a model in each
row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from ...errors import DataError, DuplicateError, OptionError
from ...inputs.sorting import distinct
from ...judge.per_user_columns import (
    Codes,
    frame_of,
    group_codes,
    key_codes,
    metric_values,
    read_weight,
    require,
    some_keys,
    unit_of,
)
from ...stats.numbers import Floats
from ..choices import PairMissing

FEW_VALUES = 20  # a column of the key with fewer values holds folds or weekdays rather than users


@dataclass(frozen=True)
class Runs:
    """Rows of all models: `place` is model · n_cells + cell, a cell being a list or a (list, fold).

    `weights` are those of the lists, None if all count alike. A list of weight 0 does not count,
    whatever its values. `unit_of_list` is None where every list is a unit of its own. `repeated`
    says that another column looks like the unit, which nobody has named.
    """

    parts: list[tuple[str, pd.DataFrame]]
    models: list[Any]
    place: Codes
    n_cells: int
    list_of_cell: Codes | None
    unit_of_list: Codes | None
    repeated: bool
    show: Callable[[Codes], str]
    weights: Floats | None = None

    def table(self, metric: str) -> Floats:
        """Values of a metric as (models, cells), NaN where there is none; cells in the order of the
        ids."""
        values = np.full(len(self.models) * self.n_cells, np.nan)
        read = [metric_values(frame, role, metric) for role, frame in self.parts]
        values[self.place] = read[0] if len(read) == 1 else np.concatenate(read)
        table = values.reshape(len(self.models), self.n_cells)
        if self.weights is None:
            return table
        of_cell = self.weights if self.list_of_cell is None else self.weights[self.list_of_cell]
        return np.where(of_cell > 0, table, np.nan)

    def per_list(self, values: Floats) -> Floats:
        """Mean over the folds of each list, NaN skipped; the values themselves without folds."""
        if self.list_of_cell is None:
            return values
        defined = ~np.isnan(values)
        of = self.list_of_cell[defined]
        n = int(self.list_of_cell.max(initial=-1)) + 1
        with np.errstate(invalid="ignore"):
            return np.bincount(of, weights=values[defined], minlength=n) / np.bincount(
                of, minlength=n
            )

    def mean(self, values: Floats) -> float:
        """Mean over the lists that have a value in some cell; NaN if there is none."""
        of_list = self.per_list(values)
        there = ~np.isnan(of_list)
        if self.weights is not None and there.any():
            weights = self.weights[there]
            return float((weights * of_list[there]).sum() / weights.sum())
        return float(of_list[there].mean()) if there.any() else np.nan

    def unit_sums(self, d: Floats) -> tuple[Floats, Floats | None]:
        """Σ w d and Σ w over the lists of each unit that have a difference d; Σ w is None where it
        is 1 for all."""
        defined = ~np.isnan(d)
        if self.weights is None and self.unit_of_list is None and defined.all():
            return d, None
        weight = (
            defined.astype(np.float64)
            if self.weights is None
            else np.where(defined, self.weights, 0.0)
        )
        sums: Floats = np.where(defined, d, 0.0) * weight
        if self.unit_of_list is not None:
            sums, weight = (
                np.bincount(self.unit_of_list, part).astype(np.float64) for part in (sums, weight)
            )
        return sums, weight

    def weighted(self, name: str) -> Runs:
        """These runs with the weight of each list, which all rows of the list must agree on."""
        read = np.concatenate([read_weight(frame, role, name) for role, frame in self.parts])
        found = _of_lists(
            read, self.place % self.n_cells, self.list_of_cell, self.show, f"{name!r}", "weight"
        )
        return replace(self, weights=found)


def _of_lists(
    read: Any,
    cell: Codes,
    list_of_cell: Codes | None,
    show: Callable[[Codes], str],
    name: str,
    what: str,
) -> Any:
    """What the rows of each list say, on which they must agree."""
    of_row = cell if list_of_cell is None else list_of_cell[cell]
    found = np.zeros(int(of_row.max(initial=-1)) + 1, read.dtype)
    found[of_row] = read
    differ = found[of_row] != read
    if differ.any():
        raise DataError(
            f"{name} differs between the rows of {len(distinct(of_row[differ])):,} users "
            f"({show(distinct(cell[differ]))}); a user has one {what}, whatever the model"
        )
    return found


def repeated_unit(frame: pd.DataFrame, keys: Sequence[str], n_lists: int) -> bool:
    """Whether a column that is not the unit looks like one: a user_id, or a later column of the
    key, that repeats.

    Days and folds repeat too, so that a column of times, or one of few values, is none but for its
    name.
    """
    for name in dict.fromkeys([*keys[1:], "user_id"]):
        if (
            name == keys[0]
            or name not in frame.columns
            or pd.api.types.is_datetime64_any_dtype(frame[name].dtype)
        ):
            continue
        if (1 if name == "user_id" else FEW_VALUES) <= frame[name].nunique() < n_lists:
            return True
    return False


def read_runs(
    per_user: Any, keys: list[str], folds: list[str], model_col: str, units: Sequence[str] = ()
) -> Runs:
    """Check the frames and give every row its place; without `units` the unit is that of the
    key."""
    if isinstance(per_user, Mapping):
        models = list(per_user)
        parts = [
            (f"per_user[{name!r}]", frame_of(f"per_user[{name!r}]", per_user[name]))
            for name in models
        ]
        model = np.repeat(np.arange(len(parts)), [len(frame) for _, frame in parts])
    else:
        parts = [("per_user", frame_of("per_user", per_user))]
        model, labels = group_codes(per_user, "per_user", [model_col])
        models = labels[model_col].tolist()
    if len(models) < 2:
        raise OptionError(
            f"per_user has {len(models)} models ({models}); a comparison needs at least two"
        )
    for role, frame in parts:
        require(frame, role, [*keys, *folds])
    coded, n_cells = key_codes(parts, [*keys, *folds])
    cell = np.concatenate(coded)
    place = model * n_cells + cell

    def show(cells: Codes) -> str:
        """Keys of up to five cells."""
        names, rows = [*keys, *folds], [int(np.argmax(cell == one)) for one in cells[:5]]
        return some_keys(
            pd.concat([frame[names] for _, frame in parts], ignore_index=True), rows, names
        )

    counts = np.bincount(place, minlength=len(models) * n_cells)
    if (counts > 1).any():
        twice = distinct(np.flatnonzero(counts > 1) % max(n_cells, 1))
        raise DuplicateError(
            f"per_user has several rows for one model and {' and '.join([*keys, *folds])}, in "
            f"{len(twice):,} cases such as {show(twice)}. Name the columns that tell them apart in "
            "⟦+user_col=⟧ or ⟦+fold=⟧, or roll them up first with rd.experiments.roll_up"
        )
    list_of_cell = unit_of_list = None
    n_lists = n_cells
    if folds:
        list_of_cell = np.zeros(n_cells, np.int64)
        of_row, n_lists = key_codes(parts, keys)
        list_of_cell[cell] = np.concatenate(of_row)
    named = list(units) or unit_of(keys)
    if (
        not units and len(keys) > 1 and len(parts) == 1
    ):  # one row tells the unit of a list, since it is in the key
        first = np.zeros(n_lists, np.int64)
        first[cell if list_of_cell is None else list_of_cell[cell]] = np.arange(len(cell))
        (found,), n_units = key_codes([("per_user", per_user[named].take(first))], named)
        unit_of_list = found if n_units < n_lists else None
    elif named != keys:
        for role, frame in parts:
            require(frame, role, named)
        coded, n_units = key_codes(parts, named)
        found = _of_lists(
            np.concatenate(coded), cell, list_of_cell, show, " and ".join(named), "unit"
        )
        unit_of_list = found if n_units < n_lists else None
    unnamed = not units and unit_of_list is None
    repeated = unnamed and any(
        repeated_unit(frame, keys, min(n_lists, len(frame))) for _, frame in parts
    )
    return Runs(parts, models, place, n_cells, list_of_cell, unit_of_list, repeated, show)


def paired_values(
    metric: str,
    table: Floats,
    pair: tuple[int, int],
    runs: Runs,
    missing: PairMissing,
    takes_zero: bool = True,
) -> tuple[Floats, Floats, tuple[int, int]]:
    """Values of both models by cell, NaN in both or in none, and how many cells only one of them
    has.

    The error offers `missing="zero"` where the call takes it.
    """
    base, model = table[pair[0]], table[pair[1]]
    has_base, has_model = ~np.isnan(base), ~np.isnan(model)
    only = has_base & ~has_model, has_model & ~has_base
    n_only = int(only[0].sum()), int(only[1].sum())
    if missing == "raise" and any(n_only):
        first, second = (runs.models[i] for i in pair)
        or_zero = ', or "zero" to count 0 for the model that lacks them' if takes_zero else ""
        raise DataError(
            f"{metric!r} has a value for {first!r} only in {n_only[0]:,} users and for {second!r} "
            f"only in {n_only[1]:,} ({runs.show(np.flatnonzero(only[0] | only[1])[:5])}); pass "
            '⟦+missing="drop"⟧ to leave '
            f"them out{or_zero}"
        )
    if missing == "zero":
        return np.where(only[1], 0.0, base), np.where(only[0], 0.0, model), n_only
    both = has_base & has_model
    return np.where(both, base, np.nan), np.where(both, model, np.nan), n_only

"""The reader of every table of users: rows of an experiment or of past users, of several models, of
an assignment, as codes of units, groups, variants and clusters."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series
from pandas.api.types import is_datetime64_any_dtype

from ..errors import DataError, DuplicateError, OptionError, closest
from ..inputs.codes import first_rows
from ..inputs.ids import codes_of_ids
from ..inputs.options import Names, as_columns
from ..inputs.sorting import ascends, distinct, flags_at
from ..stats.numbers import Floats
from .choices import Columns, PairMissing, TwoPlaces
from .per_user_columns import (
    Codes,
    Mask,
    count_distinct,
    frame_of,
    group_codes,
    key_codes,
    list_columns,
    metric_values,
    read_weight,
    refuse_mixed_models,
    refuse_variant,
    require,
    some_keys,
    split,
    unit_of,
)


def only_rows(
    role: str,
    frame: DataFrame,
    codes: Codes,
    n: int,
    keys: Names,
    advice: str = "; expected one each",
) -> Codes:
    """Row of each of n keys in a frame, −1 where it has none; a key with several rows raises."""
    first = first_rows(codes, n)
    again = first[codes] != np.arange(len(codes))
    if again.any():
        raise DuplicateError(
            f"{role} has several rows per {[*keys]}: {int(again.sum()):,} rows too many "
            f"({some_keys(frame, again, keys)}){advice}",
            argument=role,
            count=int(again.sum()),
        )
    return first


@dataclass(frozen=True)
class Users:
    """Users of both frames as codes 0..n−1: the user of every row, and what is known of each
    user."""

    of_metric: Codes
    of_assignment: Codes
    n: int
    n_assigned: int
    several: Mask
    stranger: Mask

    @classmethod
    def of(cls, of_metric: Codes, of_assignment: Codes, n: int, variant: Codes) -> Users:
        """Users by the codes of both tables, and the variant of each row of the assignment."""
        assigned = flags_at(of_assignment, n)
        several = in_several_variants(of_assignment, variant, n)
        n_assigned = int(assigned.sum())
        return cls(of_metric, of_assignment, n, n_assigned, several, ~assigned[of_metric])

    @property
    def n_unassigned(self) -> int:
        return self.n - self.n_assigned


def match_users(
    per_user: DataFrame, assignment: DataFrame, keys: list[str], variant_col: str
) -> tuple[Users, Codes, DataFrame]:
    """Code the users, and the variant of each row of the assignment, with the labels of these;
    `several` users are in two variants, a `stranger` row is of a user in no variant."""
    tables = [("per_user", per_user), ("assignment", assignment)]
    (of_metric, of_assignment), n = key_codes(tables, keys)
    variant, variants = group_codes(assignment, "assignment", [variant_col])
    return Users.of(of_metric, of_assignment, n, variant), variant, variants


def in_several_variants(user: Codes, variant: Codes, n_users: int) -> Mask:
    """Whether each user code has rows of two variants."""
    one = np.full(n_users, -1, np.int64)
    one[user] = variant
    return flags_at(user[variant != one[user]], n_users)


def refuse_several(
    role: str, frame: DataFrame, codes: Codes, several: Mask, keys: Names, advice: str
) -> None:
    """Raise if users are in several variants."""
    if several.any():
        raise DataError(
            f"{np.count_nonzero(several):,} users of {role} are in more than one variant "
            f"({some_keys(frame, several[codes], keys)}); {advice}"
        )


def own_variant(
    per_user: DataFrame, assignment: DataFrame, keys: list[str], variant_col: str
) -> DataFrame:
    """Of metrics by variant, the rows of the variant that each user is assigned to, without
    `variant_col`.

    Users in no variant, or in several, keep the rows of one, so that the join counts or refuses
    them.
    """
    require(assignment, "assignment", [*keys, variant_col])
    require(per_user, "per_user", [*keys, variant_col])
    frames = [("per_user", per_user), ("assignment", assignment)]
    (shown, assigned), _ = key_codes(frames, [*keys, variant_col])
    (user, assigned_user), n_users = key_codes(frames, keys)
    own = np.isin(shown, assigned)
    # The pair of each user: the first of its rows, or of its own rows if there are any.
    pair = np.full(n_users, -1, np.int64)
    pair[user[::-1]] = shown[::-1]
    pair[user[own][::-1]] = shown[own][::-1]
    astray = np.isin(user, assigned_user) & ~np.isin(user, user[own])
    if astray.any():
        raise DataError(
            f"{len(distinct(user[astray])):,} users of per_user have lists of other variants than "
            f"their own only ({some_keys(per_user, astray, keys)}); to count what they were shown "
            f"all the same, evaluate without ⟦+by={variant_col!r}⟧"
        )
    result: DataFrame = per_user[shown == pair[user]].drop(columns=variant_col)
    result.attrs = copy.deepcopy(per_user.attrs)
    return result


# A column of joined users: the number of users of their variant who were left out, since they were
# in another variant too, divided by the number of those who stayed. Its sum over all users of a
# variant is how many were left out, and its sum over some of them is their part of that.
LEFT_OUT = "n_multi_variant"

# A column of fewer values names no units.
_LEAST_UNITS = 20
# Units that were assigned whole: the least share of known ids, the largest of ids in two arms, and
# how many standard errors more than by chance are in one.
_KNOWN_IDS, _IN_ONE_ARM, _BY_CHANCE = 0.95, 0.8, 6
# How many blocks of rows, and of how many, a column is looked at first.
_BLOCKS, _BLOCK = 1000, 64


@dataclass(frozen=True)
class ArmRows:
    """Rows of two variants, in the order of the ids of each, and the arm of each: 0 the control, 1
    the treatment.

    `rows` is None where they are all rows as they stand.
    """

    rows: Codes | None
    arm: Codes

    @classmethod
    def of(cls, control: Codes, treatment: Codes) -> ArmRows:
        arm = np.repeat(np.arange(2), [len(control), len(treatment)])
        return cls(np.concatenate([control, treatment]), arm)

    def take(self, values: Any) -> Any:
        return values if self.rows is None else values[self.rows]

    def where(self, mask: Mask) -> ArmRows:
        """Those of a mask of them."""
        kept = np.flatnonzero(mask) if self.rows is None else self.rows[mask]
        return ArmRows(kept, self.arm[mask])

    def defined(self, mask: Mask | None) -> ArmRows:
        """Those of a mask of all rows."""
        return self if mask is None else self.where(self.take(mask))

    def split(self, values: Any) -> tuple[Any, Any]:
        """Values of these rows by arm."""
        return values[self.arm == 0], values[self.arm == 1]

    @cached_property
    def n(self) -> tuple[int, int]:
        treatment = int(self.arm.sum())
        return len(self.arm) - treatment, treatment


@dataclass(frozen=True)
class ExperimentRows:
    """What is known of the rows besides their metrics.

    `variants` are the labels of the codes in `variant`, and `groups` those of the codes in `group`
    (one code without labels if there are no segments). `users` is None if no key is known.
    """

    data: DataFrame
    variants: Series
    variant: Codes
    groups: DataFrame
    group: Codes
    users: Codes | None
    strata: tuple[Codes, DataFrame] | None
    clusters: Codes | None
    # Code of the unit that rows may repeat, None where they have a cluster or nothing names a
    # larger unit.
    repeated: Codes | None = None
    guessed: str = ""  # the column that only looks like that unit
    movable: Codes | None = None  # strata that a treatment may move
    size: Floats | None = None  # of rows that are sums: how many rows each stands for
    drop_thin: bool = (
        False  # strata with fewer than two units in an arm are left out, and are no error
    )

    @cached_property
    def cells(self) -> list[Codes]:
        """Rows of each variant in each group."""
        n = len(self.variants)
        return split(self.group * n + self.variant, len(self.groups) * n)

    @cached_property
    def left_out(self) -> Floats:
        """How many users of each group and variant are in no row, since they were in several
        variants (groups, variants)."""
        shape = len(self.groups), len(self.variants)
        if LEFT_OUT not in self.data:
            return np.zeros(shape)
        each = np.nan_to_num(metric_values(self.data, "data", LEFT_OUT))
        cell = self.group * shape[1] + self.variant
        return np.bincount(cell, each, shape[0] * shape[1]).astype(np.float64).reshape(shape)

    def arm(self, group: int, variant: int) -> Codes:
        """Rows of a variant in a group, in the order of the users' ids, so that no sum depends on
        that of the rows."""
        rows = self.cells[group * len(self.variants) + variant]
        if self.unordered is None:
            return rows
        return rows[np.argsort(self.unordered[rows], kind="stable")]

    @cached_property
    def unordered(self) -> Codes | None:
        """The users, if they are known and the rows do not stand in their order."""
        return None if self.users is None or ascends(self.users, strictly=True) else self.users

    def both(self, group: int, pair: TwoPlaces) -> ArmRows:
        """Rows of two variants in a group."""
        if len(self.groups) == 1 and len(self.variants) == 2 and self.unordered is None:
            return ArmRows(None, self.variant if pair[1] else 1 - self.variant)
        return ArmRows.of(self.arm(group, pair[0]), self.arm(group, pair[1]))

    def counts(self, both: ArmRows) -> Floats:
        """Rows of both arms in each stratum (2, strata)."""
        cell, n_strata = both.arm, 1
        if self.strata is not None:
            n_strata = len(self.strata[1])
            cell = cell * n_strata + both.take(self.strata[0])
        size = None if self.size is None else both.take(self.size)
        return np.bincount(cell, size, 2 * n_strata).reshape(2, -1).astype(np.float64)

    def comparable(self, both: ArmRows) -> ArmRows:
        """The rows of both arms without those of thin strata, if these are to be left out."""
        if self.strata is None or not self.drop_thin:
            return both
        stratum = both.take(self.strata[0])
        n = len(self.strata[1])
        unit = np.arange(len(stratum)) if self.clusters is None else both.take(self.clusters)
        cell = both.arm * n + stratum
        n_units = int(unit.max(initial=-1)) + 1
        thick = count_distinct(cell, 2 * n, unit, n_units).reshape(2, n).min(axis=0) >= 2
        return both if thick.all() else both.where(thick[stratum])

    @property
    def randomised(self) -> Codes | None:
        """Code of what was assigned: clusters that are each in one variant, else users; None if
        neither is known."""
        if self.clusters is not None:
            n = int(self.clusters.max(initial=-1)) + 1
            if not in_several_variants(self.clusters, self.variant, n).any():
                return self.clusters
        return self.users


def read_experiment_rows(
    data: DataFrame,
    variant_col: str | None,
    by_cols: list[str],
    user_col: Columns | None,
    strata: Names = (),
    cluster: Names = (),
    numbers: Collection[str | None] = (),
    role: str = "data",
) -> ExperimentRows:
    """Code the rows; refuse users in two variants, and several rows of a user. `numbers` are
    columns that hold no ids. Without `variant_col` all rows are of one variant, as past users
    are."""
    refuse_variant(by_cols, variant_col)
    named = [] if variant_col is None else [variant_col]
    if list_columns(data):
        others = [*as_columns(user_col), *named, *strata, *cluster]
        keep = f"drop them from {role}"
        refuse_mixed_models(data, by_cols if named else None, others, keep, role)
    variant, labels = group_codes(data, role, named)
    group, groups = group_codes(data, role, by_cols)
    keys = as_columns(user_col) or ["user_id"] * ("user_id" in data.columns)
    users = None
    if keys:
        (users,), n = key_codes([(role, data)], keys)
        # Rows within other clusters (a region, an hour) may be assigned row by row.
        if n < len(users) and (not cluster or {*cluster} == {*keys}):
            several = in_several_variants(users, variant, n)
            advice = "build data with join_experiment, which can drop them"
            refuse_several(role, data, users, several, keys, advice)
            if not cluster:
                present, cell = np.unique(group * n + users, return_inverse=True)
                rolled = "roll them up first with rd.experiments.roll_up"
                apart = f", {rolled}, or name in ⟦+by=⟧ the columns that tell them apart"
                advice = (
                    ". Rows of one user are not independent: pass "
                    f"⟦+cluster={keys[0] if len(keys) == 1 else keys!r}⟧"
                    f"{apart if variant.any() else f' or {rolled}'}"
                )
                only_rows(role, data, cell, len(present), [*by_cols, *keys], advice)
    stratum = group_codes(data, role, strata) if strata else None
    clusters = key_codes([(role, data)], cluster)[0][0] if cluster else None
    used = {*named, *by_cols, *strata, *filter(None, numbers)}
    unit = (None, "") if cluster else _larger_unit(data, as_columns(user_col), used, variant)
    return ExperimentRows(
        data,
        labels[variant_col] if named else Series([""]),
        variant,
        groups,
        group,
        users,
        stratum,
        clusters,
        *unit,
    )


def _larger_unit(
    data: DataFrame, keys: list[str], used: set[str], variant: Codes
) -> tuple[Codes | None, str]:
    """Code of the unit of which there may be several rows: "user_id", the first column of the key,
    or what looks so.

    Returns too the name of a column that only looks so, and that was assigned whole, such as a
    store; `user_col="user_id"` says that users were assigned one by one.
    """
    has_id = "user_id" in data.columns
    if keys == ["user_id"]:  # a key of one column is unique
        return None, ""
    if keys and (has_id or len(keys) > 1):
        (codes,), n = key_codes([("data", data)], ["user_id"] if has_id else keys[:1])
        if n < len(codes):
            return codes, ""
    if not variant.any():  # of one variant nothing tells what was assigned
        return None, ""
    # Blocks of rows, since those of a unit may stand together. A column that repeats in none of
    # them, or is in both arms there, holds no units that matter.
    starts = np.arange(0, len(data), max(_BLOCK, len(data) // _BLOCKS))
    sample = (starts[:, None] + np.arange(_BLOCK)).ravel()
    sample = sample[sample < len(data)]
    for name in data.columns:
        if name in used | {"user_id"} or not may_be_unit(data[name].take(sample), variant[sample]):
            continue
        codes, values = pd.factorize(data[name])
        if _assigned_whole(codes, variant):
            return np.where(codes < 0, len(values) + np.arange(len(codes)), codes), name
    return None, ""


def may_be_unit(some: Series, variant: Codes | None) -> bool:
    """Whether some values of a column may be ids of what was assigned, by the variant of each."""
    codes = codes_of_ids(some)
    return codes is not None and (variant is None or _assigned_whole(codes, variant))


def _assigned_whole(codes: Codes, variant: Codes) -> bool:
    """Whether ids, of which 95 % are known (−1 is unknown), repeat, and were assigned as wholes.

    Two rows that were assigned one by one are in one arm with the probability Σ_v s_v². Of the
    pairs of rows of an id that repeats, at least 80 % are on average, and more than by chance: one
    unknown id, or a tenth of its rows that crossed over, hides no unit.
    """
    known = codes >= 0
    if known.sum() < max(_LEAST_UNITS, _KNOWN_IDS * len(codes)):
        return False
    codes = codes[known]
    variant = variant[known]
    n_ids = int(codes.max(initial=-1)) + 1
    n = np.bincount(variant)
    cells = np.bincount(codes * len(n) + variant, minlength=n_ids * len(n))
    of_arms = cells.reshape(n_ids, len(n))
    size = of_arms.sum(axis=1)
    of_arms, size = of_arms[size > 1], size[size > 1]
    if n_ids < _LEAST_UNITS or not len(size):
        return False
    pairs = size * (size - 1.0)
    alike = (of_arms * (of_arms - 1.0)).sum(axis=1) / pairs
    two, three = (((n / n.sum()) ** k).sum() for k in (2, 3))
    variance = (4 * (size - 2) * (three - two**2) + 2 * two * (1 - two)) / pairs
    above = (alike - two).sum()
    return bool(alike.mean() >= _IN_ONE_ARM and above > _BY_CHANCE * np.sqrt(variance.sum()))


FEW_VALUES = 20  # a column of the key with fewer values holds folds or weekdays rather than users


@dataclass(frozen=True)
class ModelRows:
    """Rows of all models: `place` is model · n_cells + cell, a cell being a list or a (list, fold).

    `weights` are those of the lists, None if all count alike. A list of weight 0 does not count,
    whatever its values. `unit_of_list` is None where every list is a unit of its own. `repeated`
    says that another column looks like the unit, which nobody has named.
    """

    parts: list[tuple[str, DataFrame]]
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
        values[self.place] = np.concatenate(read)
        table = values.reshape(len(self.models), self.n_cells)
        if self.weights is None:
            return table
        of_cell = self.weights if self.list_of_cell is None else self.weights[self.list_of_cell]
        with np.errstate(over="ignore"):
            if np.isinf(table * of_cell).any():
                raise DataError(f"{metric!r} times the weights is too large for a number")
        return np.where(of_cell > 0, table, np.nan)

    def per_list(self, values: Floats) -> Floats:
        """Mean over the folds of each list, NaN skipped; the values themselves without folds."""
        if self.list_of_cell is None:
            return values
        n = int(self.list_of_cell.max(initial=-1)) + 1
        defined = ~np.isnan(values)
        sums, counts = (
            np.bincount(self.list_of_cell, one, n)
            for one in (np.where(defined, values, 0), defined)
        )
        with np.errstate(invalid="ignore"):
            return sums / counts

    def total(self, values: Floats) -> tuple[float, float]:
        """Σ w v and Σ w over the lists that have a value v in some cell."""
        of_list = self.per_list(values)
        there = ~np.isnan(of_list)
        known = of_list if there.all() else of_list[there]
        if self.weights is None:
            return float(known.sum()), float(len(known))
        weights = self.weights[there]
        return float((weights * known).sum()), float(weights.sum())

    def mean(self, values: Floats) -> float:
        """Mean over the lists that have a value in some cell; NaN if there is none."""
        total, weight = self.total(values)
        return total / weight if weight else np.nan

    def unit_sums(self, d: Floats) -> tuple[Floats, Floats | None]:
        """Σ w d and Σ w over the lists of each unit that have a difference d; Σ w is None where it
        is 1 for all."""
        defined = ~np.isnan(d)
        if self.weights is None and self.unit_of_list is None and defined.all():
            return d, None
        weight = defined * (1.0 if self.weights is None else self.weights)
        sums: Floats = np.where(defined, d, 0.0) * weight
        if self.unit_of_list is not None:
            sums, weight = (
                np.bincount(self.unit_of_list, part).astype(np.float64) for part in (sums, weight)
            )
        return sums, weight

    def units_there(self, sums: Floats, divisor: Floats | None) -> tuple[Floats, Floats | None]:
        """The sums of the units that have a difference, and what each is divided by; None for 1."""
        there = slice(None) if divisor is None else divisor > 0
        single = self.weights is None and self.unit_of_list is None
        return sums[there], None if single or divisor is None else divisor[there]

    def weighted(self, name: str) -> ModelRows:
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


def repeated_unit(frame: DataFrame, keys: Names, n_lists: int) -> bool:
    """Whether a column that is not the unit looks like one: a user_id, or a later column of the
    key, that repeats.

    Days and folds repeat too, so that a column of times, or one of few values, is none but for its
    name.
    """
    for name in dict.fromkeys([*keys[1:], "user_id"]):
        if name == keys[0] or name not in frame.columns or is_datetime64_any_dtype(frame[name]):
            continue
        if (1 if name == "user_id" else FEW_VALUES) <= frame[name].nunique() < n_lists:
            return True
    return False


def model_pairs(models: list[Any], baseline: Any, what: str = "model") -> list[TwoPlaces]:
    """(baseline, model) as positions: all pairs without a baseline. `what` they are called in the
    message."""
    if baseline is None:
        return [*combinations(range(len(models)), 2)]
    if baseline not in models:
        raise OptionError(
            f"⟦baseline={baseline!r}⟧ is not a {what}; {what}s are {models}"
            + closest(baseline, models)
        )
    base = models.index(baseline)
    return [(base, model) for model in range(len(models)) if model != base]


def read_model_rows(
    per_user: Any,
    keys: list[str],
    folds: list[str],
    model_col: str,
    units: Names = (),
    least: int = 2,
) -> ModelRows:
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
    if len(models) < least:
        raise OptionError(
            f"per_user has {len(models)} models ({models}); a comparison needs at least two"
        )
    coded, n_cells = key_codes(parts, [*keys, *folds])
    cell = np.concatenate(coded)
    place = model * n_cells + cell

    def show(cells: Codes) -> str:
        """Keys of up to five cells."""
        names = [*keys, *folds]
        rows = [int(np.argmax(cell == one)) for one in cells[:5]]
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
    if named != keys:
        coded, n_units = key_codes(parts, named)
        found = _of_lists(
            np.concatenate(coded), cell, list_of_cell, show, " and ".join(named), "unit"
        )
        unit_of_list = found if n_units < n_lists else None
    unnamed = not units and unit_of_list is None
    repeated = unnamed and any(
        repeated_unit(frame, keys, min(n_lists, len(frame))) for _, frame in parts
    )
    return ModelRows(parts, models, place, n_cells, list_of_cell, unit_of_list, repeated, show)


def paired_values(
    metric: str,
    table: Floats,
    pair: TwoPlaces,
    runs: ModelRows,
    missing: PairMissing,
    takes_zero: bool = True,
) -> tuple[Floats, Floats, tuple[int, int]]:
    """Values of both models by cell, NaN in both or in none, and how many cells only one of them
    has.

    The error offers `missing="zero"` where the call takes it.
    """
    base = table[pair[0]]
    model = table[pair[1]]
    has_base = ~np.isnan(base)
    has_model = ~np.isnan(model)
    if has_base.all() and has_model.all():
        return base, model, (0, 0)
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

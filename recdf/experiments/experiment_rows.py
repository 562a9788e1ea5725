"""Rows of an experiment as codes: variant, segment, user, stratum and cluster of every row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError, DuplicateError, OptionError
from ..inputs.codes import strictly_ascends
from ..inputs.options import as_columns
from .assigned_users import in_several_variants
from .choices import Columns
from .experiment_columns import (
    Codes,
    Mask,
    count_distinct,
    group_codes,
    key_codes,
    some_keys,
    split,
)

# A column of fewer values names no units.
_LEAST_UNITS = 20
# Units that were assigned whole: the least share of known ids, the largest of ids in two arms, and
# how many standard errors more than by chance are in one.
_KNOWN_IDS, _CROSSED, _BY_CHANCE = 0.95, 0.1, 6
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
        control, treatment = np.bincount(self.arm, minlength=2).tolist()
        return control, treatment


@dataclass(frozen=True)
class ExperimentRows:
    """What is known of the rows besides their metrics.

    `variants` are the labels of the codes in `variant`, and `groups` those of the codes in `group`
    (one code without labels if there are no segments). `users` is None if no key is known.
    """

    data: pd.DataFrame
    variants: pd.Series
    variant: Codes
    groups: pd.DataFrame
    group: Codes
    users: Codes | None
    strata: tuple[Codes, pd.DataFrame] | None
    clusters: Codes | None
    # Code of the unit that rows may repeat, None where they have a cluster or nothing names a
    # larger unit.
    repeated: Codes | None = None
    guessed: str = ""  # the column that only looks like that unit
    drop_thin: bool = (
        False  # strata with fewer than two units in an arm are left out, and are no error
    )

    @cached_property
    def cells(self) -> list[Codes]:
        """Rows of each variant in each group."""
        n = len(self.variants)
        return split(self.group * n + self.variant, len(self.groups) * n)

    def arm(self, group: int, variant: int) -> Codes:
        """Rows of a variant in a group, in the order of the users' ids, so that no sum depends on
        that of the rows."""
        rows = self.cells[group * len(self.variants) + variant]
        return (
            rows
            if self.users is None or self.in_order
            else rows[np.argsort(self.users[rows], kind="stable")]
        )

    @cached_property
    def in_order(self) -> bool:
        """Whether the rows stand in the order of their users."""
        return self.users is not None and strictly_ascends(self.users)

    def both(self, group: int, pair: tuple[int, int]) -> ArmRows:
        """Rows of two variants in a group."""
        if (
            len(self.groups) == 1
            and len(self.variants) == 2
            and (self.users is None or self.in_order)
        ):
            return ArmRows(None, self.variant if pair[1] else 1 - self.variant)
        return ArmRows.of(self.arm(group, pair[0]), self.arm(group, pair[1]))

    def strata_of(self, both: ArmRows) -> tuple[Codes, Codes] | None:
        """The stratum of each row of both arms, None without strata."""
        return None if self.strata is None else both.split(both.take(self.strata[0]))

    def comparable(self, both: ArmRows) -> ArmRows:
        """The rows of both arms without those of thin strata, if these are to be left out."""
        if self.strata is None or not self.drop_thin:
            return both
        stratum, n = both.take(self.strata[0]), len(self.strata[1])
        unit = np.arange(len(stratum)) if self.clusters is None else both.take(self.clusters)
        cell, n_units = both.arm * n + stratum, int(unit.max(initial=-1)) + 1
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
    data: pd.DataFrame,
    variant_col: str,
    by_cols: list[str],
    user_col: Columns | None,
    strata: Sequence[str] = (),
    cluster: Sequence[str] = (),
    numbers: Collection[str | None] = (),
) -> ExperimentRows:
    """Code the rows; refuse users in two variants, and several rows of a user. `numbers` are
    columns that hold no ids."""
    if variant_col in by_cols:
        raise OptionError(
            f"⟦by={variant_col!r}⟧ is the column of the variant; name columns of segments"
        )
    variant, labels = group_codes(data, "data", [variant_col])
    group, groups = group_codes(data, "data", by_cols)
    users = _user_codes(data, user_col, by_cols, list(cluster), variant, group)
    stratum = group_codes(data, "data", strata) if strata else None
    clusters = key_codes([("data", data)], cluster)[0][0] if cluster else None
    used = {variant_col, *by_cols, *strata, *filter(None, numbers)}
    unit = (None, "") if cluster else _larger_unit(data, as_columns(user_col), used, variant)
    return ExperimentRows(
        data,
        labels[variant_col],
        variant,
        groups[by_cols],
        group,
        users,
        stratum,
        clusters,
        *unit,
    )


def _larger_unit(
    data: pd.DataFrame, keys: list[str], used: set[str], variant: Codes
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
    ids = [name for name in data.columns if name not in {*used, "user_id"}]
    # Blocks of rows, since those of a unit may stand together. A column that repeats in none of
    # them, or is in both arms there, holds no units that matter.
    starts = np.arange(0, len(data), max(_BLOCK, len(data) // _BLOCKS))
    sample = (starts[:, None] + np.arange(_BLOCK)).ravel()
    sample = sample[sample < len(data)]
    for name in ids:
        kind = data[name].dtype
        if pd.api.types.is_bool_dtype(kind) or pd.api.types.is_datetime64_any_dtype(kind):
            continue
        if pd.api.types.is_float_dtype(kind) and not _whole_with_gaps(data[name]):
            continue
        try:
            some = pd.factorize(data[name].take(sample))[0]
            if len(sample) < len(data) and not _assigned_whole(some, variant[sample]):
                continue
            codes, values = pd.factorize(data[name])
        except TypeError:  # lists are no ids
            continue
        if _assigned_whole(codes, variant):
            return np.where(codes < 0, len(values) + np.arange(len(codes)), codes), name
    return None, ""


def _whole_with_gaps(values: pd.Series) -> bool:
    """Whether floats are ids that became floats because some are unknown."""
    known = values.dropna()
    return len(known) < len(values) and bool((known % 1 == 0).all())


def _assigned_whole(codes: Codes, variant: Codes) -> bool:
    """Whether ids, of which 95 % are known (−1 is unknown), repeat, and were assigned as wholes.

    Of k rows that were assigned one by one, all are in one arm with the probability q = Σ_v s_v^k.
    At least 90 % of the ids that repeat are, and more than by chance: one unknown id, or one that
    crossed over, hides no unit.
    """
    known = codes >= 0
    if known.mean() < _KNOWN_IDS:
        return False
    codes, variant = codes[known], variant[known]
    n_ids, n = int(codes.max(initial=-1)) + 1, np.bincount(variant)
    size = np.bincount(codes, minlength=n_ids)
    again = size > 1
    if n_ids < _LEAST_UNITS or not again.any():
        return False
    crossed = in_several_variants(codes, variant, n_ids)[again]
    q = ((n / n.sum())[:, None] ** size[again]).sum(axis=0)
    spread, above = np.sqrt((q * (1 - q)).sum()), (~crossed).sum() - q.sum()
    return bool(crossed.mean() <= _CROSSED and above > _BY_CHANCE * spread)


def _user_codes(
    data: pd.DataFrame,
    user_col: Columns | None,
    by_cols: list[str],
    cluster: list[str],
    variant: Codes,
    group: Codes,
) -> Codes | None:
    """Codes of the users if a key is known; a user in two variants, or in several rows without a
    cluster, raises."""
    keys = as_columns(user_col) or [name for name in ["user_id"] if name in data.columns]
    if not keys:
        return None
    (codes,), n = key_codes([("data", data)], keys)
    if n == len(codes):
        return codes
    # Rows within other clusters (a region, an hour) may be assigned row by row.
    if cluster and set(cluster) != set(keys):
        return codes
    several = in_several_variants(codes, variant, n)
    if several.any():
        raise DataError(
            f"{np.count_nonzero(several):,} users of data are in more than one variant "
            f"({some_keys(data, several[codes], keys)}); build data with join_experiment, which "
            "can drop them"
        )
    if cluster:
        return codes
    cell = group * n + codes
    again = np.ones(len(cell), bool)
    again[np.unique(cell, return_index=True)[1]] = False
    if again.any():
        one = keys[0] if len(keys) == 1 else keys
        raise DuplicateError(
            f"data has several rows per {[*by_cols, *keys]}: {int(again.sum()):,} rows too many "
            f"({some_keys(data, again, keys)}). Rows of one user are not independent: pass "
            f"⟦+cluster={one!r}⟧, roll them up first with rd.experiments.roll_up, or name in "
            "⟦+by=⟧ the columns that tell them apart"
        )
    return codes

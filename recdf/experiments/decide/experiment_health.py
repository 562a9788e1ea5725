"""Check that an experiment is sound before its effects are read; name its users, so that another
table knows them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ...errors import DataError, OptionError, examples
from ...inputs.codes import split
from ...inputs.constraints import SHARE, a_number, check_value
from ...inputs.door import takes_columns
from ...inputs.ids import IdColumn, read_ids
from ...inputs.options import Options, as_columns
from ...inputs.sorting import distinct
from ...judge.per_user_columns import (
    Codes,
    Mask,
    by_columns,
    count_distinct,
    frame_of,
    group_codes,
    key_codes,
    require,
)
from ...judge.users import Users, in_several_variants, match_users
from ...stats.shares import equal_shares_test, seen_loss, share_test


@takes_columns("user_col", engines="named")
def experiment_health(
    per_user: pd.DataFrame,
    assignment: pd.DataFrame,
    *,
    user_col: str | Sequence[str] = "user_id",
    variant_col: str = "variant",
    expected: Mapping[Any, Any] | None = None,
    by: str | Sequence[str] | None = None,
    confidence: float = 0.999,
    cluster: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> pd.DataFrame:
    """Check an experiment before reading its effects: sample ratio, missing metrics, users in two
    variants.

    Sample ratio mismatch (SRM): Pearson's χ² = Σ (O_v − E_v)²/E_v of the users per variant O_v
    against the planned E_v = N·share_v, with V − 1 degrees of freedom. Missing metrics: Pearson's
    χ² of "has metrics" × variant. A small p says that assignment, logging or the treatment itself
    decides who is measured; no effect should be read then.

    Parameters
    ----------
    per_user, assignment, user_col, variant_col
        As in `join_experiment`; `per_user` may have several rows per user.
    expected : mapping, optional
        Planned share (or weight, > 0) of every variant. Default: equal shares. In a ramp-up, those
        of each period: {"week 1": {"A": 0.9, "B": 0.1}, "week 2": {"A": 0.5, "B": 0.5}}, with the
        column of the period as `by`.
    by : str or list of str, optional
        Columns of `assignment` (country, week): every group is checked by itself.
    confidence : float, default 0.999
        Of both flags, whose level is alpha = 1 − confidence.
    cluster : str or list of str, optional
        Columns of `assignment` that were assigned as a whole, as in `compare_variants`: the person
        of several devices. Then `n_assigned`, `n_with_metrics` and both tests count clusters, of
        which one with metrics of any user has metrics. Where a cluster is in several variants,
        users were assigned, and users are counted.
    options : Options, optional
        `user_col` of a project, where they are not given here.

    Returns
    -------
    DataFrame
        One row per (`by`, variant), sorted: `n_assigned` (distinct users, those in two variants
        left out), `share`, `expected_share`, `n_with_metrics`, `n_missing`, `missing_rate`,
        `n_multi_variant` (users of this variant who are in another one too), and, the same in all
        rows of a group, `n_unassigned` (users of `per_user` in no variant of any group),
        `srm_chi2`, `srm_p` (null when an expected count is below 8), `srm_flag` ("sample_ratio" or
        ""), `seen_loss` (share of this variant's users whose loss the test finds in 8 of 10 cases),
        `missing_chi2`, `missing_p` (null when nobody or everybody is missing; exact, by
        Fisher's test, when an expected count is below 8), `missing_flag` ("missing_metrics" or "").
        `users_digest` names the user's column and a sample of hashes, by which `compare_variants`
        knows that it compares these users.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError
        As in `join_experiment`.
    OptionError
        If `expected` lacks a variant that is in the table, or has a share that is not positive.
    MissingExtraError
        If SciPy is not installed.

    References
    ----------
    Fabijan et al.: Diagnosing sample ratio mismatch in online controlled experiments, KDD 2019.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> groups = pd.DataFrame({"user_id": range(100), "variant": ["A"] * 30 + ["B"] * 70})
    >>> health = rd.experiments.experiment_health(groups[["user_id"]].assign(hits=1), groups)
    >>> health[["variant", "n_assigned", "srm_chi2", "srm_flag"]]
      variant  n_assigned  srm_chi2      srm_flag
    0       A          30      16.0  sample_ratio
    1       B          70      16.0  sample_ratio
    """
    check_value("confidence", confidence, SHARE)
    frame_of("per_user", per_user)
    frame_of("assignment", assignment)
    keys = as_columns(user_col)
    require(per_user, "per_user", keys)
    require(assignment, "assignment", [*keys, variant_col])
    by_cols, clusters = by_columns(assignment, "assignment", by, ["variant"]), as_columns(cluster)
    assigned = AssignedUnits.of(per_user, assignment, keys, variant_col, clusters)
    group, groups = group_codes(assignment, "assignment", by_cols)
    shares = shares_of_plans(plans_of(expected, by_cols, groups, "by"), assigned.names)
    hashed = hash_users(assignment[assigned.alone], assigned.key, "assignment")
    cell = (group * shares.shape[1] + assigned.variant)[assigned.alone]
    table = _health_table(assigned, group, groups[by_cols], shares, 1 - confidence)
    table["users_digest"] = digest_users(hashed, cell, shares.size, assigned.key)
    # Groups stand as they are, and in each the variants in order.
    in_group = np.repeat(np.arange(len(shares)), shares.shape[1])
    order = np.lexsort([pd.factorize(table["variant"], sort=True)[0], in_group])
    return table.iloc[order].reset_index(drop=True)


class AssignedUnits(NamedTuple):
    """What was assigned, by row of an assignment: users or clusters, each with its variant.

    `alone` are the rows of users in one variant; `key` are the columns of the units that count.
    """

    users: Users
    variant: Codes
    names: list[Any]
    alone: Mask
    unit: Codes
    n: int
    key: list[str]

    @classmethod
    def of(
        cls,
        per_user: pd.DataFrame,
        assignment: pd.DataFrame,
        keys: list[str],
        variant_col: str,
        clusters: list[str],
    ) -> AssignedUnits:
        """Clusters count where each is in one variant, else users do."""
        if not len(assignment):
            raise DataError("assignment has no rows; expected one per assigned user")
        require(assignment, "assignment", clusters)
        users = match_users(per_user, assignment, keys, variant_col)
        variant, labels = group_codes(assignment, "assignment", [variant_col])
        alone = ~users.several[users.of_assignment]
        own = users, variant, labels[variant_col].tolist(), alone
        if clusters:
            (codes,), n = key_codes([("assignment", assignment)], clusters)
            if not in_several_variants(codes[alone], variant[alone], n).any():
                return cls(*own, codes, n, clusters)
        return cls(*own, users.of_assignment, users.n, keys)

    def per_cell(self, group: Codes, shape: tuple[int, ...], chosen: Mask | None = None) -> Codes:
        """How many units each group has of each variant; those of the chosen rows."""
        rows = self.alone if chosen is None else chosen
        cell = (group * shape[-1] + self.variant)[rows]
        n_cells = math.prod(shape)
        return count_distinct(cell, n_cells, self.unit[rows], self.n).reshape(shape)

    @property
    def with_metrics(self) -> Mask:
        """The rows of `alone` whose unit has metrics of any of its users."""
        measured, found = np.zeros(self.users.n, bool), np.zeros(self.n, bool)
        measured[self.users.of_metric] = True
        found[self.unit[measured[self.users.of_assignment]]] = True
        return self.alone & found[self.unit]


def _health_table(
    units: AssignedUnits, group: Codes, groups: pd.DataFrame, shares: pd.DataFrame, alpha: float
) -> pd.DataFrame:
    planned, shape, users = shares.to_numpy(), shares.shape, units.users
    assigned = units.per_cell(group, shape)
    measured = units.per_cell(group, shape, units.with_metrics)
    in_both = units._replace(unit=users.of_assignment, n=users.n).per_cell(
        group, shape, ~units.alone
    )
    repeat = np.repeat(np.arange(len(assigned)), planned.shape[1])
    srm = np.array([share_test(row, plan) for row, plan in zip(assigned, planned, strict=True)])[
        repeat
    ].T
    lost = np.array([equal_shares_test(has, n) for n, has in zip(assigned, measured, strict=True)])[
        repeat
    ].T
    seen = np.array(
        [seen_loss([row], [plan], alpha) for row, plan in zip(assigned, planned, strict=True)]
    )
    with np.errstate(invalid="ignore"):
        columns = {
            "variant": pd.Series([*shares.columns] * len(assigned)),
            "n_assigned": assigned.ravel(),
            "share": (assigned / assigned.sum(axis=1, keepdims=True)).ravel(),
            "expected_share": planned.ravel(),
            "n_with_metrics": measured.ravel(),
            "n_missing": (assigned - measured).ravel(),
            "missing_rate": ((assigned - measured) / assigned).ravel(),
            "n_multi_variant": in_both.ravel(),
            "n_unassigned": users.n_unassigned,
            "srm_chi2": srm[0],
            "srm_p": srm[1],
            "srm_flag": np.where(srm[1] < alpha, "sample_ratio", ""),
            "seen_loss": seen.ravel(),
            "missing_chi2": lost[0],
            "missing_p": lost[1],
            "missing_flag": np.where(lost[1] < alpha, "missing_metrics", ""),
        }
    return pd.concat([groups.iloc[repeat].reset_index(drop=True), pd.DataFrame(columns)], axis=1)


def plans_of(
    expected: Mapping[Any, Any] | None, columns: Sequence[str], labels: pd.DataFrame, argument: str
) -> list[Mapping[Any, float] | None]:
    """Planned shares in every row of labels: those of all, or of each stratum (stratum → variant →
    share)."""
    if expected is None or not by_stratum(expected):
        return [expected] * len(labels)
    if len(columns) != 1:
        raise OptionError(
            "expected has shares for each of several strata, such as the periods of a ramp-up; "
            f"name their column, and no other, in ⟦+{argument}=⟧, or pass the shares of the "
            "variants"
        )
    strata = labels[columns[0]].tolist()
    if lacking := [name for name in strata if name not in expected]:
        known = examples(list(expected))
        raise OptionError(
            f"expected has no shares for {columns[0]} {examples(lacking)}; it has those of {known}"
        )
    return [expected[name] for name in strata]


def by_stratum(expected: Mapping[Any, Any] | None) -> bool:
    """Whether planned shares are said for each stratum."""
    return bool(expected) and all(isinstance(part, Mapping) for part in (expected or {}).values())


def shares_of_plans(
    plans: Sequence[Mapping[Any, float] | None], variants: Sequence[Any]
) -> pd.DataFrame:
    """Return planned shares by stratum (rows) and variant: those of the experiment, then those that
    nobody is in."""
    absent = dict.fromkeys(name for plan in plans for name in plan or () if name not in variants)
    names = [*variants, *absent]
    shares = np.array([[planned_shares(plan, names)[name] for name in names] for plan in plans])
    return pd.DataFrame(
        shares / shares.sum(axis=1, keepdims=True), columns=pd.Index(names, dtype=object)
    )


def planned_shares(
    expected: Mapping[Any, float] | None, variants: Sequence[Any]
) -> dict[Any, float]:
    """Planned share by variant: equal when not given; complete and positive when given."""
    if expected is None:
        return dict.fromkeys(variants, 1.0)
    lacking = [name for name in variants if name not in expected]
    if lacking:
        has = examples(list(expected))
        raise OptionError(f"⟦expected=⟧ has no share for variant {examples(lacking)}; it has {has}")
    for name, value in expected.items():
        check_value(f"expected[{name!r}]", value, a_number(above=0))
    return {name: float(value) for name, value in expected.items()}


Hashes = npt.NDArray[np.uint64]

# Users that a digest names: those with the smallest hashes. If all users with a hash of at most the
# largest of these are named, other users are found out, and a part of the same users is not.
NAMED = 16
_DIGITS = 12


def hash_users(frame: pd.DataFrame, keys: list[str], role: str) -> Hashes:
    """Return a hash of the key of every row, which depends on the ids and not on how they are
    stored."""
    hashed = np.zeros(len(frame), np.uint64)
    for name in keys:
        hashed = hashed * np.uint64(0x5851F42D4C957F2D) + _hash(
            read_ids(frame[name], f"{role}[{name!r}]")
        )
    return np.asarray(hashed >> np.uint64(64 - 4 * _DIGITS))


def _hash(ids: IdColumn) -> Hashes:
    if ids.dictionary is not None:
        return np.asarray(_hash(ids.dictionary)[ids.values])
    values = ids.values
    if isinstance(values, pa.ChunkedArray):
        values = values.to_numpy()
    elif values.dtype.kind == "M":
        values = values.astype("datetime64[ns]")
    elif values.dtype.kind == "i":
        values = values.astype(np.int64)
    return np.asarray(pd.util.hash_array(values, categorize=False))


def digest_users(hashed: Hashes, cell: Codes, n_cells: int, keys: list[str]) -> list[str]:
    """Return the digest of the users of every cell: their key, and the smallest hashes."""
    smallest = [distinct(hashed[rows])[:NAMED] for rows in split(cell, n_cells)]
    names = json.dumps([str(name) for name in keys])
    return [f"{names}:{''.join(f'{one:0{_DIGITS}x}' for one in named)}" for named in smallest]


def key_of(digest: str) -> list[str]:
    """Return the columns that a digest was made of."""
    return list(json.loads(digest.rpartition(":")[0]))


def others(digest: str, hashed: Hashes) -> Mask:
    """Which of these users cannot be among those of a digest."""
    text = digest.rpartition(":")[2]
    named = np.array(
        [int(text[i : i + _DIGITS], 16) for i in range(0, len(text), _DIGITS)], np.uint64
    )
    within = hashed <= named[-1] if len(named) == NAMED else np.ones(len(hashed), bool)
    return np.asarray(within & ~np.isin(hashed, named))

"""Check that an experiment is sound before its effects are read; name its users, so that another
table knows them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pandas import DataFrame, Series

from ...errors import DataError, OptionError, examples
from ...inputs.door import takes_options
from ...inputs.frames import by_user
from ...inputs.ids import IdColumn, check_labels, read_ids
from ...inputs.sorting import cut_like
from ...judge.cautions.table import CAUTIONS
from ...judge.choices import (
    Columns,
    Options,
    PlannedShares,
    Share,
    a_number,
    as_columns,
    check_value,
)
from ...judge.per_user_columns import (
    Codes,
    Floats,
    Mask,
    by_columns,
    count_distinct,
    distinct,
    group_codes,
    key_codes,
    metric_values,
    require,
    split,
)
from ...judge.users import Users, in_several_variants, match_users
from ...judge.verdict import add_verdicts, remark
from ...stats.many_tests import adjust
from ...stats.shares import equal_shares_test, seen_loss, share_tests


@takes_options("user_col", engines="by user")
def experiment_health(
    per_user: Any,
    assignment: Any,
    *,
    user_col: Columns = "user_id",
    variant_col: str = "variant",
    expected: PlannedShares | None = None,
    by: Columns | None = None,
    confidence: Share = 0.999,
    cluster: Columns | None = None,
    options: Options | None = None,
) -> DataFrame:
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
    keys = as_columns(user_col)
    units = partial(AssignedUnits.of, keys, variant_col, as_columns(cluster))
    work = partial(count_users, units, by)
    named = ["has_metrics", variant_col, *as_columns(by), *as_columns(cluster)]
    parts: list[CountedUsers] = by_user(work, keys, named, per_user=per_user, assignment=assignment)
    cells, groups, names = joint_cells(parts)
    shares = planned_shares(expected, groups, "by", names)
    alpha = 1 - confidence
    counts = np.zeros((3, *shares.shape), np.int64)
    smallest = [[np.zeros(0, np.uint64)] for _ in range(shares.size)]
    for one, (group, variant) in zip(parts, cells, strict=True):
        counts[:, group, variant] += one.counts
        places = (group * len(names) + variant).ravel().tolist()
        for place, own in zip(places, one.smallest, strict=True):
            smallest[place].append(own)
    assigned, measured, in_both = counts
    # A row for each group; the tests of a group stand in the rows of all its variants.
    each = [*zip(assigned, shares, strict=True)]
    repeat = np.repeat(np.arange(len(shares)), len(names))
    srm = np.array([share_tests([n], [plan]) for n, plan in each])[repeat].T
    lost = np.array([equal_shares_test(has, n) for n, has in zip(assigned, measured, strict=True)])
    lost = lost[repeat].T
    seen = np.array([seen_loss([n], [plan], alpha) for n, plan in each])
    key = json.dumps([str(name) for name in parts[0].key])
    digests = []
    for hashes in smallest:
        first = distinct(np.concatenate(hashes))[:NAMED]
        digests.append(f"{key}:{''.join(f'{one:0{_DIGITS}x}' for one in first)}")
    with np.errstate(invalid="ignore"):
        columns = {
            "variant": Series(names * len(shares)),
            "n_assigned": assigned.ravel(),
            "share": (assigned / assigned.sum(axis=1, keepdims=True)).ravel(),
            "expected_share": shares.ravel(),
            "n_with_metrics": measured.ravel(),
            "n_missing": (assigned - measured).ravel(),
            "missing_rate": ((assigned - measured) / assigned).ravel(),
            "n_multi_variant": in_both.ravel(),
            "n_unassigned": sum(one.n_unassigned for one in parts),
            "srm_chi2": srm[0],
            "srm_p": srm[1],
            "srm_flag": np.where(srm[1] < alpha, "sample_ratio", ""),
            "seen_loss": seen.ravel(),
            "missing_chi2": lost[0],
            "missing_p": lost[1],
            "missing_flag": np.where(lost[1] < alpha, "missing_metrics", ""),
            "users_digest": digests,
        }
    labels = groups.iloc[repeat].reset_index(drop=True)
    table = pd.concat([labels, DataFrame(columns)], axis=1)
    # Groups stand as they are, and in each the variants in order.
    order = np.lexsort([pd.factorize(table["variant"], sort=True)[0], repeat])
    return table.iloc[order].reset_index(drop=True)


class AssignedUnits(NamedTuple):
    """What was assigned, by row of an assignment: users or clusters, each with its variant.

    `alone` are the rows of users in one variant; `key` are the columns of the units that count.
    """

    users: Users
    variant: Codes
    variants: DataFrame
    alone: Mask
    unit: Codes
    n: int
    key: list[str]

    @classmethod
    def of(
        cls,
        keys: list[str],
        variant_col: str,
        clusters: list[str],
        per_user: DataFrame,
        assignment: DataFrame,
    ) -> AssignedUnits:
        """Clusters count where each is in one variant, else users do."""
        require(assignment, "assignment", [*keys, variant_col, *clusters])
        require(per_user, "per_user", keys)
        users, variant, variants = match_users(per_user, assignment, keys, variant_col)
        alone = ~users.several[users.of_assignment]
        own = users, variant, variants, alone
        if clusters:
            (codes,), n = key_codes([("assignment", assignment)], clusters)
            if not in_several_variants(codes[alone], variant[alone], n).any():
                return cls(*own, codes, n, clusters)
        return cls(*own, users.of_assignment, users.n, keys)

    def per_cell(self, group: Codes, n_groups: int, chosen: Mask | None = None) -> Codes:
        """How many units each group has of each variant; those of the chosen rows."""
        rows = self.alone if chosen is None else chosen
        shape = n_groups, len(self.variants)
        cell = (group * shape[1] + self.variant)[rows]
        return count_distinct(cell, math.prod(shape), self.unit[rows], self.n).reshape(shape)


class CountedUsers(NamedTuple):
    """Users by group (`labels`) and variant: those assigned, those with metrics, and those in two
    variants; and the smallest hashes of each cell, which the digest names. `key` are the columns of
    the units that count."""

    labels: DataFrame
    variants: DataFrame
    counts: Codes
    n_unassigned: int
    smallest: list[Hashes]
    key: list[str]


UnitsOf = Callable[[DataFrame, DataFrame], AssignedUnits]


def count_users(
    units_of: UnitsOf, by: Columns | None, per_user: DataFrame, assignment: DataFrame
) -> CountedUsers:
    """Count all users, or those of one bucket."""
    if "has_metrics" in per_user:  # it is joined, and has rows for users without metrics
        per_user = per_user[metric_values(per_user, "per_user", "has_metrics") > 0]
    units = units_of(per_user, assignment)
    by_cols = by_columns(assignment, "assignment", by, ["variant"])
    group, groups = group_codes(assignment, "assignment", by_cols)
    users = units.users
    measured_user = np.isin(users.of_assignment, users.of_metric)
    with_metrics = np.isin(units.unit, units.unit[measured_user])  # any of the unit's users has
    several = units._replace(unit=users.of_assignment, n=users.n)
    counts = [
        units.per_cell(group, len(groups)),
        units.per_cell(group, len(groups), units.alone & with_metrics),
        several.per_cell(group, len(groups), ~units.alone),
    ]
    hashed = hash_users(assignment[units.alone], units.key, "assignment")
    cell = (group * len(units.variants) + units.variant)[units.alone]
    smallest = [distinct(hashed[rows])[:NAMED] for rows in split(cell, counts[0].size)]
    own = np.array(counts), users.n_unassigned, smallest, units.key
    return CountedUsers(groups, units.variants, *own)


def joint_cells(
    parts: Sequence[CountedUsers] | Sequence[CountedLevels],
) -> tuple[list[tuple[Codes, Codes]], DataFrame, list[Any]]:
    """The places of the cells of each part, (labels, 1) and (variants), among those of all parts,
    with the labels and the variants of all. There must be a variant."""
    places: list[list[Codes]] = []
    found: list[DataFrame] = []
    for frames in zip(*(one[:2] for one in parts), strict=True):
        whole: DataFrame = pd.concat(frames, ignore_index=True)
        codes, labels = group_codes(whole, "labels", [*whole])
        places.append(cut_like(codes, frames))
        found.append(labels)
    if not len(found[1]):
        raise DataError("assignment has no rows; expected one per assigned user")
    cells = [(label[:, None], own) for label, own in zip(*places, strict=True)]
    return cells, found[0], found[1].iloc[:, 0].tolist()


def planned_shares(expected: Any, labels: DataFrame, argument: str, names: list[Any]) -> Floats:
    """Return planned shares by row of labels and by variant: those of all rows, those of each
    stratum (stratum → variant → share), or equal ones without a plan. Variants that nobody is in
    are added to the names."""
    plans = [expected] * len(labels)
    if by_stratum(expected):
        if len(labels.columns) != 1:
            raise OptionError(
                "expected has shares for each of several strata, such as the periods of a "
                f"ramp-up; name their column, and no other, in ⟦+{argument}=⟧, or pass the shares "
                "of the variants"
            )
        (column,), strata = labels.columns, labels.iloc[:, 0].tolist()
        if lacking := [name for name in strata if name not in expected]:
            raise OptionError(
                f"expected has no shares for {column} {examples(lacking)}; it has those of "
                f"{examples(list(expected))}"
            )
        plans = [expected[name] for name in strata]
    names += dict.fromkeys(name for plan in plans for name in plan or () if name not in names)
    shares = []
    for plan in plans:
        planned = dict.fromkeys(names, 1.0) if plan is None else plan
        if lacking := [name for name in names if name not in planned]:
            has = examples(list(planned))
            raise OptionError(
                f"⟦expected=⟧ has no share for variant {examples(lacking)}; it has {has}"
            )
        for name, value in planned.items():
            check_value(f"expected[{name!r}]", value, a_number(above=0))
        shares.append([float(planned[name]) for name in names])
    return np.array(shares) / np.sum(shares, axis=1, keepdims=True)


def by_stratum(expected: Any) -> bool:
    """Whether planned shares are said for each stratum."""
    return bool(expected) and all(isinstance(part, Mapping) for part in expected.values())


@takes_options("user_col", engines="by user")
def find_srm(
    assignment: Any,
    columns: Columns,
    *,
    expected: PlannedShares | None = None,
    user_col: Columns = "user_id",
    variant_col: str = "variant",
    cluster: Columns | None = None,
    strata: Columns | None = None,
    confidence: Share = 0.999,
    options: Options | None = None,
) -> DataFrame:
    """Find the levels of columns (browser, country, day) in which the users per variant do not fit
    the plan.

    For every level, Pearson's χ² = Σ (O_v − E_v)²/E_v of its users per variant O_v against E_v =
    N·share_v, Holm's correction over all levels of all columns, and the same test of all other
    users: if that fits although the whole does not, the level explains the broken ratio.

    Parameters
    ----------
    assignment : DataFrame, frame of Spark or Dask, or path
        One row per assigned user; users in two variants are left out.
    columns : str or list of str
        Columns of `assignment` that were known before the assignment. Null is a level of its own.
    expected : mapping, optional
        Planned share (or weight, > 0) of every variant. Default: equal shares. In a ramp-up, those
        of each period as in `experiment_health`, with its column as `strata`: χ² is then the sum
        over the periods.
    user_col : str or list of str, default "user_id"
        Key of a user.
    variant_col : str, default "variant"
        Column of the variant.
    cluster : str or list of str, optional
        Columns that were assigned as a whole, and are counted in place of users, as in
        `experiment_health`.
    strata : str, optional
        Column of the periods that `expected` has shares of.
    confidence : float, default 0.999
        A level does not fit where p_adj is below alpha = 1 − confidence.
    options : Options, optional
        `user_col` of a project, where it is not given here.

    Returns
    -------
    DataFrame
        One row per level, the smallest p first: `column`, `level` (as text), `n_users`, `variant`
        (the one that is farthest from its plan, in standard deviations), `n_variant`, `n_expected`
        (of that variant), `chi2`, `p_value` (null where an expected count is below 8), `p_adj`,
        `p_all` (of all users), `p_without` (of all other users), `explains` (the level does not
        fit, the whole does not, and without the level it does), `effect` ("fits"), `withheld`
        ("sample_ratio", "not_tested"), `remarks`, `verdict`.

    Raises
    ------
    ColumnError, NullKeyError, OptionError, DataError
        As `experiment_health`; no columns are named.
    MissingExtraError
        If SciPy is not installed and there are more than two variants.

    References
    ----------
    Fabijan et al.: Diagnosing sample ratio mismatch in online controlled experiments, KDD 2019.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> users = pd.DataFrame({"user_id": range(1000), "variant": ["A", "B"] * 500})
    >>> users["browser"] = ["x"] * 600 + ["y"] * 400
    >>> lost = users[
    ...     (users["browser"] == "x") | (users["variant"] == "A") | (users["user_id"] % 10 > 8)
    ... ]
    >>> found = rd.experiments.find_srm(lost, "browser", expected={"A": 1, "B": 1})
    >>> found[
    ...     ["level", "n_users", "variant", "n_variant", "p_without", "explains", "verdict"]
    ... ].round(3)
      level  n_users variant  n_variant  p_without  explains                verdict
    0     y      240       B         40        1.0      True  invalid: sample ratio
    1     x      600       A        300        0.0     False                   fits
    """
    looked_at = [*dict.fromkeys(as_columns(columns))]
    if not looked_at:
        raise OptionError("columns is empty; expected columns of assignment, such as browser")
    keys = as_columns(user_col)
    units = partial(AssignedUnits.of, keys, variant_col, as_columns(cluster))
    periods = as_columns(strata)
    work = partial(count_levels, units, looked_at, periods)
    named = [variant_col, *as_columns(cluster), *periods, *looked_at]
    parts: list[CountedLevels] = by_user(work, keys, named, assignment=assignment)
    cells, labels, names = joint_cells(parts)
    planned = planned_shares(expected, labels, "strata", names)
    total = np.zeros(planned.shape, np.int64)
    for one, cell in zip(parts, cells, strict=True):
        total[cell] += one.total
    counted = []
    labelled = []
    for name, *own in zip(looked_at, *(one.levels for one in parts), strict=True):
        texts = _as_texts(pd.concat([values for values, _ in own], ignore_index=True))
        codes, found = pd.factorize(texts, sort=True)
        counts = np.zeros((len(found), *planned.shape), np.int64)
        of_level = cut_like(codes, [values for values, _ in own])
        for level, (_, n), cell in zip(of_level, own, cells, strict=True):
            np.add.at(counts, (level[:, None, None], *cell), n)
        counted.append(counts)
        labelled.append(DataFrame({"column": name, "level": found}))
    each = np.concatenate(counted)
    alpha = 1 - confidence
    n, (chi2, p) = each.sum(axis=1), np.transpose([share_tests(own, planned) for own in each])
    of_stratum = each.sum(axis=2, keepdims=True) * planned
    expect = of_stratum.sum(axis=1)
    spread = np.sqrt((of_stratum * (1 - planned)).sum(axis=1))
    far = (n - expect) / np.maximum(spread, 1e-300)
    # Of two variants, the one that lacks users.
    farthest = np.arange(len(n)), (np.abs(far) + 1e-9 * (far < 0)).argmax(axis=1)
    p_adj = adjust(p, "holm")
    p_all = share_tests(total, planned)[1]
    without = np.array([share_tests(np.maximum(total - own, 0), planned)[1] for own in each])
    broken = p_adj < alpha
    result = pd.concat(labelled, ignore_index=True).assign(
        n_users=n.sum(axis=1),
        variant=Series(names).take(farthest[1]).array,
        n_variant=n[farthest],
        n_expected=expect[farthest],
        chi2=chi2,
        p_value=p,
        p_adj=p_adj,
        p_all=p_all,
        p_without=without,
        explains=broken & (p_all < alpha) & (without >= alpha),
        remarks=np.select([np.isnan(p), broken], ["not_tested", "sample_ratio"], ""),
    )
    add_verdicts(result, "ratio", ["fits"] * len(result))
    return result.sort_values("p_value", kind="stable", ignore_index=True)


class CountedLevels(NamedTuple):
    """Units by stratum (`labels`) and variant: all of them, and those of each level of the columns.
    Levels of one text may stand apart."""

    labels: DataFrame
    variants: DataFrame
    total: Codes
    levels: list[tuple[Series, Codes]]


def count_levels(
    units_of: UnitsOf, columns: list[str], strata: list[str], assignment: DataFrame
) -> CountedLevels:
    """Count the units of all users, or those of one bucket."""
    require(assignment, "assignment", [*columns, *strata])
    stratum, labels = group_codes(assignment, "assignment", strata)
    units = units_of(assignment.iloc[:0], assignment)  # who has metrics does not matter
    levels = []
    for name in columns:
        column = assignment[name]
        check_labels(column, f"assignment[{name!r}]")
        # Objects that are equal, such as 1 and True, may have different texts.
        values = _as_texts(column) if column.dtype == object else column
        level, found = pd.factorize(values, use_na_sentinel=False)
        n = units.per_cell(level * len(labels) + stratum, len(found) * len(labels))
        shape = len(found), len(labels), len(units.variants)
        levels.append((Series(found), n.reshape(shape)))
    total = units.per_cell(stratum, len(labels))
    return CountedLevels(labels, units.variants, total, levels)


def _as_texts(column: Series) -> Series:
    return column.astype(object).where(column.notna(), "(null)").astype(str)


Hashes = npt.NDArray[np.uint64]

# Users that a digest names: those with the smallest hashes. If all users with a hash of at most the
# largest of these are named, other users are found out, and a part of the same users is not.
NAMED = 16
_DIGITS = 12


def hash_users(frame: DataFrame, keys: list[str], role: str) -> Hashes:
    """Return a hash of the key of every row, which depends on the ids and not on how they are
    stored."""
    hashed = np.zeros(len(frame), np.uint64)
    for name in keys:
        hashed = hashed * np.uint64(0x5851F42D4C957F2D) + _hash(
            read_ids(frame[name], f"{role}[{name!r}]")
        )
    return hashed >> np.uint64(64 - 4 * _DIGITS)


def _hash(ids: IdColumn) -> Hashes:
    if ids.dictionary is not None:
        return _hash(ids.dictionary)[ids.values]
    values = ids.values
    if isinstance(values, pa.ChunkedArray):
        values = values.to_numpy()
    elif values.dtype.kind == "M":
        values = values.astype("datetime64[ns]")
    elif values.dtype.kind == "i":
        values = values.astype(np.int64)
    elif ids.kind == "decimal.Decimal":  # 1.50 of a file is 1.5
        values = np.array([*map(hash, values)])
    return pd.util.hash_array(values, categorize=False)


def key_of_health(health: Any) -> list[str]:
    """Return the columns of users that the digests of a health table, if any, were made of."""
    if not isinstance(health, DataFrame) or "users_digest" not in health or health.empty:
        return []
    return json.loads(health["users_digest"].iloc[0].rpartition(":")[0])


def others(digest: str, hashed: Hashes) -> Mask:
    """Which of these users cannot be among those of a digest."""
    text = digest.rpartition(":")[2]
    named = np.array(
        [int(text[i : i + _DIGITS], 16) for i in range(0, len(text), _DIGITS)], np.uint64
    )
    within = hashed <= named[-1] if len(named) == NAMED else np.ones(len(hashed), bool)
    return within & ~np.isin(hashed, named)


def withheld_by(code: str, given: Any) -> Any:
    """Return the tables of an experiment with all their verdicts withheld by the code of a caution,
    as if `compare_variants` had known of it. Without a code, and for anything that has no such
    verdicts, return what was given."""
    if isinstance(given, Mapping):
        return {name: withheld_by(code, table) for name, table in given.items()}
    columns = {*getattr(given, "columns", ())}
    if not code or not {"treatment", "withheld"} <= columns:
        return given
    decision = "invalid" * ("decision" in columns)
    words = CAUTIONS[code].words
    held = {"withheld": code, "verdict": words, "reasons": words}
    held |= {"effect": decision, "decision": decision}
    held |= {f"trend_{name}": one for name, one in held.items()}
    table = given.assign(**{name: held[name] for name in held.keys() & columns})
    remark(table, [True] * len(table), code)
    return table

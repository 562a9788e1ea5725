"""Whether the users per variant fit the plan, and where a broken ratio comes from: the browser,
country or day."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...errors import OptionError, examples
from ...judge.cautions import HEALTH_ALPHA, UNEQUAL
from ...judge.choices import AnyRow, PlannedShares, Row, TwoPlaces
from ...judge.per_user_columns import Codes, Floats, Mask, count_distinct, key_codes, require, split
from ...judge.users import ExperimentRows, model_pairs
from ...stats.shares import independence_test, seen_loss, share_tests
from ...tables.cells import as_written, columns_before, number, p_value, visible
from ..compare.two_sample import but
from .experiment_health import by_stratum, hash_users, key_of_health, others, planned_shares

# ------------------------------------------------------------------------------------------
# Whether the users per variant fit the plan, and are those of the health table.


class Arms(NamedTuple):
    """Labels of the segments (one row without columns if there are none) and of the variants, and
    which are compared.

    A pair is a control and a treatment, by their places among the variants.
    """

    groups: DataFrame
    variants: pd.Series
    pairs: list[TwoPlaces]

    @classmethod
    def of(cls, groups: DataFrame, variants: pd.Series, control: Any, role: str) -> Arms:
        """All variants against the control, or all pairs; refuse an unknown control, and a variant
        that is alone."""
        names = variants.tolist()
        where = f"{role}[{variants.name!r}]"
        if control is not None and control not in names:
            raise OptionError(f"⟦control={control!r}⟧ is not in {where}; its variants are {names}")
        if len(names) < 2:
            raise OptionError(
                f"{where} has one variant, {names[0]!r}; a comparison needs at least two"
            )
        return cls(groups, variants, model_pairs(names, control))

    @property
    def labels(self) -> list[str]:
        """Columns of the segments."""
        return self.groups.columns.tolist()

    @property
    def names(self) -> list[Any]:
        return self.variants.tolist()

    def of_rows(self, n: int) -> tuple[Codes, Codes, Codes]:
        """The group, the control and the treatment of each of n rows, which stand by group, metric
        and pair."""
        control, treatment = np.tile(np.transpose(self.pairs), n // len(self.pairs))
        return np.repeat(np.arange(len(self.groups)), n // len(self.groups)), control, treatment


# p of different shares of exposed users below which an effect has to stand without the lightest,
# and without the heaviest, of the surplus. At 0.05 up to 10 % of experiments to which the treatment
# brought light users had a silent verdict, and at 0.15 up to 8 %; it costs 1 to 4 of 100 true
# effects. Heavy users are brought less often, and 0.15 for them would cost 2 to 4 more.
SURPLUS_LIMITS = {"lightest": 0.15, "heaviest": 0.05}


class Surplus(NamedTuple):
    """How many more of its users one of two variants has: p of no difference, without which of them
    an effect has to stand, the share of the units of arm `arm` that are too many, and this in
    words.

    Where only the plan is known it has to at 1 %: the assignment itself differs by chance, and a
    5 % rule took 5 of 100 true effects.
    """

    p: float
    asked: list[str]
    share: float
    arm: int
    words: str

    def asks(
        self,
        row: Row,
        without: Callable[[str, int], tuple[float, float]],
        n: int,
        alpha: float,
        sure: bool = True,
    ) -> Row:
        """Return the row, with a remark if its effect is not there without some of the n units of
        the larger arm: once its lightest and once its heaviest are left out (Lee 2009), `without`
        which an effect has a difference and p. Bounds of what is left are not `sure`.

        A smaller surplus can be chance, and asking always would take a third of all small effects.
        """
        few = round(self.share * n)
        for kind in self.asked if row["p_value"] <= alpha and n - few > 1 else ():
            rest, p = without(kind, few)
            if not p <= alpha or rest * row["diff"] < 0:
                may = "is" if sure else "may be"
                said = f"{self.words}; without its {kind} {few:,} there {may} no difference"
                return but(row, "surplus", detail=said)
        return row


class SampleRatio(NamedTuple):
    """Per group: whether the users per variant do not fit the plan, whether that was tested at all,
    the p of it, and by variant the share of its users whose loss would have been seen.

    `units` are compared, of `of`: the users who were assigned, or those who were planned.
    """

    fails: Mask
    checked: Mask
    p: Floats
    seen: Floats
    units: Floats
    of: Floats
    assigned: bool = False

    def surplus(self, group: int, pair: TwoPlaces, names: Sequence[Any]) -> Surplus:
        """Compare the shares of their users that two variants have, where the ratio fits."""
        n, of = (one[group, list(pair)] for one in (self.units, self.of))
        left_out = self.assigned and (of > n).any()
        p = independence_test([n, of - n])[1] if left_out else share_tests([n], [of])[1]
        if self.fails[group] or np.isnan(p) or not min(n) > 0:
            return Surplus(np.nan, [], 0.0, 0, "")
        rate = n / of
        arm = int(n[1] * of[0] > n[0] * of[1])
        more = visible(names[pair[arm]])
        other = visible(names[pair[1 - arm]])
        did = "exposed" if left_out else "has"
        said = f"{more} {did} {number(rate[arm] / rate[1 - arm] - 1, '.1%')} more of its users than"
        asked = [of for of, limit in SURPLUS_LIMITS.items() if p < (limit if left_out else UNEQUAL)]
        return Surplus(
            p, asked, 1 - rate.min() / rate.max(), arm, f"{said} {other} (p {p_value(p)})"
        )


# Labels of the strata (one row without columns if there are none), and units by group, stratum and
# variant. The last place of the groups has the units of all of them, NaN where these are not known.
CountedUnits = tuple[DataFrame, Floats]


def without_strata(counts: Floats) -> CountedUnits:
    """Units by group and variant as those of a single stratum."""
    return DataFrame(index=[0]), counts[:, None]


def check_sample_ratio(
    expected: PlannedShares | None,
    health: DataFrame | None,
    arms: Arms,
    count: Callable[[bool], CountedUnits],
    rows: ExperimentRows | None = None,
) -> SampleRatio:
    """Test the units that are compared against the planned shares, or against those of
    `experiment_health`.

    `count` gives the units, within strata if it is called with True.
    """
    if expected is not None and health is not None:
        raise OptionError(
            "expected and health are both given; the health table has the expected shares already"
        )
    if health is not None:
        return _from_health(health, arms, count, rows)
    if expected is not None:
        labels, counts = count(by_stratum(expected))
        return _from_plan(planned_shares(expected, labels, "strata", [*arms.names]), counts)
    unknown = np.full((len(arms.groups), len(arms.names)), np.nan)
    no = np.zeros(len(unknown), bool)
    return SampleRatio(no, no, unknown[:, 0], unknown, unknown, unknown)


def _from_plan(shares: Floats, counts: Floats) -> SampleRatio:
    """Units by group, stratum and variant against the planned shares, in every group and over all
    of them.

    The shares are by stratum and variant, and perhaps by group.
    """
    n_variants = counts.shape[2]
    units = np.pad(counts, ((0, 0), (0, 0), (0, shares.shape[-1] - n_variants)))
    planned = np.broadcast_to(shares, units.shape)
    each = [*zip(units, planned, strict=True)]
    *p_groups, overall = (share_tests(own, plan)[1] for own, plan in each)
    p = np.fmin(p_groups, overall)
    seen = np.array([seen_loss(own, plan, HEALTH_ALPHA) for own, plan in each[:-1]])
    of = (units.sum(axis=2, keepdims=True) * planned)[:-1].sum(axis=1)
    own = (seen[:, :n_variants], counts[:-1].sum(axis=1), of[:, :n_variants])
    return SampleRatio(p < HEALTH_ALPHA, ~np.isnan(p), p, *own)


def count_rows(rows: ExperimentRows, within: bool = False) -> CountedUnits:
    """Distinct units of the rows, within their strata if that is wanted and there are any."""
    n_variants = len(rows.variants)
    units = rows.randomised
    unit = np.arange(len(rows.variant)) if units is None else units
    n_units = int(unit.max(initial=-1)) + 1
    stratum = np.zeros_like(rows.group)
    labels = DataFrame(index=[0])
    if within and rows.strata is not None:
        stratum, labels = rows.strata

    def count(group: Codes, n: int) -> Floats:
        cell = group * n_variants + rows.variant
        n = n * n_variants
        once = n_units == len(unit)  # no unit has two rows
        found = np.bincount(cell, minlength=n) if once else count_distinct(cell, n, unit, n_units)
        return found.astype(np.float64)

    n_strata = len(labels)
    n_groups = len(rows.groups)
    overall = by_group = count(stratum, n_strata)
    if n_strata > 1 and count(0 * stratum, 1).sum() < overall.sum():
        raise OptionError(
            "shares of every stratum are planned, but users (or clusters) are in several strata; "
            "give each of them the stratum of its assignment, or pass the shares of the variants"
        )
    if n_groups > 1:
        by_group = count(rows.group * n_strata + stratum, n_groups * n_strata)
        # Without a key, rows of several groups could be the same users, whose counts must not be
        # added.
        overall = overall if units is not None else overall * np.nan
    return labels, np.concatenate([by_group, overall]).reshape(-1, n_strata, n_variants)


def _from_health(
    health: DataFrame,
    arms: Arms,
    count: Callable[[bool], CountedUnits],
    rows: ExperimentRows | None,
) -> SampleRatio:
    """Test the units that are compared by the planned shares of a health table, which must be of
    the same users.

    Of the users of the table some may be left out, such as those who were not exposed, but alike in
    all variants. The rows of the users are None where only moments of them are known.
    """
    variants = arms.names
    require(health, "health", ["variant", "n_assigned", "expected_share", "srm_p", "srm_flag"])
    health = as_written(health)
    by = columns_before(health, "variant")
    within = not set(by).issubset(arms.groups)
    labels, counts = count(within)
    table = _read_health(health, by, arms.groups, labels, variants)

    def cells(name: str, kind: Any = object) -> Any:
        """A column by group, stratum and variant."""
        return table[name].to_numpy(kind).reshape(len(arms.groups), -1, len(variants))

    assigned = cells("n_assigned", np.float64)
    keys = key_of_health(health)
    users = counts
    others_there = False
    by_key = rows is not None and keys and set(keys).issubset(rows.data)
    if rows is not None and by_key:
        known = replace(rows, users=key_codes([("data", rows.data)], keys)[0][0], clusters=None)
        users = count_rows(known, within)[1]
        hashed = hash_users(rows.data, keys, "data")
        stratum = rows.strata[0] if within and rows.strata is not None else 0
        cell = (rows.group * len(labels) + stratum) * len(variants) + rows.variant
        pairs = zip(cells("users_digest").ravel(), split(cell, assigned.size), strict=True)
        others_there = any(others(digest, hashed[mine]).any() for digest, mine in pairs)
    # Rows without a key may be several of a user.
    if by_key or rows is None or rows.clusters is None:
        parts = arms.groups.filter(by).drop_duplicates()
        whole = len(parts) <= 1 and not np.isnan(users[-1]).any()
        compared = users[-1:] if whole else users[:-1]
        wrong = (compared > assigned[: len(compared)]).any(axis=(1, 2))
        if wrong.any() or others_there:
            counted, there = (
                ", ".join(f"{n:,.0f} of {name!r}" for name, n in zip(variants, of, strict=True))
                for of in (one[np.argmax(wrong)].sum(axis=0) for one in (assigned, compared))
            )
            raise OptionError(
                f"health was made of other users than data: it counts {counted}, and data has "
                f"{there}. Pass what experiment_health gives for the assignment that data was "
                "joined with"
            )
    if (health["variant"] == variants[0]).sum() > len(labels):  # each segment was checked by itself
        counts = np.concatenate([counts[:-1], counts[-1:] * np.nan])
    planned = cells("expected_share", np.float64)
    own = _from_plan(np.concatenate([planned, planned[:1]]), counts)
    left_out = np.full(len(arms.groups), np.nan)
    own = own._replace(of=own.of * np.nan)
    if np.array_equal(users[:-1], counts[:-1]):  # else users came in clusters
        p = [
            [independence_test([some, of - some])[1] for some, of in zip(*one, strict=True)]
            for one in zip(users[:-1], assigned, strict=True)
        ]
        left_out = np.minimum(1.0, len(labels) * np.fmin.reduce(p, axis=1))
        own = own._replace(of=assigned.sum(axis=1), assigned=True)
    flagged = (cells("srm_flag") != "").any(axis=(1, 2))
    tested = ~np.isnan(cells("srm_p", np.float64)).all(axis=(1, 2))
    fails = flagged | own.fails | (left_out < HEALTH_ALPHA)
    return own._replace(fails=fails, checked=tested | own.checked, p=np.fmin(own.p, left_out))


def seen_words(rows: Sequence[AnyRow], variant: str, units: str) -> str:
    """Say which loss of `units`, such as users, a sample ratio that fits would have shown, of the
    variant where that is largest, and which shift of the covariates their balance would have."""
    said = []
    lost = [row for row in rows if variant in row and row.get("seen_loss", np.nan) > 0]
    if lost:
        worst = max(lost, key=lambda row: row["seen_loss"])
        loss = f"a loss of {number(worst['seen_loss'], '.1%')}"
        of, would = (loss, "") if worst["seen_loss"] < 1 else ("even the loss of all", " not")
        users = f"{visible(worst[variant])}'s {units}"
        said.append(f"{of} of {users} would{would} have been seen in 8 of 10 tests")
    moved = [row for row in rows if row.get("covariate_could_hide", np.nan) > 0]
    if moved:
        worst = max(moved, key=lambda row: row["covariate_could_hide"] / row["se"])
        shift = number(worst["covariate_could_hide"], ".3g")
        said.append(
            f"a shift of the covariates that moves {visible(worst['metric'])} by {shift} would "
            "have been seen as often"
        )
    return "".join(f"; {one}" for one in said)


def _read_health(
    health: DataFrame,
    by: list[str],
    groups: DataFrame,
    strata: DataFrame,
    variants: list[Any],
) -> DataFrame:
    """The rows of a health table for each group, stratum and variant that is compared."""
    unknown = [name for name in by if name not in groups and name not in strata]
    if unknown:
        raise OptionError(
            f"health is by {by}, but the comparison is not by {unknown}; make it without them, or, "
            f"where the planned shares change, compare within ⟦+strata={unknown[0]!r}⟧"
        )
    of_both = groups.merge(strata.drop(columns=groups.columns, errors="ignore"), how="cross")
    wanted = of_both[by].merge(DataFrame({"variant": variants}), how="cross").astype(object)
    key = [*by, "variant"]
    table = wanted.merge(health.astype(dict.fromkeys(key, object)), "left", key)
    absent = table["n_assigned"].isna()
    if absent.any():
        *of_group, variant = table.loc[absent, key].iloc[0]
        made = f" for {by} {tuple(of_group)}; make it with ⟦+by={by}⟧" if by else "; make it"
        raise OptionError(
            f"health has no variant {variant!r}{made} from the same assignment, and pass all its "
            f"rows (it has the variants {examples(health['variant'])})"
        )
    if len(table) > len(wanted):
        raise OptionError(
            "health has not one row for each variant; pass the table that experiment_health made"
        )
    return table

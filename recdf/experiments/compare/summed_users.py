"""The comparison of variants from aggregates of users in parts, which are not in memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ...inputs.data_files import UserParts
from ...inputs.options import as_columns
from ...judge.aggregates import Aggregates, RowsNeeded
from ...judge.choices import Columns
from ...judge.effects.means import Linear, Units, quantity
from ...judge.in_parts import SummedUsers
from ...judge.per_user_columns import Codes, Floats, MetricColumns, group_codes
from ...judge.users import may_be_unit
from ...stats.permutation import SKEWED, SYMMETRIC, skewed_p
from ..decide.balance import TINY_REST, Difference, balance_of, looks_like_date
from ..decide.sample_ratio import Surplus
from ..samples import Ready, defined_bounds
from ..settings import Settings
from .arms_of_users import compare_ready, no_estimate
from .two_sample import Row

Specs = Mapping[str, MetricColumns]


@dataclass(frozen=True)
class SummedArms:
    """The users of every group and variant, by their aggregates; `cells` are (groups, variants)."""

    specs: Specs
    covariates: Mapping[str, Sequence[MetricColumns]]
    users: SummedUsers
    at: Mapping[str, int]
    groups: pd.DataFrame
    variants: pd.Series
    cells: Codes
    identified: bool

    @classmethod
    def of(
        cls,
        parts: UserParts,
        specs: Specs,
        covariates: Mapping[str, Sequence[MetricColumns]],
        variant_col: str,
        by_cols: list[str],
        user_col: Columns | None,
        before: Aggregates | None = None,
    ) -> SummedArms:
        """Add up the users; `RowsNeeded` if that does not suffice."""
        pairs = [*specs.values(), *itertools.chain.from_iterable(covariates.values())]
        columns = list(dict.fromkeys(name for pair in pairs for name in pair if name is not None))
        at = {name: i for i, name in enumerate(columns)}
        if explicit := as_columns(user_col):
            keys = explicit
        else:
            keys = [name for name in ["user_id"] if name in parts.head.columns]
        used = {variant_col, *by_cols, *(name for pair in specs.values() for name in pair if name)}
        _look_at_others(parts, used, variant_col, explicit)
        means = {name for name, (_, den) in specs.items() if den is None}
        if len(keys) > 1 or any(len(xs) > 1 and name in means for name, xs in covariates.items()):
            raise RowsNeeded  # a regression weighs each user by all covariates
        forms = [
            (_linear(pair, at), tuple(_linear(x, at) for x in covariates.get(name, ())))
            for name, pair in specs.items()
        ]
        labels = [*by_cols, variant_col]
        key = keys[0] if keys else None
        users = SummedUsers.of(parts, forms, columns, labels, key, before)
        variant, variants = group_codes(users.labels, "data", [variant_col])
        group, groups = group_codes(users.labels, "data", by_cols)
        cells = np.full((len(groups), len(variants)), -1)
        cells[group, variant] = np.arange(len(variant))
        if (cells < 0).any() or any(
            users.record.low[at[den]] < 0 for _, den in pairs if den is not None
        ):
            raise RowsNeeded
        return cls(
            specs,
            covariates,
            users,
            at,
            groups[by_cols],
            variants[variant_col],
            cells,
            bool(keys),
        )

    def counts(self) -> Floats:
        """Users of every variant, in each group and over all of them."""
        n = self.users.record.n[self.cells]
        known = self.identified or len(n) == 1
        return np.vstack([n, n.sum(axis=0) if known else np.full(n.shape[1], np.nan)])

    def compare(
        self, group: int, pair: tuple[int, int], settings: Settings, surplus: Surplus
    ) -> list[Row]:
        """One row per metric for one treatment in one group."""
        ready = []
        for i, (name, (num, den)) in enumerate(self.specs.items()):
            units = self.users.units(i, self.cells[group, list(pair)])
            if no_estimate(units) or (
                settings.tests[name] == "proportion" and not _only_shares(units)
            ):
                raise RowsNeeded
            bounds = defined_bounds(num) if den in (None, f"{num}__n") else None
            of = None if den is None else (num, den)
            ready.append(Ready(name, units, (0, 0), (), pair=of, bounds=bounds))
        return compare_ready(ready, settings, None, surplus)

    def unbalanced(
        self, pairs: Sequence[tuple[int, int]]
    ) -> tuple[list[Difference], dict[str, Floats]]:
        """Test every covariate of every pair of control and treatment."""
        names = {
            name: {a if b is None else f"{a}/{b}": (a, b) for a, b in self.covariates.get(name, ())}
            for name in self.specs
        }
        used = {x: pair for own in names.values() for x, pair in own.items()}
        shape = (len(used), *self.cells.shape, self.cells.shape[1])
        p = np.full(shape, np.nan)
        for group, pair in itertools.product(range(len(self.cells)), pairs):
            forms = [_linear(one, self.at) for one in used.values()]
            p[:, group, *pair] = self._p_values(forms, self.cells[group, list(pair)])
        return balance_of(p, {x: [m for m in names if x in names[m]] for x in used}, self.specs)

    def _p_values(self, covariates: Sequence[Linear], cells: Codes) -> Floats:
        """p of each covariate over random splits, and beside the others after a regression on
        them."""
        arms = self.users.record.cells(cells)
        both = arms.cells(np.array([[0, 1]]))
        forms = np.array([quantity(both.mean, one).form[0] for one in covariates])
        if not len(forms):
            return np.zeros(0)
        if any(x.den is not None and not (arms.mean[:, x.den] > 0).all() for x in covariates):
            raise RowsNeeded
        past = self.users.past
        half = (arms.high - arms.low) / 2 + np.abs((arms.high + arms.low) / 2 - both.mean[0])
        (n_c, n_t), n = arms.n, both.n[0]
        turn = (n - 2 * n_t) * math.sqrt(n - 1) / ((n - 2) * math.sqrt(n_c * n_t))

        def p_of(form: Floats) -> float:
            var, skewness = both.squares(form[None])[0] / n, 0.0
            if not var > 0:
                return np.nan
            if abs(turn) * (np.abs(form) @ half) >= SYMMETRIC * math.sqrt(var):
                cubes, at = self.users.cubes_of(-1, cells), np.flatnonzero(form)
                if cubes is None or not set(at) <= set(past):
                    raise RowsNeeded
                own, mean = (np.tile(x[past], (2, 1)) for x in (form, both.mean[0]))
                skewness = turn * cubes.of(own, mean).sum() / n / var**1.5
            if abs(skewness) > SKEWED:  # ranks take the place of values
                raise RowsNeeded
            se = math.sqrt(var * n / (n - 1) * (1 / n_c + 1 / n_t))
            return skewed_p(form @ (arms.above[1] - arms.above[0]) / se, skewness)

        products = forms @ both.central[0] @ forms.T
        found = []
        for i, form in enumerate(forms):
            p, others = p_of(form), [j for j in range(len(forms)) if j != i]
            if others:
                inner = np.linalg.pinv(products[np.ix_(others, others)], hermitian=True)
                rest = form - inner @ products[others, i] @ forms[others]
                left = both.squares(rest[None])[0]
                if left > TINY_REST**2 * products[i, i]:
                    p = 2 * np.fmin(p, p_of(rest))
            found.append(p)
        return np.array(found)


def _linear(pair: MetricColumns, at: Mapping[str, int]) -> Linear:
    return Linear(at[pair[0]], None if pair[1] is None else at[pair[1]])


def _only_shares(units: Units) -> bool:
    """Whether all values are 0 or 1: none is outside, and Σ x(1 − x) is 0."""
    record, num = units.record, units.metric.num
    assert isinstance(record, Aggregates)
    inside = units.metric.den is None and record.low[num] >= 0 and record.high[num] <= 1
    return bool(inside) and record.only_0_and_1(num)


def _look_at_others(parts: UserParts, used: set[str], variant_col: str, keys: list[str]) -> None:
    """Dates need the rows. So do ids beside the key that may be the units that were assigned."""
    frame = parts.sample.to_pandas()
    variant = group_codes(frame, "data", [variant_col])[0]
    others = [name for name in frame.columns if name not in {*used, "user_id"}]
    other_key = keys and keys != ["user_id"] and "user_id" in frame.columns
    if other_key or any(looks_like_date(frame[name]) for name in frame.columns):
        raise RowsNeeded
    if keys != ["user_id"] and any(may_be_unit(frame[name], variant) for name in others):
        raise RowsNeeded

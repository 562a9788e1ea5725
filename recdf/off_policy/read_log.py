"""From a log to arrays: the only place where the columns of a log have names.

Contract: `read_log` checks every column that a call uses and gives a `Log`; `Log.rows` gives the
`Rows` of one group under one interaction. The same checks run for frames of any dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, DataError, DuplicateError, OptionError, examples
from ..inputs.frames import column
from ..stats.numbers import Floats
from .estimators import Interaction
from .log_columns import (
    SUM_ROUNDING,
    Keys,
    log_key_codes,
    read_floats,
    read_probabilities,
    repeats_users,
)
from .plan import Plan
from .rows import IntCodes, LogGroup
from .slates import (
    Layout,
    check_per_slate,
    check_products,
    check_slate_product,
    layout_of,
    slate_weights,
)

NO_CLUSTER = (
    "name the column of users in ⟦+cluster=⟧, or pass ⟦+cluster=None⟧ if all rows are independent"
)
WRITE_TARGET = (
    "write there the probability with which the other policy would show the item of the row: 1/n "
    "for a policy that picks one of n items at random, or let target_from_recs write it for a "
    "recommender"
)
# Fourth powers of weight times reward are summed, and must stay below the largest float.
LARGEST_WEIGHT = 1e15
LARGEST_REWARD = 1e55

NO_UNIT = "pass ⟦+slate_col=None⟧ if every row is a decision of its own"


@dataclass(frozen=True)
class LogArrays:
    """The columns of a log as arrays in the order of its rows."""

    plan: Plan
    propensity: Floats
    target: Floats
    reward: npt.NDArray[np.floating | np.integer]
    q_logged: Floats | None
    q_target: Floats | None
    sample_weight: Floats | None
    slate_propensity: Floats | None
    unit: Keys | None
    position: Keys | None
    cluster: Keys | None
    unclustered: bool  # no cluster is named although users have several rows

    def rows(
        self, some: IntCodes | None, interaction: Interaction | None, *, closed: bool = True
    ) -> LogGroup:
        """The rows of one group as arrays, with the weights of an interaction.

        `closed` cluster codes are numbered anew where that saves memory; else they are the same in
        every group.
        """
        if self.unit is None or self.position is None or interaction is None:
            key = self.cluster if self.cluster is not None else self.unit
            cluster, n_codes = _close(key, some, closed)
            with np.errstate(over="ignore"):
                weight = _rows_taken(self.target, some) / _rows_taken(self.propensity, some)
            return LogGroup(
                _usable(weight),
                _rows_taken(self.reward, some),
                _rows_taken(self.q_logged, some),
                _rows_taken(self.q_target, some),
                _rows_taken(self.sample_weight, some),
                cluster=cluster,
                n_codes=n_codes,
            )
        return self._slate_rows((self.unit, self.position), some, interaction, closed)

    def _slate_rows(
        self, keys: tuple[Keys, Keys], some: IntCodes | None, interaction: Interaction, closed: bool
    ) -> LogGroup:
        unit, position = keys
        key = _rows_taken(unit.codes, some).astype(np.int64) * position.n + _rows_taken(
            position.codes, some
        )
        order = None if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")
        rows = order if some is None or order is None else some[order]
        rows = some if order is None else rows
        layout = layout_of(_rows_taken(unit.codes, rows))
        logged, target = _rows_taken(self.propensity, rows), _rows_taken(self.target, rows)
        place = self._positions(
            _rows_taken(position.codes, rows), _rows_taken(unit.codes, rows), layout
        )
        self._check_slates(logged, target, rows, layout)
        with np.errstate(over="ignore"):
            ratio = target / logged
        cluster, n_codes = _close(unit if self.cluster is None else self.cluster, rows, closed)
        if cluster is not None and (cluster[1:] != cluster[:-1])[~layout.first[1:]].any():
            raise DataError(
                f"a unit of log[{', '.join(map(repr, self.plan.unit))}] has rows of several "
                f"clusters (⟦cluster={list(self.plan.cluster)}⟧); expected one cluster per unit"
            )
        return LogGroup(
            _usable(slate_weights(ratio, layout, interaction, self.plan.kind)),
            _rows_taken(self.reward, rows),
            sample_weight=self._unit_sample_weight(rows, layout),
            position=place,
            n_positions=int(place.max()) + 1,
            first=layout.first,
            cluster=cluster,
            n_codes=n_codes,
        )

    def _positions(self, position: IntCodes, unit: IntCodes, layout: Layout) -> IntCodes:
        """Positions numbered from 0; units whose positions differ are an error unless `ragged`."""
        twice = ~layout.first[1:] & (position[1:] == position[:-1])
        if twice.any():
            raise DuplicateError(
                f"{np.count_nonzero(twice):,} rows of log repeat a (unit, position) pair; a "
                "position of a slate shows one item: drop the repeated rows, or name the columns "
                "of the slate in ⟦+slate_col=⟧"
            )
        present, place = np.unique(position, return_inverse=True)
        full = (layout.lengths == len(present)).all()
        if not full and not self.plan.ragged:
            lengths = layout.lengths
            shortest, longest = int(lengths.min()), int(lengths.max())
            found = (
                f"{shortest} to {longest} rows"
                if shortest < longest
                else f"{longest} of {len(present)} positions"
            )
            raise DataError(
                f"units of log have {found}; expected the same positions in every unit. "
                "⟦+ragged='as_logged'⟧ takes them as they are, which assumes that the target "
                "policy shows as many items as the log"
            )
        return place

    def _check_slates(
        self, logged: Floats, target: Floats, rows: IntCodes | None, layout: Layout
    ) -> None:
        plan = self.plan
        where = f"log[{plan.propensity!r}]"
        check_per_slate(logged, target, layout, plan.kind, where)
        check_products(logged, layout, plan.kind, where)
        check_products(target, layout, plan.kind, f"log[{plan.target!r}]")
        slate = _rows_taken(self.slate_propensity, rows)
        if slate is not None:
            if plan.kind != "conditional":
                raise OptionError(
                    "slate_propensity_col checks ⟦propensity_kind='conditional'⟧ alone; leave it "
                    "out"
                )
            check_slate_product(logged, slate, layout, (where, f"log[{plan.slate_propensity!r}]"))

    def _unit_sample_weight(self, rows: IntCodes | None, layout: Layout) -> Floats | None:
        weight = _rows_taken(self.sample_weight, rows)
        if weight is not None and (weight[1:] != weight[:-1])[~layout.first[1:]].any():
            raise DataError(
                f"log[{self.plan.sample_weight!r}] differs between the rows of a unit; slates are "
                "kept or dropped whole, so expected one value per unit"
            )
        return weight


def read_log(frame: pd.DataFrame, plan: Plan, by: Sequence[str] = ()) -> LogArrays:
    """Read and check the columns of a log; `by` are those of the groups in which users may have
    several rows."""
    _check_columns(frame, plan)
    propensity = read_probabilities(
        frame,
        plan.propensity,
        zero=False,
        what="a logged item was shown, so its probability was above 0",
    )
    target = read_probabilities(
        frame, plan.target, zero=True, what="the target policy's probability of the item"
    )
    reward = read_floats(frame, plan.reward)
    largest = max(abs(float(reward.min())), abs(float(reward.max())))
    if largest > LARGEST_REWARD:
        raise DataError(
            f"log[{plan.reward!r}] holds rewards up to {largest:.3g} in size; expected at most "
            f"{LARGEST_REWARD:g}, whose powers are still numbers"
        )
    if plan.reward_range is not None:
        low, high = plan.reward_range
        outside = int(np.count_nonzero((reward < low) | (reward > high)))
        if outside:
            raise DataError(
                f"log[{plan.reward!r}] is outside ⟦reward_range=⟧({low:g}, {high:g}) in "
                f"{outside:,} of {len(frame):,} rows (from {reward.min():g} to {reward.max():g}); "
                "widen the range"
            )
    ordered = plan.interval == "bootstrap"  # whose weights depend on the order of the clusters
    unit = (
        log_key_codes(frame, plan.unit, "slate_col", NO_UNIT, ordered=ordered)
        if plan.unit
        else None
    )
    cluster = (
        log_key_codes(frame, plan.cluster, "cluster", NO_CLUSTER, ordered=ordered)
        if plan.cluster
        else None
    )
    # the tables of string ids, before the weights take memory
    pa.default_memory_pool().release_unused()
    slate = plan.slate_propensity
    return LogArrays(
        plan,
        propensity,
        target,
        reward,
        _model_column(frame, plan.q_logged),
        _model_column(frame, plan.q_target),
        _sample_weight(frame, plan.sample_weight),
        None
        if slate is None
        else read_probabilities(frame, slate, zero=False, what="the probability of the slate"),
        unit,
        None if unit is None else _position(frame, plan.position),
        cluster,
        cluster is None and unit is None and repeats_users(frame, by),
    )


def _check_columns(frame: pd.DataFrame, plan: Plan) -> None:
    """Refuse absent columns, and one column in two roles.

    No column of another role is suggested in place of an absent one, because the estimate would be
    wrong in silence.
    """
    roles = {
        "reward_col": plan.reward,
        "propensity_col": plan.propensity,
        "target_col": plan.target,
    }
    for one, other in combinations(roles, 2):
        if roles[one] == roles[other]:
            raise OptionError(
                f"{one} and {other} are both {roles[one]!r}; expected two columns. For "
                f"{plan.target!r}, {WRITE_TARGET}"
            )
    models = (plan.q_logged, plan.q_target)
    taken = {
        *roles.values(),
        *models,
        plan.sample_weight,
        "target_propensity",
        "q_logged",
        "q_target",
    }
    for argument, name in roles.items():
        # The target has no usual other name: what looks like one is a propensity.
        free = (
            [other for other in frame.columns if other not in taken]
            if argument != "target_col"
            else []
        )
        try:
            column(frame, name, "log", suggest=free)
        except ColumnError as error:
            hint = WRITE_TARGET if argument == "target_col" else "name the column that holds it"
            raise ColumnError(f"{error} ({argument}={name!r}; {hint})") from None
    for optional in (*models, plan.sample_weight):
        if optional is not None:
            column(frame, optional, "log", suggest=())


def _model_column(frame: pd.DataFrame, name: str | None) -> Floats | None:
    return None if name is None else read_floats(frame, name).astype(np.float64, copy=False)


def _sample_weight(frame: pd.DataFrame, name: str | None) -> Floats | None:
    if name is None:
        return None
    values = read_floats(frame, name).astype(np.float64, copy=False)
    low = values < 1 - SUM_ROUNDING
    if low.any():
        text = (
            f"log[{name!r}] is below 1 in {np.count_nonzero(low):,} of {len(values):,} rows "
            f"({examples(values[low])}); expected 1/(probability that the row was kept), which is "
            "at least 1"
        )
        if values.min() > 0 and values.max() <= 1 + SUM_ROUNDING:
            text += (
                ". All values are in (0, 1], so they look like the probabilities: pass "
                "1/probability"
            )
        raise DataError(text)
    return values


def _position(frame: pd.DataFrame, name: str) -> Keys:
    values = read_floats(frame, name)
    if (values != np.floor(values)).any():
        raise DataError(
            f"log[{name!r}] holds fractions; expected whole positions, 1 for the top of the slate"
        )
    present, codes = np.unique(values, return_inverse=True)
    return Keys(codes, len(present))


def _rows_taken(values: npt.NDArray | None, rows: IntCodes | None) -> npt.NDArray:  # type: ignore[type-arg]
    return values if values is None or rows is None else values[rows]  # type: ignore[return-value]


def _close(key: Keys | None, some: IntCodes | None, closed: bool) -> tuple[IntCodes | None, int]:
    """Codes of a group, numbered anew where they would need a table much longer than the group."""
    if key is None:
        return None, 0
    codes = _rows_taken(key.codes, some)
    if not closed or key.n <= 2 * len(codes) + 1024:
        return codes, key.n
    present, anew = np.unique(codes, return_inverse=True)
    return anew, len(present)


def _usable(weight: Floats) -> Floats:
    if not weight.max() <= LARGEST_WEIGHT:
        n = int(np.count_nonzero(~(weight <= LARGEST_WEIGHT)))
        raise DataError(
            f"target/propensity is above {LARGEST_WEIGHT:g} in {n:,} rows; a propensity that small "
            "is no probability with which an item was shown"
        )
    return weight

"""From a log to arrays: the only place where the columns of a log have names.

Contract: `read_log` checks every column that a call uses and gives `LogArrays`; `rows` of
these gives the `LogGroup` of one group under one interaction. The same checks run for frames of any
dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas import DataFrame

from ..errors import (
    ColumnError,
    DataError,
    DuplicateError,
    EmptyPopulationError,
    OptionError,
    examples,
    kind_of,
)
from ..inputs.codes import Codes, encode_keys, group_codes, known_ids, rank_keys, split
from ..inputs.frames import as_frame, column, float_column, read_values
from ..inputs.options import Names, as_columns
from ..inputs.sorting import ascends, distinct
from ..judge.per_user_columns import by_columns
from ..stats.numbers import Floats, Mask
from .plan import MEANING, Interaction, Plan
from .weighted_rows import IntCodes, LogGroup

# ------------------------------------------------------------------------------------------
# Columns of a log, checked one at a time.
#
# Contract: a check returns its values or raises an error that names the column, what was found,
# how often, and how to mend it. Nothing here changes a frame or reads its index.


# Smaller numbers than this have lost digits, and their inverses are infinite.
LEAST_PROPENSITY = np.finfo(float).tiny

# Fourth powers of weight times reward are summed, and must stay below the largest float.
LARGEST_WEIGHT = 1e15
LARGEST_REWARD = 1e55

# What rounding may add to probabilities that sum to 1.
SUM_ROUNDING = 1e-6


Record = dict[str, Any]  # one row of a result


class Keys(NamedTuple):
    """Integer codes of the rows, equal where their ids are equal, and a number above all codes."""

    codes: IntCodes
    n: int


class ByGroups(NamedTuple):
    """The number of the group of every row, and the values of the `by` columns, sorted."""

    codes: Codes
    labels: DataFrame

    @property
    def rows(self) -> list[IntCodes | None]:
        """The rows of each group; None stands for all rows."""
        return [None] if len(self.labels) == 1 else list(split(self.codes, len(self.labels)))


def log_frame(log: Any, role: str = "log", rows: str = "one row per shown item") -> DataFrame:
    """Return a log as a frame with at least one row."""
    if not isinstance(log, DataFrame) and not hasattr(log, "__arrow_c_stream__"):
        raise TypeError(
            f"{role} is {kind_of(log)}; expected a DataFrame, or an object with the Arrow stream "
            "interface (pyarrow, polars, DuckDB)"
        )
    frame = as_frame(log, role)
    if not len(frame):
        raise EmptyPopulationError(f"{role} has no rows; expected {rows}")
    return frame


def read_rewards(frame: DataFrame, name: str) -> Floats:
    """A column of rewards, whose fourth powers are finite."""
    values = read_values(frame, name, "log")
    if (largest := max(-values.min(), values.max())) > LARGEST_REWARD:
        raise DataError(
            f"log[{name!r}] holds rewards up to {largest:.3g} in size; expected at most "
            f"{LARGEST_REWARD:g}, whose powers are still numbers"
        )
    return values


def read_probabilities(
    frame: DataFrame,
    name: str,
    *,
    zero: bool,
    what: str,
    role: str = "log",
    least: float = LEAST_PROPENSITY,
) -> Floats:
    """A column of probabilities in [0, 1], or from `least` to 1 unless `zero`."""
    where = f"{role}[{name!r}]"
    values = float_column(frame, name, role)
    with np.errstate(invalid="ignore"):
        low = values.min()
        high = values.max()
    if not zero and 0 < low < least:
        raise DataError(
            f"{where} is below {least:.3g} in {np.count_nonzero(values < least):,} of "
            f"{len(values):,} rows (from {low:.3g}); {what}. So small a number is no probability "
            "with which an item was shown; was it multiplied too often, or is it exp of a score?"
        )
    # Sums over positions and items may leave a probability above 1 by rounding.
    if (low >= 0 if zero else low > 0) and high <= 1 + SUM_ROUNDING:
        return values if high <= 1 else np.minimum(values, 1.0)
    if n := np.count_nonzero(np.isnan(values)):
        raise DataError(f"{where} is null in {n:,} of {len(values):,} rows; {what}")
    bad = (values < 0) | (values > 1) | ((values == 0) & (not zero))
    text = (
        f"{where} is outside {'[0, 1]' if zero else '(0, 1]'} in {np.count_nonzero(bad):,} of "
        f"{len(values):,} rows ({examples(values[bad])}); {what}"
    )
    if high <= 0 and low < 0:
        text += ". All values are at most 0, so they look like logarithms: pass numpy.exp of them"
    elif low >= 0 and high <= 100 and high > 1 and np.count_nonzero(values > 1) > len(values) / 2:
        text += (
            ". Most values are above 1; percentages are to be divided by 100, and inverse "
            "propensities inverted"
        )
    raise DataError(text)


def log_key_codes(
    frame: DataFrame, names: Names, argument: str, hint: str, *, ordered: bool
) -> Keys:
    """Codes of a key of one or more columns; with `ordered` they are in the order of the ids."""
    for name in names:
        try:
            column(frame, name, "log", suggest=())
        except ColumnError as error:
            given = names[0] if len(names) == 1 else names
            raise error.within(after=f" (⟦{argument}={given!r}⟧; {hint})") from None
    ids = [known_ids(frame, "log", name, f"; drop these rows, or {hint}") for name in names]
    if ordered:
        (codes,), n = rank_keys([one] for one in ids)
        return Keys(codes, max(n, 1))
    (coded,), n = encode_keys([ids])
    return Keys(coded.all(), n)


def split_groups(frame: DataFrame, by: Any, taken: Names, role: str = "log") -> ByGroups:
    """Rows of every value of the `by` columns; one group of all rows without them."""
    return ByGroups(*group_codes(frame, role, by_columns(frame, role, by, taken)))


def beside_groups(
    labels: DataFrame, rows: Sequence[Sequence[Record]], columns: list[str]
) -> DataFrame:
    """Table of these columns of the records of every group, behind its labels."""
    table = DataFrame([record for own in rows for record in own])[columns]
    which = np.repeat(np.arange(len(rows)), [len(own) for own in rows])
    return pd.concat([labels.iloc[which].reset_index(drop=True), table], axis=1)


WRITE_TARGET = (
    "write there the probability with which the other policy would show the item of the row: 1/n "
    "for a policy that picks one of n items at random, or let target_from_recs write it for a "
    "recommender"
)
SLATE_TOLERANCE = 1e-9  # rounding that products of propensities may have


@dataclass(frozen=True)
class LogArrays:
    """The columns of a log as arrays in the order of its rows."""

    plan: Plan
    propensity: Floats
    target: Floats
    reward: Floats
    q_logged: Floats | float
    q_target: Floats | float
    sample_weight: Floats | None
    unit: Keys | None
    position: Keys | None
    cluster: Keys | None
    unclustered: bool  # no cluster is named although users have several rows

    def take(self, rows: IntCodes | None) -> LogArrays:
        """Return some of the rows; None stands for all."""
        if rows is None:
            return self
        taken: dict[str, Any] = {
            name: one._replace(codes=one.codes[rows]) if isinstance(one, Keys) else one[rows]
            for name, one in vars(self).items()
            if isinstance(one, np.ndarray | Keys)
        }
        return replace(self, **taken)

    def rows(
        self, some: IntCodes | None, interaction: Interaction | None, *, closed: bool = True
    ) -> LogGroup:
        """The rows of one group as arrays, with the weights of an interaction.

        `closed` cluster codes are numbered anew where they would need a table much longer than the
        group; else they are the same in every group.
        """
        log = self.take(some)
        if log.unit is not None and log.position is not None:
            key = log.unit.codes.astype(np.int64) * log.position.n + log.position.codes
            log = log.take(None if ascends(key) else np.argsort(key, kind="stable"))
        cluster, n_codes = log.cluster or log.unit or (None, 0)
        if closed and cluster is not None and n_codes > 2 * len(cluster) + 1024:
            present, cluster = np.unique(cluster, return_inverse=True)
            n_codes = len(present)
        with np.errstate(over="ignore"):
            ratio = log.target / log.propensity
        found = LogGroup(
            ratio,
            log.reward,
            log.q_logged,
            log.q_target,
            log.sample_weight,
            cluster=cluster,
            n_codes=n_codes,
        )
        if interaction is not None:
            found = log._of_slates(found, interaction)
        if not found.weight.max() <= LARGEST_WEIGHT:
            n = np.count_nonzero(~(found.weight <= LARGEST_WEIGHT))
            raise DataError(
                f"target/propensity is above {LARGEST_WEIGHT:g} in {n:,} rows; a propensity that "
                "small is no probability with which an item was shown"
            )
        return found

    def _of_slates(self, rows: LogGroup, interaction: Interaction) -> LogGroup:
        """Return the rows, which are in the order of unit and position, with the weights of their
        slates: the ratio of each row, combined over the positions of its unit."""
        assert self.unit is not None
        assert self.position is not None
        plan = self.plan
        unit = self.unit.codes
        position = self.position.codes
        inside = unit[1:] == unit[:-1]
        first = np.append(True, ~inside)
        starts = np.flatnonzero(first)
        lengths = np.diff(starts, append=len(unit))
        twice = inside & (position[1:] == position[:-1])
        if twice.any():
            raise DuplicateError(
                f"{np.count_nonzero(twice):,} rows of log repeat a (unit, position) pair; a "
                "position of a slate shows one item: drop the repeated rows, or name the columns "
                "of the slate in ⟦+slate_col=⟧"
            )
        present, place = np.unique(position, return_inverse=True)
        if plan.ragged == "raise" and not (lengths == len(present)).all():
            shortest = lengths.min()
            longest = lengths.max()
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
        self._check_slates(first)
        if rows.cluster is not None and (rows.cluster[1:] != rows.cluster[:-1])[inside].any():
            raise DataError(
                f"a unit of log[{', '.join(map(repr, plan.unit))}] has rows of several "
                f"clusters (⟦cluster={as_columns(plan.cluster)}⟧); expected one cluster per unit"
            )
        kept = self.sample_weight
        if kept is not None and (kept[1:] != kept[:-1])[inside].any():
            raise DataError(
                f"log[{plan.weight_col!r}] differs between the rows of a unit; slates are "
                "kept or dropped whole, so expected one value per unit"
            )
        weight = rows.weight
        if plan.propensity_kind == "conditional" and interaction != "independent":
            weight = weight.copy()
            for k in range(1, lengths.max(initial=0)):  # over positions, not over rows
                below = starts[lengths > k] + k
                weight[below] *= weight[below - 1]
        if interaction == "standard":
            weight = np.repeat(weight[np.append(starts[1:], len(unit)) - 1], lengths)
        return replace(rows, weight=weight, position=place, n_positions=len(present), first=first)

    def _check_slates(self, first: Mask) -> None:
        """Refuse columns that cannot be what `propensity_kind` says."""
        kind = self.plan.propensity_kind
        both = (self.propensity, self.target)
        inside = ~first[1:]
        names = [f"log[{name!r}]" for name in (self.plan.propensity_col, self.plan.target_col)]
        if (
            kind in ("conditional", "prefix")
            and inside.any()
            and not any((values[1:] != values[:-1])[inside].any() for values in both)
        ):
            # Constant values can be right (a uniform policy), but not where they also differ
            # between units in both columns.
            one = kind == "prefix" and (self.propensity < 1).any()
            if one or all(len(distinct(values[first])) > 1 for values in both):
                raise DataError(
                    f"{names[0]} has one value for all rows of each unit, which is the probability "
                    f"of a slate, but ⟦propensity_kind={kind!r}⟧ means {MEANING[kind]}; pass "
                    "⟦+propensity_kind='slate'⟧ with ⟦+interaction='standard'⟧"
                )
        for values, where in zip(both, names, strict=True):
            step = inside * np.diff(values) if kind in ("slate", "prefix") else np.zeros(0)
            if kind == "slate" and (other := np.abs(step) > SLATE_TOLERANCE).any():
                n = len(distinct(np.cumsum(first)[1:][other]))
                raise DataError(
                    f"{where} differs between the rows of {n:,} units, but "
                    "⟦propensity_kind='slate'⟧ means one value per unit; values of single "
                    "positions are ⟦+propensity_kind='conditional'⟧"
                )
            if n := int((step > SLATE_TOLERANCE).sum()):
                raise DataError(
                    f"{where} grows from one position to the next in {n:,} rows, but "
                    "⟦+propensity_kind='prefix'⟧ means the running product, which cannot grow; "
                    "values of single positions are ⟦+propensity_kind='conditional'⟧"
                )


def read_log(frame: DataFrame, plan: Plan, by: Names = ()) -> LogArrays:
    """Read and check the columns of a log; `by` are those of the groups in which users may have
    several rows."""
    _check_columns(frame, plan)
    propensity = read_probabilities(
        frame,
        plan.propensity_col,
        zero=False,
        what="a logged item was shown, so its probability was above 0",
    )
    target = read_probabilities(
        frame, plan.target_col, zero=True, what="the target policy's probability of the item"
    )
    reward = read_rewards(frame, plan.reward_col)
    low = reward.min()
    high = reward.max()
    least, most = plan.reward_range or (low, high)
    if outside := np.count_nonzero((reward < least) | (reward > most)):
        raise DataError(
            f"log[{plan.reward_col!r}] is outside ⟦reward_range=⟧({least:g}, {most:g}) in "
            f"{outside:,} of {len(frame):,} rows (from {low:g} to {high:g}); widen the range"
        )
    unit, cluster = (
        log_key_codes(
            frame,
            names,
            argument,
            hint,
            ordered=plan.interval == "bootstrap",  # whose weights depend on the order of clusters
        )
        if names
        else None
        for names, argument, hint in (
            (
                plan.unit,
                "slate_col",
                "pass ⟦+slate_col=None⟧ if every row is a decision of its own",
            ),
            (
                as_columns(plan.cluster),
                "cluster",
                "name the column of users in ⟦+cluster=⟧, or pass ⟦+cluster=None⟧ if all rows are "
                "independent",
            ),
        )
    )
    # the tables of string ids, before the weights take memory
    pa.default_memory_pool().release_unused()
    q_logged, q_target = (
        0.0 if name is None else read_values(frame, name, "log") for name in plan.model
    )
    kept = None if plan.weight_col is None else _sample_weight(frame, plan.weight_col)
    position = None
    if unit is not None:
        places = read_values(frame, plan.position_col, "log")
        if (places != np.floor(places)).any():
            raise DataError(
                f"log[{plan.position_col!r}] holds fractions; expected whole positions, 1 for the "
                "top of the slate"
            )
        present, codes = np.unique(places, return_inverse=True)
        position = Keys(codes, len(present))
    unclustered = False
    users = list(dict.fromkeys([*by, "user_id"]))
    if cluster is None and unit is None and "user_id" in frame.columns:
        with suppress(TypeError):  # values that cannot be compared are no users
            # Most logs show it early, and then the whole column need not be read.
            unclustered = any(one[users].duplicated().any() for one in (frame[:10_000], frame))
    return LogArrays(
        plan,
        propensity,
        target,
        reward,
        q_logged,
        q_target,
        kept,
        unit,
        position,
        cluster,
        unclustered,
    )


def _check_columns(frame: DataFrame, plan: Plan) -> None:
    """Refuse absent columns, and one column in two roles.

    No column of another role is suggested in place of an absent one, because the estimate would be
    wrong in silence.
    """
    roles = {
        "reward_col": plan.reward_col,
        "propensity_col": plan.propensity_col,
        "target_col": plan.target_col,
    }
    for one, other in combinations(roles, 2):
        if roles[one] == roles[other]:
            raise OptionError(
                f"{one} and {other} are both {roles[one]!r}; expected two columns. For "
                f"{plan.target_col!r}, {WRITE_TARGET}"
            )
    more = {name for name in (*plan.model, plan.weight_col) if name is not None}
    taken = {*roles.values(), *more, "target_propensity", "q_logged", "q_target"}
    for argument, name in roles.items():
        # The target has no usual other name: what looks like one is a propensity.
        hint = WRITE_TARGET
        free = list[Any]()
        if argument != "target_col":
            hint = "name the column that holds it"
            free = [other for other in frame.columns if other not in taken]
        try:
            column(frame, name, "log", suggest=free)
        except ColumnError as error:
            raise ColumnError(f"{error} (⟦{argument}={name!r}⟧; {hint})") from None
    for name in more:
        column(frame, name, "log", suggest=())


def _sample_weight(frame: DataFrame, name: str) -> Floats:
    values = read_values(frame, name, "log")
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

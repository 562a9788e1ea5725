"""The rules for rows of `true` and `pred`: one table, for frames in memory and for files that are
read in batches.

Contract: a reader says which rows of a batch break a rule, and in which column.
`rows_refused_or_dropped` returns what was found as `BrokenRows`, and which rows to drop. What was
found in batches, or in several places that read a frame, can be added. `BrokenRows.settle` of the
sum raises the error of the first broken rule, or counts the dropped rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from ..errors import DataError, NullKeyError, RecdfError, examples
from .options import Options

# This many distinct values are kept as examples for a message.
N_EXAMPLES = 5


class Broken(NamedTuple):
    """Rows of one batch that break a rule in one column: a bool per row, and some of the values."""

    rule: RowRule
    where: str  # the column as messages name it, such as pred['score']
    rows: np.ndarray
    some: np.ndarray | tuple[()] = ()


@dataclass(frozen=True)
class Count:
    """How often a rule was broken in one column, and a few of the values."""

    n: int = 0
    some: tuple[float, ...] = ()

    def __add__(self, other: Count) -> Count:
        some = tuple(dict.fromkeys((*self.some, *other.some)))
        return Count(self.n + other.n, some[:N_EXAMPLES])


OfRow = Literal["relevance", "propensity", "weight", "score", "rank", "id"]


def _null_numbers(values: np.ndarray) -> np.ndarray:
    # The minimum is NaN if any number is, and it needs no array.
    some = values.dtype.kind == "f" and len(values) > 0 and np.isnan(values.min())
    return np.isnan(values) if some else np.zeros(0, bool)


@dataclass(frozen=True)
class RowRule:
    """One rule for values of one kind: what breaks it, and the option that says what happens to
    such rows.

    breaks : names the rule · what : how messages call such values · bad : tells which values break
    it · counted_as : follows the role of the frame in `spec["counts"]`, for the dropped rows.
    """

    of: OfRow
    breaks: str
    what: str
    bad: Callable[[np.ndarray], np.ndarray] = _null_numbers
    counted_as: str = ""
    option: Literal["nan_score", "null_keys", "not_judged"] | None = None

    def answer(self, options: Options) -> str:
        """Return what happens to such rows: "raise", "drop", or that they stay. They are refused
        where no option is about them."""
        said: str = "raise" if self.option is None else getattr(options, self.option)
        return said

    def error(self, role: str, found: Mapping[str, Count], n_rows: int) -> RecdfError:
        """Return the error for such rows, given how many there are in each column."""
        at = {where: count for where, count in found.items() if count.n}
        (where, count), n = next(iter(at.items())), sum(one.n for one in at.values())
        if self.of == "id":
            counts = ", ".join(f"{one.n:,} in {name}" for name, one in at.items())
            said = f'{role} has null ids: {counts}; drop these rows or pass ⟦+null_keys="drop"⟧'
            return NullKeyError(said, column=where, count=n)
        words = SAID[self.of].format(
            n=f"{n:,} {self.what}", rows=f"{n_rows:,}", some=examples(count.some)
        )
        hint = self._hint(count, n_rows)
        return DataError(f"{where} holds {words}{hint}", column=where, count=n, examples=count.some)

    def _hint(self, count: Count, n_rows: int) -> str:
        """Return what may mend relevances and propensities, as the end of a message."""
        if self.option == "not_judged":
            return (
                "; drop rows that nobody judged, or ask for judged@k too, which leaves them in the "
                "pool"
            )
        if self.breaks == "null propensity":
            return (
                "; a join leaves null where an item has none: drop these rows or fill in a "
                "propensity"
            )
        if self.what == "zero or negative" and count.n == n_rows:
            return "; all of them look like logarithms: take np.exp"
        zeros = self.what == "zero or negative" and 0.0 in count.some
        return "; ⟦+propensity_floor=⟧ above 0 makes zeros usable" if zeros else ""


OF_ORDER = '{n}s of {rows}; drop these rows or pass ⟦+nan_score="last"⟧ or "drop"'
SAID: dict[str, str] = {
    "relevance": "{n} relevances ({some}); expected finite numbers, 0 for not relevant",
    "propensity": "{n} propensities of {rows} ({some}); expected the probability that a relevant "
    "item was observed, above 0 and at most 1",
    "weight": "{n} weights of {rows} ({some}); expected finite numbers, at least 0",
    "score": OF_ORDER,
    "rank": OF_ORDER,
}
NULL_ID = RowRule("id", "null id", "null", counted_as="null_keys", option="null_keys")
# In the order in which they are reported: only the first broken rule raises its error.
ROW_RULES = {
    rule.breaks: rule
    for rule in (
        RowRule("relevance", "null relevance", "null", option="not_judged"),
        RowRule("relevance", "infinite relevance", "infinite", np.isinf),
        RowRule(
            "relevance",
            "negative relevance",
            "negative",
            lambda values: (values < 0) & ~np.isinf(values),
            option="not_judged",
        ),
        RowRule("propensity", "null propensity", "null"),
        RowRule(
            "propensity",
            "propensity not above 0",
            "zero or negative",
            lambda values: values <= 0,
        ),
        RowRule("propensity", "propensity above 1", "larger than 1", lambda values: values > 1),
        RowRule("weight", "null weight", "null"),
        RowRule(
            "weight",
            "negative or infinite weight",
            "negative or infinite",
            lambda values: (values < 0) | np.isinf(values),
        ),
        RowRule("score", "null score", "null score", _null_numbers, "null_scores", "nan_score"),
        RowRule("rank", "null rank", "null rank", _null_numbers, "null_scores", "nan_score"),
        NULL_ID,
    )
}


def broken(of: OfRow, values: np.ndarray, where: str) -> list[Broken]:
    """Return the rules for values of a kind that some of these values break."""
    found = [(rule, rule.bad(values)) for rule in ROW_RULES.values() if rule.of == of]
    return [Broken(rule, where, rows, values[rows]) for rule, rows in found if rows.any()]


class RowsRefused(Exception):
    """Rows of a part break a rule. It never reaches a user: the error is raised for the sum of all
    parts."""


@dataclass(frozen=True)
class BrokenRows:
    """What was found in some rows of one frame; findings of other rows of the frame can be added.

    n_rows : number of rows that were read · broken : by rule and column, how often the rule was
    broken · dropped : number of rows that each rule dropped.
    """

    n_rows: int
    broken: Mapping[tuple[str, str], Count] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: BrokenRows) -> BrokenRows:
        counts, none = [self.broken, other.broken], Count()
        return BrokenRows(
            self.n_rows + other.n_rows,
            {
                key: counts[0].get(key, none) + counts[1].get(key, none)
                for key in {**counts[0], **counts[1]}
            },
            {
                rule: self.dropped.get(rule, 0) + other.dropped.get(rule, 0)
                for rule in {**self.dropped, **other.dropped}
            },
        )

    def refuses(self, options: Options) -> bool:
        """Whether `settle` will raise."""
        return any(ROW_RULES[rule].answer(options) == "raise" for rule, _ in self.broken)

    def settle(self, role: str, options: Options) -> None:
        """Raise the error of the first rule that was broken and whose rows are refused."""
        for name, rule in ROW_RULES.items():
            found = {where: count for (one, where), count in self.broken.items() if one == name}
            if found and rule.answer(options) == "raise":
                raise rule.error(role, found, self.n_rows)

    def counts(self, role: str) -> dict[str, int]:
        """Return the numbers of dropped rows under the names that `spec["counts"]` has for them."""
        return {f"{role}_{ROW_RULES[rule].counted_as}": n for rule, n in self.dropped.items()}


def rows_refused_or_dropped(
    found: Iterable[Broken], n_rows: int, options: Options
) -> tuple[BrokenRows, np.ndarray | None]:
    """Return what is wrong with some rows, and which of them to drop; None if there is none."""
    found = list(found)
    counts = {
        (rule.breaks, where): Count(
            int(np.count_nonzero(rows)),
            tuple(dict.fromkeys(np.asarray(some[:1000]).tolist()))[:N_EXAMPLES],
        )
        for rule, where, rows, some in found
    }
    dropped, gone = {}, None
    for rule in (NULL_ID, *ROW_RULES.values()):  # a row with a null id counts only for that
        here = [rows for one, _, rows, _ in found if one is rule]
        if here and rule.breaks not in dropped and rule.answer(options) == "drop":
            rows = np.logical_or.reduce(here)
            dropped[rule.breaks] = int(np.count_nonzero(rows if gone is None else rows & ~gone))
            gone = rows if gone is None else gone | rows
    return BrokenRows(n_rows, counts, dropped), gone

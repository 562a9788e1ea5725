"""The rules for rows of `true` and `pred`: one table, for frames in memory and for frames whose rows are in parts.

Contract: a reader says which rows break a rule, and in which column. `find` returns its `Findings`, and which rows to
drop. `Findings.settle` raises the error of the first broken rule, or counts the dropped rows. Where the rows of a frame
are read in several places, each place returns its `Findings`, and their sum is settled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import DataError, NullKeyError, RecdfError, examples
from .options import Options

Answer = Literal["raise", "drop", "keep"]

# This many distinct values are kept as examples for a message.
N_EXAMPLES = 5


class Broken(NamedTuple):
    """Rows that break a rule in one column: a bool per row, and some of the values."""

    rule: RowRule
    where: str  # the column as messages name it, such as pred['score']
    rows: np.ndarray
    some: np.ndarray | None = None

    def counted(self) -> Count:
        some = [] if self.some is None else self.some[:1000].tolist()
        return Count(int(np.count_nonzero(self.rows)), list(dict.fromkeys(some))[:N_EXAMPLES])


@dataclass(frozen=True)
class Count:
    """How often a rule was broken in one column, and a few of the values."""

    n: int
    some: list[float]

    def __add__(self, other: Count) -> Count:
        return Count(self.n + other.n, list(dict.fromkeys([*self.some, *other.some]))[:N_EXAMPLES])


@dataclass(frozen=True)
class RowRule:
    """One rule: what breaks it, what happens to such rows under the options, and the error if they are refused.

    `error` takes the role of the frame, the counts by column and the number of rows. The dropped rows are counted in
    `spec["counts"]` under the role of the frame followed by `counted_as`.
    """

    breaks: str
    answer: Callable[[Options], Answer]
    error: Callable[[str, Mapping[str, Count], int], RecdfError]
    counted_as: str = ""


def _refused(options: Options) -> Answer:
    return "raise"


def _bad_relevance(what: str) -> Callable[[str, Mapping[str, Count], int], DataError]:
    def error(role: str, found: Mapping[str, Count], n_rows: int) -> DataError:
        ((where, count),) = found.items()
        return DataError(
            f"{where} holds {count.n:,} {what} relevances ({examples(count.some)}); "
            "expected finite numbers, 0 for not relevant"
        )

    return error


def _bad_propensity(what: str) -> Callable[[str, Mapping[str, Count], int], DataError]:
    def error(role: str, found: Mapping[str, Count], n_rows: int) -> DataError:
        ((where, count),) = found.items()
        hint = ""
        if what == "null":
            hint = "; a join leaves null where an item has none: drop these rows or fill in a propensity"
        elif what == "zero or negative" and count.n == n_rows:
            hint = "; all of them look like logarithms: take np.exp"
        elif what == "zero or negative" and 0.0 in count.some:
            hint = "; propensity_floor= above 0 makes zeros usable"
        return DataError(
            f"{where} holds {count.n:,} {what} propensities of {n_rows:,} ({examples(count.some)}); expected the "
            f"probability that a relevant item was observed, above 0 and at most 1{hint}"
        )

    return error


def _bad_weight(what: str) -> Callable[[str, Mapping[str, Count], int], DataError]:
    def error(role: str, found: Mapping[str, Count], n_rows: int) -> DataError:
        ((where, count),) = found.items()
        return DataError(
            f"{where} holds {count.n:,} {what} weights of {n_rows:,} ({examples(count.some)}); "
            "expected finite numbers, at least 0"
        )

    return error


def _null_order(by: str) -> Callable[[str, Mapping[str, Count], int], DataError]:
    def error(role: str, found: Mapping[str, Count], n_rows: int) -> DataError:
        ((where, count),) = found.items()
        return DataError(
            f'{where} holds {count.n:,} null {by}s of {n_rows:,}; drop these rows or pass nan_score="last" or "drop"'
        )

    return error


def _null_ids(role: str, found: Mapping[str, Count], n_rows: int) -> NullKeyError:
    counts = ", ".join(f"{count.n:,} in {where}" for where, count in found.items() if count.n)
    return NullKeyError(f'{role} has null ids: {counts}; drop these rows or pass null_keys="drop"')


def _of_nan_score(options: Options) -> Answer:
    answers: dict[str, Answer] = {"raise": "raise", "last": "keep", "drop": "drop"}
    return answers[options.nan_score]


def _of_null_keys(options: Options) -> Answer:
    return "raise" if options.null_keys == "raise" else "drop"


# The rules in the order in which they are reported: only the first broken rule raises its error.
NULL_RELEVANCE = RowRule("null relevance", _refused, _bad_relevance("null"))
INFINITE_RELEVANCE = RowRule("infinite relevance", _refused, _bad_relevance("infinite"))
NEGATIVE_RELEVANCE = RowRule("negative relevance", _refused, _bad_relevance("negative"))
NULL_PROPENSITY = RowRule("null propensity", _refused, _bad_propensity("null"))
NO_PROPENSITY = RowRule("propensity not above 0", _refused, _bad_propensity("zero or negative"))
LARGE_PROPENSITY = RowRule("propensity above 1", _refused, _bad_propensity("larger than 1"))
NULL_WEIGHT = RowRule("null weight", _refused, _bad_weight("null"))
BAD_WEIGHT = RowRule("negative or infinite weight", _refused, _bad_weight("negative or infinite"))
NULL_SCORE = RowRule("null score", _of_nan_score, _null_order("score"), "null_scores")
NULL_RANK = RowRule("null rank", _of_nan_score, _null_order("rank"), "null_scores")
NULL_ID = RowRule("null id", _of_null_keys, _null_ids, "null_keys")
OF_RELEVANCE = (NULL_RELEVANCE, INFINITE_RELEVANCE, NEGATIVE_RELEVANCE)
OF_PROPENSITY = (NULL_PROPENSITY, NO_PROPENSITY, LARGE_PROPENSITY)
OF_WEIGHT = (NULL_WEIGHT, BAD_WEIGHT)
RULES = (*OF_RELEVANCE, *OF_PROPENSITY, *OF_WEIGHT, NULL_SCORE, NULL_RANK, NULL_ID)


def broken_relevance(gain: np.ndarray, where: str) -> list[Broken]:
    """Return the rules that some relevances break."""
    return _broken(gain, where, zip(OF_RELEVANCE, (np.isnan, np.isinf, _negative), strict=True))


def broken_propensity(propensity: np.ndarray, where: str, floor: float) -> list[Broken]:
    """Return the rules that some propensities break. A floor above 0 makes 0 usable, since it counts as the floor."""
    tests = (np.isnan, lambda values: (values < 0) | ((values == 0) & (floor == 0)), lambda values: values > 1)
    return _broken(propensity, where, zip(OF_PROPENSITY, tests, strict=True))


def broken_weights(weights: np.ndarray, where: str) -> list[Broken]:
    """Return the rules that some weights of lists break."""
    tests = (np.isnan, lambda values: (values < 0) | np.isinf(values))
    return _broken(weights, where, zip(OF_WEIGHT, tests, strict=True))


def _broken(
    values: np.ndarray, where: str, tests: Iterable[tuple[RowRule, Callable[[np.ndarray], np.ndarray]]]
) -> list[Broken]:
    """Return the rules whose test is true for some values."""
    found = []
    for rule, bad in tests:
        rows = bad(values)
        if rows.any():
            found.append(Broken(rule, where, rows, values[rows]))
    return found


def _negative(gain: np.ndarray) -> np.ndarray:
    negative: np.ndarray = (gain < 0) & ~np.isinf(gain)
    return negative


def broken_order(null: np.ndarray | None, where: str, by: str) -> list[Broken]:
    """Return the rule that null scores or ranks break, if there are any."""
    if null is None:
        return []
    return [Broken(NULL_RANK if by == "rank" else NULL_SCORE, where, null)]


def broken_ids(null: Mapping[str, np.ndarray | None]) -> list[Broken]:
    """Return the rule that null ids break, once per column of `null`, so that the order of batches does not matter."""
    found = [rows for rows in null.values() if rows is not None]
    if not found:
        return []
    none = np.zeros(len(found[0]), bool)
    return [Broken(NULL_ID, where, none if rows is None else rows) for where, rows in null.items()]


class RowsRefused(Exception):
    """Rows of a part break a rule. It never reaches a user: the error is raised for the sum of all parts."""


@dataclass(frozen=True)
class Findings:
    """What was found in some rows of one frame; findings of other rows of the frame can be added.

    n_rows : number of rows that were read · broken : by rule and column, how often the rule was broken · dropped :
    number of rows that each rule dropped.
    """

    n_rows: int
    broken: Mapping[RowRule, Mapping[str, Count]] = field(default_factory=dict)
    dropped: Mapping[RowRule, int] = field(default_factory=dict)

    def __add__(self, other: Findings) -> Findings:
        broken = {rule: dict(columns) for rule, columns in self.broken.items()}
        for rule, columns in other.broken.items():
            mine = broken.setdefault(rule, {})
            for where, count in columns.items():
                mine[where] = mine[where] + count if where in mine else count
        dropped = dict(self.dropped)
        for rule, n in other.dropped.items():
            dropped[rule] = dropped.get(rule, 0) + n
        return Findings(self.n_rows + other.n_rows, broken, dropped)

    def refuses(self, options: Options) -> bool:
        """Whether `settle` will raise."""
        return any(rule.answer(options) == "raise" for rule in self.broken)

    def settle(self, role: str, options: Options) -> dict[str, int]:
        """Raise the error of the first rule that was broken and is not to be dropped; else return `counts`."""
        for rule in RULES:
            if rule in self.broken and rule.answer(options) == "raise":
                raise rule.error(role, self.broken[rule], self.n_rows)
        return self.counts(role)

    def counts(self, role: str) -> dict[str, int]:
        """Return the numbers of dropped rows under the names that `spec["counts"]` has for them."""
        return {f"{role}_{rule.counted_as}": n for rule, n in self.dropped.items()}

    def to_json(self) -> dict[str, Any]:
        """Return the findings in types that JSON has."""
        broken = [
            [RULES.index(rule), where, count.n, count.some]
            for rule, columns in self.broken.items()
            for where, count in columns.items()
        ]
        dropped = [[RULES.index(rule), n] for rule, n in self.dropped.items()]
        return {"n_rows": self.n_rows, "broken": broken, "dropped": dropped}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Findings:
        """Read what `to_json` returned."""
        broken: dict[RowRule, dict[str, Count]] = {}
        for rule, where, n, some in found["broken"]:
            broken.setdefault(RULES[rule], {})[where] = Count(n, some)
        return cls(found["n_rows"], broken, {RULES[rule]: n for rule, n in found["dropped"]})


def find(broken: Iterable[Broken], n_rows: int, options: Options) -> tuple[Findings, np.ndarray | None]:
    """Return what was found in some rows, of which there are `n_rows`, and which to drop; None if there is none."""
    found, gone = list(broken), None
    counts: dict[RowRule, dict[str, Count]] = {}
    dropped: dict[RowRule, int] = {}
    for rule in reversed(RULES):  # a row with a null id counts only for that, whatever its score
        here = [one for one in found if one.rule is rule]
        if not here:
            continue
        counts[rule] = {one.where: one.counted() for one in here}
        if rule.answer(options) == "drop":
            rows = np.logical_or.reduce([one.rows for one in here])
            dropped[rule] = int(np.count_nonzero(rows if gone is None else rows & ~gone))
            gone = rows if gone is None else gone | rows
    return Findings(n_rows, counts, dropped), gone

"""The rules for rows of `true` and `pred`: one table, for frames in memory and for files that are
read in batches.

Contract: a reader says which rows of a batch break a rule, and in which column. `judged` returns
its `Findings`, and which rows to drop. The findings of batches, or of several places that read a
frame, can be added. `Findings.settle` of their sum raises the error of the first broken rule, or
counts the dropped rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from ..errors import DataError, NullKeyError, RecdfError, examples
from .options import Options

Answer = Literal["raise", "drop", "keep"]

# This many distinct values are kept as examples for a message.
N_EXAMPLES = 5


class Broken(NamedTuple):
    """Rows of one batch that break a rule in one column: a bool per row, and some of the values."""

    rule: RowRule
    where: str  # the column as messages name it, such as pred['score']
    rows: np.ndarray
    some: np.ndarray | None = None


@dataclass(frozen=True)
class Count:
    """How often a rule was broken in one column, and a few of the values."""

    n: int
    some: list[float]

    def __add__(self, other: Count) -> Count:
        return Count(self.n + other.n, list(dict.fromkeys([*self.some, *other.some]))[:N_EXAMPLES])


@dataclass(frozen=True)
class RowRule:
    """One rule: what breaks it, the error if such rows are refused, and the option that says
    whether they are.

    `error` takes the role of the frame, the counts by column and the number of rows. The dropped
    rows are counted in `spec["counts"]` under the role of the frame followed by `counted_as`.
    """

    breaks: str
    error: Callable[[str, Mapping[str, Count], int], RecdfError]
    counted_as: str = ""
    option: Literal["nan_score", "null_keys", "not_judged"] | None = None

    def __reduce__(self) -> Any:
        return _row_rule, (ROW_RULES.index(self),)

    def answer(self, options: Options) -> Answer:
        """Return what happens to such rows; they are refused where no option is about them."""
        said: Answer | Literal["last"] = (
            "raise" if self.option is None else getattr(options, self.option)
        )
        return "keep" if said == "last" else said


def _number_rule(what: str, words: str) -> Callable[[str, Mapping[str, Count], int], DataError]:
    """Return the error for one column of numbers; `words` say what is wrong there and what was
    expected."""

    def error(role: str, found: Mapping[str, Count], n_rows: int) -> DataError:
        ((where, count),) = found.items()
        n, some, hint = f"{count.n:,} {what}", examples(count.some), _hint(what, count, n_rows)
        said = f"{where} holds {words.format(n=n, n_rows=f'{n_rows:,}', some=some, hint=hint)}"
        return DataError(said, column=where, count=count.n, examples=count.some)

    return error


def _hint(what: str, count: Count, n_rows: int) -> str:
    """Return what may mend propensities, as the end of a message."""
    if what == "null":
        return (
            "; a join leaves null where an item has none: drop these rows or fill in a propensity"
        )
    if what == "zero or negative" and count.n == n_rows:
        return "; all of them look like logarithms: take np.exp"
    zeros = what == "zero or negative" and 0.0 in count.some
    return "; ⟦+propensity_floor=⟧ above 0 makes zeros usable" if zeros else ""


def _null_ids(role: str, found: Mapping[str, Count], n_rows: int) -> NullKeyError:
    counts = ", ".join(f"{count.n:,} in {where}" for where, count in found.items() if count.n)
    said = f'{role} has null ids: {counts}; drop these rows or pass ⟦+null_keys="drop"⟧'
    first = next(where for where, count in found.items() if count.n)
    return NullKeyError(said, column=first, count=sum(count.n for count in found.values()))


RELEVANCES = "{n} relevances ({some}); expected finite numbers, 0 for not relevant"
NOT_JUDGED = (
    RELEVANCES
    + "; drop rows that nobody judged, or ask for judged@k too, which leaves them in the pool"
)
PROPENSITIES = (
    "{n} propensities of {n_rows} ({some}); expected the probability that a relevant item was "
    "observed, above 0 and at most 1{hint}"
)
WEIGHTS_BROKEN = "{n} weights of {n_rows} ({some}); expected finite numbers, at least 0"
NULL_ORDER = '{n}s of {n_rows}; drop these rows or pass ⟦+nan_score="last"⟧ or "drop"'

# The rules in the order in which they are reported: only the first broken rule raises its error.
OF_RELEVANCE = (
    RowRule("null relevance", _number_rule("null", NOT_JUDGED), option="not_judged"),
    RowRule("infinite relevance", _number_rule("infinite", RELEVANCES)),
    RowRule("negative relevance", _number_rule("negative", NOT_JUDGED), option="not_judged"),
)
OF_PROPENSITY = (
    RowRule("null propensity", _number_rule("null", PROPENSITIES)),
    RowRule("propensity not above 0", _number_rule("zero or negative", PROPENSITIES)),
    RowRule("propensity above 1", _number_rule("larger than 1", PROPENSITIES)),
)
OF_WEIGHT = tuple(
    RowRule(f"{what} weight", _number_rule(what, WEIGHTS_BROKEN))
    for what in ("null", "negative or infinite")
)
OF_ORDER = {
    by: RowRule(f"null {by}", _number_rule(f"null {by}", NULL_ORDER), "null_scores", "nan_score")
    for by in ("score", "rank")
}
NULL_ID = RowRule("null id", _null_ids, "null_keys", "null_keys")
ROW_RULES = (*OF_RELEVANCE, *OF_PROPENSITY, *OF_WEIGHT, *OF_ORDER.values(), NULL_ID)


def _row_rule(number: int) -> RowRule:
    return ROW_RULES[number]


Test = Callable[[np.ndarray], np.ndarray]


def broken_relevance(gain: np.ndarray, where: str) -> list[Broken]:
    """Return the rules that some relevances break."""
    return _broken(
        gain,
        where,
        OF_RELEVANCE,
        np.isnan,
        np.isinf,
        lambda values: (values < 0) & ~np.isinf(values),
    )


def broken_propensity(propensity: np.ndarray, where: str, floor: float) -> list[Broken]:
    """Return the rules that some propensities break. A floor above 0 makes 0 usable, since it
    counts as the floor."""
    not_above = np.less if floor > 0 else np.less_equal
    return _broken(
        propensity,
        where,
        OF_PROPENSITY,
        np.isnan,
        lambda values: not_above(values, 0),
        lambda values: values > 1,
    )


def broken_weights(weights: np.ndarray, where: str) -> list[Broken]:
    """Return the rules that some weights of lists break."""
    return _broken(
        weights, where, OF_WEIGHT, np.isnan, lambda values: (values < 0) | np.isinf(values)
    )


def _broken(values: np.ndarray, where: str, rules: Sequence[RowRule], *tests: Test) -> list[Broken]:
    """Return the rules whose test is true for some values."""
    found = [(rule, bad(values)) for rule, bad in zip(rules, tests, strict=True)]
    return [Broken(rule, where, rows, values[rows]) for rule, rows in found if rows.any()]


def broken_order(null: np.ndarray | None, where: str, by: str) -> list[Broken]:
    """Return the rule that null scores or ranks break, if there are any."""
    if null is None:
        return []
    return [Broken(OF_ORDER[by], where, null)]


def broken_ids(null: Mapping[str, np.ndarray | None]) -> list[Broken]:
    """Return the rule that null ids break, once per column of `null`, so that the order of batches
    does not matter."""
    found = [rows for rows in null.values() if rows is not None]
    if not found:
        return []
    none = np.zeros(len(found[0]), bool)
    return [Broken(NULL_ID, where, none if rows is None else rows) for where, rows in null.items()]


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
    broken: Mapping[RowRule, Mapping[str, Count]] = field(default_factory=dict)
    dropped: Mapping[RowRule, int] = field(default_factory=dict)

    def __add__(self, other: BrokenRows) -> BrokenRows:
        broken = {rule: dict(columns) for rule, columns in self.broken.items()}
        for rule, columns in other.broken.items():
            mine = broken.setdefault(rule, {})
            for where, count in columns.items():
                mine[where] = mine[where] + count if where in mine else count
        dropped = dict(self.dropped)
        for rule, n in other.dropped.items():
            dropped[rule] = dropped.get(rule, 0) + n
        return BrokenRows(self.n_rows + other.n_rows, broken, dropped)

    def refuses(self, options: Options) -> bool:
        """Whether `settle` will raise."""
        return any(rule.answer(options) == "raise" for rule in self.broken)

    def settle(self, role: str, options: Options) -> dict[str, int]:
        """Raise the error of the first rule that was broken and is not to be dropped; else return
        `counts`."""
        for rule in ROW_RULES:
            if rule in self.broken and rule.answer(options) == "raise":
                raise rule.error(role, self.broken[rule], self.n_rows)
        return self.counts(role)

    def counts(self, role: str) -> dict[str, int]:
        """Return the numbers of dropped rows under the names that `spec["counts"]` has for them."""
        return {f"{role}_{rule.counted_as}": n for rule, n in self.dropped.items()}


def rows_refused_or_dropped(
    broken: Iterable[Broken], n_rows: int, options: Options
) -> tuple[BrokenRows, np.ndarray | None]:
    """Return what is wrong with some rows, and which of them to drop; None if there is none."""
    counts: dict[RowRule, dict[str, Count]] = {}
    found, dropped, gone = list(broken), {}, None
    for rule in reversed(
        ROW_RULES
    ):  # a row with a null id counts only for that, whatever its score
        here = [one for one in found if one.rule is rule]
        for one in here:
            some = (
                []
                if one.some is None
                else list(dict.fromkeys(one.some[:1000].tolist()))[:N_EXAMPLES]
            )
            counts.setdefault(rule, {})[one.where] = Count(int(np.count_nonzero(one.rows)), some)
        if here and rule.answer(options) == "drop":
            rows = np.logical_or.reduce([one.rows for one in here])
            dropped[rule] = int(np.count_nonzero(rows if gone is None else rows & ~gone))
            gone = rows if gone is None else gone | rows
    return BrokenRows(n_rows, counts, dropped), gone

"""Tables: the rows of `true`, of `pred` and of side tables, their ids read and their rows checked.

Contract: `ReadRows` hold the rows that are kept, as ids and numbers, beside the frame that they
come from. `ROW_RULES` say which rows are not allowed; they raise an error or are dropped, as the
options of the call say.

The rules are one table, for frames in memory and for files that are read in batches. What was found
in batches, or in several places that read a frame, are `BrokenRows`, which can be added.
`BrokenRows.settle` of the sum raises the error of the first broken rule.

`hints_of` says what the columns of both frames tell of a wrong call: an unused score, swapped
frames, a `by` column in `true`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypedDict

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame, Series

from ..errors import ColumnError, DataError, NullKeyError, OptionError, RecdfError, examples
from .codes import known_ids
from .frames import column, float_column, id_frame, read_numbers, read_order
from .ids import IdColumn, read_by, read_ids
from .options import Options, as_columns, given_column


class Order(TypedDict):
    """What orders `pred`: a score, a rank, or the order of its rows."""

    by: Literal["score", "rank", "row"]
    column: str | None


@dataclass(frozen=True)
class ReadRows:
    """One long frame that was read and checked: the ids and numbers of the rows that are kept.

    `number` is the gain of a row of `true`, or the score (`descending`) or rank of a row of `pred`;
    None means the order of the rows. `number_col` is the column it was read from. `row` are the
    positions of the rows in `frame`; None means all of them.
    """

    role: str
    frame: DataFrame
    keys: list[IdColumn]
    by: list[IdColumn]
    item: IdColumn
    number: ndarray | None
    row: ndarray | None
    counts: dict[str, int]
    descending: bool = True
    number_col: str | None = None

    def __len__(self) -> int:
        return len(self.item)

    def frame_rows(self, rows: ndarray) -> ndarray:
        """Return the positions in `frame` of some rows of the table."""
        return rows if self.row is None else self.row.take(rows)


# ------------------------------------------------------------------------------------------------
# rules for rows

# This many distinct values are kept as examples for a message.
N_EXAMPLES = 5
OfRow = Literal["relevance", "propensity", "weight", "score", "rank", "id"]


def _null_numbers(values: ndarray) -> ndarray:
    # The minimum is NaN if any number is, and it needs no array.
    some = values.dtype.kind == "f" and len(values) > 0 and np.isnan(values.min())
    return np.isnan(values) if some else np.zeros(0, bool)


@dataclass(frozen=True)
class Count:
    """How often a rule was broken in one column, and a few of the values."""

    n: int
    some: tuple[Any, ...]

    def __add__(self, other: Count) -> Count:
        return Count(self.n + other.n, tuple(dict.fromkeys((*self.some, *other.some)))[:N_EXAMPLES])


@dataclass(frozen=True)
class RowRule:
    """One rule for values of one kind: what breaks it, and the option that says what happens to
    such rows.

    breaks : names the rule · what : how messages call such values · bad : tells which values break
    it · option : says what happens to such rows, which are refused where there is none · hint : how
    to mend them, as the end of a message.
    """

    of: OfRow
    breaks: str
    what: str
    bad: Callable[[ndarray], ndarray] = _null_numbers
    option: Literal["nan_score", "null_keys", "not_judged"] | None = None
    hint: str = ""

    def answer(self, options: Options) -> str:
        """Return what happens to such rows: "raise", "drop", or that they stay."""
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
        some = examples(count.some)
        hint = self.hint
        if hint == FLOOR:
            hint = LOGARITHMS if count.n == n_rows else FLOOR if 0.0 in count.some else ""
        words = SAID[self.of].format(n=f"{n:,} {self.what}", rows=f"{n_rows:,}", some=some)
        if role in ("a", "b"):  # `interleave` takes no nan_score
            words = words.partition(" or pass")[0]
        return DataError(f"{where} holds {words}{hint}", column=where, count=n, examples=count.some)


OF_ORDER = '{n}s of {rows}; drop these rows or pass ⟦+nan_score="last"⟧ or "drop"'
SAID: dict[str, str] = {
    "relevance": "{n} relevances ({some}); expected finite numbers, 0 for not relevant",
    "propensity": "{n} propensities of {rows} ({some}); expected the probability that a relevant "
    "item was observed, above 0 and at most 1",
    "weight": "{n} weights of {rows} ({some}); expected finite numbers, at least 0",
    "score": OF_ORDER,
    "rank": OF_ORDER,
}
POOL = "; drop rows that nobody judged, or ask for judged@k too, which leaves them in the pool"
JOINED = "; a join leaves null where an item has none: drop these rows or fill in a propensity"
FLOOR = "; ⟦+propensity_floor=⟧ above 0 makes zeros usable"
LOGARITHMS = "; all of them look like logarithms: take np.exp"
NULL_ID = RowRule("id", "null id", "null", option="null_keys")
# In the order in which they are reported: only the first broken rule raises its error.
ROW_RULES = {
    rule.breaks: rule
    for rule in (
        RowRule("relevance", "null relevance", "null", option="not_judged", hint=POOL),
        RowRule("relevance", "infinite relevance", "infinite", np.isinf),
        RowRule(
            "relevance",
            "negative relevance",
            "negative",
            lambda values: (values < 0) & ~np.isinf(values),
            "not_judged",
            POOL,
        ),
        RowRule("propensity", "null propensity", "null", hint=JOINED),
        RowRule(
            "propensity",
            "propensity not above 0",
            "zero or negative",
            lambda values: values <= 0,
            hint=FLOOR,
        ),
        RowRule("propensity", "propensity above 1", "larger than 1", lambda values: values > 1),
        RowRule("weight", "null weight", "null"),
        RowRule(
            "weight",
            "negative or infinite weight",
            "negative or infinite",
            lambda values: (values < 0) | np.isinf(values),
        ),
        RowRule(
            "weight",
            "weight without a square",
            "very large or very small",
            lambda values: (values > 1e100) & ~np.isinf(values) | (values > 0) & (values < 1e-100),
            hint="; divide all by the largest: squares of weights from 1e-100 to 1e100 are numbers",
        ),
        RowRule("score", "null score", "null score", option="nan_score"),
        RowRule("rank", "null rank", "null rank", option="nan_score"),
        NULL_ID,
    )
}
# What follows the role of a frame in `spec["counts"]`, for the rows that an option drops.
COUNTED_AS = {"nan_score": "null_scores", "null_keys": "null_keys"}


class Broken(NamedTuple):
    """Rows of one batch that break a rule in one column: a bool per row, and some of the values."""

    rule: RowRule
    where: str  # the column as messages name it, such as pred['score']
    rows: ndarray
    some: ndarray | tuple[()] = ()


def broken(of: OfRow, values: ndarray, where: str) -> list[Broken]:
    """Return the rules for values of a kind that some of these values break."""
    found = [(rule, rule.bad(values)) for rule in ROW_RULES.values() if rule.of == of]
    return [Broken(rule, where, rows, values[rows]) for rule, rows in found if rows.any()]


def added(one: Mapping[Any, Any], two: Mapping[Any, Any]) -> dict[Any, Any]:
    """Join two mappings; the values of a key that both have are added."""
    return {**one, **two, **{key: one[key] + two[key] for key in one.keys() & two.keys()}}


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
        return BrokenRows(
            self.n_rows + other.n_rows,
            added(self.broken, other.broken),
            added(self.dropped, other.dropped),
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


def rows_refused_or_dropped(
    found: Sequence[Broken], n_rows: int, options: Options
) -> tuple[BrokenRows, ndarray | None]:
    """Return what is wrong with some rows, and which of them to drop; None if there is none."""
    counts = {
        (rule.breaks, where): Count(
            int(np.count_nonzero(rows)),
            tuple(dict.fromkeys(np.asarray(some[:1000]).tolist()))[:N_EXAMPLES],
        )
        for rule, where, rows, some in found
    }
    dropped = {}
    gone = None
    for rule in dict.fromkeys([NULL_ID, *ROW_RULES.values()] if found else []):
        here = [rows for one, _, rows, _ in found if one is rule]
        if here and rule.answer(options) == "drop":  # a row with a null id counts only for that
            rows = np.logical_or.reduce(here)
            dropped[rule.breaks] = int(np.count_nonzero(rows if gone is None else rows & ~gone))
            gone = rows if gone is None else gone | rows
    return BrokenRows(n_rows, counts, dropped), gone


# ------------------------------------------------------------------------------------------------
# reading


def read_rows(
    frame: DataFrame,
    role: str,
    options: Options,
    number: ndarray | None = None,
    by: Sequence[str] = (),
    found: Sequence[Broken] = (),
    findings: dict[str, BrokenRows] | None = None,
) -> ReadRows:
    """Read the id columns; refuse or drop rows with null ids and the rows that break
    another rule.

    Where the frame is a part of larger data, `findings` gets what is wrong with its rows, and
    nothing is raised for it.
    """
    if len(frame) >= 2**31:
        raise DataError(
            f"{role} has {len(frame):,} rows; one call takes fewer than 2**31: evaluate parts by "
            "user"
        )
    of_by = [read_by([column(frame, name, role)], f"{role}[{name!r}]")[0] for name in by]
    names = options.pair
    *keys, item = (
        read_ids(column(frame, name, role, apart=by), f"{role}[{name!r}]") for name in names
    )
    ids = *keys, *of_by, item
    if any(one.null is not None for one in ids):  # each column, so that batches are alike
        found = [*found, *(Broken(NULL_ID, one.where, one.nulls()) for one in ids)]
    judged, gone = rows_refused_or_dropped(found, len(frame), options)
    if findings is None:
        judged.settle(role, options)
    else:
        findings[role] = judged
    counts = {
        f"{role}_{COUNTED_AS[ROW_RULES[rule].option or '']}": n
        for rule, n in judged.dropped.items()
    }
    if gone is None:
        return ReadRows(role, frame, keys, of_by, item, number, None, counts)
    kept = np.flatnonzero(~gone)
    keys, of_by = ([one.take(kept) for one in columns] for columns in (keys, of_by))
    number = None if number is None else number[kept]
    return ReadRows(role, frame, keys, of_by, item.take(kept), number, kept, counts)


# The column of `true` that holds relevances by default, as `rank` and `score` order `pred` by
# default.
RELEVANCE_NAME = "relevance"


def _named_otherwise(options: Options, *more: Any) -> set[Any]:
    """Return the columns that have another meaning in the call: ids, values, and `more`."""
    return {*options.list_key, options.item_col, options.value_col, *more}


def relevance_source(frame: DataFrame, options: Options) -> str | None:
    """Return the column of `true` that holds relevances: that of `relevance_col=`, else one named
    `relevance`."""
    given: str | Literal[False] | None = options.relevance_col
    if given is not None:
        found: str | None = given_column(given)
        return found
    taken = _named_otherwise(options, options.propensity_col, options.weight_name)
    return (
        RELEVANCE_NAME if RELEVANCE_NAME in frame.columns and RELEVANCE_NAME not in taken else None
    )


def read_true(
    frame: DataFrame, options: Options, findings: dict[str, BrokenRows] | None = None
) -> ReadRows:
    """Read `true`; its numbers are gains, 0 for a row that is judged and not relevant."""
    name = relevance_source(frame, options)
    found = broken_of_true(frame, options)
    number: ndarray = np.broadcast_to(1.0, len(frame))  # a view that repeats one number
    if name is not None:
        given = read_relevance(frame, name, options)
        found = [*broken("relevance", given, f"true[{name!r}]"), *found]
        number = gains(given, options)
    elif options.min_relevance is not None:
        raise OptionError(
            f"⟦min_relevance={options.min_relevance}⟧ needs ⟦+relevance_col=⟧, or a column of "
            f"true named {RELEVANCE_NAME!r}"
        )
    table = read_rows(frame, "true", options, number, found=found, findings=findings)
    if options.not_judged == "keep" and table.number is not None and name is not None:
        table.counts["true_not_judged"] = int(np.count_nonzero(table.number < 0))
    return replace(table, number_col=name)


def broken_of_true(frame: DataFrame, options: Options) -> list[Broken]:
    """Return the rules that the propensities and the weights in `true` break."""
    found = []
    name = options.propensity_col
    weight = options.weight_name
    if name is not None:
        values = float_column(frame, name, "true")
        # A floor above 0 makes 0 usable, since it counts as the floor.
        floored = np.where(values == 0, options.propensity_floor, values)
        found += broken("propensity", floored, f"true[{name!r}]")
    if options.weight_source == "true":
        found += broken("weight", float_column(frame, weight, "true"), f"true[{weight!r}]")
    return found


def read_weights(values: Series, where: str, options: Options) -> ndarray:
    """Read the weights of lists that stand beside `true`, and raise for those that are no
    weights."""
    numbers = read_numbers(values, where).astype(np.float64)
    found = broken("weight", numbers, where)
    rows_refused_or_dropped(found, len(numbers), options)[0].settle(where, options)
    return numbers


def read_relevance(frame: DataFrame, name: str, options: Options) -> ndarray:
    """Read relevances as given. If a column that was only found by its name holds no numbers, the
    error says so."""
    try:
        return float_column(frame, name, "true")
    except DataError as error:
        if options.relevance_col is not None:
            raise
        raise error.within(
            after="; pass ⟦+relevance_col=False⟧ if every row of true is relevant"
        ) from None


def gains(relevance: ndarray, options: Options) -> ndarray:
    """Return the gains of relevances: a row below `min_relevance` is judged and not relevant, so
    its gain is 0.

    A row that nobody judged has the gain −1, which sorts it behind all that are judged.
    """
    least = options.min_relevance
    found = relevance if least is None else np.where(relevance >= least, relevance, 0.0)
    return found if options.not_judged == "raise" else np.where(relevance >= 0, found, -1.0)


def _shared_by(true: DataFrame, options: Options) -> list[str]:
    """Return the `by` columns that `true` has too."""
    return [name for name in as_columns(options.by) if name in true.columns]


def by_in_true(true: DataFrame, options: Options) -> list[str]:
    """Return the `by` columns whose values are matched with those of `true`."""
    asked = options.by_in_true
    shared = _shared_by(true, options)
    names = shared if asked is True else as_columns(given_column(asked))
    if (asked is True and not names) or not set(names) <= set(shared):
        raise ColumnError(
            f"⟦by_in_true={asked!r}⟧; expected columns of ⟦+by={as_columns(options.by)}⟧ that true "
            f"has, which are {shared or 'none'}; true has {', '.join(map(repr, true.columns))}"
        )
    return names


# The names of columns that order `pred` unasked, by what a convention takes first.
FOUND_ORDERS: dict[str, tuple[Literal["score", "rank"], ...]] = {
    "rank": ("rank", "score"),
    "score": ("score", "rank"),
    "row": (),
}


def order_source(frame: DataFrame, options: Options) -> Order:
    """Find out what orders `pred`, and in which column it is."""
    if options.rank_col is not None:
        return {"by": "rank", "column": options.rank_col}
    if given_column(options.score_col) is not None:
        return {"by": "score", "column": options.score_col}
    first = "rank" if options.convention is None else options.convention.order
    taken = _named_otherwise(options, *as_columns(options.by))
    for name in () if options.score_col is False else FOUND_ORDERS[first]:
        if name in frame.columns and name not in taken:
            return {"by": name, "column": name}
    return {"by": "row", "column": None}


def read_pred(
    frame: DataFrame,
    order: Order,
    options: Options,
    role: str = "pred",
    findings: dict[str, BrokenRows] | None = None,
) -> ReadRows:
    """Read `pred`, or other recommended lists; its numbers are scores or ranks."""
    name = order["column"]
    of = order["by"]
    convention = options.convention
    number: ndarray | None = None
    found: list[Broken] = []
    if name is not None and of != "row":
        number = read_order(column(frame, name, role), f"{role}[{name!r}]")
        if of == "score" and convention is not None and convention.score_bits == 32:
            with np.errstate(over="ignore"):
                number = number.astype(np.float32).astype(np.float64)
        found = broken(of, number, f"{role}[{name!r}]")
    table = read_rows(frame, role, options, number, as_columns(options.by), found, findings)
    return replace(table, descending=of != "rank", number_col=name)


def read_users(users: Any, user_cols: list[str]) -> tuple[DataFrame, list[IdColumn]]:
    """Read a population given as ids or as a frame of ids: the frame, and its ids."""
    frame = id_frame(users, "users", user_cols)
    return frame, [known_ids(frame, "users", name) for name in user_cols]


def raw_ratings(table: ReadRows, options: Options, rows: ndarray) -> ndarray:
    """Read the relevance of rows of the frame `true` as given, whatever `min_relevance` is."""
    if table.number_col is None:
        raise OptionError("needs ⟦+relevance_col=⟧ (the rating in true)")
    return read_relevance(table.frame, table.number_col, options).take(rows)


def raw_scores(table: ReadRows, rows: ndarray) -> ndarray:
    """Read the scores of rows of the frame `pred`."""
    if table.number_col is None or not table.descending:
        raise OptionError("needs ⟦+score_col=⟧ (the predicted rating in pred)")
    # The numbers of the table cannot be used, since they may be places in the order of the scores.
    return float_column(table.frame, table.number_col, table.role).take(rows)


# ------------------------------------------------------------------------------------------------
# hints

# Words in the names of columns that hold scores, and ranks.
SCORES = re.compile(
    "scor(es?|ing)|ratings?|stars|pred(s|ict(ed|ions?))?|est(imated?)?|prob(s|a|ability)?|likelihood|confidence|logits?|sim(ilarity)?|y?hat|affinity"
)
RANKS, IDS = re.compile("rank(s|ing)?|pos(ition)?|place"), re.compile("ids?")
DISTANCES = re.compile("dist(s|ances?)?|dissimilarity")
# Why the order of the lists may be another one than that which is meant: the score counts 1, 2, 3,
# ... along the rows as ranks do; a score stands beside the rank and says otherwise; the score is a
# distance, of which the smallest is best.
OrderDoubt = Literal["counts", "beside", "distance"]


class Hints(NamedTuple):
    """What the columns tell.

    unused_order : columns of `pred` that look like scores or ranks, where the order of its rows
    ranks it unasked · doubts : what to look for in the lists, and in which column; nothing where
    the caller named it, unless that has the name of something else · swapped : `true` has a score
    or a rank instead, or `pred` a relevance · true_by : `by` columns that `true` has too.
    """

    unused_order: list[Any]
    swapped: bool
    true_by: list[str]
    doubts: dict[OrderDoubt, str]


def hints_of(true: DataFrame | None, pred: DataFrame, options: Options) -> Hints:
    """Read the hints from the columns of both frames."""
    more = options.relevance_col, options.propensity_col, options.weight_name
    taken = _named_otherwise(options, *as_columns(options.by), *more)
    order = order_source(pred, options)
    by_score = order["by"] == "score"
    name = order["column"]
    asked = options.score_col is False or (
        options.convention is not None and options.convention.order == "row"
    )
    by_row = name is None and not asked
    others = [name for name in dict.fromkeys(pred.columns) if name not in taken] if by_row else []
    of_true = set[Any]() if true is None or not by_row else set(true.columns)
    swapped = {"score", "rank"} & of_true - taken or "relevance" in others

    def numbers(name: Any) -> bool:
        values = pred[name]  # two columns of one name are a frame
        is_number = pd.api.types.is_any_real_numeric_dtype
        return isinstance(values, Series) and is_number(values.dtype)

    doubts: dict[OrderDoubt, str] = {}
    if name is not None and (options.rank_col is not None or options.score_col is not None):
        doubts = {"counts": name} if by_score and is_rank(name) else {}
        doubts |= {"distance": name} if by_score and _has(name, DISTANCES) else {}
    elif by_score and name is not None:  # a rank beside it is passed over only by a convention
        doubts = {"counts": name}
    elif name is not None and "score" in pred.columns and "score" not in taken and numbers("score"):
        doubts = {"beside": "score"}
    return Hints(
        [name for name in others if looks_like_order(name) and numbers(name)],
        true is not None and "relevance" not in of_true and bool(swapped),
        _shared_by(true, options) if true is not None and options.by_in_true is None else [],
        doubts,
    )


def looks_like_order(name: Any) -> bool:
    """Tell whether the name of a column is that of a score or a rank."""
    return (is_rank(name) or _has(name, SCORES)) and not _has(name, IDS)


def is_rank(name: Any) -> bool:
    """Tell whether the name of a column is that of a rank."""
    return _has(name, RANKS)


def argument_of(name: Any) -> str:
    """Return the argument to pass for a column that looks like a score or a rank, as messages write
    it."""
    return f"⟦+{'rank' if is_rank(name) else 'score'}_col={name!r}⟧"


def _has(name: Any, words: re.Pattern[str]) -> bool:
    """Tell whether a word in the name of a column is one of these: `predictedRating_1` has
    "predicted" and "rating"."""
    return any(
        words.fullmatch(one.lower())
        for one in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", str(name))
    )

"""Tables: the rows of `true`, of `pred` and of side tables, their ids read and their rows checked.

Contract: `ReadRows` hold the rows that are kept, as ids and numbers, beside the frame that they
come from. `row_rules` says which rows are not allowed; they raise an error or are dropped, as the
options of the call say.

`hints_of` says what the columns of both frames tell of a wrong call: an unused score, swapped
frames, a `by` column in `true`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypedDict, overload

import numpy as np
import pandas as pd

from ..errors import ColumnError, DataError, OptionError
from .codes import known_ids
from .frames import column, id_frame, read_numbers, read_order
from .ids import IdColumn, read_by, read_ids
from .options import Options, as_columns
from .row_rules import NULL_ID, Broken, BrokenRows, broken, rows_refused_or_dropped


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
    frame: pd.DataFrame
    keys: list[IdColumn]
    by: list[IdColumn]
    item: IdColumn
    number: np.ndarray | None
    row: np.ndarray | None
    counts: dict[str, int]
    descending: bool = True
    number_col: str | None = None

    def __len__(self) -> int:
        return len(self.item)

    @overload
    def frame_rows(self, rows: np.ndarray) -> np.ndarray: ...
    @overload
    def frame_rows(self, rows: None) -> np.ndarray | None: ...
    def frame_rows(self, rows: np.ndarray | None) -> np.ndarray | None:
        """Return the positions in `frame` of some rows of the table; None stands for all rows in
        order."""
        if self.row is None or rows is None:
            return self.row if rows is None else rows
        return self.row.take(rows)

    def kept(self, keep: np.ndarray) -> ReadRows:
        rows = np.flatnonzero(keep)
        return replace(
            self,
            keys=[ids.take(rows) for ids in self.keys],
            by=[ids.take(rows) for ids in self.by],
            item=self.item.take(rows),
            number=None if self.number is None else self.number[rows],
            row=self.frame_rows(rows),
        )


def _read_ids(
    frame: pd.DataFrame,
    role: str,
    number: np.ndarray | None,
    by: list[str],
    options: Options,
    found: Sequence[Broken],
    findings: dict[str, BrokenRows] | None = None,
) -> ReadRows:
    """Read the id columns; refuse or drop rows with null ids and the rows that break
    another rule.

    Where the frame is a part of larger data, `findings` gets what is wrong with its rows, and
    nothing is raised for it.
    """

    def ids(name: str) -> IdColumn:
        return read_ids(column(frame, name, role, apart=by), f"{role}[{name!r}]")

    if len(frame) >= 2**31:
        raise DataError(
            f"{role} has {len(frame):,} rows; one call takes fewer than 2**31: evaluate parts by "
            "user"
        )
    by_ids = [read_by([column(frame, name, role)], f"{role}[{name!r}]")[0] for name in by]
    keys, item = [ids(name) for name in as_columns(options.user_col)], ids(options.item_col)
    nulls = {one.where: one.null for one in (*keys, *by_ids, item)}
    if any(rows is not None for rows in nulls.values()):  # each column, so that batches are alike
        none = np.zeros(len(frame), bool)
        of_ids = [
            Broken(NULL_ID, where, none if rows is None else rows) for where, rows in nulls.items()
        ]
        found = [*found, *of_ids]
    judged, gone = rows_refused_or_dropped(found, len(frame), options)
    if findings is None:
        judged.settle(role, options)
    else:
        findings[role] = judged
    table = ReadRows(role, frame, keys, by_ids, item, number, None, judged.counts(role))
    return table if gone is None else table.kept(~gone)


# The column of `true` that holds relevances by default, as `rank` and `score` order `pred` by
# default.
RELEVANCE_NAME = "relevance"


def relevance_source(frame: pd.DataFrame, options: Options) -> str | None:
    """Return the column of `true` that holds relevances: that of `relevance_col=`, else one named
    `relevance`."""
    named: str | Literal[False] | None = options.relevance_col
    if named is not None:
        return named or None
    taken = {
        *as_columns(options.user_col),
        options.item_col,
        options.value_col,
        options.propensity_col,
    }
    taken.add(options.weight_name)
    return (
        RELEVANCE_NAME if RELEVANCE_NAME in frame.columns and RELEVANCE_NAME not in taken else None
    )


def read_true(
    frame: pd.DataFrame, options: Options, findings: dict[str, BrokenRows] | None = None
) -> ReadRows:
    """Read `true`; its numbers are gains, 0 for a row that is judged and not relevant."""
    name = relevance_source(frame, options)
    found = broken_of_true(frame, options)
    if name is None:
        if options.min_relevance is not None:
            raise OptionError(
                f"⟦min_relevance={options.min_relevance}⟧ needs ⟦+relevance_col=⟧, or a column of "
                f"true named {RELEVANCE_NAME!r}"
            )
        ones = np.broadcast_to(1.0, len(frame))  # a view that repeats one number
        return _read_ids(frame, "true", ones, [], options, found, findings)
    where = f"true[{name!r}]"
    given = read_relevance(frame, name, options)
    found = [*broken("relevance", given, where), *found]
    table = _read_ids(frame, "true", gains(given, options), [], options, found, findings)
    counts = table.counts
    if options.not_judged == "keep" and table.number is not None:
        counts = counts | {"true_not_judged": int(np.count_nonzero(table.number < 0))}
    return replace(table, number_col=name, counts=counts)


def broken_of_true(frame: pd.DataFrame, options: Options) -> list[Broken]:
    """Return the rules that the propensities and the weights in `true` break."""
    found: list[Broken] = []
    if options.propensity_col is not None:
        where, values = _floats_of(frame, options.propensity_col)
        # A floor above 0 makes 0 usable, since it counts as the floor.
        floored = np.where(values == 0, options.propensity_floor, values)
        found += broken("propensity", floored, where)
    if options.weight_source == "true":
        where, values = _floats_of(frame, options.weight_name)
        found += broken("weight", values, where)
    return found


def _floats_of(true: pd.DataFrame, name: Any) -> tuple[str, np.ndarray]:
    """Return how messages name a column of `true`, and its numbers."""
    where = f"true[{name!r}]"
    return where, read_numbers(column(true, name, "true"), where).astype(np.float64)


def read_weights(values: pd.Series, where: str, options: Options) -> np.ndarray:
    """Read the weights of lists that stand beside `true`, and raise for those that are no
    weights."""
    numbers = read_numbers(values, where).astype(np.float64)
    found = broken("weight", numbers, where)
    rows_refused_or_dropped(found, len(numbers), options)[0].settle(where, options)
    return numbers


def read_relevance(frame: pd.DataFrame, name: str, options: Options) -> np.ndarray:
    """Read relevances as given. If a column that was only found by its name holds no numbers, the
    error says so."""
    try:
        return _floats_of(frame, name)[1]
    except DataError as error:
        if options.relevance_col is not None:
            raise
        raise error.within(
            after="; pass ⟦+relevance_col=False⟧ if every row of true is relevant"
        ) from None


def gains(relevance: np.ndarray, options: Options) -> np.ndarray:
    """Return the gains of relevances: a row below `min_relevance` is judged and not relevant, so
    its gain is 0.

    A row that nobody judged has the gain −1, which sorts it behind all that are judged.
    """
    least = options.min_relevance
    found = relevance if least is None else np.where(relevance >= least, relevance, 0.0)
    return found if options.not_judged == "raise" else np.where(relevance >= 0, found, -1.0)


def shared_by(true: pd.DataFrame, options: Options) -> list[str]:
    """Return the `by` columns that `true` has too."""
    return [name for name in as_columns(options.by) if name in true.columns]


def by_in_true(true: pd.DataFrame, options: Options) -> list[str]:
    """Return the `by` columns whose values are matched with those of `true`."""
    asked, shared = options.by_in_true, shared_by(true, options)
    names = shared if asked is True else as_columns(asked or None)
    if asked and (not names or not set(names) <= set(shared)):
        raise ColumnError(
            f"⟦by_in_true={asked!r}⟧; expected columns of ⟦+by={as_columns(options.by)}⟧ that true "
            f"has, which are {shared or 'none'}; true has {', '.join(map(repr, true.columns))}"
        )
    return names


def order_source(frame: pd.DataFrame, options: Options) -> Order:
    """Find out what orders `pred`, and in which column it is."""
    if options.rank_col is not None:
        return {"by": "rank", "column": options.rank_col}
    if options.score_col:
        return {"by": "score", "column": options.score_col}
    taken = {
        *as_columns(options.user_col),
        *as_columns(options.by),
        options.item_col,
        options.value_col,
    }
    order = "rank" if options.convention is None else options.convention.order
    order = "row" if options.score_col is False else order
    known: dict[str, tuple[Literal["score", "rank"], ...]] = {
        "rank": ("rank", "score"),
        "score": ("score", "rank"),
        "row": (),
    }
    for name in known[order]:
        if name in frame.columns and name not in taken:
            return {"by": name, "column": name}
    return {"by": "row", "column": None}


def read_pred(
    frame: pd.DataFrame,
    order: Order,
    options: Options,
    role: str = "pred",
    findings: dict[str, BrokenRows] | None = None,
) -> ReadRows:
    """Read `pred`, or other recommended lists; its numbers are scores or ranks."""
    name, by = order["column"], as_columns(options.by)
    if name is None:
        return _read_ids(frame, role, None, by, options, [], findings)
    where = f"{role}[{name!r}]"
    number = read_order(column(frame, name, role), where)
    if (
        order["by"] == "score"
        and options.convention is not None
        and options.convention.score_bits == 32
    ):
        with np.errstate(over="ignore"):
            number = number.astype(np.float32).astype(np.float64)
    found = broken("score" if order["by"] == "score" else "rank", number, where)
    table = _read_ids(frame, role, number, by, options, found, findings)
    return replace(table, descending=order["by"] == "score", number_col=name)


def read_keyed(frame: pd.DataFrame, role: str, user_cols: list[str], options: Options) -> ReadRows:
    """Read a side table of (key, item) rows; it may have all, some or none of the key columns."""
    return _read_ids(frame, role, None, [], options.updated(user_col=user_cols), [])


def read_users(users: Any, user_cols: list[str]) -> tuple[pd.DataFrame, list[IdColumn]]:
    """Read a population given as ids or as a frame of ids: the frame, and its ids."""
    frame = id_frame(users, "users", user_cols)
    return frame, [known_ids(frame, "users", name) for name in user_cols]


def read_catalogue(items: Any, item_col: str, role: str = "items") -> tuple[pd.DataFrame, IdColumn]:
    """Read `items`: a frame with one row per item, or its ids as a list, array, Series or Index."""
    frame = id_frame(items, role, [item_col])
    return frame, known_ids(frame, role, item_col)


def raw_ratings(table: ReadRows, rows: np.ndarray, options: Options) -> np.ndarray:
    """Read the relevance of rows of `true` as given, whatever `min_relevance` is."""
    if table.number_col is None:
        raise OptionError("needs ⟦+relevance_col=⟧ (the rating in true)")
    numbers = read_relevance(table.frame, table.number_col, options)
    return numbers.take(table.frame_rows(rows))


def raw_scores(table: ReadRows, rows: np.ndarray, order: Order) -> np.ndarray:
    """Read the scores of rows of `pred`."""
    if order["by"] != "score" or table.number is None:
        raise OptionError("needs ⟦+score_col=⟧ (the predicted rating in pred)")
    name = table.number_col
    assert name is not None
    # The numbers of the table cannot be used, since they may be places in the order of the scores.
    scores = read_numbers(table.frame[name], f"{table.role}[{name!r}]").astype(np.float64)
    return scores.take(table.frame_rows(rows))


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
    ranks it unasked · doubts : what to look for in the lists, and in which column · swapped :
    `true` has a score or a rank instead, or `pred` a relevance · true_by : `by` columns that `true`
    has too.
    """

    unused_order: list[Any]
    swapped: bool
    true_by: list[str]
    doubts: dict[OrderDoubt, str]


def hints_of(true: pd.DataFrame | None, pred: pd.DataFrame, options: Options) -> Hints:
    """Read the hints from the columns of both frames."""
    taken: set[Any] = {
        *as_columns(options.user_col),
        *as_columns(options.by),
        options.item_col,
        options.value_col,
    }
    taken |= {options.relevance_col, options.propensity_col, options.weight_name}
    asked = options.score_col is False or (
        options.convention is not None and options.convention.order == "row"
    )
    by_row = order_source(pred, options)["by"] == "row" and not asked
    columns, others = (
        {"relevance"} if true is None else set(true.columns),
        set(pred.columns) - taken,
    )
    names = [name for name in dict.fromkeys(pred.columns) if by_row and name not in taken]
    return Hints(
        [name for name in names if looks_like_order(name) and _holds_numbers(pred[name])],
        by_row
        and "relevance" not in columns
        and bool({"score", "rank"} & columns - taken or "relevance" in others),
        shared_by(true, options) if true is not None and options.by_in_true is None else [],
        _doubts(pred, order_source(pred, options), taken, options),
    )


def _doubts(
    pred: pd.DataFrame, order: Order, taken: set[Any], options: Options
) -> dict[OrderDoubt, str]:
    """Return what may be wrong with the order: nothing where the caller named its column, unless
    that has the name of something else."""
    name = order["column"]
    if name is None:
        return {}
    if options.rank_col is not None or options.score_col is not None:
        by_score = order["by"] == "score"
        found: dict[OrderDoubt, str] = {"counts": name} if by_score and is_rank(name) else {}
        return found | ({"distance": name} if by_score and _has(name, DISTANCES) else {})
    if order["by"] == "score":  # beside a rank, only where a convention takes scores before ranks
        return {"counts": name}
    beside = "score" in pred.columns and "score" not in taken and _holds_numbers(pred["score"])
    return {"beside": "score"} if beside else {}


def looks_like_order(name: Any) -> bool:
    """Tell whether the name of a column is that of a score or a rank."""
    return (is_rank(name) or _has(name, SCORES)) and not _has(name, IDS)


def _holds_numbers(values: Any) -> bool:
    kind = (
        values.dtype if isinstance(values, pd.Series) else None
    )  # two columns of one name are a frame
    return (
        kind is not None
        and pd.api.types.is_numeric_dtype(kind)
        and not pd.api.types.is_bool_dtype(kind)
    )


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

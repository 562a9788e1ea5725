"""What the columns of both frames tell of a wrong call: an unused score, swapped frames, a `by` column in `true`."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pandas as pd

from .options import Options, as_columns
from .true_and_pred import order_source, shared_by

# Words in the names of columns that hold scores, and ranks.
SCORES = re.compile(
    "scor(es?|ing)|ratings?|stars|pred(s|ict(ed|ions?))?|est(imated?)?|prob(s|a|ability)?|likelihood|confidence|logits?|"
    "sim(ilarity)?|y?hat|affinity"
)
RANKS, IDS = re.compile("rank(s|ing)?|pos(ition)?|place"), re.compile("ids?")


class Hints(NamedTuple):
    """What the columns tell.

    unused_order : columns of `pred` that look like scores or ranks, where the order of its rows ranks it unasked ·
    swapped : `true` has a score or a rank instead, or `pred` a relevance · true_by : `by` columns that `true` has too.
    """

    unused_order: list[Any]
    swapped: bool
    true_by: list[str]


def hints_of(true: pd.DataFrame | None, pred: pd.DataFrame, options: Options) -> Hints:
    """Read the hints from the columns of both frames."""
    taken: set[Any] = {*as_columns(options.user_col), *as_columns(options.by), options.item_col, options.value_col}
    taken |= {options.relevance_col, options.propensity_col, options.weight_name}
    asked = options.score_col is False or (options.convention is not None and options.convention.order == "row")
    by_row = order_source(pred, options)["by"] == "row" and not asked
    columns, others = set() if true is None else set(true.columns), set(pred.columns) - taken
    names = [name for name in dict.fromkeys(pred.columns) if by_row and name not in taken]
    return Hints(
        [name for name in names if _looks_like_order(name) and _holds_numbers(pred[name])],
        by_row and true is not None and bool({"score", "rank"} & columns - taken or "relevance" in others - columns),
        shared_by(true, options) if true is not None and options.by_in_true is None else [],
    )


def _looks_like_order(name: Any) -> bool:
    return (is_rank(name) or _has(name, SCORES)) and not _has(name, IDS)


def _holds_numbers(values: Any) -> bool:
    kind = values.dtype if isinstance(values, pd.Series) else None  # two columns of one name are a frame
    return kind is not None and pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)


def is_rank(name: Any) -> bool:
    """Tell whether the name of a column is that of a rank."""
    return _has(name, RANKS)


def argument_of(name: Any) -> str:
    """Return the argument to pass for a column that looks like a score or a rank, as messages write it."""
    return f"⟦+{'rank' if is_rank(name) else 'score'}_col={name!r}⟧"


def _has(name: Any, words: re.Pattern[str]) -> bool:
    """Tell whether a word in the name of a column is one of these: `predictedRating_1` has "predicted" and "rating"."""
    return any(words.fullmatch(one.lower()) for one in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", str(name)))

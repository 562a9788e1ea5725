"""The frames of `golden/union`, its rows of expected numbers, and what adapters share.

An adapter takes the frames and the parameters of a row, and returns what recdf says: one value per
user, as a mapping from user ids, or one number for a row of all users. Adapters stand in one module
per section of the definitions, under keys: `"mapr"` for all rows of a metric, `"mapr:stat"` for
those with a parameter, `"auc:like=elliot"` for those with one value of it, `"mapr:implicit"` for
those of a library. The most specific key is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

import recdf as rd

GOLDEN = Path(__file__).parents[2] / "golden" / "union"
WHOLE = 10**6  # k = inf: no list is so long
NOTHING_RELEVANT = {"3", "9"}  # users for whom some libraries say 0 where a metric is undefined

Params = dict[str, Any]
Values = Mapping[int, float] | float


@cache
def table(name: str) -> pd.DataFrame:
    """One of the frames, such as "true". Nobody may change it."""
    return pd.read_csv(GOLDEN / f"{name}.csv")


class Frames:
    """The frames by name. `true` has all rows; `relevant` is without those that are in the pool and
    not judged."""

    def __getattr__(self, name: str) -> pd.DataFrame:
        return table(name)

    @property
    def relevant(self) -> pd.DataFrame:
        return self.true[self.true["relevance"] >= 0]


Adapter = Callable[[Frames, Params], Values]


def parsed(text: str) -> tuple[Params, bool]:
    """Parameters of a row, and whether it is a trap. A word without a value, such as "unseen items
    only", is True."""
    trap = "(TRAP" in text
    plain, _, hint = text.partition("(TRAP")
    hint = hint.strip(" )") if "=" in hint else ""
    params: Params = {}
    for part in filter(None, (one.strip() for one in [*plain.split(","), *hint.split(",")])):
        name, given, value = part.partition("=")
        params[name] = _value(value) if given else True
    return params, trap


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def at_k(params: Params) -> Params:
    """The parameters with `k` as calls take it."""
    return {**params, "k": WHOLE} if params.get("k") == float("inf") else dict(params)


def per_user(
    frames: Frames, name: str, params: Params, true: pd.DataFrame | None = None, **options: Any
) -> Values:
    """Values of a metric by user, over the users of both frames."""
    true, options = frames.relevant if true is None else true, {"users": "all", **options}
    table = getattr(rd, name).per_user(true, frames.pred, **at_k(params), **options)
    return dict(zip(table["user_id"], table.iloc[:, -1], strict=True))


def plainly(name: str, **options: Any) -> Adapter:
    """The adapter of a metric whose parameters are those of the rows."""
    return lambda frames, params: per_user(frames, name, params, **options)


def mean_over(users: Any, name: str, **options: Any) -> Adapter:
    """The adapter of a mean over a population, for rows of all users."""

    def mean(frames: Frames, params: Params) -> float:
        return getattr(rd, name)(
            frames.relevant, frames.pred, **at_k(params), users=users, **options
        )

    return mean

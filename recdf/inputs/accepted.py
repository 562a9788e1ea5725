"""The types of the arguments that calls accept: frames, catalogues and the shared options.

Type checkers read them. At run time the value of an option is checked against the same `Literal`.

`Population` is what the option `users` asks for, and what follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd


class ArrowStream(Protocol):
    """A table with the Arrow C stream interface, as pyarrow, polars, DuckDB and others have it."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


# Rows of `true`, `pred` and of side tables: a long frame, or a mapping of users to their items.
Rows = pd.DataFrame | Mapping[Any, Any] | ArrowStream

# A collection of ids, or a frame with a column of ids.
Ids = (
    pd.DataFrame
    | pd.Series
    | pd.Index
    | np.ndarray
    | list[Any]
    | tuple[Any, ...]
    | set[Any]
    | frozenset[Any]
    | range
)

# Features of items: columns of `items`, a frame indexed by item, or a function of positions in
# `items`.
Features = str | list[str] | Rows | pd.Series | Callable[[np.ndarray, np.ndarray], np.ndarray]

PopulationRule = Literal["true", "pred", "both", "all"]
Ties = Literal["item_desc", "item_asc", "row", "worst", "raise"]
Duplicates = Literal["drop", "keep", "raise"]
NullKeys = Literal["raise", "drop"]
NanScore = Literal["raise", "last", "drop"]
Undefined = Literal["nan", "zero", "one", "raise"]


PopulationFrame = Literal["true", "pred", "given"]

# The frames that name the lists of a population. Where there are two, labels of the first come
# first.
FRAMES_OF_RULE: dict[str, tuple[PopulationFrame, ...]] = {
    "true": ("true",),
    "pred": ("pred",),
    "both": ("true",),
    "all": ("pred", "true"),
    "given": ("given",),
}


@dataclass(frozen=True, eq=False)
class Population:
    """The lists over which a mean is taken.

    Attributes
    ----------
    rule : {"true", "pred", "both", "all", "given"}
        Which lists they are: those of a frame, those that stand in both frames or in any, or those
        of given ids.
    given : ids or frame of ids, optional
        The ids as the caller gave them, with the rule "given" only.
    """

    rule: PopulationRule | Literal["given"]
    given: Ids | None = None

    @classmethod
    def of(cls, users: PopulationRule | Ids) -> Population:
        """The population that a value of the option `users` asks for."""
        return cls(users) if isinstance(users, str) else cls("given", users)

    @property
    def frames(self) -> tuple[PopulationFrame, ...]:
        """The frames that name the lists, and whose labels and dtypes the keys of the result
        have."""
        return FRAMES_OF_RULE[self.rule]

    @property
    def knows_its_keys(self) -> bool:
        """Whether the keys of all lists are known without `pred`, so that other rows of `pred` can
        be left out."""
        return "pred" not in self.frames

    @property
    def words(self) -> str:
        """The population in the spec and in messages: ids are counted, not listed."""
        return self.rule if self.given is None else f"{len(self.given)} given ids"

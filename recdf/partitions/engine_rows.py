"""The rows per list of an evaluation in a lazy frame of an engine, and what is known without computing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import pandas as pd

from ..errors import EngineError
from .engine_methods import Engine, Frame

AGAIN = "the rows per list were computed again, and there are"


@dataclass(frozen=True)
class EngineRows(Generic[Frame]):
    """Rows per list in a frame of an engine.

    empty : a pandas frame with the columns and dtypes, without rows · by : the `by` values of the rows · n : the number
    of rows · n_buckets : the number of buckets that the lists were distributed to.
    """

    engine: Engine[Frame]
    frame: Frame
    empty: pd.DataFrame
    by: pd.DataFrame
    n: int
    n_buckets: int

    def check(self, n: int, what: str = AGAIN) -> None:
        """Raise if there are more or fewer rows than when the summary was made."""
        if n != self.n:
            raise EngineError(
                f"{what} {n:,} rows, but the summary is of {self.n:,} lists. If the frames have changed since the "
                "call, evaluate them again"
            )

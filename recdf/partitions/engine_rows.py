"""The rows per list of an evaluation in a lazy frame of an engine, and what is known without computing them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

import pandas as pd

from .engine_methods import Engine, Frame


@dataclass(frozen=True)
class EngineRows(Generic[Frame]):
    """Rows per list in a frame of an engine.

    empty : a pandas frame with the columns and dtypes, without rows · by : the `by` values of all rows · n : the number
    of rows · n_buckets : the number of buckets that the lists were distributed to.
    """

    engine: Engine[Frame]
    frame: Frame
    empty: pd.DataFrame
    by: pd.DataFrame
    n: int
    n_buckets: int

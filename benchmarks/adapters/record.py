"""What an adapter is, and the frames and numbers that it takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

SIX = ("precision", "recall", "ndcg", "mapr", "mrr", "hitrate")

Values = dict[str, Mapping[Any, float]]  # metric -> user -> value
Means = dict[str, float]  # metric -> the library's own global number


@dataclass
class Tables:
    """The frames of one request: `true` and `pred`, and what the metrics beyond accuracy read."""

    true: Any
    pred: Any
    log: Any = None
    items: Any = None  # item_id, category
    features: Any = None  # item_id and one 0/1 column a feature
    base: Any = None  # recommendations of a baseline


@dataclass(frozen=True)
class Adapter:
    """A library: its distribution, how it reads a frame, and what it computes.

    `six` gives the global numbers of the six benchmark metrics (those that the library has),
    `accuracy` the values per user and the global numbers of every metric it shares with `recdf`,
    `beyond` the same for metrics that need side tables. `judged` tells that a row of `true` with
    relevance 0 is not relevant to the library. `module` is what a user imports; the benchmark
    imports it before the clock starts.
    """

    distribution: str
    accuracy: Callable[[Any, Any, list[int]], tuple[Values, Means]]
    six: Callable[[Any, Any, list[int]], Means] | None = None
    beyond: Callable[[Tables, list[int]], tuple[Values, Means]] | None = None
    read: Callable[..., Any] = pd.read_parquet
    judged: bool = False
    module: str = ""

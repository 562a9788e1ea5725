"""Measure recommendations with another library, inside that library's own environment.

    python -m adapters measure PEER REQUEST.json ANSWER.json
    python -m adapters time PEER REQUEST.json ANSWER.json

`peers.py` starts it and passes frames as parquet files; it imports numpy, pandas and the one
library that it measures, never `recdf`. Each library has a module of its own here, which imports
the library only when it is measured, and uses it in the way its documentation shows, with its
defaults. A metric is named by the metric of `recdf` that it is called after, so `ndcg@10` is what
the library itself calls NDCG at 10, and an option that is not the library's default stands in
brackets: `ndcg[divide_by_achievable=True]@10`. Without `@k`, whole lists are read.
"""

from . import (
    cornac,
    evidently,
    fuxictr,
    implicit,
    ir_measures,
    lenskit,
    lightfm,
    pytrec_eval,
    ranx,
    recbole,
    recmetrics,
    recommenders,
    recpack,
    rectools,
    replay,
    rs_metrics,
    sklearn,
    tf_ranking,
    torchmetrics,
)
from .record import SIX, Adapter
from .timing import benchmark

LIBRARIES = (
    rectools,
    replay,
    ranx,
    pytrec_eval,
    ir_measures,
    recommenders,
    recpack,
    rs_metrics,
    lenskit,
    sklearn,
    implicit,
    cornac,
    recbole,
    torchmetrics,
    fuxictr,
    lightfm,
    recmetrics,
    evidently,
    tf_ranking,
)
ADAPTERS: dict[str, Adapter] = {
    name: one for library in LIBRARIES for name, one in library.ADAPTERS.items()
}

__all__ = ["ADAPTERS", "SIX", "Adapter", "benchmark"]

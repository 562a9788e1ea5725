"""`rd.engines` has what an engine of your own needs: a class with the methods of `Engine`, and one
call.

* `help(rd.engines.Engine)` lists the methods of an engine, and says what each takes and returns.
* `rd.engines.evaluate_frames(engine, true, pred, asked, n_buckets)` evaluates two frames of the
  engine.
* `rd.engines.Asked` holds the arguments of the caller: metrics, `k`, options with side tables, and
  `partitions`.
* `rd.engines.Inline(digest, data)` sends the call to workers as bytes with every task.
* `rd.engines.Sent(work)` is work that a worker with another version of recdf refuses.
* `rd.engines.labels_of_table(table)` gives an Arrow table the default dtypes of pandas.

The page about engines has an engine in 40 lines.
"""

from __future__ import annotations

from .engine import Asked, evaluate_frames
from .engine_methods import Engine, Handle, Inline, Sent, labels_of_table
from .engine_result import EngineEvaluation

__all__ = [
    "Asked",
    "Engine",
    "EngineEvaluation",
    "Handle",
    "Inline",
    "Sent",
    "evaluate_frames",
    "labels_of_table",
]
__dir__ = __all__.copy

"""The arguments of an engine: how its `evaluate` shows them, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import pandas as pd

from ..errors import OptionError
from ..evaluation.evaluate_arguments import EngineFunction, takes_evaluate_arguments
from ..inputs.options import Options
from ..inputs.true_and_pred import argument_of, hints_of

ENGINE_PACKAGES = {"dask": "Dask", "dask_expr": "Dask", "pyspark": "Spark"}  # package of a frame -> its engine
DIFFER = ". Where scores are equal, the numbers may then differ from those of {name}"


def not_a_frame(role: str, data: Any, engine: str, make: str) -> TypeError:
    """Return the error for an argument that is no frame of the engine. `make` makes one from a pandas frame."""
    kind = type(data)
    if isinstance(data, pd.DataFrame):
        words = f"{role} is a pandas DataFrame; pass frames in memory to rd.evaluate, or make a {engine} frame: {make}"
        return TypeError(words)
    package = kind.__module__.partition(".")[0]
    what = "None" if data is None else f"a {package} {kind.__name__}"
    if kind.__module__.startswith("pyspark.pandas"):
        return TypeError(f"{role} is a frame of pyspark.pandas; expected a {engine} DataFrame: pass {role}.to_spark()")
    if kind.__name__ == "DataFrame" and ENGINE_PACKAGES.get(package, engine) != engine:
        other = ENGINE_PACKAGES[package]
        return TypeError(f"{role} is a {other} DataFrame; call rd.{other.lower()}.evaluate, which takes such frames")
    return TypeError(f"{role} is {what}; expected a {engine} DataFrame")


def refuse_ties_by_row(options: Options, given: Collection[str], engine: str) -> None:
    """Raise if the order of the rows decides between equal scores. `given` names what the caller passed."""
    if options.ties != "row":
        return
    what, differ = '⟦ties="row"⟧', ""
    if options.convention is not None and "ties" not in given:
        name = options.convention.name
        what, differ = f'⟦like="{name}"⟧ uses ⟦+ties="row"⟧: this', DIFFER.format(name=name)
    raise OptionError(
        f"{what} needs the order of the rows, which a {engine} frame does not keep; pass another rule, such as "
        f'⟦+ties="item_desc"⟧{differ}'
    )


def no_order(options: Options, pred: pd.DataFrame, engine: str) -> OptionError:
    """Return the error for a `pred` that only its rows could order."""
    if options.convention is None or options.convention.order != "row":
        unused = hints_of(None, pred, options).unused_order
        instead = " or ".join(map(argument_of, unused)) or "⟦+score_col=⟧ or ⟦+rank_col=⟧"
        return OptionError(
            f"pred has no column that orders it, and a {engine} frame has no order of rows; pass {instead}"
        )
    name = options.convention.name
    there = [f'⟦+{column}_col="{column}"⟧' for column in ("score", "rank") if column in pred.columns]
    return OptionError(
        f'⟦like="{name}"⟧ takes pred in the order of its rows, which a {engine} frame does not keep; pass '
        f'{" or ".join(there) or "⟦+score_col=⟧ or ⟦+rank_col=⟧"}, and ⟦+ties=⟧ (now "{options.ties}") for equal scores'
        + DIFFER.format(name=name)
    )


# What the docstrings of all engines say about results.
RESULTS = """\
Returns
-------
EngineEvaluation
    `.per_user` is a {name} frame whose rows are computed when they are used. `.summary` and `.spec` are those of
    `rd.evaluate`. `.to_pandas()` returns an `Evaluation` in memory. `.to_parquet(folder)` writes the rows from the
    workers.

Raises
------
ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError, UndefinedMetricError
    For the same reasons as in `rd.evaluate`.
TypeError
    If a frame is not a {name} DataFrame.
MissingExtraError
    If the extra `recdf[{extra}]` is not installed.

Notes
-----
Use it where the data are in {name} already, or do not fit in the memory of one machine. Do not use it for frames that
fit in memory: `rd.evaluate` has no job to start and nothing to shuffle. For parquet files on one machine,
`rd.evaluate_parquet` needs no cluster."""


def takes_engine_arguments(name: str) -> Callable[[EngineFunction], EngineFunction]:
    """Show the arguments of `evaluate`, and what an engine returns, on the `evaluate` of an engine."""
    results = RESULTS.format(name=name, extra=name.lower())
    return partial(takes_evaluate_arguments, engine=name, results=results)

"""The result of an engine: a small summary in memory, and the rows per list in a frame of the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import pandas as pd
import pyarrow as pa

from ..evaluation.carry import nullable
from ..evaluation.result import Evaluation
from ..evaluation.shown import result_html, result_text
from ..evaluation.spec import OneSpec
from ..evaluation.storage_parts import sorted_rows, staged_parts, write_head

Frame = TypeVar("Frame")
FrameIn = TypeVar("FrameIn", contravariant=True)


class Collects(Protocol[FrameIn]):
    """The part of an engine that a result uses."""

    def collect(self, frame: FrameIn) -> pa.Table: ...
    def write(self, frame: FrameIn, folder: Path) -> None: ...


class EngineEvaluation(Generic[Frame]):
    """Result of `rd.spark.evaluate` and `rd.dask.evaluate`.

    Attributes
    ----------
    per_user
        A frame of the engine with one row per list: `by` columns, list key columns, `n_true`, `n_pred`, one column per
        metric. It is lazy: its rows are computed, from the frames that were evaluated, whenever they are used. They
        have no particular order.
    summary : DataFrame
        A pandas frame as `rd.evaluate` returns it.
    spec : dict
        JSON-safe record of what was computed, as that of `rd.evaluate`.
    """

    def __init__(
        self,
        engine: Collects[Frame],
        per_user: Frame,
        schema: pa.Schema,
        summary: pd.DataFrame,
        spec: Mapping[str, Any],
        labels: Callable[[pa.Table], pd.DataFrame],
        by: pd.DataFrame,
    ) -> None:
        self._engine, self._per_user, self._schema = engine, per_user, schema
        self._summary, self._spec = summary, OneSpec(spec)
        self._labels, self._by = labels, by

    @property
    def per_user(self) -> Frame:
        """One row per list, lazily, in a frame of the engine."""
        return self._per_user

    @property
    def summary(self) -> pd.DataFrame:
        """One row per metric and `by` value, with the mean over the lists."""
        return self._summary

    @property
    def spec(self) -> dict[str, Any]:
        """JSON-safe record of what was computed."""
        return self._spec

    def to_pandas(self) -> Evaluation:
        """Return the result in memory, for `join_experiment`, `compare_models`, `rd.summarize` and pictures.

        Returns
        -------
        Evaluation
            Its `per_user` is sorted by `by` value, in the order of the summary, and then by list key.
        """
        table = self._engine.collect(self._per_user)
        per_user = sorted_rows(self._labels(table), self._by, self._spec["user_col"])
        per_user.attrs["recdf"] = self._spec
        return Evaluation(per_user, self._summary, self._spec)

    def to_parquet(self, folder: Any, *, overwrite: bool = False) -> None:
        """Write the result into a folder that `rd.read_parquet` reads.

        Parameters
        ----------
        folder : path
            A folder on a drive that the workers and this process share. It gets `summary.parquet` and the folder
            `per_user.parquet`, into which the workers write; nothing passes through the memory of this process. Rows
            for an object store are written by the engine itself, from `per_user`.
        overwrite : bool, default False
            Replace a result that is already there.

        Raises
        ------
        FileExistsError
            If the folder holds a result and `overwrite` is False.
        """
        empty = self._labels(self._schema.empty_table())
        for name in self._spec.get("carry", ()):  # some lists may have no value
            empty[name] = nullable(empty[name])
        with staged_parts(folder, overwrite=overwrite) as rows:
            self._engine.write(self._per_user, rows)
            write_head(rows, empty, self._summary, self._spec)

    def __repr__(self) -> str:
        return result_text(self._title(), self._summary)

    def _repr_html_(self) -> str:
        return result_html(self._title(), self._summary, None)

    def _title(self) -> str:
        return f"recdf {self._spec['recdf']}: per_user is lazy, summary {len(self._summary)} rows"

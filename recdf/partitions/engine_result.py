"""The result of an engine: a small summary in memory, and the rows per list in a frame of the
engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from ..errors import OptionError
from ..evaluation.result import Evaluation, Result
from ..evaluation.spec import OneSpec
from ..evaluation.storage import (
    is_address,
    mounted,
    sorted_rows,
    staged_parts,
    stored_rows,
    write_head,
)
from ..judge.choices import RaiseOrDrop
from .engine_methods import EngineRows
from .engine_moments import MomentsCall
from .in_buckets import each_bucket


class EngineEvaluation(Result):
    """Result of `rd.spark.evaluate` and `rd.dask.evaluate`: a summary in memory and lazy rows per
    list.

    Attributes
    ----------
    per_user
        A frame of the engine with one row per list. It has the `by` columns, the list key columns,
        `n_true`, `n_pred` and one column per metric. It is lazy: whenever its rows are used, they
        are computed again from the frames that were evaluated. The rows have no particular order.
    summary : DataFrame
        The summary as `rd.evaluate` returns it, a pandas frame.
    spec : dict
        JSON-safe record of what was computed, as `rd.evaluate` returns it.
    """

    def __init__(self, rows: EngineRows, summary: pd.DataFrame, spec: Mapping[str, Any]) -> None:
        self._rows, self._summary, self._spec = rows, summary, OneSpec(spec)

    @property
    def per_user(self) -> Any:
        """A lazy frame of the engine with one row per list."""
        return self._rows.frame

    def to_pandas(self) -> Evaluation:
        """Return the result in memory, for `join_experiment`, `compare_models`, `rd.summarize` and
        pictures.

        Use it where one row per list fits in memory. Where it does not, use `per_user` or
        `to_parquet`.

        Returns
        -------
        Evaluation
            Its `per_user` is sorted by `by` value, in the order of the summary, and then by list
            key.
        """
        table = self._rows.engine.collect(self._rows.frame)
        self._rows.check(len(table))
        per_user = sorted_rows(self._rows.labels(table), self._rows.by, self._spec["user_col"])
        per_user.attrs["recdf"] = self._spec
        return Evaluation(per_user, self._summary, self._spec)

    @property
    def rows_stay(self) -> bool:
        """True: the rows are in a frame of the engine."""
        return True

    @property
    def empty_rows(self) -> pd.DataFrame:
        """The columns and dtypes of `per_user`, and what was evaluated."""
        empty = self._rows.empty.copy(deep=False)
        empty.attrs = {"recdf": self.spec}
        return empty

    @property
    def by_values(self) -> pd.DataFrame:
        """The `by` values of the rows."""
        return self._rows.by

    def each_bucket(
        self, work: Callable[[pd.DataFrame], Any], columns: Sequence[str], keys: Sequence[str]
    ) -> list[Any]:
        """Return what `work` makes of some columns of each bucket; `keys` deal the rows."""
        return each_bucket(self._rows, work, columns, keys)

    def variant_moments(
        self,
        assignment: Any,
        metrics: str | Sequence[str] | Mapping[str, Any] | None = None,
        *,
        covariates: str | Mapping[str, Any] | None = None,
        user_col: str | Sequence[str] | None = None,
        variant_col: str = "variant",
        by: str | Sequence[str] | None = None,
        nan: RaiseOrDrop = "raise",
        **options: Any,
    ) -> pd.DataFrame:
        """Join the rows to an experiment's assignment, and reduce the users to the moments of each
        variant.

        The result is that of `rd.experiments.variant_moments` on the users that `join_experiment`
        gives in memory. Here every worker joins and reduces the users of its buckets, and no rows
        come to this process.

        Parameters
        ----------
        assignment : DataFrame or frame of the engine
            One row per assigned user: key, `variant_col`, and further columns (segments, pre-period
            metrics). A pandas frame is sent to every worker. If a user stands there twice with the
            same variant, one of the rows counts.
        metrics : str, list of str or mapping, optional
            Columns of `per_user` or of `assignment`, or "has_metrics", 1 for users with rows; also
            name → (numerator, denominator), a ratio of sums. Default: the metrics of the
            evaluation.
        covariates : str, list of str or mapping, optional
            Columns from before the experiment, as in `rd.experiments.variant_moments`.
        user_col : str or list of str, optional
            Key of the assignment. Default: the columns of the list key that it has.
        variant_col : str, default "variant"
            Column of `assignment` with the variant. If the evaluation is `by` this column too, only
            the lists that a user was shown under the assigned variant count.
        by : str or list of str, optional
            Segments: `by` columns of the evaluation, and columns of the assignment. Default: those
            of the evaluation.
        nan : {"raise", "drop"}, default "raise"
            Users whose metric is null: error, or leave them out of that metric and count them in
            `n_null`.
        **options
            `missing`, `multi_variant`, `unassigned`, `smaller_is_better`, `larger_is_better`,
            `how`, `over`, as in `rd.join_experiment`.

        Returns
        -------
        DataFrame
            One row per (`by`, variant, metric) in memory, for
            `rd.experiments.compare_variants_from_moments`.

        Raises
        ------
        ColumnError, IdTypeError, NullKeyError, DuplicateError, DataError
            As `rd.join_experiment` and `rd.experiments.variant_moments`. Where a message counts
            rows or users, it says that they are those of one bucket.
        OptionError
            An unknown option value, or times of exposure, which need all users together.
        EngineError
            If a job of the engine fails.

        Notes
        -----
        Use it where the users do not fit in memory. Do not use it where they do: after
        `to_pandas()`, `rd.compare_variants` also takes strata, clusters, weights and resampling.

        Examples
        --------
        >>> moments = result.variant_moments(
        ...     assignment, "ndcg@10", missing="zero"
        ... )  # doctest: +SKIP
        >>> rd.experiments.compare_variants_from_moments(
        ...     moments, control="A", by="model"
        ... )  # doctest: +SKIP
        """
        of_users: dict[str, Any] = {"covariates": covariates, "user_col": user_col}
        of_users |= {"variant_col": variant_col, "by": by, "nan": nan}
        return MomentsCall.of(
            self._rows, self._spec, assignment, metrics, options | of_users
        ).result()

    def to_parquet(self, folder: Any, *, overwrite: bool = False) -> None:
        """Write the result into a folder that `rd.read_parquet` reads.

        Parameters
        ----------
        folder : path
            A folder on a drive that the workers and this process share. It gets `summary.parquet`
            and the folder `per_user.parquet`. The workers write the rows, so these never pass
            through the memory of this process. For an object store, write `per_user` with the
            engine itself.
        overwrite : bool, default False
            Replace a result that the folder already holds.

        Raises
        ------
        FileExistsError
            If the folder holds a result and `overwrite` is False, or if it is a file.
        OptionError
            If the folder is an address, such as `s3a://...`.
        EngineError
            If a worker cannot compute or write its rows. An older result in the folder stays as it
            was.
        """
        if is_address(folder):
            path = f": pass {found}" if (found := mounted(str(folder))) else ""
            raise OptionError(
                f"{folder} is an address; expected a folder on a drive that the workers and this "
                f"process share{path}. Or write the rows with the engine itself: "
                f"result.per_user.write.parquet({str(folder)!r}) in Spark, "
                f"result.per_user.to_parquet({str(folder)!r}) in Dask; and keep result.summary, a "
                "pandas frame"
            )
        with staged_parts(folder, overwrite=overwrite) as rows:
            self._rows.engine.write(self._rows.frame, rows)
            self._rows.check(
                stored_rows(rows),
                f"the workers do not share the drive of {folder}, where there are",
            )
            write_head(rows, self._rows.empty, self._summary, self._spec)

    def unpersist(self) -> None:
        """Give back the memory in which Spark keeps rows since the call had `cache=True`.

        The result can still be used. Spark reads the frames again when it needs their rows.
        """
        self._rows.engine.unpersist()

    def _compared_rows(self, unused: str | None) -> EngineEvaluation:
        rows = replace(self._rows, empty=self._rows.empty.drop(columns=unused or []))
        return EngineEvaluation(rows, self._summary, self._spec)

    def __getattr__(self, name: str) -> Any:
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        if hasattr(Evaluation, name):
            message += f"; bring the rows into memory first: result.to_pandas().{name}"
        raise AttributeError(message)

    def _of_rows(self) -> str:
        return "is lazy"

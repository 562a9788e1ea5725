"""`evaluate`: two frames and metric strings in, an `Evaluation` with two tidy tables out; `summarize`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .columns import frame_of
from .compare import compare_models
from .errors import ColumnError, DataError, OptionError, closest
from .experiment import join_experiment, own_variant
from .match import match
from .metric import Metric, Request, check_needs, compute, label_frame, parse
from .moments import Moments
from .options import NAMES, Options, as_columns, check_names, takes_options
from .storage import write_evaluation

__all__ = ["Evaluation", "evaluate", "summarize"]

CONFIDENCE = 0.95

SUMMARY = ("metric", "k", "value", "std", "se", "ci_low", "ci_high", "n", "n_undefined")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Result of `evaluate`: two tables and what they mean.

    Attributes
    ----------
    per_user : DataFrame
        `by` columns, list key columns, `n_true`, `n_pred` (int64), one float64 column per metric.
    summary : DataFrame
        `by` columns, `metric`, `k` (Int64), `value`, `std`, `se`, `ci_low`, `ci_high` (float64), `n`,
        `n_undefined` (int64).
    spec : dict
        JSON-safe record of what was computed: definitions, options, order of `pred`, counts of what was
        dropped, package version. Also in `attrs["recdf"]` of both tables.
    """

    per_user: pd.DataFrame
    summary: pd.DataFrame
    spec: dict[str, Any]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented
        return (
            self.spec == other.spec
            and _same_frame(self.per_user, other.per_user)
            and _same_frame(self.summary, other.summary)
        )

    __hash__ = None  # type: ignore[assignment]

    def to_parquet(self, folder: Any, *, overwrite: bool = False) -> None:
        """Write `per_user.parquet` and `summary.parquet` into a folder, all or nothing.

        Parameters
        ----------
        folder : path
            Made if absent. The spec goes into the schema metadata of both files.
        overwrite : bool, default False
            Replace a result that is already there.

        Raises
        ------
        FileExistsError
            If the folder holds a result and `overwrite` is False.

        Examples
        --------
        >>> import tempfile, recdf as rd
        >>> result = rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.to_parquet(folder)
        ...     rd.read_parquet(folder) == result
        True
        """
        write_evaluation(folder, self, overwrite=overwrite)

    def join_experiment(
        self,
        assignment: pd.DataFrame,
        *,
        user_col: str | Sequence[str] | None = None,
        variant_col: str = "variant",
        by: str | Sequence[str] | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """Join `per_user` to an experiment's assignment: `rd.join_experiment` with the columns of this evaluation.

        Parameters
        ----------
        assignment : DataFrame
            One row per assigned user: key, `variant_col`, and columns to carry along (segment, pre-period metric).
        user_col : str or list of str, optional
            Key of the assignment. Default: those columns of the list key that it has. When these are fewer than
            the list key (lists by session, users assigned), pass `how="sum"` or `"mean"` to roll the lists up.
        variant_col : str, default "variant"
            Column of `assignment` with the variant. If the evaluation is `by` this column too, the lists that a
            user was shown under the assigned variant are taken.
        by : str or list of str, optional
            Columns that tell several rows of a user apart. Default: those of the evaluation, without `variant_col`.
        **options
            `missing`, `multi_variant`, `unassigned`, `exposure_col`, `time_col`, `how`, as in `rd.join_experiment`.

        Returns
        -------
        DataFrame
            One row per assigned user and `by` value, ready for `rd.compare_variants`.

        Raises
        ------
        ColumnError, IdTypeError, NullKeyError, DuplicateError, DataError, OptionError
            As `rd.join_experiment`; `DataError` also if a user has lists of other variants than the assigned one only.

        Examples
        --------
        >>> import pandas as pd, recdf as rd
        >>> result = rd.evaluate({"ann": ["a"], "bob": ["b"]}, {"ann": ["a"], "bob": ["a"]}, "mrr@1")
        >>> groups = pd.DataFrame({"user_id": ["ann", "bob", "cat"], "variant": ["A", "B", "B"]})
        >>> result.join_experiment(groups, missing="zero")[["user_id", "variant", "mrr@1", "has_metrics"]]
          user_id variant  mrr@1  has_metrics
        0     ann       A    1.0         True
        1     bob       B    0.0         True
        2     cat       B    0.0        False
        """
        frame_of("assignment", assignment)
        keys = as_columns(user_col)
        if not keys:
            keys = [name for name in self.spec["user_col"] if name in assignment.columns] or self.spec["user_col"]
        recommenders = self.spec["by"] if by is None else as_columns(by)
        per_user = self.per_user
        if variant_col in recommenders and variant_col in assignment.columns:
            recommenders = [name for name in recommenders if name != variant_col]
            per_user = own_variant(per_user, assignment, keys, variant_col)
        options |= {"user_col": keys, "variant_col": variant_col, "by": recommenders}
        return join_experiment(per_user, assignment, **options)

    def compare_models(
        self,
        metrics: str | Sequence[str] | None = None,
        *,
        model_col: str | None = None,
        user_col: str | Sequence[str] | None = None,
        fold: str | Sequence[str] | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """Compare the recommenders of this evaluation: `rd.compare_models` with its columns.

        Parameters
        ----------
        metrics : str or list of str, optional
            Columns of `per_user`. Default: all metrics.
        model_col : str, optional
            Column of the model. Default: the `by` column of the evaluation, if there is one only.
        user_col : str or list of str, optional
            Columns that name an independent unit. Default: the list key. With lists by session, pass the user.
        fold : str or list of str, optional
            Models are paired within its values, and a user counts once with the mean over them. Default: what is
            left of `by` and the list key.
        **options
            `baseline`, `test`, `users`, `alternative`, `confidence`, `margin`, `correction`, `family`, `n_resamples`,
            `seed`, `smaller_is_better`, as in `rd.compare_models`.

        Returns
        -------
        DataFrame
            One row per metric and pair of models.

        Raises
        ------
        ColumnError, IdTypeError, NullKeyError, DuplicateError, DataError, OptionError, MissingExtraError
            As `rd.compare_models`; `OptionError` also if the evaluation is not `by` one column and no `model_col` is
            given.

        Examples
        --------
        >>> import recdf as rd
        >>> shop = rd.sample_shop()
        >>> result = rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
        >>> result.compare_models(baseline="popularity")[["model", "n_users", "diff", "verdict"]].round(3)
            model  n_users   diff verdict
        0     knn     1537  0.046  better
        1  random     1537 -0.128   worse
        """
        recommenders, key = self.spec["by"], self.spec["user_col"]
        if model_col is None:
            if len(recommenders) != 1:
                found = f"by {recommenders}" if recommenders else "without by="
                fix = "name the one of the models in model_col=" if recommenders else "evaluate with by="
                raise OptionError(f"the evaluation was made {found}; {fix}, so that there are models to compare")
            model_col = recommenders[0]
        units = key if user_col is None else as_columns(user_col)
        if fold is None:
            fold = [name for name in [*recommenders, *key] if name not in (*units, model_col)]
        options |= {"user_col": units, "model_col": model_col, "fold": fold}
        return compare_models(self.per_user, metrics, **options)

    def __repr__(self) -> str:
        return f"{self._title()}\n{self.summary.to_string(index=False)}"

    def _repr_html_(self) -> str:
        head = self.per_user.head(5).to_html(index=False)
        return f"<p>{self._title()}</p>{self.summary.to_html(index=False)}<p>per_user, first rows</p>{head}"

    def _title(self) -> str:
        rows, columns = self.per_user.shape
        return f"recdf {self.spec['recdf']}: per_user {rows:,} × {columns}, summary {len(self.summary)} rows"


def _same_frame(one: pd.DataFrame, two: pd.DataFrame) -> bool:
    return list(one.dtypes.items()) == list(two.dtypes.items()) and one.equals(two)


@takes_options
def evaluate(
    true: Any,
    pred: Any,
    metrics: str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric],
    k: int | Sequence[int] = 10,
    *,
    items: Any = None,
    **options: Any,
) -> Evaluation:
    """Evaluate recommendations: one row per list and one row per metric.

    Parameters
    ----------
    true : DataFrame, mapping or Arrow stream
        What was wanted: one row per (list key, item) that is relevant or judged.
    pred : DataFrame, mapping or Arrow stream
        What was shown: one row per (list key, item), with a score, a rank, or in row order.
    metrics : str, Metric, list of them, or mapping of own names to them
        Such as "ndcg@10", "ndcg" (at every `k`), "mapr(normalizer=achievable)@20".
    k : int or list of int, default 10
        Cut-offs of the metrics that name none.
    items : DataFrame, list, Series or Index, optional
        Catalogue: one row per item that could have been shown; with `value_col` also the items' values.
    {options}

    Returns
    -------
    Evaluation
        `.per_user` (one row per list of the population and `by` value), `.summary` (one row per `by` value,
        metric and k), `.spec`.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError, UndefinedMetricError
        For input that no honest number can be computed from; each names the argument, the column, what was
        found and what was expected.

    Examples
    --------
    >>> import recdf as rd
    >>> true = {"ann": ["a", "b"], "bob": ["c"]}
    >>> pred = {"ann": ["a", "x", "b"], "bob": ["x", "y", "z"]}
    >>> result = rd.evaluate(true, pred, ["hitrate", "recall"], k=[1, 3])
    >>> result.per_user
      user_id  n_true  n_pred  hitrate@1  hitrate@3  recall@1  recall@3
    0     ann       2       3        1.0        1.0       0.5       1.0
    1     bob       1       3        0.0        0.0       0.0       0.0
    >>> result.summary[["metric", "k", "value", "n"]]
        metric  k  value  n
    0  hitrate  1   0.50  2
    1  hitrate  3   0.50  2
    2   recall  1   0.25  2
    3   recall  3   0.50  2
    """
    check_names(list(options), NAMES, "evaluate")
    shared = Options.of(options)
    requests = parse(metrics, k, shared)
    check_needs(requests, shared, items)
    matched = match(true, pred, shared, items)
    labels = label_frame(matched)
    columns: dict[str, np.ndarray] = {"n_true": matched.n_true, "n_pred": matched.n_pred}
    for request in requests:
        columns.update(compute(matched, request, shared))
    taken = [name for name in columns if name in labels.columns]
    if taken:
        raise ColumnError(f"the key or by column {taken[0]!r} has the name of a result column; rename it")
    # Not consolidated: millions of lists times many metrics would be copied.
    per_user = pd.DataFrame({**{name: labels[name] for name in labels.columns}, **columns}, copy=False)
    spec = spec_of(requests, shared, matched.order, matched.counts)
    summary = _summary(per_user, list(map(str, matched.by.columns)), list(spec["metrics"]), spec, CONFIDENCE)
    # Last, since pandas copies attrs deeply whenever it makes a frame or a column.
    per_user.attrs["recdf"] = summary.attrs["recdf"] = spec
    return Evaluation(per_user, summary, spec)


def spec_of(
    requests: Sequence[Request], options: Options, order: dict[str, Any], counts: dict[str, int]
) -> dict[str, Any]:
    """The record of what was computed."""
    from . import __version__  # the package imports this module

    metrics = {
        column: {
            "name": request.name if request.own_column is None else column,
            "k": request.k,
            "definition": request.definition,
        }
        for request in requests
        for column in request.columns
    }
    for request in requests:
        if len(request.metric.outputs) > 1:
            for column, output in zip(request.columns, request.metric.outputs, strict=True):
                metrics[column]["name"] = output
    return {
        "recdf": __version__,
        "user_col": list(map(str, as_columns(options.user_col))),
        "by": list(map(str, as_columns(options.by))),
        "metrics": metrics,
        "options": options.spec(),
        "order": order,
        "counts": counts,
        "confidence": CONFIDENCE,
    }


def summarize(
    per_user: pd.DataFrame,
    by: str | Sequence[str] | None = None,
    *,
    metrics: Sequence[str] | None = None,
    confidence: float = CONFIDENCE,
) -> pd.DataFrame:
    """Mean of each metric over groups of per-user rows, with its interval.

    Formula: value = Σ x / n over the n defined rows, std with divisor n − 1, se = std / √n, interval
    value ∓ z · se, z the normal quantile of (1 + confidence) / 2.

    Parameters
    ----------
    per_user : DataFrame
        `Evaluation.per_user`, perhaps joined to segments, variants or dates, many rows to one. One row per
        list (and `by` value of the evaluation): a join that repeats lists is refused.
    by : str or list of str, optional
        Columns to group by; by default the `by` columns of the evaluation, else none. A null is a group of
        its own.
    metrics : list of str, optional
        Metric columns. By default those that the evaluation wrote, else all named like `ndcg@10`.
    confidence : float, default 0.95
        Coverage of the interval.

    Returns
    -------
    DataFrame
        `by` columns, `metric`, `k` (Int64), `value`, `std`, `se`, `ci_low`, `ci_high` (float64; std, se and
        interval null for n = 1), `n`, `n_undefined` (int64); groups in order of first appearance.

    Raises
    ------
    ColumnError
        If a column is missing.
    DataError
        If a list stands in several rows, or a metric column is not numeric.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> result = rd.evaluate({"u": ["a"], "v": ["b"]}, {"u": ["a"], "v": ["a"]}, "mrr@1")
    >>> users = pd.DataFrame({"user_id": ["u", "v"], "segment": ["new", "old"]})
    >>> joined = result.per_user.merge(users, on="user_id", validate="many_to_one")
    >>> rd.summarize(joined, by="segment")[["segment", "metric", "k", "value", "n"]]
      segment metric  k  value  n
    0     new    mrr  1    1.0  1
    1     old    mrr  1    0.0  1
    """
    spec = per_user.attrs.get("recdf") or {}
    if by is None:
        by = [name for name in spec.get("by", []) if name in per_user.columns]
    by = as_columns(by)
    names = _metric_columns(per_user, metrics, spec)
    for name in [*by, *names]:
        if name not in per_user.columns:
            have = ", ".join(map(repr, per_user.columns))
            raise ColumnError(f"per_user has no column {name!r}; it has {have}{closest(str(name), per_user.columns)}")
    if not 0 < confidence < 1:
        raise OptionError(f"confidence={confidence}; expected a share between 0 and 1")
    _refuse_repeated_lists(per_user)
    for name in names:
        if not pd.api.types.is_numeric_dtype(per_user[name].dtype):
            raise DataError(f"metric column {name!r} is {per_user[name].dtype}; expected numbers")
    plain = per_user.copy(deep=False)
    plain.attrs = {}
    table = _summary(plain, by, names, spec, confidence)
    if spec:
        table.attrs["recdf"] = spec
    return table


def _summary(
    per_user: pd.DataFrame, by: list[str], names: list[str], spec: dict[str, Any], confidence: float
) -> pd.DataFrame:
    taken = [name for name in by if name in SUMMARY]
    if taken:
        raise ColumnError(f"the by column {taken[0]!r} has the name of a column of the summary; rename it")
    if by:
        grouped = per_user.groupby(by, sort=False, dropna=False, observed=True)
        group, n_groups = grouped.ngroup().to_numpy(), grouped.ngroups
        first = np.zeros(n_groups, np.int64)
        first[group[::-1]] = np.arange(len(group))[::-1]
        labels = per_user[by].take(first).reset_index(drop=True)
    else:
        group, n_groups = np.zeros(len(per_user), np.int64), 1
        labels = pd.DataFrame(index=range(1))
    columns = (per_user[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in names)
    return summary_table(labels, names, Moments.of(columns, group, n_groups), spec, confidence)


def summary_table(
    labels: pd.DataFrame, names: Sequence[str], moments: Moments, spec: dict[str, Any], confidence: float = CONFIDENCE
) -> pd.DataFrame:
    """One row per group (a row of `labels`) and metric column."""
    statistics, n_groups = moments.statistics(confidence), len(labels)
    described = [_describe(name, spec) for name in names]
    columns: dict[str, Any] = {
        "metric": [name for name, _ in described] * n_groups,
        "k": pd.array([k for _, k in described] * n_groups, dtype="Int64"),
        **{name: array.ravel() for name, array in statistics.items()},
    }
    repeated = labels.take(np.repeat(np.arange(n_groups), len(names))).reset_index(drop=True)
    return pd.DataFrame({**{name: repeated[name] for name in repeated.columns}, **columns}, copy=False)


def _metric_columns(per_user: pd.DataFrame, metrics: Sequence[str] | None, spec: dict[str, Any]) -> list[str]:
    if metrics is not None:
        return as_columns(metrics)
    names = [name for name in spec.get("metrics", {}) if name in per_user.columns]
    # Joins lose attrs; then the names tell, so that a joined number column is not taken for a metric.
    names = names or [name for name in per_user.columns if isinstance(name, str) and _split(name)[1] is not None]
    if not names:
        raise ColumnError("per_user has no metric column named like 'ndcg@10'; pass metrics=[...]")
    return names


def _split(column: str) -> tuple[str, int | None]:
    name, at, k = column.rpartition("@")
    return (name, int(k)) if at and name and k.isdigit() else (column, None)


def _describe(column: str, spec: dict[str, Any]) -> tuple[str, int | None]:
    known = spec.get("metrics", {}).get(column)
    return (known["name"], known["k"]) if known else _split(column)


def _refuse_repeated_lists(per_user: pd.DataFrame) -> None:
    """The columns before `n_true` name a list; a join that repeats one would count it twice."""
    columns = list(per_user.columns)
    if "n_true" not in columns or columns.index("n_true") == 0:
        return
    keys = columns[: columns.index("n_true")]
    repeated = per_user.duplicated(keys)
    if repeated.any():
        example = per_user.loc[repeated.to_numpy(), keys].head(3).to_numpy().tolist()
        raise DataError(
            f"{repeated.sum():,} rows of per_user repeat a list ({keys} = {example}); join segments many to one, "
            'e.g. merge(..., validate="many_to_one")'
        )

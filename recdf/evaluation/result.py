"""`Evaluation`: two tidy tables and the record of what they mean; written to parquet and read
back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..errors import OptionError, kind_of
from ..formats.trec_files import write_trec_values
from ..inputs.codes import check_kinds, known_ids
from ..inputs.door import table_of_users
from ..inputs.ids import with_alike_ids
from ..inputs.options import ByName, as_columns
from ..judge.choices import Columns
from ..tables.cells import amount, beside_columns
from .shown import HandedOver, result_html, result_text
from .spec import check_received
from .storage import read_tables, write_tables

EQUAL_TOLERANCE = 1e-12  # of `==`


class Result:
    """A summary and the record of what it means, with their display. Where the rows are is up to
    the subclasses.

    Results of engines and stored ones, whose rows need not come into memory, have `rows_stay`,
    which tells whether they stay outside; `empty_rows`, with the columns, dtypes and what was
    evaluated; `by_values`; and `each_bucket(work, columns, keys)`, which yields what the work makes
    of each bucket. All rows of a key are in one bucket.
    """

    _summary: DataFrame
    _spec: dict[str, Any]

    @property
    def summary(self) -> DataFrame:
        """One row per metric and `by` value, with the mean over the lists."""
        return self._summary

    @property
    def spec(self) -> dict[str, Any]:
        """JSON-safe record of what was computed."""
        return self._spec

    def __repr__(self) -> str:
        return result_text(self._title(), self.summary, self.spec)

    def _repr_html_(self) -> str:
        return result_html(self._title(), self.summary, self._first_rows(), self.spec)

    def _title(self) -> str:
        return (
            f"recdf {self.spec['recdf']}: per_user {self._of_rows()}, summary "
            f"{amount(len(self.summary), 'row')}"
        )

    def _compared_rows(self, unused: str | None) -> Any:
        """Return what `compare_models` reads, without a column that it should not use."""
        raise NotImplementedError

    def compare_models(
        self,
        metrics: Columns | None = None,
        *,
        model_col: str | None = None,
        user_col: Columns | None = None,
        fold: Columns | None = None,
        by: Columns | None = None,
        **options: Any,
    ) -> DataFrame:
        """Compare the recommenders of this evaluation: `rd.compare_models` with its columns.

        Parameters
        ----------
        metrics : str or list of str, optional
            Columns of `per_user`. Default: all metrics.
        model_col : str, optional
            Column of the model. Default: the `by` column of the evaluation that is no fold, if
            there is only one.
        user_col : str or list of str, optional
            Columns that name a list. Default: those of the list key that are no fold. The unit is
            as in `rd.compare_models`, unless `unit_col` names another.
        fold : str or list of str, optional
            Columns of the fold. Models are paired within a fold, and a user counts once with the
            mean over folds. Default: the columns of `by` and of the list key that are neither model
            nor in `user_col`.
        by : str or list of str, optional
            Columns of segments, such as those that `carry=` brought, or of the frame `segments=`:
            models are compared within each, and all tests are one family.
        **options
            `baseline`, `segments`, `test`, `missing`, `alternative`, `confidence`, `margin`,
            `correction`, `family`, `n_resamples`, `seed`, `smaller_is_better`, `larger_is_better`,
            `weight_col`, `unit_col`, `cheap`, `bounds`, `details`, as in `rd.compare_models`; the
            weights are those of the evaluation by default.

        Returns
        -------
        DataFrame
            One row per metric and pair of models.

        Raises
        ------
        ColumnError, IdTypeError, NullKeyError, DuplicateError, DataError, OptionError,
        MissingExtraError
            As `rd.compare_models`; `OptionError` also if the evaluation is not `by` one column
            besides folds and no `model_col` is given.

        Examples
        --------
        >>> import recdf as rd
        >>> shop = rd.sample_shop()
        >>> result = rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
        >>> result.compare_models(baseline="popularity")[
        ...     ["model", "n_users", "diff", "verdict"]
        ... ].round(3)
            model  n_users   diff verdict
        0     knn     1537  0.046  better
        1  random     1537 -0.128   worse
        """
        from ..experiments.compare.compare_models import compare_models
        from ..experiments.metric_bounds import bounds_of_result

        recommenders = self.spec["by"]
        key = self.spec["user_col"]
        folds = as_columns(fold)
        segments = as_columns(by)
        if model_col is None:
            models = [name for name in recommenders if name not in (*folds, *segments)]
            if len(models) != 1:
                found = "without ⟦by=⟧; evaluate with ⟦+by=⟧"
                if recommenders:
                    found = f"by {recommenders}; name the one of the models in ⟦+model_col=⟧"
                raise OptionError(
                    f"the evaluation was made {found}, so that there are models to compare"
                )
            model_col = models[0]
        lists = as_columns(user_col)
        if user_col is None:
            lists = [name for name in key if name not in folds]
        if fold is None:
            others = (*lists, *segments, model_col)
            fold = [name for name in [*recommenders, *key] if name not in others]
        options |= {"user_col": lists, "model_col": model_col, "fold": fold, "by": by}
        weight = self.spec.get("weight")
        own = options.setdefault("weight_col", weight)  # None: the caller asks for no weights
        per_user = self._compared_rows(weight if own is None else None)
        rows = getattr(per_user, "empty_rows", per_user)  # an engine's values are not at hand
        if metrics is None:
            metrics = [name for name in self.spec["metrics"] if name in rows.columns]
            if not metrics:
                raise OptionError(
                    f"no metric of the evaluation is per list ({', '.join(self.spec['metrics'])}): "
                    "each is one number for all lists, which no test can compare; evaluate one "
                    "that has a value for each list too, such as 'ndcg@10'"
                )
        known = bounds_of_result(self.spec, rows, as_columns(metrics))
        options["bounds"] = known | (options.get("bounds") or {})
        return compare_models(per_user, metrics, **options)

    def _of_rows(self) -> str:
        """Return what the title says of `per_user`."""
        raise NotImplementedError

    def _first_rows(self) -> DataFrame | None:
        """Return some rows to show, if they are at hand."""
        return None


class Evaluation(Result, HandedOver):
    """Result of `evaluate`: two tables and the record of what they mean.

    Parameters
    ----------
    per_user : DataFrame
        `by` columns, list key columns, `n_true`, `n_pred` (int64), one float64 column per metric.
        Or a function without arguments that returns this frame; it is called once, when the frame
        is first asked for.
    summary : DataFrame
        `by` columns, `metric`, `k` (Int64), `value`, `std`, `se`, `ci_low`, `ci_high` (float64),
        `n`, `n_undefined` (int64), and with `weight_col` also `n_effective` (float64).
    spec : dict
        JSON-safe record of what was computed: definitions, options, order of `pred`, counts of what
        was dropped, package version. Also in `attrs["recdf"]` of both tables.

    Notes
    -----
    The tables and the spec are attributes that cannot be set.

    Two evaluations are equal (`==`) if their specs, dtypes, labels and counts are equal, and no
    computed number differs by more than 1e-12 (relative to the number, if it is larger than 1).
    Sums that are taken part by part round differently.
    """

    def __init__(
        self,
        per_user: DataFrame | Callable[[], DataFrame],
        summary: DataFrame,
        spec: dict[str, Any],
    ) -> None:
        self._per_user = per_user
        self._summary = summary
        self._spec = spec

    @property
    def per_user(self) -> DataFrame:
        """One row per list, with a column for each metric."""
        if not isinstance(self._per_user, DataFrame):
            self._per_user = self._per_user()
        return self._per_user

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluation):
            return NotImplemented
        labels = [*self.spec["by"], *self.spec["user_col"]]
        return (
            {**self.spec, "files": None} == {**other.spec, "files": None}
            and _same_frame(self.summary, other.summary, labels)
            and _same_frame(self.per_user, other.per_user, labels)
        )

    __hash__ = None  # type: ignore[assignment]

    def to_parquet(self, folder: Any, *, overwrite: bool = False) -> None:
        """Write `per_user.parquet` and `summary.parquet` into a folder, where the result appears in
        one step.

        Parameters
        ----------
        folder : path
            Made if absent. The spec goes into the schema metadata of both files.
        overwrite : bool, default False
            Replace a result that is already there.

        Raises
        ------
        FileExistsError
            If the folder holds a result and `overwrite` is False, or if it is a file.
        DataError
            If parquet could not give a key or `by` column back as it is.

        Notes
        -----
        A process that reads the folder with `rd.read_parquet` at the same time gets either the old
        or the new result, and always a whole one, also if this process is killed. Equal results
        have equal bytes.

        Examples
        --------
        >>> import tempfile, recdf as rd
        >>> result = rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.to_parquet(folder)
        ...     rd.read_parquet(folder) == result
        True
        """
        write_tables(folder, (self.per_user, self.summary, self.spec), overwrite=overwrite)

    def to_trec(self, path: Any) -> None:
        """Write the values of all lists and their means as trec_eval -q prints them.

        Parameters
        ----------
        path : path
            The file to write: a line for each metric and list, then one for each metric and "all",
            the mean. Values have four decimals, as those of trec_eval. A metric that trec_eval has
            is called as there: ndcg_cut_10, P_5, map_cut_10, and where no list is cut map, ndcg
            (from k = 1000) or recip_rank. Undefined values are left out.

        Raises
        ------
        OptionError
            If the result has several models (`by=`), or a list key of several columns.

        Examples
        --------
        >>> import pathlib, tempfile, recdf as rd
        >>> result = rd.evaluate({"u": {"a": 1}}, {"u": ["b", "a"]}, ["precision@5", "mrr@1000"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result.to_trec(path := pathlib.Path(folder, "values.txt"))
        ...     print(path.read_text().expandtabs(4), end="")
        P_5                     u   0.2000
        recip_rank              u   0.5000
        P_5                     all 0.2000
        recip_rank              all 0.5000
        """
        write_trec_values(self.per_user, self.summary, self.spec, path)

    def summarize(self, by: Columns | None = None, **options: Any) -> DataFrame:
        """Reduce the lists to means or other statistics: `rd.summarize` of this evaluation.

        Parameters
        ----------
        by : str or list of str, optional
            Columns to group by. Default: the `by` columns of the evaluation.
        **options
            `stat`, `weight_by`, `base`, `alpha`, `metrics`, `confidence`, `weight_col`,
            `unit_col`, `user_col`, `n_resamples`, `seed`, as in `rd.summarize`.

        Returns
        -------
        DataFrame
            One row per group and metric (and statistic).

        Examples
        --------
        >>> import recdf as rd
        >>> result = rd.evaluate({"u": ["a"], "v": ["b"]}, {"u": ["a"], "v": ["a"]}, "mrr@1")
        >>> result.summarize(stat="max")[["stat", "metric", "value"]]
          stat metric  value
        0  max    mrr    1.0
        """
        from .summary import summarize

        return summarize(self, by, **options)

    def join_experiment(
        self,
        assignment: DataFrame,
        *,
        user_col: Columns | None = None,
        variant_col: str = "variant",
        by: Columns | None = None,
        **options: Any,
    ) -> DataFrame:
        """Join `per_user` to an experiment's assignment: `rd.join_experiment` with the columns of
        this evaluation.

        Parameters
        ----------
        assignment : DataFrame
            One row per assigned user: key, `variant_col`, and further columns to keep (segment,
            pre-period metric).
        user_col : str or list of str, optional
            Key of the assignment. Default: the columns of the list key that it has. If it does not
            have all of them (lists are of sessions, and users were assigned), pass `how="sum"` or
            `"mean"` to roll the lists up.
        variant_col : str, default "variant"
            Column of `assignment` with the variant. If the evaluation is `by` this column too, only
            the lists that a user was shown under the assigned variant are joined.
        by : str or list of str, optional
            Columns that tell several rows of a user apart. Default: those of the evaluation,
            without `variant_col`.
        **options
            `missing`, `multi_variant`, `unassigned`, `exposure_col`, `time_col`,
            `smaller_is_better`, `larger_is_better`, `how`, `over`, as in `rd.join_experiment`.

        Returns
        -------
        DataFrame
            One row per assigned user and `by` value, ready for `rd.compare_variants`.

        Raises
        ------
        ColumnError, IdTypeError, NullKeyError, DuplicateError, DataError, OptionError
            As `rd.join_experiment`; `DataError` also if a user has lists only of other variants
            than the assigned one.

        Examples
        --------
        >>> import pandas as pd, recdf as rd
        >>> result = rd.evaluate(
        ...     {"ann": ["a"], "bob": ["b"]}, {"ann": ["a"], "bob": ["a"]}, "mrr@1"
        ... )
        >>> groups = DataFrame({"user_id": ["ann", "bob", "cat"], "variant": ["A", "B", "B"]})
        >>> result.join_experiment(groups, missing="zero")[
        ...     ["user_id", "variant", "mrr@1", "has_metrics"]
        ... ]
          user_id variant  mrr@1  has_metrics
        0     ann       A    1.0         True
        1     bob       B    0.0         True
        2     cat       B    0.0        False
        """
        # Experiments are loaded when they are asked for: evaluating does not need them.
        from ..experiments.join.join_experiment import join_experiment
        from ..judge.per_user_columns import frame_of
        from ..judge.users import own_variant

        assignment = frame_of("assignment", table_of_users(assignment, "assignment"))
        list_key = self.spec["user_col"]
        in_assignment = [name for name in list_key if name in assignment.columns]
        keys = as_columns(user_col) or in_assignment or list_key
        recommenders = self.spec["by"] if by is None else as_columns(by)
        per_user = self.per_user
        if variant_col in recommenders and variant_col in assignment.columns:
            recommenders = [name for name in recommenders if name != variant_col]
            per_user = own_variant(per_user, assignment, keys, variant_col)
        options |= {"user_col": keys, "variant_col": variant_col, "by": recommenders}
        # The other columns of the list key are sessions or days, which `how` rolls up.
        options.setdefault("over", [name for name in list_key if name not in keys])
        return join_experiment(per_user, assignment, **options)

    def _compared_rows(self, unused: str | None) -> DataFrame:
        per_user = self.per_user.drop(columns=unused or [])
        per_user.attrs = {"recdf": self.spec}
        return per_user

    def _of_rows(self) -> str:
        rows, columns = self.per_user.shape
        return f"{rows:,} × {columns}"

    def _first_rows(self) -> DataFrame | None:
        return self.per_user.head(5)


def _same_frame(one: DataFrame, two: DataFrame, labels: Sequence[str]) -> bool:
    """Tell whether dtypes, order and cells are equal; numbers that were computed may differ by
    TOLERANCE."""
    if list(one.dtypes.items()) != list(two.dtypes.items()) or len(one) != len(two):
        return False
    floats = [name for name in one.columns[one.dtypes == np.float64] if name not in labels]
    a, b = (frame[floats].to_numpy(np.float64) for frame in (one, two))
    near = np.isclose(a, b, rtol=EQUAL_TOLERANCE, atol=EQUAL_TOLERANCE, equal_nan=True)
    return bool(near.all()) and one.drop(columns=floats).equals(two.drop(columns=floats))


def read_parquet(folder: Any) -> Evaluation:
    """Read the result that `Evaluation.to_parquet` wrote, or that of `rd.spark` or `rd.dask`.

    Parameters
    ----------
    folder : path
        The folder with `per_user.parquet` and `summary.parquet`.

    Returns
    -------
    Evaluation
        Equal to the one that was written, including the dtypes of ids.

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    DataError
        If a file is truncated, damaged, or holds no recdf result, or if the spec, `per_user` and
        the summary do not fit each other, such as a mean that is not that of the rows.

    Examples
    --------
    >>> import tempfile, recdf as rd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1").to_parquet(folder)
    ...     rd.read_parquet(folder).per_user
      user_id  n_true  n_pred  mrr@1
    0       u       1       1    1.0
    """
    tables = read_tables(folder)
    check_received(*tables, folder)
    return Evaluation(*tables)


# What a joined result keeps of the record of each of its parts, by model: whoever compares two
# models reads there whether both were measured alike.
OF_PARTS = ("options", "order", "relevance", "metrics", "truth", "side_tables", "counts", "recdf")


def join_results(results: Mapping[Any, Any], *, model_col: str = "model") -> Evaluation:
    """Join results that were evaluated one by one, as `by="model"` would have made them.

    Parameters
    ----------
    results : mapping
        Name → an `Evaluation`, or a folder that `to_parquet` wrote. The name is that of the model.
        A result of several models keeps their names behind its own: "runs: als".
    model_col : str, default "model"
        Column of the model.

    Returns
    -------
    Evaluation
        `per_user` and `summary` of all results, with `model_col` first. A metric that a result
        lacks is null there. `spec["joined"]` holds what each was evaluated with, so that
        `compare_models`, `leaderboard` and `report` say where two models were not measured alike.

    Raises
    ------
    OptionError
        Fewer than two results, other list keys, `by` columns or weights, or two models of a name.
    IdTypeError
        The ids of two results are of kinds that can never be equal.
    TypeError
        A value is no result.

    Notes
    -----
    Use it for runs in folders of their own. Evaluate with `by="model"` where all recommendations
    are in one frame. Results on other truths, other populations or with other definitions can be
    joined, but the verdict of their comparison is withheld.

    Examples
    --------
    >>> import recdf as rd
    >>> shop = rd.sample_shop()
    >>> runs = {
    ...     name: rd.evaluate(shop.true, rows.drop(columns="model"), "ndcg@10")
    ...     for name, rows in shop.pred.groupby("model")
    ... }
    >>> result = rd.join_results(runs)
    >>> result.summary[["model", "metric", "value"]].round(3)
            model metric  value
    0         knn   ndcg  0.185
    1  popularity   ndcg  0.139
    2      random   ndcg  0.011
    """
    if not isinstance(results, Mapping) or len(results) < 2:
        held = f"holds {len(results)}" if isinstance(results, Mapping) else f"is {kind_of(results)}"
        raise OptionError(
            f"⟦results=⟧ {held}; expected two results or more, by the name of the model"
        )
    if not isinstance(model_col, str):
        raise OptionError(f"⟦model_col={model_col!r}⟧; expected the name of a column as a text")
    parts = {str(name): _evaluation(name, result) for name, result in results.items()}
    first_name, first = next(iter(parts.items()))
    # The name of each model of a result in the joined one; None stands for the only one.
    named: dict[str, dict[Any, str]] = {}
    for name, part in parts.items():
        with_models = model_col in part.spec["by"]
        if not with_models and model_col in {*part.per_user, *part.summary}:
            raise OptionError(
                f"⟦model_col={model_col!r}⟧ is another column of results[{name!r}]; name the "
                "models otherwise"
            )
        one, other = (_lists_of(spec, model_col) for spec in (first.spec, part.spec))
        if one != other:
            raise OptionError(
                f"the results cannot be joined: {first_name!r} has {one}, and {name!r} has {other}"
            )
        known = part.per_user[model_col].unique() if with_models else [None]
        named[name] = {one: name if len(known) == 1 else f"{name}: {one}" for one in known}
    user_col = first.spec["user_col"]
    for key in user_col:
        check_kinds(
            [known_ids(part.per_user, f"results[{name!r}]", key) for name, part in parts.items()]
        )
    models = [one for found in named.values() for one in found.values()]
    for what, given in (("the name", list(map(str, results))), ("a model", models)):
        if twice := sorted({one for one in given if given.count(one) > 1}):
            raise OptionError(f"several results have {what} {twice[0]!r}; give them other names")
    metrics = {name: one for part in parts.values() for name, one in part.spec["metrics"].items()}
    by = [model_col, *(name for name in first.spec["by"] if name != model_col)]
    spec = first.spec | {
        "by": by,
        "metrics": metrics,
        "options": {**first.spec["options"], "by": by},
    }
    alike = all(part.spec.get("truth") == spec.get("truth") for part in parts.values())
    for name in ("files",) if alike else ("files", "truth"):
        spec.pop(name, None)
    spec["joined"] = {
        label: {key: part.spec[key] for key in OF_PARTS if key in part.spec}
        for name, part in parts.items()
        for label in named[name].values()
    }
    counts = DataFrame([part.spec["counts"] for part in parts.values()])
    spec["counts"] = {str(name): int(n) for name, n in counts.sum().items()}
    kept = set.intersection(*(set(part.per_user.columns) for part in parts.values()))
    kept |= {*metrics, model_col}
    rows = with_alike_ids([part.per_user for part in parts.values()], user_col, "results")
    per_user, summary = (
        pd.concat(
            [
                _with_models(table, names, model_col)
                for table, names in zip(tables, named.values(), strict=True)
            ],
            ignore_index=True,
        )
        for tables in (rows, [part.summary for part in parts.values()])
    )
    per_user = per_user[[name for name in per_user.columns if name in kept]]
    per_user.attrs["recdf"] = summary.attrs["recdf"] = spec
    return Evaluation(per_user, summary, spec)


def _lists_of(spec: ByName, model_col: str) -> str:
    """Say what the rows of a result are about, which is alike in all results that are joined."""
    by = [one for one in spec["by"] if one != model_col]
    more = {"by": by, "weights": spec.get("weight"), "item_by": spec.get("item_by")}
    of_rows = (f", {name} {one!r}" for name, one in more.items() if one)
    return f"lists by {spec['user_col']}" + "".join(of_rows)


def _evaluation(name: Any, result: Any) -> Evaluation:
    """Return a result, read from its folder if a path was given."""
    if hasattr(result, "to_pandas"):  # a result of an engine
        result = result.to_pandas()
    if isinstance(result, Evaluation):
        return result
    if isinstance(result, DataFrame):
        raise TypeError(
            f"results[{name!r}] is a DataFrame; expected a result of rd.evaluate or its folder. "
            "rd.compare_models takes frames by model"
        )
    return read_parquet(result)


def _with_models(table: DataFrame, names: Mapping[Any, str], model_col: str) -> DataFrame:
    """Return a table whose first column is the model."""
    model: Any = next(iter(names.values()))
    if None not in names:
        model = table[model_col].map(names)
        table = table.drop(columns=model_col)
    return beside_columns(DataFrame({model_col: model}, index=table.index).astype("str"), table)

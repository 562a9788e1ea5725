"""`join_results`: results that were evaluated one by one, as one result by model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ..errors import OptionError, kind_of
from ..inputs.codes import check_kinds, known_ids
from .result import Evaluation, read_parquet

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
    labels = [str(name) for name in results]
    if twice := sorted({one for one in labels if labels.count(one) > 1}):
        raise OptionError(f"several results have the name {twice[0]!r}; give them other names")
    parts = {str(name): _evaluation(name, result) for name, result in results.items()}
    shared = {name: _labels_of(part, model_col) for name, part in parts.items()}
    (first_name, first), *others = shared.items()
    for name, found in others:
        if found != first:
            raise OptionError(
                f"the results cannot be joined: {first_name!r} has {first}, and {name!r} has "
                f"{found}"
            )
    of_all = next(iter(parts.values())).spec
    for key in of_all["user_col"]:
        check_kinds(
            [known_ids(part.per_user, f"results[{name!r}]", key) for name, part in parts.items()]
        )
    named = {name: _models(name, part, model_col) for name, part in parts.items()}
    models = [one for found in named.values() for one in found.values()]
    if twice := sorted({one for one in models if models.count(one) > 1}):
        raise OptionError(f"several results have a model {twice[0]!r}; give them other names")
    metrics = {name: one for part in parts.values() for name, one in part.spec["metrics"].items()}
    spec = {name: value for name, value in of_all.items() if name not in ("files", "truth")}
    by = [model_col, *(name for name in of_all["by"] if name != model_col)]
    truths = {part.spec.get("truth") for part in parts.values()}
    if len(truths) == 1 and None not in truths:
        spec["truth"] = truths.pop()
    spec |= {"by": by, "metrics": metrics, "options": {**spec["options"], "by": by}}
    spec["joined"] = {
        label: {key: part.spec[key] for key in OF_PARTS if key in part.spec}
        for name, part in parts.items()
        for label in named[name].values()
    }
    spec["counts"] = {
        key: sum(part.spec["counts"].get(key, 0) for part in parts.values())
        for key in dict.fromkeys(key for part in parts.values() for key in part.spec["counts"])
    }
    carried = [set(part.per_user.columns) for part in parts.values()]
    kept = {*set.intersection(*carried), *metrics, model_col}
    per_user, summary = (
        pd.concat(
            [
                _with_models(getattr(part, table), named[name], model_col)
                for name, part in parts.items()
            ],
            ignore_index=True,
        )
        for table in ("per_user", "summary")
    )
    per_user = per_user[[name for name in per_user.columns if name in kept]]
    per_user.attrs["recdf"] = summary.attrs["recdf"] = spec
    return Evaluation(per_user, summary, spec)


def _evaluation(name: Any, result: Any) -> Evaluation:
    """Return a result, read from its folder if a path was given."""
    if isinstance(result, Evaluation):
        return result
    if hasattr(result, "to_pandas"):  # a result of an engine
        result = result.to_pandas()
        if isinstance(result, Evaluation):
            return result
    if isinstance(result, pd.DataFrame):
        raise TypeError(
            f"results[{name!r}] is a DataFrame; expected a result of rd.evaluate or its folder. "
            "rd.compare_models takes frames by model"
        )
    return read_parquet(result)


def _labels_of(part: Evaluation, model_col: str) -> str:
    """Describe the columns that results must share."""
    by = [name for name in part.spec["by"] if name != model_col]
    weight = f", weights {part.spec['weight']!r}" if "weight" in part.spec else ""
    groups = f", item_by {part.spec['item_by']!r}" if "item_by" in part.spec else ""
    return f"lists by {part.spec['user_col']}" + (f", by {by}" if by else "") + weight + groups


def _models(name: str, part: Evaluation, model_col: str) -> dict[Any, str]:
    """Return the name of each model of a result in the joined one; None stands for the only one."""
    if model_col not in part.spec["by"]:
        return {None: name}
    labels = part.per_user[model_col].unique().tolist()
    return {one: name if len(labels) == 1 else f"{name}: {one}" for one in labels}


def _with_models(table: pd.DataFrame, names: Mapping[Any, str], model_col: str) -> pd.DataFrame:
    """Return a table whose first column is the model."""
    table = table.copy(deep=False)
    table.attrs = {}
    column: Any = next(iter(names.values())) if None in names else table.pop(model_col).map(names)
    table.insert(0, model_col, column)
    return table.astype({model_col: "str"})

"""One row a model where a result holds folds, or repeated trainings of a model.

A user counts once, with the mean over the folds and seeds, as in `compare_models(fold=)`: they
share most of what the models were trained on, so that their values are not independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import OptionError, closest
from ..evaluation.result import Evaluation
from ..evaluation.value_moments import means
from ..tables.cells import form_of, number
from .given_tables import labels


SEEDS = "seeds"  # in the spec: the spread of a metric over the seeds of a model
SEED_SD = "seed_sd"  # its column in the leaderboard
REPEATS = "repeats"  # in the spec: the columns of folds and seeds that were averaged


def over_repeats(
    result: Evaluation, fold: str | Sequence[str] | None, seed_col: str | None
) -> Evaluation:
    """Return the result with the mean over folds and seeds of every list; its spec tells the spread
    over seeds."""
    folds = [fold] if isinstance(fold, str) else list(fold or ())
    seeds = [] if seed_col is None else [seed_col]
    columns = [*folds, *seeds]
    by, key = list(result.spec["by"]), list(result.spec["user_col"])
    for argument, names in (("fold", folds), ("seed_col", seeds)):
        for name in names:
            if name not in (*by, *key[1:]):
                raise OptionError(
                    f"⟦{argument}={name!r}⟧ tells no lists apart; the result is by "
                    f"{by or 'nothing'}, with lists of {key}{closest(name, [*by, *key])}",
                    argument=argument,
                    value=name,
                )
    models = [name for name in by if name not in columns]
    lists = [name for name in key if name not in columns]
    if not columns or not models:
        if columns:
            raise OptionError(
                f"the result is by {by} alone, so that no models are left; evaluate with ⟦+by=⟧ "
                "for models too"
            )
        return result
    spec = {name: value for name, value in result.spec.items() if name != SEEDS}
    spec |= {"by": models, "user_col": lists, REPEATS: columns}
    metrics = [name for name in spec["metrics"] if name in result.per_user.columns]
    if seed_col is not None:
        spec[SEEDS] = _spread(result, models, seed_col, metrics)
    per_user = _averaged_lists(result.per_user, [*models, *lists], metrics, spec.get("weight"))
    confidence = spec.get("confidence", 0.95)
    weights = None if "weight" not in spec else per_user[spec["weight"]].to_numpy(np.float64)
    parts = [means(per_user, models, metrics, spec, confidence, (), weights)] if metrics else []
    summary = pd.concat([*parts, _of_all_lists(result, models, parts)], ignore_index=True)
    per_user.attrs = {"recdf": spec}
    return Evaluation(per_user, summary, spec)


def _averaged_lists(
    per_user: pd.DataFrame, keys: list[str], metrics: list[str], weight: str | None
) -> pd.DataFrame:
    """Return one row for each key: counts are added, and undefined values left out of a mean."""
    grouped = per_user.groupby(keys, sort=False, dropna=False, observed=True)
    code = grouped.ngroup().to_numpy()
    n = int(code.max(initial=-1)) + 1
    first = np.zeros(n, np.int64)
    first[code[::-1]] = np.arange(len(code))[::-1]
    found = per_user[keys].take(first).reset_index(drop=True)
    if weight is not None:
        found[weight] = per_user[weight].take(first).array
    for name in ("n_true", "n_pred"):
        if name in per_user.columns:
            found[name] = np.bincount(code, per_user[name], n).astype(np.int64)
    for name in metrics:
        values = per_user[name].to_numpy(np.float64, na_value=np.nan)
        defined = ~np.isnan(values)
        count = np.bincount(code[defined], minlength=n)
        with np.errstate(invalid="ignore"):
            found[name] = np.bincount(code[defined], values[defined], n) / count
    return found


def _of_all_lists(result: Evaluation, models: list[str], parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Return the metrics that are one number for all lists, as means over folds and seeds."""
    known = [name for name in result.spec["metrics"] if name not in result.per_user.columns]
    named = {(one["name"], one["k"]) for name in known for one in [result.spec["metrics"][name]]}
    summary = result.summary
    pairs = zip(summary["metric"], summary["k"].astype(object), strict=True)
    own = summary[[(name, None if pd.isna(k) else k) in named for name, k in pairs]]
    if "item_by" in result.spec:
        own = own[own[result.spec["item_by"]].isna()]
    keys = [*models, "metric", "k"]
    grouped = own.groupby(keys, sort=False, dropna=False, observed=True)
    found = grouped.agg(value=("value", "mean"), n=("n", "max"), n_undefined=("n_undefined", "max"))
    columns = parts[0].columns if parts else summary.columns
    return (
        found.reset_index().reindex(columns=columns).astype({"n": "int64", "n_undefined": "int64"})
    )


def _spread(
    result: Evaluation, models: list[str], seed_col: str, metrics: list[str]
) -> dict[str, Any]:
    """Return the number of seeds of each model, and the deviation of a metric over them."""
    of_seeds = _averaged_lists(
        result.per_user, [*models, seed_col, *result.spec["user_col"]], metrics, None
    )
    each = of_seeds.groupby([*models, seed_col], sort=False, dropna=False, observed=True)[metrics]
    means_of_seeds = each.mean().reset_index()
    grouped = means_of_seeds.assign(_model=labels(means_of_seeds, models)).groupby(
        "_model", sort=False
    )
    std, n = grouped[metrics].std(), grouped.size()
    return {
        "column": seed_col,
        "n": n.to_dict(),
        "sd": {name: std[name].dropna().to_dict() for name in metrics},
    }


def spread_of_rows(result: Evaluation, frame: pd.DataFrame) -> list[float]:
    """Return the spread over seeds of each row of a leaderboard; null for rows of segments."""
    spread = result.spec[SEEDS]["sd"]
    rows = zip(frame["model"], frame["metric"], frame["group"], strict=True)
    return [
        np.nan if group else spread.get(metric, {}).get(model, np.nan)
        for model, metric, group in rows
    ]


def seed_sentences(result: Evaluation, tests: pd.DataFrame) -> list[str]:
    """Say what the spread over seeds is, and which differences are smaller."""
    seeds = result.spec.get(SEEDS)
    if seeds is None:
        return []
    counts = sorted({*seeds["n"].values()})
    n = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    said = [f"The ± over seeds is the standard deviation over {n} trainings ({seeds['column']})."]
    for row in tests.to_dict("records"):
        if row.get("group", ""):
            continue
        of_metric = seeds["sd"].get(row["metric"], {})
        pair = [of_metric.get(str(row[name]), np.nan) for name in ("baseline", "model")]
        spread = float(np.nanmax([*pair, 0.0]))
        if abs(row["diff"]) < spread:
            form = form_of(row["diff"], half=spread)
            apart, own = (number(size, form) for size in (abs(row["diff"]), spread))
            said.append(
                f"{row['model']} and {row['baseline']} differ by {apart} in {row['metric']}, "
                f"less than the spread over seeds ({own})."
            )
    return said

"""The values of a leaderboard: models by metrics, for all lists and for every segment, with their
places; over the folds of a cross-validation, and with the spread over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from ..errors import OptionError, closest
from ..evaluation.result import Evaluation
from ..evaluation.value_moments import means
from ..judge.choices import Correction
from ..tables.cells import form_of, number
from .given_tables import labels
from .kinds import TABLE_KINDS, n_differs
from .pairs import list_places, model_rows
from .row_words import EVERYONE


class BoardRows(Protocol):
    """The lists of a result with their groups, in memory or in buckets."""

    @property
    def result(self) -> Evaluation: ...
    def group_means(self, columns: list[str]) -> list[pd.DataFrame]: ...
    def different_lists(self, columns: list[str]) -> list[str]: ...
    def tests(
        self, columns: list[str], baseline: str | None, correction: Correction
    ) -> pd.DataFrame: ...


def values_frame(rows: BoardRows, table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return the values of all lists and of every group with their places, the best models
    first."""
    models = list(dict.fromkeys(table["model"]))
    blocks = [table[table["column"].isin(columns)].assign(segment=EVERYONE, group="")]
    per_list = [name for name in columns if name in rows.result.per_user.columns]
    blocks += rows.group_means(per_list)
    return _tidy(blocks, columns, models, rows.different_lists(columns))


def different_lists(result: Evaluation, columns: Sequence[str]) -> list[str]:
    """Return the columns that have values for some lists of one model and not of another."""
    partly = [
        name for name in columns if name in result.per_user and result.per_user[name].isna().any()
    ]
    rows = model_rows(result)
    places = list_places(result, rows).of_row if partly else np.zeros(0, np.int64)
    counts = {
        name: np.bincount(places[result.per_user[name].notna().to_numpy()]) for name in partly
    }
    return [name for name, n in counts.items() if (n[n > 0] < len(rows)).any()]


def floors_of(given: Any) -> pd.DataFrame:
    """Return the table of levels of an audit, or raise and say what to pass."""
    floors = getattr(given, "floors", given)
    needed = TABLE_KINDS["floors"].columns
    if isinstance(floors, pd.DataFrame) and {*needed} <= {*floors.columns}:
        return floors
    what = f"floors={given}" if isinstance(given, bool) else "floors has no levels"
    raise OptionError(
        f"{what}, and a result holds no frames to compute them from; pass "
        "⟦+floors=rd.audit(true, pred, metrics, k, train=train, items=items, by=...)⟧, with the "
        "frames, metrics and options of the result",
        argument="floors",
    )


def floor_rows(frame: pd.DataFrame, given: Any) -> pd.DataFrame:
    """Return rows of the levels of an audit for the metrics of a leaderboard; a ceiling is one of
    each model."""
    floors, blocks = floors_of(given), []
    labels = floors.get("by", pd.Series("", floors.index)).astype(str)
    for level in ("chance", "popularity", "ceiling"):
        own = floors[["metric", "n"]].assign(model=level, value=floors[level])
        if level != "ceiling":
            own["model"] += " level"
        elif labels.nunique() > 1:
            own["model"] += " of " + labels
        blocks.append(own.drop_duplicates(["model", "metric"]))
    better = frame.drop_duplicates("metric").set_index("metric")["better"]
    found = pd.concat(blocks, ignore_index=True)
    found = found[found["metric"].isin(better.index) & found["value"].notna()].reset_index(
        drop=True
    )
    found = found.assign(
        segment=EVERYONE, group="", marks="", n_undefined=0, better=found["metric"].map(better)
    )
    return found.reindex(columns=frame.columns).astype(frame.dtypes)


def columns_of(
    table: pd.DataFrame, metrics: str | Sequence[str] | None, k: int | None
) -> list[str]:
    """Return the columns, such as ndcg@10, in the order that was asked for."""
    kept = table if k is None else table[table["k"].isna() | (table["k"] == k)]
    known = list(dict.fromkeys(kept["column"]))
    if not known:
        raise OptionError(
            f"the result has no metric at ⟦k={k}⟧; it has k of {sorted(set(table['k'].dropna()))}"
        )
    if metrics is None:
        return known
    found: list[str] = []
    for name in [metrics] if isinstance(metrics, str) else list(metrics):
        own = [
            c
            for c, metric in zip(kept["column"], kept["metric"], strict=True)
            if name in (c, metric)
        ]
        if not own:
            raise OptionError(
                f"metrics names {name!r}; the result has {known}{closest(name, known)}"
            )
        found += own
    return list(dict.fromkeys(found))


def _tidy(
    blocks: Sequence[pd.DataFrame],
    columns: Sequence[str],
    models: Sequence[str],
    apart: Sequence[str],
) -> pd.DataFrame:
    """Join the blocks: models stand in the order of the first metric, and each block has places of
    its own."""
    wanted = ["segment", "group", "model", "column", "better", "value", "ci_low", "ci_high"]
    frame = pd.concat([block[[*wanted, "n", "n_undefined"]] for block in blocks], ignore_index=True)
    frame = frame.rename(columns={"column": "metric"})
    frame["half_width"] = (frame["ci_high"] - frame["ci_low"]) / 2
    downward = frame["value"].where(frame["better"] == "smaller", -frame["value"])
    places = downward.groupby([frame["segment"], frame["group"], frame["metric"]])
    # A mean over other lists is no better or worse than this one.
    apart_or_alone = frame["metric"].isin(apart) | n_differs(frame) | (len(models) == 1)
    unplaced = (frame["better"] == "") | apart_or_alone
    frame["place"] = places.rank(method="min").mask(unplaced).astype("Int64")
    whole = (frame["segment"] == EVERYONE) & (frame["metric"] == columns[0])
    best = frame["model"][downward[whole].sort_values(kind="stable").index]
    order = pd.DataFrame(
        {
            "block": frame.groupby(["segment", "group"], sort=False).ngroup(),
            "model": frame["model"].map({model: i for i, model in enumerate(best)}),
            "metric": frame["metric"].map(list(columns).index),
        }
    )
    return frame.take(np.lexsort(order.to_numpy().T[::-1])).reset_index(drop=True)


SEEDS = "seeds"  # in the spec: the spread of a metric over the seeds of a model
REPEATS = "repeats"  # in the spec: the columns of folds and seeds that were averaged


def over_repeats(
    result: Evaluation, fold: str | Sequence[str] | None, seed_col: str | None
) -> Evaluation:
    """Return the result with the mean over folds and seeds of every list; its spec tells the spread
    over seeds."""
    by, key, columns = list(result.spec["by"]), list(result.spec["user_col"]), []
    for argument, given in (("fold", fold), ("seed_col", seed_col)):
        for name in [given] if isinstance(given, str) else given or ():
            columns.append(name)
            if name not in (*by, *key[1:]):
                raise OptionError(
                    f"⟦{argument}={name!r}⟧ tells no lists apart; the result is by "
                    f"{by or 'nothing'}, with lists of {key}{closest(name, [*by, *key])}",
                    argument=argument,
                    value=name,
                )
    if not columns:
        return result
    models, lists = ([name for name in names if name not in columns] for names in (by, key))
    if not models:
        raise OptionError(
            f"the result is by {by} alone, so that no models are left; evaluate with ⟦+by=⟧ for "
            "models too"
        )
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
    keys = [*models, seed_col]
    of_seeds = _averaged_lists(result.per_user, [*keys, *result.spec["user_col"]], metrics, None)
    each = of_seeds.groupby(keys, sort=False, dropna=False, observed=True)[metrics]
    means_of_seeds = each.mean().reset_index()
    grouped = means_of_seeds.groupby(pd.Series(labels(means_of_seeds, models)), sort=False)
    sd = {name: grouped[name].std().dropna().to_dict() for name in metrics}
    return {"column": seed_col, "n": grouped.size().to_dict(), "sd": sd}


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

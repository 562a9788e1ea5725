"""The values of a leaderboard: models by metrics, for all lists and for every segment, with their
places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import OptionError, closest
from ..evaluation.result import Evaluation
from .pairs import list_places, model_rows
from .segments import SegmentGroups, group_means


EVERYONE = "all"  # the segment of all lists


def values_frame(
    result: Evaluation, table: pd.DataFrame, columns: list[str], groups: dict[str, SegmentGroups]
) -> pd.DataFrame:
    """Return the values of all lists and of every group with their places, the best models
    first."""
    models = list(dict.fromkeys(table["model"]))
    blocks = [table[table["column"].isin(columns)].assign(segment=EVERYONE, group="")]
    for name, of_segment in groups.items():
        blocks.append(
            group_means(
                result, of_segment, [c for c in columns if c in result.per_user.columns], name
            )
        )
    return _tidy(blocks, columns, models, different_lists(result, columns))


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


def n_differs(frame: pd.DataFrame) -> pd.Series:
    """Tell for each row whether the models have a mean over different numbers of lists."""
    return frame.groupby(["segment", "group", "metric"])["n"].transform("nunique") > 1


def floors_of(given: Any) -> pd.DataFrame:
    """Return the table of levels of an audit, or raise and say what to pass."""
    floors = getattr(given, "floors", given)
    if not isinstance(floors, pd.DataFrame) or not {
        "metric",
        "chance",
        "popularity",
        "ceiling",
    } <= set(floors.columns):
        what = (
            f"floors={given}: a result"
            if isinstance(given, bool)
            else "floors has no levels, and a result"
        )
        raise OptionError(
            f"{what} holds no frames to compute them from; pass ⟦+floors=rd.audit(true, pred, "
            "metrics, k, train=train, items=items, by=...)⟧, with the frames, metrics and options "
            "of the result",
            argument="floors",
        )
    return floors


def floor_rows(frame: pd.DataFrame, given: Any) -> pd.DataFrame:
    """Return rows of the levels of an audit for the metrics of a leaderboard; a ceiling is one of
    each model."""
    floors, levels = floors_of(given), ("chance", "popularity", "ceiling")
    labels = (
        floors["by"].astype(str) if "by" in floors.columns else pd.Series("", index=floors.index)
    )
    blocks = []
    for level in levels:
        own = floors[["metric", "n"]].assign(model=level, value=floors[level])
        own["model"] += (
            " level" if level != "ceiling" else " of " + labels if labels.nunique() > 1 else ""
        )
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
    wanted = [
        "segment",
        "group",
        "model",
        "column",
        "better",
        "value",
        "ci_low",
        "ci_high",
        "n",
        "n_undefined",
    ]
    frame = pd.concat([block[wanted] for block in blocks], ignore_index=True).rename(
        columns={"column": "metric"}
    )
    frame["half_width"] = (frame["ci_high"] - frame["ci_low"]) / 2
    upward = np.where(frame["better"] == "smaller", -frame["value"], frame["value"])
    frame["place"] = (
        pd.Series(upward)
        .groupby([frame["segment"], frame["group"], frame["metric"]])
        .rank(method="min", ascending=False)
    )
    # A mean over other lists is no better or worse than this one.
    unplaced = (
        (frame["better"] == "")
        | frame["metric"].isin(apart)
        | n_differs(frame)
        | (len(models) == 1)
    )
    frame.loc[unplaced, "place"] = np.nan
    frame["place"] = frame["place"].astype("Int64")
    whole = frame[(frame["segment"] == EVERYONE) & (frame["metric"] == columns[0])]
    signed = whole["value"].where(whole["better"] == "smaller", -whole["value"])
    order = {
        model: i
        for i, model in enumerate(whole["model"].iloc[np.argsort(signed.to_numpy(), kind="stable")])
    }
    frame["order"] = frame["model"].map(order)
    frame["column"] = frame["metric"].map({name: i for i, name in enumerate(columns)})
    blocks_in_order = frame.groupby(["segment", "group"], sort=False).ngroup()
    frame = frame.assign(block=blocks_in_order).sort_values(
        ["block", "order", "column"], kind="stable"
    )
    return frame.reset_index(drop=True)

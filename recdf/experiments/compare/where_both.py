"""Two models on the lists that both have: a model that lacks lists is 0 there, which says nothing
of its ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...judge.cautions.few_lists import FEW_LISTS
from ...judge.verdict import effects_of, sentence
from ...stats.turned import turned_by
from ...tables.cells import estimate, form_of, number, visible
from ..choices import Better
from ..experiment_columns import Floats, Mask
from ..metric_bounds import MetricBounds
from .cheap_labels import powered_pair
from .paired import estimate_of
from .runs import Runs

COLUMNS = [
    "n_lacking_baseline",
    "n_lacking_model",
    "n_both",
    "mean_baseline_both",
    "mean_model_both",
    "diff_both",
    "se_both",
    "ci_low_both",
    "ci_high_both",
    "effect_both",
    "withheld_both",
    "turned_by_both",
]
NONE_LACKING = {**dict.fromkeys(COLUMNS[:2], 0), **dict.fromkeys(COLUMNS[2:-3], np.nan)}


def has_lists(runs: Runs) -> Mask | None:
    """Return which lists of each model have recommendations, if the frames say so (`n_pred`) and
    some have none."""
    if not all("n_pred" in frame.columns for _, frame in runs.parts):
        return None
    n_pred = runs.table("n_pred")
    return None if not (n_pred == 0).any() else n_pred > 0


def where_both(
    base: Floats,
    model: Floats,
    has: tuple[Mask, Mask],
    runs: Runs,
    cheap: Sequence[Floats],
    bounds: MetricBounds,
) -> dict[str, Any]:
    """Return the means, the difference and its error on the lists that both models have, if one
    lacks some."""
    there, both = ~np.isnan(base) & ~np.isnan(model), has[0] & has[1]
    lacking = [int(np.count_nonzero(there & ~own & other)) for own, other in (has, has[::-1])]
    row = {**NONE_LACKING, "n_lacking_baseline": lacking[0], "n_lacking_model": lacking[1]}
    if not any(lacking):
        return row
    pair = [np.where(both, one, np.nan) for one in (base, model)]
    sums, divisor = runs.unit_sums(runs.per_list(pair[1] - pair[0]))
    kept = slice(None) if divisor is None else divisor > 0
    single = runs.weights is None and runs.unit_of_list is None
    row |= {
        "mean_baseline_both": runs.mean(pair[0]),
        "mean_model_both": runs.mean(pair[1]),
        "n_both": len(sums[kept]),
    }
    if row["n_both"] > 1:
        units, _ = estimate_of(sums[kept], None if single or divisor is None else divisor[kept])
        row |= {"diff_both": float(units.mean), "se_both": float(np.sqrt(units.var))}
    if cheap and row["n_both"] > 2:
        means, found = powered_pair(
            pair, [np.where(both, one, np.nan) for one in cheap], runs, 0.95, bounds
        )
        if (units := found["estimate"]) is not None:
            row |= {
                "mean_baseline_both": means[0],
                "mean_model_both": means[1],
                "diff_both": units.mean,
                "se_both": units.se,
            }
    return row


def judge_both(table: pd.DataFrame, better: Mapping[str, Better | None]) -> None:
    """Add the interval and the effect on the lists that both models have.

    The interval is as many standard errors wide as the one beside it.
    """
    low, high, se, diff = (
        table[name].to_numpy(np.float64) for name in ("ci_low", "ci_high", "se", "diff")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        table["ci_low_both"] = table["diff_both"] - (diff - low) / se * table["se_both"]
        table["ci_high_both"] = table["diff_both"] + (high - diff) / se * table["se_both"]
    shown = (table["ci_low_both"] > 0) | (table["ci_high_both"] < 0)
    effects = effects_of(table.assign(diff=table["diff_both"]), shown.to_numpy(bool), better)
    lacking = table["n_lacking_baseline"] + table["n_lacking_model"] > 0
    few = lacking & (table["n_both"] < FEW_LISTS)
    names = ("diff_both", "n_both", "typical", "n_users", "reach")
    diff, n, typical, users, reach = (table[name].to_numpy(np.float64) for name in names)
    by = turned_by(diff, n * typical / np.maximum(users, 1), -reach, reach, 0.0)
    table["turned_by_both"] = np.where(shown & ~table["powered"], by, np.nan)
    turned = lacking & ~few & (table["turned_by_both"] < table["unseen"])
    withheld = np.select([few, turned], ["few_lists", "unseen_units"], "")
    table["effect_both"] = pd.Series(np.where(lacking & (withheld == ""), effects, ""), dtype=str)
    table["withheld_both"] = pd.Series(withheld, dtype=str)


def sentence_of_both(row: Mapping[Any, Any]) -> str:
    """Say how many lists each model lacks, and how they compare where both have lists; nothing if
    none is lacking."""
    lacks = [
        f"{visible(row[role])} lacks {int(row[f'n_lacking_{role}']):,} of {int(row['n_lists']):,} "
        "lists"
        for role in ("model", "baseline")
        if row.get(f"n_lacking_{role}", 0)
    ]
    if not lacks:
        return ""
    text = f"{' and '.join(lacks)} that the other has, and counts as 0 there"
    if pd.isna(row["diff_both"]):
        return f"{text}; no list is in both."
    means = row["mean_model_both"], row["mean_baseline_both"]
    around = row["diff_both"], row["ci_low_both"], row["ci_high_both"]
    form = form_of(*means, half=(around[2] - around[1]) / 2)
    turned = {"turned_by": row["turned_by_both"], "turned_to": "lose or gain"}
    said = sentence("models", row["effect_both"], row["withheld_both"], row=turned)
    of_both = f"{' against '.join(number(mean, form) for mean in means)}: {estimate(*around, '+')}"
    return f"{text}. Where both have lists, {row['metric']} is {of_both}, {said}."

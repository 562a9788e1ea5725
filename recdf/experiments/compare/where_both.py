"""Two models on the lists that both have: a model that lacks lists is 0 there, which says nothing
of its ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...judge.cautions.few_lists import FEW_LISTS
from ...tables.cells import digits_for, interval, number, visible
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
    "verdict_both",
]
NONE_LACKING = {**dict.fromkeys(COLUMNS[:2], 0), **dict.fromkeys(COLUMNS[2:-1], np.nan)}
MISSING = "missing_lists"
BUT = ", but "  # what follows in a verdict is where it does not hold


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


def temper(table: pd.DataFrame, better: Mapping[str, Better | None]) -> None:
    """Add the interval and the verdict on the lists that both models have, and let the verdict say
    where they differ.

    The interval is as many standard errors wide as the one beside it. A table that was tempered can
    be so again.
    """
    low, high, se = (table[name].to_numpy(np.float64) for name in ("ci_low", "ci_high", "se"))
    with np.errstate(invalid="ignore", divide="ignore"):
        below, above = (
            (table["diff"].to_numpy(np.float64) - low) / se,
            (high - table["diff"].to_numpy(np.float64)) / se,
        )
        table["ci_low_both"] = table["diff_both"] - below * table["se_both"]
        table["ci_high_both"] = table["diff_both"] + above * table["se_both"]
    said, verdicts, warnings = [], [], []
    for row in table.to_dict("records"):
        found = (
            ""
            if not row["n_lacking_baseline"] + row["n_lacking_model"]
            else _word(row, better[row["metric"]])
        )
        own = str(row["verdict"]).split(BUT)[0]
        warned = [word for word in row["warning"].split("; ") if word != MISSING]
        differs = found not in ("", own.split(",")[0]) and not own.startswith(("check", "ranks"))
        of = "not shown" if found.startswith("check") else found
        said.append(found)
        verdicts.append(f"{own}{BUT}{of} where both have lists" if differs else own)
        warnings.append("; ".join(filter(None, [*warned, MISSING if differs else ""])))
    for name, texts in (("verdict_both", said), ("verdict", verdicts), ("warning", warnings)):
        table[name] = pd.Series(texts, dtype=str)


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
    form = f".{digits_for(row['mean_model_both'], row['mean_baseline_both'])}f"
    means = (
        f"{number(row['mean_model_both'], form)} against {number(row['mean_baseline_both'], form)}"
    )
    bounds = interval(row["ci_low_both"], row["ci_high_both"], "+" + form)
    effect = f"{number(row['diff_both'], '+' + form)} {bounds}".rstrip()
    return (
        f"{text}. Where both have lists, {row['metric']} is {means}: {effect}, "
        f"{row['verdict_both']}."
    )


def _word(row: Mapping[Any, Any], better: Better | None) -> str:
    """Return the verdict on the lists that both models have."""
    if row["n_both"] < FEW_LISTS:
        return "check: too few lists"
    up = row["ci_low_both"] > 0
    if not (up or row["ci_high_both"] < 0):
        return "no difference shown"
    return (
        ("higher" if up else "lower")
        if better is None
        else "better"
        if up == (better == "larger")
        else "worse"
    )

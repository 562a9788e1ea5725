"""One result from few labels of people and many cheap ones, for the leaderboard and the report.

Contract: its rows are the lists of the cheap result, with the values of people in the columns of
the metrics, null where nobody judged, and the cheap ones beside them, which `compare_models` knows.
Means and intervals are of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import OptionError, kind_of
from ..evaluation.result import Evaluation
from ..evaluation.value_moments import unit_codes
from ..experiments.compare.cheap_labels import (
    JUDGED,
    cheap_column,
    join_labels,
    label_sentences,
    labelled_row,
)
from ..experiments.samples import bounds_of, seen_bounds
from ..judge.cautions.table import CAUTIONS
from ..judge.verdict import has
from .given_tables import column_names, labels
from .pairs import model_rows

LABELS = "labels"  # in the spec of such a result: sentences that say what the means are made of
RESTATED = ["value", "se", "ci_low", "ci_high", "n", "n_undefined"]


def with_both_labels(people: Evaluation, cheap: Any) -> Evaluation:
    """Return the result of both; `people` has its units already."""
    if not isinstance(cheap, Evaluation):
        raise TypeError(
            f"cheap is {kind_of(cheap)}; expected an Evaluation, as rd.evaluate returns"
        )
    for name in ("user_col", "by", "weight"):
        if (own := people.spec.get(name)) != (other := cheap.spec.get(name)):
            raise OptionError(f"result and cheap differ in {name}: {own} and {other}")
    by, metrics, known = list(cheap.spec["by"]), people.spec["metrics"], cheap.spec["metrics"]
    if unlike := [name for name in metrics if metrics[name] != known.get(name)]:
        raise OptionError(
            f"result and cheap differ in metrics: cheap lacks {unlike}, or defines them in another "
            "way"
        )
    names = [name for name in metrics if name in people.per_user.columns]
    keys = [*by, *cheap.spec["user_col"]]
    rows = join_labels(people.per_user, cheap.per_user, names, keys, "result")
    if by:  # models that people have not judged
        rows = rows[rows.groupby(by, observed=True)[JUDGED].transform("any")].reset_index(drop=True)
    rows.attrs = {}
    item_by = [cheap.spec["item_by"]] if "item_by" in cheap.spec else []
    # In the order of `people`.
    same = [*by, "metric", "k", *item_by]
    summary = people.summary[same].merge(cheap.summary, on=same).assign(std=np.nan)
    spec = {**cheap.spec, "metrics": metrics, "labels of people": people.spec}
    for name in {"unit_col", "repeated_units", "bounds"} & people.spec.keys():
        spec[name] = people.spec[name]
    found = Evaluation(rows, summary, spec)
    at = pd.DataFrame({"model": labels(summary, by), "column": column_names(summary, found)})
    at = at[at["column"].isin(names) & summary[item_by].isna().all(axis=1)]
    places = model_rows(found)
    means = [(column, places[model]) for model, column in at.itertuples(index=False)]
    numbers = powered_means(found, means).set_index(at.index)
    summary.loc[at.index, RESTATED] = numbers[RESTATED]
    numbers["what"] = at["column"] + (" of " + at["model"] if by else "")
    first = numbers[at["column"] == names[0]]
    said = label_sentences(first["n_human"], first["n_cheap"], first.to_dict("records"))
    doubts = [one.sentence for one in CAUTIONS.values() if has(numbers["remarks"], one.code).any()]
    spec[LABELS] = [
        *said,
        *(f"{text[0].upper()}{text[1:]}.".replace("verdict", "interval") for text in doubts),
    ]
    return found


def powered_means(result: Evaluation, means: Sequence[tuple[str, np.ndarray]]) -> pd.DataFrame:
    """Return the numbers of each mean, which is a column and the rows of some lists; in doubt it
    has no interval."""
    spec, found = result.spec, []
    for column, at in means:
        own = result.per_user.take(at)
        y, f = (own[name].to_numpy(np.float64) for name in (column, cheap_column(column)))
        weights = own[spec["weight"]].to_numpy(np.float64) if "weight" in spec else None
        unit = unit_codes(own, spec["unit_col"]) if "unit_col" in spec else None
        definition = spec["metrics"][column]["definition"]
        declared = spec.get("bounds", {})
        bounds = bounds_of(column, declared, y, f, definition=definition) or seen_bounds(y, f)
        judged, confidence = own[JUDGED].to_numpy(bool), spec.get("confidence", 0.95)
        row = labelled_row(y, f, judged, bounds, confidence, weights, unit)
        row["value"], row["n_undefined"] = row["mean"], int(np.isnan(f).sum())
        row["n"] = len(f) - row["n_undefined"]
        if row["remarks"]:
            row |= dict.fromkeys(RESTATED[1:4], np.nan)
        found.append(row)
    return pd.DataFrame(found)

"""Comparisons of the models of a result, for the leaderboard and the report.

Contract: the tests of one call are one family. Where all models were evaluated on the same lists in
the same order, lists are paired by their place, so that their ids need not be coded again.
Otherwise they are paired by their keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import OptionError
from ..evaluation.result import Evaluation
from ..evaluation.value_moments import unit_codes
from ..experiments.compare.cheap_labels import JUDGED, cheap_column
from ..experiments.compare.compare_models import compare_models
from ..experiments.samples import bounds_of_result
from ..judge.choices import Correction
from ..judge.comparability import spec_of_each
from ..judge.verdict import remark
from .given_tables import direction_word, rows_by

# Names of the columns of the frame that is compared.
MODEL, LIST, UNIT = "model", "list", "unit of list"


def model_rows(result: Evaluation) -> dict[str, np.ndarray]:
    """Return the rows of `per_user` of every model, by its label, in the order of first
    appearance."""
    return rows_by(result.per_user, list(result.spec["by"]))


def model_codes(rows: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the number of the model of every row, from the rows of every model."""
    codes = np.empty(sum(map(len, rows.values())), np.int64)
    for code, own in enumerate(rows.values()):
        codes[own] = code
    return codes


class Places(NamedTuple):
    """One integer per row of `per_user`, the same for the same list of every model, and the first
    row of each list."""

    of_row: np.ndarray
    first_row: np.ndarray


def list_places(result: Evaluation, rows: Mapping[str, np.ndarray]) -> Places:
    """Return where the lists of every model stand."""
    keys = result.per_user[list(result.spec["user_col"])]
    sizes = {len(own) for own in rows.values()}
    if len(sizes) == 1:
        first, *others = (keys.take(own).reset_index(drop=True) for own in rows.values())
        if all(first.equals(other) for other in others):
            places = np.empty(len(keys), np.int64)
            for own in rows.values():
                places[own] = np.arange(len(own))
            return Places(places, next(iter(rows.values())))
    groups = (
        keys.groupby(list(keys.columns), sort=False, dropna=False, observed=True)
        .ngroup()
        .to_numpy()
    )
    return Places(groups, np.unique(groups, return_index=True)[1])


def compare(
    result: Evaluation,
    columns: Sequence[str],
    *,
    baseline: str | None,
    correction: Correction,
    within: Mapping[Any, np.ndarray] | None = None,
) -> pd.DataFrame:
    """Compare models on their common lists, all pairs or each with a baseline, over all lists or
    within groups.

    `within` holds the rows of `per_user` of every group, and a row may be in several; the tests of
    all groups are one family. Returns the columns of `compare_models`, with `group` before them
    where groups are given.
    """
    rows = model_rows(result)
    models = list(rows)
    if len(models) < 2:
        raise OptionError("the result has one model; evaluate with ⟦+by=⟧ for a comparison")
    spec, per_user = result.spec, result.per_user
    weight = spec.get("weight")
    names = [*columns, JUDGED, *map(cheap_column, columns), "n_true", "n_pred", weight]
    # Integers stand for models and lists: coding millions of labels again would take longer than
    # the tests.
    frame = per_user[[name for name in dict.fromkeys(names) if name in per_user.columns]]
    frame = frame.assign(**{MODEL: model_codes(rows), LIST: list_places(result, rows).of_row})
    options: dict[str, Any] = {"weight_col": weight}
    if "unit_col" in spec:
        frame[UNIT], options["unit_col"] = unit_codes(per_user, spec["unit_col"]), UNIT
    # The comparison reads there whether two models were measured alike.
    specs = enumerate(spec_of_each(spec, models))
    frame.attrs = {"recdf": {"joined": {str(code): one for code, one in specs}}}
    if within is not None:
        frame = frame.take(np.concatenate(list(within.values())))
        frame["group"] = np.repeat(np.arange(len(within)), [len(own) for own in within.values()])
        options["by"] = "group"
    table = compare_numbered(
        frame,
        result,
        models,
        columns,
        baseline=baseline,
        correction=correction,
        user_col=LIST,
        model_col=MODEL,
        **options,
    )
    if within is not None:
        groups = list(within)
        table["group"] = [groups[code] for code in table["group"]]
    return table


def compare_numbered(
    rows: Any,
    result: Evaluation,
    models: list[str],
    columns: Sequence[str],
    *,
    baseline: str | None,
    correction: Correction,
    **options: Any,
) -> pd.DataFrame:
    """Compare the models of some rows, in which numbers stand for the models."""
    better = {name: direction_word(result, name) for name in columns}
    table = compare_models(
        rows,
        list(columns),
        baseline=None if baseline is None else models.index(baseline),
        missing="drop",
        correction=correction,
        smaller_is_better=[name for name in columns if better[name] == "smaller"],
        larger_is_better=[name for name in columns if better[name] == "larger"],
        bounds=bounds_of_result(result.spec, getattr(rows, "empty_rows", rows), list(columns)),
        details=True,
        **options,
    )
    if "repeated_units" in result.spec:
        remark(table, [True] * len(table), "repeated_units")
    for column in ("baseline", "model"):
        table[column] = [models[code] for code in table[column]]
    return table

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
MODEL, LIST, WEIGHT, UNIT = "model", "list", "weight of list", "unit of list"


def model_rows(result: Evaluation) -> dict[str, np.ndarray]:
    """Return the rows of `per_user` of every model, by its label, in the order of first
    appearance."""
    return rows_by(result.per_user, list(result.spec["by"]))


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
    if len(rows) < 2:
        raise OptionError("the result has one model; evaluate with ⟦+by=⟧ for a comparison")
    models = list(rows)
    codes = np.empty(len(result.per_user), np.int64)
    for code, own in enumerate(rows.values()):
        codes[own] = code
    # Integers stand for models and lists: coding millions of labels again would take longer than
    # the tests.
    labelled: dict[str, Any] = {MODEL: codes, LIST: list_places(result, rows).of_row}
    for name in (*columns, JUDGED, *map(cheap_column, columns), "n_true", "n_pred"):
        if name in result.per_user.columns:
            labelled[name] = result.per_user[name].array
    options: dict[str, Any] = {}
    if "weight" in result.spec and result.spec["weight"] is not None:
        labelled[WEIGHT] = result.per_user[result.spec["weight"]].array
        options["weight_col"] = WEIGHT
    if "unit_col" in result.spec:
        labelled[UNIT] = unit_codes(result.per_user, result.spec["unit_col"])
        options["unit_col"] = UNIT
    frame = pd.DataFrame(labelled, copy=False)
    # The comparison reads there whether two models were measured alike.
    specs = spec_of_each(result.spec, models)
    frame.attrs["recdf"] = {"joined": {str(code): spec for code, spec in enumerate(specs)}}
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

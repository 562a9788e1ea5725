"""`data_profile`: sizes, unknown ids, judged share and scores of the data of one run, to be
compared over time."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import pandas as pd

from ..inputs.door import takes_options
from ..inputs.frames import as_frame, read_numbers
from ..inputs.options import CallArguments
from ..inputs.sorting import distinct
from ..matching.hits import ratio
from ..metrics.call import Call
from .check_lists import parts_by

AT_SHARES = (0.01, 0.1, 0.5, 0.9, 0.99)


@takes_options
def data_profile(
    true: Any, pred: Any, *, items: Any = None, **options: Unpack[CallArguments]
) -> pd.DataFrame:
    """Describe the data of one evaluation in a few numbers per recommender, for `History` to
    compare over time.

    Parameters
    ----------
    true, pred : DataFrame, mapping or Arrow stream
        As for `evaluate`.
    items : DataFrame, list, Series or Index, optional
        Catalogue, outside which items of `pred` are unknown.
    {options}

    Returns
    -------
    DataFrame
        `model` (`by` values, "" without `by`), `quantity`, `value`. Quantities: "rows_pred",
        "lists_pred", "items_pred"; "unknown_users" (share of the lists of `pred` that `true`
        lacks), "unknown_items" (share of rows outside `items`, if given), "judged" (share of the
        rows of known users that have a row in `true`), and "score_q01" to "score_q99" (quantiles of
        the scores, if `pred` has any).

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError
        As `evaluate` does.

    Examples
    --------
    >>> import recdf as rd
    >>> rd.diagnostics.data_profile({"ann": ["a"]}, {"ann": ["a", "x"], "bob": ["y"]})
      model       quantity  value
    0            rows_pred    3.0
    1           lists_pred    2.0
    2           items_pred    3.0
    3        unknown_users    0.5
    4               judged    0.5
    """
    call = Call.from_arguments(data_profile, {**options, "items": items, "users": "all"})
    item_col, score_col = call.options.item_col, call.options.score_col or "score"
    frame = as_frame(pred, "pred", call.options.user_col, item_col)
    with call.match(true, frame) as matched:
        n_models = max(len(matched.by), 1)
        names = [name for name, _ in parts_by(matched)]
        place_list = np.repeat(np.arange(len(matched)), matched.n_pred)
        model, in_true, shown = (
            matched.list_by[place_list],
            matched.true_list >= 0,
            matched.n_pred > 0,
        )
        known_rows = in_true[place_list]
        is_judged = np.zeros(len(place_list), bool)
        is_judged[matched.judged.place] = True
        rows = matched.rows(np.arange(len(place_list)))

        def each(of: np.ndarray, where: np.ndarray | None = None) -> np.ndarray:
            return np.bincount(of if where is None else of[where], minlength=n_models).astype(
                np.float64
            )

        found = {
            "rows_pred": each(model),
            "lists_pred": each(matched.list_by, shown),
            "items_pred": each(distinct(model * matched.n_items + matched.item) // matched.n_items),
            "unknown_users": ratio(
                each(matched.list_by, shown & ~in_true), each(matched.list_by, shown)
            ),
            "judged": ratio(each(model, is_judged & known_rows), each(model, known_rows)),
        }
    if items is not None:
        known = pd.Index(items[item_col] if isinstance(items, pd.DataFrame) else items)
        outside = ~frame[item_col].isin(known).to_numpy()[rows]
        found["unknown_items"] = ratio(each(model, outside), found["rows_pred"])
    if score_col in frame.columns:
        scores = pd.Series(read_numbers(frame[score_col], f"pred[{score_col!r}]")[rows])
        levels = scores.groupby(model).quantile(np.array(AT_SHARES)).unstack()
        found |= {
            f"score_q{round(100 * q):02d}": levels[q].reindex(range(n_models)).to_numpy()
            for q in AT_SHARES
        }
    wide = pd.DataFrame({"model": names, **found})
    table = wide.melt("model", var_name="quantity")
    return table.sort_values(
        "model", key=lambda one: one.map(names.index), kind="stable", ignore_index=True
    )

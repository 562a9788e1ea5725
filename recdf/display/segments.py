"""Groups of lists, such as the segments of users: read once per list, and kept as one code per row of a result."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..errors import ColumnError, OptionError, kind_of
from ..evaluation.result import Evaluation
from ..evaluation.summary import mean_table, unit_codes
from ..evaluation.value_moments import GroupMoments, clustered
from ..experiments.experiment_columns import key_codes
from .given_tables import direction_word, labels
from .pairs import list_places, model_rows

__all__: list[str] = []

MANY_GROUPS, SEGMENT_BANDS = 30, 4  # a column of more values than these is cut into bands of amounts or dates
GROUP = "recdf: group"  # a column beside those of a summary


class SegmentGroups(NamedTuple):
    """The groups of one column of segments: their names, and a code for every row of `per_user`, −1 for no group."""

    names: list[str]
    codes: np.ndarray

    def rows(self) -> dict[str, np.ndarray]:
        """Return the rows of `per_user` of every group, in the order of the names."""
        order = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[order], np.arange(len(self.names) + 1))
        return {name: order[starts[g] : starts[g + 1]] for g, name in enumerate(self.names)}


def segment_groups(result: Evaluation, segments: pd.DataFrame) -> dict[str, SegmentGroups]:
    """Return the groups of every column of segments; lists whose user has none are in no group."""
    if not isinstance(segments, pd.DataFrame):
        raise TypeError(f"segments is {kind_of(segments)}; expected a DataFrame with one row per user")
    keys = [name for name in result.spec["user_col"] if name in segments.columns]
    if not keys:
        raise ColumnError(
            f"segments has none of the key columns {result.spec['user_col']}; it has {list(segments.columns)}"
        )
    names = [name for name in segments.columns if name not in keys]
    if not names:
        raise ColumnError(f"segments has the key {keys} alone; expected a column of segments beside it")
    # The ids of a list are looked up once, not once for every model.
    places = list_places(result, model_rows(result))
    lists, known = result.per_user[keys].take(places.first_row), segments.dropna(subset=keys).reset_index(drop=True)
    (of_list, of_row), n = key_codes([("per_user", lists), ("segments", known)], keys)
    row = np.full(n, -1)
    row[of_row] = np.arange(len(known))
    twice = len(known) - np.count_nonzero(row >= 0)
    if twice:
        raise OptionError(f"segments has several rows for {twice:,} keys of {keys}; expected one per user")
    known = known.assign(**{name: _in_bands(known[name]) for name in names})
    joined = known.reindex(row[of_list])
    found = {}
    for name in names:
        codes, values = pd.factorize(joined[name])
        # Numbers of 16 bits are sorted many times faster than longer ones.
        codes = codes.astype(np.int16 if len(values) <= np.iinfo(np.int16).max else np.int64)
        found[str(name)] = SegmentGroups(labels(pd.DataFrame({GROUP: values}), [GROUP]), codes[places.of_row])
    return found


def _in_bands(column: pd.Series) -> pd.Series:
    """Return a column of many amounts or dates cut into bands of about as many users; other columns as they stand."""
    n = column.nunique()
    if n <= MANY_GROUPS or isinstance(column.dtype, pd.CategoricalDtype):
        return column
    dates = pd.api.types.is_datetime64_any_dtype(column.dtype)
    if not (dates or pd.api.types.is_numeric_dtype(column.dtype)):
        raise OptionError(
            f"segments[{column.name!r}] has {n:,} different values, such as {column.dropna().iloc[0]!r}; leave it out, "
            f"or group it into at most {MANY_GROUPS} segments"
        )
    plain = column if dates else column.astype("float64")
    edges = plain.quantile(np.linspace(0, 1, SEGMENT_BANDS + 1)).drop_duplicates().tolist()
    texts = [f"{edge:%Y-%m-%d}" if dates else f"{edge:.4g}" for edge in edges]
    names = [f"{low} to {high}" for low, high in itertools.pairwise(texts)]
    places = np.clip(np.searchsorted(edges[1:-1], plain.to_numpy(), side="right"), 0, len(names) - 1)
    return pd.Series(np.array(names, object)[places], column.index).where(column.notna())


def group_means(result: Evaluation, groups: SegmentGroups, columns: list[str], segment: str) -> pd.DataFrame:
    """Return means of every model within every group, in the columns of the leaderboard."""
    values = {name: result.per_user[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in columns}
    codes, parts = groups.codes, []
    weight = None
    if "weight" in result.spec:
        weight = result.per_user[result.spec["weight"]].to_numpy(np.float64)
    units = unit_codes(result.per_user, result.spec["unit_col"]) if "unit_col" in result.spec else None
    for model, own in model_rows(result).items():
        kept = own[codes[own] >= 0]
        of_lists = None if weight is None else weight[kept]
        moments = GroupMoments.of((values[name][kept] for name in columns), codes[kept], len(groups.names), of_lists)
        if units is not None:
            of_columns = (values[name][kept] for name in columns)
            moments = clustered(of_columns, codes[kept], units[kept], moments, of_lists)[0]
        present = np.flatnonzero(moments.rows)
        names = pd.DataFrame({GROUP: [groups.names[g] for g in present]})
        table = mean_table(names, columns, moments.take(present), {}, result.spec.get("confidence", 0.95))
        parts.append(table.assign(model=model, column=columns * len(present)))
    found = pd.concat(parts, ignore_index=True)
    better = {name: direction_word(result, name) for name in columns}
    return found[["model", "column", "value", "ci_low", "ci_high", "n", "n_undefined"]].assign(
        segment=segment, group=found[GROUP], better=[better[name] for name in found["column"]]
    )

"""Groups of lists, such as the segments of users: read once per list, and kept as one code per row
of a result."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from ..evaluation.result import Evaluation
from ..evaluation.value_moments import GroupMoments, clustered, mean_table, unit_codes
from ..experiments.compare.by_segment import segment_columns, segments_of_lists
from .given_tables import direction_word, labels
from .joined_labels import LABELS, RESTATED, powered_means
from .pairs import list_places, model_rows

GROUP = "recdf: group"  # a column beside those of a summary


class SegmentGroups(NamedTuple):
    """The groups of one column of segments: their names, and a code for every row of `per_user`, −1
    for no group."""

    names: list[str]
    codes: np.ndarray

    def rows(self) -> dict[str, np.ndarray]:
        """Return the rows of `per_user` of every group, in the order of the names."""
        order = np.argsort(self.codes, kind="stable")
        starts = np.searchsorted(self.codes[order], np.arange(len(self.names) + 1))
        return {name: order[starts[g] : starts[g + 1]] for g, name in enumerate(self.names)}


def segment_groups(result: Evaluation, segments: pd.DataFrame) -> dict[str, SegmentGroups]:
    """Return the groups of every column of segments; lists whose user has none are in no group."""
    keys, names = segment_columns(segments, result.spec["user_col"])
    # The ids of a list are looked up once, not once for every model.
    places = list_places(result, model_rows(result))
    joined = segments_of_lists(result.per_user[keys].take(places.first_row), segments, keys, names)
    found = {}
    for name in names:
        codes, values = pd.factorize(joined[name])
        # Numbers of 16 bits are sorted many times faster than longer ones.
        codes = codes.astype(np.int16 if len(values) <= np.iinfo(np.int16).max else np.int64)
        found[str(name)] = SegmentGroups(
            labels(pd.DataFrame({GROUP: values}), [GROUP]), codes[places.of_row]
        )
    return found


def group_means(
    result: Evaluation, groups: SegmentGroups, columns: list[str], segment: str
) -> pd.DataFrame:
    """Return means of every model within every group, in the columns of the leaderboard."""
    values = {
        name: result.per_user[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in columns
    }
    codes, parts = groups.codes, []
    weight = None
    if "weight" in result.spec:
        weight = result.per_user[result.spec["weight"]].to_numpy(np.float64)
    units = (
        unit_codes(result.per_user, result.spec["unit_col"]) if "unit_col" in result.spec else None
    )
    for model, own in model_rows(result).items():
        kept = own[codes[own] >= 0]
        of_lists = None if weight is None else weight[kept]
        moments = GroupMoments.of(
            (values[name][kept] for name in columns), codes[kept], len(groups.names), of_lists
        )
        if units is not None:
            of_columns = (values[name][kept] for name in columns)
            moments = clustered(of_columns, codes[kept], units[kept], moments, of_lists)[0]
        present = np.flatnonzero(moments.rows)
        names = pd.DataFrame({GROUP: [groups.names[g] for g in present]})
        table = mean_table(
            names, columns, moments.take(present), {}, result.spec.get("confidence", 0.95)
        )
        table = table.assign(model=model, column=columns * len(present))
        if LABELS in result.spec:
            of_group = [own[codes[own] == g] for g in present]
            numbers = powered_means(result, [(name, rows) for rows in of_group for name in columns])
            table[RESTATED] = numbers[RESTATED].to_numpy()
        parts.append(table)
    found = pd.concat(parts, ignore_index=True)
    better = {name: direction_word(result, name) for name in columns}
    return found[["model", "column", "value", "ci_low", "ci_high", "n", "n_undefined"]].assign(
        segment=segment, group=found[GROUP], better=[better[name] for name in found["column"]]
    )

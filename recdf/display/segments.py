"""Groups of lists, such as the segments of users: read once per list, and kept as one code per row
of a result."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..evaluation.result import Evaluation
from ..evaluation.value_moments import GroupMoments, clustered, mean_table, unit_codes
from ..experiments.compare.by_segment import known_segments, segment_columns, segments_of_lists
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
    known, keys, names = coded_segments(segments, result.spec["user_col"])
    # The ids of a list are looked up once, not once for every model.
    places = list_places(result, model_rows(result))
    lists = result.per_user[keys].take(places.first_row)
    joined = segments_of_lists(lists, known, keys, list(names)).fillna(-1)
    found = {}
    for name, own in names.items():
        # Numbers of 16 bits are sorted many times faster than longer ones.
        codes = joined[name].to_numpy(np.int16 if len(own) <= np.iinfo(np.int16).max else np.int64)
        used = np.unique(codes[codes >= 0])
        places_of_used = np.full(len(own) + 1, -1, codes.dtype)
        places_of_used[used] = np.arange(len(used))
        of_row = places_of_used[codes][places.of_row]
        found[str(name)] = SegmentGroups([own[g] for g in used], of_row)
    return found


def coded_segments(
    segments: pd.DataFrame, user_col: list[str]
) -> tuple[pd.DataFrame, list[str], dict[Any, list[str]]]:
    """Return the segments of each user as numbers, −1 for none, the columns of the key, and the
    names of the groups of each column, in the order of the frame."""
    keys, names = segment_columns(segments, user_col)
    known = known_segments(segments, keys, names)
    labels_of = {}
    for name in names:
        codes, values = pd.factorize(known[name])
        labels_of[name] = labels(pd.DataFrame({GROUP: values}), [GROUP])
        known[name] = codes
    return known, keys, labels_of


def group_means(
    result: Evaluation, groups: SegmentGroups, columns: list[str], segment: str
) -> pd.DataFrame:
    """Return means of every model within every group, in the columns of the leaderboard."""
    spec, per_user, codes = result.spec, result.per_user, groups.codes
    values = {name: per_user[name].to_numpy(np.float64, na_value=np.nan) for name in columns}
    weight = per_user[spec["weight"]].to_numpy(np.float64) if "weight" in spec else None
    units = unit_codes(per_user, spec["unit_col"]) if "unit_col" in spec else None
    parts = []
    for model, own in model_rows(result).items():
        kept = own[codes[own] >= 0]
        arrays = [values[name][kept] for name in columns]
        of_lists = None if weight is None else weight[kept]
        moments = GroupMoments.of(arrays, codes[kept], len(groups.names), of_lists)
        if units is not None:
            moments = clustered(arrays, codes[kept], units[kept], moments, of_lists)[0]
        table = model_means(result, model, (segment, groups.names), columns, moments)
        if LABELS in spec:
            of_group = [own[codes[own] == g] for g in np.flatnonzero(moments.rows)]
            numbers = powered_means(result, [(name, rows) for rows in of_group for name in columns])
            table[RESTATED] = numbers[RESTATED].to_numpy()
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def model_means(
    result: Evaluation,
    model: str,
    groups: tuple[str, list[str]],
    columns: list[str],
    moments: GroupMoments,
) -> pd.DataFrame:
    """Return the means of a model within the groups of a column of segments that it has lists
    of."""
    present, (segment, names) = np.flatnonzero(moments.rows), groups
    own = pd.DataFrame({"group": [names[g] for g in present]}).assign(model=model, segment=segment)
    confidence = result.spec.get("confidence", 0.95)
    found = mean_table(own, columns, moments.take(present), {}, confidence)
    better = [direction_word(result, name) for name in columns]
    kept = ["model", "segment", "group", "value", "ci_low", "ci_high", "n", "n_undefined"]
    return found[kept].assign(column=columns * len(present), better=better * len(present))

"""Segments of lists: columns of per-user values, or of a frame with one row per user; each is
compared by itself."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...errors import ColumnError, OptionError, UnknownWarning, kind_of
from ..experiment_columns import by_columns, frame_of, group_codes, key_codes, require

__all__: list[str] = []

MANY_GROUPS, SEGMENT_BANDS = (
    30,
    4,
)  # a column of more values than these is cut into bands of amounts or dates


def segment_columns(segments: Any, user_col: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns of the list key that a frame of segments has, and its columns of
    segments."""
    if not isinstance(segments, pd.DataFrame):
        raise TypeError(
            f"segments is {kind_of(segments)}; expected a DataFrame with one row per user"
        )
    keys = [name for name in user_col if name in segments.columns]
    if not keys:
        raise ColumnError(
            f"segments has none of the key columns {list(user_col)}; it has "
            f"{list(segments.columns)}"
        )
    names = [name for name in segments.columns if name not in keys]
    if not names:
        raise ColumnError(
            f"segments has the key {keys} alone; expected a column of segments beside it"
        )
    return keys, names


def segments_of_lists(
    lists: pd.DataFrame, segments: pd.DataFrame, keys: list[str], names: list[str]
) -> pd.DataFrame:
    """Return the segments of every list, null where its user has none; amounts and dates become
    bands."""
    known = segments.dropna(subset=keys).reset_index(drop=True)
    (of_list, of_row), n = key_codes([("per_user", lists), ("segments", known)], keys)
    row = np.full(n, -1)
    row[of_row] = np.arange(len(known))
    twice = len(known) - np.count_nonzero(row >= 0)
    if twice:
        raise OptionError(
            f"segments has several rows for {twice:,} keys of {keys}; expected one per user"
        )
    return (
        known[names]
        .assign(**{name: _in_bands(known[name]) for name in names})
        .reindex(row[of_list])
    )


def split_by_segment(
    per_user: Any,
    by: list[str],
    segments: pd.DataFrame | None,
    user_col: list[str],
    model_col: str,
    baseline: Any,
    taken: Sequence[str],
) -> tuple[list[tuple[pd.DataFrame, Any]], list[str]]:
    """Return the label of every segment, as a frame of one row, with its part of `per_user`; and
    the columns of labels.

    A segment without two models, or without the baseline, is left out: there is nothing to compare.
    `taken` are names of columns that a comparison has.
    """
    given = per_user if isinstance(per_user, Mapping) else {"per_user": per_user}
    frames = {name: frame_of("per_user", frame) for name, frame in given.items()}
    if segments is None:
        read = [frame[require(frame, "per_user", by)] for frame in frames.values()]
    else:
        keys, names = segment_columns(segments, user_col)
        by = require(segments, "segments", by) or names
        if len(by) > 1 and by == names:
            raise OptionError(
                f"segments has the columns {names}; name those to compare within in ⟦+by=⟧"
            )
        read = [segments_of_lists(frame, segments, keys, by) for frame in frames.values()]
    found = pd.concat(read, ignore_index=True)
    by_columns(found, "per_user", by, taken)
    known = found.notna().all(axis=1).to_numpy()
    if not known.all():
        warnings.warn(
            f"{np.count_nonzero(~known):,} of {len(known):,} rows of per_user have no "
            f"{' and '.join(by)}; they are in no segment that is compared",
            UnknownWarning,
            stacklevel=4,
        )
    codes = np.full(len(found), -1)
    codes[known], labels = group_codes(found[known], "per_user", by)
    ends = np.cumsum([len(frame) for frame in frames.values()])[:-1]
    rows = [
        np.split(
            order := np.argsort(own, kind="stable"),
            np.searchsorted(own[order], np.arange(len(labels))),
        )[1:]
        for own in np.split(codes, ends)
    ]
    parts = []
    for g in range(len(labels)):
        own = {
            name: frame.take(of[g])
            for (name, frame), of in zip(frames.items(), rows, strict=True)
            if len(of[g])
        }
        models = (
            set(own) if isinstance(per_user, Mapping) else set(own["per_user"][model_col].unique())
        )
        if len(models) > 1 and (baseline is None or baseline in models):
            parts.append(
                (labels.iloc[[g]], own if isinstance(per_user, Mapping) else own["per_user"])
            )
    if not parts:
        of = "two models" if baseline is None else f"the baseline {baseline!r} and another model"
        raise OptionError(
            f"no segment of {by} has lists of {of}; nothing can be compared within segments"
        )
    return parts, by


def _in_bands(column: pd.Series) -> pd.Series:
    """Return a column of many amounts or dates cut into bands of about as many users; other columns
    as they stand."""
    n = column.nunique()
    if n <= MANY_GROUPS or isinstance(column.dtype, pd.CategoricalDtype):
        return column
    dates = pd.api.types.is_datetime64_any_dtype(column.dtype)
    if not (dates or pd.api.types.is_numeric_dtype(column.dtype)):
        raise OptionError(
            f"segments[{column.name!r}] has {n:,} different values, such as "
            f"{column.dropna().iloc[0]!r}; leave it out, or group it into at most {MANY_GROUPS} "
            "segments"
        )
    plain = column if dates else column.astype("float64")
    edges = plain.quantile(np.linspace(0, 1, SEGMENT_BANDS + 1)).drop_duplicates()
    texts = [f"{edge:%Y-%m-%d}" if dates else f"{edge:.4g}" for edge in edges]
    names = [f"{low} to {high}" for low, high in itertools.pairwise(texts)]
    places = np.clip(edges.iloc[1:-1].searchsorted(plain, side="right"), 0, len(names) - 1)
    return pd.Series(np.array(names, object)[places], column.index).where(column.notna())

"""Ranks of equal scores, which the metrics that average over ties need."""

from __future__ import annotations

import numpy as np

from ...matching.hits import Hits
from ...matching.lists import Lists


def tied_ranks(lists: Lists, hits: Hits) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last rank, within the first k, that have the same score as each hit."""
    level = lists.matched.tie_level
    if level is None:
        return hits.rank, hits.rank
    own, begin = level[hits.place], lists.matched.start[hits.list]
    bottom = np.searchsorted(level, own, side="right") - begin
    return np.searchsorted(level, own, side="left") - begin + 1, np.minimum(bottom, lists.n_shown[hits.list])

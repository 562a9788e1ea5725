"""The mix of categories in each list. Each item counts as 1 and is divided equally among its categories."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..inputs.sizes import sizes
from ..inputs.sorting import spans
from ..inputs.sums import exact_sums
from ..matching.lists import Lists
from ..matching.side_tables.categories import Labels
from ..matching.side_tables.log import LogCodes


def mixes(lists: Lists, labels: Labels, log: LogCodes | None = None) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Yield blocks of lists with the mix of the recommended items, and that of the user's log (zeros without a log)."""
    n_labels = max(len(labels.names), 1)
    size = max(1, sizes().category_cells // n_labels)
    for low in range(0, len(lists), size):
        block = slice(low, min(low + size, len(lists)))
        n_shown = lists.n_shown[block]
        items = lists.matched.item[spans(lists.matched.start[block], n_shown)]
        shown = _mixed_shares(
            items, np.repeat(np.arange(len(n_shown)), n_shown), None, labels, (len(n_shown), n_labels)
        )
        past = np.zeros_like(shown)
        if log is not None:
            start, item, count = log.pairs
            length = log.n_history[block]
            rows = spans(np.append(start[:-1], 0)[log.list_user[block]], length)
            past = _mixed_shares(
                item[rows], np.repeat(np.arange(len(n_shown)), length), count[rows], labels, past.shape
            )
        yield block, shown, past


def _mixed_shares(
    items: np.ndarray, of_list: np.ndarray, weights: np.ndarray | None, labels: Labels, shape: tuple[int, ...]
) -> np.ndarray:
    position, category = labels.entries(items)
    parts = 1.0 / np.maximum(labels.length[items], 1)
    if weights is not None:
        parts = parts * weights
    flat = exact_sums(parts[position], of_list[position] * shape[1] + category, shape[0] * shape[1])
    return flat.reshape(shape)

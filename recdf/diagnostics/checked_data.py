"""What the checks of `check` share: the data, and the labels of the lists that a finding concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..inputs.options import Options, as_columns
from ..inputs.true_and_pred import Order
from ..matching.lists import Matched
from ..metrics.per_user import label_frame
from ..tables.findings import FINDING_COLUMNS, Findings, Severity, row_objects


@dataclass(frozen=True)
class Data:
    """The data to check: both frames, the cut-off that findings refer to, the options, and what orders `pred`."""

    true: pd.DataFrame
    pred: pd.DataFrame
    k: int
    options: Options
    order: Order

    @property
    def by(self) -> list[str]:
        """Columns of `pred` that tell recommenders apart."""
        return as_columns(self.options.by)

    @property
    def keys(self) -> list[str]:
        """Columns of the list key."""
        return as_columns(self.options.user_col)

    @property
    def pair(self) -> list[str]:
        """Columns that name an item of a list."""
        return [*self.keys, self.options.item_col]


class ListFindings(Findings):
    """Findings of which some concern lists, whose labels are then the examples, and some one recommender."""

    columns: ClassVar[Mapping[str, str]] = {**FINDING_COLUMNS, "by": "str", "ranges": "str"}

    def lists(
        self, finding: str, severity: Severity, matched: Matched, where: np.ndarray, of: np.ndarray,
        effect: str | Callable[[np.ndarray], tuple[str, str]], once: bool = False,
    ) -> None:  # fmt: skip
        """Add a finding for each recommender with lists for which `where` is true, of those for which `of` is.

        What is true of a list whatever was recommended is said `once`. An effect that depends on the lists is a
        function of them; it returns its words and the ranges of metrics.
        """
        for name, own in [("", next(parts_by(matched))[1])] if once else parts_by(matched):
            found = where & own
            if found.any():
                words, ranges = (effect, "") if isinstance(effect, str) else effect(own)
                some = labels_where(matched, found)
                self.add(finding, severity, found.sum(), (of & own).sum(), some, words, name, ranges)


def parts_by(matched: Matched) -> Iterator[tuple[str, np.ndarray]]:
    """Return every recommender by its label with its lists; all lists without a name where there is no `by`."""
    if not len(matched.by.columns):
        yield "", np.ones(len(matched), bool)
        return
    for code, values in enumerate(matched.by.astype(object).to_numpy().tolist()):
        yield " · ".join(map(str, values)), matched.list_by == code


def labels_where(matched: Matched, where: np.ndarray) -> list[Any]:
    """Return the keys of the first lists for which `where` is true."""
    keys = label_frame(matched).drop(columns=list(matched.by.columns))
    return row_objects(keys.take(np.flatnonzero(where)[:5]))

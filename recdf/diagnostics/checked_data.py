"""What the checks of `check` share: the data, and the labels of the lists that a finding concerns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..inputs.options import Options, as_columns
from ..inputs.true_and_pred import Order
from ..matching.lists import Matched
from ..metrics.per_user import label_frame
from ..tables.findings import Findings, Severity, row_objects


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
    """Findings of which some concern lists, whose labels are then the examples."""

    def lists(
        self, finding: str, severity: Severity, matched: Matched, where: np.ndarray, of: Any, effect: str
    ) -> None:
        """Add a finding that concerns the lists for which `where` is true, of `of` lists, with the labels of some."""
        self.add(finding, severity, where.sum(), of, labels_where(matched, where), effect)


def labels_where(matched: Matched, where: np.ndarray) -> list[Any]:
    """Return the labels of the first lists for which `where` is true."""
    return row_objects(label_frame(matched).take(np.flatnonzero(where)[:5]))

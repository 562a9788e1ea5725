"""Findings of `check` and `check_log`: rows are collected one after another and become one table, errors first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..experiments.report import Findings as ShownFindings
from ..inputs.options import Options, as_columns
from ..inputs.tables import Order
from ..matching.lists import Matched
from ..metrics.per_user import label_frame

Severity = Literal["error", "warning", "info"]

COLUMNS = {
    "finding": "str", "severity": "str", "count": "int64", "share": "float64", "examples": "str", "effect": "str",
}  # fmt: skip
N_EXAMPLES = 5


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


@dataclass
class Findings:
    """Rows of the result, in the order in which they are found.

    `refused_numbers` tells that no lists can be made, because of null scores or of relevances that cannot be gains.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    refused_numbers: bool = False

    def add(self, finding: str, severity: Severity, count: Any, of: Any, examples: Any, effect: str) -> None:
        """Add a finding that concerns `count` of `of` rows or lists, unless `count` is 0."""
        if count:
            words = examples if isinstance(examples, str) else ", ".join(map(repr, list(examples)[:N_EXAMPLES]))
            share = count / of if of else float("nan")
            values = (finding, severity, int(count), share, words, effect)
            self.rows.append(dict(zip(COLUMNS, values, strict=True)))

    def lists(
        self, finding: str, severity: Severity, matched: Matched, where: np.ndarray, of: Any, effect: str
    ) -> None:
        """Add a finding that concerns the lists for which `where` is true, of `of` lists, with the labels of some."""
        self.add(finding, severity, where.sum(), of, labels_where(matched, where), effect)

    def table(self) -> pd.DataFrame:
        """Return all findings as a table: errors, then warnings, then infos."""
        table = pd.DataFrame(self.rows, columns=list(COLUMNS)).astype(COLUMNS)
        order = table["severity"].map({"error": 0, "warning": 1, "info": 2})
        return ShownFindings(table.iloc[np.argsort(order.to_numpy(), kind="stable")].reset_index(drop=True))


def plain_rows(frame: pd.DataFrame) -> list[Any]:
    """Return rows as tuples of Python objects; the rows of a single column are the objects themselves."""
    rows = frame.astype(object).to_numpy().tolist()
    return [row[0] if len(row) == 1 else tuple(row) for row in rows]


def labels_where(matched: Matched, where: np.ndarray) -> list[Any]:
    """Return the labels of the first lists for which `where` is true."""
    return plain_rows(label_frame(matched).take(np.flatnonzero(where)[:5]))

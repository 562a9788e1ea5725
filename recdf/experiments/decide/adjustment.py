"""How the p-values of a comparison were adjusted, in words that its own numbers bear out.

Contract: a table is read as it stands, perhaps some rows of a larger one. A correction is named
only if adjusting these rows by it gives the `p_adj` that they have.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from ...stats.many_tests import adjust_within
from ..experiment_columns import Codes, Mask

# Corrections as a reader knows them.
METHODS = {
    "holm": "Holm's method",
    "holm_sidak": "Holm and Šidák's method",
    "hochberg": "Hochberg's method",
    "bh": "Benjamini and Hochberg's method",
    "by": "Benjamini and Yekutieli's method",
    "bonferroni": "Bonferroni's method",
    "sidak": "Šidák's method",
}


class Adjustment(NamedTuple):
    """How p-values were adjusted ("" where the rows do not show it), the family of every row, and
    which have a test."""

    how: str
    family: Codes
    tested: Mask

    @property
    def words(self) -> str:
        """Such as "adjusted by Holm's method in 2 families of 6 tests"."""
        sizes = np.unique(self.family[self.tested], return_counts=True)[1]
        if not len(sizes):
            return "not adjusted: there is no test"
        if self.how == "none" or (self.how and sizes.max() == 1):
            return "not adjusted"
        if not self.how:
            return "adjusted in a way that these rows do not show"
        span = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
        return f"adjusted by {METHODS.get(self.how, self.how)} " + (
            f"for {span} tests" if len(sizes) == 1 else f"in {len(sizes)} families of {span} tests"
        )

    def among(self, row: int, rows: Mask) -> int:
        """Return how many tests of some rows were adjusted together with the test of one row."""
        together = self.how not in ("", "none") and self.tested[row]
        return (
            int(np.count_nonzero(rows & self.tested & (self.family == self.family[row])))
            if together
            else 0
        )


def adjustment(table: pd.DataFrame) -> Adjustment:
    """Return the correction and the families that a comparison of models or variants records, if
    its rows show them."""
    known = table.attrs.get("recdf_comparison", {})
    table = table.reset_index(drop=True)
    p_adj = table["p_adj"].to_numpy(np.float64)
    tested, nothing = ~np.isnan(p_adj), np.zeros(len(table), np.int64)
    if "p_value" not in table.columns:
        return Adjustment("", nothing, tested)
    p = table["p_value"].to_numpy(np.float64)
    labels = [table[name] for name in known.get("family", ()) if name in table.columns]
    labels.append(table["metric"].isin(list(known.get("primary", ()))))
    family = table.groupby(labels, dropna=False, observed=True).ngroup().to_numpy().astype(np.int64)
    for how in (known.get("correction", "none"), "none"):
        if np.allclose(adjust_within(p, family, how), p_adj, rtol=1e-9, atol=0, equal_nan=True):
            return Adjustment(how, family, tested)
    return Adjustment("", nothing, tested)

"""Many metrics and pairs read together: adjusted p-values, the intervals that agree with them, and
the words for both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, MutableMapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ...errors import OptionError
from ...inputs.door import checks_names
from ...judge.choices import Alternative, Better, Columns, Correction, as_columns
from ...judge.per_user_columns import Codes, Floats, Mask, group_codes, metric_values, require
from ...judge.verdict import VERDICT_COLUMNS, withhold
from ...metrics.strings import direction_of
from ...stats.always_valid import always_valid_multiplier
from ...stats.many_tests import adjust_within, joint_levels, widened_ratio
from ...stats.numbers import normal_quantile, undefined_is_nan
from ...stats.student import t_quantile
from ...tables.cells import as_written
from ..samples import Settings, subset

# The columns of a table by their names, in a frame or without one; and what makes its intervals
# anew for so many standard errors.
NamedColumns = MutableMapping[str, Any] | DataFrame
NewIntervals = Callable[[Any, Floats, Alternative], None]
# What tells the rows of a comparison apart, beside columns of segments.
ROW_LABELS = ["metric", "control", "treatment", "baseline", "model"]

# ------------------------------------------------------------------------------------------
# Many metrics and pairs read together: adjusted p-values, the intervals that agree with them, and
# in which direction each metric is better.


@checks_names
def adjust_pvalues(
    table: DataFrame,
    *,
    p_col: str = "p_value",
    correction: Correction = "holm",
    family: Columns | None = None,
    confidence: float = 0.95,
) -> DataFrame:
    """Adjust p-values for the number of tests read together, so that `confidence` holds for all of
    them.

    With p₍₁₎ ≤ .. ≤ p₍ₘ₎ the p-values of a family, and every result cut at 1:

    * family-wise error, any dependence: holm max_{j≤i} (m − j + 1)·p₍ⱼ₎; bonferroni m·p.
    * family-wise error of tests that are independent or positively dependent: holm_sidak max_{j≤i}
      1 − (1 − p₍ⱼ₎)^(m − j + 1); sidak 1 − (1 − p)^m; hochberg min_{j≥i} (m − j + 1)·p₍ⱼ₎.
    * false discovery rate: bh min_{j≥i} m/j·p₍ⱼ₎ (independent or positively dependent); by,
      m/j·Σ_{l≤m} (1/l)·p₍ⱼ₎ in its place (any dependence).

    Parameters
    ----------
    table : DataFrame
        A comparison, or any frame with a column of p-values. Null p-values are not tests and are
        not counted.
    p_col : str, default "p_value"
        Column of p-values in [0, 1].
    correction : {"holm", "hochberg", "sidak", "holm_sidak", "bonferroni", "bh", "by", "none"}
        Adjustment; default "holm".
    family : str or list of str, optional
        Columns whose values tell families apart (`"metric"`: each metric is adjusted by itself).
        Default: the whole table is one family.
    confidence : float, default 0.95
        `reject` is at the level alpha = 1 − confidence.

    Returns
    -------
    DataFrame
        The table with `p_adj` (float64, null where p is) and `reject` (bool: p_adj ≤ alpha);
        columns of these names are replaced. A comparison keeps the intervals and cautions of its
        own `correction`. So where its `effect` says another thing than `reject`, its verdict is
        withheld (`other_correction`).

    Raises
    ------
    ColumnError
        If a column is missing.
    OptionError
        If `correction` or `confidence` is not valid, or a p-value is outside [0, 1].

    References
    ----------
    Holm 1979; Šidák 1967; Hochberg 1988; Benjamini & Hochberg 1995; Benjamini & Yekutieli 2001.

    Examples
    --------
    >>> import pandas as pd, recdf as rd
    >>> rd.experiments.adjust_pvalues(pd.DataFrame({"p_value": [0.01, 0.04, 0.03]}))
       p_value  p_adj  reject
    0     0.01   0.03    True
    1     0.04   0.06   False
    2     0.03   0.06   False
    """
    settings = Settings(confidence=confidence, correction=correction, family=family)
    require(table, "table", family)
    p = metric_values(table, "table", p_col)
    outside = p[(p < 0) | (p > 1)].tolist()
    if outside:
        raise OptionError(
            f"table[{p_col!r}] is outside [0, 1] in {len(outside):,} rows: {outside[:5]}"
        )
    p_adj, reject, _ = adjusted_columns(table, settings, p)
    judged = {*VERDICT_COLUMNS} <= {*table}
    found = (as_written(table) if judged else table).assign(p_adj=p_adj, reject=reject)
    if judged:
        shown = ~found["effect"].isin(["", "none", "equivalent", "fits"])
        withhold(found, (found["effect"] != "") & (shown != reject), "other_correction")
    return found


def directions(
    columns: Mapping[str, str],
    smaller_is_better: str | Collection[str] | None = None,
    larger_is_better: str | Collection[str] | None = None,
) -> dict[str, Better | None]:
    """In which direction every metric (name → its column, "" for a ratio) is better; None where
    neither is.

    What the caller names decides. Else a column of a registered metric, such as first_rank@10, has
    the direction of that metric, and for any other column larger is better. With
    `smaller_is_better` given, all other metrics are better when larger, unless `larger_is_better`
    is given too.
    """
    smaller = subset("smaller_is_better", smaller_is_better, columns)
    larger = subset("larger_is_better", larger_is_better, columns)
    if both := sorted({*smaller} & {*larger}):
        raise OptionError(
            f"{both} are in smaller_is_better and in larger_is_better; name each in one of them"
        )
    found: dict[str, Better | None] = dict.fromkeys(columns, "larger")
    if smaller_is_better is None or larger_is_better is not None:
        for name, column in columns.items():
            known = direction_of(column)
            found[name] = "larger" if known is None else known.better
    return found | dict.fromkeys(larger, "larger") | dict.fromkeys(smaller, "smaller")


def adjusted_columns(
    table: NamedColumns, settings: Settings, p: Floats, labels: NamedColumns | None = None
) -> tuple[Floats, Mask, Codes]:
    """Adjusted p-values of the rows of a table, whether they reject, and the family of each;
    `labels` are those of the segments of its rows."""
    family = np.zeros(len(p), np.int64)
    if settings.family or settings.primary:
        labels = {} if labels is None else labels
        frame = DataFrame({**table, **labels})
        names = as_columns(settings.family)
        if not {*names} <= {*frame}:  # others are not shown, or are no families
            require(frame.filter([*ROW_LABELS, "quantile", *labels]), "the comparison", names)
        labelled = frame[names].copy()
        if settings.primary:
            labelled["primary metric"] = frame["metric"].isin(settings.primary).to_numpy()
        family = group_codes(labelled, "table", list(labelled.columns))[0]
    p_adj = adjust_within(p, family, settings.correction)
    return p_adj, p_adj <= settings.alpha, family


def read_together(
    table: NamedColumns,
    settings: Settings,
    labels: NamedColumns | None = None,
    intervals: NewIntervals | None = None,
) -> None:
    """Put adjusted p-values, decisions and the intervals that agree with them in place of those of
    single tests.

    An interval excludes 0 exactly where the test rejects after the correction. Wilcoxon's test is
    not about the mean, so that its interval only becomes as wide as the number of tests asks.
    `intervals` are made anew for so many standard errors, where they cannot be widened.
    """

    def column(name: str) -> Floats:
        return np.asarray(table[name], np.float64)

    p, two_sided = column("p_value"), settings.alternative == "two-sided"
    p_adj, reject, family = adjusted_columns(table, settings, p, labels)
    table["p_adj"], table["reject"] = p_adj, reject
    if settings.correction == "none" and intervals is None:
        return
    level = single = np.full(len(p), settings.alpha)
    if settings.correction != "none":
        level = joint_levels(p, p_adj, reject, family, settings.alpha, settings.correction)

    def quantiles(level: Floats) -> Floats:
        """How many standard errors intervals of these levels reach: those of t, or of the normal
        distribution where there are no degrees of freedom."""
        if (planned := settings.sequential_n) is not None:
            n = column("n_control") + column("n_treatment")
            n[n == 0] = np.nan  # without a unit there is no bound
            of_test = settings.confidence, settings.alternative
            return np.asarray(always_valid_multiplier(n, planned, *of_test, level))
        tails = level / (2 if two_sided else 1)
        df = column("df")
        found = np.array([-normal_quantile(one) if 0 < one < 1 else np.nan for one in tails])
        if (by_t := np.isfinite(df)).any():
            found[by_t] = t_quantile(df[by_t], settings.alternative, 1 - level[by_t])
        return found

    reach = quantiles(level)
    if intervals is not None:
        intervals(table, reach, settings.alternative)
        return
    diff, low, high, ratio = (
        *map(column, ("diff", "ci_low", "ci_high")),
        reach / quantiles(single),
    )
    if "test" in table:
        p = np.where(np.asarray(table["test"]) == "wilcoxon", np.nan, p)
    # Where p comes from resamples, a bound that would contradict the test is put where a test with
    # this p has it.
    with undefined_is_nan():
        low = diff - (diff - low) * ratio
        high = diff + (high - diff) * ratio
        up = diff > 0
        near = np.where(up, low, high)
        wrong = np.where(up, near > 0, near < 0) != reject
        wrong &= np.isfinite(near) & (diff != 0) & (p > 0) & (p < 1)
        moved = diff * (1 - reach / quantiles(np.where(wrong, p, 0.5)))
    table["ci_low"] = np.where(wrong & up, moved, low)
    table["ci_high"] = np.where(wrong & ~up, moved, high)
    if "rel_ci_low" in table:
        table["rel_ci_low"], table["rel_ci_high"] = widened_ratio(
            column("rel_diff"), column("rel_ci_low"), column("rel_ci_high"), ratio
        )


# ------------------------------------------------------------------------------------------
# How the p-values of a comparison were adjusted, in words that its own numbers bear out.
#
# Contract: a table is read as it stands, perhaps some rows of a larger one. A correction is named
# only if adjusting these rows by it gives the `p_adj` that they have.


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
        span = " to ".join(dict.fromkeys(map(str, (sizes.min(), sizes.max()))))
        families = "for" if len(sizes) == 1 else f"in {len(sizes)} families of"
        return f"adjusted by {METHODS.get(self.how, self.how)} {families} {span} tests"

    @property
    def intervals(self) -> str:
        """What the intervals hold for, such as "intervals that hold together, adjusted by ..."."""
        if self.how == "none" or not self.tested.any():
            return "intervals, each of which holds for its own period alone"
        return f"intervals{' that hold together' * bool(self.how)}, {self.words}"

    def allows_for(self, together: int, n: int) -> str:
        """Say whether n tests are taken into account, of which so many were adjusted together."""
        return "is" if together >= n else "is not" if self.how else "may not be"

    def among(self, row: int, rows: Mask) -> int:
        """Return how many tests of some rows were adjusted together with the test of one row."""
        if self.how in ("", "none") or not self.tested[row]:
            return 0
        return int((rows & self.tested & (self.family == self.family[row])).sum())


def adjustment(table: DataFrame) -> Adjustment:
    """Return the correction and the families that a comparison of models or variants records, if
    its rows show them."""
    known = table.attrs.get("recdf_comparison", {})
    table = table.reset_index(drop=True)
    p_adj = table.get("p_adj", pd.Series(np.nan, table.index)).to_numpy(np.float64)
    tested = ~np.isnan(p_adj)
    unknown = Adjustment("", np.zeros(len(table), np.int64), tested)
    if "p_value" not in table:
        return unknown
    p = table["p_value"].to_numpy(np.float64)
    labels = [table[name] for name in known.get("family", ()) if name in table]
    labels.append(table["metric"].isin(known.get("primary", ())))
    family = table.groupby(labels, dropna=False, observed=True).ngroup().to_numpy().astype(np.int64)

    def fits(how: Correction) -> bool:
        adjusted = adjust_within(p, family, how)
        return np.allclose(adjusted, p_adj, rtol=1e-9, atol=0, equal_nan=True)

    if "correction" not in known and tested.sum() > 1 and fits("holm"):
        return unknown  # such as p of 0 and of 1, which no correction changes
    for how in (known.get("correction", "none"), "none"):
        if fits(how):
            return Adjustment(how, family, tested)
    return unknown

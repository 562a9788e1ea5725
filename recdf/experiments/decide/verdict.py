"""From p-values to decisions: adjustment for many tests, and the verdict in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from ...errors import OptionError, renamed
from ...inputs.options import as_columns
from ...metrics.direction import direction_of
from ...stats.always_valid import always_valid_multiplier
from ...stats.many_tests import adjust_within, joint_levels, t_quantiles, widened, widened_ratio
from ..choices import Better, Correction
from ..experiment_columns import Codes, Floats, Mask, frame_of, group_codes, metric_values, require
from ..samples import subset
from ..settings import Settings


@renamed(method="correction", alpha=("confidence", lambda alpha: 1 - alpha))
def adjust_pvalues(
    table: pd.DataFrame,
    *,
    p_col: str = "p_value",
    correction: Correction = "holm",
    family: str | Sequence[str] | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
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
        columns of these names are replaced.

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
    require(frame_of("table", table), "table", as_columns(family))
    p = metric_values(table, "table", p_col)
    outside = (p < 0) | (p > 1)
    if outside.any():
        raise OptionError(
            f"table[{p_col!r}] is outside [0, 1] in {int(outside.sum()):,} rows: "
            f"{p[outside][:5].tolist()}"
        )
    result = table.copy()
    result["p_adj"], result["reject"] = adjusted_columns(table, settings, p_col)
    return result


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
    smaller = set(subset("smaller_is_better", smaller_is_better, columns))
    larger = set(subset("larger_is_better", larger_is_better, columns))
    both = sorted(smaller & larger)
    if both:
        raise OptionError(
            f"{both} are in smaller_is_better and in larger_is_better; name each in one of them"
        )
    found: dict[str, Better | None] = {}
    for name, column in columns.items():
        if name in smaller:
            found[name] = "smaller"
        elif name in larger or (smaller_is_better is not None and larger_is_better is None):
            found[name] = "larger"
        else:
            known = direction_of(column)
            found[name] = "larger" if known is None else known.better
    return found


def adjusted_columns(
    table: pd.DataFrame, settings: Settings, p_col: str = "p_value"
) -> tuple[Floats, Mask]:
    """Adjusted p-values and whether they reject, family by family."""
    p_adj = adjust_within(
        metric_values(table, "table", p_col), _family_codes(table, settings), settings.correction
    )
    return p_adj, p_adj <= settings.alpha


def _family_codes(table: pd.DataFrame, settings: Settings) -> Codes:
    """Return the family of every row."""
    names = require(table, "the comparison", as_columns(settings.family))
    labelled = table[names].copy()
    if settings.primary:
        labelled["primary metric"] = table["metric"].isin(list(settings.primary)).to_numpy()
    return group_codes(labelled, "table", list(labelled.columns))[0]


def read_together(table: pd.DataFrame, settings: Settings) -> None:
    """Put adjusted p-values, decisions and the intervals that agree with them in place of those of
    single tests.

    An interval excludes 0 exactly where the test rejects after the correction. Wilcoxon's test is
    not about the mean, so that its interval only becomes as wide as the number of tests asks.
    """
    table["p_adj"], table["reject"] = adjusted_columns(table, settings)
    if settings.correction == "none":
        return

    def column(name: str) -> Floats:
        return table[name].to_numpy(np.float64, na_value=np.nan)

    p, p_adj, reject = column("p_value"), column("p_adj"), table["reject"].to_numpy(bool)
    level = joint_levels(
        p, p_adj, reject, _family_codes(table, settings), settings.alpha, settings.correction
    )
    mean = (
        (table["test"] != "wilcoxon").to_numpy()
        if "test" in table.columns
        else np.ones(len(table), bool)
    )

    def quantiles(level: Floats) -> Floats:
        if settings.sequential_n is None:
            return t_quantiles(column("df"), level, settings.alternative)
        n, planned = column("n_control") + column("n_treatment"), settings.sequential_n
        n[n == 0] = np.nan  # without a unit there is no bound
        return np.asarray(
            always_valid_multiplier(n, planned, settings.confidence, settings.alternative, level)
        )

    table["ci_low"], table["ci_high"], ratio = widened(
        column("diff"),
        column("ci_low"),
        column("ci_high"),
        np.where(mean, p, np.nan),
        reject,
        quantiles,
        level,
        settings.alpha,
    )
    if "rel_ci_low" in table.columns:
        table["rel_ci_low"], table["rel_ci_high"] = widened_ratio(
            column("rel_diff"), column("rel_ci_low"), column("rel_ci_high"), ratio
        )


def effect_words(
    table: pd.DataFrame, reject: Mask, better: Mapping[str, Better | None]
) -> list[str]:
    """ "better" or "worse" of a rejected difference, "higher" or "lower" of a metric without
    direction."""
    words = []
    for metric, diff, shown in zip(table["metric"], table["diff"], reject, strict=True):
        good, bad = ("higher", "lower") if better[metric] is None else ("better", "worse")
        word = good if (diff > 0) == (better[metric] != "smaller") else bad
        words.append(word if shown else "no difference shown")
    return words


# Level of the checks of the data: an experiment with thousands of users finds a broken one far
# beyond it.
HEALTH_ALPHA = 0.001

# Warnings that withhold the verdict of a comparison of variants, the most serious first.
WITHHELD = {
    "sample_ratio": "invalid: sample ratio",
    "unequal_missing": "check: unequal missing values",
    "shares_change": "check: shares of the variants change",
    "covariate_after": "check: covariate after exposure",
    "covariate_differs": "check: covariate differs",
    "huge_values": "check: huge values",
    "zero_denominator": "check: zero denominator",
    "too_few_users": "check: tiny arms",
    "tiny": "check: tiny arms",
    "constant_arm": "check: constant arm",
    "different_lists": "check: undefined for different lists",
    "few_users_carry": "check: few users carry it",
    "repeated_units": "check: repeated units",
    "few_units": "check: few units decide",
    "denominator_differs": "check: denominator differs",
    "skewed": "check: skewed",
    "not_random": "check: lists of people not random",
}

# Of these verdicts, those that say that the variants are not alike, or were not assigned alike.
NOT_ALIKE = [
    WITHHELD[name]
    for name in ("sample_ratio", "shares_change", "covariate_after", "covariate_differs")
]

# A comparison of models has no verdict with fewer units, or with fewer that differ.
FEW_LISTS, FEW_UNITS = 30, 20
# Warnings that withhold it, too.
OF_PAIRS = ("huge_values", "different_lists", "few_users_carry", "not_random")

# What a warning of `compare_models` means to a reader.
PAIR_WARNINGS = {
    "zero_variance": "all users have the same difference, so that there is nothing to test",
    "too_few_users": "fewer than two users have a value for both models",
    "huge_values": "the values are too large to compute with",
    "different_lists": "only one of the models has a value for some lists, and the difference is "
    "that of the others",
    "missing_lists": "a model has no recommendations for some lists of the other, where it counts "
    "as 0",
    "few_human": "people judged lists of fewer than 30 users, so that there is no verdict",
    "not_random": "the lists that people judged are no random sample of all, so that there is no "
    "verdict",
    "wilcoxon_not_mean": "the Wilcoxon test is not about the mean, which stands beside it",
    "repeated_units": "a column that repeats looks like users, whose lists are not independent; "
    "unit_col= names it",
    "mostly_zero": "95 % or more of the users get the same from both models, so that few users "
    "decide",
    "few_users_carry": "a few users have most of the weight, so that there is no verdict",
    "few_differ": "fewer than 50 users differ, so that the test errs more often than it says",
    "skewed": "a few large differences decide, so that the test errs more often than it says",
}


def warning_sentences(table: pd.DataFrame) -> list[str]:
    """Say what every warning of a comparison of models means, and how many of its rows carry it."""
    words = Counter(
        word for text in table["warning"].astype(str) for word in text.split("; ") if word
    )
    return [
        f"{n} of {len(table)} comparisons {'carries' if n == 1 else 'carry'} the warning "
        f"“{word.replace('_', ' ')}”"
        f"{f': {PAIR_WARNINGS[word]}' if word in PAIR_WARNINGS else ''}."
        for word, n in words.items()
    ]


NOT_CHECKED = " (sample ratio not checked)"


def variant_verdicts(
    table: pd.DataFrame, reject: Mask, better: Mapping[str, Better | None], ratio_checked: Mask
) -> list[str]:
    """Verdict of every row: withheld for a warning, else the effect in a word, and what has not
    been checked."""
    verdicts = []
    rows = zip(
        effect_words(table, reject, better),
        table["warning"],
        table["diff"],
        table["balance_p"],
        strict=True,
    )
    for (word, warning, diff, balance_p), checked in zip(rows, ratio_checked, strict=True):
        named = warning.split("; ")
        if "covariate_differs" in named and balance_p >= HEALTH_ALPHA:  # only a remark
            named.remove("covariate_differs")
        reason = next((text for name, text in WITHHELD.items() if name in named), "")
        if not reason and "zero_variance" in named and diff != 0:
            reason = "check: zero variance"
        verdicts.append(reason or (word if checked else word + NOT_CHECKED))
    return verdicts


def model_verdicts(
    table: pd.DataFrame,
    reject: Mask,
    equivalent: Mask,
    better: Mapping[str, Better | None],
    ranks: Mask | None,
) -> list[str]:
    """Verdict of every pair; with `ranks` (the signed ranks are higher) it follows the ranks and
    not the mean."""
    if ranks is None:
        words = effect_words(table, reject, better)
    else:
        shown = np.where(ranks, "ranks higher", "ranks lower")
        words = np.where(reject, shown, "no difference shown").tolist()
    verdicts = []
    for word, shown_effect, within, reason in zip(
        words, reject, equivalent, _withheld_pairs(table), strict=True
    ):
        within_margin = f"{word}, within the margin" if shown_effect else "equivalent"
        verdicts.append(reason or (within_margin if within else word))
    return verdicts


# Doubts about a period that a trend shares: its users are not alike, or not all of them are there.
DOUBTFUL_TRENDS = [*NOT_ALIKE, WITHHELD["unequal_missing"]]


def trend_verdicts(
    table: pd.DataFrame, of_periods: Sequence[Sequence[str]], least: int
) -> list[str]:
    """Verdict of every trend: "fades" or "grows" is about the size of the effect, and "turns" about
    its sign."""
    verdicts = []
    for row, periods in zip(table.to_dict("records"), of_periods, strict=True):
        doubt = next((text for text in DOUBTFUL_TRENDS if text in periods), "")
        equal = "check: zero variance" if np.isnan(row["se"]) and abs(row["diff"]) > 0 else ""
        tiny = WITHHELD["tiny"] if row["n"] < least else equal
        shown = (
            "turns"
            if row["turns"]
            else "grows"
            if abs(row["late"]) > abs(row["early"])
            else "fades"
        )
        checked = "" if all(NOT_CHECKED not in text for text in periods) else NOT_CHECKED
        verdicts.append(doubt or tiny or (shown if row["reject"] else "no trend shown") + checked)
    return verdicts


DIFFERS, DOES_NOT_DIFFER = "differs between segments", "no difference between segments shown"


def segments_verdict(
    of_segments: Sequence[str], doubts: Sequence[str], differs: bool, without_doubts: bool
) -> str:
    """Verdict of the segments of one metric and pair; a difference that rests on segments in doubt
    is withheld."""
    doubt = next((text for text in NOT_ALIKE if text in doubts), "")
    if differs and not without_doubts and doubts:
        doubt = doubt or doubts[0]
    checked = NOT_CHECKED if any(text.endswith(NOT_CHECKED) for text in of_segments) else ""
    return doubt or (DIFFERS if differs else DOES_NOT_DIFFER) + checked


def _withheld_pairs(table: pd.DataFrame) -> list[str]:
    """Why the verdict of each pair of models is withheld, or an empty text."""
    found = []
    differ = table["wins"] + table["losses"]
    for n, n_differ, warning in zip(table["n_users"], differ, table["warning"], strict=True):
        named = warning.split("; ")
        reasons = {
            "check: too few lists": n < FEW_LISTS,
            "check: zero variance": "zero_variance" in named and n_differ,
            "check: too few lists differ": 0 < n_differ < FEW_UNITS,
            **{WITHHELD[name]: name in named for name in OF_PAIRS},
        }
        found.append(next((text for text, holds in reasons.items() if holds), ""))
    return found

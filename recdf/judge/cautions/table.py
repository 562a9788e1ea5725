"""The one table of cautions: what they are called, what they say, which verdicts they withhold.

Contract: the order of the rows is their seriousness; the first one that withholds decides what a
verdict says. A caution with `fires` looks at the columns of a table of comparisons that it names,
and stands aside where one of them is not there. The others are met by the arithmetic, which puts
their code into `remarks` with `but` or `remark`: search for the code.

A few units that the sample lacks could turn what is said of a mean of bounded values
(`unseen_units`). A verdict stands only if three more units (K = ln(1/α), 3.0 at 0.05), each at the
worst bound of the metric, would not turn it. Where a correction multiplies p by m, K is ln(m/α), as
in each of several segments. Twelve populations with rare losses and no difference,
n = 30 to 3,000, had a verdict in up to 30 % of runs before, and in 6.4 % with this rule. It takes 4
points of power at n = 100 from a true difference of 2.8 standard errors, and none from n = 200 on.
K = 2.5 left 8.8 % in strata, and one unit at the doubled level costs 24 points at n = 100.

A significant sum of signed ranks W has no such bound to fear: the largest rank of m units that
differ is about m, and W is above 1.96·√(m(m + 1)(2m + 1)/6), which three more units do not reach
where 20 or more differ. So a verdict about ranks has no `turned_by`.

A treatment may take all from 1 % of the users and give the others a little. Where values have a
standard deviation of .01, "better" was false then in 43 and 13 % of experiments of 60 and 300 users
an arm without strata, and in 0 and 2 % with the rule ("losing arm" in docs/calibration.md). In a
thin stratum one unit weighs more than it shows. Zeros and ones in strata have a test of their own
(`ScoreTest`).

These say nothing that three more units could turn, or ask in another way. Interleaving and each
segment are comparisons of models or variants, and segments in doubt do not count in
`segment_effects`. Each period of `effect_over_time` is asked, and so is its trend. `aa_test` counts
splits of the same units. `proxy_metrics` has experiments as its units, whose effects have no bounds
(`noise`). Off-policy estimates say how far they may be trusted: `few_rewards` asks for 100
effective rewards. Labels have an interval that allows for one more list.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from ...stats.always_valid import MOST_SKEWED
from ...stats.many_tests import adjust
from ...stats.numbers import Mask, normal_quantile
from ...stats.student import without_lean
from ..choices import AnyRow
from . import FEW_DIFFER, FEW_LISTS, FEW_UNITS, HEALTH_ALPHA, MANY_SHORT, MOSTLY_ZERO, TINY, UNEQUAL


class Caution(NamedTuple):
    """A row of the table.

    code : its name in `withheld` and `remarks` · sentence : what it means to a reader · words : the
    verdict that it withholds ("" if it never does), where {column} is a number of the row ·
    withholds : the kinds of verdicts (`verdict.EFFECTS`) that it withholds · adds : what it puts at
    the end of a verdict that stands · warns : it is a warning (`--fail-on warning`), and not only a
    note · fires : the rows of a table where it holds, from the columns that it names · only : the
    rows where it withholds, if not all · beneath : graver cautions of the same reason, beside which
    it is not said
    """

    code: str
    sentence: str
    words: str = ""
    withholds: str = ""
    adds: str = ""
    warns: bool = True
    fires: Callable[..., Mask] | None = None
    only: Callable[[AnyRow], bool] | None = None
    beneath: str = ""

    @property
    def name(self) -> str:
        """Its code in words."""
        return self.code.replace("_", " ")

    @property
    def topic(self) -> str:
        """What it is about in few words, for a count of many rows."""
        words = self.words.partition("{")[0].removeprefix("check: ")
        return words.strip() or self.name

    def withheld(self, kind: str, row: AnyRow) -> bool:
        """Whether it withholds a verdict of this kind on a row."""
        return kind in self.withholds.split() and (self.only is None or self.only(row))


def _apart(row: AnyRow) -> bool:
    """Whether arms, or models, without any spread differ."""
    return row["wins"] + row["losses"] > 0 if "wins" in row else abs(row["diff"]) > 0


def _skew_counts(row: AnyRow) -> bool:
    """Whether skewness may make what a row says. Of models it may be what one side of a test says,
    which was false in up to 12 % of runs: it has to be shown without the skewness, too. What two
    sides say was false in up to 8 %, since one errs the less, the more the other does."""
    if "wins" not in row:
        return True
    one_sided = math.isinf(row["ci_low"]) or math.isinf(row["ci_high"])
    equivalent = row["effect"] == "equivalent"
    if row.get("powered") or not (equivalent or (one_sided and row["effect"] in _OF_MEANS)):
        return False
    p = row["p_equivalence" if equivalent else "p_value"]
    return skewness_makes(p, row["skewed_by"], row["unseen"])


def skewness_makes(p: float, skewed_by: float, unseen: float) -> bool:
    """Whether a claim of one side with this p-value is not shown without the skewness that may
    speak for it."""
    shown, needed = (-normal_quantile(max(one, 1e-300)) for one in (p, math.exp(-unseen)))
    return without_lean(shown, skewed_by * MOST_SKEWED / 6) < needed


def _denominator_differs(p_denominator: Any) -> Any:
    """The treatment moves the denominator of a ratio: more per unit may be the same of fewer."""
    return adjust(p_denominator, "holm") < UNEQUAL


def _missing_lists(effect: Any, effect_both: Any, withheld_both: Any) -> Any:
    """A model lacks lists, and the effect is another one where both models have lists."""
    known = (effect_both != "") | ~np.isin(withheld_both, ["", *NOT_MEASURED_ALIKE])
    return known & ~np.isin(effect, ["ranks_higher", "ranks_lower"]) & (effect_both != effect)


def _short_lists(short_baseline: Any, short_model: Any, effect: Any) -> Any:
    """Many lists of the model that is behind are shorter than those of the other."""
    more = short_model - short_baseline
    of_model = (more >= MANY_SHORT) & ~np.isin(effect, ["better", "higher", "ranks_higher"])
    of_base = (more <= -MANY_SHORT) & ~np.isin(effect, ["worse", "lower", "ranks_lower"])
    return of_model | of_base


_EXPERIMENT = "variants trend segments ratio"
# How two models have to be evaluated, by the caution where they were not.
_EVALUATED = {
    "other_truth": "on the same truth",
    "other_population": "for the same population",
    "other_definition": "by the same definition",
    "other_options": "with the same options",
    "other_side_table": "with the same side tables",
    "other_order": "with an order of the same kind: one has the order of its rows",
}
_OF_MEANS = ("better", "worse", "higher", "lower")
_OF_WEIGHTED_MEANS = (*_OF_MEANS, "equivalent", "both", "human_alone", "fades", "grows", "turns")
_ALL = (
    Caution(
        "sample_ratio",
        "the users compared do not fit the planned shares of the variants",
        "invalid: sample ratio",
        _EXPERIMENT,
    ),
    Caution(
        "unbalanced_teams",
        "the teams did not get the first place equally often, so that lists or clicks are lost",
        "invalid: teams out of balance",
        "models",
    ),
    Caution(
        "not_tested",
        "there are too few users, groups or periods for a test",
        "not tested",
        "ratio aa segments trend",
        warns=False,
    ),
    Caution(
        "other_direction",
        "the comparison takes the other direction for better than the result",
        "check: the comparison takes the other direction for better",
        "models",
    ),
    Caution(
        "labels_disagree",
        "the means of both labels and their difference disagree",
        "check: the means of both labels and their difference disagree",
        "models",
    ),
    Caution(
        "other_numbers",
        "the comparison has other means than the result",
        "check: the comparison has other means than the result: other lists, weights or folds",
        "models",
    ),
    Caution(
        "other_correction",
        "the p-value was adjusted after the comparison, and says another thing; correction= and "
        "family= of the comparison make its interval and verdict, too",
        "check: adjusted in another way",
        "variants models segments",
    ),
    *(
        Caution(code, f"the two were not evaluated {what}", "check: {unlike}", "models")
        for code, what in _EVALUATED.items()
    ),
    Caution(
        "few_lists",
        "fewer than 30 users are compared, so that there is no verdict",
        "check: too few lists",
        "models segments",
        fires=lambda n_users, wins: n_users < FEW_LISTS,
    ),
    Caution(
        "huge_values",
        "the values are too large to compute with",
        "check: huge values",
        "variants models trend segments",
    ),
    Caution(
        "unequal_missing",
        "the metric is null for different shares of the arms",
        "check: unequal missing values",
        _EXPERIMENT,
    ),
    Caution(
        "shares_change",
        "the shares of the variants change over time, so that periods are compared",
        "check: shares of the variants change",
        _EXPERIMENT,
    ),
    Caution(
        "users_in_both",
        "users of both arms were left out, which are more of one arm than of the other; "
        'join_experiment(multi_variant="first") counts each in the variant seen first',
        "check: users in both arms",
        _EXPERIMENT,
    ),
    Caution(
        "surplus",
        "an arm has more of its users than the other (p below 0.05), and without as many of its "
        "lightest or heaviest the effect is not shown",
        "check: {detail}",
        _EXPERIMENT,
    ),
    Caution(
        "strata_moved",
        "users of one arm are in strata of a higher metric, so that the treatment may move users "
        "between them; time_col= names the time where the strata are periods of it",
        "check: strata differ in worth",
        _EXPERIMENT,
    ),
    Caution(
        "covariate_after",
        "the covariates were measured after the assignment or exposure",
        "check: covariate after exposure",
        _EXPERIMENT,
    ),
    Caution(
        "covariate_differs",
        "a covariate or weight differs between the arms, so that it was not fixed before",
        "check: covariate differs",
        _EXPERIMENT,
        only=lambda row: not row.get("balance_p", 0.0) >= HEALTH_ALPHA,
    ),
    Caution(
        "short_lists",
        "lists of one model end before the cut-off where those of the other reach it",
        "check: {unlike}",
        "models",
        fires=_short_lists,
    ),
    Caution(
        "few_lists_differ",
        "fewer than 20 users differ, so that there is no verdict",
        "check: too few lists differ",
        "models segments",
        fires=lambda wins, losses: (wins + losses > 0) & (wins + losses < FEW_UNITS),
        beneath="few_lists",
    ),
    Caution(
        "zero_denominator",
        "the denominators of an arm sum to 0",
        "check: zero denominator",
        _EXPERIMENT,
    ),
    Caution(
        "too_few_users",
        "fewer than two users of an arm, or of both models, have a value",
        "check: tiny arms",
        _EXPERIMENT,
    ),
    Caution(
        "tiny",
        "an arm has fewer than 20 users with something to count",
        "check: tiny arms",
        _EXPERIMENT,
        fires=lambda n_counted: n_counted < TINY,
        beneath="too_few_users",
    ),
    Caution("constant_arm", "one arm has a single value", "check: constant arm", _EXPERIMENT),
    Caution(
        "different_lists",
        "only one of the models has a value for some lists, and the difference is that of the "
        "others",
        "check: values for different lists",
        "variants models trend segments",
    ),
    Caution(
        "few_users_carry",
        "a few users have most of the weight, so that there is no verdict",
        "check: few users carry it",
        "variants models trend segments",
        fires=lambda evenness: evenness < 1,
    ),
    Caution(
        "repeated_units",
        "a column that repeats looks like users, whose lists are not independent; unit_col= names "
        "it",
        "check: repeated units",
        f"{_EXPERIMENT} aa",
    ),
    Caution(
        "few_units",
        "the ten farthest units decide the sign or the verdict",
        "check: few units decide",
        _EXPERIMENT,
    ),
    Caution(
        "denominator_differs",
        "the mean denominator of the ratio differs between the arms",
        "check: denominator differs",
        _EXPERIMENT,
        fires=_denominator_differs,
    ),
    Caution(
        "parts_unclear",
        "a ratio differs, its numerator per user shows no such difference, and the data do not "
        "exclude that its denominator has moved",
        "check: {detail}",
        _EXPERIMENT,
    ),
    Caution(
        "skewed",
        "a few large differences decide, so that the test errs more often than it says",
        "check: skewed",
        f"{_EXPERIMENT} models",
        fires=lambda skewed_by: skewed_by > 1,
        only=_skew_counts,
    ),
    Caution(
        "few_values",
        "fewer rows lie beyond the quantile than an interval needs, so that it is open",
        "check: fewer rows lie beyond {metric} than an interval needs",
        _EXPERIMENT,
        only=lambda row: not row["reject"],
    ),
    Caution(
        "gap",
        "the quantile lies between two groups of values, so that its estimate jumps",
        "check: {metric} lies between two groups of values",
        "segments",
        adds="; {metric} lies between two groups of values ({gap_low:4} to {gap_high:4}), "
        "compare the share above {gap_low:4}",
    ),
    Caution(
        "ties",
        "the quantile stands on steps, so that a share says more",
        "check: {metric} stands on steps",
        "segments",
        adds="; {metric} stands on steps, compare the share at or below {mean_control:4}",
    ),
    Caution(
        "not_random",
        "the lists that people judged are no random sample of all, so that there is no verdict",
        "check: lists of people not random",
        "variants models segments labels",
    ),
    Caution(
        "unseen_units",
        "fewer users than may be missing by chance (3, or more for one of several tests), at the "
        "worst value of the metric, would turn the verdict",
        "check: {turned_by:2} {units} who {turned_to} all would turn it",
        "variants models trend segments",
        fires=lambda turned_by, unseen: turned_by < unseen,
    ),
    Caution(
        "few_human",
        "people judged lists of fewer than 30 users, so that there is no verdict",
        "cannot tell: people judged lists of fewer than 30 users",
        "labels",
    ),
    Caution(
        "undefined_differs",
        "people judged lists that have a value under one kind of labels alone",
        "cannot tell: undefined under one kind of labels",
        "labels",
    ),
    Caution(
        "few_runs",
        "the history has fewer than 22 runs",
        "cannot tell: fewer than 22 nights",
        "history",
    ),
    Caution(
        "definition_changed",
        "some nights were evaluated in another way",
        "cannot tell: {unlike}",
        "history",
    ),
    Caution(
        "not_independent",
        "runs are alike from one to the next, from week to week, or in slow waves",
        "cannot tell: nights are alike {alike}",
        "history",
    ),
    Caution(
        "early",
        "a change was found that a slow wave of the past could do, so that more nights are needed",
        "early: {way} since {changed:%Y-%m-%d} (found {found:%Y-%m-%d}); a slow wave of the past "
        "could do this, so wait for more nights",
        "history",
    ),
    Caution(
        "line_fits",
        "a line fits better than a step",
        adds=" by {per_month:+3} a month; a line fits better than a step",
    ),
    Caution(
        "back",
        "the latest runs do not differ from those before the change",
        adds=" now; was {way} from {changed:%Y-%m-%d} to {until:%Y-%m-%d}",
    ),
    Caution(
        "outlier_night",
        "a run is far from the others of its day of the week",
        adds="; outlier night {outliers} of its day of the week",
        warns=False,
    ),
    Caution(
        "few_tests",
        "there are fewer than 10 experiments",
        "cannot tell: fewer than 10 experiments",
        "proxy",
    ),
    Caution(
        "noise",
        "the sampling noise is above the signal of the experiments",
        "cannot tell: more noise than signal",
        "proxy",
    ),
    Caution(
        "zero_variance",
        "all users have the same difference, so that there is nothing to test",
        "check: zero variance",
        "variants models trend segments",
        only=_apart,
    ),
    Caution("too_few_units", "fewer units have a value than an interval needs"),
    Caution(
        "sequential_refused", "the data are too skewed for an interval that holds at every look"
    ),
    Caution(
        "few_clusters",
        "an arm has fewer than 20 clusters",
        fires=lambda n_clusters: n_clusters < TINY,
    ),
    Caution("shared_clusters", "a cluster has users in both arms"),
    Caution(
        "strata_differ_in_worth",
        "users of one arm may be in strata of a higher metric (p below 0.01)",
    ),
    Caution("exposure_differs", "an arm has more of its users than the other (p below 0.01)"),
    Caution("strata_differ", "the shares of the variants differ between the strata"),
    Caution(
        "unequal_covariate_missing", "a covariate is missing more often in one arm, and is not used"
    ),
    Caution("no_covariate", "the denominators of a covariate are all 0 in an arm"),
    Caution(
        "mostly_zero_denominator",
        "95 % or more of the users of an arm have nothing in the denominator",
        fires=lambda zeros: zeros >= MOSTLY_ZERO,
    ),
    Caution("missing_not_checked", "the moments do not say how many users have no value"),
    Caution(
        "skewness_not_checked",
        "the moments do not say how skewed the metric is",
        fires=lambda skewed_by: np.isnan(skewed_by),
    ),
    Caution(
        "wilcoxon_not_mean",
        "the Wilcoxon test is not about the mean, which stands beside it",
        fires=lambda test, wins: test == "wilcoxon",
    ),
    Caution(
        "mostly_zero",
        "95 % or more of the users get the same from both models, so that few users decide",
        fires=lambda ties, n_users, se: (ties >= MOSTLY_ZERO * n_users) & (se > 0),
    ),
    Caution(
        "few_differ",
        "fewer than 50 users differ, so that the test errs more often than it says",
        fires=lambda wins, losses, se: (wins + losses < FEW_DIFFER) & (se > 0),
        beneath="few_lists few_lists_differ",
    ),
    Caution(
        "within_margin",
        "the difference is shown, and is within the margin",
        adds=", within the margin",
        warns=False,
    ),
    Caution(
        "no_bounds",
        "no bounds of the metric are known, and the verdict says how far off a few more users "
        "would turn it",
        adds=", unless {unseen:1} in {n_users:,} {units} differ by {turning_value:+3} or more",
        warns=False,
        fires=lambda turning_value, unseen, n_users: ~np.isnan(turning_value),
    ),
    Caution(
        "heavier_unseen",
        "users or clusters have unequal weights or numbers of lists, and heavier ones than those "
        "seen could turn what is said",
        adds=", for {holds_for}",
        warns=False,
        fires=lambda holds_for, effect: (holds_for != "") & np.isin(effect, _OF_WEIGHTED_MEANS),
    ),
    Caution(
        "unbounded",
        "a bound of the metric is not known, and the verdict says which values of so few more "
        "units as may be missing by chance would turn it",
        adds=", unless {unless}",
        warns=False,
    ),
    Caution(
        "missing_lists",
        "a model has no recommendations for some lists of the other, where it counts as 0",
        adds=", but {both} where both have lists",
        fires=_missing_lists,
    ),
    Caution(
        "covariate_not_timed",
        "nothing says when the covariates were measured, which may have been after the assignment; "
        "covariate_time_col= does",
        adds=" (covariate time not checked)",
        warns=False,
    ),
    Caution(
        "ratio_not_checked",
        "no planned shares were given, or too few users for their test, so that the sample ratio "
        "was not checked",
        adds=" (sample ratio not checked)",
        warns=False,
    ),
)
CAUTIONS: dict[str, Caution] = {one.code: one for one in _ALL}
FIRING = {
    code: (one.fires, [*signature(one.fires).parameters])
    for code, one in CAUTIONS.items()
    if one.fires
}
RANK = {code: rank for rank, code in enumerate(CAUTIONS)}
# The two models were not measured alike, so that not even lists that both have compare.
NOT_MEASURED_ALIKE = (*_EVALUATED, "short_lists")
# The variants are not alike, or were not assigned alike: an experiment with one of them is invalid.
UNLIKE = (
    "sample_ratio",
    "unbalanced_teams",
    "shares_change",
    "covariate_after",
    "covariate_differs",
)

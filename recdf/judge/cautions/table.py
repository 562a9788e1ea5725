"""The one table of cautions: what they are called, what they say, which verdicts they withhold.

Contract: the order of the rows is their seriousness; the first one that withholds decides what a
verdict says. A caution with `fires` looks at the columns of a table of comparisons, and stands
aside where one of `needs` is not there. The others are met by the arithmetic, which puts their
code into `remarks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pandas as pd

from . import HEALTH_ALPHA
from .conditions import (
    denominator_differs,
    few_differ,
    few_lists,
    few_lists_differ,
    missing_lists,
    mostly_zero,
    no_bounds,
    short_lists,
    unseen_units,
    wilcoxon_not_mean,
)


class Caution(NamedTuple):
    """A row of the table.

    code : its name in `withheld` and `remarks` · words : the verdict that it withholds ("" if it
    never does), where {column} is a number of the row · sentence : what it means to a reader ·
    withholds : the kinds of verdicts (`verdict.EFFECTS`) that it withholds · adds : what it puts at
    the end of a verdict that stands · warns : it is a warning (`--fail-on warning`), and not only a
    note · needs : the columns that `fires` reads · fires : the rows of a table where it holds ·
    only : the rows where it withholds, if not all
    """

    code: str
    words: str
    sentence: str
    withholds: str = ""
    adds: str = ""
    warns: bool = True
    needs: str = ""
    fires: Callable[[pd.DataFrame], pd.Series] | None = None
    only: Callable[[Mapping[Any, Any]], bool] | None = None

    @property
    def topic(self) -> str:
        """What it is about in few words, for a count of many rows."""
        words = self.words.partition("{")[0].removeprefix("check: ")
        return words.strip() or self.code.replace("_", " ")

    def withheld(self, kind: str, row: Mapping[Any, Any]) -> bool:
        """Whether it withholds a verdict of this kind on a row."""
        return kind in self.withholds.split() and (self.only is None or self.only(row))


def _apart(row: Mapping[Any, Any]) -> bool:
    """Whether arms, or models, without any spread differ."""
    return bool(row["wins"] + row["losses"] > 0 if "wins" in row else abs(row["diff"]) > 0)


_EXPERIMENT = "variants trend segments ratio"
_ALL = (
    Caution(
        "sample_ratio",
        "invalid: sample ratio",
        "the users compared do not fit the planned shares of the variants",
        _EXPERIMENT,
    ),
    Caution(
        "unbalanced_teams",
        "invalid: teams out of balance",
        "the teams did not get the first place equally often, so that lists or clicks are lost",
        "models",
    ),
    Caution(
        "not_tested",
        "not tested",
        "too few users are expected for a test",
        "ratio aa",
        warns=False,
    ),
    Caution(
        "other_direction",
        "check: the comparison takes the other direction for better",
        "the comparison takes the other direction for better than the result",
        "models",
    ),
    Caution(
        "labels_disagree",
        "check: the means of both labels and their difference disagree",
        "the means of both labels and their difference disagree",
        "models",
    ),
    Caution(
        "other_numbers",
        "check: the comparison has other means than the result: other lists, weights or folds",
        "the comparison has other means than the result",
        "models",
    ),
    *(
        Caution(code, "check: {unlike}", f"the two were not evaluated {what}", "models")
        for code, what in (
            ("other_truth", "on the same truth"),
            ("other_population", "for the same population"),
            ("other_definition", "by the same definition"),
            ("other_options", "with the same options"),
            ("other_side_table", "with the same side tables"),
            ("other_order", "with an order of the same kind: one has the order of its rows"),
        )
    ),
    Caution(
        "few_lists",
        "check: too few lists",
        "fewer than 30 users are compared, so that there is no verdict",
        "models segments",
        needs="n_users wins",
        fires=few_lists,
    ),
    Caution(
        "huge_values",
        "check: huge values",
        "the values are too large to compute with",
        "variants models segments",
    ),
    Caution(
        "unequal_missing",
        "check: unequal missing values",
        "the metric is null for different shares of the arms",
        _EXPERIMENT,
    ),
    Caution(
        "shares_change",
        "check: shares of the variants change",
        "the shares of the variants change over time, so that periods are compared",
        _EXPERIMENT,
    ),
    Caution(
        "users_in_both",
        "check: users in both arms",
        "users of both arms were left out, which are more of one arm than of the other; "
        'join_experiment(multi_variant="first") counts each in the variant seen first',
        _EXPERIMENT,
    ),
    Caution(
        "surplus",
        "check: {detail}",
        "an arm has more of its users than the other (p below 0.05), and without as many of its "
        "lightest or heaviest the effect is not shown",
        "variants segments",
    ),
    Caution(
        "strata_moved",
        "check: strata differ in worth",
        "users of one arm are in strata of a higher metric, so that the treatment may move users "
        "between them; time_col= names the time where the strata are periods of it",
        "variants segments",
    ),
    Caution(
        "covariate_after",
        "check: covariate after exposure",
        "the covariates were measured after the assignment or exposure",
        _EXPERIMENT,
    ),
    Caution(
        "covariate_differs",
        "check: covariate differs",
        "a covariate or weight differs between the arms, so that it was not fixed before",
        _EXPERIMENT,
        only=lambda row: not row.get("balance_p", 0.0) >= HEALTH_ALPHA,
    ),
    Caution(
        "short_lists",
        "check: {unlike}",
        "lists of one model end before the cut-off where those of the other reach it",
        "models",
        needs="short_baseline short_model effect",
        fires=short_lists,
    ),
    Caution(
        "few_lists_differ",
        "check: too few lists differ",
        "fewer than 20 users differ, so that there is no verdict",
        "models segments",
        needs="wins losses",
        fires=few_lists_differ,
    ),
    Caution(
        "zero_denominator",
        "check: zero denominator",
        "the denominators of an arm sum to 0",
        "variants segments",
    ),
    Caution(
        "too_few_users",
        "check: tiny arms",
        "fewer than two users of an arm, or of both models, have a value",
        "variants segments",
    ),
    Caution(
        "tiny",
        "check: tiny arms",
        "an arm has fewer than 20 users with something to count",
        "variants trend segments",
    ),
    Caution(
        "constant_arm", "check: constant arm", "one arm has a single value", "variants segments"
    ),
    Caution(
        "different_lists",
        "check: values for different lists",
        "only one of the models has a value for some lists, and the difference is that of the "
        "others",
        "variants models segments",
    ),
    Caution(
        "few_users_carry",
        "check: few users carry it",
        "a few users have most of the weight, so that there is no verdict",
        "variants models segments",
    ),
    Caution(
        "repeated_units",
        "check: repeated units",
        "a column that repeats looks like users, whose lists are not independent; unit_col= names "
        "it",
        "variants segments",
    ),
    Caution(
        "few_units",
        "check: few units decide",
        "the ten farthest units decide the sign or the verdict",
        "variants segments",
    ),
    Caution(
        "denominator_differs",
        "check: denominator differs",
        "the mean denominator of the ratio differs between the arms",
        "variants segments",
        needs="p_denominator",
        fires=denominator_differs,
    ),
    Caution(
        "parts_unclear",
        "check: {detail}",
        "a ratio differs, its numerator per user shows no such difference, and the data do not "
        "exclude that its denominator has moved",
        "variants segments",
    ),
    Caution(
        "skewed",
        "check: skewed",
        "a few large differences decide, so that the test errs more often than it says",
        "variants segments",
    ),
    Caution(
        "few_values",
        "check: fewer rows lie beyond {metric} than an interval needs",
        "fewer rows lie beyond the quantile than an interval needs, so that it is open",
        "variants segments",
        only=lambda row: not row["reject"],
    ),
    Caution(
        "gap",
        "",
        "the quantile lies between two groups of values, so that its estimate jumps",
        adds="; {metric} lies between two groups of values ({gap_low:4} to {gap_high:4}), "
        "compare the share above {gap_low:4}",
    ),
    Caution(
        "ties",
        "",
        "the quantile stands on steps, so that a share says more",
        adds="; {metric} stands on steps, compare the share at or below {mean_control:4}",
    ),
    Caution(
        "not_random",
        "check: lists of people not random",
        "the lists that people judged are no random sample of all, so that there is no verdict",
        "variants models segments labels",
    ),
    Caution(
        "unseen_units",
        "check: {turned_by:2} users who {turned_to} all would turn it",
        "fewer than three more users at the worst value of the metric would turn the verdict, and "
        "so few may be missing by chance",
        "variants models segments",
        needs="turned_by unseen",
        fires=unseen_units,
    ),
    Caution(
        "few_human",
        "cannot tell: people judged lists of fewer than 30 users",
        "people judged lists of fewer than 30 users, so that there is no verdict",
        "labels",
    ),
    Caution(
        "undefined_differs",
        "cannot tell: undefined under one kind of labels",
        "people judged lists that have a value under one kind of labels alone",
        "labels",
    ),
    Caution(
        "few_runs",
        "cannot tell: fewer than 22 nights",
        "the history has fewer than 22 runs",
        "history",
    ),
    Caution(
        "definition_changed",
        "cannot tell: {unlike}",
        "some nights were evaluated in another way",
        "history",
    ),
    Caution(
        "not_independent",
        "cannot tell: nights are alike {alike}",
        "runs are alike from one to the next, from week to week, or in slow waves",
        "history",
    ),
    Caution(
        "early",
        "early: {way} since {changed:%Y-%m-%d} (found {found:%Y-%m-%d}); a slow wave of the past "
        "could do this, so wait for more nights",
        "a change was found that a slow wave of the past could do, so that more nights are needed",
        "history",
    ),
    Caution(
        "line_fits",
        "",
        "a line fits better than a step",
        adds=" by {per_month:+3} a month; a line fits better than a step",
    ),
    Caution(
        "back",
        "",
        "the latest runs do not differ from those before the change",
        adds=" now; was {way} from {changed:%Y-%m-%d} to {until:%Y-%m-%d}",
    ),
    Caution(
        "outlier_night",
        "",
        "a run is far from the others of its day of the week",
        adds="; outlier night {outliers} of its day of the week",
        warns=False,
    ),
    Caution(
        "few_tests",
        "cannot tell: fewer than 10 experiments",
        "there are fewer than 10 experiments",
        "proxy",
    ),
    Caution(
        "noise",
        "cannot tell: more noise than signal",
        "the sampling noise is above the signal of the experiments",
        "proxy",
    ),
    Caution(
        "zero_variance",
        "check: zero variance",
        "all users have the same difference, so that there is nothing to test",
        "variants models trend segments",
        only=_apart,
    ),
    Caution("too_few_units", "", "fewer units have a value than an interval needs"),
    Caution(
        "sequential_refused", "", "the data are too skewed for an interval that holds at every look"
    ),
    Caution("few_clusters", "", "an arm has fewer than 20 clusters"),
    Caution("shared_clusters", "", "a cluster has users in both arms"),
    Caution(
        "strata_differ_in_worth",
        "",
        "users of one arm may be in strata of a higher metric (p below 0.01)",
    ),
    Caution(
        "exposure_differs",
        "",
        "an arm has more of its users than the other (p below 0.01)",
    ),
    Caution("strata_differ", "", "the shares of the variants differ between the strata"),
    Caution(
        "unequal_covariate_missing",
        "",
        "a covariate is missing more often in one arm, and is not used",
    ),
    Caution("no_covariate", "", "the denominators of a covariate are all 0 in an arm"),
    Caution(
        "mostly_zero_denominator",
        "",
        "95 % or more of the users of an arm have nothing in the denominator",
    ),
    Caution("missing_not_checked", "", "the moments do not say how many users have no value"),
    Caution("skewness_not_checked", "", "the moments do not say how skewed the metric is"),
    Caution(
        "wilcoxon_not_mean",
        "",
        "the Wilcoxon test is not about the mean, which stands beside it",
        needs="test wins",
        fires=wilcoxon_not_mean,
    ),
    Caution(
        "mostly_zero",
        "",
        "95 % or more of the users get the same from both models, so that few users decide",
        needs="ties n_users se",
        fires=mostly_zero,
    ),
    Caution(
        "few_differ",
        "",
        "fewer than 50 users differ, so that the test errs more often than it says",
        needs="wins losses se",
        fires=few_differ,
    ),
    Caution(
        "within_margin",
        "",
        "the difference is shown, and is within the margin",
        adds=", within the margin",
        warns=False,
    ),
    Caution(
        "no_bounds",
        "",
        "the metric has no bounds, and the verdict says how far off three more users would turn it",
        adds=", unless {unseen:1} in {n_users:,} users differ by {turning_value:+3} or more",
        warns=False,
        needs="turning_value unseen n_users",
        fires=no_bounds,
    ),
    Caution(
        "missing_lists",
        "",
        "a model has no recommendations for some lists of the other, where it counts as 0",
        adds=", but {both} where both have lists",
        needs="effect effect_both withheld_both",
        fires=missing_lists,
    ),
    Caution(
        "covariate_not_timed",
        "",
        "nothing says when the covariates were measured, which may have been after the assignment; "
        "covariate_time_col= does",
        adds=" (covariate time not checked)",
        warns=False,
    ),
    Caution(
        "ratio_not_checked",
        "",
        "no planned shares were given, so that the sample ratio was not checked",
        adds=" (sample ratio not checked)",
        warns=False,
    ),
)
CAUTIONS: dict[str, Caution] = {one.code: one for one in _ALL}
RANK = {code: rank for rank, code in enumerate(CAUTIONS)}
# The variants are not alike, or were not assigned alike: an experiment with one of them is invalid.
UNLIKE = (
    "sample_ratio",
    "unbalanced_teams",
    "shares_change",
    "covariate_after",
    "covariate_differs",
)

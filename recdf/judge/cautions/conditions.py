"""Where each caution holds: one function each, which reads columns of a table of comparisons.

A few units that the sample lacks could turn what is said of a mean of bounded values
(`unseen_units`). A verdict stands only if three more units (K = ln(1/α), 3.0 at 0.05), each at the
worst bound of the metric, would not turn it. Twelve populations with rare losses and no difference,
n = 30 to 3,000, had a verdict in up to 30 % of runs before, and in 6.4 % with this rule. It takes 4
points of power at n = 100 from a true difference of 2.8 standard errors, and none from n = 200 on.
K = 2.5 left 8.8 % in strata, and one unit at the doubled level costs 24 points at n = 100.

A significant sum of signed ranks W has no such bound to fear: the largest rank of m units that
differ is about m, and W is above 1.96·√(m(m + 1)(2m + 1)/6), which three more units do not reach
where 20 or more differ. So a verdict about ranks has no `turned_by`.

Two arms without strata lack the same units by chance, so that their difference errs to neither
side; in a thin stratum one unit weighs more than it shows, and there the rule is asked. Zeros and
ones in strata have a test of their own (`effects.stratified_shares`).

These say nothing that three more units could turn, or ask in another way. Interleaving and each
segment are comparisons of models or variants, and segments in doubt do not count in
`segment_effects`. Each period of `effect_over_time` is asked, and its trend is a slope of sums
without bounds. `aa_test` counts splits of the same units. `proxy_metrics` has experiments as its
units, whose effects have no bounds (`noise`). Off-policy estimates say how far they may be trusted:
`few_rewards` asks for 100 effective rewards. Labels have an interval that allows for one more list.
"""

import pandas as pd

from ...stats.many_tests import adjust
from . import UNEQUAL

# Users for any verdict about models, and those with a difference. Up to 8 % of equal models get a
# verdict where |γ|/√n is at most .14 and 50 units differ.
FEW_LISTS, FEW_UNITS, FEW_DIFFER = 30, 20, 50
# Fewer units than this in an arm, or fewer clusters, are named in a remark.
TINY = 20
MOSTLY_ZERO = 0.95  # share of users with the same from both models, or without a denominator
# A model whose lists end before the cut-off is held back by their length and not by their order.
# Where it is the better one all the same, or as many lists of both are short, nothing is in doubt.
MANY_SHORT = 0.2


def denominator_differs(variants: pd.DataFrame) -> pd.Series:
    """The treatment moves the denominator of a ratio: more per unit may be the same of fewer."""
    p = adjust(variants["p_denominator"].to_numpy(), "holm")
    return pd.Series(p < UNEQUAL, variants.index)


def few_clusters(variants: pd.DataFrame) -> pd.Series:
    """Clusters of an arm, counted as equal ones, that are too few."""
    return variants["n_clusters"] < TINY


def few_differ(pairs: pd.DataFrame) -> pd.Series:
    """So few users with a difference that the test errs more often than it says."""
    return (pairs["wins"] + pairs["losses"] < FEW_DIFFER) & (pairs["se"] > 0)


def few_lists(pairs: pd.DataFrame) -> pd.Series:
    """Too few users for any verdict about models."""
    return pairs["n_users"] < FEW_LISTS


def few_lists_differ(pairs: pd.DataFrame) -> pd.Series:
    """Too few users with a difference for any verdict about models."""
    return (pairs["wins"] + pairs["losses"]).between(1, FEW_UNITS - 1)


def few_users_carry(compared: pd.DataFrame) -> pd.Series:
    """The units are worth fewer equal ones than the test needs."""
    return compared["evenness"] < 1


def missing_lists(pairs: pd.DataFrame) -> pd.Series:
    """A model lacks lists, and the effect is another one where both models have lists."""
    known = (pairs["effect_both"] != "") | (pairs["withheld_both"] != "")
    of_means = ~pairs["effect"].isin(["ranks_higher", "ranks_lower"])
    return known & of_means & (pairs["effect_both"] != pairs["effect"])


def mostly_zero(pairs: pd.DataFrame) -> pd.Series:
    """Nearly all users get the same from both models."""
    return (pairs["ties"] >= MOSTLY_ZERO * pairs["n_users"]) & (pairs["se"] > 0)


def mostly_zero_denominator(variants: pd.DataFrame) -> pd.Series:
    """Nearly all users of an arm have nothing in the denominator."""
    return variants["zeros"] >= MOSTLY_ZERO


def skewed(compared: pd.DataFrame) -> pd.Series:
    """The skewness is more than the test bears."""
    return compared["skewed_by"] > 1


def skewness_not_checked(variants: pd.DataFrame) -> pd.Series:
    """Nobody knows the skewness, and it could matter."""
    return variants["skewed_by"].isna()


def tiny(compared: pd.DataFrame) -> pd.Series:
    """Too few users of an arm have something to count."""
    return compared["n_counted"] < TINY


def short_lists(pairs: pd.DataFrame) -> pd.Series:
    """Many lists of the model that is behind are shorter than those of the other."""
    more = pairs["short_model"] - pairs["short_baseline"]
    of_model = (more >= MANY_SHORT) & ~pairs["effect"].isin(["better", "higher", "ranks_higher"])
    of_base = (more <= -MANY_SHORT) & ~pairs["effect"].isin(["worse", "lower", "ranks_lower"])
    return of_model | of_base


def unseen_units(compared: pd.DataFrame) -> pd.Series:
    """Three more units at the worst bound would turn the verdict."""
    return compared["turned_by"] < compared["unseen"]


def no_bounds(compared: pd.DataFrame) -> pd.Series:
    """A metric without bounds has a value that some unseen units would have to take."""
    return compared["turning_value"].notna()


def wilcoxon_not_mean(pairs: pd.DataFrame) -> pd.Series:
    """The test is about ranks, and the difference beside it is one of means."""
    return pairs["test"] == "wilcoxon"

"""A few units that the sample lacks could turn what is said of a mean of bounded values.

A verdict stands only if three more units (K = ln(1/α), 3.0 at 0.05), each at the worst bound of the
metric, would not turn it. Twelve populations with rare losses and no difference, n = 30 to 3,000,
had a verdict in up to 30 % of runs before, and in 6.4 % with this rule. It takes 4 points of power
at n = 100 from a true difference of 2.8 standard errors, and none from n = 200 on. K = 2.5 left 8.8
% in strata, and one unit at the doubled level costs 24 points at n = 100.

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


def unseen_units(compared: pd.DataFrame) -> pd.Series:
    return compared["turned_by"] < compared["unseen"]


def no_bounds(compared: pd.DataFrame) -> pd.Series:
    return compared["turning_value"].notna()

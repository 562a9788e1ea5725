"""The treatment moves the denominator of a ratio: more per unit may be the same of fewer."""

import pandas as pd

from ...stats.many_tests import adjust
from . import UNEQUAL


def denominator_differs(variants: pd.DataFrame) -> pd.Series:
    p = adjust(variants["p_denominator"].to_numpy(), "holm")
    return pd.Series(p < UNEQUAL, variants.index)


FEW_DIFFER = 50


def few_differ(pairs: pd.DataFrame) -> pd.Series:
    return (pairs["wins"] + pairs["losses"] < FEW_DIFFER) & (pairs["se"] > 0)


FEW_LISTS = 30


def few_lists(pairs: pd.DataFrame) -> pd.Series:
    return pairs["n_users"] < FEW_LISTS


FEW_UNITS = 20


def few_lists_differ(pairs: pd.DataFrame) -> pd.Series:
    return (pairs["wins"] + pairs["losses"]).between(1, FEW_UNITS - 1)


def missing_lists(pairs: pd.DataFrame) -> pd.Series:
    known = (pairs["effect_both"] != "") | (pairs["withheld_both"] != "")
    of_means = ~pairs["effect"].isin(["ranks_higher", "ranks_lower"])
    return known & of_means & (pairs["effect_both"] != pairs["effect"])


MOSTLY_ZERO = 0.95


def mostly_zero(pairs: pd.DataFrame) -> pd.Series:
    return (pairs["ties"] >= MOSTLY_ZERO * pairs["n_users"]) & (pairs["se"] > 0)


# A model whose lists end before the cut-off is held back by their length and not by their order.
# Where it is the better one all the same, or as many lists of both are short, nothing is in doubt.
MANY_SHORT = 0.2


def short_lists(pairs: pd.DataFrame) -> pd.Series:
    more = pairs["short_model"] - pairs["short_baseline"]
    of_model = (more >= MANY_SHORT) & ~pairs["effect"].isin(["better", "higher", "ranks_higher"])
    of_base = (more <= -MANY_SHORT) & ~pairs["effect"].isin(["worse", "lower", "ranks_lower"])
    return of_model | of_base


def unseen_units(compared: pd.DataFrame) -> pd.Series:
    return compared["turned_by"] < compared["unseen"]


def no_bounds(compared: pd.DataFrame) -> pd.Series:
    return compared["turning_value"].notna()


def wilcoxon_not_mean(pairs: pd.DataFrame) -> pd.Series:
    return pairs["test"] == "wilcoxon"

"""A model lacks lists, and the effect is another one where both models have lists."""

import pandas as pd


def missing_lists(pairs: pd.DataFrame) -> pd.Series:
    known = (pairs["effect_both"] != "") | (pairs["withheld_both"] != "")
    of_means = ~pairs["effect"].isin(["ranks_higher", "ranks_lower"])
    return known & of_means & (pairs["effect_both"] != pairs["effect"])

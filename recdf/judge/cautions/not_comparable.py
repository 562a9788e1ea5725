"""Two results that do not measure the same: another truth, population, definition, order or length
of lists. `judge.comparability` finds the facts; these rules read them from columns of a pair."""

import pandas as pd

# A model whose lists end before the cut-off is held back by their length and not by their order.
# Where it is the better one all the same, or as many lists of both are short, nothing is in doubt.
MANY_SHORT = 0.2


def short_lists(pairs: pd.DataFrame) -> pd.Series:
    more = pairs["short_model"] - pairs["short_baseline"]
    of_model = (more >= MANY_SHORT) & ~pairs["effect"].isin(["better", "higher", "ranks_higher"])
    of_base = (more <= -MANY_SHORT) & ~pairs["effect"].isin(["worse", "lower", "ranks_lower"])
    return of_model | of_base

"""So few users with a difference that the test errs more often than it says.

Up to 8 % of equal models get a verdict where |γ|/√n is at most .14 and 50 units differ.
"""

import pandas as pd

FEW_DIFFER = 50


def few_differ(pairs: pd.DataFrame) -> pd.Series:
    return (pairs["wins"] + pairs["losses"] < FEW_DIFFER) & (pairs["se"] > 0)

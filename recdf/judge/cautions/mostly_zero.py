"""Nearly all users get the same from both models."""

import pandas as pd

MOSTLY_ZERO = 0.95


def mostly_zero(pairs: pd.DataFrame) -> pd.Series:
    return (pairs["ties"] >= MOSTLY_ZERO * pairs["n_users"]) & (pairs["se"] > 0)

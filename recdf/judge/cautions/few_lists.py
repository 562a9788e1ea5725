"""Too few users for any verdict about models."""

import pandas as pd

FEW_LISTS = 30


def few_lists(pairs: pd.DataFrame) -> pd.Series:
    return pairs["n_users"] < FEW_LISTS

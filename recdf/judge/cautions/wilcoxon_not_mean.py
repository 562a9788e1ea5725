"""The test is about ranks, and the difference beside it is one of means."""

import pandas as pd


def wilcoxon_not_mean(pairs: pd.DataFrame) -> pd.Series:
    return pairs["test"] == "wilcoxon"

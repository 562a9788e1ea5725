"""The treatment moves the denominator of a ratio: more per unit may be the same of fewer."""

import pandas as pd

from ...stats.many_tests import adjust
from . import UNEQUAL


def denominator_differs(variants: pd.DataFrame) -> pd.Series:
    p = adjust(variants["p_denominator"].to_numpy(), "holm")
    return pd.Series(p < UNEQUAL, variants.index)

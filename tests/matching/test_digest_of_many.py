"""The digest of a side table with very many numbers tells apart what differs in one place."""

import numpy as np
import pandas as pd
import pytest

from recdf.matching.side_tables.digest import MANY_ROWS, SUMMED, described

N_ROWS = MANY_ROWS + 5


def digest(values, dtype=None):
    return described([pd.Series(values, name="item_id", dtype=dtype)])["digest"]


@pytest.mark.few(4)
@pytest.mark.parametrize("place", [0, SUMMED, N_ROWS - 1])
@pytest.mark.parametrize("other", [7, -1, 2**62, -(2**63)])
def test_one_other_number_changes_the_digest(place, other):
    values = np.arange(N_ROWS)
    changed = values.copy()
    changed[place] = other
    assert digest(changed) != digest(values) or other == place


def test_two_changed_signs_and_two_changed_places_change_the_digest():
    """Signs are highest bits, which weighted sums alone would lose in pairs."""
    values = np.arange(N_ROWS, dtype=float) + 1
    changed, swapped = values.copy(), values.copy()
    changed[:2] *= -1
    swapped[[3, 4]] = swapped[[4, 3]]
    assert len({digest(values), digest(changed), digest(swapped)}) == 3


def test_the_width_and_the_library_do_not_change_the_digest():
    values = np.arange(N_ROWS)
    assert (
        digest(values)
        == digest(values, "int32")
        == digest(values, "Int64")
        == digest(values, "int64[pyarrow]")
    )

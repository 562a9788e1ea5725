"""Which cases of a long test every run tries; the others carry the mark `long`."""

import pytest


def few(cases, quick):
    """The cases, of which every run tries the first `quick`, or those that `quick` names."""
    cases = list(cases)
    tried = cases[:quick] if isinstance(quick, int) else list(quick)
    return [one if one in tried else _long(one) for one in cases]


def crossed(rows, columns):
    """The pairs of the first row and of the first column, so that each value is tried once."""
    rows, columns = list(rows), list(columns)
    return [
        (row, column)
        for row in rows
        for column in columns
        if row == rows[0] or column == columns[0]
    ]


def _long(case):
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.long)

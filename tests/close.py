"""Equal but for rounding: what a number worked by hand is compared with."""

import pytest


def close(value):
    """The number, or each of a list or mapping of numbers, up to 1e-12; NaN equals NaN."""
    return pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True)

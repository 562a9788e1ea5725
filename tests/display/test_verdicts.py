"""Verdicts of generated results against their tables; every other one has a fault planted in its
data."""

import pytest
from quick import few

from .planted import try_one


@pytest.mark.long
@pytest.mark.parametrize("seed", few(range(20), 2))
def test_the_page_says_what_its_tables_say(seed, tmp_path):
    try_one(seed, tmp_path)

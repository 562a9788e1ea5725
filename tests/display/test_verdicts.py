"""Verdicts of generated results against their tables; every other one has a fault planted in its
data."""

import pytest
from quick import few

from .planted import try_one
from .planted_kinds import TRIES, try_kind


@pytest.mark.long
@pytest.mark.parametrize("seed", few(range(12), 2))
@pytest.mark.usefixtures("without_pictures")
def test_the_page_says_what_its_tables_say(seed, tmp_path):
    try_one(seed, tmp_path)


@pytest.mark.slow
def test_pages_of_every_kind_say_what_their_data_say(tmp_path):
    for seed in range(7_000, 7_070):
        if seed % len(TRIES) not in (1, 2):  # models, as the first of the kinds
            try_kind(seed, tmp_path)

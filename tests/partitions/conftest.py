"""How the tests of evaluate_parquet run: small files are cut as large ones are."""

import pytest

from recdf.inputs.machine import Sizes, sized

SMALL = Sizes(read_rows=64, batch_rows=(64, 64), block_rows=32)


@pytest.fixture
def small_pieces():
    """Cut where large files would be cut: batches, chunks and blocks of a few rows."""
    with sized(SMALL):
        yield SMALL

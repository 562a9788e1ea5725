"""How the tests of evaluate_parquet run: small files are cut as large ones are, and recdf warns of nothing."""

import warnings

import pytest

import recdf as rd
from recdf.partitions import results, source, whole_columns


@pytest.fixture
def small_pieces(monkeypatch):
    """Cut where large files would be cut: batches, chunks and blocks of a few rows."""
    monkeypatch.setattr(source, "READ_ROWS", 64)
    monkeypatch.setattr(whole_columns, "TOGETHER_ROWS", 64)
    monkeypatch.setattr(results, "CHUNK_ROWS", 4)
    monkeypatch.setattr(results, "BLOCK_ROWS", 32)


@pytest.fixture
def quiet():
    """Warnings of recdf about the data are expected, and not shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rd.RecdfWarning)
        yield

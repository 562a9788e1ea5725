"""How the tests of evaluate_parquet run: small files are cut as large ones are."""

import pytest

from recdf.partitions import dealt_files, results, source, whole_columns


@pytest.fixture
def small_pieces(monkeypatch):
    """Cut where large files would be cut: batches, chunks and blocks of a few rows."""
    monkeypatch.setattr(source, "READ_ROWS", 64)
    monkeypatch.setattr(dealt_files, "BATCH_ROWS", (64, 64))
    monkeypatch.setattr(whole_columns, "TOGETHER_ROWS", 64)
    monkeypatch.setattr(results, "CHUNK_ROWS", (4, 4))
    monkeypatch.setattr(results, "BLOCK_ROWS", 32)

"""Parquet files with a seal: a digest of all their bytes, and further data that they contain.

A parquet file is read from its end: the footer says where each column is, and nothing refers to
bytes between the last column and the footer. `seal` puts three things there, which other readers of
parquet ignore:

    PAR1 | columns | categories, summary | MARK, the two lengths, digest | footer | length of the
    footer | PAR1

The digest is the SHA-256 of all bytes of the file except its own. Equal content therefore has an
equal digest, and a file that another program truncated, changed or wrote again no longer fits its
digest.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from ..errors import DataError
from ..publishing import plain_file

MAGIC = b"PAR1"
MARK = b"recdf\x00\x00\x01"
LENGTH = 8  # bytes of a length
DIGEST = hashlib.sha256().digest_size
TRAILER = len(MARK) + 2 * LENGTH + DIGEST
CHUNK = 2**20


class Carried(NamedTuple):
    """The data that a file contains besides its own table."""

    categories: bytes = b""  # categories of its columns, which parquet does not keep
    summary: bytes = b""  # the whole of the summary's file


class Sealed(NamedTuple):
    """An open file whose bytes are those that were sealed."""

    handle: pa.NativeFile
    digest: str
    carried: Carried


def seal(path: Path, carried: Carried) -> str:
    """Seal a parquet file that was just written, add some data to it, and return its digest."""
    lengths = b"".join(len(part).to_bytes(LENGTH, "little") for part in carried)
    head = b"".join(carried) + MARK + lengths
    with open(path, "r+b") as handle:
        end = _footer(handle, path)
        handle.seek(end)
        footer = handle.read()
        digest = _sealed_digest(handle, end, head + footer)
        handle.seek(end)
        handle.write(head + digest + footer)
    return digest.hex()


@contextmanager
def open_sealed(path: Path) -> Iterator[Sealed]:
    """Open a sealed file once, and check all of it; raises DataError as `unseal` does.

    The file is opened by Arrow. If Arrow's threads read a Python file, they may abort a process
    that is ending.
    """
    with pa.OSFile(str(plain_file(path)), "rb") as handle:
        yield unseal(handle, path)


def unseal(handle: pa.NativeFile, path: Path) -> Sealed:
    """Check all bytes of an open file, and find the data that it contains. Messages name `path`.

    Raises
    ------
    DataError
        If the file is no whole parquet file, has no seal, or differs from what was sealed.
    """
    end = _footer(handle, path)
    start = end - TRAILER
    handle.seek(max(start, 0))
    trailer = handle.read(TRAILER) if start > 0 else b""
    if not trailer.startswith(MARK):
        raise DataError(
            f"{path} has no recdf metadata that fits it: it was written by another program or by "
            "an earlier recdf; expected a file as Evaluation.to_parquet or recdf evaluate --out "
            "wrote it"
        )
    digest = trailer[-DIGEST:]
    handle.seek(end)
    if _sealed_digest(handle, end - DIGEST, handle.read()) != digest:
        raise DataError(
            f"{path} is damaged: its bytes are not those that recdf wrote; write the result again"
        )
    lengths = trailer[len(MARK) : -DIGEST]
    sizes = [
        int.from_bytes(lengths[at : at + LENGTH], "little") for at in range(0, len(lengths), LENGTH)
    ]
    handle.seek(start - sum(sizes))
    carried = Carried(*(handle.read(size) for size in sizes))
    handle.seek(0)
    return Sealed(handle, digest.hex(), carried)


def _footer(handle: BinaryIO | pa.NativeFile, path: Path) -> int:
    """Return the offset of the footer, which ends before the last eight bytes of a parquet file."""
    handle.seek(0, os.SEEK_END)
    size = handle.tell()
    handle.seek(max(size - 8, 0))
    last = handle.read(8)
    offset = size - 8 - int.from_bytes(last[:4], "little")
    if last[4:] != MAGIC or offset < len(MAGIC):
        raise DataError(
            f"{path} is no whole parquet file ({size:,} bytes): it was cut short or damaged, or "
            "never was"
        )
    return offset


def _sealed_digest(handle: BinaryIO | pa.NativeFile, end: int, rest: bytes) -> bytes:
    """Return the digest of the file's bytes before `end`, followed by `rest`."""
    digest = hashlib.sha256()
    handle.seek(0)
    while (left := end - handle.tell()) > 0:
        chunk = handle.read(min(CHUNK, left))
        if not chunk:  # the file became shorter while it was read, so that no digest can fit
            break
        digest.update(chunk)
    digest.update(rest)
    return digest.digest()

"""Parquet files with a seal: a digest of every byte, and other bytes that they carry.

A parquet file is read from its end: the footer says where each column stands, and bytes between the last column and the
footer belong to nobody. `seal` puts three things there, which other readers of parquet do not look at:

    PAR1 | columns | categories, summary | MARK, the two lengths, digest | footer | length of the footer | PAR1

The digest is a SHA-256 of all bytes of the file but its own. Equal content therefore has an equal digest, and a file
that was cut, changed or written anew by another program is told apart from one that is as it was sealed.
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

__all__ = ["Carried", "Sealed", "open_sealed", "seal", "unseal"]

MAGIC = b"PAR1"
MARK = b"recdf\x00\x00\x01"
LENGTH = 8  # bytes of a length
DIGEST = hashlib.sha256().digest_size
TRAILER = len(MARK) + 2 * LENGTH + DIGEST
CHUNK = 2**20


class Carried(NamedTuple):
    """What a file carries beside its own table."""

    categories: bytes = b""  # of its columns, which parquet does not keep
    summary: bytes = b""  # the whole of the summary's file


class Sealed(NamedTuple):
    """A file that is open, and found to be as it was sealed."""

    handle: pa.NativeFile
    digest: str
    carried: Carried


def seal(path: Path, carried: Carried) -> str:
    """Seal a parquet file that was just written, let it carry some bytes, and return its digest.

    The file is on the disk, not in the system's memory alone, when this function returns.
    """
    lengths = b"".join(len(part).to_bytes(LENGTH, "little") for part in carried)
    head = b"".join(carried) + MARK + lengths
    with open(path, "r+b") as handle:
        end = _footer(handle, path)
        handle.seek(end)
        footer = handle.read()
        digest = _digest(handle, end, head + footer)
        handle.seek(end)
        handle.write(head + digest + footer)
        handle.flush()
        os.fsync(handle.fileno())
    return digest.hex()


@contextmanager
def open_sealed(path: Path) -> Iterator[Sealed]:
    """Open a sealed file once, and check all of it; raises DataError as `unseal` does.

    The file is one of Arrow: while it reads a file of Python, its threads may abort a process that ends.
    """
    with pa.OSFile(str(path), "rb") as handle:
        yield unseal(handle, path)


def unseal(handle: pa.NativeFile, path: Path) -> Sealed:
    """Check all bytes of an open file, and find what it carries. Messages name `path`.

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
            f"{path} has no recdf metadata that fits it: it was written by another program or by an earlier recdf; "
            "expected a file as Evaluation.to_parquet or recdf evaluate --out wrote it"
        )
    digest = trailer[-DIGEST:]
    handle.seek(end)
    if _digest(handle, end - DIGEST, handle.read()) != digest:
        raise DataError(f"{path} is damaged: its bytes are not those that recdf wrote; write the result again")
    lengths = trailer[len(MARK) : -DIGEST]
    sizes = [int.from_bytes(lengths[at : at + LENGTH], "little") for at in range(0, len(lengths), LENGTH)]
    handle.seek(start - sum(sizes))
    carried = Carried(*(handle.read(size) for size in sizes))
    handle.seek(0)
    return Sealed(handle, digest.hex(), carried)


def _footer(handle: BinaryIO | pa.NativeFile, path: Path) -> int:
    """Offset of the footer, which a parquet file has before its last eight bytes."""
    handle.seek(0, os.SEEK_END)
    size = handle.tell()
    handle.seek(max(size - 8, 0))
    last = handle.read(8)
    offset = size - 8 - int.from_bytes(last[:4], "little")
    if last[4:] != MAGIC or offset < len(MAGIC):
        raise DataError(f"{path} is no whole parquet file ({size:,} bytes): it was cut short or damaged, or never was")
    return offset


def _digest(handle: BinaryIO | pa.NativeFile, end: int, rest: bytes) -> bytes:
    """Digest of the file's bytes before `end`, and of `rest` after them."""
    digest = hashlib.sha256()
    handle.seek(0)
    while (left := end - handle.tell()) > 0:
        chunk = handle.read(min(CHUNK, left))
        if not chunk:  # the file became shorter while it was read, so that no digest can fit
            break
        digest.update(chunk)
    digest.update(rest)
    return digest.digest()

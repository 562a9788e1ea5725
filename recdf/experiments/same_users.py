"""A digest of users by which another table can tell that its users are among them."""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..inputs.ids import Ids, read_ids
from .columns import Codes, Mask, split

__all__: list[str] = []

Hashes = npt.NDArray[np.uint64]

# Users that a digest names: those with the smallest hashes. If all users with a hash of at most the largest of these
# are named, other users are found out, and a part of the same users is not.
NAMED = 16
_DIGITS = 12


def hash_users(frame: pd.DataFrame, keys: list[str], role: str) -> Hashes:
    """Return a hash of the key of every row, which depends on the ids and not on how they are stored."""
    hashed = np.zeros(len(frame), np.uint64)
    for name in keys:
        hashed = hashed * np.uint64(0x5851F42D4C957F2D) + _hash(read_ids(frame[name], f"{role}[{name!r}]"))
    return np.asarray(hashed >> np.uint64(64 - 4 * _DIGITS))


def _hash(ids: Ids) -> Hashes:
    if ids.dictionary is not None:
        return np.asarray(_hash(ids.dictionary)[ids.values])
    values = ids.values
    if isinstance(values, pa.ChunkedArray):
        values = values.to_numpy()
    elif values.dtype.kind == "M":
        values = values.astype("datetime64[ns]")
    elif values.dtype.kind == "i":
        values = values.astype(np.int64)
    return np.asarray(pd.util.hash_array(values, categorize=False))


def digest_users(hashed: Hashes, cell: Codes, n_cells: int, keys: list[str]) -> list[str]:
    """Return the digest of the users of every cell: their key, and the smallest hashes."""
    smallest = [np.unique(hashed[rows])[:NAMED] for rows in split(cell, n_cells)]
    names = json.dumps([str(name) for name in keys])
    return [f"{names}:{''.join(f'{one:0{_DIGITS}x}' for one in named)}" for named in smallest]


def key_of(digest: str) -> list[str]:
    """Return the columns that a digest was made of."""
    return list(json.loads(digest.rpartition(":")[0]))


def others(digest: str, hashed: Hashes) -> Mask:
    """Which of these users cannot be among those of a digest."""
    text = digest.rpartition(":")[2]
    named = np.array([int(text[i : i + _DIGITS], 16) for i in range(0, len(text), _DIGITS)], np.uint64)
    within = hashed <= named[-1] if len(named) == NAMED else np.ones(len(hashed), bool)
    return np.asarray(within & ~np.isin(hashed, named))

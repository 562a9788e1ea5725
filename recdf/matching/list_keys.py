"""List keys: which rows belong to one list, which lists there are, and the labels that results get
at the end.

Contract: a key or a `by` value has one code in both frames. The code of a list is `by` code ×
n_keys + key code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..errors import IdTypeError
from ..inputs.codes import Coded, encode_keys, first_rows
from ..inputs.ids import IdColumn, read_by, take_rows
from ..inputs.machine import each, sizes
from ..inputs.options import Options, as_columns
from ..inputs.true_and_pred import ReadRows

NO_BY = pd.DataFrame(index=range(1))  # without `by`, there is one recommender without a name


def key_run_heads(columns: Sequence[IdColumn]) -> np.ndarray | None:
    """Return the first row of each run of equal keys; None where runs are so short that they save
    no work."""
    n = len(columns[0])

    def changes(first: int) -> np.ndarray:
        part = slice(first, first + sizes().key_rows + 1)
        changed: np.ndarray = np.logical_or.reduce([ids.changes(part) for ids in columns])
        return changed

    def heads(first: int) -> np.ndarray:
        return np.flatnonzero(changes(first)) + (first + 1)

    first_part = changes(0)
    if 4 * np.count_nonzero(first_part) > 3 * min(n, sizes().key_rows):  # runs are short
        return None
    found = [np.zeros(min(n, 1), np.int64), np.flatnonzero(first_part) + 1]
    rows = np.concatenate(found + each(heads, range(sizes().key_rows, n, sizes().key_rows)))
    return rows if 4 * len(rows) <= 3 * n else None


def at_heads(columns: Sequence[IdColumn], heads: np.ndarray | None) -> list[IdColumn]:
    return list(columns) if heads is None else [ids.take(heads) for ids in columns]


def encode_by(
    table: ReadRows, heads: np.ndarray | None, names: list[str], known: pd.DataFrame | None
) -> tuple[Coded | None, pd.DataFrame]:
    """Return the code of the `by` value of each row (or run of rows), and the labels of the codes.

    Codes follow the order of `known`, if it is given, and otherwise the order in which values first
    appear.
    """
    if not table.by:
        return None, NO_BY
    if known is None and table.row is not None:
        # A recommender stays in the result, without lists, even when all its rows were dropped.
        known = table.frame[names].dropna().drop_duplicates(ignore_index=True)
    if known is not None:
        rows = table.frame_rows(np.arange(len(table)) if heads is None else heads)
        pairs = [
            read_by([known[name], table.frame[name].take(rows)], f"pred[{name!r}]")
            for name in names
        ]
        (first_seen, codes), n = encode_keys([list(column) for column in zip(*pairs, strict=True)])
        present, labels = first_seen.all(), known
    else:
        (codes,), n = encode_keys([at_heads(table.by, heads)])
        first = first_rows(codes, n)
        present = np.flatnonzero(first >= 0)
        present = present[np.argsort(first[present])]
        rows = first[present] if heads is None else heads[first[present]]
        labels = key_labels(table.frame, names, table.frame_rows(rows))
    place = np.zeros(n, np.int32)
    place[present] = np.arange(len(present))
    return codes.mapped(place), labels


@dataclass(frozen=True)
class ListCodes:
    """The list code of each row (or run of rows), by * n_keys + key; -1 for keys that are not
    `inside`."""

    key: Coded
    by: Coded | None
    n_by: int
    n_keys: int
    inside: np.ndarray | None

    def __len__(self) -> int:
        return len(self.key)

    def __getitem__(self, rows: slice) -> np.ndarray:
        key = code = self.key[rows]
        if self.by is not None:
            by = self.by[rows]
            code = (
                by if self.n_by * self.n_keys < 2**31 else by.astype(np.int64)
            ) * self.n_keys + key
        return (
            code
            if self.inside is None
            else np.where(self.inside.take(key), code, code.dtype.type(-1))
        )


def split_codes(codes: np.ndarray, n_keys: int, n_by: int) -> tuple[np.ndarray, np.ndarray]:
    """Split list codes into their `by` codes and key codes."""
    if n_by == 1:
        return np.zeros_like(codes), codes
    by = codes // n_keys
    return by, codes - by * n_keys


def population_of(
    base: np.ndarray, code: np.ndarray, first: np.ndarray, n_by: int, n_keys: int, options: Options
) -> np.ndarray:
    """Return the codes of the lists of the population, sorted by their `by` value.

    `base` are the keys of the population where it does not come from `pred`. `code` are the lists
    of `pred`, and `first` are the rows where they first appear.
    """
    rule = options.population.rule
    if rule == "pred":
        seen: np.ndarray = code[np.argsort(first)]
        return seen[np.argsort(seen // n_keys, kind="stable")]
    lists: np.ndarray = (np.arange(n_by)[:, None] * n_keys + base).ravel()
    if rule == "both":
        return lists[np.isin(lists, code)]
    if rule == "all":
        seen = code[np.argsort(first)]
        further = seen[~np.isin(seen % n_keys, base)]
        lists = np.concatenate([lists, further])
        lists = lists[np.argsort(lists // n_keys, kind="stable")]
    return lists


def place_of(lists: np.ndarray, codes: np.ndarray, n_codes: int) -> np.ndarray:
    """Return where each code (below n_codes) stands among `lists`, which hold each of them once."""
    if n_codes > 16 * (len(lists) + len(codes)):  # a lookup table by code would be large
        return np.asarray(pd.Index(lists).get_indexer(codes))
    place = np.full(n_codes, -1, np.int32)
    place[lists] = np.arange(len(lists), dtype=np.int32)
    return place.take(codes)


def key_frame(
    key: np.ndarray,
    n_keys: int,
    sources: dict[str, tuple[pd.DataFrame, np.ndarray, np.ndarray]],
    options: Options,
) -> pd.DataFrame:
    """Return the labels of the lists' keys, in the dtype of the frame that the population is taken
    from.

    Each of the `sources` is a frame, the key codes that it holds, and the row of the frame that
    stands for each code.
    """
    names = as_columns(options.user_col)
    chosen = [sources[name] for name in options.population.frames]
    # Versions of pandas differ in whether an empty frame affects the common dtype, so empty frames
    # are left out.
    chosen = [source for source in chosen if len(source[1])] or chosen[:1]
    row_of, above, tables = np.full(n_keys, -1, np.int64), 0, []
    if len(chosen) == 1:
        frame, codes, rows = chosen[0]
        row_of[codes] = rows
        return key_labels(frame, names, row_of[key])
    for frame, codes, rows in chosen:  # only rows that stand for a key are copied
        tables.append(key_labels(frame, names, rows))
        row_of[codes] = np.arange(len(rows)) + above
        above += len(rows)
    for name in names:
        dtypes = [table[name].dtype for table in tables]
        if all(map(pd.api.types.is_integer_dtype, dtypes)):
            kind = _holds_both(name, [table[name] for table in tables], dtypes)
            tables = tables if kind is None else [table.astype({name: kind}) for table in tables]
    try:
        both = pd.concat(tables, ignore_index=True)
    except UnicodeEncodeError as error:  # pandas cannot compare such categories
        odd = [
            name
            for name in names
            if any(isinstance(table[name].dtype, pd.CategoricalDtype) for table in tables)
        ]
        raise IdTypeError(
            f'⟦users="all"⟧: the categories of the key columns {odd} hold strings with lone '
            f"surrogates ({error}), which pandas cannot join; convert the columns ⟦with "
            ".astype(object)⟧"
        ) from error
    return key_labels(both, names, row_of[key])


def _holds_both(name: str, columns: list[pd.Series], dtypes: Sequence[object]) -> str | None:
    """Return the dtype in which uint64 beside signed integers stay exact, since pandas joins them
    as floats.

    It is None where pandas joins the columns without a loss.
    """
    unsigned = [str(dtype).lower().startswith("uint64") for dtype in dtypes]
    if all(unsigned) or not any(unsigned):
        return None
    low, high = min(int(one.min()) for one in columns), max(int(one.max()) for one in columns)
    plain = all(isinstance(dtype, np.dtype) for dtype in dtypes)
    if high < 2**63:
        return "int64" if plain else "Int64"
    if low >= 0:
        return "uint64" if plain else "UInt64"
    raise IdTypeError(
        f'⟦users="all"⟧: the key column {name!r} has ids from {low} to {high}, which no integer '
        "dtype holds; convert both columns, e.g. ⟦with .astype(str)⟧"
    )


def key_labels(frame: pd.DataFrame, names: list[str], rows: np.ndarray) -> pd.DataFrame:
    """Take some rows of some columns, with a new index. It goes by column, since frame[names] would
    copy all rows."""
    labels = pd.DataFrame(
        {i: take_rows(frame[name], rows) for i, name in enumerate(names)}, copy=False
    )
    return labels.set_axis(pd.Index(names, tupleize_cols=False), axis=1)

"""Read files of all formats to frames, for `rd.read` and the command, without changing ids.

A frame may be in one file, in all files of a folder, or in the files of a glob. Columns in the
names of folders (day=2026-11-20/) are read too. An address (s3://, gs://, https://) is read
through fsspec.

Contract: a column keeps the type that the format gives it. In formats without types (CSV), an
id column is of integers where every file writes it as plain integers (7, not 007, 7.0 or +7)
and no other file holds it as text; else it is text. Any other column with a value such as 007
is text too, since it may hold ids.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pandas import DataFrame

from ..errors import DataError, MissingExtraError, OptionError, RecdfError, kind_of
from ..inputs.data_files import (
    cast,
    data_files,
    folder_columns,
    hidden,
    pandas_metadata,
    unified,
    without_bare_index,
)
from ..inputs.door import new_names, takes_options
from ..inputs.options import ByName, Columns, Names, Options, as_columns
from .format_records import TOO_LARGE, Format, InputFile, beyond_numbers, format_named, format_of

# How many bytes of a file are read at a time where it is not read as a whole.
PIECE_BYTES = 2**26
NULL_NUMBERS = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]


def read_files(
    paths: ByName,
    keys: Names,
    by: Names,
    columns: Names = (),
    names: ByName | None = None,
) -> dict[str, DataFrame]:
    """Read files to frames: `keys` are the id columns, alike in all files, and `by` the labels of
    single files.

    Of `keys`, `by` and `columns`, a file of several must have those that another file of the frame
    has. `names` say for a frame how columns are called in its files.
    """
    sets = _file_sets(paths, names or {})
    needed = [*keys, *by, *columns]
    return _as_frames({name: one.read(needed) for name, one in sets.items()}, sets, keys, by)


def _file_sets(paths: ByName, names: ByName) -> dict[str, FileSet]:
    """Find the files of each frame."""
    return {
        name: replace(FileSet.of(path), role=name, names=names.get(name) or None)
        for name, path in paths.items()
    }


def read_beside(path: Any, parquet: Any, keys: Names, by: Names) -> DataFrame:
    """Read one frame, its ids alike those of a parquet file, of which only the types are read, or
    of a schema."""
    from pyarrow import parquet as pq  # costs import time that other commands need not pay

    files = FileSet.of(path)
    schema = parquet if isinstance(parquet, pa.Schema) else pq.read_schema(parquet)
    tables = {"beside": schema.empty_table(), "own": files.read([*keys, *by])}
    return _as_frames(tables, {"own": files}, keys, by)["own"]


def as_parquet(
    paths: ByName,
    keys: Names,
    by: Names,
    names: ByName,
    folder: Any,
) -> dict[str, Any]:
    """Write files of other formats as parquet files, with the types of `read_files`, and return
    where each frame is.

    Files are read piece by piece, twice where their columns have no types. Parquet files of this
    machine stay where they are.
    """
    from pyarrow import parquet  # costs import time that other commands need not pay

    sets = _file_sets(paths, names)
    ids = [*keys, *by]
    found = dict(paths)
    kinds = settled_kinds({name: one.pieces() for name, one in sets.items()}, sets, keys, by)
    for name, files in sets.items():
        if not files.is_plain_parquet:
            found[name] = os.path.join(folder, name)
            os.mkdir(found[name])
            rows = 0
            for table in files.pieces():
                whole = typed(table, kinds.get(name, {}), ids, files, rows)
                place = os.path.join(found[name], f"{rows:015}.parquet")
                parquet.write_table(whole, place, compression="zstd")
                rows += len(table)
    return found


def _as_frames(
    tables: ByName, sets: Mapping[str, FileSet], keys: Names, by: Names
) -> dict[str, DataFrame]:
    """Give the columns of the tables that are text their types, and make frames of all, with the
    dtypes that pandas wrote. Integers beside nulls stay integers."""
    kinds = settled_kinds({name: [table] for name, table in tables.items()}, sets, keys, by)
    frames = {}
    for name, table in tables.items():
        whole = typed(table, kinds[name], [*keys, *by], sets[name]) if name in kinds else table
        whole = without_bare_index(whole)
        written = json.dumps(pandas_metadata(whole.schema.metadata)).encode()
        try:
            described = whole.replace_schema_metadata({b"pandas": written})
            frames[name] = described.to_pandas(integer_object_nulls=True)
        except (
            TypeError,
            ValueError,
            NotImplementedError,
        ):  # a dtype that pandas wrote and cannot read, such as bytes of 16
            frames[name] = whole.to_pandas(integer_object_nulls=True, ignore_metadata=True)
    return frames


def settled_kinds(
    tables: Mapping[str, Iterable[Any]], sets: Mapping[str, FileSet], keys: Names, by: Names
) -> dict[str, dict[str, list[Any]]]:
    """Return, for each column of each frame of text, given the pieces of all frames, the kinds of
    numbers that take all its values, the narrowest first. Ids are text in all of them, unless all,
    and the first pieces of the others, have integers."""
    possible: dict[str, dict[str, list[Any]]] = {}
    others = []
    for name, pieces in tables.items():
        if name not in sets or not sets[name].is_text:
            others.append(next(iter(pieces)).schema)
            continue
        own = possible[name] = {}
        for table in pieces:
            for column in table.column_names:
                if not _holds_text((text := table[column]).type):
                    continue
                is_id = column in (*keys, *by)
                kinds = own.get(column, NUMBERS[:1] if is_id else NUMBERS)
                first = _as_numbers(text, kinds, is_id).type
                own[column] = kinds[kinds.index(first) :] if first in kinds else []
    for key in keys:
        mine = [kinds for kinds in possible.values() if key in kinds]
        types = [schema.field(key).type for schema in others if key in schema.names]
        # Of a list, its items are meant.
        typed_text = any(_holds_text(getattr(kind, "value_type", kind)) for kind in types)
        if typed_text or not all(kinds[key] for kinds in mine):
            for found in mine:
                found[key] = []
    return possible


def typed(
    table: Any, kinds: Mapping[str, list[Any]], ids: Names, files: FileSet, start: int = 0
) -> Any:
    """Return a table, in which each column of text has the first of its kinds. `start` is the row
    where it begins."""
    for column, possible in kinds.items():
        text = table[column]
        found = _as_numbers(text, possible[:1], column in ids)
        if (beyond := beyond_numbers(text, found)) >= 0:
            raise DataError(
                f"{files.place(start + beyond)}, column {column}: {text[beyond]} {TOO_LARGE}"
            )
        table = table.set_column(table.column_names.index(column), column, found)
    return table


class PathOfFormat(str):
    """A path whose format the caller named."""

    format_name: str | None = None

    def __new__(cls, path: str, name: str | None) -> PathOfFormat:
        found = super().__new__(cls, path)
        found.format_name = name
        return found


@dataclass(frozen=True)
class FileSet:
    """The files of one frame: `name` as it was given, their paths, and the fsspec file system of an
    address.

    `names` say how columns are called in the files of `true` or `pred` (`role`).
    """

    name: str
    paths: list[str]
    system: Any = None
    role: str = ""
    names: Mapping[str, str] | None = None

    @classmethod
    def of(cls, path: Any) -> FileSet:
        """Find the files. A folder may be one table of a format, and no folder of files."""
        name = os.fspath(path)
        if is_remote(name):
            return cls(name, *_files_of_address(name))
        is_folder = os.path.isdir(name)
        is_table = False
        with suppress(DataError):
            is_table = is_folder and not cls(name, [name]).format.endings
        if paths := [name] if is_table else data_files(name):
            return cls(name, paths)
        what = "holds no file" if is_folder else "no such file"
        also = ", and no file has a name like it" if _is_pattern(name) and not is_folder else ""
        raise FileNotFoundError(f"{name}: {what}{also}")

    @property
    def files(self) -> list[str]:
        """The files themselves, also where a folder is read as one table."""
        return (
            self.paths
            if self.system
            else [file for path in self.paths for file in data_files(path)]
        )

    @property
    def is_plain_parquet(self) -> bool:
        """Whether these are parquet files of this machine, which others can read as they are."""
        return self.format.name == "parquet" and self.system is None

    @property
    def is_text(self) -> bool:
        return self.format.inferred

    @cached_property
    def format(self) -> Format:
        """The format of the files, as it was given or as the first file of each ending shows it."""
        if (given := getattr(self.name, "format_name", None)) is not None:
            return format_named(given)
        files = [InputFile(path, self.system) for path in self.paths]
        try:
            found = {
                one.ending: format_of(one)
                for one in reversed({one.ending: one for one in files[::-1]}.values())
            }
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"{self.name} cannot be read: {error}") from error
        if len({one.name for one in found.values()}) > 1:
            raise DataError(
                f"{self.name} holds files of several kinds ({', '.join(sorted(found))}); expected "
                "one"
            )
        return found[files[0].ending]

    @cached_property
    def folder_columns(self) -> dict[str, Any]:
        return folder_columns(self.paths)

    def read(self, columns: Names) -> Any:
        """Read all files to one Arrow table; of text files, every column is text.

        A file that lacks one of the `columns` that another file has is refused: its rows would be
        null there. Columns whose types do not go together are left out if nobody needs them.
        """
        tables = [
            pa.concat_tables(self._tables(path, None), promote_options="permissive")
            for path in self.paths
        ]
        for name in columns:
            has = [name in table.column_names for table in tables]
            if any(has) and not all(has):
                raise DataError(
                    f"{self.paths[has.index(False)]} has no column {name!r}, which other files of "
                    f"{self.name} have"
                )
        if len(tables) == 1:
            return tables[0]
        tables = _alike(tables)
        schema, odd = unified([table.schema for table in tables])
        for name in columns:
            if name in odd:
                raise DataError(
                    f"{self.name}: the files have columns of different kinds: {odd[name]}"
                )
        for table in tables:
            for name in set(table.column_names) - set(odd):
                try:
                    cast(table[name], schema.field(name).type, name, self.name)
                except DataError as error:
                    if name in columns:
                        raise
                    odd[name] = str(error)
        kept = [
            table.select([name for name in table.column_names if name not in odd])
            for table in tables
        ]
        return pa.concat_tables(kept, promote_options="permissive")

    def place(self, row: int) -> str:
        """Return the file that has a row of all files together, and the number of the row there,
        from 1."""
        for path in self.paths:
            n_rows = sum(map(len, self._tables(path, PIECE_BYTES)))
            if row < n_rows:
                break
            row -= n_rows
        return f"{path}, row {row + 1:,}"

    def pieces(self) -> Iterator[Any]:
        """Read all files in their order, piece by piece."""
        for path in self.paths:
            yield from self._tables(path, PIECE_BYTES)

    def _tables(self, path: str, piece: int | None) -> Iterator[Any]:
        empty = True
        try:
            for table in self.format.read(InputFile(path, self.system, piece)):
                empty = False
                yield self._named(table, path)
        except RecdfError:
            raise
        except Exception as error:  # a reader may raise anything for a broken file
            raise DataError(f"{path} cannot be read: {error}") from error
        if empty:
            raise DataError(f"{path} is empty")

    def _named(self, table: Any, path: str) -> Any:
        """Return a table with the columns of the file's folders, under the names of the format and
        of the frame."""
        if of_format := self.format.names:
            table = table.rename_columns([of_format.get(name, name) for name in table.column_names])
        for name, values in self.folder_columns.items():
            if name not in table.column_names:
                value = values[self.paths.index(path)]
                kind = pa.large_string() if self.is_text else values.type
                column = pa.repeat(value.cast(kind), len(table))
                table = table.append_column(
                    name, column.dictionary_encode() if kind == pa.string() else column
                )
        names = table.column_names
        return (
            table
            if self.names is None  # other names would take away what pandas wrote of the columns
            else table.rename_columns(new_names(names, self.names, self.role))
        )


def _alike(tables: Sequence[Any]) -> list[Any]:
    """Make columns that are categories in some tables and plain in others of the kind of the first
    table that has them.

    Arrow joins neither these, nor categories of which only some are ordered, which become plain.
    """
    found = list(tables)
    for name in dict.fromkeys(name for table in tables for name in table.column_names):
        having = [i for i, table in enumerate(tables) if name in table.column_names]
        kinds = [tables[i].schema.field(name).type for i in having]
        ordered = {
            getattr(kind, "ordered", None) for kind in kinds
        }  # None if there are no categories
        encode = pa.types.is_dictionary(kinds[0]) and ordered == {None, False}
        for i in having if len(ordered) > 1 else ():
            table = found[i]
            column = tables[i][name]
            if pa.types.is_dictionary(column.type) != encode:
                column = (
                    column.dictionary_encode() if encode else column.cast(column.type.value_type)
                )
                found[i] = table.set_column(table.column_names.index(name), name, column)
    return found


def is_remote(path: Any) -> bool:
    """Whether a path is one of another machine, such as s3://bucket/file.parquet."""
    return "://" in os.fspath(path)


def _files_of_address(address: str) -> tuple[list[str], Any]:
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError(
            f"{address}: reading an address needs the package fsspec: pip install fsspec"
        ) from None
    try:
        system, path = fsspec.core.url_to_fs(address)
    except ImportError as error:  # the file system of s3:// is in a package of its own, s3fs
        raise MissingExtraError(f"{address}: {error}") from None
    except ValueError as error:
        raise OptionError(f"{address}: {error}") from None
    if _is_pattern(path):
        found = sorted(system.glob(path))
    elif system.exists(path) and system.isdir(path):
        start = len(path.rstrip("/")) + 1
        found = [file for file in sorted(system.find(path)) if not hidden(file[start:].split("/"))]
    else:
        found = [path]
    if not found or not system.exists(found[0]):
        raise FileNotFoundError(f"{address}: no such file")
    return found, system


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def _holds_text(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


NUMBERS = [pa.int64(), pa.float64(), pa.bool_()]
INTEGER_TEXT, LEADING_ZERO = "^(0|-?[1-9][0-9]*)$", "^[-+]?0[0-9]"


def _as_numbers(text: Any, kinds: Sequence[Any], is_id: bool) -> Any:
    """Convert a column to the first kind that takes all its values, numbers or bools; else return
    it as it is.

    Ids are numbers where all are written as Python writes an integer. Of them, empty fields are
    null; the text "NA" stays, since it may be an id. Other columns with a value such as 007 stay
    text, since that may be an id too.
    """
    trimmed = text if is_id else pc.utf8_trim_whitespace(text)
    null = pc.is_in(trimmed, value_set=pa.array([""] if is_id else NULL_NUMBERS, type=text.type))
    values = pc.if_else(null, pa.scalar(None, text.type), trimmed)
    if is_id:
        plain = pc.all(pc.match_substring_regex(values, INTEGER_TEXT)).as_py() is not False
    else:
        plain = not pc.any(pc.match_substring_regex(trimmed, LEADING_ZERO)).as_py()
    for kind in kinds if plain else ():
        with suppress(pa.ArrowInvalid):  # such as integers beyond int64
            return values.cast(kind)
    return values if is_id else text


# ------------------------------------------------------------------------------------------
# `rd.read`: one file or folder of any known format as a long frame.


@takes_options("user_col", "item_col", "by")
def read(
    path: Any,
    format: str | None = None,
    *,
    user_col: Columns | None = None,
    item_col: str | None = None,
    by: Columns | None = None,
    options: Options | None = None,
) -> DataFrame:
    """Read a file that another tool wrote to a long frame, which goes into `rd.evaluate` as `true`
    or `pred`.

    The command reads its files by the same rules, so `recdf evaluate --true test.qrels --pred
    bm25.run` needs no other step.

    Parameters
    ----------
    path : path
        A file, a folder, a quoted glob such as "runs/*.run", or an address that fsspec reads. Files
        may be compressed: .gz, .bz2 or .zst.
    format : str, optional
        Name of the format, such as "trec_run". By default it is recognised by the ending of the
        name and by what the file holds. docs/files.md lists all formats.
    user_col, item_col, by : str (or list of str for user_col and by), optional
        Columns of ids and labels in formats whose columns have no types (CSV), by default user_id
        and item_id. There an id column is of integers if all values are plain integers (7, not 007
        or 7.0), else it is text. Ids are text in formats that say so (TREC, RecBole's token, BEIR).

    Returns
    -------
    DataFrame
        One row per user and item, in the order of the file. Formats with columns of their own get
        the standard names user_id, item_id, and relevance, score or rank. CSV, JSON lines, parquet,
        Arrow and tables of Delta and Iceberg keep the names of their columns.

    Raises
    ------
    DataError
        If the format is not recognised, where the message shows the first line, or if the file
        cannot be read.
    OptionError
        If there is no format of that name.
    MissingExtraError
        If a table of Delta or Iceberg, or an address, needs a package that is not installed.
    FileNotFoundError
        If there is no such file.

    Notes
    -----
    A run of TREC is ordered by its scores, as trec_eval does. The ranks that it states are not
    read. For the values of trec_eval pass `like="trec_eval"` to `rd.evaluate`.

    Examples
    --------
    >>> import pathlib, tempfile, recdf as rd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = pathlib.Path(folder, "bm25.run")
    ...     _ = run.write_text("q1 Q0 d7 1 12.5 bm25\\nq1 Q0 d2 2 11.25 bm25\\n")
    ...     pred = rd.read(run)
    >>> pred[["user_id", "item_id", "score", "run"]]
      user_id item_id  score   run
    0      q1      d7  12.50  bm25
    1      q1      d2  11.25  bm25
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path is {kind_of(path)}; expected the path of a file or a folder")
    keys = [*as_columns(user_col or "user_id"), item_col or "item_id"]
    named = PathOfFormat(os.path.expanduser(os.fspath(path)), format)
    return read_files({"path": named}, keys, as_columns(by))["path"]

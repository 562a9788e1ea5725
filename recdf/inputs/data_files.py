"""Which files a path names, and the columns that stand in the names of their folders.

Contract: every reader of files asks here, so that a function and the command, in memory and in
parts, read the same files in the same order, and see the same columns.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ..errors import DataError
from ..publishing import where


def data_files(path: str) -> list[str]:
    """Return the files of a folder, a glob or a file, each once, sorted by path; none if nothing
    has such a name.

    Files and folders whose names begin with a dot or an underscore are left out, unless the path
    names them. Links are followed. What several paths lead to is read once, by a path without a
    link if there is one.
    """
    if (one := where(Path(path))) != Path(path):
        path = str(one)
    if os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        found = _inside([path])
    else:
        parts = Path(path).parts
        if "**" in parts:  # where links form circles, `glob` would follow them very many times
            first = next(i for i, part in enumerate(parts) if glob.has_magic(part))
            below = _inside([str(Path(*parts[:first]))])
            found = [
                one for one in below if _pattern_matches(Path(one).parts[first:], parts[first:])
            ]
        else:
            matches = [
                one for one in glob.glob(path) if not hidden(set(Path(one).parts) - set(parts))
            ]
            folders = [one for one in matches if os.path.isdir(one)]
            found = [*set(matches).difference(folders), *_inside(folders)]
    of_file: dict[str, str] = {}
    for file in sorted(
        found, key=lambda file: (os.path.realpath(file) != os.path.abspath(file), file)
    ):
        of_file.setdefault(os.path.realpath(file), file)
    return sorted(of_file.values())


def _inside(folders: Sequence[str]) -> list[str]:
    """Return the files below some folders. Each folder is entered once, so that links that form a
    circle end."""
    found, entered = [], set()
    while folders:
        links = []
        for top in folders:
            for folder, below, files in os.walk(top):
                below[:] = [name for name in below if not hidden([name])]
                if os.path.realpath(folder) in entered:
                    below.clear()
                    continue
                entered.add(os.path.realpath(folder))
                links += [
                    one for name in below if os.path.islink(one := os.path.join(folder, name))
                ]
                found += [os.path.join(folder, name) for name in files if not hidden([name])]
        folders = links  # after the folders themselves, which may hold what a link leads to
    return found


def _pattern_matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Tell whether a pattern names a path, or a folder above it; `**` stands for any number of
    folders."""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_pattern_matches(parts[i:], pattern[1:]) for i in range(len(parts) + 1))
    return (
        bool(parts) and fnmatch(parts[0], pattern[0]) and _pattern_matches(parts[1:], pattern[1:])
    )


def hidden(names: Any) -> bool:
    """Tell whether one of the names begins with a dot or an underscore."""
    return any(name.startswith((".", "_")) for name in names if name not in (".", ".."))


def folder_columns(files: Sequence[str]) -> dict[str, pa.Array]:
    """Return the columns in the names of folders, such as `day` of day=2026-11-20/, with the value
    of each file.

    Values are integers if those of all files are: of 32 bits if they fit, else of 64. Otherwise all
    are text. An empty value is null.
    """
    pairs = [
        [part.partition("=") for part in Path(file).parts[:-1] if "=" in part[1:]] for file in files
    ]
    found = {}
    for name in dict.fromkeys(name for own in pairs for name, _, _ in own):
        values = [
            next((value for one, _, value in own[::-1] if one == name), None) for own in pairs
        ]
        null = (None, "", "__HIVE_DEFAULT_PARTITION__")
        text = pa.array(
            [None if value in null else unquote(value) for value in values], pa.string()
        )
        found[name] = text
        for kind in (pa.int64(), pa.int32()) if text.null_count < len(text) else ():
            try:
                found[name] = text.cast(kind)
            except pa.ArrowInvalid:
                break
    return found


def unified(schemas: Sequence[pa.Schema]) -> tuple[pa.Schema, dict[str, str]]:
    """Return the columns of all files, and what is wrong with those whose types do not go
    together."""
    try:
        return pa.unify_schemas(schemas, promote_options="permissive"), {}
    except (pa.ArrowException, TypeError):
        pass
    types: dict[str, list[pa.Schema]] = {}
    for field in (field for schema in schemas for field in schema):
        types.setdefault(field.name, []).append(pa.schema([field]))
    fields, odd = [], {}
    for name, own in types.items():
        try:
            fields.append(pa.unify_schemas(own, promote_options="permissive").field(0))
        except (pa.ArrowException, TypeError) as error:
            fields.append(own[0].field(0))
            odd[name] = f"{name!r}: {error}"
    return pa.schema(fields), odd


def cast(column: Any, kind: pa.DataType, name: str, where: str) -> Any:
    """Return a column of one file in the type that it has over all files, which may not hold all of
    its values."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid as error:
        kinds = (
            f"{column.type}, which as {kind}, the type over all files, would lose digits ({error})"
        )
        raise DataError(
            f"{where}: the files have columns of different kinds: {name!r} is {kinds}"
        ) from error


def pandas_metadata(metadata: Mapping[bytes, bytes] | None) -> dict[str, Any]:
    """Return what pandas wrote of dtypes; no column of the file is an index, and all names are
    text."""
    written = json.loads((metadata or {}).get(b"pandas", b"{}"))
    return {"columns": [], **written, "index_columns": [], "column_indexes": []}

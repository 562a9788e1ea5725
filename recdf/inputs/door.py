"""What is settled before a function sees its arguments: `options=` of a project, and names of
columns that differ.

Contract: behind the door there are plain options and frames with standard names. A frame gets its
names by a shallow copy, whatever library it comes from, and files get them where they are read.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas import DataFrame

from ..docstrings import Function, says_as
from ..errors import ColumnError, DataError, OptionError, closest, kind_of
from .constraints import constraints_taken
from .frames import UNREAD, RowsInParts, as_frame, engine_of, is_elsewhere, plain_table
from .ids import codes_of_ids
from .lazy_frames import LazyRows, lazy_rows
from .list_cells import item_lists
from .options import (
    DESCRIPTION,
    NAMES,
    NAMES_OF,
    OPTIONS,
    ByName,
    Options,
    as_columns,
    id_columns,
    parameters,
)
from .true_and_pred import looks_like_order

# What orders `pred`: an option of a call replaces the other one of its project.
ONE_OF_TWO = {"score_col": "rank_col", "rank_col": "score_col"}


STANDARD_NAMES = (
    "user_id",
    "item_id",
    "score",
    "rank",
    "relevance",
)  # columns that are found without an option


class NamedFiles(NamedTuple):
    """Files whose columns have other names: `names` has the name in the files for each standard
    name."""

    path: Any
    names: Mapping[str, str]


# Arguments that are tables of users or of their days, and which of their columns are read from an
# engine.
TABLES_OF_USERS = ("per_user", "assignment", "rows")
EngineColumns = Literal["named", "named and ids", "by user", "rows by user"]

ARRAYS = (np.ndarray, pd.Index, pd.Series)

# Who is counted once, or what varies together, is the user of a project.
OF_USER = ("cluster", "unit_col")


def at_the_door(
    given: ByName, takes: Collection[str] = NAMES, every_number: bool = False
) -> dict[str, Any]:
    """Return arguments with those that `options=` states among `takes`, and with frames that have
    standard names."""
    found = dict(given)
    project = found.pop("options", None)
    if project is not None:
        if not isinstance(project, Options):
            words = f"options is {kind_of(project)}; expected rd.Options(user_col=..., ...)"
            raise OptionError(words, argument="options", value=project)
        stated = (
            project.given if takes is NAMES else project.given | {"weight_col": project.weight_name}
        )
        if "user_col" in stated:
            keys = as_columns(project.user_col)
            stated |= dict.fromkeys(OF_USER, "user_id" if "user_id" in keys else keys[0])
        replaced = [name for name, rival in ONE_OF_TWO.items() if found.get(rival) is not None]
        found = {
            name: value for name, value in stated.items() if name in takes and name not in replaced
        } | found
    if takes is NAMES:
        found |= _lazy_as_frames(found, every_number)
    else:
        found |= {
            name: table_of_users(found[name], name)
            for name in ("per_user", "assignment")
            if name in found
        }
    for role in ("true", "pred"):
        names = found.pop(f"{role}_cols", None)
        path = f"{role}_path"
        if names is None:
            continue
        check_names_of_columns(names, role, found)
        if found.get(role) is not None:
            found[role] = renamed_columns(found[role], names, role)
        elif found.get(path) is not None:
            found[path] = NamedFiles(found[path], names)
    form = {
        name: OPTIONS[name].constraint.check(name, found[name])
        for name in ("items_sep", "wide")
        if found.get(name) is not None
    }
    orders = [one for name in ONE_OF_TWO if isinstance(one := found.get(name), str)]
    return found | _long_frames(found, orders, **form) if orders or form else found


def _long_frames(
    found: ByName,
    orders: Sequence[str],
    items_sep: str | None = None,
    wide: Any = None,
) -> dict[str, DataFrame]:
    """Return those of the frames that are in memory, with one item in a row."""
    user = found.get("user_col", "user_id")
    item = id_columns(found)[-1]
    there = [
        role
        for role in ("true", "pred", "base", "log", "exclude")
        if found.get(role) is not None
        and engine_of(found[role]) is None
        and not isinstance(found[role], RowsInParts)
        and (items_sep or not isinstance(found[role], Mapping))
    ]
    frames = {role: as_frame(found[role], role, user, item, orders) for role in there}
    lists = item_lists(frames, item, items_sep, wide, orders)
    return {
        role: lists[role].frame(one)
        for role, one in frames.items()
        if not isinstance(found[role], Mapping)
    }


# Arguments with rows, of which only the columns are read that the call names; and others that name
# no column.
OF_NAMED_COLUMNS = ("true", "pred", "base", "items", "log", "exclude", "train")
OF_NO_NAMES = (*OF_NAMED_COLUMNS, "users", "features", "aspects", "popular")
NUMBER_TYPES = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
FOUND_BY_NAME = (*STANDARD_NAMES, "category", "group")


def _lazy_as_frames(found: ByName, every_number: bool) -> dict[str, Any]:
    """Return the lazy rows among the arguments as frames of the columns that the call may ask
    for."""
    lazy = {name: lazy_rows(one) for name, one in found.items() if not name.endswith("_path")}
    texts: set[str] = set()
    if any(lazy.values()):
        texts = _texts([one for name, one in found.items() if name not in OF_NO_NAMES])
    wide = found.get("wide")  # may be what the names of columns begin with

    def read(name: str, rows: LazyRows) -> DataFrame:
        names = []
        for field in rows.schema:
            own = field.name
            kind = field.type
            number = any(of(kind) for of in NUMBER_TYPES) or (
                every_number and pa.types.is_boolean(kind)
            )
            # A column that no argument names is found by its name, or warned of if it looks like a
            # score or a rank.
            looks = number and (every_number or looks_like_order(own))
            begins = isinstance(wide, str) and wide and own.startswith(wide)
            if name not in OF_NAMED_COLUMNS or own in {*texts, *FOUND_BY_NAME} or looks or begins:
                names.append(own)
        table = plain_table(rows.table(names, name))
        frame = table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
        # A message about a column that the frame lacks also names those that were not read.
        frame.attrs[UNREAD] = [one for one in rows.schema.names if one not in names]
        return frame

    return {name: read(name, rows) for name, rows in lazy.items() if rows is not None}


def _in_memory(
    given: ByName, columns: EngineColumns
) -> tuple[dict[str, Any], dict[str, DataFrame]]:
    """Return the tables of users that are frames of Spark or Dask or paths of files in memory: the
    columns that the arguments name, and if they are asked for, those that may be ids. Return also
    the first row of each with all its columns.

    `given` has the defaults too.
    """
    with_ids = columns in ("named and ids", "rows by user")
    heads: dict[str, DataFrame] = {}
    texts = _texts([one for name, one in given.items() if name not in TABLES_OF_USERS])
    texts |= {"user_id", "n_true", "n_rows", "weight"}

    def needed(name: str, head: DataFrame) -> list[str]:
        heads[name] = head
        return [
            name
            for name in head.columns
            if name in texts or (with_ids and codes_of_ids(head[name]) is not None)
        ]

    def read(name: str) -> Any:
        from .data_files import needed_frame  # loads what few calls need

        return needed_frame(given[name], name, functools.partial(needed, name))

    tables = [name for name in TABLES_OF_USERS if (name, columns) != ("rows", "rows by user")]
    elsewhere = [name for name in tables if is_elsewhere(given.get(name))]
    return {name: read(name) for name in elsewhere}, heads


def table_of_users(data: Any, role: str) -> Any:
    """Return a table of another library as a frame, and anything else as it is."""
    data = data if (rows := lazy_rows(data)) is None else rows.table(rows.schema.names, role)
    if isinstance(data, DataFrame) or not (
        hasattr(data, "__arrow_c_stream__") and hasattr(data, "columns")
    ):
        return data
    from .data_files import needed_frame  # loads what few calls need

    return needed_frame(data, role, lambda head: head.columns.tolist())


def _texts(value: Any) -> set[str]:
    """Return all texts of an argument that may name a column, such as that of a parameter in the
    string of a metric."""
    if isinstance(value, str):
        return {value, *re.findall(r"\w+", value)}
    value = [*value, *value.values()] if isinstance(value, Mapping) else value
    several = isinstance(value, list | tuple | set | frozenset)
    return set().union(*map(_texts, value)) if several else _texts(getattr(value, "defaults", ()))


def check_names_of_columns(names: Any, role: str, given: ByName) -> None:
    """Raise unless this is a mapping of standard names to names of columns, each of them once.

    `given` are options of the call. Its list key and its item are standard names, which every frame
    needs.
    """
    NAMES_OF.check(f"{role}_cols", names)
    keys = id_columns(given)
    _refuse_turned(
        names, role, [name for name, own in names.items() if own in keys and own not in names]
    )
    for own in names.values():
        twice = [repr(name) for name, one in names.items() if one == own]
        if len(twice) > 1:
            raise OptionError(
                f"{role}_cols names one column twice: {' and '.join(twice)} are {own!r}"
            )


def _refuse_turned(names: Mapping[str, str], role: str, turned: Collection[str]) -> None:
    """Raise if the mapping gives names in the frame first, as it does for `turned`. The message
    shows it turned."""
    if turned:
        right = dict((own, name) if name in turned else (name, own) for name, own in names.items())
        raise ColumnError(
            f"⟦{role}_cols={dict(names)!r}⟧ is the wrong way round: the standard name comes first, "
            f"then that in {role}; pass ⟦+{role}_cols={right!r}⟧"
        )


def new_names(columns: Iterable[Hashable], names: Mapping[str, str], role: str) -> list[Any]:
    """Return the names of a frame's columns where `names` has the name in the frame for each
    standard name."""
    columns = list(columns)
    standard = {own: name for name, own in names.items()}
    absent = [name for name, own in names.items() if own not in columns]
    _refuse_turned(
        names, role, [name for name in absent if name in columns and name not in STANDARD_NAMES]
    )
    for own, name in standard.items():
        if own not in columns:
            has = f"{', '.join(map(repr, columns[:20]))}{closest(own, columns)}"
            raise ColumnError(
                f"{role} has no column {own!r}, which ⟦{role}_cols=⟧ gives for {name!r}; it has "
                f"{has}"
            )
        if name in columns and name not in standard:
            raise ColumnError(
                f"⟦{role}_cols=⟧ names {own!r} as {name!r}, and {role} has a column {name!r} too; "
                "drop one of them, or name the other one as well"
            )
    return [standard.get(one, one) if isinstance(one, str) else one for one in columns]


def renamed_columns(data: Any, names: Mapping[str, str], role: str) -> Any:
    """Return a frame with the standard names for its columns; its values are not copied."""
    package = type(data).__module__.partition(".")[0]
    if package == "pyspark" and hasattr(data, "toDF"):
        return data.toDF(*new_names(data.columns, names, role))
    if package in ("dask", "dask_expr") and hasattr(data, "rename"):
        return data.rename(
            columns=dict(zip(data.columns, new_names(data.columns, names, role), strict=True))
        )
    if isinstance(data, Mapping):
        raise ColumnError(f"{role} is a mapping, which has no columns; {role}_cols= is for frames")
    frame = as_frame(data, role).copy(deep=False)
    frame.columns = pd.Index(new_names(frame.columns, names, role))
    return frame


def checks_names(function: Function) -> Function:
    """Let a function refuse arguments that are not what its annotations ask for: names, mappings,
    labels, one of a few values, or numbers within limits."""
    return _called_by_name(function, lambda given: function(**_with_names(function, given)))


def _called_by_name(function: Callable[..., Any], call: Callable[[dict[str, Any]], Any]) -> Any:
    """Return a function with the signature of another one that gives all arguments by name to
    `call`."""
    order = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def with_named_arguments(*args: Any, **kwargs: Any) -> Any:
        named = dict(zip(order, args, strict=False))
        if len(args) > len(order) or named.keys() & kwargs.keys():
            return function(*args, **kwargs)  # Python says what is wrong
        return call(named | kwargs)

    return with_named_arguments


def _with_names(function: Callable[..., Any], given: ByName) -> dict[str, Any]:
    """Return the arguments of a function, of which those that its annotations limit are checked;
    names in an array or an index are a list behind the door."""
    found = dict(given)
    for name, constraint in constraints_taken(function).items():
        if name in found:
            given_once = isinstance(found[name], Iterator)  # a generator is read here alone
            value = constraint.check(name, list(found[name]) if given_once else found[name])
            found[name] = list(value) if isinstance(value, ARRAYS) else value
    return found


def takes_options(
    *names: str,
    every_number: bool = False,
    engines: EngineColumns | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
    **texts: str,
) -> Callable[[Function], Function]:
    """Let a function see its arguments as they are behind the door.

    A function of per-user tables or of logs takes from `options=` those of the arguments `names`
    that are not given. `engines` says which columns of frames of Spark or Dask come into memory;
    without it such frames are refused. With "by user" the function deals all tables itself, and
    with "rows by user" it deals `rows`, while others come into memory with their ids.

    A function without `names` takes all shared options as `**options`, which its signature and help
    show. There, `every_number` says that it looks at all columns of numbers, `more` are other
    arguments that it takes so, with their types, and `texts` stand where its docstring has their
    names.
    """

    def taking(function: Function) -> Function:
        signature = inspect.signature(function)
        known = signature.parameters
        defaults = {name: one.default for name, one in known.items()}

        def settled(named: dict[str, Any]) -> Any:
            given = at_the_door(named, names or NAMES, every_number)
            if names:
                given = _with_names(function, given)
            # A bucket cannot have all rows of its users and all of its clusters.
            if engines is None or (engines == "by user" and not given.get("cluster")):
                return function(**given)
            read, heads = _in_memory(defaults | given, engines)
            try:
                return function(**given | read)
            except ColumnError:
                if heads:  # the message names all columns, and not only those that were read
                    with suppress(DataError, OptionError):
                        function(**given | heads)
                raise

        found = _called_by_name(function, settled)
        if names:
            return found
        own = [one for one in known.values() if one.kind is not one.VAR_KEYWORD]
        own += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in more.items()
        ]
        found.__signature__ = signature.replace(parameters=own + parameters())
        return says_as({"options": DESCRIPTION, **texts})(found)

    return taking

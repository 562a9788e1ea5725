"""Options from files count as if they were typed before those of the command line.

`--config job.toml` holds those of one job. A project states what all its jobs share once, in
`recdf.toml` or in the table `[tool.recdf]` of `pyproject.toml`. What is typed comes before the
job's file, and that before the project's. The words of both files stand in `run.json` as if they
had been typed, and what a project gave is said on stderr.
"""

from __future__ import annotations

import argparse
import glob
import os
import tomllib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import OptionError, closest
from ..inputs.options import OPTIONS, ByName
from .arguments import OF_FILES, Parser, add_arguments, file, local

PYPROJECT = "pyproject.toml"
PROJECT_FILES = "recdf.toml", PYPROJECT  # the first one of a folder counts


CONFIG_FLAGS = {
    "--config FILE": "TOML file of options, with the names of the flags as keys (by = 'model'), "
    "for this command, or in a table of its name ([evaluate]) beside those of others; a flag that "
    "is given wins",
    "--project FILE": "the project's file of options; by default the nearest recdf.toml, or "
    "pyproject.toml with [tool.recdf], in this folder or above. A flag and --config win",
    "--no-project": "leave the options of the project's file out",
}


def with_files(
    argv: Sequence[str], commands: Mapping[str, Parser], command: str
) -> tuple[list[str], list[str]]:
    """Return the arguments of a command with those of its files before them, and those that the
    project's file gave.

    Raises
    ------
    OptionError
        If a file has a key that the command has no flag for, or a value that the flag does not
        take.
    """
    at = 1 + argv.index(command)
    files = Parser(prog=f"recdf {command}", add_help=False)
    add_arguments(files, {"--config FILE": "", "--project FILE": ""})
    of_files, typed = files.parse_known_args(argv[at:])
    job = of_files.config
    parser = commands[command]
    own = _keys_and_actions(commands[command])
    words: dict[str, list[str]] = {}  # by the name of the argument; the file taken first wins

    def take(source: str, keys: ByName, folder: Path | None = None, shared: bool = False) -> None:
        """Take the keys of a file, or of a table of it, whose paths are those of the `folder`. Of
        keys that all commands share, those that this command lacks are left out."""
        known = {*own}
        if shared:
            known.update(*map(_keys_and_actions, commands.values()))
        so_far = [*typed, *(one for some in words.values() for one in some)]
        given = {  # --k=5, -k5
            word.partition("=")[0] if word.startswith("--") else word[:2] for word in so_far
        }
        seen: dict[str, str] = {}
        found = {}
        for key, value in keys.items():
            name = key.replace("_", "-")
            if name not in known or (folder and name == "no-project"):
                lacks = "no command has an" if shared else f"recdf {command} has no"
                meant = f"; leave out tool.recdf, which is for {PYPROJECT}"
                if key != "tool":
                    meant = closest(key, sorted([*known, *commands]))
                raise OptionError(f"{source}: {lacks} option {key!r}{meant}")
            action = own.get(name)
            if action is None:
                continue
            if action.dest in seen:
                raise OptionError(f"{source}: {key} is given twice, as {seen[action.dest]} too")
            seen[action.dest] = key
            rivals = {  # the flags that the argument excludes, as -q excludes -v
                flag
                for group in parser._mutually_exclusive_groups
                if action in group._group_actions
                for one in group._group_actions
                for flag in one.option_strings
                if one is not action
            }
            rivals |= {*(action.option_strings if folder else ())}
            if action.dest not in words and not rivals & given:
                placed = value if folder is None else _from_here(action, value, folder)
                found[action.dest] = _as_arguments(parser, action, f"{source}: {key} =", placed)
        words.update(found)

    if job is not None:
        take(f"--config {job}", _keys_of_job(job, command, commands))
    of_job = {*words}
    project = None
    if not {"--no-project", "-h", "--help"} & {*typed, *words.get("no_project", [])}:
        project = _project(of_files.project)
    if project is not None:
        path, keys = project
        tables = {name for name in keys.keys() & commands.keys() if isinstance(keys[name], dict)}
        take(f"{path} [{command}]", keys[command] if command in tables else {}, path.parent)
        shared = {name: one for name, one in keys.items() if name not in tables}
        take(str(path), shared, path.parent, shared=True)
    places = [one.dest for one in own.values() if not one.option_strings and one.dest in words]
    if typed and not typed[0].startswith("-"):
        for dest in places:
            del words[dest]
        places = []
    given = [one for dest, some in words.items() if dest not in of_job for one in some]
    positional = [one for dest in places for one in words.pop(dest)]
    ends = [f"--project={project[0]}"] if project and given else []
    ends += [] if job is None else [f"--config={job}"]
    flags = [one for some in words.values() for one in some]
    return [*argv[:at], *positional, *flags, *ends, *typed], given


def _as_arguments(parser: Parser, action: argparse.Action, said: str, value: Any) -> list[str]:
    """Return the words for one key; an error begins with `said`."""
    shown = value
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise OptionError(f"{said} {value!r}; expected true or false")
        return [action.option_strings[-1]] if value else []
    if isinstance(value, bool) and action.dest in OPTIONS and OPTIONS[action.dest].flag_alone:
        return [f"{action.option_strings[-1]}={value}"]
    if (
        isinstance(value, dict)
        and "=" in str(action.metavar)
        and all(map(_is_plain, value.values()))
    ):
        value = [f"{name}={one}" for name, one in value.items()]
    values = value if isinstance(value, list) else [value]
    if not all(map(_is_plain, values)):
        raise OptionError(f"{said} {shown!r}; expected text, a number, or a list of them")
    texts = [str(one) for one in values]
    if len(texts) > 1 and action.nargs is None:
        raise OptionError(f"{said} {shown!r}; expected one value")
    if not texts and action.nargs != "*":
        raise OptionError(f"{said} []; expected a value; leave the key out for the default")
    for text in texts:
        try:
            parser._check_value(action, parser._get_value(action, text))
        except argparse.ArgumentError as error:
            raise OptionError(f"{said} {shown!r}: {error.message}") from None
    if not texts or not action.option_strings:
        return texts or [action.option_strings[-1]]
    # Flag and value are one word, since a value may begin with a dash.
    flag = action.option_strings[-1]
    return [f"{flag}{'=' if flag.startswith('--') else ''}{text}" for text in texts]


def _keys_of_job(path: str, command: str, commands: Collection[str]) -> ByName:
    """Return the options of a command in the file of --config."""
    keys = _toml(Path(path).expanduser(), f"--config {path}")
    tables = [name for name, value in keys.items() if isinstance(value, dict) and name in commands]
    if not tables:
        return keys
    if command not in tables:
        raise OptionError(f"--config {path} has no table [{command}]; it has {', '.join(tables)}")
    if beside := [name for name in keys if name not in tables]:
        raise OptionError(
            f"--config {path}: {beside[0]} stands outside of the tables; move it into [{command}]"
        )
    return keys[command]


def _project(named: str | None) -> tuple[Path, ByName] | None:
    """Return the project's file and its options: the one that is named, or the nearest one that has
    some.

    The search ends at the root of a repository, and at the home folder.
    """
    if named is not None:
        found = Path(named).expanduser()
        if (keys := _keys_of_project(found)) is None:
            raise OptionError(f"--project {named} has no table [tool.recdf]")
        return found, keys
    home = Path(os.path.realpath(os.path.expanduser("~")))
    here = Path(os.curdir)
    with suppress(FileNotFoundError):  # the current folder was removed
        here = Path.cwd()
    for folder in (here, *here.parents):
        for path in (folder / name for name in PROJECT_FILES):
            if os.path.isfile(path) and (keys := _keys_of_project(path)) is not None:
                return Path(path.name) if folder == here else path, keys
        if folder == home or os.path.exists(folder / ".git"):
            break
    return None


def _keys_of_project(path: Path) -> ByName | None:
    keys = _toml(path, str(path))
    if path.name != PYPROJECT:
        return keys
    tool = keys.get("tool")
    found = tool.get("recdf") if isinstance(tool, dict) else None
    if found is not None and not isinstance(found, dict):
        raise OptionError(f"{path}: tool.recdf = {found!r}; expected a table [tool.recdf]")
    return found


def _toml(path: Path, source: str) -> dict[str, Any]:
    try:
        return tomllib.loads(
            path.read_text(encoding="utf-8-sig")
        )  # editors of Windows begin a file with a mark
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise OptionError(f"{source} is no TOML file: {error}") from None


def _keys_and_actions(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the arguments by their keys: the flags without dashes, or the name if there is no
    flag."""
    actions = [action for action in parser._actions if action.dest not in {"help", *OF_FILES}]
    return {
        key: action
        for action in actions
        for key in [flag.lstrip("-") for flag in action.option_strings] or [action.dest]
    }


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _from_here(action: argparse.Action, value: Any, folder: Path) -> Any:
    """Return the value with paths of a project's file, which are those of its folder, as paths of
    the current one."""
    if isinstance(value, list):
        return [_from_here(action, one, folder) for one in value]
    if action.type not in (file, local) or not isinstance(value, str) or "://" in value:
        return value
    path = os.path.join(folder, os.path.expanduser(value))
    if " or " in str(action.metavar) and not glob.glob(path):  # a word or a column, and no file
        return value
    return path if os.path.isabs(os.path.expanduser(value)) else os.path.relpath(path)

"""`--config job.toml`: options from a file count as if they were typed before those of the command line."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import OptionError, closest
from ..inputs.options import OPTIONS
from .arguments import add_arguments


def add_config(command: Any) -> None:
    text = "TOML file of options, with the names of the flags as keys (by = 'model'), for this command, or in a table "
    text += "of its name ([evaluate]) beside those of others; a flag that is given wins"
    add_arguments(command, {"--config FILE": text})


def with_config(argv: Sequence[str], parser: argparse.ArgumentParser, command: str) -> list[str]:
    """Return the arguments of a command, with those of its --config file before them.

    Raises
    ------
    OptionError
        If the file has a key that the command has no flag for, or a value that no flag takes.
    """
    at = 1 + list(argv).index(command)
    path, typed = _without_config(argv[at:])
    if path is None:
        return list(argv)
    try:
        keys = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"--config {path} is no TOML file: {error}") from None
    tables = [name for name, value in keys.items() if isinstance(value, dict)]
    if tables:
        if command not in tables:
            raise OptionError(f"--config {path} has no table [{command}]; it has {', '.join(tables)}")
        if len(tables) < len(keys):
            beside = next(name for name in keys if name not in tables)
            raise OptionError(f"--config {path}: {beside} stands outside of the tables; move it into [{command}]")
        keys = keys[command]
    actions = {name: action for action in parser._actions for name in _argument_keys(action)}
    seen: dict[str, str] = {}
    before: list[str] = []
    after: list[str] = []
    for key, value in keys.items():
        action = actions.get(key.replace("_", "-"))
        if action is None or key == "config":
            known = sorted(actions)
            raise OptionError(f"--config {path}: recdf {command} has no option {key!r}{closest(key, known)}")
        if not action.option_strings:
            after.append(str(value))
        elif action.dest in seen:
            raise OptionError(f"--config {path}: {key} is given twice, as {seen[action.dest]} too")
        elif not any(word in _rivals(parser, action) for word in typed):
            seen[action.dest] = key
            before += _as_arguments(action, key, value, path)
    positional = [] if typed and not typed[0].startswith("-") else after
    return [*argv[:at], *positional, *before, f"--config={path}", *typed]


def _without_config(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the path of the first --config, and the other words."""
    for place, word in enumerate(words):
        if word == "--config" and place + 1 < len(words):
            return words[place + 1], [*words[:place], *words[place + 2 :]]
        if word.startswith("--config="):
            return word.partition("=")[2], [*words[:place], *words[place + 1 :]]
    return None, list(words)


def _rivals(parser: argparse.ArgumentParser, action: argparse.Action) -> set[str]:
    """Return the flags that an argument excludes, as -q excludes -v."""
    groups = [group._group_actions for group in parser._mutually_exclusive_groups if action in group._group_actions]
    return {flag for group in groups for one in group if one is not action for flag in one.option_strings}


def _argument_keys(action: argparse.Action) -> list[str]:
    """Return the keys of an argument: its flags without dashes, or its name if it has no flag."""
    return [flag.lstrip("-") for flag in action.option_strings] or [action.dest]


def _as_arguments(action: argparse.Action, key: str, value: Any, path: str) -> list[str]:
    flag = action.option_strings[-1]
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise OptionError(f"--config {path}: {key} = {value!r}; expected true or false")
        return [flag] if value else []
    if isinstance(value, bool) and action.dest in OPTIONS and OPTIONS[action.dest].flag_alone:
        return [f"{flag}={value}"]
    values = value if isinstance(value, list) else [value]
    if not all(isinstance(one, str | int | float) and not isinstance(one, bool) for one in values):
        raise OptionError(f"--config {path}: {key} = {value!r}; expected text, a number, or a list of them")
    if len(values) > 1 and action.nargs is None:
        raise OptionError(f"--config {path}: {key} = {value!r}; expected one value")
    if not values and action.nargs != "*":
        raise OptionError(f"--config {path}: {key} = []; expected a value; leave the key out for the default")
    if not values:
        return [flag]
    # Flag and value are one word, since a value may begin with a dash.
    join = "=" if flag.startswith("--") else ""
    return [f"{flag}{join}{one}" for one in values]

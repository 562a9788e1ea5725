"""Arguments of the commands, made from the options and parameters that the functions document."""

from __future__ import annotations

import argparse
import inspect
import os
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

from ..errors import OptionError
from ..inputs.conventions import CONVENTIONS
from ..inputs.options import CHOICES, DESCRIPTION, NAMES, Options

__all__ = ["Parser", "add_options", "add_out", "add_parameters", "check_out", "in_flags", "option_texts"]

FILES = (
    "A FILE is a .parquet, .csv or .tsv file (also .csv.gz), a folder of them, a quoted glob ('pred/*.parquet'), or an "
    "address (s3://, gs://, https://) that fsspec reads; folders named day=2026-11-20 make a column. Ids in text files "
    "are integers where every file writes the column as plain integers (7, not 007 or 7.0), else text."
)


class Parser(argparse.ArgumentParser):
    """A parser that reports a usage error in one line and can list its flags."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments, allow_abbrev=False)  # an abbreviation would break when an option is added
        self.register("action", None, _Given)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def flags(self) -> dict[str, str]:
        """Return the long flag of every argument, by the name that it has in Python."""
        return {action.dest: action.option_strings[-1] for action in self._actions if action.option_strings}


class _Given(argparse.Action):
    """Store one value, or the values of all places where the flag of a list stands. One value given twice is an error.

    Options of --config stand first. The flag --config ends them, so that a flag behind it replaces what the file gave.
    """

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        seen = vars(namespace).setdefault("seen", set())
        again = self.dest in seen
        if isinstance(values, list):
            values = [*(getattr(namespace, self.dest) if again else []), *values]
        elif again:
            raise argparse.ArgumentError(self, "given twice; expected one value")
        setattr(namespace, self.dest, values)
        seen.add(self.dest)
        if self.dest == "config":
            seen.intersection_update({"config"})


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


# The command for each function, with longer names first.
COMMANDS = {
    "evaluate_parquet": "recdf evaluate --stream",
    "Evaluation.to_parquet": "recdf evaluate --out",
    "compare_variants": "recdf experiment",
    "experiment_health": "recdf experiment",
    "join_experiment": "recdf experiment",
    "compare_models": "recdf compare",
    "from_impressions": "recdf impressions",
    "evaluate": "recdf evaluate",
    "check": "recdf check",
}


def in_flags(text: str, flags: Mapping[str, str]) -> str:
    """Rewrite a message for the command line: Python's `null_keys="drop"` becomes `--null-keys drop`."""
    # An option that this command lacks is one of `recdf evaluate`.
    flags = {name: flag(name) for name in NAMES} | dict(flags)
    text = re.sub(rf"\brd\.({'|'.join(COMMANDS)})\b(?:\([^()]*\))?", lambda found: COMMANDS[found[1]], text)
    text = text.replace("both with .astype(str) on", "both as text:").replace("with .astype(str)", "to text")
    text = text.replace(".astype(str)", " as text")

    def as_flag(found: re.Match[str]) -> str:
        value = found[2] or found[3]
        return flags[found[1]] + (f" {value}" if value else " " if found[4] else "")

    return re.sub(rf"\b({'|'.join(flags)})=(?:True\b|\(\)|\"(\w+)\"|'([^']*)'|(?=([\w\[-])))?", as_flag, text)


def add_out(group: Any, text: str) -> None:
    group.add_argument("--out", type=local, metavar="FOLDER", help=text)
    group.add_argument("--overwrite", action="store_true", help="replace a result that is already there")


def file(text: str) -> str:
    """Return the path, glob or address of a file to read, with ~ for the home folder."""
    return os.path.expanduser(text)


def local(text: str) -> Path:
    """Return a path of this machine; results are written here, and copied to an address by another program."""
    if "://" in text:
        where = "expected a path of this machine: copy it to or from there"
        raise argparse.ArgumentTypeError(f"{text} is an address; {where}")
    return Path(text).expanduser()


def as_pairs(flag: str, texts: Iterable[str], expected: str) -> dict[str, str]:
    """Return name → value from texts such as A=0.5; a name that is there twice is an error."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        if not equals:
            raise OptionError(f"{flag} {text}; expected {expected}")
        if name in pairs:
            raise OptionError(f"{flag} {text}: {name} is given twice")
        pairs[name] = value
    return pairs


def as_numbers(flag: str, texts: Iterable[str] | None, expected: str) -> dict[str, float] | None:
    """Return name → number from texts such as A=0.5, or None without texts."""
    numbers = {}
    for name, value in as_pairs(flag, texts or [], expected).items():
        try:
            numbers[name] = float(value)
        except ValueError:
            raise OptionError(f"{flag} {name}={value}; expected {expected}") from None
    return numbers or None


def check_out(folder: Path | None, names: Iterable[str], overwrite: bool) -> None:
    """Check the folder of the results before any work is done, instead of when they are written."""
    if folder is None:
        return
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise FileExistsError(f"{there} is a file; expected a folder")
    held = [name for name in names if (folder / name).exists()]
    if held and not overwrite:
        raise FileExistsError(f"{folder} already holds {held[0]}; pass --overwrite to replace the result")


# ------------------------------------------------------------------------------------- the shared options


# Options that take a column, or True or False. A flag without a column stands for True.
OR_FALSE = ("score_col", "relevance_col", "by_in_true")


def add_options(group: Any, names: Sequence[str] = NAMES) -> None:
    """Add one argument for each of these fields of `Options`; options that are not given are left out of the result."""
    texts, types = option_texts(), typing.get_type_hints(Options)
    for field in fields(Options):
        if field.name in names:
            _add_option(group, field.name, types[field.name], texts.get(field.name, ""))


def _add_option(group: Any, name: str, kind: Any, text: str) -> None:
    shape: dict[str, Any] = {"default": argparse.SUPPRESS, "help": text.replace("%", "%%")}
    if kind is bool:
        shape["action"] = "store_true"
    elif name == "users":
        shape |= {"metavar": "{" + ",".join(CHOICES[name]) + "} or FILE", "type": file}
    elif name in CHOICES:
        shape["choices"] = CHOICES[name]
    elif name == "like":
        shape["metavar"] = "{" + ",".join(CONVENTIONS) + "}"  # not choices: the error of recdf suggests the closest
    elif Sequence[str] in typing.get_args(kind):
        shape |= {"nargs": "*" if name in OR_FALSE else "+", "metavar": "COLUMN"}
    elif kind is float or float in typing.get_args(kind):
        shape |= {"type": float, "metavar": "NUMBER"}
    elif name.endswith("_col"):
        shape["metavar"] = "COLUMN"
    else:
        shape["metavar"] = "NAME"
    if name in CHOICES or name in ("user_col", "item_col"):
        shape["help"] += f" Default {Options.__dataclass_fields__[name].default}."
    group.add_argument(flag(name), dest=name, **shape)


def given_options(given: argparse.Namespace) -> dict[str, Any]:
    """Return the shared options that were given, as the functions take them."""
    options = {name: value for name, value in vars(given).items() if name in NAMES}
    one = {name: value[0] if isinstance(value, list) and len(value) == 1 else value for name, value in options.items()}
    words: dict[Any, bool] = {"True": True, "False": False}
    return {
        name: words.get(str(value), value or True) if name in OR_FALSE else value for name, value in one.items()
    }


def option_texts() -> dict[str, str]:
    """Return the help of each option, from the docstring that all calls share."""
    texts = {name: text for name, (_, text) in _described(DESCRIPTION).items()}
    return texts | {"user_col": "Column or columns of the list key.", "item_col": "Column of the item id."}


def _described(doc: str) -> dict[str, tuple[str, str]]:
    """Return the type and the text of every parameter of a numpydoc section."""
    found = {}
    for names, kind, text in re.findall(r"^(\w[\w, ]*?) : (.*)\n?((?:    .*\n?)*)", doc, flags=re.M):
        found.update(dict.fromkeys(names.split(", "), (kind, " ".join(text.split()))))
    return found


# ----------------------------------------------------------------------------- parameters of one function


def add_parameters(group: Any, function: Callable[..., Any], names: Sequence[str]) -> None:
    """Add one argument for each of these parameters of a function, from its docstring and defaults."""
    described = _described(inspect.getdoc(function) or "")
    defaults = inspect.signature(function).parameters
    for name in names:
        kind, text = described[name]
        default = defaults[name].default
        shape: dict[str, Any] = {"default": argparse.SUPPRESS}
        choices = re.match(r"\{(.*?)\}", kind)
        if choices:
            shape["choices"] = re.findall(r'"(.*?)"', choices[1])
        elif "list of str" in kind:
            shape |= {"nargs": "+", "metavar": "NAME"}
        elif isinstance(default, int) or kind.startswith("int"):
            shape |= {"type": int, "metavar": "N"}
        elif "float" in kind:
            shape |= {"type": float, "metavar": "NUMBER"}
        else:
            shape["metavar"] = "NAME"
        words = [text] if text else []
        if isinstance(default, str | int | float):
            words.append(f"Default {default}.")
        group.add_argument(flag(name), dest=name, help=" ".join(words).replace("%", "%%"), **shape)


def given_parameters(given: argparse.Namespace, names: Iterable[str]) -> dict[str, Any]:
    """Return those of the parameters that were given."""
    return {name: getattr(given, name) for name in names if hasattr(given, name)}

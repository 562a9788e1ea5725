"""Arguments of the commands, made from the options and parameters that the functions document, and
which of those that were given a function takes.

`EXAMPLES` are what the help of each command shows first: calls that a test runs in their order.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import re
import shlex
import textwrap
import types
import typing
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NoReturn

from ..errors import WORDS, Mention, OptionError
from ..experiments import compare_variants
from ..formats.file_sets import PathOfFormat
from ..formats.format_records import format_named
from ..inputs.conventions import CONVENTIONS
from ..inputs.door import check_names_of_columns
from ..inputs.options import NAMES, OPTIONS

EXAMPLES = {
    "demo": """
recdf demo
recdf demo --out shop""",
    "check": """
recdf check --true true.parquet --pred pred.parquet --by model""",
    "evaluate": """
recdf evaluate --true true.parquet --pred pred.parquet --by model -m ndcg@10
recdf evaluate --true true.parquet --pred pred.parquet --by model \\
  -m ndcg recall mrr -k 5 10 --out models
recdf evaluate --true true.parquet --pred pred.parquet --by model \\
  -m map@10 --like recommenders
recdf evaluate --true true.parquet --pred pred.parquet --by model \\
  -m coverage@10 popularity@10 --items items.parquet --log log.parquet
recdf evaluate --true true.parquet --pred shown.parquet --users pred \\
  -m hits@20 --out shown""",
    "compare": """
recdf compare models --baseline popularity --metric ndcg@10""",
    "leaderboard": """
recdf leaderboard models --baseline popularity""",
    "gate": """
recdf gate models --model knn --baseline models --baseline-model popularity \\
  --budget ndcg@10=-2%""",
    "diff": """
recdf diff models models --before-model popularity --after-model knn""",
    "report": """
recdf report models --baseline popularity --out page.html""",
    "audit": """
recdf audit --true true.parquet --pred pred.parquet --by model \\
  --log log.parquet""",
    "experiment": """
recdf experiment shown --assignment assignment.parquet --control A \\
  --missing zero --metric hits@20 --expected A=0.5 B=0.5""",
    "quantiles": """
recdf quantiles --rows requests.parquet --control A --metric ms \\
  --quantiles 0.5 0.99 --expected A=1 B=1""",
    "plan": """
recdf plan shown --metric hits@20 --rel-effect 0.05""",
    "aa": """
recdf aa shown --metric hits@20""",
    "srm": """
recdf srm --assignment visitors.parquet --column browser \\
  --expected A=0.5 B=0.5""",
    "interleave": """
recdf interleave --a popularity.parquet --b knn.parquet -k 10 --out mixed""",
    "interleaved": """
recdf interleaved mixed/lists.parquet --clicks clicks.parquet""",
    "impressions": """
recdf impressions impressions.parquet --clicks clicks.parquet \\
  --time-col time --window 24h --out lists""",
    "ope": """
recdf ope decisions.parquet --estimators ips snips""",
    "history": """
recdf history nights --fail-on drift""",
}


FILES_HELP = textwrap.fill(
    "A FILE is of a format that docs/files.md lists (.parquet, .csv, .jsonl, .arrow, a run or "
    "qrels of TREC, ...; also .csv.gz), a folder of such files, a quoted glob ('pred/*.parquet'), "
    "or an address (s3://, gs://, https://) that fsspec reads; folders named day=2026-11-20 make a "
    "column. Ids in CSV files are integers where every file writes the column as plain integers "
    "(7, not 007 or 7.0), else text.",
    78,
)


Given = dict[str, Any]  # arguments by their names

OF_FILES = {"config", "project"}  # the arguments that name files of options


class Parser(argparse.ArgumentParser):
    """A parser that reports a usage error in one line and can list its flags."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(
            **arguments, allow_abbrev=False
        )  # an abbreviation would break when an option is added
        self.register("action", None, _Given)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")

    def flags(self) -> dict[str, str]:
        """Return the long flag of every argument, by its name in Python, which may be the
        plural."""
        with_flags = [action for action in self._actions if action.option_strings]
        found = {action.dest: action.option_strings[-1] for action in with_flags}
        if "segment" in found:
            found.setdefault("by", found["segment"])
        return {f"{name}s": one for name, one in found.items()} | found


class _Given(argparse.Action):
    """Store one value, or the values of all places where the flag of a list stands. One value given
    twice is an error.

    Options of files stand first (see `option_files`). The flag --config or --project ends them, so
    that a flag behind it replaces what a file gave.
    """

    def __call__(
        self, parser: Any, namespace: Namespace, values: Any, option_string: Any = None
    ) -> None:
        seen = vars(namespace).setdefault("seen", set())
        again = self.dest in seen
        if isinstance(values, list):
            values = [*(getattr(namespace, self.dest) if again else []), *values]
        elif again:
            raise argparse.ArgumentError(self, "given twice; expected one value")
        setattr(namespace, self.dest, values)
        seen.add(self.dest)
        if self.dest in OF_FILES:
            seen.intersection_update(OF_FILES)


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
    "gate": "recdf gate",
    "experiments.compare_interleaved": "recdf interleaved",
    "experiments.interleave": "recdf interleave",
    "evaluate": "recdf evaluate",
    "check": "recdf check",
    "audit": "recdf audit",
}


# What makes a table with all columns, for a command that reads one.
DETAILED = "recdf experiment RESULTS --assignment FILE --control NAME --details --out FOLDER"


@contextmanager
def in_flags(flags: Mapping[str, str]) -> Iterator[None]:
    """Let messages speak in the words of the command line: `--null-keys drop` for Python's
    `null_keys="drop"`."""
    # An option that this command lacks is one of `recdf evaluate`.
    names = {name: flag(name) for name in NAMES} | {"details": DETAILED}
    before = WORDS.set(partial(_as_typed, names | dict(flags)))
    try:
        yield
    finally:
        WORDS.reset(before)


def _as_typed(flags: Mapping[str, str], part: Mention) -> str:
    """Write a part of a message as the command line takes it."""
    if part.kind == "call":
        return COMMANDS.get(part.name, str(part))
    if part.kind == "convert":
        if part.name != "str":
            return str(part)
        if not part.key:
            return f"{part.value} as text"
        return f"both as text: {part.value}" if part.value else "to text"
    if part.name not in flags:
        return str(part)
    try:
        value = ast.literal_eval(part.value)
    except (ValueError, SyntaxError):
        value = part.value
    value = [f"{name}={one}" for name, one in value.items()] if isinstance(value, dict) else value
    values = [] if value is True else value if isinstance(value, list | tuple) else [value]
    named = f"{ast.literal_eval(part.key[1:-1])}=" if part.key else ""
    as_shells_take_it = shlex.quote if part.name == "items_sep" else str
    return " ".join(
        [flags[part.name], *(as_shells_take_it(f"{named}{one}") for one in values if one != "")]
    )


MANY_VALUES = {"...": "+", "[...]": "*"}


def add_arguments(group: Any, texts: Mapping[str, str]) -> None:
    """Add arguments as a usage line writes them ("--cap NAME=QUANTILE ...", "--a FILE (required)",
    "--how {mean,sum}"), with their help; "[...]" takes no value too, and one word is a switch."""
    for usage, text in texts.items():
        words = usage.split()
        flags = [word for word in words if word.startswith("-")] or [words[0].lower()]
        name = " ".join(word for word in words if word not in (*flags, *MANY_VALUES, "(required)"))
        how: Given = {"required": True} if "(required)" in words else {}
        for word in MANY_VALUES.keys() & {*words}:
            how["nargs"] = MANY_VALUES[word]
        if name.startswith("{"):
            how["choices"] = name[1:-1].split(",")
        else:
            how |= {"metavar": name, "type": TYPES.get(name)} if name else {"action": "store_true"}
        group.add_argument(*flags, help=text, **how)


def file(text: str) -> str:
    """Return the path, glob or address of a file to read, with ~ for the home folder."""
    return os.path.expanduser(text)


def local(text: str) -> Path:
    """Return a path of this machine; results are written here, and copied to an address by another
    program."""
    if "://" in text:
        where = "expected a path of this machine: copy it to or from there"
        raise argparse.ArgumentTypeError(f"{text} is an address; {where}")
    return Path(text).expanduser()


TYPES = {
    "FILE": file,
    "FILE or COLUMN": file,
    "LOG": file,
    "FOLDER": local,
    "RESULTS": local,
    "N": int,
    "K": int,
    "NUMBER": float,
    "PATH": local,
    "TABLE": local,
}


def as_pairs(
    flag: str, texts: Iterable[str] | None, expected: str, kind: Callable[[str], Any] = str
) -> dict[str, Any]:
    """Return name → value, of a kind, from texts such as A=0.5; a name that is there twice is an
    error."""
    pairs = {}
    for text in texts or []:
        name, equals, value = text.rpartition("=")
        try:
            found = kind(value)
        except ValueError:
            equals = ""
        if not equals:
            raise OptionError(f"{flag} {text}; expected {expected}")
        if name in pairs:
            raise OptionError(f"{flag} {text}: {name} is given twice")
        pairs[name] = found
    return pairs


def as_bounds(texts: Iterable[str] | None) -> dict[str, tuple[float, float]] | None:
    """Return metric → smallest and largest value from texts such as latency=0,30."""

    def pair(text: str) -> tuple[float, float]:
        low, high = map(float, text.split(","))
        return low, high

    expected = "a metric with its smallest and largest value, as latency=0,30"
    return as_pairs("--bounds", texts, expected, pair) if texts else None


BOUNDS_FLAG = {
    "--bounds METRIC=LOW,HIGH ...": "between which values a metric lies that recdf does not know, "
    "such as latency=0,30"
}


# -- the shared options

OF_COLUMNS = ("items_sep", "wide", "by", "by_in_true")


def add_options(command: Any, names: Sequence[str]) -> None:
    """Add one argument for each of these shared options, those of columns and rules apart. Those
    that are not given are left out of the result."""
    columns, rules = map(command.add_argument_group, ("columns", "rules"))
    for name, one in OPTIONS.items():
        if name in names:
            of_columns = name.endswith(("_col", "_cols")) or name in OF_COLUMNS
            group = columns if of_columns else rules
            sign = {"like": "LIBRARY", "items_sep": "TEXT"}.get(name, "COLUMN")
            shape = _shape(one.hint, sign) or {"metavar": sign}
            if name == "users":
                shape = {
                    "metavar": "{" + ",".join(one.constraint.values) + "} or FILE",
                    "type": file,
                }
            elif one.flag_alone:
                shape["nargs"] = "*"
            elif name.endswith("_cols"):
                shape = {"metavar": "NAME=COLUMN", "nargs": "+"}
            libraries = f" They are {', '.join(CONVENTIONS)}." if name == "like" else ""
            _add_documented(group, name, one.doc + libraries, one.default, shape)


def _shape(kind: Any, metavar: str, default: Any = None) -> Given | None:
    """Return how a value of an annotated type is given: as a switch, one of some words, numbers, or
    names. None if it cannot be typed, as a frame."""
    union = typing.get_origin(kind) in (types.UnionType, typing.Union)
    kinds = typing.get_args(kind) if union else (kind,)
    literals = [one for one in kinds if typing.get_origin(one) is typing.Literal]
    words = [word for one in literals for word in typing.get_args(one)]
    if kind is bool:
        return None if default is True else {"action": "store_true"}
    if any(isinstance(word, str) for word in words):
        return {"choices": words}
    if Sequence[str] in kinds:
        # "none" stands for None, where that is not the default.
        may_be_none = types.NoneType in kinds and default is not None
        return {"nargs": "*" if may_be_none else "+", "metavar": metavar}
    if tuple[float, float] in kinds:
        return {"nargs": "+", "type": float, "metavar": ("LOW", "HIGH")}
    if {Sequence[float], Sequence[float | None]} & {*kinds}:
        return {"nargs": "+", "type": float, "metavar": "NUMBER"}
    numbers = {int: "N", float: "NUMBER"}
    if number := next((one for one in numbers if one in kinds), None):
        return {"type": number, "metavar": numbers[number]}
    return {"metavar": metavar} if str in kinds else None


def _add_documented(group: Any, name: str, text: str, default: Any, shape: Given) -> None:
    """Add an argument of a function: one that is not given does not reach the function."""
    plain = isinstance(default, str | int | float) and not isinstance(default, bool)
    values = default if isinstance(default, tuple) else [default] if plain else []
    shown = f" Default {' '.join(map(str, values))}." if values else ""
    group.add_argument(
        *["-k"] * (name == "k"),
        flag(name),
        dest=name,
        default=argparse.SUPPRESS,
        help=(text + shown).replace("%", "%%"),
        **shape,
    )


def given_options(given: Namespace) -> Given:
    """Return the shared options that were given, as the functions take them."""
    options: Given = {}
    pairs: Given = {}
    for name in filter(partial(hasattr, given), NAMES):
        value = getattr(given, name)
        if name.endswith("_cols"):
            pairs[name] = as_pairs(flag(name), value, "NAME=COLUMN")
        else:
            options[name] = value[0] if isinstance(value, list) and len(value) == 1 else value
    pairs = {name: found for name, found in pairs.items() if found}
    for name, found in pairs.items():
        check_names_of_columns(found, name.removesuffix("_cols"), options)
    words = {"True": True, "False": False}
    for name, value in options.items():
        if OPTIONS[name].flag_alone:
            options[name] = words.get(str(value), value or True)
    return options | pairs


@cache
def _parameter_texts(function: Any) -> dict[str, str]:
    """Return the text of every parameter of a docstring."""
    doc = inspect.getdoc(function) or ""
    found = {}
    for names, text in re.findall(r"^(\w[\w, ]*?) : .*\n?((?:    .*\n?)*)", doc, flags=re.M):
        found.update(dict.fromkeys(names.split(", "), " ".join(text.split())))
    return found


# -- parameters of one function


@cache
def shapes_of(function: Callable[..., Any]) -> dict[str, tuple[Given | None, Any]]:
    """Return how each parameter is given, and its default."""
    of_function = function.__init__ if inspect.isclass(function) else function
    hints = typing.get_type_hints(of_function, include_extras=False)
    defaults = {name: one.default for name, one in inspect.signature(function).parameters.items()}
    return {
        name: (_shape(hints.get(name), "NAME", default), default)
        for name, default in defaults.items()
    }


def add_parameter(group: Any, function: Callable[..., Any], name: str) -> None:
    """Add an argument for a parameter of a function, from its annotation, docstring and default.
    Where it says nothing of the parameter, `compare_variants` may."""
    texts = _parameter_texts(compare_variants) | _parameter_texts(function)
    shape, default = shapes_of(function)[name]
    _add_documented(group, name, texts.get(name, ""), default, shape or {"metavar": "NAME"})


def taken_by(function: Callable[..., Any], options: Given) -> Given:
    """Return the options that a function takes."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in known}


def given_files(given: Namespace, *names: str) -> Given:
    """Return the paths of those of the files that were given; a command may lack some."""
    return {name: path for name in names if (path := getattr(given, name, None)) is not None}


FILE_FORMATS = {
    "--file-format ARGUMENT=FORMAT ...": "format of a file whose name does not tell it, by its "
    "argument: true=trec_qrels pred=trec_run"
}


def with_formats(given: Namespace) -> None:
    """Give the paths of the call the formats that --file-format names."""
    named = getattr(given, "file_format", None)
    for name, form in as_pairs("--file-format", named, "true=trec_qrels").items():
        argument = name.replace("-", "_")
        path = getattr(given, argument, None)
        if not isinstance(path, str):
            raise OptionError(f"--file-format {name}={form}: there is no file --{name}")
        setattr(given, argument, PathOfFormat(path, format_named(form).name))

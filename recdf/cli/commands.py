"""A command is made from its functions.

A command is one record. Its flags are the parameters of its functions, with their annotations,
defaults and docstrings; frames are files. `call` gives what the functions returned, and the text
for a terminal. Files, JSON, notes and the exit code follow from the tables.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pandas as pd

from ..judge.verdict import VERDICT_COLUMNS
from .arguments import (
    EXAMPLES,
    FILE_FORMATS,
    FILES_HELP,
    add_arguments,
    add_options,
    add_parameter,
    given_parameters,
    typed_parameters,
)
from .option_files import add_config
from .output import add_output, as_asked, fail_on, failing_verdicts, give_tables, say_why

Tables = Mapping[str, pd.DataFrame]
Given = dict[str, Any]


class Reply(NamedTuple):
    """What a command says: text for a terminal, the tables that are written, and those that JSON
    and CSV have if these are others.

    The exit code is that of `failings`, which are by default the verdicts of the tables, or `code`
    with its reasons. `texts` are written beside the tables.
    """

    text: str
    tables: Tables = MappingProxyType({})
    printed: Tables | None = None
    note: str = ""
    failings: Iterable[tuple[str, str]] | None = None
    always: Sequence[str] = ()  # failings that end the command with 1 without --fail-on
    code: int = 0
    reasons: Sequence[str] = ()
    texts: Mapping[Path, str] = {}


class Command(NamedTuple):
    """A command: its functions, and how they are called with the options that were given."""

    name: str
    says: str
    description: str
    usage: str
    call: Callable[[argparse.Namespace, Given], Reply]
    functions: Sequence[Callable[..., Any]] = ()
    writes: Sequence[str] | None = None
    files: Mapping[str, str] = {}
    arguments: Mapping[str, str] = {}  # those that no function has in this form
    without: Sequence[str] = ()  # parameters of the functions that the command gives itself
    untyped: Sequence[str] = ()  # parameters that are given as text, whatever their annotation
    options: Sequence[str] = ()  # of the shared options
    with_control: bool = False
    explained_by: Callable[..., Any] | None = None  # its docstring has the other parameters
    out: str = ""  # what is said of --out
    defaults: Mapping[str, Any] = {}
    fails: bool = True  # whether --fail-on may end it with code 1

    def add(self, commands: Any) -> None:
        """Add the command, whose help begins with a line of usage and examples. The line names
        files and folders first, since flags with several values would swallow them."""
        examples = EXAMPLES[self.name].replace("\n", "\n  ")
        few = "examples" if examples.count("\n  recdf") > 1 else "example"
        reads = any({"FILE", "LOG"} & {*usage.split()} for usage in self.files)
        command = commands.add_parser(
            self.name,
            usage=f"%(prog)s {self.usage} [options]",
            help=self.says,
            description=f"{few}:{examples}\n\n{textwrap.fill(self.description, 78)}",
            epilog=FILES_HELP if reads else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        files = command.add_argument_group("files")
        add_arguments(files, self.files)
        if self.writes is not None:
            named = " and ".join(", ".join(self.writes).rsplit(", ", 1))
            said = self.out or f"folder for {named}; without it nothing is written"
            replace = "replace a result that is already there"
            add_arguments(files, {"--out FOLDER": said, "--overwrite": replace})
            command.set_defaults(writes=self.writes)
        group = command.add_argument_group("options")
        if self.with_control:
            add_arguments(
                group.add_mutually_exclusive_group(required=True),
                {
                    "--control NAME": "variant that the others are compared with",
                    "--all-pairs": "compare all pairs of variants",
                },
            )
        add_arguments(group, self.arguments)
        for name, function in self.parameters().items():
            add_parameter(group, function, name, self.explained_by)
        add_options(command, self.options)
        add_config(command)
        if reads:
            add_arguments(command, FILE_FORMATS)
        add_output(command, fail_on=self.fails)
        command.set_defaults(run=partial(_answer, self), parser=command, **self.defaults)

    def parameters(self) -> dict[str, Callable[..., Any]]:
        """Return the parameters that are flags, each with its first function."""
        own = {
            word.lstrip("-").replace("-", "_") for usage in self.arguments for word in usage.split()
        }
        return {
            name: function
            for function in reversed(self.functions)
            for name in (*typed_parameters(function), *self.untyped)
            if name not in {*self.without, *own}
        }


def _answer(command: Command, given: argparse.Namespace) -> int:
    names = command.parameters()
    reply = command.call(given, given_parameters(given, names))
    written, printed = reply.tables, reply.tables if reply.printed is None else reply.printed
    if "details" in names:
        written, printed = as_asked(given, written), as_asked(given, printed)
    give_tables(given, reply.text, written, printed, reply.texts, reply.note)
    if reply.code:
        say_why(given, reply.code, reply.reasons)
        return reply.code
    found = reply.failings
    if found is None:
        verdicts = [one for one in reply.tables.values() if {*VERDICT_COLUMNS} <= {*one.columns}]
        found = failing_verdicts(*verdicts)
    return fail_on(given, found, always=reply.always)

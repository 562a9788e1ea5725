"""Docstrings whose texts stand in one place: of options that many functions take, or of another
function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

IN_BRACES = re.compile(r"{([\w, ]+)}")
# A parameter or a section of a docstring, and its name; a section holds others.
OF_ONE = re.compile(r"^(?=((\w+)[\w, ]*(?: :.*(?:\n    .*)*|\n-+(?:\n.+)*)))", re.M)


def says_as(source: Mapping[str, str] | Callable[..., Any]) -> Callable[[Function], Function]:
    """Put texts where a docstring has their names in braces, as `{options}` or `{by, seed}`. A text
    may have such places too.

    `source` are the texts by their names, or a function: they are then what its docstring says of
    its parameters and sections.
    """
    if isinstance(source, Mapping):
        texts = source
    else:
        texts = {one[2]: one[1] for one in OF_ONE.finditer(inspect.getdoc(source) or "")}

    def text(place: re.Match[str]) -> str:
        names = place[1].split(", ")
        if not set(names) <= texts.keys():
            return place[0]
        return IN_BRACES.sub(text, "\n".join(texts[one] for one in names))

    def filled(function: Function) -> Function:
        function.__doc__ = IN_BRACES.sub(text, inspect.getdoc(function) or "")
        return function

    return filled

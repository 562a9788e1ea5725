"""Docstrings whose texts stand in one place: of options that many functions take, or of another
function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


IN_BRACES = re.compile(r"{([\w, ]+)}")


def fill(function: Function, texts: Mapping[str, str]) -> Function:
    """Put texts where a docstring has their names in braces, as `{options}` or `{by, seed}`. A text
    may have such places too."""

    def text(place: re.Match[str]) -> str:
        names = place[1].split(", ")
        if not set(names) <= texts.keys():
            return place[0]
        return IN_BRACES.sub(text, "\n".join(texts[one] for one in names))

    function.__doc__ = IN_BRACES.sub(text, inspect.getdoc(function) or "")
    return function


def says_as(source: Callable[..., Any]) -> Callable[[Function], Function]:
    """Say what the docstring of `source` says of the parameters and sections whose names another
    has in braces."""
    of_one = r"^(?=((\w+)[\w, ]*(?: :.*(?:\n    .*)*|\n-+(?:\n.+)*)))"  # a section holds others
    found = re.finditer(of_one, inspect.getdoc(source) or "", re.M)
    return partial(fill, texts={one[2]: one[1] for one in found})

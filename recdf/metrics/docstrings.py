"""The docstrings of metrics: their sections, and what all metrics share.

Contract: a kernel's docstring holds what is its own; `full_doc` adds the arguments, options, result and errors.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..inputs.options import DESCRIPTION


class Argument(NamedTuple):
    """One argument: its type for a type checker (a name of `inputs.accepted`), its type in words, its meaning."""

    hint: str
    kind: str
    meaning: str


ARGUMENTS = {
    "true": Argument(
        "Rows", "DataFrame, mapping or Arrow stream", "What is relevant: one row per (list key, relevant item)."
    ),
    "pred": Argument(
        "Rows", "DataFrame, mapping or Arrow stream", "What was recommended: one row per (list key, item)."
    ),
    "items": Argument(
        "Ids",
        "DataFrame, list, Series or Index",
        "Catalogue: all items that could have been recommended, one row each; with `value_col` also their values.",
    ),
    "log": Argument(
        "Rows",
        "DataFrame, mapping or Arrow stream",
        "Past interactions: one row per (user, item), with those columns of the list key that it has.",
    ),
    "aspects": Argument(
        "Rows",
        "mapping or DataFrame",
        "User -> list of item sets; or one row per (user, aspect, item); or per (aspect, item), for all users.",
    ),
    "features": Argument(
        "Features",
        "str, list of str, DataFrame, Series, mapping or callable",
        "Columns of `items` (all but its id by default), or a frame indexed by item. Columns hold numbers, lists "
        "of numbers,\n    categories, `A|B` strings or lists of categories. A callable takes two arrays of "
        "positions in `items` and returns\n    the similarities of these pairs.",
    ),
    "base": Argument(
        "Rows", "DataFrame, mapping or Arrow stream", "The baseline's recommendations, in the columns of `pred`."
    ),
    "popular": Argument("Ids", "list, Series, Index or DataFrame", "Items that everybody knows."),
}


def section(doc: str, title: str) -> str:
    """Text of one section of a numpydoc docstring, in one line."""
    found = re.search(rf"(?:^|\n){title}\n-+\n(.*?)(?=\n\n[A-Z]\w*\n-+\n|\Z)", doc, flags=re.S)
    return " ".join(found.group(1).split()) if found else ""


def full_doc(
    doc: str, arguments: Sequence[str], k: int | None, sides: Sequence[str], optional: Sequence[str], per: str
) -> str:
    """The kernel's docstring with what all metrics share: frames, options, results, errors."""
    own = re.search(r"(?:^|\n)Parameters\n-+\n(.*?)(?=\n\n[A-Z]\w*\n-+\n|\Z)", doc, flags=re.S)
    parts = [_argument(name, name in optional) for name in arguments]
    parts.append(f"k : int, default {k}\n    Cut-off: ranks 1 to k count{'' if k else '; None is the whole list'}.")
    parts += [own.group(1).rstrip()] if own else []
    parts += [_argument(name, True) for name in sides]
    one = "Mean over the defined lists of the population"
    if "true" not in arguments:
        one = "Mean over the defined lists of `pred`, or of the given `users`"
    result = (
        f"float\n    {one}; `.per_user(...)` takes the same arguments\n"
        "    and returns a frame: `by` columns, list key columns, one column named by the metric string."
    )
    if per == "item":
        result = "float, or dict of groups to floats\n    One number for all lists; there is no `.per_user`."
    block = (
        "Parameters\n----------\n" + "\n".join(parts) + f"\n{DESCRIPTION}\n\nReturns\n-------\n{result}\n\n"
        "Raises\n------\nColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError\n"
        "    For input that no metric can be computed from; each is also the builtin KeyError, TypeError or ValueError."
    )
    if own:
        return doc[: own.start()].rstrip() + "\n\n" + block + doc[own.end() :]
    head, formula, rest = doc.partition("\n\nReferences\n")
    if not formula:
        head, formula, rest = doc.partition("\n\nExamples\n")
    return head.rstrip() + "\n\n" + block + formula + rest


def _argument(name: str, optional: bool) -> str:
    one = ARGUMENTS[name]
    return f"{name} : {one.kind}{', optional' if optional else ''}\n    {one.meaning}"

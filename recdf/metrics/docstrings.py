"""The docstrings of metrics: their sections, and the text that all metrics share.

Contract: the docstring of a kernel holds only its own text; `full_doc` adds the arguments, options,
result and errors, the parameters that a metric above it in the same module explains in the same
words, and the imports of examples.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..matching.side_tables.records import SIDE_TABLES


class Argument(NamedTuple):
    """One argument: its type for a type checker (a name of `inputs.accepted`), its type in words,
    its meaning."""

    hint: str
    kind: str
    meaning: str


ARGUMENTS = {
    "true": Argument(
        "Rows",
        "DataFrame, mapping or Arrow stream",
        "What is relevant: one row per (list key, relevant item).",
    ),
    "pred": Argument(
        "Rows",
        "DataFrame, mapping or Arrow stream",
        "What was recommended: one row per (list key, item).",
    ),
    **{name: Argument(one.hint, one.kind, one.meaning) for name, one in SIDE_TABLES.items()},
}


# Sections of a kernel's docstring that come after the text that all metrics share.
BELOW = ("Notes", "References", "Examples")

_TITLE = re.compile(r"\n\n([A-Z]\w*)\n-+\n")

# The options, which are the same for all metrics, are explained in one place.
OPTIONS_TEXT = """\
**options
    What every call takes: columns, order, ties, population, repeated rows, undefined values, and
    `like=` for the definitions of another library. `help(rd.evaluate)` explains each."""

RAISES = """\
ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError
    For input that no metric can be computed from; each is also the builtin KeyError, TypeError or
    ValueError."""


# What each parameter of the package's metrics means, by module and name: the last text that a
# docstring there has.
_EXPLAINED: dict[tuple[str, str], str] = {}


def section(doc: str, title: str) -> str:
    """Return the text of one section of a numpydoc docstring in one line; empty if there is no such
    section."""
    return " ".join(_doc_sections(doc).get(title, "").split())


def _doc_sections(doc: str) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by title, in their order; the text above them has
    the title ""."""
    pieces = _TITLE.split(doc)
    return {"": pieces[0], **dict(zip(pieces[1::2], pieces[2::2], strict=True))}


def full_doc(
    doc: str,
    arguments: Sequence[str],
    k: int | None,
    sides: Sequence[str],
    optional: Sequence[str],
    per: str,
    own: Sequence[str],
    module: str | None,
) -> str:
    """Return the kernel's docstring with the text that metrics share: frames, parameters, options,
    results, errors.

    `own` are the metric's own parameters, and `module` is that of a metric of the package.
    """
    found = _doc_sections(doc)
    explained = found.pop("Parameters", "").strip()
    if module is not None:
        texts = {text.partition(" ")[0]: text for text in re.split(r"\n(?=\S)", explained) if text}
        _EXPLAINED.update({(module, name): text for name, text in texts.items()})
        explained = "\n".join(
            _EXPLAINED[module, name] for name in own if (module, name) in _EXPLAINED
        )
        examples = found.get("Examples", "").strip()
        if examples and "import" not in examples:
            found["Examples"] = (
                f">>> import {'pandas as pd, ' * ('pd.' in examples)}recdf as rd\n{examples}"
            )
    whole = "" if k else " None is the whole list."
    parameters = [
        *(_argument(name, name in optional) for name in arguments),
        f"k : int, default {k}\n    Cut-off: ranks 1 to k count.{whole}",
        *([explained] if explained else []),
        *(_argument(name, True) for name in sides),
        OPTIONS_TEXT,
    ]
    shared = {
        "Parameters": "\n".join(parameters),
        "Returns": _result(per, "true" in arguments),
        "Raises": RAISES,
    }
    above = {title: text for title, text in found.items() if title not in BELOW}
    below = {title: text for title, text in found.items() if title in BELOW}
    return "\n\n".join(
        f"{title}\n{'-' * len(title)}\n{text.strip()}" if title else text.strip()
        for title, text in {**above, **shared, **below}.items()
    )


def _result(per: str, of_population: bool) -> str:
    """Describe what a call returns."""
    if per == "item":
        return (
            "float, or dict of groups to floats\n    One number for all lists; there is no "
            "`.per_user`."
        )
    lists = "the population" if of_population else "`pred`, or of the given `users`"
    return (
        f"float\n    Mean over the defined lists of {lists}; `.per_user(...)` takes the same "
        "arguments\n"
        "    and returns a frame: `by` columns, list key columns, one column named by the metric "
        "string."
    )


def _argument(name: str, optional: bool) -> str:
    one = ARGUMENTS[name]
    return f"{name} : {one.kind}{', optional' if optional else ''}\n    {one.meaning}"

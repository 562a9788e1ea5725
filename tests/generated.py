"""Everything that follows from the registry and is written to a file: a stub for type checkers,
tables of the pages.

`python tests/generated.py` writes it all; tests say when that is due.
"""

import inspect
import re
import textwrap
import tomllib
import types
import typing
from collections.abc import Callable
from functools import partial
from pathlib import Path

import recdf as rd
from recdf.formats.format_records import FORMATS, UNNAMED
from recdf.metrics.record import ARGUMENTS
from recdf.public_names import NAMESPACES, PUBLIC, UNLISTED, late_names, places

ROOT = Path(__file__).parents[1]
PACKAGE = Path(rd.__path__[0])
STUB = PACKAGE / "metrics/__init__.pyi"
WIDTH = 120


def built_in():
    """Metrics of the package, in alphabetical order; those that tests register are not among
    them."""
    return [rd.METRICS[name] for name in sorted(rd.METRICS) if rd.METRICS[name].built_in]


# -- for type checkers

STUB_HEAD = '''\
"""The metrics as type checkers see them. Written by `python tests/generated.py`.

At run time the package's `__init__.py` exports what is registered, and `@metric` makes each
function of lists a record that is called with frames. A type checker can follow neither: no generic
type can turn the parameters of a kernel into those of a call, to which frames, `k`, side tables and
the shared options are added.
"""

from collections.abc import Callable
from typing import Literal, Unpack

import numpy as np
import pandas as pd

from ..inputs.constraints import Features, Ids, Rows
from ..inputs.options import CallArguments
from .metric import ListMetric, Metric

'''


def spelled(hint):
    """A type as it is written in source code."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return f"Literal[{', '.join(repr(one).replace(chr(39), chr(34)) for one in inside)}]"
    if origin in (typing.Union, types.UnionType):
        return " | ".join(map(spelled, inside))
    if origin is Callable:
        given = "..." if inside[0] is ... else f"[{', '.join(map(spelled, inside[0]))}]"
        return f"Callable[{given}, {spelled(inside[1])}]"
    if inside:
        return f"{spelled(origin)}[{', '.join(map(spelled, inside))}]"
    if hint is type(None):
        return "None"
    short = {"numpy": "np.", "pandas": "pd."}.get(hint.__module__.partition(".")[0], "")
    return short + hint.__name__


def result_type(metric):
    """What a call of the metric returns."""
    if len(metric.outputs) > 1:
        return "dict[str, float]"
    return spelled(metric.hints["return"]) if metric.per == "item" else "float"


def parameters(metric):
    """The parameters of a call, with types and defaults, as `inspect.signature` orders them."""
    found = ["self"]
    for name in metric.arguments:
        found.append(
            f"{name}: {ARGUMENTS[name].hint}" + (" | None" if name in metric.optional else "")
        )
    found.append(f"k: int{' | None' if metric.k is None else ''} = {metric.k}")
    by_name, known = [], inspect.signature(metric).parameters
    for name, default in metric.defaults.items():
        into = by_name if known[name].kind is inspect.Parameter.KEYWORD_ONLY else found
        into.append(f"{name}: {spelled(metric.hints[name])} = {literal(default)}")
    by_name += [f"{name}: {ARGUMENTS[name].hint} | None = None" for name in metric.sides]
    return [*found, *(["*", *by_name] if by_name else []), "**options: Unpack[CallArguments]"]


def literal(value):
    return repr(value).replace("'", '"')


def method(name, metric, result):
    lines = [""]
    for one in parameters(metric):
        if len(lines[-1]) + len(one) > WIDTH - 10:
            lines.append("")
        lines[-1] += f"{one}, "
    inside = "".join(f"        {line.rstrip()}\n" for line in lines)
    return f"    def {name}(\n{inside}    ) -> {result}: ...\n"


def stub():
    """Text of the stub: a class for each metric, which says what a call takes and returns."""
    found = [
        STUB_HEAD,
        "__all__ = [\n",
        *(f'    "{metric.name}",\n' for metric in built_in()),
        "]\n",
    ]
    for metric in built_in():
        kind = f"_{''.join(part.title() for part in metric.name.split('_'))}"
        base = "ListMetric" if metric.per == "list" else "Metric"
        text = textwrap.fill(f'"""{metric.doc}"""', WIDTH - 4)
        found.append(f"\nclass {kind}({base}):\n{textwrap.indent(text, '    ')}\n\n")
        found.append(method("__call__", metric, result_type(metric)))
        if metric.per == "list":
            found.append(method("per_user", metric, "pd.DataFrame"))
        found.append(f"\n{metric.name}: {kind}\n")
    return "".join(found)


def names_stub(package):
    """Text of the stub of a package whose public names load late: the imports that its rows stand
    for."""
    top = package == "recdf"
    dots = "." if top or package == "recdf.ope" else ".."
    rows = [(dots + module, own, name) for module, own, name in places(PUBLIC[package])]
    listed = [f'    "{name}",\n' for name in late_names(package)[2]]
    if top:
        rows += [
            (f".{module}", own, name)
            for module, own, name in [*places(UNLISTED), ("_version", *2 * ["__version__"])]
        ]
        rows += [
            (f".{module.rpartition('.')[0]}", name, name) for name, module in NAMESPACES.items()
        ]
        rows.append((".metrics", "*", "*"))
    rows.sort(
        key=lambda row: (row[0].lower(), not row[1].isupper(), row[1].islower(), row[1])
    )  # as isort does
    imports = [f"from {module} import {own} as {name}\n" for module, own, name in rows]
    text = "".join(
        [
            NAMES_HEAD,
            *imports,
            "\n__all__ = [\n",
            *listed,
            "]\n",
            "__all__ += metrics.__all__\n" * top,
        ]
    )
    return text.replace("* as *", "*  # noqa: F403")


NAMES_HEAD = '''\
"""The public names of recdf/public_names.py, as type checkers see them. Written by
`python tests/generated.py`.
"""

'''
STUBS = {STUB: stub} | {
    PACKAGE / path: partial(names_stub, package)
    for package, path in {
        "recdf": "__init__.pyi",
        "recdf.experiments": "experiments/__init__.pyi",
        "recdf.ope": "ope.pyi",
        "recdf.logs": "logs/__init__.pyi",
        "recdf.diagnostics": "diagnostics/__init__.pyi",
    }.items()
}


# -- for readers


def families_table():
    """Rows of the table of families: what each asks, and its metrics."""
    words = tomllib.loads((ROOT / "docs/families.toml").read_text(encoding="utf-8"))
    rows = ["| family | asks | metrics |", "|---|---|---|"]
    found: dict[str, list[str]] = {}
    for metric in rd.METRICS.values():
        if metric.built_in:
            found.setdefault(metric.family, []).append(f"`{metric.name}`")
    # A family that the file does not have yet comes last.
    for family in sorted(found, key=[*words, *found].index):
        title = family.capitalize().replace("_", " ")
        link = f"[{title}](handbook/{family}.rst)"
        asks = words.get(family, {}).get("asks", "docs/families.toml is to say what it asks.")
        rows.append(f"| {link} | {asks} | {', '.join(found[family])} |")
    return rows


def formats_table():
    """Rows of the table of formats, from their records."""
    rows = ["| format | written by | ending | recognised by | columns |", "|---|---|---|---|---|"]
    for one in FORMATS.values():
        endings = ["any other" if ending == UNNAMED else f"`{ending}`" for ending in one.endings]
        where, seen_by = ", ".join(endings) or "a folder", one.seen_by or "its ending"
        cells = [f"`{one.name}`", one.made_by, where, seen_by, one.columns]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def between(text, name):
    """The lines between the markers of a table."""
    found = re.search(rf"<!-- {name}: .*? -->\n(.*?)<!-- end of {name} -->", text, flags=re.S)
    assert found, f"the page has no markers of the table {name}"
    return found[1].splitlines()


TABLES = {
    "families": (ROOT / "docs/metrics.md", families_table),
    "formats": (ROOT / "docs/files.md", formats_table),
}


def write():
    for name, (page, rows) in TABLES.items():
        text = page.read_text(encoding="utf-8")
        first, last = (
            re.search(rf"<!-- {name}: .*? -->\n", text),
            text.index(f"<!-- end of {name} -->"),
        )
        page.write_text(text[: first.end()] + "\n".join([*rows(), text[last:]]), encoding="utf-8")
    for path, text in STUBS.items():
        path.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write()

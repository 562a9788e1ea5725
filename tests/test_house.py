"""The rooms of the package: who may import whom, and that no module is needed in a circle.

`docs/design.md` says what each room is for. Change the rules there and here together.
"""

import ast
import functools
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import recdf as rd

PACKAGE = Path(rd.__file__).parent

# What a room may import beside itself.
MAY_IMPORT = {
    "errors": "",
    "docstrings": "",
    "progress": "",
    "publishing": "",
    "_version": "",
    "datasets": "",
    "public_names": "",
    "ope": "public_names",
    "stats": "",
    "tables": "",
    "inputs": "stats",
    "matching": "inputs",
    "logs": "inputs stats tables",
    "formats": "inputs",
    "metrics": "matching inputs stats",
    "judge": "inputs stats tables",
    "experiments": "judge inputs stats tables",
    "off_policy": "judge inputs stats tables",
    "evaluation": "judge experiments formats metrics matching inputs stats tables",
    "partitions": "judge evaluation experiments metrics matching logs inputs stats tables",
    "diagnostics": "judge evaluation experiments metrics matching logs inputs stats tables",
    "display": "judge tables evaluation experiments off_policy diagnostics",
    "cli": "stats tables inputs formats matching logs metrics judge experiments off_policy "
    "evaluation partitions diagnostics display datasets",
}
# Every module may import these: exceptions, texts of docstrings, the progress of a long call, how
# files are written, and the version.
FOR_ALL = ("docstrings", "errors", "progress", "publishing", "_version")
# A room that is a namespace loads its public names late, by the rows of `public_names`.
NAMESPACES = {"experiments", "logs", "diagnostics"}
# Modules that a room may import although its room is closed: in which direction a metric is
# better, and how the data of some users are checked.
ALSO = {
    "experiments": {"metrics.strings"},
    "partitions": {"diagnostics.data_checks"},
}
AT_THE_TOP = {"__init__", "__main__"}  # the public names and `python -m recdf`: they may import all


@functools.cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


def imports_of(source: str, module: str) -> set[str]:
    """Modules of the package that the source of a module names in its imports, wherever in the file
    they stand."""
    found = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            names = [*base, *(node.module.split(".") if node.module else [])]
            if node.level == 0 and names[0] != "recdf":
                continue
            names = names[1:] if node.level == 0 else names
            found |= (
                {".".join(names)}
                if node.module
                else {".".join([*names, one.name]) for one in node.names}
            )
        elif isinstance(node, ast.Import):
            found |= {
                name.name.removeprefix("recdf.")
                for name in node.names
                if name.name.startswith("recdf.")
            }
    return found


def forbidden(module: str, imported: str) -> bool:
    """Whether the rules of the house close the way from a module to one that it imports."""
    room, other = module.partition(".")[0], imported.partition(".")[0]
    if (
        room in AT_THE_TOP
        or other in (room, *FOR_ALL)
        or (module in NAMESPACES and other == "public_names")
    ):
        return False
    return other not in MAY_IMPORT[room].split() and imported not in ALSO.get(room, ())


@functools.cache
def modules() -> dict[str, str]:
    """Source of each module of the package by its dotted name; a room's `__init__` has the name of
    the room."""
    names = {
        path: ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for path in PACKAGE.rglob("*.py")
    }
    return {
        name.removesuffix(".__init__"): path.read_text(encoding="utf-8")
        for path, name in names.items()
    }


@functools.cache
def imports() -> dict[str, set[str]]:
    """What each module of the package imports of it."""
    sources = modules()
    rooms = {name.rpartition(".")[0] for name in sources}
    # A room's `__init__` stands one level higher than its modules, so its relative imports start in
    # the room itself.
    return {
        name: imports_of(text, f"{name}.__init__" if name in rooms else name)
        for name, text in sources.items()
    }


def test_a_module_imports_only_what_its_room_may():
    wrong = [
        f"recdf/{module.replace('.', '/')}.py may not import {imported}; docs/design.md has the "
        "rules"
        for module, found in imports().items()
        for imported in sorted(found)
        if forbidden(module, imported)
    ]
    assert not wrong, "\n".join(wrong)


def test_only_methods_of_a_result_import_experiments():
    """They load them when they are called: an evaluation alone needs none."""
    found = {
        name
        for name, text in modules().items()
        if name.startswith("evaluation.")
        for node in parsed(text).body
        if isinstance(node, ast.ImportFrom)
        and any(one.startswith("experiments") for one in imports_of(ast.unparse(node), name))
    }
    assert not found


def test_no_modules_import_each_other_in_a_circle():
    try:
        TopologicalSorter(
            {name: found & imports().keys() for name, found in imports().items()}
        ).prepare()
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' <- '.join(error.args[1])}")


def test_every_room_has_a_rule_and_every_rule_a_room():
    rooms = {name.partition(".")[0] for name in imports()} - AT_THE_TOP
    assert rooms <= MAY_IMPORT.keys(), (
        f"say in docs/design.md and here what {rooms - MAY_IMPORT.keys()} may import"
    )


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("matching.match", "from ..metrics.record import Request"),
        ("inputs.ids", "def late():\n    from ..matching import match"),
        ("stats.arms", "from ..inputs.frames import column"),
        ("tables.cells", "from ..metrics.record import Request"),
        ("off_policy.plan", "from ..experiments.samples import fill"),
        ("diagnostics.data_checks", "import recdf.partitions.source"),
        ("experiments.join.join_experiment", "from recdf.metrics.metric import find"),
        (
            "matching.side_tables.catalogue",
            "if TYPE_CHECKING:\n    from ...evaluation.result import Evaluation",
        ),
    ],
)
def test_a_forbidden_import_is_found(module, line):
    assert [forbidden(module, imported) for imported in imports_of(line, module)] == [True]


def test_a_planted_circle_is_found():
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()


# Names that two modules define at their top, with the reason. Any other such name has two meanings
# or is written twice.
DEFINED_TWICE = {
    "evaluate": "rd.evaluate, rd.spark.evaluate and rd.dask.evaluate are the same call for other "
    "frames",
    "from_impressions": "as evaluate",
    "check_log": "as evaluate, of a log",
    "check": "as evaluate, of two frames",
    "proxy_metrics": "rd.plot.proxy_metrics draws what rd.experiments.proxy_metrics found",
}


def defined_at_the_top(source: str) -> set[str]:
    """Names that a module defines at its top: functions, classes and constants, also under a
    condition."""
    found = set()
    for node in [
        one
        for top in parsed(source).body
        for one in (getattr(top, "body", []) if isinstance(top, ast.If) else [top])
    ]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        targets = (
            node.targets
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        found |= {
            one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)
        }
    return {name for name in found if not name.startswith("__")}


def twice(sources: dict[str, str]) -> dict[str, list[str]]:
    """Names that several modules define, with the modules."""
    places: dict[str, list[str]] = {}
    for module, source in sources.items():
        for name in defined_at_the_top(source):
            places.setdefault(name, []).append(module)
    return {name: sorted(held) for name, held in places.items() if len(held) > 1}


def test_a_name_means_one_thing_in_the_whole_package():
    wrong = {name: held for name, held in twice(modules()).items() if name not in DEFINED_TWICE}
    assert not wrong, f"defined in several modules; rename all but one, or import it: {wrong}"


def test_every_reason_for_a_name_of_two_modules_is_needed():
    assert DEFINED_TWICE.keys() <= twice(modules()).keys()


def test_a_planted_second_meaning_is_found():
    sources = {
        "a": "LIMIT = 1\ndef read(): ...",
        "b": "class Read: ...\nLIMIT: int = 2",
        "c": "x, LIMIT = 1, 3",
    }
    assert twice(sources) == {"LIMIT": ["a", "b", "c"]}


def test_file_names_are_unique_across_rooms():
    names = [path.name for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    assert not {name for name in names if names.count(name) > 1}


def test_no_module_has_the_name_of_a_function_that_stands_beside_it():
    # `recdf.report`, a module, would stand in the way of `rd.report`, a function.
    beside = {module for module in imports() if "." not in module}
    functions = {name for name in rd.__all__ if callable(getattr(rd, name))}
    assert not beside & functions

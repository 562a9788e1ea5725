"""No code of the package reads the sentence of a verdict back: readers take the codes beside it."""

import ast

import pytest
from test_house import modules

SENTENCES = {"verdict", "trend_verdict", "decision", "trust", "finding"}
# Methods that look into a text, or into a column of texts.
LOOKS_INTO = {
    *("startswith", "endswith", "removeprefix", "removesuffix", "split", "partition", "find"),
    *("contains", "match", "fullmatch", "search", "sub", "isin", "eq", "ne", "index", "count"),
}


def names_sentence(node):
    """Whether an expression names a sentence: row["verdict"], duel.verdict, verdict."""
    for one in ast.walk(node):
        key = one.slice if isinstance(one, ast.Subscript) else None
        if isinstance(key, ast.Constant) and key.value in SENTENCES:
            return True
        if isinstance(one, ast.Name) and one.id in SENTENCES:
            return True
        if isinstance(one, ast.Attribute) and one.attr in SENTENCES:
            return True
    return False


def of_a_gate(node):
    """Whether it is `Gate.verdict`, which is a code: "pass", "fail" or "undecided"."""
    return any(
        isinstance(one, ast.Attribute)
        and one.attr == "verdict"
        and isinstance(one.value, ast.Name)
        and one.value.id in ("self", "found", "gate")
        for one in ast.walk(node)
    )


def readers(source):
    """Lines of a module that compare a sentence, or look into it."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            null = [isinstance(one, ast.Constant) and one.value is None for one in sides]
            read = any(map(names_sentence, sides)) and not any(null)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            told = [node.func.value, *node.args]
            read = node.func.attr in LOOKS_INTO and any(map(names_sentence, told))
            keys = [one.value for one in node.args if isinstance(one, ast.Constant)]
            read |= node.func.attr == "set_index" and bool(SENTENCES.intersection(keys))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            pairs = node.args[0] if node.func.id == "dict" and node.args else None
            read = isinstance(pairs, ast.Call) and any(map(names_sentence, pairs.args[:1]))
        else:
            continue
        if read and not of_a_gate(node):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


@pytest.mark.long
def test_nothing_reads_a_verdict_back():
    wrong = {name: lines for name, source in modules().items() if (lines := readers(source))}
    assert not wrong, f"read effect, withheld and remarks in its place: {wrong}"


@pytest.mark.parametrize(
    "line",
    [
        'row["verdict"] == "better"',
        'table["verdict"].str.startswith("check")',
        'str(duel.verdict).split(",")[0]',
        'BUT in row["verdict"]',
        'verdict in ("better", "worse")',
        'table["verdict"].isin(SOME)',
        're.sub("better", "worse", verdict)',
        'table["decision"].eq("ship")',
        'row["finding"] == "equal scores"',
        'str(row["finding"]).startswith("ties across")',
        'findings.set_index("finding")["share"]',
        'dict(zip(findings["finding"], findings["share"]))["candidates look sampled"]',
    ],
)
def test_a_planted_reader_is_found(line):
    assert readers(line)


@pytest.mark.parametrize(
    "line", ['row["effect"] == "better"', 'found.verdict == "undecided"', 'print(row["verdict"])']
)
def test_a_reader_of_codes_is_none(line):
    assert not readers(line)

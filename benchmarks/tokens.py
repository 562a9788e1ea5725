"""Count the code of the package: tokens without comments and docstrings, and modules, by room.

    python benchmarks/tokens.py                # of this checkout
    python benchmarks/tokens.py ../other       # of another one, such as that of an older commit

Lines can be packed, and tokens cannot.
"""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

LAYOUT = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_lines(source):
    """Return the lines on which a docstring begins."""
    nodes = (node for node in ast.walk(ast.parse(source)) if isinstance(node, DOCUMENTED))
    return {node.body[0].lineno for node in nodes if ast.get_docstring(node, clean=False)}


def n_tokens(source):
    """Return the number of tokens of a module that Python runs. A string is one token, in every
    version of Python."""
    docstrings, n, depth = docstring_lines(source), 0, 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        name = tokenize.tok_name[token.type]
        depth -= name == "FSTRING_END"  # from Python 3.12 on, an f-string is tokens of its own
        is_docstring = token.type == tokenize.STRING and token.start[0] in docstrings
        n += not (token.type in LAYOUT or is_docstring or depth or name == "FSTRING_START")
        depth += name == "FSTRING_START"
    return n


def main(checkout="."):
    """Print tokens and modules of each room, the largest first, and of all."""
    tokens, modules = Counter(), Counter()
    package = Path(checkout, "recdf")
    for path in package.rglob("*.py"):
        inside = path.relative_to(package).parts
        room = inside[0] if len(inside) > 1 else "(top)"
        tokens[room] += n_tokens(path.read_text(encoding="utf-8"))
        modules[room] += 1
    print(f"{'room':<14}{'tokens':>9}{'modules':>9}")
    for room, n in [*tokens.most_common(), ("all", tokens.total())]:
        print(f"{room:<14}{n:>9,}{modules[room] or modules.total():>9}")


if __name__ == "__main__":
    main(*sys.argv[1:])

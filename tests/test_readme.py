"""README.md says what is so: its Python blocks run and its tables are those of the package.

`python tests/test_readme.py` writes the tables between their markers again.
"""

import doctest
import re
from dataclasses import fields
from pathlib import Path

import recdf as rd
from recdf.cli import option_texts
from recdf.inputs.options import CHOICES, Options

README = Path(__file__).parent.parent / "README.md"


def metrics_table():
    """Rows of the table of metrics: those of the package, family by family."""
    table = rd.metrics_table()
    table = table[[rd.METRICS[name].__module__.startswith("recdf.") for name in table["metric"]]]  # no user's own
    families = ["relevance", "ranking", "money", *table["family"].unique()]
    table = table.sort_values("family", key=lambda column: column.map(families.index), kind="stable")
    rows = ["| metric | aliases | meaning | parameters | needs |", "|---|---|---|---|---|"]
    for row in table.itertuples():
        cells = [f"`{row.metric}`", row.aliases, row.meaning, code(row.parameters), row.needs]
        rows.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return rows


def options_table():
    """Rows of the table of options, from the text that all docstrings share."""
    texts = option_texts()
    rows = ["| option | values (default first) | meaning |", "|---|---|---|"]
    for field in fields(Options):
        values = ", ".join(f'`"{choice}"`' for choice in CHOICES.get(field.name, ()))
        values = values or f"`{field.default!r}`".replace("'", '"')
        rows.append(f"| `{field.name}` | {values} | {texts[field.name]} |")
    return rows


def code(text):
    return f"`{text}`" if text else ""


def between(text, name):
    """The lines between the markers of a table."""
    found = re.search(rf"<!-- {name}: .*? -->\n(.*?)<!-- end of {name} -->", text, flags=re.S)
    assert found, f"README.md has no markers of the table {name}"
    return found[1].splitlines()


def test_python_blocks():
    """All blocks in order in one namespace, as a reader would type them."""
    blocks = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), flags=re.S | re.M)
    assert blocks
    assert all(block.startswith(">>> ") for block in blocks)
    test = doctest.DocTestParser().get_doctest("".join(blocks), {"__name__": "readme"}, "README.md", "README.md", 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    try:
        failed = runner.run(test, out=report.append).failed
    finally:
        rd.METRICS.pop("my_last_rr", None)
    assert not failed, "".join(report)


def test_metrics_table():
    assert between(README.read_text(encoding="utf-8"), "metrics") == metrics_table(), "run python tests/test_readme.py"


def test_options_table():
    assert between(README.read_text(encoding="utf-8"), "options") == options_table(), "run python tests/test_readme.py"


def test_names_in_the_text_exist():
    text = README.read_text(encoding="utf-8")
    for name in set(re.findall(r"\brd\.(\w+)", text)):
        assert hasattr(rd, name), name
    for name in set(re.findall(r"`(\w+(?:Error|Warning))`", text)) - {"KeyError", "TypeError", "ValueError"}:
        assert hasattr(rd, name), name
    for path in set(re.findall(r"`(\w+/\w+\.py)`", text)):
        assert (README.parent / path).is_file(), path


def write_tables():
    text = README.read_text(encoding="utf-8")
    for name, rows in {"options": options_table(), "metrics": metrics_table()}.items():
        text = re.sub(
            rf"(<!-- {name}: .*? -->\n).*?(<!-- end of {name} -->)",
            lambda found, rows=rows: found[1] + "\n".join(rows) + "\n" + found[2],
            text,
            flags=re.S,
        )
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_tables()

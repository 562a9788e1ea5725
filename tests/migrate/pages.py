"""Read the pages of docs/migrate: their code, and their tables of calls beside calls.

A block of `python` runs everywhere: it has data, or calls of recdf. A block of `py` calls the other
library, and runs where that is installed. Each row of the table "Calls" has a call of the library,
a call of recdf, and what differs; the two give the same number if the last cell is empty.
"""

import doctest
import hashlib
import json
import math
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "migrate"
GOLDEN = ROOT / "tests" / "golden" / "migrate"
PAGES = {path.stem: path for path in sorted(FOLDER.glob("*.md"))}
# What the libraries of a page are called in a registry of packages; a page is called as the library
# is imported.
DISTRIBUTIONS = {
    "rectools": ("rectools",),
    "replay": ("replay-rec",),
    "ranx": ("ranx",),
    "recommenders": ("recommenders",),
    "ir_measures": ("ir_measures", "pytrec_eval-terrier", "cwl-eval"),
    "lenskit": ("lenskit",),
    "implicit": ("implicit",),
    "evidently": ("evidently",),
    "obp": ("obp",),
}


def text_of(name):
    return PAGES[name].read_text(encoding="utf-8")


def blocks(name):
    """Kind and code of each block: "python" runs everywhere, "py" where the library is
    installed."""
    return re.findall(r"^```(python|py)\n(.*?)^```$", text_of(name), flags=re.S | re.M)


def rows(name):
    """The rows of the table of calls: the library's call, that of recdf, and what differs."""
    _, _, part = text_of(name).partition("\n## Calls")
    part = part.partition("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in part.splitlines()
        if line[:3] == "| `"
    ]
    return [
        (theirs.strip("`"), ours.strip("`"), (rest or [""])[0].strip(" |"))
        for theirs, ours, *rest in cells
    ]


def digest(name):
    """A digest of what the library is asked: a page that asks something else needs new numbers."""
    asked = json.dumps([blocks(name), [theirs for theirs, *_ in rows(name)]])
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def run(name, kinds):
    """Run the blocks of these kinds, and return the names that they leave, and what went wrong."""
    session = "".join(code + "\n" for kind, code in blocks(name) if kind in kinds)
    page = f"docs/migrate/{name}.md"
    test = doctest.DocTestParser().get_doctest(session, {"__name__": "page"}, page, page, 0)
    runner, report = (
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE),
        [],
    )
    runner.run(test, out=report.append, clear_globs=False)
    return test.globs, "".join(report)


def number(value):
    """A number, or one for each user, as JSON has them."""
    if hasattr(value, "columns"):  # a table of users and values
        value = dict(zip(value.iloc[:, 0], value.iloc[:, -1], strict=True))
    if hasattr(value, "items"):
        return {
            str(user): number(one)
            for user, one in sorted(value.items(), key=lambda pair: str(pair[0]))
        }
    return float(value)


def distance(one, two):
    """How far two answers are apart: infinite if they are of different users."""
    if isinstance(one, dict) or isinstance(two, dict):
        same = isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys()
        return (
            max((distance(one[user], two[user]) for user in one), default=0.0) if same else math.inf
        )
    if math.isnan(one) or math.isnan(two):
        return 0.0 if math.isnan(one) and math.isnan(two) else math.inf
    return abs(one - two)


def as_stated(apart, note):
    """Whether two answers are equal where the row says nothing, nearly so where one is rounded, and
    else differ."""
    nearly = {"32 bits": 1e-6, "5 decimals": 1e-5}
    limit = min((most for words, most in nearly.items() if words in note), default=math.inf)
    return apart <= 1e-9 if note == "" else 1e-9 < apart <= limit

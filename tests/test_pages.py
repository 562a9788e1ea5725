"""The pages say what is so: their Python runs, their links lead somewhere, and their tables are
those of the package.

`python tests/generated.py` writes the generated tables between their markers again.
"""

import builtins
import doctest
import functools
import re
from pathlib import Path

import generated
import pytest
from quick import few

import recdf as rd
from recdf.public_names import NAMESPACES

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = {
    path.relative_to(ROOT).as_posix(): path
    for path in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
}

# -- what pages run


def python_blocks(text: str) -> list[tuple[int, str]]:
    """Python blocks of a page, each with the number of its first line."""
    found = re.finditer(r"^```python\n(.*?)^```$", text, flags=re.S | re.M)
    return [(text[: one.start(1)].count("\n"), one[1]) for one in found]


def as_session(block: str) -> str:
    """A block as a doctest: a block without prompts is a script, run as one statement that prints
    nothing."""
    if block.startswith(">>> "):
        return block
    return f">>> exec(compile({block!r}, 'block', 'exec'), globals())\n"


# Pages whose code needs an extra, or data that are not part of the project and lie beside the
# checkout.
NEEDS = dict.fromkeys(["docs/engines.md", "docs/engines_experiments.md"], "dask.dataframe")
BESIDE = {"docs/judges_movielens.md": "shared/data/movielens_latest_small"}


# Pages whose code takes long; of each kind of page (of models, experiments, reports and engines) a
# shorter one is run each time.
LONG = {
    f"docs/{name}.md"
    for name in (
        "gallery",
        "engines",
        "engines_experiments",
        "history",
        "report",
        "audit",
        "experiments",
        "experiments_decide",
        "experiments_over_time",
        "experiments_plan",
        "designs",
        "judges_movielens",
        "interleaving",
        "wrong_numbers",
        "impressions_rules",
        "impressions_time",
        "choose",
        "judges",
        "large_data",
        "results_in_files",
        "segments",
        "weights",
    )
}


def visible_in_the_checkout() -> set[str]:
    """What lies at the top, without the hidden caches and the folder `build`, which other checks
    that run beside this one may make at any time."""
    names = {path.name for path in ROOT.iterdir()}
    return {name for name in names if not name.startswith(".") and name != "build"}


@pytest.mark.parametrize("page", few(PAGES, PAGES.keys() - LONG))
def test_python_blocks(page, monkeypatch):
    """All blocks of a page in order in one namespace, as a reader at the top of the checkout would
    type them."""
    if page in NEEDS:
        pytest.importorskip(NEEDS[page])
    if page in BESIDE and not (ROOT.parent / BESIDE[page]).is_dir():
        pytest.skip(f"{page} reads ../{BESIDE[page]}, which is not there")
    monkeypatch.chdir(ROOT)
    blocks = python_blocks(PAGES[page].read_text(encoding="utf-8"))
    session = "".join(as_session(block) + "\n" for _, block in blocks)
    test = doctest.DocTestParser().get_doctest(session, {"__name__": "page"}, page, page, 0)
    runner, report = (
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE),
        [],
    )
    there = visible_in_the_checkout()
    failed = runner.run(test, out=report.append).failed
    assert not failed, "".join(report)
    assert visible_in_the_checkout() <= there, (
        "a page writes into the checkout; let it use a temporary folder"
    )


def test_the_readme_has_python_blocks_with_prompts():
    blocks = [block for _, block in python_blocks(README.read_text(encoding="utf-8"))]
    assert blocks
    assert all(block.startswith(">>> ") for block in blocks)


# -- what pages refer to


def anchors(text: str) -> set[str]:
    """Anchors of the headings of a page, as GitHub and MyST make them."""
    headings = re.findall(
        r"^#+ +(.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M), flags=re.M
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    text = PAGES[page].read_text(encoding="utf-8")
    for target in re.findall(
        r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    ):
        if re.match(r"\w+:", target) or target.startswith("handbook/"):
            continue  # another site, or a page that the build of the site writes and checks
        path, _, anchor = target.partition("#")
        file = (PAGES[page].parent / path) if path else PAGES[page]
        assert file.exists(), f"{page} links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors(file.read_text(encoding="utf-8")), (
                f"{page} links to {target}: no such heading"
            )


def test_the_index_lists_every_page():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index", "changelog", "api"}
    trees = " ".join(re.findall(r"```{toctree}\n(.*?)```", index, flags=re.S))
    assert not pages - {"metrics"} - {name.strip("<>") for name in trees.split()}, (
        "add these pages to a toctree of docs/index.md"
    )
    linked = set(re.findall(r"\]\((\w+)\.md", index))
    assert not pages - linked, "add these pages to the table of docs/index.md"


def test_the_doors_of_the_site_lead_somewhere():
    """Sphinx does not check the links of a template."""
    doors = (ROOT / "docs/_templates/doors.html").read_text(encoding="utf-8")
    pages = re.findall(r'\("([\w/]+)", "', doors)
    assert len(pages) == 6
    assert [
        page
        for page in pages
        if page != "handbook/index" and not (ROOT / f"docs/{page}.md").exists()
    ] == []


@pytest.mark.parametrize("page", PAGES)
def test_names_in_the_text_exist(page):
    text = PAGES[page].read_text(encoding="utf-8")
    for name, inner in set(re.findall(r"\brd\.([A-Za-z]\w*)(?:\.([a-z]\w*))?", text)):
        assert hasattr(rd, name) or f"def {name}" in text, (
            f"{page} names rd.{name}, which does not exist"
        )
        missing = inner and name in NAMESPACES and not hasattr(getattr(rd, name), inner)
        assert not missing, f"{page} names rd.{name}.{inner}, which does not exist"
    for name in set(re.findall(r"`(\w+(?:Error|Warning))`", text)):
        assert hasattr(rd, name) or hasattr(builtins, name), name
    for path in set(
        re.findall(r"`((?:recdf|tests|examples|docs|benchmarks|\.ci)/[\w./-]*\w)`", text)
    ):
        above = (
            Path(rd.__file__).parents[1] if path.startswith("recdf/") else ROOT
        )  # which may be installed elsewhere
        assert (above / path).exists(), f"{page} names {path}, which does not exist"


@functools.cache
def code_of(room: str) -> dict[str, str]:
    """The modules of a room at the top, by path."""
    above = Path(rd.__file__).parents[1] if room == "recdf" else ROOT
    return {
        path.relative_to(above).as_posix(): path.read_text(encoding="utf-8")
        for path in (above / room).rglob("*.py")
    }


NAME = r"`(?:\w+\.)*(\w+)(?:\([^`]*\))?`"
MODULE = r"`((recdf|tests|benchmarks)/[\w/]+\.py)`"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/design.md", "docs/design_row.md"])
def test_names_of_code_stand_where_a_page_says(page):
    text = " ".join(PAGES[page].read_text(encoding="utf-8").split())
    stands_in = (
        rf"((?:{NAME}(?:, then |, | and )?)+)(?:(?: is)? in | \()((?:{MODULE}(?:, | and )?)+)"
    )
    for said in re.finditer(stands_in, text):
        sources = [code_of(room)[path] for path, room in re.findall(MODULE, said[3])]
        for name in re.findall(NAME, said[1]):
            defined = rf"^ *(?:def |class )?{name}\b *[(:=\[]"
            assert any(re.search(defined, one, flags=re.M) for one in sources), said[0]
    code = "\n".join(
        one for room in ("recdf", "tests", "benchmarks") for one in code_of(room).values()
    )
    for name in {*re.findall(NAME, text)}:
        assert name in code, f"{page} names {name}, which no code has"


# -- how pages are written

GENERATED = {"convention_rules"}  # from records of the package
GUIDES = {
    path.relative_to(ROOT / "docs").as_posix(): path
    for path in sorted((ROOT / "docs").rglob("*.md"))
    if path.stem not in GENERATED | {"changelog"}
}


def sentences(text: str) -> list[str]:
    """The prose of a page: code counts as one word, tables and headings as none."""
    for pattern, by in [
        (r"\A---\n.*?\n---\n", ""),
        (r"^ *```.*?^ *```$", "\n\n"),
        (r"<!--.*?-->", "\n\n"),
        (r"^(\||#|:::).*$", "\n"),
        (r"`[^`]*`", "code"),
        (r"!?\[([^\]]*)\]\([^)]*\)", r"\1"),
        (r"^ *([*-]|\d+\.|:) ", "\n\n"),
    ]:
        text = re.sub(pattern, by, text, flags=re.S | re.M if ".*?" in pattern else re.M)
    paragraphs = [" ".join(one.split()) for one in re.split(r"\n\s*\n", text)]
    end = r"(?<=[.!?])[\"”)*]* (?=[\"“(*]*[\w`∑])"
    return [sentence for one in paragraphs for sentence in re.split(end, one)]


@pytest.mark.parametrize("page", sorted(GUIDES.keys() - {"index.md", "api.md"}))
def test_a_page_says_first_for_whom_it_is(page):
    first = GUIDES[page].read_text(encoding="utf-8").split("\n\n")[1]
    assert re.match(r"(For|Background for) ", first)
    assert re.search(r"\b([Yy]ou will|Copy)\b", first) or page.startswith("convention")


@pytest.mark.parametrize("page", GUIDES)
def test_no_sentence_is_above_30_words(page):
    found = sentences(GUIDES[page].read_text(encoding="utf-8"))
    assert [one for one in found if len(one.split()) > 30] == []


@pytest.mark.parametrize("page", GUIDES)
def test_no_page_is_above_2000_words(page):
    assert len(GUIDES[page].read_text(encoding="utf-8").split()) <= 2000


def test_all_pages_have_at_most_80000_words():
    pages = [README, *(ROOT / "docs").rglob("*.md")]
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    assert words <= 80_000


# -- generated tables


@pytest.mark.parametrize("name", generated.TABLES)
def test_generated_tables(name):
    page, rows = generated.TABLES[name]
    assert generated.between(page.read_text(encoding="utf-8"), name) == rows(), (
        "run python tests/generated.py"
    )

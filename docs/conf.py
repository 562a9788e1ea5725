"""Sphinx builds the documentation: python -m sphinx -W docs build/docs

The pages are Markdown. The handbook of metrics and the API page are written from the registry of the package when a
build starts, so that they cannot fall behind it.
"""

import re
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import recdf as rd  # noqa: E402 (after the path is set)

project = "recdf"
author = "the recdf developers"
project_copyright = author
version = release = rd.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_generated"]
html_theme = "pydata_sphinx_theme"
html_title = "recdf"
html_sidebars = {"*": []}  # pages without pages below them need no empty column beside them
html_show_sourcelink = False
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
myst_heading_anchors = 3
default_role = "code"  # single backquotes in docstrings
add_module_names = False
autodoc_typehints = "none"  # the types stand in the docstrings, in words
napoleon_google_docstring = False
napoleon_custom_sections = ["Formula"]
napoleon_use_rtype = False

FAMILIES = {
    "relevance": "Relevance: how much of what is shown is right, and how much of what is right is shown.",
    "ranking": "Ranking: whether the right items stand high.",
    "money": "Money: what the hits are worth.",
    "diversity": "Diversity: how different the items of a list are from each other.",
    "novelty": "Novelty: whether the items are new to the user, or known to everybody.",
    "exposure": "Exposure: how the recommendations are spread over the catalogue. One number for all lists.",
    "fairness": "Fairness: whether groups of items and users get their share.",
    "rating": "Rating: how good predicted ratings are.",
    "responses": "Responses: what users did with what they were shown, in a log of impressions.",
}


def write_pages(app):
    """Write the pages that follow from the package."""
    write_handbook(HERE / "handbook")
    write_api(HERE / "_generated")


def write_handbook(folder):
    """One page a family of metrics, and a page that lists the families."""
    folder.mkdir(exist_ok=True)
    names = tomllib.loads((HERE / "names_elsewhere.toml").read_text(encoding="utf-8"))
    metrics = [metric for metric in rd.METRICS.values() if metric.built_in]
    # A family without a line above has the first line of its module.
    families = {one.family: sys.modules[one.kernel.__module__].__doc__.splitlines()[0] for one in metrics} | FAMILIES
    for family, about in families.items():
        lines = [*heading(family.capitalize(), "="), about, ""]
        for metric in (one for one in metrics if one.family == family):
            lines += [*heading(metric.name, "-"), *facts(metric, names.get(metric.name, {})), ""]
            lines += [f".. autofunction:: recdf.{metric.name}", "   :no-index-entry:", ""]
        write(folder / f"{family}.rst", lines)
    index = [*heading("Metric handbook", "="), "One page a family, written from the package.", ""]
    write(folder / "index.rst", [*index, ".. toctree::", "   :maxdepth: 2", "", *(f"   {name}" for name in families)])


def facts(metric, names):
    """Aliases, needs, and the names that other libraries use, as a list."""
    found = []
    if metric.aliases:
        found.append(f"* Aliases in metric strings: {', '.join(f'``{alias}``' for alias in metric.aliases)}")
    needs = [need for need in metric.needs if need != "true"]
    if needs:
        found.append(f"* Needs beyond ``pred``: {', '.join(f'``{need}``' for need in needs)}")
    if names:
        found.append(f"* Called elsewhere: {', '.join(f'``{name}`` ({library})' for library, name in names.items())}")
    return [*found, ""] if found else []


def write_api(folder):
    """Directives for every public name that is not a metric: first the top, then each namespace."""
    folder.mkdir(exist_ok=True)
    kinds = {"Functions": [], "Classes": [], "Errors and warnings": []}
    for name in rd.__all__:
        thing = getattr(rd, name)
        if not isinstance(thing, rd.Metric):
            kinds[kind_of(thing)].append(directive(thing, f"recdf.{name}"))
    errors = kinds.pop("Errors and warnings")
    for space in ("experiments", "ope", "logs", "diagnostics"):
        names = [name for name in getattr(rd, space).__all__ if name not in rd.__all__]
        kinds[f"rd.{space}"] = [directive(getattr(getattr(rd, space), name), f"recdf.{space}.{name}") for name in names]
    lines = []
    for title, directives in {**kinds, "Errors and warnings": errors}.items():
        lines += [*heading(title, "-"), *(line for one in directives for line in (one, ""))]
    write(folder / "api.rst", lines)


def kind_of(thing):
    """The part of the page in which a name stands."""
    if not isinstance(thing, type):
        return "Functions"
    return "Errors and warnings" if issubclass(thing, Exception) else "Classes"


def directive(thing, name):
    """What autodoc reads for one name."""
    words = {"Functions": ".. autofunction:: {}", "Classes": ".. autoclass:: {}\n   :members:"}
    return words.get(kind_of(thing), ".. autoexception:: {}").format(name)


def heading(text, under):
    return [text, under * len(text), ""]


def write(path, lines):
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:  # an untouched page is not built again
        path.write_text(text, encoding="utf-8")


def escape(app, what, name, obj, options, lines):
    """Bars and stars mean markup in reStructuredText, but stand for themselves in the docstrings."""
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            prose = re.split(r"(`[^`]*`)", line)  # what stands in backquotes is left as it is
            prose[::2] = [re.sub(r"\||(?<!\w)\*+(?=\S)", lambda m: "\\" + "\\".join(m[0]), part) for part in prose[::2]]
            lines[number] = "".join(prose)


def setup(app):
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", escape, priority=400)  # before napoleon reads the sections

"""Sphinx builds the documentation: python -m sphinx -W docs build/docs

The pages are Markdown. The handbook of metrics and the pages of the API are written from the
package when a build starts, so that they cannot fall behind it. The picture of a report on the
first page is taken when a build ends, where Playwright and Chromium are there; else it is the one
of the repository.
"""

import functools
import inspect
import json
import os
import re
import sys
import tomllib
from pathlib import Path

from docutils import nodes
from sphinx.search.en import SearchEnglish

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

sys.path.insert(0, str(HERE))

import draw_report  # noqa: E402 (after the path is set)

import recdf as rd  # noqa: E402
from recdf.inputs.options import OPTIONS  # noqa: E402

# The index of the search asks for the stem of each word on each page, and computing it is slow.
SearchEnglish.stem = functools.cache(SearchEnglish.stem)

project = "recdf"
author = "the recdf developers"
project_copyright = author
version = release = rd.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_generated"]
html_search_scorer = str(HERE / "_generated" / "search.js")
html_theme = "pydata_sphinx_theme"
html_title = "recdf"
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path = ["_templates"]
html_sidebars = {"**": ["site-nav.html"]}  # the whole site, with the pages of the part that is open
html_show_sourcelink = False
html_context = {
    "default_mode": "auto"
}  # without it, the theme complains of "Got invalid theme mode" on every page
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_center": ["doors.html"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
}
if site := os.environ.get("RECDF_DOCS_URL"):  # docs/publish.py: each version offers the others
    html_baseurl = f"{site}/stable/"
    html_theme_options |= {
        "switcher": {"json_url": f"{site}/switcher.json", "version_match": version},
        "check_switcher": False,  # it is written when the build has ended
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
    }
myst_heading_anchors = 3
default_role = "code"  # single backquotes in docstrings
add_module_names = False
toc_object_entries = False  # the headings of a page say the same names
autodoc_typehints = "none"  # the types stand in the docstrings, in words
napoleon_google_docstring = False
napoleon_custom_sections = ["Formula"]
napoleon_use_rtype = False

FAMILIES = tomllib.loads((HERE / "families.toml").read_text(encoding="utf-8"))


NAMES_TABLE = (".. list-table::", "   :class: names", "   :widths: 38 62", "")


def write_pages(app):
    """Write the pages that follow from the package."""
    write_handbook(HERE / "handbook")
    write_api(HERE / "_generated", HERE / "reference")
    write_search(HERE / "_generated" / "search.js")


LEFT_OUT = ["index", "changelog", "api", "handbook/index"]  # lists of links, not answers


def write_search(path):
    """The ranking of the search, with the words of each page's line "Also called"."""
    words = {f"handbook/{name}": one["also_called"].split(", ") for name, one in FAMILIES.items()}
    for page in sorted(HERE.rglob("*.md")):
        words[page.relative_to(HERE).with_suffix("").as_posix()] = also_called(page)
    text = (HERE / "search.js").read_text(encoding="utf-8")
    index = (HERE / "index.md").read_text(encoding="utf-8")
    background = re.search(r":caption: Background\n\n(.*?)```", index, re.S)[1].split()
    for name, value in (
        ("PAGE_WORDS = {}", words),
        ("LEFT_OUT = []", LEFT_OUT),
        ("BACKGROUND = []", [*background, "migrate"]),
    ):
        text = text.replace(name, name[:-2] + json.dumps(value, ensure_ascii=False))
    write(path, text.splitlines())


def also_called(page):
    """The phrases of the line that a page ends with, which readers do not see."""
    found = re.search(r"<!-- Also called: (.*?) -->", page.read_text(encoding="utf-8"), re.S)
    return [phrase.strip() for phrase in found[1].split(",")] if found else []


def write_handbook(folder):
    """One page a family of metrics, one of the options that all share, and a page that lists
    them."""
    folder.mkdir(exist_ok=True)
    names = tomllib.loads((HERE / "names_elsewhere.toml").read_text(encoding="utf-8"))
    metrics = [metric for metric in rd.METRICS.values() if metric.built_in]
    listed = [*NAMES_TABLE]
    for family in dict.fromkeys(metric.family for metric in metrics):
        own = [metric for metric in metrics if metric.family == family]
        shared = "``**options`` are the :doc:`options` of all metrics."
        title = family.capitalize().replace("_", " ")
        asks = FAMILIES[family]["asks"]
        lines = [*heading(title, "="), asks, "", shared, "", *NAMES_TABLE]
        for metric in own:
            place = metric.name.replace("_", "-")
            lines += [
                f"   * - `{metric.name} <#{place}>`__",
                f"     - {plain(metric.doc)}",
            ]
        lines.append("")
        for metric in own:
            lines += [*heading(metric.name, "-"), *facts(metric, names.get(metric.name, {})), ""]
            lines += [
                f".. autofunction:: recdf.{metric.name}{own_signature(metric)}",
                "   :no-index-entry:",
                "",
            ]
        write(folder / f"{family}.rst", lines)
        links = ", ".join(f"``{metric.name}``" for metric in own)
        listed += [
            f"   * - :doc:`{title} <{family}>`",
            f"     - {asks} {links}",
        ]
    write(folder / "options.rst", options_page())
    write(folder / "names.rst", names_page(metrics, names))
    words = """One page a family, written from the package. :doc:`../choose` asks ten questions that
lead to a metric, :doc:`../metrics` lists all of them, and :doc:`options` has what all of them take
beside their own parameters."""
    index = [":nosearch:", "", *heading("Metric handbook", "="), words, "", *listed, ""]
    pages = [
        "../choose",
        "../metrics",
        *dict.fromkeys(one.family for one in metrics),
        "options",
        "names",
    ]
    write(
        folder / "index.rst",
        [*index, ".. toctree::", "   :hidden:", "", *(f"   {name}" for name in pages)],
    )


def names_page(metrics, names):
    """What each metric is called elsewhere: no metric is left out."""
    words = """Every metric in alphabetical order: whether larger or smaller values are better, its
range, and what other libraries call it. :doc:`../conventions` says where numbers are equal."""
    lines = [*heading("Names in other libraries", "="), words, "", *NAMES_TABLE]
    for metric in sorted(metrics, key=lambda one: one.name):
        low, high = metric.bounds
        called = sorted(names.get(metric.name, {}).items(), key=lambda one: one[0].lower())
        elsewhere = (
            "; ".join(f"{library} ``{name}``" for library, name in called) or "in recdf only"
        )
        better = metric.better or "neither"
        lines += [
            f"   * - ``{metric.name}``, {better}, {number(low)} to {number(high)}",
            f"     - {elsewhere or 'in recdf only'}",
        ]
    return [*lines, ""]


def number(bound):
    return "∞" if bound is None or bound != bound else f"{bound:g}".replace("inf", "∞")


def own_signature(metric):
    """The signature of a metric without what all metrics share."""
    parts, keyword_only = [], False
    for name, one in inspect.signature(metric).parameters.items():
        if name in OPTIONS or name == "options":
            continue
        if one.kind is one.KEYWORD_ONLY and not keyword_only:
            parts, keyword_only = [*parts, "*"], True
        parts.append(name if one.default is one.empty else f"{name}={one.default!r}")
    return f"({', '.join([*parts, '**options'])})"


def options_page():
    """The options of every metric, of `evaluate` and of the tables of diagnostics, once."""
    words = """What every metric takes, and ``rd.evaluate``, ``rd.check`` and the tables of
``rd.diagnostics`` too. Each is a keyword; ``options=rd.Options(...)`` holds those of a project,
stated once. :doc:`../own_frames` shows most of them at work."""
    lines = [*heading("Options", "="), words, ""]
    for name, option in OPTIONS.items():
        lines += [f"``{name}`` : default ``{option.default!r}``", f"   {plain(option.doc)}", ""]
    return lines


def facts(metric, names):
    """Aliases, needs, and the names that other libraries use, as a list."""
    found = []
    if metric.aliases:
        found.append(
            f"* Aliases in metric strings: {', '.join(f'``{alias}``' for alias in metric.aliases)}"
        )
    needs = [need for need in metric.needs if need != "true"]
    if needs:
        found.append(f"* Needs beyond ``pred``: {', '.join(f'``{need}``' for need in needs)}")
    if names:
        found.append(
            "* Called elsewhere: "
            f"{', '.join(f'``{name}`` ({library})' for library, name in names.items())}"
        )
    return [*found, ""] if found else []


SPACES = {
    "recdf": "What most analyses need. The metrics stand here too; the :doc:`handbook "
    "<handbook/index>` has them.",
    "experiments": "From per-user tables to a decision: join, compare, correct, plan.",
    "ope": "Off-policy: what a policy that did not run would have earned.",
    "logs": "Raw logs to the two tables of an evaluation.",
    "diagnostics": "Why a number is what it is, and whether it may be believed.",
    "plot": "Pictures of tables (extra ``recdf[plot]``). The :doc:`gallery <gallery>` shows them.",
    "spark": "Tables of Spark, evaluated where they are. See :doc:`engines`.",
    "dask": "Frames of Dask, evaluated where they are. See :doc:`engines`.",
}


def write_api(lists, folder):
    """A page for every public function and class, grouped by the namespace in which users find
    it."""
    lists.mkdir(exist_ok=True)
    folder.mkdir(exist_ok=True)
    lines, errors, written = [], [], set()
    for space, words in SPACES.items():
        held = rd if space == "recdf" else getattr(rd, space)
        lines += [*heading("rd" if held is rd else f"rd.{space}", "-"), words, "", *NAMES_TABLE]
        pages = []
        for name in held.__all__:
            thing = getattr(held, name)
            at_the_top = held is not rd and name in rd.__all__ and thing is getattr(rd, name)
            if isinstance(thing, rd.Metric) or at_the_top:
                continue
            if isinstance(thing, type) and issubclass(thing, Exception):
                errors += [f".. autoexception:: recdf.{name}", ""]
                continue
            if callable(thing):
                shown = f"rd.{name}" if held is rd else f"rd.{space}.{name}"
                pages.append(f"{shown[3:]}")
                write(
                    folder / f"{pages[-1]}.rst",
                    function_page(shown, thing, getattr(held, "__name__", "recdf")),
                )
                first = (inspect.getdoc(thing) or "").partition("\n")[0]
                lines += [
                    f"   * - :doc:`{shown} <reference/{pages[-1]}>`",
                    f"     - {plain(first)}",
                ]
        lines += [
            "",
            ".. toctree::",
            "   :hidden:",
            "",
            *(f"   rd.{page} <reference/{page}>" for page in pages),
            "",
        ]
        written |= {f"{page}.rst" for page in pages}
    for old in folder.glob("*.rst"):  # of a name that is gone
        if old.name not in written:
            old.unlink()
    write(lists / "api.rst", [*lines, *heading("Errors and warnings", "-"), *errors])


def function_page(shown, thing, module):
    """The page of one function, class or picture."""
    name = shown.rpartition(".")[2]
    words = ".. autoclass:: {}\n   :members:" if isinstance(thing, type) else ".. autofunction:: {}"
    return [*heading(shown, "="), words.format(f"{module}.{name}"), ""]


def plain(text):
    """A sentence of a docstring as reStructuredText."""
    lines = text.split("\n")
    escape(None, "", "", None, None, lines)
    return " ".join(" ".join(lines).split())


def heading(text, under):
    return [text, under * len(text), ""]


def write(path, lines):
    text = "\n".join(lines) + "\n"
    if (
        not path.exists() or path.read_text(encoding="utf-8") != text
    ):  # an untouched page is not built again
        path.write_text(text, encoding="utf-8")


def escape(app, what, name, obj, options, lines):
    """Bars and stars mean markup in reStructuredText, but stand for themselves in the
    docstrings."""
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            prose = re.split(r"(`[^`]*`)", line)  # what stands in backquotes is left as it is
            prose[::2] = [
                re.sub(r"\||(?<!\w)\*+(?=\S)", lambda m: "\\" + "\\".join(m[0]), part)
                for part in prose[::2]
            ]
            lines[number] = "".join(prose)


def shoot(app, failed):
    """Take the picture of the first page from a report of this build."""
    target = Path(app.outdir) / "_images" / "report.png"
    if failed is None and app.builder.format == "html" and target.exists():
        draw_report.first_screen(target)


def add_words(app, doctree):
    """The line "Also called" of a page as its keywords, which the index of the search reads."""
    words = also_called(Path(app.env.doc2path(app.env.docname)))
    if words:
        doctree.append(nodes.meta(name="keywords", content=", ".join(words)))


def make_the_list_of_pages_once(app, page, template, context, doctree):
    """The theme fills the template of the list twice, to see whether it is empty, and the list is a
    third of the work of a page."""
    context["toctree"] = functools.cache(context["toctree"])


def setup(app):
    app.connect("html-page-context", make_the_list_of_pages_once, priority=400)  # before the theme
    app.connect("doctree-read", add_words)
    app.connect("build-finished", shoot)
    app.connect("builder-inited", write_pages)
    app.connect(
        "autodoc-process-docstring", escape, priority=400
    )  # before napoleon reads the sections

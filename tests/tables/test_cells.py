"""Cells: numbers as text, and names from logs as letters in Markdown, LaTeX, HTML and plain
text."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recdf.tables.cells import (
    Cell,
    interval,
    number,
    p_value,
    shorten,
    to_html,
    to_latex,
    to_markdown,
    to_text,
    visible,
)


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (-0.25, "+.2f", "−0.25"),
        (0.25, "+.1%", "+25.0%"),
        (np.nan, ".3f", "–"),
        (-np.inf, "+.1f", "−∞"),
        (1234, ",d", "1,234"),
        (None, ".1f", "–"),
    ],
)
def test_number(value, form, text):
    assert number(value, form) == text


def test_interval_and_p_value():
    assert interval(-0.5, 1.25, "+.1f") == "[−0.5, +1.2]"
    assert interval(np.nan, 1, "+.1f") == ""
    assert [p_value(p) for p in (0.0009, 0.001, 0.0495, np.nan)] == [
        "<0.001",
        "0.001",
        "0.050",
        "–",
    ]


def test_hidden_characters_are_shown_and_spaces_are_plain():
    assert visible("a\u202eb\u2066c\x00\ufeff") == "a⟨U+202E⟩b⟨U+2066⟩c⟨U+0000⟩⟨U+FEFF⟩"
    assert visible("two\nlines\tand \u2028 more") == "two lines and   more"
    assert visible("naïve 漢字 שלום") == "naïve 漢字 שלום"


@given(st.text(max_size=60), st.integers(2, 40))
@example("a long text … with an ellipsis", 11)
@example("👩‍👩‍👧 wide letters and a half\ud7ff" * 2, 12)
def test_shorten_keeps_both_ends(text, length):
    short = shorten(text, length)
    assert len(short) <= max(length, 1)
    if len(text) > length:
        head, tail = (
            short.split("…", 1)
            if "…" not in text
            else (short[: length // 2], short[length // 2 + 1 :])
        )
        assert text.startswith(head)
        assert text.endswith(tail)


class Tags(HTMLParser):
    """Which tags and attributes a text of HTML has, and what it says."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts = set(), set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.texts.append(data)


@given(st.text(max_size=40), st.booleans())
@example("<img src=x onerror=alert(1)>", True)
@example('"><b style="x">&lt;&amp;</td>', False)
@example("two\nlines\r\n<!-- and \x00", True)
def test_html_holds_only_its_own_tags(name, bold):
    page = Tags(to_html([name], [[Cell(name, bold=bold, small=name)]], ["left"]))
    assert page.tags <= {"table", "thead", "tbody", "tr", "th", "td", "b", "small"}
    assert page.attributes <= {"style"}
    assert "".join(page.texts).count(visible(name)) >= 3 * bool(visible(name).strip())


@given(st.text(max_size=40))
@example("a|b")
@example("ends with \\")
@example("\\|\\\\|")
@example("two\nlines\r| and \u2028 more")
def test_markdown_keeps_its_columns(name):
    lines = to_markdown(["a", name], [[Cell("x"), Cell(name)]], ["left", "right"]).splitlines()
    assert len(lines) == 3
    for line in lines:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 3


@pytest.mark.parametrize(
    ("name", "inert"),
    [
        ("a|b", r"a\|b"),
        ("<b>x", "&lt;b>x"),
        ("p <0.001", "p <0.001"),
        ("[x](javascript:1)", r"[x]\(javascript:1)"),
        ("*x*", r"\*x\*"),
        ("user_gap", "user_gap"),
        ("a\\|b", r"a\\\|b"),
        ("<!--", "&lt;!--"),
    ],
)
def test_markdown_letters(name, inert):
    assert (
        to_markdown(["n"], [[Cell(name)]], ["left"]).splitlines()[2].strip("| ").rstrip() == inert
    )


def test_emphasis_in_every_form():
    head, row = (
        ["m"],
        [[Cell("0.5", bold=True, mark="ab", small="± 0.1"), Cell("0.4", underline=True, mark="−")]],
    )
    head, align = ["x", "y"], ["right", "left"]
    assert "**0.5**ᵃᵇ ± 0.1" in to_markdown(head, row, align)
    assert "_0.4_⁻" in to_markdown(head, row, align)
    latex = to_latex(head, row, align, booktabs=True)
    assert r"\textbf{0.5}$^{ab}$ {\footnotesize $\pm$ 0.1} & \underline{0.4}$^{-}$ \\" in latex
    assert latex.startswith(r"\begin{tabular}{rl}" + "\n" + r"\toprule")
    assert "<b>0.5</b><sup>ab</sup> <small>± 0.1</small>" in to_html(head, row, align)
    assert to_text(head, row, align).splitlines()[1] == "0.5ᵃᵇ ± 0.1  0.4⁻"


LATEX_NAMES = [
    "100 % & $5 #1_a {b} ~^\\",
    'p < 0.001 | x > "y" − ∞ ± ≤ · …',
    "\\input{/etc/passwd}",
    "n" * 300,
]


def test_latex_has_no_command_of_a_name():
    table = to_latex(["a_b"], [[Cell(name)] for name in LATEX_NAMES], ["left"], booktabs=False)
    body = re.sub(
        r"\\(textbackslash|textasciitilde|textasciicircum|symbol|ldots|begin|end)\{[^}]*\}",
        "",
        table,
    )
    commands = set(re.findall(r"\\([a-zA-Z]+)", body))
    assert commands <= {"hline", "infty", "pm", "leq", "geq", "cdot", "langle", "rangle", "times"}
    assert body.count("{") - body.count(r"\{") == body.count("}") - body.count(r"\}")
    assert len(re.findall(r"(?<!\\)\$", body)) % 2 == 0
    assert not re.findall(r"(?<!\\)[%#&]", body)


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="no TeX is installed: pdflatex is not found"
)
def test_latex_compiles(tmp_path):
    table = to_latex(
        ["name"],
        [[Cell(name, bold=True, mark="a")] for name in LATEX_NAMES],
        ["left"],
        booktabs=True,
    )
    head = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{booktabs}\begin{document}"
    source = head + table + r"\end{document}"
    (tmp_path / "t.tex").write_text(source, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]

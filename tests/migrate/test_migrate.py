"""The pages of docs/migrate say what the other libraries say: against stored numbers, and live
where they are there."""

import json
import re
from importlib.util import find_spec

import pytest
from migrate import pages

import recdf as rd

GOLDEN = {name: pages.GOLDEN / f"{name}.json" for name in pages.DISTRIBUTIONS}
LIVE = "tests/golden/migrate has its numbers, which the other tests compare"


@pytest.fixture(autouse=True)
def at_the_top(monkeypatch):
    monkeypatch.chdir(pages.ROOT)


def test_each_library_has_a_page_and_numbers():
    assert set(pages.PAGES) == set(pages.DISTRIBUTIONS)
    for name, path in GOLDEN.items():
        kept = json.loads(path.read_text(encoding="utf-8"))
        assert kept["digest"] == pages.digest(name), f"run tests/migrate/collect.py {name}"
        assert set(kept["answers"]) == {theirs for theirs, *_ in pages.rows(name)}
        for library in pages.DISTRIBUTIONS[name]:
            assert kept["versions"][library] in pages.text_of(name), (
                f"say on the page with which {library} it ran"
            )


@pytest.mark.few(1)
@pytest.mark.filterwarnings("ignore::recdf.RecdfWarning")
@pytest.mark.parametrize("name", pages.DISTRIBUTIONS)
def test_every_row_of_the_table_of_calls(name):
    answers = json.loads(GOLDEN[name].read_text(encoding="utf-8"))["answers"]
    names, wrong = pages.run(name, ("python",))
    assert wrong == ""
    compared = pages.rows(name)
    assert len(compared) >= 7
    for theirs, ours, note in compared:
        apart = pages.distance(answers[theirs], pages.number(eval(ours, names)))
        assert pages.as_stated(apart, note), (theirs, ours, note, apart)


@pytest.mark.parametrize("name", pages.DISTRIBUTIONS)
def test_a_page_runs_with_its_library(name):
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed; {LIVE}")
    names, wrong = pages.run(name, ("python", "py"))
    assert wrong == ""
    answers = json.loads(GOLDEN[name].read_text(encoding="utf-8"))["answers"]
    for theirs, *_ in pages.rows(name):
        assert pages.distance(answers[theirs], pages.number(eval(theirs, names))) <= 1e-9, theirs


@pytest.mark.parametrize("name", pages.DISTRIBUTIONS)
def test_a_page_says_what_is_not_here(name):
    headings = re.findall(r"^## (.+)$", pages.text_of(name), flags=re.M)
    assert headings == [
        "Your data",
        "The same numbers",
        "Calls",
        "What differs, and why",
        "What recdf does not have",
    ]
    assert name in rd.CONVENTIONS or name in ("ir_measures", "obp")


def test_the_first_page_counts_the_calls_of_each():
    text = (pages.ROOT / "docs" / "migrate.md").read_text(encoding="utf-8")
    said = {
        name: int(calls) for name, calls in re.findall(r"\(migrate/(\w+)\.md\) \| (\d+) \|", text)
    }
    assert said == {name: len(pages.rows(name)) for name in pages.DISTRIBUTIONS}

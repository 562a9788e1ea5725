"""A number with its noun is made by one function, so that no word says "1 users"."""

import ast
import re
from pathlib import Path

import pytest

import recdf as rd
from recdf.display.given_tables import count_text
from recdf.tables.cells import amount, doing

PACKAGE = Path(rd.__file__).parent
# Rooms whose words are drawn or printed. An error may say "in 1 of 5 rows".
DRAWN = ("cli", "diagnostics", "display", "evaluation", "experiments", "judge", "logs", "tables")
BEHIND = re.compile(r" (?:more |other )?([a-z]+s)\b")
# Verbs and small words that stand behind a value.
NO_NOUN = {"is", "has", "vs", "was", "as", "lacks", "counts", "scores", "depends", "this", "shows"}
NO_NOUN |= {"stays", "computes", "tells", "does", "wins", "belongs", "its", "holds"}
# Nouns behind a name, or behind a number that is at least 2; by their module.
NEVER_ONE = {
    ("about_models", "metrics"),  # of more than nine panels
    ("adjust_pvalues", "families"),
    ("adjust_pvalues", "tests"),  # "not adjusted" for one
    ("by_segment", "rows"),  # a warning of "1 of 5 rows"
    ("card", "models"),
    ("card", "values"),  # "larger values"
    ("cheap_labels", "lists"),  # 20 at least
    ("check_findings", "ids"),
    ("check_findings", "others"),
    ("evaluate", "buckets"),
    ("evaluate", "values"),
    ("impressions", "devices"),
    ("impressions", "refunds"),
    ("interleaving", "clicks"),
    ("leaderboard", "comparisons"),
    ("storage", "bytes"),
    ("picture", "others"),
    ("verdict", "comparisons"),
    ("table", "models"),  # a kind of verdicts, behind others
}


def plurals_behind_values(source):
    """Every plural that stands behind a value in a text, errors left out."""
    tree = ast.parse(source)
    raised = [one for one in ast.walk(tree) if isinstance(one, ast.Raise)]
    errors = {id(part) for one in raised for part in ast.walk(one)}
    for text in ast.walk(tree):
        if isinstance(text, ast.JoinedStr) and id(text) not in errors:
            for value, words in zip(text.values, text.values[1:], strict=False):
                if isinstance(value, ast.FormattedValue) and isinstance(words, ast.Constant):
                    yield from BEHIND.findall(words.value[: len(words.value)])[
                        : bool(BEHIND.match(words.value))
                    ]


@pytest.mark.long
def test_no_text_writes_a_plural_behind_a_number_that_may_be_1():
    found = {
        (path.stem, noun)
        for room in DRAWN
        for path in (PACKAGE / room).rglob("*.py")
        for noun in plurals_behind_values(path.read_text(encoding="utf-8"))
        if noun not in NO_NOUN and path.stem != "stored_runs"  # the demo has thousands of each
    }
    assert found == NEVER_ONE


def test_the_search_finds_what_it_looks_for():
    source = (
        'f"{n} users gain"; f"{n:,} more rows"; f"all {n} of it"\nraise ValueError(f"{n} rows")'
    )
    assert [*plurals_behind_values(source)] == ["users", "rows"]


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_a_number_with_its_noun_and_its_verb(n):
    s, of_verb = ("", "s") if n == 1 else ("s", "")
    assert amount(n, "more user") == f"{n:,} more user{s}"
    assert doing(n, "gain") == f"{n:,} gain{of_verb}"
    assert doing(n, "gain", "user") == f"{n:,} user{s} gain{of_verb}"
    assert count_text([n, None], "list") == f"n = {n:,} list{s}"
    assert count_text([0, n], "list") == f"n = {'0 to ' * (n > 0)}{n:,} list{s}"


@pytest.mark.long
@pytest.mark.parametrize(("up", "down"), [(0, 1), (1, 2), (2, 1)])
def test_who_gains_and_who_loses_is_counted(up, down):
    """1 user gains, 2 users gain."""
    hits = {"old": [0] * up + [1] * down + [1], "new": [1] * up + [0] * down + [1]}
    users = range(up + down + 1)
    pred = {model: {u: ["x" if own[u] else "y"] for u in users} for model, own in hits.items()}
    true = {u: ["x"] for u in users}
    result = rd.join_results({m: rd.evaluate(true, own, "hitrate@1") for m, own in pred.items()})
    ax = rd.plot.winners(result, "hitrate@1", model="new", baseline="old")
    drawn = {text.get_text() for text in ax.figure.findobj(lambda one: hasattr(one, "get_text"))}
    assert {doing(up, "gain", "user"), doing(down, "lose", "user")} <= drawn
    assert not [text for text in drawn if re.search(r"\b1 users|\b1 lists|\b1 user gain\b", text)]

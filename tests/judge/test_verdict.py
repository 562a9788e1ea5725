"""Codes of verdicts, and the one writer of their sentences."""

import functools
import itertools
import re

import pandas as pd
import pytest

from recdf.judge.cautions.table import CAUTIONS, UNLIKE
from recdf.judge.verdict import EFFECTS, add_verdicts, codes_of, has, sentence

NUMBERS = {
    "effect_both": "worse",
    "withheld_both": "",
    "both": "worse",
    "metric": "ms p99",
    "unlike": "other truth (2 of 9 lists)",
    **dict.fromkeys(["changed", "found", "until"], pd.Timestamp("2026-11-03")),
    "way": "lower",
    "alike": "in slow waves",
    "outliers": "2026-11-03 (-8 sd)",
    "per_month": 0.1,
    **dict.fromkeys(["mean_control", "gap_low", "gap_high"], 9.99),
    "n_users": 100,
    "holds_for": "users with up to 14 lists",
    "unless": "3 in 200 users have 16 or more",
    "turned_by": 1.4,
    "turned_to": "lose",
    "turning_value": -2.5,
    "unseen": 3.0,
    "detail": "the arms differ",
}


@functools.cache
def pattern(words):
    """The words of a caution, its numbers written in any digits."""
    return re.compile(re.sub(r"\\{.*?\\}", ".+?", re.escape(words)))


@pytest.mark.parametrize("kind", EFFECTS)
def test_every_product_of_codes_has_a_sentence(kind):
    """What a code adds stands behind that of the others: so none, one, two and all show it."""
    withholding = [one.code for one in CAUTIONS.values() if kind in one.withholds.split()]
    adding = [one.code for one in CAUTIONS.values() if one.adds]
    for effect, n in itertools.product(EFFECTS[kind], (0, 1, 2, len(adding))):
        for added in itertools.combinations(adding, n):
            said = sentence(kind, effect, "", added, NUMBERS)
            assert said.startswith(EFFECTS[kind][effect])
            assert all(pattern(CAUTIONS[code].adds).search(said) for code in added)
            assert "{" not in said
    for code in withholding:
        said = sentence(kind, "", code, [code], NUMBERS)
        assert said
        assert pattern(CAUTIONS[code].words).fullmatch(said)


def test_every_caution_that_withholds_has_words_and_every_one_a_meaning():
    for one in CAUTIONS.values():
        assert bool(one.words) == bool(one.withholds), one.code
        assert {*one.withholds.split()} <= EFFECTS.keys(), one.code
        assert one.sentence[:1] in "abcdefghijklmnopqrstuvwxyz0123456789", one.code
        assert not one.sentence.endswith("."), one.code
    assert {*UNLIKE} <= CAUTIONS.keys()


def pairs(**columns):
    """Return two comparisons of models of 100 users, of which 60 have a difference."""
    numbers = {"metric": "m", "n_users": 100, "wins": 40, "losses": 20, "ties": 40, "se": 0.1}
    return pd.DataFrame({**numbers, "diff": 0.5, "remarks": "", **columns}, index=[3, 4])


def test_the_most_serious_caution_decides_and_all_are_remarked():
    table = pairs(remarks=["skewed; huge_values", ""], n_users=[25, 100], ties=1)
    add_verdicts(table, "models", ["better", "none"])
    assert table["withheld"].tolist() == ["few_lists", ""]
    assert table["remarks"].tolist() == ["few_lists; huge_values; skewed", ""]
    assert table["effect"].tolist() == ["", "none"]
    assert table["verdict"].tolist() == ["check: too few lists", "no difference shown"]
    assert has(table["remarks"], "skewed", "tiny").tolist() == [True, False]


def test_a_caution_without_its_columns_says_nothing():
    table = pairs().drop(columns=["wins"]).assign(n_users=2)
    add_verdicts(table, "models", ["better", "worse"])
    assert table["verdict"].tolist() == ["better", "worse"]


def test_a_code_that_the_table_of_cautions_lacks_is_an_error():
    with pytest.raises(KeyError, match="unheard"):
        add_verdicts(pairs(remarks="unheard"), "models", ["better", "worse"])


def test_remarks_add_to_a_verdict_that_stands():
    table = pairs(remarks="within_margin", effect_both=["worse", "better"], withheld_both="")
    add_verdicts(table, "models", ["better", "better"])
    first, second = table["verdict"]
    assert first == "better, within the margin, but worse where both have lists"
    assert second == "better, within the margin"
    assert [codes_of(text) for text in table["remarks"]] == [
        ["within_margin", "missing_lists"],
        ["within_margin"],
    ]


def test_an_empty_table_gets_the_columns():
    table = pairs().iloc[:0]
    add_verdicts(table, "models", [])
    assert len(table) == 0
    assert {"effect", "withheld", "remarks", "verdict"} <= {*table.columns}

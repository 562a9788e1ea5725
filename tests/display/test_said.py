"""Every sentence of a row, with rows of the whole product of the codes, held against the row."""

import itertools

import numpy as np
import pandas as pd
import pytest

from recdf.display.kinds import TABLE_KINDS
from recdf.judge.cautions.table import CAUTIONS
from recdf.judge.verdict import EFFECTS, is_withheld, says_worse, sentence, sign_of, turned

from .experiment_tables import experiment_tables
from .page_read import off_policy
from .planted import numbers

# Numbers that a caution quotes.
QUOTED = {
    "unlike": "other truth (3 of 9 lists)",
    "turned_by": 1.4,
    "turned_to": "lose",
    "unseen": 3.0,
    "n_users": 400,
    "turning_value": -2.5,
    "gap_low": 1.0,
    "gap_high": 2.0,
    "mean_control": 1.5,
    "way": "changed",
    "changed": pd.Timestamp("2026-01-05"),
    "found": pd.Timestamp("2026-01-09"),
    "until": pd.Timestamp("2026-01-20"),
    "per_month": 0.1,
    "outliers": "2026-01-03",
    "alike": "from week to week",
    "detail": "days 1 to 3",
}


def sides(kind):
    return ("model", "baseline") if kind == "models" else ("treatment", "control")


def rows_of(kind):
    """A row for every effect with every caution beside it, and for every caution that withholds."""
    new, old = sides(kind)
    diffs = {"better": 0.25, "worse": -0.25, "higher": 0.25, "lower": -0.25, "none": 0.0625}
    of_both = ["", *(EFFECTS["models"] if kind == "models" else [])]
    for effect, code, both in itertools.product(EFFECTS[kind], ["", *CAUTIONS], of_both):
        held = bool(code) and kind in CAUTIONS[code].withholds.split()
        diff = diffs.get(effect, 0.125)
        row = {
            "metric": "ndcg@10",
            **QUOTED,
            new: "new",
            old: "old",
            "diff": diff,
            "ci_low": diff - 0.1875,
            "ci_high": diff + 0.1875,
            "rel_diff": diff * 2,
            "se": 0.09,
            "effect": "" if held else effect,
            "withheld": code if held else "",
            "remarks": code,
            "effect_both": both,
            "withheld_both": "",
        }
        yield row | {
            "verdict": sentence(kind, row["effect"], row["withheld"], [code] * bool(code), row)
        }


@pytest.mark.parametrize(("kind", "name"), [("models", "pairs"), ("variants", "experiment")])
def test_a_sentence_of_a_comparison_says_its_row(kind, name):
    for row in rows_of(kind):
        said = TABLE_KINDS[name].said(row)
        assert said.startswith(f"new against old on ndcg@10: {row['verdict']}")
        effect = numbers(said.partition(row["verdict"])[2])
        if row["withheld"]:
            assert not effect
            assert not any(f": {word}" in said for word in ("better", "worse", "equivalent"))
        else:
            ends = [row[name] for name in ("diff", "ci_low", "ci_high")]
            assert effect[:3] == pytest.approx(ends, abs=0.006)
        worse = "worse" in row["verdict"] and not row["withheld"]
        assert worse == says_worse(row), row["verdict"]
        assert "nan" not in said
        assert "None" not in said


def test_the_trend_of_an_effect_says_its_row():
    for effect, code in itertools.product(EFFECTS["trend"], ["", *CAUTIONS]):
        held = bool(code) and "trend" in CAUTIONS[code].withholds.split()
        codes = ("", code, []) if held else (effect, "", [])
        row = {
            **QUOTED,
            "metric": "ndcg@10",
            "trend": -0.25,
            "trend_ci_low": -0.375,
            "trend_ci_high": -0.125,
        }
        row["trend_withheld"] = codes[1]
        verdict = row["trend_verdict"] = sentence("trend", *codes, row)
        said = TABLE_KINDS["over_time"].said(row)
        slope = "" if held else ", −0.25 [−0.38, −0.12] per day"
        assert said.lower() == f"trend: {verdict}{slope}.".lower()


def test_a_turned_row_says_the_opposite():
    opposite = {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}
    opposite |= {"ranks_higher": "ranks_lower", "ranks_lower": "ranks_higher"}
    for row in rows_of("models"):
        other = turned(row)
        assert (other["model"], other["baseline"]) == ("old", "new")
        assert other["effect"] == opposite.get(row["effect"], row["effect"])
        assert other["ci_low"] == -row["ci_high"]
        assert is_withheld(other) == is_withheld(row)
        signs = {sign_of(row), sign_of(other)}
        assert signs in ({"better", "worse"}, {"open"})
        both = "missing_lists" in row["remarks"] and not row["withheld"]
        if both and row["effect_both"] == "better":
            assert "worse where both have lists" in other["verdict"]


@pytest.mark.parametrize(
    ("name", "kind"), [("aa", "aa"), ("ratio", "ratio"), ("role", "role"), ("proxy", "proxy")]
)
def test_a_sentence_of_an_estimate_says_its_row(name, kind):
    tables = experiment_tables()
    given = {"aa": "aa_test", "ratio": "find_srm", "role": "role_verdicts"}
    if name == "proxy":
        base = {"online": "clicks", "offline": "ndcg", "slope": 1.5, "slope_low": 1.0}
        base |= {"slope_high": 2.0, "n_tests": 12, "called_right": 0.75}
    else:
        base = tables[given[name]].iloc[0].to_dict()
    for effect, code in itertools.product(EFFECTS[kind], ["", *CAUTIONS]):
        held = bool(code) and kind in CAUTIONS[code].withholds.split()
        row = {"metric": "ndcg", **QUOTED, **base, "effect": "" if held else effect}
        row |= {"withheld": code if held else "", "remarks": code}
        row["verdict"] = sentence(kind, row["effect"], row["withheld"], [code] * bool(code), row)
        said = TABLE_KINDS[name].said(row)
        assert f": {row['verdict']}, " in said
        assert "nan" not in said


def test_a_sentence_of_an_off_policy_estimate_says_its_row():
    for base in off_policy().to_dict("records"):
        for effect, held, flags in itertools.product(
            ["", "ok", "wide", "interval_only"], ["", "few_rewards"], ["", "low_ess"]
        ):
            row = base | {"effect": "" if held else effect or "ok", "withheld": held}
            row |= {"flags": flags, "trust": "do not use" if held else "ok"}
            said = TABLE_KINDS["off_policy"].said(row)
            look = TABLE_KINDS["off_policy"].look(row)
            assert ("0.0" in said) == (not held)  # a number that may not be used is not said
            assert look == "error" if held else look != "error"
            assert look not in ("better", "worse") or not flags
            if look == "better":
                assert row["lift_ci_low"] > 0


@pytest.mark.parametrize("name", sorted(experiment_tables()))
def test_every_row_of_an_experiment_has_a_sentence_and_cells(name):
    table = experiment_tables()[name]
    columns = set(table.columns)
    found = [kind for kind in TABLE_KINDS.values() if columns.issuperset(kind.columns)]
    kind = found[0]
    rows = table.to_dict("records")
    assert all(kind.said(row).rstrip(".") for row in rows)
    cells = kind.cells(table)
    assert len(cells) == len(rows)
    assert len({tuple(one) for one in cells}) == 1
    if "verdict" in table.columns and name != "effect_over_time":
        assert [one["verdict"].cell.text for one in cells] == table["verdict"].tolist()


def test_health_findings_and_levels_have_sentences():
    arm = {"variant": "B", "n_assigned": 1000, "share": 0.5, "expected_share": 0.5}
    assert TABLE_KINDS["health"].said(arm) == "B 1,000 (50.0%, planned 50.0%)"
    row = {"by": "knn", "finding": "equal scores", "count": 3, "share": 0.25, "effect": "a tie"}
    assert TABLE_KINDS["check"].said(row) == "knn: equal scores (3, 25.0%): a tie."
    level = {"metric": "ndcg@5", "value": 0.25, "chance": 0.04, "popularity": 0.2}
    said = TABLE_KINDS["floors"].said(level | {"ceiling": np.nan})
    assert said == "ndcg@5: 0.25, chance 0.04, popularity 0.2, ceiling –."

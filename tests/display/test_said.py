"""Every sentence of a row, with rows of the whole product of the codes, held against the row."""

import itertools

import numpy as np
import pandas as pd
import pytest

from recdf.diagnostics.history import CHANGE_COLUMNS
from recdf.display.kinds import TABLE_KINDS
from recdf.display.page_blocks import look_of_estimate
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


@pytest.mark.long
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


@pytest.mark.long
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
            ["", "ok", "wide", "interval_only"], ["", "few_rewards"], ["", "same_policy"]
        ):
            row = base | {"effect": "" if held else effect, "withheld": held}
            row |= {"flags": flags, "trust": "do not use" if held else "ok"}
            said = TABLE_KINDS["off_policy"].said(row)
            look = look_of_estimate(row)
            assert ("0.0" in said) == (not held)  # a number that may not be used is not said
            assert look == "error" if held else look != "error"
            by_lift = "better" if row["lift_ci_low"] > 0 else "open"
            by_lift = "worse" if row["lift_ci_high"] < 0 else by_lift
            # A flag that forbids nothing is no doubt, and without an effect nothing says so.
            assert held or look == ("warning" if flags and not effect else by_lift)


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


def test_health_and_findings_have_sentences_and_levels_have_cells():
    arm = {"variant": "B", "n_assigned": 1000, "share": 0.5, "expected_share": 0.5}
    assert TABLE_KINDS["health"].said(arm) == "B 1,000 (50.0%, planned 50.0%)"
    row = {"by": "knn", "finding": "equal scores", "count": 3, "share": 0.25, "effect": "a tie"}
    assert TABLE_KINDS["check"].said(row) == "knn: equal scores (3, 25.0%): a tie."
    level = {"by": "knn", "metric": "ndcg@5", "value": 0.25, "chance": 0.04, "popularity": 0.2}
    (cells,) = TABLE_KINDS["floors"].cells(pd.DataFrame([level | {"ceiling": np.nan}]))
    assert [one.cell.text for one in cells.values()] == [
        "knn",
        "ndcg@5",
        "0.25",
        "0.04",
        "0.2",
        "–",
    ]


def gate_rows():
    """A row of a gate for every effect, relative or not, of all lists or of a segment."""
    for effect, relative, segment in itertools.product(EFFECTS["gate"], [True, False], ["", "y"]):
        change = {"fail": -0.25, "pass_but_worse": -0.0625}.get(effect, 0.125)
        yield {
            "metric": "ndcg@10",
            "segment": "country" if segment else "",
            "segment_value": segment,
            "budget": "" if effect == "not_gated" else "−10%" if relative else "−0.1",
            "mean_baseline": 0.5,
            "mean_candidate": 0.5 * (1 + change) if relative else 0.5 + change,
            "change": change,
            "change_low": change - 0.03125,
            "change_high": change + 0.03125,
            "allowed": np.nan if effect == "not_gated" else -0.1,
            "relative": relative,
            "n_users": 400,
            "alpha": 0.05,
            "bound": "t",
            "effect": effect,
            "withheld": "",
            "remarks": "",
            "verdict": sentence("gate", effect),
            "reason": "few users" if effect == "not_gated" else "",
        }


def test_a_sentence_of_a_gate_says_its_row():
    kind = TABLE_KINDS["gate"]
    looks = {"pass": "good", "fail": "error", "undecided": "open", "not_gated": "info"}
    for row in gate_rows():
        said, (cells,) = kind.said(row), kind.cells(pd.DataFrame([row]))
        segment = f" {row['segment_value']}" if row["segment"] else ""
        assert said.startswith(f"ndcg@10{segment and ' [country=y]'}: {row['verdict']}, "), said
        number = numbers(said.replace("%", ".0").replace("ndcg@10", ""))[0]
        assert number == pytest.approx(row["change"] * (100 if row["relative"] else 1), rel=0.05)
        assert said.endswith((f"budget {row['budget']}.", "budget – (few users)."))
        assert cells["verdict"].badge == (looks.get(row["effect"], "warning"), row["verdict"])
        assert sign_of(row) == {"pass": "better", "fail": "worse"}.get(row["effect"], "open")


def test_the_badge_of_a_gate_is_the_gravest_of_its_rows():
    kind, found = TABLE_KINDS["gate"], {}
    for row in gate_rows():
        found.setdefault(row["effect"], row)
    for two in itertools.product(found, repeat=2):
        table = pd.DataFrame([found[effect] for effect in two])
        mark, said = kind.overall(table)
        bad = next((one for one in ("fail", "undecided") if one in two), "pass")
        bad = "undecided" if {*two} == {"not_gated"} else bad
        assert mark == ({"fail": "error", "undecided": "open", "pass": "good"}[bad], bad)
        asked = kind.asks(table, mark)
        assert asked.startswith("Replace") == (bad == "pass")
        assert said.split(":")[0].lower().startswith(bad)


def history_rows():
    """A row for every effect of a series, and for every caution that withholds its verdict."""
    for effect, code in itertools.product(EFFECTS["history"], ["", *CAUTIONS]):
        held = bool(code) and "history" in CAUTIONS[code].withholds.split()
        codes = {"effect": "" if held else effect, "withheld": code if held else ""}
        row = {name: QUOTED[name] for name in QUOTED if name in CHANGE_COLUMNS} | codes
        said = sentence("history", *codes.values(), [code] * bool(code), QUOTED | row)
        yield row | {"remarks": code, "verdict": said}


@pytest.mark.parametrize("changed", [True, False])
def test_a_sentence_of_a_history_says_its_row(changed):
    kind = TABLE_KINDS["changes"]
    level = {"n_runs": 40, "level": 0.25, "could_see": 0.03125, "before": np.nan, "after": np.nan}
    level |= {"diff": np.nan, "e_value": np.nan, "changed": pd.NaT, "found": pd.NaT}
    moved = {"before": 0.5, "after": 0.25, "diff": -0.25, "e_value": 99.0}
    for told in history_rows():
        row = {"column": "ndcg@10", **level} | told
        row |= moved if changed else {"changed": pd.NaT}
        said = kind.said(row)
        assert said.startswith(f"ndcg@10: {row['verdict']}, "), said
        rest = said.partition(row["verdict"])[2]
        assert ("0.5 to 0.25 from 2026-01-05" in rest) == changed
        assert ("0.25, 40 runs" in rest) == (not changed)
        seen = "would be seen within a week" in rest
        assert seen == (not changed and row["effect"] == "none" and not row["withheld"])
        assert "nan" not in said.lower()
        assert "none" not in rest.lower()


def test_a_sentence_of_what_a_history_lacks_says_its_row():
    kind, lack = TABLE_KINDS["gaps"], {"what": "night 2026-01-07", "last": pd.NaT}
    rows = [row | lack for row in history_rows()]
    for row, cells in zip(rows, kind.cells(pd.DataFrame(rows)), strict=True):
        assert kind.said(row) == f"night 2026-01-07: {row['verdict']}."
        assert cells["verdict"].badge.text == row["verdict"]
        assert (cells["verdict"].badge.kind == "worse") == (sign_of(row) == "worse")
        assert "nan" not in cells["last"].cell.text.lower()


def test_a_sentence_of_a_finding_says_its_row_and_the_badge_counts_them():
    kind, levels = TABLE_KINDS["check"], ("error", "warning", "info")
    row = {"by": "knn", "finding": "equal scores", "count": 3, "share": 0.25, "effect": "a tie"}
    for code, level in itertools.product(["ties", "sampled", "true_in_train"], levels):
        found = row | {"severity": level, "code": code}
        assert kind.said(found) == "knn: equal scores (3, 25.0%): a tie."
        (cells,) = kind.cells(pd.DataFrame([found]))
        assert cells["severity"].badge == (level, level)
    columns = [*row, "severity"]
    for n in itertools.product(range(3), repeat=3):
        severities = [level for level, some in zip(levels, n, strict=True) for _ in range(some)]
        table = pd.DataFrame([row | {"severity": level} for level in severities], columns=columns)
        mark, said = kind.overall(table)
        assert said.startswith(mark.text)
        assert mark.kind == ("error" if n[0] else "warning" if n[1] else "good")
        assert [int(word) for word in mark.text.replace(",", "").split() if word.isdigit()] == [
            *n[:2]
        ]
        assert kind.asks(table, mark).startswith("Compare") == (mark.kind == "good")

"""Every kind of table that people are shown, as one record: how it is known, what a row says, its
cells, its picture, and what its badges ask for.

Contract: a table is known by its columns, whatever file it came from. A sentence is a function of a
row and of nothing else; where the verdict of the row is withheld it quotes no effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..diagnostics.gate_records import row_cells, row_sentence
from ..experiments.decide.adjust_pvalues import adjustment
from ..experiments.decide.decide_experiment import change_text
from ..judge.comparisons import note_of
from ..judge.verdict import is_withheld, sign_of
from ..off_policy.estimate_value import MEANINGS
from ..tables.cells import (
    Cell,
    estimate_form,
    estimated,
    form_of,
    interval,
    number,
    p_value,
    shorten,
    visible,
)
from ..tables.findings import finding_of
from .estimate_rows import (
    TableRow,
    drawn_budget,
    drawn_change,
    drawn_level,
    drawn_plan,
    drawn_proxy,
    drawn_role,
    drawn_splits,
)
from .given_tables import rows_by
from .report.page_blocks import (
    BadgeKind,
    Shown,
    amount,
    badge,
    badge_of,
    bars,
    effect_text,
    flag_words,
    name_of,
    plain,
    text,
    value,
)

RowCells = list[dict[str, Shown]]
DRAWN = ["metric", "label", "diff", "ci_low", "ci_high", "allowed", "verdict", "numbers", "words"]
CELL_NAME_LENGTH = 48  # of a name in a cell
SEVERITY: dict[str, BadgeKind] = {"error": "error", "warning": "warning", "info": "info"}
GATE_LOOKS: dict[str, BadgeKind] = {
    "pass": "good",
    "fail": "error",
    "undecided": "open",
    "not_gated": "info",
}


class Kind(NamedTuple):
    """One kind of table.

    columns : those that no other kind has together · title : heading of its section · said : what a
    row says · cells : the cells of every row, by the heads of their columns · read : what
    `plot.forest` draws of a row (panel, label, effect, ...) · look : of the badge of a row · axis,
    caption : of the picture · todo : what the worst badge asks for · part : where it stands among
    the tables of an experiment: in an argument of `rd.report`, or "beside" the effects
    """

    columns: tuple[str, ...]
    title: str
    said: Callable[[TableRow], str]
    cells: Callable[[pd.DataFrame], RowCells]
    read: Callable[[TableRow], dict[str, Any]] | None = None
    look: Callable[[TableRow], BadgeKind] = badge_of
    axis: str = ""
    caption: str = ""
    todo: Mapping[str, str] = {}
    part: str = ""


def row_by_row(cells: Callable[[TableRow], dict[str, Shown]]) -> Callable[[pd.DataFrame], RowCells]:
    """Return the cells of every row of a table, where a row knows its own."""
    return lambda frame: [cells(row) for row in frame.to_dict("records")]


# -- comparisons of models or variants


def sides_of(row: TableRow) -> tuple[str, str]:
    """Return the columns of the new and the old side of a comparison."""
    return ("model", "baseline") if "baseline" in row else ("treatment", "control")


def segment_of(row: TableRow) -> str:
    """Return the segment of a row, which the columns before `metric` name."""
    names = list(row)[: list(row).index("metric")]
    return " · ".join(f"{name} = {row[name]}" for name in names)


def _of_comparison(row: TableRow) -> str:
    new, old, metric = (name_of(row[name]) for name in (*sides_of(row), "metric"))
    where = f" ({name_of(part)})" if (part := segment_of(row)) else ""
    effect = "" if is_withheld(row) else f", {effect_text(row)}"
    said = f"{new} against {old} on {metric}{where}: {row['verdict']}{effect}."
    if "preference" in row and not is_withheld(row):
        said += (
            f" {amount(row['wins'], 'user')} prefer {new}, {row['losses']:,} prefer {old} (sign "
            f"test, p {p_value(row['p_sign'])})."
        )
    return plain(said)


def _of_shrunken(row: TableRow) -> str:
    if is_withheld(row):
        return _of_comparison(row)
    return f"{_of_comparison(row)[:-1]}, shrunken to {estimated(row['shrunken'], sign='+')}."


def trend_words(row: TableRow) -> str:
    """Return the verdict and the slope of the trend of a row, or nothing if it has none."""
    if "trend_verdict" not in row:
        return ""
    said = f"trend: {visible(row['trend_verdict'])}"
    if row.get("trend_withheld"):
        return said
    slope = estimated(row["trend"], row["trend_ci_low"], row["trend_ci_high"], "+")
    return said + (f", {slope} per day" if slope else "")


def _user_counts(row: TableRow) -> str:
    """Return how many users gain, stay the same and lose, or how many users both arms have."""
    if "n_treatment" in row:
        return f"{int(row['n_treatment']):,} vs. {int(row['n_control']):,}"
    if "wins" in row:
        n = [int(row[name]) for name in ("wins", "n_users", "losses")]
        return f"{n[0]:,}/{n[1] - n[0] - n[2]:,}/{n[2]:,}"
    return f"{int(row['n_users']):,}"


def _short(name: Any, length: int = CELL_NAME_LENGTH) -> Shown:
    return text(shorten(visible(name), length))


def _comparison_cells(given: pd.DataFrame) -> RowCells:
    """Return the cells of effects; every metric has a scale and digits of its own."""
    frame = given.reset_index(drop=True)
    records = frame.to_dict("records")
    new, old = sides_of(records[0])
    one_base = frame[old].map(str).nunique() == 1  # the caption names it
    drawn = [Shown(Cell(""))] * len(frame)
    for metric, places in rows_by(frame, ["metric"]).items():
        own = frame.take(places)
        looks = [badge_of(records[i]) for i in places]
        titles = [f"{records[i][new]} vs. {records[i][old]} on {metric}" for i in places]
        made = bars(own["diff"], own["ci_low"], own["ci_high"], looks, titles)
        for i, cell in zip(places, made, strict=True):
            drawn[i] = cell
    p = "p" if "not adjusted" in adjustment(given).words else "p (adjusted)"
    users = "users gain / same / lose" if new == "model" else "users"
    found = []
    for i, row in enumerate(records):
        form = estimate_form(row["diff"], row["ci_low"], row["ci_high"], "+")
        verdict = badge(badge_of(row), row["verdict"])
        if warned := note_of(row, beside=row["withheld"]):
            verdict = verdict._replace(cell=Cell(verdict.cell.text, small=warned))
        before = list(row)[: list(row).index("metric") + 1]
        around = interval(row["ci_low"], row["ci_high"], form)
        n = float(row.get("n_users", row.get("n_treatment", 0)))
        found.append(
            {
                **{str(name): _short(row[name]) for name in before},
                new if one_base else "comparison": _short(
                    row[new] if one_base else f"{row[new]} vs. {row[old]}", 2 * CELL_NAME_LENGTH
                ),
                "difference": drawn[i],
                "effect [interval]": value(row["diff"], form, small=around),
                "relative": value(row.get("rel_diff"), form_of(row.get("rel_diff"), sign="+%")),
                p: Shown(
                    Cell(p_value(row["p_adj"])),
                    None if pd.isna(row["p_adj"]) else float(row["p_adj"]),
                ),
                users: Shown(Cell(_user_counts(row)), n),
                "verdict": verdict,
            }
        )
    return found


# -- tables around an experiment


def _drawn_cells(frame: pd.DataFrame) -> RowCells:
    """Return what a picture draws of each row as cells, with its verdict if there are any."""
    data = estimates_frame(record_of(frame), frame)
    marks = {"better": "good", "worse": "error"}
    judged = data["verdict"].astype(bool).any()
    found = []
    for row, own in zip(data.to_dict("records"), frame.to_dict("records"), strict=True):
        cells = {"what": row["metric"], "of": row["label"], "estimate": row["numbers"]}
        kind: Any = marks.get(row["sign"], badge_of(own))
        mark = {"verdict": badge(kind, row["verdict"])} if judged else {}
        found.append({name: text(one) for name, one in cells.items()} | mark)
    return found


def _of_drawn(read: Callable[[TableRow], dict[str, Any]]) -> Callable[[TableRow], str]:
    """Return the sentence of a row of estimates: what it is of, its verdict, its numbers."""

    def said(row: TableRow) -> str:
        found = read(row)
        verdict = f"{found['verdict']}, " if found["verdict"] else ""
        return f"{found['label']}: {verdict}{found['numbers']}."

    return said


def _role_cells(row: TableRow) -> dict[str, Shown]:
    change, _, ends = change_text(row).partition(" ")
    sided = " one-sided" if pd.notna(row.get("p_safe")) else ""
    return {
        "metric": text(row["metric"]),
        "role": text(row["role"]),
        "treatment": text(row["treatment"]),
        "margin": text(row["margin"] or "–"),
        "change [bounds]": Shown(Cell(change, small=f"{ends}{sided}"), row["change"]),
        "verdict": badge(badge_of(row), row["verdict"]),
        "note": text(row["note"]),
    }


def arm_of(row: TableRow) -> str:
    """Return the variant of a row of a table of health, behind the labels of its group."""
    names = list(row)
    return " ".join(str(row[name]) for name in names[: names.index("variant") + 1])


def _of_arm(row: TableRow) -> str:
    planned = f"{row['share']:.1%}, planned {row['expected_share']:.1%}"
    return f"{arm_of(row)} {int(row['n_assigned']):,} ({planned})"


def _arm_cells(row: TableRow) -> dict[str, Shown]:
    return {
        "variant": text(arm_of(row)),
        "assigned": value(row["n_assigned"], ",d"),
        "share": value(row["share"], ".1%"),
        "planned share": value(row["expected_share"], ".1%"),
        "without metrics": value(row["missing_rate"], ".1%"),
        "p of the sample ratio": value(row["srm_p"], ".3g"),
    }


# -- off-policy


def policy_of(row: TableRow) -> str:
    """Return the policy of an estimate, which the columns before `estimator` name."""
    names = list(row)[: list(row).index("estimator")]
    return " · ".join(str(row[name]) for name in names) or "The target policy"


def is_useless(row: TableRow) -> bool:
    """Whether neither value nor interval of an estimate may be used."""
    return bool(row.get("withheld")) and not row["effect"]


def lift_text(row: TableRow) -> str:
    """Return the lift of an estimate over the logging policy with its interval."""
    if pd.isna(row.get("lift", np.nan)):
        return ""
    ends = (row.get(f"lift_ci_{end}", np.nan) for end in ("low", "high"))
    return estimated(row["lift"], *ends, "+")


def value_text(row: TableRow) -> str:
    """Return the value of an estimate with its interval."""
    return estimated(row["value"], row["ci_low"], row["ci_high"])


def look_of_estimate(row: TableRow) -> BadgeKind:
    """Return the look of an estimate; a flagged one never looks like a result."""
    if is_useless(row):
        return "error"
    if flag_words(row["flags"]):
        return "warning"
    low, high = (row.get(f"lift_ci_{end}", np.nan) for end in ("low", "high"))
    return "better" if low > 0 else "worse" if high < 0 else "open"


def flag_meanings(row: TableRow) -> str:
    """Return what the flags of an estimate mean, in sentences."""
    return "; ".join(MEANINGS[name] for name in row["flags"].split(", ") if name in MEANINGS)


def _of_estimate(row: TableRow) -> str:
    who = f"{policy_of(row)} by {row['estimator']}"
    trust = visible(row.get("trust") or flag_words(row["flags"]) or "no flag")
    if is_useless(row):
        return f"{who}: {trust}."
    lift = f", {lift_text(row)} beside the logging policy" if lift_text(row) else ""
    return f"{who}: {trust}, value {value_text(row)}{lift}."


def _estimate_cells(given: pd.DataFrame) -> RowCells:
    """Return the cells of estimates; what says whether to believe one stands before it."""
    frame = given.reset_index(drop=True)
    records = frame.to_dict("records")
    lifts = {"lift", "lift_ci_low", "lift_ci_high"} <= {*frame.columns}
    known = frame.columns[frame.notna().any()]
    names = [str(row["estimator"]) for row in records]
    looks: list[BadgeKind] = [
        "warning" if flag_words(row["flags"]) else look_of_estimate(row) for row in records
    ]
    drawn: list[Shown] = []
    if lifts:
        drawn = bars(frame["lift"], frame["lift_ci_low"], frame["lift_ci_high"], looks, names)
    found = []
    for i, row in enumerate(records):
        before = list(row)[: list(row).index("estimator") + 1]
        cells = {str(name): text(row[name]) for name in before}
        cells |= {"clip": value(row["clip"], "g")} if "clip" in known else {}
        cells |= {"trust": text(row["trust"])} if "trust" in known else {}
        words = flag_words(row["flags"])
        mark = badge("warning" if words else "good", words or "no flag")
        cells["flags"] = mark._replace(cell=Cell(mark.cell.text, small=flag_meanings(row)))
        point, _, around = value_text(row).partition(" ")
        cells["value [interval]"] = Shown(Cell(point, small=around), row["value"])
        if lifts:
            point, _, around = lift_text(row).partition(" ")
            cells["lift over the logging policy"] = drawn[i]
            cells["lift [interval]"] = Shown(Cell(point or "–", small=around), row["lift"])
        cells |= {"effective rows": value(row["ess"], ",.0f")} if "ess" in known else {}
        found.append(cells)
    return found


# -- gate, data


def _gate_cells(row: TableRow) -> dict[str, Shown]:
    cells = row_cells(row)
    mark = badge(GATE_LOOKS.get(row["effect"], "warning"), cells.pop("verdict"))
    sort = {"baseline": "mean_baseline", "candidate": "mean_candidate", "users": "n_users"}
    sort["change"] = "change"
    return {
        "verdict": mark,
        **{
            name: Shown(Cell(one), row[sort[name]]) if name in sort else text(one)
            for name, one in cells.items()
        },
    }


def _of_finding(row: TableRow) -> str:
    count = f"{int(row['count']):,}, {number(row['share'], '.1%')}"
    return visible(f"{finding_of(row)} ({count}): {row['effect']}.")


def finding_cells(row: TableRow) -> dict[str, Shown]:
    severity = str(row["severity"])
    return {
        "severity": badge(SEVERITY.get(severity, "info"), severity),
        "finding": text(finding_of(row)),
        "count": value(row["count"], ",d"),
        "share": value(row["share"], ".1%"),
        "effect on the metrics": text(row["effect"]),
    }


def _of_floor(row: TableRow) -> str:
    levels = (f"{name} {estimated(row[name])}" for name in ("chance", "popularity", "ceiling"))
    return f"{row['metric']}: {estimated(row.get('value'))}, {', '.join(levels)}."


def _floor_cells(row: TableRow) -> dict[str, Shown]:
    forms = {"n": ",d", **dict.fromkeys(("value", "chance", "popularity", "ceiling"))}
    return {
        str(name): value(one, forms[name]) if name in forms else text(str(one))
        for name, one in row.items()
    }


def _of_convention(row: TableRow) -> str:
    diff = f", {estimated(row['diff'], sign='+')} beside recdf" if row["diff"] else ""
    k: str = f"@{int(row['k'])}" if pd.notna(row["k"]) else ""
    why = f" ({row['rule']})" if row["rule"] else ""
    said = f"{row['metric']}{k} by {row['convention']}: {estimated(row['value'])}"
    return f"{said}{diff}{why}."


def _of_exposed_item(row: TableRow) -> str:
    names = " · ".join(str(row[name]) for name in list(row)[: list(row).index("shown")])
    shown = f"shown {amount(int(row['shown']), 'time')}, {estimated(row['share'], sign='%')}"
    return visible(f"{names}: {shown} of the impressions.")


def _plain_cells(row: TableRow) -> dict[str, Shown]:
    return {
        str(name): value(one) if isinstance(one, int | float) else text(one)
        for name, one in row.items()
    }


PAIR = ("metric", "diff", "ci_low", "ci_high", "p_adj", "effect", "withheld", "remarks", "verdict")


def _estimates(columns: str, title: str, read: Any, **more: Any) -> Kind:
    names = tuple(columns.split())
    return Kind(names, title, _of_drawn(read), _drawn_cells, read, part="beside", **more)


TABLE_KINDS: dict[str, Kind] = {
    "aa": _estimates(
        "rejected recommended cap",
        "A/A test",
        drawn_splits,
        axis="share of splits",
        caption="99 % intervals; upright line: the level of the test; filled: holds (blue) or does "
        "not hold (orange)",
        todo={
            "error": "Do not trust a test that does not hold; take the one that is recommended.",
            "good": "Test as it was tried here.",
        },
    ),
    "ratio": _estimates(
        "column level n_expected p_without",
        "Sample ratio by level",
        drawn_level,
        axis="users more than planned",
        caption="the variant of each level that is farthest from its plan; filled: fits (blue) or "
        "does not fit (orange)",
        todo={
            "error": "Do not act: find out where the users of this level are lost.",
            "good": "Read the effects: the users fit the plan.",
        },
    ),
    "role": Kind(
        ("role", "margin", "change", "change_low"),
        "Roles",
        _of_drawn(drawn_role),
        row_by_row(_role_cells),
        drawn_role,
        axis="change, zero in the middle",
        caption="bounds of a guardrail are one-sided; upright line: the margin; filled: shown "
        "(blue: good, orange: bad)",
        todo={"worse": "Do not ship: a metric is harmed.", "error": "Do not ship."},
        part="beside",
    ),
    "proxy": _estimates(
        "offline slope naive_slope",
        "Which offline metric predicts",
        drawn_proxy,
        axis="slope of the true effects",
        caption="intervals over the experiments; filled: predicts (blue) or predicts the opposite "
        "(orange)",
        todo={
            "error": "Do not choose by a metric that predicts the opposite.",
            "good": "Choose by a metric that predicts.",
        },
    ),
    "changes": _estimates(
        "changed found e_value",
        "Changes of level",
        drawn_change,
        axis="difference of level",
        caption="one row per change, or per series without one; filled: better (blue) or worse "
        "(orange)",
    ),
    **{
        name: _estimates(
            f"mde_abs n_low design_effect {unit}",
            "Plan",
            drawn_plan,
            caption="a line, where there is one, is the 95 % interval of a number",
        )
        for name, unit in (("plan", "role"), ("plan of models", "n_lists"))
    },
    "shrunken": Kind(
        (*PAIR, "shrunken"), "Segments", _of_shrunken, _comparison_cells, part="segments"
    ),
    "over_time": Kind(
        ("metric", "diff", "ci_low", "ci_high", "trend_verdict"),
        "Over time",
        lambda row: f"{trend_words(row).capitalize()}.",
        row_by_row(_plain_cells),
        part="over_time",
    ),
    "interleaved": Kind(
        (*PAIR, "model", "baseline", "preference"),
        "Interleaved lists",
        _of_comparison,
        _comparison_cells,
        part="beside",
    ),
    "pairs": Kind(
        (*PAIR, "model", "baseline", "n_users", "wins", "losses"),
        "Comparison of models",
        _of_comparison,
        _comparison_cells,
        part="beside",
    ),
    "experiment": Kind(
        (*PAIR, "control", "treatment", "n_control", "n_treatment", "rel_diff"),
        "Effects",
        _of_comparison,
        _comparison_cells,
        part="experiment",
    ),
    "decision": Kind(
        ("decision", "reasons", "treatment"),
        "Decision",
        lambda row: f"{name_of(row['treatment'])}: {row['decision']}. {row['reasons']}.",
        row_by_row(_plain_cells),
        part="decision",
    ),
    "health": Kind(
        (
            *("variant", "n_assigned", "share", "expected_share", "missing_rate"),
            *("srm_p", "srm_flag", "missing_flag"),
        ),
        "Users per variant",
        _of_arm,
        row_by_row(_arm_cells),
    ),
    "exposure": Kind(("shown", "share"), "Exposure", _of_exposed_item, row_by_row(_plain_cells)),
    "off_policy": Kind(
        ("estimator", "value", "ci_low", "ci_high", "flags"),
        "Off-policy estimates",
        _of_estimate,
        _estimate_cells,
        look=look_of_estimate,
    ),
    "gate": Kind(
        ("budget", "effect", "change", "bound", "reason"),
        "Gate",
        row_sentence,
        row_by_row(_gate_cells),
        drawn_budget,
        look=lambda row: GATE_LOOKS.get(row["effect"], "warning"),
    ),
    "check": Kind(
        ("finding", "severity", "count", "share", "effect", "code"),
        "Data health",
        _of_finding,
        row_by_row(finding_cells),
        look=lambda row: SEVERITY.get(row["severity"], "info"),
    ),
    "floors": Kind(
        ("metric", "chance", "popularity", "ceiling"), "Levels", _of_floor, row_by_row(_floor_cells)
    ),
    "conventions": Kind(
        ("convention", "value", "diff", "rule"),
        "Conventions",
        _of_convention,
        row_by_row(_plain_cells),
    ),
}


def table_kind(table: Any) -> str:
    """Return the key of the record of a table, or an empty text where there is none."""
    columns = {*getattr(table, "columns", ())}
    return next((key for key, kind in TABLE_KINDS.items() if columns >= {*kind.columns}), "")


def page_part(table: Any) -> str:
    """Return where a table stands among those of an experiment; an empty text for any other."""
    found = TABLE_KINDS.get(table_kind(table))
    return found.part if found else ""


def record_of(table: Any) -> Kind:
    """Return the record of a table; one of no known kind raises KeyError."""
    return TABLE_KINDS[table_kind(table)]


def estimates_frame(kind: Kind, table: pd.DataFrame) -> pd.DataFrame:
    """Return one row per row of the table, as `plot.forest.data` says."""
    assert kind.read is not None
    rows = table.to_dict("records")
    data = pd.DataFrame([kind.read(row) for row in rows])
    data["words"] = data.get("words", data["numbers"] + "  " + data["verdict"])
    marks = ["percent", "from_zero"]
    data = data.reindex(columns=[*DRAWN, *marks, "withheld"])
    broken = [row.get("withheld") == "sample_ratio" and "role" not in row for row in rows]
    signs = ["worse" if one else sign_of(row) for one, row in zip(broken, rows, strict=True)]
    return data.assign(**{name: data[name].eq(True) for name in marks}, sign=signs)

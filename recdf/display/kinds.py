"""Every kind of table that people are shown, as one record: how it is known, what a row says, its
cells, its picture, what its badges ask for, and what it has against an effect beside it.

Contract: a table is known by its columns, whatever file it came from. Rows that say worse stand
before all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..diagnostics.gate_records import Gate, row_cells, row_sentence
from ..diagnostics.history import GAP_COLUMNS
from ..experiments.decide.adjust_pvalues import adjustment
from ..judge.cautions.table import CAUTIONS
from ..judge.choices import Row
from ..judge.comparisons import heads_before, note_of, sides_of, unit_of_rows
from ..judge.verdict import is_withheld, says_worse, sign_of
from ..tables.cells import (
    LETTERS,
    NULL,
    Cell,
    amount,
    brief,
    columns_before,
    estimate_form,
    estimated,
    form_of,
    interval,
    number,
    p_value,
    plus_minus,
    shorten,
    visible,
)
from ..tables.findings import finding_of
from .page_blocks import (
    BESIDE,
    EVERYONE,
    LIFT,
    OVERTURN,
    Badge,
    BadgeKind,
    Shown,
    ShownRow,
    TableRow,
    amount_of_estimate,
    arm_of,
    badge,
    drawn_budget,
    drawn_change,
    drawn_plan,
    drawn_role,
    ends_of,
    flag_meanings,
    flag_words,
    interval_bar,
    is_useless,
    listed,
    look_of,
    look_of_estimate,
    name_of,
    of_comparison,
    policy_of,
    reaches,
    text,
    trend_words,
    trust_of,
    value,
)

RowCells = Sequence[ShownRow]
DRAWN = "metric label diff ci_low ci_high allowed verdict numbers words percent from_zero sign"
CELL_NAME_LENGTH = 48  # of a name in a cell
FEW = 4  # rows that are sentences too
AS_OFTEN_AS_NOT = 0.5  # power of a plan that fails as often as not
GATE_LOOKS: dict[str, BadgeKind] = {
    "pass": "good",
    "fail": "error",
    "undecided": "open",
    "not_gated": "info",
}


class Kind(NamedTuple):
    """One kind of table.

    names : columns that no other kind has together · title : heading of its section · sentence :
    what a row says · row : the cells of a row, by the heads of their columns · table : the cells of
    every row, where a row does not know its own · read : what `plot.forest` draws of a row (panel,
    label, effect, ...), which gives it a sentence and cells too · axis, caption : of the picture ·
    todo : what the worst badge asks for · ask : the function of the table that says it, where the
    badge alone does not · against : what a row that says worse has against an effect beside it:
    words of the badge, what to do, and the columns in which both must be alike · line : of the card
    that quotes it · overall : the badge of a whole table and the sentence about it, where these are
    not those of its rows · part : where it stands among the tables of an experiment: in an argument
    of `rd.report`, or "beside" the effects
    """

    names: str
    title: str
    sentence: Callable[[TableRow], str] | None = None
    row: Callable[[TableRow], ShownRow] | None = None
    table: Callable[[DataFrame], RowCells] | None = None
    read: Callable[[TableRow], Row] | None = None
    axis: str = ""
    caption: str = ""
    todo: Mapping[str, str] = {}
    ask: Callable[[DataFrame], str] | None = None
    against: tuple[str, str, str] = ("", "", "")
    line: str = BESIDE
    overall: Callable[[DataFrame], tuple[Badge, str]] | None = None
    part: str = ""

    @property
    def columns(self) -> list[str]:
        return self.names.split()

    def said(self, row: TableRow) -> str:
        """Return the sentence of a row."""
        if self.sentence:
            return self.sentence(row)
        found = self.drawn(row)
        numbers = f"{'by the numbers as they stand: ' * is_withheld(row)}{found['numbers']}"
        return f"{found['label']}: {', '.join(filter(None, (found['verdict'], numbers)))}."

    def cells(self, table: DataFrame) -> RowCells:
        """Return the cells of every row of a table."""
        if self.table:
            return self.table(table)
        return [(self.row or self._drawn_cells)(row) for row in table.to_dict("records")]

    def _drawn_cells(self, row: TableRow) -> ShownRow:
        drawn = self.drawn(row)
        marks: dict[str, BadgeKind] = {"better": "good", "worse": "error"}
        mark = marks.get(drawn["sign"], look_of(row))
        verdict = drawn["verdict"]
        return {
            "what": text(drawn["metric"]),
            "of": text(drawn["label"]),
            "estimate": text(drawn["numbers"]),
            "verdict": badge(mark, verdict, row.get("note", "")) if verdict else text(""),
        }

    def asks(self, table: DataFrame, mark: Badge) -> str:
        """Return what a table with this badge asks for."""
        if self.ask:
            return self.ask(table)
        return self.todo.get(mark.kind, "Look at what is open before acting.")

    def drawn(self, row: TableRow) -> Row:
        """Return what a picture draws of a row, as `plot.forest.data` says."""
        assert self.read
        found = {"verdict": row.get("verdict", ""), "percent": False, "from_zero": False}
        found |= self.read(row)
        words = f"{found['numbers']}  {found['verdict']}".rstrip()
        return {"words": words, "sign": sign_of(row)} | found


def harm_first(table: DataFrame) -> DataFrame:
    """Return the rows of a table with what is worse before all others."""
    others = [not says_worse(row) for row in table.to_dict("records")]
    return table.iloc[np.argsort(others, kind="stable")].reset_index(drop=True)


# -- models by metrics

HEAD_ARROWS = {"larger": " ↑", "smaller": " ↓", "": ""}
LEADERBOARD_KEYS = ["segment", "group", "model", "metric"]
SEED_SD = "seed_sd"  # the column of the spread over seeds


def n_differs(frame: DataFrame) -> pd.Series:
    """Tell for each row whether the models have a mean over different numbers of lists."""
    return frame.groupby(["segment", "group", "metric"])["n"].transform("nunique") > 1


def _board_cells(given: DataFrame) -> RowCells:
    """Return one row per model and segment, one column per metric."""
    frame = given.assign(apart=n_differs(given))
    known = frame[["metric", "better"]].itertuples(index=False)
    heads = {metric: f"{metric}{HEAD_ARROWS[better]}" for metric, better in known}
    in_parts = frame["segment"].ne(EVERYONE).any()
    letters = dict(zip(frame["model"].unique(), LETTERS, strict=False))
    # Levels have no interval and no letter.
    tested = frame.loc[frame["half_width"].notna(), "model"].unique()
    marked = tested if any(map(str.isalpha, frame["marks"])) else ()
    beside = dict(list(frame.groupby("metric")["value"]))
    found = []
    key: Any
    for key, rows in frame.groupby(LEADERBOARD_KEYS[:3], sort=False, dropna=False):
        segment, group, model = key
        part = text("all lists" if segment == EVERYONE else f"{segment} = {group}")
        mark = letters.get(model, "") * (model in marked)
        cells = {"segment": part} if in_parts else {}
        cells["model"] = Shown(Cell(model, mark=mark), model.casefold())
        cells |= dict.fromkeys(heads.values(), Shown(Cell(NULL)))  # it may lack a metric
        for row in rows.to_dict("records"):
            cells[heads[row["metric"]]] = _level_cell(row, beside[row["metric"]])
        found.append(cells)
    return found


def _level_cell(row: TableRow, beside: pd.Series) -> Shown:
    """Return a value of the leaderboard, written as those beside it, with what ± reaches."""
    n = f"n = {int(row['n']):,}" if row["apart"] else ""
    mean = row["value"]
    if pd.isna(mean):
        return Shown(Cell(NULL, small=n))
    # With labels of people the mean is not in the middle of its interval: ± reaches both ends.
    ends = mean - row.get("ci_low", np.nan), row.get("ci_high", np.nan) - mean
    reach = np.fmax.reduce([row["half_width"], *ends])
    words, half = plus_minus(mean, reach, beside)
    seeds = ""
    if pd.notna(spread := row.get(SEED_SD)):
        # A spread has the digits of its value; none is not written as 0.
        form = form_of(mean, half=reach)
        seeds = f"± {number(spread or np.nan, form)} over seeds"
    small = ", ".join(filter(None, [half, seeds, n]))
    place = row["place"]
    return Shown(Cell(words, place == 1, place == 2, row["marks"], small), mean)


# -- comparisons of models or variants


def _estimate_cell(ends: Sequence[float], sign: str = "") -> Shown:
    """Return a cell of an estimate whose interval stands small behind it."""
    point, low, high = ends
    form = estimate_form(point, low, high, sign)
    return value(point, form, small=interval(low, high, form))


def _comparison_cells(given: DataFrame) -> RowCells:
    """Return the cells of effects; every metric has a scale and digits of its own."""
    new, old = sides_of(given)
    one_base = given[old].map(str).nunique() == 1  # the caption names it
    p = "p" if "not adjusted" in adjustment(given).words else "p (adjusted)"
    users = f"{unit_of_rows(given)}s" + " gain / same / lose" * ("wins" in given)
    ends = given[["diff", "ci_low", "ci_high"]].astype("float64")
    reach = reaches(ends, given["metric"].map(str))
    found = []
    for row, around, far in zip(given.to_dict("records"), ends.values.tolist(), reach, strict=True):
        look = look_of(row)
        pair = f"{row[new]} vs. {row[old]}"
        n = row["n_users" if new == "model" else "n_treatment"]
        counts = f"{n:,.0f}"
        if "wins" in row:
            counts = (
                f"{row['wins']:,.0f}/{n - row['wins'] - row['losses']:,.0f}/{row['losses']:,.0f}"
            )
        elif new == "treatment":
            counts += f" vs. {row['n_control']:,.0f}"
        head, compared = (new, row[new]) if one_base else ("comparison", pair)
        cells = {
            head: _short(compared, 2 * CELL_NAME_LENGTH),
            "difference": interval_bar(
                around, far, look, f"{pair} on {row['metric']}, {row['verdict']}"
            ),
            "effect [interval]": _estimate_cell(around, "+"),
            "relative": value(row.get("rel_diff"), form_of(row.get("rel_diff"), sign="+%")),
            p: Shown(Cell(p_value(row["p_adj"])), value(row["p_adj"]).sort),
            users: Shown(Cell(counts), float(n)),
            "verdict": badge(look, row["verdict"], note_of(row, beside=row["withheld"])),
        }
        before = {head: _short(row[name]) for head, name in heads_before(row, cells).items()}
        found.append(before | cells)
    return found


def _short(name: Any, length: int = CELL_NAME_LENGTH) -> Shown:
    return text(shorten(visible(name), length))


def _pairs_action(table: DataFrame) -> str:
    """Say what to do after a comparison of models that has no result beside it."""
    row = table.iloc[0].to_dict()
    if len(table) > 1:
        return "Pass the result too: it says which of these pairs decides."
    if is_withheld(row):
        return f"Do not act: {CAUTIONS[row['withheld']].sentence}."
    sign = look_of(row)
    if sign in ("better", "worse"):
        return f"Prefer {name_of(row['model' if sign == 'better' else 'baseline'])}."
    return f"Keep {name_of(row['baseline'])}: no difference is shown."


# -- tables around an experiment


def _plan_action(table: DataFrame) -> str:
    """Say how many users or lists a plan asks for, or which guardrail they would not show safe."""
    unit = "list" if "n_lists" in table else "user"
    n = table["n"] if unit == "list" else table["n_control"] + table["n_treatment"]
    weak = table["metric"][table["power"] < AS_OFTEN_AS_NOT] if "power" in table else ()
    if len(weak):
        said = f"Plan more {unit}s first: with so few, nothing is likely to be shown on "
        return f"{said}{listed([*map(name_of, weak)], FEW, 'metric')}."
    return f"Run it with {amount(int(n.max()), unit)}, and decide at the end alone."


# -- off-policy


def _estimate_cells(given: DataFrame) -> RowCells:
    """Return the cells of estimates; what says whether to believe one stands before it."""
    lifts = given[[*LIFT]].astype("float64")
    found = []
    reach = reaches(lifts, [""] * len(given))
    ends = lifts.values.tolist()
    for row, around, far in zip(given.to_dict("records"), ends, reach, strict=True):
        words = flag_words(row)
        estimator = row["estimator"]
        look = "warning" if words else look_of_estimate(row)
        found.append(
            {
                **{name: text(row[name]) for name in columns_before(row, "estimator")},
                "estimator": text(estimator),
                "clip": value(row.get("clip"), "g"),
                "trust": text(brief(row.get("trust"))),
                "flags": badge(
                    "warning" if words else "good", words or "no flag", flag_meanings(row)
                ),
                "value [interval]": _estimate_cell([row["value"], row["ci_low"], row["ci_high"]]),
                "lift over the logging policy": interval_bar(around, far, look, estimator),
                "lift [interval]": _estimate_cell(around, "+"),
                "effective rows": value(row.get("ess"), ",.0f"),
            }
        )
    return found


# -- gate, data


def _gate_cells(row: TableRow) -> ShownRow:
    cells = row_cells(row)
    mark = badge(GATE_LOOKS.get(row["effect"], "warning"), cells.pop("verdict"))
    numbers = {
        "change": "change",
        "users": "n_users",
        "baseline": "mean_baseline",
        "candidate": "mean_candidate",
    }
    return {"verdict": mark} | {
        head: Shown(Cell(words), row[numbers[head]]) if head in numbers else text(words)
        for head, words in cells.items()
    }


def _of_gate(table: DataFrame) -> tuple[Badge, str]:
    gate = Gate(table, DataFrame())
    return Badge(GATE_LOOKS[gate.verdict], gate.verdict), f"{gate.headline}."


def _of_findings(table: DataFrame) -> tuple[Badge, str]:
    """Count errors and warnings, and name the first ones."""
    serious = table[table["severity"].isin(["error", "warning"])].to_dict("records")
    n = Counter(row["severity"] for row in serious)
    counted = f"{amount(n['error'], 'error')}, {amount(n['warning'], 'warning')}"
    named = listed([*map(finding_of, serious)], FEW, "finding")
    mark = Badge("error" if n["error"] else "warning" if n else "good", counted)
    return mark, f"{counted}{f' ({named})' if named else ''}."


def _of_estimates(table: DataFrame) -> tuple[Badge, str]:
    """Say how many estimates carry a flag, and how many of them may be used."""
    rows = table.to_dict("records")
    flagged = sum(bool(row["flags"]) for row in rows)
    useless = sum(map(is_useless, rows))
    if not flagged:
        return Badge("good", "no flag"), "No off-policy estimate is flagged."
    said = f"{flagged} of {amount(len(rows), 'off-policy estimate')} "
    said += f"{'carries' if flagged == 1 else 'carry'} a flag."
    if useless:
        said += f" {useless} of them should not be used: the value can be far off, and the "
        said += "interval holds the true value less often than it says."
    if only := sum(row.get("effect") == "interval_only" for row in rows):
        said += f" Of {only} of them only the interval should be used: the value says little."
    doubted = any(row["flags"] and row.get("withheld", True) for row in rows)
    return Badge("warning" if doubted else "info", "flagged"), f"{said} See the column trust."


def _finding_cells(row: TableRow) -> ShownRow:
    severity: Any = row["severity"] if row["severity"] in ("error", "warning") else "info"
    return {
        "severity": badge(severity, row["severity"]),
        "finding": text(finding_of(row)),
        "count": value(row["count"], ",.0f"),
        "share": value(row["share"], ".1%"),
        "effect on the metrics": text(row["effect"]),
        **({"examples": text(row["examples"], code=True)} if "examples" in row else {}),
    }


def _plain_cells(row: TableRow) -> ShownRow:
    return {
        name: value(one) if isinstance(one, int | float) else text(one) for name, one in row.items()
    }


ALONE = "Do not act on this alone: pass the result, or the effects (experiment=), too."
CHANGED = "Find out what changed before trusting the newest numbers."
PAIR = "metric diff ci_low ci_high p_adj effect withheld remarks verdict"


TABLE_KINDS: dict[str, Kind] = {
    "leaderboard": Kind(
        "segment group model metric better half_width n_undefined place marks",
        "Leaderboard",
        table=_board_cells,
    ),
    "aa": Kind(
        "rejected recommended cap",
        "A/A test",
        read=lambda row: {
            "metric": f"A/A splits rejected, {row['metric']}; recommended: "
            f"{row['recommended'] or 'none'}",
            "label": f"{row['metric']}, "
            + ("no cap" if pd.isna(row["cap"]) else f"cap={row['cap']:g}"),
            "numbers": estimated(row["rejected"], row["rejected_low"], row["rejected_high"], "%"),
            **ends_of(row, "rejected"),
            "allowed": row["alpha"],
            "percent": True,
            "from_zero": True,
        },
        axis="share of splits",
        caption="99 % intervals; upright line: the level of the test; filled: holds (blue) or does "
        "not hold (orange)",
        todo={
            "error": "Do not trust a test that does not hold; take the one that is recommended.",
            "good": "Test as it was tried here.",
        },
        against=("its test does not hold", "take the test that is recommended", "metric cap"),
        part="beside",
    ),
    "ratio": Kind(
        "column level n_expected p_without",
        "Sample ratio by level",
        read=lambda row: {
            "metric": "Users of a variant, beside the plan",
            "label": f"{row['column']} = {row['level']}: {row['variant']}",
            "diff": row["n_variant"] / row["n_expected"] - 1,
            "sign": "worse" if row["withheld"] == "sample_ratio" else sign_of(row),
            "percent": True,
            "numbers": f"{amount(int(row['n_variant']), 'user')}, planned "
            f"{number(row['n_expected'], ',.0f')}; p {p_value(row['p_adj'])}"
            f"{', explains the whole' * bool(row['explains'])}",
        },
        axis="users more than planned",
        caption="the variant of each level that is farthest from its plan; filled: fits (blue) or "
        "does not fit (orange)",
        todo={
            "error": "Do not act: find out where the users of this level are lost.",
            "good": "Read the effects: the users fit the plan.",
        },
        against=("a level breaks the sample ratio", "find out where its users are lost", ""),
        part="beside",
    ),
    "role": Kind(
        "role margin change change_low",
        "Roles",
        read=drawn_role,
        axis="change, zero in the middle",
        caption="bounds of a guardrail are one-sided; upright line: the margin; filled: shown "
        "(blue: good, orange: bad)",
        todo={
            "error": "Do not ship: a metric is harmed.",
            "good": "Decide by the effects: each role is met.",
        },
        against=("a metric is harmed", "weigh its loss first", "treatment control"),
        part="beside",
    ),
    "proxy": Kind(
        "offline slope naive_slope",
        "Which offline metric predicts",
        read=lambda row: {
            "metric": f"{row['online']} per unit of the offline metric",
            "label": row["offline"],
            "numbers": f"{estimated(row['slope'], row['slope_low'], row['slope_high'])}; "
            f"{amount(row['n_tests'], 'experiment')}, "
            f"{number(row['called_right'], '.0%')} called right",
            **ends_of(row, "slope"),
        },
        axis="slope of the true effects",
        caption="intervals over the experiments; filled: predicts (blue) or predicts the opposite "
        "(orange)",
        todo={
            "error": "Do not choose by a metric that predicts the opposite.",
            "good": "Choose by a metric that predicts.",
        },
        part="beside",
    ),
    "changes": Kind(
        "changed found e_value",
        "Changes of level",
        read=drawn_change,
        axis="difference of level",
        caption="one row per change, or per series without one; filled: better (blue) or worse "
        "(orange)",
        todo={
            **dict.fromkeys(("error", "worse"), CHANGED),
            **dict.fromkeys(("warning", "open"), "Do nothing now: wait for more nights."),
            **dict.fromkeys(("better", "good"), "Go on."),
        },
        part="beside",
    ),
    **{
        name: Kind(
            f"mde_abs n_low design_effect {unit}",
            "Plan",
            read=drawn_plan,
            caption="a line, where there is one, is the 95 % interval of a number",
            ask=_plan_action,
            part="beside",
        )
        for name, unit in (("plan", "role"), ("plan of models", "n_lists"))
    },
    "gaps": Kind(
        " ".join(GAP_COLUMNS),
        "Gaps",
        lambda row: f"{row['what']}: {row['verdict']}.",
        lambda row: {
            "of": text(row["what"]),
            "last": text(brief(row["last"])),
            "verdict": badge(look_of(row), row["verdict"]),
        },
        todo={"worse": CHANGED},
    ),
    "shrunken": Kind(
        f"{PAIR} shrunken", "Segments", of_comparison, table=_comparison_cells, part="segments"
    ),
    "over_time": Kind(
        "metric diff ci_low ci_high trend_verdict",
        "Over time",
        lambda row: f"{trend_words(row).capitalize()}.",
        _plain_cells,
        part="over_time",
    ),
    **{
        name: Kind(
            f"{PAIR} model baseline {own}",
            title,
            of_comparison,
            table=_comparison_cells,
            ask=_pairs_action,
            part="beside",
        )
        for name, title, own in (
            ("interleaved", "Interleaved lists", "preference"),
            ("pairs", "Comparison of models", "n_users wins losses"),
        )
    },
    "experiment": Kind(
        f"{PAIR} control treatment n_control n_treatment rel_diff",
        "Effects",
        of_comparison,
        table=_comparison_cells,
        part="experiment",
    ),
    "decision": Kind(
        "decision reasons treatment",
        "Decision",
        lambda row: (
            f"{name_of(row['treatment'])}: "
            f"{'' if row['withheld'] else row['decision'] + '. '}{row['reasons']}."
        ),
        _plain_cells,
        part="decision",
    ),
    "health": Kind(
        "variant n_assigned share expected_share missing_rate srm_p srm_flag missing_flag",
        "Users per variant",
        lambda row: (
            f"{arm_of(row)} {int(row['n_assigned']):,} ({row['share']:.1%}, planned "
            f"{row['expected_share']:.1%})"
        ),
        lambda row: {
            "variant": text(arm_of(row)),
            "assigned": value(row["n_assigned"], ",.0f"),
            "share": value(row["share"], ".1%"),
            "planned share": value(row["expected_share"], ".1%"),
            "without metrics": value(row["missing_rate"], ".1%"),
            "p of the sample ratio": value(row["srm_p"], ".3g"),
        },
    ),
    "off_policy": Kind(
        "estimator value ci_low ci_high lift lift_ci_low lift_ci_high flags",
        "Off-policy estimates",
        lambda row: (
            f"{policy_of(row)} by {row['estimator']}: {trust_of(row)}"
            f"{'' if is_useless(row) else ', ' + amount_of_estimate(row)}."
        ),
        table=_estimate_cells,
        overall=_of_estimates,
    ),
    "gate": Kind(
        "budget effect change bound reason",
        "Gate",
        lambda row: f"{row_sentence(row)}.",
        _gate_cells,
        read=drawn_budget,
        caption="bounds hold one-sided; upright line: the budget; filled: passes (blue) or fails "
        "(orange)",
        against=("the gate is not passed", "pass the gate first", ""),
        overall=_of_gate,
        todo={
            "good": "Replace the baseline: every budget is met.",
            "error": "Do not replace the baseline.",
            "open": "Do not replace the baseline yet: the gate is undecided.",
        },
    ),
    "check": Kind(
        "finding severity count share effect code",
        "Data health",
        lambda row: (
            f"{finding_of(row)} ({int(row['count']):,}, {number(row['share'], '.1%')}): "
            f"{row['effect']}."
        ),
        _finding_cells,
        line=OVERTURN,
        overall=_of_findings,
        todo={
            "error": "Mend the data before anything is compared.",
            "warning": "Look at the warnings before anything is compared.",
            "good": "Compare the models.",
        },
    ),
    "floors": Kind("metric chance popularity ceiling", "Levels", row=_plain_cells),
}


def record_of(table: Any) -> Kind:
    """Return the record of a table, an empty one for a table of no known kind."""
    columns = {*getattr(table, "columns", ())}
    known = (kind for kind in TABLE_KINDS.values() if columns >= {*kind.columns})
    return next(known, Kind("", ""))

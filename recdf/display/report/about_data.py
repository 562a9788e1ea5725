"""Sections about the data and the decision: experiment, off-policy, data health, definitions, reproducibility."""

from __future__ import annotations

import hashlib
import json
import platform
from typing import Any

import numpy as np
import pandas as pd

from ..._version import __version__
from ...tables.cells import digits_for, interval, p_value, visible
from .. import plot
from .about_models import Pen, comparison_table, segment_labels
from .headline import badge_of, effect_text
from .page_blocks import (
    Badge,
    BadgeKind,
    Name,
    Section,
    Sentence,
    Shown,
    TableBlock,
    badge,
    bars,
    csv_of,
    cut,
    text,
    value,
)
from .report_inputs import ReportTables, Subject

__all__: list[str] = []

FEW_EFFECTS = 4  # effects of an experiment that the head of the page quotes
SEVERITY: dict[str, BadgeKind] = {"error": "error", "warning": "warning", "info": "info"}


# ------------------------------------------------------------------------------------------ experiment


def experiment_section(subject: Subject, tables: ReportTables, pen: Pen) -> tuple[Section | None, list[Sentence]]:
    """Say whether the experiment is sound, then show its effects, also by rank and over time."""
    drawings = []
    if tables.position is not None:
        drawings.append(pen(plot.position, tables.position))
    if tables.over_time is not None:
        drawings.append(pen(plot.over_time, tables.over_time, *_one_metric(tables.over_time)))
    if not tables.experiment and tables.health is None:
        if not drawings:
            return None, []
        title = "Positions" if tables.over_time is None else "Over time"
        return Section("positions", title, drawings=tuple(drawings)), []
    mark, sentence = _soundness(tables)
    parts = [
        comparison_table(
            table,
            f"Effects{f', {name}' if name else ''}: differences from {table['control'].iloc[0] if len(table) else ''}",
            f"experiment{f'-{i}' if i else ''}.csv",
            subject.max_rows,
        )
        for i, (name, table) in enumerate(tables.experiment.items())
    ]
    if tables.health is not None:
        parts.append(_health_block(tables.health, subject.max_rows))
    section = Section(
        "experiment", "Experiment", text=(sentence,), badge=mark, tables=tuple(parts), drawings=tuple(drawings)
    )
    said = _experiment_said(tables)
    # With one model the first effect is the headline.
    return section, [*(said[1:] if len(subject.models) == 1 else said), sentence]


def _one_metric(table: pd.DataFrame) -> tuple[str, ...]:
    """Return the first metric of a table that has several."""
    return (str(table["metric"].iloc[0]),) if "metric" in table.columns and len(table) else ()


def _soundness(tables: ReportTables) -> tuple[Badge, Sentence]:
    """Say what the sample ratio and the users without metrics mean for the effects."""
    health, rows = tables.health, [row for one in tables.experiment.values() for row in one.to_dict("records")]
    broken = [row for row in rows if "sample_ratio" in str(row["warning"]).split("; ")]
    tested = [row["srm_p"] for row in rows if not pd.isna(row.get("srm_p", np.nan))]
    if broken and (health is None or not health["srm_flag"].astype(bool).any()):
        p = broken[0].get("srm_p", np.nan)
        return Badge("error", "sample ratio"), (
            f"The users who are compared do not fit the plan: {_users(pd.Series(broken[0]))}; p {_p(p)}. Find out why "
            "before reading an effect.",
        )
    if health is None and tested:
        return Badge("good", "sound"), (f"Sample ratio of the users who are compared as planned; p {_p(min(tested))}.",)
    if health is None:
        return Badge("warning", "not checked"), (
            "The sample ratio was not checked: pass health= (what rd.experiment_health returned).",
        )
    arms = ", ".join(
        f"{row['variant']} {int(row['n_assigned']):,} ({row['share']:.1%}, planned {row['expected_share']:.1%})"
        for row in health.to_dict("records")
    )
    p, lost = health["srm_p"].iloc[0], health["missing_p"].iloc[0] if "missing_p" in health.columns else np.nan
    if health["srm_flag"].astype(bool).any():
        return Badge("error", "sample ratio"), (
            f"The users per variant do not fit the plan: {arms}; p {_p(p)}. Find out why before reading an effect.",
        )
    if health["missing_flag"].astype(bool).any():
        return Badge("error", "missing metrics"), (
            f"Users without metrics differ between the variants; p {_p(lost)}. The effects may come from that alone.",
        )
    missing = ", ".join(f"{rate:.1%}" for rate in health["missing_rate"])
    fits, mark = "Sample ratio as planned", Badge("good", "sound")
    if pd.isna(p):
        fits, mark = "The sample ratio could not be tested", Badge("warning", "not tested")
    return mark, (f"{fits}: {arms}; p {_p(p)}. Users without metrics: {missing}; p {_p(lost)}.",)


def _p(p: Any) -> str:
    words = p_value(p)
    return words if words.startswith("<") else f"= {words}"


def experiment_headline(tables: ReportTables) -> tuple[Badge, Sentence] | None:
    """Return the first row of the experiment as the headline of a page that compares no models."""
    table = next(iter(tables.experiment.values()), None)
    if table is None or not len(table):
        return None
    row = table.iloc[0]
    where = segment_labels(table)[0]
    pair: Sentence = (
        Name(row["treatment"]), " against the control ", Name(row["control"]), " on ", Name(row["metric"]),
        f" ({where})" if where else "", f": {_effect(row)}, {_users(row)}.",
    )  # fmt: skip
    verdict, kind = str(row["verdict"]), badge_of(row["verdict"])
    unsound = _soundness(tables)[0].kind == "error"
    if kind == "warning" or unsound:
        return Badge("warning", "withheld"), ("The verdict is withheld (", Name(verdict), "): ", *pair)
    if kind in ("better", "worse"):
        return Badge(kind, kind), (Name(row["treatment"]), f" is {kind} than the control ", *pair[2:])
    return Badge("open", verdict), (f"{verdict.capitalize()}: ", *pair)


def _effect(row: pd.Series) -> str:
    return effect_text(row["diff"], row["ci_low"], row["ci_high"], row.get("rel_diff", np.nan))


def _users(row: pd.Series) -> str:
    return f"{int(row['n_treatment']):,} users against {int(row['n_control']):,}"


def _experiment_said(tables: ReportTables) -> list[Sentence]:
    """Say the first few effects of the first table, for the head of the page."""
    table = next(iter(tables.experiment.values()), None)
    if table is None:
        return []
    rows = table.head(FEW_EFFECTS).to_dict("records")
    said: list[Sentence] = [
        (f"Experiment, {row['treatment']} against {row['control']} on {row['metric']}"
         f"{f' ({where})' if where else ''}: {row['verdict']}, {_effect(pd.Series(row))}.",)
        for row, where in zip(rows, segment_labels(table), strict=False)
    ]  # fmt: skip
    if len(table) > FEW_EFFECTS:
        said.append((f"{len(table) - FEW_EFFECTS:,} more effects stand in the section Experiment.",))
    return said


def _health_block(health: pd.DataFrame, most: int) -> TableBlock:
    rows = [
        (
            text(row["variant"]), value(row["n_assigned"], ",d"), value(row["share"], ".1%"),
            value(row["expected_share"], ".1%"), value(row["missing_rate"], ".1%"),
            value(row["srm_p"], ".3g"),
        )
        for row in health.to_dict("records")
    ]  # fmt: skip
    head = ("variant", "assigned", "share", "planned share", "without metrics", "p of the sample ratio")
    shown, more = cut(rows, most)
    return TableBlock(
        "Users per variant", head, ("left", *["right"] * 5), shown, csv_of(health), "health.csv", more=more
    )


# ------------------------------------------------------------------------------------------ off-policy


def off_policy_section(subject: Subject, tables: ReportTables) -> tuple[Section | None, list[Sentence]]:
    """Show estimates of policies that did not run; a flagged estimate never stands without its flag."""
    table = tables.off_policy
    if table is None:
        return None, []
    frame = table.reset_index(drop=True)
    flags = [flag_words(found) for found in frame["flags"]]
    shown, more = cut(_estimates(frame, flags), subject.max_rows)
    by, lifts, optional = _off_policy_columns(frame)
    # What says whether to believe an estimate stands before it.
    head = [*by, "estimator", *(["clip"] if "clip" in optional else []), *(["trust"] if "trust" in optional else [])]
    head += ["flags", "value [interval]", *(["lift over the logging policy", "lift [interval]"] if lifts else [])]
    head += ["effective rows"] if "ess" in optional else []
    right = {"clip", "value [interval]", "lift [interval]", "effective rows"}
    align = tuple("right" if name in right else "left" for name in head)
    parts = TableBlock("Estimates", tuple(head), align, shown, csv_of(table), "off-policy.csv", stacked=True, more=more)
    flagged = sum(bool(found) for found in flags)
    said = "No off-policy estimate is flagged."
    if flagged:
        said = f"{flagged} of {len(frame)} off-policy estimates {'carries' if flagged == 1 else 'carry'} a flag."
    useless = frame["trust"].astype(str).str.startswith("do not use").sum() if "trust" in optional else 0
    if useless:
        said += f" {useless} of them should not be used; the column trust says why."
    doubt = " A flagged estimate can be far off, and its interval holds the true value less often than it says."
    mark = Badge("warning", "flagged") if flagged else Badge("good", "no flag")
    sentence: Sentence = (said + (doubt if flagged else ""),)
    section = Section("off-policy", "Off-policy estimates", text=(sentence,), badge=mark, tables=(parts,))
    return section, [(said,)]


def _off_policy_columns(frame: pd.DataFrame) -> tuple[list[str], bool, set[str]]:
    """Return the columns before the estimator, whether there are lifts, and which optional columns there are."""
    by = list(frame.columns[: list(frame.columns).index("estimator")])
    lifts = all(name in frame.columns for name in ("lift", "lift_ci_low", "lift_ci_high"))
    optional = {name for name in ("clip", "ess", "trust") if name in frame.columns and frame[name].notna().any()}
    return by, lifts, optional


def _estimates(frame: pd.DataFrame, flags: list[str]) -> list[tuple[Shown, ...]]:
    """Return one row per estimate; every row that has flags names them."""
    by, lifts, optional = _off_policy_columns(frame)
    records = frame.to_dict("records")
    kinds = [_kind_of_lift(row, lifts, found) for row, found in zip(records, flags, strict=True)]
    names = [str(row["estimator"]) for row in records]
    places = bars(frame["lift"], frame["lift_ci_low"], frame["lift_ci_high"], kinds, names) if lifts else []
    rows = []
    for i, row in enumerate(records):
        form = f".{digits_for(row['value'], row['ci_low'], row['ci_high'])}f"
        cells = [*(text(row[name]) for name in by), text(row["estimator"])]
        cells += [value(row["clip"], "g")] if "clip" in optional else []
        cells += [text(row["trust"])] if "trust" in optional else []
        cells.append(badge("warning", flags[i]) if flags[i] else badge("good", "no flag"))
        cells.append(value(row["value"], form, small=interval(row["ci_low"], row["ci_high"], form)))
        if lifts:
            plus = f"+.{digits_for(row['lift'], row['lift_ci_low'], row['lift_ci_high'])}f"
            bounds = interval(row["lift_ci_low"], row["lift_ci_high"], plus)
            cells += [places[i], value(row["lift"], plus, small=bounds)]
        cells += [value(row["ess"], ",.0f")] if "ess" in optional else []
        rows.append(tuple(cells))
    return rows


def flag_words(found: Any) -> str:
    """Return flags as one text, whether they are a text or a list."""
    if isinstance(found, str):
        return found.replace("_", " ")
    if isinstance(found, list | tuple | np.ndarray):
        return ", ".join(str(flag).replace("_", " ") for flag in found)
    return "" if pd.isna(found) else str(found)


def _kind_of_lift(row: dict[Any, Any], lifts: bool, flags: str) -> BadgeKind:
    """Return the look of an estimate; a flagged one never looks like a result."""
    if flags:
        return "warning"
    if not lifts or pd.isna(row["lift_ci_low"]):
        return "open"
    return "better" if row["lift_ci_low"] > 0 else "worse" if row["lift_ci_high"] < 0 else "open"


# ------------------------------------------------------------------------------------------ data health


def check_section(subject: Subject, tables: ReportTables, examples: bool) -> tuple[Section | None, list[Sentence]]:
    """Show the findings of `rd.check` with the whole text of their effects; ids of users only if they are asked for."""
    table = tables.check
    if table is None:
        return None, []
    with_ids = examples and "examples" in table.columns
    rows = []
    for row in table.to_dict("records"):
        severity = str(row["severity"])
        cells = [badge(SEVERITY.get(severity, "info"), severity), text(row["finding"]), value(row["count"], ",d"),
                 value(row["share"], ".1%"), text(row["effect"])]  # fmt: skip
        rows.append((*cells, *([text(row["examples"], code=True)] if with_ids else [])))
    head = ("severity", "finding", "count", "share", "effect on the metrics", *(("examples",) if with_ids else ()))
    align = ("left", "left", "right", "right", "left", *(("left",) if with_ids else ()))
    shown, more = cut(rows, subject.max_rows)
    saved = table if with_ids else table.drop(columns="examples", errors="ignore")
    parts = TableBlock("Findings", head, align, shown, csv_of(saved), "check.csv", stacked=True, more=more)
    n = {level: int((table["severity"] == level).sum()) for level in ("error", "warning", "info")}
    kind: BadgeKind = "error" if n["error"] else "warning" if n["warning"] else "good"
    counted = ", ".join(f"{n[level]} {level}{'' if n[level] == 1 else 's'}" for level in ("error", "warning"))
    mark = Badge(kind, counted)
    found: Sentence = ("What rd.check found in the data, errors first.",)
    shown_tables = (parts,) if rows else ()
    section = Section("data-health", "Data health", text=(found,), badge=mark, tables=shown_tables)
    serious = table.loc[table["severity"].isin(["error", "warning"]), "finding"].astype(str).tolist()
    named = "; ".join([*serious[:FEW_EFFECTS], *(["…"] if len(serious) > FEW_EFFECTS else [])])
    return section, [(f"Data health: {counted}{f' ({visible(named)})' if named else ''}.",)]


# ------------------------------------------------------------------------------------------ definitions, spec


def definitions_section(subject: Subject) -> Section:
    """Show the formula and the options of every metric of the page."""
    shown = subject.meanings[subject.meanings["column"].isin(subject.columns)]
    direction = {"larger": "higher is better", "smaller": "lower is better"}
    rows = [
        (
            text(row["column"]), text(row["meaning"] or "a metric of your own"), text(row["formula"] or "–"),
            text(row["definition"], code=True), text(direction.get(row["better"], "no direction")),
        )
        for row in shown.to_dict("records")
    ]  # fmt: skip
    head = ("metric", "meaning", "formula", "definition with every option", "direction")
    table = TableBlock(
        "The metrics of this page", head, ("left",) * 5, tuple(rows[: subject.max_rows]), csv_of(subject.meanings),
        "definitions.csv", stacked=True, more=max(0, len(rows) - subject.max_rows),
    )  # fmt: skip
    return Section("definitions", "Definitions", tables=(table,))


def reproducibility_section(subject: Subject) -> Section:
    """Show what is needed to get the same numbers again: versions, rows, options and a digest."""
    result, spec = subject.result, subject.result.spec
    digest = hashlib.sha256(csv_of(result.summary).encode()).hexdigest()
    order = spec.get("order", {})
    changed = {name: found for name, found in spec.get("options", {}).items() if found is not None}
    pairs = [
        ("recdf", f"{spec.get('recdf', '')} evaluated, {__version__} wrote this page"),
        ("Python, pandas, NumPy", f"{platform.python_version()}, {pd.__version__}, {np.__version__}"),
        ("rows", f"{len(result.per_user):,} in per_user, {len(result.summary):,} in summary"),
        ("list key", ", ".join(spec["user_col"])),
        ("models by", ", ".join(spec["by"]) or "one model"),
        ("order of pred", f"{order.get('by', '')} {order.get('column') or ''}".strip()),
        ("counts", ", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in spec.get("counts", {}).items()) or "–"),
        ("digest of the summary", f"sha256 {digest}"),
    ]
    options, whole = (
        "\n".join(map(visible, json.dumps(found, indent=1, ensure_ascii=False, default=str).splitlines()))
        for found in (changed, spec)
    )
    return Section(
        "reproducibility", "Reproducibility", pairs=tuple((name, visible(found)) for name, found in pairs),
        details=(("Options", options), ("The whole spec", whole)),
    )  # fmt: skip

"""Sections about the data and the page itself: data health, definitions, reproducibility."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..._version import version_and_build
from ...diagnostics.gate_records import row_cells
from ...evaluation.result import Evaluation
from ...tables.cells import visible
from ...tables.findings import finding_of
from .. import plot
from ..plot.effect_plots import gate_panels
from .about_models import Pen
from .page_blocks import (
    Badge,
    BadgeKind,
    Reason,
    Section,
    Sentence,
    TableBlock,
    badge,
    csv_of,
    cut,
    formula,
    text,
    value,
)
from .report_inputs import ReportTables, Subject
from .svg import SIZE

__all__: list[str] = []

FEW_EFFECTS = 4  # effects of an experiment that the head of the page quotes
SEVERITY: dict[str, BadgeKind] = {"error": "error", "warning": "warning", "info": "info"}


# -- data health


def _levels_block(floors: pd.DataFrame, most: int) -> TableBlock:
    """Show each metric beside the levels that an audit found."""
    numbers = {"n": ",d", **dict.fromkeys(("value", "chance", "popularity", "ceiling"), ".4g")}
    rows = [
        tuple(
            value(one, numbers[name]) if name in numbers else text(str(one))
            for name, one in row.items()
        )
        for row in floors.to_dict("records")
    ]
    shown, more = cut(rows, most)
    align = tuple("right" if name in numbers else "left" for name in floors.columns)
    return TableBlock(
        "Levels", tuple(floors.columns), align, shown, csv_of(floors), "levels.csv", more=more
    )


def check_section(
    tables: ReportTables, most: int, examples: bool
) -> tuple[Section | None, list[Reason]]:
    """Show the findings of `rd.check` with the whole text of their effects; ids of users only if
    they are asked for."""
    table = tables.check
    if table is None:
        return None, []
    with_ids = examples and "examples" in table.columns
    rows = []
    for row in table.to_dict("records"):
        severity = str(row["severity"])
        cells = [
            badge(SEVERITY.get(severity, "info"), severity),
            text(finding_of(row)),
            value(row["count"], ",d"),
            value(row["share"], ".1%"),
            text(row["effect"]),
        ]
        rows.append((*cells, *([text(row["examples"], code=True)] if with_ids else [])))
    head = (
        "severity",
        "finding",
        "count",
        "share",
        "effect on the metrics",
        *(("examples",) if with_ids else ()),
    )
    align = ("left", "left", "right", "right", "left", *(("left",) if with_ids else ()))
    shown, more = cut(rows, most)
    saved = table if with_ids else table.drop(columns="examples", errors="ignore")
    parts = TableBlock(
        "Findings", head, align, shown, csv_of(saved), "check.csv", stacked=True, more=more
    )
    n = {level: int((table["severity"] == level).sum()) for level in ("error", "warning", "info")}
    kind: BadgeKind = "error" if n["error"] else "warning" if n["warning"] else "good"
    counted = ", ".join(
        f"{n[level]} {level}{'' if n[level] == 1 else 's'}" for level in ("error", "warning")
    )
    mark = Badge(kind, counted)
    floors = getattr(table, "floors", None)
    found: Sentence = (
        f"What rd.{'check' if floors is None else 'audit'} found in the data, errors first.",
    )
    shown_tables = (
        *([parts] if rows else []),
        *([] if floors is None else [_levels_block(floors, most)]),
    )
    section = Section("data-health", "Data health", text=(found,), badge=mark, tables=shown_tables)
    serious = [
        finding_of(row)
        for row in table.to_dict("records")
        if row["severity"] in ("error", "warning")
    ]
    named = "; ".join([*serious[:FEW_EFFECTS], *(["…"] if len(serious) > FEW_EFFECTS else [])])
    return section, [Reason((f"Data health: {counted}{f' ({visible(named)})' if named else ''}.",))]


def gate_section(tables: ReportTables, most: int, pen: Pen) -> tuple[Section | None, list[Reason]]:
    """Show each budget of a gate with its change and verdict, as the table of the gate does."""
    gate = tables.gate
    if gate is None:
        return None, []
    kinds: dict[str, BadgeKind] = {
        "pass": "good",
        "fail": "error",
        "undecided": "open",
        "not_gated": "info",
    }
    cells = [row_cells(row) for row in gate.table.to_dict("records")]
    rows = [
        (badge(kinds.get(effect, "warning"), said), *map(text, more))
        for effect, (said, *more) in zip(gate.table["effect"], map(dict.values, cells), strict=True)
    ]
    head, align = tuple(cells[0]), ("left", "left", *["right"] * 5, "left")
    shown, more = cut(rows, most)
    parts = TableBlock(
        "Budgets", head, align, shown, csv_of(gate.table), "gate.csv", stacked=True, more=more
    )
    mark, said = Badge(kinds[gate.verdict], gate.verdict), tuple((note,) for note in gate.notes)
    panels = gate.table.groupby(gate_panels(gate.table), sort=False)
    drawings = [
        pen(plot.gate, replace(gate, table=rows), size=(SIZE[0], 1.2 + 0.4 * len(rows)))
        for _, rows in panels
    ]
    section = Section(
        "gate", "Gate", text=said, badge=mark, tables=(parts,), drawings=tuple(drawings)
    )
    against = {"fail": "the gate fails", "undecided": "the gate is undecided"}.get(gate.verdict, "")
    todo = f"pass the gate first ({gate.headline})"
    return section, [Reason((f"Gate: {gate.headline}.",), against, todo)]


# ------------------------------------------------------------------------------------------
# definitions, spec


def _in_force(words: str, spec: Mapping[str, Any]) -> str:
    """Return a formula without the sentences about options that are not in force."""
    options = spec.get("options", {})
    kept = []
    for sentence in re.split(r"(?<=\.) (?=[A-Z])", words):
        names = [name for name in re.findall(r"`(\w+)`", sentence) if name in options]
        if not names or any(options[name] not in (None, False, 0.0) for name in names):
            kept.append(sentence)
    return " ".join(kept)


def definitions_section(subject: Subject) -> Section:
    """Show the formula and the options of every metric of the page."""
    shown = subject.meanings[subject.meanings["column"].isin(subject.columns)]
    direction = {"larger": "higher is better", "smaller": "lower is better"}
    rows = [
        (
            text(row["column"]),
            text(row["meaning"] or "a metric of your own"),
            formula(_in_force(row["formula"] or "–", subject.result.spec)),
            text(row["definition"], code=True),
            text(direction.get(row["better"], "no direction")),
        )
        for row in shown.to_dict("records")
    ]
    head = ("metric", "meaning", "formula", "definition with every option", "direction")
    table = TableBlock(
        "The metrics of this page",
        head,
        ("left",) * 5,
        tuple(rows[: subject.max_rows]),
        csv_of(subject.meanings),
        "definitions.csv",
        stacked=True,
        folded=f"Formulas of {len(rows)} metrics",
        more=max(0, len(rows) - subject.max_rows),
    )
    return Section("definitions", "Definitions", tables=(table,))


def reproducibility_section(result: Evaluation) -> Section:
    """Show what is needed to get the same numbers again: versions, rows, options and a digest."""
    spec = result.spec
    digest = hashlib.sha256(csv_of(result.summary).encode()).hexdigest()
    order = spec.get("order", {})
    changed = {name: found for name, found in spec.get("options", {}).items() if found is not None}
    pairs = [
        ("recdf", f"{spec.get('recdf', '')} evaluated, {version_and_build()} wrote this page"),
        (
            "Python, pandas, NumPy",
            f"{platform.python_version()}, {pd.__version__}, {np.__version__}",
        ),
        ("rows", f"{len(result.per_user):,} in per_user, {len(result.summary):,} in summary"),
        ("list key", ", ".join(spec["user_col"])),
        ("models by", ", ".join(spec["by"]) or "one model"),
        (
            "order of pred",
            f"by {order.get('by', '')}"
            + (f", column {order['column']}" if order.get("column") else ""),
        ),
        (
            "counts",
            ", ".join(
                f"{name.replace('_', ' ')} {n:,}" for name, n in spec.get("counts", {}).items()
            )
            or "–",
        ),
        ("digest of the summary", f"sha256 {digest}"),
    ]
    options, whole = (
        "\n".join(
            map(visible, json.dumps(found, indent=1, ensure_ascii=False, default=str).splitlines())
        )
        for found in (changed, spec)
    )
    return Section(
        "reproducibility",
        "Reproducibility",
        pairs=tuple((name, visible(found)) for name, found in pairs),
        details=(("Options", options), ("The whole spec", whole)),
    )

"""Sections about the page itself: definitions, reproducibility."""

from __future__ import annotations

import hashlib
import json
import platform
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..._version import version_and_build
from ...evaluation.result import Evaluation
from ...tables.cells import visible
from .page_blocks import (
    Section,
    TableBlock,
    csv_of,
    formula,
    text,
)
from .report_inputs import Subject

__all__: list[str] = []

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

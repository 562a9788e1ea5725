"""Sections about the page itself: definitions, reproducibility; and the lists of a few users, side
by side, only if they are asked for."""

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
from ...errors import kind_of
from ...evaluation.result import Evaluation
from ...tables.cells import Cell, amount, visible
from ..given_tables import labels, need
from .page_blocks import Badge, Section, Shown, TableBlock, csv_of, formula, text
from .report_inputs import Subject

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
        folded=f"Formulas of {amount(len(rows), 'metric')}",
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


MANY_LISTS_SHOWN = 5


def examples_section(subject: Subject | None, examples: Any) -> Section | None:
    """Show the lists of the first users of a hit table, one table a user, one column a model."""
    if isinstance(examples, bool) or examples is None or subject is None:
        return None
    if not isinstance(examples, pd.DataFrame):
        raise TypeError(
            f"examples is {kind_of(examples)}; expected True, or what rd.diagnostics.hit_table gave"
        )
    by, key = list(subject.result.spec["by"]), list(subject.result.spec["user_col"])
    source = "what rd.diagnostics.hit_table returned"
    frame = need(examples, "examples", [*by, *key, "rank", "hit"], source).reset_index(drop=True)
    item = frame.columns[list(frame.columns).index("rank") - 1]
    carried = [
        name
        for name in frame.columns[list(frame.columns).index("rank") + 1 :]
        if name not in ("hit", "gain", "value")
    ]
    shown = frame[carried[0] if carried else item].where(lambda names: names.notna(), frame[item])
    frame = frame.assign(model=labels(frame, by), list=labels(frame, key), shown=shown)
    models = [name for name in (subject.pair or subject.models[:1]) if name in set(frame["model"])]
    tables = []
    for name, rows in frame[frame["model"].isin(models)].groupby("list", sort=False):
        tables.append(_lists_of(str(name), rows, models))
        if len(tables) == MANY_LISTS_SHOWN:
            break
    said = (
        "Hits are marked. These are rows of users: this page was made with examples=, and is not "
        "for everybody."
    )
    return Section("examples", "Examples", text=(said,), tables=tuple(tables))


def _lists_of(name: str, rows: pd.DataFrame, models: list[str]) -> TableBlock:
    """Return the lists of one user: a row for each rank, and one for what was relevant and not
    shown."""
    cells = {
        (row.model, row.rank): _hit_cell(row) for row in rows[rows["rank"].notna()].itertuples()
    }
    ranks = sorted(rows["rank"].dropna().unique().tolist())
    body = [
        (text(f"{int(rank)}"), *(cells.get((model, rank), text("–")) for model in models))
        for rank in ranks
    ]
    missed = {
        m: ", ".join(map(visible, rows[rows["rank"].isna() & (rows["model"] == m)]["shown"]))
        for m in models
    }
    if any(missed.values()):
        body.append(
            (text("relevant, not shown"), *(text(missed[model] or "–") for model in models))
        )
    head = ("rank", *map(visible, models))
    return TableBlock(f"Lists of {visible(name)}", head, ("left",) * len(head), tuple(body))


def _hit_cell(row: Any) -> Shown:
    words = visible(row.shown)
    return (
        Shown(Cell("hit", small=words), words.casefold(), Badge("good", "hit"))
        if row.hit
        else text(words)
    )

"""What the models of the headline showed a few users, side by side, hits marked: rows of users,
only if asked for."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ...errors import kind_of
from ...tables.cells import Cell, visible
from ..given_tables import labels, need
from .page_blocks import Badge, Section, Shown, TableBlock, text
from .report_inputs import Subject

__all__: list[str] = []

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

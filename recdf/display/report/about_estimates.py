"""Sections of tables beside the effects of an experiment: A/A test, sample ratio by level, plans,
interleaved lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from ...diagnostics.history import History
from ...tables.cells import Cell, p_value
from .. import plot
from ..estimate_tables import EstimateKind, kind_of_estimates
from .about_models import Pen, comparison_table, forest_drawings
from .page_blocks import (
    Badge,
    BadgeKind,
    Section,
    Sentence,
    Shown,
    TableBlock,
    badge,
    badge_of,
    csv_of,
    cut,
    effect_text,
    text,
)

__all__: list[str] = []

MARKS: dict[str, BadgeKind] = {"better": "good", "worse": "error"}
MOST_SAID = 4  # rows of a comparison that are sentences too


def estimate_section(place: str, name: str, table: pd.DataFrame, most: int, pen: Pen) -> Section:
    """Show a table that stands beside the effects, with the words of its verdicts."""
    kind = kind_of_estimates(table)
    return (
        _of_models(table, name, place, most)
        if kind is None
        else _of_kind(kind, table, name, place, most, pen)
    )


def _of_kind(
    kind: EstimateKind, table: pd.DataFrame, name: str, place: str, most: int, pen: Pen | None
) -> Section:
    """Show estimates: how many have which verdict, a row of a table and a mark of a picture for
    each."""
    data = plot.forest.data(table)
    records = data.to_dict("records")
    marks = [badge(MARKS.get(row["sign"], badge_of(row)), row["verdict"]) for row in records]
    judged = bool(data["verdict"].astype(bool).any())
    rows = [
        (text(row["metric"]), text(row["label"]), text(row["numbers"]), *([mark] if judged else []))
        for row, mark in zip(records, marks, strict=True)
    ]
    head = ("what", "of", "estimate", *(["verdict"] if judged else []))
    shown, more = cut(rows, most)
    block = TableBlock(
        titled(kind.title, name),
        head,
        ("left",) * len(head),
        shown,
        csv_of(table),
        f"{place}.csv",
        stacked=True,
        more=more,
    )
    drawings = () if pen is None else tuple(forest_drawings(table, most, pen))
    return Section(
        place,
        titled(kind.title, name),
        text=counted(table),
        badge=_worst(marks) if judged else None,
        tables=(block,),
        drawings=drawings,
    )


def counted(table: pd.DataFrame) -> tuple[Sentence, ...]:
    """Say how many rows have which verdict; nothing for a table without verdicts."""
    counts = plot.forest.data(table)["verdict"].value_counts(sort=False).to_dict()
    words = [f"{n} of {len(table)}: {verdict}" for verdict, n in counts.items() if verdict]
    return (("; ".join(words) + ".",),) if words else ()


def doubts_beside(tables: Mapping[str, pd.DataFrame]) -> list[Sentence]:
    """Say which tables beside the effects have a verdict that speaks against them."""
    of_kind = [(kind_of_estimates(table), name, table) for name, table in tables.items()]
    return [
        (f"{titled(kind.title, name)}: ", *counted(table)[0])
        for kind, name, table in of_kind
        if kind is not None and (plot.forest.data(table)["sign"] == "worse").any()
    ]


def titled(title: str, name: str) -> str:
    """Return the title of a table with the name that the caller gave it."""
    return f"{title}, {name}" if name else title


def _of_models(table: pd.DataFrame, name: str, place: str, most: int) -> Section:
    """Show a comparison of models, such as that of interleaved lists."""
    title = titled(
        "Interleaved lists" if "preference" in table.columns else "Comparison of models", name
    )
    said: list[Sentence] = []
    for row in table.head(MOST_SAID).to_dict("records"):
        said.append(
            (
                f"{row['model']} against {row['baseline']} on {row['metric']}: {row['verdict']}. "
                f"{effect_text(row)}.",
            )
        )
        if "preference" in row:
            said.append(
                (
                    f"{row['wins']:,} users prefer {row['model']}, {row['losses']:,} prefer "
                    f"{row['baseline']} (sign test, p {p_value(row['p_sign'])}).",
                )
            )
    marks = [badge(badge_of(row), row["verdict"]) for row in table.to_dict("records")]
    return Section(
        place,
        title,
        text=tuple(said),
        badge=_worst(marks),
        tables=(comparison_table(table, title, f"{place}.csv", most),),
    )


def _worst(marks: list[Shown]) -> Badge | None:
    """Return the badge that a reader has to see first."""
    order: list[BadgeKind] = ["error", "warning", "worse", "open", "better", "good"]
    return min(
        (mark.badge for mark in marks if mark.badge),
        key=lambda one: order.index(one.kind),
        default=None,
    )


def history_section(history: History | None, most: int, pen: Pen) -> Section | None:
    """Show when the metrics and the data of a job changed, and the metrics by date."""
    if history is None:
        return None
    blocks, marks, said, gaps = [], [], [], history.gaps()
    for title, table in (("Metrics", history.changes()), ("Data", history.drift())):
        kind = kind_of_estimates(table)
        assert kind is not None
        part = _of_kind(kind, table, "", "history", most, None)
        blocks += [
            replace(
                part.tables[0], caption=f"{title}: changes of level", file=f"{title.lower()}.csv"
            )
        ]
        marks += [] if part.badge is None else [Shown(Cell(""), badge=part.badge)]
        said += [(f"{title}: ", *sentence) for sentence in part.text]
    said += [(f"{row['what']}: {row['verdict']}.",) for row in gaps.head(most).to_dict("records")]
    gone = gaps["effect"].isin(["missing", "too_old"]).any()
    marks += [badge("worse", "missing")] if gone else []
    drawings = [
        pen(plot.history, history, name)
        for name in history.summary["column"].drop_duplicates()[:MOST_SAID]
    ]
    return Section(
        "history",
        "History",
        text=((f"{history.headline}.",), *said),
        badge=_worst(marks),
        tables=tuple(blocks),
        drawings=tuple(drawings),
    )

"""The verdict as five lines, each from the tables by a rule that docs/report.md writes down.

Which, by how much, how sure, for whom worse, what could overturn it: in this order on every page
about models, and in the same order on a page about an experiment.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...errors import OptionError
from ...tables.cells import estimate
from .doubts import Doubt, find_doubts
from .headline import Duel, Headline, belief, headline, other_metrics
from .page_blocks import Badge, Section, Sentence
from .report_inputs import Subject

__all__: list[str] = []

WHICH, HOW_MUCH, SURE, FOR_WHOM, DOUBTS = CARD_LINES = (
    "Which",
    "By how much",
    "How sure",
    "For whom worse",
    "What could overturn it",
)
POWER_Z = 0.8416  # of the normal distribution: 8 of 10


def verdict_section(
    subject: Subject, check: pd.DataFrame | None, said: dict[str, list[Sentence]]
) -> Section:
    """Return the card about the models of a result; `said` holds sentences of other sections, by
    their id."""
    found = headline(subject)
    doubts = find_doubts(subject, check, found.duel)
    reach = _reach(subject)
    worse = [*other_metrics(subject), *said.pop("segments", [])]
    overturn = [doubt.said for doubt in doubts] + said.pop("data-health", [])
    lines = [
        (WHICH, (found.which, *found.below)),
        (HOW_MUCH, (*_amount(found), *reach)),
        (SURE, (*belief(subject), *_could_show(found.duel))),
        (
            FOR_WHOM,
            tuple(worse)
            or (("Nothing was compared beside the first metric: no segments, no other metric.",),),
        ),
        (DOUBTS, tuple(overturn)),
        ("Beside it", tuple(sentence for sentences in said.values() for sentence in sentences)),
    ]
    return Section(
        "verdict",
        "Verdict",
        badge=tempered(found.badge, doubts, bool(found.duel and found.duel.turned)),
        lines=kept(lines),
    )


def kept(
    lines: Sequence[tuple[str, Sequence[Sentence]]],
) -> tuple[tuple[str, tuple[Sentence, ...]], ...]:
    """Return the lines that say something."""
    return tuple((name, tuple(sentences)) for name, sentences in lines if sentences)


def tempered(badge: Badge, doubts: Sequence[Doubt], turned: bool) -> Badge:
    """Let a badge say what would change it."""
    reasons = list(dict.fromkeys(doubt.badge for doubt in doubts if doubt.badge))
    if not reasons or badge.text in (
        "withheld",
        "too few lists to tell",
        "no verdict",
        "one model",
    ):
        return badge
    beside = " and " if turned else ", but "
    return Badge("warning", f"{badge.text}{beside}{' and '.join(reasons)}")


def _amount(found: Headline) -> list[Sentence]:
    """Say the difference, its interval, and how many gain and lose."""
    duel = found.duel
    if duel is None:
        return []
    pair = f"{duel.model} − {duel.rival}: "
    judged = " whose lists people judged" if "n_human" in duel.row else ""
    users = f" {duel.gain:,} of {duel.n:,} users{judged} gain and {duel.lose:,} lose."
    together = (
        " The interval holds for all comparisons of the page together." if duel.together > 1 else ""
    )
    return [(f"{pair}{duel.effect}.{users}{together}{duel.warned}",)]


def _could_show(duel: Duel | None) -> list[Sentence]:
    """Say which difference this number of lists would have shown in 8 of 10 cases."""
    if duel is None or not (duel.row["se"] > 0) or not np.isfinite(duel.high - duel.low):
        return []
    least = (duel.high - duel.low) / 2 + POWER_Z * float(duel.row["se"])
    words = estimate(least)
    return [(f"With so many lists, a difference of {words} is shown in 8 of 10 cases.",)]


def _reach(subject: Subject) -> list[Sentence]:
    """Say what share of the catalogue the models of the headline show."""
    family = subject.meanings.set_index("column")["name"]
    column = next((name for name in subject.columns if family.get(name) == "coverage"), None)
    if column is None or subject.tested_pair is None:
        return []
    pair, values = subject.tested_pair, subject.values(column)["value"]
    if not {*pair} <= set(values.index):
        raise OptionError(f"{column} is missing for one of {pair}")
    return [
        (
            f"{pair[0]} shows {values[pair[0]]:.0%} of the catalogue, {pair[1]} "
            f"{values[pair[1]]:.0%}.",
        )
    ]

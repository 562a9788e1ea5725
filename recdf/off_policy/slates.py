"""Importance weights of slates: the ratio of each row, combined over the positions of its unit.

Contract: rows are in the order of unit and position. A unit's running product at position k is over
its first k rows.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from ..errors import DataError, OptionError
from ..inputs.sorting import distinct
from ..stats.numbers import Floats
from .estimators import Interaction
from .rows import Bools, IntCodes

SlateKind = Literal["item", "conditional", "prefix", "slate"]

# Which kinds of propensity give the weights of an interaction, and what the kind holds.
ALLOWED: dict[Interaction, tuple[SlateKind, ...]] = {
    "independent": ("item",),
    "cascade": ("conditional", "prefix"),
    "standard": ("conditional", "prefix", "slate"),
}
MEANING: dict[SlateKind, str] = {
    "item": "the probability of the item at its position, whatever stands at the others",
    "conditional": "the probability of the item at its position, given the items above it",
    "prefix": "the probability of the items down to this position",
    "slate": "the probability of the whole slate",
}

# Rounding that products of propensities may have.
SLATE_TOLERANCE = 1e-9


class Layout(NamedTuple):
    """Where units begin, and the place of every row in its unit, 0 for the first."""

    first: Bools
    place: IntCodes

    @property
    def starts(self) -> IntCodes:
        return np.flatnonzero(self.first)

    @property
    def lengths(self) -> IntCodes:
        return np.diff(np.append(self.starts, len(self.first)))


def layout_of(unit: IntCodes) -> Layout:
    """Layout of rows that are sorted by unit."""
    first = np.append(True, unit[1:] != unit[:-1])
    starts = np.flatnonzero(first)
    place = np.arange(len(unit)) - np.repeat(starts, np.diff(np.append(starts, len(unit))))
    return Layout(first, place)


def check_kind(interaction: Interaction, kind: SlateKind) -> None:
    """Refuse a kind of propensity that does not determine the weights of an interaction."""
    if kind not in ALLOWED[interaction]:
        raise OptionError(
            f"⟦interaction={interaction!r}⟧ cannot be computed from ⟦propensity_kind={kind!r}⟧ "
            f"({MEANING[kind]}); it needs {' or '.join(repr(one) for one in ALLOWED[interaction])}"
        )


def check_products(values: Floats, layout: Layout, kind: SlateKind, where: str) -> None:
    """Refuse columns that cannot be what `propensity_kind` says."""
    same = values[1:] - values[:-1]
    inside = ~layout.first[1:]
    if kind == "slate" and (np.abs(same[inside]) > SLATE_TOLERANCE).any():
        n = len(distinct(np.cumsum(layout.first)[1:][inside & (np.abs(same) > SLATE_TOLERANCE)]))
        raise DataError(
            f"{where} differs between the rows of {n:,} units, but ⟦propensity_kind='slate'⟧ means "
            "one value per unit; values of single positions are ⟦+propensity_kind='conditional'⟧"
        )
    if kind == "prefix" and (same[inside] > SLATE_TOLERANCE).any():
        n = int(np.count_nonzero(same[inside] > SLATE_TOLERANCE))
        raise DataError(
            f"{where} grows from one position to the next in {n:,} rows, but "
            "⟦+propensity_kind='prefix'⟧ means the running product, which cannot grow; values of "
            "single positions are ⟦+propensity_kind='conditional'⟧"
        )


def check_per_slate(
    logged: Floats, target: Floats, layout: Layout, kind: SlateKind, where: str
) -> None:
    """Refuse one probability per slate that is passed as one per position.

    Constant values can be right (a uniform policy), but not where they also differ between units in
    both columns.
    """
    inside = ~layout.first[1:]
    if kind not in ("conditional", "prefix") or not inside.any():
        return
    if any((values[1:] != values[:-1])[inside].any() for values in (logged, target)):
        return
    one = kind == "prefix" and (logged < 1).any()
    if one or all(len(distinct(values[layout.first])) > 1 for values in (logged, target)):
        raise DataError(
            f"{where} has one value for all rows of each unit, which is the probability of a "
            f"slate, but ⟦propensity_kind={kind!r}⟧ means {MEANING[kind]}; pass "
            "⟦+propensity_kind='slate'⟧ with ⟦+interaction='standard'⟧"
        )


def check_slate_product(
    conditional: Floats, slate: Floats, layout: Layout, wheres: tuple[str, str]
) -> None:
    """Refuse conditional propensities whose product is not the probability of their slate."""
    product = running_product(conditional, layout)[last_rows(layout)]
    given = slate[last_rows(layout)]
    wrong = np.abs(product - given) > 1e-6 * np.maximum(product, given)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"the product of {wheres[0]} is not {wheres[1]} in {np.count_nonzero(wrong):,} of "
            f"{len(given):,} units (first: {product[at]:.6g} and {given[at]:.6g})"
        )


def last_rows(layout: Layout) -> IntCodes:
    """The last row of each unit."""
    return np.append(layout.starts[1:], len(layout.first)) - 1


def running_product(values: Floats, layout: Layout) -> Floats:
    """Product of the values of a unit down to each row. The loop runs over positions, not over
    rows."""
    product = values.astype(np.float64, copy=True)
    for place in range(1, int(layout.lengths.max(initial=0))):
        rows = layout.starts[layout.lengths > place] + place
        product[rows] *= product[rows - 1]
    return product


def slate_weights(
    ratio: Floats, layout: Layout, interaction: Interaction, kind: SlateKind
) -> Floats:
    """The weight that every row has under an interaction, from the ratios π_e/π_b of its
    columns."""
    if interaction == "independent":
        return ratio
    down = running_product(ratio, layout) if kind == "conditional" else ratio
    if interaction == "cascade":
        return down
    return np.repeat(down[last_rows(layout)], layout.lengths)

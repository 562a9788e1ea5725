"""One record per side table: what pages and messages say about it, how it is read, and how it is
coded.

Contract: everything that lists the side tables follows `SIDE_TABLES` and its order: the arguments
of `evaluate`, of its engines and of metrics, their docstrings, the needs of a metric, the spec, and
the flags of the command. To add a side table, add a line to `SideTableArguments`. CONTRIBUTING.md
has an example.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypedDict, get_type_hints

import pandas as pd

from ...inputs.frames import as_frame
from ...inputs.options import Options
from ...inputs.true_and_pred import read_catalogue
from .sides import (
    CheckedSide,
    CheckedSides,
    Sides,
    aspects_codes,
    aspects_frame,
    base_codes,
    catalogue_codes,
    checked_aspects,
    checked_catalogue,
    checked_features,
    checked_ids,
    checked_keyed,
    checked_lists,
    checked_pairs,
    features_codes,
    log_codes,
    marked_codes,
)


@dataclass(frozen=True)
class SideTable:
    """The record of one side table.

    about : what messages say after `name=` · hint : its type for a type checker (a name in
    `inputs.accepted`) · kind, meaning : its type and its meaning for docstrings · check : the
    function that checks its columns and ids · codes : the function that makes what kernels read as
    `lists.sides.name` · flag : help text of the command's flag · usage : what the flag takes ·
    frame : returns the same data in a form that can be read more than once · name : its argument.
    """

    about: str
    hint: str
    kind: str
    meaning: str
    check: Callable[[str, Any, Options, CheckedSides], CheckedSide]
    codes: Callable[[Sides, str], Any]
    flag: str
    usage: str = "FILE"
    frame: Callable[[Any, Options, str], Any] = lambda data, options, name: as_frame(
        data, name, options.user_col, options.item_col
    )
    name: str = ""

    @property
    def argument(self) -> str:
        """The argument and what it is, for messages."""
        return f"⟦+{self.name}=⟧ ({self.about})"


def _ids(data: Any, options: Options, name: str) -> pd.DataFrame:
    return read_catalogue(data, options.item_col, name)[0]


def _features(data: Any, options: Options, name: str) -> Any:
    """Return features in a form that can be read more than once. Only a stream has to be converted
    for that."""
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, pd.DataFrame | pd.Series):
        return as_frame(data, name)
    return data


ROWS_EXPECTED = "DataFrame, mapping or Arrow stream"


class SideTableArguments(TypedDict, total=False):
    """The side tables as keyword arguments, each with its record."""

    items: Annotated[
        Any,
        SideTable(
            about="the catalogue: one row per item",
            hint="Ids",
            kind="DataFrame, list, Series or Index",
            meaning="Catalogue: all items that could be recommended, one row each; with "
            "`value_col` also their values.",
            check=checked_catalogue,
            codes=catalogue_codes,
            flag="catalogue: one row per item",
            frame=_ids,
        ),
    ]
    log: Annotated[
        Any,
        SideTable(
            about="past interactions: one row per user and item",
            hint="Rows",
            kind=ROWS_EXPECTED,
            meaning="Past interactions: one row per (user, item), with those columns of the list "
            "key that it has.",
            check=checked_keyed,
            codes=log_codes,
            flag="past interactions: rows of user and item",
        ),
    ]
    aspects: Annotated[
        Any,
        SideTable(
            about="user -> list of item sets, or a frame with the columns aspect and item",
            hint="Rows",
            kind="mapping or DataFrame",
            meaning="User -> list of item sets; or rows of (user, aspect, item); or of (aspect, "
            "item), for all users.",
            check=checked_aspects,
            codes=aspects_codes,
            flag="aspects of items, as rows of aspect and item, with a user where they differ by "
            "user",
            frame=lambda data, options, _: aspects_frame(data, options),
        ),
    ]
    features: Annotated[
        Any,
        SideTable(
            about="columns of ⟦items=⟧, or a frame indexed by item",
            hint="Features",
            kind="str, list of str, DataFrame, Series, mapping or callable",
            meaning="Columns of `items`, or a frame indexed by item. Columns hold numbers, lists "
            "of numbers,\n    categories, `A|B` strings or lists of categories. A callable "
            "takes two arrays of positions in `items` and returns\n    the similarities of "
            "these pairs.",
            check=checked_features,
            codes=features_codes,
            flag="what items are compared by: a file with a row per item, or columns of --items",
            usage="FILE or COLUMN ...",
            frame=_features,
        ),
    ]
    base: Annotated[
        Any,
        SideTable(
            about="the baseline's recommendations",
            hint="Rows",
            kind=ROWS_EXPECTED,
            meaning="The baseline's recommendations, in the columns of `pred`.",
            check=checked_lists,
            codes=base_codes,
            flag="recommendations of a baseline, in the columns of --pred",
        ),
    ]
    popular: Annotated[
        Any,
        SideTable(
            about="items that everybody knows",
            hint="Ids",
            kind="list, Series, Index or DataFrame",
            meaning="Items that everybody knows.",
            check=checked_ids,
            codes=marked_codes,
            flag="items that everybody knows: one row per item",
            frame=_ids,
        ),
    ]
    exclude: Annotated[
        Any,
        SideTable(
            about="rows of user and item to leave out",
            hint="Rows",
            kind=ROWS_EXPECTED,
            meaning="Rows of (user, item), such as what users had before, with those columns of "
            "the list key that it has.\n"
            "    The rows of `pred` and `true` with such a pair are left out before lists are "
            "ranked, as if they were not\n"
            '    given. `spec["counts"]` has their numbers.',
            check=checked_pairs,
            codes=marked_codes,
            flag="rows of user and item to leave out of --true and --pred, such as what users had "
            "before",
        ),
    ]


SIDE_TABLES: dict[str, SideTable] = {
    name: replace(annotated.__metadata__[0], name=name)
    for name, annotated in get_type_hints(SideTableArguments, include_extras=True).items()
}

# What each side table is, for messages; and what makes its codes.
SIDES = {name: one.argument for name, one in SIDE_TABLES.items()}
CODERS = {name: (one.codes, one.argument) for name, one in SIDE_TABLES.items()}


def as_frames(given: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """Return the same tables in a form that can be read more than once."""
    return {name: SIDE_TABLES[name].frame(data, options, name) for name, data in given.items()}


def read_sides(given: Mapping[str, Any], options: Options) -> CheckedSides:
    """Check the columns and ids of the side tables that were given."""
    checked = CheckedSides()
    for name, one in SIDE_TABLES.items():
        if name in given:
            checked[name] = one.check(name, given[name], options, checked)
    return checked

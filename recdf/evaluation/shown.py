"""What others see of a result: its display in a notebook and a terminal, with one row per model and
metric and one column per k, and its tables for Arrow, polars and DuckDB.

Contract: the display is a rounded excerpt of the summary; `result.summary` holds every number.
"""

from __future__ import annotations

import importlib
import json
import shutil
from collections.abc import Mapping
from typing import Any, Literal

import pandas as pd
import pyarrow as pa
from pandas import DataFrame

from ..errors import MissingExtraError, OptionError
from ..inputs.constraints import check_value
from ..judge.per_user_columns import unit_of
from ..tables.cells import (
    NULL,
    Align,
    Cell,
    amount,
    brief,
    columns_before,
    html_text,
    plus_minus,
    to_html,
    to_text,
    visible,
)
from .storage import frame_to_arrow
from .value_moments import SUMMARY, groups_of

MOST_ROWS = 30
MOST_K = 6
NO_INTERVAL = (
    "Where all lists have the same value there is no ±: that tells nothing of how the mean would "
    "vary."
)
EXCLUDED = (
    "exclude= ({exclude_rows:,} rows) left out {pred_excluded:,} rows of pred and "
    "{true_excluded:,} of true."
)
MOST_COLUMNS = 8  # of the first rows of per_user


def result_text(title: str, summary: DataFrame, spec: Mapping[str, Any]) -> str:
    """Return the text of a result for a terminal: intervals only where the window has room for
    them."""
    head, cells, align, notes = _look(summary, spec)
    text = to_text(head, cells, align)
    if max(map(len, text.splitlines())) > shutil.get_terminal_size((120, 24)).columns:
        cells = [[cell._replace(small="") for cell in row] for row in cells]
        text = to_text(head, cells, align)
    return "\n".join([visible(title), text, *map(visible, notes)])


def result_html(
    title: str, summary: DataFrame, first_rows: DataFrame | None, spec: Mapping[str, Any]
) -> str:
    """Return the HTML of a result for a notebook, with the first rows of `per_user` where they are
    at hand."""
    head, cells, align, notes = _look(summary, spec)
    parts = [f"<p>{html_text(title)}</p>", to_html(head, cells, align)]
    parts += [f"<p><small>{html_text(text)}</small></p>" for text in notes]
    if first_rows is not None:
        shown = first_rows.iloc[:, :MOST_COLUMNS]
        more = len(first_rows.columns) - len(shown.columns)
        rows = [[Cell(brief(value) or NULL) for value in row] for row in shown.itertuples(False)]
        numeric = map(pd.api.types.is_numeric_dtype, shown.dtypes)
        sides: list[Align] = ["right" if one else "left" for one in numeric]
        beyond = f" and {amount(more, 'more column')}" if more > 0 else ""
        parts.append(f"<p>per_user, first rows{beyond}</p>")
        parts.append(to_html(list(map(str, shown.columns)), rows, sides))
    return "".join(parts)


def _look(
    summary: DataFrame, spec: Mapping[str, Any]
) -> tuple[list[str], list[list[Cell]], list[Align], list[str]]:
    """Arrange the first models and metrics as rows, with one column per k: the head, the cells,
    their alignment, and what a reader must know beside the table."""
    if not set(SUMMARY) <= set(summary.columns) or not len(summary):
        names = list(map(str, summary.columns))
        return names, [], ["left"] * len(names), ["the summary is empty"]
    keys = [*map(str, columns_before(summary, "metric")), "metric"]
    place = groups_of(summary, keys)[0]
    shown = summary[place < MOST_ROWS]
    all_k = [None if pd.isna(k) else int(k) for k in summary["k"].unique()]
    k_shown = all_k[:MOST_K]
    body = []
    for _, part in shown.groupby(place[place < MOST_ROWS], sort=False):
        cells = {}
        for row in part.to_dict("records"):
            half = (row["ci_high"] - row["ci_low"]) / 2
            beside = shown.loc[shown["metric"] == row["metric"], "value"]
            text, small = plus_minus(row["value"], half, beside)
            cells[None if pd.isna(row["k"]) else row["k"]] = Cell(text, small=small)
        labels = part[keys].iloc[0].tolist()
        least = f"{int(part['n'].min()):,}"
        most = f"{int(part['n'].max()):,}"
        body.append(
            [
                *(Cell(NULL if pd.isna(value) else str(value)) for value in labels),
                *(cells.get(k, Cell("")) for k in k_shown),
                Cell(least if least == most else f"{least} to {most}"),
            ]
        )
    head = [*keys, *("value" if k is None else f"@{k}" for k in k_shown), "n"]
    align: list[Align] = ["left"] * len(keys)
    align += ["right"] * (len(k_shown) + 1)
    rows_left = int(place.max()) + 1 - len(body)
    k_left = len(all_k) - len(k_shown)
    notes = []
    more = [amount(rows_left, "more row")] if rows_left else []
    more += [f"{k_left:,} more k"] if k_left else []
    if more:
        notes.append(f"... {' and '.join(more)}; .summary has all {amount(len(summary), 'row')}")
    of_list = [*spec["user_col"], *spec.get("carry", {})]
    if len(spec["user_col"]) > 1 or "user_id" in spec.get("carry", {}):
        unit = unit_of(of_list)[0]
        notes.append(
            f"± takes the lists of one {unit} for independent; rd.summarize(result, "
            f"unit_col={unit!r}) does not."
        )
    if "exclude_rows" in spec["counts"]:
        notes.append(EXCLUDED.format_map(spec["counts"]))
    if ((shown["std"] == 0) & shown["ci_low"].isna()).any():
        notes.append(NO_INTERVAL)
    return head, body, align, notes


Which = Literal["per_user", "summary"]


class HandedOver:
    """What hands over `per_user` and `summary`, with their dtypes and the spec."""

    def to_arrow(self: Any, which: Which = "per_user") -> pa.Table:
        """Return one of the two tables as a table of Arrow, with the spec in the metadata of its
        schema.

        Parameters
        ----------
        which : {"per_user", "summary"}, default "per_user"
            The table.

        Returns
        -------
        pyarrow.Table
            `to_pandas` gives the dtypes back. The spec is JSON at `schema.metadata[b"recdf"]`.

        Raises
        ------
        DataError
            If Arrow cannot hold the labels of a column as they are.

        Examples
        --------
        >>> import recdf as rd
        >>> result = rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1")
        >>> result.to_arrow("summary").column_names[:3]
        ['metric', 'k', 'value']
        """
        if which not in ("per_user", "summary"):
            raise OptionError(
                f"⟦which={which!r}⟧; valid are 'per_user' and 'summary'",
                argument="which",
                value=which,
            )
        return frame_to_arrow(getattr(self, which), self.spec)[0]

    def to_polars(self: Any, which: Which = "per_user") -> Any:
        """Return one of the two tables as a frame of polars.

        Parameters
        ----------
        which : {"per_user", "summary"}, default "per_user"
            The table.

        Returns
        -------
        polars.DataFrame
            An undefined value is NaN, as in pandas, and a missing label is null.

        Raises
        ------
        MissingExtraError
            If polars is not installed.
        DataError
            As `to_arrow`.

        Examples
        --------
        >>> import recdf as rd
        >>> result = rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1")
        >>> result.to_polars().columns
        ['user_id', 'n_true', 'n_pred', 'mrr@1']
        """
        return _handing_library("polars").from_arrow(self.to_arrow(which))

    def to_duckdb(self: Any, name: str, connection: Any = None, *, overwrite: bool = False) -> Any:
        """Write both tables into a database of DuckDB: `name` with a row per list, and
        `name_summary`.

        Parameters
        ----------
        name : str
            Name of the table as SQL writes it, also with that of its schema before a dot.
        connection : DuckDBPyConnection, optional
            Default: the connection that `duckdb.sql` uses.
        overwrite : bool, default False
            Replace tables of these names.

        Returns
        -------
        DuckDBPyRelation
            The table of lists. The spec is the comment of both tables, as JSON.

        Raises
        ------
        MissingExtraError
            If duckdb is not installed.
        duckdb.CatalogException
            If there is a table of such a name and `overwrite` is False. Both tables are written, or
            none.
        DataError
            As `to_arrow`.

        Examples
        --------
        >>> import duckdb, recdf as rd
        >>> result = rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1")
        >>> result.to_duckdb("nightly", overwrite=True).columns
        ['user_id', 'n_true', 'n_pred', 'mrr@1']
        >>> duckdb.sql("select metric, k, value from nightly_summary").fetchall()
        [('mrr', 1, 1.0)]
        """
        check_value("overwrite", overwrite, bool)
        database = _handing_library("duckdb") if connection is None else connection
        comment = json.dumps(self.spec).replace("'", "''")
        with database.cursor() as own:  # the caller's connection may be inside a transaction
            own.begin()
            for to, table in (
                (name, self.to_arrow()),
                (f"{name}_summary", self.to_arrow("summary")),
            ):
                own.register("recdf_rows", table)
                own.execute(f"create {'or replace ' * overwrite}table {to} as from recdf_rows")
                own.execute(f"comment on table {to} is '{comment}'")
            own.commit()
        return database.table(name)


def _handing_library(name: str) -> Any:
    """Import a library that recdf does not need otherwise."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"to_{name} needs {name}, which is not installed: pip install {name}"
        ) from error

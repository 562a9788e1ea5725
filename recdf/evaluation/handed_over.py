"""The tables of a result for other libraries: Arrow, polars and DuckDB."""

from __future__ import annotations

import importlib
import json
from typing import Any, Literal

import pyarrow as pa

from ..errors import MissingExtraError, OptionError
from .storage import frame_to_arrow

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

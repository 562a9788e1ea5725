"""`evaluate_parquet`: files larger than memory, evaluated part by part; the result is that of `evaluate`.

Contract: a first pass over both frames checks every row and distributes the rows to parts by a hash of their list key.
Each part is matched and measured alone. Moments and counts are added, and the rows of all parts are merged into the
order that the whole would have. Only one part, one batch of rows and one block of results are in memory at a time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from ..errors import ColumnError, EmptyPopulationError, IdTypeError, OptionError
from ..evaluation.carry import Carry, carry_rules
from ..evaluation.finish import checked, finish_summary
from ..evaluation.item_groups import check_item_by
from ..evaluation.part import ListRows, Part, PartResult, measure
from ..evaluation.publishing import staged, staging_folder
from ..evaluation.result import Evaluation, read_parquet
from ..evaluation.storage import Written, local_folder, write_files
from ..evaluation.summary import SUMMARY
from ..inputs.accepted import OptionArguments
from ..inputs.codes import check_kinds
from ..inputs.frames import column
from ..inputs.ids import read_ids
from ..inputs.options import as_columns, takes_options
from ..inputs.tables import order_source, read_users, relevance_source
from ..matching.lists import Matched
from ..matching.overlap import samples_of
from ..matching.side_tables.given import Given, as_frames, read_sides
from ..matching.side_tables.records import SIDES
from ..matching.values import RESPONSES
from ..metrics.call import Call
from ..metrics.metric import Metric
from ..metrics.per_user import label_frame
from ..metrics.strings import parse
from .carried import carried_frame, check_rule
from .overlap import compared
from .progress import Progress
from .results import NEVER, PLACE, Results, StoredEvaluation, first_rows
from .row_checks import HEAD, RowCheck
from .source import Source, Store, as_frame, common_type, given_ids, labels_as, memory_bytes, part_of

__all__ = ["evaluate_parquet"]

# A part may take this share of the limit, if its evaluation needs so many times its size. The rest of the limit is for
# reading and for the libraries.
PART_SHARE, WORKING_COPIES = 0.4, 6
BATCH_SHARE = 0.02
MAX_PARTS = 4096
ROW = "__row__"  # column with the number of a row in its files; the lists are ordered by it


@takes_options
def evaluate_parquet(
    true_path: Any,
    pred_path: Any,
    metrics: str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric],
    k: int | Sequence[int] = 10,
    *,
    out: Any = None,
    items: Any = None,
    log: Any = None,
    aspects: Any = None,
    features: Any = None,
    base: Any = None,
    popular: Any = None,
    item_by: str | None = None,
    carry: Carry = None,
    memory_limit: int | str | None = None,
    buckets: int | None = None,
    progress: bool | None = None,
    overwrite: bool = False,
    **options: Unpack[OptionArguments],
) -> Evaluation:
    """Evaluate parquet files that may be larger than memory; the tables are those of `evaluate` for the whole frames.

    The files are read once, in batches. Where they do not fit into memory, their rows are distributed by list key to
    buckets in a temporary folder, and one bucket after another is evaluated. The folder is inside `out`, or else where
    `tempfile` puts it, and is about as large as the columns would be in memory. It is removed at the end, also after an
    error or Ctrl-C.

    Parameters
    ----------
    true_path, pred_path : path, or list of paths
        Parquet files of `true` and `pred`: a file, a folder, or a glob such as "pred/*.parquet". Columns in the names
        of folders (`model=als/`) are read too. The files of a folder or a glob are read in the order of their names.
    metrics : str, Metric, list of them, or mapping of own names to them
        As for `evaluate`. A metric of your own must compute the value of a list from that list only. A metric of
        exposure must read only sums over lists, such as `Counts.shown` (anything that `summed` of `rd.Counts` returns).
    k : int or list of int, default 10
        Cut-offs of the metrics whose string has none.
    out : path, optional
        Folder for `per_user.parquet` and `summary.parquet`, as `Evaluation.to_parquet` writes them. They appear
        when both are complete. Without it, the per-user table must fit in memory.
    items, log, aspects, features, base, popular : optional
        Side tables, as for `evaluate`. They must fit in memory in addition to `memory_limit`, and are read once per
        bucket.
    item_by : str, optional
        Column of `items`: the summary then also holds each accuracy metric within each group of items, as for
        `evaluate`.
    carry : str, list of str or mapping, optional
        Columns of `pred` that come along into `per_user`, constant within a list or reduced, as for `evaluate`.
    memory_limit : int or str, optional
        Memory to use: bytes, or text such as "1GB" or "512MiB"; by default a quarter of the machine's. The lists of
        one bucket must fit, so a single list that does not is an error. Metrics of exposure need memory in addition,
        for some numbers per item, `by` value and k.
    buckets : int, optional
        Number of buckets. By default as many as `memory_limit` requires; if everything fits it is 1, and no temporary
        files are written.
    progress : bool, optional
        Show the progress on stderr: with tqdm if that is installed, else in plain lines. By default only on a terminal.
    overwrite : bool, default False
        Replace a result that `out` already holds.
    {options}

    Returns
    -------
    Evaluation
        What `evaluate` returns for the frames that `pandas.read_parquet` reads from the same files, row for row and up
        to rounding (1e-12). With `out`, `.per_user` stays in its file until it is used.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError, UndefinedMetricError
        As in `evaluate`. Null ids, scores and relevances are counted over all rows. Other errors say so if they counted
        only the rows of one bucket.
    FileNotFoundError
        If a path matches no file.
    FileExistsError
        If `out` holds a result and `overwrite` is False.

    Examples
    --------
    >>> import pathlib, tempfile, recdf as rd
    >>> shop = rd.sample_shop()
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     shop.true.to_parquet(folder / "true.parquet")
    ...     shop.pred.to_parquet(folder / "pred.parquet")
    ...     result = rd.evaluate_parquet(
    ...         folder / "true.parquet", folder / "pred.parquet", "ndcg@10", by="model", out=folder / "result"
    ...     )
    ...     stored = rd.read_parquet(folder / "result")
    >>> stored == rd.evaluate(shop.true, shop.pred, "ndcg@10", by="model")
    True
    """
    given = Given(items=items, log=log, aspects=aspects, features=features, base=base, popular=popular)
    call = Call.of("evaluate_parquet", options, given)
    if item_by is not None and items is None:
        raise OptionError(f"item_by={item_by!r} needs {SIDES['items']}")
    call = call.asking(parse(metrics, k, call.options), true_path, item_by)
    call = replace(call, carry=carry_rules(carry, call.options, call.columns))
    limit = memory_bytes(memory_limit)
    if buckets is not None and (isinstance(buckets, bool) or not isinstance(buckets, int) or buckets < 1):
        raise OptionError(f"buckets={buckets!r}; expected a positive integer or None")
    with ExitStack() as stack:
        if out is None:
            staging = stack.enter_context(staging_folder(Path(tempfile.gettempdir())))
        else:
            folder = local_folder(out)
            staging = stack.enter_context(staged(folder, overwrite=overwrite))
        call = replace(call, given=as_frames(given, call.options))  # since every part reads them
        files = _Files(Source(true_path, "true"), Source(pred_path, "pred"), call)
        files.deal(staging, limit, buckets, stack, progress)
        summary, spec, written = files.measure(staging, stack)
        if out is None:
            return read_parquet(staging)
    return StoredEvaluation(summary, spec, folder=folder, written=written)


class _Files:
    """The files of one call: first their checked columns, then their rows by part, then the results."""

    def __init__(self, true: Source, pred: Source, call: Call) -> None:
        self.sources = {"true": true, "pred": pred}
        self.call = call
        self.requests, self.options, self.sides = call.requests, call.options, call.given
        options, sides = call.options, call.given
        self.user_cols, self.by = as_columns(options.user_col), as_columns(options.by)
        empty = {role: as_frame(source.schema.empty_table()) for role, source in self.sources.items()}
        with suppress(EmptyPopulationError):  # raises errors that need no rows
            call.match(empty["true"], empty["pred"])
        doors = read_sides(sides, options)
        if call.item_by is not None and doors.catalogue is not None:
            check_item_by(call.item_by, self.by, doors.catalogue[0])  # before any row is read
        self.order = order_source(empty["pred"], options)
        self.columns = call.columns
        taken = [name for name in call.result_columns if name in (*self.by, *self.user_cols)]
        if taken:
            raise ColumnError(f"the key or by column {taken[0]!r} has the name of a result column; rename it")
        taken = [name for name in (*self.by, *self.user_cols, options.item_col) if name in (ROW, PLACE)]
        if taken:
            raise ColumnError(f"{taken[0]!r} names a column that evaluate_parquet adds to the rows; rename it")
        taken = [name for name in self.by if name in SUMMARY]
        if taken:
            raise ColumnError(f"the by column {taken[0]!r} has the name of a column of the summary; rename it")
        self.population = options.population
        given = self.population.given
        self.given = None if given is None else read_users(given, self.user_cols)[0]
        keys = [*self.user_cols, options.item_col]
        self.relevance = relevance_source(empty["true"], options)
        answered = any(request.metric.family == "responses" for request in self.requests)
        answers = [name for name in RESPONSES if answered and name in empty["true"].columns]
        for name, rule in call.carry.items():
            column(empty["pred"], name, "pred")
            check_rule(pred, name, rule)
        self.some_without_pred = False
        weights = [options.weight_name] if options.weight_source == "true" else []
        names = {
            "true": [*keys, self.relevance, options.propensity_col, *weights, *answers],
            "pred": [*self.by, *keys, self.order["column"], *call.carry],
        }
        if options.value_col is not None:
            of_items = doors.catalogue is not None and options.value_col in doors.catalogue[0].columns
            for role, frame in reversed(empty.items()):
                if not of_items:
                    column(frame, options.value_col, role)  # raises an error that names the columns there are
                if options.value_col in frame.columns:
                    names[role].append(options.value_col)
        # One part may have lists of only one frame, with the types of its keys, while another part has lists of both.
        of_keys = [role for role in ("true", "pred") if self.given is not None or role in self.population.frames]
        self.key_types = {
            name: common_type([self.sources[role].schema.field(name).type for role in of_keys])
            for name in self.user_cols
        }
        self.item_types = {role: source.schema.field(options.item_col).type for role, source in self.sources.items()}
        self.names = {role: list(dict.fromkeys(filter(None, listed))) for role, listed in names.items()}

    # -------------------------------------------------------------------------------------- first pass

    def deal(self, folder: Path, limit: int, buckets: int | None, stack: ExitStack, progress: bool | None) -> None:
        """Read both frames once, check their rows, and distribute them to parts."""
        row_bytes = {role: self._row_bytes(role) for role in self.sources}
        if buckets is None:
            n_bytes = sum(source.n_rows * row_bytes[role] for role, source in self.sources.items())
            buckets = min(int(n_bytes * WORKING_COPIES / (limit * PART_SHARE)) + 1, MAX_PARTS)
        self.n_parts = buckets
        self.progress = stack.enter_context(
            Progress(2 * sum(source.n_rows for source in self.sources.values()), progress)
        )
        self.checks, self.stores = {}, {}
        for role, source in self.sources.items():
            fields = source.fields(self.names[role])
            check = RowCheck(role, fields.empty_table(), self.options, self.order)
            if role in self.population.frames:
                fields = fields.append(pa.field(ROW, pa.int64()))
            store = stack.enter_context(closing(Store(folder / f"{role}.arrow", buckets, fields)))
            at_a_time = int(min(max(limit * BATCH_SHARE / row_bytes[role], 2**10), 2**20))
            first = 0
            for table in source.batches(self.names[role], at_a_time):
                rows = np.arange(first, first + len(table))
                kept = check.kept(table.append_column(ROW, pa.array(rows)))
                if not check.failed:
                    store.add(kept, part_of([kept[name] for name in self.user_cols], buckets))
                first += len(table)
                self.progress.add(len(table))
            check.finish(first)
            self.checks[role], self.stores[role] = check, store
        self._check_kinds()
        largest = int((self.stores["true"].n_bytes + self.stores["pred"].n_bytes).max())
        if largest > limit:
            raise OptionError(
                f"memory_limit={limit:,}: one of {buckets:,} buckets of lists has {largest:,} bytes; pass more "
                "memory, or, if no single list is that long, more buckets"
            )

    def _row_bytes(self, role: str) -> float:
        """Estimate the bytes of a row in memory from the first rows of the files; the result is never 0."""
        some = next(self.sources[role].batches(self.names[role], 1), None)
        return 8 + (some.nbytes / len(some) if some is not None and len(some) else 0)

    def _check_kinds(self) -> None:
        heads = {role: as_frame(check.head) for role, check in self.checks.items()}
        for name in (*self.user_cols, self.options.item_col):
            try:
                ids = [read_ids(frame[name], f"{role}[{name!r}]") for role, frame in heads.items()]
            except IdTypeError as error:
                if all(len(frame) == self.sources[role].n_rows for role, frame in heads.items()):
                    raise
                raise IdTypeError(f"{error} (found in the first {HEAD} rows; counts are of those)") from error
            check_kinds(ids)

    # ------------------------------------------------------------------------------------- second pass

    def measure(self, folder: Path, stack: ExitStack) -> tuple[pd.DataFrame, dict[str, Any], Written]:
        """Evaluate part by part and write both tables."""
        by = pd.DataFrame(index=range(1))
        if self.by:
            by = self.sources["pred"].as_pandas(self.checks["pred"].by_values)
        by.columns = pd.Index(map(str, by.columns), dtype=object if not len(by.columns) else None)
        self.given_part = np.empty(0, np.uint16)
        if self.given is not None:
            ids = [given_ids(self.given[name]) for name in self.user_cols]
            self.given_part = part_of(ids, self.n_parts)
        self.span = sum(source.n_rows for source in self.sources.values()) + len(self.given_part) + 1
        results = Results(folder / "results.arrow")
        stack.enter_context(closing(results))
        total = self._measure_all(results)
        measured = checked(total)
        overlap = compared(measured.overlap, self.user_cols, self.options.item_col, self._all_tables, self._match)
        measured = replace(
            measured,
            by=by,
            order=self.order,
            relevance_col=self.relevance,
            counts={**self.checks["true"].counts, **self.checks["pred"].counts, **measured.counts},
            overlap=replace(overlap, samples=self._samples()),
        )
        summary, spec = finish_summary(self.call, replace(total, measured=measured))
        plain = cast(dict[str, Any], spec)
        written = write_files(folder, self._blocks(results, by), summary, plain)
        summary.attrs["recdf"] = plain
        return summary, plain, written

    def _measure_all(self, results: Results) -> PartResult:
        """Add the results of all parts and write their rows to `results`; stop at the first part that fails."""
        by_part = None
        for number, tables in enumerate(self._all_tables()):
            found = measure(self._call(number), self._part(number, tables))
            for rows in found.rows.values():
                if len(rows):
                    results.add(self._placed(number, tables, rows))
            by_part = found.without_rows() if by_part is None else by_part + found.without_rows()
            if found.failure is not None:
                everywhere = frozenset(range(self.n_parts))  # so that the message names the number of buckets
                return PartResult(everywhere, failure=found.failure)
            self.progress.add(sum(map(len, tables.values())))
            del tables, found
            pa.default_memory_pool().release_unused()
        assert by_part is not None
        return by_part

    def _call(self, number: int) -> Call:
        """Return the call for one part: with the given users that are in it, and with the largest gain of all parts."""
        call = self.call.knowing(max_gain=self.checks["true"].max_gain)
        if self.given is None:
            return call
        return replace(call, options=self.options.updated(users=self.given.iloc[self.given_part == number]))

    def _part(self, number: int, tables: dict[str, pa.Table]) -> Part:
        by_values = as_frame(self.checks["pred"].by_values) if self.by else None
        frames = {role: as_frame(table) for role, table in tables.items()}
        return Part(frames["true"], frames["pred"], frozenset({number}), whole=False, by_values=by_values)

    def _samples(self) -> dict[str, str]:
        """Return two ids of each frame, from its first rows."""
        samples: dict[str, str] = {}
        for role, check in self.checks.items():
            frame = as_frame(check.head)
            names = [*self.user_cols, self.options.item_col]
            *keys, item = (read_ids(frame[name], f"{role}[{name!r}]") for name in names)
            samples |= samples_of(role, keys, item)
        return samples

    def _all_tables(self) -> Iterator[dict[str, pa.Table]]:
        """Yield the rows of both frames, part by part."""
        for number in range(self.n_parts):
            yield {role: store.read(number) for role, store in self.stores.items()}

    def _match(self, number: int, tables: dict[str, pa.Table]) -> Matched:
        part = self._part(number, tables)
        return self._call(number).match_part(part.true, part.pred, part.by_values, part.whole)

    def _placed(self, number: int, tables: dict[str, pa.Table], rows: ListRows) -> pa.Table:
        """Return the results of one part's lists, with their places in the whole."""
        first = self._first_seen(rows, tables, np.flatnonzero(self.given_part == number))
        columns: dict[str, Any] = {PLACE: rows.list_by * self.span + first}
        if self.given is None:
            for name in self.user_cols:
                columns[name] = labels_as(pa.array(rows.keys[name].array), self.key_types[name])
        kinds = self.sources["pred"].schema
        for name, series in rows.carried.items():
            columns[name] = labels_as(pa.array(series.array, from_pandas=True), kinds.field(name).type)
        self.some_without_pred |= bool((rows.columns["n_pred"] == 0).any())
        return pa.table({**columns, **rows.columns})

    def _first_seen(self, rows: ListRows, tables: dict[str, pa.Table], given: np.ndarray) -> np.ndarray:
        """Return the row of each list's first appearance: a number below `span`, which orders lists over all parts."""
        labels = label_frame(rows)
        frames = {role: as_frame(table) for role, table in tables.items()}
        if self.given is not None:
            return first_rows(labels, self.given.iloc[given], given, self.user_cols)
        if self.population.frames == ("true",):
            return first_rows(labels, frames["true"], frames["true"][ROW], self.user_cols)
        of_list = first_rows(labels, frames["pred"], frames["pred"][ROW], [*self.by, *self.user_cols])
        if self.population.frames == ("pred",):
            return of_list
        in_true = first_rows(labels, frames["true"], frames["true"][ROW], self.user_cols)
        return np.where(in_true < NEVER, in_true, self.sources["true"].n_rows + of_list)

    # ----------------------------------------------------------------------------------------- results

    def _blocks(self, results: Results, by: pd.DataFrame) -> Iterator[pd.DataFrame]:
        """Yield the rows of `per_user` in their order."""
        for block in results.blocks():
            labels = [by.take(block[PLACE].to_numpy() // self.span).reset_index(drop=True), self._key_frame(block)]
            numbers = block.select(self.call.result_columns).to_pandas()
            labels = labels if self.by else labels[1:]
            of_pred = block.select(list(self.call.carry))
            carried = carried_frame(self.sources["pred"], of_pred, self.some_without_pred)
            yield pd.concat([*labels, carried, numbers], axis=1)

    def _key_frame(self, block: pa.Table) -> pd.DataFrame:
        """Return the key columns of some results, in the dtypes of the whole frame that the population is from."""
        if self.given is not None:
            return self.given[self.user_cols].take(block[PLACE].to_numpy() % self.span).reset_index(drop=True)
        keys = block.select(self.user_cols)
        roles = self.population.frames
        if len(roles) == 1:
            return self.sources[roles[0]].as_pandas(keys)
        sources = [(self.sources[role], self.checks[role].head) for role in roles]
        likes = [source.as_pandas(head.select(self.user_cols)) for source, head in sources]
        likes = [like for like in likes if len(like)] or likes[:1]  # `key_frame` also leaves out empty frames
        frame: pd.DataFrame = keys.to_pandas()
        return frame.astype(pd.concat(likes).dtypes.to_dict())

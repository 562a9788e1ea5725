"""`evaluate_parquet`: files larger than memory, evaluated part by part; the answer is that of `evaluate`.

Contract: a first pass over both frames checks every row and deals the rows to parts by a hash of their list key; each
part is matched and measured alone; moments and counts add up, and the rows of all parts are merged into the order of
the whole. Only one part, one batch of rows and one block of results are in memory at a time.
"""

from __future__ import annotations

import tempfile
import uuid
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from .errors import ColumnError, EmptyPopulationError, OptionError, RecdfError, RecdfWarning
from .evaluate import Evaluation, spec_of
from .frames import column, order_source, read_catalogue, read_users
from .ids import check_kinds, encode, encode_keys, read_ids
from .keys import at_heads, run_heads
from .match import match, no_lists, warn_duplicates, warn_no_overlap
from .metric import Metric, Request, check_needs, compute, label_frame
from .metric_strings import parse
from .moments import Moments
from .options import NAMES, Options, as_columns, check_names, takes_options
from .parts import Source, Store, as_frame, memory_bytes, part_of
from .progress import Progress
from .results import PLACE, Results, StoredEvaluation
from .rows import RowCheck
from .sides import Given
from .storage import read_parquet, staged, to_arrow
from .summary import SUMMARY, mean_table

__all__ = ["evaluate_parquet"]

# A part may take this share of the limit, at this many times its size; the rest is for reading and for the libraries.
PART_SHARE, WORKING_COPIES = 0.4, 6
BATCH_SHARE = 0.02
MAX_PARTS = 4096
ROW = "__row__"  # number of a row in its files, carried where lists appear in its order
NEVER = np.iinfo(np.int64).max


@takes_options
def evaluate_parquet(
    true_path: Any,
    pred_path: Any,
    metrics: str | Metric | Sequence[str | Metric] | Mapping[str, str | Metric],
    k: int | Sequence[int] = 10,
    *,
    out: Any = None,
    items: Any = None,
    memory_limit: int | str | None = None,
    buckets: int | None = None,
    progress: bool | None = None,
    overwrite: bool = False,
    **options: Any,
) -> Evaluation:
    """Evaluate parquet files that may be larger than memory: the tables that `evaluate` gives for the whole frames.

    The files are read once, in batches; where they do not fit, their rows are dealt by list key to buckets in a
    temporary folder (inside `out`, else where `tempfile` puts it; about as large as the columns in memory), and one
    bucket after another is evaluated. The folder is removed at the end, also after an error or Ctrl-C.

    Parameters
    ----------
    true_path, pred_path : path, or list of paths
        Parquet files of `true` and `pred`: a file, a folder, or a glob such as "pred/*.parquet". Columns that stand
        in the names of folders (`model=als/`) are read too. Files have an order, by name in a folder or a glob.
    metrics : str, Metric, list of them, or mapping of own names to them
        As for `evaluate`. A metric of your own must compute each list from that list.
    k : int or list of int, default 10
        Cut-offs of the metrics that name none.
    out : path, optional
        Folder for `per_user.parquet` and `summary.parquet`, as `Evaluation.to_parquet` writes them. They appear
        when both are complete. Without it, the per-user table must fit in memory.
    items : DataFrame, list, Series or Index, optional
        Catalogue: one row per item that could have been shown. It must fit in memory.
    memory_limit : int or str, optional
        Memory to use: bytes, or text such as "1GB" or "512MiB"; by default a quarter of the machine's. The lists of
        one bucket must fit: a single list larger than that is an error.
    buckets : int, optional
        Number of buckets; by default as many as `memory_limit` asks for, 1 (and no temporary rows) if all fits.
    progress : bool, optional
        Show how far it has come on stderr: with tqdm if that is installed, else in plain lines. By default only
        on a terminal.
    overwrite : bool, default False
        Replace a result that `out` already holds.
    {options}

    Returns
    -------
    Evaluation
        As `evaluate` returns for the frames that `pandas.read_parquet` reads from the same files, to rounding (1e-12),
        row for row. With `out`, `.per_user` stays in its file until it is used.

    Raises
    ------
    ColumnError, IdTypeError, NullKeyError, DataError, OptionError, EmptyPopulationError, UndefinedMetricError
        As in `evaluate`. Counts of null ids, scores and relevances are of all rows; other errors say so if they
        have counted in one bucket alone.
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
    check_names(list(options), NAMES, "evaluate_parquet")
    shared = Options.of(options)
    requests = parse(metrics, k, shared)
    check_needs(requests, shared, Given(items=items), true_path)
    whole = [request.columns[0] for request in requests if request.metric.per == "item"]
    if whole:
        raise OptionError(f"{whole[0]} counts items over all lists at once, which parts cannot; use evaluate")
    limit = memory_bytes(memory_limit)
    if buckets is not None and (isinstance(buckets, bool) or not isinstance(buckets, int) or buckets < 1):
        raise OptionError(f"buckets={buckets!r}; expected a positive integer or None")
    with ExitStack() as stack:
        if out is None:
            staging = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="recdf-")))
        else:
            staging = stack.enter_context(staged(out, overwrite=overwrite))
        call = _Call(Source(true_path, "true"), Source(pred_path, "pred"), requests, shared, items)
        call.deal(staging, limit, buckets, stack, progress)
        summary, spec = call.measure(staging, stack)
        if out is None:
            return read_parquet(staging)
    return StoredEvaluation(Path(out), summary, spec)


class _Call:
    """One call: its columns and options, checked, then the rows by part, then the results."""

    def __init__(self, true: Source, pred: Source, requests: list[Request], options: Options, items: Any) -> None:
        self.sources = {"true": true, "pred": pred}
        self.requests, self.options, self.items = requests, options, items
        self.user_cols, self.by = as_columns(options.user_col), as_columns(options.by)
        empty = {role: as_frame(source.schema.empty_table()) for role, source in self.sources.items()}
        with suppress(EmptyPopulationError):  # raises what columns, types and options alone can tell
            match(empty["true"], empty["pred"], options, Given(items=items))
        self.order = order_source(empty["pred"], options)
        self.columns = [name for request in requests for name in request.columns]
        taken = [name for name in ("n_true", "n_pred", *self.columns) if name in (*self.by, *self.user_cols)]
        if taken:
            raise ColumnError(f"the key or by column {taken[0]!r} has the name of a result column; rename it")
        taken = [name for name in self.by if name in SUMMARY]
        if taken:
            raise ColumnError(f"the by column {taken[0]!r} has the name of a column of the summary; rename it")
        self.given = None if isinstance(options.users, str) else read_users(options.users, self.user_cols)[0]
        keys = [*self.user_cols, options.item_col]
        names = {"true": [*keys, options.relevance_col], "pred": [*self.by, *keys, self.order["column"]]}
        if options.value_col is not None:
            of_items = items is not None and options.value_col in read_catalogue(items, options.item_col)[0].columns
            for role, frame in reversed(empty.items()):
                if not of_items:
                    column(frame, options.value_col, role)  # says what there is
                if options.value_col in frame.columns:
                    names[role].append(options.value_col)
        self.names = {role: list(dict.fromkeys(filter(None, listed))) for role, listed in names.items()}

    # -------------------------------------------------------------------------------------- first pass

    def deal(self, folder: Path, limit: int, buckets: int | None, stack: ExitStack, progress: bool | None) -> None:
        """Read both frames once: check their rows and deal them to parts."""
        row_bytes = {role: self._row_bytes(role) for role in self.sources}
        if buckets is None:
            n_bytes = sum(source.n_rows * row_bytes[role] for role, source in self.sources.items())
            buckets = min(int(n_bytes * WORKING_COPIES / (limit * PART_SHARE)) + 1, MAX_PARTS)
        self.n_parts = buckets
        self.progress = stack.enter_context(
            Progress(2 * sum(source.n_rows for source in self.sources.values()), progress)
        )
        users = self.options.users if self.given is None else "given"
        self.checks, self.stores = {}, {}
        for role, source in self.sources.items():
            fields = source.fields(self.names[role])
            check = RowCheck(role, fields.empty_table(), self.options, self.order)
            if users in ("all", role) or (users, role) == ("both", "true"):
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
        """Bytes of a row in memory, by the first rows of the files; never 0."""
        some = next(self.sources[role].batches(self.names[role], 1), None)
        return 8 + (some.nbytes / len(some) if some is not None and len(some) else 0)

    def _check_kinds(self) -> None:
        heads = {role: as_frame(check.head) for role, check in self.checks.items()}
        for name in (*self.user_cols, self.options.item_col):
            check_kinds([read_ids(frame[name], f"{role}[{name!r}]") for role, frame in heads.items()])

    # ------------------------------------------------------------------------------------- second pass

    def measure(self, folder: Path, stack: ExitStack) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Evaluate part by part and write both tables."""
        self.counts = {**self.checks["true"].counts, **self.checks["pred"].counts}
        self.by_values = self.checks["pred"].by_values if self.by else None
        n_by = 1 if self.by_values is None else len(self.by_values)
        moments = Moments.of([np.empty(0)] * len(self.columns), np.empty(0, np.int64), n_by)
        self.n_pairs = 0
        given_part = np.empty(0, np.uint16)
        if self.given is not None:
            ids = [pa.array(self.given[name], from_pandas=True) for name in self.user_cols]
            given_part = part_of(ids, self.n_parts)
        self.span = sum(source.n_rows for source in self.sources.values()) + len(given_part) + 1
        results = Results(folder / "results.arrow")
        stack.enter_context(closing(results))
        for part in range(self.n_parts):
            tables = {role: store.read(part) for role, store in self.stores.items()}
            found = self._measure_part(tables, np.flatnonzero(given_part == part))
            if found is not None:
                results.add(found)
                values = [found[name].to_numpy() for name in self.columns]
                moments += Moments.of(values, found[PLACE].to_numpy() // self.span, n_by)
            self.progress.add(sum(map(len, tables.values())))
            del tables, found
            pa.default_memory_pool().release_unused()
        n_rows = {role: store.n_rows for role, store in self.stores.items()}
        if not results.n_rows:
            raise no_lists(n_rows["true"], n_rows["pred"], self.options)
        warn_duplicates(self.counts, self.options)
        if not self.n_pairs and all(n_rows.values()):
            self._warn_no_overlap()
        return self._write(folder, results, moments)

    def _measure_part(self, tables: dict[str, pa.Table], given: np.ndarray) -> pa.Table | None:
        """Results of one part's lists, with their places in the whole; None if it has no list."""
        frames = {role: as_frame(table) for role, table in tables.items()}
        options = self.options
        if self.given is not None:
            options = options.updated(users=self.given.iloc[given])
        by_values = None if self.by_values is None else as_frame(self.by_values)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RecdfWarning)  # given once, for all parts
            try:
                matched = match(frames["true"], frames["pred"], options, Given(items=self.items), by_values)
            except EmptyPopulationError:
                if len(frames["true"]):  # its repeated rows count, as those of all of `true` do
                    alone = options.updated(users="true", by=None)
                    self._count(match(frames["true"], frames["pred"].iloc[:0], alone, Given(items=self.items)).counts)
                return None
            except RecdfError as error:
                raise self._counted_here(error) from error
        self._count(matched.counts)
        self.n_pairs += len(matched.judged)
        columns: dict[str, Any] = {PLACE: matched.list_by * self.span + self._first_seen(matched, frames, given)}
        if self.given is None:
            columns.update((name, pa.array(matched.keys[name].array)) for name in self.user_cols)
        columns |= {"n_true": matched.n_true, "n_pred": matched.n_pred}
        try:
            for request in self.requests:
                columns.update(compute(matched, self._of_whole(request), options))
        except RecdfError as error:
            raise self._counted_here(error) from error
        return pa.table(columns)

    def _count(self, counts: Mapping[str, int]) -> None:
        for name, n in counts.items():
            self.counts[name] = self.counts.get(name, 0) + n

    def _counted_here(self, error: RecdfError) -> RecdfError:
        if self.n_parts == 1 or isinstance(error, OptionError | ColumnError):
            return error
        return type(error)(f"{error} (found in one of {self.n_parts:,} buckets of lists; counts are of that one)")

    def _of_whole(self, request: Request) -> Request:
        """The request with the one parameter whose default looks at all of `true`: the largest gain of `err`."""
        if request.params.get("max_gain", 0) is not None:
            return request
        return replace(request, params={**request.params, "max_gain": self.checks["true"].max_gain})

    def _first_seen(self, matched: Any, frames: dict[str, pd.DataFrame], given: np.ndarray) -> np.ndarray:
        """Number below `span` that orders the lists of a `by` value over all parts: their row of first appearance."""
        labels = label_frame(matched)
        if self.given is not None:
            return _first_rows(labels, self.given.iloc[given], given, self.user_cols)
        n_true, users = self.sources["true"].n_rows, self.options.users
        if users in ("true", "both"):
            return _first_rows(labels, frames["true"], frames["true"][ROW], self.user_cols)
        of_list = _first_rows(labels, frames["pred"], frames["pred"][ROW], [*self.by, *self.user_cols])
        if users == "pred":
            return of_list
        in_true = _first_rows(labels, frames["true"], frames["true"][ROW], self.user_cols)
        return np.where(in_true < NEVER, in_true, n_true + of_list)

    def _warn_no_overlap(self) -> None:
        """There is no hit: say so if no user, or no item, is in both frames."""
        heads = {role: as_frame(check.head) for role, check in self.checks.items()}
        items: dict[str, list[pa.Table]] = {"true": [], "pred": []}
        shared = False
        for part in range(self.n_parts):
            tables = {role: store.read(part) for role, store in self.stores.items()}
            ids = [[read_ids(as_frame(table)[name], name) for name in self.user_cols] for table in tables.values()]
            (mine, theirs), _ = encode_keys(ids)
            shared |= bool(np.isin(pd.unique(theirs.all()), pd.unique(mine.all())).any())
            for role, table in tables.items():
                unique = pa.table({"item": table[self.options.item_col].unique()})
                items[role] = [pa.concat_tables([*items[role], unique]).group_by("item").aggregate([])]
        codes = encode([read_ids(as_frame(found[0])["item"], "item") for found in items.values()]).codes
        for what, overlaps, name in (
            ("user", shared, self.user_cols[0]),
            ("item", bool(np.isin(codes[1], codes[0]).any()), self.options.item_col),
        ):
            if not overlaps:
                warn_no_overlap(what, *(read_ids(frame[name], f"{role}[{name!r}]") for role, frame in heads.items()))
                return

    # ----------------------------------------------------------------------------------------- results

    def _write(self, folder: Path, results: Results, moments: Moments) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Write both tables, `per_user` in blocks."""
        import pyarrow.parquet as pq  # costs time that importing recdf need not take

        spec = spec_of(self.requests, self.options, self.order, self.counts)
        by = pd.DataFrame(index=range(1))
        if self.by_values is not None:
            by = self.sources["pred"].as_pandas(self.by_values)
        by.columns = pd.Index(map(str, by.columns), dtype=object if not len(by.columns) else None)
        writer, result = None, uuid.uuid4().hex
        try:
            for block in results.blocks():
                labels = [by.take(block[PLACE].to_numpy() // self.span).reset_index(drop=True), self._key_frame(block)]
                numbers = block.select(["n_true", "n_pred", *self.columns]).to_pandas()
                frame = pd.concat([*labels, numbers] if self.by else [labels[1], numbers], axis=1)
                table = to_arrow(frame, spec, result)
                if writer is None:
                    writer = pq.ParquetWriter(folder / "per_user.parquet", table.schema)
                writer.write_table(table.cast(writer.schema))
        finally:
            if writer is not None:
                writer.close()
        there = np.flatnonzero(moments.rows)
        labels_there = by.take(there).reset_index(drop=True)
        summary = mean_table(labels_there, self.columns, moments.take(there), spec)
        summary.attrs["recdf"] = spec
        pq.write_table(to_arrow(summary, spec, result), folder / "summary.parquet")
        return summary, spec

    def _key_frame(self, block: pa.Table) -> pd.DataFrame:
        """Key columns of some results, in the dtypes that they have in the whole of the population's frame."""
        if self.given is not None:
            return self.given[self.user_cols].take(block[PLACE].to_numpy() % self.span).reset_index(drop=True)
        keys = block.select(self.user_cols)
        if self.options.users != "all":
            return self.sources["pred" if self.options.users == "pred" else "true"].as_pandas(keys)
        sources = [(self.sources[role], self.checks[role].head) for role in ("pred", "true")]
        likes = [source.as_pandas(head.select(self.user_cols)) for source, head in sources]
        return keys.to_pandas().astype(pd.concat(likes).dtypes.to_dict())


def _first_rows(labels: pd.DataFrame, frame: pd.DataFrame, row: Any, names: list[str]) -> np.ndarray:
    """First row of `frame` (of the numbers `row`) with the labels of each list, `NEVER` if there is none."""
    mine, theirs = ([read_ids(table[name], name) for name in names] for table in (labels, frame))
    heads = run_heads(theirs) if len(frame) else None
    numbers = np.asarray(row, np.int64) if heads is None else np.asarray(row, np.int64)[heads]
    (lists, rows), n_keys = encode_keys([mine, at_heads(theirs, heads)])
    first = np.full(n_keys, NEVER)
    first[rows.all()[::-1]] = numbers[::-1]  # the last assignment stays: the first row
    return first[lists.all()]

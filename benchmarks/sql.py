"""`recdf` beside SQL that an expert writes by hand for DuckDB and Polars, from frames in memory and
from parquet files.

    python benchmarks/workload.py M
    python benchmarks/sql.py --rounds 3                      # M, every layout, frames and files
    python benchmarks/sql.py --layouts int_shuffled --from files --write

Everyone computes six metrics at three k, per user and as means, on every core. One round starts a
fresh process for each contender in turn. *Cold* is the first call of a process: its library is
imported and the files are put out of the system's cache before the clock starts. *Warm* is the
median of the later calls. *Processor* is the time of all threads. The means of the values per user
and of their squares must be equal to 1e-12.

Before its first call, each process writes to `--touched` MB of memory and gives them back, so that
every contender finds the same memory. Without this, a cold call measures how fast a virtual machine
gets memory from its host: 2 MB took 0.4 ms where the guest had them, and 5.5 ms where the host had
to give them first.

`without dedup` trusts that no (user, item) stands twice. `recdf` always checks it, as well as nulls
and the kinds of ids, and says so; the first query of DuckDB and Polars drops repeated rows too,
which is the like of it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import mmap
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import workload

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

METRICS = ["precision", "recall", "ndcg", "mapr", "mrr", "hitrate"]
CUTS = {"S": [5, 10, 20], "M": [10, 20, 100]}
COLUMNS = {"true": ["user_id", "item_id"], "pred": ["user_id", "item_id", "score"]}
TOLERANCE = 1e-12
MARKER = "sql"

# -- the queries


def ideal_dcg(k: int) -> list[float]:
    """DCG of 1 to k relevant items at the top."""
    gains = [1 / math.log2(rank + 1) for rank in range(1, k + 1)]
    return list(itertools.accumulate(gains))


def per_user_sql(true: str, pred: str, ks: list[int], dedup: bool) -> str:
    """One query: rank, join the ranked rows to `true`, and aggregate the hits, of which there are
    few."""
    last = max(ks)
    sums, cells = [], []
    for k in ks:
        inside = f"FILTER (rank <= {k})"
        sums += [
            f"count(*) {inside} AS hits_{k}",
            f"sum(1 / log2(rank + 1)) {inside} AS dcg_{k}",
            f"sum(hit / rank) {inside} AS precisions_{k}",
            f"min(rank) {inside} AS first_{k}",
        ]
        cells += [
            f"coalesce(hits_{k}, 0) / {k} AS precision_{k}",
            f"coalesce(hits_{k}, 0) / n_true AS recall_{k}",
            f"coalesce(dcg_{k}, 0) / ({ideal_dcg(k)}::double[])[least({k}, n_true)] AS ndcg_{k}",
            f"coalesce(precisions_{k}, 0) / n_true AS mapr_{k}",
            f"coalesce(1 / first_{k}, 0) AS mrr_{k}",
            f"(coalesce(hits_{k}, 0) > 0)::double AS hitrate_{k}",
        ]
    once = f"SELECT user_id, item_id, max(score) AS score FROM {pred} GROUP BY user_id, item_id"
    relevant = f"SELECT DISTINCT user_id, item_id FROM {true}" if dedup else f"FROM {true}"
    return f"""
        WITH relevant AS ({relevant}),
        users AS (SELECT user_id, count(*) AS n_true FROM relevant GROUP BY user_id),
        recommended AS ({once if dedup else f"FROM {pred}"}),
        ranked AS (
            SELECT user_id, item_id,
                row_number() OVER (
                    PARTITION BY user_id ORDER BY score DESC, item_id DESC
                )::double AS rank
            FROM recommended QUALIFY rank <= {last}
        ),
        hits AS (
            SELECT user_id, rank, row_number() OVER (PARTITION BY user_id ORDER BY rank) AS hit
            FROM ranked JOIN relevant USING (user_id, item_id)
        ),
        summed AS (SELECT user_id, {", ".join(sums)} FROM hits GROUP BY user_id)
        SELECT user_id, {", ".join(cells)} FROM users LEFT JOIN summed USING (user_id)
    """


def with_duckdb(
    true: Any, pred: Any, ks: list[int], dedup: bool = True
) -> tuple[Any, dict[str, float]]:
    """`true` and `pred` are Arrow tables, which DuckDB reads as they are, or paths."""
    import duckdb

    with duckdb.connect() as database:
        names = []
        for name, given in (("true_rows", true), ("pred_rows", pred)):
            if isinstance(given, str):
                names.append(f"read_parquet('{given}')")
            else:
                database.register(name, given)
                names.append(name)
        database.execute("SET preserve_insertion_order = false")
        per_user = database.sql(per_user_sql(*names, ks, dedup)).to_arrow_table()
        means = (
            database.sql("SELECT avg(COLUMNS(* EXCLUDE user_id)) FROM per_user")
            .to_arrow_table()
            .to_pylist()[0]
        )
    return per_user, means


def with_polars(
    true: Any, pred: Any, ks: list[int], dedup: bool = True
) -> tuple[Any, dict[str, float]]:
    """`true` and `pred` are frames of Polars, or paths; the streaming engine runs the query."""
    import polars as pl

    true, pred = (
        pl.scan_parquet(given) if isinstance(given, str) else given.lazy() for given in (true, pred)
    )
    relevant, recommended = (
        frame.select(COLUMNS[side]) for side, frame in (("true", true), ("pred", pred))
    )
    if dedup:
        relevant = relevant.unique()
        recommended = recommended.group_by("user_id", "item_id").agg(pl.col("score").max())
    last = max(ks)
    users = relevant.group_by("user_id").agg(pl.len().cast(pl.Int64).alias("n_true"))
    hits = (
        recommended.sort("score", "item_id", descending=True)
        .with_columns(pl.int_range(1, pl.len() + 1).over("user_id").cast(pl.Float64).alias("rank"))
        .filter(pl.col("rank") <= last)
        .join(relevant, on=["user_id", "item_id"])
        .sort("rank")
        .with_columns(pl.int_range(1, pl.len() + 1).over("user_id").alias("hit"))
    )
    rank, n_true = pl.col("rank"), pl.col("n_true")
    sums, cells = [], []
    for k in ks:
        inside = rank <= k
        sums += [
            inside.sum().cast(pl.Float64).alias(f"hits_{k}"),
            pl.when(inside).then(1 / (rank + 1).log(2)).sum().alias(f"dcg_{k}"),
            pl.when(inside).then(pl.col("hit") / rank).sum().alias(f"precisions_{k}"),
            pl.when(inside).then(1 / rank).max().alias(f"first_{k}"),
        ]
        hits_of, dcg, precisions, first = (
            pl.col(f"{name}_{k}").fill_null(0.0) for name in ("hits", "dcg", "precisions", "first")
        )
        ideal = pl.lit(pl.Series(ideal_dcg(k)))
        cells += [
            (hits_of / k).alias(f"precision_{k}"),
            (hits_of / n_true).alias(f"recall_{k}"),
            (dcg / ideal.gather(pl.min_horizontal(n_true, pl.lit(k)) - 1)).alias(f"ndcg_{k}"),
            (precisions / n_true).alias(f"mapr_{k}"),
            first.alias(f"mrr_{k}"),
            (hits_of > 0).cast(pl.Float64).alias(f"hitrate_{k}"),
        ]
    query = users.join(hits.group_by("user_id").agg(sums), on="user_id", how="left").select(
        "user_id", *cells
    )
    per_user = query.collect(engine="streaming")
    means = per_user.select(pl.exclude("user_id").mean()).to_dicts()[0]
    return per_user, means


def with_recdf(true: Any, pred: Any, ks: list[int]) -> tuple[Any, dict[str, float]]:
    import recdf as rd

    call = rd.evaluate_parquet if isinstance(true, str) else rd.evaluate
    result = call(true, pred, METRICS, k=ks, score_col="score")
    summary = result.summary
    names = summary["metric"] + "_" + summary["k"].astype(str)
    return result.per_user, dict(zip(names, summary["value"], strict=True))


def with_one_thread(true: Any, pred: Any, ks: list[int]) -> tuple[Any, dict[str, float]]:
    from recdf.inputs.machine import limited

    with limited(1):
        return with_recdf(true, pred, ks)


CONTENDERS: dict[str, Callable[[Any, Any, list[int]], tuple[Any, dict[str, float]]]] = {
    "recdf": with_recdf,
    "recdf, one thread": with_one_thread,
    "DuckDB": with_duckdb,
    "DuckDB without dedup": lambda true, pred, ks: with_duckdb(true, pred, ks, dedup=False),
    "Polars": with_polars,
    "Polars without dedup": lambda true, pred, ks: with_polars(true, pred, ks, dedup=False),
}

# -- one process


def measure(
    contender: str, source: str, layout: str, size: str, repeat: int, touched: int
) -> dict[str, Any]:
    paths = [str(workload.cache_folder() / f"{size}_{layout}_{side}.parquet") for side in COLUMNS]
    given: list[Any] = list(paths)
    if source == "frames":
        given = [
            _frame(contender, path, names)
            for path, names in zip(paths, COLUMNS.values(), strict=True)
        ]
    else:
        for path in paths:
            _forget(path)
    _import(contender)
    touch(touched)
    seconds, processor = [], []
    for _ in range(repeat):
        start, start_of_processor = time.perf_counter(), time.process_time()
        per_user, means = CONTENDERS[contender](*given, CUTS[size])
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - start_of_processor)
    return {"seconds": seconds, "processor": processor, "means": means | _squares(per_user, means)}


def _squares(per_user: Any, means: dict[str, float]) -> dict[str, float]:
    """Mean of the squares of each column of values per user."""
    columns = {
        name.replace("@", "_"): name for name in getattr(per_user, "column_names", per_user.columns)
    }
    return {f"{name}²": float((np.asarray(per_user[columns[name]]) ** 2).mean()) for name in means}


def _frame(contender: str, path: str, names: list[str]) -> Any:
    """The frame in the form that is best for the contender."""
    if contender.startswith("Polars"):
        import polars as pl

        return pl.read_parquet(path, columns=names)
    if contender.startswith("DuckDB"):
        import pyarrow.parquet as pq

        return pq.read_table(path, columns=names)
    import pandas as pd

    return pd.read_parquet(path, columns=names)


def _import(contender: str) -> None:
    __import__({"D": "duckdb", "P": "polars", "r": "recdf"}[contender[0]])


def _forget(path: str) -> None:
    """Put a file out of the system's cache (Linux), so that the next read is from the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def touch(megabytes: int) -> None:
    """Write to every page of so much memory, in large pages, as numpy and Arrow ask for them."""
    memory = mmap.mmap(-1, max(megabytes, 1) << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    np.frombuffer(memory, np.uint8)[:: mmap.PAGESIZE] = 1


# -- rounds and tables


def run(source: str, layout: str, args: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """All contenders in turn, each in a process of its own."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in args.contenders}
    for number in range(args.rounds):
        for contender, answers in found.items():
            asked = [contender, source, layout, args.size, str(args.repeat), str(args.touched)]
            done = subprocess.run(
                [sys.executable, __file__, "worker", *asked], capture_output=True, text=True
            )
            if done.returncode:
                raise SystemExit(f"{contender}: {done.stderr.strip()[-2000:]}")
            answers.append(json.loads(done.stdout))
            shown = "  ".join(f"{seconds:.2f}" for seconds in answers[-1]["seconds"])
            print(
                f"{source} {layout} round {number + 1} {contender:22} {shown}",
                file=sys.stderr,
                flush=True,
            )
    return found


def steady(answers: list[dict[str, Any]], clock: str) -> float:
    return statistics.median(
        seconds for answer in answers for seconds in answer[clock][1:] or answer[clock]
    )


def table(source: str, layout: str, size: str, found: dict[str, list[dict[str, Any]]]) -> str:
    own = found["recdf"]
    cold, cold_processor = (
        {name: statistics.median(one[clock][0] for one in given) for name, given in found.items()}
        for clock in ("seconds", "processor")
    )
    lines = [
        f"### {size} {layout.replace('_', ' ')}, from {source}\n",
        "| | warm s | ratio | processor s | ratio | cold s | ratio | processor s | ratio | values "
        "|",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for name, given in found.items():
        warm, processor = steady(given, "seconds"), steady(given, "processor")
        lines.append(
            f"| {name} | {warm:.2f} | {warm / steady(own, 'seconds'):.1f} | {processor:.2f} | "
            f"{processor / steady(own, 'processor'):.1f} | {cold[name]:.2f} | "
            f"{cold[name] / cold['recdf']:.1f} | {cold_processor[name]:.2f} | "
            f"{cold_processor[name] / cold_processor['recdf']:.1f} | {_equality(own[0], given[0])} "
            "|"
        )
    return "\n".join(lines) + "\n"


def _equality(one: dict[str, Any], two: dict[str, Any]) -> str:
    largest = max(abs(one["means"][name] - value) for name, value in two["means"].items())
    return f"equal ({len(one['means'])})" if largest <= TOLERANCE else f"NOT EQUAL by {largest:.1g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=list(CUTS), default="M")
    parser.add_argument(
        "--layouts", nargs="+", choices=workload.LAYOUTS, default=list(workload.LAYOUTS)
    )
    parser.add_argument(
        "--from",
        dest="sources",
        nargs="+",
        choices=["frames", "files"],
        default=["frames", "files"],
    )
    parser.add_argument(
        "--contenders", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS)
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=3, help="calls in each process")
    parser.add_argument(
        "--touched", type=int, default=4000, help="MB of memory to write to before the first call"
    )
    parser.add_argument("--write", action="store_true", help="put the tables into the README")
    args = parser.parse_args()
    texts = []
    for source in args.sources:
        for layout in args.layouts:
            texts.append(table(source, layout, args.size, run(source, layout, args)))
            print(texts[-1], flush=True)
    if args.write:
        from run import setting, write

        write(MARKER, f"{setting(args.rounds, args.repeat)}\n\n" + "\n".join(texts))


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        print(json.dumps(measure(*sys.argv[2:6], *map(int, sys.argv[6:8]))))
    else:
        main()

"""Time per row from ten million to 300 million rows of `pred`: `evaluate`, `evaluate_parquet`,
Spark in local mode.

    python benchmarks/workload.py M 10M L 300M --layout int_shuffled  # 300M: 5 GB, half an hour
    python benchmarks/scale.py M 10M L                                # every engine
    python benchmarks/scale.py L --engines files --limit 1GB --rounds 2

Each call has a process of its own, and the fastest of `--rounds` counts: on a virtual machine,
memory that its host has to give first makes the same call up to four times as slow. `evaluate`
starts from frames in memory, and the other two from files. Memory is the largest sum of the
resident memory of the process and all its children (Java and its Python workers), sampled five
times a second, so pages that several processes share count more than once. *Processor* counts all
of them too. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import workload
from streaming import CUTS, METRICS, paths

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

FLAT = 1.5  # time per row may grow by so much from the first size

# -- engines: each returns a function that makes the summary, after what is not timed


def in_memory(true: str, pred: str, limit: str) -> Callable[[], Any]:
    import pandas as pd

    import recdf as rd

    frames = (
        pd.read_parquet(true, columns=["user_id", "item_id"]),
        pd.read_parquet(pred, columns=["user_id", "item_id", "score"]),
    )
    return lambda: rd.evaluate(*frames, METRICS, k=CUTS, score_col="score").summary


def from_files(true: str, pred: str, limit: str) -> Callable[[], Any]:
    import recdf as rd

    def call() -> Any:
        with tempfile.TemporaryDirectory() as out:
            result = rd.evaluate_parquet(
                true,
                pred,
                METRICS,
                k=CUTS,
                score_col="score",
                memory_limit=limit,
                out=f"{out}/result",
            )
            return result.summary

    return call


def from_spark(true: str, pred: str, limit: str) -> Callable[[], Any]:
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "6g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "64")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    from recdf import spark

    frames = session.read.parquet(true), session.read.parquet(pred)
    return lambda: spark.evaluate(*frames, METRICS, k=CUTS, score_col="score").summary


ENGINES = {"evaluate": in_memory, "files": from_files, "spark": from_spark}


def measure(engine: str, size: str, layout: str, limit: str) -> dict[str, Any]:
    """One call in this process."""
    true, pred = map(str, paths(size, layout))
    call = ENGINES[engine](true, pred, limit)
    found, stop = {"peak": 0.0, "before": tree_memory()}, threading.Event()
    watcher = threading.Thread(target=watch, args=(found, stop))
    watcher.start()
    start, start_of_processor = time.perf_counter(), tree_processor()
    summary = call()
    found |= {
        "seconds": time.perf_counter() - start,
        "processor": tree_processor() - start_of_processor,
    }
    stop.set()
    watcher.join()
    names = summary["metric"] + "_" + summary["k"].astype(str)
    return {**found, "means": dict(zip(names, map(float, summary["value"]), strict=True))}


def watch(found: dict[str, float], stop: threading.Event) -> None:
    """Note the largest memory of this process and its children."""
    while True:
        found["peak"] = max(found["peak"], tree_memory())
        if stop.wait(0.2):
            return


def tree() -> list[Path]:
    """Folders in /proc of this process and of all its children."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found, new = [], [os.getpid()]
    while new:
        found += new
        new = [child for parent in new for child in parents.get(parent, [])]
    return [Path("/proc", str(number)) for number in found]


def tree_memory() -> float:
    """Resident memory in MB."""
    pages = 0
    for folder in tree():
        try:
            pages += int((folder / "statm").read_text(encoding="utf-8").split()[1])
        except OSError:
            continue
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def tree_processor() -> float:
    """Seconds of processor time, of ended children too."""
    ticks = 0
    for folder in tree():
        try:
            ticks += sum(
                map(
                    int,
                    (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[11:15],
                )
            )
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def in_process(call: list[str]) -> dict[str, Any]:
    """What one process found."""
    done = subprocess.run(call, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(call[2:])}: {done.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# -- the command


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", default=["M"], choices=workload.SIZES)
    parser.add_argument("--layout", choices=workload.LAYOUTS, default="int_shuffled")
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--rounds", type=int, default=1, help="processes of each engine and size")
    parser.add_argument("--limit", default="1GB", help="memory_limit of evaluate_parquet")
    args = parser.parse_args()
    print(
        "| rows of pred | engine | seconds | ns a row | flat | processor s | ns a row | flat | MB "
        "before | peak MB |"
    )
    print("|--:|---|--:|--:|---|--:|--:|---|--:|--:|")
    first: dict[str, tuple[float, float]] = {}
    for size in args.sizes:
        n_rows, means = workload.SIZES[size].n_lists * workload.SIZES[size].n_pred, None
        for engine in args.engines:
            call = [sys.executable, __file__, "worker", engine, size, args.layout, args.limit]
            found = min(
                (in_process(call) for _ in range(args.rounds)), key=lambda one: one["seconds"]
            )
            means = means or found["means"]
            if any(abs(means[name] - value) > 1e-12 for name, value in found["means"].items()):
                raise SystemExit(f"{engine} {size}: other means than {args.engines[0]}")
            own = found["seconds"] / n_rows * 1e9, found["processor"] / n_rows * 1e9
            start = first.setdefault(engine, own)
            flat = [
                "yes" if mine <= FLAT * other else "NO"
                for mine, other in zip(own, start, strict=True)
            ]
            print(
                f"| {n_rows:,} | {engine} | {found['seconds']:.1f} | {own[0]:.0f} | {flat[0]} | "
                f"{found['processor']:.1f} | {own[1]:.0f} | {flat[1]} | {found['before']:.0f} | "
                f"{found['peak']:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        print(json.dumps(measure(*sys.argv[2:6])))
    else:
        main()

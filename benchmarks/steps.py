"""Where the time of `rd.evaluate` goes, step by step: `python benchmarks/steps.py M_int_sorted
M_str_shuffled`.

Functions of the package are timed from outside; a function's time is its own, without that of the
timed functions it calls. By default everything runs on one thread, so that the steps add up; a
plain call takes several.

`--threads 2` has one more column for each layout, of calls with two threads. Functions that run in
these threads then count for the step that started them. The steps that take as long as with one
thread are the serial part.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import adapters
import pandas as pd
import workload

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import recdf as rd  # noqa: E402 (after the path is set)
from recdf.inputs.machine import limited  # noqa: E402

REST = "everything else"

# step -> functions, as `module.name` where the caller looks them up
STEPS = {
    "door: columns and checks": (
        "match.read_frame",
        "match.order_source",
        "match.read_true",
        "match.read_pred",
    ),
    "codes of list keys": (
        "match.key_run_heads",
        "match.at_heads",
        "match.encode_keys",
        "match.encode_by",
    ),
    "codes of items": ("match.encode",),
    "group: deal rows to blocks": ("match.pred_blocks",),
    "rank `true`": ("match.rank_true",),
    "rank `pred`": ("match.rank_pred",),
    "pair: hits and duplicates": ("match.pair", "match.settle_pairs"),
    "population, hits, and what is left of blocks": ("match.match",),
    "metrics": ("part.defined_values",),
    "tables": (
        "match.key_frame",
        "evaluate.per_user_frame",
        "evaluate.summary_table",
        "evaluate.spec_of",
    ),
    REST: ("evaluate.evaluate",),
}
CUTS = {"S": [5, 10, 20], "M": [10, 20, 100]}


class Clock:
    """Own seconds of each step, of calls within calls on one thread."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.inner = [0.0]  # seconds of timed calls within each call that runs

    def wrap(self, step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*args: Any, **options: Any) -> Any:
            if threading.current_thread() is not threading.main_thread():
                return function(*args, **options)
            self.inner.append(0.0)
            start = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                took = time.perf_counter() - start
                self.seconds[step] += took - self.inner.pop()
                self.inner[-1] += took

        return timed


@contextmanager
def watched(clock: Clock) -> Iterator[None]:
    """The functions of the steps under the clock, and put back afterwards."""
    evaluation = ("evaluation.part", "evaluation.evaluate")
    rooms = ("matching.match", "metrics.call", *evaluation)
    modules = {name.rpartition(".")[2]: importlib.import_module(f"recdf.{name}") for name in rooms}
    replaced: list[tuple[Any, str, Any]] = []
    for names in STEPS.values():
        for module, _, name in (full.partition(".") for full in names):
            replaced.append((modules[module], name, getattr(modules[module], name)))
    steps = {full: step for step, names in STEPS.items() for full in names}
    try:
        for module, name, function in replaced:
            step = steps.get(f"{module.__name__.rpartition('.')[2]}.{name}")
            setattr(module, name, clock.wrap(step, function))
        whole, modules["call"].match = (
            modules["call"].match,
            modules["match"].match,
        )  # the name by which it is called
        yield
    finally:
        modules["call"].match = whole
        for module, name, function in replaced:
            setattr(module, name, function)
        modules["evaluate"].match = modules["match"].match


def run(layout: str, runs: int, threads: int) -> list[dict[str, float]]:
    """Seconds of each step, of each of several calls after a first one."""
    folder, ks = workload.cache_folder(), CUTS[layout.partition("_")[0]]
    true = pd.read_parquet(folder / f"{layout}_true.parquet", columns=["user_id", "item_id"])
    pred = pd.read_parquet(
        folder / f"{layout}_pred.parquet", columns=["user_id", "item_id", "score"]
    )
    rd.evaluate(true, pred, list(adapters.SIX), k=ks)
    found = []
    for _ in range(runs):
        clock = Clock()
        with watched(clock), limited(threads):
            evaluate = importlib.import_module("recdf.evaluation.evaluate").evaluate
            evaluate(true, pred, list(adapters.SIX), k=ks)
        found.append(dict(clock.seconds))
    return found


def table(found: dict[str, list[dict[str, float]]]) -> str:
    """Milliseconds and share of each step: one column a layout."""
    columns = {
        layout: {step: median(run.get(step, 0.0) for run in runs) for step in STEPS}
        for layout, runs in found.items()
    }
    lines = ["| step | " + " | ".join(columns) + " |", "|---" + "|--:" * len(columns) + "|"]
    for step in [*STEPS, "sum"]:
        cells = []
        for seconds in columns.values():
            total = sum(seconds.values())
            own = seconds.get(step, total)
            cells.append(f"{own * 1e3:,.1f} ms {own / total:4.0%}")
        lines.append(f"| {step} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("layouts", nargs="+", help="such as S_int_sorted")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1, help="beside one thread")
    args = parser.parse_args()
    counts = sorted({1, args.threads})
    found = {
        layout
        if len(counts) == 1
        else f"{layout}, {n} threads".replace(" 1 threads", " 1 thread"): run(layout, args.runs, n)
        for layout in args.layouts
        for n in counts
    }
    print(table(found))


if __name__ == "__main__":
    main()

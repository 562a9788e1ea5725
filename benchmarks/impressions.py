"""Time and memory of `from_impressions`: ten million impressions with a million clicks and
purchases.

    python benchmarks/impressions.py [--rows 10_000_000] [--ids int|str] [--rounds
    3]

Each layout runs in a process of its own, which prints wall time, processor time and the greatest
memory beyond its input. The log is in the order of time, as logs are written, so that the rows of a
session stand apart.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

LAYOUTS = ("plain", "clicked", "session_gap", "repeats")


def frames(n_rows: int, ids: str, repeated: bool) -> tuple:
    """Make a log of visits of ten impressions each, and one event for every ten impressions."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(7)
    n_lists = n_rows // 10
    begin = np.sort(rng.integers(0, 30 * 86_400_000, n_lists))
    user = rng.integers(0, max(n_lists // 4, 1), n_lists)
    position = np.tile(np.arange(10), n_lists)
    rows = np.repeat(np.arange(n_lists), 10)
    item = (rng.pareto(1.1, n_rows) * 50).astype(np.int64) % 50_000
    if not repeated:  # ten different items a list
        item = (rng.integers(0, 5_000, n_lists)[rows] + 5_000 * position) % 50_000
    stamp = begin[rows] + position * 40
    order = np.argsort(stamp, kind="stable")
    start = np.datetime64("2026-09-01T00:00:00.000")
    log = pd.DataFrame(
        {
            "user_id": user[rows][order],
            "session_id": rows[order],
            "item_id": item[order],
            "position": position[order],
            "time": start + stamp[order].astype("timedelta64[ms]"),
            "clicked": rng.random(n_rows) < 0.08,
        }
    )
    some = rng.choice(n_rows, n_rows // 10, replace=False)
    late = rng.integers(1_000, 40 * 3_600_000, len(some)).astype("timedelta64[ms]")
    events = log[["user_id", "item_id", "time"]].take(some).reset_index(drop=True)
    events["time"] += late
    events["price"] = rng.lognormal(2, 1, len(some)).round(2)
    if ids == "str":
        for frame in (log, events):
            for name in ("user_id", "item_id"):
                frame[name] = pd.Series("id" + frame[name].astype(str).str.zfill(9), dtype="str")
    return log, events


def resident() -> int:
    """Return the memory that this process holds now (Linux), in bytes."""
    return (
        int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1])
        * resource.getpagesize()
    )


class Peak(threading.Thread):
    """Watch the memory of this process until `stop`; `most` is the largest value seen."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.done = 0, threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.005):
            self.most = max(self.most, resident())

    def stop(self) -> int:
        self.done.set()
        self.join()
        return self.most


def run(layout: str, n_rows: int, ids: str, rounds: int) -> None:
    """Make the frames, then call `from_impressions` several times; print a line for each call."""
    import recdf as rd

    log, events = frames(n_rows, ids, layout == "repeats")
    given = sum(int(frame.memory_usage(deep=True).sum()) for frame in (log, events))
    options: dict = {"time_col": "time"}
    if layout == "clicked":
        options["clicked_col"] = "clicked"
    if layout == "session_gap":
        log = log.drop(columns="session_id")
        options["session_gap"] = "30min"
    for number in range(rounds):
        before, peak = resident(), Peak()
        peak.start()
        wall, processor = time.perf_counter(), time.process_time()
        found = rd.from_impressions(
            log, purchases=events, value_col="price", window="24h", **options
        )
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        extra = (peak.stop() - before) / given
        print(
            f"{layout:12} {ids:3} {number}: {wall:6.2f} s wall  {processor:6.2f} s processor  "
            f"{extra:5.2f} times the input of {given / 1e6:,.0f} MB  "
            f"{found.spec['counts']['lists']:,} lists",
            flush=True,
        )
        del found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=lambda text: int(text.replace("_", "")), default=10_000_000)
    parser.add_argument("--ids", choices=("int", "str"), default="int")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--layout", choices=LAYOUTS)
    args = parser.parse_args()
    if args.layout:
        run(args.layout, args.rows, args.ids, args.rounds)
    else:
        given = [
            "--rows",
            str(args.rows),
            "--ids",
            args.ids,
            "--rounds",
            str(args.rounds),
        ]
        for one in LAYOUTS:
            subprocess.run([sys.executable, __file__, "--layout", one, *given], check=True)

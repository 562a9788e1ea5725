"""Evaluate L (1 M lists x 100, 100 M rows of `pred`) from parquet within a memory limit: seconds
and peak memory.

    python benchmarks/workload.py L --layout int_sorted --layout str_shuffled  # 1 to 3 GB each
    python benchmarks/streaming.py                          # those, with a limit of 1 GB
    python benchmarks/streaming.py M --limit 300MB --check  # and equal to `evaluate` to 1e-12

Each layout runs in a process of its own. Peak memory is that of the whole process, Python and
libraries included (about 120 MB before the first row is read); bytes on disk are those of the input
and of the temporary rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pandas as pd
from workload import LAYOUTS, SIZES, cache_folder

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

METRICS = ["precision", "recall", "ndcg", "mapr", "mrr", "hitrate"]
CUTS = [10, 20, 100]


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder, of which some may go meanwhile."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:
            continue
    return total


def watch(folder: Path, found: dict[str, int], stop: threading.Event) -> None:
    """Note the largest size of a folder."""
    while not stop.wait(0.2):
        found["bytes"] = max(found.get("bytes", 0), folder_bytes(folder))


def paths(size: str, layout: str) -> list[Path]:
    ending = "" if SIZES[size].in_parts else ".parquet"
    return [cache_folder() / f"{size}_{layout}_{side}{ending}" for side in ("true", "pred")]


def measure(size: str, layout: str, limit: str, check: bool) -> dict[str, object]:
    """One run in this process."""
    import recdf as rd

    files = paths(size, layout)
    with tempfile.TemporaryDirectory() as name:
        out, disk, stop = Path(name) / "result", {}, threading.Event()
        watcher = threading.Thread(target=watch, args=(Path(name), disk, stop))
        watcher.start()
        before, start, cpu = peak(), time.perf_counter(), time.process_time()
        result = rd.evaluate_parquet(
            *files, METRICS, k=CUTS, score_col="score", memory_limit=limit, out=out
        )
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        after = peak()
        stop.set()
        watcher.join()
        if check:
            whole = rd.evaluate(*map(pd.read_parquet, files), METRICS, k=CUTS, score_col="score")
            pd.testing.assert_frame_equal(result.per_user, whole.per_user, rtol=1e-12, atol=1e-12)
            pd.testing.assert_frame_equal(result.summary, whole.summary, rtol=1e-12, atol=1e-12)
        lists = int(result.summary["n"].max())
    return {
        "lists": lists,
        "seconds": seconds,
        "cpu": cpu,
        "before": before,
        "peak": after,
        "disk": disk.get("bytes", 0),
    }


def peak() -> float:
    """Peak resident memory of this process, in MB."""
    unit = 1e6 if sys.platform == "darwin" else 1e6 / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("size", nargs="?", default="L", choices=SIZES)
    parser.add_argument(
        "--layout", action="append", choices=LAYOUTS, help="repeatable; every layout that is there"
    )
    parser.add_argument("--limit", default="1GB")
    parser.add_argument(
        "--check", action="store_true", help="compare with evaluate on the whole frames"
    )
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    layouts = args.layout or [
        layout for layout in LAYOUTS if all(path.exists() for path in paths(args.size, layout))
    ]
    if args.here:
        print(json.dumps(measure(args.size, layouts[0], args.limit, args.check)))
        return
    print(
        "| workload | limit | lists | seconds | CPU seconds | MB before | peak MB | input, "
        "temporary GB |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for layout in layouts:
        call = [
            sys.executable,
            __file__,
            args.size,
            "--layout",
            layout,
            "--limit",
            args.limit,
            "--here",
        ]
        done = subprocess.run(
            [*call, *["--check"] * args.check], check=True, capture_output=True, text=True
        )
        found = json.loads(done.stdout)
        given = sum(
            folder_bytes(path) if path.is_dir() else path.stat().st_size
            for path in paths(args.size, layout)
        )
        print(
            f"| {args.size} {layout} | {args.limit} | {found['lists']:,} | {found['seconds']:.1f} "
            f"| {found['cpu']:.1f} | {found['before']:.0f} | {found['peak']:.0f} | "
            f"{given / 1e9:.1f}, {found['disk'] / 1e9:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

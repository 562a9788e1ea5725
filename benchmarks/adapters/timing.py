"""How long a library takes, and how much memory."""

from __future__ import annotations

import importlib
import math
import time
from pathlib import Path
from typing import Any

from .measuring import plain
from .record import Adapter


def benchmark(adapter: Adapter, request: dict[str, Any]) -> dict[str, Any]:
    """Seconds from loaded frames to numbers, each repetition, and the peak memory over the loaded
    frames.

    `pred` comes without its column `rank`: every library starts from the scores. Importing the
    library is timed apart.
    """
    if adapter.six is None:
        raise SystemExit(f"{adapter.distribution} has no benchmark")
    start = time.perf_counter()
    importlib.import_module(adapter.module)
    importing = time.perf_counter() - start
    true = adapter.read(request["true"], columns=["user_id", "item_id"])
    pred = adapter.read(request["pred"], columns=["user_id", "item_id", "score"])
    before = memory("VmRSS")
    reset_peak()
    seconds, processor = [], []
    for _ in range(request["repeat"]):
        start, start_of_processor = time.perf_counter(), time.process_time()
        means = adapter.six(true, pred, request["k"])
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - start_of_processor)
    peak = round(memory("VmHWM") - before)
    times = {"seconds": seconds, "processor_seconds": processor, "import_seconds": importing}
    return {**times, "peak_mb": peak, "mean": plain(means)}


def memory(label: str) -> float:
    """A line of /proc/self/status in MB (Linux)."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(label):
            return int(line.split()[1]) / 1024
    return math.nan


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")

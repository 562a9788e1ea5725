"""All metrics of lists that need only true and pred, beside six of them: `python
benchmarks/all_metrics.py`.

Each call stands in a process of its own, at three k: the least processor time of five calls, and
the peak of the resident memory of the whole process, with the libraries and the frames.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import adapters
import pandas as pd
import workload

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import recdf as rd

K = [10, 20, 100]
# These take other frames than lists of a recommender: predicted ratings and probabilities, a log of
# impressions.
OTHER_FRAMES = ("rating", "probability", "responses")


def all_metrics() -> list[str]:
    """Metrics with a value per list that need nothing beside true and pred; `rbo` is that against
    the ideal list."""
    names = [
        metric.name
        for metric in rd.METRICS.values()
        if {*metric.needs} <= {"true"}
        and hasattr(metric, "per_user")
        and metric.family not in OTHER_FRAMES
    ]
    return ["rbo(against=ideal)" if name == "rbo" else name for name in names]


def measure(which: str, layout: str) -> dict[str, float]:
    """Number of metrics, seconds and MB of a call in this process."""
    folder = workload.cache_folder()
    true = pd.read_parquet(folder / f"{layout}_true.parquet", columns=["user_id", "item_id"])
    pred = pd.read_parquet(
        folder / f"{layout}_pred.parquet", columns=["user_id", "item_id", "score"]
    )
    warnings.simplefilter(
        "ignore", rd.JudgedWarning
    )  # M has no item that is judged as not relevant
    metrics, seconds = list(adapters.SIX) if which == "six" else all_metrics(), []
    for _ in range(5):
        clock, processor = time.perf_counter(), time.process_time()
        rd.evaluate(true, pred, metrics, k=K)
        seconds.append((time.process_time() - processor, time.perf_counter() - clock))
    processor, clock = (min(column) for column in zip(*seconds, strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"metrics": len(metrics), "processor s": processor, "clock s": clock, "peak MB": peak}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("layouts", nargs="*", default=["M_int_sorted", "M_int_shuffled"])
    parser.add_argument(
        "--one",
        choices=["six", "all"],
        help="measure this one in this process, for the first layout",
    )
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.one, args.layouts[0])))
        return
    for layout in args.layouts:
        found = {}
        for which in ("six", "all"):
            command = [sys.executable, __file__, layout, "--one", which]
            found[which] = json.loads(
                subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
            )
        table = pd.DataFrame(found).T
        table.loc["ratio"] = table.loc["all"] / table.loc["six"]
        print(f"{layout}\n{table.round(2)}")


if __name__ == "__main__":
    main()

"""Time `recdf` and other libraries in turn on the same frames, and check that they give the same
numbers.

    python benchmarks/workload.py S M
    python benchmarks/peers.py install rectools pytrec_eval replay
    python benchmarks/run.py                                 # S, every layout
    python benchmarks/run.py --sizes S M --rounds 3 --write  # and write benchmarks/README.md

One round starts a fresh process for each library, one after the other. A process reads the frames
and imports the library, then the clock starts: seconds from DataFrames to the global numbers of six
metrics at three k. The first call of a process is reported apart from the later ones. Linux only.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import adapters
import numpy as np
import pandas as pd
import peers
import pyarrow as pa
import pyarrow.parquet as pq
import workload

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

README = Path(__file__).with_name("README.md")
CUTS = {"S": [5, 10, 20], "M": [10, 20, 100]}
FASTEST = ["rectools", "pytrec_eval", "replay"]  # of the peers, by layout
COLUMNS = {"true": ["user_id", "item_id"], "pred": ["user_id", "item_id", "score"]}
TOLERANCE = 1e-9
WHOLE_LIST = 10**6
FLOOR_REPEATS = 5

Answer = dict[str, Any]

# -- what runs in a process of its own


def recdf_six(true: Any, pred: Any, ks: list[int]) -> dict[str, float]:
    import recdf as rd

    summary = rd.evaluate(true, pred, list(adapters.SIX), k=ks).summary
    return dict(
        zip(summary["metric"] + "@" + summary["k"].astype(str), summary["value"], strict=True)
    )


def time_recdf(request: dict[str, Any]) -> Answer:
    """As `python -m adapters time` does for the others, by the same function."""
    adapter = adapters.Adapter("recdf", lambda *_: ({}, {}), recdf_six, module="recdf")
    return adapters.benchmark(adapter, request)


def means_as(request: dict[str, Any]) -> Answer:
    """The metrics that each peer gave, by `recdf` in that library's convention: peer -> metric ->
    mean."""
    import recdf as rd

    true, pred = (pd.read_parquet(request[side], columns=names) for side, names in COLUMNS.items())
    found = {}
    for peer, asked in request["metrics"].items():
        texts = {name: name if "@" in name else f"{name}@{WHOLE_LIST}" for name in asked}
        frames = as_trec_eval(true, pred) if like(peer) == "trec_eval" else (true, pred, {})
        # Every adapter orders by score, whatever the library's own convention is.
        summary = rd.evaluate(
            *frames[:2], texts, like=like(peer), score_col="score", **frames[2]
        ).summary
        found[peer] = dict(zip(texts, summary["value"], strict=True))
    return found


def like(peer: str) -> str:
    return {"replay_pandas": "replay", "pytrec_eval": "trec_eval", "ir_measures": "trec_eval"}.get(
        peer, peer
    )


def as_trec_eval(true: Any, pred: Any) -> tuple[Any, Any, dict[str, str]]:
    """It keeps scores in 32 bits and orders equal ones by the item's text; its mean is over users
    of both frames."""
    text, score = {"item_id": str}, pred["score"].astype(np.float32)
    return true.astype(text), pred.astype(text).assign(score=score), {"users": "both"}


def floors(request: dict[str, Any]) -> Answer:
    """Seconds for one read of the input columns from memory and from parquet, and their size."""
    frames = [pd.read_parquet(request[side], columns=names) for side, names in COLUMNS.items()]
    buffers = [
        buffer for frame in frames for name in frame for buffer in column_buffers(frame[name])
    ]
    sums = [np.frombuffer(buffer, np.uint64, len(buffer) // 8) for buffer in buffers]
    return {
        "memory": best(lambda: [words.sum() for words in sums]),
        "parquet": best(
            lambda: [pq.read_table(request[side], columns=names) for side, names in COLUMNS.items()]
        ),
        "mb": sum(int(frame.memory_usage(index=False, deep=True).sum()) for frame in frames)
        / 2**20,
    }


def column_buffers(column: pd.Series) -> list[Any]:
    if isinstance(column.dtype, np.dtype):
        return [column.to_numpy().data.cast("B")]
    array = pa.array(column.array)
    chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
    return [
        memoryview(buffer) for chunk in chunks for buffer in chunk.buffers() if buffer is not None
    ]


def best(call: Callable[[], object]) -> float:
    """Median seconds of a call, the first one left out."""
    call()
    return median(timed(call) for _ in range(FLOOR_REPEATS))


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


TASKS = {"recdf": time_recdf, "means": means_as, "floors": floors}


def work(task: str, request_path: str, answer_path: str) -> None:
    warnings.simplefilter("ignore")
    request = json.loads(Path(request_path).read_text(encoding="utf-8"))
    Path(answer_path).write_text(json.dumps(TASKS[task](request)), encoding="utf-8")


def in_process(task: str, request: dict[str, Any]) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "request.json", Path(folder) / "answer.json"
        asked.write_text(json.dumps(request))
        command = [sys.executable, __file__, "worker", task, str(asked), str(answered)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{task}: {done.stderr.strip()[-2000:]}")
        return json.loads(answered.read_text(encoding="utf-8"))


# -- rounds


def run_layout(name: str, names: list[str], rounds: int, repeat: int) -> Answer:
    """All libraries on one layout: the answers of each round, the floors, and the metric values to
    compare with."""
    size = name.partition("_")[0]
    paths = {side: workload.cache_folder() / f"{name}_{side}.parquet" for side in COLUMNS}
    request = {
        **{side: str(path) for side, path in paths.items()},
        "k": CUTS[size],
        "repeat": repeat,
    }
    answers: dict[str, list[Answer]] = {library: [] for library in ("recdf", *names)}
    for number in range(rounds):
        for library, given in answers.items():
            try:
                if library == "recdf":
                    given.append(in_process("recdf", request))
                else:
                    given.append(
                        peers.timed(library, paths["true"], paths["pred"], CUTS[size], repeat)
                    )
                shown = "  ".join(f"{seconds:.3f}" for seconds in given[-1]["seconds"])
            except RuntimeError as error:
                shown = str(error)
            print(f"{name}  round {number + 1}  {library:14} {shown}", file=sys.stderr, flush=True)
    answers = {library: given for library, given in answers.items() if given}
    asked = {
        library: list(given[0]["mean"]) for library, given in answers.items() if library != "recdf"
    }
    means = in_process("means", {**request, "metrics": asked})
    return {
        "name": name,
        "answers": answers,
        "means": means,
        "floors": in_process("floors", request),
    }


def steady(answers: list[Answer], clock: str = "seconds") -> float:
    """Median of the calls after the first of each process (of the first ones when there is no
    other)."""
    later = [seconds for answer in answers for seconds in answer[clock][1:]]
    return median(later or [answer[clock][0] for answer in answers])


def first(answers: list[Answer]) -> float:
    return median(answer["seconds"][0] for answer in answers)


def equality(mine: dict[str, float], theirs: dict[str, float]) -> str:
    differ = [name for name, value in theirs.items() if not abs(mine[name] - value) <= TOLERANCE]
    if not differ:
        return f"equal ({len(theirs)})"
    largest = max((abs(mine[name] - theirs[name]) for name in differ), default=math.nan)
    return f"{', '.join(f'`{name}`' for name in differ)} by up to {largest:.1g}"


# -- tables

HEAD = (
    "| library | version | median s | ratio | first call s | ratio | processor s | ratio | import "
    "s | peak MB | × input | values |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n"
)


def layout_table(result: Answer) -> str:
    own, size = result["answers"]["recdf"], result["floors"]["mb"]
    lines = []
    for library, given in result["answers"].items():
        peak = median(answer["peak_mb"] for answer in given)
        values = equality(result["means"][library], given[0]["mean"]) if library != "recdf" else ""
        cells = (
            library,
            recdf_version() if library == "recdf" else given[0]["library"].rpartition(" ")[2],
            f"{steady(given):.3g}",
            f"{steady(given) / steady(own):.1f}",
            f"{first(given):.3g}",
            f"{first(given) / first(own):.1f}",
            f"{steady(given, 'processor_seconds'):.3g}",
            f"{steady(given, 'processor_seconds') / steady(own, 'processor_seconds'):.1f}",
            f"{median(answer['import_seconds'] for answer in given):.2g}",
            f"{peak:,.0f}",
            f"{peak / size:.2f}",
            values,
        )
        lines.append("| " + " | ".join(cells) + " |\n")
    return f"### {result['name'].replace('_', ' ')}\n\n{HEAD}{''.join(lines)}"


def floor_table(results: list[Answer]) -> str:
    head = (
        "| layout | input MB | one read from memory s | `recdf` ÷ that | `read_table` s | `recdf` "
        "÷ that |\n"
        "|---|--:|--:|--:|--:|--:|\n"
    )
    lines = []
    for result in results:
        floor, seconds = result["floors"], steady(result["answers"]["recdf"])
        lines.append(
            f"| {result['name'].replace('_', ' ')} | {floor['mb']:,.0f} | {floor['memory']:.3g} | "
            f"{seconds / floor['memory']:.1f} | {floor['parquet']:.3g} | "
            f"{seconds / floor['parquet']:.2f} |\n"
        )
    return f"### Against the machine\n\n{head}{''.join(lines)}"


def recdf_version() -> str:
    import recdf

    return recdf.__version__


def setting(rounds: int, repeat: int) -> str:
    """When, with what and where: versions of this environment, and the machine without its name."""
    names = ("pandas", "numpy", "pyarrow")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    memory = (
        int(re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text(encoding="utf-8"))[1])
        / 2**20
    )
    return (
        f"{datetime.date.today()}, Python {platform.python_version()}, {versions}; "
        f"{model[1].strip() if model else platform.machine()}, {len(os.sched_getaffinity(0))} "
        f"cores, {memory:.0f} GiB. {rounds} rounds, {repeat} calls in each process; load of the "
        f"machine at the end {os.getloadavg()[0]:.1f}."
    )


def write(size: str, text: str) -> None:
    """Replace what stands between the markers of a size in the README."""
    before, begin, rest = README.read_text(encoding="utf-8").partition(f"<!-- {size} -->\n")
    _, end, after = rest.partition(f"<!-- end of {size} -->")
    if not begin or not end:
        raise SystemExit(f"{README.name} has no markers for {size}")
    README.write_text(f"{before}{begin}{text}{end}{after}", encoding="utf-8")


# -- the command


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", choices=list(CUTS), default=["S"])
    parser.add_argument(
        "--layouts", nargs="+", choices=workload.LAYOUTS, default=list(workload.LAYOUTS)
    )
    parser.add_argument("--peers", nargs="*", choices=list(peers.PEERS), default=FASTEST)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=3, help="calls in each process")
    parser.add_argument(
        "--write", action="store_true", help="put the tables of these sizes into the README"
    )
    return parser.parse_args()


def main() -> None:
    args = parse()
    for size in args.sizes:
        results = [
            run_layout(f"{size}_{layout}", args.peers, args.rounds, args.repeat)
            for layout in args.layouts
        ]
        tables = "\n".join([*map(layout_table, results), floor_table(results)])
        text = f"{setting(args.rounds, args.repeat)}\n\n{tables}"
        print(text, flush=True)
        if args.write:
            write(size, text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        work(*sys.argv[2:])
    else:
        main()

"""Time and memory of experiments and comparisons, one thread: `python
benchmarks/inference_speed.py`.

Each case runs in a process of its own, so that the memory is its own: peak resident memory over
what the process had once the input was there. On a busy machine the processor time says more than
the clock. Linux only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable

THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def peak() -> float:
    """Peak resident memory of this process in MB."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def reset_peak() -> None:
    with open("/proc/self/clear_refs", "w", encoding="utf-8") as refs:
        refs.write("5")


def main(case: str) -> None:
    import numpy as np
    import pandas as pd

    import recdf as rd

    rng = np.random.default_rng(0)

    def users(n: int, ids: str = "int") -> pd.DataFrame:
        frame = pd.DataFrame({f"m{j}@10": rng.beta(1, 3, n) for j in range(10)})
        numbers = np.arange(n) + 10**9
        frame.insert(
            0, "user_id", numbers if ids == "int" else pd.Series(numbers).astype(str).radd("u")
        )
        return frame

    run: Callable[[], object]
    if case.startswith("bootstrap"):
        per_user = users(1_000_000)
        if "shuffled" in case:
            per_user = per_user.sample(frac=1, random_state=0)
        metrics = [c for c in per_user.columns if c != "user_id"]
        run = lambda: rd.experiments.bootstrap_ci(per_user, metrics, n_resamples=1000)  # noqa: E731
    elif case.startswith("models"):
        per_user = pd.concat(
            [users(100_000).assign(model=f"model{i:02d}") for i in range(20)], ignore_index=True
        )
        baseline = "model00" if "baseline" in case else None
        run = lambda: rd.compare_models(per_user, baseline=baseline)  # noqa: E731
    elif case.startswith("randomization"):
        per_user = pd.concat(
            [users(100_000).assign(model=f"model{i:02d}") for i in range(3)], ignore_index=True
        )
        run = lambda: rd.compare_models(per_user, test="randomization", n_resamples=10_000)  # noqa: E731
    else:
        ids = "str" if "str" in case else "int"
        per_user = users(1_000_000, ids)
        assignment = per_user[["user_id"]].assign(
            variant=rng.choice(["A", "B"], len(per_user)),
            pre=per_user["m0@10"] + rng.normal(size=len(per_user)),
        )
        assignment = assignment.sample(frac=1, random_state=1)
        metrics = [c for c in per_user.columns if c != "user_id"]

        def run() -> object:
            start = time.perf_counter()
            rd.experiments.experiment_health(per_user, assignment)
            health = time.perf_counter()
            joined = rd.join_experiment(per_user, assignment)
            join = time.perf_counter()
            rd.compare_variants(joined, metrics, control="A", covariates="pre")
            compare = time.perf_counter()
            print(
                f"    health {health - start:.2f}, join {join - health:.2f}, compare "
                f"{compare - join:.2f} s"
            )
            return joined

    # SciPy's import belongs to the installation, not to the call.
    import scipy.special  # noqa: F401

    reset_peak()
    before = peak()
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(
        f"{case:42s} {wall:6.2f} s  ({cpu:5.2f} s of one processor)  {peak() - before:5.0f} MB "
        "over the input"
    )


CASES = [
    "bootstrap 1M users x 10 x 1000",
    "bootstrap 1M users x 10 x 1000, shuffled",
    "models 20 x 10 x 100k, baseline",
    "models 20 x 10 x 100k, all pairs",
    "randomization 3 x 10 x 100k x 10000",
    "chain 1M users, int ids",
    "chain 1M users, str ids",
]

if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        for case in CASES:
            subprocess.run(
                [sys.executable, __file__, case], env={**os.environ, **THREADS}, check=True
            )

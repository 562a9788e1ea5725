"""Comparisons of many users: recdf from a frame and from a file, beside tea-tasting on DuckDB from
the same file.

    python benchmarks/experiment_speed.py [--users 10000000] [--rounds 5] [--tea PYTHON]

Four means and a ratio of sums, without and with a covariate of all five; then a million users with
ten metrics and five covariates. `--tea` names a Python that has tea-tasting, ibis-framework and
DuckDB.
Times are the least of the rounds, and processor times beside them, which a busy machine changes
less.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))

CACHE = Path(os.environ.get("RECDF_CACHE", Path.home() / ".cache" / "recdf"))
MEANS = [f"m{i}" for i in range(4)]

TEA = """
import sys, time, ibis, tea_tasting as tt
users = ibis.duckdb.connect().read_parquet(sys.argv[1])
for name in (None, "pre"):
    metrics = {m: tt.Mean(m, covariate=name) for m in ("m0", "m1", "m2", "m3")}
    metrics["ctr"] = tt.RatioOfMeans("clicks", "views", numer_covariate=name)
    experiment = tt.Experiment(metrics, variant="variant")
    walls, cpus = [], []
    for _ in range(int(sys.argv[2])):
        wall, cpu = time.perf_counter(), time.process_time()
        experiment.analyze(users, "A")
        walls.append(time.perf_counter() - wall), cpus.append(time.process_time() - cpu)
    print("tea-tasting, file" + ", covariate" * (name is not None), min(walls), min(cpus), sep="|")
"""


def users_of(n, path):
    """A file of users, made once."""
    if path.exists():
        return
    rng = np.random.default_rng(0)
    data = pd.DataFrame(
        {"user_id": np.arange(n), "variant": np.where(rng.random(n) < 0.5, "A", "B")}
    )
    for i, name in enumerate(MEANS):
        data[name] = rng.exponential(1, n) if i % 2 else rng.normal(1, 1, n)
    views = rng.poisson(5, n)
    data["views"], data["clicks"] = views.astype(float), rng.binomial(views, 0.1).astype(float)
    data["pre"] = data["m0"] * 0.5 + rng.normal(0, 1, n)
    path.parent.mkdir(parents=True, exist_ok=True)
    data.to_parquet(path, index=False)


def wide(n):
    """Ten metrics that five values from before the experiment partly explain."""
    rng = np.random.default_rng(1)
    data = pd.DataFrame(
        {"user_id": np.arange(n), "variant": np.where(rng.random(n) < 0.5, "A", "B")}
    )
    for i in range(5):
        data[f"x{i}"] = rng.normal(size=n)
    for i in range(10):
        data[f"m{i}"] = data[f"x{i % 5}"] + rng.normal(size=n)
    return data


def shown(name, wall, cpu):
    print(f"{name:34} {wall:6.2f} s {cpu:6.2f} s of processors", flush=True)


def timed(name, rounds, call):
    walls, cpus = [], []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    shown(name, min(walls), min(cpus))


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--users", type=int, default=10_000_000)
    asked.add_argument("--rounds", type=int, default=5)
    asked.add_argument("--tea", help="a Python with tea-tasting, ibis-framework and DuckDB")
    given = asked.parse_args()
    path = CACHE / f"users_{given.users}.parquet"
    users_of(given.users, path)
    import recdf as rd

    metrics = {**{name: name for name in MEANS}, "ctr": ("clicks", "views")}
    frame = pd.read_parquet(path)
    for said, more in (("", {}), (", covariate", {"covariates": "pre"})):
        for where, data in (("frame", frame), ("file", path)):
            call = partial(rd.compare_variants, data, metrics, control="A", **more)
            timed(f"recdf, {where}{said}", given.rounds, call)
    del frame
    if given.tea:
        command = [given.tea, "-c", TEA, str(path), str(given.rounds)]
        for line in subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.splitlines():
            name, wall, cpu = line.split("|")
            shown(name, float(wall), float(cpu))
    data = wide(1_000_000)
    covariates = {f"m{i}": [f"x{j}" for j in range(5)] for i in range(10)}
    call = partial(rd.compare_variants, data, list(covariates), control="A", covariates=covariates)
    timed("1 M users, 10 metrics, 5 covariates", min(given.rounds, 3), call)


if __name__ == "__main__":
    main()

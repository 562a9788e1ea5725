"""Time from lists to a decision, one million users of ten recommendations: `python
benchmarks/experiment_chain.py`.

Evaluate, check the experiment, join, compare two variants, write parquet; string and integer ids.
Each step in seconds of the clock and of one processor, which says more on a busy machine. `--users
N` for another size.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.special  # noqa: F401  # its import belongs to the installation, not to a step

import recdf as rd

METRICS = ["ndcg@10", "recall@10", "hits@10", "mrr@10"]
N_ITEMS, N_RECS, N_TRUE = 5_000, 10, 3


def frames(n_users: int, ids: str) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Lists of `pred` in rank order, purchases, and an assignment in another order, a tenth without
    lists."""
    rng = np.random.default_rng(0)
    served = n_users - n_users // 10
    labels = np.arange(n_users) + 10**9
    users: Any = labels if ids == "int" else pd.Series(labels).astype(str).radd("u").to_numpy()
    # Distinct items in a list: a random start and a step that is coprime to the number of items.
    first, step = rng.integers(0, N_ITEMS, served), 10 * rng.integers(0, N_ITEMS // 10, served) + 1
    item = (first[:, None] + step[:, None] * np.arange(N_RECS)) % N_ITEMS
    bought = (
        first[:, None] + step[:, None] * rng.integers(0, 3 * N_RECS, (served, N_TRUE))
    ) % N_ITEMS
    pred = pd.DataFrame({"user_id": np.repeat(users[:served], N_RECS), "item_id": item.ravel()})
    pred["rank"] = np.tile(np.arange(1, N_RECS + 1), served)
    true = pd.DataFrame(
        {"user_id": np.repeat(users[:served], N_TRUE), "item_id": bought.ravel()}
    ).drop_duplicates()
    assignment = pd.DataFrame(
        {
            "user_id": users,
            "variant": rng.choice(["A", "B"], n_users),
            "pre": rng.normal(size=n_users),
        }
    )
    return true, pred, assignment.sample(frac=1, random_state=1, ignore_index=True)


def step(name: str, run: Callable[[], Any]) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    result = run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"  {name:32s} {wall:6.2f} s  {cpu:6.2f} s of processor")
    return result


def chain(n_users: int, ids: str) -> None:
    true, pred, assignment = frames(n_users, ids)
    print(f"{n_users:,} users, {len(pred):,} recommendations, {len(true):,} purchases, {ids} ids")
    begin = time.perf_counter()
    result = step("evaluate, 4 metrics", lambda: rd.evaluate(true, pred, METRICS))
    step("experiment_health", lambda: rd.experiments.experiment_health(result.per_user, assignment))
    joined = step("join_experiment", lambda: result.join_experiment(assignment, missing="zero"))
    table = step(
        "compare_variants, covariate",
        lambda: rd.compare_variants(joined, METRICS, control="A", covariates="pre"),
    )
    with tempfile.TemporaryDirectory() as folder:
        step("to_parquet, the result", lambda: result.to_parquet(Path(folder) / "result"))
        step(
            "to_parquet, the joined table",
            lambda: joined.to_parquet(Path(folder) / "joined.parquet"),
        )
        table.to_parquet(Path(folder) / "comparison.parquet")
    print(f"  {'all':32s} {time.perf_counter() - begin:6.2f} s\n")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--users", type=int, default=1_000_000)
    for kind in ("int", "str"):
        chain(arguments.parse_args().users, kind)

"""Time and size of a report of many models: `python benchmarks/report.py [USERS]`, one million by
default.

Ten models × eight metrics × three cut-offs. The report is written several times in one process,
each time beside the call that it stands on, `evaluate`; read the ratio of the two, and the
processor time rather than the clock. `--profile` shows where the time goes.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import recdf as rd

METRICS = ["ndcg", "recall", "precision", "map", "mrr", "hitrate", "f1", "first_rank"]
CUTOFFS = [1, 2, 3]
N_MODELS = 10
N_ITEMS = 1000


def frames(n_users: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two relevant items for each user, and three recommendations from each model; better models
    hit more often."""
    rng = np.random.default_rng(0)
    users = np.arange(n_users)
    true = pd.DataFrame(
        {"user_id": np.repeat(users, 2), "item_id": rng.integers(0, N_ITEMS, 2 * n_users)}
    )
    true = true.drop_duplicates(ignore_index=True)
    wanted = np.full(n_users, -1)
    wanted[true["user_id"].to_numpy()] = true["item_id"].to_numpy()
    parts = []
    for model in range(N_MODELS):
        items = rng.integers(0, N_ITEMS, n_users)
        hit = rng.random(n_users) < 0.05 + 0.02 * model
        place = rng.integers(0, 3, n_users)
        for rank in range(3):
            item = np.where(hit & (place == rank), wanted, N_ITEMS + 3 * items + rank)
            parts.append(
                pd.DataFrame(
                    {"user_id": users, "item_id": item, "rank": np.int8(rank + 1), "model": model}
                )
            )
    pred = pd.concat(parts, ignore_index=True)
    names = [f"model-{model}" for model in range(N_MODELS)]
    pred["model"] = pd.Categorical.from_codes(pred["model"].to_numpy(), names)
    return true, pred


def timed(call: Callable[[], Any]) -> tuple[Any, str]:
    """The value of a call, and its seconds by the processor and by the clock."""
    processor, clock = time.process_time(), time.perf_counter()
    value = call()
    return (
        value,
        f"processor {time.process_time() - processor:6.2f} s  clock "
        f"{time.perf_counter() - clock:6.2f} s",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("users", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    true, pred = frames(given.users)
    asked = f"{N_MODELS} models, {len(METRICS)} metrics, k {CUTOFFS}"
    print(f"{len(pred):,} recommendations, {given.users:,} users, {asked}")
    users = pd.DataFrame({"user_id": np.arange(given.users)})
    segments = users.assign(
        country=pd.Categorical.from_codes(users["user_id"] % 4, ["de", "fr", "it", "uk"])
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        for _ in range(given.times):
            result, seconds = timed(lambda: rd.evaluate(true, pred, METRICS, k=CUTOFFS, by="model"))
            print(f"evaluate                            {seconds}", flush=True)
            cases: dict[str, dict[str, Any]] = {
                "report": {},
                "report, baseline": {"baseline": "model-0"},
                "report, baseline, segments": {"baseline": "model-0", "segments": segments},
            }
            for name, options in cases.items():
                _, seconds = timed(lambda: rd.report(result, path, k=3, overwrite=True, **options))  # noqa: B023
                print(f"{name:<35} {seconds}  {path.stat().st_size / 1e6:.2f} MB", flush=True)
        if given.profile:
            profile = cProfile.Profile()
            profile.runcall(
                rd.report, result, path, k=3, baseline="model-0", segments=segments, overwrite=True
            )
            pstats.Stats(profile).sort_stats("cumulative").print_stats(45)


if __name__ == "__main__":
    main()

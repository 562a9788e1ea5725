"""The Spark metrics of RePlay and of recommenders beside those of recdf, on the same frames in one
Spark session.

    pip install 'replay-rec==0.22.0' 'pyspark[connect]>=4.0'
    pip install --no-deps 'recommenders==1.2.1'
    python benchmarks/workload.py M --layout int_shuffled
    python benchmarks/spark_peers.py --users 13800 --rounds 3        # a tenth of M

Every library computes its metrics at k = 10, 20 and 100: RePlay and recdf six of them, recommenders
the four that it has. They take turns, so that each one meets the same machine; the last round is
warm. Values are compared where the definitions are the same. The environment needs recdf too: run
it from the root of a checkout with `PYTHONPATH=.`
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

from workload import cache_folder

METRICS = ["precision", "recall", "ndcg", "mapr", "mrr", "hitrate"]
CUTS = [10, 20, 100]
Values = dict[tuple[str, int], float]


def session() -> Any:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = {
        "spark.driver.memory": "6g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # two for each core: more would only slow such small frames down
        "spark.sql.shuffle.partitions": "4",
    }
    return SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()


def recdf(true: Any, pred: Any, like: str | None = None) -> Values:
    import recdf as rd

    summary = rd.spark.evaluate(true, pred, METRICS, CUTS, score_col="score", like=like).summary
    return {(row.metric, row.k): row.value for row in summary.itertuples()}


def replay(true: Any, pred: Any) -> Values:
    import replay.metrics as of
    from replay.utils.session_handler import State

    State(true.sparkSession)
    names = {
        "Precision": "precision",
        "Recall": "recall",
        "NDCG": "ndcg",
        "MAP": "mapr",
        "MRR": "mrr",
    }
    names["HitRate"] = "hitrate"
    asked = [getattr(of, name)(CUTS) for name in names]
    found = of.OfflineMetrics(
        asked, query_column="user_id", item_column="item_id", rating_column="score"
    )(pred, true)
    pairs = ((*key.split("@"), value) for key, value in found.items())
    return {(names[name], int(k)): value for name, k, value in pairs}


def recommenders(true: Any, pred: Any) -> Values:
    from pyspark.sql.functions import lit
    from recommenders.evaluation.spark_evaluation import SparkRankingEvaluation

    columns = {
        "col_user": "user_id",
        "col_item": "item_id",
        "col_rating": "rating",
        "col_prediction": "score",
    }
    found: Values = {}
    for k in CUTS:
        of = SparkRankingEvaluation(true.withColumn("rating", lit(1.0)), pred, k=k, **columns)
        found |= {
            ("precision", k): of.precision_at_k(),
            ("recall", k): of.recall_at_k(),
            ("ndcg", k): of.ndcg_at_k(),
        }
        found["map", k] = of.map_at_k()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--users", type=int, default=13_800, help="keep the users whose number is below this one"
    )
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    spark = session()
    with tempfile.TemporaryDirectory() as folder:
        true, pred = (cut(spark, role, args.users, folder) for role in ("true", "pred"))
        take_turns(true, pred, args.rounds)


def cut(spark: Any, role: str, users: int, folder: str) -> Any:
    """One frame of M with the rows of some users, from files of its own."""
    path = f"{folder}/{role}"
    whole = spark.read.parquet(str(cache_folder() / f"M_int_shuffled_{role}.parquet"))
    whole.where(f"user_id < {users}").drop("rank").write.parquet(path)
    return spark.read.parquet(path)


def take_turns(true: Any, pred: Any, rounds: int) -> None:
    print(f"{true.count():,} rows of true, {pred.count():,} of pred")
    calls: dict[str, Callable[[], Values]] = {
        "recdf": lambda: recdf(true, pred, "replay"),
        "RePlay": lambda: replay(true, pred),
        "recommenders": lambda: recommenders(true, pred),
    }
    found, seconds = {}, {}
    for number in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            found[name] = call()
            seconds[name] = time.perf_counter() - start
            ratio = f"{seconds[name] / seconds['recdf']:.1f} times recdf"
            print(f"round {number + 1}: {name:13} {seconds[name]:6.1f} s, {ratio}", flush=True)
    compare("RePlay", found["RePlay"], found["recdf"])
    compare("recommenders", found["recommenders"], recdf(true, pred))


def compare(name: str, theirs: Values, ours: Values) -> None:
    same = sorted(theirs.keys() & ours.keys())
    difference, where = max((abs(theirs[one] - ours[one]), one) for one in same)
    print(
        f"{name}: {len(same)} values beside recdf, largest difference {difference:.1e} at {where}"
    )


if __name__ == "__main__":
    main()

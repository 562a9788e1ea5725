"""A program for a cluster: `test_cluster` runs it as a user would, with recdf in a zip that it
sends to the workers.

The first task of its metric kills the worker that it runs on. It prints whether the results are
those of `rd.evaluate`.
"""

import os
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
from partitions.engine_cases import assert_same, frames

import recdf as rd

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.executor.memory": "600m",
    # how long a task looks for the files of a worker that is gone
    "spark.shuffle.io.retryWait": "200ms",
}


def session_on(master):
    from pyspark.sql import SparkSession

    made = SparkSession.builder.master(master)
    for name, value in SETTINGS.items():
        made = made.config(name, value)
    return made.getOrCreate()


def main(master, archive, mark):
    @rd.metric
    def deadly_once(lists):
        """A constant; larger is better, in [0, 1]."""
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return np.ones(len(lists))
        # This process was forked by a daemon, which an executor has started. Executor and worker
        # are one group.
        executor = int(
            Path(f"/proc/{os.getppid()}/stat")
            .read_text(encoding="utf-8")
            .rpartition(")")[2]
            .split()[1]
        )
        os.killpg(os.getpgid(executor), signal.SIGKILL)
        return signal.pause()

    session = session_on(master)
    session.sparkContext.addPyFile(archive)
    true, pred = frames(71)
    tables = [pa.Table.from_pandas(one, preserve_index=False) for one in (true, pred)]
    given = [session.createDataFrame(one).repartition(2) for one in tables]
    metrics = ["hhi", deadly_once]
    result = rd.spark.evaluate(*given, metrics, 5, by="model", partitions=4)
    assert Path(mark).exists()
    in_order = pred.sort_values("model", kind="stable", ignore_index=True)
    assert_same(result, rd.evaluate(true, in_order, metrics, 5, by="model"))
    print("equal", flush=True)
    session.stop()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])

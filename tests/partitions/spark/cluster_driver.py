"""A program for a cluster: `test_cluster` runs it as a user would, with recdf in a zip that it
sends to the workers.

It goes the whole chain: log, lists, metrics, join, health, decision. The first task of its metric
kills the worker that it runs on. It prints whether the results are those of pandas.
"""

import os
import signal
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from partitions.engine_cases import assert_same
from partitions.log_cases import CASES_OF_LOGS
from partitions.spark_frames import to_spark

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
    log, events, options = CASES_OF_LOGS["persons_with_several_devices"]()
    given = {role: to_spark(session, one, 2) for role, one in {"log": log, **events}.items()}
    metrics = ["hits@5", "revenue@5", "hhi", deadly_once]

    lists = rd.spark.from_impressions(**given, **options, partitions=4)
    result = rd.spark.evaluate(*lists, metrics, 5, **lists.options, partitions=4)
    assert Path(mark).exists()
    expected_lists = rd.from_impressions(log, **events, **options)
    expected = rd.evaluate(*expected_lists, metrics, 5, **expected_lists.options)
    assert_same(result, expected)
    assert lists.spec["counts"] == expected_lists.spec["counts"]
    for found, own in zip(decided(result.to_pandas()), decided(expected), strict=True):
        pd.testing.assert_frame_equal(pd.DataFrame(found), pd.DataFrame(own), rtol=1e-9)
    print("equal", flush=True)
    session.stop()


def decided(result):
    """The health of an experiment, its table and its decision, from the lists of its users."""
    sums = {"hits@5": "sum", "revenue@5": "sum", "deadly_once@5": "sum"}
    persons = result.per_user[["person_id"]].drop_duplicates().sort_values("person_id")
    groups = persons.assign(variant=np.where(np.arange(len(persons)) % 2, "A", "B"))
    user = {"user_col": "person_id"}
    users = result.join_experiment(groups, how=sums, missing="zero", **user)
    once = result.per_user.drop_duplicates("person_id")
    health = rd.experiments.experiment_health(once, groups, expected={"A": 0.5, "B": 0.5}, **user)
    names = ["hits@5", "revenue@5"]
    user |= {"health": health, "details": True}
    effect = rd.compare_variants(users, names, control="A", primary="hits@5", **user)
    roles = {"hits@5": "success", "revenue@5": ("guardrail", "-5%")}
    return health, effect, rd.experiments.decide_experiment(effect, roles=roles)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(*sys.argv[1:])

"""One local Spark session for all tests of this folder. Without pyspark or Java they are skipped,
with the reason.

They run without xdist, since a session takes seconds to start: `python -m pytest -n 0
tests/partitions/spark`.
"""

import os
import shutil
import sys
from pathlib import Path

import pytest
from partitions.spark_frames import QUICK

import recdf as rd
from recdf.inputs.machine import Sizes, sized

ROOT = Path(rd.__file__).parents[1]
# Every JVM of these tests lives for minutes at most: the quick compiler, one thread of garbage
# collection, and jars of Spark whose bytecode is not verified take less than half of its processor
# time. The clusters and servers that tests start inherit it.
os.environ.setdefault(
    "JDK_JAVA_OPTIONS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote",
)


def why_not():
    """Why there can be no session; None if there can."""
    try:
        import pyspark  # noqa: F401
    except ImportError:
        return "pyspark is not installed: pip install '.[spark,dask,test]'"
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        return "Spark needs Java 17, which is not installed"
    if "PYTEST_XDIST_WORKER" in os.environ:
        return "Spark's tests share one session: run them with -n 0"
    return None


def pytest_collection_modifyitems(items):
    reason = why_not()
    for item in items:
        if item.path.parent != Path(__file__).parent:
            continue
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=reason))
        # pyspark warns of every pandas from 3.0 on, and leaves sockets to the garbage collector.
        item.add_marker(
            pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
        )
        item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
        item.add_marker(
            pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
        )


@pytest.fixture(scope="session")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH")])
    )
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    made = SparkSession.builder.master("local[2, 2]")  # two cores; a task may fail once
    for name, value in {
        **QUICK,
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.memory": "700m",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.memory.fraction": "0.05",  # 20 MB, so that a shuffle of twice as much spills
    }.items():
        made = made.config(name, value)
    session = made.getOrCreate()
    with sized(Sizes(bucket_bytes=1)):  # so that small frames have several buckets
        yield session
    session.stop()

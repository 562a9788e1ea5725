"""A standalone master with two workers, which have recdf only as a zip: one of them is killed in
the middle."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import recdf as rd

ROOT = Path(rd.__file__).parents[1]
TESTS = Path(__file__).parents[2]


@contextmanager
def started(*command, until, env):
    """The line with the words `until` that a process of Spark writes; it ends with the block."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=env,
        start_new_session=True,
    )
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if until in line:
                break
        else:
            raise AssertionError("".join(said)[-3000:])
        yield line
    finally:
        with suppress(ProcessLookupError):  # the test has killed it
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="the test finds a worker by /proc, as Linux has it"
)
@pytest.mark.slow
def test_a_cluster_that_loses_a_worker(tmp_path):
    import pyspark

    archive = shutil.make_archive(tmp_path / "recdf", "zip", ROOT, "recdf")
    home = Path(pyspark.__file__).parent
    without = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    env = {
        **without,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    env |= {
        "SPARK_LOG_DIR": str(tmp_path),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
    }
    spark_class, deploy = str(home / "bin" / "spark-class"), "org.apache.spark.deploy"
    master = [
        spark_class,
        f"{deploy}.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--webui-port",
        "0",
    ]
    with started(*master, until="Starting Spark master at", env=env) as line:
        address = line.split("Starting Spark master at ")[1].split()[0]
        # Neither the folder of the tests nor that of the checkout is on the path of a worker.
        worker = [
            spark_class,
            f"{deploy}.worker.Worker",
            "--cores",
            "1",
            "--memory",
            "700m",
            "--webui-port",
            "0",
        ]
        worker += ["--host", "127.0.0.1", address, "--work-dir"]
        done = "Successfully registered with master"
        with (
            started(*worker, str(tmp_path / "one"), until=done, env=env),
            started(*worker, str(tmp_path / "two"), until=done, env=env),
        ):
            path = os.pathsep.join([str(ROOT), str(TESTS)])
            driver = subprocess.run(
                [
                    sys.executable,
                    str(Path(__file__).parent / "cluster_driver.py"),
                    address,
                    archive,
                    tmp_path / "mark",
                ],
                capture_output=True,
                text=True,
                env={**env, "PYTHONPATH": path},
            )
    assert driver.stdout.splitlines()[-1:] == ["equal"], driver.stderr[-3000:]

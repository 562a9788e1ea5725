"""The command on systems that lack what Linux has, as Windows does: each is simulated by what it
lacks or refuses."""

import errno
import io
import os
import signal
import sys
from pathlib import Path

import pandas as pd
import pytest
from cli.command import run
from cli.frames import CALL

import recdf as rd
from recdf.cli import commands as output
from recdf.inputs.machine import memory_bytes

pytestmark = pytest.mark.usefixtures("in_their_folder")


def test_lines_of_csv_end_once(capsys, monkeypatch):
    """Text streams of Windows write each line's end as two signs; two of their own would make an
    empty line."""
    monkeypatch.setattr(os, "linesep", "\r\n")
    code, out, _ = run(capsys, *CALL, "--format", "csv")
    assert code == 0
    assert "\r" not in out


def test_a_reader_of_stdout_that_ended_changes_nothing(capsys, monkeypatch):
    """On Windows, writing to a pipe without a reader is an invalid argument."""

    class Ended(io.StringIO):
        def write(self, text):
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(sys, "stdout", Ended())
    assert run(capsys, *CALL)[0] == 2  # elsewhere it is an error
    monkeypatch.setattr(output, "READER_ENDED", (errno.EPIPE, errno.EINVAL))
    assert run(capsys, *CALL, "--out", "out")[0] == 0
    assert Path("out/summary.parquet").exists()


def test_signals_that_a_system_lacks_are_no_error(capsys, monkeypatch):
    for name in ("SIGHUP", "SIGKILL", "SIGALRM"):
        monkeypatch.delattr(signal, name, raising=False)
    assert run(capsys, *CALL)[0] == 0


def test_memory_is_bounded_where_its_size_is_not_told(monkeypatch):
    monkeypatch.delattr(os, "sysconf", raising=False)
    assert memory_bytes(None) == 2 * 10**9


def test_a_large_file_is_read_in_parts_there(monkeypatch):
    for name in ("sysconf", "fork", "getuid", "sched_getaffinity", "fchmod", "statvfs"):
        monkeypatch.delattr(os, name, raising=False)
    found = rd.evaluate_parquet("true.parquet", "pred.parquet", "mrr", by="model")
    true, pred = pd.read_parquet("true.parquet"), pd.read_parquet("pred.parquet")
    assert found == rd.evaluate(true, pred, "mrr", by="model")

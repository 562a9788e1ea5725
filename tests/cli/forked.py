"""Processes of the command that share one import: a server that has imported recdf forks one for
each call.

Starting Python and importing pandas takes ten times as long as a small job. A forked process has a
process id, signals, limits, and the descriptors 0 to 2 of its own, as a process of a shell has.
Where the start of Python itself matters, as it does for the encoding of a terminal, a test starts a
real process.
"""

import json
import os
import select
import shlex
import socket
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from cli.command import WITH_RECDF


def serve(channel):
    """Fork a process for each call that arrives, and answer with its exit code."""
    import pandas  # noqa: F401 (what every command imports)

    import recdf.cli

    while True:
        data, streams, _, _ = socket.recv_fds(channel, 2**16, 3)
        if not data:
            return
        call = json.loads(data)
        child = os.fork()
        if not child:
            try:
                _become(call, streams)
                exec(call["script"], {})
                recdf.cli.run()  # ends this process
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(70)
        for stream in streams:
            os.close(stream)
        channel.sendall(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def _become(call, streams):
    """Give this process the streams, folder, environment and words of a call."""
    for place, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        os.dup2(streams[place], place)
        if place in call["closed"]:  # as Python starts where the shell has closed a stream
            os.close(place)
        closed = place in call["closed"]
        stream = None if closed else os.fdopen(place, mode, encoding="utf-8", closefd=False)
        setattr(sys, name, stream)
    os.closerange(3, max(3, *streams) + 1)
    os.chdir(call["folder"])
    os.environ.update(call["environment"])
    sys.argv = ["recdf", *call["words"]]


# What a shell starts in place of `recdf`: it hands its words and streams on to a process that is
# forked for them, and ends as that does.
CLIENT = """
import json, os, socket, sys

call = {"words": sys.argv[2:], "closed": [], "folder": os.getcwd(), "script": "", "environment": {}}
with socket.socket(socket.AF_UNIX) as door:
    door.connect(sys.argv[1])
    socket.send_fds(door, [json.dumps(call).encode()], [0, 1, 2])
    os._exit(int(door.recv(100)))
"""


class Forked:
    """What a call left: exit code, stdout and stderr as bytes."""

    def __init__(self, code, out, err):
        self.returncode, self.stdout, self.stderr = code, out, err


def in_shell(script):
    """What bash does with a script that calls `recdf`, each time in a new Python."""
    words = ["bash", "-c", f'recdf() {{ {sys.executable} -m recdf "$@"; }}\n{script}']
    return subprocess.run(words, env=WITH_RECDF, capture_output=True, text=True, check=False)


class Forks:
    """Calls of `recdf`, each in a process of its own."""

    def __init__(self):
        self.ours, theirs = socket.socketpair()
        code = (
            "import socket, sys; from cli.forked import serve; "
            f"serve(socket.socket(fileno={theirs.fileno()}))"
        )
        path = os.pathsep.join([WITH_RECDF["PYTHONPATH"], str(Path(__file__).parents[1])])
        environment = WITH_RECDF | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        self.server = subprocess.Popen(
            [sys.executable, "-c", code], env=environment, pass_fds=[theirs.fileno()]
        )
        theirs.close()

    def __call__(self, *words, closed=(), stdout=None, stderr=None, script="", **environment):
        """Call `recdf words`; `script` runs in its process before, and `closed` are streams that
        the shell closed."""
        (out, to_out), (err, to_err) = (
            os.pipe(),
            os.pipe(),
        )  # which hold more than a small job writes
        call = {
            "words": [str(word) for word in words],
            "closed": closed,
            "folder": os.getcwd(),
            "script": script,
        }
        data = json.dumps(call | {"environment": environment}).encode()
        with (
            open(os.devnull, "rb") as nothing,
            open(out, "rb") as read_out,
            open(err, "rb") as read_err,
        ):
            given = to_out if stdout is None else stdout, to_err if stderr is None else stderr
            socket.send_fds(self.ours, [data], [nothing.fileno(), *given])
            code = int(self.ours.recv(100))
            os.close(to_out)
            os.close(to_err)
            return Forked(code, read_out.read(), read_err.read())

    def shell(self, script):
        """What bash does with a script that calls `recdf`, one call after another."""
        with (
            tempfile.TemporaryDirectory() as folder,
            socket.socket(socket.AF_UNIX) as door,
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        ):
            door.bind(place := os.path.join(folder, "door"))
            door.listen()
            client = shlex.join([sys.executable, "-I", "-S", "-c", CLIENT, place])
            words = ["bash", "-c", f'recdf() {{ {client} "$@"; }}\n{script}']
            shell = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            while shell.poll() is None:
                if select.select([door], [], [], 0.02)[0]:
                    self._hand_on(door.accept()[0])
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(words, shell.returncode, out.read(), err.read())

    def _hand_on(self, caller):
        with caller:
            data, streams, _, _ = socket.recv_fds(caller, 2**16, 3)
            socket.send_fds(self.ours, [data], streams)
            for stream in streams:
                os.close(stream)
            caller.sendall(self.ours.recv(100))

    def close(self):
        self.ours.close()
        self.server.wait(60)

"""The other libraries: install each into an environment of its own, and run the package `adapters`
there.

    python benchmarks/peers.py install [NAME ...]     # every peer when none is named
    python benchmarks/peers.py list
    python benchmarks/peers.py time S_int_sorted --k 5 10 20 [--peer NAME ...] [--repeat 3]

Environments live in `$RECDF_CACHE/peers` (default `~/.cache/recdf/peers`), frames in
`$RECDF_CACHE/workload`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent  # holds the package `adapters`


@dataclass(frozen=True)
class Peer:
    """What pip installs: `requirements`, then `bare` without its dependencies where those bring far
    more than the metrics need. `environment` is another peer's, where two adapters share one
    library."""

    requirements: tuple[str, ...] = ()
    bare: str | None = None
    python: tuple[int, int, int] = (3, 11, 0)  # lowest
    environment: str | None = None
    placeholders: tuple[
        tuple[str, str], ...
    ] = ()  # modules that are imported but that no metric calls


# LensKit imports torch for its types; the metrics never touch a tensor, and the real package is
# gigabytes.
TORCH_PLACEHOLDER = """\
from types import SimpleNamespace


class Tensor: ...


class Generator: ...


def is_tensor(value):
    return False


cuda = SimpleNamespace(is_available=lambda: False)
jit = SimpleNamespace(ignore=lambda function: function)
"""

OLD_NUMPY = ("numpy>=1.26,<2", "pyarrow<24")  # pyarrow 24 and later refuse numpy 1

LENSKIT_NEEDS = (
    "click~=8.1",
    "humanize~=4.2",
    "lazy-loader>=0.4",
    "numpy>=2.0",
    "packaging>=23.0",
    "pandas>=2.2,<4",
    "prettytable~=3.14",
    "psutil>=6",
    "py-cpuinfo>=9.0",
    "pyarrow>=20,!=21.*",
    "pydantic-settings~=2.8",
    "pydantic~=2.12",
    "pyzmq>=26",
    "requests~=2.28",
    "rich>=13.5",
    "scipy>=1.13",
    "structlog>=23.2",
    "threadpoolctl>=3.0",
    "typing-extensions~=4.15",
    "xopen~=2.0",
)

PEERS = {
    "rectools": Peer(
        (*OLD_NUMPY, "pandas<3", "scipy>=1.14.1", "attrs<24", "typeguard<5", "pydantic<3", "tqdm"),
        bare="rectools==0.19.0",
    ),
    "replay": Peer(("replay-rec==0.22.0",)),
    "replay_pandas": Peer(environment="replay"),
    "ranx": Peer(("ranx==0.3.21", "pyarrow")),
    "pytrec_eval": Peer(("pytrec_eval-terrier==0.5.11", "pandas", "pyarrow")),
    "ir_measures": Peer(
        ("ir_measures==0.4.3", "pyndeval==0.0.8", "cwl-eval==1.0.12", "pandas", "pyarrow")
    ),
    "recommenders": Peer(
        ("pandas>2,<3", "scikit-learn<2", "numba<1", "pyarrow"), bare="recommenders==1.2.1"
    ),
    "recpack": Peer(
        (*OLD_NUMPY, "scipy<2", "scikit-learn<2", "pandas>=2.1.4,<3", "PyYAML>=6.0.1", "tqdm"),
        bare="recpack==0.3.6",
    ),
    # numpy below 2: a_ndcg reads `np.NaN`, which numpy 2 has dropped
    "rs_metrics": Peer(("rs_metrics==0.6.0", *OLD_NUMPY)),
    "lenskit": Peer(
        LENSKIT_NEEDS,
        bare="lenskit==2026.4.0",
        python=(3, 12, 5),
        placeholders=(("torch", TORCH_PLACEHOLDER),),
    ),
    "sklearn": Peer(("scikit-learn==1.9.1", "pandas", "pyarrow")),
    "implicit": Peer(("implicit==0.7.3", "pandas", "pyarrow")),
    "cornac": Peer(("cornac==3.0.1", "pandas", "pyarrow")),
    "recbole": Peer(("recbole==1.2.1", "pandas", "pyarrow", "torch")),
    "torchmetrics": Peer(("torchmetrics==1.9.0", "pandas", "pyarrow", "torch")),
    "fuxictr": Peer(("pandas", "pyarrow", "polars", "scikit-learn"), bare="fuxictr==2.3.10"),
    "lightfm": Peer(("lightfm==1.17", "pandas", "pyarrow")),
    "evidently": Peer(("evidently==0.7.23", "pyarrow")),
    "tf_ranking": Peer(
        (*OLD_NUMPY, "pandas", "tensorflow-cpu==2.15.*"), bare="tensorflow-ranking==0.5.5"
    ),
    "recmetrics": Peer(("recmetrics==0.1.5", "pandas", "pyarrow")),
}


def cache_folder() -> Path:
    return Path(os.environ.get("RECDF_CACHE", "~/.cache/recdf")).expanduser()


def environment(name: str) -> Path:
    return cache_folder() / "peers" / (PEERS[name].environment or name)


def interpreter(name: str) -> Path:
    return environment(name) / "bin" / "python"


def installed() -> list[str]:
    """The peers whose installation ended well."""
    return [name for name in PEERS if (environment(name) / "installed").exists()]


# -- installing


def install(name: str) -> None:
    peer, folder = PEERS[name], environment(name)
    if peer.environment is not None:
        return
    (folder / "installed").unlink(missing_ok=True)
    subprocess.run([find_python(peer.python), "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(interpreter(name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *peer.requirements], check=True)
    if peer.bare is not None:
        subprocess.run([*pip, "--no-deps", peer.bare], check=True)
    for module, source in peer.placeholders:
        (site_packages(name) / f"{module}.py").write_text(source)
    (folder / "installed").touch()


def site_packages(name: str) -> Path:
    command = [
        str(interpreter(name)),
        "-c",
        "import sysconfig; print(sysconfig.get_path('purelib'))",
    ]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def find_python(lowest: tuple[int, int, int]) -> str:
    """This Python when it is new enough, else one on the path or among those of pyenv."""
    if sys.version_info >= lowest:
        return sys.executable
    names = [f"python3.{minor}" for minor in range(lowest[1], lowest[1] + 3)]
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser()
    for command in [*names, *map(str, sorted(pyenv.glob("versions/*/bin/python")))]:
        if python_version(command) >= lowest:
            return command
    raise FileNotFoundError(f"no Python {'.'.join(map(str, lowest))} or newer on this machine")


def python_version(command: str) -> tuple[int, ...]:
    """Of an interpreter; () when the command does not run."""
    script = "import sys; print(*sys.version_info[:3])"
    try:
        answer = subprocess.run([command, "-c", script], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return ()
    return tuple(map(int, answer.stdout.split()))


def install_all(names: list[str]) -> int:
    """0 when every peer is there; one that cannot be installed does not keep the others from it."""
    failed = []
    for name in names:
        try:
            install(name)
            print(f"{name}: installed", flush=True)
        except (OSError, subprocess.CalledProcessError) as error:
            failed.append(name)
            print(f"{name}: not installed ({error})", flush=True)
    return len(failed)


# -- running


def run_adapter(
    command: str, name: str, request: dict[str, Any], timeout: float | None = None
) -> dict[str, Any]:
    """What the package `adapters` answers to a request, run by the peer's interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "request.json", Path(folder) / "answer.json"
        asked.write_text(json.dumps(request))
        arguments = [
            str(interpreter(name)),
            "-m",
            "adapters",
            command,
            name,
            str(asked),
            str(answered),
        ]
        found = {**os.environ, "PYTHONPATH": str(HERE)}
        done = subprocess.run(
            arguments,
            check=False,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=folder,
            env=found,
        )
        if done.returncode:
            raise RuntimeError(f"{name}: {done.stderr.strip()[-2000:]}")
        return json.loads(answered.read_text(encoding="utf-8"))


def measure(name: str, frames: dict[str, dict[str, str]], ks: list[int]) -> dict[str, Any]:
    """Values per user and global numbers of one peer.

    `frames`: frame name -> {"true": path, "pred": path, ...}. Where `true` holds rows of relevance
    0, "relevant" is the path of the other rows, for a library that takes every row for relevant.
    """
    return run_adapter("measure", name, {"frames": frames, "k": ks})


def timed(name: str, true: Path, pred: Path, ks: list[int], repeat: int = 3) -> dict[str, Any]:
    """`seconds` of each repetition, `peak_mb` over the loaded frames, and the `mean` of each
    metric."""
    answer = run_adapter(
        "time", name, {"true": str(true), "pred": str(pred), "k": ks, "repeat": repeat}
    )
    return answer["versions"] | answer["answer"]


def print_times(names: list[str], workload: str, ks: list[int], repeat: int) -> None:
    folder = cache_folder() / "workload"
    for name in names:
        try:
            answer = timed(
                name,
                folder / f"{workload}_true.parquet",
                folder / f"{workload}_pred.parquet",
                ks,
                repeat,
            )
        except RuntimeError as error:
            print(f"{name:14} {error}", flush=True)
            continue
        shown = "  ".join(f"{seconds:.3f}" for seconds in answer["seconds"])
        median = statistics.median(answer["seconds"])
        library, peak = answer["library"], answer["peak_mb"]
        print(
            f"{name:14} {library:28} median {median:8.3f} s   peak {peak:6} MB   [{shown}]",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("install").add_argument("names", nargs="*")
    commands.add_parser("list")
    time = commands.add_parser("time")
    time.add_argument("workload")
    time.add_argument("--k", type=int, nargs="+", default=[5, 10, 20])
    time.add_argument("--peer", action="append")
    time.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    if args.command == "install":
        return install_all(args.names or list(PEERS))
    if args.command == "list":
        print(*installed(), sep="\n")
    else:
        print_times(
            args.peer or [name for name in installed() if name != "sklearn"],
            args.workload,
            args.k,
            args.repeat,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The two commands that `peers.py` runs inside a library's own environment."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

from . import ADAPTERS
from .measuring import measure, versions
from .timing import benchmark


def main() -> None:
    command, peer, request_path, answer_path = sys.argv[1:]
    warnings.simplefilter("ignore")  # the libraries' own deprecations
    adapter, request = ADAPTERS[peer], json.loads(Path(request_path).read_text(encoding="utf-8"))
    answer = measure(adapter, request) if command == "measure" else benchmark(adapter, request)
    found = {"versions": versions(adapter), "judged": adapter.judged, "answer": answer}
    Path(answer_path).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()

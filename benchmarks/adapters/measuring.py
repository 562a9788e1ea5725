"""What a library computes on each frame of a request."""

from __future__ import annotations

import importlib.metadata
import math
import platform
from collections.abc import Callable, Mapping
from typing import Any

from .record import Adapter, Means, Tables, Values


def versions(adapter: Adapter) -> dict[str, str]:
    found = {
        "library": f"{adapter.distribution} {importlib.metadata.version(adapter.distribution)}"
    }
    found["python"] = platform.python_version()
    for name in ("pandas", "numpy", "polars"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def measure(adapter: Adapter, request: dict[str, Any]) -> dict[str, Any]:
    """Every frame of the request: {frame: {accuracy, beyond}}, an error as text where the library
    raises one."""
    answer: dict[str, Any] = {}
    for name, files in request["frames"].items():
        relevant = files.pop("relevant", files["true"])
        if not adapter.judged:
            files["true"] = relevant
        tables = Tables(**{key: adapter.read(path) for key, path in files.items()})
        answer[name] = {
            "accuracy": attempt(adapter.accuracy, tables.true, tables.pred, request["k"])
        }
        if tables.log is not None and adapter.beyond is not None:
            answer[name]["beyond"] = attempt(adapter.beyond, tables, request["k"])
    return answer


def attempt(function: Callable[..., tuple[Values, Means]], *arguments: Any) -> dict[str, Any]:
    try:
        values, means = function(*arguments)
    except Exception as error:  # the library's own error is an answer too
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {
        "per_user": {name: plain(by_user) for name, by_user in values.items()},
        "mean": plain(means),
    }


def plain(values: Mapping[Any, float]) -> dict[str, float]:
    """JSON-safe: string keys; NaN stays NaN."""
    return {
        str(key): float(value) if value is not None else math.nan for key, value in values.items()
    }

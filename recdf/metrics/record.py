"""What is asked of a metric: `Request`, and what it must know of the metric itself, `Record`.

Contract: this module stands below everything that computes, so that a `Call` can hold requests without knowing how a
metric is called or registered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol


class Record(Protocol):
    """The parts of a metric that requests, calls and computations read. `Metric` has them all."""

    name: str
    kernel: Callable[..., Any]
    bounds: tuple[float | None, float | None]
    needs: tuple[str, ...]
    outputs: tuple[str, ...]
    per: Literal["list", "item"]

    @property
    def built_in(self) -> bool:
        """Whether the metric comes with the package."""


@dataclass(frozen=True)
class Request:
    """One metric with its parameters at one k (None: k is ignored), and the name of its results."""

    metric: Record
    params: dict[str, Any]
    k: int | None
    name: str
    own_column: str | None = None

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the per-user table."""
        if self.own_column is not None:
            return [self.own_column]
        at = "" if self.k is None else f"@{self.k}"
        if len(self.metric.outputs) == 1:
            return [self.name + at]
        return [self.name.replace(self.metric.name, output, 1) + at for output in self.metric.outputs]

    @property
    def definition(self) -> str:
        """Canonical metric string with every parameter written out."""
        inside = ",".join(f"{name}={show(value)}" for name, value in self.params.items())
        return self.metric.name + (f"({inside})" if inside else "") + ("" if self.k is None else f"@{self.k}")


def show(value: Any) -> str:
    """A parameter's value as metric strings write it: a function by its name."""
    return getattr(value, "__name__", None) or str(value)

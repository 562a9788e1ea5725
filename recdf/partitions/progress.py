"""The progress of a long call on stderr: a bar of tqdm if it is installed, else plain lines."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

SECONDS_BETWEEN_LINES = 2.0


class Progress:
    """Count the rows that are done. Nothing is shown unless stderr is a terminal or `show` is True."""

    def __init__(self, total: int, show: bool | None) -> None:
        self.total, self.done, self.shown_at = total, 0, time.monotonic()
        self.show = sys.stderr.isatty() if show is None else show
        self.bar: Any = None

    def __enter__(self) -> Progress:
        if self.show:
            try:
                from tqdm.auto import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore] # no dependency
            except ImportError:
                return self
            self.bar = tqdm(total=self.total, unit=" rows", unit_scale=True, desc="recdf")
        return self

    def add(self, rows: int) -> None:
        """Record that some more rows are done."""
        self.done += rows
        if self.bar is not None:
            self.bar.update(rows)
        elif self.show and (self.done >= self.total or time.monotonic() - self.shown_at >= SECONDS_BETWEEN_LINES):
            self.shown_at = time.monotonic()
            print(f"recdf: {self.done / max(self.total, 1):.0%} done", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.close()

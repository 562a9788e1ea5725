"""The progress of a long call on stderr, in plain lines.

    with Progress(len(groups), "bootstrap_ci") as progress:
        for group in groups:
            ...                 # a Progress in here moves the outer one within its present step
            progress.add()

Contract: by default a call says something only after two seconds, on a terminal, and in the main
thread. Nothing that is computed depends on it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar

SHOWN_AFTER = 2.0  # before the first line of a call, and between two lines


class Progress:
    """Count the steps that are done, and show their share of the total.

    total : number of steps · what : the public name of the call, for the line · show : True shows
    the share at once and wherever stderr leads, False shows nothing, None shows it after two
    seconds if stderr is a terminal.
    """

    def __init__(
        self,
        total: int,
        what: str,
        show: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total, self.what, self.show, self.clock = max(total, 1), what, show, clock
        self.done = self.furthest = 0.0
        self.shown_at, self.spoken = clock(), show is True
        self.outer = _innermost.get()

    def __enter__(self) -> Progress:
        self.token = _innermost.set(self)
        return self

    def add(self, steps: int = 1) -> None:
        """Record that some more steps are done."""
        self.done += steps
        self._move(self.done)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _innermost.reset(self.token)
        if kind is None:
            self._move(self.total)

    def _move(self, done: float) -> None:
        """Show that this number of steps is done. The share that is shown never goes back."""
        if self.outer is not None:
            self.outer._move(self.outer.done + min(done / self.total, 1.0))
            return
        if done <= self.furthest:
            return
        self.furthest = done
        late = self.clock() - self.shown_at >= SHOWN_AFTER
        if not late and not (self.spoken and done >= self.total):
            return
        visible = self.show
        if visible is None:
            of_main = threading.current_thread() is threading.main_thread()
            visible = of_main and sys.stderr.isatty()
        if visible:
            self.shown_at, self.spoken = self.clock(), True
            share = f"{done / self.total:.0%}"
            print(f"recdf: {share} of {self.what} done", file=sys.stderr, flush=True)


# The Progress that others start inside of. It is None in new threads, where a share would be one of
# many.
_innermost: ContextVar[Progress | None] = ContextVar("recdf_progress", default=None)

"""How a call gets to the workers of an engine: as bytes, which each process of a worker unpickles only once.

Contract: a user's own metrics are pickled by value, together with the functions that they call. A worker cannot import
the notebook or the script that defines them. Everything else is pickled as cloudpickle does it by default.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import sys
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pickle import loads
from typing import Any, Protocol

import numpy as np
import pandas as pd

from .._version import __version__
from ..errors import EngineError, MissingExtraError, OptionError
from ..metrics.call import Call
from ..metrics.metric import Metric
from ..metrics.record import again
from .engine_errors import plain_line


@dataclass(frozen=True)
class Shared:
    """What the work on every bucket needs.

    call : the call with its side tables · by_values : the `by` values of all buckets · given, given_bucket : the lists
    that the caller gave as the population (`users=`), and the bucket of each.
    """

    call: Call
    by_values: pd.DataFrame | None = None
    given: pd.DataFrame | None = None
    given_bucket: np.ndarray | None = None

    def of(self, bucket: int) -> Call:
        """Return the call for one bucket. If the caller gave the population, it has the lists of this bucket only."""
        if self.given is None:
            return self.call
        mine = self.given.iloc[self.given_bucket == bucket].reset_index(drop=True)
        return replace(self.call, options=self.call.options.updated(users=mine))


class Handle(Protocol):
    """How a worker gets the bytes. `digest` identifies them."""

    @property
    def digest(self) -> str: ...
    def read(self) -> bytes: ...


@dataclass(frozen=True)
class Inline:
    """Bytes that are sent with every task. They should be small: a megabyte at most."""

    digest: str
    data: bytes

    def read(self) -> bytes:
        return self.data


@dataclass(frozen=True)
class Here:
    """The object itself, for work in threads of this process."""

    shared: Shared


@dataclass(frozen=True)
class Sent:
    """Work on its way to the workers. A worker with another version of recdf refuses it."""

    work: Any

    def __call__(self, *given: Any) -> Any:
        return self.work(*given)

    def __reduce__(self) -> Any:
        return received, (__version__, _cloudpickle().dumps(self.work))


def received(version: str, data: bytes) -> Sent:
    """Return the work that another process sent, if it has the same version of recdf."""
    if version != __version__:
        raise EngineError(f"a worker has recdf {__version__}, and this process has {version}")
    return Sent(loads(data))


def digest_of_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


# What this process opened last. It is kept, since the process works on many buckets of one call.
_OPENED: OrderedDict[str, Any] = OrderedDict()
MOST_OPENED = 2


def opened(handle: Handle | Here) -> Any:
    """Return the object that was pickled, such as a `Shared`. A process unpickles it only once."""
    if isinstance(handle, Here):
        return handle.shared
    if handle.digest not in _OPENED:
        data = handle.read()
        try:
            _OPENED[handle.digest] = loads(data)
        except Exception as error:  # such as a frame that another version of pandas pickled
            why = f"its packages have other versions ({type(error).__name__}: {error})"
            raise EngineError(f"a worker cannot read the call, since {why}") from error
        while len(_OPENED) > MOST_OPENED:
            _OPENED.popitem(last=False)
    return _OPENED[handle.digest]


def to_bytes(shared: Shared) -> bytes:
    """Return everything that the workers need as bytes. Raises OptionError if a metric or an option has none."""
    requests = shared.call.requests
    own = {one.metric.kernel.__module__ for one in requests if not one.metric.built_in}
    pickles = _cloudpickle()
    with _by_value(pickles, own):
        try:
            return _dumped(pickles, shared)
        except MemoryError:
            raise
        except Exception as error:  # of any class: an object says itself why it cannot be pickled
            what = next((f"the metric {one.metric.name!r}" for one in requests if not _can_be_sent(pickles, one)), None)
            why = plain_line(str(error)).rstrip(".")
            raise OptionError(
                f"{what or 'an option or a side table'} cannot be sent to the workers: {why}; make such objects "
                "inside the function, or import them from a module"
            ) from error


def _can_be_sent(pickles: Any, one: Any) -> bool:
    try:
        _dumped(pickles, one)
    except Exception:
        return False
    return True


def _dumped(pickles: Any, one: Any) -> bytes:
    """Return an object as bytes. A user's own metric is pickled as the call that makes it again."""

    class Pickler(pickles.CloudPickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, Metric) and not obj.built_in:
                return again, (type(obj), obj.kernel, obj.keywords)
            return super().reducer_override(obj)

    sink = io.BytesIO()
    Pickler(sink).dump(one)
    return sink.getvalue()


@contextmanager
def _by_value(pickles: Any, names: set[str]) -> Iterator[None]:
    """Pickle the functions of some modules by value, with all that they use from these modules."""
    known = pickles.list_registry_pickle_by_value()
    modules = [sys.modules[name] for name in sorted(names) if name in sys.modules and name not in (*known, "__main__")]
    for module in modules:
        pickles.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            pickles.unregister_pickle_by_value(module)


def _cloudpickle() -> Any:
    """Return cloudpickle, which comes with Dask, or the copy of it inside pyspark."""
    for name in ("cloudpickle", "pyspark.cloudpickle"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise MissingExtraError("an engine sends its calls to workers with cloudpickle, which is not installed")

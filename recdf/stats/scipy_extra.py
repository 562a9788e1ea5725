"""SciPy, imported by the functions that use it: the extra `recdf[stats]`."""

from __future__ import annotations

from typing import Any

from ..errors import MissingExtraError


def scipy_module(name: str) -> Any:
    """Return `scipy.special` or `scipy.stats`, or say which extra is missing."""
    try:
        if name == "special":
            import scipy.special as module  # type: ignore[import-untyped]  # SciPy ships no types
        else:
            import scipy.stats as module  # type: ignore[import-untyped]  # the same
    except ImportError as error:
        raise MissingExtraError(
            "t tests and χ² tests need SciPy, which is not installed: pip install 'recdf[stats]'"
        ) from error
    return module

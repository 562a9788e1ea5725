"""The arguments that the engines share with `evaluate`: how they get into signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import pandas as pd

from ..evaluation.carry import Carry
from ..evaluation.evaluate import evaluate
from ..inputs.accepted import OptionArguments
from ..inputs.options import DESCRIPTION, NAMES
from ..matching.side_tables.records import SIDE_TABLES


class EngineArguments(OptionArguments, total=False):
    """Side tables, `item_by`, `carry` and the shared options as keyword arguments. Side tables may be engine frames."""

    items: Any
    log: Any
    aspects: Any
    features: Any
    base: Any
    popular: Any
    item_by: str | None
    carry: Carry


def not_a_frame(role: str, data: Any, engine: str, make: str) -> TypeError:
    """Return the error for an argument that is no frame of the engine. `make` makes one from a pandas frame."""
    kind = type(data)
    if isinstance(data, pd.DataFrame):
        words = f"{role} is a pandas DataFrame; pass frames in memory to rd.evaluate, or make a {engine} frame: {make}"
        return TypeError(words)
    what = "None" if data is None else f"a {kind.__module__.partition('.')[0]} {kind.__name__}"
    return TypeError(f"{role} is {what}; expected a {engine} DataFrame")


Function = TypeVar("Function", bound=Callable[..., Any])


def takes_engine_options(name: str) -> Callable[[Function], Function]:
    """Show the arguments of `evaluate` in the signature and the docstring of an engine's function."""

    def shown(function: Function) -> Function:
        known = inspect.signature(evaluate).parameters
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        more = [known[name] for name in (*SIDE_TABLES, "item_by", "carry", *NAMES)]
        function.__signature__ = signature.replace(parameters=own + more)  # type: ignore[attr-defined]
        doc = (
            (inspect.getdoc(function) or "").replace("{arguments}", _arguments(name)).replace("{options}", DESCRIPTION)
        )
        function.__doc__ = doc
        return function

    return shown


def _arguments(name: str) -> str:
    """Return what the docstring of `evaluate` says about the arguments from `metrics` to the shared options."""
    doc = inspect.getdoc(evaluate) or ""
    text = doc[doc.index("metrics : str") : doc.index(DESCRIPTION[:20])].rstrip()
    return text.replace("items : DataFrame, list", f"items : DataFrame (of pandas or {name}), list")

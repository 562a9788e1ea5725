"""Results that a command is given: the folder of one, or the folders of several runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import OptionError, closest
from ..evaluation.joined_results import join_results
from ..evaluation.result import Evaluation, read_parquet

RUNS = {
    "RESULTS ...": "folder that recdf evaluate --out wrote; several folders are models, which have "
    "the names of the folders"
}


def as_paths(given: Path | Sequence[Path]) -> list[Path]:
    """Return the folders of an argument that takes one or several."""
    return [given] if isinstance(given, Path) else list(given)


def read_results(paths: Sequence[Path]) -> Evaluation:
    """Read one result, or join those of several folders, each named as its folder."""
    if len(paths) == 1:
        return read_parquet(paths[0])
    shared = Path(os.path.commonpath([path.absolute() for path in paths]))
    names = [path.absolute().name for path in paths]
    if len({*names}) < len(names):  # runs/a/results and runs/b/results
        names = [path.absolute().relative_to(shared).as_posix() for path in paths]
    if len({*names}) < len(names):
        raise OptionError(f"{' '.join(map(str, paths))} names a folder twice")
    return join_results(dict(zip(names, paths, strict=True)))


def label(argument: str, text: str | None, values: pd.Series) -> Any:
    """Return the label whose text this is, such as the number 3 for "3"; None if there is no
    text."""
    if text is None:
        return None
    labels = values.dropna().unique().tolist()
    for label in labels:
        if str(label) == text:
            return label
    known = ", ".join(map(str, labels))
    raise OptionError(
        f"--{argument} {text}: no such {values.name}; the result has {known}{closest(text, labels)}"
    )

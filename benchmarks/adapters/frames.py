"""Conversions of frames that several libraries need."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .record import Means, Values


def module_of(package: str, file: str) -> Any:
    """Import one file of a package alone, where the package imports what its metrics do not
    need."""
    found = importlib.util.find_spec(package)
    spec = importlib.util.spec_from_file_location(
        f"{package}_{Path(file).stem}", Path(found.origin).parent / file
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ranked(pred: Any) -> Any:
    """Rows in rank order, with a column `rank`, for the libraries that read the one or the other.

    The benchmark gives scores alone, and the ranks are part of the conversion; rows already in
    order are not sorted.
    """
    if "rank" in pred.columns:
        return pred.sort_values(["user_id", "rank"], kind="stable")
    scores, starts = pred["score"].to_numpy(), list_starts(pred)
    falling = scores[1:] <= scores[:-1]
    if not (pred["user_id"].is_monotonic_increasing and (falling | starts[1:]).all()):
        pred = pred.sort_values(["user_id", "score"], ascending=[True, False], kind="stable")
        starts = list_starts(pred)
    position, first = np.arange(len(pred)), np.flatnonzero(starts)
    return pred.assign(rank=position - np.repeat(first, np.diff(first, append=len(pred))) + 1)


def list_starts(pred: Any) -> np.ndarray:
    """True for a row whose user is not that of the row before."""
    users = pred["user_id"].to_numpy()
    starts = np.ones(len(users), dtype=bool)
    starts[1:] = users[1:] != users[:-1]
    return starts


def top(pred: Any, k: int) -> Any:
    """The first k of each list, for the metrics that have no k of their own."""
    return pred[pred["rank"] <= k].reset_index(drop=True)


def nested(frame: Any, column: str) -> dict[str, dict[str, float]]:
    """{user: {item: value}} with string ids, each label made once."""
    users, user_labels = pd.factorize(frame["user_id"])
    items, item_labels = pd.factorize(frame["item_id"])
    order = users.argsort(kind="stable")
    labels = item_labels.astype(str).to_numpy(dtype=object)[items[order]].tolist()
    values = frame[column].to_numpy()[order].tolist()
    ends = np.cumsum(np.bincount(users)).tolist()
    starts = [0, *ends[:-1]]
    return {
        user: dict(zip(labels[start:end], values[start:end], strict=True))
        for user, start, end in zip(user_labels.astype(str), starts, ends, strict=True)
    }


def with_relevance(true: Any) -> Any:
    return true if "relevance" in true.columns else true.assign(relevance=1)


def mean(values: Values) -> Means:
    """For libraries that leave the mean to the caller: the plain mean over the users they
    report."""
    return {
        name: sum(by_user.values()) / len(by_user) for name, by_user in values.items() if by_user
    }

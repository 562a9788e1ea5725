"""Generated frames on which `recdf` and the other libraries are compared.

Only `Generator.random` is drawn from, so that every numpy version makes the same frames; `digest`
proves it. Scores are above 0 (recpack takes 0 for "not recommended"), rows stand in rank order
within a user, and equal scores keep row order in `rank`, so that rank, score and row order differ
in nothing but ties.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pandas as pd

SEED = 7
K = [1, 5, 10, 20, 50]
N_USERS = 40
N_CATEGORIES = 6


@dataclass
class ParityFrame:
    """`true` and `pred`, and for the metrics beyond accuracy the tables `log`, `items`, `features`
    and `base`.

    `judged`: `true` holds rows of relevance 0, which only the libraries of trec_eval's kind take
    for not relevant. The others are given `relevant` in its place.
    """

    true: pd.DataFrame
    pred: pd.DataFrame
    side: dict[str, pd.DataFrame] = field(default_factory=dict)
    judged: bool = False

    @property
    def relevant(self) -> pd.DataFrame:
        """The rows of `true` that are relevant."""
        return (
            self.true[self.true["relevance"] > 0].reset_index(drop=True)
            if self.judged
            else self.true
        )

    def tables(self) -> dict[str, pd.DataFrame]:
        return {"true": self.true, "pred": self.pred, **self.side}

    def digest(self) -> str:
        """Of labels and values, whatever the dtype of the strings."""
        text = "".join(
            f"{name}\n{table.to_csv(index=False)}" for name, table in self.tables().items()
        )
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Draw:
    """Random choices out of one stream of doubles."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed).random

    def number(self, low: int, high: int) -> int:
        """An integer from low to high, both possible."""
        return low + int(self.random() * (high - low + 1))

    def items(self, n: int, n_items: int, tilt: float = 1.0) -> np.ndarray:
        """n different item codes, low codes more likely with a larger tilt."""
        weight = np.arange(1, n_items + 1) ** -tilt
        return np.argsort(np.log(self.random(n_items)) / weight)[::-1][:n]


def long_frame(lists: dict[int, np.ndarray]) -> pd.DataFrame:
    users = np.repeat(
        np.array(list(lists), dtype=np.int64), [len(items) for items in lists.values()]
    )
    return pd.DataFrame(
        {"user_id": users, "item_id": np.concatenate(list(lists.values())).astype(np.int64)}
    )


def pred_frame(lists: dict[int, np.ndarray], draw: Draw, levels: int | None = None) -> pd.DataFrame:
    """Scores fall with the rank; with `levels`, they are rounded up to few values, so that many are
    equal."""
    pred = long_frame(lists)
    scores = [np.sort(draw.random(len(items)))[::-1] for items in lists.values()]
    pred["score"] = np.concatenate(scores)
    if levels is not None:
        pred["score"] = np.ceil(pred["score"] * levels) / levels
    pred["rank"] = pred.groupby("user_id").cumcount() + 1
    return pred


def labelled(frame: pd.DataFrame, user_label: str, item_label: str) -> pd.DataFrame:
    """Integer codes as strings: `u7` sorts after `u12`."""
    labels = {"user_id": user_label, "item_id": item_label}
    return frame.assign(
        **{name: [text.format(code) for code in frame[name]] for name, text in labels.items()}
    )


def side_tables(
    draw: Draw, n_items: int, n_users: int, pred: pd.DataFrame, seen: bool
) -> dict[str, pd.DataFrame]:
    """A log that does not know the last items, a catalogue that lacks one item of ten, 0/1
    features, a baseline.

    Without `seen`, nothing in the log was recommended (recommenders refuses such a pair).
    """
    log = long_frame(
        {
            user: draw.items(draw.number(3, 15), n_items - 10, tilt=0.7)
            for user in range(1, n_users + 1)
        }
    )
    if not seen:
        known = pd.MultiIndex.from_frame(pred[["user_id", "item_id"]])
        log = log[~pd.MultiIndex.from_frame(log).isin(known)].reset_index(drop=True)
    codes = np.arange(n_items)
    items = pd.DataFrame(
        {"item_id": codes, "category": [f"c{int(x * N_CATEGORIES)}" for x in draw.random(n_items)]}
    )
    flags = (draw.random((n_items, 5)) < 0.4).astype(np.int64)
    flags[:, 0] |= flags.sum(axis=1) == 0  # recommenders divides by the norm of a feature vector
    features = pd.concat(
        [items[["item_id"]], pd.DataFrame(flags, columns=[f"f{i}" for i in range(5)])], axis=1
    )
    base = pred_frame(
        {user: draw.items(20, n_items, tilt=0.5) for user in range(1, n_users + 1)}, draw
    )
    return {
        "log": log,
        "items": items[codes % 10 != 9] if seen else items,
        "features": features,
        "base": base,
    }


def plain(
    seed: int, levels: int | None = None, first_item: int = 0, n_pred: int = 20
) -> ParityFrame:
    """`n_pred` recommendations and 1 to 12 relevant items a user."""
    draw, users = Draw(seed), range(1, N_USERS + 1)
    true = long_frame(
        {user: first_item + draw.items(draw.number(1, 12), 60, tilt=0.4) for user in users}
    )
    pred = pred_frame(
        {user: first_item + draw.items(n_pred, 60, tilt=0.4) for user in users}, draw, levels
    )
    return ParityFrame(true, pred)


def with_side_tables() -> ParityFrame:
    frame = plain(SEED)
    frame.side = side_tables(Draw(SEED + 100), 60, N_USERS, frame.pred, seen=False)
    return frame


def holes() -> ParityFrame:
    """Users without recommendations or without truth, short lists, and more relevant items than any
    k."""
    draw, users = Draw(SEED + 1), range(1, N_USERS + 1)
    true = {
        user: draw.items(60 if user % 7 == 0 else draw.number(1, 25), 90, tilt=0.4)
        for user in users
        if user % 5
    }
    pred = {user: draw.items(draw.number(2, 30), 90, tilt=0.4) for user in users if user % 6}
    frame = ParityFrame(long_frame(true), pred_frame(pred, draw))
    frame.side = side_tables(Draw(SEED + 101), 90, N_USERS, frame.pred, seen=True)
    return frame


def graded(lowest: int) -> ParityFrame:
    """Relevance from `lowest` to 3."""
    frame, draw = plain(SEED + 3), Draw(SEED + 103)
    frame.true["relevance"] = np.array(
        [draw.number(lowest, 3) for _ in range(len(frame.true))], dtype=np.int64
    )
    frame.judged = lowest == 0
    return frame


def strings(frame: ParityFrame) -> ParityFrame:
    """The same lists with string ids of unequal length."""
    return ParityFrame(labelled(frame.true, "u{}", "i{}"), labelled(frame.pred, "u{}", "i{}"))


@cache
def parity_frames() -> dict[str, ParityFrame]:
    """Every frame by name. In `ties` the item ids have one length, so that they sort alike as
    numbers and as text; in `ties_strings` they do not. The lists of `ties_short` are so short that
    ranx's sort keeps the row order of ties."""
    return {
        "plain": with_side_tables(),
        "holes": holes(),
        "ties": plain(SEED + 2, levels=6, first_item=100),
        "ties_short": plain(SEED + 5, levels=4, first_item=100, n_pred=12),
        "ties_strings": strings(plain(SEED + 4, levels=6)),
        "graded": graded(lowest=1),
        "judged": graded(lowest=0),
        "gaps": gaps(),
        "whole": whole(),
    }


def whole() -> ParityFrame:
    """Lists of all items of the catalogue, for libraries that see labelled candidates or rank
    everything."""
    frame, draw = plain(SEED + 8, n_pred=60), Draw(SEED + 108)
    frame.true["relevance"] = np.array(
        [draw.number(1, 3) for _ in range(len(frame.true))], dtype=np.int64
    )
    frame.side = {"items": pd.DataFrame({"item_id": np.arange(60)})}
    return frame


def gaps() -> ParityFrame:
    """Users whose rows of `true` are all of relevance 0, users without rows on either side, lists
    of one item."""
    draw, users = Draw(SEED + 6), range(1, N_USERS + 1)
    true = {user: draw.items(draw.number(1, 25), 90, tilt=0.4) for user in users if user % 5}
    pred = {user: draw.items(draw.number(1, 30), 90, tilt=0.4) for user in users if user % 6}
    frame = ParityFrame(long_frame(true), pred_frame(pred, draw), judged=True)
    relevance = np.array([draw.number(0, 2) for _ in range(len(frame.true))], dtype=np.int64)
    frame.true["relevance"] = np.where(frame.true["user_id"] % 7 == 0, 0, relevance)
    return frame


def section9() -> ParityFrame:
    """The lists by which the libraries' rules are told apart: u3 has no recommendations, u4 no
    truth, u5 more relevant items than k, u2 and u6 short lists."""
    relevant = {
        "u1": "a b c",
        "u2": "a",
        "u3": "d",
        "u5": " ".join(f"r{i:02}" for i in range(12)),
        "u6": "a b",
    }
    shown = {
        "u1": "a x b",
        "u2": "x y",
        "u4": "a b",
        "u5": "r00 m0 r01 m1 m2 m3 m4 m5 m6 m7",
        "u6": "x a b",
    }
    true = pd.DataFrame(
        [(user, item) for user, items in relevant.items() for item in items.split()]
    )
    pred = pd.DataFrame([(user, item) for user, items in shown.items() for item in items.split()])
    true.columns = pred.columns = ["user_id", "item_id"]
    pred["rank"] = pred.groupby("user_id").cumcount() + 1
    pred["score"] = 1.0 / pred["rank"]
    return ParityFrame(true, pred)

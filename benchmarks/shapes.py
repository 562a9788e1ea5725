"""The frames people have, against a plain one: `python benchmarks/shapes.py [NAME ...]`.

Every shape is evaluated with six metrics at three k and compared, per row of both frames, with
30,000 lists × 100 of its kind: integers or strings, sorted or shuffled. No shape may cost more than
four times as much a row. A few further ratios compare whole calls: ten models with one, thirty
metrics with six, ten times the lists. Processor time of all threads (of calls also time), the least
of three calls, so that a busy machine matters little. Frames are made here, about 3 M rows each.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import adapters
import numpy as np
import pandas as pd
import pyarrow as pa

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import recdf as rd  # noqa: E402 (after the path is set)

N_LISTS, N_PRED, N_TRUE, N_ITEMS = 30_000, 100, 20, 27_000
KS = [10, 20, 100]
CALLS = 3
LIMIT = 4.0  # times the cost of a row

DICTIONARY = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))

Frames = tuple[pd.DataFrame, pd.DataFrame]  # true, pred

# -- frames


def make(lengths: np.ndarray, n_items: int = N_ITEMS, n_true: int = N_TRUE) -> Frames:
    """Lists of about these lengths, each item once, sorted by user and falling score; half of
    `true` is recommended."""
    rng = np.random.default_rng(0)
    users = np.arange(len(lengths))
    pred = distinct(np.repeat(users, lengths), rng.integers(0, n_items, lengths.sum()), n_items)
    pred["score"] = rng.random(len(pred))
    wanted = np.repeat(users, n_true)
    start, end = (np.searchsorted(pred["user_id"], wanted, side) for side in ("left", "right"))
    shown = pred["item_id"].to_numpy()[
        start + (rng.random(len(wanted)) * (end - start)).astype(np.int64)
    ]
    true = distinct(
        wanted,
        np.where(rng.random(len(wanted)) < 0.5, shown, rng.integers(0, n_items, len(wanted))),
        n_items,
    )
    return true, pred.sort_values(["user_id", "score"], ascending=[True, False], ignore_index=True)


def distinct(users: np.ndarray, items: np.ndarray, n_items: int) -> pd.DataFrame:
    key = np.unique(users * n_items + items)
    return pd.DataFrame({"user_id": key // n_items, "item_id": key % n_items})


@cache
def plain() -> Frames:
    return make(np.full(N_LISTS, N_PRED))


def lognormal() -> Frames:
    rng = np.random.default_rng(1)
    return make(np.clip(rng.lognormal(3.5, 1.2, 40_000), 1, 1000).astype(np.int64))


def coarse(decimals: int) -> Frames:
    """Scores of so many decimals: the fewer, the more ties."""
    true, pred = plain()
    tied = pred.assign(score=pred["score"].round(decimals))
    return true, tied.sort_values(["user_id", "score"], ascending=[True, False], ignore_index=True)


def graded() -> Frames:
    true, pred = plain()
    return true.assign(relevance=np.random.default_rng(2).integers(0, 5, len(true))), pred


def repeated() -> Frames:
    true, pred = plain()
    twice = np.repeat(np.arange(len(pred)), np.where(np.arange(len(pred)) % 3 == 0, 2, 1))
    return true, pred.take(twice).reset_index(drop=True)


def both(change: Callable[[pd.DataFrame], pd.DataFrame], frames: Frames) -> Frames:
    return change(frames[0]), change(frames[1])


def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sample(frac=1, random_state=1, ignore_index=True)


def text(frame: pd.DataFrame) -> pd.DataFrame:
    """Ids such as `u000123` and `i00456`, in the strings of this pandas."""
    labels = {"user_id": "u{:06d}", "item_id": "i{:05d}"}
    return frame.assign(**{name: in_words(frame[name], form) for name, form in labels.items()})


def in_words(column: pd.Series, form: str) -> pd.Series:
    codes, distinct_ids = pd.factorize(column)
    return pd.Series(list(map(form.format, distinct_ids))).take(codes).reset_index(drop=True)


def as_type(name: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda frame: frame.astype({"user_id": name, "item_id": name})


def shared_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """One Python string for each distinct id, as strings stay after `map` or `merge`."""

    def shared(column: pd.Series) -> pd.Series:
        codes, distinct_ids = pd.factorize(column)
        return pd.Series(np.array(distinct_ids.tolist(), dtype=object)[codes], dtype=object)

    return frame.assign(user_id=shared(frame["user_id"]), item_id=shared(frame["item_id"]))


def sparse(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(
        user_id=frame["user_id"] * 10_000_000_019 + 7, item_id=frame["item_id"] * 9_000_000_011 + 3
    )


def composite(frame: pd.DataFrame) -> pd.DataFrame:
    """Two columns in the place of the list key."""
    return frame.assign(session=frame["user_id"] % 7, user_id=frame["user_id"] // 7)


# -- shapes

INTEGERS: dict[str, Callable[[], Frames]] = {
    "Int64": lambda: both(as_type("Int64"), plain()),
    "int64[pyarrow]": lambda: both(as_type("int64[pyarrow]"), plain()),
    "int32": lambda: both(as_type("int32"), plain()),
    "sparse int64": lambda: both(sparse, plain()),
    "categories of integers": lambda: both(as_type("category"), plain()),
    "lognormal lengths 1 to 1000": lognormal,
    "3,000 lists of 1,000": lambda: make(np.full(3_000, 1000)),
    "30 lists of 100,000": lambda: make(np.full(30, 100_000), n_items=3_000_000, n_true=1000),
    "1 M lists of 3": lambda: make(np.full(1_000_000, 3), n_true=2),
    "5 M items": lambda: make(np.full(N_LISTS, N_PRED), n_items=5_000_000),
    "ties, 100 scores": lambda: coarse(2),
    "ties, 10 scores": lambda: coarse(1),
    "graded relevance": graded,
    "a third of the rows twice": repeated,
}
STRINGS: dict[str, Callable[[Frames], Frames]] = {
    "str": lambda frames: frames,
    "object, one a distinct id": lambda frames: both(shared_objects, frames),
    "object, one a row": lambda frames: both(as_type("object"), frames),
    "category": lambda frames: both(as_type("category"), frames),
    "string[pyarrow]": lambda frames: both(as_type("string[pyarrow]"), frames),
    "large_string, pyarrow": lambda frames: both(as_type("large_string[pyarrow]"), frames),
    "dictionary, pyarrow": lambda frames: both(as_type(DICTIONARY), frames),
}
OPTIONS: dict[str, dict[str, Any]] = {"graded relevance": {"relevance_col": "relevance"}}

# Thirty that need no more than the two frames.
THIRTY = """
hitrate, hits, precision, precision(divisor=shown), precision(divisor=achievable), recall,
recall(divisor=achievable), f1, f1(beta=2), f1(beta=0.5), mapr, mapr(normalizer=achievable),
mapr(normalizer=hits), mapr(normalizer=k), mar, mrr, mrr(of=all), arhr, ndcg, ndcg(gain=exp2),
ndcg(discount=jk), ndcg(ideal=k), dcg, rbp, rbp(p=0.5), err, auc, pauc, pap, first_rank
"""
FIVE_K = [5, 10, 20, 50, 100]

# -- cost


def cost(
    frames: Frames, metrics: list[str] | None = None, k: list[int] | None = None, **options: Any
) -> np.ndarray:
    """Processor seconds and seconds of one call, the least of a few."""
    found = []
    for _ in range(CALLS):
        start = time.process_time(), time.perf_counter()
        rd.evaluate(*frames, metrics or list(adapters.SIX), k=k or KS, **options)
        found.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    return np.min(found, axis=0)


def per_row(frames: Frames, **options: Any) -> float:
    """Processor time in nanoseconds."""
    return float(cost(frames, **options)[0]) / sum(map(len, frames)) * 1e9


def order(kind: str, frames: Frames) -> Frames:
    return frames if kind.endswith("sorted") else both(shuffled, frames)


def show_row(name: str, nanoseconds: float, base: float, limit: float = LIMIT) -> None:
    print(
        f"| {name} | {nanoseconds:.0f} | {nanoseconds / base:.2f} | "
        f"{verdict(nanoseconds / base, limit)} |",
        flush=True,
    )


def verdict(ratio: float, limit: float, least: float = 0.0) -> str:
    return "within" if least <= ratio <= limit else "BEYOND"


def shapes(wanted: Callable[[str], bool]) -> None:
    print(f"| shape | ns a row | ratio to plain | limit {LIMIT:g} |\n|---|--:|--:|---|")
    for kind in ("sorted", "shuffled"):
        base = per_row(order(kind, plain()))
        show_row(f"plain int64, {kind}", base, base)
        for name, build in INTEGERS.items():
            if wanted(name):
                show_row(
                    f"{name}, {kind}", per_row(order(kind, build()), **OPTIONS.get(name, {})), base
                )
    for kind in ("sorted", "shuffled"):
        frames = order(kind, both(text, plain()))
        base = per_row(frames)
        for name, change in STRINGS.items():
            if wanted(name):
                show_row(f"{name}, {kind}", per_row(change(frames)), base)


# -- ratios of calls


def composite_key() -> np.ndarray:
    key = {"user_col": ["user_id", "session"]}
    found = [cost(both(composite, f), **key) / cost(f) for f in (plain(), both(shuffled, plain()))]
    return np.max(found, axis=0)


def composite_key_of_strings() -> np.ndarray:
    frames = both(shuffled, both(text, plain()))
    split = both(
        lambda f: f.assign(session=f["user_id"].str[-1], user_id=f["user_id"].str[:-1]), frames
    )
    return cost(split, user_col=["user_id", "session"]) / cost(frames)


def ten_models(change: Callable[[pd.DataFrame], pd.DataFrame], n_lists: int = 10_000) -> np.ndarray:
    true, pred = make(np.full(n_lists, N_PRED))
    ten = pd.concat([pred.assign(model=f"model{j}") for j in range(10)], ignore_index=True)
    return cost((change(true), change(ten)), by="model") / cost((change(true), change(pred)))


def as_category(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({"model": "category"}) if "model" in frame else frame


def thirty_metrics() -> np.ndarray:
    """On shapes like M in the number of lists, where metrics weigh most."""
    return cost(plain(), [part.strip() for part in THIRTY.split(",")], FIVE_K) / cost(plain())


def ten_times_the_lists(change: Callable[[pd.DataFrame], pd.DataFrame]) -> np.ndarray:
    few, many = plain(), make(np.full(10 * N_LISTS, N_PRED))
    return cost(both(change, many)) / cost(both(change, few))


RATIOS: dict[str, tuple[Callable[[], np.ndarray], float, float]] = {
    "composite key of two integers": (composite_key, 0, 2),
    "composite key of two strings": (composite_key_of_strings, 0, 2),
    "ten models, sorted": (lambda: ten_models(lambda frame: frame), 0, 11),
    "ten models, shuffled": (lambda: ten_models(shuffled), 0, 11),
    "ten models of 30,000 lists, sorted": (lambda: ten_models(lambda frame: frame, N_LISTS), 0, 11),
    "ten models of 30,000 lists, shuffled": (lambda: ten_models(shuffled, N_LISTS), 0, 11),
    "ten models as a category, shuffled": (
        lambda: ten_models(lambda frame: as_category(shuffled(frame))),
        0,
        11,
    ),
    "thirty metrics × five k": (thirty_metrics, 0, 2.5),
    "ten times the lists, sorted": (lambda: ten_times_the_lists(lambda frame: frame), 8.5, 11.5),
    "ten times the lists, shuffled": (lambda: ten_times_the_lists(shuffled), 8.5, 11.5),
}


def ratios(wanted: Callable[[str], bool]) -> None:
    print("\n| call | times the plain call, processor | time | limit | |\n|---|--:|--:|--:|---|")
    for name, (measure, least, limit) in RATIOS.items():
        if wanted(name):
            processor, seconds = measure()
            bounds = f"{least:g} to {limit:g}" if least else f"{limit:g}"
            found = verdict(seconds, limit, least)
            print(f"| {name} | {processor:.2f} | {seconds:.2f} | {bounds} | {found} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", help="only shapes and ratios that have one of these in their name"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore", rd.DuplicateWarning)

    def wanted(name: str) -> bool:
        return not args.names or any(part in name for part in args.names)

    rd.evaluate(*plain(), "ndcg")  # what a process does only once
    if any(map(wanted, [*INTEGERS, *STRINGS])):
        shapes(wanted)
    if any(map(wanted, RATIOS)):
        ratios(wanted)


if __name__ == "__main__":
    main()

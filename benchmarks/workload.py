"""Generate the benchmark frames: S, M and L, in four layouts, as parquet files in a cache folder.

    python benchmarks/workload.py                          # S and M, every layout
    python benchmarks/workload.py L --layout int_sorted    # in parts, as 10M and 300M (rows) are

S and M are `{size}_{ids}_{order}_true.parquet` and `..._pred.parquet`; L is a folder of parts under
each of these names (without `.parquet`). Items follow Zipf's law, users are lognormally active,
about a tenth of the recommendations are hits. The numbers depend on the seed alone; the four
layouts of a size hold the same rows. `pred` has a column `rank` beside `score`; the benchmarks
start from the scores and leave it out.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SEED = 20
LAYOUTS = ("int_sorted", "int_shuffled", "str_sorted", "str_shuffled")
ZIPF_EXPONENT = 0.8
ACTIVITY_SIGMA = 1.0
PARTS = 10  # files of a workload that is written in parts


@dataclass(frozen=True)
class Size:
    """The shape of a workload; `relevant_draws` is tuned so that 8 to 13 % of the recommendations
    are hits."""

    n_lists: int
    n_pred: int
    n_items: int
    mean_true: float  # drawn a user, before repeated items are dropped
    relevant_draws: float
    block: int  # lists generated at a time
    in_parts: bool = False


SIZES = {
    "S": Size(10_000, 20, 5_000, 24.0, 0.045, 10_000),
    "M": Size(138_000, 100, 27_000, 22.6, 0.10, 13_800),
    "L": Size(1_000_000, 100, 100_000, 22.8, 0.10, 20_000, in_parts=True),
    "10M": Size(100_000, 100, 27_000, 22.6, 0.10, 20_000, in_parts=True),
    "300M": Size(3_000_000, 100, 100_000, 22.8, 0.10, 20_000, in_parts=True),
}


def cache_folder() -> Path:
    """The workload's folder beside the environments of the peers: `$RECDF_CACHE/workload`."""
    return Path(os.environ.get("RECDF_CACHE", "~/.cache/recdf")).expanduser() / "workload"


# -- one block of lists, as codes


@dataclass
class Rows:
    """Long rows of one block: user codes, item codes and, for recommendations, score and rank."""

    user: np.ndarray
    item: np.ndarray
    score: np.ndarray | None = None
    rank: np.ndarray | None = None

    def take(self, index: np.ndarray) -> Rows:
        columns = (self.user, self.item, self.score, self.rank)
        return Rows(*(None if column is None else column[index] for column in columns))

    def __len__(self) -> int:
        return len(self.user)


class Catalogue:
    """Items drawn by Zipf's law; the item codes are dealt at random, so that a code does not tell
    its popularity."""

    def __init__(self, n_items: int, seed: int) -> None:
        weight = np.arange(1, n_items + 1) ** -ZIPF_EXPONENT
        self.cumulative = np.cumsum(weight / weight.sum())
        self.code = np.random.default_rng(seed).permutation(n_items)

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, int]) -> np.ndarray:
        place = np.searchsorted(self.cumulative, rng.random(shape))
        return self.code[np.minimum(place, len(self.code) - 1)]


def draw_true(
    size: Size, catalogue: Catalogue, users: np.ndarray, rng: np.random.Generator
) -> Rows:
    """Relevant items: a lognormal number a user, each item once."""
    mu = np.log(size.mean_true) - ACTIVITY_SIGMA**2 / 2
    n_drawn = np.clip(
        rng.lognormal(mu, ACTIVITY_SIGMA, len(users)).round(), 1, size.n_items // 4
    ).astype(np.int64)
    key = np.repeat(users, n_drawn) * size.n_items + catalogue.draw(rng, int(n_drawn.sum()))
    key = np.unique(key)
    return Rows(key // size.n_items, key % size.n_items)


def draw_pred(
    size: Size, catalogue: Catalogue, true: Rows, users: np.ndarray, rng: np.random.Generator
) -> Rows:
    """`n_pred` different items a user, best first: relevant ones mixed in, more of them near the
    top."""
    starts = np.searchsorted(true.user, users)
    n_true = np.append(starts[1:], len(true)) - starts
    items = np.empty((len(users), size.n_pred), dtype=np.int64)
    missing, width = np.arange(len(users)), 2 * size.n_pred
    while len(missing):  # lists with too many repeated draws are drawn again, wider
        draws = catalogue.draw(rng, (len(missing), width))
        place = starts[missing, None] + (rng.random(draws.shape) * n_true[missing, None]).astype(
            np.int64
        )
        likely = size.relevant_draws * 2 * np.linspace(1, 0, width)
        draws = np.where(rng.random(draws.shape) < likely, true.item[place], draws)
        first = first_occurrences(draws)
        first &= np.cumsum(first, axis=1) <= size.n_pred
        full = first.sum(axis=1) == size.n_pred
        items[missing[full]] = draws[full][first[full]].reshape(-1, size.n_pred)
        missing, width = missing[~full], 2 * width
    scores = np.sort(rng.random(items.shape), axis=1)[:, ::-1]
    ranks = np.tile(np.arange(1, size.n_pred + 1), len(users))
    return Rows(np.repeat(users, size.n_pred), items.ravel(), scores.ravel(), ranks)


def first_occurrences(draws: np.ndarray) -> np.ndarray:
    """True where a value of a row was not seen earlier in the row."""
    order = np.argsort(draws, axis=1, kind="stable")
    ordered = np.take_along_axis(draws, order, axis=1)
    new = np.ones(draws.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.empty_like(new)
    np.put_along_axis(first, order, new, axis=1)
    return first


def blocks(size: Size, seed: int) -> Iterator[tuple[Rows, Rows]]:
    """(true, pred) of one block of users after another."""
    catalogue = Catalogue(size.n_items, seed)
    for start in range(0, size.n_lists, size.block):
        rng = np.random.default_rng([seed, start])
        users = np.arange(start, min(start + size.block, size.n_lists))
        true = draw_true(size, catalogue, users, rng)
        yield true, draw_pred(size, catalogue, true, users, rng)


# -- layouts and files


class Labels:
    """User and item ids of a layout: the codes themselves, or strings such as `u000123` and
    `i00456`."""

    def __init__(self, size: Size, ids: str) -> None:
        self.users = self.items = None
        if ids == "str":
            self.users = pa.array([f"u{code:06d}" for code in range(size.n_lists)])
            self.items = pa.array([f"i{code:05d}" for code in range(size.n_items)])

    def table(self, rows: Rows) -> pa.Table:
        columns = {"user_id": label(self.users, rows.user), "item_id": label(self.items, rows.item)}
        if rows.score is not None:
            columns |= {"score": pa.array(rows.score), "rank": pa.array(rows.rank)}
        return pa.table(columns)


def label(labels: pa.Array | None, codes: np.ndarray) -> pa.Array:
    return pa.array(codes) if labels is None else labels.take(pa.array(codes))


def concatenate(parts: list[Rows]) -> Rows:
    names = [
        name for name in ("user", "item", "score", "rank") if getattr(parts[0], name) is not None
    ]
    return Rows(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def write_whole(name: str, size: Size, layouts: list[str], folder: Path, seed: int) -> None:
    frames = dict(
        zip(("true", "pred"), map(concatenate, zip(*blocks(size, seed), strict=True)), strict=True)
    )
    report(name, size, frames["true"], frames["pred"])
    rng = np.random.default_rng(seed)
    shuffled = {side: rng.permutation(len(rows)) for side, rows in frames.items()}
    for layout in layouts:
        ids, order = layout.split("_")
        labels = Labels(size, ids)
        for side, rows in frames.items():
            ordered = rows if order == "sorted" else rows.take(shuffled[side])
            pq.write_table(labels.table(ordered), folder / f"{name}_{layout}_{side}.parquet")


def write_parts(name: str, size: Size, layout: str, folder: Path, seed: int) -> None:
    """Sorted: each part holds its own users. Shuffled: the rows of every user are spread over all
    parts."""
    ids, order = layout.split("_")
    labels, rng = Labels(size, ids), np.random.default_rng(seed)
    writers: dict[tuple[str, int], pq.ParquetWriter] = {}
    n_blocks = -(-size.n_lists // size.block)
    for number, frames in enumerate(blocks(size, seed)):
        if number == 0:
            report(f"{name}, first block", size, *frames)
        for side, rows in zip(("true", "pred"), frames, strict=True):
            parts = [(number * PARTS // n_blocks, rows)] if order == "sorted" else spread(rows, rng)
            for part, part_rows in parts:
                table = labels.table(part_rows)
                if (side, part) not in writers:
                    path = folder / f"{name}_{layout}_{side}" / f"part-{part:02d}.parquet"
                    path.parent.mkdir(parents=True, exist_ok=True)
                    writers[side, part] = pq.ParquetWriter(path, table.schema)
                writers[side, part].write_table(table)
    for writer in writers.values():
        writer.close()


def spread(rows: Rows, rng: np.random.Generator) -> list[tuple[int, Rows]]:
    order = rng.permutation(len(rows))
    return [(part, rows.take(index)) for part, index in enumerate(np.array_split(order, PARTS))]


def report(name: str, size: Size, true: Rows, pred: Rows) -> None:
    """Print the properties that speed.md promises, and refuse a workload that lacks them."""
    true_key, pred_key = (rows.user * size.n_items + rows.item for rows in (true, pred))
    place = np.minimum(np.searchsorted(true_key, pred_key), len(true_key) - 1)
    hits = true_key[place] == pred_key
    n_true = np.bincount(true.user)[np.unique(true.user)]
    item_counts = np.sort(np.bincount(true.item, minlength=size.n_items))[::-1]
    head = item_counts[: size.n_items // 100].sum() / len(true)
    print(
        f"{name}: {len(n_true):,} lists, {len(pred):,} recommended, {len(true):,} relevant rows\n"
        f"  n_true mean {n_true.mean():.1f}, median {np.median(n_true):.0f}, 99 % "
        f"{np.quantile(n_true, 0.99):.0f}, largest {n_true.max()}; the top 1 % of items hold "
        f"{head:.0%} of the relevant rows\n"
        f"  hits {hits.mean():.1%} of the recommendations; at rank 1 "
        f"{hits[pred.rank == 1].mean():.1%}, at rank {size.n_pred} "
        f"{hits[pred.rank == size.n_pred].mean():.1%}"
    )
    if not 0.08 <= hits.mean() <= 0.13:
        raise SystemExit(
            f"{name}: hits are {hits.mean():.1%} of the recommendations, not 8 to 13 %"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sizes", nargs="*", help="S, M, L; S and M when none is named")
    parser.add_argument(
        "--layout", action="append", choices=LAYOUTS, help="repeatable; every layout when not given"
    )
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=cache_folder())
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    layouts = args.layout or list(LAYOUTS)
    for name in args.sizes or ["S", "M"]:
        size = SIZES[name]
        if not size.in_parts:
            write_whole(name, size, layouts, args.out, args.seed)
            continue
        for layout in layouts:
            write_parts(name, size, layout, args.out, args.seed)


if __name__ == "__main__":
    main()

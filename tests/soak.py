"""The long form of the hardening tests: `python tests/soak.py --minutes 5`, on no machine that
others wait for.

Five parts, each of which prints what it counted and stops at the first difference:

* frames: random frames with ids of every dtype and random options, list by list against the slow
  oracle. Users and items have ids of different dtypes, and so may `true` and `pred` where their ids
  are equal by value;
* parts: the same kind of frames as parquet files, evaluated part by part, against the whole in
  memory;
* kills: a process that writes results is killed at a random moment; the result is the old or the
  new one, whole, and the next write leaves no hidden folder;
* readers: five processes read beside two that write; every read is one of the two results, whole;
* properties: the tests of Hypothesis that the suite runs with few examples, with thousands
  (`--properties`).

`--frames 50000 --jobs 2` counts frames in place of minutes (and a tenth as many parts), on two
cores. Frame number i of a seed is always the same one, so that `--only 1234` runs the frame again
that a message names.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

import oracles  # noqa: E402 (found once the path is known)
from registry.labels import LABELS  # noqa: E402
from registry.seeded import (  # noqa: E402
    BUILT_IN,
    ITEMS,
    SPACE,
    assert_close,
    column_options,
    condensed,
    counts_candidates,
    frames,
    oracle_values,
    quietly,
    records,
    text,
    variants,
)

import recdf as rd  # noqa: E402
from recdf.publishing import where  # noqa: E402

# Ids of a population are left out, since each frame has ids of its own kind.
OPTIONS = SPACE | {"users": ["true", "pred", "both", "all"], "relevance": [True]}
EXPECTED = (rd.EmptyPopulationError,)  # a random frame may have no list
# Parquet has no type for the first two; parts are read without pandas, to which Arrow leaves
# periods and UUIDs.
NOT_IN_FILES = ("object of huge int", "object of tuple", "period", "object of UUID")


# Kinds of ids that are equal by value: `true` may have one of them and `pred` another.
NUMBERS = (
    "int8",
    "int16",
    "int32",
    "Int64",
    "float64",
    "float32",
    "Float64",
    "object of int",
    "object of whole float",
)
STRINGS = (
    "object of str",
    "str",
    "string[python]",
    "string[pyarrow]",
    "arrow string",
    "arrow large_string",
)
ALIKE = (
    (*NUMBERS, "object of numpy int", "arrow int32", "category of int"),
    (
        *STRINGS,
        "arrow dictionary",
        "category of str",
        "ordered category",
        "category of string[pyarrow]",
    ),
    ("datetime64[ns]", "datetime64[s]"),
    ("uint64 beyond int64",),
)


# -- the same numbers


class Call(NamedTuple):
    """What one random evaluation is made of. `labels` are the kinds of ids in `true` and `pred`, by
    column."""

    true: pd.DataFrame
    pred: pd.DataFrame
    options: dict[str, Any]
    metrics: list[tuple[Any, dict[str, Any]]]
    ks: list[int]
    labels: dict[str, tuple[str, str]]

    def labelled(self, frame: pd.DataFrame, side: int) -> pd.DataFrame:
        """The frame with the ids of a side: 0 for `true`, 1 for `pred`."""
        return frame.assign(
            **{
                name: LABELS[kinds[side]](frame[name].to_numpy()).array
                for name, kinds in self.labels.items()
            }
        )

    @property
    def items(self) -> pd.Series:
        return LABELS[self.labels["item_id"][0]](np.array(ITEMS))

    @property
    def requests(self) -> list[str]:
        return [text(metric, params) for metric, params in self.metrics]

    def __str__(self) -> str:
        asked = f"{self.options} {self.requests} k={self.ks} ids {self.labels}"
        return f"{asked}\n{self.true.to_csv()}\n{self.pred.to_csv()}"


def random_labels(rng: random.Random) -> tuple[str, str]:
    kind = rng.choice(list(LABELS))
    alike = next((kinds for kinds in ALIKE if kind in kinds), (kind,))
    return kind, rng.choice([kind, rng.choice(alike)])


def random_call(seed: int, number: int) -> tuple[Call, random.Random]:
    """Call `number` of a seed, and what draws the rest of it."""
    rng = random.Random(f"{seed} {number}")
    true, pred = frames.__wrapped__(rng.randrange(2**31), top=1.0, n_users=rng.randint(1, 9))
    options = {name: rng.choice(values) for name, values in OPTIONS.items()}
    chosen = rng.sample(BUILT_IN, 4)
    metrics = [(metric, rng.choice(variants(metric))) for metric in chosen]
    if any(
        counts_candidates(*one) for one in metrics
    ):  # these metrics refuse repeated recommendations
        options["duplicates"] = "drop"
    labels = {name: random_labels(rng) for name in ("user_id", "item_id")}
    return Call(true, pred, options, metrics, sorted(rng.sample([1, 2, 3, 5, 40], 2)), labels), rng


def one_frame(seed: int, number: int, seen: Counter) -> None:
    call, _ = random_call(seed, number)
    options, pred = call.options, call.pred[call.pred["model"] == "a"]
    if not len(call.true) or not len(pred):
        seen["without rows"] += 1
        return
    as_absent = options["order"] == "score" and options["nan_score"] == "drop"
    of_oracle = pred[pred["score"].notna()] if as_absent else pred
    given, named = column_options(options, pred)
    given |= {"items": call.items, "value_col": "value"}
    own = {name: value for name, value in options.items() if name != "undefined"}
    lists = oracles.match_lists(
        records(call.true), records(of_oracle), max(call.ks), items=ITEMS, **own
    )
    try:
        frames_of = call.labelled(call.true, 0), call.labelled(named, 1)
        result = quietly(rd.evaluate, *frames_of, call.requests, call.ks, **given)
    except EXPECTED:
        assert not lists, "the oracle has lists"
        seen["empty population"] += 1
        return
    assert list(LABELS[call.labels["user_id"][0]](np.array(list(lists)))) == list(
        result.per_user["user_id"]
    )
    expected = []
    for metric, params in call.metrics:
        judged = options["judged_only"] and counts_candidates(metric, params)
        for k in call.ks if metric.cut else call.ks[-1:]:
            at_k = {
                user: replace(condensed(one) if judged else one, k=k) for user, one in lists.items()
            }
            values = oracle_values(at_k, metric.name, params, options["undefined"])
            expected.append(values.reshape(len(lists), len(metric.outputs)))
    found = result.per_user.to_numpy()[:, 3:]
    assert_close(found, np.hstack(expected), list(result.per_user.columns[3:]))
    seen["numbers"] += found.size
    seen["frames"] += 1
    seen.update(f"ids: {kind}" for kinds in call.labels.values() for kind in kinds)


def one_parted(seed: int, number: int, seen: Counter) -> None:
    call, rng = random_call(seed, number)
    kinds = {kind for kinds in call.labels.values() for kind in kinds}
    if not len(call.true) or not len(call.pred) or kinds & set(NOT_IN_FILES):
        seen["without rows, or ids that files do not hold"] += 1
        return
    given, pred = column_options(call.options, call.pred)
    given |= {"by": "model", "items": call.items, "value_col": "value"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / "true.parquet", folder / "pred.parquet"]
        try:
            for side, (path, frame) in enumerate(zip(paths, (call.true, pred), strict=True)):
                call.labelled(frame, side).to_parquet(
                    path, index=False, row_group_size=rng.randint(1, 40)
                )
            whole = [pd.read_parquet(path) for path in paths]
        except (
            TypeError,
            ValueError,
            NotImplementedError,
        ):  # pandas writes or reads no such column
            seen["no such file"] += 1
            return
        try:
            expected = quietly(rd.evaluate, *whole, call.requests, call.ks, **given)
        except rd.RecdfError as error:
            expected = type(error)
        try:
            given |= {"buckets": rng.choice([1, 2, 7]), "out": folder / "out"}
            found = quietly(rd.evaluate_parquet, *paths, call.requests, call.ks, **given)
        except rd.RecdfError as error:
            if type(error) is not expected:
                raise
            seen["equal errors"] += 1
            return
        assert found == expected
        assert rd.read_parquet(folder / "out") == expected
    seen["equal results"] += 1


RANDOM = {"frames": one_frame, "parts": one_parted}


def soak_slice(
    what: str, seed: int, first: int, step: int, count: int | None, seconds: float
) -> Counter:
    """Calls number first, first + step, ... of a seed: up to `count` of all, or for some
    seconds."""
    warnings.simplefilter("error")
    seen: Counter = Counter()
    end = time.monotonic() + seconds
    for number in itertools.count(first, step) if count is None else range(first, count, step):
        if count is None and time.monotonic() > end:
            break
        try:
            RANDOM[what](seed, number, seen)
        except BaseException:
            call = random_call(seed, number)[0]
            print(
                f"{what}: failed at --seed {seed} --only {number}, after {dict(seen)}: {call}",
                flush=True,
            )
            raise
        if (number // step) % 5000 == 4999:
            print(f"{what}: {number + 1:,} are behind us", flush=True)
    return seen


def soak_random(
    what: str, seed: int, jobs: int, count: int | None = None, seconds: float = 0
) -> None:
    with ProcessPoolExecutor(jobs) as pool:
        tasks = [
            pool.submit(soak_slice, what, seed, job, jobs, count, seconds) for job in range(jobs)
        ]
        seen = sum((task.result() for task in tasks), Counter())
    kinds = sum(name.startswith("ids: ") for name in seen)
    counts = ", ".join(f"{n:,} {name}" for name, n in seen.items() if not name.startswith("ids: "))
    print(f"{what}: {counts}" + (f"; ids of {kinds} kinds" if kinds else ""), flush=True)


# -- the same files

WRITER = """
import sys
import recdf as rd

folder = sys.argv[1]
results = [rd.read_parquet(f"{folder}/{name}") for name in ("one", "two")]
print("ready", flush=True)
turn = 0
while True:
    turn += 1
    results[turn % 2].to_parquet(f"{folder}/shared", overwrite=True)
"""
# Arrow may abort a process that ends while its threads start (seen with pyarrow 26): the reader
# ends without that.
READER = """
import os, sys
import recdf as rd

folder = sys.argv[1]
results = [rd.read_parquet(f"{folder}/{name}") for name in ("one", "two")]
for _ in range(int(sys.argv[2])):
    found = rd.read_parquet(f"{folder}/shared")
    assert found in results, found
os._exit(0)
"""
FILES = {"per_user.parquet", "summary.parquet"}


def two_results(folder: Path) -> list[rd.Evaluation]:
    """Results that differ in both tables; one has rows of exposure, which per_user cannot give."""
    true, pred = frames(5, n_users=200)
    options = {
        "score_col": "score",
        "nan_score": "last",
        "by": "model",
        "relevance_col": "relevance",
    }
    results = [
        quietly(rd.evaluate, true, pred, ["ndcg@3"], **options),
        quietly(rd.evaluate, true, pred, ["ndcg@2", "mrr@5", "gini@3"], items=ITEMS, **options),
    ]
    for name, result in zip(("one", "two"), results, strict=True):
        result.to_parquet(folder / name)
    results[0].to_parquet(folder / "shared")
    return results


def start(code: str, *arguments: object, **options) -> subprocess.Popen:
    environment = os.environ | {"PYTHONPATH": str(TESTS.parent)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], env=environment, **options
    )


def soak_kills(n: int, seed: int) -> None:
    rng, seen = random.Random(seed), Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results, shared = two_results(folder), folder / "shared"
        for _ in range(n):
            writer = os.fork()
            if not writer:
                write_forever(results, shared)
            time.sleep(rng.random() * 0.1)  # a few writes, and then anywhere in one
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
            left = {path.name for path in shared.iterdir()}
            seen["hidden folders left by kills"] += len(left - FILES)
            apart = sum(
                where(shared / file).read_bytes() not in written(folder, file) for file in FILES
            )
            assert not apart, "a file is of no result"
            found = rd.read_parquet(shared)
            assert found in results, found
            seen["old or new, whole"] += 1
            assert {path.name for path in shared.iterdir()} == left, "a reader wrote"
            found.to_parquet(shared, overwrite=True)
            assert {path.name for path in shared.iterdir()} == FILES
            pd.testing.assert_frame_equal(
                pd.read_parquet(shared / "summary.parquet"), found.summary
            )
    print(
        f"kills: {n:,}; " + ", ".join(f"{count:,} {what}" for what, count in seen.items()),
        flush=True,
    )


def write_forever(results: list[rd.Evaluation], shared: Path) -> None:
    """What a child process does until it is killed."""
    try:
        for turn in itertools.count(1):
            results[turn % 2].to_parquet(shared, overwrite=True)
    finally:
        os._exit(1)


def written(folder: Path, file: str) -> list[bytes]:
    return [(folder / name / file).read_bytes() for name in ("one", "two")]


def soak_readers(n: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        two_results(folder)
        writers = [start(WRITER, folder, stdout=subprocess.DEVNULL) for _ in range(2)]
        try:
            readers = [start(READER, folder, n) for _ in range(5)]
            codes = [reader.wait() for reader in readers]
        finally:
            for writer in writers:
                writer.kill()
                writer.wait()
        assert codes == [0] * 5, f"exit codes of the readers {codes}"
        shared = folder / "shared"
        rd.read_parquet(shared).to_parquet(shared, overwrite=True)
        assert {path.name for path in shared.iterdir()} == FILES
    print(
        f"readers: {5 * n:,} reads by 5 readers beside 2 writers, each one whole result", flush=True
    )


PROPERTIES = (
    "logs/test_impressions.py",
    "matching/test_match.py",
    "matching/test_odd_frames.py",
    "evaluation/test_part.py",
)


def soak_properties(seed: int) -> None:
    """The profile `soak` of tests/conftest.py."""
    options = ["-q", "-n", "0", "--hypothesis-profile=soak", f"--hypothesis-seed={seed}"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *options,
        *(str(TESTS / name) for name in PROPERTIES),
    ]
    subprocess.run(
        command, cwd=TESTS.parent, env=os.environ | {"PYTHONPATH": str(TESTS.parent)}, check=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--minutes", type=float, default=5, help="time for random frames and parts (default 5)"
    )
    parser.add_argument(
        "--frames", type=int, help="count frames (and a tenth as many parts) in place of minutes"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, help="processes for random frames and parts (default 1)"
    )
    parser.add_argument(
        "--only", type=int, metavar="NUMBER", help="run the frame and the part of one number alone"
    )
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument(
        "--reads", type=int, default=200, help="reads of each of the five readers (default 200)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--properties", action="store_true", help="run the tests of Hypothesis with many examples"
    )
    given = parser.parse_args()
    if given.only is not None:
        for one in RANDOM.values():
            one(given.seed, given.only, Counter())
        return
    if given.reads:
        soak_readers(given.reads)
    if given.kills:
        soak_kills(given.kills, given.seed)
    counts = (None, None) if given.frames is None else (given.frames, given.frames // 10)
    for what, share, count in zip(RANDOM, (0.7, 0.3), counts, strict=True):
        soak_random(what, given.seed, given.jobs, count, 60 * given.minutes * share)
    if given.properties:
        soak_properties(given.seed)


if __name__ == "__main__":
    main()

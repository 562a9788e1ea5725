"""The long form of the hardening tests: `python tests/soak.py --minutes 5`, on no machine that others wait for.

Five parts, each of which prints what it counted and stops at the first difference:

* frames: random frames with ids of every dtype and random options, list by list against the slow oracle;
* parts: the same kind of frames as parquet files, evaluated part by part, against the whole in memory;
* kills: a process that writes results is killed at a random moment; the result is the old or the new one, whole,
  and the next read leaves no hidden folder;
* readers: five processes read beside two that write; every read is one of the two results, whole;
* properties: the tests of Hypothesis that the suite runs with few examples, with thousands (`--properties`).
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
from pathlib import Path

import numpy as np
import pandas as pd

TESTS = Path(__file__).parent
sys.path[:0] = [str(TESTS), str(TESTS.parent)]

import oracles  # noqa: E402 (found once the path is known)
from registry.labels import LABELS, relabelled  # noqa: E402
from registry.seeded import (  # noqa: E402
    ITEMS,
    assert_close,
    column_options,
    frames,
    oracle_values,
    quietly,
    records,
    text,
    variants,
)

import recdf as rd  # noqa: E402

SPACE = {
    "order": ["score", "rank", "row"],
    "users": ["true", "pred", "both", "all"],
    "relevance": [True],
    "min_relevance": [None, 0.5],
    "judged_only": [False, True],
    "ties": ["item_desc", "item_asc", "row", "worst"],
    "duplicates": ["drop", "keep"],
    "nan_score": ["last", "drop"],
    "undefined": ["nan", "zero"],
}
FAMILIES = ("relevance", "ranking", "money")  # of true and pred alone
EXPECTED = (rd.EmptyPopulationError,)  # a random frame may have no list
# Parquet has no type for the first two; parts are read without pandas, to which Arrow leaves periods and UUIDs.
NOT_IN_FILES = ("object of huge int", "object of tuple", "period", "object of UUID")


# ------------------------------------------------------------------------------------- the same numbers


def random_call(rng: random.Random):
    """Frames with integer ids, options, three metrics, and a kind of id."""
    true, pred = frames.__wrapped__(rng.randrange(2**31), top=1.0, n_users=rng.randint(1, 9))
    options = {name: rng.choice(values) for name, values in SPACE.items()}
    chosen = rng.sample([metric for metric in rd.METRICS.values() if metric.family in FAMILIES], 3)
    metrics = [(metric, rng.choice(variants(metric))) for metric in chosen]
    return true, pred, options, metrics, rng.choice(list(LABELS))


def candidates_with_repeats(metrics, options) -> bool:
    """Metrics over a catalogue refuse repeated recommendations."""
    needs = any("candidates" in metric.needs or params.get("within") == "catalogue" for metric, params in metrics)
    return needs and options["duplicates"] == "keep"


def one_frame(rng: random.Random, seen: Counter) -> None:
    true, pred, options, metrics, label = random_call(rng)
    pred = pred[pred["model"] == "a"]
    as_absent = options["order"] == "score" and options["nan_score"] == "drop"
    of_oracle = pred[pred["score"].notna()] if as_absent else pred
    if candidates_with_repeats(metrics, options) or not len(true) or not len(pred):
        seen["no call"] += 1
        return
    k = rng.choice([1, 2, 3, 5, 40])
    given, named = column_options(options, pred)
    given["items"] = LABELS[label](np.array(ITEMS))
    requests = [text(metric, params) for metric, params in metrics]
    frames_of = relabelled(true, label), relabelled(named, label)
    own = {name: value for name, value in options.items() if name != "undefined"}
    lists = oracles.match_lists(records(true), records(of_oracle), k, items=ITEMS, **own)
    try:
        result = quietly(rd.evaluate, *frames_of, requests, k, **given, value_col="value")
    except EXPECTED:
        assert not lists, "the oracle has lists"
        seen["empty population"] += 1
        return
    assert list(LABELS[label](np.array(list(lists)))) == list(result.per_user["user_id"])
    found, start = result.per_user.iloc[:, 3:], 0
    for metric, params in metrics:
        judged = options["judged_only"] and ("candidates" in metric.needs or params.get("within") == "catalogue")
        of_metric = {user: condensed(one) for user, one in lists.items()} if judged else lists
        columns = found.iloc[:, start : start + len(metric.outputs)]
        assert_close(columns, oracle_values(of_metric, metric.name, params, options["undefined"]), list(columns))
        start += len(metric.outputs)
    seen["frames"] += 1
    seen["numbers"] += found.size
    seen[f"ids: {label}"] += 1


def condensed(one):
    """With judged_only, the judged items are the candidates."""
    from dataclasses import replace

    return replace(one, catalogue={t.item for t in one.judged})


def one_parted(rng: random.Random, seen: Counter, folder: Path) -> None:
    true, pred, options, metrics, label = random_call(rng)
    if candidates_with_repeats(metrics, options) or not len(true) or not len(pred) or label in NOT_IN_FILES:
        seen["no call"] += 1
        return
    given, pred = column_options(options, pred)
    given |= {"by": "model", "items": LABELS[label](np.array(ITEMS)), "value_col": "value"}
    requests = [text(metric, params) for metric, params in metrics]
    paths = [folder / "true.parquet", folder / "pred.parquet"]
    try:
        for path, frame in zip(paths, (true, pred), strict=True):
            relabelled(frame, label).to_parquet(path, index=False, row_group_size=rng.randint(1, 40))
        whole = [pd.read_parquet(path) for path in paths]
    except (TypeError, ValueError, NotImplementedError):  # pandas writes or reads no such column
        seen["no such file"] += 1
        return
    try:
        expected = quietly(rd.evaluate, *whole, requests, 3, **given)
    except rd.RecdfError as error:
        expected = type(error)
    try:
        buckets = rng.choice([1, 2, 7])
        found = quietly(rd.evaluate_parquet, *paths, requests, 3, buckets=buckets, out=folder / "out", **given)
    except rd.RecdfError as error:
        if type(error) is not expected:
            raise
        seen["equal errors"] += 1
        return
    assert found == expected
    assert rd.read_parquet(folder / "out") == expected
    seen["equal results"] += 1


def soak_random(seconds: float, seed: int) -> None:
    warnings.simplefilter("error")
    for what, share in (("frames", 0.7), ("parts", 0.3)):
        rng, seen, end = random.Random(seed), Counter(), time.monotonic() + seconds * share
        state = None
        try:
            while time.monotonic() < end:
                state = rng.getstate()
                if what == "frames":
                    one_frame(rng, seen)
                else:
                    with tempfile.TemporaryDirectory() as folder:
                        one_parted(rng, seen, Path(folder))
        except BaseException:
            print(f"{what}: failed after {dict(seen)}; the call: {call_of(state)}", flush=True)
            raise
        kinds = sum(name.startswith("ids: ") for name in seen)
        counts = ", ".join(f"{n:,} {name}" for name, n in seen.items() if not name.startswith("ids: "))
        print(f"{what}: {counts}" + (f"; ids of {kinds} kinds" if kinds else ""), flush=True)


def call_of(state) -> str:
    rng = random.Random()
    rng.setstate(state)
    true, pred, options, metrics, label = random_call(rng)
    return f"{options} {[text(*one) for one in metrics]} ids {label!r}\n{true.to_csv()}\n{pred.to_csv()}"


# --------------------------------------------------------------------------------------- the same files

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
# Arrow may abort a process that ends while its threads start (seen with pyarrow 26): the reader ends without that.
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
    options = {"score_col": "score", "nan_score": "last", "by": "model", "relevance_col": "relevance"}
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
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], env=environment, **options)


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
            apart = sum((shared / file).read_bytes() not in written(folder, file) for file in FILES)
            assert not apart, "a file is of no result"
            found = rd.read_parquet(shared)
            assert found in results, found
            seen["old or new, whole"] += 1
            assert {path.name for path in shared.iterdir()} == FILES
            pd.testing.assert_frame_equal(pd.read_parquet(shared / "summary.parquet"), found.summary)
    print(f"kills: {n:,}; " + ", ".join(f"{count:,} {what}" for what, count in seen.items()), flush=True)


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
        rd.read_parquet(folder / "shared")
        assert {path.name for path in (folder / "shared").iterdir()} == FILES
    print(f"readers: {5 * n:,} reads by 5 readers beside 2 writers, each one whole result", flush=True)


PROPERTIES = ("inputs/test_impressions.py", "matching/test_match.py", "evaluation/test_part.py")


def soak_properties(seed: int) -> None:
    """The profile `soak` of tests/conftest.py."""
    options = ["-q", "-n", "0", "--hypothesis-profile=soak", f"--hypothesis-seed={seed}"]
    command = [sys.executable, "-m", "pytest", *options, *(str(TESTS / name) for name in PROPERTIES)]
    subprocess.run(command, cwd=TESTS.parent, env=os.environ | {"PYTHONPATH": str(TESTS.parent)}, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5, help="time for random frames and parts (default 5)")
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--reads", type=int, default=200, help="reads of each of the five readers (default 200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--properties", action="store_true", help="run the tests of Hypothesis with many examples")
    given = parser.parse_args()
    soak_readers(given.reads)
    soak_kills(given.kills, given.seed)
    soak_random(60 * given.minutes, given.seed)
    if given.properties:
        soak_properties(given.seed)


if __name__ == "__main__":
    main()

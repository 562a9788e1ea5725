"""Run every installed peer on the parity frames and keep what it says as golden numbers.

    python benchmarks/peers.py install
    python tests/parity/collect.py [PEER ...]

Writes `tests/golden/parity/<peer>.json`:

    versions                            of the library, Python, pandas, numpy
    judged                              whether the library was given rows of relevance 0
    digests        frame -> digest      of the frame that was measured
    frames         frame -> "accuracy" and "beyond", each
                     users              the users that the library reports
                     per_user           metric -> one value for each of `users`, or null: no row
                     mean               metric -> the library's own global number
                     error              what the library raised instead

and `section9.json`: peer -> the global numbers at 10 on the five users of `frames.section9`.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "parity"
sys.path[:0] = [str(ROOT / "benchmarks"), str(Path(__file__).parent)]

import frames as parity  # noqa: E402 (after the path is set)
import peers  # noqa: E402


def write_tables(frames: dict[str, parity.ParityFrame], folder: Path) -> dict[str, dict[str, str]]:
    """Every table as parquet; frame -> table -> path."""
    paths: dict[str, dict[str, str]] = {}
    for name, frame in frames.items():
        for table_name, table in frame.tables().items():
            path = folder / f"{name}_{table_name}.parquet"
            table.to_parquet(path, index=False)
            paths.setdefault(name, {})[table_name] = str(path)
        if frame.judged:
            path = folder / f"{name}_relevant.parquet"
            frame.relevant.to_parquet(path, index=False)
            paths[name]["relevant"] = str(path)
    return paths


def by_position(group: dict[str, Any]) -> dict[str, Any]:
    """The users once, then one list of values a metric."""
    if "error" in group:
        return group
    users = sorted({user for values in group["per_user"].values() for user in values})
    per_user = {
        name: [values.get(user) for user in users] for name, values in group["per_user"].items()
    }
    return {"users": users, "per_user": per_user, "mean": group["mean"]}


def golden(answer: dict[str, Any], frames: dict[str, parity.ParityFrame]) -> dict[str, Any]:
    return {
        "versions": answer["versions"],
        "k": parity.K,
        "judged": answer["judged"],
        "digests": {name: frames[name].digest() for name in answer["answer"]},
        "frames": {
            name: {kind: by_position(group) for kind, group in groups.items()}
            for name, groups in answer["answer"].items()
        },
    }


def same(one: Any, two: Any) -> bool:
    """Whether two answers are equal but for the last digits, which differ by run where a library
    adds in parallel."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, float) and isinstance(two, float):
        return math.isclose(one, two, rel_tol=1e-14) or (math.isnan(one) and math.isnan(two))
    return bool(one == two)


def write(name: str, content: dict[str, Any]) -> None:
    """One metric a line, so that a difference can be read; a file that says the same stays as it
    is."""
    path = GOLDEN / f"{name}.json"
    if path.exists() and same(
        json.loads(path.read_text(encoding="utf-8")), json.loads(json.dumps(content))
    ):
        return
    text = json.dumps(content, separators=(",", ":"))
    for key in ('"per_user":{', '"mean":{', '"frames":{', '"digests":{', '"],'):
        text = text.replace(key, key + "\n")
    GOLDEN.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace('],"', '],\n"') + "\n")


# Libraries that see labelled candidates, or whose ids are positions, are measured on frames that
# have nothing else.
FRAMES_OF = {
    "implicit": ["plain", "holes", "whole"],
    "cornac": ["plain", "holes", "whole"],
    "recbole": ["plain", "whole"],
    "torchmetrics": ["whole"],
    "fuxictr": ["whole"],
    "lightfm": ["plain", "holes", "whole"],
    "recmetrics": ["plain", "holes", "whole"],
    "evidently": ["whole"],
    "tf_ranking": ["whole"],
}


def collect(names: list[str]) -> None:
    frames, five_users = parity.parity_frames(), {"section9": parity.section9()}
    path = GOLDEN / "section9.json"
    section9 = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        tables, small = write_tables(frames, Path(folder)), write_tables(five_users, Path(folder))
        for name in names:
            own = FRAMES_OF.get(name, [frame for frame in frames if frame != "whole"])
            write(
                name,
                golden(
                    peers.measure(name, {frame: tables[frame] for frame in own}, parity.K), frames
                ),
            )
            if name in FRAMES_OF:
                continue
            answer = peers.measure(name, small, [10])
            accuracy = answer["answer"]["section9"]["accuracy"]
            section9[name] = {
                "versions": answer["versions"],
                "mean": accuracy.get("mean", accuracy),
            }
            print(f"{name}: {(GOLDEN / f'{name}.json').stat().st_size // 1000} kB", flush=True)
    write("section9", section9)


if __name__ == "__main__":
    collect(sys.argv[1:] or peers.installed())

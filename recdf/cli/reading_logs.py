"""`recdf impressions`: from a log of impressions, clicks and purchases to the files that `recdf
evaluate` reads."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import OptionError
from ..formats.file_sets import FileSet, read_files
from ..inputs.options import as_columns
from ..logs.impression_tables import SPANS
from ..logs.impressions import from_impressions
from ..partitions.dealt_logs import IMPRESSION_FILES as WRITTEN
from ..partitions.dealt_logs import impressions_parquet
from ..publishing import made, staging_folder
from ..tables.cells import amount
from .arguments import (
    add_arguments,
    add_command,
    add_out,
    add_parameters,
    as_pairs,
    flag,
    given_files,
    given_parameters,
    local,
    typed_parameters,
)
from .output import fail_on, print_tables
from .stored_runs import with_times

OF_IMPRESSIONS = typed_parameters(from_impressions, "list_cols")


def add_impressions(commands: Any) -> None:
    command = add_command(
        commands,
        "impressions",
        _impressions,
        "turn a log of impressions into files of lists",
        "Attribute clicks and purchases to the impressions of a log, and write true.parquet and "
        "pred.parquet, which recdf evaluate reads. Parquet files may be larger than memory: users "
        "are attributed part by part.",
        usage="%(prog)s LOG --out FOLDER [options]",
    )
    add_arguments(command, {"LOG": "one row per impression"}, type=local)
    files = command.add_argument_group("files")
    add_arguments(
        files,
        {
            "--clicks FILE": "one row per click: user, item, time",
            "--purchases FILE": "one row per purchase: user, item, time, price",
            "--refunds FILE": "one row per refund: user, item, time, and the amount if it may be a "
            "part of the price",
            "--persons FILE": "one row per device: user (the device) and person",
        },
        type=local,
    )
    add_arguments(
        files, {"--memory-limit SIZE": "1GB, 512MiB (default a quarter of the machine's)"}
    )
    add_arguments(
        files,
        {
            "--against PATH": "impressions.json of an earlier run, or its folder: warn of shares "
            "(attributed, logged twice, unknown, ...) that moved beyond chance "
            "and by a quarter of their odds"
        },
    )
    add_out(files, WRITTEN, f"folder for {', '.join(WRITTEN)} (the record of rules and counts)")
    columns = command.add_argument_group(
        "columns", "Where a time is needed and --time-col is not given, it is time."
    )
    of_columns = [name for name in OF_IMPRESSIONS if name.endswith("_col")]
    add_parameters(columns, from_impressions, of_columns)
    list_cols = (
        "columns that, with the user, name one list (default session_id); none for one list per "
        "user"
    )
    add_arguments(columns, {"--list-cols COLUMN": list_cols}, nargs="*", default=argparse.SUPPRESS)
    add_arguments(columns, {"--rank-by-time": "there is no column of positions"})
    rules = command.add_argument_group("rules")
    of_rules = [name for name in OF_IMPRESSIONS if name not in of_columns]
    add_parameters(rules, from_impressions, (*SPANS, *of_rules))
    relevance = "gains by the deepest event (default shown=0 clicked=1 bought=3)"
    add_arguments(rules, {"--relevance EVENT=GAIN ...": relevance}, default=[])


def _impressions(given: argparse.Namespace) -> int:
    if given.out is None:
        raise OptionError("--out is missing; name the folder to write")
    options = given_parameters(given, (*OF_IMPRESSIONS, "list_cols", *SPANS))
    options |= {name: _span(options[name]) for name in SPANS if name in options}
    if given.rank_by_time:
        options["rank_col"] = None
    relevance = as_pairs(
        "--relevance", given.relevance, "an event and its gain, such as clicked=1", float
    )
    options |= {"relevance": relevance} if relevance else {}
    if given.clicks or given.purchases or "session_gap" in options:
        options.setdefault("time_col", "time")
    options = {"user_col": "user_id", "item_col": "item_id", **options}
    paths = given_files(given, "log", "clicks", "purchases", "refunds", "persons")
    with ExitStack() as stack:
        if not all(FileSet.of(path).is_plain_parquet for path in paths.values()):
            stack.enter_context(made(given.out))
            paths = _as_parquet(paths, options, stack.enter_context(staging_folder(given.out)))
        rest = {name: getattr(given, name) for name in ("overwrite", "memory_limit", "against")}
        named = {f"{role}_path": path for role, path in paths.items()}
        spec = impressions_parquet(**named, out=given.out, **rest, **options)
    print_tables(given, _report_text(spec, given.out), {"counts": _count_table(spec["counts"])})
    return fail_on(given, (("drift", sentence) for sentence in spec.get("moved", [])))


def _span(text: str) -> Any:
    """A span of time: text with a unit, or a plain number where times are numbers."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _as_parquet(paths: dict[str, Path], options: dict[str, Any], folder: Path) -> dict[str, Path]:
    """Text files, and those beside them, as parquet files in the folder, with ids alike and times
    as datetimes."""
    import pyarrow.parquet as pq  # costs time that other commands need not take

    lists = options.get("list_cols", ["session_id"])
    keys = [options["user_col"], options["item_col"], *lists]
    keys += [options[name] for name in ("order_col", "person_col") if name in options]
    frames = read_files(paths, keys, [])
    found = {}
    for role, frame in frames.items():
        frame = with_times(frame, options.get("time_col"))
        found[role] = folder / f"{role}.parquet"
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), found[role])
    return found


def _count_table(counts: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row per count: of the log, of its clicks, of its purchases."""
    rows: list[tuple[str, str, int]] = []
    for name, found in counts.items():
        rows += (
            [(name, *pair) for pair in found.items()]
            if isinstance(found, dict)
            else [("log", name, found)]
        )
    return pd.DataFrame(rows, columns=["of", "count", "n"])


def _report_text(spec: dict[str, Any], out: Path) -> str:
    counts, positions = spec["counts"], spec["positions"]
    lines = [f"{amount(counts['impressions'], 'impression')} in {amount(counts['lists'], 'list')}"]
    if counts["repeated"]:
        lines.append(f"{counts['repeated']:,} of them repeat an item of their list")
    if positions["column"] is not None:
        lines.append(
            f"positions from {positions['start']:g}, with holes in "
            f"{amount(positions['lists_with_holes'], 'list')} and one twice in "
            f"{positions['lists_with_ties']:,}"
        )
    for name in ("clicks", "purchases", "refunds"):
        if name in counts:
            found = ", ".join(
                f"{n:,} {what.replace('_', ' ')}"
                for what, n in counts[name].items()
                if what != "events"
            )
            lines.append(f"{counts[name]['events']:,} {name}: {found}")
    if "persons" in counts:
        lines.append(
            ", ".join(f"{n:,} {what.replace('_', ' ')}" for what, n in counts["persons"].items())
        )
    usual = {"rank_col": "rank", "relevance_col": "relevance", "item_col": "item_id"}
    options = {
        name: as_columns(value)
        for name, value in spec["options"].items()
        if usual.get(name) != value
    }
    flags = " ".join(word for name, values in options.items() for word in (flag(name), *values))
    lines += [
        "",
        f"wrote {', '.join(str(out / name) for name in WRITTEN)}",
        f"next: recdf evaluate --true {out / WRITTEN[0]} --pred {out / WRITTEN[1]} {flags} -m "
        "hits@10 ndcg@10",
    ]
    return "\n".join(lines)

"""`recdf audit`: is the evaluation itself sound? Files in memory, or read in parts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pandas as pd

from ..diagnostics.audits import Audited, audit, audited, question
from ..formats.file_sets import read_beside
from ..inputs.list_cells import item_lists
from ..inputs.machine import memory_bytes
from ..inputs.options import NAMES, as_columns, id_columns
from ..partitions.source import Source, frame_of_arrow
from .arguments import add_arguments, add_command, add_options, add_out, given_options
from .evaluating import (
    NOT_OF_CHECK,
    add_lists,
    findings_fail,
    findings_lines,
    read_frames_of,
    scratch_folder,
    streamed_files,
)
from .output import give_tables

AUDIT_FILES = ("findings.parquet", "floors.parquet")
NOT_OF_AUDIT = (*NOT_OF_CHECK, "by_in_true", "judged_only")
COPIES = 8  # so many times a part is in memory while it is audited


def add_audit(commands: Any) -> None:
    command = add_command(
        commands,
        "audit",
        _audit,
        "find leaks, and models that are no better than none",
        "Find leaks between training data and truth, and set each metric beside chance, popularity "
        "and the ceiling of its lists. Exit code 1 when a finding is a warning and --fail-on "
        "warning is given.",
        usage="%(prog)s --true FILE --pred FILE [options]",
    )
    files = add_lists(command)
    add_arguments(
        files,
        {
            "--train FILE": "what the model has learned from: user, item, and a time if there is "
            "one",
            "--log FILE": "all interactions, from which the first date of an item is taken "
            "(default those of --train)",
            "--stream": "audit the users in parts, so that --true, --pred and --train may be "
            "larger than memory: parquet files",
            "--memory-limit SIZE": "memory for --stream, which it implies: 1GB, 512MiB",
            "--time-col COLUMN": "column of times in --train and --log, and in --true if it has it",
            "--cutoff TIME": "last moment of training, such as 2026-11-01, or a number",
            "-m --metrics METRIC ...": "metrics of accuracy (default ndcg recall)",
            "-k K ...": "cut-offs of metrics that name none (default 10)",
        },
    )
    add_out(files, AUDIT_FILES)
    add_options(command, [name for name in NAMES if name not in NOT_OF_AUDIT])


def _audit(given: argparse.Namespace) -> int:
    options = given_options(given)
    metrics = given.metrics or ["ndcg", "recall"]
    asked: dict[str, Any] = {
        "metrics": metrics,
        "k": given.k or 10,
        "time_col": given.time_col,
        "cutoff": given.cutoff,
    }
    paths = {
        name: path
        for name in ("train", "log", "items")
        if (path := getattr(given, name)) is not None
    }
    if given.stream or given.memory_limit is not None:
        with scratch_folder(given):
            found = _streamed_audit(given, asked, paths, options)
    else:
        frames = {
            name: _timed(one, given.time_col)
            for name, one in read_frames_of(given, options, paths).items()
        }
        sides: dict[str, Any] = {name: frames.get(name) for name in ("train", "log", "items")}
        found = audit(frames["true"], frames["pred"], **asked, **sides, **options)
    text = (
        findings_lines(found) if len(found) else "nothing found"
    ) + f"\n\n{found.floors.to_string(index=False)}"
    tables = {"findings": pd.DataFrame(found), "floors": found.floors}
    give_tables(given, text, tables)
    return findings_fail(given, found)


def _timed(frame: pd.DataFrame, name: str | None) -> pd.DataFrame:
    """Return a frame whose times are no texts, as those of text files are."""
    if name not in frame.columns or not pd.api.types.is_string_dtype(frame[name].dtype):
        return frame
    return frame.assign(**{str(name): pd.to_datetime(frame[name], format="ISO8601")})


def _streamed_audit(
    given: argparse.Namespace,
    asked: Mapping[str, Any],
    paths: Mapping[str, str],
    options: dict[str, Any],
) -> Audited:
    """Audit the users in parts, each read from the files by itself; the counts are those of the
    whole."""
    files = {"true": given.true, "pred": given.pred} | {
        name: one for name, one in paths.items() if name != "items"
    }
    files = streamed_files(given, options, files)
    sources = {name: Source(path, name) for name, path in files.items()}
    keys = id_columns(options)
    wanted = {*keys, given.time_col, "score", "rank", "relevance", *as_columns(options.get("by"))}
    wanted |= {
        one for name, one in options.items() if name.endswith("_col") and isinstance(one, str)
    }
    empty = {role: frame_of_arrow(one.schema.empty_table()) for role, one in sources.items()}
    lists = item_lists(empty, keys[-1], options.pop("items_sep", None), options.pop("wide", None))
    wanted |= {*lists["pred"].wide}
    names = {
        role: [name for name in one.schema.names if name in wanted] for role, one in sources.items()
    }
    items = (
        read_beside(paths["items"], sources["pred"].files_schema, keys, [])
        if "items" in paths
        else None
    )
    size = sum(
        one.n_rows * one.row_bytes(names[role]) for role, one in sources.items() if role != "log"
    )
    n_parts = int(COPIES * size // memory_bytes(given.memory_limit)) + 1

    def batches(role: str) -> Iterator[pd.DataFrame]:
        source = sources[role]
        frames = map(source.as_pandas, source.batches(names[role], 2**20))
        return (_timed(lists[role].frame(frame), given.time_col) for frame in frames)

    def part_of(frame: pd.DataFrame) -> Any:  # by the user's id alone and not its dtype
        ids = frame[keys[0]].astype(str).astype(object)
        return pd.util.hash_pandas_object(ids, index=False).to_numpy() % n_parts

    return audited(
        {role: partial(batches, role) for role in files},
        n_parts,
        part_of,
        question(**asked, items=items, options=options),
    )

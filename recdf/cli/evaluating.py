"""`recdf evaluate`, `recdf check` and `recdf audit`, which read files of lists.

A job may say what it expects of its files: rows, days, age. A file that is not so is refused (exit
code 1).
"""

from __future__ import annotations

import glob
import operator
import os
import re
import tempfile
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path

import pandas as pd
from pandas import DataFrame

from ..diagnostics import audit, check, data_profile
from ..errors import EmptyPopulationError, OptionError, RecdfError
from ..evaluation.evaluate import evaluate
from ..evaluation.shown import EXCLUDED
from ..evaluation.storage import write_tables
from ..evaluation.summary import ListReduction
from ..formats.file_sets import FileSet, as_parquet, is_remote, read_beside, read_files
from ..inputs.door import NamedFiles
from ..inputs.frames import column
from ..inputs.options import NAMES, OPTIONS, as_columns, id_columns
from ..matching.side_tables.sides import SIDE_TABLES
from ..partitions.evaluate_parquet import evaluate_parquet
from ..partitions.source import Source
from ..publishing import PER_USER, RESULT_FILES, SUMMARY_FILE, staging_folder
from ..tables.cells import amount
from ..tables.findings import finding_of, findings_text
from .arguments import Given, as_pairs, given_files, given_options
from .commands import Command, Reply, Tables, note, plain_signs, verbose
from .stored_runs import with_times

OPERATORS = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
MOST_DAYS = 100_000  # that a number of --expect-days may ask for
UNIT_SECONDS = {"m": 60, "h": 3600, "d": 86400}


class Unexpected(RecdfError, ValueError):
    """The files that arrived are not those that the job expects."""


EXPECTED_FLAGS = {
    "--expect ROWS ...": "numbers of rows, such as rows>=1000000 (of --pred), true.rows>=5000 or "
    "rows[model=als]>=1000 (of one value of a column), and models=als,knn (the values of --by: "
    "these and no other); else exit code 1",
    "--expect-days DAYS ...": "days that --pred, or with true= --true, must have: "
    "2026-11-01..2026-11-30 or true=2026-11-01..2026-11-01, all of them and no other, or 7 for "
    "seven days without a gap up to the latest one",
    "--day-col COLUMN": "column of --expect-days (default day)",
    "--max-age AGE": "age of the newest file of --true and of --pred, such as 26h, 90m or 2d",
}


def check_age(given: Namespace) -> None:
    """Raise if the newest file of a frame is older than --max-age."""
    if given.max_age is None:
        return
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([mhd])", given.max_age)
    if not found:
        raise OptionError(
            f"--max-age {given.max_age}; expected a number of minutes, hours or days: 90m, 26h or "
            "2d"
        )
    for name in ("true", "pred"):
        path = getattr(given, name)
        if is_remote(path):
            raise OptionError(
                f"--max-age looks at files of this machine, and --{name} {path} is an address"
            )
        age = time.time() - max(os.stat(file).st_mtime for file in FileSet.of(path).files)
        if age > float(found[1]) * UNIT_SECONDS[found[2]]:
            old = f"{age / 3600:,.1f} h old"
            raise Unexpected(
                f"the newest file of --{name} {path} is {old}; --max-age is {given.max_age}"
            )


EXPECTED_ROWS = re.compile(
    r"(?:(true|pred)\.)?rows(?:\[([^=\]]+)=([^\]]*)\])?\s*(>=|<=|==|>|<)\s*(\d[\d_,]*)"
)
EXPECTED_MODELS = re.compile(r"models\s*==?\s*(.+)")


def check_expected(given: Namespace, data: Mapping[str, DataFrame | Source]) -> None:
    """Raise if the numbers of rows, the models or the days of --true and --pred are not as
    expected."""
    for text in given.expect or []:
        if models := EXPECTED_MODELS.fullmatch(text):
            names = as_columns(getattr(given, "by", None))
            if len(names) != 1:
                said = f"--expect {text} is about the values of one column; pass --by COLUMN"
                raise OptionError(said)
            there = _counts(data, "pred", names[0]).index
            wanted = pd.Index(models[1].split(","))
            _refuse_others(given, "pred", names[0], wanted, there, f"--expect {text}")
            continue
        found = EXPECTED_ROWS.fullmatch(text)
        if not found:
            raise OptionError(
                f"--expect {text}; expected rows, pred.rows, true.rows or rows[COLUMN=VALUE] with "
                ">=, <= or == and a number, or models=A,B"
            )
        role, name, value, sign, number = found.groups()
        role = role or "pred"
        n_rows = given.files[role]["rows"]
        if name is not None:
            counts = _counts(data, role, name)
            n_rows = counts.get(value, counts.get(value.removesuffix(".0"), 0))
        if not OPERATORS[sign](n_rows, int(re.sub("[_,]", "", number))):
            of = "" if name is None else f" with {name} {value}"
            raise Unexpected(
                f"--{role} {getattr(given, role)} has {n_rows:,} rows{of}; --expect {text}"
            )
    for text in given.expect_days or []:
        role, named, asked = text.rpartition("=")
        if named and role not in ("true", "pred"):
            raise OptionError(f"--expect-days {text}; expected true=DAYS, or DAYS of --pred")
        role = role or "pred"
        texts = _counts(data, role, given.day_col).index.str.slice(0, 10).unique()
        there = pd.to_datetime(texts, errors="coerce", format="mixed").sort_values()
        if there.hasnans or there.empty:
            where = f"--{role} {getattr(given, role)}"
            raise Unexpected(f"{where} has no days in {given.day_col!r}, or values that are none")
        wanted = _asked_days(asked, there[-1])
        if not len(wanted):
            raise OptionError(f"--expect-days {text}; expected 2026-11-01..2026-11-30 or a number")
        there = there if ".." in asked else there[there >= wanted[0]]
        days_wanted, days = (one.strftime("%Y-%m-%d") for one in (wanted, there))
        _refuse_others(given, role, given.day_col, days_wanted, days, f"--expect-days {text}")


def _asked_days(asked: str, latest: pd.Timestamp) -> pd.DatetimeIndex:
    """Return the days of a text such as 2026-11-01..2026-11-30, or 7 for those up to the latest;
    none if this is no such text."""
    first, between, last = asked.partition("..")
    with suppress(ValueError, AttributeError):  # which pandas raises for "nan..nan"
        if between and first and last:
            return pd.date_range(first, last)
        if 0 < int(first) < MOST_DAYS:
            return pd.date_range(end=latest, periods=int(first))
    return pd.DatetimeIndex([])


def _refuse_others(
    given: Namespace, role: str, name: str, wanted: pd.Index, there: pd.Index, asked: str
) -> None:
    """Raise if a column does not have the values that are wanted, or has others."""
    for some, word in (
        (wanted.difference(there, sort=False), "lacks"),
        (there.difference(wanted, sort=False), "has, beside the expected ones,"),
    ):
        if len(some):
            shown = f"{len(some):,} in {name!r}: {', '.join(some[:5])}"
            raise Unexpected(f"--{role} {getattr(given, role)} {word} {shown}; {asked}")


def _counts(data: Mapping[str, DataFrame | Source], role: str, name: str) -> pd.Series:
    """Count the rows of each value of a column, by its text: 1 for the number 1.0 too. Files may be
    read piece by piece."""
    of = data[role]
    pieces = (
        (of.as_pandas(table)[name] for table in of.batches([name], 2**20))
        if isinstance(of, Source)
        else [column(of, name, role)]
    )
    counts = []
    for values in pieces:
        found = values.value_counts(dropna=False)
        found = found[found > 0]  # a category without rows is no value
        texts = found.index.astype(str)
        is_float = pd.api.types.is_float_dtype(values.dtype)
        counts.append(found.set_axis(texts.str.removesuffix(".0") if is_float else texts))
    return pd.concat(counts).groupby(level=0).sum()


# `check` reports the cases that these options decide, so it does not take them.
NOT_OF_CHECK = ("users", "ties", "duplicates", "null_keys", "nan_score", "undefined")


LIST_FLAGS = {
    "--true FILE (required)": "what is relevant: user and item",
    "--pred FILE (required)": "what was recommended, best first",
    "--items FILE": SIDE_TABLES["items"].flag,
}


def _evaluate(given: Namespace, _: Given) -> Reply:
    stream = given.stream or given.memory_limit is not None
    with staging_folder(Path(tempfile.gettempdir())) if stream else nullcontext() as scratch:
        return _evaluate_files(given, scratch)


def _evaluate_files(given: Namespace, scratch: Path | None) -> Reply:
    if given.profile and (given.out is None or scratch is not None):
        raise OptionError(
            "--profile needs --out, and files that are read as a whole: leave out --stream"
        )
    check_age(given)
    started = time.perf_counter()
    options = given_options(given)
    names = [name for name, one in SIDE_TABLES.items() if one.usage == "FILE"]
    paths = given_files(given, *names)
    populations = OPTIONS["users"].constraint.values
    if options.get("users", "true") not in populations:
        paths["users"] = options.pop("users")
        if not _is_file(paths["users"]):
            raise OptionError(
                f"--users {paths['users']}: neither one of {', '.join(populations)} nor a file of "
                "ids"
            )
    if given.features and len(given.features) == 1 and _is_file(given.features[0]):
        paths["features"] = given.features[0]
    elif given.features:
        options["features"] = given.features
    files, sources = ({}, {}) if scratch is None else _streamed(given, options, scratch)
    # Files that are not streamed get ids of the same types as those of the streamed files.
    frames = (
        {
            name: read_beside(path, sources["pred"].files_schema, id_columns(options), [])
            for name, path in paths.items()
        }
        if sources
        else read_frames_of(given, options, paths)
    )
    options |= {name: frame for name, frame in frames.items() if name not in ("true", "pred")}
    if "features" in frames:
        item_col = id_columns(options)[-1]
        column(frames["features"], item_col, "features")
        options["features"] = frames["features"].set_index(item_col)
    if given.item_by is not None:
        options["item_by"] = given.item_by
    if given.carry is not None:
        rules = [text if "=" in text else f"{text}=constant" for text in given.carry]
        options["carry"] = as_pairs("--carry", rules, "a column and a rule, as time=min")
    options["k"] = given.k or 10
    empty = [name for name in ("true", "pred") if not given.files[name]["rows"]]
    if empty and not given.allow_empty:  # most often the fault of the job that wrote it
        named = " and ".join(f"--{name} {getattr(given, name)}" for name in empty)
        raise EmptyPopulationError(f"{named} {'have' if len(empty) > 1 else 'has'} no rows")
    check_expected(given, sources or frames)
    stats = [
        float(one) if re.fullmatch(r"[\d.]*\d[\d.]*", one) else one
        for one in given.stat or ["mean"]
    ]
    # What cannot be printed is an error before the result is written.
    ListReduction(stats, given.weight_by, None, 0, 1, 0).check_weights(
        options.get("weight_col") is not None
    )
    if sources:
        result = evaluate_parquet(
            files["true"],
            files["pred"],
            given.metrics,
            out=given.out,
            overwrite=given.overwrite,
            memory_limit=given.memory_limit,
            **options,
        )
    else:
        lists = frames["true"], frames["pred"]
        result = evaluate(*lists, given.metrics, **options)
        result.spec["files"] = {name: given.files[name] for name in ("true", "pred")}
        if given.out is not None:
            own = {name: one for name, one in options.items() if name in (*OPTIONS, "items")}
            profile = data_profile(*lists, **own) if given.profile else None
            tables = result.per_user, result.summary, result.spec
            write_tables(given.out, tables, overwrite=given.overwrite, profile=profile)
    summary = result.summary
    if given.stat or given.weight_by:
        summary = result.summarize(stat=stats, weight_by=given.weight_by)
        if given.item_by or set(result.spec["metrics"]) - set(result.per_user.columns):
            note(
                given,
                "neither metrics of exposure nor rows within groups of items have such a "
                "statistic\n",
            )
    verbose(given, f"evaluated in {time.perf_counter() - started:.1f} s")
    notes = []
    if "exclude_rows" in result.spec["counts"]:
        notes.append(EXCLUDED.format_map(result.spec["counts"]).replace("exclude=", "--exclude"))
    if given.out is not None:
        from pyarrow.parquet import read_metadata  # costs time that other commands need not take

        per_user = given.out / PER_USER
        n_rows = amount(read_metadata(per_user).num_rows, "row")
        notes.append(f"wrote {per_user} ({n_rows}) and {given.out / SUMMARY_FILE}")
    said = "".join(f"\n{one}" for one in notes)
    return Reply(summary.to_string(index=False), printed={"summary": summary}, note=said)


def _is_file(name: str) -> bool:
    return is_remote(name) or bool(glob.glob(name))


def _streamed(given: Namespace, options: Given, scratch: Path) -> tuple[Given, dict[str, Source]]:
    """Find the files to read piece by piece, and say how many rows they have. Files that are no
    parquet files are written as such, with standard names."""
    paths = {"true": given.true, "pred": given.pred}
    names = {name: options.pop(f"{name}_cols", {}) for name in paths}
    found = as_parquet(paths, id_columns(options), as_columns(options.get("by")), names, scratch)
    files = {
        name: NamedFiles(one, names[name] if one == paths[name] else {})
        for name, one in found.items()
    }
    sources = {name: Source(path, name) for name, path in files.items()}
    given.files = {name: one.amounts for name, one in sources.items()}
    _say_read(given, paths)
    return files, sources


def read_frames_of(
    given: Namespace, options: Given, paths: Mapping[str, str]
) -> dict[str, DataFrame]:
    """Read `true`, `pred` and the side tables, with ids of the same types and the standard names in
    all of them."""
    paths = {"true": given.true, "pred": given.pred, **paths}
    named = [one for name, one in options.items() if name.endswith("_col")]
    named += [one.split("=")[0] for one in getattr(given, "carry", None) or []]
    named += ["score", "rank", "relevance", getattr(given, "time_col", None)]
    columns = [one for one in named if isinstance(one, str)]
    names = {name: options.pop(f"{name}_cols", None) for name in ("true", "pred")}
    frames = read_files(paths, id_columns(options), as_columns(options.get("by")), columns, names)
    given.files = {
        name: {"files": len(FileSet.of(paths[name]).files), "rows": len(frame)}
        for name, frame in frames.items()
    }
    _say_read(given, paths)
    return frames


def _say_read(given: Namespace, paths: Mapping[str, str]) -> None:
    """Say with -v what was read, in the same words whether the files are streamed or not."""
    for name, of in given.files.items():
        n_files = amount(of["files"], "file")
        n_rows = amount(of["rows"], "row")
        verbose(given, f"read --{name} {paths[name]}: {n_files}, {n_rows}")


def _check(given: Namespace, _: Given) -> Reply:
    check_age(given)
    options = given_options(given)
    frames: Given = read_frames_of(given, options, given_files(given, "items", "log", "exclude"))
    check_expected(given, frames)
    found = check(frames.pop("true"), frames.pop("pred"), given.k, **frames, **options)
    return _findings(found, f"nothing odd found at k = {given.k}", "", {"findings": found})


def _audit(given: Namespace, _: Given) -> Reply:
    options = given_options(given)
    paths = given_files(given, "train", "log", "items")
    frames: Given = {
        name: with_times(one, given.time_col)
        for name, one in read_frames_of(given, options, paths).items()
    }
    found = audit(
        frames.pop("true"),
        frames.pop("pred"),
        given.metrics or ["ndcg", "recall"],
        given.k or 10,
        time_col=given.time_col,
        cutoff=given.cutoff,
        **frames,
        **options,
    )
    tables = {"findings": DataFrame(found), "floors": found.floors}
    return _findings(found, "nothing found", f"\n\n{found.floors.to_string(index=False)}", tables)


def _findings(found: DataFrame, none: str, below: str, tables: Tables) -> Reply:
    """Say findings, with the number of each severity below them. An error ends the command with
    code 1, and a warning where `--fail-on` names it."""
    counts = found["severity"].value_counts()
    nouns = {"error": "error", "warning": "warning", "info": "note"}
    words = [amount(counts.get(what, 0), noun) for what, noun in nouns.items()]
    text = f"{plain_signs(findings_text(found))}\n\nfound: {', '.join(words)}"
    failings = [
        (row["severity"], f"{row['severity']}: {finding_of(row)}: {row['count']:,}")
        for row in found.to_dict("records")
    ]
    return Reply(
        (text if len(found) else none) + below, tables, failings=failings, always=["error"]
    )


EVALUATE = Command(
    "evaluate",
    "evaluate files of recommendations",
    "Evaluate recommendations: print a row per metric; with --out write that and a row per user.",
    "--true FILE --pred FILE -m METRIC ...",
    _evaluate,
    writes=RESULT_FILES,
    files=LIST_FLAGS
    | {f"--{name} {one.usage}": one.flag for name, one in SIDE_TABLES.items() if name != "items"}
    | {
        "--allow-empty": "evaluate files without rows, or without a common user or item; else "
        "exit code 1",
        "--stream": "read --true and --pred piece by piece, so that they may be larger than "
        "memory; files that are no parquet files are first written as such to the temporary "
        "folder (TMPDIR)",
        "--memory-limit SIZE": "memory for --stream, which it implies: 1GB, 512MiB (default a "
        "quarter of the machine's)",
        "--profile": "also write profile.parquet: unknown users and items, judged share and "
        "scores, for recdf history",
    },
    arguments={
        "-m --metrics METRIC ... (required)": "such as ndcg@10",
        "--item-by COLUMN": "column of --items: also evaluate within each group of items",
        "--carry COLUMN ...": "columns of --pred to copy into per_user.parquet, constant within a "
        "list, or reduced, such as time=min (first, last, min, max)",
        "-k K ...": "cut-offs of metrics that name none (default 10)",
        "--stat STAT ...": "print these statistics of the lists, as rd.summarize does: mean (the "
        "default), sum, median, min, max, std, gmean, or a quantile such as 0.9; files have means",
        "--weight-by COUNT": "print means with weights of lists: relevant, shown or rows",
    }
    | EXPECTED_FLAGS,
    options=NAMES,
    defaults={"day_col": "day"},
)
CHECK = Command(
    "check",
    "find what is odd in files of recommendations",
    "Find what is odd in the data and what it does to the metrics. Exit code 1 when an error is "
    "found.",
    "--true FILE --pred FILE",
    _check,
    writes=["findings.parquet"],
    files=LIST_FLAGS | {f"--{name} FILE": SIDE_TABLES[name].flag for name in ("log", "exclude")},
    arguments={"-k K": "cut-off that the findings refer to (default 10)"} | EXPECTED_FLAGS,
    options=[name for name in NAMES if name not in NOT_OF_CHECK],
    defaults={"day_col": "day", "k": 10},
)
AUDIT = Command(
    "audit",
    "find leaks, and models that are no better than none",
    "Find leaks between training data and truth, and set each metric beside chance, popularity and "
    "the ceiling of its lists. Exit code 1 when a finding is a warning and --fail-on warning is "
    "given.",
    "--true FILE --pred FILE",
    _audit,
    writes=["findings.parquet", "floors.parquet"],
    files=LIST_FLAGS
    | {
        "--train FILE": "what the model has learned from: user, item, and a time if there is one",
        "--log FILE": "all interactions, from which the first date of an item is taken (default "
        "those of --train)",
    },
    arguments={
        "--time-col COLUMN": "column of times in --train and --log, and in --true if it has it",
        "--cutoff TIME": "last moment of training, such as 2026-11-01, or a number",
        "-m --metrics METRIC ...": "metrics of accuracy (default ndcg recall)",
        "-k K ...": "cut-offs of metrics that name none (default 10)",
    },
    options=[name for name in NAMES if name not in (*NOT_OF_CHECK, "by_in_true", "judged_only")],
)

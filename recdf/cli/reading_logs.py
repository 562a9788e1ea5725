"""`recdf impressions` and `recdf ope`, which read logs.

The first turns a log of impressions, clicks and purchases into the files that `recdf evaluate` reads. The second
estimates from a log with propensities the value of policies that did not run.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from ..errors import DataError, OptionError
from ..evaluation.publishing import made, staging_folder
from ..inputs.options import as_columns
from ..logs.impressions import SPANS, from_impressions
from ..off_policy.compare_targets import ope_compare
from ..off_policy.estimate_value import ope_estimate
from ..off_policy.flags import MEANINGS
from ..off_policy.target_from_recs import target_from_recs
from ..off_policy.weight_diagnostics import ope_diagnostics
from ..partitions.impressions_parquet import IMPRESSION_FILES as WRITTEN
from ..partitions.impressions_parquet import impressions_parquet
from .arguments import FILES_HELP, add_arguments, add_out, add_parameters, as_pairs, check_out, given_parameters, local
from .files import is_text_file, read_files
from .output import ESTIMATED, give_tables, print_tables, text_table

LOG_COLUMN_FLAGS = ("user_col", "item_col", "rank_col", "time_col", "clicked_col", "value_col")
LOG_RULE_FLAGS = ("attribution", "repeats", "unattributed", "value", "null_keys")


def add_impressions(commands: Any) -> None:
    command = commands.add_parser(
        "impressions",
        usage="%(prog)s LOG --out FOLDER [options]",
        help="turn a log of impressions into files of lists",
        description="Attribute clicks and purchases to the impressions of a log, and write true.parquet and "
        "pred.parquet, which recdf evaluate reads. Parquet files may be larger than memory: users are attributed part "
        "by part.",
        epilog=FILES_HELP,
    )
    add_arguments(command, {"LOG": "one row per impression"}, type=local)
    files = command.add_argument_group("files")
    add_arguments(files, {
        "--clicks FILE": "one row per click: user, item, time",
        "--purchases FILE": "one row per purchase: user, item, time, price",
    }, type=local)  # fmt: skip
    add_arguments(files, {"--memory-limit SIZE": "1GB, 512MiB (default a quarter of the machine's)"})
    add_out(files, "folder for true.parquet, pred.parquet and impressions.json, the record of rules and counts")
    columns = command.add_argument_group("columns", "Where a time is needed and --time-col is not given, it is time.")
    add_parameters(columns, from_impressions, LOG_COLUMN_FLAGS)
    list_cols = "columns that, with the user, name one list (default session_id); none for one list per user"
    add_arguments(columns, {"--list-cols COLUMN": list_cols}, nargs="*", default=argparse.SUPPRESS)
    add_arguments(columns, {"--rank-by-time": "there is no column of positions"})
    rules = command.add_argument_group("rules")
    add_parameters(rules, from_impressions, (*SPANS, *LOG_RULE_FLAGS))
    relevance = "gains by the deepest event (default shown=0 clicked=1 bought=3)"
    add_arguments(rules, {"--relevance EVENT=GAIN ...": relevance}, default=[])
    command.set_defaults(run=_impressions, parser=command)


def _impressions(given: argparse.Namespace) -> None:
    if given.out is None:
        raise OptionError("--out is missing; name the folder to write")
    check_out(given.out, WRITTEN, given.overwrite)
    options = given_parameters(given, (*LOG_COLUMN_FLAGS, "list_cols", *SPANS, *LOG_RULE_FLAGS))
    options |= {name: _span(options[name]) for name in SPANS if name in options}
    if given.rank_by_time:
        options["rank_col"] = None
    relevance = as_pairs("--relevance", given.relevance, "an event and its gain, such as clicked=1", float)
    options |= {"relevance": relevance} if relevance else {}
    if given.clicks or given.purchases or "session_gap" in options:
        options.setdefault("time_col", "time")
    options = {"user_col": "user_id", "item_col": "item_id", **options}
    paths = {name: path for name in ("log", "clicks", "purchases") if (path := getattr(given, name)) is not None}
    with ExitStack() as stack:
        if any(map(is_text_file, paths.values())):
            stack.enter_context(made(given.out))
            paths = _as_parquet(paths, options, stack.enter_context(staging_folder(given.out)))
        rest = {"overwrite": given.overwrite, "memory_limit": given.memory_limit}
        named = {f"{role}_path": path for role, path in paths.items()}
        spec = impressions_parquet(**named, out=given.out, **rest, **options)
    print_tables(given, _report_text(spec, given.out), {"counts": _count_table(spec["counts"])})


def _span(text: str) -> Any:
    """A span of time: text with a unit, or a plain number where times are numbers."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _as_parquet(paths: dict[str, Path], options: dict[str, Any], folder: Path) -> dict[str, Path]:
    """Text files, and those beside them, as parquet files in the folder, with ids alike and times as datetimes."""
    import pyarrow.parquet as pq  # costs time that other commands need not take

    lists = options.get("list_cols", ["session_id"])
    frames = read_files(paths, [options["user_col"], options["item_col"], *lists], [])
    name, found = options.get("time_col"), {}
    for role, frame in frames.items():
        if name in frame.columns and is_text_file(paths[role]) and not pd.api.types.is_numeric_dtype(frame[name].dtype):
            try:
                frame = frame.assign(**{str(name): pd.to_datetime(frame[name], format="ISO8601")})
            except ValueError as error:
                raise DataError(f"{paths[role]}: column {name} holds no times as 2026-09-01 12:30: {error}") from error
        found[role] = folder / f"{role}.parquet"
        pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), found[role])
    return found


def _count_table(counts: Mapping[str, Any]) -> pd.DataFrame:
    """Return one row per count: of the log, of its clicks, of its purchases."""
    rows: list[tuple[str, str, int]] = []
    for name, found in counts.items():
        rows += [(name, *pair) for pair in found.items()] if isinstance(found, dict) else [("log", name, found)]
    return pd.DataFrame(rows, columns=["of", "count", "n"])


def _report_text(spec: dict[str, Any], out: Path) -> str:
    counts, positions = spec["counts"], spec["positions"]
    lines = [f"{counts['impressions']:,} impressions in {counts['lists']:,} lists"]
    if counts["repeated"]:
        lines.append(f"{counts['repeated']:,} of them repeat an item of their list (--repeats {spec['repeats']})")
    if positions["column"] is not None:
        lines.append(
            f"positions from {positions['start']:g}, with holes in {positions['lists_with_holes']:,} lists and one "
            f"twice in {positions['lists_with_ties']:,}"
        )
    for name in ("clicks", "purchases"):
        if name in counts:
            found = ", ".join(f"{n:,} {what.replace('_', ' ')}" for what, n in counts[name].items() if what != "events")
            lines.append(f"{counts[name]['events']:,} {name}: {found}")
    keys = " ".join([spec["user_col"], *spec["list_cols"]])
    value = "" if spec["value_col"] is None else f" --value-col {spec['value_col']}"
    item = "" if spec["item_col"] == "item_id" else f" --item-col {spec['item_col']}"
    lines += [
        "",
        f"wrote {', '.join(str(out / name) for name in WRITTEN)}",
        f"next: recdf evaluate --true {out / WRITTEN[0]} --pred {out / WRITTEN[1]} --user-col {keys}{item}{value} "
        "-m hits@10 ndcg@10",
    ]
    return "\n".join(lines)


OPE_COLUMN_FLAGS = ("reward_col", "propensity_col", "target_col", "position_col", "weight_col", "q_logged", "q_target")
SLATES = ("slate_col", "interaction", "propensity_kind", "ragged")
INTERVALS = ("confidence", "interval", "n_resamples", "seed")

def add_ope(commands: Any) -> None:
    command = commands.add_parser(
        "ope",
        usage="%(prog)s LOG [options]",  # the flags that take several values would swallow a file after them
        help="estimate what a policy that did not run would have earned",
        description="Estimate from a log with propensities what other policies would have earned. The column trust "
        "says whether an estimate may be used, and flags say why not.",
        epilog=FILES_HELP,
    )
    files = command.add_argument_group("files")
    add_arguments(files, {
        "LOG": "one row per item that was shown, with its propensity",
        "--pred FILE": "recommendations to estimate the value of (default: --target-col of LOG)",
    })  # fmt: skip
    add_out(files, "folder for ope.parquet, ope_diagnostics.parquet and, for several targets, ope_comparison.parquet")
    what = command.add_argument_group("what is estimated")
    add_parameters(what, ope_estimate, ("estimators",))
    add_arguments(what, {
        "--clip NUMBER ...": "largest weights, a row for each",
        "--by COLUMN ...": "columns of --pred or LOG whose values stand alone",
        "--baseline NAME": "target that others are compared with (default: all pairs)",
    })  # fmt: skip
    add_arguments(command.add_argument_group("how --pred is matched"), {
        "--on COLUMN ...": "list key and item id of both files (default user_id item_id)",
        "-k N": "use the first N items of every list",
        "--match-position": "an item counts only at its --position-col of LOG",
    })  # fmt: skip
    options = command.add_argument_group("options")
    add_parameters(options, ope_estimate, (*OPE_COLUMN_FLAGS, *SLATES, *INTERVALS))
    add_arguments(options, {"--cluster COLUMN": "rows that belong together (default user_id), or none"}, nargs="*")
    for name in ("reward", "weight"):
        pair: dict[str, Any] = {"nargs": "+", "type": float, "metavar": ("LOW", "HIGH")}
        options.add_argument(f"--{name}-range", **pair, help=f"possible {name}s (--interval bounded)")
    command.set_defaults(run=_ope, parser=command)


def _ope(given: argparse.Namespace) -> None:
    check_out(given.out, ESTIMATED, given.overwrite)
    options = given_parameters(given, ("estimators", *OPE_COLUMN_FLAGS, *SLATES, *INTERVALS))
    more = ("clip", "cluster", "reward_range", "weight_range")
    options |= {name: value for name in more if (value := getattr(given, name)) is not None}
    if given.cluster is not None and [name.lower() for name in given.cluster] in ([], ["none"]):
        options["cluster"] = None
    log = _read_log(given, options)
    by = {"by": given.by} if given.by else {}
    tables = {"ope": ope_estimate(log, **options, **by)}
    if "slate_col" not in options or "interaction" in options:  # else each estimator may name another interaction
        tables["ope_diagnostics"] = ope_diagnostics(log, **_taken(ope_diagnostics, options), **by)
    numbers = ("value", "ci_low", "ci_high", "logging_value", "lift")
    lines = [_shown(tables["ope"], given.by or [], numbers, "ess_reward")]
    if given.pred is not None and given.by and len(given.by) == 1 and log[given.by[0]].nunique() > 1:
        asked = _taken(ope_compare, options)
        tables["ope_comparison"] = compared = ope_compare(log, by=given.by[0], baseline=given.baseline, **asked)
        lines.append(_shown(compared, ["baseline", *given.by], ("diff", "ci_low", "ci_high"), "n_clusters"))
    give_tables(given, "\n".join([*lines, _explained(tables["ope"])]), tables, tables, ESTIMATED)


def _taken(function: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a function takes."""
    return {name: value for name, value in options.items() if name in inspect.signature(function).parameters}


def _read_log(given: argparse.Namespace, options: dict[str, Any]) -> pd.DataFrame:
    """The log, with the target policy of --pred where that is given."""
    on = given.on or ["user_id", "item_id"]
    keys = [*on, *as_columns(options.get("cluster", "user_id")), *as_columns(options.get("slate_col"))]
    paths = {"log": given.log} | ({} if given.pred is None else {"pred": given.pred})
    frames = read_files(paths, list(dict.fromkeys(keys)), given.by or [])
    if given.pred is None:
        return frames["log"]
    position = options.get("position_col", "position") if given.match_position else None
    by = [name for name in given.by or [] if name in frames["pred"].columns]
    return target_from_recs(frames["log"], frames["pred"], on=on, position_col=position, k=given.k, by=by or None)


def _shown(table: pd.DataFrame, labels: Sequence[str], numbers: Sequence[str], last: str) -> str:
    """Write the columns that fit into a terminal. Trust and flags are always among them."""
    texts = {name: [str(label) for label in table[name]] for name in (*labels, "estimator")}
    if table["clip"].notna().any():
        texts["clip"] = ["" if pd.isna(one) else f"{one:g}" for one in table["clip"]]
    texts |= {name: [f"{one:.5g}" for one in table[name]] for name in numbers}
    texts[last] = [f"{one:,.0f}" for one in table[last]]
    texts |= {name: table[name].tolist() for name in ("trust", "flags")}
    return text_table(texts) + "\n"


def _explained(table: pd.DataFrame) -> str:
    """Explain every flag that occurs in one line."""
    found = set(table["flags"].str.split(", ").explode())
    lines = [f"{name}: {text}" for name, text in MEANINGS.items() if name in found]
    return "\n".join(lines or ["no flags: the intervals hold what they say if the propensities are right"])

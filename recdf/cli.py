"""The command `recdf`: files in, a table on the screen, parquet files out.

Contract: `main(argv)` returns the exit code. What was asked for goes to stdout; a problem is one line on
stderr and code 2, a warning of recdf one line on stderr. Options are those of `Options`, never written twice.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import typing
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn, TextIO

import pandas as pd
import pyarrow as pa
from pyarrow.parquet import read_metadata

from . import __version__
from .errors import OptionError, RecdfError, RecdfWarning
from .evaluate import Evaluation, evaluate, summarize
from .files import is_text_file, read_files
from .options import CHOICES, DESCRIPTION, NAMES, Options, as_columns
from .sample import Shop, sample_shop
from .streaming import evaluate_parquet

__all__ = ["main"]

DEMO_FOLDER = "recdf-demo"
DEMO_METRICS = ["hitrate@10", "recall@10", "ndcg@10", "mrr@10", "revenue@10"]
RESULT_FILES = ("per_user.parquet", "summary.parquet")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 2 after one line that says what is wrong.

    Parameters
    ----------
    argv : list of str, optional
        Arguments without the program's name; by default those of the process.

    Returns
    -------
    int
        Exit code.

    Examples
    --------
    >>> from recdf.cli import main
    >>> main(["evaluate", "--true", "t.txt", "--pred", "p.txt", "-m", "ndcg@10"])  # and a line on stderr
    2
    """
    try:
        given = _parser().parse_args(argv)
    except SystemExit as stop:  # --help, --version, or a usage error that has been printed
        return stop.code if isinstance(stop.code, int) else 2
    with warnings.catch_warnings():
        warnings.simplefilter("always", RecdfWarning)
        warnings.showwarning = _show_warning(warnings.showwarning)
        try:
            given.run(given)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, head say, has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            return 130
        except (RecdfError, OSError, ValueError, TypeError, MemoryError, pa.ArrowException) as error:
            print(f"recdf {given.command}: error: {_one_line(error)}", file=sys.stderr)
            return 2
    return 0


# ------------------------------------------------------------------------------------------ arguments


class _Parser(argparse.ArgumentParser):
    """Reports a usage error in one line."""

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments, allow_abbrev=False)  # an abbreviation would break when an option is added

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="recdf", description="Evaluate logged recommendations.")
    parser.add_argument("--version", action="version", version=f"recdf {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    _add_evaluate(commands)
    _add_demo(commands)
    return parser


def _add_evaluate(commands: Any) -> None:
    command = commands.add_parser(
        "evaluate",
        help="evaluate files of recommendations",
        description="Evaluate recommendations: print a row per metric; with --out write that and a row per user.",
        epilog="Files are .parquet (or a folder of them), .csv or .tsv (also .csv.gz). Ids in text files "
        "are integers where every file writes the column as plain integers (7, not 007 or 7.0), else text.",
    )
    files = command.add_argument_group("files")
    files.add_argument(
        "--true", required=True, type=Path, metavar="FILE", help="what was wanted: rows of user and item"
    )
    files.add_argument("--pred", required=True, type=Path, metavar="FILE", help="what was recommended, best first")
    files.add_argument("--items", type=Path, metavar="FILE", help="catalogue: one row per item")
    files.add_argument(
        "--stream",
        action="store_true",
        help="read --true and --pred piece by piece, so that they may be larger than memory: parquet files, "
        "folders of them, or quoted globs ('pred/*.parquet')",
    )
    files.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="memory for --stream (which it implies), as 1GB or 512MiB; default a quarter of the machine's",
    )
    _add_out(files, "folder for per_user.parquet and summary.parquet; without it nothing is written")
    what = command.add_argument_group("metrics")
    what.add_argument("-m", "--metrics", required=True, nargs="+", action="extend", metavar="METRIC", help="as ndcg@10")
    what.add_argument(
        "-k", nargs="+", action="extend", type=int, help="cut-offs of metrics that name none (default 10)"
    )
    options = command.add_argument_group("options")
    texts = option_texts()
    types = typing.get_type_hints(Options)
    for field in fields(Options):
        _add_option(options, field.name, types[field.name], texts.get(field.name, ""))
    command.set_defaults(run=_evaluate)


def _add_option(group: Any, name: str, kind: Any, text: str) -> None:
    """One argument for one field of `Options`; what is not given is left out of the result."""
    shape: dict[str, Any] = {"default": argparse.SUPPRESS, "help": text.replace("%", "%%")}
    if kind is bool:
        shape["action"] = "store_true"
    elif name == "users":
        shape["metavar"] = "{" + ",".join(CHOICES[name]) + "} or FILE"
    elif name in CHOICES:
        shape["choices"] = CHOICES[name]
    elif Sequence[str] in typing.get_args(kind):
        shape |= {"nargs": "+", "action": "extend", "metavar": "COLUMN"}
    elif float in typing.get_args(kind):
        shape |= {"type": float, "metavar": "NUMBER"}
    elif name.endswith("_col"):
        shape["metavar"] = "COLUMN"
    else:
        shape["metavar"] = "NAME"
    if name in CHOICES or name in ("user_col", "item_col"):
        shape["help"] += f" Default {Options.__dataclass_fields__[name].default}."
    group.add_argument(_flag(name), dest=name, **shape)


def _add_out(group: Any, text: str) -> None:
    group.add_argument("--out", type=Path, metavar="FOLDER", help=text)
    group.add_argument("--overwrite", action="store_true", help="replace a result that is already there")


def _add_demo(commands: Any) -> None:
    command = commands.add_parser(
        "demo",
        help="evaluate three models of a generated shop",
        description="Generate a small shop, evaluate its three recommenders, and write the frames and the result.",
    )
    _add_out(command, f"folder to write (default {DEMO_FOLDER}, which a second run replaces)")
    command.set_defaults(run=_demo)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def option_texts() -> dict[str, str]:
    """Help of each option, from the docstring that all calls share."""
    texts = {}
    for names, text in re.findall(r"^(\w[\w, ]*?) : .*\n((?:    .*\n?)+)", DESCRIPTION, flags=re.M):
        texts.update(dict.fromkeys(names.split(", "), " ".join(text.split())))
    return texts | {"user_col": "Column or columns of the list key.", "item_col": "Column of the item id."}


# ------------------------------------------------------------------------------------------ evaluate


def _evaluate(given: argparse.Namespace) -> None:
    if given.out is not None:
        _check_out(given.out, given.overwrite)
    options = {name: value for name, value in vars(given).items() if name in NAMES}
    for name, value in options.items():
        if isinstance(value, list) and len(value) == 1:
            options[name] = value[0]
    paths = {name: path for name in ("true", "pred", "items") if (path := getattr(given, name)) is not None}
    if options.get("users", "true") not in CHOICES["users"]:
        paths["users"] = Path(options.pop("users"))
        if not paths["users"].exists():
            raise OptionError(
                f"--users {paths['users']}: neither one of {', '.join(CHOICES['users'])} nor a file of ids"
            )
    keys = [*as_columns(options.get("user_col", Options.user_col)), options.get("item_col", Options.item_col)]
    stream = given.stream or given.memory_limit is not None
    if stream:
        streamed = {name: paths.pop(name) for name in ("true", "pred")}
        texts = [path for path in streamed.values() if is_text_file(path)]
        if texts:
            raise OptionError(f"--stream reads parquet files; {texts[0]} is none")
    frames = read_files(paths, keys, as_columns(options.get("by")))
    if "users" in frames:
        options["users"] = frames["users"]
    options |= {"k": given.k or 10, "items": frames.get("items")}
    if stream:
        where = {"out": given.out, "overwrite": given.overwrite, "memory_limit": given.memory_limit}
        result = evaluate_parquet(streamed["true"], streamed["pred"], given.metrics, **where, **options)
    else:
        result = evaluate(frames["true"], frames["pred"], given.metrics, **options)
    print(result.summary.to_string(index=False))
    if given.out is not None:
        if not stream:
            result.to_parquet(given.out, overwrite=given.overwrite)
        n_rows = read_metadata(given.out / RESULT_FILES[0]).num_rows
        print(f"\nwrote {given.out / RESULT_FILES[0]} ({n_rows:,} rows) and {given.out / RESULT_FILES[1]}")


def _check_out(folder: Path, overwrite: bool) -> None:
    """Refuse before any work is done what would be refused after it."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise FileExistsError(f"{there} is a file; expected a folder")
    held = [name for name in RESULT_FILES if (folder / name).exists()]
    if held and not overwrite:
        raise FileExistsError(f"{folder} already holds {held[0]}; pass --overwrite to replace the result")


# ------------------------------------------------------------------------------------------ demo


def _demo(given: argparse.Namespace) -> None:
    folder = given.out or Path(DEMO_FOLDER)
    overwrite = given.overwrite or given.out is None
    _check_out(folder, overwrite)
    shop = sample_shop()
    result = evaluate(shop.true, shop.pred, DEMO_METRICS, by="model", value_col="value")
    joined = result.per_user.merge(shop.users, on="user_id", validate="many_to_one")
    segments = summarize(joined, by=["model", "segment"], metrics=["ndcg@10"])
    print(_demo_report(shop, result, segments))
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("true", "pred", "users", "items"):
        getattr(shop, name).to_parquet(folder / f"{name}.parquet", index=False)
    result.to_parquet(folder, overwrite=overwrite)
    print(
        f"""
Wrote to {folder}: the frames (true, pred, users, items) and the result (per_user, summary).

Try next:
  recdf evaluate --true {folder / "true.parquet"} --pred {folder / "pred.parquet"} --by model -m ndcg mapr -k 5 20
  recdf evaluate --help
  python -c "import recdf as rd; print(rd.metrics_table().to_string())\""""
    )


def _demo_report(shop: Shop, result: Evaluation, segments: pd.DataFrame) -> str:
    n_lists = result.summary["n"].iloc[0]
    head = (
        f"A generated shop: {len(shop.users):,} users, {len(shop.items):,} items, "
        f"{len(shop.true):,} purchases, {len(shop.pred):,} recommendations by {shop.pred['model'].nunique()} models."
    )
    by_metric = result.summary.assign(column=result.summary["metric"] + "@" + result.summary["k"].astype(str))
    whole = _grid(by_metric, "model", "column")
    parts = _grid(segments, "model", "segment")
    return (
        f"{head}\n\nMean over the {n_lists:,} users who bought, ± half of its 95 % interval:\n\n{whole}\n\n"
        f"ndcg@10 by segment of the users:\n\n{parts}"
    )


def _grid(summary: pd.DataFrame, row: str, column: str) -> str:
    """Value ± half interval, one line per value of `row`, in order of appearance."""
    half = (summary["ci_high"] - summary["ci_low"]) / 2
    cells = [f"{value:.3f} ± {width:.3f}" for value, width in zip(summary["value"], half, strict=True)]
    table = summary[[row, column]].assign(cell=cells).pivot(index=row, columns=column, values="cell")
    table = table.loc[summary[row].unique(), summary[column].unique()]
    return table.rename_axis(index=None, columns=None).to_string()


# ------------------------------------------------------------------------------------------ messages


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = " ".join(str(error).split()) or type(error).__name__
    # Python's `null_keys="drop"` is `--null-keys drop` here.
    return re.sub(rf"\b({'|'.join(NAMES)}|items|overwrite|memory_limit)=(?:True|\"(\w+)\")?", _as_flag, text)


def _as_flag(found: re.Match[str]) -> str:
    return _flag(found[1]) + (f" {found[2]}" if found[2] else "")


def _show_warning(usual: Callable[..., None]) -> Callable[..., None]:
    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, RecdfWarning):
            print(f"recdf: warning: {' '.join(str(message).split())}", file=sys.stderr)
        else:
            usual(message, category, filename, lineno, file, line)

    return show

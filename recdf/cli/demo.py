"""`recdf demo`: the sample shop, evaluated and reported."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

from ..datasets import Shop, sample_shop
from ..diagnostics.count_tables import exposure_table, position_table
from ..diagnostics.data_checks import check
from ..display.report.page import report
from ..errors import MissingExtraError
from ..evaluation.evaluate import evaluate
from ..evaluation.result import Evaluation
from ..evaluation.storage import write_files
from ..evaluation.summary import summarize
from ..publishing import PER_USER, RESULT_FILES, published, refuse_files
from ..tables.cells import plus_minus
from .arguments import add_command, add_out
from .output import note, print_tables

DEMO_FOLDER = "recdf-demo"
DEMO_FRAMES = ("true", "pred", "log", "users", "items", "assignment", "shown")
DEMO_FILES = [*RESULT_FILES, *(f"{name}.parquet" for name in DEMO_FRAMES), "report.html"]
DEMO_METRICS = ["ndcg", "recall", "hitrate", "mrr", "revenue", "coverage"]
DEMO_K = [5, 10, 20]


def add_demo(commands: Any) -> None:
    command = add_command(
        commands,
        "demo",
        _demo,
        "evaluate three models of a generated shop",
        "Generate a small shop, evaluate its three recommenders, and write the frames and the "
        "result.",
        epilog=None,
    )
    add_out(
        command,
        DEMO_FILES,
        f"folder to write (default {DEMO_FOLDER}, which a second run replaces)",
    )


def _demo(given: argparse.Namespace) -> None:
    folder = given.out or Path(DEMO_FOLDER)
    overwrite = given.overwrite or given.out is None
    files = [folder / name for name in DEMO_FILES]
    refuse_files(files, overwrite)
    shop = sample_shop()
    result = evaluate(
        shop.true, shop.pred, DEMO_METRICS, DEMO_K, by="model", value_col="value", items=shop.items
    )
    joined = result.per_user.merge(shop.users, on="user_id", validate="many_to_one")
    segments = summarize(joined, by=["model", "segment"], metrics=["ndcg@10"])
    with published(files, overwrite=overwrite) as place:
        staging = place(folder / PER_USER).parent
        for name in DEMO_FRAMES:
            getattr(shop, name).to_parquet(staging / f"{name}.parquet", index=False)
        write_files(staging, [result.per_user], result.summary, result.spec)
        shown = _write_report(folder / "report.html", staging, shop, result)
    print_tables(
        given,
        _demo_report(shop, result, segments),
        {"summary": result.summary, "segments": segments},
    )
    note(
        given,
        f"""
Wrote to {folder} the frames
({", ".join(DEMO_FRAMES)})
and the result (per_user, summary).
{shown}

Try next, in {folder}:
  recdf evaluate --true true.parquet --pred pred.parquet --by model -m ndcg mapr
  recdf check --true true.parquet --pred pred.parquet --by model
  recdf report . --out page.html --baseline popularity
  recdf compare . --baseline popularity --metric ndcg@10 --test randomization
  recdf evaluate --help
or, for all metrics:
  python -c "import recdf as rd; print(rd.metrics_table().to_string())\"""",
    )


def _write_report(path: Path, staging: Path, shop: Shop, result: Evaluation) -> str:
    """Write the report of the shop, and return the line that says where it is, or what it needs."""
    try:
        written = report(
            result,
            staging / "report" / path.name,
            title="Models of the sample shop",
            baseline="popularity",
            check=check(shop.true, shop.pred, by="model", items=shop.items, log=shop.log),
            segments=shop.users[["user_id", "segment", "channel"]],
            exposure=exposure_table(shop.pred, by="model", items=shop.items, true=shop.true),
            log=shop.log,
            position=position_table(shop.true, shop.pred, by="model"),
        )
        written.replace(staging / path.name)
    except MissingExtraError as error:
        return f"No report: {error}."
    return f"Wrote {path}: one page about these models, to open in a browser."


def _demo_report(shop: Shop, result: Evaluation, segments: pd.DataFrame) -> str:
    summary = result.summary[result.summary["k"] == 10]
    by_metric = summary.assign(column=summary["metric"] + "@" + summary["k"].astype(str))
    return (
        f"A generated shop: {len(shop.users):,} users, {len(shop.items):,} items, "
        f"{len(shop.true):,} purchases,\n{len(shop.pred):,} recommendations by "
        f"{shop.pred['model'].nunique()} models.\n\nMean over the {result.summary['n'].iloc[0]:,} "
        "users who bought, ± half of its 95 % interval:\n\n"
        f"{_grid(by_metric, 'column', 'model')}\n\n"
        f"ndcg@10 by segment of the users:\n\n{_grid(segments, 'model', 'segment')}"
    )


def _grid(summary: pd.DataFrame, row: str, column: str) -> str:
    """Value ± half interval, one line per value of `row`, in order of appearance."""
    half = (summary["ci_high"] - summary["ci_low"]) / 2
    pairs = zip(summary["value"], half, strict=True)
    cells = [" ".join(plus_minus(*one)).rstrip() for one in pairs]
    table = (
        summary[[row, column]].assign(cell=cells).pivot(index=row, columns=column, values="cell")
    )
    table = table.loc[summary[row].unique(), summary[column].unique()]
    return table.rename_axis(index=None, columns=None).to_string()

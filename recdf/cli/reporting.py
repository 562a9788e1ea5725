"""`recdf report`: from a result on disk to one HTML file. `recdf demo`: the sample shop, evaluated
and reported."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ..datasets import Shop, sample_shop
from ..diagnostics.count_tables import exposure_table, position_table
from ..diagnostics.data_checks import check
from ..diagnostics.gate_records import Gate
from ..diagnostics.history import History
from ..display.report.page import report
from ..errors import DataError, MissingExtraError
from ..evaluation.evaluate import evaluate
from ..evaluation.result import Evaluation
from ..evaluation.storage import digest_of_result, write_files
from ..evaluation.summary import summarize
from ..publishing import (
    PER_USER,
    RESULT_FILES,
    is_there,
    published,
    read_table,
    refuse_files,
    refuse_two_runs,
    steadily,
)
from .arguments import BOUNDS_FLAG, flag, given_files
from .commands import Command, Given, Reply
from .output import COMPARED_RESULT, COMPARISON_FILES, ESTIMATED, GATE_FILES, brief_text
from .stored_runs import ROLES, given_for_models, given_roles, read_results

# Tables beside the result, by flag: what wrote them. Each is a parquet file.
TABLES = {
    "comparison": "what recdf compare --out wrote, to be shown instead of paired t tests",
    "health": "the health.parquet that recdf experiment --out wrote",
    "check": "the findings of recdf check",
    "off_policy": "the estimates of recdf ope",
    "exposure": "what rd.diagnostics.exposure_table returned",
    "log": "past interactions, for the picture of the long tail (needs --exposure)",
    "position": "what rd.diagnostics.position_table returned",
    "over_time": "effects by period",
    "gate": "the folder that recdf gate --out wrote, or its gate.parquet",
}


FLAGS_OF_DATA = ("--exposure", "--log", "--position")  # no run wrote them: links are followed


def _report(given: argparse.Namespace, options: Given) -> Reply:
    alone = (given.experiment, given.off_policy, given.history, given.gate, given.check)
    if not given.results and all(one is None for one in alone):
        given.parser.error(
            "name RESULTS, or a page of its own: --experiment FILE, --off-policy FILE, --history "
            "FOLDER, --gate FOLDER, --check FILE"
        )
    result = read_results(given.results) if given.results else None
    paths = given_files(given, *TABLES)
    if "gate" in paths and paths["gate"].is_dir():
        paths["gate"] /= GATE_FILES[0]
    several = given.experiment or ()
    stems = [path.stem for path in several]
    named = {path.stem if stems.count(path.stem) == 1 else str(path): path for path in several}
    tables: dict[str, Any] = dict(
        _read_all(paths | {f"experiment {name}": path for name, path in named.items()})
    )
    effects = {name: tables.pop(f"experiment {name}") for name in named}
    if effects:
        tables["experiment"] = effects if len(effects) > 1 else next(iter(effects.values()))
    if "gate" in tables:
        tables["gate"] = Gate(tables["gate"], tables.pop("checks"))
    if (
        "comparison" in tables
        and given.results
        and tables["comparison"].attrs.get(
            COMPARED_RESULT, this := digest_of_result(*given.results)
        )
        != this
    ):
        raise DataError(
            f"{given.comparison} compares another result than {' '.join(map(str, given.results))}; "
            "run recdf compare again"
        )
    path = report(
        result,
        given.out,
        examples=given.examples,
        overwrite=given.overwrite,
        **given_for_models(given, result),
        **options,
        **tables,
        roles=given_roles(given) or None,
        ran={"looks": given.looks},
        history=None if given.history is None else History(given.history),
    )
    n_bytes = path.stat().st_size
    written = pd.DataFrame({"file": [str(path)], "bytes": [n_bytes]})
    return Reply(
        f"wrote {path}, {n_bytes / 1e3:,.0f} kB: open it in a browser", printed={"report": written}
    )


def _read_all(paths: Mapping[str, Path]) -> dict[str, pd.DataFrame]:
    """Read tables by flag, all of them of the same moment; refuse those of two runs in one
    folder."""
    beside = {
        name: [
            path.parent / one
            for kind in (COMPARISON_FILES, ESTIMATED, GATE_FILES)
            if path.name in kind
            for one in kind
        ]
        for name, path in paths.items()
    }
    watched = [*paths.values(), *(one for found in beside.values() for one in found)]
    return steadily(watched, lambda: _read_once(paths, beside)) if paths else {}


def _read_once(
    paths: Mapping[str, Path], beside: Mapping[str, list[Path]]
) -> dict[str, pd.DataFrame]:
    tables = {name: _read_beside(name, path) for name, path in paths.items()}
    if "gate" in paths:
        tables["checks"] = _read_beside("gate", paths["gate"].parent / GATE_FILES[1])
    for name, path in paths.items():
        others = {one: _read_beside(name, one) for one in beside[name] if is_there(one)}
        refuse_two_runs({path: tables[name]} | others)
    return tables


def _read_beside(name: str, path: Path) -> pd.DataFrame:
    """Read a table beside the result; the first word of its name is its flag."""
    name = flag(name.split()[0])
    try:
        return read_table(path.resolve() if name in FLAGS_OF_DATA else path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{name} {path}: no such file") from None
    except DataError as error:
        raise error.within(f"{name} ") from error


# ------------------------------------------------------------------------------------------
# `recdf demo`: the sample shop, evaluated and reported.


DEMO_FOLDER = "recdf-demo"
DEMO_FRAMES = ("true", "pred", "log", "users", "items", "assignment", "shown")
DEMO_FILES = [*RESULT_FILES, *(f"{name}.parquet" for name in DEMO_FRAMES), "report.html"]
DEMO_METRICS = ["ndcg", "recall", "hitrate", "mrr", "revenue", "coverage"]
DEMO_K = [5, 10, 20]


def _demo(given: argparse.Namespace, _: Given) -> Reply:
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
    text = f"""\
A generated shop: {len(shop.users):,} users, {len(shop.items):,} items, {len(shop.true):,} purchases
and {len(shop.pred):,} recommendations by {shop.pred["model"].nunique()} models.

{result}

ndcg@10 by segment of the users:

{brief_text(segments, ["model", "segment", "value", "ci_low", "ci_high", "n"])}"""
    note = f"""
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
  python -c "import recdf as rd; print(rd.metrics_table().to_string())\""""
    return Reply(text, printed={"summary": result.summary, "segments": segments}, note=note)


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


REPORT = Command(
    "report",
    "write one HTML file: verdict, leaderboard, pictures, data health",
    "Write one HTML file about a result: which model to take, by how much, for whom it is worse, "
    "and whether to believe it. Without RESULTS the page is about --experiment or --off-policy. It "
    "needs no network and holds aggregates only.",
    "[RESULTS ...]",
    _report,
    [report],
    None,
    {
        "RESULTS [...]": "folder that recdf evaluate --out wrote; several folders are models, "
        "which have the names of the folders",
        "--cheap RESULTS": "folder of the same models on more lists under cheap labels, where "
        "people judged those of RESULTS",
        "--out PATH": "default report.html",
        "--overwrite": "replace a file that is already there",
        "--segments FILE": "one row per user: id and columns of segments",
        "--experiment TABLE ...": "the comparison.parquet that recdf experiment --out wrote, and "
        "what recdf aa, srm, plan, quantiles and interleaved wrote",
        "--history FOLDER": "earlier results of the job, as recdf history reads them",
    }
    | {f"{flag(name)} TABLE": text for name, text in TABLES.items()},
    {
        "--baseline NAME": "model that the others are compared with",
        "--examples": "show the examples of --check, which hold ids of users",
    }
    | BOUNDS_FLAG
    | ROLES,
    ["path", "overwrite"],
    defaults={"out": Path("report.html")},
    fails=False,
)
DEMO = Command(
    "demo",
    "evaluate three models of a generated shop",
    "Generate a small shop, evaluate its three recommenders, and write the frames and the result.",
    "",
    _demo,
    writes=DEMO_FILES,
    out=f"folder to write (default {DEMO_FOLDER}, which a second run replaces)",
    fails=False,
)

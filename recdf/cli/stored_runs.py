"""Stored results: what commands about them share (folders, labels of their columns, roles of
metrics), `recdf report`, and `recdf demo`, which stores and reports the sample shop."""

from __future__ import annotations

import inspect
import os
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
from pandas import DataFrame

from ..datasets import Shop, sample_shop
from ..diagnostics import History, check, exposure_table, position_table
from ..diagnostics.gate_records import Gate
from ..display.report.page import report
from ..errors import DataError, MissingExtraError, OptionError, closest
from ..evaluation.evaluate import evaluate
from ..evaluation.result import Evaluation, join_results, read_parquet
from ..evaluation.storage import digest_of_result, file_of_rows, write_files
from ..evaluation.summary import summarize
from ..experiments import read_plan, role_verdicts
from ..experiments.decide.decide_experiment import (
    Roles,
    decisions,
    plan_sentence,
    table_of_decisions,
)
from ..formats.file_sets import read_beside, read_files
from ..inputs.options import as_columns
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
from .arguments import BOUNDS_FLAG, Given, as_bounds, as_pairs, flag, given_files
from .commands import (
    COMPARED_RESULT,
    COMPARISON_FILES,
    ESTIMATED,
    GATE_FILES,
    Command,
    Reply,
    Tables,
    brief_text,
    plain_signs,
)

# ------------------------------------------------------------------------------------------
# Results that a command is given: the folder of one, or the folders of several runs.


ONE_RESULT = {"RESULTS": "folder that recdf evaluate --out wrote"}
RUNS = {
    "RESULTS ...": "folder that recdf evaluate --out wrote; several folders are models, which have "
    "the names of the folders"
}


def read_results(paths: Sequence[Path]) -> Evaluation:
    """Read one result, or join those of several folders, each named as its folder."""
    if len(paths) == 1:
        return read_parquet(paths[0])
    shared = Path(os.path.commonpath([path.absolute() for path in paths]))
    names = [path.absolute().name for path in paths]
    if len({*names}) < len(names):  # runs/a/results and runs/b/results
        names = [path.absolute().relative_to(shared).as_posix() for path in paths]
    if len({*names}) < len(names):
        raise OptionError(f"{' '.join(map(str, paths))} names a folder twice")
    return join_results(dict(zip(names, paths, strict=True)))


def label(argument: str, text: str | None, values: pd.Series) -> Any:
    """Return the label whose text this is, such as the number 3 for "3"; None if there is no
    text."""
    if text is None:
        return None
    labels = values.dropna().unique().tolist()
    number = pd.to_numeric(text, errors="coerce")  # 0 is the label 0.0, too
    meant = [one for one in labels if str(one) == text]
    meant += [one for one in labels if not isinstance(one, str | bool) and one == number]
    if meant:
        return meant[0]
    known = ", ".join(map(str, labels))
    raise OptionError(
        f"--{argument} {text}: no such {values.name}; the result has {known}{closest(text, labels)}"
    )


def given_for_models(given: Namespace, result: Evaluation | None) -> Given:
    """Return what a leaderboard and a report are told of the models of a result: the baseline,
    segments, cheap labels and bounds."""
    baseline = given.baseline
    segments = given.segments
    if result is not None and len(by := result.spec["by"]) == 1:
        baseline = label("baseline", baseline, result.summary[by[0]])
    if segments is not None and result is None:
        segments = read_files({"segments": segments}, [], [])["segments"]
    elif segments is not None and result is not None:
        keys = result.spec["user_col"]
        segments = read_beside(segments, file_of_rows(given.results[0]), keys, [])
    return {
        "baseline": baseline,
        "segments": segments,
        "cheap": None if given.cheap is None else read_parquet(given.cheap),
        "bounds": as_bounds(given.bounds),
    }


# ------------------------------------------------------------------------------------------
# Roles of metrics on the command line: what a metric is for, and the decision that follows.


ROLES = {
    "--guardrail METRIC=MARGIN ...": "what may be lost: revenue@10=-2%% of the control's mean, or "
    "revenue@10=-0.05 in units of the metric, latency=+5%% where smaller is better",
    "--plan FILE": "TOML file from before the experiment: hypothesis, primary, guardrails, unit, "
    "segments, n, ...",
    "--looks N": "how often the numbers were looked at, which a plan may name",
    "--role METRIC=ROLE ...": "ctr=success: ships if better; load=diagnostic (so are metrics that "
    "are not named)",
}


def given_roles(given: Namespace) -> Roles:
    """Return the role of every metric that was given one, or the plan."""
    if given.plan is not None:
        if given.role or given.guardrail:
            raise OptionError(
                "--plan names the roles of the metrics; leave out --role and --guardrail"
            )
        return read_plan(given.plan)
    roles = as_pairs("--role", given.role, "a metric and its role, as ctr=success")
    margins = given_margins(given)
    for name, role in roles.items():
        if role == "guardrail":
            raise OptionError(f"--role {name}=guardrail has no margin; pass --guardrail {name}=-2%")
        if name in margins:
            raise OptionError(f"{name} has a --role and is a --guardrail; expected one of them")
    return roles | {name: ("guardrail", margin) for name, margin in margins.items()}


def given_margins(given: Namespace) -> dict[str, Any]:
    """Return the margin of every guardrail."""
    expected = "a metric and what it may lose, as revenue@10=-2%"
    margins = as_pairs("--guardrail", given.guardrail, expected)
    for name, text in margins.items():
        with suppress(ValueError):
            margins[name] = float(text)
    return margins


def decided(table: DataFrame, roles: Roles, ran: Given) -> tuple[Tables, str]:
    """Return the decision and what each role says, if there are roles; and the decision about every
    treatment for a terminal, with a line for each reason."""
    if not roles:
        return {}, ""
    rows = decisions(table, roles, ran)
    lines = []
    for row in rows:
        lines.append(
            f"\nDecision, {row['treatment']} vs. {row['control']}: {row['decision'].upper()}"
        )
        lines += [f"  {line}" for line in (*row["reasons"], plan_sentence(row)) if line]
    tables = {"decision": table_of_decisions(rows), "roles": role_verdicts(table, roles)}
    return tables, plain_signs("\n".join(lines))


def failing_decisions(decision: DataFrame | None) -> Iterator[tuple[str, str]]:
    """Give what `--fail-on` may name of each treatment's decision, with its sentence."""
    fails = {"do_not_ship": "worse", "keep_running": "undecided", "invalid": "invalid"}
    for row in [] if decision is None else decision.to_dict("records"):
        pair = f"{row['treatment']} vs. {row['control']}"
        if row["effect"] in fails:
            yield fails[row["effect"]], f"{pair}: {row['decision']}, {row['reasons']}"
        if row.get("deviations"):
            yield "deviation", f"{pair}: {row['decision']}, {row['deviations']}"
            yield "warning", f"{pair}: {row['deviations']}"


def with_times(frame: DataFrame, name: str | None) -> DataFrame:
    """Return a frame with a text column read as times, if it holds times."""
    if name not in frame.columns or not pd.api.types.is_string_dtype(frame[name].dtype):
        return frame
    try:
        return frame.assign(**{str(name): pd.to_datetime(frame[name], format="ISO8601")})
    except (ValueError, TypeError):  # cohorts may have any names; who needs times refuses others
        return frame


def frames_of_call(
    given: Namespace,
    function: Callable[..., Any],
    options: Given,
    *roles: str,
    labels: Sequence[str] = (),
) -> Given:
    """Read the files of a call. Which columns are ids and which are labels, the options of the
    function say."""
    defaults = {
        name: one.default for name, one in inspect.signature(function).parameters.items()
    } | options

    def columns(*names: str) -> list[str]:
        found = (one for name in names for one in as_columns(defaults.get(name)))
        return list(dict.fromkeys(found))

    return read_files(
        {role: getattr(given, role) for role in roles},
        columns("unit_col", "user_col", "item_col"),
        [*columns("variant_col", "columns", "cluster", "strata", "by"), *labels],
        ["score", "rank"],
    )


# ------------------------------------------------------------------------------------------
# `recdf report`: from a result on disk to one HTML file.

# Tables beside the result, by flag: what wrote them. Each is a parquet file, or the folder of the
# run that wrote it.
TABLES = {
    "comparison": "what recdf compare --out wrote, to be shown instead of paired t tests",
    "health": "what recdf experiment --out wrote of the users per variant",
    "check": "what recdf check --out or recdf audit --out found",
    "off_policy": "what recdf ope --out estimated",
    "exposure": "what rd.diagnostics.exposure_table returned",
    "log": "past interactions, for the picture of the long tail (needs --exposure)",
    "position": "what rd.diagnostics.position_table returned",
    "over_time": "effects by period",
    "gate": "what recdf gate --out wrote",
}
FILE_OF_RUN = {
    "comparison": COMPARISON_FILES[0],
    "health": "health.parquet",
    "check": "findings.parquet",
    "off_policy": ESTIMATED[0],
    "over_time": "over_time.parquet",
    "gate": GATE_FILES[0],
}

# Tables that a run of an experiment writes beside its effects; of several runs they are left out,
# since they would not say whose they are.
OF_EXPERIMENT = ("health", "over_time")


def _report(given: Namespace, options: Given) -> Reply:
    alone = (given.experiment, given.off_policy, given.history, given.gate, given.check)
    if not given.results and all(one is None for one in alone):
        raise OptionError(
            "name RESULTS, or a page of its own: --experiment, --off-policy, --gate or --check "
            "with the file or the folder that a run wrote, --history FOLDER"
        )
    result = read_results(given.results) if given.results else None
    paths = {
        name: path / FILE_OF_RUN[name] if name in FILE_OF_RUN and path.is_dir() else path
        for name, path in given_files(given, *TABLES).items()
    }
    several: list[Path] = []
    roles = given_roles(given) or None
    of_experiments = given.experiment or ()
    # Tables of several experiments would not say whose they are.
    alone = sum(one.is_dir() or one.name == COMPARISON_FILES[0] for one in of_experiments) == 1
    for path in of_experiments:  # the folder of a run stands for the tables in it
        names = ["comparison", "segments", *OF_EXPERIMENT]
        if roles is None and alone:
            names += ["decision", "roles"]
        inside = {name: path / f"{name}.parquet" for name in names}
        there = {name: one for name, one in inside.items() if path.is_dir() and is_there(one)}
        beside = {name: there.pop(name) for name in OF_EXPERIMENT if name in there}
        paths = (beside if alone else {}) | paths
        several += there.values() or sorted(path.glob("*.parquet")) or [path]
    stems = [path.stem for path in several]
    named = {path.stem if stems.count(path.stem) == 1 else str(path): path for path in several}
    tables: Given = _read_all(paths | {f"experiment {name}": path for name, path in named.items()})
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
        roles=roles,
        ran={"looks": given.looks},
        history=None if given.history is None else History(given.history),
    )
    n_bytes = path.stat().st_size
    written = DataFrame({"file": [str(path)], "bytes": [n_bytes]})
    return Reply(
        f"wrote {path}, {n_bytes / 1e3:,.0f} kB: open it in a browser", printed={"report": written}
    )


def _read_all(paths: Mapping[str, Path]) -> dict[str, DataFrame]:
    """Read tables by flag, all of them of the same moment; refuse those of two runs in one
    folder."""
    kinds = (COMPARISON_FILES, ESTIMATED, GATE_FILES)
    beside = {
        name: [path.parent / one for kind in kinds if path.name in kind for one in kind]
        for name, path in paths.items()
    }

    def read() -> dict[str, DataFrame]:
        tables = {name: _read_beside(name, path) for name, path in paths.items()}
        if "gate" in paths:
            tables["checks"] = _read_beside("gate", paths["gate"].parent / GATE_FILES[1])
        for name, path in paths.items():
            others = {one: _read_beside(name, one) for one in beside[name] if is_there(one)}
            refuse_two_runs({path: tables[name]} | others)
        return tables

    watched = [*paths.values(), *(one for found in beside.values() for one in found)]
    return steadily(watched, read) if paths else {}


def _read_beside(name: str, path: Path) -> DataFrame:
    """Read a table beside the result; the first word of its name is its flag."""
    name = flag(name.split()[0])
    try:
        of_data = ("--exposure", "--log", "--position")  # no run wrote them: links are followed
        return read_table(path.resolve() if name in of_data else path)
    except FileNotFoundError:
        raise FileNotFoundError(f"{name} {path}: no such file") from None
    except DataError as error:
        raise error.within(f"{name} ") from error


# ------------------------------------------------------------------------------------------
# `recdf demo`: the sample shop, evaluated and reported.


DEMO_FOLDER = "recdf-demo"
DEMO_FRAMES = ("true", "pred", "log", "users", "items", "assignment", "shown")
DEMO_FILES = [*RESULT_FILES, *(f"{name}.parquet" for name in DEMO_FRAMES), "report.html"]


def _demo(given: Namespace, _: Given) -> Reply:
    folder = given.out or Path(DEMO_FOLDER)
    overwrite = given.overwrite or given.out is None
    files = [folder / name for name in DEMO_FILES]
    refuse_files(files, overwrite)
    shop = sample_shop()
    result = evaluate(
        shop.true,
        shop.pred,
        ["ndcg", "recall", "hitrate", "mrr", "revenue", "coverage"],
        [5, 10, 20],
        by="model",
        value_col="value",
        items=shop.items,
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
        "--experiment TABLE ...": "the folder that recdf experiment --out wrote, or its "
        "comparison.parquet, and what recdf aa, srm, plan, quantiles and interleaved wrote",
        "--history FOLDER": "earlier results of the job, as recdf history reads them",
    }
    | {
        f"{flag(name)} TABLE": f"{text}: its folder or {FILE_OF_RUN[name]}"
        if name in FILE_OF_RUN
        else text
        for name, text in TABLES.items()
    },
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

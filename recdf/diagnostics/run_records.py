"""What folders of results say of the past: every run of the command, and what became of offline
differences online."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..errors import DataError, DuplicateError, OptionError, kind_of
from ..evaluation.result import read_parquet
from ..evaluation.storage import PROFILED, digest_of_result, local_path
from ..evaluation.summary import summarize
from ..inputs.options import Options
from ..judge.cautions.table import UNLIKE
from ..judge.choices import AnySpec, Row
from ..judge.per_user_columns import frame_of, key_codes, require
from ..judge.users import only_rows
from ..publishing import (
    PER_USER,
    PROFILE,
    SUMMARY_FILE,
    files_below,
    is_there,
    read_bytes,
    read_table,
)
from ..tables.findings import row_names

COMPARED, HEALTH_FILE, DECIDED = "comparison.parquet", "health.parquet", "decision.parquet"
RUN_COLUMNS = ["folder", "command", "started", "seconds", "exit", "recdf", "decided"]
OF_MEANING = (
    "min_relevance",
    "judged_only",
    "users",
    "duplicates",
    "nan_score",
    "ties",
    "undefined",
    "propensity_floor",
)


def past_runs(folder: Any) -> DataFrame:
    """List every run of the command `recdf` whose record is below a folder, the oldest first, and
    what it decided.

    Parameters
    ----------
    folder : path
        Folder of results, at any depth.

    Returns
    -------
    DataFrame
        One row per run record: `folder` (below `folder`), `command`, `started` (UTC), `seconds`,
        `exit`, `recdf` (version) and `decided`: decisions, verdict of the gate, or verdicts of the
        comparison, "" for others.

    Raises
    ------
    DataError
        A record is no JSON of a run.
    OSError
        The folder does not exist.

    Examples
    --------
    >>> import recdf as rd, tempfile
    >>> list(rd.diagnostics.past_runs(tempfile.mkdtemp()))
    ['folder', 'command', 'started', 'seconds', 'exit', 'recdf', 'decided']
    """
    root = existing_folder(folder)
    rows = []
    for path in files_below(root, "run*.json"):
        try:
            found = json.loads(read_bytes(path))
            record = {name: found[name] for name in RUN_COLUMNS[1:-1]}
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise DataError(
                f"{path} is no record of a run of recdf ({error}); move it elsewhere"
            ) from error
        command = str(record["command"][1])
        rows.append(
            record
            | {
                "folder": path.parent.relative_to(root).as_posix(),
                "command": command,
                "started": pd.to_datetime(record["started"], utc=True),
                "decided": _decided_by(command, path.parent),
            }
        )
    return DataFrame(rows, columns=RUN_COLUMNS).sort_values(
        "started", kind="stable", ignore_index=True
    )


# The tables that say what a run of a command decided; the first that is beside its record counts.
DECIDED_IN = {
    "experiment": (DECIDED, COMPARED),
    "compare": (COMPARED,),
    "gate": ("gate.parquet",),
}


def _decided_by(command: str, folder: Path) -> str:
    """Say what a run decided, "" where no table beside its record tells."""
    there = (name for name in DECIDED_IN.get(command, ()) if is_there(folder / name))
    if (name := next(there, None)) is None:
        return ""
    table = read_table(folder / name)
    if command == "gate":
        return ", ".join(f"{n} {word}" for word, n in table["verdict"].value_counts().items())
    new = table.columns.intersection(["model", "treatment"])
    said = table["decision"] if name == DECIDED else table["metric"] + " " + table["verdict"]
    return "; ".join(
        f"{one}: {words}" for one, words in zip(row_names(table[new]), said, strict=True)
    )


def past_tests(folder: Any) -> DataFrame:
    """Put what was found offline beside what was found online, one row per experiment, for
    `proxy_metrics`.

    Parameters
    ----------
    folder : path
        Each folder directly in it is one experiment. Anywhere below that stand the comparison of
        models that `recdf compare --out` wrote, and the one of variants that `recdf experiment
        --out` wrote.

    Returns
    -------
    DataFrame
        `experiment` (name of the folder), `baseline`, `model`, `control`, `treatment`, `decision`;
        for every metric offline_<metric>, offline_<metric>_se, online_<metric>, online_<metric>_se,
        null where it was not measured. A treatment belongs to the model of the same name, or to the
        only one that was compared.

    Raises
    ------
    DataError
        Several comparisons of one kind in an experiment; a treatment of no model; a metric whose
        definition changed.
    DuplicateError
        Two experiments with the same users in their control, or one with several treatments: their
        errors are not independent. Keep one of them.
    OSError
        The folder does not exist.

    Examples
    --------
    >>> import recdf as rd, tempfile
    >>> len(rd.diagnostics.past_tests(tempfile.mkdtemp()))
    0
    """
    root = existing_folder(folder)
    rows = []
    definitions: dict[str, tuple[str, str]] = {}
    controls: dict[str, str] = {}
    for place in sorted(path for path in root.iterdir() if path.is_dir()):
        name = place.name
        tables: dict[str, tuple[Path, DataFrame]] = {}
        for path in files_below(place, COMPARED):
            table = read_table(path)
            # A comparison of variants may have a column `model`, and one of models `treatment`.
            kind = "treatment" if {"control", "treatment"} <= {*table} else "model"
            if kind == "model" and "baseline" not in table:  # a table of another program
                continue
            if table.empty:
                raise DataError(f"{path} has no rows; write it anew, or remove it")
            if kind in tables:
                raise DataError(
                    f"{tables[kind][0]} and {path} both compare {kind}s; expected one in {name}"
                )
            tables[kind] = path, table
        if len(tables) < 2:
            continue
        for _, table in tables.values():
            for metric, own in definitions_of(table.attrs.get("recdf", {})).items():
                before, known = definitions.setdefault(metric, (own, name))
                if before != own:
                    raise DataError(
                        f"{metric} is {before} in {known} and {own} in {name}, so that its "
                        "differences do not compare; evaluate one of them again"
                    )
        beside = tables["treatment"][0].parent
        row = _test(name, tables["model"][1], tables["treatment"][1])
        if is_there(beside / HEALTH_FILE):
            health = read_table(beside / HEALTH_FILE)
            for digest in health.loc[health["variant"] == row["control"], "users_digest"].iloc[:1]:
                other = controls.setdefault(digest, name)
                if other != name:
                    raise DuplicateError(
                        f"{other} and {name} have the same users in their control, so that their "
                        "errors are not independent; keep one of them"
                    )
        if is_there(beside / DECIDED):
            row["decision"] = read_table(beside / DECIDED)["decision"].iloc[0]
        rows.append(row)
    first = ["experiment", "baseline", "model", "control", "treatment", "decision"]
    return DataFrame(rows, columns=None if rows else first)


def _test(name: str, models: DataFrame, variants: DataFrame) -> Row:
    """One experiment: its treatment, the model that this was, and the differences of both
    tables."""
    arms = variants[["control", "treatment"]].drop_duplicates()
    if len(arms) > 1:
        raise DuplicateError(
            f"{name} has several treatments ({', '.join(map(str, arms['treatment']))}), which "
            "share the users of their control; keep the one that was to be launched in a folder of "
            "its own",
            count=len(arms),
        )
    pairs = models[["baseline", "model"]].drop_duplicates()
    control, treatment = arms.iloc[0]
    turned = treatment in [*pairs["baseline"]] or control in [*pairs["model"]]
    if len(pairs) > 1 or turned:
        pairs = pairs[(pairs["model"] == treatment) & (pairs["baseline"] == control)]
    if len(pairs) != 1:
        raise DataError(
            f"{name}: no model was compared under the names of the variants ({treatment} against "
            f"{control}); compare one pair of models, or name the models so"
        )
    chosen = models.merge(pairs, on=["baseline", "model"])
    row = {"experiment": name, **pairs.iloc[0], **arms.iloc[0], "decision": ""}
    for kind, table in (("offline", chosen), ("online", variants)):
        if table["metric"].duplicated().any():
            raise DataError(
                f"{name}: the {kind} comparison has several rows of a metric, such as those of "
                "several models; keep one of each in a folder of its own"
            )
        for one in table.to_dict("records"):
            if one.get("withheld") not in UNLIKE:  # no difference of an invalid experiment
                row |= {
                    f"{kind}_{one['metric']}": one["diff"],
                    f"{kind}_{one['metric']}_se": one["se"],
                }
    return row


# -- one run


def existing_folder(folder: Any) -> Path:
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(
            f"folder is {kind_of(folder)}; expected the path of one that holds folders of results"
        )
    root = local_path(folder)
    if not root.is_dir():
        raise FileNotFoundError(
            f"{folder} is no folder; expected one that holds folders of results"
        )
    return root


def definitions_of(spec: AnySpec) -> dict[str, str]:
    """Return what each metric of a result means: its definition, and the options of the call that
    are not the usual."""
    options = spec.get("options", {})
    usual = Options().spec()
    said = [
        f"; {name}={options[name]}"
        for name in OF_MEANING
        if name in options and options[name] != usual[name]
    ]
    words = re.sub(
        r"[\d,]+ given", "given", "".join(said)
    )  # the number of given users may change every night
    return {metric: one["definition"] + words for metric, one in spec.get("metrics", {}).items()}


# ------------------------------------------------------------------------------------------
# The dated results of a job: where they are, and what each of them says.


DATE = re.compile(
    r"(?:\w+=)?(?<!\d)((?:19|20)\d\d)([-_/.]?)(0[1-9]|1[0-2])\2([0-2]\d|3[01])"
    r"(?:[T_ -]?\d\d[:_-]?\d\d(?:[:_-]?\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)"
)  # a day, and the time of day if there is one
QUARANTINED = "quarantined"  # a file of this name in its folder leaves a result out


def dated_results(root: Path, without: Any) -> tuple[DataFrame, DataFrame]:
    """Return `date`, `job` and `path` of all results below a folder, and of those that are left
    out, with `why`."""
    started = past_runs(root).groupby("folder")["started"].min()
    given = [] if without is None else without if isinstance(without, list | tuple) else [without]
    bad = [read_day("without", one) for one in given]
    rows = []
    for rows_of_lists in files_below(root, PER_USER):
        folder = rows_of_lists.parent
        path = folder.relative_to(root).as_posix()
        dates = [f"{year}-{month}-{day}" for year, _, month, day in DATE.findall(path)]
        day = pd.to_datetime(dates[-1], errors="coerce") if dates else started.get(path, pd.NaT)
        quarantined = is_there(folder / QUARANTINED)
        if pd.isna(day) and not quarantined:
            said = f"{folder} has no date in its path below {root} and no run.json"
            raise DataError(f"{said}; name it such as 2026-11-20")
        day = day if pd.isna(day) else day.tz_localize(None).normalize()
        why = QUARANTINED if quarantined else "without" if day in bad else ""
        if not (why or is_there(folder / SUMMARY_FILE)):
            raise DataError(
                f"{folder} is no whole result: it lacks {SUMMARY_FILE}; run it again, move it "
                f"away, or put a file {QUARANTINED} into it"
            )
        job = re.sub(r"//+", "/", DATE.sub("", path)).strip("/.-_ ")
        rows.append({"date": day, "job": job, "path": path, "why": why})
    table = DataFrame(rows, columns=["date", "job", "path", "why"])
    table = table.sort_values(["job", "date"], kind="stable", ignore_index=True)
    if unknown := [f"{day:%Y-%m-%d}" for day in bad if day not in set(table["date"])]:
        raise OptionError(f"⟦without={unknown}⟧: there is no result of that day")
    kept, left_out = (table[table["why"].ne("") == out] for out in (False, True))
    if not len(kept):
        raise DataError(
            f"{root} holds no result{' that is not left out' * bool(rows)}; expected folders that "
            "Evaluation.to_parquet or recdf evaluate wrote"
        )
    again = kept[kept.duplicated(["job", "date"], keep=False)]
    if len(again):
        raise DataError(
            f"{', '.join(again['path'].head(2))} are two results of one day; keep one of them"
        )
    return kept.drop(columns="why").reset_index(drop=True), left_out.reset_index(drop=True)


def read_day(argument: str, given: Any) -> Any:
    given = str(given) if isinstance(given, np.datetime64) else given
    day = pd.to_datetime(given, errors="coerce") if isinstance(given, str | date) else pd.NaT
    if pd.isna(day):
        more = ", or 30d for the last 30 days" if argument == "since" else ""
        raise OptionError(
            f"⟦{argument}={given!r}⟧ is no day; expected one such as 2026-11-01{more}"
        )
    return day.tz_localize(None).normalize()


def summary_of_result(
    folder: Path,
    summary: DataFrame,
    spec: AnySpec,
    segments: list[str],
    users: DataFrame | None,
) -> DataFrame:
    """Return the summary of a result, also by segment, with the column and the definition of each
    metric."""
    if users is not None:
        result = read_parquet(folder)
        known = frame_of("users", users)
        keys = [name for name in spec["user_col"] if name in known.columns] or spec["user_col"][:1]
        require(known, "users", [*keys, *segments])
        codes, n = key_codes([("per_user", result.per_user), ("users", known)], keys)
        only_rows("users", known, codes[1], n, keys)
        joined = result.per_user.merge(known[[*keys, *segments]], on=keys, how="left")
        by = [*spec["by"], *segments]
        metrics = [name for name in spec["metrics"] if name in joined]
        weight = spec.get("weight")
        summary = summarize(
            joined, by=by, metrics=metrics, user_col=spec["user_col"], weight_col=weight
        )
    definitions = definitions_of(spec)
    named = {(one["name"], one["k"]): name for name, one in spec["metrics"].items()}
    keys_of_rows = zip(
        summary["metric"], (None if pd.isna(k) else int(k) for k in summary["k"]), strict=True
    )
    columns = [named.get(key, key[0]) for key in keys_of_rows]
    return summary.assign(
        column=columns, definition=[definitions.get(name, "") for name in columns]
    )


def quantities(folder: Path, summary: DataFrame, spec: AnySpec) -> DataFrame:
    """Return what is known of the data of a result: users, counts of rows, and the profile beside
    it."""
    found = {"users": (summary["n"] + summary["n_undefined"]).max(), **spec["counts"]}
    table = DataFrame(
        {"model": "", "quantity": list(found), "value": [*map(float, found.values())]}
    )
    if is_there(folder / PROFILE):
        profile = read_table(folder / PROFILE)
        if profile.attrs.get(PROFILED) == digest_of_result(folder):
            table = pd.concat([table, profile], ignore_index=True)
    return table


def stacked(dated: DataFrame, tables: Mapping[str, DataFrame]) -> DataFrame:
    """Put the tables of all results, by path, below each other, behind date and job."""
    rows = [table.assign(path=path) for path, table in tables.items()]
    return dated.merge(pd.concat(rows, ignore_index=True), on="path")

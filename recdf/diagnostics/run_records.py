"""What folders of results say of the past: every run of the command, and what became of offline
differences online."""

from __future__ import annotations

import fnmatch
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import DataError, DuplicateError, kind_of
from ..evaluation.storage import local_path
from ..inputs.options import Options
from ..publishing import folders_below, is_there, names_in, plain_file, read_table, where

COMPARED, HEALTH_FILE, DECIDED, GATED = (
    "comparison.parquet",
    "health.parquet",
    "decision.parquet",
    "gate.parquet",
)
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
KINDS_OF_COMPARISON = {"model": ("baseline", "model"), "treatment": ("control", "treatment")}


def past_runs(folder: Any) -> pd.DataFrame:
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
    root, rows = existing_folder(folder), []
    for path in _files_below(root, "run*.json"):
        record = _record(path)
        command, own = (
            str(record["command"][1]),
            {name: record[name] for name in ("seconds", "exit", "recdf")},
        )
        rows.append(
            {
                "folder": path.parent.relative_to(root).as_posix(),
                "command": command,
                "started": pd.to_datetime(record["started"], utc=True),
                **own,
                "decided": _words_of_decision(path.parent, command),
            }
        )
    return pd.DataFrame(rows, columns=RUN_COLUMNS).sort_values(
        "started", kind="stable", ignore_index=True
    )


def past_tests(folder: Any) -> pd.DataFrame:
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
    root, rows = existing_folder(folder), []
    definitions: dict[str, tuple[str, str]] = {}
    controls: dict[str, str] = {}
    for place in sorted(path for path in root.iterdir() if path.is_dir()):
        tables = dict(_comparisons(place))
        if len(tables) < len(KINDS_OF_COMPARISON):
            continue
        for table in tables.values():
            _same_definitions(table, place.name, definitions)
        _own_control(tables["treatment"], place.name, controls)
        rows.append(_test(place.name, tables["model"], tables["treatment"]))
    first = ["experiment", "baseline", "model", "control", "treatment", "decision"]
    return pd.DataFrame(rows, columns=None if rows else first)


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


def definitions_of(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return what each metric of a result means: its definition, and the options of the call that
    are not the usual."""
    options, usual = spec.get("options", {}), Options().spec()
    said = [
        f"; {name}={options[name]}"
        for name in OF_MEANING
        if name in options and options[name] != usual[name]
    ]
    words = re.sub(
        r"[\d,]+ given", "given", "".join(said)
    )  # the number of given users may change every night
    return {metric: one["definition"] + words for metric, one in spec.get("metrics", {}).items()}


def _files_below(root: Path, pattern: str) -> list[Path]:
    return [
        folder / name
        for folder in folders_below(root)
        for name in sorted(fnmatch.filter(names_in(folder), pattern))
    ]


def _record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(plain_file(where(path)).read_text(encoding="utf-8"))
        return {name: record[name] for name in ("command", "started", "seconds", "exit", "recdf")}
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise DataError(
            f"{path} is no record of a run of recdf ({error}); move it elsewhere"
        ) from error


def _words_of_decision(place: Path, command: str) -> str:
    """What a run decided, from the tables beside its record."""
    if command == "experiment" and is_there(place / DECIDED):
        found = read_table(place / DECIDED)
        return "; ".join(
            f"{a}: {b}" for a, b in zip(found["treatment"], found["decision"], strict=True)
        )
    if command == "gate" and is_there(place / GATED):
        counts = read_table(place / GATED)["verdict"].value_counts()
        return ", ".join(f"{n} {word}" for word, n in counts.items())
    if command in ("compare", "experiment") and is_there(place / COMPARED):
        found = read_table(place / COMPARED)
        new = "model" if "model" in found.columns else "treatment"
        return "; ".join(
            f"{row[new]}: {row['metric']} {row['verdict']}" for row in found.to_dict("records")
        )
    return ""


# -- offline beside online


def _comparisons(place: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Give the comparison of models and that of variants below the folder of an experiment."""
    seen: dict[str, Path] = {}
    for path in _files_below(place, COMPARED):
        table = read_table(path)
        for kind in KINDS_OF_COMPARISON:
            if kind in table.columns:
                if kind in seen:
                    raise DataError(
                        f"{seen[kind]} and {path} both compare {kind}s; expected one in "
                        f"{place.name}"
                    )
                seen[kind] = path
                table.attrs["folder"] = path.parent
                yield kind, table


def _test(name: str, models: pd.DataFrame, variants: pd.DataFrame) -> dict[str, Any]:
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
    treatment = arms["treatment"].iloc[0]
    if len(pairs) > 1:
        pairs = pairs[
            (pairs["model"] == treatment) & (pairs["baseline"] == arms["control"].iloc[0])
        ]
    if len(pairs) != 1:
        raise DataError(
            f"{name}: no model was compared under the names of the variants ({treatment} against "
            f"{arms['control'].iloc[0]}); compare one pair of models, or name the models so"
        )
    chosen = models.merge(pairs, on=["baseline", "model"])
    row = {"experiment": name, **pairs.iloc[0], **arms.iloc[0], "decision": _decided_on(variants)}
    for kind, table in (("offline", chosen), ("online", variants)):
        for metric, diff, se in zip(table["metric"], table["diff"], table["se"], strict=True):
            row |= {f"{kind}_{metric}": diff, f"{kind}_{metric}_se": se}
    return row


def _decided_on(variants: pd.DataFrame) -> str:
    path = variants.attrs["folder"] / DECIDED
    return str(read_table(path)["decision"].iloc[0]) if is_there(path) else ""


def _same_definitions(table: pd.DataFrame, name: str, known: dict[str, tuple[str, str]]) -> None:
    """Refuse a metric that one experiment defines in another way than those before it."""
    for metric, own in definitions_of(table.attrs.get("recdf", {})).items():
        before, where = known.setdefault(metric, (own, name))
        if before != own:
            raise DataError(
                f"{metric} is {before} in {where} and {own} in {name}, so that its differences do "
                "not compare; evaluate one of them again"
            )


def _own_control(variants: pd.DataFrame, name: str, known: dict[str, str]) -> None:
    """Refuse an experiment whose control has the users of an earlier one."""
    path = variants.attrs["folder"] / HEALTH_FILE
    if not is_there(path):
        return
    health = read_table(path)
    own = health.loc[health["variant"] == variants["control"].iloc[0], "users_digest"]
    for digest in own.iloc[:1]:
        other = known.setdefault(digest, name)
        if other != name:
            raise DuplicateError(
                f"{other} and {name} have the same users in their control, so that their errors "
                "are not independent; keep one of them"
            )

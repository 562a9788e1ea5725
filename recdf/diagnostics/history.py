"""`History`: the results of a job that runs every night, as one table; when a metric or the data
changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..errors import DataError, OptionError
from ..evaluation.publishing import PER_USER, SUMMARY_FILE
from ..evaluation.result import read_parquet
from ..evaluation.spec import better_of
from ..evaluation.storage import read_summary
from ..evaluation.summary import summarize
from ..experiments.experiment_columns import frame_of, key_codes, require
from ..inputs.constraints import SHARE, check_value
from ..inputs.options import as_columns
from ..judge.verdict import VERDICT_COLUMNS, add_verdicts, by_rank
from ..stats.change_points import changes_of_level
from ..tables.cells import brief
from ..tables.shown_frames import ReportTable, ShownResult
from .judging import only_rows
from .run_records import definitions_of, existing_folder, past_runs

DATE = re.compile(
    r"(?:\w+=)?(?<!\d)((?:19|20)\d\d)([-_/.]?)(0[1-9]|1[0-2])\2([0-2]\d|3[01])"
    r"(?:[T_ -]?\d\d[:_-]?\d\d(?:[:_-]?\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?!\d)"
)  # a day, and the time of day if there is one
LEAST_RUNS = 14  # fewer nights tell nothing of a change
CORRELATED = 3.0  # how much neighbouring nights may be alike, in standard errors
CHANGE_COLUMNS = [
    "n_runs",
    "first",
    "last",
    "level",
    "changed",
    "found",
    "before",
    "after",
    "diff",
    "e_value",
    "better",
    *VERDICT_COLUMNS,
]
OWN_COLUMNS = {"date", "job", "path", "column", "definition", *CHANGE_COLUMNS}
PROFILE, PROFILED = (
    "profile.parquet",
    "recdf_result",
)  # the attrs of a profile say of which result it is


class History(ShownResult):
    """The dated results below a folder, such as those of a nightly job: values over time, changes,
    drift of the data.

    Parameters
    ----------
    folder : path
        Results of `Evaluation.to_parquet` or `recdf evaluate --out` at any depth. The date of a
        result is the last one in its path (2026-11-20, 20261120, date=2026-11-20, 2026/11/20,
        2026-11-20T02:15); where there is none, the day in UTC on which its `run.json` says that it
        began. The rest of the path names the job.
    since, until : date or str, optional
        First and last day of `summary`, `data` and of the alarms of `changes`; "30d" in `since`
        means the last 30 days up to `until`, or to the latest result. Changes are looked for in all
        results until then, because a search that begins anew every night would raise false alarms.
    users : DataFrame, optional
        One row per user, whose columns `by` make segments; the results are then read list by list.
    by : str or list of str, optional
        Columns of `users`.

    Attributes
    ----------
    summary : DataFrame
        One row per run, `by` value and metric: `date`, `job` (path without the date), the columns
        of the results' summary, `column` ("ndcg@10") and `definition` (with the options of the call
        that are not the usual ones).
    data : DataFrame
        One row per run and quantity of its data: `date`, `job`, `model`, `quantity`, `value`. Users
        and counts of rows are those of the spec; what `recdf evaluate --profile` wrote comes
        beside.
    runs : DataFrame
        What `rd.diagnostics.past_runs` says of the folder.

    Raises
    ------
    DataError
        No result, one without a date or a summary, or two of one job on one day; a `by` column of a
        name that the history uses itself.
    OptionError, ColumnError, DuplicateError, IdTypeError
        A day that is none, `users` without `by` or its columns, a user twice, ids that can never
        match.
    OSError
        The folder does not exist.

    Examples
    --------
    >>> import pandas as pd, recdf as rd, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for day in pd.date_range("2026-11-01", periods=3):
    ...     rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1").to_parquet(f"{folder}/{day:%Y-%m-%d}")
    >>> history = rd.History(folder)
    >>> history.summary[["date", "column", "value", "n"]]
            date column  value  n
    0 2026-11-01  mrr@1    1.0  1
    1 2026-11-02  mrr@1    1.0  1
    2 2026-11-03  mrr@1    1.0  1
    """

    def __init__(
        self,
        folder: Any,
        *,
        since: Any = None,
        until: Any = None,
        users: pd.DataFrame | None = None,
        by: str | Sequence[str] | None = None,
    ) -> None:
        root = existing_folder(folder)
        segments = as_columns(by)
        if bool(segments) != (users is not None):
            raise OptionError(
                "⟦by=⟧ names columns of ⟦+users=⟧, one row per user; pass both, or neither"
            )
        dated, self.since = _until(_dated_results(root), since, until)
        tables = [_summary_of_result(root / path, segments, users) for path in dated["path"]]
        names = dict.fromkeys(
            name for one in tables for name in one.columns[: one.columns.get_loc("metric")]
        )
        if taken := [name for name in names if name in OWN_COLUMNS]:
            raise DataError(
                f"results tell models or segments apart by {taken}, columns of the history; rename "
                "them"
            )
        stacked, self._series = _stacked(dated, tables), ["job", *names]
        self._values = stacked[list(dict.fromkeys([*dated.columns, *names, *stacked.columns]))]
        self._data = _stacked(dated, [_quantities(root / path) for path in dated["path"]])
        self.summary, self.data = (
            one[one["date"] >= self.since].reset_index(drop=True)
            for one in (self._values, self._data)
        )
        self.runs = past_runs(folder)

    def changes(
        self,
        metrics: str | Sequence[str] | None = None,
        *,
        weekly: bool = True,
        confidence: float = 0.95,
    ) -> pd.DataFrame:
        """Say when the level of a metric changed, with a chance of any false alarm, ever, of 1 −
        confidence.

        Every series (job, `by` value, metric) has an e-process: the evidence that its level changed
        at some night, against any constant level and spread. All series share 1 − confidence
        (Bonferroni), so that one may look every night. After an alarm the search begins anew.

        Parameters
        ----------
        metrics : str or list of str, optional
            Columns such as "ndcg@10". Default: all; fewer are watched more sharply.
        weekly : bool, default True
            Every day of the week has its own level. The first week then shows nothing.
        confidence : float, default 0.95
            1 − the chance of a false alarm.

        Returns
        -------
        DataFrame
            One row per series, or per change of it: `job`, `by` columns, `column`, `n_runs`,
            `first`, `last` (dates), `level` (mean of the nights since the last change), `changed`
            (first night of the new level), `found` (night of the alarm), `before`, `after`, `diff`
            (means of the nights on both sides), `e_value` (evidence; 1/e_value is a p-value),
            `better`, `effect`, `withheld`, `remarks`, `verdict`. Verdict: "better",
            "worse", "changed" (a metric without direction), "no change shown"; "cannot tell" with a remark: "few_runs" (fewer than 14),
            "not_independent" (neighbouring nights are alike, as where each result is of a rolling
            window: evaluate each night on its own truth), "definition_changed".

        Raises
        ------
        OptionError
            A metric that no result has.

        Notes
        -----
        The difference is that of the nights that the alarm divided, and rather too large if the
        alarm came soon.

        References
        ----------
        Shafer and others 2011; Ramdas and others 2023 (e-processes).
        """
        known = self._values["column"].drop_duplicates().tolist()
        wanted = as_columns(metrics) or known
        if unknown := [name for name in wanted if name not in known]:
            raise OptionError(
                f"no result has ⟦metrics={unknown}⟧; they have {known}", argument="metrics"
            )
        rows = self._values[self._values["column"].isin(wanted)]
        return self._changes(rows, [*self._series, "column"], weekly, confidence)

    def _changes(
        self, rows: pd.DataFrame, keys: list[str], weekly: bool, confidence: float
    ) -> pd.DataFrame:
        """Look for changes of level in every series, and keep those that were found since the first
        day."""
        check_value("confidence", confidence, SHARE)
        check_value("weekly", weekly, bool)
        series = rows.dropna(subset="value").groupby(keys, sort=False, dropna=False, observed=True)
        found = []
        for key, nights in series:
            whole, changes = _of_series(
                nights.sort_values("date"), weekly, (1 - confidence) / series.ngroups
            )
            late = [change for change in changes if change["found"] >= self.since]
            found += [
                {**dict(zip(keys, key, strict=True)), **whole, **change} for change in late or [{}]
            ]
        table = pd.DataFrame(found, columns=[*keys, *CHANGE_COLUMNS])
        add_verdicts(table, "history", table["effect"])
        return table.astype(dict.fromkeys(["changed", "found"], rows["date"].dtype))

    def drift(self, *, weekly: bool = True, confidence: float = 0.95) -> pd.DataFrame:
        """Say when the data changed: users, items, rows, unknown ids, judged share, quantiles of
        the scores.

        Counts are compared as logarithms, so that `diff` is a relative change.

        Parameters
        ----------
        weekly, confidence
            As in `changes`.

        Returns
        -------
        DataFrame
            As `changes` returns it, one row per quantity or change of it; the verdict is "drifted"
            for a change.
        """
        table = self._changes(self._data, ["job", "model", "quantity"], weekly, confidence)
        add_verdicts(table, "history", table["effect"].replace({"changed": "drifted"}))
        return table.assign(better=None)

    @property
    def headline(self) -> str:
        """How many runs there are, of which days."""
        dates, n = self.summary["date"], self.summary["path"].nunique()
        return f"{n} result{'s' * (n > 1)}, {dates.min():%Y-%m-%d} to {dates.max():%Y-%m-%d}"

    def _shown(self) -> ReportTable:
        shown = self.changes()[
            [*self._series, "column", "n_runs", "level", "changed", "diff", "verdict"]
        ]
        return ReportTable(pd.DataFrame({name: shown[name].map(brief) for name in shown}))


# -- the results


def _dated_results(root: Path) -> pd.DataFrame:
    """Return `date`, `job` and `path` of all results below a folder."""
    started = past_runs(root).groupby("folder")["started"].min()
    rows = []
    for found in sorted(root.rglob(PER_USER)):
        path = found.parent.relative_to(root).as_posix()
        dates = [f"{year}-{month}-{day}" for year, _, month, day in DATE.findall(path)]
        day = pd.to_datetime(dates[-1], errors="coerce") if dates else started.get(path, pd.NaT)
        if pd.isna(day):
            said = f"{found.parent} has no date in its path below {root} and no run.json"
            raise DataError(f"{said}; name it such as 2026-11-20")
        if not (found.parent / SUMMARY_FILE).exists():
            raise DataError(
                f"{found.parent} is no whole result: it lacks {SUMMARY_FILE}; run it again or move "
                "it away"
            )
        job = re.sub(r"//+", "/", DATE.sub("", path)).strip("/.-_ ")
        rows.append({"date": day.tz_localize(None).normalize(), "job": job, "path": path})
    if not rows:
        raise DataError(
            f"{root} holds no result; expected folders that Evaluation.to_parquet or recdf "
            "evaluate wrote"
        )
    table = pd.DataFrame(rows).sort_values(["job", "date"], kind="stable", ignore_index=True)
    again = table[table.duplicated(["job", "date"], keep=False)]
    if len(again):
        raise DataError(
            f"{', '.join(again['path'].head(2))} are two results of one day; keep one of them"
        )
    return table


def _day(argument: str, given: Any, default: pd.Timestamp) -> pd.Timestamp:
    if given is None:
        return default
    day = (
        pd.to_datetime(given, errors="coerce")
        if isinstance(given, str | date | np.datetime64)
        else pd.NaT
    )
    if pd.isna(day):
        more = ", or 30d for the last 30 days" if argument == "since" else ""
        raise OptionError(
            f"⟦{argument}={given!r}⟧ is no day; expected one such as 2026-11-01{more}",
            argument=argument,
        )
    return day.tz_localize(None).normalize()


def _until(dated: pd.DataFrame, since: Any, until: Any) -> tuple[pd.DataFrame, pd.Timestamp]:
    """Return the results up to a day, and the first day that is looked at."""
    last = _day("until", until, dated["date"].max())
    days = re.fullmatch(r"(\d+)d", str(since))
    first = (
        last - pd.Timedelta(days=int(days[1]) - 1)
        if days
        else _day("since", since, dated["date"].min())
    )
    if not dated["date"].between(first, last).any():
        latest = dated["date"].max()
        raise DataError(
            f"no result is from {first:%Y-%m-%d} to {last:%Y-%m-%d}; the latest is of "
            f"{latest:%Y-%m-%d}"
        )
    return dated[dated["date"] <= last].reset_index(drop=True), first


def _summary_of_result(
    folder: Path, segments: list[str], users: pd.DataFrame | None
) -> pd.DataFrame:
    """Return the summary of a result, also by segment, with the column and the definition of each
    metric."""
    summary, spec = read_summary(folder)
    if users is not None:
        result, known = read_parquet(folder), frame_of("users", users)
        keys = [name for name in spec["user_col"] if name in known.columns] or spec["user_col"][:1]
        require(known, "users", [*keys, *segments])
        codes, n = key_codes([("per_user", result.per_user), ("users", known)], keys)
        only_rows("users", known, codes[1], n, keys)
        joined = result.per_user.merge(
            users[[*keys, *segments]], on=keys, how="left", validate="many_to_one"
        )
        by, metrics = [*spec["by"], *segments], [name for name in spec["metrics"] if name in joined]
        summary = summarize(joined, by=by, metrics=metrics, user_col=spec["user_col"])
    definitions = definitions_of(spec)
    named = {(one["name"], one["k"]): name for name, one in spec["metrics"].items()}
    keys_of_rows = zip(
        summary["metric"], (None if pd.isna(k) else int(k) for k in summary["k"]), strict=True
    )
    columns = [named.get(key, key[0]) for key in keys_of_rows]
    return summary.assign(
        column=columns, definition=[definitions.get(name, "") for name in columns]
    )


def _quantities(folder: Path) -> pd.DataFrame:
    """Return what is known of the data of a result: users, counts of rows, and the profile beside
    it."""
    summary, spec = read_summary(folder)
    found = {"users": int((summary["n"] + summary["n_undefined"]).max()), **spec["counts"]}
    table = pd.DataFrame(
        {"model": "", "quantity": list(found), "value": np.array(list(found.values()), np.float64)}
    )
    if (folder / PROFILE).exists():
        profile = pd.read_parquet(folder / PROFILE)
        if (
            profile.attrs.get(PROFILED)
            == hashlib.sha256((folder / SUMMARY_FILE).read_bytes()).hexdigest()
        ):
            table = pd.concat([table, profile], ignore_index=True)
    return table


def _stacked(dated: pd.DataFrame, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put the tables of all results below each other, behind date and job."""
    both = zip(dated.to_dict("records"), tables, strict=True)
    return pd.concat(
        [pd.DataFrame({**row, **dict(table.items())}) for row, table in both], ignore_index=True
    )


# -- changes


def _of_series(
    nights: pd.DataFrame, weekly: bool, alpha: float
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return what is said of a series as a whole, and what is said of each of its changes."""
    dates, values = nights["date"].tolist(), nights["value"].to_numpy(np.float64)
    day = nights["date"].dt.day_of_week.to_numpy() if weekly else np.zeros(len(values), np.int64)
    counted = "quantity" in nights.columns and bool((values > 1).all())
    own = np.log(values) if counted else values
    found, alike = changes_of_level(own, day, alpha)
    doubts = {
        "few_runs": len(values) < LEAST_RUNS,
        "not_independent": len(values) >= LEAST_RUNS and alike > CORRELATED,
        "definition_changed": "definition" in nights.columns and nights["definition"].nunique() > 1,
    }
    better = better_of(str(nights["column"].iloc[0])) if "column" in nights.columns else None
    edges, rows = [0, *(change.begins for change in found), len(values)], []
    for change, first, at, end in zip(found, edges, edges[1:], edges[2:], strict=False):
        diff = float(own[at:end].mean() - own[first:at].mean())
        effect = (
            "changed"
            if better is None
            else "better"
            if (diff > 0) == (better == "larger")
            else "worse"
        )
        rows.append(
            {
                "changed": dates[at],
                "found": dates[change.found],
                "before": values[first:at].mean(),
                "after": values[at:end].mean(),
                "diff": np.expm1(diff) if counted else diff,
                "e_value": np.exp(min(change.log_evidence, 700.0)),
                "effect": effect,
            }
        )
    return {
        "n_runs": len(values),
        "first": dates[0],
        "last": dates[-1],
        "level": values[edges[-2] :].mean(),
        "better": better,
        "effect": "none",
        "remarks": by_rank(code for code, holds in doubts.items() if holds),
    }, rows

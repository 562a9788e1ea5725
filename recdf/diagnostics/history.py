"""`History`: the results of a job that runs every night, as one table; when a metric or the data
changed."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from ..errors import DataError, OptionError
from ..evaluation.spec import better_of
from ..evaluation.storage import read_summary
from ..experiments.compare.paired import unlike_nights
from ..inputs.constraints import SHARE, a_number, check_value
from ..inputs.options import as_columns
from ..judge.choices import Columns, Row
from ..judge.verdict import VERDICT_COLUMNS, add_verdicts, by_rank, codes_of
from ..stats.change_points import (
    LEAST_NIGHTS,
    LevelChange,
    Nights,
    changes_of_level,
    seen_in_a_week,
)
from ..tables.cells import ReportTable, ShownResult, brief, columns_before
from .run_records import (
    dated_results,
    existing_folder,
    past_runs,
    quantities,
    read_day,
    stacked,
    summary_of_result,
)

MOST_APART = 3  # outlier nights that a verdict names, the latest
MOST_SD = 1000  # where the other nights are alike, more standard deviations say nothing
NEWEST_APART = 10  # standard deviations from which on the newest night of a metric is a finding
RECENT_RUNS = 14  # a model, or a day of the week, that these have is expected in the next one
DAYS_BACK = 100_000  # of since=; no calendar of pandas goes back further from any day
_CHANGE_COLUMNS = (
    "n_runs first last level changed found sure until before after diff per_month e_value "
    "could_see alike outliers unlike better"
)
CHANGE_COLUMNS = [*_CHANGE_COLUMNS.split(), *VERDICT_COLUMNS]
GAP_COLUMNS = ["job", "what", "last", "date", *VERDICT_COLUMNS]
OWN_COLUMNS = {"date", "job", "path", "column", "definition", *CHANGE_COLUMNS}


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
    without : date, str or list of them, optional
        Nights to leave out, such as "2026-11-03". A file `quarantined` in the folder of a result
        leaves it out too.

    Attributes
    ----------
    summary : DataFrame
        One row per run, `by` value and metric: `date`, `job` (path without the date), the columns
        of the results' summary, `column` ("ndcg@10"), `definition` (with the options of the call
        that are not the usual ones) and `unlike`: what it was evaluated with, where the newest run
        of its job and column was not ("option undefined zero, not default").
    data : DataFrame
        One row per run and quantity of its data: `date`, `job`, `model`, `quantity`, `value`. Users
        and counts of rows are those of the spec; what `recdf evaluate --profile` wrote comes
        beside.
    left_out : DataFrame
        `date`, `job`, `path` and `why` of the results that were left out.
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
    >>> history = rd.diagnostics.History(folder)
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
        since: str | date | None = None,
        until: str | date | None = None,
        users: DataFrame | None = None,
        by: Columns | None = None,
        without: str | date | Sequence[str] | Sequence[date] | None = None,
    ) -> None:
        root = existing_folder(folder)
        segments = as_columns(by)
        if bool(segments) != (users is not None):
            raise OptionError(
                "⟦by=⟧ names columns of ⟦+users=⟧, one row per user; pass both, or neither"
            )
        found, self.left_out = dated_results(root, without)
        first = found["date"].min()
        newest = found["date"].max()
        self.until = None if until is None else read_day("until", until)
        last = newest if self.until is None else self.until
        if self.until is not None:
            self.left_out = self.left_out[~(self.left_out["date"] > last)].reset_index(drop=True)
        if days := re.fullmatch(r"(\d{1,9})d", str(since)):
            first = last - pd.Timedelta(days=min(int(days[1]), DAYS_BACK) - 1)
        elif since is not None:
            first = read_day("since", since)
        if not found["date"].between(first, last).any():
            raise DataError(
                f"no result is from {first:%Y-%m-%d} to {last:%Y-%m-%d}; the latest is of "
                f"{newest:%Y-%m-%d}"
            )
        self.since, self._dated = first, found[found["date"] <= last].reset_index(drop=True)
        read = {path: read_summary(root / path) for path in self._dated["path"]}
        tables = {
            path: summary_of_result(root / path, *one, segments, users)
            for path, one in read.items()
        }
        names = dict.fromkeys(
            name for one in tables.values() for name in columns_before(one, "metric")
        )
        if taken := [name for name in names if name in OWN_COLUMNS]:
            raise DataError(
                f"results tell models or segments apart by {taken}, columns of the history; rename "
                "them"
            )
        rows, self._series = stacked(self._dated, tables), ["job", *names]
        rows = rows[list(dict.fromkeys([*self._dated.columns, *names, *rows.columns]))]
        newest_of = rows.groupby(["job", "column"], sort=False)["path"].transform("last")
        unlike = functools.cache(
            lambda own, base, name: unlike_nights(read[own][1], read[base][1], name)
        )
        self._values = rows.assign(unlike=[*map(unlike, rows["path"], newest_of, rows["column"])])
        of_data = {path: quantities(root / path, *one) for path, one in read.items()}
        self._data = stacked(self._dated, of_data)
        self.summary, self.data = (
            one[one["date"] >= self.since].reset_index(drop=True)
            for one in (self._values, self._data)
        )
        self.runs = past_runs(folder)

    def changes(
        self,
        metrics: Columns | None = None,
        *,
        weekly: bool = True,
        confidence: float = 0.95,
    ) -> DataFrame:
        """Say when the level of a metric changed, so that one may look every night.

        Every night is weighed by its own standard error, and a change is found by bets on the ranks
        of the nights: the chance of a false alarm, ever, is at most 1 − confidence for nights that
        are independent, whatever their law. All series share it (Bonferroni). Nights may be alike,
        so that a second look decides what is said: see docs/history.md. After a change that is
        sure, the search begins anew.

        Parameters
        ----------
        metrics : str or list of str, optional
            Columns such as "ndcg@10". Default: all; fewer are watched more sharply.
        weekly : bool, default True
            Every day of the week has its own level.
        confidence : float, default 0.95
            1 − the chance of a false alarm.

        Returns
        -------
        DataFrame
            One row per series, or per change of it: `job`, `by` columns, `column`, `n_runs`,
            `first`, `last` (dates), `level` (mean of the nights since the last change), `changed`
            (first night of the new level), `found`, `sure` (nights after which it was said, and was
            a verdict), `until` (last night of a level that is over), `before`, `after`, `diff`
            (means of the nights on both sides), `per_month` (slope, where it drifts), `e_value`
            (evidence; 1/e_value is a p-value), `could_see` (size of a change that is found within a
            week in 8 of 10 cases), `alike`, `outliers`, `unlike` (the nights that were evaluated in
            another way than the newest, and how), `better`, `effect`, `withheld`, `remarks`,
            `verdict`. Effects: "better", "worse", "changed" (a metric without direction), "drifts"
            (a line fits better than a step), "far_off" (no change, but the newest night is more
            than 10 standard deviations from its day of the week), "none". Withheld: "few_runs"
            (fewer than 22), "not_independent" (nights are alike from one to the next, from week to
            week, or in slow waves), "definition_changed", "early" (found, and a slow wave of the
            past could do it).
            Remarks: "back" (the latest nights no longer differ), "outlier_night" (beyond 5 standard
            deviations of its day of the week).

        Raises
        ------
        OptionError
            A metric that no result has.

        Notes
        -----
        The difference is that of the nights that the alarm divided, and rather too large if the
        alarm came soon. Nights of rolling windows share their data, and cannot tell: evaluate each
        night on its own truth.

        References
        ----------
        Shin, Ramdas and Rinaldo 2024 (e-detectors); Andrews 1991 (long-run variance).
        """
        known = self._values["column"].drop_duplicates().tolist()
        wanted = as_columns(metrics) or known
        if unknown := [name for name in wanted if name not in known]:
            raise OptionError(f"no result has ⟦metrics={unknown}⟧; they have {known}")
        rows = self._values[self._values["column"].isin(wanted)]
        return self._changes(rows, [*self._series, "column"], weekly, confidence)

    def _changes(
        self, rows: DataFrame, keys: list[str], weekly: bool, confidence: float
    ) -> DataFrame:
        """Look for changes of level in every series, and keep those that were found since the first
        day."""
        check_value("confidence", confidence, SHARE)
        check_value("weekly", weekly, bool)
        series = rows.dropna(subset="value").groupby(keys, sort=False, dropna=False, observed=True)
        found = []
        for key, nights in series:
            whole, changes = _of_series(
                nights.sort_values("date"), weekly, (1 - confidence) / series.ngroups, self.since
            )
            late = [change for change in changes if change["found"] >= self.since]
            found += [
                {**dict(zip(keys, key, strict=True)), **whole, **change} for change in late or [{}]
            ]
        table = DataFrame(found, columns=[*keys, "way", *CHANGE_COLUMNS])
        dates = ["changed", "found", "sure", "until"]
        table = table.astype(dict.fromkeys(dates, rows["date"].dtype))
        add_verdicts(table, "history", table["effect"].tolist())
        return table.drop(columns="way")

    def drift(self, *, weekly: bool = True, confidence: float = 0.95) -> DataFrame:
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
        return self._changes(self._data, ["job", "model", "quantity"], weekly, confidence)

    def gaps(self, *, max_age: float | None = None) -> DataFrame:
        """List what is not there: models, metrics and nights that are missing, and what was left
        out.

        Parameters
        ----------
        max_age : float, optional
            Days that the newest result of a job may be old, counted to `until`, or else to today
            (UTC). Of the jobs that ended before `since`, only the last one is asked.

        Returns
        -------
        DataFrame
            One row per finding: `job`, `what` ("model als", "ndcg@10", "night 2026-11-03", "newest
            night 2026-11-03"), `last` (the last night that had it), `date` (of the missing night,
            or the newest one), `effect` ("missing", "too_old", "left_out"), `withheld`, `remarks`,
            `verdict`. A model or metric is missing where one of the 14 results before the newest
            has it; a night, where most weeks have a result of that day of the week.

        Examples
        --------
        >>> import pandas as pd, recdf as rd, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> for day in ["2026-11-01", "2026-11-02", "2026-11-04"]:
        ...     rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1").to_parquet(f"{folder}/{day}")
        >>> rd.diagnostics.History(folder, until="2026-11-09").gaps(max_age=3)[["what", "verdict"]]
                              what  verdict
        0         night 2026-11-03  missing
        1  newest night 2026-11-04  too old
        """
        found = []
        newest = self._dated["date"].max()
        today = self.until or pd.Timestamp.now("UTC").tz_localize(None).normalize()
        if max_age is not None:
            check_value("max_age", max_age, Annotated[float, a_number(0)])
        for job, nights in self._dated.groupby("job", sort=False):
            rows = self._values[self._values["job"] == job]
            # What `without` names is left out on purpose in every job.
            own = self.left_out[(self.left_out["job"] == job) | (self.left_out["why"] == "without")]
            found += [(job, *one, "missing") for one in _gone(rows, self._series[1:])]
            found += [
                (job, f"night {day:%Y-%m-%d}", pd.NaT, day, "missing")
                for day in _missing_nights(nights["date"], own["date"], newest)
                if day >= self.since
            ]
            last = nights["date"].max()
            asked = max_age is not None and (last == newest or last >= self.since)
            if asked and (today - last).days > max_age:
                found.append((job, f"newest night {last:%Y-%m-%d}", pd.NaT, last, "too_old"))
        for day, job, path, _ in self.left_out.itertuples(index=False):
            if not day < self.since:
                what = path if pd.isna(day) else f"night {day:%Y-%m-%d}"
                found.append((job, what, pd.NaT, day, "left_out"))
        table = DataFrame(found, columns=["job", "what", "last", "date", "effect"])
        days = dict.fromkeys(["last", "date"], self.summary["date"].dtype)
        add_verdicts(table, "history", table["effect"].tolist())
        return table.astype(days)[GAP_COLUMNS]

    @property
    def headline(self) -> str:
        """How many runs there are, of which days, and which were left out."""
        dates = self.summary["date"]
        n = self.summary["path"].nunique()
        names = self.left_out["date"].dt.strftime("%Y-%m-%d").fillna(self.left_out["path"])
        out = ", ".join(names.unique())
        said = f"{n} result{'s' * (n > 1)}, {dates.min():%Y-%m-%d} to {dates.max():%Y-%m-%d}"
        return f"{said}; left out: {out}" if out else said

    def _shown(self) -> ReportTable:
        shown = self.changes()[
            [*self._series, "column", "n_runs", "level", "changed", "diff", "verdict"]
        ]
        return ReportTable(DataFrame({name: shown[name].map(brief) for name in shown}))


# -- what is missing


def _gone(rows: DataFrame, names: list[str]) -> Iterator[tuple[str, Any, Any]]:
    """Give the models, or metrics of a model, of recent results that the newest one lacks, with the
    last night that has them and the newest."""
    dates = np.sort(rows["date"].unique())[-RECENT_RUNS - 1 :]
    recent = rows[rows["date"] >= dates[0]]
    gone = set()
    for keys in (names, [*names, "column"]):
        if not keys:
            continue
        last = recent.groupby(keys, sort=False, observed=True)["date"].max()
        for key, day in last[last < dates[-1]].items():
            labels = key if isinstance(key, tuple) else (key,)
            if labels[: len(names)] in gone:
                continue
            gone.add(labels)
            named = zip([*names, ""], labels, strict=False)
            yield ", ".join(f"{name} {label}".strip() for name, label in named), day, dates[-1]


def _missing_nights(dates: Series, left_out: Series, newest: pd.Timestamp) -> list[pd.Timestamp]:
    """Return the days without a result of a daily job, on days of the week that mostly have one."""
    if len(dates) < 3 or (dates.diff().dt.days == 1).sum() * 2 < len(dates) - 1:
        return []
    days = pd.date_range(dates.min(), newest)
    there = Series(days.isin([*dates, *left_out]), days)
    missing = []
    for day in days[~there]:
        near = there[days.isin([day + pd.Timedelta(weeks=w) for w in range(-4, 5) if w])]
        if near.mean() >= 0.5 if len(near) else day.day_of_week < 5:
            missing.append(day)
    return missing


# -- changes


def _of_series(
    nights: DataFrame, weekly: bool, alpha: float, since: pd.Timestamp
) -> tuple[Row, list[Row]]:
    """Return what is said of a series as a whole, and what is said of each of its changes."""
    dates = nights["date"].tolist()
    values = nights["value"].to_numpy(float)
    of_data = "quantity" in nights.columns
    counted = of_data and (values > 1).all()
    own = np.log(values) if counted else values
    day = nights["date"].dt.day_of_week.to_numpy() if weekly else np.zeros(len(values), np.int64)
    se = np.zeros(len(own)) if of_data else nights["se"].to_numpy(float, na_value=0.0)
    series = changes_of_level(Nights(own, np.nan_to_num(se), day), alpha)
    apart = {dates[at]: off for at, off in series.outliers.items() if dates[at] >= since}
    unlike = "" if of_data else _words_of_unlike(nights)
    doubts = {
        "few_runs": len(values) < LEAST_NIGHTS,
        "not_independent": series.alike != "",
        "definition_changed": unlike != "",
        "outlier_night": apart,
    }
    back = np.expm1 if counted else float
    far_off = not of_data and abs(apart.get(dates[-1], 0.0)) > NEWEST_APART
    begins = [0, *(change.begins for change in series.changes), len(values)]
    whole = {
        "n_runs": len(values),
        "first": dates[0],
        "last": dates[-1],
        "level": values[begins[-2] :].mean(),
        "could_see": back(seen_in_a_week(len(values), alpha) * series.sd),
        "alike": series.alike,
        "outliers": ", ".join(
            f"{day:%Y-%m-%d} ({_in_sd(off)})" for day, off in list(apart.items())[-MOST_APART:]
        ),
        "unlike": unlike,
        "better": None if of_data else better_of(nights["column"].iloc[0]),
        "effect": "far_off" if far_off else "none",
        "remarks": by_rank(code for code, holds in doubts.items() if holds),
    }

    def of_change(change: LevelChange, first: int, end: int) -> Row:
        """Return what is said of one change between the nights `first` and `end`."""
        at = change.begins
        last = change.ends or end
        diff = own[at:last].mean() - own[first:at].mean()
        ended = change.ends is not None
        way = "higher" if diff > 0 else "lower"
        effect = "drifted" if of_data else "changed"
        if whole["better"]:
            effect = "better" if (diff > 0) == (whole["better"] == "larger") else "worse"
        days = (pd.DatetimeIndex(dates[first:end]) - dates[first]).days.to_numpy()
        slope = np.polyfit(days, own[first:end], 1)[0] if change.drifts else np.nan
        said = {
            "early": change.sure is None and not ended,
            "line_fits": change.drifts,
            "back": ended,
        }
        return {
            "changed": dates[at],
            "found": dates[change.found],
            "sure": pd.NaT if change.sure is None else dates[change.sure],
            "until": dates[last - 1] if ended else pd.NaT,
            "before": values[first:at].mean(),
            "after": values[at:last].mean(),
            "diff": back(diff),
            "per_month": back(slope * 365.25 / 12),
            "e_value": np.exp(min(change.log_evidence, 700.0)),
            "way": way,
            "effect": whole["effect"] if ended else "drifts" if change.drifts else effect,
            "remarks": by_rank(
                [*codes_of(whole["remarks"]), *(code for code, holds in said.items() if holds)]
            ),
        }

    return whole, [*map(of_change, series.changes, begins, begins[2:])]


def _words_of_unlike(nights: DataFrame) -> str:
    """Say which nights of a series were evaluated in another way than the newest, and how."""
    words = []
    for how, some in nights[nights["unlike"] != ""].groupby("unlike", sort=False)["date"]:
        first = f"{some.min():%Y-%m-%d}"
        last = f"{some.max():%Y-%m-%d}"
        days = first if first == last else f"{first} to {last}"
        words.append(f"{len(some)} night{'s' * (len(some) > 1)} ({days}) with {how}")
    return "; ".join(words)


def _in_sd(off: float) -> str:
    """Say how far off a night is."""
    if abs(off) > MOST_SD:
        return f"more than {MOST_SD} sd {'above' if off > 0 else 'below'}"
    return f"{off:+.0f} sd"

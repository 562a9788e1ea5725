"""What `gate` returns: a table of verdicts that is true where the candidate passed, as text, Markdown and JUnit."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd

from ..inputs.budgets import signed
from ..tables.cells import digits_for, html_text, markdown_text, number, visible
from ..tables.shown_frames import ReportTable

__all__: list[str] = []

PASS: Final = "pass"
FAIL: Final = "fail"
UNDECIDED: Final = "undecided"
PASS_BUT_WORSE, NOT_GATED = "pass, but worse", "not gated"  # verdicts of rows alone
GateVerdict = Literal["pass", "fail", "undecided"]
GATE_TITLES = {PASS: "Passed", FAIL: "Failed", UNDECIDED: "Undecided"}


@dataclass(frozen=True, eq=False)
class Gate:
    """The decision of `rd.gate`. It is true where the candidate passed: `assert rd.gate(...)`.

    Parameters
    ----------
    verdict : {"pass", "fail", "undecided"}
        Fail if any row fails; else undecided if any is, or if no row is gated; else pass.
    table : DataFrame
        One row per metric and segment: `metric`, `segment`, `segment_value` (empty for all lists), `budget` (text),
        `verdict` ("pass", "pass, but worse", "fail", "undecided", "not gated"), `better`, `mean_baseline`,
        `mean_candidate`, `diff`, `rel_diff`; `change`, `change_low`, `change_high` (of the mean, relative where
        `relative` is True, with its bounds, each one-sided at 1 − α), `allowed`, `relative`, `provable` (the smallest
        budget that would have passed), `n_users`, `n_lists`, `n_differ` (users with a difference), `n_only_candidate`,
        `n_only_baseline` (lists of one side alone), `p_pass`, `p_fail`, `p_fail_adj`, `n_needed` (about how many users
        would pass in 80 % of the runs if the change stays as it is), `bound` ("t", "betting", "anytime"), `warning`,
        `reason`.
    checks : DataFrame
        What was compared of the data: `check`, `candidate`, `baseline`, `found` ("same", "differs", "not known").
    alpha : float
        Error rate of the bounds.
    looks : {"once", "any"} or None
        Whether the bounds hold at all looks together.
    """

    verdict: GateVerdict
    table: pd.DataFrame
    checks: pd.DataFrame
    alpha: float
    looks: str | None

    @classmethod
    def of(cls, table: pd.DataFrame, checks: pd.DataFrame, alpha: float, looks: str | None) -> Gate:
        """Make a gate of its rows."""
        found = set(table["verdict"])
        verdict: GateVerdict = FAIL if FAIL in found else PASS
        if verdict != FAIL and (UNDECIDED in found or not found & {PASS, PASS_BUT_WORSE}):
            verdict = UNDECIDED
        return cls(verdict, table, checks, alpha, looks)

    @property
    def passed(self) -> bool:
        """Whether the verdict is "pass"."""
        return self.verdict == PASS

    @property
    def reasons(self) -> list[str]:
        """Why the candidate did not pass: what differs in the data, and one sentence for each such row."""
        data = [
            f"{row['check']} differs: {row['candidate']} of the candidate, {row['baseline']} of the baseline"
            for row in self.checks[self.checks["found"] == "differs"].to_dict("records")
        ]
        rows = self.table[self.table["verdict"].isin([FAIL, UNDECIDED])].to_dict("records")
        return data + ([] if data else [row_sentence(row) for row in rows])

    def __bool__(self) -> bool:
        if not self.passed and "PYTEST_CURRENT_TEST" in os.environ:
            # pytest cuts the text of what it asserts, and shows in full what was written to stderr.
            print(f"\n{self}", file=sys.stderr)
        return self.passed

    def __repr__(self) -> str:
        return "\n".join([self._headline(), "", self._shown().to_text(), "", *self._notes()])

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{part}</p>" for part in map(html_text, self._notes()))
        return f"<p><b>{self._headline()}</b></p>{self._shown()._repr_html_()}{notes}"

    def to_markdown(self) -> str:
        """Return a summary that reads well as a comment on a change request: verdict, table, reasons.

        Examples
        --------
        >>> import recdf as rd
        >>> result = rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1")
        >>> print(rd.gate(result, result, {"mrr@1": -0.1}).to_markdown().splitlines()[0])
        ### Undecided: 0 of 1 budgets are met, 1 undecided
        """
        lines = [f"### {self._headline()}", "", self._shown().to_markdown()]
        return "\n".join([*lines, "", *(f"* {markdown_text(line)}" for line in self._notes())]) + "\n"

    def to_junit(self, path: Any, *, undecided: Literal["error", "skipped"] = "error") -> None:
        """Write a JUnit report, which CI systems show: one test case per budget.

        Parameters
        ----------
        path : path
            The file, which is replaced.
        undecided : {"error", "skipped"}, default "error"
            How an undecided row stands there.
        """
        from xml.etree import ElementTree as xml  # only reports need it

        rows = [row for row in self.table.to_dict("records") if row["verdict"] != NOT_GATED]
        n = {word: sum(row["verdict"] == word for row in rows) for word in (FAIL, UNDECIDED)}
        counts = {"tests": len(rows), "failures": n[FAIL], "errors": 0, "skipped": 0}
        counts["errors" if undecided == "error" else "skipped"] = n[UNDECIDED]
        suite = xml.Element("testsuite", {"name": "recdf gate", **{name: str(n) for name, n in counts.items()}})
        for row in rows:
            name = visible(f"{_where(row)} {row['budget']}")
            case = xml.SubElement(suite, "testcase", {"classname": "recdf.gate", "name": name})
            said = "; ".join([row_sentence(row), *(self.reasons if row["reason"].startswith("the data") else [])])
            if row["verdict"] in (FAIL, UNDECIDED):
                kind = "failure" if row["verdict"] == FAIL else undecided
                xml.SubElement(case, kind, {"message": visible(said), "type": row["verdict"]})
            else:
                xml.SubElement(case, "system-out").text = visible(said)
        suites = xml.Element("testsuites")
        suites.append(suite)
        xml.indent(suites)
        Path(path).expanduser().write_bytes(xml.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n")

    def _headline(self) -> str:
        found = self.table["verdict"].tolist()
        n = {word: found.count(word) for word in (FAIL, UNDECIDED)}
        held = found.count(PASS) + found.count(PASS_BUT_WORSE)
        more = [f"{n[FAIL]} broken"] * bool(n[FAIL]) + [f"{n[UNDECIDED]} undecided"] * bool(n[UNDECIDED])
        total = held + sum(n.values())
        of = "1 budget is met" if held == total == 1 else f"{held} of {total} budgets are met"
        return f"{GATE_TITLES[self.verdict]}: {', '.join([of, *more])}"

    def _shown(self) -> ReportTable:
        rows = self.table.to_dict("records")
        cells: dict[str, list[str]] = {"verdict": [row["verdict"] for row in rows]}
        cells["metric"] = [_where(row) for row in rows]
        cells["budget"] = [row["budget"] or "–" for row in rows]
        cells["change"] = [_change_text(row) for row in rows]
        cells["baseline"], cells["candidate"] = (
            [number(row[name], f".{digits_for(row['mean_baseline'], row['mean_candidate'])}f") for row in rows]
            for name in ("mean_baseline", "mean_candidate")
        )
        cells["users"] = [f"{row['n_users']:,}" for row in rows]
        if (self.table["reason"] != "").any():
            cells["why"] = [row["reason"] for row in rows]
        return ReportTable(pd.DataFrame(cells))

    def _notes(self) -> list[str]:
        """Return what differs in the data, what nobody knows of it, and what the bounds mean."""
        differs = self.reasons if (self.checks["found"] == "differs").any() else []
        unknown = self.checks["check"][self.checks["found"] == "not known"].tolist()
        looks = ", at all looks together" if self.looks == "any" else ""
        said = f"Bounds of the change hold one-sided with {1 - self.alpha:.0%}{looks}; users are the units."
        lines = [*differs, *([f"Not compared, since nothing records them: {', '.join(unknown)}."] if unknown else [])]
        return [*lines, said]


def _where(row: Mapping[Any, Any]) -> str:
    """Return the metric of a row with its segment."""
    return str(row["metric"]) + (f" [{row['segment']}={row['segment_value']}]" if row["segment"] else "")


def _change_text(row: Mapping[Any, Any]) -> str:
    """Return the change with its bounds."""
    ends = [signed(row[name], row["relative"]) for name in ("change", "change_low", "change_high")]
    return f"{ends[0]} [{ends[1]}, {ends[2]}]"


def row_sentence(row: Mapping[Any, Any]) -> str:
    """Say the verdict of a row, with its change and budget."""
    said = f"{_where(row)}: {row['verdict']}, {_change_text(row)}, budget {row['budget']}"
    return f"{said} ({row['reason']})" if row["reason"] else said

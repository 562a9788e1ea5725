"""What `gate` returns: a table of verdicts that is true where the candidate passed, as text,
Markdown and JUnit."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, Literal

import pandas as pd

from ..experiments.compare.cheap_labels import label_sentences
from ..judge.verdict import sentence
from ..publishing import publish_text
from ..stats.shares import CHANCE_SEEN
from ..tables.cells import estimate, form_of, markdown_text, number, visible
from ..tables.shown_frames import ReportTable, ShownResult

__all__: list[str] = []

MOST_SEEN = 4  # budgets whose reach is said

PASS: Final = "pass"
FAIL: Final = "fail"
UNDECIDED: Final = "undecided"
PASS_BUT_WORSE, NOT_GATED = "pass_but_worse", "not_gated"  # effects of rows alone
GateVerdict = Literal["pass", "fail", "undecided"]
# What is shown of the table, and the columns of the checks, of which `found` is a word of
# `checks_table`.
GATE_COLUMNS = (
    "metric",
    "segment",
    "segment_value",
    "budget",
    "effect",
    "verdict",
    "mean_baseline",
    "mean_candidate",
    "change",
    "change_low",
    "change_high",
    "allowed",
    "relative",
    "n_users",
    "alpha",
    "bound",
    "reason",
)
CHECK_COLUMNS = ["check", "candidate", "baseline", "found"]
DOUBTFUL = ("differs", "in doubt")  # what is found of the data where nothing is decided
GATE_TITLES = {PASS: "Passed", FAIL: "Failed", UNDECIDED: "Undecided"}


@dataclass(frozen=True, eq=False, repr=False)
class Gate(ShownResult):
    """The decision of `rd.gate`. It is true where the candidate passed: `assert rd.gate(...)`.

    Parameters
    ----------
    table : DataFrame
        One row per metric and segment: `metric`, `segment`, `segment_value` (empty for all lists),
        `budget` (text), `verdict` ("pass", "pass, but worse", "fail", "undecided", "not gated"),
        `better`, `mean_baseline`, `mean_candidate`, `diff`, `rel_diff`; `change`, `change_low`,
        `change_high` (of the mean, relative where `relative` is True, with its bounds, each
        one-sided at 1 − α), `allowed`, `relative`, `provable` (the smallest budget that would have
        passed), `n_users`, `n_lists`, `n_differ` (users with a difference), `n_only_candidate`,
        `n_only_baseline` (lists of one side alone), `p_pass`, `p_fail`, `p_fail_adj`, `n_needed`
        (about how many users would pass in 80 % of the runs if the change stays as it is), `alpha`
        (error rate of the bounds), `bound` ("t", "betting", "anytime"), `effect` ("pass",
        "pass_but_worse", "fail", "undecided", "not_gated"), `withheld`, `remarks`, `reason`.
    checks : DataFrame
        What was compared of the data: `check`, `candidate`, `baseline`, `found` ("same", "differs",
        "not known"; of recommendations that were given, "in doubt" or "no doubt").
    """

    table: pd.DataFrame
    checks: pd.DataFrame

    @property
    def verdict(self) -> GateVerdict:
        """Fail if any row fails; else undecided if any is, or if no row is gated; else pass."""
        found = set(self.table["effect"])
        return (
            FAIL
            if FAIL in found
            else UNDECIDED
            if UNDECIDED in found or found == {NOT_GATED}
            else PASS
        )

    @property
    def confidence(self) -> float:
        """The probability with which each bound holds, 1 − α."""
        return 1 - float(self.table["alpha"].iloc[0])

    @property
    def passed(self) -> bool:
        """Whether the verdict is "pass"."""
        return self.verdict == PASS

    @property
    def _asked(self) -> pd.DataFrame:
        """The rows with a budget; that of a segment with too few users is not gated."""
        return self.table[self.table["budget"] != ""]

    @property
    def reasons(self) -> list[str]:
        """Why the candidate did not pass: what differs in the data, and one sentence for each such
        row."""
        data = [
            f"{row['check']} {row['found']}: {row['candidate']} of the candidate, "
            f"{row['baseline']} of the baseline"
            for row in self.checks[self.checks["found"].isin(DOUBTFUL)].to_dict("records")
        ]
        doubtful = [FAIL, UNDECIDED, *([] if self.passed else [NOT_GATED])]
        rows = self._asked[self._asked["effect"].isin(doubtful)].to_dict("records")
        return data + ([] if data else [row_sentence(row) for row in rows])

    def __bool__(self) -> bool:
        if not self.passed and "PYTEST_CURRENT_TEST" in os.environ:
            # pytest cuts the text of what it asserts, and shows in full what was written to stderr.
            print(f"\n{self}", file=sys.stderr)
        return self.passed

    def to_markdown(self) -> str:
        """Return a summary that reads well as a comment on a change request: verdict, table,
        reasons.

        Examples
        --------
        >>> import recdf as rd
        >>> result = rd.evaluate({"u": ["a"]}, {"u": ["a"]}, "mrr@1")
        >>> print(rd.gate(result, result, {"mrr@1": -0.1}).to_markdown().splitlines()[0])
        ### Undecided: 0 of 1 budgets are met, 1 undecided
        """
        lines = [f"### {self.headline}", "", self._shown().to_markdown()]
        return "\n".join([*lines, "", *(f"* {markdown_text(line)}" for line in self.notes)]) + "\n"

    def to_junit(self, path: Any, *, undecided: Literal["error", "skipped"] = "error") -> None:
        """Write a JUnit report, which CI systems show: one test case per budget.

        Parameters
        ----------
        path : path
            The file, which is replaced.
        undecided : {"error", "skipped"}, default "error"
            How an undecided row stands there.
        """
        publish_text(Path(path).expanduser(), junit_text(self, undecided))

    @property
    def headline(self) -> str:
        """The verdict and how many budgets are met, broken, undecided and not gated, as one
        line."""
        found = self._asked["effect"].tolist()
        n = {code: found.count(code) for code in (FAIL, UNDECIDED, NOT_GATED)}
        held = len(found) - sum(n.values())
        of = (
            "1 budget is met"
            if held == len(found) == 1
            else f"{held} of {len(found)} budgets are met"
        )
        more = [
            f"{count} {'broken' if code == FAIL else sentence('gate', code)}"
            for code, count in n.items()
            if count
        ]
        return f"{GATE_TITLES[self.verdict]}: {', '.join([of, *more])}"

    def _shown(self) -> ReportTable:
        cells = pd.DataFrame([row_cells(row) for row in self.table.to_dict("records")])
        return ReportTable(cells if cells["why"].any() else cells.drop(columns="why"))

    @property
    def notes(self) -> list[str]:
        """What differs in the data, what nobody knows of it, and what the bounds mean."""
        differs = self.reasons if self.checks["found"].isin(DOUBTFUL).any() else []
        unknown = self.checks["check"][self.checks["found"] == "not known"].tolist()
        looks = ", at all looks together" if "anytime" in set(self.table["bound"]) else ""
        said = (
            f"Bounds of the change hold one-sided with {self.confidence:.0%}{looks}; users are the "
            "units."
        )
        lines = [
            *differs,
            *(
                [f"Not compared, since nothing records them: {', '.join(unknown)}."]
                if unknown
                else []
            ),
        ]
        return [*lines, *self._labels(), *self._seen(), said]

    def _seen(self) -> list[str]:
        """Say which change each budget that was met by a t bound would have shown in 8 of 10
        tests."""
        met = self._asked["effect"].isin([PASS, PASS_BUT_WORSE]) & (self._asked["bound"] == "t")
        normal = NormalDist().inv_cdf
        seen = []
        for row in self._asked[met].to_dict("records"):
            reach = abs(row["change"] - row["provable"])
            least = reach * (1 + normal(CHANCE_SEEN) / normal(1 - row["alpha"]))
            worse = least if row["better"] == "smaller" else -least
            seen.append(f"{_where(row)} {estimate(worse, sign='+%' if row['relative'] else '+')}")
        more = ["..."] if len(seen) > MOST_SEEN else []
        words = ", ".join([*seen[:MOST_SEEN], *more])
        return [f"Losses that would have been seen in 8 of 10 tests: {words}."] if seen else []

    def _labels(self) -> list[str]:
        """Say which labels decided, if there were cheap ones."""
        if "labels" not in self.table.columns:
            return []
        rows = self.table.assign(
            what=[f"{_where(row)}, candidate − baseline" for row in self.table.to_dict("records")]
        )
        alone = ", ".join(
            visible(_where(row)) for row in rows[rows["labels"] == "people"].to_dict("records")
        )
        why = (
            "the cheap ones tell too little, or one large loss more among these lists could decide"
        )
        both = label_sentences(rows["n_users"], rows["n_cheap"], rows.to_dict("records"))
        return [
            *both,
            *([f"The labels of people count alone for {alone}: {why}."] if alone else []),
        ]


def junit_text(found: Gate, undecided: Literal["error", "skipped"]) -> str:
    """Return the JUnit report of a gate."""
    from xml.etree import ElementTree as xml  # only reports need it

    too_few = undecided if set(found.table["effect"]) == {NOT_GATED} else "skipped"
    kinds = {FAIL: "failure", UNDECIDED: undecided, NOT_GATED: too_few}
    tags = [kinds.get(effect, "") for effect in found._asked["effect"]]
    names = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {"tests": str(len(tags))} | {name: str(tags.count(tag)) for name, tag in names.items()}
    suites = xml.Element("testsuites")
    suite = xml.SubElement(suites, "testsuite", {"name": "recdf gate", **counts})
    for row, tag in zip(found._asked.to_dict("records"), tags, strict=True):
        name = visible(f"{_where(row)} {row['budget']}")
        case = xml.SubElement(suite, "testcase", {"classname": "recdf.gate", "name": name})
        data = found.reasons if row["reason"].startswith("the data") else []
        said = visible("; ".join([row_sentence(row), *data]))
        if tag:
            xml.SubElement(case, tag, {"message": said, "type": row["verdict"]})
        else:
            xml.SubElement(case, "system-out").text = said
    xml.indent(suites)
    text: str = xml.tostring(suites, encoding="utf-8", xml_declaration=True).decode()
    return f"{text}\n"


def _where(row: Mapping[Any, Any]) -> str:
    """Return the metric of a row with its segment."""
    return str(row["metric"]) + (
        f" [{row['segment']}={row['segment_value']}]" if row["segment"] else ""
    )


def row_cells(row: Mapping[Any, Any]) -> dict[str, str]:
    """Return what a row of a gate says, cell by cell."""
    around = row["change"], row["change_low"], row["change_high"]
    means = row["mean_baseline"], row["mean_candidate"]
    form = form_of(*means, half=(means[1] - means[0]) / 2)
    return {
        "verdict": row["verdict"],
        "metric": _where(row),
        "budget": row["budget"] or "–",
        "change": estimate(*around, "+%" if row["relative"] else "+"),
        "baseline": number(row["mean_baseline"], form),
        "candidate": number(row["mean_candidate"], form),
        "users": f"{row['n_users']:,}",
        "why": row["reason"],
    }


def row_sentence(row: Mapping[Any, Any]) -> str:
    """Say the verdict of a row, with its change and budget."""
    cells = row_cells(row)
    said = f"{cells['metric']}: {cells['verdict']}, {cells['change']}, budget {cells['budget']}"
    return f"{said} ({cells['why']})" if cells["why"] else said

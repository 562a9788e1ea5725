"""What `gate` is handed and what it gives back: the two sides of a gate, those with labels of
people and cheap ones, and the result."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from pandas import DataFrame

from ..errors import ColumnError, DataError, OptionError, closest, examples, kind_of
from ..evaluation.result import read_parquet
from ..experiments.compare.cheap_labels import (
    join_labels,
    label_sentences,
    shared_metrics,
)
from ..experiments.compare.paired import facts_of_metrics
from ..inputs.constraints import Budget
from ..inputs.data_files import needed_frame
from ..inputs.door import table_of_users
from ..inputs.frames import UNREAD, as_frame, column, engine_of
from ..inputs.ids import label_codes
from ..inputs.sorting import distinct
from ..judge.choices import AnyRow, AnySpec
from ..judge.comparability import Fact, other_truth
from ..judge.per_user_columns import Codes, Mask, evaluated
from ..judge.users import ModelRows, read_model_rows
from ..judge.verdict import sentence
from ..publishing import publish_text
from ..stats.numbers import normal_quantile
from ..stats.shares import CHANCE_SEEN
from ..tables.cells import (
    ReportTable,
    ShownResult,
    amount,
    estimated,
    form_of,
    markdown_text,
    number,
    visible,
)
from .check_findings import MANY_SEEN
from .data_checks import check

# ------------------------------------------------------------------------------------------
# What `gate` returns: a table of verdicts that is true where the candidate passed, as text,
# Markdown and JUnit.


MOST_SEEN = 4  # budgets whose reach is said

PASS: Final = "pass"
FAIL: Final = "fail"
UNDECIDED: Final = "undecided"
PASS_BUT_WORSE, NOT_GATED = "pass_but_worse", "not_gated"  # effects of rows alone
# What is shown of the table, and the columns of the checks, of which `found` is a word of
# `checks_table`.
_SHOWN_COLUMNS = (
    "metric segment segment_value budget effect verdict mean_baseline mean_candidate change "
    "change_low change_high allowed relative n_users alpha bound reason"
)
GATE_COLUMNS = _SHOWN_COLUMNS.split()
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

    table: DataFrame
    checks: DataFrame

    @property
    def verdict(self) -> Literal["pass", "fail", "undecided"]:
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
    def _asked(self) -> DataFrame:
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
        return data or [row_sentence(row) for row in rows]

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
        ### Undecided: 0 of 1 budget is met, 1 undecided
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
        of = f"{held} of {amount(len(found), 'budget')} {'is' if len(found) == 1 else 'are'} met"
        of = of.removeprefix("1 of ") if len(found) == 1 else of
        more = [
            f"{count} {'broken' if code == FAIL else sentence('gate', code)}"
            for code, count in n.items()
            if count
        ]
        return f"{GATE_TITLES[self.verdict]}: {', '.join([of, *more])}"

    def _shown(self) -> ReportTable:
        cells = DataFrame([row_cells(row) for row in self.table.to_dict("records")])
        return ReportTable(cells if cells["why"].any() else cells.drop(columns="why"))

    @property
    def notes(self) -> list[str]:
        """What differs in the data, what nobody knows of it, and what the bounds mean."""
        rows = self._asked.to_dict("records")
        lines = self.reasons if self.checks["found"].isin(DOUBTFUL).any() else []
        if unknown := self.checks["check"][self.checks["found"] == "not known"].tolist():
            lines.append(f"Not compared, since nothing records them: {', '.join(unknown)}.")
        if alone := [
            f"{visible(_where(row))} {row['n_only_candidate']:,} of the candidate and "
            f"{row['n_only_baseline']:,} of the baseline"
            for row in rows
            if row["n_only_candidate"] or row["n_only_baseline"]
        ]:
            lines.append(
                f"Lists that one side alone has: {_first_of(alone)}; they count as the worst "
                "value, and are left out where the metric has none."
            )
        lines += self._labels()
        seen = []
        for row in rows:
            if row["bound"] == "t" and row["effect"] in (PASS, PASS_BUT_WORSE):
                reach = abs(row["change"] - row["provable"])
                z = normal_quantile(CHANCE_SEEN) / normal_quantile(1 - row["alpha"])
                worse = reach * (1 + z) * (1 if row["better"] == "smaller" else -1)
                shown = estimated(worse, sign="+%" if row["relative"] else "+")
                seen.append(f"{_where(row)} {shown}")
        if seen:
            words = f"Losses that would have been seen in 8 of 10 tests: {_first_of(seen)}."
            lines.append(words)
        looks = ", at all looks together" if "anytime" in set(self.table["bound"]) else ""
        units = "users are the units"
        if "unit" in self.table:
            units = f"each {visible(self.table['unit'].iloc[0])} is a unit"
        said = f"Bounds of the change hold one-sided with {self.confidence:.0%}{looks}; {units}."
        return [*lines, said]

    def _labels(self) -> list[str]:
        """Say which labels decided, if there were cheap ones."""
        if "labels" not in self.table.columns:
            return []
        rows = self.table.to_dict("records")
        named = [row | {"what": f"{_where(row)}, candidate − baseline"} for row in rows]
        said = [*label_sentences(self.table["n_users"], self.table["n_cheap"], named)]
        if alone := ", ".join(visible(_where(row)) for row in rows if row["labels"] == "people"):
            said.append(
                f"The labels of people count alone for {alone}: the cheap ones tell too little, or "
                "one large loss more among these lists could decide."
            )
        return said


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
    text = xml.tostring(suites, encoding="utf-8", xml_declaration=True).decode()
    return f"{text}\n"


def _first_of(words: Sequence[str]) -> str:
    """Return the words of a few budgets, and dots for others."""
    return ", ".join([*words[:MOST_SEEN], *(["..."] if len(words) > MOST_SEEN else [])])


def _where(row: AnyRow) -> str:
    """Return the metric of a row with its segment."""
    return str(row["metric"]) + (
        f" [{row['segment']}={row['segment_value']}]" if row["segment"] else ""
    )


def row_cells(row: AnyRow) -> dict[str, str]:
    """Return what a row of a gate says, cell by cell."""
    around = row["change"], row["change_low"], row["change_high"]
    means = row["mean_baseline"], row["mean_candidate"]
    form = form_of(*means, half=(means[1] - means[0]) / 2)
    return {
        "verdict": row["verdict"],
        "metric": _where(row),
        "budget": row["budget"] or "–",
        "change": estimated(*around, "+%" if row["relative"] else "+"),
        "baseline": number(row["mean_baseline"], form),
        "candidate": number(row["mean_candidate"], form),
        "users": f"{row['n_users']:,}",
        "why": row["reason"],
    }


def row_sentence(row: AnyRow) -> str:
    """Say the verdict of a row, with its change and budget."""
    cells = row_cells(row)
    said = f"{cells['metric']}: {cells['verdict']}, {cells['change']}, budget {cells['budget']}"
    return f"{said} ({cells['why']})" if cells["why"] else said


# ------------------------------------------------------------------------------------------
# The two sides of a gate: what a caller hands over as a per-user table, and whether both come
# from the same data.


class Side(NamedTuple):
    """One side: its role, its table with one row per list, and what `evaluate` recorded (empty if
    that is lost)."""

    role: str
    per_user: DataFrame
    spec: AnySpec

    @property
    def options(self) -> dict[str, Any]:
        """The options of the evaluation."""
        return self.spec.get("options", {})

    def recorded(self, metric: str, what: str) -> Any:
        """What is recorded of a metric, such as its k; None if nothing is."""
        return self.spec.get("metrics", {}).get(metric, {}).get(what)


def read_side(role: str, given: Any, names: Collection[str] | None = None) -> Side:
    """Read a result, a folder with one, or a per-user table; one with several models raises.

    Of a frame of an engine the columns `names` come into memory, and those of the lists.
    """
    if isinstance(given, str | os.PathLike):
        given = read_parquet(given)
    per_user = getattr(given, "per_user", given)
    spec = getattr(given, "spec", None)
    if names is not None and engine_of(per_user) is not None:
        known = spec or {}
        of_lists = {*known.get("by", []), *known.get("user_col", []), "user_id"}
        used = {*names, *of_lists, "n_true", str(known.get("weight"))}
        given = per_user
        per_user = needed_frame(
            given, role, lambda head: [name for name in head.columns if name in used]
        )
        per_user.attrs[UNREAD] = [name for name in given.columns if name not in used]
    per_user = table_of_users(per_user, role)
    if not isinstance(per_user, DataFrame):
        expected = "a result of rd.evaluate, a folder with one, or its per_user"
        raise TypeError(f"{role} is {kind_of(given)}; expected {expected}")
    spec = evaluated(per_user) if spec is None else spec
    for name in spec.get("by", []):
        if name in per_user.columns:
            models = per_user[name].drop_duplicates().tolist()
            if len(models) > 1:
                raise OptionError(
                    f"{role} has {len(models)} values of {name!r} "
                    f"({', '.join(map(repr, models[:5]))}); expected one recommender: pass the "
                    f"rows of one, per_user[per_user[{name!r}] == {models[0]!r}]",
                    argument=role,
                )
            per_user = per_user.drop(columns=name)
    return Side(role, per_user, spec)


def check_metrics(sides: Sequence[Side], metrics: Iterable[str]) -> None:
    """Raise for a metric that a side lacks, or has at another k; say what may have been meant."""
    for metric in metrics:
        for side in sides:
            if metric in side.per_user.columns:
                continue
            known = list(side.spec.get("metrics", {})) or [
                str(name) for name in side.per_user.select_dtypes("float")
            ]
            (word, at, _), words = metric.partition("@"), [name.split("@")[0] for name in known]
            hint = closest(word.lower(), words)
            if not at:  # the caller left out the cut-off
                lower = metric.lower()
                same = (one for one in known if one.split("@")[0] == lower)
                hint = closest(next(same, lower), known)
            elif word in words:
                hint = "; it was evaluated at another k"
            if metric in known:
                hint = f"; {metric!r} is one number for all lists, which has no interval"
            has = f"it has {', '.join(known) or 'none'}{hint}"
            raise ColumnError(
                f"{side.role} has no metric {metric!r} per list; {has}",
                argument="budgets",
                value=metric,
            )
        ks = {side.role: side.recorded(metric, "k") for side in sides}
        if None not in ks.values() and len(set(ks.values())) > 1:
            at = " and ".join(f"at k = {k} in {role}" for role, k in ks.items())
            says = f"{metric!r} is {at}; evaluate both at the same k"
            raise OptionError(says, argument="budgets", value=metric)


def rows_of_sides(
    sides: Sequence[Side], keys: list[str], units: Sequence[str] = (), weight: str | None = None
) -> ModelRows:
    """Return the lists of both sides, with the weight of each list if they have one."""
    runs = read_model_rows({side.role: side.per_user for side in sides}, keys, [], "model", units)
    return runs if weight is None else runs.weighted(weight)


def data_checks(sides: Sequence[Side], runs: ModelRows, metrics: Iterable[str]) -> dict[str, Fact]:
    """Return what both sides were evaluated on, by what it is: equal texts where it is the same,
    None where nothing tells."""
    facts = facts_of_metrics(sides[0].spec, sides[1].spec, metrics)
    truth = [side.spec.get("truth") for side in sides]
    if all("n_true" in side.per_user.columns for side in sides):
        both = runs.table("n_true")
        whole = all(side.options.get("users") in ("true", "all") for side in sides)
        unlike, _ = other_truth(both, whole)
        if unlike:
            own, base = (f"{int(np.nansum(one)):,} relevant items" for one in both)
            truth = [f"{own}, other ones in {amount(unlike, 'list')}", base]
        elif None in truth:
            truth = ["as many relevant items in each list"] * 2
    return facts | {"truth": Fact("other_truth", *truth)}


def pair_of(
    pred: Any, roles: Sequence[str], argument: str = "pred", what: str = "recommendations"
) -> dict[str, Any]:
    """Return the recommendations of each side, or their files; anything but two raises."""
    if not isinstance(pred, list | tuple) or len(pred) != len(roles):
        held = f"holds {len(pred)}" if isinstance(pred, list | tuple) else f"is {kind_of(pred)}"
        raise OptionError(
            f"⟦{argument}=⟧ {held}; expected two, the {what} of {' and of '.join(roles)}"
        )
    return dict(zip(roles, pred, strict=True))


def look_at_frames(
    sides: Sequence[Side], pred: Any, true: Any, log: Any, k: int, keys: list[str]
) -> tuple[tuple[Side, Side], list[tuple[str, ...]]]:
    """Return the sides with the share of judged items of each list, and what `check` finds in the
    lists of both, as rows of `checks_table`."""
    lists = pair_of(pred, [side.role for side in sides])
    if true is None:
        raise OptionError("⟦pred=⟧ needs ⟦+true=⟧, the truth that both sides were evaluated on")
    item_col = sides[0].options.get("item_col", "item_id")
    options = {"user_col": keys[0] if len(keys) == 1 else keys, "item_col": item_col}
    judged = column(as_frame(true, "true", **options), item_col, "true")
    found = []
    shares = []
    for side in sides:
        frame = as_frame(lists[side.role], f"pred of the {side.role}", **options)
        own = {
            name: side.options[name] for name in ("score_col", "rank_col") if name in side.options
        }
        findings = check(true, frame, k, log=log, **options, **own)
        shares.append(dict(zip(findings["code"], findings["share"], strict=True)))
        is_judged = frame[keys].assign(**{"judged in true": frame[item_col].isin(judged)})
        of_list = is_judged.groupby(keys, as_index=False, observed=True).mean()
        found.append(side._replace(per_user=side.per_user.merge(of_list, on=keys, how="left")))
    doubts = ("no doubt", "in doubt")
    sampled = [f"sampled in {one.get('sampled', 0):.0%} of the lists" for one in shares]
    rows = [("candidates", *sampled, doubts[any("sampled" in one for one in shares)])]
    if log is not None:
        seen = [one.get("pred_seen", 0.0) for one in shares]
        of_each = (f"{one:.1%} of the recommendations" for one in seen)
        rows.append(("seen items", *of_each, doubts[abs(seen[0] - seen[1]) > MANY_SEEN]))
    return (found[0], found[1]), rows


def checks_table(facts: Mapping[str, Fact], more: Sequence[tuple[str, ...]] = ()) -> DataFrame:
    """Return one row per check: what it is of both sides, and whether that is the same; and `more`
    rows, which say what is in doubt."""
    rows = [
        (
            name,
            str(one.own),
            str(one.base),
            "differs" if one.differs else "not known" if None in one else "same",
        )
        for name, one in facts.items()
    ]
    return DataFrame([*rows, *more], columns=CHECK_COLUMNS, dtype="str")


# ------------------------------------------------------------------------------------------
# Both sides of a gate with labels of people and cheap ones: the lists with both, and their
# change.


def runs_of_both_labels(
    cheap: Any,
    sides: Sequence[Side],
    metrics: Sequence[str],
    keys: list[str],
    units: list[str],
    weight: str | None,
) -> tuple[ModelRows, DataFrame]:
    """Return the lists of both sides with both labels, and what was compared of the cheap ones."""
    roles = [side.role for side in sides]
    given = [
        read_side(role, one)
        for role, one in pair_of(cheap, roles, "cheap", "results under cheap labels").items()
    ]
    check_metrics([side._replace(role=f"cheap of the {side.role}") for side in given], metrics)
    facts = data_checks(given, rows_of_sides(given, keys, units), metrics)
    both = []
    for side, more in zip(sides, given, strict=True):
        shared_metrics(side.per_user, more.per_user, metrics, side.role)
        joined = join_labels(side.per_user, more.per_user, metrics, keys, side.role)
        both.append(side._replace(per_user=joined))
    checks = checks_table({f"cheap: {name}": one for name, one in facts.items()})
    return rows_of_sides(both, keys, units, weight), checks


# ------------------------------------------------------------------------------------------
# The segments that have a budget, or are shown.


def places_of_budgets(
    budgets: Sequence[Budget], runs: ModelRows, by: Sequence[str]
) -> Iterator[tuple[Budget, str, str, Mask | bool]]:
    """Yield each budget, or a place for one, with the segment column, its value and its lists; all
    lists first."""
    for one in budgets:
        if one.segment is None:
            yield one, "", "", True
    for name in dict.fromkeys([*by, *(one.segment for one in budgets if one.segment is not None)]):
        of_cell, labels = _segment_of_lists(runs, name)
        texts = [str(label) for label in labels]
        own = [one for one in budgets if one.segment == name]
        unknown = [one.value for one in own if one.value is not None and one.value not in texts]
        if unknown:
            raise OptionError(
                f"⟦budgets=⟧ names {name}={unknown[0]}, which no list has; {name!r} has "
                f"{examples(pd.Series(texts))}",
                value=unknown[0],
            )
        shown = {one.metric: one._replace(allowed=math.nan) for one in budgets[::-1]}
        for code, text in enumerate(texts):
            of_each, of_this = (
                {one.metric: one for one in own if one.value == value} for value in (None, text)
            )
            for budget in (shown | of_each | of_this).values():
                yield budget, name, text, of_cell == code


def _segment_of_lists(runs: ModelRows, name: str) -> tuple[Codes, Any]:
    """Return the segment of each list, −1 where neither side names one, and the labels of the
    segments."""
    try:
        read = [
            column(frame, name, role)
            for role, (_, frame) in zip(runs.models, runs.parts, strict=True)
        ]
    except ColumnError as error:
        how = " (evaluate both with carry=, --carry in a shell, which copies it from pred)"
        raise error.within(after=how) from None
    codes, labels = label_codes(pd.concat(read), repr(name), sort=True)
    some = codes >= 0  # a side without recommendations carries nothing
    codes = codes[some]
    cell = runs.place[some] % runs.n_cells
    of_cell = np.full(runs.n_cells, -1)
    of_cell[cell] = codes
    unlike = distinct(cell[of_cell[cell] != codes])
    if len(unlike):
        raise DataError(
            f"{name!r} differs between candidate and baseline in {len(unlike):,} lists "
            f"({runs.show(unlike)}); a list is in one segment",
            argument="by",
            value=name,
        )
    return of_cell, labels

"""Verdicts: codes in columns, and the only place that makes sentences of them.

Contract: `add_verdicts` runs all cautions over a table and adds `effect` (a code of `EFFECTS`, ""
where the verdict is withheld), `withheld` (the code of the caution that withholds it, or ""),
`remarks` (all codes that hold, the most serious first, joined by "; ") and `verdict`, their
sentence for people. Nothing reads a sentence back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from ..stats.numbers import Floats, Integers, Mask
from ..tables.cells import amount, brief, form_of, number
from .cautions.table import CAUTIONS, FIRING, RANK
from .choices import AnyRow

Sign = Literal["better", "worse", "open"]
VERDICT_COLUMNS = ["effect", "withheld", "remarks", "verdict"]


def _words(*codes: str, **other_words: str) -> dict[str, str]:
    """Effects in words: those of their codes, or others."""
    return {code: code.replace("_", " ") for code in codes} | other_words


# The effects of each kind of verdict, in words.
_DIRECTIONS = _words("better", "worse", "higher", "lower", none="no difference shown")
EFFECTS: dict[str, dict[str, str]] = {
    "variants": _DIRECTIONS,
    "models": _DIRECTIONS | _words("equivalent", "ranks_higher", "ranks_lower"),
    "trend": _words("fades", "grows", "turns", none="no trend shown"),
    "segments": _words(
        differs="differs between segments", none="no difference between segments shown"
    ),
    "labels": _DIRECTIONS | _words("both", "human_alone"),
    "proxy": _words(
        "predicts", predicts_opposite="predicts the opposite", none="no relation shown"
    ),
    "aa": _words("holds", rejects_often="rejects too often", rejects_rarely="rejects too rarely"),
    "ratio": _words("fits"),
    "history": _words(
        "better",
        "worse",
        "changed",
        "drifted",
        "drifts",
        "missing",
        "too_old",
        "left_out",
        none="no change shown",
        far_off="newest night far off",
    ),
    "gate": _words("pass", "fail", "undecided", "not_gated", pass_but_worse="pass, but worse"),
    "role": _DIRECTIONS
    | _words(
        "safe",
        within_margin="worse, within the margin",
        harmed="harmed beyond the margin",
        not_safe="not shown safe",
    ),
    "policy": _words("ok", "wide", interval_only="use the interval only"),
    "decision": _words(
        "ship", "do_not_ship", "keep_running", "invalid", ship_not_as_planned="ship, not as planned"
    ),
}
# Effects that look good or bad; all others are open.
SIGN_OF_EFFECT: dict[str, Sign] = {
    **dict.fromkeys(["better", "safe", "holds", "fits", "predicts", "pass"], "better"),
    **dict.fromkeys(["worse", "within_margin", "harmed", "drifted", "fail"], "worse"),
    **dict.fromkeys(["rejects_often", "rejects_rarely", "predicts_opposite"], "worse"),
    **dict.fromkeys(["missing", "too_old", "far_off"], "worse"),
}


class _Sentence(Formatter):
    """Writes the numbers of a row inside a sentence: `{x:+3}` has three digits that count, and the
    sign."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if not isinstance(value, float):
            return str(super().format_field(value, format_spec))
        sign, digits = "+" * ("+" in format_spec), int(format_spec.strip("+") or 3)
        return number(value, form_of(value, sign=sign, significant=digits))


def sentence(
    kind: str,
    effect: str,
    withheld: str = "",
    remarks: Iterable[str] = (),
    row: AnyRow | None = None,
) -> str:
    """Return the verdict of a row in words: why it is withheld, else the effect, which may stand
    in words of its own, and what is added to it. A row that lacks a number of these words is quoted
    as it was given."""
    row = row or {}
    effect_both = row.get("effect_both")
    words = {"units": f"{unit_of_method(row.get('method'))}s"}
    if effect_both is not None:
        words["both"] = EFFECTS["models"].get(effect_both, "not shown")
    effect = "" if withheld else EFFECTS[kind].get(effect, effect)
    texts = {code: CAUTIONS[code].adds for code in remarks}
    if withheld:
        texts = {withheld: CAUTIONS[withheld].words}
    known = {**row, **words}
    said = [effect]
    for code, text in texts.items():
        try:
            said.append(_Sentence().vformat(text, (), known))
        except KeyError:  # a table without details has the sentence, and not the numbers inside it
            given = row.get("as_given", row.get("verdict"))
            if withheld:
                return given or f"check: {CAUTIONS[withheld].topic}"
            if given:
                return f"{effect} ({given})"
            said.append(f" ({CAUTIONS[code].name})")
    return "".join(said)


def unit_of_method(method: Any) -> str:
    """Return what a method counts, by its end: "user", or "cluster" of "welch+cluster"."""
    end = str(method).rpartition("+")[2]
    return end if end in ("cluster", "list") else "user"


def users_up_to(most: float, of: str, units: str = "users") -> str:
    """Name the units of which a comparison can speak: heavier ones than the heaviest that was seen
    could turn what it says. They are heavy by `of`, such as a weight, or by their lists."""
    return (
        f"{units} with {of} of up to {brief(most)}"
        if of
        else f"{units} with up to {amount(most, 'list')}"
    )


def largest_of_uneven(sizes: Integers | Floats) -> float:
    """Return the largest of some sizes; NaN where all are 0 or alike."""
    most = sizes.max(initial=0)
    return np.nan if np.isin(sizes, (0, most)).all() else float(most)


def name_heaviest(table: DataFrame, weighted: bool) -> None:
    """Add `holds_for` to a table: the users up to the weight `heaviest`, or nothing where it is
    null."""
    units = f"{unit_of_method(table.get('method', [''])[0])}s"
    table["holds_for"] = [
        "" if pd.isna(most) else users_up_to(most, "a weight" * weighted, units)
        for most in table["heaviest"]
    ]


def codes_of(remarks: Any) -> list[str]:
    """Return the codes of one cell of `remarks`."""
    return [code for code in remarks.split("; ") if code] if isinstance(remarks, str) else []


def by_rank(codes: Iterable[str]) -> str:
    """Return codes as one cell of `remarks`, the most serious first."""
    return "; ".join(sorted(set(codes), key=RANK.__getitem__))


def has(remarks: Series, *codes: str) -> Mask:
    """Return which rows carry any of the codes."""
    return np.array([not {*codes}.isdisjoint(codes_of(text)) for text in remarks], np.bool_)


def remark(table: Any, rows: Any, code: str) -> None:
    """Add a code to the remarks of some rows of a table, which is a frame or its columns by
    name."""
    if any(rows):
        table["remarks"] = [
            by_rank([*codes_of(text), code]) if there else text
            for text, there in zip(table["remarks"], rows, strict=True)
        ]


def withhold(table: DataFrame, rows: Series, code: str) -> None:
    """Withhold the verdict of some rows of a table that has them already."""
    remark(table, rows, code)
    for name, value in {"effect": "", "withheld": code, "verdict": CAUTIONS[code].words}.items():
        # A category cannot take a value that is none of its own.
        table[name] = table[name].astype(object).mask(rows, value).infer_objects()


def ask(table: Any, code: str) -> None:
    """Add a code to the remarks of the rows where its caution holds. A table that lacks one of the
    columns is not asked."""
    fires, needs = FIRING[code]
    if all(name in table for name in needs):
        remark(table, fires(*(np.asarray(table[name]) for name in needs)), code)


def code_names(codes: Iterable[str]) -> str:
    """Return codes in words."""
    return ", ".join(CAUTIONS[code].name for code in codes)


def warnings_of(remarks: Any) -> list[str]:
    """Return the codes of a cell that are warnings, and not only notes; of those with one reason,
    the gravest."""
    codes = codes_of(remarks)
    known = [CAUTIONS[code] for code in codes]
    return [one.code for one in known if one.warns and not {*one.beneath.split()} & {*codes}]


def sign_of(row: AnyRow) -> Sign:
    """Return "better" or "worse" where a row shows it, without another effect where both models
    have lists; else "open"."""
    if "missing_lists" in codes_of(row.get("remarks")):
        return "open"
    return SIGN_OF_EFFECT.get(row.get("effect", ""), "open")


def says_worse(row: AnyRow) -> bool:
    """Whether the verdict of a row says worse in any form, such as "worse, but better where both
    have lists"."""
    return "worse" in (effect_of_both(row), SIGN_OF_EFFECT.get(row.get("effect", "")))


def effect_of_both(row: AnyRow) -> Any:
    """Return the effect that a verdict names beside another one: that where both models have
    lists."""
    named = "missing_lists" in codes_of(row.get("remarks")) and not is_withheld(row)
    return named and row.get("effect_both")


def hides_harm(row: AnyRow, better: str | None) -> bool:
    """Whether the verdict of a row is withheld, and the numbers as they stand say worse, or may do
    so where nobody knows which side is better (None). Where there is no interval, as of an arm that
    has lost all, the difference itself is the number."""
    low, high = (row["diff" if pd.isna(row[end]) else end] for end in ("ci_low", "ci_high"))
    below = high < 0
    above = low > 0
    worse = {"larger": below, "smaller": above, None: below or above}
    return is_withheld(row) and worse.get(better, False)


def turned(row: AnyRow) -> dict[Any, Any]:
    """Return a row of a comparison of models as its baseline sees it: the two change places."""
    sides = {"model": "baseline", "wins": "losses", "better": "worse", "higher": "lower"}
    sides |= {"ranks_higher": "ranks_lower", "lose": "gain"}
    sides |= {other: one for one, other in sides.items()}
    found = {"_".join(sides.get(part, part) for part in name.split("_")): row[name] for name in row}
    for name in {"diff", "diff_both", "diff_without_top", "turning_value"} & found.keys():
        found[name] = -row[name]
    for low in {"ci_low", "ci_low_both"} & found.keys():
        high = low.replace("low", "high")
        found |= {low: -row[high], high: -row[low]}
    for name in {"effect", "effect_both", "turned_to"} & found.keys():
        found[name] = sides.get(row[name], row[name])
    if "rel_diff" in found:
        new, old = (found.get(name, np.nan) for name in ("mean_model", "mean_baseline"))
        found["rel_diff"] = new / old - 1 if old > 0 else np.nan
    found["as_given"] = f"{row['model']} against {row['baseline']}: {row['verdict']}"
    codes = found["effect"], found["withheld"], codes_of(found["remarks"])
    return found | {"verdict": sentence("models", *codes, found)}


def is_withheld(row: AnyRow) -> bool:
    """Whether the verdict of a row is withheld."""
    return row.get("withheld") in CAUTIONS


def effects_of(
    table: Mapping[str, Any] | DataFrame, reject: Mask, better: Mapping[str, str | None]
) -> list[str]:
    """Return the effect of every row: better or worse, higher or lower of a metric without
    direction, none."""
    effects = []
    for metric, diff, shown in zip(table["metric"], table["diff"], reject, strict=True):
        good, bad = ("higher", "lower") if better[metric] is None else ("better", "worse")
        effect = good if (diff > 0) == (better[metric] != "smaller") else bad
        effects.append(effect if shown else "none")
    return effects


def add_verdicts(table: DataFrame, kind: str, effects: Iterable[str]) -> None:
    """Run all cautions over a table of comparisons, and add its four columns.

    `remarks` of the table, if there are any, hold the codes that the arithmetic met.
    """
    columns: Any = {
        "remarks": [""] * len(table),
        **table,
        "effect": np.array([*effects], object),
    }
    for code in FIRING:
        ask(columns, code)
    # The sentence of a row without remarks has none of its numbers.
    used = columns if any(columns["remarks"]) else ["remarks", "effect"]
    found = []
    for cells in zip(*(columns[name] for name in used), strict=True):
        row = dict(zip(used, cells, strict=True))
        remarks = codes_of(by_rank(codes_of(row["remarks"])))
        withheld = next((code for code in remarks if CAUTIONS[code].withheld(kind, row)), "")
        effect = "" if withheld else row["effect"]
        said = sentence(kind, effect, withheld, remarks, row)
        found.append((effect, withheld, "; ".join(remarks), said))
    of_columns = list(zip(*found, strict=True)) or [()] * 4
    for name, values in zip(VERDICT_COLUMNS, of_columns, strict=True):
        table[name] = Series(values, table.index, dtype=str)


def warning_sentences(table: DataFrame) -> list[str]:
    """Say what every warning of a comparison means, and how many of its rows carry it; then what is
    added to verdicts that stand."""
    n_of = Counter(code for text in table["remarks"] for code in warnings_of(text))
    standing = table["remarks"][table["withheld"] == ""]
    n_of += Counter(one for text in standing for one in codes_of(text) if not CAUTIONS[one].warns)
    of_all = "The comparison" if len(table) == 1 else "{} of " + f"{len(table)} comparisons"
    return [
        f"{of_all.format(n)} {'carries' if n == 1 else 'carry'} the "
        f"{'warning' if CAUTIONS[code].warns else 'remark'} “{CAUTIONS[code].name}”: "
        f"{CAUTIONS[code].sentence}."
        for code, n in n_of.items()
    ]

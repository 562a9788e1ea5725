"""The two sides of a gate: what a caller hands over as a per-user table, and whether both come from the same data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import ColumnError, OptionError, closest, kind_of
from ..evaluation.result import read_parquet
from ..experiments.compare.runs import Runs
from ..inputs.per_user_columns import evaluated

__all__: list[str] = []

# Options that say how the rows of a model are written, so that two models may differ in them.
OF_PRED = ("by", "by_in_true", "score_col", "rank_col", "item_col", "like")
CHECK_COLUMNS = ["check", "candidate", "baseline", "found"]  # found: "same", "differs" or "not known"


class Side(NamedTuple):
    """One side: its role, its table with one row per list, and what `evaluate` recorded (empty if that is lost)."""

    role: str
    per_user: pd.DataFrame
    spec: Mapping[str, Any]


def read_side(role: str, given: Any) -> Side:
    """Read a result, a folder with one, or a per-user table; one with several models raises."""
    if isinstance(given, str | os.PathLike):
        given = read_parquet(given)
    per_user, spec = getattr(given, "per_user", given), getattr(given, "spec", None)
    if not isinstance(per_user, pd.DataFrame):
        expected = "a result of rd.evaluate, a folder with one, or its per_user"
        raise TypeError(f"{role} is {kind_of(given)}; expected {expected}")
    spec = evaluated(per_user) if spec is None else spec
    for name in spec.get("by", []):
        if name in per_user.columns:
            models = per_user[name].drop_duplicates().tolist()
            if len(models) > 1:
                raise OptionError(
                    f"{role} has {len(models)} values of {name!r} ({', '.join(map(repr, models[:5]))}), and a gate "
                    f"compares one recommender with one; pass the rows of one: "
                    f"result.per_user[result.per_user[{name!r}] == {models[0]!r}]", argument=role,
                )  # fmt: skip
            per_user = per_user.drop(columns=name)
    return Side(role, per_user, spec)


def check_metrics(sides: Sequence[Side], metrics: Iterable[str]) -> None:
    """Raise for a metric that a side lacks, or has at another k."""
    for metric in metrics:
        for side in sides:
            if metric in side.per_user.columns:
                continue
            known = list(side.spec.get("metrics", {})) or [
                name for name in side.per_user.columns if pd.api.types.is_float_dtype(side.per_user[name].dtype)
            ]
            alike = [name for name in known if name.split("@")[0] == metric.split("@")[0]]
            other = f"; it was evaluated with {' and '.join(alike)}, at another k" if alike and "@" in metric else ""
            if metric in known:
                other = "; it is one number for all lists, which has no interval"
            raise ColumnError(
                f"{side.role} has no metric {metric!r} per list{other or closest(metric, known)}; it has "
                f"{', '.join(known) or 'none'}", argument="budgets", value=metric,
            )  # fmt: skip
        ks = [side.spec.get("metrics", {}).get(metric, {}).get("k") for side in sides]
        if None not in ks and ks[0] != ks[1]:
            raise OptionError(
                f"{metric!r} is at k = {ks[0]} in {sides[0].role} and at k = {ks[1]} in {sides[1].role}; evaluate both "
                "at the same k", argument="budgets", value=metric,
            )  # fmt: skip


def data_checks(candidate: Side, baseline: Side, runs: Runs, metrics: Iterable[str]) -> pd.DataFrame:
    """Compare what both sides were evaluated on: one row per check."""
    rows: list[tuple[str, Any, Any]] = []
    specs = candidate.spec, baseline.spec
    known = all(specs)
    if known:
        for name in dict.fromkeys([*specs[0]["options"], *specs[1]["options"]]):
            pair = [spec["options"].get(name) for spec in specs]
            if name not in OF_PRED and (pair[0] != pair[1] or name == "users"):
                rows.append((f"option {name}", pair[0], pair[1]))
        for metric in metrics:
            own, base = (spec["metrics"].get(metric, {}).get("definition") for spec in specs)
            rows.append((f"definition of {metric}", own, base))
        tables = [spec.get("side_tables", {}) for spec in specs]
        rows += [(f"{name}=", *(one[name]["digest"] for one in tables)) for name in tables[0] if name in tables[1]]
        if ("exclude" in tables[0]) != ("exclude" in tables[1]):
            rows.append(("exclude=", *(one.get("exclude", {"digest": "nothing"})["digest"] for one in tables)))
    else:
        known_by = ["recorded" if spec else None for spec in specs]
        rows.append(("options and definitions", known_by[0], known_by[1]))
    own, base = _truth(candidate, baseline, runs)
    rows.append(("truth", own, base))
    table = pd.DataFrame(rows, columns=CHECK_COLUMNS[:3])
    lost = [None in (one, two) and not (known and name.startswith("option ")) for name, one, two in rows]
    same = [one == two for _, one, two in rows]
    table["found"] = np.where(lost, "not known", np.where(same, "same", "differs"))
    table[["candidate", "baseline"]] = table[["candidate", "baseline"]].astype(object).map(str)
    return table.astype("str")


def _truth(candidate: Side, baseline: Side, runs: Runs) -> tuple[str | None, str | None]:
    """Describe the truth of both sides: equal texts where it is the same, None where nothing tells."""
    digests = [side.spec.get("truth") for side in (candidate, baseline)]
    if all("n_true" in side.per_user.columns for side in (candidate, baseline)):
        base, own = runs.table("n_true")
        there = ~np.isnan(base) & ~np.isnan(own)
        unlike = int(np.count_nonzero(there & (base != own)))
        # With users="true" the population is that of the truth, so that a list of one side alone is one too.
        if all(side.spec.get("options", {}).get("users") in ("true", "all") for side in (candidate, baseline)):
            unlike += int(np.count_nonzero((base > 0) & np.isnan(own)) + np.count_nonzero((own > 0) & np.isnan(base)))
        if unlike:
            sums = [f"{int(np.nansum(one)):,} relevant items" for one in (own, base)]
            return f"{sums[0]}, other ones in {unlike:,} lists", sums[1]
        if None in digests:
            return "the same number of relevant items in each list", "the same number of relevant items in each list"
    return (None, None) if None in digests else (f"items {digests[0]}", f"items {digests[1]}")

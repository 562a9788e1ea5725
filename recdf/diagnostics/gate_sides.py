"""The two sides of a gate: what a caller hands over as a per-user table, and whether both come from
the same data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import ColumnError, OptionError, closest, kind_of
from ..evaluation.result import read_parquet
from ..experiments.compare.runs import Runs
from ..inputs.door import table_of_users
from ..inputs.frames import as_frame, column
from ..inputs.per_user_columns import evaluated
from ..judge.comparability import facts_of, other_truth
from ..metrics.direction import request_of
from .check_lists import SAMPLED
from .data_checks import MANY_SEEN, check
from .gate_result import CHECK_COLUMNS

__all__: list[str] = []

Pair = tuple[
    Any, ...
]  # of the candidate and of the baseline, and for some whether it makes a verdict doubtful
SEEN = "recommendations already in the log"


class Side(NamedTuple):
    """One side: its role, its table with one row per list, and what `evaluate` recorded (empty if
    that is lost)."""

    role: str
    per_user: pd.DataFrame
    spec: Mapping[str, Any]

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the evaluation."""
        options: Mapping[str, Any] = self.spec.get("options", {})
        return options

    def recorded(self, metric: str, what: str) -> Any:
        """What is recorded of a metric, such as its k; None if nothing is."""
        found = self.spec.get("metrics", {}).get(metric, {}).get(what)
        request = request_of(found) if what == "definition" and found else None
        # An older version wrote a definition without the parameters that were added since.
        return found if request is None else request.definition


def read_side(role: str, given: Any) -> Side:
    """Read a result, a folder with one, or a per-user table; one with several models raises."""
    if isinstance(given, str | os.PathLike):
        given = read_parquet(given)
    per_user, spec = (
        table_of_users(getattr(given, "per_user", given), role),
        getattr(given, "spec", None),
    )
    if not isinstance(per_user, pd.DataFrame):
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
    """Raise for a metric that a side lacks, or has at another k."""
    for metric in metrics:
        for side in sides:
            if metric not in side.per_user.columns:
                raise ColumnError(_lacks(side, metric), argument="budgets", value=metric)
        ks = {side.role: side.recorded(metric, "k") for side in sides}
        if None not in ks.values() and len(set(ks.values())) > 1:
            at = " and ".join(f"at k = {k} in {role}" for role, k in ks.items())
            says = f"{metric!r} is {at}; evaluate both at the same k"
            raise OptionError(says, argument="budgets", value=metric)


def _lacks(side: Side, metric: str) -> str:
    """Say that a side has no such metric, and what the caller may have meant."""
    known = list(side.spec.get("metrics", {})) or list(
        map(str, side.per_user.select_dtypes("float"))
    )
    (word, at, _), words = metric.partition("@"), [name.split("@")[0] for name in known]
    near = closest(word.lower(), words)
    if not at:  # the caller left out the cut-off
        lower = metric.lower()
        near = closest(next((one for one in known if one.split("@")[0] == lower), lower), known)
    hint = "; it was evaluated at another k" if at and word in words else near
    if metric in known:
        hint = f"; {metric!r} is one number for all lists, which has no interval"
    return (
        f"{side.role} has no metric {metric!r} per list; it has {', '.join(known) or 'none'}{hint}"
    )


def data_checks(sides: Sequence[Side], runs: Runs, metrics: Iterable[str]) -> dict[str, Pair]:
    """Return what both sides were evaluated on, by what it is; None where nothing tells."""
    definitions = {
        metric: [side.recorded(metric, "definition") for side in sides] for metric in metrics
    }
    facts = facts_of(sides[0].spec, sides[1].spec, definitions)
    pairs: dict[str, Pair] = {name: (one.own, one.base) for name, one in facts.items()}
    return pairs | {"truth": _truth(sides, runs)}


def _truth(sides: Sequence[Side], runs: Runs) -> Pair:
    """Describe the truth of both sides: equal texts where it is the same, None where nothing
    tells."""
    own, base = (side.spec.get("truth") for side in sides)
    if all("n_true" in side.per_user.columns for side in sides):
        both = runs.table("n_true")
        whole = all(side.options.get("users") in ("true", "all") for side in sides)
        unlike, _ = other_truth(both, whole)
        if unlike:
            sums = [f"{int(np.nansum(one)):,} relevant items" for one in both]
            return f"{sums[0]}, other ones in {unlike:,} lists", sums[1]
        if None in (own, base):
            own = base = "as many relevant items in each list"
    return own, base


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
    sides: Sequence[Side], pred: Any, true: Any, log: Any, k: int, keys: Sequence[str]
) -> tuple[tuple[Side, Side], dict[str, Pair]]:
    """Return the sides with the share of judged items of each list, and what `check` finds in the
    lists of both."""
    lists = pair_of(pred, [side.role for side in sides])
    if true is None:
        raise OptionError("⟦pred=⟧ needs ⟦+true=⟧, the truth that both sides were evaluated on")
    item_col = sides[0].options.get("item_col", "item_id")
    options: Any = {"user_col": keys[0] if len(keys) == 1 else list(keys), "item_col": item_col}
    judged = column(as_frame(true, "true", **options), item_col, "true")
    found: list[Side] = []
    shares: list[dict[str, float]] = []
    for side in sides:
        frame = as_frame(lists[side.role], f"pred of the {side.role}", **options)
        own = {
            name: side.options[name] for name in ("score_col", "rank_col") if name in side.options
        }
        findings = check(true, frame, k, log=log, **options, **own)
        shares.append(dict(zip(findings["finding"], findings["share"], strict=True)))
        of_list = (
            frame[item_col]
            .isin(judged)
            .groupby([frame[name] for name in keys])
            .mean()
            .rename("judged in true")
        )
        found.append(
            side._replace(
                per_user=side.per_user.merge(of_list.reset_index(), on=list(keys), how="left")
            )
        )
    sampled = [f"sampled in {one.get(SAMPLED, 0):.0%} of the lists" for one in shares]
    pairs: dict[str, Pair] = {"candidates": (*sampled, any(SAMPLED in one for one in shares))}
    if log is not None:
        seen = [one.get(SEEN, 0.0) for one in shares]
        pairs["seen items"] = (
            *(f"{one:.1%} of the recommendations" for one in seen),
            abs(seen[0] - seen[1]) > MANY_SEEN,
        )
    return (found[0], found[1]), pairs


def checks_table(pairs: Mapping[str, Pair]) -> pd.DataFrame:
    """Return one row per check: what it is of both sides, and whether that is the same or, where
    said, in doubt."""
    rows = []
    for name, (own, base, *doubt) in pairs.items():
        known = "not known" if None in (own, base) else "same" if own == base else "differs"
        rows.append(
            (
                name,
                str(own),
                str(base),
                ("in doubt" if doubt[0] else "no doubt") if doubt else known,
            )
        )
    return pd.DataFrame(rows, columns=CHECK_COLUMNS, dtype="str")

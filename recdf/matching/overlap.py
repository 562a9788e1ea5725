"""What `true` and `pred` have in common, and the warnings for data that can have no hit.

Contract: `Overlap` holds numbers and a few ids as text. The overlaps of disjoint parts of a
population can be added, so that frames and files give the same warnings. Ids are compared only
where nothing was a hit. A part compares its own ids. The caller compares the items of all parts
where none of them shares one, since an item may be in one part of `pred` and in another of `true`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy import ndarray

from ..errors import (
    DuplicateWarning,
    EmptyPopulationError,
    FoldByWarning,
    NoOverlapWarning,
    OrderWarning,
    RankWarning,
    warn_user,
)
from ..inputs.ids import IdColumn
from ..inputs.options import Options
from ..inputs.true_and_pred import OrderDoubt, argument_of, is_rank


@dataclass(frozen=True)
class Overlap:
    """What the rows of both frames share.

    n_true_rows, n_pred_rows : number of rows that were not dropped · relevant : some row of `true`
    is relevant · has_true : `true` is a table, so that an empty one deserves a warning · given :
    the caller gave the population · n_with_true : lists of the population that `true` judges ·
    n_judged : recommended rows that `true` judges, for each `by` value · shares_user, shares_item :
    some user, some item is in both frames · by_shares_item : for each `by` value, some item that it
    recommends to the population is in `true` · samples : two ids of each frame as text, by what
    they are, such as "true user" · ranks_repeat : some list has a rank twice · n_without_pred :
    lists of the population that `pred` does not have · alone : no key has lists of two `by` values
    · n_lists, n_with_relevant : lists of the population, and those with a relevant item · n_ranked
    : rows of the ranked lists · in_sides : for each side table, such as "log item" and "log user",
    how much of both frames it has, 0 for nothing · disordered : for each column that looks like a
    score or a rank and is not used, the lists whose rows are in another order · doubtful : for each
    doubt about the order, the lists for which it holds, and those that were looked at · order : the
    column that orders `pred`, and another one beside it · true_by : `by`
    columns that `true` has too and that are not matched · swapped : `true` has the columns of
    `pred`.
    """

    n_true_rows: int
    n_pred_rows: int
    relevant: bool
    has_true: bool
    given: bool
    n_with_true: int
    n_judged: ndarray
    shares_user: bool
    shares_item: bool
    by_shares_item: ndarray
    samples: Mapping[str, str]
    ranks_repeat: bool = False
    n_without_pred: int = 0
    alone: bool = True
    n_lists: int = 0
    n_with_relevant: int = 0
    n_ranked: int = 0
    in_sides: Mapping[str, int] = field(default_factory=dict)
    disordered: Mapping[str, int] = field(default_factory=dict)
    doubtful: Mapping[str, int] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    true_by: list[str] = field(default_factory=list)
    swapped: bool = False

    def __add__(self, other: Overlap) -> Overlap:
        """Join what two parts know: counts are added, facts hold if one part has them, and texts
        stay."""

        def both(name: str, one: Any, two: Any) -> Any:
            if name == "alone":
                return one and two
            if isinstance(one, Mapping):
                shared = {key: both(key, one[key], two[key]) for key in one.keys() & two.keys()}
                return {**one, **two, **shared}
            if isinstance(one, bool) or (isinstance(one, ndarray) and one.dtype.kind == "b"):
                return one | two
            return one if isinstance(one, str | list) else one + two

        joined = {name: both(name, one, vars(other)[name]) for name, one in vars(self).items()}
        return Overlap(**joined)

    def shown(self, what: str, roles: Sequence[str]) -> str:
        """Return two users, or items, of each of these frames as text."""
        names = [f"{role} {what}" for role in roles]
        return "; ".join(self.samples[name] for name in names if name in self.samples)

    def in_doubt(self) -> Iterator[tuple[OrderDoubt, int, int, str, str]]:
        """Give each doubt about the order that holds for more than half of the lists that were
        looked at: both numbers of lists, what the doubt says, and what to pass. Where ranks repeat,
        their order says nothing."""
        if self.ranks_repeat or not self.doubtful:
            return
        name, other = self.order
        keep = f"⟦+score_col={name!r}⟧ says that the largest is best"
        by_rank = f"pass ⟦+rank_col={name!r}⟧ if"
        words: dict[OrderDoubt, tuple[str, str]] = {
            "counts": (
                f"pred[{name!r}] is 1, 2, 3, ... in the order of the rows, as ranks are, and the "
                "largest is taken for the best",
                f"{by_rank} 1 is the best" + ("" if is_rank(name) else f"; {keep}"),
            ),
            "beside": (
                f"pred[{name!r}] decides the order, and pred[{other!r}] says otherwise",
                f"pass {argument_of(other)}, or {argument_of(name)} to keep the order",
            ),
            "distance": (
                f"pred[{name!r}] is a distance by its name, has no value below 0, and the largest "
                "is taken for the best",
                f"{by_rank} the smallest is the best, or give the column another name",
            ),
        }
        for doubt, said in words.items():
            n = self.doubtful.get(doubt, 0)
            of = self.doubtful.get(f"of {doubt}", 0)
            if 2 * n > of:
                yield doubt, n, of, *said

    @property
    def silent(self) -> ndarray:
        """Positions of the `by` values that share no item with `true`, as far as was compared."""
        return np.flatnonzero((self.n_judged == 0) & ~self.by_shares_item)


def samples_of(role: str, keys: Sequence[IdColumn], item: IdColumn) -> dict[str, str]:
    """Return two users and two items of a frame as text for a message; a user is named by the whole
    list key."""
    samples = {}
    for what, columns in (("user", keys), ("item", [item])):
        if columns and len(columns[0]):
            shown = zip(*(ids.show(np.arange(min(100, len(ids)))) for ids in columns), strict=True)
            some = [
                repr(one[0]) if len(one) == 1 else repr(one)
                for one in list(dict.fromkeys(shown))[:2]
            ]
            samples[f"{role} {what}"] = (
                f"{', '.join(ids.where for ids in columns)}: {', '.join(some)}"
            )
    return samples


# -- warnings and errors


def no_lists(overlap: Overlap, options: Options) -> EmptyPopulationError:
    """Return the error for an empty population."""
    found = (
        f"there is no list to evaluate: true has {overlap.n_true_rows:,} rows, pred "
        f"{overlap.n_pred_rows:,}, "
        f"⟦users={options.spec()['users']!r}⟧" + (f", ⟦by={options.by!r}⟧" if options.by else "")
    )
    if overlap.in_sides.get("exclude pair"):
        found += ", without the rows that ⟦exclude=⟧ left out"
    elif {"true user", "pred user"} <= overlap.samples.keys():
        found += f"; no user of pred is in true ({overlap.shown('user', ('true', 'pred'))})"
    return EmptyPopulationError(found)


def warn_of_columns(overlap: Overlap) -> None:
    """Warn of what the columns of both frames tell, whatever their rows."""
    if names := overlap.true_by:
        warn_user(
            f"true has the by column{'s' * (len(names) > 1)} {', '.join(map(repr, names))} too, "
            "and each value of pred is scored with all rows of true. Pass ⟦+by_in_true=True⟧ to "
            "score a fold, or the like, with the rows of true of the same value; "
            "⟦+by_in_true=False⟧ says that all of true is meant",
            FoldByWarning,
        )
    if overlap.swapped:
        warn_user(
            "true has a score or a rank, or pred a relevance, and no column orders pred: are they "
            "swapped? true comes first; ⟦+score_col=False⟧ says that the order of the rows of pred "
            "is meant",
            OrderWarning,
        )


def warn(overlap: Overlap, counts: Mapping[str, int], by: pd.DataFrame, options: Options) -> None:
    """Warn of repeated rows and of frames that have nothing in common; `by` are the labels of the
    `by` values."""
    _warn_of_rows(overlap, counts, options)
    for _, n, of, said, advice in overlap.in_doubt():
        warn_user(f"{said} in {n:,} of {of:,} lists that were looked at: {advice}", OrderWarning)
    _warn_of_sides(overlap)
    _warn_of_no_hits(overlap, by)


def _warn_of_rows(overlap: Overlap, counts: Mapping[str, int], options: Options) -> None:
    """Warn of repeated items, of repeated ranks, and of rows in no order that a column of scores or
    ranks has."""
    repeated = {role: counts.get(f"{role}_duplicates", 0) for role in ("true", "pred", "base")}
    if any(repeated.values()) and options.duplicates == "drop":
        found = " and ".join(f"{n:,} of {role}" for role, n in repeated.items() if n)
        several = ""
        if repeated["pred"] and not options.by:
            several = (
                "if pred holds several recommenders, pass the column of their names as ⟦+by=⟧; "
            )
        if repeated["base"]:
            several += "if base holds several recommenders, pass the rows of one; "
        warn_user(
            f"dropped repeated (list, item) rows: {found}; the best rank and the largest gain stay "
            f'(⟦+duplicates="keep"⟧ counts them, "raise" refuses them); {several}⟦rd.check(true, '
            "pred)⟧ tells more",
            DuplicateWarning,
            count=sum(repeated.values()),
        )
    if overlap.ranks_repeat:
        more = "another column in ⟦+by=⟧" if options.by else "⟦by=⟧"
        warn_user(
            f"ranks repeat within a list, whose order then says nothing; is {more} missing, or a "
            "column of ⟦+user_col=⟧? ⟦rd.check(true, pred)⟧ tells more",
            RankWarning,
        )
    if overlap.disordered and min(overlap.disordered.values()):
        name, n = next(iter(overlap.disordered.items()))
        warn_user(
            "the order of the rows ranks pred, which has no column named 'rank' or 'score', and "
            f"pred[{name!r}] says otherwise in {n:,} list{'s' * (n > 1)}: pass "
            f"{argument_of(name)}, or ⟦+score_col=False⟧ to keep their order",
            OrderWarning,
        )


def _warn_of_sides(overlap: Overlap) -> None:
    """Warn of side tables that share no user, or no item, with the lists, and of an exclusion that
    left out no row."""
    lacking = [what for what in ("user", "pair") if overlap.in_sides.get(f"exclude {what}") == 0]
    for what in lacking[:1]:
        some = overlap.shown("user" if what == "user" else "item", ("true", "pred", "exclude"))
        warn_user(
            f"⟦exclude=⟧ has no {what} of true or pred, so no row was left out ({some})",
            NoOverlapWarning,
        )
    for known, n in overlap.in_sides.items() if overlap.n_ranked else ():
        name, what = known.split()
        if name != "exclude" and not n:
            roles = ("true", "pred", name) if what == "item" else ("pred", name)
            frames = "true or pred" if what == "item" else "the evaluated lists"
            warn_user(
                f"⟦{name}=⟧ has no {what} of {frames}, so what metrics read from it says nothing "
                f"({overlap.shown(what, roles)})",
                NoOverlapWarning,
            )


def _warn_of_no_hits(overlap: Overlap, by: pd.DataFrame) -> None:
    """Warn why there is no hit, or none for some `by` values: what nothing shares, and what can
    have no hit."""
    judged = overlap.n_judged.any()
    apart = overlap.n_true_rows and overlap.n_pred_rows and not judged
    if apart and not (overlap.shares_user and overlap.shares_item):
        what = "item" if overlap.shares_user else "user"
        warn_user(
            f"no recommended {what} is in true, so every list scores 0 "
            f"({overlap.shown(what, ('true', 'pred'))}); ⟦rd.check(true, pred)⟧ tells more",
            NoOverlapWarning,
        )
    if judged and len(silent := overlap.silent):
        some = by.take(silent[:5])
        labels = zip(*(some[name].tolist() for name in some.columns), strict=True)
        named = ", ".join(repr(one[0] if len(one) == 1 else one) for one in labels)
        warn_user(
            f"{len(silent):,} of {len(by):,} by values recommend the users of true nothing that is "
            f"in true, and score 0 in every list that they have: {named}; ⟦rd.check(true, pred, "
            "by=...)⟧ tells more",
            NoOverlapWarning,
        )
    reasons = {
        "true has no rows": not overlap.n_true_rows,
        "no row of true is relevant": not overlap.relevant,
        "none of the given users is in true": overlap.given and not overlap.n_with_true,
        "none of the given users is in pred": overlap.given
        and overlap.n_without_pred == overlap.n_lists,
    }
    reason = next((words for words, holds in reasons.items() if holds), None)
    if reason is not None and overlap.has_true and overlap.n_pred_rows:
        warn_user(
            f"{reason}, so there can be no hit; ⟦rd.check(true, pred)⟧ tells more",
            NoOverlapWarning,
        )
